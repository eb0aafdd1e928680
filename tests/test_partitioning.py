"""Partitioning columns on the edges of plans, and the stages into which they divide a plan."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings

import squall
from squall.builders.distributed.plan.broadcast import broadcast_candidates, choose_broadcast
from squall.builders.distributed.plan.partitioning import (
    BROADCAST,
    Partitioning,
    output_partitioning,
    partitioning_through,
)
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.stages import exchanges_of, partitionings_of
from squall.model import (
    Aggregate,
    Construct,
    Delete,
    Grouping,
    Optional,
    Pattern,
    Select,
    Source,
    System,
    Union,
    Variable,
)
from squall.model import Slice as Part
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import (
    AntiJoin,
    Column,
    ConstantFilter,
    Consume,
    Distinct,
    Extend,
    Group,
    Join,
    LeftJoin,
    Match,
    MultiwayJoin,
    Operator,
    Project,
    Scan,
    SequenceJoin,
    Sink,
    Slice,
    TransitiveClosure,
    Update,
    is_stateful,
    is_time_dependent,
)
from squall.plan.partitioning import Columns, kind_of
from squall.planners import rete
from squall.rdf import Term, iri
from squall.testing.strategies import systems
from tests.laws import examples_of

PLANNERS = ("greedy", "rete")
CLOSURE = "[r: (?x :p ?y) (?y :p ?z) -> (?x :p ?z)]"
REACH = "[r: (?x :reach ?y) (?y :edge ?z) -> (?x :reach ?z)]"


def plan(text: str, planner: str = "greedy") -> Plan:
    return squall.plan(squall.compile(f"@prefix : <http://example.org/> .\n{text}", lexer="jena"), planner)


def wanted(of: Plan, kind: type) -> list[tuple[tuple[int, ...] | None, ...]]:
    """Returns the columns by which the inputs of each node of a kind are grouped."""
    return [tuple(edge.columns for edge in node.inputs) for node in of.nodes if isinstance(node.op, kind)]


def joins(of: Plan) -> list[tuple[str, str, tuple[int, ...] | None, tuple[int, ...] | None]]:
    """Returns which rows move for each join: left and right."""
    return [
        ("moves" if moved[node.id, 0] else "stays", "moves" if moved[node.id, 1] else "stays", *_columns(node))
        for moved in [{(hop.consumer, hop.port): hop.shuffles for hop in exchanges_of(of, partitionings_of(of))}]
        for node in of.nodes
        if isinstance(node.op, Join)
    ]


def _columns(node: Node) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    left, right = node.inputs
    return left.columns, right.columns


# Columns on edges


def test_a_star_on_one_variable_moves_nothing() -> None:
    query_plan = plan("[r: (?x :p ?a) (?x :q ?b) (?x :r ?c) -> (?x :s ?c)]")
    assert joins(query_plan) == [("stays", "stays", (0,), (0,))] * 2
    assert len(physical_plan(query_plan).stages) == 1


def test_a_chain_moves_once_for_each_variable() -> None:
    query_plan = plan("[r: (?x :p ?y) (?y :q ?z) (?z :r ?w) -> (?x :s ?w)]")
    assert joins(query_plan) == [("stays", "stays", (1,), (0,)), ("moves", "stays", (2,), (0,))]


def test_the_key_of_a_join_is_the_partitioning_of_an_input() -> None:
    """The second join is on two columns; the first has grouped its rows by one of them, and that is enough."""
    query_plan = plan("[r: (?x :p ?y) (?x :q ?z) (?x :r ?z) -> (?y :s ?z)]")
    (_, second) = (node for node in query_plan.nodes if isinstance(node.op, Join))
    assert isinstance(second.op, Join)
    assert len(second.op.on) == 2
    assert joins(query_plan)[1] == ("stays", "stays", (0,), (0,))


def test_all_columns_are_the_key_if_no_input_is_partitioned_by_some() -> None:
    query_plan = plan("[r: (?x :p ?y) (?y :q ?x) -> (?x :r ?y)]")
    assert joins(query_plan) == [("stays", "stays", (1, 0), (0, 1))]


def test_scanned_rows_are_partitioned_for_the_first_join() -> None:
    """A second join needs another partitioning of them."""
    query_plan = plan("[a: (?x :p ?y) (?y :q ?z) -> (?x :s ?z)] [b: (?x :p ?y) (?x :r ?z) -> (?y :t ?z)]", "rete")
    moved = [
        hop
        for hop in physical_plan(query_plan).exchanges
        if isinstance(query_plan.by_id[hop.consumer].op, Join) and hop.shuffles
    ]
    assert len(moved) == 1


def test_facts_are_partitioned_by_subject_or_the_first_variable_column() -> None:
    query_plan = plan("[r: (?x :p ?y) -> (?y :q ?x) (:k :q ?x) (:k ?x :k) (:k :q :k)]")
    columns = sorted(wanted(query_plan, Distinct))
    assert columns == [((0,),), ((0,),), ((1,),), ((2,),)]
    assert wanted(query_plan, Sink) == [((0,),) * 4]


def test_a_product_meets_in_one_place() -> None:
    query_plan = plan("[r: (?x :p ?y) (?z :q ?w) -> (?x :r ?w)]")
    assert wanted(query_plan, Join) == [((), ())]
    assert "a single task" in str(physical_plan(query_plan))


def test_a_join_after_a_product_is_grouped_by_its_own_columns() -> None:
    query_plan = plan("[a: (?x :p ?y) (?z :q ?w) -> (?x :r ?w)] [b: (?x :p ?y) (?y :s ?z) -> (?x :t ?z)]", "rete")
    assert sorted(wanted(query_plan, Join)) == [((), ()), ((1,), (0,))]


def test_a_negation_without_shared_variables_meets_in_one_place() -> None:
    assert wanted(plan("[r: (?x :p ?y) noValue(:k :q ?z) -> (?x :r ?y)]"), AntiJoin) == [((), ())]


def test_a_negation_is_grouped_by_what_it_compares() -> None:
    assert wanted(plan("[r: (?x :p ?y) noValue(?y :q ?z) -> (?x :r ?y)]"), AntiJoin) == [((1,), (0,))]


def test_a_function_of_time_looks_at_each_row_by_itself() -> None:
    query_plan = plan("[r: (?x :p ?y) now(?t) -> (?x :at ?t)]")
    assert [node.inputs[0].columns for node in query_plan.nodes if is_time_dependent(node.op)] == [(0, 1)]
    query_plan = plan("[r: (?x :p ?y) (?y :q ?z) now(?t) -> (?x :at ?t)]")
    (columns,) = [node.inputs[0].columns for node in query_plan.nodes if is_time_dependent(node.op)]
    assert columns is not None
    assert len(columns) == 1, "where the join has put it"


def test_operators_without_memory_are_not_grouped() -> None:
    query_plan = plan("[r: (?x :p ?y) lessThan(?y 5) sum(?y 1 ?z) -> (?x :q ?z)]")
    assert all(edge.columns is None for node in query_plan.nodes if not is_stateful(node.op) for edge in node.inputs)


@pytest.mark.parametrize("planner", PLANNERS)
@given(system=systems())
@settings(max_examples=examples_of(40), deadline=None)
def test_rows_that_have_to_meet_are_grouped_alike(planner: str, system: squall.System) -> None:
    """A distributed builder relies on that for every stateful operator."""
    query_plan = squall.plan(system, planner)
    for node in query_plan.nodes:
        columns = [edge.columns for edge in node.inputs]
        match node.op:
            case Join(on=on) | LeftJoin(on=on) | AntiJoin(on=on):
                left, right = columns
                assert left is not None
                assert right is not None
                assert set(zip(left, right, strict=True)) <= set(on)
                assert left != () or on == ()
            case Distinct(by=by):
                assert len(set(columns)) == 1
                assert columns[0] is not None
                assert all(column < by for column in columns[0])
            case Group(keys=keys):
                assert columns[0] is not None
                assert set(columns[0]) <= set(keys)
                assert columns[0] != () or keys == ()
            case Slice() | Update():
                assert columns == [()]
            case Sink():
                alike = {(kind_of(edge.node, query_plan.by_id), edge.columns) for edge in node.inputs}
                assert len(alike) == len({kind for kind, _ in alike})
                for edge in node.inputs:
                    assert edge.columns is not None
                    assert all(column < query_plan.widths[edge.node] - 1 for column in edge.columns), (
                        "rules are no part of it"
                    )
            case op:
                assert set(columns) <= ({()} if is_time_dependent(op) else {None})


X, Y, Z, W = map(Variable, "xyzw")
P, Q, R = (iri(f"urn:{name}") for name in "pqr")
HEAD = (Construct((Pattern(X, R, X),)),)


def of_rule(rule: System, planner: str) -> Plan:
    """Returns the plan of a rule before any pass over it."""
    return squall.plan(System(subsystems=(rule,)), partial(rete.plan, passes=()) if planner == "rete" else planner)


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_optional_part_is_grouped_as_a_join(planner: str) -> None:
    rule = System(
        "r",
        joinables=(Pattern(X, P, Y), Pattern(Y, Q, Z)),
        predicates=(Optional(System(joinables=(Pattern(Y, R, W),))),),
        consequences=(Select((X, W)),),
    )
    ((left, right),) = wanted(of_rule(rule, planner), LeftJoin)
    ((first, _),) = wanted(of_rule(rule, planner), Join)
    assert left == first
    assert right == (0,)


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("body", "keys", "columns"),
    [
        ((Pattern(X, P, Y),), (X,), (0,)),
        ((Pattern(X, P, Y),), (Y, X), (0, 1)),
        ((Pattern(X, P, Y),), (), ()),
        ((Pattern(X, P, Y), Pattern(X, Q, Z)), (X, Z), (0,)),
        ((Pattern(X, P, Y), Pattern(X, Q, Z)), (Z,), (2,)),
    ],
)
def test_a_group_is_partitioned_by_its_keys_or_as_its_input(
    planner: str, body: tuple[Pattern, ...], keys: tuple[Variable, ...], columns: tuple[int, ...]
) -> None:
    grouping = Grouping(keys, (Aggregate(W, "count"),))
    result = of_rule(System("r", joinables=body, grouping=grouping, consequences=(Select((W,)),)), planner)
    assert wanted(result, Group) == [(columns,)]


@pytest.mark.parametrize("planner", PLANNERS)
def test_rows_of_a_group_are_partitioned_by_its_keys(planner: str) -> None:
    inner = System(joinables=(Pattern(X, P, Y),), grouping=Grouping((X,), (Aggregate(W, "count"),)))
    result = of_rule(System("r", joinables=(inner, Pattern(X, Q, W)), consequences=HEAD), planner)
    assert wanted(result, Join) == [((0,), (0,))]
    assert wanted(result, Group) == [((0,),)]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_union_is_partitioned_by_what_all_branches_share(planner: str) -> None:
    def star(predicate: Term) -> System:
        return System(joinables=(Pattern(X, predicate, Y), Pattern(X, R, Z)))

    def chain(predicate: Term) -> System:
        return System(joinables=(Pattern(Z, predicate, X), Pattern(X, R, Y)))

    for branch, moves in ((star, "stays"), (chain, "moves")):
        either = Union((star(P), branch(Q)))
        result = of_rule(System("r", joinables=(either, Pattern(X, P, Y)), consequences=HEAD), planner)
        assert moves in joins(result)[-1][:2]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_slice_is_grouped_by_its_keys(planner: str) -> None:
    part = Part(limit=1, keys=(Y,))
    rule = System("r", joinables=(Pattern(X, P, Y),), slice=part, consequences=(Select((X,)),))
    assert wanted(of_rule(rule, planner), Slice) == [((1,),)]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_slice_and_an_update_are_in_one_place(planner: str) -> None:
    rule = System("r", joinables=(Pattern(X, P, Y),), slice=Part(limit=1), consequences=(Delete((Pattern(X, P, Y),)),))
    result = of_rule(rule, planner)
    assert wanted(result, Slice) == wanted(result, Update) == [((),)]


# Levels and stages


def cut(of: Plan) -> list[tuple[list[str], bool, bool]]:
    """Returns for each stage the kinds of its nodes, whether it has iterations, and whether it deletes first."""
    return [
        ([type(of.by_id[id].op).__name__ for id in level.nodes], level.recursive, level.has_deletions)
        for level in physical_plan(of).stages
    ]


def test_a_plan_without_operator_state_has_one_stage() -> None:
    assert cut(plan("[r: (?x :p ?y) -> (?x :q ?y)]")) == [(["Distinct"], False, False)]


def test_event_time_operators_run_in_a_stage_after_their_recursion() -> None:
    """This also holds where its rows need not move on the way to it."""
    nodes = (
        Node("edges", Scan(Source())), Node("match", Match((0, P, 1)), (Input("edges"),)),
        Node("set", Distinct(2), (Input("match", (0,)), Input("longer", (0,), feedback=True))),
        Node("join", Join(((1, 0),), (0, 3)), (Input("set", (1,)), Input("set", (0,)))),
        Node("longer", Project((0, 1)), (Input("join"),)),
        Node("group", Group((0,), ()), (Input("set", (0,)),)),
        Node("end", Sink()),
    )  # fmt: skip
    below, above = physical_plan(Plan(nodes)).stages
    assert (below.nodes, below.recursive) == (("set", "join"), True)
    assert (above.nodes, above.has_event_time_nodes) == (("group",), True)


def test_no_rules_have_no_levels() -> None:
    assert physical_plan(squall.plan(squall.System())).stages == ()
    assert not any(line.startswith("stage") for line in str(physical_plan(squall.plan(squall.System()))).splitlines())


def test_a_level_ends_where_rows_move() -> None:
    query_plan = plan("[r: (?x :p ?y) (?y :q ?z) -> (?x :r ?z)]")
    assert cut(query_plan) == [(["Distinct", "Distinct", "Join"], False, False), (["Distinct"], False, False)]


def test_co_partitioned_inputs_stay_in_their_stage() -> None:
    query_plan = plan("[r: (?x :p ?y) (?x :q ?z) -> (?x :r ?z)]")
    assert cut(query_plan) == [(["Distinct", "Distinct", "Join", "Distinct"], False, False)]
    assert [len(stage) for stage in physical_plan(query_plan).stages[0].pipelines] == [4]


def test_rules_that_exchange_nothing_are_stages_of_one_level() -> None:
    query_plan = plan("[a: (?x :p ?y) -> (?x :q ?y)] [b: (?x :r ?y) -> (?x :s ?y)]")
    (level,) = physical_plan(query_plan).stages
    assert [len(stage) for stage in level.pipelines] == [1, 1]


def test_a_recursion_in_which_nothing_moves_takes_no_rounds() -> None:
    """``?x`` stays in its partition: the recursion is linear and partitioned by its subject."""
    query_plan = plan("[r: (?x :p ?y) (?x :q ?z) -> (?x :p ?z)]")
    assert [(recursive, deletes) for _, recursive, deletes in cut(query_plan)] == [(False, False)]


@pytest.mark.parametrize("text", [CLOSURE, REACH])
def test_a_recursion_in_which_rows_move_takes_rounds(text: str) -> None:
    assert [(recursive, deletes) for _, recursive, deletes in cut(plan(text))] == [(True, False)]


def test_a_recursion_above_a_negation_deletes_first_and_has_a_level_of_its_own() -> None:
    query_plan = plan("[a: (?x :edge ?y) noValue(?y :shut ?z) -> (?x :reach ?y)]" + REACH)
    assert [flags for _, *flags in cut(query_plan)][-1] == [True, True]
    assert not any(deletes for *_, deletes in cut(query_plan)[:-1])


def test_a_recursion_that_deletes_has_a_level_of_its_own_where_nothing_moves_before_it() -> None:
    query_plan = plan("[a: (?x :edge ?y) noValue(?x :shut ?z) -> (?x :reach ?y)]" + REACH)
    assert [flags for _, *flags in cut(query_plan)] == [[False, False], [True, True]]


def test_a_stage_is_a_part_of_a_level_that_exchanges_nothing() -> None:
    query_plan = plan(CLOSURE)
    (level,) = physical_plan(query_plan).stages
    assert sorted(id for stage in level.pipelines for id in stage) == sorted(level.nodes)


@pytest.mark.parametrize("planner", PLANNERS)
@given(system=systems())
@settings(max_examples=examples_of(40), deadline=None)
def test_stages_keep_their_properties(planner: str, system: squall.System) -> None:
    physical = physical_plan(squall.plan(system, planner))
    query_plan, cuts = physical.plan, physical.stages
    number_of = {id: level.number for level in cuts for id in level.nodes}
    stage_of = {id: stage for level in cuts for stage in level.pipelines for id in stage}
    assert [level.number for level in cuts] == list(range(1, len(cuts) + 1))
    keeping = [node.id for node in query_plan.nodes if is_stateful(node.op) and not isinstance(node.op, Sink)]
    assert sorted(number_of) == sorted(stage_of) == sorted(keeping)
    assert all(len({number_of[id] for id in part if id in number_of}) <= 1 for part in query_plan.components)
    for hop in physical.exchanges:
        if hop.producer not in number_of or hop.consumer not in number_of:
            continue
        before, after = number_of[hop.producer], number_of[hop.consumer]
        assert before <= after, "a row goes to its own level or to a later one"
        component = next(part for part in query_plan.components if hop.consumer in part)
        if len(component) > 1 and hop.consumer in query_plan.retractable and hop.producer not in component:
            assert before < after, "what is to be deleted in phases is complete before"
        if before == after and hop.shuffles:
            assert cuts[before - 1].recursive, "rows that move inside a level take rounds"
        if before == after and not hop.shuffles:
            assert stage_of[hop.producer] == stage_of[hop.consumer]


def test_describe() -> None:
    query_plan = plan("[a: (?x :p ?y) noValue(?x :q ?y) -> (?x :r ?y)] [b: (?x :r ?y) (?y :r ?z) -> (?x :r ?z)]")
    lines = str(physical_plan(query_plan)).splitlines()
    assert lines[0].startswith("strategy: stages")
    assert lines[1] == "sources"
    assert lines[4] == "stage 1"
    assert "end" in lines
    assert lines[-1] == "  4. end"
    assert [line for line in lines if line.startswith("stage")][-1] == (
        "stage 2, iterated until no rows move, deleting first and rederiving then"
    )
    assert any("grouped by [0, 1] = [0, 1]" in line for line in lines), lines
    assert all(node.id in str(physical_plan(query_plan)) for node in query_plan.nodes), "each node"


# What the partitioning of the rows is behind an operator


def behind(op: Operator, *partitionings: Columns) -> Partitioning | None:
    """Returns the partitioning of what an operator outputs, whose inputs have two columns and these partitionings."""
    inputs = tuple(Input("match", key) for key in partitionings)
    nodes = (Node("read", Scan(Source())), Node("match", Match((0, P, 1)), (Input("read"),)), Node("it", op, inputs))
    plan = Plan((*nodes, Node("end", Sink(), (Input("it"),))))
    return output_partitioning(plan, plan.by_id["it"], {("it", port): key for port, key in enumerate(partitionings)})


@pytest.mark.parametrize(
    ("op", "partitionings", "expected"),
    [
        (Join(((1, 0),), (3, 1)), ((1,), (0,)), (1,)),
        (Join(((1, 0),), (2, 1)), (BROADCAST, (0,)), (0,)),
        (Join(((1, 0),), (2, 1)), ((0,), BROADCAST), None),
        (Join(((1, 0),), (3, 0)), ((1,), (0,)), None),
        (Join(((1, 0),), (3, 0)), (BROADCAST, BROADCAST), BROADCAST),
        (LeftJoin(((1, 0),), (3, 1)), ((1,), BROADCAST), (1,)),
        (AntiJoin(((1, 0),)), ((1,), (0,)), (1,)),
        (AntiJoin(((1, 0),)), ((0, 1), BROADCAST), (0, 1)),
        (MultiwayJoin(((1,), (0,), (0,)), (5, 1)), ((1,), (0,), (0,)), (1,)),
        (SequenceJoin(((0, 0),), ((0,), (0,)), (1, 0, 3), (1, 1, 1)), ((0,), (0,)), (1,)),
        (Group((1,), ()), ((1,),), (0,)),
        (Group((1, 0), ()), ((0,),), (1,)),
        (Group((1,), ()), ((),), ()),
        (Distinct(2), ((1,), (1,)), (1,)),
        (Slice(keys=(1,)), ((1,),), (1,)),
        (Consume((1,), 0, 2, ()), ((1,),), (1,)),
        (TransitiveClosure(), (BROADCAST,), (0,)),
        (TransitiveClosure(), ((),), ()),
    ],
    ids=repr,
)
def test_rows_behind_an_operator_are_where_their_columns_were(
    op: Operator, partitionings: tuple[Columns, ...], expected: Columns | None
) -> None:
    assert behind(op, *partitionings) == expected


@pytest.mark.parametrize(
    ("op", "key", "expected"),
    [
        (Project((None, 1)), (1,), (1,)), (Project((1, 0)), (1,), (0,)), (Project((1,)), (0,), None),
        (Project((1,)), (), ()), (ConstantFilter(0, P), (1,), (1,)), (Extend(Column(0)), (0, 1), (0, 1)),
        (ops.Construct((1, P, 0)), (0,), (2,)), (ops.Union(), (0,), None), (ops.Union(), (), ()),
    ],
    ids=repr,
)  # fmt: skip
def test_rows_behind_a_stateless_operator_are_where_their_columns_were(
    op: Operator, key: Columns, expected: Columns | None
) -> None:
    assert partitioning_through(Node("it", op), key) == expected


def test_a_join_broadcasts_one_of_its_inputs_at_most() -> None:
    """Every task would otherwise compute each of its rows."""
    query_plan = plan("[r: (?x :p ?y) (?y :q ?z) -> (?x :r ?z)]")
    candidates = broadcast_candidates(query_plan)
    inputs = {address for addresses in candidates.values() for address in addresses}
    assert len(inputs) > 1, "both inputs are candidates"
    assert len(choose_broadcast(query_plan, dict.fromkeys(inputs, 1), [], 1000, candidates)) == 1
