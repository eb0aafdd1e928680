"""Laws of the semantics that concern more than one stage, on programs and streams that hypothesis makes up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.rdf import Event, Fact
from squall.system import System
from squall.testing import assert_as_oracle, oracle
from squall.testing.strategies import event_streams, jena_texts, static_data, systems
from squall.testing.suites import permuted, renamed

few = settings(max_examples=60, deadline=None)


@few
@given(jena_texts(), event_streams(), static_data())
def test_a_program_as_text_means_what_it_says(
    program: tuple[str, System], events: list[Event], facts: list[Event]
) -> None:
    """Lexer and translator against the system that the text was made of."""
    text, system = program
    compiled = squall.compile(text, lexer="jena")
    assert_as_oracle(system, list(squall.run(squall.plan(compiled), events, static=facts)), events, facts)


@few
@given(jena_texts())
def test_a_program_as_text_is_planned_like_its_system(program: tuple[str, System]) -> None:
    text, system = program
    assert squall.plan(squall.compile(text, lexer="jena")) == squall.plan(system)


@few
@given(systems(), st.data())
def test_rete_gives_one_plan_to_one_meaning(system: System, data: st.DataObject) -> None:
    """Names of variables, order of bodies and order of rules do not show in the plan."""
    assert squall.plan(permuted(renamed(system), data), "rete") == squall.plan(system, "rete")


@few
@given(systems(), event_streams(), static_data())
def test_what_comes_and_goes_adds_up_to_what_there_is(system: System, events: list[Event], facts: list[Event]) -> None:
    """At each instant, the istream so far without the dstream so far is the rstream."""
    come, gone, there = (_by_time(system, output, events, facts) for output in ("istream", "dstream", "rstream"))
    held: set[Fact] = set()
    for time in sorted({*come, *gone, *there}):
        held = (held - gone.get(time, set())) | come.get(time, set())
        assert held == there.get(time, set())


def _by_time(system: System, output: str, events: Sequence[Event], facts: Sequence[Event]) -> dict[int, set[Fact]]:
    plan = squall.plan(replace(system, output=output))
    outputs = squall.run(plan, events, static=facts)
    return {time: {out.fact for out in group} for time, group in groupby(outputs, key=lambda out: out.time)}


@few
@given(systems(output="rstream"), event_streams(), st.data())
def test_the_oracle_keeps_the_laws_itself(system: System, events: list[Event], data: st.DataObject) -> None:
    shuffled = sorted(data.draw(st.permutations(events)), key=lambda event: event.time)
    changed = permuted(renamed(system), data)
    assert oracle.outputs(changed, [*shuffled, *shuffled[-1:]]) == oracle.outputs(system, events)


@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_one_event_after_the_other_is_as_good_as_all_at_once(planner: str) -> None:
    """`squall.run` takes a list as a whole and hands on what any other iterable gives as it comes (trap 31)."""
    system = squall.compile("[r: (?x <p> ?y) (?y <p> ?z) noValue(?z, <p>) -> (?x <q> ?z)]", lexer="jena")
    plan = squall.plan(system, planner)
    events = [Event(time, (squall.Triple(*map(squall.Term, line.split())),)) for time, line in enumerate(_LINES)]
    assert list(squall.run(plan, iter(events))) == list(squall.run(plan, events))
    taken = _taken_before_the_first_output(plan, events)
    assert len(taken) == 3, "an output at 1 is certain, and has to be handed on, once an event is later than 1"


_LINES = ("<a> <p> <b>", "<b> <p> <c>", "<c> <p> <d>", "<d> <p> <e>")


def _taken_before_the_first_output(plan: squall.Plan, events: Sequence[Event]) -> list[Event]:
    taken: list[Event] = []

    def source() -> Iterator[Event]:
        for event in events:
            taken.append(event)
            yield event

    assert next(squall.run(plan, source())).time == 1
    return taken
