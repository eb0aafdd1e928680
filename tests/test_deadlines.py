"""Tests of the time: true from a deadline on, or until it, without another event (W8 of the reported faults)."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall import functions
from squall.builders.distributed.plan.strategy import strategy_of
from squall.checking import lint
from squall.contracts import Options
from squall.errors import SquallError
from squall.functions.deadlines import time_operands, true_intervals
from squall.functions.sparql.names import test_iri as iri_of_test
from squall.functions.values import date_time
from squall.model import Call, Filter, System
from squall.model.stratification import stratify
from squall.rdf import ALWAYS, Event, Solution, Term, literal
from squall.streams import Sources, open_source
from squall.testing import assert_as_oracle, stream
from squall.testing.oracle import outputs as oracle_outputs
from squall.testing.strategies import ALL, event_streams, static_data, systems
from squall.testing.strategies.rules import DEADLINES
from tests import in_memory
from tests.laws import PLANNERS, examples, hold

pytestmark = pytest.mark.fault("W8")
XSD = "http://www.w3.org/2001/XMLSchema#"


def at(seconds: str, zone: str = "Z") -> str:
    return f'"1970-01-01T00:00:{seconds}{zone}"^^<{XSD}dateTime>'


def length(seconds: str) -> str:
    return f'"PT{seconds}S"^^<{XSD}dayTimeDuration>'


EVENTS = stream(
    f"""1000 :a :due {at("03")} ; :name "a"
    2000 :b :due {at("02.5")}
    2500 :c :due {at("01.0005")}
    2600 :d :due "tomorrow"
    9000 :e :due {at("20")}"""
)
PREFIX = "PREFIX : <http://example.org/>\n"
CASES = {
    "from": ("FILTER(NOW() >= ?d)", ["2500 :b", "2500 :c", "3000 :a"]),
    "after": ("FILTER(NOW() > ?d)", ["2500 :c", "2501 :b", "3001 :a"]),
    "swapped": ("FILTER(?d < NOW())", ["2500 :c", "2501 :b", "3001 :a"]),
    "until": ("FILTER(NOW() < ?d)", ["1000 :a", "2000 :b", "9000 :e"]),
    "at": ("FILTER(NOW() = ?d)", ["2500 :b", "3000 :a"]),
    "not at": ("FILTER(NOW() != ?d)", ["1000 :a", "2000 :b", "2500 :c", "2501 :b", "2600 :d", "3001 :a", "9000 :e"]),
    "both": (f"FILTER(NOW() >= ?d && NOW() < {at('04')})", ["2500 :b", "2500 :c", "3000 :a"]),
    "either": (f"FILTER(NOW() < {at('01.5')} || !(NOW() < ?d))", ["1000 :a", "2500 :b", "2500 :c", "3000 :a"]),
    "later than now": (f"FILTER(NOW() + {length('0.5')} >= ?d)", ["2000 :b", "2500 :a", "2500 :c"]),
    "from behind": (f"FILTER(?d < {length('0.5')} + NOW())", ["2001 :b", "2500 :c", "2501 :a"]),
    "earlier than now": (f"FILTER(NOW() - {length('1')} < ?d)", ["1000 :a", "2000 :b", "9000 :e"]),
    "the age": (f"FILTER(NOW() - ?d > {length('0.25')})", ["2500 :c", "2751 :b", "3251 :a"]),
    "the age within": (
        f"FILTER(NOW() - ?d >= {length('0.25')} && NOW() - ?d <= {length('1.4995')})",
        ["2500 :c", "2750 :b", "3250 :a"],
    ),
    "what remains": (f"FILTER(?d - NOW() <= {length('0.25')})", ["2250 :b", "2500 :c", "2750 :a"]),
    "the age, less": (f"FILTER(NOW() - ?d - {length('1')} > {length('0')})", ["2500 :c", "3501 :b", "4001 :a"]),
    "one of several": (
        f"FILTER(NOW() IN (?d, {at('02.7')}))",
        ["2500 :b", "2700 :a", "2700 :b", "2700 :c", "2700 :d", "3000 :a"],
    ),
    "none of several": ("FILTER(NOW() NOT IN (?d)) FILTER(NOW() <= ?d)", ["1000 :a", "2000 :b", "9000 :e"]),
    "the age, bound": (f"BIND(NOW() - ?d AS ?age) FILTER(?age > {length('0.25')})", ["2500 :c", "2751 :b", "3251 :a"]),
    "bound": ("BIND(NOW() AS ?n) FILTER(?n >= ?d)", ["2500 :b", "2500 :c", "3000 :a"]),
}


def run(text: str, lexer: str = "sparql", planner: str = "rete", builder: str = "iterator") -> list[str]:
    """Returns the time and the first term of each output."""
    plan = squall.plan(squall.compile(PREFIX + text, lexer=lexer, window="RANGE 10s"), planner)
    return [shown(output.time, output.fact) for output in squall.run(plan, EVENTS, builder)]


def shown(time: int, fact: Any) -> str:
    value: Any = fact.values[0] if isinstance(fact, Solution) else fact.subject
    return f"{time} :{value.removesuffix('>')[-1]}"


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("name", CASES)
def test_a_deadline_begins_or_ends_an_answer(name: str, planner: str) -> None:
    condition, expected = CASES[name]
    query = f"SELECT ?x {{ ?x :due ?d {condition} }}"
    assert run(query, planner=planner) == expected
    system = squall.compile(PREFIX + query, lexer="sparql", window="RANGE 10s")
    assert [shown(time, item) for time, item, *_ in oracle_outputs(system, EVENTS)] == expected


@pytest.mark.parametrize(
    "form",
    [
        "FILTER EXISTS { ?x :due ?e FILTER(NOW() - ?e >= LENGTH) }",
        "FILTER NOT EXISTS { ?x :due ?e FILTER(NOW() - LENGTH >= ?e) }",
        "OPTIONAL { ?x :name ?n FILTER(NOW() >= ?d + LENGTH) }",
        "OPTIONAL { ?x :due ?n FILTER(NOW() - ?n > LENGTH) }",
        "MINUS { ?x :due ?e FILTER(NOW() + LENGTH >= ?e) }",
        "{ FILTER(true) } UNION { ?x :due ?e FILTER(NOW() - ?e > LENGTH) }",
        "{ SELECT ?x (COUNT(*) AS ?n) { ?x :due ?e FILTER(?e - NOW() < LENGTH) } GROUP BY ?x }",
        "FILTER(IF(NOW() - ?d > LENGTH, true, ?x = :b))",
        "BIND(NOW() - LENGTH AS ?then) FILTER(?then >= ?d || ?x = :c)",
    ],
)
def test_tests_of_the_time_may_be_anywhere(form: str) -> None:
    query = f"SELECT ?x ?n {{ ?x :due ?d {form} }}".replace("LENGTH", length("0.25"))
    for output in ("istream", "changes"):
        system = squall.compile(PREFIX + query, lexer="sparql", window="RANGE 10s", output=output)
        for planner in PLANNERS:
            assert_as_oracle(system, list(squall.run(squall.plan(system, planner), EVENTS)), EVENTS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("months", [1, 13, -1])
def test_months_are_those_of_the_calendar(months: int) -> None:
    """A month after the 28th of January and after the 29th is the same day: so the sum is not monotone in the hour."""
    hour, day = 3_600_000, 24 * 3_600_000
    added = literal(f"{'-' * (months < 0)}P{abs(months)}M", f"{XSD}yearMonthDuration")
    start, end = 24 * day, 62 * day
    for limit in range(start, end + 40 * day, 101 * hour):
        compared = date_time(limit + (365 * day if months > 12 else 0) - (40 * day if months < 0 else 0))
        call = Call("http://www.w3.org/ns/sparql#plus", (Call("http://www.w3.org/ns/sparql#now", ()), added))
        operands = time_operands(Call(iri_of_test("greater-than-or-equal"), (call, compared)))
        assert operands is not None
        (minus, _) = operands
        terms = [value_of("subtract", *minus.arguments), added]

        def is_reached(time: int, compared: Term = compared) -> bool:
            return bool(
                functions.lookup(iri_of_test("greater-than-or-equal")).body(
                    value_of("plus", date_time(time), added), compared
                )
            )

        intervals = list(true_intervals(terms, is_reached, start, end, 0))
        for time in range(start, end, hour):
            assert any(first <= time < last for first, last in intervals) == is_reached(time)


def value_of(name: str, *arguments: Any) -> Any:
    return functions.lookup(f"http://www.w3.org/ns/sparql#{name}").body(*arguments)


@pytest.mark.parametrize("condition", ["NOW() - ?d > NOW() - ?e", "HOURS(NOW()) = 5", "NOW() * 2 > ?d"])
def test_other_tests_have_one_time(condition: str) -> None:
    """They are true since the solution holds, or not, and `squall check` says it."""
    text = f"{PREFIX}SELECT ?x {{ ?x :due ?d ; :on ?e FILTER({condition}) }}"
    assert "single-evaluation" in [finding.code for finding in lint(text, lexer="sparql")]


@pytest.mark.parametrize(
    "builder",
    [pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.more)), pytest.param("beam", marks=pytest.mark.beam)],
)
def test_engines_agree_on_deadlines(builder: str) -> None:
    assert run("SELECT ?x { ?x :due ?d FILTER(NOW() >= ?d) }", builder=builder) == CASES["from"][1]


def test_a_rule_has_the_time_at_which_its_deadline_passed() -> None:
    """The binding of the time comes behind the test that says when the rule fires."""
    text = "[late: (?x :due ?d) now(?n) ge(?n, ?d) -> (?x :lateAt ?n)]"
    system = squall.compile(f"@prefix : <http://example.org/> .\n{text}", lexer="jena", window="RANGE 10s")
    facts = [(output.time, str(output.fact.object)[:26]) for output in squall.run(squall.plan(system), EVENTS)]
    assert facts == [
        (2500, '"1970-01-01T00:00:02.5Z"^^'), (2500, '"1970-01-01T00:00:02.5Z"^^'),
        (3000, '"1970-01-01T00:00:03Z"^^<h'),
    ]  # fmt: skip


def test_a_deadline_of_a_duration_after_a_time() -> None:
    query = f'SELECT ?x {{ ?x :due ?d FILTER(NOW() > ?d + "PT5S"^^<{XSD}dayTimeDuration>) }}'
    assert run(query) == ["6001 :c", "7501 :b", "8001 :a"]


def test_what_is_done_in_time_is_not_late() -> None:
    """The worked case of timers: one order is paid before its deadline, the other is not."""
    orders = stream(
        f"""1200 :o1 :placed {at("01.2")} ; :within "PT5S"^^<{XSD}dayTimeDuration>
        2300 :o2 :placed {at("02.3")} ; :within "PT2S"^^<{XSD}dayTimeDuration>
        4000 :o1 :is :Paid"""
    )
    query = """SELECT ?o { ?o :placed ?t ; :within ?d FILTER(NOW() >= ?t + ?d) FILTER NOT EXISTS { ?o :is :Paid } }"""
    system = squall.compile(PREFIX + query, lexer="sparql")
    assert [shown(output.time, output.fact) for output in squall.run(squall.plan(system), orders)] == ["4300 :2"]


@pytest.mark.parametrize(("zone", "expected"), [("+01:00", ["0 :a"]), ("", [f"{14 * 3600_000 + 1000} :a"])])
def test_a_time_without_a_zone_is_later_in_some_zone(zone: str, expected: list[str]) -> None:
    plan = squall.plan(squall.compile(PREFIX + "SELECT ?x { ?x :due ?d FILTER(NOW() > ?d) }", lexer="sparql"))
    events = stream(f"0 :a :due {at('00.999', zone)}")
    assert [shown(output.time, output.fact) for output in squall.run(plan, events)] == expected


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_static_data_alone_are_queried_at_one_time(has_checkpoint: bool, tmp_path: Path) -> None:
    """No time passes without a stream, so that what is due in the future is not due."""
    static = [event._replace(time=ALWAYS) for event in EVENTS]
    plan = squall.plan(squall.compile(PREFIX + "SELECT ?x { ?x :due ?d FILTER(NOW() >= ?d) }", lexer="sparql"))

    def due(now: int | None, events: list[Event]) -> list[str]:
        options = Options(now=now, checkpoint=tmp_path / str(now) if has_checkpoint else None)
        outputs = squall.run(plan, events, static=static, options=options)
        return [shown(0 if output.time == ALWAYS else output.time, output.fact) for output in outputs]

    assert due(0, []) == []
    assert due(2600, []) == ["0 :b", "0 :c"]
    assert due(None, stream("100 :z :p :z")) == ["1001 :c", "2500 :b", "3000 :a", "20000 :e"]


STATIC = [event._replace(time=ALWAYS) for event in EVENTS]


@pytest.mark.parametrize(("rows", "size"), [(0, -1), (1000, -1), (0, 1000)], ids=["stages", "in one task", "fused"])
@pytest.mark.parametrize("condition", ["", "FILTER NOT EXISTS { ?x :is :Done }"], ids=["one job", "complete instants"])
@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
@pytest.mark.sampled(4)
def test_tasks_agree_that_no_time_passes_without_an_event(condition: str, output: str, rows: int, size: int) -> None:
    event = stream("100 :z :p :z")
    streams: list[list[list[Event]]] = [[[]], [[], []], [event], [[], event]]
    for test in ("NOW() >= ?d", "NOW() < ?d"):
        query = f"{PREFIX}SELECT ?x {{ ?x :due ?d FILTER({test}) {condition} }}"
        plan = squall.plan(squall.compile(query, lexer="sparql", output=output))
        for batches in streams:
            expected = squall.run(plan, list(chain.from_iterable(batches)), static=STATIC, options=Options(now=0))
            assert sorted(in_memory.run(plan, batches, STATIC, rows, size)) == sorted(expected)


@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.more)),
        pytest.param("beam", marks=pytest.mark.beam),
    ],
)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["0 :c"]),
        ("# nothing\n", ["0 :c"]),
        ("2600 <urn:z> <urn:p> <urn:z> .\n", ["0 :c", "2500 :b", "3000 :a", "20000 :e"]),
    ],
    ids=["empty", "a comment", "an event"],
)
def test_no_time_passes_in_a_stream_without_an_event(
    builder: str, text: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "in.ntt").write_text(text)
    plan = squall.plan(squall.compile(PREFIX + "SELECT ?x { ?x :due ?d FILTER(NOW() >= ?d) }", lexer="sparql"))
    sources = Sources([open_source(str(tmp_path / "in.ntt"))])
    outputs = squall.build(plan, builder, Options(now=1500)).run(sources, STATIC)
    assert [shown(0 if output.time == ALWAYS else output.time, output.fact) for output in outputs] == expected


@st.composite
def programs_with_deadlines(draw: st.DrawFn) -> System:
    """Draws a program in which some rules have tests of the time."""
    system = draw(systems(features=ALL))
    rules = [
        replace(rule, predicates=(*rule.predicates, draw(DEADLINES))) if draw(st.booleans()) else rule
        for rule in system.subsystems
    ]
    program = replace(system, subsystems=tuple(rules))
    try:
        stratify(program)
    except SquallError:
        assume(False)
    return program


@examples(60)
@pytest.mark.parametrize("planner", PLANNERS)
def test_programs_with_deadlines_agree_with_the_oracle(planner: str, many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event], cuts: list[int]) -> None:
        assume(any(_has_deadline(rule) for rule in system.subsystems))
        plan = squall.plan(system, planner)
        assert_as_oracle(system, list(squall.run(plan, events, static=facts)), events, facts)
        if strategy_of(plan).is_staged:
            outputs = in_memory.run(plan, in_memory.cut(events, cuts), facts)
            assert_as_oracle(system, outputs, events, facts)

    hold(
        law,
        many,
        system=programs_with_deadlines(),
        events=event_streams(features=ALL),
        facts=static_data(features=ALL),
        cuts=st.lists(st.integers(0, 12), max_size=5),
    )


def _has_deadline(rule: System) -> bool:
    return any(isinstance(part, Filter) and time_operands(part.expression) for part in rule.predicates)
