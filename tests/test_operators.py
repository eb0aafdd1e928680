"""Every operator is held against its relational counterpart at every instant (snapshot reducibility, semantics.md 3).

Signed deltas come in any order and in any batches; at every instant what has come out has to add up to what the
counterpart makes of what has gone in. An operator that keeps rows may be stopped and go on somewhere else, and forgets
what has ended. Operators that evaluate complete instants have tests of their own (test_event_time.py, test_output.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall import functions
from squall.builders.runtime.operators import make_operator, stateless
from squall.builders.runtime.operators.distinct import (
    AppendOnlyDistinct,
    DRedDistinct,
    RetractableDistinct,
    TimeDependentOperator,
)
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.join import AntiJoinOperator, JoinOperator
from squall.builders.runtime.operators.output import AppendOnlyOutput, AppendOnlySolutionOutput, OutputOperator
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.operators.stateless import StatelessOperator
from squall.builders.runtime.operators.update import UpdateOperator
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.builders.runtime.zset import Delta, Row, consolidate, fact_row, is_rdf, row_fact
from squall.functions import Function
from squall.functions.jena import function_iri
from squall.model import Report, Source
from squall.model.windows import SlidingWindow
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import Column, Invoke, Value
from squall.rdf import ALWAYS, FOREVER, XSD, Atom, Boolean, Solution, Term, Triple, literal
from tests.laws import examples_of
from tests.snapshots import (
    ALSO_ONE,
    INSTANTS,
    ONE,
    REL,
    TWO,
    A,
    B,
    Bag,
    C,
    Case,
    Snapshot,
    Step,
    at,
    delta_lists,
    forget,
    nonzero,
    ready,
)

# The model


def linear(function: Callable[[Row], Row | None]) -> Snapshot:
    """Returns the reference of an operator that outputs at most one row for each row."""
    return each(lambda row: () if (result := function(row)) is None else (result,))


def each(function: Callable[[Row], Iterable[Row]]) -> Snapshot:
    """Returns the reference of an operator that outputs any number of rows for each row."""

    def snapshot(left: Bag, _: Bag) -> Bag:
        bag: Bag = Counter()
        for row, count in left.items():
            for result in function(row):
                bag[result] += count
        return nonzero(bag)

    return snapshot


def joined(on: Sequence[tuple[int, int]], keep: Sequence[int]) -> Snapshot:
    def snapshot(left: Bag, right: Bag) -> Bag:
        bag: Bag = Counter()
        for (item, count), (other, times) in product(left.items(), right.items()):
            if all(item[i] == other[j] for i, j in on):
                bag[_kept(item + other, keep)] += count * times
        return nonzero(bag)

    return snapshot


def _kept(row: Row, keep: Sequence[int]) -> Row:
    return tuple(row[column] for column in keep)


def left_joined(on: Sequence[tuple[int, int]], keep: Sequence[int], holds: Callable[[Row], bool]) -> Snapshot:
    """Returns the reference of a left join. `holds` is its condition, on the columns kept. Right rows have two
    columns."""

    def snapshot(left: Bag, right: Bag) -> Bag:
        bag: Bag = Counter()
        for item, count in left.items():
            alone = True
            for other, times in right.items():
                if all(item[i] == other[j] for i, j in on) and holds(_kept(item + other, keep)):
                    bag[_kept(item + other, keep)] += count * times
                    alone = False
            if alone:
                bag[_kept((*item, None, None), keep)] += count
        return nonzero(bag)

    return snapshot


def without(on: Sequence[tuple[int, int]]) -> Snapshot:
    def snapshot(left: Bag, right: Bag) -> Bag:
        rows: Counter[Row] = Counter()
        for row, count in right.items():
            rows[tuple(row[j] for _, j in on)] += count
        return Counter({row: count for row, count in left.items() if rows[tuple(row[i] for i, _ in on)] <= 0})

    return snapshot


def unique(by: int) -> Snapshot:
    def snapshot(left: Bag, right: Bag) -> Bag:
        counts: Bag = Counter()
        for row, count in [*left.items(), *right.items()]:
            counts[row[:by]] += count
        return Counter({row: 1 for row, count in counts.items() if count > 0})

    return snapshot


def added(left: Bag, right: Bag) -> Bag:
    return nonzero(Counter({row: left[row] + right[row] for row in left | right | -left | -right}))


def closed(left: Bag, _: Bag) -> Bag:
    """Returns the transitive closure by Warshall's algorithm."""
    results = {row for row, count in left.items() if count > 0}
    for middle in (A, B, C):
        results |= {(x, z) for (x, y), (w, z) in product(results, results) if y == middle == w}
    return Counter(dict.fromkeys(results, 1))


