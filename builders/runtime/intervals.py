"""Sets of instants: disjoint half-open intervals of integer ms, and signed changes to them.

Every row of a plan is valid over some instants (semantics.md 2). What an operator is told is a *change*: a row is
valid, or is no longer valid, over an interval, counted by an integer weight, so that changes add up in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Interval = tuple[int, int]
"""[start, end): the start is in, the end is not."""
Intervals = tuple[Interval, ...]
"""Disjoint, in order, with gaps between them."""
Steps = dict[int, int]
"""By how much a count changes at an instant."""
MAX_PAST_STEPS = 8
"""Up to so many changes of a count are left as they are."""


def add_step(steps: Steps, start: int, end: int, weight: int) -> None:
    """Counts `weight` over [start, end). Instants at which nothing changes are left out."""
    for instant, change in ((start, weight), (end, -weight)):
        total = steps.get(instant, 0) + change
        if total:
            steps[instant] = total
        else:
            del steps[instant]


def levels(steps: Steps) -> Iterator[tuple[int, int, int]]:
    """(start, end, count) for each stretch over which the count stays the same and is not 0."""
    count = 0
    start = 0
    for instant in sorted(steps):
        if count:
            yield start, instant, count
        count += steps[instant]
        start = instant


def positive(steps: Steps) -> Intervals:
    """The instants at which the count is above 0."""
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
    """(start, end, +1 or -1): what is in one of the two only."""
    if old == new:
        return
    steps: Steps = {}
    for start, end in new:
        add_step(steps, start, end, 1)
    for start, end in old:
        add_step(steps, start, end, -1)
    yield from levels(steps)


def union(intervals: Iterable[Interval]) -> Intervals:
    """The instants of any of the intervals."""
    steps: Steps = {}
    for start, end in intervals:
        add_step(steps, start, end, 1)
    return positive(steps)


def unended(intervals: Intervals, watermark: int) -> Intervals:
    """The intervals without those that ended before an instant."""
    return (
        tuple(interval for interval in intervals if interval[1] >= watermark)
        if intervals and intervals[0][1] < watermark
        else intervals
    )


def forget(steps: Steps, watermark: int) -> None:
    """Forgets how a count came about before an instant, if that is much. What is left says how high it is then, since
    when it is, and since when it has been above 0: those of its intervals that end then or later stay as they are."""
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
    """The parts of [start, end) that the intervals leave out."""
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
    """The parts of [start, end) that the intervals cover."""
    for inner_start, inner_end in intervals:
        first, last = max(start, inner_start), min(end, inner_end)
        if first < last:
            yield first, last
