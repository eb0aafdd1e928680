"""One micro-batch of a distributed builder: a chain of bounded jobs, from messages of the sources to outputs and state.

Each *superstep* shuffles the rows on their way to a level, and works them off in Python workers (the bulk synchronous
model: Valiant 1990), which hold or read what the level keeps (`squall.builders.distributed.exec.state_cache`). Levels
follow each other in one job; messages for later ones are handed on. A level inside which rows move takes supersteps,
each a job, until nothing moves any more. What a job leaves its tasks write as Parquet
(`squall.builders.distributed.io.task_output`), which cuts the lineage and makes the batch repeatable.

Where the answer depends on all of an instant, rows wait until time has passed the instant at which they begin; then
what looks at instants as a whole goes through all of them, in order.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from squall.builders.distributed.exec.ordered_scan_tasks import ordered_scan_step
from squall.builders.distributed.exec.output_stage import (
    change_step,
    last_stages_step,
    output_step,
    single_task_step,
    snapshot_outputs,
)
from squall.builders.distributed.exec.report_times import (
    ReportTimes,
    add_evaluation_times,
    reports_on_change,
    rstream_nodes,
)
from squall.builders.distributed.exec.routing import (
    ORDERED_SCAN,
    OUTPUT_STAGE,
    SINGLE_PARTITION,
    BucketPartitions,
    PhysicalPlan,
)
from squall.builders.distributed.exec.single_task import SingleTask
from squall.builders.distributed.exec.state_cache import State, StateVersions
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
    BATCH_LOCAL,
    BUFFERED,
    DEAD_LETTER,
    READY,
    ROW,
    STATE,
    Record,
    RowBatch,
    WorkerStep,
    constant_step,
    identity_step,
)
from squall.builders.distributed.plan.stages import Stage
from squall.builders.runtime.report_times import Instants
from squall.builders.runtime.state import COMPACT
from squall.contracts import Output
from squall.plan.operators import DerivedStream
from squall.rdf import ALWAYS, FOREVER

_MAX_ADDED_FACTOR = 10
"""So many times as many rows as one task works off it adds up."""


@dataclass
class Progress:
    """How far a job has come: what the commit of its last batch says. All times are integer ms.

    passed: the latest event time so far. worked: the instants up to this one have been worked off. ends: the latest
    time at which what has been read begins or ends, if it does.
    number: Spark's own number of the last micro-batch; -1 before the first.
    held: the folders in which rows wait for their instant to be whole, each with the latest time at which one begins,
    and how many they are at most. rows: how many rows the state has at most.
    instants: what is known of evaluation instants (`Instants.rows`), by number of the operation node.
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
        """Those in which rows wait."""
        return [tuple(folder) for folder, _, _ in self.held]

    @property
    def known(self) -> int:
        """How many rows there are at most, those that wait and those of the state."""
        return self.rows + sum(rows for _, _, rows in self.held)


