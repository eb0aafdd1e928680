"""The spool as a data source of Spark's own, ``squall-spool``: what Spark's workers read of live sources.

A Python Data Source (https://spark.apache.org/docs/latest/api/python/tutorial/sql/python_data_source.html): an offset
in Spark's checkpoint is the number of the last file that a micro-batch has. Files are deleted when Spark knows that the
micro-batch of the last one is done, so that they are there whenever it plans one again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from squall.builders.distributed.io.splits import blocks, shares
from squall.builders.spark.spool import file_of, numbers

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

SCHEMA = pyarrow.schema([("value", pyarrow.string()), ("file", pyarrow.string()), ("block", pyarrow.int64())])
"""Lines, and where they are from."""
_OFFSET = "file"
"""What Spark's offsets have: the number of a file."""
_PATIENCE = 0.1
"""For how long Spark waits for files, in seconds: it would ask again after 10 ms."""
_LOOK = 0.01
"""How often is looked for them meanwhile, in seconds."""


class SpoolSource(DataSource):
    """The files of a spool, of which Spark is given the folder.

    Options: ``last``, the number of the last file when the query begins; ``most``, of how many files a micro-batch is
    at most (0: of all); ``tasks``, ``least`` and ``share`` as `squall.builders.distributed.io.splits.shares` takes them.
    The columns: ``value``, lines of a file; ``file``, its path; ``block``, where the part of it begins that a task
    reads.
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
        """The last file that is known to be there, or to have been."""

    def initialOffset(self) -> dict[str, int]:
        return {_OFFSET: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles  # there is none before Spark 4.2

        most = self._given["most"]
        return ReadMaxFiles(most) if most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int] | None = None, limit: ReadLimit | None = None) -> dict[str, int]:
        """Before Spark 4.2, which gives neither, it is the last file that there is."""
        begin = self._last if start is None else start[_OFFSET]
        end = time.monotonic() + _PATIENCE
        while not self._found(begin) and time.monotonic() < end:
            time.sleep(_LOOK)
        return {_OFFSET: min(self._last, begin + getattr(limit, "max_files", self._last))}

    def _found(self, begin: int) -> bool:
        """Whether there is a file behind one."""
        while file_of(self._folder, self._last + 1).exists():
            self._last += 1
        return self._last > begin

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        paths = (file_of(self._folder, number) for number in range(start[_OFFSET] + 1, end[_OFFSET] + 1))
        sizes = [(0, str(path), path.stat().st_size) for path in paths]
        options = self._given
        task_shares = shares(sizes, options["tasks"], options["least"], options["share"]) if sizes else []
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
