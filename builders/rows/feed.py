"""Streams that the program makes: what is handed on of their facts is read at once, through a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import cast

from squall import operators as ops
from squall.builders.rows.deliver import Deliver
from squall.builders.rows.entries import Entry, fact_row
from squall.builders.rows.read import Counted
from squall.builders.rows.timeline import TimeDriven
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Quad, Triple
from squall.stages import Output
from squall.windows import Count


class Feed(TimeDriven):
    """A stream that the program makes, read through a window: relation to stream to relation.

    Its facts of an instant come in the order of their text, whatever made them. A quad is read as its triple.
    """

    def __init__(self, op: ops.Feed) -> None:
        super().__init__()
        self.source = op.source
        self.told = Deliver(ops.Deliver(op.output, True, op.report, op.sources))
        window = op.source.window
        self.counted = Counted(window, self._entries) if isinstance(window, Count) else None
        self.events: list[Event] = []
        """Those that the stream had when time went on last."""

    @property
    def due(self) -> int:
        return self.told.due

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        return self.told.apply(port, entries)

    def advance(self, now: int) -> list[Entry]:
        self.events = []
        for time, outputs in groupby(self.told.flush(now), key=_time):
            facts = sorted({_triple(output) for output in outputs})
            self.events.append(Event(time, tuple(facts), self.source.iri))
        return [entry for event in self.events for fact in event.facts for entry in self._read(fact, event.time)]

    def _read(self, fact: Fact, time: int) -> Iterator[Entry]:
        if self.counted is not None and time != ALWAYS:
            yield from self.counted.come(fact, time)
            return
        start, end = (ALWAYS, FOREVER) if time == ALWAYS else self.source.window.validity(time)  # type: ignore[union-attr]
        if start < end:
            yield from self._entries(fact, time, (start, end), 1)

    def _entries(self, fact: Fact, came: int, valid: tuple[int, int], weight: int) -> Iterator[Entry]:
        found = self.source.seen(fact, self.source.iri, came)
        if found is not None:
            yield (*fact_row(found), *valid, weight)

    def size(self) -> int:
        return self.told.size() + (self.counted.size() if self.counted is not None else 0)


def _triple(output: Output) -> Fact:
    """The fact that an output tells; of a quad, its triple."""
    fact = output.fact
    return Triple(fact.subject, fact.predicate, fact.object) if isinstance(fact, Quad) else cast(Fact, fact)


def _time(output: Output) -> int:
    return output.time
