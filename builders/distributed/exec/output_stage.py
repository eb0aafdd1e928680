"""The end of a micro-batch in a distributed builder: of what the operation nodes were told, the answers they hand on.

Answers are spread as their rows lie. Each task puts its part in order, and the parts are merged where they are told.
What the whole of an answer decides (whether it has changed, whether it is empty) the driver says, of instants alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

from squall.builders.distributed.exec.report_times import ReportTimes, changes_only, evaluated
from squall.builders.distributed.exec.routing import DELIVER, PhysicalPlan
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import (
    PLAIN,
    Span,
    behind,
    figure_messages,
    gathered,
    here,
    in_time,
    name_of,
    waiting,
    worked_off,
)
from squall.builders.distributed.io.records import ROW, Answers, Made, Record, RowBatch, Step
from squall.builders.distributed.plan.stages import Stage
from squall.builders.runtime.operators import output_operator
from squall.builders.runtime.operators.output import AppendOnlyOutput, OutputOperator
from squall.builders.runtime.serde import pack_outputs, unpack_output, unpack_outputs
from squall.builders.runtime.state import lasting
from squall.contracts import Output
from squall.model import CLOSE
from squall.plan.node_metrics import NodeMetric
from squall.plan.operators import Sink as DeliverNode
from squall.rdf import ALWAYS, FOREVER, Evaluated

AtWork = OutputOperator | AppendOnlyOutput


def delivery(program: PhysicalPlan, span: Span, evaluations: ReportTimes, state: State) -> Step:
    """The worker's function that ends a batch: new state, and answers out (`Answers`). state: of the operation
    nodes."""
    return program.step("end", partial(_delivered, program, span, evaluations, state), [DELIVER])


def changing(program: PhysicalPlan, span: Span, evaluations: ReportTimes, state: State) -> Step:
    """The worker's function that says, as messages of kind ``instant``, at which instants its part of an answer has
    changed, of those that are told only where they have."""
    return program.step("what has changed", partial(_changes, program, span, evaluations, state))


def whole(program: PhysicalPlan, span: Span, evaluations: ReportTimes, state: State, end: State) -> Step:
    """The worker's function for a batch that one task works off: `superstep` for all levels, then `delivery`; and,
    since it has all of each answer, what `changing` says. state: of the levels; end: of the operation nodes."""
    work = partial(worked_and_told, program, program.levels, span, evaluations, state, end)
    return program.step("all levels and the end", work)


def last_levels(
    program: PhysicalPlan, levels: Sequence[Stage], span: Span, evaluations: ReportTimes, state: State, end: State
) -> Step:
    """The worker's function for levels whose rows are told where they lie: `superstep`, then `delivery`. state: of the
    levels; end: of the operation nodes, none of which is told only where all of it has changed."""
    work = partial(worked_and_told, program, levels, span, evaluations, state, end)
    return program.step(f"{name_of(levels, PLAIN)} and the end", work, [*(level.number for level in levels), DELIVER])


def worked_and_told(
    program: PhysicalPlan,
    levels: Sequence[Stage],
    span: Span,
    evaluations: ReportTimes,
    state: State,
    end: State,
    row_batches: Iterable[RowBatch],
) -> Iterator[Made]:
    """What messages of a partition lead to on these levels, and what is told of it, which lies there. Messages whose
    time has not come are handed on as they are."""
    output_batches: list[RowBatch] = []
    stage_batches: list[RowBatch] = []
    outbox = here if len({*state.owners}) == 1 else None
    span, now, later_batches = in_time(row_batches, span)
    yield from waiting(program, later_batches)
    for parcel in now:
        (output_batches if parcel.level == DELIVER else stage_batches).append(parcel)
    for record in worked_off(program, levels, PLAIN, span, state, stage_batches, outbox=outbox):
        if isinstance(record, RowBatch) and record.kind == ROW:
            output_batches.append(record)
        else:
            yield record
    changes = list(_changes(program, span, evaluations, end, output_batches))
    yield from changes
    reported = evaluations.reported(program.plan, {(message.node, message.start) for message in changes})
    yield from _delivered(program, span, reported, end, output_batches)


def _delivered(
    program: PhysicalPlan, span: Span, evaluations: ReportTimes, state: State, row_batches: Iterable[RowBatch]
) -> Iterator[Made]:
    span, now, later_batches = in_time(row_batches, span)
    yield from later_batches
    partition, fresh = gathered(now, state.owners)
    if partition is None:
        return
    addressing = program.addressing()
    cached, since = state.take(partition)
    operators: dict[int, AtWork] = cached or _operators(program)
    state_deltas = state.entries(since, partition)
    upto = span.now if program.whole_instants else FOREVER - 1
    for node, _ in program.plan.sinks:
        number = addressing.numbers[node.id]
        at_work = operators[number]
        at_work.log = None
        for slot in (0, 1):
            at_work.restore(slot, state_deltas.get((number, slot), []))
        at_work.flush(span.before, ())
        if state.keep and at_work.remembers:
            at_work.keep()
        if arrived := fresh.get((number, 0)):
            at_work.apply(0, arrived)
        outputs = _told(at_work, upto, evaluations.instants.get(number, ()))
        if program.measure:
            yield from figure_messages(program, {node.id: NodeMetric(rows=len(outputs))})
        if outputs:
            places, outputs_only = zip(*outputs, strict=True)
            yield Answers(DELIVER, number, pack_outputs(outputs_only), [output.time for output in outputs_only], places)
        watermark = behind(span, state)
        for slot, entries in at_work.kept():
            yield from addressing.state(node.id, slot, lasting(entries, watermark, at_work.together(slot)))
        at_work.expire(watermark)
    if state.keep:
        yield state.put(partition, operators, sum(at_work.size() for at_work in operators.values()))


def _told(at_work: AtWork, now: int, instants: Sequence[int]) -> Sequence[tuple[str, Output]]:
    """What an operation node tells up to a time, each with its place."""
    if isinstance(at_work, OutputOperator) and at_work.instants is not None:
        return at_work.with_places(now, instants)
    return list(zip(repeat(""), at_work.flush(now, instants)))


def _operators(program: PhysicalPlan) -> dict[int, AtWork]:
    """The operation nodes as they begin, by number. Whether something is reported has been decided, and that all has
    been told is for the driver to say."""
    numbers = program.addressing().numbers
    return {
        numbers[node.id]: output_operator(
            node, replace(op, queries=(), report=CLOSE if changes_only(op) else op.report), program.plan
        )
        for node, op in program.plan.sinks
    }


def _changes(
    program: PhysicalPlan, span: Span, evaluations: ReportTimes, state: State, row_batches: Iterable[RowBatch]
) -> Iterator[Record]:
    changing_sinks = [(node, op) for node, op in program.plan.sinks if changes_only(op)]
    partition, fresh = gathered(in_time(row_batches, span).now, state.owners) if changing_sinks else (None, {})
    if partition is None:
        return
    numbers = program.addressing().numbers
    state_deltas = state.entries(state.versions, partition)
    for node, op in changing_sinks:
        number = numbers[node.id]
        at_work = output_operator(node, op, program.plan)
        assert isinstance(at_work, OutputOperator)
        at_work.restore(0, state_deltas.get((number, 0), []))
        last = evaluations.last.get(number, ALWAYS - 1)
        at_work.flush(span.before, (last,) if last >= ALWAYS else ())
        at_work.apply(0, fresh.get((number, 0), []))
        for time in at_work.changed_at(evaluations.instants.get(number, ())):
            yield evaluated(number, time)


# What the driver hands on


def told_whole(
    answers: Iterator[tuple[int, int, str]], deliveries: Mapping[int, DeliverNode], evaluations: ReportTimes
) -> Iterator[Output]:
    """The outputs in order, and behind all those of an evaluation, for queries that are told so, that they are all."""
    waiting = sorted(
        (time, number) for number, times in evaluations.instants.items() if deliveries[number].queries for time in times
    )
    if not waiting:
        yield from unpack_outputs(answers)
        return
    last: tuple[int, int] | None = None
    place = 0
    for time, number, text in answers:
        while place < len(waiting) and waiting[place] < (time, number):
            yield from _complete(waiting[place], deliveries, waiting[place] == last)
            place += 1
        last = time, number
        yield unpack_output(text, time)
    for evaluation in waiting[place:]:
        yield from _complete(evaluation, deliveries, evaluation == last)


def _complete(
    evaluation: tuple[int, int], deliveries: Mapping[int, DeliverNode], is_reported: bool
) -> Iterator[Output]:
    """That all of an evaluation has been told. told: there was something to tell."""
    time, number = evaluation
    op = deliveries[number]
    if is_reported or op.report.policy != "nonempty":
        for query, names in op.queries:
            yield Output(Evaluated(names), time, query)
