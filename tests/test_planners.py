"""The planners Greedy and Rete: columns for variables, node sharing, and plans that do not depend on the text."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.errors import PlannerError
from squall.model import Aggregate as AggregateOf
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Consequence,
    Construct,
    Delete,
    FactPattern,
    Grouping,
    Insert,
    Joinable,
    NotExists,
    Optional,
    Order,
    Pattern,
    Predicate,
    Select,
    Slice,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
)
from squall.model.windows import SlidingWindow
from squall.plan import Input, Plan
from squall.plan import operators as ops
from squall.plan.fingerprint import fingerprint
from squall.plan.operators import (
    Aggregate,
    AntiJoin,
    Column,
    Distinct,
    Extend,
    Group,
    Invoke,
    Join,
    LeftJoin,
    Match,
    Operator,
    Project,
    Scan,
    Sink,
    Update,
    Value,
)
from squall.plan.operators import Filter as Condition
from squall.plan.operators import Slice as SliceOf
from squall.planners import canonical_order, rete
from squall.planners.lowering.plan_builder import digest
from squall.rdf import XSD, Term, iri, literal
from squall.rdf.row_tags import relation_tag
from squall.testing.check import assert_as_oracle, assert_outputs
from squall.testing.strategies import systems
from squall.testing.streams import stream
from tests.laws import examples_of

PLANNERS = ("greedy", "rete")
PREFIX = "@prefix : <http://example.org/> ."
E = "http://example.org/"
P, Q, R = (iri(E + name) for name in "pqr")
X, Y, Z = map(Variable, "xyz")
JENA = "urn:x-squall:jena:"


def program(text: str) -> System:
    return squall.compile(f"{PREFIX}\n{text}", lexer="jena")


def planned(system: System, planner: str = "rete") -> Plan:
    """Returns the plan before any pass over it (tests/test_passes.py)."""
    return squall.plan(system, partial(rete.plan, passes=()) if planner == "rete" else planner)


def plan(text: str, planner: str = "rete") -> Plan:
    return planned(program(text), planner)


def kinds(of: Plan) -> Counter[str]:
    """Counts the nodes of each kind of operator."""
    return Counter(type(node.op).__name__ for node in of.nodes)


def found(of: Plan, kind: type[Operator]) -> list[Operator]:
    return [node.op for node in of.nodes if isinstance(node.op, kind)]


# Columns, not names


@pytest.mark.parametrize("planner", PLANNERS)
def test_variables_become_columns_and_literals_match_by_value(planner: str) -> None:
    query_plan = plan("[r: (?who :p '5'^^xsd:int) (?who :q ?what) sum(?what 1 ?more) -> (?more :r ?who)]", planner)
    five = literal("5", XSD + "int")
    assert set(found(query_plan, Match)) == {Match((0, P, Value(five))), Match((0, Q, 1))}
    assert found(query_plan, Join) == [Join(((0, 0),), (0, 2))]
    assert found(query_plan, Extend) == [Extend(Invoke(JENA + "sum", (Column(1), literal("1", XSD + "int"))))]
    assert found(query_plan, ops.Construct) == [ops.Construct((2, R, 0))]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_repeated_variable_is_a_repeated_column(planner: str) -> None:
    assert found(plan("[r: (?a ?b ?a) -> (?a :q ?b)]", planner), Match) == [Match((0, 1, 0))]


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_unbound_variable_of_a_test_is_no_column(planner: str) -> None:
    query_plan = plan("[r: (?a :p ?b) unbound(?c) -> (?a :q ?b)]", planner)
    assert found(query_plan, Condition) == [Condition(Invoke(JENA + "unbound", (None,)))]


@pytest.mark.parametrize("planner", PLANNERS)
def test_no_name_of_a_variable_is_in_a_plan(planner: str) -> None:
    text = "[r: (?unlikely :p ?b) (?b :q ?a) noValue(?b :r ?c) lessThan(?a ?unlikely) -> (?a :q ?b)]"
    assert "unlikely" not in repr(plan(text, planner))


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_atom_is_matched_by_its_relation_first(planner: str) -> None:
    rule = System("r", joinables=(AtomPattern(P, (X, Y)),), consequences=(Construct((AtomPattern(Q, (Y,)),)),))
    result = planned(System(subsystems=(rule,)), planner)
    assert found(result, Match) == [Match((relation_tag(P), 0, 1))]
    assert found(result, ops.Construct) == [ops.Construct((relation_tag(Q), 1))]


@pytest.mark.parametrize("planner", PLANNERS)
def test_all_shared_variables_are_joined_on_and_each_is_kept_once(planner: str) -> None:
    (join,) = found(plan("[r: (?a :p ?b) (?b :q ?a) -> (?a :r ?b)]", planner), Join)
    assert join == Join(((1, 0), (0, 1)), (0, 1))


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_negation_agrees_on_the_variables_that_the_body_has(planner: str) -> None:
    query_plan = plan("[r: (?a :p ?b) noValue(?b :q ?own) -> (?a :r ?b)]", planner)
    assert found(query_plan, AntiJoin) == [AntiJoin(((1, 0),))]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_join_holds_unique_rows_and_a_single_pattern_needs_no_memory(planner: str) -> None:
    assert kinds(plan("[r: (?a :p ?b) (?b :r ?c) -> (?a :q ?c)]", planner))["Distinct"] == 2 + 1
    assert kinds(plan("[r: (?a :p ?b) -> (?a :q ?b)]", planner))["Distinct"] == 1


# Greedy


def test_greedy_takes_the_most_selective_pattern_and_stays_connected() -> None:
    query_plan = plan("[r: (?x ?p ?y) (?c :q ?d) (?x :r ?c) (?d :p :k) -> (?x :s ?y)]", "greedy")
    assert found(query_plan, Match) == [
        Match((0, P, iri(E + "k"))),
        Match((0, Q, 1)),
        Match((0, R, 1)),
        Match((0, 1, 2)),
    ]
    assert all(isinstance(op, Join) and op.on for op in found(query_plan, Join))


def test_greedy_shares_reading_alone() -> None:
    counts = kinds(plan("[a: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)] [b: (?x :p ?y) (?y :p ?z) -> (?x :r ?z)]", "greedy"))
    assert (counts["Scan"], counts["Match"], counts["Join"]) == (1, 4, 2)


def test_a_cross_product_comes_last() -> None:
    for planner in PLANNERS:
        joins = found(plan("[r: (?a :p ?b) (?c :q ?d) (?b :r ?e) -> (?a :s ?d)]", planner), Join)
        assert [isinstance(op, Join) and len(op.on) for op in joins] == [1, 0]


# What Rete shares


def test_nodes_are_shared_independently_of_names_and_order() -> None:
    counts = kinds(plan("[a: (?x :p ?y) (?y :q ?z) -> (?x :r ?z)] [b: (?m :q ?k) (?n :p ?m) -> (?k :s ?n)]"))
    assert (counts["Match"], counts["Join"], counts["Construct"]) == (2, 1, 2)


def test_tests_extends_and_emits_are_shared() -> None:
    query_plan = plan(
        "[a: (?x :p ?y) lessThan(?y 5) sum(?y 1 ?z) -> (?x :q ?z)]"
        "[b: (?v :p ?w) sum(?w 1 ?u) lessThan(?w 5) -> (?v :q ?u)]"
    )
    assert kinds(query_plan) == Counter(Scan=1, Match=1, Filter=1, Extend=1, Construct=1, Distinct=1, Sink=1)
    assert [op.rules for op in found(query_plan, ops.Construct) if isinstance(op, ops.Construct)] == [("a", "b")]


def test_negated_bodies_are_shared() -> None:
    counts = kinds(
        plan("[a: (?x :p ?y) noValue(?x :q ?y) -> (?x :r ?y)] [b: (?a :p ?b) noValue(?a :q ?b) -> (?b :r ?a)]")
    )
    assert (counts["Match"], counts["AntiJoin"], counts["Construct"]) == (2, 1, 2)


def test_a_literal_of_another_form_is_another_match() -> None:
    """The literals match the same facts, but a plan does not know the values of literals."""
    counts = kinds(plan("[a: (?x :p 1) -> (?x :q :k)] [b: (?x :p '1') -> (?x :q :k)]"))
    assert (counts["Match"], counts["Construct"]) == (2, 2)


def test_rules_of_one_meaning_are_one_chain() -> None:
    rules = " ".join(f"[r{n}: (?x{n} :p ?y{n}) (?y{n} :q ?z) -> (?z :r ?x{n})]" for n in range(20))
    query_plan = plan(rules)
    (emit,) = found(query_plan, ops.Construct)
    assert isinstance(emit, ops.Construct)
    assert emit.rules == tuple(f"r{n}" for n in range(20))
    assert kinds(query_plan)["Join"] == 1


def test_a_hundred_rules_with_a_shared_prefix() -> None:
    """The two patterns that all rules have are joined once, wherever they are in the body."""
    bodies = (
        "(?x :p ?y) (?y :q ?z) (?z :own{n} ?w)",
        "(?z :own{n} ?w) (?y :q ?z) (?x :p ?y)",
        "(?y :q ?z) (?z :own{n} ?w) (?x :p ?y)",
    )
    rules = " ".join(f"[r{n}: {bodies[n % 3].format(n=n)} -> (?x :made{n} ?w)]" for n in range(100))
    counts = kinds(plan(rules))
    assert counts["Match"] == 2 + 100
    assert counts["Join"] == 1 + 100
    assert counts["Construct"] == 100
    assert kinds(plan(rules, "greedy"))["Join"] == 200


def test_sources_are_not_mixed() -> None:
    item, other = (
        System(name, (Source(stream),), (Pattern(X, P, Y),), consequences=(Construct((Pattern(X, Q, Y),)),))
        for name, stream in (("one", "urn:one"), ("other", "urn:other"))
    )
    counts = kinds(planned(System(subsystems=(item, other))))
    assert (counts["Scan"], counts["Match"], counts["Construct"]) == (2, 2, 2)


# What Rete must not share (traps 1 to 4)


def test_grandparent_and_sibling_are_two_joins() -> None:
    query_plan = plan("[g: (?x :p ?y) (?y :p ?z) -> (?x :g ?z)] [s: (?z :p ?x) (?z :p ?y) -> (?x :s ?y)]")
    assert kinds(query_plan)["Match"] == 1
    assert {op.on for op in found(query_plan, Join) if isinstance(op, Join)} == {((0, 0),), ((0, 1),)}


def test_a_symmetric_self_join_finds_its_pairs() -> None:
    assert_outputs(
        program("[r: (?x :p ?t) (?y :p ?t) notEqual(?x ?y) -> (?x :with ?y)]"),
        "1 :a :p :t\n2 :b :p :t\n3 :c :p :u",
        "2 :a :with :b\n2 :b :with :a",
    )


def test_equal_patterns_are_distinguished_by_the_head() -> None:
    """Two orders of a symmetric body differ only in the facts that the head constructs."""
    query_plan = plan("[a: (?x :p ?t) (?y :p ?t) -> (?x :q ?y)] [b: (?y :p ?t) (?x :p ?t) -> (?x :q ?y)]")
    assert kinds(query_plan)["Construct"] == 1
    (join,) = (node for node in query_plan.nodes if isinstance(node.op, Join))
    assert join.inputs[0].node == join.inputs[1].node


def test_a_chain_that_is_written_backwards_is_the_same_chain() -> None:
    query_plan = plan(
        "[a: (?x :p ?y) (?y :p ?z) (?z :p ?w) -> (?x :q ?w)] [b: (?c :p ?d) (?b :p ?c) (?a :p ?b) -> (?a :q ?d)]"
    )
    assert (kinds(query_plan)["Join"], kinds(query_plan)["Construct"]) == (2, 1)


def test_negated_bodies_may_have_ties() -> None:
    own = Variable("own")
    rules = [
        System(
            f"r{number}",
            joinables=(Pattern(X, P, Y),),
            predicates=(NotExists((Pattern(first, Q, own), Pattern(second, Q, own))),),
            consequences=(Construct((Pattern(X, R, Y),)),),
        )
        for number, (first, second) in enumerate([(X, Y), (Y, X)])
    ]
    item, other = (planned(System(subsystems=(rule,))) for rule in rules)
    assert item == other
    assert kinds(planned(System(subsystems=tuple(rules))))["AntiJoin"] == 1


# Plans do not depend on the text


def renamed(part: object) -> object:
    """Returns the same system with every variable under another name, in another alphabetical order."""
    if isinstance(part, Variable):
        return Variable(f"{ord('z') - ord(part.name[0])}_{part.name}")
    if isinstance(part, tuple):
        return tuple(map(renamed, part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: renamed(getattr(part, field.name)) for field in fields(part)})
    return part


def shuffled(system: System, data: st.DataObject) -> System:
    """Returns the same system with its rules, and the patterns of every body, in another order."""
    rules = [replace(rule, joinables=tuple(data.draw(st.permutations(rule.joinables)))) for rule in system.subsystems]
    return replace(system, subsystems=tuple(data.draw(st.permutations(rules))))


@settings(max_examples=examples_of(150), deadline=None)
@given(systems(), st.data())
def test_rete_sees_neither_the_order_nor_the_names(system: System, data: st.DataObject) -> None:
    changed = renamed(shuffled(system, data))
    assert isinstance(changed, System)
    assert planned(changed) == planned(system)


SLOTS = st.sampled_from([X, Y, Z, Variable("w"), Variable("v")])


@settings(max_examples=examples_of(150), deadline=None)
@given(st.lists(st.builds(Pattern, SLOTS, st.just(P), SLOTS), min_size=2, max_size=5), st.data())
def test_bodies_of_one_predicate_are_canonical(body: list[FactPattern], data: st.DataObject) -> None:
    """All patterns look alike; only their join structure distinguishes them."""
    first = body[0].slots[0]
    rule = System("r", joinables=tuple(body), consequences=(Construct((Pattern(first, Q, first),)),))
    changed = replace(rule, joinables=tuple(data.draw(st.permutations(body))))
    assert planned(System(subsystems=(changed,))) == planned(System(subsystems=(rule,)))


@given(systems())
def test_greedy_sees_no_names(system: System) -> None:
    changed = renamed(system)
    assert isinstance(changed, System)
    assert planned(changed, "greedy") == planned(system, "greedy")


@pytest.mark.parametrize("planner", PLANNERS)
@given(system=systems(), other=systems())
@settings(max_examples=examples_of(40), deadline=None)
def test_planners_are_stateless(planner: str, system: System, other: System) -> None:
    first = planned(system, planner)
    planned(other, planner)
    assert planned(system, planner) == first


def test_tests_change_places_and_a_print_does_not() -> None:
    body = "(?x :p ?y) {} {} {} -> (?x :q ?y)"
    less, greater, says = "lessThan(?y 5)", "greaterThan(?y 1)", "print(?y)"
    assert plan(f"[r: {body.format(less, greater, '')}]") == plan(f"[r: {body.format(greater, less, '')}]")
    for order in ((less, says, greater), (greater, less, says), (says, less, greater)):
        query_plan = plan(f"[r: {body.format(*order)}]")
        called = [op.expression.function for op in found(query_plan, Condition) if isinstance(op, Condition)]
        before = {part.partition("(")[0] for part in order[: order.index(says)]}
        assert {name.removeprefix(JENA) for name in called[: called.index(JENA + "print")]} == before


def test_binding_functions_come_before_their_readers() -> None:
    query_plan = plan("[r: (?x :p ?y) sum(?y 1 ?a) sum(?a ?y ?b) lessThan(?b 5) -> (?x :q ?b)]")
    order = [type(node.op).__name__ for node in query_plan.nodes]
    assert [name for name in order if name in ("Extend", "Filter")] == ["Extend", "Extend", "Filter"]
    assert found(query_plan, Condition)[0] == Condition(
        Invoke(JENA + "lessThan", (Column(3), literal("5", XSD + "int")))
    )


SCRIPT = """
import squall, sys
plan = squall.plan(squall.compile(sys.argv[1], lexer="jena"), "rete")
print([(node.id, [(edge.node, edge.columns) for edge in node.inputs]) for node in plan.nodes])
"""


@pytest.mark.more
def test_ids_are_the_same_in_every_process() -> None:
    rules = "[a: (?x :p ?y) (?y :p ?z) lessThan(?x 5) -> (?x :p ?z)] [b: (?x :q ?y) noValue(?x :p ?y) -> (?x :r ?y)]"
    text = f"{PREFIX}\n{rules}"
    history = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, text],
            env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(history) == 1
    assert "join-" in history.pop()


# Heads, feedback and the end


@pytest.mark.parametrize("planner", PLANNERS)
def test_facts_are_unique_per_shape(planner: str) -> None:
    query_plan = plan("[a: (?x :p ?y) -> (?x :q ?y) (?y :q ?x) (?x :r :k)] [b: (?x :s ?y) -> (?x :q ?y)]", planner)
    last = next(node for node in query_plan.nodes if isinstance(node.op, Sink))
    sets = [query_plan.by_id[edge.node] for edge in last.inputs]
    assert [node.op for node in sets] == [Distinct(3), Distinct(3)]
    assert sorted(len(node.inputs) for node in sets) == [1, 3]
    assert last.op == Sink("istream", distinct=False)


@pytest.mark.parametrize("planner", PLANNERS)
def test_overlapping_facts_are_distinct_at_the_end(planner: str) -> None:
    query_plan = plan("[a: (?x :p ?y) -> (?x :q ?y)] [b: (?x :p ?y) -> (?x :q :k)]", planner)
    assert found(query_plan, Sink) == [Sink("istream", distinct=True)]


def again(made: Plan) -> set[tuple[str, str]]:
    """Returns the feedback edges of a plan: the derived predicate and the matched predicate."""
    pairs = set()
    for node in made.nodes:
        for edge in node.inputs:
            if edge.feedback:
                emit = made.by_id[made.by_id[edge.node].inputs[0].node].op
                assert isinstance(emit, ops.Construct)
                assert isinstance(node.op, Match)
                pairs.add((str(emit.template[1])[len(E) + 1 : -1], str(node.op.cells[1])[len(E) + 1 : -1]))
    return pairs


@pytest.mark.parametrize("planner", PLANNERS)
def test_derived_facts_are_read_where_they_match(planner: str) -> None:
    query_plan = plan(
        "[a: (?x :p ?y) -> (?x :q ?y)] [b: (?x :q ?y) (?y :p ?z) -> (?x :p ?z)] [c: (?x :r ?y) -> (?x :s ?y)]", planner
    )
    assert again(query_plan) == {("q", "q"), ("p", "p")}


@pytest.mark.parametrize("planner", PLANNERS)
def test_conclusions_of_non_reentrant_rules_are_not_read(planner: str) -> None:
    rule = System("r", joinables=(Pattern(X, P, Y),), consequences=(Construct((Pattern(Y, P, X),)),), reentrant=False)
    assert again(planned(System(subsystems=(rule,)), planner)) == set()


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("made", "read", "fits"),
    [
        (literal("01", XSD + "integer"), literal("1", XSD + "int"), True),
        (literal("2", XSD + "integer"), literal("1", XSD + "int"), False),
        (literal("1"), literal("1", XSD + "int"), False),
    ],
)
@pytest.mark.parametrize("kind", ["object", "argument"])
def test_literals_are_read_again_by_value(planner: str, made: Term, read: Term, fits: bool, kind: str) -> None:
    def fact(value: Term) -> FactPattern:
        return Pattern(X, P, value) if kind == "object" else AtomPattern(P, (value, X))

    rules = (
        System("make", joinables=(Pattern(X, Q, Y),), consequences=(Construct((fact(made),)),)),
        System("read", joinables=(fact(read),), consequences=(Construct((Pattern(X, R, X),)),)),
    )
    fed = [edge for node in planned(System(subsystems=rules), planner).nodes for edge in node.inputs if edge.feedback]
    assert bool(fed) is fits


@pytest.mark.parametrize("planner", PLANNERS)
def test_no_rules_are_a_plan(planner: str) -> None:
    (only,) = planned(System(output="rstream"), planner).nodes
    assert only.op == Sink("rstream", distinct=False, sources=())
    assert only.inputs == ()


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_head_with_a_variable_of_its_own_is_refused(planner: str) -> None:
    rule = System("r", joinables=(Pattern(X, P, Y),), consequences=(Construct((Pattern(X, Q, Z),)),))
    with pytest.raises(PlannerError, match=r"the head of rule `r` has `\?z`, which its body never binds"):
        planned(System(subsystems=(rule,)), planner)


def test_rete_merges_the_rules_and_keeps_their_order() -> None:
    query_plan = plan("[z: (?x :p ?y) -> (?x :q ?y)] [a: (?m :p ?n) -> (?m :q ?n)] [z: (?y :p ?x) -> (?y :q ?x)]")
    assert [op.rules for op in found(query_plan, ops.Construct) if isinstance(op, ops.Construct)] == [("z", "a")]


def test_greedy_names_nodes_in_the_order_of_the_text() -> None:
    query_plan = plan("[a: (?x :p ?y) -> (?x :q ?y)]", "greedy")
    assert [node.id for node in query_plan.nodes] == ["scan1", "match1", "construct2", "distinct3", "sink4"]
    assert query_plan.nodes[1].inputs == (Input("scan1"),)


def test_many_equal_patterns_end() -> None:
    """Canonical labelling is by search; the number of orders carried on is bounded."""
    body = " ".join(f"(?x{n} :p ?y{n})" for n in range(9))
    assert kinds(plan(f"[r: {body} -> (?x0 :q ?y8)]"))["Join"] == 8


# All that a system can say

T, U = Variable("t"), Variable("u")
S, MADE = iri(E + "s"), iri(E + "made")
COPIES = (Construct((Pattern(X, R, Y),)),)


def made_of(rule: System, planner: str = "rete") -> Plan:
    return planned(System(subsystems=(rule,)), planner)


def reads(of: Plan, node: str) -> set[str]:
    """Returns the IRIs of the sources that a node reads directly."""
    ops = (of.by_id[edge.node].op for edge in of.by_id[node].inputs)
    return {op.source.iri for op in ops if isinstance(op, Scan)}


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_rule_reads_the_union_of_its_sources_as_a_set(planner: str) -> None:
    result = made_of(
        System("r", (Source("urn:a"), Source("urn:b")), (Pattern(X, P, Y),), consequences=SELECTS), planner
    )
    (match,) = (node for node in result.nodes if isinstance(node.op, Match))
    assert reads(result, match.id) == {"urn:a", "urn:b"}
    assert [type(result.by_id[id].op) for id, _ in result.consumers[match.id]] == [Distinct]


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("sources", "fed"),
    [
        ((Source(),), True), ((Source("", SlidingWindow(10)),), True), ((Source("urn:a"), Source()), True),
        ((Source("urn:a"),), False),
    ],
)  # fmt: skip
def test_derived_facts_are_read_with_the_default_graph_alone(
    planner: str, sources: tuple[Source, ...], fed: bool
) -> None:
    reader = System("r", sources, (Pattern(X, R, Y),), consequences=(Construct((Pattern(X, S, Y),)),))
    maker = System("m", joinables=(Pattern(X, P, Y),), consequences=COPIES)
    result = planned(System(subsystems=(maker, reader)), planner)
    assert again(result) == ({("r", "r")} if fed else set())


def test_the_order_of_sources_does_not_matter() -> None:
    item, other = (System("r", sources, (Pattern(X, P, Y),), consequences=COPIES) for sources in (BOTH, BOTH[::-1]))
    assert made_of(item) == made_of(other)


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_rule_without_a_source_is_refused(planner: str) -> None:
    with pytest.raises(PlannerError, match="rule `r` has no source to read"):
        made_of(System("r", (), (Pattern(X, P, Y),), consequences=COPIES), planner)


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_end_knows_the_sources_of_all_parts(planner: str) -> None:
    inner = System(sources=(Source("urn:b"),), joinables=(Pattern(X, Q, Y),))
    rule = System("r", (Source("urn:a"),), (Pattern(X, P, Y),), (Optional(inner),), consequences=COPIES)
    (end,) = found(planned(System(subsystems=(rule,), output="rstream"), planner), Sink)
    assert end == Sink("rstream", distinct=False, sources=(Source("urn:a"), Source("urn:b")))


@pytest.mark.parametrize("planner", PLANNERS)
def test_branches_are_projected_to_the_same_columns(planner: str) -> None:
    """Each branch numbers its columns by itself (trap 6)."""
    branches = (System(joinables=(Pattern(X, Q, Z),)), System(joinables=(Pattern(Z, R, X), Pattern(Z, S, U))))
    result = made_of(System("r", joinables=(Pattern(X, P, Y), Union(branches)), consequences=COPIES), planner)
    assert kinds(result)["Union"] == 1
    assert {
        result.widths[edge.node] for node in result.nodes if isinstance(node.op, ops.Union) for edge in node.inputs
    } == {3}
    assert Project((1, 0, 2)) in found(result, Project)
    assert Project((0, 1, None)) in found(result, Project)
    assert_as_oracle_all(made_rule=branches, planner=planner)


def assert_as_oracle_all(made_rule: tuple[System, ...], planner: str) -> None:
    """Runs the rule of the test above and compares it with the oracle."""
    rule = System("r", joinables=(Pattern(X, P, Y), Union(made_rule)), consequences=(Select((X, Y, Z, U)),))
    events = stream("1 :a :p :b\n2 :a :q :c\n3 :d :r :a\n3 :d :s :e")
    assert_as_oracle(rule, list(squall.run(planned(rule, planner), events)), events)


SELECTS = (Select((X, Y)),)
BOTH = (Source("urn:a"), Source("urn:b"))
UNSURE = Union((System(joinables=(Pattern(X, Q, Z),)), System(joinables=(Pattern(X, R, Y),))))
"""``?y`` and ``?z`` may be unbound."""
OPTIONAL = Optional(System(joinables=(Pattern(X, Q, Y),)))


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("joinables", "predicates", "name"),
    [
        ((Pattern(X, P, Y), UNSURE), (), "y"),
        ((UNSURE, UNSURE), (), "y"),
        ((UNSURE,), (NotExists((Pattern(Z, P, U),)),), "z"),
        ((UNSURE,), (Optional(System(joinables=(Pattern(Z, P, U),))),), "z"),
        ((Pattern(X, P, Z),), (OPTIONAL, Optional(System(joinables=(Pattern(X, R, Y),)))), "y"),
        ((Pattern(X, P, Z),), (OPTIONAL, NotExists((Pattern(Y, R, U),))), "y"),
        ((Pattern(X, P, Y), System(joinables=(Pattern(X, Q, Z),), consequences=(Select((X, Y)),))), (), "y"),
        (
            (
                Pattern(X, P, Y),
                System(
                    joinables=(Pattern(X, Q, Z),), grouping=Grouping((X,), (AggregateOf(Y, "sum", Z),))
                ),
            ),
            (),
            "y",
        ),
    ],
)  # fmt: skip
def test_what_may_be_unbound_is_joined_on_where_it_is_bound_in_both(
    planner: str, joinables: tuple[Joinable, ...], predicates: tuple[Predicate, ...], name: str
) -> None:
    """`name` is the join variable, which may be unbound."""
    events = stream("1 :a :p :b\n2 :a :q :b\n3 :a :r :b\n3 :a :r :c\n4 :c :p :d\n5 :d :q :a\n6 :b :r :d\n7 :a :q 1")
    choice = tuple(Variable(item) for item in {"x", "z", name})
    rule = System("r", joinables=joinables, predicates=predicates, consequences=(Select(choice),))
    assert_as_oracle(rule, list(squall.run(planned(rule, planner), events)), events)


@pytest.mark.parametrize("planner", PLANNERS)
def test_what_surely_has_a_value_is_joined_on(planner: str) -> None:
    """The aggregates are the maximum of a nonempty group, and a number of rows."""
    aggregates = (AggregateOf(Y, "max", Z), AggregateOf(T, "count"))
    inner = System(joinables=(Pattern(X, Q, Z),), grouping=Grouping((X,), aggregates))
    result = made_of(System("r", joinables=(Pattern(X, P, Y), Pattern(X, R, T), inner), consequences=COPIES), planner)
    assert kinds(result)["Join"] == 2


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_optional_part_is_a_left_join_with_its_condition(planner: str) -> None:
    condition = Call(JENA + "lessThan", (Y, Z))
    inner = System(joinables=(Pattern(Z, Q, X),))
    rule = System("r", joinables=(Pattern(Y, P, X),), predicates=(Optional(inner, condition),), consequences=SELECTS)
    result = made_of(rule, planner)
    assert found(result, LeftJoin) == [
        LeftJoin(((1, 1),), (0, 1, 2), Invoke(JENA + "lessThan", (Column(0), Column(2))))
    ]
    assert found(result, ops.Select) == [ops.Select(("x", "y"), (1, 0))]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_group_has_its_keys_and_then_its_aggregates(planner: str) -> None:
    grouping = Grouping((Y, T), (AggregateOf(Z, "sum", X, distinct=True), AggregateOf(U, "count")))
    rule = System("r", joinables=(Pattern(X, P, Y),), grouping=grouping, consequences=(Select((Z, U, Y)),))
    result = made_of(rule, planner)
    assert found(result, Project) == [Project((0, 1, None))], "a key that nothing binds is unbound"
    assert found(result, Group) == [
        Group((1, 2), (Aggregate("count", None), Aggregate("sum", Column(0), distinct=True)))
    ]
    assert found(result, ops.Select) == [ops.Select(("z", "u", "y"), (3, 2, 0))]


@pytest.mark.parametrize("planner", PLANNERS)
def test_rows_are_distinct_and_then_sliced_in_the_order_of_their_names(planner: str) -> None:
    rule = System(
        "r", joinables=(Pattern(X, P, Y), Pattern(Y, Q, Z)), distinct=True,
        slice=Slice((Order(Z, descending=True),), 1, 3), consequences=(Select((Z, X)),),
    )  # fmt: skip
    result = made_of(rule, planner)
    chain = [node.op for node in result.nodes if isinstance(node.op, Project | SliceOf | ops.Select)]
    by = ((Column(0), True),)
    assert chain == [Project((0, 2)), Project((1, 0)), SliceOf(by, 1, 3), ops.Select(("z", "x"), (0, 1), order=by)]
    assert found(result, Distinct).count(Distinct(2)) == 3


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_update_feeds_deliver_if_it_inserts(planner: str) -> None:
    rule = System("r", joinables=(Pattern(X, P, Y),), consequences=(Delete((Pattern(X, P, Y), Pattern(Y, P, T))),))
    with pytest.raises(PlannerError, match=r"the head of rule `r` has `\?t`"):
        made_of(rule, planner)
    result = made_of(replace(rule, consequences=(Delete((Pattern(X, P, Y),)), *COPIES)), planner)
    assert found(result, Update) == [Update(((None, 0, P, 1),), rules=("r",))]
    assert all(not result.consumers[node.id] for node in result.nodes if isinstance(node.op, Update))
    graphs = (Insert((Pattern(X, Q, Y),), Y), Delete((Pattern(X, P, Y),), Z), Insert((Pattern(Y, Q, X),)))
    optional = Optional(System(joinables=(Pattern(Y, Q, Z),)))
    result = made_of(replace(rule, predicates=(optional,), consequences=graphs), planner)
    (update,) = found(result, Update)
    assert isinstance(update, Update)
    assert (len(update.deletes), len(update.inserts)) == (1, 2)
    assert result.widths[result.nodes[-1].inputs[0].node] == 4


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_table_function_makes_columns(planner: str) -> None:
    split = TableFunction((Z, T), "urn:split", (Y, Variable("nowhere")))
    rule = System("r", joinables=(Pattern(X, P, Y),), predicates=(split,), consequences=(Select((T, Z)),))
    result = made_of(rule, planner)
    assert found(result, ops.TableFunction) == [ops.TableFunction("urn:split", (Column(1), None), 2)]
    assert found(result, ops.Select) == [ops.Select(("t", "z"), (3, 2))]


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("again", [Bind(Y, X), TableFunction((Z, Z), "urn:f", ()), TableFunction((Y,), "urn:f", ())])
def test_a_variable_is_given_one_value(planner: str, again: Predicate) -> None:
    rule = System("r", joinables=(Pattern(X, P, Y),), predicates=(again,), consequences=COPIES)
    with pytest.raises(PlannerError, match="a value that it has already"):
        made_of(rule, planner)


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"grouping": Grouping((X,), (AggregateOf(Z, "max", Call(JENA + "now", ())),))}, "an aggregate"),
        ({"slice": Slice((Order(Call(JENA + "now", ())),))}, "the order of a slice"),
        ({"predicates": (TableFunction((Z,), "urn:f", (Call(JENA + "now", ()),)),)}, "a table function"),
        ({"predicates": (Optional(System(), Call(JENA + "now", ())),)}, "the condition of an optional part"),
    ],
)
def test_time_functions_filter_and_bind(planner: str, change: dict[str, Any], where: str) -> None:
    rule = replace(System("r", joinables=(Pattern(X, P, Y),), consequences=(Select((X,)),)), **change)
    with pytest.raises(PlannerError, match=rf"rule `r` takes the time \(`now`\) in {where}"):
        made_of(rule, planner)


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_unbound_variable_makes_no_fact_and_an_unbound_answer(planner: str) -> None:
    inner = System(joinables=(Pattern(X, P, Y),), consequences=(Select((X, Z)),))
    heads = Construct((Pattern(X, Q, Z), Pattern(X, Q, X)))
    result = made_of(System("r", joinables=(inner,), consequences=(heads,)), planner)
    assert found(result, ops.Construct) == [ops.Construct((0, Q, 0))]
    result = made_of(System("r", joinables=(inner,), consequences=(Select((Z, X)),)), planner)
    assert found(result, ops.Select) == [ops.Select(("z", "x"), (0, 1))]
    assert Project((None, 0)) in found(result, Project)


def test_each_query_has_an_answer_of_its_own_over_work_that_is_shared() -> None:
    queries = [
        System(name, joinables=(Pattern(X, P, Y), Pattern(Y, Q, Z)), consequences=(Select((X, Z)),)) for name in "ab"
    ]
    counts = kinds(planned(System(subsystems=tuple(queries))))
    assert (counts["Join"], counts["Select"]) == (1, 2)


def test_queries_that_look_alike_give_every_answer_twice() -> None:
    query = System("q", joinables=(Pattern(X, P, Y),), consequences=SELECTS)
    system = System(subsystems=(query, query))
    events = stream("1 :a :p :b")
    for planner in PLANNERS:
        assert_as_oracle(system, list(squall.run(planned(system, planner), events)), events)


def test_parts_are_shared_by_rules_and_queries() -> None:
    """A union, an optional part and a group are shared, independently of names and of the order of branches and
    keys."""

    def rule(name: str, a: Variable, b: Variable, c: Variable, consequence: Consequence, turned: bool) -> System:
        branches = [System(joinables=(Pattern(a, Q, b),)), System(joinables=(Pattern(b, R, a), Pattern(b, S, b)))]
        grouped = System(joinables=(Union(tuple(branches[::-1] if turned else branches)),))
        keys = (b, a) if turned else (a, b)
        grouped = replace(grouped, grouping=Grouping(keys, (AggregateOf(c, "count"),)))
        return System(name, joinables=(Pattern(a, P, b), grouped), consequences=(consequence,))

    item = rule("one", X, Y, Z, Construct((Pattern(X, MADE, Z),)), turned=False)
    other = rule("other", Z, T, X, Select((X, Z)), turned=True)
    counts = kinds(planned(System(subsystems=(item, other))))
    alone = kinds(made_of(item))
    assert {kind: counts[kind] for kind in ("Match", "Union", "Group", "Join")} == {
        kind: alone[kind] for kind in ("Match", "Union", "Group", "Join")
    }


def test_similar_branches_are_distinguished_by_their_joins() -> None:
    """Only the rest of the body determines the order of the two columns of the union."""
    ways = [(Pattern(X, P, Y), Pattern(Y, P, X)), (Pattern(Y, P, X), Pattern(X, P, Y))]
    heads = (Construct((Pattern(Z, R, Y),)),)
    item, other = (
        made_of(System("r", joinables=(_either(*way), Pattern(X, Q, Z)), consequences=heads)) for way in ways
    )
    assert item == other


def _either(*patterns: Pattern) -> Union:
    return Union(tuple(System(joinables=(pattern,)) for pattern in patterns))


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_program_that_cannot_be_stratified_is_refused_by_planners_too(planner: str) -> None:
    win = System(
        "win", joinables=(Pattern(X, P, Y),), predicates=(OPTIONAL_WIN,), consequences=(Construct((Pattern(X, Q, Y),)),)
    )
    with pytest.raises(PlannerError, match="looks for the absence of what depends on it"):
        made_of(win, planner)


OPTIONAL_WIN = Optional(System(joinables=(Pattern(Y, Q, Z),)))


@given(systems())
@settings(max_examples=examples_of(20))
def test_a_name_is_a_digest_of_the_printed_operator_without_its_rules_and_of_its_inputs(system: System) -> None:
    for node in rete.plan(system).nodes:
        op = replace(node.op, rules=()) if isinstance(node.op, ops.Construct | Update) else node.op
        text = "\n".join((fingerprint(op), "a", "b"))
        assert digest(node.op, ("a", "b")).rpartition("-")[2] == sha256(text.encode()).hexdigest()[:10]


# Bodies of many patterns that look alike


def _like(shape: str, size: int) -> list[Pattern]:
    """Returns patterns of one predicate: in a row, in a ring, about one resource, or each about its own."""
    ends: Callable[[int], tuple[str, str]] = {
        "row": lambda place: (f"x{place}", f"x{place + 1}"),
        "ring": lambda place: (f"x{place}", f"x{(place + 1) % size}"),
        "star": lambda place: ("x", f"y{place}"),
        "apart": lambda place: (f"x{place}", f"y{place}"),
    }[shape]
    pairs = [ends(place) for place in range(size)]
    return [Pattern(Variable(pair), iri("urn:p"), Variable(other)) for pair, other in pairs]


def _of(patterns: list[Pattern]) -> System:
    head = Construct((Pattern(iri("urn:a"), iri("urn:q"), iri("urn:b")),))
    return System("r", joinables=tuple(patterns), consequences=(head,))


@pytest.mark.parametrize(("shape", "size"), [("row", 120), ("ring", 24), ("star", 120), ("apart", 120)])
def test_patterns_that_look_alike_are_planned_in_one_order(shape: str, size: int) -> None:
    patterns = _like(shape, size)
    mixed = random.Random(1).sample(patterns, size)
    assert rete.identities(_of(patterns)) == rete.identities(_of(mixed))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", ["row", "ring", "star", "apart"])
def test_patterns_that_look_alike_are_planned_in_steps_that_are_bounded(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are 150! orders of 150 patterns. Each order that is tried compares all remaining patterns."""
    count = 0
    steps = canonical_order._candidates

    def counted(*inputs: Any) -> Iterator[Any]:
        nonlocal count
        for step in steps(*inputs):
            count += 1
            yield step

    monkeypatch.setattr(canonical_order, "_candidates", counted)
    rete.identities(_of(_like(shape, 150)))
    assert count <= canonical_order.MAX_STEPS
