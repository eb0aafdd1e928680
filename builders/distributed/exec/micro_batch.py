"""The micro-batches of a distributed engine: each is a chain of bounded jobs, from sources to outputs and state.

Each job processes the rows of some stages in Python workers (the bulk synchronous model: Valiant 1990). The workers
cache or read the state of the stage (`squall.builders.distributed.exec.state_cache`). Consecutive stages run in one
job; records for later ones pass through. A recursive stage is iterated, one job for each iteration, until no rows move.
Tasks write what a job leaves as Parquet (`squall.builders.distributed.io.task_output`). That cuts Spark's lineage and
makes the batch repeatable.

Where the answer depends on all of an instant, rows are buffered until the watermark has passed the time at which they
begin to hold. Then the nodes that look at complete instants process them in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from squall.builders.distributed.exec.batch import Batch
from squall.builders.distributed.exec.batch_log import MicroBatchLog
from squall.builders.distributed.exec.batch_rows import BatchRows, StagedProgress
from squall.builders.distributed.exec.job_runner import JobRunner
from squall.builders.distributed.exec.logged_batches import LoggedBatches
from squall.builders.distributed.exec.ordered_scan_tasks import ordered_scan_step
from squall.builders.distributed.exec.output_stage import snapshot_outputs
from squall.builders.distributed.exec.plan_change import PlanMove, move_results, statistics_of, statistics_step
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.sharded_plan import Shards
from squall.builders.distributed.exec.worker import compaction, initial_records, source_step
from squall.builders.distributed.io.engine import Engine, Files, Frame, TaskReport
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import WorkerRecord, WorkerStep, constant_step
from squall.builders.distributed.plan.buckets import ORDERED_SCAN
from squall.builders.distributed.plan.snapshot_nodes import rstream_nodes
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.runtime.replanning import CannotReplan
from squall.builders.runtime.report_times import ReportSchedule
from squall.contracts import Output
from squall.plan import Plan
from squall.plan.cardinality import Statistics


def batches_of(
    engine: Engine, store: Files, program: Program, limits: BatchLimits, max_update_steps: int
) -> LoggedBatches:
    """Returns what processes the micro-batches of a job.

    Args:
        engine: shuffles and processes records.
        store: the files of the job.
        program: the program.
        limits: what one task does, and what is kept.
        max_update_steps: how often updates may act without an event in between.
    """
    if program.physical.strategy.is_staged:
        return MicroBatches(engine, store, program, limits)
    return Shards(engine, store, program, max_update_steps, limits)


class MicroBatches(LoggedBatches):
    """The micro-batches of a plan that tasks run stage by stage.

    Args:
        engine: shuffles and processes records.
        store: the files of the job.
        program: the program.
        limits: what one task does, and what is kept.

    Attributes:
        schedules: when snapshots are evaluated, by the number of the node: those of outputs, and of derived streams.
        batch: the current batch, which has been processed and not been committed, or the last one.
        rows_since_compaction: the number of rows that this process has added to the state since it was compacted.
    """

    progress: StagedProgress

    def __init__(self, engine: Engine, store: Files, program: Program, limits: BatchLimits) -> None:
        log = MicroBatchLog(store, program.plan)
        super().__init__(program, limits, JobRunner(engine, program, log, limits.max_cached_rows))
        self.progress = StagedProgress.of_commit(log.last_commit) or StagedProgress()
        self.schedules = {number: ReportSchedule(op) for number, op in rstream_nodes(program.plan).items()}
        for number, schedule in self.schedules.items():
            if str(number) in self.progress.instants:
                schedule.load_rows(self.progress.instants[str(number)])
        self.batch: Batch | None = None
        self.rows_since_compaction = 0

    @property
    def report(self) -> TaskReport:
        return self._current.report

    @property
    def _current(self) -> Batch:
        assert self.batch is not None, "no batch has been processed"
        return self.batch

    @property
    def earliest(self) -> int:
        """The time before which an event is late (integer ms)."""
        watermark, processed_until = self.progress.watermark, self.progress.processed_until
        is_complete = self.program.needs_complete_instants and watermark <= processed_until
        return watermark + 1 if is_complete else watermark

    @property
    def unfinished(self) -> bool:
        return self.program.needs_complete_instants and self.progress.processed_until < self.progress.watermark

    # The sources

    def initial_records(self) -> Sequence[WorkerRecord]:
        return list(initial_records(self.program))

    def initial_step(self, first: Sequence[WorkerRecord]) -> WorkerStep:
        return self._source_stage(constant_step(first))

    def source_step(self, parse: Parse) -> WorkerStep:
        return self._source_stage(source_step(self.program, self.earliest, parse))

    def _source_stage(self, step: WorkerStep) -> WorkerStep:
        """Returns the step, which stores its records if it has a job of its own. If an ordered scan follows, that
        stores them instead."""
        return step if self.program.ordered_scan.sources else self.runner.end_of_sources(step)

    def _scanned_in_order(self, records: Frame) -> Frame:
        """Returns the records of the sources after the ordered scan, if there is one."""
        if not self.program.ordered_scan.sources:
            return records
        state = self._current.rows.state([ORDERED_SCAN])
        step = self.runner.end_of_sources(ordered_scan_step(self.program, state))
        return self.runner.engine.shuffle(records, step)

    # A batch

    @property
    def row_count(self) -> int:
        return self.progress.row_count

    def process(self, records: Frame | None, last: bool = False, keep: bool = True) -> None:
        self.batch = Batch(self.runner, self.program, self.progress, self.schedules, last, keep)
        records = None if records is None else self._scanned_in_order(records)
        self.batch.process(records, self.limits)

    def process_unshuffled(
        self, parse: Parse, first: Sequence[WorkerRecord] = (), last: bool = False, keep: bool = True
    ) -> None:
        self.batch = Batch(self.runner, self.program, self.progress, self.schedules, last, keep)
        self.batch.process_in_single_task(parse, self.earliest, first)

    def outputs(self) -> Iterator[Output]:
        yield from snapshot_outputs(self.stored_outputs(), self.program.physical.sinks, self._current.report_times)

    def commit(self, number: int | None) -> None:
        previous, self.progress = self.progress, self._current.progress_after(number)
        self.rows_since_compaction += self.log.added_state_rows
        self.log.commit(self.progress, (*previous.folders, *self.log.steps), self.progress.folders)
        self.runner.versions.commit()
        if self.log.committed_count - 1 - self.log.base_number >= self.limits.compaction_interval:
            self._compact()

    def _compact(self) -> None:
        """Compacts the state of all batches so far. One task does it if few rows have been added since the last
        time."""
        step = compaction(self.program, self.progress.state_watermark(self.program))
        in_one_task = self.limits.fit_compaction_task(self.progress.row_count, self.rows_since_compaction)
        run = partial(self.runner.compact, step, in_one_task)
        report = self.log.compact(run, self.runner.versions, self.progress.folders)
        if report is not None:
            self.progress.state_rows = report.state_rows
            self.rows_since_compaction = 0

    # Another plan

    @property
    def looked_at_rows(self) -> int:
        return self.progress.row_count if self.progress.state_rows else 0

    @property
    def watermark(self) -> int:
        return self.progress.watermark

    def statistics(self) -> Statistics:
        step = statistics_step(self.program, self.progress.state_watermark(self.program))
        return statistics_of(self.runner.run_over_state(step))

    def move(self, program: Program, logical_before: Plan, logical: Plan, plan: object) -> None:
        previous, log = self.progress, self.log
        watermark = previous.state_watermark(self.program)
        move = PlanMove(self.program, program, logical_before, logical, watermark, previous.processed_until)
        buffered_files = BatchRows(self.runner, self.program, previous, keep=True).source_files()
        folder = log.next_step()
        report = self.runner.run_over_state(self.runner.with_records(move.step(), folder), buffered_files)
        try:
            (result,) = move_results(report)
        except CannotReplan:
            log.abandon()
            raise
        log.add(folder, report)
        self.progress = replace(
            previous,
            buffered=[(list(folder), report.latest_start, report.row_count)] if report.row_files else [],
            state_rows=report.state_rows,
            instants={str(result["numbers"][number]): rows for number, rows in previous.instants.items()},
        )
        log.move(self.progress, (*previous.folders, folder), self.progress.folders, plan)
