"""The check ``unread``: facts that are hidden from the answer and that no rule reads."""

from __future__ import annotations

from collections.abc import Iterator

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Rule, readings
from squall.model import Construct, FactPattern
from squall.model.fact_shapes import Shapes, shape
from squall.model.unbounded_state import pattern_text


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each template of facts that are no part of the answer and that no pattern matches.

    A template that is visible if a test passes, and hidden otherwise, counts as visible. One that is also derived as an
    atom is read where that is read.
    """
    visible = {(rule.name, template) for rule in program.rules for template in _templates(rule, False)}
    reads: Shapes[bool] = Shapes()
    for rule in program.rules:
        for reading in readings(rule.system):
            if reading.reads_derived:
                reads.add(reading.shape, True)
    for rule in program.rules:
        read = {template.slots for template in _templates(rule, True) if any(reads.overlapping(shape(template)))}
        for template in _templates(rule, True):
            if (rule.name, template) not in visible and template.slots not in read:
                message = (
                    f"`{rule.name}` makes {pattern_text(template)}, which the answer does not show and no rule reads"
                )
                hint = "leave it out, or let it be shown"
                yield Finding("unread", WARNING, message, template.origin or rule.origin, hint)


def _templates(rule: Rule, internal: bool) -> Iterator[FactPattern]:
    """Yields the templates of a rule's facts: the internal ones, or the others."""
    for consequence in rule.system.consequences:
        if isinstance(consequence, Construct) and consequence.internal == internal:
            yield from consequence.template
