"""Runs the jobs of micro-batches on an engine, and notes in the log what they have stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from squall.builders.distributed.exec.batch_log import FIRST_STEP, MicroBatchLog
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.state_cache import State, StateVersions
from squall.builders.distributed.exec.worker import with_watermark
from squall.builders.distributed.io.engine import Engine, Folder, Frame, TaskReport
from squall.builders.distributed.io.records import ROW, WorkerStep
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE, SINGLE_PARTITION, BucketPartitions


class JobRunner:
    """Runs the jobs of micro-batches.

    Args:
        engine: stores, shuffles and processes records.
        program: the program.
        log: what batches have stored and committed.
        max_cached_rows: the most rows of state that a worker caches from one step to the next.

    Attributes:
        versions: the versions of the state.
        broadcast_stages: the stages that get broadcast rows.
    """

    def __init__(self, engine: Engine, program: Program, log: MicroBatchLog, max_cached_rows: int) -> None:
        self.engine = engine
        self.program = program
        self.log = log
        self.versions: StateVersions = log.state_versions(engine.reader(), max_cached_rows)
        self.broadcast_stages = program.router().broadcast_stages

    @property
    def bucket_partitions(self) -> BucketPartitions:
        """The partition of each bucket, where several tasks run."""
        return self.engine.bucket_partitions

    def begin(self) -> None:
        """Starts a batch, for the first time or again."""
        self.log.begin()
        self.versions.begin()

    def run(self, records: Frame) -> TaskReport:
        """Runs a job, stores its records as the next step of the batch, and returns its report."""
        return self._record(self.engine.run(records))

    def run_task(self, step: WorkerStep) -> TaskReport:
        """Runs a job of one task without input in the same way."""
        return self._record(self.engine.run_tasks([step]))

    def _record(self, report: TaskReport) -> TaskReport:
        folder = self.log.next_step()
        self.log.add(folder, report)
        self.versions.add(folder, report)
        return report

    def with_records(self, step: WorkerStep) -> WorkerStep:
        """Returns the last step of a job, which stores its records."""
        return self.engine.with_record_files(step, self.log.next_step())

    def with_outputs(self, step: WorkerStep) -> WorkerStep:
        """Returns the last step of a job, which stores its outputs and records."""
        return self.with_records(self.engine.with_output_files(step, self.log.output_folder()))

    def end_of_sources(self, step: WorkerStep) -> WorkerStep:
        """Returns the last step of the job that reads the sources, which stores its records; or, if the batch is one
        job, passes on how far time has come."""
        if len(self.program.physical.jobs) > 1:
            return self.engine.with_record_files(step, self.log.step_folder(FIRST_STEP))
        if not self.program.needs_complete_instants:
            return step
        stages = (*(stage.number for stage in self.program.stages), OUTPUT_STAGE)
        return with_watermark(step, partition_places(stages, self.bucket_partitions))

    def shuffled(
        self, rows: Frame, step: WorkerStep, stages: Sequence[int], bucket_partitions: BucketPartitions
    ) -> Frame:
        """Returns what a step makes of the shuffled rows of some stages. Broadcast rows go to every task."""
        if self.broadcast_stages & {*stages}:
            rows = self.engine.broadcast(rows, stages, sorted(map(bucket_partitions.index, set(bucket_partitions))))
        return self.engine.shuffle(rows, step, 1 if bucket_partitions == SINGLE_PARTITION else self.engine.partitions)

    def wake_frame(self, stages: Iterable[int], bucket_partitions: BucketPartitions) -> Frame:
        """Returns the records that make all partitions of some stages run, whether rows arrive for them or not."""
        return self.engine.wake_records(partition_places(stages, bucket_partitions))

    def later_rows(self, stage: int, source_folders: Sequence[Folder]) -> Frame | None:
        """Returns the rows for a stage that steps of the batch have stored, besides those of its sources."""
        folders = [folder for folder in self.log.steps if folder not in source_folders]
        return self.engine.stored_records(ROW, stage, folders)

    def state(self, stages: Iterable[int], bucket_partitions: BucketPartitions, keep: bool, watermark: int) -> State:
        """Returns the state of some stages. The arguments are those of `StateVersions.state`."""
        return self.versions.state(stages, bucket_partitions, keep, watermark)


def partition_places(stages: Iterable[int], bucket_partitions: BucketPartitions) -> list[tuple[int, int]]:
    """Returns all partitions of some stages, each with one of its buckets."""
    buckets = {owner: bucket for bucket, owner in enumerate(bucket_partitions)}.values()
    return [(stage, bucket) for stage in stages for bucket in buckets]
