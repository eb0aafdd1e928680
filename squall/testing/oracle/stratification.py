"""Strata: which rules have to be done before which."""

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
    Optional,
    Pattern,
    System,
    Union,
    Variable,
    Without,
)
from squall.testing.oracle.base import reads_derived
from squall.testing.oracle.solutions import same


def stratified(program: list[System]) -> list[list[System]]:
    """The rules, layer by layer: each after all that it negates, and not before what it reads."""
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
    """The places of the rules that this one reads, with 1 where it needs all that they make (negation, an aggregate, a
    slice, the time) and 0 elsewhere."""
    for pattern, part, whole in patterns(rule):
        for at, other in enumerate(program):
            if reads_derived(part) and any(may_meet(head, pattern) for head in _heads(other)):
                yield at, whole


def _heads(rule: System) -> list[FactPattern]:
    made = [one for one in rule.consequences if isinstance(one, Construct) and rule.reentrant]
    return [template for construct in made for template in construct.template]


def patterns(part: System, whole: int = 0) -> Iterator[tuple[FactPattern, System, int]]:
    """The patterns of a rule, each with the part that it is in, and 1 where more facts may make less solutions."""
    timed = any(_is_timed(one.expression) for one in part.predicates if isinstance(one, Filter | Bind))
    within = 1 if part.grouping or part.slice or timed else whole
    for joinable in part.joinables:
        yield from _inner(joinable, part, within)
    for predicate in part.predicates:
        if isinstance(predicate, Without):
            for joinable in predicate.joinables:
                yield from _inner(joinable, part, 1)
        if isinstance(predicate, Optional):
            yield from patterns(predicate.system, 1)
            for asked in predicate.exists:
                yield from patterns(asked.system, 1)
        if isinstance(predicate, Exists):
            yield from patterns(predicate.system, within if predicate.wanted else 1)


def _inner(joinable: Joinable, part: System, whole: int) -> Iterator[tuple[FactPattern, System, int]]:
    match joinable:
        case Pattern() | AtomPattern():
            yield joinable, part, whole
        case Union(branches=branches):
            for branch in branches:
                yield from patterns(branch, whole)
        case System():
            yield from patterns(joinable, whole)


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
