"""An ontology over a stream: queries have, at each evaluation, the solutions of the closure of what their windows hold.

The closure is that of the library `owlrl`, which has no part in common with squall. It deviates from OWL 2 RL in two
places: individuals without a value of a key are equal, and literals are compared by their text. So keys and data
properties are left out here; `test_owl_laws` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import rdflib
from hypothesis import reject
from hypothesis import strategies as st

import squall
from squall.lexers.owl import tree
from squall.plan import Plan
from squall.rdf import ALWAYS, XSD, Event, Term, Triple, term, to_rdflib
from squall.rdf.vocabulary import TYPE
from tests.in_memory import outputs_on
from tests.laws import PLANNERS, examples, hold
from tests.owl_rdf import triples_of
from tests.test_owl_laws import CLASSES, DATA, DECLARATIONS, INDIVIDUALS, OBJECT, E, assertions, axioms

owlrl = pytest.importorskip("owlrl")

S, T = f"{E}s", f"{E}t"
"""The streams."""
STEP = 2
"""How often windows are evaluated, in ms."""


def rows(closure: Iterable[Triple], predicate: Term, object: Term | None = None) -> set[tuple[Term, Term]]:
    """Returns the subjects and objects of the triples with a predicate and, if it is given, an object."""
    return {(s, o) for s, p, o in closure if p == predicate and object in (None, o)}


def members(closure: Iterable[Triple], name: Term) -> set[Term]:
    return {subject for subject, _ in rows(closure, TYPE, name)}


def pairs(items: Iterable[tuple[Term, Term]]) -> set[str]:
    return {f"?x={x} ?y={y}" for x, y in items}


CLASS_A, CLASS_B, CLASS_C = CLASSES
P, Q = OBJECT
PATTERNS: dict[str, Callable[[set[Triple]], set[str]]] = {
    "?x a :A": lambda closure: {f"?x={x}" for x in members(closure, CLASS_A)},
    "?x :p ?y": lambda closure: pairs(rows(closure, P)),
    "?x a :B . ?x :q ?y": lambda closure: pairs((x, y) for x, y in rows(closure, Q) if x in members(closure, CLASS_B)),
    "?x :p ?y FILTER NOT EXISTS { ?y a :C }": lambda closure: pairs(
        (x, y) for x, y in rows(closure, P) if y not in members(closure, CLASS_C)
    ),
}
"""Patterns, and what their solutions are in a closure."""
QUERIES = {
    "csparql": "REGISTER QUERY q AS PREFIX : <{E}> SELECT * FROM STREAM :s [RANGE 4ms STEP 2ms] {{ {pattern} }}",
    "rspql": "PREFIX : <{E}> REGISTER RSTREAM :out AS SELECT * FROM NAMED WINDOW :w ON :s "
    "[RANGE PT0.004S STEP PT0.002S] {{ WINDOW :w {{ {pattern} }} }}",
    "sparqlstream": "PREFIX : <{E}> SELECT RSTREAM * FROM NAMED STREAM :s [NOW-4 MS SLIDE 2 MS] "
    "WHERE {{ GRAPH :s {{ {pattern} }} }}",
    "cqels": "PREFIX : <{E}> SELECT * {{ STREAM :s [RANGE 4ms SLIDE 2ms] {{ {pattern} }} }}",
}
"""Queries over a window of 4 ms that steps by 2 ms. That of CQELS-QL outputs new solutions, the others all of them."""
TWO_WINDOWS = f"""PREFIX : <{E}> REGISTER RSTREAM :out AS SELECT *
FROM NAMED WINDOW :w ON :s [RANGE PT0.004S STEP PT0.002S] FROM NAMED WINDOW :v ON :t [RANGE PT0.008S STEP PT0.002S]
{{ WINDOW :w {{ ?x a :A }} WINDOW :v {{ ?x :p ?y }} }}"""

Answers = list[tuple[int, str]]
of_individuals = axioms.filter(
    lambda axiom: (
        not isinstance(axiom, tree.HasKey | tree.SameIndividual | tree.ClassAssertion | tree.PropertyAssertion)
        and not any(name in str(axiom) for name in (*DATA, XSD))
    )
)
facts = assertions.filter(lambda axiom: DATA[0] not in str(axiom)).map(lambda axiom: triples_of([axiom])[-1])
events_of_streams = st.tuples(
    st.integers(0, 9), st.lists(facts, min_size=1, max_size=3).map(tuple), st.sampled_from([S, T])
).map(lambda values: Event(*values))
streams = st.lists(events_of_streams, min_size=2, max_size=5).map(
    lambda events: sorted(events, key=lambda event: event.time)
)
ontologies = st.lists(of_individuals, min_size=1, max_size=4)


def compiled(schema: Sequence[tree.Axiom], text: str, lexer: str) -> squall.System:
    with TemporaryDirectory() as folder:
        ontology, query = Path(folder, "o.ofn"), Path(folder, f"q.{lexer}")
        ontology.write_text(str(tree.Ontology("o", axioms=(*DECLARATIONS, *schema))), encoding="utf-8")
        query.write_text(text, encoding="utf-8")
        return squall.compile(ontology, query)


class Contradiction(Exception):
    """The facts contradict the ontology: anything follows from them."""


def owl2rl_closure(triples: Iterable[Triple]) -> set[Triple]:
    """Returns the triples of IRIs in the closure that owlrl makes. Raises Contradiction."""
    graph = rdflib.Graph()
    for subject, predicate, object in triples:
        graph.add((to_rdflib(subject), to_rdflib(predicate), to_rdflib(object)))
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics, axiomatic_triples=False, datatype_axioms=False).expand(graph)
    if any("error" in str(predicate) for predicate in graph.predicates()):
        raise Contradiction
    return {Triple(*map(term, triple)) for triple in graph if all(isinstance(part, rdflib.URIRef) for part in triple)}


def next_step(time: int) -> int:
    """Returns the first instant after a time at which windows are evaluated."""
    return time // STEP * STEP + STEP


def instants(events: Iterable[Event], sizes: Mapping[str, int]) -> list[int]:
    """Returns when windows of streams, of so many ms, are evaluated, beginning with what follows from axioms alone.

    That is from the step at which an event comes into a window to that at which it leaves.
    """
    steps = {
        now
        for event in events
        if event.stream in sizes
        for now in range(next_step(event.time), next_step(event.time + sizes[event.stream]) + STEP, STEP)
    }
    return [ALWAYS, *sorted(steps)]


def closures(
    schema: Sequence[tree.Axiom], events: Iterable[Event], times: Iterable[int], stream: str, size: int
) -> dict[int, set[Triple]]:
    """Returns the closure of what a window of `size` ms holds at each of the times."""
    axiom_triples = triples_of([*DECLARATIONS, *schema])
    closure_by_content: dict[frozenset[Triple], set[Triple]] = {}
    result = {}
    for now in times:
        content = frozenset(
            fact
            for event in events
            if event.stream == stream and now - size <= event.time < now
            for fact in event.facts
            if isinstance(fact, Triple)
        )
        if content not in closure_by_content:
            closure_by_content[content] = owl2rl_closure([*axiom_triples, *content])
        result[now] = closure_by_content[content]
    return result


def ordered(answers: Iterable[tuple[int, str]]) -> Answers:
    return sorted(answers)


def answers(plan: Plan, events: Sequence[Event]) -> Answers:
    return ordered((out.time, str(out.fact)) for out in squall.run(plan, events))


def expected_answers(schema: Sequence[tree.Axiom], events: Iterable[Event], language: str, pattern: str) -> Answers:
    """Returns the answers of a query of `QUERIES`: the solutions of its pattern in the closure of each window.

    If facts contradict the ontology, anything follows: hypothesis rejects the example.
    """
    try:
        closure_by_time = closures(schema, events, instants(events, {S: 4}), S, 4)
    except Contradiction:
        reject()
    solutions = {now: PATTERNS[pattern](closure) for now, closure in closure_by_time.items()}
    if language == "cqels":
        before = [set(), *solutions.values()]
        solutions = {now: current - last for (now, current), last in zip(solutions.items(), before, strict=False)}
    return ordered((now, solution) for now, current in solutions.items() for solution in current)


@pytest.mark.sampled(4)
@examples(30)
@pytest.mark.parametrize("language", QUERIES)
def test_a_query_has_the_solutions_of_the_closure_of_its_window(language: str, many: int) -> None:
    def law(schema: list[tree.Axiom], events: list[Event], pattern: str, planner: str) -> None:
        expected = expected_answers(schema, events, language, pattern)
        system = compiled(schema, QUERIES[language].format(E=E, pattern=pattern), language)
        assert answers(squall.plan(system, planner), events) == expected

    hold(
        law, many, schema=ontologies, events=streams, pattern=st.sampled_from([*PATTERNS]),
        planner=st.sampled_from(PLANNERS),
    )  # fmt: skip


@pytest.mark.parametrize("language", QUERIES)
def test_what_follows_from_axioms_alone_has_always_held(language: str) -> None:
    x, y, _ = INDIVIDUALS
    schema = [tree.SubClassOf(tree.OneOf((x,)), tree.Class(CLASS_A))]
    events = [Event(3, (Triple(y, TYPE, CLASS_A),), S), Event(9, (Triple(y, TYPE, CLASS_A),), T)]
    plan = squall.plan(compiled(schema, QUERIES[language].format(E=E, pattern="?x a :A"), language))
    all_solutions = [(ALWAYS, x), (4, x), (4, y), (6, x), (6, y), (8, x)]
    expected = [(ALWAYS, x), (4, y)] if language == "cqels" else all_solutions
    assert answers(plan, events) == [(now, f"?x={name}") for now, name in expected]


@pytest.mark.more
@examples(20)
def test_each_window_has_a_closure_of_its_own(many: int) -> None:
    def law(schema: list[tree.Axiom], events: list[Event]) -> None:
        try:
            times = instants(events, {S: 4, T: 8})
            first, second = (closures(schema, events, times, stream, size) for stream, size in ((S, 4), (T, 8)))
        except Contradiction:
            return
        expected = ordered(
            (now, f"?x={x} ?y={y}")
            for now in first
            for x, y in rows(second[now], P)
            if x in members(first[now], CLASS_A)
        )
        assert answers(squall.plan(compiled(schema, TWO_WINDOWS, "rspql")), events) == expected

    hold(law, many, schema=ontologies, events=streams)


@pytest.mark.parametrize(
    ("builder", "number"),
    [
        ("in memory", 40),
        pytest.param("beam", 2, marks=[pytest.mark.beam, pytest.mark.more]),
        pytest.param("spark", 2, marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", 20, marks=[pytest.mark.beam, pytest.mark.slow]),
        pytest.param("spark", 20, marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_engines_agree(builder: str, number: int) -> None:
    def law(schema: list[tree.Axiom], events: list[Event], language: str, pattern: str, seed: int) -> None:
        text = QUERIES[language].format(E=E, pattern=pattern)
        plan = squall.plan(compiled(schema, text, language))
        assert ordered((out.time, str(out.fact)) for out in outputs_on(builder, plan, events, seed)) == answers(
            plan, events
        )

    hold(
        law, number, schema=ontologies, events=streams, language=st.sampled_from([*QUERIES]),
        pattern=st.sampled_from([*PATTERNS]), seed=st.integers(0, 1000),
    )  # fmt: skip
