"""Operations on intervals agree with those on sets of integers."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from squall.builders.runtime.intervals import (
    MAX_PAST_STEPS,
    Interval,
    Intervals,
    Steps,
    TimedCount,
    add_step,
    changes,
    inside,
    levels,
    outside,
    positive,
    unended,
    union,
)
from squall.rdf import ALWAYS, FOREVER

SPANS = st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda span: (span[0], span[0] + span[1]))
LISTS = st.lists(SPANS, max_size=6)
WEIGHTED = st.lists(st.tuples(SPANS, st.integers(-2, 2).filter(bool)), max_size=8)


def instants(intervals: Intervals | list[Interval]) -> set[int]:
    return {instant for start, end in intervals for instant in range(start, end)}


def is_normal(intervals: Intervals) -> bool:
    """Returns whether intervals are disjoint, in order, and with gaps between them."""
    proper = all(start < end for start, end in intervals)
    return proper and all(before[1] < after[0] for before, after in pairwise(intervals))


def count_of(weighted: list[tuple[Interval, int]]) -> TimedCount:
    count = TimedCount()
    for (start, end), weight in weighted:
        count.add(start, end, weight)
    return count


def steps_of(weighted: list[tuple[Interval, int]]) -> Steps:
    steps: Steps = {}
    for (start, end), weight in weighted:
        add_step(steps, start, end, weight)
    return steps


def counts(weighted: list[tuple[Interval, int]]) -> Counter[int]:
    results: Counter[int] = Counter()
    for (start, end), weight in weighted:
        for instant in range(start, end):
            results[instant] += weight
    return results


@given(st.lists(st.tuples(SPANS, st.integers(-2, 2).filter(bool)), max_size=30), st.integers(0, 14))
def test_only_the_past_is_dropped(weighted: list[tuple[Interval, int]], passed: int) -> None:
    """Later counts stay the same, and so does the time since when a valid row has held; little else is left."""
    count = count_of(weighted)
    before = [level for level in count.levels() if level[1] >= passed]
    full_result = unended(count.positive, passed)
    many = len(count.instants) > MAX_PAST_STEPS
    count.forget(passed)
    assert [level for level in count.levels() if level[1] >= passed] == before
    assert unended(count.positive, passed) == full_result
    assert 0 not in count.changes
    assert not many or sum(instant < passed for instant in count.instants) <= 2


@given(WEIGHTED, st.integers(0, 14))
def test_a_timed_count_counts(weighted: list[tuple[Interval, int]], since: int) -> None:
    count, steps = count_of(weighted), steps_of(weighted)
    assert dict(zip(count.instants, count.changes, strict=True)) == steps
    assert count.instants == sorted(count.instants)
    assert count.positive == positive(steps)
    assert list(count.levels())[::-1] == list(levels(steps))
    assert list(count.levels(since))[::-1] == [level for level in levels(steps) if level[1] > since]
    assert [count.is_positive_at(time) for time in range(20)] == [counts(weighted)[time] > 0 for time in range(20)]


def test_a_count_of_what_lies_inside_is_positive_as_long() -> None:
    assert count_of([((0, 9), 1), ((2, 4), 1)]).positive == ((0, 9),)


@given(WEIGHTED, st.integers(0, 14))
def test_live_intervals(weighted: list[tuple[Interval, int]], passed: int) -> None:
    full_result = positive(steps_of(weighted))
    assert unended(full_result, passed) == tuple(item for item in full_result if item[1] >= passed)


@given(WEIGHTED)
def test_levels_are_the_counts(weighted: list[tuple[Interval, int]]) -> None:
    results: Counter[int] = Counter()
    for start, end, count in levels(steps_of(weighted)):
        assert start < end
        assert count != 0
        for instant in range(start, end):
            assert instant not in results
            results[instant] = count
    assert results == Counter({instant: count for instant, count in counts(weighted).items() if count})


@given(WEIGHTED)
def test_retracted_intervals_leave_nothing(weighted: list[tuple[Interval, int]]) -> None:
    assert steps_of([*weighted, *((span, -weight) for span, weight in weighted)]) == {}


@given(WEIGHTED, st.randoms())
def test_the_order_of_changes_does_not_matter(weighted: list[tuple[Interval, int]], random: Random) -> None:
    shuffled = list(weighted)
    random.shuffle(shuffled)
    assert steps_of(shuffled) == steps_of(weighted)


@given(WEIGHTED)
def test_positive(weighted: list[tuple[Interval, int]]) -> None:
    result = positive(steps_of(weighted))
    assert is_normal(result)
    assert instants(result) == {instant for instant, count in counts(weighted).items() if count > 0}


@given(LISTS)
def test_union(spans: list[Interval]) -> None:
    result = union(spans)
    assert is_normal(result)
    assert instants(result) == instants(spans)


@given(LISTS, LISTS)
def test_changes(before: list[Interval], after: list[Interval]) -> None:
    old, new = union(before), union(after)
    results = list(changes(old, new))
    assert {sign for _, _, sign in results} <= {1, -1}
    assert instants([(start, end) for start, end, sign in results if sign > 0]) == instants(new) - instants(old)
    assert instants([(start, end) for start, end, sign in results if sign < 0]) == instants(old) - instants(new)
    assert sum(end - start for start, end, _ in results) == len(instants(old) ^ instants(new))


@given(SPANS, LISTS)
def test_inside_and_outside_part_a_span(span: Interval, spans: list[Interval]) -> None:
    covered = union(spans)
    within, without = tuple(inside(*span, covered)), tuple(outside(*span, covered))
    assert is_normal(within)
    assert is_normal(without)
    assert instants(within) == instants([span]) & instants(covered)
    assert instants(without) == instants([span]) - instants(covered)


def test_unbounded_intervals() -> None:
    always = union([(ALWAYS, FOREVER)])
    assert always == ((ALWAYS, FOREVER),)
    assert list(outside(5, FOREVER, always)) == []
    assert list(inside(5, FOREVER, always)) == [(5, FOREVER)]
    assert list(changes(always, ((ALWAYS, 7),))) == [(7, FOREVER, -1)]
    assert list(outside(ALWAYS, FOREVER, ((3, 7),))) == [(ALWAYS, 3), (7, FOREVER)]


def test_nothing() -> None:
    assert union([]) == positive({}) == ()
    assert not [*levels({}), *changes((), ()), *inside(1, 5, ())]
    assert list(outside(1, 5, ())) == [(1, 5)]
