"""The output stage of a micro-batch: from the rows of the sink nodes to the outputs of the batch.

Outputs are partitioned as their rows are. Each task sorts its part, and the parts are merged where they are read. The
driver decides what depends on a whole answer (whether it has changed, or is empty), from instants alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.report_times import ReportTimes, evaluation_record
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import (
    FORWARD,
    Span,
    buffered_batches,
    local_outbox,
    metric_records,
    partition_input,
    run_stages,
    stage_name,
    state_watermark,
    timely_batches,
)
from squall.builders.distributed.io.records import ROW, Instant, OutputBatch, RowBatch, WorkerOutput, WorkerStep
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE
from squall.builders.distributed.plan.snapshot_nodes import reports_on_change
from squall.builders.distributed.plan.stages import Stage
from squall.builders.runtime.operators import make_output_operator
from squall.builders.runtime.operators.output import OutputOperator, SinkOperator
from squall.builders.runtime.serde import pack_outputs, unpack_output, unpack_outputs
from squall.builders.runtime.state import live_deltas
from squall.contracts import Output
from squall.model import CLOSE
from squall.plan.node_metrics import NodeMetric
from squall.plan.operators import Sink as DeliverNode
from squall.rdf import ALWAYS, FOREVER, Evaluated


def output_step(program: Program, span: Span, report_times: ReportTimes, state: State) -> WorkerStep:
    """Returns the worker's function that ends a batch: it outputs new state and the outputs (`OutputBatch`). state:
    that of the sink nodes."""
    return program.step("end", partial(_run_output, program, span, report_times, state), [OUTPUT_STAGE])


def change_step(program: Program, span: Span, report_times: ReportTimes, state: State) -> WorkerStep:
    """Returns the worker's function that reports, as records of type ``instant``, when its part of an answer has
    changed, of answers that are output only on change."""
    return program.step("what has changed", partial(_changes, program, span, report_times, state))


def last_stages_step(
    program: Program, stages: Sequence[Stage], state: State, span: Span, report_times: ReportTimes, end: State
) -> WorkerStep:
    """Returns the worker's function for stages whose rows need no shuffle for the output: `stage_step`, then
    `output_step`.

    Args:
        program: the physical plan.
        stages: the stages.
        state: the state of the stages.
        span: the time that passes.
        report_times: when snapshots are evaluated.
        end: the state of the sink nodes, none of which outputs only on change.
    """
    work = partial(processed_with_outputs, program, stages, span, report_times, state, end)
    return program.step(
        f"{stage_name(stages, FORWARD)} and the end", work, [*(stage.number for stage in stages), OUTPUT_STAGE]
    )


def processed_with_outputs(
    program: Program,
    stages: Sequence[Stage],
    span: Span,
    report_times: ReportTimes,
    state: State,
    end: State,
    row_batches: Iterable[RowBatch],
) -> Iterator[WorkerOutput]:
    """Yields what the row batches of a partition lead to in some stages, and the outputs of that. Rows whose time has
    not come are passed on to be buffered."""
    output_batches: list[RowBatch] = []
    stage_batches: list[RowBatch] = []
    outbox = local_outbox if len({*state.bucket_partitions}) == 1 else None
    span, now, later_batches = timely_batches(row_batches, span)
    yield from buffered_batches(program, later_batches)
    for row_batch in now:
        (output_batches if row_batch.stage == OUTPUT_STAGE else stage_batches).append(row_batch)
    for record in run_stages(program, stages, FORWARD, span, state, stage_batches, outbox=outbox):
        if isinstance(record, RowBatch) and record.type == ROW:
            output_batches.append(record)
        else:
            yield record
    changes = list(_changes(program, span, report_times, end, output_batches))
    yield from changes
    reported = report_times.reported(program.plan, {(instant.node, instant.time) for instant in changes})
    yield from _run_output(program, span, reported, end, output_batches)


def _run_output(
    program: Program, span: Span, report_times: ReportTimes, state: State, row_batches: Iterable[RowBatch]
) -> Iterator[WorkerOutput]:
    span, now, later_batches = timely_batches(row_batches, span)
    yield from later_batches
    partition, fresh = partition_input(now, state.bucket_partitions)
    if partition is None:
        return
    router = program.router()
    cached, since = state.take(partition)
    operators: dict[int, SinkOperator] = cached or _sink_operators(program)
    state_deltas = state.read_deltas(since, partition)
    upto = span.end if program.needs_complete_instants else FOREVER - 1
    for node, _ in program.plan.sinks:
        number = router.numbers[node.id]
        operator = operators[number]
        operator.log = None
        operator.resume_at(span.start)
        for slot in (0, 1):
            operator.restore(slot, state_deltas.get((number, slot), []))
        operator.flush(span.start, ())
        if state.keep and operator.remembers:
            operator.enable_changelog()
        if arrived := fresh.get((number, 0)):
            operator.apply(0, arrived)
        outputs = _outputs_of(operator, upto, report_times.instants.get(number, ()))
        if program.measure:
            yield from metric_records(program, {node.id: NodeMetric(rows=len(outputs))})
        if outputs:
            places, outputs_only = zip(*outputs, strict=True)
            yield OutputBatch(number, pack_outputs(outputs_only), [output.time for output in outputs_only], places)
        watermark = state_watermark(span, state)
        for slot, deltas in operator.drain_changelog():
            yield from router.state_batches(node.id, slot, live_deltas(deltas, watermark, operator.key_width(slot)))
        operator.expire(watermark)
    if state.keep:
        yield state.put(partition, operators, sum(operator.size() for operator in operators.values()))


def _outputs_of(operator: SinkOperator, now: int, instants: Sequence[int]) -> Sequence[tuple[str, Output]]:
    """Returns the outputs of a sink node up to a time, each with its position."""
    if isinstance(operator, OutputOperator) and operator.instants is not None:
        return operator.flush_ranked(now, instants)
    return list(zip(repeat(""), operator.flush(now, instants)))


def _sink_operators(program: Program) -> dict[int, SinkOperator]:
    """Returns the new operators of the sink nodes, by number. Whether an answer is output has been decided before, and
    the driver says that it is complete."""
    numbers = program.physical.numbers
    return {
        numbers[node.id]: make_output_operator(
            node, replace(op, queries=(), report=CLOSE if reports_on_change(op) else op.report), program.plan
        )
        for node, op in program.plan.sinks
    }


def _changes(
    program: Program, span: Span, report_times: ReportTimes, state: State, row_batches: Iterable[RowBatch]
) -> Iterator[Instant]:
    changing_sinks = [(node, op) for node, op in program.plan.sinks if reports_on_change(op)]
    partition, fresh = (
        partition_input(timely_batches(row_batches, span).now, state.bucket_partitions)
        if changing_sinks
        else (None, {})
    )
    if partition is None:
        return
    numbers = program.physical.numbers
    state_deltas = state.read_deltas(state.versions, partition)
    for node, op in changing_sinks:
        number = numbers[node.id]
        operator = make_output_operator(node, op, program.plan)
        assert isinstance(operator, OutputOperator)
        operator.restore(0, state_deltas.get((number, 0), []))
        previous = report_times.previous.get(number, ALWAYS - 1)
        operator.flush(span.start, (previous,) if previous >= ALWAYS else ())
        operator.apply(0, fresh.get((number, 0), []))
        for time in operator.changed_at(report_times.instants.get(number, ())):
            yield evaluation_record(number, time)


# What the driver outputs


def snapshot_outputs(
    answers: Iterator[tuple[int, int, str]], deliveries: Mapping[int, DeliverNode], report_times: ReportTimes
) -> Iterator[Output]:
    """Yields the outputs in order. For queries that want it, a marker after all outputs of an evaluation says that they
    are complete."""
    pending = sorted(
        (time, number)
        for number, times in report_times.instants.items()
        if deliveries[number].queries
        for time in times
    )
    if not pending:
        yield from unpack_outputs(answers)
        return
    last: tuple[int, int] | None = None
    place = 0
    for time, number, text in answers:
        while place < len(pending) and pending[place] < (time, number):
            yield from _completion_outputs(pending[place], deliveries, pending[place] == last)
            place += 1
        last = time, number
        yield unpack_output(text, time)
    for evaluation in pending[place:]:
        yield from _completion_outputs(evaluation, deliveries, evaluation == last)


def _completion_outputs(
    evaluation: tuple[int, int], deliveries: Mapping[int, DeliverNode], is_reported: bool
) -> Iterator[Output]:
    """Yields the markers that an evaluation is complete. is_reported: whether it had outputs."""
    time, number = evaluation
    op = deliveries[number]
    if op.report.marks_end(is_reported):
        for query, names in op.queries:
            yield Output(Evaluated(names), time, query)
