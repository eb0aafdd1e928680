"""What Spark's Python workers are given to do."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow

from squall.builders.distributed.io.records import SCHEMA, Step
from squall.process.gc_tuning import calm_collector, spare_collector

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame


_OWN = "SQUALL_WORKER"
"""Workers with another environment are others: so each of those that work whole batches off, or shares of them, is in a
pool of its own."""
_ENVIRONMENT = threading.Lock()


def by_workers(rows: DataFrame, step: Step) -> DataFrame:
    """The messages that workers make of rows, where these are."""

    def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        calm_collector()
        yield from step(batches)
        spare_collector()

    work.__name__ = step.__name__
    return rows.mapInArrow(work, SCHEMA)


def by_own_workers(nothing: RDD[int], steps: Sequence[Step], local: bool) -> RDD[pyarrow.RecordBatch]:
    """What tasks make of nothing, one for each step: of an RDD of one partition. local: all tasks are on this machine;
    then it is the same worker each time that has the first step, or the second, if no two such jobs are at work at
    once: Spark takes the one that has been idle for the longest time, and there is no other. (Elsewhere any executor
    may have any step, and is not to have a pool for each.)

    Not a DataFrame, since to plan one takes longer than to run a task that is to do nothing.
    """
    rdds = [_by_own_worker(nothing, step, pool if local else 0) for pool, step in enumerate(steps)]
    return rdds[0] if len(rdds) == 1 else nothing.context.union(rdds).setName(steps[0].__name__)


def _by_own_worker(nothing: RDD[int], step: Step, pool: int) -> RDD[pyarrow.RecordBatch]:
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
