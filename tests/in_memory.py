"""The micro-batches of the Spark builder without Spark: messages in lists, the same steps and the same workers.

What Spark adds is left out (sources, Parquet, processes), so that many programs can be tried in little time.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

import pyarrow

from squall.builders.distributed import replicas
from squall.builders.distributed.addressing import BUCKETS, DELIVER, Program, waking
from squall.builders.distributed.alone import SingleTask, alone
from squall.builders.distributed.cut import levels
from squall.builders.distributed.exchange import Folder, Read, Tally, Told
from squall.builders.distributed.lines import Parsed
from squall.builders.distributed.messages import (
    ANSWERS,
    COUNT,
    FIGURE,
    INSTANT,
    ROW,
    STATE,
    STORED,
    TIME,
    TOKEN,
    Message,
    Step,
    from_arrow,
    to_arrow,
)
from squall.builders.distributed.replicas import Replicas
from squall.builders.distributed.supersteps import Batches
from squall.plan import Plan
from squall.rdf import ALWAYS, FOREVER, Event
from squall.stages import Options, Output

Messages = list[Message]


class MemoryFiles:
    """A store in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], Any] = {}

    def _under(self, parts: Sequence[object]) -> list[tuple[str, ...]]:
        path = tuple(map(str, parts))
        return [known for known in self.values if known[: len(path)] == path]

    def exists(self, *parts: object) -> bool:
        return bool(self._under(parts))

    def names(self, *parts: object) -> list[str]:
        return sorted({known[len(parts)] for known in self._under(parts)})

    def numbers(self, *parts: object) -> list[int]:
        return sorted(int(name) for name in (name.partition(".")[0] for name in self.names(*parts)) if name.isdigit())

    def delete(self, *parts: object) -> None:
        for known in self._under(parts):
            del self.values[known]

    def rename(self, old: Sequence[object], new: Sequence[object]) -> None:
        self.delete(*new)
        for known in self._under(old):
            self.values[(*map(str, new), *known[len(old) :])] = self.values.pop(known)

    def write(self, value: object, *parts: object) -> None:
        self.values[tuple(map(str, parts))] = value

    def read(self, *parts: object) -> Any:
        return self.values.get(tuple(map(str, parts)))


class Workers:
    """Python workers that any task may come to. most: how many rows each may hold. trouble: how often they forget, the
    driver starts anew, and tasks fail, at any point, also after they have answered, to be done again.

    reads: what they have read of what levels keep: worker, folder, level and first bucket."""

    def __init__(self, draw: Random, most: int = 1_000_000, trouble: float = 0.15) -> None:
        self.draw = draw
        self.most = most
        self.trouble = trouble
        self.held = [Replicas() for _ in range(3)]
        self.reads: list[tuple[int, Folder, int, int]] = []

    def is_trouble(self) -> bool:
        return self.draw.random() < self.trouble

    def work(self, step: Step, given: Sequence[pyarrow.RecordBatch]) -> Messages:
        """What a task makes of messages, in one of the workers, at its first attempt or a later one."""
        while self.is_trouble():
            self._attempt(step, given, self.draw.choice([0, 1, 1000]))
        return self._attempt(step, given, None)

    def _attempt(self, step: Step, given: Sequence[pyarrow.RecordBatch], most: int | None) -> Messages:
        number = self.draw.randrange(len(self.held))
        if self.is_trouble():
            self.held[number] = Replicas()
        before, replicas.REPLICAS = replicas.REPLICAS, self.held[number]
        try:
            made = step(iter(given))
            return list(from_arrow(islice(made, most)))
        finally:
            replicas.REPLICAS = before


