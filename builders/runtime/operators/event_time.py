"""Operators that process complete instants: they apply changes in the order of event time.

Later input can change the output of such an operator only from a later instant on. A row that holds now is therefore
emitted without an end, and retracted from the instant on at which it does not hold.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter

from squall.builders.runtime.operators.aggregate import accumulator
from squall.builders.runtime.operators.codegen import compile_expressions, compile_source, compile_vectorized
from squall.builders.runtime.operators.state import TimedOperator, sum_weights
from squall.builders.runtime.zset import Delta, Row
from squall.functions import lookup_aggregate
from squall.functions.aggregation import Accumulator
from squall.functions.ordering import descending, sortable, sortable_text
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER

Change = dict[Row, int]
"""By how much the multiplicity of rows changes."""


class MultiplicityChanges:
    """The changes of the multiplicities of rows, in the order of time.

    Attributes:
        watermark: All changes up to this time (integer ms) were taken.
    """

    def __init__(self) -> None:
        self.by_time: dict[int, Change] = {}
        self.times: list[int] = []
        self.watermark = ALWAYS - 1

    def add(self, row: Row, start: int, end: int, weight: int) -> None:
        """Adds a row that is valid `weight` times more over [start, end). What lies before the watermark counts from
        there on."""
        if end > self.watermark:
            self._add(row, max(start, self.watermark), weight)
            if end != FOREVER:
                self._add(row, end, -weight)

    def _add(self, row: Row, time: int, weight: int) -> None:
        changes = self.by_time.get(time)
        if changes is None:
            changes = self.by_time[time] = {}
            heappush(self.times, time)
        changes[row] = changes.get(row, 0) + weight

    @property
    def next_time(self) -> int:
        """The time of the first change; FOREVER if there is none."""
        return self.times[0] if self.times else FOREVER

    def pop_until(self, now: int) -> Iterator[tuple[int, Change]]:
        """Removes and yields the changes up to and including `now`, instant by instant."""
        while self.times and self.times[0] <= now:
            time = heappop(self.times)
            self.watermark = max(self.watermark, time)
            yield time, self.by_time.pop(time)
        self.watermark = max(self.watermark, now)

    def size(self) -> int:
        return sum(map(len, self.by_time.values()))


class EventTimeOperator(TimedOperator):
    """An operator that applies changes in the order of event time, when their instants are complete."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = MultiplicityChanges()

    @property
    def next_time(self) -> int:
        return self.changes.next_time

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        self.note(port, deltas)
        self._count(deltas)
        return []

    def resume_at(self, watermark: int) -> None:
        self.advance(watermark)

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        # Past changes count as one change at the watermark, which is applied without output.
        self._count(deltas)
        self.advance(self.changes.watermark)

    def _count(self, deltas: Sequence[Delta]) -> None:
        for row, delta in zip(self.rows_of(deltas), deltas, strict=True):
            self.changes.add(row, *delta[-3:])

    def rows_of(self, deltas: Sequence[Delta]) -> list[Row]:
        """Returns the part of each delta that is counted."""
        return [delta[:-3] for delta in deltas]


class _OpenRows:
    """Rows that hold without a known end: their emitted multiplicity, and the rows that are still to be emitted."""

    def __init__(self) -> None:
        self.emitted: dict[Row, int] = {}
        self.fresh: dict[Row, list[tuple[int, int]]] = {}
        """Rows that began to hold and were not emitted yet: since when, and how often."""

    def change(self, row: Row, time: int, weight: int) -> Iterator[Delta]:
        """Changes the multiplicity of a row by `weight` from a time on; yields what can be emitted at once."""
        if weight > 0:
            self.fresh.setdefault(row, []).append((time, weight))
            return
        fresh = self.fresh.get(row, [])
        while weight and fresh:
            since, count = fresh.pop()
            cancelled = min(count, -weight)
            if since < time:
                yield (*row, since, time, cancelled)
            if count > cancelled:
                fresh.append((since, count - cancelled))
            weight += cancelled
        if weight:
            self.emitted[row] += weight
            if not self.emitted[row]:
                del self.emitted[row]
            yield (*row, time, FOREVER, weight)

    def flush(self) -> Iterator[Delta]:
        """Yields the rows that began to hold and still do."""
        for row, parts in self.fresh.items():
            for since, count in parts:
                self.emitted[row] = self.emitted.get(row, 0) + count
                yield (*row, since, FOREVER, count)
        self.fresh = {}


