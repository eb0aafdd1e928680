"""What live sources have in common: stopping, acknowledgement of processed events, backpressure, and signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.errors import PluginError, SinkError, UsageError
from squall.process.signals import stop_on_signal
from squall.rdf import ALWAYS, XSD, Event, iri, literal, triple
from squall.streams import DeadLetterFile, Source, Sources, open_sink, open_source
from squall.streams.address import parse
from squall.streams.clock import EventClock, WallClock
from squall.streams.formats import BY_NAME
from squall.streams.formats.limits import ReadLimits
from squall.streams.formats.reading import ReadProgress
from squall.streams.live.base import ConnectionLost, LiveSource, delays
from squall.streams.live.buffer import Buffer
from squall.streams.live.messages import Message, MessageSink, MessageSource
from squall.streams.sources.reordering import ReorderingSource, TimedByProperty
from tests.laws import examples_of
from tests.limits import open_limited
from tests.live import example, wait

AT = iri("http://example.org/at")


def event(time: int, name: str = "s") -> Event:
    message = literal(str(time), XSD + "integer")
    return Event(time, (triple(iri(f"http://example.org/{name}{time}"), AT, message),))


class Acknowledged:
    """A live source of batches, each with its number as position. It continues until it is stopped, unless it
    `ends`."""

    live = True
    earliest = ALWAYS
    size: int | None = None
    removals = False

    def __init__(self, batches: Sequence[Sequence[Event]], ends: bool = True, idle: int = 60_000) -> None:
        self.uri = "test:"
        self.idle = idle
        self.reading = ReadProgress()
        self.given = batches
        self.ends = ends
        self.reached = ""
        self.closed = False
        self.handed = 0
        self.acknowledged: list[str] = []
        self.stopped = threading.Event()

    def batches(self) -> Iterator[Sequence[Event]]:
        for number, batch in enumerate(self.given, 1):
            if self.stopped.is_set():
                return
            self.reached = str(number)
            self.handed += 1
            yield batch
        if not self.ends:
            assert self.stopped.wait(20)

    def stop(self) -> None:
        self.stopped.set()

    def position(self) -> str:
        return self.reached

    def acknowledge(self, position: str) -> None:
        assert not self.closed
        self.acknowledged.append(position)

    def close(self) -> None:
        self.closed = True


def timeline(*times: int) -> list[list[Event]]:
    return [[event(time)] for time in times]


def test_a_batch_is_acknowledged_when_the_next_one_is_requested() -> None:
    source = Acknowledged(timeline(1, 2))
    batches = iter(Sources([source]))
    next(batches)
    assert source.acknowledged == []
    next(batches)
    assert source.acknowledged == ["1"]
    assert list(batches) == []
    assert source.acknowledged == ["1", "2"]


def test_nothing_is_acknowledged_that_could_not_be_written() -> None:
    def refuse() -> None:
        raise SinkError("full")

    source = Acknowledged(timeline(1, 2))
    sources = Sources([source])
    sources.flush_sink = refuse
    batches = iter(sources)
    next(batches)
    with pytest.raises(SinkError):
        next(batches)
    assert source.acknowledged == []


CUTS = st.lists(st.lists(st.integers(0, 20), max_size=4), max_size=8)


def covered(source: Acknowledged, seen: Sequence[Event]) -> None:
    """Checks that all acknowledged input has been received."""
    upto = int(source.acknowledged[-1]) if source.acknowledged else 0
    facts = [fact for event in seen for fact in event.facts]
    assert all(fact in facts for batch in source.given[:upto] for item in batch for fact in item.facts)


@settings(deadline=None, max_examples=examples_of(60))
@given(
    st.lists(CUTS, min_size=1, max_size=3), st.integers(0, 6), st.booleans(), st.sampled_from([EventClock, WallClock])
)
def test_acknowledged_input_has_been_output(
    cuts: list[list[list[int]]], lateness: int, by_property: bool, clock: type[EventClock]
) -> None:
    """This holds however sources are cut, disordered and merged. In the end all input has been acknowledged."""
    ledger = DeadLetterFile()
    originals = [
        Acknowledged(
            [[event(time, f"{name}-{n}-{m}-") for m, time in enumerate(batch)] for n, batch in enumerate(batches)]
        )
        for name, batches in zip("abc", cuts, strict=False)
    ]
    sources: list[Source] = list(originals)
    if by_property:
        sources = [TimedByProperty(source, ledger, AT) for source in sources]
    late: list[Event] = []
    sources = [Kept(source, ledger, lateness, late) for source in sources]
    history = late
    for batch in Sources(sources, clock()):
        for source in originals:
            covered(source, history)
        history += batch
    for source in originals:
        covered(source, history)
        assert source.acknowledged[-1:] == ([str(len(source.given))] if source.given else [])
        assert all(int(item) < int(other) for item, other in pairwise(source.acknowledged))


class Kept(ReorderingSource):
    """A ledger that collects late events. They count as processed, because they are in the dead-letter ledger."""

    def __init__(self, source: Source, ledger: DeadLetterFile, lateness: int, late: list[Event]) -> None:
        super().__init__(source, ledger, lateness)
        self.late = late

    def _late(self, event: Event) -> None:
        self.late.append(event)


@pytest.mark.parametrize("clock", [EventClock, WallClock])
@pytest.mark.parametrize("lateness", [0, 5])
@pytest.mark.parametrize("count", [1, 2])
def test_stopping_outputs_received_events(clock: type[EventClock], lateness: int, count: int) -> None:
    originals = [Acknowledged(timeline(*range(number, 20, count)), ends=False) for number in range(count)]
    sources = Sources(
        [ReorderingSource(original, DeadLetterFile(), lateness) if lateness else original for original in originals],
        clock(),
        50,
    )
    assert not bool(sources.is_stoppable)
    history = []
    for batch in sources:
        history += [fact for event in batch for fact in event.facts]
        if len(history) == 20 - lateness * (clock is EventClock) or all(
            original.handed >= 20 // count for original in originals
        ):
            assert bool(sources.is_stoppable)
            sources.stop()
    assert len(history) == 20


class Endless:
    """A source that always has more, and counts what it gives."""

    live = False
    earliest = ALWAYS
    size: int | None = None
    removals = False
    idle = 60_000

    def __init__(self, live: bool, most: int = 1 << 60) -> None:
        self.uri = "endless:"
        self.live = live
        self.most = most
        self.done = threading.Event()
        self.reading = ReadProgress()
        self.given = 0

    def batches(self) -> Iterator[Sequence[Event]]:
        while self.given < self.most:
            self.given += 1
            yield [event(self.given)]
        self.done.set()


def test_stopping_reads_files_no_further() -> None:
    file, live = Endless(live=False), Acknowledged(timeline(*range(0, 1000, 10)), ends=False)
    sources = Sources([file, live])
    for batch in sources:
        if batch[-1].time >= 100:
            sources.stop()
    assert file.given < 2000


def test_what_waits_for_other_sources_does_not_grow() -> None:
    fast, slow = Endless(live=True, most=5000), Acknowledged(timeline(0), ends=False)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: sum(len(batch) for batch in Sources([fast, slow])))
        assert not fast.done.wait(0.5)  # that is long enough for all of it
        assert fast.given < 20
        slow.stop()
        assert running.result(20) == 5001


def test_a_buffer_has_room_for_so_many() -> None:
    buffer: Buffer[int] = Buffer(2)
    assert [buffer.offer(number) for number in range(3)] == [True, True, False]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(buffer.put, 3)
        assert buffer.take() == [0, 1]
        assert waiting.result(20)
        assert buffer.take() == [3]
        buffer.close()
        assert buffer.take() == []
        assert not buffer.put(4)


class Dropping(LiveSource):
    """A source whose connections all fail at once; the ninth one delivers an event before."""

    def __init__(self) -> None:
        super().__init__(parse("x://y/z?format=nt", "-"), DeadLetterFile())
        self.waited: list[float] = []

    def receive(self) -> Iterator[Sequence[Event]]:
        yield ()
        if len(self.waited) == 8:
            yield from timeline(1)
        raise ConnectionLost("gone")

    def _wait(self, left: Iterator[float], error: ConnectionLost) -> None:
        self.waited.append(next(left))
        if len(self.waited) == 10:
            self.stop()


def test_connections_that_bring_nothing_are_further_and_further_apart() -> None:
    source = Dropping()
    assert sum(map(len, source.batches())) == 1
    *before, again, later = source.waited
    for number, delay in enumerate(before):
        assert delay == pytest.approx(min(0.0875 * 2**number, 4.375), rel=0.15)
    assert again <= 0.1
    assert later <= 0.2


@pytest.mark.parametrize("takes", [0.0, 7.0])
def test_retries_back_off_and_end_after_the_given_time(takes: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds however long each retry takes."""
    now, result = 1000.0, []
    monkeypatch.setattr("squall.streams.live.base.time.monotonic", lambda: now)
    for delay in delays(60):
        result.append(delay)
        now += delay + takes
    assert 1060 <= now <= 1060.001 + takes
    assert result[0] <= 0.1
    assert max(result) <= 5
    assert all(later > earlier for earlier, later in pairwise(result[:5]))
    assert list(delays(0)) == []


