"""Which positions lie within which areas, by the cells of a grid and by comparing all pairs, in process.

python -m tests.bench.areas [--positions 2000] [--areas 10 100 1000] [--repeat 3]

The areas are static squares of 0.01 degrees, the positions come one for each ms, in batches of 100, in a window of a
second. The planner `rete` makes a join on cells of the test `geof:sfWithin`, the planner `greedy` a product. The events
are in memory before the clock starts. Both have to give the same answers.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from statistics import median

import squall
from squall.rdf import ALWAYS, Event, Triple, iri, literal

EX = "http://example.org/"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
QUERY = f"""PREFIX : <{EX}> PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
    SELECT ?car ?zone {{ ?car :at ?position . ?zone :area ?area FILTER(geof:sfWithin(?position, ?area)) }}"""
SIDE = 0.01
BATCH = 100


def areas(count: int) -> list[Event]:
    """Returns so many squares, at random places of one degree."""
    draw, events = random.Random(1), []
    for number in range(count):
        x, y = draw.uniform(8, 9), draw.uniform(47, 48)
        corners = ((x, y), (x + SIDE, y), (x + SIDE, y + SIDE), (x, y + SIDE), (x, y))
        area = literal(f"POLYGON(({', '.join(f'{a} {b}' for a, b in corners)}))", WKT)
        events.append(Event(ALWAYS, (Triple(iri(f"{EX}z{number}"), iri(EX + "area"), area),)))
    return events


def positions(count: int) -> list[list[Event]]:
    """Returns batches of positions of a hundred cars."""
    draw, events = random.Random(2), []
    for time_ms in range(count):
        place = literal(f"POINT({draw.uniform(8, 9):.6f} {draw.uniform(47, 48):.6f})", WKT)
        events.append(Event(time_ms, (Triple(iri(f"{EX}c{time_ms % 100}"), iri(EX + "at"), place),)))
    return [events[start : start + BATCH] for start in range(0, count, BATCH)]


def run(planner: str, static: Sequence[Event], batches: Sequence[Sequence[Event]]) -> tuple[float, int]:
    """Returns the CPU seconds of a run and the number of its outputs."""
    plan = squall.plan(squall.compile(QUERY, lexer="sparql", window="RANGE 1s"), planner=planner)
    job = squall.build(plan, "iterator")
    before = time.process_time()
    outputs = sum(1 for _ in job.run(batches, static))
    return time.process_time() - before, outputs


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.bench.areas", description="Positions within areas.")
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--areas", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    batches = positions(options.positions)
    run("rete", areas(1), batches[:1])  # imports shapely
    print("areas  planner  us per position  outputs")
    for count in options.areas:
        counts = set()
        for planner in ("greedy", "rete"):
            runs = [run(planner, areas(count), batches) for _ in range(options.repeat)]
            counts |= {outputs for _, outputs in runs}
            microseconds = median(seconds for seconds, _ in runs) / options.positions * 1e6
            print(f"{count:5}  {planner:7}  {microseconds:15.0f}  {runs[0][1]:7}")
        if len(counts) != 1:
            raise SystemExit(f"the planners differ over {count} areas: {counts} outputs")


if __name__ == "__main__":
    main()
