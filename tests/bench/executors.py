"""How much sooner two executors of one core are done than one is, each with a core of the machine of its own:

    python -m tests.bench.executors q3 q9 --triples 2000000 --repeat 3

Executors are processes (`local-cluster`). All of a run, the driver too, has as many cores as there are executors. The
Java machines are warm: a first, smaller job is left out. Facts are written by the executors, into a folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import squall
from squall.stages import Options
from squall.streams import Sources, open_source, open_static
from squall.streams.folders import FolderSink
from tests.bench.works import WORKS, Files

WARM = 400_000
"""Triples of the job that is left out: so many that all executors have work."""


def rate(work: str, executors: int, small: Path, large: Path, triples: int) -> float:
    """The triples per second of a job in this process: from files to a folder."""
    from squall.builders.spark import session

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:executors])
    session([("spark.master", f"local-cluster[{executors},1,4096]"), ("spark.executor.memory", "4g")])
    seconds(WORKS[work].files(small))
    return triples / seconds(WORKS[work].files(large))


def seconds(files: Files) -> float:
    """How long a job takes."""
    plan = squall.plan(squall.compile(files.program))
    with tempfile.TemporaryDirectory() as place:
        job = squall.build(plan, "spark", Options(sink=FolderSink("out/", Path(place, "out"), "nt")))
        began = time.perf_counter()
        for _ in job.run(Sources([open_source(str(files.stream))]), open_static(str(files.static))):
            raise AssertionError("what goes into a folder is not handed on")
        return time.perf_counter() - began


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench.executors", description="Executors of one core each.")
    parser.add_argument("work", nargs="+", choices=("q3", "q4", "q9"))
    parser.add_argument("--triples", type=int, default=2_000_000, help="of the stream (2,000,000)")
    parser.add_argument("--repeat", type=int, default=3, help="times that each is run, in turns (3)")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    if asked.only:
        print(rate(f"spark-{asked.work[0]}", asked.only, asked.data[0], asked.data[1], asked.triples))
        return 0
    print("work  one executor  two executors  times as many triples per second")
    for name in asked.work:
        with tempfile.TemporaryDirectory() as folder:
            places = [Path(folder, size) for size in ("small", "large")]
            for place, size in zip(places, (WARM, asked.triples), strict=True):
                place.mkdir()
                WORKS[f"spark-{name}"].write(place, size)
            again = ["--triples", str(asked.triples), "--data", *map(str, places)]
            rates: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(asked.repeat):
                for executors, found in rates.items():
                    found.append(_elsewhere([name, "--only", str(executors), *again]))
            one, two = (median(found) for found in rates.values())
            print(f"{name:4} {one:13,.0f} {two:14,.0f} {two / one:10.2f}", flush=True)
    return 0


def _elsewhere(given: Sequence[str]) -> float:
    """What this module prints in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.executors", *given]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
