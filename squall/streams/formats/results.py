"""Evaluations as documents (SPARQL 1.1 Query Results in JSON, XML, CSV and TSV), and as lines of JSON with their time.

Sources: SPARQL 1.1 Query Results JSON Format; SPARQL Query Results XML Format (Second Edition); SPARQL 1.1 Query
Results CSV and TSV Formats. The first two have the IRI of the evaluation, and so its time, as a link in their head. The
others cannot express it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from squall.errors import SinkError
from squall.rdf import ALWAYS, Term, iri_text, is_blank, is_iri, parts
from squall.streams.formats.evaluations import Evaluation, described, link_of


def json_line(evaluation: Evaluation) -> bytes:
    """Returns a document of the JSON format on one line, with the members ``time`` and ``query`` before its own.

    The time is integer ms, or null for static data.
    """
    time = None if evaluation.time == ALWAYS else evaluation.time
    return _dumped({"time": time, "query": evaluation.query} | _json(evaluation, {}))


def srj(evaluation: Evaluation) -> bytes:
    """Returns a document of the JSON format, on one line."""
    return _dumped(_json(evaluation, {"link": [link_of(evaluation)]}))


def _json(evaluation: Evaluation, head: dict[str, Any]) -> dict[str, Any]:
    if evaluation.boolean is not None:
        return {"head": head, "boolean": evaluation.boolean}
    bindings = [{name: _json_term(term) for name, term in row.items()} for row in evaluation.bindings]
    return {"head": {"vars": list(evaluation.names)} | head, "results": {"bindings": bindings}}


def _dumped(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False) + "\n").encode()


def _json_term(term: Term) -> dict[str, str]:
    """Returns a term in the JSON format (section 3.2.2)."""
    kind, text, attributes = described(term)
    return {"type": kind, "value": text} | attributes


def srx(evaluation: Evaluation) -> bytes:
    """Returns a document of the XML format. Raises SinkError for a literal with a character that XML does not have."""
    from squall.streams.formats.xml_results import document  # the XML library loads that of HTTP, too

    return document(evaluation)


def srcsv(evaluation: Evaluation) -> bytes:
    """Returns a document of the CSV format: plain values. Raises SinkError for a boolean."""
    _no_boolean(evaluation, "CSV")
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(evaluation.names)
    table.writerows(
        [plain_value(row[name]) if name in row else "" for name in evaluation.names] for row in evaluation.bindings
    )
    return text.getvalue().encode()


def plain_value(term: Term) -> str:
    """Returns the text of an IRI or literal, or a blank node with its ``_:`` (section 3.2)."""
    if is_iri(term):
        return iri_text(term)
    return term if is_blank(term) else parts(term).lexical


def srtsv(evaluation: Evaluation) -> bytes:
    """Returns a document of the TSV format: terms in N-Triples, with escaped tabs. Raises SinkError for a boolean."""
    _no_boolean(evaluation, "TSV")
    rows = ([row.get(name, "").replace("\t", "\\t") for name in evaluation.names] for row in evaluation.bindings)
    lines = ["\t".join(f"?{name}" for name in evaluation.names), *map("\t".join, rows)]
    return ("\n".join(lines) + "\n").encode()


def _no_boolean(evaluation: Evaluation, format: str) -> None:
    if evaluation.boolean is not None:
        raise SinkError(f"SPARQL's {format} has no form for a boolean", hint="the formats `srj` and `srx` have one")


DOCUMENTS: dict[str, Callable[[Evaluation], bytes]] = {"srj": srj, "srx": srx, "srcsv": srcsv, "srtsv": srtsv}
"""The formats with one evaluation per document, by name."""
