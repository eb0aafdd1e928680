"""Sets: bags made rows that are valid at each instant once, in whichever way their input and their place allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from squall.builders.runtime.intervals import (
    Interval,
    Intervals,
    Steps,
    add_step,
    changes,
    forget,
    inside,
    levels,
    outside,
    positive,
    unended,
    union,
)
from squall.builders.runtime.operators.codegen import compile_expressions
from squall.builders.runtime.operators.state import MIN_ROWS_TO_SWEEP, Stateful, sum_weights
from squall.builders.runtime.operators.transitive_closure import ClosureIndex as Pairs
from squall.builders.runtime.zset import Delta, Row
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER


class AppendOnlyDistinct(Stateful):
    """A set to which rows are only ever added: what is valid already is not said again.

    valid: for each row the intervals over which it is valid, or, as most often, only the start of one without an end:
    every row of every set passes here.
    """

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by
        self.valid: dict[Row, Intervals | int] = {}
        self.watermark = ALWAYS
        self.sweep_rows = MIN_ROWS_TO_SWEEP

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        new_deltas: list[Delta] = []
        valid, by = self.valid, self.by
        for entry in entries:
            key = entry[:by]
            if key not in valid:
                valid[key] = entry[-3] if entry[-2] == FOREVER else (entry[-3:-1],)
                new_deltas.append(entry if entry[-1] == 1 else (*entry[:-1], 1))
            elif (validity := valid[key]).__class__ is not int or validity > entry[-3]:
                new_deltas += self._extend(key, entry)
        if self.log is not None:
            self.note(0, new_deltas)
        return new_deltas

    def _extend(self, key: Row, entry: Delta) -> list[Delta]:
        """What an entry adds to a row that is known."""
        intervals = self._intervals(key)
        start, end = entry[-3:-1]
        if intervals[-1][0] <= start and end <= intervals[-1][1]:
            return []
        self._add(key, (start, end))
        return [(*entry[:-3], first, last, 1) for first, last in outside(start, end, intervals)]

    def _intervals(self, key: Row) -> Intervals:
        validity = self.valid.get(key, ())
        return ((validity, FOREVER),) if isinstance(validity, int) else validity

    def _add(self, key: Row, interval: Interval) -> None:
        together = union((*unended(self._intervals(key), self.watermark), interval))
        self.valid[key] = together[0][0] if len(together) == 1 and together[0][1] == FOREVER else together

    def key_width(self, slot: int) -> int | None:
        return self.by

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        for entry in entries:
            self._add(entry[: self.by], entry[-3:-1])

    def expire(self, now: int) -> None:
        # What ends at `now` is kept: a row that begins then goes on with it.
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
        self.sweep_rows = max(MIN_ROWS_TO_SWEEP, len(valid) + len(valid) // 2)

    def size(self) -> int:
        return len(self.valid)


class TransitiveClosureOperator(Stateful):
    """The transitive closure of pairs that are only ever added."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = Pairs()

    def restrict_to(self, is_own: Callable[[str], bool]) -> None:
        """Leaves to others what nodes lead to that are not its own. Nothing has come yet."""
        self.pairs = Pairs(is_own)

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(0, entries)
        return [(*pair, 1) for pair in self.pairs.add([entry[:-1] for entry in entries])]

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        self.pairs.add([entry[:-1] for entry in entries])

    def expire(self, now: int) -> None:
        self.pairs.expire(now)

    def size(self) -> int:
        return self.pairs.size()


_RULES_SLOT = 2
"""The slot of what rows were told to be made by."""


