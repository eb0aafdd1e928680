"""Sharded plans: plans that run as a whole inside a distributed engine, in one task, or in one for each shard of the
subjects.

Sources are read and parsed in parallel, as ever. The facts that the plan reads go to the task of their shard, in order,
and that runs the event loop of the iterator builder (`squall.builders.local.event_loop`) on them. If there is little
input, each task reads it itself. Its state goes to the store as records, as all state does, and a copy stays in the
worker (`squall.builders.distributed.exec.state_cache`). The number of shards is decided when a run begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import pyarrow

from squall.builders.distributed.exec import state_cache
from squall.builders.distributed.exec.batch_log import FIRST_STEP, MicroBatchLog, Progress
from squall.builders.distributed.exec.job_runner import JobRunner
from squall.builders.distributed.exec.logged_batches import LoggedBatches
from squall.builders.distributed.exec.ordered_records import OrderedRecords, changes_of, ordered_events
from squall.builders.distributed.exec.plan_change import (
    check_processing,
    move_results,
    refusal_report,
    restore_joins,
    rows_by_type,
    statistics_of,
    statistics_report,
)
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.worker import metric_records
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Engine, Files, Folder, Frame, TaskReport
from squall.builders.distributed.io.parsing import Parse, Parsed, late_dead_letter, schema_dead_letter
from squall.builders.distributed.io.records import (
    ROW,
    ROWS_PER_BATCH,
    SOURCE_STEP,
    STATE,
    Answer,
    DeadLetter,
    EventTimes,
    Instant,
    OrderedFact,
    PlanReport,
    Record,
    RowBatch,
    SourceCount,
    StateHandle,
    WorkerRecord,
    WorkerStep,
    constant_step,
    decode,
    from_arrow,
    to_arrow,
)
from squall.builders.distributed.plan.buckets import SINGLE_PARTITION
from squall.builders.distributed.plan.shardability import shard_of
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.local.event_loop import EventLoop
from squall.builders.runtime.operators.scan import emits_snapshots, predicates_used
from squall.builders.runtime.profiled import ProfiledDataflow
from squall.builders.runtime.replanning import CannotReplan
from squall.builders.runtime.schema_changes import SchemaGuard
from squall.builders.runtime.serde import pack_output, unpack_outputs
from squall.builders.runtime.state import StateChangelog
from squall.builders.runtime.zset import Delta
from squall.contracts import Options, Output
from squall.plan import Plan
from squall.plan.cardinality import Statistics
from squall.process.recursion import deep_recursion
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Term, Triple, heartbeat
from squall.streams.dead_letters import DeferredLedger, RunLedger


@dataclass
class ShardedProgress(Progress):
    """How far a job has come in shards.

    Attributes:
        processed_until: the time up to which everything has been processed.
        earliest: the time before which events are late.
        next_change_time: when something is left to do if no event comes; FOREVER: never.
        base: the batch that wrote the whole state. Later ones have written their changes.
        shard_count: the number of shards.
    """

    processed_until: int = ALWAYS - 1
    earliest: int = ALWAYS
    next_change_time: int = ALWAYS
    base: int = 0
    shard_count: int = 1


class Shards(LoggedBatches):
    """The batches of a sharded plan.

    Args:
        engine: processes records.
        store: the files of the job.
        program: the program.
        max_update_steps: how often updates may act without an event in between.
        limits: up to which size the tasks read a batch themselves, and what is kept.

    Attributes:
        source_report: what was reported of the sources, where another job than that of the shards reads them.
        task_report: what was reported by the tasks of the shards.
        state_rows: how many rows the state had after the last batch in which the tasks of this job ran.
    """

    progress: ShardedProgress

    def __init__(
        self,
        engine: Engine,
        store: Files,
        program: Program,
        max_update_steps: int,
        limits: BatchLimits,
    ) -> None:
        log = MicroBatchLog(store, program.plan)
        shards = engine.partitions if program.physical.strategy.division == "shards" else 1
        self.progress = ShardedProgress.of_commit(log.last_commit) or ShardedProgress(shard_count=shards)
        runner = JobRunner(engine, program, log, limits.max_cached_rows, since=self.progress.base)
        super().__init__(program, limits, runner)
        self.max_update_steps = max_update_steps
        self.next_progress = self.progress
        self.source_report: TaskReport | None = None
        self.task_report = TaskReport()
        self.state_rows = 0

    @property
    def report(self) -> TaskReport:
        return self.task_report if self.source_report is None else self.source_report

    @property
    def unfinished(self) -> bool:
        return self.progress.next_change_time < FOREVER

    def initial_records(self) -> Sequence[WorkerRecord]:
        return [start_record()]

    def initial_step(self, first: Sequence[WorkerRecord]) -> WorkerStep:
        return self._stored(constant_step(first))

    def source_step(self, parse: Parse) -> WorkerStep:
        program, earliest, steps = self.program, self.progress.earliest, self.max_update_steps
        selection = ShardSelection(self.progress.shard_count)

        def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            program.prepare()
            return to_arrow(shard_records(program.plan, earliest, parse(batches, None, earliest), steps, selection))

        step.__name__ = SOURCE_STEP
        return self._stored(step)

    def _stored(self, step: WorkerStep) -> WorkerStep:
        """Returns the step, which stores its records in the first step of the batch."""
        return self.runner.with_records(step, self.log.step_folder(FIRST_STEP))

    @property
    def row_count(self) -> int:
        """The number of rows does not matter."""
        return 0

    def process_unshuffled(
        self, parse: Parse, first: Sequence[WorkerRecord] = (), last: bool = False, keep: bool = True
    ) -> None:
        self.source_report = None
        self._run_tasks([ShardInput(parse, tuple(first))] * self.progress.shard_count, last, keep)

    def process(self, records: Frame | None, last: bool = False, keep: bool = True) -> None:
        self.source_report = None if records is None else self.runner.run(records)
        self.task_report = TaskReport()
        files = [
            task_output.files_of(self.log.store, self.log.steps, [ROW], [shard])
            for shard in range(self.progress.shard_count)
        ]
        if any(files) or self.runner.versions.files():
            self._run_tasks([ShardInput(files=tuple(shard_files)) for shard_files in files], last, keep)

    def _run_tasks(self, inputs: Sequence[ShardInput], last: bool, keep: bool) -> None:
        """Runs the tasks. inputs: the input of each, by number of the shard."""
        base = (
            self.log.committed_count
            if self.log.committed_count - self.progress.base >= self.limits.compaction_interval
            else self.progress.base
        )
        is_whole = base == self.log.committed_count
        tasks = (
            replace(self._task(shard, is_whole, keep), last=last, unread=shard_input)
            for shard, shard_input in enumerate(inputs)
        )
        self.task_report = self.runner.run_tasks([self.runner.with_outputs(task) for task in tasks])
        self.next_progress = replace(self.progress, **_progress_times(self.task_report), base=base)
        self.state_rows = sum(handle.rows for handle in self.task_report.all(StateHandle))

    def _task(self, shard: int, whole: bool, keep: bool = True) -> ShardTask:
        """Returns the task of a shard, without input. whole: whether it writes its whole state; keep: whether it writes
        any."""
        return ShardTask(
            self.program,
            self.progress,
            self.max_update_steps,
            first=self.log.committed_count == 0,
            last=False,
            whole=whole,
            sharing=ShardSelection(self.progress.shard_count, shard),
            state=self.runner.versions.state([shard], SINGLE_PARTITION, keep, self.progress.processed_until),
        )

    def outputs(self) -> Iterator[Output]:
        yield from unpack_outputs(self.stored_outputs())

    def commit(self, number: int | None) -> None:
        self.next_progress.number = self.progress.number if number is None else number
        self.progress = self.next_progress
        is_full = self.progress.base == self.log.committed_count
        self.log.commit(self.progress, self.log.steps)
        self.runner.versions.commit(is_full)
        self.log.forget(self.progress.base - 1)

    # Another plan

    @property
    def looked_at_rows(self) -> int:
        return self.state_rows

    @property
    def watermark(self) -> int:
        return self.progress.processed_until

    def statistics(self) -> Statistics:
        step = self.program.step("a look at the state", partial(_statistics, self.program.plan, self.watermark))
        return statistics_of(self.runner.run_over_state(step))

    def move(self, program: Program, logical_before: Plan, logical: Plan, plan: object) -> None:
        check_processing(self.program.physical, program.physical)
        shards, folder = range(self.progress.shard_count), self.log.next_step()
        moves = [ShardMove(self._task(shard, whole=True), logical) for shard in shards]
        report = self.runner.engine.run_tasks([self.runner.with_records(move, folder) for move in moves])
        try:
            move_results(report)
        except CannotReplan:
            self.log.abandon()
            raise
        self.log.add(folder, report)
        self.progress = replace(self.progress, base=self.log.committed_count)
        self.log.move(self.progress, (), (), plan)


def _progress_times(report: TaskReport) -> dict[str, int]:
    """Returns how far all tasks together have come."""
    times_by_source: dict[str, list[int]] = {}
    for name, _, time in report.instants:
        times_by_source.setdefault(name, []).append(time)
    return {name: (min if name == "next_change_time" else max)(times) for name, times in times_by_source.items()}


# What workers do


class ShardSelection(NamedTuple):
    """A selection of shards: shard `own` of `many`, or all of them if `own` is None."""

    many: int = 1
    own: int | None = None

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the selected shards."""
        return range(self.many) if self.own is None else [self.own]

    def of(self, fact: Fact | None) -> int:
        """Returns the number of the shard of a fact."""
        return shard_of(fact, self.many) if fact is not None and self.many > 1 else 0


