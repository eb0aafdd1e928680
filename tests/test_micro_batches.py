"""Micro-batches of a distributed builder on generated programs and streams, without Spark (tests/in_memory.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import assume

import squall
from squall.builders.distributed.exec import micro_batch, output_stage
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io.engine import NodeMetrics
from squall.builders.distributed.plan import stages
from squall.builders.distributed.plan.physical_plan import PhysicalPlan, jobs_of, physical_plan
from squall.builders.distributed.plan.strategy import BatchLimits, strategy_of
from squall.builders.runtime.operators import make_output_operator
from squall.builders.runtime.operators.output import OutputOperator, SinkOperator
from squall.contracts import Options
from squall.model.windows import CountWindow, FirstTriple, HoppingWindow, SlidingWindow
from squall.plan import Node, Plan
from squall.plan import operators as ops
from squall.plan.node_metrics import PlanMetrics
from squall.rdf import Event
from squall.testing import assert_as_oracle, stream
from squall.testing.strategies import ALL
from tests import in_memory
from tests.laws import examples, hold
from tests.trials import APART, Trial, trials

WAYS = [(0, -1), (1_000_000, -1), (1_000_000, 1_000_000)]
"""The limits of rows and of bytes up to which one task processes a batch."""


@examples(40)
@pytest.mark.parametrize(
    ("max_single_task_rows", "max_single_task_bytes"), WAYS, ids=["distributed", "in one task", "straight"]
)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_any_program_in_any_batches_agrees_with_the_oracle(
    planner: str, max_single_task_rows: int, max_single_task_bytes: int, many: int
) -> None:
    def law(trial: Trial) -> None:
        plan = squall.plan(trial.system, planner)
        assume(strategy_of(plan).is_staged)
        trial.outputs_as_oracle(
            plan, max_single_task_rows=max_single_task_rows, max_single_task_bytes=max_single_task_bytes
        )

    hold(law, many, trial=trials(APART))


def without_fused_output(physical: PhysicalPlan) -> PhysicalPlan:
    """The output is a step of its own."""
    return replace(physical, fused_output_stages=(), jobs=jobs_of(physical.plan, physical.stages, ()))


@pytest.mark.more
@examples(40)
def test_outputs_do_not_depend_on_what_runs_as_one(many: int) -> None:
    """Each join is an operator of its own, and the output a step of its own."""

    def law(trial: Trial) -> None:
        plan = squall.plan(trial.system)
        physical = physical_plan(plan)
        with patch.object(stages, "with_multiway_joins", lambda plan, visible: plan):
            assume(physical.strategy.is_staged and without_fused_output(physical_plan(plan)) != physical)
            trial.outputs_as_oracle(plan, change=without_fused_output)

    hold(law, many, trial=trials(APART))


@examples(40)
def test_outputs_do_not_depend_on_caches_and_failures(many: int) -> None:
    """Any worker runs a task; tasks fail at any point and are retried; workers lose their caches; the driver restarts;
    one task or many process a batch."""

    def law(trial: Trial) -> None:
        draw = Random(trial.seed)
        trial.outputs_as_oracle(
            squall.plan(trial.system),
            workers=in_memory.any_workers(draw),
            max_single_task_rows=draw.choice([0, 10, 1_000_000]),
            max_single_task_bytes=draw.choice([-1, 2, 1_000_000]),
        )

    hold(law, many, trial=trials(APART))


@pytest.mark.more
@examples(40)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_any_program_that_depends_on_the_order_of_facts_is_run_by_one_task(planner: str, many: int) -> None:
    def law(trial: Trial) -> None:
        plan = squall.plan(trial.system, planner)
        assume(not strategy_of(plan).is_staged)
        draw = Random(trial.seed)
        trial.outputs_as_oracle(
            plan,
            workers=in_memory.any_workers(draw) if draw.random() < 0.7 else None,
            max_single_task_bytes=draw.choice([-1, 3, 1_000_000]),
        )

    hold(law, many, trial=trials(ALL))


def test_a_program_of_one_stage_resumes_in_any_way() -> None:
    """A single task processes batches of one event, and several tasks those of two."""
    system = squall.compile(
        "@prefix : <http://example.org/>.\n[(?x :p ?y) -> (?x :q ?y)]", lexer="jena", window=SlidingWindow(9)
    )
    plan = squall.plan(system)
    assert not physical_plan(plan).stages
    events = stream("\n".join(f"{time} :a :p :b{time % 4}" for time in range(12)))
    batches = [events[:1], events[1:3], events[3:4], events[4:6], events[6:7], events[7:8], events[8:]]
    workers = in_memory.Workers(Random(1), failure_rate=0)
    outputs = in_memory.run(
        plan, batches, max_single_task_rows=1000, max_single_task_bytes=1, workers=workers, compaction_interval=4
    )
    assert_as_oracle(system, outputs, events)


@pytest.mark.parametrize(
    ("max_single_task_rows", "max_single_task_bytes"), WAYS, ids=["distributed", "in one task", "straight"]
)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_event_without_facts_moves_the_windows_of_a_stream(
    count: int, max_single_task_rows: int, max_single_task_bytes: int
) -> None:
    rules = "@prefix : <http://example.org/>.\n[-> (:a :p :b)]\n[(?x :p ?y) -> (?y :p ?x)]"
    window = HoppingWindow(2, 1, FirstTriple(1))
    system = replace(squall.compile(rules, lexer="jena", window=window), output="rstream")
    plan = squall.plan(system)
    events = [Event(0, ()), *stream("1 :c :p :d"), Event(2, ()), Event(4, ())]
    batches = in_memory.cut(events, [1, 3][: count - 1])
    outputs = in_memory.run(plan, batches, (), max_single_task_rows, max_single_task_bytes)
    assert_as_oracle(system, outputs, events)
    assert max(output.time for output in outputs) == 7


@pytest.mark.parametrize(
    ("max_single_task_rows", "max_single_task_bytes"), WAYS, ids=["distributed", "in one task", "straight"]
)
def test_a_query_resumes_that_had_waited_for_complete_instants(
    max_single_task_rows: int, max_single_task_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version before had an output of complete instants for each query, and buffered the last instant."""
    query = "PREFIX : <http://example.org/> SELECT ?x { { SELECT DISTINCT ?x { ?x :p ?y } } ?x :q ?z }"
    system = squall.compile(query, lexer="sparql", window=SlidingWindow(4))
    events = stream("0 :a :q :b\n1 :a :p :b\n1 :a :q :c\n2 :a :p :c\n3 :c :q :c\n3 :c :p :a\n9 :a :p :b\n9 :a :q :b")
    starts = 0

    def make_operator(node: Node, op: ops.Sink, plan: Plan) -> SinkOperator:
        return OutputOperator(op) if starts < 5 else make_output_operator(node, op, plan)

    def measures() -> bool:
        nonlocal starts
        starts += 1
        return False

    def needs_complete_instants(program: Program) -> bool:
        return starts < 5 or program.physical.needs_complete_instants

    monkeypatch.setattr(output_stage, "make_output_operator", make_operator)
    monkeypatch.setattr(Program, "needs_complete_instants", property(needs_complete_instants))
    outputs = in_memory.run(
        squall.plan(system), [[event] for event in events], (), max_single_task_rows, max_single_task_bytes,
        measures=measures, compaction_interval=100,
    )  # fmt: skip
    assert_as_oracle(system, outputs, events)


