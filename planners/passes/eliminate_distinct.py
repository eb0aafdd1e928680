"""The pass `eliminate_distinct`: removes duplicate elimination where no consequence depends on it.

1. The set of a match's rows is not needed if nobody counts them. A fact that arrives again derives the same again, and
the `Distinct` of the derived facts drops that. This holds only for windows whose triples expire. In a landmark window
the same triple, arriving again and again, would fill the state of the operators above.
2. The set of some rows is not needed if they only reach other sets.
3. A set of facts that only the sink reads is not needed if the sink stores its output anyway.
"""

from __future__ import annotations

from dataclasses import replace

from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import ConstantFilter, Distinct, Match, Project, Sink, Union, windows_of
from squall.planners.passes.rewrite import Rewrite


def eliminate_distinct(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan without the `Distinct` nodes that make no difference."""
    rewrite, duplicates_allowed = Rewrite(plan), reaches_sets_only(plan)
    for node in plan.nodes:
        if isinstance(node.op, Distinct) and (
            (node.id not in plan.multiplicity_sensitive and _is_bounded(plan, node))
            or (node.id in duplicates_allowed and _is_set_of_rows(plan, node))
        ):
            rewrite.new_ids[node.id] = rewrite.inputs(node)[0]
        elif isinstance(node.op, Sink):
            _put_sink(rewrite, node)
        else:
            rewrite.keep(node)
    return rewrite.result()


def reaches_sets_only(plan: Plan) -> frozenset[str]:
    """Returns the nodes whose rows only reach a `Distinct`, as they are or projected."""
    nodes: set[str] = set()
    for node in reversed(plan.nodes):
        consumers = [plan.by_id[id] for id, _ in plan.consumers[node.id]]
        if consumers and all(
            isinstance(consumer.op, Distinct)
            or (isinstance(consumer.op, Union | Project | ConstantFilter) and consumer.id in nodes)
            for consumer in consumers
        ):
            nodes.add(node.id)
    return frozenset(nodes)


def _is_set_of_rows(plan: Plan, node: Node) -> bool:
    """Returns whether a node is the set of the rows of one node, which are no facts with the names of rules."""
    op = node.op
    return isinstance(op, Distinct) and len(node.inputs) == 1 and op.by == plan.widths[node.id]


def _is_bounded(plan: Plan, node: Node) -> bool:
    """Returns whether a node is the set of a match's rows, and each row is valid for a limited time."""
    below = plan.by_id[node.inputs[0].node]
    windows = [window for edge in below.inputs for window in windows_of(plan.by_id[edge.node].op)]
    return isinstance(below.op, Match) and all(window.expires for window in windows)


def _put_sink(rewrite: Rewrite, node: Node) -> None:
    """Adds the sink, which reads facts without a `Distinct` of their own, if the sink is their only reader.

    The sink keeps a `Distinct` input if only removing it would make the sink stateful.
    """
    plan, op = rewrite.plan, node.op
    assert isinstance(op, Sink)
    sets = (edge.node for edge in node.inputs if isinstance(plan.by_id[edge.node].op, Distinct))
    alone = {id for id in sets if len(plan.consumers[id]) == 1}
    if not (alone and (_is_stateful(plan, node) or len(alone) == len(node.inputs))):
        rewrite.keep(node)
        return
    inputs: list[str] = []
    for edge in node.inputs:
        below = plan.by_id[edge.node]
        inputs += rewrite.inputs(below) if edge.node in alone else [rewrite.new_ids[edge.node]]
    rewrite.put(node, replace(op, distinct=True), *inputs)


def _is_stateful(plan: Plan, node: Node) -> bool:
    """Returns whether the sink stores its output in any case."""
    op = node.op
    assert isinstance(op, Sink)
    return op.distinct or op.output != "istream" or node.id in plan.retractable
