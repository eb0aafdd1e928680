"""Plans as data, their properties, and each rule of plan validation broken once."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.errors import PlannerError
from squall.model import Report, Source
from squall.model.windows import CountWindow, HoppingWindow, SlidingWindow
from squall.plan import Input, Node, Plan
from squall.plan.operators import (
    Aggregate,
    AntiJoin,
    Column,
    Construct,
    DerivedStream,
    Distinct,
    Extend,
    Group,
    Invoke,
    Join,
    LeftJoin,
    Match,
    MultiwayJoin,
    Operator,
    Project,
    Scan,
    Select,
    Sink,
    Slice,
    TableFunction,
    TransitiveClosure,
    Union,
    Unit,
    Update,
)
from squall.plan.operators import Filter as Condition
from squall.plan.validation import check
from squall.rdf import iri
from squall.rdf.row_tags import QUAD_TAG, relation_tag

P, Q = iri("urn:p"), iri("urn:q")
NOW = Invoke("urn:x-squall:jena:now", ())
EQUAL = Invoke("urn:x-squall:jena:equal", (Column(0), Column(1)))

READ = Node("read", Scan(Source()))
MATCH = Node("match", Match((0, P, 1)), (Input("read"), Input("unique", feedback=True)))
JOIN = Node("join", Join(((1, 0),), (0, 1, 3)), (Input("match", (1,)), Input("match", (0,))))
EMIT = Node("emit", Construct((0, P, 2), rules=("closure",)), (Input("join"),))
UNIQUE = Node("unique", Distinct(3), (Input("emit", (0,)),))
END = Node("end", Sink(), (Input("unique", (0,)),))
TRANSITIVE = Plan((READ, MATCH, JOIN, EMIT, UNIQUE, END))
"""``(?x p ?y) (?y p ?z) -> (?x p ?z)``"""


def node(id: str, op: Operator, *inputs: str) -> Node:
    return Node(id, op, tuple(map(Input, inputs)))


MATCH_ALONE = node("match", Match((0, P, 1)), "read")


def negating(*, feedback: bool) -> Plan:
    """Returns ``(?x p ?y) noValue(?x q ?y) -> (?x q ?y)``, whose conclusions may be read again or not."""
    again = (Input("unique", feedback=True),) if feedback else ()
    return Plan(
        (
            READ,
            node("left", Match((0, P, 1)), "read"),
            Node("right", Match((0, Q, 1)), (Input("read"), *again)),
            node("anti", AntiJoin(((0, 0), (1, 1))), "left", "right"),
            node("emit", Construct((0, Q, 1)), "anti"),
            UNIQUE,
            END,
        )
    )


def complaints(*nodes: Node) -> list[str]:
    """Returns the messages of `check` about a plan of these nodes, line by line."""
    with pytest.raises(PlannerError) as caught:
        check(Plan(nodes))
    first, *lines = str(caught.value).splitlines()
    assert first == "planning error: the plan is not well formed:"
    return [line.strip() for line in lines]


# As data


def test_a_valid_plan_is_returned() -> None:
    assert check(TRANSITIVE) is TRANSITIVE
    check(negating(feedback=False))


def test_a_plan_is_frozen_and_its_planner_does_not_count() -> None:
    with pytest.raises(FrozenInstanceError):
        TRANSITIVE.nodes = ()  # type: ignore[misc]
    assert replace(TRANSITIVE, planner="mine") == TRANSITIVE
    assert hash(replace(TRANSITIVE, planner="mine")) == hash(TRANSITIVE)
    assert Plan(TRANSITIVE.nodes[1:]) != TRANSITIVE


def test_the_rules_that_an_emit_serves_do_not_count() -> None:
    assert Construct((0, P, 2), rules=("a",)) == Construct((0, P, 2), rules=("b", "c"))
    assert Construct((0, P, 2), rules=("a",)) != Construct((2, P, 0), rules=("a",))


def test_the_graph_has_the_operators_the_inputs_and_the_edges() -> None:
    graph = TRANSITIVE.graph
    assert list(graph) == ["read", "match", "join", "emit", "unique", "end"]
    assert graph.nodes["join"] == {"op": JOIN.op, "inputs": JOIN.inputs}
    assert graph.edges["emit", "unique"] == {"columns": (0,), "feedback": False}
    assert graph.edges["unique", "match"] == {"columns": None, "feedback": True}
    assert graph.number_of_edges("match", "join") == 1, "a self-join is in `inputs`, not in the edges"


def test_a_pickled_plan_does_not_load_networkx() -> None:
    assert list(TRANSITIVE.graph)
    assert TRANSITIVE.components
    sent = pickle.dumps(TRANSITIVE)
    read = "import pickle, sys, squall.builders.distributed.plan.stages; pickle.load(sys.stdin.buffer).components; "
    says = [sys.executable, "-c", read + "print('networkx' in sys.modules)"]
    assert subprocess.run(says, input=sent, capture_output=True, check=True).stdout == b"False\n"
    assert pickle.loads(sent) == TRANSITIVE
    assert list(pickle.loads(sent).graph) == list(TRANSITIVE.graph)


def test_the_graph_cannot_be_changed() -> None:
    with pytest.raises(networkx.NetworkXError):
        TRANSITIVE.graph.add_node("more")


def test_consumers_have_the_port() -> None:
    assert TRANSITIVE.consumers["match"] == (("join", 0), ("join", 1))
    assert TRANSITIVE.consumers["unique"] == (("match", 1), ("end", 0))
    assert TRANSITIVE.consumers["end"] == ()


def test_widths() -> None:
    assert TRANSITIVE.widths == {"read": 4, "match": 2, "join": 3, "emit": 4, "unique": 4, "end": 4}


@pytest.mark.parametrize(
    ("op", "inputs", "width"),
    [
        (Match((P, None, Q)), ["read"], 0),
        (Match((0, 1, 0)), ["read"], 2),
        (Unit(), [], 0),
        (AntiJoin(((0, 0),)), ["read", "match"], 4),
        (LeftJoin(((0, 0),), (0, 1, 3)), ["match", "match"], 3),
        (Union(), ["match", "match"], 2),
        (Project((1, None, 1)), ["match"], 3),
        (TableFunction("urn:f", (), 2), ["match"], 4),
        (Group((1,), (Aggregate("count"), Aggregate("sum", Column(0)))), ["match"], 3),
        (Slice(), ["match"], 2),
        (TransitiveClosure(), ["match"], 2),
        (Select(("x",), (1,)), ["match"], 3),
        (Update(((None, 0, P, 1),)), ["match"], 4),
        (Condition(EQUAL), ["match"], 2),
        (Extend(NOW), ["match"], 3),
        (Distinct(2), ["match"], 2),
        (Join((), (0,)), ["match", "match"], 1),
        (MultiwayJoin(((0,), (1,), (1,)), (0, 1, 5)), ["match"] * 3, 3),
        (Construct((P,)), ["match"], 2),
    ],
)
def test_width_of(op: Operator, inputs: Sequence[str], width: int) -> None:
    assert Plan((READ, node("match", Match((0, P, 1)), "read"), node("it", op, *inputs))).widths["it"] == width


def test_components_in_topological_order() -> None:
    assert TRANSITIVE.components == (("read",), ("match", "join", "emit", "unique"), ("end",))


def test_components_that_do_not_depend_on_each_other_are_in_the_order_of_the_plan() -> None:
    matches = [node(f"m{number}", Match((0, P, None)), "read") for number in (3, 1, 2)]
    plan = Plan((READ, *matches, node("end", Sink())))
    assert plan.components == (("read",), ("m3",), ("m1",), ("m2",), ("end",))


def test_nodes_behind_a_negation_are_retractable() -> None:
    assert TRANSITIVE.retractable == frozenset()
    assert negating(feedback=False).retractable == {"anti", "emit", "unique", "end"}


@pytest.mark.parametrize(("timed", "problems"), [(True, {"it", "end"}), (False, set())])
def test_nodes_behind_a_time_dependent_node_are_retractable(timed: bool, problems: set[str]) -> None:
    match = node("match", Match((0, P, 1)), "read")
    plan = Plan((READ, match, node("it", Extend(NOW, timed), "match"), node("end", Sink(), "it")))
    assert plan.retractable == problems


@pytest.mark.parametrize(
    "op",
    [LeftJoin(((0, 0),), (0, 1, 3)), Group((0,), ()), Slice()],
    ids=lambda op: type(op).__name__,
)
def test_nodes_behind_groups_and_slices_are_retractable(op: Operator) -> None:
    match = node("match", Match((0, P, 1)), "read")
    inputs = ["match"] * (2 if isinstance(op, LeftJoin) else 1)
    plan = Plan((READ, match, node("it", op, *inputs), node("end", Sink(), "it")))
    assert plan.retractable == {"it", "end"}


@pytest.mark.parametrize(
    ("source", "shrinks"),
    [
        (Source(), False),
        (Source("", SlidingWindow(10), (("urn:s", HoppingWindow(10, 5)),)), False),
        (Source("", CountWindow(3)), True),
        (Source("", SlidingWindow(10), (("urn:s", CountWindow(3)),)), True),
        (Source("urn:s", removals=True), True),
    ],
)
def test_scans_may_be_retractable(source: Source, shrinks: bool) -> None:
    read = Node("read", Scan(source))
    other = Node("other", Scan(Source("urn:other")))
    plan = Plan((read, other, node("match", Match((0, P, 1)), "read"), node("end", Sink(), "match")))
    assert plan.retractable == ({"read", "match", "end"} if shrinks else set())


def test_all_that_is_read_is_retractable_where_a_rule_updates() -> None:
    plan = Plan((READ, MATCH_ALONE, node("gone", Update(((None, 0, P, 1),)), "match"), node("end", Sink())))
    assert check(plan).retractable == {"read", "match", "gone"}


# Each rule broken once


def test_rule_1_ids_are_unique() -> None:
    assert complaints(READ, READ, node("end", Sink())) == ["the id `read` occurs twice"]


def test_rule_1_inputs_exist() -> None:
    assert complaints(READ, node("end", Sink(), "away")) == ["`end` reads `away`, which does not exist"]


@pytest.mark.parametrize(
    ("op", "count"),
    [
        (Scan(Source()), 1), (Unit(), 1), (Match((0, P, 1)), 0), (Join((), ()), 1), (Join((), ()), 3),
        (AntiJoin(()), 1), (Condition(EQUAL), 2), (Extend(None), 0), (Distinct(1), 0), (Construct((P, P, P)), 2),
        (LeftJoin((), ()), 1), (Union(), 0), (Project(()), 2), (TableFunction("f", (), 1), 0), (Group((), ()), 2),
        (Slice(), 2),
        (TransitiveClosure(), 2), (Select((), ()), 0), (Update(), 0), (MultiwayJoin(((), ()), ()), 2),
    ],
)  # fmt: skip
def test_rule_2_every_operator_has_its_number_of_inputs(op: Operator, count: int) -> None:
    broken = node("it", op, *["read"] * count)
    assert complaints(READ, broken, node("end", Sink(), "it")) == [f"`it` has {count} inputs"]


@pytest.mark.parametrize("on", [((0,), (0,)), ((0,),) * 4, ((0,), (0, 1), (0,))], ids=["fewer", "more", "longer"])
def test_rule_2_every_input_of_a_join_has_its_key(on: tuple[tuple[int, ...], ...]) -> None:
    broken = node("it", MultiwayJoin(on, (0,)), *["match"] * 3)
    assert complaints(READ, MATCH_ALONE, broken, node("end", Sink(), "it")) == [
        "`it` has not a key of the same length for each input"
    ]


def test_rule_3_inputs_are_listed_first() -> None:
    plan = (node("match", Match((0, P, 1)), "read"), READ, node("end", Sink(), "match"))
    assert complaints(*plan) == ["`match` is listed before its input `read`"]


def test_rule_3_a_node_that_reads_itself_is_no_dag() -> None:
    plan = (READ, node("it", Distinct(3), "read", "it"), node("end", Sink(), "it"))
    assert complaints(*plan) == ["`it` is listed before its input `it`"]


def test_rule_3_feedback_may_point_back() -> None:
    again = Node("it", Distinct(3), (Input("read"), Input("it", feedback=True)))
    check(Plan((READ, again, node("end", Sink(), "it"))))


@pytest.mark.parametrize(
    ("op", "expected_problem"),
    [
        (Match((0, P, 2)), ["`it` fills column 2 of 2"]),
        (Join(((2, 0),), ()), ["`it` joins input 1 by column 2 of 2"]),
        (Join(((0, 3),), ()), ["`it` joins input 2 by column 3 of 2"]),
        (Join((), (0, 4)), ["`it` outputs column 4 of 4"]),
        (Join((), (-1,)), ["`it` outputs column -1 of 4"]),
        (MultiwayJoin(((0,), (1,), (2,)), ()), ["`it` joins input 3 by column 2 of 2"]),
        (MultiwayJoin(((0,), (0,), (0,)), (0, 6)), ["`it` outputs column 6 of 6"]),
        (AntiJoin(((0, 2),)), ["`it` joins input 2 by column 2 of 2"]),
        (AntiJoin(((5, 1),)), ["`it` joins input 1 by column 5 of 2"]),
        (Condition(Invoke("f", (Column(0), Invoke("g", (Column(2),))))), ["`it` reads column 2 of 2"]),
        (Extend(Column(9)), ["`it` reads column 9 of 2"]),
        (Construct((0, P, 3)), ["`it` reads column 3 of 2"]),
        (Distinct(3), ["`it` compares column 2 of 2"]),
        (LeftJoin(((0, 3),), (0, 4)), ["`it` joins input 2 by column 3 of 2", "`it` outputs column 4 of 4"]),
        (LeftJoin((), (0,), Invoke("f", (Column(1),))), ["`it` reads column 1 of 1"]),
        (Project((None, 2)), ["`it` outputs column 2 of 2"]),
        (TableFunction("f", (Column(2),), 1), ["`it` reads column 2 of 2"]),
        (Group((2,), ()), ["`it` reads column 2 of 2"]),
        (Group((), (Aggregate("sum", Column(3)),)), ["`it` reads column 3 of 2"]),
        (Slice(((Column(2), False),)), ["`it` reads column 2 of 2"]),
        (Select(("x", "y"), (0, 2)), ["`it` reads column 2 of 2"]),
    ],
)  # fmt: skip
def test_rule_4_columns_exist(op: Operator, expected_problem: list[str]) -> None:
    inputs = ["match"] * max(op.arity[0], 1)
    match = node("match", Match((0, P, 1)), "read")
    assert complaints(READ, match, node("it", op, *inputs), node("end", Sink(), "it")) == expected_problem


def test_rule_4_updates_have_their_columns() -> None:
    update = node("it", Update(((None, 0, P, 3),), ((2, 0, P, 1),)), "match")
    plan = (READ, MATCH_ALONE, update, node("end", Sink()))
    assert complaints(*plan) == ["`it` reads column 3 of 2", "`it` reads column 2 of 2"]


def test_rule_4_grouping_columns_exist() -> None:
    unique = Node("unique", Distinct(3), (Input("read", (0, 4)),))
    assert complaints(READ, unique, END) == ["the edge from `read` to `unique` is partitioned by column 4 of 4"]


def test_rule_4_inputs_of_a_union_are_equally_wide() -> None:
    plan = (READ, MATCH_ALONE, node("it", Union(), "match", "read"), node("end", Sink(), "it"))
    assert complaints(*plan) == ["`it` combines rows of 2 and 4 columns"]


def test_rule_4_a_closure_is_of_pairs() -> None:
    plan = (READ, node("it", TransitiveClosure(), "read"), node("end", Sink(), "it"))
    assert complaints(*plan) == ["`it` closes rows of 4 columns, not pairs"]


def test_rule_5_there_is_a_sink() -> None:
    assert complaints(READ) == ["it has no Sink node"]


def test_there_may_be_a_sink_for_each_output_specification() -> None:
    plan = Plan((READ, node("end", Sink(), "read"), node("other", Sink("dstream"), "read")))
    assert [op.output for _, op in check(plan).sinks] == ["istream", "dstream"]


def test_rule_6_a_feed_is_not_fed_by_itself() -> None:
    """A stream is derived from itself."""
    emit = Node("emit", Construct((0, P, 1)), (Input("match"),))
    feed = node("feed", DerivedStream(Source("urn:s")), "unique")
    match = replace(MATCH, inputs=(*MATCH.inputs, Input("feed", feedback=True)))
    problems = complaints(READ, match, emit, UNIQUE, feed, END)
    assert problems == ["`feed` derives a stream from what depends on it: match, emit, unique, feed"]


def test_rule_5_deliver_feeds_nothing() -> None:
    plan = (READ, node("end", Sink(), "read"), node("more", Distinct(3), "end"))
    assert complaints(*plan) == ["`end` is a sink, yet feeds `more`"]


def test_rule_5_an_update_feeds_deliver_alone() -> None:
    update = node("it", Update((), ((None, 0, P, 1),)), "match")
    assert check(Plan((READ, MATCH_ALONE, update, node("end", Sink(), "it")))).widths["it"] == 4
    plan = (READ, MATCH_ALONE, update, node("more", Distinct(3), "it"), node("end", Sink(), "more"))
    assert complaints(*plan) == ["`it` updates graphs, yet feeds `more`"]


def test_rule_6_no_cycle_through_a_negation() -> None:
    assert complaints(*negating(feedback=True).nodes) == [
        "`anti` negates what depends on it: right, anti, emit, unique"
    ]


def test_rule_6_a_recursion_may_pass_the_left_side_of_a_negation() -> None:
    removals = node("gone", Match((0, Q, 1)), "read")
    anti = Node("anti", AntiJoin(((0, 0),)), (Input("join", (0,)), Input("gone", (0,))))
    check(Plan((READ, MATCH, removals, JOIN, anti, replace(EMIT, inputs=(Input("anti"),)), UNIQUE, END)))


def test_rule_6_no_cycle_through_a_timed_node() -> None:
    timed = Node("timed", Condition(EQUAL, timed=True), (Input("join"),))
    plan = (READ, MATCH, JOIN, timed, replace(EMIT, inputs=(Input("timed"),)), UNIQUE, END)
    assert complaints(*plan) == ["`timed` takes the time of what depends on it: match, join, timed, emit, unique"]


@pytest.mark.parametrize(
    ("op", "expected_problem"), [(Group((0, 1, 2), ()), "groups"), (Slice(limit=1), "slices")], ids=["Group", "Slice"]
)
def test_rule_6_no_cycle_through_what_looks_at_all_rows(op: Operator, expected_problem: str) -> None:
    plan = (READ, MATCH, JOIN, node("it", op, "join"), replace(EMIT, inputs=(Input("it"),)), UNIQUE, END)
    assert complaints(*plan) == [f"`it` {expected_problem} what depends on it: match, join, it, emit, unique"]


@pytest.mark.parametrize("side", [0, 1])
def test_rule_6_no_cycle_through_the_right_side_of_a_left_join(side: int) -> None:
    inputs = ["join", "other"] if side == 0 else ["other", "join"]
    other = node("other", Match((0, Q, 1, 2)), "read")
    left = node("it", LeftJoin(((0, 0),), (0, 1, 2)), *inputs)
    plan = (READ, other, MATCH, JOIN, left, replace(EMIT, inputs=(Input("it"),)), UNIQUE, END)
    if side == 0:
        check(Plan(plan))
    else:
        assert complaints(*plan) == ["`it` looks for the absence of what depends on it: match, join, it, emit, unique"]


def test_rule_7_a_closure_is_as_good() -> None:
    match = replace(MATCH, inputs=(Input("read"), Input("emit", feedback=True)))
    closure = node("closure", TransitiveClosure(), "match")
    check(Plan((READ, match, closure, node("emit", Construct((0, P, 1)), "closure"), UNIQUE, END)))


def test_rule_8_what_a_closure_reads_only_grows() -> None:
    read = Node("read", Scan(Source(removals=True)))
    plan = (read, MATCH_ALONE, node("it", TransitiveClosure(), "match"), node("end", Sink(), "it"))
    assert complaints(*plan) == ["`it` reads rows that may be retracted: `match`"]


def test_rule_8_what_a_multiway_join_reads_only_grows() -> None:
    removed = node("removed", Scan(Source(removals=True)))
    rows = node("rows", Match((0, P, 1)), "removed")
    it = node("it", MultiwayJoin(((0,),) * 3, (0,)), "match", "rows", "match")
    assert complaints(READ, MATCH_ALONE, removed, rows, it, node("end", Sink(), "it")) == [
        "`it` reads rows that may be retracted: `rows`"
    ]


def test_rule_7_every_cycle_passes_a_distinct() -> None:
    match = replace(MATCH, inputs=(Input("read"), Input("emit", feedback=True)))
    assert complaints(READ, match, JOIN, EMIT, UNIQUE, END) == [
        "the cycle match -> join -> emit has no Distinct: it would never end"
    ]


def grouped(op: Operator, *keys: tuple[int, ...] | None) -> tuple[Node, ...]:
    """Returns a plan in which an operator over pairs groups its inputs by these columns."""
    it = Node("it", op, tuple(Input("match", key) for key in keys))
    return (READ, MATCH_ALONE, it, node("end", Sink(), *([] if isinstance(op, Sink) else ["it"])))


BY_ORDER = Select(("x",), (0,), order=((Column(0), False),))
CROSSED = ((0, 1), (1, 0))


@pytest.mark.parametrize(
    ("op", "good", "bad", "expected_problem"),
    [
        (Join(CROSSED, ()), [(0,), (1,)], [(0,), (0,)], "is partitioned by columns [0] and [0], no columns that it"),
        (Join(CROSSED, ()), [(1,), (0,)], [(1,), ()], "is partitioned by columns [1] and [], no columns that it"),
        (Join((), ()), [None, ()], [(0,), (0,)], "is partitioned by columns [0] and [0], no columns that it"),
        (LeftJoin(CROSSED, ()), [(1, 0), (0, 1)], [(1, 0), (1, 0)], "is partitioned by columns [1, 0] and [1, 0]"),
        (AntiJoin(((1, 1),)), [(1,), (1,)], [None, (1,)], "is partitioned by columns [] and [1], no columns that it"),
        (MultiwayJoin(((0,), (1,), (0,)), ()), [(0,), (1,), (0,)], [(0,), (1,), (1,)], "is partitioned by columns [0]"),
        (MultiwayJoin(((0,), (1,), (0,)), ()), [None, (), ()], [(0,), (1,), ()], "is partitioned by columns [0]"),
        (Group((0,), ()), [(0,)], [(0, 1)], "is partitioned by columns [0, 1], where its keys are [0]"),
        (Slice(keys=(1, 0)), [(0,)], None, ""),
        (Slice(keys=(1,)), [()], [(0,)], "is partitioned by columns [0], where its keys are [1]"),
        (TransitiveClosure(), [None], [(0,)], "needs a single partition"),
        (Update((), ((None, 0, P, 1),)), [()], [(1,)], "needs a single partition"),
        (Distinct(2), [(1, 0), (1, 0)], [(1, 0), (0, 1)], "partitions the rows of `match` by columns [1, 0], and "),
        (Distinct(1), [(0,)], [(0, 1)], "is partitioned by column 1, yet compares 1"),
        (Condition(EQUAL, timed=True), [(0, 1)], None, ""),
        (Condition(EQUAL), [None], None, ""),
    ],
)  # fmt: skip
def test_rule_9_rows_that_have_to_meet_are_not_parted(
    op: Operator, good: Sequence[tuple[int, ...]], bad: Sequence[tuple[int, ...]] | None, expected_problem: str
) -> None:
    check(Plan(grouped(op, *good)))
    if bad is not None:
        (problems,) = complaints(*grouped(op, *bad))
        assert problems.startswith(f"`it` {expected_problem}")


def output_nodes(end: Operator, *results: tuple[Operator, tuple[int, ...] | None]) -> tuple[Node, ...]:
    """Returns a plan that outputs the results of operators over pairs, or reads them as a stream.

    results: the operators, with their partitioning columns.
    """
    nodes = [node(f"made{number}", op, "match") for number, (op, _) in enumerate(results)]
    inputs = tuple(Input(item.id, columns) for item, (_, columns) in zip(nodes, results, strict=True))
    last = () if isinstance(end, Sink) else (node("end", Sink()),)
    return (READ, MATCH_ALONE, *nodes, Node("it", end, inputs), *last)


QUADS, ATOMS = Construct((QUAD_TAG, P, 0, P, 1)), Construct((relation_tag(P), 0, 1))


@pytest.mark.parametrize("end", [Sink(), DerivedStream(Source("urn:s"))])
def test_rule_9_rows_that_may_be_equal_are_output_in_one_partition(end: Operator) -> None:
    check(
        Plan(
            output_nodes(
                end, (Construct((0, P, 1)), (0,)), (Construct((1, Q, 0)), (0,)), (QUADS, (2,)), (ATOMS, (1, 2))
            )
        )
    )
    problems = complaints(*output_nodes(end, (Construct((0, P, 1)), (0,)), (QUADS, (2,)), (Construct((1, Q, 0)), (2,))))
    assert problems == [
        "`it` partitions the rows of `made0` by columns [0], and those of `made2` by [2], "
        "though rows of both may be equal"
    ]
    assert complaints(*output_nodes(end, (Construct((0, P, 1)), (3,)))) == [
        "`it` partitions the rows of `made0` by the last column, in which equal rows may differ"
    ]


CHANGE = Report("change")
HIDDEN = Select(("x",), (0,), ("q",), order=((Column(1), False),))
"""A Select whose order is not part of the output."""


def test_rule_9_a_sequence_is_output_in_a_single_partition() -> None:
    check(Plan(output_nodes(Sink("istream", report=CHANGE), (HIDDEN, (1,)))))
    check(Plan(output_nodes(Sink("rstream"), (HIDDEN, (1,)))))
    check(Plan(output_nodes(Sink("rstream", report=CHANGE), (BY_ORDER, (1,)))))
    check(Plan(output_nodes(Sink("rstream", report=CHANGE), (HIDDEN, ()), (Construct((0, P, 1)), (0,)))))
    expected_problem = "`it` needs the rows of `made0` in a single partition, since their order, or all of them, count"
    assert complaints(*output_nodes(Sink("rstream", report=CHANGE), (HIDDEN, (1,)))) == [expected_problem]
    assert complaints(*output_nodes(DerivedStream(Source("urn:s", CountWindow(3))), (Construct((0, P, 1)), (0,)))) == [
        expected_problem
    ]
    assert complaints(*output_nodes(DerivedStream(Source("urn:s"), report=CHANGE), (Construct((0, P, 1)), (0,)))) == [
        expected_problem
    ]


def test_rule_10_those_that_count_a_stream_count_the_same() -> None:
    counted, timed = DerivedStream(Source("urn:s", CountWindow(3))), DerivedStream(Source("urn:s", SlidingWindow(3)))
    result = (node("emit", Construct((0, P, 1)), "match"), node("unique", Distinct(3), "emit"))
    nodes = (READ, MATCH_ALONE, *result, node("other", Distinct(4), "emit"), node("one", counted, "unique"))
    check(Plan((*nodes, node("two", timed, "other"), END)))
    check(Plan((*nodes, node("two", counted, "unique"), END)))
    problems = complaints(*nodes, node("two", counted, "other"), END)
    assert problems == ["`one` and `two` follow one stream, yet have different inputs"]


def test_all_violations_are_reported_at_once() -> None:
    join = replace(JOIN, op=Join(((7, 0),), (0, 9)))
    emit = replace(EMIT, op=Construct((0, P, 1)))
    assert complaints(READ, MATCH, join, emit, UNIQUE) == [
        "`join` joins input 1 by column 7 of 2",
        "`join` outputs column 9 of 4",
        "it has no Sink node",
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_components_come_in_topological_order_and_else_in_that_of_the_plan(edges: list[tuple[int, int]]) -> None:
    def reads(number: int) -> tuple[Input, ...]:
        return tuple(Input(str(other), feedback=other >= number) for other, edge in edges if edge == number)

    plan = Plan(tuple(Node(str(number), Distinct(1), reads(number)) for number in range(10)))
    parts = networkx.condensation(plan.graph)
    order = networkx.lexicographical_topological_sort(parts, key=lambda part: min(parts.nodes[part]["members"]))
    assert plan.components == tuple(tuple(sorted(parts.nodes[part]["members"])) for part in order)
