"""What Spark's Python workers are given to do."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow

from squall.builders.distributed.messages import SCHEMA, Step
from squall.collecting import calm_collector, spare_collector

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame


_ALONE = "SQUALL_WORKER"
"""Workers with another environment are others: so those that work whole batches off are in a pool of their own."""
_ENVIRONMENT = threading.Lock()


def by_workers(rows: DataFrame, step: Step) -> DataFrame:
    """The messages that workers make of rows, where these are."""

    def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        calm_collector()
        yield from step(batches)
        spare_collector()

    work.__name__ = step.__name__
    return rows.mapInArrow(work, SCHEMA)


def by_one_worker(nothing: RDD[int], step: Step) -> RDD[pyarrow.RecordBatch]:
    """What one task makes of nothing: of an RDD of one partition. On one machine it is the same worker each time, if no
    two such tasks are at work at once: Spark takes the one that has been idle for the longest time, and there is no
    other.

    Not a DataFrame, since to plan one takes longer than to run a task that is to do nothing.
    """

    def work(_: int, rows: Iterable[int]) -> Iterator[pyarrow.RecordBatch]:
        deque(rows, maxlen=0)  # Spark ends a worker that leaves something, and with it what it holds
        calm_collector()
        yield from step(iter(()))
        spare_collector()

    context = nothing.context
    with _ENVIRONMENT:
        context.environment[_ALONE] = "alone"
        try:
            # With its name the function is handed to Spark, which takes note of the environment.
            made = nothing.mapPartitionsWithIndex(work).setName(step.__name__)
        finally:
            del context.environment[_ALONE]
    return made
