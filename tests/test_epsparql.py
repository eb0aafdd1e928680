"""EP-SPARQL: what it means is in `cases/events.case`; here is its text, what it refuses, and what is beside it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.errors import SquallError
from squall.lexers import epsparql
from squall.lexers.sparql import tree as q
from squall.model import System, Variable, rules
from squall.model.walk import walk
from squall.model.windows import ElementWindow, SlidingWindow
from squall.rdf import Event, Solution, iri
from squall.testing.streams import stream
from tests.laws import examples_of
from tests.test_ctsparql import groups

PREFIX = "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
OPERATORS = ("SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "AND", "UNION")


def compiled(text: str) -> System:
    return squall.compile(PREFIX + text, lexer="epsparql")


def read(text: str) -> q.Program:
    return epsparql.lexer(PREFIX + text, "test")


def answers(text: str, events: Iterable[Event], planner: str = "rete") -> list[tuple[int, tuple[str, ...]]]:
    """Returns the solutions of a query by time, in the local names of IRIs and the texts of literals."""
    outputs = squall.run(squall.plan(compiled(text), planner), list(events), of=Solution)
    return sorted((output.time, tuple(map(_short, output.fact.values))) for output in outputs)


def _short(term: str | None) -> str:
    return "" if term is None else term.split("/")[-1].rstrip(">") if term[0] == "<" else term.split('"')[1]


# The tree as text

FILTERS: st.SearchStrategy[q.Element] = st.sampled_from(
    [
        q.Filter(q.Call("<", (q.StepCall(name, ()), q.StepCall("getENDTIME", ()))))
        for name in ("getDURATION", "getSTARTTIME")
    ]
)


@st.composite
def event_patterns(draw: st.DrawFn, depth: int) -> q.EventPattern:
    def group() -> q.Group:
        if depth and draw(st.integers(0, 2)) == 0:
            return q.Group((draw(event_patterns(depth - 1)), *draw(st.lists(FILTERS, max_size=1))))
        return draw(groups())

    first = group()
    operators = draw(st.lists(st.sampled_from(OPERATORS), min_size=1, max_size=3))
    if set(operators) == {"UNION"}:  # a union of SPARQL, unless one of them is over time
        operators.append("SEQ")
    return q.event_pattern(first, tuple(q.Operand(name, q.Occurrence(group())) for name in operators))


@settings(max_examples=examples_of(100))
@given(event_patterns(2), st.lists(FILTERS, max_size=2), st.booleans())
def test_a_printed_pattern_is_read_as_the_same_tree(
    pattern: q.EventPattern, filters: list[q.Element], is_beside: bool
) -> None:
    block = q.TriplesBlock((q.TriplePattern(Variable("x"), iri("urn:q"), Variable("y")),))
    beside: tuple[q.Element, ...] = (q.Group((block,)), block) if is_beside else ()
    query = q.Program((q.Statement(q.AskQuery(q.Group((*beside, pattern, *filters)))),))
    assert epsparql.lexer(str(query), "test") == query


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("{ ?a :b ?c } SEQ { ?a :d ?e } FILTER(?c > ?e)", "{ { ?a :b ?c } SEQ { ?a :d ?e } FILTER(?c > ?e) }"),
        ("{ { { ?a :b ?c } SEQ { ?a :d ?e } } } FILTER(?c > ?e)", "{ { ?a :b ?c } SEQ { ?a :d ?e } FILTER(?c > ?e) }"),
        ("{ ?a :b ?c } FILTER(?c > 1)", "{ { ?a :b ?c } FILTER(?c > 1) }"),
        ("{ ?a :b ?c }", "{ { ?a :b ?c } }"),
        ("{ ?a :b ?c } optionalequals { ?a :d ?e }", "{ { ?a :b ?c } EqualsOptional { ?a :d ?e } }"),
    ],
)
def test_braces_around_a_pattern_change_nothing(text: str, same: str) -> None:
    assert read(f"SELECT * WHERE {text}") == read(f"SELECT * WHERE {same}")


def test_a_union_of_groups_is_that_of_sparql() -> None:
    (pattern,) = q.time_patterns(read("ASK { { ?a :b 1 } UNION { ?a :b 2 } }").statements)
    (group,) = pattern.groups()
    assert isinstance(group.elements[0], q.Union)


def test_words_are_names_elsewhere() -> None:
    text = "PREFIX seq: <urn:> SELECT ?equals { ?equals seq:and ?union } OPTIONALSEQ { ?or seq:getDURATION ?union }"
    (pattern,) = q.time_patterns(read(text).statements)
    assert isinstance(pattern, q.EventPattern)


# Errors, each with its place and a hint

BOUND = "FILTER(getDURATION() < 5000)"
REFUSED = [
    ("{ ?a :b ?c } OPTIONALSEQ { ?a :d ?e }", "`OPTIONALSEQ` has no bound", "state in its braces"),
    (
        f"{{ {{ {{ ?a :b ?c }} OPTIONALSEQ {{ ?a :d ?e }} }} SEQ {{ ?a :b 1 }} {BOUND} }}",
        "`OPTIONALSEQ` has no bound",
        "state in its braces",
    ),
    (f"{{ ?a :b ?c }} OPTIONALSEQ {{ ?a :d ?e }} SEQ {{ ?a :f 1 }} {BOUND}", "is not the last operator", "braces of"),
    ("{ ?a :b ?c } SEQ { ?a :d ?e } FILTER(getDURATION() < 1)", "this never occurs: it takes 1ms", "longer duration"),
    ("{ ?a :b ?c } FILTER(getDURATION() < 0)", "this never occurs: no duration", "longer duration"),
    ('{ ?a :b ?c } FILTER(getDURATION() > "P1M"^^xsd:duration)', "is no length of time", "PT10S"),
    ('{ ?a :b ?c } FILTER("PT1S" > getDURATION())', '`"PT1S"` is no length of time', "PT10S"),
    ("{ ?a :b ?c } FILTER(getDURATION() < 1e18)", "is no length of time", "PT10S"),
    ("{ ?a :b ?c } FILTER(getDURATION() < 1000000000000000000)", "is no length of time", "PT10S"),
    (f"{{ ?a :b ?c OPTIONAL {{ ?a :d ?e {BOUND} }} }}", "the times of the pattern are not known here", "outside of"),
    (f"{{ ?a :b ?c FILTER EXISTS {{ ?a :d ?e {BOUND} }} }}", "the times of the pattern are not known", "outside of"),
    ("{ ?a :b ?c OPTIONAL { { ?a :b 1 } SEQ { ?a :b 2 } } }", "cannot be in `OPTIONAL`", "group of the query"),
    ("{ ?a :b ?c { SELECT ?a { ?a :b 1 } SEQ { ?a :b 2 } } }", "cannot be in a sub-query", "group of the query"),
    ("{ { ?a :b 1 } SEQ { ?a :b 2 } . { ?a :b 3 } SEQ { ?a :b 4 } }", "one pattern over time", "`AND`"),
    ("{ ?a :b ?c OPTIONAL { ?a :f ?g } } SEQ { ?a :d ?g }", "`?g` joins two steps, and may be unbound", "BOUND(?g)"),
    ("{ ?a :b ?c } EQUALSOPTIONAL { ?a :d ?e } SEQ { ?a :d ?e }", "`?e` joins two steps", "BOUND(?e)"),
    ("{ ?a :b ?c } SEQ { VALUES ?a { 1 } }", "this step reads no stream", "pattern of a stream"),
    ("{ ?a :b ?c FILTER(timestamp(?c) > 4) } SEQ { ?a :d ?e }", "`timestamp` is not supported", "getSTARTTIME()"),
    ("{ { { ?a :b 1 } SEQ { ?a :b 2 } FILTER EXISTS { ?a :c 1 } } SEQ { ?a :d ?e } }", "`EXISTS` cannot", "braces of"),
]


@pytest.mark.parametrize(("where", "message", "hint"), REFUSED, ids=[where for where, *_ in REFUSED])
def test_refused(where: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError) as caught:
        compiled(f"SELECT * WHERE {where}")
    errors = getattr(caught.value, "errors", [caught.value])
    assert len(errors) == 1, errors
    assert errors[0].origin is not None
    assert errors[0].origin.line == 2
    assert message in errors[0].message
    assert hint in (errors[0].hint or "")


def test_functions_take_no_arguments() -> None:
    with pytest.raises(SquallError, match="`\\?a` cannot stand here"):
        compiled("SELECT * { ?a :b ?c } FILTER(getDURATION(?a) < 5)")


# What a query is


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM STREAM :s { ?a :b ?c }",
        "SELECT ?a FROM STREAM :s { SELECT ?a (COUNT(*) AS ?n) { ?a :b ?c } GROUP BY ?a }",
        "CONSTRUCT FROM STREAM :s WHERE { ?a :b ?c }",
        "ASK FROM NAMED STREAM :s { GRAPH :s { ?a :b ?c } }",
        "DESCRIBE ?a FROM STREAM :s { ?a :b ?c } EQUALS { ?a :d ?e }",
    ],
)
def test_every_query_reads_what_arrives_at_an_instant(text: str) -> None:
    system = compiled(text)
    (query,) = system.subsystems
    assert query.output == "rstream"
    windows = {source.window for rule in rules(system) for source in rule.sources if source.iri.startswith("http")}
    assert windows == {ElementWindow()}


@pytest.mark.parametrize(
    ("condition", "length"),
    [
        ('getDURATION() < "PT5S"^^xsd:duration', 4999),
        ('getDURATION() <= "PT5S"^^xsd:dayTimeDuration', 5000),
        ('"P1D"^^xsd:duration > getDURATION() && ?c > 3', 86_399_999),
        ("getDURATION() < 2.5", 2),
        ("getDURATION() = 7 && getDURATION() < 9", 7),
        ("getDURATION() > 7", None),
        ("getDURATION() < 5 || ?c > 3", None),
        ("getDURATION() != 5", None),
        ("getDURATION() < ?c", None),
    ],
)
def test_what_bounds_a_pattern(condition: str, length: int | None) -> None:
    system = compiled(f"SELECT * {{ ?a :b ?c }} SEQ {{ ?a :d ?e }} FILTER({condition})")
    parts = [part for rule in rules(system) for part in walk(rule) if isinstance(part, System)]
    windows = {source.window for part in parts for source in part.sources}
    stored = {window for window in windows if window.expires and window != ElementWindow()}
    assert stored == (set() if length is None else {SlidingWindow(length + 1)})


S = stream("1000 :a1 a :A\n2000 :b1 a :B\n4500 :a2 a :A\n5000 :b2 a :B\n")


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_times_of_the_pattern_of_a_query(planner: str) -> None:
    text = """SELECT ?a (getSTARTTIME() AS ?s) (getENDTIME() AS ?e) (getDURATION() AS ?d) { ?a a :A } SEQ { ?b a :B }
        FILTER(getDURATION() < "PT3S"^^xsd:duration)"""
    assert answers(text, S, planner) == [
        (2000, ("a1", "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z", "PT1S")),
        (5000, ("a2", "1970-01-01T00:00:04.5Z", "1970-01-01T00:00:05Z", "PT0.5S")),
    ]


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_times_of_a_part_are_bound_and_seen_outside(planner: str) -> None:
    text = """SELECT ?b ?d (getDURATION() AS ?all) {
        { { ?a a :A } SEQ { ?b a :B } BIND(getDURATION() AS ?d) FILTER(?d < "PT2S"^^xsd:dayTimeDuration) }
        AND { ?c a :A BIND(getSTARTTIME() AS ?t) FILTER(?t > "1970-01-01T00:00:02Z"^^xsd:dateTime) } }"""
    assert answers(text, S, planner) == [(4500, ("b1", "PT1S", "PT3.5S")), (5000, ("b2", "PT0.5S", "PT0.5S"))]


def test_matches_are_counted_and_ordered_at_the_instant_at_which_they_end() -> None:
    text = "SELECT ?b (COUNT(*) AS ?n) { ?a a :A } SEQ { ?b a :B } GROUP BY ?b"
    assert answers(text, S) == [(2000, ("b1", "1")), (5000, ("b2", "2"))]
    assert answers("SELECT ?a { ?a a :A } SEQ { ?b a :B } ORDER BY DESC(getDURATION()) LIMIT 1", S) == [
        (2000, ("a1",)),
        (5000, ("a1",)),
    ]


def test_occurrences_with_equal_values_are_several_matches() -> None:
    events = stream("1 :s :n 1\n2 :s :n 1\n3 :s :m 1\n")
    assert answers("SELECT ?x { ?x :n ?y } SEQ { ?x :m ?z }", events) == [(3, ("s",)), (3, ("s",))]
    text = "SELECT ?x { { { ?x :n 1 FILTER(getDURATION() < 5) } SEQ { ?x :m 1 } } AND { ?x :n 1 } }"
    assert answers(text, events) == answers(text.replace(" FILTER(getDURATION() < 5)", ""), events)


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_a_stream_of_matches_is_read_by_another_query(planner: str) -> None:
    pairs = f"{PREFIX} REGISTER STREAM <urn:pairs> AS CONSTRUCT {{ ?a :then ?b }} {{ ?a a :A }} SEQ {{ ?b a :B }}"
    twice = f"{PREFIX} SELECT ?a ?d FROM STREAM <urn:pairs> {{ ?a :then ?b }} SEQ {{ ?a :then ?d }}"
    system = System(subsystems=(squall.compile(pairs, lexer="epsparql"), squall.compile(twice, lexer="epsparql")))
    facts = [(output.time, output.fact) for output in squall.run(squall.plan(system, planner), S)]
    solutions = [(time, tuple(map(_short, fact.values))) for time, fact in facts if isinstance(fact, Solution)]
    assert solutions == [(5000, ("a1", "b2"))]