class RetractableDistinct(Stateful):
    """A set whose rows may be taken back: a row is valid while more has been said for it than against.

    Rows that agree in the first `by` columns are one. What they have behind these (a fact's rule) is counted apart, so
    that a row that becomes valid comes with what makes it so. What was to make it valid at an instant to come may be
    taken back while something else still does: then the row is told anew.
    """

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by
        self.counts: dict[Row, Steps] = {}
        self.rule_counts: dict[Row, dict[Row, Steps]] = {}
        self.valid: dict[Row, Intervals] = {}
        self.emitted_rules: dict[Row, dict[int, tuple[Row, int]]] = {}
        """What rows were told to be made by, by the instant from which on they are valid; and until when."""
        self.watermark = ALWAYS
        """Nothing that is still to come begins before."""
        self.sweep_rows = MIN_ROWS_TO_SWEEP

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(0, entries)
        return self._update(self._count(entries))

    def _count(self, entries: Sequence[Delta]) -> Iterable[Row]:
        touched: dict[Row, None] = {}
        for entry in entries:
            key, name = entry[: self.by], entry[self.by : -3]
            start, end, weight = entry[-3:]
            add_step(self.counts.setdefault(key, {}), start, end, weight)
            if name:
                add_step(self.rule_counts.setdefault(key, {}).setdefault(name, {}), start, end, weight)
            touched[key] = None
        return touched

    def _update(self, keys: Iterable[Row]) -> list[Delta]:
        """Says how the validity of rows has changed, and forgets those of which nothing is left."""
        deltas: list[Delta] = []
        for key in keys:
            self._forget(key)
            new = unended(positive(self.counts.get(key, {})), self.watermark)
            for start, end, sign in changes(unended(self.valid.get(key, ()), self.watermark), new):
                # Where something is taken back in the middle, the row begins anew behind it.
                deltas.append((*self._row(key, start if sign > 0 else end), start, end, sign))
            if key in self.rule_counts:
                deltas += self._reemitted(key, new)
            self._set(key, new)
        return deltas

    def _forget(self, key: Row) -> None:
        """Forgets how a row became valid in the past: one that comes again and again would keep all of it."""
        for steps in (self.counts.get(key, {}), *self.rule_counts.get(key, {}).values()):
            forget(steps, self.watermark)

    def _row(self, key: Row, instant: int) -> Row:
        """The row with what makes it valid at an instant behind it, if anything does."""
        return key + self._rule_at(key, instant) if self.rule_counts.get(key) else key

    def _rule_at(self, key: Row, instant: int) -> Row:
        makers = self.rule_counts[key]
        now = (name for name, steps in makers.items() if _is_valid_at(steps, instant))
        return next(now, next(iter(makers)))

    def _reemitted(self, key: Row, valid: Intervals) -> Iterator[Delta]:
        """The row where what it was told to be made by does not make it any more at the instant at which it begins."""
        names, makers = self.emitted_rules.get(key, {}), self.rule_counts[key]
        now: dict[int, tuple[Row, int]] = {}
        for start, end in valid:
            before = names[start][0] if start in names else self._rule_at(key, start)
            now[start] = before, end
            if start >= self.watermark and (before not in makers or not _is_valid_at(makers[before], start)):
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

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        if slot == _RULES_SLOT:
            self._restore_rules(entries)
            return
        for key in self._count(entries):
            self._set(key, positive(self.counts[key]))

    def _restore_rules(self, entries: Sequence[Delta]) -> None:
        for (*row, start, end), count in sorted(sum_weights(entries).items(), key=itemgetter(1)):
            key, maker = tuple(row[: self.by]), (tuple(row[self.by :]), end)
            names = self.emitted_rules.setdefault(key, {})
            if count > 0:
                names[start] = maker
            elif names.get(start) == maker:  # a row that went has no names any more
                del names[start]
            if not names:
                del self.emitted_rules[key]

    def expire(self, now: int) -> None:
        self.watermark = max(self.watermark, now)
        if len(self.counts) < self.sweep_rows:
            return
        for key in [key for key, steps in self.counts.items() if not steps or max(steps) < now]:
            del self.counts[key]
            self.rule_counts.pop(key, None)
            self.valid.pop(key, None)
            self.emitted_rules.pop(key, None)
        self.sweep_rows = max(MIN_ROWS_TO_SWEEP, 2 * len(self.counts))

    def size(self) -> int:
        return len(self.counts)


def _rule_deltas(key: Row, names: dict[int, tuple[Row, int]], weight: int) -> Iterator[Delta]:
    return ((*key, *maker, start, end, weight) for start, (maker, end) in names.items())


def _is_valid_at(steps: Steps, instant: int) -> bool:
    return any(start <= instant < end for start, end in positive(steps))


