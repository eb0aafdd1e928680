"""Micro-batches of a distributed engine without Spark: the toy engine, with workers that fail and limits of all sizes.

It leaves out what Spark adds (sources, Parquet, processes), so that tests can try many programs in little time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice, pairwise
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow

import squall
from squall.builders.distributed.exec import state_cache
from squall.builders.distributed.exec.adaptation import BatchAdaptation
from squall.builders.distributed.exec.batch_log import MicroBatchLog, plan_number_of
from squall.builders.distributed.exec.logged_batches import LoggedBatches
from squall.builders.distributed.exec.micro_batch import batches_of
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.routing import Router
from squall.builders.distributed.exec.state_cache import StateCache
from squall.builders.distributed.io.engine import Folder, NodeMetrics, Read
from squall.builders.distributed.io.parsing import Parsed
from squall.builders.distributed.io.records import STATE, DeadLetter, SourceCount, WorkerStep, from_arrow, to_arrow
from squall.builders.distributed.plan.broadcast import moved_broadcast_inputs
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.physical_plan import PhysicalPlan, physical_plan
from squall.builders.distributed.plan.skew import SkewedKeys, moved_skewed_keys
from squall.builders.distributed.plan.stages import NO_SKEWED_KEYS
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.builders.runtime.zset import Delta
from squall.contracts import Options, Output, Replanning
from squall.plan import Plan
from squall.rdf import ALWAYS, Event
from tests.toy_engine import Records, ToyEngine, ToyFiles


class Workers:
    """Simulates Python workers, any of which may run any task.

    Args:
        draw: decides which worker runs a task, and what fails.
        max_cached_rows: the most rows of state that each worker caches.
        failure_rate: the probability of each failure: a worker loses its cache, the driver restarts, or a task fails
            at any point, also after its last output, and is retried.

    Attributes:
        reads: the state that workers have read: worker, file, stage and number of the task.
    """

    def __init__(self, draw: Random, max_cached_rows: int = 1_000_000, failure_rate: float = 0.15) -> None:
        self.draw = draw
        self.max_cached_rows = max_cached_rows
        self.failure_rate = failure_rate
        self.caches = [StateCache() for _ in range(3)]
        self.reads: list[tuple[int, Folder, int, int]] = []

    def fails(self) -> bool:
        return self.draw.random() < self.failure_rate

    def work(self, step: WorkerStep, batches: Sequence[pyarrow.RecordBatch]) -> Records:
        """Runs a task on one of the workers, and retries it until it succeeds."""
        while self.fails():
            self._attempt(step, batches, self.draw.choice([0, 1, 1000]))
        return self._attempt(step, batches, None)

    def _attempt(self, step: WorkerStep, batches: Sequence[pyarrow.RecordBatch], max_records: int | None) -> Records:
        number = self.draw.randrange(len(self.caches))
        if self.fails():
            self.caches[number] = StateCache()
        before, state_cache.WORKER_STATE_CACHE = state_cache.WORKER_STATE_CACHE, self.caches[number]
        try:
            result = step(iter(batches))
            return list(from_arrow(islice(result, max_records)))
        finally:
            state_cache.WORKER_STATE_CACHE = before


class Interrupted(Exception):
    """The driver has been killed."""


class MemoryFiles(ToyFiles):
    """The files of a job.

    Args:
        workers: they note which state they read.

    Attributes:
        fails: says before and after each change of the files whether the driver is killed.
    """

    def __init__(self, workers: Workers | None = None) -> None:
        super().__init__()
        self.workers = workers
        self.task = 0
        self.fails: Callable[[], bool] = lambda: False

    def _interrupt(self) -> None:
        if self.fails():
            raise Interrupted

    def write(self, value: object, *path: object) -> None:
        self._interrupt()
        super().write(value, *path)
        self._interrupt()

    def delete(self, *path: object) -> None:
        self._interrupt()
        super().delete(*path)

    def reader(self) -> Read:
        return self._read

    def _read(self, file: Folder) -> Iterable[pyarrow.RecordBatch]:
        records = self.read(*file)
        if self.workers is not None and STATE in file:
            worker = self.workers.caches.index(state_cache.WORKER_STATE_CACHE)
            self.workers.reads.append((worker, file, records[0].stage, self.task))
        return to_arrow(records)


class MemoryEngine(ToyEngine):
    """The toy engine, with workers that cache state and may fail."""

    files: MemoryFiles
    router: Router | None = None
    """Says to which partition rows belong. None: it is not checked."""

    def task(self, step: WorkerStep, records: Records, number: int) -> Records:
        self.files.task = number
        workers = self.files.workers
        with self._checked_partition(number) if records and self.router else nullcontext():
            return super().task(step, records, number) if workers is None else workers.work(step, [*to_arrow(records)])

    @contextmanager
    def _checked_partition(self, number: int) -> Iterator[None]:
        """Checks that nodes of a task get rows of its partition only, also from other nodes of the task.

        Partitionings say which rows stay in their task from node to node. If they are wrong, the outputs do not always
        show it.
        """
        put, router, partitions = Dataflow.put, self.router, self.partitions
        assert router is not None

        def checked(self: Dataflow, address: Address, deltas: Sequence[Delta]) -> None:
            if address[0] in self.operators and address in router.key_functions:
                buckets = {router.bucket(address, delta) for delta in deltas} - {BROADCAST_BUCKET}
                assert {bucket % partitions for bucket in buckets} <= {number}, f"{address} gets rows of another task"
            put(self, address, deltas)

        with patch.object(Dataflow, "put", checked):
            yield


class Plans:
    """The plans of a job, by the number of the batch that has moved its state there, and the one in use.

    Args:
        plan: the plan with which the job begins.
        broadcast_inputs: its broadcast inputs.
        skewed_keys: its skewed keys.
        change: changes the physical plan.
    """

    def __init__(
        self,
        plan: Plan,
        broadcast_inputs: frozenset[Address],
        skewed_keys: SkewedKeys,
        change: Callable[[PhysicalPlan], PhysicalPlan],
    ) -> None:
        self.by_number = {0: (plan, broadcast_inputs, skewed_keys)}
        self.change = change
        self.number = 0

    @property
    def plan(self) -> Plan:
        """The plan in use."""
        return self.by_number[self.number][0]

    def use(self, number: int) -> Program:
        """Returns the program with a plan, which is in use from then on."""
        self.number = number
        return self._program(*self.by_number[number])

    def _program(self, plan: Plan, broadcast_inputs: frozenset[Address], skewed_keys: SkewedKeys) -> Program:
        return Program(self.change(physical_plan(plan, broadcast_inputs, dict(skewed_keys))))

    def move(self, job: LoggedBatches, plan: Plan) -> None:
        """Moves the state of a job to another plan."""
        before, broadcast_inputs, skewed_keys = self.by_number[self.number]
        moved = (
            plan,
            moved_broadcast_inputs(before, plan, broadcast_inputs),
            moved_skewed_keys(before, plan, skewed_keys),
        )
        self.by_number[job.log.committed_count] = moved
        job.move(self._program(*moved), before, plan, "another plan")


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
    dead_letters: list[DeadLetter] | None = None,
    replanning: Replanning | None = None,
    adaptations: list[BatchAdaptation] | None = None,
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
        dead_letters: receives the dead letters. None: there must be none.
        replanning: when the job replaces its plan. With workers, it may restart at each change of a file by a move.
        adaptations: receives what has replaced the plan, of each start of the job.
    """
    files = MemoryFiles(workers)
    plans, planning = Plans(plan, broadcast_inputs, dict(skewed_keys), change), plan.planning._replace(replaceable=True)
    outputs: list[Output] = []
    limits = BatchLimits(
        max_single_task_rows,
        workers.max_cached_rows if workers is not None else 0,
        max_single_task_bytes,
        compaction_interval=compaction_interval,
    )
    jobs: list[LoggedBatches] = []

    def restarted_job() -> LoggedBatches:
        program = plans.use(plan_number_of(MicroBatchLog(files, plan).last_commit))
        if adaptations is not None:
            adaptations.append(BatchAdaptation(plans.plan, planning, replanning, 1_000_000))
        engine = MemoryEngine(files, workers.draw.choice([2, 3, 5]) if workers is not None else 3)
        engine.router = program.router()
        is_staged = program.physical.strategy.is_staged
        measured = replace(program, measure=node_metrics is not None or (is_staged and measures()))
        return batches_of(engine, files, measured, limits, max_update_steps)

    def current_job() -> LoggedBatches:
        if workers is None or not jobs or workers.fails():
            jobs[:] = [restarted_job()]
        return jobs[0]

    def work(parseds: Sequence[Parsed], first: bool = False, last: bool = False, keep: bool = True) -> None:
        job = current_job()
        job.log.node_metrics = node_metrics or job.log.node_metrics
        if job.is_unshuffled(sum(len(part.events) for part in parseds)):
            job.process_unshuffled(lambda *_: iter(parseds), job.initial_records() if first else (), last, keep)
        else:
            records = [*(start(job) if first else ()), *read(job, parseds)]
            job.process(records if first or parseds else None, last, keep)
        outputs.extend(job.outputs())
        if not keep and not any(stage.recursive for stage in job.program.stages):
            assert not any(STATE in path for path in files.values)
        letters = list(job.dead_letters())
        assert not letters or dead_letters is not None
        (dead_letters if dead_letters is not None else []).extend(letters)
        job.commit(None)
        if adaptations is not None and keep and not first and not last:
            adapt(job)

    def adapt(job: LoggedBatches) -> None:
        """Lets the job replace its plan, and restart whatever comes of it."""
        assert adaptations is not None
        if workers is not None:
            files.fails = lambda: workers.draw.random() < workers.failure_rate / 10
        try:
            statements = sum(count for _, count in job.report.all(SourceCount))
            if adaptations[-1].count(job, statements, lambda other: plans.move(job, other)):
                jobs.clear()
        except Interrupted:
            jobs.clear()
        finally:
            files.fails = lambda: False

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


