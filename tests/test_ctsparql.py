"""CT-SPARQL: what it means is in `cases/sequences.case`; here is its text, what it refuses, and what is beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations_with_replacement, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.errors import SquallError
from squall.functions import lookup
from squall.functions.values import integer
from squall.lexers import ctsparql
from squall.lexers.sparql import tree as q
from squall.model import Call, Expression, System, Variable, rules, visible, with_windows
from squall.model.windows import ElementWindow
from squall.rdf import Event, Solution, Triple, iri
from squall.testing import assert_as_oracle
from squall.testing.streams import stream
from squall.translators.sparql import calls, step_times
from squall.translators.sparql.state import Notes, State
from squall.translators.sparql.time_patterns import end_of, start_of
from tests import in_memory
from tests.laws import examples_of

PREFIX = "PREFIX : <http://example.org/>\n"


def compiled(text: str) -> System:
    return squall.compile(PREFIX + text, lexer="ctsparql")


def answers(text: str, events: Iterable[Event], planner: str = "rete") -> list[tuple[int, tuple[str, ...]]]:
    """Returns the solutions of a query by time, in the local names of IRIs and the texts of numbers."""
    outputs = squall.run(squall.plan(compiled(text), planner), list(events), of=Solution)
    return sorted((output.time, tuple(map(_short, output.fact.values))) for output in outputs)


def _short(term: str | None) -> str:
    return "" if term is None else term.split("/")[-1].rstrip(">") if term[0] == "<" else term.split('"')[1]


# The tree as text


def groups() -> st.SearchStrategy[q.Group]:
    return st.sampled_from(
        [
            q.Group((q.TriplesBlock((q.TriplePattern(Variable("a"), iri("urn:p"), Variable(name)),)),))
            for name in ("b", "c")
        ]
    ) | st.just(q.Group())


LENGTHS = st.sampled_from([1, 500, 1000, 90_000, 3_600_000, 86_400_000])
NAMES = st.none() | st.builds(q.StepName, st.sampled_from(["e", "f", "é_1"]))
CONDITIONS: st.SearchStrategy[q.Expression] = st.sampled_from(
    [Variable("b"), q.Call("<", (Variable("b"), Variable("c"))), q.StepCall("start", (q.StepName("e"),))]
)


CONSUMPTIONS = st.none() | st.sampled_from(
    [q.Consumption(False), q.Consumption(), *(q.Consumption(True, keys) for keys in ((), (Variable("a"),)))]
)


ITERATIONS = st.builds(
    q.Iteration,
    st.integers(1, 3),
    st.none() | st.integers(3, 12),
    st.sampled_from([None, (), (Variable("a"),), (Variable("a"), Variable("b"))]),
    st.booleans(),
    st.none() | CONDITIONS | st.just(q.Call("<", (q.Previous(Variable("b")), Variable("b")))),
    st.sampled_from(
        [
            (),
            (q.Measure(q.Aggregate("COUNT"), Variable("n")),),
            (
                q.Measure(q.Aggregate("FIRST", Variable("b")), Variable("v")),
                q.Measure(q.Aggregate("LAST", q.Call("+", (Variable("b"), Variable("c")))), Variable("w")),
                q.Measure(q.Aggregate("AVG", Variable("b")), Variable("mean")),
            ),
        ]
    ),
)


@st.composite
def chains(draw: st.DrawFn, depth: int, can_be_preceded: bool) -> q.Chain:
    def group() -> q.Group:
        if depth and draw(st.integers(0, 3)) == 0:
            return q.Group((draw(time_patterns(depth - 1)),))
        return draw(groups())

    def occurrence(is_first: bool) -> q.Occurrence:
        bounds = [None, None, None] if is_first else [draw(st.none() | LENGTHS), draw(st.none() | LENGTHS), None]
        when = None if is_first else draw(st.none() | CONDITIONS)
        return q.Occurrence(group(), draw(NAMES), bounds[0], bounds[1], when, iteration=draw(st.none() | ITERATIONS))

    links = []
    for _ in range(draw(st.integers(0, 2))):
        parts = tuple(q.Part(group(), draw(st.booleans())) for _ in range(draw(st.integers(0, 2))))
        selection = draw(st.sampled_from(["", "STRICT", "NEAREST", "EACH", "LAST"]))
        links.append(q.Link(occurrence(False), selection, parts))
    preceded = q.Absence(group(), draw(LENGTHS)) if can_be_preceded and draw(st.booleans()) else None
    followed = q.Absence(group(), draw(LENGTHS)) if draw(st.booleans()) else None
    return q.Chain(occurrence(True), tuple(links), preceded, followed, draw(st.none() | LENGTHS), draw(CONSUMPTIONS))


@st.composite
def time_patterns(draw: st.DrawFn, depth: int) -> q.TimePattern:
    def conjunction() -> q.Conjunction:
        conjuncts = [
            q.Conjunct(draw(chains(depth, False)), draw(st.booleans())) for _ in range(draw(st.integers(0, 1)))
        ]
        return q.Conjunction((q.Conjunct(draw(chains(depth, True))), *conjuncts))

    pattern = q.TimePattern(tuple(conjunction() for _ in range(draw(st.integers(1, 2)))))
    (first, *_), *_ = (branch.conjuncts for branch in pattern.branches)
    if len(pattern.chains) == 1 and first.chain == q.Chain(q.Occurrence(first.chain.first.group)):
        return q.TimePattern((q.Conjunction((q.Conjunct(replace(first.chain, within=5)),)),))
    return pattern


@settings(max_examples=examples_of(100))
@given(time_patterns(1), st.booleans())
def test_a_printed_pattern_is_read_as_the_same_tree(pattern: q.TimePattern, is_first: bool) -> None:
    block = q.TriplesBlock((q.TriplePattern(Variable("x"), iri("urn:q"), Variable("y")),))
    beside: tuple[q.Element, ...] = (q.Group((block,)), block)
    elements = (pattern, *beside) if is_first else (*beside, pattern)
    query = q.Program((q.Statement(q.AskQuery(q.Group(elements))),))
    assert ctsparql.lexer(str(query), "test") == query


def test_a_group_alone_is_no_pattern_over_time() -> None:
    text = "SELECT * { { ?a ?b ?c } { { ?a ?b 1 } UNION { ?a ?b 2 } } FILTER NOT EXISTS { ?c ?d ?e } }"
    (statement,) = ctsparql.lexer(text, "test").statements
    assert not q.time_patterns(statement)
    assert squall.compile(text, lexer="ctsparql") == squall.compile(text, lexer="csparql")


@pytest.mark.parametrize("pattern", ["{} {2}", "{}+", "{} AS ?e", "{} WITHIN 1s", "{} REUSE", "{} AND {}", "{} SEQ {}"])
def test_each_word_makes_a_pattern_over_time(pattern: str) -> None:
    assert len(q.time_patterns(ctsparql.lexer(f"ASK {{ {pattern} }}", "test").statements)) == 1


def test_words_are_written_in_any_case_and_are_names_elsewhere() -> None:
    text = (
        "PREFIX seq: <urn:> SELECT ?within { { ?within seq:and ?last } as ?after seq { ?or seq:when ?last } within 1m }"
    )
    (pattern,) = q.time_patterns(ctsparql.lexer(text, "test").statements)
    assert [str(name) for name in q.step_names(pattern)] == ["?after"]


# Errors, each with its place and a hint

PATTERN = "{ ?a :b ?c } AS ?x SEQ { ?a :d ?e } AS ?y WITHIN 5m"
REFUSED = [
    ("{ ?a :b ?c } SEQ { ?a :d ?e } AFTER 10s BEFORE 5s", "AFTER 10s` and `BEFORE 5s` contradict", "least time"),
    ("{ ?a :b ?c } SEQ { ?a :d ?e } AFTER 10m WITHIN 5m", "takes 10m at least, and `WITHIN` allows 5m", "longer"),
    ("{ ?a :b ?c } NOT { ?a :d ?e } WITHIN 10s WITHIN 5s", "takes 10s at least", "longer"),
    ("{ ?a :b ?c } AS ?x SEQ { ?a :d ?e } AS ?x", ":56: .*two steps have the name `?x`", "name of its own"),
    ("{ ?a :b ?c } AS ?x NOT { { ?a :d ?e } AS ?x SEQ {} } SEQ {}", "two steps have the name `?x`", "name of its own"),
    ("{ ?a :b ?c } AS ?x AND { { ?a :d ?e } AS ?x OR { ?a :b 1 } }", "the name `?x` joins two patterns", "each branch"),
    (f"{PATTERN} . FILTER(start(?z) > 5)", "there is no step `?z`", "`{ ... } AS ?z`"),
    ("{ ?a :b ?c } AS ?first SEQ { ?a :d ?e } . FILTER(start(?frist) > 5)", "no step `?frist`", "`?first`"),
    ("{ ?a :b ?c FILTER(end(?x) > 3) } AS ?x SEQ { ?a :d ?e }", "times of `?x` are not known here", "behind"),
    ("{ ?a :b ?c } AS ?c SEQ { ?a :d ?e }", "`?c` is the name of a step, which has no value", "`start(?c)`"),
    ("{ ?a :b ?c OPTIONAL { ?a :f ?g } } SEQ { ?a :d ?g }", "`?g` joins two steps, and may be unbound", "BOUND(?g)"),
    ("{ ?a :b ?c BIND(?c + 1 AS ?g) } SEQ { ?a :d ?g }", "`?g` joins two steps, and may be unbound", "BOUND(?g)"),
    ("{ ?a :b ?c VALUES ?g { UNDEF 1 } } AND { ?a :d ?g }", "`?g` joins two steps, and may be unbound", "BOUND(?g)"),
    ("{ { ?a :b ?c } OR { ?a :d ?g } } SEQ { ?a :d ?g }", "`?g` joins two steps, and may be unbound", "BOUND(?g)"),
    ("OPTIONAL { { ?a :b ?c } SEQ { ?a :d ?e } }", "cannot be in `OPTIONAL`", "group of the query"),
    ("MINUS { { ?a :b ?c } SEQ { ?a :d ?e } }", "cannot be in `MINUS`", "group of the query"),
    ("GRAPH :g { { ?a :b ?c } SEQ { ?a :d ?e } }", "cannot be in `GRAPH`", "group of the query"),
    ("{ { ?a :b ?c } SEQ { ?a :d ?e } } UNION { ?a :b ?c }", "cannot be in `UNION`", "group of the query"),
    ("{ SELECT ?a { { ?a :b ?c } SEQ { ?a :d ?e } } }", "cannot be in a sub-query", "group of the query"),
    ("?a :b ?c FILTER EXISTS { { ?a :b ?c } SEQ { ?a :d ?e } }", "cannot be in `EXISTS`", "group of the query"),
    ("?a :b ?c BIND(EXISTS { { ?a :b ?c } SEQ {} } AS ?k)", "cannot be in `EXISTS`", "group of the query"),
    ("{ ?a :b ?c OPTIONAL { { ?a :b ?c } SEQ {} } } SEQ { ?a :d ?e }", "cannot be in `OPTIONAL`", "group of the query"),
    (f"{PATTERN} . {{ ?a :b ?f }} SEQ {{ ?a :b 1 }}", "a group has one pattern over time", "`AND`"),
    (f"{PATTERN} . {{ {{ ?a :b ?f }} SEQ {{ ?a :b 1 }} }}", "a group has one pattern over time", "`AND`"),
    ("{ ?a :x ?z {} SEQ { ?a :f ?f } } SEQ { ?a :b 1 }", "only FILTER and BIND may stand", "braces of a step"),
    ("{ ?a :b ?c } NOT { { ?a :d 1 }{3} } WITHIN 2ms", "always absent: it takes 2ms at least", "a longer `WITHIN`"),
    ("NOT { { ?a :d 1 }{3} } WITHIN 2ms { ?a :b ?c }", "always absent: it takes 2ms at least", "a longer `WITHIN`"),
    ("{ ?a :b ?c } NOT { { ?x :d 1 OPTIONAL { ?x :e ?c } } SEQ {} } WITHIN 5m", "may be unbound in one", "BOUND(?c)"),
    ("NOT { ?a :n 1 } WITHIN 5s { { ?a :d 1 } SEQ { ?a :f 1 } }", "not of a pattern in braces", "inside of the braces"),
    ("{ ?a :b ?c } SEQ { ?a :d ?e } WHEN (EXISTS { ?a :x ?y })", "`EXISTS` cannot be in the WHEN", "braces of a step"),
    (f"{{ {PATTERN} FILTER NOT EXISTS {{ ?a :x 1 }} }} AS ?m", "`EXISTS` cannot be in the FILTER", "braces of a step"),
    ("{ ?a :b ?c } SEQ { VALUES ?a { 1 } }", "this step reads no stream", "pattern of a stream"),
    ("{ ?a :b ?c }{0,2} SEQ { ?a :d ?e }", "a run has one occurrence at least", "`OR`"),
    ("{ ?a :b ?c }{4,2} SEQ { ?a :d ?e }", "from 4 to 2 there is no number", "{2,4}"),
    ("{ ?a :b ?c }{9999999999999999999}", "this number is too large", "18 digits"),
    ("{ ?a :b ?c }+ BY ?x", "`?x` is no key of the run: nothing binds it", "in the braces"),
    ("{ ?a :b ?c OPTIONAL { ?a :f ?g } }{2} SEQ { ?a :d ?e }", "`?g` is a key of the run", "{2} BY ?key"),
    ("{ ?a :b ?c }+ BY ?a MEASURES (COUNT(*) AS ?c)", "`?c` has a value already", "name of its own"),
    ("{ ?a :b ?c }+ MEASURES (COUNT(*) AS ?n) (SUM(?c) AS ?n)", "`?n` has a value already", "name of its own"),
    ("{ ?a :b ?c }+ MEASURES (SAMPLE(?c) AS ?n)", "`SAMPLE` is no measure of a run", "FIRST, LAST"),
    ("{ ?a :b ?c }+ MEASURES (COUNT(DISTINCT ?c) AS ?n)", "`COUNT(DISTINCT ...)` is no measure", "without `DISTINCT`"),
    ("{ ?a :b ?c }+ MEASURES (SUM(EXISTS { ?c :x 1 }) AS ?n)", "`EXISTS` cannot be in the MEASURES", "braces of a"),
    ("{ ?a :b ?c }+ WHILE (EXISTS { ?c :x 1 })", "`EXISTS` cannot be in the WHILE", "braces of a step"),
    ("{ ?a :b ?c } SEQ { ?a :d ?e } WHEN (PREVIOUS(?c) < ?e)", "`PREVIOUS(?c)` has no value here", "`WHILE`"),
    ("{ { ?a :b ?c } AS ?x SEQ { ?a :d ?e } }+ . FILTER(start(?x) > 5)", "times of `?x` are not known here", "behind"),
    ("{ ?a :b ?c } CONSUME", "`CONSUME` has no effect on a single step", "AND ... } CONSUME"),
    ("{ ?a :b ?c } AND { ?a :d ?e } CONSUME", "`CONSUME` has no effect on a single step", "in front of it"),
    ("{ ?a :b ?c } NOT { ?a :d ?e } WITHIN 5s CONSUME", "`CONSUME` has no effect on a single step", "CONSUME`"),
    ("{ ?a :b ?c } SEQ { ?a :d ?e } CONSUME BY ?x", "`?x` is no key of `CONSUME`: nothing binds it", "each match has"),
    ("{ ?a :b ?c } SEQ { ?a :d ?e OPTIONAL { ?e :f ?g } } CONSUME BY ?g", "no key of `CONSUME`: may be", "each match"),
    ("{ ?a :b ?c }{3} AFTER 1s SEQ { ?a :d ?e }", "`AFTER` compares a step with the one before", "behind"),
    ("{ ?a :b ?c }{5} WITHIN 3ms", "takes 4ms at least, and `WITHIN` allows 3ms", "longer"),
    (f"{PATTERN} . FILTER(timestamp(?a) > 4)", "`timestamp` is not supported beside", "`start(?e)`"),
]  # fmt: skip


@pytest.mark.parametrize(("group", "message", "hint"), REFUSED, ids=[group for group, *_ in REFUSED])
def test_refused(group: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError) as caught:
        compiled(f"SELECT * {{ {group} }}")
    first, *_ = getattr(caught.value, "errors", [caught.value])
    assert first.origin is not None
    assert first.origin.line == 2
    assert message.rpartition(".*")[2] in first.message
    assert hint in (first.hint or "")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (f"SELECT ?a ?x {{ {PATTERN} }}", "`?x` is the name of a step", "`start(?x)` and `end(?x)`"),
        (f"SELECT (?x AS ?k) {{ {PATTERN} }}", "`?x` is the name of a step", "`start(?x)` and `end(?x)`"),
        (f"SELECT ?a {{ {PATTERN} }} ORDER BY ?x", "`?x` is the name of a step", "`start(?x)` and `end(?x)`"),
        (f"SELECT ?a (start(?x) AS ?s) {{ {PATTERN} }} GROUP BY ?a", "times of `?x` are not known here", ""),
        (f"SELECT ?a FROM STREAM :s [RANGE 5s] {{ {PATTERN} }}", "a step reads what arrives at an instant", "WITHIN"),
        (
            "SELECT ?a FROM STREAM :s FROM NAMED :g { { ?a :b ?c } SEQ { GRAPH :g { ?a :d ?e } } }",
            "this step reads no stream",
            "can stand beside",
        ),
        (
            "SELECT ?a FROM NAMED STREAM :s FROM :g { { GRAPH :s { ?a :b ?c } } SEQ { ?a :d/:e+ ?e } }",
            "this step reads no stream",
            "can stand beside",
        ),
        (
            f"REGISTER QUERY q COMPUTED EVERY 5s AS SELECT ?a {{ {PATTERN} }}",
            "a pattern over time is output at the instant at which it ends",
            "leave `COMPUTED EVERY` out",
        ),
        (f"SELECT (EXISTS {{ {PATTERN} }} AS ?k) {{ ?a :b ?c }}", "cannot be in `EXISTS`", "group of the query"),
    ],
)
def test_refused_queries(text: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError) as caught:
        compiled(text)
    first, *_ = getattr(caught.value, "errors", [caught.value])
    assert first.origin is not None
    assert message in first.message
    assert hint in (first.hint or "")


@pytest.mark.parametrize(
    "group",
    [
        "{ ?a :b ?c OPTIONAL { ?a :f ?g } FILTER(BOUND(?g)) } SEQ { ?a :d ?g }",
        "{ ?a :b ?c OPTIONAL { ?a :f ?g } FILTER(?g + 1 > 3 && ?c = 1) } SEQ { ?a :d ?g }",
        "{ ?a :b ?c BIND(COALESCE(?c + 1, 0) AS ?g) } SEQ { ?a :d ?g }",
        "{ ?a :b ?c BIND(?c AS ?g) } SEQ { ?a :d ?g }",
        "{ ?a :b ?c VALUES (?g ?h) { (1 2) (3 4) } } SEQ { ?a :d ?g }",
        "{ SELECT ?a (COUNT(*) AS ?g) { ?a :b ?c } GROUP BY ?a } SEQ { ?a :d ?g }",
        "{ { ?a :b ?c } AS ?x OR { ?a :d ?c } AS ?x } SEQ { ?a :d ?c } . FILTER(start(?x) > 1)",
    ],
)
def test_variables_that_are_bound_join_steps(group: str) -> None:
    assert not compiled(f"SELECT ?a {{ {group} }}").warnings


def test_misspelt_variables_of_conditions_are_warned_of() -> None:
    (warning,) = compiled("SELECT * { { ?a :b ?c } SEQ { ?a :d ?e } WHEN (?ce > 4) WITHIN 5m }").warnings
    assert "`?ce` never has a value here" in str(warning)


# What a query is


def test_a_query_reads_what_arrives_at_an_instant() -> None:
    text = f"SELECT * FROM STREAM :s FROM NAMED STREAM :t FROM :g {{ {PATTERN} . GRAPH :t {{ ?a :f ?f }} }}"
    system = compiled(text)
    (query,) = system.subsystems
    assert query.output == "rstream"
    windows = {source.window for rule in rules(system) for source in rule.sources if source.iri.startswith("http")}
    assert windows == {ElementWindow()}


def test_names_are_no_variables_of_solutions() -> None:
    (query,) = compiled(f"SELECT * {{ {PATTERN} }}").subsystems
    assert list(visible(query.subsystems[-1])) == [Variable(name) for name in ("a", "c", "e")]


# Times and relations of intervals

INTERVALS = list(combinations_with_replacement(range(4), 2))
ALLEN = [name for name, count in q.STEP_FUNCTIONS.items() if count == 2]


def evaluated(expression: Expression, values: dict[Variable, int]) -> object:
    if isinstance(expression, Variable):
        return integer(values[expression])
    if not isinstance(expression, Call):
        return expression
    return lookup(expression.function).evaluate(*(evaluated(part, values) for part in expression.arguments))


def holds(name: str, first: tuple[int, int], second: tuple[int, int]) -> bool:
    a, b = Variable("a"), Variable("b")
    state = State(Notes(), "")
    state.steps = {name.name: q.StepName(name.name) for name in (a, b)}
    values = {start_of(a): first[0], end_of(a): first[1], start_of(b): second[0], end_of(b): second[1]}
    call = q.StepCall(name, (q.StepName("a"), q.StepName("b")))
    expression = step_times.times(call, values, state)

    def called(part: q.Expression) -> Expression:
        refused = q.Aggregate | q.Exists | q.NotExists | q.Timestamp | q.StepCall | q.Previous | q.EventSequence
        assert not isinstance(part, refused)
        return (
            calls.call(part.function, [called(inner) for inner in part.arguments]) if isinstance(part, q.Call) else part
        )

    return evaluated(calls.condition(called(expression)), values) is True


def test_exactly_one_relation_holds_between_two_intervals() -> None:
    for first, second in product(INTERVALS, repeat=2):
        assert len([name for name in ALLEN if holds(name, first, second)]) == 1


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("before", (0, 1), (2, 3)), ("after", (2, 3), (0, 1)), ("meets", (0, 1), (1, 3)), ("metBy", (1, 3), (0, 1)),
        ("overlaps", (0, 2), (1, 3)), ("overlappedBy", (1, 3), (0, 2)), ("starts", (0, 1), (0, 3)),
        ("startedBy", (0, 3), (0, 1)), ("during", (1, 2), (0, 3)), ("includes", (0, 3), (1, 2)),
        ("finishes", (2, 3), (0, 3)), ("finishedBy", (0, 3), (2, 3)), ("coincides", (0, 3), (0, 3)),
        ("coincides", (1, 1), (1, 1)), ("starts", (1, 1), (1, 2)), ("finishes", (2, 2), (1, 2)),
        ("before", (1, 1), (2, 2)),
    ],
)  # fmt: skip
def test_relations_have_the_names_of_allen(name: str, first: tuple[int, int], second: tuple[int, int]) -> None:
    assert holds(name, first, second)


# What is beside it

S = stream("1 :a1 a :A\n2 :c1 a :C\n3 :b1 a :B\n4 :a2 a :A\n5 :b2 a :B\n")


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_optional_variables_of_a_step_stay_unbound(planner: str) -> None:
    text = "SELECT ?a ?n ?b { { ?a a :A OPTIONAL { ?a :n ?n } } SEQ { ?b a :B } }"
    events = stream("1 :a1 a :A\n2 :a2 a :A\n2 :a2 :n 7\n3 :b1 a :B\n")
    assert answers(text, events, planner) == [(3, ("a1", "", "b1")), (3, ("a2", "7", "b1"))]


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_a_conjunction_with_names_is_of_the_same_occurrences(planner: str) -> None:
    first = "{ ?a :n 1 } AS ?x SEQ { ?b :n 2 } AS ?y"
    second = "{ ?c :n 1 } AS ?x SEQ { { ?d :n 2 } AS ?y OR { ?d :n 3 } AS ?y }"
    events = stream("1 :s :n 1\n2 :s :n 3\n3 :s :n 2\n4 :s :n 1\n5 :s :n 2\n")
    text = f"SELECT (start(?x) AS ?s) (end(?y) AS ?e) {{ {first} AND {second} }}"
    assert answers(text, events, planner) == [(5, ("4", "5"))]
    text = f"SELECT (start(?x) AS ?s) (end(?y) AS ?e) {{ {first} AND NOT {second} }}"
    assert answers(text, events, planner) == [(3, ("1", "3"))]


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_one_branch_of_a_disjunction_leaves_the_variables_of_the_other_unbound(planner: str) -> None:
    text = "SELECT ?a ?b ?c (start(?x) AS ?s) { { { ?a a :A } AS ?x OR { ?b a :B } } SEQ { ?c a :C } }"
    events = stream("1 :a1 a :A\n2 :b1 a :B\n3 :c1 a :C\n")
    assert answers(text, events, planner) == [(3, ("", "b1", "c1", "")), (3, ("a1", "", "c1", "1"))]


def test_matches_are_counted_at_the_instant_at_which_they_end() -> None:
    text = "SELECT ?b (COUNT(*) AS ?n) (MIN(start(?x)) AS ?s) { { ?a a :A } AS ?x SEQ { ?b a :B } } GROUP BY ?b"
    events = stream("1 :a1 a :A\n2 :a2 a :A\n3 :b1 a :B\n4 :a3 a :A\n5 :b1 a :B\n")
    assert answers(text, events) == [(3, ("b1", "2", "1")), (5, ("b1", "1", "4"))]


def test_streams_are_read_by_name() -> None:
    text = """SELECT ?a FROM NAMED STREAM <urn:one> FROM NAMED STREAM <urn:two> {
        { GRAPH <urn:one> { ?a a :A } } SEQ { GRAPH <urn:two> { ?a a :A } } }"""
    fact = Triple(
        iri("http://example.org/a"), iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri("http://example.org/A")
    )
    events = [Event(1, (fact,), "urn:two"), Event(2, (fact,), "urn:one"), Event(3, (fact,), "urn:one")]
    assert answers(text, events) == []
    assert answers(text, [*events, Event(4, (fact,), "urn:two")]) == [(4, ("a",)), (4, ("a",))]


def test_strict_looks_at_the_streams_of_its_steps_only() -> None:
    text = """SELECT ?b FROM NAMED STREAM <urn:one> FROM NAMED STREAM <urn:two> {
        { GRAPH <urn:one> { ?a a :A } } STRICT SEQ { GRAPH <urn:one> { ?b a :B } } }"""
    first, between, second = stream("1 :a a :A\n2 :c a :C\n3 :b a :B\n")
    events = [event._replace(stream="urn:one") for event in (first, between, second)]
    assert answers(text, events) == []
    assert answers(text, [events[0], between._replace(stream="urn:two"), events[2]]) == [(3, ("b",))]


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_a_stream_of_matches_is_read_by_another_query(planner: str) -> None:
    pairs = f"{PREFIX} REGISTER STREAM <urn:pairs> AS CONSTRUCT {{ ?a :then ?b }} {{ {{ ?a a :A }} SEQ {{ ?b a :B }} }}"
    twice = f"""{PREFIX} SELECT ?a ?d FROM STREAM <urn:pairs> {{ {{ ?a :then ?b }} SEQ {{ ?c :then ?d }} }}"""
    system = System(subsystems=(squall.compile(pairs, lexer="ctsparql"), squall.compile(twice, lexer="ctsparql")))
    facts = [(output.time, output.fact) for output in squall.run(squall.plan(system, planner), S)]
    solutions = [(time, tuple(map(_short, fact.values))) for time, fact in facts if isinstance(fact, Solution)]
    assert solutions == [(5, ("a1", "b2"))]


def test_what_one_query_consumes_another_one_has() -> None:
    text = "SELECT ?x ?y {{ {{ ?a :p ?x }} EACH SEQ {{ ?b :q ?y }} WITHIN 9ms {} }}"
    once, for_each = (compiled(text.format(consume)) for consume in ("CONSUME", "CONSUME BY ?a"))
    events = stream("1 :s :p 1\n2 :t :p 2\n4 :c :q 3\n")
    counts = [len(list(squall.run(squall.plan(query), events))) for query in (once, for_each)]
    assert counts == [1, 2]
    assert len(list(squall.run(squall.plan(System(subsystems=(once, for_each))), events))) == 3


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_what_an_update_deletes_has_occurred(planner: str) -> None:
    query = f"{PREFIX} SELECT ?a ?b {{ {{ ?a a :A }} SEQ {{ ?b a :B }} WITHIN 9ms }}"
    update = f"{PREFIX} DELETE {{ ?a a :A }} INSERT {{ :next a :B }} WHERE {{ ?a a :A }}"
    parts = [squall.compile(query, lexer="ctsparql"), squall.compile(update, lexer="sparql", window="ELEMENT")]
    system = System(subsystems=tuple(parts))
    events = stream("1 :a1 a :A\n4 :a2 a :A\n6 :b2 a :B\n")
    plan = squall.plan(system, planner)
    outputs = list(squall.run(plan, events))
    times = [output.time for output in outputs if isinstance(output.fact, Solution)]
    assert times == [2, 5], "what is inserted occurs, behind what has been deleted since"
    assert_as_oracle(system, outputs, events)
    assert Counter(in_memory.run(plan, [[event] for event in events])) == Counter(outputs)


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_queries_of_one_name_have_streams_of_their_own(planner: str) -> None:
    """Matches of one query are none of another one, whatever they are called; equal parts are evaluated once."""
    part = "{ { ?a :p ?x } AND { ?a :q ?y } WITHIN 5ms }"
    queries = [compiled(f"SELECT ?a {{ {part} SEQ {{ ?b a :{name} }} WITHIN 9ms }}") for name in "BC"]
    system = System(subsystems=tuple(queries))
    plan = squall.plan(system, planner)
    events = stream("1 :s :p 1\n2 :s :q 1\n4 :s a :B\n6 :s a :C\n")
    assert sorted(output.time for output in squall.run(plan, events)) == [4, 6]
    shared = [len({rule.stream for rule in rules(query) if rule.internal}) for query in (system, *queries)]
    assert shared == [7, 5, 5], "the two steps of the part, and the part"


def test_a_step_with_entailment_is_none_without(tmp_path: Path) -> None:
    schema = tmp_path / "schema.ttl"
    schema.write_text(
        "<http://example.org/C> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://example.org/B> .\n"
    )
    text = "SELECT ?a { { ?a a :B } SEQ { ?b :p ?x } }"
    programs = [(f"# pragma entailment rhodf\n{PREFIX}{text}", "entailed"), (f"{PREFIX}{text}", "plain")]
    files = []
    for program, name in programs:
        files.append(tmp_path / f"{name}.ctsparql")
        files[-1].write_text(program)
    system = squall.compile(*files, schema=[schema])
    outputs = squall.run(squall.plan(system), stream("1 :s a :C\n3 :s :p 1\n"))
    assert [(output.rule, output.time) for output in outputs] == [("entailed", 3)]


COUNTS = {
    "ctsparql": "SELECT (COUNT(*) AS ?n) (MAX(?x) AS ?m) { { ?a :p ?x } EACH SEQ { ?b :q ?y } WITHIN 5ms }",
    "epsparql": "SELECT (COUNT(*) AS ?n) (MAX(?x) AS ?m) { ?a :p ?x } SEQ { ?b :q ?y } FILTER(getDURATION() <= 5)",
    "cqels": """SELECT (COUNT(*) AS ?n) (MAX(?x) AS ?m) FROM STREAM :s [RANGE 6ms]
        WHERE { ?a :p ?x . ?b :q ?y FILTER(SEQ(?a ; ?b)) }""",
    "rspql": """REGISTER RSTREAM :out AS SELECT (COUNT(*) AS ?n) (MAX(?x) AS ?m)
        WHERE { EVENT ?e ON :s { ?a :p ?x } EVENT ?f ON :s { ?b :q ?y } MATCH ?e SEQ ?f WITHIN 5ms }""",
}


@pytest.mark.parametrize("planner", ["rete", "greedy"])
@pytest.mark.parametrize("lexer", COUNTS)
def test_aggregates_have_a_row_where_a_match_ends(lexer: str, planner: str) -> None:
    events = stream("1 @:s :a1 :p 1\n2 @:s :a2 :p 3\n4 @:s :b1 :q 1\n5 @:s :c :r 1\n7 @:s :b2 :q 2\n60 @:s :b3 :q 2\n")
    system = squall.compile(PREFIX + COUNTS[lexer], lexer=lexer)
    outputs = list(squall.run(squall.plan(system, planner), events, of=Solution))
    rows = [(output.time, tuple(map(_short, output.fact.values))) for output in outputs]
    assert rows == [(4, ("2", "3")), (7, ("1", "3"))]
    assert_as_oracle(system, outputs, events)


@pytest.mark.parametrize("output", ["rstream", "istream", "dstream", "changes"])
@pytest.mark.parametrize("report", [None, "change", "nonempty"])
def test_an_output_of_the_run_is_that_of_the_matches(output: str, report: str | None) -> None:
    """Occurrences are events of the program's own streams, whatever is output of the answer, and whenever."""
    text = f"{PREFIX}SELECT ?x ?y {{ {{ {{ ?a :p ?x }} AND {{ ?a :q ?z }} }} SEQ {{ ?b :q ?y }} WITHIN 9ms }}"
    system = squall.compile(text, lexer="ctsparql", output=output, report=report)
    events = stream("1 :a :p 1\n2 :a :p 1\n2 :a :q 1\n3 :a :q 1\n5 :b :q 2\n")
    outputs = list(squall.run(squall.plan(system), events, of=Solution))
    pairs = {"rstream": [(3, 2), (5, 2)], "istream": [(3, 2), (5, 2)], "dstream": [(4, 2), (6, 2)]}
    expected = pairs.get(output, [(3, 2), (4, 2), (5, 2), (6, 2)])
    assert sorted(Counter(output.time for output in outputs).items()) == expected
    assert_as_oracle(system, outputs, events)


def test_rules_derive_what_steps_read() -> None:
    query = f"{PREFIX} SELECT ?a ?b {{ {{ ?a a :Alarm }} SEQ {{ ?b a :Reset }} }}"
    rule = "@prefix : <http://example.org/> .\n[r: (?a :reads ?v) greaterThan(?v, 30) -> (?a rdf:type :Alarm)]"
    system = System(subsystems=(squall.compile(rule, lexer="jena"), squall.compile(query, lexer="ctsparql")))
    events = stream("1 :s :reads 31\n2 :s :reads 20\n5 :r a :Reset\n")

    def solutions(read: System) -> list[tuple[int, tuple[str, ...]]]:
        facts = [(output.time, output.fact) for output in squall.run(squall.plan(read), events)]
        return [(time, tuple(map(_short, fact.values))) for time, fact in facts if isinstance(fact, Solution)]

    assert solutions(system) == [(5, ("s", "r"))] * 2  # without a window the alarm holds from 1 on
    assert solutions(with_windows(system, ElementWindow())) == [(5, ("s", "r"))]