def match_of(*cells: ops.Cell) -> Callable[[Row], Row | None]:
    """Returns the row of a fact, followed by the name of a rule, for a match of as many cells."""

    def match(row: Row) -> Row | None:
        bound: dict[int, str | None] = {}
        for cell, term in zip(cells, row[:-1], strict=True):
            if isinstance(cell, int) and bound.setdefault(cell, term) != term:
                return None
            if isinstance(cell, str) and cell != term:
                return None
            if isinstance(cell, Value) and term not in (ONE, ALSO_ONE):
                return None
        return tuple(bound[column] for column in sorted(bound))

    return match


# The operators

TABLE = "urn:test:ways"
WAYS: dict[str | None, list[tuple[str, str | None]] | None] = {A: [(A, B), (B, None)], B: None, None: [(C, C)]}


@functions.function(TABLE, languages=())
def _ways(term: Term | None) -> Sequence[tuple[str, str | None]] | None:
    """A table function with no row for `B`, two rows for `A`, and one for an unbound argument."""
    return WAYS[term]


def _tabled(row: Row) -> Iterable[Row]:
    return [(*row, *more) for more in WAYS[row[0]] or ()]


EQUAL = Invoke(function_iri("equal"), (Column(0), Column(1)))
CONCAT = Invoke(function_iri("strConcat"), (Column(0), B))
ADD_ONE = Invoke(function_iri("addOne"), (Column(0),))


def _same(row: Row) -> Row | None:
    return row if row[0] == row[1] else None


def _join(
    on: tuple[tuple[int, int], ...], keep: tuple[int, ...], widths: tuple[int, int] = (2, 2), grows: bool = False
) -> Case:
    signs = (1,) if grows else (-1, 1, 1, 2)
    return Case(lambda: ready(ops.Join(on, keep), *widths, grows=grows), widths, joined(on, keep), signs=signs)


def _waiting_join(on: tuple[tuple[int, int], ...], keep: tuple[int, ...]) -> Case:
    """Returns a join that buffers rows of one side from the start."""

    def make() -> JoinOperator:
        job = ready(ops.Join(on, keep), 2, 2, grows=True)
        assert isinstance(job, JoinOperator)
        job.max_rows_to_index = 0
        return job

    return Case(make, (2, 2), joined(on, keep), signs=(1,))


def _left(
    on: tuple[tuple[int, int], ...],
    keep: tuple[int, ...],
    condition: tuple[int, int] | None = None,
    grows: bool = False,
) -> Case:
    """Returns the case of a left join. `condition` has two columns that have to be equal."""
    called = condition and Invoke(function_iri("equal"), tuple(map(Column, condition)))
    expected = left_joined(on, keep, lambda row: condition is None or row[condition[0]] == row[condition[1]])
    return Case(
        lambda: ready(ops.LeftJoin(on, keep, called), 2, 2, grows=grows), (2, 2), expected,
        signs=(1,) if grows else (-1, 1, 1, 2), proper=True,
    )  # fmt: skip


def _anti(on: tuple[tuple[int, int], ...], grows: bool = False) -> Case:
    signs = (1,) if grows else (-1, 1, 1, 2)
    return Case(lambda: ready(ops.AntiJoin(on), 2, 2, grows=grows), (2, 2), without(on), signs=signs)


def _match(*cells: ops.Cell) -> Case:
    terms = (A, B, ONE, ALSO_ONE, TWO, REL)
    return Case(
        lambda: StatelessOperator(stateless.match_step(cells)), (len(cells) + 1,), linear(match_of(*cells)), cells=terms
    )


def _project(*columns: int | None) -> Case:
    expected = linear(lambda row: tuple(None if column is None else row[column] for column in columns))
    return Case(lambda: ready(ops.Project(columns), 2), (2,), expected, cells=(A, B, None))


