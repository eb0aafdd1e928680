"""Parquet files of outputs, with a typed column for each variable.

A file of Parquet cannot be appended to, and the types of its columns are known when all values are. So outputs are kept
as lines in a file beside it, which a checkpoint can truncate, and become the table when the sink is closed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from squall.contracts import Output
from squall.errors import SinkError
from squall.functions.values import BOOLEAN
from squall.rdf import ALWAYS, Boolean, Evaluated, Term, literal
from squall.streams.formats.evaluations import (
    NO_DECLARATIONS,
    Declarations,
    answer_of,
    cells,
    check_names,
    common_columns,
)
from squall.streams.formats.event_json import as_json, output_of
from squall.streams.formats.typed_columns import OTHER_COLUMNS, TypedColumn
from squall.streams.sinks.patterns import PatternSink

if TYPE_CHECKING:
    import pyarrow

_ROWS_PER_GROUP = 1 << 16
"""The number of rows of a row group, which are in memory at once."""


class ParquetSink:
    """A file of Parquet (`squall.streams.sinks.Sink`, `squall.contracts.CheckpointedSink`).

    The file appears when the sink is closed. Until then the outputs are in ``.NAME.rows`` beside it. Of a run with a
    checkpoint that file stays, since a run that resumes continues it.

    Attributes:
        types: The types that are given to columns, by their names (`squall.streams.formats.typed_columns`).
    """

    format = "parquet"

    def __init__(self, uri: str, path: Path, types: Mapping[str, str] | None = None) -> None:
        self.uri = uri
        self.types = types
        self._path = path
        self._rows_path = path.with_name(f".{path.name}.rows")
        self._rows: IO[bytes] | None = None
        self._table = _Table(uri, NO_DECLARATIONS, None)
        self._declarations = NO_DECLARATIONS
        self._is_durable = False

    def declare(self, declarations: Declarations) -> None:
        self._declarations = declarations

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        self._is_durable = resume
        with self._errors():
            self._rows = self._rows_path.open("a+b" if resume else "w+b")
        self._begin_table()

    def write(self, output: Output) -> None:
        """Writes an output. Raises SinkError if it has other columns, or a value of another type than is given."""
        self._table.observe(output)
        with self._errors():
            self._file.write(json.dumps(as_json(output), ensure_ascii=False).encode() + b"\n")

    def flush(self) -> None:
        with self._errors():
            self._file.flush()

    def snapshot(self, last: bool = False) -> Any:
        """Returns the length of the rows, which are on disk then."""
        self._is_durable = True
        with self._errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._file.seek(0, os.SEEK_END)

    def restore(self, state: Any) -> None:
        """Truncates the rows to the length of a snapshot. Raises SinkError if they are fewer."""
        with self._errors():
            if (size := self._file.seek(0, os.SEEK_END)) < state:
                what = f"{state} bytes of `{self._rows_path}` had been written, and it has {size}"
                hint = "a run that is to write another file starts from a new checkpoint"
                raise SinkError(f"the rows of `{self.uri}` are not what they were: {what}", hint=hint)
            self._file.truncate(state)
        self._begin_table()

    def close(self) -> None:
        """Writes the table, and replaces the file by it."""
        if self._rows is None:
            return
        try:
            with self._errors():
                self._file.flush()
                _replace(self._path, self._table, self._outputs)
        finally:
            rows, self._rows = self._rows, None
            rows.close()
        if not self._is_durable:
            self._rows_path.unlink(missing_ok=True)

    @property
    def _file(self) -> IO[bytes]:
        if self._rows is None:
            raise ValueError(f"the sink {self.uri} is not open")
        return self._rows

    def _begin_table(self) -> None:
        """Takes the rows that are there into account."""
        self._table = _Table(self.uri, self._declarations, self.types)
        with self._errors():
            for output in self._outputs():
                self._table.observe(output)
            self._file.seek(0, os.SEEK_END)

    def _outputs(self) -> Iterator[Output]:
        """Yields the outputs in the rows. A line that a killed run has not completed is none."""
        self._file.seek(0)
        return (output_of(json.loads(line)) for line in self._file if line.endswith(b"\n"))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raises SinkError for an error of the system."""
        try:
            yield
        except OSError as error:
            raise SinkError(f"`{self.uri}` cannot be written: {error.strerror or error}") from error


