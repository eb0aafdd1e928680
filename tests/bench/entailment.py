"""What entailment costs queries over windows: compiled into patterns, by a rule set, and without it.

    python -m tests.bench.entailment --size 50000

The stream is `university`, ten triples at a time, every 10 ms; the schema is `hierarchy`. Runs are interleaved, and the
table shows the median CPU time of evaluation in seconds, for each query, and for queries of all classes at once:

* `none`: without entailment. A query has fewer answers.
* `given`: without entailment, over a stream that has all that is entailed. A query has all answers.
* `compiled`: `--entailment rhodf`.
* `specialised`: `--rules owl2rl --specialise`.
* `rules`: `--rules rhodf`; not for all classes.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any

import squall
from squall.plan import Plan
from squall.rdf import ALWAYS, Event, Term, Triple
from squall.reasoning.schema import SUBCLASS, Schema
from tests.bench import data

STREAM = "urn:university"
QUERIES = {
    "professors": "SELECT ?n { ?x a u:Professor ; u:name ?n }",
    "members": "SELECT ?x ?o { ?x u:memberOf ?o }",
    "degrees": "SELECT ?x ?y { ?x a u:Faculty ; u:degreeFrom ?y }",
    "advisors": "SELECT ?x ?y { ?x u:advisor ?y . ?x a u:Student . ?y a u:Person }",
    "teachers": "SELECT ?x ?c { ?x a u:Person ; u:teacherOf ?c . ?c a u:Work }",
}
CLASSES = "all classes"
"""The name of the workload with a query for each class of the schema: its members, and their names."""
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "given": {},
    "compiled": {"entailment": "rhodf"},
    "specialised": {"rules": ("owl2rl",), "specialise": True},
    "rules": {"rules": ("rhodf",)},
}


def facts(lines: Iterable[str]) -> list[Triple]:
    """Returns the triples of N-Triples whose terms have no blanks."""
    return [Triple(*map(Term, line.split()[:3])) for line in lines]


def texts(name: str, schema: Iterable[Triple]) -> list[str]:
    """Returns the queries of a workload."""
    queries = {name: QUERIES.get(name, "")}
    if name == CLASSES:
        classes = sorted({term for triple in schema if triple.predicate == SUBCLASS for term in triple[::2]})
        queries = {f"C{number}": f"SELECT ?x ?n {{ ?x a {term} ; u:name ?n }}" for number, term in enumerate(classes)}
    window = f"FROM STREAM <{STREAM}> [RANGE 2s STEP 2s] WHERE {{"
    return [
        f"REGISTER QUERY {query_name} AS PREFIX u: <{data.UNIVERSITY}> {query.replace('{', window, 1)}"
        for query_name, query in queries.items()
    ]


def plans(name: str, schema: Iterable[Triple]) -> dict[str, Plan]:
    """Returns the plans of a workload, by the way of its entailment."""
    schemas: dict[str, dict[str, Any]] = {way: {"schema": schema} for way in ("compiled", "specialised")}
    return {
        way: squall.plan(squall.compile(*texts(name, schema), lexer="csparql", **options, **schemas.get(way, {})))
        for way, options in WAYS.items()
        if name != CLASSES or way != "rules"
    }


def measured(name: str, size: int, repetitions: int) -> dict[str, tuple[float, int]]:
    """Returns the median CPU time (s) of a workload and the number of its answers, by the way of its entailment."""
    schema, stream = facts(data.hierarchy()), facts(data.university(size))
    events = [Event(place, tuple(stream[place : place + 10]), STREAM) for place in range(0, size, 10)]
    closed = Schema(schema)
    given = [event._replace(facts=tuple(dict.fromkeys(closed.consequences(stream_facts(event))))) for event in events]
    static = [Event(ALWAYS, tuple(schema))]
    seconds: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, int] = {}
    plans_by_way = plans(name, schema)
    for _ in range(repetitions):
        for way, plan in plans_by_way.items():
            start = time.process_time()
            own_static = () if way == "specialised" else static
            answers[way] = sum(1 for _ in squall.run(plan, given if way == "given" else events, static=own_static))
            seconds[way].append(time.process_time() - start)
    return {way: (median(seconds[way]), answers[way]) for way in plans_by_way}


def stream_facts(event: Event) -> list[Triple]:
    return [fact for fact in event.facts if isinstance(fact, Triple)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.entailment")
    parser.add_argument("--size", type=int, default=50_000, help="triples of the stream")
    parser.add_argument("--repeat", type=int, default=5, help="times that each is run")
    args = parser.parse_args()
    print("queries", *(f"{way}\tanswers" for way in WAYS), "compiled/given", sep="\t")
    for name in (*QUERIES, CLASSES):
        figures = measured(name, args.size, args.repeat)
        cells = [cell for way in WAYS for cell in _cells(figures.get(way))]
        print(name, *cells, f"{figures['compiled'][0] / figures['given'][0]:.2f}", sep="\t")


def _cells(figure: tuple[float, int] | None) -> tuple[str, str]:
    return ("-", "-") if figure is None else (f"{figure[0]:.2f}", str(figure[1]))


if __name__ == "__main__":
    main()
