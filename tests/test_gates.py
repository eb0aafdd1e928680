"""Gates: later steps of patterns over time are evaluated while an earlier one is open, and no answer depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import strategies as st

import squall
from squall import explain
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.operators.gate import OPENERS, ROWS, GateOperator
from squall.contracts import Options, Output
from squall.model import System
from squall.plan import Plan
from squall.plan.gates import gated_inputs, gates_of, keyless_gates_of, without_gates
from squall.plan.node_metrics import NodeMetric
from squall.plan.operators import Gate, Match
from squall.planners import greedy, rete
from squall.planners.passes.gate_steps import gate_steps
from squall.rdf import ALWAYS, FOREVER, Event, Solution, Triple, iri
from squall.testing.check import assert_as_oracle
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs, on_engines
from tests.test_laws import SWEEP_ALWAYS, forget_all
from tests.test_resume import Moving

E = "http://example.org/"
RULES = f"""@prefix : <{E}>.
[(?x :b ?y) (?y :c ?z) -> (?x :near ?z)]
[(?x :near ?y) (?y :near ?z) -> (?x :near ?z)]
[(?x :near ?y) (?x :d ?z) -> (?y :hot ?z)]
"""
JOIN = "{ ?x :b ?y . ?y :c ?z }"


def query(pattern: str, rules: Path | None = None) -> System:
    text = f"PREFIX : <{E}> SELECT * FROM STREAM <urn:s> WHERE {{ {pattern} }}"
    return squall.compile(text, lexer="ctsparql", rules=[] if rules is None else [str(rules)], window="ELEMENT")


def planned(system: System, planner: str, gated: bool = True) -> Plan:
    passes = [step for step in rete.PASSES if gated or step is not gate_steps]
    make = partial(rete.plan, passes=passes) if planner == "rete" else partial(greedy.plan, gates=gated)
    return squall.plan(system, make)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.jena"
    path.write_text(RULES)
    return path


def stream(*facts: str) -> list[Event]:
    """Returns events of "time subject predicate object"; those of one time are one event."""
    triples: dict[int, list[Triple]] = {}
    for fact in facts:
        time, *names = fact.split()
        triples.setdefault(int(time), []).append(Triple(*(iri(E + name) for name in names)))
    return [Event(time, tuple(facts), "urn:s") for time, facts in triples.items()]


def shown(outputs: Iterable[Output]) -> list[tuple[int, str]]:
    return sorted((output.time, str(output.fact)) for output in outputs)


# Where gates are


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        (f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms", {0: 1, 1: 1}),  # the join is on ?y, the pair on ?x
        (f"{{ ?y :a ?w }} SEQ {JOIN} WITHIN 10ms", {0: 0, 1: 2}),  # both matches have ?y
        (f"{{ ?v :a ?w }} SEQ {JOIN} WITHIN 10ms", {0: 2, 1: 0}),  # no variable is shared
        (f"{{ ?x :a ?w }} NOT {JOIN} SEQ {{ ?x :d ?v . ?x :e ?u }} WITHIN 10ms", {0: 1, 1: 3}),
        ("{ ?x :a ?w } SEQ { ?x :b ?y . ?y :c ?z } SEQ { ?z :d ?v . ?z :e ?u } WITHIN 10ms", {0: 1, 1: 3}),
        ("{ ?x :a ?w } SEQ { ?x :b ?y . FILTER NOT EXISTS { ?x :c ?z } . ?x :d ?v } WITHIN 10ms", {0: 0, 1: 2}),
        ("{ ?x :a ?w } SEQ { ?x :b ?y . OPTIONAL { ?x :c ?z } . ?x :d ?v } WITHIN 10ms", {0: 0, 1: 2}),
    ],
)  # fmt: skip
def test_matches_of_later_steps_go_through_gates(planner: str, pattern: str, keys: dict[int, int]) -> None:
    plan = planned(query(pattern), planner)
    gates = [node for node in plan.nodes if isinstance(node.op, Gate)]
    assert all(isinstance(plan.by_id[node.inputs[0].node].op, Match) for node in gates)
    assert Counter(len(node.op.on) for node in gates if isinstance(node.op, Gate)) == Counter(keys)


def test_a_match_that_has_the_key_in_two_columns_waits_for_any_opener() -> None:
    pattern = "{ ?y :a ?w } SEQ { ?x :b ?y . ?y :b ?z } WITHIN 5ms"
    plan = planned(query(pattern), "rete")
    assert [node.op.on for node in plan.nodes if isinstance(node.op, Gate)] == [()]
    events = stream("1 y a w", "3 x b y", "3 y b z", "9 x b y")
    assert [output.time for output in squall.run(plan, events)] == [3]


@pytest.mark.parametrize("planner", PLANNERS)
def test_rules_that_serve_a_later_step_alone_wait(planner: str, rules: Path) -> None:
    pattern = "{ ?y :a ?w } SEQ { ?y :hot ?z } WITHIN 10ms"
    plan = planned(query(pattern, rules), planner)
    gated = {plan.by_id[plan.by_id[id].inputs[0].node].op for id in gates_of(plan)}
    predicates = {op.cells[1] for op in gated if isinstance(op, Match)}
    assert predicates >= {iri(E + "b"), iri(E + "c"), iri(E + "d")}
    few = stream("1 x b y", "1 y c z", "1 x d v", "3 z a o", "5 x b y", "5 y c z", "5 x d v", "90 x b y", "90 y c z")
    job = IteratorJob(plan, Options(measure=True))
    assert len(list(job.run([few]))) == 1
    metrics = job.node_metrics()
    passed = sum(metrics.get(id, NodeMetric(rows=0)).rows or 0 for id in gates_of(plan))
    assert passed == 3, "of eight facts, the three at which the gate is open"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (f"{{ ?x :a ?w }} SEQ {JOIN}", "no WITHIN bounds"),
        ("{ ?x :b ?y . ?y :c ?z }{2} WITHIN 9ms", "iteration"),
        (f"{JOIN} SEQ {{ ?x :b ?y . ?y :c ?z }} WITHIN 9ms", "is read elsewhere, too"),
        ("{ ?x :a ?w } SEQ { ?x :b ?y } WITHIN 9ms", "facts one by one"),
        (f"{{ {{ ?x :a ?w }} SEQ {JOIN} WITHIN 20ms }} NOT {{ ?x :d ?v }} WITHIN 9ms", "an absence comes behind it"),
        (f"{{ ?x :a ?w }} SEQ {{ {JOIN} SEQ {{ ?z :d ?v }} }} WITHIN 9ms", "more than an instant"),
    ],
)  # fmt: skip
def test_explain_says_why_a_step_does_not_wait(pattern: str, reason: str) -> None:
    plan = planned(query(pattern), "rete")
    reasons = [gated.why_not for gated in gated_inputs(plan)]
    assert any(reason in why for why in reasons), reasons
    assert reason in explain.text(plan)


def test_explain_says_which_steps_wait() -> None:
    plan = planned(query(f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms"), "rete")
    (gated,) = gated_inputs(plan)
    text = explain.text(plan)
    assert f"{gated.join}, input 2: gates open with rows of {gated.opener}" in text
    assert "gate, open while a row of input 2 with $1 = $0 holds" in text


def test_stages_have_the_gates_with_a_key_and_say_so() -> None:
    pytest.importorskip("pyspark")
    plan = planned(query(f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms"), "rete")
    (unused,) = keyless_gates_of(plan)
    (used,) = {*gates_of(plan)} - {unused}
    job = squall.build(plan, "spark")
    described = job.describe()  # type: ignore[attr-defined]
    note = f"gates that have no key, or that close a circle of streams, are not used: {unused}"
    assert note in described.splitlines()
    assert f"{used} grouped by" in described
    assert unused not in described.replace(note, "")
    assert job.as_data()["unused_gates"] == [unused]  # type: ignore[attr-defined]
    assert not gates_of(without_gates(plan))
    assert gates_of(without_gates(plan, keyless_gates_of)) == (used,)


SESSIONS = """PREFIX : <http://example.org/>
SELECT ?x (COUNT(*) AS ?n) FROM STREAM <urn:s> [SESSION 3ms BY SUBJECT] WHERE { ?x :a ?w } GROUP BY ?x
"""


def with_sessions(system: System) -> System:
    """Returns a program of which an instant decides the next one, so that one task runs it as a whole."""
    return System(subsystems=(system, squall.compile(SESSIONS, lexer="csparql")))


def matches(outputs: Iterable[Output]) -> list[Output]:
    """Returns the outputs of the pattern over time."""
    return [output for output in outputs if isinstance(output.fact, Solution) and "n" not in output.fact.names]


def test_a_task_that_runs_a_plan_as_a_whole_has_its_gates() -> None:
    plan = planned(with_sessions(query(f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms")), "rete")
    assert len(gates_of(plan)) == 2
    for physical in (physical_plan(plan), physical_plan(plan, in_one_job=True)):
        assert physical.strategy.division == "single task"
        assert gates_of(physical.plan) == gates_of(plan)
        assert not physical.unused_gates
        assert "gate" not in str(physical)


def test_a_pipeline_of_beam_has_the_gates() -> None:
    """Matches are a derived stream, and a plan with one is a single step there."""
    pytest.importorskip("apache_beam")
    plan = planned(query(f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms"), "rete")
    assert "unused_gates" not in squall.build(plan, "beam").as_data()  # type: ignore[attr-defined]
    assert gates_of(physical_plan(plan, in_one_job=True).plan) == gates_of(plan)


def test_no_stage_has_gates_without_a_key() -> None:
    """One task would have all their rows."""
    plan = planned(query(f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms"), "rete")
    physical = physical_plan(plan)
    assert physical.strategy.is_staged
    assert {*gates_of(physical.plan), *physical.unused_gates} == {*gates_of(plan)}
    assert physical.unused_gates == keyless_gates_of(plan) != ()
    assert physical == physical_plan(without_gates(plan, keyless_gates_of)), "jobs may leave them out before"
    assert physical_plan(physical.plan).as_data()["unused_gates"] == list(keyless_gates_of(plan))


# The answer


PATTERNS = (
    f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 4ms",
    f"{{ ?v :a ?w }} EACH SEQ {JOIN} WITHIN 3ms",
    f"{{ ?z :a ?w }} LAST SEQ {JOIN} AFTER 2ms WITHIN 6ms",
    "{ ?x :a ?w } NOT { ?x :d ?v . ?v :e ?u } SEQ { ?x :b ?y } WITHIN 5ms",
    "{ ?x :a ?w } CONTAINING { ?w :d ?v . ?v :e ?u } SEQ { ?x :b ?y } WITHIN 5ms",
    f"{{ ?x :a ?w }} SEQ {JOIN} SEQ {{ ?z :d ?v . ?v :e ?u }} WITHIN 6ms",
    "{ ?x :a ?w } SEQ { ?x :b ?y . FILTER NOT EXISTS { ?y :c ?z } } WITHIN 4ms",
    "{ ?x :a ?w } SEQ { ?x :b ?y . OPTIONAL { ?y :c ?z } } WITHIN 4ms",
    "{ ?x :a ?w } SEQ { { ?x :b ?y } UNION { ?y :c ?x } } WITHIN 4ms",
    "{ ?x :a ?w } SEQ { ?x :b+ ?y } WITHIN 4ms",
    "{ ?x :a ?w } SEQ { SELECT ?x (COUNT(*) AS ?n) { ?x :b ?y } GROUP BY ?x } WITHIN 4ms",
    f"{{ {{ ?x :a ?w }} SEQ {JOIN} WITHIN 4ms }} NOT {{ ?x :e ?v }} WITHIN 2ms",
    f"{{ {{ ?x :a ?w }} NOT {{ ?x :d ?v }} WITHIN 2ms }} SEQ {JOIN} WITHIN 6ms",
    f"{{ ?x :a ?w }} SEQ {{ {JOIN} SEQ {{ ?z :d ?v . ?z :e ?u }} }} WITHIN 6ms",
    f"{{ {{ ?x :a ?w }} AND {{ ?x :d ?v }} }} SEQ {JOIN} WITHIN 6ms",
    "{ ?y :a ?w } SEQ { ?x :b ?y . ?y :b ?z } WITHIN 5ms",
    "{ ?y :a ?w } SEQ { ?x :near ?y . ?y :near ?z } WITHIN 5ms",
    "{ ?y :a ?w } SEQ { ?y :hot ?z } WITHIN 4ms",
    "{ ?w :a ?y } SEQ { ?x :near ?y } SEQ { ?y :hot ?z } WITHIN 6ms",
    "{ ?x :near ?w } SEQ { ?y :hot ?z } WITHIN 4ms",
)  # fmt: skip
NAMES = st.sampled_from([iri(f"{E}n{number}") for number in range(2)])
TRIPLES = st.builds(Triple, NAMES, st.sampled_from([iri(E + letter) for letter in "aaabbccde"]), NAMES)
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.lists(TRIPLES, min_size=1, max_size=4)), min_size=3, max_size=12).map(
    lambda steps: [
        Event(1 + sum(gap for gap, _ in steps[: number + 1]), tuple(facts), "urn:s")
        for number, (_, facts) in enumerate(steps)
    ]
)
STATIC = st.lists(TRIPLES, max_size=2).map(lambda facts: [Event(ALWAYS, tuple(facts), "urn:s")] if facts else [])


def cut(events: Sequence[Event], sizes: Sequence[int]) -> list[Sequence[Event]]:
    batches, first = [], 0
    for size in sizes:
        batches.append(events[first : first + size])
        first += size
    return [batch for batch in (*batches, events[first:]) if batch]


@examples(400)
@pytest.mark.parametrize("planner", PLANNERS)
def test_answers_do_not_depend_on_gates(planner: str, many: int, rules: Path) -> None:
    def law(pattern: str, events: list[Event], static: list[Event], sizes: list[int]) -> Sequence[object]:
        system = query(pattern, rules if "near" in pattern or "hot" in pattern else None)
        plan = planned(system, planner)
        outputs = list(squall.build(plan).run(cut(events, sizes), static=static))
        plain = list(squall.build(planned(system, planner, gated=False)).run([events], static=static))
        assert shown(outputs) == shown(plain)
        assert shown(squall.build(without_gates(plan)).run([events], static=static)) == shown(plain)
        return outputs if gates_of(plan) else ()

    hold_with_outputs(
        law, many, 0.05, pattern=st.sampled_from(PATTERNS), events=EVENTS, static=STATIC,
        sizes=st.lists(st.integers(1, 4), max_size=5),
    )  # fmt: skip


@examples(60)
def test_answers_with_gates_are_those_of_the_oracle(many: int, rules: Path) -> None:
    def law(pattern: str, events: list[Event]) -> Sequence[object]:
        system = query(pattern, rules if "near" in pattern or "hot" in pattern else None)
        outputs = list(squall.run(planned(system, "rete"), events))
        assert_as_oracle(system, outputs, events)
        return outputs

    hold_with_outputs(law, many, 0.05, pattern=st.sampled_from(PATTERNS), events=EVENTS)


@examples(60)
def test_a_run_resumes_with_open_gates(many: int, rules: Path) -> None:
    def law(pattern: str, events: list[Event], compacts: bool, sizes: list[int]) -> Sequence[object]:
        system = query(pattern, rules if "near" in pattern or "hot" in pattern else None)
        plain = squall.run(planned(system, "rete", gated=False), events)
        outputs = list(Moving(planned(system, "rete"), compacts).outputs(cut(events, sizes), ()))
        assert shown(outputs) == shown(plain)
        return outputs

    hold_with_outputs(
        law, many, 0.05, pattern=st.sampled_from(PATTERNS), events=EVENTS, compacts=st.booleans(),
        sizes=st.lists(st.integers(1, 3), max_size=6),
    )  # fmt: skip


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize("planner", PLANNERS)
def test_an_open_gate_is_in_the_state(planner: str, compacts: bool) -> None:
    plan = planned(query(f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms"), planner)
    batches = [[event] for event in stream("1 x a w", "2 o a w", "4 x b y", "4 y c z", "20 x b y", "20 y c z")]
    assert [output.time for output in Moving(plan, compacts).outputs(batches, ())] == [4]


@on_engines
def test_engines_agree(builder: str, number: int, rules: Path) -> None:
    def law(pattern: str, events: list[Event], seed: int) -> Sequence[object]:
        plan = planned(query(pattern, rules if "near" in pattern or "hot" in pattern else None), "rete")
        outputs = list(in_memory.outputs_on(builder, plan, events, seed, ()))
        assert shown(outputs) == shown(squall.run(plan, events))
        return outputs if builder == "in memory" else [law]

    seeds = st.integers(0, 1000)
    hold_with_outputs(law, number, 0.05, pattern=st.sampled_from(PATTERNS), events=EVENTS, seed=seeds)


@examples(30)
def test_a_task_that_runs_a_plan_as_a_whole_agrees(many: int, rules: Path) -> None:
    """Workers fail, batches are cut anyhow, and gates stay open from one to the next."""

    def law(pattern: str, events: list[Event], seed: int) -> Sequence[object]:
        system = with_sessions(query(pattern, rules if "near" in pattern or "hot" in pattern else None))
        plan = planned(system, "rete")
        assert gates_of(physical_plan(plan).plan) == gates_of(plan)
        outputs = list(in_memory.outputs_on("in memory", plan, events, seed, ()))
        assert shown(outputs) == shown(squall.run(planned(system, "rete", gated=False), events))
        return matches(outputs) if gates_of(plan) else ()

    hold_with_outputs(
        law, many, 0.05, pattern=st.sampled_from(PATTERNS), events=EVENTS, seed=st.integers(0, 1000)
    )  # fmt: skip


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_open_gate_is_in_the_checkpoint_of_a_task(planner: str) -> None:
    plan = planned(with_sessions(query(f"{{ ?x :a ?w }} SEQ {JOIN} WITHIN 10ms")), planner)
    events = stream("1 x a w", "2 o a w", "4 x b y", "4 y c z", "20 x b y", "20 y c z")
    for cuts in ([1, 2, 3, 4], [2], [3]):
        outputs = in_memory.run(plan, in_memory.cut(events, cuts), max_single_task_rows=0)
        assert [output.time for output in matches(outputs)] == [4]


@pytest.mark.parametrize("key", ["y", "z"])
def test_an_open_gate_is_in_the_state_of_the_task_that_has_its_rows(key: str) -> None:
    """Openers have their key in another column than the rows of the gate have it."""
    plan = planned(query(f"{{ ?w :a ?{key} }} SEQ {JOIN} WITHIN 90ms"), "rete")
    assert physical_plan(plan).strategy.is_staged
    keys = [f"k{number}" for number in range(9)]
    openers = [f"{number} o{number} a {name}" for number, name in enumerate(keys, 1)]
    pairs = [f"{number} x{number} b {name}" for number, name in enumerate(keys, 20)]
    pairs += [f"{number} {name} c {name}" for number, name in enumerate(keys, 20)]
    events = stream(*openers, *pairs)
    outputs = in_memory.run(plan, in_memory.cut(events, [3, 9, 12]))
    assert len(outputs) == 9
    assert shown(outputs) == shown(squall.run(plan, events))


@examples(20)
def test_no_gate_stays_open(many: int) -> None:
    def law(pattern: str, events: list[Event]) -> Sequence[object]:
        job = IteratorJob(planned(query(pattern), "rete"), Options(), SWEEP_ALWAYS)
        list(job.run([events]))
        forget_all(job)
        assert not {id for id, size in job.dataflow.state().items() if size and id.startswith("gate")}
        return events

    hold_with_outputs(law, many, 0.05, pattern=st.sampled_from(PATTERNS[:3]), events=EVENTS)


# The operator


def test_rows_pass_while_an_opener_of_their_key_has_begun_before() -> None:
    gate = GateOperator(Gate(((0, 1),)))
    gate.apply(OPENERS, [("o", "k", 3, 7, 1), ("p", "k", 5, 9, 1), ("o", "other", 20, 30, 1)])
    rows = [("k", time, time + 1, 1) for time in range(1, 12)]
    gate.apply(ROWS, rows)
    assert gate.advance(11) == rows[3:8], "from the instant behind the begin of the first opener to the end of the last"
    lasting = [("k", ALWAYS, FOREVER, 1), ("k", 11, 13, 1), ("k", 2, 5, 2), ("k", 1, 3, 1), ("x", 4, 5, 1)]
    gate.apply(ROWS, lasting)
    assert gate.advance(11) == lasting[:3], "what holds longer passes, if it may be needed later, or was needed once"
    assert gate.size() == 2
    gate.apply(OPENERS, [("o", "k", 15, 18, 1)])
    gate.apply(ROWS, [("k", time, time + 1, 1) for time in (14, 15, 16, 17, 18)])
    assert [row[1] for row in gate.advance(18)] == [16, 17]
