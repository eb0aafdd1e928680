"""Messages as DataFrames, and as Parquet in the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
from pyarrow import parquet

from squall.builders.distributed.addressing import BUCKETS, WAKE, Owners, waking
from squall.builders.distributed.exchange import Folder, Read, Told
from squall.builders.distributed.messages import (
    ANSWERS,
    ARROW,
    COUNT,
    FIGURE,
    INSTANT,
    ROW,
    SCHEMA,
    STATE,
    STORED,
    TIME,
    TOKEN,
    Message,
    Step,
)
from squall.builders.spark.outputs import answering, merged
from squall.builders.spark.store import Store, pattern_of
from squall.rdf import ALWAYS, FOREVER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkExchange:
    """See `squall.builders.distributed.exchange.Exchange`."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self.spark = spark
        self.store = store
        self.partitions = max(2, spark.sparkContext.defaultParallelism)
        self.owners = _owners(spark, self.partitions)

    def stored(self, kind: str, level: int, folders: Iterable[Folder]) -> DataFrame | None:
        from pyspark.sql import functions as f

        parts = [(*folder, *_part(kind, level)) for folder in folders]
        paths = [pattern_of(self.store.uri(*part)) for part in parts if self.store.exists(*part)]
        if not paths:
            return None
        schema = ", ".join(column for column in SCHEMA.split(", ") if column.split()[0] not in ("kind", "level"))
        frame = self.spark.read.schema(schema).parquet(*paths)
        return frame.withColumns({"kind": f.lit(kind), "level": f.lit(level)}).select(list(Message._fields))

    def reader(self) -> Read:
        return partial(_read_state, self.store.path())

    def waking(self, places: Sequence[tuple[int, int]]) -> DataFrame:
        # By SQL: `createDataFrame` would make the session of a micro-batch that of the whole process.
        values = ", ".join(map(str, places))
        alike = f"'{ROW}' AS kind, level, bucket, 0 AS node, {WAKE} AS port, '' AS row, 0L AS start, 0L AS `end`"
        rest = f"0 AS weight, 1 AS many, X'{waking(0, 0).spans.hex()}' AS spans"
        return self.spark.sql(f"SELECT {alike}, {rest} FROM VALUES {values} AS places(level, bucket)")

    def of_kind(self, kind: str, messages: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        return messages.withColumn("kind", f.lit(kind))

    def union(self, frames: Iterable[DataFrame | None]) -> DataFrame | None:
        whole = None
        for frame in frames:
            if frame is not None:
                whole = frame if whole is None else whole.unionByName(frame)
        return whole

    def worked(self, messages: DataFrame, step: Step, partitions: int) -> DataFrame:
        return messages.repartition(partitions, "bucket").mapInArrow(step, SCHEMA)

    def write(self, messages: DataFrame, folder: Folder) -> Told:
        stored, told = to_store(messages)
        stored.write.partitionBy("kind", "level").parquet(self.store.uri(*folder))
        return told()

    def texts(self, kind: str, level: int, folders: Iterable[Folder]) -> Iterator[str]:
        for folder in folders:
            for path in _files(self.store.path(), folder, kind, level):
                with parquet.ParquetFile(path) as file:
                    for batch in file.iter_batches(columns=["row"]):
                        yield from batch["row"].to_pylist()

    def answering(self, step: Step, folder: Folder) -> Step:
        return answering(step, self.store.path(*folder))

    def answers(self, folder: Folder, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        return merged(self.store.path(*folder, name) for name in names)

    def answered(self, folder: Folder, names: Sequence[str]) -> DataFrame | None:
        paths = [pattern_of(self.store.uri(*folder, name)) for name in names]
        return self.spark.read.schema(SCHEMA).parquet(*paths) if paths else None


def _read_state(root: Path, folder: Folder, level: int, buckets: Collection[int]) -> Iterator[pyarrow.RecordBatch]:
    """What a level keeps in some buckets, of a folder in the store: read by a worker itself, for Spark cannot know what
    it holds."""
    for path in _files(root, folder, STATE, level):
        table = parquet.read_table(path, partitioning=None, filters=[("bucket", "in", buckets)])
        for name, value in (("kind", STATE), ("level", level)):
            of_all = pyarrow.repeat(pyarrow.scalar(value, ARROW.field(name).type), len(table))
            table = table.append_column(name, of_all)
        yield from table.to_batches()


def _files(root: Path, folder: Folder, kind: str, level: int) -> list[Path]:
    """Where Spark has put the messages of one kind and level of a folder in the store."""
    return sorted(Path(root, *map(str, folder), *_part(kind, level)).glob("*.parquet"))


def _part(kind: str, level: int) -> tuple[str, str]:
    """The folders in which messages of one kind and level lie."""
    return f"kind={kind}", f"level={level}"


def to_store(messages: DataFrame) -> tuple[DataFrame, Callable[[], Told]]:
    """The messages that are stored, and what all of them tell once that has been done (Spark's observed metrics: no job
    of its own)."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    kind, start, end = f.col("kind"), f.col("start"), f.col("end")
    of_rows = kind == ROW
    observation = Observation()
    frame = messages.observe(
        observation,
        f.max(f.when(kind == TIME, start)).alias("latest"),
        f.collect_set(f.when(kind == INSTANT, f.struct("row", "node", "start"))).alias("instants"),
        f.collect_list(f.when(kind == COUNT, f.struct("node", "start"))).alias("counts"),
        f.sum(f.when(of_rows, f.col("many")).otherwise(0)).alias("rows"),
        f.max(f.when(of_rows, start)).alias("starts"),
        f.max(f.when(of_rows & (end != FOREVER), end)).alias("ends"),
        f.sum(f.when(kind == STATE, f.col("many")).otherwise(0)).alias("kept"),
        f.collect_list(f.when(kind == FIGURE, f.struct("node", "start", "end"))).alias("figures"),
        f.collect_list(f.when(kind == TOKEN, f.struct("row", "node"))).alias("tokens"),
        f.collect_list(f.when(kind == ANSWERS, f.col("row"))).alias("answers"),
    )

    def told() -> Told:
        found = observation.get
        starts = ALWAYS if found["starts"] is None else found["starts"]
        return Told(
            latest=ALWAYS if found["latest"] is None else found["latest"],
            instants=tuple(sorted((one["row"], one["node"], one["start"]) for one in found["instants"])),
            counts=tuple((one["node"], one["start"]) for one in found["counts"]),
            rows=found["rows"] or 0,
            starts=starts,
            ends=starts if found["ends"] is None else max(starts, found["ends"]),
            kept=found["kept"] or 0,
            figures=tuple((one["node"], one["start"], one["end"]) for one in found["figures"]),
            tokens=tuple((one["row"], one["node"]) for one in found["tokens"]),
            answers=tuple(found["answers"]),
        )

    return frame.where(frame.kind.isin(*STORED)), told


def _owners(spark: SparkSession, partitions: int) -> Owners:
    """The partition in which each bucket's rows lie after ``repartition(partitions, bucket)``: Spark's own
    arithmetic."""
    where = f"cast(pmod(hash(cast(id as int)), {partitions}) as int)"
    return tuple(row[0] for row in spark.range(BUCKETS).selectExpr(where, "id").orderBy("id").collect())
