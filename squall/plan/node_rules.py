"""The rules that each node of a plan serves."""

from __future__ import annotations

from collections.abc import Iterator

from squall.plan import Input, Node, Plan
from squall.plan.operators import Construct, Operator, Select, Update


def rules_by_node(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Returns the rules that each node serves, by node id.

    They are the rules that the node leads to. Behind the facts of rules they are those that lead to the node.
    """
    rules: dict[str, dict[str, None]] = {node.id: dict.fromkeys(_own_rules(node.op)) for node in plan.nodes}
    for node in reversed(plan.nodes):
        for input in _forward_inputs(node):
            rules[input.node] |= rules[node.id]
    upstream = {id: dict(names) for id, names in rules.items()}
    for node in plan.nodes:
        if not upstream[node.id]:
            for input in _forward_inputs(node):
                rules[node.id] |= rules[input.node]
    return {id: tuple(names) for id, names in rules.items()}


def _own_rules(op: Operator) -> tuple[str, ...]:
    return op.rules if isinstance(op, Construct | Select | Update) else ()


def _forward_inputs(node: Node) -> Iterator[Input]:
    return (input for input in node.inputs if not input.feedback)
