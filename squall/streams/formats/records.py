"""Records in JSON, lines of JSON and CSV, from bytes to events by a mapping.

A record is a JSON document, a line of JSON, or a row of CSV, and becomes one event, or one for each time if the times
are those of the elements of an array. One that cannot be used is a dead letter, with its line and its field.

Sources: RFC 8259 (JSON); RFC 4180 (CSV).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NoReturn, cast

from squall.errors import SquallError, single_errors
from squall.rdf import Columns, Event, Fact, Quad, Triple
from squall.streams.dead_letters import excerpt
from squall.streams.formats import Bad, Malformed
from squall.streams.mappings.by_column import column_evaluator, merged
from squall.streams.mappings.columns import check_columns
from squall.streams.mappings.evaluation import Facts, Number, RecordEvaluator, UnusableRecord, evaluator_of
from squall.streams.mappings.item_columns import JsonTable, NamedColumns, Table
from squall.streams.mappings.model import OutputMapping, Records
from squall.streams.mappings.outputs import OutputEvaluator
from squall.streams.mappings.python_records import UnusableValue

Row = tuple[int, list[str] | str, str]
"""The index of a row's first line in its block; its values, or why it cannot be read; its text."""

_NO_END = "unexpected end of data"
"""The message of the library for a row that does not end."""


