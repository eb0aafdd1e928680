"""What a distributed builder's micro-batch asks of its engine: messages stored, moved and worked, and small files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow

from squall.builders.distributed.exec.routing import BucketPartitions
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
from squall.plan import Plan
from squall.plan.node_metrics import NodeMetric
from squall.rdf import ALWAYS, FOREVER

Frame = Any
"""Messages somewhere: on Spark a DataFrame."""
Folder = tuple[object, ...]
"""The parts of a path in the store."""
Read = Callable[[Folder, Collection[int] | None], Iterable[pyarrow.RecordBatch]]
"""The messages of a file, by its path in the store, that are of some buckets; None: of all."""


class TaskReport(NamedTuple):
    """What workers tell.

    latest_time: the latest event time (integer ms; `ALWAYS`: there is none). instants: (stream and graph, packed;
    time), or (number of an operation node, time). counts: statements read, by number of the source. rows: how many rows
    are on their way; starts: the latest time at which one begins; ends: the latest time at which one begins or ends, if
    it does. kept: how many are kept. figures: (number of a node, rows, microseconds or -1) of what was measured.
    tokens: (group and token, partition) of operators that have gone on
    (`squall.builders.distributed.exec.state_cache`); held: how many rows these hold. files: (kind, level, name) of
    those in which messages have been stored. answers: the names of the files in which answers are."""

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
        """What messages tell together."""
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
    """What the nodes of a plan have done in all."""

    def __init__(self, plan: Plan) -> None:
        self.ids = [node.id for node in plan.nodes]
        self.rows: Counter[str] = Counter()
        self.micros: Counter[str] = Counter()

    def add(self, report: TaskReport) -> None:
        """Takes note of what workers tell."""
        for number, rows, micros in report.node_metrics:
            self.rows[self.ids[number]] += rows
            if micros >= 0:
                self.micros[self.ids[number]] += micros

    def by_node(self) -> dict[str, NodeMetric]:
        """By the node's id."""
        seconds = {id: self.micros[id] / 1_000_000 for id in self.micros}
        return {id: NodeMetric(rows=rows, seconds=seconds.get(id)) for id, rows in self.rows.items()}


class Engine(Protocol):
    """What stores messages, and moves them to where they are worked."""

    partitions: int

    @property
    def owners(self) -> BucketPartitions:
        """Where messages go, by their buckets."""

    def stored_records(self, kind: str, level: int, folders: Iterable[Folder]) -> Frame | None:
        """The messages of one kind and level in some folders; None if there are none."""

    def reader(self) -> Read:
        """What reads a file of messages in a worker."""

    def wake_records(self, places: Sequence[tuple[int, int]]) -> Frame:
        """For each level and bucket the message that lets it work
        (`squall.builders.distributed.exec.routing.wake_record`)."""

    def with_record_type(self, kind: str, messages: Frame) -> Frame:
        """The messages as those of a kind."""

    def union(self, frames: Iterable[Frame | None]) -> Frame | None:
        """All of them together; None if there are none."""

    def broadcast(self, messages: Frame, stages: Collection[int], buckets: Sequence[int]) -> Frame:
        """Returns the records; those that some stages broadcast come once for each of some buckets
        (`squall.builders.distributed.exec.routing.BROADCAST_BUCKET`)."""

    def shuffle(self, messages: Frame, step: WorkerStep, partitions: int) -> Frame:
        """What a step makes of messages, those of a bucket together."""

    def with_record_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        """The step, what is to be stored being put into files of a folder, which are told."""

    def map_partitions(self, messages: Frame, step: WorkerStep) -> Frame:
        """What a step makes of messages where they are."""

    def generate(self, step: WorkerStep) -> Frame:
        """What one task makes of nothing."""

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        """Runs a job of a task for each step, which makes messages of nothing: where those of its place among others
        have run before, if it can be. Answers with what they tell."""

    def run(self, messages: Frame) -> TaskReport:
        """Runs the job that makes messages; answers with what they tell."""

    def stored_rows(self, kind: str, level: int, folders: Iterable[Folder]) -> Iterator[str]:
        """The rows of the messages of one kind and level in some folders."""

    def with_output_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        """The step, the answers of `delivery` being put into files of a folder, whose names are told."""

    def read_outputs(self, folder: Folder, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """(time, number of the operation node, row) of the answers in files, in order."""

    def output_frame(self, folder: Folder, names: Sequence[str]) -> Frame | None:
        """The same as messages, in no order; None if there are none."""


class Files(Protocol):
    """Files by paths: what a `Store` can do."""

    def exists(self, *parts: object) -> bool: ...
    def names(self, *parts: object) -> list[str]: ...
    def numbers(self, *parts: object) -> list[int]: ...
    def delete(self, *parts: object) -> None: ...
    def rename(self, old: Sequence[object], new: Sequence[object]) -> None: ...
    def write(self, value: object, *parts: object) -> None: ...
    def read(self, *parts: object) -> Any: ...
