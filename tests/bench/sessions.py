"""The count of events in sessions of many keys, beside that in a sliding window of the same length, in process.

python -m tests.bench.sessions [--events 200000] [--keys 1000] [--repeat 3]

Each key is active for some time, in which its events come less than the gap apart, and then pauses. Each run is a
process of its own; the table has medians of CPU time, and the most memory. The events are in memory before the clock
starts.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import squall
from squall.rdf import Event, Triple, iri

EX = "http://example.org/"
QUERY = f"PREFIX : <{EX}> SELECT ?user (COUNT(?click) AS ?n) {{ ?user :clicked ?click }} GROUP BY ?user"
GAP_MS = 10_000
WINDOWS = {
    "sliding": f"RANGE {GAP_MS}ms",
    "hopping": f"RANGE {GAP_MS}ms STEP {GAP_MS}ms",
    "sessions": f"SESSION {GAP_MS}ms BY SUBJECT",
    "open sessions": f"SESSION {GAP_MS}ms BY SUBJECT ON CHANGE",
    "bounded": f"RANGE {GAP_MS}ms TRIPLES 1000",
}


class Figures(NamedTuple):
    """The figures of a run: events per second of CPU time, the most memory (MB), and the number of outputs."""

    rate: float
    megabytes: float
    outputs: int


def events(count: int, keys: int) -> Iterator[Event]:
    """Yields an event for each ms, of one of the keys that are active then: a tenth of them, others every 20 s."""
    draw = random.Random(1)
    active = max(1, keys // 10)
    for time_ms in range(count):
        key = (time_ms // (2 * GAP_MS) * active + draw.randrange(active)) % keys
        yield Event(time_ms, (Triple(iri(f"{EX}u{key}"), iri(EX + "clicked"), iri(f"{EX}c{time_ms}")),))


def run(window: str, count: int, keys: int) -> Figures:
    """Runs the query over so many events through a window in this process."""
    plan = squall.plan(squall.compile(QUERY, lexer="sparql", window=window))
    stream = list(events(count, keys))
    before = time.process_time()
    outputs = sum(1 for _ in squall.run(plan, stream))
    seconds = time.process_time() - before
    return Figures(count / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--alone", metavar="WINDOW", help="run this window once, in this process, and print JSON")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(run(WINDOWS[arguments.alone], arguments.events, arguments.keys)))
        return
    command = [sys.executable, "-m", "tests.bench.sessions", "--events", str(arguments.events)]
    figures: dict[str, list[Figures]] = {name: [] for name in WINDOWS}
    for _ in range(arguments.repeat):  # interleaved
        for name, runs in figures.items():
            text = subprocess.check_output([*command, "--keys", str(arguments.keys), "--alone", name])
            runs.append(Figures(*json.loads(text)))
    base = median(each.rate for each in figures["sliding"])
    print("| window | events/s of CPU time | times the sliding window | MB | outputs |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, runs in figures.items():
        rate, megabytes = median(each.rate for each in runs), median(each.megabytes for each in runs)
        print(f"| `{WINDOWS[name]}` | {rate:,.0f} | {rate / base:.2f} | {megabytes:.0f} | {runs[0].outputs:,} |")


if __name__ == "__main__":
    main()
