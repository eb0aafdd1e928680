"""What operators that keep rows have in common: a log of what they keep, and indexes from which time removes rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from squall.builders.rows.entries import Entry, settle

Kept = tuple[int, list[Entry]]
"""A slot of an operator's memory, and the entries that went into it."""
THOROUGH = 8
"""Every so many sweeps, all is looked at."""
SWEPT = 256
"""Below so many rows, looking for what has ended is not worth it."""


class Keeping:
    """An operator with a memory: what every one of them can be asked about it."""

    def __init__(self) -> None:
        self.log: dict[int, list[Entry]] | None = None

    def keep(self) -> None:
        """From now on `kept` is wanted."""
        self.log = {}

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        """Takes back all that `kept` ever gave of a slot, in one call, without answering."""
        raise NotImplementedError

    def kept(self) -> Iterator[Kept]:
        """What has gone into the memory since the last call."""
        if self.log:
            taken, self.log = self.log, {}
            yield from taken.items()

    def note(self, slot: int, entries: Iterable[Entry]) -> None:
        """Entries go into a slot of the memory."""
        if self.log is not None:
            self.log.setdefault(slot, []).extend(entries)

    def size(self) -> int:
        """How many rows are kept."""
        raise NotImplementedError

    def expire(self, now: int) -> None:
        """Forgets what ended at `now` or before: no entry that is still to come begins before `now`."""


class Index:
    """Entries by key.

    What has been taken back is settled when it makes up half of the entries of a key, so that a bucket is at most twice
    as long as it need be, and taking back costs a constant on average.
    """

    def __init__(self) -> None:
        self.buckets: dict[Hashable, list[Entry]] = {}
        self.taken: dict[Hashable, int] = {}
        """How many entries of a key take back others."""
        self.stored = 0
        """Entries stored since the last sweep, and those that it left."""
        self.limit = SWEPT
        self.sweeps = 0

    def store(self, key: Hashable, entry: Entry) -> None:
        """Adds an entry. (Joins, which store most, do the same in source of their own.)"""
        self.stored += 1
        self.buckets.setdefault(key, []).append(entry)
        if entry[-1] < 0:
            self.take_back(key)

    def take_back(self, key: Hashable) -> None:
        """An entry with a negative weight has been stored under the key."""
        count = self.taken.get(key, 0) + 1
        bucket = self.buckets[key]
        if 2 * count < len(bucket):
            self.taken[key] = count
            return
        self.taken.pop(key, None)
        bucket[:] = settle(bucket)
        if not bucket:
            del self.buckets[key]

    def sweep(self, now: int) -> None:
        """Forgets what has ended, when as many entries again have come as the last sweep left.

        The oldest entry of a key is mostly the first to end: only now and then are the others looked at as well.
        """
        if self.stored < self.limit:
            return
        self.sweeps += 1
        buckets = self.buckets
        thorough = self.sweeps % THOROUGH == 0
        self._settle()
        for key in list(buckets) if thorough else [key for key, bucket in buckets.items() if bucket[0][-2] <= now]:
            bucket = buckets[key]
            left = [entry for entry in bucket if entry[-2] > now] if thorough or len(bucket) > 1 else ()
            if left:
                buckets[key] = left
            else:
                del buckets[key]
        self.stored = self.size()
        self.limit = max(SWEPT, self.stored + self.stored // 2)

    def _settle(self) -> None:
        """Adds up what has been taken back: else two entries that add up to nothing would stay for ever."""
        for key in self.taken:
            settled = settle(self.buckets[key])
            if settled:
                self.buckets[key] = settled
            else:
                del self.buckets[key]
        self.taken.clear()

    def size(self) -> int:
        return sum(map(len, self.buckets.values()))