_WHOLE_PLAN = ShardSelection()


def start_record() -> OrderedFact:
    """Returns the record that starts a program, whatever else comes."""
    return _empty_event_record(Event(ALWAYS, ()), 0)


def _empty_event_record(event: Event, shard: int) -> OrderedFact:
    """Returns the record of an event without facts."""
    return OrderedRecords(shard).record((0, "", 0), event, "event", None)


def shard_records(
    plan: Plan, earliest: int, parsed: Iterable[Parsed], steps: int, selection: ShardSelection = _WHOLE_PLAN
) -> Iterator[WorkerRecord]:
    """Yields the records of the content of sources: the facts that the plan reads, in order and for the stage of their
    shard, and when events came.

    Args:
        plan: the plan.
        earliest: the time before which facts are late (integer ms).
        parsed: the content of the sources.
        steps: how often updates may act without an event in between.
        selection: the shards for which records are made. Dead letters and counts are made for all shards or the first.
    """
    predicates, is_snapshot = predicates_used(plan), emits_snapshots(plan)
    numbers, reports_sources = selection.numbers, selection.own in (None, 0)
    ordered_records_by_shard = {shard: OrderedRecords(shard) for shard in numbers}
    guard, counts = SchemaGuard(plan), Counter[int]()
    arrivals = _ArrivalTimes(steps)
    for source, events, dead_letters, _, file, block in parsed:
        yield from (dead_letter._replace(number=source) for dead_letter in dead_letters if reports_sources)
        for event in events:
            counts[source] += 0 if event.is_static else event.statement_count
            if event.time < earliest:
                lost_facts = (*event.facts, *event.removed) if reports_sources else ()
                yield from (late_dead_letter(event.stream, event.time, fact) for fact in lost_facts)
                continue
            arrivals.add(event.time)
            (event,), schema_changes = guard.without_changes((event,))
            yield from map(schema_dead_letter, schema_changes if reports_sources else ())
            for kind, fact in _wanted_changes(event, predicates, is_snapshot):
                if (ordered_records := ordered_records_by_shard.get(selection.of(fact))) is not None:
                    yield ordered_records.record((source, file, block), event, kind, fact)
    yield from arrivals.records(numbers)
    yield from map(SourceCount._make, (+counts).items() if reports_sources else ())


