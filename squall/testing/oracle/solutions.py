"""Evaluates joinables and predicates to bags of solutions (SPARQL 1.1, section 18.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from squall import functions
from squall.functions import values
from squall.functions.consumption import members_of, preference
from squall.functions.deadlines import time_operands
from squall.model import (
    At,
    AtomPattern,
    Bind,
    Call,
    Consumption,
    Erode,
    Exists,
    FactPattern,
    Filter,
    Iteration,
    Joinable,
    Minus,
    NotExists,
    Optional,
    Pattern,
    Predicate,
    Schedule,
    Select,
    SequenceJoin,
    System,
    TableFunction,
    Temporal,
    Union,
    Variable,
    visible,
)
from squall.rdf import ALWAYS, XSD, Atom, Fact, Term, Triple, is_literal, literal
from squall.testing.oracle.base import Bindings, Instant, once
from squall.testing.oracle.expressions import evaluated, term_of
from squall.testing.oracle.modifiers import grouped, projected, sliced


def solutions_of(part: System, instant: Instant) -> list[Bindings]:
    """Returns the solutions of a rule, a query or a part, as a bag, in the order of its `Slice`."""
    if instant.given and _is_closed(part):
        return _replaced(solutions_of(part, replace(instant, given={})), instant)
    graph = instant.graph(part)
    solutions = _joined(part.joinables, graph, instant)
    for number, predicate in enumerate(part.predicates):
        solutions = _apply(predicate, solutions, graph, instant, (part, number))
    if part.grouping is not None:
        solutions = grouped(part.grouping, solutions, instant)
    if part.consumption is not None:
        solutions = _consuming(part.consumption, solutions, instant, part.name)
    return sliced(part, solutions, instant)


def _consuming(part: Consumption, matches: list[Bindings], instant: Instant, place: str) -> list[Bindings]:
    """Returns the matches that have their occurrences. What they consume holds from the next instant on."""

    def preferred(match: Bindings) -> tuple[object, ...]:
        members = members_of(match[part.members])
        return *preference(_ms(match, part.start), members, part.steps), [match.get(name, "") for name in part.order]

    accepted, now = [], set[object]()
    for match in sorted(matches, key=preferred):
        keys = tuple(match[key] for key in part.keys)
        members = {(place, keys, member) for member in members_of(match[part.members])}
        if not any(member in now or instant.consumed.get(member, instant.time) < instant.time for member in members):
            now |= members
            accepted.append(match)
    instant.consumed.update(dict.fromkeys(now, instant.time))
    return accepted


def _joined(joinables: Iterable[Joinable], graph: set[Fact], instant: Instant) -> list[Bindings]:
    solutions: list[Bindings] = [{}]
    for joinable in joinables:
        right_solutions = _of_joinable(joinable, graph, instant)
        solutions = [{**left, **right} for left in solutions for right in right_solutions if _agree(left, right)]
    return solutions


def _is_closed(part: System) -> bool:
    """Returns whether a part is a sub-query, whose inner variables are invisible outside and are not replaced."""
    selects = any(isinstance(consequence, Select) for consequence in part.consequences)
    return selects or part.distinct or part.grouping is not None or part.slice is not None


def _replaced(solutions: list[Bindings], instant: Instant) -> list[Bindings]:
    """Returns the solutions that agree with the given bindings, without the variables that these bind."""
    bindings = instant.given
    return [
        {name: term for name, term in solution.items() if name not in bindings}
        for solution in solutions
        if _agree(solution, bindings)
    ]


def _agree(left: Bindings, right: Bindings) -> bool:
    return all(right.get(name, term) == term for name, term in left.items())


def _of_joinable(joinable: Joinable, graph: set[Fact], instant: Instant) -> list[Bindings]:
    match joinable:
        case Pattern() | AtomPattern():
            return _replaced(_matches(joinable, graph), instant)
        case Union(branches=branches):
            return [solution for branch in branches for solution in _outside(branch, instant)]
        case SequenceJoin():
            return _sequences(joinable, instant)
        case Temporal():
            return over_time(joinable, instant)
        case System():
            return _outside(joinable, instant)


def held(part: Temporal, instant: Instant) -> set[frozenset[tuple[Variable, Term]]]:
    """Returns the solutions of the system of a `Temporal` that hold now."""
    return {frozenset(solution.items()) for solution in _outside(part.system, instant)}


def over_time(part: Temporal, instant: Instant) -> list[Bindings]:
    """Returns the solutions of a window in a body, or those that hold at a time of their own. Before the first instant
    all was as at `ALWAYS`."""
    # In one piece: one kind after another, as semantics.md lists them.
    now, past = held(part, instant), instant.history.get(id(part), {})
    if instant.time == ALWAYS:
        return [] if isinstance(part, At | Schedule) else [dict(solution) for solution in now]
    if isinstance(part, Schedule):
        time = values.integer(instant.time // part.tick)
        solutions = now.union(*past.values())
        return [dict(solution) for solution in solutions if (part.time, time) in solution]
    step = getattr(part, "step", 0)
    last = instant.time // step * step if step else instant.time
    first = last - part.length - (part.tick - 1 if isinstance(part, At) else 0)  # type: ignore[attr-defined]
    times = range(first, last + 1)
    by_time = {time: now if time == instant.time else past.get(time, past[ALWAYS]) for time in times}
    if isinstance(part, At):
        return [
            {**dict(solution), part.variable: values.integer(time // part.tick)}
            for time, solutions in by_time.items()
            if time % part.tick == 0
            for solution in solutions
        ]
    combine = set.intersection if isinstance(part, Erode) else set.union
    return [dict(solution) for solution in combine(*by_time.values())]


def _sequences(part: SequenceJoin, instant: Instant) -> list[Bindings]:
    """Returns the solutions of a sequence join, or of an iteration."""
    lefts, rights = _outside(part.left, instant), _outside(part.right, instant)
    if not isinstance(part, Iteration):
        return _pairs(part, lefts, rights, instant)
    solutions: list[Bindings] = []
    while lefts:
        pairs = _pairs(part, lefts, rights, instant)
        runs = once(_longer(part, pair, instant) for pair in pairs)
        solutions += runs
        lefts = [run for run in runs if part.again is None or evaluated(part.again, run, instant) is True]
    return once(solutions)


def _longer(part: Iteration, pair: Bindings, instant: Instant) -> Bindings:
    """Returns the run that a pair makes."""
    run = {name: pair[name] for name in visible(part.left) if name in pair}
    terms = {**run, **{name: term_of(value, pair, instant) for name, value in part.values}}
    return {name: term for name, term in terms.items() if term is not None}


def _pairs(
    part: SequenceJoin, lefts: Sequence[Bindings], rights: Sequence[Bindings], instant: Instant
) -> list[Bindings]:
    """Returns the pairs of occurrences of which the right one begins after the left one ends, as selected."""
    # In one piece: comprehensions, each a sentence of the definition.
    pairs = [
        (number, other_number, {**left, **right})
        for number, left in enumerate(lefts)
        for other_number, right in enumerate(rights)
        if _agree(left, right) and _follows(part, {**left, **right}, instant)
    ]
    ends = [(left, right, _ms(pair, part.left_end), _ms(pair, part.right_end)) for left, right, pair in pairs]
    if part.selection == "nearest":
        pairs = [
            pair
            for pair in pairs
            if not any(left == pair[0] and end < _ms(pair[2], part.right_end) for left, _, _, end in ends)
        ]
    if part.selection == "last":
        pairs = [
            pair
            for pair in pairs
            if not any(right == pair[1] and end > _ms(pair[2], part.left_end) for _, right, end, _ in ends)
        ]
    return [solution for _, _, solution in pairs]


def _follows(part: SequenceJoin, pair: Bindings, instant: Instant) -> bool:
    """Returns whether the two of a pair are so far apart as they have to be, fulfil the condition, and have between
    them what has to be there."""
    end, start = _ms(pair, part.left_end), _ms(pair, part.right_start)
    if start - end < part.min_gap or (part.max_gap is not None and start - end > part.max_gap):
        return False
    if part.condition is not None and evaluated(part.condition, pair, instant) is not True:
        return False
    return all(
        inner.wanted
        == any(
            end < _ms(solution, inner.start) and _ms(solution, inner.end) < start
            for solution in _outside(inner.system, instant)
            if _agree(pair, solution)
        )
        for inner in part.between
    )


def _ms(solution: Bindings, name: Variable) -> int:
    """Returns the time (integer ms) that a variable holds."""
    return int(solution[name].split('"')[1])


def _matches(pattern: FactPattern, graph: set[Fact]) -> list[Bindings]:
    """Returns the solutions of a pattern as a set: facts that differ only in the spelling of a constant count once."""
    solutions = (_match(pattern, fact) for fact in graph)
    return once(solution for solution in solutions if solution is not None)


def _match(pattern: FactPattern, fact: Fact) -> Bindings | None:
    match pattern, fact:
        case Pattern(), Triple():
            terms: tuple[Term, ...] = tuple(fact)
        case AtomPattern(relation=relation), Atom(relation=fact_relation, arguments=terms) if relation == fact_relation:
            pass
        case _:
            return None
    if len(terms) != len(pattern.slots):
        return None
    solution: Bindings = {}
    for slot, term in zip(pattern.slots, terms, strict=True):
        if isinstance(slot, Variable):
            if solution.setdefault(slot, term) != term:
                return None
        elif not (slot == term if pattern.exact else same(slot, term)):
            return None
    return solution


def same(constant: Term, term: Term) -> bool:
    if is_literal(constant) and is_literal(term):
        return values.value_key(constant) == values.value_key(term)
    return constant == term


def _outside(part: System, instant: Instant) -> list[Bindings]:
    """Returns the solutions of a part, projected to its visible variables."""
    return projected(visible(part), solutions_of(part, instant))


def _apply(
    predicate: Predicate, solutions: list[Bindings], graph: set[Fact], instant: Instant, place: object
) -> list[Bindings]:
    # In one piece: a flat match, which reads as the definition of each predicate.
    match predicate:
        case Filter(expression=expression):
            at = instant if time_operands(expression) is None else instant.anew()
            return [solution for solution in solutions if evaluated(expression, solution, at, place) is True]
        case Bind(variable=variable, expression=expression, keep_unbound=keeps):
            terms = [(solution, term_of(expression, solution, instant, place)) for solution in solutions]
            valued = ((solution, {} if value is None else {variable: value}) for solution, value in terms)
            return [
                {**solution, **extended}
                for solution, value in valued
                if value or keeps
                for extended in _replaced([value], instant)
            ]
        case TableFunction():
            rows = [(solution, _replaced(list(_rows(predicate, solution, instant)), instant)) for solution in solutions]
            return [{**solution, **row} for solution, bound_rows in rows for row in bound_rows]
        case NotExists(joinables=joinables):
            right_solutions = _joined(joinables, graph, instant)
            return [left for left in solutions if not any(_agree(left, right) for right in right_solutions)]
        case Minus(joinables=joinables, ignored=ignored):
            right_solutions = _joined(joinables, graph, instant)
            return [
                left
                for left in solutions
                if not any(
                    _agree(left, right) and (left.keys() & right.keys()) - {*ignored} for right in right_solutions
                )
            ]
        case Optional():
            return _left_joined(predicate, solutions, instant)
        case Exists():
            return [extended for solution in solutions for extended in _with_existence(predicate, solution, instant)]


def _with_existence(predicate: Exists, solution: Bindings, instant: Instant) -> list[Bindings]:
    """Returns the solution if the predicate accepts it, with the result of EXISTS bound (SPARQL 1.1, section 18.6)."""
    bindings = {**instant.given, **solution}
    exists = bool(_outside(predicate.system, replace(instant, given=bindings)))
    if predicate.wanted not in (None, exists):
        return []
    if predicate.variable is None:
        return [solution]
    return [{**solution, predicate.variable: literal(str(exists).lower(), XSD + "boolean")}]


def _left_joined(predicate: Optional, solutions: list[Bindings], instant: Instant) -> list[Bindings]:
    right_solutions = _outside(predicate.system, instant)
    result: list[Bindings] = []
    for left in solutions:
        pairs = [{**left, **right} for right in right_solutions if _agree(left, right)]
        condition = predicate.condition
        accepted = [
            pair for pair in pairs if condition is None or _condition_is_true(predicate, condition, pair, instant)
        ]
        result += accepted or [left]
    return result


def _condition_is_true(predicate: Optional, condition: Call, pair: Bindings, instant: Instant) -> bool:
    for exists in predicate.exists:
        (pair,) = _with_existence(replace(exists, wanted=None), pair, instant)
    return evaluated(condition, pair, instant) is True


def _rows(predicate: TableFunction, solution: Bindings, instant: Instant) -> Iterator[Bindings]:
    arguments = [evaluated(argument, solution, instant) for argument in predicate.arguments]
    rows: Any = functions.lookup(predicate.function).evaluate(*arguments)
    for row in rows or ():
        yield dict(zip(predicate.variables, row, strict=True))
