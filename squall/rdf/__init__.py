"""RDF terms, triples, atoms and events: what flows through a program.

A *term* is its canonical N-Triples text: ``<http://example.org/a>``, ``_:b0``, ``"5"^^<http://...#int>``.
One representation serves from the lexer to Spark's workers: it hashes, compares, pickles and travels through
Arrow as it is, and two terms are the same RDF 1.1 term if and only if their texts are equal
(see docs/decisions/0002-terms-are-text.md).

Source: RDF 1.1 Concepts, sections 3.1 to 3.4; RDF 1.1 N-Triples, section 4 (canonical form).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, cast, overload

import pyoxigraph

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
"""The time since which static data and what follows from them alone hold: before every event (integer ms)."""
FOREVER = 2**63 - 1
"""The end of an interval that nothing closes (integer ms, exclusive)."""
DEFAULT_STREAM = "the default stream"
"""How messages name the stream whose IRI is empty."""


class Triple(NamedTuple):
    """A subject, a predicate and an object; a *fact*."""

    subject: Term
    predicate: Term
    object: Term

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} ."


class Atom(NamedTuple):
    """``relation(arguments)``, an n-ary *fact* (RIF-BLD 2.2, "atomic formulas"); it has no RDF serialisation."""

    relation: Term
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(self.arguments)}) ."


Fact = Triple | Atom


class Quad(NamedTuple):
    """A triple in a graph that has a name: what a template with ``GRAPH`` makes. Inside of a program it is an atom of
    the relation `QUAD`."""

    subject: Term
    predicate: Term
    object: Term
    graph: Term

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} {self.graph} ."


class Solution(NamedTuple):
    """A query's answer: the values of its variables, None where one is unbound."""

    names: tuple[str, ...]
    values: tuple[Term | None, ...]

    def __str__(self) -> str:
        return " ".join(f"?{name}={value or ''}" for name, value in zip(self.names, self.values, strict=True))


class Boolean(NamedTuple):
    """The answer of an ASK query. It is true and false itself, as its value is."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"

    def __bool__(self) -> bool:
        return self.value


class Evaluated(NamedTuple):
    """The evaluation of a query at an instant is complete: the outputs before this one of the same time and rule are
    all of it, and without any it is empty. names: those of the query's variables, none for facts and for ASK."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "evaluated"


class Event(NamedTuple):
    """Facts that arrive together.

    time: integer milliseconds since the epoch; `ALWAYS` for static data.
    stream: the IRI of the stream they arrive on; ``""`` is the default stream.
    removed: facts that this stream has brought before and that end now (an RDF Patch's ``D``). At one instant removals
    come first: what arrives at that time stays.
    graph: the name (a term's text) of the named graph that all of these are in; ``""``: the default graph.
    """

    time: int
    facts: tuple[Fact, ...]
    stream: str = ""
    removed: tuple[Fact, ...] = ()
    graph: str = ""

    @property
    def is_static(self) -> bool:
        """Whether it brings static data."""
        return self.time == ALWAYS


