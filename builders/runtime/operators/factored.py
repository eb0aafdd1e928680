"""Rows that differ in one cell only, kept as that cell's values: what a rule says of a whole class or property at once.

To join, to shape or to compare them takes a step for all of them, or one on sets of terms, and not one for each row: a
factorised relation (Olteanu and Závodný, "Size Bounds for Factorised Representations of Query Results", TODS 2015) of
the simplest form, one row times one set. Only rows without times are kept so (`squall.builders.runtime.snapshot`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from squall.builders.runtime.zset import Row
from squall.rdf import Term

MIN_ROWS_TO_FACTOR = 256
"""From so many rows on a step for all of them costs less than one for each."""


class FactoredRows:
    """Rows that have the cells of `row`, and at `place`, where that has None, another of `values` each.

    values: in the order in which they came, as the keys of a mapping that never changes.
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
        """Whether a row has the cells that all of these have."""
        place, cells = self.place, self.row
        return row[:place] == cells[:place] and row[place + 1 :] == cells[place + 1 :]

    def shaped(self, template: Sequence[int | Term | None]) -> Rows:
        """The rows with other cells: the numbers of columns of these, and terms."""
        places = [place for place, cell in enumerate(template) if cell == self.place]
        if len(places) > 1:
            return [tuple(row[cell] if isinstance(cell, int) else cell for cell in template) for row in self]
        cells = tuple(self.row[cell] if isinstance(cell, int) else cell for cell in template)
        if places:
            return FactoredRows(cells, places[0], self.values)
        return [cells] if self.values else []

    def of(self, values: Iterable[Any]) -> FactoredRows:
        """Those of the rows that have one of these values."""
        return FactoredRows(self.row, self.place, dict.fromkeys(values))


Rows = Sequence[Row] | FactoredRows
"""Rows without times."""


def rows_of(rows: Rows) -> Sequence[Row]:
    """The rows one by one."""
    return list(rows) if isinstance(rows, FactoredRows) else rows
