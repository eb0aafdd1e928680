"""Sharded plans: each task runs the whole plan for a shard of the subjects, and all together do what one task does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import squall
from squall.builders.distributed.exec import sharded_plan
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.sharded_plan import (
    ShardedProgress,
    Shards,
    ShardSelection,
    _ArrivalTimes,
    shard_records,
)
from squall.builders.distributed.io.engine import NodeMetrics, TaskReport
from squall.builders.distributed.io.parsing import Parsed
from squall.builders.distributed.io.records import (
    DEAD_LETTER,
    ROW,
    SOURCE_COUNT,
    DeadLetter,
    Instant,
    WorkerError,
    encode,
)
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.shardability import shard_of, why_not_shardable
from squall.builders.distributed.plan.strategy import BatchLimits, strategy_of
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.model import Source, System
from squall.model.windows import CountWindow, SlidingWindow, Window
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.node_metrics import PlanMetrics
from squall.rdf import ALWAYS, FOREVER, Atom, Event, Triple, iri
from squall.testing import assert_as_oracle, stream
from squall.testing.strategies.streams import one_in
from tests import in_memory
from tests.laws import examples, hold_with_outputs

PREFIX = "PREFIX : <http://example.org/>\n"
LAST = "DELETE { ?x :last ?z } INSERT { ?x :last ?y } WHERE { ?x :p ?y OPTIONAL { ?x :last ?z } }"
UPDATES = (
    LAST,
    "DELETE { ?x :p ?y } WHERE { ?x :p ?y ; :q ?z }",
    "DELETE { ?x :p ?y ; :r ?z } WHERE { ?x :p ?y OPTIONAL { ?x :r ?z } FILTER(?y = :a) }",
    "INSERT { ?x :r ?y } WHERE { ?x :p ?y FILTER NOT EXISTS { ?x :q ?y } }",
    "INSERT { ?x :full true } WHERE { { SELECT ?x (COUNT(?y) AS ?n) WHERE { ?x :p ?y } GROUP BY ?x } FILTER(?n > 1) }",
    "DELETE { ?x :full true } WHERE { ?x :full true ; :q ?z }",
    "INSERT { GRAPH :g { ?x :p ?y } } WHERE { ?x :q ?y }",
    "DELETE { GRAPH :g { ?x :p ?y } } WHERE { ?x :q ?y . GRAPH :g { ?x :p ?y } }",
    "INSERT DATA { :a :r :b . :b :last :c }",
    "INSERT DATA { :a :p :b . :c :d :a }",
)
"""Updates whose effects have the same subject as their solutions."""
MIXING = (
    "INSERT { ?y :r ?x } WHERE { ?x :p ?y }",
    "DELETE { ?y :p ?x } WHERE { ?x :q ?y }",
    "INSERT { :a :q ?y } WHERE { ?x :p ?y }",
)
"""Updates whose effects have another subject than their solutions."""
RULES = (
    ("[(?x :p ?y) (?x :q ?z) -> (?x :d ?z)]", "jena"),
    ("[(?x :d ?y) (?x :last ?z) -> (?x :d ?z)]", "jena"),
    ("[(?x :r ?y) -> (?x :p ?y)]", "jena"),
    ("[(?x :p ?y) noValue(?x :r ?y) -> (?x :e ?y)]", "jena"),
    ("SELECT ?x ?y ?z { ?x :p ?y OPTIONAL { ?x :r ?z } }", "sparql"),
    ("SELECT ?x (MAX(?y) AS ?most) { ?x :last ?y } GROUP BY ?x", "sparql"),
    ("CONSTRUCT { ?y :from ?x } { ?x :last ?y . { ?x :p ?z } UNION { ?x :q ?z } }", "sparql"),
    ("SELECT ?x ?g ?y { GRAPH ?g { ?x :p ?y } }", "sparql"),
    ("REGISTER STREAM :made AS CONSTRUCT ISTREAM { ?x :q ?y } { ?x :p ?y . ?x :r ?y }", "rspql"),
)
MIXED = (
    ("[(?x :p ?y) (?y :q ?z) -> (?x :d ?z)]", "jena"),
    ("[-> (:a :p :c)]", "jena"),
    ("SELECT ?y { ?x :p ?y }", "sparql"),
    ("SELECT (COUNT(?x) AS ?n) { ?x :p ?y }", "sparql"),
    ("SELECT ?x ?y { ?x :p ?y } ORDER BY ?y LIMIT 1", "sparql"),
    ("CONSTRUCT { ?y :q ?x } { ?x :q ?y }", "sparql"),
    ("CONSTRUCT { ?y :q ?x } { { ?x :q ?y } UNION { ?y :p ?x } }", "sparql"),
    ("REGISTER STREAM :made AS CONSTRUCT ISTREAM { ?y :q ?x } { ?x :p ?y . ?x :r ?y }", "rspql"),
)
OUTPUTS = ("istream", "istream", "dstream")


def compiled(text: str, lexer: str, window: Window, removals: bool = False) -> System:
    prefix = "@prefix : <http://example.org/>.\n" if lexer == "jena" else PREFIX
    return squall.compile(prefix + text, lexer=lexer, window=window, removals=removals)


def with_output(system: System, output: str) -> System:
    """Returns the system with this output for its rules and queries, but not for derived streams."""
    parts = (
        replace(subsystem, output=output) if subsystem.output and not subsystem.stream else subsystem
        for subsystem in system.subsystems
    )
    return replace(system, subsystems=tuple(parts), output=output)


def program(*texts: str) -> System:
    return System(subsystems=tuple(squall.compile(PREFIX + text, lexer="sparql") for text in texts))


@st.composite
def programs(draw: st.DrawFn) -> System:
    window, removals = draw(st.sampled_from([SlidingWindow(4), SlidingWindow(50)])), draw(one_in(3))
    updates = draw(st.lists(st.sampled_from((*UPDATES, *UPDATES, *MIXING)), min_size=1, max_size=3, unique=True))
    rules = st.tuples(st.sampled_from((*RULES, *MIXED)), st.sampled_from(OUTPUTS))
    parts = [compiled(text, "sparql", window, removals) for text in updates]
    parts += [
        with_output(compiled(*rule, window, removals), way)
        for rule, way in draw(st.lists(rules, max_size=3, unique=True))
    ]
    return System(subsystems=tuple(parts))


NAMES = [iri(f"http://example.org/{name}") for name in "abcdef"]
TRIPLES = st.builds(
    Triple,
    st.sampled_from(NAMES),
    st.sampled_from([iri(f"http://example.org/{name}") for name in ("p", "p", "q", "r", "last")]),
    st.sampled_from(NAMES[:3]),
)
SOME = st.lists(TRIPLES, max_size=3).map(tuple)
STREAMS = st.sampled_from(["", "", "http://example.org/g", "http://example.org/h"])


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    times = sorted(draw(st.lists(st.integers(0, 14), max_size=10)))
    return [Event(time, draw(SOME), draw(STREAMS), draw(st.one_of(st.just(()), SOME))) for time in times]


@examples(100)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_a_sharded_plan_agrees_with_the_oracle(planner: str, many: int) -> None:
    """It does as its plan in a single task does: in any batches, with caches of any size, and with tasks that fail."""

    def law(
        system: System,
        actual: list[Event],
        always: tuple[Triple, ...],
        cuts: list[int],
        compaction_interval: int,
        max_single_task_bytes: int,
        seed: int,
    ) -> Sequence[Output]:
        plan = squall.plan(system, planner)
        assume(why_not_shardable(plan) is None)
        actual = actual if any("removals=True" in repr(node.op) for node in plan.nodes) else without_removals(actual)
        static = [Event(ALWAYS, always)]
        run = partial(
            in_memory.run,
            plan,
            in_memory.cut(actual, cuts),
            static,
            max_single_task_bytes=max_single_task_bytes,
            compaction_interval=compaction_interval,
        )
        try:
            list(squall.run(plan, actual, static=static))
        except BuilderError:
            event("does not come to rest")
            with pytest.raises(BuilderError, match="steps without an event"), WorkerError.retold():
                run(workers=drawn_workers(seed), max_update_steps=30)
            return []
        assert_as_oracle(system, run(workers=drawn_workers(seed), change=in_memory.in_a_single_task), actual, static)
        outputs = run(workers=drawn_workers(seed))
        assert_as_oracle(system, outputs, actual, static)
        return outputs

    data: dict[str, Any] = {
        "system": programs(),
        "actual": streams(),
        "always": SOME,
        "cuts": st.lists(st.integers(0, 12), max_size=4),
    }
    compaction_interval, max_single_task_bytes, seed = (
        st.sampled_from([1, 2, 100]),
        st.sampled_from([-1, 3, 1_000_000]),
        st.integers(0, 1 << 32),
    )
    hold_with_outputs(
        law,
        many,
        **data,
        compaction_interval=compaction_interval,
        max_single_task_bytes=max_single_task_bytes,
        seed=seed,
    )


def drawn_workers(seed: int) -> in_memory.Workers | None:
    """Draws workers with a cache of any size, or none."""
    draw = Random(seed)
    return in_memory.any_workers(draw) if draw.random() < 0.7 else None


def without_removals(events: Sequence[Event]) -> list[Event]:
    return [event._replace(removed=()) for event in events]


# Which plans


@pytest.mark.parametrize("planner", ["rete", "greedy"])
@pytest.mark.parametrize("text", UPDATES)
def test_updates_of_one_subject_each_are_shared_out(text: str, planner: str) -> None:
    plan = squall.plan(compiled(text, "sparql", SlidingWindow(4)), planner)
    assert not strategy_of(plan).is_staged
    assert why_not_shardable(plan) is None


SEVERAL, OTHERS = "brings several subjects together", "acts on other subjects than that of its row"
WHY = {
    **dict.fromkeys(MIXING, OTHERS),
    "INSERT { _:x :r ?y } WHERE { ?x :p ?y }": OTHERS,
    "INSERT { ?x :r ?y } WHERE { ?x :p ?y . ?y :q ?z }": SEVERAL,
    "INSERT { ?x :r ?y } WHERE { ?x :p ?y . ?z :q ?y }": SEVERAL,
    "INSERT { ?x :r ?y } WHERE { ?x :p ?y OPTIONAL { ?y :q ?z } }": SEVERAL,
    "INSERT { ?x :r ?y } WHERE { ?x :p ?y FILTER NOT EXISTS { ?y :q ?x } }": SEVERAL,
    "INSERT { ?x :r ?y } WHERE { ?x :p ?y . :a :q ?y }": SEVERAL,
    "INSERT { ?x :r ?n } WHERE { ?x :p ?y { SELECT (COUNT(?z) AS ?n) { ?z :p ?y } } }": SEVERAL,
    "INSERT { ?x :r ?z } WHERE { ?x :p+ ?z }": SEVERAL,
}


@pytest.mark.parametrize("planner", ["rete", "greedy"])
@pytest.mark.parametrize(("text", "what"), WHY.items(), ids=list(WHY))
def test_the_reason_why_updates_are_not_sharded_is_given(text: str, what: str, planner: str) -> None:
    why = why_not_shardable(squall.plan(compiled(text, "sparql", SlidingWindow(4)), planner))
    assert why is not None
    assert why.what == what


@pytest.mark.parametrize(
    ("rule", "window", "output", "what"),
    [
        (MIXED[1], SlidingWindow(4), "istream", "holds for all subjects"),
        (MIXED[2], SlidingWindow(4), "istream", "outputs what several subjects may lead to"),
        (MIXED[3], SlidingWindow(4), "istream", SEVERAL),
        (MIXED[4], SlidingWindow(4), "istream", SEVERAL),
        (RULES[0], CountWindow(4), "istream", "reads through a window that follows its stream"),
        (RULES[4], SlidingWindow(4), "rstream", "outputs snapshots"),
    ],
)
def test_the_rule_that_prevents_sharding_is_named(
    rule: tuple[str, str], window: Window, output: str, what: str
) -> None:
    outputs = with_output(compiled(*rule, window), output)
    why = why_not_shardable(squall.plan(System(subsystems=(compiled(LAST, "sparql", SlidingWindow(4)), outputs))))
    assert why is not None
    assert why.what == what


def test_deletions_of_a_derived_stream_reach_the_shard_that_derived_it() -> None:
    """The stream's facts have another subject than their premises, and updates find them by the latter."""
    nodes = (
        Node("read", ops.Scan(Source("urn:s"))),
        Node("match", ops.Match((0, NAMES[0], 1)), (Input("read"),)),
        Node("emit", ops.Construct((1, NAMES[1], 0)), (Input("match"),)),
        Node("feed", ops.DerivedStream(Source("urn:made")), (Input("emit"),)),
    )
    why = why_not_shardable(Plan(nodes))
    assert why is not None
    assert (why.node.id, why.what) == ("feed", "derives a stream with facts of other subjects")
    assert (
        why_not_shardable(Plan((*nodes[:2], replace(nodes[2], op=ops.Construct((0, NAMES[1], 1))), nodes[3]))) is None
    )