class MicroBatches:
    """The batches of one job, one after the other; the state between them lies in the store.

    done: how many are committed. needs_complete_instants: whether an instant is worked off only when all of it is
    there; then rows from the time `span.now + 1` on wait. at_once: no level takes rounds, and of what the sources hold
    nothing has to be known to all before it is worked off but how far time has come, which the rows bring along: a
    batch is one job. together: up to how many rows, those of the batch and of the state, another batch is worked off by
    a single task; few: up to how many bytes that are read one task works a batch off straight through (-1: never),
    where the state has up to so many rows, too, or as many as `state` says. most: how many rows of state a worker holds
    from one superstep to the next, at most."""

    def __init__(
        self,
        exchange: Engine,
        store: Files,
        program: PhysicalPlan,
        together: int,
        most: int,
        few: int = -1,
        state: int = 0,
    ) -> None:
        self.engine = exchange
        self.store = store
        self.program = program
        self.max_single_task_rows = together
        self.max_single_task_bytes = few if together > 0 else -1
        self.max_single_task_state_rows = max(together, state)
        plan = program.plan
        router = program.router()
        self.numbers = numbers = router.numbers
        self.broadcast_stages = router.broadcast_stages
        """The levels to which rows come that go to all tasks."""
        self.sinks = {numbers[node.id]: op for node, op in plan.sinks}
        self.change_sinks = {number for number, op in self.sinks.items() if reports_on_change(op)}
        self.needs_complete_instants = program.needs_complete_instants
        self.committed_count = len(store.numbers("commits"))
        self.progress = Progress(**(store.read("commits", f"{self.committed_count - 1}.json") or {}))
        self.instants = {number: Instants(op) for number, op in rstream_nodes(plan).items()}
        """When what is told whole is evaluated, by the number of the node: answers, and streams that the plan makes."""
        makers = [router.stage_numbers[node.id] for node in plan.nodes if isinstance(node.op, DerivedStream)]
        self.stream_stages = {*makers} if self.instants else set()
        """The levels that make streams which may say when something is told whole."""
        self.fused_output_stages = program.fused_output_stages
        """The last level, if it is worked off together with the end,"""
        self.separate_stages = program.stages[: len(program.stages) - len(self.fused_output_stages)]
        """and those before."""
        self.is_single_job = not self.instants and not any(level.recursive for level in program.stages)
        self.source_record_types = (BUFFERED,) if self.is_single_job else (ROW, BUFFERED)
        """As what the rows of the sources are stored."""
        for number, instants in self.instants.items():
            if str(number) in self.progress.instants:
                instants.take(self.progress.instants[str(number)])
        self.base_number = max(self.store.numbers("base"), default=-1)
        state_folders: list[Folder] = [("base", self.base_number)] if self.base_number >= 0 else []
        for batch in range(self.base_number + 1, self.committed_count):
            state_folders += [("runs", batch, step) for step in self.store.names("runs", batch)]
        self.state_versions = StateVersions(store, state_folders, exchange.reader(), most)
        self.step_names: list[str] = []
        self.source_folders: list[Folder] = []
        """The step of the batch that holds what came from the sources."""
        self.output_files: tuple[str, ...] = ()
        """The files that hold its answers."""
        self.report = TaskReport()
        self.report_times = ReportTimes()
        self.node_metrics = NodeMetrics(plan)
        self.added_state_rows = 0
        self.rows_since_compaction = 0
        """How many rows this process has seen added to the state since it was compacted."""
        self.cached_state_rows: int | None = None
        """How many rows operators hold behind it, if they hold all of the state."""
        self.latest_end = ALWAYS
        """The latest time at which anything begins or ends that has come, or has been made of it, if it does."""
        self.keeps_state = True
        self.span = Span(ALWAYS - 1, ALWAYS)

    @property
    def earliest(self) -> int:
        """The time (integer ms) before which an event is late."""
        watermark = self.progress.passed
        return (
            watermark + 1 if self.needs_complete_instants and ALWAYS < watermark <= self.progress.worked else watermark
        )

    @property
    def unfinished(self) -> bool:
        """Whether there is something to do when no more events will come."""
        return self.needs_complete_instants and self.progress.worked < self.progress.passed

    # A batch

    def initial_records(self) -> Sequence[Record | RowBatch]:
        """The messages that start the program."""
        return list(initial_records(self.program))

    def initial_step(self, first: Sequence[Record | RowBatch]) -> WorkerStep:
        """The worker's function that makes these messages, of nothing."""
        return self._source_stage(constant_step(first))

    def source_step(self, parse: Parse) -> WorkerStep:
        """The worker's function from lines to messages."""
        return self._source_stage(source_step(self.program, self.earliest, parse))

    def _source_stage(self, step: WorkerStep) -> WorkerStep:
        """The function, what it makes being stored where a job of its own makes it; later, where facts are taken in
        turn first."""
        return step if self.program.ordered_scan.sources else self._stored_or_timed(step)

    def _scanned_in_order(self, messages: Frame) -> Frame:
        """The messages of the sources, their facts taken in turn that have to be."""
        if not self.program.ordered_scan.sources:
            return messages
        step = ordered_scan_step(self.program, self._state([ORDERED_SCAN], self.engine.owners, self.keeps_state))
        return self.engine.shuffle(messages, self._stored_or_timed(step), self.engine.partitions)

    def _stored_or_timed(self, step: WorkerStep) -> WorkerStep:
        if not self.is_single_job:
            return self.engine.with_record_files(step, self._next_step(0))
        levels = (*(level.number for level in self.program.stages), OUTPUT_STAGE)
        return (
            with_watermark(step, self._partition_places(levels, self.engine.owners))
            if self.needs_complete_instants
            else step
        )

    def process(self, messages: Frame | None, last: bool = False, keep: bool = True) -> None:
        """Works a batch off. Nothing of it counts before `commit`.

        messages: of the sources; None if there are none. last: no more events will come, so that every instant is
        whole. keep: more batches follow, which have to know of this one.
        """
        self._reset(keep)
        messages = None if messages is None else self._scanned_in_order(messages)
        evaluations = ReportTimes()
        if self.is_single_job and messages is not None:
            self._process_in_one_job(messages, last)
        else:
            if messages is not None:
                self.report = self._run_job(messages)
                self.source_folders = self._batch_folders(self.step_names)
            self.span = Span(self.progress.worked, self._complete_until(last))
            add_evaluation_times(self.instants, self.report.evaluations)
            if self.progress.known + self.report.row_count <= self.max_single_task_rows and not self.stream_stages:
                evaluations = self._process_in_one_task(self._report_times_of(self.sinks))
            else:
                evaluations = self._process_by_stages()
        self.report_times = evaluations

    def _reset(self, keep: bool) -> None:
        """A batch is worked off, for the first time or once more."""
        self.store.delete("runs", self.committed_count)
        self.store.delete(*self._output_folder())
        self.step_names, self.source_folders, self.output_files, self.report, self.added_state_rows = (
            [],
            [],
            (),
            TaskReport(),
            0,
        )
        self.report_times = ReportTimes()
        self.latest_end = ALWAYS
        self.state_versions.begin()
        self.keeps_state = keep
        self.cached_state_rows = None

    def output_frame(self) -> Frame | None:
        """What the batch has to hand on, as the messages of `output_step`."""
        return self.engine.output_frame(self._output_folder(), self.output_files)

    def outputs(self) -> Iterator[Output]:
        """The outputs of the batch, in the order of time."""
        answers = self.engine.read_outputs(self._output_folder(), self.output_files)
        yield from snapshot_outputs(answers, self.sinks, self.report_times)

    def commit(self, number: int | None) -> None:
        """The outputs of the batch are where they belong: the batch counts. `number`: Spark's number of it."""
        before = self.progress
        watermark, ends = max(before.passed, self.report.latest_time), max(before.ends, self.latest_end)
        is_last = self.span.now == FOREVER - 1
        processed_until = self._final_time(max(watermark, ends)) if is_last else self.span.now
        buffered = (
            []
            if is_last or not self.needs_complete_instants
            else [waiting for waiting in before.held if waiting[1] > processed_until]
        )
        if self.needs_complete_instants and self.report.latest_start > processed_until:
            buffered += [
                (list(folder), self.report.latest_start, self.report.row_count) for folder in self.source_folders
            ]
        self.progress = Progress(
            passed=max(watermark, processed_until) if is_last else watermark,
            worked=processed_until,
            ends=ends,
            number=before.number if number is None else number,
            held=buffered,
            rows=before.rows + self.added_state_rows if self.cached_state_rows is None else self.cached_state_rows,
            instants={str(number): list(instants.rows()) for number, instants in self.instants.items()},
        )
        self.store.write(asdict(self.progress), "commits", f"{self.committed_count}.json")
        self.state_versions.commit()
        self.rows_since_compaction += self.added_state_rows
        for folder in (*before.folders, *self._batch_folders(self.step_names)):
            for kind in BATCH_LOCAL if folder not in self.progress.folders else ():
                self.store.delete(*folder, kind)
        self.store.delete(*self._output_folder())
        self.committed_count += 1
        if self.committed_count - 1 - self.base_number >= COMPACT:
            self._compact()

    def _report_times_of(self, numbers: Collection[int]) -> ReportTimes:
        """When what these nodes make is evaluated in this batch, if it is told whole."""
        return ReportTimes.upto(
            {number: instants for number, instants in self.instants.items() if number in numbers}, self.span.now
        )

    def _complete_until(self, last: bool) -> int:
        """The time up to which instants are worked off."""
        if last:
            return FOREVER - 1
        latest = max(self.progress.passed, self.report.latest_time)
        return max(
            self.progress.worked, ALWAYS, latest - 1 if self.needs_complete_instants and latest > ALWAYS else latest
        )

    def _final_time(self, time: int) -> int:
        """The time after which nothing changes, if no more events come after this time."""
        periods = [op.report.period for op in self.sinks.values() if op.report.policy == "periodic"]
        return max([time, *(-(-time // period) * period for period in periods)]) if time > ALWAYS else time

    # Steps: each a folder of messages, by kind and level

    def _next_step(self, number: int | None = None) -> Folder:
        """The folder of the next step of this batch, or of one of them."""
        return ("runs", self.committed_count, f"{len(self.step_names) if number is None else number:04d}")

    def _run_job(self, messages: Frame) -> TaskReport:
        """Runs a job, which stores what it leaves as the next step of this batch. Answers with what it tells."""
        return self._record_job(self.engine.run(messages))

    def _record_job(self, report: TaskReport) -> TaskReport:
        """A job has stored what it leaves as the next step of this batch."""
        folder = self._next_step()
        task_output.write_file_list(self.store, folder, report.files)
        self.step_names.append(str(folder[-1]))
        self.state_versions.add(folder, report)
        self.added_state_rows += report.state_rows
        self.latest_end = max(self.latest_end, report.latest_end)
        self.node_metrics.add(report)
        self.output_files += report.output_files
        return report

    def _output_folder(self) -> Folder:
        """The folder of the batch in which answers are."""
        return ("outputs", self.committed_count)

    def _batch_folders(self, steps: Iterable[str]) -> list[Folder]:
        return [("runs", self.committed_count, step) for step in steps]

    # What levels keep

    def _state(self, levels: Iterable[int], owners: BucketPartitions, keep: bool) -> State:
        return self.state_versions.state(levels, owners, keep, self._state_watermark())

    def _output_state(self) -> State:
        """What the operation nodes keep."""
        return self._state([OUTPUT_STAGE], self.engine.owners, self.keeps_state)

    def _state_watermark(self) -> int:
        """The time (integer ms) before which nothing begins that is still to come."""
        return self.progress.worked if self.needs_complete_instants else self.progress.passed

    def _wake_frame(self, levels: Iterable[int], owners: BucketPartitions) -> Frame:
        """What lets all partitions of some levels work, whether something comes for them or not."""
        return self.engine.wake_records(self._partition_places(levels, owners))

    def _partition_places(self, levels: Iterable[int], owners: BucketPartitions) -> list[tuple[int, int]]:
        """All partitions of some levels: each with one of its buckets."""
        buckets = {owner: bucket for bucket, owner in enumerate(owners)}.values()
        return [(level, bucket) for level in levels for bucket in buckets]

    # The sources' messages

    def dead_letters(self) -> Iterator[DeadLetter]:
        """The statements of the batch that could not be used."""
        for text in self.engine.stored_rows(DEAD_LETTER, 0, self.source_folders):
            yield DeadLetter(*json.loads(text))

    def _input_rows(self, level: int) -> Frame | None:
        """The rows on their way to a level: those of the sources that have waited until now, new ones that need not
        wait, and what other levels have made of them."""
        folders = [*self.progress.folders, *self.source_folders]
        rows = self.engine.union(self.engine.stored_records(kind, level, folders) for kind in self.source_record_types)
        if rows is not None and self.needs_complete_instants:
            rows = self.engine.with_record_type(READY, rows)
        state_folders = [folder for folder in self._batch_folders(self.step_names) if folder not in self.source_folders]
        return self.engine.union([rows, self.engine.stored_records(ROW, level, state_folders)])

    def _time_advances(self) -> bool:
        """Whether there are instants to be worked off, whatever comes."""
        return self.needs_complete_instants and self.span.before < self.span.now

    # All in one job, of one task

    def fits_single_task(self, size: int) -> bool:
        """Whether a batch of so many bytes is worked off straight through. (When answers are evaluated that are told
        whole, the driver has to say.)"""
        return (
            not self.instants
            and size <= self.max_single_task_bytes
            and self.progress.known <= self.max_single_task_state_rows
        )

    def process_in_single_task(
        self, parse: Parse, first: Sequence[Record | RowBatch] = (), last: bool = False, keep: bool = True
    ) -> None:
        """Works such a batch off, as `work` does. parse: reads the sources. first: the messages that start the program,
        if it starts."""
        self._reset(keep)
        levels = [*(level.number for level in self.program.stages), OUTPUT_STAGE]
        places = [(kind, level) for kind in self.source_record_types for level in levels]
        waited = [file for place in places for file in task_output.files_of(self.store, *place, self.progress.folders)]
        span = self._span_before_reading(last)
        states = (self._state(part, SINGLE_PARTITION, keep) for part in ([ORDERED_SCAN], levels[:-1], [OUTPUT_STAGE]))
        step = SingleTask(self.program, parse, self.earliest, first, waited, span, *states)
        self._record_single_job(self.engine.run_tasks([self._with_files(step)]), last)
        self.cached_state_rows = self.report.cached_rows if keep else None

    def _span_before_reading(self, last: bool) -> Span:
        """The time that passes, as far as it is known before the sources are read."""
        before = self.progress.worked
        return Span(before, self._complete_until(last) if self.needs_complete_instants else before)

    def _record_single_job(self, report: TaskReport, last: bool) -> None:
        """The job is done that is all of the batch."""
        self.report = self._record_job(report)
        self.source_folders = self._batch_folders(self.step_names)
        self.span = Span(self.progress.worked, self._complete_until(last))

    # All in one job

    def _process_in_one_job(self, messages: Frame, last: bool) -> None:
        """Works the batch off from sources to answers, the sources' messages in the same job."""
        self.span = self._span_before_reading(last)
        flow: Frame | None = messages
        for level in self.separate_stages:
            flow = self._after_stage(level, flow)
        self._record_single_job(self.engine.run(self._output_frame(flow, ReportTimes())), last)

    # All in one task

    def _process_in_one_task(self, evaluations: ReportTimes) -> ReportTimes:
        """Works off all levels and delivers, where moving rows about would take longer than that. Answers with the
        instants at which something is told."""
        levels = [*(level.number for level in self.program.stages), OUTPUT_STAGE]
        rows = self.engine.union(self._input_rows(level) for level in levels)
        if self._time_advances():
            rows = self.engine.union([rows, self._wake_frame(levels, SINGLE_PARTITION)])
        if rows is None:
            return evaluations
        state, end = (self._state(part, SINGLE_PARTITION, self.keeps_state) for part in (levels[:-1], [OUTPUT_STAGE]))
        step = self._with_files(single_task_step(self.program, self.span, evaluations, state, end))
        return self._reported_times(evaluations, self._run_job(self._shuffled(rows, step, levels, SINGLE_PARTITION)))

    def _with_files(self, step: WorkerStep) -> WorkerStep:
        """The function that ends a job, and leaves answers and what is to be stored."""
        return self.engine.with_record_files(
            self.engine.with_output_files(step, self._output_folder()), self._next_step()
        )

    # Level by level

    def _process_by_stages(self) -> ReportTimes:
        """Works off level by level, those that follow each other without rounds in one job, and delivers. Answers with
        the instants at which something is told."""
        flow: Frame | None = None
        for level in self.separate_stages:
            if level.recursive:
                self._store_flow(flow)
                flow = None
                self._iterate(level, (DELETE, REDERIVE) if level.has_deletions else (FORWARD,))
            else:
                flow = self._after_stage(level, flow)
            if level.number in self.stream_stages:
                self._store_flow(flow, makes=True)
                flow = None
        return self._run_output(flow, self._report_times_of(self.sinks))

    def _after_stage(self, level: Stage, flow: Frame | None) -> Frame | None:
        """What is on its way when a level has been worked off. flow: before."""
        rows = self.engine.union([flow, self._input_rows(level.number)])
        if level.has_event_time_nodes and self._time_advances():
            rows = self.engine.union([rows, self._wake_frame([level.number], self.engine.owners)])
        if rows is None:
            return None
        step = self._stage_step(level, FORWARD, self.span, self.keeps_state)
        return self._shuffled(rows, step, [level.number], self.engine.owners)

    def _shuffled(self, rows: Frame, step: WorkerStep, levels: Sequence[int], owners: BucketPartitions) -> Frame:
        """What a step makes of rows for levels, those that go to all tasks being there in each."""
        if self.broadcast_stages & {*levels}:
            rows = self.engine.broadcast(rows, levels, sorted(map(owners.index, set(owners))))
        return self.engine.shuffle(rows, step, 1 if owners == SINGLE_PARTITION else self.engine.partitions)

    def _stage_step(self, level: Stage, phase: str, span: Span, keep: bool) -> WorkerStep:
        """What a worker does with rows for a level, in one round. keep: a later one has to know of it."""
        state = self._state([level.number], self.engine.owners, keep)
        instants = (
            self._report_times_of({self.numbers[id] for id in level.nodes}).instants if self.stream_stages else {}
        )
        return stage_step(self.program, [level], phase, span, state, instants)

    def _store_flow(self, flow: Frame | None, makes: bool = False) -> None:
        """What is on its way is stored. makes: streams have been made on the way."""
        if flow is not None:
            report = self._run_job(
                self.engine.map_partitions(flow, self.engine.with_record_files(identity_step, self._next_step()))
            )
            if makes:
                add_evaluation_times(self.instants, report.evaluations)

    def _iterate(self, level: Stage, phases: Sequence[str]) -> None:
        """Works a level off, in rounds. Time passes in the first of them."""
        rows = self._input_rows(level.number)
        span = self.span
        timely = level.has_event_time_nodes and self._time_advances()
        if rows is None and not timely:
            return
        for phase in phases:
            if timely or phase == REDERIVE:
                rows = self.engine.union([rows, self._wake_frame([level.number], self.engine.owners)])
            while rows is not None:
                step = self.engine.with_record_files(self._stage_step(level, phase, span, keep=True), self._next_step())
                report = self._run_job(self._shuffled(rows, step, [level.number], self.engine.owners))
                if level.number in self.stream_stages:
                    add_evaluation_times(self.instants, report.evaluations)
                span, timely = Span(span.now, span.now), False
                rows = self.engine.stored_records(ROW, level.number, self._batch_folders(self.step_names[-1:]))

    # The end

    def _run_output(self, flow: Frame | None, evaluations: ReportTimes) -> ReportTimes:
        """Delivers, bucket by bucket. Answers with the instants at which something is told."""
        if any(evaluations.instants.get(number) for number in self.change_sinks):
            # Whether the whole has changed has to be known before any part of it is told.
            self._store_flow(flow)
            flow = None
            evaluations = self._changed_times(evaluations)
        answers = self._output_frame(flow, evaluations)
        if answers is not None:
            self._run_job(answers)
        return evaluations

    def _changed_times(self, evaluations: ReportTimes) -> ReportTimes:
        """Asks each bucket at which instants its part of an answer has changed; the instants at which something is
        told."""
        rows = self.engine.union([self._input_rows(OUTPUT_STAGE), self._wake_frame([OUTPUT_STAGE], self.engine.owners)])
        step = change_step(self.program, self.span, evaluations, self._output_state())
        report = self._run_job(self.engine.shuffle(rows, step, self.engine.partitions))
        return self._reported_times(evaluations, report)

    def _output_frame(self, flow: Frame | None, evaluations: ReportTimes) -> Frame | None:
        """The answers, behind what is on its way; None: there are none."""
        numbers = [level.number for level in self.fused_output_stages]
        rows = self.engine.union([flow, *map(self._input_rows, (*numbers, OUTPUT_STAGE))])
        if self._time_advances():
            timely = [level.number for level in self.fused_output_stages if level.has_event_time_nodes]
            rows = self.engine.union([rows, self._wake_frame([*timely, OUTPUT_STAGE], self.engine.owners)])
        if rows is None:
            return None
        step = output_step(self.program, self.span, evaluations, self._output_state())
        if self.fused_output_stages:
            state = self._state(numbers, self.engine.owners, self.keeps_state)
            step = last_stages_step(
                self.program, self.fused_output_stages, self.span, evaluations, state, self._output_state()
            )
        return self._shuffled(rows, self._with_files(step), numbers, self.engine.owners)

    def _reported_times(self, evaluations: ReportTimes, report: TaskReport) -> ReportTimes:
        return evaluations.reported(self.program.plan, {(number, time) for _, number, time in report.evaluations})

    def _run_compaction(self, folder: Folder) -> TaskReport | None:
        """What the job tells that adds the state of all batches so far up into a folder: of one task, if few rows have
        been added since that was done last. None: there is none."""
        step = compaction(self.program, self._state_watermark())
        if (
            self.max_single_task_bytes >= 0
            and self.progress.known <= self.max_single_task_rows
            and self.rows_since_compaction <= _MAX_ADDED_FACTOR * self.max_single_task_rows
        ):
            files = self.state_versions.files()
            step = task_output.over_files(step, self.state_versions.read, files)
            return self.engine.run_tasks([self.engine.with_record_files(step, folder)]) if files else None
        levels = {level for version in self.state_versions.versions for level in version.files}
        folders = [version.folder for version in self.state_versions.versions]
        state = self.engine.union(self.engine.stored_records(STATE, level, folders) for level in levels)
        if state is None:
            return None
        step = self.engine.with_record_files(step, folder)
        return self.engine.run(self.engine.shuffle(state, step, self.engine.partitions))

    def _compact(self) -> None:
        """Adds up the state of all batches so far into one folder. A crash at any point leaves all that is needed."""
        number = self.committed_count - 1
        draft = ("base", f"_{number}")
        self.store.delete(*draft)
        report = self._run_compaction(draft)
        if report is None:
            return
        task_output.write_file_list(self.store, draft, report.files)
        self.progress.rows = report.state_rows
        self.rows_since_compaction = 0
        self.store.rename(draft, ("base", number))
        for old in self.store.numbers("runs"):
            if old <= number and not any(folder[1] == old for folder in self.progress.folders):
                self.store.delete("runs", old)
        for old in self.store.numbers("base"):
            if old < number:
                self.store.delete("base", old)
        self.base_number = number
        self.state_versions.compacted(("base", number))
