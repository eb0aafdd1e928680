"""What owl:sameAs costs queries over windows: by representative, by axioms, and without cliques.

    python -m tests.bench.same_as --size 30000

A stream says of each of 1,000 individuals a type, a name and an address, each by another of its names, again and again.
A query joins the three in a window. Runs are interleaved; the table shows the median CPU time of evaluation in seconds,
and the number of answers, for each number of names:

* `given`: without cliques, over a stream that has the representatives.
* `representative`: `--same-as representative`.
* `provenance`: `--same-as provenance`.
* `follow`: `--same-as representative --schema-changes follow`, with the links before the run.
* `links`: the same over a stream that brings the links, each with the first event of its individual.
* `members`: the same with `--same-as-answers members`.
* `axioms`: `--same-as axioms`, over a part of the stream (`--axioms`), since it derives each triple for all names.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from statistics import median
from typing import Any

import squall
from squall.plan import Plan
from squall.rdf import RDF, Columns, Event, Triple, iri, literal
from squall.rdf.cliques import Cliques

STREAM = "urn:staff"
PEOPLE = 1000
NAMES = (1, 10, 30, 100)
"""The numbers of names of an individual."""
TYPE, POSTDOC, NAME, EMAIL = iri(RDF + "type"), iri("urn:PostDoc"), iri("urn:name"), iri("urn:email")
QUERY = f"""REGISTER QUERY staff AS SELECT ?x ?n ?e FROM STREAM <{STREAM}> [RANGE 2s STEP 2s]
    WHERE {{ ?x a <urn:PostDoc> ; <urn:name> ?n ; <urn:email> ?e }}"""
WAYS: dict[str, dict[str, Any]] = {
    "given": {},
    "representative": {"same_as": "representative"},
    "provenance": {"same_as": "provenance"},
    "follow": {"same_as": "representative", "schema_changes": "follow"},
    "links": {"same_as": "representative", "schema_changes": "follow"},
    "members": {"same_as": "representative", "same_as_answers": "members"},
    "axioms": {"same_as": "axioms"},
}

COMPARED = ("representative", "provenance", "follow", "links")


def cliques_of(names: int) -> Cliques:
    """Returns 1,000 cliques of so many names."""
    return Cliques.of((iri(f"urn:c{person}i0"), iri(f"urn:c{person}i{name}")) for person in range(PEOPLE)
                      for name in range(1, names))  # fmt: skip


def stream(size: int, names: int) -> list[Event]:
    """Returns so many triples, three at a time, of an individual each 10 ms."""
    events = []
    for number in range(size // 3):
        person = number % PEOPLE
        terms = [iri(f"urn:c{person}i{(number + place) % names}") for place in range(3)]
        facts = (Triple(terms[0], TYPE, POSTDOC), Triple(terms[1], NAME, literal(f"name{person}")),
                 Triple(terms[2], EMAIL, literal(f"mail{person}")))  # fmt: skip
        events.append(Event(10 * number, facts, STREAM))
    return events


def with_links(events: list[Event], cliques: Cliques) -> list[Event]:
    """Returns events of which the first of each individual brings its links as well."""
    links: defaultdict[int, list[Triple]] = defaultdict(list)
    for link in cliques.triples:
        links[int(link.subject[6:].partition("i")[0])].append(link)
    return [
        event._replace(facts=(*links[number], *event.facts)) if number < PEOPLE else event
        for number, event in enumerate(events)
    ]


def plan_of(way: str, links: list[Triple]) -> Plan:
    return squall.plan(
        squall.compile(QUERY, lexer="csparql", schema=links if WAYS[way] and way != "links" else (), **WAYS[way])
    )


def measured(size: int, axioms_size: int, names: int, repetitions: int) -> dict[str, tuple[float, int]]:
    """Returns the median CPU time (s) and the number of answers, by way."""
    cliques = cliques_of(names)
    links = list(cliques.triples)
    events = stream(size, names)
    replaced_events = [event._replace(facts=tuple(cliques.facts(event.facts))) for event in events]
    inputs = dict.fromkeys(WAYS, Columns.of(events)) | {"given": Columns.of(replaced_events)}
    inputs["links"] = Columns.of(with_links(events, cliques))
    inputs["axioms"] = Columns.of(events[: axioms_size // 3])
    ways = [way for way in WAYS if way != "axioms" or names in NAMES[:2]]
    plans = {way: plan_of(way, links) for way in ways}
    seconds: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, int] = {}
    for _ in range(repetitions):
        for way in ways:
            start = time.process_time()
            answers[way] = sum(1 for _ in squall.run(plans[way], inputs[way]))
            seconds[way].append(time.process_time() - start)
    return {way: (median(seconds[way]), answers[way]) for way in ways}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.same_as")
    parser.add_argument("--size", type=int, default=30_000, help="triples of the stream")
    parser.add_argument("--axioms", type=int, default=600, help="triples of the stream that axioms read")
    parser.add_argument("--repeat", type=int, default=5, help="times that each is run")
    args = parser.parse_args()
    print("names", *(f"{way}\tanswers" for way in WAYS), *(f"{way}/given" for way in COMPARED), sep="\t")
    for names in NAMES:
        figures = measured(args.size, args.axioms, names, args.repeat)
        cells = [f"{seconds:.2f}\t{answers}" for seconds, answers in figures.values()]
        cells += ["-\t-"] * (len(WAYS) - len(cells))
        ratios = (figures[way][0] / figures["given"][0] for way in COMPARED)
        print(names, *cells, *(f"{ratio:.2f}" for ratio in ratios), sep="\t")


if __name__ == "__main__":
    main()
