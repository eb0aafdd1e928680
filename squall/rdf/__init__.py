"""RDF terms, triples, atoms and events: the data of a program.

A *term* is its canonical N-Triples text: ``<http://example.org/a>``, ``_:b0``, ``"5"^^<http://...#int>``. One
representation serves from the lexer to Spark's workers: it hashes, compares, pickles and travels through Arrow as it
is. Two terms are the same RDF 1.1 term if and only if their texts are equal (see
docs/decisions/0002-terms-are-text.md).

Source: RDF 1.1 Concepts, sections 3.1 to 3.4; RDF 1.1 N-Triples, section 4 (canonical form).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice, repeat
from operator import le, lt
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, cast, overload
from urllib.parse import quote

import pyoxigraph

from squall.errors import ArgumentError

if TYPE_CHECKING:
    import rdflib

Term = NewType("Term", str)

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD_STRING = XSD + "string"
LANG_STRING = RDF + "langString"

ALWAYS = -(2**63)
"""The time since which static data and what follows from them alone are valid: before every event (integer ms)."""
FOREVER = 2**63 - 1
"""The end of an interval that nothing closes (integer ms, exclusive)."""
DEFAULT_STREAM = "the default stream"
"""The name of the stream with the empty IRI in messages."""


class Triple(NamedTuple):
    """A subject, a predicate and an object; a *fact*."""

    subject: Term
    predicate: Term
    object: Term

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} ."


class Atom(NamedTuple):
    """``relation(arguments)``, an n-ary *fact* (RIF-BLD 2.2, "atomic formulas"). It has no RDF serialisation."""

    relation: Term
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(self.arguments)}) ."


Fact = Triple | Atom


class Quad(NamedTuple):
    """A triple in a named graph: the output of a template with ``GRAPH``. Inside of a program it is an atom of
    `QUAD`.
    """

    subject: Term
    predicate: Term
    object: Term
    graph: Term

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} {self.graph} ."


class Solution(NamedTuple):
    """A query's solution: the values of its variables, None for an unbound one."""

    names: tuple[str, ...]
    values: tuple[Term | None, ...]

    def __str__(self) -> str:
        return " ".join(f"?{name}={value or ''}" for name, value in zip(self.names, self.values, strict=True))


