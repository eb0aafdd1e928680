"""The Spark builder runs a plan as a PySpark Structured Streaming job (docs/spark.md; decision 0005).

Spark splits the sources, shuffles rows by the plan's partitioning columns, tracks offsets, and schedules tasks. The row
operators are those of every builder (`squall.builders.runtime.operators`); they run over Arrow in Spark's Python
workers. A micro-batch is a chain of bounded jobs (`squall.builders.distributed.exec.micro_batch`). Their records are
Parquet files below the checkpoint, in one folder per batch, so that an interrupted batch starts again with the same
outcome.
"""

from __future__ import annotations

from squall.builders.spark.job import SparkJob, build
from squall.builders.spark.session import DEFAULTS, session
from squall.builders.spark.settings import (
    MAX_BROADCAST_ROWS,
    MAX_CACHED_STATE_ROWS,
    MAX_FILES_PER_TRIGGER,
    MAX_SINGLE_TASK_BYTES,
    MAX_SINGLE_TASK_ROWS,
    SKEW_THRESHOLD,
)

__all__ = [
    "DEFAULTS",
    "MAX_BROADCAST_ROWS",
    "MAX_CACHED_STATE_ROWS",
    "MAX_FILES_PER_TRIGGER",
    "MAX_SINGLE_TASK_BYTES",
    "MAX_SINGLE_TASK_ROWS",
    "SKEW_THRESHOLD",
    "SparkJob",
    "build",
    "session",
]
