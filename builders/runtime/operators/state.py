"""Operator state: the changelog that all stateful operators have, and buffers from which expired rows are removed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Protocol, TypeVar

from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row
from squall.rdf import ALWAYS, FOREVER

Key = TypeVar("Key", bound=Hashable)
SlotChanges = tuple[int, list[Delta]]
"""A slot of an operator's state, and the deltas that were added to it."""


_END = itemgetter(-2)


class Stateful:
    """An operator with state, which it can log, restore and expire.

    Attributes:
        kind: The name of what the state holds. It is in checkpoints, and stays the same when the class is renamed. What
            holds something else from now on gets another one.
        log: The changes of the state by slot since the last `drain_changelog`; None if the changelog is disabled.
    """

    kind: ClassVar[str]

    def __init__(self) -> None:
        self.log: dict[int, list[Delta]] | None = None

    @property
    def layout(self) -> str:
        """What the state holds: its kind, and what else has to be the same in a run that restores it."""
        return self.kind

    def enable_changelog(self) -> None:
        """Starts to log the changes of the state for `drain_changelog`."""
        self.log = {}

    def resume_at(self, watermark: int) -> None:
        """Sets the time (integer ms) up to which the restored run had processed its input.

        Outputs up to that time are not emitted again. It is called before `restore`, of operators whose output depends
        on it.
        """

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        """Restores a slot from all deltas that `drain_changelog` ever returned for it, in one call, without output.

        An operator that runs on several workers also accepts later deltas: those that were logged since it ran or was
        restored last (`squall.builders.distributed.exec.state_cache`).
        """
        raise NotImplementedError

    def drain_changelog(self) -> Iterator[SlotChanges]:
        """Yields the changes of the state since the last call."""
        if self.log:
            changelog, self.log = self.log, {}
            yield from changelog.items()

    def key_width(self, slot: int) -> int | None:
        """Returns how many first columns make the key of the rows of a slot; None if all do.

        An expired row then says since when other rows of its key, which are still valid, have held.
        """
        return None

    def note(self, slot: int, deltas: Iterable[Delta]) -> None:
        """Logs deltas that are added to a slot of the state."""
        if self.log is not None:
            self.log.setdefault(slot, []).extend(deltas)

    def size(self) -> int:
        """Returns the number of rows in the state."""
        raise NotImplementedError

    def expire(self, now: int) -> None:
        """Drops rows that ended at `now` or before. No later delta begins before `now`."""


class TimedOperator(Stateful):
    """An operator that has work when time passes."""

    @property
    def next_time(self) -> int:
        """The next time at which the operator has work; FOREVER if there is none."""
        raise NotImplementedError

    def advance(self, now: int) -> list[Delta]:
        """Processes all instants up to `now` (integer ms), and returns the output deltas."""
        raise NotImplementedError


class SnapshotDiff:
    """The difference between successive snapshots of a small state, which is cheaper than logging each change."""

    def __init__(self) -> None:
        self.previous: Counter[Delta] = Counter()

    def update(self, deltas: Iterable[Delta]) -> list[Delta]:
        """Stores the deltas as the current snapshot and returns its difference from the previous one."""
        before, self.previous = self.previous, sum_weights(deltas)
        added_rows = [(*row, count - before[row]) for row, count in self.previous.items() if count != before[row]]
        return added_rows + [(*row, -count) for row, count in before.items() if row not in self.previous]

    def restore(self, deltas: Iterable[Delta]) -> list[Delta]:
        """Adds differences to the snapshot and returns it."""
        before = [(*row, count) for row, count in self.previous.items()]
        self.previous = sum_weights([*before, *deltas])
        return [(*row, count) for row, count in self.previous.items()]


def sum_weights(deltas: Iterable[Delta]) -> Counter[Delta]:
    """Sums the weights of equal deltas; deltas with weight 0 are left out. The keys are deltas without their weight."""
    counts: Counter[Delta] = Counter()
    for delta in deltas:
        counts[delta[:-1]] += delta[-1]
    return Counter({row: count for row, count in counts.items() if count})


class RowSerializable(Protocol):
    """A small object that can be saved as a bag of rows."""

    def rows(self) -> Iterable[Row]:
        """Returns the whole object as rows of text."""
        ...

    def load_rows(self, rows: Sequence[Row]) -> None:
        """Replaces the content by the rows."""
        ...


class DiffedState(Stateful):
    """The state of a small object, logged as differences between snapshots."""

    kind = "snapshot"

    def __init__(self, source: RowSerializable) -> None:
        super().__init__()
        self.source = source
        self.diff = SnapshotDiff()

    def drain_changelog(self) -> Iterator[SlotChanges]:
        if self.log is None:
            return
        if changes := self.diff.update((*row, ALWAYS, FOREVER, 1) for row in self.source.rows()):
            yield 0, changes

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        self.source.load_rows([delta[:-3] for delta in self.diff.restore(deltas) for _ in range(delta[-1])])


def expired_keys(rows: Mapping[Key, Any], place: int | None, now: int, max_live_rows: int) -> list[Key]:
    """Returns keys of rows that ended at `now` or before, oldest first, until too many live rows are met.

    Mostly the rows that came first end first.

    Args:
        rows: The rows by key, in the order in which they came.
        place: The index of the end in each row, not negative, which is fast; None if only the ends are stored.
        now: Integer ms.
        max_live_rows: How many live rows are too many.
    """
    expired: list[Key] = []
    enough, patience = len(rows) // max_live_rows, max_live_rows
    for key, row in rows.items():
        if (row if place is None else row[place]) <= now:
            expired.append(key)
        elif len(expired) > enough or not patience:
            break
        else:
            patience -= 1
    return expired


class BufferedBatches:
    """Deltas in the batches in which they came. A batch mostly expires as a whole."""

    def __init__(self, tuning: Tuning = DEFAULT_TUNING) -> None:
        self.min_rows_to_sweep = tuning.min_rows_to_sweep
        self.batches: deque[tuple[int, Sequence[Delta]]] = deque()
        """The batches, each with the latest end of its deltas."""
        self.size = 0
        self.full_sweep_rows = 2 * tuning.min_rows_to_sweep
        """With so many deltas, each of them is checked."""

    def add(self, deltas: Sequence[Delta]) -> None:
        if deltas:
            self.batches.append((max(map(_END, deltas)), deltas))
            self.size += len(deltas)

    def drain(self) -> Iterator[Sequence[Delta]]:
        """Yields and removes all batches."""
        while self.batches:
            yield self._next()

    def _next(self) -> Sequence[Delta]:
        _, deltas = self.batches.popleft()
        self.size -= len(deltas)
        return deltas

    def expire(self, now: int) -> None:
        """Drops batches that ended at `now` or before. It drops single deltas only if there are many."""
        while self.batches and self.batches[0][0] <= now:
            self._next()
        if self.size >= self.full_sweep_rows:
            for deltas in list(self.drain()):
                self.add([delta for delta in deltas if delta[-2] > now])
            self.full_sweep_rows = 2 * max(self.min_rows_to_sweep, self.size)
