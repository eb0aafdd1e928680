"""Changes of the calls in a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from squall.model.rewriting import field_names, map_fields, map_items
from squall.plan import Plan
from squall.plan.operators import Invoke

Change = Callable[[Invoke], Invoke]
"""Returns what a call becomes, or the call itself."""


def with_calls(plan: Plan, change: Change) -> Plan:
    """Returns the plan in which each call is changed, inner calls after outer ones. Nodes keep their ids."""
    nodes = tuple(node if (op := _changed(node.op, change)) is node.op else replace(node, op=op) for node in plan.nodes)
    unchanged = all(new is old for new, old in zip(nodes, plan.nodes, strict=True))
    return plan if unchanged else replace(plan, nodes=nodes)


def _changed(part: Any, change: Change) -> Any:
    """Returns an operator, or a part of one, after the change; the part itself if it stays the same."""
    if isinstance(part, tuple):
        return map_items(part, partial(_changed, change=change))
    kind: type = type(part)
    names = field_names(kind)
    if not names:
        return part
    result = change(part) if isinstance(part, Invoke) else part
    return map_fields(result, names, partial(_changed, change=change))
