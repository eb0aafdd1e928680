"""Adaptive planning of a run on Spark: before its first micro-batch and between two of them, it replaces its plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from squall.builders.distributed.exec.adaptation import BatchAdaptation
from squall.builders.distributed.io.splits import split_bytes
from squall.builders.distributed.plan.sampling import PatternSampler
from squall.builders.spark.batch_processor import BatchProcessor
from squall.builders.spark.inputs import BatchInput, Head, batch_heads
from squall.contracts import Replanning
from squall.plan import Plan, Planning
from squall.plan.seeds import with_seed

_BYTES_PER_STATEMENT = 100.0
"""About how many bytes of a file a statement takes, before the first batch has been processed."""


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
        self._batch_bytes = 0
        self._bytes_per_statement = _BYTES_PER_STATEMENT

    def first_sampler(self) -> PatternSampler | None:
        """Returns what counts a sample of the input before the run begins; None: nothing does."""
        replanning = self.choice.replanning
        return PatternSampler(self.plan) if replanning is not None and replanning.forward else None

    def before_run(self, sampler: PatternSampler, heads: Sequence[Head]) -> bool:
        """Replaces the plan before the first batch if another one is better for a sample of the input.

        Args:
            sampler: has counted the static data.
            heads: the beginnings of all sources.

        Returns:
            Whether the plan has been replaced.
        """
        with self.choice.timed():
            for head in heads:
                sampler.count(head.events, head.share)
            return self.look_ahead(self.processor.batches, sampler, self._begin)

    def before_batch(self, batch_input: BatchInput) -> None:
        """Replaces the plan if another one is better for a sample of the batch that is processed next."""
        if self.choice.replanning is None:
            return
        parts = list(chain.from_iterable(batch_input.parts))
        self._batch_bytes = sum(map(split_bytes, parts))
        statements = int(self._batch_bytes / self._bytes_per_statement)
        if not self.choice.looks_ahead(statements, self.processor.batches.row_count):
            return
        with self.choice.timed():
            sampler = PatternSampler(self.plan)
            for head in batch_heads(self.processor.documents, parts):
                sampler.count(head.events, head.share)
            self.look_ahead(self.processor.batches, sampler, self._move)

    def after_batch(self) -> None:
        """Counts the statements of the batch that has been committed, and replaces the plan if another one is
        better."""
        statements = self.processor.statement_count()
        if statements and self._batch_bytes:
            self._bytes_per_statement = self._batch_bytes / statements
        self.count(self.processor.batches, statements, self._move)

    def _begin(self, plan: Plan) -> None:
        self.processor.begin_with(with_seed(plan, self.seed), plan)

    def _move(self, plan: Plan) -> None:
        self.processor.move(with_seed(plan, self.seed), plan)
