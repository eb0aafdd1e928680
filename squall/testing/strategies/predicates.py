"""Strategies for predicates: filters, binds, negation, left joins, MINUS and EXISTS."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

from hypothesis import strategies as st

from squall import functions
from squall.functions.jena import function_iri
from squall.model import (
    Bind,
    Call,
    Exists,
    Joinable,
    Minus,
    NotExists,
    Optional,
    Pattern,
    Predicate,
    Select,
    Slot,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    visible,
)
from squall.rdf import Term
from squall.testing.strategies.joinables import (
    calls,
    conditions,
    drawn_of,
    extended,
    of_patterns,
    parts_of,
    patterns_of,
    renamed,
    some,
    unions,
)
from squall.testing.strategies.streams import one_in
from squall.testing.strategies.vocabulary import ALSO, LITERALS, MADE, NAMES, NODES, THERE, TRUTHS, Scope, Shape


@st.composite
def predicates_of(
    draw: st.DrawFn, shape: Shape, scope: Scope, sources: tuple[Source, ...], binds: bool
) -> tuple[tuple[Predicate, ...], Scope]:
    """Draws filters, binds, table functions, negations and left joins. Variables that the body does not bind are
    unbound.
    """
    predicates: list[Predicate] = []
    if draw(one_in(4)) and scope.all:
        predicates.append(draw(conditions(scope)))
    if binds:
        keep_unbound = "keep_unbound" in shape.features and draw(st.booleans())
        predicates.append(Bind(MADE, draw(calls(scope)), keep_unbound))
        scope = scope.plus(Scope(maybe=(MADE,))) if keep_unbound else extended(scope, MADE.name)
    if shape.below:
        features = drawn_of(draw, shape, {"negation": 2, "optional": 4, "table_functions": 5, "minus": 6, "exists": 1})
        for kind in draw(st.permutations(sorted(features))):
            predicate, scope = draw(_PREDICATES[kind](shape, scope, sources))
            predicates.append(predicate)
        # What a left join or a table function gives may be asked for as well.
        if draw(one_in(3)) and features - {"negation", "minus"} and scope.all:
            predicates.append(draw(conditions(scope)))
    return tuple(predicates), scope


@st.composite
def _negations(draw: st.DrawFn, shape: Shape, scope: Scope, sources: tuple[Source, ...]) -> tuple[Predicate, Scope]:
    joinables: tuple[Joinable, ...] = (draw(_negated(shape.below, scope.bound)),)
    if "subqueries" in shape.features and draw(one_in(3)):
        more = (
            draw(parts_of(shape, shape.below, sources, "w"))[0]
            if draw(st.booleans())
            else draw(_negated(shape.below, scope.bound))
        )
        joinables = (*joinables, more)
    return NotExists(joinables), scope


@cache
def _negated(predicates: tuple[Term, ...], bound: tuple[Variable, ...]) -> st.SearchStrategy[Pattern]:
    """Draws a pattern over lower strata, usually about bound variables. ``?u`` and ``?v`` are variables of its own."""
    subjects: tuple[Slot, ...] = (*6 * bound, *NAMES, Variable("u"), NODES[0])
    values: tuple[Slot, ...] = (*2 * bound, *NAMES, Variable("v"), Variable("v"), *NODES, LITERALS[1])
    slots = product(subjects, predicates, values)
    return st.sampled_from([Pattern(*slot) for slot in slots])


@st.composite
def _left_joins(draw: st.DrawFn, shape: Shape, scope: Scope, sources: tuple[Source, ...]) -> tuple[Predicate, Scope]:
    """Draws a left join on bound variables. Every other variable of its right side has a name of its own."""
    most = 2 if "subqueries" in shape.features else 1
    patterns = draw(st.lists(patterns_of(shape.below), min_size=1, max_size=most))
    if not draw(one_in(4)):
        # One of its own, or else all that it does is to multiply.
        patterns[0] = replace(patterns[0], object=Variable("o"))
    inner = of_patterns(patterns)
    own = [name for name in inner.bound if name not in scope.bound]
    nullable = "nullable" in shape.features and draw(st.booleans())
    names = {name: name if nullable else Variable(f"m{name.name}") for name in own}
    right = System("", sources, tuple(renamed(pattern, names) for pattern in patterns))
    after = scope.plus(Scope(maybe=tuple(names.values())))
    condition = draw(conditions(after)).expression if draw(one_in(3)) else None
    exists: tuple[Exists, ...] = ()
    if "exists" in shape.features and draw(one_in(4)):
        exists = (Exists(ALSO, draw(_exists_part(shape, after, sources))),)
        condition = Call(function_iri("equal"), (ALSO, draw(st.sampled_from(TRUTHS))))
    return Optional(right, condition, exists), after


@st.composite
def _minuses(draw: st.DrawFn, shape: Shape, scope: Scope, sources: tuple[Source, ...]) -> tuple[Predicate, Scope]:
    """Draws a MINUS of a pattern, or of a union in which a variable may be unbound."""
    joinable: Joinable = draw(_negated(shape.below, scope.bound))
    if "nullable" in shape.features and draw(one_in(3)):
        joinable, _ = draw(unions(shape, shape.below, sources))
    return Minus((joinable,)), scope


@st.composite
def _exists_predicates(
    draw: st.DrawFn, shape: Shape, scope: Scope, sources: tuple[Source, ...]
) -> tuple[Predicate, Scope]:
    part = draw(_exists_part(shape, scope, sources))
    expected = draw(st.sampled_from((True, False, None)))
    if expected is not None and draw(st.booleans()):
        return Exists(None, part, expected), scope
    return Exists(THERE, part, expected), extended(scope, THERE.name)


@st.composite
def _exists_part(draw: st.DrawFn, shape: Shape, scope: Scope, sources: tuple[Source, ...], deep: int = 1) -> System:
    """Draws the inner part of an EXISTS: patterns or a union, and predicates that may read outer variables."""
    # In one piece: draws, one after another, whose order decides what an example shrinks to.
    least = 0 if deep and "axioms" in shape.features else 1
    patterns = draw(st.lists(_negated(shape.below, scope.all), min_size=least, max_size=2))
    joinables: tuple[Joinable, ...] = tuple(patterns)
    inner = scope.plus(of_patterns(patterns))
    if "union" in shape.features and draw(one_in(4)):
        branches = [draw(_exists_part(shape, scope, sources, 0)) for _ in range(2)]
        joinables = (*joinables[:1], Union(tuple(branches)))
    predicates: list[Predicate] = []
    if draw(one_in(3)) and inner.all:
        predicates.append(draw(conditions(inner)))
    if draw(one_in(5)):
        predicates.append(Optional(System("", sources, (draw(_negated(shape.below, inner.all)),))))
    if draw(one_in(6)):
        predicates.append(NotExists((draw(_negated(shape.below, inner.all)),)))
    if deep and draw(one_in(4)):
        nested = draw(_exists_part(shape, inner, sources, 0))
        predicates.append(Exists(None, nested, draw(st.booleans())))
    if draw(one_in(3)) and inner.all:
        predicates.append(draw(conditions(inner)))
    part = System("", sources, joinables, tuple(predicates))
    if "subqueries" in shape.features and deep and draw(one_in(6)) and visible(part):
        part = replace(part, consequences=(Select(draw(some(visible(part), 1))),))
        part = System("", sources, (part,)) if draw(st.booleans()) else part
    return part


@st.composite
def _computations(draw: st.DrawFn, shape: Shape, scope: Scope, sources: tuple[Source, ...]) -> tuple[Predicate, Scope]:
    result = Variable("t")
    return TableFunction((result,), _table(), (draw(st.sampled_from(NAMES)),)), extended(scope, result.name)


_PREDICATES = {
    "negation": _negations,
    "minus": _minuses,
    "exists": _exists_predicates,
    "optional": _left_joins,
    "table_functions": _computations,
}


@cache
def _table() -> str:
    """Returns the IRI of a table function that returns no row, one row, or several rows with a duplicate."""
    function = functions.Function("urn:x-squall:testing:table", _rows_of, 1, 1)
    functions.register(function)
    return function.iri


def _rows_of(value: Term | None) -> list[tuple[Term]]:
    if value is None:
        return []
    return [(value,)] if value[0] == '"' else [(NODES[0],), (NODES[1],), (NODES[1],)]
