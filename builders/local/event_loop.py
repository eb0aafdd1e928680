"""The event loop of one process: events in, outputs out, and the state with which another process resumes.

Events are processed in batches as they come. Rows that no later event can retract are output at once. Negation, an
aggregate, a function of time, or an R2S operator other than Istream depends on all of an instant. There the events of
an instant are buffered until the watermark has passed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from squall.builders.local.event_buffer import EventBuffer
from squall.builders.local.updates import UpdateSteps
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.memory_limit import MemoryLimit
from squall.builders.runtime.multiway_join import with_multiway_joins
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.output import SinkOperator
from squall.builders.runtime.operators.state import DiffedState
from squall.builders.runtime.profiled import ProfiledDataflow
from squall.builders.runtime.replanning import CannotReplan, replanned
from squall.builders.runtime.schema_changes import SchemaGuard
from squall.builders.runtime.snapshot import SnapshotDataflow
from squall.builders.runtime.state import StateRegistry
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.window_recursion import MAX_INSTANTS_AFTER_INPUT, last_time_of_growth, may_go_on
from squall.builders.runtime.zset import Delta
from squall.contracts import Options, Output
from squall.plan import Plan
from squall.plan.seeds import FIXED_SEED, with_seed
from squall.rdf import ALWAYS, FOREVER, Columns, Event

MIN_EVENTS_TO_TRANSPOSE = 64
"""The events of a list from which on they are transposed, where sequence joins look their keys up in the columns."""
Outputs = list[Output]
"""The outputs of some instants, in the order of time."""
_TIME = attrgetter("time")
BUFFERED_EVENTS, PENDING_UPDATES = "/buffered", "/updates"
"""The keys of the state of buffered events, and of that of pending updates."""


def _parts(batch: Sequence[Event], size: int, transposes: bool) -> Iterator[Sequence[Event]]:
    """Yields a batch in parts of at most `size` events, as columns if they are to be transposed and can be."""
    for first in range(0, len(batch), size):
        part = batch[first : first + size]
        yield (Columns.transposed(part) if transposes else None) or part


class EventLoop:
    """Runs a plan. Call `start` or `restore`, then `process` for each batch of events, then `end`.

    Args:
        plan: The plan.
        options: The options of the job.
        snapshot_dataflow: The snapshot dataflow that is used while instants are large, if there is one.
        seed: The seed of the plan (`squall.plan.seeds`).
    """

    def __init__(
        self,
        plan: Plan,
        options: Options,
        snapshot_dataflow: SnapshotDataflow | None = None,
        tuning: Tuning = DEFAULT_TUNING,
        seed: int = FIXED_SEED,
    ) -> None:
        self.plan = plan
        self.seed = seed
        self.options = options
        self.tuning = tuning
        self.snapshot_dataflow = snapshot_dataflow
        self.memory_limit = None if options.memory_limit is None else MemoryLimit(options.memory_limit, plan)
        """The limit on the memory of the run, if there is one."""
        if snapshot_dataflow:
            snapshot_dataflow.memory_limit = self.memory_limit
        self._dataflow: Dataflow | None = None
        self.update_steps: UpdateSteps | None = None
        """The update steps, or None if the plan has no updates."""
        self.sink_operators: Sequence[SinkOperator] = ()
        """The operators of the sinks of the incremental dataflow, if there is one."""
        self.output_count = 0
        self.watermark = ALWAYS - 1
        """The time up to which all instants have been processed (integer ms); earlier events are late."""
        operators = () if snapshot_dataflow else self.dataflow.operators.values()
        needs_complete_instants = any(isinstance(op, EventTimeOperator) for op in operators)
        guard = SchemaGuard(plan)
        self.buffer = EventBuffer(needs_complete_instants, options.ledger, guard if guard.is_needed else None)
        """The events whose instant may not be complete yet."""

    # What is read for each event is no `cached_property`: these slow down all attributes of their object (Python 3.11).

    @property
    def dataflow(self) -> Dataflow:
        """The incremental dataflow. It takes over the state of the snapshot dataflow, if there is one."""
        return self._dataflow or self._begin_dataflow()

    def _begin_dataflow(self) -> Dataflow:
        plan = with_seed(self.plan, self.seed)
        kind = ProfiledDataflow if self.options.measure else Dataflow
        if not self.snapshot_dataflow:  # whose state is that of the joins of the plan
            plan = with_multiway_joins(plan)
        dataflow = kind(plan, tuning=self.tuning, memory_limit=self.memory_limit)
        if self.snapshot_dataflow:
            for id, slot, deltas in self.snapshot_dataflow.export_state():
                dataflow.states[id].restore(slot, deltas)
        self._use(dataflow)
        self.snapshot_dataflow = None  # last, since other threads always see one of the two
        return dataflow

    def _use(self, dataflow: Dataflow) -> None:
        """Makes a dataflow the incremental one."""
        has_updates = bool(dataflow.input.updates)
        options = self.options
        self.update_steps = UpdateSteps(dataflow, options.max_update_steps, options.ledger) if has_updates else None
        operators = (dataflow.operators[node.id] for node, _ in dataflow.plan.sinks)
        self.sink_operators = [op for op in operators if isinstance(op, SinkOperator)]
        self._dataflow = dataflow

    # Input

    def start(self, static: Sequence[Event], begin: int) -> Iterator[Outputs]:
        """Processes static data and axioms.

        Args:
            static: The events of static data.
            begin: The value of functions of time for what always holds (integer ms).
        """
        static = self.buffer.without_schema_changes(static)
        if self.snapshot_dataflow:
            self.snapshot_dataflow.start()
            yield self._evaluate_snapshot(self.snapshot_dataflow, static, ALWAYS)
        else:
            self.dataflow.start(begin)
            self.dataflow.read(static)
            if self.update_steps:
                self.update_steps.update_static_data(begin)
            yield from self._advance(ALWAYS)

    def process(self, batch: Sequence[Event]) -> Iterator[Outputs]:
        """Processes a batch of events."""
        if self.memory_limit is not None:
            self.memory_limit.begin_batch()
        size = self.tuning.max_events_per_pass
        reads_columns = not (self.snapshot_dataflow or self.update_steps)
        if type(batch) is Columns and reads_columns:  # exactly: `isinstance` of an abstract class runs Python code
            parts: Iterator[Sequence[Event]] = batch.parts(size)
        else:
            is_large = reads_columns and len(batch) >= MIN_EVENTS_TO_TRANSPOSE
            parts = _parts(batch, size, is_large and bool(self.dataflow.layout.looked_up))
        for part in parts:
            if type(part) is Columns:
                yield from self._process_events(*self.buffer.ready_columns(part, self.watermark))
            else:
                yield from self._process_events(self.buffer.ready(part, self.watermark))

    def end(self) -> Iterator[Outputs]:
        """Ends the input: every instant is complete.

        Without an event no time has passed, so that what static data begin later does not begin.
        """
        yield from self._process_events(self.buffer.take())
        if not self.snapshot_dataflow and self.watermark > ALWAYS:
            if self.update_steps:
                self.update_steps.has_input_ended = True
            if may_go_on(self.dataflow):
                yield from self.drain()
            yield from self._advance(FOREVER - 1)

    def drain(self) -> Iterator[Outputs]:
        """Completes every instant up to the last one at which the events so far change anything.

        Unlike after `end`, later events may still follow.
        """
        yield from self._process_events(self.buffer.take())
        if self.update_steps:
            self.update_steps.has_input_ended = True
        instants, last_time = 0, FOREVER - 1
        while self.watermark > ALWAYS and (next_time := self.next_change_time) <= last_time:
            instants += 1
            if instants == MAX_INSTANTS_AFTER_INPUT and may_go_on(self.dataflow):
                last_time = last_time_of_growth(self.dataflow)
            yield from self._advance(next_time)

    @property
    def next_change_time(self) -> int:
        """The time of the next change if no event comes (integer ms), or FOREVER."""
        next_step = self.update_steps.next_step_time if self.update_steps else FOREVER
        return min(self.buffer.next_time, self.dataflow.next_time(), next_step)

    def _process_events(self, events: Sequence[Event], columns: Columns | None = None) -> Iterator[Outputs]:
        """Processes events, and later ones as columns, and advances time up to the buffered ones."""
        if self.buffer.events:
            for instants in self.dataflow.instants:
                instants.advance_time(self.buffer.events[-1].time)
        if self.snapshot_dataflow and self.snapshot_dataflow.are_large(events):
            for time, group in groupby(events, key=_TIME):
                yield self._evaluate_snapshot(self.snapshot_dataflow, list(group), time)
        elif self.update_steps:
            yield from self._run_instants(self.update_steps, events)
        else:
            if events:
                yield from self._read(events)
            if columns is not None:
                yield from self._read(columns)
            if events or columns is not None:
                yield from self._advance(events[-1].time if columns is None else columns.times[-1])
        if self.buffer.events and self.buffer.events[0].time - 1 > self.watermark:
            yield from self._advance(self.buffer.events[0].time - 1)

    def _read(self, events: Sequence[Event]) -> Iterator[Outputs]:
        """Reads events. Time advances up to each that says anything of owl:sameAs: what derived streams bring before is
        read with the representatives of that time."""
        read_at_once = self.dataflow.input.links is None or not self.dataflow.input.derived_streams
        for part in (events,) if read_at_once else self.dataflow.input.parts(events):
            if not read_at_once and part and part[0].time - 1 > self.watermark:
                yield from self._advance(part[0].time - 1)
            self.dataflow.read(part)

    def _evaluate_snapshot(self, snapshot_dataflow: SnapshotDataflow, events: Sequence[Event], time: int) -> Outputs:
        for event in events:
            snapshot_dataflow.read(event)
        snapshot_dataflow.run()
        self.watermark = time
        outputs = snapshot_dataflow.flush(time)
        if self.memory_limit is not None:
            self.memory_limit.begin_instant()
        self.output_count += len(outputs)
        return outputs

    def _advance(self, now: int) -> Iterator[Outputs]:
        """Advances time to `now`. All events up to then have been read."""
        if self.update_steps:
            yield from self._advance_with_updates(self.update_steps, now)
        else:
            yield from self._run_until(now)

    def _run_until(self, now: int) -> Iterator[Outputs]:
        dataflow = self._dataflow or self._begin_dataflow()
        dataflow.run(now)
        self.watermark = now
        outputs = self.sink_operators[0].flush(now)
        if len(self.sink_operators) > 1:
            for operator in self.sink_operators[1:]:
                outputs += operator.flush(now)
            outputs.sort(key=_TIME)
        if self.memory_limit is not None:
            self.memory_limit.begin_instant()
        self.output_count += len(outputs)
        dataflow.expire(now)
        if outputs:
            yield outputs

    # Updates: their effect at an instant is visible at the next one

    def _run_instants(self, update_steps: UpdateSteps, events: Sequence[Event]) -> Iterator[Outputs]:
        place = 0
        while place < len(events):
            time = events[place].time
            yield from self._advance_with_updates(update_steps, time - 1)
            after = next((i for i in range(place, len(events)) if events[i].time > time), len(events))
            self.dataflow.read(events[place:after])
            update_steps.reset_step_count()
            yield from self._run_instant(update_steps, time)
            place = after

    def _advance_with_updates(self, update_steps: UpdateSteps, now: int) -> Iterator[Outputs]:
        """Advances time to `now`, with a stop wherever validity begins or ends."""
        while (next_time := min(self.dataflow.next_time(), update_steps.next_step_time)) <= now:
            yield from self._run_instant(update_steps, next_time)
        if now > self.watermark:
            yield from self._run_instant(update_steps, now)

    def _run_instant(self, update_steps: UpdateSteps, time: int) -> Iterator[Outputs]:
        update_steps.apply(time)
        yield from self._run_until(time)
        update_steps.collect(time)

    # The plan

    def replan(self, plan: Plan) -> dict[str, str]:
        """Replaces the plan by another one of the same program, between two batches. The outputs stay the same.

        Returns the key that each state had before, for those that stay.

        Raises:
            CannotReplan: The state of the run is not known to be that of the other plan. The run may go on.
        """
        if self.snapshot_dataflow:
            raise CannotReplan("the run has no incremental state yet")
        if self.options.measure:
            raise CannotReplan("the metrics of nodes are those of one plan")
        seeded = with_seed(plan, self.seed)
        before = with_seed(self.plan, self.seed)
        dataflow, old_keys, _ = replanned(self.dataflow, before, seeded, self.watermark, self.tuning)
        own_states = {key: self.states[key] for key in (BUFFERED_EVENTS, PENDING_UPDATES) if key in self.states}
        kept_keys = {key: old for key, old in old_keys.items() if old is not None}
        update_steps = self.update_steps
        self.plan = plan
        vars(self).pop("states", None)
        self._use(dataflow)
        if update_steps is not None:
            update_steps.continue_with(dataflow, {old: key for key, old in kept_keys.items()})
            self.update_steps = update_steps
        if self.memory_limit is not None:
            self.memory_limit.set_plan(plan)
        self.states.update(own_states)
        return kept_keys | {key: key for key in own_states}

    # State

    @cached_property
    def states(self) -> StateRegistry:
        """All state with which another process resumes, by key, except for the watermark.

        It requires that there is no snapshot dataflow. Its changelog is drained between batches, when all outputs of
        the last one have been consumed.
        """
        states = StateRegistry({**self.dataflow.states, BUFFERED_EVENTS: DiffedState(self.buffer)})
        if self.update_steps:
            states[PENDING_UPDATES] = DiffedState(self.update_steps)
        return states

    def restore(self, watermark: int, begin: int, state: Mapping[tuple[str, int], Sequence[Delta]]) -> None:
        """Restores the state of another process with this plan, instead of `start`.

        Args:
            watermark: The time that it had processed (integer ms).
            begin: The value of functions of time for what always holds (integer ms).
            state: The deltas of its state, by key and slot.
        """
        self.dataflow.begin(begin)
        self.states.restore(watermark, state)
        if self.update_steps:
            self.update_steps.timers.restore(begin)
        self.watermark = watermark
