"""Specialised rule sets in front of windows: on each builder, what the generic ones derive of the schema and the data.

`test_specialise` has the law over whole graphs; here rules and queries read windows of streams. A second law takes the
closures of windows from the library `owlrl`, as `test_owl_windows` does for ontologies that are programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
import rdflib
from hypothesis import strategies as st
from rdflib.query import ResultRow

import squall
from squall import System, testing
from squall.builders.distributed.io.records import WorkerError
from squall.errors import SquallError
from squall.lexers.owl import tree
from squall.plan import Plan
from squall.plan.operators import Construct
from squall.rdf import ALWAYS, RDF, RDFS, Event, Triple, to_rdflib
from squall.rdf.vocabulary import TYPE, is_schema_triple
from tests import owl_rdf
from tests import test_owl_windows as owl_windows
from tests.in_memory import outputs_on
from tests.laws import PLANNERS, hold_with_outputs
from tests.ontologies import FACTS, IN_OWL, SCHEMA_OF_USERS, Graph, graphs
from tests.test_owl_laws import DECLARATIONS
from tests.test_owl_windows import owl2rl_closure
from tests.test_reasoning import A, B, E
from tests.test_specialise import triples_of

PREFIXES = f"PREFIX : <{E}> PREFIX rdf: <{RDF}> PREFIX rdfs: <{RDFS}>\n"
PATTERNS = (
    "?x a :C", "?x :p ?y", "?x a ?c", "?x a :D . ?x :q ?y", "?x :r ?y . ?y a :C", "?x ?p :b",
    "?x :p ?y FILTER NOT EXISTS { ?y a :E }", "?x a :F OPTIONAL { ?x :q ?y }", "?x :p+ ?y",
)  # fmt: skip
FORMS = {
    "csparql, sliding": f"SELECT * FROM STREAM <{A}> [RANGE 5ms STEP 2ms] {{ %s }}",
    "csparql, tumbling": f"SELECT * FROM STREAM <{A}> [RANGE 3ms TUMBLING] {{ %s }}",
    "csparql, count": f"SELECT * FROM STREAM <{A}> [TRIPLES 3] {{ %s }}",
    "csparql, two streams": f"""SELECT * FROM STREAM <{A}> [RANGE 4ms STEP 2ms] FROM STREAM <{B}> [RANGE 2ms STEP 2ms]
        {{ %s }}""",
    "csparql, named": f"""SELECT * FROM NAMED STREAM <{B}> [RANGE 4ms STEP 1ms] {{ GRAPH <{B}> {{ %s }} }}""",
    "rspql, named": f"""REGISTER RSTREAM :out AS SELECT * FROM NAMED WINDOW :w ON <{A}> [RANGE PT0.004S STEP PT0.002S]
        {{ WINDOW :w {{ %s }} }}""",
    "rspql, two windows": f"""REGISTER RSTREAM :out AS SELECT * FROM NAMED WINDOW :w ON <{A}>
        [RANGE PT0.005S STEP PT0.002S] FROM NAMED WINDOW :v ON <{B}> [RANGE PT0.003S STEP PT0.001S]
        {{ WINDOW :w {{ %s }} WINDOW :v {{ ?x a :E }} }}""",
    "cqels, sliding": f"SELECT * {{ STREAM <{A}> [RANGE 4ms] {{ %s }} }}",
    "cqels, two windows": f"""SELECT * {{ STREAM <{A}> [RANGE 6ms SLIDE 2ms] {{ %s }}
        STREAM <{B}> [RANGE 3ms] {{ ?x :q ?z }} }}""",
    "cqels, count": f"SELECT * {{ STREAM <{B}> [TRIPLES 2] {{ %s }} }}",
    "sparqlstream, named": f"""SELECT RSTREAM * FROM NAMED STREAM <{A}> [NOW-4 MS SLIDE 2 MS]
        WHERE {{ GRAPH <{A}> {{ %s }} }}""",
    "sparql, default": "SELECT * { %s }",
    "jena, rules": "@prefix : <http://example.org/>.\n[r: (?x rdf:type :C) (?x :p ?y) -> (?x :s ?y)]",
    "": "",
}  # fmt: skip
"""Programs by their language and the windows that they read, with a place for a pattern. None: the rule set alone."""
RHODF, OWL2RL = "rhodf inverse", "owl2rl"


def compiled(sets: str, form: str, pattern: str, schema: Graph | None = None) -> System:
    """Returns a program behind rule sets, which the schema specialises if it is given."""
    template = FORMS[form]
    text = PREFIXES + template % pattern if "%s" in template else template
    programs, lexer = ([text], form.partition(",")[0]) if text else ([], None)
    is_specialised = schema is not None
    return squall.compile(
        *programs, lexer=lexer, window="RANGE 4ms", rules=sets.split(), specialise=is_specialised, schema=schema or ()
    )


@cache
def generic(planner: str, sets: str, form: str, pattern: str) -> Plan:
    return squall.plan(compiled(sets, form, pattern), planner)


def ordered(outputs: Iterable[squall.Output], data: Iterable[Event] = ()) -> list[tuple[int, str]]:
    """Returns outputs in order, without facts that are data: generic rules derive some of them again."""
    facts = {fact for event in data for fact in event.facts}
    return sorted((out.time, str(out.fact)) for out in outputs if out.fact not in facts)


def events(graph: Graph, seed: int) -> list[Event]:
    """Returns the triples of a graph in events of one or two of them, at times and in streams drawn from a seed."""
    draw = Random(seed)
    facts = sorted(graph)
    draw.shuffle(facts)
    drawn_events: list[Event] = []
    while facts:
        count = draw.choice((1, 1, 2))
        content, facts = tuple(facts[:count]), facts[count:]
        drawn_events.append(Event(draw.randrange(12), content, draw.choice((A, A, B))))
    return sorted(drawn_events, key=lambda event: event.time)


def check_law(
    builder: str, sets: str, planner: str, form: str, pattern: str, graph: Graph, stream: Sequence[Event],
    seed: int,
) -> list[tuple[int, str]]:  # fmt: skip
    """Checks the law on a builder for a schema and a stream, and returns the outputs."""
    schema = frozenset(filter(is_schema_triple, graph))
    static = [Event(ALWAYS, tuple(sorted(schema)))]
    plan = squall.plan(compiled(sets, form, pattern, graph), planner)
    try:
        outputs = outputs_on(builder, plan, stream, seed)
    except (SquallError, WorkerError) as error:
        if "two names of the schema" not in str(error):
            raise
        return []
    answers = ordered(outputs, stream)
    assert answers == ordered(squall.run(generic(planner, sets, form, pattern), stream, static=static), stream)
    return answers


def engine(name: str, mark: str, *arguments: Any) -> Any:
    """Returns parameters of a test on an engine, with its marks."""
    return pytest.param(name, *arguments, marks=[getattr(pytest.mark, name), getattr(pytest.mark, mark)])


@pytest.mark.parametrize(
    ("builder", "sets", "number"),
    [
        ("iterator", RHODF, 40),
        ("in memory", RHODF, 40),
        pytest.param("iterator", OWL2RL, 10, marks=pytest.mark.more),
        pytest.param("in memory", OWL2RL, 5, marks=pytest.mark.more),
        pytest.param("in memory", RHODF, 400, marks=pytest.mark.slow),
        pytest.param("in memory", OWL2RL, 60, marks=pytest.mark.slow),
        *(engine(name, "more", RHODF, 2) for name in ("beam", "spark")),
        *(engine(name, "slow", sets, 10) for name in ("beam", "spark") for sets in (RHODF, OWL2RL)),
    ],
)
def test_a_program_has_the_answers_that_it_has_behind_the_generic_rule_set(
    builder: str, sets: str, number: int
) -> None:
    axioms = IN_OWL if sets == OWL2RL else SCHEMA_OF_USERS

    def law(
        graph: Graph, data: Graph, form: str, pattern: str, planner: str, seed: int
    ) -> list[tuple[int, str]]:  # fmt: skip
        individuals = frozenset(triple for triple in graph if not is_schema_triple(triple))
        stream = events(data | individuals, seed)
        return check_law(builder, sets, planner, form, pattern, graph, stream, seed)

    min_share = 0.3 if number >= 40 else 0.1  # of few examples few may have outputs by chance
    hold_with_outputs(
        law, number, min_share, graph=graphs(axioms), data=graphs(FACTS), form=st.sampled_from([*FORMS]),
        pattern=st.sampled_from(PATTERNS), planner=st.sampled_from(PLANNERS), seed=st.integers(0, 1000),
    )  # fmt: skip


# What follows in each window, by owlrl

CASES = {
    "transitive": (
        ":before a owl:TransitiveProperty .",
        "1 :a :before :b\n3 :b :before :c\n6 :c :before :d\n6 :a :before :b\n9 :d :before :a",
        "?x :before ?y",
    ),
    "inverse": (
        ":has owl:inverseOf :isOf . :isOf rdfs:domain :Part .",
        "1 :a :has :b\n4 :c :isOf :a\n6 :b :has :c",
        "?x a :Part . ?y :has ?x",
    ),
    "symmetric": (
        ":meets a owl:SymmetricProperty . :meets rdfs:subPropertyOf :knows .",
        "1 :a :meets :b\n5 :b :knows :c",
        "?x :knows ?y",
    ),
    "chain": (
        ":uncle owl:propertyChainAxiom (:parent :parent :child) .",
        "2 :a :parent :b\n3 :b :parent :c\n4 :c :child :d\n7 :b :parent :c\n8 :c :child :e\n9 :a :parent :b",
        "?x :uncle ?y",
    ),
    "intersection": (
        ":Mother owl:intersectionOf (:Woman [ owl:onProperty :child ; owl:someValuesFrom owl:Thing ]) .",
        "1 :a a :Woman\n3 :a :child :b\n4 :b a :Mother\n6 :c :child :d\n9 :c a :Woman",
        "?x a :Mother",
    ),
    "existential": (
        ":Owner owl:equivalentClass [ owl:onProperty :owns ; owl:someValuesFrom :Car ] . :Van rdfs:subClassOf :Car .",
        "1 :a :owns :v\n3 :v a :Van\n4 :b :owns :v\n7 :b :owns :w\n8 :w a :Car",
        "?x a :Owner",
    ),
    "universal": (
        ":Kennel rdfs:subClassOf [ owl:onProperty :houses ; owl:allValuesFrom :Dog ] .",
        "1 :k a :Kennel\n3 :k :houses :a\n6 :k :houses :b\n7 :k a :Kennel",
        "?x a :Dog",
    ),
    "value": (
        ":Local owl:equivalentClass [ owl:onProperty :in ; owl:hasValue :paris ] . :Parisian rdfs:subClassOf :Local .",
        "1 :a :in :paris\n3 :b :in :rome\n4 :c a :Parisian\n6 :a :in :rome",
        "?x a :Local . ?x :in ?y",
    ),
    "functional": (
        ":plate a owl:InverseFunctionalProperty . :driver a owl:FunctionalProperty . :Fined rdfs:subClassOf :Late .",
        "1 :a :plate :x\n2 :b :plate :x\n3 :b :driver :p\n4 :a :driver :q\n5 :p a :Fined\n8 :q a :Late",
        "?x a :Late",
    ),
    "equality": (
        ":a owl:sameAs :a . :Car rdfs:subClassOf :Vehicle .",
        "1 :x a :Car\n2 :x owl:sameAs :y\n3 :y :at :home\n7 :y a :Car\n8 :z owl:sameAs :x",
        "?x a :Vehicle",
    ),
}  # fmt: skip
"""Schemas, streams with a fact per line and its time, and patterns whose solutions follow in some windows only."""
WITH_EQUALITY = ("functional", "equality")
QUERIES = {
    "csparql": f"REGISTER QUERY %s AS SELECT * FROM STREAM <{A}> [RANGE 4ms STEP 2ms] {{ %s }}",
    "rspql": f"REGISTER RSTREAM <urn:%s> AS SELECT * FROM NAMED WINDOW :w ON <{A}> [RANGE PT0.004S STEP PT0.002S] "
    "{ WINDOW :w { %s } }",
    "sparqlstream": f"# %s\nSELECT RSTREAM * FROM NAMED STREAM <{A}> [NOW-4 MS SLIDE 2 MS] "
    f"WHERE {{ GRAPH <{A}> {{ %s }} }}",
}  # fmt: skip
"""Queries over a window of 4 ms that steps by 2 ms, with places for a name and a pattern."""


def solutions(triples: Iterable[Triple], pattern: str) -> set[str]:
    """Returns the solutions of a pattern over triples, by rdflib."""
    graph = rdflib.Graph()
    for triple in triples:
        graph.add(tuple(map(to_rdflib, triple)))  # type: ignore[arg-type]
    result = graph.query(f"{PREFIXES} SELECT * {{ {pattern} }}")
    return {
        " ".join(f"?{name}=<{term}>" for name, term in sorted(row.asdict().items()))
        for row in result
        if isinstance(row, ResultRow)
    }


def expected(schema: Sequence[Triple], stream: Sequence[Event], pattern: str) -> list[tuple[int, str]]:
    """Returns the solutions of a pattern in the closures of the windows of `QUERIES`."""
    answers: list[tuple[int, str]] = []
    for now in range(2, 16, 2):
        content = [fact for event in stream if now - 4 <= event.time < now for fact in event.facts]
        triples = [fact for fact in content if isinstance(fact, Triple)]
        answers += ((now, solution) for solution in solutions(owl2rl_closure([*schema, *triples]), pattern))
    return sorted(answers)


@pytest.mark.more
@pytest.mark.parametrize(
    ("case", "language"),
    [
        pytest.param(case, language, marks=[pytest.mark.slow] * (case in WITH_EQUALITY and language != "csparql"))
        for case in CASES
        for language in QUERIES
    ],
)
def test_what_follows_in_a_window(case: str, language: str) -> None:
    check_cases([case], language, "iterator", "in memory")


def test_what_no_rule_derives_is_copied_once() -> None:
    """A query reads the triples of `:at` from a relation of RDF triples, without the one that rules read."""
    text = PREFIXES + QUERIES["csparql"] % ("q", "?x a :Vehicle ; :at ?y")
    schema = triples_of(":Car rdfs:subClassOf :Vehicle .")
    plan = squall.plan(squall.compile(text, lexer="csparql", rules=["rhodf"], specialise=True, schema=schema))
    heads = [node.op.template for node in plan.nodes if isinstance(node.op, Construct)]
    assert sum(f"<{E}at>" in head for head in heads) == 1
    assert sum(TYPE in head for head in heads) > 1


ENGINES = ("beam", "spark")


@pytest.mark.parametrize(
    ("builder", "language"), [engine(name, "more", language) for name in ENGINES for language in ("csparql", "rspql")]
)
def test_what_follows_in_a_window_on_an_engine(builder: str, language: str) -> None:
    """One program has all cases without equality: with it, `owl2rl` has several hundred rules more."""
    check_cases([case for case in CASES if case not in WITH_EQUALITY], language, builder)


@pytest.mark.parametrize(
    ("builder", "language"), [engine(name, "slow", language) for name in ENGINES for language in QUERIES]
)
def test_all_cases_on_an_engine(builder: str, language: str) -> None:
    check_cases([*CASES], language, builder)


def check_cases(cases: Sequence[str], language: str, *builders: str) -> None:
    """Checks that the solutions of the patterns of cases are those of owlrl, with all of their schemas and streams."""
    schema = [triple for case in cases for triple in triples_of(CASES[case][0])]
    events = [event for case in cases for event in testing.stream(CASES[case][1])]
    stream = sorted((event._replace(stream=A) for event in events), key=lambda event: event.time)
    texts = [PREFIXES + QUERIES[language] % (case, CASES[case][2]) for case in cases]
    plan = squall.plan(squall.compile(*texts, lexer=language, rules=[OWL2RL], specialise=True, schema=schema))
    answers = sorted(answer for case in cases for answer in expected(schema, stream, CASES[case][2]))
    assert answers
    for builder in builders:
        assert ordered(outputs_on(builder, plan, stream, 3)) == answers, builder


@pytest.mark.more
@pytest.mark.parametrize(("builder", "number"), [("iterator", 20), ("in memory", 10)])
def test_a_query_has_the_solutions_of_the_closures_of_its_windows(builder: str, number: int) -> None:
    def law(
        schema: list[tree.Axiom], events: list[Event], language: str, pattern: str, planner: str, seed: int
    ) -> list[tuple[int, str]]:  # fmt: skip
        triples = owl_rdf.triples_of([*DECLARATIONS, *schema])
        text = owl_windows.QUERIES[language].format(E=E, pattern=pattern)
        system = squall.compile(text, lexer=language, rules=[OWL2RL], specialise=True, schema=triples)
        answers = ordered(outputs_on(builder, squall.plan(system, planner), events, seed))
        assert answers == owl_windows.expected_answers(schema, events, language, pattern)
        return answers

    hold_with_outputs(
        law, number, schema=owl_windows.ontologies, events=owl_windows.streams,
        language=st.sampled_from([*owl_windows.QUERIES]), pattern=st.sampled_from([*owl_windows.PATTERNS]),
        planner=st.sampled_from(PLANNERS), seed=st.integers(0, 1000),
    )  # fmt: skip
