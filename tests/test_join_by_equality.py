"""Tests of equality between patterns without a common variable: they become the key of a join."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall import functions
from squall.functions.join_keys import LEFT, RIGHT
from squall.plan import Plan
from squall.plan.operators import Join, LeftJoin
from squall.planners import rete
from squall.planners.passes.join_by_equality import join_by_equality
from squall.rdf import XSD, Event, Term, Triple, iri, literal
from squall.testing import assert_as_oracle
from tests import in_memory
from tests.laws import examples_of

E = "http://example.org/"
MIDDLE = 2**24 + 1
"""A number in the middle between two neighbours of single precision."""
NUMBERS = [
    "0", "-0", "1", "1.0", "01", "0.1", "1e0", "INF", "-INF", "NaN", "1e400", "3.4028236e38", "1e-46", "1e-45", "7e-46",
    str(MIDDLE), f"{MIDDLE}.0000000000000001", f"{MIDDLE - 1}.9999999999999999", str(MIDDLE - 1), str(MIDDLE + 1),
    f"-{MIDDLE}.0000000000000001", f"-{MIDDLE}", "340282356779733661637539395458142568448", "1" + "0" * 400,
]  # fmt: skip
OTHERS = [
    ("2020-01-01T00:00:00Z", "dateTime"), ("2020-01-01T01:00:00+01:00", "dateTime"),
    ("2020-01-01T00:00:00", "dateTime"),
    ("2020-01-01T00:00:00.50Z", "dateTime"), ("2020-01-01T00:00:00.5Z", "dateTime"), ("2020-01-01", "date"),
    ("2020-01-01Z", "date"), ("P1D", "duration"), ("PT24H", "dayTimeDuration"), ("P12M", "yearMonthDuration"),
    ("P1Y", "duration"), ("true", "boolean"), ("1", "boolean"), ("a", "string"), ("a", "anyURI"), ("0A", "hexBinary"),
    ("0a", "hexBinary"), ("1", "string"),
]  # fmt: skip
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
GEOMETRIES = [
    *(literal(f"POINT({x / 4} {y / 4})", WKT) for x in range(-2, 3) for y in range(-2, 3)),
    *(
        literal(f"POLYGON(({x} 0, {x + size} 0, {x + size} {size}, {x} {size}, {x} 0))", WKT)
        for x in (-1, 0, 0.25) for size in (0.001, 0.5, 1, 9)
    ),
    literal("POLYGON((0.1 0.1, 0.2 0.1, 0.2 0.2, 0.1 0.1))", WKT), literal("POINT EMPTY", WKT), literal("POINT(1", WKT),
]  # fmt: skip
TERMS = [
    *(literal(text, XSD + name) for text, name in product(NUMBERS, ("integer", "decimal", "float", "double", "int"))),
    *(literal(text, XSD + name) for text, name in OTHERS),
    literal("a", language="en"), literal("a", language="EN"), literal("a", "urn:type"), iri("urn:a"), iri("urn:b"),
    literal("a@en", "http://www.w3.org/1999/02/22-rdf-syntax-ns#PlainLiteral"),
    literal("a@", "http://www.w3.org/1999/02/22-rdf-syntax-ns#PlainLiteral"), Term("_:a"),
]  # fmt: skip
TESTS = [function for function in functions.functions() if function.truth and function.join_keys]


def keys(test: functions.Function, side: Term, term: Term) -> list[str]:
    rows: Any = functions.lookup(test.join_keys).evaluate(side, term)
    return [key for (key,) in rows]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.iri.rpartition("/")[2])
def test_terms_that_pass_have_one_key_in_common(test: functions.Function) -> None:
    terms = [*GEOMETRIES, *TERMS[::9]] if "geosparql" in test.iri else TERMS
    rights = {term: Counter(keys(test, RIGHT, term)) for term in terms}
    passed = 0
    for left in terms:
        left_keys = Counter(keys(test, LEFT, left))
        for right, right_keys in rights.items():
            common = sum(left_keys[key] * count for key, count in right_keys.items())
            assert common <= 1, (left, right)
            if test.evaluate(left, right):
                assert common == 1, (left, right)
                passed += left != right
    assert passed or "sameTerm" in test.iri


def test_keys_are_few() -> None:
    """They would be of no use if different terms had the same."""
    for test in TESTS:
        distinct = {key for term in (*GEOMETRIES, *TERMS) for key in keys(test, LEFT, term)}
        assert len(distinct) > 15, test.iri


@pytest.mark.parametrize("value", [0.1, 0.3, 1 / 3, 1e100, 12345.678])
def test_a_double_has_one_key(value: float) -> None:
    (equals,) = (test for test in TESTS if test.iri.endswith("equals"))
    assert len(keys(equals, LEFT, literal(repr(value), XSD + "double"))) == 1


# Plans

GEO = "PREFIX geof: <http://www.opengis.net/def/function/geosparql/> "
SPARQL = f"PREFIX : <{E}>\nSELECT ?a ?b WHERE {{{{ ?a :id ?x . ?b :ref ?y . FILTER({{}}) }}}}"
JENA = f"@prefix : <{E}>.\n[r: (?a :id ?x) (?b :ref ?y) {{}} -> (?a :same ?b)]"
RIF = (
    f"Document(Prefix(ex <{E}>) Prefix(pred <http://www.w3.org/2007/rif-builtin-predicate#>) "
    "Prefix(geof <http://www.opengis.net/def/function/geosparql/>) Group(\n"
    "Forall ?a ?b ?x ?y (?a[ex:same -> ?b] :- And(?a[ex:id -> ?x] ?b[ex:ref -> ?y] {}))))"
)
PROGRAMS = [
    ("sparql", SPARQL.format("?x = ?y")),
    ("sparql", SPARQL.format("?y = ?x && ?x != ?a")),
    ("sparql", SPARQL.format("sameTerm(?x, ?y)")),
    ("sparql", SPARQL.format("STR(?x) = STR(?y)")),
    ("sparql", SPARQL.format("?x + 1 = ?y * 2")),
    ("jena", JENA.format("equal(?x, ?y)")),
    ("rifps", RIF.format("External(pred:numeric-equal(?x ?y))")),
    ("sparql", GEO + SPARQL.format("geof:sfWithin(?x, ?y)")),
    ("sparql", GEO + SPARQL.format("geof:sfWithin(?y, ?x)")),
    ("sparql", GEO + SPARQL.format("geof:sfContains(?x, ?y) && ?a != ?b")),
    ("jena", JENA.format("sfContains(?y, ?x)")),
    ("rifps", RIF.format("External(geof:sfWithin(?x ?y))")),
    (
        "sparql",
        f"PREFIX : <{E}>\nSELECT ?a WHERE {{ ?a :id ?x . FILTER NOT EXISTS {{ ?b :ref ?y . FILTER(?x = ?y) }} }}",
    ),
]
OPTIONAL = f"PREFIX : <{E}>\nSELECT ?a ?b ?x WHERE {{{{ ?a :id ?x . OPTIONAL {{{{ ?b :ref ?y . FILTER({{}}) }}}} }}}}"
PROGRAMS += [
    ("sparql", OPTIONAL.format("?x = ?y")),
    ("sparql", OPTIONAL.format("?x != ?y && STR(?x) = STR(?y)")),
    (
        "sparql",
        f"PREFIX : <{E}>\nSELECT ?a ?b ?z WHERE {{ ?a :id ?x . OPTIONAL {{ ?a :ref ?z }} "
        "OPTIONAL { ?b :ref ?y . FILTER(?x = ?y) } }",
    ),
    ("csparql", f"REGISTER QUERY q AS {OPTIONAL.format('?x = ?y && ?a != ?b')}"),
]
REFUSED = [
    ("sparql", SPARQL.format("?x != ?y")),
    ("sparql", GEO + SPARQL.format("geof:sfIntersects(?x, ?y)")),
    ("sparql", GEO + SPARQL.format("!geof:sfWithin(?x, ?y)")),
    ("sparql", SPARQL.format("?x = ?y || ?a = ?b")),
    ("sparql", SPARQL.format("?x + ?y = 3")),
    ("sparql", OPTIONAL.format("?x < ?y")),
    ("sparql", OPTIONAL.format("?x = ?y || ?a = ?b")),
    ("sparql", f"PREFIX : <{E}>\nSELECT ?a WHERE {{ ?a :id ?x ; :ref ?y . FILTER(?x = ?y) }}"),
]


def joins(plan: Plan) -> list[int]:
    """Returns on how many columns each join of a plan is."""
    return [len(node.op.on) for node in plan.nodes if isinstance(node.op, Join | LeftJoin)]


def without_pass() -> partial[Plan]:
    return partial(rete.plan, passes=[step for step in rete.PASSES if step is not join_by_equality])


@pytest.mark.parametrize(("language", "text"), PROGRAMS)
def test_a_product_becomes_a_join(language: str, text: str) -> None:
    system = squall.compile(text, lexer=language)
    assert 0 in joins(squall.plan(system, without_pass()))
    assert 0 not in joins(squall.plan(system))


def test_compared_patterns_are_joined_first() -> None:
    """Between the patterns of `?a` and `?c` there is no test."""
    text = f"""PREFIX : <{E}> SELECT ?a ?b ?c WHERE {{
        ?a :id ?x . ?c :z ?v . ?b :ref ?y ; :u ?u . FILTER(?x = ?y && ?v = STR(?u)) }}"""
    system = squall.compile(text, lexer="sparql")
    assert joins(squall.plan(system)) == [1, 1, 1]
    assert 0 in joins(squall.plan(system, without_pass()))


def test_several_equalities_are_one_key() -> None:
    system = squall.compile(SPARQL.format("?x = ?y && STR(?a) = STR(?b)"), lexer="sparql")
    assert joins(squall.plan(system)) == [2]


@pytest.mark.parametrize(("language", "text"), REFUSED)
def test_other_conditions_change_no_plan(language: str, text: str) -> None:
    system = squall.compile(text, lexer=language)
    assert squall.plan(system) == squall.plan(system, without_pass())


# Outputs

ONE_TO_THREE = [literal(text, XSD + name) for text in ("1", "2", "3") for name in ("integer", "float", "double")]
VALUES = st.one_of(st.sampled_from(TERMS), st.sampled_from(ONE_TO_THREE), st.sampled_from(GEOMETRIES))
FACTS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.sampled_from(("id", "ref")), VALUES), max_size=8
)


def events_of(facts: list[tuple[int, str, str, Term]]) -> list[Event]:
    time, events = 0, []
    for pause, subject, predicate, value in facts:
        time += pause
        events.append(Event(time, (Triple(iri(E + subject), iri(E + predicate), value),)))
    return events


@pytest.mark.sampled(4)
@pytest.mark.parametrize("window", ["LANDMARK", "RANGE 3ms", "RANGE 4ms STEP 2ms"])
@pytest.mark.parametrize(("language", "text"), PROGRAMS)
@settings(max_examples=examples_of(40), deadline=None)
@given(facts=FACTS, cut=st.integers(0, 8))
def test_outputs_are_those_of_the_oracle(
    language: str, text: str, window: str, facts: list[tuple[int, str, str, Term]], cut: int
) -> None:
    system = squall.compile(text, lexer=language, window=window)
    events = events_of(facts)
    plan = squall.plan(system)
    assert_as_oracle(system, list(squall.run(plan, events)), events)
    assert_as_oracle(system, in_memory.run(plan, [events[:cut], events[cut:]]), events)
