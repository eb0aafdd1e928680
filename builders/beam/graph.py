"""The steps of a plan's pipeline: the nodes of each, and the keys by which its rows are grouped, or why they are not.

There is a step for each stage (`squall.builders.distributed.plan.stages`). Its rows are grouped by key, and squall's
own operators process them key by key. What needs all rows gets them as one group. That is a recursion that shuffles
rows, as a step of its own, and the whole plan if it scans facts in order
(`squall.builders.distributed.plan.shardability`) or live (`squall.builders.beam.live_pipeline`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.stages import Exchange, Stage, describe_partitioning, stateless_nodes_behind
from squall.builders.distributed.plan.strategy import strategy_of
from squall.plan import Plan

_MAX_NODES_IN_NAME = 3
"""The most nodes in the name of a step."""


@dataclass(frozen=True)
class Step:
    """A step of the pipeline.

    Attributes:
        name: its name in the pipeline.
        nodes: its stateful nodes.
        stateless_nodes: the stateless nodes that its output passes through.
        stage: the stage of its nodes; None for the first and the last step.
        why: why all rows have to be in one group; "": they need not.
    """

    name: str
    nodes: tuple[str, ...]
    stateless_nodes: tuple[str, ...]
    stage: Stage | None = None
    why: str = ""


@dataclass(frozen=True)
class Graph:
    """The steps of a plan.

    Attributes:
        sources: reads lines, and runs stateless nodes.
        stages: the steps in between, each behind those that send it rows.
        end: makes the outputs.
        senders: the steps that send rows to a step, by its name.
    """

    sources: Step
    stages: tuple[Step, ...]
    end: Step
    senders: Mapping[str, tuple[str, ...]]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, in order."""
        return (self.sources, *self.stages, self.end)


def graph(plan: Plan) -> Graph:
    """Returns the steps of a plan for bounded input."""
    if reasons := strategy_of(plan, has_ordered_scans=False).reasons:
        nodes = tuple(node.id for node in plan.nodes)
        sources, end = Step("sources", (), ()), Step(_all(plan), nodes, (), why=str(reasons[0]))
        return Graph(sources, (), end, {end.name: (sources.name,)})
    first = stateless_nodes_behind(plan, (node.id for node in plan.nodes if not node.inputs))
    last = tuple(node.id for node, _ in plan.sinks)
    physical = physical_plan(plan)
    moving = [exchange for exchange in physical.exchanges if exchange.shuffles]
    inner = (step for stage in physical.stages for step in _steps_of_stage(plan, stage, moving))
    steps = (Step(_named("sources", first), (), first), *inner, Step(_named("end", last), last, ()))
    return Graph(steps[0], steps[1:-1], steps[-1], _senders(physical.exchanges, steps))


@dataclass(frozen=True)
class LiveGraph:
    """The names of the steps of a plan with live sources: an unbounded read of micro-batches, and the step that
    processes them."""

    batches: str
    all: str


def live_graph(plan: Plan) -> LiveGraph:
    """Returns the steps of a plan for live sources."""
    return LiveGraph("micro-batches", _all(plan))


def _all(plan: Plan) -> str:
    """Returns the name of the step that runs a whole plan."""
    return _named("all", tuple(node.id for node in plan.nodes))


def _steps_of_stage(plan: Plan, stage: Stage, moving: Collection[Exchange]) -> Iterator[Step]:
    """Yields the step of a stage's pipelines that exchange no rows, and that of its other pipelines. moving: the edges
    on which rows are shuffled."""
    inside = [exchange for exchange in moving if exchange.producer in stage.nodes and exchange.consumer in stage.nodes]
    moving_nodes = {id for exchange in inside for id in (exchange.producer, exchange.consumer)}
    local_pipelines = tuple(pipeline for pipeline in stage.pipelines if not moving_nodes & set(pipeline))
    moving_pipelines = tuple(pipeline for pipeline in stage.pipelines if moving_nodes & set(pipeline))
    for what, pipelines, why in (
        ("stage", local_pipelines, ""),
        ("recursion in stage", moving_pipelines, "rows move inside of it"),
    ):
        if pipelines:
            nodes = tuple(id for id in stage.nodes if any(id in pipeline for pipeline in pipelines))
            name, own_stage = _named(f"{what} {stage.number}", nodes), replace(stage, nodes=nodes, pipelines=pipelines)
            yield Step(name, nodes, stateless_nodes_behind(plan, nodes), own_stage, why)


def _named(what: str, nodes: tuple[str, ...]) -> str:
    more = f" and {len(nodes) - _MAX_NODES_IN_NAME} more" if len(nodes) > _MAX_NODES_IN_NAME else ""
    return f"{what}: {', '.join(nodes[:_MAX_NODES_IN_NAME])}{more}" if nodes else what


def _senders(exchanges: Iterable[Exchange], steps: Sequence[Step]) -> dict[str, tuple[str, ...]]:
    step_of = {id: step.name for step in steps for id in step.nodes}
    pairs = {(step_of[exchange.consumer], step_of.get(exchange.producer, steps[0].name)) for exchange in exchanges}
    return {
        step.name: tuple(sender.name for sender in steps if (step.name, sender.name) in pairs and sender != step)
        for step in steps[1:]
    }


def describe(plan: Plan) -> str:
    """Describes the steps as text: the keys of each of their nodes, or why it has none, and the steps that send them
    rows; then the steps for live sources."""
    steps, keys = graph(plan), physical_plan(plan).partitionings
    lines = [steps.sources.name, "  lines are parsed where they are read", *_row_by_row(steps.sources)]
    for step in steps.steps[1:]:
        sender_names = (name.partition(":")[0] for name in steps.senders[step.name])
        lines += [step.name, f"  from {', '.join(sender_names) or 'axioms alone'}"]
        lines.append(f"  all rows in one group: {step.why}" if step.why else "  rows grouped by key")
        lines += [f"    {id}{'' if step.why else describe_partitioning(plan.by_id[id], keys)}" for id in step.nodes]
        lines += _row_by_row(step)
    live = live_graph(plan)
    lines += ["where a source is live:", live.batches, "  an unbounded read of what the driver has read"]
    lines += [live.all, f"  from {live.batches}", "  all rows in one group, micro-batch by micro-batch"]
    return "\n".join(lines)


def _row_by_row(step: Step) -> list[str]:
    return [f"  then, row by row: {', '.join(step.stateless_nodes)}"] if step.stateless_nodes else []