class ParquetPatternSink(PatternSink):
    """A file of Parquet for each evaluation, or for each query and evaluation.

    Attributes:
        types: The types that are given to columns. Without, those of one file may differ from those of another.
    """

    def __init__(self, uri: str, path: str, types: Mapping[str, str] | None = None) -> None:
        super().__init__(uri, path, "parquet", self._write_table)
        self.types = types

    def _write_table(self, uri: str, path: Path, outputs: Sequence[Output], declarations: Declarations) -> None:
        if self.is_by_query:
            declarations = Declarations(is_one_query=declarations.is_one_query)
        table = _Table(uri, declarations, self.types)
        for output in outputs:
            table.observe(output)
        table.write(path, lambda: outputs)


def _replace(path: Path, table: _Table, outputs: Callable[[], Iterable[Output]]) -> None:
    """Writes a table to a file, which is replaced when it is complete."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        table.write(temporary, outputs)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class _Table:
    """The columns of a file, of which the types are known when all outputs have been observed."""

    def __init__(self, uri: str, declarations: Declarations, types: Mapping[str, str] | None) -> None:
        self._uri = uri
        self._types = types or {}
        self._is_one_query = declarations.is_one_query
        self._names_without_rows = declarations.columns
        """The columns of a table without rows, as far as they are known."""
        self._has_change = False
        self._columns: list[TypedColumn] | None = None

    def observe(self, output: Output) -> None:
        """Takes an output into account. Raises SinkError if the table cannot hold it."""
        answer = answer_of(output)
        if isinstance(answer, Evaluated):
            self._names_without_rows = self._names_without_rows or answer.names
            return
        names, terms = _row(output)
        if self._columns is None:
            self._set_columns(names, bool(output.change))
        columns = self._columns or []
        if tuple(column.name for column in columns) != names or bool(output.change) != self._has_change:
            own = ", ".join(column.name for column in columns)
            hint = "the format `ndjson-values` can"
            raise SinkError(f"`{self._uri}` cannot hold outputs with other columns than {own}", hint=hint)
        for column, term in zip(columns, terms, strict=True):
            column.observe(term)

    def write(self, path: Path, outputs: Callable[[], Iterable[Output]]) -> None:
        """Writes the outputs that have been observed to a file."""
        import pyarrow
        from pyarrow import parquet

        if self._columns is None:
            has_change = self._names_without_rows[:1] == ("change",)
            self._set_columns(self._names_without_rows[has_change:], has_change)
        rows = (output for output in outputs() if not isinstance(answer_of(output), Evaluated))
        first = self._batch([*islice(rows, _ROWS_PER_GROUP)])
        with path.open("wb") as file:
            with parquet.ParquetWriter(file, first.schema) as writer:
                writer.write_table(pyarrow.Table.from_batches([first]))
                while group := [*islice(rows, _ROWS_PER_GROUP)]:
                    writer.write_table(pyarrow.Table.from_batches([self._batch(group)]))
            file.flush()
            os.fsync(file.fileno())

    def _batch(self, outputs: Sequence[Output]) -> pyarrow.RecordBatch:
        import pyarrow

        times = [None if output.time == ALWAYS else output.time for output in outputs]
        arrays = {
            "time": pyarrow.array(times, pyarrow.timestamp("ms", "UTC")),
        }
        if not self._is_one_query:
            arrays["rule"] = pyarrow.array([output.rule for output in outputs], pyarrow.string())
        if self._has_change:
            arrays["change"] = pyarrow.array([output.change for output in outputs], pyarrow.string())
        rows = [_row(output)[1] for output in outputs]
        for number, column in enumerate(self._columns or ()):
            arrays[column.name] = column.array(row[number] for row in rows)
        return pyarrow.RecordBatch.from_pydict(arrays)

    def _set_columns(self, names: Sequence[str], has_change: bool) -> None:
        check_names(tuple(names), common_columns(self._is_one_query, has_change))
        self._has_change = has_change
        default_type = self._types.get(OTHER_COLUMNS)
        self._columns = [TypedColumn(name, self._types.get(name, default_type)) for name in names]


def _row(output: Output) -> tuple[tuple[str, ...], Sequence[Term | None]]:
    """Returns the columns of an output that is an answer, and its terms."""
    answer = answer_of(output)
    assert not isinstance(answer, Evaluated)
    if isinstance(answer, Boolean):
        return ("boolean",), (literal(str(answer), BOOLEAN),)
    return cells(answer)
