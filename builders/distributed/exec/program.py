"""A program as every worker has it: its physical plan, and what else a worker has to know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

import pyarrow

from squall import functions
from squall.builders.distributed.exec.routing import Router
from squall.builders.distributed.io.records import (
    READY,
    ROW,
    RowBatch,
    WorkerOutput,
    WorkerStep,
    as_row_batches,
    split_by_stage,
    to_arrow,
)
from squall.builders.distributed.plan.ordered_scan import OrderedScan
from squall.builders.distributed.plan.physical_plan import PhysicalPlan
from squall.builders.distributed.plan.stages import Stage
from squall.plan import Plan


@dataclass(frozen=True)
class Program:
    """A program as every worker has it.

    Attributes:
        physical: the physical plan.
        user_functions: the functions that the user registered by hand. (Workers do not import their modules.)
        static_time: the time that functions of time see for static facts (integer ms).
        measure: whether to count and time what each node does.
    """

    physical: PhysicalPlan
    user_functions: tuple[functions.Member, ...] = ()
    static_time: int = 0
    measure: bool = False

    @property
    def plan(self) -> Plan:
        """The plan that tasks run."""
        return self.physical.plan

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, in the order in which they run."""
        return self.physical.stages

    @property
    def ordered_scan(self) -> OrderedScan:
        """What is scanned in order."""
        return self.physical.ordered_scan

    @property
    def needs_complete_instants(self) -> bool:
        """Whether an instant can be processed only when it is complete."""
        return self.physical.needs_complete_instants

    @property
    def ready_type(self) -> str:
        """The type with which buffered rows are processed. A plan that needs no complete instants processes all at once
        that an earlier version has buffered for it."""
        return READY if self.needs_complete_instants else ROW

    def prepare(self) -> None:
        """Registers the user's functions in this process."""
        functions.register(*self.user_functions)

    def step(
        self,
        name: str,
        work: Callable[[Iterator[RowBatch]], Iterable[WorkerOutput]],
        stages: Collection[int] | None = None,
    ) -> WorkerStep:
        """Returns the worker's function for a function from row batches to records. stages: those whose records it
        takes (None: all); others pass through."""

        def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            self.prepare()
            own: list[pyarrow.RecordBatch] = []
            yield from split_by_stage(batches, stages, own)
            yield from to_arrow(work(as_row_batches(own)))

        step.__name__ = name
        return step

    def router(self) -> Router:
        """Returns a router of the physical plan."""
        return Router(self.physical)