CASES = {
    "read": Case(lambda: ready(ops.Scan(Source())), (2,), linear(lambda row: row)),
    "unit": Case(lambda: ready(ops.Unit()), (0,), linear(lambda row: row)),
    "match": _match(0, A, 1),
    "match of a repeated column": _match(0, 1, 0),
    "match of a constant alone": _match(A, None, B),
    "match by value": _match(0, A, Value(ONE)),
    "match of an atom": _match(REL, 0, 1),
    "test": Case(lambda: ready(ops.Filter(EQUAL), 2), (2,), linear(_same)),
    "where": Case(lambda: ready(ops.ConstantFilter(1, A), 2), (2,), linear(lambda row: row if row[1] == A else None)),
    "extend": Case(
        lambda: ready(ops.Extend(CONCAT), 1), (1,),
        linear(lambda row: (*row, literal(str(row[0])[1:-1] + B[1:-1]))),
    ),
    "extend by a column": Case(lambda: ready(ops.Extend(Column(0)), 2), (2,), linear(lambda row: (*row, row[0]))),
    "extend without a value": Case(
        lambda: ready(ops.Extend(ADD_ONE), 1),
        (1,), linear(lambda row: (ONE, literal("2", XSD + "int")) if row[0] == ONE else None), cells=(A, ONE, None),
    ),
    "extend, and keep what has no value": Case(
        lambda: ready(ops.Extend(ADD_ONE, keep_unbound=True), 1), (1,),
        linear(lambda row: (*row, literal("2", XSD + "int") if row[0] == ONE else None)), cells=(A, ONE, None),
    ),
    "apply": Case(
        lambda: ready(ops.TableFunction(TABLE, (Column(0),), 2), 2), (2,), each(_tabled), cells=(A, B, None)
    ),
    "union": Case(lambda: ready(ops.Union(), 2, 2), (2, 2), added, cells=(A, B, None)),
    "project": _project(1),
    "project that turns columns round": _project(1, 0, 1),
    "project that leaves cells unbound": _project(None, 0, None),
    "project to nothing": _project(),
    "emit": Case(
        lambda: ready(ops.Construct((1, C, 0, 0), rules=("the rule", "another")), 2),
        (2,), linear(lambda row: (row[1], C, row[0], row[0], "the rule")),
    ),
    "emit of constants": Case(
        lambda: ready(ops.Construct((A, C), rules=("r",)), 1), (1,), linear(lambda row: (A, C, "r"))
    ),
    "emit of what may be unbound": Case(
        lambda: StatelessOperator(stateless.construct_step((1, C, 1), ("r",), 3, {0, 1})),
        (3,), linear(lambda row: None if row[1] is None else (row[1], C, row[1], "r")), cells=(A, None),
    ),
    "answer": Case(
        lambda: ready(ops.Select(("y", "x"), (1, 0), rules=("the query",)), 2),
        (2,), linear(lambda row: ("?y x\tthe query", row[1], row[0], "the query")), cells=(A, B, None),
    ),
    "answer of no variables": Case(
        lambda: ready(ops.Select((), (), rules=("q",)), 1), (1,), linear(lambda row: ("?\tq", "q"))
    ),
    "join": _join(((1, 0),), (0, 1, 3)),
    "join on two": _join(((1, 0), (0, 1)), (0, 1)),
    "join that keeps all": _join(((0, 0),), (0, 1, 2, 3)),
    "join that keeps the right alone": _join(((0, 1),), (2, 3)),
    "join that turns columns round": _join(((0, 0),), (3, 1, 0)),
    "join that repeats a column": _join(((0, 0),), (0, 1, 3, 3)),
    "join that keeps nothing": _join(((0, 0),), ()),
    "product": _join((), (0, 1)),
    "product with the unit": _join((), (0,), (0, 1)),
    "append-only join": _join(((1, 0),), (0, 1, 3), grows=True),
    "append-only product": _join((), (0, 1), grows=True),
    "join that waits": _waiting_join(((1, 0),), (0, 1, 3)),
    "product that waits": _waiting_join((), (0, 1)),
    "left join": _left(((1, 0),), (0, 1, 3)),
    "left join on two": _left(((1, 0), (0, 1)), (0, 1)),
    "left join that keeps the right alone": _left(((0, 1),), (2, 3)),
    "left join on nothing": _left((), (0, 1, 2)),
    "left join with a condition": _left(((0, 0),), (0, 1, 3), (1, 2)),
    "left join with a condition on columns turned round": _left((), (3, 0, 1), (0, 2)),
    "append-only left join": _left(((1, 0),), (0, 1, 3), grows=True),
    "append-only left join with a condition": _left(((0, 0),), (0, 1, 3), (1, 2), grows=True),
    "anti-join": _anti(((0, 1),)),
    "anti-join on two": _anti(((0, 1), (1, 0))),
    "anti-join on nothing": _anti(()),
    "append-only anti-join": _anti(((0, 1),), grows=True),
    "append-only set": Case(lambda: ready(ops.Distinct(2), 2, 2, grows=True), (2, 2), unique(2), signs=(1,)),
    "append-only set of facts": Case(
        lambda: ready(ops.Distinct(1), 2, 2, grows=True), (2, 2), unique(1), signs=(1,), columns=1
    ),
    "counting set": Case(lambda: ready(ops.Distinct(2), 2, 2), (2, 2), unique(2), cells=(A, B, None)),
    "counting set of facts": Case(lambda: ready(ops.Distinct(1), 2, 2), (2, 2), unique(1), columns=1),
    "recursive set": Case(lambda: DRedDistinct(2), (2, 2), unique(2)),
    "closure": Case(
        lambda: ready(ops.TransitiveClosure(), 2, grows=True), (2,), closed, signs=(1,), cells=(A, B, C)
    ),
}  # fmt: skip
KEEPING = {name: case for name, case in CASES.items() if isinstance(case.make(), Stateful)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@given(data=st.data())
@settings(max_examples=examples_of(12), deadline=None)
def test_outputs_agree_with_the_definition_at_every_instant(case: Case, data: st.DataObject) -> None:
    op = case.make()
    steps: list[Step] = []
    deltas: list[Delta] = []
    for port, batch in data.draw(case.steps):
        inputs = list(batch)
        deltas += op.apply(port, batch)
        assert batch == inputs, "what is given stays as it is"
        steps.append((port, batch))
        case.holds(steps, deltas)


@pytest.mark.parametrize("case", KEEPING.values(), ids=KEEPING.keys())
@given(data=st.data(), settled=st.booleans())
@settings(max_examples=examples_of(10), deadline=None)
def test_another_instance_resumes_from_its_state(case: Case, data: st.DataObject, settled: bool) -> None:
    """After each step the state is moved into a new operator. With `settled`, the store has added up its deltas."""
    store: dict[int, list[Delta]] = {}
    steps: list[Step] = []
    deltas: list[Delta] = []
    for port, batch in data.draw(case.steps):
        op = case.make()
        assert isinstance(op, Stateful)
        restore(op, store, settled)
        deltas += op.apply(port, batch)
        keep(op, store)
        steps.append((port, batch))
        case.holds(steps, deltas)


def restore(op: Stateful, store: dict[int, list[Delta]], settled: bool) -> None:
    for slot in sorted(store):
        op.restore(slot, consolidate(store[slot]) if settled else store[slot])
    op.enable_changelog()


def keep(op: Stateful, store: dict[int, list[Delta]]) -> None:
    for slot, state in op.drain_changelog():
        store.setdefault(slot, []).extend(state)
    assert list(op.drain_changelog()) == []


@pytest.mark.parametrize("name", [name for name, case in KEEPING.items() if -1 in case.signs])
@given(data=st.data())
@settings(max_examples=examples_of(8), deadline=None)
def test_retracted_rows_leave_no_state(name: str, data: st.DataObject) -> None:
    case = KEEPING[name]
    op = case.make()
    assert isinstance(op, Stateful)
    steps = [(port, [(*delta[:-1], 1) for delta in batch]) for port, batch in data.draw(case.steps)]
    back = [(port, [(*delta[:-1], -1) for delta in batch]) for port, batch in steps]
    for port, batch in steps:
        op.apply(port, batch)
    assert bool(op.size()) == any(batch for _, batch in steps)
    for port, batch in data.draw(st.permutations(back)):
        op.apply(port, batch)
    assert op.size() == 0


# What has ended


@pytest.mark.parametrize("case", KEEPING.values(), ids=KEEPING.keys())
@given(data=st.data(), forever=st.booleans())
@settings(max_examples=examples_of(15), deadline=None)
def test_expiry_does_not_change_outputs(case: Case, data: st.DataObject, forever: bool) -> None:
    """Deltas arrive in the order of their start, and now and then the operator expires rows. In the end no state is
    left (semantics.md 6, law 6), except for rows that hold for ever."""
    op = case.make()
    assert isinstance(op, Stateful)
    steps: list[Step] = []
    deltas: list[Delta] = []
    for port, ((*row, start, end, weight),) in sorted(_singly(data.draw(case.steps)), key=lambda step: step[1][0][-3]):
        if data.draw(st.booleans()):
            forget(op, start)
        batch = [(*row, start, end if forever else min(end, max(INSTANTS) + 1), weight)]
        deltas += op.apply(port, batch)
        steps.append((port, batch))
    case.holds(steps, deltas)
    forget(op, 2 * len(INSTANTS))
    assert op.size() == 0 or any(delta[-2] == FOREVER for _, batch in steps for delta in batch)


def _singly(steps: Iterable[Step]) -> Iterator[Step]:
    return ((port, [delta]) for port, batch in steps for delta in batch)


@pytest.mark.parametrize("grows", [True, False])
def test_memories_of_what_ends_stay_small(grows: bool) -> None:
    """However long a stream of new rows is, the state is at most a few times the valid rows."""
    job = [
        ready(ops.Join(((0, 0),), (0,)), 1, 1, grows=grows), ready(ops.AntiJoin(((0, 0),)), 1, 1, grows=grows),
        ready(ops.LeftJoin(((0, 0),), (0,)), 1, 1, grows=grows), ready(ops.Distinct(1), 1, 1, grows=grows),
    ]  # fmt: skip
    for op in job:
        assert isinstance(op, Stateful)
        largest = 0
        for time in range(4000):
            op.apply(time % 2, [(f"<urn:{time}>", time, time + 10, 1)])
            op.expire(time)
            largest = max(largest, op.size())
        assert largest < 2000, op


def test_rows_of_one_side_wait_until_the_other_brings_some() -> None:
    """The buffered rows are in no index. Expired rows are deleted, also where some rows of each batch never expire."""
    op = ready(ops.Join(((0, 0),), (0, 1, 3)), 2, 2, grows=True)
    assert isinstance(op, JoinOperator)
    op.apply(1, [(A, B, 0, FOREVER, 1)])
    largest = 0
    for time in range(0, 8000, 4):
        lot = [(f"<urn:{time}>", C, time, FOREVER if time % 800 == 0 else time + 40, 1), (A, C, time, time + 40, 1)]
        assert op.apply(0, lot) == [(A, C, B, time, time + 40, 1)]
        op.expire(time)
        largest = max(largest, op.size())
    assert op.indexes[0].size() <= DEFAULT_TUNING.min_rows_to_sweep
    assert largest < 4 * DEFAULT_TUNING.min_rows_to_sweep
    result = op.apply(1, [(A, C, 8000, FOREVER, 1), ("<urn:800>", C, 8000, FOREVER, 1)])
    lasting = ("<urn:800>", C, C, 8000, FOREVER, 1)
    assert sorted(result) == [lasting] + [(A, C, C, 8000, time + 40, 1) for time in range(7964, 8000, 4)]
    assert not op.buffered.size


# Sets in a recursion


@given(batches=st.lists(st.tuples(st.booleans(), delta_lists(1, (-1, 1, 1))), max_size=6))
@settings(max_examples=examples_of(25), deadline=None)
def test_a_recursive_set_deletes_first_and_rederives(batches: list[tuple[bool, list[Delta]]]) -> None:
    """While deleting, it outputs all possible deletions and no insertion; after rederivation, the result agrees with
    counting."""
    op = DRedDistinct(1)
    deltas: list[Delta] = []
    actual: list[Delta] = []
    for deleting, batch in batches:
        op.deleting = deleting
        result = op.apply(0, batch)
        op.deleting = False
        assert not deleting or all(weight < 0 for *_, weight in result)
        actual += result + op.rederive()
        deltas += batch
        for instant in INSTANTS:
            assert at(actual, instant) == unique(1)(at(deltas, instant), Counter())


def test_while_deleting_a_row_goes_though_it_has_another_reason() -> None:
    op = DRedDistinct(1)
    assert op.apply(0, [(A, 0, FOREVER, 1), (A, 0, FOREVER, 1)]) == [(A, 0, FOREVER, 1)]
    op.deleting = True
    assert op.apply(0, [(A, 3, FOREVER, -1)]) == [(A, 3, FOREVER, -1)]
    assert op.apply(0, [(B, 3, FOREVER, 1)]) == []
    op.deleting = False
    assert sorted(op.rederive()) == [(A, 3, FOREVER, 1), (B, 3, FOREVER, 1)]


@given(
    before=st.lists(delta_lists(1, (-1, 1, 1)), max_size=4), after=st.lists(delta_lists(1, (-1, 1, 1)), max_size=3),
    settled=st.booleans(),
)  # fmt: skip
@settings(max_examples=examples_of(25), deadline=None)
def test_a_recursive_set_moves_between_deleting_and_rederiving(
    before: list[list[Delta]], after: list[list[Delta]], settled: bool
) -> None:
    """The phases of a distributed recursion are iterations: each starts from the state of the last one."""
    store: dict[int, list[Delta]] = {}
    deltas: list[Delta] = []

    def moved(work: Callable[[DRedDistinct], list[Delta]]) -> None:
        op = DRedDistinct(1)
        restore(op, store, settled)
        deltas.extend(work(op))
        keep(op, store)

    def delete(batch: list[Delta]) -> Callable[[DRedDistinct], list[Delta]]:
        def work(op: DRedDistinct) -> list[Delta]:
            op.deleting = True
            return op.apply(0, batch)

        return work

    for batch in before:
        moved(delete(batch))
    moved(DRedDistinct.rederive)
    for batch in after:
        moved(delete(batch))
    moved(DRedDistinct.rederive)
    every = [delta for batch in [*before, *after] for delta in batch]
    for instant in INSTANTS:
        assert at(deltas, instant) == unique(1)(at(every, instant), Counter())


@pytest.mark.parametrize("made", [RetractableDistinct, DRedDistinct])
@given(delta_lists(2, (-1, 1, 1), most=8))
@settings(max_examples=examples_of(25), deadline=None)
def test_a_row_begins_with_its_derivations(made: type[RetractableDistinct], batch: list[Delta]) -> None:
    """The second column is the rule: one that derives the row when it begins."""
    for row, maker, start, _, weight in made(1).apply(0, batch):
        existing_items = at(batch, start)
        if weight > 0 and all(count > 0 for count in existing_items.values()):
            assert existing_items[row, maker] > 0


# Functions of time

NOW = Invoke(function_iri("now"), ())
EARLY = Invoke(function_iri("regex"), (NOW, literal(r".*00:00:00(\.00[1-3])?Z")))
"""A test that is true of rows that have held since before 4 ms."""
BEFORE = Invoke(function_iri("lessThan"), (NOW, literal("1970-01-01T00:00:00.004Z", XSD + "dateTime")))
"""A test of a deadline, which is true until 4 ms."""
TIME_OPERATORS = {
    "extend": ops.Extend(NOW, timed=True), "test": ops.Filter(EARLY, timed=True),
    "deadline": ops.Filter(BEFORE, timed=True),
}  # fmt: skip


def since(taken: Sequence[Delta], row: Row, instant: int) -> int:
    """Returns the time since when a row has been valid without a gap."""
    while instant > INSTANTS[0] and at(taken, instant - 1)[row] > 0:
        instant -= 1
    return instant


def timed_rows(op: ops.Extend | ops.Filter, taken: Sequence[Delta], instant: int) -> Bag:
    """Returns the expected result of the operator at an instant."""
    now = functions.lookup(function_iri("now"))
    bag: Bag = Counter()
    for row, count in at(taken, instant).items():
        start = since(taken, row, instant)
        if count > 0 and isinstance(op, ops.Extend):
            bag[(*row, str(now.evaluate(start)))] = count
        elif count > 0 and (instant if op == TIME_OPERATORS["deadline"] else start) < 4:
            bag[row] = count
    return bag


@pytest.mark.parametrize("op", TIME_OPERATORS.values(), ids=TIME_OPERATORS)
@given(batches=st.lists(delta_lists(1, (-1, 1, 1)), max_size=5), move=st.booleans(), settled=st.booleans())
@settings(max_examples=examples_of(25), deadline=None)
def test_a_function_of_time_sees_since_when_a_row_holds(
    op: ops.Extend | ops.Filter, batches: list[list[Delta]], move: bool, settled: bool
) -> None:
    timed = ready(op, 1)
    assert isinstance(timed, TimeDependentOperator)
    timed.enable_changelog()
    deltas: list[Delta] = []
    actual: list[Delta] = []
    store: dict[int, list[Delta]] = {}
    for batch in batches:
        if move:
            timed = ready(op, 1)
            assert isinstance(timed, TimeDependentOperator)
            restore(timed, store, settled)
        actual += timed.apply(0, batch)
        keep(timed, store)
        deltas += batch
        for instant in INSTANTS:
            assert at(actual, instant) == timed_rows(op, deltas, instant)


@pytest.mark.parametrize("op", TIME_OPERATORS.values(), ids=TIME_OPERATORS)
@given(batch=delta_lists(1, (-1, 1, 1), most=8), data=st.data())
@settings(max_examples=examples_of(25), deadline=None)
def test_a_time_function_deletes_expired_rows(
    op: ops.Extend | ops.Filter, batch: list[Delta], data: st.DataObject
) -> None:
    """Rows that expire at this instant are still stored: a row that continues has held since it began."""
    timed = ready(op, 1)
    assert isinstance(timed, TimeDependentOperator)
    deltas: list[Delta] = []
    for delta in sorted(batch, key=lambda item: item[-3]):
        forget(timed, data.draw(st.integers(0, delta[-3])))
        deltas += timed.apply(0, [delta])
    for instant in INSTANTS:
        assert at(deltas, instant) == timed_rows(op, batch, instant)


# Table functions


def test_a_table_function_has_to_return_the_right_number_of_values() -> None:
    op = ready(ops.TableFunction(TABLE, (Column(0),), 3), 1)
    with pytest.raises(ValueError, match="a row of 2 values, not of 3"):
        op.apply(0, [(A, 0, FOREVER, 1)])


def test_a_timed_table_function_gets_the_time_of_the_row() -> None:
    functions.register(Function("urn:test:when", lambda time, term: [(f'"{time}"',)], 1, 1, timed=True))
    op = ready(ops.TableFunction("urn:test:when", (Column(0),), 1), 1)
    assert op.apply(0, [(A, 3, 9, 2)]) == [(A, '"3"', 3, 9, 2)]


# Rows, facts and solutions


@pytest.mark.parametrize("fact", [Triple(A, B, ONE), Atom(C, (A, ONE)), Atom(C, ())])
def test_a_fact_as_a_row_and_back(fact: Triple | Atom) -> None:
    row = fact_row(fact, "the rule")
    assert row[-1] == "the rule"
    assert row_fact(row[:-1]) == fact
    assert type(row_fact(row[:-1])) is type(fact)


def test_a_solution_survives_a_round_trip() -> None:
    ((*row, rule, _, _, _),) = ready(ops.Select(("y", "x"), (1, 0), rules=("q",)), 2).apply(0, [(A, None, 1, 2, 1)])
    assert (row_fact(row), rule) == (Solution(("y", "x"), (None, A)), "q")
    ((*row, _, _, _, _),) = ready(ops.Select((), (), rules=("q",)), 0).apply(0, [(1, 2, 1)])
    assert row_fact(row) == Solution((), ())


@pytest.mark.parametrize("value", [True, False])
def test_the_answer_of_ask_survives_a_round_trip(value: bool) -> None:
    term = literal(str(value).lower(), XSD + "boolean")
    ((*row, rule, _, _, _),) = ready(ops.Select((), (0,), rules=("q",), ask=True), 1).apply(0, [(term, 1, 2, 1)])
    assert (row_fact(row), rule, is_rdf(row)) == (Boolean(value), "q", True)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((A, B, ONE), True), (("_:b", B, A), True), ((ONE, B, A), False), ((A, ONE, A), False), ((A, "_:b", A), False),
        ((REL, ONE), True), ((REL,), True), (("?x", None), True), (("?",), True),
    ],
)  # fmt: skip
def test_generalized_triples_are_not_output(row: Row, expected: bool) -> None:
    assert is_rdf(row) is expected


