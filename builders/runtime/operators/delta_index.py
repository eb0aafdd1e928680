"""Indexes of deltas by join key, from which expired deltas are swept.

A row that a sliding window keeps refreshing is valid over adjoining intervals, which come one after the other. An index
merges them, and a lookup meets only deltas that are still valid. So the work for a delta does not grow with the number
of those that came before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from operator import itemgetter

from squall.builders.runtime.operators.state import Stateful, expired_keys
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, consolidate, key_of

_END = itemgetter(-2)

CellsOf = Callable[[Delta], Hashable]
"""Returns the cells of a delta that distinguish it from other rows with its key."""


class Merging(Enum):
    """Which deltas of one row an index stores as one."""

    NEVER = "never"
    """None: rows never end, so that no delta continues another."""
    ADJOINING = "adjoining"
    """A delta that begins where another one of the same weight ends."""
    UNION = "union"
    """Also those that overlap: only the union of their validity counts. All weights are 1."""


class StoresInputs(Stateful):
    """A join that stores the rows of its inputs, each in the slot with the number of the input.

    Attributes:
        merging: Which deltas of one row are stored as one.
    """

    merging: Merging

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        """Stores rows of an input, and returns the rows of the join that they add or retract."""
        raise NotImplementedError

    def stored(self, port: int) -> Iterator[Delta]:
        """Yields deltas that add up, from now on, to the rows of an input. Some of them may have expired."""
        raise NotImplementedError


def merge(old: Delta, new: Delta, merging: Merging) -> tuple[Delta, Delta | None] | None:
    """Merges two deltas of one row.

    Returns:
        The delta to store in place of `old`, and the part of `new` that it adds (None: nothing). None if the two are
        stored apart.
    """
    start, end, weight = new[-3:]
    old_start, old_end = old[-3:-1]
    if merging is Merging.UNION and old_start <= start <= old_end:
        if end <= old_end:
            return old, None
        return (*old[:-2], end, weight), new if start == old_end else (*new[:-3], old_end, end, weight)
    if merging is Merging.ADJOINING and start == old_end and weight == old[-1]:
        return (*old[:-2], end, weight), new
    return None


def cells_outside(columns: Collection[int], width: int) -> CellsOf:
    """Returns the function that returns the cells of a delta that are not in some columns of its row."""
    return key_of([column for column in range(width) if column not in columns])


class Bucket:
    """The further deltas of a key, in the order of their ends.

    Attributes:
        deltas: The deltas.
        latest: The delta of each row that came last, by its cells; empty if deltas are never merged.
    """

    __slots__ = ("deltas", "latest")

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.latest: dict[Hashable, Delta] = {}

    def __len__(self) -> int:
        return len(self.deltas)

    def add(self, cells: Hashable, delta: Delta, merging: Merging) -> Delta | None:
        """Adds a delta and returns the part of it that is new, or None."""
        part: Delta | None = delta
        if merging is not Merging.NEVER:
            old = self.latest.get(cells)
            if old is not None and (merged := merge(old, delta, merging)) is not None:
                delta, part = merged
                if part is None:
                    return None
                self._remove(old)
            self.latest[cells] = delta
        if not self.deltas or self.deltas[-1][-2] <= delta[-2]:
            self.deltas.append(delta)
        else:
            insort(self.deltas, delta, key=_END)
        return part

    def _remove(self, delta: Delta) -> None:
        place = bisect_left(self.deltas, delta[-2], key=_END)
        while self.deltas[place] is not delta:
            place += 1
        del self.deltas[place]

    def valid_after(self, time: int) -> Sequence[Delta]:
        """Returns the deltas that end after a time (integer ms)."""
        if self.deltas[0][-2] > time:
            return self.deltas
        return self.deltas[bisect_right(self.deltas, time, key=_END) :]

    def pop_first(self, cells_of: CellsOf) -> Delta:
        """Removes and returns the delta that ends first."""
        delta = self.deltas.pop(0)
        if self.latest:
            self._forget(delta, cells_of)
        return delta

    def _forget(self, delta: Delta, cells_of: CellsOf) -> None:
        cells = cells_of(delta)
        if self.latest.get(cells) is delta:
            del self.latest[cells]

    def drop_expired(self, now: int, cells_of: CellsOf) -> int:
        """Drops the deltas that ended at `now` (integer ms) or before, and returns how many they were."""
        count = bisect_right(self.deltas, now, key=_END)
        for delta in self.deltas[:count] if self.latest else ():
            self._forget(delta, cells_of)
        del self.deltas[:count]
        return count


def merge_rows(old: Delta, new: Delta, merging: Merging, cells_of: CellsOf) -> tuple[Delta, Delta | None] | None:
    """Merges two deltas of one key, as `merge` does. None also if they are of different rows."""
    if merging is Merging.NEVER or cells_of(old) != cells_of(new):
        return None
    return merge(old, new, merging)


def add_further(
    more: dict[Hashable, Bucket], key: Hashable, delta: Delta, merging: Merging, cells_of: CellsOf
) -> tuple[Delta | None, int]:
    """Adds a further delta of a key.

    Returns:
        The part of it that is new, or None; and by how many deltas the bucket has grown.
    """
    bucket = more.get(key)
    if bucket is None:
        bucket = more[key] = Bucket()
    length = len(bucket)
    part = bucket.add(cells_of(delta), delta, merging)
    return part, len(bucket) - length


class DeltaIndex:
    """A hash index of deltas by key. The first delta of each key is stored apart, because most keys have only one.

    The deltas of a key are consolidated when a third of them are retractions. A bucket is therefore at most a few times
    as long as necessary, and a retraction costs amortised constant time. Consolidated deltas of n rows are fewer than
    2 n, so that none stay when all rows are retracted.

    Args:
        cells_of: Returns the cells of a delta that are not in its key.
        merging: Which deltas of one row are stored as one.
        tuning: The tuning values of the runtime.
    """

    def __init__(self, cells_of: CellsOf, merging: Merging, tuning: Tuning = DEFAULT_TUNING) -> None:
        self.cells_of = cells_of
        self.merging = merging
        self.tuning = tuning
        self.first: dict[Hashable, Delta] = {}
        self.more: dict[Hashable, Bucket] = {}
        """The further deltas of the keys that have several."""
        self.retractions: dict[Hashable, int] = {}
        """The number of retractions by key."""
        self.stored = 0
        """The number of deltas."""
        self.sweep_rows = tuning.min_rows_to_sweep
        """With so many deltas, the oldest ones are swept."""
        self.full_sweep_rows = 2 * tuning.min_rows_to_sweep
        """With so many deltas, all of them are swept."""
        self.sweeps = 0

    def get(self, key: Hashable) -> list[Delta]:
        """Returns the deltas of a key."""
        return [self.first[key], *self._further(key)] if key in self.first else []

    def valid_after(self, key: Hashable, time: int) -> list[Delta]:
        """Returns the deltas of a key that end after a time (integer ms)."""
        first = self.first.get(key)
        if first is None:
            return []
        further = self.more[key].valid_after(time) if key in self.more else ()
        return [first, *further] if first[-2] > time else list(further)

    def deltas(self) -> Iterator[Delta]:
        """Yields all deltas."""
        yield from self.first.values()
        for bucket in self.more.values():
            yield from bucket.deltas

    def _further(self, key: Hashable) -> Sequence[Delta]:
        return self.more[key].deltas if key in self.more else ()

    def store(self, key: Hashable, delta: Delta) -> Delta | None:
        """Stores a delta and returns the part of it that is new, or None.

        Joins, which store most deltas, use generated code that does the same.
        """
        self.stored += 1
        if key not in self.first:
            self.first[key] = delta
            return delta
        return self.add(key, delta)

    def add(self, key: Hashable, delta: Delta) -> Delta | None:
        """Does the same for a key that has deltas. The delta is counted as stored already."""
        part = self._add(key, delta)
        if delta[-1] < 0:
            self.add_retraction(key)
        return part

    def _add(self, key: Hashable, delta: Delta) -> Delta | None:
        merged = merge_rows(self.first[key], delta, self.merging, self.cells_of)
        if merged is not None:
            self.stored -= 1
            del self.first[key]  # the key moves to the end of the order, so that it does not hide later keys
            self.first[key], part = merged
            return part
        part, growth = add_further(self.more, key, delta, self.merging, self.cells_of)
        self.stored += growth - 1
        return part

    def add_retraction(self, key: Hashable) -> None:
        """Notes that a delta with a negative weight was stored under the key."""
        count = self.retractions.get(key, 0) + 1
        if 3 * count < 1 + len(self._further(key)):
            self.retractions[key] = count
        else:
            self.retractions.pop(key, None)
            self._replace(key, consolidate(self.get(key)))

    def _replace(self, key: Hashable, deltas: Sequence[Delta]) -> None:
        """Replaces the deltas of a key."""
        del self.first[key]
        self.stored -= 1 + len(self.more.pop(key, ()))
        self._put(key, deltas)
        self.stored += len(deltas)

    def _put(self, key: Hashable, deltas: Sequence[Delta]) -> None:
        """Sets the deltas of a key that has none. No two of them can be merged."""
        if deltas:
            self.first[key] = deltas[0]
        if len(deltas) > 1:
            bucket = self.more[key] = Bucket()
            for delta in deltas[1:]:
                bucket.add(self.cells_of(delta), delta, self.merging)

    def sweep(self, now: int) -> None:
        """Drops expired deltas, if enough deltas were added since the last sweep.

        Deltas that came first mostly end first, and a dictionary keeps the order of insertion. A sweep therefore begins
        with the oldest keys and stops where most deltas are still valid. All deltas are checked when there are twice as
        many as after the last full sweep.
        """
        if self.stored < self.sweep_rows:
            return
        self.sweeps += 1
        if self.first and self.stored < self.full_sweep_rows:
            place = len(next(iter(self.first.values()))) - 2
            self._drop_expired(expired_keys(self.first, place, now, self.tuning.max_live_rows_scanned), now)
        if self.stored >= self.full_sweep_rows:
            self._drop_expired([key for key, delta in self.first.items() if delta[-2] <= now or key in self.more], now)
            self._settle()
            self.full_sweep_rows = 2 * max(self.tuning.min_rows_to_sweep, self.stored)
        self.sweep_rows = max(self.tuning.min_rows_to_sweep, self.stored + self.stored // 16)

    def _drop_expired(self, keys: Iterable[Hashable], now: int) -> None:
        """Drops the expired deltas of the keys."""
        first, more = self.first, self.more
        if not more:
            for key in keys:
                del first[key]
            self.stored = len(first)
            return
        for key in keys:
            bucket = more.get(key)
            if bucket is not None:
                self.stored -= bucket.drop_expired(now, self.cells_of)
                if not bucket:
                    del more[key]
            if first[key][-2] <= now:
                self.stored -= 1
                del first[key]
                self._promote(key)

    def _promote(self, key: Hashable) -> None:
        """Takes the first delta of a key from its further ones, if there are any.

        The key moves to the end of the order, so that it does not hide later keys.
        """
        bucket = self.more.get(key)
        if bucket is None:
            return
        self.first[key] = bucket.pop_first(self.cells_of)
        if not bucket:
            del self.more[key]

    def _settle(self) -> None:
        """Consolidates keys with retractions; otherwise two deltas with the sum 0 would stay for ever."""
        for key in [key for key in self.retractions if key in self.first]:
            self._replace(key, consolidate(self.get(key)))
        self.retractions.clear()

    def size(self) -> int:
        """Returns the number of deltas."""
        return len(self.first) + sum(map(len, self.more.values()))
