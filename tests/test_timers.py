"""Timers as data: facts in the graph of timers that fire when time has reached them, unless they are deleted."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from queue import Queue
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import squall
from squall.builders.distributed.io.records import DeadLetter
from squall.contracts import Options, Output
from squall.errors import BuilderError, TranslatorError
from squall.functions.timers import AFTER, AT, FIRED, TIMERS, due_time, fired
from squall.functions.values import date_time
from squall.model import (
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
from squall.model.windows import LANDMARK, HoppingWindow, SlidingWindow, Window
from squall.rdf import XSD, Event, Term, Triple, iri, literal
from squall.streams import Sources
from squall.streams.clock import WallClock
from squall.streams.dead_letters import DeadLetterFile
from squall.testing import assert_as_oracle, oracle, static, stream
from squall.testing.streams import show
from tests import in_memory
from tests.laws import PLANNERS, examples_of
from tests.test_resume import Moving
from tests.test_time import Scripted

PREFIX = """PREFIX : <http://example.org/>
PREFIX timer: <urn:x-squall:timer:>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
LATE = """
INSERT { GRAPH <urn:x-squall:timers> { ?o timer:after ?d } } WHERE { ?o :within ?d } ;
DELETE { GRAPH <urn:x-squall:timers> { ?o timer:after ?d } }
WHERE { ?o :is :Paid . GRAPH <urn:x-squall:timers> { ?o timer:after ?d } } ;
INSERT { ?o :is :Late } WHERE { GRAPH <urn:x-squall:timers> { ?o timer:fired true } }"""
ORDERS = """1200 :o1 :within "PT5S"^^xsd:dayTimeDuration
2300 :o2 :within "PT2S"^^xsd:dayTimeDuration
4000 :o1 :is :Paid"""


def outputs(text: str, events: str, facts: str = "", *, steps: int = 10_000, output: str = "istream") -> list[str]:
    """Returns the outputs line by line, equal for both planners, for any batches, and for the oracle."""
    system = squall.compile(PREFIX + text, lexer="sparql", output=output)
    given_events, given_facts = stream(events), static(facts)
    for planner in PLANNERS:
        for batches in ([given_events], [[event] for event in given_events]):
            job = squall.build(squall.plan(system, planner), "iterator", Options(max_update_steps=steps))
            arrivals = list(job.run(batches, given_facts))
            assert_as_oracle(system, arrivals, given_events, given_facts)
    return printed(arrivals)


def printed(arrivals: Sequence[Output]) -> list[str]:
    lines = (show(out.time, out.fact) for out in sorted(arrivals, key=lambda out: out.time))
    lines = (re.sub(r"<urn:x-squall:timer:(\w+)>", r"timer:\1", line) for line in lines)
    return [re.sub(r'"true"\^\^\S+', "true", line) for line in lines]


def test_an_order_that_is_not_paid_in_time_is_late() -> None:
    """The worked case: the duration counts from the instant at which the update acted."""
    lines = outputs(LATE, ORDERS)
    assert [line for line in lines if "timer:fired" in line] == ["4300 :o2 timer:fired true"]
    assert [line for line in lines if ":Late" in line] == ["4301 :o2 :is :Late"]


def at(milliseconds: int) -> str:
    return str(date_time(milliseconds))


SET_AT = "INSERT { GRAPH <urn:x-squall:timers> { ?o timer:at ?d } } WHERE { ?o :due ?d } ;"


def test_timers_fire_in_order_also_behind_the_end() -> None:
    """A time that has passed fires at once, and one between two milliseconds at the later one."""
    events = f"""1000 :a :due {at(2000)}
        1000 :b :due {at(1500)}
        1000 :c :due {at(90)}
        1000 :d :due "1970-01-01T00:00:01.5001Z"^^xsd:dateTime
        1000 :e :due "1970-01-01T01:00:09+01:00"^^xsd:dateTime
        1000 :f :due "1970-01-01T00:00:09"^^xsd:dateTime
        1700 :z :p :z"""
    lines = outputs(SET_AT, events)
    assert [line for line in lines if "fired" in line] == [
        "1001 :c timer:fired true", "1500 :b timer:fired true", "1501 :d timer:fired true", "2000 :a timer:fired true",
        "9000 :e timer:fired true", "9000 :f timer:fired true",
    ]  # fmt: skip
    assert "1001 :c timer:at" not in "".join(lines), "it fires when it is set"


