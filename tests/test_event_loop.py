"""The event loop and the iterator job: fixpoints, deletions, which deltas reach which node, and the time of output."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.builders.local.job import IteratorJob
from squall.builders.runtime import creation_limit
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.operators.output import OutputOperator
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.model import Construct, Delete, Pattern, Source, System, Variable
from squall.model.windows import LANDMARK, SlidingWindow, Window
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import AntiJoin, Join, is_stateful
from squall.plan.validation import check
from squall.rdf import ALWAYS, FOREVER, Columns, Event, Term, Triple, iri
from squall.testing.check import Losses, assert_as_oracle
from squall.testing.streams import static, stream, timed
from tests.laws import examples_of
from tests.snapshots import forget

E = "http://example.org/"
EDGE, SHUT, REACH, PATH = (iri(E + name) for name in ("edge", "shut", "reach", "path"))
X, Y = map(Variable, "xy")
NODES = [iri(f"{E}{name}") for name in "abcd"]

OPEN = "[open: (?x :edge ?y) noValue(?x :shut ?y) -> (?x :path ?y)]"
PAIRS = "[pair: (?x :edge ?z) (?y :edge ?z) -> (?x :reach ?y)]"
REACHES = "[step: (?x :path ?y) -> (?x :reach ?y)] [on: (?x :reach ?y) (?y :path ?z) -> (?x :reach ?z)]"
NONLINEAR = "[step: (?x :path ?y) -> (?x :reach ?y)] [on: (?x :reach ?y) (?y :reach ?z) -> (?x :reach ?z)]"
WITHIN = (
    "[step: (?x :edge ?y) -> (?x :reach ?y)] [on: (?x :reach ?y) (?y :edge ?z) noValue(?x :shut ?z) -> (?x :reach ?z)]"
)
"""Rules with negation below a recursion, twice, and inside one, of a predicate that does not depend on the
recursion."""


def plan(text: str, planner: str = "rete") -> Plan:
    return squall.plan(squall.compile(f"@prefix : <{E}> .\n{text}", lexer="jena"), planner)


def job(text: str, ledger: Losses | None = None, tuning: Tuning = DEFAULT_TUNING) -> IteratorJob:
    return IteratorJob(plan(text), Options(ledger=ledger), tuning)


def output_rows(outputs: Iterable[Output]) -> list[tuple[int, str]]:
    """Returns the outputs as lines of a stream."""
    return [(out.time, str(out.fact)) for out in outputs]


def expected(text: str) -> list[tuple[int, str]]:
    return [(time, str(fact)) for time, fact in timed(text)]


# Delete and rederive


Change = tuple[bool, Term, Term]
"""Whether an edge is closed (and not open), and its two ends."""
CHANGES = st.tuples(st.booleans(), st.sampled_from(NODES), st.sampled_from(NODES))


def reachable(edges: set[tuple[str, str]], shut: set[tuple[str, str]], within: bool) -> set[tuple[str, str]]:
    """Computes the expected result of the programs from scratch."""
    steps = edges if within else edges - shut
    results = set(steps)
    while True:
        further = {(x, z) for x, y in results for w, z in steps if y == w and not (within and (x, z) in shut)}
        if further <= results:
            return results
        results |= further


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@pytest.mark.parametrize("rules", [OPEN + REACHES, OPEN + NONLINEAR, WITHIN], ids=["linear", "nonlinear", "within"])
@given(batches=st.lists(st.lists(CHANGES, min_size=1, max_size=5), max_size=6))
@settings(max_examples=examples_of(25), deadline=None)
def test_deletions_agree_with_recomputation(planner: str, rules: str, batches: list[list[Change]]) -> None:
    """A graph grows and loses edge by edge; after each batch, the valid facts follow from the current edges."""
    query_plan = plan(rules, planner)
    dataflow = Dataflow(query_plan)
    deliver = dataflow.operators[query_plan.sink[0].id]
    assert isinstance(deliver, OutputOperator)
    dataflow.start()
    edges: set[tuple[str, str]] = set()
    shut: set[tuple[str, str]] = set()
    for time, batch in enumerate(batches):
        facts = [Triple(start, SHUT if shuts else EDGE, end) for shuts, start, end in batch]
        dataflow.read([Event(time, tuple(facts))])
        dataflow.run(time)
        deliver.flush(time)
        edges |= {(start, end) for shuts, start, end in batch if not shuts}
        shut |= {(start, end) for shuts, start, end in batch if shuts}
        valid = {(fact[0], fact[2]) for fact in deliver.counts if fact[1] == REACH}
        assert valid == reachable(edges, shut, within=rules == WITHIN)


@pytest.mark.parametrize("rules", [OPEN + REACHES, OPEN + NONLINEAR])
def test_two_facts_do_not_hold_each_other_up(rules: str) -> None:
    """A cycle of derivations is deleted when its only reason is deleted."""
    events = stream("1 :a :edge :b\n1 :b :edge :c\n1 :c :edge :b\n2 :a :shut :b\n3 :d :edge :d")
    query_plan = squall.plan(
        squall.System(
            subsystems=squall.compile(f"@prefix : <{E}> .\n{rules}", lexer="jena").subsystems, output="dstream"
        )
    )
    removals = [line for line in output_rows(squall.run(query_plan, events)) if "reach" in line[1]]
    assert sorted(removals) == sorted(expected("2 :a :reach :b\n2 :a :reach :c"))


def test_a_fact_with_another_derivation_is_restored_and_not_output_again() -> None:
    events = stream("1 :a :edge :b\n1 :a :edge :c\n1 :c :edge :b\n1 :b :edge :d\n2 :a :shut :b\n3 :x :edge :y")
    outputs = output_rows(job(OPEN + REACHES).run([events]))
    assert [line for line in outputs if line[0] == 2] == []
    assert expected("1 :a :reach :d")[0] in outputs


# When outputs are emitted


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


def test_what_cannot_be_retracted_is_output_at_once() -> None:
    taps = Taps([stream("1 :a :edge :b"), stream("1 :c :edge :d\n2 :a :edge :d")])
    outputs = job(CONTINUOUS).run(taps)
    assert output_rows([next(outputs)]) == expected("1 :a :path :b")
    assert taps.asked == [0]
    assert output_rows(outputs) == expected("1 :c :path :d\n2 :a :path :d")


@pytest.mark.fault("W7")
@pytest.mark.parametrize("window", [LANDMARK, SlidingWindow(5)], ids=str)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?x { ?x :edge+ ?y }", "SELECT DISTINCT ?x { ?x :edge ?y }", "SELECT REDUCED ?x { ?x :edge|^:edge ?y }",
        "SELECT (STR(?x) AS ?text) { { ?x :edge ?y } UNION { ?y :edge ?x } FILTER(?x != :z) }",
        "CONSTRUCT { ?x :path ?y } { ?x :edge ?y }",
    ],
)  # fmt: skip
def test_a_query_that_is_monotone_answers_at_once(query: str, window: Window) -> None:
    taps = Taps([stream("1 :a :edge :b"), stream("1 :c :edge :d\n2 :a :edge :d")])
    system = squall.compile(f"PREFIX : <{E}> {query}", lexer="sparql", window=window)
    outputs = IteratorJob(squall.plan(system), Options()).run(taps)
    first = next(outputs)
    assert first.time == 1
    assert taps.asked == [0]
    assert_as_oracle(system, [first, *outputs], [event for batch in taps.batches for event in batch])


def test_an_instant_with_negation_is_held_back_until_time_has_passed_it() -> None:
    """An edge that is closed at the same instant, in a later batch, was never open."""
    taps = Taps([stream("1 :a :edge :b\n1 :c :edge :d"), stream("1 :a :shut :b"), stream("2 :x :edge :y")])
    outputs = job(OPEN).run(taps)
    assert output_rows([next(outputs)]) == expected("1 :c :path :d")
    assert taps.asked == [0, 1, 2], "the instant is whole when a later event has come"
    assert output_rows(outputs) == expected("2 :x :path :y")


def test_the_end_of_the_input_completes_the_last_instant() -> None:
    assert output_rows(job(OPEN).run([stream("1 :a :edge :b")])) == expected("1 :a :path :b")
    assert output_rows(job(OPEN).run([[], stream("1 :a :edge :b"), []])) == expected("1 :a :path :b")


@pytest.mark.parametrize("output", ["dstream", "rstream"])
def test_an_answer_by_instants_is_held_back_as_well(output: str) -> None:
    system = squall.compile(f"@prefix : <{E}> .\n{CONTINUOUS}", lexer="jena")
    result = IteratorJob(squall.plan(squall.System(subsystems=system.subsystems, output=output)), Options())
    assert result.buffer.needs_complete_instants
    assert not job(CONTINUOUS).buffer.needs_complete_instants


EVENTS = st.lists(
    st.builds(
        lambda time, facts: Event(time, facts),
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
@settings(max_examples=examples_of(25), deadline=None)
def test_outputs_are_in_the_order_of_time_however_the_stream_is_cut(
    rules: str, events: list[Event], cuts: set[int]
) -> None:
    bounds = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    batches = [events[start:end] for start, end in pairwise(bounds)]
    outputs = output_rows(job(rules).run(batches))
    assert [time for time, _ in outputs] == sorted(time for time, _ in outputs)
    assert sorted(outputs) == sorted(output_rows(job(rules).run([events])))


def test_outputs_of_static_data_come_first() -> None:
    rules = "[axiom: -> (:a :edge :b)]" + CONTINUOUS
    outputs = output_rows(job(rules).run([stream("5 :c :edge :d")], static(":x :edge :y")))
    always = expected("always :a :edge :b\nalways :a :path :b\nalways :x :path :y")
    assert {time for time, _ in always} == {ALWAYS}
    assert sorted(outputs[:3]) == sorted(always)
    assert outputs[3:] == expected("5 :c :path :d")


# Late events


@pytest.mark.parametrize("rules", [CONTINUOUS, OPEN], ids=["at once", "held back"])
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_an_event_before_the_latest_is_late_wherever_batches_are_cut(rules: str, cut: int) -> None:
    events = stream("5 :a :edge :b\n3 :c :edge :d, :a\n5 :c :edge :b\n6 :b :edge :b")
    losses = Losses()
    outputs = output_rows(job(rules, losses).run([events[:cut], events[cut:]]))
    assert sorted(outputs) == sorted(expected("5 :a :path :b\n5 :c :path :b\n6 :b :path :b"))
    assert [cause for cause, _ in losses.found] == ["late", "late"]
    assert all(text.startswith("3 ") for _, text in losses.found)


def test_an_event_of_an_instant_that_is_complete_is_late() -> None:
    losses = Losses()
    result = job(OPEN, losses)
    outputs = result.run([stream("1 :a :edge :b\n2 :b :edge :c"), stream("1 :a :shut :b\n2 :b :shut :c")])
    assert output_rows(outputs) == expected("1 :a :path :b")
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


def delta_of(*row: str) -> Delta:
    return (*row, 0, FOREVER, 1)


def test_a_source_is_read_by_those_that_name_it_and_by_the_default() -> None:
    rule = squall.compile(f"@prefix : <{E}> .\n{CONTINUOUS}", lexer="jena").subsystems[0]
    names = replace(rule, sources=(Source("urn:named"),), consequences=(Construct((Pattern(X, SHUT, Y),)),))
    result = IteratorJob(squall.plan(squall.System(subsystems=(rule, names))), Options())
    texts = {"urn:named": "1 :a :edge :b", "urn:other": "2 :a :edge :c", "": "3 :a :edge :d"}
    outputs = result.run([[event._replace(stream=name) for event in stream(text)] for name, text in texts.items()])
    assert sorted(output_rows(outputs)) == sorted(
        expected("1 :a :path :b\n1 :a :shut :b\n2 :a :path :c\n3 :a :path :d")
    )


# Machines that host a part of a plan


JOINING = "[r: (?x :edge ?y) (?y :edge ?z) -> (?x :path ?z)]"


def test_rows_for_other_partitions_stay_in_the_outbox() -> None:
    query_plan = plan(JOINING)
    dataflow = Dataflow(query_plan, hosted=())
    dataflow.read([Event(0, (Triple(NODES[0], EDGE, NODES[1]), Triple(NODES[0], SHUT, NODES[1])))])
    dataflow.run()
    ((address, deltas),) = dataflow.outbox.items()
    assert is_stateful(query_plan.by_id[address[0]].op)
    assert deltas == [delta_of(NODES[0], NODES[1])]
    assert not any(is_stateful(query_plan.by_id[id].op) for id in dataflow.operators)


def test_a_partition_processes_its_own_rows() -> None:
    query_plan = plan(JOINING, "greedy")
    own = [node.id for node in query_plan.nodes if isinstance(node.op, Join)]
    dataflow = Dataflow(query_plan, hosted=own)
    dataflow.receive((own[0], 0), [delta_of(NODES[0], NODES[1])])
    dataflow.receive((own[0], 1), [delta_of(NODES[1], NODES[2])])
    dataflow.run()
    ((address, deltas),) = dataflow.outbox.items()
    assert address[0] not in own
    assert [row[:3] for row in deltas] == [(NODES[0], PATH, NODES[2])]


@given(events=EVENTS)
@settings(max_examples=examples_of(25), deadline=None)
def test_two_machines_that_exchange_their_outboxes_do_the_same_as_one(events: list[Event]) -> None:
    """A recursion stays in one dataflow: across dataflows, all of them go through the phases of deletion and
    rederivation together."""
    query_plan = plan(OPEN + REACHES)
    keeping = [node.id for node in query_plan.nodes if is_stateful(node.op)]
    units = [[id for id in component if id in keeping] for component in query_plan.components]
    units = [unit for unit in units if unit]
    for hosted in ([id for unit in units[::2] for id in unit], [id for unit in units[:-1] for id in unit]):
        full_result = Dataflow(query_plan)
        parts = [Dataflow(query_plan, hosted), Dataflow(query_plan, [id for id in keeping if id not in hosted])]
        full_result.read(events)
        full_result.run()
        parts[0].read(events)
        for _ in range(200):
            for item, other in (parts, parts[::-1]):
                item.run()
                sent, item.outbox = item.outbox, {}
                for address, rows in sent.items():
                    other.receive(address, rows)
        deliver = query_plan.sink[0].id
        assert not any(part.inbox or part.outbox for part in parts)
        last = next(part.operators[deliver] for part in parts if deliver in part.operators)
        assert _counts(last) == _counts(full_result.operators[deliver])


def _counts(op: object) -> Mapping[Row, int]:
    assert isinstance(op, OutputOperator)
    op.flush(FOREVER - 1)
    return op.counts


def test_the_changelog_has_each_change_once_and_restores_a_dataflow() -> None:
    query_plan = plan(OPEN + REACHES)
    first, second, full_result = Dataflow(query_plan), Dataflow(query_plan), Dataflow(query_plan)
    first.states.enable_changelog()
    before, after = stream("0 :a :edge :b\n0 :b :edge :c"), stream("0 :c :edge :d\n0 :a :shut :b")
    first.read(before)
    first.run()
    store: dict[tuple[str, int], list[Delta]] = {}
    for id, slot, deltas in first.states.drain_changelog():
        store.setdefault((id, slot), []).extend(deltas)
    assert list(first.states.drain_changelog()) == []
    for (id, slot), deltas in sorted(store.items()):
        op = second.operators[id]
        assert isinstance(op, Stateful)
        op.restore(slot, deltas)
    second.read(after)
    second.run()
    full_result.read(before)
    full_result.run()
    full_result.read(after)
    full_result.run()
    assert _counts(second.operators[query_plan.sink[0].id]) == _counts(full_result.operators[query_plan.sink[0].id])


def test_the_right_side_of_a_negation_is_processed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """So nothing is output and retracted that was excluded from the start."""
    query_plan = plan(OPEN)
    (anti,) = (node.id for node in query_plan.nodes if isinstance(node.op, AntiJoin))
    dataflow = Dataflow(query_plan)
    deltas_by_node: dict[str, list[Delta]] = {}
    monkeypatch.setattr(dataflow, "emit", lambda id, deltas: deltas_by_node.setdefault(id, []).extend(deltas))
    a, b, c, _ = NODES
    dataflow.receive((anti, 0), [delta_of(a, b), delta_of(a, c)])
    dataflow.receive((anti, 1), [delta_of(a, b)])
    dataflow.run()
    assert deltas_by_node == {anti: [delta_of(a, c)]}


def test_rows_are_routed_by_their_constants() -> None:
    """Several `Where` nodes read one node and test different columns; no row satisfies one of them."""
    a, b, c, _ = NODES
    wheres = [(1, b), (1, c), (0, a), (0, SHUT)]
    nodes = [Node("read", ops.Scan(Source())), Node("match", ops.Match((0, EDGE, 1)), (Input("read"),))]
    nodes += [Node(f"where{n}", ops.ConstantFilter(*item), (Input("match"),)) for n, item in enumerate(wheres)]
    nodes += [
        Node(f"emit{n}", ops.Construct((0, iri(f"{E}{n}"), 1)), (Input(f"where{n}"),)) for n in range(len(wheres))
    ]
    result = check(Plan((*nodes, Node("end", ops.Sink(), tuple(Input(f"emit{n}") for n in range(len(wheres)))))))
    outputs = output_rows(IteratorJob(result, Options()).run([stream("1 :a :edge :b\n2 :b :edge :c\n3 :c :edge :a")]))
    assert sorted(outputs) == sorted(expected("1 :a :0 :b\n1 :a :2 :b\n2 :b :1 :c"))


# What is forgotten


WINDOWED = [
    CONTINUOUS, OPEN, OPEN + REACHES, "[r: (?x :edge ?y) (?y :edge ?z) -> (?x :path ?z)]",
    "[r: (?x :edge ?y) (?y :edge ?z) noValue(?x :shut ?z) -> (?x :path ?z)]",
]  # fmt: skip


def windowed(rules: str, output: str, removals: bool = False) -> Plan:
    system = squall.compile(f"@prefix : <{E}> .\n{rules}", lexer="jena", window="RANGE 20ms", removals=removals)
    return squall.plan(replace(system, output=output))


@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize("removals", [True, False], ids=["removals", ""])
@pytest.mark.parametrize("rules", WINDOWED, ids=["continuous", "open", "reaches", "join", "join without"])
@given(events=EVENTS)
@settings(max_examples=examples_of(5), deadline=None)
def test_memories_are_empty_when_the_last_window_has_closed(
    output: str, removals: bool, rules: str, events: list[Event]
) -> None:
    """This is law 6 (docs/semantics.md, section 6)."""
    result = IteratorJob(windowed(rules, output, removals), Options())
    list(result.run([events]))
    for op in result.dataflow.states.values():
        forget(op, FOREVER - 1)
    assert not any(result.dataflow.state().values())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rules", WINDOWED, ids=["continuous", "open", "reaches", "join", "join without"])
def test_memories_stay_small_however_long_the_stream_is(rules: str) -> None:
    """The state is at most a few times the valid rows."""
    result = IteratorJob(windowed(rules, "istream"), Options())
    ends = [iri(f"{E}{name}") for name in range(2000)]
    events = [Event(time, (Triple(ends[time], EDGE, ends[time - 1]),)) for time in range(2000)]
    largest: list[int] = []
    for number, _ in enumerate(result.run(events[start : start + 50] for start in range(0, len(events), 50))):
        if number % 50 == 0:
            largest.append(max(result.dataflow.state().values()))
    assert len(largest) > 30
    assert max(largest) < 1200


@pytest.mark.parametrize("every", [3, 30])
@pytest.mark.parametrize("rules", WINDOWED, ids=["continuous", "open", "reaches", "join", "join without"])
def test_state_stays_small_with_repeated_facts(rules: str, every: int) -> None:
    """The facts repeat with gaps and without. The state of a row describes its future, and not its past."""
    result = IteratorJob(windowed(rules, "dstream"), Options())
    facts = [Triple(iri(f"{E}a"), EDGE, iri(f"{E}b")), Triple(iri(f"{E}b"), EDGE, iri(f"{E}a"))]
    events = [Event(every * time, (facts[time % 2],)) for time in range(4000)]
    largest = 0
    list(result.start([], 0))
    for start in range(0, len(events), 50):
        list(result.process(events[start : start + 50]))
        largest = max(largest, *map(_held, result.dataflow.states.values()))
    assert largest < 4000


def _held(memory: object) -> int:
    """Returns the total number of objects in an operator's state."""
    if isinstance(memory, dict):
        return len(memory) + sum(map(_held, memory.values()))
    if isinstance(memory, list | tuple | set):
        return len(memory) + sum(map(_held, memory))
    own = type(memory).__module__.startswith("squall.builders") and hasattr(memory, "__dict__")
    return sum(map(_held, vars(memory).values())) if own else 0


