"""The engine interface: what a micro-batch needs of a distributed engine, to store, shuffle and process records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow

from squall.builders.distributed.io.records import (
    BUFFERED,
    ROW,
    STATE,
    Instant,
    NodeOutput,
    Record,
    RecordFile,
    Report,
    Watermark,
    WorkerStep,
    reports_in,
)
from squall.builders.distributed.plan.buckets import BucketPartitions
from squall.plan import Plan
from squall.plan.node_metrics import NodeMetric
from squall.rdf import ALWAYS, FOREVER

_T = TypeVar("_T")
Frame = Any
"""Records somewhere: on Spark a DataFrame."""
Folder = tuple[object, ...]
"""The parts of a path in the store."""
Read = Callable[[Folder, Collection[int] | None], Iterable[pyarrow.RecordBatch]]
"""Reads the records of a file in the store, by its path: those of some buckets, or all (None)."""


@dataclass(frozen=True)
class TaskReport:
    """What the tasks of a job report to the driver. All times are integer ms; `ALWAYS` stands for none."""

    records: tuple[Report, ...] = ()

    @staticmethod
    def of(records: Iterable[Record]) -> TaskReport:
        """Returns the report that records make up together."""
        return TaskReport(tuple(reports_in(records)))

    def all(self, of_type: type[_T]) -> list[_T]:
        """Returns the records of a type."""
        return [record for record in self.records if isinstance(record, of_type)]

    @property
    def latest_time(self) -> int:
        """The latest event time."""
        return max((watermark.latest_time for watermark in self.all(Watermark)), default=ALWAYS)

    @property
    def instants(self) -> list[Instant]:
        """The reported instants, each once, in order."""
        return sorted(set(self.all(Instant)))

    @property
    def row_files(self) -> list[RecordFile]:
        """The files with rows on their way to later stages, or buffered."""
        return [file for file in self.all(RecordFile) if file.type in (ROW, BUFFERED)]

    @property
    def row_count(self) -> int:
        """How many rows are in these files."""
        return sum(file.rows for file in self.row_files)

    @property
    def latest_start(self) -> int:
        """The latest time at which one of these rows begins to hold."""
        return max((file.latest_start for file in self.row_files), default=ALWAYS)

    @property
    def latest_end(self) -> int:
        """The latest time at which one begins or ends to hold."""
        ends = [
            *(file.latest_end for file in self.row_files),
            *(watermark.latest_end for watermark in self.all(Watermark)),
        ]
        return max([self.latest_start, *(end for end in ends if end != FOREVER)])

    @property
    def state_rows(self) -> int:
        """How many rows were added to the state."""
        return sum(file.rows for file in self.all(RecordFile) if file.type == STATE)


class NodeMetrics:
    """The accumulated metrics of a plan's nodes."""

    def __init__(self, plan: Plan) -> None:
        self.ids = [node.id for node in plan.nodes]
        self.rows: Counter[str] = Counter()
        self.micros: Counter[str] = Counter()

    def add(self, report: TaskReport) -> None:
        """Adds what workers have reported."""
        for number, rows, micros in report.all(NodeOutput):
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
