"""The nodes of a plan whose rows are its outputs."""

from __future__ import annotations

from collections.abc import Iterator

from squall.plan import Plan
from squall.plan.operators import Distinct, Select, Slice, Union


def output_nodes(plan: Plan, id: str) -> Iterator[str]:
    """Yields the nodes whose rows reach the inputs of a node through unions, duplicate elimination and slices."""
    for edge in plan.by_id[id].inputs:
        if isinstance(plan.by_id[edge.node].op, Union | Distinct | Slice):
            yield from output_nodes(plan, edge.node)
        else:
            yield edge.node


def is_one_query(plan: Plan) -> bool:
    """Returns whether all outputs of a plan are answers of one query."""
    operators = [plan.by_id[end].op for node, _ in plan.sinks for end in output_nodes(plan, node.id)]
    queries = {rule for op in operators if isinstance(op, Select) for rule in op.rules}
    return len(queries) == 1 and all(isinstance(op, Select) for op in operators)
