"""What Spark's Python workers are given to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow

from squall.builders.distributed.messages import SCHEMA, Step
from squall.collecting import calm_collector, spare_collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


def by_one_worker(spark: SparkSession, step: Step) -> DataFrame:
    """The messages that one task makes of nothing. On one machine it is the same worker each time, if no two such tasks
    are at work at once: Spark takes the one that has been idle for the longest time, and there is no other."""
    environment = spark.sparkContext.environment
    with _ENVIRONMENT:  # Spark takes note of it when it is given a function
        environment[_ALONE] = "alone"
        try:
            return by_workers(spark.range(0, 1, 1, 1), step)
        finally:
            del environment[_ALONE]
