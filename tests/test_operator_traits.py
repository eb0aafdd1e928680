"""The traits of operators: each has them all, they agree with each other, and a new operator needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import pytest

from squall.builders.distributed.plan.partitioning import output_partitioning
from squall.builders.distributed.plan.shardability import why_not_shardable
from squall.builders.distributed.plan.strategy import strategy_of
from squall.builders.runtime.operators import make_operator
from squall.builders.runtime.operators.state import TimedOperator
from squall.errors import PlannerError
from squall.explain.words import operator_label
from squall.functions.values import integer
from squall.model import Source
from squall.plan import Input, Node, Plan
from squall.plan.cardinality import join_profile, profiles
from squall.plan.fingerprint import ID_PREFIXES, STABLE_NAMES
from squall.plan.operators import (
    Aggregate,
    AntiJoin,
    At,
    Column,
    ColumnMap,
    ConstantFilter,
    Construct,
    Consume,
    DerivedStream,
    Dilate,
    Distinct,
    Erode,
    Expression,
    Extend,
    Filter,
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
    Traits,
    TransitiveClosure,
    Union,
    Unit,
    Update,
    is_stateful,
)
from squall.plan.partitioning import output_columns
from squall.plan.validation import check
from squall.planners.partitioning import assign_partitioning
from squall.planners.passes.prune_columns import prune_columns
from squall.rdf import Term, iri, literal
from squall.rdf.compounds import MEMBERS

P = iri("urn:p")
EQUAL = Invoke("urn:x-squall:jena:equal", (Column(0), Column(1)))
COUNT = Aggregate("count", Column(1))
SAMPLES: tuple[Operator, ...] = (
    Scan(Source()), Match((0, P, 1)), Join(((1, 0),), (0, 3)), MultiwayJoin(((1,), (0,), (0,)), (0, 3, 5)),
    LeftJoin(((1, 0),), (0, 1, 3), EQUAL), AntiJoin(((1, 0),)),
    SequenceJoin(((0, 0),), ((0,), (0,)), (0, 1, 3), (1, 1, 1)), Union(),
    Iteration(((0, 0),), ((0,), (0,)), (0, 1), (1, 1, 1), values=(Column(0), Column(3)), again=EQUAL),
    Dilate(5), Erode(5, 10), At(5, tick=2), Schedule(1),
    Project((1, None)), ConstantFilter(1, P), Filter(EQUAL), Filter(EQUAL, timed=True),
    Gate(((0, 0),)),
    Extend(Column(1)), Extend(Column(1), keep_unbound=True), TableFunction(MEMBERS, (Column(0), Column(1)), 2), Unit(),
    Distinct(2), Group((1,), (COUNT,)), Slice(((Column(1), False),), keys=(0,)),
    Consume((0,), 0, 1, ("s",)), TransitiveClosure(),
    Construct((0, P, 1)), Select(("x",), (1,), order=((Column(0), True),)), Update(((None, 0, P, 1),)), Sink(),
    DerivedStream(Source("urn:s")),
)  # fmt: skip


def read_by(op: Operator) -> Plan:
    """Returns a plan in which the operator reads rows of two columns."""
    inputs = () if op.arity == (0, 0) else (Input("match"),) * max(op.arity[0], 1)
    nodes = [
        Node("read", Scan(Source())),
        Node("match", Match((0, P, 1)), (Input("read"),)),
        Node("it", op, inputs),
    ]
    if not isinstance(op, Construct | Select | Sink | Update):
        nodes.append(Node("facts", Construct((P, P, P) if isinstance(op, Unit) else (0, P, P)), (Input("it"),)))
    return Plan((*nodes, *([] if isinstance(op, Sink) else [Node("end", Sink(), (Input(nodes[-1].id),))])))


def test_there_is_a_sample_of_every_operator() -> None:
    assert {type(op) for op in SAMPLES} == {*get_args(Operator)} == {*ID_PREFIXES}


@pytest.mark.parametrize("op", SAMPLES, ids=repr)
def test_an_operator_has_all_traits(op: Operator) -> None:
    plan = check(Plan(tuple(assign_partitioning(read_by(op).nodes))))
    it = plan.by_id["it"]
    width, widths = plan.widths["it"], [plan.widths[edge.node] for edge in it.inputs]
    assert type(op).__mro__[1:-1] in ((Traits,), (type(op).__mro__[1], Traits)), "it has traits"
    assert operator_label(op), "it has a label"
    assert make_operator(it, plan) is not None, "it can be run"
    if not isinstance(op, Sink):
        assert len(profiles(plan)["it"].distinct) == width, "it has an estimate of each column"
    assert {*op.unbinds(widths)} <= plan.unbound["it"] <= {*range(width)}
    assert all((edge.columns is not None) == is_stateful(op) for edge in it.inputs), "rows meet where rows are stored"


@pytest.mark.parametrize("op", [op for op in SAMPLES if is_stateful(op) and not isinstance(op, Gate)], ids=repr)
def test_state_rows_are_partitioned_as_the_rows_of_their_input(op: Operator) -> None:
    """Distributed engines store the rows of a slot where those of the input of that number meet, or of the first one.
    So each has the columns of the input, and a key that came there. Engines run without gates."""
    plan = check(Plan(tuple(assign_partitioning(read_by(op).nodes))))
    node = plan.by_id["it"]
    operator: Any = make_operator(node, plan)
    operator.enable_changelog()
    keys: list[set[tuple[object, ...]]] = []
    for port, edge in enumerate(node.inputs):
        second = literal('[[5,"s"]]') if isinstance(op, Consume) else integer(20)
        rows = [(integer(10 * port + start), second) for start in range(1, 5)]
        keys.append({tuple(row[column] for column in edge.columns or ()) for row in rows})
        operator.apply(port, [(*row, start, 50, 1) for start, row in enumerate(rows, 1)])
    if isinstance(operator, TimedOperator):
        operator.advance(10)
    slots = [slot for slot in operator.drain_changelog() if slot[1]]
    assert slots or isinstance(op, DerivedStream), "it has state"
    for slot, deltas in slots:
        port = slot if slot < len(node.inputs) else 0
        assert {len(delta) - 3 for delta in deltas} == {2}
        columns = node.inputs[port].columns or ()
        assert {tuple(delta[column] for column in columns) for delta in deltas} <= keys[port]


@pytest.mark.parametrize("op", [op for op in SAMPLES if op.arity == (1, 1) and not op.whole_rows], ids=repr)
def test_an_operator_over_other_columns_reads_them(op: Operator) -> None:
    moved = op.over({0: 3, 1: 2})
    assert [*moved.reads([4])] == [3 - column for column in op.reads([2])]
    assert moved.over({3: 0, 2: 1}) == op


@pytest.mark.parametrize("op", [op for op in SAMPLES if op.arity == (1, 1) and not op.whole_rows], ids=repr)
def test_an_operator_that_extends_rows_copies_all_columns(op: Operator) -> None:
    """Others may copy all columns of a narrow row; none copies all of any row."""
    copies_all = [tuple(op.copied([width]))[:width] == tuple(range(width)) for width in range(2, 9)]
    assert op.extends_rows == all(copies_all)


@pytest.mark.parametrize(
    ("op", "copied", "unbound"),
    [
        (Join((), (3, 0)), (3, 0), set()),
        (MultiwayJoin(((), (), ()), (5, 0)), (5, 0), set()),
        (LeftJoin((), (3, 0)), (3, 0), {0}),
        (Project((None, 0)), (None, 0), {0}),
        (Extend(Column(0)), (0, 1, None), set()),
        (Extend(Column(0), keep_unbound=True), (0, 1, None), {2}),
        (TableFunction("urn:f", (), 1), (0, 1, None), {2}),
        (Group((1,), (COUNT,)), (1, None), {1}),
        (Select(("x",), (1,)), (None, 1, None), set()),
        (Construct((1, P, 0)), (1, None, 0, None), set()),
        (Iteration((), ((), ()), (0, 1), (1, 1, 1), values=(Column(0), EQUAL)), (0, None), {1}),
    ],
    ids=repr,
)
def test_columns_copied_and_unbound(op: Operator, copied: tuple[int | None, ...], unbound: set[int]) -> None:
    assert tuple(op.copied([2, 2, 2])) == copied
    assert {*op.unbinds([2, 2, 2])} == unbound


def test_stable_names_of_operators_never_change() -> None:
    """Checkpoints hold them: an operator that is renamed keeps its prefix."""
    prefixes = {STABLE_NAMES.get(kind, kind.__name__): prefix for kind, prefix in ID_PREFIXES.items()}
    assert prefixes == {
        "Read": "scan", "Match": "match", "Join": "join", "MultiwayJoin": "multiwayjoin",
        "LeftJoin": "leftjoin", "AntiJoin": "antijoin", "SequenceJoin": "sequencejoin",
        "Iteration": "iteration", "Gate": "gate", "Dilate": "dilate", "Erode": "erode", "At": "at",
        "Schedule": "schedule",
        "Union": "union", "Project": "project", "Where": "constantfilter", "Test": "filter", "Extend": "extend",
        "Apply": "tablefunction", "Unit": "unit", "Distinct": "distinct", "Group": "group", "Slice": "slice",
        "Consume": "consume",
        "Closure": "transitiveclosure", "Emit": "construct", "Answer": "select", "Update": "update",
        "Deliver": "sink", "Feed": "derivedstream",
    }  # fmt: skip


@dataclass(frozen=True)
class Tagged(Traits):
    """An operator that plans have never seen: it puts a tag before each row."""

    tag: Expression

    def copied(self, widths: list[int]) -> tuple[int | None, ...]:  # type: ignore[override]
        return (None, *range(widths[0]))


@dataclass(frozen=True)
class Latest(Traits):
    """Another one, which keeps the latest row of each value of a column."""

    column: int
    keeps_rows = retracts = True

    def reads(self, widths: object) -> tuple[int, ...]:
        return (self.column,)

    def grouping(self, width: int) -> tuple[int, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Enclosed(Traits):
    """One with several inputs in an order: rows of the first two that agree on a column, if a third one does, too.

    It reads instants that are complete, whose rows are never retracted.
    """

    keep: tuple[int, ...]
    arity = (3, 3)
    keeps_rows = append_only = True
    stratified = (None, "encloses")
    combines = 2

    @property
    def join_keys(self) -> tuple[tuple[int, ...], ...]:
        return ((0,), (1,), (0,))

    def copied(self, widths: object) -> tuple[int, ...]:
        return self.keep


@dataclass(frozen=True)
class Marked(Traits):
    """One that reads a single column, and adds the value to the row."""

    column: int
    whole_rows = False

    def copied(self, widths: Sequence[int]) -> tuple[int, ...]:
        return (*range(widths[0]), self.column)

    def reads(self, widths: object) -> tuple[int, ...]:
        return (self.column,)

    def over(self, places: ColumnMap) -> Marked:
        return Marked(cast(int, places[self.column]))


@dataclass(frozen=True)
class Picked(Marked):
    """One that reads a single column, and outputs its value alone."""

    extends_rows = False

    def copied(self, widths: Sequence[int]) -> tuple[int, ...]:
        return (self.column,)

    def over(self, places: ColumnMap) -> Picked:
        return Picked(cast(int, places[self.column]))


@pytest.mark.parametrize(
    ("new", "template", "pruned"),
    [
        (Marked(2), (3, P, 3), (Marked(0), Construct((1, P, 1)))),
        (Marked(2), (2, P, 3), (Marked(0), Construct((0, P, 1)))),
        (Marked(1), (2, P, 3), (Marked(0), Construct((1, P, 2)))),
        (Picked(2), (0, P, 0), (Picked(0), Construct((0, P, 0)))),
    ],
    ids=repr,
)
def test_columns_that_a_new_operator_does_not_read_are_pruned(
    monkeypatch: pytest.MonkeyPatch, new: Marked, template: tuple[int, str, int], pruned: tuple[Traits, Construct]
) -> None:
    monkeypatch.setitem(ID_PREFIXES, type(new), "new")
    read = Node("match", Match((0, 1, 2)), (Input("read"),))
    facts = Node("facts", Construct(cast(tuple[int | Term, ...], template)), (Input("it"),))
    inside = Node("it", cast(Operator, new), (Input("match"),))
    plan = prune_columns(
        Plan((Node("read", Scan(Source())), read, inside, facts, Node("end", Sink(), (Input("facts"),))))
    )
    assert tuple(node.op for node in plan.nodes[2:-1]) == pruned


def test_facts_of_all_columns_of_a_row_stay_facts() -> None:
    """Their operator copies its input, but adds no column to the columns that the input still has."""
    nodes = (
        Node("read", Scan(Source())), Node("match", Match((0, 1, 2)), (Input("read"),)),
        Node("added", Extend(Column(1)), (Input("match"),)), Node("three", Project((0, 3, 2)), (Input("added"),)),
        Node("facts", Construct((0, 1, 2)), (Input("three"),)), Node("set", Distinct(3), (Input("facts"),)),
        Node("axiom", Unit()), Node("axioms", Construct((P, P, P)), (Input("axiom"),)),
        Node("end", Sink(), (Input("set"), Input("axioms"))),
    )  # fmt: skip
    plan = prune_columns(check(Plan(tuple(assign_partitioning(nodes)))))
    assert {plan.widths[node.id] for node in plan.nodes if isinstance(node.op, Construct)} == {4}
    assert Construct((0, 3, 2)) in {node.op for node in plan.nodes}, "over the wider row, without a projection"


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (Latest(0), None),
        (Latest(1), "brings several subjects together"),
        (Enclosed((0, 3, 2)), "takes rows of several inputs in the order of time"),
        (Join(((0, 0),), (0, 1)), None),
        (Join(((1, 1),), (0, 1)), "brings several subjects together"),
        (Join(((0, 1),), (0, 1)), "brings several subjects together"),
        (Join(((1, 0), (0, 0)), (2, 1)), None),
        (LeftJoin(((0, 0),), (0, 3)), None),
        (LeftJoin(((0, 0),), (2, 3)), "brings several subjects together"),
        (AntiJoin(((0, 0),)), None),
        (AntiJoin(((0, 1),)), "brings several subjects together"),
        (MultiwayJoin(((0,), (0,), (0,)), (4, 1)), None),
        (MultiwayJoin(((0,), (0,), (1,)), (0, 1)), "brings several subjects together"),
        (TransitiveClosure(), "brings several subjects together"),
        (Group((0,), (COUNT,)), None),
        (Group((1,), (COUNT,)), "brings several subjects together"),
        (Filter(EQUAL, timed=True), None),
        (Slice(keys=(0,)), None),
        (Slice(), "brings several subjects together"),
    ],
    ids=repr,
)
def test_an_operator_is_shardable_if_its_rows_meet_by_subject(
    monkeypatch: pytest.MonkeyPatch, new: Traits, why: str | None
) -> None:
    monkeypatch.setitem(ID_PREFIXES, type(new), "new")
    op = cast(Operator, new)
    inputs = (Input("match"),) * op.arity[0]
    facts = Node("facts", Construct((0, P, 0)), (Input("it"),))
    nodes = (Node("read", Scan(Source())), Node("match", Match((0, P, 1)), (Input("read"),)), Node("it", op, inputs))
    reason = why_not_shardable(Plan((*nodes, facts, Node("end", Sink(), (Input("facts"),)))))
    assert (reason and reason.what) == why


def test_rows_of_a_new_operator_are_partitioned_where_it_copies_the_key() -> None:
    swapped = type("Swapped", (Latest,), {"copied": lambda self, widths: (1, 0)})
    dropped = type("Dropped", (Latest,), {"copied": lambda self, widths: (1,)})
    for kind, partitioning in ((Latest, (0,)), (swapped, (1,)), (dropped, None)):
        plan = Plan(tuple(assign_partitioning(read_by(cast(Operator, kind(0))).nodes)))
        assert output_partitioning(plan, plan.by_id["it"], {("it", 0): (0,)}) == partitioning
        assert output_partitioning(plan, plan.by_id["it"], {("it", 0): ()}) == (), "all rows are in one task"


def test_a_new_operator_may_decide_the_next_instant() -> None:
    """Its plan then runs as a whole."""
    deciding = type("Deciding", (Latest,), {"decides_next_instant": "decides"})
    plan = read_by(cast(Operator, deciding(0)))
    assert strategy_of(plan).division == "shards"
    assert str(strategy_of(plan).reasons[0]) == "it decides"
    assert strategy_of(plan, in_one_job=True).division == "single task"
    assert strategy_of(read_by(cast(Operator, Latest(0)))).is_staged


def test_a_new_operator_with_several_inputs_needs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    op = cast(Operator, Enclosed((0, 3, 2)))
    monkeypatch.setitem(ID_PREFIXES, Enclosed, "new")
    plan = check(Plan(tuple(assign_partitioning(read_by(op).nodes))))
    assert plan.widths["it"] == 3
    assert [edge.columns for edge in plan.by_id["it"].inputs] == [(0,), (1,), (0,)]
    assert "it" not in plan.retractable
    rows = profiles(plan)
    pairs = join_profile(rows["match"], rows["match"], [(0, 1)], range(4))
    assert rows["it"].rows == pairs.rows, "the third input has no rows in the output"
    assert operator_label(op) == "enclosed keep=(0, 3, 2)"
    partitionings = {("it", port): key for port, key in enumerate(((0,), (1,), (0,)))}
    assert output_partitioning(plan, plan.by_id["it"], partitionings) == (0,)
    assert any(node.op == op for node in prune_columns(plan).nodes)
    group = Node("group", Group((0, 1), ()), (Input("it"),))
    assert assign_partitioning([*plan.nodes[:3], group])[3].inputs[0].columns == (0,), "its rows need not move"


def test_plans_hold_a_new_operator_to_its_traits(monkeypatch: pytest.MonkeyPatch) -> None:
    op = cast(Operator, Enclosed((0, 3, 2)))
    monkeypatch.setitem(ID_PREFIXES, Enclosed, "new")
    read, match, it, facts, end = read_by(op).nodes
    with pytest.raises(PlannerError, match="`it` reads rows that may be retracted: `match`"):
        check(Plan((replace(read, op=Scan(Source(removals=True))), match, it, facts, end)))
    cycle = replace(match, inputs=(*match.inputs, Input("facts", feedback=True)))
    with pytest.raises(PlannerError, match="`it` encloses what depends on it: "):
        check(Plan((read, cycle, it, facts, end)))


@pytest.mark.parametrize(
    ("new", "width", "label"), [(Tagged(P), 3, f"tagged tag={P!r}"), (Latest(1), 2, "latest column=1")]
)
def test_a_new_operator_needs_no_more(monkeypatch: pytest.MonkeyPatch, new: Traits, width: int, label: str) -> None:
    monkeypatch.setitem(ID_PREFIXES, type(new), "new")
    op = cast(Operator, new)
    plan = check(Plan(tuple(assign_partitioning(read_by(op).nodes))))
    assert plan.widths["it"] == width
    assert len(profiles(plan)["it"].distinct) == width
    assert ("it" in plan.retractable) == is_stateful(op) == isinstance(new, Latest)
    assert plan.by_id["it"].inputs[0].columns == ((1,) if isinstance(new, Latest) else None)
    assert output_columns(op, (1,)) == ((2,) if isinstance(new, Tagged) else (1,))
    assert operator_label(op) == label
    assert any(node.op == new for node in prune_columns(plan).nodes)
