"""Indexes of deltas: what is merged and swept changes nothing that a join can see."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.builders.runtime.operators.delta_index import DeltaIndex, Merging, cells_outside
from squall.builders.runtime.operators.distinct import AppendOnlyDistinct
from squall.builders.runtime.operators.join import JoinOperator
from squall.builders.runtime.operators.output import AppendOnlyOutput
from squall.builders.runtime.zset import Delta, key_of
from squall.plan import operators as ops
from tests.laws import examples_of
from tests.snapshots import INSTANTS, A, B, Bag, at, delta_lists, forget

TWO_COLUMNS = (A, B)


def as_seen(bag: Bag, merging: Merging) -> Bag:
    """Returns a bag as a join sees it: with `UNION` only which rows there are."""
    return Counter({row: 1 if merging is Merging.UNION else count for row, count in bag.items() if count})


def index_of(merging: Merging) -> DeltaIndex:
    return DeltaIndex(cells_outside((0,), 2), merging)


@pytest.mark.parametrize("merging", Merging)
@given(data=st.data())
@settings(max_examples=examples_of(100), deadline=None)
def test_an_index_holds_what_was_stored(merging: Merging, data: st.DataObject) -> None:
    """So do the parts that it says are new; and a lookup finds all that ends after a time."""
    signs = (1,) if merging is Merging.UNION else (1, 2, -1)
    deltas = data.draw(delta_lists(2, signs, most=10))
    index, key, parts = index_of(merging), key_of((0,)), list[Delta]()
    for delta in deltas:
        part = index.store(key(delta), delta)
        parts += [] if part is None else [part]
    stored = [delta for row in index.first for delta in index.get(row)]
    assert index.size() == index.stored == len(stored)
    for instant in INSTANTS:
        expected = as_seen(at(deltas, instant), merging)
        assert as_seen(at(parts, instant), merging) == expected
        assert as_seen(at(stored, instant), merging) == expected
        for cell in TWO_COLUMNS:
            valid = index.valid_after(cell, instant)
            assert Counter(valid) == Counter(delta for delta in index.get(cell) if delta[-2] > instant)


@pytest.mark.parametrize("merging", Merging)
@given(deltas=delta_lists(2, (1,), most=10), now=st.integers(0, max(INSTANTS)))
@settings(max_examples=examples_of(40), deadline=None)
def test_a_sweep_drops_what_has_ended(merging: Merging, deltas: list[Delta], now: int) -> None:
    index, key = index_of(merging), key_of((0,))
    for delta in deltas:
        index.store(key(delta), delta)
    index.sweep_rows = index.full_sweep_rows = 0
    index.sweep(now)
    stored = [delta for row in index.first for delta in index.get(row)]
    assert all(delta[-2] > now for delta in stored)
    assert index.size() == index.stored == len(stored)
    for instant in INSTANTS:
        if instant >= now:
            assert as_seen(at(stored, instant), merging) == as_seen(at(deltas, instant), merging)


@pytest.mark.parametrize("merging", Merging)
@given(data=st.data(), forgets=st.booleans())
@settings(max_examples=examples_of(100), deadline=None)
def test_a_join_does_not_depend_on_what_is_merged(merging: Merging, data: st.DataObject, forgets: bool) -> None:
    op = ops.Join(((0, 0),), (0, 1, 3))
    join = JoinOperator(op, (2, 2), append_only=True, merging=merging)
    sides: tuple[list[Delta], list[Delta]] = ([], [])
    actual: list[Delta] = []
    now = 0
    for port in data.draw(st.lists(st.integers(0, 1), max_size=8)):
        batch = [delta for delta in data.draw(delta_lists(2, (1,))) if delta[-3] >= now]
        sides[port].extend(batch)
        actual += join.apply(port, batch)
        if forgets:
            now = data.draw(st.integers(now, max(INSTANTS)))
            forget(join, now)
    for instant in INSTANTS:
        left, right = (at(side, instant) for side in sides)
        expected: Bag = Counter()
        for row, other in product(left, right):
            if row[0] == other[0]:
                expected[(*row, other[1])] += left[row] * right[other]
        assert as_seen(at(actual, instant), merging) == as_seen(expected, merging)


def test_adjoining_intervals_are_stored_as_one() -> None:
    index = index_of(Merging.ADJOINING)
    for start in range(100):
        index.store(A, (A, B, start, start + 1, 1))
        index.store(A, (A, A, start, start + 1, 1))
    assert sorted(index.get(A)) == [(A, A, 0, 100, 1), (A, B, 0, 100, 1)]


@pytest.mark.parametrize("merging", Merging)
def test_intervals_with_a_gap_are_stored_apart(merging: Merging) -> None:
    index = index_of(merging)
    deltas = [(A, B, 0, 5, 1), (A, B, 6, 9, 1)]
    assert [index.store(A, delta) for delta in deltas] == deltas
    assert index.get(A) == deltas


def test_what_is_valid_already_is_no_new_part() -> None:
    index = index_of(Merging.UNION)
    parts = [index.store(A, (A, B, *span, 1)) for span in ((0, 5), (2, 4), (3, 8), (8, 9), (20, 21))]
    assert parts == [(A, B, 0, 5, 1), None, (A, B, 5, 8, 1), (A, B, 8, 9, 1), (A, B, 20, 21, 1)]


def test_an_index_is_swept_when_it_has_doubled() -> None:
    """Sweeping each time would cost the square of the stored rows."""
    index = DeltaIndex(cells_outside((), 1), Merging.ADJOINING)
    swept = []
    for time in range(5000):
        index.store(time % 50, (A, time, time + 100, 1))
        before = index.sweeps
        index.sweep(time)
        swept += [time] * (index.sweeps - before)
    assert index.size() < 1000
    assert len(swept) < 40


def test_an_index_from_which_all_has_gone_can_be_swept() -> None:
    index = DeltaIndex(cells_outside((), 1), Merging.ADJOINING)
    index.sweep_rows = 0
    index.sweep(0)
    index.store(A, (A, 0, 1, 1))
    index.sweep_rows = 0
    index.sweep(1)
    assert index.size() == 0


def test_a_set_emits_what_prolongs_a_row_in_one_delta() -> None:
    """Only what adjoins is one; the next batch has its own."""
    distinct = AppendOnlyDistinct(1)
    batch = [(A, *span, 1) for span in ((0, 5), (1, 6), (2, 7), (9, 10), (9, 12))]
    assert distinct.apply(0, batch) == [(A, 0, 5, 1), (A, 5, 7, 1), (A, 9, 10, 1), (A, 10, 12, 1)]
    assert distinct.apply(0, [(A, 12, 13, 1)]) == [(A, 12, 13, 1)]


def test_a_fact_is_prolonged_before_it_would_end() -> None:
    output = AppendOnlyOutput(ops.Sink(), remembers=True)
    times = []
    for now, start, end in ((0, 0, 5), (1, 5, 6), (2, 6, 7), (7, 7, 9), (12, 12, 13)):
        output.apply(0, [(A, B, A, "rule", start, end, 1)])
        times += [emitted.time for emitted in output.flush(now)]
    assert times == [0, 12]
    assert output.future == []
