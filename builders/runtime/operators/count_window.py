"""The last so many triples of a stream: what comes into a `CountWindow` window, and what leaves it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, cast

from squall.builders.runtime.zset import Delta, Row, fact_row, row_fact
from squall.model.windows import CountWindow
from squall.rdf import FOREVER, Fact


class _Counted(NamedTuple):
    """A fact, when it came and in which named graph, and whether it has not been removed."""

    fact: Fact
    came: int
    graph: str
    stays: bool


class Counted:
    """The facts of a stream through a `CountWindow` window. entries: what patterns read of a fact that came at a time, in a
    named graph or none, over an interval, so many times more or less."""

    def __init__(
        self, window: CountWindow, entries: Callable[[Fact, int, str, tuple[int, int], int], Iterator[Delta]]
    ) -> None:
        self.window = window
        self.entries = entries
        self.facts: deque[_Counted] = deque()
        """The content, oldest first."""
        self.fresh: deque[int] = deque()
        """Since when the last ones of it are there, of which no entries have been made yet: until when they are may be
        known by then."""
        self.waiting: list[_Counted] = []
        """What has come since the content changed."""
        self.came = 0
        """How many have come."""

    def come(self, fact: Fact, time: int, graph: str = "") -> Iterator[Delta]:
        """A fact has come: the entries of those that leave."""
        self.came += 1
        self.waiting.append(_Counted(fact, time, graph, True))
        if len(self.waiting) < self.window.step:
            return
        new, self.waiting = self.waiting[-self.window.size :], []
        while len(self.facts) > self.window.size - len(new):
            known = self.facts.popleft()
            since = self.fresh.popleft() if len(self.fresh) > len(self.facts) else None
            yield from self._ended(known, since, time)
        self.facts += new
        self.fresh += [time] * len(new)

    def stay(self) -> Iterator[Delta]:
        """The entries of all that has come into the content since this was asked last, and is there still."""
        since, self.fresh = self.fresh, deque()
        last = list(islice(reversed(self.facts), len(since)))
        for known, start in zip(reversed(last), since, strict=True):
            if known.stays:
                yield from self.entries(known.fact, known.came, known.graph, (start, FOREVER), 1)

    def _ended(self, known: _Counted, since: int | None, time: int) -> Iterator[Delta]:
        """A fact ends that is in the content. since: when that began, if no entries of it have been made."""
        if known.stays and since is None:
            yield from self.entries(known.fact, known.came, known.graph, (time, FOREVER), -1)
        elif known.stays and since is not None and since < time:
            yield from self.entries(known.fact, known.came, known.graph, (since, time), 1)

    def remove(self, fact: Fact, time: int, is_meant: Callable[[str], bool]) -> Iterator[Delta]:
        """What came of a fact before this time ends now, if its graph is meant; it goes on counting among the last so
        many."""

        def ends(known: _Counted) -> bool:
            return known.fact == fact and known.stays and known.came < time and is_meant(known.graph)

        told = len(self.facts) - len(self.fresh)
        for place, known in enumerate(self.facts):
            if ends(known):
                yield from self._ended(known, self.fresh[place - told] if place >= told else None, time)
                self.facts[place] = known._replace(stays=False)
        self.waiting = [known._replace(stays=known.stays and not ends(known)) for known in self.waiting]

    def rows(self) -> Iterator[Row]:
        """Content and what waits, numbered as it came (`squall.builders.runtime.operators.state.Listed`)."""
        known = [*self.facts, *self.waiting]
        for number, one in enumerate(known, self.came - len(known)):
            yield (str(number), str(one.came), one.graph, "stays" * one.stays, *fact_row(one.fact)[:-1])

    def take(self, rows: Sequence[Row]) -> None:
        """This is all there is."""
        cells = sorted(([cell or "" for cell in row] for row in rows), key=lambda row: int(row[0]))
        known = [
            _Counted(cast(Fact, row_fact(fact)), int(came), graph, bool(stays))
            for _, came, graph, stays, *fact in cells
        ]
        self.came = int(cells[-1][0]) + 1 if cells else 0
        content = len(known) - self.came % self.window.step
        self.facts, self.waiting = deque(known[:content]), known[content:]

    def size(self) -> int:
        return len(self.facts) + len(self.waiting)
