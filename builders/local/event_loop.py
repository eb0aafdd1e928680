"""The event loop of one process: events in, outputs out, and the state with which another process resumes.

Events are processed in batches as they come. Rows that no later event can retract are output at once. Negation, an
aggregate, a function of time, or an R2S operator other than Istream depends on all of an instant. There the events of
an instant are buffered until the watermark has passed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import cast

from squall.builders.local.updates import UpdateSteps
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.multiway_join import fuse_joins
from squall.builders.runtime.operators.output import AppendOnlyOutput, OutputOperator
from squall.builders.runtime.operators.state import DiffedState, Stateful
from squall.builders.runtime.profiled import ProfiledDataflow
from squall.builders.runtime.snapshot import SnapshotDataflow
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row, fact_row, row_fact
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import ALWAYS, DEFAULT_STREAM, FOREVER, Columns, Event, Fact

Outputs = list[Output]
"""The outputs of some instants, in the order of time."""
_TIME = attrgetter("time")
BUFFERED_EVENTS, PENDING_UPDATES = "/buffered", "/updates"
"""The keys of the state of buffered events, and of that of pending updates."""


class EventLoop:
    """Runs a plan. Call `start` or `restore`, then `take` for each batch of events, then `end`.

    Args:
        plan: The plan.
        options: The options of the job.
        bulk: The snapshot dataflow that is used while instants are large, if there is one.
    """

    def __init__(
        self, plan: Plan, options: Options, bulk: SnapshotDataflow | None = None, tuning: Tuning = DEFAULT_TUNING
    ) -> None:
        self.plan = plan
        self.options = options
        self.tuning = tuning
        self.bulk = bulk
        self.passes = self.facts = 0
        """The numbers of instants and facts that were evaluated as snapshots."""
        self.outputs = 0
        self.whole_instants = not self.bulk and self.machine.needs_complete_instants
        self.passed = ALWAYS - 1
        """The latest time that has been processed; earlier events are late."""
        self.held: list[Event] = []
        """The buffered events, whose instant may not be complete yet."""

    @cached_property
    def machine(self) -> Dataflow:
        """The incremental dataflow. It takes over the state of the snapshot dataflow, if there is one."""
        machine = (
            ProfiledDataflow(self.plan, tuning=self.tuning)
            if self.options.measure
            else Dataflow(self.plan, fused={} if self.bulk else fuse_joins(self.plan), tuning=self.tuning)
        )
        if self.bulk:
            for id, slot, entries in self.bulk.export_state():
                machine.stateful[id].restore(slot, entries)
            vars(self)["machine"] = machine  # other threads always see one of the two
            self.bulk = None
        return machine

    @cached_property
    def updating(self) -> UpdateSteps | None:
        """The update steps, or None if the plan has no updates."""
        return (
            UpdateSteps(self.machine, self.options.max_update_steps) if not self.bulk and self.machine.updates else None
        )

    @cached_property
    def delivers(self) -> Sequence[OutputOperator | AppendOnlyOutput]:
        """The operators of the sinks."""
        operators = (self.machine.operators[node.id] for node, _ in self.plan.sinks)
        return [op for op in operators if isinstance(op, OutputOperator | AppendOnlyOutput)]

    # Input

    def start(self, static: Sequence[Event], begin: int) -> Iterator[Outputs]:
        """Processes static data and axioms.

        Args:
            static: The events of static data.
            begin: The value of functions of time for what always holds (integer ms).
        """
        if self.bulk:
            self.bulk.start()
            yield self._instant(self.bulk, static, ALWAYS)
        else:
            self.machine.start(begin)
            self.machine.read(static)
            if self.updating:
                self.updating.settle()
            yield from self._advance(ALWAYS)

    def take(self, batch: Sequence[Event]) -> Iterator[Outputs]:
        """Processes a batch of events."""
        if isinstance(batch, Columns) and self._takes(batch):
            for columns in batch.parts(self.tuning.max_events_per_pass):
                self.machine.read(columns)
                yield from self._advance(columns.times[-1])
            return
        size = self.tuning.max_events_per_pass
        for first in range(0, len(batch), size):
            part = batch[first : first + size]
            yield from self._work(self._due(self._timely(part)))

    def end(self) -> Iterator[Outputs]:
        """Ends the input: every instant is complete."""
        buffered, self.held = self.held, []
        yield from self._work(buffered)
        if not self.bulk:
            yield from self._advance(FOREVER - 1)

    def drain(self) -> Iterator[Outputs]:
        """Completes every instant up to the last one at which the events so far change anything.

        Unlike after `end`, later events may still follow.
        """
        buffered, self.held = self.held, []
        yield from self._work(buffered)
        while (next_time := self.due) < FOREVER:
            yield from self._advance(next_time)

    @property
    def due(self) -> int:
        """The time of the next change if no event comes (integer ms), or FOREVER."""
        next_buffered = self.held[0].time if self.held else FOREVER
        return min(next_buffered, self.machine.next_time(), self.updating.due if self.updating else FOREVER)

    @property
    def earliest(self) -> int:
        """The time (integer ms) before which an event is late."""
        return self.held[-1].time if self.held else self.passed + self.whole_instants

    def _takes(self, columns: Columns) -> bool:
        """Returns whether columns can be read as they are: nothing is late, and all outputs follow at once."""
        if self.whole_instants or self.bulk or self.updating:
            return False
        return columns.times[0] >= self.passed

    def _timely(self, batch: Sequence[Event]) -> Sequence[Event]:
        """Returns the events that are not late. The others go to the dead-letter ledger."""
        earliest = self.earliest
        times = list(map(_TIME, batch))
        if times[:1] >= [earliest] and times == sorted(times):
            return batch
        timely: list[Event] = []
        for event in batch:
            if event.time < earliest:
                self._late(event)
            else:
                earliest = event.time
                timely.append(event)
        return timely

    def _late(self, event: Event) -> None:
        if self.options.ledger is None:
            raise BuilderError(
                f"an event at {event.time} comes after a later one",
                hint="give events in the order of time, or a `ledger` in the options to keep what is late",
            )
        for fact in (*event.facts, *event.removed):
            reason = f"its time {event.time} has passed"
            self.options.ledger.record("late", event.stream or DEFAULT_STREAM, None, reason, f"{event.time} {fact}")

    def _due(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns the events whose instant is complete, and buffers the others."""
        if not self.whole_instants:
            return events
        waiting = [*self.held, *events]
        last = waiting[-1].time if waiting else ALWAYS
        ready = [event for event in waiting if event.time < last]
        self.held = waiting[len(ready) :]
        return ready

    def _work(self, events: Sequence[Event]) -> Iterator[Outputs]:
        """Processes events, and advances time up to the buffered ones."""
        if self.held:
            self.machine.advance_time(self.held[-1].time)
        if self.bulk and self._in_bulk(events):
            for time, together in groupby(events, key=_TIME):
                yield self._instant(self.bulk, list(together), time)
        elif self.updating:
            yield from self._instant_by_instant(self.updating, events)
        elif events:
            self.machine.read(events)
            yield from self._advance(events[-1].time)
        if self.held and self.held[0].time - 1 > self.passed:
            yield from self._advance(self.held[0].time - 1)

    def _in_bulk(self, events: Sequence[Event]) -> bool:
        """Returns whether instants are large enough, on average, to be evaluated as snapshots."""
        self.passes += len({event.time for event in events if event.facts})
        self.facts += sum(len(event.facts) for event in events)
        tuning = self.tuning
        return self.facts >= tuning.min_facts_per_instant * (self.passes - tuning.max_small_instants)

    def _instant(self, bulk: SnapshotDataflow, events: Sequence[Event], time: int) -> Outputs:
        for event in events:
            bulk.read(event)
        bulk.run()
        self.passed = time
        outputs = bulk.flush(time)
        self.outputs += len(outputs)
        return outputs

    def _advance(self, now: int) -> Iterator[Outputs]:
        """Advances time to `now`. All events up to then have been read."""
        if self.updating:
            yield from self._step_by_step(self.updating, now)
        else:
            yield from self._pass(now)

    def _pass(self, now: int) -> Iterator[Outputs]:
        self.machine.run(now)
        self.passed = now
        outputs = self.delivers[0].flush(now)
        for other in self.delivers[1:]:
            outputs += other.flush(now)
        if len(self.delivers) > 1:
            outputs.sort(key=_TIME)
        self.outputs += len(outputs)
        self.machine.expire(now)
        if outputs:
            yield outputs

    # Updates: their effect at an instant is visible at the next one

    def _instant_by_instant(self, updating: UpdateSteps, events: Sequence[Event]) -> Iterator[Outputs]:
        place = 0
        while place < len(events):
            time = events[place].time
            yield from self._step_by_step(updating, time - 1)
            after = next((i for i in range(place, len(events)) if events[i].time > time), len(events))
            self.machine.read(events[place:after])
            updating.rest()
            yield from self._one_instant(updating, time)
            place = after

    def _step_by_step(self, updating: UpdateSteps, now: int) -> Iterator[Outputs]:
        """Advances time to `now`, with a stop wherever validity begins or ends."""
        while (next_time := min(self.machine.next_time(), updating.due)) <= now:
            yield from self._one_instant(updating, next_time)
        if now > self.passed:
            yield from self._one_instant(updating, now)

    def _one_instant(self, updating: UpdateSteps, time: int) -> Iterator[Outputs]:
        updating.apply(time)
        yield from self._pass(time)
        updating.collect(time)

    # State

    @cached_property
    def states(self) -> Mapping[str, Stateful]:
        """All state with which another process resumes, by key, except for the watermark."""
        memories = {**self.machine.states, BUFFERED_EVENTS: DiffedState(_BufferedEvents(self))}
        return memories | {PENDING_UPDATES: DiffedState(self.updating)} if self.updating else memories

    def enable_changelog(self) -> None:
        """Starts recording changes of state for `drain_changelog`. It requires that there is no snapshot dataflow."""
        for memory in self.states.values():
            memory.enable_changelog()

    def drain_changelog(self) -> Iterator[tuple[str, int, list[Delta]]]:
        """Yields key, slot and deltas of all changes of state since the last call.

        Call it between batches, when all outputs have been taken.
        """
        for id, memory in self.states.items():
            yield from ((id, slot, entries) for slot, entries in memory.drain_changelog())

    def restore(self, watermark: int, begin: int, state: Mapping[tuple[str, int], Sequence[Delta]]) -> None:
        """Restores the state of another process with this plan, instead of `start`.

        Args:
            watermark: The time that it had processed (integer ms).
            begin: The value of functions of time for what always holds (integer ms).
            state: The deltas of its state, by key and slot.
        """
        self.machine.begin(begin)
        for memory in self.states.values():
            memory.resume_at(watermark)
        for (id, slot), entries in sorted(state.items()):
            self.states[id].restore(slot, entries)
        self.passed = watermark


