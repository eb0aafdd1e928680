"""Sources that are made of another: what any of them says, in another order or with other times."""

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
from squall.streams.formats import LONGEST
from squall.streams.formats.event_json import event_of, fact_of
from squall.streams.formats.timestamps import moment, property_time
from squall.streams.sources.files import Acknowledging, Replayable, Resumable, Source, Stoppable, risk_of


class _Derived:
    """The attributes of a source, as those of what is made of it."""

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
        """The position of the source up to where all has been handed on."""

    def stop(self) -> None:
        """See `squall.streams.sources.files.Stoppable`: the source has to be one."""
        if isinstance(self.source, Stoppable):
            self.source.stop()

    def position(self) -> str:
        """See `squall.streams.sources.files.Acknowledging`: up to where nothing is held back."""
        return self._covered

    def acknowledge(self, position: str) -> None:
        if isinstance(self.source, Acknowledging):
            self.source.acknowledge(position)

    def close(self) -> None:
        if isinstance(self.source, Acknowledging):
            self.source.close()

    def current_offset(self) -> Any:
        """See `squall.streams.sources.files.Resumable`: where the source stands, and what is kept of what it
        brought."""
        return {"source": current_offset(self.source), "kept": self._keeps()}

    def resume(self, state: Any) -> None:
        resume(self.source, state["source"])
        self._take_back(state["kept"])

    def _keeps(self) -> Any:
        raise NotImplementedError

    def _take_back(self, state: Any) -> None:
        raise NotImplementedError

    def _position(self) -> str:
        return self.source.position() if isinstance(self.source, Acknowledging) else ""


def original(source: Source) -> Source:
    """What a source is made of in the end."""
    while isinstance(source, _Derived):
        source = source.source
    return source


def current_offset(source: Source) -> Any:
    """All that has to be known to go on behind the last batch of a source; None: it goes on with what comes."""
    if isinstance(source, Resumable):
        return source.current_offset()
    return source.position() if isinstance(source, Replayable) else None


def resume(source: Source, state: Any) -> None:
    """Lets a source go on where that was told. Raises SourceError if what is there is gone."""
    if isinstance(source, Resumable):
        source.resume(state)
    elif isinstance(source, Replayable) and state:
        source.seek(state)


class ReorderingSource(_Derived):
    """A source whose disorder is repaired, as far as it is bounded.

    An event is handed on when the watermark, the latest time seen so far less the lateness, has reached it. What is
    earlier than the watermark when it comes is late, and goes to the ledger. A live source says by an event without
    facts how far its watermark is.

    lateness: integer ms.
    """

    def __init__(self, source: Source, ledger: DeadLetterLedger, lateness: int) -> None:
        super().__init__(source, ledger)
        self.lateness = lateness
        self.latest = ALWAYS
        self._kept: list[tuple[int, int, Event]] = []
        self._number = 0
        self._positions: deque[tuple[int, str]] = deque()
        """Those of the source behind the events that are held back: the number of the last event up to each."""

    @property
    def watermark(self) -> int:
        """No event before this time (integer ms) is handed on any more."""
        return max(ALWAYS, self.latest - self.lateness)

    def batches(self) -> Iterator[Sequence[Event]]:
        for batch in self.source.batches():
            for event in batch:
                self._put(event)
            events = self._upto(self.watermark)
            self._cover(self._position())
            yield events
        remaining = self._upto(FOREVER)
        self._cover(self._position())
        if remaining:
            yield remaining

    def _keeps(self) -> Any:
        return self.latest, tuple(self._kept)

    def _take_back(self, state: Any) -> None:
        latest, events = state
        for _, _, event in sorted(events, key=itemgetter(1)):
            self._put(event_of(event))
        self.latest = latest

    def _cover(self, position: str) -> None:
        if not position:
            return
        self._positions.append((self._number, position))
        first = min((number for _, number, _ in self._kept), default=self._number + 1)
        while self._positions and self._positions[0][0] < first:
            self._covered = self._positions.popleft()[1]

    def _put(self, event: Event) -> None:
        if event.time < self.watermark:
            self._late(event)
            return
        self.latest = max(self.latest, event.time)
        self._number += 1
        heappush(self._kept, (event.time, self._number, event))

    def _late(self, event: Event) -> None:
        reason = f"its time {event.time} is more than {duration(self.lateness)} before {self.latest}"
        for fact in (*event.facts, *event.removed):
            text = f"{event.time} {fact}"
            self.ledger.record("late", event.stream or DEFAULT_STREAM, None, reason, text)

    def _upto(self, watermark: int) -> list[Event]:
        events = []
        while self._kept and self._kept[0][0] <= watermark:
            events.append(heappop(self._kept)[2])
        if self.live and ALWAYS < watermark < FOREVER and not (events and events[-1].time == watermark):
            events.append(heartbeat(watermark))
        return events


