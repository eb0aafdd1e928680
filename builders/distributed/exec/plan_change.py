"""The change of a plan between two micro-batches: one task looks at the whole state, or moves it to another plan.

State belongs to nodes, and joins are other nodes in the other plan (`squall.builders.runtime.replanning`). What nodes
other than joins have stored stays as it is, and gets the numbers of their nodes in the other plan. New joins are filled
with the rows of their inputs. All rows go to the buckets that the other plan partitions them by. (Plans that tasks run
as a whole move in `squall.builders.distributed.exec.sharded_plan`.)

Rows that wait until their instant is complete are those of the inputs that they wait for. An input of the other plan
gets the rows that have the same producer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.routing import WAKE_PORT
from squall.builders.distributed.io.engine import TaskReport
from squall.builders.distributed.io.records import (
    STATE,
    PlanReport,
    RowBatch,
    WorkerRecord,
    WorkerStep,
)
from squall.builders.distributed.plan.partitioning import Address, producers_of
from squall.builders.distributed.plan.physical_plan import PhysicalPlan
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.operators import make_operator
from squall.builders.runtime.operators.delta_index import StoresInputs
from squall.builders.runtime.operators.stateless import StatelessOperator
from squall.builders.runtime.replanning import CannotReplan, Replanned, replanned
from squall.builders.runtime.state import compact_deltas
from squall.builders.runtime.state_statistics import state_statistics
from squall.builders.runtime.zset import Delta
from squall.plan import Plan
from squall.plan.cardinality import Statistics
from squall.plan.equivalence import RowDigests, is_conjunctive
from squall.process.recursion import deep_recursion

StoredRows = dict[tuple[int, int], list[Delta]]
"""Deltas by number of the node, and number of the slot or input."""


# A look at the state


def statistics_step(program: Program, watermark: int) -> WorkerStep:
    """Returns the worker's function that reports the statistics of the data in the state. watermark: see
    `StagedProgress.state_watermark`."""
    return program.step("a look at the state", partial(_statistics, program, watermark))


def _statistics(program: Program, watermark: int, row_batches: Iterable[RowBatch]) -> Iterator[WorkerRecord]:
    dataflow = Dataflow(program.plan)
    restore_joins(dataflow, [node.id for node in program.plan.nodes], rows_by_type(row_batches)[0])
    yield statistics_report(dataflow, watermark)


def statistics_report(dataflow: Dataflow, watermark: int) -> PlanReport:
    """Returns the report of the statistics of what the joins of a dataflow have stored, as far as it is valid at the
    watermark (integer ms) or later."""
    with deep_recursion():
        return PlanReport(json.dumps(state_statistics(dataflow, watermark).data))


def statistics_of(report: TaskReport) -> Statistics:
    """Returns the statistics that the task of a look has reported."""
    (plan_report,) = report.all(PlanReport)
    return Statistics.of_data(json.loads(plan_report.text))


def rows_by_type(row_batches: Iterable[RowBatch]) -> tuple[StoredRows, StoredRows]:
    """Returns the deltas of state, and those of rows on their way."""
    state: StoredRows = {}
    rows: StoredRows = {}
    for row_batch in row_batches:
        deltas = state if row_batch.type == STATE else rows
        deltas.setdefault((row_batch.node, row_batch.port), []).extend(row_batch.deltas)
    return state, rows


def restore_joins(dataflow: Dataflow, ids: Sequence[str], state: StoredRows) -> None:
    """Restores the operators of a new dataflow that store the rows of their inputs. ids: the nodes by number."""
    for (number, slot), deltas in sorted(state.items()):
        operator = dataflow.operators.get(ids[number])
        if isinstance(operator, StoresInputs):
            operator.restore(slot, deltas)


# A move


def check_processing(before: PhysicalPlan, after: PhysicalPlan) -> None:
    """Raises CannotReplan if two plans of a program are not processed in the same way."""
    if (
        replace(before.strategy, reasons=()) != replace(after.strategy, reasons=())
        or before.needs_complete_instants != after.needs_complete_instants
        or before.ordered_scan != after.ordered_scan
    ):
        raise CannotReplan("the plans are processed in different ways")


def refusal_report(error: CannotReplan) -> PlanReport:
    """Returns the report of a task that cannot move its state."""
    return PlanReport(json.dumps({"refused": error.message}))


def move_results(report: TaskReport) -> list[Any]:
    """Returns what the tasks of a move have reported, as JSON values.

    Raises:
        CannotReplan: a task cannot move its state.
    """
    results = [json.loads(plan_report.text) for plan_report in report.all(PlanReport)]
    for result in results:
        if "refused" in result:
            raise CannotReplan(result["refused"])
    return results


@dataclass(frozen=True)
class PlanMove:
    """A move of the state of a job to another plan of the same program.

    Attributes:
        before: the program with the present plan.
        after: the program with the other one.
        logical_before: the present plan without multiway joins.
        logical: the other one without multiway joins.
        watermark: the time before which no row that is still to come begins to hold (integer ms).
        processed_until: the instants up to this time have been processed (integer ms).
    """

    before: Program
    after: Program
    logical_before: Plan
    logical: Plan
    watermark: int
    processed_until: int

    def step(self) -> WorkerStep:
        """Returns the worker's function that moves the state and the buffered rows. It reports the number that each
        node without a new join has in the other plan, by the present one; or why the state cannot be moved."""
        return self.after.step("a move to another plan", self._records)

    def _records(self, row_batches: Iterable[RowBatch]) -> Iterator[WorkerRecord]:
        self.before.prepare()
        state, waiting = rows_by_type(row_batches)
        try:
            with deep_recursion():
                check_processing(self.before.physical, self.after.physical)
                dataflow = Dataflow(self.before.plan)
                restore_joins(dataflow, [node.id for node in self.before.plan.nodes], state)
                dataflow.states.enable_changelog()
                result = replanned(
                    dataflow, self.logical_before, self.logical, self.watermark, executed=self.after.plan
                )
                buffered = self._buffered(waiting, result.old_nodes)
        except CannotReplan as error:
            yield refusal_report(error)
            return
        before, after = self.before.physical.numbers, self.after.physical.numbers
        yield PlanReport(json.dumps({"numbers": {before[old]: after[id] for id, old in result.old_nodes.items()}}))
        router = self.after.router()
        for id, slot, deltas in self._moved_state(state, result):
            key_width = result.dataflow.states[id].key_width(slot)
            yield from router.state_batches(id, slot, compact_deltas(deltas, self.watermark, key_width))
        for address, deltas in buffered.items():
            yield from router.buffered_batches(address, deltas)

    def _moved_state(self, state: StoredRows, result: Replanned) -> Iterator[tuple[str, int, Sequence[Delta]]]:
        """Yields (node, slot, deltas) of the state of the other plan."""
        numbers = self.before.physical.numbers
        slots: dict[int, dict[int, list[Delta]]] = {}
        for (number, slot), deltas in state.items():
            slots.setdefault(number, {})[slot] = deltas
        for key, old_key in result.old_keys.items():
            if key not in self.after.physical.numbers:  # a state of the whole process: tasks have none
                continue
            stored = result.dataflow.states[key].drain_changelog() if old_key is None else ()
            old_slots = slots.get(numbers[old_key], {}) if old_key is not None else dict(stored)
            yield from ((key, slot, deltas) for slot, deltas in old_slots.items())

    # Buffered rows

    def _buffered(self, waiting: StoredRows, old_nodes: Mapping[str, str]) -> dict[Address, Sequence[Delta]]:
        """Returns the rows that wait for the inputs of the other plan.

        Args:
            waiting: those that wait for inputs of the present one, and others that have been processed.
            old_nodes: for nodes of the other plan that are no new joins, the equivalent ones of the present plan.
        """
        ids = [node.id for node in self.before.plan.nodes]
        rows = {
            (ids[number], port): [delta for delta in deltas if delta[-3] > self.processed_until]
            for (number, port), deltas in waiting.items()
            if port != WAKE_PORT
        }
        if not any(rows.values()):
            return {}
        digests = RowDigests(self.logical_before.by_id)
        by_digest: dict[str, Sequence[Delta]] = {}
        for id, port in _source_inputs(self.before.plan):
            if self.before.plan.by_id[id].op.join_keys:
                producer = self.before.plan.by_id[id].inputs[port].node
                by_digest.setdefault(digests.of(producer), rows.get((id, port), ()))
        producers = _BufferedProducers(self.logical, by_digest)
        inputs: dict[Address, Sequence[Delta]] = {}
        for id, port in _source_inputs(self.after.plan):
            node = self.after.plan.by_id[id]
            if node.op.is_inner_join:
                inputs[id, port] = producers.rows(node.inputs[port].node)
            else:
                inputs[id, port] = rows.get((old_nodes[id], port), ())
        return inputs


class _BufferedProducers:
    """The nodes of a plan whose rows wait for the inputs of joins.

    Args:
        plan: the plan, without multiway joins.
        by_digest: the rows that wait for joins of another plan, by the digests of the nodes that have output them.
    """

    def __init__(self, plan: Plan, by_digest: Mapping[str, Sequence[Delta]]) -> None:
        self.plan = plan
        self.by_digest = by_digest
        self.digests = RowDigests(plan.by_id)

    def rows(self, id: str) -> Sequence[Delta]:
        """Returns the rows that a node has output and that wait.

        Raises:
            CannotReplan: they wait for no join of the other plan.
        """
        rows = self.by_digest.get(self.digests.of(id))
        if rows is not None:
            return rows
        node = self.plan.by_id[id]
        if not is_conjunctive(node) or node.op.is_inner_join:
            raise CannotReplan(f"the rows of `{id}` that wait for their instant are not known")
        step = cast(StatelessOperator, make_operator(node, self.plan)).step
        return step(self.rows(node.inputs[0].node))


def _source_inputs(plan: Plan) -> Iterator[Address]:
    """Yields the inputs of nodes with state to which sources bring rows. Nodes for which it does not matter on which
    input a row comes have one."""
    from_sources = {id for id, node in plan.by_id.items() if not node.inputs}
    addresses = (address for address, producers in producers_of(plan).items() if not from_sources.isdisjoint(producers))
    yield from dict.fromkeys((id, port if plan.by_id[id].op.join_keys else 0) for id, port in addresses)