@pytest.mark.parametrize("rules", WINDOWED, ids=["continuous", "open", "reaches", "join", "join without"])
@given(events=EVENTS)
@settings(max_examples=examples_of(8), deadline=None)
def test_early_expiry_does_not_change_outputs(rules: str, events: list[Event]) -> None:
    spread = [event._replace(time=5 * event.time) for event in events]
    eager = IteratorJob(windowed(rules, "dstream"), Options())

    def one_by_one() -> Iterator[Sequence[Event]]:
        for event in spread:
            yield [event]
            for op in eager.dataflow.states.values():
                forget(op, eager.watermark)

    lazy = IteratorJob(windowed(rules, "dstream"), Options())
    assert Counter(output_rows(eager.run(one_by_one()))) == Counter(output_rows(lazy.run([spread])))


# Rules that take facts out of the streams


def deleting(*templates: Pattern, output: str = "dstream") -> System:
    """Returns a system with an update that deletes open edges to closed nodes, and a rule that outputs the edges."""
    Z = Variable("z")
    copy = System(name="copy", joinables=(Pattern(X, EDGE, Y),), consequences=(Construct((Pattern(X, PATH, Y),)),))
    cut = System(name="cut", joinables=(Pattern(X, EDGE, Y), Pattern(Y, SHUT, Z)), consequences=(Delete(templates),))
    return System(subsystems=tuple(replace(item, sources=(Source(),)) for item in (copy, cut)), output=output)


