"""Consumption: each occurrence is part of one match of a pattern over time, of that which ends first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.sequence_join import time_of
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta
from squall.functions.consumption import Member, members_of, preference
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER

_PENDING, _OUTPUT = 0, 1
"""The slots of the state: the matches that end later, and those that were output, whose occurrences are consumed. Both
have rows of the input, by whose keys they are partitioned."""
_Match = tuple[Any, ...]
"""A row with its validity."""


class ConsumeOperator(EventTimeOperator):
    """The matches that have their occurrences, as `squall.plan.operators.Consume` says.

    Matches are processed at the time at which they begin to be valid, which is the time at which they end.

    Args:
        op: The node of the plan.
        tuning: The tuning values of the runtime.
    """

    kind = "consume"

    def __init__(self, op: ops.Consume, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.op = op
        self.watermark = ALWAYS - 1
        """All matches up to this time (integer ms) have been processed."""
        self.matches: dict[int, dict[_Match, None]] = {}
        """The matches that end later, by that time."""
        self.consumed: dict[Hashable, int] = {}
        """The occurrences of matches, behind their keys, with the time (integer ms) from which none has them again."""
        self.min_rows_to_sweep = tuning.min_rows_to_sweep
        self.rows_after_sweep = 0

    @property
    def next_time(self) -> int:
        return min(self.matches, default=FOREVER)

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        self.note(_PENDING, deltas)
        self._add(deltas)
        return []

    def _add(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            if delta[-3] > self.watermark:
                self.matches.setdefault(delta[-3], {})[delta[:-1]] = None

    def advance(self, now: int) -> list[Delta]:
        output: list[Delta] = []
        for time in sorted(time for time in self.matches if time <= now):
            output += self._consuming(self.matches.pop(time), time)
        self.watermark = max(self.watermark, now)
        return output

    def _consuming(self, matches: Iterable[_Match], now: int) -> list[Delta]:
        """Returns the matches of an instant that have their occurrences."""
        placed = [(match, members_of(match[self.op.members])) for match in matches]
        output: list[Delta] = []
        for match, members in sorted(placed, key=self._preference):
            occurrences = self._occurrences(match, members)
            if self.consumed.keys().isdisjoint(occurrences):
                self.consumed |= occurrences
                self.note(_OUTPUT, [(*match[:-2], now, max(occurrences.values()), 1)])
                output.append((*match, 1))
        return output

    def _preference(self, placed: tuple[_Match, tuple[Member, ...]]) -> tuple[object, ...]:
        match, members = placed
        order = [match[column] or "" for column in self.op.order]
        return *preference(time_of(match[self.op.start]), members, self.op.steps), order

    def _occurrences(self, match: _Match, members: Iterable[Member]) -> dict[Hashable, int]:
        """Returns what a match consumes, with the time (integer ms) from which no match has it."""
        keys, retention = tuple(match[column] for column in self.op.keys), self.op.retention
        return {(keys, member): FOREVER if retention is None else member[0] + retention for member in members}

    # State

    def resume_at(self, watermark: int) -> None:
        self.watermark = max(self.watermark, watermark)
        self.matches = {time: rows for time, rows in self.matches.items() if time > self.watermark}

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == _PENDING:
            self._add(deltas)
        else:
            for delta in deltas:
                self.consumed |= self._occurrences(delta, members_of(delta[self.op.members]))

    def size(self) -> int:
        return len(self.consumed) + sum(map(len, self.matches.values()))

    def expire(self, now: int) -> None:
        if len(self.consumed) <= max(self.min_rows_to_sweep, 2 * self.rows_after_sweep):
            return
        self.consumed = {row: end for row, end in self.consumed.items() if end > now}
        self.rows_after_sweep = len(self.consumed)
