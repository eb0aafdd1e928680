"""Sources that wrap another one: they repair its order, or take its times from a property."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, NamedTuple

from squall.contracts import DeadLetterLedger
from squall.model.windows import duration
from squall.rdf import ALWAYS, DEFAULT_STREAM, FOREVER, Event, Fact, Term, Triple, heartbeat
from squall.streams.dead_letters import MAX_TEXT_LENGTH
from squall.streams.formats import MAX_UNIT_BYTES
from squall.streams.formats.event_json import event_of, fact_of
from squall.streams.formats.timestamps import moment, property_time
from squall.streams.sources.files import Acknowledging, Replayable, Resumable, Source, Stoppable, risk_of


class _WrappingSource:
    """A source that wraps another one, whose attributes it has."""

    def __init__(self, source: Source, ledger: DeadLetterLedger) -> None:
        self.source = source
        self.uri = source.uri
        self.live = source.live
        self.size = source.size
        self.idle = source.idle
        self.removals = source.removals
        self.risk = risk_of(source)
        self.reading = source.reading
        self.earliest = source.earliest
        self.ledger = ledger
        self._covered = ""
        """The position of the source up to which all events have been output."""

    def stop(self) -> None:
        """Stops the source, if it is `squall.streams.sources.files.Stoppable`."""
        if isinstance(self.source, Stoppable):
            self.source.stop()

    def position(self) -> str:
        """Returns the position up to which no events are buffered (`squall.streams.sources.files.Acknowledging`)."""
        return self._covered

    def acknowledge(self, position: str) -> None:
        if isinstance(self.source, Acknowledging):
            self.source.acknowledge(position)

    def close(self) -> None:
        if isinstance(self.source, Acknowledging):
            self.source.close()

    def current_offset(self) -> Any:
        """Returns the offset of the source, with the buffered events (`squall.streams.sources.files.Resumable`)."""
        return {"source": current_offset(self.source), "kept": self._snapshot()}

    def resume(self, state: Any) -> None:
        resume(self.source, state["source"])
        self._restore(state["kept"])

    def _snapshot(self) -> Any:
        raise NotImplementedError

    def _restore(self, state: Any) -> None:
        raise NotImplementedError

    def _position(self) -> str:
        return self.source.position() if isinstance(self.source, Acknowledging) else ""


def original(source: Source) -> Source:
    """Returns the innermost source, which wraps no other."""
    while isinstance(source, _WrappingSource):
        source = source.source
    return source


def current_offset(source: Source) -> Any:
    """Returns the offset behind the last batch of a source, or None if it has none."""
    if isinstance(source, Resumable):
        return source.current_offset()
    return source.position() if isinstance(source, Replayable) else None


def resume(source: Source, state: Any) -> None:
    """Lets a source resume from an offset. Raises SourceError if the events there are gone."""
    if isinstance(source, Resumable):
        source.resume(state)
    elif isinstance(source, Replayable) and state:
        source.seek(state)


class ReorderingSource(_WrappingSource):
    """A source that repairs the order of another one whose events are out of order by at most the lateness.

    The watermark is the latest time so far minus the lateness. An event is output when the watermark has reached it. An
    event that is earlier than the watermark when it arrives is late, and is a dead letter. A live source outputs its
    watermark as a heartbeat.

    Attributes:
        lateness: The bound of the disorder, in integer ms.
        latest: The latest time so far, in integer ms.
    """

    def __init__(self, source: Source, ledger: DeadLetterLedger, lateness: int) -> None:
        super().__init__(source, ledger)
        self.lateness = lateness
        self.latest = ALWAYS
        self._buffered: list[tuple[int, int, Event]] = []
        self._number = 0
        self._positions: deque[tuple[int, str]] = deque()
        """Positions of the source behind buffered events, each with the number of the last event before it."""

    @property
    def watermark(self) -> int:
        """The time (integer ms) before which no more events are output."""
        return max(ALWAYS, self.latest - self.lateness)

    def batches(self) -> Iterator[Sequence[Event]]:
        for batch in self.source.batches():
            for event in batch:
                self._put(event)
            events = self._pop_until(self.watermark)
            self._advance_position(self._position())
            yield events
        remaining = self._pop_until(FOREVER)
        self._advance_position(self._position())
        if remaining:
            yield remaining

    def _snapshot(self) -> Any:
        return self.latest, tuple(self._buffered)

    def _restore(self, state: Any) -> None:
        latest, events = state
        for _, _, event in sorted(events, key=itemgetter(1)):
            self._put(event_of(event))
        self.latest = latest

    def _advance_position(self, position: str) -> None:
        if not position:
            return
        self._positions.append((self._number, position))
        first = min((number for _, number, _ in self._buffered), default=self._number + 1)
        while self._positions and self._positions[0][0] < first:
            self._covered = self._positions.popleft()[1]

    def _put(self, event: Event) -> None:
        if event.time < self.watermark:
            self._late(event)
            return
        self.latest = max(self.latest, event.time)
        self._number += 1
        heappush(self._buffered, (event.time, self._number, event))

    def _late(self, event: Event) -> None:
        reason = f"its time {event.time} is more than {duration(self.lateness)} before {self.latest}"
        for fact in (*event.facts, *event.removed):
            text = f"{event.time} {fact}"
            self.ledger.record("late", event.stream or DEFAULT_STREAM, None, reason, text)

    def _pop_until(self, watermark: int) -> list[Event]:
        events = []
        while self._buffered and self._buffered[0][0] <= watermark:
            events.append(heappop(self._buffered)[2])
        if self.live and ALWAYS < watermark < FOREVER and not (events and events[-1].time == watermark):
            events.append(heartbeat(watermark))
        return events


class _EventKey(NamedTuple):
    """The key of an event: consecutive statements with the same key are one event.

    Attributes:
        stream: The stream.
        graph: The named graph, or ``""``.
        about: The subject, or the graph.
        time: The time of the graph in integer ms, if the event is a graph with a time.
    """

    stream: str
    graph: str
    about: str
    time: int | None


class TimedByProperty(_WrappingSource):
    """A source whose events get their times from a property of their subjects, or of their graphs.

    Consecutive statements of one subject and graph are one event, however the source cuts them into batches. Its time
    is the value of the property (see `moment`), the earliest if there are several. An event without one is a malformed
    dead letter. Of a live source, the statements of a subject are complete when those of another one begin. The
    statements of a named graph are one event at the time of the graph, if the last event of the default graph before it
    has the name of the graph as its subject.

    Attributes:
        property: The predicate.
        max_characters: The most characters of consecutive statements of one subject, if the source is live.
    """

    def __init__(
        self, source: Source, ledger: DeadLetterLedger, property: Term, max_characters: int = MAX_UNIT_BYTES
    ) -> None:
        super().__init__(source, ledger)
        self.max_characters = max_characters
        self.earliest = ALWAYS
        self.property = property
        self._subject_time: tuple[str, int | None] = "", None
        """The last subject of the default graph, and its time."""
        self._run: list[Fact] = []
        """The facts of the event that is not complete yet."""
        self._key: _EventKey | None = None
        """The key of that event."""
        self._length = 0
        """Their length in characters, which is bounded if the source is live."""

    def batches(self) -> Iterator[Sequence[Event]]:
        before = ""  # the position before the batch in which the event began
        for batch in self.source.batches():
            events: list[Event] = []
            for event in batch:
                for fact in event.facts:
                    if not event.graph:
                        self._note(fact)
                    key = self._key_of(fact, event)
                    if key != self._key:
                        events += self._complete()
                        self._covered = before
                        self._key = key
                    self._append(fact)
            before = self._position()
            yield events
        self._covered = self._position()
        if remaining := self._complete():
            yield remaining

    def _snapshot(self) -> Any:
        return self._subject_time, self._key, tuple(self._run), self._length

    def _restore(self, state: Any) -> None:
        subject_time, key, run, self._length = state
        self._subject_time, self._run = tuple(subject_time), list(map(fact_of, run))
        self._key = None if key is None else _EventKey(*key)

    def _complete(self) -> list[Event]:
        """Returns the current event, which is complete."""
        run, self._run, self._length = self._run, [], 0
        return [] if not run or self._key is None else self._timed(run, *self._key)

    def _append(self, fact: Fact) -> None:
        """Appends a fact to the current event. If it gets too long, its facts are dead letters."""
        self._run.append(fact)
        if self.live:
            self._length += sum(map(len, fact))
        if self._length > self.max_characters:
            reason = f"consecutive statements of its subject are longer than {self.max_characters} characters"
            self._lose(self._run, reason)
            self._run = []

    def _note(self, fact: Fact) -> None:
        """Notes the time of a subject of the default graph."""
        subject, known_time = self._subject_time
        if fact[0] != subject:
            known_time = None
        time = moment(fact[2]) if isinstance(fact, Triple) and fact[1] == self.property else None
        times = [candidate for candidate in (known_time, time) if candidate is not None]
        self._subject_time = fact[0], min(times, default=None)

    def _key_of(self, fact: Fact, event: Event) -> _EventKey:
        subject, time = self._subject_time
        if event.graph and event.graph == subject and time is not None:
            return _EventKey(event.stream, event.graph, subject, time)
        return _EventKey(event.stream, event.graph, fact[0], None)

    def _timed(self, run: Sequence[Fact], stream: str, graph: str, _: str, time: int | None) -> list[Event]:
        if time is not None:
            return [Event(time, tuple(run), stream, graph=graph)]
        try:
            return [Event(property_time(run, self.property), tuple(run), stream, graph=graph)]
        except ValueError as error:
            self._lose(run, str(error))
            return []

    def _lose(self, facts: Sequence[Fact], reason: str) -> None:
        for fact in facts:
            self.reading.statements -= 1
            self.reading.malformed += 1
            self.ledger.record("malformed", self.uri, None, reason, str(fact)[:MAX_TEXT_LENGTH])