class Boolean(NamedTuple):
    """The answer of an ASK query. Its truth value is the answer."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"

    def __bool__(self) -> bool:
        return self.value


class Evaluated(NamedTuple):
    """Marks the end of a query's evaluation at an instant.

    The outputs before it with the same time and rule are the whole answer, which is empty if there are none. `names`
    has the query's variables; it is empty for facts and for ASK.
    """

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "evaluated"


class Event(NamedTuple):
    """Facts that arrive together.

    Attributes:
        time: Integer milliseconds since the epoch; `ALWAYS` for static data.
        facts: The facts.
        stream: The IRI of the stream on which they arrive. ``""`` is the default stream.
        removed: Facts that this stream has brought in earlier events, also of the same time, and that expire now (an
            RDF Patch's ``D``). What this event itself brings stays.
        graph: The name (a term's text) of the named graph of all these facts. ``""`` is the default graph.
    """

    time: int
    facts: tuple[Fact, ...]
    stream: str = ""
    removed: tuple[Fact, ...] = ()
    graph: str = ""

    @property
    def is_static(self) -> bool:
        """Whether the event brings static data."""
        return self.time == ALWAYS

    @property
    def statement_count(self) -> int:
        """The number of its statements: facts that it brings, and facts that expire."""
        return len(self.facts) + len(self.removed)


class Columns(Sequence[Event]):
    """Triples of one stream in the order of time, in columns. It is a sequence of events, one for each time.

    Code that reads columns need not create events and triples. The constructor checks nothing; `of` does.

    Attributes:
        times: The times (integer ms), each once.
        sizes: The number of triples at each time, which may be 0.
        subjects: The subjects of the triples.
        predicates: The predicates of the triples.
        objects: The objects of the triples.
        stream: The IRI of their stream.
    """

    def __init__(
        self,
        times: list[int],
        sizes: list[int],
        subjects: list[Term],
        predicates: list[Term],
        objects: list[Term],
        stream: str,
    ) -> None:
        self.times = times
        self.sizes = sizes
        self.subjects = subjects
        self.predicates = predicates
        self.objects = objects
        self.stream = stream

    @classmethod
    def of(cls, events: Iterable[Event]) -> Columns:
        """Returns events of one stream as columns. Events of one time become one event.

        Raises:
            ValueError: There is no event; or one is of another stream, out of order, static, in a named graph, without
                facts, with removals, or with facts that are not triples.
        """
        event_list = _checked_events(events)
        if not event_list:
            raise ValueError("there are no events to make columns of")
        sizes: dict[int, int] = {}
        latest = ALWAYS
        for event in event_list:
            if reason := _refusal(event, event_list[0].stream, latest):
                raise ValueError(f"the event at {event.time} cannot be in columns: {reason}")
            latest = event.time
            sizes[latest] = sizes.get(latest, 0) + len(event.facts)
        facts = [fact for event in event_list for fact in event.facts]
        subjects, predicates, objects = ([cast(Term, fact[position]) for fact in facts] for position in range(3))
        return cls(list(sizes), list(sizes.values()), subjects, predicates, objects, event_list[0].stream)

    @classmethod
    def transposed(cls, events: Sequence[Event]) -> Columns | None:
        """Returns events as columns, in a few passes of which none is a loop of Python.

        None: They are of several streams, static, in a named graph, or not in the order of time, or have removals,
        nothing, or facts that are not triples.
        """
        if not events or events[0].time == ALWAYS:
            return None
        times, event_facts, streams, removed, graphs = zip(*events, strict=True)
        stream, count = streams[0], len(events)
        if stream in (HEARTBEAT, NOTES) or streams.count(stream) < count or graphs.count("") < count or any(removed):
            return None
        facts = list(chain.from_iterable(event_facts))
        if set(map(type, facts)) != {Triple} or not all(event_facts) or not all(map(le, times, times[1:])):
            return None
        subjects, predicates, objects = (cast(list[Term], [*column]) for column in zip(*facts, strict=True))
        sizes = map(len, event_facts)
        if all(map(lt, times, times[1:])):
            columns = cls([*times], [*sizes], subjects, predicates, objects, stream)
            columns.events = [*events]
            return columns
        totals: dict[int, int] = {}
        for time, size in zip(times, sizes, strict=True):
            totals[time] = totals.get(time, 0) + size
        return cls([*totals], [*totals.values()], subjects, predicates, objects, stream)

    def without_last(self) -> tuple[Columns | None, Event]:
        """Returns the columns up to the last time, or None if there are no more, and the event of the last time."""
        if len(self.times) == 1:
            return None, self.events[-1]
        facts = slice(len(self.subjects) - self.sizes[-1])
        last = slice(facts.stop, None)
        subjects, predicates, objects = terms = self.subjects, self.predicates, self.objects
        own = subjects[facts], predicates[facts], objects[facts]
        columns = Columns(self.times[:-1], self.sizes[:-1], *own, self.stream)
        if "events" in vars(self) and columns.sizes[-1]:
            columns.events = self.events[:-1]
        triples = tuple(map(Triple, *(column[last] for column in terms)))
        return columns, Event(self.times[-1], triples, self.stream)

    def parts(self, max_events: int) -> Iterator[Columns]:
        """Yields the same in parts of at most `max_events` events."""
        if len(self.times) <= max_events:
            yield self
            return
        starts = [0, *accumulate(self.sizes)]
        for first in range(0, len(self.times), max_events):
            last = min(first + max_events, len(self.times))
            triples = slice(starts[first], starts[last])
            yield Columns(
                self.times[first:last],
                self.sizes[first:last],
                self.subjects[triples],
                self.predicates[triples],
                self.objects[triples],
                self.stream,
            )

    @cached_property
    def period(self) -> int:
        """The number of triples of each event, if all events repeat the same predicates in the same order; else 0.

        The first and the last event do not count, since they may have been cut. Sensors send such events (a
        characteristic set: Neumann and Moerkotte 2011, section III).
        """
        inner = self.sizes[1:-1]
        if not inner or inner.count(inner[0]) < len(inner):
            return 0
        first, size = self.sizes[0], inner[0]
        predicates = self.predicates[first : first + size * len(inner)]
        return size if predicates[:size] * len(inner) == predicates else 0

    @cached_property
    def events(self) -> list[Event]:
        """The events themselves: those with triples, and the last one."""
        triples = map(tuple.__new__, repeat(Triple), zip(self.subjects, self.predicates, self.objects, strict=True))
        return [
            Event(time, cast(tuple[Fact, ...], tuple(islice(triples, size))), self.stream)
            for time, size in zip(self.times, self.sizes, strict=True)
            if size or time == self.times[-1]
        ]

    def __len__(self) -> int:
        return len(self.events)

    def __bool__(self) -> bool:
        return True

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        return self.events[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)


def statement_count(events: Sequence[Event]) -> int:
    """Returns the number of statements in some events."""
    if isinstance(events, Columns):
        return len(events.subjects)
    return sum(event.statement_count for event in events)


def _checked_events(events: Any) -> list[Event]:
    """Returns events as a list. Raises ArgumentError if they are none."""
    checked = list(events) if isinstance(events, Iterable) else [events]
    for event in checked:
        if not isinstance(event, Event):
            raise ArgumentError(f"`{event!r}` is no event", hint="write `squall.rdf.Event(1000, (triple,))`")
    return checked


def _refusal(event: Event, stream: str, latest: int) -> str | None:
    """Returns why an event cannot be in the columns of a stream, or None if it can.

    Args:
        latest: The time of the event before it.
    """
    if event.is_static:
        return "static data are given by themselves (`static`)"
    if event.stream != stream:
        return f"it is of the stream `{event.stream or DEFAULT_STREAM}`, others are of `{stream or DEFAULT_STREAM}`"
    if event.time < latest:
        return f"it comes after one at {latest}"
    if event.removed:
        return "it takes facts out of the stream"
    if event.graph:
        return f"it is in the graph {event.graph}"
    if not event.facts:
        return "it brings nothing"
    other = next((fact for fact in event.facts if not isinstance(fact, Triple)), None)
    return None if other is None else f"it brings `{other}`, which is no triple"


HEARTBEAT = "urn:x-squall:heartbeat"
"""The stream of heartbeats: events without facts that say how far time has come."""


WORKING = "urn:x-squall:working"
"""The stream of facts that updates insert without naming a graph. Every default graph includes it, whatever its
windows.
"""

NOTES = "urn:x-squall:notes"
"""The stream of the internal records of rules (`squall.model.jena_negation`). No answer includes it."""


def heartbeat(time: int) -> Event:
    """Returns a heartbeat: time has reached `time` (integer ms), so that everything earlier has arrived.

    A heartbeat is no evaluation instant.
    """
    return Event(time, (), HEARTBEAT)


def iri(value: str) -> Term:
    """Returns the term of an IRI without angle brackets. Relative IRIs are taken as they are.

    Raises:
        ArgumentError: The text has a character that is in no IRI.
    """
    try:
        wrong = _NOT_IN_IRI.search(value)
    except TypeError:
        hint = 'write `iri("http://example.org/a")`'
        raise ArgumentError(f"`{value!r}` is not the text of an IRI", hint=hint) from None
    if wrong:
        raise ArgumentError(f"`{value}` is not an IRI: it has the character {wrong[0]!r}", hint=_iri_hint(value))
    return Term(f"<{value}>")


_NOT_IN_IRI = re.compile(r"""[\x00-\x20<>"{}|^`\\\ud800-\udfff]""")
"""A character that no IRI has (RDF 1.1 N-Triples, IRIREF)."""


def _iri_hint(value: str) -> str:
    if value[:1] == "<" and value[-1:] == ">":
        return f"leave the angle brackets out: `{value[1:-1]}`"
    return f"write it percent-encoded: `{quote(value, safe=_SAFE, errors='replace')}`"


_SAFE = "".join(map(chr, range(0x21, 0x7F))).translate(dict.fromkeys(map(ord, '<>"{}|^`\\')))
"""The characters of ASCII that an IRI may have."""


QUAD = iri("urn:x-squall:quad")
"""The relation of quads inside of a program. Its arguments are the graph, the subject, the predicate and the object."""

TUPLE = iri("urn:x-squall:tuple")
"""The relation of tuples: statements that have more than a subject, a predicate and an object. Their arguments follow,
such as the begin and the end of the validity of a fact (`squall.streams.formats.quintuples`)."""


def blank(label: str) -> Term:
    """Returns the blank node with this label (without ``_:``).

    Raises:
        ArgumentError: The text is no label of N-Triples.
    """
    try:
        is_label = (label.isascii() and label.isalnum()) or _LABEL.fullmatch(label) is not None
    except (AttributeError, TypeError):
        is_label = False
    if not is_label:
        hint = "a label has letters, digits, `_`, `-`, and dots inside; leave `_:` out"
        raise ArgumentError(f"`{label}` is not the label of a blank node", hint=hint)
    return Term(f"_:{label}")


_LETTERS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff_0-9"
)
_INSIDE = f"{_LETTERS}\\-\u00b7\u0300-\u036f\u203f-\u2040"
_LABEL = re.compile(f"[{_LETTERS}](?:[{_INSIDE}.]*[{_INSIDE}])?")
"""A label (RDF 1.1 N-Triples, BLANK_NODE_LABEL)."""


def literal(lexical: str, datatype: str | None = None, language: str | None = None) -> Term:
    """Returns a literal by lexical form and datatype IRI or language tag; ``xsd:string`` if neither is given.

    The lexical form is kept as it is: ``literal("01", XSD + "integer")`` is not ``1``.

    Raises:
        ArgumentError: The lexical form is no text, or the datatype no IRI, or the language no language tag.
    """
    try:
        quoted = _ESCAPED.sub(_escape, lexical)
    except TypeError:
        hint = f'write `literal("{lexical}", {_DATATYPES.get(type(lexical), "datatype")})`'
        raise ArgumentError(f"the lexical form `{lexical!r}` is no text", hint=hint) from None
    if language is not None:
        return Term(f'"{quoted}"@{_language_tag(str(language))}')
    if datatype is None or datatype == XSD_STRING:
        return Term(f'"{quoted}"')
    try:
        return Term(f'"{quoted}"^^{_datatype_iri(datatype)}')
    except TypeError:
        raise ArgumentError(f"the datatype `{datatype!r}` is no text", hint='write `XSD + "integer"`') from None


_DATATYPES: dict[type, str] = {
    bool: 'XSD + "boolean"', int: 'XSD + "integer"', float: 'XSD + "double"', Decimal: 'XSD + "decimal"',
    datetime: 'XSD + "dateTime"', date: 'XSD + "date"',
}  # fmt: skip
"""How the datatype of a Python value is written."""
_TAG = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")


@lru_cache(maxsize=1024)
def _datatype_iri(datatype: str) -> Term:
    return iri(datatype)


@lru_cache(maxsize=1024)
def _language_tag(language: str) -> str:
    if not _TAG.fullmatch(language):
        raise ArgumentError(f"`{language}` is not a language tag", hint="tags are like `en` and `de-AT`")
    return language.lower()


def is_iri(term: str) -> bool:
    return term[0] == "<"


def is_blank(term: str) -> bool:
    return term[0] == "_"


def is_literal(term: str) -> bool:
    return term[0] == '"'


def iri_text(term: str) -> str:
    """Returns the IRI without its brackets."""
    return term[1:-1]


class Literal(NamedTuple):
    """The parts of a literal; `language` is ``""`` where there is none."""

    lexical: str
    datatype: str
    language: str


_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
"""The escapes of one letter (RDF 1.2 N-Triples, section 3, canonical form)."""
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f\ufffe\uffff]')
_ESCAPES = {character: f"\\{letter}" for letter, character in _SHORT.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"


def _unescape(match: re.Match[str]) -> str:
    return _SHORT.get(match[3], match[3]) if match[3] else chr(int(match[1] or match[2], 16))


@lru_cache(maxsize=65536)
def parts(term: str) -> Literal:
    """Returns the lexical form, datatype IRI and language tag of a literal's text.

    Raises:
        ArgumentError: The term is no literal.
    """
    try:
        close = term.rindex('"')
    except (ValueError, AttributeError):
        raise ArgumentError(f"`{term}` is not a literal", hint="ask `squall.rdf.is_literal` first") from None
    lexical = term[1:close]
    if "\\" in lexical:
        lexical = _ESCAPE.sub(_unescape, lexical)
    suffix = term[close + 1 :]
    if not suffix:
        return Literal(lexical, XSD_STRING, "")
    if suffix[0] == "@":
        return Literal(lexical, LANG_STRING, suffix[1:])
    return Literal(lexical, suffix[3:-1], "")


def term(value: Any) -> Term:
    """Returns a term from a pyoxigraph or rdflib term, or from its N-Triples text.

    Raises:
        ArgumentError: The value is none of these, or the text is not an N-Triples term.
    """
    if isinstance(value, pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal):
        return Term(str(value))
    if isinstance(value, str) and hasattr(value, "n3"):
        return _from_rdflib(value)
    if not isinstance(value, str):
        raise ArgumentError(f"not an RDF term: {value!r}", hint=f"{_TERM_HINT}; the terms of rdflib and pyoxigraph do")
    return _from_text(value)


_TERM_HINT = "`squall.rdf.iri` and `squall.rdf.literal` make terms"


def _from_text(text: str) -> Term:
    line = f"<urn:s> <urn:p> {text} ."
    try:
        (quad,) = pyoxigraph.parse(line.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(f"not an N-Triples term: {text}", hint=_TERM_HINT) from error
    return Term(str(quad.object))


def _from_rdflib(value: Any) -> Term:
    kind = type(value).__name__
    if kind == "BNode":
        return blank(str(value))
    if kind == "Literal":
        return literal(str(value), str(value.datatype) if value.datatype else None, value.language)
    if kind == "URIRef":
        return iri(str(value))
    raise ArgumentError(f"not an RDF term: {value!r}", hint=_TERM_HINT)


def triple(subject: Any, predicate: Any, object: Any) -> Triple:
    """Returns a triple of anything that `term` accepts. Raises ArgumentError."""
    return Triple(term(subject), term(predicate), term(object))


_RDFLIB_DEFAULT = iri("urn:x-rdflib:default")
"""The name that rdflib gives the default graph of a data set."""


def events(facts: Iterable[Any], time: int = ALWAYS, stream: str = "") -> Iterable[Event]:
    """Yields one event per fact, all at one time.

    Args:
        facts: Facts, `Quad` objects, or triples and quads of anything that `term` accepts: also a graph or a dataset of
            rdflib, and a store of pyoxigraph. The graph of a quad is that of its event.
        time: Their time (integer ms). By default they always hold.
        stream: The IRI of their stream, without angle brackets.

    Raises:
        ArgumentError: A fact is none of these, or the time is no integer.
    """
    if type(time) is not int:
        raise ArgumentError(f"the time `{time!r}` is not an integer", hint=time_hint(time))
    if isinstance(facts, str) or not isinstance(facts, Iterable):
        raise ArgumentError(f"`{facts!r}` has no facts", hint="give triples, or a graph of rdflib or pyoxigraph")
    return _events(facts, time, stream)


def _events(facts: Iterable[Any], time: int, stream: str) -> Iterator[Event]:
    for fact in facts:
        if isinstance(fact, Triple | Atom):
            yield Event(time, (fact,), stream)
            continue
        if isinstance(fact, str) or not isinstance(fact, Iterable) or len(members := tuple(fact)) not in (3, 4):
            hint = "a fact is a triple, or a quad, of terms"
            raise ArgumentError(f"`{fact!r}` is not a fact", hint=hint)
        yield Event(time, (triple(*members[:3]),), stream, (), "".join(map(_graph_name, members[3:])))


def _graph_name(graph: Any) -> str:
    """Returns the name of a graph, which may be a graph of rdflib; ``""`` for a default graph."""
    graph = getattr(graph, "identifier", graph)
    if graph in (None, "") or isinstance(graph, pyoxigraph.DefaultGraph):
        return ""
    name = term(graph)
    return "" if name == _RDFLIB_DEFAULT else name


def time_hint(time: Any) -> str:
    """Returns a hint how to write the time of an event, for a value that is none."""
    if isinstance(time, datetime):
        return "times are milliseconds since 1970: `int(moment.timestamp() * 1000)`"
    if isinstance(time, float):
        return f"times are whole milliseconds: `{time:.0f}`"
    return "times are integer milliseconds since 1970"


def to_rdflib(text: Term) -> rdflib.term.Identifier:
    """Returns the rdflib term of a term, with its lexical form untouched (``normalize=False``)."""
    import rdflib

    if not text:
        raise ArgumentError(f"not an RDF term: {text!r}", hint="ask whether a variable is bound first")
    if is_iri(text):
        return rdflib.URIRef(iri_text(text))
    if is_blank(text):
        return rdflib.BNode(text[2:])
    lexical, datatype, language = parts(text)
    if language:
        return rdflib.Literal(lexical, lang=language)
    return rdflib.Literal(lexical, datatype=None if datatype == XSD_STRING else datatype, normalize=False)