class MemoryExchange:
    """Messages in lists; what is worked goes through Arrow, as it does between Spark and its workers."""

    def __init__(self, files: MemoryFiles, partitions: int = 3, workers: Workers | None = None) -> None:
        self.files = files
        self.partitions = partitions
        self.workers = workers
        self.owners = tuple(bucket * 7 % partitions for bucket in range(BUCKETS))

    def stored(self, kind: str, level: int, folders: Iterable[Folder]) -> Messages | None:
        parts = [(*folder, f"kind={kind}", f"level={level}") for folder in folders]
        found = [self.files.read(*part) for part in parts if self.files.exists(*part)]
        return [message for messages in found for message in messages] if found else None

    def reader(self) -> Read:
        return self._read

    def _read(self, folder: Folder, level: int, buckets: Collection[int]) -> Iterable[pyarrow.RecordBatch]:
        if self.workers is not None:
            number = self.workers.held.index(replicas.REPLICAS)
            self.workers.reads.append((number, folder, level, min(buckets)))
        found = self.files.read(*folder, f"kind={STATE}", f"level={level}")
        return to_arrow(message for message in found if message.bucket in buckets)

    def waking(self, places: Sequence[tuple[int, int]]) -> Messages:
        return [waking(*place) for place in places]

    def of_kind(self, kind: str, messages: Messages) -> Messages:
        return [message._replace(kind=kind) for message in messages]

    def union(self, frames: Iterable[Messages | None]) -> Messages | None:
        found = [frame for frame in frames if frame is not None]
        return [message for messages in found for message in messages] if found else None

    def worked(self, messages: Messages, step: Step, partitions: int) -> Messages:
        parts: list[Messages] = [[] for _ in range(partitions)]
        for message in messages:
            parts[self.owners[message.bucket] if partitions > 1 else 0].append(message)
        work = self.workers.work if self.workers is not None else _in_a_new_worker
        return [message for part in parts for message in work(step, list(to_arrow(part)))]

    def write(self, messages: Messages, folder: Folder) -> Told:
        parts: dict[tuple[str, int], Messages] = {}
        for message in messages:
            if message.kind in STORED:
                parts.setdefault((message.kind, message.level), []).append(message)
        for (kind, level), part in parts.items():
            self.files.write(part, *folder, f"kind={kind}", f"level={level}")
        return _told(messages)

    def texts(self, kind: str, level: int, folders: Iterable[Folder]) -> Iterator[str]:
        return (message.row for message in self.stored(kind, level, folders) or ())

    def answering(self, step: Step, folder: Folder) -> Step:
        def answered(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            name = uuid.uuid4().hex
            found: Messages = []
            for batch in step(batches):
                messages = list(from_arrow([batch]))
                found += (message for message in messages if (message.kind, message.level) == (ROW, DELIVER))
                yield from to_arrow(message for message in messages if (message.kind, message.level) != (ROW, DELIVER))
            self.files.write(found, *folder, name)
            yield from to_arrow([Message(ANSWERS, 0, 0, 0, 0, name, 0, 0, 0)])

        return answered

    def answers(self, folder: Folder, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        found = self.answered(folder, names) or []
        ordered = sorted(found, key=lambda one: (one.start, one.node, one.bucket, one.weight, one.row))
        return ((one.start, one.node, one.row) for one in ordered)

    def answered(self, folder: Folder, names: Sequence[str]) -> Messages | None:
        return [message for name in names for message in self.files.read(*folder, name)] or None


def _in_a_new_worker(step: Step, given: Sequence[pyarrow.RecordBatch]) -> Messages:
    return list(from_arrow(step(iter(given))))


def _told(messages: Messages) -> Told:
    rows = [message for message in messages if message.kind == ROW]
    starts = max((row.start for row in rows), default=ALWAYS)
    return Told(
        latest=max((message.start for message in messages if message.kind == TIME), default=ALWAYS),
        instants=tuple(sorted({(one.row, one.node, one.start) for one in messages if one.kind == INSTANT})),
        counts=tuple((message.node, message.start) for message in messages if message.kind == COUNT),
        rows=sum(row.many for row in rows),
        starts=starts,
        ends=max([starts, *(row.end for row in rows if row.end != FOREVER)]),
        kept=sum(message.many for message in messages if message.kind == STATE),
        figures=tuple((one.node, one.start, one.end) for one in messages if one.kind == FIGURE),
        tokens=tuple((one.row, one.node) for one in messages if one.kind == TOKEN),
        answers=tuple(one.row for one in messages if one.kind == ANSWERS),
    )


def run(
    plan: Plan,
    batches: Iterable[Sequence[Event]],
    static: Sequence[Event] = (),
    together: int = 0,
    tally: Tally | None = None,
    workers: Workers | None = None,
) -> list[Output]:
    """The outputs of a plan, each of the batches a micro-batch. One batch is worked off with all that is static, and
    nothing is kept of it. tally: takes down what nodes do. workers: where tasks are done, the job going on from batch
    to batch mostly; None: the job starts anew before each of them, and no worker holds anything."""
    files = MemoryFiles()
    exchange = MemoryExchange(files, workers=workers)
    program = Program(plan, levels(plan), measure=tally is not None)
    found: list[Output] = []
    most = workers.most if workers is not None else 0
    at_work: list[Batches | SingleTask] = []

    def anew() -> Batches | SingleTask:
        if alone(plan):
            return SingleTask(exchange, files, program, Options.steps)
        return Batches(exchange, files, program, together, most)

    def going_on() -> Batches | SingleTask:
        if workers is None or not at_work or workers.is_trouble():
            at_work[:] = [anew()]
        return at_work[0]

    def work(messages: Iterable[Message] | None, last: bool = False, keep: bool = True) -> None:
        job = going_on()
        job.tally = tally or job.tally
        job.work(None if messages is None else list(messages), last, keep)
        found.extend(job.outputs())
        if not keep and not any(level.recursive for level in program.levels):
            assert not any(f"kind={STATE}" in path for path in files.values)
        assert not list(job.losses())
        job.commit(None)

    facts = [event._replace(time=ALWAYS) for event in static]
    first = [*anew().first(), *read(anew(), facts, (ROW, FIGURE))]
    batches = list(batches)
    if len(batches) == 1:
        work([*first, *read(anew(), batches[0])], last=True, keep=False)
        return found
    work(first)
    for batch in batches:
        work(read(anew(), batch))
    if anew().unfinished:
        work(None, last=True)
    return found


def read(job: Batches | SingleTask, events: Sequence[Event], kinds: Sequence[str] = ()) -> list[Message]:
    """What two tasks make of the events, each of a file with one half of them."""
    half = len(events) // 2
    parts = (_of_file(job, "first", events[:half]), _of_file(job, "second", events[half:]))
    return [message for part in parts for message in part if not kinds or message.kind in kinds]


def _of_file(job: Batches | SingleTask, name: str, events: Sequence[Event]) -> Iterator[Message]:
    count = sum(len(event.facts) for event in events)
    step = job.reading(lambda *_: iter([Parsed(0, list(events), [], count, name)]))
    return from_arrow(step(iter(())))
