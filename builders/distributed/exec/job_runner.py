"""Runs the jobs of micro-batches on an engine, and notes in the log what they have stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from squall.builders.distributed.exec.batch_log import FIRST_STEP, MicroBatchLog
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.routing import wake_record
from squall.builders.distributed.exec.state_cache import StateVersions
from squall.builders.distributed.exec.worker import with_watermark
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Engine, Folder, Frame, TaskReport
from squall.builders.distributed.io.records import ROW, WorkerStep, constant_step
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE, BucketPartitions, bucket_partitions


class JobRunner:
    """Runs the jobs of micro-batches.

    Args:
        engine: shuffles and processes records.
        program: the program.
        log: what batches have stored and committed.
        max_cached_rows: the most rows of state that a worker caches from one step to the next.
        since: the first batch that counts for the state, if that is not in a folder of its own.

    Attributes:
        versions: the versions of the state.
        bucket_partitions: the partition of each bucket, where several tasks run.
        broadcast_stages: the stages that get broadcast rows.
    """

    def __init__(
        self, engine: Engine, program: Program, log: MicroBatchLog, max_cached_rows: int, since: int | None = None
    ) -> None:
        self.engine = engine
        self.program = program
        self.log = log
        self.versions: StateVersions = log.state_versions(max_cached_rows, since)
        self.bucket_partitions = bucket_partitions(engine.partitions)
        self.broadcast_stages = program.router().broadcast_stages

    def run(self, records: Frame) -> TaskReport:
        """Runs a job, stores its records as the next step of the batch, and returns its report."""
        return self._record(self.engine.run(records))

    def run_tasks(self, steps: Sequence[WorkerStep]) -> TaskReport:
        """Runs a job of tasks without input in the same way."""
        return self._record(self.engine.run_tasks(steps))

    def _record(self, report: TaskReport) -> TaskReport:
        folder = self.log.next_step()
        self.log.add(folder, report)
        self.versions.add(folder, report)
        return report

    def with_records(self, step: WorkerStep, folder: Folder | None = None) -> WorkerStep:
        """Returns the last step of a job, which stores its records. folder: by default that of the next step."""
        return task_output.with_record_files(step, self.log.store, folder or self.log.next_step())

    def with_outputs(self, step: WorkerStep) -> WorkerStep:
        """Returns the last step of a job, which stores its outputs and records."""
        write = self.log.store.writer(self.log.output_folder())
        return self.with_records(task_output.with_output_files(step, write))

    def end_of_sources(self, step: WorkerStep) -> WorkerStep:
        """Returns the last step of the job that reads the sources, which stores its records; or, if the batch is one
        job, passes on how far time has come."""
        if len(self.program.physical.jobs) > 1:
            return self.with_records(step, self.log.step_folder(FIRST_STEP))
        if not self.program.needs_complete_instants:
            return step
        stages = (*(stage.number for stage in self.program.stages), OUTPUT_STAGE)
        return with_watermark(step, partition_places(stages, self.bucket_partitions))

    def compact(self, step: WorkerStep, in_one_task: bool, folder: Folder) -> TaskReport | None:
        """Runs the job that writes the whole state to a folder, and returns its report (None: there is no state).

        Args:
            step: compacts the state of a partition.
            in_one_task: whether one task does it.
            folder: where the state is written.
        """
        step, files = self.with_records(step, folder), self.versions.files()
        if not files:
            return None
        if in_one_task:
            return self.run_over_state(step)
        return self.engine.run(self.engine.shuffle(self.engine.read(files), step))

    def run_over_state(self, step: WorkerStep, files: Sequence[Folder] = ()) -> TaskReport:
        """Returns the report of a job of one task over the committed state, and other files of the store."""
        all_files = [*self.versions.files(), *files]
        return self.engine.run_tasks([task_output.over_files(step, self.versions.read, all_files)])

    # Frames; None stands for no records.

    def union(self, frames: Iterable[Frame | None]) -> Frame | None:
        """Returns the records of some frames together."""
        present = [frame for frame in frames if frame is not None]
        return self.engine.union(present) if len(present) > 1 else next(iter(present), None)

    def stored_rows(self, folders: Iterable[Folder], stage: int) -> Frame | None:
        """Returns the rows for a stage in some folders."""
        files = task_output.files_of(self.log.store, folders, [ROW], [stage])
        return self.engine.read(files) if files else None

    def shuffled(self, rows: Frame, step: WorkerStep, stages: Collection[int]) -> Frame:
        """Returns what a step makes of the rows of some stages in the partitions of their buckets."""
        return self.engine.shuffle(rows, step, self.broadcast_stages & {*stages})

    def with_wake(self, rows: Frame | None, stages: Iterable[int], condition: bool) -> Frame | None:
        """Returns rows, and under a condition the records that make all partitions of some stages run."""
        return self.union([rows, self.wake(stages)]) if condition else rows

    def wake(self, stages: Iterable[int]) -> Frame:
        """Returns the records that make all partitions of some stages run, whether rows arrive for them or not."""
        places = partition_places(stages, self.bucket_partitions)
        return self.engine.generate(constant_step([wake_record(*place) for place in places], "wake-up"))


def partition_places(stages: Iterable[int], bucket_partitions: BucketPartitions) -> list[tuple[int, int]]:
    """Returns all partitions of some stages, each with one of its buckets."""
    buckets = range(len({*bucket_partitions}))
    return [(stage, bucket) for stage in stages for bucket in buckets]