def test_the_first_signal_ends_live_sources_and_the_second_interrupts() -> None:
    source = Acknowledged(timeline(1), ends=False)
    sources = Sources([source])
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signal(sources):
        batches = iter(sources)
        next(batches)
        os.kill(os.getpid(), signal.SIGTERM)
        assert list(batches) == []
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_interrupts_bounded_sources() -> None:
    with pytest.raises(KeyboardInterrupt), stop_on_signal(Sources([])):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_suspends_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt"
    path.write_text("".join(f"{at} <urn:s> <urn:p> <urn:o> .\n" for at in range(1000)))
    sources = Sources([open_limited(str(path), ReadLimits(chunk_bytes=100))])
    sources.track_offsets((), 100)
    with stop_on_signal(sources):
        batches = iter(sources)
        history = [event.time for event in next(batches)]
        os.kill(os.getpid(), signal.SIGTERM)
        wait(lambda: sources.stopped)
        assert list(batches) == []
    again = Sources([open_source(str(path))])
    again.track_offsets(sources.current_offsets(), 100)
    assert [*history, *(event.time for batch in again for event in batch)] == list(range(1000))


@pytest.mark.parametrize(
    ("uri", "endpoint"),
    [
        ("xx://host:1/a/b%20c", ("host", 1, "a/b c", None, None)),
        ("xx://host/sensors/+/#", ("host", 7, "sensors/+/#", None, None)),
        ("xx://[::1]:5", ("::1", 5, "", None, None)),
        ("xx://me:s%40crt@host", ("host", 7, "", "me", "s@crt")),
        ("xx://me:p@ss@host", ("host", 7, "", "me", "p@ss")),
        ("xx://:5/", ("", 5, "", None, None)),
    ],
)
def test_endpoints(uri: str, endpoint: tuple[str, int, str, str | None, str | None]) -> None:
    assert parse(uri, "stdin").endpoint(7) == endpoint