@pytest.mark.spark
def test_it_is_shown_how_a_plan_is_run() -> None:
    pytest.importorskip("pyspark")
    described = {
        text: squall.build(squall.plan(compiled(text, "sparql", SlidingWindow(4))), "spark").describe()  # type: ignore[attr-defined]
        for text in (LAST, MIXING[0])
    }
    assert described[LAST].startswith("strategy: shards; ")
    assert described[LAST].endswith(" inserts or deletes facts")
    assert described[MIXING[0]].startswith("strategy: single task; ")
    assert described[MIXING[0]].endswith(f" inserts or deletes facts; {_id(MIXING[0])} {OTHERS}")


def _id(text: str) -> str:
    why = why_not_shardable(squall.plan(compiled(text, "sparql", SlidingWindow(4))))
    assert why is not None
    return why.node.id


# Shares


def test_lateness_and_next_time_of_all_shards() -> None:
    message = {"processed_until": (3, 5), "earliest": (4, 6), "next_change_time": (9, FOREVER)}
    outputs = TaskReport(tuple(Instant(name, 0, time) for name, times in message.items() for time in times))
    assert sharded_plan._progress_times(outputs) == {"processed_until": 5, "earliest": 6, "next_change_time": 9}


def test_all_facts_of_a_subject_are_in_one_share() -> None:
    results = {(name, shard_of(Triple(name, name, other), 3)) for name in NAMES for other in NAMES}
    assert len(results) == len(NAMES)
    assert {share for _, share in results} == {0, 1, 2}
    atoms = [Atom(NAMES[0], (NAMES[1], NAMES[2])), Atom(NAMES[0], (NAMES[1],))]
    assert {shard_of(atom, 3) for atom in atoms} == {shard_of(Triple(NAMES[1], NAMES[0], NAMES[0]), 3)}
    assert shard_of(Atom(NAMES[0], ()), 3) == shard_of(Triple(NAMES[0], NAMES[0], NAMES[0]), 3)


