"""OPTIONAL patterns whose unbound rows are dropped: they are joins."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall import functions
from squall.plan import Plan
from squall.plan.operators import LeftJoin
from squall.planners import rete
from squall.planners.passes.bind_left_joins import bind_left_joins
from squall.rdf import XSD, Event, Term, Triple, iri, literal
from squall.testing import assert_as_oracle
from tests import in_memory
from tests.laws import examples_of

E = "http://example.org/"
PROLOGUE = f"PREFIX : <{E}>\n"
SELECT = f"{PROLOGUE}SELECT * WHERE {{{{ {{}} }}}}"
BOUND = [
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } FILTER(?y > 1)"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } FILTER(?x != ?a && BOUND(?y))"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y . FILTER(?y > ?x) } FILTER(?y = 2)"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } OPTIONAL { ?a :r ?z } FILTER(?y < ?z)"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y . OPTIONAL { ?y :r ?z } } FILTER(sameTerm(?z, ?x))"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y . OPTIONAL { ?a :r ?z } FILTER(?z > 1) } FILTER(?y > 1)"),
    SELECT.format("?a :p ?x . OPTIONAL { ?b :q ?y . FILTER(?x = ?y) } FILTER(?b != ?a)"),
    f"{PROLOGUE}CONSTRUCT {{ ?a :s ?y }} WHERE {{ ?a :p ?x . OPTIONAL {{ ?a :q ?y }} }}",
    f"{PROLOGUE}SELECT ?a (COUNT(?x) AS ?n) WHERE {{ ?a :p ?x . OPTIONAL {{ ?a :q ?y }} FILTER(?y >= 1) }} GROUP BY ?a",
]
"""Queries without a left join in their plans."""
UNBOUND = [
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } FILTER(?x > 1)"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } FILTER(!BOUND(?y))"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } FILTER(?y > 1 || ?x > 1)"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } FILTER(COALESCE(?y, ?x) > 1)"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y . FILTER(?y > 1) }"),
    SELECT.format("?a :p ?x . OPTIONAL { ?a :q ?y } MINUS { ?a :r ?y }"),
    f"{PROLOGUE}CONSTRUCT {{ ?a :s ?y ; :t ?x }} WHERE {{ ?a :p ?x . OPTIONAL {{ ?a :q ?y }} }}",
    f"{PROLOGUE}SELECT ?y (COUNT(?x) AS ?n) WHERE {{ ?a :p ?x . OPTIONAL {{ ?a :q ?y }} }} GROUP BY ?y",
]
"""Queries whose answers need unbound rows."""


def left_joins(plan: Plan) -> int:
    return sum(isinstance(node.op, LeftJoin) for node in plan.nodes)


def without_pass() -> partial[Plan]:
    return partial(rete.plan, passes=[step for step in rete.PASSES if step is not bind_left_joins])


@pytest.mark.parametrize("text", BOUND)
def test_they_are_joins(text: str) -> None:
    system = squall.compile(text, lexer="sparql")
    assert left_joins(squall.plan(system)) == 0
    assert left_joins(squall.plan(system, without_pass())) or "?b :q ?y" in text  # a join by equality and an anti-join


@pytest.mark.parametrize("text", UNBOUND)
def test_others_stay(text: str) -> None:
    system = squall.compile(text, lexer="sparql")
    assert squall.plan(system) == squall.plan(system, without_pass())
    assert left_joins(squall.plan(system)) > 0


@functions.function("urn:x-test:noted", truth=True, pure=False, languages=())
def noted(term: Term | None) -> bool:
    return True


def test_a_filter_with_an_effect_gets_unbound_rows() -> None:
    pattern = "?a :p ?x . OPTIONAL {{ ?a :q ?y }} FILTER({}) FILTER({})"
    effect, test = "<urn:x-test:noted>(?a)", "?y > 1"
    first, last = (SELECT.format(pattern.format(*pair)) for pair in ((effect, test), (test, effect)))
    assert left_joins(squall.plan(squall.compile(first, lexer="sparql"))) == 1
    assert left_joins(squall.plan(squall.compile(last, lexer="sparql"))) == 0


VALUES = st.one_of(
    st.sampled_from([iri(E + name) for name in "abc"]),
    st.sampled_from([literal(number, XSD + "integer") for number in "123"]),
)
FACTS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.sampled_from("pqr"), VALUES), max_size=9)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("window", ["LANDMARK", "RANGE 3ms", "RANGE 4ms STEP 2ms"])
@pytest.mark.parametrize("text", [*BOUND, *UNBOUND])
@settings(max_examples=examples_of(40), deadline=None)
@given(facts=FACTS, cut=st.integers(0, 9))
def test_outputs_are_those_of_the_oracle(
    text: str, window: str, facts: list[tuple[int, str, str, Term]], cut: int
) -> None:
    system = squall.compile(text, lexer="sparql", window=window)
    time, events = 0, []
    for pause, subject, predicate, value in facts:
        time += pause
        events.append(Event(time, (Triple(iri(E + subject), iri(E + predicate), value),)))
    plan = squall.plan(system)
    assert_as_oracle(system, list(squall.run(plan, events)), events)
    assert_as_oracle(system, in_memory.run(plan, [events[:cut], events[cut:]]), events)
