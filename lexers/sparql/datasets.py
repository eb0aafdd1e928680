"""Construction of registrations and datasets from lark's trees: graphs, streams, windows, and durations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from lark import Token, Tree

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.lexers.sparql.expressions import Expressions, first, has, is_iri, trees, word
from squall.lexers.text import Text
from squall.model.windows import SESSION_KEYS, FirstTriple, session_key

_DAY = 86_400_000
_UNITS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": _DAY,
    "w": 7 * _DAY,
    "month": 30 * _DAY,
    "y": 365 * _DAY,
}
"""The units in ms. Months and years are those of SPARQLStream, as its engine has them (morph-streams, `TimeUnit`)."""
_ISO = re.compile(
    r"P(?=[0-9T])(?:([0-9]+)W)?(?:([0-9]+)D)?(?:T(?=[0-9.])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?",
    re.IGNORECASE,
)
MAX_DIGITS = 18
"""The number of digits that an amount of time in ms, or a count, may have, so that it fits into 64 bits."""
_ISO_UNITS = (7 * _DAY, _DAY, 3_600_000, 60_000, 1000)


class Datasets(Expressions):
    """Reads the clauses in front of a pattern.

    Attributes:
        bare_lengths: The lengths of time without a unit that were read so far (RSP-QL), in ms, and where they stand.
    """

    def __init__(self, text: Text, base: str, prefixes: Mapping[str, str]) -> None:
        super().__init__(text, base, prefixes)
        self.bare_lengths: list[tuple[int, Origin]] = []

    # Registration and data sets

    def _registration(self, tree: Tree[Token]) -> q.Registration:
        kind, name_token = tree.children[:2]
        every = first(tree, "every")
        name = str(name_token) if isinstance(name_token, Token) and name_token.type == "NAME" else self.iri(name_token)
        period = None if every is None else self._duration(trees(every)[0])
        return q.Registration(str(kind).upper(), name, period, self.origin(tree))

    def _registered(self, registration: q.Registration | None, query: Tree[Token]) -> q.Registration | None:
        """Returns the registration with the kind that ``SELECT ISTREAM`` or ``CONSTRUCT ISTREAM`` names.

        A query without a registration gets one without a name.
        """
        kind = word(query, "ISTREAM", "DSTREAM", "RSTREAM", "CHANGES")
        if kind is None:
            return registration
        if registration is None:
            return q.Registration(kind, "", origin=self.origin(query))
        return q.Registration(kind, registration.name, registration.period, registration.origin)

    def _streaming(self, tree: Tree[Token]) -> q.Streaming:
        """Returns what a program of Strider says of all streams."""
        range: q.Range
        if (session := first(tree, "session_range")) is not None:
            range = self._range(session)
        else:
            size, step = (self._duration(trees(part)[0]) for part in trees(tree, "window_length", "window_slide"))
            self._check_sizes(tree, (size, step))
            range = q.TimeRange(size, step)
        assert isinstance(range, q.TimeRange | q.SessionRange)
        interval = first(tree, "batch")
        length = None if interval is None else self._duration(trees(interval)[0])
        if interval is not None and not length:
            self.text.fail("this batch is empty", self.origin(interval), "its length has to be more than 0")
        return q.Streaming(q.FromStreams(range, self.origin(tree)), length)

    def _dataset(self, tree: Tree[Token]) -> tuple[q.DatasetClause, ...]:
        return tuple(map(self._clause, trees(tree, "from_graph", "from_stream", "from_events", "from_window")))

    def _clause(self, tree: Tree[Token]) -> q.DatasetClause:
        origin = self.origin(tree)
        ranges = [self._range(part) for part in trees(tree) if part.data != "all_range"]
        terms = [self.iri(part) for part in tree.children if isinstance(part, Token) and is_iri(part)]
        match tree.data:
            case "from_stream" | "from_events":
                return q.FromStream(terms[0], ranges[0] if ranges else None, has(tree, "NAMED"), origin)
            case "from_window":
                return q.FromWindow(terms[0], terms[1], ranges[0], origin)
            case _:
                return self._graph_clause(tree)

    def _graph_clause(self, tree: Tree[Token]) -> q.From | q.FromNamed:
        graph = self.iri(tree.children[-1])
        return q.FromNamed(graph, self.origin(tree)) if has(tree, "NAMED") else q.From(graph, self.origin(tree))

    def _range(self, tree: Tree[Token]) -> q.Range:
        lengths = [self._duration(part) for part in trees(tree, "duration")]
        counts = [self._integer(part) for part in tree.children if isinstance(part, Token) and part.type == "INTEGER"]
        match tree.data:
            case "now_range":
                return q.TimeRange(1)
            case "session_range":
                self._check_sizes(tree, lengths)
                return q.SessionRange(lengths[0], session_key(word(tree, *SESSION_KEYS)), has(tree, "ON_CHANGE"))
            case "count_range":
                self._check_sizes(tree, [*lengths, *counts])
                step = counts[0] if has(tree, "TUMBLING") else _second(counts)
                return q.CountRange(counts[0], step, length=next(iter(lengths), None))
            case "past_range":
                return self._past_range(tree, lengths)
            case _:
                self._check_sizes(tree, lengths)
                step = lengths[0] if has(tree, "TUMBLING") else _second(lengths)
                return q.TimeRange(lengths[0], step, self._grid_origin(tree))

    def _past_range(self, tree: Tree[Token], lengths: Sequence[int]) -> q.PastRange:
        """Returns a window in the past. lengths: when it begins, and its step if it has one (integer ms)."""
        begin, *steps = lengths
        ends = [self._duration(part) for duration in trees(tree, "until") for part in trees(duration)]
        end = ends[0] if ends else 0
        if begin <= end:
            hint = "write `[FROM NOW-PT2H TO NOW-PT1H STEP PT1H]`"
            self.text.fail("this window ends before it begins", self.origin(tree), hint)
        self._check_sizes(tree, steps)
        return q.PastRange(begin, end, steps[0] if steps else None, self._grid_origin(tree))

    def _grid_origin(self, tree: Tree[Token]) -> int | FirstTriple:
        """Returns where the grid of a window begins: by default at 0."""
        begin = first(tree, "begin")
        if begin is None:
            return 0
        return FirstTriple() if has(begin, "FIRST") else self._duration(trees(begin)[0])

    def stream_range(self, tree: Tree[Token]) -> q.TimeRange | q.CountRange | q.SessionRange | None:
        """Returns the window of a stream inside of a pattern (CQELS-QL). ``NOW`` is a window of 1 ms."""
        if tree.data == "all_range":
            return None
        time_range = q.TimeRange(1) if tree.data == "now_range" else self._range(tree)
        assert not isinstance(time_range, q.PastRange)  # the grammar has none here
        return time_range

    def _check_sizes(self, tree: Tree[Token], sizes: Sequence[int]) -> None:
        if any(size <= 0 for size in sizes):
            hint = "its size and step have to be more than 0"
            self.text.fail("this window is empty", self.origin(tree), hint)

    def _duration(self, tree: Tree[Token]) -> int:
        """Returns a duration in integer ms. A number without a unit is in ms."""
        amounts, units = tree.children[::2], tree.children[1::2]
        if units:
            length = sum(self._integer(count) * _unit(str(unit)) for count, unit in zip(amounts, units, strict=True))
            if length >= 10**MAX_DIGITS:
                self.text.fail("this length of time is too large", self.origin(tree))
            return length
        amount = str(amounts[0])
        if amount.isdecimal():
            length = self._integer(amounts[0])
            self.bare_lengths.append((length, self.origin(tree)))
            return length
        match = _ISO.fullmatch(amount)
        exact = sum(Decimal(part or 0) * unit for part, unit in zip(match.groups(), _ISO_UNITS)) if match else None  # noqa: B905
        if exact is None or exact >= 10**MAX_DIGITS or exact != int(exact):
            hint = "write days, hours, minutes and seconds, down to ms: PT10S, PT0.5S, P1DT12H"
            self.text.fail(f"`{amount[:40]}` is not a length of time", self.origin(tree), hint)
            return 1
        return int(exact)

    def _integer(self, digits: Any) -> int:
        """Returns an amount of time, or a count; 1 after an error if it is too large."""
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        self.text.fail(f"this number has more than {MAX_DIGITS} digits", self.origin(digits))
        return 1


def _unit(word: str) -> int:
    """Returns a unit of time in ms: ``ms``, or any word that begins as another unit does (SPARQLStream)."""
    singular = word.lower().removesuffix("s") if len(word) > 2 else word.lower()
    return _UNITS.get(singular) or _UNITS[singular[0]]


def _second(numbers: Sequence[int]) -> int | None:
    return numbers[1] if len(numbers) > 1 else None
