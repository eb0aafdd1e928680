"""Rule sets in front of queries with windows of their own: each pattern reads the closure of what its window holds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, TypeGuard

import pytest
from hypothesis import strategies as st

import squall
from squall.builders.distributed.plan.strategy import strategy_of
from squall.model import warnings
from squall.plan import Plan
from squall.rdf import ALWAYS, OWL, RDF, RDFS, Atom, Event, Solution, Triple, iri, literal, parts
from squall.testing import stream
from tests import in_memory
from tests.laws import PLANNERS, examples, hold

E = "http://example.org/"
TYPE, SUB_CLASS, SUB_PROPERTY = iri(RDF + "type"), iri(RDFS + "subClassOf"), iri(RDFS + "subPropertyOf")
DOMAIN, RANGE = iri(RDFS + "domain"), iri(RDFS + "range")
SCHEMA = {
    Triple(iri(E + subject), predicate, iri(E + value))
    for subject, predicate, value in (
        ("Cat", SUB_CLASS, "Mammal"), ("Mammal", SUB_CLASS, "Animal"), ("chases", SUB_PROPERTY, "sees"),
        ("chases", DOMAIN, "Cat"), ("sees", RANGE, "Animal"),
    )
}  # fmt: skip
X = iri(E + "x")
STREAMS = (E + "a", E + "b")
QUERIES = {
    "csparql": "SELECT ?x FROM STREAM <http://example.org/a> [RANGE 3ms STEP 2ms] { ?x a :Animal }",
    "csparql, long": """SELECT ?x ?y FROM STREAM <http://example.org/a> [RANGE 9ms STEP 1ms]
        { ?x :sees ?y . ?y a :Animal }""",
    "csparql, two streams": """SELECT ?x (COUNT(?y) AS ?n) FROM STREAM <http://example.org/a> [RANGE 4ms STEP 4ms]
        FROM STREAM <http://example.org/b> [RANGE 2ms STEP 4ms] { ?x :sees ?y . ?x a :Cat } GROUP BY ?x""",
    "csparql, named": """SELECT ?x FROM NAMED STREAM <http://example.org/b> [RANGE 3ms STEP 1ms]
        { GRAPH :b { ?x a :Animal } }""",
    "cqels": """SELECT ?x ?y { STREAM <http://example.org/a> [RANGE 4ms] { ?x :sees ?y }
        STREAM <http://example.org/b> [RANGE 2ms] { ?x a :Animal } }""",
    "rspql": """REGISTER RSTREAM <out> AS SELECT ?x
        FROM NAMED WINDOW :w ON <http://example.org/a> [RANGE PT0.003S STEP PT0.002S]
        FROM NAMED WINDOW :v ON <http://example.org/b> [RANGE PT0.005S STEP PT0.001S]
        { WINDOW :w { ?x a :Animal } WINDOW :v { ?x a ?class FILTER(?class != :Animal) } }""",
    "csparql, negation": """SELECT ?x FROM STREAM <http://example.org/a> [RANGE 5ms STEP 1ms]
        { ?x a :Animal OPTIONAL { ?x :chases ?y } FILTER NOT EXISTS { ?x a :Cat } }""",
    "sparql": "SELECT ?x { ?x a :Animal }",
}  # fmt: skip


def closed(facts: Iterable[Triple]) -> set[Triple]:
    """Returns the closure of facts under rhodf, by a fixpoint over all pairs."""
    result = set(facts)
    while True:
        derived = {new for first in result for second in result for new in _consequences(first, second)}
        if derived <= result:
            return result
        result |= derived


def _consequences(fact: Triple, axiom: Triple) -> Iterable[Triple]:
    if fact.predicate == axiom.predicate and fact.predicate in (SUB_CLASS, SUB_PROPERTY):
        if fact.object == axiom.subject:
            yield Triple(fact.subject, fact.predicate, axiom.object)
    elif axiom.predicate == SUB_CLASS and fact.predicate == TYPE and fact.object == axiom.subject:
        yield Triple(fact.subject, TYPE, axiom.object)
    elif axiom.predicate == SUB_PROPERTY and fact.predicate == axiom.subject:
        yield Triple(fact.subject, axiom.object, fact.object)
    elif axiom.predicate == DOMAIN and fact.predicate == axiom.subject:
        yield Triple(fact.subject, TYPE, axiom.object)
    elif axiom.predicate == RANGE and fact.predicate == axiom.subject:
        yield Triple(fact.object, TYPE, axiom.object)


def about(facts: Iterable[Triple]) -> tuple[Triple, ...]:
    """Returns the closure of facts about individuals. Each of its facts follows from one of them and the schema."""
    return tuple(sorted(closed({*facts, *SCHEMA}) - closed(SCHEMA)))


def _is_triple(fact: Triple | Atom) -> TypeGuard[Triple]:
    return isinstance(fact, Triple)


def compiled(name: str, rules: tuple[str, ...] = ()) -> squall.System:
    text = f"PREFIX : <{E}>\n{QUERIES[name]}"
    return squall.compile(text, lexer=name.partition(",")[0], rules=rules, window="RANGE 4ms")


