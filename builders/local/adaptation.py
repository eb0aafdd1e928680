"""Adaptive planning: a run replaces its plan while it runs, when the data ask for another order of joins.

After every so many statements, the run counts what its joins have stored, and plans the program for such data. If the
new plan is clearly cheaper twice in a row, it takes the place of the present one between two batches. The outputs do
not depend on it (Deshpande, Ives and Raman, "Adaptive query processing", 2007).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from squall.builders.runtime.memory_limit import MAX_SHARE_BETWEEN_BATCHES
from squall.builders.runtime.replanning import CannotReplan
from squall.builders.runtime.state_statistics import state_statistics
from squall.contracts import PlanChange, Replanning
from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.cardinality import join_cost
from squall.process.memory import release_memory
from squall.process.recursion import deep_recursion

if TYPE_CHECKING:
    from squall.builders.local.event_loop import EventLoop

OldKeys = Mapping[str, str]
"""The key that each state of a run had before its plan was replaced, for those that stay."""


class Adaptation:
    """Looks for better plans of a run, and replaces its plan.

    Args:
        event_loop: The run.
    """

    def __init__(self, event_loop: EventLoop) -> None:
        self.event_loop = event_loop
        self.replanning = event_loop.options.replan
        """How the run replaces its plan while memory suffices. None: it does not."""
        self.changes: list[PlanChange] = []
        """The changes of the plan."""
        self.refused = ""
        """Why the last better plan could not replace the present one."""
        self.wanted: Plan | None = None
        """The plan to which a run moves when it has resumed from the checkpoint of another plan."""
        self.memory_note = ""
        """What the last look for a plan that stores less has led to, as a clause."""
        self._statements = 0
        self._better = 0
        """How many times in a row another plan was better."""
        self._pause_until = 0.0

    @property
    def may_look(self) -> bool:
        """Whether the run has worked long enough since the last look at its state."""
        return time.process_time() >= self._pause_until

    def count(self, statements: int) -> OldKeys | None:
        """Counts statements that the run has processed, and replaces its plan if another one is better."""
        self._statements += statements
        replanning = self.replanning
        if replanning is None or self._statements < replanning.interval or not self.may_look:
            return None
        self._statements = 0
        with self._timed(replanning.max_share):
            plan, gain = self._best_plan()
            if gain < replanning.min_gain:
                self._better = 0
                return None
            self._better += 1
            if self._better < replanning.confirmations:
                return None
            self._better = 0
            return self._move(plan, gain)

    def save_memory(self) -> OldKeys | None:
        """Replaces the plan if another one is better, when little memory is left."""
        replanning = self.replanning or Replanning()
        with self._timed(replanning.max_share):
            plan, gain = self._best_plan()
            old_keys = None if gain < replanning.min_gain else self._move(plan, gain)
        if old_keys is not None:
            release_memory()
            self.memory_note = "its plan has been replaced by a better one before"
        elif gain >= replanning.min_gain:
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
        if share > 1 or self.may_look:
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
        again = loop.plan.plan_again
        if again is None or not loop.plan.replaceable or loop.snapshot_dataflow is not None:
            return loop.plan, 1.0
        statistics = state_statistics(loop.dataflow, loop.watermark)
        plan = again(loop.plan.planning._replace(statistics=statistics))
        return plan, join_cost(loop.plan, statistics) / max(join_cost(plan, statistics), 1.0)

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

    @contextmanager
    def _timed(self, max_share: float) -> Iterator[None]:
        """Looks at the state, and does not do so again before the run has worked long enough."""
        before = time.process_time()
        with deep_recursion():
            yield
        after = time.process_time()
        if not self._better:  # a better plan is confirmed soon
            self._pause_until = after + (after - before) / max_share
