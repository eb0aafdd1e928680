"""The nesting limit of a plan: how deep its rules may nest the terms that they make."""

from __future__ import annotations

from squall.plan import Plan
from squall.plan.calls import with_calls
from squall.plan.operators import Invoke
from squall.rdf import Term, literal
from squall.rdf.compounds import LIMIT


def limit_nesting(plan: Plan, max_depth: int) -> Plan:
    """Returns the plan with rules that nest terms at most `max_depth` levels deep."""
    limit = literal(str(max_depth))
    return with_calls(plan, lambda call: _with_limit(call, limit))


def _with_limit(call: Invoke, limit: Term) -> Invoke:
    if call.function != LIMIT:
        return call
    return Invoke(call.function, (*call.arguments[:2], limit))
