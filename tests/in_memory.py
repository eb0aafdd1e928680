"""Micro-batches of the Spark builder without Spark: records in lists, the same steps and the same workers.

It leaves out what Spark adds (sources, Parquet, processes), so that tests can try many programs in little time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from operator import attrgetter
from random import Random
from typing import Any

import pyarrow

from squall.builders.distributed.exec import state_cache
from squall.builders.distributed.exec.micro_batch import MicroBatches
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.routing import wake_record
from squall.builders.distributed.exec.sharded_plan import Shards
from squall.builders.distributed.exec.state_cache import StateCache
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Folder, NodeMetrics, Read, TaskReport
from squall.builders.distributed.io.ingest import drop_late_events, record_dead_letter
from squall.builders.distributed.io.parsing import Parsed
from squall.builders.distributed.io.records import STATE, Record, WorkerStep, from_arrow, to_arrow
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET, BUCKET_COUNT
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.physical_plan import PhysicalPlan, physical_plan
from squall.builders.distributed.plan.skew import SkewedKeys
from squall.builders.distributed.plan.stages import NO_SKEWED_KEYS
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.local.replay import ReplayedBatches
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.contracts import Options, Output
from squall.plan import Plan
from squall.rdf import ALWAYS, Event

Messages = list[Record]


class MemoryFiles:
    """Keeps the files of a job in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], Any] = {}

    def _under(self, parts: Sequence[object]) -> list[tuple[str, ...]]:
        path = tuple(map(str, parts))
        return [existing for existing in self.values if existing[: len(path)] == path]

    def exists(self, *parts: object) -> bool:
        return bool(self._under(parts))

    def names(self, *parts: object) -> list[str]:
        return sorted({existing[len(parts)] for existing in self._under(parts)})

    def numbers(self, *parts: object) -> list[int]:
        return sorted(int(name) for name in (name.partition(".")[0] for name in self.names(*parts)) if name.isdigit())

    def delete(self, *parts: object) -> None:
        for existing in self._under(parts):
            del self.values[existing]

    def rename(self, old: Sequence[object], new: Sequence[object]) -> None:
        self.delete(*new)
        for existing in self._under(old):
            self.values[(*map(str, new), *existing[len(old) :])] = self.values.pop(existing)

    def write(self, value: object, *parts: object) -> None:
        self.values[tuple(map(str, parts))] = value

    def read(self, *parts: object) -> Any:
        return self.values.get(tuple(map(str, parts)))


class Workers:
    """Simulates Python workers, any of which may run any task.

    Args:
        draw: decides which worker runs a task, and what fails.
        max_cached_rows: the most rows of state that each worker caches.
        failure_rate: the probability of each failure: a worker loses its cache, the driver restarts, or a task fails
            at any point, also after its last output, and is retried.

    Attributes:
        reads: the state that workers have read: worker, folder, stage and first bucket.
    """

    def __init__(self, draw: Random, max_cached_rows: int = 1_000_000, failure_rate: float = 0.15) -> None:
        self.draw = draw
        self.max_cached_rows = max_cached_rows
        self.failure_rate = failure_rate
        self.caches = [StateCache() for _ in range(3)]
        self.reads: list[tuple[int, Folder, int, int]] = []

    def fails(self) -> bool:
        return self.draw.random() < self.failure_rate

    def work(self, step: WorkerStep, batches: Sequence[pyarrow.RecordBatch]) -> Messages:
        """Runs a task on one of the workers, and retries it until it succeeds."""
        while self.fails():
            self._attempt(step, batches, self.draw.choice([0, 1, 1000]))
        return self._attempt(step, batches, None)

    def _attempt(self, step: WorkerStep, batches: Sequence[pyarrow.RecordBatch], max_records: int | None) -> Messages:
        number = self.draw.randrange(len(self.caches))
        if self.fails():
            self.caches[number] = StateCache()
        before, state_cache.WORKER_STATE_CACHE = state_cache.WORKER_STATE_CACHE, self.caches[number]
        try:
            result = step(iter(batches))
            return list(from_arrow(islice(result, max_records)))
        finally:
            state_cache.WORKER_STATE_CACHE = before


