"""Solutions of joinables and predicates (SPARQL 1.1, section 18.5), as bags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from squall import functions
from squall.functions import values
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Exists,
    FactPattern,
    Filter,
    Joinable,
    Optional,
    Pattern,
    Predicate,
    Select,
    System,
    TableFunction,
    Union,
    Variable,
    Without,
    visible,
)
from squall.rdf import XSD, Atom, Fact, Term, Triple, is_literal, literal
from squall.testing.oracle.base import Bindings, Instant, once
from squall.testing.oracle.expressions import evaluated, term_of
from squall.testing.oracle.modifiers import grouped, projected, sliced


def solutions_of(part: System, instant: Instant) -> list[Bindings]:
    """The solutions of a rule, a query or a part, as a bag, in the order of its `Slice`."""
    if instant.given and _is_closed(part):
        return _replaced(solutions_of(part, replace(instant, given={})), instant)
    graph = instant.graph(part)
    found = _joined(part.joinables, graph, instant)
    for number, predicate in enumerate(part.predicates):
        found = _apply(predicate, found, graph, instant, (part, number))
    if part.grouping is not None:
        found = grouped(part.grouping, found, instant)
    return sliced(part, found, instant)


def _joined(joinables: Iterable[Joinable], graph: set[Fact], instant: Instant) -> list[Bindings]:
    found: list[Bindings] = [{}]
    for joinable in joinables:
        others = _of_joinable(joinable, graph, instant)
        found = [{**one, **other} for one in found for other in others if _agree(one, other)]
    return found


def _is_closed(part: System) -> bool:
    """Whether a part is a sub-query: what it does not show cannot be seen from outside, and is not replaced in it."""
    selects = any(isinstance(one, Select) for one in part.consequences)
    return selects or part.distinct or part.grouping is not None or part.slice is not None


def _replaced(found: list[Bindings], instant: Instant) -> list[Bindings]:
    """Solutions of what has variables for values that are given, as they are if it has the values instead."""
    given = instant.given
    return [{name: term for name, term in one.items() if name not in given} for one in found if _agree(one, given)]


def _agree(one: Bindings, other: Bindings) -> bool:
    return all(other.get(name, term) == term for name, term in one.items())


def _of_joinable(joinable: Joinable, graph: set[Fact], instant: Instant) -> list[Bindings]:
    match joinable:
        case Pattern() | AtomPattern():
            return _replaced(_matches(joinable, graph), instant)
        case Union(branches=branches):
            return [solution for branch in branches for solution in _outside(branch, instant)]
        case System():
            return _outside(joinable, instant)


def _matches(pattern: FactPattern, graph: set[Fact]) -> list[Bindings]:
    """What a pattern finds, as a set: facts that differ in a constant's spelling alone are found once."""
    found = (_match(pattern, fact) for fact in graph)
    return once(solution for solution in found if solution is not None)


def _match(pattern: FactPattern, fact: Fact) -> Bindings | None:
    match pattern, fact:
        case Pattern(), Triple():
            terms: tuple[Term, ...] = tuple(fact)
        case AtomPattern(relation=relation), Atom(relation=other, arguments=terms) if relation == other:
            pass
        case _:
            return None
    if len(terms) != len(pattern.slots):
        return None
    found: Bindings = {}
    for slot, term in zip(pattern.slots, terms, strict=True):
        if isinstance(slot, Variable):
            if found.setdefault(slot, term) != term:
                return None
        elif not (slot == term if pattern.exact else same(slot, term)):
            return None
    return found


def same(constant: Term, term: Term) -> bool:
    if is_literal(constant) and is_literal(term):
        return values.value_key(constant) == values.value_key(term)
    return constant == term


def _outside(part: System, instant: Instant) -> list[Bindings]:
    """A part's solutions as they are seen from outside."""
    return projected(visible(part), solutions_of(part, instant))


def _apply(
    predicate: Predicate, found: list[Bindings], graph: set[Fact], instant: Instant, place: object
) -> list[Bindings]:
    match predicate:
        case Filter(expression=expression):
            return [one for one in found if evaluated(expression, one, instant, place) is True]
        case Bind(variable=variable, expression=expression, keeps=keeps):
            made = [(one, term_of(expression, one, instant, place)) for one in found]
            valued = ((one, {} if value is None else {variable: value}) for one, value in made)
            return [{**one, **two} for one, value in valued if value or keeps for two in _replaced([value], instant)]
        case TableFunction():
            rows = [(one, _replaced(list(_rows(predicate, one, instant)), instant)) for one in found]
            return [{**one, **row} for one, its in rows for row in its]
        case Without(joinables=joinables, minus=minus, apart=apart):
            others = _joined(joinables, graph, instant)
            return [
                one
                for one in found
                if not any(
                    _agree(one, other) and (not minus or (one.keys() & other.keys()) - {*apart}) for other in others
                )
            ]
        case Optional():
            return _left_joined(predicate, found, instant)
        case Exists():
            return [two for one in found for two in _asked(predicate, one, instant)]


def _asked(predicate: Exists, solution: Bindings, instant: Instant) -> list[Bindings]:
    """The solution, if it is wanted, with whether what is asked for exists (SPARQL 1.1, section 18.6)."""
    given = {**instant.given, **solution}
    exists = bool(_outside(predicate.system, replace(instant, given=given)))
    if predicate.wanted not in (None, exists):
        return []
    if predicate.variable is None:
        return [solution]
    return [{**solution, predicate.variable: literal(str(exists).lower(), XSD + "boolean")}]


def _left_joined(predicate: Optional, found: list[Bindings], instant: Instant) -> list[Bindings]:
    others = _outside(predicate.system, instant)
    result: list[Bindings] = []
    for one in found:
        pairs = [{**one, **other} for other in others if _agree(one, other)]
        condition = predicate.condition
        kept = [pair for pair in pairs if condition is None or _holds(predicate, condition, pair, instant)]
        result += kept or [one]
    return result


def _holds(predicate: Optional, condition: Call, pair: Bindings, instant: Instant) -> bool:
    for one in predicate.exists:
        (pair,) = _asked(replace(one, wanted=None), pair, instant)
    return evaluated(condition, pair, instant) is True


def _rows(predicate: TableFunction, solution: Bindings, instant: Instant) -> Iterator[Bindings]:
    arguments = [evaluated(argument, solution, instant) for argument in predicate.arguments]
    made: Any = functions.lookup(predicate.function).evaluate(*arguments)
    for row in made or ():
        yield dict(zip(predicate.variables, row, strict=True))
