"""The state cache: operator state that workers keep in memory, so that a batch costs only what changes.

The state of a partition is in the store: a base, and what each step has added to it. The operators that have processed
a partition stay in their worker as a cached copy of that state (Schneider 1990). Whichever worker gets the partition
next brings its copy up to date: it applies what has been added since, or reads everything if it has no copy.

Each attempt of a task names the operators that it leaves by a *handle* that nobody else uses. The driver learns the
handle together with what the attempt has stored. Operators of attempts that fail, or come second, have a handle that
nobody asks for.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow
from pyarrow import compute

from squall.builders.distributed.io.engine import Files, Folder, Read, TaskReport
from squall.builders.distributed.io.records import STATE, StateHandle, as_row_batches, column
from squall.builders.distributed.io.task_output import read_file_list
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET, BucketPartitions
from squall.builders.runtime.zset import Delta
from squall.rdf import ALWAYS

StageGroup = str
"""The stages that a step processes together, and the number of partitions."""


def group_of(stages: Iterable[int], bucket_partitions: BucketPartitions) -> StageGroup:
    """Returns the name of the group of stages that a step processes together."""
    return f"{','.join(map(str, stages))}/{len(set(bucket_partitions))}"


class Version(NamedTuple):
    """What one step has added to the state.

    Attributes:
        folder: the folder of the step.
        files: the names of its files, by stage.
        handles: the handles of the operators that added it, by stage group and partition.
    """

    folder: Folder
    files: Mapping[int, Sequence[str]]
    handles: Mapping[StageGroup, Mapping[int, str]]


class StateVersions:
    """The versions that make up the state of a job, as the driver knows them.

    Args:
        store: the files of the job.
        folders: the folders of the committed versions, in order.
        max_cached_rows: the most rows that a worker caches.
    """

    def __init__(self, store: Files, folders: Iterable[Folder], max_cached_rows: int) -> None:
        self.store = store
        self.read = store.reader()
        self.max_cached_rows = max_cached_rows
        self.job = uuid.uuid4().hex
        """The name by which workers know the job, so that they do not use the copies of another."""
        self.versions = [self._version(folder, {}) for folder in folders]
        """The committed versions,"""
        self.fresh: list[Version] = []
        """and those that the current batch has added so far."""

    def _version(self, folder: Folder, handles: Mapping[StageGroup, Mapping[int, str]]) -> Version:
        files: dict[int, list[str]] = {}
        for kind, stage, name in read_file_list(self.store, folder):
            if kind == STATE:
                files.setdefault(stage, []).append(name)
        return Version(folder, files, handles)

    def add(self, folder: Folder, report: TaskReport) -> None:
        """Adds the version of a stored step of the batch."""
        if not report.state_rows and not report.all(StateHandle):
            return
        handles: dict[StageGroup, dict[int, str]] = {}
        for partition, name, _ in report.all(StateHandle):
            group, handle = name.split(" ")
            handles.setdefault(group, {})[partition] = handle
        self.fresh.append(self._version(folder, handles))

    def commit(self, is_full: bool = False) -> None:
        """Commits the batch. is_full: whether its versions are the whole state."""
        self.versions = [*([] if is_full else self.versions), *self.fresh]
        self.fresh = []

    def compacted(self, base: Folder) -> None:
        """Notes that the whole state is in one folder now."""
        self.versions = [self._version(base, _latest_handles(self.versions))]

    def files(self) -> list[Folder]:
        """Returns the files of the committed state."""
        return [
            (*version.folder, STATE, name)
            for version in self.versions
            for names in version.files.values()
            for name in names
        ]

    def state(self, stages: Iterable[int], bucket_partitions: BucketPartitions, keep: bool, watermark: int) -> State:
        """Returns the state of some stages, with that of the current batch. The other arguments are those of
        `State`."""
        versions = (*self.versions, *self.fresh)
        return State(
            tuple(stages), bucket_partitions, keep, self.job, versions, self.read, watermark, self.max_cached_rows
        )


def _latest_handles(versions: Sequence[Version]) -> dict[StageGroup, dict[int, str]]:
    """Returns the handles of the operators that hold the whole state of some versions."""
    handles: dict[StageGroup, dict[int, str]] = {}
    for version in versions:
        for group in list(handles):
            if group not in version.handles and version.files.keys() & _stage_numbers(group):
                del handles[group]  # others have worked on these stages
        for group, newer in version.handles.items():
            handles.setdefault(group, {}).update(newer)
    return handles


def _stage_numbers(group: StageGroup) -> set[int]:
    return {int(stage) for stage in group.partition("/")[0].split(",") if stage}


def _read_nothing(file: Folder) -> Iterable[pyarrow.RecordBatch]:
    return ()


@dataclass(frozen=True)
class State:
    """The state of some stages, as a step in a worker reaches it. By default it is empty, and nothing is kept.

    Attributes:
        stages: the numbers of the stages.
        bucket_partitions: the partition of each bucket.
        keep: whether changes are reported.
        job: the job that it belongs to.
        versions: all that it consists of, in order.
        read: reads the files of the versions.
        watermark: the time before which nothing begins that is still to come (integer ms).
        max_cached_rows: the most rows that a worker caches.
    """

    stages: tuple[int, ...]
    bucket_partitions: BucketPartitions
    keep: bool = False
    job: str = ""
    versions: tuple[Version, ...] = ()
    read: Read = _read_nothing
    watermark: int = ALWAYS
    max_cached_rows: int = 0

    @property
    def group(self) -> StageGroup:
        return group_of(self.stages, self.bucket_partitions)

    def take(self, partition: int) -> tuple[Any, Sequence[Version]]:
        """Returns the cached operators of a partition and the versions that they lack, or None and all versions."""
        handle, operators = WORKER_STATE_CACHE.take((self.job, self.group, partition))
        for place in range(len(self.versions), 0, -1):
            if handle and self.versions[place - 1].handles.get(self.group, {}).get(partition) == handle:
                return operators, self.versions[place:]
        return None, self.versions

    def read_deltas(self, versions: Iterable[Version], partition: int) -> dict[tuple[int, int], list[Delta]]:
        """Returns the deltas of a partition in some versions, by number of the node and slot."""
        deltas: dict[tuple[int, int], list[Delta]] = {}
        for row_batch in as_row_batches(self._batches(versions, partition)):
            deltas.setdefault((row_batch.node, row_batch.port), []).extend(row_batch.deltas)
        return deltas

    def _batches(self, versions: Iterable[Version], partition: int) -> Iterator[pyarrow.RecordBatch]:
        buckets = [
            BROADCAST_BUCKET,
            *(bucket for bucket, owner in enumerate(self.bucket_partitions) if owner == partition),
        ]
        bucket_set = column(buckets, pyarrow.int32())
        for version in versions:
            for stage in self.stages:
                for name in version.files.get(stage, ()):
                    for batch in self.read((*version.folder, STATE, name)):
                        yield batch.filter(compute.is_in(batch["bucket"], bucket_set))

    def put(self, partition: int, operators: Any, size: int) -> StateHandle:
        """Caches operators that hold so many rows. Returns the record that reports their handle and size to the
        driver."""
        handle = uuid.uuid4().hex
        WORKER_STATE_CACHE.put((self.job, self.group, partition), handle, operators, size, self.max_cached_rows)
        return StateHandle(partition, f"{self.group} {handle}", size)


CacheKey = tuple[str, StageGroup, int]


class _CachedOperators(NamedTuple):
    handle: str
    operators: Any
    size: int


class StateCache:
    """The operators that a worker process caches, by job, stage group and partition.

    The least recently used ones are evicted when there are too many rows. Operators in use are not in the cache, so
    those of a task that fails are gone.
    """

    def __init__(self) -> None:
        self.entries: OrderedDict[CacheKey, _CachedOperators] = OrderedDict()
        self.size = 0

    def take(self, key: CacheKey) -> tuple[str, Any]:
        """Removes and returns a handle and its operators; ("", None) if there are none."""
        cached = self.entries.pop(key, None)
        if cached is None:
            return "", None
        self.size -= cached.size
        return cached.handle, cached.operators

    def put(self, key: CacheKey, handle: str, operators: Any, size: int, max_rows: int) -> None:
        """Caches operators that hold so many rows. max_rows: the most rows in the cache."""
        self.take(key)
        self.entries[key] = _CachedOperators(handle, operators, size)
        self.size += size
        while self.size > max_rows:
            self.take(next(iter(self.entries)))


WORKER_STATE_CACHE = StateCache()
"""The cache of this process."""
