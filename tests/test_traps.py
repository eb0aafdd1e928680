"""Defects of earlier systems that show in a plan. The others are cases (tests/cases/traps.case)."""

from __future__ import annotations

import subprocess
import sys

import pytest

import squall
from squall.errors import SquallError
from squall.functions import Function, register
from squall.model import Call, Construct, Pattern, System, Variable
from squall.model import Filter as Keep
from squall.plan import Plan
from squall.plan import operators as ops
from squall.plan.operators import Distinct, Extend, Filter, Join, Match
from squall.testing import assert_outputs, stream, term

PREFIX = "@prefix : <http://example.org/> .\n"


def _plan(*rules: str, planner: str = "rete") -> Plan:
    return squall.plan(_system(*rules), planner)


def _system(*rules: str) -> System:
    return squall.compile(PREFIX + "\n".join(rules) + "\n", lexer="jena")


def _count(plan: Plan, kind: type) -> int:
    return sum(isinstance(node.op, kind) for node in plan.nodes)


def test_trap_1_the_same_patterns_linked_otherwise_are_two_joins_over_one_match() -> None:
    plan = _plan("[g: (?x :p ?y) (?y :p ?z) -> (?x :g ?z)]", "[s: (?z :p ?x) (?z :p ?y) -> (?x :s ?y)]")
    assert _count(plan, Match) == 1
    assert len({node.op for node in plan.nodes if isinstance(node.op, Join)}) == 2


def test_trap_2_a_join_of_a_node_with_itself_keeps_both_inputs() -> None:
    plan = _plan("[r: (?x :p ?t) (?y :p ?t) -> (?x :with ?y)]")
    (join,) = (node for node in plan.nodes if isinstance(node.op, Join))
    assert len(join.inputs) == 2
    assert join.inputs[0].node == join.inputs[1].node


@pytest.mark.parametrize(
    "body",
    [
        "(?x :p ?a) (?x :p ?b) (?a :r ?b)",
        "(?x :p ?b) (?x :p ?a) (?a :r ?b)",
        "(?a :r ?b) (?x :p ?b) (?x :p ?a)",
        "(?m :r ?n) (?z :p ?m) (?z :p ?n)",
    ],
)
def test_trap_3_equal_bodies_are_one_whatever_their_order_and_names(body: str) -> None:
    first = "[one: (?x :p ?a) (?x :p ?b) (?a :r ?b) -> (:k :q :k)]"
    shared = _plan(first, f"[two: {body} -> (:k :s :k)]")
    assert _count(shared, Join) == _count(_plan(first), Join)


def test_trap_4_a_join_groups_by_variables_that_both_sides_have() -> None:
    plan = _plan("[r: (?x ?y ?z) (?z ?y ?x) -> (?x :q ?z)]")
    (join,) = (node for node in plan.nodes if isinstance(node.op, Join))
    assert isinstance(join.op, Join)
    assert len(join.op.on) == 3
    left, right = (edge.columns for edge in join.inputs)
    assert left is not None
    assert right is not None
    assert set(zip(left, right, strict=True)) <= set(join.op.on)


def test_trap_5_a_repeated_variable_is_in_the_match() -> None:
    plan = _plan("[r: (?x ?x ?o) -> (?o :r ?x)]")
    assert [node.op.cells for node in plan.nodes if isinstance(node.op, Match)] == [(0, 0, 1)]


@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_trap_7_a_planner_keeps_nothing_between_calls(planner: str) -> None:
    rules = "[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]", "(?x :q ?y) -> (?y :q ?x) ."
    first = _plan(*rules, planner=planner)
    _plan("[other: (?x :q ?y) -> (?y :p ?x)]", planner=planner)
    assert _plan(*rules, planner=planner) == first


@pytest.mark.more
def test_trap_7_node_ids_and_rule_names_are_the_same_in_every_process() -> None:
    rules = ("[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]", "(?x :q ?y) -> (?y :s ?x) .")
    script = f"import squall; print(repr(squall.plan(squall.compile({PREFIX + chr(10).join(rules)!r}, lexer='jena'))))"
    prints = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert prints == {f"{_plan(*rules)!r}\n"}


def test_trap_8_tests_binds_and_conclusions_are_shared() -> None:
    item = "[{}: (?x :n ?n) greaterThan(?n, 10) sum(?n, 1, ?m) -> (?x :big ?m)]"
    plan = _plan(item.format("a"), item.format("b").replace("?n", "?k"))
    assert [_count(plan, kind) for kind in (Filter, Extend, ops.Construct)] == [1, 1, 1]
    (emit,) = (node.op for node in plan.nodes if isinstance(node.op, ops.Construct))
    assert emit.rules == ("a", "b")


@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_trap_11_recursive_facts_pass_a_distinct_first(planner: str) -> None:
    plan = _plan("[r: (?x :p ?y) -> (?y :p ?x)]", planner=planner)
    fed_back = [plan.by_id[edge.node].op for node in plan.nodes for edge in node.inputs if edge.feedback]
    assert fed_back
    assert all(isinstance(op, Distinct) for op in fed_back)


def test_trap_13_a_built_in_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(SquallError, match="there is no built-in `graterThan`") as caught:
        _system("[r: (?x :n ?n) graterThan(?n, 10) -> (?x :big ?n)]")
    assert "greaterThan" in str(caught.value)


def test_trap_13_a_function_that_fails_stops_the_run() -> None:
    def failing(value: object) -> bool:
        raise RuntimeError("broken")

    register(Function("http://example.org/failing", failing, 1, 1, truth=True))
    number = Variable("n")
    broken = System(
        joinables=(Pattern(Variable("x"), term(":n"), number),),
        predicates=(Keep(Call("http://example.org/failing", (number,))),),
        consequences=(Construct((Pattern(Variable("x"), term(":q"), number),)),),
    )
    with pytest.raises(RuntimeError, match="broken"):
        list(squall.run(squall.plan(broken), stream("1 :a :n 1")))


def test_what_cannot_be_stratified_is_refused_with_the_cycle() -> None:
    with pytest.raises(SquallError) as caught:
        _system("[a: (?x :p ?y) noValue(?x, :r) -> (?x :q ?y)]", "[b: (?x :q ?y) -> (?x :r ?y)]")
    assert "`a` -> `b` -> `a`" in caught.value.message


@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_trap_19_a_product_meets_in_one_place(planner: str) -> None:
    plan = _plan("[r: (?x :is :Man) (?y :is :Woman) -> (?x :dances ?y)]", planner=planner)
    (join,) = (node for node in plan.nodes if isinstance(node.op, Join))
    assert [edge.columns for edge in join.inputs] == [(), ()]


def test_trap_3_more_than_one_way_to_number_variables() -> None:
    """The body has an automorphism: all its numberings have to give one plan."""
    names = ("abc", "xyz", "bca", "cba")
    triangles = [f"(?{a} :p ?{b}) (?{b} :p ?{c}) (?{c} :p ?{a})" for a, b, c in map(list, names)]
    plans = {_plan(f"[r: {body} -> (:k :q :k)]") for body in triangles}
    assert len(plans) == 1
    program = f"{PREFIX}[r: {triangles[0]} -> (?a :on ?b)]\n"
    assert_outputs(program, "1 :a :p :b\n2 :b :p :c\n3 :c :p :a", "3 :a :on :b\n3 :b :on :c\n3 :c :on :a")
