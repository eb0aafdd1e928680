"""Broadcast joins and skewed keys: how they are chosen, and that outputs stay the same, each exactly once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

import squall
from squall import functions
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.worker import source_records
from squall.builders.distributed.io.parsing import Parsed
from squall.builders.distributed.io.records import BUFFERED, RowBatch
from squall.builders.distributed.plan.broadcast import broadcast_candidates, choose_broadcast, general_inputs
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET
from squall.builders.distributed.plan.partitioning import BROADCAST, SkewedPartitioning, is_broadcast
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.sampling import InputSampler
from squall.builders.distributed.plan.skew import SkewedKeys, find_skewed_keys, splittable_inputs
from squall.builders.distributed.plan.stages import partitionings_of
from squall.plan import Plan
from squall.plan.operators import Join, MultiwayJoin
from squall.rdf import Event, Term
from squall.testing import assert_as_oracle, static, stream
from tests import in_memory

PREFIX = "PREFIX : <http://example.org/> "
WHERE = "?o :by ?s . ?s :in ?r"
FLOORS = f"{WHERE} . ?r :at ?f"
COUNTED = "(COUNT(*) AS ?n)"
QUERIES = {
    "a join": f"SELECT ?r {COUNTED} {{ {WHERE} }} GROUP BY ?r",
    "a chain of static data": f"SELECT ?f {COUNTED} {{ {FLOORS} }} GROUP BY ?f",
    "what others want as well": f"SELECT ?f {COUNTED} {{ {FLOORS} }} GROUP BY ?f ; "
    f"SELECT ?s ?f {{ ?s :in ?r . ?r :at ?f }}",
    "a later level": f"SELECT ?f {COUNTED} {{ ?o :value ?v . ?v :number ?m . {FLOORS} }} GROUP BY ?f",
    "distinct": f"SELECT DISTINCT ?o ?f {{ {FLOORS} }}",
    "where there is one": f"SELECT ?r {COUNTED} {{ ?o :by ?s OPTIONAL {{ ?s :in ?r }} }} GROUP BY ?r",
    "where there is none": f"SELECT ?s {COUNTED} {{ ?o :by ?s FILTER NOT EXISTS {{ ?s :in ?r }} }} GROUP BY ?s",
    "no key": f"SELECT ?f {COUNTED} {{ ?o :by ?s . ?r :at ?f }} GROUP BY ?f",
}


def system(name: str, window: str, output: str) -> squall.System:
    queries = [squall.compile(PREFIX + text, lexer="sparql", window=window) for text in QUERIES[name].split(" ; ")]
    results = [replace(query, output=output) for query in queries]
    return results[0] if len(results) == 1 else squall.System(subsystems=tuple(results))


def said(draw: Random, count: int) -> str:
    """Draws facts of the streams, some of them about the subjects of static data."""
    return "".join(
        draw.choice(
            [f"{time} :o{time} :by :s{draw.randrange(4)}\n"] * 3
            + [f"{time} :o{time - 1} :value :v{time}\n{time} :v{time} :number {time}\n"] * 2
            + [f"{time} :s{draw.randrange(4)} :in :r{draw.randrange(2)}\n", f"{time} :r{draw.randrange(2)} :at :f\n"]
        )
        for time in range(count)
    )


STATIC = static(":s0 :in :r0\n:s0 :in :r1\n:s1 :in :r0\n:r0 :at :g\n:r1 :at :g\n:r1 :at :f")


@pytest.mark.sampled(15)
@pytest.mark.parametrize("many", [3, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("output", ["istream", "rstream"])
@pytest.mark.parametrize("window", ["RANGE 20ms", "RANGE 12ms STEP 4ms", "LANDMARK"])
@pytest.mark.parametrize("name", QUERIES)
def test_each_output_is_emitted_exactly_once(name: str, window: str, output: str, many: int) -> None:
    """This holds whichever inputs are broadcast, and whatever streams add to them, with failures at any point."""
    query = system(name, window, output)
    plan = squall.plan(query)
    entries = sorted(frozenset().union(*broadcast_candidates(plan).values()))
    tried = set()
    for seed in range(many):
        draw = Random(seed)
        compaction_interval = draw.choice([1, 2, 100])
        streamed = [entry for entry in entries if draw.random() < 0.4]
        broadcast_inputs = choose_broadcast(plan, dict.fromkeys(entries, 1), streamed, 1000)
        tried.add(broadcast_inputs)
        events = stream(said(draw, 30))
        places = sorted(draw.sample(range(len(events)), 3))
        batches = [events[begin:end] for begin, end in pairwise([0, *places, len(events)])]
        workers = in_memory.Workers(draw, draw.choice([0, 1_000_000]))
        outputs = in_memory.run(
            plan,
            batches,
            STATIC,
            draw.choice([0, 0, 20]),
            workers=workers,
            broadcast_inputs=broadcast_inputs,
            compaction_interval=compaction_interval,
        )
        assert_as_oracle(query, outputs, events, STATIC)
    assert len(tried) > 1 or many < 10


def test_the_side_that_static_data_make_is_spread() -> None:
    plan = squall.plan(system("a later level", "RANGE 20ms", "istream"))
    static_rows, streams = InputSampler(plan), InputSampler(plan)
    static_rows.count(STATIC)
    streams.count(stream("1 :o1 :by :s1\n1 :o1 :value :v1\n1 :v1 :number 1"))
    assert not static_rows.rows.keys() & streams.rows.keys()
    broadcast_inputs = choose_broadcast(plan, static_rows.rows, streams.rows, 6)
    ((id, port),) = broadcast_inputs
    assert isinstance(plan.by_id[id].op, Join)
    keys = partitionings_of(plan, broadcast_inputs)
    assert keys[id, port] == BROADCAST
    assert not any(
        hop.shuffles
        for hop in physical_plan(plan, broadcast_inputs).exchanges
        if (hop.consumer, hop.port) == (id, 1 - port)
    )
    assert sum(hop.shuffles for hop in physical_plan(plan, broadcast_inputs).exchanges) < sum(
        hop.shuffles for hop in physical_plan(plan).exchanges
    )
    assert f"{id} with all rows of input {port + 1} in every task" in str(physical_plan(plan, broadcast_inputs))
    assert choose_broadcast(plan, static_rows.rows, streams.rows, 2) == frozenset(), "there are too many"
    assert choose_broadcast(plan, static_rows.rows, [*static_rows.rows], 6) == frozenset(), "streams bring some as well"


def test_nothing_is_computed_to_count_what_arrives() -> None:
    called = []

    @functions.function("noted", languages=("jena",))
    def noted(value: Term) -> Term:
        called.append(value)
        return value

    rule = "[r: (?s :at ?v) noted(?v, ?w) (?w :in ?r) -> (?s :seen ?r)]"
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{rule}", lexer="jena"))
    arriving = InputSampler(plan)
    arriving.count(stream("1 :a :at :b\n2 :b :in :c\n3 :b :in :d"))
    assert sorted(arriving.rows.values()) == [1, 2]
    assert arriving.rows.keys() == frozenset().union(*broadcast_candidates(plan).values())
    assert not called


def test_patterns_that_any_fact_may_fit() -> None:
    text = "SELECT * { ?s ?p ?o . ?s :in ?r . ?o a ?c . ?r a :Room }"
    plan = squall.plan(squall.compile(PREFIX + text, lexer="sparql"))
    arriving = InputSampler(plan)
    arriving.count(static(":s :in :r"))
    any_fact = general_inputs(plan)
    assert {len(any_fact & {address}) for address in arriving.rows} == {0, 1}
    arriving.rows.clear()
    arriving.count(static(":r a :Room"))
    assert len(arriving.rows.keys() - any_fact) == 1


def test_buffered_broadcast_rows_are_output_once() -> None:
    plan = squall.plan(system("a join", "RANGE 20ms", "istream"))
    entries = frozenset().union(*broadcast_candidates(plan).values())
    broadcast_inputs = choose_broadcast(plan, dict.fromkeys(entries, 1), [min(entries)], 10)
    router = Program(physical_plan(plan, broadcast_inputs)).router()
    (address,) = broadcast_inputs
    (row_batch,) = router.row_batches(address, [("<a>", "<b>", 1, 2, 1)])
    assert row_batch.bucket == BROADCAST_BUCKET
    tasks = [row_batch._replace(type=BUFFERED, bucket=bucket) for bucket in (0, 1, 5)]
    assert [item for task in tasks for item in router.buffered(task)] == [row_batch._replace(type=BUFFERED)]
    other = next(iter(router.key_functions))
    row_batches = list(router.row_batches(other, [("<a>", "<b>", 1, 2, 1)]))
    assert [item for buffer in row_batches for item in router.buffered(buffer)] == row_batches


STREAMS = {
    "a join": "SELECT ?o ?r { ?o :by ?s . ?s :in ?r }",
    "a star": "SELECT ?o ?r ?f { ?o :by ?s . ?s :in ?r . ?s :at ?f }",
    "behind another join": "SELECT ?v ?r { ?o :value ?v . ?o :by ?s . ?s :in ?r }",
    "where there is one": "SELECT ?o ?r { ?o :by ?s OPTIONAL { ?s :in ?r } }",
    "where there is none": "SELECT ?o { ?o :by ?s FILTER NOT EXISTS { ?s :in ?r } }",
    "how many": "SELECT ?s (COUNT(?o) AS ?n) { ?o :by ?s . ?s :in ?r } GROUP BY ?s",
}
HOT = ("<http://example.org/s0>",)


def of_sensors(name: str, window: str) -> squall.System:
    return replace(squall.compile(PREFIX + STREAMS[name], lexer="sparql", window=window), output="istream")


def skewed(count: int) -> str:
    """Returns a stream in which half of all observations are of one sensor. The places of sensors come by the stream as
    well."""
    return "".join(
        f"{time} :o{time} :by :s{time % 8 if time % 2 else 0}\n{time} :o{time} :value :v{time}\n"
        + (f"{time} :s{time % 8} :in :r{time % 3}\n{time} :s{time % 8} :at :f{time % 5}\n" if time % 3 == 0 else "")
        for time in range(count)
    )


def found_hot(plan: Plan, events: list[Event], share: float) -> dict[tuple[str, int], tuple[str, ...]]:
    arriving = InputSampler(plan, splittable_inputs(plan, partitionings_of(plan)))
    arriving.count(events)
    return find_skewed_keys(arriving.keys, share)


@pytest.mark.more
@pytest.mark.parametrize("window", ["RANGE 20ms", "RANGE 12ms STEP 4ms", "LANDMARK"])
@pytest.mark.parametrize("name", STREAMS)
def test_streams_with_a_hot_key(name: str, window: str) -> None:
    """The skewed key is found at the beginning of the stream, and the answers stay the same."""
    query, events = of_sensors(name, window), stream(skewed(120))
    plan = squall.plan(query)
    skewed_keys = found_hot(plan, events[: len(events) // 2], 0.2)
    assert {*skewed_keys.values()} == {HOT}
    draw = Random(1)
    batches = [events[at : at + 40] for at in range(0, len(events), 40)]
    assert_as_oracle(
        query, in_memory.run(plan, batches, workers=in_memory.Workers(draw), skewed_keys=skewed_keys), events
    )
    assert f"; of the skewed keys {HOT[0]}: input 1 by [" in str(physical_plan(plan, skewed_keys=skewed_keys))
    assert HOT[0] not in str(physical_plan(plan))


@pytest.mark.parametrize("name", ["a join", "a star", "where there is one", "where there is none"])
def test_no_task_has_all_rows_of_a_hot_key(name: str) -> None:
    """Without the skewed key, one task has nearly half of all rows. Splitting it adds no shuffle."""
    plan = squall.plan(of_sensors(name, "LANDMARK"))
    events = stream(skewed(400))
    skewed_keys = found_hot(plan, events, 0.2)
    assert len(physical_plan(plan, skewed_keys=skewed_keys).stages) == len(physical_plan(plan).stages) == 1
    assert most_in_one_task(plan, events, {}) > 0.45
    assert most_in_one_task(plan, events, skewed_keys) < 0.2


def most_in_one_task(plan: Plan, events: list[Event], skewed_keys: SkewedKeys) -> float:
    """Returns the largest share of the sensors' rows that one of eight tasks gets."""
    program = Program(physical_plan(plan, skewed_keys=skewed_keys))
    rows = Counter[int]()
    for message in source_records(program, 0, [Parsed(0, events, [], len(events))]):
        if isinstance(message, RowBatch) and message.stage == 1:
            rows[message.bucket % 8] += sum(entry[0] is not None and "/o" in entry[0] for entry in message.deltas)
    return max(rows.values()) / rows.total()


