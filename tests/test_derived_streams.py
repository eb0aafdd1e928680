"""Streams that several queries derive and others read: on each planner, in process and distributed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall.model import Construct, Pattern, Report, Source, System, Variable
from squall.model.windows import LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window
from squall.rdf import Event, Term, Triple, iri
from squall.testing import assert_as_oracle
from squall.testing.check import outputs
from tests import in_memory
from tests.laws import PLANNERS, examples, hold

X, Y, Z = map(Variable, "xyz")
P, Q, R, S, U = (iri(f"http://example.org/{name}") for name in "pqrsu")
NODES = [iri(f"http://example.org/{name}") for name in "abc"]
ONE, FIRST, SECOND = "urn:one", "urn:s", "urn:t"
"""What comes, and what the program makes: the second one may be made of the first."""

LENGTHS = st.integers(1, 6)
OF_TIME: st.SearchStrategy[Window] = st.one_of(
    st.just(LANDMARK),
    st.builds(SlidingWindow, LENGTHS, st.sampled_from([0, 0, 2])),
    st.builds(HoppingWindow, LENGTHS, st.integers(1, 3), st.integers(0, 2), st.booleans(), st.sampled_from([0, 0, 2])),
)
OF_TRIPLES = st.builds(CountWindow, st.integers(1, 4), st.integers(1, 2))
REPORTS = st.sampled_from([None, None, Report("change"), Report("nonempty"), Report("periodic", 3)])
PATHS = ((X, Y), (Y, Z), (Y, X))
"""The subjects and objects of the patterns of a body: a path, so that two patterns can be joined."""


@st.composite
def programs(draw: st.DrawFn) -> System:
    """Draws two to four queries that derive streams, and one or two rules that read them."""
    into = draw(st.lists(st.sampled_from([FIRST, FIRST, SECOND]), min_size=2, max_size=4))
    makers = Counter(into)
    parts = [
        draw(_output_spec([draw(_rules(f"m{number}", stream == SECOND, makers))], stream))
        for number, stream in enumerate(into)
    ]
    readers = [draw(_rules(f"r{number}", True, makers, True)) for number in range(draw(st.integers(1, 2)))]
    return draw(_output_spec([*readers, *parts]))


@st.composite
def _output_spec(draw: st.DrawFn, rules: Sequence[System], stream: str = "") -> System:
    output = draw(st.sampled_from(["istream", "dstream", "rstream"]))
    return System(subsystems=tuple(rules), stream=stream, output=output, report=draw(REPORTS))


@st.composite
def _rules(draw: st.DrawFn, name: str, of_first: bool, makers: Counter[str], last: bool = False) -> System:
    """Draws a rule over the input, over the first derived stream and over both."""
    predicates = [P, P, Q, *([R, R] if of_first else []), *([S, S] if last else [])]
    sources = [draw(_sources([ONE, *([FIRST] * 2 if of_first else []), *([SECOND] * 2 if last else [])], makers))]
    if draw(st.booleans()):
        sources.append(draw(_sources(["", ONE], makers)))
    paths = PATHS[: draw(st.integers(1, 2))]
    body = tuple(Pattern(path, draw(st.sampled_from(predicates)), other) for path, other in paths)
    head = U if last else S if of_first else R
    ends = draw(st.permutations([paths[0][0], paths[-1][1]]))
    makes = (Construct((Pattern(ends[0], head, ends[1]),)),)
    return System(name, tuple(dict.fromkeys(sources)), body, consequences=makes, reentrant=False)


@st.composite
def _sources(draw: st.DrawFn, streams: Sequence[str], makers: Counter[str]) -> Source:
    """Draws a stream with a window. The window counts triples only if one query alone derives the stream."""
    stream = draw(st.sampled_from(streams))
    together = max(makers.values()) if not stream else makers[stream]
    return Source(stream, draw(OF_TIME if together > 1 else st.one_of(OF_TIME, OF_TRIPLES)))


@st.composite
def comings(draw: st.DrawFn) -> list[Event]:
    fact = st.builds(Triple, st.sampled_from(NODES), st.sampled_from([P, P, Q]), st.sampled_from(NODES))
    steps = draw(st.lists(st.integers(0, 3), min_size=3, max_size=9))
    times = [sum(steps[: number + 1]) for number in range(len(steps))]
    return [
        Event(time, tuple(draw(st.lists(fact, min_size=1, max_size=2))), draw(st.sampled_from(["", ONE, ONE])))
        for time in times
    ]


@examples(150)
def test_streams_of_several_queries_agree_with_the_oracle(many: int) -> None:
    def law(system: System, events: list[Event], cuts: list[int], planner: str) -> None:
        result = outputs(squall.plan(system, planner), in_memory.cut(events, cuts), (), "iterator")
        assert_as_oracle(system, result, events)

    hold(law, many, **_made_up())


@examples(60)
def test_it_is_so_in_micro_batches(many: int) -> None:
    """This holds whatever workers cache, whichever task fails, and however many tasks there are."""

    def law(system: System, events: list[Event], cuts: list[int], planner: str, seed: int) -> None:
        result = in_memory.run_anyhow(squall.plan(system, planner), in_memory.cut(events, cuts), (), seed)
        assert_as_oracle(system, result, events)

    hold(law, many, seed=st.integers(0, 1 << 32), **_made_up())


def _made_up() -> dict[str, Any]:
    cuts = st.lists(st.integers(0, 9), max_size=4)
    return {"system": programs(), "events": comings(), "cuts": cuts, "planner": st.sampled_from(PLANNERS)}


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("max_single_task_bytes", [None, -1, 1_000_000], ids=["in process", "by all tasks", "by one"])
@pytest.mark.parametrize("read", [True, False], ids=["read", "not read"])
def test_two_outputs_of_one_query_both_have_evaluations(
    planner: str, max_single_task_bytes: int | None, read: bool
) -> None:
    """Two queries derive the same facts in one stream, one on arrival and one every three milliseconds. The conclusions
    that read the stream may be unread."""

    def maker(name: str, output: str, report: Report | None) -> System:
        return System(subsystems=(_rule(name, ONE, P, R),), stream=FIRST, output=output, report=report)

    rules = (_rule("r", FIRST, R, U, internal=not read), *(() if read else (_rule("o", SECOND, P, U),)))
    program_system = System(subsystems=rules, output="rstream")
    system = System(
        subsystems=(program_system, maker("m", "istream", None), maker("n", "rstream", Report("periodic", 3)))
    )
    events = [Event(time, (Triple(NODES[0], P, NODES[time % 3]),), ONE) for time in (0, 1, 5)]
    events.insert(0, Event(0, events[0].facts, SECOND))
    plan, batches = squall.plan(system, planner), [events[:2], events[2:]]
    result = (
        outputs(plan, batches, (), "iterator")
        if max_single_task_bytes is None
        else in_memory.run(plan, batches, max_single_task_bytes=max_single_task_bytes)
    )
    assert {output.time for output in result if output.rule in "ro"} == {0, 1, 3, 5, 6}
    assert_as_oracle(system, result, events)


def _rule(name: str, stream: str, reads: Term, makes: Term, internal: bool = False) -> System:
    """Returns a rule that swaps the arguments of the facts of a stream."""
    head = (Construct((Pattern(Y, makes, X),), internal),)
    return System(name, (Source(stream),), (Pattern(X, reads, Y),), consequences=head, reentrant=False)
