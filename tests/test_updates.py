"""Updates as standing rules: when they act, on which facts, in which order, and that they terminate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import squall
from squall.builders.runtime.operators.update import GraphUpdate, UpdateOperator
from squall.builders.runtime.zset import Delta
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.model import (
    Construct,
    Delete,
    Insert,
    NotExists,
    Pattern,
    Select,
    Slot,
    Source,
    System,
    Variable,
    with_windows,
)
from squall.model.windows import LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, WORKING, Event, Triple, iri
from squall.testing import assert_as_oracle, oracle, static, stream
from squall.testing.strategies import NODES, event_streams
from squall.testing.streams import show
from tests.laws import examples_of
from tests.snapshots import INSTANTS, ONE, A, Advance, B, Bag, C, at, courses, delta_lists

TIMES = (ALWAYS, *range(2 * len(INSTANTS)))
X, Y, Z = map(Variable, "xyz")
PLANNERS = ("greedy", "rete")


# What a row demands


def begun(taken: Sequence[Delta], now: int) -> Counter[int]:
    """Returns the times when rows begin to be valid, up to a time."""
    results: Counter[int] = Counter()
    before: Bag = Counter()
    for time in [time for time in TIMES if time <= now]:
        rows = at(taken, time)
        results.update(time for row in rows if rows[row] > 0 >= before[row])
        before = rows
    return results


@given(course=courses(2, (A, B, None), always=True))
@settings(max_examples=examples_of(30), deadline=None)
def test_each_row_that_begins_demands_something(course: list[Advance]) -> None:
    """Rows are distinguished by all their columns, whichever of them the template has."""
    op = UpdateOperator(ops.Update(((None, A, B, C),), rules=("r",)))
    deltas: list[Delta] = []
    arrivals: Counter[object] = Counter()
    for step in course:
        op.apply(0, step.batch)
        deltas += step.batch
        arrivals.update(time for time, _ in op.pop_graph_updates(step.now))
        assert arrivals == begun(deltas, step.now)
    assert op.size() == 0
    assert op.next_time == FOREVER


@given(batch=delta_lists(1, (1,)))
def test_the_steps_of_time_make_no_difference(batch: list[Delta]) -> None:
    once, often = (UpdateOperator(ops.Update(((None, 0, B, C),))) for _ in range(2))
    once.apply(0, batch)
    often.apply(0, batch)
    assert once.pop_graph_updates(max(TIMES)) == [
        results for time in TIMES for results in often.pop_graph_updates(time)
    ]


@pytest.mark.parametrize(
    ("quad", "expected"),
    [
        ((None, A, B, 0), (None, Triple(A, B, C))),
        ((1, A, B, 0), ("urn:a", Triple(A, B, C))),
        ((C, 1, 1, 2), ("urn:c", Triple(A, A, ONE))),
        ((2, A, B, C), None),
        ((3, A, B, C), None),
        ((None, A, B, 3), None),
        ((None, 2, B, C), None),
        ((None, A, 2, C), None),
    ],
)
def test_updates_need_rdf_terms_and_an_iri_as_graph(quad: ops.Quad, expected: tuple[str | None, Triple] | None) -> None:
    op = UpdateOperator(ops.Update((quad,), (quad,)))
    op.apply(0, [(C, A, ONE, None, 3, FOREVER, 1)])
    results = [(time, *demand) for time, demand in op.pop_graph_updates(5)]
    if expected is None:
        assert results == []
    else:
        stream, fact = expected
        assert results == [(3, False, stream, fact), (3, True, stream or WORKING, fact)]


def test_inserts_of_axioms_are_initial_and_not_demanded() -> None:
    op = UpdateOperator(ops.Update(((None, B, B, B),), ((None, A, B, C),), initial=True))
    op.apply(0, [(ALWAYS, FOREVER, 1)])
    assert op.initial == [GraphUpdate(True, WORKING, Triple(A, B, C))]
    assert op.pop_graph_updates(ALWAYS) == [(ALWAYS, GraphUpdate(False, None, Triple(B, B, B)))]


# Rules that feed each other

PREFIX = "PREFIX : <http://example.org/>\n"


def outputs(text: str, events: str, facts: str = "", *, steps: int = 10_000) -> list[str]:
    """Returns the outputs line by line, equal for both planners, for any batches, and for the oracle."""
    system = squall.compile(PREFIX + text, lexer="sparql")
    given_events, given_facts = stream(events), static(facts)
    for planner in PLANNERS:
        for batches in ([given_events], [[event] for event in given_events]):
            job = squall.build(squall.plan(system, planner), "iterator", Options(max_update_steps=steps))
            arrivals = list(job.run(batches, given_facts))
            assert_as_oracle(system, arrivals, given_events, given_facts)
    printed = (show(out.time, out.fact) for out in arrivals)
    return sorted((re.sub(r'"(\d+)"\^\^\S+integer>', r"\1", line) for line in printed), key=_time)


def _time(line: str) -> tuple[int, str]:
    time = line.partition(" ")[0]
    return (-1 if time == "always" else int(time)), line


COUNTER = """
INSERT DATA { GRAPH :memory { :count :is 0 } } ;
DELETE { ?e a :Event . GRAPH :memory { :count :is ?n } } INSERT { GRAPH :memory { :count :is ?m } }
WHERE { ?e a :Event . GRAPH :memory { :count :is ?n } BIND (?n + 1 AS ?m) } ;
SELECT ?n { GRAPH :memory { :count :is ?n } }"""


def test_a_counter() -> None:
    """Events of one instant are one step: the count is read by all of its solutions before it is written."""
    arrivals = "1000 :a a :Event\n2000 :b a :Event\n3000 :c a :Event\n3000 :d a :Event\n4000 :a a :Event"
    counts = [line for line in outputs(COUNTER, arrivals) if "?n" in line]
    assert counts == ["always ?n=0", "1001 ?n=1", "2001 ?n=2", "3001 ?n=3", "4001 ?n=4"]


def test_a_state_machine() -> None:
    """The state machine is a door: its next state depends on its current state, and not on the past."""
    machine = """
    INSERT DATA { :door :state :closed . :closed :open :opened . :opened :close :closed . :closed :lock :locked .
      :locked :unlock :closed } ;
    DELETE { :door :state ?s } INSERT { :door :state ?t } WHERE { :door :do ?do ; :state ?s . ?s ?do ?t } ;
    DELETE WHERE { :door :do ?do } ;
    SELECT ?s { :door :state ?s }"""
    events = "10 :door :do :open\n20 :door :do :lock\n30 :door :do :close\n40 :door :do :lock\n50 :door :do :open"
    results = outputs(machine, events)
    assert [line for line in results if "?s" in line] == [
        "always ?s=:closed", "11 ?s=:opened", "31 ?s=:closed", "41 ?s=:locked",
    ]  # fmt: skip


@pytest.mark.fault("S2")
@pytest.mark.parametrize("graph", [":log", "?g"])
def test_a_log_in_a_named_graph_does_not_set_itself_off(graph: str) -> None:
    """S2 of the reported faults: the default graph had what was inserted into named graphs."""
    log = "INSERT { GRAPH :log { [] :saw ?x } } WHERE { ?who :saw ?x } ;"
    queries = f"SELECT ?x {{ GRAPH {graph} {{ ?anybody :saw ?x }} }} ; SELECT ?who {{ ?who :saw ?x }}"
    results = outputs(log + queries, "1000 :a :saw :b\n2000 :c :saw :d")
    assert [line for line in results if "?" in line] == [
        "1000 ?who=:a", "1001 ?x=:b", "2000 ?who=:c", "2001 ?x=:d",
    ]  # fmt: skip


def test_one_event_an_hour() -> None:
    """The first event of each hour is passed on, and its hour is stored (EPA2 of INSTANS)."""
    once = """
    INSERT { :memory :hour ?hour } WHERE { ?event :at ?time BIND (HOURS(?time) AS ?hour)
      FILTER NOT EXISTS { :memory :hour ?any } } ;
    DELETE { :memory :hour ?old } INSERT { :memory :hour ?hour . ?event :passed ?hour }
    WHERE { ?event :at ?time . :memory :hour ?old BIND (HOURS(?time) AS ?hour) FILTER (?hour != ?old) } ;
    DELETE WHERE { ?event :at ?time }"""
    day = "2026-01-01T{}:00Z"
    arrivals = enumerate(("09:10", "09:50", "10:05", "10:06", "12:00"), 1)
    events = "\n".join(f'{1000 * n} :e{n} :at "{day.format(at)}"^^xsd:dateTime' for n, at in arrivals)
    assert [line for line in outputs(once, events) if "passed" in line] == [
        "3001 :e3 :passed 10", "5001 :e5 :passed 12",
    ]  # fmt: skip


def test_a_missing_event() -> None:
    """An event that is sent and not delivered by its deadline is reported as missing, once."""
    expected = """
    INSERT { ?parcel :state :sent } WHERE { ?parcel :sentBy ?who } ;
    DELETE { ?parcel :state :sent } INSERT { ?parcel :state :delivered }
    WHERE { ?parcel :takenBy ?who ; :state :sent } ;
    DELETE { ?parcel :state :sent } INSERT { ?parcel :state :missing }
    WHERE { :clock :strikes ?hour . ?parcel :due ?hour ; :state :sent FILTER NOT EXISTS { ?parcel :takenBy ?who } }"""
    facts = ":a :due 5. :b :due 5. :c :due 5"
    events = "10 :a :sentBy :x\n20 :b :sentBy :x\n30 :a :takenBy :y\n50 :clock :strikes 5\n60 :b :takenBy :y"
    results = outputs(expected, events, facts.replace(". ", "\n"))
    assert results == ["11 :a :state :sent", "21 :b :state :sent", "31 :a :state :delivered", "51 :b :state :missing"]


def test_updates_over_static_data_alone_are_answered_at_once() -> None:
    path = """
    INSERT { ?x :reaches ?y } WHERE { ?x :edge ?y } ;
    INSERT { ?x :reaches ?z } WHERE { ?x :reaches ?y . ?y :edge ?z } ;
    DELETE { ?x :wanted ?y } WHERE { ?x :wanted ?y ; :reaches ?y } ;
    SELECT (COUNT(*) AS ?n) { ?x :wanted ?y }"""
    results = outputs(path, "5 :c :edge :d", ":a :edge :b\n:b :edge :c\n:a :wanted :c\n:b :wanted :d")
    assert results == [
        "always :a :reaches :b", "always :a :reaches :c", "always :b :reaches :c", "always ?n=1",
        "6 :a :reaches :d", "6 :b :reaches :d", "6 :c :reaches :d", "7 ?n=0",
    ]  # fmt: skip


# What does not come to rest

GROWS = "INSERT { ?s :n ?m } WHERE { ?s :n ?k BIND (?k + 1 AS ?m) }"


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("events", "facts"),
    [("", ":a :n 1"), ("5 :a :n 1", ""), ("5 :a :n 1\n1000000 :b :p :c", ""), ("5 :a :n 1\n9 :b :p :c\n", "")],
)
def test_a_program_that_does_not_terminate_is_an_error(planner: str, events: str, facts: str) -> None:
    """It is an error over static data, at the end of the input, and between two events."""
    plan = squall.plan(squall.compile(PREFIX + GROWS, lexer="sparql"), planner)
    job = squall.build(plan, "iterator", Options(max_update_steps=30))
    with pytest.raises(
        BuilderError, match="after 30 steps without an event there is still something to do for `update`"
    ):
        list(job.run([stream(events)], static(facts)))


def test_events_allow_more_steps() -> None:
    plan = squall.plan(squall.compile(PREFIX + GROWS, lexer="sparql"))
    run = squall.build(plan, "iterator", Options(max_update_steps=12)).run(
        [stream("5 :a :n 1\n15 :b :p :c\n25 :b :p :d")]
    )
    arrivals: list[Output] = []
    with pytest.raises(BuilderError):
        arrivals.extend(run)
    assert max(out.time for out in arrivals) == 25 + 11


# Against the oracle, whatever is inserted and deleted

_P, _Q = (iri(f"http://example.org/{name}") for name in "pq")
_SLOTS: st.SearchStrategy[Slot] = st.sampled_from((X, X, Y, Y, *NODES[:2]))


def _patterns(slots: st.SearchStrategy[Slot] = _SLOTS) -> st.SearchStrategy[Pattern]:
    return st.builds(Pattern, slots, st.sampled_from((_P, _Q)), slots)


@st.composite
def _updates(draw: st.DrawFn, name: str) -> System:
    """Draws an update with one or two patterns, perhaps one of them negated, and templates in graphs or in none."""
    body = draw(st.lists(_patterns(), min_size=0, max_size=2))
    existing = [slot for pattern in body for slot in pattern.slots if isinstance(slot, Variable)]
    bound: st.SearchStrategy[Slot] = st.sampled_from((*existing, *existing, *NODES[:2]))
    graphs: st.SearchStrategy[Slot | None] = st.sampled_from((None, None, NODES[0], *existing[:1]))
    kinds: list[type[Insert | Delete]] = draw(st.lists(st.sampled_from((Insert, Delete)), min_size=1, max_size=2))
    results: list[Insert | Delete] = [kind((draw(_patterns(bound)),), draw(graphs)) for kind in kinds]
    without = (NotExists((draw(_patterns()),)),) if draw(st.booleans()) else ()
    sources = draw(st.sampled_from(((Source(),), (Source(),), (Source("http://example.org/a"),))))
    return System(name, sources, tuple(body), without, consequences=tuple(results))


@st.composite
def _programs(draw: st.DrawFn) -> System:
    several = [draw(_updates(f"u{number}")) for number in range(draw(st.integers(1, 3)))]
    derived = System(
        "d", (Source(),), (Pattern(X, _P, Y), Pattern(Y, _P, Z)), consequences=(Construct((Pattern(X, _P, Z),)),)
    )
    system = System("q", (Source(),), (Pattern(X, _Q, Y),), consequences=(Select((X, Y)),), reentrant=False)
    more = draw(st.sampled_from(((), (derived,), (system,), (derived, system))))
    windows: tuple[Window, ...] = (LANDMARK, SlidingWindow(3), HoppingWindow(4, 2), CountWindow(2))
    window = draw(st.sampled_from(windows))
    return replace(
        with_windows(System(subsystems=(*several, *more)), window),
        output=draw(st.sampled_from(("istream", "dstream", "rstream"))),
    )


FEATURES = frozenset({"landmark", "axioms"})


@given(_programs(), event_streams(features=FEATURES), st.sampled_from(PLANNERS), st.sets(st.integers(0, 8)))
@settings(max_examples=examples_of(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_updates_agree_with_the_oracle(system: System, events: list[Event], planner: str, cuts: set[int]) -> None:
    """Programs that terminate do so with the same answers, and the others are an error for both."""
    bounds = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    batches = [events[start:end] for start, end in pairwise(bounds)]
    job = squall.build(squall.plan(system, planner), "iterator", Options(max_update_steps=oracle.STEPS))
    try:
        arrivals = list(job.run(batches))
    except BuilderError:
        with pytest.raises(BuilderError, match="steps without an event"):
            oracle.outputs(system, events)
    else:
        assert_as_oracle(system, arrivals, events)
