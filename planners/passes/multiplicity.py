"""Where it is seen how often a row comes: what duplicates may be made or left out."""

from __future__ import annotations

from squall.plan import Node, Plan
from squall.plan.operators import (
    AntiJoin,
    Construct,
    DerivedStream,
    Distinct,
    Group,
    Select,
    Slice,
    TransitiveClosure,
    Update,
)


def counted(plan: Plan) -> frozenset[str]:
    """The nodes of whose rows it is seen, somewhere behind them, how often each comes."""
    node_ids: set[str] = set()
    for node in reversed(plan.nodes):
        for port, edge in enumerate(node.inputs):
            if _sees(node, port, node.id in node_ids):
                node_ids.add(edge.node)
    return frozenset(node_ids)


def _sees(node: Node, port: int, is_seen: bool) -> bool:
    """Whether a node sees how often the rows of an input come, or, if its own rows are counted, hands it on."""
    match node.op:
        case Select() | Group() | Slice():
            return True
        case Distinct() | Construct() | Update() | TransitiveClosure() | DerivedStream():
            return False
        case AntiJoin():
            return is_seen and port == 0
        case _:
            return is_seen
