"""Terms that a run creates: blank nodes of templates, BNODE, UUID, STRUUID, RAND and makeTemp, by solution and seed."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.builders.local.checkpoint import CHECKPOINT_FILE
from squall.contracts import Options, Output
from squall.errors import ArgumentError, BuilderError
from squall.plan import Plan
from squall.plan.seeds import FIXED_SEED, with_seed
from squall.rdf import Event, Solution, Triple
from squall.sparql_update import apply_update
from squall.sparql_update.datasets import Dataset
from squall.streams import Sources, open_source
from squall.testing import oracle, static, stream
from tests import in_memory
from tests.conftest import Squall
from tests.laws import PLANNERS

PREFIX = "PREFIX : <http://example.org/>\n"
DATA = ":a :v 1 ; :w 1 ; :p :b , :c . :b :v 1 ; :q 1 . :c :v 2 ; :q 1 ."
EVENTS = "1000 :a :v 1\n2000 :b :v 1\n3000 :a :w 1\n9000 :a :v 1\n9500 :c :v 2"
NODES = ("_:", "<urn:uuid:")


def system_of(text: str, window: str = "LANDMARK", output: str = "istream") -> squall.System:
    lexer = "sparql" if "{" in text else "jena"
    prefix = PREFIX if lexer == "sparql" else "@prefix : <http://example.org/>.\n"
    return squall.compile(prefix + text, lexer=lexer, window=window, output=output)


def outputs_of(text: str, seed: int | None = FIXED_SEED, planner: str = "rete", **options: str) -> list[Output]:
    """Returns the outputs of a program over `EVENTS`."""
    plan = squall.plan(system_of(text, **options), planner)
    return list(squall.run(plan, stream(EVENTS), options=Options(seed=seed)))


def new_terms(outputs: list[Output]) -> list[str]:
    """Returns what was created, once for each output that has it."""
    return [term for output in outputs for term in _terms(output) if term.startswith(NODES)]


def _terms(output: Output) -> set[str]:
    match output.fact:
        case Triple() as triple:
            return {*triple}
        case Solution(values=values):
            return {value for value in values if value is not None}
        case _:
            return set()


def timed(outputs: list[Output]) -> Counter[tuple[int, str]]:
    return Counter((output.time, str(output.fact)) for output in outputs)


# Equal solutions


@pytest.mark.fault("S10")
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("?x :v ?v", 3),
        ("[] :v ?v", 3),
        ("{ SELECT ?v { ?x :v ?v } }", 3),
        ("{ SELECT DISTINCT ?v { ?x :v ?v } }", 2),
        ("{ SELECT ?v { ?x :v ?v } ORDER BY ?v LIMIT 2 }", 2),
        ("{ SELECT (COUNT(*) AS ?v) { ?x :v ?o } GROUP BY ?x }", 3),
        ("{ SELECT (COUNT(*) AS ?v) { ?x :v ?o } GROUP BY ?x LIMIT 2 }", 2),
        ("{ ?x :v ?v } UNION { ?x :w ?v }", 4),
        ("{ { ?x :v ?v } UNION { ?x :v ?v } } UNION { { SELECT ?v { ?x :w ?v } } }", 7),
        ("{ SELECT ?v { { ?x :v ?v } UNION { ?x :v ?v } } }", 6),
        ("VALUES ?v { 1 1 2 }", 3),
        ("VALUES (?v ?u) { (1 1) (1 UNDEF) (1 UNDEF) }", 3),
        ("?x :p/:q ?v", 2),
        ("?x :v|:w ?v", 4),
        ("?x !:p ?v", 6),
        ("?x :p* ?v", 7),
        ("?x :w ?v OPTIONAL { { SELECT ?x { ?x :p ?y } } }", 2),
        ("?x :w ?v OPTIONAL { ?x :p ?y FILTER (RAND() < 2) }", 2),
        ("?x :v ?v MINUS { ?x :w ?v }", 2),
        ("?x :w ?v FILTER EXISTS { { ?x :p ?y } UNION { ?x :v ?v } FILTER (RAND() < 2 && ?v > 0) }", 1),
        ("", 1),
    ],
)
def test_each_solution_of_a_bag_has_terms_of_its_own(pattern: str, count: int) -> None:
    """S10: SPARQL 1.1, section 16.2.1. `squall update` has the same."""
    calls = "(BNODE() AS ?a) (UUID() AS ?b) (STRUUID() AS ?c) (RAND() AS ?d) (BNODE('x') AS ?e) (BNODE('x') AS ?f)"
    select = system_of(f"SELECT {calls} {{ {pattern} }}")
    construct = system_of(f"CONSTRUCT {{ [] :val ?v , 1 }} {{ {pattern} }}")
    facts = static(DATA)
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(select, planner), [], static=facts, options=Options(seed=FIXED_SEED)))
        assert timed(outputs) == Counter((time, str(item)) for time, item, *_ in oracle.outputs(select, [], facts))
        columns = list(
            zip(*(output.fact.values for output in outputs if isinstance(output.fact, Solution)), strict=True)
        )
        assert [len({*column}) for column in columns] == [count] * 6
        assert columns[4] == columns[5]
        assert len({*columns[0], *columns[4]}) == 2 * count
        nodes = new_terms(list(squall.run(squall.plan(construct, planner), [], static=facts)))
        assert len({*nodes}) == count
    before = Dataset(frozenset(fact for event in facts for fact in event.facts if isinstance(fact, Triple)))
    after = apply_update(before, f"{PREFIX} INSERT {{ [] :val 1 }} WHERE {{ {pattern} }}")
    assert len(after.default - before.default) == count


def test_a_construct_with_a_limit_has_nodes_for_the_selected_solutions() -> None:
    query = "CONSTRUCT { [] :val ?v } { ?x :v ?v } ORDER BY DESC(?v) LIMIT 2"
    facts = list(squall.run(squall.plan(system_of(query)), [], static=static(DATA)))
    assert sorted(output.fact.object[:2] for output in facts if isinstance(output.fact, Triple)) == ['"1', '"2']


# Solutions that end, and come back


QUERIES = [
    "CONSTRUCT { _:n :val ?v ; :of _:m } { ?x :v ?v }",
    "CONSTRUCT { [] :val ?v } { { SELECT ?v { ?x :v ?v } } UNION { ?x :w ?v } }",
    "SELECT ?v (UUID() AS ?id) { ?x :v ?v FILTER NOT EXISTS { ?x :w ?v } }",
    "SELECT ?v (UUID() AS ?id) { ?x :v ?v } ORDER BY ?v LIMIT 1",
    "SELECT ?x (COUNT(*) AS ?n) (BNODE() AS ?id) { ?x ?p ?v } GROUP BY ?x HAVING (RAND() >= 0)",
    "SELECT (SUM(RAND()) AS ?n) { { SELECT ?v { ?x :v ?v } } }",
    "SELECT ?x { ?x :v ?v FILTER (RAND() < 0.6) }",
    "SELECT ?x { ?x :v ?v } ORDER BY RAND() LIMIT 1",
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
def test_all_builders_create_the_same(query: str, output: str) -> None:
    system = system_of(query, "RANGE 5s", output)
    events = stream(EVENTS)
    expected = Counter((time, str(item)) for time, item, *_ in oracle.outputs(system, events))
    for planner in PLANNERS:
        plan = squall.plan(system, planner)
        assert timed(list(squall.run(plan, events, options=Options(seed=FIXED_SEED)))) == expected
        by_event = [[event] for event in events]
        assert timed(in_memory.run(plan, by_event)) == timed(in_memory.run(plan, [events])) == expected
        seeded = with_seed(plan, 7)
        assert timed(in_memory.run(seeded, by_event)) == timed(list(squall.run(plan, events, options=Options(seed=7))))


@pytest.mark.parametrize("query", QUERIES[:5])
def test_what_ends_is_what_began(query: str) -> None:
    begun, ended = (
        Counter(new_terms(outputs_of(query, window="RANGE 5s", output=name))) for name in ("istream", "dstream")
    )
    assert begun == ended != Counter()


@pytest.mark.fault("S10")
def test_a_solution_that_comes_back_has_a_new_identifier() -> None:
    """S10. One that continues, since its window still holds it, has the same."""
    query = "SELECT ?x (UUID() AS ?id) { ?x :v ?v }"
    once, anew = (new_terms(outputs_of(query, window=f"RANGE {length}")) for length in ("8s", "5s"))
    assert len({*once}) == len(once) == 4 - 1
    assert len({*anew}) == len(anew) == 4


def test_a_call_behind_filters_has_the_time_since_which_they_hold() -> None:
    pattern = "?x :v ?v BIND (BNODE('x') AS ?first) BIND (UUID() AS ?early) FILTER NOT EXISTS { ?x :w ?v }"
    system = system_of(f"SELECT ?first (BNODE('x') AS ?second) ?early (UUID() AS ?late) {{ {pattern} }}", "RANGE 7s")
    events = stream("1000 :a :v 1\n3000 :a :w 1\n5000 :a :v 1")
    outputs = list(squall.run(squall.plan(system), events))
    first, second, early, late = zip(
        *(out.fact.values for out in outputs if isinstance(out.fact, Solution)), strict=True
    )
    assert [output.time for output in outputs] == [1000, 10000]
    assert first == second
    assert [len({*column}) for column in (first, early, late)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("pattern", "options", "ends"),
    [
        ("?x :v ?v", {}, False),
        ("{ SELECT DISTINCT ?v { ?x :v|:w ?v } } FILTER (?v > 0) BIND (NOW() AS ?now)", {}, False),
        ("?x :v ?v", {"window": "RANGE 5s"}, True),
        ("?x :v ?v", {"window": "TRIPLES 2"}, True),
        ("?x :v ?v", {"windows": {"http://example.org/s": "RANGE 5s"}}, True),
        ("?x :v ?v", {"removals": True}, True),
        ("?x :v ?v FILTER NOT EXISTS { ?x :w ?v }", {}, True),
        ("?x :v ?v MINUS { ?x :w ?v }", {}, True),
        ("?x :v ?v OPTIONAL { ?x :w ?w }", {}, True),
        ("{ SELECT (COUNT(*) AS ?n) { ?x :v ?v } }", {}, True),
        ("{ SELECT ?x { ?x :v ?v } ORDER BY ?v LIMIT 1 }", {}, True),
        ("?x :v ?v FILTER (NOW() < ?v)", {}, True),
        ("?x :v ?v", {"update": "DELETE { ?x :v ?v } WHERE { ?x :w ?v }"}, True),
        ("?x :v ?v", {"update": "INSERT { ?x :w ?v } WHERE { ?x :v ?v }"}, False),
    ],
)
def test_only_where_something_ends_the_time_counts(pattern: str, options: dict[str, Any], ends: bool) -> None:
    texts = [f"{PREFIX}CONSTRUCT {{ [] :val 1 }} {{ {pattern} }}", PREFIX + options.get("update", "")]
    arguments = {name: value for name, value in options.items() if name != "update"}
    system = squall.compile(*texts[: 1 + ("update" in options)], lexer="sparql", **arguments)
    assert any("sparql:since" in repr(node.op) for node in squall.plan(system).nodes) == ends


def test_an_update_acts_for_each_solution_of_a_bag() -> None:
    text = "INSERT { [] :val ?v } WHERE { { SELECT ?v { ?x :v ?v } } }"
    assert len({*new_terms(outputs_of(text, window="RANGE 5s"))}) == 4


# Seeds


PROGRAMS = [
    "SELECT ?x (UUID() AS ?id) { ?x :v ?v }",
    "SELECT (BNODE('x') AS ?id) { ?x :v ?v }",
    "CONSTRUCT { [] :val ?v } { ?x :v ?v }",
    "INSERT { [] :val ?v } WHERE { ?x :v ?v }",
    "[(?x :v ?v) makeTemp(?n) -> (?n :val ?v)]",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_runs_differ_unless_they_have_one_seed(program: str) -> None:
    first, second, other = (new_terms(outputs_of(program, seed)) for seed in (5, 5, 6))
    assert first == second
    drawn, again = (new_terms(outputs_of(program, None)) for _ in range(2))
    assert len({*first, *other, *drawn, *again, *new_terms(outputs_of(program))}) == 5 * len({*first})


@pytest.mark.parametrize("function", ["RAND()", "STRUUID()"])
def test_literals_differ_by_the_seed(function: str) -> None:
    results = [timed(outputs_of(f"SELECT ({function} AS ?n) {{ ?x :v ?v }}", seed)) for seed in (5, 5, 6)]
    assert results[0] == results[1] != results[2]


def test_a_plan_that_creates_nothing_is_run_as_it_is() -> None:
    plan = squall.plan(system_of("SELECT ?x { ?x :v ?v FILTER (?v > 1) }"))
    assert with_seed(plan, 5) is plan


def test_a_seed_changes_no_node_id() -> None:
    plan = squall.plan(system_of(QUERIES[0]))
    seeded = with_seed(plan, 5)
    assert [node.id for node in seeded.nodes] == [node.id for node in plan.nodes]
    assert seeded != plan == with_seed(plan, FIXED_SEED)


@pytest.mark.parametrize("seed", [-1, "1", 1.0, True])
def test_a_seed_is_an_integer(seed: object) -> None:
    with pytest.raises(ArgumentError, match="`seed` is no integer from 0 on"):
        squall.build(squall.plan(system_of(PROGRAMS[0])), options=Options(seed=seed))  # type: ignore[arg-type]


def test_static_data_have_the_same_terms_at_any_time() -> None:
    plan = squall.plan(system_of("SELECT (UUID() AS ?id) { ?x :v ?v }"))
    first, second = (
        timed(list(squall.run(plan, [], static=static(DATA), options=Options(seed=1, now=now)))) for now in (0, 1000)
    )
    assert first == second


# Checkpoints


def resumed(plan: Plan, folder: Path, events: list[Event], seed: int | None = None) -> list[Output]:
    options = Options(checkpoint=folder, seed=seed)
    with closing(squall.build(plan, options=options).run([events])) as outputs:  # type: ignore[type-var]
        return list(outputs)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_run_that_resumes_keeps_its_seed(program: str, tmp_path: Path) -> None:
    plan, events = squall.plan(system_of(program, "RANGE 5s", "dstream")), list(stream(EVENTS))
    first = resumed(plan, tmp_path, events[:3], seed=5)
    later = resumed(plan, tmp_path, events, seed=6)
    assert timed([*first, *later]) == timed(list(squall.run(plan, events, options=Options(seed=5))))


def test_a_drawn_seed_is_in_the_checkpoint(tmp_path: Path) -> None:
    plan, events = squall.plan(system_of(PROGRAMS[0])), list(stream(EVENTS))
    first = resumed(plan, tmp_path, events[:2])
    seed = json.loads((tmp_path / CHECKPOINT_FILE).read_text().partition("\n")[0])["seed"]
    later = resumed(plan, tmp_path, events)
    assert timed([*first, *later]) == timed(list(squall.run(plan, events, options=Options(seed=seed))))
    assert seed != FIXED_SEED


def test_a_checkpoint_without_a_seed_is_damaged(tmp_path: Path) -> None:
    plan, events = squall.plan(system_of(PROGRAMS[-1])), list(stream(EVENTS))
    resumed(plan, tmp_path, events[:2], seed=FIXED_SEED)
    path = tmp_path / CHECKPOINT_FILE
    header, _, log = path.read_text().partition("\n")
    assert '"seed":0' in header
    path.write_text(re.sub(',"seed":0', "", header) + "\n" + log)
    with pytest.raises(BuilderError, match="holds no complete checkpoint"):
        resumed(plan, tmp_path, events)


# Distributed runs


@pytest.mark.more
@pytest.mark.spark
def test_all_workers_of_spark_have_the_seed(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    plan = squall.plan(system_of(QUERIES[1], "RANGE 5s"))
    lines = [f"{event.time} {fact}\n" for event in stream(EVENTS) for fact in event.facts]
    (tmp_path / "in").mkdir()
    outputs: list[Output] = []
    for seed, (first, last) in {5: (0, 3), 6: (3, 5)}.items():
        (tmp_path / "in" / f"{seed}.ntt").write_text("".join(lines[first:last]))
        options = Options(checkpoint=tmp_path / "checkpoint", seed=seed)
        sources = Sources([open_source(str(tmp_path / "in"))])
        outputs += squall.build(plan, "spark", options).run(sources)
    assert timed(outputs) == timed(list(squall.run(plan, stream(EVENTS), options=Options(seed=5))))


@pytest.mark.beam
@pytest.mark.skipif(find_spec("apache_beam") is None, reason="Beam is not installed")
def test_all_workers_of_beam_have_the_seed() -> None:
    plan, options = squall.plan(system_of(QUERIES[1], "RANGE 5s")), Options(seed=5)
    assert timed(list(squall.run(plan, stream(EVENTS), "beam", options=options))) == timed(
        list(squall.run(plan, stream(EVENTS), options=options))
    )


# The command line


def test_the_command_line_has_a_seed(squall: Squall, tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(PREFIX + QUERIES[0])
    (tmp_path / "d.nt").write_text("<http://example.org/a> <http://example.org/v> <http://example.org/b> .\n")
    arguments = ("build", str(tmp_path / "q.rq"), "--static", str(tmp_path / "d.nt"), "--quiet")
    (_, first, _), (_, second, _), (_, other, _) = (squall(*arguments, "--seed", seed) for seed in ("4", "4", "5"))
    (_, drawn, _) = squall(*arguments)
    assert first == second
    assert len({first, other, drawn}) == 3
    assert first.startswith("_:")
    code, _, error = squall(*arguments, "--seed", "-1")
    assert (code, "--seed" in error) == (2, True)
