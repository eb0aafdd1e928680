"""Functions that run steps in Spark's Python workers."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow

from squall.builders.distributed.io.records import SCHEMA, WorkerStep
from squall.process.gc_tuning import calm_collector, spare_collector

# `mapInArrow` asks for pandas, of which neither it nor squall uses anything: rows go to Python as Arrow.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame


_OWN = "SQUALL_WORKER"
"""An environment variable that keeps workers apart: Spark has a pool of workers for each environment. So each worker
that processes whole batches, or shards of them, has a pool of its own."""
_ENVIRONMENT = threading.Lock()


def by_workers(rows: DataFrame, step: WorkerStep) -> DataFrame:
    """Runs a step on rows in the Python workers of their partitions."""

    def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        calm_collector()
        yield from step(batches)
        spare_collector()

    work.__name__ = step.__name__
    return rows.mapInArrow(work, SCHEMA)


def by_own_workers(nothing: RDD[int], steps: Sequence[WorkerStep], local: bool) -> RDD[pyarrow.RecordBatch]:
    """Runs steps without input, each as a task of its own.

    With `local`, all tasks run on this machine, and a step runs in the same worker each time, because each has a pool
    of one worker. That holds if no two such jobs run at once: Spark takes the worker that has been idle longest.
    Elsewhere any executor may run any step, and does not need a pool for each.

    It is no DataFrame, since planning one takes longer than running a task with nothing to do.

    Args:
        nothing: an RDD of one partition.
        steps: the steps.
        local: whether all tasks run on this machine.
    """
    rdds = [_by_own_worker(nothing, step, pool if local else 0) for pool, step in enumerate(steps)]
    return rdds[0] if len(rdds) == 1 else nothing.context.union(rdds).setName(steps[0].__name__)


def _by_own_worker(nothing: RDD[int], step: WorkerStep, pool: int) -> RDD[pyarrow.RecordBatch]:
    def work(_: int, rows: Iterable[int]) -> Iterator[pyarrow.RecordBatch]:
        deque(rows, maxlen=0)  # Spark ends a worker that leaves something, and with it what it holds
        calm_collector()
        yield from step(iter(()))
        spare_collector()

    context = nothing.context
    with _ENVIRONMENT:
        environment = context.environment  # left as it is: other threads may be reading it
        context.environment = {**environment, _OWN: str(pool)}
        try:
            # With its name the function is handed to Spark, which takes note of the environment.
            rdd = nothing.mapPartitionsWithIndex(work).setName(step.__name__)
        finally:
            context.environment = environment
    return rdd
