"""The engine interface: what a micro-batch needs of a distributed engine, to store, shuffle and process records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow

from squall.builders.distributed.io.records import (
    BUFFERED,
    INSTANT,
    NODE_METRIC,
    OUTPUT_FILE,
    RECORD_FILE,
    ROW,
    SOURCE_COUNT,
    STATE,
    STATE_HANDLE,
    WATERMARK,
    Record,
    WorkerStep,
)
from squall.builders.distributed.plan.buckets import BucketPartitions
from squall.plan import Plan
from squall.plan.node_metrics import NodeMetric
from squall.rdf import ALWAYS, FOREVER

Frame = Any
"""Records somewhere: on Spark a DataFrame."""
Folder = tuple[object, ...]
"""The parts of a path in the store."""
Read = Callable[[Folder, Collection[int] | None], Iterable[pyarrow.RecordBatch]]
"""Reads the records of a file in the store, by its path: those of some buckets, or all (None)."""


class TaskReport(NamedTuple):
    """What workers report to the driver. All times are integer ms; `ALWAYS` stands for none.

    Attributes:
        latest_time: the latest event time.
        evaluations: (stream and graph, packed; time), or (number of a sink node; time).
        source_counts: the number of statements read, by number of the source.
        row_count: how many rows are on their way to later stages.
        latest_start: the latest time at which one of these rows begins to hold.
        latest_end: the latest time at which one begins or ends to hold.
        state_rows: how many rows were added to the state.
        node_metrics: (number of a node, rows, microseconds or -1) of what was measured.
        state_handles: (stage group and handle, partition) of the operators that workers cache
            (`squall.builders.distributed.exec.state_cache`).
        cached_rows: how many rows these operators hold.
        files: (record type, stage, name) of the files in which records were stored.
        output_files: the names of the files that hold outputs.
    """

    latest_time: int = ALWAYS
    evaluations: tuple[tuple[str, int, int], ...] = ()
    source_counts: tuple[tuple[int, int], ...] = ()
    row_count: int = 0
    latest_start: int = ALWAYS
    latest_end: int = ALWAYS
    state_rows: int = 0
    node_metrics: tuple[tuple[int, int, int], ...] = ()
    state_handles: tuple[tuple[str, int], ...] = ()
    cached_rows: int = 0
    files: tuple[tuple[str, int, str], ...] = ()
    output_files: tuple[str, ...] = ()

    @staticmethod
    def of(messages: Iterable[Record]) -> TaskReport:
        """Returns the report that records make up together."""
        by_kind: dict[str, list[Record]] = {}
        for message in messages:
            by_kind.setdefault(message.kind, []).append(message)
        files = [(record.row.partition(" "), record) for record in by_kind.get(RECORD_FILE, ())]
        rows = [record for (kind, _, _), record in files if kind in (ROW, BUFFERED)]
        times = by_kind.get(WATERMARK, ())
        starts = max((record.start for record in rows), default=ALWAYS)
        return TaskReport(
            latest_time=max((record.start for record in times), default=ALWAYS),
            evaluations=tuple(sorted({(record.row, record.node, record.start) for record in by_kind.get(INSTANT, ())})),
            source_counts=tuple((record.node, record.start) for record in by_kind.get(SOURCE_COUNT, ())),
            row_count=sum(record.many for record in rows),
            latest_start=starts,
            latest_end=max([starts, *(record.end for record in (*rows, *times) if record.end != FOREVER)]),
            state_rows=sum(record.many for (kind, _, _), record in files if kind == STATE),
            node_metrics=tuple((record.node, record.start, record.end) for record in by_kind.get(NODE_METRIC, ())),
            state_handles=tuple((record.row, record.node) for record in by_kind.get(STATE_HANDLE, ())),
            cached_rows=sum(record.start for record in by_kind.get(STATE_HANDLE, ())),
            files=tuple((kind, record.level, name) for (kind, _, name), record in files),
            output_files=tuple(record.row for record in by_kind.get(OUTPUT_FILE, ())),
        )


class NodeMetrics:
    """The accumulated metrics of a plan's nodes."""

    def __init__(self, plan: Plan) -> None:
        self.ids = [node.id for node in plan.nodes]
        self.rows: Counter[str] = Counter()
        self.micros: Counter[str] = Counter()

    def add(self, report: TaskReport) -> None:
        """Adds what workers have reported."""
        for number, rows, micros in report.node_metrics:
            self.rows[self.ids[number]] += rows
            if micros >= 0:
                self.micros[self.ids[number]] += micros

    def by_node(self) -> dict[str, NodeMetric]:
        """Returns the metrics by the node's id."""
        seconds = {id: self.micros[id] / 1_000_000 for id in self.micros}
        return {id: NodeMetric(rows=rows, seconds=seconds.get(id)) for id, rows in self.rows.items()}


