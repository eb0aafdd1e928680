"""Records: what workers output, and the flat form, over Arrow, in which it is stored and moved.

Each record type is a class. `encode` and `decode` convert between these and `Record`, which has the columns of all of
them. `squall.builders.runtime.serde` says how a row is one string.
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
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast, get_args

import pyarrow
from pyarrow import compute

from squall.builders.distributed.plan.buckets import OUTPUT_STAGE
from squall.builders.runtime.serde import pack_all, unpack_all
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError, SquallError
from squall.rdf import ALWAYS, FOREVER

_T = TypeVar("_T")

ROW, READY, BUFFERED, STATE, DEAD_LETTER = "row", "due", "held", "state", "lost"
WATERMARK, WATERMARK_BROADCAST, SOURCE_COUNT, INSTANT = "time", "clock", "count", "instant"
NODE_METRIC, STATE_HANDLE, OUTPUT_FILE, RECORD_FILE, PLAN_REPORT = "figure", "token", "answers", "file", "plan"
"""The record types. Their values are part of the checkpoint format.

`ROW`, `READY` (rows that a node processes at their event time), `BUFFERED` (the same, but stored again if that is
later), `STATE` and `WATERMARK_BROADCAST` (up to when instants are complete, for tasks of the same job) are those of a
`RowBatch`. The classes below have one each.
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
    """A record in the columns of `SCHEMA`, where the type is named `kind`, and the number of the stage `level`.

    For a `RowBatch`, `many` is the number of its deltas and `spans` holds their intervals. `start` and `end` are then
    the latest times at which one of them begins, and ends if one does (integer ms).
    """

    type: str
    stage: int
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
    records.

    Many deltas are one record, so that an engine that moves it has little to do.
    """

    type: str
    stage: int
    bucket: int
    node: int
    port: int
    deltas: Sequence[Delta]

    def encode(self) -> Record:
        """Returns the row batch as a record."""
        packed = pack_all(self.deltas)
        return Record(*self[:-1], packed.text, packed.start, packed.end, 0, len(self.deltas), packed.spans)


class OutputBatch(NamedTuple):
    """Many outputs of one sink node.

    Attributes:
        node: the number of the node.
        texts: the outputs as strings.
        times: the time of each (integer ms).
        places: the position of each among those of the same time ("": none).
    """

    node: int
    texts: Sequence[str]
    times: Sequence[int]
    places: Sequence[str]

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yields the outputs as records of type `ROW`. `start` is the time and `spans` the position, in UTF-8, which
        sorts as its code points do."""
        alike = encode(Answer("", 0, b""))._replace(node=self.node)
        of_each = {"row": self.texts, "start": self.times, "spans": [place.encode() for place in self.places]}
        for first in range(0, len(self.texts), ROWS_PER_BATCH):
            chunk = slice(first, first + ROWS_PER_BATCH)
            size = len(self.texts[chunk])
            columns = [
                column(of_each[field.name][chunk], field.type)
                if field.name in of_each
                else pyarrow.repeat(pyarrow.scalar(value, field.type), size)
                for field, value in zip(ARROW, alike, strict=True)
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=ARROW)


class Answer(NamedTuple):
    """An output as text, with its time (integer ms). `place` is its position among those of the same time."""

    text: str
    time: int
    place: bytes = b""


class OrderedFact(NamedTuple):
    """A fact that is processed in order, or an event without facts.

    Attributes:
        stage: the stage, or the shard, that processes it.
        bucket: the bucket of its key.
        source: the number of its source.
        row: the file, stream, graph, what happens to the fact, and its row, packed.
        time: the event time (integer ms).
        block: where the part of the file begins that was read.
        position: its position in there.
    """

    stage: int
    bucket: int
    source: int
    row: str
    time: int
    block: int
    position: int


class EventTimes(NamedTuple):
    """The times (integer ms) of events for a shard, whatever they bring."""

    shard: int
    times: str
    port: int = 1


class DeadLetter(NamedTuple):
    """A statement that could not be used. `number` is that of its source in the run; -1 means the run itself."""

    cause: str
    source: str
    block: int
    line: int
    reason: str
    text: str
    number: int = -1


class Watermark(NamedTuple):
    """The latest event time of a task, and the latest time at which something begins or ends to hold (integer ms;
    `ALWAYS`: none)."""

    latest_time: int = ALWAYS
    latest_end: int = ALWAYS


class SourceCount(NamedTuple):
    """How many statements of a source, by its number, were read."""

    source: int
    statements: int


class Instant(NamedTuple):
    """A time (integer ms): of an event in a stream and graph, packed as `subject`; or, if that is empty, at which a
    node is to be evaluated or its answer has changed. Event loops report their times by name."""

    subject: str
    node: int
    time: int


class NodeOutput(NamedTuple):
    """How many rows a node, by its number, has output, in how many microseconds (-1: unknown)."""

    node: int
    rows: int
    micros: int


class StateHandle(NamedTuple):
    """The operators of a partition that a worker caches: stage group and handle, and how many rows they hold."""

    partition: int
    name: str
    rows: int


class OutputFile(NamedTuple):
    """The name of a file with outputs."""

    name: str


class RecordFile(NamedTuple):
    """A file with records of one type and stage.

    Attributes:
        label: the type and the name of the file.
        stage: the number of the stage.
        rows: how many rows it has.
        latest_start: the latest time at which one of them begins to hold (integer ms).
        latest_end: the latest time at which one ends; `FOREVER` if none does.
    """

    label: str
    stage: int
    rows: int
    latest_start: int = ALWAYS
    latest_end: int = FOREVER

    @property
    def type(self) -> str:
        """The type of its records."""
        return self.label.partition(" ")[0]

    @property
    def name(self) -> str:
        """Its name."""
        return self.label.partition(" ")[2]


