"""A sequence of three steps for each of many keys, in process.

python -m tests.bench.sequences [--events 200000] [--keys 100000] [--repeat 3] [--peer bytewax]

One event in a hundred begins a sequence. Each run is a process of its own; the table has the medians of CPU time, for a
quarter of the events and for all of them, and the most memory. The events are in memory before the clock starts. The
peer is an automaton for this one pattern, written by hand in bytewax.
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
WITHIN = 100_000
QUERY = f"""
PREFIX : <{EX}>
SELECT ?key ?a ?b ?c FROM STREAM :events
WHERE {{ {{ ?key :a ?a }} SEQ {{ ?key :b ?b }} SEQ {{ ?key :c ?c }} WITHIN {WITHIN}ms }}
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
    for _ in squall.run(plan, stream[:1]):
        pass  # so that no import is measured
    before = time.process_time()
    matches = sum(1 for _ in squall.run(plan, stream))
    seconds = time.process_time() - before
    return Figures(count / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, matches)


def run_peer(count: int, keys: int) -> Figures:
    """Runs the automaton over so many events in this process."""
    from tests.bench.peers.bytewax_automaton import matches

    stream = [(event.time, fact) for event in events(count, keys) for fact in event.facts if isinstance(fact, Triple)]
    matches(stream[:1], WITHIN)
    before = time.process_time()
    number = len(matches(stream, WITHIN))
    seconds = time.process_time() - before
    return Figures(count / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer", choices=["bytewax"])
    parser.add_argument("--alone", action="store_true", help="run once, in this process, and print the figures as JSON")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps((run_peer if arguments.peer else run)(arguments.events, arguments.keys)))
        return
    systems = ["squall", *([arguments.peer] if arguments.peer else [])]
    print("| events | system | events/s of CPU time | MB | matches |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for count in (arguments.events // 4, arguments.events):
        rounds = [[_alone(count, arguments.keys, system) for system in systems] for _ in range(arguments.repeat)]
        for system, figures in zip(systems, zip(*rounds, strict=True), strict=True):
            rate, megabytes = median(each.rate for each in figures), median(each.megabytes for each in figures)
            print(f"| {count:,} | {system} | {rate:,.0f} | {megabytes:.0f} | {figures[0].matches:,} |")


def _alone(count: int, keys: int, system: str) -> Figures:
    """Returns the figures of a run in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.sequences", "--alone", "--keys", str(keys), "--events", str(count)]
    command += [] if system == "squall" else ["--peer", system]
    return Figures(*json.loads(subprocess.check_output(command)))


if __name__ == "__main__":
    main()
