"""A sequence of three steps for each of many keys, in process.

python -m tests.bench.sequences [--events 200000] [--keys 100000] [--repeat 3]

One event in a hundred begins a sequence. Each run is a process of its own; the table has the medians of CPU time, for a
quarter of the events and for all of them, and the most memory. The events are in memory before the clock starts.
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
QUERY = f"""
PREFIX : <{EX}>
SELECT ?key ?a ?b ?c FROM STREAM :events
WHERE {{ {{ ?key :a ?a }} SEQ {{ ?key :b ?b }} SEQ {{ ?key :c ?c }} WITHIN 100s }}
"""


class Figures(NamedTuple):
    """The figures of a run: events per second of CPU time, the most memory (MB), and the number of matches."""

    rate: float
    megabytes: float
    matches: int


def events(count: int, keys: int) -> Iterator[Event]:
    """Yields an event for each ms, of a key and a kind that are drawn."""
    draw = random.Random(1)
    for time_ms in range(count):
        predicate = "a" if draw.random() < 0.01 else draw.choice("bc")
        triple = Triple(iri(f"{EX}k{draw.randrange(keys)}"), iri(EX + predicate), iri(f"{EX}o"))
        yield Event(time_ms, (triple,), f"{EX}events")


def run(count: int, keys: int) -> Figures:
    """Runs the query over so many events in this process."""
    plan = squall.plan(squall.compile(QUERY, lexer="ctsparql"))
    stream = list(events(count, keys))
    before = time.process_time()
    matches = sum(1 for _ in squall.run(plan, stream))
    seconds = time.process_time() - before
    return Figures(count / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, matches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="run once, in this process, and print the figures as JSON")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(run(arguments.events, arguments.keys)))
        return
    print("| events | events/s of CPU time | MB | matches |")
    print("| ---: | ---: | ---: | ---: |")
    for count in (arguments.events // 4, arguments.events):
        command = [sys.executable, "-m", "tests.bench.sequences", "--alone", "--keys", str(arguments.keys)]
        texts = [subprocess.check_output([*command, "--events", str(count)]) for _ in range(arguments.repeat)]
        figures = [Figures(*json.loads(text)) for text in texts]
        rate, megabytes = median(each.rate for each in figures), median(each.megabytes for each in figures)
        print(f"| {count:,} | {rate:,.0f} | {megabytes:.0f} | {figures[0].matches:,} |")


if __name__ == "__main__":
    main()