def test_what_a_rule_deletes_ends_at_the_next_instant() -> None:
    query_plan = squall.plan(deleting(Pattern(X, EDGE, Y)))
    events = stream("1 :a :edge :b\n1 :c :edge :d\n5 :b :shut :b\n9 :x :edge :y")
    assert output_rows(squall.run(query_plan, events)) == expected("6 :a :path :b")


def test_repeated_facts_are_deleted_again() -> None:
    query_plan = squall.plan(deleting(Pattern(X, EDGE, Y)))
    events = stream("1 :b :shut :b\n3 :a :edge :b\n6 :a :edge :b\n9 :x :edge :y")
    assert output_rows(squall.run(query_plan, iter(events))) == expected("4 :a :path :b\n7 :a :path :b")


def test_static_facts_are_deleted() -> None:
    query_plan = squall.plan(deleting(Pattern(X, EDGE, Y)))
    outputs = output_rows(squall.run(query_plan, stream("5 :b :shut :b\n9 :x :edge :y"), static=static(":a :edge :b")))
    assert outputs == expected("6 :a :path :b")


@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
@given(events=EVENTS, cuts=st.sets(st.integers(0, 8)))
@settings(max_examples=examples_of(15), deadline=None)
def test_deletions_agree_with_the_oracle_in_any_batches(output: str, events: list[Event], cuts: set[int]) -> None:
    system = deleting(Pattern(X, EDGE, Y), Pattern(Y, SHUT, X), output=output)
    result = IteratorJob(squall.plan(system), Options())
    bounds = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    outputs = list(result.run([events[start:end] for start, end in pairwise(bounds)]))
    assert_as_oracle(system, outputs, events)


