"""A micro-batch at work: its jobs, from the records of its sources to outputs and state.

A job ends where the driver needs a report (`squall.builders.distributed.plan.physical_plan.jobs_of`). Each step of a
job shuffles the rows on their way to a stage, and processes them in workers. A small batch is processed in one task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from squall.builders.distributed.exec.batch_rows import BatchRows, StagedProgress
from squall.builders.distributed.exec.job_runner import JobRunner
from squall.builders.distributed.exec.output_stage import change_step, last_stages_step, output_step
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.report_times import ReportTimes, add_evaluation_times
from squall.builders.distributed.exec.single_task import SingleTask
from squall.builders.distributed.exec.worker import DELETE, FORWARD, REDERIVE, Span, stage_step
from squall.builders.distributed.io.engine import Frame, TaskReport
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import StateHandle, WorkerRecord, WorkerStep
from squall.builders.distributed.plan.buckets import ORDERED_SCAN, OUTPUT_STAGE
from squall.builders.distributed.plan.physical_plan import Job
from squall.builders.distributed.plan.snapshot_nodes import reports_on_change
from squall.builders.distributed.plan.stages import Stage
from squall.builders.distributed.plan.strategy import BatchLimits, BatchSizes, for_batch
from squall.builders.runtime.creation_limit import check_iterations
from squall.builders.runtime.report_times import ReportSchedule
from squall.rdf import ALWAYS, FOREVER


class Batch:
    """A micro-batch at work.

    Args:
        runner: runs its jobs.
        program: the program.
        progress: how far the job has come before the batch.
        schedules: when snapshots are evaluated, by the number of the node: those of outputs, and of derived streams.
        last: whether no more events follow, so that every instant is complete.
        keep: whether more batches follow, which need the state.

    Attributes:
        span: the time that passes in the batch. If instants have to be complete, rows from the time `span.end + 1` on
            are buffered.
        report: what was reported of the sources.
        rows: the rows and the state that its jobs process.
        report_times: when snapshots were evaluated that the batch outputs.
        cached_rows: the number of rows that operators hold after the batch; None if they do not hold all of the state.
    """

    def __init__(
        self,
        runner: JobRunner,
        program: Program,
        progress: StagedProgress,
        schedules: Mapping[int, ReportSchedule],
        last: bool,
        keep: bool,
    ) -> None:
        self.runner = runner
        self.program = program
        self.progress = progress
        self.schedules = schedules
        self.last = last
        self.span = Span(progress.processed_until, progress.processed_until)
        self.report = TaskReport()
        self.rows = BatchRows(runner, program, progress, keep)
        self.report_times = ReportTimes()
        self.cached_rows: int | None = None

    def process(self, records: Frame | None, limits: BatchLimits) -> None:
        """Processes the records of the sources, or no records (None)."""
        jobs = self.program.physical.jobs
        if len(jobs) == 1 and records is not None:
            self.span = self._span_before_reading()
            frame = self._frame_of(jobs[0], records, ReportTimes())
            assert frame is not None
            self._note_sources(self.runner.run(frame))
            return
        self._note_sources(TaskReport() if records is None else self.runner.run(records))
        add_evaluation_times(self.schedules, self.report.instants)
        sizes = BatchSizes(self.progress.row_count + self.report.row_count)
        is_collected = for_batch(self.program.physical.strategy, limits, sizes) == "collected"
        self.report_times = self._process_collected() if is_collected else self._process_by_jobs()

    def process_in_single_task(self, parse: Parse, earliest: int, first: Sequence[WorkerRecord]) -> None:
        """Processes the batch in one task, from its sources to its outputs. The arguments are those of `SingleTask`."""
        span = self._span_before_reading()
        self._note_sources(self._run_single_task(span, ReportTimes(), parse, earliest, first))
        self.cached_rows = sum(handle.rows for handle in self.report.all(StateHandle)) if self.rows.keep else None

    def _process_collected(self) -> ReportTimes:
        """Processes all stages and the output in one task, where shuffles would take longer. Returns the report times
        of the outputs."""
        report_times = self._report_times_of(self.program.physical.sinks)
        if not self.rows.source_files() and not self._time_advances():
            return report_times
        return _reported(self.program, report_times, self._run_single_task(self.span, report_times))

    def _run_single_task(self, span: Span, report_times: ReportTimes, *sources: Any) -> TaskReport:
        """Runs all stages and the output in one task. The arguments are those of `SingleTask`."""
        stages = [stage.number for stage in self.program.stages]
        groups = [ORDERED_SCAN], stages, [OUTPUT_STAGE]
        states = (self.rows.state(group, in_one_task=True) for group in groups)
        step = SingleTask(self.program, self.rows.source_files(), span, report_times, *[*states, *sources])
        return self.runner.run_tasks([self.runner.with_outputs(step)])

    def _note_sources(self, report: TaskReport) -> None:
        """Notes the report of the job that has read the sources."""
        self.report = report
        self.rows.source_folders = list(self.runner.log.steps)
        self.span = Span(self.progress.processed_until, self._complete_until())

    # Time

    def _span_before_reading(self) -> Span:
        """Returns the time that passes, as far as it is known before the sources are read."""
        previous = self.progress.processed_until
        needs_complete_instants = self.program.needs_complete_instants
        return Span(previous, self._complete_until() if needs_complete_instants else previous, self.last)

    def _complete_until(self) -> int:
        """Returns the time up to which instants are processed. Without an event no time passes."""
        latest = max(self.progress.watermark, self.report.latest_time)
        if self.last and latest > ALWAYS:
            return FOREVER - 1
        latest -= self.program.needs_complete_instants and latest > ALWAYS
        return max(self.progress.processed_until, ALWAYS, latest)

    def _report_times_of(self, numbers: Collection[int]) -> ReportTimes:
        """Returns when the snapshots of some nodes are evaluated in this batch."""
        return ReportTimes.upto(
            {number: instants for number, instants in self.schedules.items() if number in numbers}, self.span.end
        )

    def progress_after(self, number: int | None) -> StagedProgress:
        """Returns how far the job has come after the batch. number: Spark's number of the micro-batch."""
        previous, log = self.progress, self.runner.log
        watermark = max(previous.watermark, self.report.latest_time)
        latest_end = max(previous.latest_end, log.latest_end)
        is_last = self.span.end == FOREVER - 1
        processed_until = self.span.end
        if is_last:  # nothing changes afterwards
            end = max(watermark, latest_end)
            sinks = self.program.physical.sinks.values()
            processed_until = max([end, *(op.report.next_report(end) for op in sinks)])
        needs_complete_instants = self.program.needs_complete_instants
        keeps_buffered = needs_complete_instants and not is_last
        buffered = [waiting for waiting in previous.buffered if keeps_buffered and waiting[1] > processed_until]
        if needs_complete_instants and self.report.latest_start > processed_until:
            buffered += [
                (list(folder), self.report.latest_start, self.report.row_count) for folder in self.rows.source_folders
            ]
        return StagedProgress(
            watermark=max(watermark, processed_until) if is_last else watermark,
            processed_until=processed_until,
            latest_end=latest_end,
            number=previous.number if number is None else number,
            buffered=buffered,
            state_rows=previous.state_rows + log.added_state_rows if self.cached_rows is None else self.cached_rows,
            instants={str(number): list(schedule.rows()) for number, schedule in self.schedules.items()},
            plan_number=previous.plan_number,
        )

    def _time_advances(self) -> bool:
        """Returns whether instants have to be processed even if no rows arrive."""
        return self.program.needs_complete_instants and self.span.start < self.span.end

    # Job by job

    def _process_by_jobs(self) -> ReportTimes:
        """Runs the jobs of the batch behind its sources. Returns the report times of the outputs."""
        report_times: ReportTimes | None = None
        for job in self.program.physical.jobs:
            if job.iterates:
                self._iterate(self.program.physical.stage(*job.stages))
                continue
            if (job.finds_changes or job.outputs) and report_times is None:
                report_times = self._report_times_of(self.program.physical.sinks)
            if job.finds_changes:
                report_times = self._changed_times(report_times or ReportTimes())
            elif (frame := self._frame_of(job, None, report_times or ReportTimes())) is not None:
                report = self.runner.run(frame)
                if not job.outputs:
                    add_evaluation_times(self.schedules, report.instants)
        return report_times or ReportTimes()

    def _frame_of(self, job: Job, flow: Frame | None, report_times: ReportTimes) -> Frame | None:
        """Returns the records that a job computes, or None if there are none.

        Args:
            job: the job.
            flow: the records of the sources, if the job reads them.
            report_times: when snapshots are evaluated, if the job ends with the outputs.
        """
        fused = self.program.physical.fused_output_stages if job.outputs else ()
        stages = job.stages[: len(job.stages) - len(fused)]
        for number in stages:
            is_end = number == stages[-1] and not job.outputs
            flow = self._after_stage(self.program.physical.stage(number), flow, is_end)
        return self._output_frame(flow, fused, report_times) if job.outputs else flow

    def _after_stage(self, stage: Stage, flow: Frame | None, is_end: bool) -> Frame | None:
        """Returns the records on their way after a stage.

        Args:
            stage: the stage.
            flow: the records before it.
            is_end: whether the job ends here, so that its records are stored.
        """
        is_timely = stage.has_event_time_nodes and self._time_advances()
        rows = self.runner.union([flow, self.rows.of_stage(stage.number)])
        rows = self.runner.with_wake(rows, [stage.number], is_timely)
        if rows is None:
            return None
        step = self._stage_step(stage, FORWARD, self.span)
        return self.runner.shuffled(rows, self.runner.with_records(step) if is_end else step, [stage.number])

    def _stage_step(self, stage: Stage, phase: str, span: Span, keep: bool = False) -> WorkerStep:
        """Returns the worker's function for one iteration of a stage. keep: whether a later iteration needs the
        state."""
        state = self.rows.state([stage.number], keep)
        instants = self._report_times_of({self.program.physical.numbers[id] for id in stage.nodes}).instants
        return stage_step(self.program, [stage], phase, span, state, instants)

    def _iterate(self, stage: Stage) -> None:
        """Iterates a stage. Time advances in the first iteration."""
        rows = self.rows.of_stage(stage.number)
        span = self.span
        timely = stage.has_event_time_nodes and self._time_advances()
        if rows is None and not timely:
            return
        iterations = 0
        for phase in (DELETE, REDERIVE) if stage.has_deletions else (FORWARD,):
            rows = self.runner.with_wake(rows, [stage.number], timely or phase == REDERIVE)
            while rows is not None:
                step = self.runner.with_records(self._stage_step(stage, phase, span, keep=True))
                report = self.runner.run(self.runner.shuffled(rows, step, [stage.number]))
                iterations += 1
                check_iterations(self.program.plan, stage.nodes, iterations)
                add_evaluation_times(self.schedules, report.instants)
                span, timely = Span(span.end, span.end), False
                rows = self.runner.stored_rows(self.runner.log.steps[-1:], stage.number)

    # The end

    def _changed_times(self, report_times: ReportTimes) -> ReportTimes:
        """Finds out at which instants answers have changed that are output only then, bucket by bucket. Returns the
        report times at which something is output."""
        change_sinks = [number for number, op in self.program.physical.sinks.items() if reports_on_change(op)]
        if not any(report_times.instants.get(number) for number in change_sinks):
            return report_times
        rows = self.runner.union([self.rows.of_stage(OUTPUT_STAGE), self.runner.wake([OUTPUT_STAGE])])
        step = change_step(self.program, self.span, report_times, self.rows.state([OUTPUT_STAGE]))
        return _reported(self.program, report_times, self.runner.run(self.runner.engine.shuffle(rows, step)))

    def _output_frame(self, flow: Frame | None, fused: Sequence[Stage], report_times: ReportTimes) -> Frame | None:
        """Returns the outputs, or None if there are none.

        Args:
            flow: the records on their way.
            fused: the stages that run in one step with the outputs.
            report_times: when snapshots are evaluated.
        """
        numbers = [stage.number for stage in fused]
        rows = self.runner.union([flow, *map(self.rows.of_stage, (*numbers, OUTPUT_STAGE))])
        timely = [stage.number for stage in fused if stage.has_event_time_nodes]
        rows = self.runner.with_wake(rows, [*timely, OUTPUT_STAGE], self._time_advances())
        if rows is None:
            return None
        arguments = self.span, report_times, self.rows.state([OUTPUT_STAGE])
        step = output_step(self.program, *arguments)
        if fused:
            step = last_stages_step(self.program, fused, self.rows.state(numbers), *arguments)
        return self.runner.shuffled(rows, self.runner.with_outputs(step), numbers)


def _reported(program: Program, report_times: ReportTimes, report: TaskReport) -> ReportTimes:
    """Returns the report times at which something is output, as workers have reported."""
    return report_times.reported(program.plan, {(number, time) for _, number, time in report.instants})