@pytest.mark.parametrize("option", ["connections=-1", "idle=-1", "retry=-1", "poll=-1"])
def test_numbers_that_are_too_small(option: str) -> None:
    """A source that may serve -1 connections would serve without end."""
    place = "http://host/?" if option.startswith("poll") else "tcp://:1?listen=yes&"
    with pytest.raises(UsageError, match=f"`{option}` in .* is too small"):
        open_source(f"{place}format=nt&{option}")


def test_a_password_is_not_shown() -> None:
    assert parse("mqtt://me:secret@host/topic?format=nt", "stdin").text == "mqtt://me:***@host/topic?format=nt"


class Messages(MessageSource):
    """Messages that are given, all at once."""

    given: Sequence[bytes] = ()

    def receive(self) -> Iterator[Sequence[Event]]:
        yield self.events([Message(data, "test", f"message {number}") for number, data in enumerate(self.given)])


FRAMES = st.one_of(
    st.binary(max_size=100),
    st.text(max_size=100).map(str.encode),
    st.lists(
        st.sampled_from(
            ["<a:b>", '"x"', "_:b", ".", "{", "}", "12", "-infinity", "TX", "TC", "A", "D", "H", "\n", "@prefix"]
        )
    ).map(lambda words: " ".join(words).encode()),
)


