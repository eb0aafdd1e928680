"""The backward slice of rule sets: only rules whose facts a program can read are part of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

import squall
from squall import rulesets
from squall.lexers.owl import tree
from squall.model import System, rules
from squall.model.slicing import slice_rules
from squall.rdf import ALWAYS, Event, Solution
from squall.translators.owl import translator
from tests.bench.ontology import measured
from tests.laws import examples, hold
from tests.owl_rdf import triples_of
from tests.test_owl_laws import CLASSES, DECLARATIONS, assertions, axioms

PREFIXES = "Prefix(:=<http://example.org/>)"
ONTOLOGY = f"""{PREFIXES} Ontology(SubClassOf(:Cat :Animal) SubClassOf(:Kitten :Cat) SubClassOf(:Oak :Tree)
    ObjectPropertyDomain(:chases :Cat) ObjectPropertyRange(:grows :Tree) SymmetricObjectProperty(:near)
    IrreflexiveObjectProperty(:chases))"""


def compiled(tmp_path: Path, *queries: str) -> System:
    paths = [tmp_path / f"{number}.rq" for number, _ in enumerate(queries)]
    for path, query in zip(paths, queries, strict=True):
        path.write_text(f"PREFIX : <http://example.org/> {query}")
    (tmp_path / "zoo.ofn").write_text(ONTOLOGY)
    return squall.compile(tmp_path / "zoo.ofn", *paths)


@pytest.mark.parametrize(
    ("queries", "count"),
    [
        (["SELECT * { ?x a :Animal }"], 3),
        (["SELECT * { ?x a :Kitten }"], 0),
        (["SELECT * { ?x a :Tree }"], 2),
        (["SELECT * { ?x a :Tree }", "SELECT * { ?x a :Cat }"], 4),
        (["SELECT * { ?x :near ?y }"], 1),
        (["SELECT * { ?x a ?type }"], 5),
        (["SELECT * { ?x ?p ?y }"], 7),
        (["SELECT * { ?x :near :y FILTER NOT EXISTS { ?x a :Animal } }"], 4),
        (["SELECT * { ?rule <urn:x-squall:violatedBy> ?who }"], 1),
    ],
)
def test_rules_that_no_query_reads_are_left_out(tmp_path: Path, queries: list[str], count: int) -> None:
    assert len(list(rules(compiled(tmp_path, *queries)))) == count + len(queries)


def test_without_another_program_all_rules_remain(tmp_path: Path) -> None:
    (tmp_path / "zoo.ofn").write_text(ONTOLOGY)
    assert len(list(rules(squall.compile(tmp_path / "zoo.ofn")))) == 7


@examples(40)
def test_a_slice_has_the_answers_of_all_rules(many: int) -> None:
    queries = [
        squall.compile(f"SELECT * {{ {body} }}", lexer="sparql")
        for body in (
            f"?x a {CLASSES[0]}",
            f"?x a {CLASSES[1]} ; <http://example.org/p> ?y",
            "?r <urn:x-squall:violatedBy> ?x",
        )
    ]

    def law(schema: list[tree.Axiom], data: list[tree.Axiom], query: System) -> None:
        whole = rulesets.prepared(translator(tree.Ontology("o", axioms=(*DECLARATIONS, *schema))), background=True)
        events = [Event(ALWAYS, tuple(triples_of(data)))]
        answers = [
            {
                out.fact
                for out in squall.run(squall.plan(System(subsystems=(*sets, query))), [], static=events, of=Solution)
            }
            for sets in ((whole,), slice_rules((whole,), (query,)))
        ]
        assert answers[0] == answers[1]

    given = {"schema": st.lists(axioms, min_size=2, max_size=6), "data": st.lists(assertions, min_size=4, max_size=9)}
    hold(law, many, query=st.sampled_from(queries), **given)


@pytest.mark.more
def test_the_benchmark_of_ontologies_has_equal_answers_in_all_ways() -> None:
    figures = measured(1100, 1, ("given", "program", "rhodf"))
    (count,) = {answers for _, answers in figures.values()}
    assert count > 0
