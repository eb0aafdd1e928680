"""The law of LARS programs: at each tick rules derive what an evaluator derives that goes from tick to tick.

Programs are drawn as texts, with windows of all kinds over what streams bring and what rules derive, recursion through
them, negation, and heads with times. They run with both planners, on events in any batches, on both of the ways in
which a run may go: at once, and in other processes that resume from checkpoints between batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.builders.local.event_loop import EventLoop
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.lexers.lars import lexer
from squall.rdf import Event, Fact, Term, heartbeat
from squall.testing import assert_as_oracle
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs, on_engines
from tests.test_resume import Moving
from tests.ticks import Ground, Ticks, ground, is_rdf

LEVELS = {"a": 0, "b": 0, "r": 0, "o": 0, "p": 1, "s": 1, "z": 1, "q": 2, "t": 2}
"""The relations, with the levels in which negation goes down."""
ARITIES = {"a": 1, "b": 1, "r": 2, "o": 0, "p": 1, "s": 2, "z": 0, "q": 1, "t": 2}
NAMES = ("x", "y")
VARIABLES = ("X", "Y")
LAST = 14
"""The tick of the heartbeat at the end of the input."""


def level_of(relation: Term, arity: int) -> int:
    return LEVELS[relation[5:-1]]


class Drawn(NamedTuple):
    """The text of a program, with its tick (integer ms)."""

    text: str
    tick: int


@st.composite
def windows(draw: st.DrawFn, relation: str, times: list[str]) -> str:
    """Draws what stands behind an atom. times: the variables of time, to which that of a window with `at` is added."""
    length = draw(st.integers(0, 4))
    step = f" step {draw(st.integers(1, 3))}" if draw(st.integers(0, 5)) == 0 else ""
    kind = draw(st.sampled_from(("", "in", "in", "always", "at", "#")))
    if kind == "#" and LEVELS[relation]:
        kind = "in"
    if kind == "at":
        times.append(f"T{len(times)}")
        return f" at {times[-1]} in [{length}{step}]"
    forms = {"": "", "in": f" in [{length}{step}]", "always": f" always in [{length}{step}]", "#": f" [# {length + 1}]"}
    return forms[kind]


@st.composite
def bodies(draw: st.DrawFn, level: int, times: list[str]) -> tuple[list[str], list[str]]:
    """Draws a body: its conditions, and the variables that it binds."""
    relations = [name for name, number in LEVELS.items() if number <= level]
    bound: list[str] = []
    conditions = []
    for relation in draw(st.lists(st.sampled_from(relations), min_size=1, max_size=2)):
        arguments = [draw(st.sampled_from((*VARIABLES, "X", "_", "x"))) for _ in range(ARITIES[relation])]
        bound += [name for name in arguments if name in VARIABLES]
        conditions.append(f"{text_of(relation, arguments)}{draw(windows(relation, times))}")
    if draw(st.booleans()):
        relation = draw(st.sampled_from([name for name, number in LEVELS.items() if number < max(level, 1)]))
        arguments = [draw(st.sampled_from((*bound, "y"))) for _ in range(ARITIES[relation])]
        unused: list[str] = []
        window = draw(windows(relation, unused))
        if not unused:
            conditions.append(f"not {text_of(relation, arguments)}{window}")
    if len(times) > 1 and draw(st.booleans()):
        conditions.append(f"{times[0]} {draw(st.sampled_from(('<', '<=', '!=')))} {times[1]}")
    return conditions, bound


def text_of(relation: str, arguments: Sequence[str]) -> str:
    return f"{relation}({', '.join(arguments)})" if arguments else relation


@st.composite
def rules(draw: st.DrawFn) -> str:
    relation = draw(st.sampled_from([name for name, number in LEVELS.items() if number]))
    times: list[str] = []
    conditions, bound = draw(bodies(LEVELS[relation], times))
    arguments = [draw(st.sampled_from((*bound, *NAMES))) for _ in range(ARITIES[relation])]
    time = ""
    if times and draw(st.integers(0, 2)) == 0:
        time = f" at {times[0]} + {draw(st.integers(0, 2))}"
    elif times and len(arguments) == 2 and draw(st.booleans()):
        arguments[1] = times[0]
    return f"{text_of(relation, arguments)}{time} :- {', '.join(conditions)}."


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    tick = draw(st.sampled_from((1, 1, 1, 3)))
    lines = [f"@tick {tick}.", *draw(st.lists(rules(), min_size=1, max_size=5))]
    return Drawn("\n".join(lines), tick)


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[int, list[Ground]]]:
    """Draws what arrives: tick by tick, some atoms."""
    ticks = sorted(draw(st.sets(st.integers(1, LAST - 2), min_size=1, max_size=6)))
    inputs = [ground("a", name) for name in NAMES] + [ground("b", name) for name in NAMES]
    inputs += [ground("r", first, second) for first in NAMES for second in NAMES] + [ground("o")]
    return [(tick, draw(st.lists(st.sampled_from(inputs), min_size=1, max_size=3))) for tick in ticks]


def events_of(drawn: Drawn, brought: Iterable[tuple[int, list[Ground]]], offset: int) -> list[Event]:
    """Returns the events: those of a tick come at most `offset` ms before it."""
    late = min(offset, drawn.tick - 1)
    return [Event(tick * drawn.tick - late, tuple(atom.fact for atom in atoms)) for tick, atoms in brought]


def expected(drawn: Drawn, brought: Sequence[tuple[int, list[Ground]]], last: int) -> dict[int, set[Fact]]:
    """Returns what holds in the answer from each tick on (integer ms)."""
    atoms = [(tick, atom) for tick, atoms in brought for atom in atoms]
    models = Ticks(lexer(drawn.text, "drawn"), atoms, level_of).run(range(last))
    return {tick * drawn.tick: {atom.fact for atom in found if is_rdf(atom)} for tick, found in models.items()}


def holding(outputs: Iterable[Output], times: Iterable[int]) -> dict[int, set[Fact]]:
    """Returns what holds at each time by outputs of the R2S operator `changes`. Nothing may change at other times."""
    by_time: dict[int, list[Output]] = {}
    for out in outputs:
        by_time.setdefault(out.time, []).append(out)
    current: set[Fact] = set()
    result: dict[int, set[Fact]] = {}
    for time in times:
        for out in by_time.pop(time, ()):
            fact: Fact = out.fact  # type: ignore[assignment]
            assert (fact in current) == (out.change == "delete"), f"{out} says nothing new"
            current ^= {fact}
        result[time] = set(current)
    assert not [time for time in by_time if time <= max(result)], "something changes between two ticks"
    return result


def batches_of(events: Sequence[Event], cuts: Sequence[int]) -> list[Sequence[Event]]:
    places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    return [events[begin:end] for begin, end in pairwise(places)]


def processed(plan: squall.Plan, batches: Iterable[Sequence[Event]]) -> Iterator[Output]:
    """Yields the outputs up to a heartbeat, behind which nothing is known."""
    loop = EventLoop(plan, Options())
    for part in loop.start((), 0):
        yield from part
    for batch in batches:
        for part in loop.process(batch):
            yield from part


CUTS = st.lists(st.integers(0, 6), max_size=3)


@examples(60)
@pytest.mark.parametrize("planner", PLANNERS)
def test_windows_in_bodies_are_evaluated_as_tick_by_tick(planner: str, many: int) -> None:
    def law(drawn: Drawn, brought: list[tuple[int, list[Ground]]], offset: int, cuts: list[int]) -> Sequence[object]:
        plan = squall.plan(squall.compile(drawn.text, lexer="lars", output="changes"), planner)
        events = [*events_of(drawn, brought, offset), heartbeat(LAST * drawn.tick)]
        outputs = [out for out in processed(plan, batches_of(events, cuts)) if out.time < LAST * drawn.tick]
        times = range(0, LAST * drawn.tick, drawn.tick)
        assert holding(outputs, times) == expected(drawn, brought, LAST)
        return outputs

    hold_with_outputs(law, many, 0.2, drawn=programs(), brought=arrivals(), offset=st.integers(0, 2), cuts=CUTS)


def ends(plan: squall.Plan, batches: Sequence[Sequence[Event]]) -> list[Output]:
    """Returns all outputs of a run. It rejects programs that go on for ever."""
    try:
        return list(squall.build(plan).run(batches))
    except BuilderError as error:
        assume("goes on behind the end of the input" not in error.message)
        assume("lists the times of" not in error.message)
        raise


@examples(40)
@pytest.mark.parametrize("planner", PLANNERS)
def test_a_run_that_resumes_goes_on_as_if_it_had_not_stopped(planner: str, many: int) -> None:
    def law(drawn: Drawn, brought: list[tuple[int, list[Ground]]], cuts: list[int], compacts: bool) -> Sequence[object]:
        plan = squall.plan(squall.compile(drawn.text, lexer="lars", output="changes"), planner)
        batches = batches_of(events_of(drawn, brought, 0), cuts)
        outputs = list(Moving(plan, compacts).outputs(batches, ())) if ends(plan, batches) else []
        times = range(0, 2 * LAST * drawn.tick, drawn.tick)
        assert holding(outputs, times) == expected(drawn, brought, 2 * LAST)
        return outputs

    hold_with_outputs(law, many, 0.2, drawn=programs(), brought=arrivals(), cuts=CUTS, compacts=st.booleans())


@examples(15)
@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
def test_the_oracle_of_systems_agrees(output: str, many: int) -> None:
    def law(drawn: Drawn, brought: list[tuple[int, list[Ground]]]) -> Sequence[object]:
        system = squall.compile(drawn.text, lexer="lars", output=output)
        plan = squall.plan(system, "rete")
        events = events_of(drawn, brought, 0)
        outputs = ends(plan, [events])
        assume(all(out.time < LAST * drawn.tick for out in outputs))
        assert_as_oracle(system, outputs, events)
        return outputs

    hold_with_outputs(law, many, 0.1, drawn=programs(), brought=arrivals())


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(drawn: Drawn, brought: list[tuple[int, list[Ground]]], seed: int) -> Sequence[object]:
        plan = squall.plan(squall.compile(drawn.text, lexer="lars", output="changes"), "rete")
        events = events_of(drawn, brought, 0)
        by_iterator = ends(plan, [events])
        outputs = in_memory.outputs_on(builder, plan, events, seed, ())
        times = range(0, 3 * LAST * drawn.tick, drawn.tick)
        assert holding(outputs, times) == holding(by_iterator, times)
        return by_iterator

    hold_with_outputs(law, number, 0.2, drawn=programs(), brought=arrivals(), seed=st.integers(0, 1000))
