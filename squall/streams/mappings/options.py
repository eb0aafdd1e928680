"""The options of addresses that say how records are read: the mapping, its time, and the columns of CSV."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import IO, cast

from squall.errors import SourceError, UsageError
from squall.streams.address import Address, parse
from squall.streams.formats import BY_NAME, Malformed
from squall.streams.formats.compression import errors
from squall.streams.formats.reading import ReadProgress, seekable
from squall.streams.mappings.columns import check_columns
from squall.streams.mappings.model import OUTPUTS, OUTPUTS_NAME, Mapping, Records, path_text, with_time
from squall.streams.mappings.paths import Steps, steps_of
from squall.streams.sources.byte_streams import open_file

OPTIONS = ("map", "unit", "header", "separator", "schema")
"""The options of addresses that are for records; ``time=FIELD`` is another one."""
RML_ENDINGS = (".ttl", ".turtle", ".rml")
"""The endings of mappings in RML. All others are in the short form."""
_UNITS = {"ms": 1, "s": 1000}


def is_mapped(address: Address) -> bool:
    """Returns whether an address has a mapping."""
    return bool(address.get("map"))


def fixed_time(address: Address, default: int) -> int:
    """Returns the time (integer ms) of statements without one, by the option ``time``.

    With a mapping, the option may be a field of the records.
    """
    return default if _time_field(address) else address.integer("time", default)


def _time_field(address: Address) -> str:
    time = address.get("time")
    return time if is_mapped(address) and not time.removeprefix("-").isdecimal() else ""


def records_of(address: Address, formats: Collection[str]) -> Records | None:
    """Returns how the records of a source are read; None: it has no mapping.

    The mapping is read once, so that all processes of a run have the same.

    Args:
        address: The address of the source.
        formats: The names of the formats of its documents.

    Raises:
        UsageError: The mapping cannot be read, a document is no record, or an option does not belong to it.
        LexerError: The mapping is malformed.
        Errors: It has several errors.
    """
    if not (name := address.get("map")):
        for option in ("header", "separator", "unit", "schema"):
            if address.get(option):
                raise UsageError(f"`{option}` in `{address.text}` is for records with a mapping", hint="add `map=FILE`")
        return None
    kinds = {format for format in formats if BY_NAME[format].records}
    if len(kinds) < len(set(formats)):
        hint = "leave `map` out, or name the format of the records: `format=json`, `ndjson`, `csv`, `avro` or `parquet`"
        raise UsageError(f"`map={name}` in `{address.text}` is for records, and not for RDF", hint=hint)
    is_csv = kinds == {"csv"}
    if "csv" in kinds and not is_csv:
        hint = "divide the folder"
        raise UsageError(
            f"`{address.text}` has CSV and records of other formats, which have no mapping in common", hint=hint
        )
    if name == OUTPUTS_NAME and kinds != {"ndjson"}:
        message = f"`map={name}` in `{address.text}` is for lines that squall has written as `ndjson`"
        raise UsageError(message, hint=f"read these, or name a file of this name by `map=./{name}`")
    mapping = _timed(load(name, is_csv if kinds else None), address, is_csv)
    if is_csv:
        _check_is_flat(mapping, name)
    columns, separator = _header(address, is_csv or not kinds), _separator(address, is_csv or not kinds)
    return Records(mapping, columns, separator, _schema(address, mapping, kinds))


def _schema(address: Address, mapping: Mapping, kinds: Collection[str]) -> str:
    """Returns the schema of single records of Avro that an address names; ``""`` if it names none."""
    if not (name := address.get("schema")):
        return ""
    if kinds != {"avro"}:
        raise UsageError(
            f"`schema` in `{address.text}` is for records of Avro", hint="add `format=avro`, or leave it out"
        )
    from squall.streams.formats import binary_records

    try:
        text = Path(name).read_text("utf-8")
        schema = binary_records.parse_schema(text)
    except OSError as error:
        raise UsageError(f"the schema `{name}` cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"`{name}` is no schema of Avro: {error}") from error
    if not (names := binary_records.names_of_schema(schema)):
        raise UsageError(f"`{name}` is no schema of records", hint='its `type` has to be `"record"`')
    check_columns(Records(mapping), names, f"`{name}`", "field")
    return text


def _check_is_flat(mapping: Mapping, name: str) -> None:
    """Raises UsageError if a mapping with some name is for records with other values than texts in columns."""
    if (nested := mapping.nested()) is not None:
        hint = 'write a pattern of columns: `{ "column": ?value }`'
        raise UsageError(f"`{name}` has the path `{path_text(nested)}`, and rows of CSV have columns alone", hint=hint)
    for rule in mapping.rules:
        for condition in rule.conditions:
            if not condition.json.startswith('"'):
                hint = f'values of CSV are texts: write `"{condition.json}"`'
                message = f"`{name}` compares a column with `{condition.json}`, which no text equals"
                raise UsageError(message, hint=hint)


def load(name: str, is_csv: bool | None = None) -> Mapping:
    """Returns the mapping of a file: RML if its ending is that of Turtle, or else the short form.

    Args:
        name: The path of the file.
        is_csv: Whether it is for rows of CSV, and not for JSON; None: for either.

    Raises:
        UsageError: The file cannot be read, or the mapping is for another format.
        LexerError: The mapping is malformed.
        Errors: It has several errors.
    """
    if name == OUTPUTS_NAME:
        return OUTPUTS
    place = parse(name, "stdin")
    if place.scheme != "file":
        raise UsageError(f"the mapping `{name}` is no file", hint="write `map=FILE`")
    try:
        text = Path(place.path).read_bytes().decode()
    except OSError as error:
        raise UsageError(f"the mapping `{name}` cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the mapping `{name}` cannot be read: it is not UTF-8") from error
    if not place.path.lower().endswith(RML_ENDINGS):
        from squall.streams.mappings import short_form

        return short_form.read(text, name)
    from squall.streams.mappings import rml

    document = rml.read(text, name, bool(is_csv))
    if None not in (is_csv, document.is_csv) and document.is_csv != is_csv:
        kinds = ("CSV", "JSON") if document.is_csv else ("JSON", "CSV")
        raise UsageError(f"the mapping `{name}` is for {kinds[0]} (`rml:referenceFormulation`), and not for {kinds[1]}")
    return document.mapping


def _timed(mapping: Mapping, address: Address, is_csv: bool) -> Mapping:
    """Returns a mapping with the time that an address names."""
    unit = address.get("unit", "ms")
    field = _time_field(address)
    if unit not in _UNITS:
        raise UsageError(f"`unit={unit}` in `{address.text}` is no unit of time", hint="units: `ms` and `s`")
    if address.get("time") and mapping.is_timed:
        hint = "leave `time` out, or the time of the mapping (`AT`)"
        raise UsageError(f"`{address.text}` has the time twice: in `time`, and in its mapping", hint=hint)
    if not field:
        if address.get("unit"):
            raise UsageError(f"`unit` in `{address.text}` is for a field with the time", hint="add `time=FIELD`")
        return mapping
    steps: Steps = (field,)
    if not is_csv:
        try:
            steps = steps_of(field)
        except ValueError as error:
            raise UsageError(f"`time={field}` in `{address.text}`: {error}") from None
    return with_time(mapping, steps, _UNITS[unit])


def csv_options(address: Address) -> tuple[tuple[str, ...], str]:
    """Returns the columns that an address names, and the separator of its CSV. Raises UsageError."""
    return _header(address, is_csv=True), _separator(address, is_csv=True)


def _header(address: Address, is_csv: bool) -> tuple[str, ...]:
    """Returns the columns that an address names."""
    if not (text := address.get("header")):
        return ()
    if not is_csv:
        raise UsageError(f"`header` in `{address.text}` is for CSV", hint="leave it out")
    (columns,) = csv.reader([text])
    if repeated := [column for column in columns if columns.count(column) > 1]:
        raise UsageError(f"`header` in `{address.text}` has `{repeated[0]}` twice", hint="each column has its own name")
    return tuple(columns)


def _separator(address: Address, is_csv: bool) -> str:
    separator = address.get("separator", ",")
    if address.get("separator") and not is_csv:
        raise UsageError(f"`separator` in `{address.text}` is for CSV", hint="leave it out")
    separator = "\t" if separator == "tab" else separator
    if len(separator) != 1 or separator in '"\r\n' or not separator.isascii():
        hint = "write `separator=;`, or `separator=tab`"
        raise UsageError(f"`separator={separator}` in `{address.text}` is not one character", hint=hint)
    return separator


def check_file(records: Records | None, path: str, format: str, compression: str) -> None:
    """Checks the columns of a file before it is read (see `check_columns`). JSON has none."""
    if records is not None and format in ("avro", "parquet") and not records.schema:
        if names := _field_names(path, format, compression):
            check_columns(records, names, f"`{path}`", "column" if format == "parquet" else "field")
        return
    if records is None or format != "csv":
        return
    columns = records.columns or header_of(path, compression, records.separator)
    if columns:
        check_columns(records, columns, f"`{path}`")


def _field_names(path: str, format: str, compression: str) -> tuple[str, ...]:
    """Returns the fields of a file of Avro or Parquet; ``()`` if it has none that can be read."""
    from squall.streams.formats import binary_records

    try:
        with open_file(path, ReadProgress(), compression, None) as file, seekable(cast(IO[bytes], file).read) as copy:
            return binary_records.field_names(format, copy)
    except Malformed:
        return ()
    except errors() as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"`{path}` cannot be read: {reason}") from error


def header_of(path: str, compression: str, separator: str) -> tuple[str, ...]:
    """Returns the columns in the first row of a file; ``()`` if it is empty, or none that can be read."""
    data = b""
    try:
        with open_file(path, ReadProgress(), compression, None) as file:
            while chunk := file.read(_HEADER_BYTES):
                data += chunk
                if len(data) >= _HEADER_BYTES:
                    break
    except errors() as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"`{path}` cannot be read: {reason}") from error
    if not data.strip():
        return ()
    rows = csv.reader(data.decode("utf-8-sig", "replace").splitlines(keepends=True), delimiter=separator)
    try:
        return tuple(next(rows, ()))
    except csv.Error:
        return ()


_HEADER_BYTES = 1 << 16
