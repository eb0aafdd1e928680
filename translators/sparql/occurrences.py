"""Identities of solutions: variables that distinguish equal solutions of a bag.

Solutions are equal where a projection hides in what they differ, where branches of a union have the same solution, and
where VALUES repeats a row. A part with an identity has a variable for that. So two solutions of it are never equal, and
there are as many as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from squall.functions.sparql.tables import TABLE
from squall.functions.sparql.terms import OCCURRENCE
from squall.model import (
    Bind,
    Call,
    Expression,
    Joinable,
    Optional,
    Predicate,
    Select,
    System,
    TableFunction,
    Union,
    Variable,
    variables,
    visible,
)
from squall.rdf import XSD, Term, literal

Fresh = Callable[[str], Variable]
"""Returns a new variable (`squall.translators.sparql.state.State.fresh`)."""


def with_identity(part: Joinable, fresh: Fresh) -> Joinable:
    """Returns a part with the same solutions, whose visible variables differ in any two of them."""
    match part:
        case Union(branches=branches) if not all(map(_has_occurrence, branches)):
            occurrence = fresh("occurrence")
            return Union(tuple(_branch(branch, occurrence, number, fresh) for number, branch in enumerate(branches)))
        case System():
            return _system(part, fresh)
        case _:
            return part


def with_identity_after(predicate: Predicate, fresh: Fresh) -> Predicate:
    """Returns a predicate that extends each solution by different values each time."""
    match predicate:
        case Optional(system=system):
            return replace(predicate, system=_system(system, fresh))
        case TableFunction(function=TABLE.iri):
            return _table(predicate, fresh)
        case _:
            return predicate


def identity(joinables: Iterable[Joinable], predicates: Iterable[Predicate]) -> tuple[Variable, ...]:
    """Returns the variables that identify the solutions of parts that have an identity.

    Those that other variables determine (`Bind`, `Exists`) are none of them.
    """
    names = [name for joinable in joinables for name in variables(joinable)]
    for predicate in predicates:
        match predicate:
            case Optional(system=system):
                names += visible(system)
            case TableFunction(variables=results):
                names += results
    return tuple(dict.fromkeys(names))


def _system(part: System, fresh: Fresh) -> System:
    if part.distinct or (part.grouping is not None and not _hidden(part, part.grouping.keys)):
        return part
    if part.grouping is not None:
        groups = replace(part, slice=None, consequences=())
        projected = System(part.name, part.sources, (groups,), slice=part.slice, consequences=part.consequences)
        return _projected(replace(projected, origin=part.origin), fresh)
    joinables = tuple(with_identity(joinable, fresh) for joinable in part.joinables)
    predicates = tuple(with_identity_after(predicate, fresh) for predicate in part.predicates)
    return _projected(replace(part, joinables=joinables, predicates=predicates), fresh)


def _projected(part: System, fresh: Fresh) -> System:
    """Returns a system with a visible variable for those that its projection hides."""
    hidden = _hidden(part, identity(part.joinables, part.predicates))
    if not hidden or _has_occurrence(part):
        return part
    occurrence = fresh("occurrence")
    selected = Select((*visible(part), occurrence))
    return replace(part, predicates=(*part.predicates, _bound(occurrence, hidden)), consequences=(selected,))


def _hidden(part: System, names: Iterable[Variable]) -> tuple[Variable, ...]:
    seen_outside = frozenset(visible(part))
    return tuple(name for name in names if name not in seen_outside)


def _branch(branch: System, occurrence: Variable, number: int, fresh: Fresh) -> System:
    """Returns a branch of a union with a variable for its number and its solution."""
    part = _system(branch, fresh)
    bound = _bound(occurrence, (_integer(number), *visible(part)))
    return System(sources=branch.sources, joinables=(part,), predicates=(bound,), origin=branch.origin)


def _bound(occurrence: Variable, terms: Iterable[Expression]) -> Bind:
    return Bind(occurrence, Call(OCCURRENCE.iri, tuple(terms)))


def _has_occurrence(part: System) -> bool:
    """Returns whether `_bound` has been added to a part."""
    match part.predicates:
        case (*_, Bind(expression=Call(function=OCCURRENCE.iri))):
            return True
        case _:
            return False


def _table(predicate: TableFunction, fresh: Fresh) -> TableFunction:
    """Returns the table with a column of row numbers if a row is repeated."""
    cells = predicate.arguments[1:]
    size = len(predicate.variables)
    rows = [tuple(cells[place : place + size]) for place in range(0, len(cells), size)]
    if len(set(rows)) == len(rows):
        return predicate
    numbered = [cell for number, row in enumerate(rows) for cell in (*row, _integer(number))]
    names = (*predicate.variables, fresh("row"))
    return replace(predicate, variables=names, arguments=(_integer(size + 1), *numbered))


def _integer(number: int) -> Term:
    return literal(str(number), XSD + "integer")
