"""The machine and the iterator job: fixpoints, deletions, what reaches which node, and what is handed on when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.builders.iterator import IteratorJob
from squall.builders.machine import Machine, deliver_of
from squall.builders.rows import Deliver, Entry, Keeping, fact_row
from squall.errors import BuilderError
from squall.operators import AntiJoin, Cell, Join, Match, is_stateful
from squall.plan import Plan
from squall.rdf import ALWAYS, FOREVER, Event, Triple, iri
from squall.stages import Options, Output
from squall.system import Construct, Pattern, Source, Variable
from squall.testing.check import Losses
from squall.testing.streams import static, stream, timed

E = "http://example.org/"
EDGE, SHUT, REACH, PATH = (iri(E + name) for name in ("edge", "shut", "reach", "path"))
X, Y = map(Variable, "xy")
NODES = [iri(f"{E}{name}") for name in "abcd"]

OPEN = "[open: (?x :edge ?y) noValue(?x :shut ?y) -> (?x :path ?y)]"
REACHES = "[step: (?x :path ?y) -> (?x :reach ?y)] [on: (?x :reach ?y) (?y :path ?z) -> (?x :reach ?z)]"
NONLINEAR = "[step: (?x :path ?y) -> (?x :reach ?y)] [on: (?x :reach ?y) (?y :reach ?z) -> (?x :reach ?z)]"
WITHIN = (
    "[step: (?x :edge ?y) -> (?x :reach ?y)] [on: (?x :reach ?y) (?y :edge ?z) noValue(?x :shut ?z) -> (?x :reach ?z)]"
)
"""Negation below a recursion, twice; and inside one, on what does not depend on it."""


def plan(text: str, planner: str = "rete") -> Plan:
    return squall.plan(squall.compile(f"@prefix : <{E}> .\n{text}", lexer="jena"), planner)


def job(text: str, ledger: Losses | None = None) -> IteratorJob:
    made = squall.build(plan(text), "iterator", Options(ledger=ledger))
    assert isinstance(made, IteratorJob)
    return made


def told(outputs: Iterable[Output]) -> list[tuple[int, str]]:
    """The outputs as lines of a stream."""
    return [(out.time, str(out.fact)) for out in outputs]


def expected(text: str) -> list[tuple[int, str]]:
    return [(time, str(fact)) for time, fact in timed(text)]


# Delete and rederive


Change = tuple[bool, str, str]
"""Whether an edge is shut (rather than there), and its two ends."""
CHANGES = st.tuples(st.booleans(), st.sampled_from(NODES), st.sampled_from(NODES))


def reachable(edges: set[tuple[str, str]], shut: set[tuple[str, str]], within: bool) -> set[tuple[str, str]]:
    """What the programs mean, computed anew."""
    steps = edges if within else edges - shut
    found = set(steps)
    while True:
        further = {(x, z) for x, y in found for w, z in steps if y == w and not (within and (x, z) in shut)}
        if further <= found:
            return found
        found |= further


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@pytest.mark.parametrize("rules", [OPEN + REACHES, OPEN + NONLINEAR, WITHIN], ids=["linear", "nonlinear", "within"])
@given(batches=st.lists(st.lists(CHANGES, min_size=1, max_size=5), max_size=6))
@settings(max_examples=40, deadline=None)
def test_deletions_lead_to_what_would_be_computed_anew(planner: str, rules: str, batches: list[list[Change]]) -> None:
    """A graph grows and is shut edge by edge; after each batch, what is valid is what follows from what is there."""
    made = plan(rules, planner)
    machine = Machine(made)
    deliver = machine.operators[deliver_of(made)]
    assert isinstance(deliver, Deliver)
    machine.start()
    edges: set[tuple[str, str]] = set()
    shut: set[tuple[str, str]] = set()
    for time, batch in enumerate(batches):
        facts = [(start, SHUT if shuts else EDGE, end) for shuts, start, end in batch]
        machine.read("", [(fact, time, FOREVER, 1) for fact in facts])
        machine.run()
        edges |= {(start, end) for shuts, start, end in batch if not shuts}
        shut |= {(start, end) for shuts, start, end in batch if shuts}
        valid = {
            (fact[0], fact[2])
            for fact, steps in deliver.counts.items()
            if fact[1] == REACH and sum(steps[instant] for instant in steps if instant <= time) > 0
        }
        assert valid == reachable(edges, shut, within=rules == WITHIN)


@pytest.mark.parametrize("rules", [OPEN + REACHES, OPEN + NONLINEAR])
def test_two_facts_do_not_hold_each_other_up(rules: str) -> None:
    """A cycle of derivations goes when its only reason goes."""
    events = stream("1 :a :edge :b\n1 :b :edge :c\n1 :c :edge :b\n2 :a :shut :b\n3 :d :edge :d")
    made = squall.plan(
        squall.System(
            subsystems=squall.compile(f"@prefix : <{E}> .\n{rules}", lexer="jena").subsystems, output="dstream"
        )
    )
    gone = [line for line in told(squall.run(made, events)) if "reach" in line[1]]
    assert sorted(gone) == sorted(expected("2 :a :reach :b\n2 :a :reach :c"))


def test_what_has_another_reason_comes_back_and_is_not_said_again() -> None:
    events = stream("1 :a :edge :b\n1 :a :edge :c\n1 :c :edge :b\n1 :b :edge :d\n2 :a :shut :b\n3 :x :edge :y")
    came = told(job(OPEN + REACHES).run([events]))
    assert [line for line in came if line[0] == 2] == []
    assert expected("1 :a :reach :d")[0] in came


# When things are handed on


CONTINUOUS = "[copy: (?x :edge ?y) -> (?x :path ?y)]"


@dataclass
class Taps:
    """Batches that tell which of them have been asked for."""

    batches: Sequence[Sequence[Event]]
    asked: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[Sequence[Event]]:
        for number, batch in enumerate(self.batches):
            self.asked.append(number)
            yield batch


def test_what_nothing_can_take_back_is_handed_on_at_once() -> None:
    taps = Taps([stream("1 :a :edge :b"), stream("1 :c :edge :d\n2 :a :edge :d")])
    came = job(CONTINUOUS).run(taps)
    assert told([next(came)]) == expected("1 :a :path :b")
    assert taps.asked == [0]
    assert told(came) == expected("1 :c :path :d\n2 :a :path :d")


def test_an_instant_with_negation_is_held_back_until_time_has_passed_it() -> None:
    """An edge that is shut at the same instant, in a later batch, was never open."""
    taps = Taps([stream("1 :a :edge :b\n1 :c :edge :d"), stream("1 :a :shut :b"), stream("2 :x :edge :y")])
    came = job(OPEN).run(taps)
    assert told([next(came)]) == expected("1 :c :path :d")
    assert taps.asked == [0, 1, 2], "the instant is whole when a later event has come"
    assert told(came) == expected("2 :x :path :y")


def test_the_end_of_the_input_completes_the_last_instant() -> None:
    assert told(job(OPEN).run([stream("1 :a :edge :b")])) == expected("1 :a :path :b")
    assert told(job(OPEN).run([[], stream("1 :a :edge :b"), []])) == expected("1 :a :path :b")


@pytest.mark.parametrize("output", ["dstream", "rstream"])
def test_an_answer_by_instants_is_held_back_as_well(output: str) -> None:
    system = squall.compile(f"@prefix : <{E}> .\n{CONTINUOUS}", lexer="jena")
    made = IteratorJob(squall.plan(squall.System(subsystems=system.subsystems, output=output)), Options())
    assert made.whole_instants
    assert not job(CONTINUOUS).whole_instants


EVENTS = st.lists(
    st.builds(
        Event,
        st.integers(0, 4),
        st.lists(
            st.builds(Triple, st.sampled_from(NODES), st.sampled_from([EDGE, SHUT]), st.sampled_from(NODES)),
            min_size=1, max_size=3,
        ).map(tuple),
    ),
    max_size=8,
).map(lambda events: sorted(events, key=lambda event: event.time))  # fmt: skip


@pytest.mark.parametrize("rules", [OPEN + REACHES, "[on: (?x :edge ?y) (?y :edge ?z) -> (?x :edge ?z)]"])
@given(events=EVENTS, cuts=st.sets(st.integers(0, 8)))
@settings(max_examples=40, deadline=None)
def test_outputs_are_in_the_order_of_time_however_the_stream_is_cut(
    rules: str, events: list[Event], cuts: set[int]
) -> None:
    bounds = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    batches = [events[start:end] for start, end in pairwise(bounds)]
    came = told(job(rules).run(batches))
    assert [time for time, _ in came] == sorted(time for time, _ in came)
    assert sorted(came) == sorted(told(job(rules).run([events])))


def test_what_follows_from_static_data_alone_comes_first() -> None:
    rules = "[axiom: -> (:a :edge :b)]" + CONTINUOUS
    came = told(job(rules).run([stream("5 :c :edge :d")], static(":x :edge :y")))
    always = expected("always :a :edge :b\nalways :a :path :b\nalways :x :path :y")
    assert {time for time, _ in always} == {ALWAYS}
    assert sorted(came[:3]) == sorted(always)
    assert came[3:] == expected("5 :c :path :d")


# Late events


@pytest.mark.parametrize("rules", [CONTINUOUS, OPEN], ids=["at once", "held back"])
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_an_event_before_the_latest_is_late_wherever_batches_are_cut(rules: str, cut: int) -> None:
    events = stream("5 :a :edge :b\n3 :c :edge :d, :a\n5 :c :edge :b\n6 :b :edge :b")
    losses = Losses()
    came = told(job(rules, losses).run([events[:cut], events[cut:]]))
    assert sorted(came) == sorted(expected("5 :a :path :b\n5 :c :path :b\n6 :b :path :b"))
    assert [cause for cause, _ in losses.found] == ["late", "late"]
    assert all(text.startswith("3 ") for _, text in losses.found)


def test_an_event_of_an_instant_that_is_complete_is_late() -> None:
    losses = Losses()
    made = job(OPEN, losses)
    came = made.run([stream("1 :a :edge :b\n2 :b :edge :c"), stream("1 :a :shut :b\n2 :b :shut :c")])
    assert told(came) == expected("1 :a :path :b")
    assert [text.partition(" ")[0] for _, text in losses.found] == ["1"]


def test_without_a_ledger_a_late_event_is_an_error() -> None:
    with pytest.raises(BuilderError, match="an event at 1 comes after a later one") as caught:
        list(job(CONTINUOUS).run([stream("2 :a :edge :b\n1 :a :edge :c")]))
    assert "ledger" in (caught.value.hint or "")


@pytest.mark.parametrize("options", [Options(conf=(("a", "b"),))])
def test_what_it_does_not_have_is_refused(options: Options) -> None:
    with pytest.raises(BuilderError, match="no setting `a`"):
        squall.build(plan(CONTINUOUS), "iterator", options)


# What reaches which node


class Recorder:
    """An operator that notes what it is told, and answers with nothing."""

    def __init__(self) -> None:
        self.taken: list[Entry] = []

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        self.taken += entries
        return []


def entry(*row: str) -> Entry:
    return row, 0, FOREVER, 1


def recorded(made: Plan, facts: Sequence[Entry]) -> dict[tuple[Cell, ...], list[Entry]]:
    """What each `Match` is told, by its cells."""
    machine = Machine(made)
    recorders = {node.id: Recorder() for node in made.nodes if isinstance(node.op, Match)}
    machine.operators.update(recorders)
    machine.read("", facts)
    machine.run()
    return {node.op.cells: recorders[node.id].taken for node in made.nodes if isinstance(node.op, Match)}


def test_a_fact_reaches_only_the_matches_whose_constants_it_has() -> None:
    rules = (
        "[a: (?x :edge ?y) -> (?x :k1 ?y)] [b: (?x :edge :b) -> (?x :k2 :k)] [c: (:a :edge ?y) -> (?y :k3 :k)]"
        "[d: (?x :shut ?y) -> (?x :k4 ?y)] [e: (?x ?p ?y) -> (?x :k5 ?y)] [f: (?x ?p :b) -> (?x :k6 :k)]"
    )
    a, b, c, _ = NODES
    facts = [entry(a, EDGE, b), entry(c, EDGE, c), entry(c, SHUT, b)]
    assert recorded(plan(rules), facts) == {
        (0, EDGE, 1): facts[:2],
        (0, EDGE, b): facts[:1],
        (a, EDGE, 0): facts[:1],
        (0, SHUT, 1): facts[2:],
        (0, 1, 2): facts,
        (0, 1, b): [facts[0], facts[2]],
    }


@given(facts=st.lists(st.builds(Triple, *[st.sampled_from([*NODES[:2], EDGE, SHUT])] * 3), max_size=8))
def test_what_a_match_is_not_told_does_not_fit_it(facts: list[Triple]) -> None:
    rules = "[a: (?x :edge ?x) -> (?x :k ?x)] [b: (:a ?p :b) -> (?p :k :k)] [c: (:a :edge :b) -> (:k :k :k)]"
    made = plan(rules)
    taken = [entry(*fact_row(fact)) for fact in facts]
    operators = Machine(made).operators
    matches = {node.op.cells: operators[node.id] for node in made.nodes if isinstance(node.op, Match)}
    for cells, told_of in recorded(made, taken).items():
        assert matches[cells].apply(0, told_of) == matches[cells].apply(0, taken)


def test_a_source_is_read_by_those_that_name_it_and_by_the_default() -> None:
    rule = squall.compile(f"@prefix : <{E}> .\n{CONTINUOUS}", lexer="jena").subsystems[0]
    named = replace(rule, sources=(Source("urn:named"),), consequences=(Construct((Pattern(X, SHUT, Y),)),))
    made = IteratorJob(squall.plan(squall.System(subsystems=(rule, named))), Options())
    texts = {"urn:named": "1 :a :edge :b", "urn:other": "2 :a :edge :c", "": "3 :a :edge :d"}
    came = made.run([[replace(event, stream=name) for event in stream(text)] for name, text in texts.items()])
    assert sorted(told(came)) == sorted(expected("1 :a :path :b\n1 :a :shut :b\n2 :a :path :c\n3 :a :path :d"))


# Machines that host a part of a plan


JOINING = "[r: (?x :edge ?y) (?y :edge ?z) -> (?x :path ?z)]"


def test_what_is_meant_for_others_is_left_in_the_outbox() -> None:
    made = plan(JOINING)
    machine = Machine(made, hosted=())
    machine.read("", [entry(NODES[0], EDGE, NODES[1]), entry(NODES[0], SHUT, NODES[1])])
    machine.run()
    ((address, entries),) = machine.outbox.items()
    assert is_stateful(made.by_id[address[0]].op)
    assert entries == [entry(NODES[0], NODES[1])]
    assert not any(is_stateful(made.by_id[id].op) for id in machine.operators)


def test_a_part_works_off_what_is_its_own() -> None:
    made = plan(JOINING, "greedy")
    own = [node.id for node in made.nodes if isinstance(node.op, Join)]
    machine = Machine(made, hosted=own)
    machine.receive((own[0], 0), [entry(NODES[0], NODES[1])])
    machine.receive((own[0], 1), [entry(NODES[1], NODES[2])])
    machine.run()
    ((address, entries),) = machine.outbox.items()
    assert address[0] not in own
    assert [row[:3] for row, *_ in entries] == [(NODES[0], PATH, NODES[2])]


@given(events=EVENTS)
@settings(max_examples=40, deadline=None)
def test_two_machines_that_exchange_their_outboxes_do_the_same_as_one(events: list[Event]) -> None:
    made = plan(OPEN + REACHES)
    keeping = [node.id for node in made.nodes if is_stateful(node.op)]
    for hosted in (keeping[::2], keeping[:-1]):
        whole = Machine(made)
        parts = [Machine(made, hosted), Machine(made, [id for id in keeping if id not in hosted])]
        entries = [(fact_row(fact), event.time, FOREVER, 1) for event in events for fact in event.facts]
        whole.read("", entries)
        whole.run()
        parts[0].read("", entries)
        for _ in range(200):
            for one, other in (parts, parts[::-1]):
                one.run()
                sent, one.outbox = one.outbox, {}
                for address, rows in sent.items():
                    other.receive(address, rows)
        deliver = deliver_of(made)
        assert not any(part.inbox or part.outbox for part in parts)
        last = next(part.operators[deliver] for part in parts if deliver in part.operators)
        assert _counts(last) == _counts(whole.operators[deliver])


def _counts(op: object) -> dict[object, dict[int, int]]:
    assert isinstance(op, Deliver)
    return {fact: steps for fact, steps in op.counts.items() if steps}


def test_what_is_kept_is_told_once_and_restores_a_machine() -> None:
    made = plan(OPEN + REACHES)
    first, second, whole = Machine(made), Machine(made), Machine(made)
    first.keep()
    a, b, c, d = NODES
    before, after = [entry(a, EDGE, b), entry(b, EDGE, c)], [entry(c, EDGE, d), entry(a, SHUT, b)]
    first.read("", before)
    first.run()
    store: dict[tuple[str, int], list[Entry]] = {}
    for id, slot, entries in first.kept():
        store.setdefault((id, slot), []).extend(entries)
    assert list(first.kept()) == []
    for (id, slot), entries in sorted(store.items()):
        op = second.operators[id]
        assert isinstance(op, Keeping)
        op.restore(slot, entries)
    second.read("", after)
    second.run()
    whole.read("", before)
    whole.run()
    whole.read("", after)
    whole.run()
    assert _counts(second.operators[deliver_of(made)]) == _counts(whole.operators[deliver_of(made)])


def test_the_right_side_of_a_negation_is_worked_off_first() -> None:
    """So that what is not there from the start is never said and taken back."""
    made = plan(OPEN)
    (anti,) = (node for node in made.nodes if isinstance(node.op, AntiJoin))
    ((emit, _),) = made.consumers[anti.id]
    machine = Machine(made)
    recorder = machine.operators[emit] = Recorder()
    a, b, c, _ = NODES
    machine.receive((anti.id, 0), [entry(a, b), entry(a, c)])
    machine.receive((anti.id, 1), [entry(a, b)])
    machine.run()
    assert recorder.taken == [entry(a, c)]
