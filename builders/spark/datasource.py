"""Redis Streams and Kafka as Python data sources of Spark.

``squall`` is for jobs of the user's own (docs/spark.md, "DataFrames"); ``squall-lines`` is for runs of squall. Both are
Python Data Sources (https://spark.apache.org/docs/latest/api/python/tutorial/sql/python_data_source.html). Executors
read, each a range between two positions; the positions are the offsets in the checkpoint of the query.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from squall.builders.distributed.io.ingest import drop_late_events
from squall.builders.distributed.io.parsing import DeadLetterBuffer, dead_letter_line, spool_lines
from squall.builders.distributed.io.row_source import Statement, open_splittable, read_split
from squall.builders.spark.spool_source import SCHEMA
from squall.errors import UsageError
from squall.streams import open_source
from squall.streams.sources.files import Splittable

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

_TIME, *_TEXTS = Statement._fields
_SCHEMA = pyarrow.schema([(_TIME, pyarrow.int64()), *((name, pyarrow.string()) for name in _TEXTS)])
_ELSEWHERE = {
    "group": "Spark keeps the offsets: leave it out",
    "lateness": "leave it out, and use `withWatermark` or a `FrameSource`",
    "window": "leave it out: windows belong to programs",
    "stream": "leave it out, and name the stream to a `FrameSource`",
    "idle": "leave it out: no other source is waited for",
}
"""Options of sources that have no meaning here, and what to do instead."""
_OFFSET = "position"
"""The key of an offset: its value is a position of the source."""
_PAUSE = 0.1
"""Seconds for which a read waits if there is nothing new: Spark would ask again after 10 ms."""


class EventSource(DataSource):
    """The data source ``squall``: ``spark.dataSource.register(EventSource)``, and then
    ``spark.readStream.format("squall").load(ADDRESS)``, or ``spark.read`` for what is there now.

    ADDRESS is that of a replayable source (`squall.streams.sources.files.Splittable`): a Redis stream, or a topic of
    Kafka. The columns are those of a `squall.builders.spark.FrameSource`, with a row for each statement: ``time``
    (integer ms), ``subject``, ``predicate``, ``object`` and ``graph`` (terms in N-Triples; null: the default graph). A
    dead letter is a row with a text in ``lost``, and null in all other columns.

    Raises:
        UsageError: as Spark reports it: the address is that of another source, or has an option with no meaning here.
    """

    @classmethod
    def name(cls) -> str:
        return "squall"

    def schema(self) -> str:
        with closing(_opened(self._uri)):
            return f"{_TIME} bigint, {', '.join(f'{name} string' for name in _TEXTS)}"

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(self._uri)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return _StreamReader(self._uri)

    @property
    def _uri(self) -> str:
        if "path" not in self.options:
            raise UsageError("the data source `squall` needs an address", hint='`load("redis://HOST/KEY?format=nt")`')
        return str(self.options["path"])


class _Reader(DataSourceReader):
    """Reads what is there now."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def partitions(self) -> Sequence[InputPartition]:
        with closing(_opened(self._uri)) as source:
            return [InputPartition(part) for part in source.splits_of(source.beginning(), source.latest())]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _batches(self._uri, partition.value)


class _StreamReader(DataSourceStreamReader):
    """Reads a stream. The instance that Spark asks for offsets keeps its connection."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._known: Splittable | None = None
        self._last_offset: dict[str, str] | None = None

    def initialOffset(self) -> dict[str, str]:
        return {_OFFSET: self._source.beginning()}

    def latestOffset(self, start: dict[str, str] | None = None, limit: ReadLimit | None = None) -> dict[str, str]:
        """Returns the end of the next micro-batch. Before Spark 4.2, which does not give its beginning, it is the end
        of the source."""
        offset = {_OFFSET: self._source.latest(start[_OFFSET] if start is not None else "")}
        if offset == self._last_offset:
            time.sleep(_PAUSE)
        self._last_offset = offset
        return offset

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self._source.splits_of(start[_OFFSET], end[_OFFSET])]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _batches(self._uri, partition.value)

    def stop(self) -> None:
        if self._known is not None:
            self._known.close()

    def _opened(self) -> Splittable:
        return _opened(self._uri)

    @property
    def _source(self) -> Splittable:
        self._known = self._known or self._opened()
        return self._known


class LineSource(DataSource):
    """The same addresses for a run of squall (`squall.builders.spark.executor_sources`), which handles streams and
    windows itself. The lines are those of the spool, in the order of their split. The option ``begin`` is the
    position at which the run begins, ``documents`` the files of contexts by IRI, as JSON."""

    @classmethod
    def name(cls) -> str:
        return "squall-lines"

    def schema(self) -> str:
        return "value string, file string, block bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        documents = json.loads(self.options.get("documents", "{}"))
        return _LineReader(self.options["path"], self.options["begin"], documents)


class _LineReader(_StreamReader):
    def __init__(self, uri: str, begin: str, documents: Mapping[str, str]) -> None:
        super().__init__(uri)
        self._begin = begin
        self._documents = documents

    def initialOffset(self) -> dict[str, str]:
        return {_OFFSET: self._begin}

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _line_batches(self._uri, partition.value, self._documents)

    def _opened(self) -> Splittable:
        return cast(Splittable, open_source(self._uri))


def _line_batches(uri: str, part: str, documents: Mapping[str, str]) -> Iterator[pyarrow.RecordBatch]:
    """Yields the lines of a range, one record batch for each batch of the source."""
    losses = DeadLetterBuffer()
    with closing(cast(Splittable, open_source(uri, losses, documents=documents))) as source:
        for events in chain(drop_late_events(source.read_split(part), losses.add), [()]):
            lines = [*(line for event in events for line in spool_lines(event)), *map(dead_letter_line, losses.take())]
            if lines:
                yield pyarrow.record_batch([["\n".join(lines)], [part], [0]], schema=SCHEMA)


def _opened(uri: str, losses: DeadLetterBuffer | None = None) -> Splittable:
    return open_splittable(uri, "a data source of Spark's", _ELSEWHERE, losses)


def _batches(uri: str, part: str) -> Iterator[pyarrow.RecordBatch]:
    """Yields the rows of a range."""
    losses = DeadLetterBuffer()
    with closing(_opened(uri, losses)) as source:
        for rows in read_split(source, part, losses):
            yield pyarrow.record_batch(list(zip(*rows, strict=True)) or [()] * len(_SCHEMA), schema=_SCHEMA)
