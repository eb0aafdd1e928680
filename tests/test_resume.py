"""A run that is stopped anywhere goes on elsewhere from what it kept, as if it had not been: every plan.

The state is taken as text between any two batches, put into a fresh run of the same plan, and all outputs together have
to be those of one run: on programs and streams with every feature, whether what was kept is added up and forgotten on
the way or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.builders.local.event_buffer import EventBuffer
from squall.builders.local.event_loop import EventLoop
from squall.builders.local.timers import Timers
from squall.builders.local.updates import UpdateSteps
from squall.builders.runtime import serde
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.intervals import union
from squall.builders.runtime.operators.consume import ConsumeOperator
from squall.builders.runtime.operators.derived_stream import DerivedStreamOperator
from squall.builders.runtime.operators.distinct import (
    AppendOnlyDistinct,
    DRedDistinct,
    RetractableDistinct,
    TimeDependentOperator,
    TransitiveClosureOperator,
)
from squall.builders.runtime.operators.event_time import EventTimeOperator, GroupOperator, SliceOperator
from squall.builders.runtime.operators.join import AntiJoinOperator, JoinOperator, LeftJoinOperator
from squall.builders.runtime.operators.multiway_join import MultiwayJoinOperator
from squall.builders.runtime.operators.output import AppendOnlyOutput, OutputOperator
from squall.builders.runtime.operators.scan import ScanOperator
from squall.builders.runtime.operators.sequence_join import SequenceJoinOperator
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.operators.update import InsertedFacts, UpdateOperator
from squall.builders.runtime.report_times import ReportSchedule
from squall.builders.runtime.state import StateChangelog, compact_deltas, live_deltas
from squall.builders.runtime.zset import Delta
from squall.contracts import Options, Output
from squall.functions.jena import function_iri
from squall.functions.timers import AT, TIMERS
from squall.functions.values import date_time
from squall.model import (
    Bind,
    Call,
    Delete,
    Insert,
    NotExists,
    Optional,
    Pattern,
    Report,
    Select,
    Source,
    System,
    Variable,
    with_windows,
)
from squall.model.windows import LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window
from squall.plan import Plan
from squall.rdf import ALWAYS, FOREVER, Event, Triple, iri
from squall.testing import assert_as_oracle
from squall.testing.strategies import ALL, event_streams, static_data, systems
from squall.testing.streams import stream
from squall.translators.sparql.time_patterns import Part
from tests.laws import PLANNERS, examples, examples_of, hold
from tests.snapshots import INSTANTS, at, delta_lists
from tests.test_broken_operators import (
    CHAIN,
    COUNTED,
    FIRST,
    OPEN,
    PAIRED,
    PATHS,
    SHUT,
    STREAMED,
    E,
    P,
    Q,
    X,
    Y,
    Z,
    in_consumption,
    in_sequence,
    part,
    pattern,
    rule,
    step,
)


class Moving:
    """A run that moves to another process before each batch. compacts: whether its state is compacted on the way.
    begin: the time that functions of time use for static data."""

    def __init__(self, plan: Plan, compacts: bool, begin: int = 0) -> None:
        self.plan = plan
        self.compacts = compacts
        self.begin = begin
        self.texts: list[tuple[str, int, str, int, int, int]] = []
        self.passed = ALWAYS - 1

    def outputs(self, batches: Sequence[Sequence[Event]], static: Sequence[Event]) -> Iterator[Output]:
        running = EventLoop(self.plan, Options())
        running.states.enable_changelog()
        yield from self._taken(running, running.start(static, self.begin))
        for batch in batches:
            running = self._elsewhere()
            yield from self._taken(running, running.process(batch))
        running = self._elsewhere()
        yield from self._taken(running, running.end())

    def _taken(self, running: EventLoop, parts: Iterator[list[Output]]) -> Iterator[Output]:
        for outputs in parts:
            yield from outputs
        self.passed = running.watermark
        self._write(running.states.drain_changelog())

    def _write(self, kept: Iterator[tuple[str, int, list[Delta]]]) -> None:
        for id, slot, result in kept:
            self.texts += ((id, slot, serde.pack(row), start, end, n) for *row, start, end, n in result)

    def _elsewhere(self) -> EventLoop:
        running, state = EventLoop(self.plan, Options()), StateChangelog()
        for id, slot, text, *valid in self.texts:
            state.add([(id, slot, [(*serde.unpack(text), *valid)])])
        if self.compacts:
            state.compact(running.states, self.passed)
            self.texts = []
            self._write((id, slot, result) for (id, slot), result in state.deltas.items())
        running.restore(self.passed, self.begin, state.deltas)
        running.states.enable_changelog()
        return running


def output_counts(outputs: Sequence[Output]) -> Counter[tuple[object, int]]:
    return Counter((out.fact, out.time) for out in outputs)


@examples(50)
@pytest.mark.parametrize("planner", PLANNERS)
def test_another_process_resumes_a_run_from_its_state(planner: str, many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event], cuts: list[int], compacts: bool) -> None:
        plan = squall.plan(system, planner)
        places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
        batches = [events[begin:end] for begin, end in pairwise(places)]
        outputs = list(Moving(plan, compacts).outputs(batches, facts))
        assert [out.time for out in outputs] == sorted(out.time for out in outputs)
        full_result = [out for part in undisturbed(plan, batches, facts) for out in part]
        assert output_counts(outputs) == output_counts(full_result)
        assert_as_oracle(system, outputs, events, facts)

    data = {"events": event_streams(features=ALL), "facts": static_data(features=ALL)}
    cuts = st.lists(st.integers(0, 12), max_size=4)
    hold(law, many, system=systems(features=ALL), cuts=cuts, compacts=st.booleans(), **data)


def undisturbed(
    plan: Plan, batches: Sequence[Sequence[Event]], static: Sequence[Event], begin: int = 0
) -> Iterator[list[Output]]:
    running = EventLoop(plan, Options())
    yield from running.start(static, begin)
    for batch in batches:
        yield from running.process(batch)
    yield from running.end()


# Each part of the state is needed: without it, some program goes on otherwise

W = Variable("w")
THREE = rule(P, pattern(X, "q", Z), pattern(X, "r", W), then=Select((Y, Z, W)))
STEPS = HoppingWindow(40, 20)
TWO_MAKERS = with_windows(
    System(subsystems=(replace(rule(P), name="r"), replace(rule(pattern(X, "q", Y)), name="s"))), STEPS, removals=True
)
"""Two rules that derive one fact, which is output before it begins to hold."""
NOW = rule(P, predicates=(Bind(Z, Call(function_iri("now"), ())),), then=Select((X, Y, Z)))
STAYS = System(
    subsystems=(
        rule(P, then=Insert((pattern(Y, "q", X),))),
        replace(rule(pattern(X, "stop", Y), then=Delete((pattern(X, "q", Y),))), name="d"),
        replace(rule(pattern(X, "q", Y)), name="k"),
    ),
    output="dstream",
)
"""Rules that insert a fact, which holds until it is deleted."""


NOT_Q = NotExists((pattern(X, "q", Y),))
INSERTS = rule(P, then=Insert((pattern(Y, "q", X),)))
TIMER = rule(P, then=Insert((Pattern(X, AT, Y),), iri(TIMERS)))
OPTIONAL = rule(P, predicates=(Optional(part(Q)),), then=Select((X, Y, Z)))
COUNTED_SET = replace(with_windows(rule(P), CountWindow(2)), output="dstream")
ON_CHANGE = replace(rule(P), output="rstream", report=Report("change"))
REMOVED = with_windows(replace(rule(P), output="dstream"), removals=True)
NOW_UNLESS = replace(
    rule(P, predicates=(NOT_Q, Bind(Z, Call(function_iri("now"), ()))), then=Select((X, Y, Z))), output="dstream"
)


def streamed(output: str, window: Window) -> System:
    first, second = STREAMED.subsystems
    return replace(
        System(subsystems=(replace(first, output=output), replace(second, sources=(Source("urn:s", window),)))),
        output="dstream" if isinstance(window, CountWindow) else "istream",
    )


def deleted() -> System:
    """Returns a system with a derived stream, the content of its window, and an update that deletes from it."""
    outputs = replace(streamed("istream", LANDMARK), output="dstream")
    delete = replace(rule(pattern(X, "stop", Y), then=Delete((pattern(X, "k", Y),))), name="d")
    return replace(outputs, subsystems=(*outputs.subsystems, delete))


def without(cls: type, slot: int) -> Callable[[pytest.MonkeyPatch], None]:
    """Leaves out one slot of an operator's state when it is restored."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        restore = cls.restore  # type: ignore[attr-defined]

        def partly(self: Stateful, number: int, deltas: Sequence[Delta]) -> None:
            if type(self) is not cls or number != slot:
                restore(self, number, deltas)

        monkeypatch.setattr(cls, "restore", partly)

    return patch


