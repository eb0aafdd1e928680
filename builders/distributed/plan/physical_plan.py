"""The physical plan: what a distributed engine will do with a plan, as a value.

`squall explain --stage job` prints it, and a job executes it
(`squall.builders.distributed.exec.micro_batch`). It is made by passes: partitioning, with broadcast inputs and skewed
keys; stages; multiway joins inside a stage; outputs that need no stage of their own; jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from squall.builders.distributed.plan.ordered_scan import OrderedScan, ordered_scan_of
from squall.builders.distributed.plan.partitioning import (
    BROADCAST,
    Address,
    Partitioning,
    SkewedPartitioning,
    replicated_inputs_of,
)
from squall.builders.distributed.plan.skew import SkewedKeys
from squall.builders.distributed.plan.snapshot_nodes import reports_on_change, rstream_nodes
from squall.builders.distributed.plan.stages import (
    NO_SKEWED_KEYS,
    Exchange,
    Stage,
    cyclic_gates,
    describe_partitioning,
    exchanges_of,
    fused_output_stage,
    gathered_recursions,
    multiway_partitionings,
    partitionings_of,
    stages_of,
    stateless_nodes_behind,
    with_local_multiway_joins,
)
from squall.builders.distributed.plan.strategy import Strategy, strategy_of
from squall.builders.runtime.multiway_join import multiway_join_lines
from squall.builders.runtime.operators import make_output_operator
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.plan import Plan
from squall.plan.gates import keyless_gates_of, without_gates
from squall.plan.operators import DerivedStream, Sink, windows_of
from squall.plan.term_creation import recursive_creations


@dataclass(frozen=True)
class Job:
    """What an engine runs of a batch before the driver needs a report.

    Attributes:
        reads_sources: whether the job begins with the sources, and with ordered scans.
        stages: the numbers of its stages, in order.
        iterates: whether its only stage runs again and again, each time as a job, until no rows move.
        finds_changes: whether the job only finds out at which instants answers have changed.
        outputs: whether it ends with the outputs.
    """

    reads_sources: bool = False
    stages: tuple[int, ...] = ()
    iterates: bool = False
    finds_changes: bool = False
    outputs: bool = False

    def __str__(self) -> str:
        steps = ["sources"] if self.reads_sources else []
        steps += [f"stage {number}" for number in self.stages]
        steps += ["what has changed"] if self.finds_changes else []
        steps += ["end"] if self.outputs else []
        return f"{', '.join(steps)}{', until no rows move' if self.iterates else ''}"


@dataclass(frozen=True)
class PhysicalPlan:
    """What a distributed engine will do with a plan.

    Attributes:
        plan: the plan that tasks run: the logical one, with multiway joins.
        broadcast_inputs: the inputs of the logical plan whose rows are broadcast
            (`squall.builders.distributed.plan.broadcast`).
        skewed_keys: the keys that many rows have, by inputs of the logical plan
            (`squall.builders.distributed.plan.skew`).
        strategy: how tasks divide the work. The rest is of use only if they run the plan stage by stage.
        ordered_scan: what is scanned in order.
        partitionings: the partitioning of each input of a stateful node.
        exchanges: the edges between stateful nodes, and from sources to them.
        stages: the stages, in the order in which they run.
        fused_output_stages: the last stage, if it runs in one step with the outputs.
        needs_complete_instants: whether an instant can be processed only when it is complete: a node looks at all of
            it, or rows that arrive now may begin to hold later.
        jobs: the jobs of a batch that several tasks process, in order.
        unused_gates: the gates of the logical plan without which tasks run it (`plan_of_tasks`).
    """

    plan: Plan
    broadcast_inputs: frozenset[Address]
    skewed_keys: SkewedKeys
    strategy: Strategy
    ordered_scan: OrderedScan
    partitionings: Mapping[Address, Partitioning | None] = field(repr=False)
    exchanges: tuple[Exchange, ...] = field(repr=False)
    stages: tuple[Stage, ...]
    fused_output_stages: tuple[Stage, ...]
    needs_complete_instants: bool
    jobs: tuple[Job, ...]
    unused_gates: tuple[str, ...]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number by which records name each node."""
        return {node.id: number for number, node in enumerate(self.plan.nodes)}

    @cached_property
    def sinks(self) -> dict[int, Sink]:
        """The sink nodes, by number."""
        return {self.numbers[node.id]: op for node, op in self.plan.sinks}

    @cached_property
    def replicated_inputs(self) -> frozenset[Address]:
        """The inputs for which every task produces the same broadcast rows."""
        if not self.broadcast_inputs and not self.skewed_keys:
            return frozenset()
        return replicated_inputs_of(self.plan, self.partitionings)

    def stage(self, number: int) -> Stage:
        """Returns the stage with a number."""
        return self.stages[number - 1]

    # As text and as data

    def __str__(self) -> str:
        """Describes what runs where: behind the sources, in each stage, and at the end; then the jobs of a batch."""
        lines = [f"strategy: {self.strategy}"]
        if self.strategy.is_staged:
            lines += self._staged_lines()
        if self.unused_gates:
            names = ", ".join(self.unused_gates)
            lines.append(f"gates that have no key, or that close a circle of streams, are not used: {names}")
        return "\n".join(lines)

    def _staged_lines(self) -> list[str]:
        lines = ["sources", "  lines are parsed where they are read"]
        lines += [f"  {line}" for line in self.ordered_scan.describe()]
        source_ids = [node.id for node in self.plan.nodes if not node.inputs]
        lines += self._stateless_text([id for id in self._behind(source_ids) if id not in self.ordered_scan.sources])
        for stage in self.stages:
            lines += self._stage_lines(stage)
        where = "".join(f", in the tasks of stage {stage.number}" for stage in self.fused_output_stages)
        lines += [f"end{where}", *(f"    {self._node_text(node.id)}" for node, _ in self.plan.sinks)]
        if len(self.jobs) > 1:
            lines += ["jobs of a batch", *(f"  {number}. {job}" for number, job in enumerate(self.jobs, 1))]
        return lines

    def _stage_lines(self, stage: Stage) -> Iterator[str]:
        iteration = ", iterated until no rows move" if stage.recursive else ""
        phases = ", deleting first and rederiving then" if stage.has_deletions else ""
        yield f"stage {stage.number}{iteration}{phases}"
        for pipeline in stage.pipelines:
            yield f"  pipeline of {len(pipeline)}"
            for id in pipeline:
                yield f"    {self._node_text(id)}"
                yield from (f"      {line}" for line in multiway_join_lines([self.plan.by_id[id]]))
        yield from self._stateless_text(self._behind(stage.nodes))

    def _node_text(self, id: str) -> str:
        return f"{id}{describe_partitioning(self.plan.by_id[id], self.partitionings)}"

    def _stateless_text(self, ids: Sequence[str]) -> list[str]:
        """Describes the stateless nodes that run where their input is produced."""
        return [f"  then, row by row: {', '.join(ids)}"] if ids else []

    def _behind(self, ids: Sequence[str]) -> list[str]:
        return list(stateless_nodes_behind(self.plan, ids))

    def as_data(self) -> dict[str, Any]:
        """Returns the physical plan as JSON data."""
        reasons = [{"node": reason.node.id, "what": reason.what} for reason in self.strategy.reasons]
        data = self._staged_data() if self.strategy.is_staged else {"why": reasons}
        gates = {"unused_gates": list(self.unused_gates)} if self.unused_gates else {}
        return {"strategy": self.strategy.division, **data, **gates}

    def _staged_data(self) -> dict[str, Any]:
        return {
            "small_input_in_one_task": self.strategy.reads_small_input,
            "few_rows_in_one_task": self.strategy.collects_few_rows,
            "complete_instants": self.needs_complete_instants,
            "scan": {
                "nodes": self._behind([node.id for node in self.plan.nodes if not node.inputs]),
                "in_order": sorted(self.ordered_scan.sources),
            },
            "stages": [self._stage_data(stage) for stage in self.stages],
            "end": {
                "nodes": [node.id for node, _ in self.plan.sinks],
                "inputs": self._inputs_data([node.id for node, _ in self.plan.sinks]),
                "in_tasks_of_stages": [stage.number for stage in self.fused_output_stages],
            },
            "multiway_joins": [
                {"node": node.id, "joins": sorted(node.op.joins_replaced), "keys": list(map(list, node.op.join_keys))}
                for node in self.plan.nodes
                if node.op.joins_replaced
            ],
            "jobs": [str(job) for job in self.jobs],
        }

    def _stage_data(self, stage: Stage) -> dict[str, Any]:
        return {
            "number": stage.number,
            "pipelines": [list(pipeline) for pipeline in stage.pipelines],
            "row_by_row": self._behind(stage.nodes),
            "iterated": stage.recursive,
            "deletes_first": stage.has_deletions,
            "inputs": self._inputs_data(stage.nodes),
        }

    def _inputs_data(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {"from": exchange.producer, "to": exchange.consumer, "input": exchange.port + 1}
            | _exchange_data(exchange, self.partitionings[exchange.consumer, exchange.port])
            for exchange in self.exchanges
            if exchange.consumer in ids
        ]


