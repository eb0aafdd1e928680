"""The operators of the runtime: what each node of a plan does to deltas, for every builder.

An operator receives deltas (`squall.builders.runtime.zset`) on its inputs (ports) and returns deltas. Joins are
bilinear and most other operators are linear. Deltas may therefore come in any order and in any batches, and add up to
what the plan means at every instant (snapshot reducibility, semantics.md 3; Budiu et al., "DBSP", 2023). Only
`GroupOperator`, `SliceOperator` and the outputs of a plan process complete instants, in the order of time
(`squall.builders.runtime.operators.event_time`).

The state of an operator consists of deltas, too: `drain_changelog` returns those that were added, and `restore` loads
them. A distributed builder stores and moves state that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from squall.builders.runtime.operators import stateless
from squall.builders.runtime.operators.consume import ConsumeOperator
from squall.builders.runtime.operators.delta_index import Merging
from squall.builders.runtime.operators.derived_stream import DerivedStreamOperator, OccurrenceStreamOperator
from squall.builders.runtime.operators.distinct import (
    AppendOnlyDistinct,
    DeadlineOperator,
    DRedDistinct,
    RetractableDistinct,
    TimeDependentOperator,
    TransitiveClosureOperator,
)
from squall.builders.runtime.operators.event_time import GroupOperator, SliceOperator
from squall.builders.runtime.operators.gate import GateOperator
from squall.builders.runtime.operators.iteration import IterationOperator
from squall.builders.runtime.operators.join import AntiJoinOperator, JoinOperator, LeftJoinOperator
from squall.builders.runtime.operators.multiway_join import MultiwayJoinOperator
from squall.builders.runtime.operators.output import (
    AppendOnlyOutput,
    AppendOnlySolutionOutput,
    OutputOperator,
    SinkOperator,
)
from squall.builders.runtime.operators.sequence_join import SequenceJoinOperator
from squall.builders.runtime.operators.stateless import StatelessOperator
from squall.builders.runtime.operators.temporal import AtOperator, DilateOperator, ErodeOperator, ScheduleOperator
from squall.builders.runtime.operators.update import UpdateOperator
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta
from squall.functions.deadlines import time_operands
from squall.model import CLOSE, Occurrences
from squall.plan import Node, Plan
from squall.plan import operators as ops


class Operator(Protocol):
    """One node of a plan at work."""

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        """Processes deltas of an input and returns deltas of the node's rows. The given deltas are not changed."""
        ...