def idle(cls: type, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Returns a patch that makes a method do nothing."""
    return lambda monkeypatch: monkeypatch.setattr(cls, name, lambda *_: None)


BEGIN = 5000
LOST: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], System | Plan, str]] = {
    "the left of a join": (without(JoinOperator, 0), rule(P, Q, then=Select((X, Z))), CHAIN),
    "the right of a join": (without(JoinOperator, 1), rule(P, Q, then=Select((X, Z))), "1 :b :q :c\n2 :a :p :b"),
    "the first of a star": (without(MultiwayJoinOperator, 0), THREE, "1 :a :p :b\n2 :a :q :b\n3 :a :r :b"),
    "the last of a star": (without(MultiwayJoinOperator, 2), THREE, "1 :a :r :b\n2 :a :q :b\n3 :a :p :b"),
    "what something may follow": (
        without(SequenceJoinOperator, 0),
        in_sequence(),
        "1 :a :p :b\n2 :b :q :c",
    ),
    "what was between": (
        without(SequenceJoinOperator, 2),
        in_sequence(between=(Part(step(pattern(Y, "p", Z)), wanted=True),)),
        "1 :a :p :b\n2 :b :p :c\n4 :b :q :c",
    ),
    "what matches have consumed": (without(ConsumeOperator, 1), in_consumption(), PAIRED),
    "the left of a negation": (
        without(AntiJoinOperator, 0),
        replace(rule(P, predicates=(NOT_Q,)), output="dstream"),
        SHUT,
    ),
    "the right of a negation": (without(AntiJoinOperator, 1), rule(P, predicates=(NOT_Q,)), "1 :a :q :b\n3 :a :p :b"),
    "the left of an optional part": (without(LeftJoinOperator, 0), OPTIONAL, CHAIN),
    "the right of an optional part": (without(LeftJoinOperator, 1), OPTIONAL, "1 :b :q :c\n3 :a :p :b"),
    "a set that grows": (without(AppendOnlyDistinct, 0), rule(P, then=Select((X,))), "1 :a :p :b\n2 :a :p :b"),
    "a set that counts": (
        without(RetractableDistinct, 0),
        COUNTED_SET,
        "1 :a :p :b\n2 :a :p :b\n3 :a :p :c\n4 :c :p :d",
    ),
    "who made a fact": (
        without(RetractableDistinct, 2),
        TWO_MAKERS,
        "1 :a :p :b\n1 :a :q :b\n5 - :a :p :b\n90 :a :p :b",
    ),
    "the counts of a recursive set": (without(DRedDistinct, 0), replace(OPEN, output="dstream"), SHUT),
    "the output of a recursive set": (without(DRedDistinct, 1), replace(OPEN, output="dstream"), SHUT),
    "since when a row holds": (
        without(TimeDependentOperator, 0),
        with_windows(NOW, SlidingWindow(4)),
        "1 :a :p :b\n3 :a :p :b",
    ),
    "the time of what always holds": (idle(Dataflow, "begin"), NOW_UNLESS, "3 :a :q :b\n5 :a :p :b"),
    "a closure": (without(TransitiveClosureOperator, 0), PATHS, CHAIN),
    "a group": (without(GroupOperator, 0), COUNTED, "1 :a :p :b\n2 :a :p :c"),
    "a slice": (without(SliceOperator, 0), replace(FIRST, output="dstream"), "1 :a :p :b\n2 :c :p :c\n3 :b :p :b"),
    "the time that has passed": (idle(EventTimeOperator, "resume_at"), COUNTED, "1 :a :p :b\n2 :a :p :c"),
    "an answer": (
        without(OutputOperator, 0),
        replace(with_windows(rule(P), SlidingWindow(4)), output="dstream"),
        CHAIN,
    ),
    "an answer that was reported": (without(OutputOperator, 1), ON_CHANGE, "1 :a :p :b\n2 :a :p :b\n3 :a :q :b"),
    "an answer that grows": (
        without(AppendOnlyOutput, 0),
        with_windows(rule(P), SlidingWindow(4)),
        "1 :a :p :b\n5 :a :p :b",
    ),
    "an answer that waits": (without(AppendOnlyOutput, 1), with_windows(rule(P), STEPS), "1 :a :p :b\n2 :a :p :c"),
    "the output of a derived stream": (
        without(DerivedStreamOperator, 0),
        streamed("rstream", SlidingWindow(2)),
        "1 :a :p :b\n5 :c :p :d\n9 :e :p :f",
    ),
    "what is in a stream's window": (without(DerivedStreamOperator, 3), streamed("istream", CountWindow(2)), CHAIN),
    "what may be deleted of a stream": (
        without(DerivedStreamOperator, 2),
        deleted(),
        "1 :a :p :b\n5 :a :stop :b\n6 :b :stop :a",
    ),
    "what an update has seen": (without(UpdateOperator, 0), with_windows(INSERTS, STEPS), "1 :a :p :b\n2 :a :p :c"),
    "what was inserted": (without(InsertedFacts, 0), STAYS, "1 :a :p :b\n5 :b :stop :a\n9 :a :p :b"),
    "what is to be inserted": (idle(UpdateSteps, "load_rows"), INSERTS, "1 :a :p :b\n2 :c :p :d"),
    "what timers are set": (idle(Timers, "restore"), TIMER, f"1 :a :p {date_time(5)}\n3 :b :q :c"),
    "what may be removed": (without(ScanOperator, 0), REMOVED, "1 :a :p :b\n4 - :a :p :b"),
    "what is counted": (
        without(ScanOperator, 1),
        COUNTED_SET,
        "1 :a :p :b\n2 :a :p :b\n3 :a :p :c\n4 :c :p :d\n5 :e :p :f",
    ),
    "evaluation instants": (
        idle(ReportSchedule, "load_rows"),
        replace(with_windows(rule(P), SlidingWindow(4)), output="rstream"),
        CHAIN,
    ),
    "events that are held back": (idle(EventBuffer, "load_rows"), rule(P, predicates=(NOT_Q,)), SHUT),
}


@pytest.mark.parametrize("compacts", [False, True], ids=["", "compacted"])
@pytest.mark.parametrize(("patch", "program", "text"), LOST.values(), ids=LOST.keys())
def test_each_part_of_the_state_is_needed(
    patch: Callable[[pytest.MonkeyPatch], None],
    program: System | Plan,
    text: str,
    compacts: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = program if isinstance(program, Plan) else squall.plan(program, "greedy")
    batches = [[event] for event in stream(text)]
    static = [Event(ALWAYS, (Triple(iri(E + "a"), iri(E + "p"), iri(E + "b")),))] if program is NOW_UNLESS else []
    full_result = Counter(out for part in undisturbed(plan, batches, static, BEGIN) for out in part)
    assert Counter(Moving(plan, compacts, BEGIN).outputs(batches, static)) == full_result
    patch(monkeypatch)
    with suppress(AssertionError, KeyError, ValueError):
        assert Counter(Moving(plan, compacts, BEGIN).outputs(batches, static)) == full_result
        pytest.fail("nothing is amiss")


# What is added up and forgotten


@pytest.mark.parametrize("together", [None, 1], ids=["", "together"])
@given(known=delta_lists(2, (-1, 1, 1, 2), most=9), more=delta_lists(2, (-1, 1)), passed=st.sampled_from(INSTANTS))
@settings(max_examples=examples_of(150), deadline=None)
def test_compaction_preserves_the_state_from_the_watermark_on(
    together: int | None, known: list[Delta], more: list[Delta], passed: int
) -> None:
    """This holds also if more deltas come."""
    deltas = compact_deltas(known, passed, together)
    assert all(start < end and weight and end >= passed for *_, start, end, weight in deltas)
    assert len(deltas) <= 2 * len(known)
    for instant in INSTANTS:
        if instant >= passed:
            assert at(deltas, instant) == at(known, instant)
            assert at(deltas + more, instant) == at(known + more, instant)


@given(known=delta_lists(2, (1, 1, 2), most=9), passed=st.sampled_from(INSTANTS))
@settings(max_examples=examples_of(100), deadline=None)
def test_compaction_preserves_the_start_of_live_rows(known: list[Delta], passed: int) -> None:
    """For rows with the same first column, it preserves the time since when any of them has held without a gap."""
    deltas = compact_deltas(known, passed, 1)
    assert _holding(deltas, passed) == {
        (key, since, end) for key, since, end in _holding(known, passed) if end > passed
    } | {(key, since, end) for key, since, end in _holding(known, passed) if end == passed}


@pytest.mark.parametrize("together", [None, 1], ids=["", "together"])
@given(
    known=delta_lists(2, (1, 1, 2), most=9), more=delta_lists(2, (1, 1, 2), most=9), passed=st.sampled_from(INSTANTS)
)
@settings(max_examples=examples_of(300), deadline=None)
def test_rows_dropped_by_compaction_leave_nothing(
    together: int | None, known: list[Delta], more: list[Delta], passed: int
) -> None:
    """All later deltas begin later."""
    since = max((delta[-3] for delta in known), default=ALWAYS)
    later = [delta for delta in more if delta[-3] >= since]
    left = live_deltas(later, passed, together)
    assert Counter(compact_deltas(known + left, passed, together)) == Counter(
        compact_deltas(known + later, passed, together)
    )
    assert not live_deltas([delta for delta in later if delta[-2] < passed], passed, together)


def _holding(known: Sequence[Delta], passed: int) -> set[tuple[str, int, int]]:
    """Returns rows by their first column, with the interval around a time over which they hold."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for delta in known:
        spans.setdefault(delta[0], []).append(delta[-3:-1])
    return {(key, start, end) for key, parts in spans.items() for start, end in union(parts) if start <= passed <= end}


def test_expired_rows_are_deleted() -> None:
    row = ("<urn:a>",)
    assert compact_deltas([(*row, 0, 3, 1), (*row, 5, 9, 1), (*row, 0, FOREVER, 1), (*row, 4, FOREVER, -1)], 6) == [
        (*row, 5, 9, 1)
    ]
    assert compact_deltas([(*row, 0, 5, 1), (*row, 3, 8, 1)], 6) == [(*row, 0, 8, 1)]
