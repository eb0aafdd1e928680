"""A run on Spark over a few files, each a micro-batch, which ends and resumes from its checkpoint in between."""

from __future__ import annotations

import os
from pathlib import Path

import squall
from squall.builders.spark.settings import SparkTuning
from squall.contracts import Job, Options
from squall.plan import Plan
from squall.streams import Sources, open_source

PREFIX = "PREFIX : <http://example.org/> "
WHAT = ("much", "little", "little", "nothing", "much", "much", "little", "nothing", "little", "much", "nothing", "much")
LINES = [
    (
        time // 2 + 10 * (time // 8),
        f"<http://example.org/room{time % 3}> <http://example.org/says> <http://example.org/{what}> .",
    )
    for time, what in enumerate(WHAT)
]
Outputs = list[tuple[int, str]]
"""The time of each output, and its fact."""


def file_by_file(plan: Plan, folder: Path) -> tuple[Outputs, Outputs]:
    """Runs a plan over `LINES`, four a file, on Spark and with the builder `iterator`.

    Spark reads one file per micro-batch and writes its whole state every second one. The last file appears after the
    run has ended, and another run resumes from its checkpoint.

    Returns:
        The outputs of Spark, and those of `iterator`.
    """
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, session
    from squall.builders.spark.job import SparkJob

    options = Options(checkpoint=folder / "checkpoint")
    session().conf.set(MAX_FILES_PER_TRIGGER, "1")
    result: Outputs = []
    for numbers in ((0, 1), (2,)):
        for number in numbers:
            _write(folder / "in", number)
        result += _run(SparkJob(plan, options, SparkTuning(compaction_interval=2)), folder / "in")
    session().conf.unset(MAX_FILES_PER_TRIGGER)
    return sorted(result), _run(squall.build(plan), folder / "in")


def _write(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"part{number}.ntt"
    path.write_text("".join(f"{time} {line}\n" for time, line in LINES[4 * number : 4 * number + 4]))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def _run(job: Job, folder: Path) -> Outputs:
    outputs = job.run(Sources([open_source(str(folder))]))
    return sorted((output.time, str(output.fact)) for output in outputs)
