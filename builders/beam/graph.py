"""The steps of a physical plan's pipeline, by the names that they have there.

There is a step for each stage. Its rows are grouped by key, and squall's own operators process them key by key. A
pipeline has no loops: all rows of a recursion that would shuffle them have one key. A plan that scans facts in order
(`squall.builders.distributed.plan.strategy`) or live (`squall.builders.beam.live_pipeline`) is one step, with all rows
as one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from squall.builders.distributed.plan.physical_plan import PhysicalPlan
from squall.builders.distributed.plan.stages import Exchange, Stage, stateless_nodes_behind
from squall.plan import Plan

_MAX_NODES_IN_NAME = 3
"""The most nodes in the name of a step."""


@dataclass(frozen=True)
class Step:
    """A step of the pipeline.

    Attributes:
        name: its name in the pipeline.
        nodes: its stateful nodes; all nodes, if it runs the whole plan.
        stage: the stage of its nodes; None for the first and the last step.
    """

    name: str
    nodes: tuple[str, ...]
    stage: Stage | None = None


@dataclass(frozen=True)
class Graph:
    """The steps of a plan.

    Attributes:
        sources: reads lines, and runs stateless nodes.
        stages: the steps in between, each behind those that send it rows.
        end: makes the outputs, or runs the whole plan.
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

    def __str__(self) -> str:
        lines = [self.sources.name]
        for step in self.steps[1:]:
            senders = ", ".join(name.partition(":")[0] for name in self.senders[step.name])
            lines += [step.name, f"  from {senders or 'axioms alone'}"]
        return "\n".join(lines)


def graph(physical: PhysicalPlan) -> Graph:
    """Returns the steps of a physical plan for bounded input."""
    plan = physical.plan
    if not physical.strategy.is_staged:
        sources, end = Step("sources", ()), Step(_all(plan), tuple(node.id for node in plan.nodes))
        return Graph(sources, (), end, {end.name: (sources.name,)})
    first = stateless_nodes_behind(plan, (node.id for node in plan.nodes if not node.inputs))
    last = tuple(node.id for node, _ in plan.sinks)
    stages = (Step(_named(f"stage {stage.number}", stage.nodes), stage.nodes, stage) for stage in physical.stages)
    steps = (Step(_named("sources", first), first), *stages, Step(_named("end", last), last))
    return Graph(steps[0], steps[1:-1], steps[-1], _senders(physical.exchanges, steps))


@dataclass(frozen=True)
class LiveGraph:
    """The names of the steps of a plan with live sources: an unbounded read of micro-batches, and the step that
    processes them."""

    batches: str
    all: str

    def __str__(self) -> str:
        return f"{self.batches}\n{self.all}\n  from {self.batches}"


def live_graph(plan: Plan) -> LiveGraph:
    """Returns the steps of a plan for live sources."""
    return LiveGraph("micro-batches", _all(plan))


def _all(plan: Plan) -> str:
    """Returns the name of the step that runs a whole plan."""
    return _named("all", tuple(node.id for node in plan.nodes))


def _named(what: str, nodes: tuple[str, ...]) -> str:
    more = f" and {len(nodes) - _MAX_NODES_IN_NAME} more" if len(nodes) > _MAX_NODES_IN_NAME else ""
    return f"{what}: {', '.join(nodes[:_MAX_NODES_IN_NAME])}{more}" if nodes else what


def _senders(exchanges: Iterable[Exchange], steps: Sequence[Step]) -> dict[str, tuple[str, ...]]:
    step_of = {id: step.name for step in steps[1:] for id in step.nodes}
    pairs = {(step_of[exchange.consumer], step_of.get(exchange.producer, steps[0].name)) for exchange in exchanges}
    return {
        step.name: tuple(sender.name for sender in steps if (step.name, sender.name) in pairs and sender != step)
        for step in steps[1:]
    }


def describe(physical: PhysicalPlan) -> str:
    """Describes a physical plan as text, with the steps of its pipeline: for bounded input, and where a source is
    live."""
    blocks = {"steps of the pipeline": graph(physical), "where a source is live": live_graph(physical.plan)}
    steps = (f"{title}\n{indent(str(block), '  ')}" for title, block in blocks.items())
    return "\n".join([str(physical), *steps])
