"""The work of a distributed engine's workers: from source events to routed rows, and one step of a stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import pyarrow
from pyarrow import compute

from squall.builders.distributed.exec.ordered_records import OrderedRecords, changes_of
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.report_times import (
    NO_INSTANTS,
    EvaluationTimes,
    NodeInstants,
    sequential_evaluations,
    stream_activity,
)
from squall.builders.distributed.exec.routing import WAKE_PORT, Router
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.io.parsing import Parse, Parsed, late_dead_letter, schema_dead_letter
from squall.builders.distributed.io.records import (
    ARROW,
    BUFFERED,
    READY,
    ROW,
    SOURCE_STEP,
    WATERMARK,
    WATERMARK_BROADCAST,
    DeadLetter,
    Instant,
    NodeOutput,
    OrderedFact,
    RowBatch,
    SourceCount,
    Watermark,
    WorkerRecord,
    WorkerStep,
    to_arrow,
)
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET, ORDERED_SCAN, BucketPartitions, bucket_of
from squall.builders.distributed.plan.ordered_scan import OrderedScan
from squall.builders.distributed.plan.snapshot_nodes import rstream_nodes
from squall.builders.distributed.plan.stages import Stage
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.operators.derived_stream import DerivedStreamOperator
from squall.builders.runtime.operators.distinct import TransitiveClosureOperator
from squall.builders.runtime.operators.scan import predicates_to_read
from squall.builders.runtime.operators.state import TimedOperator
from squall.builders.runtime.profiled import ProfiledDataflow
from squall.builders.runtime.report_times import ReportSchedules
from squall.builders.runtime.scheduler import Address
from squall.builders.runtime.schema_changes import SchemaGuard
from squall.builders.runtime.state import StateRegistry, compact_deltas, live_deltas
from squall.builders.runtime.zset import Delta, fact_row
from squall.plan.node_metrics import PlanMetrics
from squall.plan.operators import Group, Operator
from squall.rdf import ALWAYS, FOREVER, Columns, Event, Term

_TIME = attrgetter("time")
Outbox = Callable[[Dataflow, Router], Iterator[RowBatch]]
LOCAL_BUCKET = 0
"""The bucket of rows that stay in the task that made them, which has all buckets."""
_MAX_BUFFERED_ROWS = 50_000
"""The number of source rows that are collected before they are routed, so that rows of a bucket go together."""

# Sources


def source_step(program: Program, watermark: int, parse: Parse) -> WorkerStep:
    """Returns the worker's function from lines to records for the first stateful nodes. watermark: the time before
    which events are late (integer ms)."""
    predicates = wanted_predicates(program)

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        return to_arrow(source_records(program, watermark, parse(batches, predicates, watermark)))

    step.__name__ = SOURCE_STEP
    return step


def wanted_predicates(program: Program) -> Collection[Term] | None:
    """Returns the predicates of the triples that sources have to pass on (None: all)."""
    return None if program.measure else predicates_to_read(program.plan)  # what is measured is all that is read


def source_records(
    program: Program, watermark: int, parsed: Iterable[Parsed], outbox: Outbox | None = None
) -> Iterator[WorkerRecord]:
    """Yields the records that follow from the content of sources. outbox: takes the rows out of the dataflow; by
    default they are routed."""
    outbox = outbox or routed_outbox
    ordered_scan, ordered_records = program.ordered_scan, OrderedRecords(ORDERED_SCAN)
    dataflow = source_dataflow(program, [node.id for node in program.plan.nodes if node.id not in ordered_scan.sources])
    router = program.router()
    report_times = EvaluationTimes(program.plan)
    guard, counts = SchemaGuard(program.plan), Counter[int]()
    latest = ALWAYS
    for part in parsed:
        counts[part.source] += part.statements
        yield from (dead_letter._replace(number=part.source) for dead_letter in part.lost)
        timely, late_records = _without_late_events(part.events, watermark)
        yield from late_records
        timely, schema_changes = guard.without_changes(timely)
        yield from map(schema_dead_letter, schema_changes)
        for event in filter(ordered_scan.reads, timely) if ordered_scan.sources else ():
            yield from _ordered_records(ordered_scan, ordered_records, part, event)
        dataflow.read(timely)
        latest = max(latest, _latest_time(timely))
        report_times.add(timely)
        dataflow.run()
        if sum(map(len, dataflow.outbox.values())) >= _MAX_BUFFERED_ROWS:
            yield from outbox(dataflow, router)
    yield from outbox(dataflow, router)
    if latest > ALWAYS:
        yield Watermark(latest)
    yield from report_times.records(latest)
    yield from map(SourceCount._make, (+counts).items())
    yield from metrics_of(program, dataflow)


def _without_late_events(events: Sequence[Event], watermark: int) -> tuple[Sequence[Event], Sequence[DeadLetter]]:
    """Returns the events from the watermark on (integer ms), and the dead letters of the others."""
    if isinstance(events, Columns) and events.times[0] >= watermark:
        return events, ()
    timely = [event for event in events if event.time >= watermark]
    late_facts = ((event, fact) for event in events if event.time < watermark for _, fact in changes_of(event))
    return timely, [late_dead_letter(event.stream, event.time, fact) for event, fact in late_facts]


def _latest_time(events: Sequence[Event]) -> int:
    return events.times[-1] if isinstance(events, Columns) else max(map(_TIME, events), default=ALWAYS)


def _ordered_records(
    ordered_scan: OrderedScan, ordered_records: OrderedRecords, part: Parsed, event: Event
) -> Iterator[OrderedFact]:
    """Yields the records of an event for an ordered scan: one for each fact. An event without facts has one if its
    stream is followed, since the windows of the stream move with it."""
    place = part.source, part.file, part.block
    for kind, fact in changes_of(event):
        bucket = bucket_of(ordered_scan.partition_key(event.stream, fact_row(fact)[:-1]))
        yield ordered_records.record(place, event, kind, fact, bucket)
    if not (event.facts or event.removed) and ordered_scan.is_followed(event.stream):
        yield ordered_records.record(place, event, "event", None, bucket_of(event.stream))


def with_watermark(step: WorkerStep, places: Sequence[tuple[int, int]]) -> WorkerStep:
    """Returns the step, whose rows are processed at their event time.

    Args:
        step: the step.
        places: the stages and buckets that receive the watermark, up to which instants are complete: the latest time
            that any task reports.
    """

    def timely_batches(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        latest = ends = ALWAYS
        for batch in step(batches):
            rows = compute.equal(batch["kind"], ROW)
            is_bounded = compute.and_(rows, compute.less(batch["end"], FOREVER))
            ends = max(ends, _latest(batch["start"].filter(rows)), _latest(batch["end"].filter(is_bounded)))
            latest = max(latest, _latest(batch["start"].filter(compute.equal(batch["kind"], WATERMARK))))
            yield batch.set_column(0, ARROW.field("kind"), compute.if_else(rows, BUFFERED, batch["kind"]))
        clocks = (RowBatch(WATERMARK_BROADCAST, *place, 0, WAKE_PORT, [(latest - 1, FOREVER, 1)]) for place in places)
        yield from to_arrow([Watermark(latest, ends), *(clocks if latest > ALWAYS else ())])

    timely_batches.__name__ = step.__name__
    return timely_batches


def _latest(times: pyarrow.Array) -> int:
    return max(times.to_pylist(), default=ALWAYS)


def source_dataflow(program: Program, reading: Collection[str] | None = None) -> Dataflow:
    """Returns the dataflow that reads facts and leaves all stateful nodes to other tasks. reading: the nodes that it
    reads (None: all)."""
    dataflow_class = ProfiledDataflow if program.measure else Dataflow
    return dataflow_class(program.plan, hosted=(), reading=reading)


def metrics_of(program: Program, dataflow: Dataflow) -> Iterator[NodeOutput]:
    """Yields what the nodes of a dataflow have done since the last time, if it measures."""
    if isinstance(dataflow, ProfiledDataflow):
        yield from metric_records(program, dataflow.metrics(0))
        dataflow.forget()


def metric_records(program: Program, node_metrics: PlanMetrics) -> Iterator[NodeOutput]:
    """Yields the records of the metrics of nodes that have output rows or taken time."""
    numbers = program.physical.numbers
    for id, metric in node_metrics.items():
        micros = -1 if metric.seconds is None else round(metric.seconds * 1_000_000)
        if metric.rows or micros > 0:
            yield NodeOutput(numbers[id], metric.rows or 0, micros)


def routed_outbox(dataflow: Dataflow, router: Router) -> Iterator[RowBatch]:
    """Yields the rows in a dataflow's outbox, routed to the tasks of their nodes."""
    outbox, dataflow.outbox = dataflow.outbox, {}
    for address, deltas in outbox.items():
        yield from router.row_batches(address, deltas)


