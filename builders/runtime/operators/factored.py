"""Factorised rows: rows that differ in one cell only, stored as the set of that cell's values.

A rule about a whole class or property yields such rows. They are joined, projected and compared in one step for all of
them. The representation is the simplest factorised relation, one row times one set (Olteanu and Závodný, "Size Bounds
for Factorised Representations of Query Results", TODS 2015). Only rows without times are factorised
(`squall.builders.runtime.snapshot`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from squall.builders.runtime.zset import Row
from squall.rdf import Term


class FactoredRows:
    """Rows that share all cells but one.

    Attributes:
        row: The shared cells, with None at `place`.
        place: The index of the cell that varies.
        values: The values of that cell, in the order in which they came, as the keys of a mapping that never changes.
    """

    __slots__ = ("place", "row", "values")

    def __init__(self, row: Row, place: int, values: Mapping[Any, None]) -> None:
        self.row = row
        self.place = place
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Row]:
        cells: list[Iterable[Any]] = [repeat(cell) for cell in self.row]
        cells[self.place] = self.values
        return zip(*cells, strict=False)

    def fits(self, row: Row) -> bool:
        """Returns whether a row has the shared cells."""
        place, cells = self.place, self.row
        return row[:place] == cells[:place] and row[place + 1 :] == cells[place + 1 :]

    def shaped(self, template: Sequence[int | Term | None]) -> Rows:
        """Returns the rows with the cells of a template: numbers of columns, and terms."""
        places = [place for place, cell in enumerate(template) if cell == self.place]
        if len(places) > 1:
            return [tuple(row[cell] if isinstance(cell, int) else cell for cell in template) for row in self]
        cells = tuple(self.row[cell] if isinstance(cell, int) else cell for cell in template)
        if places:
            return FactoredRows(cells, places[0], self.values)
        return [cells] if self.values else []

    def of(self, values: Iterable[Any]) -> FactoredRows:
        """Returns those of the rows that have one of the values."""
        return FactoredRows(self.row, self.place, dict.fromkeys(values))


Rows = Sequence[Row] | FactoredRows
"""Rows without times."""


def rows_of(rows: Rows) -> Sequence[Row]:
    """Returns the rows one by one."""
    return list(rows) if isinstance(rows, FactoredRows) else rows
