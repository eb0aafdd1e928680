"""Laws of the semantics that concern more than one stage, on generated programs and streams.

The six of docs/semantics.md, section 6, on programs with every feature (`squall.testing.strategies.FEATURES`): some 250
examples in all as a rule, and twelve times as many among the slow tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import groupby, pairwise
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.contracts import Options, Output, Planner
from squall.model import System, Union
from squall.rdf import Evaluated, Event, Solution
from squall.streams.formats.evaluations import Answered
from squall.testing import assert_as_oracle, oracle
from squall.testing.strategies import ALL, event_streams, jena_texts, static_data, systems
from squall.testing.suites import permuted, renamed
from tests.laws import PLANNERS, examples, examples_of, hold, plan_with_shared_constants


def outputs_of(
    system: System,
    planner: str | Planner,
    batches: Sequence[Sequence[Event]],
    facts: Sequence[Event] = (),
    tuning: Tuning = DEFAULT_TUNING,
) -> list[Output]:
    limit = None if tuning == DEFAULT_TUNING else 1 << 60  # then the inputs of all nodes are divided
    return list(IteratorJob(squall.plan(system, planner), Options(memory_limit=limit), tuning).run(batches, facts))


SWEEP_ALWAYS = Tuning(min_rows_to_sweep=0, max_live_rows_scanned=1, first_join_part=1)
NO_THRESHOLDS = replace(SWEEP_ALWAYS, min_facts_per_instant=1 << 60)
"""No thresholds of state cleanup, of the division of inputs, and of the snapshot dataflow.

