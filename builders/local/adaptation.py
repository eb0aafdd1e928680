"""Adaptive planning: a run replaces its plan while it runs, when the data ask for another order of joins.

After every so many statements, the run counts what its joins have stored, and plans the program for such data. If the
new plan is clearly cheaper twice in a row, it takes the place of the present one between two batches. The outputs do
not depend on it (Deshpande, Ives and Raman, "Adaptive query processing", 2007).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from squall.builders.runtime.replanning import CannotReplan
from squall.builders.runtime.state_statistics import state_statistics
from squall.contracts import PlanChange, Replanning
from squall.plan.cardinality import join_cost
from squall.process.recursion import deep_recursion
from squall.rdf import Columns, Event

if TYPE_CHECKING:
    from squall.builders.local.event_loop import EventLoop


def adaptation_of(event_loop: EventLoop) -> Adaptation | None:
    """Returns what looks for better plans of a run, if its options ask for it."""
    replanning = event_loop.options.replan
    return None if replanning is None else Adaptation(event_loop, replanning)


def statement_count(batch: Sequence[Event]) -> int:
    """Returns the number of statements in a batch of events."""
    if isinstance(batch, Columns):
        return len(batch.subjects)
    return sum(len(event.facts) + len(event.removed) for event in batch)


class Adaptation:
    """Looks for better plans of a run.

    Args:
        event_loop: The run.
        replanning: How it replaces its plan.
    """

    def __init__(self, event_loop: EventLoop, replanning: Replanning) -> None:
        self.event_loop = event_loop
        self.replanning = replanning
        self.changes: list[PlanChange] = []
        """The changes of the plan."""
        self.refused = ""
        """Why the last better plan could not replace the present one."""
        self._statements = 0
        self._better = 0
        """How many times in a row another plan was better."""
        self._pause_until = 0.0

    def count(self, statements: int) -> dict[str, str] | None:
        """Counts statements that the run has processed, and replaces its plan if another one is better.

        Returns the key that each state of the run had before, for those that stay; None if the plan stays.
        """
        self._statements += statements
        now = time.process_time()
        if self._statements < self.replanning.interval or now < self._pause_until:
            return None
        self._statements = 0
        with deep_recursion():
            old_keys = self._look()
        after = time.process_time()
        if not self._better:  # a better plan is confirmed soon
            self._pause_until = after + (after - now) / self.replanning.max_share
        return old_keys

    def _look(self) -> dict[str, str] | None:
        """Plans for the present data, and replaces the plan if the new one is better. It returns the same."""
        loop = self.event_loop
        if loop.snapshot_dataflow is not None:
            return None
        statistics = state_statistics(loop.dataflow, loop.watermark)
        plan = self.replanning.plan_for(statistics)
        gain = join_cost(loop.plan, statistics) / max(join_cost(plan, statistics), 1.0)
        if gain < self.replanning.min_gain:
            self._better = 0
            return None
        self._better += 1
        if self._better < self.replanning.confirmations:
            return None
        self._better = 0
        try:
            old_keys = loop.replan(plan)
        except CannotReplan as error:
            self.refused = error.message
            return None
        self.refused = ""
        self.changes.append(PlanChange(loop.watermark, gain))
        return old_keys
