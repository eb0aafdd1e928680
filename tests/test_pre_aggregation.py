"""Pre-aggregation (combiner): deltas of a group or a slice are added up, or dropped, before the shuffle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall.builders.distributed.exec import micro_batch
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io.records import ROW, STATE, Record, WorkerStep
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.runtime.operators.event_time import SliceOperator, combiner, partial_top_k
from squall.builders.runtime.zset import Delta
from squall.contracts import Output
from squall.model.profiles import apply_profile
from squall.model.windows import LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window
from squall.plan import Plan
from squall.plan.operators import Aggregate, Column, Group, Invoke
from squall.plan.operators import Slice as SliceNode
from squall.rdf import ALWAYS, FOREVER, XSD, Event, iri, literal
from squall.testing import assert_as_oracle, stream
from tests import in_memory

PREFIX = "PREFIX : <http://example.org/>\n"
ONE = ("a", "k", "u", "1", 0, 5, 1)
OTHER = ("b", "k", "v", "1", 0, 5, 1)
UNBOUND = (None, "k", "v", "1", 0, 5, 1)
LATER = ("a", "k", "u", "1", 2, 5, 1)
TAKEN_BACK = ("c", "k", "w", "1", 2, 5, -1)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (Group((), (Aggregate("count"),)), [(0, 5, 3)]),
        (Group((1,), (Aggregate("count"),)), [("", "k", 0, 5, 3)]),
        (Group((), (Aggregate("count", Column(0)),)), [("", 0, 5, 2), (None, 0, 5, 1), ("", 2, 5, 0)]),
        (Group((), (Aggregate("count", Column(0), distinct=True),)), [("a", 0, 5, 1), ("b", 0, 5, 1), (None, 0, 5, 1)]),
        (Group((0,), (Aggregate("count", Column(0)),)), [("a", 0, 5, 1), ("b", 0, 5, 1), (None, 0, 5, 1)]),
        (
            Group((1,), (Aggregate("count", Column(0)), Aggregate("sum", Column(3)))),
            [("", "k", "", "1", 0, 5, 2), (None, "k", "", "1", 0, 5, 1)],
        ),
        (
            Group((), (Aggregate("count", Column(0)), Aggregate("max", Invoke(iri("urn:f"), (Column(0), Column(3)))))),
            [("a", "", "", "1", 0, 5, 1), ("b", "", "", "1", 0, 5, 1), (None, "", "", "1", 0, 5, 1)],
        ),
    ],
)
def test_what_a_group_does_not_read_is_blank(group: Group, expected: list[Delta]) -> None:
    combined = combiner(group)
    result = combined([ONE, OTHER, UNBOUND])
    assert result == [delta for delta in expected if delta[-1]]
    assert combined(result) == result


def test_deltas_that_cancel_are_left_out_and_times_stay_separate() -> None:
    combined = combiner(Group((), (Aggregate("count"),)))
    assert combined([LATER, TAKEN_BACK]) == []
    assert combined([ONE, OTHER, LATER]) == [(0, 5, 2), (2, 5, 1)]


ENTRIES = st.lists(
    st.builds(
        lambda name, value, start, length: (name, value, start, FOREVER if length > 8 else start + length, 1),
        st.sampled_from("abc"),
        st.sampled_from([None, *(literal(str(number), f"{XSD}integer") for number in range(5))]),
        st.sampled_from([ALWAYS, *range(6)]),
        st.integers(1, 12),
    ),
    max_size=20,
)
SLICES = st.builds(
    SliceNode,
    st.sampled_from([(), ((Column(1), False),), ((Column(1), True), (Column(0), False))]),
    st.integers(0, 2),
    st.integers(0, 3),
    st.sampled_from([(), (0,)]),
)


@given(SLICES, ENTRIES, st.lists(st.integers(0, 20), max_size=3))
def test_dropped_deltas_are_in_no_slice(op: SliceNode, deltas: list[Delta], cuts: list[int]) -> None:
    """This holds wherever the deltas are, and whenever they come."""
    least = partial_top_k(op)
    assert least is not None
    full_result, some = SliceOperator(op), SliceOperator(op)
    places = [0, *sorted(min(cut, len(deltas)) for cut in cuts), len(deltas)]
    for begin, end in pairwise(places):
        part = least(deltas[begin:end])
        assert Counter(part) <= Counter(deltas[begin:end])
        full_result.apply(0, deltas[begin:end])
        some.apply(0, part)
    assert Counter(some.advance(FOREVER - 1)) == Counter(full_result.advance(FOREVER - 1))


def test_partial_top_k_keeps_as_many_rows_as_the_limit() -> None:
    values = [(literal(str(number), f"{XSD}integer"), 0, 5, 1) for number in range(9)]
    least = partial_top_k(SliceNode(((Column(0), False),), 1, 2))
    assert least is not None
    assert least(values) == values[:3]
    longer = [(*value[:-2], 7, 1) for value in values]
    assert least([*values, *longer]) == [*values[:3], *longer[:3]]
    assert partial_top_k(SliceNode((), 1)) is None


# Distributed

QUERIES = {
    "all": "SELECT (COUNT(*) AS ?n) { ?x :p ?y }",
    "few read": "SELECT ?y (COUNT(?x) AS ?n) (SUM(?v) AS ?sum) { ?x :p ?y ; :v ?v } GROUP BY ?y",
    "distinct": "SELECT ?y (COUNT(DISTINCT ?v) AS ?n) (COUNT(?v) AS ?m) { ?x :p ?y ; :v ?v } GROUP BY ?y",
    "distinct solutions": "SELECT ?y (COUNT(DISTINCT *) AS ?n) { ?x :p ?y ; :v ?v } GROUP BY ?y",
    "unbound": """SELECT ?y (COUNT(?w) AS ?n) (COUNT(*) AS ?m) (SAMPLE(?w) AS ?one)
        { ?x :p ?y OPTIONAL { ?x :w ?w } } GROUP BY ?y""",
    "computed": "SELECT (AVG(IF(BOUND(?w), ?v + ?w, ?v)) AS ?mean) { ?x :v ?v OPTIONAL { ?x :w ?w } }",
    "chosen": "SELECT ?y (MAX(?v) AS ?most) { ?x :p ?y ; :v ?v } GROUP BY ?y HAVING (COUNT(?x) > 1)",
    "by what is computed": "SELECT ?k (GROUP_CONCAT(?v) AS ?all) { ?x :v ?v } GROUP BY (?v > 2 AS ?k)",
    "the first": "SELECT ?x ?v { ?x :v ?v } ORDER BY DESC(?v) LIMIT 2",
    "but for one": "SELECT ?x ?y { ?x :p ?y } ORDER BY ?y OFFSET 1 LIMIT 3",
    "of a join": "SELECT ?x ?y { ?x :p ?y ; :v ?v } ORDER BY ?v LIMIT 4",
    "retractable input": "SELECT ?x { ?x :v ?v FILTER NOT EXISTS { ?x :w ?v } } ORDER BY ?v LIMIT 2",
    "none": "SELECT ?x { ?x :v ?v } LIMIT 0",
    "of a group": "SELECT (MAX(?n) AS ?most) { SELECT ?y (COUNT(?x) AS ?n) { ?x :p ?y } GROUP BY ?y }",
}
WINDOWS: list[Window] = [LANDMARK, SlidingWindow(7), HoppingWindow(8, 4), CountWindow(9)]


def events(draw: Random, many: int) -> list[Event]:
    """Draws people with values, some of which are repeated later."""
    lines = []
    for time in range(many):
        who = draw.randrange(8)
        about = {"p": f":c{draw.randrange(2)}", "v": str(draw.randrange(5)), "w": str(draw.randrange(3))}
        message = draw.sample(["p", "p", "v", "v", "w"], 2)
        lines += [f"{time // 3} :n{who} :{fromkey} {about[fromkey]}" for fromkey in dict.fromkeys(message)]
    return stream("\n".join(lines))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("name", QUERIES)
def test_pre_aggregation_does_not_change_outputs(name: str, window: Window) -> None:
    system = squall.compile(PREFIX + QUERIES[name], lexer="sparql")
    for seed, output in enumerate(("istream", "dstream", "rstream", "istream")):
        outputs = apply_profile(system, window=window, output=output)
        draw = Random(seed)
        actual = events(draw, 40)
        cuts = [draw.randrange(len(actual)) for _ in range(4)]
        workers = in_memory.Workers(draw, max_cached_rows=draw.choice([0, 1_000_000])) if seed % 2 else None
        result = in_memory.run(
            squall.plan(outputs), in_memory.cut(actual, cuts), workers=workers, compaction_interval=2
        )
        assert_as_oracle(outputs, result, actual)


class Counting(in_memory.MemoryEngine):
    """Counts the deltas that reach a group or a slice, and those that it stores."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(in_memory.MemoryFiles())
        self.group = next(number for number, node in enumerate(plan.nodes) if isinstance(node.op, Group | SliceNode))
        self.came = 0

    def shuffle(self, messages: list[Record], step: WorkerStep, broadcast_stages: Collection[int] = ()) -> list[Record]:
        self.came += sum(
            message.many
            for message in messages
            if message.type == ROW and message.node == self.group and message.port == 0
        )
        return super().shuffle(messages, step, broadcast_stages)

    def kept(self) -> int:
        stored = [item for path, value in self.files.values.items() if STATE in path for item in value]
        return sum(item.many for item in stored if item.node == self.group)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("query", "window", "came", "kept"),
    [
        ("SELECT (COUNT(*) AS ?n) { ?x :p ?y }", HoppingWindow(100, 100), 9, 1),
        ("SELECT ?y (COUNT(?x) AS ?n) { ?x :p ?y } GROUP BY ?y", HoppingWindow(100, 100), 18, 2),
        ("SELECT ?y (COUNT(?x) AS ?n) { ?x :p ?y } GROUP BY ?y", LANDMARK, 300, 3),
        ("SELECT ?x { ?x :p ?y } ORDER BY ?x LIMIT 2", HoppingWindow(100, 100), 55, 55),
        ("SELECT ?x { ?x :p ?y } ORDER BY ?y LIMIT 2", LANDMARK, 32, 32),
    ],
)
def test_few_rows_are_shuffled_and_few_stored(query: str, window: Window, came: int, kept: int) -> None:
    """There are three batches of a hundred instants, in three tasks."""
    system = apply_profile(squall.compile(PREFIX + query, lexer="sparql"), window=window)
    plan = squall.plan(system)
    exchange = Counting(plan)
    job = micro_batch.MicroBatches(
        exchange, exchange.files, Program(physical_plan(plan)), BatchLimits(compaction_interval=1)
    )
    every = stream("".join(f"{time} :n{time} :p :c{time % 2}\n" for time in range(300)))
    outputs: list[Output] = []
    for batch in ([], every[:100], every[100:200], every[200:]):
        job.process([*(() if batch else in_memory.start(job)), *in_memory.read(job, in_memory.in_files(batch))])
        outputs += job.outputs()
        job.commit(None)
    job.process(None, last=True)
    outputs += job.outputs()
    job.commit(None)
    assert_as_oracle(system, outputs, every)
    assert exchange.came == came
    assert exchange.kept() <= kept