def test_joins_on_a_skewed_key_are_a_multiway_join() -> None:
    plan = squall.plan(of_sensors("a star", "LANDMARK"))
    skewed_keys = found_hot(plan, stream(skewed(120)), 0.2)
    physical = physical_plan(plan, skewed_keys=skewed_keys)
    (star,) = (node for node in physical.plan.nodes if isinstance(node.op, MultiwayJoin))
    assert isinstance(star.op, MultiwayJoin)
    assert len(star.inputs) == 3
    assert len(star.op.joins) == 2
    split = [port for port in range(3) if not is_broadcast(physical.partitionings[star.id, port])]
    assert len(split) == 1, "the others' rows with this key go to all tasks"
    assert len(physical.stages) == len(physical_plan(plan).stages)


def test_buffered_rows_of_a_skewed_key_are_output_once() -> None:
    plan = squall.plan(of_sensors("a join", "LANDMARK"))
    skewed_keys = found_hot(plan, stream(skewed(120)), 0.2)
    router = Program(physical_plan(plan, skewed_keys=skewed_keys)).router()
    ((id, port),) = skewed_keys
    address = (id, 1 - port)
    key = router.partitionings[address]
    assert isinstance(key, SkewedPartitioning)
    (column,) = key.columns
    rows = [tuple(text if place == column else "<x>" for place in (0, 1)) for text in (*HOT, "<b>", "<c>")]
    entries = [(*row, 1, 2, 1) for row in rows]
    results = [row_batch._replace(type=BUFFERED) for row_batch in router.row_batches(address, entries)]
    (every,) = (row_batch for row_batch in results if row_batch.bucket == BROADCAST_BUCKET)
    assert every.deltas == entries[:1]
    tasks = [every._replace(bucket=bucket) for bucket in (0, 1, 5)]
    remainder = [row_batch for row_batch in results if row_batch != every]
    assert [item for task in (*tasks, *remainder) for item in router.buffered(task)] == [every, *remainder]
    assert {router.bucket(address, row) for row in rows} == {row_batch.bucket for row_batch in results}


def test_which_keys_are_skewed() -> None:
    left, right = ("a", 0), ("a", 1)
    counts = {left: Counter(x=50, y=30, z=20), right: Counter(x=60, y=25, w=1000)}
    assert find_skewed_keys(counts, 0.25) == {left: ("y",), right: ("w", "x")}
    assert find_skewed_keys({left: Counter(x=10, y=1)}, 0.25) == {}, "too little has been seen"


def test_hot_keys_are_in_no_recursion() -> None:
    rules = "[(?a :edge ?b) -> (?a :path ?b)]\n[(?a :path ?b) (?b :edge ?c) (?c :good ?z) -> (?a :path ?c)]"
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{rules}", lexer="jena"))
    apart = {
        id
        for level in physical_plan(plan).stages
        if level.recursive
        for part in plan.components
        if len(part) > 1
        for id in part
    }
    assert apart
    assert not {id for id, _ in splittable_inputs(plan, partitionings_of(plan))} & apart
