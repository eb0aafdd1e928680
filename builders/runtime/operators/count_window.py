"""The content of a count window: the last triples of a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, cast

from squall.builders.runtime.operators.valid_facts import terms_of
from squall.builders.runtime.zset import Delta, Row, fact_row, row_fact
from squall.model.windows import CountWindow
from squall.rdf import FOREVER, Fact, Term


class _WindowFact(NamedTuple):
    """A fact in a count window.

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
        deltas_of: Returns the deltas that patterns read of a fact, given its arrival time, named graph, interval and
            weight.
    """

    def __init__(
        self, window: CountWindow, deltas_of: Callable[[Fact, int, str, tuple[int, int], int], Iterator[Delta]]
    ) -> None:
        self.window = window
        self.deltas_of = deltas_of
        self.facts: deque[_WindowFact] = deque()
        """The content, oldest first."""
        self.new_starts: deque[int] = deque()
        """The start of each of the newest facts, whose deltas were not emitted yet because their end may be known
        soon."""
        self.pending: list[_WindowFact] = []
        """The facts that came since the content changed."""
        self.fact_count = 0
        """How many facts came in all."""

    def add(self, fact: Fact, time: int, graph: str = "") -> Iterator[Delta]:
        """Adds a fact and yields the deltas of the facts that leave the window."""
        self.fact_count += 1
        self.pending.append(_WindowFact(fact, time, graph, True))
        if len(self.pending) < self.window.step:
            return
        new, self.pending = self.pending[-self.window.size :], []
        while len(self.facts) > self.window.size - len(new):
            oldest = self.facts.popleft()
            since = self.new_starts.popleft() if len(self.new_starts) > len(self.facts) else None
            yield from self._end(oldest, since, time)
        self.facts += new
        self.new_starts += [time] * len(new)

    def drain_new(self) -> Iterator[Delta]:
        """Yields the deltas of the facts that entered the window since the last call and are still in it."""
        since, self.new_starts = self.new_starts, deque()
        last = list(islice(reversed(self.facts), len(since)))
        for triple, start in zip(reversed(last), since, strict=True):
            if triple.is_valid:
                yield from self.deltas_of(triple.fact, triple.arrival, triple.graph, (start, FOREVER), 1)

    def with_terms(self, terms: Collection[Term], valid: tuple[int, int], weight: int) -> Iterator[Delta]:
        """Yields the deltas of what is valid of the facts with some of the terms. All deltas have been drained."""
        for fact, arrival, graph, is_valid in self.facts:
            if is_valid and any(term in terms for term in terms_of(fact)):
                yield from self.deltas_of(fact, arrival, graph, valid, weight)

    def _end(self, triple: _WindowFact, since: int | None, time: int) -> Iterator[Delta]:
        """Yields the deltas of a fact that leaves the window. since: its start, if its deltas were not emitted yet."""
        if triple.is_valid and since is None:
            yield from self.deltas_of(triple.fact, triple.arrival, triple.graph, (time, FOREVER), -1)
        elif triple.is_valid and since is not None and since < time:
            yield from self.deltas_of(triple.fact, triple.arrival, triple.graph, (since, time), 1)

    def remove(self, fact: Fact, time: int, is_meant: Callable[[str, int], bool]) -> Iterator[Delta]:
        """Ends the arrivals of a fact that `is_meant` accepts by graph and time of arrival. They still count for the
        window's size."""

        def ends(triple: _WindowFact) -> bool:
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
            _WindowFact(cast(Fact, row_fact(fact)), int(arrival), graph, bool(is_valid))
            for _, arrival, graph, is_valid, *fact in cells
        ]
        self.fact_count = int(cells[-1][0]) + 1 if cells else 0
        content = len(triples) - self.fact_count % self.window.step
        self.facts, self.pending = deque(triples[:content]), triples[content:]

    def size(self) -> int:
        return len(self.facts) + len(self.pending)