def events() -> st.SearchStrategy[list[Event]]:
    individuals = st.sampled_from([iri(E + name) for name in "xyz"])
    typing = st.builds(Triple, individuals, st.just(TYPE), st.sampled_from([iri(E + "Cat"), iri(E + "Mammal")]))
    relation = st.builds(Triple, individuals, st.sampled_from([iri(E + "chases"), iri(E + "sees")]), individuals)
    facts = st.lists(typing | relation, min_size=1, max_size=3).map(tuple)
    unsorted = st.lists(st.tuples(st.integers(0, 20), facts, st.sampled_from(STREAMS)).map(_event), max_size=8)
    return unsorted.map(lambda drawn_events: sorted(drawn_events, key=lambda event: event.time))


def _event(values: tuple[int, tuple[Triple, ...], str]) -> Event:
    return Event(*values)


def outputs(plan: Plan, stream_events: list[Event], static: Iterable[Triple], seed: int | None = None) -> list[Any]:
    data = [Event(ALWAYS, tuple(static))]
    if seed is None or not strategy_of(plan).is_staged:
        return sorted((out.time, str(out.fact)) for out in squall.run(plan, stream_events, static=data))
    batches = in_memory.cut(stream_events, [Random(seed).randrange(9)])
    return sorted((out.time, str(out.fact)) for out in in_memory.run(plan, batches, data))


@examples(40)
@pytest.mark.sampled(12)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_reads_the_closure_of_its_windows(name: str, planner: str, many: int) -> None:
    plan = squall.plan(compiled(name, ("rhodf",)), planner)
    plain_plan = squall.plan(compiled(name), planner)

    def law(stream_events: list[Event], seed: int) -> None:
        entailed = [event._replace(facts=about(filter(_is_triple, event.facts))) for event in stream_events]
        expected = outputs(plain_plan, entailed, closed(SCHEMA))
        assert outputs(plan, stream_events, SCHEMA) == expected
        assert outputs(plan, stream_events, SCHEMA, seed) == expected

    hold(law, many, stream_events=events(), seed=st.integers(0, 100))


@pytest.mark.fault("W2")
def test_queries_of_one_run_read_windows_of_their_own() -> None:
    """W2 of the reported faults: what a rule set derived did not expire with the window of the query."""
    text = "\n".join(
        f"REGISTER QUERY Q{length} AS PREFIX : <{E}> SELECT (COUNT(?x) AS ?n) "
        f"FROM STREAM <{E}a> [RANGE {length}ms STEP 10ms] {{ ?x a :Animal }} ;"
        for length in (2, 5)
    ).removesuffix(";")
    facts = [Event(time, (Triple(iri(f"{E}x{time}"), TYPE, iri(E + "Cat")),), E + "a") for time in range(1, 30)]
    counts: dict[str, list[str]] = {"Q2": [], "Q5": []}
    for program in text.split(";"):
        system = squall.compile(program, lexer="csparql", rules=("rhodf",))
        for out in squall.run(squall.plan(system), facts, static=[Event(ALWAYS, tuple(SCHEMA))], of=Solution):
            counts[out.rule].append(parts(out.fact.values[0] or "").lexical)
    assert counts == {"Q2": ["0", "2", "2", "2", "0"], "Q5": ["0", "5", "5", "5", "0"]}


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("rule_set", ["rhodf", pytest.param("owl2rl", marks=pytest.mark.more)])
@pytest.mark.parametrize(
    "others",
    [(), ("SELECT ?x { ?x :sees ?y }",), (f"SELECT ?x FROM STREAM <{E}a> [RANGE 4ms STEP 1ms] {{ ?x a :Cat }}",)],
)
def test_the_default_graph_has_no_entailment_of_named_graphs(
    others: tuple[str, ...], rule_set: str, planner: str, tmp_path: Path
) -> None:
    """Its closure is that of its own triples, as beside a query with windows. Queries read no generalised triples."""
    programs = [tmp_path / f"q{number}.csparql" for number in range(len(others) + 1)]
    for program, query in zip(programs, ("SELECT ?x { ?x a :Animal }", *others), strict=True):
        program.write_text(f"PREFIX : <{E}>\n{query}")
    in_graph = Triple(iri(E + "tom"), iri(E + "chases"), iri(E + "jerry"))
    own = [Triple(X, iri(E + "chases"), iri(E + "y")), Triple(X, iri(E + "sees"), literal("z"))]
    static = [Event(ALWAYS, (*SCHEMA, *own)), Event(ALWAYS, (in_graph,), graph=iri(E + "g"))]
    plan = squall.plan(squall.compile(*programs, rules=(rule_set,)), planner)
    solutions = [out.fact.values for out in squall.run(plan, [], static=static, of=Solution) if out.rule == "q0"]
    assert sorted(solutions) == [(X,), (iri(E + "y"),)]
    if not others:
        assert {str(out.fact) for out in in_memory.run(plan, [], static)} == {f"?x={X}", f"?x={iri(E + 'y')}"}


