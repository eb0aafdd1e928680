"""Scans through windows: the validity of facts agrees with the definition (docs/semantics.md, section 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.builders.runtime.operators.scan import ScannedFacts, ScanOperator
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.builders.runtime.zset import ColumnarPairs, Delta, fact_row
from squall.errors import SourceError
from squall.model import ARRIVAL, GRAPH, Arrivals, Graphs, Source
from squall.model.windows import (
    EMPTY,
    LANDMARK,
    CountWindow,
    FirstTriple,
    HoppingWindow,
    OpenHoppingWindow,
    SlidingWindow,
    Window,
)
from squall.rdf import ALWAYS, FOREVER, WORKING, XSD, Atom, Columns, Event, Fact, Term, Triple, heartbeat, iri, literal
from tests.laws import examples_of
from tests.snapshots import ONE, A, B, Bag, C, at

S, T = "urn:s", "urn:t"
P, Q = iri("urn:p"), iri("urn:q")
FACTS: tuple[Fact, ...] = (Triple(A, P, B), Triple(A, Q, B), Triple(B, P, ONE), Atom(C, (A, ONE)))
INSTANTS = (ALWAYS, *range(-2, 50))
WINDOWS = (
    LANDMARK, SlidingWindow(3), SlidingWindow(1), HoppingWindow(4, 2), HoppingWindow(4, 2, closed=True),
    HoppingWindow(3, 3, origin=1), HoppingWindow(2, 4), HoppingWindow(5, 3, origin=-7, closed=True), CountWindow(1),
    CountWindow(3), CountWindow(2, 2), CountWindow(5, 2), CountWindow(2, 5),
    HoppingWindow(5, 3, FirstTriple(2)), OpenHoppingWindow(5, 3), OpenHoppingWindow(4, 2, FirstTriple(3), closed=True),
)  # fmt: skip


# The definition


@dataclass
class Stay:
    """A fact that an event brought, with the interval over which it is valid."""

    fact: Fact
    stream: str
    arrival: int
    start: int
    end: int


def stays(source: Source, events: Sequence[Event]) -> list[Stay]:
    """Returns the facts of a source with their validity, for events in the order of arrival."""
    results: list[Stay] = []
    for stream in dict.fromkeys(event.stream for event in events):
        if source.iri in ("", stream):
            stream_events = [event for event in events if event.stream == stream]
            stays = list(_windowed(source.window_of(stream), stream_events))
            brought = 0
            for event in stream_events:
                for stay in stays[:brought]:
                    if stay.fact in event.removed:
                        stay.end = min(stay.end, event.time)
                brought += len(event.facts) if event.time != ALWAYS else 0
            results += stays
    return results


def _windowed(window: Window, events: Sequence[Event]) -> Iterator[Stay]:
    """Returns the facts of one stream with their validity through its window."""
    brought = [(fact, event.time) for event in events for fact in event.facts if event.time != ALWAYS]
    times = [time for _, time in brought]
    if isinstance(window, HoppingWindow) and times:
        window = window.begun_at(times[0])
    for number, (fact, time) in enumerate(brought):
        start, end = _counted(window, number, times) if isinstance(window, CountWindow) else window.validity(time)
        yield Stay(fact, events[0].stream, time, start, end)
    for event in events:
        if event.time == ALWAYS:
            yield from (Stay(fact, event.stream, FOREVER, ALWAYS, FOREVER) for fact in event.facts)


def _counted(window: CountWindow, number: int, times: Sequence[int]) -> tuple[int, int]:
    """Returns the validity of the fact of this number: the window holds the last facts, and its content changes in
    steps."""
    changes = range(window.step - 1, len(times), window.step)
    buffer = [place for place in changes if place - window.size < number <= place]
    if not buffer:
        return FOREVER, FOREVER
    return times[buffer[0]], _nth(times, buffer[-1] + window.step)


def _nth(times: Sequence[int], number: int) -> int:
    return times[number] if number < len(times) else FOREVER


def snapshot(known: Sequence[Stay], instant: int) -> Bag:
    bag: Bag = Bag()
    for stay in known:
        if stay.start <= instant < stay.end:
            bag[fact_row(stay.fact)] += 1
    return bag


# Streams


@st.composite
def streams(draw: st.DrawFn, removals: bool = True) -> list[Event]:
    """Draws static facts, and then events in the order of time. Many are at one instant, and some of them remove
    facts."""
    some = st.lists(st.sampled_from(FACTS), max_size=3).map(tuple)
    names = st.sampled_from(["", S, S, T])
    event = [Event(ALWAYS, facts, name) for facts, name in draw(st.lists(st.tuples(some, names), max_size=1))]
    time = 0
    for pause, facts, name, gone in draw(
        st.lists(
            st.tuples(st.sampled_from([0, 0, 1, 2, 5]), some, names, some if removals else st.just(())), max_size=8
        )
    ):
        time += pause
        event.append(Event(time, facts, name, gone))
    return event


def reader(source: Source, wanted: Sequence[str] = (), every: bool = True, atoms: bool = True) -> ScanOperator:
    return ScanOperator(source, wanted, every, atoms, tracks_facts=source.removals)  # type: ignore[arg-type]


def cut(events: Sequence[Event], bounds: set[int]) -> Iterator[Sequence[Event]]:
    places = [0, *sorted(bound for bound in bounds if bound < len(events)), len(events)]
    return (events[start:end] for start, end in pairwise(places))


def holds(known: Sequence[Stay], came: Sequence[Delta]) -> None:
    assert all(start < end for *_, start, end, _ in came)
    for instant in INSTANTS:
        assert at(came, instant) == snapshot(known, instant), instant


# Windows


@pytest.mark.parametrize("removals", [True, False], ids=["removals", ""])
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(data=st.data(), bounds=st.sets(st.integers(0, 8)))
@settings(max_examples=examples_of(12), deadline=None)
def test_facts_are_valid_within_their_window(
    removals: bool, window: Window, data: st.DataObject, bounds: set[int]
) -> None:
    """This also holds when the scan expires facts between batches."""
    source = Source("", SlidingWindow(4), ((S, window),), removals)
    events = data.draw(streams(removals))
    op = reader(source)
    deltas: list[Delta] = []
    for batch in cut(events, bounds):
        facts = op.read(batch)
        deltas += facts.triples + facts.atoms
        if batch:
            op.valid_facts.sweep_rows = 0
            op.expire(batch[-1].time)
    holds(stays(source, events), deltas)


@pytest.mark.parametrize("window", [SlidingWindow(3), HoppingWindow(4, 2), CountWindow(2)], ids=repr)
@given(events=streams())
@settings(max_examples=examples_of(12), deadline=None)
def test_a_source_with_a_name_reads_that_stream_alone(window: Window, events: list[Event]) -> None:
    source = Source(S, window, removals=True)
    facts = reader(source).read(events)
    holds(stays(source, events), facts.triples + facts.atoms)
    holds(stays(source, [event for event in events if event.stream == S]), facts.triples + facts.atoms)


@pytest.mark.parametrize("window", [LANDMARK, SlidingWindow(3), CountWindow(2)], ids=repr)
@given(events=streams(), every=st.booleans(), atoms=st.booleans())
@settings(max_examples=examples_of(12), deadline=None)
def test_pushed_down_filters_leave_out_other_triples(
    window: Window, events: list[Event], every: bool, atoms: bool
) -> None:
    facts = reader(Source("", window, removals=True), [P], every, atoms).read(events)
    full_result = reader(Source("", window, removals=True)).read(events)
    assert facts.boxes.get(P, []) == [(s, o, *times) for s, p, o, _, *times in full_result.triples if p == P]
    assert set(facts.boxes) <= {P}
    assert facts.triples == (full_result.triples if every else [])
    assert facts.atoms == (full_result.atoms if atoms else [])


@pytest.mark.parametrize("kind", [Graphs, Arrivals])
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(data=st.data(), removals=st.booleans(), fact=st.sampled_from(FACTS))
@settings(max_examples=examples_of(12), deadline=None)
def test_triples_with_where_and_when_they_came(
    kind: type[Source], window: Window, data: st.DataObject, removals: bool, fact: Fact
) -> None:
    """They are valid as long as they are without source and time."""
    events = data.draw(streams(removals))
    op = reader(kind("", SlidingWindow(4), ((S, window),), removals))
    facts = op.read(events)
    existing = stays(Source("", SlidingWindow(4), ((S, window),), removals), events)
    results = [*facts.triples, *facts.atoms]
    if removals:
        results += op.remove(fact, 60)
    holds([outputs for stay in existing for outputs in _expected_stays(kind, stay)], results)


def _expected_stays(kind: type[Source], stay: Stay) -> Iterator[Stay]:
    stream = iri(stay.stream) if stay.stream else literal("")
    is_static = stay.start == ALWAYS
    if isinstance(stay.fact, Triple) and kind is Graphs and stay.stream:
        yield replace(stay, fact=Atom(GRAPH, (stream, *stay.fact)))
    if isinstance(stay.fact, Triple) and kind is Arrivals and not is_static:
        yield replace(stay, fact=Atom(ARRIVAL, (stream, literal(str(stay.arrival), XSD + "integer"), *stay.fact)))


def test_a_window_that_no_instant_falls_into_has_no_facts() -> None:
    facts = reader(Source("", HoppingWindow(1, 10))).read([Event(3, FACTS), Event(9, FACTS[:1])])
    assert facts == ScannedFacts(triples=[(*fact_row(FACTS[0]), 10, 20, 1)])


def test_the_ends_of_a_grid() -> None:
    """At the instant T a window holds [T - size, T), or, if it is closed, (T - size, T]."""
    facts = [Event(time, FACTS[:1]) for time in (5, 6, 9, 10)]
    half_open = reader(Source("", HoppingWindow(10, 5))).read(facts).triples
    closed = reader(Source("", HoppingWindow(10, 5, closed=True))).read(facts).triples
    assert [delta[-3:-1] for delta in half_open] == [(10, 20), (10, 20), (10, 20), (15, 25)]
    assert [delta[-3:-1] for delta in closed] == [(5, 15), (10, 20), (10, 20), (10, 20)]


def test_a_heartbeat_brings_nothing() -> None:
    op = reader(Source("", CountWindow(1)))
    assert op.read([Event(1, FACTS[:1]), heartbeat(5)]).triples == [(*fact_row(FACTS[0]), 1, FOREVER, 1)]


# Removals


def test_what_leaves_a_window_of_triples_in_the_batch_in_which_it_came_is_one_entry() -> None:
    """Nothing is retracted then. A fact that arrives and expires at one instant is not output."""
    op = reader(Source("", CountWindow(2)))
    facts = [Triple(A, B, literal(str(number))) for number in range(5)]
    first, second = ([(*fact, "") for fact in part] for part in (facts[:4], facts[4:]))
    actual = op.read([Event(1, (facts[0],)), Event(3, tuple(facts[1:4]))]).triples
    assert actual == [(*first[0], 1, 3, 1), (*first[2], 3, FOREVER, 1), (*first[3], 3, FOREVER, 1)]
    assert op.read([Event(4, (facts[4],))]).triples == [(*first[2], 4, FOREVER, -1), (*second[0], 4, FOREVER, 1)]


def test_a_fact_inserted_at_the_instant_of_its_removal_stays() -> None:
    fact = FACTS[0]
    events = [Event(1, (fact,)), Event(3, (fact,), removed=(fact,)), Event(5, ())]
    actual = reader(Source(removals=True)).read(events).triples
    assert [delta[-3:] for delta in actual] == [(1, FOREVER, 1), (3, FOREVER, -1), (3, FOREVER, 1)]


def test_a_fact_removed_before_its_start_never_begins() -> None:
    fact = FACTS[0]
    events = [Event(1, (fact,)), Event(4, (), removed=(fact,))]
    actual = reader(Source("", HoppingWindow(5, 5), removals=True)).read(events).triples
    assert [delta[-3:] for delta in actual] == [(5, 10, 1), (5, 10, -1)]


def test_a_removal_on_one_stream_leaves_the_others_alone() -> None:
    fact = FACTS[0]
    op = reader(Source(removals=True))
    op.read([Event(1, (fact,), S), Event(1, (fact,), T)])
    assert [delta[-3:] for delta in op.read([Event(3, (), S, (fact,))]).triples] == [(3, FOREVER, -1)]
    assert op.read([Event(4, (), S, (fact,))]).triples == []


def test_static_facts_cannot_be_removed() -> None:
    op = reader(Source(removals=True))
    op.read([Event(ALWAYS, FACTS)])
    assert op.read([Event(3, (), removed=FACTS)]) == ScannedFacts()


@pytest.mark.parametrize("window", [LANDMARK, CountWindow(2)], ids=repr)
def test_an_unannounced_removal_is_an_error(window: Window) -> None:
    op = reader(Source("", window))
    with pytest.raises(SourceError, match="the stream `urn:s` carries a removal at 3") as caught:
        op.read([Event(3, (), S, (FACTS[0],))])
    assert "removals" in (caught.value.hint or "")


def test_a_removal_on_a_stream_that_is_not_read_is_none() -> None:
    assert reader(Source(S)).read([Event(3, FACTS, T, FACTS)]) == ScannedFacts()


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(events=streams(), fact=st.sampled_from(FACTS), wait=st.integers(1, 4))
@settings(max_examples=examples_of(8), deadline=None)
def test_a_rule_takes_a_fact_out_of_all_streams(window: Window, events: list[Event], fact: Fact, wait: int) -> None:
    source = Source("", window, removals=True)
    op = reader(source)
    facts = op.read(events)
    time = max([event.time for event in events if event.time != ALWAYS], default=0) + wait
    results = [*facts.triples, *facts.atoms, *op.remove(fact, time)]
    ends = [Event(time, (), stream, (fact,)) for stream in ("", S, T)]
    holds(stays(source, [*events, *ends]), results)
    assert op.remove(fact, time + 1) == []


def test_a_rule_takes_out_static_data_as_well() -> None:
    op = ScanOperator(Source(removals=True), (), True, True, tracks_facts=True, deletes_static=True)
    op.read([Event(ALWAYS, FACTS[:1], S), Event(ALWAYS, FACTS[:1], T)])
    assert op.read([Event(3, (), S, FACTS[:1])]) == ScannedFacts(), "a removal is about what the stream brought"
    assert [delta[-3:] for delta in op.remove(FACTS[0], 4, S)] == [(4, FOREVER, -1)]
    assert [delta[-3:] for delta in op.remove(FACTS[0], 5)] == [(5, FOREVER, -1)]
    assert op.remove(FACTS[0], 6) == []


def test_a_rule_takes_out_static_data_before_all_events() -> None:
    op = ScanOperator(Source(), (), True, True, tracks_facts=True, deletes_static=True)
    op.read([Event(ALWAYS, FACTS[:1])])
    assert [delta[-3:] for delta in op.remove(FACTS[0], ALWAYS)] == [(ALWAYS, FOREVER, -1)]


@pytest.mark.parametrize(
    ("source", "stream", "is_read"),
    [
        (Source("", SlidingWindow(3)), S, True),
        (Source("", SlidingWindow(3)), WORKING, True),
        (Source(S, HoppingWindow(4, 2)), S, True),
        (Source(S), T, False),
        (Source(S), WORKING, False),
        (Source("", EMPTY), S, False),
        (Source("", EMPTY), WORKING, True),
        (Source("", EMPTY, ((S, CountWindow(2)),)), S, True),
    ],
)
def test_windows_do_not_end_what_rules_insert(source: Source, stream: str, is_read: bool) -> None:
    result = reader(source).insert(stream, FACTS[0], 5, 5, 1)
    assert result == ([(*fact_row(FACTS[0]), 5, FOREVER, 1)] if is_read else [])


def test_what_rules_insert_is_read_with_where_and_when_it_came() -> None:
    fact = Triple(A, iri("urn:p"), B)
    arrivals, graphs = reader(Arrivals("")), reader(Graphs(""))
    (delta,) = arrivals.insert(S, fact, 5, 9, -1)
    assert delta == (*fact_row(Atom(ARRIVAL, (iri(S), literal("5", XSD + "integer"), *fact))), 9, FOREVER, -1)
    (delta,) = arrivals.insert(WORKING, fact, 5, 5, 1)
    assert delta[1] == literal("")
    assert [delta[:2] for delta in graphs.insert(S, fact, 5, 5, 1)] == [(f"@{GRAPH}", iri(S))]
    assert graphs.insert(WORKING, fact, 5, 5, 1) == []


# Memory


def test_nothing_is_remembered_where_nothing_can_be_removed() -> None:
    op = reader(Source())
    op.read([Event(time, FACTS) for time in range(9)])
    assert op.size() == 0


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_memories_stay_small(window: Window) -> None:
    op = reader(Source("", window, removals=True))
    largest = 0
    for time in range(4 * DEFAULT_TUNING.min_rows_to_sweep):
        op.read([Event(time, (Triple(iri(f"urn:{time}"), P, B),), removed=(Triple(iri(f"urn:{time - 20}"), P, B),))])
        op.expire(time)
        largest = max(largest, op.size())
    assert largest <= DEFAULT_TUNING.min_rows_to_sweep + 50


@pytest.mark.parametrize("window", [SlidingWindow(3), HoppingWindow(4, 2), HoppingWindow(4, 2, closed=True)], ids=repr)
@given(events=streams())
@settings(max_examples=examples_of(8), deadline=None)
def test_no_state_remains_when_all_facts_have_expired(window: Window, events: list[Event]) -> None:
    op = reader(Source("", window, removals=True))
    op.read(events)
    op.valid_facts.sweep_rows = 0
    op.expire(max(INSTANTS))
    assert op.size() == 0


# Columns


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(events=streams(), every=st.booleans())
@settings(max_examples=examples_of(20), deadline=None)
def test_columns_are_read_as_the_events_that_they_are(window: Window, events: list[Event], every: bool) -> None:
    timed = [event for event in events if event.stream == S and event.time != ALWAYS]
    triples = [(event.time, fact) for event in timed for fact in event.facts if isinstance(fact, Triple)]
    sizes = dict.fromkeys((event.time for event in timed), 0) or {0: 0}
    for time, _ in triples:
        sizes[time] += 1
    subjects, predicates, objects = ([fact[place] for _, fact in triples] for place in range(3))
    columns = Columns(list(sizes), list(sizes.values()), subjects, predicates, objects, S)
    source = Source("", window)
    outputs = reader(source, [P], every, False).read_columns(columns)
    assert in_order(outputs) == in_order(reader(source, [P], every, False).read(list(columns)))
    assert [(event.time, fact) for event in columns for fact in event.facts] == triples


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(
    predicates=st.lists(st.sampled_from([P, Q]), max_size=4),
    times=st.lists(st.integers(-2, 40), min_size=1, max_size=5, unique=True).map(sorted),
    cuts=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    stray=st.none() | st.integers(0, 15),
)
@settings(max_examples=examples_of(60), deadline=None)
def test_events_with_the_same_predicates_are_read_as_others_are(
    window: Window, predicates: list[Term], times: list[int], cuts: tuple[int, int], stray: int | None
) -> None:
    size, inner = len(predicates), len(times) - 2
    first, last = (min(cut, size) for cut in cuts)
    sizes = [size - first, *[size] * inner, last] if inner >= 0 else [size]
    outputs = (predicates * len(times))[first : first + sum(sizes)]
    if stray is not None and stray < len(outputs):
        outputs[stray] = C
    subjects = [iri(f"urn:{number}") for number in range(len(outputs))]
    columns = Columns(times, sizes, subjects, outputs, subjects[::-1], S)
    alike = outputs[sizes[0] :][: size * max(inner, 0)]
    assert columns.period == (size if alike and alike == alike[:size] * inner else 0)
    source = Source("", window)
    result = reader(source, [P], False, False).read_columns(columns)
    assert in_order(result) == in_order(reader(source, [P], False, False).read(list(columns)))


@given(
    triples=st.lists(st.tuples(st.sampled_from([A, B]), st.sampled_from([P, Q]), st.sampled_from([A, B, C]))),
    place=st.integers(0, 1), terms=st.sets(st.sampled_from([A, B, C])),
)  # fmt: skip
@settings(max_examples=examples_of(40), deadline=None)
def test_pairs_in_columns_are_those_of_the_predicate(
    triples: list[tuple[Term, Term, Term]], place: int, terms: set[Term]
) -> None:
    starts, ends = list(range(len(triples))), list(range(10, 10 + len(triples)))
    columns = [subject for subject, _, _ in triples], [object for _, _, object in triples], starts, ends
    pairs = ColumnarPairs(P, [predicate for _, predicate, _ in triples], columns)
    expected = [(s, o, t, 10 + t, 1) for t, (s, p, o) in enumerate(triples) if p == P]
    assert list(pairs) == expected
    assert len(pairs) == len(expected)
    assert bool(pairs) == bool(expected)
    assert pairs.with_term(place, terms) == [pair for pair in expected if pair[place] in terms]
    if triples:
        assert (pairs.earliest, pairs.latest) == (0, len(triples) - 1)


@given(events=streams(), is_plain=st.booleans())
@settings(max_examples=examples_of(60), deadline=None)
def test_events_are_transposed_if_columns_can_have_them(events: list[Event], is_plain: bool) -> None:
    if is_plain:
        triples = ((e.time, tuple(fact for fact in e.facts if isinstance(fact, Triple))) for e in events)
        events = [Event(time, facts, S) for time, facts in triples if facts and time != ALWAYS]
    try:
        expected = Columns.of(events)
    except ValueError:
        assert Columns.transposed(events) is None
        return
    columns = Columns.transposed(events)
    assert columns is not None
    names = "times", "sizes", "subjects", "predicates", "objects", "stream", "events"
    assert [getattr(columns, name) for name in names] == [getattr(expected, name) for name in names]
    for whole in (columns, expected, Columns([-1, *columns.times], [0, *columns.sizes], *terms_of(columns), S)):
        before, last = whole.without_last()
        assert [*(before or ()), last] == [*([before.events[-1]] if before and not before.subjects else ()), *whole]
        assert before is None or before.times == whole.times[:-1]


def terms_of(columns: Columns) -> tuple[list[Term], list[Term], list[Term]]:
    return columns.subjects, columns.predicates, columns.objects


@given(events=streams())
@settings(max_examples=examples_of(40), deadline=None)
def test_columns_are_made_of_events(events: list[Event]) -> None:
    timed = [event for event in events if event.stream == S and not event.is_static]
    brought = [(event.time, tuple(fact for fact in event.facts if isinstance(fact, Triple))) for event in timed]
    plain = [Event(time, facts, S) for time, facts in brought if facts]
    if not plain:
        return
    columns = Columns.of(plain)
    results = [(event.time, fact) for event in plain for fact in event.facts]
    assert [(event.time, fact) for event in columns for fact in event.facts] == results
    assert columns.times == sorted({event.time for event in plain})
    assert columns.stream == S


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_columns_are_cut_between_events(most: int) -> None:
    events = [Event(time, (Triple(A, P, C),) * (1 + time % 3), S) for time in (1, 3, 4, 5, 8)]
    parts = list(Columns.of(events).parts(most))
    assert [time for part in parts for time in part.times] == [1, 3, 4, 5, 8]
    assert max(len(part.times) for part in parts) == most
    assert [event for part in parts for event in part] == events
    assert {part.stream for part in parts} == {S}


FACTS = (Triple(A, P, C),)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "there are no events"),
        ([Event(ALWAYS, FACTS, S)], "static data are given by themselves"),
        (
            [Event(1, FACTS, S), Event(2, FACTS)],
            "the event at 2 .* is of the stream `the default stream`",
        ),
        ([Event(2, FACTS, S), Event(1, FACTS, S)], "the event at 1 .* comes after one at 2"),
        ([Event(1, (), S, FACTS)], "takes facts out"),
        ([Event(1, FACTS, S, (), A)], f"in the graph {A}"),
        ([Event(1, FACTS, S), Event(2, (), S)], "the event at 2 .* brings nothing"),
        ([Event(1, (Atom(P, (A, C)),), S)], r"it brings `<.*>\(.*\) \.`, which is no triple"),
    ],
)
def test_facts_that_are_no_columns_are_refused(events: list[Event], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Columns.of(events)


def in_order(facts: ScannedFacts) -> ScannedFacts:
    """Sorts the facts, whatever their order of arrival, and takes them out of their columns."""
    pairs = {predicate: sorted(part) for predicate, part in (facts.columnar or facts.boxes).items() if part}
    return replace(facts, boxes=pairs, columnar={})


def test_a_grid_begins_at_the_first_triple_of_its_own_stream() -> None:
    """The facts of other streams are spread over tasks, which would not agree on a first one."""
    source = Source(S, HoppingWindow(5, 3, FirstTriple()), removals=True)
    op = ScanOperator(source, (), True, True, tracks_facts=True)
    for event in (Event(1, (Triple(A, P, B),), T), Event(7, (Triple(A, P, B),), S), Event(9, (Triple(A, Q, B),), S)):
        op.read([event])
    assert op.positions == {S: 7}
