"""The nodes of a plan that output snapshots (`rstream`): whole answers, at evaluation instants."""

from __future__ import annotations

from squall.plan import Plan
from squall.plan.operators import DerivedStream, Operator, Sink


def rstream_nodes(plan: Plan) -> dict[int, Sink | DerivedStream]:
    """Returns the nodes that output snapshots, as answers or derived streams, by number."""
    ends = ((number, node.op) for number, node in enumerate(plan.nodes) if isinstance(node.op, Sink | DerivedStream))
    return {number: op for number, op in ends if op.output == "rstream"}


def reports_on_change(op: Operator) -> bool:
    """Returns whether an operator outputs a snapshot only where it has changed."""
    return isinstance(op, Sink) and op.output == "rstream" and op.report.only_changes
