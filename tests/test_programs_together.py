"""The law of runs with several programs: each query answers as it does alone, under a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall.contracts import Options, Output
from squall.errors import SquallError
from squall.model import System
from squall.model.profiles import PROFILES, R2S_OPERATORS
from squall.rdf import Event, Solution, iri, triple
from squall.testing import assert_as_oracle
from tests import in_memory
from tests.laws import examples, hold

EX = "http://example.org/"
STREAM = f"{EX}in"
TYPE = iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
NODES = [iri(f"{EX}{name}") for name in "abc"]
PROPERTIES = [TYPE, iri(f"{EX}p"), iri(f"{EX}q")]
QUERIES = {
    "solutions.rq": "SELECT ?x ?y { ?x :p ?y }",
    "types.rq": "SELECT ?x { ?x a ?y }",
    "distinct.rq": "SELECT DISTINCT ?x { ?x :p ?y }",
    "count.rq": "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x",
    "optional.rq": "SELECT ?x ?z { ?x :p ?y OPTIONAL { ?y :q ?z } }",
    "negation.rq": "SELECT ?x { ?x :p ?y FILTER NOT EXISTS { ?x :q ?y } }",
    "ordered.rq": "SELECT ?x ?y { ?x :p ?y } ORDER BY ?y ?x LIMIT 2",
    "path.rq": "SELECT ?x ?y { ?x :p+ ?y }",
    "asked.rq": "ASK { ?x :p ?x }",
    "other.rq": "ASK { ?x :q :a }",
    "graph.rq": "CONSTRUCT { ?y :r ?x } { ?x :p ?y }",
    "steps.csparql": "REGISTER QUERY steps AS PREFIX : <http://example.org/> "
    "SELECT ?x ?y FROM STREAM <http://example.org/in> [RANGE 4ms STEP 2ms] { ?x :p ?y }",
    "last.csparql": "REGISTER QUERY last AS PREFIX : <http://example.org/> "
    "ASK FROM STREAM <http://example.org/in> [RANGE 3ms STEP 3ms] { ?x :q ?y }",
}  # fmt: skip
RULES = "@prefix : <http://example.org/> .\n[inverse: (?x :q ?y) -> (?y :p ?x)]"


def write(folder: Path, names: Sequence[str]) -> list[Path]:
    """Writes programs, and returns their paths."""
    paths = [folder / name for name in names]
    for path in paths:
        text = QUERIES[path.name]
        path.write_text(text if path.suffix == ".csparql" else f"PREFIX : <{EX}>\n{text}")
    return paths


def answers(outputs: Sequence[Output], name: str) -> Counter[tuple[Any, int]]:
    return Counter((output.fact, output.time) for output in outputs if output.rule == name)


def run(system: System, events: Sequence[Event], builder: str, planner: str = "rete") -> list[Output]:
    plan = squall.plan(system, planner)
    if builder == "in memory":
        return in_memory.run(plan, [events])
    return list(squall.run(plan, list(events), builder, options=Options()))


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    times = sorted(draw(st.lists(st.integers(1, 12), min_size=2, max_size=8)))
    facts = st.lists(
        st.builds(triple, st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from(NODES)),
        min_size=1,
        max_size=3,
        unique=True,
    )
    return [Event(time, tuple(draw(facts)), STREAM) for time in times]


OPTIONS = st.fixed_dictionaries(
    {
        "profile": st.sampled_from([profile.name for profile in PROFILES]),
        "output": st.sampled_from([None, *R2S_OPERATORS]),
        "report": st.sampled_from([None, "close", "change", "nonempty", "periodic:3ms"]),
        "window": st.sampled_from(["LANDMARK", "RANGE 3ms", "RANGE 4ms STEP 2ms", "TRIPLES 3"]),
        "rules": st.sampled_from([(), ("rhodf",)]),
    }
)


@examples(60)
def test_each_query_answers_as_alone(many: int, tmp_path: Path) -> None:
    def law(names: list[str], options: dict[str, Any], has_rules: bool, builder: str, events: list[Event]) -> None:
        rules = tmp_path / "inverse.jena"
        rules.write_text(RULES)
        rule_programs = [rules] if has_rules else []
        paths = write(tmp_path, names)
        together = run(squall.compile(*rule_programs, *paths, **options), events, builder)
        for path in paths:
            alone = run(squall.compile(*rule_programs, path, **options), events, builder, "greedy")
            assert answers(together, path.stem) == answers(alone, path.stem), path.name

    hold(
        law,
        many,
        names=st.lists(st.sampled_from(sorted(QUERIES)), min_size=2, max_size=4, unique=True),
        options=OPTIONS,
        has_rules=st.booleans(),
        builder=st.sampled_from(["iterator", "in memory"]),
        events=streams(),
    )


@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        "in memory",
        pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.more)),
        pytest.param("beam", marks=pytest.mark.beam),
    ],
)
def test_every_builder_tells_all_queries_apart(builder: str, tmp_path: Path) -> None:
    facts = [triple(NODES[0], PROPERTIES[1], NODES[0]), triple(NODES[1], PROPERTIES[2], NODES[0])]
    events = [Event(time, (fact,), STREAM) for time, fact in enumerate(facts, 1)]
    paths = write(tmp_path, [name for name in QUERIES if name.endswith(".rq")])
    options: dict[str, Any] = {"window": "RANGE 5ms", "output": "dstream", "rules": ("rhodf",)}
    together = run(squall.compile(*paths, **options), events, builder)
    for path in paths:
        alone = run(squall.compile(path, **options), events, "iterator")
        assert answers(together, path.stem) == answers(alone, path.stem), path.name
    assert {output.rule for output in together} >= {"solutions", "asked", "other", "count"}


@pytest.mark.fault("W1")
def test_output_and_report_reach_queries_beside_rule_sets(tmp_path: Path) -> None:
    """W1 of the reported faults: the options were ignored beside a second program."""
    (path,) = write(tmp_path, ["types.rq"])
    events = [Event(1000, (triple(NODES[0], TYPE, NODES[1]),)), Event(100_000, (triple(*NODES),))]
    for rules in ((), ("rhodf",)):
        system = squall.compile(path, rules=rules, window="RANGE 10s", output="dstream")
        assert [output.time for output in run(system, events, "iterator")] == [11_000]
        system = squall.compile(path, rules=rules, window="RANGE 10s", report="periodic:5s")
        assert [output.time for output in run(system, events, "iterator")] == [5000]
        assert_as_oracle(system, run(system, events, "iterator"), events)


@pytest.mark.fault("S8")
def test_queries_are_named_by_their_files(tmp_path: Path) -> None:
    """S8 of the reported faults: all queries had the name `query`."""
    paths = write(tmp_path, ["asked.rq", "other.rq", "solutions.rq"])
    (tmp_path / "more").mkdir()
    copies = write(tmp_path / "more", ["other.rq"])
    (tmp_path / "two.ru").write_text(
        f"PREFIX : <{EX}> INSERT {{ ?y :r ?x }} WHERE {{ ?x :q ?y }} ; INSERT {{ ?y :s ?x }} WHERE {{ ?x :q ?y }}"
    )
    system = squall.compile(*paths, *copies, tmp_path / "two.ru")
    events = [Event(1, (triple(NODES[1], PROPERTIES[2], NODES[0]), triple(NODES[0], PROPERTIES[1], NODES[0])))]
    names = {output.rule for output in run(system, events, "iterator")}
    assert names == {"asked", "other", "other-2", "solutions", "two-1", "two-2"}


def test_a_name_that_is_used_twice_is_refused(tmp_path: Path) -> None:
    query = "REGISTER QUERY hot AS SELECT ?x { ?x ?y ?z }"
    for name in ("a.csparql", "b.csparql"):
        (tmp_path / name).write_text(query)
    (tmp_path / "c.jena").write_text("[hot: (?x ?y ?z) -> (?z ?y ?x)]")
    with pytest.raises(SquallError, match=r"(?s)b.csparql:1:1.* the same name as another query: `hot`.*rename"):
        squall.compile(tmp_path / "a.csparql", tmp_path / "b.csparql")
    with pytest.raises(SquallError, match=r"(?s)a.csparql:1:1.* the same name as a rule: `hot`"):
        squall.compile(tmp_path / "a.csparql", tmp_path / "c.jena")


def test_a_query_gives_way_to_the_name_of_a_rule_and_of_a_registered_query(tmp_path: Path) -> None:
    for name in ("hot.rq", "warm.rq"):
        (tmp_path / name).write_text("SELECT ?x { ?x ?y ?z }")
    (tmp_path / "c.jena").write_text("[hot: (?x ?y ?z) -> (?z ?y ?x)]")
    (tmp_path / "d.csparql").write_text("REGISTER QUERY warm AS SELECT ?x { ?x ?y ?z }")
    system = squall.compile(*(tmp_path / name for name in ("hot.rq", "warm.rq", "c.jena", "d.csparql")))
    outputs = run(system, [Event(1, (triple(*NODES),))], "iterator")
    assert {output.rule for output in outputs} == {"hot", "hot-2", "warm", "warm-2"}


@pytest.mark.fault("S10")
def test_labels_of_blank_nodes_are_local_to_an_operation(tmp_path: Path) -> None:
    """S10 of the reported faults: `_:b` of two requests was one node."""
    for name, predicate in (("a.ru", "p"), ("b.ru", "q")):
        (tmp_path / name).write_text(f"PREFIX : <{EX}> INSERT DATA {{ _:b :{predicate} :a . :c :has _:b }}")
    both = "INSERT DATA { _:b :r :a } ; INSERT DATA { _:c :r :b }"
    (tmp_path / "c.ru").write_text(f"PREFIX : <{EX}> {both}")
    (tmp_path / "all.rq").write_text(f"PREFIX : <{EX}> SELECT ?x ?y {{ ?x ?p ?y . :c :has ?x }}")
    system = squall.compile(*(tmp_path / name for name in ("a.ru", "b.ru", "c.ru", "all.rq")))
    solutions = [output.fact for output in run(system, [], "iterator") if isinstance(output.fact, Solution)]
    assert len({solution.values[0] for solution in solutions}) == len(solutions) == 2
    assert run(system, [], "iterator") == run(system, [], "iterator")
