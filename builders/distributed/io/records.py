"""Records: the flat form, over Arrow, in which a distributed builder stores and moves everything.

A *record* is a delta with an address. Rows on their way to a node, operator state, outputs and dead letters all have
this form. `squall.builders.runtime.serde` says how a row is one string.
"""

from __future__ import annotations

import errno
import json
import os
import re
from array import array
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow
from pyarrow import compute

from squall.builders.runtime.serde import pack_all, unpack_all
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError, SquallError
from squall.rdf import FOREVER

ROW, READY, BUFFERED, STATE, DEAD_LETTER = "row", "due", "held", "state", "lost"
WATERMARK, WATERMARK_BROADCAST, SOURCE_COUNT, INSTANT = "time", "clock", "count", "instant"
NODE_METRIC, STATE_HANDLE, OUTPUT_FILE, RECORD_FILE = "figure", "token", "answers", "file"
"""The types of records. Their values are part of the checkpoint format.

* `ROW`: rows for a node. `READY`: rows for a node that it processes at their event time. `BUFFERED`: the same, but
  stored again if that is later.
* `STATE`: operator state. `DEAD_LETTER`: a statement that could not be used.
* `WATERMARK`: the latest event time (`start`), and the latest time at which something begins or ends (`end`).
  `WATERMARK_BROADCAST`: up to when instants are complete, for tasks of the same job.
* `SOURCE_COUNT`: how many statements (`start`) of a source (`node`) were read. `INSTANT`: a time at which a stream, in
  a graph, had an event.
* `NODE_METRIC`: how many rows (`start`) a node has output, in how many microseconds (`end`; -1: unknown).
  `STATE_HANDLE`: the handle of cached operators.
* `OUTPUT_FILE`: the name of a file with outputs. `RECORD_FILE`: the type and name of a file with records of a stage;
  `many`, `start` and `end` are over all of them.
"""
STORED = (ROW, BUFFERED, STATE, DEAD_LETTER)
"""The types that the task stores which makes them. Others are only reported."""
BATCH_LOCAL = (ROW, BUFFERED, DEAD_LETTER)
"""The types that are deleted after their batch, except for buffered rows."""
WorkerStep = Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]
"""A worker's function over Arrow. Engines show its name."""
SOURCE_STEP = "sources"
"""The name of the step that reads the sources."""
SCHEMA = (
    "kind string, level int, bucket int, node int, port int, row string, start long, `end` long, weight int, "
    "many int, spans binary"
)


class Record(NamedTuple):
    """A flat record of `SCHEMA`.

    For a `RowBatch`, `many` is the number of its deltas and `spans` holds their intervals. `start` and `end` are then
    the latest times at which one of them begins, and ends if one does (integer ms). `level` is the number of the stage.
    """

    kind: str
    level: int
    bucket: int
    node: int
    port: int
    row: str
    start: int
    end: int
    weight: int
    many: int = 1
    spans: bytes = b""


class RowBatch(NamedTuple):
    """Deltas of one bucket for one input of a node, or for one slot of its state: the form in which workers process
    records. `level` is the number of the stage.

    Many deltas are one record, so that an engine that moves it has little to do.
    """

    kind: str
    level: int
    bucket: int
    node: int
    port: int
    deltas: Sequence[Delta]

    def message(self) -> Record:
        """Returns the row batch as a record."""
        packed = pack_all(self.deltas)
        return Record(*self[:-1], packed.text, packed.start, packed.end, 0, len(self.deltas), packed.spans)