class _ArrivalTimes:
    """The times of events, as far as they matter to who counts update steps.

    At most one step is taken at each time (integer ms). So of all events between two that are at most so many steps
    apart, none matters.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.latest = ALWAYS
        self.times: list[int] = []

    def add(self, time: int) -> None:
        """Adds the time of an event."""
        self.latest = max(self.latest, time)
        times = self.times
        if len(times) > 1 and times[-2] <= times[-1] <= time <= times[-2] + self.steps:
            times[-1] = time
        elif time != ALWAYS and times[-1:] != [time]:
            times.append(time)

    def records(self, shards: Iterable[int]) -> Iterator[WorkerRecord]:
        """Yields the records of the times for some shards, with an event without facts at the latest."""
        times = " ".join(map(str, self.times))
        for shard in shards if self.latest > ALWAYS else ():
            yield _empty_event_record(heartbeat(self.latest), shard)
            yield EventTimes(shard, times)


def _wanted_changes(
    event: Event, predicates: Collection[Term] | None, is_snapshot: bool
) -> Iterator[tuple[str, Fact | None]]:
    """Yields the facts of an event that the plan reads. If there are none, and a snapshot needs its instant, yields the
    event without facts."""
    event_facts = [fact for fact in event.facts if predicates is None or _is_wanted(fact, predicates)]
    yield from changes_of(event._replace(facts=tuple(event_facts)))
    if is_snapshot and not event_facts and not event.removed:
        yield "event", None


def _is_wanted(fact: Fact, predicates: Collection[Term]) -> bool:
    return not isinstance(fact, Triple) or fact.predicate in predicates


def _decoded(records: Iterable[Record]) -> Iterator[WorkerRecord]:
    """Yields the records of `shard_records` as it yields them."""
    for record in records:
        if record.type != ROW:
            yield record
        elif record.port:
            yield decode(record, EventTimes)
        else:
            yield decode(record, OrderedFact)


def task_ledger() -> DeferredLedger:
    """Returns the ledger of an event loop in a task, which buffers what the task reports (`task_dead_letters`)."""
    return DeferredLedger(RunLedger())


def task_dead_letters(event_loop: EventLoop) -> Iterator[DeadLetter]:
    """Yields the records of the dead letters of an event loop since the last call, such as timers that are none."""
    ledger = event_loop.options.ledger
    assert isinstance(ledger, DeferredLedger)
    for cause, source, line, reason, text in ledger.drain():
        yield DeadLetter(cause, source, 0, line or 0, reason, text)


class ShardInput(NamedTuple):
    """The input of a task, which reads the sources itself, or files of records. `first` has the records that start the
    program, in its first batch."""

    parse: Parse | None = None
    first: tuple[WorkerRecord, ...] = ()
    files: tuple[Folder, ...] = ()


_NO_INPUT = ShardInput()
_POSITION_BYTES = 8
"""The bytes of an output's position among those of a task."""
_NO_STATE = state_cache.State((0,), SINGLE_PARTITION)