def local_outbox(dataflow: Dataflow, router: Router) -> Iterator[RowBatch]:
    """Yields the rows in a dataflow's outbox for nodes in the same task."""
    outbox, dataflow.outbox = dataflow.outbox, {}
    for (id, port), deltas in outbox.items():
        yield RowBatch(ROW, router.stage_numbers[id], LOCAL_BUCKET, router.numbers[id], port, deltas)


def initial_records(program: Program) -> Iterator[WorkerRecord]:
    """Yields the records that start a program: what its axioms derive, and the wake-ups of nodes that output a row
    without input."""
    program.prepare()
    dataflow = source_dataflow(program)
    dataflow.start(program.static_time)
    dataflow.run()
    router = program.router()
    yield from routed_outbox(dataflow, router)
    yield from (router.wake(node.id) for node in program.plan.nodes if _outputs_without_input(node.op))
    yield from metrics_of(program, dataflow)


def _outputs_without_input(op: Operator) -> bool:
    return isinstance(op, Group) and not op.keys


# Supersteps

FORWARD, DELETE, REDERIVE = "plain", "delete", "rederive"
"""The phases of a step. A forward step does everything at once. Where deletions cross partitions there are two phases,
each iterated: rows that may have lost their derivation are deleted, then those that still have one are rederived."""