class MemoryExchange:
    """Keeps records in lists. Input and output of tasks go through Arrow, as between Spark and its workers."""

    def __init__(self, files: MemoryFiles, partitions: int = 3, workers: Workers | None = None) -> None:
        self.files = files
        self.partitions = partitions
        self.workers = workers
        self.bucket_partitions = tuple(bucket * 7 % partitions for bucket in range(BUCKET_COUNT))

    def stored_records(self, kind: str, level: int, folders: Iterable[Folder]) -> Messages | None:
        events = [self.files.read(*part) for part in task_output.files_of(self.files, kind, level, folders)]
        return [message for messages in events for message in messages] if events else None

    def reader(self) -> Read:
        return self._read

    def _read(self, file: Folder, buckets: Collection[int] | None) -> Iterable[pyarrow.RecordBatch]:
        messages = [message for message in self.files.read(*file) if buckets is None or message.bucket in buckets]
        if self.workers is not None and messages and buckets is not None:
            number = self.workers.caches.index(state_cache.WORKER_STATE_CACHE)
            self.workers.reads.append((number, file[:-2], messages[0].level, min(set(buckets) - {BROADCAST_BUCKET})))
        return to_arrow(messages)

    def wake_records(self, places: Sequence[tuple[int, int]]) -> Messages:
        return [wake_record(*place) for place in places]

    def with_record_type(self, kind: str, messages: Messages) -> Messages:
        return [message._replace(kind=kind) for message in messages]

    def union(self, frames: Iterable[Messages | None]) -> Messages | None:
        results = [frame for frame in frames if frame is not None]
        return [message for messages in results for message in messages] if results else None

    def broadcast(self, messages: Messages, stages: Collection[int], buckets: Sequence[int]) -> Messages:
        results = []
        for message in messages:
            goes = message.bucket == BROADCAST_BUCKET and message.level in stages
            results += [message._replace(bucket=bucket) for bucket in (buckets if goes else [message.bucket])]
        return results

    def shuffle(self, messages: Messages, step: WorkerStep, partitions: int) -> Messages:
        parts: list[Messages] = [[] for _ in range(partitions)]
        for message in messages:
            parts[self.bucket_partitions[message.bucket] if partitions > 1 else 0].append(message)
        return [message for part in parts for message in self.map_partitions(part, step)]

    def map_partitions(self, messages: Messages, step: WorkerStep) -> Messages:
        work = self.workers.work if self.workers is not None else _in_a_new_worker
        return work(step, list(to_arrow(messages)))

    def generate(self, step: WorkerStep) -> Messages:
        return self.map_partitions([], step)

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        return self.run([message for step in steps for message in self.generate(step)])

    def run(self, messages: Messages) -> TaskReport:
        return TaskReport.of(messages)

    def _put(self, folder: Folder, messages: pyarrow.Table) -> str:
        name = uuid.uuid4().hex
        self.files.write(list(from_arrow(messages.to_batches())), *folder, name)
        return name

    def with_record_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        return task_output.with_record_files(step, lambda place, messages: self._put((*folder, place[0]), messages))

    def stored_rows(self, kind: str, level: int, folders: Iterable[Folder]) -> Iterator[str]:
        return (message.row for message in self.stored_records(kind, level, folders) or ())

    def with_output_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        return task_output.with_output_files(step, lambda _, answers: self._put(folder, answers))

    def read_outputs(self, folder: Folder, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        result = self.output_frame(folder, names) or []
        ordered = sorted(result, key=attrgetter(*task_output.OUTPUT_ORDER))
        return ((item.start, item.node, item.row) for item in ordered)

    def output_frame(self, folder: Folder, names: Sequence[str]) -> Messages | None:
        return [message for name in names for message in self.files.read(*folder, name)] or None


def _in_a_new_worker(step: WorkerStep, batches: Sequence[pyarrow.RecordBatch]) -> Messages:
    return list(from_arrow(step(iter(batches))))


def run(
    plan: Plan,
    batches: Iterable[Sequence[Event]],
    static: Sequence[Event] = (),
    max_single_task_rows: int = 0,
    max_single_task_bytes: int = -1,
    node_metrics: NodeMetrics | None = None,
    workers: Workers | None = None,
    broadcast_inputs: frozenset[Address] = frozenset(),
    skewed_keys: SkewedKeys = NO_SKEWED_KEYS,
    measures: Callable[[], bool] = lambda: False,
    max_update_steps: int = Options.max_update_steps,
    compaction_interval: int = DEFAULT_TUNING.compaction_interval,
    change: Callable[[PhysicalPlan], PhysicalPlan] = lambda physical: physical,
) -> list[Output]:
    """Runs a plan in micro-batches and returns its outputs.

    Args:
        plan: the plan.
        batches: the events of each micro-batch. A single batch is processed together with the static data, and
            leaves no state.
        static: the facts that always hold.
        max_single_task_rows: one task processes a batch of at most so many rows.
        max_single_task_bytes: one task processes a batch of at most so many events (as bytes) without any shuffle.
        node_metrics: collects the metrics of the nodes, if given.
        workers: run the tasks, and the job mostly continues from batch to batch, with any number of tasks. None: the
            job restarts before each batch, and no worker caches anything.
        broadcast_inputs: the inputs whose rows are broadcast.
        skewed_keys: the keys whose rows are split over all tasks, by input.
        measures: returns, at each start of the job, whether nodes are measured also without `node_metrics`.
        max_update_steps: how often updates may act without an event in between.
        compaction_interval: after how many batches the whole state is written again.
        change: changes the physical plan, by leaving out a pass.
    """
    files = MemoryFiles()
    program = Program(change(physical_plan(plan, broadcast_inputs, dict(skewed_keys))))
    outputs: list[Output] = []
    limits = BatchLimits(
        max_single_task_rows,
        workers.max_cached_rows if workers is not None else 0,
        max_single_task_bytes,
        compaction_interval=compaction_interval,
    )
    jobs: list[MicroBatches | Shards] = []

    def restarted_job() -> MicroBatches | Shards:
        exchange = MemoryExchange(files, workers.draw.choice([2, 3, 5]) if workers is not None else 3, workers)
        if not program.physical.strategy.is_staged:
            measured = replace(program, measure=node_metrics is not None)
            return Shards(exchange, files, measured, max_update_steps, limits)
        measured = replace(program, measure=node_metrics is not None or measures())
        return MicroBatches(exchange, files, measured, limits)

    def current_job() -> MicroBatches | Shards:
        if workers is None or not jobs or workers.fails():
            jobs[:] = [restarted_job()]
        return jobs[0]

    def work(parseds: Sequence[Parsed], first: bool = False, last: bool = False, keep: bool = True) -> None:
        job = current_job()
        job.log.node_metrics = node_metrics or job.log.node_metrics
        if job.is_unshuffled(sum(len(part.events) for part in parseds)):
            job.process_in_single_task(lambda *_: iter(parseds), job.initial_records() if first else (), last, keep)
        else:
            messages = chain(start(job) if first else (), read(job, parseds))
            job.process(messages if first or parseds else None, last, keep)
        outputs.extend(job.outputs())
        if not keep and not any(level.recursive for level in program.stages):
            assert not any(STATE in path for path in files.values)
        assert not list(job.dead_letters())
        job.commit(None)

    facts = in_files([event._replace(time=ALWAYS) for event in static])
    batches = list(batches)
    if len(batches) == 1:
        work([*facts, *in_files(batches[0])], first=True, last=True, keep=False)
        return outputs
    work(facts, first=True)
    for batch in batches:
        work(in_files(batch))
    if any(batches) and restarted_job().unfinished:
        work([], last=True)
    return outputs


@dataclass(frozen=True)
class MemoryJob:
    """A job of the engine of this module, as a builder makes it."""

    plan: Plan
    options: Options

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.contracts.Job.run`."""
        inputs = ReplayedBatches(list(batches))
        facts = [event._replace(time=ALWAYS) for event in (*static, *inputs.static_events())]
        timely = drop_late_events(inputs, lambda letter: record_dead_letter(letter, self.options.ledger, ()))
        yield from run(self.plan, timely, facts, max_update_steps=self.options.max_update_steps)


def run_anyhow(
    plan: Plan,
    batches: Iterable[Sequence[Event]],
    static: Sequence[Event],
    seed: int,
    compaction_interval: int = DEFAULT_TUNING.compaction_interval,
) -> list[Output]:
    """Runs a plan in micro-batches, with workers and limits drawn from a seed."""
    draw = Random(seed)
    workers = Workers(draw, max_cached_rows=draw.choice([0, 3, 1_000_000])) if draw.random() < 0.6 else None
    max_single_task_rows, max_single_task_bytes = (
        draw.choice([0, 0, 10, 1_000_000]),
        draw.choice([-1, -1, 2, 1_000_000]),
    )
    return run(
        plan,
        batches,
        static,
        max_single_task_rows,
        max_single_task_bytes,
        workers=workers,
        compaction_interval=compaction_interval,
    )


def start(job: MicroBatches | Shards) -> Iterator[Record]:
    """Yields the records that start the program, when the batch is processed."""
    if first := job.initial_records():
        yield from from_arrow(job.initial_step(first)(iter(())))


def read(job: MicroBatches | Shards, files: Sequence[Parsed]) -> Iterator[Record]:
    """Yields the records of files, each read by a task, when the batch is processed."""
    for file in files:
        yield from from_arrow(job.source_step(lambda *_, file=file: iter([file]))(iter(())))


def cut(events: list[Event], cuts: list[int]) -> list[list[Event]]:
    """Returns the events as batches, cut at these positions."""
    places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    return [events[begin:end] for begin, end in pairwise(places)]


def in_files(events: Sequence[Event]) -> list[Parsed]:
    """Returns the events as two files with one half each."""
    half = len(events) // 2
    return [_file("first", events[:half]), _file("second", events[half:])]


def _file(name: str, events: Sequence[Event]) -> Parsed:
    count = sum(len(event.facts) for event in events if not event.is_static)
    return Parsed(0, list(events), [], count, name)
