"""Several sources as one stream in the order of time, or in that of their arrival."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from squall import rdf
from squall.contracts import DeadLetterLedger
from squall.rdf import ALWAYS, FOREVER, Event, Term
from squall.streams.clock import Clock, EventClock
from squall.streams.dead_letters import DeferredLedger, RunLedger
from squall.streams.formats.event_json import event_of
from squall.streams.sources.cursors import Cursor, Finite, Live, says
from squall.streams.sources.files import Acknowledging, PushesFilterDown, Source, Stoppable
from squall.streams.sources.reader_threads import Inbox, Reader, Stand, Tap
from squall.streams.sources.reordering import Ordered, original


class Sources:
    """Batches of all sources, in non-decreasing time (where each of the sources is in that order itself).

    An event is handed on when no source can still say anything earlier. A file has always its next event at hand; a
    live source (a pipe, a folder that is followed) is read by a thread of its own, and what is known of it is that it
    does not go back behind its last event (or, untimed, behind its fixed time). Where that does not suffice, the
    others wait for it, but no longer than its `idle` milliseconds without a word (5000 unless its address says
    ``idle=``): then they go on without it until it speaks again. What it then says of earlier times is late, and goes
    to the ledger. A source alone is handed on as it is, in the order in which it comes.

    When nothing comes for `heartbeat` milliseconds, an event without facts says how far time has gone, if that is
    further than what has been handed on. With a clock that stamps, every event gets the time of its arrival, and time
    goes on by itself.

    Sources that keep what they bring until it has been worked off (`squall.streams.sources.files.Acknowledging`) are
    told so when the next batch is asked for: all that came of the one before has been handed on by then, unless
    `flush_sink`, which is called first, raises an error.

    sources: each of them, for builders that read them where they run. clock: see `squall.streams.clock`. heartbeat:
    integer ms. ledgers: where each source records what it loses, if they have ledgers of their own: so that what has
    been read and not handed on is not counted as lost yet."""

    flush_sink: Callable[[], None] | None = None
    """Makes sure that what has been written is where it should be; called before anything is acknowledged."""
    ends: Callable[[], None] | None = None
    """Ends the run that reads them elsewhere: then `stop` is its affair."""

    def __init__(
        self,
        sources: Sequence[Source],
        clock: Clock | None = None,
        heartbeat: int = 1000,
        ledgers: Sequence[DeferredLedger] = (),
    ) -> None:
        self.sources = tuple(sources)
        self.clock = clock or EventClock()
        self.heartbeat = heartbeat
        self.ledgers = ledgers
        self.stopped = False
        """Whether they were ended by `stop`."""
        self._taps = [Tap(source, ledger) for source, ledger in zip_longest(self.sources, ledgers)]
        self._positions: dict[int, str] = {}
        """Up to where sources have been handed on, by their numbers."""
        self._done: dict[int, str] = {}
        """Up to where that has been acknowledged."""
        self._states: dict[int, Any] = {}
        """Where sources stand, with what is at hand of them."""
        self._pulse: int | None = None
        self._reading = False

    @property
    def endable(self) -> bool:
        """Whether they are being read, and `stop` may end them: where some are live, or where all go on another time
        (`keep`); or whether who reads them has said what `ends` them."""
        if self.ends is not None:
            return True
        live = [original(source) for source in self.sources if source.live]
        ends = bool(live) or self._pulse is not None
        return self._reading and ends and all(isinstance(source, Stoppable) for source in live)

    def stop(self) -> None:
        """Ends live sources: what they have received is still handed on, and others are read no further than what is at
        hand. What goes on another time (`keep`) hands on no more than what comes before all that has not been read yet.
        May be called by any thread."""
        self.stopped = True
        if self.ends is not None:
            self.ends()
            return
        for source in self.sources:
            if source.live and isinstance(source, Stoppable):
                source.stop()

    def keep(self, states: Sequence[Any], pulse: int) -> None:
        """Says, before reading begins, that `current_offsets` are wanted, and where they were told to go on there. From
        then on who asks for them says what has been worked off (`acknowledge`) and ends reading (`close`), and does not
        wait longer than `pulse` (integer ms) for a batch, which may then be empty."""
        self._pulse = pulse
        for number, tap in enumerate(self._taps):
            tap.keeps = True
            if states:
                tap.resume(states[number])
                self._states[number] = states[number]
            else:
                self._note(number, "", tap.stand().state, (), tap.source.earliest)

    def current_offsets(self) -> list[Any]:
        """Where each source stands, as what JSON can hold (see `keep`): all that was handed on is before that."""
        return list(self._states.values())

    def positions(self) -> Mapping[int, str]:
        """Up to where sources have been handed on, by their numbers; to be asked for by the thread that reads."""
        return dict(self._positions)

    def acknowledge(self, positions: Mapping[int, str] | None = None) -> None:
        """All that has been handed on is worked off; positions: all that had been when these were told."""
        if self.flush_sink is not None:
            self.flush_sink()
        acknowledged = self.positions() if positions is None else positions
        for number, position in acknowledged.items():
            source = self.sources[number]
            if position != self._done.get(number, "") and isinstance(source, Acknowledging):
                source.acknowledge(position)
        self._done = dict(acknowledged)

    def close(self) -> None:
        """Sources that keep what they bring are told that nothing more is acknowledged."""
        for source in self.sources:
            if isinstance(source, Acknowledging):
                source.close()

    @property
    def live(self) -> bool:
        return any(source.live for source in self.sources)

    @property
    def removals(self) -> bool:
        """Whether any of them may say what ends."""
        return any(source.removals for source in self.sources)

    @property
    def size(self) -> int | None:
        """The bytes of all sources together; None where that is not known."""
        sizes = [source.size for source in self.sources if source.size is not None]
        return sum(sizes) if len(sizes) == len(self.sources) else None

    def push_down(self, predicates: Collection[Term]) -> None:
        """Says, before reading begins, that no triples are of use but those with one of some predicates: sources may
        then leave out others (`squall.streams.sources.files.PushesFilterDown`), and events that bring none. Not to be
        said where each triple counts, such as for a window of the last so many, nor where each event is an instant of
        its own."""
        if self._may_choose:
            for source in self.sources:
                if isinstance(source, PushesFilterDown):
                    source.wanted_predicates = predicates

    def set_ledger(self, ledger: DeadLetterLedger | None) -> None:
        """See `squall.contracts.AcceptsDeadLetters`: sources that were given no ledger record what they lose in this
        one."""
        for source in self.sources:
            own = getattr(source, "ledger", None)
            if isinstance(own, RunLedger):
                own.ledger = ledger

    @property
    def _may_choose(self) -> bool:
        """Not where what comes in order may be late all the same, and then goes to the ledger."""
        return not self.clock.stamps and (len(self.sources) == 1 or not self.live)

    def __iter__(self) -> Iterator[Sequence[Event]]:
        waits = any(isinstance(original(source), Acknowledging) for source in self.sources)
        return self._acknowledged() if waits and self._pulse is None else self.ahead()

    def ahead(self) -> Iterator[Sequence[Event]]:
        """The batches, for who asks for the next one before the last is worked off: he says himself what has been
        (`acknowledge`), and ends reading (`close`)."""
        self._reading = True
        return self._batches()

    def _acknowledged(self) -> Iterator[Sequence[Event]]:
        try:
            for batch in self.ahead():
                yield batch
                if self._positions != self._done:
                    self.acknowledge()
            if self._positions != self._done:
                self.acknowledge()
        finally:
            self.close()

    def _batches(self) -> Iterator[Sequence[Event]]:
        if self.clock.stamps:
            return self._arriving()
        waits = self.live and (isinstance(self.sources[0], Ordered) or self._pulse is not None)
        alone = len(self.sources) == 1 and not waits and not any(state["pending"] for state in self._states.values())
        return self._alone() if alone else self._merged()

    def _alone(self) -> Iterator[Sequence[Event]]:
        (tap,) = self._taps
        for batch in tap.source.batches():
            self._came_to(0, tap.stand())
            yield batch
            if self.stopped and not self.live:
                return
        self._came_to(0, tap.stand())

    def _came_to(self, number: int, stand: Stand) -> None:
        """All that a source has brought is handed on."""
        self._taps[number].hand_on(stand.lost)
        self._note(number, stand.position, stand.state, (), ALWAYS)

    def _came_up_to(self, cursors: Sequence[Cursor]) -> None:
        """What is at hand of sources is still to be handed on."""
        for number, cursor in enumerate(cursors):
            position = cursor.position if self._pulse is None else cursor.stand.position
            self._note(number, position, cursor.stand.state, cursor.pending, cursor.bound)

    def _note(self, number: int, position: str, state: Any, pending: Iterable[Event], bound: int) -> None:
        self._positions[number] = position
        if self._pulse is not None:
            self._states[number] = {**state, "pending": tuple(pending), "bound": bound}

    def _arriving(self) -> Iterator[Sequence[Event]]:
        """Events with the time at which they arrive, and heartbeats in between."""
        inbox = Inbox(self.clock)
        readers = [Reader(number, tap, inbox) for number, tap in enumerate(self._taps)]
        open_ = len(readers)
        patience = min(self.heartbeat, self._pulse or self.heartbeat)
        deadline = self.clock.now() + patience
        try:
            while open_:
                word = inbox.take(deadline)
                now = self.clock.now()
                stamped: list[Event] = []
                if word is not None:
                    self._came_to(word.number, word.stand)
                    readers[word.number].taken()
                    open_ -= word.batch is None
                    stamped = [event._replace(time=now) for event in word.batch or () if says(event)]
                if stamped or now >= deadline:
                    yield stamped or (rdf.heartbeat(now),)
                    deadline = self.clock.now() + patience
        finally:
            for reader in readers:
                reader.stop()

    def _merged(self) -> Iterator[Sequence[Event]]:
        inbox = Inbox(self.clock)
        live = {n: Live(n, tap, inbox, self.clock) for n, tap in enumerate(self._taps) if tap.source.live}
        cursors = [live[n] if n in live else Finite(tap) for n, tap in enumerate(self._taps)]
        for number, state in self._states.items():
            cursors[number].resume(Stand("", state), map(event_of, state["pending"]), state["bound"])
        latest = ALWAYS
        deadline = self.clock.now() + self.heartbeat
        try:
            while True:
                paused = self.stopped and self._pulse is not None
                for cursor in cursors if not paused else ():
                    cursor.fill(self.stopped)
                batch = _available(cursors)
                self._came_up_to(cursors)
                if batch:
                    latest = max(latest, batch[-1].time)
                    yield batch
                    deadline = self.clock.now() + self.heartbeat
                elif all(cursor.ended and not cursor.pending for cursor in cursors):
                    return
                elif paused and all(live_cursor.ended for live_cursor in live.values()):
                    return  # what is at hand waits for what has not been read
                watermark = _known(cursors)
                ahead = not batch and watermark > latest
                patience = _patience(cursors, live.values(), deadline if ahead else None)
                if self._pulse is not None:
                    patience = min(patience or FOREVER, self.clock.now() + self._pulse)
                if _receive(inbox, live, self.clock.now() if batch else patience):
                    deadline = self.clock.now() + self.heartbeat
                    continue
                self._came_up_to(cursors)  # what has arrived may say no more than what was lost
                if ahead and self.clock.now() >= deadline:
                    latest = watermark
                    yield (rdf.heartbeat(watermark),)
                elif not batch and self._pulse is not None:
                    yield ()
        finally:
            for live_cursor in live.values():
                live_cursor.reader.stop()


class Watched(Sources):
    """Sources that tell when reading begins, and what is read.

    begun: called before the first batch is; static data have been read by then. seen: called with each batch.
    """

    def __init__(
        self, sources: Sources, begun: Callable[[], None], on_events: Callable[[Sequence[Event]], None] | None = None
    ) -> None:
        super().__init__(sources.sources, sources.clock, sources.heartbeat, sources.ledgers)
        self._begun = begun
        self._seen = on_events

    def push_down(self, predicates: Collection[Term]) -> None:
        """What is seen is all there is."""
        if self._seen is None:
            super().push_down(predicates)

    def __iter__(self) -> Iterator[Sequence[Event]]:
        self._begun()
        return super().__iter__() if self._seen is None else self._watched(self._seen)

    def _watched(self, on_events: Callable[[Sequence[Event]], None]) -> Iterator[Sequence[Event]]:
        for batch in super().__iter__():
            on_events(batch)
            yield batch


def _available(cursors: Sequence[Cursor]) -> list[Event]:
    """What can be handed on, in the order of time, until a source has nothing more at hand."""
    batch: list[Event] = []
    while ready := [cursor for cursor in cursors if cursor.pending]:
        first = min(ready, key=lambda cursor: cursor.pending[0].time)
        events = first.take(min((cursor.limit for cursor in cursors if cursor is not first), default=FOREVER))
        batch += events
        if not events or not first.pending:
            break
    return batch


def _known(cursors: Sequence[Cursor]) -> int:
    """How far time has gone: those that are waited for no longer count only where there is no other."""
    heard = [cursor for cursor in cursors if cursor.pending or not cursor.silent]
    return min(cursor.known for cursor in heard or cursors)


def _patience(cursors: Sequence[Cursor], live: Iterable[Live], deadline: int | None) -> int | None:
    """Until when (integer ms) to wait for an arrival: without end (None), or until a source that others wait for has
    been silent too long, or something else is due."""
    moments = [cursor.pending[0].time for cursor in cursors if cursor.pending]
    deadlines = [cursor.deadline for cursor in live if moments and cursor.limit < min(moments)]
    return min([*deadlines, *([] if deadline is None else [deadline])], default=None)


def _receive(inbox: Inbox, live: Mapping[int, Live], until: int | None) -> bool:
    """Takes what has arrived; waits for the first word until a time. Whether there was any that says something, or an
    end."""
    word, any_ = inbox.take(until), False
    while word is not None:
        live[word.number].put(word.batch, word.stand)
        any_ = any_ or word.batch is None or bool(word.batch)
        word = inbox.take(0)
    return any_
