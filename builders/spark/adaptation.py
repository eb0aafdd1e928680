"""Adaptive planning of a run on Spark: between two micro-batches, it replaces its plan."""

from __future__ import annotations

from squall.builders.distributed.exec.adaptation import BatchAdaptation
from squall.builders.spark.batch_processor import BatchProcessor
from squall.contracts import Replanning
from squall.plan import Plan, Planning
from squall.plan.seeds import with_seed


class RunAdaptation(BatchAdaptation):
    """Looks for better plans between the micro-batches of a run.

    Args:
        plan: the plan of the run, to which no seed is applied.
        planning: how other plans are made, apart from their statistics.
        replanning: when the run replaces its plan. None: never.
        processor: processes the batches.
        seed: the seed of the run.
    """

    def __init__(
        self, plan: Plan, planning: Planning, replanning: Replanning | None, processor: BatchProcessor, seed: int
    ) -> None:
        super().__init__(plan, planning, replanning, processor.settings.max_cached_state_rows)
        self.processor = processor
        self.seed = seed

    def after_batch(self) -> None:
        """Counts the statements of the batch that has been committed, and replaces the plan if another one is
        better."""
        self.count(self.processor.batches, self.processor.statement_count(), self._move)

    def _move(self, plan: Plan) -> None:
        self.processor.move(with_seed(plan, self.seed), plan)