def in_a_single_task(physical: PhysicalPlan) -> PhysicalPlan:
    """Returns a physical plan that one task runs as a whole: without stages, ordered scans, and shards."""
    return replace(physical, strategy=replace(physical.strategy, division="single task"))


def any_workers(draw: Random) -> Workers:
    """Draws workers with a cache of any size."""
    return Workers(draw, max_cached_rows=draw.choice([0, 3, 1_000_000]))


def any_engine(seed: int) -> dict[str, Any]:
    """Draws options of `run`: workers with a cache of any size, or none, and limits of all sizes, few of which let one
    task process a batch."""
    draw = Random(seed)
    return {
        "max_single_task_rows": draw.choice([0, 0, 0, 10, 1_000_000]),
        "max_single_task_bytes": draw.choice([-1, -1, -1, 2, 1_000_000]),
        "workers": any_workers(draw) if draw.random() < 0.7 else None,
    }


def run_anyhow(
    plan: Plan,
    batches: Iterable[Sequence[Event]],
    static: Sequence[Event],
    seed: int,
    dead_letters: list[DeadLetter] | None = None,
) -> list[Output]:
    """Runs a plan in micro-batches, with workers and limits drawn from a seed."""
    return run(plan, batches, static, dead_letters=dead_letters, **any_engine(seed))


def start(job: LoggedBatches) -> Records:
    """Returns the records that start the program."""
    result: Records = job.runner.engine.generate(job.initial_step(job.initial_records()))
    return result


def outputs_on(
    builder: str, plan: Plan, events: Sequence[Event], seed: int, static: Sequence[Event] = ()
) -> list[Output]:
    """Returns the outputs on a builder, or ``in memory``: then in micro-batches that are drawn from a seed."""
    if builder != "in memory":
        return list(squall.run(plan, events, builder, static=static))
    cut = seed % (len(events) + 1)
    return run_anyhow(plan, [part for part in (events[:cut], events[cut:]) if part], static, seed)


def read(job: LoggedBatches, files: Sequence[Parsed]) -> Records:
    """Returns the records of files, each read by a task."""
    engine = job.runner.engine
    result: Records = engine.union(
        [engine.generate(job.source_step(lambda *_, file=file: iter([file]))) for file in files]
    )
    return result


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