@pytest.mark.more
def test_a_rule_set_in_front_of_queries_reads_generalized_triples() -> None:
    """`"z" :seenBy :x` is none in RDF, and no query finds it; but `:x` is an animal by it."""
    query = f"PREFIX : <{E}> SELECT ?x {{ ?x a :Animal }}"
    data = stream(f'always :sees <{OWL}inverseOf> :seenBy\nalways :seenBy rdfs:range :Animal\nalways :x :sees "z"')
    plan = squall.plan(squall.compile(query, lexer="sparql", rules=("owl2rl",)))
    assert [out.fact.values for out in squall.run(plan, [], static=data, of=Solution)] == [(X,)]


def test_rules_and_the_rule_set_in_front_of_them_read_all_graphs() -> None:
    system = squall.compile(
        f"[r: (?x rdf:type <{E}Animal>) -> (?x rdf:type <{E}Known>)]", lexer="jena", rules=("rhodf",)
    )
    static = [Event(ALWAYS, tuple(SCHEMA)), Event(ALWAYS, (Triple(X, TYPE, iri(E + "Cat")),), graph=iri(E + "g"))]
    assert [str(out.fact.object) for out in squall.run(squall.plan(system), [], static=static)] == [f"<{E}Known>"]


def test_rules_with_several_facts_join_them_inside_of_a_window() -> None:
    query = f"PREFIX : <{E}> SELECT ?y FROM STREAM <{E}a> [RANGE 4ms STEP 1ms] {{ :x :before ?y }}"
    system = squall.compile(query, lexer="csparql", rules=("owl2rl",), output="istream")
    transitive = Triple(iri(E + "before"), TYPE, iri("http://www.w3.org/2002/07/owl#TransitiveProperty"))
    links = [event._replace(stream=E + "a") for event in stream("1 :x :before :y\n3 :y :before :z\n9 :z :before :w")]
    results = squall.run(squall.plan(system), links, static=[Event(ALWAYS, (transitive,))], of=Solution)
    assert [(out.time, out.fact.values[0]) for out in results] == [(2, iri(E + "y")), (4, iri(E + "z"))]


@pytest.mark.parametrize(("graph", "count"), [("?g", 1), (":a", 0)])
def test_a_pattern_of_any_graph_has_no_entailment(graph: str, count: int) -> None:
    query = (
        f"PREFIX : <{E}> SELECT ?x FROM NAMED STREAM <{E}a> [RANGE 4ms STEP 1ms] {{ GRAPH {graph} {{ ?x a :Animal }} }}"
    )
    system = squall.compile(query, lexer="csparql", rules=("rhodf",))
    assert [str(warning.message)[:20] for warning in warnings(system)] == ["patterns inside of a"] * count
    assert not warnings(squall.compile(query, lexer="csparql"))


@pytest.mark.parametrize("rule_set", ["rdfs-axioms", "datatypes"])
def test_a_rule_may_negate_what_no_rule_of_the_set_derives(rule_set: str, tmp_path: Path) -> None:
    """A closure has no rule that derives any triple, by which each negation would depend on itself."""
    rule, query = tmp_path / "r.jena", tmp_path / "q.csparql"
    rule.write_text(f"@prefix : <{E}> .\n[r: (?x :sees ?y) noValue(?x :chases ?y) -> (?x :misses ?y)]")
    query.write_text(f"PREFIX : <{E}> SELECT ?x FROM STREAM <{E}a> [RANGE 4ms STEP 1ms] {{ ?x :misses ?y }}")
    system = squall.compile(rule, query, rules=(rule_set,))
    facts = [*stream("1 :x :sees :y\n1 :y :sees :z\n1 :y :chases :z"), Event(2, (Triple(X, TYPE, X),), E + "a")]
    results = {(out.rule, str(out.fact)) for out in squall.run(squall.plan(system), facts)}
    assert sorted(rule for rule, _ in results) == ["q", "r"]


def test_individuals_of_static_data_are_not_in_a_window() -> None:
    query = f"""PREFIX : <{E}> PREFIX rdfs: <{RDFS}> REGISTER RSTREAM <out> AS SELECT ?x ?label
        FROM NAMED WINDOW :w ON <{E}a> [RANGE PT0.004S STEP PT0.001S]
        {{ WINDOW :w {{ ?x a :Animal OPTIONAL {{ ?x rdfs:label ?label }} }} }}"""
    system = squall.compile(query, lexer="rspql", rules=("rhodf",))
    static = stream('1 :tom a :Cat ; rdfs:label "Tom" . :kit rdfs:label "Kit"')[0].facts
    data = [Event(ALWAYS, (*static, *SCHEMA))]
    kit = [Event(1, (Triple(iri(E + "kit"), TYPE, iri(E + "Cat")),), E + "a")]
    results = squall.run(squall.plan(system), kit, static=data, of=Solution)
    assert {out.fact.values for out in results} == {(iri(E + "kit"), None)}