def test_a_reading_task_has_records_for_its_shard_and_the_first_one_reports_the_source() -> None:
    plan = squall.plan(program(LAST))
    dead_letters = DeadLetter("malformed", "in.ntt", 0, 1, "no triple", "x")
    parsed = Parsed(0, stream("1 :a :p :b\n2 :b :p :b\n3 :c :p :c\n4 :d :p :e"), [dead_letters], 4, "in.ntt")
    each = [[*map(encode, shard_records(plan, 3, [parsed], 10, ShardSelection(3, own)))] for own in range(3)]
    every = map(encode, shard_records(plan, 3, [parsed], 10, ShardSelection(3)))
    assert sorted(chain(*each)) == sorted(every)
    assert [len([item for item in result if item.type == DEAD_LETTER]) for result in each] == [3, 0, 0]
    assert [len([item for item in result if item.type == SOURCE_COUNT]) for result in each] == [1, 0, 0]
    assert [{item.stage for item in result if item.type == ROW} for result in each] == [{0}, {1}, {2}]


def test_a_run_that_began_without_shards_resumes_in_one() -> None:
    files, plan = in_memory.MemoryFiles(), squall.plan(program(LAST))
    files.write(
        asdict(ShardedProgress(0, processed_until=3, earliest=4, next_change_time=4, shard_count=1)),
        "commits",
        "0.json",
    )
    begun = Shards(in_memory.MemoryEngine(files, 3), files, Program(physical_plan(plan)), 10, BatchLimits())
    assert begun.progress.shard_count == 1
    assert (begun.progress.processed_until, begun.progress.next_change_time) == (3, 4)
    begun = Shards(
        in_memory.MemoryEngine(files, 3), in_memory.MemoryFiles(), Program(physical_plan(plan)), 10, BatchLimits()
    )
    assert begun.progress.shard_count == 3


