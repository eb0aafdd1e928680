"""Fingerprints of operators and nodes: texts that stay the same when a class or a field is renamed.

Node ids are digests of these texts, planners break ties by them, and checkpoints identify programs by them
(`squall.model.fingerprint`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, get_args

from squall.model.fingerprint import source_fingerprint, sources_fingerprint
from squall.plan import Node
from squall.plan import operators as ops
from squall.plan.operators import Operator

STABLE_NAMES: dict[type, str] = {
    ops.Scan: "Read",
    ops.ConstantFilter: "Where",
    ops.Filter: "Test",
    ops.TableFunction: "Apply",
    ops.TransitiveClosure: "Closure",
    ops.Construct: "Emit",
    ops.Select: "Answer",
    ops.Sink: "Deliver",
    ops.DerivedStream: "Feed",
}
"""The names of operators in fingerprints, where they differ from those in the code. An entry is never changed. An
operator that is renamed gets an entry with its name before.
"""
ID_PREFIXES: dict[type, str] = {kind: kind.__name__.lower() for kind in get_args(Operator)}
"""The beginnings of node ids. Checkpoints hold node ids, so a renamed operator keeps its own by an entry here."""
STABLE_FIELDS = {"keep_unbound": "keeps", "ask": "asks"}
"""The same for fields."""
_STABLE_PREFIXES = {ID_PREFIXES[kind]: name.lower() for kind, name in STABLE_NAMES.items()}
"""The beginnings of node ids that planners do not sort by."""


def stable_id(node: str) -> str:
    """Returns the id of a node with the stable name of its operator in front. Planners sort nodes by it."""
    kind = node.partition("-")[0].rstrip("0123456789")
    name = _STABLE_PREFIXES.get(kind)
    return node if name is None else name + node[len(kind) :]


def fingerprint(op: Operator, with_rules: bool = True) -> str:
    """Returns the fingerprint of an operator: its stable name, with the names and values of its fields.

    Args:
        op: The operator. Fields that `repr` does not show are left out.
        with_rules: Whether the rules that it serves count. Those of a `Select` always do.
    """
    kind: type = type(op)
    form, readers = _form(kind, with_rules)
    return form % tuple([read(op) for read in readers])


def node_fingerprint(node: Node) -> str:
    """Returns the fingerprint of a node: its id, operator and inputs."""
    edges = [
        f"Input(node={stable_id(edge.node)!r}, columns={edge.columns!r}, feedback={edge.feedback!r})"
        for edge in node.inputs
    ]
    inputs = f"{', '.join(edges)}{',' if len(edges) == 1 else ''}"
    return f"Node(id={stable_id(node.id)!r}, op={fingerprint(node.op)}, inputs=({inputs}))"


@cache
def _form(kind: type, with_rules: bool) -> tuple[str, tuple[Callable[[Any], str], ...]]:
    """Returns the format string of an operator and the functions that read what it formats."""
    shown_fields = [part.name for part in fields(kind) if part.repr]
    parts = [name for name in shown_fields if with_rules or kind is ops.Select or name != "rules"]
    printed_fields = (f"{STABLE_FIELDS.get(name, name)}={'%s' if name in parts else '()'}" for name in shown_fields)
    name = STABLE_NAMES.get(kind, kind.__name__)
    return f"{name}({', '.join(printed_fields)})", tuple(_reader(name) for name in parts)


def _reader(name: str) -> Callable[[Any], str]:
    """Returns the function that formats a field. Only the classes of sources and windows have stable names inside."""
    if name == "source":
        return lambda op: source_fingerprint(op.source)
    if name == "sources":
        return lambda op: sources_fingerprint(op.sources)
    return lambda op: repr(getattr(op, name))
