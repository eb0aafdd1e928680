"""Messages: what a distributed builder stores and moves, as flat records over Arrow.

A *message* is an entry with an address: the same form for rows on their way to a node, for what a node keeps between
batches, for answers on their way out, and for statements that could not be used. `squall.builders.packing` says how a
row is one string.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow
from pyarrow import compute

from squall.builders.packing import Orders, pack_all, unpack_all
from squall.builders.rows.entries import Entry
from squall.errors import BuilderError

ROW, STATE, LOST, TIME, COUNT, INSTANT = "row", "state", "lost", "time", "count", "instant"
"""The kinds of message: a row for a node; what a node keeps; a statement that could not be used; the latest time; how
many statements (`start`) of a source (`node`) were read; a time at which a stream, in a graph, brought something."""
Step = Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]
"""A worker's function, over Arrow."""
SCHEMA = "kind string, level int, bucket int, node int, port int, row string, start long, `end` long, weight int"


class Message(NamedTuple):
    """A flat record of `SCHEMA`."""

    kind: str
    level: int
    bucket: int
    node: int
    port: int
    row: str
    start: int
    end: int
    weight: int


class Parcel(NamedTuple):
    """Messages that are alike: entries for one input of a node, or of one slot of what it keeps; a bucket for each."""

    kind: str
    level: int
    node: int
    port: int
    buckets: list[int]
    entries: Sequence[Entry]


ARROW = pyarrow.schema(
    [
        ("kind", pyarrow.string()), ("level", pyarrow.int32()), ("bucket", pyarrow.int32()), ("node", pyarrow.int32()),
        ("port", pyarrow.int32()), ("row", pyarrow.string()), ("start", pyarrow.int64()), ("end", pyarrow.int64()),
        ("weight", pyarrow.int32()),
    ]
)  # fmt: skip
_CHUNK = 20_000


def to_arrow(messages: Iterable[Message | Parcel]) -> Iterator[pyarrow.RecordBatch]:
    """Messages in batches. A BuilderError on the way is raised as `Failed`."""
    chunk: list[Message] = []
    try:
        for message in messages:
            if isinstance(message, Parcel):
                yield from _parcel_batches(message)
                continue
            chunk.append(message)
            if len(chunk) == _CHUNK:
                yield _batch(chunk)
                chunk = []
    except BuilderError as error:
        raise Failed(error) from None
    if chunk:
        yield _batch(chunk)


class Failed(Exception):
    """A run that failed in a worker for a reason the user can mend. All that the driver gets of it is its text."""

    def __init__(self, error: BuilderError) -> None:
        told = json.dumps([error.message, error.hint])
        super().__init__(f"<squall {b64encode(told.encode()).decode()}>")

    @staticmethod
    def found(error: BaseException) -> BuilderError | None:
        """The error of a worker that an engine's error tells of; None if there is none."""
        told = re.search("<squall ([A-Za-z0-9+/=]+)>", str(error))
        if told is None:
            return None
        message, hint = json.loads(b64decode(told[1]))
        return BuilderError(message, hint=hint)


def _batch(chunk: Sequence[Message]) -> pyarrow.RecordBatch:
    columns = [
        pyarrow.array(values, type=field.type) for values, field in zip(zip(*chunk, strict=True), ARROW, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=ARROW)


def _parcel_batches(parcel: Parcel) -> Iterator[pyarrow.RecordBatch]:
    for first in range(0, len(parcel.entries), _CHUNK):
        entries = parcel.entries[first : first + _CHUNK]
        same = (parcel.kind, parcel.level, parcel.node, parcel.port)
        kind, level, node, port = (
            pyarrow.repeat(pyarrow.scalar(value, field.type), len(entries))
            for value, field in zip(same, map(ARROW.field, ("kind", "level", "node", "port")), strict=True)
        )
        bucket = pyarrow.array(parcel.buckets[first : first + _CHUNK], pyarrow.int32())
        row = pyarrow.array(pack_all([entry[:-3] for entry in entries]))
        start, end = (pyarrow.array([entry[place] for entry in entries], pyarrow.int64()) for place in (-3, -2))
        weight = pyarrow.array([entry[-1] for entry in entries], pyarrow.int32())
        columns = [kind, level, bucket, node, port, row, start, end, weight]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=ARROW)


def parcels(batches: Iterable[pyarrow.RecordBatch], orders: Orders) -> Iterator[Parcel]:
    """The messages of batches that are entries, those that are alike together."""
    for batch in batches:
        places = pyarrow.Table.from_batches([batch]).group_by(["kind", "level", "node", "port"]).aggregate([])
        for kind, level, node, port in zip(*(column.to_pylist() for column in places.columns), strict=True):
            part = batch if len(places) == 1 else batch.filter(_is_at(batch, kind, node, port))
            buckets, texts, *spans = (part[name].to_pylist() for name in ("bucket", "row", "start", "end", "weight"))
            yield Parcel(kind, level, node, port, buckets, list(unpack_all(texts, spans, orders)))


def _is_at(batch: pyarrow.RecordBatch, kind: str, node: int, port: int) -> pyarrow.BooleanArray:
    here = compute.and_(compute.equal(batch["node"], node), compute.equal(batch["port"], port))
    return compute.and_(here, compute.equal(batch["kind"], kind))


def apart(
    batches: Iterable[pyarrow.RecordBatch], levels: Collection[int] | None, own: list[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """The messages that are not for some levels; those that are (None: all) go into `own`."""
    numbers = None if levels is None else pyarrow.array(levels, pyarrow.int32())
    for batch in batches:
        mine = compute.is_in(batch["level"], numbers) if numbers is not None else None
        if mine is None or mine.true_count == len(batch):
            own.append(batch)
            continue
        if mine.true_count:
            own.append(batch.filter(mine))
        yield batch.filter(compute.invert(mine))


def from_arrow(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Message]:
    """The messages of batches."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ARROW.names)
        yield from map(Message._make, zip(*columns, strict=True))
