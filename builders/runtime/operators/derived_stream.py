"""Streams that the program makes: what is handed on of their facts is read at once, through a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import cast

from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.output import OutputOperator
from squall.builders.runtime.operators.scan import ScanOperator
from squall.builders.runtime.operators.state import SlotChanges
from squall.builders.runtime.zset import Delta
from squall.contracts import Output
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Quad, Triple

_READER_SLOT = 2
"""The first slot of what is remembered of what was read, behind those of what is told."""


class DerivedStreamOperator(EventTimeOperator):
    """A stream that the program makes, read through a window: relation to stream to relation.

    Its facts of an instant come in the order of their text, those of one graph after the other, whatever made them.
    deletes: whether updates may delete any.
    """

    def __init__(self, op: ops.DerivedStream, deletes: bool = False) -> None:
        super().__init__()
        self.stream = op.source.stream
        self.emitter = OutputOperator(ops.Sink(op.output, True, op.report, op.sources))
        self.reader = ScanOperator(
            op.source, (), every=True, atoms=True, remembers=deletes, updated=deletes, is_derived=True
        )
        self.events: list[Event] = []
        """Those that the stream had when time went on last."""
        self.last_time = ALWAYS
        """The latest time at which any of its facts begins to be valid or ends, if it does (integer ms)."""
        self.instants: Sequence[int] | None = None
        """The evaluation instants that are to come (integer ms), if others say at which it is told whole."""

    @property
    def next_time(self) -> int:
        return (
            self.emitter.next_time
            if self.instants is None
            else min(self.emitter.changes.next_time, *self.instants[:1], FOREVER)
        )

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        return self.emitter.apply(port, entries)

    def advance(self, now: int) -> list[Delta]:
        self.events = []
        instants, self.instants = self.instants, None if self.instants is None else ()
        for time, outputs in groupby(self.emitter.flush(now, instants), key=_time):
            events = sorted({_graph_and_fact(output) for output in outputs})
            for graph, placed in groupby(events, key=_graph):
                self.events.append(Event(time, tuple(fact for _, fact in placed), self.stream, graph=graph))
        facts = self.reader.read(self.events)
        deltas = facts.triples + facts.atoms
        self.last_time = max([self.last_time, *(time for entry in deltas for time in entry[-3:-1] if time != FOREVER)])
        return deltas

    def remove(self, fact: Fact, time: int, stream: str | None) -> list[Delta]:
        """What was told of a fact before this time (integer ms) ends now; as `ScanOperator.remove`."""
        return self.reader.remove(fact, time, stream)

    def enable_changelog(self) -> None:
        self.emitter.enable_changelog()
        self.reader.enable_changelog()

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from self.emitter.drain_changelog()
        yield from ((_READER_SLOT + slot, entries) for slot, entries in self.reader.drain_changelog())

    def resume_at(self, watermark: int) -> None:
        self.emitter.resume_at(watermark)

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        if slot < _READER_SLOT:
            self.emitter.restore(slot, entries)
        else:
            self.reader.restore(slot - _READER_SLOT, entries)

    def expire(self, now: int) -> None:
        self.reader.expire(now)

    def size(self) -> int:
        return self.emitter.size() + self.reader.size()


def _graph_and_fact(output: Output) -> tuple[str, Fact]:
    """The fact that an output tells, behind the name of its graph."""
    fact = output.fact
    if isinstance(fact, Quad):
        return fact.graph, Triple(fact.subject, fact.predicate, fact.object)
    return "", cast(Fact, fact)


def _graph(placed: tuple[str, Fact]) -> str:
    return placed[0]


def _time(output: Output) -> int:
    return output.time
