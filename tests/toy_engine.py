"""A distributed engine in few lines: the interface of engines, with tasks in this process and records in lists.

`Files` holds what jobs store, `ToyEngine` moves records to tasks, and `ToyJob` reads the input and asks for the outputs
batch by batch. All else is shared (`squall.builders.distributed`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow

from squall.builders.distributed.exec.micro_batch import batches_of
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io.engine import Folder, Read, TaskReport, Write
from squall.builders.distributed.io.ingest import drop_late_events, record_dead_letter
from squall.builders.distributed.io.parsing import Parsed
from squall.builders.distributed.io.records import Record, WorkerStep, from_arrow, to_arrow
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET, BUCKET_COUNT
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.local.replay import ReplayedBatches
from squall.contracts import Options, Output
from squall.plan import Plan
from squall.rdf import ALWAYS, Event

Records = list[Record]


class ToyFiles:
    """The files of a job, in a dictionary by path."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], Any] = {}

    def _under(self, parts: Sequence[object]) -> list[tuple[str, ...]]:
        folder = tuple(map(str, parts))
        return [path for path in self.values if path[: len(folder)] == folder]

    def names(self, *folder: object) -> list[str]:
        return sorted({path[len(folder)] for path in self._under(folder)})

    def read(self, *path: object) -> Any:
        return self.values.get(tuple(map(str, path)))

    def write(self, value: object, *path: object) -> None:
        self.values[tuple(map(str, path))] = value

    def rename(self, old: Sequence[object], new: Sequence[object]) -> None:
        self.delete(*new)
        for path in self._under(old):
            self.values[*map(str, new), *path[len(old) :]] = self.values.pop(path)

    def delete(self, *path: object) -> None:
        for existing in self._under(path):
            del self.values[existing]

    def reader(self) -> Read:
        return lambda file: to_arrow(self.read(*file))

    def writer(self, folder: Folder) -> Write:
        def write(records: pyarrow.Table) -> str:
            name = uuid.uuid4().hex
            self.write(list(from_arrow(records.to_batches())), *folder, name)
            return name

        return write


class ToyEngine:
    """Implements `squall.builders.distributed.io.engine.Engine`. What enters and leaves a task goes through Arrow."""

    def __init__(self, files: ToyFiles, partitions: int = 3) -> None:
        self.files = files
        self.partitions = partitions

    def read(self, files: Sequence[Folder], type: str | None = None) -> Records:
        records = [record for file in files for record in self.files.read(*file)]
        return records if type is None else [record._replace(type=type) for record in records]

    def union(self, frames: Sequence[Records]) -> Records:
        return [record for frame in frames for record in frame]

    def generate(self, step: WorkerStep) -> Records:
        return self.task(step, [], 0)

    def shuffle(self, records: Records, step: WorkerStep, broadcast_stages: Collection[int] = ()) -> Records:
        partitions: list[Records] = [[] for _ in range(self.partitions)]
        for record in records:
            is_broadcast = record.bucket == BROADCAST_BUCKET and record.stage in broadcast_stages
            for bucket in range(min(self.partitions, BUCKET_COUNT)) if is_broadcast else [record.bucket]:
                partitions[bucket % self.partitions].append(record._replace(bucket=bucket))
        return self.union([self.task(step, partition, number) for number, partition in enumerate(partitions)])

    def run(self, records: Records) -> TaskReport:
        return TaskReport.of(records)

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        return self.run(self.union([self.task(step, [], number) for number, step in enumerate(steps)]))

    def task(self, step: WorkerStep, records: Records, number: int) -> Records:
        """Runs a task, by its number among those of the job, on the records of its partition."""
        return list(from_arrow(step(to_arrow(records))))


@dataclass(frozen=True)
class ToyJob:
    """A plan that the toy engine runs: a builder is a callable from a plan and options to a job."""

    plan: Plan
    options: Options

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """Yields the outputs, see `squall.contracts.Job.run`."""
        files = ToyFiles()
        engine, program = ToyEngine(files), Program(physical_plan(self.plan))
        job = batches_of(engine, files, program, BatchLimits(), self.options.max_update_steps)
        inputs = ReplayedBatches(list(batches))
        facts = [event._replace(time=ALWAYS) for event in (*static, *inputs.static_events())]
        timely = drop_late_events(inputs, lambda letter: record_dead_letter(letter, self.options.ledger, ()))
        for number, events in enumerate([facts, *timely]):
            start = [job.initial_step(job.initial_records())] if number == 0 else []
            part = Parsed(0, events, [], len(events))
            steps = [*start, job.source_step(lambda *_, part=part: iter([part]))]
            job.process(engine.union([engine.generate(step) for step in steps]))
            for letter in job.dead_letters():
                record_dead_letter(letter, self.options.ledger, ())
            yield from job.outputs()
            job.commit(None)
        if job.unfinished:
            job.process(None, last=True)
            yield from job.outputs()
            job.commit(None)
