"""A planner that joins in the order in which rules are written, and shares what comes out the same that way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from squall.model import Joinable, System
from squall.plan import Plan
from squall.plan.operators import Operator
from squall.planners.lowering.rule_plans import Draft, Identity, Rows, finish, join, plan_in_written_order


def plan(system: System) -> Plan:
    """Returns the plan of a system. Raises PlannerError."""
    draft = Draft(_by_what_they_do())
    return finish(draft, system, plan_in_written_order(draft, system, body), "written")


def body(draft: Draft, joinables: Sequence[Joinable], rows_of: Callable[[Joinable], Rows]) -> Rows:
    """Returns the rows of a conjunction, joined from left to right."""
    first, *remaining = [rows_of(joinable) for joinable in joinables]
    for other in remaining:
        first = join(draft, first, other)
    return first


def _by_what_they_do() -> Identity:
    """Numbers nodes; those with the same operator and the same inputs get one number, and so are one."""
    numbers: dict[tuple[Operator, tuple[str, ...]], int] = {}

    def identity(op: Operator, inputs: tuple[str, ...]) -> str:
        return f"{type(op).__name__.lower()}{numbers.setdefault((op, inputs), len(numbers))}"

    return identity
