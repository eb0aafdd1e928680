"""The engine interface: what a micro-batch needs of a distributed engine, to store, shuffle and process records.

`tests/toy_engine.py` is a whole engine in few lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
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
from squall.plan import Plan
from squall.plan.node_metrics import NodeMetric
from squall.rdf import ALWAYS, FOREVER

_T = TypeVar("_T")
Frame = Any
"""Records somewhere: on Spark a DataFrame."""
Folder = tuple[object, ...]
"""The parts of a path in the store."""
Read = Callable[[Folder], Iterable[pyarrow.RecordBatch]]
"""Reads the records of a file in the store, by its path."""
Write = Callable[[pyarrow.Table], str]
"""Writes records to a new file of a folder in the store, and returns its name."""


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
        self.nodes = plan.nodes
        self.rows: Counter[str] = Counter()
        self.micros: Counter[str] = Counter()

    def add(self, report: TaskReport) -> None:
        """Adds what workers have reported."""
        for number, rows, micros in report.all(NodeOutput):
            self.rows[self.nodes[number].id] += rows
            if micros >= 0:
                self.micros[self.nodes[number].id] += micros

    def by_node(self) -> dict[str, NodeMetric]:
        """Returns the metrics by the node's id."""
        seconds = {id: self.micros[id] / 1_000_000 for id in self.micros}
        return {
            node.id: NodeMetric(
                rows=self.rows[node.id], seconds=seconds.get(node.id), joins=node.op.joins_replaced or None
            )
            for node in self.nodes
            if node.id in self.rows
        }


class Engine(Protocol):
    """Moves records to the tasks that process them, and runs jobs.

    A frame may be lazy: what it holds counts when a job runs.

    Attributes:
        partitions: the number of tasks behind a shuffle.
    """

    partitions: int

    def read(self, files: Sequence[Folder], type: str | None = None) -> Frame:
        """Returns the records in files of the store. type: the record type that they get (None: they keep theirs)."""

    def union(self, frames: Sequence[Frame]) -> Frame:
        """Returns the records of some frames together."""

    def generate(self, step: WorkerStep) -> Frame:
        """Returns what a step makes of no input, in one task."""

    def shuffle(self, records: Frame, step: WorkerStep, broadcast_stages: Collection[int] = ()) -> Frame:
        """Shuffles records by bucket (`squall.builders.distributed.plan.buckets.bucket_partitions`), and returns what a
        step makes of each partition.

        Of a record of `broadcast_stages` in the bucket `BROADCAST_BUCKET`, each partition that has buckets gets a copy
        in the first of these. For other stages such a record may go to any partition.
        """

    def run(self, records: Frame) -> TaskReport:
        """Runs the job that computes records, and returns what they report."""

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        """Runs a job with one task for each step, without input, and returns what they report.

        Each task runs where its predecessor at the same position ran, if that is possible.
        """


class Files(Protocol):
    """The files of a job: JSON values, and records that tasks write and read by themselves. Tasks get the functions
    that `reader` and `writer` return."""

    def names(self, *folder: object) -> list[str]:
        """Returns the names in a folder, in order; none if it does not exist."""

    def read(self, *path: object) -> Any:
        """Returns the value of a JSON file, or None if it does not exist."""

    def write(self, value: object, *path: object) -> None:
        """Writes a value as JSON, atomically."""

    def rename(self, old: Sequence[object], new: Sequence[object]) -> None:
        """Gives a folder another name, atomically, and deletes what had that name before."""

    def delete(self, *path: object) -> None:
        """Deletes a file or folder, if it exists."""

    def reader(self) -> Read:
        """Returns the function that reads a file of records."""

    def writer(self, folder: Folder) -> Write:
        """Returns the function that writes files of records into a folder."""


def numbers(files: Files, *folder: object) -> list[int]:
    """Returns the numbers with which the names in a folder begin, in ascending order."""
    stems = (name.partition(".")[0] for name in files.names(*folder))
    return sorted(int(stem) for stem in stems if stem.isdigit())
