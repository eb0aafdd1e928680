"""Sequence joins: pairs of occurrences, one after the other, chosen in the order of event time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, count, groupby
from operator import itemgetter
from typing import Any

from squall.builders.runtime.operators.codegen import compile_expressions
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.state import SlotChanges, sum_weights
from squall.builders.runtime.operators.stateless import Step
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import ColumnarPairs, Delta, Pairs, Row, key_of
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER

Occurrence = tuple[Any, ...]
"""A row with the times since when and until when it is valid (integer ms)."""
LEFT, RIGHT = 0, 1
_END = itemgetter(0)
_Pending = tuple[int, int, int, Occurrence]
"""When a row begins (integer ms), a number, its input, and the row."""
_TIME = itemgetter(0)
_SINCE = itemgetter(-3)


class SequenceJoinOperator(EventTimeOperator):
    """Pairs of a left and a later right row, as `squall.plan.operators.SequenceJoin` says.

    Rows are processed at the time at which they begin to be valid, which is the time at which they end. A left row is
    stored until it expires, or until nothing can follow it any more; a right row until its time has been processed.

    Args:
        op: The node of the plan.
        input_count: The number of its inputs.
        tuning: The tuning values of the runtime.
    """

    kind = "sequence-join"

    def __init__(self, op: ops.SequenceJoin, input_count: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.pairing = _Pairing(op)
        self.counts: tuple[dict[Occurrence, int], ...] = tuple({} for _ in range(input_count))
        """The stored rows of each input, with their multiplicity."""
        self.new_rights = [NewRights([right for _, right in op.on], None)]
        """The right rows that came since time advanced last, by input."""
        self.pending = _PendingRows()
        self.open: dict[Hashable, dict[Occurrence, int]] = {}
        """The left rows that something may follow, by key, in the order of time, with the time at which each ends.
        While time advances, the keys of rows that begin are there before the rows."""
        self.between = [_Interposed(part) for part in op.between]
        self.min_rows_to_sweep = tuning.min_rows_to_sweep
        self.rows_after_sweep = 0

    @property
    def next_time(self) -> int:
        new_times = (rights.earliest for rights in self.new_rights if rights.batches)
        return min(self.pending.next_time, *new_times, FOREVER)

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if port == RIGHT:
            self.new_rights[0].batches.append(deltas)
        else:
            self.note(port, deltas)
            self._add(port, deltas)
        return []

    def advance(self, now: int) -> list[Delta]:
        output: list[Delta] = []
        due = self.pending.pop_until(now)
        new_keys = {self.pairing.left_key(row) for _, _, port, row in due if port == LEFT}
        for key in new_keys:
            self.open.setdefault(key, {})
        for time, rights in self._begin(self._with_new_rights(due, now)):
            output += self._follow(time, rights)
        for key in new_keys:
            if not self.open.get(key, True):
                del self.open[key]
        return output

    def _with_new_rights(self, due: list[_Pending], now: int) -> Sequence[_Pending]:
        """Returns the rows that begin up to `now`, and adds the new right rows, but for those that no left row can be
        before."""
        inputs = [rights for rights in self.new_rights if rights.batches]
        deltas = [delta for rights in inputs for delta in rights.needed(self.open, now)]
        if not deltas:
            return due
        stored = self.counts[RIGHT]
        rows = dict.fromkeys(row for delta in deltas if delta[-3] <= now and (row := delta[:-1]) not in stored)
        self.note(RIGHT, deltas)
        self._add(RIGHT, deltas)
        return sorted([*due, *((row[-2], 0, RIGHT, row) for row in rows)], key=_TIME)

    def _add(self, port: int, deltas: Iterable[Delta]) -> None:
        """Adds rows of an input, or removes them where the weight is negative."""
        counts, watermark = self.counts[port], self.pending.watermark
        for delta in deltas:
            row, weight = delta[:-1], delta[-1]
            if row in counts:
                counts[row] += weight
                if not counts[row]:
                    self._drop(port, row)
                continue
            counts[row] = weight
            if row[-2] > watermark:
                self.pending.add(port, row)
            else:
                self._place(port, row)

    def _place(self, port: int, row: Occurrence) -> None:
        """Stores a row that has begun where it is looked for."""
        if port == LEFT:
            self.open.setdefault(self.pairing.left_key(row), {})[row] = time_of(row[self.pairing.op.times[0]])
        elif port > RIGHT:
            self.between[port - 2].add(row)

    def _drop(self, port: int, row: Occurrence) -> None:
        """Removes a row. It may stay among the pending ones, where it does not count without a multiplicity."""
        self.counts[port].pop(row, None)
        if port == LEFT:
            key = self.pairing.left_key(row)
            rows = self.open.get(key, {})
            rows.pop(row, None)
            if not rows:
                self.open.pop(key, None)
        elif port > RIGHT:
            self.between[port - 2].remove(row)

    def _begin(self, due: Sequence[_Pending]) -> Iterator[tuple[int, list[Occurrence]]]:
        """Yields the times of rows that begin, with the right rows that a left row may be before, before the other rows
        of that time are stored: a row never follows one of its own time."""
        lefts, rights, right_key = self.open, self.counts[RIGHT], self.pairing.right_key
        for time, pending in groupby(due, _TIME):
            behind: list[Occurrence] = []
            beginning: list[tuple[int, Occurrence]] = []
            for _, _, port, row in pending:
                if port != RIGHT:
                    beginning.append((port, row))
                elif row in rights:
                    if lefts.get(right_key(row)):
                        behind.append(row)
                    else:
                        self._forget(RIGHT, (row,))
            if behind:
                yield time, behind
            self._store([(port, row) for port, row in beginning if row in self.counts[port]])

    def _store(self, rows: Sequence[tuple[int, Occurrence]]) -> None:
        """Stores the left rows, and those that may be between two, that have begun at one time."""
        for port, row in rows:
            self._place(port, row)
        if self.pairing.supersedes and rows:
            self._forget(LEFT, self._superseded([row for port, row in rows if port == LEFT]))

    def _superseded(self, lefts: Iterable[Occurrence]) -> list[Occurrence]:
        """Returns the left rows in whose place later ones with their keys have come."""
        keys = dict.fromkeys(map(self.pairing.left_key, lefts))
        ends = {key: max(self.open[key].values()) for key in keys}
        return [row for key in keys for row, end in self.open[key].items() if end < ends[key]]

    def _follow(self, now: int, rights: Sequence[Occurrence]) -> list[Delta]:
        """Returns the pairs of the right rows of an instant, and removes the rows that are needed no more."""
        selection, output = self.pairing.op.selection, []
        finished: dict[Occurrence, None] = {}
        for right in rights:
            lefts = self._lefts_before(right, now, finished)
            if selection == "last" and lefts:
                last = max(end for _, end in lefts)
                lefts = [(left, end) for left, end in lefts if end == last]
            for left, _ in lefts:
                weight = self.counts[LEFT][left] * self.counts[RIGHT][right]
                output.append((*self.pairing.output(left, right), now, min(left[-1], right[-1]), weight))
                if selection == "nearest":
                    finished[left] = None
        self._forget(LEFT, finished)
        self._forget(RIGHT, rights)
        return output

    def _lefts_before(
        self, right: Occurrence, now: int, finished: dict[Occurrence, None]
    ) -> list[tuple[Occurrence, int]]:
        """Returns the left rows that a right one may follow, with their ends. Adds those that nothing can follow any
        more to `finished`."""
        pairing, op = self.pairing, self.pairing.op
        start = time_of(right[op.times[1]])
        lefts = []
        for left, end in self.open.get(pairing.right_key(right), {}).items():
            if left[-1] <= now:
                continue
            if op.max_gap is not None and start - end > op.max_gap:
                if pairing.rights_are_instants:
                    finished[left] = None
                continue
            if start - end >= op.min_gap and pairing.holds(left, right) and self._is_clear(left, right, end, start):
                lefts.append((left, end))
        return lefts

    def _is_clear(self, left: Occurrence, right: Occurrence, end: int, start: int) -> bool:
        """Returns whether between a left and a right row there is what has to be, and nothing that must not be."""
        if not self.between:
            return True
        pair = (*left[:-2], *right[:-2])
        return all(part.exists(pair, end, start) == part.op.wanted for part in self.between)

    def _forget(self, port: int, rows: Collection[Occurrence]) -> None:
        """Removes rows that are needed no more, which the changelog says, too."""
        counts = self.counts[port]
        if self.log is not None:
            self.note(port, [(*row, -counts[row]) for row in rows])
        if port == RIGHT:
            for row in rows:
                del counts[row]
        else:
            for row in rows:
                self._drop(port, row)

    # State

    def drain_changelog(self) -> Iterator[SlotChanges]:
        for rights in self.new_rights:
            deltas = rights.all()
            self.note(RIGHT, deltas)
            self._add(RIGHT, deltas)
        return super().drain_changelog()

    def resume_at(self, watermark: int) -> None:
        for _ in self._begin(self.pending.pop_until(watermark)):
            pass  # what followed in the run before is in its changelog

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        self._add(slot, [(*row, weight) for row, weight in sum_weights(deltas).items()])

    def size(self) -> int:
        return sum(map(len, self.counts)) + sum(map(len, self.new_rights))

    def expire(self, now: int) -> None:
        if self.size() <= max(self.min_rows_to_sweep, 2 * self.rows_after_sweep):
            return
        for port, counts in enumerate(self.counts):
            for row in [row for row in counts if row[-1] <= now]:
                self._drop(port, row)
        self.rows_after_sweep = self.size()


class NewRights:
    """Right rows that came since time advanced last. Most are needed no longer, so that nothing is computed of them
    before their key has been looked up.

    Args:
        key: The columns of a row that are the key.
        step: What makes right rows of the rows, with the same validity, or None.

    Attributes:
        batches: The rows, as they came.
    """

    __slots__ = ("batches", "key", "key_of", "step")

    def __init__(self, key: Sequence[int], step: Step | None) -> None:
        self.key = key
        self.key_of = key_of(key)
        self.step = step
        self.batches: list[Pairs] = []

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @property
    def earliest(self) -> int:
        """A time (integer ms) before which no row is valid."""
        batches = self.batches
        return min(rows.earliest if type(rows) is ColumnarPairs else min(map(_SINCE, rows)) for rows in batches)

    def needed(self, lefts: Container[Hashable], now: int) -> Sequence[Delta]:
        """Removes all rows, and returns the right rows of those that a left row may be before, or that begin later
        than `now` (integer ms).

        Args:
            lefts: The keys of the left rows that are open, or begin until then.
        """
        key_of, needed = self.key_of, list[Delta]()
        batches, self.batches = self.batches, []
        for rows in batches:
            if type(rows) is ColumnarPairs and len(self.key) == 1 and rows.latest <= now:
                needed += rows.with_term(self.key[0], lefts)
            else:
                needed += [row for row in rows if key_of(row) in lefts or row[-3] > now]
        return self.step(needed) if self.step is not None and needed else needed

    def all(self) -> Sequence[Delta]:
        """Removes all rows, and returns the right rows that they make."""
        batches, self.batches = self.batches, []
        rows = list(chain.from_iterable(batches))
        return self.step(rows) if self.step is not None else rows


class _PendingRows:
    """Rows that begin after the watermark."""

    def __init__(self) -> None:
        self.watermark = ALWAYS - 1
        self.numbers = count()
        self.fresh: list[_Pending] = []
        """The rows that came since the watermark changed."""
        self.later: list[_Pending] = []
        """A heap of the others."""

    @property
    def next_time(self) -> int:
        return min([pending[0] for pending in (*self.later[:1], *self.fresh)], default=FOREVER)

    def add(self, port: int, row: Occurrence) -> None:
        """Adds a row of an input that begins after the watermark."""
        self.fresh.append((row[-2], next(self.numbers), port, row))

    def pop_until(self, now: int) -> list[_Pending]:
        """Removes and returns the rows that begin up to `now`, in the order of time."""
        self.watermark = max(self.watermark, now)
        fresh, self.fresh = self.fresh, []
        due = [pending for pending in fresh if pending[0] <= now]
        if len(due) < len(fresh):
            for pending in fresh:
                if pending[0] > now:
                    heappush(self.later, pending)
        while self.later and self.later[0][0] <= now:
            due.append(heappop(self.later))
        due.sort(key=_TIME)
        return due


class _Pairing:
    """How a sequence join compares and combines two rows.

    Attributes:
        op: The node of the plan.
        left_key: Returns the columns of a left row that a right one has to agree on.
        right_key: Returns those of a right row.
        rights_are_instants: Whether each right row begins when it ends, so that later rows begin later.
        supersedes: Whether a left row takes the place of the earlier ones with its key.
    """

    def __init__(self, op: ops.SequenceJoin) -> None:
        self.op = op
        self.cells_of = cells_getter(op.keep)
        self.left_key, self.right_key = (key_of([pair[side] for pair in op.on]) for side in (LEFT, RIGHT))
        self.rights_are_instants = op.times[1] == op.times[2]
        is_plain = op.condition is None and not op.between and op.min_gap == 1 and op.max_gap is None
        self.supersedes = op.selection == "last" and self.rights_are_instants and is_plain
        self.test: Callable[..., Any] | None = None
        if op.condition is not None:
            self.test = compile_expressions("def run(x, t):\n return {0}", [op.condition], "x", "t")

    def output(self, left: Occurrence, right: Occurrence) -> Row:
        """Returns the output columns of a pair."""
        return self.cells_of((*left[:-2], *right[:-2]))

    def holds(self, left: Occurrence, right: Occurrence) -> bool:
        """Returns whether the condition holds of a pair."""
        return self.test is None or bool(self.test((*left[:-2], *right[:-2]), right[-2]))


class _Interposed:
    """The rows of an input that may be between the two of a pair, by key and in the order of their ends."""

    def __init__(self, op: ops.Between) -> None:
        self.op = op
        self.pair_key = cells_getter([column for column, _ in op.on])
        self.own_key = cells_getter([column for _, column in op.on])
        self.rows: dict[Row, list[tuple[int, int]]] = {}
        """The (end, start) of each row, sorted."""

    def add(self, row: Occurrence) -> None:
        span = self._span(row)
        spans = self.rows.setdefault(self.own_key(row), [])
        spans.insert(bisect_right(spans, span), span)

    def remove(self, row: Occurrence) -> None:
        key, span = self.own_key(row), self._span(row)
        spans = self.rows.get(key, [])
        place = bisect_right(spans, span) - 1
        if place >= 0 and spans[place] == span:
            del spans[place]
        if not spans:
            self.rows.pop(key, None)

    def _span(self, row: Occurrence) -> tuple[int, int]:
        return time_of(row[self.op.end]), time_of(row[self.op.start])

    def exists(self, pair: Row, after: int, before: int) -> bool:
        """Returns whether a row begins after one time, and ends before another one (integer ms)."""
        spans = self.rows.get(self.pair_key(pair), ())
        first = bisect_right(spans, after, key=_END)
        for end, start in spans[first:]:
            if end >= before:
                return False
            if start > after:
                return True
        return False


def time_of(term: str) -> int:
    """Returns the time (integer ms) that an xsd:integer holds."""
    return int(term[1 : term.index('"', 1)])


def cells_getter(columns: Sequence[int]) -> Callable[[Sequence[Any]], Row]:
    """Returns the function that takes some columns of a row."""
    if not columns:
        return lambda row: ()
    if len(columns) == 1:
        (column,) = columns
        return lambda row: (row[column],)
    return itemgetter(*columns)
