"""One run of one workload in a process of its own: python -m tests.bench.child WORK RUN FOLDER.

Says on standard output when the work begins (all is imported, planned, built and, where the workload is of evaluation
only, loaded), when it ends, and then what it has found: the number of distinct facts, and a digest of their set.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.bench import ours, peers
from tests.bench.works import WORKS, Answer, Evaluate, Task


def prepare(run: str, task: Task) -> Evaluate:
    """Prepares a run: ``planner:builder``, optionally with ``:events``, or the name of a peer."""
    if run in peers.PEERS:
        return peers.prepare(run, task)
    return ours.prepare(task, *run.split(":"))


def digest(facts: Iterable[str]) -> dict[str, Any]:
    """Returns the size of a set of facts, and a digest that does not depend on their order."""
    distinct = set(facts)
    total = sum(int.from_bytes(blake2b(fact.encode(), digest_size=8).digest(), "big") for fact in distinct)
    return {"outputs": len(distinct), "digest": f"{total % 2**64:016x}"}


def waits(latencies: tuple[float, ...]) -> dict[str, float]:
    """Returns the median and the 99th percentile of latencies, in microseconds."""
    if len(latencies) < 2:
        return {}
    return {"median_us": median(latencies) * 1e6, "p99_us": quantiles(latencies, n=100)[98] * 1e6}


def say(at: str, **more: Any) -> None:
    print(json.dumps({"at": at, **more}), flush=True)


def cpu_time() -> float:
    """Returns the CPU seconds of this process, and of the processes that it has started and that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def used(run: str, answer: Answer, wall: float, cpu: float) -> dict[str, float]:
    """Returns the wall-clock and CPU seconds of a run, as the process that does the work has measured them. CPU seconds
    are left out if several processes do it."""
    if answer.wall is not None and answer.cpu is not None:
        return {"wall": answer.wall, "cpu": answer.cpu}
    spark = peers.PEERS[run].spark if run in peers.PEERS else run.split(":")[1] == "spark"
    return {"wall": wall} if spark else {"wall": wall, "cpu": cpu}


def main(name: str, run: str, folder: str) -> None:
    work = WORKS[name]
    evaluate = prepare(run, Task(work, work.files(Path(folder)), work.slide))
    gc.collect()
    gc.set_threshold(100_000, 50, 100)  # for all that are written in Python; as squall's command line does
    gc.freeze()  # what the harness has loaded does not cost the engine anything
    say("start")
    wall, cpu = time.perf_counter(), cpu_time()
    answer = evaluate()
    wall, cpu = time.perf_counter() - wall, cpu_time() - cpu
    say("end", **used(run, answer, wall, cpu))
    say("found", **digest(answer.facts), **waits(answer.latencies))


if __name__ == "__main__":
    main(*sys.argv[1:])
