"""The backward slice of rule sets: the rules whose facts a program can read, directly or through other rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from squall.model.fact_shapes import Shape, Shapes, derived_shapes, shape
from squall.model.patterns import AtomPattern, Pattern
from squall.model.reading import rules
from squall.model.systems import System
from squall.model.walk import walk


def slice_rules(rule_sets: Sequence[System], programs: Sequence[System]) -> tuple[System, ...]:
    """Returns rule sets without the rules that nobody reads.

    A rule is left out if no fact that it derives can match a pattern of a program, nor one of a rule that is kept.

    Args:
        rule_sets: The rule sets. Their conclusions are no part of the answer.
        programs: The programs that read them.
    """
    conclusions: Shapes[System] = Shapes()
    for rule_set in rule_sets:
        for rule in rules(rule_set):
            for conclusion in derived_shapes(rule):
                conclusions.add(conclusion, rule)
    pending = [part for program in programs for rule in rules(program) for part in _shapes_read(rule)]
    seen = set(pending)
    needed: set[System] = set()
    while pending:
        for rule in conclusions.overlapping(pending.pop()):
            if rule not in needed:
                needed.add(rule)
                new = set(_shapes_read(rule)) - seen
                seen |= new
                pending += new
    return tuple(_restricted(rule_set, needed) for rule_set in rule_sets)


def _shapes_read(rule: System) -> Iterator[Shape]:
    return (shape(part) for part in walk(rule) if isinstance(part, Pattern | AtomPattern))


def _restricted(system: System, needed: set[System]) -> System:
    """Returns a system with only some of its rules."""
    consequences = system.consequences if system in needed else ()
    subsystems = tuple(
        _restricted(part, needed) for part in system.subsystems if any(rule in needed for rule in rules(part))
    )
    return replace(system, consequences=consequences, subsystems=subsystems)