def test_valid_rows_outlive_compaction() -> None:
    rule = "@prefix : <http://example.org/>.\n[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]"
    system = squall.compile(rule, lexer="jena", window=SlidingWindow(4))
    events = stream("1 :a :p :b\n2 :c :p :d\n4 :b :p :e\n5 :e :p :f\n6 :d :p :g")
    outputs = in_memory.run(squall.plan(system), [[event] for event in events], compaction_interval=1)
    assert_as_oracle(system, outputs, events)
    assert [out.time for out in outputs] == [4, 5]


def test_time_passes_in_the_first_round_only(tmp_path: Path) -> None:
    """A stage may count what holds at each instant, and need iterations for another node."""
    (tmp_path / "reach.jena").write_text("""
    @prefix : <http://example.org/>.
    [(?a :edge ?b) -> (?a :path ?b)]
    [(?a :path ?b) (?b :edge ?c) (?c :good ?z) -> (?a :path ?c)]
    """)
    (tmp_path / "count.rq").write_text("PREFIX : <http://example.org/> SELECT (COUNT(?b) AS ?n) { ?a :edge ?b }")
    system = replace(squall.compile(tmp_path / "reach.jena", tmp_path / "count.rq"), output="dstream")
    plan = squall.plan(system)
    assert any(level.recursive and level.has_event_time_nodes for level in physical_plan(plan).stages)
    good = stream("".join(f"0 :{node} :good :yes\n" for node in "bcde"))
    edges = stream("1 :a :edge :b\n1 :b :edge :c\n1 :c :edge :d\n1 :d :edge :e\n2 :e :edge :a\n3 :x :edge :y")
    outputs = in_memory.run(plan, [[*good, *edges[:4]], edges[4:5], edges[5:]])
    assert_as_oracle(system, outputs, [*good, *edges])


