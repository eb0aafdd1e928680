"""The rows and the state that the jobs of a micro-batch process, and how far a job has come that leaves them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from squall.builders.distributed.exec.batch_log import Progress
from squall.builders.distributed.exec.job_runner import JobRunner
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Folder, Frame
from squall.builders.distributed.io.records import BUFFERED, ROW
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE, SINGLE_PARTITION
from squall.rdf import ALWAYS


@dataclass
class StagedProgress(Progress):
    """How far a job has come stage by stage.

    Attributes:
        watermark: the latest event time so far.
        processed_until: the instants up to this time have been processed.
        latest_end: the latest time at which a fact that has been read begins or ends to hold.
        buffered: the folders of buffered rows, each with the latest time at which one begins to hold, and the most rows
            that it holds.
        state_rows: the most rows that the state has.
        instants: the state of the evaluation instants (`ReportSchedule.rows`), by number of the sink node.
    """

    watermark: int = ALWAYS
    processed_until: int = ALWAYS - 1
    latest_end: int = ALWAYS
    buffered: list[tuple[list[Any], int, int]] = field(default_factory=list)
    state_rows: int = 0
    instants: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    @property
    def folders(self) -> list[Folder]:
        """The folders of buffered rows."""
        return [tuple(folder) for folder, _, _ in self.buffered]

    def state_watermark(self, program: Program) -> int:
        """Returns the time before which no row that is still to come begins to hold (integer ms)."""
        return self.processed_until if program.needs_complete_instants else self.watermark

    @property
    def row_count(self) -> int:
        """The most rows that there are: buffered ones and those of the state."""
        return self.state_rows + sum(rows for _, _, rows in self.buffered)


class BatchRows:
    """The rows and the state that the jobs of a micro-batch process.

    Args:
        runner: runs its jobs.
        program: the program.
        progress: how far the job has come before the batch.
        keep: whether more batches follow, which need the state.

    Attributes:
        source_folders: the step that holds the records of the sources.
    """

    def __init__(self, runner: JobRunner, program: Program, progress: StagedProgress, keep: bool) -> None:
        self.runner = runner
        self.program = program
        self.progress = progress
        self.keep = keep
        self.source_folders: list[Folder] = []

    def source_files(self, stages: Collection[int] | None = None) -> list[Folder]:
        """Returns the files with rows of the sources: buffered ones, and new ones. stages: for which (None: all)."""
        if stages is None:
            stages = [*(stage.number for stage in self.program.stages), OUTPUT_STAGE]
        types = (BUFFERED,) if len(self.program.physical.jobs) == 1 else (ROW, BUFFERED)
        folders = [*self.progress.folders, *self.source_folders]
        return task_output.files_of(self.runner.log.store, folders, types, stages)

    def of_stage(self, stage: int) -> Frame | None:
        """Returns the rows on their way to a stage: those of the sources, and those that earlier stages have output."""
        files = self.source_files([stage])
        rows = self.runner.engine.read(files, self.program.ready_type) if files else None
        later_folders = [folder for folder in self.runner.log.steps if folder not in self.source_folders]
        return self.runner.union([rows, self.runner.stored_rows(later_folders, stage)])

    def state(self, stages: Iterable[int], keep: bool = False, in_one_task: bool = False) -> State:
        """Returns the state of some stages. keep: whether it is needed in any case."""
        watermark = self.progress.state_watermark(self.program)
        partitions = SINGLE_PARTITION if in_one_task else self.runner.bucket_partitions
        return self.runner.versions.state(stages, partitions, keep or self.keep, watermark)
