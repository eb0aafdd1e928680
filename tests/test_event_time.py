"""Groups and slices at every complete instant agree with the bags that are valid then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.builders.runtime.operators.event_time import (
    EventTimeOperator,
    GroupOperator,
    MultiplicityChanges,
    SliceOperator,
)
from squall.builders.runtime.zset import Delta, Row, consolidate
from squall.functions.jena import function_iri
from squall.functions.ordering import key
from squall.plan import operators as ops
from squall.plan.operators import Aggregate, Column, Invoke
from squall.rdf import ALWAYS, FOREVER, XSD, literal
from tests.laws import examples_of
from tests.snapshots import ALSO_ONE, INSTANTS, ONE, TWO, A, Advance, B, Bag, C, at, courses, driven, nonzero, ready
from tests.test_aggregates import naive

TEXT = literal("x")
HALF = literal("0.5", XSD + "decimal")
CELLS = (ONE, ALSO_ONE, TWO, HALF, A, TEXT, None)
NUMBERS = (ONE, ALSO_ONE, TWO, HALF)
PLUS = Invoke(function_iri("addOne"), (Column(1),))
FOLLOWING: dict[str | None, str] = {ONE: literal("2", XSD + "int"), TWO: literal("3", XSD + "int")}
"""The values of `PLUS`."""

Expected = Callable[[Bag], Bag]


def holds(op: EventTimeOperator, course: Sequence[Advance], expected: Expected) -> None:
    """Checks that the accumulated output of the operator agrees with the expected result at each instant that has
    passed."""
    for now, batch_items, actual in driven(op, course):
        assert all(start < end and weight for *_, start, end, weight in actual)
        for instant in (ALWAYS, *INSTANTS):
            if instant <= now:
                assert at(actual, instant) == expected(at(batch_items, instant)), instant


# Groups


def grouped(op: ops.Group, values: Callable[[Row], Row] = lambda row: row) -> Expected:
    """Returns the reference for a `Group`. `values` returns the row whose columns the expressions of the aggregates
    name."""

    def snapshot(bag: Bag) -> Bag:
        groups: dict[Row, list[Row]] = {} if op.keys else {(): []}
        for row in bag.elements():
            groups.setdefault(tuple(row[column] for column in op.keys), []).append(values(row))
        return Counter(
            {(*result, *(_value(aggregate, rows) for aggregate in op.aggregates)): 1 for result, rows in groups.items()}
        )

    return snapshot


def _value(aggregate: Aggregate, rows: Sequence[Row]) -> str | None:
    place = aggregate.expression.index if isinstance(aggregate.expression, Column) else 2
    return naive(aggregate, [row[place] if aggregate.expression else None for row in rows])  # type: ignore[misc]


KINDS = [
    Aggregate("count"), Aggregate("count", Column(1)), Aggregate("count", Column(1), distinct=True),
    Aggregate("sum", Column(1)), Aggregate("sum", Column(1), distinct=True), Aggregate("avg", Column(1)),
    Aggregate("min", Column(1)), Aggregate("max", Column(1)), Aggregate("sample", Column(1)),
    Aggregate("group_concat", Column(1), separator=", "), Aggregate("group_concat", Column(1), distinct=True),
]  # fmt: skip


@pytest.mark.parametrize("keys", [(), (0,)], ids=["all", "by key"])
@pytest.mark.parametrize("aggregate", KINDS, ids=lambda item: item.kind + " distinct" * item.distinct)
@given(course=courses(2, CELLS, always=True))
@settings(max_examples=examples_of(8), deadline=None)
def test_a_group_has_its_aggregate_at_every_instant(
    keys: tuple[int, ...], aggregate: Aggregate, course: list[Advance]
) -> None:
    op = ops.Group(keys, (aggregate,))
    holds(_group(op), course, grouped(op))


def _group(op: ops.Group, width: int = 2) -> GroupOperator:
    job = ready(op, width)
    assert isinstance(job, GroupOperator)
    return job


@pytest.mark.parametrize(
    "op",
    [
        ops.Group((0, 1), (Aggregate("count"),)),
        ops.Group((1, 0), ()),
        ops.Group((), ()),
        ops.Group((0,), (Aggregate("sum", Column(1)), Aggregate("count"), Aggregate("max", Column(0)))),
        ops.Group((), (Aggregate("avg", Column(1)), Aggregate("min", Column(0)))),
    ],
    ids=["two keys", "keys alone", "nothing", "three aggregates", "two of all"],
)
@given(course=courses(2, NUMBERS, always=True))
@settings(max_examples=examples_of(15), deadline=None)
def test_groups_by_several_columns_with_several_aggregates(op: ops.Group, course: list[Advance]) -> None:
    holds(_group(op), course, grouped(op))


@given(course=courses(2, (ONE, TWO, A, None)))
@settings(max_examples=examples_of(15), deadline=None)
def test_an_aggregate_of_an_expression(course: list[Advance]) -> None:
    """An expression without a value is unbound. A count leaves it out, and a sum becomes unbound."""
    op = ops.Group((0,), (Aggregate("sum", PLUS), Aggregate("count", PLUS)))
    holds(_group(op), course, grouped(op, lambda row: (*row, FOLLOWING.get(row[1]))))


def test_without_keys_there_is_one_group_from_the_start() -> None:
    count = Aggregate("count")
    none = literal("0", XSD + "integer")
    assert _group(ops.Group((), (count,))).advance(ALWAYS) == [(none, ALWAYS, FOREVER, 1)]
    assert _group(ops.Group((0,), (count,))).advance(ALWAYS) == []


def test_what_holds_now_is_output_as_lasting_and_retracted_when_it_ends() -> None:
    item, two = literal("1", XSD + "integer"), literal("2", XSD + "integer")
    op = _group(ops.Group((0,), (Aggregate("count"),)), 1)
    op.apply(0, [(A, 1, 4, 1)])
    assert op.advance(2) == [(A, item, 1, FOREVER, 1)]
    op.apply(0, [(A, 3, 9, 1)])
    assert op.next_time == 3
    assert op.advance(9) == [
        (A, item, 3, FOREVER, -1),
        (A, two, 3, 4, 1),
        (A, item, 4, 9, 1),
    ]
    assert op.next_time == FOREVER


def test_an_unchanged_row_is_not_output_again() -> None:
    op = _group(ops.Group((0,), (Aggregate("max", Column(1)),)))
    op.apply(0, [(A, TWO, 1, FOREVER, 1)])
    op.advance(1)
    op.apply(0, [(A, ONE, 2, 3, 1)])
    assert op.advance(3) == []


# Slices


def sliced(op: ops.Slice) -> Expected:
    def snapshot(bag: Bag) -> Bag:
        keys = {tuple(row[place] for place in op.keys) for row in bag}
        return Counter(row for key in keys for row in chosen(bag, key))

    def chosen(bag: Bag, key: Row) -> list[Row]:
        results = sorted((row for row in bag.elements() if tuple(row[place] for place in op.keys) == key), key=_text)
        for value, falls in reversed(op.order):
            results.sort(key=partial(_sort_key, value), reverse=falls)
        last = None if op.limit is None else op.offset + op.limit
        return results[op.offset : last]

    return snapshot


def _text(row: Row) -> tuple[str, ...]:
    return tuple(cell or "" for cell in row)


def _sort_key(value: ops.Expression, row: Row) -> Any:
    return key(_computed(value, row))


def _computed(value: ops.Expression, row: Row) -> str | None:
    if isinstance(value, Column):
        return row[value.index]
    return FOLLOWING.get(row[1])


@pytest.mark.parametrize(
    "op",
    [
        ops.Slice(limit=2),
        ops.Slice(offset=1),
        ops.Slice(offset=1, limit=2),
        ops.Slice(limit=0),
        ops.Slice(((Column(1), False),), limit=1),
        ops.Slice(((Column(1), True),), limit=2),
        ops.Slice(((Column(0), True), (Column(1), False)), offset=1, limit=1),
        ops.Slice(((PLUS, True),), limit=2),
        ops.Slice(),
        ops.Slice(limit=1, keys=(0,)),
        ops.Slice(((Column(1), True),), offset=1, limit=1, keys=(0,)),
        ops.Slice(((Column(1), False),), limit=2, keys=(1, 0)),
    ],
    ids=["limit", "offset", "both", "none", "rising", "falling", "by two", "by an expression", "all",
         "of a key", "of a key, falling", "of two keys"],
)  # fmt: skip
@given(course=courses(2, (ONE, TWO, A, None), always=True))
@settings(max_examples=examples_of(20), deadline=None)
def test_a_slice_has_its_rows_at_every_instant(op: ops.Slice, course: list[Advance]) -> None:
    holds(_slice(op), course, sliced(op))


def _slice(op: ops.Slice, width: int = 2) -> SliceOperator:
    job = ready(op, width)
    assert isinstance(job, SliceOperator)
    return job


def test_a_row_leaves_the_slice_when_another_precedes_it() -> None:
    op = _slice(ops.Slice(((Column(0), True),), limit=1), 1)
    op.apply(0, [(A, 1, 9, 1)])
    assert op.advance(2) == [(A, 1, FOREVER, 1)]
    op.apply(0, [(B, 3, 5, 1)])
    assert sorted(op.advance(5)) == [(A, 3, FOREVER, -1), (A, 5, FOREVER, 1), (B, 3, 5, 1)]


# What both have in common


BOTH = (ops.Group((0,), (Aggregate("max", Column(1)),)), ops.Slice(limit=2), ops.Group((), (Aggregate("count"),)))


@pytest.mark.parametrize("op", BOTH, ids=["group", "slice", "all"])
@given(course=courses(2, NUMBERS), data=st.data())
@settings(max_examples=examples_of(15), deadline=None)
def test_outputs_do_not_depend_on_the_steps_of_time(
    op: ops.Group | ops.Slice, course: list[Advance], data: st.DataObject
) -> None:
    every = [delta for step in course for delta in step.batch]
    once = ready(op, 2)
    assert isinstance(once, EventTimeOperator)
    once.apply(0, data.draw(st.permutations(every)))
    full_result = once.advance(course[-1].now)
    often = ready(op, 2)
    for _, _, actual in driven(often, course):
        parts = actual
    for instant in INSTANTS:
        assert at(parts, instant) == at(full_result, instant)


@pytest.mark.parametrize("op", BOTH[:2], ids=["group", "slice"])
@given(course=courses(2, CELLS))
@settings(max_examples=examples_of(15), deadline=None)
def test_no_state_remains_when_all_rows_have_expired(op: ops.Group | ops.Slice, course: list[Advance]) -> None:
    job = ready(op, 2)
    assert isinstance(job, EventTimeOperator)
    for _, _, actual in driven(job, course):
        deltas: list[Delta] = actual
    assert job.size() == 0
    assert job.next_time == FOREVER
    assert not at(deltas, FOREVER - 1)


MOVED = (*BOTH, ops.Slice(((Column(1), True),), offset=1, limit=1, keys=(0,)), ops.Group((), (Aggregate("avg", PLUS),)))


@pytest.mark.parametrize("op", MOVED, ids=["group", "slice", "all", "slice of a key", "of an expression"])
@given(course=courses(2, (ONE, TWO, A, None), always=True), settled=st.booleans())
@settings(max_examples=examples_of(15), deadline=None)
def test_another_instance_resumes_from_its_state(
    op: ops.Group | ops.Slice, course: list[Advance], settled: bool
) -> None:
    """Time stopped at some instant, and outputs up to then are not repeated. With `settled`, the store has added up its
    deltas and dropped expired ones."""
    store: list[Delta] = []
    deltas: list[Delta] = []
    message: list[Delta] = []
    passed, full_result = ALWAYS - 1, _driven(op)
    for step in course:
        result = _driven(op)
        result.resume_at(passed)
        result.restore(0, [delta for delta in consolidate(store) if delta[-2] > passed] if settled else store)
        assert result.advance(passed) == []
        result.enable_changelog()
        for item, answers in ((result, deltas), (full_result, message)):
            answers += item.apply(0, step.batch)
            answers += item.advance(step.now)
        assert result.next_time == full_result.next_time
        store += [delta for _, state in result.drain_changelog() for delta in state]
        passed = step.now
        for instant in (ALWAYS, *INSTANTS):
            assert at(deltas, instant) == at(message, instant)


def _driven(op: ops.Group | ops.Slice) -> EventTimeOperator:
    job = ready(op, 2)
    assert isinstance(job, EventTimeOperator)
    return job


@given(course=courses(1, (A, B, C)))
@settings(max_examples=examples_of(20), deadline=None)
def test_changes_add_up_to_the_bag_at_each_instant(course: list[Advance]) -> None:
    changes = MultiplicityChanges()
    bag: Bag = Counter()
    deltas: list[Delta] = []
    for step in course:
        for *row, start, end, weight in step.batch:
            changes.add(tuple(row), start, end, weight)
            deltas.append((*row, start, end, weight))
        passed = changes.watermark
        for time, change in changes.pop_until(step.now):
            assert passed <= time <= step.now
            passed = time
            for row_of, weight in change.items():
                bag[row_of] += weight
            assert nonzero(bag) == at(deltas, time)
        assert nonzero(bag) == at(deltas, step.now)
        assert changes.watermark == step.now
        assert changes.next_time > step.now


def test_rows_that_expire_before_they_are_evaluated_have_no_effect() -> None:
    changes = MultiplicityChanges()
    list(changes.pop_until(5))
    changes.add((A,), 1, 5, 1)
    assert changes.next_time == FOREVER
    changes.add((A,), 1, 7, 1)
    assert dict(changes.pop_until(9)) == {5: {(A,): 1}, 7: {(A,): -1}}
