"""The micro-batches of a distributed builder, on what hypothesis makes up, without Spark (tests/in_memory.py)."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.builders.distributed.exec import micro_batch
from squall.builders.distributed.exec.routing import PhysicalPlan
from squall.builders.distributed.io.engine import NodeMetrics
from squall.builders.distributed.plan import shardability
from squall.builders.distributed.plan.broadcast import broadcast_candidates, choose_broadcast, closure_inputs
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.skew import splittable_inputs
from squall.builders.distributed.plan.stages import partitionings_of, stages_of
from squall.contracts import Options
from squall.model import Construct, Pattern, Source, System, Variable
from squall.model.windows import CountWindow, SlidingWindow
from squall.plan import Plan
from squall.plan.node_metrics import PlanMetrics
from squall.rdf import Event, Term
from squall.testing import assert_as_oracle, stream
from squall.testing.strategies import ALL, event_streams, static_data, systems
from squall.testing.strategies.streams import sources_of
from squall.testing.strategies.vocabulary import LEVELS
from tests import in_memory
from tests.laws import examples, hold
from tests.regrouping import regrouped

APART = ALL - {"delete", "insert"}
"""What is spread over tasks, unless streams are made and answers told whole."""
WAYS = [(0, -1), (1_000_000, -1), (1_000_000, 1_000_000)]
"""Up to how many rows, and of how many events, one task works a batch off."""


def data(features: frozenset[str]) -> dict[str, Any]:
    return {
        "system": systems(features=features),
        "events": event_streams(features=features),
        "facts": static_data(features=features),
        "cuts": st.lists(st.integers(0, 12), max_size=5),
        "compaction_interval": st.sampled_from([1, 2, 100]),
    }


@examples(40)
@pytest.mark.parametrize(("together", "few"), WAYS, ids=["distributed", "in one task", "straight"])
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_any_program_in_any_batches_is_as_the_oracle_says(planner: str, together: int, few: int, many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event], cuts: list[int], compaction_interval: int) -> None:
        plan = squall.plan(system, planner)
        assume(shardability.why_single_task(plan) is None)
        assert_as_oracle(
            system,
            in_memory.run(
                plan, in_memory.cut(events, cuts), facts, together, few, compaction_interval=compaction_interval
            ),
            events,
            facts,
        )

    hold(law, many, **data(APART))


@examples(60)
def test_it_means_the_same_whatever_workers_hold(many: int) -> None:
    """Tasks come to any worker, fail at any point, and are done again; workers forget; the driver starts anew; batches
    are worked off by one task or by many."""

    def law(
        system: System,
        events: list[Event],
        facts: list[Event],
        cuts: list[int],
        compaction_interval: int,
        together: int,
        seed: int,
    ) -> None:
        draw = Random(seed)
        workers = in_memory.Workers(draw, most=draw.choice([0, 3, 1_000_000]))
        few = draw.choice([-1, 2, 1_000_000])
        outputs = in_memory.run(
            squall.plan(system),
            in_memory.cut(events, cuts),
            facts,
            together,
            few,
            workers=workers,
            compaction_interval=compaction_interval,
        )
        assert_as_oracle(system, outputs, events, facts)

    more = {"together": st.sampled_from([0, 10, 1_000_000]), "seed": st.integers(0, 1 << 32)}
    hold(law, many, **data(APART), **more)


@examples(60)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_it_means_the_same_whatever_goes_to_all_tasks(planner: str, many: int) -> None:
    """Any inputs that can be spread, whatever comes there and whenever; with all that may go wrong meanwhile."""

    def law(
        system: System,
        events: list[Event],
        facts: list[Event],
        cuts: list[int],
        compaction_interval: int,
        together: int,
        seed: int,
    ) -> None:
        draw = Random(seed)
        plan = squall.plan(system, planner)
        can_be = broadcast_candidates(plan)
        entries = sorted(frozenset().union(*can_be.values()))
        rows = {entry: draw.randrange(1, 4) for entry in entries}
        streamed = [entry for entry in entries if draw.random() < 0.3]
        spread = choose_broadcast(plan, rows, streamed, draw.choice([3, 1000]), can_be)
        assume(spread)
        assert spread <= can_be.keys()
        workers = in_memory.Workers(draw, most=draw.choice([0, 3, 1_000_000]))
        few = draw.choice([-1, -1, 2, 1_000_000])
        outputs = in_memory.run(
            plan,
            in_memory.cut(events, cuts),
            facts,
            together,
            few,
            workers=workers,
            spread=spread,
            compaction_interval=compaction_interval,
        )
        assert_as_oracle(system, outputs, events, facts)

    more = {"together": st.sampled_from([0, 0, 10, 1_000_000]), "seed": st.integers(0, 1 << 32)}
    hold(law, many, **data(APART), **more)


def any_hot(
    draw: Random, plan: Plan, spread: frozenset[Address], events: list[Event]
) -> dict[Address, tuple[str, ...]]:
    """Some keys, of terms that events have, that are taken to be hot."""
    terms = sorted({term for event in events for fact in event.facts for term in fact if isinstance(term, str)})
    results: dict[Address, tuple[str, ...]] = {}
    for (id, port), columns in splittable_inputs(plan, partitionings_of(plan, spread)).items():
        keys = {"\n".join(draw.choices(terms, k=len(columns))) for _ in range(draw.randrange(4)) if terms}
        results[id, port] = tuple(sorted(keys - {*results.get((id, 1 - port), ())}))
    return {address: keys for address, keys in results.items() if keys}


@examples(80)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_it_means_the_same_whatever_keys_are_hot(planner: str, many: int) -> None:
    """Whichever rows are scattered, and joined with what goes to all tasks for them alone; other inputs may be spread
    as a whole; and all may go wrong meanwhile."""

    def law(
        system: System,
        events: list[Event],
        facts: list[Event],
        cuts: list[int],
        compaction_interval: int,
        together: int,
        seed: int,
    ) -> None:
        draw = Random(seed)
        plan = squall.plan(system, planner)
        entries = sorted(frozenset().union(*broadcast_candidates(plan).values()))
        few_rows = {entry: 1 for entry in entries if draw.random() < 0.4}
        spread = (
            choose_broadcast(plan, few_rows, [], 1000, broadcast_candidates(plan))
            if draw.random() < 0.5
            else frozenset()
        )
        hot = any_hot(draw, plan, spread, [*events, *facts])
        assume(hot)
        workers = in_memory.Workers(draw, most=draw.choice([0, 3, 1_000_000]))
        few = draw.choice([-1, -1, -1, 2, 1_000_000])
        outputs = in_memory.run(
            plan, in_memory.cut(events, cuts), facts, together, few, workers=workers, spread=spread, hot=hot,
            measures=lambda: draw.random() < 0.2, compaction_interval=compaction_interval
        )  # fmt: skip
        assert_as_oracle(system, outputs, events, facts)

    more = {"together": st.sampled_from([0, 0, 0, 10, 1_000_000]), "seed": st.integers(0, 1 << 32)}
    hold(law, many, **data(APART), **more)


@examples(80)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_it_means_the_same_by_whichever_columns_a_plan_groups(planner: str, many: int) -> None:
    """What a plan is checked for is enough: any grouping that parts no rows which have to meet means the same."""

    def law(
        system: System, events: list[Event], facts: list[Event], cuts: list[int], compaction_interval: int, seed: int
    ) -> None:
        draw = Random(seed)
        plan = regrouped(draw, squall.plan(system, planner))
        spread = frozenset[Address]()
        if draw.random() < 0.3:
            entries = sorted(frozenset().union(*broadcast_candidates(plan).values()))
            spread = choose_broadcast(
                plan, {entry: 1 for entry in entries if draw.random() < 0.4}, [], 1000, broadcast_candidates(plan)
            )
        hot = any_hot(draw, plan, spread, [*events, *facts]) if draw.random() < 0.5 else {}
        workers = in_memory.Workers(draw, most=draw.choice([0, 3, 1_000_000]))
        outputs = in_memory.run(
            plan,
            in_memory.cut(events, cuts),
            facts,
            workers=workers,
            spread=spread,
            hot=hot,
            compaction_interval=compaction_interval,
        )
        assert_as_oracle(system, outputs, events, facts)

    more = {"seed": st.integers(0, 1 << 32)}
    hold(law, many, **data(APART), **more)


KEPT = APART - {"removals"}
GROWING = KEPT - {"count"}
"""Where facts are never taken back, so that anything is closed."""


def with_transitive_rule(system: System, predicate: Term, source: Source) -> System:
    x, y, z = map(Variable, "xyz")
    body = (Pattern(x, predicate, y), Pattern(y, predicate, z))
    rule = System("closed", (source,), body, consequences=(Construct((Pattern(x, predicate, z),)),))
    return replace(system, subsystems=(*system.subsystems, rule))


@examples(80)
def test_it_means_the_same_whoever_finds_the_paths(many: int) -> None:
    """Each task finds the paths of closures that begin at nodes of its own, whatever else goes to all tasks or is hot;
    and all may go wrong meanwhile."""

    def law(
        system: System,
        events: list[Event],
        facts: list[Event],
        cuts: list[int],
        compaction_interval: int,
        together: int,
        seed: int,
    ) -> None:
        draw = Random(seed)
        plan = squall.plan(system)
        steps = closure_inputs(plan)
        assume(steps)
        if draw.random() < 0.3:
            plan = regrouped(draw, plan)
        can_be = broadcast_candidates(plan)
        entries = sorted(frozenset().union(*can_be.values()))
        few_rows = {entry: 1 for entry in entries if draw.random() < 0.3}
        spread = steps | choose_broadcast(plan, few_rows, [], 1000, can_be)
        hot = any_hot(draw, plan, spread, [*events, *facts]) if draw.random() < 0.3 else {}
        workers = in_memory.Workers(draw, most=draw.choice([0, 3, 1_000_000]))
        few = draw.choice([-1, -1, 2, 1_000_000])
        outputs = in_memory.run(
            plan,
            in_memory.cut(events, cuts),
            facts,
            together,
            few,
            workers=workers,
            spread=spread,
            hot=hot,
            compaction_interval=compaction_interval,
        )
        assert_as_oracle(system, outputs, events, facts)

    predicates = st.sampled_from([predicate for level in LEVELS for predicate in level])
    more = {"together": st.sampled_from([0, 0, 10, 1_000_000]), "seed": st.integers(0, 1 << 32)}
    programs = st.one_of(systems(features=GROWING), systems(features=KEPT))
    closing = st.builds(with_transitive_rule, programs, predicates, sources_of("", GROWING))
    existing = {**data(KEPT), "system": closing}
    hold(law, many, **existing, **more)


@examples(40)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_any_program_that_depends_on_the_order_of_facts_is_run_by_one_task(planner: str, many: int) -> None:
    def law(
        system: System,
        events: list[Event],
        facts: list[Event],
        cuts: list[int],
        compaction_interval: int,
        few: int,
        seed: int,
    ) -> None:
        plan = squall.plan(system, planner)
        assume(shardability.why_single_task(plan))
        draw = Random(seed)
        workers = in_memory.Workers(draw, most=draw.choice([0, 3, 1_000_000])) if draw.random() < 0.7 else None
        outputs = in_memory.run(
            plan, in_memory.cut(events, cuts), facts, few=few, workers=workers, compaction_interval=compaction_interval
        )
        assert_as_oracle(system, outputs, events, facts)

    more = {"few": st.sampled_from([-1, 3, 1_000_000]), "seed": st.integers(0, 1 << 32)}
    hold(law, many, **data(ALL), **more)


def test_a_program_of_one_stage_resumes_in_any_way() -> None:
    """Batches of one event go straight through, those of two do not."""
    system = squall.compile(
        "@prefix : <http://example.org/>.\n[(?x :p ?y) -> (?x :q ?y)]", lexer="jena", window=SlidingWindow(9)
    )
    plan = squall.plan(system)
    assert not stages_of(plan)
    events = stream("\n".join(f"{time} :a :p :b{time % 4}" for time in range(12)))
    batches = [events[:1], events[1:3], events[3:4], events[4:6], events[6:7], events[7:8], events[8:]]
    workers = in_memory.Workers(Random(1), trouble=0)
    outputs = in_memory.run(plan, batches, together=1000, few=1, workers=workers, compaction_interval=4)
    assert_as_oracle(system, outputs, events)


def test_what_has_not_ended_outlives_compaction() -> None:
    rule = "@prefix : <http://example.org/>.\n[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]"
    system = squall.compile(rule, lexer="jena", window=SlidingWindow(4))
    events = stream("1 :a :p :b\n2 :c :p :d\n4 :b :p :e\n5 :e :p :f\n6 :d :p :g")
    outputs = in_memory.run(squall.plan(system), [[event] for event in events], compaction_interval=1)
    assert_as_oracle(system, outputs, events)
    assert [out.time for out in outputs] == [4, 5]


def test_time_passes_in_the_first_round_only(tmp_path: Path) -> None:
    """A level may count what holds at each instant, and need rounds for something else."""
    (tmp_path / "reach.jena").write_text("""
    @prefix : <http://example.org/>.
    [(?a :edge ?b) -> (?a :path ?b)]
    [(?a :path ?b) (?b :edge ?c) (?c :good ?z) -> (?a :path ?c)]
    """)
    (tmp_path / "count.rq").write_text("PREFIX : <http://example.org/> SELECT (COUNT(?b) AS ?n) { ?a :edge ?b }")
    system = replace(squall.compile(tmp_path / "reach.jena", tmp_path / "count.rq"), output="dstream")
    plan = squall.plan(system)
    assert any(level.recursive and level.has_event_time_nodes for level in stages_of(plan))
    good = stream("".join(f"0 :{node} :good :yes\n" for node in "bcde"))
    edges = stream("1 :a :edge :b\n1 :b :edge :c\n1 :c :edge :d\n1 :d :edge :e\n2 :e :edge :a\n3 :x :edge :y")
    outputs = in_memory.run(plan, [[*good, *edges[:4]], edges[4:5], edges[5:]])
    assert_as_oracle(system, outputs, [*good, *edges])


@pytest.mark.parametrize(("together", "few"), WAYS, ids=["distributed", "in one task", "straight"])
@pytest.mark.parametrize("window", [SlidingWindow(100), CountWindow(100)], ids=str)
def test_nodes_are_measured_as_in_process(together: int, few: int, window: SlidingWindow | CountWindow) -> None:
    rules = """
    @prefix : <http://example.org/>.
    [(?a :edge ?b) -> (?a :path ?b)]
    [(?a :path ?b) (?b :edge ?c) (?c :good ?z) -> (?a :path ?c)]
    """
    plan = squall.plan(squall.compile(rules, lexer="jena", window=window))
    good = stream("".join(f"0 :{node} :good :yes\n" for node in "bcde"))
    events = [*good, *stream("1 :a :edge :b\n2 :b :edge :c\n2 :c :edge :d\n3 :d :edge :e\n4 :e :edge :e")]
    tally = NodeMetrics(plan)
    in_memory.run(plan, [events[:6], events[6:]], together=together, few=few, tally=tally)
    job = squall.build(plan, options=Options(measure=True))
    list(job.run([events[:6], events[6:]]))
    figures: PlanMetrics = job.node_metrics()  # type: ignore[attr-defined]
    result = tally.by_node()
    assert {id: figure.rows for id, figure in result.items()} == {
        id: item.rows for id, item in figures.items() if item.rows
    }
    assert {id for id, figure in result.items() if figure.seconds} <= {
        id for id, item in figures.items() if item.seconds
    }
    assert any(figure.seconds for figure in result.values())


@pytest.mark.parametrize("most", [1_000_000, 0])
@pytest.mark.parametrize("window", ["RANGE 100ms", "RANGE 100ms STEP 5ms"])
def test_no_worker_reads_anything_twice_that_it_can_hold(window: str, most: int) -> None:
    rule = "@prefix : <http://example.org/>.\n[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]"
    plan = squall.plan(squall.compile(rule, lexer="jena", window=window))
    events = stream("".join(f"{time} :n{time} :p :n{time + 1}\n" for time in range(80)))
    workers = in_memory.Workers(Random(1), most, trouble=0)
    outputs = in_memory.run(plan, [events[at : at + 8] for at in range(0, 80, 8)], workers=workers)
    assert len(outputs) == 79
    assert workers.reads, "of what others have added"
    assert (len(set(workers.reads)) == len(workers.reads)) is (most > 0)


@pytest.mark.parametrize("few", [-1, 1_000_000])
def test_the_single_task_caches_its_state(few: int) -> None:
    update = (
        "DELETE { ?x <urn:last> ?old } INSERT { ?x <urn:last> ?y } WHERE { ?x :p ?y OPTIONAL { ?x <urn:last> ?old } }"
    )
    system = squall.compile(f"PREFIX : <http://example.org/>\n{update}", lexer="sparql", window="RANGE 100ms")
    plan = squall.plan(system)
    events = stream("".join(f"{time} :n{time % 7} :p :n{time + 1}\n" for time in range(80)))
    batches = [events[at : at + 8] for at in range(0, 80, 8)]
    workers = in_memory.Workers(Random(1), trouble=0)
    workers.held = workers.held[:1]
    assert_as_oracle(system, in_memory.run(plan, batches, few=few, workers=workers, compaction_interval=6), events)
    read = [(folder, share) for _, folder, share, _ in workers.reads]
    assert read, "the state is written as a whole now and then"
    assert len(read) == len(set(read)) == 2 * 6, "and nothing is read but for that, by either task"


EDGES = "1 :a :p :b\n2 :b :p :c"


def work(rule: str, together: int = 0, edges: str = EDGES, **options: Any) -> micro_batch.MicroBatches:
    """A batch of edges, worked off."""
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{rule}", lexer="jena", **options))
    files = in_memory.MemoryFiles()
    job = micro_batch.MicroBatches(
        in_memory.MemoryExchange(files), files, PhysicalPlan(plan, stages_of(plan)), together, max_cached_rows=0
    )
    job.process(chain(in_memory.start(job), in_memory.read(job, in_memory.in_files(stream(edges)))))
    return job


CHAIN = "[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)] [s: (?x :q ?z) (?z :p ?w) -> (?w :r ?x)]"


def test_levels_without_rounds_are_one_job() -> None:
    assert work(CHAIN).step_names == ["0000"]
    assert work(CHAIN, window="RANGE 4ms STEP 2ms").step_names == ["0000"], "how far time has come goes with the rows"
    assert len(work("[q: (?x :p ?y) -> (?x :q ?y)] [r: (?x :p ?y) (?y :q ?z) -> (?x :q ?z)]").step_names) > 2


def test_what_ends_within_a_batch_is_not_stored() -> None:
    edges = "".join(f"{time} :n{time} :p :n{time + 1}\n" for time in range(80))
    job = work("[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]", edges=edges, window="RANGE 8ms STEP 8ms")
    assert 0 < job.added_state_rows < 80


def test_many_rows_are_one_message() -> None:
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{CHAIN}", lexer="jena"))
    router = PhysicalPlan(plan, stages_of(plan)).router()
    address = next(iter(router.key_functions))
    entries = [("<a>", f"<b{number % 3}>", number, number + 1, 1) for number in range(300)]
    rows = list(router.row_batches(address, entries))
    assert len(rows) <= 3
    assert sorted(entry for row_batch in rows for entry in row_batch.entries) == sorted(entries)
    assert {router.bucket(address, entry) == row_batch.bucket for row_batch in rows for entry in row_batch.entries} == {
        True
    }
    for row_batch in rows:
        message = row_batch.message()
        assert (message.many, message.start) == (len(row_batch.entries), max(entry[-3] for entry in row_batch.entries))
