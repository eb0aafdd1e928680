"""Plans that a distributed engine runs as a whole, not node by node: each of their instants decides the next.

What an update does at an instant is seen by all rules at the next one, which may be the time of no event. Such a plan
is run by one task; or, where no fact has to do with another subject's
(`squall.builders.distributed.plan.shardability`), by many (`squall.builders.distributed.exec.sharded_plan`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from squall.builders.distributed.exec.ordered_scan import why_ordered_source
from squall.plan import Node, Plan
from squall.plan.operators import DerivedStream, Operator, Scan, Update


class Reason(NamedTuple):
    """Why a plan is run as it is: a node of it, and what that does."""

    node: Node
    what: str


def why_single_task(plan: Plan) -> Reason | None:
    """Why the plan is run as a whole; None: it is not."""
    return _first_reason(plan, _why_updating)


def _why_updating(op: Operator) -> str | None:
    """What it is that an operator does at an instant by which it decides what others do at the next."""
    return "inserts or deletes facts" if isinstance(op, Update) else None


def why_ordered(plan: Plan) -> Reason | None:
    """Why one task has to run the plan, where facts are not taken in turn
    (`squall.builders.distributed.exec.ordered_scan`), and streams not made, by tasks of their own; None: it need
    not."""
    return _first_reason(plan, _why_operator_ordered)


def _why_operator_ordered(op: Operator) -> str | None:
    match op:
        case Scan(source=source):
            return why_ordered_source(source)
        case DerivedStream():
            return "makes a stream that is read again"
    return _why_updating(op)


def _first_reason(plan: Plan, why: Callable[[Operator], str | None]) -> Reason | None:
    reasons = (Reason(node, what) for node in plan.nodes if (what := why(node.op)) is not None)
    return next(reasons, None)
