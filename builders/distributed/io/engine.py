"""What a distributed builder's micro-batch asks of its engine: messages stored, moved and worked, and small files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow

from squall.builders.distributed.exec.routing import Owners
from squall.builders.distributed.io.records import (
    ANSWERS,
    COUNT,
    FIGURE,
    FILE,
    HELD,
    INSTANT,
    ROW,
    STATE,
    TIME,
    TOKEN,
    Record,
    Step,
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

    latest: the latest event time (integer ms; `ALWAYS`: there is none). instants: (stream and graph, packed; time), or
    (number of an operation node, time). counts: statements read, by number of the source. rows: how many rows are on
    their way; starts: the latest time at which one begins; ends: the latest time at which one begins or ends, if it
    does. kept: how many are kept. figures: (number of a node, rows, microseconds or -1) of what was measured. tokens:
    (group and token, partition) of operators that have gone on (`squall.builders.distributed.exec.state_cache`); held:
    how many rows these hold. files: (kind, level, name) of those in which messages have been stored. answers: the names
    of the files in which answers are."""

    latest: int = ALWAYS
    instants: tuple[tuple[str, int, int], ...] = ()
    counts: tuple[tuple[int, int], ...] = ()
    rows: int = 0
    starts: int = ALWAYS
    ends: int = ALWAYS
    kept: int = 0
    figures: tuple[tuple[int, int, int], ...] = ()
    tokens: tuple[tuple[str, int], ...] = ()
    held: int = 0
    files: tuple[tuple[str, int, str], ...] = ()
    answers: tuple[str, ...] = ()

    @staticmethod
    def of(messages: Iterable[Record]) -> TaskReport:
        """What messages tell together."""
        by_kind: dict[str, list[Record]] = {}
        for message in messages:
            by_kind.setdefault(message.kind, []).append(message)
        files = [(record.row.partition(" "), record) for record in by_kind.get(FILE, ())]
        rows = [record for (kind, _, _), record in files if kind in (ROW, HELD)]
        times = by_kind.get(TIME, ())
        starts = max((record.start for record in rows), default=ALWAYS)
        return TaskReport(
            latest=max((record.start for record in times), default=ALWAYS),
            instants=tuple(sorted({(record.row, record.node, record.start) for record in by_kind.get(INSTANT, ())})),
            counts=tuple((record.node, record.start) for record in by_kind.get(COUNT, ())),
            rows=sum(record.many for record in rows),
            starts=starts,
            ends=max([starts, *(record.end for record in (*rows, *times) if record.end != FOREVER)]),
            kept=sum(record.many for (kind, _, _), record in files if kind == STATE),
            figures=tuple((record.node, record.start, record.end) for record in by_kind.get(FIGURE, ())),
            tokens=tuple((record.row, record.node) for record in by_kind.get(TOKEN, ())),
            held=sum(record.start for record in by_kind.get(TOKEN, ())),
            files=tuple((kind, record.level, name) for (kind, _, name), record in files),
            answers=tuple(record.row for record in by_kind.get(ANSWERS, ())),
        )


class NodeMetrics:
    """What the nodes of a plan have done in all."""

    def __init__(self, plan: Plan) -> None:
        self.ids = [node.id for node in plan.nodes]
        self.rows: Counter[str] = Counter()
        self.micros: Counter[str] = Counter()

    def add(self, report: TaskReport) -> None:
        """Takes note of what workers tell."""
        for number, rows, micros in report.figures:
            self.rows[self.ids[number]] += rows
            if micros >= 0:
                self.micros[self.ids[number]] += micros

    def figures(self) -> dict[str, NodeMetric]:
        """By the node's id."""
        seconds = {id: self.micros[id] / 1_000_000 for id in self.micros}
        return {id: NodeMetric(rows=rows, seconds=seconds.get(id)) for id, rows in self.rows.items()}


class Engine(Protocol):
    """What stores messages, and moves them to where they are worked."""

    partitions: int

    @property
    def owners(self) -> Owners:
        """Where messages go, by their buckets."""

    def stored(self, kind: str, level: int, folders: Iterable[Folder]) -> Frame | None:
        """The messages of one kind and level in some folders; None if there are none."""

    def reader(self) -> Read:
        """What reads a file of messages in a worker."""

    def waking(self, places: Sequence[tuple[int, int]]) -> Frame:
        """For each level and bucket the message that lets it work
        (`squall.builders.distributed.exec.routing.waking`)."""

    def of_kind(self, kind: str, messages: Frame) -> Frame:
        """The messages as those of a kind."""

    def union(self, frames: Iterable[Frame | None]) -> Frame | None:
        """All of them together; None if there are none."""

    def repeated(self, messages: Frame, levels: Collection[int], buckets: Sequence[int]) -> Frame:
        """The messages, those for some levels that go to all tasks (`squall.builders.distributed.exec.routing.EVERY`)
        once for each of some buckets."""

    def worked(self, messages: Frame, step: Step, partitions: int) -> Frame:
        """What a step makes of messages, those of a bucket together."""

    def storing(self, step: Step, folder: Folder) -> Step:
        """The step, what is to be stored being put into files of a folder, which are told."""

    def passed(self, messages: Frame, step: Step) -> Frame:
        """What a step makes of messages where they are."""

    def made(self, step: Step) -> Frame:
        """What one task makes of nothing."""

    def each(self, steps: Sequence[Step]) -> TaskReport:
        """Runs a job of a task for each step, which makes messages of nothing: where those of its place among others
        have run before, if it can be. Answers with what they tell."""

    def told(self, messages: Frame) -> TaskReport:
        """Runs the job that makes messages; answers with what they tell."""

    def texts(self, kind: str, level: int, folders: Iterable[Folder]) -> Iterator[str]:
        """The rows of the messages of one kind and level in some folders."""

    def answering(self, step: Step, folder: Folder) -> Step:
        """The step, the answers of `delivery` being put into files of a folder, whose names are told."""

    def answers(self, folder: Folder, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """(time, number of the operation node, row) of the answers in files, in order."""

    def answered(self, folder: Folder, names: Sequence[str]) -> Frame | None:
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
