"""Changes of the calls in a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

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
        items = [_changed(item, change) for item in part]
        return part if all(new is old for new, old in zip(items, part, strict=True)) else tuple(items)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    result = change(part) if isinstance(part, Invoke) else part
    values = {field.name: getattr(result, field.name) for field in fields(result) if field.init}
    changes = {name: new for name, old in values.items() if (new := _changed(old, change)) is not old}
    return replace(result, **changes) if changes else result