class DRedDistinct(RetractableDistinct):
    """A set in a recursion from which rows may be taken back: delete and rederive (Gupta, Mumick, Subrahmanian 1993).

    A count alone would let two facts that derive each other hold each other up. So, first, whatever is taken back
    counts as gone at once, and so does all that was derived from it (`apply` while deleting); then what still has a
    derivation from what is left comes back (`rederive`), and additions go on as usual.
    """

    def __init__(self, by: int) -> None:
        super().__init__(by)
        self.deleting = False
        self.to_rederive: dict[Row, None] = {}

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        self.note(0, entries)
        keys = self._count(entries)
        if self.deleting:
            self.to_rederive.update(dict.fromkeys(keys))
        deltas = self._delete(entries) if self.deleting else self._update(keys)
        self.note(1, deltas)
        return deltas

    def _delete(self, entries: Sequence[Delta]) -> list[Delta]:
        deltas: list[Delta] = []
        for entry in entries:
            start, end, weight = entry[-3:]
            key = entry[: self.by]
            valid = self.valid.get(key, ())
            if weight < 0 and valid:
                deleted = list(inside(start, end, valid))
                deltas += [(*self._row(key, last), first, last, -1) for first, last in deleted]
                self._set(key, tuple(part for interval in valid for part in outside(*interval, tuple(deleted))))
        return deltas

    def rederive(self) -> list[Delta]:
        """What is valid by its counts but was deleted, or added while deleting, comes in."""
        to_rederive, self.to_rederive = self.to_rederive, {}
        deltas = self._update(key for key in to_rederive if key in self.counts)
        self.note(1, deltas)
        return deltas

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        if slot == 0:
            self.to_rederive.update(dict.fromkeys(self._count(entries)))
            return
        if slot == _RULES_SLOT:
            self._restore_rules(entries)
            return
        steps: dict[Row, Steps] = {}
        for entry in entries:
            key = entry[: self.by]
            if key not in steps:
                steps[key] = {}
                for start, end in self.valid.get(key, ()):
                    add_step(steps[key], start, end, 1)
            add_step(steps[key], *entry[-3:])
        for key, key_steps in steps.items():
            self.valid[key] = positive(key_steps)


_Span = tuple[int, int, int, int]
"""(since, start, end, count): a row holds so often over [start, end), and has held since a time."""


class TimeDependentOperator(RetractableDistinct):
    """An expression that is computed at the time since which a row holds, and again when that changes. It counts its
    rows as a set does, but hands each on as often as it comes."""

    def __init__(self, op: ops.Filter | ops.Extend, width: int) -> None:
        super().__init__(width)
        self.compute = compile_expressions("def run(x, t):\n return {0}", [op.expression], "x", "t")
        self.extends = isinstance(op, ops.Extend)
        self.keeps_unbound = isinstance(op, ops.Extend) and op.keep_unbound
        self.emitted: dict[Row, tuple[_Span, ...]] = {}
        self.begin = ALWAYS
        """The time that the expression takes for that of what always holds (integer ms)."""

    def _update(self, keys: Iterable[Row]) -> list[Delta]:
        deltas: list[Delta] = []
        for key in keys:
            self._forget(key)
            old, new = (self._unexpired(spans) for spans in (self.emitted.get(key, ()), _spans(self.counts[key])))
            deltas += self._rows(key, [span for span in old if span not in new], -1)
            deltas += self._rows(key, [span for span in new if span not in old], 1)
            self._set_emitted(key, new)
        return deltas

    def _unexpired(self, spans: Iterable[_Span]) -> tuple[_Span, ...]:
        return tuple(span for span in spans if span[2] >= self.watermark)

    def _set_emitted(self, key: Row, spans: tuple[_Span, ...]) -> None:
        self._set(key, positive(self.counts[key]))
        if spans:
            self.emitted[key] = spans
        else:
            self.emitted.pop(key, None)

    def _rows(self, row: Row, spans: Iterable[_Span], sign: int) -> Iterator[Delta]:
        for since, start, end, count in spans:
            value = self.compute(row, self.begin if since == ALWAYS else since)
            if not self.extends and value:
                yield (*row, start, end, sign * count)
            elif self.extends and isinstance(value, str):
                yield (*row, value, start, end, sign * count)
            elif self.keeps_unbound:
                yield (*row, None, start, end, sign * count)

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        for key in self._count(entries):
            self._set_emitted(key, tuple(_spans(self.counts[key])))

    def expire(self, now: int) -> None:
        size_before = len(self.counts)
        super().expire(now)
        if len(self.counts) < size_before:
            self.emitted = {key: spans for key, spans in self.emitted.items() if key in self.counts}


def _spans(steps: Steps) -> Iterator[_Span]:
    """The spans over which a row holds equally often, each with the time since which it has held without a gap."""
    validity = positive(steps)
    for start, end, count in levels(steps):
        if count > 0:
            yield next(first for first, last in validity if first <= start < last), start, end, count
