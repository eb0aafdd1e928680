"""What a run keeps, apart from what runs it: entries by memory and slot, added up and forgotten as time passes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from squall.builders.runtime.intervals import Steps, add_step, positive
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.zset import Delta, Row

Slot = tuple[str, int]
"""A memory, and the number of one of its slots (`squall.builders.runtime.dataflow.Dataflow.drain_changelog`)."""

_START = itemgetter(-3)


class StateChangelog:
    """All that a run has kept so far."""

    def __init__(self) -> None:
        self.entries: dict[Slot, list[Delta]] = {}

    def add(self, changelog: Iterable[tuple[str, int, Sequence[Delta]]]) -> None:
        """Takes down what has gone into memories."""
        for id, slot, entries in changelog:
            self.entries.setdefault((id, slot), []).extend(entries)

    def compact(self, memories: Mapping[str, Stateful], watermark: int) -> None:
        """Makes it as small as may be. passed: the time (integer ms) that the run has worked off."""
        for (id, slot), entries in self.entries.items():
            self.entries[id, slot] = compact_deltas(entries, watermark, memories[id].key_width(slot))

    def size(self) -> int:
        """How many entries there are."""
        return sum(map(len, self.entries.values()))


def live_deltas(entries: Sequence[Delta], watermark: int, together: int | None = None) -> list[Delta]:
    """Those of entries, none of which began before the ones that are known already, of which `compact_deltas` may leave
    anything: what has ended is needed where it says since when what goes on has held. passed, together: as there."""
    going_on = [entry for entry in entries if entry[-2] >= watermark]
    rows = {entry[:-3][:together] for entry in going_on}
    if len(going_on) == len(entries) or not rows or () in rows:  # (): they are all one
        return list(entries) if rows else []
    first = min(map(_START, going_on))
    before = [entry for entry in entries if first <= entry[-2] < watermark]
    if not any(entry[:-3][:together] in rows for entry in before):  # so that nothing goes on with what was earlier yet
        return going_on
    firsts = {row[0] for row in rows}  # most of what has ended need not be taken apart
    return [
        entry for entry in entries if entry[-2] >= watermark or (entry[0] in firsts and entry[:-3][:together] in rows)
    ]


def compact_deltas(entries: Iterable[Delta], watermark: int, together: int | None = None) -> list[Delta]:
    """Entries that add up to the same at every instant from `passed` on (integer ms); nothing that is to come begins
    before. Of the past they say only since when what goes on has held. together: of how many first columns rows are
    one, so that they have held since any of them has; None: all."""
    groups: dict[Row, list[Delta]] = {}
    for entry in live_deltas(list(entries), watermark, together):
        groups.setdefault(entry[:-3][:together], []).append(entry)
    deltas: list[Delta] = []
    for group in groups.values():
        deltas += group if len(group) == 1 and group[0][-1] > 0 else _added_up(group, watermark)
    return deltas


def _added_up(entries: Iterable[Delta], watermark: int) -> Iterator[Delta]:
    """The same of entries whose rows are one."""
    rows: dict[Row, Steps] = {}
    for entry in entries:
        add_step(rows.setdefault(entry[:-3], {}), *entry[-3:])
    since = _since(rows.values(), watermark)
    for row, steps in rows.items():
        for span in _spans(_clipped(steps, since, watermark)):
            yield *row, *span


def _since(rows: Iterable[Steps], watermark: int) -> int:
    """Since when any of the rows has held without a gap, at the time that has passed or up to then."""
    all_steps: Steps = {}
    for steps in rows:
        for instant, change in steps.items():
            all_steps[instant] = all_steps.get(instant, 0) + change
    return next((start for start, end in positive(all_steps) if start <= watermark <= end), watermark)


def _clipped(steps: Steps, since: int, watermark: int) -> Steps:
    """The steps with all that lies before `passed` moved to one instant. What ends at `passed` is kept: a row that
    begins then goes on with it."""
    before = sum(change for instant, change in steps.items() if instant < watermark)
    later_steps = {instant: change for instant, change in steps.items() if instant >= watermark}
    if before:
        later_steps[since] = later_steps.get(since, 0) + before
    return later_steps


def _spans(steps: Steps) -> Iterator[tuple[int, int, int]]:
    """(start, end, weight) of as few entries as add up to the steps: what began first ends first."""
    open: deque[tuple[int, int]] = deque()
    for instant in sorted(steps):
        change = steps[instant]
        while change and open and (change < 0) != (open[0][1] < 0):
            start, weight = open.popleft()
            cancelled = weight if abs(weight) <= abs(change) else -change
            yield start, instant, cancelled
            change += cancelled
            if weight != cancelled:
                open.appendleft((start, weight - cancelled))
        if change:
            open.append((instant, change))