class _Place(NamedTuple):
    """What tells one event from another: the stream, the named graph or none, the subject or the graph that it is
    about, and the time of the graph if it is about that."""

    stream: str
    graph: str
    about: str
    time: int | None


class TimedByProperty(_Derived):
    """A source whose events get their times from a property of their subjects, or of their graphs.

    Statements of one subject and graph that follow each other are one event, however the source cuts them into batches.
    Its time is the value of the property (see `moment`), the least if there are several; an event without one goes to
    the ledger as malformed. Of a live source, the statements of a subject are complete when another one's come. Those
    of a named graph are one event at the time of the graph, if its name is the subject of the last event of the default
    graph in front of it.

    property: a predicate.
    """

    def __init__(self, source: Source, ledger: DeadLetterLedger, property: Term) -> None:
        super().__init__(source, ledger)
        self.earliest = ALWAYS
        self.property = property
        self._said: tuple[str, int | None] = "", None
        """The last subject of the default graph, and the time that was said of it."""
        self._run: list[Fact] = []
        """The facts of the event that is not complete,"""
        self._of: _Place | None = None
        """what they are about,"""
        self._length = 0
        """and how many characters they have; of a live source, which may go on about it for ever."""

    def batches(self) -> Iterator[Sequence[Event]]:
        before = ""  # the position in front of the batch in which the run began
        for batch in self.source.batches():
            events: list[Event] = []
            for event in batch:
                for fact in event.facts:
                    if not event.graph:
                        self._note(fact)
                    place = self._place(fact, event)
                    if place != self._of:
                        events += self._complete()
                        self._covered = before
                        self._of = place
                    self._keep(fact)
            before = self._position()
            yield events
        self._covered = self._position()
        if remaining := self._complete():
            yield remaining

    def _keeps(self) -> Any:
        return self._said, self._of, tuple(self._run), self._length

    def _take_back(self, state: Any) -> None:
        subject_time, place, run, self._length = state
        self._said, self._run = tuple(subject_time), list(map(fact_of, run))
        self._of = None if place is None else _Place(*place)

    def _complete(self) -> list[Event]:
        """The event of the facts that have come of one subject."""
        run, self._run, self._length = self._run, [], 0
        return [] if not run or self._of is None else self._timed(run, *self._of)

    def _keep(self, fact: Fact) -> None:
        """Adds a fact to the run. When that gets too long, it is lost, with what still comes of it."""
        self._run.append(fact)
        if self.live:
            self._length += sum(map(len, fact))
        if self._length > LONGEST:
            self._lose(self._run, f"what is said of its subject without a break is longer than {LONGEST} characters")
            self._run = []

    def _note(self, fact: Fact) -> None:
        """Takes note of what is said of a subject in the default graph."""
        subject, known_time = self._said
        if fact[0] != subject:
            known_time = None
        time = moment(fact[2]) if isinstance(fact, Triple) and fact[1] == self.property else None
        times = [candidate for candidate in (known_time, time) if candidate is not None]
        self._said = fact[0], min(times, default=None)

    def _place(self, fact: Fact, event: Event) -> _Place:
        subject, time = self._said
        if event.graph and event.graph == subject and time is not None:
            return _Place(event.stream, event.graph, subject, time)
        return _Place(event.stream, event.graph, fact[0], None)

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
            self.ledger.record("malformed", self.uri, None, reason, str(fact)[:MAX_TEXT_LENGTH])