def make_operator(node: Node, plan: Plan, tuning: Tuning = DEFAULT_TUNING) -> Operator:
    """Returns the operator of a node of a plan."""
    # One case for each operator, so that the type checker finds a plan's operator that has none here.
    op = node.op
    widths = [plan.widths[edge.node] for edge in node.inputs]
    append_only = not any(edge.node in plan.retractable for edge in node.inputs)
    match op:
        case ops.Scan() | ops.Unit() | ops.Union():
            return StatelessOperator(stateless.identity)
        case ops.Match():
            return StatelessOperator(stateless.match_step(op.cells))
        case ops.Filter(timed=True) if operands := time_operands(op.expression):
            return DeadlineOperator(op, operands, widths[0], tuning)
        case ops.Filter() | ops.Extend() if ops.is_time_dependent(op):
            return TimeDependentOperator(op, widths[0], tuning)
        case ops.Filter():
            return StatelessOperator(stateless.filter_step(op))
        case ops.Extend():
            return StatelessOperator(stateless.extend_step(op))
        case ops.TableFunction():
            return StatelessOperator(stateless.table_function_step(op))
        case ops.Project():
            return StatelessOperator(stateless.project_step(op, widths[0]))
        case ops.ConstantFilter():
            return StatelessOperator(stateless.constant_filter_step(op))
        case ops.Construct(template=template, rules=rules):
            return StatelessOperator(
                stateless.construct_step(template, rules, widths[0], plan.unbound[node.inputs[0].node])
            )
        case ops.Update():
            return UpdateOperator(op)
        case ops.Select():
            return StatelessOperator(stateless.select_step(op, widths[0], _emits_snapshots(node, plan)))
        case ops.Join():
            return JoinOperator(op, (widths[0], widths[1]), append_only, merging_of(node, plan), tuning)
        case ops.MultiwayJoin():
            return MultiwayJoinOperator(op, widths, merging_of(node, plan), tuning)
        case ops.LeftJoin():
            return LeftJoinOperator(op, (widths[0], widths[1]), append_only, merging_of(node, plan), tuning)
        case ops.AntiJoin():
            return AntiJoinOperator(op, widths[0], node.inputs[1].node not in plan.retractable, tuning)
        case ops.Gate():
            return GateOperator(op, tuning)
        case ops.Iteration():
            return IterationOperator(op, len(widths), tuning)
        case ops.SequenceJoin():
            return SequenceJoinOperator(op, len(widths), tuning)
        case ops.Dilate():
            return DilateOperator(op, widths[0], tuning)
        case ops.Erode():
            return ErodeOperator(op, widths[0], tuning)
        case ops.At():
            return AtOperator(op, widths[0], tuning)
        case ops.Schedule():
            return ScheduleOperator(op, widths[0], tuning)
        case ops.Group():
            return GroupOperator(op)
        case ops.Slice():
            return SliceOperator(op)
        case ops.Consume():
            return ConsumeOperator(op, tuning)
        case ops.TransitiveClosure():
            return TransitiveClosureOperator(tuning)
        case ops.Distinct(by=by):
            return _distinct(node, by, plan, tuning)
        case ops.DerivedStream() if _emits_moments(node, op, plan):
            return OccurrenceStreamOperator(op, tuning)
        case ops.DerivedStream():
            return DerivedStreamOperator(op, plan.deletes, tuning)
        case ops.Sink():
            return make_output_operator(node, op, plan, tuning)


def _emits_moments(node: Node, op: ops.DerivedStream, plan: Plan) -> bool:
    """Returns whether a derived stream of occurrences outputs each row that is valid at one instant then, and once."""
    windows = [window for source in op.sources for window in source.all_windows if not window.is_empty]
    return (
        isinstance(op.source, Occurrences)
        and not op.source.window.is_sequential
        and not op.source.follows_links
        and op.output == "rstream"
        and op.report == CLOSE
        and all(window.is_momentary for window in windows)
        and not any(edge.node in plan.retractable for edge in node.inputs)
        and not plan.deletes
        and not plan.is_time_dependent
    )


def _emits_snapshots(answer: Node, plan: Plan) -> bool:
    """Returns whether an output emits all solutions of a query at an instant."""
    consumers = (plan.by_id[id].op for id, _ in plan.consumers[answer.id])
    return any(isinstance(op, ops.Sink) and op.output == "rstream" for op in consumers)


def make_output_operator(node: Node, op: ops.Sink, plan: Plan, tuning: Tuning = DEFAULT_TUNING) -> SinkOperator:
    """Returns the operator of an output node of a plan."""
    if op.output != "istream" or node.id in plan.retractable or op.report.is_periodic:
        return OutputOperator(op)
    are_solutions = [isinstance(plan.by_id[edge.node].op, ops.Select) for edge in node.inputs]
    if any(are_solutions):
        return AppendOnlySolutionOutput(op, not all(are_solutions), plan.has_expiring_windows, tuning)
    return AppendOnlyOutput(op, op.distinct or plan.has_expiring_windows, tuning)


def merging_of(join: Node, plan: Plan) -> Merging:
    """Returns which deltas of one row the indexes of a join store as one."""
    retractable = any(edge.node in plan.retractable for edge in join.inputs)
    if not retractable and not plan.has_expiring_windows:
        return Merging.NEVER
    if retractable or join.id in plan.multiplicity_sensitive:
        return Merging.ADJOINING
    return Merging.UNION


def _distinct(node: Node, by: int, plan: Plan, tuning: Tuning) -> Operator:
    if node.id not in plan.retractable:
        return AppendOnlyDistinct(by, tuning)
    recursive = any(node.id in component and len(component) > 1 for component in plan.components)
    return DRedDistinct(by, tuning) if recursive else RetractableDistinct(by, tuning)