class RecordDecoder:
    """Makes events of the records of one document.

    Attributes:
        columns: The columns of CSV, ``()`` until they are known.
        count: The number of statements so far.
    """

    def __init__(self, records: Records, stream: str, time: int, own: str) -> None:
        """Creates it.

        Args:
            records: How records are read.
            stream: The stream of the events.
            time: The time (integer ms) of records without one.
            own: The suffix of the labels of blank nodes (`squall.streams.formats.suffix`).
        """
        self.columns = records.columns
        self.count = 0
        self._evaluator: RecordEvaluator = (
            OutputEvaluator() if isinstance(records.mapping, OutputMapping) else evaluator_of(records.mapping)
        )
        self._by_column = column_evaluator(records.mapping)
        self._records = records
        self._separator = records.separator
        self._stream = stream
        self._time = time
        self._own = own

    def document(self, data: bytes) -> tuple[Sequence[Event], list[Bad]]:
        """Returns the events of a JSON document, and why it cannot be used."""
        return self._events([(0, data)], _value_of_document)

    def json_values(self, records: Sequence[Any]) -> tuple[Sequence[Event], list[Bad]]:
        """Returns the events of records of Avro and Parquet, and those that cannot be used, by their index."""
        if (columns := self._by_columns(JsonTable(records))) is not None:
            return columns, []
        return self._events(enumerate(records), _usable_record)

    def lines(self, block: bytes) -> tuple[Sequence[Event], list[Bad]]:
        """Returns the events of lines of JSON, and the lines that cannot be used. Blank lines are left out."""
        values = None if self._by_column is None else _values_of_lines(block)
        if values is not None and (columns := self._by_columns(JsonTable(values))) is not None:
            return columns, []
        lines = ((index, line) for index, line in enumerate(block.split(b"\n")) if line and not line.isspace())
        return self._events(lines, _value_of_line)

    def rows(self, block: bytes, is_end: bool) -> tuple[Sequence[Event], list[Bad], int]:
        """Returns the events of rows of CSV, those that cannot be used, and the number of lines that belong to them.

        Args:
            block: Complete lines.
            is_end: Whether no more follow. Otherwise a row that does not end in the block is none of it.
        """
        rows, line_count = self._split(block, is_end)
        if rows and self._by_column is not None and block.isascii() and self._are_complete(rows):
            table = NamedColumns.of_rows([cast(list[str], values) for _, values, _ in rows], self.columns)
            if (columns := self._by_columns(table)) is not None:
                return columns, [], line_count
        events, bad = self._events(rows, self._value_of_row)
        return events, bad, line_count

    def values(self, columns: Mapping[str, Sequence[Any]], count: int) -> tuple[Sequence[Event], list[Bad]]:
        """Returns the events of records whose values are there already, and those that cannot be used.

        Args:
            columns: The values of the fields that the mapping uses (`squall.streams.mappings.python_records`).
            count: The number of records.
        """
        if (events := self._by_columns(NamedColumns(columns, count))) is not None:
            return events, []
        records = ({name: values[index] for name, values in columns.items()} for index in range(count))
        return self._events(((index, record, row_text(record)) for index, record in enumerate(records)), itemgetter(1))

    def _by_columns(self, table: Table) -> Columns | None:
        """Returns the triples of records; None if they have to be mapped one by one."""
        if self._by_column is None:
            return None
        columns = self._by_column.columns(table, self._stream, self._time, self._own)
        if columns is not None:
            self.count = len(columns.subjects)
        return columns

    def read_header(self, block: bytes, is_end: bool) -> bytes | None:
        """Sets the columns by the first row of CSV, and returns its lines; None: it does not end in the block.

        Args:
            block: Complete lines, at the beginning of the document.
            is_end: Whether no more follow.

        Raises:
            Malformed: It is no header, or has not the columns that the mapping uses.
        """
        rows, line_count = self._split(block, is_end, most=1)
        if not rows:
            return None
        first, values, text = rows[0]
        try:
            if isinstance(values, str):
                raise UnusableRecord(values)
            _check_text(text)
        except UnusableRecord as error:
            raise Malformed(f"the header: {error}", first + 1, excerpt(block)) from None
        self.set_columns(tuple(values))
        return b"\n".join(block.split(b"\n")[:line_count])

    def set_columns(self, columns: tuple[str, ...]) -> None:
        """Sets the columns. Raises Malformed if the mapping uses others."""
        self.check_fields(columns, "column")
        self.columns = columns

    def check_fields(self, columns: tuple[str, ...], kind: str) -> None:
        """Checks that the document has the columns, or fields, that the mapping uses. Raises Malformed."""
        try:
            check_columns(self._records, columns, "the document", kind)
        except SquallError as error:
            reasons = (single.message + (f" ({single.hint})" if single.hint else "") for single in single_errors(error))
            raise Malformed("; ".join(reasons), None if kind == "field" else 1) from None

    def _split(self, block: bytes, is_end: bool, most: int | None = None) -> tuple[list[Row], int]:
        """Returns the rows of a block, at most so many, and the number of lines that belong to them."""
        lines = [line + "\n" for line in block.decode("utf-8", "surrogateescape").split("\n")]
        reader = csv.reader(lines, delimiter=self._separator, strict=True)
        rows: list[Row] = []
        while most is None or len(rows) < most:
            first = reader.line_num
            try:
                values: list[str] | str = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                if str(error) == _NO_END and not is_end:
                    return rows, first
                values = "a text in quotes is never closed" if str(error) == _NO_END else f"it is no CSV: {error}"
            if values:
                rows.append((first, values, "".join(lines[first : reader.line_num])))
        return rows, reader.line_num

    def _are_complete(self, rows: Sequence[Row]) -> bool:
        """Returns whether all rows can be read, and have a value for each column."""
        return all(type(values) is list for _, values, _ in rows) and {len(values) for _, values, _ in rows} == {
            len(self.columns)
        }

    def _value_of_row(self, row: Row) -> dict[str, str | None]:
        """Returns the values of a row by column. An empty value is none."""
        _, values, text = row
        if isinstance(values, str):
            raise UnusableRecord(values)
        if len(values) != len(self.columns):
            raise UnusableRecord(f"the row has {len(values)} values, and there are {len(self.columns)} columns")
        if not text.isascii():
            _check_text(text)
        return {column: value or None for column, value in zip(self.columns, values, strict=True)}

    def _events(self, parts: Iterable[Any], value_of: Callable[[Any], Any]) -> tuple[Sequence[Event], list[Bad]]:
        """Returns the events of records, and those that cannot be used.

        Args:
            parts: The parts of a document, each with its index in front.
            value_of: Returns the record of a part. It raises UnusableRecord.
        """
        statements: Facts = []
        results: list[Facts] = []
        bad: list[Bad] = []
        of_record, own = self._evaluator.statements, self._own
        for part in parts:
            try:
                statements = of_record(value_of(part), own)
            except UnusableRecord as error:
                text = part[2] if len(part) > 2 else part[1]
                if not isinstance(text, str | bytes):
                    text = json.dumps(text, ensure_ascii=False, default=repr)
                shown = excerpt(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)
                bad.append((part[0], str(error), shown.rstrip("\r\n")))
            else:
                if statements:
                    results.append(statements)
        self.count = sum(map(len, results))
        return self._grouped(results), bad

    def _grouped(self, results: list[Facts]) -> Sequence[Event]:
        """Returns the events of records: one for each run of equal times and graphs in a record; or as columns, if they
        are triples in the order of time."""
        if (columns := self._columns(results)) is not None:
            return columns
        events: list[Event] = []
        for statements in results:
            for time, run in groupby(statements, key=itemgetter(0)):
                moment = self._time if time is None else time
                for graph, pairs in groupby(run, key=_graph):
                    facts = tuple(_without_graph(pair[1]) for pair in pairs)
                    events.append(Event(moment, facts, self._stream, graph=graph))
        return events

    def _columns(self, results: list[Facts]) -> Columns | None:
        """Returns the triples of records as columns; None if there are none, quads, or others than in order."""
        pairs = list(chain.from_iterable(results))
        if not pairs:
            return None
        stamps, facts = zip(*pairs, strict=True)
        times = [self._time if time is None else time for time in stamps]
        if set(map(type, facts)) != {Triple} or times != sorted(times):
            return None
        subjects, predicates, objects = (list(column) for column in zip(*facts, strict=True))
        return Columns(*merged([*times], [1] * len(times)), subjects, predicates, objects, self._stream)


