"""Which variables of a part a solution around it may give a value (EXISTS), and which the part binds by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from squall.model import (
    AtomPattern,
    Bind,
    Filter,
    Joinable,
    Minus,
    Negation,
    Optional,
    Pattern,
    Predicate,
    Select,
    System,
    TableFunction,
    Union,
    Variable,
    variables,
    visible,
)
from squall.planners.lowering.walk import inside

Names = frozenset[Variable]


def is_closed(part: System) -> bool:
    """Whether a part is evaluated by itself: a sub-query. What it does not show has nothing to do with the outside."""
    modified = part.grouping is not None or part.slice is not None or part.distinct
    return modified or any(isinstance(consequence, Select) for consequence in part.consequences)


def mentioned(part: Joinable | Predicate) -> Names:
    """The variables of a part to which a solution around it may give a value."""
    return frozenset(_mentioned(part))


def alone(rule: System) -> Names:
    """The variables that stand in one place of a rule: one pattern, or one place of anything else."""
    places = Counter(_places(rule))
    return frozenset(name for name, count in places.items() if count == 1)


def _places(part: object) -> Iterator[Variable]:
    match part:
        case Variable():
            yield part
        case Pattern() | AtomPattern():
            yield from set(variables(part))
        case tuple():
            for inner in part:
                yield from _places(inner)
        case _ if is_dataclass(part):
            for field in fields(part):
                yield from _places(getattr(part, field.name))


def _mentioned(part: Joinable | Predicate) -> Iterator[Variable]:
    match part:
        case Pattern() | AtomPattern():
            yield from variables(part)
        case System() if is_closed(part):
            yield from visible(part)
        case Filter(expression=expression):
            yield from variables(expression)
        case Bind(variable=variable, expression=expression):
            yield from (variable, *variables(expression))
        case TableFunction(variables=made, arguments=arguments):
            yield from made
            for argument in arguments:
                yield from variables(argument)
        case _:
            if isinstance(part, Optional):
                yield from variables(part.condition)
            for inner in inside(part):
                yield from _mentioned(inner)


def definite(part: Joinable) -> Names:
    """The variables that are bound in every solution of a part, as it is seen from outside."""
    match part:
        case Pattern() | AtomPattern():
            return frozenset(variables(part))
        case Union(branches=branches):
            return frozenset.intersection(*map(definite, branches)) if branches else frozenset()
        case System(joinables=joinables, predicates=predicates, grouping=grouping):
            bound = _bound(joinables).union(*map(_made, predicates))
            if grouping is not None:
                bound &= set(grouping.keys)
            return bound & set(visible(part))


def _bound(joinables: Iterable[Joinable]) -> Names:
    return frozenset().union(*map(definite, joinables))


def _made(predicate: Predicate) -> Names:
    """The variables to which a predicate gives a value in every solution."""
    match predicate:
        case Bind(variable=variable, keep_unbound=False):
            return frozenset((variable,))
        case TableFunction(variables=made):
            return frozenset(made)
        case _:
            return frozenset()


def is_independent(part: System, outer_names: Names) -> bool:
    """Whether it makes no difference if a part is evaluated for a solution, the variables `given` replaced by their
    values, or by itself and then joined with it on these."""
    return mentioned(part) & outer_names <= definite(part) and _is_plain(part, outer_names)


def _is_plain(part: Joinable, outer_names: Names) -> bool:
    """Whether no predicate in a part reads one of the variables where the part itself need not bind it."""
    match part:
        case System() if not is_closed(part):
            bound = _bound(part.joinables)
            for predicate in part.predicates:
                if not _reads_plainly(predicate, outer_names, bound):
                    return False
                bound |= _made(predicate)
            return all(_is_plain(predicate, outer_names) for predicate in part.joinables)
        case Union(branches=branches):
            return all(_is_plain(branch, outer_names) for branch in branches)
        case _:
            return True


def _reads_plainly(predicate: Predicate, outer_names: Names, bound: Names) -> bool:
    reads = (mentioned(predicate) - _made(predicate)) & outer_names
    match predicate:
        case Minus() if reads:
            return False  # what is replaced by its value is shared no more
        case Negation(joinables=joinables):
            return reads <= bound and all(_is_plain(joinable, outer_names) for joinable in joinables)
        case Optional(system=system):
            return reads <= bound and _is_plain(system, outer_names)
        case _:
            return reads <= bound