@dataclass(frozen=True)
class ShardTask:
    """The worker's function of a task. From the facts of a batch and the state, which it reads unless it has a cached
    copy, it makes outputs and new state.

    Attributes:
        program: the physical plan.
        progress: the progress after the batch before.
        steps: how often updates may act without an event in between.
        first: whether this is the first batch.
        last: whether no more events follow for the time being.
        whole: whether it writes its whole state, not the changes.
        sharing: the shard of the task.
        unread: the input that it reads itself.
        state: the state of the shard.
    """

    __name__ = "the plan as a whole"

    program: Program
    progress: ShardedProgress
    steps: int
    first: bool
    last: bool
    whole: bool = False
    sharing: ShardSelection = _WHOLE_PLAN
    unread: ShardInput = _NO_INPUT
    state: state_cache.State = _NO_STATE

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        self.program.prepare()
        return to_arrow(self._messages(from_arrow(batches)))

    def _messages(self, records: Iterable[Record]) -> Iterator[WorkerRecord]:
        arrived: list[OrderedFact] = []
        times: list[int] = []
        for record in chain(_decoded(records), self._unread()):
            match record:
                case OrderedFact():
                    arrived.append(record)
                case EventTimes():
                    times += map(int, record.times.split())
                case _:
                    yield record
        event_loop, previous_state = self._running()
        if event_loop.update_steps:
            event_loop.update_steps.expect_events(times)
        for number, output in enumerate(self._outputs(event_loop, ordered_events(arrived))):
            # Each shard outputs deletions first; among the outputs of all shards they have to come first, too.
            position = output.change.encode() + number.to_bytes(_POSITION_BYTES, "big")
            yield Answer(pack_output(output), output.time, position)
        yield from task_dead_letters(event_loop)
        if self.state.keep:
            yield from self.state_batches(event_loop, self._state_deltas(event_loop, previous_state))
            for name, time in (
                ("processed_until", event_loop.watermark),
                ("earliest", event_loop.buffer.earliest(event_loop.watermark)),
                ("next_change_time", event_loop.next_change_time),
            ):
                yield Instant(name, 0, time)
        if isinstance(event_loop.dataflow, ProfiledDataflow):
            yield from metric_records(self.program, event_loop.dataflow.metrics(event_loop.output_count))
        elif self.state.keep:
            yield self.state.put(0, event_loop, sum(event_loop.dataflow.state().values()))

    @property
    def shard(self) -> int:
        """The number of the task's shard."""
        return self.sharing.numbers[0]

    def _unread(self) -> Iterator[WorkerRecord]:
        """Yields the records of the input that the task reads itself."""
        parse, first, files = self.unread
        yield from first
        if parse is not None:
            earliest = self.progress.earliest
            parsed = parse(iter(()), None, earliest)
            yield from shard_records(self.program.plan, earliest, parsed, self.steps, self.sharing)
        for file in files:
            yield from _decoded(from_arrow(self.state.read(file)))

    def _running(self) -> tuple[EventLoop, StateChangelog]:
        """Returns the event loop as the batch before has left it, and the state if that had to be read."""
        event_loop, unknown = self.state.take(0)
        if event_loop is not None and not unknown and not self.whole:
            return event_loop, StateChangelog()
        return self.restored()

    def restored(self) -> tuple[EventLoop, StateChangelog]:
        """Returns an event loop with the state, and that state, which is read."""
        options = Options(max_update_steps=self.steps, measure=self.program.measure, ledger=task_ledger())
        event_loop, state = EventLoop(self.program.plan, options), StateChangelog()
        for update in event_loop.dataflow.input.updates.values():
            update.initial = [demand for demand in update.initial if self.sharing.of(demand.fact) == self.shard]
        names = list(event_loop.states)
        state_deltas = self.state.read_deltas(self.state.versions, 0)
        state.deltas = {(names[node], slot): deltas for (node, slot), deltas in state_deltas.items()}
        if not self.first:
            event_loop.restore(self.progress.processed_until, self.program.static_time, state.deltas)
        if self.state.keep:
            event_loop.states.enable_changelog()
        return event_loop, state

    def _state_deltas(
        self, event_loop: EventLoop, previous_state: StateChangelog
    ) -> Iterator[tuple[str, int, list[Delta]]]:
        """Yields the state that is to be written."""
        return whole_state(event_loop, previous_state) if self.whole else event_loop.states.drain_changelog()

    def state_batches(
        self, event_loop: EventLoop, state_deltas: Iterable[tuple[str, int, Sequence[Delta]]]
    ) -> Iterator[RowBatch]:
        """Yields the records of state by (state, slot, deltas). Each state has its number in the event loop."""
        numbers = {id: number for number, id in enumerate(event_loop.states)}
        for id, slot, deltas in state_deltas:
            for first in range(0, len(deltas), ROWS_PER_BATCH):
                yield RowBatch(STATE, self.shard, 0, numbers[id], slot, deltas[first : first + ROWS_PER_BATCH])

    def _outputs(self, event_loop: EventLoop, events: list[Event]) -> Iterator[Output]:
        static = [event for event in events if event.is_static]
        for outputs in event_loop.start(static, self.program.static_time) if self.first else ():
            yield from outputs
        for outputs in event_loop.process(events[len(static) :]):
            yield from outputs
        for outputs in event_loop.drain() if self.last else ():
            yield from outputs


