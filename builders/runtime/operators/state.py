"""What operators that keep rows have in common: a log of what they keep, and indexes from which time removes rows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from squall.builders.runtime.zset import Delta, Row, consolidate
from squall.rdf import ALWAYS, FOREVER

Key = TypeVar("Key", bound=Hashable)
SlotChanges = tuple[int, list[Delta]]
"""A slot of an operator's memory, and the entries that went into it."""
MAX_LIVE_ROWS_SCANNED = 64
"""A sweep that begins with the oldest rows gives up when it has met so many that are still valid."""
MIN_ROWS_TO_SWEEP = 256
"""Below so many rows, looking for what has ended is not worth it."""


_END = itemgetter(-2)


class Stateful:
    """An operator with a memory: what every one of them can be asked about it."""

    def __init__(self) -> None:
        self.log: dict[int, list[Delta]] | None = None

    def enable_changelog(self) -> None:
        """From now on `drain_changelog` is wanted."""
        self.log = {}

    def resume_at(self, watermark: int) -> None:
        """Time had passed up to `passed` (integer ms) where this goes on: what was said of it is not said again. To be
        called before `restore`, of those whose answers depend on it."""

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        """Takes back all that `drain_changelog` ever gave of a slot, in one call, without answering. Of operators that may be
        spread over workers also what has been given since they were at work or restored last
        (`squall.builders.distributed.exec.state_cache`)."""
        raise NotImplementedError

    def drain_changelog(self) -> Iterator[SlotChanges]:
        """What has gone into the memory since the last call."""
        if self.log:
            changelog, self.log = self.log, {}
            yield from changelog.items()

    def key_width(self, slot: int) -> int | None:
        """Of how many first columns the rows of a slot are one: what of them has ended says since when others hold that
        go on. None: all columns."""
        return None

    def note(self, slot: int, entries: Iterable[Delta]) -> None:
        """Entries go into a slot of the memory."""
        if self.log is not None:
            self.log.setdefault(slot, []).extend(entries)

    def size(self) -> int:
        """How many rows are kept."""
        raise NotImplementedError

    def expire(self, now: int) -> None:
        """Forgets what ended at `now` or before: no entry that is still to come begins before `now`."""


class SnapshotDiff:
    """Tells a memory of which it is not worth while to write down each change: how it differs from when it was asked
    last."""

    def __init__(self) -> None:
        self.previous: Counter[Delta] = Counter()

    def update(self, entries: Iterable[Delta]) -> list[Delta]:
        """What has come and gone, if this is all there is now."""
        before, self.previous = self.previous, sum_weights(entries)
        added_rows = [(*row, count - before[row]) for row, count in self.previous.items() if count != before[row]]
        return added_rows + [(*row, -count) for row, count in before.items() if row not in self.previous]

    def restore(self, entries: Iterable[Delta]) -> list[Delta]:
        """All there was, of all that was ever told, or of what has been told since this was last asked."""
        before = [(*row, count) for row, count in self.previous.items()]
        self.previous = sum_weights([*before, *entries])
        return [(*row, count) for row, count in self.previous.items()]


def sum_weights(entries: Iterable[Delta]) -> Counter[Delta]:
    """Entries without their weight, by that: equal ones added up, without those that come to nothing."""
    counts: Counter[Delta] = Counter()
    for entry in entries:
        counts[entry[:-1]] += entry[-1]
    return Counter({row: count for row, count in counts.items() if count})


class RowSerializable(Protocol):
    """Something small that can be written down as a bag of rows."""

    def rows(self) -> Iterable[Row]:
        """All there is, as rows of text."""
        ...

    def load_rows(self, rows: Sequence[Row]) -> None:
        """This is all there is."""
        ...


class DiffedState(Stateful):
    """The memory of something small, told by its differences."""

    def __init__(self, source: RowSerializable) -> None:
        super().__init__()
        self.source = source
        self.diff = SnapshotDiff()

    def drain_changelog(self) -> Iterator[SlotChanges]:
        if self.log is None:
            return
        if changes := self.diff.update((*row, ALWAYS, FOREVER, 1) for row in self.source.rows()):
            yield 0, changes

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        self.source.load_rows([entry[:-3] for entry in self.diff.restore(entries) for _ in range(entry[-1])])


def expired_keys(rows: Mapping[Key, Sequence[Any]], place: int, now: int) -> list[Key]:
    """The keys of what ended at `now` or before, from those that came first until too many are met that did not: mostly
    all that have ended come first. place: of the ends in rows, from the front, which is quicker than from the end."""
    expired: list[Key] = []
    enough, patience = len(rows) // MAX_LIVE_ROWS_SCANNED, MAX_LIVE_ROWS_SCANNED
    for key, row in rows.items():
        if row[place] <= now:
            expired.append(key)
        elif len(expired) > enough or not patience:
            break
        else:
            patience -= 1
    return expired


def expired_ends(ends: Mapping[Key, int], now: int) -> list[Key]:
    """As `oldest`, where the ends are all that there is."""
    expired: list[Key] = []
    enough, patience = len(ends) // MAX_LIVE_ROWS_SCANNED, MAX_LIVE_ROWS_SCANNED
    for key, end in ends.items():
        if end <= now:
            expired.append(key)
        elif len(expired) > enough or not patience:
            break
        else:
            patience -= 1
    return expired