Programs as small as those of these tests would never reach the defaults.
"""


def forget_all(job: IteratorJob) -> None:
    """Sweeps all state once, whatever its size."""
    for keeper in job.dataflow.states.values():
        for part in parts(keeper):
            for limit in ("sweep_rows", "full_sweep_rows", "rows_after_sweep"):
                if hasattr(part, limit):
                    setattr(part, limit, 0)
    job.dataflow.expire(squall.FOREVER - 1)


def parts(keeper: object) -> Iterator[Any]:
    """Yields an operator and its parts."""
    yield keeper
    for value in vars(keeper).values():
        for inner in value if isinstance(value, tuple) else (value,):
            if type(inner).__module__.startswith("squall.builders.") and hasattr(inner, "__dict__"):
                yield from parts(inner)


# The six laws


@examples(40)
@pytest.mark.parametrize(
    ("tuning", "planners"),
    [
        pytest.param(DEFAULT_TUNING, PLANNERS, id="default thresholds"),
        pytest.param(NO_THRESHOLDS, ("greedy", plan_with_shared_constants), id="no thresholds"),
    ],
)
def test_planners_agree_with_the_oracle(many: int, tuning: Tuning, planners: Sequence[str | Planner]) -> None:
    """Laws 1 and 5."""

    def law(system: System, events: list[Event], facts: list[Event]) -> None:
        for planner in planners:
            assert_as_oracle(system, outputs_of(system, planner, [events], facts, tuning), events, facts)

    data = {"events": event_streams(features=ALL), "facts": static_data(features=ALL)}
    hold(law, many, system=systems(features=ALL), **data)


@examples(20)
@pytest.mark.parametrize("planner", PLANNERS)
def test_batches_do_not_matter(planner: str, many: int) -> None:
    """This is the first half of law 2."""

    def law(system: System, events: list[Event], cuts: list[int]) -> None:
        places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
        batches = [events[begin:end] for begin, end in pairwise(places)]
        assert_as_oracle(system, outputs_of(system, planner, batches), events)

    cuts = st.lists(st.integers(0, 12), max_size=6)
    hold(law, many, system=systems(features=ALL), events=event_streams(features=ALL), cuts=cuts)


UNCOUNTED = ALL - {"count"}
"""The features without count windows, which depend on the order within an instant, and on duplicates."""


@examples(20)
def test_order_within_an_instant_does_not_matter(many: int) -> None:
    """This is the second half of law 2. The order of streams does not matter, even where triples are counted."""

    def law(system: System, events: list[Event], data: st.DataObject) -> None:
        shuffled = sorted(data.draw(st.permutations(events)), key=lambda event: event.time)
        assert_as_oracle(system, outputs_of(system, "rete", [[event] for event in shuffled]), events)

    hold(law, many, system=systems(features=UNCOUNTED), events=event_streams(features=UNCOUNTED), data=st.data())


@examples(20)
def test_streams_do_not_wait_for_each_other_within_an_instant(many: int) -> None:
    """This is law 2 where triples are counted: the order that matters is that of each stream."""

    def law(system: System, events: list[Event]) -> None:
        apart = sorted(events, key=lambda event: (event.time, event.stream))
        assert_as_oracle(system, outputs_of(system, "rete", [apart]), events)

    hold(law, many, system=systems(features=ALL), events=event_streams(features=ALL))


@examples(10)
@pytest.mark.parametrize("planner", PLANNERS)
def test_names_of_variables_and_order_of_bodies_do_not_matter(planner: str, many: int) -> None:
    """This is the first half of law 3."""

    def law(system: System, events: list[Event], facts: list[Event], data: st.DataObject) -> None:
        changed = shuffled(renamed(system), data)
        results = [
            out._replace(fact=_named_as_before(out.fact)) for out in outputs_of(changed, planner, [events], facts)
        ]
        assert_as_oracle(system, results, events, facts)

    data = {"events": event_streams(features=ALL), "facts": static_data(features=ALL), "data": st.data()}
    hold(law, many, system=systems(features=ALL), **data)


def shuffled(part: Any, data: st.DataObject) -> Any:
    """Returns the program with its rules, bodies and unions, and those of their parts, in another order."""
    if isinstance(part, tuple):
        return type(part)(shuffled(item, data) for item in part) if type(part) is tuple else part
    if not is_dataclass(part) or isinstance(part, type):
        return part
    inner = {field.name: shuffled(getattr(part, field.name), data) for field in fields(part) if field.name != "origin"}
    for name in {"joinables", "branches", "subsystems"} & inner.keys():
        inner[name] = tuple(data.draw(st.permutations(inner[name])))
    return replace(cast(System | Union, part), **inner)


def _named_as_before(item: Answered) -> Answered:
    if not isinstance(item, Solution | Evaluated):
        return item
    return item._replace(names=tuple(name.partition("_")[2] for name in item.names))


@examples(15)
def test_duplicate_events_do_not_change_outputs(many: int) -> None:
    """This is the second half of law 3."""

    def law(system: System, events: list[Event], number: int) -> None:
        again = events[: number % len(events) + 1]
        repeated = [*again, again[-1], *events[len(again) :]]
        for twice in (repeated, [event for event in events for _ in range(2)]):
            assert_as_oracle(system, outputs_of(system, "rete", [twice]), events)

    events = event_streams(features=UNCOUNTED)
    hold(law, many, system=systems(features=UNCOUNTED), events=events, number=st.integers(0, 20))


@examples(15)
def test_a_shift_in_time_shifts_the_answer(many: int) -> None:
    """This is law 4. 12 is a multiple of every step and period; ``now`` outputs the time itself."""
    features = ALL - {"now", "times"}

    def law(system: System, events: list[Event], facts: list[Event], shift: int) -> None:
        later = [event._replace(time=event.time + 12 * shift) for event in events]
        results = [
            out if out.time == squall.ALWAYS else out._replace(time=out.time - 12 * shift)
            for out in outputs_of(system, "rete", [later], facts)
        ]
        assert_as_oracle(system, results, events, facts)

    data = {"events": event_streams(features=features), "facts": static_data(features=features)}
    hold(law, many, system=systems(features=features), shift=st.integers(-(10**6), 10**11), **data)


@examples(20)
@pytest.mark.parametrize("planner", PLANNERS)
def test_after_the_last_window_has_closed_there_is_no_state(planner: str, many: int) -> None:
    """This is law 6, without features that keep state for ever: landmarks, axioms, counts, groups without keys. Joins
    may keep what an open session had until others of its key come."""
    features = ALL - {"landmark", "axioms", "count", "open sessions", "totals", "ask", "insert"}

    def law(system: System, events: list[Event]) -> None:
        job = IteratorJob(squall.plan(system, planner), Options(), SWEEP_ALWAYS)
        for _ in job.run([events]):
            pass
        forget_all(job)
        assert {id: size for id, size in job.dataflow.state().items() if size} == {}

    hold(law, many, system=systems(features=features), events=event_streams(features=features))


# Other laws

few = settings(max_examples=examples_of(40), deadline=None)


@few
@given(jena_texts(), event_streams(), static_data())
def test_a_program_as_text_agrees_with_the_oracle(
    program: tuple[str, System], events: list[Event], facts: list[Event]
) -> None:
    """The lexer and the translator are compared with the system from which the text was generated."""
    text, system = program
    compiled = squall.compile(text, lexer="jena")
    assert_as_oracle(system, list(squall.run(squall.plan(compiled), events, static=facts)), events, facts)


@few
@given(jena_texts())
def test_a_program_as_text_is_planned_like_its_system(program: tuple[str, System]) -> None:
    text, system = program
    assert squall.plan(squall.compile(text, lexer="jena")) == squall.plan(system)


@few
@given(systems(features=ALL - {"select"}), st.data())
def test_rete_gives_one_plan_to_one_meaning(system: System, data: st.DataObject) -> None:
    """Names of variables (other than a query's, which come out), order of bodies and of rules do not show in the
    plan."""
    assert squall.plan(shuffled(renamed(system), data), "rete") == squall.plan(system, "rete")


SEEN = ALL - {"reports", "output specs", "sessions"}
"""The features without what may skip an instant (report policies, and sessions that close, whose content ends between
two evaluation instants), and with one output specification."""


@few
@given(systems(features=SEEN), event_streams(features=SEEN), static_data(features=SEEN))
def test_istream_minus_dstream_is_rstream(system: System, events: list[Event], facts: list[Event]) -> None:
    """At each instant, the istream so far minus the dstream so far is the rstream."""
    come, removals, existing_items = (
        _by_time(system, output, events, facts) for output in ("istream", "dstream", "rstream")
    )
    answereds: Counter[Answered] = Counter()
    for time in sorted({*come, *removals, *existing_items}):
        answereds = answereds - removals.get(time, Counter()) + come.get(time, Counter())
        assert answereds == existing_items.get(time, Counter())


def _by_time(
    system: System, output: str, events: Sequence[Event], facts: Sequence[Event]
) -> dict[int, Counter[Answered]]:
    plan = squall.plan(replace(system, output=output))
    outputs = squall.run(plan, events, static=facts)
    return {time: Counter(out.fact for out in group) for time, group in groupby(outputs, key=lambda out: out.time)}


@few
@given(systems("rstream", UNCOUNTED), event_streams(features=UNCOUNTED), st.data())
def test_the_oracle_satisfies_the_laws(system: System, events: list[Event], data: st.DataObject) -> None:
    changed = permuted(renamed(system), data)
    again = sorted(data.draw(st.permutations(events)), key=lambda event: event.time)
    results = [(time, _named_as_before(item)) for time, item, *_ in oracle.outputs(changed, [*again, *again[-1:]])]
    assert Counter(results) == Counter((time, item) for time, item, *_ in oracle.outputs(system, events))


@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_event_by_event_gives_the_same_outputs_as_one_batch(planner: str) -> None:
    """`squall.run` processes a list as a whole, and any other iterable event by event as it arrives (trap 31)."""
    system = squall.compile("[r: (?x <p> ?y) (?y <p> ?z) noValue(?z, <p>) -> (?x <q> ?z)]", lexer="jena")
    plan = squall.plan(system, planner)
    events = [Event(time, (squall.Triple(*map(squall.Term, line.split())),)) for time, line in enumerate(_LINES)]
    assert list(squall.run(plan, iter(events))) == list(squall.run(plan, events))
    batch_items = _taken_before_the_first_output(plan, events)
    assert len(batch_items) == 3, "an output at 1 is final, and must be emitted, once an event is later than 1"


_LINES = ("<a> <p> <b>", "<b> <p> <c>", "<c> <p> <d>", "<d> <p> <e>")


def _taken_before_the_first_output(plan: squall.Plan, events: Sequence[Event]) -> list[Event]:
    batch_items: list[Event] = []

    def source() -> Iterator[Event]:
        for event in events:
            batch_items.append(event)
            yield event

    assert next(squall.run(plan, source())).time == 1
    return batch_items
