"""What workers keep in memory of a distributed builder's state, so that a batch costs what changes: a cache, no more.

The state of a partition is in the store: a base, and what each superstep has added to it. The operators that have
worked a partition off stay in the worker that did so, as a *replica* of that state (Schneider 1990). Whichever worker
gets the partition next has it follow: it takes in what has been added since, or all there is where it holds nothing.

Each attempt names the operators that it leaves behind by a *token* that nobody else uses. The driver hears of it with
what that attempt has stored, and of no other: operators that an attempt has worked with that failed, or came second,
are under a name that is never asked for.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow

from squall.builders.distributed.exec.routing import BROADCAST_BUCKET, BucketPartitions
from squall.builders.distributed.io.engine import Files, Folder, Read, TaskReport
from squall.builders.distributed.io.records import STATE, STATE_HANDLE, Record, as_row_batches
from squall.builders.distributed.io.task_output import read_file_list
from squall.builders.runtime.zset import Delta
from squall.rdf import ALWAYS

StageGroup = str
"""The levels that a step works off together, and over how many partitions."""


def group_of(levels: Iterable[int], owners: BucketPartitions) -> StageGroup:
    """What a step is known by that works off these levels."""
    return f"{','.join(map(str, levels))}/{len(set(owners))}"


class Version(NamedTuple):
    """What one superstep has added to the state. files: their names, by the level of which it did; tokens: by group and
    partition, of the operators that did it."""

    folder: Folder
    files: Mapping[int, Sequence[str]]
    tokens: Mapping[StageGroup, Mapping[int, str]]


class StateVersions:
    """What the state of a job consists of, as the driver knows it. most: how many rows of it a worker holds in memory
    from one step to the next, at most."""

    def __init__(self, store: Files, folders: Iterable[Folder], read: Read, most: int) -> None:
        self.store = store
        self.read = read
        self.most = most
        self.job = uuid.uuid4().hex
        """What workers know it by: what they hold for another one is none of its concern."""
        self.versions = [self._version(folder, {}) for folder in folders]
        """What has been committed,"""
        self.fresh: list[Version] = []
        """and what the batch at work has added to it so far."""

    def _version(self, folder: Folder, tokens: Mapping[StageGroup, Mapping[int, str]]) -> Version:
        files: dict[int, list[str]] = {}
        for kind, level, name in read_file_list(self.store, folder):
            if kind == STATE:
                files.setdefault(level, []).append(name)
        return Version(folder, files, tokens)

    def begin(self) -> None:
        """A batch begins, for the first time or once more."""
        self.fresh = []

    def add(self, folder: Folder, report: TaskReport) -> None:
        """A step of the batch has been stored."""
        if not report.state_rows and not report.state_handles:
            return
        tokens: dict[StageGroup, dict[int, str]] = {}
        for text, partition in report.state_handles:
            group, token = text.split(" ")
            tokens.setdefault(group, {})[partition] = token
        self.fresh.append(self._version(folder, tokens))

    def commit(self, is_full: bool = False) -> None:
        """The batch counts. whole: what it has added is all there is."""
        self.versions = [*([] if is_full else self.versions), *self.fresh]
        self.fresh = []

    def compacted(self, base: Folder) -> None:
        """All of it is in one folder now."""
        self.versions = [self._version(base, _latest_handles(self.versions))]

    def files(self) -> list[Folder]:
        """The files with what has been committed."""
        return [
            (*version.folder, STATE, name)
            for version in self.versions
            for names in version.files.values()
            for name in names
        ]

    def state(self, levels: Iterable[int], owners: BucketPartitions, keep: bool, watermark: int) -> State:
        """What some levels keep, that of the batch at work included. keep, passed: see `State`."""
        versions = (*self.versions, *self.fresh)
        return State(tuple(levels), owners, keep, self.job, versions, self.read, watermark, self.most)


def _latest_handles(versions: Sequence[Version]) -> dict[StageGroup, dict[int, str]]:
    """The tokens of the operators that hold all that there is in some versions."""
    handles: dict[StageGroup, dict[int, str]] = {}
    for version in versions:
        for group in list(handles):
            if group not in version.tokens and version.files.keys() & _stage_numbers(group):
                del handles[group]  # others have worked on these levels
        for group, tokens in version.tokens.items():
            handles.setdefault(group, {}).update(tokens)
    return handles


def _stage_numbers(group: StageGroup) -> set[int]:
    return {int(level) for level in group.partition("/")[0].split(",") if level}


def _read_nothing(file: Folder, buckets: Collection[int] | None) -> Iterable[pyarrow.RecordBatch]:
    return ()


@dataclass(frozen=True)
class State:
    """The state of some levels as a step in a worker gets at it; by default there is none, and none is kept.

    keep: what is added is told. job: whose it is. versions: all that it consists of, in order; read: what reads them.
    passed: nothing that is still to come begins before this time (integer ms). most: how many rows a worker holds in
    memory from one step to the next, at most.
    """

    levels: tuple[int, ...]
    owners: BucketPartitions
    keep: bool = False
    job: str = ""
    versions: tuple[Version, ...] = ()
    read: Read = _read_nothing
    passed: int = ALWAYS
    most: int = 0

    @property
    def group(self) -> StageGroup:
        return group_of(self.levels, self.owners)

    def take(self, partition: int) -> tuple[Any, Sequence[Version]]:
        """The operators of a partition that this worker holds, and the versions that they do not know of; None, and all
        versions, where it holds none that are of use."""
        token, operators = WORKER_STATE_CACHE.take((self.job, self.group, partition))
        for place in range(len(self.versions), 0, -1):
            if token and self.versions[place - 1].tokens.get(self.group, {}).get(partition) == token:
                return operators, self.versions[place:]
        return None, self.versions

    def entries(self, versions: Iterable[Version], partition: int) -> dict[tuple[int, int], list[Delta]]:
        """What some versions have added of a partition, by number of the node and slot."""
        deltas: dict[tuple[int, int], list[Delta]] = {}
        for row_batch in as_row_batches(self._batches(versions, partition)):
            deltas.setdefault((row_batch.node, row_batch.port), []).extend(row_batch.entries)
        return deltas

    def _batches(self, versions: Iterable[Version], partition: int) -> Iterator[pyarrow.RecordBatch]:
        buckets = [BROADCAST_BUCKET, *(bucket for bucket, owner in enumerate(self.owners) if owner == partition)]
        for version in versions:
            for level in self.levels:
                for name in version.files.get(level, ()):
                    yield from self.read((*version.folder, STATE, name), buckets)

    def put(self, partition: int, operators: Any, size: int) -> Record:
        """Keeps operators of so many rows for the next step. What tells the driver of their token, and how many
        they are."""
        token = uuid.uuid4().hex
        WORKER_STATE_CACHE.put((self.job, self.group, partition), token, operators, size, self.most)
        return Record(STATE_HANDLE, 0, 0, partition, 0, f"{self.group} {token}", size, 0, 0)


CacheKey = tuple[str, StageGroup, int]


class _CachedOperators(NamedTuple):
    token: str
    operators: Any
    size: int


class StateCache:
    """The operators that a worker process holds, by job, group and partition. What has not been used for the longest
    time goes when there are too many rows. One that is at work is not here: what fails in the middle is gone."""

    def __init__(self) -> None:
        self.held: OrderedDict[CacheKey, _CachedOperators] = OrderedDict()
        self.size = 0

    def take(self, key: CacheKey) -> tuple[str, Any]:
        """The token and the operators, which are taken out; ("", None) if there are none."""
        cached = self.held.pop(key, None)
        if cached is None:
            return "", None
        self.size -= cached.size
        return cached.token, cached.operators

    def put(self, key: CacheKey, token: str, operators: Any, size: int, most: int) -> None:
        """Keeps operators of so many rows. most: how many rows there may be in all."""
        self.take(key)
        self.held[key] = _CachedOperators(token, operators, size)
        self.size += size
        while self.size > most:
            self.take(next(iter(self.held)))


WORKER_STATE_CACHE = StateCache()
"""Those of this process."""
