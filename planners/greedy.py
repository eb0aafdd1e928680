"""The greedy planner: plans each rule by itself, the most selective pattern first.

Rules share nothing but the scans of sources.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from squall.model import AtomPattern, Joinable, Pattern, System, Variable, variables
from squall.plan import Plan
from squall.plan.fingerprint import ID_PREFIXES
from squall.plan.operators import Operator, Scan
from squall.planners.lowering.limits import check_size
from squall.planners.lowering.plan_outputs import partitioned
from squall.planners.lowering.rule_plans import Draft, Identity, Rows, finish, join, plan_in_written_order
from squall.planners.passes.gate_steps import gate_steps


def plan(system: System, gates: bool = True) -> Plan:
    """Plans each rule by itself, the most selective pattern first.

    Args:
        system: The system.
        gates: Whether later steps of patterns over time wait for the earlier ones (`gate_steps`).

    Raises:
        PlannerError: The system cannot be planned.
    """
    check_size(system)
    draft = Draft(_numbering())
    written = finish(draft, system, plan_in_written_order(draft, system, body), "greedy")
    return partitioned(gate_steps(written)) if gates else written


def body(draft: Draft, joinables: Sequence[Joinable], rows_of: Callable[[Joinable], Rows]) -> Rows:
    """Joins the joinables in a left-deep tree.

    The next joinable is always the one with the most bound slots among those that share a variable with the rows so
    far.
    """
    remaining = list(joinables)
    rows: Rows | None = None
    while remaining:
        bound = set(rows.names) if rows else set()
        joinable = max(remaining, key=lambda candidate: _rank(candidate, bound))
        remaining.remove(joinable)
        next_rows = rows_of(joinable)
        rows = next_rows if rows is None else join(draft, rows, next_rows)
    assert rows is not None
    return rows


def _rank(joinable: Joinable, bound: set[Variable]) -> tuple[bool, int]:
    """Returns the rank of a joinable: connected ones first, then those with more bound slots.

    The earlier joinable in the text wins a tie.
    """
    names = set(variables(joinable))
    slots = joinable.slots if isinstance(joinable, Pattern | AtomPattern) else ()
    constants = sum(not isinstance(slot, Variable) for slot in slots)
    return (not bound or not names or bool(names & bound), constants + len(names & bound))


def _numbering() -> Identity:
    counter = itertools.count(1)
    scans: dict[Operator, str] = {}

    def identity(op: Operator, inputs: tuple[str, ...]) -> str:
        if isinstance(op, Scan):
            return scans.setdefault(op, f"{ID_PREFIXES[Scan]}{len(scans) + 1}")
        return f"{ID_PREFIXES[type(op)]}{next(counter)}"

    return identity
