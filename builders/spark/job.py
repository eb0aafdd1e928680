"""A job of the Spark builder: a plan and its options, which `run` processes on a Spark session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from squall.builders.distributed.io.ingest import check_bounded
from squall.builders.distributed.io.records import WorkerError
from squall.builders.distributed.plan.broadcast import closure_inputs
from squall.builders.distributed.plan.physical_plan import PhysicalPlan, physical_plan, plan_of_tasks
from squall.builders.runtime.plan_choice import check_replaceable
from squall.builders.spark.folder import check as check_folder
from squall.builders.spark.run import Run
from squall.builders.spark.session import session
from squall.builders.spark.settings import DEFAULT_TUNING, SparkTuning, settings, spark_settings
from squall.builders.spark.sources import check_input
from squall.builders.spark.store import check_owner, plan_of_checkpoint, read_planning
from squall.contracts import (
    AcceptsDeadLetters,
    BuilderCapabilities,
    Folder,
    Options,
    Output,
    PlanChange,
    declare_capabilities,
)
from squall.errors import BuilderError
from squall.plan import Plan, Planning
from squall.plan.node_metrics import NodeMetric
from squall.rdf import Event
from squall.streams.clock import beginning


@declare_capabilities(
    BuilderCapabilities(
        checkpoints=True,
        recoverable_sinks=True,
        folder_sinks=True,
        one_batch=True,
        batch_interval=True,
        settings=True,
        node_metrics=True,
        replans=True,
        looks_ahead=True,
        batch_metrics=True,
    ),
    read_planning,
)
def build(plan: Plan, options: Options) -> SparkJob:
    """Runs a plan as a PySpark Structured Streaming job, in micro-batches or as one batch.

    The job uses the active Spark session, or a new one with `options.conf`. It does not start Spark yet.

    Raises:
        BuilderError: the checkpoint belongs to another program, the output folder cannot hold the plan's outputs, or
            the plan cannot be replaced although the options ask for it.
        UsageError: `options.conf` has an unknown setting of squall's, or one with an invalid value.
    """
    settings(options.conf)
    if options.run_as_one_batch and options.checkpoint is not None:
        raise BuilderError("one batch keeps no checkpoint", hint="leave out `--batch`, or `--checkpoint`")
    if options.replan is not None:
        _check_replaceable(plan, options)
    resumed = plan if options.checkpoint is None else plan_of_checkpoint(plan, options.checkpoint)
    job = SparkJob(resumed, options, planning=plan.planning)
    if options.checkpoint is not None:
        check_owner(job.plan, options.checkpoint)
    if isinstance(options.sink, Folder):
        check_folder(plan, options.sink)
    return job


def _check_replaceable(plan: Plan, options: Options) -> None:
    """Raises BuilderError if a run cannot replace its plan."""
    check_replaceable(plan, options)
    if plan.plan_again is None:
        raise BuilderError("the run cannot replace its plan", hint="plan the program by `squall.plan`")
    if options.run_as_one_batch and options.replan is not None and not options.replan.forward:
        raise BuilderError("one batch has one plan", hint="say `--adapt forward`, or leave `--adapt` or `--batch` out")


class SparkJob:
    """A plan with its options. For a checkpoint, only one call of `run` may be active at a time.

    Args:
        plan: the plan: if the run resumes, that of its checkpoint.
        options: the options.
        tuning: the tuning values of the builder.
        planning: how other plans are made if the plan is replaced, apart from their statistics. None: as the plan was.
    """

    def __init__(
        self,
        plan: Plan,
        options: Options,
        tuning: SparkTuning = DEFAULT_TUNING,
        planning: Planning | None = None,
    ) -> None:
        self.plan = plan_of_tasks(plan)  # checkpoints belong to the plan that tasks run
        self.planning = plan.planning if planning is None else planning
        self.options = options
        self.tuning = tuning
        self.active_run: Run | None = None

    def describe(self) -> str:
        """Describes the stages and shuffles of the job as text, or says why tasks run the plan as a whole.

        Once a run has begun, the text also names the broadcast inputs and the skewed keys.
        """
        return str(self.physical_plan())

    def as_data(self) -> dict[str, Any]:
        """Returns the same as JSON data."""
        return self.physical_plan().as_data()

    def physical_plan(self) -> PhysicalPlan:
        """Returns what the engine will do: once a run has begun, with its broadcast inputs and skewed keys."""
        if self.active_run is None:
            return physical_plan(self.plan, closure_inputs(self.plan))
        return self.active_run.processor.batches.program.physical

    def node_metrics(self) -> dict[str, NodeMetric]:
        """Returns the metrics of each node so far, summed over all tasks, if the options enable measuring."""
        return {} if self.active_run is None else self.active_run.processor.batches.log.node_metrics.by_node()

    @property
    def plan_changes(self) -> Sequence[PlanChange]:
        """The changes of the plan while the job ran (`squall.contracts.ReplacesPlans`)."""
        return () if self.active_run is None else self.active_run.adaptation.changes

    @property
    def refused_plan(self) -> str:
        """Why the last better plan could not replace the present one (`squall.contracts.ReplacesPlans`)."""
        if self.active_run is None:
            return ""
        adaptation = self.active_run.adaptation
        if not adaptation.changes and self.planning.statistics not in (None, self.plan.statistics):
            return adaptation.refused or "a run on Spark resumes with the plan of its checkpoint"
        return adaptation.refused

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.contracts.Job.run`.

        Bounded input (a list of batches, or `Sources` none of which is live) is processed to its end. Anything else is
        processed as it arrives.
        """
        check_input(batches, static)
        with WorkerError.retold():
            yield from self._outputs(batches, static)

    def _outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        if self.options.run_as_one_batch:
            check_bounded(batches)
        if isinstance(batches, AcceptsDeadLetters):
            batches.set_ledger(self.options.ledger)
        spark = session(spark_settings(self.options.conf))
        begin = beginning(batches) if self.options.now is None else self.options.now
        if self.options.checkpoint is not None:
            folder = self.options.checkpoint
            self.active_run = Run(self.plan, self.planning, self.options, spark, folder, begin, self.tuning)
            yield from self.active_run.outputs(batches, static)
            return
        with tempfile.TemporaryDirectory(prefix="squall-", ignore_cleanup_errors=True) as name:
            self.active_run = Run(self.plan, self.planning, self.options, spark, Path(name), begin, self.tuning)
            yield from self.active_run.outputs(batches, static)
