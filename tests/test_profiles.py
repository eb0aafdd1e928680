"""Profiles: the behaviour of published engines, by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.contracts import Output
from squall.errors import UsageError
from squall.model import (
    Construct,
    NotExists,
    Optional,
    Pattern,
    Report,
    Source,
    System,
    Union,
    Variable,
    profiles,
    rules,
)
from squall.model.reports import CLOSE, parse_report
from squall.model.stratification import stratify
from squall.model.walk import walk
from squall.model.windows import (
    LANDMARK,
    CountWindow,
    FirstTriple,
    HoppingWindow,
    OpenHoppingWindow,
    SlidingWindow,
    Window,
)
from squall.rdf import ALWAYS, FOREVER, Event, Solution, Triple, iri, parts
from squall.testing import assert_as_oracle, difference, run, stream, timed
from squall.testing.strategies import CORE, event_streams, systems
from squall.testing.streams import show
from tests.laws import examples_of

A, B = Variable("a"), Variable("b")
P, Q = iri("urn:p"), iri("urn:q")
RULE = System("r", joinables=(Pattern(A, P, B),), consequences=(Construct((Pattern(B, Q, A),)),))


def events(*times: int, stream: str = "") -> list[Event]:
    return [Event(time, (Triple(iri(f"urn:{time}"), P, iri("urn:o")),), stream) for time in times]


def answers(system: System, *times: int) -> list[tuple[int, str]]:
    def shown(out: Output) -> tuple[int, str]:
        assert isinstance(out.fact, Triple)
        return out.time, out.fact.object[5:-1]

    return [shown(out) for out in squall.run(squall.plan(system), events(*times))]


def test_the_default_is_the_definition() -> None:
    assert profiles.apply_profile(RULE) == RULE


@pytest.mark.fault("W4")
def test_csparql_steps_from_the_second_of_the_first_triple() -> None:
    system = profiles.apply_profile(RULE, "csparql", HoppingWindow(5000, 3000))
    assert system.sources == (Source("", HoppingWindow(5000, 3000, FirstTriple())),)
    result = answers(system, 1600, 3000, 4000)
    assert sorted(result) == [(4000, "1600"), (4000, "3000"), (7000, "3000"), (7000, "4000")]


def test_csparql_keeps_an_origin_that_is_given() -> None:
    window = HoppingWindow(5000, 3000, 500)
    assert profiles.apply_profile(RULE, "csparql", window).sources == (Source("", window),)


SECONDS = "1000 :a :p :b\n2000 :c :p :b\n3000 :d :p :b\n4000 :e :p :b\n6000 :f :p :b"


@pytest.mark.fault("W4", "W5")
@pytest.mark.parametrize(
    ("profile", "report", "window", "counts"),
    [
        ("csparql", None, "RANGE 5s STEP 3s", {4000: 3, 7000: 4, 10_000: 1, 13_000: 0}),
        ("csparql", None, "RANGE 1s STEP 1s", {2000: 1, 3000: 1, 4000: 1, 5000: 1, 6000: 0, 7000: 1, 8000: 0}),
        ("default", None, "RANGE 5s STEP 3s", {3000: 2, 6000: 4, 9000: 2, 12_000: 0}),
        ("default", "change", "RANGE 5s STEP 3s", {1000: 1, 2000: 2, 3000: 3, 4000: 4, 5000: 2, 6000: 3, 8000: 1,
                                                   11_000: 0}),
        ("csparql", "change", "RANGE 4s TUMBLING", {1000: 1, 2000: 2, 3000: 3, 4000: 4, 5000: 0, 6000: 1, 9000: 0}),
    ],
)  # fmt: skip
def test_what_windows_with_steps_report(profile: str, report: str | None, window: str, counts: dict[int, int]) -> None:
    text = f"SELECT (COUNT(*) AS ?n) FROM STREAM <urn:s> [{window}] WHERE {{ ?x ?p ?y }}"
    system = squall.compile(f"REGISTER QUERY q AS {text}", lexer="csparql", profile=profile, report=report)
    arriving = [event._replace(stream="urn:s") for event in stream(SECONDS)]
    result = run(system, arriving)
    assert_as_oracle(system, result, arriving)
    solutions = [(item.time, item.fact.values[0]) for item in result if isinstance(item.fact, Solution)]
    assert {time: int(parts(str(count)).lexical) for time, count in solutions if time > 0} == counts


@pytest.mark.fault("W5")
def test_report_change_opens_the_windows_with_steps() -> None:
    system = profiles.apply_profile(RULE, window=HoppingWindow(20, 10, 5), report=Report("change"))
    assert system.sources == (Source("", OpenHoppingWindow(20, 10, 5)),)


def test_csparql_counts_by_blocks() -> None:
    system = profiles.apply_profile(RULE, "csparql", CountWindow(2))
    assert system.sources == (Source("", CountWindow(2, 2)),)
    assert system.output == "rstream"
    assert {answer for _, answer in answers(system, 1, 2, 3)} == {"1", "2"}


def test_cqels_slides_without_steps() -> None:
    system = profiles.apply_profile(RULE, "cqels", HoppingWindow(20, 10))
    assert system.sources == (Source("", SlidingWindow(20)),)
    assert (system.output, system.report) == ("istream", Report("change"))
    assert profiles.apply_profile(RULE, "cqels", CountWindow(3)).sources == (Source("", CountWindow(3)),)


def test_csparql_leaves_other_windows_as_they_are() -> None:
    assert profiles.apply_profile(RULE, "csparql", SlidingWindow(5)).sources == (Source("", SlidingWindow(5)),)


def test_a_profile_reaches_every_window() -> None:
    """It reaches the windows that a program itself defines, in every part of the program."""
    names = Source("urn:s", HoppingWindow(20, 10))
    begun = Source("urn:s", HoppingWindow(20, 10, FirstTriple()))
    part = System(sources=(names,), joinables=(Pattern(A, P, B),))
    changed = System(sources=(begun,), joinables=(Pattern(A, P, B),))

    def program(part: System) -> System:
        without = NotExists((part,))
        return System(subsystems=(System(joinables=(part, Union((part,))), predicates=(Optional(part), without)),))

    result = profiles.apply_profile(program(part), "csparql", LANDMARK, {"s": HoppingWindow(4, 2)}, output="istream")
    windows = (("s", HoppingWindow(4, 2, FirstTriple())),)
    assert result.subsystems[0].joinables == (changed, Union((changed,)))
    assert result.subsystems[0].predicates == (Optional(changed), NotExists((changed,)))
    assert result.sources == (Source("", LANDMARK, windows),)


def test_cqels_outputs_what_is_new() -> None:
    system = profiles.apply_profile(RULE, "cqels", SlidingWindow(5))
    assert (system.report, system.output) == (Report("change"), "istream")


def assert_outputs(text: str, arriving: str, expected: str, profile: str = "squall2013") -> None:
    """Checks the outputs of a C-SPARQL query over the stream <urn:s>, until its last event."""
    system = profiles.apply_profile(squall.compile(f"PREFIX : <http://example.org/>\n{text}", lexer="csparql"), profile)
    results = [event._replace(stream="urn:s") for event in stream(arriving)]
    result = run(system, results)
    assert_as_oracle(system, result, results)
    differs = difference(((out.time, out.fact) for out in result if out.time <= results[-1].time), timed(expected))
    assert not differs, differs


FROM = "FROM STREAM <urn:s> [RANGE 10s STEP 5s]"


@pytest.mark.parametrize(("profile", "times"), [("default", [2]), ("instans", [1])])
def test_instans_has_graphs_without_triples(profile: str, times: list[int]) -> None:
    text = "SELECT ?x ?z { ?x :p ?y GRAPH :g { OPTIONAL { ?x :q ?z } } }"
    system = squall.compile(f"PREFIX : <http://example.org/>\n{text}", lexer="sparql", profile=profile)
    arriving = [*stream("1 :a :p :b"), Event(2, stream("2 :c :r :d")[0].facts, graph="<http://example.org/g>")]
    result = run(system, arriving)
    assert [item.time for item in result] == times
    assert_as_oracle(system, result, arriving)


@pytest.mark.fault("T4")
@pytest.mark.parametrize("dataset", ["", "FROM NAMED :g FROM NAMED :h"])
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("?x :p ?y FILTER(?g = :g)", ["g"]),
        ("FILTER(STRENDS(STR(?g), 'h')) ?x :p ?y", ["h"]),
        ("{ ?x :p ?y FILTER(?g = :g) } UNION { ?x :p ?y FILTER(?g = :h) }", ["g", "h"]),
        ("?x :p ?y OPTIONAL { ?x :q ?z FILTER(?g = :h) } FILTER(!BOUND(?z))", ["g"]),
        ("?x :p ?y BIND(?g AS ?name) FILTER(?name = :h)", ["h"]),
        ("?x :p ?y FILTER EXISTS { ?x :q ?z FILTER(?g = :h) }", ["h"]),
        ("?x :p ?y BIND(1 AS ?n) { SELECT ?x { ?x :p ?g } }", ["g", "h"]),
    ],
)
def test_instans_knows_the_graph_inside_of_its_pattern(dataset: str, pattern: str, names: list[str]) -> None:
    text = f"PREFIX : <http://example.org/>\nSELECT ?g {dataset} {{ GRAPH ?g {{ {pattern} }} }}"
    facts = stream("1 :a :p :b ; :q :c")[0].facts
    arriving = [Event(1, facts, graph=f"<http://example.org/{name}>") for name in "gh"]
    system = squall.compile(text, lexer="sparql", profile="instans", output="rstream")
    result = run(system, arriving)
    assert_as_oracle(system, result, arriving)
    solutions = [str(item.fact.values[0])[-2] for item in result if isinstance(item.fact, Solution)]
    assert sorted(solutions) == names


@pytest.mark.fault("T4")
def test_a_condition_about_the_graph_inside_of_its_pattern_is_a_warning() -> None:
    system = squall.compile("SELECT ?g { GRAPH ?g { ?x ?p ?y FILTER(?g = ?x) } }", lexer="sparql")
    (warning,) = system.warnings
    assert str(warning.message) == "`?g` has no value inside of `GRAPH ?g`, but behind it"
    assert "profile `instans`" in str(warning.hint)


def test_squall2013_also_outputs_what_optional_does_not_extend() -> None:
    assert_outputs(
        f"SELECT ?x ?y {FROM} WHERE {{ ?x :p :o OPTIONAL {{ ?x :q ?y FILTER(?y > 1) }} }}",
        "1000 :a :p :o ; :q 1, 2, 3\n1000 :b :p :o",
        "1000 ?x=:a ?y=\n1000 ?x=:a ?y=2\n1000 ?x=:a ?y=3\n1000 ?x=:b ?y=",
    )


def test_squall2013_has_optional_parts_in_a_row_and_in_each_other() -> None:
    """The first one extends the empty solution, which always exists."""
    assert_outputs(
        f"SELECT ?x ?y ?z {FROM} WHERE {{ OPTIONAL {{ ?x :p ?y OPTIONAL {{ ?x :q ?z }} }} OPTIONAL {{ ?x :r ?z }} }}",
        "1000 :a :p :b ; :q :c ; :r :d",
        """
        always ?x= ?y= ?z=
        1000 ?x=:a ?y= ?z=:d
        1000 ?x=:a ?y=:b ?z=
        1000 ?x=:a ?y=:b ?z=:c
        1000 ?x=:a ?y=:b ?z=:d
        """,
    )


def test_squall2013_reaches_exists() -> None:
    """In SPARQL, only :b has a solution in which ?z is unbound."""
    text = "?x :p :o FILTER EXISTS { ?x :q ?y OPTIONAL { ?x :r ?z } FILTER(!BOUND(?z)) }"
    arriving = "1000 :a :p :o ; :q 1 ; :r 2\n1000 :b :p :o ; :q 1\n5000"
    assert_outputs(f"SELECT ?x {FROM} WHERE {{ {text} }}", arriving, "1000 ?x=:a\n1000 ?x=:b")
    assert_outputs(f"SELECT ?x {FROM} WHERE {{ {text} }}", arriving, "5000 ?x=:b", "default")


def test_squall2013_has_the_condition_of_an_optional_part_see_both_sides() -> None:
    text = "?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z > ?y && EXISTS { ?x :r ?z }) }"
    assert_outputs(
        f"SELECT * {FROM} WHERE {{ {text} }}",
        "1000 :a :p 1 ; :q 2, 3, 0 ; :r 0, 3",
        "1000 ?x=:a ?y=1 ?z=\n1000 ?x=:a ?y=1 ?z=3",
    )


def test_squall2013_has_aggregates_run() -> None:
    assert_outputs(
        f"SELECT (COUNT(*) AS ?n) (SUM(?y) AS ?sum) {FROM} WHERE {{ ?x :p ?y }}",
        "1000 :a :p 6\n2000 :b :p 6\n2000 :c :p 1\n12000 :d :p 5",
        "always ?n=0 ?sum=0\n1000 ?n=1 ?sum=6\n2000 ?n=3 ?sum=13\n11000 ?n=2 ?sum=7\n12000 ?n=1 ?sum=5",
    )


OPTIONAL = CORE | {"optional", "union", "subqueries", "nullable", "exists", "windows"}


@settings(max_examples=examples_of(25), deadline=None)
@given(systems(features=OPTIONAL), event_streams(features=OPTIONAL))
def test_squall2013_leaves_no_optional_part(system: System, arriving: list[Event]) -> None:
    changed = profiles.apply_profile(system, "squall2013")
    assert not any(isinstance(part, Optional) for rule in rules(changed) for part in walk(rule))
    assert_as_oracle(changed, run(changed, arriving), arriving)


def as_jena(program: str, events: str, **more: Any) -> list[str]:
    """Runs a program of Jena rules over a stream, compares with the oracle, and returns the outputs."""
    text = f"@prefix : <http://example.org/> .\n{program}"
    system = squall.compile(text, lexer="jena", profile="jena", **more)
    arriving = stream(events)
    result = run(system, arriving)
    assert_as_oracle(system, result, arriving)
    assert_as_oracle(system, run(system, arriving, planner="greedy"), arriving)
    return [show(time, fact) for time, fact in sorted((item.time, item.fact) for item in result)]


OPEN = "[r: (?x :p ?y) noValue(?x :done) -> (?x :open ?y)]"


def test_jena_evaluates_negation_when_a_rule_fires() -> None:
    events = "1 :a :p :b\n5 :a :done :yes\n6 :a :p :c\n7 :d :done :yes\n7 :d :p :e"
    assert as_jena(OPEN, events) == ["2 :a :open :b"]
    assert as_jena(OPEN, events, output="dstream") == []


def test_in_jena_what_a_rule_has_concluded_ends_with_its_patterns() -> None:
    events = "1 :a :p :b\n15 :a :done :yes\n30 :a :p :b"
    assert as_jena(OPEN, events, window=SlidingWindow(10), output="dstream") == ["11 :a :open :b", "40 :a :open :b"]
    assert as_jena(OPEN, "1 :a :p :b\n5 :a :done :yes\n15 :a :p :b", window=SlidingWindow(12)) == [
        "2 :a :open :b",
        "18 :a :open :b",
    ]


def test_in_jena_a_rule_may_look_for_what_it_concludes() -> None:
    rules = "[(?x :p ?y) noValue(?x :q) -> (?x :q ?y)] [(?x :q ?y) -> (?x :r ?y)]"
    events = "1 :a :p :b\n1 :a :p :c\n3 :a :p :d"
    assert as_jena(rules, events) == ["2 :a :q :b", "2 :a :q :c", "2 :a :r :b", "2 :a :r :c"]
    assert as_jena("[noValue(:a :b) -> (:a :b :c)]", "1 :a :p :b") == ["always :a :b :c"]
    assert as_jena("[noValue(:d :b) -> (:a :b :c)]", "1 :d :b :b") == ["always :a :b :c"]
    counting = "[(?x :p ?y) countLiteralValues(?x ?any ?n) sum(?n 1 ?m) -> (?x :count ?m)]"
    assert as_jena(counting, "1 :a :p 5") == ['2 :a :count "2"^^<http://www.w3.org/2001/XMLSchema#int>']


def test_in_jena_functors_and_hidden_nodes_stay_hidden() -> None:
    rules = """
        -> hide(:secret) .
        [(?x :p ?y) noValue(?x :secret) makeTemp(?t) hide(?t) -> (?x :secret ?t) (?t :is f(?x)) (?x :has f(?y))]
        [(?x :has f(?y)) (?x :secret ?t) (?t :is f(?x)) -> (?x :found ?y)]
        [(?s ?p ?o) -> (?s ?p ?o)]
    """
    assert as_jena(rules, "1 :a :p :b") == ["1 :a :p :b", "2 :a :found :b"]
    answered = "[(?x :p ?y) noValue(?x :q) makeTemp(?t) hide(?t) -> (?x :q ?y) (?y :q ?t)]"
    assert as_jena(answered, "1 :a :p :b") == ["2 :a :q :b"]


@settings(max_examples=examples_of(40), deadline=None)
@given(systems(features=CORE), event_streams(features=CORE), st.sampled_from([LANDMARK, SlidingWindow(4)]))
def test_jena_agrees_with_the_oracle(system: System, arriving: list[Event], window: Window) -> None:
    changed = profiles.apply_profile(system, "jena", window=window)
    stratify(changed)
    for planner in ("rete", "greedy"):
        assert_as_oracle(changed, run(changed, arriving, planner=planner), arriving)


def test_explicit_options_override_the_profile() -> None:
    system = profiles.apply_profile(RULE, "cqels", report=Report("periodic", 5), output="dstream")
    assert (system.report, system.output) == (Report("periodic", 5), "dstream")


def test_removals_and_windows_by_stream() -> None:
    (source,) = profiles.apply_profile(
        RULE, window=SlidingWindow(5), windows={"s": CountWindow(3)}, removals=True
    ).sources
    assert source == Source("", SlidingWindow(5), (("s", CountWindow(3)),), removals=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cqel", r"no profile `cqel`\nhint: did you mean `cqels`"),
        ("x", r"no profile `x`\nhint: profiles: default, csparql, cqels, rspql, jena, instans, squall2013"),
    ],
)
def test_a_profile_that_there_is_not(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profiles.apply_profile(RULE, name)


def test_report_policies() -> None:
    texts = ["close", "change", "nonempty", "periodic:5s"]
    policies = [Report("close"), Report("change"), Report("nonempty"), Report("periodic", 5000)]
    assert list(map(parse_report, texts)) == policies


@pytest.mark.parametrize("text", ["", "never", "close:5s", "periodic", "periodic:0s"])
def test_a_report_policy_that_there_is_not(text: str) -> None:
    with pytest.raises(UsageError, match="is no report policy"):
        parse_report(text)


def test_a_period_that_is_none() -> None:
    with pytest.raises(UsageError, match="`soon` is not a length of time"):
        parse_report("periodic:soon")


@pytest.mark.parametrize(
    ("report", "next_report", "members"),
    [
        (CLOSE, 7, ""),
        (Report("change"), 7, "only_changes depends_on_whole_answer"),
        (Report("nonempty"), 7, ""),
        (Report("nonempty", empty=True), 7, "depends_on_whole_answer"),
        (Report("periodic", 5), 10, "is_periodic"),
    ],
)
def test_what_other_modules_ask_of_a_report_policy(report: Report, next_report: int, members: str) -> None:
    names = ("is_periodic", "only_changes", "depends_on_whole_answer")
    assert [name for name in names if getattr(report, name)] == [name for name in names if name in members.split()]
    assert (report.next_report(7), report.next_report(10)) == (next_report, 10)
    assert (report.next_report(ALWAYS), report.next_report(FOREVER)) == (ALWAYS, FOREVER)
    assert (report.marks_end(True), report.marks_end(False)) == (True, report.policy != "nonempty")


def test_no_other_module_asks_for_the_name_of_a_report_policy() -> None:
    root = Path(__file__).parent.parent
    modules = [
        str(path.relative_to(root))
        for folder in ("squall", "translators", "planners", "builders")
        for path in (root / folder).rglob("*.py")
        if re.search(r"\breport\.policy\b|\breport\.period\b *\*", path.read_text(encoding="utf-8"))
    ]
    assert sorted(modules) == ["squall/model/reports.py", "squall/testing/oracle/outputs.py"]