def _usable_record(part: tuple[int, Any]) -> Any:
    if type(part[1]) is UnusableValue:
        raise UnusableRecord(f"it has {part[1].reason}")
    return part[1]


def row_text(record: Mapping[str, Any]) -> str:
    """Returns a record of values as JSON, for a dead letter."""
    return json.dumps(record, ensure_ascii=False, default=str)


def _without_graph(fact: Fact | Quad) -> Fact:
    return Triple(*fact[:3]) if isinstance(fact, Quad) else fact


def _graph(pair: tuple[int | None, Fact | Quad]) -> str:
    return pair[1].graph if type(pair[1]) is Quad else ""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"`{name}` is no value of JSON")


_DECODER = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant)
_SCAN: Callable[[str, int], tuple[Any, int]] = cast(Any, _DECODER).scan_once
"""Returns the value that begins at a position of a text, and the position of its end."""


def _value_of_line(part: tuple[int, bytes]) -> Any:
    return _json_value(part[1], with_place=False)


def _value_of_document(part: tuple[int, bytes]) -> Any:
    return _json_value(part[1], with_place=True)


_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of a half of a character, which is often followed by the other half."""


def _values_of_lines(block: bytes) -> list[Any] | None:
    """Returns the values of lines of JSON; None unless all lines are plain."""
    try:
        text = block.decode()
        lines = text.split("\n")
        pairs = [_SCAN(line, 0) for line in lines]
    except (ValueError, RecursionError, StopIteration):
        return None
    if [end for _, end in pairs] != list(map(len, lines)) or _HALF_CHARACTER.search(text):
        return None
    return [value for value, _ in pairs]


def _json_value(data: bytes, with_place: bool) -> Any:
    """Returns the value of a JSON text. Raises UnusableRecord."""
    try:
        text = data.decode()
        value = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise UnusableRecord(f"it is no UTF-8: byte {error.start + 1} is {data[error.start]:#04x}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if with_place else f"column {error.colno}"
        more = "; is it `format=ndjson`?" if with_place and error.msg == "Extra data" else ""
        raise UnusableRecord(f"it is no JSON: {error.msg} ({place}){more}") from None
    except RecursionError:
        raise UnusableRecord("it is no JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise UnusableRecord(f"it is no JSON that can be read: {error}") from None
    if "\\u" in text:
        _check_text(json.dumps(value, ensure_ascii=False, default=str))
    return value


def json_value(data: bytes) -> Any:
    """Returns the value of a JSON text, whose numbers with a fraction are `Number`. Raises UnusableRecord."""
    return _json_value(data, with_place=True)


def rows_of(lines: Iterable[bytes], separator: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yields the rows of lines of CSV, each with the number of its first line; or why it cannot be read."""
    texts = (line.decode("utf-8", "replace") + "\n" for line in lines)
    reader = csv.reader(texts, delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield number, f"it is no CSV: {error}"
        else:
            if row:
                yield number, row


def _check_text(text: str) -> None:
    """Raises UnusableRecord if a text is none of Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        if 0xDC80 <= code < 0xDD00:
            raise UnusableRecord(f"it is no UTF-8: there is the byte {code - 0xDC00:#04x}") from None
        raise UnusableRecord(f"it has half of a character: \\u{code:04x}") from None
