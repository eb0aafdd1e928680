"""Limits of what a rule may contain, so that planning ends in reasonable time."""

from __future__ import annotations

from squall.errors import PlannerError
from squall.model import Negation, System, rules
from squall.model.walk import walk

MAX_JOINABLES = 1000
"""The most patterns and parts that a body may join. The time to plan them grows with the square of their number."""
MAX_PREDICATES = 1000
"""The most filters, assignments, OPTIONALs and negations that a body may have."""


def check_size(system: System) -> None:
    """Raises a PlannerError if a body in the system has too many patterns and parts."""
    for rule in rules(system):
        for part in walk(rule):
            if isinstance(part, System | Negation) and len(part.joinables) > MAX_JOINABLES:
                raise PlannerError(
                    f"`{rule.name}` joins {len(part.joinables):,} patterns; at most {MAX_JOINABLES:,} can be planned",
                    part.origin or rule.origin,
                    hint="derive intermediate facts by rules of their own, and join those",
                )
            if isinstance(part, System) and len(part.predicates) > MAX_PREDICATES:
                raise PlannerError(
                    f"`{rule.name}` has {len(part.predicates):,} conditions, assignments and optional parts in a row; "
                    f"at most {MAX_PREDICATES:,} can be planned",
                    part.origin or rule.origin,
                    hint="compare with several values by `IN`, or derive intermediate facts by rules of their own",
                )
