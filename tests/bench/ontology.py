"""What an ontology costs a query over a stream: as a program, as data under rule sets, and without it.

    python -m tests.bench.ontology --size 22000

The stream has offers of products, each with one of 280 types; the ontology has 329 of them in four levels. The query
joins offers with products of one of the eight classes below the root, within 5 s (the first pattern of the evaluation
of Sparkwave: Komazec, Cerri and Fensel, DEBS 2012). Runs are interleaved, and the table shows the median CPU time of
evaluation in seconds:

* `given`: without the ontology, over a stream in which each product has all of its types.
* `entailment`: with `--entailment rhodf`.
* `program`: the ontology as a program.
* `rhodf specialised`, `owl2rl specialised`: under a rule set that the ontology specialises.
* `rhodf`, `owl2rl`: the ontology as static data, under a rule set.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import squall
from squall.plan import Plan
from squall.rdf import ALWAYS, RDFS, Event, Triple, iri, literal
from squall.rdf.vocabulary import TYPE

E = "http://example.org/"
STREAM = f"{E}offers"
WIDTHS = (8, 5, 7)
"""How many subclasses a class of each level has."""
QUERY = f"""REGISTER QUERY offers AS PREFIX : <{E}>
SELECT ?offer ?product ?vendor FROM STREAM <{STREAM}> [RANGE 5s]
WHERE {{ ?offer a :Offer ; :product ?product ; :vendor ?vendor . ?product a :Type1 }}"""
WAYS: dict[str, dict[str, Any]] = {
    "given": {},
    "entailment": {"entailment": "rhodf"},
    "program": {},
    "rhodf specialised": {"rules": ["rhodf"], "specialise": True},
    "owl2rl specialised": {"rules": ["owl2rl"], "specialise": True},
    "rhodf": {"rules": ["rhodf"]},
    "owl2rl": {"rules": ["owl2rl"]},
}
HAS_STATIC_ONTOLOGY = ("rhodf", "owl2rl")
"""The ways in which the ontology is static data of the run."""


def hierarchy() -> dict[str, tuple[str, ...]]:
    """Returns the superclasses of each class, by their names, nearest first."""
    above: dict[str, tuple[str, ...]] = {"Type": ()}
    level = ["Type"]
    for width in WIDTHS:
        level = [f"{name}{number}" for name in level for number in range(1, width + 1)]
        above |= {name: (name[:-1], *above[name[:-1]]) for name in level}
    return above


def ontology() -> list[Triple]:
    """Returns the triples of the ontology."""
    subclass = iri(f"{RDFS}subClassOf")
    return [Triple(iri(E + name), subclass, iri(E + above[0])) for name, above in hierarchy().items() if above]


def offers(size: int, closed: bool) -> Iterator[Event]:
    """Yields offers of eleven triples, every ms.

    Args:
        size: The number of triples.
        closed: Whether products have all of their types.
    """
    draw = random.Random(7)
    above = hierarchy()
    leaves = [name for name in above if len(name) == len("Type") + len(WIDTHS)]
    types = [draw.choice(leaves) for _ in range(5000)]
    for number in range(size // 11):
        offer, product_number = iri(f"{E}offer{number}"), draw.randrange(len(types))
        product, type = iri(f"{E}product{product_number}"), types[product_number]
        facts = [
            Triple(offer, TYPE, iri(f"{E}Offer")),
            Triple(offer, iri(f"{E}product"), product),
            Triple(offer, iri(f"{E}vendor"), iri(f"{E}vendor{draw.randrange(500)}")),
            *(Triple(offer, iri(f"{E}detail{place}"), literal(str(place))) for place in range(7)),
            *(Triple(product, TYPE, iri(E + name)) for name in (type, *(above[type] if closed else ()))),
        ]
        yield Event(number, tuple(facts), STREAM)


def plans() -> dict[str, Plan]:
    """Returns the plans of the query by the ways of `WAYS`."""
    with TemporaryDirectory() as folder:
        program, query = Path(folder, "types.owl"), Path(folder, "offers.csparql")
        program.write_text("".join(f"{' '.join(triple)} .\n" for triple in ontology()), encoding="utf-8")
        query.write_text(QUERY, encoding="utf-8")
        return {
            way: squall.plan(squall.compile(*([program] if way == "program" else []), query, **_with_schema(options)))
            for way, options in WAYS.items()
        }


def _with_schema(options: dict[str, Any]) -> dict[str, Any]:
    needs_schema = options.keys() & {"entailment", "specialise"}
    return {**options, "schema": ontology()} if needs_schema else options


def measured(size: int, repetitions: int, ways: Sequence[str]) -> dict[str, tuple[float, int]]:
    """Returns the median CPU time (s) and the number of answers, by the way."""
    seconds: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, int] = {}
    plans_by_way, schema = plans(), Event(ALWAYS, tuple(ontology()))
    streams = {closed: list(offers(size, closed)) for closed in (False, True)}
    for _ in range(repetitions):
        for way in ways:
            start = time.process_time()
            static = [schema] if way in HAS_STATIC_ONTOLOGY else []
            outputs = squall.run(plans_by_way[way], streams[way == "given"], static=static)
            answers[way] = sum(1 for _ in outputs)
            seconds[way].append(time.process_time() - start)
    return {way: (median(seconds[way]), answers[way]) for way in ways}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ontology")
    parser.add_argument("--size", type=int, default=22_000, help="triples of the stream")
    parser.add_argument("--repeat", type=int, default=5, help="times that each is run")
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS), metavar="WAY", help="what is run")
    args = parser.parse_args()
    print("way", "seconds", "answers", sep="\t")
    for way, (seconds, count) in measured(args.size, args.repeat, args.ways).items():
        print(way, f"{seconds:.2f}", count, sep="\t")


if __name__ == "__main__":
    main()
