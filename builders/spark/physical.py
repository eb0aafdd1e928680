"""Explains a job by Spark's own physical plans, job by job of a batch, without running it."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from squall.builders.distributed.io.engine import Folder, TaskReport
from squall.builders.distributed.io.records import ARROW, ROW, SOURCE_STEP, RecordFile, WorkerStep
from squall.builders.distributed.plan.broadcast import closure_inputs
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.strategy import strategy_of
from squall.builders.spark.engine import SparkEngine
from squall.builders.spark.output_files import write
from squall.builders.spark.run import Run
from squall.builders.spark.session import is_local
from squall.builders.spark.settings import session_settings
from squall.builders.spark.store import Store
from squall.builders.spark.workers import by_own_workers
from squall.contracts import Options
from squall.plan import Plan
from squall.rdf import FOREVER
from squall.streams import Sources, open_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Planned(NamedTuple):
    """A job that a batch would run: its steps, in order, and Spark's plan of it."""

    steps: tuple[str, ...]
    plan: str


def physical(plan: Plan, options: Options, spark: SparkSession) -> str:
    """Returns the jobs of a batch as text, with an empty folder for the sources. If the strategy depends on the size of
    a batch, the text shows every strategy."""
    options = Options(max_update_steps=options.max_update_steps, measure=options.measure, conf=options.conf)
    settings = session_settings(spark, options.conf)
    max_bytes = max(settings.single_task_bytes(physical_plan(plan, closure_inputs(plan)).stages, is_local(spark)), 0)
    condition = ", where the state is small" if strategy_of(plan).is_staged else ""
    variants = [
        (f"# Up to {max_bytes:,} bytes of files{condition}", _jobs(plan, options, spark, 1, straight=True)),
        (f"# Up to {settings.max_single_task_rows:,} rows, with the state", _jobs(plan, options, spark, 1)),
        ("# More", _jobs(plan, options, spark, FOREVER)),
    ]
    distinct_variants = [way for way, following in pairwise(variants) if _steps(way[1]) != _steps(following[1])]
    if not distinct_variants:
        return _text(variants[-1][1])
    return "\n\n".join(f"{title}\n\n{_text(jobs)}" for title, jobs in (*distinct_variants, variants[-1]))


def _steps(jobs: Iterable[Planned]) -> list[tuple[str, ...]]:
    return [job.steps for job in jobs]


def _text(jobs: Sequence[Planned]) -> str:
    return "\n\n".join(f"job {number}: {', then '.join(job.steps)}\n{job.plan}" for number, job in enumerate(jobs, 1))


def _jobs(plan: Plan, options: Options, spark: SparkSession, rows: int, straight: bool = False) -> list[Planned]:
    """Returns the jobs of a batch whose sources bring `rows` rows. straight: the input is known to be small before it
    is read, so a single task runs the batch."""
    with tempfile.TemporaryDirectory(prefix="squall-") as place:
        folder = Path(place)
        (folder / "in").mkdir()
        run = Run(plan, options, spark, folder, 0, partial(PlanningEngine, plan=plan, rows=rows))
        if not straight:
            run.batches.limits = replace(run.batches.limits, max_single_task_bytes=-1)
        deque(run.outputs(Sources([open_source(str(folder / "in"))]), ()), maxlen=0)
        assert isinstance(run.exchange, PlanningEngine)
        return run.exchange.jobs


class PlanningEngine(SparkEngine):
    """Collects in `jobs` the jobs that a batch would run, and runs none.

    It reports `rows` rows for the first job, which reads the sources, with some for each stage. An iteration of a stage
    leaves no rows for another one.
    """

    def __init__(self, spark: SparkSession, store: Store, plan: Plan, rows: int) -> None:
        super().__init__(spark, store)
        self.levels = range(
            len(physical_plan(plan, closure_inputs(plan)).stages) + 1
        )  # 0: the facts of a plan that is run as a whole
        self.rows = rows
        self.jobs: list[Planned] = []
        self.steps = [SOURCE_STEP]
        """The steps of the next job."""
        self.unmade = (write(store.path(), ARROW.empty_table()),)
        """An empty file that stands for all files that no job writes."""

    def shuffle(self, messages: DataFrame, step: WorkerStep, partitions: int) -> DataFrame:
        self.steps.append(step.__name__)
        return super().shuffle(messages, step, partitions)

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        self.steps = []
        lineage = by_own_workers(self.nothing, steps, is_local(self.spark)).toDebugString() or b""
        tasks = f", in {len(steps)} tasks" if len(steps) > 1 else ""
        self.jobs.append(Planned((f"{steps[0].__name__}{tasks}",), lineage.decode()))
        return TaskReport()

    def run(self, messages: DataFrame) -> TaskReport:
        left = (OUTPUT_STAGE, *(() if self.jobs else self.levels))
        plan = str(messages._jdf.queryExecution().executedPlan().toString())
        self.jobs.append(Planned(tuple(self.steps), plan.rstrip()))
        self.steps = []
        return TaskReport(tuple(RecordFile(f"{ROW} ", level, self.rows) for level in left))

    def _read(self, parts: Iterable[Folder]) -> DataFrame | None:
        return super()._read([self.unmade]) if list(parts) else None
