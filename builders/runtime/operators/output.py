"""The end of a plan: answers handed on by an R2S operator."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from squall.builders.runtime.operators.event_time import Change, EventTimeOperator
from squall.builders.runtime.operators.state import MIN_ROWS_TO_SWEEP, SlotChanges, SnapshotDiff, Stateful, expired_ends
from squall.builders.runtime.report_times import ReportSchedule
from squall.builders.runtime.zset import Delta, Row, is_rdf, new_tuple, row_fact
from squall.contracts import Output
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, Evaluated, Triple
from squall.rdf.row_tags import RANK_SEPARATOR, SOLUTION_TAG

_START: Callable[[Delta], Any] = itemgetter(-3)
_TRIPLE_DELTA_CELLS = len(Triple._fields) + 4
"""The cells of an entry of a triple, behind which a rule and its validity are."""


class OutputOperator(EventTimeOperator):
    """The facts (a set) and solutions (a bag) of the answer, handed on when time has come to them.

    Counts how often each is in the answer at the time that has passed, and knows when that will change: what comes in
    at an instant (istream), what goes out (dstream), or all there is (rstream) can then be told.
    """

    remembers = True

    def __init__(self, op: ops.Sink) -> None:
        super().__init__()
        self.output = op.output
        self.report = op.report
        self.name = op.name
        self.instants = ReportSchedule(op) if op.output == "rstream" else None
        """When the answer is told whole."""
        self.queries = [(Evaluated(names), query) for query, names in op.queries]
        self.counts: dict[Row, int] = {}
        self.rules: dict[Row, str] = {}
        """For each fact in the answer a rule that made it when it came in."""
        self.reported: dict[Row, int] = {}
        """The answer at the instant that was reported last, where only changes are."""
        self.diff = SnapshotDiff()

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        entries = [entry for entry in entries if is_rdf(entry)]
        if self.report.policy == "periodic":
            entries = list(self._when_reported(entries))
        return super().apply(0, entries)

    def _when_reported(self, entries: Sequence[Delta]) -> Iterator[Delta]:
        for *row, start, end, weight in entries:
            start, end = self._reported_at(start), self._reported_at(end)
            if start < end:
                yield (*row, start, end, weight)

    def _reported_at(self, time: int) -> int:
        """The first instant from `time` on that is reported."""
        if time in (ALWAYS, FOREVER):
            return time
        return -(-time // self.report.period) * self.report.period

    @property
    def next_time(self) -> int:
        return min(super().next_time, self.instants.next_time) if self.instants is not None else super().next_time

    def flush(self, now: int, instants: Sequence[int] | None = None) -> list[Output]:
        """The outputs up to a time, that included, in the order of time. instants: the evaluation instants up to then
        that have not been given yet, in order (integer ms), where its own (`ReportSchedule`) have not been told of events;
        only what is told whole (rstream) needs them."""
        if self.instants is None:
            return [output for time, change in self.changes.pop_until(now) for output in self._changed(time, change)]
        return [output for _, output in self.flush_ranked(now, instants)]

    def flush_ranked(self, now: int, instants: Sequence[int] | None = None) -> list[tuple[str, Output]]:
        """The same of an answer that is told whole, each with its place among those of the same instant that come of
        the same query (`squall.rdf.row_tags.RANK_SEPARATOR`), "" where it has none."""
        assert self.instants is not None
        ranked: list[tuple[str, Output]] = []
        for instant in self.instants.pop_until(now) if instants is None else instants:
            self._apply_until(instant)
            if self._is_reported():
                ranked += self._evaluation(instant)
        self._apply_until(now)
        return ranked

    def changed_at(self, instants: Sequence[int]) -> list[int]:
        """Of the evaluation instants (integer ms, in order) those at which the answer is another than at the one
        before."""
        changed_instants: list[int] = []
        for instant in instants:
            self._apply_until(instant)
            if self._is_reported():
                changed_instants.append(instant)
        return changed_instants

    def _apply_until(self, now: int) -> None:
        """Counts in what changes up to a time."""
        for _, change in self.changes.pop_until(now):
            deque(self._apply_change(change), maxlen=0)

    def _changed(self, time: int, change: Change) -> list[Output]:
        """Counts a change in; what it brings into the answer (istream) or takes out of it (dstream)."""
        outputs: list[Output] = []
        sign = 1 if self.output == "istream" else -1
        for row, many, rule in self._apply_change(change):
            if many * sign > 0:
                outputs += [Output(row_fact(row), time, self.name or rule)] * (many * sign)
        return outputs

    def _apply_change(self, change: Change) -> Iterator[tuple[Row, int, str]]:
        """Counts a change in: each row, by how many there are more in the answer, and a rule that makes it."""
        for row, (weight, maker) in _by_row(change).items():
            before = self.counts.get(row, 0)
            after = before + weight
            yield row, _difference(row, before, after), self._rule(row, maker, before, after)

    def _rule(self, row: Row, maker: str | None, before: int, after: int) -> str:
        """Keeps the count, and the rule that made the row; answers with that."""
        if not after:
            self.counts.pop(row, None)
            return self.rules.pop(row, maker or "")
        self.counts[row] = after
        if maker is not None and (before <= 0 or row not in self.rules):
            self.rules[row] = maker
        return self.rules.get(row, "")

    def _is_reported(self) -> bool:
        if self.report.policy != "change":
            return True
        previous, self.reported = self.reported, _as_reported(self.counts)
        return previous != self.reported

    def _evaluation(self, instant: int) -> list[tuple[str, Output]]:
        """All that is in the answer, and that this is all."""
        ranked = self._snapshot(instant)
        if ranked or self.report.policy != "nonempty":
            ranked += [("", Output(evaluated, instant, query)) for evaluated, query in self.queries]
        return ranked

    def _snapshot(self, instant: int) -> list[tuple[str, Output]]:
        """All that is in the answer, solutions of a query with an order in that order."""
        placed = sorted(zip(map(_rank, self.counts), self.counts, strict=True), key=itemgetter(0))
        return [
            ranked_output
            for place, row in placed
            for ranked_output in [(place, Output(row_fact(row), instant, self.name or self.rules.get(row, "")))]
            * _difference(row, 0, self.counts[row])
        ]

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from super().drain_changelog()
        if self.log is not None and (changes := self.diff.update(_as_entries(self.reported))):
            yield 1, changes

    def advance(self, now: int) -> list[Delta]:
        self.flush(now, ())
        return []

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        if slot == 1:
            self.reported = {entry[:-3]: entry[-1] for entry in self.diff.restore(entries)}
        else:
            super().restore(slot, entries)

    def size(self) -> int:
        return self.changes.size() + len(self.counts)


def _rank(row: Row) -> str:
    """Where in an answer a row is told: what has no place first, then query by query."""
    head: str = row[0]  # type: ignore[assignment]  # the first cell is always bound
    return head if RANK_SEPARATOR in head else ""


def _by_row(change: Change) -> dict[Row, tuple[int, str | None]]:
    """By how much the multiplicity of each row changes, and a rule that makes it from now on, if one does."""
    rows: dict[Row, tuple[int, str | None]] = {}
    for row_with_rule, weight in change.items():
        row, rule = row_with_rule[:-1], row_with_rule[-1]
        weight_before, maker = rows.get(row, (0, None))
        rows[row] = weight_before + weight, rule if maker is None and weight > 0 else maker
    return rows


def _difference(row: Row, before: int, after: int) -> int:
    """How many more there are in the answer: solutions are counted, of a fact there is one or none."""
    if row[0][0] == SOLUTION_TAG:  # type: ignore[index]  # the first cell is always bound
        return after - before
    return (after > 0) - (before > 0)


def _as_entries(counts: dict[Row, int]) -> Iterator[Delta]:
    return ((*row, ALWAYS, FOREVER, count) for row, count in counts.items())


def _as_reported(counts: dict[Row, int]) -> dict[Row, int]:
    """What is told of rows: each as often as it is, and of a query with an order each with its number in that, behind
    its cells. (What else the order goes by is not told.)"""
    answer = {row: _difference(row, 0, count) for row, count in counts.items() if not _rank(row)}
    ranked_rows = sorted(filter(_rank, counts), key=_rank)
    in_order = chain.from_iterable(
        repeat((_rank(row).partition(RANK_SEPARATOR)[0], *row[1:]), counts[row]) for row in ranked_rows
    )
    return answer | {(*row, str(number)): 1 for number, row in enumerate(in_order)}


class AppendOnlyOutput(Stateful):
    """The facts of an answer from which nothing is ever taken back, told when they come in (istream): until when each
    is valid is all that has to be known of it."""

    def __init__(self, op: ops.Sink, remembers: bool) -> None:
        super().__init__()
        self.name = op.name
        self.remembers = remembers
        self.valid_until: dict[Row, int] = {}
        self.pending: list[Delta] = []
        self.diff = SnapshotDiff()
        self.sweep_rows = MIN_ROWS_TO_SWEEP
        self.full_sweep_rows = 2 * MIN_ROWS_TO_SWEEP

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        self.pending += entries
        return []

    @property
    def next_time(self) -> int:
        return min((entry[-3] for entry in self.pending), default=FOREVER)

    def flush(self, now: int, instants: Sequence[int] = ()) -> list[Output]:
        """The outputs up to a time, that included, in the order of time."""
        entries, self.pending = self.pending, []
        if not entries:
            return []
        entries.sort(key=_START)
        if entries[-1][-3] > now:
            ready = bisect_right(entries, now, key=_START)
            entries, self.pending = entries[:ready], entries[ready:]
        if self.remembers:
            self.note(0, entries)
        until, outputs = self.valid_until, list[Output]()
        for entry in entries:
            if len(entry) == _TRIPLE_DELTA_CELLS:
                first, second, third, rule, start, end, _ = entry
                row = new_tuple(
                    Triple, (first, second, third)
                )  # most are triples: the same object as key and in the output
            else:
                *cells, rule, start, end, _ = entry
                first = second = cells[0]
                row = tuple(cells)
            end_before = until.get(row)
            if end_before is None or end_before < start:
                if first[0] == "<" and second[0] == "<":  # most facts, for which no function need be called
                    outputs.append(new_tuple(Output, (row, start, rule)))
                elif is_rdf(row):
                    outputs.append(new_tuple(Output, (row_fact(row), start, rule)))
                else:
                    continue
                until[row] = end
            elif end_before < end:
                until[row] = end
        if not self.remembers:
            until.clear()
        return [output._replace(rule=self.name) for output in outputs] if self.name else outputs

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from super().drain_changelog()
        if self.log is not None and (changes := self.diff.update(self.pending)):
            yield 1, changes

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        if slot == 1:
            self.pending = self.diff.restore(entries)
            return
        for entry in entries:
            row = entry[:-4]
            self.valid_until[row] = max(self.valid_until.get(row, entry[-2]), entry[-2])

    def expire(self, now: int) -> None:
        # What ends at `now` is kept: a fact that begins then goes on with it.
        until = self.valid_until
        if len(until) < self.sweep_rows:
            return
        if len(until) < self.full_sweep_rows:
            for row in expired_ends(until, now - 1):
                del until[row]
        if len(until) >= self.full_sweep_rows:
            self.valid_until = until = {row: end for row, end in until.items() if end >= now}
            self.full_sweep_rows = 2 * max(MIN_ROWS_TO_SWEEP, len(until))
        self.sweep_rows = max(MIN_ROWS_TO_SWEEP, len(until) + len(until) // 16)

    def size(self) -> int:
        return len(self.valid_until) + len(self.pending)
