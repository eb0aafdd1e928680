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
    found: set[str] = set()
    for node in reversed(plan.nodes):
        for port, edge in enumerate(node.inputs):
            if _sees(node, port, node.id in found):
                found.add(edge.node)
    return frozenset(found)


def _sees(node: Node, port: int, counted: bool) -> bool:
    """Whether a node sees how often the rows of an input come, or, if its own rows are counted, hands it on."""
    match node.op:
        case Select() | Group() | Slice():
            return True
        case Distinct() | Construct() | Update() | TransitiveClosure() | DerivedStream():
            return False
        case AntiJoin():
            return counted and port == 0
        case _:
            return counted
