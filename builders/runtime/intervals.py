"""Sets of instants: disjoint half-open intervals of integer ms, and signed changes to them.

Every row of a plan is valid over some instants (semantics.md 2). An operator receives *changes*: a row is valid, or is
no longer valid, over an interval. An integer weight counts each change, so that changes add up in any order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Interval = tuple[int, int]
"""[start, end): the start belongs to the interval, the end does not."""
Intervals = tuple[Interval, ...]
"""Disjoint intervals in order, with gaps between them."""
Steps = dict[int, int]
"""By how much a count changes at an instant."""
MAX_PAST_STEPS = 8
"""`TimedCount.forget` leaves a count with at most so many changes as it is."""


def add_step(steps: Steps, start: int, end: int, weight: int) -> None:
    """Adds `weight` to the count over [start, end). Instants at which nothing changes are left out."""
    for instant, change in ((start, weight), (end, -weight)):
        total = steps.get(instant, 0) + change
        if total:
            steps[instant] = total
        else:
            del steps[instant]


def levels(steps: Steps) -> Iterator[tuple[int, int, int]]:
    """Yields (start, end, count) for each maximal interval over which the count is constant and not 0."""
    count = 0
    start = 0
    for instant in sorted(steps):
        if count:
            yield start, instant, count
        count += steps[instant]
        start = instant


def positive(steps: Steps) -> Intervals:
    """Returns the instants at which the count is above 0."""
    intervals: list[Interval] = []
    for start, end, count in levels(steps):
        if count <= 0:
            continue
        if intervals and intervals[-1][1] == start:
            intervals[-1] = (intervals[-1][0], end)
        else:
            intervals.append((start, end))
    return tuple(intervals)


def changes(old: Intervals, new: Intervals) -> Iterator[tuple[int, int, int]]:
    """Yields (start, end, +1 or -1) for the instants that only the new (+1) or only the old (-1) intervals contain."""
    if old == new:
        return
    steps: Steps = {}
    for start, end in new:
        add_step(steps, start, end, 1)
    for start, end in old:
        add_step(steps, start, end, -1)
    yield from levels(steps)


def union(intervals: Iterable[Interval]) -> Intervals:
    """Returns the instants of any of the intervals."""
    steps: Steps = {}
    for start, end in intervals:
        add_step(steps, start, end, 1)
    return positive(steps)


def unended(intervals: Intervals, watermark: int) -> Intervals:
    """Returns the intervals without those that ended before the watermark."""
    return (
        tuple(interval for interval in intervals if interval[1] >= watermark)
        if intervals and intervals[0][1] < watermark
        else intervals
    )


def outside(start: int, end: int, intervals: Intervals) -> Iterator[Interval]:
    """Yields the parts of [start, end) that the intervals do not cover."""
    for inner_start, inner_end in intervals:
        if inner_end <= start:
            continue
        if inner_start >= end:
            break
        if start < inner_start:
            yield start, inner_start
        start = inner_end
    if start < end:
        yield start, end


def inside(start: int, end: int, intervals: Intervals) -> Iterator[Interval]:
    """Yields the parts of [start, end) that the intervals cover."""
    for inner_start, inner_end in intervals:
        first, last = max(start, inner_start), min(end, inner_end)
        if first < last:
            yield first, last


class TimedCount:
    """A count at each instant: the sum of the weights of the intervals that were added.

    Attributes:
        instants: Where the count changes, in order (integer ms).
        changes: By how much it changes at each of them.
        positive: The instants at which it is above 0.
        may_be_negative: Whether it may be below 0 anywhere.
    """

    __slots__ = ("changes", "instants", "may_be_negative", "positive")

    def __init__(self) -> None:
        self.instants: list[int] = []
        self.changes: list[int] = []
        self.positive: Intervals = ()
        self.may_be_negative = False

    def __bool__(self) -> bool:
        """Returns whether the count is not 0 at some instant."""
        return bool(self.instants)

    def add(self, start: int, end: int, weight: int) -> None:
        """Adds a weight over [start, end)."""
        self._change(start, weight)
        self._change(end, -weight)
        if weight < 0 or self.may_be_negative:
            self._recompute()
        elif self.positive and self.positive[-1][0] <= start <= self.positive[-1][1]:
            first, last = self.positive[-1]
            self.positive = (*self.positive[:-1], (first, max(last, end)))
        else:
            self.positive = union((*self.positive, (start, end)))

    def _change(self, instant: int, change: int) -> None:
        place = bisect_left(self.instants, instant)
        if place == len(self.instants) or self.instants[place] != instant:
            self.instants.insert(place, instant)
            self.changes.insert(place, change)
        elif self.changes[place] + change:
            self.changes[place] += change
        else:
            del self.instants[place], self.changes[place]

    def _recompute(self) -> None:
        self.positive = positive(dict(zip(self.instants, self.changes, strict=True)))
        self.may_be_negative = any(count < 0 for _, _, count in self.levels())

    def levels(self, start: int | None = None) -> Iterator[tuple[int, int, int]]:
        """Yields (start, end, count) for each maximal interval over which the count is constant and not 0, from the
        last one back to the one at `start` (None: to the first)."""
        count = 0
        for place in range(len(self.instants) - 1, 0, -1):
            if start is not None and self.instants[place] <= start:
                break
            count -= self.changes[place]
            if count:
                yield self.instants[place - 1], self.instants[place], count

    def is_positive_at(self, instant: int) -> bool:
        """Returns whether the count is above 0 at an instant."""
        return any(start <= instant < end for start, end in self.positive)

    def forget(self, watermark: int) -> None:
        """Merges the changes before the watermark, if there are many.

        The count at the watermark stays the same. So do the intervals, above 0, that end at the watermark or later.
        """
        if len(self.instants) <= MAX_PAST_STEPS:
            return
        past = bisect_left(self.instants, watermark) - 1
        if past < 1:
            return
        count, began = 0, watermark
        for instant, change in zip(self.instants[:past], self.changes[:past], strict=True):
            before, count = count, count + change
            began = instant if before <= 0 or count <= 0 else began
        del self.instants[:past], self.changes[:past]
        if count:
            self.instants.insert(0, began)
            self.changes.insert(0, count)
        self.positive = unended(self.positive, watermark)


def count_of(counts: dict[Key, TimedCount], key: Key) -> TimedCount:
    """Returns the count of a key, which is added if there is none."""
    count = counts.get(key)
    if count is None:
        count = counts[key] = TimedCount()
    return count