@pytest.mark.parametrize(
    ("max_single_task_rows", "max_single_task_bytes"), WAYS, ids=["distributed", "in one task", "straight"]
)
@pytest.mark.parametrize("window", [SlidingWindow(100), CountWindow(100)], ids=str)
def test_nodes_are_measured_as_in_process(
    max_single_task_rows: int, max_single_task_bytes: int, window: SlidingWindow | CountWindow
) -> None:
    rules = """
    @prefix : <http://example.org/>.
    [(?a :edge ?b) -> (?a :path ?b)]
    [(?a :path ?b) (?b :edge ?c) (?c :good ?z) -> (?a :path ?c)]
    """
    plan = squall.plan(squall.compile(rules, lexer="jena", window=window))
    good = stream("".join(f"0 :{node} :good :yes\n" for node in "bcde"))
    events = [*good, *stream("1 :a :edge :b\n2 :b :edge :c\n2 :c :edge :d\n3 :d :edge :e\n4 :e :edge :e")]
    node_metrics = NodeMetrics(plan)
    in_memory.run(
        plan,
        [events[:6], events[6:]],
        max_single_task_rows=max_single_task_rows,
        max_single_task_bytes=max_single_task_bytes,
        node_metrics=node_metrics,
    )
    job = squall.build(plan, options=Options(measure=True))
    list(job.run([events[:6], events[6:]]))
    figures: PlanMetrics = job.node_metrics()  # type: ignore[attr-defined]
    result = node_metrics.by_node()
    assert {id: figure.rows for id, figure in result.items()} == {
        id: item.rows for id, item in figures.items() if item.rows
    }
    assert {id for id, figure in result.items() if figure.seconds} <= {
        id for id, item in figures.items() if item.seconds
    }
    assert any(figure.seconds for figure in result.values())


@pytest.mark.parametrize("max_cached_rows", [1_000_000, 0])
@pytest.mark.parametrize("window", ["RANGE 100ms", "RANGE 100ms STEP 5ms"])
def test_no_worker_reads_anything_twice_that_it_can_hold(window: str, max_cached_rows: int) -> None:
    rule = "@prefix : <http://example.org/>.\n[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]"
    plan = squall.plan(squall.compile(rule, lexer="jena", window=window))
    events = stream("".join(f"{time} :n{time} :p :n{time + 1}\n" for time in range(80)))
    workers = in_memory.Workers(Random(1), max_cached_rows, failure_rate=0)
    outputs = in_memory.run(plan, [events[at : at + 8] for at in range(0, 80, 8)], workers=workers)
    assert len(outputs) == 79
    assert workers.reads, "of what others have added"
    assert (len(set(workers.reads)) == len(workers.reads)) is (max_cached_rows > 0)


