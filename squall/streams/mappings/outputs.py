"""The mapping of what squall has written: lines of the format ``ndjson`` become the facts again that were output.

An atom, which no format of RDF holds, is read back so. The name of the mapping is ``map=outputs``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from squall.errors import ArgumentError
from squall.rdf import ALWAYS, Atom, Fact, Quad, Term, Triple, blank, iri, is_blank, is_iri, literal
from squall.streams.mappings.evaluation import Facts, UnusableRecord

_MISSING = object()


class OutputEvaluator:
    """The function of `OutputMapping`."""

    def statements(self, record: Any, own: str = "") -> Facts:
        """Returns the fact of a record, with its time (integer ms, or `ALWAYS`).

        Args:
            record: A value of JSON.
            own: The suffix of the labels of blank nodes (`squall.streams.formats.suffix`).

        Raises:
            UnusableRecord: It is no fact that squall has written.
        """
        if not isinstance(record, dict):
            raise UnusableRecord("it is no output, which is an object with a `time`")
        time = record.get("time", _MISSING)
        if time is not None and type(time) is not int:
            raise UnusableRecord("its `time` is neither an integer (ms) nor null")
        if record.get("change") == "delete":
            raise UnusableRecord("it says that a fact ends, which lines of `ndjson` cannot: read a log, `rdfp`")
        return [(ALWAYS if time is None else time, _fact(record, own))]


def _fact(record: Mapping[str, Any], own: str) -> Fact | Quad:
    if "relation" in record:
        arguments = record.get("arguments")
        if not isinstance(arguments, list):
            raise UnusableRecord("its `arguments` are no array")
        terms = [_term(f"arguments[{number}]", value, own) for number, value in enumerate(arguments)]
        return Atom(_checked(record, "relation", own, is_iri), tuple(terms))
    if "subject" not in record:
        raise UnusableRecord("it has no fact: neither a `subject` nor a `relation`")
    triple = Triple(
        _checked(record, "subject", own, _is_resource),
        _checked(record, "predicate", own, is_iri),
        _term("object", record.get("object"), own),
    )
    return Quad(*triple, _checked(record, "graph", own, _is_resource)) if "graph" in record else triple


def _is_resource(term: Term) -> bool:
    return is_iri(term) or is_blank(term)


def _checked(record: Mapping[str, Any], name: str, own: str, is_allowed: Callable[[Term], bool]) -> Term:
    term = _term(name, record.get(name), own)
    if not is_allowed(term):
        raise UnusableRecord(f"its `{name}` is `{term}`, which cannot stand there")
    return term


def _term(name: str, value: Any, own: str) -> Term:
    """Returns a term of SPARQL 1.1 Query Results JSON (section 3.2.2), with ``language`` for ``xml:lang``."""
    try:
        match value:
            case {"type": "uri", "value": str(text)}:
                return iri(text)
            case {"type": "bnode", "value": str(text)}:
                return blank(text + own)
            case {"type": "literal", "value": str(text)}:
                return literal(text, value.get("datatype"), value.get("language"))
    except ArgumentError as error:
        raise UnusableRecord(f"its `{name}`: {error.message}") from None
    raise UnusableRecord(f"its `{name}` is no term, which is an object with `type` and `value`")
