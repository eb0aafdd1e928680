"""Streams that the program makes: what is handed on of their facts is read at once, through a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import cast

from squall import operators as ops
from squall.builders.rows.counted import Counted
from squall.builders.rows.deliver import Deliver
from squall.builders.rows.entries import Entry, fact_row
from squall.builders.rows.memory import Kept, Whole
from squall.builders.rows.timeline import TimeDriven
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Quad, Triple
from squall.stages import Output
from squall.windows import Count

_CONTENT = 2
"""The slot of what is in a window of triples, behind those of what is told."""


class Feed(TimeDriven):
    """A stream that the program makes, read through a window: relation to stream to relation.

    Its facts of an instant come in the order of their text, those of one graph after the other, whatever made them.
    """

    def __init__(self, op: ops.Feed) -> None:
        super().__init__()
        self.source = op.source
        self.stream = op.source.stream
        self.told = Deliver(ops.Deliver(op.output, True, op.report, op.sources))
        window = op.source.window
        self.counted = Counted(window, self._entries) if isinstance(window, Count) else None
        self.content = Whole(self.counted) if self.counted is not None else None
        self.events: list[Event] = []
        """Those that the stream had when time went on last."""
        self.ends = ALWAYS
        """The latest time at which any of its facts begins to be valid or ends, if it does (integer ms)."""
        self.instants: Sequence[int] | None = None
        """The evaluation instants that are to come (integer ms), if others say at which it is told whole."""

    @property
    def due(self) -> int:
        return self.told.due if self.instants is None else min(self.told.changes.due, *self.instants[:1], FOREVER)

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        return self.told.apply(port, entries)

    def advance(self, now: int) -> list[Entry]:
        self.events = []
        instants, self.instants = self.instants, None if self.instants is None else ()
        for time, outputs in groupby(self.told.flush(now, instants), key=_time):
            facts = sorted({_placed(output) for output in outputs})
            for graph, placed in groupby(facts, key=_graph):
                self.events.append(Event(time, tuple(fact for _, fact in placed), self.stream, graph=graph))
        found = [
            entry
            for event in self.events
            if self._reads(event)
            for fact in event.facts
            for entry in self._read(fact, event)
        ]
        self.ends = max([self.ends, *(time for entry in found for time in entry[-3:-1] if time != FOREVER)])
        return found

    def _reads(self, event: Event) -> bool:
        counts = self.counted is not None and not event.is_static
        return counts or self.source.reads(self.stream, event.graph)

    def _read(self, fact: Fact, event: Event) -> Iterator[Entry]:
        if self.counted is not None and not event.is_static:
            yield from self.counted.come(fact, event.time, event.graph)
            return
        window = self.source.window
        start, end = (ALWAYS, FOREVER) if event.is_static else window.validity(event.time)  # type: ignore[union-attr]
        if start < end:
            yield from self._entries(fact, event.time, event.graph, (start, end), 1)

    def _entries(self, fact: Fact, came: int, graph: str, valid: tuple[int, int], weight: int) -> Iterator[Entry]:
        is_read = self.counted is None or self.source.reads(self.stream, graph)
        for found in self.source.seen(fact, self.stream, came, graph, made=True) if is_read else ():
            yield (*fact_row(found), *valid, weight)

    def keep(self) -> None:
        self.told.keep()
        if self.content is not None:
            self.content.keep()

    def kept(self) -> Iterator[Kept]:
        yield from self.told.kept()
        if self.content is not None:
            yield from ((_CONTENT, entries) for _, entries in self.content.kept())

    def resume(self, passed: int) -> None:
        self.told.resume(passed)

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        if self.content is not None and slot == _CONTENT:
            self.content.restore(0, entries)
        else:
            self.told.restore(slot, entries)

    def size(self) -> int:
        return self.told.size() + (self.counted.size() if self.counted is not None else 0)


def _placed(output: Output) -> tuple[str, Fact]:
    """The fact that an output tells, behind the name of its graph."""
    fact = output.fact
    if isinstance(fact, Quad):
        return fact.graph, Triple(fact.subject, fact.predicate, fact.object)
    return "", cast(Fact, fact)


def _graph(placed: tuple[str, Fact]) -> str:
    return placed[0]


def _time(output: Output) -> int:
    return output.time
