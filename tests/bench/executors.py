"""How much sooner two executors of one core are done than one is, each with a core of the machine of its own:

    python -m tests.bench.executors q3 q9 --triples 2000000 --repeat 3

Executors are processes (`local-cluster`), each bound to its core with its Python workers; Java sees one core. All
of a run, the driver too, has as many cores as there are executors. The Java machines are warm: the same job
has run twice, which is left out. Facts are written by the executors, into a folder.
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
from squall.contracts import Options
from squall.streams import Sources, open_source, open_static
from squall.streams.sinks.folders import FolderSink
from tests.bench.works import WORKS, Files


def rate(work: str, executors: int, data: Path, triples: int) -> float:
    """Returns the triples per second of a job in this process, from files to a folder."""
    from squall.builders.spark.session import QUICK_START, session

    cores = sorted(os.sched_getaffinity(0))[:executors]
    os.sched_setaffinity(0, cores)
    session(
        [
            ("spark.master", f"local-cluster[{executors},1,4096]"),
            ("spark.executor.memory", "4g"),
            ("spark.executor.extraJavaOptions", f"{QUICK_START} -XX:ActiveProcessorCount=1"),
        ]
    )
    files = WORKS[work].files(data)
    seconds(files)
    bind(os.getpid(), cores)
    seconds(files)
    return triples / seconds(files)


def bind(driver: int, cores: Sequence[int]) -> None:
    """Binds each executor of a driver, and what it has started, to a core of its own."""
    results = [
        id for id in descendants(driver) if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{id}/cmdline").read_bytes()
    ]
    if len(results) != len(cores):
        raise AssertionError(f"there are {len(results)} executors, not {len(cores)}")
    for core, executor in zip(cores, results, strict=True):
        for process in (executor, *descendants(executor)):
            for thread in Path(f"/proc/{process}/task").iterdir():
                os.sched_setaffinity(int(thread.name), [core])


def descendants(process: int) -> list[int]:
    """Returns the ids of the processes that a process has started, and of those that these have started."""
    threads = Path(f"/proc/{process}/task").iterdir()
    children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    return [*children, *(descendant for child in children for descendant in descendants(child))]


def seconds(files: Files) -> float:
    """Returns how many seconds a job takes."""
    plan = squall.plan(squall.compile(files.program))
    with tempfile.TemporaryDirectory() as place:
        job = squall.build(plan, "spark", Options(sink=FolderSink("out/", Path(place, "out"), "nt")))
        began = time.perf_counter()
        for _ in job.run(Sources([open_source(str(files.stream))]), open_static(str(files.static))):
            raise AssertionError("a folder sink yields no outputs")
        return time.perf_counter() - began


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench.executors", description="Executors of one core each.")
    parser.add_argument("work", nargs="+", choices=("q3", "q4", "q9"))
    parser.add_argument("--triples", type=int, default=2_000_000, help="of the stream (2,000,000)")
    parser.add_argument("--repeat", type=int, default=3, help="times that each is run, in turns (3)")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if arguments.only:
        print(rate(f"spark-{arguments.work[0]}", arguments.only, arguments.data, arguments.triples))
        return 0
    print("work  one executor  two executors  times as many triples per second")
    for name in arguments.work:
        with tempfile.TemporaryDirectory() as folder:
            WORKS[f"spark-{name}"].write(Path(folder), arguments.triples)
            again = ["--triples", str(arguments.triples), "--data", folder]
            rates: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(arguments.repeat):
                for executors, result in rates.items():
                    result.append(_elsewhere([name, "--only", str(executors), *again]))
            item, two = (median(result) for result in rates.values())
            print(f"{name:4} {item:13,.0f} {two:14,.0f} {two / item:10.2f}", flush=True)
    return 0


def _elsewhere(given: Sequence[str]) -> float:
    """Returns what this module prints in a separate process."""
    command = [sys.executable, "-m", "tests.bench.executors", *given]
    outputs = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return float(outputs.stdout)


if __name__ == "__main__":
    sys.exit(main())
