"""The engine of the distributed builders on Spark: records are DataFrames, and Parquet files in the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from squall.builders.distributed.io.engine import Folder, TaskReport
from squall.builders.distributed.io.records import SCHEMA, WorkerStep, from_arrow
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET, BUCKET_COUNT
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
    def _numbers(self) -> list[int]:
        """For each partition that has a bucket, a number that Spark's hash sends there. Computing it takes a Spark job,
        so a run with only single-task batches does without it."""
        return _numbers(self.spark, self.partitions, min(self.partitions, BUCKET_COUNT))

    @cached_property
    def _nothing(self) -> RDD[int]:
        """The input of a task that needs no input: an RDD of one partition."""
        return self.spark.sparkContext.range(0, 1, 1, 1)

    def read(self, files: Sequence[Folder], type: str | None = None) -> DataFrame:
        from pyspark.sql import functions as f

        records = self.spark.read.schema(SCHEMA).parquet(*(pattern_of(self.store.uri(*file)) for file in files))
        return records if type is None else records.withColumn("kind", f.lit(type))

    def union(self, frames: Sequence[DataFrame]) -> DataFrame:
        return reduce(lambda union, frame: union.unionByName(frame), frames)

    def generate(self, step: WorkerStep) -> DataFrame:
        return by_workers(self.spark.range(0, 1, 1, 1), step)

    def shuffle(self, records: DataFrame, step: WorkerStep, broadcast_stages: Collection[int] = ()) -> DataFrame:
        from pyspark.sql import functions as f

        if broadcast_stages:
            is_replicated = (f.col("bucket") == BROADCAST_BUCKET) & f.col("level").isin(*broadcast_stages)
            copies = f.array(*map(f.lit, range(len(self._numbers))))
            buckets = f.when(is_replicated, copies).otherwise(f.array("bucket"))
            records = records.withColumn("bucket", f.explode(buckets))
        return by_workers(records.repartition(self.partitions, self._partition_number()), step)

    def _partition_number(self) -> Column:
        """Returns the column to shuffle by. Broadcast records of a later stage may go to any partition."""
        from pyspark.sql import functions as f

        owner = f.pmod("bucket", f.lit(len(self._numbers)))
        return f.element_at(f.array(*map(f.lit, self._numbers)), owner + 1)

    def run(self, records: DataFrame) -> TaskReport:
        return TaskReport.of(from_arrow(records.toArrow().to_batches()))

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        return TaskReport.of(from_arrow(by_own_workers(self._nothing, steps, is_local(self.spark)).collect()))


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