def test_a_deletion_cancels_until_the_instant_before() -> None:
    """What is deleted with effect at the time of a timer comes before it."""
    cancel = SET_AT + """DELETE WHERE { ?o :cancel ?x . GRAPH <urn:x-squall:timers> { ?o timer:at ?d } }"""
    events = f"""1000 :a :due {at(2000)}
        1000 :b :due {at(2000)}
        1999 :a :cancel :x
        2000 :b :cancel :x"""
    lines = outputs(cancel, events, output="changes")
    assert [line for line in lines if "timer" in line and line.startswith("2")] == [
        f"2000 :a timer:at {at(2000)}", f"2000 :b timer:at {at(2000)}", "2000 :b timer:fired true",
    ]  # fmt: skip


def test_a_timer_that_is_set_anew_counts_from_then() -> None:
    """A graph is a set: without the deletion, what is there already does not change."""
    restart = """
    DELETE { GRAPH <urn:x-squall:timers> { :t timer:after "PT2S"^^xsd:duration } }
    INSERT { GRAPH <urn:x-squall:timers> { :t timer:after "PT2S"^^xsd:duration } } WHERE { ?x :restarts :t } ;
    INSERT { GRAPH <urn:x-squall:timers> { :t timer:after "PT2S"^^xsd:duration } } WHERE { ?x :starts :t }"""
    events = "1000 :a :starts :t\n2000 :b :starts :t\n2500 :c :restarts :t\n2600 :d :starts :t"
    assert [line for line in outputs(restart, events) if "fired" in line] == ["4500 :t timer:fired true"]


def test_a_timer_may_set_itself_while_events_come() -> None:
    """It is a clock. Behind the last event nothing would end it, so that it is an error there."""
    clock = """
    INSERT { GRAPH <urn:x-squall:timers> { :t timer:after "PT1S"^^xsd:duration } } WHERE { ?x :starts :t } ;
    DELETE { GRAPH <urn:x-squall:timers> { :t timer:fired true } }
    INSERT { GRAPH <urn:x-squall:timers> { :t timer:after "PT1S"^^xsd:duration } }
    WHERE { GRAPH <urn:x-squall:timers> { :t timer:fired true } FILTER NOT EXISTS { ?x :stops :t } }"""
    events = "500 :a :starts :t\n50500 :a :stops :t"
    lines = outputs(clock, events, steps=20)
    assert [line for line in lines if "fired" in line] == [
        f"{time} :t timer:fired true" for time in range(1500, 51_000, 1000)
    ]
    with pytest.raises(BuilderError, match="steps without an event"):
        outputs(clock, events.splitlines()[0], steps=20)


@pytest.mark.parametrize("output", ["rstream", "istream"])
def test_a_timer_is_an_evaluation_instant(output: str) -> None:
    query = SET_AT + "SELECT (COUNT(*) AS ?n) { GRAPH <urn:x-squall:timers> { ?o timer:at ?t } }"
    lines = outputs(query, f"1000 :a :due {at(3000)}\n2000 :b :due {at(5000)}", output=output)
    counts = [re.sub(r'"(\d)".*', r"\1", line) for line in lines if "?n" in line]
    expected = ["always ?n=0", "1001 ?n=1", "2001 ?n=2", "3000 ?n=1", "5000 ?n=0"]
    assert sorted(counts) == sorted(expected)


def test_timers_of_static_data_count_from_the_time_of_static_data() -> None:
    facts = f':a :due {at(0)}\n:b :due {at(700)}\n:c :within "PT1S"^^xsd:duration'
    program = SET_AT + LATE
    lines = outputs(program, "600 :z :p :z", facts)
    assert [line for line in lines if "fired" in line] == [
        "always :a timer:fired true", "700 :b timer:fired true", "1000 :c timer:fired true",
    ]  # fmt: skip
    plan = squall.plan(squall.compile(PREFIX + program, lexer="sparql"))
    lines = printed(list(squall.run(plan, [], static=static(facts), options=Options(now=500))))
    assert [line for line in lines if "fired" in line] == ["always :a timer:fired true"], "no time passes"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"tomorrow"', '`"tomorrow"` is no xsd:dateTime'),
        (":a", "`<http://example.org/a>` is no xsd:dateTime"),
        ('"2026-01-01"^^xsd:date', '`"2026-01-01"^^<http://www.w3.org/2001/XMLSchema#date>` is no xsd:dateTime'),
        (
            '"999999999-01-01T00:00:00Z"^^xsd:dateTime',
            '`"999999999-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>` is beyond the times of a run',
        ),
    ],
)
def test_a_timer_that_is_no_date_is_a_dead_letter(value: str, reason: str) -> None:
    plan = squall.plan(squall.compile(PREFIX + SET_AT, lexer="sparql"))
    events = stream(f"1000 :x :due {value}\n1000 :y :due {at(2000)}")
    ledger = DeadLetterFile()
    lines = printed(list(squall.build(plan, options=Options(ledger=ledger)).run([events])))
    assert lines == [f"1001 :y timer:at {at(2000)}", "2000 :y timer:fired true"]
    assert ledger.counts == {("timer", TIMERS): 1}
    ((_, text),) = ledger.first.values()
    assert text == f"`update`: {reason}"
    with pytest.raises(BuilderError, match="`update` cannot set the timer"):
        list(squall.build(plan).run([events]))


