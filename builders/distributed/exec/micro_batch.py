"""One micro-batch of a distributed engine: a chain of bounded jobs, from records of the sources to outputs and state.

Each step shuffles the rows on their way to a stage, and processes them in Python workers (the bulk synchronous model:
Valiant 1990). The workers cache or read the state of the stage (`squall.builders.distributed.exec.state_cache`).
Consecutive stages run in one job; records for later ones pass through. A recursive stage is iterated, one job for each
iteration, until no rows move. Tasks write what a job leaves as Parquet (`squall.builders.distributed.io.task_output`).
That cuts Spark's lineage and makes the batch repeatable.

Where the answer depends on all of an instant, rows are buffered until the watermark has passed the time at which they
begin to hold. Then the nodes that look at complete instants process them in order.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from squall.builders.distributed.exec.batch_log import MicroBatchLog
from squall.builders.distributed.exec.ordered_scan_tasks import ordered_scan_step
from squall.builders.distributed.exec.output_stage import (
    change_step,
    last_stages_step,
    output_step,
    single_task_step,
    snapshot_outputs,
)
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.report_times import ReportTimes, add_evaluation_times
from squall.builders.distributed.exec.single_task import SingleTask
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import (
    DELETE,
    FORWARD,
    REDERIVE,
    Span,
    compaction,
    initial_records,
    source_step,
    stage_step,
    with_watermark,
)
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Engine, Files, Folder, Frame, NodeMetrics, TaskReport
from squall.builders.distributed.io.parsing import DeadLetter, Parse
from squall.builders.distributed.io.records import (
    BUFFERED,
    DEAD_LETTER,
    ROW,
    STATE,
    Record,
    RowBatch,
    WorkerStep,
    constant_step,
    identity_step,
)
from squall.builders.distributed.plan.buckets import ORDERED_SCAN, OUTPUT_STAGE, SINGLE_PARTITION, BucketPartitions
from squall.builders.distributed.plan.physical_plan import Job
from squall.builders.distributed.plan.snapshot_nodes import reports_on_change, rstream_nodes
from squall.builders.distributed.plan.stages import Stage
from squall.builders.runtime.report_times import ReportSchedule
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.contracts import Output
from squall.plan.operators import DerivedStream
from squall.rdf import ALWAYS, FOREVER

_MAX_ADDED_FACTOR = 10
"""One task compacts up to this many times the rows that one task processes."""


@dataclass
class Progress:
    """How far a job has come, as the commit of its last batch says. All times are integer ms.

    The names of the attributes are part of the checkpoint format.

    Attributes:
        passed: the latest event time so far.
        worked: the instants up to this time have been processed.
        ends: the latest time at which a fact that has been read begins or ends to hold.
        number: Spark's own number of the last micro-batch; -1 before the first.
        held: the folders of buffered rows, each with the latest time at which one begins to hold, and the most rows
            that it holds.
        rows: the most rows that the state has.
        instants: the state of the evaluation instants (`ReportSchedule.rows`), by number of the sink node.
    """

    passed: int = ALWAYS
    worked: int = ALWAYS - 1
    ends: int = ALWAYS
    number: int = -1
    held: list[tuple[list[Any], int, int]] = field(default_factory=list)
    rows: int = 0
    instants: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    @property
    def folders(self) -> list[Folder]:
        """The folders of buffered rows."""
        return [tuple(folder) for folder, _, _ in self.held]

    @property
    def known(self) -> int:
        """The most rows that there are: buffered ones and those of the state."""
        return self.rows + sum(rows for _, _, rows in self.held)


class MicroBatches:
    """The micro-batches of one job, one after the other. The state between them is in the store.

    Args:
        engine: stores, shuffles and processes records.
        store: the files of the job.
        program: the physical plan.
        max_single_task_rows: one task processes a batch whose rows, with those of the state, are at most so many.
        max_cached_rows: the most rows of state that a worker caches from one step to the next.
        max_single_task_bytes: one task processes a batch of at most so many bytes from its sources to its outputs (-1:
            never).
        max_single_task_state_rows: this also needs a state of at most so many rows, or of `max_single_task_rows`.
        compaction_interval: after how many batches the whole state is written again.

    Attributes:
        jobs: the jobs of a batch (`squall.builders.distributed.plan.physical_plan.Job`). If there is one, it makes the
            records of the sources, too: the only thing to know about all sources before is the watermark, which comes
            with the rows.
        log: what batches have stored and committed.
        needs_complete_instants: whether an instant is processed only when it is complete. Then rows from the time
            `span.now + 1` on are buffered.
    """

    def __init__(
        self,
        engine: Engine,
        store: Files,
        program: Program,
        max_single_task_rows: int,
        max_cached_rows: int,
        max_single_task_bytes: int = -1,
        max_single_task_state_rows: int = 0,
        compaction_interval: int = DEFAULT_TUNING.compaction_interval,
    ) -> None:
        self.engine = engine
        self.store = store
        self.program = program
        self.max_single_task_rows = max_single_task_rows
        self.max_single_task_bytes = max_single_task_bytes if max_single_task_rows > 0 else -1
        self.max_single_task_state_rows = max(max_single_task_rows, max_single_task_state_rows)
        self.compaction_interval = compaction_interval
        self.jobs = program.physical.jobs
        router = program.router()
        self.numbers = router.numbers
        self.broadcast_stages = router.broadcast_stages
        """The stages that get broadcast rows."""
        self.sinks = {self.numbers[node.id]: op for node, op in program.plan.sinks}
        self.needs_complete_instants = program.needs_complete_instants
        self.log = MicroBatchLog(store, program.plan)
        self.progress = Progress(**(self.log.last_commit or {}))
        self.instants = {number: ReportSchedule(op) for number, op in rstream_nodes(program.plan).items()}
        """When snapshots are evaluated, by the number of the node: those of outputs, and of derived streams."""
        for number, instants in self.instants.items():
            if str(number) in self.progress.instants:
                instants.load_rows(self.progress.instants[str(number)])
        self.state_versions = self.log.state_versions(engine.reader(), max_cached_rows)
        self.source_folders: list[Folder] = []
        """The step of the batch that holds the records of the sources."""
        self.report = TaskReport()
        self.report_times = ReportTimes()
        self.rows_since_compaction = 0
        """The number of rows that this process has added to the state since it was compacted."""
        self.cached_state_rows: int | None = None
        """The number of rows that operators hold after the batch, if they hold all of the state."""
        self.keeps_state = True
        self.span = Span(ALWAYS - 1, ALWAYS)

    @property
    def committed_count(self) -> int:
        """The number of committed batches."""
        return self.log.committed_count

    @property
    def node_metrics(self) -> NodeMetrics:
        """The metrics of the plan's nodes, over all batches of this process."""
        return self.log.node_metrics

    @property
    def earliest(self) -> int:
        """The time before which an event is late (integer ms)."""
        watermark = self.progress.passed
        return (
            watermark + 1 if self.needs_complete_instants and ALWAYS < watermark <= self.progress.worked else watermark
        )

    @property
    def unfinished(self) -> bool:
        """Whether something is left to process when no more events follow."""
        return self.needs_complete_instants and self.progress.worked < self.progress.passed

    # A batch

    def initial_records(self) -> Sequence[Record | RowBatch]:
        """Returns the records that start the program."""
        return list(initial_records(self.program))

    def initial_step(self, first: Sequence[Record | RowBatch]) -> WorkerStep:
        """Returns the worker's function that outputs these records."""
        return self._source_stage(constant_step(first))

    def source_step(self, parse: Parse) -> WorkerStep:
        """Returns the worker's function from lines to records."""
        return self._source_stage(source_step(self.program, self.earliest, parse))

    def _source_stage(self, step: WorkerStep) -> WorkerStep:
        """Returns the step, which stores its records if it has a job of its own. If an ordered scan follows, that
        stores them instead."""
        return step if self.program.ordered_scan.sources else self._stored_or_timed(step)

    def _scanned_in_order(self, records: Frame) -> Frame:
        """Returns the records of the sources after the ordered scan, if there is one."""
        if not self.program.ordered_scan.sources:
            return records
        step = ordered_scan_step(
            self.program, self._state([ORDERED_SCAN], self.engine.bucket_partitions, self.keeps_state)
        )
        return self.engine.shuffle(records, self._stored_or_timed(step), self.engine.partitions)

    def _stored_or_timed(self, step: WorkerStep) -> WorkerStep:
        if len(self.jobs) > 1:
            return self.engine.with_record_files(step, self.log.step_folder(f"{0:04d}"))
        stages = (*(stage.number for stage in self.program.stages), OUTPUT_STAGE)
        return (
            with_watermark(step, self._partition_places(stages, self.engine.bucket_partitions))
            if self.needs_complete_instants
            else step
        )

    def process(self, records: Frame | None, last: bool = False, keep: bool = True) -> None:
        """Processes a batch. It counts only after `commit`.

        Args:
            records: the records of the sources, or None if there are none.
            last: whether no more events follow, so that every instant is complete.
            keep: whether more batches follow, which need the state.
        """
        self._reset(keep)
        records = None if records is None else self._scanned_in_order(records)
        if len(self.jobs) == 1 and records is not None:
            self.span = self._span_before_reading(last)
            frame = self._frame_of(self.jobs[0], records, ReportTimes())
            assert frame is not None
            self._record_single_job(self.engine.run(frame), last)
            return
        if records is not None:
            self.report = self._run_job(records)
            self.source_folders = list(self.log.steps)
        self.span = Span(self.progress.worked, self._complete_until(last))
        add_evaluation_times(self.instants, self.report.evaluations)
        self.report_times = self._process_in_one_task() if self._fits_one_task() else self._process_by_jobs()

    def _fits_one_task(self) -> bool:
        """Returns whether one task processes all stages and the outputs. If derived streams decide when snapshots are
        evaluated, the driver needs reports of them."""
        asks_streams = self.instants and any(isinstance(node.op, DerivedStream) for node in self.program.plan.nodes)
        return not asks_streams and self.progress.known + self.report.row_count <= self.max_single_task_rows

    def _reset(self, keep: bool) -> None:
        """Starts a batch, for the first time or again."""
        self.log.begin()
        self.state_versions.begin()
        self.source_folders, self.report, self.report_times = [], TaskReport(), ReportTimes()
        self.keeps_state = keep
        self.cached_state_rows = None

    def output_frame(self) -> Frame | None:
        """Returns the outputs of the batch as records (`output_step`)."""
        return self.engine.output_frame(self.log.output_folder(), self.log.output_files)

    def outputs(self) -> Iterator[Output]:
        """Yields the outputs of the batch in the order of time."""
        answers = self.engine.read_outputs(self.log.output_folder(), self.log.output_files)
        yield from snapshot_outputs(answers, self.sinks, self.report_times)

    def commit(self, number: int | None) -> None:
        """Commits the batch, whose outputs are durable. number: Spark's number of the micro-batch."""
        previous = self.progress
        watermark, ends = max(previous.passed, self.report.latest_time), max(previous.ends, self.log.latest_end)
        is_last = self.span.now == FOREVER - 1
        processed_until = self._final_time(max(watermark, ends)) if is_last else self.span.now
        buffered = (
            []
            if is_last or not self.needs_complete_instants
            else [waiting for waiting in previous.held if waiting[1] > processed_until]
        )
        if self.needs_complete_instants and self.report.latest_start > processed_until:
            buffered += [
                (list(folder), self.report.latest_start, self.report.row_count) for folder in self.source_folders
            ]
        self.progress = Progress(
            passed=max(watermark, processed_until) if is_last else watermark,
            worked=processed_until,
            ends=ends,
            number=previous.number if number is None else number,
            held=buffered,
            rows=self._state_row_count(),
            instants={str(number): list(instants.rows()) for number, instants in self.instants.items()},
        )
        self.rows_since_compaction += self.log.added_state_rows
        self.log.commit(asdict(self.progress), (*previous.folders, *self.log.steps), self.progress.folders)
        self.state_versions.commit()
        if self.committed_count - 1 - self.log.base_number >= self.compaction_interval:
            self._compact()

    def _state_row_count(self) -> int:
        """Returns the most rows that the state has after the batch."""
        if self.cached_state_rows is not None:
            return self.cached_state_rows
        return self.progress.rows + self.log.added_state_rows

    def _report_times_of(self, numbers: Collection[int]) -> ReportTimes:
        """Returns when the snapshots of some nodes are evaluated in this batch."""
        return ReportTimes.upto(
            {number: instants for number, instants in self.instants.items() if number in numbers}, self.span.now
        )

    def _complete_until(self, last: bool) -> int:
        """Returns the time up to which instants are processed. Without an event no time passes."""
        latest = max(self.progress.passed, self.report.latest_time)
        if last and latest > ALWAYS:
            return FOREVER - 1
        return max(
            self.progress.worked, ALWAYS, latest - 1 if self.needs_complete_instants and latest > ALWAYS else latest
        )

    def _final_time(self, time: int) -> int:
        """Returns the time after which nothing changes, if no more events follow this time."""
        periods = [op.report.period for op in self.sinks.values() if op.report.policy == "periodic"]
        return max([time, *(-(-time // period) * period for period in periods)]) if time > ALWAYS else time

    def _run_job(self, records: Frame) -> TaskReport:
        """Runs a job, stores its records as the next step of the batch, and returns its report."""
        return self._record_job(self.engine.run(records))

    def _record_job(self, report: TaskReport) -> TaskReport:
        """Notes that a job has stored its records as the next step of the batch."""
        folder = self.log.next_step()
        self.log.add(folder, report)
        self.state_versions.add(folder, report)
        return report

    # State

    def _state(self, stages: Iterable[int], bucket_partitions: BucketPartitions, keep: bool) -> State:
        return self.state_versions.state(stages, bucket_partitions, keep, self._state_watermark())

    def _output_state(self) -> State:
        """Returns the state of the sink nodes."""
        return self._state([OUTPUT_STAGE], self.engine.bucket_partitions, self.keeps_state)

    def _state_watermark(self) -> int:
        """Returns the time before which no row that is still to come begins to hold (integer ms)."""
        return self.progress.worked if self.needs_complete_instants else self.progress.passed

    def _wake_frame(self, stages: Iterable[int], bucket_partitions: BucketPartitions) -> Frame:
        """Returns the records that make all partitions of some stages run, whether rows arrive for them or not."""
        return self.engine.wake_records(self._partition_places(stages, bucket_partitions))

    def _partition_places(self, stages: Iterable[int], bucket_partitions: BucketPartitions) -> list[tuple[int, int]]:
        """Returns all partitions of some stages, each with one of its buckets."""
        buckets = {owner: bucket for bucket, owner in enumerate(bucket_partitions)}.values()
        return [(stage, bucket) for stage in stages for bucket in buckets]

    # The sources' messages

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yields the dead letters of the batch."""
        for text in self.engine.stored_rows(DEAD_LETTER, 0, self.source_folders):
            yield DeadLetter(*json.loads(text))

    def _input_rows(self, stage: int) -> Frame | None:
        """Returns the rows on their way to a stage: buffered ones of the sources, new ones, and those that earlier
        stages have output."""
        folders = [*self.progress.folders, *self.source_folders]
        rows = self.engine.union(self.engine.stored_records(kind, stage, folders) for kind in self._source_types())
        if rows is not None and (self.needs_complete_instants or self.progress.held):
            rows = self.engine.with_record_type(self.program.ready_type, rows)
        later_folders = [folder for folder in self.log.steps if folder not in self.source_folders]
        return self.engine.union([rows, self.engine.stored_records(ROW, stage, later_folders)])

    def _source_types(self) -> Sequence[str]:
        """Returns the types under which rows of the sources are stored."""
        return (BUFFERED,) if len(self.jobs) == 1 else (ROW, BUFFERED)

    def _time_advances(self) -> bool:
        """Returns whether instants have to be processed even if no rows arrive."""
        return self.needs_complete_instants and self.span.before < self.span.now

    # All in one job, of one task

    def fits_single_task(self, size: int) -> bool:
        """Returns whether one task processes a batch of so many bytes from sources to outputs. If snapshots are
        evaluated, the driver has to decide when, so it does not."""
        return (
            not self.instants
            and size <= self.max_single_task_bytes
            and self.progress.known <= self.max_single_task_state_rows
        )

    def process_in_single_task(
        self, parse: Parse, first: Sequence[Record | RowBatch] = (), last: bool = False, keep: bool = True
    ) -> None:
        """Processes such a batch as `process` does.

        Args:
            parse: reads the sources.
            first: the records that start the program, if it starts.
            last: as for `process`.
            keep: as for `process`.
        """
        self._reset(keep)
        stages = [*(stage.number for stage in self.program.stages), OUTPUT_STAGE]
        places = [(kind, stage) for kind in self._source_types() for stage in stages]
        waited = [file for place in places for file in task_output.files_of(self.store, *place, self.progress.folders)]
        span = self._span_before_reading(last)
        states = (self._state(part, SINGLE_PARTITION, keep) for part in ([ORDERED_SCAN], stages[:-1], [OUTPUT_STAGE]))
        step = SingleTask(self.program, parse, self.earliest, first, waited, span, *states)
        self._record_single_job(self.engine.run_tasks([self._with_files(step)]), last)
        self.cached_state_rows = self.report.cached_rows if keep else None

    def _span_before_reading(self, last: bool) -> Span:
        """Returns the time that passes, as far as it is known before the sources are read."""
        previous = self.progress.worked
        return Span(previous, self._complete_until(last) if self.needs_complete_instants else previous, last)

    def _record_single_job(self, report: TaskReport, last: bool) -> None:
        """Notes that the only job of the batch is done."""
        self.report = self._record_job(report)
        self.source_folders = list(self.log.steps)
        self.span = Span(self.progress.worked, self._complete_until(last))

    # All in one task

    def _process_in_one_task(self) -> ReportTimes:
        """Processes all stages and the output in one task, where shuffles would take longer. Returns the report times
        of the outputs."""
        report_times = self._report_times_of(self.sinks)
        stages = [*(stage.number for stage in self.program.stages), OUTPUT_STAGE]
        rows = self.engine.union(self._input_rows(stage) for stage in stages)
        if self._time_advances():
            rows = self.engine.union([rows, self._wake_frame(stages, SINGLE_PARTITION)])
        if rows is None:
            return report_times
        state, end = (self._state(part, SINGLE_PARTITION, self.keeps_state) for part in (stages[:-1], [OUTPUT_STAGE]))
        step = self._with_files(single_task_step(self.program, self.span, report_times, state, end))
        return self._reported_times(report_times, self._run_job(self._shuffled(rows, step, stages, SINGLE_PARTITION)))

    def _with_files(self, step: WorkerStep) -> WorkerStep:
        """Returns the last step of a job, which stores its outputs and records."""
        return self.engine.with_record_files(
            self.engine.with_output_files(step, self.log.output_folder()), self.log.next_step()
        )

    # Job by job

    def _process_by_jobs(self) -> ReportTimes:
        """Runs the jobs of the batch behind its sources. Returns the report times of the outputs."""
        report_times: ReportTimes | None = None
        for job in self.jobs:
            if job.iterates:
                self._iterate(self.program.physical.stage(*job.stages))
                continue
            if (job.finds_changes or job.outputs) and report_times is None:
                report_times = self._report_times_of(self.sinks)
            if job.finds_changes:
                report_times = self._changed_times(report_times or ReportTimes())
            elif (frame := self._frame_of(job, None, report_times or ReportTimes())) is not None:
                report = self._run_job(frame)
                if not job.outputs:
                    add_evaluation_times(self.instants, report.evaluations)
        return report_times or ReportTimes()

    def _frame_of(self, job: Job, flow: Frame | None, report_times: ReportTimes) -> Frame | None:
        """Returns the records that a job computes, or None if there are none.

        Args:
            job: the job.
            flow: the records of the sources, if the job reads them.
            report_times: when snapshots are evaluated, if the job ends with the outputs.
        """
        fused = self.program.physical.fused_output_stages if job.outputs else ()
        for number in job.stages[: len(job.stages) - len(fused)]:
            flow = self._after_stage(self.program.physical.stage(number), flow)
        if job.outputs:
            return self._output_frame(flow, fused, report_times)
        if flow is None:
            return None
        return self.engine.map_partitions(flow, self.engine.with_record_files(identity_step, self.log.next_step()))

    def _after_stage(self, stage: Stage, flow: Frame | None) -> Frame | None:
        """Returns the records on their way after a stage. flow: those before it."""
        rows = self.engine.union([flow, self._input_rows(stage.number)])
        if stage.has_event_time_nodes and self._time_advances():
            rows = self.engine.union([rows, self._wake_frame([stage.number], self.engine.bucket_partitions)])
        if rows is None:
            return None
        step = self._stage_step(stage, FORWARD, self.span, self.keeps_state)
        return self._shuffled(rows, step, [stage.number], self.engine.bucket_partitions)

    def _shuffled(
        self, rows: Frame, step: WorkerStep, stages: Sequence[int], bucket_partitions: BucketPartitions
    ) -> Frame:
        """Returns what a step makes of the shuffled rows of some stages. Broadcast rows go to every task."""
        if self.broadcast_stages & {*stages}:
            rows = self.engine.broadcast(rows, stages, sorted(map(bucket_partitions.index, set(bucket_partitions))))
        return self.engine.shuffle(rows, step, 1 if bucket_partitions == SINGLE_PARTITION else self.engine.partitions)

    def _stage_step(self, stage: Stage, phase: str, span: Span, keep: bool) -> WorkerStep:
        """Returns the worker's function for one iteration of a stage. keep: whether a later iteration needs the
        state."""
        state = self._state([stage.number], self.engine.bucket_partitions, keep)
        instants = self._report_times_of({self.numbers[id] for id in stage.nodes}).instants
        return stage_step(self.program, [stage], phase, span, state, instants)

    def _iterate(self, stage: Stage) -> None:
        """Iterates a stage. Time advances in the first iteration."""
        rows = self._input_rows(stage.number)
        span = self.span
        timely = stage.has_event_time_nodes and self._time_advances()
        if rows is None and not timely:
            return
        for phase in (DELETE, REDERIVE) if stage.has_deletions else (FORWARD,):
            if timely or phase == REDERIVE:
                rows = self.engine.union([rows, self._wake_frame([stage.number], self.engine.bucket_partitions)])
            while rows is not None:
                step = self.engine.with_record_files(
                    self._stage_step(stage, phase, span, keep=True), self.log.next_step()
                )
                report = self._run_job(self._shuffled(rows, step, [stage.number], self.engine.bucket_partitions))
                add_evaluation_times(self.instants, report.evaluations)
                span, timely = Span(span.now, span.now), False
                rows = self.engine.stored_records(ROW, stage.number, self.log.steps[-1:])

    # The end

    def _changed_times(self, report_times: ReportTimes) -> ReportTimes:
        """Finds out at which instants answers have changed that are output only then, bucket by bucket. Returns the
        report times at which something is output."""
        change_sinks = [number for number, op in self.sinks.items() if reports_on_change(op)]
        if not any(report_times.instants.get(number) for number in change_sinks):
            return report_times
        rows = self.engine.union(
            [self._input_rows(OUTPUT_STAGE), self._wake_frame([OUTPUT_STAGE], self.engine.bucket_partitions)]
        )
        step = change_step(self.program, self.span, report_times, self._output_state())
        report = self._run_job(self.engine.shuffle(rows, step, self.engine.partitions))
        return self._reported_times(report_times, report)

    def _output_frame(self, flow: Frame | None, fused: Sequence[Stage], report_times: ReportTimes) -> Frame | None:
        """Returns the outputs, or None if there are none.

        Args:
            flow: the records on their way.
            fused: the stages that run in one step with the outputs.
            report_times: when snapshots are evaluated.
        """
        numbers = [stage.number for stage in fused]
        rows = self.engine.union([flow, *map(self._input_rows, (*numbers, OUTPUT_STAGE))])
        if self._time_advances():
            timely = [stage.number for stage in fused if stage.has_event_time_nodes]
            rows = self.engine.union([rows, self._wake_frame([*timely, OUTPUT_STAGE], self.engine.bucket_partitions)])
        if rows is None:
            return None
        step = output_step(self.program, self.span, report_times, self._output_state())
        if fused:
            state = self._state(numbers, self.engine.bucket_partitions, self.keeps_state)
            step = last_stages_step(self.program, fused, self.span, report_times, state, self._output_state())
        return self._shuffled(rows, self._with_files(step), numbers, self.engine.bucket_partitions)

    def _reported_times(self, report_times: ReportTimes, report: TaskReport) -> ReportTimes:
        return report_times.reported(self.program.plan, {(number, time) for _, number, time in report.evaluations})

    def _run_compaction(self, folder: Folder) -> TaskReport | None:
        """Runs the job that compacts the state of all batches into a folder, and returns its report (None: there is no
        state). One task does it if few rows have been added since the last time."""
        step = compaction(self.program, self._state_watermark())
        if (
            self.max_single_task_bytes >= 0
            and self.progress.known <= self.max_single_task_rows
            and self.rows_since_compaction <= _MAX_ADDED_FACTOR * self.max_single_task_rows
        ):
            files = self.state_versions.files()
            step = task_output.over_files(step, self.state_versions.read, files)
            return self.engine.run_tasks([self.engine.with_record_files(step, folder)]) if files else None
        stages = {stage for version in self.state_versions.versions for stage in version.files}
        folders = [version.folder for version in self.state_versions.versions]
        state = self.engine.union(self.engine.stored_records(STATE, stage, folders) for stage in stages)
        if state is None:
            return None
        step = self.engine.with_record_files(step, folder)
        return self.engine.run(self.engine.shuffle(state, step, self.engine.partitions))

    def _compact(self) -> None:
        """Compacts the state of all batches so far."""
        report = self.log.compact(self._run_compaction, self.state_versions, self.progress.folders)
        if report is not None:
            self.progress.rows = report.state_rows
            self.rows_since_compaction = 0
