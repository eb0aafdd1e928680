"""The content of a count window: the last triples of a stream.

If the window is bounded by time as well (`squall.model.windows.BoundedCountWindow`), its content has what came within
its length. `CountWindowContent.dropped_count` counts what leaves it earlier, since too many triples have come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, cast

from squall.builders.runtime.operators.valid_facts import terms_of
from squall.builders.runtime.zset import Delta, Row, fact_row, row_fact
from squall.model.windows import CountWindow
from squall.rdf import FOREVER, Fact, Term

DeltasOf = Callable[[Fact, int, str, tuple[int, int], int], Iterator[Delta]]
"""Returns the deltas that patterns read of a fact, given its arrival time, named graph, interval and weight."""


class WindowFact(NamedTuple):
    """A fact in a window whose content depends on what comes later.

    Attributes:
        fact: The fact.
        arrival: The time of its event (integer ms).
        graph: Its named graph, or "".
        is_valid: Whether it was not removed.
    """

    fact: Fact
    arrival: int
    graph: str
    is_valid: bool


class CountWindowContent:
    """The facts of a stream through a `CountWindow`.

    Args:
        window: The window.
        deltas_of: Returns the deltas of a fact.
    """

    def __init__(self, window: CountWindow, deltas_of: DeltasOf) -> None:
        self.window = window
        self.deltas_of = deltas_of
        self.facts: deque[WindowFact] = deque()
        """The content, oldest first."""
        self.new_starts: deque[int] = deque()
        """The start of each of the newest facts, whose deltas were not emitted yet because their end may be known
        soon."""
        self.pending: list[WindowFact] = []
        """The facts that came since the content changed."""
        self.fact_count = 0
        """How many facts came in all."""
        self.dropped_count = 0
        """How many facts left the window because of its number before their time had passed, if it has a length."""

    def add(self, fact: Fact, time: int, graph: str = "") -> Iterator[Delta]:
        """Adds a fact and yields the deltas of the facts that leave the window."""
        self.fact_count += 1
        self.pending.append(WindowFact(fact, time, graph, True))
        if len(self.pending) < self.window.step:
            return
        new, self.pending = self.pending[-self.window.size :], []
        yield from self.advance(time)
        while len(self.facts) > self.window.size - len(new):
            self.dropped_count += self.facts[0].is_valid and self.window.latest_end(self.facts[0].arrival) < FOREVER
            yield from self._drop_oldest(time)
        self.facts += new
        self.new_starts += [time] * len(new)

    def advance(self, now: int) -> Iterator[Delta]:
        """Drops the facts whose time has passed (integer ms), and yields the deltas of those that came just now."""
        while self.facts and self.window.latest_end(self.facts[0].arrival) <= now:
            yield from self._drop_oldest(now)

    def _drop_oldest(self, time: int) -> Iterator[Delta]:
        since = self.new_starts.popleft() if len(self.new_starts) == len(self.facts) else None
        yield from self._end(self.facts.popleft(), since, time)

    def drain_new(self) -> Iterator[Delta]:
        """Yields the deltas of the facts that entered the window since the last call and are still in it."""
        since, self.new_starts = self.new_starts, deque()
        last = list(islice(reversed(self.facts), len(since)))
        for triple, start in zip(reversed(last), since, strict=True):
            if triple.is_valid:
                yield from self._valid(triple, start, self.window.latest_end(triple.arrival), 1)

    def with_terms(self, terms: Collection[Term], time: int, weight: int) -> Iterator[Delta]:
        """Yields the deltas, from a time on, of the facts with some of the terms. All deltas have been drained."""
        for triple in self.facts:
            if triple.is_valid and any(term in terms for term in terms_of(triple.fact)):
                yield from self._valid(triple, time, self.window.latest_end(triple.arrival), weight)

    def _valid(self, triple: WindowFact, start: int, end: int, weight: int) -> Iterator[Delta]:
        if start < end:
            yield from self.deltas_of(triple.fact, triple.arrival, triple.graph, (start, end), weight)

    def _end(self, triple: WindowFact, since: int | None, time: int) -> Iterator[Delta]:
        """Yields the deltas of a fact that leaves the window. since: its start, if its deltas were not emitted yet."""
        end = self.window.latest_end(triple.arrival)
        if triple.is_valid and since is None:
            yield from self._valid(triple, time, end, -1)
        elif triple.is_valid and since is not None:
            yield from self._valid(triple, since, min(time, end), 1)

    def remove(self, fact: Fact, time: int, is_meant: Callable[[str, int], bool]) -> Iterator[Delta]:
        """Ends the arrivals of a fact that `is_meant` accepts by graph and time of arrival. They still count for the
        window's size."""

        def ends(triple: WindowFact) -> bool:
            return triple.fact == fact and triple.is_valid and is_meant(triple.graph, triple.arrival)

        reported_count = len(self.facts) - len(self.new_starts)
        for place, triple in enumerate(self.facts):
            if ends(triple):
                yield from self._end(
                    triple, self.new_starts[place - reported_count] if place >= reported_count else None, time
                )
                self.facts[place] = triple._replace(is_valid=False)
        self.pending = [triple._replace(is_valid=triple.is_valid and not ends(triple)) for triple in self.pending]

    def rows(self) -> Iterator[Row]:
        """Yields content and pending facts, numbered by arrival
        (`squall.builders.runtime.operators.state.RowSerializable`)."""
        triples = [*self.facts, *self.pending]
        for number, triple in enumerate(triples, self.fact_count - len(triples)):
            yield (
                str(number),
                str(triple.arrival),
                triple.graph,
                "valid" * triple.is_valid,
                *fact_row(triple.fact)[:-1],
            )

    def load_rows(self, rows: Sequence[Row]) -> None:
        """Replaces the content by the rows."""
        cells = sorted(([cell or "" for cell in row] for row in rows), key=lambda row: int(row[0]))
        triples = [
            WindowFact(cast(Fact, row_fact(fact)), int(arrival), graph, bool(is_valid))
            for _, arrival, graph, is_valid, *fact in cells
        ]
        self.fact_count = int(cells[-1][0]) + 1 if cells else 0
        content = len(triples) - self.fact_count % self.window.step
        self.facts, self.pending = deque(triples[:content]), triples[content:]

    def size(self) -> int:
        return len(self.facts) + len(self.pending)
