"""The steps of a plan's pipeline: which nodes each runs, and by which keys its rows are grouped, or why they are not.

A step for each level (`squall.builders.distributed.plan.stages`): its rows are grouped by key, and worked by squall's own
operators, key by key. What needs to see all rows takes them as one group: a recursion in which rows move, which is a
step of its own, and the whole plan where it takes facts one after the other (`squall.builders.distributed.plan.shardability_reasons`) or
as they come (`squall.builders.beam.live_pipeline`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from squall.builders.distributed.plan.shardability_reasons import in_order
from squall.builders.distributed.plan.stages import Hop, Stage, chain, grouping, groupings, hops, levels
from squall.plan import Plan

_SHOWN = 3
"""How many nodes the name of a step names."""


@dataclass(frozen=True)
class Step:
    """A step of the pipeline.

    nodes: those of its nodes that keep rows; chain: those without memory that its rows go through on their way out.
    level: of its nodes; None of the first step and the last one. why: for what reason all rows have to be in one group;
    "": they need not.
    """

    name: str
    nodes: tuple[str, ...]
    chain: tuple[str, ...]
    level: Stage | None = None
    why: str = ""


@dataclass(frozen=True)
class Graph:
    """The steps of a plan. sources: reads lines, and does what needs no memory. levels: those in between, each behind
    those that send it rows. end: makes the answers. senders: by the name of a step, those that send it rows."""

    sources: Step
    levels: tuple[Step, ...]
    end: Step
    senders: Mapping[str, tuple[str, ...]]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All of them, in order."""
        return (self.sources, *self.levels, self.end)


def graph(plan: Plan) -> Graph:
    """The steps of a plan."""
    if (found := in_order(plan)) is not None:
        nodes = tuple(node.id for node in plan.nodes)
        sources, end = Step("sources", (), ()), Step(_all(plan), nodes, (), why=f"{found.node.id} {found.what}")
        return Graph(sources, (), end, {end.name: (sources.name,)})
    first = chain(plan, (node.id for node in plan.nodes if not node.inputs))
    last = tuple(node.id for node, _ in plan.sinks)
    moving = [hop for hop in hops(plan) if hop.moves]
    inner = (step for level in levels(plan) for step in _of_level(plan, level, moving))
    steps = (Step(_named("sources", first), (), first), *inner, Step(_named("end", last), last, ()))
    return Graph(steps[0], steps[1:-1], steps[-1], _senders(plan, steps))


@dataclass(frozen=True)
class LiveGraph:
    """The steps of a plan whose sources are live, by name: an unbounded read of turns, and what works them off."""

    turns: str
    all: str


def live_graph(plan: Plan) -> LiveGraph:
    """The steps of a plan whose sources are live."""
    return LiveGraph("turns", _all(plan))


def _all(plan: Plan) -> str:
    """The name of the step that runs a whole plan."""
    return _named("all", tuple(node.id for node in plan.nodes))


def _of_level(plan: Plan, level: Stage, moving: Collection[Hop]) -> Iterator[Step]:
    """The step of its stages that exchange nothing, and that of the others. moving: the ways on which rows move."""
    inside = [hop for hop in moving if hop.producer in level.nodes and hop.consumer in level.nodes]
    ends = {id for hop in inside for id in (hop.producer, hop.consumer)}
    still = tuple(stage for stage in level.stages if not ends & set(stage))
    others = tuple(stage for stage in level.stages if ends & set(stage))
    for what, stages, why in (("level", still, ""), ("recursion in level", others, "rows move inside of it")):
        if stages:
            nodes = tuple(id for id in level.nodes if any(id in stage for stage in stages))
            name = _named(f"{what} {level.number}", nodes)
            yield Step(name, nodes, chain(plan, nodes), replace(level, nodes=nodes, stages=stages), why)


def _named(what: str, nodes: tuple[str, ...]) -> str:
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    return f"{what}: {', '.join(nodes[:_SHOWN])}{more}" if nodes else what


def _senders(plan: Plan, steps: Sequence[Step]) -> dict[str, tuple[str, ...]]:
    of = {id: step.name for step in steps for id in step.nodes}
    pairs = {(of[hop.consumer], of.get(hop.producer, steps[0].name)) for hop in hops(plan)}
    return {
        step.name: tuple(one.name for one in steps if (step.name, one.name) in pairs and one != step)
        for step in steps[1:]
    }


def describe(plan: Plan) -> str:
    """The steps, what each of their nodes is grouped by or why it is not, and which steps send them rows, as text; then
    those that there are where sources are live."""
    found, keys = graph(plan), groupings(plan)
    lines = [found.sources.name, "  lines are parsed where they are read", *_row_by_row(found.sources)]
    for step in found.steps[1:]:
        sent = (name.partition(":")[0] for name in found.senders[step.name])
        lines += [step.name, f"  from {', '.join(sent) or 'axioms alone'}"]
        lines.append(f"  all rows in one group: {step.why}" if step.why else "  rows grouped by key")
        lines += [f"    {id}{'' if step.why else grouping(plan.by_id[id], keys)}" for id in step.nodes]
        lines += _row_by_row(step)
    live = live_graph(plan)
    lines += ["where a source is live:", live.turns, "  an unbounded read of what the driver has read"]
    lines += [live.all, f"  from {live.turns}", "  all rows in one group, turn by turn"]
    return "\n".join(lines)


def _row_by_row(step: Step) -> list[str]:
    return [f"  then, row by row: {', '.join(step.chain)}"] if step.chain else []
