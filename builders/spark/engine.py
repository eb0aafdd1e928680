"""The engine of the distributed builders on Spark: record batches are DataFrames, and Parquet files in the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
from pyarrow import compute

from squall.builders.distributed.exec.routing import WAKE_PORT, wake_record
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Folder, Read, TaskReport
from squall.builders.distributed.io.records import ROW, SCHEMA, WorkerStep, column, from_arrow
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET, BUCKET_COUNT, BucketPartitions
from squall.builders.spark.output_files import batches, merged, write
from squall.builders.spark.session import is_local
from squall.builders.spark.store import Store, pattern_of
from squall.builders.spark.workers import by_own_workers, by_workers

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import Column, DataFrame, SparkSession


class SparkEngine:
    """Implements `squall.builders.distributed.io.engine.Engine` on a Spark session."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self.spark = spark
        self.store = store
        self.partitions = max(2, spark.sparkContext.defaultParallelism)

    @cached_property
    def bucket_partitions(self) -> BucketPartitions:
        """The partition of each bucket. Every partition gets as near as can be the same number of buckets. (Spark's own
        hash gives some partitions twice as many.)"""
        return tuple(bucket % self.partitions for bucket in range(BUCKET_COUNT))

    @cached_property
    def _numbers(self) -> list[int]:
        """For each partition that owns a bucket, a number that Spark's hash sends there. Computing it takes a Spark
        job, so a run with only single-task batches does without it."""
        return _numbers(self.spark, self.partitions, max(self.bucket_partitions) + 1)

    @cached_property
    def nothing(self) -> RDD[int]:
        """The input of a task that needs no input: an RDD of one partition."""
        return self.spark.sparkContext.range(0, 1, 1, 1)

    def stored_records(self, kind: str, level: int, folders: Iterable[Folder]) -> DataFrame | None:
        return self._read(task_output.files_of(self.store, kind, level, folders))

    def _read(self, parts: Iterable[Folder]) -> DataFrame | None:
        paths = [pattern_of(self.store.uri(*part)) for part in parts]
        return self.spark.read.schema(SCHEMA).parquet(*paths) if paths else None

    def reader(self) -> Read:
        return partial(_read, self.store.path())

    def wake_records(self, places: Sequence[tuple[int, int]]) -> DataFrame:
        # By SQL: `createDataFrame` would make the session of a micro-batch that of the whole process.
        values = ", ".join(map(str, places))
        constant_columns = (
            f"'{ROW}' AS kind, level, bucket, 0 AS node, {WAKE_PORT} AS port, '' AS row, 0L AS start, 0L AS `end`"
        )
        other_columns = f"0 AS weight, 1 AS many, X'{wake_record(0, 0).spans.hex()}' AS spans"
        return self.spark.sql(
            f"SELECT {constant_columns}, {other_columns} FROM VALUES {values} AS places(level, bucket)"
        )

    def with_record_type(self, kind: str, messages: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        return messages.withColumn("kind", f.lit(kind))

    def union(self, frames: Iterable[DataFrame | None]) -> DataFrame | None:
        union = None
        for frame in frames:
            if frame is not None:
                union = frame if union is None else union.unionByName(frame)
        return union

    def broadcast(self, messages: DataFrame, stages: Collection[int], buckets: Sequence[int]) -> DataFrame:
        from pyspark.sql import functions as f

        is_replicated = (f.col("bucket") == BROADCAST_BUCKET) & f.col("level").isin(*stages)
        bucket_arrays = f.when(is_replicated, f.array(*map(f.lit, buckets))).otherwise(f.array("bucket"))
        return messages.withColumn("bucket", f.explode(bucket_arrays))

    def shuffle(self, messages: DataFrame, step: WorkerStep, partitions: int) -> DataFrame:
        return self.map_partitions(messages.repartition(partitions, *self._by(partitions)), step)

    def _by(self, partitions: int) -> list[Column]:
        """Returns the columns to shuffle by. Replicated records that a later step reads may go to any partition."""
        from pyspark.sql import functions as f

        if partitions == 1:
            return []
        owner = f.pmod("bucket", f.lit(len(self._numbers)))
        return [f.element_at(f.array(*map(f.lit, self._numbers)), owner + 1)]

    def map_partitions(self, messages: DataFrame, step: WorkerStep) -> DataFrame:
        return by_workers(messages, step)

    def generate(self, step: WorkerStep) -> DataFrame:
        return by_workers(self.spark.range(0, 1, 1, 1), step)

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        return TaskReport.of(from_arrow(by_own_workers(self.nothing, steps, is_local(self.spark)).collect()))

    def run(self, messages: DataFrame) -> TaskReport:
        return TaskReport.of(from_arrow(messages.toArrow().to_batches()))

    def with_record_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        return task_output.with_record_files(step, partial(_store, self.store.path(*folder)))

    def stored_rows(self, kind: str, level: int, folders: Iterable[Folder]) -> Iterator[str]:
        for part in task_output.files_of(self.store, kind, level, folders):
            for batch in batches(self.store.path(*part), ["row"]):
                yield from batch["row"].to_pylist()

    def with_output_files(self, step: WorkerStep, folder: Folder) -> WorkerStep:
        return task_output.with_output_files(step, partial(_answer, self.store.path(*folder)))

    def read_outputs(self, folder: Folder, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        return merged(self.store.path(*folder, name) for name in names)

    def output_frame(self, folder: Folder, names: Sequence[str]) -> DataFrame | None:
        return self._read((*folder, name) for name in names)


def _store(folder: Path, place: task_output.RecordGroup, messages: pyarrow.Table) -> str:
    kind, _ = place
    return write(folder / kind, messages)


def _answer(folder: Path, _: task_output.RecordGroup, answers: pyarrow.Table) -> str:
    return write(folder, answers)


def _read(root: Path, file: Folder, buckets: Collection[int] | None) -> Iterator[pyarrow.RecordBatch]:
    """Yields the record batches of some buckets in a file of the store. The worker reads the file itself, because Spark
    cannot know its content."""
    bucket_set = None if buckets is None else column(tuple(buckets), pyarrow.int32())
    for batch in batches(Path(root, *map(str, file))):
        yield batch if bucket_set is None else batch.filter(compute.is_in(batch["bucket"], bucket_set))


def _numbers(spark: SparkSession, partitions: int, first: int) -> list[int]:
    """Returns, for each of the first partitions, a number whose rows `repartition(partitions, number)` sends there, by
    Spark's own arithmetic."""
    candidates = 32 * partitions
    while True:
        place = f"cast(pmod(hash(cast(id as int)), {partitions}) as int)"
        rows = spark.range(0, candidates, 1, 1).selectExpr(place).collect()
        number_of = {place: number for number, (place,) in enumerate(rows)}
        if all(place in number_of for place in range(first)):
            return [number_of[place] for place in range(first)]
        candidates *= 2