class PlanReport(NamedTuple):
    """What a task reports that looks at the state, or moves it to another plan, as JSON."""

    text: str


Report = Watermark | SourceCount | Instant | NodeOutput | StateHandle | OutputFile | RecordFile | PlanReport
"""What tasks report to the driver."""
WorkerRecord = Record | RowBatch | Answer | OrderedFact | EventTimes | DeadLetter | Report
WorkerOutput = WorkerRecord | OutputBatch
"""What workers output."""
_EMPTY = Record("", 0, 0, 0, 0, "", 0, 0, 0)
_BLANKS: dict[type, tuple[Record, tuple[str, ...]]] = {
    Answer: (_EMPTY._replace(type=ROW, stage=OUTPUT_STAGE, end=FOREVER), ("row", "start", "spans")),
    OrderedFact: (_EMPTY._replace(type=ROW), ("stage", "bucket", "node", "row", "start", "end", "weight")),
    EventTimes: (_EMPTY._replace(type=ROW), ("stage", "row", "port")),
    Watermark: (_EMPTY._replace(type=WATERMARK), ("start", "end")),
    SourceCount: (_EMPTY._replace(type=SOURCE_COUNT), ("node", "start")),
    Instant: (_EMPTY._replace(type=INSTANT), ("row", "node", "start")),
    NodeOutput: (_EMPTY._replace(type=NODE_METRIC), ("node", "start", "end")),
    StateHandle: (_EMPTY._replace(type=STATE_HANDLE), ("node", "row", "start")),
    OutputFile: (_EMPTY._replace(type=OUTPUT_FILE), ("row",)),
    RecordFile: (_EMPTY._replace(type=RECORD_FILE), ("row", "stage", "many", "start", "end")),
    PlanReport: (_EMPTY._replace(type=PLAN_REPORT), ("row",)),
}
"""How each type is encoded: a record without its fields, and the columns of these."""
_REPORTS: dict[str, type[Report]] = {_BLANKS[report][0].type: report for report in get_args(Report)}


def _encoder(blank: Record, columns: Sequence[str]) -> Callable[[Any], Record]:
    fields = {column: len(blank) + place for place, column in enumerate(columns)}
    cells = itemgetter(*(fields.get(column, place) for place, column in enumerate(Record._fields)))
    return lambda record: Record._make(cells(blank + record))


def _decoder(as_type: Any, columns: Sequence[str]) -> Callable[[Record], Any]:
    fields = itemgetter(*map(Record._fields.index, columns))
    return (
        (lambda record: as_type._make(fields(record))) if len(columns) > 1 else (lambda record: as_type(fields(record)))
    )


_ENCODERS: dict[type, Callable[[Any], Record]] = {
    Record: lambda record: record,
    RowBatch: RowBatch.encode,
    DeadLetter: lambda dead_letter: _EMPTY._replace(type=DEAD_LETTER, row=json.dumps(dead_letter)),
    **{type: _encoder(*format) for type, format in _BLANKS.items()},
}
_DECODERS = {type: _decoder(type, columns) for type, (_, columns) in _BLANKS.items()}


def encode(record: WorkerRecord) -> Record:
    """Returns a record in the columns of all types."""
    return _ENCODERS[type(record)](record)


def decode(record: Record, as_type: type[_T]) -> _T:
    """Returns a record as a class of `_BLANKS`."""
    return cast(_T, _DECODERS[as_type](record))


def reports_in(records: Iterable[Record]) -> Iterator[Report]:
    """Yields the reports among some records."""
    return (decode(record, _REPORTS[record.type]) for record in records if record.type in _REPORTS)


ARROW = pyarrow.schema(
    [
        ("kind", pyarrow.string()), ("level", pyarrow.int32()), ("bucket", pyarrow.int32()), ("node", pyarrow.int32()),
        ("port", pyarrow.int32()), ("row", pyarrow.string()), ("start", pyarrow.int64()), ("end", pyarrow.int64()),
        ("weight", pyarrow.int32()), ("many", pyarrow.int32()), ("spans", pyarrow.binary()),
    ]
)  # fmt: skip
ROWS_PER_BATCH = 20_000
"""About how many deltas go together over Arrow."""


def to_arrow(records: Iterable[WorkerOutput]) -> Iterator[pyarrow.RecordBatch]:
    """Yields records in batches. A BuilderError on the way is raised as `WorkerError`."""
    chunk: list[Record] = []
    size = 0
    try:
        for record in records:
            if isinstance(record, OutputBatch):
                yield from record.batches()
                continue
            encoded = encode(record)
            chunk.append(encoded)
            size += encoded.many
            if size >= ROWS_PER_BATCH:
                yield _batch(chunk)
                chunk, size = [], 0
    except BuilderError as error:
        raise WorkerError(error) from None
    if chunk:
        yield _batch(chunk)


def constant_step(records: Sequence[WorkerRecord], name: str = SOURCE_STEP) -> WorkerStep:
    """Returns the worker's function that outputs given records, whatever its input. name: what engines show."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        deque(batches, maxlen=0)  # an engine ends the worker that leaves something, and with it what it holds
        yield from to_arrow(records)

    step.__name__ = name
    return step


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
    for record in from_arrow(batches):
        yield RowBatch(*record[:5], unpack_all(record.row, record.spans))


def split_by_stage(
    batches: Iterable[pyarrow.RecordBatch], stages: Collection[int] | None, own: list[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """Yields the records that are not for some stages. Those that are (None: all) go into `own`."""
    numbers = None if stages is None else column(tuple(stages), pyarrow.int32())
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