class Columns(Sequence[Event]):
    """Events that bring triples in the order of time, one for each time, as columns: what reads columns need not make
    events and triples of them.

    times (integer ms, each once), sizes: when triples come, and how many then, of which there may be none.
    subjects, predicates, objects: of the triples; stream: the IRI of their stream. None of it is looked at here: `of`
    makes columns of events, and says where that cannot be done.
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
        """Events of one stream as columns, those of one time as one event.

        Raises ValueError where there is none, or one is of another stream, not in the order of time, static, in a named
        graph, or takes facts out or brings others than triples, or nothing.
        """
        given = list(events)
        if not given:
            raise ValueError("there are no events to make columns of")
        sizes: dict[int, int] = {}
        latest = ALWAYS
        for event in given:
            if reason := _apart(event, given[0].stream, latest):
                raise ValueError(f"the event at {event.time} cannot be in columns: {reason}")
            latest = event.time
            sizes[latest] = sizes.get(latest, 0) + len(event.facts)
        facts = [fact for event in given for fact in event.facts]
        subjects, predicates, objects = ([cast(Term, fact[place]) for fact in facts] for place in range(3))
        return cls(list(sizes), list(sizes.values()), subjects, predicates, objects, given[0].stream)

    def parts(self, most: int) -> Iterator[Columns]:
        """The same, at most so many events at a time."""
        if len(self.times) <= most:
            yield self
            return
        starts = [0, *accumulate(self.sizes)]
        for first in range(0, len(self.times), most):
            last = min(first + most, len(self.times))
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
        """How many triples each event brings but for the first and the last one, which may have been cut, where all of
        those bring the same predicates in the same order, as those of a sensor do (a characteristic set: Neumann and
        Moerkotte 2011, section III); 0 where they do not."""
        inner = self.sizes[1:-1]
        if not inner or inner.count(inner[0]) < len(inner):
            return 0
        first, size = self.sizes[0], inner[0]
        predicates = self.predicates[first : first + size * len(inner)]
        return size if predicates[:size] * len(inner) == predicates else 0

    @cached_property
    def events(self) -> list[Event]:
        """The events themselves: those that bring something, and the last one."""
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
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        return self.events[place]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)


def _apart(event: Event, stream: str, latest: int) -> str | None:
    """Why an event cannot be in the columns of a stream; None: it can. latest: the time of the one before it."""
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
"""The stream of events that bring nothing, and say how far time has come."""


WORKING = "urn:x-squall:working"
"""The stream of what updates insert without naming a graph: a part of every default graph, whatever its windows."""

NOTES = "urn:x-squall:notes"
"""The stream of what rules note for themselves (`squall.model.jena_negation`). What updates put there is in no answer."""


def heartbeat(time: int) -> Event:
    """Time has reached `time` (integer ms): all that is earlier is there. No instant at which anything is evaluated."""
    return Event(time, (), HEARTBEAT)


def iri(value: str) -> Term:
    """The term of an IRI given without its angle brackets. Relative IRIs are taken as they are."""
    return Term(f"<{value}>")


QUAD = iri("urn:x-squall:quad")
"""The relation of quads inside of a program: its arguments are the graph, the subject, the predicate and the object."""


def blank(label: str) -> Term:
    """The blank node with this label (without ``_:``)."""
    return Term(f"_:{label}")


def literal(lexical: str, datatype: str | None = None, language: str | None = None) -> Term:
    """A literal by lexical form and datatype IRI or language tag; ``xsd:string`` if neither is given.

    The lexical form is kept as it is: ``literal("01", XSD + "integer")`` is not ``1``.
    """
    quoted = _ESCAPED.sub(_escape, lexical)
    if language is not None:
        return Term(f'"{quoted}"@{language.lower()}')
    if datatype is None or datatype == XSD_STRING:
        return Term(f'"{quoted}"')
    return Term(f'"{quoted}"^^<{datatype}>')


def is_iri(term: str) -> bool:
    return term[0] == "<"


def is_blank(term: str) -> bool:
    return term[0] == "_"


def is_literal(term: str) -> bool:
    return term[0] == '"'


def iri_text(term: str) -> str:
    """The IRI without its brackets."""
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


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}"


def _unescape(found: re.Match[str]) -> str:
    return _SHORT.get(found[3], found[3]) if found[3] else chr(int(found[1] or found[2], 16))


@lru_cache(maxsize=65536)
def parts(term: str) -> Literal:
    """The lexical form, datatype IRI and language tag of a literal's text."""
    close = term.rindex('"')
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
    """A term from a pyoxigraph or rdflib term, or from its N-Triples text.

    Raises ValueError where the text is no N-Triples term.
    """
    if isinstance(value, pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal):
        return Term(str(value))
    text = value.n3() if hasattr(value, "n3") else value
    if not isinstance(text, str):
        raise ValueError(f"not an RDF term: {value!r}")
    if hasattr(value, "n3"):
        return _from_rdflib(value)
    return _from_text(text)


def _from_text(text: str) -> Term:
    line = f"<urn:s> <urn:p> {text} ."
    try:
        (quad,) = pyoxigraph.parse(line, format=pyoxigraph.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"not an N-Triples term: {text}") from error
    return Term(str(quad.object))


def _from_rdflib(value: Any) -> Term:
    kind = type(value).__name__
    if kind == "URIRef":
        return iri(str(value))
    if kind == "BNode":
        return blank(str(value))
    return literal(str(value), str(value.datatype) if value.datatype else None, value.language)


def triple(subject: Any, predicate: Any, object: Any) -> Triple:
    """A triple of whatever `term` takes."""
    return Triple(term(subject), term(predicate), term(object))


def events(facts: Iterable[Any], time: int = ALWAYS, stream: str = "") -> Iterable[Event]:
    """One event per fact, all at one time: an rdflib graph, or triples of terms, as a source."""
    for fact in facts:
        yield Event(time, (fact if isinstance(fact, Triple | Atom) else triple(*fact),), stream)


def to_rdflib(text: Term) -> rdflib.term.Identifier:
    """The rdflib term of a term, lexical form untouched (``normalize=False``)."""
    import rdflib

    if is_iri(text):
        return rdflib.URIRef(iri_text(text))
    if is_blank(text):
        return rdflib.BNode(text[2:])
    lexical, datatype, language = parts(text)
    if language:
        return rdflib.Literal(lexical, lang=language)
    return rdflib.Literal(lexical, datatype=None if datatype == XSD_STRING else datatype, normalize=False)
