"""What a distributed builder's micro-batch asks of its engine: messages stored, moved and worked, and small files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow

from squall.builders.distributed.addressing import Owners
from squall.builders.distributed.messages import Step
from squall.figures import NodeFigures
from squall.plan import Plan
from squall.rdf import ALWAYS

Frame = Any
"""Messages somewhere: on Spark a DataFrame."""
Folder = tuple[object, ...]
"""The parts of a path in the store."""
Read = Callable[[Folder, int, Collection[int]], Iterable[pyarrow.RecordBatch]]
"""The messages of a folder that hold what a level keeps in some buckets."""


class Told(NamedTuple):
    """What workers tell.

    latest: the latest event time (integer ms; `ALWAYS`: there is none). instants: (stream and graph, packed; time), or
    (number of an operation node, time). counts: statements read, by number of the source. rows: how many rows are on
    their way; starts: the latest time at which one begins; ends: the latest time at which one begins or ends, if it
    does. kept: how many are kept. figures: (number of a node, rows, microseconds or -1) of what was measured. tokens:
    (group and token, partition) of operators that have gone on (`squall.builders.distributed.replicas`). answers: the
    names of the files in which answers are.
    """

    latest: int = ALWAYS
    instants: tuple[tuple[str, int, int], ...] = ()
    counts: tuple[tuple[int, int], ...] = ()
    rows: int = 0
    starts: int = ALWAYS
    ends: int = ALWAYS
    kept: int = 0
    figures: tuple[tuple[int, int, int], ...] = ()
    tokens: tuple[tuple[str, int], ...] = ()
    answers: tuple[str, ...] = ()


class Tally:
    """What the nodes of a plan have done in all."""

    def __init__(self, plan: Plan) -> None:
        self.ids = [node.id for node in plan.nodes]
        self.rows: Counter[str] = Counter()
        self.micros: Counter[str] = Counter()

    def add(self, told: Told) -> None:
        """Takes note of what workers tell."""
        for number, rows, micros in told.figures:
            self.rows[self.ids[number]] += rows
            if micros >= 0:
                self.micros[self.ids[number]] += micros

    def figures(self) -> dict[str, NodeFigures]:
        """By the node's id."""
        known = {id: self.micros[id] / 1_000_000 for id in self.micros}
        return {id: NodeFigures(rows=rows, seconds=known.get(id)) for id, rows in self.rows.items()}


class Exchange(Protocol):
    """What stores messages, and moves them to where they are worked."""

    partitions: int
    owners: Owners

    def stored(self, kind: str, level: int, folders: Iterable[Folder]) -> Frame | None:
        """The messages of one kind and level in some folders; None if there are none."""

    def reader(self) -> Read:
        """What reads the state in a worker."""

    def waking(self, places: Sequence[tuple[int, int]]) -> Frame:
        """For each level and bucket the message that lets it work (`squall.builders.distributed.addressing.waking`)."""

    def of_kind(self, kind: str, messages: Frame) -> Frame:
        """The messages as those of a kind."""

    def union(self, frames: Iterable[Frame | None]) -> Frame | None:
        """All of them together; None if there are none."""

    def worked(self, messages: Frame, step: Step, partitions: int) -> Frame:
        """What a step makes of messages, those of a bucket together."""

    def write(self, messages: Frame, folder: Folder) -> Told:
        """Stores messages by kind and level; answers with what they tell."""

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
