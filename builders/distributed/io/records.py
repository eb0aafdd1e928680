"""Messages: what a distributed builder stores and moves, as flat records over Arrow.

A *message* is an entry with an address: the same form for rows on their way to a node, for what a node keeps between
batches, for answers on their way out, and for statements that could not be used. `squall.builders.runtime.serde` says
how a row is one string."""

from __future__ import annotations

import json
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
"""The kinds of message: rows for a node; rows for a node that are worked off in their time; such rows that are kept if
that is later; what a node keeps; a statement that could not be used; the latest time, and the latest at which something
begins or ends (`end`); up to when instants are whole, for those that work them off in the same job; how many statements
(`start`) of a source (`node`) were read; a time at which a stream, in a graph, brought something; how many rows
(`start`) a node has made, in how many microseconds (`end`; -1: not known); what operators that have gone on are known
by; the name of a file with answers; the kind and the name of a file with messages of a level (`many`, `start`, `end`:
of all of them)."""
STORED = (ROW, BUFFERED, STATE, DEAD_LETTER)
"""The kinds that are stored, by who has made them; of the others it is enough to be told."""
BATCH_LOCAL = (ROW, BUFFERED, DEAD_LETTER)
"""The kinds that are of no use after their batch, but for rows that wait."""
WorkerStep = Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]
"""A worker's function, over Arrow. By its name engines know it."""
SOURCE_STEP = "sources"
"""The name of the one that reads them."""
SCHEMA = (
    "kind string, level int, bucket int, node int, port int, row string, start long, `end` long, weight int, "
    "many int, spans binary"
)


class Record(NamedTuple):
    """A flat record of `SCHEMA`. many, spans: of a `RowBatch` how many entries there are, and when they are valid;
    start, end: the latest time at which one of them begins, and ends, if one does (integer ms)."""

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
    """Entries of one bucket for one input of a node, or of one slot of what it keeps: a message as workers have it.
    (Together, so that an engine that moves it has little to do.)"""

    kind: str
    level: int
    bucket: int
    node: int
    port: int
    entries: Sequence[Delta]

    def message(self) -> Record:
        """The parcel as a record."""
        packed = pack_all(self.entries)
        return Record(*self[:-1], packed.text, packed.start, packed.end, 0, len(self.entries), packed.spans)


class OutputBatch(NamedTuple):
    """What an operation node answers, many at a time. texts: the answers as strings; times: of each (integer ms);
    places: in which order those of a time are told ("": in none)."""

    level: int
    node: int
    texts: Sequence[str]
    times: Sequence[int]
    places: Sequence[str]

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """The same as records, of kind `ROW`: start is the time, spans the place (in UTF-8, which is less for what is
        less by code points)."""
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
"""How many entries go together over Arrow, about."""


WorkerOutput = Record | RowBatch | OutputBatch
"""What workers make."""


def to_arrow(messages: Iterable[WorkerOutput]) -> Iterator[pyarrow.RecordBatch]:
    """Messages in batches. A BuilderError on the way is raised as `WorkerError`."""
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
    """The worker's function that makes messages, of nothing."""

    def made(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        deque(batches, maxlen=0)  # an engine ends the worker that leaves something, and with it what it holds
        yield from to_arrow(messages)

    return made


def identity_step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The worker's function that leaves messages as they are."""
    return batches


class WorkerError(Exception):
    """A run that failed in a worker for a reason the user can mend. All that the driver gets of it is its text."""

    MARK = "<squall "
    """How what the text holds of it begins."""

    def __init__(self, error: SquallError) -> None:
        super().__init__(self.text(error))

    @classmethod
    def text(cls, error: SquallError) -> str:
        """What an engine's error is to hold: for who sees it there, and for `retold`."""
        payload = json.dumps([error.message, error.hint])
        hint = f" ({error.hint})" if error.hint else ""
        return f"{error.message}{hint} {cls.MARK}{b64encode(payload.encode()).decode()}>"

    @classmethod
    @contextmanager
    def retold(cls) -> Iterator[None]:
        """Raises for an engine's error that tells of a worker's the BuilderError that this one was."""
        try:
            yield
        except Exception as error:
            payloads = re.findall(f"{cls.MARK}([A-Za-z0-9+/=]+)>", str(error))
            if not payloads:
                raise
            message, hint = json.loads(b64decode(payloads[-1]))
            raise BuilderError(message, hint=hint) from None


def _batch(chunk: Sequence[Record]) -> pyarrow.RecordBatch:
    columns = [column(values, field.type) for values, field in zip(zip(*chunk, strict=True), ARROW, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=ARROW)


def column(values: Sequence[Any], type: pyarrow.DataType) -> pyarrow.Array:
    """Integers, strings or bytes as an array. By its buffers, since `pyarrow.array` loads Pandas, where that is
    installed, to see whether values are its own: 0.2 s in each worker."""
    buffers: list[array[int] | bytes]
    if pyarrow.types.is_integer(type):
        buffers = [array({4: "i", 8: "q"}[type.byte_width], values)]
    else:
        cells = [value.encode() for value in values] if pyarrow.types.is_string(type) else values
        buffers = [array("i", accumulate(map(len, cells), initial=0)), b"".join(cells)]
    return pyarrow.Array.from_buffers(type, len(values), [None, *map(pyarrow.py_buffer, buffers)])


def as_row_batches(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[RowBatch]:
    """The parcels in batches."""
    for message in from_arrow(batches):
        yield RowBatch(*message[:5], unpack_all(message.row, message.spans))


def split_by_stage(
    batches: Iterable[pyarrow.RecordBatch], levels: Collection[int] | None, own: list[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """The messages that are not for some levels; those that are (None: all) go into `own`."""
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
    """The messages of batches."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ARROW.names)
        yield from map(Record._make, zip(*columns, strict=True))
