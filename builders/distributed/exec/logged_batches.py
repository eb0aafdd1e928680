"""What the batches of a job have in common, whether tasks run its plan stage by stage or in shards."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from squall.builders.distributed.exec.batch_log import Progress
from squall.builders.distributed.exec.job_runner import JobRunner
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Folder, Frame, TaskReport
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import DEAD_LETTER, DeadLetter, WorkerRecord, WorkerStep
from squall.builders.distributed.plan.strategy import BatchLimits, BatchSizes, for_batch
from squall.contracts import Output
from squall.plan import Plan
from squall.plan.cardinality import Statistics


class LoggedBatches(ABC):
    """The micro-batches of one job, one after the other. The state between them is in the store.

    Args:
        program: the program.
        limits: what one task does, and what is kept.
        runner: runs the jobs of the batches.

    Attributes:
        log: what batches have stored and committed.
        progress: how far the job has come.
    """

    progress: Progress

    def __init__(self, program: Program, limits: BatchLimits, runner: JobRunner) -> None:
        self.program = program
        self.limits = limits
        self.runner = runner
        self.log = runner.log

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The most rows that there are before the batch."""

    @property
    @abstractmethod
    def unfinished(self) -> bool:
        """Whether something is left to process when no more events follow."""

    # The sources

    @abstractmethod
    def initial_records(self) -> Sequence[WorkerRecord]:
        """Returns the records that start the program."""

    @abstractmethod
    def initial_step(self, first: Sequence[WorkerRecord]) -> WorkerStep:
        """Returns the worker's function that outputs these records."""

    @abstractmethod
    def source_step(self, parse: Parse) -> WorkerStep:
        """Returns the worker's function from lines to records."""

    # A batch

    def is_unshuffled(self, input_bytes: int) -> bool:
        """Returns whether tasks process a batch of so many bytes from its sources to its outputs, without a shuffle."""
        sizes = BatchSizes(self.row_count, input_bytes)
        return for_batch(self.program.physical.strategy, self.limits, sizes) == "unshuffled"

    @abstractmethod
    def process_unshuffled(
        self, parse: Parse, first: Sequence[WorkerRecord] = (), last: bool = False, keep: bool = True
    ) -> None:
        """Processes such a batch, as `process` does. parse: reads the sources; first: the records that start the
        program, if it starts."""

    @abstractmethod
    def process(self, records: Frame | None, last: bool = False, keep: bool = True) -> None:
        """Processes a batch. It counts only after `commit`.

        Args:
            records: the records of the sources, or None if there are none.
            last: whether no more events follow, so that every instant is complete.
            keep: whether more batches follow, which need the state.
        """

    @abstractmethod
    def outputs(self) -> Iterator[Output]:
        """Yields the outputs of the batch in the order of time."""

    @abstractmethod
    def commit(self, number: int | None) -> None:
        """Commits the batch, whose outputs are durable. number: Spark's number of the micro-batch."""

    # Another plan

    @property
    @abstractmethod
    def looked_at_rows(self) -> int:
        """The number of rows that a look at the state reads (`statistics`), or 0 if there is nothing to see yet."""

    @property
    @abstractmethod
    def watermark(self) -> int:
        """The time (integer ms) that the committed batches have come to."""

    @abstractmethod
    def statistics(self) -> Statistics:
        """Returns the statistics of the data in the state. One task reads all of it."""

    @abstractmethod
    def move(self, program: Program, logical_before: Plan, logical: Plan, plan: object) -> None:
        """Moves the state to another plan, by a batch that reads nothing. Afterwards a job with the other plan resumes.

        Args:
            program: the program with the other plan.
            logical_before: the present plan without multiway joins.
            logical: the other plan without multiway joins.
            plan: what the other plan is, as a JSON value, for whoever resumes.

        Raises:
            CannotReplan: the state is not known to be that of the other plan. The job may go on.
        """

    # What it has reported and stored

    @property
    @abstractmethod
    def report(self) -> TaskReport:
        """What was reported of the sources of the batch."""

    def output_files(self) -> list[Folder]:
        """Returns the files with outputs of the batch, as records: `start` is the time, `spans` the position."""
        return [(*self.log.output_folder(), name) for name in self.log.output_files]

    def stored_outputs(self) -> Iterator[tuple[int, int, str]]:
        """Yields (time, number of the sink node, row) of the outputs of the batch, in order."""
        return task_output.read_outputs(self.log.store.reader(), self.output_files())

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yields the dead letters of the batch."""
        read = self.log.store.reader()
        for file in task_output.files_of(self.log.store, self.log.steps, [DEAD_LETTER], [0]):
            for batch in read(file):
                yield from (DeadLetter(*json.loads(text)) for text in batch["row"].to_pylist())