class Engine(Protocol):
    """Stores records, and moves them to the tasks that process them."""

    partitions: int

    @property
    def bucket_partitions(self) -> BucketPartitions:
        """The partition of each bucket."""

    def stored_records(self, kind: str, level: int, folders: Iterable[Folder]) -> Frame | None:
        """Returns the records of one type and stage in some folders, or None if there are none."""

    def reader(self) -> Read:
        """Returns the function by which a worker reads a file of records."""

    def wake_records(self, places: Sequence[tuple[int, int]]) -> Frame:
        """Returns the records that make each stage and bucket run
        (`squall.builders.distributed.exec.routing.wake_record`)."""

    def with_record_type(self, kind: str, messages: Frame) -> Frame:
        """Returns the records with another type."""

    def union(self, frames: Iterable[Frame | None]) -> Frame | None:
        """Returns all records together, or None if there are none."""

    def broadcast(self, messages: Frame, stages: Collection[int], buckets: Sequence[int]) -> Frame:
        """Returns the records, with one copy for each of some buckets of those that are broadcast to some stages
        (`squall.builders.distributed.exec.routing.BROADCAST_BUCKET`)."""

    def shuffle(self, messages: Frame, step: WorkerStep, partitions: int) -> Frame:
        """Shuffles records by bucket, and returns what a step makes of each partition."""

    def with_record_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        """Returns the step, which stores its records in files of a folder and reports those."""

    def map_partitions(self, messages: Frame, step: WorkerStep) -> Frame:
        """Returns what a step makes of records where they are, without a shuffle."""

    def generate(self, step: WorkerStep) -> Frame:
        """Returns what a step makes of no input, in one task."""

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        """Runs a job with one task for each step, without input, and returns what they report.

        Each task runs where its predecessor at the same position ran, if that is possible.
        """

    def run(self, messages: Frame) -> TaskReport:
        """Runs the job that computes records, and returns what they report."""

    def stored_rows(self, kind: str, level: int, folders: Iterable[Folder]) -> Iterator[str]:
        """Yields the rows of the records of one type and stage in some folders."""

    def with_output_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        """Returns the step, which writes the outputs of `output_step` to files of a folder and reports their names."""

    def read_outputs(self, folder: Folder, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Yields (time, number of the sink node, row) of the outputs in files, in order."""

    def output_frame(self, folder: Folder, names: Sequence[str]) -> Frame | None:
        """Returns the outputs in files as records in no order, or None if there are none."""


class Files(Protocol):
    """Files by paths, as a `Store` offers them."""

    def exists(self, *parts: object) -> bool: ...
    def names(self, *parts: object) -> list[str]: ...
    def numbers(self, *parts: object) -> list[int]: ...
    def delete(self, *parts: object) -> None: ...
    def rename(self, old: Sequence[object], new: Sequence[object]) -> None: ...
    def write(self, value: object, *parts: object) -> None: ...
    def read(self, *parts: object) -> Any: ...
