"""``unread``: facts that are hidden from the answer and that no rule reads."""

from __future__ import annotations

from collections.abc import Iterator

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Rule, readings
from squall.model import Construct, FactPattern
from squall.model.fact_shapes import Shapes, shape
from squall.model.unbounded_state import pattern_text


def check(program: Program) -> Iterator[Finding]:
    """A finding for each template of facts that are no part of the answer and that no pattern finds. One that is shown
    if it passes a test, and hidden if not, is shown; one that is made as an atom, too, is read where that is."""
    shown = {(rule.name, made) for rule in program.rules for made in _templates(rule, False)}
    reads: Shapes[bool] = Shapes()
    for rule in program.rules:
        for reading in readings(rule.system):
            if reading.derives:
                reads.add(reading.shape, True)
    for rule in program.rules:
        read = {made.slots for made in _templates(rule, True) if any(reads.overlapping(shape(made)))}
        for made in _templates(rule, True):
            if (rule.name, made) not in shown and made.slots not in read:
                message = f"`{rule.name}` makes {pattern_text(made)}, which the answer does not show and no rule reads"
                hint = "leave it out, or let it be shown"
                yield Finding("unread", WARNING, message, made.origin or rule.origin, hint)


def _templates(rule: Rule, internal: bool) -> Iterator[FactPattern]:
    """The templates of a rule's facts: those that are internal, or the others."""
    for one in rule.system.consequences:
        if isinstance(one, Construct) and one.internal == internal:
            yield from one.template
