"""Evaluation instants against their definition (docs/semantics.md, section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.builders.runtime.report_times import ReportSchedule, ReportSchedules
from squall.model import CLOSE, Report, Source
from squall.model.windows import (
    LANDMARK,
    CountWindow,
    EmptyWindow,
    FirstTriple,
    HoppingWindow,
    Landmark,
    OpenHoppingWindow,
    SlidingWindow,
    Window,
)
from squall.plan.operators import Sink
from squall.rdf import ALWAYS, FOREVER, Event, Triple, heartbeat, iri
from tests.laws import examples_of

S, T = "urn:s", "urn:t"
FACT = Triple(*[iri("urn:a")] * 3)
PERIODIC = Report("periodic", 4)
WINDOWS = (
    LANDMARK,
    SlidingWindow(3),
    SlidingWindow(7),
    HoppingWindow(4, 2),
    HoppingWindow(4, 2, closed=True),
    HoppingWindow(6, 4),
    HoppingWindow(3, 3, origin=1),
    HoppingWindow(2, 5),
    CountWindow(2),
    CountWindow(3, 3),
    CountWindow(3, 2),
    HoppingWindow(5, 3, FirstTriple(4)),
    OpenHoppingWindow(5, 3),
    OpenHoppingWindow(4, 2, FirstTriple(3)),
)  # fmt: skip
END = FOREVER - 1


def instants_of(sources: Sequence[Source], report: Report = CLOSE) -> ReportSchedule:
    return ReportSchedule(Sink("rstream", report=report, sources=tuple(sources)))


def defined(sources: Sequence[Source], events: Sequence[Event]) -> set[int]:
    result = {ALWAYS}
    for source in sources:
        actual: Counter[str] = Counter()
        for event in events:
            if source.iri in ("", event.stream):
                window = source.window_of(event.stream)
                before = actual[event.stream]
                actual[event.stream] += len(event.facts)
                if isinstance(window, HoppingWindow):
                    window = _begun(window, events, event)
                if not isinstance(window, CountWindow) or _changes(window, before, actual[event.stream]):
                    result |= _of(window, event.time)
                result |= {event.time} if event.removed else set()
    return result


def _begun(window: HoppingWindow, events: Sequence[Event], event: Event) -> HoppingWindow | EmptyWindow:
    """Returns the window at an event. A grid that begins at the first triple is empty before it."""
    before = [other.time for other in events if other.stream == event.stream and other.facts]
    if not isinstance(window.origin, FirstTriple):
        return window
    return window.begun_at(before[0]) if before and before[0] <= event.time else EmptyWindow()


def _changes(window: CountWindow, before: int, after: int) -> bool:
    """Returns whether the content of a count window changes between two numbers of triples."""
    return window.step == 1 or any(number % window.step == 0 for number in range(before + 1, after + 1))


def _of(window: Window, time: int) -> set[int]:
    match window:
        case Landmark() | CountWindow():
            return {time}
        case SlidingWindow(size=size):
            return {time, time + size}
        case OpenHoppingWindow():
            return set(window.validity(time))
        case HoppingWindow(step=step):
            start, end = window.validity(time)
            return set(range(start, end + 1, step))
        case _:
            assert isinstance(window, EmptyWindow)
            return set()


def periodic(sources: Sequence[Source], events: Sequence[Event], period: int) -> set[int]:
    read = [event.time for event in events if any(source.iri in ("", event.stream) for source in sources)]
    if not read:
        return {ALWAYS}
    last = max(defined(sources, events))
    return {ALWAYS} | {time for time in range(-period, last + period) if time % period == 0 and time >= min(read)}


windows = st.sampled_from(WINDOWS)
SOURCES = st.lists(
    st.builds(Source, st.just(""), windows, windows.map(lambda window: ((S, window),)))
    | st.builds(Source, st.sampled_from([S, T]), windows),
    min_size=1, max_size=2,
)  # fmt: skip
STREAMS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 9, 30]), st.sampled_from(["", S, T]), st.integers(0, 4), st.booleans()),
    max_size=6,
)


def events_of(pauses: Sequence[tuple[int, str, int, bool]]) -> list[Event]:
    events: list[Event] = []
    time = 0
    for pause, stream, brings, removes in pauses:
        time += pause
        events.append(Event(time, (FACT,) * brings, stream, (FACT,) * removes))
    return events


@pytest.mark.parametrize("report", [CLOSE, PERIODIC], ids=["close", "periodic"])
@given(sources=SOURCES, pauses=STREAMS, stops=st.booleans())
@settings(max_examples=examples_of(150), deadline=None)
def test_instants_come_in_order_once_as_time_advances(
    report: Report, sources: list[Source], pauses: list[tuple[int, str, int, bool]], stops: bool
) -> None:
    """With `stops`, time also stops just before each event, as it does where the next event is known."""
    events = events_of(pauses)
    result = instants_of(sources, report)
    value = result.pop_until(ALWAYS)
    assert value == [ALWAYS]
    for time in sorted({event.time for event in events}):
        value += result.pop_until(time - 1) if stops else []
        result.add([event for event in events if event.time == time])
        value += result.pop_until(time)
        assert all(item <= time for item in value)
    value += result.pop_until(END)
    expected = periodic(sources, events, report.period) if report.period else defined(sources, events)
    assert value == sorted(expected)


@given(sources=SOURCES, pauses=STREAMS)
@settings(max_examples=examples_of(50), deadline=None)
def test_instants_do_not_depend_on_batches(sources: list[Source], pauses: list[tuple[int, str, int, bool]]) -> None:
    events = events_of(pauses)
    full_result, parts = instants_of(sources), instants_of(sources)
    full_result.add(events)
    numbers: list[int] = []
    for event in events:
        numbers += parts.pop_until(event.time - 1)
        parts.add([event])
    assert numbers + parts.pop_until(END) == full_result.pop_until(END)


@pytest.mark.parametrize("report", [CLOSE, PERIODIC], ids=["close", "periodic"])
def test_a_heartbeat_is_no_instant(report: Report) -> None:
    result = instants_of([Source()], report)
    result.add([heartbeat(3)])
    assert result.pop_until(END) == [ALWAYS]


def test_multiples_of_a_period_come_up_to_the_watermark() -> None:
    result = instants_of([Source(S, SlidingWindow(3))], PERIODIC)
    result.advance_time(2)
    assert result.pop_until(2) == [ALWAYS]
    result.add([Event(3, (FACT,), S)])
    result.advance_time(13)
    assert result.pop_until(13) == [4, 8, 12]
    assert result.next_time == 16
    assert result.pop_until(END) == [16]
    assert result.next_time == FOREVER


def test_time_advances_without_window_instants() -> None:
    result = instants_of([Source(S, SlidingWindow(3))])
    result.add([Event(3, (FACT,), S)])
    result.advance_time(13)
    assert result.pop_until(END) == [ALWAYS, 3, 6]


def test_an_instant_of_its_own() -> None:
    result = instants_of([Source()])
    result.add_instant(7)
    result.add_instant(7)
    assert result.pop_until(6) == [ALWAYS]
    assert result.pop_until(7) == [7]
    assert result.pop_until(END) == []


def test_a_fine_grid_in_a_long_gap_is_not_gone_through() -> None:
    """Times at which nothing is valid are no instants, however far apart two events are."""
    result = instants_of([Source("", HoppingWindow(10, 1))])
    result.add([Event(0, (FACT,))])
    assert len(result.pop_until(10**15)) == 12
    result.add([Event(10**15 + 1, (FACT,))])
    assert len(result.pop_until(END)) == 11


@pytest.mark.parametrize("report", [CLOSE, PERIODIC], ids=["close", "periodic"])
@pytest.mark.parametrize(
    "window", [LANDMARK, SlidingWindow(50), HoppingWindow(50, 5), HoppingWindow(1000, 500)], ids=repr
)
def test_past_instants_are_deleted(report: Report, window: Window) -> None:
    result = instants_of([Source("", window)], report)
    for time in range(2000):
        result.add([Event(time, (FACT,))])
        result.pop_until(time)
        assert len(result.single_times) + len(result.grid_heap) + len(result.grid_ends) < 60


@pytest.mark.parametrize(
    ("window", "rows", "due"),
    [
        (HoppingWindow(4, 2, FirstTriple(1)), {("stream_begin", "urn:s", "7")}, [9, 11, 13, 15]),
        (CountWindow(5, 2), {("fact_count", "0", "urn:s", "1")}, [10]),
    ],
)
def test_a_restored_schedule_knows_what_came(window: Window, rows: set[tuple[str, ...]], due: list[int]) -> None:
    fact = Triple(iri("urn:a"), iri("urn:p"), iri("urn:b"))
    before, after = instants_of([Source("urn:s", window)]), instants_of([Source("urn:s", window)])
    before.add([Event(7, (fact,), "urn:s")])
    assert {row for row in before.rows() if row[0] in ("stream_begin", "fact_count")} == rows
    after.load_rows(list(before.rows()))
    after.add([Event(10, (fact,), "urn:s")])
    assert [time for time in after.pop_until(20) if time > ALWAYS] == due


def test_events_of_a_derived_stream_concern_those_who_read_it() -> None:
    """What always holds concerns nobody: it is not known of its stream and graph alone who reads it."""
    readers = {"s": instants_of([Source(S, HoppingWindow(4, 4))]), "t": instants_of([Source(T, HoppingWindow(4, 4))])}
    schedules = ReportSchedules(readers)
    assert not schedules.add_derived([Event(ALWAYS, (FACT,), S)])
    assert not schedules.nodes_of
    assert not schedules.add_derived([heartbeat(1), Event(1, (FACT,), "urn:other")])
    assert {*schedules.add_derived([Event(2, (FACT,), S), Event(3, (FACT,), "urn:other")])} == {"s"}
    assert readers["s"].first_time == 2
    assert readers["t"].first_time is None
