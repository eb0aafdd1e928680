"""Binary joins: pairs of rows with equal keys, over the instants at which both are valid. Weights are multiplied."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from squall.builders.runtime.intervals import Intervals, TimedCount, changes, count_of, inside, outside, unended, union
from squall.builders.runtime.operators import stateless
from squall.builders.runtime.operators.codegen import column_names, compile_source, delta_source
from squall.builders.runtime.operators.delta_index import DeltaIndex, Merging, StoresInputs, cells_outside
from squall.builders.runtime.operators.state import BufferedBatches, Stateful
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, key_of, with_unit_weights
from squall.plan import operators as ops
from squall.rdf import ALWAYS


def _store(key: Sequence[int], merging: Merging) -> Callable[..., Any]:
    """Returns the function that stores deltas under their key and returns those, or the parts of them, that are new."""
    appended = """\
  elif k in more and more[k].deltas[-1][-2] <= x[-2]:
   more[k].deltas.append(x)
   if x[-1] < 0:
    index.add_retraction(k)
"""
    source = f"""\
def run(deltas, index):
 index.stored += len(deltas)
 first, more = index.first, index.more
 changes = []
 for x in deltas:
  k = {_key([f"x[{column}]" for column in key])}
  if k not in first:
   first[k] = x
{appended if merging is Merging.NEVER else ""}\
  elif (part := index.add(k, x)) is not x:
   changes.append((x, part))
 return replaced(deltas, changes) if changes else deltas
"""
    return compile_source(source, {"replaced": _replaced})


def _replaced(deltas: Sequence[Delta], changes: Sequence[tuple[Delta, Delta | None]]) -> list[Delta]:
    """Returns the deltas with changes: (a delta, what comes in its place, or None), in the order of the deltas."""
    pending = iter([*changes, (None, None)])
    changed, part = next(pending)
    output: list[Delta] = []
    for delta in deltas:
        if delta is not changed:
            output.append(delta)
            continue
        if part is not None:
            output.append(part)
        changed, part = next(pending)
    return output


def _key(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def probe(op: ops.Join, widths: tuple[int, int], side: int) -> Callable[..., Any]:
    """Returns the function that joins deltas of one side with the stored deltas of the other.

    Args:
        op: The join.
        widths: The number of columns of the left and of the right rows.
        side: 0 for deltas of the left side, 1 for the right.
    """
    left, right = column_names("a", widths[0]), column_names("b", widths[1])
    own_columns, other_columns = (left, right) if side == 0 else (right, left)
    key = _key([own_columns[pair[side]] for pair in op.on])
    output_columns = [(left + right)[column] for column in op.keep]
    # Mostly both rows are of one event, and their times are the same objects.
    output_code = delta_source(output_columns, "s if s is t or s > t else t", "e if e is f or e < f else f", "w * v")
    outer, inner = f"for {delta_source(own_columns)} in ", f"for {delta_source(other_columns, 't', 'f', 'v')} in "
    # A delta that gets no other cells and keeps its validity is returned as it is.
    if output_columns == own_columns:
        outer = f"for x in deltas {outer}(x,)"
        output_code = f"x if t <= s and e <= f and v == 1 else {output_code}"
    else:
        outer += "deltas"
    if output_columns == other_columns != own_columns:
        inner = f"for y in {{}} {inner}(y,)"
        output_code = f"y if s <= t and f <= e and w == 1 else {output_code}"
    else:
        inner += "{}"
    source = f"""\
def run(deltas, other):
 first, more = other.first, other.more
 pairs = [{output_code}
  {outer} if {key} in first
  {inner.format(f"(first[{key}],)")} if s < f and t < e]
 if more:
  pairs += [{output_code}
   {outer} if {key} in more
   {inner.format(f"more[{key}].valid_after(s)")} if t < e]
 return pairs
