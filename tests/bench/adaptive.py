"""What it gains to replace the plan while a run goes on, and what it costs where the stream is stable.

    python -m tests.bench.adaptive --windows 30

The query joins four predicates in a chain, in windows of 10 s. In the stream `unstable` each phase has another
predicate that is rare; in `stable` it is always the same one. Runs are interleaved, and the table shows the median CPU
time in seconds:

* `plan`: the plan without statistics.
* `right`: each phase by the plan that is best for it, as if it were known.
* `adapt`: a run that replaces its plan (`squall run --adapt`).
* `looks`: on the stable stream, a run that begins with the best plan and looks for better ones.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from statistics import median

import squall
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.state_statistics import state_statistics
from squall.contracts import Options, Replanning
from squall.model import System
from squall.plan import Plan
from squall.rdf import Event, Triple, iri

STREAM = "urn:s"
QUERY = f"""REGISTER QUERY chain AS SELECT ?a ?e FROM STREAM <{STREAM}> [RANGE 10s STEP 10s]
WHERE {{ ?a <urn:p0> ?b . ?b <urn:p1> ?c . ?c <urn:p2> ?d . ?d <urn:p3> ?e }}"""
PER_WINDOW, RARE, NODES = 600, 6, 75
"""The triples of a predicate in a window, those of the rare one, and the nodes on each side of a predicate."""
BATCH = 512
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


def run(plan: Plan, events: Sequence[Event], replanning: Replanning | None = None) -> tuple[float, int, int]:
    """Returns the CPU seconds of a run, the number of its outputs, and how often it has replaced its plan."""
    job = IteratorJob(plan, Options(replan=replanning))
    begin = time.process_time()
    outputs = sum(1 for _ in job.run(batches(events)))
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
        runs = [run(plan, part) for plan, part in zip(best, phases, strict=True)]
        return sum(seconds for seconds, _, _ in runs), sum(outputs for _, outputs, _ in runs), 0

    ways: dict[str, Callable[[], tuple[float, int, int]]] = {
        "plan": lambda: run(squall.plan(system), events),
        "right": right,
        "adapt": lambda: run(squall.plan(system, replaceable=True), events, Replanning()),
    }
    if name == "stable":
        ways["looks"] = lambda: run(best[0], events, Replanning())
    figures: dict[str, list[tuple[float, int, int]]] = {way: [] for way in ways}
    for _ in range(repeat):
        for way, measured in ways.items():
            figures[way].append(measured())
    return {way: (median(seconds for seconds, _, _ in runs), *runs[0][1:]) for way, runs in figures.items()}


def main() -> None:
    """Measures both streams and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=30, help="the windows of a phase")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print("| stream | way | CPU s | of `right` | outputs | changes |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for name in STREAMS:
        figures = measure(name, arguments.windows, arguments.repeat)
        for way, (seconds, outputs, changes) in figures.items():
            print(f"| {name} | {way} | {seconds:.2f} | {seconds / figures['right'][0]:.2f} | {outputs:,} | {changes} |")


if __name__ == "__main__":
    main()
