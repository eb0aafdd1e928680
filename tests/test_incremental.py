"""The work of continuous queries depends on changes, not on window sizes, and their state is bounded by the window.

Work is counted, in bytecode instructions, so that neither the machine nor its load matters.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import pytest

import squall
from squall.builders.local.job import IteratorJob, build
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.contracts import Options
from squall.model.windows import SlidingWindow
from squall.rdf import XSD, Event, Triple, iri, literal

QUERIES = {
    "average": "SELECT (AVG(?v) AS ?mean) (COUNT(DISTINCT ?v) AS ?values) { ?x :v ?v }",
    "least and most": "SELECT (MIN(?v) AS ?least) (MAX(?v) AS ?most) { ?x :v ?v }",
    "groups": "SELECT ?x (SUM(?v) AS ?sum) { ?x :v ?v } GROUP BY ?x HAVING (COUNT(*) < 2)",
    "optional": "SELECT ?x ?v ?w { ?x :v ?v OPTIONAL { ?x :w ?w FILTER (?w < ?v) } }",
    "not exists": "SELECT ?x ?v { ?x :v ?v FILTER NOT EXISTS { ?x :w ?w FILTER (?w < ?v) } }",
    "minus": "SELECT ?x ?v { ?x :v ?v MINUS { ?x :w ?w } }",
    "sub-query": "SELECT ?x ?count { ?x :w ?w { SELECT ?x (COUNT(?v) AS ?count) { ?x :v ?v } GROUP BY ?x } }",
    "distinct": "SELECT DISTINCT ?v { ?x :v ?v OPTIONAL { ?x :w ?w } }",
}
NARROW, WIDE = 16, 256


def stream(number: int, things: int) -> Iterator[list[Event]]:
    """Returns a stream with an event each millisecond. Each resource occurs again after as many events as there are
    resources."""
    for time in range(1, number + 1):
        predicate = iri("urn:w") if time % 5 == 0 else iri("urn:v")
        value = literal(str(time * 7919 % 1000), XSD + "integer")
        yield [Event(time, (Triple(iri(f"urn:x{time * 7 % things}"), predicate, value),), "")]


def job(query: str, window: int, planner: str) -> IteratorJob:
    system = squall.compile(f"PREFIX : <urn:>\n{query}", lexer="csparql", window=SlidingWindow(window))
    return build(squall.plan(system, planner), Options())


REFRESHED = {
    "active": ("jena", "[a: (?s :p ?o) -> (?o :is :On)] [s: (?o :is :On) (?s :p ?o) -> (?s :is :Seen)]"),
    "two patterns": ("jena", "[q: (?a :p ?k) (?b :q ?k) -> (?a :r ?b)]"),
    "three patterns": ("jena", "[q: (?a :p ?k) (?b :q ?k) (?k :q ?c) -> (?a :r ?b)]"),
    "recursion": ("jena", "[p: (?s :p ?o) -> (?o :t ?s)] [q: (?a :t ?b) (?c :t ?b) (?b :q ?d) -> (?a :t ?d)]"),
    "negation": (
        "jena",
        "[a: (?s :p ?o) noValue(?s :q ?s) -> (?o :is :On)] [q: (?o :is :On) (?s :p ?o) -> (?s :x ?o)]",
    ),
    "negation of what is negated": (
        "jena",
        "[a: (?s :p ?o) noValue(?s :q ?s) -> (?o :is :On)] [q: (?s :p ?o) noValue(?o :is :On) -> (?s :is :Off)]",
    ),
    "rule with the time": ("jena", "[a: (?s :p ?o) now(?t) -> (?o :is :On)]"),
    "set in a query": ("sparql", "SELECT ?s ?o { ?s :p ?o { SELECT DISTINCT ?o { ?x :p ?o } } }"),
    "bag with the time": ("sparql", "SELECT ?o ?t { { SELECT ?o { ?s :p ?o } } BIND(NOW() AS ?t) }"),
    "set after negation": ("sparql", "SELECT DISTINCT ?o { ?s :p ?o FILTER NOT EXISTS { ?s :q ?s } }"),
    "optional": ("sparql", "SELECT ?s ?z { ?s :p ?o OPTIONAL { ?o :q ?z } }"),
    "path": ("sparql", "SELECT ?s ?o { ?s :p+ ?o }"),
}
"""Programs by the language in which they are, over facts of which some hold again and again."""


def refreshed(kind: str, number: int) -> list[Event]:
    """Returns an event each millisecond, with facts that are the same again and again, or about one object."""
    other = Triple(iri("urn:o"), iri("urn:q"), iri("urn:o"))
    subjects = [iri("urn:s" if kind == "one fact" else f"urn:s{time}") for time in range(number)]
    facts = [Triple(subject, iri("urn:p"), iri("urn:o")) for subject in subjects]
    return [Event(time, (fact, other), "") for time, fact in enumerate(facts, 1)]


def refreshed_job(program: str, window: str, measure: bool = False) -> IteratorJob:
    language, text = REFRESHED[program]
    prefix = "@prefix : <urn:>.\n" if language == "jena" else "PREFIX : <urn:>\n"
    return build(squall.plan(squall.compile(prefix + text, lexer=language, window=window)), Options(measure=measure))


class Counter:
    """Counts the bytecode instructions that are executed while it stands."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Counter:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.count += event == "opcode"
        return self._trace