def test_a_graph_that_only_the_data_name_sets_no_timer() -> None:
    """The plan would have to retract whatever any update inserts."""
    text = "INSERT { GRAPH ?g { ?o ?p ?d } } WHERE { ?o :in ?g ; :as ?p ; :due ?d }"
    plan = squall.plan(squall.compile(PREFIX + text, lexer="sparql"))
    ledger = DeadLetterFile()
    events = stream(f"1000 :x :due {at(3000)} ; :in <{TIMERS}> ; :as {AT}")
    assert list(squall.build(plan, options=Options(ledger=ledger)).run([events])) == []
    ((_, reason),) = ledger.first.values()
    assert "its template does not name the graph" in reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT { GRAPH <urn:x-squall:timers> { ?o timer:att ?d } }", "has <urn:x-squall:timer:att>, which no timer"),
        ("INSERT { GRAPH <urn:x-squall:timers> { ?o timer:at 5 } }", 'sets a timer that never fires: `"5"'),
        ('INSERT { GRAPH <urn:x-squall:timers> { ?o timer:after "5s" } }', 'never fires: `"5s"` is no duration'),
        ("INSERT { ?o timer:at ?d }", "sets a timer in another graph than <urn:x-squall:timers>"),
        ("INSERT { GRAPH :g { ?o timer:at ?d } }", "sets a timer in another graph than <urn:x-squall:timers>"),
        ("CONSTRUCT { ?o timer:after ?d }", "derives a timer, which only updates set"),
    ],
)
def test_a_timer_that_can_never_fire_is_refused(text: str, message: str) -> None:
    with pytest.raises(TranslatorError) as info:
        squall.compile(f"{PREFIX}{text} WHERE {{ ?o :due ?d }}", lexer="sparql")
    assert message in info.value.message
    assert info.value.origin is not None
    assert info.value.hint


def test_a_live_run_wakes_when_a_timer_fires() -> None:
    """Heartbeats do not come for days."""
    text = """INSERT { GRAPH <urn:x-squall:timers> { ?s timer:after "PT0.2S"^^xsd:duration } } WHERE { ?s ?p ?o }"""
    live, arrivals = Scripted(), Queue[Output]()
    sources = Sources([live], WallClock(), heartbeat=10**9)
    job = squall.build(squall.plan(squall.compile(PREFIX + text, lexer="sparql")))

    def run() -> None:
        for output in job.run(sources):
            arrivals.put(output)

    threading.Thread(target=run, daemon=True).start()
    live.say(1)
    begin, end = (arrivals.get(timeout=60) for _ in range(2))
    live.end()
    assert end.time == begin.time + 199, "the update acted the instant before"


@pytest.mark.parametrize(
    "builder",
    [
        "in memory",
        pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.more)),
        pytest.param("beam", marks=pytest.mark.beam),
    ],
)
def test_engines_agree_on_timers(builder: str) -> None:
    """A value that is no date is a dead letter there, too."""
    plan = squall.plan(squall.compile(PREFIX + SET_AT + LATE, lexer="sparql"))
    events = stream(f"{ORDERS}\n4100 :o3 :due 5\n4200 :o4 :due {at(4500)}\n9000 :z :p :z")
    ledger = DeadLetterFile()
    if builder == "in memory":
        letters: list[DeadLetter] = []
        arrivals = in_memory.run(plan, [[event] for event in events], dead_letters=letters)
        assert [(letter.cause, letter.source) for letter in letters] == [("timer", TIMERS)]
    else:
        arrivals = list(squall.build(plan, builder, Options(ledger=ledger)).run([events]))
        assert ledger.counts == {("timer", TIMERS): 1}
    expected = list(squall.build(plan, options=Options(ledger=DeadLetterFile())).run([events]))
    assert sorted(printed(arrivals)) == sorted(printed(expected))
    assert "4500 :o4 timer:fired true" in printed(expected)


# Against a simulation, for any cut into batches

