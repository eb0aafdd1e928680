"""The queries Q4 to Q9 of Strider's evaluation over a stable and an unstable stream, with and without replaced plans.

    python -m tests.bench.waves --windows 10 --plot docs/benchmarks/waves.svg

The stream has observations of sensors of a water network, after the form that Strider's evaluation has (Ren et al.,
ISWC 2017): a window of 10 s holds observations with many values of three kinds. In `stable` chlorine is always rare; in
`unstable` each of three phases has another kind that is rare. Runs are interleaved; CPU time is that of this process,
events are in memory, and the outputs are counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median

import squall
from squall.builders.local.job import IteratorJob
from squall.contracts import BatchMetrics, Options, Replanning
from squall.model import System
from squall.rdf import RDF, XSD, Event, Term, Triple, iri, literal
from squall.reasoning.schema import SUBCLASS

SSN, WATER, QUDT = "http://purl.oclc.org/NET/ssnx/ssn/", "http://www.cuahsi.org/waterML/", "http://data.nasa.gov/qudt/"
PREFIXES = f"PREFIX ssn: <{SSN}> PREFIX water: <{WATER}> PREFIX qudt: <{QUDT}>"
QUERIES = {
    "Q4": "SELECT ?s ?o1 { ?s a ?o ; ssn:isProducedBy ?o1 }",
    "Q5": "SELECT ?s ?o1 ?o2 ?o3 ?o4 ?o5 { { ?s a ?o . ?s ssn:isProducedBy ?o1 . ?s ssn:hasValue ?o2 } UNION "
    "{ ?o2 a ?o3 . ?o2 ssn:startTime ?o4 . ?o2 qudt:numericValue ?o5 } }",
    "Q6": "SELECT ?s ?o1 ?o2 ?o3 ?o4 ?o5 ?o6 { ?s a ?o . ?s ssn:isProducedBy ?o1 . ?s ssn:hasValue ?o2 . "
    "?o2 a ?o3 . ?o2 ssn:startTime ?o4 . ?o2 qudt:unit ?o5 . ?o2 qudt:numericValue ?o6 }",
    "Q7": "SELECT ?s ?o1 ?o2 ?o3 { ?s ssn:hasValue ?o1 . ?s ssn:hasValue ?o2 . ?s ssn:hasValue ?o3 . "
    "?o1 a water:flow . ?o2 a water:temperature . ?o3 a water:chlorine }",
    "Q8": "SELECT ?s ?o1 ?o2 ?o3 { ?s ssn:hasValue ?o1 . ?s ssn:hasValue ?o2 . ?s ssn:hasValue ?o3 . "
    "?o1 a water:flow . ?o2 a water:temperature . ?o3 a water:chlorine }",
    "Q9": "SELECT ?x ?y ?z { ?s ssn:hasValue ?o1 . ?s ssn:hasValue ?o2 . ?s ssn:hasValue ?o3 . ?o1 a water:flow . "
    "?o1 qudt:numericValue ?x . ?o2 a water:temperature . ?o2 qudt:numericValue ?y . ?o3 a water:chlorine . "
    "?o3 qudt:numericValue ?z }",
}
REASONING = "Q8"
"""The query with reasoning: it is Q7 over a stream that says of each value which of the subclasses of a kind it has."""
KINDS = ("flow", "temperature", "chlorine")
SUBCLASSES = 2
"""How many subclasses each kind has in the schema."""
STREAMS = {"stable": ("chlorine", "chlorine", "chlorine"), "unstable": KINDS}
"""The kind that is rare in each phase."""
SENSORS, VALUES = 20, 8
"""The sensors, and the values of a kind that is not rare of each in a window."""
WINDOW_MS, BATCH = 10_000, 512
STRIDER_PER_CORE = 1_000_000 / 24
"""Triples per second and virtual core, as the authors of Strider report for their cluster."""


def compiled(query: str) -> System:
    """Returns the system of a query, as a program of Strider."""
    reasoning, schema = ("REASONING [U]", schema_triples()) if query == REASONING else ("", ())
    block = f"REGISTER {{ QUERYID [{query}] {reasoning} SPARQL [ {PREFIXES} {QUERIES[query]} ] }}"
    text = f"STREAMING {{ WINDOW [10 Seconds] SLIDE [10 Seconds] }}\n{block}"
    return squall.compile(text, lexer="strider", schema=schema)


def schema_triples() -> tuple[Triple, ...]:
    """Returns the schema of `REASONING`: the subclasses of each kind of value."""
    return tuple(
        Triple(iri(f"{WATER}{kind}-{number}"), SUBCLASS, iri(WATER + kind))
        for kind in KINDS for number in range(SUBCLASSES)
    )  # fmt: skip


def events_of(phases: Sequence[str], windows: int, subclasses: bool = False) -> list[Event]:
    """Returns the events of phases, each of so many windows, one for each observation and one for each value.

    Args:
        phases: The kind that is rare in each phase.
        windows: The windows of each phase.
        subclasses: Whether a value has a subclass of its kind, and not the kind itself.
    """
    draw = Random(7)
    events: list[Event] = []
    for window in range(windows * len(phases)):
        rare = phases[window // windows]
        for sensor in range(SENSORS):
            observation = iri(f"urn:o{window}-{sensor}")
            output, producer = iri(f"{SSN}SensorOutput"), iri(f"urn:s{sensor}")
            head = (
                Triple(observation, iri(RDF + "type"), output), Triple(observation, iri(f"{SSN}isProducedBy"), producer)
            )  # fmt: skip
            events.append(Event(window * WINDOW_MS + draw.randrange(WINDOW_MS), head))
            for name in KINDS:
                count = VALUES if name != rare else int(sensor % 10 == 0)
                for number in range(count):
                    value = iri(f"urn:v{window}-{sensor}-{name}-{number}")
                    at = window * WINDOW_MS + draw.randrange(WINDOW_MS)
                    kind = f"{name}-{number % SUBCLASSES}" if subclasses else name
                    events.append(
                        Event(at, (Triple(observation, iri(f"{SSN}hasValue"), value), *_value(draw, value, kind, at)))
                    )
    return sorted(events, key=lambda event: event.time)


def _value(draw: Random, value: Term, kind: str, at: int) -> tuple[Triple, ...]:
    number = literal(f"{draw.random() * 50:.1f}", XSD + "double")
    return (
        Triple(value, iri(RDF + "type"), iri(WATER + kind)),
        Triple(value, iri(f"{SSN}startTime"), literal(str(at), XSD + "long")),
        Triple(value, iri(f"{QUDT}unit"), iri("urn:unit")),
        Triple(value, iri(f"{QUDT}numericValue"), number),
    )


@dataclass
class Run:
    """A run: its CPU seconds in each window, the triples of each, its outputs, and how often its plan has changed."""

    seconds: list[float]
    triples: list[int]
    outputs: int = 0
    changes: int = 0

    @property
    def rates(self) -> list[float]:
        """Triples per CPU second in each window."""
        return [count / max(spent, 1e-6) for count, spent in zip(self.triples, self.seconds, strict=True)]


def run(query: str, events: Sequence[Event], windows: int, adapt: bool) -> Run:
    """Runs a query. A batch ends with its window, so that each belongs to one."""
    system = compiled(query)
    result = Run([0.0] * windows, [0] * windows)
    last = 0.0

    def measured(batch: BatchMetrics) -> None:
        nonlocal last
        assert batch.events is not None
        window, now = batch.events[0].time // WINDOW_MS, time.process_time()
        result.seconds[window] += now - last
        result.triples[window] += batch.statements
        last = now

    replanning = Replanning() if adapt else None
    job = IteratorJob(squall.plan(system, replaceable=adapt), Options(replan=replanning, on_batch=measured))
    last = time.process_time()
    result.outputs = sum(1 for _ in job.run(batches(events)))
    result.changes = len(job.plan_changes)
    return result


def batches(events: Sequence[Event]) -> list[list[Event]]:
    """Returns the events in batches, none of which crosses the end of a window."""
    by_window: dict[int, list[Event]] = {}
    for event in events:
        by_window.setdefault(event.time // WINDOW_MS, []).append(event)
    parts = (iter(window) for window in by_window.values())
    return [batch for part in parts for batch in iter(lambda part=part: list(islice(part, BATCH)), [])]  # type: ignore[misc]


def compare(query: str, name: str, windows: int, repeat: int) -> dict[bool, Run]:
    """Returns a run without and one with replaced plans: of each window the median of several."""
    phases = STREAMS[name]
    events = events_of(phases, windows, subclasses=query == REASONING)
    runs: dict[bool, list[Run]] = {False: [], True: []}
    for _ in range(repeat):
        for adapt, measured in runs.items():
            measured.append(run(query, events, windows * len(phases), adapt))
    assert runs[True][0].outputs == runs[False][0].outputs
    return {adapt: _median(measured) for adapt, measured in runs.items()}


def _median(runs: Sequence[Run]) -> Run:
    seconds = [median(spent) for spent in zip(*(item.seconds for item in runs), strict=True)]
    return Run(seconds, runs[0].triples, runs[0].outputs, runs[0].changes)


def main(given: Sequence[str] | None = None) -> None:
    """Measures all queries over both streams, prints the table, and plots the throughput of the unstable stream."""
    parser = argparse.ArgumentParser("python -m tests.bench.waves", description="Measures Strider's queries.")
    parser.add_argument("--windows", type=int, default=10, help="the windows of each of three phases (10)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--query", action="append", choices=QUERIES, help="only these queries")
    parser.add_argument("--plot", type=Path, help="write the plot there")
    request = parser.parse_args(given)
    print("| query | stream | triples | plan stays | replaced | ratio | changes | of Strider's per core | outputs |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    lines: dict[str, dict[str, list[float]]] = {}
    for query in request.query or QUERIES:
        for name in STREAMS:
            runs = compare(query, name, request.windows, request.repeat)
            stays, replaced = (sum(item.triples) / sum(item.seconds) for item in (runs[False], runs[True]))
            print(
                f"| {query} | {name} | {sum(runs[False].triples):,} | {stays:,.0f} | {replaced:,.0f} "
                f"| {replaced / stays:.2f} | {runs[True].changes} | {replaced / STRIDER_PER_CORE:.2f} "
                f"| {runs[False].outputs:,} |",
                flush=True,
            )
            if name == "unstable":
                lines[query] = {"the plan stays": runs[False].rates, "the plan is replaced": runs[True].rates}
    if request.plot:
        from tests.bench import plots

        plots.over_windows(lines, "triples per second of CPU", request.windows, request.plot)


if __name__ == "__main__":
    main()
