"""A run on Spark over a few files, each a micro-batch, which ends and goes on from its checkpoint in between."""

from __future__ import annotations

import os
from pathlib import Path

import squall
from squall.contracts import Options
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
Told = list[tuple[int, str]]
"""Outputs: the time of each, and the fact."""


def file_by_file(plan: Plan, folder: Path) -> tuple[Told, Told]:
    """What Spark tells of the lines, four a file, the last file being there when the run is started anew; and what the
    builder `iterator` does."""
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, session

    options = Options(checkpoint=folder / "checkpoint")
    session().conf.set(MAX_FILES_PER_TRIGGER, "1")
    result: Told = []
    for numbers in ((0, 1), (2,)):
        for number in numbers:
            _write(folder / "in", number)
        result += _run(plan, folder / "in", "spark", options)
    session().conf.unset(MAX_FILES_PER_TRIGGER)
    return sorted(result), _run(plan, folder / "in", "iterator", Options())


def _write(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"part{number}.ntt"
    path.write_text("".join(f"{time} {line}\n" for time, line in LINES[4 * number : 4 * number + 4]))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def _run(plan: Plan, folder: Path, builder: str, options: Options) -> Told:
    outputs = squall.build(plan, builder, options).run(Sources([open_source(str(folder), options.ledger)]))
    return sorted((output.time, str(output.fact)) for output in outputs)