def work(running: IteratorJob, batches: Iterable[list[Event]]) -> float:
    """Returns the number of instructions for an event, from the `WIDE`-th event on."""
    counter = Counter()
    begun = events = 0

    def counted() -> Iterator[list[Event]]:
        nonlocal begun, events
        for batch in batches:
            if events == WIDE:
                begun = counter.count
            events += 1
            yield batch

    with counter:
        for _ in running.run(counted()):
            pass
    return (counter.count - begun) / (events - WIDE)


def rows(running: IteratorJob, batches: Iterable[list[Event]]) -> int:
    """Returns the number of rows that all nodes made."""
    for _ in running.run(batches):
        pass
    return sum(figures.rows or 0 for figures in running.node_metrics().values())


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.more
def test_the_work_for_an_event_does_not_grow_with_the_window(query: str, planner: str) -> None:
    narrow, wide = (work(job(query, size, planner), stream(2 * WIDE, size)) for size in (NARROW, WIDE))
    assert wide < 1.5 * narrow


@pytest.mark.more
@pytest.mark.parametrize("step", ["", " STEP 8ms"], ids=["sliding", "stepped"])
@pytest.mark.parametrize("kind", ["one fact", "one object"])
@pytest.mark.parametrize("program", REFRESHED)
def test_the_work_for_a_fact_that_is_refreshed_does_not_grow(program: str, kind: str, step: str) -> None:
    batches = [[event] for event in refreshed(kind, 2 * WIDE)]
    narrow, wide = (work(refreshed_job(program, f"RANGE {size}ms{step}"), batches) for size in (NARROW, WIDE))
    assert wide < 1.5 * narrow


@pytest.mark.fault("W3")
@pytest.mark.parametrize("step", ["", " STEP 100ms"], ids=["sliding", "stepped"])
@pytest.mark.parametrize("kind", ["one fact", "one object"])
@pytest.mark.parametrize("program", REFRESHED)
@pytest.mark.sampled(12)
def test_the_rows_of_facts_that_are_refreshed_grow_linearly(program: str, kind: str, step: str) -> None:
    """A window of 5 s is never full, so that work that grows with its content would grow with the square of time."""
    few, many = (
        rows(refreshed_job(program, f"RANGE 5s{step}", measure=True), [[event] for event in refreshed(kind, number)])
        for number in (100, 400)
    )
    assert many < 4.4 * few


@pytest.mark.more
def test_work_that_grows_with_the_window_is_seen() -> None:
    query = "SELECT (GROUP_CONCAT(?v) AS ?all) { ?x :v ?v }"
    narrow, wide = (work(job(query, size, "greedy"), stream(2 * WIDE, size)) for size in (NARROW, WIDE))
    assert wide > 1.5 * narrow


@pytest.mark.sampled(4)
@pytest.mark.parametrize("planner", ["greedy", "rete"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_state_is_bounded_by_the_window(query: str, planner: str) -> None:
    running = job(query, NARROW, planner)
    most = 0

    def batches() -> Iterator[list[Event]]:
        nonlocal most
        for batch in stream(12 * DEFAULT_TUNING.min_rows_to_sweep, NARROW):
            most = max(most, *(figures.state or 0 for figures in running.node_metrics().values()))
            yield batch

    for _ in running.run(batches()):
        pass
    assert NARROW / 2 <= most < 3 * DEFAULT_TUNING.min_rows_to_sweep