@given(delta_lists(1, (-1, 1, 2)))
def test_settled_entries_add_up_to_the_same(taken: list[Delta]) -> None:
    settled = consolidate(taken)
    assert all(at(settled, instant) == at(taken, instant) for instant in INSTANTS)
    assert all(
        at(settled, instant)[tuple(row)]
        for *row, start, end, _ in settled for instant in INSTANTS if start <= instant < end
    )  # fmt: skip


# Which operator a node becomes


def _nodes(recursive: bool, negates: bool) -> Plan:
    again = (Input("set", feedback=True),) if recursive else ()
    return Plan(
        (
            Node("read", ops.Scan(Source())),
            Node("match", ops.Match((0, A, 1)), (Input("read"), *again)),
            Node("other", ops.Match((0, B, 1)), (Input("read"),)),
            Node("two", ops.AntiJoin(()) if negates else ops.Join((), (0, 1)), (Input("match"), Input("other"))),
            Node("emit", ops.Construct((0, A, 1)), (Input("two"),)),
            Node("set", ops.Distinct(3), (Input("emit"),)),
            Node("end", ops.Sink(), (Input("set"),)),
        )
    )


def test_a_set_is_as_simple_as_its_place_allows() -> None:
    kinds: dict[tuple[bool, bool], type] = {}
    for recursive, negates in product((False, True), (False, True)):
        plan = _nodes(recursive, negates)
        kinds[recursive, negates] = type(make_operator(plan.by_id["set"], plan))
    assert kinds == {
        (False, False): AppendOnlyDistinct, (True, False): AppendOnlyDistinct,
        (False, True): RetractableDistinct, (True, True): DRedDistinct,
    }  # fmt: skip