"""
    return compile_source(source, {})


class JoinOperator(StoresInputs):
    """Pairs of rows that agree on the key columns.

    A side that alone brings rows for a while, such as a stream beside static data, does not index them. If it is
    append-only, its rows are buffered until the other side brings some, because nothing looks them up before.

    Args:
        op: The join.
        widths: The number of columns of the left and of the right rows.
        append_only: Whether both sides are append-only and all weights are 1.
        merging: Which deltas of one row are stored as one. `UNION` needs append-only sides.
        tuning: The tuning values of the runtime.
    """

    kind = "join"

    def __init__(
        self,
        op: ops.Join,
        widths: tuple[int, int],
        append_only: bool = False,
        merging: Merging = Merging.ADJOINING,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        super().__init__()
        self.append_only = append_only
        self.merging = merging
        key_columns = tuple([pair[side] for pair in op.on] for side in (0, 1))
        self.indexes = tuple(
            DeltaIndex(cells_outside(key, width), merging, tuning)
            for key, width in zip(key_columns, widths, strict=True)
        )
        self.stores = tuple(_store(key, merging) for key in key_columns)
        self.probes = (probe(op, widths, 0), probe(op, widths, 1))
        self.buffered = BufferedBatches(tuning)
        """Rows of the side that brought some last, which are in no index yet."""
        self.last_port, self.rows_in_sequence = 0, 0
        """That side, and how many rows it has brought since the other side did."""
        self.max_rows_to_index = tuning.min_rows_to_sweep
        """After so many rows of one side alone, further ones are buffered."""
        self.keys = tuple(map(key_of, key_columns))

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if port != self.last_port:
            for part in self.buffered.drain():
                self.stores[self.last_port](part, self.indexes[self.last_port])
            self.last_port, self.rows_in_sequence = port, 0
        if self.rows_in_sequence < self.max_rows_to_index or not self.append_only:
            self.rows_in_sequence += len(deltas)
            deltas = self.stores[port](deltas, self.indexes[port])
        else:
            self.buffered.add(deltas)
        if self.log is not None:
            self.note(port, deltas)
        joined: list[Delta] = self.probes[port](deltas, self.indexes[1 - port])
        return joined

    def stored(self, port: int) -> Iterator[Delta]:
        yield from self.indexes[port].deltas()
        if port == self.last_port:
            yield from chain.from_iterable(deltas for _, deltas in self.buffered.batches)

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        for delta in with_unit_weights(deltas) if self.append_only else deltas:
            self.indexes[slot].store(self.keys[slot](delta), delta)

    def expire(self, now: int) -> None:
        self.buffered.expire(now)
        for index in self.indexes:
            index.sweep(now)

    def size(self) -> int:
        return self.buffered.size + sum(index.size() for index in self.indexes)


class AntiJoinOperator(Stateful):
    """Left rows over the instants at which no right row has their key.

    Args:
        op: The anti-join.
        width: The number of columns of the left rows.
        append_only: Whether right rows are never retracted, so that they need not be counted.
        tuning: The tuning values of the runtime.
    """

    kind = "anti-join"

    def __init__(
        self, op: ops.AntiJoin, width: int, append_only: bool = False, tuning: Tuning = DEFAULT_TUNING
    ) -> None:
        super().__init__()
        self.append_only = append_only
        key_columns = [left for left, _ in op.on]
        self.keys = (key_of(key_columns), key_of([right for _, right in op.on]))
        self.left = DeltaIndex(cells_outside(key_columns, width), Merging.ADJOINING, tuning)
        self.right: dict[Hashable, TimedCount] = {}
        self.covered: dict[Hashable, Intervals] = {}
        self.watermark = ALWAYS
        """No later delta begins before it (integer ms)."""
        self.min_rows_to_sweep = self.sweep_rows = tuning.min_rows_to_sweep

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(port, deltas)
        return list(self._apply_left(deltas) if port == 0 else self._apply_right(deltas))

    def _apply_left(self, deltas: Sequence[Delta]) -> Iterator[Delta]:
        for delta in deltas:
            *row, start, end, weight = delta
            key = self.keys[0](delta)
            self.left.store(key, delta)
            for first, last in outside(start, end, self.covered.get(key, ())):
                yield (*row, first, last, weight)

    def _apply_right(self, deltas: Sequence[Delta]) -> Iterator[Delta]:
        for key, old, new in self._coverage_changes(deltas):
            for start, end, sign in changes(old, new):
                for *row, left_start, left_end, weight in self.left.valid_after(key, start):
                    for first, last in inside(left_start, left_end, ((start, end),)):
                        yield (*row, first, last, -sign * weight)

    def _coverage_changes(self, deltas: Sequence[Delta]) -> Iterator[tuple[Hashable, Intervals, Intervals]]:
        """Yields the keys of right rows, with the instants that were covered before and those that are covered now."""
        if not self.append_only:
            for key in self._count_right(deltas):
                old = self._current(key)
                yield key, old, self._update_coverage(key)
            return
        for delta in deltas:
            key, (start, end, _) = self.keys[1](delta), delta[-3:]
            old = self._current(key)
            self.covered[key] = new = union((*old, (start, end)))
            yield key, old, new

    def _current(self, key: Hashable) -> Intervals:
        """Returns when a right row has the key, from the watermark on."""
        return unended(self.covered.get(key, ()), self.watermark)

    def _update_coverage(self, key: Hashable) -> Intervals:
        """Returns the instants at which a right row has the key, and drops counts that add up to 0."""
        count = self.right[key]
        count.forget(self.watermark)
        covered = unended(count.positive, self.watermark)
        if covered:
            self.covered[key] = covered
        else:
            self.covered.pop(key, None)
        if not count:
            del self.right[key]
        return covered

    def _count_right(self, deltas: Sequence[Delta]) -> Iterable[Hashable]:
        touched: dict[Hashable, None] = {}
        for delta in deltas:
            key = self.keys[1](delta)
            count_of(self.right, key).add(*delta[-3:])
            touched[key] = None
        return touched

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == 0:
            for delta in deltas:
                self.left.store(self.keys[0](delta), delta)
        else:
            for _ in self._coverage_changes(deltas):
                pass

    def expire(self, now: int) -> None:
        self.watermark = max(self.watermark, now)
        self.left.sweep(now)
        if max(len(self.covered), len(self.right)) < self.sweep_rows:
            return
        ends = ((key, covered[-1][1]) for key, covered in self.covered.items())
        if not self.append_only:
            ends = ((key, count.instants[-1]) for key, count in self.right.items())
        for key in [key for key, end in ends if end <= now]:
            self.covered.pop(key, None)
            self.right.pop(key, None)
        self.sweep_rows = max(self.min_rows_to_sweep, 2 * max(len(self.covered), len(self.right)))

    def size(self) -> int:
        return self.left.size() + max(len(self.covered), len(self.right))


class LeftJoinOperator(StoresInputs):
    """The pairs of a join that satisfy the condition, and the left rows at the instants at which they are in no pair.

    It combines a `JoinOperator` with an `AntiJoinOperator` of the left rows and the left columns of the pairs.
    """

    kind = "left-join"

    def __init__(
        self,
        op: ops.LeftJoin,
        widths: tuple[int, int],
        append_only: bool,
        merging: Merging = Merging.ADJOINING,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        super().__init__()
        self.merging = merging
        width = widths[0]
        self.join = JoinOperator(ops.Join(op.on, tuple(range(sum(widths)))), widths, append_only, merging, tuning)
        own_columns = tuple((column, column) for column in range(width))
        self.anti_join = AntiJoinOperator(ops.AntiJoin(own_columns), width, append_only, tuning)
        places = dict(enumerate(op.keep))
        self.condition = (
            stateless.filter_step(ops.Filter(ops.remap_call(op.condition, places)))
            if op.condition
            else stateless.identity
        )
        self.pairs = stateless.project_step(ops.Project(op.keep), sum(widths))
        unmatched_columns = tuple(column if column < width else None for column in op.keep)
        self.unmatched = stateless.project_step(ops.Project(unmatched_columns), width)

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(port, deltas)
        joined = self.condition(self.join.apply(port, deltas))
        unmatched = self.anti_join.apply(0, deltas) if port == 0 else []
        unmatched += self.anti_join.apply(1, joined)
        return self.pairs(joined) + self.unmatched(unmatched)

    def stored(self, port: int) -> Iterator[Delta]:
        return self.join.stored(port)

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        # The pairs are known only when both sides are restored: the other slot may come before or after.
        joined = self.condition(self.join.apply(slot, with_unit_weights(deltas) if self.join.append_only else deltas))
        if slot == 0:
            self.anti_join.restore(0, deltas)
        self.anti_join.restore(1, joined)

    def expire(self, now: int) -> None:
        self.join.expire(now)
        self.anti_join.expire(now)

    def size(self) -> int:
        return self.join.size() + self.anti_join.size()
