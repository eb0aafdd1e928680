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
from squall.builders.runtime.operators.codegen import computed
from squall.builders.runtime.operators.state import MIN_ROWS_TO_SWEEP, Stateful, added
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
        self.passed = ALWAYS
        self.limit = MIN_ROWS_TO_SWEEP

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        new_deltas: list[Delta] = []
        valid, by = self.valid, self.by
        for entry in entries:
            key = entry[:by]
            if key not in valid:
                valid[key] = entry[-3] if entry[-2] == FOREVER else (entry[-3:-1],)
                new_deltas.append(entry if entry[-1] == 1 else (*entry[:-1], 1))
            elif (validity := valid[key]).__class__ is not int or validity > entry[-3]:
                new_deltas += self._more(key, entry)
        if self.log is not None:
            self.note(0, new_deltas)
        return new_deltas

    def _more(self, key: Row, entry: Delta) -> list[Delta]:
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
        together = union((*unended(self._intervals(key), self.passed), interval))
        self.valid[key] = together[0][0] if len(together) == 1 and together[0][1] == FOREVER else together

    def key_width(self, slot: int) -> int | None:
        return self.by

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        for entry in entries:
            self._add(entry[: self.by], entry[-3:-1])

    def expire(self, now: int) -> None:
        # What ends at `now` is kept: a row that begins then goes on with it.
        self.passed = max(self.passed, now)
        if len(self.valid) < self.limit:
            return
        valid = self.valid
        expired = [key for key, validity in valid.items() if not isinstance(validity, int) and validity[0][1] < now]
        for key in expired:
            if left := unended(self._intervals(key), now):
                valid[key] = left
            else:
                del valid[key]
        self.limit = max(MIN_ROWS_TO_SWEEP, len(valid) + len(valid) // 2)

    def size(self) -> int:
        return len(self.valid)


class TransitiveClosureOperator(Stateful):
    """The transitive closure of pairs that are only ever added."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = Pairs()

    def share(self, is_own: Callable[[str], bool]) -> None:
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
        self.makers: dict[Row, dict[Row, Steps]] = {}
        self.valid: dict[Row, Intervals] = {}
        self.named: dict[Row, dict[int, tuple[Row, int]]] = {}
        """What rows were told to be made by, by the instant from which on they are valid; and until when."""
        self.passed = ALWAYS
        """Nothing that is still to come begins before."""
        self.limit = MIN_ROWS_TO_SWEEP

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
                add_step(self.makers.setdefault(key, {}).setdefault(name, {}), start, end, weight)
            touched[key] = None
        return touched

    def _update(self, keys: Iterable[Row]) -> list[Delta]:
        """Says how the validity of rows has changed, and forgets those of which nothing is left."""
        deltas: list[Delta] = []
        for key in keys:
            self._forget(key)
            new = unended(positive(self.counts.get(key, {})), self.passed)
            for start, end, sign in changes(unended(self.valid.get(key, ()), self.passed), new):
                # Where something is taken back in the middle, the row begins anew behind it.
                deltas.append((*self._row(key, start if sign > 0 else end), start, end, sign))
            if key in self.makers:
                deltas += self._reemitted(key, new)
            self._set(key, new)
        return deltas

    def _forget(self, key: Row) -> None:
        """Forgets how a row became valid in the past: one that comes again and again would keep all of it."""
        for steps in (self.counts.get(key, {}), *self.makers.get(key, {}).values()):
            forget(steps, self.passed)

    def _row(self, key: Row, instant: int) -> Row:
        """The row with what makes it valid at an instant behind it, if anything does."""
        return key + self._maker(key, instant) if self.makers.get(key) else key

    def _maker(self, key: Row, instant: int) -> Row:
        makers = self.makers[key]
        now = (name for name, steps in makers.items() if _holds(steps, instant))
        return next(now, next(iter(makers)))

    def _reemitted(self, key: Row, valid: Intervals) -> Iterator[Delta]:
        """The row where what it was told to be made by does not make it any more at the instant at which it begins."""
        names, makers = self.named.get(key, {}), self.makers[key]
        now: dict[int, tuple[Row, int]] = {}
        for start, end in valid:
            before = names[start][0] if start in names else self._maker(key, start)
            now[start] = before, end
            if start >= self.passed and (before not in makers or not _holds(makers[before], start)):
                after = self._maker(key, start)
                now[start] = after, end
                yield (*key, *before, start, end, -1)
                yield (*key, *after, start, end, 1)
        self._name(key, now)

    def _name(self, key: Row, now: dict[int, tuple[Row, int]]) -> None:
        before = self.named.pop(key, {})
        if now:
            self.named[key] = now
        if self.log is not None and now != before:
            self.note(_RULES_SLOT, (delta for delta in _named_deltas(key, before, -1) if delta[-2] >= self.passed))
            self.note(_RULES_SLOT, _named_deltas(key, now, 1))

    def _set(self, key: Row, valid: Intervals) -> None:
        if valid:
            self.valid[key] = valid
            return
        self.valid.pop(key, None)
        self._name(key, {})
        if not self.counts.get(key):
            self.counts.pop(key, None)
            self.makers.pop(key, None)

    def key_width(self, slot: int) -> int | None:
        return self.by

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        if slot == _RULES_SLOT:
            self._restore_names(entries)
            return
        for key in self._count(entries):
            self._set(key, positive(self.counts[key]))

    def _restore_names(self, entries: Sequence[Delta]) -> None:
        for (*row, start, end), count in sorted(added(entries).items(), key=itemgetter(1)):
            key, maker = tuple(row[: self.by]), (tuple(row[self.by :]), end)
            names = self.named.setdefault(key, {})
            if count > 0:
                names[start] = maker
            elif names.get(start) == maker:  # a row that went has no names any more
                del names[start]
            if not names:
                del self.named[key]

    def expire(self, now: int) -> None:
        self.passed = max(self.passed, now)
        if len(self.counts) < self.limit:
            return
        for key in [key for key, steps in self.counts.items() if not steps or max(steps) < now]:
            del self.counts[key]
            self.makers.pop(key, None)
            self.valid.pop(key, None)
            self.named.pop(key, None)
        self.limit = max(MIN_ROWS_TO_SWEEP, 2 * len(self.counts))

    def size(self) -> int:
        return len(self.counts)


def _named_deltas(key: Row, names: dict[int, tuple[Row, int]], weight: int) -> Iterator[Delta]:
    return ((*key, *maker, start, end, weight) for start, (maker, end) in names.items())


def _holds(steps: Steps, instant: int) -> bool:
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
        self.unsettled: dict[Row, None] = {}

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        self.note(0, entries)
        keys = self._count(entries)
        if self.deleting:
            self.unsettled.update(dict.fromkeys(keys))
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
        unsettled, self.unsettled = self.unsettled, {}
        deltas = self._update(key for key in unsettled if key in self.counts)
        self.note(1, deltas)
        return deltas

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        if slot == 0:
            self.unsettled.update(dict.fromkeys(self._count(entries)))
            return
        if slot == _RULES_SLOT:
            self._restore_names(entries)
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


_Stretch = tuple[int, int, int, int]
"""(since, start, end, count): a row holds so often over [start, end), and has held since a time."""


class TimeDependentOperator(RetractableDistinct):
    """An expression that is computed at the time since which a row holds, and again when that changes. It counts its
    rows as a set does, but hands each on as often as it comes."""

    def __init__(self, op: ops.Filter | ops.Extend, width: int) -> None:
        super().__init__(width)
        self.compute = computed("def run(x, t):\n return {0}", [op.expression], "x", "t")
        self.extends = isinstance(op, ops.Extend)
        self.keeps = isinstance(op, ops.Extend) and op.keep_unbound
        self.emitted: dict[Row, tuple[_Stretch, ...]] = {}
        self.begin = ALWAYS
        """The time that the expression takes for that of what always holds (integer ms)."""

    def _update(self, keys: Iterable[Row]) -> list[Delta]:
        deltas: list[Delta] = []
        for key in keys:
            self._forget(key)
            old, new = (
                self._going_on(stretches) for stretches in (self.emitted.get(key, ()), _stretches(self.counts[key]))
            )
            deltas += self._rows(key, [stretch for stretch in old if stretch not in new], -1)
            deltas += self._rows(key, [stretch for stretch in new if stretch not in old], 1)
            self._tell(key, new)
        return deltas

    def _going_on(self, stretches: Iterable[_Stretch]) -> tuple[_Stretch, ...]:
        return tuple(stretch for stretch in stretches if stretch[2] >= self.passed)

    def _tell(self, key: Row, stretches: tuple[_Stretch, ...]) -> None:
        self._set(key, positive(self.counts[key]))
        if stretches:
            self.emitted[key] = stretches
        else:
            self.emitted.pop(key, None)

    def _rows(self, row: Row, stretches: Iterable[_Stretch], sign: int) -> Iterator[Delta]:
        for since, start, end, count in stretches:
            value = self.compute(row, self.begin if since == ALWAYS else since)
            if not self.extends and value:
                yield (*row, start, end, sign * count)
            elif self.extends and isinstance(value, str):
                yield (*row, value, start, end, sign * count)
            elif self.keeps:
                yield (*row, None, start, end, sign * count)

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        for key in self._count(entries):
            self._tell(key, tuple(_stretches(self.counts[key])))

    def expire(self, now: int) -> None:
        size_before = len(self.counts)
        super().expire(now)
        if len(self.counts) < size_before:
            self.emitted = {key: stretches for key, stretches in self.emitted.items() if key in self.counts}


def _stretches(steps: Steps) -> Iterator[_Stretch]:
    """The stretches over which a row holds equally often, each with the time since which it has held without a gap."""
    validity = positive(steps)
    for start, end, count in levels(steps):
        if count > 0:
            yield next(first for first, last in validity if first <= start < last), start, end, count
