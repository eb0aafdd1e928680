"""The Spark builder: runs a plan as a PySpark Structured Streaming job (docs/spark.md; decision 0005).

Spark splits the sources, shuffles by the plan's grouping columns, tracks offsets, checkpoints and stores; rows are
worked by the same operators as everywhere (`squall.builders.runtime.operators`), over Arrow, in its Python workers. A micro-batch is
a chain of bounded jobs (`squall.builders.distributed.exec.micro_batch`) whose messages are Parquet under the checkpoint, a
folder per batch, so that a batch that was cut off is done again from the start, with the same outcome.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from squall.builders.distributed.io.ingest import check_bounded
from squall.builders.distributed.io.records import Failed
from squall.builders.distributed.plan.broadcast import closures
from squall.builders.distributed.plan.shardability import why_together
from squall.builders.distributed.plan.shardability_reasons import as_a_whole
from squall.builders.distributed.plan.stages import describe
from squall.builders.spark.folder import check as check_folder
from squall.builders.spark.frames import to_dataframe
from squall.builders.spark.physical import physical
from squall.builders.spark.run import Run
from squall.builders.spark.session import DEFAULTS, session
from squall.builders.spark.settings import (
    BYTES_TOGETHER,
    FILES_PER_BATCH,
    ROWS_IN_WORKER,
    ROWS_TO_ALL,
    ROWS_TOGETHER,
    SKEW_SHARE,
    others,
    settings,
)
from squall.builders.spark.sources import FrameSource
from squall.builders.spark.store import check_owner
from squall.contracts import AcceptsDeadLetters, Folder, Options, Output
from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.node_metrics import NodeMetric
from squall.plan.operators import is_stateful
from squall.rdf import Event
from squall.streams.clock import beginning

__all__ = [
    "BYTES_TOGETHER",
    "DEFAULTS",
    "FILES_PER_BATCH",
    "ROWS_IN_WORKER",
    "ROWS_TOGETHER",
    "ROWS_TO_ALL",
    "SKEW_SHARE",
    "FrameSource",
    "SparkJob",
    "build",
    "session",
    "to_dataframe",
]


def build(plan: Plan, options: Options) -> SparkJob:
    """The plan as a job on the active Spark session, or on one of our own with `options.conf`.

    Raises BuilderError where the checkpoint is that of another plan, or a folder cannot hold what it answers, and
    UsageError where `options.conf` has a setting of squall's that there is not, or cannot be so. Spark is not started
    yet.
    """
    settings(options.conf)
    if options.batch and options.checkpoint is not None:
        raise BuilderError("one batch keeps no checkpoint", hint="leave out `--batch`, or `--checkpoint`")
    if options.migrate:
        hint = "leave `migrate` out, or use the builder `iterator`"
        raise BuilderError("the spark builder goes on with no other program's checkpoint", hint=hint)
    if options.every != Options().every:
        raise BuilderError("the spark builder saves each micro-batch", hint="leave `every` out")
    if options.checkpoint is not None:
        check_owner(plan, options.checkpoint)
    if isinstance(options.sink, Folder):
        check_folder(plan, options.sink)
    return SparkJob(plan, options)


class SparkJob:
    """A plan at work on Spark; `run` may be called once for a checkpoint at a time."""

    def __init__(self, plan: Plan, options: Options) -> None:
        self.plan = plan
        self.options = options
        self.at_work: Run | None = None

    def describe(self) -> str:
        """The job as text: levels, stages, and what moves rows; or why tasks run all of it. Of a run, once it has
        begun, also what goes to all tasks, and which keys are hot."""
        why = as_a_whole(self.plan)
        if why is None:
            if self.at_work is None:
                return describe(self.plan, closures(self.plan))
            program = self.at_work.batches.program
            return describe(self.plan, program.spread, program.hot)
        nodes = sum(is_stateful(node.op) for node in self.plan.nodes)
        together = why_together(self.plan)
        each = "tasks, each for a share of all subjects," if together is None else "a single task"
        but = "" if together is None else f"; {together.node.id} {together.what}"
        return f"{each} of {nodes} nodes that keep rows, in the order of time: {why.node.id} {why.what}{but}"

    def physical(self) -> str:
        """What Spark makes of the job: its own physical plans, with what they work off. Starts a session, where none is
        active, and runs nothing of the plan."""
        return physical(self.plan, self.options, session(others(self.options.conf)))

    def figures(self) -> dict[str, NodeMetric]:
        """What each node has done so far in the run, if the options asked to measure it: in all tasks together."""
        return self.at_work.batches.tally.figures() if self.at_work is not None else {}

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.contracts.Job.run`.

        A list of batches, and `Sources` none of which is live, are worked off as far as they go; anything else is
        worked as it comes.
        """
        with Failed.retold():
            yield from self._outputs(batches, static)

    def _outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        if self.options.batch:
            check_bounded(batches)
        if isinstance(batches, AcceptsDeadLetters):
            batches.adopt(self.options.ledger)
        spark = session(others(self.options.conf))
        begin = beginning(batches) if self.options.now is None else self.options.now
        if self.options.checkpoint is not None:
            self.at_work = Run(self.plan, self.options, spark, self.options.checkpoint, begin)
            yield from self.at_work.outputs(batches, static)
            return
        with tempfile.TemporaryDirectory(prefix="squall-") as folder:
            self.at_work = Run(self.plan, self.options, spark, Path(folder), begin)
            yield from self.at_work.outputs(batches, static)
