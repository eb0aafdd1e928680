"""What Spark's Python workers are given to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow

from squall.builders.distributed.messages import SCHEMA, Step
from squall.collecting import calm_collector, spare_collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def by_workers(rows: DataFrame, step: Step) -> DataFrame:
    """The messages that workers make of rows, where these are."""

    def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        calm_collector()
        yield from step(batches)
        spare_collector()

    work.__name__ = step.__name__
    return rows.mapInArrow(work, SCHEMA)
