"""Joins of rows without times, by keys that whole batches may share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from squall.builders.runtime.operators.codegen import column_names, compile_source, row_source
from squall.builders.runtime.operators.factored import FactoredRows, Rows, rows_of
from squall.builders.runtime.snapshot.groups import KeyedRows
from squall.builders.runtime.snapshot.stateless import Step
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Row, key_of
from squall.plan import operators as ops
from squall.rdf import Term


class _Side:
    """One input of a join by key, which stores its rows.

    Args:
        step: The step to apply to rows that come with their key, when the other side has rows of that key; None: rows
            come ready, without their key.
    """

    def __init__(self, step: Step | None) -> None:
        self.step = step
        self.rows: dict[Hashable, list[Row]] = {}
        self.factored: dict[Hashable, list[FactoredRows]] = {}
        self.deferred: dict[Hashable, list[KeyedRows]] = {}
        """Batches whose step was not applied yet: the other side has had no rows of their keys."""
        self.max_count = 0
        """There are no more rows than that."""

    def ready(self, part: KeyedRows) -> Rows:
        """Returns the rows of a batch, each once."""
        rows = self.step(part.rows) if self.step else part.rows
        return list(dict.fromkeys(rows)) if part.repeats and not isinstance(rows, FactoredRows) else rows

    def add(self, key: Hashable, rows: Rows) -> None:
        """Stores rows with the key."""
        self.max_count += len(rows)
        if isinstance(rows, FactoredRows):
            self.factored.setdefault(key, []).append(rows)
        else:
            self.rows.setdefault(key, []).extend(rows)

    def prepare(self, key: Hashable) -> None:
        """Applies the step to the rows of a key."""
        for part in self.deferred.pop(key, ()):
            self.add(key, self.ready(part))

    def has(self, key: Hashable) -> bool:
        """Returns whether there are, or may be, rows of a key."""
        return key in self.rows or key in self.factored or key in self.deferred

    def count(self, key: Hashable) -> int:
        """Returns at most how many rows of a key there are."""
        deferred = sum(len(part.rows) for part in self.deferred.get(key, ()))
        return len(self.rows.get(key, ())) + sum(map(len, self.factored.get(key, ()))) + deferred

    def all_rows_by_key(self) -> Iterator[Sequence[Row]]:
        for key in list(self.deferred):
            self.prepare(key)
        yield from self.rows.values()
        yield from (rows_of(group) for row_groups in self.factored.values() for group in row_groups)

    def size(self) -> int:
        all_rows: list[Rows] = [
            *self.rows.values(),
            *(group for row_groups in self.factored.values() for group in row_groups),
        ]
        return sum(map(len, all_rows)) + sum(len(part.rows) for parts in self.deferred.values() for part in parts)


class SnapshotJoin:
    """Pairs of rows with equal keys.

    Args:
        op: The join.
        widths: The number of columns of the left and of the right rows.
        steps: The deferred steps of both sides.
        tuning: The tuning values of the runtime.
    """

    def __init__(
        self,
        op: ops.Join,
        widths: tuple[int, int],
        steps: tuple[Step | None, Step | None],
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self.min_rows_to_factor = tuning.min_rows_to_factor
        self.sides = (_Side(steps[0]), _Side(steps[1]))
        self.on = ([left for left, _ in op.on], [right for _, right in op.on])
        self.keys = (key_of(self.on[0]), key_of(self.on[1]))
        self.cells = [(0, cell) if cell < widths[0] else (1, cell - widths[0]) for cell in op.keep]
        """The side and the column of each cell of a pair."""
        self.probes = (_probe(op, widths, 0), _probe(op, widths, 1))
        self.products = (_product(op, widths, 0), _product(op, widths, 1))

    def has_at_most(self, rows: int, port: int, part: KeyedRows) -> bool:
        """Returns whether `apply` returns at most so many rows for a batch."""
        mine, other = self.sides[port], self.sides[1 - port]
        if len(part.rows) * other.max_count <= rows:
            return True
        if mine.step is not None:
            return len(part.rows) * other.count(part.key) <= rows
        keys = map(self.keys[port], part.rows)
        if other.factored or other.deferred:
            return sum(map(other.count, keys)) <= rows
        return sum(map(len, filter(None, map(other.rows.get, keys)))) <= rows

    def apply(self, port: int, parts: Iterable[KeyedRows]) -> Iterator[KeyedRows]:
        take = self._apply_ready if self.sides[port].step is None else self._apply_keyed
        for part in parts:
            yield from (KeyedRows(None, rows) for rows in take(port, part))

    def _apply_keyed(self, port: int, part: KeyedRows) -> Iterator[Rows]:
        mine, other = self.sides[port], self.sides[1 - port]
        if other.has(part.key):
            rows = mine.ready(part)
            yield from self._pairs_with_key(port, rows, part.key)
            mine.add(part.key, rows)
        else:
            mine.deferred.setdefault(part.key, []).append(part)
            mine.max_count += len(part.rows)

    def _apply_ready(self, port: int, part: KeyedRows) -> Iterator[Rows]:
        mine, other, key_of_row = self.sides[port], self.sides[1 - port], self.keys[port]
        rows = mine.ready(part)
        if isinstance(rows, FactoredRows):
            if rows.place not in self.on[port]:
                key = key_of_row(rows.row)
                mine.add(key, rows)
                yield from self._pairs_with_key(port, rows, key)
                return
            rows = list(rows)
        if other.deferred:
            for key in map(key_of_row, rows):
                other.prepare(key)
        mine.max_count += len(rows)
        joined: list[Row] = self.probes[port](rows, mine.rows, other.rows)
        yield joined
        if other.factored:
            yield from self._with_factored(port, rows, other.factored)

    def _with_factored(
        self, port: int, rows: Sequence[Row], factored: Mapping[Hashable, Sequence[FactoredRows]]
    ) -> Iterator[Rows]:
        key_of_row = self.keys[port]
        hits: dict[Hashable, list[Row]] = {}
        for row in rows:
            if (key := key_of_row(row)) in factored:
                hits.setdefault(key, []).append(row)
        for key, part in hits.items():
            for right_rows in factored[key]:
                yield from self._pairs(port, part, right_rows)

    def _pairs_with_key(self, port: int, rows: Rows, key: Hashable) -> Iterator[Rows]:
        """Yields pairs of rows of one key with the rows of the other side that have it."""
        other = self.sides[1 - port]
        other.prepare(key)
        if key in other.rows:
            yield from self._pairs(port, rows, other.rows[key])
        for right_rows in other.factored.get(key, ()):
            yield from self._pairs(port, rows, right_rows)

    def _pairs(self, port: int, rows: Rows, right_rows: Rows) -> Iterator[Rows]:
        """Yields all pairs of rows of both sides."""
        if isinstance(rows, FactoredRows) or isinstance(right_rows, FactoredRows):
            yield from self._pairs_factored(
                port, self._without_irrelevant(port, rows), self._without_irrelevant(1 - port, right_rows)
            )
        else:
            yield self.products[port](rows, right_rows)

    def _pairs_factored(self, port: int, rows: Rows, right_rows: Rows) -> Iterator[Rows]:
        sides = ((port, rows, right_rows), (1 - port, right_rows, rows))
        for side, many, few in sorted(sides, key=lambda candidate: -len(candidate[1])):
            if isinstance(many, FactoredRows) and len(many) >= self.min_rows_to_factor:
                for row in few:
                    yield many.shaped([cell if of == side else cast(Term | None, row[cell]) for of, cell in self.cells])
                return
        yield self.products[port](rows, right_rows)

    def _without_irrelevant(self, side: int, rows: Rows) -> Rows:
        """Returns one row instead of factorised rows that differ only in a cell that the join does not keep."""
        if isinstance(rows, FactoredRows) and (side, rows.place) not in self.cells:
            return [rows.row] if rows else []
        return rows

    def export_state(self) -> Iterator[tuple[int, Sequence[Row]]]:
        for port, side in enumerate(self.sides):
            yield from ((port, rows) for rows in side.all_rows_by_key())

    def size(self) -> int:
        return sum(side.size() for side in self.sides)


def _sides(op: ops.Join, widths: tuple[int, int], side: int) -> tuple[str, str, str]:
    """Returns the source of a row of one side, of one of the other, and of a joined row."""
    left, right = column_names("a", widths[0]), column_names("b", widths[1])
    output_code = row_source([(left + right)[column] for column in op.keep])
    return (
        (row_source(left), row_source(right), output_code)
        if side == 0
        else (row_source(right), row_source(left), output_code)
    )


def _probe(op: ops.Join, widths: tuple[int, int], side: int) -> Callable[..., Any]:
    """Returns the function that stores rows of one side by key, and joins them with the stored rows of the other
    side."""
    own_key, other_key, output_code = _sides(op, widths, side)
    columns = [pair[side] for pair in op.on]
    names = [f"{'ab'[side]}{column}" for column in columns]
    key = names[0] if len(names) == 1 else f"({', '.join(names)})"
    source = f"""\
def run(rows, mine, other):
 for x in rows:
  {own_key} = x
  k = {key}
  if k in mine:
   mine[k].append(x)
  else:
   mine[k] = [x]
 return [{output_code} for {own_key} in rows if {key} in other for {other_key} in other[{key}]]
"""
    return compile_source(source, {})


def _product(op: ops.Join, widths: tuple[int, int], side: int) -> Callable[..., Any]:
    """Returns the function that pairs all rows of one side with all of the other."""
    own_key, other_key, output_code = _sides(op, widths, side)
    return compile_source(
        f"def run(rows, other):\n return [{output_code} for {own_key} in rows for {other_key} in other]", {}
    )
