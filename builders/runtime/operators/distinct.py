"""Distinct: each row once at each instant, in the way that its input and its place in the plan allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from squall.builders.runtime.intervals import (
    Interval,
    Intervals,
    TimedCount,
    changes,
    count_of,
    inside,
    outside,
    unended,
    union,
)
from squall.builders.runtime.operators.codegen import compile_expressions
from squall.builders.runtime.operators.state import Stateful, sum_weights
from squall.builders.runtime.operators.transitive_closure import ClosureIndex as Pairs
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row
from squall.functions import lookup
from squall.functions.deadlines import true_intervals
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER


class AppendOnlyDistinct(Stateful):
    """A set to which rows are only added. A row is not emitted again while it is valid.

    Attributes:
        valid: The intervals over which each row is valid, or, as in most cases, only the start of one that never ends.
            Every row of every set passes here.
    """

    kind = "append-only-distinct"

    def __init__(self, by: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.by = by
        self.valid: dict[Row, Intervals | int] = {}
        self.watermark = ALWAYS
        self.min_rows_to_sweep = self.sweep_rows = tuning.min_rows_to_sweep

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        new_deltas: list[Delta] = []
        places: dict[Row, int] = {}
        valid, by = self.valid, self.by
        for delta in deltas:
            key = delta[:by]
            if key not in valid:
                valid[key] = delta[-3] if delta[-2] == FOREVER else (delta[-3:-1],)
                new_deltas.append(delta if delta[-1] == 1 else (*delta[:-1], 1))
                continue
            validity = valid[key]
            if validity.__class__ is int:
                if validity > delta[-3]:
                    new_deltas += self._extend(key, delta)
                continue
            start, end = delta[-3:-1]
            since, until = validity[-1]  # type: ignore[index]
            if end == FOREVER or not since <= start <= until:
                new_deltas += self._extend(key, delta)
            elif until < end:
                valid[key] = (*validity[:-1], (since, end))  # type: ignore[index]
                _prolong(new_deltas, places, key, (*delta[:-3], until, end, 1))
        if self.log is not None:
            self.note(0, new_deltas)
        return new_deltas

    def _extend(self, key: Row, delta: Delta) -> list[Delta]:
        """Returns what a delta adds to the validity of a row that is in the set."""
        intervals = self._intervals(key)
        start, end = delta[-3:-1]
        if intervals[-1][0] <= start and end <= intervals[-1][1]:
            return []
        self._add(key, (start, end))
        return [(*delta[:-3], first, last, 1) for first, last in outside(start, end, intervals)]

    def _intervals(self, key: Row) -> Intervals:
        validity = self.valid.get(key, ())
        return ((validity, FOREVER),) if isinstance(validity, int) else validity

    def _add(self, key: Row, interval: Interval) -> None:
        together = union((*unended(self._intervals(key), self.watermark), interval))
        self.valid[key] = together[0][0] if len(together) == 1 and together[0][1] == FOREVER else together

    def key_width(self, slot: int) -> int | None:
        return self.by

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            self._add(delta[: self.by], delta[-3:-1])

    def expire(self, now: int) -> None:
        # A row that ends at `now` stays: a row that begins then continues it.
        self.watermark = max(self.watermark, now)
        if len(self.valid) < self.sweep_rows:
            return
        valid = self.valid
        expired = [key for key, validity in valid.items() if not isinstance(validity, int) and validity[0][1] < now]
        for key in expired:
            if left := unended(self._intervals(key), now):
                valid[key] = left
            else:
                del valid[key]
        self.sweep_rows = max(self.min_rows_to_sweep, len(valid) + len(valid) // 2)

    def size(self) -> int:
        return len(self.valid)


def _prolong(deltas: list[Delta], places: dict[Row, int], key: Row, delta: Delta) -> None:
    """Adds a delta that prolongs a row. What prolongs it several times in one batch becomes one delta."""
    place = places.get(key)
    if place is not None and deltas[place][-2] == delta[-3]:
        deltas[place] = (*deltas[place][:-2], delta[-2], 1)
    else:
        places[key] = len(deltas)
        deltas.append(delta)


class TransitiveClosureOperator(Stateful):
    """The transitive closure of pairs that are only added."""

    kind = "transitive-closure"

    def __init__(self, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.tuning = tuning
        self.pairs = Pairs(tuning=tuning)

    def restrict_to(self, is_own: Callable[[str], bool]) -> None:
        """Restricts the closure to pairs that begin at its own nodes. No delta has come before."""
        self.pairs = Pairs(is_own, self.tuning)

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(0, deltas)
        return [(*pair, 1) for pair in self.pairs.add([delta[:-1] for delta in deltas])]

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        self.pairs.add([delta[:-1] for delta in deltas])

    def expire(self, now: int) -> None:
        self.pairs.expire(now)

    def size(self) -> int:
        return self.pairs.size()


_RULES_SLOT = 2
"""The slot of the rules that rows were emitted with."""


class RetractableDistinct(Stateful):
    """A set whose rows may be retracted: a row is valid while its count is above 0.

    Rows that agree in the first `by` columns are one. The cells behind these (the rule of a fact) are counted
    separately, so that a valid row is emitted with a rule that derives it. If the rule of a row that will become valid
    is retracted while another rule still derives the row, the row is emitted again.
    """

    kind = "retractable-distinct"

    def __init__(self, by: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.by = by
        self.counts: dict[Row, TimedCount] = {}
        self.rule_counts: dict[Row, dict[Row, TimedCount]] = {}
        self.valid: dict[Row, Intervals] = {}
        self.emitted_rules: dict[Row, dict[int, tuple[Row, int]]] = {}
        """The rule that each row was emitted with, by the instant from which the row is valid; and the end of that."""
        self.watermark = ALWAYS
        """No later delta begins before it (integer ms)."""
        self.min_rows_to_sweep = self.sweep_rows = tuning.min_rows_to_sweep

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(0, deltas)
        return self._update(self._count(deltas))

    def _count(self, deltas: Sequence[Delta]) -> Iterable[Row]:
        touched: dict[Row, None] = {}
        for delta in deltas:
            key, name = delta[: self.by], delta[self.by : -3]
            start, end, weight = delta[-3:]
            count_of(self.counts, key).add(start, end, weight)
            if name:
                count_of(self.rule_counts.setdefault(key, {}), name).add(start, end, weight)
            touched[key] = None
        return touched

    def _update(self, keys: Iterable[Row]) -> list[Delta]:
        """Returns the changes of the validity of rows, and drops rows that are never valid."""
        deltas: list[Delta] = []
        for key in keys:
            self._forget(key)
            new = unended(self._positive(key), self.watermark)
            for start, end, sign in changes(unended(self.valid.get(key, ()), self.watermark), new):
                # After a retraction in the middle of an interval, the row begins again behind it.
                deltas.append((*self._row(key, start if sign > 0 else end), start, end, sign))
            if key in self.rule_counts:
                deltas += self._reemitted(key, new)
            self._set(key, new)
        return deltas

    def _forget(self, key: Row) -> None:
        """Merges the past changes of a row; otherwise a row that comes again and again would keep all of them."""
        if key in self.counts:
            self.counts[key].forget(self.watermark)
        for count in self.rule_counts.get(key, {}).values():
            count.forget(self.watermark)

    def _positive(self, key: Row) -> Intervals:
        """Returns when a row is valid by its count."""
        return self.counts[key].positive if key in self.counts else ()

    def _row(self, key: Row, instant: int) -> Row:
        """Returns the row, followed by a rule that derives it at an instant, if there is any."""
        return key + self._rule_at(key, instant) if self.rule_counts.get(key) else key

    def _rule_at(self, key: Row, instant: int) -> Row:
        makers = self.rule_counts[key]
        now = (name for name, count in makers.items() if count.is_positive_at(instant))
        return next(now, next(iter(makers)))

    def _reemitted(self, key: Row, valid: Intervals) -> Iterator[Delta]:
        """Yields the row again where the rule that it was emitted with does not derive it at its start any more."""
        names, makers = self.emitted_rules.get(key, {}), self.rule_counts[key]
        now: dict[int, tuple[Row, int]] = {}
        for start, end in valid:
            before = names[start][0] if start in names else self._rule_at(key, start)
            now[start] = before, end
            if start >= self.watermark and (before not in makers or not makers[before].is_positive_at(start)):
                after = self._rule_at(key, start)
                now[start] = after, end
                yield (*key, *before, start, end, -1)
                yield (*key, *after, start, end, 1)
        self._set_emitted_rules(key, now)

    def _set_emitted_rules(self, key: Row, now: dict[int, tuple[Row, int]]) -> None:
        before = self.emitted_rules.pop(key, {})
        if now:
            self.emitted_rules[key] = now
        if self.log is not None and now != before:
            self.note(_RULES_SLOT, (delta for delta in _rule_deltas(key, before, -1) if delta[-2] >= self.watermark))
            self.note(_RULES_SLOT, _rule_deltas(key, now, 1))

    def _set(self, key: Row, valid: Intervals) -> None:
        if valid:
            self.valid[key] = valid
            return
        self.valid.pop(key, None)
        self._set_emitted_rules(key, {})
        if not self.counts.get(key):
            self.counts.pop(key, None)
            self.rule_counts.pop(key, None)

    def key_width(self, slot: int) -> int | None:
        return self.by

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == _RULES_SLOT:
            self._restore_rules(deltas)
            return
        for key in self._count(deltas):
            self._set(key, self._positive(key))

    def _restore_rules(self, deltas: Sequence[Delta]) -> None:
        for (*row, start, end), count in sorted(sum_weights(deltas).items(), key=itemgetter(1)):
            key, maker = tuple(row[: self.by]), (tuple(row[self.by :]), end)
            names = self.emitted_rules.setdefault(key, {})
            if count > 0:
                names[start] = maker
            elif names.get(start) == maker:  # a row that is gone has no rules any more
                del names[start]
            if not names:
                del self.emitted_rules[key]

    def expire(self, now: int) -> None:
        self.watermark = max(self.watermark, now)
        if len(self.counts) < self.sweep_rows:
            return
        for key in [key for key, count in self.counts.items() if not count or count.instants[-1] < now]:
            del self.counts[key]
            self.rule_counts.pop(key, None)
            self.valid.pop(key, None)
            self.emitted_rules.pop(key, None)
        self.sweep_rows = max(self.min_rows_to_sweep, 2 * len(self.counts))

    def size(self) -> int:
        return len(self.counts)


def _rule_deltas(key: Row, names: dict[int, tuple[Row, int]], weight: int) -> Iterator[Delta]:
    return ((*key, *maker, start, end, weight) for start, (maker, end) in names.items())


class DRedDistinct(RetractableDistinct):
    """A set in a recursion from which rows may be retracted: delete and rederive (Gupta, Mumick, Subrahmanian 1993).

    A count alone would let two facts that derive each other support each other. Therefore a retracted row is first
    deleted at once, with all that was derived from it (`apply` while deleting). Then rows that still have a derivation
    come back (`rederive`), and additions are processed as usual.
    """

    kind = "dred-distinct"

    def __init__(self, by: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(by, tuning)
        self.deleting = False
        self.to_rederive: dict[Row, None] = {}

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        self.note(0, deltas)
        keys = self._count(deltas)
        if self.deleting:
            self.to_rederive.update(dict.fromkeys(keys))
        output = self._delete(deltas) if self.deleting else self._update(keys)
        self.note(1, output)
        return output

    def _delete(self, deltas: Sequence[Delta]) -> list[Delta]:
        output: list[Delta] = []
        for delta in deltas:
            start, end, weight = delta[-3:]
            key = delta[: self.by]
            valid = self.valid.get(key, ())
            if weight < 0 and valid:
                deleted = list(inside(start, end, valid))
                output += [(*self._row(key, last), first, last, -1) for first, last in deleted]
                self._set(key, tuple(part for interval in valid for part in outside(*interval, tuple(deleted))))
        return output

    def rederive(self) -> list[Delta]:
        """Returns rows that are valid by their counts but were deleted, or that were added during the deletion."""
        to_rederive, self.to_rederive = self.to_rederive, {}
        deltas = self._update(key for key in to_rederive if key in self.counts)
        self.note(1, deltas)
        return deltas

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == 0:
            self.to_rederive.update(dict.fromkeys(self._count(deltas)))
            return
        if slot == _RULES_SLOT:
            self._restore_rules(deltas)
            return
        counts: dict[Row, TimedCount] = {}
        for delta in deltas:
            key = delta[: self.by]
            if key not in counts:
                for start, end in self.valid.get(key, ()):
                    count_of(counts, key).add(start, end, 1)
            count_of(counts, key).add(*delta[-3:])
        for key, count in counts.items():
            self.valid[key] = count.positive


_Span = tuple[int, int, int, int]
"""(since, start, end, weight): a row is valid `weight` times more over [start, end), and has been valid since
`since`."""


class TimeDependentOperator(RetractableDistinct):
    """An expression of the time since which a row has held. It is computed again when that time changes.

    Rows are counted as in a set, but each is emitted as often as it is valid. What comes while that time stays the same
    is emitted as it comes.
    """

    kind = "time-dependent"

    def __init__(self, op: ops.Filter | ops.Extend, width: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(width, tuning)
        self.compute = compile_expressions("def run(x, t):\n return {0}", [op.expression], "x", "t")
        self.extends = isinstance(op, ops.Extend)
        self.keeps_unbound = isinstance(op, ops.Extend) and op.keep_unbound
        self.tells_always = isinstance(op.expression, ops.Invoke) and lookup(op.expression.function).tells_always
        self.begin = ALWAYS
        """The time that the expression uses for rows that always hold (integer ms)."""

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(0, deltas)
        by_row: dict[Row, list[tuple[int, int, int]]] = {}
        for delta in deltas:
            by_row.setdefault(delta[: self.by], []).append(delta[-3:])
        return [delta for row, changes in by_row.items() for delta in self._rows(row, self._spans(row, changes))]

    def _spans(self, row: Row, changes: Sequence[tuple[int, int, int]]) -> Iterator[_Span]:
        """Adds changes to the count of a row; yields by how much its count changes, with the time since it has held."""
        count = count_of(self.counts, row)
        count.forget(self.watermark)
        old = count.positive
        for change in changes:
            count.add(*change)
        new = count.positive
        ends = dict(old)
        common = tuple((start, min(end, ends[start])) for start, end in new if start in ends)
        for since, end in common:
            yield from _clipped(since, changes, ((since, end),))
        for since, end in old:
            old_parts = tuple(outside(since, end, common))
            yield from _clipped(since, changes, old_parts)
            yield from _clipped(
                since, [(first, last, -many) for first, last, many in _levels(count, old_parts)], old_parts
            )
        for since, end in new:
            new_parts = tuple(outside(since, end, common))
            yield from _clipped(since, _levels(count, new_parts), new_parts)
        if not count:
            del self.counts[row]

    def _rows(self, row: Row, spans: Iterable[_Span]) -> Iterator[Delta]:
        for since, start, end, weight in spans:
            value = self.compute(row, self.begin if since == ALWAYS and not self.tells_always else since)
            if not self.extends and value:
                yield (*row, start, end, weight)
            elif self.extends and isinstance(value, str):
                yield (*row, value, start, end, weight)
            elif self.keeps_unbound:
                yield (*row, None, start, end, weight)

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        for row in self._count(deltas):
            if not self.counts[row]:
                del self.counts[row]


class DeadlineOperator(TimeDependentOperator):
    """A test that compares the time with terms of the row: it restricts the validity of the row.

    Args:
        op: The test.
        operands: What it compares the time with (`squall.functions.deadlines.time_operands`).
        width: The number of columns.
    """

    def __init__(
        self, op: ops.Filter, operands: Sequence[ops.Expression], width: int, tuning: Tuning = DEFAULT_TUNING
    ) -> None:
        super().__init__(op, width, tuning)
        values_code = "".join(f"{{{number}}}, " for number in range(len(operands)))
        self.terms = compile_expressions(f"def run(x, t):\n return ({values_code})", operands, "x", "t")

    def _rows(self, row: Row, spans: Iterable[_Span]) -> Iterator[Delta]:
        def test(time: int) -> bool:
            return bool(self.compute(row, time))

        terms = self.terms(row, None)
        for since, start, end, weight in spans:
            # What always holds has the time `begin` until then.
            for first, last in true_intervals(terms, test, min(start, since), end, self.begin):
                if max(first, start) < last:
                    yield (*row, max(first, start), last, weight)


def _levels(count: TimedCount, intervals: Intervals) -> Iterable[tuple[int, int, int]]:
    """Returns the levels of a count from the first of some intervals on."""
    return count.levels(intervals[0][0]) if intervals else ()


def _clipped(since: int, changes: Iterable[tuple[int, int, int]], intervals: Intervals) -> Iterator[_Span]:
    """Yields the parts of changes that lie in some intervals, in which a row has held since one time."""
    for start, end, weight in changes:
        for first, last in inside(start, end, intervals):
            yield since, first, last, weight