_NAMES = [iri(f"http://example.org/{name}") for name in "abc"]
COMMANDS = """
INSERT { GRAPH <urn:x-squall:timers> { ?t timer:at ?when } } WHERE { ?t :setAt ?when } ;
DELETE { GRAPH <urn:x-squall:timers> { ?t timer:at ?when } } WHERE { ?t :cancelAt ?when } ;
INSERT { GRAPH <urn:x-squall:timers> { ?t timer:after ?length } } WHERE { ?t :setAfter ?length } ;
DELETE { GRAPH <urn:x-squall:timers> { ?t timer:after ?length } } WHERE { ?t :cancelAfter ?length } ;
DELETE { GRAPH <urn:x-squall:timers> { ?t timer:fired ?true } }
WHERE { GRAPH <urn:x-squall:timers> { ?t timer:fired ?true } }
"""


class Command(NamedTuple):
    """A command of a stream: it sets or cancels a timer for a time, or for a length of time (both integer ms)."""

    time: int
    name: Term
    action: str
    kind: str
    value: int


def simulated(commands: Sequence[Command]) -> list[tuple[int, Term]]:
    """Returns when which timers begin to have fired: one millisecond after another.

    That is deleted in the next one. If the timer fires again then, it continues, so that nothing acts on it.
    """
    # In one piece: the steps of an instant, in order.
    firings: list[tuple[int, Term]] = []
    timers = dict[tuple[Term, str, int], int]()
    marks, new_marks = set[Term](), set[Term]()
    for now in range(60):
        due_commands = [command for command in commands if command.time == now - 1]
        for command in sorted(due_commands, key=lambda command: command.action == "set"):
            if command.action == "cancel":
                timers.pop(command[1:2] + command[3:], None)
            else:
                start = command.time if command.kind == "After" else 0
                timers.setdefault(command[1:2] + command[3:], start + command.value)
        due_now = [timer for timer, due in timers.items() if due <= now]
        for timer in due_now:
            del timers[timer]
        before, marks = marks, (marks - new_marks) | {name for name, *_ in due_now}
        new_marks = marks - before
        firings += sorted((now, name) for name in new_marks)
    return firings


@st.composite
def _commands(draw: st.DrawFn) -> list[Command]:
    commands = draw(
        st.lists(
            st.builds(
                Command, st.integers(0, 20), st.sampled_from(_NAMES), st.sampled_from(["set", "set", "cancel"]),
                st.sampled_from(["At", "After"]), st.integers(0, 30),
            ),
            max_size=12,
            unique_by=lambda command: command[1:],  # an update acts once on what stays
        )
    )  # fmt: skip
    return sorted(commands)


def _events(commands: Sequence[Command]) -> list[Event]:
    return [
        Event(
            command.time,
            (Triple(command.name, iri(f"http://example.org/{command.action}{command.kind}"), _value(command)),),
        )
        for command in commands
    ]


def _verb(command: Command) -> Term:
    return iri(f"http://example.org/{command.action}{command.kind}")


def _value(command: Command) -> Term:
    if command.kind == "At":
        return date_time(command.value)
    return literal(f"PT{command.value / 1000:.3f}S", XSD + "duration")


@given(_commands(), st.sampled_from(PLANNERS), st.lists(st.integers(0, 12), max_size=4))
@settings(max_examples=examples_of(100), deadline=None)
def test_timers_fire_as_simulated(commands: list[Command], planner: str, cuts: list[int]) -> None:
    plan = squall.plan(squall.compile(PREFIX + COMMANDS, lexer="sparql"), planner)
    events = _events(commands)
    expected = simulated(commands)
    for batches in ([events], in_memory.cut(events, cuts)):
        assert _firings(list(squall.build(plan).run(batches))) == expected
    assert _firings(list(in_memory.run(plan, in_memory.cut(events, cuts)))) == expected
    moving = Moving(plan, bool(cuts)).outputs(in_memory.cut(events, cuts), ())
    assert _firings(list(moving)) == expected, "each batch is processed by another process"


def _firings(arrivals: Sequence[Output]) -> list[tuple[int, Term]]:
    facts = [(output.time, output.fact) for output in arrivals]
    return sorted((time, fact.subject) for time, fact in facts if isinstance(fact, Triple) and fact.predicate == FIRED)


# Against the oracle, whatever updates set and delete

_P, _Q = (iri(f"http://example.org/{name}") for name in "pq")
_X, _Y = Variable("x"), Variable("y")
_VALUES = (
    *map(date_time, (0, 4, 9, 15)), literal("tomorrow"), _NAMES[0],
    *(literal(f"PT{text}S", XSD + "duration") for text in ("0", "0.003", "0.008")),
)  # fmt: skip
_PREDICATES = (_P, _P, _Q, AT, AFTER, FIRED)


