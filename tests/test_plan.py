"""What a plan is as data, what it tells of itself, and each rule of `check` broken once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace

import networkx
import pytest

from squall.errors import PlannerError
from squall.operators import AntiJoin, Apply, Column, Deliver, Distinct, Emit, Extend, Join, Match, Operator, Read, Unit
from squall.operators import Test as Condition
from squall.plan import Input, Node, Plan, check
from squall.rdf import iri
from squall.system import Source

P, Q = iri("urn:p"), iri("urn:q")
NOW = Apply("urn:x-squall:jena:now", ())
EQUAL = Apply("urn:x-squall:jena:equal", (Column(0), Column(1)))

READ = Node("read", Read(Source()))
MATCH = Node("match", Match((0, P, 1)), (Input("read"), Input("unique", feedback=True)))
JOIN = Node("join", Join(((1, 0),), (0, 1, 3)), (Input("match", (1,)), Input("match", (0,))))
EMIT = Node("emit", Emit((0, P, 2), rules=("closure",)), (Input("join"),))
UNIQUE = Node("unique", Distinct(3), (Input("emit", (0,)),))
END = Node("end", Deliver(), (Input("unique", (0,)),))
CLOSURE = Plan((READ, MATCH, JOIN, EMIT, UNIQUE, END))
"""``(?x p ?y) (?y p ?z) -> (?x p ?z)``"""


def node(id: str, op: Operator, *inputs: str) -> Node:
    return Node(id, op, tuple(map(Input, inputs)))


def negating(*, feedback: bool) -> Plan:
    """``(?x p ?y) noValue(?x q ?y) -> (?x q ?y)``, what it makes read again or not."""
    again = (Input("unique", feedback=True),) if feedback else ()
    return Plan(
        (
            READ,
            node("left", Match((0, P, 1)), "read"),
            Node("right", Match((0, Q, 1)), (Input("read"), *again)),
            node("anti", AntiJoin(((0, 0), (1, 1))), "left", "right"),
            node("emit", Emit((0, Q, 1)), "anti"),
            UNIQUE,
            END,
        )
    )


def complaints(*nodes: Node) -> list[str]:
    """What `check` says of a plan of these nodes, line by line."""
    with pytest.raises(PlannerError) as caught:
        check(Plan(nodes))
    first, *lines = str(caught.value).splitlines()
    assert first == "planning error: the plan is not well formed:"
    return [line.strip() for line in lines]


# As data


def test_a_plan_that_obeys_is_handed_back() -> None:
    assert check(CLOSURE) is CLOSURE
    check(negating(feedback=False))


def test_a_plan_is_frozen_and_its_planner_does_not_count() -> None:
    with pytest.raises(FrozenInstanceError):
        CLOSURE.nodes = ()  # type: ignore[misc]
    assert replace(CLOSURE, planner="mine") == CLOSURE
    assert hash(replace(CLOSURE, planner="mine")) == hash(CLOSURE)
    assert Plan(CLOSURE.nodes[1:]) != CLOSURE


def test_the_rules_that_an_emit_serves_do_not_count() -> None:
    assert Emit((0, P, 2), rules=("a",)) == Emit((0, P, 2), rules=("b", "c"))
    assert Emit((0, P, 2), rules=("a",)) != Emit((2, P, 0), rules=("a",))


def test_the_graph_has_the_operators_the_inputs_and_the_edges() -> None:
    graph = CLOSURE.graph
    assert list(graph) == ["read", "match", "join", "emit", "unique", "end"]
    assert graph.nodes["join"] == {"op": JOIN.op, "inputs": JOIN.inputs}
    assert graph.edges["emit", "unique"] == {"columns": (0,), "feedback": False}
    assert graph.edges["unique", "match"] == {"columns": None, "feedback": True}
    assert graph.number_of_edges("match", "join") == 1, "a self-join is in `inputs`, not in the edges"


def test_the_graph_cannot_be_changed() -> None:
    with pytest.raises(networkx.NetworkXError):
        CLOSURE.graph.add_node("more")


def test_consumers_tell_the_port() -> None:
    assert CLOSURE.consumers["match"] == (("join", 0), ("join", 1))
    assert CLOSURE.consumers["unique"] == (("match", 1), ("end", 0))
    assert CLOSURE.consumers["end"] == ()


def test_widths() -> None:
    assert CLOSURE.widths == {"read": 3, "match": 2, "join": 3, "emit": 4, "unique": 4, "end": 4}


@pytest.mark.parametrize(
    ("op", "inputs", "width"),
    [
        (Match((P, None, Q)), ["read"], 0),
        (Match((0, 1, 0)), ["read"], 2),
        (Unit(), [], 0),
        (AntiJoin(((0, 0),)), ["read", "match"], 3),
        (Condition(EQUAL), ["match"], 2),
        (Extend(NOW), ["match"], 3),
        (Distinct(2), ["match"], 2),
        (Join((), (0,)), ["match", "match"], 1),
        (Emit((P,)), ["match"], 2),
    ],
)
def test_width_of(op: Operator, inputs: Sequence[str], width: int) -> None:
    assert Plan((READ, node("match", Match((0, P, 1)), "read"), node("it", op, *inputs))).widths["it"] == width


def test_components_in_topological_order() -> None:
    assert CLOSURE.components == (("read",), ("match", "join", "emit", "unique"), ("end",))


def test_components_that_do_not_depend_on_each_other_are_in_the_order_of_the_plan() -> None:
    matches = [node(f"m{number}", Match((0, P, None)), "read") for number in (3, 1, 2)]
    plan = Plan((READ, *matches, node("end", Deliver())))
    assert plan.components == (("read",), ("m3",), ("m1",), ("m2",), ("end",))


def test_what_lies_behind_a_negation_is_retractable() -> None:
    assert CLOSURE.retractable == frozenset()
    assert negating(feedback=False).retractable == {"anti", "emit", "unique", "end"}


@pytest.mark.parametrize(("timed", "found"), [(True, {"it", "end"}), (False, set())])
def test_what_lies_behind_a_timed_node_is_retractable(timed: bool, found: set[str]) -> None:
    match = node("match", Match((0, P, 1)), "read")
    plan = Plan((READ, match, node("it", Extend(NOW, timed), "match"), node("end", Deliver(), "it")))
    assert plan.retractable == found


# Each rule broken once


def test_rule_1_ids_are_unique() -> None:
    assert complaints(READ, READ, node("end", Deliver())) == ["the id `read` occurs twice"]


def test_rule_1_inputs_exist() -> None:
    assert complaints(READ, node("end", Deliver(), "away")) == ["`end` reads `away`, which does not exist"]


@pytest.mark.parametrize(
    ("op", "count"),
    [
        (Read(Source()), 1), (Unit(), 1), (Match((0, P, 1)), 0), (Join((), ()), 1), (Join((), ()), 3),
        (AntiJoin(()), 1), (Condition(EQUAL), 2), (Extend(None), 0), (Distinct(1), 0), (Emit((P, P, P)), 2),
    ],
)  # fmt: skip
def test_rule_2_every_operator_has_its_number_of_inputs(op: Operator, count: int) -> None:
    broken = node("it", op, *["read"] * count)
    assert complaints(READ, broken, node("end", Deliver(), "it")) == [f"`it` has {count} inputs"]


def test_rule_3_inputs_are_listed_first() -> None:
    plan = (node("match", Match((0, P, 1)), "read"), READ, node("end", Deliver(), "match"))
    assert complaints(*plan) == ["`match` is listed before its input `read`"]


def test_rule_3_a_node_that_reads_itself_is_no_dag() -> None:
    plan = (READ, node("it", Distinct(3), "read", "it"), node("end", Deliver(), "it"))
    assert complaints(*plan) == ["`it` is listed before its input `it`"]


def test_rule_3_feedback_may_point_back() -> None:
    again = Node("it", Distinct(3), (Input("read"), Input("it", feedback=True)))
    check(Plan((READ, again, node("end", Deliver(), "it"))))


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (Match((0, P, 2)), ["`it` fills column 2 of 2"]),
        (Join(((2, 0),), ()), ["`it` joins on the left by column 2 of 2"]),
        (Join(((0, 3),), ()), ["`it` joins on the right by column 3 of 2"]),
        (Join((), (0, 4)), ["`it` keeps column 4 of 4"]),
        (Join((), (-1,)), ["`it` keeps column -1 of 4"]),
        (AntiJoin(((0, 2),)), ["`it` joins on the right by column 2 of 2"]),
        (AntiJoin(((5, 1),)), ["`it` joins on the left by column 5 of 2"]),
        (Condition(Apply("f", (Column(0), Apply("g", (Column(2),))))), ["`it` computes with column 2 of 2"]),
        (Extend(Column(9)), ["`it` computes with column 9 of 2"]),
        (Emit((0, P, 3)), ["`it` emits column 3 of 2"]),
        (Distinct(3), ["`it` compares column 2 of 2"]),
    ],
)  # fmt: skip
def test_rule_4_columns_exist(op: Operator, said: list[str]) -> None:
    inputs = ["match"] * (2 if isinstance(op, Join | AntiJoin) else 1)
    match = node("match", Match((0, P, 1)), "read")
    assert complaints(READ, match, node("it", op, *inputs), node("end", Deliver(), "it")) == said


def test_rule_4_grouping_columns_exist() -> None:
    unique = Node("unique", Distinct(3), (Input("read", (0, 3)),))
    assert complaints(READ, unique, END) == ["the edge from `read` to `unique` groups by column 3 of 3"]


@pytest.mark.parametrize("count", [0, 2])
def test_rule_5_exactly_one_deliver(count: int) -> None:
    ends = [node(f"end{number}", Deliver(), "read") for number in range(count)]
    assert complaints(READ, *ends) == [f"it has {count} Deliver nodes, not one"]


def test_rule_5_deliver_feeds_nothing() -> None:
    plan = (READ, node("end", Deliver(), "read"), node("more", Distinct(3), "end"))
    assert complaints(*plan) == ["`end` delivers, yet feeds `more`"]


def test_rule_6_no_cycle_through_a_negation() -> None:
    assert complaints(*negating(feedback=True).nodes) == [
        "`anti` negates what depends on it: right, anti, emit, unique"
    ]


def test_rule_6_a_recursion_may_pass_the_left_side_of_a_negation() -> None:
    gone = node("gone", Match((0, Q, 1)), "read")
    anti = Node("anti", AntiJoin(((0, 0),)), (Input("join", (0,)), Input("gone", (0,))))
    check(Plan((READ, MATCH, gone, JOIN, anti, replace(EMIT, inputs=(Input("anti"),)), UNIQUE, END)))


def test_rule_6_no_cycle_through_a_timed_node() -> None:
    timed = Node("timed", Condition(EQUAL, timed=True), (Input("join"),))
    plan = (READ, MATCH, JOIN, timed, replace(EMIT, inputs=(Input("timed"),)), UNIQUE, END)
    assert complaints(*plan) == ["`timed` takes the time of what depends on it: match, join, timed, emit, unique"]


def test_rule_7_every_cycle_passes_a_distinct() -> None:
    match = replace(MATCH, inputs=(Input("read"), Input("emit", feedback=True)))
    assert complaints(READ, match, JOIN, EMIT, UNIQUE, END) == [
        "the cycle match -> join -> emit has no Distinct: it would never end"
    ]


def test_all_violations_are_given_at_once() -> None:
    join = replace(JOIN, op=Join(((7, 0),), (0, 9)))
    emit = replace(EMIT, op=Emit((0, P, 1)))
    assert complaints(READ, MATCH, join, emit, UNIQUE, END, node("end2", Deliver())) == [
        "`join` joins on the left by column 7 of 2",
        "`join` keeps column 9 of 4",
        "it has 2 Deliver nodes, not one",
    ]
