"""``unread``: facts that are hidden from the answer and that no rule reads."""

from __future__ import annotations

from collections.abc import Iterator

from squall.bounds import written
from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, readings
from squall.strata import Shapes, shape
from squall.system import Construct


def check(program: Program) -> Iterator[Finding]:
    """A finding for each template of facts that are no part of the answer and that no pattern finds."""
    reads: Shapes[bool] = Shapes()
    for rule in program.rules:
        for reading in readings(rule.system):
            if reading.derives:
                reads.add(reading.shape, True)
    for rule in program.rules:
        for one in rule.system.consequences:
            for made in one.template if isinstance(one, Construct) and one.internal else ():
                if not any(reads.overlapping(shape(made))):
                    message = f"`{rule.name}` makes {written(made)}, which the answer does not show and no rule reads"
                    hint = "leave it out, or let it be shown"
                    yield Finding("unread", WARNING, message, made.origin or rule.origin, hint)
