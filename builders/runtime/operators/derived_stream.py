"""Derived streams: the program emits facts to a stream and reads them at once through a window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import cast

from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.output import OutputOperator
from squall.builders.runtime.operators.scan import ScanOperator
from squall.builders.runtime.operators.state import SlotChanges
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row, row_fact
from squall.contracts import Output
from squall.model.sources import time_term
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Quad, Triple

_READER_SLOT = 2
"""The first slot of the reader's state, behind the slots of the output's state."""


class DerivedStreamOperator(EventTimeOperator):
    """A derived stream that is read through a window: relation to stream to relation.

    The facts of an instant come in the order of their text, graph by graph, whatever rule derived them.

    Args:
        op: The node of the plan.
        deletes: Whether updates may delete facts of the stream.
        tuning: The tuning values of the runtime.
    """

    kind = "derived-stream"

    def __init__(self, op: ops.DerivedStream, deletes: bool = False, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        follows = op.source.follows_links
        self.stream = op.source.stream
        self.emitter = OutputOperator(ops.Sink(op.output, True, op.report, op.sources))
        self.reader = ScanOperator(
            op.source,
            (),
            reads_all_triples=True,
            reads_atoms=True,
            tracks_facts=deletes or follows,
            deletes_static=deletes or follows,
            is_derived=True,
            tuning=tuning,
        )
        self.events: list[Event] = []
        """The events of the stream that the last `advance` emitted."""
        self.last_time = ALWAYS
        """The latest time at which the validity of a fact begins or ends (integer ms)."""
        self.instants: Sequence[int] | None = None
        """The coming evaluation instants of an rstream (integer ms), if the engine supplies them."""

    @property
    def next_time(self) -> int:
        next_output = (
            self.emitter.next_time
            if self.instants is None
            else min(self.emitter.changes.next_time, *self.instants[:1], FOREVER)
        )
        return min(next_output, self.reader.followed.next_time)

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        return self.emitter.apply(port, deltas)

    def advance(self, now: int) -> list[Delta]:
        self.events = []
        instants, self.instants = self.instants, None if self.instants is None else ()
        for time, outputs in groupby(self.emitter.flush(now, instants), key=_time):
            events = sorted({_graph_and_fact(output) for output in outputs})
            for graph, placed in groupby(events, key=_graph):
                self.events.append(Event(time, tuple(fact for _, fact in placed), self.stream, graph=graph))
        facts = self.reader.read(self.events)
        deltas = facts.triples + facts.atoms + list(self.reader.followed.advance(now))
        self.last_time = max([self.last_time, *(time for delta in deltas for time in delta[-3:-1] if time != FOREVER)])
        return deltas

    def remove(self, fact: Fact, time: int, stream: str | None) -> list[Delta]:
        """Ends what was emitted of a fact before this time (integer ms), as `ScanOperator.remove` does."""
        return self.reader.remove(fact, time, stream)

    def enable_changelog(self) -> None:
        self.emitter.enable_changelog()
        self.reader.enable_changelog()

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from self.emitter.drain_changelog()
        yield from ((_READER_SLOT + slot, deltas) for slot, deltas in self.reader.drain_changelog())

    def resume_at(self, watermark: int) -> None:
        self.emitter.resume_at(watermark)

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot < _READER_SLOT:
            self.emitter.restore(slot, deltas)
        else:
            self.reader.restore(slot - _READER_SLOT, deltas)

    def expire(self, now: int) -> None:
        self.reader.expire(now)

    def size(self) -> int:
        return self.emitter.size() + self.reader.size()


class OccurrenceStreamOperator(DerivedStreamOperator):
    """A derived stream of snapshots whose atoms are read with their times (`squall.model.Occurrences`), over windows
    that hold what arrives at an instant.

    Most of its rows are valid at one instant, at which the snapshot is evaluated, since they begin then. They are read
    at once, without the emitter, which has the others.
    """

    def __init__(self, op: ops.DerivedStream, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(op, tuning=tuning)
        self.window = op.source.window
        self.moments: dict[int, dict[Row, None]] = {}
        """The rows that are valid at one instant only, by that instant (integer ms). Each is in a snapshot once."""

    @property
    def next_time(self) -> int:
        return min(super().next_time, min(self.moments, default=FOREVER))

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        moments, lasting = _by_length(deltas)
        self.emitter.note(0, moments)
        self._add_moments(moments)
        return self.emitter.apply(port, lasting) if lasting else []

    def _add_moments(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            self.moments.setdefault(delta[-3], {})[delta[:-4]] = None

    def advance(self, now: int) -> list[Delta]:
        deltas = super().advance(now)
        for time in sorted(time for time in self.moments if time <= now):
            rows = self.moments.pop(time)
            start, end = self.window.validity(time)
            moment = time_term(time)
            deltas += [(row[0], moment, *row[1:], "", start, end, 1) for row in rows]
            self.events.append(Event(time, tuple(sorted(cast(Fact, row_fact(row)) for row in rows)), self.stream))
            self.last_time = max(self.last_time, start if end == FOREVER else end)
        self.events.sort(key=attrgetter("time"))
        return deltas

    def resume_at(self, watermark: int) -> None:
        super().resume_at(watermark)
        self.moments = {time: rows for time, rows in self.moments.items() if time > watermark}

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == 0:
            moments, deltas = _by_length(deltas)
            self._add_moments(delta for delta in moments if delta[-3] > self.emitter.changes.watermark)
        super().restore(slot, deltas)

    def size(self) -> int:
        return super().size() + sum(map(len, self.moments.values()))


def _by_length(deltas: Iterable[Delta]) -> tuple[list[Delta], list[Delta]]:
    """Returns the deltas of rows that are valid at one instant, and the others."""
    moments: list[Delta] = []
    lasting: list[Delta] = []
    for delta in deltas:
        is_moment = delta[-2] - delta[-3] == 1
        (moments if is_moment else lasting).append(delta)
    return moments, lasting


def _graph_and_fact(output: Output) -> tuple[str, Fact]:
    """Returns the fact of an output, behind the name of its graph."""
    fact = output.fact
    if isinstance(fact, Quad):
        return fact.graph, Triple(fact.subject, fact.predicate, fact.object)
    return "", cast(Fact, fact)


def _graph(placed: tuple[str, Fact]) -> str:
    return placed[0]


def _time(output: Output) -> int:
    return output.time
