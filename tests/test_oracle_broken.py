"""Mutation tests: the oracle detects a broken operator of each kind on generated programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import squall
from squall.builders.runtime.multiway_join import with_multiway_joins
from squall.contracts import Planner
from squall.functions.jena import function_iri
from squall.model import Construct, Pattern, Source, System, Variable
from squall.model.windows import LANDMARK, SlidingWindow
from squall.plan import Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import (
    AntiJoin,
    At,
    ConstantFilter,
    Consume,
    DerivedStream,
    Dilate,
    Distinct,
    Erode,
    Extend,
    Gate,
    Group,
    Invoke,
    Iteration,
    Join,
    LeftJoin,
    Match,
    MultiwayJoin,
    Operator,
    Project,
    Scan,
    Schedule,
    Select,
    SequenceJoin,
    Sink,
    Slice,
    TableFunction,
    TransitiveClosure,
    Union,
    Unit,
    Update,
)
from squall.plan.operators import Filter as Condition
from squall.rdf import Event
from squall.testing import assert_as_oracle, stream, term
from squall.testing.strategies import ALL, CORE, LITERALS, NODES, event_streams, systems
from tests.laws import plan_with_shared_constants
from tests.test_broken_operators import PAIRED, Z, in_consumption, in_iteration, in_sequence

Change = Callable[[Any], Operator]


def _loose(match: Match) -> Match:
    """Ignores the last cell of the pattern, if that is no variable."""
    last = match.cells[-1]
    return match if isinstance(last, int) else replace(match, cells=(*match.cells[:-1], None))


def _landmark(read: Scan) -> Scan:
    return Scan(replace(read.source, window=LANDMARK, windows=()))


def _true(test: Condition) -> Condition:
    return Condition(Invoke(function_iri("isLiteral"), (LITERALS[0],)))


def _counting(group: Group) -> Group:
    return replace(group, aggregates=tuple(replace(aggregate, kind="count") for aggregate in group.aggregates))


def _turned(template: tuple[Any, ...]) -> tuple[Any, ...]:
    return (template[0], template[1], template[0])


BROKEN: dict[type, tuple[str, Change]] = {
    Scan: ("windows", _landmark),
    Match: ("", _loose),
    Join: ("", lambda op: replace(op, on=op.on[:-1])),
    LeftJoin: ("optional", lambda op: Join(op.on, op.keep)),
    AntiJoin: ("negation", lambda op: replace(op, on=())),
    Project: ("union subqueries distinct", lambda op: Project((op.columns[0],) * len(op.columns))),
    Condition: ("", _true),
    Extend: ("", lambda op: replace(op, expression=LITERALS[4])),
    TableFunction: ("table_functions", lambda op: replace(op, arguments=(LITERALS[0],))),
    Distinct: ("", lambda op: Distinct(max(op.by - 1, 0))),
    Group: ("grouping", _counting),
    Slice: ("slice", lambda op: replace(op, limit=None)),
    ops.Construct: ("", lambda op: replace(op, template=_turned(op.template))),
    Select: ("", lambda op: replace(op, columns=op.columns[:1] * len(op.columns))),
    Update: ("delete", lambda op: replace(op, deletes=op.inserts, inserts=op.deletes)),
    Sink: ("", lambda op: replace(op, output="rstream" if op.output == "istream" else "istream")),
}
"""The features that a program needs to have each kind of operator, and the change that breaks it."""


def _with(plan: Plan, change: Callable[[Node], Node]) -> Plan:
    return replace(plan, nodes=tuple(map(change, plan.nodes)))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_operator_is_detected(kind: type) -> None:
    needed, change = BROKEN[kind]
    features = CORE | {"select"} | set(needed.split())

    def spoilt(plan: Plan) -> Plan:
        return _with(plan, lambda node: replace(node, op=change(node.op)) if isinstance(node.op, kind) else node)

    _is_found_out(spoilt, features)


def test_a_union_without_its_last_branch_is_detected() -> None:
    def cut(node: Node) -> Node:
        return replace(node, inputs=node.inputs[:-1]) if isinstance(node.op, Union) else node

    _is_found_out(lambda plan: _with(plan, cut), CORE | {"select", "union"})


def test_a_missing_axiom_is_detected() -> None:
    def emptied(plan: Plan) -> Plan:
        units = [node.id for node in plan.nodes if isinstance(node.op, Unit)]
        reading = Scan(Source("urn:nothing"))
        return _with(plan, lambda node: replace(node, op=reading) if node.id in units else node)

    _is_found_out(emptied, CORE)


def test_a_closure_of_one_step_is_detected() -> None:
    """Only the rete planner makes a closure, of a transitive rule."""
    x, y, z = map(Variable, "xyz")
    p = term(":p")
    body, head = (Pattern(x, p, y), Pattern(y, p, z)), Construct((Pattern(x, p, z),))
    system, events = System(joinables=body, consequences=(head,)), stream("1 :a :p :b\n2 :b :p :c\n3 :c :p :d")
    _is_found_out_by_hand(system, events, TransitiveClosure, lambda op: Distinct(2))


def test_a_wrong_window_of_a_derived_stream_is_detected() -> None:
    x, y, p, q = Variable("x"), Variable("y"), term(":p"), term(":q")
    program_system = System(
        "made", joinables=(Pattern(x, p, y),), consequences=(Construct((Pattern(x, q, y),)),), reentrant=False
    )
    both, head = (Pattern(x, q, y), Pattern(y, q, x)), Construct((Pattern(y, term(":r"), y),))
    read = System("read", (Source("urn:s", SlidingWindow(3)),), both, consequences=(head,))
    system = System(subsystems=(System(subsystems=(program_system,), stream="urn:s"), read))
    events = stream("1 :a :p :b\n5 :b :p :a")
    _is_found_out_by_hand(system, events, DerivedStream, lambda op: replace(op, source=Source("urn:s")))


def test_a_wrong_constant_filter_is_detected() -> None:
    x, y, p = Variable("x"), Variable("y"), term(":p")
    rules = tuple(
        System(f"r{node}", joinables=(Pattern(x, p, y), Pattern(y, p, node)), consequences=(Construct((head,)),))
        for node in NODES
        for head in (Pattern(x, term(":q"), node),)
    )
    system, events = System(subsystems=rules), stream("1 :a :p :b\n2 :b :p :c\n3 :c :p :b")
    _is_found_out_by_hand(
        system, events, ConstantFilter, lambda op: replace(op, term=NODES[0]), plan_with_shared_constants
    )


def test_a_multiway_join_by_another_key_is_detected() -> None:
    """No planner makes one: builders put it in place of joins."""

    def plan(system: System) -> Plan:
        return with_multiway_joins(squall.plan(system))

    w, x, y, z = map(Variable, "wxyz")
    body = (Pattern(x, term(":p"), y), Pattern(x, term(":q"), z), Pattern(x, term(":r"), w))
    system = System(joinables=body, consequences=(Construct((Pattern(y, term(":s"), z),)),))
    events = stream("1 :a :p :b\n2 :a :q :c\n3 :a :r :d\n4 :e :r :a")
    _is_found_out_by_hand(system, events, MultiwayJoin, lambda op: replace(op, on=(*op.on[:-1], (1,))), plan)
    _is_found_out_by_hand(system, events, MultiwayJoin, lambda op: replace(op, keep=op.keep[::-1]), plan)


def test_a_broken_sequence_join_is_detected() -> None:
    """Programs that are drawn have no patterns over time (`tests/test_sequences.py` has)."""
    system, events = in_sequence(), stream("1 :a :p :b\n2 :b :q :c\n4 :b :q :d")
    _is_found_out_by_hand(system, events, SequenceJoin, lambda op: replace(op, selection="each"))
    _is_found_out_by_hand(system, events, SequenceJoin, lambda op: replace(op, min_gap=2))


def test_a_broken_iteration_is_detected() -> None:
    system, events = in_iteration(most=3), stream("1 :a :p :b\n2 :a :p :c\n4 :a :p :d\n5 :a :p :e")
    _is_found_out_by_hand(system, events, Iteration, lambda op: replace(op, again=None))
    _is_found_out_by_hand(system, events, Iteration, lambda op: replace(op, min_gap=2))


def test_a_broken_consumption_is_detected() -> None:
    system, events = in_consumption(keys=(Z,)), stream(PAIRED)
    _is_found_out_by_hand(system, events, Consume, lambda op: replace(op, keys=()))
    _is_found_out_by_hand(in_consumption(), events, Consume, lambda op: replace(op, keys=op.order))


def test_every_kind_is_broken() -> None:
    apart = {
        Union, Unit, TransitiveClosure, ConstantFilter, DerivedStream, MultiwayJoin, SequenceJoin, Iteration, Gate,
        Consume,
    }  # fmt: skip
    apart |= {Dilate, Erode, At, Schedule}  # tests/test_lars.py
    assert BROKEN.keys() | apart == set(get_args(Operator))


def _is_found_out_by_hand(
    system: System, events: list[Event], kind: type, change: Change, planner: str | Planner = "rete"
) -> None:
    plan = squall.plan(system, planner)
    assert any(isinstance(node.op, kind) for node in plan.nodes)
    assert_as_oracle(system, list(squall.run(plan, events)), events)
    spoilt = _with(plan, lambda node: replace(node, op=change(node.op)) if isinstance(node.op, kind) else node)
    with pytest.raises(AssertionError):
        assert_as_oracle(system, list(squall.run(spoilt, events)), events)


def _is_found_out(spoil: Callable[[Plan], Plan], features: frozenset[str]) -> None:
    """Returns whether an answer of the broken plan differs from the oracle's, within a few programs."""
    assert features <= ALL

    @settings(max_examples=4000, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(systems(features=features), event_streams(features=features))
    def law(system: System, events: list[Event]) -> None:
        plan = squall.plan(system, "greedy")
        assert_as_oracle(system, list(squall.run(spoil(plan), events)), events)

    with pytest.raises(AssertionError, match="the oracle misses"):
        law()