@pytest.mark.parametrize("grows", [True, False])
def test_a_negation_counts_retractable_rows_only(grows: bool) -> None:
    op = ready(ops.AntiJoin(()), 1, 1, grows=grows)
    assert isinstance(op, AntiJoinOperator)
    assert op.append_only is grows


@pytest.mark.parametrize(
    ("op", "grows", "expected"),
    [
        (ops.Sink(), True, AppendOnlyOutput),
        (ops.Sink(), False, OutputOperator),
        (ops.Sink("dstream"), True, OutputOperator),
        (ops.Sink("rstream"), True, OutputOperator),
        (ops.Sink(report=Report("periodic", 5)), True, OutputOperator),
    ],
)
def test_the_output_operator_depends_on_its_inputs(op: ops.Sink, grows: bool, expected: type) -> None:
    plan = Plan(
        (
            Node("read", ops.Scan(Source(removals=not grows))),
            Node("match", ops.Match((0, 1, 2)), (Input("read"),)),
            Node("emit", ops.Construct((0, 1, 2)), (Input("match"),)),
            Node("op", op, (Input("emit"),)),
        )
    )
    assert type(make_operator(plan.by_id["op"], plan)) is expected


@pytest.mark.parametrize(
    ("end", "negates", "expected"),
    [
        (ops.Sink(), False, AppendOnlySolutionOutput),
        (ops.Sink(), True, OutputOperator),
        (ops.Sink("dstream"), False, OutputOperator),
        (ops.Sink(report=Report("periodic", 5)), False, OutputOperator),
    ],
)
def test_solutions_are_counted_where_they_may_be_retracted(end: ops.Sink, negates: bool, expected: type) -> None:
    answers = (
        (
            Node("not", ops.AntiJoin(()), (Input("unit"), Input("unit"))),
            Node("answer", ops.Select((), ()), (Input("not"),)),
        )
        if negates
        else (Node("answer", ops.Select((), ()), (Input("unit"),)),)
    )
    plan = Plan((Node("unit", ops.Unit()), *answers, Node("end", end, (Input("answer"),))))
    assert type(make_operator(plan.by_id["end"], plan)) is expected