def plan_of_tasks(plan: Plan, in_one_job: bool = False) -> Plan:
    """Returns the logical plan that tasks run: without its gates that have no key, unless one task runs all of it, and
    without those whose stages could not be put in order.

    In a plan that runs stage by stage, all rows that a gate without a key could stop would be sent to one task
    (docs/decisions/0125-gates-on-engines.md).

    Args:
        plan: the plan.
        in_one_job: whether the engine runs all input as one job.
    """
    ungated = without_gates(plan, keyless_gates_of)
    is_whole = ungated is not plan and strategy_of(plan, in_one_job).division == "single task"
    return without_gates(plan if is_whole else ungated, cyclic_gates)


def physical_plan(
    plan: Plan,
    broadcast_inputs: frozenset[Address] = frozenset(),
    skewed_keys: SkewedKeys = NO_SKEWED_KEYS,
    in_one_job: bool = False,
) -> PhysicalPlan:
    """Returns the physical plan of a plan (`plan_of_tasks`).

    Args:
        plan: the logical plan.
        broadcast_inputs: the inputs whose rows are broadcast.
        skewed_keys: the keys whose rows are split over all tasks, by input.
        in_one_job: whether the engine runs all input as one job, in which no stage can be iterated.
    """
    plan = plan_of_tasks(plan, in_one_job)
    partitionings = partitionings_of(plan, broadcast_inputs, skewed_keys)
    if in_one_job:
        partitionings |= gathered_recursions(plan, exchanges_of(plan, partitionings))
    exchanges = tuple(exchanges_of(plan, partitionings))
    stages = stages_of(plan, exchanges)
    strategy = strategy_of(plan, in_one_job)
    logical = plan
    if strategy.is_staged and (plan := with_local_multiway_joins(logical, stages, exchanges)) is not logical:
        partitionings = multiway_partitionings(logical, plan, partitionings)
        exchanges = tuple(exchanges_of(plan, partitionings))
        stages = stages_of(plan, exchanges)
    recursive_creations(plan)  # so that tasks get the result with the plan, and need not analyse it again
    fused_stages = () if in_one_job else fused_output_stage(plan, stages, exchanges)
    return PhysicalPlan(
        plan,
        broadcast_inputs,
        skewed_keys,
        strategy,
        ordered_scan_of(plan),
        partitionings,
        exchanges,
        stages,
        fused_stages,
        _needs_complete_instants(plan),
        (_whole_job(stages),) if in_one_job else jobs_of(plan, stages, fused_stages),
        plan.unused_gates,
    )