class BufferedBatches:
    """Entries in the lots in which they came: a lot is mostly forgotten as a whole."""

    def __init__(self) -> None:
        self.batches: deque[tuple[int, Sequence[Delta]]] = deque()
        """Each with the latest end of its entries."""
        self.size = 0
        self.full_sweep_rows = 2 * MIN_ROWS_TO_SWEEP
        """So many entries make it worth while to look at each."""

    def add(self, entries: Sequence[Delta]) -> None:
        if entries:
            self.batches.append((max(map(_END, entries)), entries))
            self.size += len(entries)

    def drain(self) -> Iterator[Sequence[Delta]]:
        """All there are; none are left."""
        while self.batches:
            yield self._next()

    def _next(self) -> Sequence[Delta]:
        _, entries = self.batches.popleft()
        self.size -= len(entries)
        return entries

    def expire(self, now: int) -> None:
        """Forgets what ended at `now` or before, if not all of it at once."""
        while self.batches and self.batches[0][0] <= now:
            self._next()
        if self.size >= self.full_sweep_rows:
            for entries in list(self.drain()):
                self.add([entry for entry in entries if entry[-2] > now])
            self.full_sweep_rows = 2 * max(MIN_ROWS_TO_SWEEP, self.size)


class DeltaIndex:
    """Entries by key, the first of each key apart from the others: most keys have one, which then needs no list.

    What has been taken back is settled when it makes up half of the entries of a key, so that a bucket is at most twice
    as long as it need be, and taking back costs a constant on average.
    """

    def __init__(self) -> None:
        self.first: dict[Hashable, Delta] = {}
        self.more: dict[Hashable, list[Delta]] = {}
        """Further entries of the keys that have several."""
        self.retractions: dict[Hashable, int] = {}
        """How many entries of a key take back others."""
        self.stored = 0
        """How many entries there are."""
        self.sweep_rows = MIN_ROWS_TO_SWEEP
        """So many make a sweep worth while,"""
        self.full_sweep_rows = 2 * MIN_ROWS_TO_SWEEP
        """and so many one in which all is looked at."""
        self.sweeps = 0

    def get(self, key: Hashable) -> list[Delta]:
        """The entries of a key."""
        return [self.first[key], *self.more.get(key, ())] if key in self.first else []

    def store(self, key: Hashable, entry: Delta) -> None:
        """Adds an entry. (Joins, which store most, do the same in source of their own.)"""
        self.stored += 1
        if key in self.first:
            self.more.setdefault(key, []).append(entry)
        else:
            self.first[key] = entry
        if entry[-1] < 0:
            self.add_retraction(key)

    def add_retraction(self, key: Hashable) -> None:
        """An entry with a negative weight has been stored under the key."""
        count = self.retractions.get(key, 0) + 1
        if 2 * count < 1 + len(self.more.get(key, ())):
            self.retractions[key] = count
        else:
            self.retractions.pop(key, None)
            self._replace(key, consolidate(self.get(key)))

    def _replace(self, key: Hashable, entries: list[Delta]) -> None:
        """These are the entries of a key now."""
        before = 1 + len(self.more.pop(key, ()))
        self.stored += len(entries) - before
        if not entries:
            del self.first[key]
            return
        self.first[key] = entries[0]
        if len(entries) > 1:
            self.more[key] = entries[1:]

    def sweep(self, now: int) -> None:
        """Forgets what has ended, when enough has come to make it worth while.

        What came first is mostly the first to end, and a dictionary is in the order in which keys came: a sweep begins
        with the oldest, and gives up where most of what it finds is still valid. All is looked at when there is twice
        as much as there was after that was done the last time.
        """
        if self.stored < self.sweep_rows:
            return
        self.sweeps += 1
        if self.first and self.stored < self.full_sweep_rows:
            place = len(next(iter(self.first.values()))) - 2
            self._drop_expired(expired_keys(self.first, place, now), now)
        if self.stored >= self.full_sweep_rows:
            self._drop_expired([key for key, entry in self.first.items() if entry[-2] <= now or key in self.more], now)
            self._settle()
            self.full_sweep_rows = 2 * max(MIN_ROWS_TO_SWEEP, self.stored)
        self.sweep_rows = max(MIN_ROWS_TO_SWEEP, self.stored + self.stored // 16)

    def _drop_expired(self, keys: Iterable[Hashable], now: int) -> None:
        """Drops the entries of these keys that have ended."""
        first, more = self.first, self.more
        if not more:
            for key in keys:
                del first[key]
            self.stored = len(first)
            return
        expired_count = 0
        for key in keys:
            if key not in more:
                del first[key]
                expired_count += 1
                continue
            entries = first.pop(key), *more.pop(key)
            left = [entry for entry in entries if entry[-2] > now]
            expired_count += len(entries) - len(left)
            if left:
                first[key] = left[0]  # at the end of the order now, so that it does not hide what is behind it
            if len(left) > 1:
                more[key] = left[1:]
        self.stored -= expired_count

    def _settle(self) -> None:
        """Adds up what has been taken back: else two entries that add up to nothing would stay for ever."""
        for key in [key for key in self.retractions if key in self.first]:
            self._replace(key, consolidate(self.get(key)))
        self.retractions.clear()

    def size(self) -> int:
        return len(self.first) + sum(map(len, self.more.values()))