@pytest.mark.parametrize(
    ("distinct", "source", "expected"),
    [
        (False, Source(), False), (True, Source(), True), (False, Source(window=SlidingWindow(5)), True),
        (False, Source(windows=(("urn:s", SlidingWindow(5)),)), True),
    ],
)  # fmt: skip
def test_what_ends_may_begin_again_and_is_remembered(distinct: bool, source: Source, expected: bool) -> None:
    plan = Plan(
        (
            Node("read", ops.Scan(source)),
            Node("match", ops.Match((0, 1, 2)), (Input("read"),)),
            Node("emit", ops.Construct((0, 1, 2)), (Input("match"),)),
            Node("end", ops.Sink(distinct=distinct), (Input("emit"),)),
        )
    )
    op = make_operator(plan.by_id["end"], plan)
    assert isinstance(op, AppendOnlyOutput)
    assert op.remembers is expected


WHOLE = (ops.Group((), ()), ops.Slice(), ops.Update(((None, 0, A, 0),)), ops.Sink("rstream"))


@pytest.mark.parametrize("op", WHOLE, ids=lambda op: type(op).__name__)
def test_event_time_operators_wait_for_the_watermark(op: ops.Operator) -> None:
    job = ready(op, 1)
    assert isinstance(job, EventTimeOperator)
    assert job.apply(0, [] if isinstance(job, OutputOperator) else [(A, 1, 2, 1)]) == []
    assert isinstance(job, UpdateOperator) or job.next_time <= 1 or isinstance(job, OutputOperator)


