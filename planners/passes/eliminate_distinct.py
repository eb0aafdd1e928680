"""Duplicate checks left out where no consequence can tell.

1. A set of a match's rows, where nobody counts them: a fact that comes again makes the same again, which the facts' own
check drops. Only behind windows that forget: in a landmark window the same triple, coming again and again, would fill
the memories behind it for ever.
2. A set of facts that goes to the sink alone, where the sink remembers what it has handed on anyway.
"""

from __future__ import annotations

from dataclasses import replace

from squall.model.windows import EmptyWindow, Landmark
from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Distinct, Match, Sink, windows_of
from squall.planners.passes.multiplicity import counted
from squall.planners.passes.rewrite import Rewrite


def drop_checks(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """The plan without the duplicate checks that make no difference."""
    rewrite = Rewrite(plan)
    multiplicity_seen = counted(plan)
    for node in plan.nodes:
        if isinstance(node.op, Distinct) and node.id not in multiplicity_seen and _forgets(plan, node):
            rewrite.new[node.id] = rewrite.inputs(node)[0]
        elif isinstance(node.op, Sink):
            _deliver(rewrite, node)
        else:
            rewrite.keep(node)
    return rewrite.result()


def _forgets(plan: Plan, node: Node) -> bool:
    """Whether the set is one of a match's rows, each of which is valid for a limited time."""
    below = plan.by_id[node.inputs[0].node]
    windows = [window for edge in below.inputs for window in windows_of(plan.by_id[edge.node].op)]
    return isinstance(below.op, Match) and not any(isinstance(window, Landmark | EmptyWindow) for window in windows)


def _deliver(rewrite: Rewrite, node: Node) -> None:
    """The operation node, reading those sets of facts from which nothing else reads without their check, unless that
    alone made it remember."""
    plan, op = rewrite.plan, node.op
    assert isinstance(op, Sink)
    sets = (edge.node for edge in node.inputs if isinstance(plan.by_id[edge.node].op, Distinct))
    alone = {id for id in sets if len(plan.consumers[id]) == 1}
    if not (alone and (_remembers(plan, node) or len(alone) == len(node.inputs))):
        rewrite.keep(node)
        return
    inputs: list[str] = []
    for edge in node.inputs:
        below = plan.by_id[edge.node]
        inputs += rewrite.inputs(below) if edge.node in alone else [rewrite.new[edge.node]]
    rewrite.put(node, replace(op, distinct=True), *inputs)


def _remembers(plan: Plan, node: Node) -> bool:
    """Whether the operation node knows what it has handed on in any case."""
    op = node.op
    assert isinstance(op, Sink)
    return op.distinct or op.output != "istream" or node.id in plan.retractable
