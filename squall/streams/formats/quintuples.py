"""Quintuples: triples with the begin and the end of their validity, as the ontology of TrendMiner (TMO) has them.

A line of a document (``.nt5``) is a triple as in N-Triples, which always holds; or a triple with two literals behind
it, the begin and the end; or with the begin alone: nothing is known of an end. A line is read in one of two ways. As
data (`facts`) the times are arguments of an atom of `squall.rdf.TUPLE`. As validity (`IntervalReader`) the triple holds
over [begin, end), and the end is a removal by the stream.

Source: H.-U. Krieger and T. Declerck, TMO: the federated ontology of the TrendMiner project (LREC 2014).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from pyoxigraph import RdfFormat

from squall.contracts import Output
from squall.errors import SinkError
from squall.functions.values import compare, date_time
from squall.rdf import ALWAYS, FOREVER, TUPLE, Atom, Boolean, Evaluated, Event, Fact, Quad, Solution, Term, Triple
from squall.streams.formats import DIRECTIONS, TRIPLE_TERMS, Bad, parse_block, reason_of
from squall.streams.formats.rdf_patch import RecordMalformed
from squall.streams.formats.timestamps import moment

_IRI, _BLANK = r"<[^<>\s]*>", r"_:[^\s<>\"]+"
_LITERAL = r'"(?:[^"\\]|\\.)*+"(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*>)?'
_LINE = re.compile(
    rf"[ \t]*(?:(?P<triple>(?:{_IRI}|{_BLANK})[ \t]*{_IRI}[ \t]*(?:{_IRI}|{_BLANK}|{_LITERAL}))"
    rf"(?:[ \t]*(?P<begin>{_LITERAL})(?:[ \t]*(?P<end>{_LITERAL}))?)?[ \t]*\.)?[ \t]*(?:#.*)?\r?"
)
_MAX_TERMS = "a line is a triple, perhaps with the begin and the end of its validity"


class Quintuple(NamedTuple):
    """A triple, and the literals of its begin and its end; None: the line has none.

    Attributes:
        line: The index of its line in the block.
    """

    line: int
    triple: Triple
    begin: Term | None = None
    end: Term | None = None

    @property
    def text(self) -> str:
        """The line, without its end."""
        times = (term for term in (self.begin, self.end) if term is not None)
        return " ".join((*self.triple, *times, "."))


def quintuples(block: bytes, own: str) -> tuple[list[Quintuple], list[Bad]]:
    """Parses a block of complete lines. One with other times than `moment` has, or with an end before the begin, is
    malformed.

    Args:
        block: The lines.
        own: The `squall.streams.formats.suffix` of the document.
    """
    lines = block.decode("utf-8", "surrogateescape").split("\n")
    try:
        parsed = _parsed(list(enumerate(lines)), own)
        bad: list[Bad] = []
    except SyntaxError:
        parsed, bad = [], []
        for number, line in enumerate(lines):
            try:
                parsed += _parsed([(number, line)], own)
            except SyntaxError as error:
                bad.append((number, reason_of(error), line.encode("utf-8", "replace").decode().rstrip("\r")))
    usable: list[Quintuple] = []
    for quintuple in parsed:
        if reason := _time_error(quintuple):
            bad.append((quintuple.line, reason, quintuple.text))
        else:
            usable.append(quintuple)
    return usable, sorted(bad)


def facts(block: bytes, own: str) -> tuple[list[Fact], list[Bad]]:
    """Parses a block of complete lines to triples, and to atoms of `TUPLE` where they have times."""
    parsed, bad = quintuples(block, own)
    return [_fact(quintuple) for quintuple in parsed], bad


def _fact(quintuple: Quintuple) -> Fact:
    times = [term for term in (quintuple.begin, quintuple.end) if term is not None]
    return Atom(TUPLE, (*quintuple.triple, *times)) if times else quintuple.triple


def _parsed(lines: Sequence[tuple[int, str]], own: str) -> list[Quintuple]:
    """Returns the quintuples of numbered lines. Raises SyntaxError if one is malformed."""
    matches = [(number, match) for number, line in lines if (match := _match(line))["triple"]]
    rows: list[str] = []
    for _, match in matches:
        times = (match[name] for name in ("begin", "end") if match[name])
        rows += (f"{match['triple']} .", *(f"<urn:x> <urn:x> {time} ." for time in times))
    statements, bad = parse_block("\n".join(rows).encode("utf-8", "surrogateescape"), RdfFormat.N_TRIPLES, own)
    if bad:
        raise SyntaxError(bad[0][1])
    terms = iter(statements)
    return [
        Quintuple(
            number,
            Triple(*next(terms)[:3]),
            next(terms).object if match["begin"] else None,
            next(terms).object if match["end"] else None,
        )
        for number, match in matches
    ]


def _match(line: str) -> re.Match[str]:
    if (match := _LINE.fullmatch(line)) is None:
        raise SyntaxError(
            TRIPLE_TERMS if line.lstrip().startswith("<<") else DIRECTIONS if "--" in line else _MAX_TERMS
        )
    return match


def _time_error(quintuple: Quintuple) -> str:
    """Returns what is wrong with the times of a quintuple; ``""``: nothing."""
    begin, end = quintuple.begin, quintuple.end
    for term in (begin, end):
        if term is not None and moment(term) is None:
            return f"`{term}` is no time: an xsd:dateTime is one"
    if begin is None or end is None:
        return ""
    first, last = moment(begin), moment(end)
    assert first is not None
    assert last is not None
    is_reversed = compare(begin, end) == 1 or first > last
    return "its validity ends before it begins" if is_reversed else ""


class IntervalReader:
    """An incremental reader of quintuples whose triples hold over [begin, end), in the order of their begins.

    The intervals of one triple that touch or overlap are one. An end is a removal, which is output when a line begins
    later, or at the end of the document.

    Attributes:
        stream: The stream of the events.
        own: The `squall.streams.formats.suffix` of the document.
        lose: It is called for malformed lines.
    """

    def __init__(self, stream: str, own: str, lose: RecordMalformed) -> None:
        self.stream = stream
        self.own = own
        self.lose = lose
        self._latest = ALWAYS
        """The begin of the last line (integer ms)."""
        self._ends: dict[Triple, int] = {}
        """The end of each triple that holds (integer ms, or `FOREVER`)."""
        self._queue: list[tuple[int, Triple]] = []
        """The ends to come. One that is not that of `_ends` has been replaced by a later one."""

    def read(self, first: int, block: bytes) -> list[Event]:
        """Reads complete lines, and returns the events that they complete. `first` is the number of the first line."""
        parsed, bad = quintuples(block, self.own)
        events: list[Event] = []
        for quintuple in parsed:
            begin = ALWAYS if quintuple.begin is None else moment(quintuple.begin)
            end = FOREVER if quintuple.end is None else moment(quintuple.end)
            assert begin is not None
            assert end is not None
            if begin < self._latest:
                reason = "it begins before the line in front of it: sort the lines by their begins"
                if begin == ALWAYS:
                    reason = "it always holds: such triples come first, or are static data"
                bad.append((quintuple.line, reason, quintuple.text))
            elif begin == end:
                bad.append((quintuple.line, "its validity ends when it begins, so that it never holds", quintuple.text))
            else:
                events += self._begin(quintuple.triple, begin, end)
        for index, reason, text in sorted(bad):
            self.lose(first + index, reason, text)
        return events

    def end(self) -> list[Event]:
        """Returns the ends that have not been output."""
        return self._due(FOREVER)

    def _begin(self, triple: Triple, begin: int, end: int) -> list[Event]:
        """Returns the events of a triple that holds over [begin, end), and those of the ends before it."""
        events = self._due(begin)
        self._latest = begin
        last = self._ends.get(triple)
        if last is None:
            events.append(Event(begin, (triple,), self.stream))
        if last is None or last < end:
            self._ends[triple] = end
            if end < FOREVER:
                heappush(self._queue, (end, triple))
        return events

    def _due(self, time: int) -> list[Event]:
        """Removes and returns the ends before a time. A triple that ends then may begin again at that time."""
        events: list[Event] = []
        while self._queue and self._queue[0][0] < time:
            end, triple = heappop(self._queue)
            if self._ends.get(triple) == end:
                del self._ends[triple]
                events.append(Event(end, (), self.stream, (triple,)))
        return events


class QuintupleEncoder:
    """An encoder that writes a line for each maximal interval of a triple, when it ends or at the end of the run.

    Outputs say whether they begin or end to hold (``changes``). An atom of `TUPLE`, which has its times itself, is a
    line when it begins to hold.
    """

    def __init__(self) -> None:
        self._begins: dict[Triple, int] = {}

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        self._begins = {}

    def write(self, output: Output) -> bytes:
        match output.fact:
            case Evaluated():
                return b""
            case Triple() as triple:
                return self._change(triple, output)
            case Atom(relation=relation, arguments=arguments) if relation == TUPLE and _are_tuple(arguments):
                if output.change:
                    hint = "write them without `--output changes`"
                    problem = "a tuple has the times of its validity itself: it does not end by a change"
                    raise SinkError(problem, hint=hint)
                return f"{' '.join(arguments)} .\n".encode()
            case Atom():
                problem = f"`{output.fact}` is no triple with the begin and the end of its validity"
                raise SinkError(problem, hint="the format `ndjson` holds all atoms")
            case Quad():
                raise SinkError("a triple in a named graph is no triple", hint="write a log of quads: `rdfp`")
            case Solution() | Boolean():
                raise SinkError("the solutions of a query are no triples", hint="the format `ndjson` holds them")

    def end(self) -> bytes:
        lines = [_line(triple, begin) for triple, begin in self._begins.items()]
        self._begins = {}
        return b"".join(lines)

    def snapshot(self) -> Any:
        return [[begin, *triple] for triple, begin in self._begins.items()]

    def restore(self, state: Any) -> None:
        self._begins = {Triple(*map(Term, terms)): begin for begin, *terms in state}

    def _change(self, triple: Triple, output: Output) -> bytes:
        if not output.change:
            raise SinkError("the format `nt5` has the ends of what holds", hint="output them: `--output changes`")
        if output.change == "insert":
            if triple in self._begins:
                raise SinkError(f"`{triple}` holds in two answers", hint="write each to a sink of its own")
            self._begins[triple] = output.time
            return b""
        if triple not in self._begins:
            raise SinkError(f"`{triple}` ends at {output.time}, and has not begun", hint="write a log: `rdfp`")
        return _line(triple, self._begins.pop(triple), output.time)


def _are_tuple(arguments: Sequence[Term]) -> bool:
    """Returns whether terms are a triple with a begin, and perhaps an end."""
    return len(arguments) in (4, 5) and all(moment(term) is not None for term in arguments[3:])


def _line(triple: Triple, begin: int, end: int | None = None) -> bytes:
    """Returns the line of a triple that holds over [begin, end); None: nothing is known of an end."""
    if begin == ALWAYS and end is not None:
        hint = "write a log, which has the time of each change: `rdfp` or `ru`"
        raise SinkError(f"`{triple}` ends at {end}, and has no begin that a quintuple could have", hint=hint)
    times = [date_time(time) for time in (begin, end) if time not in (None, ALWAYS)]
    return f"{' '.join((*triple, *times))} .\n".encode()