@st.composite
def _updates(draw: st.DrawFn, name: str) -> System:
    """Draws an update over facts and timers that sets and deletes facts and timers."""
    slots: st.SearchStrategy[Slot] = st.sampled_from((_X, _X, _Y, _NAMES[0]))
    bodies = st.builds(Pattern, slots, st.sampled_from(_PREDICATES), st.sampled_from((_Y, _Y, _X, *_VALUES[:2])))
    body = draw(st.lists(bodies, min_size=0, max_size=2))
    existing = [slot for pattern in body for slot in pattern.slots if isinstance(slot, Variable)]
    subjects: st.SearchStrategy[Slot] = st.sampled_from((*existing, *_NAMES[:2]))
    values: st.SearchStrategy[Slot] = st.sampled_from((*existing, *existing, *existing, *_VALUES))
    templates = st.builds(Pattern, subjects, st.sampled_from(_PREDICATES), values)
    kinds: list[type[Insert | Delete]] = draw(
        st.lists(st.sampled_from((Insert, Insert, Delete)), min_size=1, max_size=2)
    )
    changes = [_change(kind, draw(templates), draw(st.booleans())) for kind in kinds]
    without = (NotExists((draw(bodies),)),) if draw(st.booleans()) else ()
    return System(name, (Source(),), tuple(body), without, consequences=tuple(changes))


def _change(kind: type[Insert | Delete], template: Pattern, everywhere: bool) -> Insert | Delete:
    in_timers = template.predicate in (AT, AFTER, FIRED) and not (kind is Delete and everywhere)
    return kind((template,), iri(TIMERS) if in_timers else None)


@st.composite
def _programs(draw: st.DrawFn) -> System:
    several = [draw(_updates(f"u{number}")) for number in range(draw(st.integers(1, 3)))]
    query = System("q", (Source(),), (Pattern(_X, FIRED, _Y),), consequences=(Select((_X, _Y)),), reentrant=False)
    windows: tuple[Window, ...] = (LANDMARK, SlidingWindow(3), HoppingWindow(4, 2))
    return replace(
        with_windows(System(subsystems=(*several, query)), draw(st.sampled_from(windows))),
        output=draw(st.sampled_from(("istream", "dstream", "rstream", "changes"))),
    )


_FACTS = st.builds(Triple, st.sampled_from(_NAMES), st.sampled_from((_P, _P, _Q)), st.sampled_from((*_VALUES, *_NAMES)))
_EVENTS = st.tuples(st.integers(0, 12), st.tuples(_FACTS)).map(lambda pair: Event(*pair))
_STREAMS = st.lists(_EVENTS, min_size=1, max_size=6).map(lambda events: sorted(events, key=lambda event: event.time))
MAX_STEPS = 25
"""More steps without an event are taken for a program that does not terminate."""


@given(_programs(), _STREAMS, st.sampled_from(PLANNERS), st.sets(st.integers(0, 8)))
@settings(max_examples=examples_of(80), deadline=None, suppress_health_check=list(HealthCheck))
def test_timers_agree_with_the_oracle(system: System, events: list[Event], planner: str, cuts: set[int]) -> None:
    """Programs that terminate do so with the same answers, and the others are an error for both."""
    bounds = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    batches = [events[start:end] for start, end in pairwise(bounds)]
    options = Options(max_update_steps=MAX_STEPS, ledger=DeadLetterFile())
    job = squall.build(squall.plan(system, planner), "iterator", options)
    try:
        arrivals = list(job.run(batches))
    except BuilderError:
        with pytest.raises(BuilderError, match="steps without an event"):
            oracle.outputs(system, events, steps=MAX_STEPS)
    else:
        assert_as_oracle(system, arrivals, events)


def test_the_time_of_a_timer() -> None:
    """Months are added first, by the calendar."""
    assert due_time(AFTER, literal("P1M", XSD + "yearMonthDuration"), 30 * 86_400_000) == 58 * 86_400_000
    assert due_time(AFTER, literal("-PT1S", XSD + "dayTimeDuration"), 500) == -500
    assert due_time(AT, literal("-100000-01-01T00:00:00Z", XSD + "dateTime"), 0) < 0
    assert fired(Triple(_NAMES[0], AT, date_time(0))).predicate == FIRED
    with pytest.raises(ValueError, match="beyond the times of a run"):
        due_time(AFTER, literal("P999999999Y", XSD + "duration"), 0)
