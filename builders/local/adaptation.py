"""Adaptive planning: a run replaces its plan while it runs, when the data ask for another order of joins.

After every so many statements, the run counts what its joins have stored, and plans the program for such data. If the
new plan is clearly cheaper twice in a row, it takes the place of the present one between two batches. The outputs do
not depend on it (Deshpande, Ives and Raman, "Adaptive query processing", 2007).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import proxy

from squall.builders.runtime.memory_limit import MAX_SHARE_BETWEEN_BATCHES
from squall.builders.runtime.plan_choice import PlanChoice, plan_for
from squall.builders.runtime.replanning import CannotReplan
from squall.builders.runtime.state_statistics import state_statistics
from squall.contracts import PlanChange
from squall.errors import BuilderError
from squall.plan import Plan
from squall.process.memory import release_memory
from squall.process.recursion import deep_recursion

if TYPE_CHECKING:
    from squall.builders.local.event_loop import EventLoop

_SECONDS_PER_NODE = 4e-4
"""The seconds that the first look takes for each node of the plan, as expected: 3 ms for 8 nodes, 18 ms for 40."""

OldKeys = Mapping[str, str]
"""The key that each state of a run had before its plan was replaced, for those that stay."""


class Adaptation:
    """Looks for better plans of a run, and replaces its plan.

    Args:
        event_loop: The run.
    """

    def __init__(self, event_loop: EventLoop) -> None:
        self.event_loop: EventLoop = proxy(event_loop)  # which owns this: its state is freed as soon as nobody has it
        expected_seconds = _SECONDS_PER_NODE * len(event_loop.plan.nodes)
        self.choice = PlanChoice(event_loop.options.replan, time.process_time, expected_seconds)
        """When the run looks for better plans while memory suffices."""
        self.changes: list[PlanChange] = []
        """The changes of the plan."""
        self.refused = ""
        """Why the last better plan could not replace the present one."""
        self.wanted: Plan | None = None
        """The plan to which a run moves when it has resumed from the checkpoint of another plan."""
        self.memory_note = ""
        """What the last look for a plan that stores less has led to, as a clause."""

    def count(self, statements: int) -> OldKeys | None:
        """Counts statements that the run has processed, and replaces its plan if another one is better."""
        if not self.choice.is_due(statements):
            return None
        with self.choice.timed():
            plan, gain = self._best_plan()
            return self._move(plan, gain) if self.choice.is_confirmed(gain) else None

    def save_memory(self) -> OldKeys | None:
        """Replaces the plan if another one is better, when little memory is left."""
        with self.choice.timed():
            plan, gain = self._best_plan()
            old_keys = None if gain < self.choice.min_gain else self._move(plan, gain)
        if old_keys is not None:
            release_memory()
            self.memory_note = "its plan has been replaced by a better one before"
        elif gain >= self.choice.min_gain:
            self.memory_note = f"a better plan cannot take over: {self.refused}"
        return old_keys

    def check_memory(self) -> None:
        """Checks the memory between two batches, and moves to a better plan if the limit of the run is near.

        Raises:
            BuilderError: The memory is larger than the limit nevertheless.
        """
        limit = self.event_loop.memory_limit
        if limit is None or (share := limit.share()) <= MAX_SHARE_BETWEEN_BATCHES:
            return
        if share > 1 or self.choice.may_look:
            self.save_memory()
            share = limit.share()
        if share > 1:
            raise self.memory_error()

    def memory_error(self) -> BuilderError:
        """Returns the error for a run that ends because of its memory limit."""
        loop = self.event_loop
        assert loop.memory_limit is not None
        dataflow = loop.snapshot_dataflow or loop.dataflow
        return loop.memory_limit.error(dataflow, loop.buffer.fact_count(), self.memory_note)

    @property
    def is_near_memory_limit(self) -> bool:
        """Whether the run should end between two batches, so that nothing has to be repeated when it resumes."""
        limit = self.event_loop.memory_limit
        return limit is not None and limit.share() > MAX_SHARE_BETWEEN_BATCHES

    def move_to_wanted(self) -> OldKeys | None:
        """Replaces the plan of the checkpoint from which the run has resumed by the wanted one, if there is one."""
        return None if self.wanted is None else self._move(self.wanted, None)

    def _best_plan(self) -> tuple[Plan, float]:
        """Returns the plan for the present data, and how many times as expensive the present plan is."""
        loop = self.event_loop
        if loop.plan.plan_again is None or not loop.plan.replaceable or loop.snapshot_dataflow is not None:
            return loop.plan, 1.0
        return plan_for(loop.plan, loop.plan.planning, state_statistics(loop.dataflow, loop.watermark))

    def _move(self, plan: Plan, gain: float | None) -> OldKeys | None:
        """Replaces the plan, unless its state is not known to be that of the other one."""
        loop = self.event_loop
        try:
            with deep_recursion():
                old_keys = loop.replan(plan)
        except CannotReplan as error:
            self.refused = error.message
            return None
        self.refused = ""
        self.changes.append(PlanChange(loop.watermark, gain))
        return old_keys
