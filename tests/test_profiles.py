"""Profiles: published engines' behaviour by name."""

from __future__ import annotations

import pytest

import squall
from squall import profiles
from squall.errors import UsageError
from squall.rdf import Event, Triple, iri
from squall.stages import Output
from squall.system import Construct, Either, Maybe, Pattern, Report, Source, System, Variable, Without
from squall.windows import LANDMARK, Count, Range, Stepped

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
    assert profiles.apply(RULE) == RULE


def test_csparql_has_the_instant_of_its_step_in_the_window() -> None:
    window = Stepped(20, 10)
    assert answers(profiles.apply(RULE, window=window, output="rstream"), 10) == [(20, "10"), (30, "10")]
    assert answers(profiles.apply(RULE, "csparql", window), 10) == [(10, "10"), (20, "10")]


def test_csparql_counts_by_blocks() -> None:
    system = profiles.apply(RULE, "csparql", Count(2))
    assert system.sources == (Source("", Count(2, 2)),)
    assert system.output == "rstream"
    assert {answer for _, answer in answers(system, 1, 2, 3)} == {"1", "2"}


def test_csparql_leaves_other_windows_as_they_are() -> None:
    assert profiles.apply(RULE, "csparql", Range(5)).sources == (Source("", Range(5)),)


def test_a_profile_reaches_every_window() -> None:
    """Those that a program names itself, in every part of it."""
    named, closed = Source("urn:s", Stepped(20, 10)), Source("urn:s", Stepped(20, 10, closed=True))
    part = System(sources=(named,), joinables=(Pattern(A, P, B),))
    changed = System(sources=(closed,), joinables=(Pattern(A, P, B),))

    def program(part: System) -> System:
        without = Without((part,))
        return System(subsystems=(System(joinables=(part, Either((part,))), predicates=(Maybe(part), without)),))

    found = profiles.apply(program(part), "csparql", LANDMARK, {"s": Stepped(4, 2)}, output="istream")
    windows = (("s", Stepped(4, 2, closed=True)),)
    assert found.subsystems[0].joinables == (changed, Either((changed,)))
    assert found.subsystems[0].predicates == (Maybe(changed), Without((changed,)))
    assert found.sources == (Source("", LANDMARK, windows),)


def test_cqels_tells_what_is_new() -> None:
    system = profiles.apply(RULE, "cqels", Range(5))
    assert (system.report, system.output) == (Report("change"), "istream")


def test_what_the_user_says_comes_before_the_profile() -> None:
    system = profiles.apply(RULE, "cqels", report=Report("periodic", 5), output="dstream")
    assert (system.report, system.output) == (Report("periodic", 5), "dstream")


def test_removals_and_windows_by_stream() -> None:
    (source,) = profiles.apply(RULE, window=Range(5), windows={"s": Count(3)}, removals=True).sources
    assert source == Source("", Range(5), (("s", Count(3)),), removals=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jena", r"`jena` is not supported yet\nhint: .*noValue"),
        ("squall2013", r"`squall2013` is not supported yet\nhint: .*UNION"),
        ("cqel", r"no profile `cqel`\nhint: did you mean `cqels`"),
        ("x", r"no profile `x`\nhint: profiles: default, csparql, cqels, rspql"),
    ],
)
def test_a_profile_that_there_is_not(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profiles.apply(RULE, name)


def test_report_policies() -> None:
    texts = ["close", "change", "nonempty", "periodic:5s"]
    policies = [Report("close"), Report("change"), Report("nonempty"), Report("periodic", 5000)]
    assert list(map(profiles.parse_report, texts)) == policies


@pytest.mark.parametrize("text", ["", "never", "close:5s", "periodic", "periodic:0s"])
def test_a_report_policy_that_there_is_not(text: str) -> None:
    with pytest.raises(UsageError, match="is no report policy"):
        profiles.parse_report(text)


def test_a_period_that_is_none() -> None:
    with pytest.raises(UsageError, match="`soon` is not a length of time"):
        profiles.parse_report("periodic:soon")
