"""Multiway joins: which joins of a plan they replace, and that outputs stay the same."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import accumulate, chain, product
from random import Random
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.builders.distributed.plan.broadcast import broadcast_candidates, choose_broadcast
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.local import event_loop
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.multiway_join import replaced_inputs, with_multiway_joins
from squall.builders.runtime.operators.delta_index import Merging
from squall.builders.runtime.operators.multiway_join import MultiwayJoinOperator
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.builders.runtime.zset import Delta
from squall.contracts import Options
from squall.explain import as_json
from squall.model import Source
from squall.model.windows import SlidingWindow
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.validation import check
from squall.rdf import FOREVER, Event, Term, Triple
from squall.testing import assert_as_oracle
from tests.in_memory import Workers, run
from tests.laws import examples, examples_of, hold
from tests.snapshots import INSTANTS, Bag, at, delta_lists, forget

# The operator


class Shape(NamedTuple):
    """The widths of the inputs of a multiway join, its keys, and the columns that it keeps."""

    widths: tuple[int, ...]
    on: tuple[tuple[int, ...], ...]
    keep: tuple[int, ...]

    def operator(self, merging: Merging = Merging.ADJOINING) -> MultiwayJoinOperator:
        return MultiwayJoinOperator(ops.MultiwayJoin(self.on, self.keep), self.widths, merging)


SHAPES = {
    "three": Shape((1, 2, 1), ((0,), (1,), (0,)), (1, 0)),
    "all columns": Shape((2, 1, 2), ((0,), (0,), (0,)), (0, 1, 2, 3, 4)),
    "two columns": Shape((2, 2, 2), ((0, 1), (1, 0), (0, 1)), (0, 3, 5)),
    "one column twice": Shape((1, 2, 2), ((0, 0), (0, 1), (1, 0)), (0,)),
    "nothing kept": Shape((1, 1, 1), ((0,), (0,), (0,)), ()),
    "four": Shape((1, 1, 2, 1), ((0,), (0,), (1,), (0,)), (3, 0)),
}
PORTS = max(len(shape.widths) for shape in SHAPES.values())


def joined(shape: Shape, sides: Sequence[Bag]) -> Bag:
    """Computes the join at an instant: matching rows with the product of their multiplicities."""
    bag: Bag = Counter()
    for rows in product(*sides):
        keys = {tuple(row[column] for column in on) for row, on in zip(rows, shape.on, strict=True)}
        if len(keys) == 1:
            cells = [cell for row in rows for cell in row]
            count = 1
            for row, side in zip(rows, sides, strict=True):
                count *= side[row]
            bag[tuple(cells[column] for column in shape.keep)] += count
    return bag


@pytest.mark.parametrize("merging", Merging)
@pytest.mark.parametrize("forgets", [False, True], ids=["", "forgets"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@given(data=st.data())
@settings(max_examples=examples_of(60), deadline=None)
def test_a_star_joins_all_its_inputs(shape: Shape, forgets: bool, merging: Merging, data: st.DataObject) -> None:
    """The inputs come in any order and in any batches. `forgets` says whether expired rows are deleted when time
    advances. With `UNION` only the set of rows counts."""
    ports = range(len(shape.widths))
    star, actual = shape.operator(merging), list[Delta]()
    deltas: list[list[Delta]] = [[] for _ in ports]
    now = 0
    for port in data.draw(st.lists(st.sampled_from(ports), max_size=8)):
        batch = [item for item in data.draw(delta_lists(shape.widths[port], (1,))) if item[-3] >= now]
        deltas[port] += batch
        actual += star.apply(port, batch)
        if forgets:
            now = data.draw(st.integers(now, max(INSTANTS)))
            forget(star, now)
    assert all(start < end and weight == 1 for *_, start, end, weight in actual)
    for instant in INSTANTS:
        expected = joined(shape, [at(side, instant) for side in deltas])
        if merging is Merging.UNION:
            assert set(+at(actual, instant)) == set(+expected), instant
        else:
            assert at(actual, instant) == expected, instant


@given(batches=st.lists(st.tuples(st.integers(0, 2), delta_lists(1, (1, 2))), max_size=6), more=delta_lists(1, (1,)))
@settings(max_examples=examples_of(40), deadline=None)
def test_a_multiway_join_retracts_its_state(batches: list[tuple[int, list[Delta]]], more: list[Delta]) -> None:
    shape = Shape((1, 1, 1), ((0,), (0,), (0,)), (0,))
    first, second = shape.operator(), shape.operator()
    first.enable_changelog()
    for port, batch in batches:
        first.apply(port, [(*item[:-1], 1) for item in batch for _ in range(item[-1])])
    for slot, state in first.drain_changelog():
        second.restore(slot, state)
    assert Counter(second.apply(0, more)) == Counter(first.apply(0, more))
    assert second.size() == first.size()


@pytest.mark.parametrize("keys", [10**9, 7], ids=["ever new keys", "few keys"])
@pytest.mark.parametrize("static", [False, True], ids=["", "one side static"])
def test_the_state_of_a_multiway_join_stays_small(keys: int, static: bool) -> None:
    """This holds however long the stream is, also where records are never complete or never expire."""
    star, largest = Shape((1, 1, 1), ((0,), (0,), (0,)), (0,)).operator(), 0
    if static:
        star.apply(2, [(f"<urn:{key}>", 0, FOREVER, 1) for key in range(7)])
    for time in range(8000):
        star.apply(time % 2, [(f"<urn:{time // 2 % keys}>", time, time + 10, 1)])
        star.expire(time)
        largest = max(largest, star.size())
        assert star.further == sum(len(deltas) for more in star.more for deltas in more.values())
    assert largest < 4 * DEFAULT_TUNING.min_rows_to_sweep
    forget(star, FOREVER - 1)
    assert star.size() == (7 if static else 0)


# Which joins of a plan


def rows(name: str) -> Node:
    return Node(name, ops.Match((0, Term(f"<urn:{name}>"), 1)), (Input("read"),))


def join(name: str, left: str, right: str, on: tuple[tuple[int, int], ...], keep: tuple[int, ...]) -> Node:
    return Node(name, ops.Join(on, keep), (Input(left), Input(right)))


def plan(*nodes: Node, removals: bool = False) -> Plan:
    read = Node("read", ops.Scan(Source("", SlidingWindow(4), removals=removals)))
    return Plan((read, *map(rows, "pqrs"), *nodes, Node("end", ops.Sink(), (Input(nodes[-1].id),))))


def multiway_joins(logical: Plan) -> dict[str, ops.MultiwayJoin]:
    nodes = with_multiway_joins(logical).nodes
    return {node.id: node.op for node in nodes if isinstance(node.op, ops.MultiwayJoin)}


FIRST = join("a", "p", "q", ((0, 0),), (0, 1, 3))
SECOND = join("b", "a", "r", ((0, 0),), (1, 2, 4))
OTHER = join("c", "r", "s", ((0, 0),), (1, 0, 3))


def test_a_join_below_on_the_same_column_is_replaced() -> None:
    logical = plan(FIRST, SECOND)
    changed = with_multiway_joins(logical)
    assert changed.by_id["b"] == Node("b", ops.MultiwayJoin(((0,),) * 3, (1, 3, 5)), tuple(map(Input, "pqr")))
    assert multiway_joins(logical)["b"].joins == ("b", "a")
    assert [node.id for node in changed.nodes] == [node.id for node in logical.nodes if node.id != "a"]
    assert [*replaced_inputs(logical, changed.by_id["b"])] == [("a", 0), ("a", 1), ("b", 1)]
    assert [*replaced_inputs(logical, changed.by_id["p"])] == [("p", 0)]
    assert check(changed) == with_multiway_joins(changed) == changed


def test_joins_on_both_sides_are_replaced() -> None:
    query_plan = plan(FIRST, OTHER, join("b", "a", "c", ((0, 1),), (0, 1, 2, 3, 5)))
    changed = with_multiway_joins(query_plan)
    assert changed.by_id["b"].op == ops.MultiwayJoin(((0,),) * 4, (0, 1, 3, 5, 7))
    assert [edge.node for edge in changed.by_id["b"].inputs] == [*"pqrs"]
    assert [*replaced_inputs(query_plan, changed.by_id["b"])] == [("a", 0), ("a", 1), ("c", 0), ("c", 1)]


def test_columns_may_be_named_in_another_order() -> None:
    """The second join has the same columns, named by those of the other side."""
    first = join("a", "p", "q", ((0, 1), (1, 0)), (1, 0))
    query_plan = plan(first, join("b", "a", "r", ((0, 1), (1, 0)), (0,)))
    assert multiway_joins(query_plan)["b"] == ops.MultiwayJoin(((1, 0), (0, 1), (1, 0)), (1,))


def test_all_inputs_are_partitioned_by_the_columns_of_the_last_join() -> None:
    nodes = plan(join("a", "p", "q", ((0, 1), (1, 0)), (1, 0)), join("b", "a", "r", ((0, 1), (1, 0)), (0,))).nodes
    partitioned = Node("b", nodes[-2].op, (Input("a", (1,)), Input("r", (0,))))
    changed = with_multiway_joins(Plan((*nodes[:-2], partitioned, nodes[-1])))
    assert [edge.columns for edge in changed.by_id["b"].inputs] == [(0,), (1,), (0,)]
    assert check(changed) is changed


@pytest.mark.parametrize(
    "nodes",
    [
        (FIRST, join("b", "a", "r", ((1, 0),), (0,))),
        (FIRST, join("b", "a", "r", ((0, 0), (1, 1)), (0,))),
        (join("a", "p", "q", ((0, 0), (1, 1)), (0, 1)), join("b", "a", "r", ((0, 0),), (0,))),
        (FIRST, join("b", "a", "r", (), (0,))),
        (join("a", "p", "q", (), (0, 1)), join("b", "a", "r", ((0, 0),), (0,))),
        (FIRST, join("b", "a", "a", ((0, 0),), (0,))),
        (FIRST, SECOND, Node("u", ops.Union(), (Input("b"), Input("a")))),
        (FIRST, Node("t", ops.Project((0, 1, 2)), (Input("a"),)), join("b", "t", "r", ((0, 0),), (0,))),
    ],
    ids=["another", "more", "fewer", "none", "none below", "twice", "read elsewhere", "not at once"],
)
def test_other_joins_are_not_replaced(nodes: tuple[Node, ...]) -> None:
    assert with_multiway_joins(plan(*nodes)) == plan(*nodes)


def test_joins_whose_rows_may_be_retracted_are_not_replaced() -> None:
    assert not multiway_joins(plan(FIRST, SECOND, removals=True))


def test_a_join_whose_rows_are_visible_is_not_replaced() -> None:
    logical = plan(FIRST, OTHER, join("b", "a", "c", ((0, 1),), (0, 1, 2, 3, 5)))
    changed = with_multiway_joins(logical, visible={"a"})
    assert [edge.node for edge in changed.by_id["b"].inputs] == ["a", "r", "s"]


def test_equal_plans_have_equal_json_and_pickles() -> None:
    changed = with_multiway_joins(plan(FIRST, SECOND))
    node = json.loads(as_json(changed))["nodes"][-2]
    expected = {"kind": "MultiwayJoin", "on": [[0], [0], [0]], "keep": [1, 3, 5], "joins": ["b", "a"]}
    assert node["op"] == expected
    assert [edge["node"] for edge in node["inputs"]] == ["p", "q", "r"]
    assert pickle.loads(pickle.dumps(changed)) == changed
    assert changed != plan(FIRST, SECOND)


# At work

STAR = """
@prefix : <urn:>.
[r: (?x :p ?a) (?x :q ?b) (?x :r ?c) (?c :s ?d) (?c :t ?e) (?c :u ?f) -> (?a :v ?f)]
"""
FACT = st.builds(
    Triple, *(st.sampled_from([Term(f"<urn:{name}>") for name in names]) for names in ("xy", "pqrstu", "xyz"))
)
EVENTS = st.lists(st.tuples(st.integers(0, 3), st.lists(FACT, max_size=5)), max_size=8)


@given(steps=EVENTS, static=st.lists(FACT, max_size=4), alone=st.booleans(), binary=st.booleans())
@settings(max_examples=examples_of(60), deadline=None)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_a_star_of_a_program_answers_as_the_oracle(
    planner: str, steps: list[tuple[int, list[Triple]]], static: list[Triple], alone: bool, binary: bool
) -> None:
    """`binary` says whether the joins stay as they are."""
    system = squall.compile(STAR, lexer="jena", window="RANGE 4ms")
    query_plan = squall.plan(system, planner)
    assert len(multiway_joins(query_plan)) == 2
    events, time = [], 0
    for gap, facts in steps:
        time += gap
        events.append(Event(time, tuple(facts)))
    before = [Event(squall.ALWAYS, tuple(static))]
    batches = [[event] for event in events] if alone else [events]
    with patch.object(event_loop, "with_multiway_joins", lambda plan: plan) if binary else nullcontext():
        outputs = list(squall.build(query_plan).run(batches, before))
    assert_as_oracle(system, outputs, events, before)


@examples(60)
@pytest.mark.parametrize("window", ["LANDMARK", "RANGE 4ms", "RANGE 4ms STEP 2ms"])
def test_a_star_that_is_spread_over_workers_answers_as_the_oracle(window: str, many: int) -> None:
    """Workers cache the state or read it, one task or many process it, and its joins are measured one by one or fused,
    in turn. Some of its inputs are broadcast."""
    system = squall.compile(STAR, lexer="jena", window=window)
    query_plan = squall.plan(system)
    deltas = sorted(frozenset().union(*broadcast_candidates(query_plan).values()))

    def law(steps: list[tuple[int, list[Triple]]], static: list[Triple], seed: int) -> None:
        draw = Random(seed)
        broadcast_inputs = choose_broadcast(
            query_plan, dict.fromkeys(deltas, 1), [delta for delta in deltas if draw.random() < 0.7], 10
        )
        times = accumulate(gap for gap, _ in steps)
        batches = [[Event(time, tuple(facts))] for time, (_, facts) in zip(times, steps, strict=True)]
        before = [Event(squall.ALWAYS, tuple(static))]
        workers = Workers(draw, draw.choice([0, 3, 1_000_000])) if draw.random() < 0.7 else None
        max_single_task_rows, max_single_task_bytes = draw.choice([0, 10, 1_000_000]), draw.choice([-1, 2, 1_000_000])
        measures = partial(draw.choice, [[False], [True], [False, True]][draw.randrange(3)])
        outputs = run(
            query_plan,
            batches,
            before,
            max_single_task_rows,
            max_single_task_bytes,
            workers=workers,
            broadcast_inputs=broadcast_inputs,
            measures=measures,
        )
        assert_as_oracle(system, outputs, list(chain.from_iterable(batches)), before)

    hold(law, many, steps=EVENTS, static=st.lists(FACT, max_size=4), seed=st.integers(0, 1 << 32))


def test_between_stages_joins_are_not_replaced() -> None:
    query_plan = squall.plan(squall.compile(STAR, lexer="jena", window="RANGE 4ms"))
    joins = multiway_joins(query_plan)
    physical = physical_plan(query_plan)
    (star,) = (node for node in physical.plan.nodes if isinstance(node.op, ops.MultiwayJoin))
    assert len(joins) == 2
    assert star.op == joins[star.id]
    assert star.id in physical.stages[0].nodes
    assert [physical.partitionings[star.id, port] for port in range(len(star.inputs))] == [*joins[star.id].on]
    assert [edge.consumer for edge in physical.exchanges].count(star.id) == len(star.inputs)
    assert {id for stage in physical.stages for id in stage.nodes} < physical.plan.by_id.keys()


def test_in_iterations_joins_are_not_replaced() -> None:
    rule = "@prefix : <urn:>.\n[(?x :p ?a) (?x :q ?b) (?x :r ?c) -> (?c :p ?a)]"
    query_plan = squall.plan(squall.compile(rule, lexer="jena", window="RANGE 4ms"))
    assert multiway_joins(query_plan)
    physical = physical_plan(query_plan)
    assert any(stage.recursive for stage in physical.stages)
    assert physical.plan is query_plan


def test_a_multiway_join_is_one_operator() -> None:
    query_plan = squall.plan(squall.compile(STAR, lexer="jena", window="RANGE 4ms"))
    job = IteratorJob(query_plan, Options())
    joins = {node.id for node in query_plan.nodes if isinstance(node.op, ops.Join)}
    working = joins & job.dataflow.operators.keys()
    assert len(joins) == 5
    assert working == multiway_joins(query_plan).keys()
    assert all(isinstance(job.dataflow.operators[id], MultiwayJoinOperator) for id in working)


def test_a_multiway_join_is_measured_with_the_joins_that_it_stands_for() -> None:
    query_plan = squall.plan(squall.compile(STAR, lexer="jena", window="RANGE 4ms"))
    job = IteratorJob(query_plan, Options(measure=True))
    same = IteratorJob(query_plan, Options())
    assert job.dataflow.operators.keys() == same.dataflow.operators.keys()
    facts = [Triple(Term("<urn:x>"), Term(f"<urn:{name}>"), Term("<urn:x>")) for name in "pqrstu"]
    outputs = list(job.run([[Event(1, tuple(facts))]]))
    assert outputs == list(same.run([[Event(1, tuple(facts))]]))
    metrics = job.node_metrics()
    joins = multiway_joins(query_plan)
    assert all(metrics[id].rows and metrics[id].seconds and metrics[id].state for id in joins)
    assert {id: metric.joins for id, metric in metrics.items() if metric.joins} == {
        id: op.joins for id, op in joins.items()
    }
    assert metrics.keys() == query_plan.by_id.keys() - {id for op in joins.values() for id in op.joins[1:]}