def test_demands_before_the_first_event_are_no_instant() -> None:
    a, b, *_ = NODES
    axiom = System(name="axiom", consequences=(Delete((Pattern(a, EDGE, b),)), Construct((Pattern(a, SHUT, a),))))
    path = Construct((Pattern(X, PATH, Y),))
    copy = System(name="copy", sources=(Source(),), joinables=(Pattern(X, EDGE, Y),), consequences=(path,))
    query_plan = squall.plan(System(subsystems=(axiom, copy), output="rstream"))
    outputs = output_rows(squall.run(query_plan, stream("5 :a :edge :b")))
    assert sorted(outputs) == sorted(expected("always :a :shut :a\n5 :a :shut :a\n5 :a :path :b"))


# Large batches

SMALL_PASSES = Tuning(max_events_per_pass=7)


def test_a_large_batch_is_processed_in_parts() -> None:
    events = [Event(time, (Triple(NODES[time % 4], EDGE, NODES[time % 3]),)) for time in range(40)]
    outputs = output_rows(job(OPEN + REACHES).run([events]))
    assert output_rows(job(OPEN + REACHES, tuning=SMALL_PASSES).run([events])) == outputs


def test_large_columns_are_processed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [Event(time, (Triple(NODES[time % 4], EDGE, NODES[time % 3]),)) for time in range(40)]
    outputs = output_rows(job(OPEN + REACHES).run([events]))
    reading, lots = Dataflow.read, list[int]()

    def read(dataflow: Dataflow, batch: Sequence[Event]) -> None:
        lots.append(len(batch))
        reading(dataflow, batch)

    monkeypatch.setattr(Dataflow, "read", read)
    assert output_rows(job(OPEN + REACHES, tuning=SMALL_PASSES).run([Columns.of(events)])) == outputs
    assert sum(lots) == 40
    assert max(lots) == 6  # the last event of each part waits until its instant is complete


