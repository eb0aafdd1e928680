"""The work of continuous queries depends on changes, not on window sizes, and their state is bounded by the window.

Work is counted, in bytecode instructions, so that neither the machine nor its load matters.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
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


def work(query: str, window: int, planner: str) -> float:
    """Returns the number of instructions for an event once a window is full."""
    counter = Counter()
    begun = 0

    def batches() -> Iterator[list[Event]]:
        nonlocal begun
        for place, batch in enumerate(stream(2 * WIDE, window)):
            if place == WIDE:
                begun = counter.count
            yield batch

    running = job(query, window, planner)
    with counter:
        for _ in running.run(batches()):
            pass
    return (counter.count - begun) / WIDE


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.more
def test_the_work_for_an_event_does_not_grow_with_the_window(query: str, planner: str) -> None:
    assert work(query, WIDE, planner) < 1.5 * work(query, NARROW, planner)


@pytest.mark.more
def test_work_that_grows_with_the_window_is_seen() -> None:
    query = "SELECT (GROUP_CONCAT(?v) AS ?all) { ?x :v ?v }"
    assert work(query, WIDE, "greedy") > 1.5 * work(query, NARROW, "greedy")


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
