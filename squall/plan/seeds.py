"""Seeds: what makes the terms that a run creates differ from those of other runs (docs/decisions/0068-new-terms.md)."""

from __future__ import annotations

import secrets

from squall import functions
from squall.plan import Plan
from squall.plan.calls import with_calls
from squall.plan.operators import Invoke
from squall.rdf import literal, parts

FIXED_SEED = 0
"""The seed of plans to which none is applied. Checkpoints that hold no seed have this one."""


def new_seed() -> int:
    """Returns a random seed, which is not the fixed one."""
    return secrets.randbits(64) + 1


def with_seed(plan: Plan, seed: int) -> Plan:
    """Returns the plan that creates terms (blank nodes, UUIDs, random numbers) by a seed.

    Nodes keep their ids. A plan that calls no such function stays as it is.
    """
    return plan if seed == FIXED_SEED else with_calls(plan, lambda call: _with_seed(call, seed))


def _with_seed(call: Invoke, seed: int) -> Invoke:
    place = functions.lookup(call.function).seeded
    if place is None:
        return call
    key = call.arguments[place]
    assert isinstance(key, str)
    seeded_key = literal(f"{parts(key).lexical} {seed}")
    return Invoke(call.function, (*call.arguments[:place], seeded_key, *call.arguments[place + 1 :]))