def test_nodes_are_measured_in_all_shares_together() -> None:
    plan = squall.plan(program(LAST, UPDATES[4]))
    events = stream("1 :a :p :b\n1 :b :p :c\n2 :c :p :d\n3 :a :p :c\n4 :a :p :d")
    for max_single_task_bytes in (-1, 1_000_000):
        node_metrics = NodeMetrics(plan)
        in_memory.run(
            plan, [events[:3], events[3:]], max_single_task_bytes=max_single_task_bytes, node_metrics=node_metrics
        )
        job = squall.build(plan, options=Options(measure=True))
        list(job.run([events[:3], events[3:]]))
        figures: PlanMetrics = job.node_metrics()  # type: ignore[attr-defined]
        assert {id: item.rows for id, item in node_metrics.by_node().items()} == {
            id: item.rows for id, item in figures.items() if item.rows
        }


# Steps


BLINKS = (
    "DELETE { ?x :on ?y } INSERT { ?x :off ?y } WHERE { ?x :on ?y FILTER NOT EXISTS { ?x :stop ?z } } ; "
    "DELETE { ?x :off ?y } INSERT { ?x :on ?y } WHERE { ?x :off ?y FILTER NOT EXISTS { ?x :stop ?z } }"
)


def blinking(gap: int) -> list[Event]:
    """Returns events that start a program which continues by itself and is stopped a hundred instants later. Other
    events come at intervals of `gap` ms."""
    text = "".join(f"{time} :b{time} :p :c\n" for time in range(2, 100, gap))
    return stream(f"1 :a :on :b\n{text}101 :a :stop :now")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("max_single_task_bytes", [-1, 1_000_000])
