"""The shape of records: which fields a sample of them has, of which types, and with which values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

from squall.errors import SourceError, UsageError
from squall.streams.address import Address
from squall.streams.formats import Malformed, infer_format
from squall.streams.formats.binary_records import batches_of_records, field_names
from squall.streams.formats.compression import errors
from squall.streams.formats.reading import ReadProgress, seekable
from squall.streams.formats.records import json_value, rows_of
from squall.streams.mappings import options
from squall.streams.mappings.evaluation import Number, TypedText, UnusableRecord
from squall.streams.mappings.paths import Steps
from squall.streams.mappings.python_records import UnusableValue
from squall.streams.sources.byte_streams import open_file

_MAX_BYTES = 1 << 26
"""The most bytes of a document that is a sample."""


@dataclass
class Shape:
    """What the values at one path of a sample are.

    Attributes:
        count: The number of values, null and empty ones of CSV not counted.
        kinds: The number of values of each kind: ``object``, ``array``, ``text``, ``integer``, ``number``, ``truth``.
        members: The shapes of the fields of objects, in the order in which they were met.
        element: The shape of the elements of arrays; None: there are none.
        values: The other values.
    """

    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    members: dict[str, Shape] = field(default_factory=dict)
    element: Shape | None = None
    values: list[Any] = field(default_factory=list)

    def add(self, value: Any) -> None:
        """Adds a value of a sample."""
        if value is None:
            return
        self.count += 1
        self.kinds[_KINDS[type(value)]] += 1
        if isinstance(value, dict):
            for key, member in value.items():
                self.members.setdefault(key, Shape()).add(member)
        elif isinstance(value, list):
            self.element = self.element or Shape()
            for item in value:
                self.element.add(item)
        else:
            self.values.append(value)

    @property
    def kind(self) -> str:
        """The one kind of its values: ``object``, ``array`` or ``scalar``; ``mixed`` if there are several; ``""`` if
        there are no values."""
        kinds = {kind if kind in ("object", "array") else "scalar" for kind in self.kinds}
        return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else ""

    def at(self, steps: Steps) -> Shape | None:
        """Returns the shape at a path; None: the sample has no value there."""
        shape: Shape | None = self
        for step in steps:
            if shape is None:
                return None
            shape = shape.members.get(step) if isinstance(step, str) else shape.element
        return shape


_KINDS = {
    dict: "object", list: "array", str: "text", TypedText: "text", bool: "truth", int: "integer", Number: "number",
}  # fmt: skip


@dataclass
class Sample:
    """A sample of records.

    Attributes:
        shape: Its shape.
        records: The records.
        is_csv: Whether they are rows.
        malformed: Why others cannot be read.
    """

    shape: Shape
    records: list[Any]
    is_csv: bool
    malformed: list[str]


def sample_of(address: Address, count: int) -> Sample:
    """Returns a sample of the first records of a file, or of standard input.

    Args:
        address: The address of the file. The options ``format``, ``header`` and ``separator`` count.
        count: The number of records. A document of JSON that is an array counts by its elements.

    Raises:
        SourceError: It cannot be read, or has no record.
        UsageError: It is no file of records.
    """
    if address.scheme not in ("file", "stdin") or Path(address.path).is_dir():
        raise UsageError(f"`{address.text}` is no file of records", hint="save some records in a file first")
    format, compression = infer_format(address.path, address.get("format"), mapped=True)
    if not format.records:
        raise UsageError(
            f"`{address.text}` is RDF, and needs no mapping", hint="formats: `json`, `ndjson`, `csv`, `avro`, `parquet`"
        )
    sample = Sample(Shape(), [], format.name == "csv", [])
    try:
        with open_file(address.path, ReadProgress(), compression, None) as file:
            for record in islice(_records(cast(IO[bytes], file), format.name, address, sample.malformed), count):
                sample.records.append(record)
                sample.shape.add(record)
    except errors() as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"`{address.path}` cannot be read: {reason}") from error
    if not sample.records:
        reason = sample.malformed[0] if sample.malformed else "it is empty"
        raise SourceError(f"`{address.path}` has no record that can be read: {reason}")
    return sample


def _records(file: IO[bytes], format: str, address: Address, malformed: list[str]) -> Iterator[Any]:
    if format == "csv":
        yield from _rows(file, address, malformed)
    elif format in ("avro", "parquet"):
        try:
            with seekable(file.read) as copy:
                names = field_names(format, copy)
                copy.seek(0)
                for number, record in enumerate(chain.from_iterable(batches_of_records(format, copy, names, 0)), 1):
                    if isinstance(record, UnusableValue):
                        malformed.append(f"record {number}: it has {record.reason}")
                    else:
                        yield record
        except Malformed as error:
            malformed.append(error.reason)
    elif format == "ndjson":
        for number, line in enumerate(_lines(file), 1):
            if line.strip():
                try:
                    yield json_value(line)
                except UnusableRecord as error:
                    malformed.append(f"line {number}: {error}")
    else:
        data = _all(file)
        try:
            yield json_value(data)
        except UnusableRecord as error:
            malformed.append(str(error))


def _rows(file: IO[bytes], address: Address, malformed: list[str]) -> Iterator[dict[str, str | None]]:
    header, separator = options.csv_options(address)
    for number, row in rows_of(_lines(file), separator):
        if isinstance(row, str):
            malformed.append(f"line {number}: {row}")
        elif not header:
            header = tuple(row)
        elif len(row) != len(header):
            malformed.append(f"line {number}: the row has {len(row)} values, and there are {len(header)} columns")
        else:
            yield {column: value or None for column, value in zip(header, row, strict=True)}


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    tail, is_begin = b"", True
    while chunk := file.read(1 << 16):
        lines = (tail + chunk).split(b"\n")
        tail = lines.pop()
        for line in lines:
            yield line.removeprefix(b"\xef\xbb\xbf") if is_begin else line
            is_begin = False
    if tail:
        yield tail.removeprefix(b"\xef\xbb\xbf") if is_begin else tail


def _all(file: IO[bytes]) -> bytes:
    chunks: list[bytes] = []
    while (chunk := file.read(1 << 16)) and sum(map(len, chunks)) < _MAX_BYTES:
        chunks.append(chunk)
    return b"".join(chunks).removeprefix(b"\xef\xbb\xbf")
