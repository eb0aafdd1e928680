"""The operators on the validity of rows: windows over derived facts, and facts at a time of their own.

Each stores the intervals over which a row of its input is valid, as a set, and outputs the row over other intervals
(`squall.plan.operators.Temporal`). What a growing set of intervals gives only grows.

In a recursion validity may grow for ever (``a :- a in [1 sec]``). So what begins to be valid is processed when time has
reached its begin. Retractions are processed at once, in the first phase of delete and rederive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

from squall.builders.runtime.intervals import Interval, Intervals, inside, union
from squall.builders.runtime.operators.distinct import DRedDistinct
from squall.builders.runtime.operators.state import TimedOperator, sum_weights
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row
from squall.errors import BuilderError
from squall.functions.values import integer, number
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER


def shifted(time: int, length: int) -> int:
    """Returns a time that is later by a length (integer ms). The ends of time stay."""
    return time if time in (ALWAYS, FOREVER) else time + length


def _on_grid(time: int, step: int) -> int:
    """Returns the first multiple of a step at a time or after it; the time itself without a step."""
    return -(-time // step) * step if step and time not in (ALWAYS, FOREVER) else time


_FUTURE_SLOT = 1
"""The slot of what begins to be valid later. Compaction would unite it with what is valid already, in one slot."""


def _negated(deltas: Iterable[Delta]) -> list[Delta]:
    return [(*delta[:-1], -delta[-1]) for delta in deltas]


class TemporalOperator(DRedDistinct, TimedOperator):
    """A set of rows, each over intervals that are a function of those over which its input is valid.

    Attributes:
        memory: For how long (integer ms) intervals that have ended still count. In the state they are so much later.
        now: The time that was reached (integer ms).
        future: (start, number, delta) of what begins to be valid after that, as a heap.
    """

    kind = "temporal"

    def __init__(self, width: int, memory: int = 0, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(width, tuning)
        self.memory = memory
        self.now = ALWAYS - 1
        self.future: list[tuple[int, int, Delta]] = []
        self.numbers = count()

    @abstractmethod
    def _mapped(self, key: Row, intervals: Intervals) -> Intervals:
        """Returns the intervals over which a row is output, whose input is valid over these."""

    @abstractmethod
    def _reach(self, key: Row, start: int, end: int) -> Interval:
        """Returns an interval that has all instants at which the output depends on the input over [start, end)."""

    def _outputs(self, deltas: list[Delta]) -> list[Delta]:
        """Returns the output for changes of the mapped intervals of rows."""
        return deltas

    @property
    def next_time(self) -> int:
        return self.future[0][0] if self.future else FOREVER

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        retracted = [delta for delta in deltas if delta[-1] <= 0]
        added = [delta for delta in deltas if delta[-1] > 0]
        for delta in added:
            heappush(self.future, (delta[-3], next(self.numbers), delta))
        self.note(0, self._stored(retracted, self.memory))
        self.note(_FUTURE_SLOT, added)
        return self._change(retracted)

    def advance(self, now: int) -> list[Delta]:
        """Processes what begins to be valid up to `now` (integer ms), and returns the output deltas."""
        self.now = max(self.now, now)
        return self._change(self._due())

    def _due(self) -> list[Delta]:
        due = []
        while self.future and self.future[0][0] <= self.now:
            due.append(heappop(self.future)[-1])
        self.note(_FUTURE_SLOT, _negated(due))
        self.note(0, self._stored(due, self.memory))
        return due

    def _stored(self, deltas: Iterable[Delta], memory: int) -> list[Delta]:
        if not memory:
            return list(deltas)
        return [(*delta[:-3], shifted(delta[-3], memory), shifted(delta[-2], memory), delta[-1]) for delta in deltas]

    def _change(self, deltas: Sequence[Delta]) -> list[Delta]:
        keys = dict.fromkeys(self._count(self._stored(deltas, self.memory)))
        if not self.deleting:
            return self._outputs(self._update(keys))
        self.to_rederive.update(keys)
        for key in keys:
            self._forget(key)
        affected = [(*delta[:-3], *self._reach(delta[: self.by], *delta[-3:-1]), -1) for delta in deltas]
        return self._outputs(self._delete(affected))

    def _positive(self, key: Row) -> Intervals:
        return self._mapped(key, self._intervals(key))

    def _intervals(self, key: Row) -> Intervals:
        """Returns the intervals over which a row of the input is valid."""
        intervals = super()._positive(key)
        return tuple((shifted(start, -self.memory), shifted(end, -self.memory)) for start, end in intervals)

    def rederive(self) -> list[Delta]:
        keys, self.to_rederive = self.to_rederive, {}
        return self._outputs(self._update(keys))

    @property
    def is_prolonged(self) -> bool:
        """Whether all that begins to be valid later prolongs what is valid already, one interval after the other."""
        later: dict[Row, list[Interval]] = {}
        for _, _, delta in self.future:
            later.setdefault(delta[: self.by], []).append(delta[-3:-1])
        return all(
            {first for first, _ in union((*self._intervals(key), *intervals))}
            <= {first for first, _ in self._intervals(key)}
            for key, intervals in later.items()
        )

    def prolong_for_ever(self) -> None:
        """Makes all that begins to be valid later be so for ever."""
        self.note(_FUTURE_SLOT, _negated(delta for _, _, delta in self.future))
        self.future = [(start, place, (*delta[:-2], FOREVER, delta[-1])) for start, place, delta in self.future]
        self.note(_FUTURE_SLOT, (delta for _, _, delta in self.future))

    def resume_at(self, watermark: int) -> None:
        self.now = watermark

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == _FUTURE_SLOT:
            # A worker that goes on with its own state gets what has been processed since, with a weight below 0.
            weights = sum_weights([*(delta for _, _, delta in self.future), *deltas])
            self.future = [(row[-2], next(self.numbers), (*row, weight)) for row, weight in weights.items()]
            heapify(self.future)
            return
        for key in self._count(deltas):
            self._set(key, self._positive(key))

    def size(self) -> int:
        return super().size() + len(self.future)


class DilateOperator(TemporalOperator):
    """Rows that were valid at some instant of the last time (`squall.plan.operators.Dilate`)."""

    def __init__(self, op: ops.Dilate, width: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(width, op.length + op.step, tuning)
        self.op = op

    def _mapped(self, key: Row, intervals: Intervals) -> Intervals:
        longer = union((start, shifted(end, self.op.length)) for start, end in intervals)
        return _gridded(longer, self.op.step)

    def _reach(self, key: Row, start: int, end: int) -> Interval:
        return start, shifted(end, self.op.length + self.op.step)


class ErodeOperator(TemporalOperator):
    """Rows that were valid at all instants of the last time (`squall.plan.operators.Erode`)."""

    def __init__(self, op: ops.Erode, width: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(width, op.step, tuning)
        self.op = op

    def _mapped(self, key: Row, intervals: Intervals) -> Intervals:
        shorter = ((shifted(start, self.op.length), end) for start, end in intervals)
        return _gridded(tuple((start, end) for start, end in shorter if start < end), self.op.step)

    def _reach(self, key: Row, start: int, end: int) -> Interval:
        return start, shifted(end, self.op.length + self.op.step)


def _gridded(intervals: Intervals, step: int) -> Intervals:
    """Returns the intervals whose content is that of the last multiple of a step."""
    if not step:
        return intervals
    moved = ((_on_grid(start, step), _on_grid(end, step)) for start, end in intervals)
    return tuple((start, end) for start, end in moved if start < end)


class ScheduleOperator(TemporalOperator):
    """Rows at the time that one of their columns holds (`squall.plan.operators.Schedule`)."""

    def __init__(self, op: ops.Schedule, width: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(width, 0, tuning)
        self.op = op

    def _time(self, key: Row) -> int | None:
        """Returns the time of a row (integer ms), or None if it has none."""
        value = number(key[self.op.time] or "")
        return value.value * self.op.tick if value is not None and isinstance(value.value, int) else None

    def _mapped(self, key: Row, intervals: Intervals) -> Intervals:
        time = self._time(key)
        if time is None or not intervals or intervals[0][0] > time:
            return ()
        return ((time, time + self.op.tick),)

    def _reach(self, key: Row, start: int, end: int) -> Interval:
        time = self._time(key)
        return (start, start) if time is None else (time, time + self.op.tick)

    def _forget(self, key: Row) -> None:
        # A row that was valid before the watermark is certain: what was output for it stays, whatever comes.
        count = self.counts.get(key)
        if count is not None and count.positive and count.positive[0][0] < self.watermark:
            del self.counts[key]
            self.valid.pop(key, None)


class AtOperator(TemporalOperator):
    """Rows with the times at which they were valid (`squall.plan.operators.At`).

    The mapped intervals are those of the input, up to the time that was reached: each of their instants is output.

    Attributes:
        open: (time, row) of rows that are still valid at their next instant, as a heap.
    """

    def __init__(self, op: ops.At, width: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(width, 0, tuning)
        self.op = op
        self.open: list[tuple[int, Row]] = []

    @property
    def next_time(self) -> int:
        return min(super().next_time, self.open[0][0] if self.open else FOREVER)

    def advance(self, now: int) -> list[Delta]:
        before = self.now
        if now >= FOREVER - 1:
            self.check_ends()
        self.now = max(self.now, now)
        due = self._due()
        keys = dict.fromkeys(self._count(due))
        while self.open and self.open[0][0] <= self.now:
            keys[heappop(self.open)[1]] = None
        deltas = self._outputs(self._update(keys))
        if self.now > before or due:
            self._reopen(keys)
        return deltas

    def _reopen(self, keys: Iterable[Row]) -> None:
        """Adds the next instants of rows that are still valid."""
        for key in keys:
            for start, end in self._intervals(key):
                time = _on_grid(max(start, self.now + 1), self.op.tick)
                if time < end:
                    heappush(self.open, (time, key))
                    break

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        super().restore(slot, deltas)
        self.open = []
        self._reopen(self.counts)

    def _mapped(self, key: Row, intervals: Intervals) -> Intervals:
        if intervals and intervals[0][0] == ALWAYS:
            raise self._endless(key, "has always held")
        return tuple(inside(ALWAYS, self.now + 1, intervals))

    def check_ends(self) -> None:
        """Raises BuilderError if a row holds for ever."""
        for _, key in self.open:
            if self._intervals(key) and self._intervals(key)[-1][1] == FOREVER:
                raise self._endless(key, "holds for ever behind the end of the input")

    def _endless(self, key: Row, reason: str) -> BuilderError:
        row = " ".join(cell or "unbound" for cell in key) or "a fact"
        hint = "read it through a window without `at`"
        return BuilderError(f"a window with `at` lists the times of {row}, which {reason}", hint=hint)

    def _reach(self, key: Row, start: int, end: int) -> Interval:
        return start, end

    def _outputs(self, deltas: list[Delta]) -> list[Delta]:
        return [output for delta in deltas for output in self._instants(delta)]

    def _instants(self, delta: Delta) -> Iterator[Delta]:
        """Yields a row for each instant of a change of its intervals."""
        tick, step = self.op.tick, self.op.step
        for time in range(_on_grid(delta[-3], tick), delta[-2], tick):
            start, end = _on_grid(time, step), _on_grid(time + self.op.length + tick, step)
            if start < end:
                yield (*delta[:-3], integer(time // tick), start, end, delta[-1])
