"""Adaptive planning in a distributed engine: between two micro-batches, a job replaces its plan.

*Backward*: one task looks at the state of the job, and moves it to a plan that is clearly cheaper for these data twice
in a row (`squall.builders.distributed.exec.plan_change`). *Forward*: the driver looks at a sample of a large batch, and
the job moves to a plan that is clearly cheaper for it before it processes the batch. The outputs do not depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from squall.builders.distributed.exec.logged_batches import LoggedBatches
from squall.builders.distributed.plan.sampling import PatternSampler
from squall.builders.runtime.plan_choice import PlanChoice, plan_for
from squall.builders.runtime.replanning import CannotReplan
from squall.contracts import PlanChange, Replanning
from squall.plan import Plan, Planning
from squall.wording import counted


class BatchAdaptation:
    """Looks for better plans between the micro-batches of a job.

    Args:
        plan: the plan of the job.
        planning: how other plans are made, apart from their statistics.
        replanning: when the job replaces its plan. None: never.
        max_rows: the most rows that one task reads.

    Attributes:
        changes: the changes of the plan.
        refused: why the last better plan could not replace the present one.
    """

    def __init__(self, plan: Plan, planning: Planning, replanning: Replanning | None, max_rows: int) -> None:
        self.plan = plan
        self.planning = planning
        self.choice = PlanChoice(replanning, time.monotonic)
        self.max_rows = max_rows
        self.changes: list[PlanChange] = []
        self.refused = ""

    def count(self, batches: LoggedBatches, statements: int, move: Callable[[Plan], None]) -> bool:
        """Counts the statements of a committed batch, and replaces the plan if another one is better.

        Args:
            batches: the batches of the job.
            statements: the number of statements.
            move: moves the state to another plan. It raises CannotReplan if that is not possible.

        Returns:
            Whether the plan has been replaced.
        """
        if not self.choice.is_due(statements) or not batches.looked_at_rows or not self._can_look(batches):
            return False
        with self.choice.timed():
            plan, gain = plan_for(self.plan, self.planning, batches.statistics())
            return self.choice.is_confirmed(gain) and self._has_moved(plan, gain, batches.watermark, move)

    def look_ahead(self, batches: LoggedBatches, sampler: PatternSampler, move: Callable[[Plan], None]) -> bool:
        """Replaces the plan if another one is better for the batch that is processed next.

        Args:
            batches: the batches of the job.
            sampler: has counted a sample of the batch.
            move: see `count`.

        Returns:
            Whether the plan has been replaced.
        """
        if not self._can_look(batches):
            return False
        present = batches.statistics() if batches.looked_at_rows else None
        plan, gain = plan_for(self.plan, self.planning, sampler.statistics(present))
        return gain >= self.choice.min_gain and self._has_moved(plan, gain, batches.watermark, move)

    def _can_look(self, batches: LoggedBatches) -> bool:
        """Returns whether one task can look at the state."""
        if batches.looked_at_rows > self.max_rows:
            rows = counted(batches.looked_at_rows, "row")
            self.refused = f"the state has {rows}, and one task reads at most {self.max_rows:,} of them"
            return False
        return True

    def _has_moved(self, plan: Plan, gain: float, watermark: int, move: Callable[[Plan], None]) -> bool:
        """Moves the state to another plan if that is possible, and returns whether it was."""
        try:
            move(plan)
        except CannotReplan as error:
            self.refused = error.message
            return False
        self.plan, self.refused = plan, ""
        self.changes.append(PlanChange(watermark, gain))
        return True