# Which columns may be unbound


def _unbound(op: ops.Operator, *inputs: ops.Operator, width: int = 2) -> set[int]:
    """Returns the columns that may be unbound after an operator whose inputs are matches with these."""
    nodes = [Node("read", ops.Scan(Source())), Node("match", ops.Match(tuple(range(width))), (Input("read"),))]
    nodes += [Node(f"in{port}", item, (Input("match"),)) for port, item in enumerate(inputs)]
    node = Node("op", op, tuple(Input(f"in{port}") for port in range(len(inputs))))
    return set(Plan((*nodes, node)).unbound["op"])


HOLED = ops.Project((0, None))
WHOLED = ops.Project((0, 1))


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        (ops.Match((0, 1)), (WHOLED,), set()),
        (HOLED, (WHOLED,), {1}),
        (ops.Project((1, 0, None)), (HOLED,), {0, 2}),
        (ops.Join(((0, 0),), (0, 1, 3)), (WHOLED, HOLED), {2}),
        (ops.Join(((0, 0),), (1, 0, 3)), (HOLED, WHOLED), {0}),
        (ops.LeftJoin(((0, 0),), (0, 1, 3)), (WHOLED, WHOLED), {2}),
        (ops.LeftJoin(((0, 0),), (3, 1, 0)), (HOLED, WHOLED), {0, 1}),
        (ops.AntiJoin(((0, 0),)), (HOLED, WHOLED), {1}),
        (ops.AntiJoin(((0, 0),)), (WHOLED, HOLED), set()),
        (ops.Union(), (WHOLED, HOLED), {1}),
        (ops.Distinct(2), (HOLED, WHOLED), {1}),
        (ops.Filter(EQUAL), (HOLED,), {1}),
        (ops.ConstantFilter(0, A), (HOLED,), {1}),
        (ops.Extend(Column(0)), (HOLED,), {1}),
        (ops.Slice(), (HOLED,), {1}),
        (ops.TableFunction(TABLE, (Column(0),), 2), (HOLED,), {1, 2, 3}),
        (ops.Group((1, 0), (ops.Aggregate("count"),)), (HOLED,), {0, 2}),
        (ops.Unit(), (), set()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ops.Operator) else None,
)  # fmt: skip
def test_what_may_be_unbound(op: ops.Operator, inputs: tuple[ops.Operator, ...], expected: set[int]) -> None:
    assert _unbound(op, *inputs) == expected


def test_a_recursion_does_not_lose_itself_in_what_may_be_unbound() -> None:
    plan = _nodes(recursive=True, negates=False)
    assert not plan.unbound["set"]


def test_no_fact_is_constructed_from_unbound_variables() -> None:
    plan = Plan(
        (
            Node("read", ops.Scan(Source())),
            Node("match", ops.Match((0, 1)), (Input("read"),)),
            Node("maybe", ops.LeftJoin(((0, 0),), (0, 1, 3)), (Input("match"), Input("match"))),
            Node("emit", ops.Construct((0, B, 2), rules=("r",)), (Input("maybe"),)),
            Node("end", ops.Sink(), (Input("emit"),)),
        )
    )
    op = make_operator(plan.by_id["emit"], plan)
    inputs = [(A, B, None, ALWAYS, FOREVER, 1), (A, B, C, ALWAYS, FOREVER, 1)]
    assert op.apply(0, inputs) == [(A, B, C, "r", ALWAYS, FOREVER, 1)]