class OutputBatch(NamedTuple):
    """Many outputs of one sink node.

    Attributes:
        level: the number of the stage.
        node: the number of the node.
        texts: the outputs as strings.
        times: the time of each (integer ms).
        places: the position of each among those of the same time ("": none).
    """

    level: int
    node: int
    texts: Sequence[str]
    times: Sequence[int]
    places: Sequence[str]

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yields the outputs as records of type `ROW`. `start` is the time and `spans` the position, in UTF-8, which
        sorts as its code points do."""
        alike = Record(ROW, self.level, 0, self.node, 0, "", 0, FOREVER, 0)
        of_each = {"row": self.texts, "start": self.times, "spans": [place.encode() for place in self.places]}
        for first in range(0, len(self.texts), ROWS_PER_BATCH):
            chunk = slice(first, first + ROWS_PER_BATCH)
            size = len(self.texts[chunk])
            columns = [
                column(of_each[field.name][chunk], field.type)
                if field.name in of_each
                else pyarrow.repeat(pyarrow.scalar(getattr(alike, field.name), field.type), size)
                for field in ARROW
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=ARROW)


ARROW = pyarrow.schema(
    [
        ("kind", pyarrow.string()), ("level", pyarrow.int32()), ("bucket", pyarrow.int32()), ("node", pyarrow.int32()),
        ("port", pyarrow.int32()), ("row", pyarrow.string()), ("start", pyarrow.int64()), ("end", pyarrow.int64()),
        ("weight", pyarrow.int32()), ("many", pyarrow.int32()), ("spans", pyarrow.binary()),
    ]
)  # fmt: skip
ROWS_PER_BATCH = 20_000
"""About how many deltas go together over Arrow."""


WorkerOutput = Record | RowBatch | OutputBatch
"""What workers output."""


def to_arrow(messages: Iterable[WorkerOutput]) -> Iterator[pyarrow.RecordBatch]:
    """Yields records in batches. A BuilderError on the way is raised as `WorkerError`."""
    chunk: list[Record] = []
    size = 0
    try:
        for record in messages:
            if isinstance(record, OutputBatch):
                yield from record.batches()
                continue
            message = record.message() if isinstance(record, RowBatch) else record
            chunk.append(message)
            size += message.many
            if size >= ROWS_PER_BATCH:
                yield _batch(chunk)
                chunk, size = [], 0
    except BuilderError as error:
        raise WorkerError(error) from None
    if chunk:
        yield _batch(chunk)


def constant_step(messages: Sequence[Record | RowBatch]) -> WorkerStep:
    """Returns the worker's function that outputs given records, whatever its input."""

    def made(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        deque(batches, maxlen=0)  # an engine ends the worker that leaves something, and with it what it holds
        yield from to_arrow(messages)

    return made


def identity_step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Returns its input: a worker step that changes nothing."""
    return batches


_REFUSALS = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EROFS, errno.EDQUOT))
"""What the system says when files cannot be written. Errors of engines carry no more than this text."""


class WorkerError(Exception):
    """A run has failed in a worker for a reason that the user can mend. The driver only gets its text."""

    MARK = "<squall "
    """The text before the encoded error."""

    def __init__(self, error: SquallError) -> None:
        super().__init__(self.text(error))

    @classmethod
    def text(cls, error: SquallError) -> str:
        """Returns the text of an engine's error, for the reader of a log and for `WorkerError.retold`."""
        payload = json.dumps([error.message, error.hint])
        hint = f" ({error.hint})" if error.hint else ""
        return f"{error.message}{hint} {cls.MARK}{b64encode(payload.encode()).decode()}>"

    @classmethod
    @contextmanager
    def retold(cls) -> Iterator[None]:
        """Raises the BuilderError of a worker in place of the engine's error that carries it.

        A file system that is full, or read-only, is such an error as well, wherever the engine meets it.
        """
        try:
            yield
        except Exception as error:
            payloads = re.findall(f"{cls.MARK}([A-Za-z0-9+/=]+)>", str(error))
            if not payloads:
                reason = next((reason for reason in _REFUSALS if reason in str(error)), None)
                if reason is None or isinstance(error, SquallError):
                    raise
                hint = "the checkpoint, or else the folder for temporary files, has to be writable, with room left"
                raise BuilderError(f"the state of the run cannot be saved: {reason}", hint=hint) from error
            message, hint = json.loads(b64decode(payloads[-1]))
            raise BuilderError(message, hint=hint) from None


def _batch(chunk: Sequence[Record]) -> pyarrow.RecordBatch:
    columns = [column(values, field.type) for values, field in zip(zip(*chunk, strict=True), ARROW, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=ARROW)


def column(values: Sequence[Any], type: pyarrow.DataType) -> pyarrow.Array:
    """Returns integers, strings or bytes as an Arrow array, made from buffers. `pyarrow.array` would load pandas, if it
    is installed, only to check the type of the values; that takes 0.2 s in each worker."""
    buffers: list[array[int] | bytes]
    if pyarrow.types.is_integer(type):
        buffers = [array({4: "i", 8: "q"}[type.byte_width], values)]
    else:
        cells = [value.encode() for value in values] if pyarrow.types.is_string(type) else values
        buffers = [array("i", accumulate(map(len, cells), initial=0)), b"".join(cells)]
    return pyarrow.Array.from_buffers(type, len(values), [None, *map(pyarrow.py_buffer, buffers)])


def as_row_batches(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[RowBatch]:
    """Yields the row batches in Arrow batches."""
    for message in from_arrow(batches):
        yield RowBatch(*message[:5], unpack_all(message.row, message.spans))


def split_by_stage(
    batches: Iterable[pyarrow.RecordBatch], levels: Collection[int] | None, own: list[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """Yields the records that are not for some stages. Those that are (None: all) go into `own`."""
    numbers = None if levels is None else column(tuple(levels), pyarrow.int32())
    for batch in batches:
        mine = compute.is_in(batch["level"], numbers) if numbers is not None else None
        if mine is None or mine.true_count == len(batch):
            own.append(batch)
            continue
        if mine.true_count:
            own.append(batch.filter(mine))
        yield batch.filter(compute.invert(mine))


def from_arrow(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Record]:
    """Yields the records in Arrow batches."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ARROW.names)
        yield from map(Record._make, zip(*columns, strict=True))
