"""Event time at the sources: disorder and lateness, times in the data, several sources, clocks and heartbeats."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall.contracts import DeadLetterLedger
from squall.errors import BuilderError, SourceError, UsageError
from squall.model import profiles, with_windows
from squall.model.windows import SlidingWindow, Window
from squall.rdf import ALWAYS, XSD, Atom, Event, Fact, Solution, Term, Triple, iri, literal
from squall.streams import DeadLetterFile, Source, Sources, open_source, windows
from squall.streams.clock import Clock, EventClock, VirtualClock, WallClock, beginning
from squall.streams.dead_letters import DeferredLedger
from squall.streams.formats.reading import ReadProgress
from squall.streams.formats.timestamps import moment
from squall.streams.sources.reordering import ReorderingSource, TimedByProperty

E = "http://example.org/"
AT = iri(E + "at")


def t(subject: str, object: str = "o") -> Triple:
    return Triple(iri(E + subject), iri(E + "p"), iri(E + object))


def stamped(subject: str, time: int) -> Triple:
    return Triple(iri(E + subject), AT, literal(str(time), XSD + "integer"))


class Scripted:
    """A live source whose events the test supplies."""

    uri = "scripted"
    live = True
    removals = False
    size: int | None = None

    def __init__(self, idle: int = 5000, earliest: int = ALWAYS) -> None:
        self.idle = idle
        self.earliest = earliest
        self.reading = ReadProgress()
        self._said: Queue[Sequence[Event] | BaseException | None] = Queue()

    def say(self, *times: int) -> None:
        self._said.put([Event(time, (t("live"),)) for time in times])

    def beat(self, time: int) -> None:
        self._said.put([Event(time, ())])

    def end(self, error: BaseException | None = None) -> None:
        self._said.put(error)

    def batches(self) -> Iterator[Sequence[Event]]:
        while (word := self._said.get(timeout=10)) is not None:
            if isinstance(word, BaseException):
                raise word
            yield word


class Fixed:
    """A source that is at hand as a whole."""

    uri = "fixed"
    live = False
    removals = False
    size: int | None = None
    idle = 0
    earliest = ALWAYS

    def __init__(self, *batches: Sequence[Event]) -> None:
        self.reading = ReadProgress(sum(len(event.facts) for batch in batches for event in batch))
        self._batches = batches

    def batches(self) -> Iterator[Sequence[Event]]:
        return iter(self._batches)


def fixed(*times: int) -> Fixed:
    return Fixed([Event(time, (t("fixed"),)) for time in times])


class Taken:
    """The events of a merge, read by a thread; "." is a heartbeat."""

    def __init__(self, batches: Sources) -> None:
        self._events: Queue[Event | BaseException | None] = Queue()
        threading.Thread(target=self._take, args=(batches,), daemon=True).start()

    def _take(self, batches: Sources) -> None:
        try:
            for batch in batches:
                for event in batch:
                    self._events.put(event)
            self._events.put(None)
        except SourceError as error:
            self._events.put(error)

    def next(self) -> str | None:
        event = self._events.get(timeout=10)
        if isinstance(event, BaseException):
            raise event
        return None if event is None else f"{event.time}{'' if event.facts else '.'}"

    def some(self, count: int) -> list[str | None]:
        return [self.next() for _ in range(count)]


def times(source: Source) -> list[int]:
    return [event.time for batch in source.batches() for event in batch]


# Disorder


def test_disorder_is_repaired_as_far_as_it_is_bounded() -> None:
    ledger = DeadLetterFile()
    assert times(ReorderingSource(fixed(3, 1, 2, 9, 4, 5, 6), ledger, 4)) == [1, 2, 3, 5, 6, 9]
    assert ledger.counts == {("late", "the default stream"): 1}


def test_a_late_record_reports_its_lateness(tmp_path: Path) -> None:
    ledger = DeadLetterFile(tmp_path / "lost")
    event = Event(1, (t("a"), t("b")), "s", (t("c"),))
    list(ReorderingSource(Fixed([Event(9, (t("a"),)), event]), ledger, 5).batches())
    ledger.close()
    text = (tmp_path / "lost").read_text()
    assert ledger.counts == {("late", "s"): 3}
    assert "its time 1 is more than 5ms before 9" in text
    assert f"1 {t('c')}" in text


def test_events_of_one_time_stay_in_their_order() -> None:
    same = [Event(5, (t(name),)) for name in "abc"]
    source = ReorderingSource(Fixed([*same, Event(9, (t("z"),))]), DeadLetterFile(), 2)
    assert [event for batch in source.batches() for event in batch][:3] == same


@given(st.lists(st.integers(0, 50)), st.integers(1, 20), st.data())
def test_cutting_into_batches_does_not_matter_to_disorder(
    moments: list[int], lateness: int, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(moments)))
    events = [Event(time, (t(str(n)),)) for n, time in enumerate(moments)]
    results = []
    for batches in ([events], [events[:cut], events[cut:]], [[event] for event in events]):
        ledger = DeadLetterFile()
        source = ReorderingSource(Fixed(*batches), ledger, lateness)
        ordered = [event for batch in source.batches() for event in batch]
        results.append((ordered, ledger.total("late")))
        assert [event.time for event in ordered] == sorted(event.time for event in ordered)
        assert len(ordered) + ledger.total("late") == len(events)
    assert results[0] == results[1] == results[2]


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 20))
def test_disorder_within_the_bound_loses_nothing(moments: list[int], lateness: int) -> None:
    """Times that are moved by less than the lateness are never late."""
    ledger = DeadLetterFile()
    jumbled = sorted(moments, key=lambda time: time - time * 7919 % (lateness + 1))
    assert times(ReorderingSource(fixed(*jumbled), ledger, lateness)) == sorted(moments)
    assert not ledger.counts


def test_lateness_by_address_and_for_all(tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    path.write_text("".join(f"{time} {t('a')}\n" for time in (3, 1, 9)))
    assert times(open_source(f"{path}?lateness=2ms")) == [1, 3, 9]
    assert times(open_source(str(path), lateness=2)) == [1, 3, 9]
    assert times(open_source(f"{path}?lateness=0s", lateness=2)) == [3, 1, 9]
    source = open_source(f"s={path}?lateness=2ms")
    assert (source.uri, source.size, source.live) == (f"s={path}?lateness=2ms", path.stat().st_size, False)
    list(source.batches())
    assert source.reading.statements == 3


# Times that data say


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (literal("1970-01-01T00:00:01Z", XSD + "dateTime"), 1000),
        (literal("1970-01-01T01:00:00.0019+01:00", XSD + "dateTimeStamp"), 1),
        (literal("1969-12-31T23:59:59.9999", XSD + "dateTime"), -1),
        (literal("1970-01-02", XSD + "date"), 86_400_000),
        (literal("5", XSD + "integer"), 5),
        (literal("-5", XSD + "long"), -5),
        (literal("5"), None),
        (literal("5.0", XSD + "decimal"), None),
        (literal("soon", XSD + "dateTime"), None),
        (literal("12:00:00", XSD + "time"), None),
        (literal("9" * 30, XSD + "integer"), None),
        (iri(E + "x"), None),
    ],
)
def test_the_time_of_a_literal(term: Term, expected: int | None) -> None:
    assert moment(term) == expected


def by_property(*batches: Sequence[Fact]) -> tuple[list[Event], DeadLetterFile, ReadProgress]:
    ledger = DeadLetterFile()
    source = TimedByProperty(Fixed(*([Event(0, tuple(facts), "s")] for facts in batches)), ledger, AT)
    return [event for batch in source.batches() for event in batch], ledger, source.reading


def test_statements_of_one_subject_are_an_event_with_its_time() -> None:
    a, b = (t("a"), stamped("a", 5)), (stamped("b", 3), t("b"))
    expected = [Event(5, a, "s"), Event(3, b, "s")]
    assert by_property([*a, *b])[0] == expected
    assert by_property(a[:1], [a[1], b[0]], b[1:])[0] == expected


def test_of_several_times_the_least_counts() -> None:
    assert by_property([stamped("a", 5), stamped("a", 3)])[0][0].time == 3


def test_an_event_without_a_time_is_a_dead_letter() -> None:
    odd = Triple(iri(E + "c"), AT, literal("soon"))
    result, ledger, reading = by_property([t("a"), stamped("b", 1), odd, Atom(iri(E + "r"), (literal("1"),))])
    assert [event.time for event in result] == [1]
    assert ledger.counts == {("malformed", "fixed"): 3}
    assert reading.statements == 1


@pytest.mark.parametrize("name", [f"<{E}at>", f"{E}at"])
def test_the_property_by_address(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.nt"
    path.write_text(f"{t('a')}\n{stamped('a', 7)}\n{t('b')}\n")
    ledger = DeadLetterFile(tmp_path / "lost")
    source = open_source(f"obs={path}?time={name}&lateness=5ms", ledger)
    assert [event for batch in source.batches() for event in batch] == [Event(7, (t("a"), stamped("a", 7)), "obs")]
    assert source.earliest == ALWAYS
    ledger.close()
    assert f"it has no {E}at" in (tmp_path / "lost").read_text()


def test_a_patch_has_its_own_event_times(tmp_path: Path) -> None:
    (tmp_path / "x.rdfp").touch()
    with pytest.raises(UsageError, match="has the times of its transactions itself"):
        open_source(f"{tmp_path}/x.rdfp?time=urn:at")


# Several sources


def test_a_live_source_is_waited_for() -> None:
    live = Scripted()
    batch_items = Taken(Sources([fixed(1, 5, 9), live], VirtualClock()))
    live.say(4)
    assert batch_items.some(2) == ["1", "4"]
    live.say(6)
    assert batch_items.some(2) == ["5", "6"]
    live.end()
    assert batch_items.some(2) == ["9", None]


def test_an_idle_source_does_not_hold_back_the_others_for_ever() -> None:
    live, clock = Scripted(idle=50), VirtualClock()
    batch_items = Taken(Sources([fixed(1, 5), live], clock))
    assert clock.awaited()
    clock.advance(50)
    assert batch_items.some(2) == ["1", "5"]
    live.say(3)
    assert batch_items.next() == "3"
    live.end()
    assert batch_items.next() is None


def test_a_watermark_releases_buffered_events() -> None:
    live = Scripted()
    batch_items = Taken(Sources([fixed(1, 5, 9), live], VirtualClock()))
    live.beat(5)
    assert batch_items.some(2) == ["1", "5"]
    live.end()
    assert batch_items.some(2) == ["9", None]


def test_a_source_of_a_fixed_time_holds_nothing_back() -> None:
    live = Scripted(earliest=7)
    batch_items = Taken(Sources([fixed(1, 7), live], VirtualClock()))
    assert batch_items.some(2) == ["1", "7"]
    live.end()
    assert batch_items.next() is None


@pytest.mark.parametrize("clock", [VirtualClock(), VirtualClock(stamps=True)])
def test_the_error_of_a_live_source_is_raised(clock: Clock) -> None:
    live = Scripted()
    batch_items = Taken(Sources([live, fixed()], clock))
    live.end(SourceError("gone"))
    with pytest.raises(SourceError, match="gone"):
        batch_items.next()


def test_what_sources_say_of_themselves() -> None:
    assert Sources([fixed(), Scripted()]).live
    assert not Sources([fixed()]).removals


# Heartbeats


def test_an_idle_stream_reports_its_watermark() -> None:
    live, clock = Scripted(), VirtualClock()
    batch_items = Taken(Sources([ReorderingSource(live, DeadLetterFile(), 5)], clock, heartbeat=100))
    live.say(3, 20)
    assert batch_items.next() == "3"
    assert clock.awaited()
    clock.advance(100)
    assert batch_items.next() == "15."
    live.say(17, 30)
    assert batch_items.some(2) == ["17", "20"]
    live.end()
    assert batch_items.some(2) == ["30", None]


def test_no_heartbeat_where_nothing_is_known() -> None:
    item, other, clock = Scripted(), Scripted(), VirtualClock()
    batch_items = Taken(Sources([item, other], clock, heartbeat=100))
    assert clock.awaited()
    clock.advance(100_000)
    item.say(3)
    assert batch_items.next() == "3"
    item.end()
    other.end()
    assert batch_items.next() is None


class Losing(Scripted):
    """A source of which nothing can be used, and which knows how often."""

    def __init__(self, ledger: DeadLetterLedger) -> None:
        super().__init__()
        self.ledger = ledger
        self.lost = 0

    def batches(self) -> Iterator[Sequence[Event]]:
        for self.lost in range(1, 21):
            self.ledger.record("malformed", self.uri, self.lost, "it is", "")
            yield []
            time.sleep(0.01)

    def current_offset(self) -> int:
        return self.lost

    def resume(self, offset: int) -> None:
        raise AssertionError("it begins")


def test_dead_letters_are_before_the_offset_of_a_source() -> None:
    """Otherwise a resumed run would record them again."""
    total = DeadLetterFile()
    own = DeferredLedger(total)
    sources = Sources([Losing(own), Losing(DeferredLedger(DeadLetterFile()))], ledgers=[own])
    sources.track_offsets((), 5)
    history = [(sources.current_offsets()[0]["source"], total.total("malformed")) for _ in sources.batches()]
    assert len(history) > 3
    assert all(stands == dead_letters for stands, dead_letters in history)
    assert total.total("malformed") == 20


# The time of arrival


def test_events_get_the_time_at_which_they_arrive() -> None:
    live, clock = Scripted(), VirtualClock(1000, stamps=True)
    batch_items = Taken(Sources([live], clock, heartbeat=100))
    live.say(5)
    assert batch_items.next() == "1000"
    clock.advance(70)
    live.say(3, 4)
    live.beat(9)
    assert batch_items.some(2) == ["1070", "1070"]
    live.end()
    assert batch_items.next() is None


def test_the_watermark_advances_without_input() -> None:
    live, clock = Scripted(), VirtualClock(1000, stamps=True)
    batch_items = Taken(Sources([live], clock, heartbeat=100))
    live.say(7)
    assert batch_items.next() == "1000"
    assert clock.awaited()
    clock.advance(100)
    assert batch_items.next() == "1100."
    live.say(1)
    assert batch_items.next() == "1100"
    live.end()
    assert batch_items.next() is None


@pytest.mark.parametrize("stamps", [True, False])
def test_the_watermark_advances_without_usable_input(stamps: bool) -> None:
    live, clock = Scripted(idle=50), VirtualClock(1000, stamps=stamps)
    other = Scripted(idle=50)
    sources = [live, other]
    batch_items = Taken(Sources(sources, clock, heartbeat=100))
    if not stamps:
        other.say(7)
    for _ in range(10):  # more often than it takes for a heartbeat
        assert clock.awaited()
        live.say()
        time.sleep(0.01)
        clock.advance(20)
    assert batch_items.next() == ("1100." if stamps else "7")
    for source in sources:
        source.end()


def test_windows_close_by_timer_when_nothing_arrives() -> None:
    """The expiry of a fact is output without a later event (trap 29)."""
    live, clock = Scripted(), VirtualClock(1000, stamps=True)
    system = with_windows(squall.compile(f"[r: (?a <{E}p> ?b) -> (?b <{E}q> ?a)]", lexer="jena"), SlidingWindow(250))
    job = squall.build(squall.plan(profiles.apply_profile(system, output="dstream")))
    history: Queue[int] = Queue()
    outputs: Queue[int] = Queue()

    def watched() -> Iterator[Sequence[Event]]:
        for batch in Sources([live], clock, heartbeat=100):
            history.put(batch[0].time)
            yield batch

    def run() -> None:
        for out in job.run(watched()):
            outputs.put(out.time)

    threading.Thread(target=run, daemon=True).start()
    live.say(1)
    assert history.get(timeout=10) == 1000
    for expected in (1100, 1200, 1300):
        assert clock.awaited()
        clock.advance(100)
        assert history.get(timeout=10) == expected
    assert outputs.get(timeout=10) == 1250
    live.end()


# Clocks


def test_clocks() -> None:
    assert not EventClock().stamps
    assert WallClock().stamps
    assert WallClock().now() > 1_600_000_000_000
    virtual = VirtualClock(5)
    virtual.advance(3)
    assert virtual.now() == 8
    assert not virtual.awaited(timeout=0)


def test_the_wall_clock_does_not_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([5_000_000, 3_000_000, 7_000_000])
    monkeypatch.setattr("time.time_ns", lambda: next(moments))
    clock = WallClock()
    assert [clock.now() for _ in range(3)] == [5, 5, 7]


@pytest.mark.parametrize("clock", [EventClock(), WallClock(), VirtualClock(9)])
def test_waiting_ends_at_its_time(clock: Clock) -> None:
    changed = threading.Condition()
    with changed:
        clock.wait(changed, clock.now())


@pytest.mark.parametrize("clock", [EventClock(), WallClock(), VirtualClock()])
def test_waiting_ends_by_a_word(clock: Clock) -> None:
    changed = threading.Condition()

    def speak() -> None:
        with changed:
            changed.notify_all()

    with changed:
        threading.Thread(target=speak).start()
        clock.wait(changed, None)


def test_addresses_can_have_windows_in_python(tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    path.write_text(f"1000 {t('a')}\n")
    uri = f"obs={path}?window=RANGE 2s"
    results: dict[str, Window] = windows([uri])
    system = with_windows(squall.compile(f"[r: (?a <{E}p> ?b) -> (?b <{E}q> ?a)]", lexer="jena"), windows=results)
    plan = squall.plan(profiles.apply_profile(system, output="dstream"))
    (out,) = squall.build(plan).run(Sources([open_source(uri)]))
    assert out.time == 3000


# The time of what always holds


def asked(batches: object, now: int | None = None) -> str:
    """Returns the value of `NOW()` at the beginning."""
    plan = squall.plan(squall.compile("SELECT (NOW() AS ?now) {}", lexer="sparql"))
    (first, *_) = squall.build(plan, options=squall.Options(now=now)).run(batches, [])  # type: ignore[arg-type]
    assert isinstance(first.fact, Solution)
    return str(first.fact.values[0])[1:].partition("Z")[0]


def test_static_data_alone_begin_with_the_run() -> None:
    before = WallClock().now()
    assert before <= beginning(()) <= WallClock().now()
    nothing: list[object] = [[], [[]], Sources([])]
    for none in nothing:
        result = moment(literal(asked(none), XSD + "dateTime"))
        assert result is not None
        assert before <= result <= WallClock().now()


def test_static_data_begin_before_all_event_times() -> None:
    assert asked([[Event(5, (t("a"),))]]) == "1970-01-01T00:00:00"
    assert asked(iter([[Event(5, (t("a"),))]])) == "1970-01-01T00:00:00"
    assert asked(Sources([Fixed([Event(5, (t("a"),))])])) == "1970-01-01T00:00:00"


def test_static_data_begin_at_the_time_of_clock_or_options() -> None:
    sources = Sources([Fixed([Event(5, (t("a"),))])], VirtualClock(now=86_400_000, stamps=True))
    assert asked(sources) == "1970-01-02T00:00:00"
    assert asked([], now=1000) == "1970-01-01T00:00:01"


@pytest.mark.parametrize(
    "builder", [pytest.param("spark", marks=pytest.mark.spark), pytest.param("beam", marks=pytest.mark.beam)]
)
def test_when_a_file_arrives_is_not_known_where_workers_read_it(tmp_path: Path, builder: str) -> None:
    """Files that the driver reads get the time at which it reads them."""
    text = "<http://example.org/a> <http://example.org/p> <http://example.org/b> ."
    for name in ("a.nt", "a.ttl"):
        (tmp_path / name).write_text(text)
    plan = squall.plan(squall.compile("SELECT ?x WHERE { ?x ?y ?z }", lexer="sparql"))
    with pytest.raises(BuilderError, match=r"workers read `.*a\.nt` by themselves: when it arrives is not known"):
        list(squall.build(plan, builder).run(Sources([open_source(str(tmp_path / "a.nt"))], WallClock())))
    before = WallClock().now()
    (out,) = squall.build(plan, builder).run(Sources([open_source(str(tmp_path / "a.ttl"))], WallClock()))
    assert out.time >= before
