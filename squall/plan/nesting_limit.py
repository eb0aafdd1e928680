"""The nesting limit of a plan: how deep its rules may nest the terms that they make."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from squall.plan import Plan
from squall.plan.operators import Invoke
from squall.rdf import Term, literal
from squall.rdf.compounds import LIMIT


def limit_nesting(plan: Plan, max_depth: int) -> Plan:
    """Returns the plan with rules that nest terms at most `max_depth` levels deep."""
    limit = literal(str(max_depth))
    return replace(plan, nodes=tuple(replace(node, op=_with_limit(node.op, limit)) for node in plan.nodes))


def _with_limit(part: Any, limit: Term) -> Any:
    """Returns an operator, or a part of one, in which each call of the limit function has the limit as an argument."""
    if isinstance(part, tuple):
        return tuple(_with_limit(inner, limit) for inner in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    if isinstance(part, Invoke) and part.function == LIMIT:
        part = replace(part, arguments=(*part.arguments[:2], limit))
    changes = {field.name: _with_limit(getattr(part, field.name), limit) for field in fields(part) if field.init}
    return replace(part, **changes)
