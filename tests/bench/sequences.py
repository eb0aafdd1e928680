"""A sequence of three steps for each of many keys, in process.

python -m tests.bench.sequences [--events 200000] [--keys 100000] [--repeat 3] [--peer bytewax]
python -m tests.bench.sequences --rules [--events 20000] [--keys 1000] [--within 1000] [--builder spark]
python -m tests.bench.sequences --consume [--events 20000] [--keys 2000] [--within 10000]
python -m tests.bench.sequences --queries 300 [--events 20000] [--keys 1000] [--within 10000]
python -m tests.bench.sequences --memory [--events 800000]

One event in a hundred begins a sequence. Each run is a process of its own; the table has the medians of CPU time, for a
quarter of the events and for all of them, and the most memory. The events are in memory before the clock starts, as
`Event`s, and in columns, as readers of files deliver them. The peer is an automaton for this one pattern, written by
hand in bytewax.

With `--rules` the second of two steps reads what three rules derive of the four facts of each other event, with gates
in the plan (`squall.plan.gates`) and without. Of an engine the CPU time of all its processes counts.

With `--consume` half of the events are of one kind and half of another one, and pairs of a key consume them. With
`--queries` sequences of three steps have the first two in common, and there are ten of them, or as many as is said.
With `--memory` the events of the first sequence are not in memory before, and come in batches.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import squall
from squall.model import System
from squall.plan import Plan
from squall.plan.gates import without_gates
from squall.rdf import Columns, Event, Triple, iri
from tests.bench.executors import descendants

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
    return _measured(*_rules(keys, within, count, gated), count)


def _rules(keys: int, within: int, count: int, gated: bool) -> tuple[Plan, list[Event]]:
    """Returns the plan of two steps, of which the second one reads what rules derive, and its events."""
    query = f"""PREFIX : <{EX}> SELECT * FROM STREAM :events
        WHERE {{ {{ ?key :accident ?x }} SEQ {{ ?key :loaded ?f }} WITHIN {within}ms }}"""
    with TemporaryDirectory() as folder:
        rules = Path(folder, "rules.jena")
        rules.write_text(RULES)
        system = squall.compile(query, lexer="ctsparql", rules=[str(rules)], window="ELEMENT")
    plan = squall.plan(system)
    return plan if gated else without_gates(plan), list(events_for_rules(count, keys))


def run_consuming(count: int, keys: int, within: int, consumes: bool) -> Figures:
    """Runs pairs of two kinds of events, which are as frequent, over so many events in this process."""
    query = f"""PREFIX : <{EX}> SELECT * FROM STREAM :events
        WHERE {{ {{ ?key :a ?a }} EACH SEQ {{ ?key :b ?b }} WITHIN {within}ms {"CONSUME" if consumes else ""} }}"""
    draw = random.Random(1)
    facts = ((f"k{draw.randrange(keys)}", draw.choice("ab"), f"o{time_ms}") for time_ms in range(count))
    return _measured(squall.plan(squall.compile(query, lexer="ctsparql")), _stream(facts), count)


def run_queries(number: int, count: int, keys: int, within: int) -> Figures:
    """Runs so many queries of three steps with the same first two, over so many events in this process."""
    steps = "{{ ?key :a ?a }} SEQ {{ ?key :b ?b }} SEQ {{ ?key :c{} ?c }} WITHIN {}ms"
    texts = (f"PREFIX : <{EX}> SELECT * FROM STREAM :events {{ {steps.format(i, within)} }}" for i in range(number))
    system = System(subsystems=tuple(squall.compile(text, lexer="ctsparql") for text in texts))
    draw = random.Random(1)
    kinds = ("a" if draw.random() < 0.01 else draw.choice(["b", f"c{draw.randrange(1000)}"]) for _ in range(count))
    facts = ((f"k{draw.randrange(keys)}", kind, "o") for kind in kinds)
    return _measured(squall.plan(system), _stream(facts), count)


def _stream(facts: Iterable[tuple[str, ...]]) -> list[Event]:
    """Returns an event for each ms, with a fact of these names."""
    triples = (Triple(*(iri(EX + name) for name in names)) for names in facts)
    return [Event(time_ms, (triple,), f"{EX}events") for time_ms, triple in enumerate(triples)]


def run_batches(count: int, keys: int) -> Figures:
    """Runs the query with a bound of 10 s over so many events, which come in batches of 1,000."""
    plan = squall.plan(squall.compile(QUERY.replace(f"{WITHIN}ms", "10s"), lexer="ctsparql"))
    stream = events(count, keys)
    before = time.process_time()
    batches = iter(lambda: list(islice(stream, 1000)), [])
    matches = sum(1 for _ in squall.build(plan).run(batches))
    return Figures(count / (time.process_time() - before), _peak_megabytes(), matches)


def run_on_engine(builder: str, count: int, keys: int, within: int, gated: bool) -> Figures:
    """Runs what `run_with_rules` does on an engine, in four batches."""
    plan, stream = _rules(keys, within, count, gated)
    list(squall.build(plan, builder).run([stream[:200]]))  # so that the engine has started
    before = _cpu_of_all(os.getpid())
    size = -(-count // 4)
    matches = sum(1 for _ in squall.build(plan, builder).run([stream[i : i + size] for i in range(0, count, size)]))
    return Figures(count / (_cpu_of_all(os.getpid()) - before), _peak_megabytes(), matches)


def _cpu_of_all(process: int) -> float:
    """Returns the CPU seconds of a process, of those that it has started, and of those that have ended."""
    ticks = 0
    for id in (process, *descendants(process)):
        with suppress(FileNotFoundError):
            fields = Path(f"/proc/{id}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measured(plan: Plan, stream: Sequence[Event], count: int) -> Figures:
    for _ in squall.run(plan, [Event(0, (), f"{EX}events")]):
        pass  # so that no import is measured
    before = time.process_time()
    matches = sum(1 for _ in squall.run(plan, stream))
    seconds = time.process_time() - before
    return Figures(count / seconds, _peak_megabytes(), matches)


def run_peer(count: int, keys: int) -> Figures:
    """Runs the automaton over so many events in this process."""
    from tests.bench.peers.bytewax_automaton import matches

    stream = [(event.time, fact) for event in events(count, keys) for fact in event.facts if isinstance(fact, Triple)]
    matches(stream[:1], WITHIN)
    before = time.process_time()
    number = len(matches(stream, WITHIN))
    seconds = time.process_time() - before
    return Figures(count / seconds, _peak_megabytes(), number)


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
    parser.add_argument("--builder", default="iterator", help="with --rules: the builder")
    parser.add_argument("--consume", action="store_true", help="pairs consume their events")
    parser.add_argument("--reuse", action="store_true", help="with --alone and --consume: they do not")
    parser.add_argument("--queries", type=int, default=0, help="so many sequences with the same first two steps")
    parser.add_argument("--memory", action="store_true", help="the events come in batches")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(_run(arguments)))
        return
    systems = _systems(arguments)
    count, keys = arguments.events, arguments.keys
    print("| events | system | events/s of CPU time | MB | matches |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for count in (arguments.events // 4, arguments.events):
        rounds = [[_alone(count, keys, options) for options in systems.values()] for _ in range(arguments.repeat)]
        for system, figures in zip(systems, zip(*rounds, strict=True), strict=True):
            rate, megabytes = median(each.rate for each in figures), median(each.megabytes for each in figures)
            print(f"| {count:,} | {system} | {rate:,.0f} | {megabytes:.0f} | {figures[0].matches:,} |")


def _systems(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Returns the options of the runs that are compared, by the names that the table has for them."""
    within = ["--within", str(arguments.within)]
    if arguments.rules:
        options = ["--rules", *within, "--builder", arguments.builder]
        return {"with gates": options, "without gates": [*options, "--ungated"]}
    if arguments.consume:
        return {"`CONSUME`": ["--consume", *within], "each pair": ["--consume", "--reuse", *within]}
    if arguments.queries:
        numbers = ("10", str(arguments.queries))
        return {f"{number} sequences": ["--queries", number, *within] for number in numbers}
    if arguments.memory:
        return {"in batches": ["--memory"]}
    peer = {arguments.peer: ["--peer", arguments.peer]} if arguments.peer else {}
    return {"squall": [], "squall, in columns": ["--columns"], **peer}


def _run(arguments: argparse.Namespace) -> Figures:
    """Runs once, in this process."""
    count, keys, within = arguments.events, arguments.keys, arguments.within
    if arguments.rules and arguments.builder != "iterator":
        return run_on_engine(arguments.builder, count, keys, within, not arguments.ungated)
    if arguments.rules:
        return run_with_rules(count, keys, within, not arguments.ungated)
    if arguments.consume:
        return run_consuming(count, keys, within, not arguments.reuse)
    if arguments.queries:
        return run_queries(arguments.queries, count, keys, within)
    if arguments.memory:
        return run_batches(count, keys)
    return run_peer(count, keys) if arguments.peer else run(count, keys, arguments.columns)


def _alone(count: int, keys: int, options: Sequence[str]) -> Figures:
    """Returns the figures of a run in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.sequences", "--alone", "--keys", str(keys), "--events", str(count)]
    return Figures(*json.loads(subprocess.check_output([*command, *options])))


if __name__ == "__main__":
    main()
