"""Outputs of a plan: the answer as a stream, by an R2S operator (istream, dstream, rstream, changes)."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, count, repeat
from operator import attrgetter, itemgetter
from typing import Any

from squall.builders.runtime.operators.event_time import Change, EventTimeOperator
from squall.builders.runtime.operators.state import SlotChanges, SnapshotDiff, Stateful, expired_keys
from squall.builders.runtime.report_times import ReportSchedule
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row, is_rdf, new_tuple, row_fact
from squall.contracts import Output
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, Evaluated, Triple
from squall.rdf.row_tags import RANK_SEPARATOR, SOLUTION_TAG

_START: Callable[[Delta], Any] = itemgetter(-3)
_SIGNS = {"istream": ((1, ""),), "dstream": ((-1, ""),), "changes": ((-1, "delete"), (1, "insert"))}
"""The signs of the changes that an R2S operator outputs, in this order, each with the `change` of the outputs."""
_TRIPLE_DELTA_CELLS = len(Triple._fields) + 4
"""The number of cells in the delta of a triple, with its rule and validity."""


class OutputOperator(EventTimeOperator):
    """The answer of a plan, with facts as a set and solutions as a bag, emitted as time passes.

    It counts how often each row is in the answer at the watermark, and knows when that will change. It emits what
    enters the answer at an instant (istream), what leaves it (dstream), both (changes), or the whole answer (rstream).
    """

    kind = "output"

    remembers = True

    def __init__(self, op: ops.Sink) -> None:
        super().__init__()
        self.output = op.output
        self.report = op.report
        self.name = op.name
        self.instants = ReportSchedule(op, self._is_idle) if op.output == "rstream" else None
        """The evaluation instants of an rstream."""
        self.queries = [(Evaluated(names), query) for query, names in op.queries]
        self.counts: dict[Row, int] = {}
        self.rules: dict[Row, str] = {}
        """A rule that derived each fact of the answer when it entered the answer."""
        self.reported: dict[Row, int] = {}
        """The answer at the last reported instant, for the report policy `change`."""
        self.diff = SnapshotDiff()

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        deltas = [delta for delta in deltas if is_rdf(delta)]
        if self.report.is_periodic:
            deltas = list(self._when_reported(deltas))
        return super().apply(0, deltas)

    def _when_reported(self, deltas: Sequence[Delta]) -> Iterator[Delta]:
        next_report = self.report.next_report
        for *row, start, end, weight in deltas:
            start, end = next_report(start), next_report(end)
            if start < end:
                yield (*row, start, end, weight)

    @property
    def next_time(self) -> int:
        if self.instants is None or self._is_idle():
            return super().next_time
        return min(super().next_time, self.instants.next_time)

    def _is_idle(self) -> bool:
        """Returns whether there is nothing to report at any instant, as far as is known."""
        return self._is_idle_until(FOREVER)

    def _is_idle_until(self, now: int) -> bool:
        """Returns whether there is nothing to report at any instant up to `now` (integer ms)."""
        has_marks = bool(self.queries) or self.report.only_changes or self.report.is_periodic
        return not (self.counts or has_marks) and self.changes.next_time >= min(now + 1, FOREVER)

    def flush(self, now: int, instants: Sequence[int] | None = None) -> list[Output]:
        """Returns the outputs up to and including `now`, in the order of time.

        Args:
            now: Integer ms.
            instants: The evaluation instants up to then that were not passed before, in order (integer ms). An rstream
                needs them if its own `ReportSchedule` receives no events.
        """
        if self.instants is None:
            return [output for time, change in self.changes.pop_until(now) for output in self._changed(time, change)]
        return [output for _, output in self.flush_ranked(now, instants)]

    def flush_ranked(self, now: int, instants: Sequence[int] | None = None) -> list[tuple[str, Output]]:
        """Returns the outputs of an rstream, each with its rank.

        The rank orders the outputs of one query at one instant (`squall.rdf.row_tags.RANK_SEPARATOR`); it is "" if the
        query has no order.
        """
        assert self.instants is not None
        ranked: list[tuple[str, Output]] = []
        if self._is_idle_until(now):
            self.instants.skip_until(now)
            self._apply_until(now)
            return ranked
        has_marks = bool(self.queries) or self.report.only_changes
        for instant in self.instants.pop_until(now) if instants is None else instants:
            if not (self.counts or has_marks) and self.changes.next_time > instant:
                continue
            self._apply_until(instant)
            if self._is_reported():
                ranked += self._evaluation(instant)
        self._apply_until(now)
        return ranked

    def changed_at(self, instants: Sequence[int]) -> list[int]:
        """Returns those evaluation instants (integer ms, in order) at which the answer differs from the one before."""
        changed_instants: list[int] = []
        for instant in instants:
            self._apply_until(instant)
            if self._is_reported():
                changed_instants.append(instant)
        return changed_instants

    def _apply_until(self, now: int) -> None:
        """Applies the changes up to a time."""
        for _, change in self.changes.pop_until(now):
            deque(self._apply_change(change), maxlen=0)

    def _changed(self, time: int, change: Change) -> list[Output]:
        """Applies a change and returns what it adds to the answer (istream), removes from it (dstream), or first what
        it removes and then what it adds (changes)."""
        outputs: list[Output] = []
        changed_rows = list(self._apply_change(change))
        for sign, change_name in _SIGNS[self.output]:
            for row, many, rule in changed_rows:
                if many * sign > 0:
                    outputs += [Output(row_fact(row), time, self.name or rule, change_name)] * (many * sign)
        return outputs

    def _apply_change(self, change: Change) -> Iterator[tuple[Row, int, str]]:
        """Applies a change; yields each row, by how much its count in the answer grows, and a rule that derives it."""
        for row, (weight, maker) in _by_row(change).items():
            before = self.counts.get(row, 0)
            after = before + weight
            yield row, _difference(row, before, after), self._rule(row, maker, before, after)

    def _rule(self, row: Row, maker: str | None, before: int, after: int) -> str:
        """Stores the count of a row and the rule that derived it, and returns the rule."""
        if not after:
            self.counts.pop(row, None)
            return self.rules.pop(row, maker or "")
        self.counts[row] = after
        if maker is not None and (before <= 0 or row not in self.rules):
            self.rules[row] = maker
        return self.rules.get(row, "")

    def _is_reported(self) -> bool:
        if not self.report.only_changes:
            return True
        previous, self.reported = self.reported, _as_reported(self.counts)
        return previous != self.reported

    def _evaluation(self, instant: int) -> list[tuple[str, Output]]:
        """Returns the whole answer at an instant, followed by the marks that the evaluation is complete."""
        ranked = self._snapshot(instant)
        if self.report.marks_end(bool(ranked)):
            ranked += [("", Output(evaluated, instant, query)) for evaluated, query in self.queries]
        return ranked

    def _snapshot(self, instant: int) -> list[tuple[str, Output]]:
        """Returns the whole answer; the solutions of a query with an order in that order."""
        placed = sorted(zip(map(_rank, self.counts), self.counts, strict=True), key=itemgetter(0))
        return [
            ranked_output
            for place, row in placed
            for ranked_output in [(place, Output(row_fact(row), instant, self.name or self.rules.get(row, "")))]
            * _difference(row, 0, self.counts[row])
        ]

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from super().drain_changelog()
        if self.log is not None and (changes := self.diff.update(_as_deltas(self.reported))):
            yield 1, changes

    def advance(self, now: int) -> list[Delta]:
        self.flush(now, ())
        return []

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == 1:
            self.reported = {delta[:-3]: delta[-1] for delta in self.diff.restore(deltas)}
        else:
            super().restore(slot, deltas)

    def size(self) -> int:
        return self.changes.size() + len(self.counts)


def _rank(row: Row) -> str:
    """Returns the rank of a row in the answer: rows without rank come first, then query by query."""
    head: str = row[0]  # type: ignore[assignment]  # the first cell is always bound
    return head if RANK_SEPARATOR in head else ""


def _by_row(change: Change) -> dict[Row, tuple[int, str | None]]:
    """Returns by how much the count of each row changes, and a rule that derives it from now on, if there is one."""
    rows: dict[Row, tuple[int, str | None]] = {}
    for row_with_rule, weight in change.items():
        row, rule = row_with_rule[:-1], row_with_rule[-1]
        weight_before, maker = rows.get(row, (0, None))
        rows[row] = weight_before + weight, rule if maker is None and weight > 0 else maker
    return rows


def _difference(row: Row, before: int, after: int) -> int:
    """Returns by how much the count in the answer grows. Solutions are counted; a fact is in the answer or not."""
    if _is_solution(row):
        return after - before
    return (after > 0) - (before > 0)


def _as_deltas(counts: dict[Row, int]) -> Iterator[Delta]:
    return ((*row, ALWAYS, FOREVER, count) for row, count in counts.items())


def _as_reported(counts: dict[Row, int]) -> dict[Row, int]:
    """Returns the rows that an output shows, each with its count.

    Rows of a query with an order have their number in it behind their cells. The output does not show the sort keys.
    """
    answer = {row: _difference(row, 0, count) for row, count in counts.items() if not _rank(row)}
    ranked_rows = sorted(filter(_rank, counts), key=_rank)
    in_order = chain.from_iterable(
        repeat((_rank(row).partition(RANK_SEPARATOR)[0], *row[1:]), counts[row]) for row in ranked_rows
    )
    return answer | {(*row, str(number)): 1 for number, row in enumerate(in_order)}


class AppendOnlyOutput(Stateful):
    """The facts of an append-only answer, emitted when they enter it (istream). Its state is the end of each fact.

    Attributes:
        valid_until: The end of each fact that was emitted (integer ms).
        incoming: What came since the last flush.
        future: (start, number, delta) of what begins after the last flush, as a heap.
    """

    kind = "append-only-output"

    def __init__(self, op: ops.Sink, remembers: bool, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.tuning = tuning
        self.name = op.name
        self.remembers = remembers
        self.valid_until: dict[Row, int] = {}
        self.incoming: list[Delta] = []
        self.future: list[tuple[int, int, Delta]] = []
        self.numbers = count()
        self.diff = SnapshotDiff()
        self.sweep_rows = tuning.min_rows_to_sweep
        self.full_sweep_rows = 2 * tuning.min_rows_to_sweep

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        self.incoming += deltas
        return []

    @property
    def next_time(self) -> int:
        return min(map(_START, chain(self.incoming, (entry[2] for entry in self.future[:1]))), default=FOREVER)

    def flush(self, now: int, instants: Sequence[int] = ()) -> list[Output]:
        """Returns the outputs up to and including `now`, in the order of time."""
        deltas, self.incoming = self.incoming, []
        while self.future and self.future[0][0] <= now:
            deltas.append(heappop(self.future)[2])
        if not deltas:
            return []
        deltas.sort(key=_START)
        later: Sequence[Delta] = ()
        if deltas[-1][-3] > now:
            ready = bisect_right(deltas, now, key=_START)
            deltas, later = deltas[:ready], deltas[ready:]
        if self.remembers:
            self.note(0, deltas)
        outputs = self._emit(deltas)
        if not self.remembers:
            self.valid_until.clear()
        for delta in later:
            self._put_off(delta)
        return [output._replace(rule=self.name) for output in outputs] if self.name else outputs

    def _emit(self, deltas: Sequence[Delta]) -> list[Output]:
        """Returns the outputs of deltas that begin now or before."""
        until, outputs = self.valid_until, list[Output]()
        for delta in deltas:
            if len(delta) == _TRIPLE_DELTA_CELLS:
                first, second, third, rule, start, end, _ = delta
                row = new_tuple(
                    Triple, (first, second, third)
                )  # most facts are triples: one object is the key and in the output
            else:
                *cells, rule, start, end, _ = delta
                first = second = cells[0]
                row = tuple(cells)
            end_before = until.get(row)
            if end_before is None or end_before < start:
                if first[0] == "<" and second[0] == "<":  # most facts, without a function call
                    outputs.append(new_tuple(Output, (row, start, rule, "")))
                elif is_rdf(row):
                    outputs.append(new_tuple(Output, (row_fact(row), start, rule, "")))
                else:
                    continue
                until[row] = end
            elif end_before < end:
                until[row] = end
        return outputs

    def _put_off(self, delta: Delta) -> None:
        """Stores a delta that begins later, or at once prolongs the fact that it continues."""
        row, (start, end, _) = delta[:-4], delta[-3:]
        if not is_rdf(row):
            return
        if self.valid_until.get(row, ALWAYS) < start:
            heappush(self.future, (start, next(self.numbers), delta))
            return
        self.note(0, (delta,))
        self.valid_until[row] = max(self.valid_until[row], end)

    def _pending(self) -> Iterator[Delta]:
        """Yields what was not emitted yet."""
        yield from self.incoming
        yield from (delta for _, _, delta in self.future)

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from super().drain_changelog()
        if self.log is not None and (changes := self.diff.update(self._pending())):
            yield 1, changes

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == 1:
            self.incoming, self.future = self.diff.restore(deltas), []
            return
        for delta in deltas:
            row = delta[:-4]
            self.valid_until[row] = max(self.valid_until.get(row, delta[-2]), delta[-2])

    def expire(self, now: int) -> None:
        # A fact that ends at `now` stays: a fact that begins then continues it.
        until = self.valid_until
        if len(until) < self.sweep_rows:
            return
        if len(until) < self.full_sweep_rows:
            for row in expired_keys(until, None, now - 1, self.tuning.max_live_rows_scanned):
                del until[row]
        if len(until) >= self.full_sweep_rows:
            self.valid_until = until = {row: end for row, end in until.items() if end >= now}
            self.full_sweep_rows = 2 * max(self.tuning.min_rows_to_sweep, len(until))
        self.sweep_rows = max(self.tuning.min_rows_to_sweep, len(until) + len(until) // 16)

    def size(self) -> int:
        return len(self.valid_until) + len(self.incoming) + len(self.future)


class AppendOnlySolutionOutput(Stateful):
    """An append-only answer with solutions, which are a bag, emitted when they enter it (istream).

    A solution that begins when an equal one ends continues it, and is not emitted. So of the solutions, the operator
    stores only how often each ends at each time. Other rows are facts, which it leaves to an `AppendOnlyOutput`. Its
    state is that of an `OutputOperator`: all that came.

    Attributes:
        ends: How often each solution ends, by time (integer ms).
        end_times: These times, as a heap, and others at which no solution ends any more.
        incoming: The solutions that came since the last flush.
        future: (start, number, delta) of the solutions that begin after the last flush, as a heap.
        resumed_at: What begins later (integer ms) was not emitted yet when the state was saved.
    """

    kind = "output"

    def __init__(self, op: ops.Sink, has_facts: bool, expires: bool, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.name = op.name
        self.expires = expires
        self.remembers = expires or (has_facts and op.distinct)
        self.facts = AppendOnlyOutput(op, self.remembers, tuning) if has_facts else None
        self.ends: dict[int, dict[Row, int]] = {}
        self.end_times: list[int] = []
        self.incoming: list[Delta] = []
        self.future: list[tuple[int, int, Delta]] = []
        self.numbers = count()
        self.resumed_at = ALWAYS - 1

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if self.facts is None:
            solutions = deltas
        else:
            solutions = [delta for delta in deltas if _is_solution(delta)]
            facts = [delta for delta in deltas if not _is_solution(delta)]
            self.facts.apply(port, facts)
            self.note(0, facts)
        if self.expires:  # otherwise no solution ends
            self.note(0, solutions)
        self.incoming += solutions
        return []

    @property
    def next_time(self) -> int:
        solutions = chain(self.incoming, (entry[2] for entry in self.future[:1]))
        facts = FOREVER if self.facts is None else self.facts.next_time
        return min(facts, min(map(_START, solutions), default=FOREVER))

    def flush(self, now: int, instants: Sequence[int] = ()) -> list[Output]:
        """Returns the outputs up to and including `now`, in the order of time."""
        outputs = self._flush_solutions(now)
        if self.facts is not None and (facts := self.facts.flush(now)):
            outputs = sorted(outputs + facts, key=attrgetter("time"))
        return outputs

    def _flush_solutions(self, now: int) -> list[Output]:
        deltas, self.incoming = self.incoming, []
        while self.future and self.future[0][0] <= now:
            deltas.append(heappop(self.future)[2])
        deltas.sort(key=_START)
        ready = bisect_right(deltas, now, key=_START)
        outputs: list[Output] = []
        for *cells, rule, start, end, weight in deltas[:ready]:
            row = tuple(cells)
            if added := weight - self._continue(row, start, end, weight):
                outputs += [new_tuple(Output, (row_fact(row), start, self.name or rule, ""))] * added
        for delta in deltas[ready:]:
            self._put_off(delta)
        return outputs

    def _continue(self, row: Row, start: int, end: int, weight: int) -> int:
        """Stores when a solution ends that begins now. Returns how many of its `weight` continue solutions that end."""
        continued = 0
        if (ended := self.ends.get(start)) and row in ended:
            continued = min(weight, ended[row])
            ended[row] -= continued
            if not ended[row]:
                del ended[row]
            if not ended:
                del self.ends[start]
        if end != FOREVER:
            if end not in self.ends:
                self.ends[end] = {}
                heappush(self.end_times, end)
            self.ends[end][row] = self.ends[end].get(row, 0) + weight
        return continued

    def _put_off(self, delta: Delta) -> None:
        """Stores a solution that begins later, or at once prolongs the one that it continues."""
        *cells, _, start, end, weight = delta
        row = tuple(cells)
        if self.ends.get(start, {}).get(row, 0) >= weight:
            self._continue(row, start, end, weight)
        else:
            heappush(self.future, (start, next(self.numbers), delta))

    def resume_at(self, watermark: int) -> None:
        self.resumed_at = watermark

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        for delta in sorted(deltas, key=_START):
            *cells, _, start, end, weight = delta
            if self.facts is not None and not _is_solution(delta):
                if start > self.resumed_at:
                    self.facts.apply(0, [delta])
                else:
                    self.facts.restore(0, [delta])
            elif start > self.resumed_at:
                self._put_off(delta)
            else:
                self._continue(tuple(cells), start, end, weight)

    def expire(self, now: int) -> None:
        # A solution that ends at `now` stays: one that begins then continues it.
        while self.end_times and self.end_times[0] < now:
            self.ends.pop(heappop(self.end_times), None)
        if self.facts is not None:
            self.facts.expire(now)

    def size(self) -> int:
        facts = 0 if self.facts is None else self.facts.size()
        return facts + sum(map(len, self.ends.values())) + len(self.incoming) + len(self.future)


def _is_solution(row: Row | Delta) -> bool:
    """Returns whether a row, or the delta of one, is a solution and no fact."""
    return bool(row[0][0] == SOLUTION_TAG)  # type: ignore[index]  # the first cell is always bound


SinkOperator = OutputOperator | AppendOnlyOutput | AppendOnlySolutionOutput
"""The operator of a sink of a plan."""
