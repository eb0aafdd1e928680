"""What it gains to replace the plan while a run goes on, and what it costs where the stream is stable.

    python -m tests.bench.adaptive --windows 30

The query joins four predicates in a chain, in windows of 10 s. In the stream `unstable` each phase has another
predicate that is rare; in `stable` it is always the same one. Runs are interleaved, and the table shows the median CPU
time in seconds:

* `plan`: the plan without statistics.
* `right`: each phase by the plan that is best for it, as if it were known.
* `adapt`: a run that replaces its plan (`squall run --adapt`).
* `looks`: on the stable stream, a run that begins with the best plan and looks for better ones.

The last rows are short streams of other works (`tests.bench.works`), each without and with `--adapt`, relative to
`plan`.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import squall
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.state_statistics import state_statistics
from squall.contracts import Options, Replanning
from squall.model import System
from squall.plan import Plan
from squall.rdf import ALWAYS, Event, Triple, iri
from tests.bench import ours
from tests.bench.works import WORKS, Task

STREAM = "urn:s"
QUERY = f"""REGISTER QUERY chain AS SELECT ?a ?e FROM STREAM <{STREAM}> [RANGE 10s STEP 10s]
WHERE {{ ?a <urn:p0> ?b . ?b <urn:p1> ?c . ?c <urn:p2> ?d . ?d <urn:p3> ?e }}"""
PER_WINDOW, RARE, NODES = 600, 6, 75
"""The triples of a predicate in a window, those of the rare one, and the nodes on each side of a predicate."""
BATCH = 512
SHORT, SHORT_RUNS = ("q3", "q4", "q9"), 20
"""The works with short streams, and how many times as often as the long ones each of them is evaluated."""
STREAMS = {"unstable": (0, 1, 2, 3), "stable": (3, 3, 3, 3)}


def phase(rare: int, first_window: int, windows: int) -> list[Event]:
    """Returns the events of a phase, in which one predicate is rare, one each triple, in the order of time."""
    draw = random.Random(first_window)
    events = []
    for window in range(first_window, first_window + windows):
        for predicate in range(4):
            for _ in range(RARE if predicate == rare else PER_WINDOW):
                ends = [iri(f"urn:n{predicate + step}-{draw.randrange(NODES)}") for step in (0, 1)]
                triple = Triple(ends[0], iri(f"urn:p{predicate}"), ends[1])
                events.append(Event(window * 10_000 + draw.randrange(10_000), (triple,), STREAM))
    return sorted(events, key=lambda event: event.time)


def batches(events: Sequence[Event]) -> list[Sequence[Event]]:
    return [events[first : first + BATCH] for first in range(0, len(events), BATCH)]


def run(
    plan: Plan,
    events: Iterable[Sequence[Event]],
    replanning: Replanning | None = None,
    static: Sequence[Event] = (),
) -> tuple[float, int, int]:
    """Returns the CPU seconds of a run, the number of its outputs, and how often it has replaced its plan."""
    job = IteratorJob(plan, Options(replan=replanning))
    begin = time.process_time()
    outputs = sum(1 for _ in job.run(events, static))
    return time.process_time() - begin, outputs, len(job.plan_changes)


def best_plan(system: System, events: Sequence[Event]) -> Plan:
    """Returns the plan for what the windows of a phase hold."""
    job = IteratorJob(squall.plan(system, replaceable=True), Options())
    for batch in batches(events[: len(events) // 2]):
        for _ in job.process(batch):
            pass
    return squall.plan(system, statistics=state_statistics(job.dataflow, job.watermark), replaceable=True)


def measure(name: str, windows: int, repeat: int) -> dict[str, tuple[float, int, int]]:
    """Returns the median CPU seconds of each way, with its outputs and changes of the plan."""
    system = squall.compile(QUERY, lexer="csparql")
    phases = [phase(rare, number * windows, windows) for number, rare in enumerate(STREAMS[name])]
    events = [event for part in phases for event in part]
    best = [best_plan(system, part) for part in phases]

    def right() -> tuple[float, int, int]:
        runs = [run(plan, batches(part)) for plan, part in zip(best, phases, strict=True)]
        return sum(seconds for seconds, _, _ in runs), sum(outputs for _, outputs, _ in runs), 0

    ways: dict[str, Callable[[], tuple[float, int, int]]] = {
        "plan": lambda: run(squall.plan(system), batches(events)),
        "right": right,
        "adapt": lambda: run(squall.plan(system, replaceable=True), batches(events), Replanning()),
    }
    if name == "stable":
        ways["looks"] = lambda: run(best[0], batches(events), Replanning())
    figures: dict[str, list[tuple[float, int, int]]] = {way: [] for way in ways}
    for _ in range(repeat):
        for way, measured in ways.items():
            figures[way].append(measured())
    return {way: (median(seconds for seconds, _, _ in runs), *runs[0][1:]) for way, runs in figures.items()}


def measure_short(name: str, triples: int, repeat: int) -> dict[str, tuple[float, int, int]]:
    """Returns the median CPU seconds of runs over a short stream, without and with `--adapt`."""
    work = WORKS[name]
    with TemporaryDirectory() as folder:
        work.write(Path(folder), triples)
        task = Task(work, work.files(Path(folder)), work.slide or 800)
        events = list(ours.batched(task, columns=True))
        static = [Event(ALWAYS, tuple(map(ours.triple, task.static())))]
        system = squall.compile(task.files.program, window=ours.window(work))
    ways: dict[str, Replanning | None] = {"plan": None, "adapt": Replanning()}
    figures: dict[str, list[tuple[float, int, int]]] = {way: [] for way in ways}
    for _ in range(repeat * SHORT_RUNS):
        for way, replanning in ways.items():
            plan = squall.plan(system, replaceable=replanning is not None)
            figures[way].append(run(plan, events, replanning, static))
    return {way: (median(seconds for seconds, _, _ in runs), *runs[0][1:]) for way, runs in figures.items()}


def main() -> None:
    """Measures the streams and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=30, help="the windows of a phase")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--triples", type=int, default=40_000, help="the triples of the short streams")
    arguments = parser.parse_args()
    print("| stream | way | CPU s | relative | outputs | changes |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for name in (*STREAMS, *SHORT):
        if name in STREAMS:
            figures, base = measure(name, arguments.windows, arguments.repeat), "right"
        else:
            figures, base = measure_short(name, arguments.triples, arguments.repeat), "plan"
        for way, (seconds, outputs, changes) in figures.items():
            print(f"| {name} | {way} | {seconds:.3f} | {seconds / figures[base][0]:.2f} | {outputs:,} | {changes} |")


if __name__ == "__main__":
    main()
