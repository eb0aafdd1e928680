"""The spool as a Python data source of Spark, ``squall-spool``.

It is a Python Data Source (https://spark.apache.org/docs/latest/api/python/tutorial/sql/python_data_source.html). An
offset in Spark's checkpoint is the number of the last file of a micro-batch. Files are deleted once Spark has committed
their micro-batch, so that they are there whenever Spark plans a micro-batch again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from squall.builders.distributed.io.splits import blocks, pack_splits
from squall.builders.spark.spool import file_of, numbers

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

SCHEMA = pyarrow.schema([("value", pyarrow.string()), ("file", pyarrow.string()), ("block", pyarrow.int64())])
"""Lines, with their file and the beginning of their split."""
_OFFSET = "file"
"""The key of an offset: its value is the number of a file."""
_PATIENCE = 0.1
"""Seconds for which Spark waits for files: it would ask again after 10 ms."""
_LOOK = 0.01
"""Seconds between two looks for a file meanwhile."""


class SpoolSource(DataSource):
    """The data source of a spool's files; its path is their folder.

    Options: ``last``, the number of the last file when the query begins; ``most``, the most files of a micro-batch (0:
    no limit); ``tasks``, ``least`` and ``share``, the arguments of `squall.builders.distributed.io.splits.pack_splits`.
    Columns: ``value``, the lines of a split; ``file``, its path; ``block``, the byte at which the split begins.
    """

    @classmethod
    def name(cls) -> str:
        return "squall-spool"

    def schema(self) -> str:
        return "value string, file string, block bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return _Reader(self.options["path"], {name: int(self.options[name]) for name in _NUMBERS})


_NUMBERS = ("last", "most", "tasks", "least", "share")


class _Reader(DataSourceStreamReader):
    def __init__(self, folder: str, options: dict[str, int]) -> None:
        self._folder = folder
        self._given = options
        self._last = options["last"]
        """The number of the last file that is known to exist, or to have existed."""

    def initialOffset(self) -> dict[str, int]:
        return {_OFFSET: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles  # there is none before Spark 4.2

        most = self._given["most"]
        return ReadMaxFiles(most) if most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int] | None = None, limit: ReadLimit | None = None) -> dict[str, int]:
        """Returns the end of the next micro-batch. Before Spark 4.2, which gives no argument, it is the last file."""
        begin = self._last if start is None else start[_OFFSET]
        end = time.monotonic() + _PATIENCE
        while not self._found(begin) and time.monotonic() < end:
            time.sleep(_LOOK)
        return {_OFFSET: min(self._last, begin + getattr(limit, "max_files", self._last))}

    def _found(self, begin: int) -> bool:
        """Returns whether there is a file behind `begin`."""
        while file_of(self._folder, self._last + 1).exists():
            self._last += 1
        return self._last > begin

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        paths = (file_of(self._folder, number) for number in range(start[_OFFSET] + 1, end[_OFFSET] + 1))
        sizes = [(0, str(path), path.stat().st_size) for path in paths]
        options = self._given
        task_shares = pack_splits(sizes, options["tasks"], options["least"], options["share"]) if sizes else []
        return [InputPartition(share) for share in task_shares]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        for part in partition.value:
            _, path, begin, _ = part
            for block in blocks(part):
                yield pyarrow.record_batch([[block], [path], [begin]], schema=SCHEMA)

    def commit(self, end: dict[str, int]) -> None:
        for number in numbers(self._folder):
            if number <= end[_OFFSET]:
                file_of(self._folder, number).unlink()