@settings(deadline=None, max_examples=examples_of(300))
@given(
    st.lists(FRAMES, max_size=4),
    st.sampled_from(sorted(name for name, kind in BY_NAME.items() if not (kind.binary or kind.records))),
)
def test_any_message_is_read_or_counted(frames: list[bytes], format: str) -> None:
    """A malformed message does not affect the others."""
    good = b"1 <urn:a:b> <urn:a:b> <urn:a:b> ." if format in ("ntt", "nqt") else b"<urn:a:b> <urn:a:b> <urn:a:b> ."
    ledger = DeadLetterFile()
    source = Messages(parse(f"test:?format={format}", "stdin"), ledger)
    source.given = [*frames, good]
    events = [item for batch in source.batches() for item in batch]
    assert source.reading.bytes == sum(map(len, source.given))
    assert source.reading.statements == sum(len(item.facts) + len(item.removed) for item in events)
    assert ledger.counts.keys() <= {("malformed", "test")}
    if format not in ("rdfp", "rdf", "jsonld"):
        assert iri("urn:a:b") in {fact[0] for item in events for fact in item.facts}


@pytest.mark.parametrize(
    ("scheme", "module", "missing", "extra"),
    [
        ("mqtt", "mqtt", "paho", "mqtt"),
        ("kafka", "kafka", "confluent_kafka", "kafka"),
        ("redis", "redis_streams", "redis", "redis"),
        ("ws", "websocket", "websockets", "websocket"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str, module: str, missing: str, extra: str
) -> None:
    monkeypatch.delitem(sys.modules, f"squall.streams.live.{module}", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    for opening in (open_source, open_sink):
        with pytest.raises(PluginError, match=f"needs `{missing}`") as caught:
            opening(f"{scheme}://host/t?format=nt")
        assert f"squall[{extra}]" in str(caught.value)


class Insisting(MessageSink):
    """A sink that nothing can be sent to until it has been tried so often."""

    def __init__(self, uri: str, fails: int) -> None:
        super().__init__(parse(uri, "-"))
        self.fails = fails
        self.tried = 0

    def start(self, resume: bool = False, prompt: bool = False) -> None: ...
    def flush(self) -> None: ...
    def disconnect(self) -> None: ...

    def send(self, data: bytes) -> None:
        self.retry_until_done(self._problem)

    def _problem(self) -> str | None:
        self.tried += 1
        return "nobody is there" if self.tried <= self.fails else None


def test_a_sink_retries_for_the_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squall.streams.live.messages.time.sleep", lambda seconds: None)
    patient = Insisting("x://y/z?retry=60000", fails=3)
    patient.send(b"")
    assert patient.tried == 4


@pytest.mark.parametrize("fails", [0, 1])
def test_a_sink_that_is_not_to_try_again_tries_once(fails: int) -> None:
    hasty = Insisting("x://y/z?retry=0", fails)
    if fails:
        with pytest.raises(SinkError, match="cannot be written: nobody is there"):
            hasty.send(b"")
    else:
        hasty.send(b"")
    assert hasty.tried == 1


@pytest.mark.more
@pytest.mark.parametrize("name", ["grows.sh", "folder.sh"])
def test_the_example_of_what_grows_runs(name: str, tmp_path: Path) -> None:
    example(name, tmp_path, {})
