"""Queries see the derived facts that are RDF triples; rules see all."""

from __future__ import annotations

from pathlib import Path

import pytest

import squall
from squall.rdf import Event, Solution
from squall.testing import assert_as_oracle, static, stream
from tests import in_memory

RULES = """
@prefix : <http://example.org/>.
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>.
[range: (?x :says ?text) -> (?text rdf:type :Said)]
[functor: (?x :says ?text) -> (?x :quote quote(?text))]
[inverse: (?x :says ?text) -> (?x ?text :predicate)]
[speaker: (?x :says ?text) (?text rdf:type :Said) -> (?x rdf:type :Speaker)]
[quoted: (?x :quote quote(?text)) -> (?x rdf:type :Quoted)]
"""
EVENTS = '1000 :a :says "hello"\n2000 :b :says :c'
QUERIES = {
    "types": ("SELECT ?x ?type { ?x a ?type }", {"a Speaker", "a Quoted", "b Speaker", "b Quoted", "c Said"}),
    "count": ("SELECT (COUNT(*) AS ?n) { ?x a :Said }", {"0", "1"}),
    "quotes": ("SELECT ?x ?y { ?x :quote ?y }", set()),
    "all": ("SELECT ?x ?p { ?x ?p :predicate }", {"b c"}),
    "absent": ("SELECT ?x { ?x :says ?y FILTER NOT EXISTS { ?y a :Said } }", {"a"}),
    "path": ("SELECT ?x { ?x :says/a :Said }", {"b"}),
}


@pytest.mark.fault("S9")
@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        "in memory",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
    ],
)
@pytest.mark.parametrize("name", QUERIES)
def test_queries_do_not_find_triples_that_are_none_in_rdf(builder: str, name: str, tmp_path: Path) -> None:
    """S9 of the reported faults: a literal was an instance of a class."""
    text, expected = QUERIES[name]
    (tmp_path / "rules.jena").write_text(RULES)
    (tmp_path / f"{name}.rq").write_text(f"PREFIX : <http://example.org/>\n{text}")
    system = squall.compile(tmp_path / "rules.jena", tmp_path / f"{name}.rq")
    for events, facts in ((stream(EVENTS), []), ([], static(EVENTS.replace("1000 ", "").replace("2000 ", "")))):
        plan = squall.plan(system)
        if builder == "in memory":
            outputs = in_memory.run(plan, [events], facts)
        else:
            outputs = list(squall.run(plan, events, builder, static=facts))
        assert_as_oracle(system, outputs, events, facts)
        answers = {_shown(output.fact) for output in outputs if output.rule == name}
        assert answers == expected if events else answers <= expected


def test_many_facts_at_once_are_checked_as_well(tmp_path: Path) -> None:
    (tmp_path / "all.rq").write_text("SELECT ?x { ?x a <http://example.org/Said> }")
    (tmp_path / "rules.jena").write_text(RULES)
    lines = [f':a{number} :says "text {number}"\n:a{number} :says :b{number % 7}' for number in range(600)]
    (facts,) = [static("\n".join(lines))]
    system = squall.compile(tmp_path / "rules.jena", tmp_path / "all.rq")
    together = [Event(1, tuple(fact for event in facts for fact in event.facts))]
    outputs = [output for output in squall.run(squall.plan(system), together) if output.rule == "all"]
    assert {_shown(output.fact) for output in outputs} == {f"b{number}" for number in range(7)}


def _shown(answer: object) -> str:
    assert isinstance(answer, Solution)
    return " ".join(
        value[1:-1].rpartition("/")[2] if value[0] == "<" else value.split('"')[1] for value in answer.values if value
    )
