"""The state of a run as a changelog: deltas by operator and slot, which are compacted as time passes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from squall.builders.runtime.intervals import Steps, add_step, positive
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.zset import Delta, Row

Slot = tuple[str, int]
"""The id of a stateful operator, and the number of one of its slots
(`StateRegistry.drain_changelog`)."""

_START = itemgetter(-3)


class StateRegistry(dict[str, Stateful]):
    """Everything that a checkpoint needs, by the id of the node, where it belongs to one."""

    def enable_changelog(self) -> None:
        """Starts to log the changes of all states for `drain_changelog`."""
        for state in self.values():
            state.enable_changelog()

    def drain_changelog(self) -> Iterator[tuple[str, int, list[Delta]]]:
        """Yields (state, slot, deltas) for all changes since the last call. It needs `enable_changelog`."""
        for id, state in self.items():
            yield from ((id, slot, deltas) for slot, deltas in state.drain_changelog())

    def restore(self, watermark: int, state: Mapping[Slot, Sequence[Delta]]) -> None:
        """Restores the states from all that `drain_changelog` ever yielded of a run with the same plan and layout.

        It is called before anything else. Where all hosted nodes can run on several workers, it may be called again
        between two batches, with what such a dataflow has logged since. `enable_changelog` has to be called again
        afterwards.

        Args:
            watermark: The time (integer ms) up to which that run had processed its input.
            state: The deltas by state and slot.
        """
        for operator_state in self.values():
            operator_state.log = None
            operator_state.resume_at(watermark)
        for (id, slot), deltas in sorted(state.items()):
            self[id].restore(slot, deltas)


class StateChangelog:
    """The changelog of all operators of a run, summed up."""

    def __init__(self) -> None:
        self.deltas: dict[Slot, list[Delta]] = {}

    def add(self, changelog: Iterable[tuple[str, int, Sequence[Delta]]]) -> None:
        """Adds (operator, slot, deltas) that operators have logged."""
        for id, slot, deltas in changelog:
            self.deltas.setdefault((id, slot), []).extend(deltas)

    def renamed(self, old_keys: Mapping[str, str]) -> StateChangelog:
        """Returns the changelog by other keys of the operators. old_keys: the present key by the other one; operators
        without one are left out."""
        by_key: dict[str, dict[int, list[Delta]]] = {}
        for (key, slot), deltas in self.deltas.items():
            by_key.setdefault(key, {})[slot] = deltas
        renamed = StateChangelog()
        renamed.deltas = {
            (key, slot): deltas for key, old in old_keys.items() for slot, deltas in by_key.get(old, {}).items()
        }
        return renamed

    def compact(self, states: Mapping[str, Stateful], watermark: int) -> None:
        """Compacts the deltas of all slots.

        Args:
            states: The stateful operators by id.
            watermark: The time (integer ms) up to which the run has processed its input.
        """
        for (id, slot), deltas in self.deltas.items():
            self.deltas[id, slot] = compact_deltas(deltas, watermark, states[id].key_width(slot))

    def size(self) -> int:
        """Returns the number of deltas."""
        return sum(map(len, self.deltas.values()))


def live_deltas(deltas: Sequence[Delta], watermark: int, key_width: int | None = None) -> list[Delta]:
    """Returns the deltas of which `compact_deltas` may keep anything.

    No delta began before those that are stored already. An expired delta is needed only where it says since when a row
    that is still valid has held. The arguments are those of `compact_deltas`.
    """
    # Comprehensions over all deltas of a state, each of which is skipped if the one before shows that it is not needed.
    live = [delta for delta in deltas if delta[-2] >= watermark]
    rows = {delta[:-3][:key_width] for delta in live}
    if len(live) == len(deltas) or not rows or () in rows:  # (): all rows have one key
        return list(deltas) if rows else []
    first_start = min(map(_START, live))
    expired = [delta for delta in deltas if first_start <= delta[-2] < watermark]
    if not any(delta[:-3][:key_width] in rows for delta in expired):  # no live row continues an expired one
        return live
    first_cells = {row[0] for row in rows}  # most expired deltas need not be sliced
    return [
        delta
        for delta in deltas
        if delta[-2] >= watermark or (delta[0] in first_cells and delta[:-3][:key_width] in rows)
    ]


def compact_deltas(deltas: Iterable[Delta], watermark: int, key_width: int | None = None) -> list[Delta]:
    """Returns fewer deltas with the same sum at every instant from the watermark on.

    Of the past, they only say since when a row that is still valid has held.

    Args:
        deltas: The deltas of one slot.
        watermark: Integer ms; no later delta begins before it.
        key_width: How many first columns make the key of a row; rows with one key have held since any of them has.
            None: all columns.
    """
    groups: dict[Row, list[Delta]] = {}
    for delta in live_deltas(list(deltas), watermark, key_width):
        groups.setdefault(delta[:-3][:key_width], []).append(delta)
    output: list[Delta] = []
    for group in groups.values():
        output += group if len(group) == 1 and group[0][-1] > 0 else _added_up(group, watermark)
    return output


def _added_up(deltas: Iterable[Delta], watermark: int) -> Iterator[Delta]:
    """Yields fewer deltas with the same sum, for deltas of one key."""
    rows: dict[Row, Steps] = {}
    for delta in deltas:
        add_step(rows.setdefault(delta[:-3], {}), *delta[-3:])
    since = _since(rows.values(), watermark)
    for row, steps in rows.items():
        for span in _spans(_clipped(steps, since, watermark)):
            yield *row, *span


def _since(rows: Iterable[Steps], watermark: int) -> int:
    """Returns since when any of the rows has held without a gap, at the watermark or up to it."""
    all_steps: Steps = {}
    for steps in rows:
        for instant, change in steps.items():
            all_steps[instant] = all_steps.get(instant, 0) + change
    return next((start for start, end in positive(all_steps) if start <= watermark <= end), watermark)


def _clipped(steps: Steps, since: int, watermark: int) -> Steps:
    """Returns the steps with all changes before the watermark moved to one instant.

    An end at the watermark stays, because a row that begins then continues it.
    """
    before = sum(change for instant, change in steps.items() if instant < watermark)
    later_steps = {instant: change for instant, change in steps.items() if instant >= watermark}
    if before:
        later_steps[since] = later_steps.get(since, 0) + before
    return later_steps


def _spans(steps: Steps) -> Iterator[tuple[int, int, int]]:
    """Yields (start, end, weight) of as few deltas as add up to the steps. What began first ends first."""
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
