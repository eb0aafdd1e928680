"""A sequence of three steps for each of many keys, in process.

python -m tests.bench.sequences [--events 200000] [--keys 100000] [--repeat 3] [--peer bytewax]
python -m tests.bench.sequences --rules [--events 20000] [--keys 1000] [--within 1000]

One event in a hundred begins a sequence. Each run is a process of its own; the table has the medians of CPU time, for a
quarter of the events and for all of them, and the most memory. The events are in memory before the clock starts, as
`Event`s, and in columns, as readers of files deliver them. The peer is an automaton for this one pattern, written by
hand in bytewax.

With `--rules` the second of two steps reads what three rules derive of the four facts of each other event, with gates
in the plan (`squall.plan.gates`) and without.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import squall
from squall.plan import Plan
from squall.plan.gates import without_gates
from squall.rdf import Columns, Event, Triple, iri

EX = "http://example.org/"
WITHIN = 100_000
QUERY = f"""
PREFIX : <{EX}>
SELECT ?key ?a ?b ?c FROM STREAM :events
WHERE {{ {{ ?key :a ?a }} SEQ {{ ?key :b ?b }} SEQ {{ ?key :c ?c }} WITHIN {WITHIN}ms }}
"""

RULES = f"""@prefix : <{EX}> .
[(?car :measures ?m) (?m :flow ?f) -> (?car :flows ?f)]
[(?car :flows ?f) (?car :on ?key) -> (?key :hasFlow ?f)]
[(?key :hasFlow ?f) (?key :lanes ?l) -> (?key :loaded ?f)]
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


def events_for_rules(count: int, keys: int) -> Iterator[Event]:
    """Yields an event for each ms: one fact that begins a sequence, or four that rules read."""
    draw = random.Random(1)
    for time_ms in range(count):
        key, car, flow = f"k{draw.randrange(keys)}", f"car{time_ms}", f"m{time_ms}"
        facts = [(car, "measures", flow), (flow, "flow", "f"), (car, "on", key), (key, "lanes", "two")]
        if draw.random() < 0.01:
            facts = [(key, "accident", "o")]
        yield Event(time_ms, tuple(Triple(*(iri(EX + name) for name in fact)) for fact in facts), f"{EX}events")


def run(count: int, keys: int, in_columns: bool) -> Figures:
    """Runs the query over so many events in this process."""
    plan = squall.plan(squall.compile(QUERY, lexer="ctsparql"))
    stream = Columns.of(events(count, keys)) if in_columns else list(events(count, keys))
    return _measured(plan, stream, count)


def run_with_rules(count: int, keys: int, within: int, gated: bool) -> Figures:
    """Runs two steps, of which the second one reads what rules derive, over so many events in this process."""
    query = f"""PREFIX : <{EX}> SELECT * FROM STREAM :events
        WHERE {{ {{ ?key :accident ?x }} SEQ {{ ?key :loaded ?f }} WITHIN {within}ms }}"""
    with TemporaryDirectory() as folder:
        rules = Path(folder, "rules.jena")
        rules.write_text(RULES)
        system = squall.compile(query, lexer="ctsparql", rules=[str(rules)], window="ELEMENT")
    plan = squall.plan(system)
    return _measured(plan if gated else without_gates(plan), list(events_for_rules(count, keys)), count)


def _measured(plan: Plan, stream: Sequence[Event], count: int) -> Figures:
    for _ in squall.run(plan, [Event(0, (), f"{EX}events")]):
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
    parser.add_argument("--rules", action="store_true", help="the second step reads what rules derive")
    parser.add_argument("--within", type=int, default=1000, help="the bound on the sequence with rules (ms)")
    parser.add_argument("--ungated", action="store_true", help="with --alone and --rules: a plan without gates")
    parser.add_argument("--columns", action="store_true", help="with --alone: the events are in columns")
    parser.add_argument("--alone", action="store_true", help="run once, in this process, and print the figures as JSON")
    arguments = parser.parse_args()
    count, keys = arguments.events, arguments.keys
    if arguments.alone:
        if arguments.rules:
            print(json.dumps(run_with_rules(count, keys, arguments.within, not arguments.ungated)))
        else:
            print(json.dumps(run_peer(count, keys) if arguments.peer else run(count, keys, arguments.columns)))
        return
    systems = {"squall": list[str](), "squall, in columns": ["--columns"]}
    if arguments.rules:
        options = ["--rules", "--within", str(arguments.within)]
        systems = {"squall": options, "squall, without gates": [*options, "--ungated"]}
    elif arguments.peer:
        systems[arguments.peer] = ["--peer", arguments.peer]
    print("| events | system | events/s of CPU time | MB | matches |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for count in (arguments.events // 4, arguments.events):
        rounds = [[_alone(count, keys, options) for options in systems.values()] for _ in range(arguments.repeat)]
        for system, figures in zip(systems, zip(*rounds, strict=True), strict=True):
            rate, megabytes = median(each.rate for each in figures), median(each.megabytes for each in figures)
            print(f"| {count:,} | {system} | {rate:,.0f} | {megabytes:.0f} | {figures[0].matches:,} |")


def _alone(count: int, keys: int, options: Sequence[str]) -> Figures:
    """Returns the figures of a run in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.sequences", "--alone", "--keys", str(keys), "--events", str(count)]
    return Figures(*json.loads(subprocess.check_output([*command, *options])))


if __name__ == "__main__":
    main()