class Span(NamedTuple):
    """A span of time.

    Attributes:
        start: instants up to this time have been processed (integer ms).
        end: those up to this time are to be processed.
        is_last: whether no more events follow, so that all instants are complete as soon as there is an event.
    """

    start: int
    end: int
    is_last: bool = False


class TimelyBatches(NamedTuple):
    """The input of a step: the span of time, the rows to process now, and the rows to buffer."""

    span: Span
    now: list[RowBatch]
    later: list[RowBatch]


def timely_batches(row_batches: Iterable[RowBatch], span: Span) -> TimelyBatches:
    """Splits row batches by time. Rows with an event time are processed only if it is in the span. The watermark may
    have come further than the span says, as far as records in the input report."""
    all_batches = list(row_batches)
    clock_times = [
        delta[-3] for row_batch in all_batches if row_batch.type == WATERMARK_BROADCAST for delta in row_batch.deltas
    ]
    if span.is_last and clock_times:
        clock_times = [FOREVER - 1]
    span = span._replace(end=max([span.end, *clock_times]))
    now, later_batches = [], []
    for row_batch in all_batches:
        if row_batch.type not in (READY, BUFFERED):
            now.append(row_batch)
            continue
        if deltas := [delta for delta in row_batch.deltas if span.start < delta[-3] <= span.end]:
            now.append(row_batch._replace(type=ROW, deltas=deltas))
        if row_batch.type == BUFFERED and (deltas := [delta for delta in row_batch.deltas if delta[-3] > span.end]):
            later_batches.append(row_batch._replace(deltas=deltas))
    return TimelyBatches(span, now, later_batches)


def stage_step(
    program: Program,
    stages: Sequence[Stage],
    phase: str,
    span: Span,
    state: State,
    instants: NodeInstants = NO_INSTANTS,
) -> WorkerStep:
    """Returns the worker's function for one iteration of some stages: new rows of a partition in, what follows from
    them out. Records for other stages pass through.

    Rows whose bucket is here are processed at once; others wait for the next iteration.

    Args:
        program: the physical plan.
        stages: the stages.
        phase: the phase of the step.
        span: the time that passes.
        state: the state of these stages.
        instants: when the snapshots that are derived there are evaluated.
    """
    work = partial(run_stages, program, stages, phase, span, state, instants=instants)
    return program.step(stage_name(stages, phase), work, state.stages)


def stage_name(stages: Sequence[Stage], phase: str) -> str:
    """Returns the name of an iteration of some stages."""
    name = ", ".join(f"stage {stage.number}" for stage in stages)
    iteration = ", an iteration" if any(stage.recursive for stage in stages) else ""
    return f"{name}{iteration}{'' if phase == FORWARD else f' to {phase}'}"


