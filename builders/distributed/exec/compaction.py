"""Compaction: the job that writes the whole state of a job to one folder again."""

from __future__ import annotations

from squall.builders.distributed.exec.job_runner import JobRunner
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Folder, TaskReport
from squall.builders.distributed.io.records import STATE, WorkerStep


def run_compaction(runner: JobRunner, step: WorkerStep, in_one_task: bool, folder: Folder) -> TaskReport | None:
    """Runs the job that compacts the state of all batches into a folder, and returns its report.

    Args:
        runner: has the versions of the state.
        step: compacts the state of a partition.
        in_one_task: whether one task does it.
        folder: where the state is written.

    Returns:
        The report, or None if there is no state.
    """
    versions, step = runner.versions, runner.with_records(step, folder)
    if in_one_task:
        files = versions.files()
        return runner.engine.run_tasks([task_output.over_files(step, versions.read, files)]) if files else None
    stages = {stage for version in versions.versions for stage in version.files}
    state = runner.stored([version.folder for version in versions.versions], [STATE], stages)
    return None if state is None else runner.engine.run(runner.engine.shuffle(state, step))
