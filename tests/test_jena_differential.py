"""Generated Jena rules and SPARQL queries over small graphs: both planners agree with Apache Jena itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import squall
from squall.rdf import ALWAYS, Event, Term, Triple
from tests.jena_oracle import Jena, missing
from tests.laws import examples_of
from tests.test_sparql_differential import NODES, PREDICATES, Query, _resolved, graphs, groups, ours

pytestmark = [pytest.mark.more, pytest.mark.skipif(bool(missing()), reason=missing())]
checks = list(HealthCheck)


@pytest.fixture(scope="module")
def jena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jena]:
    oracle = Jena(tmp_path_factory.mktemp("jena") / "resources")
    yield oracle
    oracle.close()


# Queries

HEADS = (
    ("SELECT *", ""),
    ("SELECT DISTINCT ?x ?y", ""),
    ("SELECT ?y (STR(?x) AS ?s) (?y + 1 AS ?t)", ""),
    ("SELECT ?x (COUNT(*) AS ?n) (COUNT(DISTINCT ?y) AS ?m)", "GROUP BY ?x"),
    ("ASK", ""),
)
queries = st.builds(lambda ends, group: Query(ends[0], group, ends[1]), st.sampled_from(HEADS), groups())


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@settings(max_examples=examples_of(150), deadline=None, suppress_health_check=checks)
@given(query=queries, graph=graphs)
def test_queries(jena: Jena, planner: str, query: Query, graph: list[tuple[str, str, str]]) -> None:
    data = [Triple(*map(_resolved, triple)) for triple in dict.fromkeys(graph)]
    assert ours(query.text(), data, planner) == _solutions(jena.query(query.text(), data))


def _solutions(rows: Sequence[Sequence[str]]) -> Counter[object]:
    names, *solutions = rows
    if list(names) in (["true"], ["false"]):
        return Counter([names[0] == "true"])
    return Counter(
        frozenset((name, Term(cell)) for name, cell in zip(names, row, strict=True) if cell) for row in solutions
    )


# Rules

VARIABLES = ("?x", "?y", "?z")
slots = st.sampled_from((*VARIABLES, *VARIABLES, *NODES))
objects = st.one_of(slots, st.sampled_from(("1", "'x'")))
verbs = st.sampled_from((*PREDICATES, *PREDICATES, ":r", "?p"))


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Draws a forward rule whose head has variables of its patterns only."""
    patterns = draw(st.lists(st.tuples(slots, verbs, objects), min_size=1, max_size=3))
    bound = sorted({slot for pattern in patterns for slot in pattern if slot.startswith("?")})
    terms = st.sampled_from((*bound, *bound, *NODES))
    heads = draw(st.lists(st.tuples(terms, st.sampled_from((":p", ":r", ":s")), terms), min_size=1, max_size=2))
    body = [f"({' '.join(pattern)})" for pattern in patterns]
    if draw(st.booleans()):
        name = draw(st.sampled_from(("equal", "notEqual")))
        body.append(f"{name}({draw(terms)}, {draw(terms)})")
    if draw(st.booleans()):
        body.append(f"{draw(st.sampled_from(('isLiteral', 'notLiteral')))}({draw(terms)})")
    return f"[{' '.join(body)} -> {' '.join(f'({chr(32).join(head)})' for head in heads)}]"


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@settings(max_examples=examples_of(150), deadline=None, suppress_health_check=checks)
@given(program=st.lists(rules(), min_size=1, max_size=4), graph=graphs)
def test_rules(jena: Jena, planner: str, program: list[str], graph: list[tuple[str, str, str]]) -> None:
    """Facts with a literal as subject are not compared: they are no RDF, and no answers of ours."""
    text = "@prefix : <http://example.org/> .\n" + "\n".join(program)
    data = [Triple(*map(_resolved, triple)) for triple in dict.fromkeys(graph)]
    plan = squall.plan(squall.compile(text, lexer="jena", profile="jena"), planner)
    derived = {out.fact for out in squall.run(plan, [], static=[Event(ALWAYS, tuple(data))])}
    expected = {Triple(*map(Term, row)) for row in jena.rules(text, data) if not row[0].startswith('"')}
    assert {fact for fact in derived if isinstance(fact, Triple)} | set(data) == expected
