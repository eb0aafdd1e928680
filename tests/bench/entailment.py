"""What entailment costs queries over windows: without it, compiled into patterns, and by a rule set.

    python -m tests.bench.entailment --size 50000

The stream is `university`, ten triples at a time, every 10 ms; the schema is `hierarchy`. Runs are interleaved, and the
table shows the median CPU time of evaluation in seconds, for each query. Without entailment a query has fewer answers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from statistics import median
from typing import Any

import squall
from squall.plan import Plan
from squall.rdf import ALWAYS, Event, Term, Triple
from tests.bench import data

STREAM = "urn:university"
QUERIES = {
    "professors": "SELECT ?n { ?x a u:Professor ; u:name ?n }",
    "members": "SELECT ?x ?o { ?x u:memberOf ?o }",
    "degrees": "SELECT ?x ?y { ?x a u:Faculty ; u:degreeFrom ?y }",
    "advisors": "SELECT ?x ?y { ?x u:advisor ?y . ?x a u:Student . ?y a u:Person }",
    "teachers": "SELECT ?x ?c { ?x a u:Person ; u:teacherOf ?c . ?c a u:Work }",
}
WAYS: dict[str, dict[str, Any]] = {"none": {}, "compiled": {"entailment": "rhodf"}, "rules": {"rules": ("rhodf",)}}


def facts(lines: Iterable[str]) -> list[Triple]:
    """Returns the triples of N-Triples whose terms have no blanks."""
    return [Triple(*map(Term, line.split()[:3])) for line in lines]


def plans(name: str, schema: Iterable[Triple]) -> dict[str, Plan]:
    """Returns the plans of a query, by the way of its entailment."""
    query = QUERIES[name].replace("{", f"FROM STREAM <{STREAM}> [RANGE 2s STEP 2s] WHERE {{", 1)
    text = f"REGISTER QUERY {name} AS PREFIX u: <{data.UNIVERSITY}> {query}"
    known: dict[str, dict[str, Any]] = {"compiled": {"schema": schema}}
    return {
        way: squall.plan(squall.compile(text, lexer="csparql", **options, **known.get(way, {})))
        for way, options in WAYS.items()
    }


def measured(name: str, size: int, repetitions: int) -> dict[str, tuple[float, int]]:
    """Returns the median CPU time (s) of a query and the number of its answers, by the way of its entailment."""
    schema, stream = facts(data.hierarchy()), facts(data.university(size))
    events = [Event(place, tuple(stream[place : place + 10]), STREAM) for place in range(0, size, 10)]
    static = [Event(ALWAYS, tuple(schema))]
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    answers: dict[str, int] = {}
    plans_by_way = plans(name, schema)
    for _ in range(repetitions):
        for way, plan in plans_by_way.items():
            start = time.process_time()
            answers[way] = sum(1 for _ in squall.run(plan, events, static=static))
            seconds[way].append(time.process_time() - start)
    return {way: (median(seconds[way]), answers[way]) for way in WAYS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.entailment")
    parser.add_argument("--size", type=int, default=50_000, help="triples of the stream")
    parser.add_argument("--repeat", type=int, default=5, help="times that each is run")
    args = parser.parse_args()
    print("query", *(f"{way}\tanswers" for way in WAYS), "compiled/none", "rules/none", sep="\t")
    for name in QUERIES:
        figures = measured(name, args.size, args.repeat)
        base = figures["none"][0]
        cells = [cell for time, count in figures.values() for cell in (f"{time:.2f}", count)]
        print(name, *cells, *(f"{figures[way][0] / base:.1f}" for way in ("compiled", "rules")), sep="\t")


if __name__ == "__main__":
    main()
