"""Stratification: which rules must be evaluated before which."""

from __future__ import annotations

from collections.abc import Iterator

from squall import functions
from squall.errors import PlannerError
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Construct,
    Exists,
    Expression,
    FactPattern,
    Filter,
    Joinable,
    Negation,
    Optional,
    Pattern,
    SequenceJoin,
    System,
    Temporal,
    Union,
    Variable,
)
from squall.testing.oracle.base import reads_derived
from squall.testing.oracle.solutions import same


def stratified(program: list[System]) -> list[list[System]]:
    """Returns the rules stratum by stratum: each after those that it negates, and not before those that it reads."""
    level = [0] * len(program)
    settled = False
    while not settled:
        settled = True
        for index, rule in enumerate(program):
            least = max((level[at] + negated for at, negated in _needs(rule, program)), default=0)
            if least > len(program):
                raise PlannerError(f"the rule `{rule.name}` depends on its own negation", rule.origin)
            if least > level[index]:
                level[index], settled = least, False
    return [[rule for rule, at in zip(program, level, strict=True) if at == layer] for layer in sorted(set(level))]


def _needs(rule: System, program: list[System]) -> Iterator[tuple[int, int]]:
    """Yields the positions of the rules that this one reads, with 1 for a strict dependency (negation, an aggregate, a
    slice, the time) and 0 otherwise."""
    for pattern, part, strict in patterns(rule):
        for at, other in enumerate(program):
            if reads_derived(part) and any(may_meet(head, pattern) for head in _heads(other)):
                yield at, strict


def _heads(rule: System) -> list[FactPattern]:
    constructs = [
        consequence for consequence in rule.consequences if isinstance(consequence, Construct) and rule.reentrant
    ]
    return [template for construct in constructs for template in construct.template]


def patterns(part: System, strict: int = 0) -> Iterator[tuple[FactPattern, System, int]]:
    """Yields the patterns of a rule, each with its part, and 1 if more facts may give fewer solutions."""
    is_timed = any(_is_timed(item.expression) for item in part.predicates if isinstance(item, Filter | Bind))
    within = 1 if part.grouping or part.slice or is_timed else strict
    for joinable in part.joinables:
        yield from _inner(joinable, part, within)
    for predicate in part.predicates:
        if isinstance(predicate, Negation):
            for joinable in predicate.joinables:
                yield from _inner(joinable, part, 1)
        if isinstance(predicate, Optional):
            yield from patterns(predicate.system, 1)
            for exists in predicate.exists:
                yield from patterns(exists.system, 1)
        if isinstance(predicate, Exists):
            yield from patterns(predicate.system, within if predicate.wanted else 1)


def _inner(joinable: Joinable, part: System, strict: int) -> Iterator[tuple[FactPattern, System, int]]:
    match joinable:
        case Pattern() | AtomPattern():
            yield joinable, part, strict
        case Union(branches=branches):
            for branch in branches:
                yield from patterns(branch, strict)
        case SequenceJoin(sides=sides):
            for side in sides:
                yield from patterns(side, 1)
        case Temporal(system=system):
            yield from patterns(system, strict)
        case System():
            yield from patterns(joinable, strict)


def _is_timed(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return False
    return functions.lookup(expression.function).timed or any(map(_is_timed, expression.arguments))


def may_meet(head: FactPattern, pattern: FactPattern) -> bool:
    if isinstance(head, AtomPattern) and isinstance(pattern, AtomPattern) and head.relation != pattern.relation:
        return False
    if type(head) is not type(pattern) or len(head.slots) != len(pattern.slots):
        return False
    pairs = zip(head.slots, pattern.slots, strict=True)
    return all(isinstance(a, Variable) or isinstance(b, Variable) or same(a, b) for a, b in pairs)