@pytest.mark.parametrize(
    ("text", "shared"), [(BLINKS, True), (f"{BLINKS} ; {MIXING[2]}", False)], ids=["many tasks", "one task"]
)
def test_an_event_is_one_for_all_shares(text: str, shared: bool, max_single_task_bytes: int) -> None:
    """This holds whatever the event brings: update steps are counted since the last event of any shard."""
    system = program(text)
    plan = squall.plan(system)
    assert (why_not_shardable(plan) is None) is shared
    for gap in (1, 3, 9):
        events = blinking(gap)
        for cuts in ([], [20, 60], list(range(0, 100, 2))):
            workers = in_memory.Workers(Random(gap))
            outputs = in_memory.run(
                plan,
                in_memory.cut(events, cuts),
                max_single_task_bytes=max_single_task_bytes,
                workers=workers,
                max_update_steps=10,
            )
            assert_as_oracle(system, outputs, events)
            assert len(outputs) >= 98
    for cuts in ([], [4], [4, 5]):
        with pytest.raises(BuilderError, match="after 10 steps"), WorkerError.retold():
            in_memory.run(
                plan,
                in_memory.cut(blinking(12), cuts),
                max_single_task_bytes=max_single_task_bytes,
                max_update_steps=10,
            )


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 12), st.booleans())
def test_only_relevant_event_times_are_stored(times: list[int], steps: int, in_order: bool) -> None:
    """Between two stored times there are at most as many steps as allowed, or else no others are stored."""
    actual = _ArrivalTimes(steps)
    for time in sorted(times) if in_order else times:
        actual.add(time)
    state = sorted({*actual.times})
    assert {*state} <= {*times}
    assert state[:1] == sorted(times)[:1]
    assert state[-1:] == sorted(times)[-1:]
    for before, after in pairwise(state):
        assert after - before <= steps or not [time for time in times if before < time < after]
    if in_order:
        assert all(after - before > steps for before, after in zip(state, state[2:], strict=False))
