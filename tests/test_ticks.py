"""The source `tick`: events at the multiples of a period, bounded or by the clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import squall
from squall.contracts import Options
from squall.errors import BuilderError, UsageError
from squall.functions.values import date_time
from squall.rdf import ALWAYS, Event, Triple, iri
from squall.streams import Sources, open_source, open_static
from squall.streams.address import parse
from squall.streams.clock import VirtualClock, WallClock
from squall.streams.dead_letters import RunLedger
from squall.streams.sources.ticks import TickSource
from tests.conftest import Squall
from tests.test_time import Scripted


def tick(time: int, stream: str = "") -> Event:
    fact = Triple(iri("urn:x-squall:tick"), iri("urn:x-squall:at"), date_time(time))
    return Event(time, (fact,), stream)


def events_of(source: Any) -> list[Event]:
    return list(chain.from_iterable(source.batches()))


@given(st.integers(1, 50), st.integers(-5000, 5000), st.integers(0, 50_000), st.data())
def test_a_bounded_source_has_the_multiples(period: int, begin: int, length: int, data: st.DataObject) -> None:
    """After any of its batches another source may resume, and has the events behind."""
    uri = f"tick:{period}ms?from={begin}&until={begin + length}&stream=urn:s"
    expected = [tick(time, "urn:s") for time in range(begin, begin + length + 1) if time % period == 0]
    assert events_of(open_source(uri)) == expected
    first, second = open_source(uri), open_source(uri)
    assert isinstance(first, TickSource)
    assert isinstance(second, TickSource)
    before = list(chain.from_iterable(islice(first.batches(), data.draw(st.integers(0, 5)))))
    second.resume(first.current_offset())
    assert before + events_of(second) == expected
    assert first.reading.statements == len(before)


@pytest.mark.parametrize(
    ("period", "milliseconds"), [("20ms", 20), ("2s", 2000), ("3m", 180_000), ("4h", 14_400_000), ("5d", 432_000_000)]
)
def test_a_period_has_a_unit(period: str, milliseconds: int) -> None:
    source = open_source(f"tick:{period}?from=1970-01-01T00:00:00.001Z&until={2 * milliseconds}")
    assert [event.time for event in events_of(source)] == [milliseconds, 2 * milliseconds]


TIMES = st.lists(st.integers(-20, 60), max_size=8).map(sorted)


def lines(times: Sequence[int]) -> str:
    return "".join(f"{time} <urn:s> <urn:p> <urn:o> .\n" for time in times)


@example([[5]], 5, 5, 0)
@example([[5]], 5, 5, 1)
@given(st.lists(TIMES, min_size=1, max_size=2), st.integers(-9, 20), st.integers(1, 9), st.integers(0, 2))
def test_a_source_with_a_begin_goes_as_far_as_the_others(
    leaders: list[list[int]], begin: int, period: int, place: int
) -> None:
    with TemporaryDirectory() as folder:
        uris = [f"{folder}/{number}.ntt" for number in range(len(leaders))]
        for uri, times in zip(uris, leaders, strict=True):
            Path(uri).write_text(lines(times))
        uris.insert(place, f"tick:{period}ms?from={begin}&stream=urn:ticks")
        events = events_of(Sources([open_source(uri) for uri in uris]))
    last = max((time for times in leaders for time in times), default=begin - 1)
    times = [time for times in leaders for time in {*times}]  # lines of one time are one event
    assert [event.time for event in events] == sorted([*times, *multiples(begin, last, period)])
    assert [event.time for event in events if event.stream == "urn:ticks"] == multiples(begin, last, period)


def multiples(begin: int, end: int, period: int) -> list[int]:
    return [time for time in range(begin, end + 1) if time % period == 0]


def test_a_source_with_a_begin_does_not_run_ahead_of_a_live_one() -> None:
    scripted = Scripted(idle=0)
    sources = Sources([open_source("tick:10ms?from=0&stream=urn:ticks"), scripted], heartbeat=10)
    scripted.say(25)
    times: list[int] = []
    for batch in sources:
        times += [event.time for event in batch]
        if times[-3:] == [10, 20, 25]:
            Timer(
                0.3, scripted.say, (28,)
            ).start()  # many heartbeats later: time does not go on without the other source
        elif times[-1:] == [28]:
            scripted.say(31)
            scripted.end()
    assert list(dict.fromkeys(times)) == [0, 10, 20, 25, 28, 30, 31]


@pytest.mark.parametrize(
    ("uris", "clock", "message"),
    [
        (["tick:1s?from=0"], None, "`tick:1s\\?from=0` has no end: there is no other source"),
        (["tick:1s?from=0", "tick:1s"], None, "`tick:1s\\?from=0` has no end: there is no other source"),
        (["tick:1s?from=0", "tick:1s?from=0&until=9"], WallClock(), "follows event time"),
    ],
)
def test_a_source_without_an_end_that_can_follow_nothing_is_refused(
    uris: list[str], clock: WallClock | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Sources([open_source(uri) for uri in uris], clock)


@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
    ],
)
def test_builders_read_ticks_as_far_as_a_file(builder: str, tmp_path: Path) -> None:
    (tmp_path / "in.ntt").write_text(lines([1, 12, 35]))
    query = "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p"
    plan = squall.plan(squall.compile(query, lexer="sparql", window="RANGE 15ms", output="rstream"))

    def outputs(builder: str, ticks: str) -> list[tuple[int, str]]:
        sources = Sources([open_source(uri) for uri in (f"{tmp_path}/in.ntt", ticks)])
        return sorted((output.time, str(output.fact)) for output in squall.build(plan, builder).run(sources))

    expected = outputs("iterator", "tick:10ms?from=0&until=30")
    assert outputs(builder, "tick:10ms?from=0") == expected
    assert {0, 10, 20, 30} <= {time for time, _ in expected}


def test_both_ends_are_included() -> None:
    assert events_of(open_source("tick:1s?from=2000&until=2000")) == [tick(2000)]
    assert events_of(open_source("tick:1s?from=2001&until=2999")) == []


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("tick:1", "`1` in `tick:1` is no period"),
        ("tick:0s", "`0s` in `tick:0s` is no period"),
        ("tick:s", "`s` in `tick:s` is no period"),
        ("tick:1s?from=9&until=8", "`tick:1s\\?from=9&until=8` ends before it begins"),
        ("tick:1s?until=soon", "`until=soon` in `tick:1s\\?until=soon`: `soon` is no time"),
        ("tick:1s?from=-infinity&until=0", "`from=-infinity` in .* is no time"),
        ("tick:1s?format=nt", "format"),
    ],
)
def test_what_is_no_clock_is_refused(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(uri)


@pytest.mark.parametrize("uri", ["tick:1s", "tick:1s?from=0&until=9"])
def test_ticks_are_not_static(uri: str) -> None:
    with pytest.raises(UsageError, match="is timed: it cannot be static"):
        open_static(uri)


def live(uri: str, **options: Any) -> TickSource:
    return TickSource(parse(uri, "-"), RunLedger(), **options)


def test_a_live_source_has_each_event_when_the_clock_has_reached_its_time() -> None:
    source, clock = live("tick:20ms"), WallClock()
    begin = clock.now()
    times: list[int] = []
    for batch in source.batches():
        assert clock.now() >= batch[-1].time
        times += [event.time for event in batch]
        if len(times) >= 4:
            source.stop()
    assert times == [time for time in range(times[0], times[-1] + 1, 20) if time % 20 == 0]
    assert begin < times[0] <= begin + 20


def test_a_live_source_that_resumes_has_what_it_has_missed() -> None:
    """Also if it is far more than a batch."""
    clock = VirtualClock(100_000)
    source = live("tick:1ms?until=100000", clock=clock)
    source.resume(90_000)
    batches = list(source.batches())
    assert [event.time for batch in batches for event in batch] == list(range(90_000, 100_001))
    assert max(map(len, batches)) < 1000


@pytest.mark.parametrize("stamps", [False, True])
def test_a_live_source_ends_with_the_others(stamps: bool, tmp_path: Path) -> None:
    """The others are a file, and a source that the test ends; one of itself goes on."""
    (tmp_path / "in.ntt").write_text(ORDERS)
    scripted, began = Scripted(idle=0), time.monotonic()
    sources = Sources(
        [open_source(f"{tmp_path}/in.ntt"), live("tick:20ms?idle=0"), scripted], WallClock() if stamps else None, 10
    )
    ticks = 0
    for batch in sources:
        ticks += sum(event.facts[0][0] == tick(0).facts[0][0] for event in batch if event.facts)
        if ticks >= 3:
            scripted.end()
    assert ticks >= 3
    assert time.monotonic() - began < 60
    alone = live("tick:20ms?until=2100-01-01T00:00:00Z")
    assert not alone.ends_with_others


@pytest.mark.spark
@pytest.mark.more
def test_spark_refuses_a_clock_beside_files_that_it_reads(tmp_path: Path) -> None:
    (tmp_path / "orders.ntt").write_text(ORDERS)
    plan = squall.plan(squall.compile(COUNTS, lexer="sparql"))
    sources = Sources([open_source(uri) for uri in (f"{tmp_path}/orders.ntt", "tick:1s")])
    with pytest.raises(BuilderError, match=r"`tick:1s` does not end with `.*orders.ntt`"):
        list(squall.build(plan, "spark").run(sources))


def test_a_live_source_can_be_stopped_while_it_waits() -> None:
    sources = Sources([live("tick:5d")])
    began = time.monotonic()
    batches = iter(sources)
    sources.stop()
    assert list(batches) == []
    assert time.monotonic() - began < 60


COUNTS = """PREFIX : <http://example.org/>
SELECT (COUNT(?order) AS ?n) { ?order :is :Open }"""
ORDERS = """1200 <http://example.org/o1> <http://example.org/is> <http://example.org/Open> .
2300 <http://example.org/o2> <http://example.org/is> <http://example.org/Open> .
"""


@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.more)),
        pytest.param("beam", marks=(pytest.mark.beam, pytest.mark.more)),
    ],
)
def test_a_standing_query_is_evaluated_at_each_tick(builder: str, tmp_path: Path) -> None:
    """Without ticks, the whole answer is evaluated only where an order comes or leaves its window."""
    (tmp_path / "orders.ntt").write_text(ORDERS)
    uris = [f"{tmp_path}/orders.ntt", "tick:1s?from=0&until=5000"]
    results: list[Sequence[int]] = []
    for part in (uris[:1], uris):
        system = squall.compile(COUNTS, lexer="sparql", window="RANGE 2s", output="rstream")
        job = squall.build(squall.plan(system), builder, Options())
        outputs = job.run(Sources([open_source(uri) for uri in part]))
        results.append(sorted({output.time for output in outputs if output.time > ALWAYS}))
    assert results[0] == [1200, 2300, 3200, 4300]
    assert results[1] == sorted({0, *range(1000, 8000, 1000), *results[0]})


def test_ticks_have_a_window_of_their_own(tmp_path: Path, squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("at.rq").write_text("SELECT ?at { <urn:x-squall:tick> <urn:x-squall:at> ?at }")
    source = "urn:ticks=tick:2s?from=0&until=4000&window=ELEMENT"
    code, out, err = squall("run", "at.rq", "--source", source, "--output", "changes", "--format", "csv")
    assert code == 0, err
    assert out.splitlines()[1:] == [
        "0,insert,1970-01-01T00:00:00Z", "1,delete,1970-01-01T00:00:00Z",
        "2000,insert,1970-01-01T00:00:02Z", "2001,delete,1970-01-01T00:00:02Z",
        "4000,insert,1970-01-01T00:00:04Z", "4001,delete,1970-01-01T00:00:04Z",
    ]  # fmt: skip
