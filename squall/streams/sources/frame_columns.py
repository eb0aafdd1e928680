"""Tables of pandas, polars and Arrow, by column and in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from squall.errors import ArgumentError, install_hint

BLOCK_ROWS = 4096
"""The number of rows that are mapped at once."""
Block = Mapping[str, Sequence[Any]]
"""The values of some columns in consecutive rows: Python values, None where there is none."""
_KINDS = "a DataFrame of pandas, polars or Spark, an Arrow table or a record batch reader"

_COLUMNS = ("Series", "ChunkedArray")
"""The classes of columns, which are no tables."""


class Frame(Protocol):
    """A table.

    Attributes:
        names: The names of its columns.
        height: The number of its rows; None: it is read as it comes, and once.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def height(self) -> int | None: ...

    def blocks(self, names: Sequence[str], order: Sequence[int] | None = None) -> Iterator[Block]:
        """Yields some columns in blocks of rows.

        Args:
            names: The names of the columns.
            order: The indexes of the rows in the order in which they are wanted; None: as they are.
        """
        ...

    def column(self, name: str) -> Sequence[Any]:
        """Returns the values of a column. The height of the table is known."""
        ...


@dataclass(frozen=True)
class TableFrame:
    """A table in memory.

    Attributes:
        names: The names of its columns.
        height: The number of its rows.
        slice: Returns the values of a column in consecutive rows, from a first one up to another.
        reordered: Returns the same table with the rows in another order, by their indexes.
    """

    names: tuple[str, ...]
    height: int
    slice: Callable[[str, int, int], Sequence[Any]]
    reordered: Callable[[Sequence[int]], TableFrame]

    def blocks(self, names: Sequence[str], order: Sequence[int] | None = None) -> Iterator[Block]:
        table = self if order is None else self.reordered(order)
        for first in range(0, self.height, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, self.height)
            yield {name: table.slice(name, first, last) for name in names}

    def column(self, name: str) -> Sequence[Any]:
        return self.slice(name, 0, self.height)


class ReaderFrame:
    """The record batches of a reader of Arrow. They are read once."""

    height: int | None = None

    def __init__(self, reader: Any) -> None:
        self.names = tuple(reader.schema.names)
        self._reader = reader
        self._is_read = False

    def blocks(self, names: Sequence[str], order: Sequence[int] | None = None) -> Iterator[Block]:
        assert order is None, "a reader has no other order than its own"
        if self._is_read:
            hint = "read it into a table first: `reader.read_all()`"
            raise ArgumentError("the record batch reader has been read, which is possible once", hint=hint)
        self._is_read = True
        for batch in self._reader:
            for first in range(0, batch.num_rows, BLOCK_ROWS):
                rows = batch.slice(first, BLOCK_ROWS)
                yield {name: arrow_values(rows.column(name)) for name in names}

    def column(self, name: str) -> Sequence[Any]:
        raise NotImplementedError(f"the height of a reader is not known: {name}")


def frame_of(frame: Any) -> Frame:
    """Returns a DataFrame of some library as a table.

    An index of pandas that has a name is a column.

    Raises:
        ArgumentError: It is none.
    """
    library, kind = type(frame).__module__.partition(".")[0], type(frame).__name__
    if library == "pandas" and kind == "DataFrame":
        named_levels = [name for name in frame.index.names if name is not None]
        return _of_pandas(frame.reset_index(level=named_levels) if named_levels else frame)
    if library == "polars" and kind == "DataFrame":
        return _of_polars(frame)
    if library == "pyarrow" and kind in ("Table", "RecordBatch"):
        return _of_arrow(frame)
    if kind == "LazyFrame":
        raise ArgumentError("a LazyFrame has no rows yet", hint="write `squall.from_dataframe(frame.collect(), ...)`")
    if library == "pyarrow" and kind == "RecordBatchReader":
        return ReaderFrame(frame)
    if hasattr(frame, "__arrow_c_stream__") and kind not in _COLUMNS:
        return ReaderFrame(_reader_of(frame, kind))
    raise ArgumentError(f"{_KINDS} is expected, and not a {kind}", hint=_hint_of(frame, kind))


def _reader_of(frame: Any, kind: str) -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ArgumentError(f"a {kind} is read through `pyarrow`", hint=install_hint("squall[frames]")) from error
    return pyarrow.RecordBatchReader.from_stream(frame)


def _hint_of(frame: Any, kind: str) -> str:
    if isinstance(frame, str):
        return f'a file is a source by its address: `squall.query(program, sources="{frame}?map=FILE")`'
    if kind in _COLUMNS:
        return "write `series.to_frame()`"
    return "write `pandas.DataFrame(rows)`"


def _of_pandas(frame: Any) -> TableFrame:
    names = _checked_names(frame.columns.tolist())

    def values(name: str, first: int, last: int) -> list[Any]:
        series = frame[name].iloc[first:last]
        present = series.notna()
        cells: list[Any] = series.tolist()
        if present.all():
            return cells
        return [cell if is_there else None for cell, is_there in zip(cells, present, strict=True)]

    return TableFrame(names, len(frame), values, lambda order: _of_pandas(frame.iloc[list(order)]))


def _of_polars(frame: Any) -> TableFrame:
    def values(name: str, first: int, last: int) -> list[Any]:
        column: list[Any] = frame[name].slice(first, last - first).to_list()
        return column

    return TableFrame(tuple(frame.columns), frame.height, values, lambda order: _of_polars(frame[list(order)]))


def _of_arrow(table: Any) -> TableFrame:
    def values(name: str, first: int, last: int) -> list[Any]:
        return arrow_values(table.column(name).slice(first, last - first))

    names = _checked_names(table.schema.names)
    return TableFrame(names, table.num_rows, values, lambda order: _of_arrow(table.take(list(order))))


def arrow_values(array: Any) -> list[Any]:
    """Returns the Python values of an array of Arrow; those of a map are dictionaries."""
    try:
        values: list[Any] = array.to_pylist(**({"maps_as_pydicts": "strict"} if "map<" in str(array.type) else {}))
    except ValueError as error:  # nanoseconds, without pandas
        hint = "install pandas, whose timestamps have nanoseconds, or cast the column to microseconds"
        raise ArgumentError(f"a column of type {array.type} cannot be read: {error}", hint=hint) from error
    return values


def _checked_names(names: Sequence[Any]) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str):
            hint = "write `frame.rename(columns=str)`, or name the columns"
            raise ArgumentError(f"the name `{name!r}` of a column is no text", hint=hint)
        if names.count(name) > 1:
            raise ArgumentError(f"there are two columns `{name}`", hint="each column has its own name")
    return tuple(names)
