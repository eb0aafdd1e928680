"""Strategies for rules: bodies with predicates, and their consequences."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

from hypothesis import strategies as st

from squall.functions.jena import function_iri
from squall.functions.sparql.names import SPARQL, test_iri
from squall.functions.values import date_time
from squall.model import (
    Ask,
    Bind,
    Call,
    Consequence,
    Construct,
    Delete,
    Expression,
    Filter,
    Insert,
    Joinable,
    Pattern,
    Select,
    Slot,
    System,
    Variable,
)
from squall.rdf import XSD, Term, iri, literal
from squall.testing.strategies.joinables import (
    bodies,
    drawn_of,
    extended,
    grouped,
    groupings,
    may_group,
    modified,
    some,
)
from squall.testing.strategies.predicates import predicates_of
from squall.testing.strategies.streams import one_in
from squall.testing.strategies.vocabulary import BASE, LEVELS, LITERALS, NODES, STREAMS, TOP, Scope, Shape

NOW = Call(function_iri("now"), ())
_COMPARISONS = ("lessThan", "greaterThan", "le", "ge", "equal", "notEqual")
_SPARQL_COMPARISONS = (
    "less-than",
    "greater-than",
    "less-than-or-equal",
    "greater-than-or-equal",
    "equals",
    "not-equals",
)


def _arithmetic(name: str, left: Expression, right: Expression) -> Call:
    return Call(SPARQL + name, (left, right))


def _comparison(function: str, pair: tuple[Expression, Expression], swapped: bool) -> Filter:
    return Filter(Call(function, pair[::-1] if swapped else pair))


_TIMES = st.integers(0, 20).map(date_time)
_LENGTHS = st.sampled_from(
    [literal(f"{sign}PT0.00{number}S", XSD + "dayTimeDuration") for number in range(6) for sign in ("", "-")]
)
_COMPARED_TIMES = st.one_of(
    st.tuples(st.just(NOW), _TIMES),
    st.tuples(st.builds(_arithmetic, st.sampled_from(("plus", "subtract")), st.just(NOW), _LENGTHS), _TIMES),
)
_COMPARED_LENGTHS = st.one_of(
    st.tuples(st.builds(_arithmetic, st.just("subtract"), st.just(NOW), _TIMES), _LENGTHS),
    st.tuples(st.builds(_arithmetic, st.just("subtract"), _TIMES, st.just(NOW)), _LENGTHS),
)
DEADLINES = st.one_of(
    st.builds(_comparison, st.sampled_from(_COMPARISONS).map(function_iri), _COMPARED_TIMES, st.booleans()),
    st.builds(_comparison, st.sampled_from(_SPARQL_COMPARISONS).map(test_iri), _COMPARED_LENGTHS, st.booleans()),
)
"""Tests that are true from a time on, until a time, or at a time: of the time, or of a sum or difference with it."""


@st.composite
def rules(draw: st.DrawFn, name: str, shape: Shape) -> System:
    # In one piece: draws, one after another, whose order decides what an example shrinks to.
    sources = draw(st.sampled_from(shape.sources))
    if "axioms" in shape.features and shape.level < TOP and draw(one_in(12)):
        return System(name, consequences=(Construct((draw(_heads(shape, (), ())),)),))
    binds = shape.level > 0 and draw(one_in(4))
    features = drawn_of(draw, shape, {"grouping": 4, "slice": 5, "now": 6}) if shape.below else set()
    # What makes new terms reads only what lies below, so that making them does not recur.
    uses_exists = shape.below and drawn_of(draw, shape, {"exists": 3})
    readable = shape.below if binds or features or uses_exists else shape.readable
    body, scope = draw(bodies(shape, readable, sources, most=3))
    predicate_shape = shape if uses_exists else replace(shape, features=shape.features - {"exists"})
    predicates, scope = draw(predicates_of(predicate_shape, scope, sources, binds))
    if "now" in features and not scope.maybe and all(isinstance(joinable, Pattern) for joinable in body):
        if draw(st.booleans()):
            predicates = (*predicates, draw(DEADLINES))
        predicates, scope = (*predicates, Bind(Variable("now"), NOW)), extended(scope, "now")
    grouping = draw(groupings(shape, scope, "n")) if "grouping" in features and may_group(shape, scope) else None
    if grouping:
        scope = grouped(grouping, scope)
    consequences = draw(_consequences(shape, scope, body))
    rule = System(name, sources, body, predicates, grouping, consequences=consequences)
    return draw(modified(rule, shape, scope, "slice" in features))


@st.composite
def _consequences(draw: st.DrawFn, shape: Shape, scope: Scope, body: tuple[Joinable, ...]) -> tuple[Consequence, ...]:
    if shape.level < TOP:
        heads = st.lists(_heads(shape, scope.subjects, scope.all), min_size=1, max_size=2)
        return (Construct(tuple(draw(heads)), "internal" in shape.features and draw(one_in(5))),)
    if "ask" in shape.features and ("select" not in shape.features or draw(one_in(5))):
        return (Ask(),)
    updates = sorted(shape.features & {"delete", "insert"})
    if updates and ("select" not in shape.features or draw(one_in(3))):
        kinds = draw(st.lists(st.sampled_from(updates), min_size=1, max_size=3))
        return tuple([draw(_changes(kind, shape, scope, body)) for kind in kinds])
    return (Select(draw(some(scope.all, 1)) if scope.all else ()),)


@cache
def _heads(shape: Shape, subjects: tuple[Variable, ...], objects: tuple[Variable, ...]) -> st.SearchStrategy[Pattern]:
    """Draws a head. Its subject is never a literal, since only what was a subject may become one."""
    return _templates(LEVELS[shape.level], subjects, objects)


# So that updates come to rest, none inserts what another may delete, nor a term that is not there.


def _changes(kind: str, shape: Shape, scope: Scope, body: tuple[Joinable, ...]) -> st.SearchStrategy[Consequence]:
    if kind == "insert":
        among = BASE[:1] if "delete" in shape.features else BASE
        return st.builds(Insert, _alone(_templates(among, scope.subjects, scope.subjects)), _graphs(shape, scope))
    return st.builds(Delete, _alone(_deleted(shape, scope, body)), _graphs(shape, scope))


def _alone(templates: st.SearchStrategy[Pattern]) -> st.SearchStrategy[tuple[Pattern]]:
    return templates.map(lambda template: (template,))


@st.composite
def _deleted(draw: st.DrawFn, shape: Shape, scope: Scope, body: tuple[Joinable, ...]) -> Pattern:
    """Draws the template of a deletion, usually of facts that the rule has matched, so that it has an effect."""
    among = BASE[1:] if "insert" in shape.features else BASE
    patterns = [pattern for pattern in body if isinstance(pattern, Pattern) and scope.bound_in(pattern)]
    if "insert" in shape.features:
        patterns = [pattern for pattern in patterns if pattern.predicate in among]
    if patterns and not draw(one_in(3)):
        return draw(st.sampled_from(patterns))
    return draw(_templates(among, scope.subjects, scope.all))


@st.composite
def _graphs(draw: st.DrawFn, shape: Shape, scope: Scope) -> Slot | None:
    """Draws a graph: usually none, or that of a stream, or one that a solution names."""
    streams = map(iri, STREAMS[1:]) if "streams" in shape.features else ()
    graphs: tuple[Slot, ...] = (*streams, *scope.all[:1])
    if not graphs or not draw(one_in(3)):
        return None
    return draw(st.sampled_from(graphs))


def _templates(
    predicates: tuple[Term, ...], subjects: tuple[Variable, ...], objects: tuple[Variable, ...]
) -> st.SearchStrategy[Pattern]:
    subject_slots: tuple[Slot, ...] = (*subjects, *subjects, NODES[0])
    values: tuple[Slot, ...] = (*objects, *objects, NODES[0], LITERALS[0])
    slots = product(subject_slots, predicates, values)
    return st.sampled_from([Pattern(*slot) for slot in slots])