def run_stages(
    program: Program,
    stages: Sequence[Stage],
    phase: str,
    span: Span,
    state: State,
    row_batches: Iterable[RowBatch],
    instants: NodeInstants = NO_INSTANTS,
    outbox: Outbox | None = None,
) -> Iterator[WorkerRecord]:
    """Yields what one iteration of some stages makes of the row batches of a partition. outbox: takes the rows for
    other stages out of the dataflow; by default they are routed."""
    span, now, later_batches = timely_batches(row_batches, span)
    yield from buffered_batches(program, later_batches)
    partition, fresh = partition_input(now, state.bucket_partitions)
    if partition is None:
        return
    dataflow = _restored_partition(program, stages, span, state, partition)
    router = dataflow.router
    for (number, port), deltas in fresh.items():
        dataflow.receive((router.ids[number], port), deltas)
    dataflow.evaluate({router.ids[number]: times for number, times in instants.items()})
    dataflow.run_phase(phase, span.end)
    yield from _derived_stream_records(dataflow)
    is_first = state.bucket_partitions[0] == partition
    watermark = state.watermark if any(stage.recursive for stage in stages) else state_watermark(span, state)
    state_records = (router.state_batches(id, slot, deltas) for (id, slot), deltas in dataflow.live_deltas(watermark))
    for row_batch in chain((outbox or routed_outbox)(dataflow, router), chain.from_iterable(state_records)):
        if is_first or not router.is_replicated(row_batch):  # what every task makes for itself, one of them tells of
            yield row_batch
    yield from metrics_of(program, dataflow)
    if state.keep:
        dataflow.expire(watermark)
        yield state.put(partition, dataflow, sum(dataflow.state().values()))


def _restored_partition(
    program: Program, stages: Sequence[Stage], span: Span, state: State, partition: int
) -> _Partition:
    """Returns the dataflow of a partition with its state, as far as that is before a span: the cached one brought up to
    date, or a new one."""
    cached, since = state.take(partition)
    dataflow: _Partition | None = cached
    if dataflow is None:
        partition_class = _ProfiledPartition if program.measure else _Partition
        dataflow = partition_class(program, stages, state.bucket_partitions, partition)
        dataflow.begin(program.static_time)
    ids = dataflow.router.ids
    slots = {(ids[number], slot): part for (number, slot), part in state.read_deltas(since, partition).items()}
    dataflow.states.restore(span.start, slots)
    if state.keep:
        dataflow.states.enable_changelog()
    return dataflow


def _derived_stream_records(dataflow: _Partition) -> Iterator[Watermark | Instant]:
    """Yields what the driver needs to know of derived streams: until when they matter, and when they brought
    something."""
    ends = max(
        (op.last_time for op in dataflow.timed_operators.values() if isinstance(op, DerivedStreamOperator)),
        default=ALWAYS,
    )
    if ends > ALWAYS:
        yield Watermark(latest_end=ends)
    yield from dataflow.report_records()


def state_watermark(span: Span, state: State) -> int:
    """Returns the time before which no row begins that is still to come, after a span without further iterations
    (integer ms). State that ends before may be dropped. At the end of all sources the time is not known yet."""
    return state.watermark if span.end == FOREVER - 1 else max(state.watermark, span.end)


def buffered_batches(program: Program, later_batches: Sequence[RowBatch]) -> Iterable[RowBatch]:
    """Returns row batches as they are buffered, whichever tasks they have come to."""
    if not later_batches or not (program.physical.broadcast_inputs or program.physical.skewed_keys):
        return later_batches
    return chain.from_iterable(map(program.router().buffered, later_batches))


def partition_input(
    row_batches: Iterable[RowBatch], bucket_partitions: BucketPartitions
) -> tuple[int | None, dict[tuple[int, int], list[Delta]]]:
    """Returns the partition of row batches (None: there are none), and their deltas by number of the node and input.
    Raises AssertionError if they are of several partitions."""
    deltas: dict[tuple[int, int], list[Delta]] = {}
    buckets: set[int] = set()
    for _, _, bucket, node, port, batch_deltas in row_batches:
        buckets.add(bucket_partitions[bucket])
        if port != WAKE_PORT:
            deltas.setdefault((node, port), []).extend(batch_deltas)
    if len(buckets) > 1:
        raise AssertionError(f"rows of the partitions {sorted(buckets)} in one task")
    return next(iter(buckets), None), deltas


