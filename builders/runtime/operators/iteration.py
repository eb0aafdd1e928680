"""Iterations: runs of occurrences, each behind the one before, as sequence joins that read their own pairs."""

from __future__ import annotations

from collections.abc import Sequence

from squall.builders.runtime.operators.codegen import compile_expressions
from squall.builders.runtime.operators.event_time import values_source
from squall.builders.runtime.operators.sequence_join import LEFT, RIGHT, Occurrence, SequenceJoinOperator
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row
from squall.plan import operators as ops


class IterationOperator(SequenceJoinOperator):
    """Runs of rows, as `squall.plan.operators.Iteration` says.

    A run is stored like a left row from the instant on at which its last row ends, so that no row of that instant
    follows it.

    Args:
        op: The node of the plan.
        input_count: The number of its inputs.
        tuning: The tuning values of the runtime.
    """

    kind = "iteration"

    def __init__(self, op: ops.Iteration, input_count: int, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(op, input_count, tuning)
        self.run_of = compile_expressions(f"def run(x, t):\n return {values_source(op.values)}", op.values, "x", "t")
        tests = [] if op.again is None else [op.again]
        source = "def run(x, t):\n return {0}" if tests else "def run(x, t):\n return True"
        self.goes_on = compile_expressions(source, tests, "x", "t")

    def _follow(self, now: int, rights: Sequence[Occurrence]) -> list[Delta]:
        """Returns the runs whose last row is a right row of an instant, and stores those that go on."""
        runs: dict[Row, int] = {}
        finished: dict[Occurrence, None] = {}
        for right in rights:
            for left, _ in self._lefts_before(right, now, finished):
                run = self.run_of((*left[:-2], *right[:-2]), now)
                runs[run] = max(runs.get(run, now), min(left[-1], right[-1]))
                finished[left] = None
        self._forget(LEFT, finished)
        self._forget(RIGHT, rights)
        rows = [(*run, now, until) for run, until in runs.items()]
        open_runs = [(*row, 1) for row in rows if self.goes_on(row[:-2], now)]
        self.note(LEFT, open_runs)
        self._add(LEFT, open_runs)
        return [(*row, 1) for row in rows]
