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
    engine, versions = runner.engine, runner.versions
    if in_one_task:
        files = versions.files()
        step = task_output.over_files(step, versions.read, files)
        return engine.run_tasks([engine.with_record_files(step, folder)]) if files else None
    stages = {stage for version in versions.versions for stage in version.files}
    folders = [version.folder for version in versions.versions]
    state = engine.union(engine.stored_records(STATE, stage, folders) for stage in stages)
    if state is None:
        return None
    return engine.run(engine.shuffle(state, engine.with_record_files(step, folder), engine.partitions))