def whole_state(event_loop: EventLoop, previous_state: StateChangelog) -> Iterator[tuple[str, int, list[Delta]]]:
    """Yields (state, slot, deltas) of all that an event loop has stored. previous_state: what it was restored from, to
    which its changes are added."""
    previous_state.add(event_loop.states.drain_changelog())
    previous_state.compact(event_loop.states, event_loop.watermark)
    yield from ((id, slot, deltas) for (id, slot), deltas in previous_state.deltas.items())


# Another plan


def _statistics(plan: Plan, watermark: int, row_batches: Iterable[RowBatch]) -> Iterator[WorkerRecord]:
    """Yields the report of the statistics of the data in the state of all shards."""
    event_loop = EventLoop(plan, Options())
    restore_joins(event_loop.dataflow, list(event_loop.states), rows_by_type(row_batches)[0])
    yield statistics_report(event_loop.dataflow, watermark)


@dataclass(frozen=True)
class ShardMove:
    """The worker's function that moves the state of a shard to another plan, and writes all of it.

    Attributes:
        task: the task of the shard with the present plan.
        plan: the other plan.
    """

    __name__ = "a move to another plan"

    task: ShardTask
    plan: Plan

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        self.task.program.prepare()
        return to_arrow(self._records())

    def _records(self) -> Iterator[WorkerRecord]:
        event_loop, state = self.task.restored()
        try:
            with deep_recursion():
                old_keys = event_loop.replan(self.plan)
        except CannotReplan as error:
            yield refusal_report(error)
            return
        yield PlanReport("{}")
        yield from self.task.state_batches(event_loop, whole_state(event_loop, state.renamed(old_keys)))