class _Partition(Dataflow):
    """A dataflow for the buckets of one partition in some stages. Rows for other partitions and stages go to the
    outbox.

    Others decide when snapshots that are derived here are evaluated.
    """

    def __init__(
        self, program: Program, stages: Sequence[Stage], bucket_partitions: BucketPartitions, partition: int
    ) -> None:
        super().__init__(program.plan, hosted={id for stage in stages for id in stage.nodes})
        self.router = program.router()
        self.bucket_partitions = bucket_partitions
        self.partition = partition
        self.moves = len(set(bucket_partitions)) > 1 and any(stage.recursive for stage in stages)
        """Whether rows are shuffled inside of these stages."""
        self.instants = ReportSchedules({})
        self.states = StateRegistry((id, memory) for id, memory in self.states.items() if id in self.plan.by_id)
        self.rstream_nodes = rstream_nodes(program.plan)
        """The nodes that output snapshots, here or elsewhere."""
        self.notes: dict[Instant, None] = {}
        """What the driver needs to know of streams that are derived here and may decide when a snapshot is
        evaluated."""
        if len(set(bucket_partitions)) > 1:
            self._restrict_operators()

    def _restrict_operators(self) -> None:
        """Restricts what operators output without rows of this partition, or of rows that all partitions have."""
        for id, op in self.operators.items():
            if _outputs_without_input(self.plan.by_id[id].op) and not self._is_here((id, 0), ()):
                self.timed_operators.pop(id, None)
            if isinstance(op, TransitiveClosureOperator) and (id, 0) not in self.router.key_functions:
                op.restrict_to(self._is_own)

    def _is_own(self, node: str) -> bool:
        """Returns whether the closure pairs that begin at a node are here."""
        return self.bucket_partitions[bucket_of(node)] == self.partition

    def _is_here(self, address: Address, row: Sequence[str | None]) -> bool:
        bucket = self.router.bucket(address, row)
        return bucket == BROADCAST_BUCKET or self.bucket_partitions[bucket] == self.partition

    def evaluate(self, instants: Mapping[str, Sequence[int]]) -> None:
        """Sets the instants at which derived snapshots are evaluated (integer ms), by the nodes that derive them."""
        for id, op in self.timed_operators.items():
            if isinstance(op, DerivedStreamOperator) and op.emitter.instants is not None:
                op.instants = instants.get(id, ())

    def report_records(self) -> Iterable[Instant]:
        """Returns, since the last call, when derived streams brought something and count windows moved on."""
        notes, self.notes = self.notes, {}
        return notes

    def _advance(self, id: str, op: TimedOperator, now: int) -> None:
        if not (self.rstream_nodes and isinstance(op, DerivedStreamOperator)):
            super()._advance(id, op, now)
            return
        positions = op.reader.positions
        super()._advance(id, op, now)
        events = op.events if id in self.layout.stream_leaders else ()
        self.notes |= dict.fromkeys(stream_activity(event.stream, event.graph, event.time) for event in events)
        self.notes |= dict.fromkeys(sequential_evaluations(self.rstream_nodes, op.reader.source, positions, op.events))

    def live_deltas(self, watermark: int) -> Iterator[tuple[Address, list[Delta]]]:
        """Yields the changes of the state since the last call that may matter from a time on (integer ms)."""
        for id, slot, deltas in self.states.drain_changelog():
            yield (id, slot), live_deltas(deltas, watermark, self.states[id].key_width(slot))

    def put(self, address: Address, deltas: Sequence[Delta]) -> None:
        if not self.moves or address in self.router.replicated_inputs or address[0] not in self.operators:
            super().put(address, deltas)
            return
        if address not in self.router.key_functions:  # it is broadcast to all tasks, this one included
            self.outbox.setdefault(address, []).extend(deltas)
            return
        local_deltas: list[Delta] = []
        for delta in deltas:
            local = self._is_here(address, delta[:-3])
            (local_deltas if local else self.outbox.setdefault(address, [])).append(delta)
        if local_deltas:
            self.receive(address, local_deltas)

    def run_phase(self, phase: str, now: int) -> None:
        """Runs one phase of every component, until nothing is left to do here."""
        if phase == FORWARD:
            self.run(now)
            return
        self.creation_limits.begin()
        if phase == REDERIVE:
            for component in self.plan.components:
                self.rederive(component)
        self._wake(now, self.timed_operators)
        for component in self.ready_components():
            if phase == DELETE:
                self.delete(component)
            else:
                self.fixpoint(component)
            if component[0] in self.timed_operators:
                self._advance(component[0], self.timed_operators[component[0]], now)


class _ProfiledPartition(_Partition, ProfiledDataflow):
    """A partition that counts and times its nodes."""


# State


def compaction(program: Program, watermark: int) -> WorkerStep:
    """Returns the worker's function that adds up the state of nodes and drops what has expired. watermark: everything
    to come begins at this time or later (integer ms)."""
    return program.step("compaction", partial(_compacted, program, watermark))


def _compacted(program: Program, watermark: int, row_batches: Iterable[RowBatch]) -> Iterator[RowBatch]:
    slots: dict[tuple[int, int], list[Delta]] = {}
    for row_batch in row_batches:
        slots.setdefault((row_batch.node, row_batch.port), []).extend(row_batch.deltas)
    router = program.router()
    memories = Dataflow(program.plan).states
    for (number, slot), deltas in slots.items():
        id = router.ids[number]
        yield from router.state_batches(id, slot, compact_deltas(deltas, watermark, memories[id].key_width(slot)))
