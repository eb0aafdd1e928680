"""Records of Avro and Parquet as values of JSON, to which mappings are applied.

An object of Avro or Parquet (record, struct, map) is an object, a list an array. Other values are those of
`squall.streams.mappings.python_records`.

Sources: Apache Avro 1.11 Specification (object container files, binary encoding); Apache Parquet format 2.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from typing import IO, Any

from squall.streams.formats import Malformed
from squall.streams.mappings.python_records import usable_value

_RECORDS_PER_BATCH = 4096
_CONFLUENT_HEADER_BYTES = 5
"""A zero byte and the number of a schema precede a message in the wire format of Confluent."""


def field_names(format: str, file: IO[bytes]) -> tuple[str, ...]:
    """Returns the names of the fields, or columns, of a file. Raises Malformed if it cannot be read."""
    with _errors(format):
        if format == "parquet":
            from pyarrow import parquet

            return tuple(parquet.ParquetFile(file).schema_arrow.names)
        import fastavro

        return names_of_schema(fastavro.reader(file).writer_schema)


def names_of_schema(schema: Any) -> tuple[str, ...]:
    """Returns the names of the fields of a schema of Avro; ``()`` if it is not that of records."""
    is_record = isinstance(schema, Mapping) and schema.get("type") in ("record", "error")
    return tuple(field["name"] for field in schema["fields"]) if is_record else ()


def batches_of_records(format: str, file: IO[bytes], fields: Collection[str], skipped: int) -> Iterator[list[Any]]:
    """Yields the records of a file, without the first ones.

    Args:
        format: ``avro`` or ``parquet``.
        file: The file, in which one can seek.
        fields: The fields that are used. Others may be left out.
        skipped: The number of records that are left out.

    A record that no mapping can read is an `UnusableValue`.

    Raises:
        Malformed: The file cannot be read any further.
    """
    with _errors(format):
        rows = _rows_of_parquet(file, fields) if format == "parquet" else _rows_of_avro(file)
        for _ in islice(rows, skipped):
            pass
        while batch := [usable_value(row) for row in islice(rows, _RECORDS_PER_BATCH)]:
            yield batch


def _rows_of_parquet(file: IO[bytes], fields: Collection[str]) -> Iterator[Any]:
    from pyarrow import parquet

    table = parquet.ParquetFile(file)
    columns = [name for name in table.schema_arrow.names if name in fields]
    for batch in table.iter_batches(_RECORDS_PER_BATCH, columns=columns):
        yield from batch.to_pylist(maps_as_pydicts="strict")


def _rows_of_avro(file: IO[bytes]) -> Iterator[Any]:
    import fastavro

    return iter(fastavro.reader(file))


def parse_schema(text: str) -> Any:
    """Returns a schema of Avro. Raises ValueError."""
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        return fastavro.parse_schema(json.loads(text))
    except (SchemaParseException, UnknownType, KeyError, TypeError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def single_record(data: bytes, schema: Any) -> Any:
    """Returns the record of a message without a header. Raises Malformed."""
    import fastavro

    file = BytesIO(data)
    try:
        with _errors("avro"):
            record = fastavro.schemaless_reader(file, schema, None)
        if file.tell() < len(data):
            raise Malformed(f"it is no record of the schema: {len(data) - file.tell()} bytes are left", None)
    except Malformed as error:
        if data[:1] == b"\0" and len(data) > _CONFLUENT_HEADER_BYTES:
            hint = "; the wire format of Confluent, with the number of a schema in front, is not supported"
            raise Malformed(error.reason + hint, None) from None
        raise
    return usable_value(record)


@contextmanager
def _errors(format: str) -> Iterator[None]:
    """Raises Malformed for an error of the libraries."""
    # What fastavro raises for bytes that are no Avro depends on where it stumbles over them.
    try:
        yield
    except (OSError, ValueError, ArithmeticError, LookupError, TypeError, EOFError, MemoryError) as error:
        name = {"avro": "Avro", "parquet": "Parquet"}[format]
        detail = " ".join(str(error).split()) or type(error).__name__
        raise Malformed(f"it is no {name} that can be read: {detail}", None) from error
