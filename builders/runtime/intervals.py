"""Sets of instants: disjoint half-open intervals of integer ms, and signed changes to them.

Every row of a plan is valid over some instants (semantics.md 2). An operator receives *changes*: a row is valid, or is
no longer valid, over an interval. An integer weight counts each change, so that changes add up in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Interval = tuple[int, int]
"""[start, end): the start belongs to the interval, the end does not."""
Intervals = tuple[Interval, ...]
"""Disjoint intervals in order, with gaps between them."""
Steps = dict[int, int]
"""By how much a count changes at an instant."""
MAX_PAST_STEPS = 8
"""`forget` leaves a count with at most so many changes as it is."""


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


def forget(steps: Steps, watermark: int) -> None:
    """Merges the changes of a count before the watermark, if there are many.

    The count at the watermark stays the same. So do the intervals, above 0, that end at the watermark or later.
    """
    if len(steps) <= MAX_PAST_STEPS:
        return
    past = sorted(instant for instant in steps if instant < watermark)
    count, began = 0, watermark
    for instant in past[:-1]:
        before, count = count, count + steps.pop(instant)
        began = instant if before <= 0 or count <= 0 else began
    if count:
        steps[began] = count


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
