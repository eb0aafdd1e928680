"""The log of a job's micro-batches in its store: what each has stored, commits, and the versions of the state.

A micro-batch counts when its commit is written. A crash at any point leaves all that is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from squall.builders.distributed.exec.state_cache import StateVersions
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Files, Folder, NodeMetrics, TaskReport, numbers
from squall.builders.distributed.io.records import BATCH_LOCAL, OutputFile, RecordFile
from squall.plan import Plan
from squall.rdf import ALWAYS

FIRST_STEP = "0000"
"""The name of the first step of a batch."""


PLANS = "plans"
"""The folder that says, by the number of the batch that has moved the state to a plan, what the plan is."""


@dataclass
class Progress:
    """How far a job has come, as the commit of its last batch says. All times are integer ms.

    Attributes:
        number: Spark's own number of the last micro-batch; -1 before the first.
        plan_number: the batch that has moved the whole state to another plan last; 0: none.
    """

    number: int = -1
    plan_number: int = 0

    @classmethod
    def of_commit(cls, commit: Mapping[str, Any] | None) -> Self | None:
        """Returns what a commit says; None before the first."""
        return None if commit is None else cls(**commit)


def plan_number_of(commit: Mapping[str, Any] | None) -> int:
    """Returns the number of the last batch that has moved the state to another plan, as a commit says; 0: none."""
    return int((commit or {}).get("plan_number", 0))


class MicroBatchLog:
    """The log of a job's micro-batches.

    Args:
        store: the files of the job.
        plan: the plan of the job.

    Attributes:
        committed_count: the number of committed batches, and so the number of the current one.
        last_commit: what the last commit says; None before the first.
        plan_number: the batch that has moved the whole state to another plan last; 0: none.
        base_number: the last batch whose whole state is in one folder, or the one before `plan_number`.
        steps: the folders in which steps of the current batch have stored records, in order.
        output_files: the files with outputs of the current batch.
        added_state_rows: how many rows the current batch has added to the state.
        latest_end: the latest time at which a fact of the current batch, or one derived from it, begins or ends to hold
            (integer ms).
        node_metrics: the metrics of the plan's nodes, over all batches.
    """

    def __init__(self, store: Files, plan: Plan) -> None:
        self.store = store
        self.committed_count = len(numbers(store, "commits"))
        self.last_commit: dict[str, Any] | None = store.read("commits", f"{self.committed_count - 1}.json")
        self.plan_number = plan_number_of(self.last_commit)
        bases = [number for number in numbers(store, "base") if number >= self.plan_number]
        self.base_number = max(bases, default=self.plan_number - 1)
        self._has_base = bool(bases)
        self.node_metrics = NodeMetrics(plan)
        self._begin()

    def state_versions(self, max_cached_rows: int, since: int | None = None) -> StateVersions:
        """Returns the committed versions of the state.

        Args:
            max_cached_rows: the most rows that a worker caches.
            since: the first batch that counts, if the state is not in a folder of its own.
        """
        folders: list[Folder] = [("base", self.base_number)] if self._has_base else []
        for batch in range(self.base_number + 1 if since is None else since, self.committed_count):
            folders += [("runs", batch, step) for step in self.store.names("runs", batch)]
        return StateVersions(self.store, folders, max_cached_rows)

    # A batch

    def _begin(self) -> None:
        """Starts a batch, for the first time or again."""
        self.store.delete("runs", self.committed_count)
        self.store.delete(*self.output_folder())
        self.steps: list[Folder] = []
        self.output_files: tuple[str, ...] = ()
        self.added_state_rows, self.latest_end = 0, ALWAYS

    def step_folder(self, name: str) -> Folder:
        """Returns the folder of a step of the batch."""
        return ("runs", self.committed_count, name)

    def next_step(self) -> Folder:
        """Returns the folder of the batch's next step."""
        return self.step_folder(f"{len(self.steps):04d}")

    def output_folder(self) -> Folder:
        """Returns the folder of the batch's outputs."""
        return ("outputs", self.committed_count)

    def add(self, folder: Folder, report: TaskReport) -> TaskReport:
        """Notes that a job has stored its records in a folder, and returns its report."""
        task_output.write_file_list(self.store, folder, report.all(RecordFile))
        self.steps.append(folder)
        self.added_state_rows += report.state_rows
        self.latest_end = max(self.latest_end, report.latest_end)
        self.output_files += tuple(file.name for file in report.all(OutputFile))
        self.node_metrics.add(report)
        return report

    def abandon(self) -> None:
        """Drops what the current batch has stored."""
        self._begin()

    def commit(self, progress: Progress, finished: Iterable[Folder], needed: Collection[Folder] = ()) -> None:
        """Commits the batch, and starts the next one.

        Args:
            progress: what the commit says.
            finished: the folders whose records on their way no later batch reads,
            needed: except for these.
        """
        self.store.write(asdict(progress), "commits", f"{self.committed_count}.json")
        for folder in finished:
            for kind in BATCH_LOCAL if folder not in needed else ():
                self.store.delete(*folder, kind)
        self.store.delete(*self.output_folder())
        self.committed_count += 1
        self._begin()

    def forget(self, until: int, needed: Collection[Folder] = ()) -> None:
        """Deletes what batches have stored whose state is elsewhere by now.

        Args:
            until: the last of these batches.
            needed: folders that a later batch reads; the batches of these stay.
        """
        for batch in numbers(self.store, "runs"):
            if batch <= until and not any(folder[1] == batch for folder in needed):
                self.store.delete("runs", batch)

    def move(self, progress: Progress, finished: Iterable[Folder], needed: Collection[Folder], plan: object) -> None:
        """Commits a batch that has moved the whole state to another plan, and deletes what came before it.

        Args:
            progress: what the commit says; `plan_number` is set here.
            finished: see `commit`.
            needed: see `commit`.
            plan: what the plan is, as a JSON value.
        """
        number = progress.plan_number = self.plan_number = self.committed_count
        self.store.write(plan, PLANS, f"{number}.json")
        self.commit(progress, finished, needed)
        self.forget(number - 1)
        for folder, suffix in (("base", ""), (PLANS, ".json")):
            for other in numbers(self.store, folder):
                if other < number:
                    self.store.delete(folder, f"{other}{suffix}")

    def compact(
        self, run: Callable[[Folder], TaskReport | None], versions: StateVersions, needed: Collection[Folder]
    ) -> TaskReport | None:
        """Compacts the state of all committed batches into one folder.

        Args:
            run: runs the job that writes the state to a folder, and returns its report (None: there is no state).
            versions: the versions of the state.
            needed: folders that a later batch reads.

        Returns:
            The report of the job, or None if there is no state.
        """
        number = self.committed_count - 1
        draft = ("base", f"_{number}")
        self.store.delete(*draft)
        report = run(draft)
        if report is None:
            return None
        task_output.write_file_list(self.store, draft, report.all(RecordFile))
        self.store.rename(draft, ("base", number))
        self.forget(number, needed)
        for base in numbers(self.store, "base"):
            if base < number:
                self.store.delete("base", base)
        self.base_number = number
        versions.compacted(("base", number))
        return report