class GroupOperator(EventTimeOperator):
    """The keys and aggregates of each group of rows, maintained incrementally (Gray et al. 1997 on which aggregates can
    be)."""

    kind = "group"

    def __init__(self, op: ops.Group) -> None:
        super().__init__()
        cells = [*map(ops.Column, op.keys), *(aggregate.expression for aggregate in op.aggregates)]
        self.cells_of = compile_vectorized(
            f"def run(deltas):\n return [{values_source(cells)} for x in deltas]", cells, *_ROW
        )
        self.combined = combiner(op)
        self.aggregates = op.aggregates
        self.width = len(op.keys)
        self.is_global = not op.keys
        self.members: dict[Row, int] = {}
        self.groups: dict[Row, list[Accumulator]] = {}
        self.rows: dict[Row, Row] = {}
        """The current output row of each group."""
        self.open = _OpenRows()
        if self.is_global:
            self.groups[()] = self._new_accumulators()
            self.changes._add((), ALWAYS, 0)

    def _new_accumulators(self) -> list[Accumulator]:
        return [accumulator(aggregate) for aggregate in self.aggregates]

    def note(self, slot: int, deltas: Iterable[Delta]) -> None:
        if self.log is not None:
            super().note(slot, self.combined(deltas))

    def rows_of(self, deltas: Sequence[Delta]) -> list[Row]:
        rows: list[Row] = self.cells_of(deltas)
        return rows

    def advance(self, now: int) -> list[Delta]:
        deltas: list[Delta] = []
        for time, change in self.changes.pop_until(now):
            for key in self._take(change):
                new = self._row(key)
                old = self.rows.get(key)
                if new == old:
                    continue
                if old is not None:
                    deltas += self.open.change(old, time, -1)
                if new is not None:
                    deltas += self.open.change(new, time, 1)
                    self.rows[key] = new
                else:
                    del self.rows[key]
        deltas += self.open.flush()
        return deltas

    def _take(self, change: Change) -> Iterable[Row]:
        """Applies a change and returns the keys of the groups that it affects."""
        touched: dict[Row, None] = {}
        for row, weight in change.items():
            key = row[: self.width]
            touched[key] = None
            if weight:
                self.members[key] = self.members.get(key, 0) + weight
                for part, value in zip(self._group(key), row[self.width :], strict=True):
                    part.add(value, weight)
        return touched

    def _group(self, key: Row) -> list[Accumulator]:
        if key not in self.groups:
            self.groups[key] = self._new_accumulators()
        return self.groups[key]

    def _row(self, key: Row) -> Row | None:
        """Returns the row of a group; None if the group has no members."""
        if not self.members.get(key) and not self.is_global:
            self.members.pop(key, None)
            self.groups.pop(key, None)
            return None
        return (*key, *(part.value() for part in self.groups[key]))

    def size(self) -> int:
        return self.changes.size() + len(self.members)


def combiner(op: ops.Group) -> Callable[[Iterable[Delta]], list[Delta]]:
    """Returns the function that sums up deltas which are equal for a group (pre-aggregation).

    It runs before deltas are shuffled and logged (the combiner of Dean and Ghemawat, MapReduce, 2004, section 4.3).
    Cells that no key and no aggregate reads become "", or are cut off at the end of the row. Of a cell that is only
    counted, the function keeps whether it is bound.
    """
    counted_columns = [_counted_column(aggregate) for aggregate in op.aggregates]
    counted = {column for column in counted_columns if column is not None}
    read = (ops.columns_of(item.expression) for item in op.aggregates if _counted_column(item) is None)
    columns = {*op.keys, *chain.from_iterable(read)}
    cells = (
        f"x[{column}]" if column in columns else f"x[{column}] and ''" if column in counted else "''"
        for column in range(max(columns | counted, default=-1) + 1)
    )
    cut = compile_source(f"def run(deltas):\n return [({', '.join([*cells, '*x[-3:],'])}) for x in deltas]", {})

    def combined(deltas: Iterable[Delta]) -> list[Delta]:
        return [(*row, weight) for row, weight in sum_weights(cut(deltas)).items()]

    return combined


def _counted_column(aggregate: ops.Aggregate) -> int | None:
    """Returns the column whose bound values an aggregate counts, if it does that."""
    if aggregate.distinct or not isinstance(aggregate.expression, ops.Column):
        return None
    return aggregate.expression.index if lookup_aggregate(aggregate.kind).presence_only else None


