"""The choice of a better plan while a run goes on: when to look for one, and whether it is better by enough.

Whoever runs a plan counts what its state holds (`squall.builders.runtime.state_statistics`), and replaces the plan
(`squall.builders.runtime.replanning`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from squall.contracts import Options, Replanning
from squall.errors import BuilderError
from squall.plan import Plan, Planning
from squall.plan.cardinality import Statistics, join_cost
from squall.process.recursion import deep_recursion

_ROWS_PER_STATEMENT = 10
"""How many stored rows a run moves to another plan in the time in which it processes one statement."""


class PlanChoice:
    """Decides when a run looks for a better plan, and when it moves to one.

    Args:
        replanning: How the run replaces its plan. None: it does not look by itself.
        clock: Returns the time that the run has taken, in seconds.
        expected_seconds: How long the first look at the state is expected to take.
    """

    def __init__(
        self, replanning: Replanning | None, clock: Callable[[], float], expected_seconds: float = 0.0
    ) -> None:
        self.replanning = replanning
        self.clock = clock
        self._statements = 0
        self._better = 0
        """How many times in a row another plan was better."""
        self._looked = 0.0
        """The seconds that looks have taken since the last pause."""
        self._pause_until = 0.0
        if replanning is not None:
            self._pause_until = clock() + expected_seconds / replanning.max_share

    @property
    def min_gain(self) -> float:
        """How many times as expensive as another plan the present one has to be."""
        return (self.replanning or Replanning()).min_gain

    @property
    def may_look(self) -> bool:
        """Whether the run has worked long enough since the last look at its state or its input."""
        return self.clock() >= self._pause_until

    def looks_ahead(self, statements: int, rows: int) -> bool:
        """Returns whether the run should look at its input before it processes it.

        Args:
            statements: About how many statements the input has.
            rows: How many rows are stored before it.
        """
        replanning = self.replanning
        if replanning is None or not replanning.forward or statements < replanning.interval:
            return False
        return rows <= _ROWS_PER_STATEMENT * statements and self.may_look

    def is_due(self, statements: int) -> bool:
        """Counts statements that the run has processed. Returns whether it should look for a better plan."""
        self._statements += statements
        replanning = self.replanning
        if replanning is None or not replanning.backward or self._statements < replanning.interval or not self.may_look:
            return False
        self._statements = 0
        return True

    def is_confirmed(self, gain: float) -> bool:
        """Counts a look for a better plan. Returns whether the run should move to the plan.

        Args:
            gain: How many times as expensive the present plan is, as estimated.
        """
        replanning = self.replanning or Replanning()
        self._better = self._better + 1 if gain >= self.min_gain else 0
        if self._better < max(replanning.confirmations, 1):
            return False
        self._better = 0
        return True

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Looks at the state, and does not do so again before the run has worked long enough."""
        before = self.clock()
        with deep_recursion():
            yield
        after = self.clock()
        self._looked += after - before
        if not self._better:  # a better plan is confirmed soon
            self._pause_until = after + self._looked / (self.replanning or Replanning()).max_share
            self._looked = 0.0


def check_replaceable(plan: Plan, options: Options) -> None:
    """Raises BuilderError if a run is to replace its plan (`Options.replan`) and cannot."""
    if options.replan is None:
        return
    if not plan.replaceable:
        raise BuilderError("the run cannot replace its plan", hint="plan the program with `replaceable=True`")
    if options.measure:
        hint = "leave `--adapt` or `--profile-nodes` out"
        raise BuilderError("the metrics of nodes are those of one plan", hint=hint)


def plan_for(plan: Plan, planning: Planning, statistics: Statistics) -> tuple[Plan, float]:
    """Returns the plan of the same program for some statistics, and how many times as expensive the present plan is for
    them.

    Args:
        plan: The present plan, which can be made again.
        planning: How the other one is made, apart from its statistics.
        statistics: The statistics.
    """
    assert plan.plan_again is not None, "the plan cannot be made again"
    other = plan.plan_again(planning._replace(statistics=statistics))
    return other, join_cost(plan, statistics) / max(join_cost(other, statistics), 1.0)