def test_a_join_makes_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a run with a quadratic plan can be interrupted: otherwise a list of all rows has to be freed first."""
    size, tuning = 150, replace(DEFAULT_TUNING, first_join_part=16)
    events = [Event(0, tuple(Triple(iri(f"{E}{number}"), EDGE, NODES[0]) for number in range(size)))]
    apply, sizes = Dataflow.apply, list[int]()
    monkeypatch.setattr(creation_limit, "ROWS_PER_PART", 1000)

    def counting(dataflow: Dataflow, id: str, port: int, deltas: Sequence[Delta]) -> Sequence[Delta]:
        output = apply(dataflow, id, port, deltas)
        sizes.append(len(output))
        return output

    monkeypatch.setattr(Dataflow, "apply", counting)
    assert len(output_rows(job(PAIRS + OPEN, tuning=tuning).run([events]))) == size**2 + size
    assert max(sizes) == tuning.first_join_part * size


def test_the_state_of_a_job_is_freed_with_its_last_reference() -> None:
    """No reference cycle keeps it until the collector runs, which a program with large states may have switched off."""
    plan = squall.plan(
        squall.compile("SELECT * { ?x :p ?y . ?y :p ?z }", lexer="sparql", prefixes={"": "http://example.org/"})
    )
    gc.disable()
    try:
        job = squall.build(plan, "iterator")
        assert list(job.run([stream("1 :a :p :b\n2 :b :p :c")]))
        freed = weakref.ref(job)
        del job
        assert freed() is None
    finally:
        gc.enable()
