"""The scope of variables in EXISTS: which variables of a part the outer solution may bind, and which the part binds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from squall.model import (
    At,
    AtomPattern,
    Bind,
    Call,
    Filter,
    Iteration,
    Joinable,
    Minus,
    Negation,
    Optional,
    Pattern,
    Predicate,
    Select,
    SequenceJoin,
    System,
    TableFunction,
    Temporal,
    Union,
    Variable,
    variables,
    visible,
)
from squall.model.walk import inside

Names = frozenset[Variable]


def is_closed(part: System) -> bool:
    """Returns whether a part is a subquery, which is evaluated by itself.

    The variables that it does not project are independent of the outside.
    """
    modified = part.grouping is not None or part.slice is not None or part.distinct
    return modified or any(isinstance(consequence, Select) for consequence in part.consequences)


def mentioned(part: Joinable | Predicate) -> Names:
    """Returns the variables of a part that an outer solution may bind."""
    return frozenset(_mentioned(part))


def single_use_variables(rule: System) -> Names:
    """Returns the variables that occur only once in a rule: in one pattern, or in one place of anything else."""
    places = Counter(_occurrences(rule))
    return frozenset(name for name, count in places.items() if count == 1)


def _occurrences(part: object) -> Iterator[Variable]:
    match part:
        case Variable():
            yield part
        case Pattern() | AtomPattern():
            yield from set(variables(part))
        case tuple():
            for inner in part:
                yield from _occurrences(inner)
        case _ if is_dataclass(part):
            for field in fields(part):
                yield from _occurrences(getattr(part, field.name))


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
        case TableFunction(variables=results, arguments=arguments):
            yield from results
            for argument in arguments:
                yield from variables(argument)
        case _:
            if isinstance(part, Optional):
                yield from variables(part.condition)
            for inner in inside(part):
                yield from _mentioned(inner)


def always_bound(part: Joinable) -> Names:
    """Returns the variables that are bound in every solution of a part, as seen from outside."""
    match part:
        case Pattern() | AtomPattern():
            return frozenset(variables(part))
        case Union(branches=branches):
            return frozenset.intersection(*map(always_bound, branches)) if branches else frozenset()
        case Iteration(left=left, values=values):
            return always_bound(left) - {name for name, value in values if isinstance(value, Call)}
        case SequenceJoin(left=left, right=right):
            return always_bound(left) | always_bound(right)
        case At(system=system, variable=variable):
            return always_bound(system) | {variable}
        case Temporal(system=system):
            return always_bound(system)
        case System(joinables=joinables, predicates=predicates, grouping=grouping):
            bound = _bound(joinables).union(*map(_assigned, predicates))
            if grouping is not None:
                bound &= set(grouping.keys)
            return bound & set(visible(part))


def _bound(joinables: Iterable[Joinable]) -> Names:
    return frozenset().union(*map(always_bound, joinables))


def _assigned(predicate: Predicate) -> Names:
    """Returns the variables that a predicate binds in every solution."""
    match predicate:
        case Bind(variable=variable, keep_unbound=False):
            return frozenset((variable,))
        case TableFunction(variables=results):
            return frozenset(results)
        case _:
            return frozenset()


def is_independent(part: System, outer_names: Names) -> bool:
    """Returns whether a part may be evaluated by itself and then joined on the outer variables.

    The alternative is to substitute the values of the outer solution first (SPARQL 1.1, section 18.6).
    """
    return mentioned(part) & outer_names <= always_bound(part) and _is_joinable(part, outer_names)


def _is_joinable(part: Joinable, outer_names: Names) -> bool:
    """Returns whether no predicate in a part reads an outer variable that the part itself need not bind."""
    match part:
        case System() if not is_closed(part):
            bound = _bound(part.joinables)
            for predicate in part.predicates:
                if not _is_joinable_predicate(predicate, outer_names, bound):
                    return False
                bound |= _assigned(predicate)
            return all(_is_joinable(predicate, outer_names) for predicate in part.joinables)
        case Union(branches=branches):
            return all(_is_joinable(branch, outer_names) for branch in branches)
        case _:
            return True


def _is_joinable_predicate(predicate: Predicate, outer_names: Names, bound: Names) -> bool:
    reads = (mentioned(predicate) - _assigned(predicate)) & outer_names
    match predicate:
        case Minus() if reads:
            return False  # what is replaced by its value is shared no more
        case Negation(joinables=joinables):
            return reads <= bound and all(_is_joinable(joinable, outer_names) for joinable in joinables)
        case Optional(system=system):
            return reads <= bound and _is_joinable(system, outer_names)
        case _:
            return reads <= bound