class SliceOperator(EventTimeOperator):
    """The rows between an offset and a limit in an order, at each instant, for each key."""

    kind = "slice"

    def __init__(self, op: ops.Slice) -> None:
        super().__init__()
        self.begin = op.offset
        self.end = FOREVER if op.limit is None else op.offset + op.limit
        self.order = sort_key(op.order)
        self.keys = op.keys
        self.sorted_rows: defaultdict[Row, list[tuple[str, Row]]] = defaultdict(list)
        """The rows of each key, in order."""
        self.selected: defaultdict[Row, Counter[Row]] = defaultdict(Counter)
        self.open = _OpenRows()

    def advance(self, now: int) -> list[Delta]:
        deltas: list[Delta] = []
        for time, change in self.changes.pop_until(now):
            changed_keys = {tuple(row[place] for place in self.keys): None for row in change}
            for row, weight in change.items():
                self._put(row, weight)
            for key in changed_keys:
                deltas += self._select(key, time)
        deltas += self.open.flush()
        return deltas

    def _put(self, row: Row, weight: int) -> None:
        item = (self.order(row), row)
        rows = self.sorted_rows[tuple(row[place] for place in self.keys)]
        for _ in range(weight):
            insort(rows, item, key=_first)
        for _ in range(-weight):
            del rows[bisect_left(rows, item[0], key=_first)]

    def _select(self, key: Row, time: int) -> list[Delta]:
        """Updates the selected rows of a key from a time on."""
        deltas: list[Delta] = []
        before, selected = self.selected[key], Counter(row for _, row in self.sorted_rows[key][self.begin : self.end])
        for row in before.keys() | selected.keys():
            if selected[row] != before[row]:
                deltas += self.open.change(row, time, selected[row] - before[row])
        self.selected[key] = selected
        if not self.sorted_rows[key]:
            del self.sorted_rows[key], self.selected[key]
        return deltas

    def size(self) -> int:
        return self.changes.size() + sum(map(len, self.sorted_rows.values()))


def _first(item: tuple[str, Row]) -> str:
    return item[0]


def partial_top_k(op: ops.Slice) -> Callable[[Iterable[Delta]], list[Delta]] | None:
    """Returns the function that drops deltas which cannot be in the slice, before they are shuffled; None without a
    limit.

    It drops a delta behind as many others as the slice may have, which are valid as long as it is. Rows must not be
    retracted.
    """
    if op.limit is None:
        return None
    last, order = op.offset + op.limit, sort_key(op.order)

    def top_rows(deltas: Iterable[Delta]) -> list[Delta]:
        alike: defaultdict[Row, list[Delta]] = defaultdict(list)
        for delta in deltas:
            alike[*(delta[place] for place in op.keys), delta[-2]].append(delta)
        return [delta for part in alike.values() for delta in _least(part, last, order)]

    return top_rows


def _least(deltas: Sequence[Delta], limit: int, order: Callable[[Row], str]) -> Iterable[Delta]:
    """Yields, of deltas with the same end, those with fewer than `many` predecessors in the order that began before."""
    if len(deltas) <= limit:
        yield from deltas
        return
    least_keys: list[str] = []
    for delta in sorted(deltas, key=itemgetter(-3)):
        key = order(delta[:-3])
        if len(least_keys) < limit:
            insort(least_keys, key)
        elif limit and key < least_keys[-1]:
            del least_keys[-1]
            insort(least_keys, key)
        else:
            continue
        yield delta


def sort_key(
    order: Sequence[tuple[ops.Expression, bool]], columns: Sequence[int] | None = None
) -> Callable[[Row], str]:
    """Returns the function that computes the sort key of a row.

    The key is made of the order's expressions, then of the text of the cells in `columns` (None: of all cells), so that
    rows that differ there have different keys.
    """
    values = [value for value, _ in order]
    values_of = compile_expressions(f"def run(x):\n return {values_source(values)}", values, *_ROW)
    falling = [falls for _, falls in order]

    def key(row: Row) -> str:
        values = map(sortable, values_of((*row, ALWAYS, FOREVER, 1)))
        parts = [descending(value) if falls else value for value, falls in zip(values, falling, strict=True)]
        cells = row if columns is None else [row[column] for column in columns]
        return "".join([*parts, *(sortable_text(cell or "") for cell in cells)])

    return key


_ROW = ("x", "x[-3]")
"""The names of a delta and of its time in the source of expressions."""


def values_source(expressions: Sequence[ops.Expression]) -> str:
    """Returns the source of a tuple of expressions. An expression without value is unbound."""
    parts = (f"v if isinstance(v := {{{place}}}, str) else None, " for place in range(len(expressions)))
    return f"({''.join(parts)})"
