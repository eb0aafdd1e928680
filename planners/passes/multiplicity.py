"""An analysis: the nodes whose row multiplicities matter. Elsewhere duplicates may be added or removed."""

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


def multiplicity_sensitive(plan: Plan) -> frozenset[str]:
    """Returns the nodes for whose rows some operator above them depends on the multiplicity."""
    node_ids: set[str] = set()
    for node in reversed(plan.nodes):
        for port, edge in enumerate(node.inputs):
            if _is_sensitive(node, port, node.id in node_ids):
                node_ids.add(edge.node)
    return frozenset(node_ids)


def _is_sensitive(node: Node, port: int, is_seen: bool) -> bool:
    """Returns whether a node depends on the multiplicity of an input's rows, or passes it on to a node that does."""
    match node.op:
        case Select() | Group() | Slice():
            return True
        case Distinct() | Construct() | Update() | TransitiveClosure() | DerivedStream():
            return False
        case AntiJoin():
            return is_seen and port == 0
        case _:
            return is_seen