@pytest.mark.more
@pytest.mark.sampled(2)
@pytest.mark.parametrize("max_single_task_bytes", [-1, 1_000_000])
def test_the_single_task_caches_its_state(max_single_task_bytes: int) -> None:
    update = (
        "DELETE { ?x <urn:last> ?old } INSERT { ?x <urn:last> ?y } WHERE { ?x :p ?y OPTIONAL { ?x <urn:last> ?old } }"
    )
    system = squall.compile(f"PREFIX : <http://example.org/>\n{update}", lexer="sparql", window="RANGE 100ms")
    plan = squall.plan(system)
    events = stream("".join(f"{time} :n{time % 7} :p :n{time + 1}\n" for time in range(80)))
    batches = [events[at : at + 8] for at in range(0, 80, 8)]
    workers = in_memory.Workers(Random(1), failure_rate=0)
    workers.caches = workers.caches[:1]
    assert_as_oracle(
        system,
        in_memory.run(
            plan, batches, max_single_task_bytes=max_single_task_bytes, workers=workers, compaction_interval=6
        ),
        events,
    )
    read = [(file, shard) for _, file, shard, _ in workers.reads]
    assert read, "the state is written as a whole now and then"
    assert len(read) == len(set(read)) == 2 * 6, "and nothing is read but for that, by either task"


EDGES = "1 :a :p :b\n2 :b :p :c"


def work(rule: str, max_single_task_rows: int = 0, edges: str = EDGES, **options: Any) -> micro_batch.MicroBatches:
    """Processes a batch of edges and returns the job."""
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{rule}", lexer="jena", **options))
    files = in_memory.MemoryFiles()
    job = micro_batch.MicroBatches(
        in_memory.MemoryEngine(files),
        files,
        Program(physical_plan(plan)),
        BatchLimits(max_single_task_rows),
    )
    job.process(in_memory.start(job) + in_memory.read(job, in_memory.in_files(stream(edges))))
    return job


CHAIN = "[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)] [s: (?x :q ?z) (?z :p ?w) -> (?w :r ?x)]"


def test_levels_without_rounds_are_one_job() -> None:
    assert len(work(CHAIN).log.steps) == 1
    assert len(work(CHAIN, window="RANGE 4ms STEP 2ms").log.steps) == 1, "how far time has come goes with the rows"
    assert len(work("[q: (?x :p ?y) -> (?x :q ?y)] [r: (?x :p ?y) (?y :q ?z) -> (?x :q ?z)]").log.steps) > 2


def test_what_ends_within_a_batch_is_not_stored() -> None:
    edges = "".join(f"{time} :n{time} :p :n{time + 1}\n" for time in range(80))
    job = work("[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]", edges=edges, window="RANGE 8ms STEP 8ms")
    assert 0 < job.log.added_state_rows < 80


def test_many_rows_are_one_message() -> None:
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{CHAIN}", lexer="jena"))
    router = Program(physical_plan(plan)).router()
    address = next(iter(router.key_functions))
    deltas = [("<a>", f"<b{number % 3}>", number, number + 1, 1) for number in range(300)]
    rows = list(router.row_batches(address, deltas))
    assert len(rows) <= 3
    assert sorted(delta for row_batch in rows for delta in row_batch.deltas) == sorted(deltas)
    assert {router.bucket(address, delta) == row_batch.bucket for row_batch in rows for delta in row_batch.deltas} == {
        True
    }
    for row_batch in rows:
        message = row_batch.encode()
        assert (message.many, message.start) == (len(row_batch.deltas), max(delta[-3] for delta in row_batch.deltas))


def test_a_message_is_bounded() -> None:
    """Engines hold several messages in memory, of rows and of state."""
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{CHAIN}", lexer="jena"))
    router = Program(physical_plan(plan)).router()
    address = next(iter(router.key_functions))
    deltas = [("<a>", "<b>", number, number + 1, 1) for number in range(105)]
    with patch("squall.builders.distributed.exec.routing.ROWS_PER_BATCH", 20):
        for row_batches in (router.row_batches(address, deltas), router.state_batches(*address, deltas)):
            parts = [row_batch.deltas for row_batch in row_batches]
            assert [len(part) for part in parts] == [20, 20, 20, 20, 20, 5]
            assert [delta for part in parts for delta in part] == deltas