def _whole_job(stages: Sequence[Stage]) -> Job:
    return Job(reads_sources=True, stages=tuple(stage.number for stage in stages), outputs=True)


def jobs_of(plan: Plan, stages: Sequence[Stage], fused_output_stages: Sequence[Stage]) -> tuple[Job, ...]:
    """Returns the jobs of a batch.

    A job ends where the driver needs a report: before a stage that is iterated, and after it; where snapshots are
    evaluated, behind the sources and behind the stages that derive streams; and where an answer is output only if it
    has changed, before the outputs.
    """
    fused_numbers = tuple(stage.number for stage in fused_output_stages)
    snapshots = rstream_nodes(plan)
    if not snapshots and not any(stage.recursive for stage in stages):
        return (_whole_job(stages),)
    jobs = [Job(reads_sources=True)]
    waiting: list[int] = []

    def end_job() -> None:
        if waiting:
            jobs.append(Job(stages=tuple(waiting)))
            waiting.clear()

    for stage in stages:
        if stage.number in fused_numbers:
            continue
        if stage.recursive:
            end_job()
            jobs.append(Job(stages=(stage.number,), iterates=True))
        else:
            waiting.append(stage.number)
        if snapshots and any(isinstance(plan.by_id[id].op, DerivedStream) for id in stage.nodes):
            end_job()
    if any(reports_on_change(op) for _, op in plan.sinks):
        end_job()
        jobs.append(Job(finds_changes=True))
    return (*jobs, Job(stages=(*waiting, *fused_numbers), outputs=True))


def _needs_complete_instants(plan: Plan) -> bool:
    windows = (window for node in plan.nodes for window in windows_of(node.op))
    at_once = all(window.begins_with_event for window in windows)
    return (
        bool(plan.retractable)
        or not at_once
        or any(isinstance(node.op, DerivedStream) for node in plan.nodes)
        or any(isinstance(make_output_operator(node, op, plan), EventTimeOperator) for node, op in plan.sinks)
    )


def _exchange_data(exchange: Exchange, partitioning: Partitioning | None) -> dict[str, Any]:
    """Returns how rows get to an input: where they are (`local`), or by an exchange."""
    if not exchange.shuffles:
        return {"exchange": "local"}
    if isinstance(partitioning, SkewedPartitioning):
        skewed_keys = [key.split("\n") for key, _ in partitioning.split_keys]
        return {"exchange": "skew", "columns": list(partitioning.columns), "skewed_keys": skewed_keys}
    if partitioning == BROADCAST:
        return {"exchange": "broadcast"}
    return {"exchange": "hash", "columns": list(partitioning)} if partitioning else {"exchange": "single"}
