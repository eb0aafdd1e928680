"""The columns of records, and of the elements of their arrays, to which a mapping is applied by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple, Protocol

from squall.streams.mappings.evaluation import TypedText, UnusableRecord, fulfils
from squall.streams.mappings.model import Condition, Level, Path, Reference

Column = Sequence[Any]


class Step(NamedTuple):
    """A loop: the elements of an array in each item, or the records (`level` is None), that fulfil conditions."""

    level: Level | None
    conditions: tuple[Condition, ...]


class Table(Protocol):
    """Items by column.

    Attributes:
        count: The number of items.
    """

    count: int

    def column(self, path: Path) -> Column:
        """Returns the values at a path in all items, None where there is none. Raises UnusableRecord."""

    def select(self, rows: Sequence[int]) -> Table:
        """Returns some of the items."""


class JsonTable:
    """Values of JSON by column."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.count = len(values)
        self._values = values

    def column(self, path: Path) -> Column:
        column: Column = self._values
        for step in path:
            kinds = set(map(type, column))
            if kinds <= {list, type(None)} and isinstance(step, int):
                column = [item[step] if item is not None and step < len(item) else None for item in column]
            elif isinstance(step, int):
                raise UnusableRecord("a value is no array")
            elif kinds == {dict}:
                column = [item.get(step) for item in column]
            elif kinds <= {dict, type(None)}:
                column = [item if item is None else item.get(step) for item in column]
            else:
                raise UnusableRecord("a value is no object")
        return column

    def select(self, rows: Sequence[int]) -> JsonTable:
        return JsonTable(gathered(self._values, rows))


class NamedColumns:
    """Columns by their names. What is inside of their values is left to other evaluation."""

    def __init__(self, columns: Mapping[str, Column], count: int) -> None:
        self.count = count
        self._columns = columns

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> NamedColumns:
        """Returns the columns of rows of CSV, all of the same length. An empty value is none."""
        by_name = zip(columns, zip(*rows, strict=True), strict=True)
        return cls(
            {name: [value or None for value in cells] if "" in cells else cells for name, cells in by_name}, len(rows)
        )

    def column(self, path: Path) -> Column:
        if len(path) != 1 or isinstance(path[0], int):
            raise UnusableRecord("it is inside of a value")
        return self._columns[path[0]]

    def select(self, rows: Sequence[int]) -> NamedColumns:
        return NamedColumns({name: gathered(column, rows) for name, column in self._columns.items()}, len(rows))


class Items:
    """The records, or the elements of arrays in other items, that fulfil the conditions of a step."""

    def __init__(self, table: Table, level: int, around: Items | None, rows: Sequence[int] | None) -> None:
        """Creates them.

        Args:
            table: Their values.
            level: The number of their level; 0: they are records.
            around: The items with the arrays; None: they are records.
            rows: The number of the item around each, or of the record; None: it is the same as its own.
        """
        self.count = table.count
        self.around = around
        self.rows = rows
        self._table = table
        self._level = level
        self._columns: dict[Reference, Column] = {}

    def column(self, reference: Reference) -> Column:
        """Returns the values of a reference in all items. Raises UnusableRecord."""
        if reference not in self._columns:
            outer = self.outer(reference.level)
            column = outer.column(reference) if outer is not self else self._table.column(reference.path)
            self._columns[reference] = spread(column, outer, self)
        return self._columns[reference]

    def outer(self, level: int) -> Items:
        """Returns the items of a level, around these or themselves."""
        return self if self.around is None or level >= self._level else self.around.outer(level)

    def records(self) -> Sequence[int] | None:
        """Returns the number of the record of each item; None: they are all the records."""
        outer = None if self.around is None else self.around.records()
        return self.rows if outer is None else gathered(outer, self.rows)

    def selected(self, conditions: Sequence[Condition]) -> Items:
        """Returns the items that fulfil conditions. Raises UnusableRecord."""
        items = self
        for reference, expected in conditions:
            column = items.column(reference)
            if not is_uniform(column):
                raise UnusableRecord("values of several types are equal in Python, though not in JSON")
            fulfilling = {value for value in set(column) if fulfils(value, expected)}
            numbers = [number for number, value in enumerate(column) if value in fulfilling]
            if len(numbers) < items.count:
                rows = numbers if items.rows is None else gathered(items.rows, numbers)
                items = Items(items._table.select(numbers), items._level, items.around, rows)
        return items

    def elements(self, level: Level, number: int) -> Items:
        """Returns the elements of arrays in the items. Raises UnusableRecord.

        Args:
            level: Where the arrays are.
            number: The number of the level.
        """
        arrays = self.column(Reference(level.parent, level.path))
        if not set(map(type, arrays)) <= {list, type(None)}:
            raise UnusableRecord("a value is no array")
        sizes = [len(array) if array else 0 for array in arrays]
        elements = list(chain.from_iterable(filter(None, arrays)))
        has_one_each = len(elements) == len(sizes) and 0 not in sizes
        rows = None if has_one_each else list(chain.from_iterable(map(repeat, range(len(sizes)), sizes)))
        return Items(JsonTable(elements), number, self, rows)


def items_of(path: tuple[Step, ...], table: Table, known: dict[tuple[Step, ...], Items]) -> Items:
    """Returns the items at the end of a path of steps. Those on the way are added to `known`. Raises UnusableRecord."""
    if path not in known:
        level, conditions = path[-1]
        if level is None:
            items = Items(table, 0, None, None)
        else:
            items = items_of(path[:-1], table, known).elements(level, len(path) - 1)
        known[path] = items.selected(conditions)
    return known[path]


def spread(column: Column, outer: Items, items: Items) -> Column:
    """Returns a column of items around others for each of these."""
    if outer is items or items.around is None:
        return column
    return gathered(spread(column, outer, items.around), items.rows)


def gathered(column: Column, rows: Sequence[int] | None) -> Column:
    """Returns the values in rows of a column; None: all of them."""
    return column if rows is None else [column[row] for row in rows]


def is_uniform(column: Column) -> bool:
    """Returns whether all values are of one type, and can be keys. (1 and true are equal in Python.)"""
    kinds = set(map(type, column)) - {type(None)}
    if TypedText in kinds and len({value.datatype for value in column if type(value) is TypedText}) > 1:
        return False
    return len(kinds) <= 1 and kinds.isdisjoint((dict, list))