class _BufferedEvents:
    """The buffered events as rows of text (`squall.builders.runtime.operators.state.RowSerializable`)."""

    def __init__(self, running: EventLoop) -> None:
        self.running = running

    def rows(self) -> Iterator[Row]:
        """Yields a row for each event, and one for each of its facts."""
        for number, event in enumerate(self.running.held):
            parts: list[Row] = [("event",)]
            parts += (("fact", *fact_row(fact)[:-1]) for fact in event.facts)
            parts += (("removed", *fact_row(fact)[:-1]) for fact in event.removed)
            for place, part in enumerate(parts):
                yield (str(number), str(place), str(event.time), event.stream, event.graph, *part)

    def load_rows(self, rows: Sequence[Row]) -> None:
        """Replaces the buffered events by those of the rows."""
        cells = sorted(([cell or "" for cell in row] for row in rows), key=lambda row: (int(row[0]), int(row[1])))
        self.running.held = []
        for _, parts in groupby(cells, key=itemgetter(0)):
            (_, _, time, stream, graph, *_), *facts = parts
            facts_by_kind = {kind: tuple(_fact(row) for row in facts if row[5] == kind) for kind in ("fact", "removed")}
            self.running.held.append(Event(int(time), facts_by_kind["fact"], stream, facts_by_kind["removed"], graph))


def _fact(row: Sequence[str]) -> Fact:
    return cast(Fact, row_fact(row[6:]))
