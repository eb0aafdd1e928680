"""Several sources as one stream in the order of time, or in that of their arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from squall import rdf
from squall.clock import Clock, EventClock
from squall.rdf import ALWAYS, FOREVER, Event, Term
from squall.streams.derived import Ordered, original
from squall.streams.files import Acknowledging, Choosing, Source, Stoppable
from squall.streams.readers import Inbox, Reader, position_of


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

    Sources that keep what they bring until it has been worked off (`squall.streams.files.Acknowledging`) are told so
    when the next batch is asked for: all that came of the one before has been handed on by then, unless `settle`, which
    is called first, raises an error.

    sources: each of them, for builders that read them where they run. clock: see `squall.clock`. heartbeat: integer ms.
    """

    settle: Callable[[], None] | None = None
    """Makes sure that what has been written is where it should be; called before anything is acknowledged."""

    def __init__(self, sources: Sequence[Source], clock: Clock | None = None, heartbeat: int = 1000) -> None:
        self.sources = tuple(sources)
        self.clock = clock or EventClock()
        self.heartbeat = heartbeat
        self._positions: dict[int, str] = {}
        """Up to where sources have been handed on, by their numbers."""
        self._reading = self._stopped = False

    @property
    def endable(self) -> bool:
        """Whether they are live, being read, and can be ended by `stop`."""
        live = [original(source) for source in self.sources if source.live]
        return self._reading and bool(live) and all(isinstance(source, Stoppable) for source in live)

    def stop(self) -> None:
        """Ends live sources: what they have received is still handed on, and others are read no further than what is at
        hand. May be called by any thread but the one that reads."""
        self._stopped = True
        for source in self.sources:
            if source.live and isinstance(source, Stoppable):
                source.stop()

    def positions(self) -> tuple[str, ...]:
        """Up to where each source has been handed on (see `Acknowledging`); ``""`` where that is not known."""
        return tuple(self._positions.get(number, "") for number in range(len(self.sources)))

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

    def want(self, predicates: Collection[Term]) -> None:
        """Says, before reading begins, that no triples are of use but those with one of some predicates: sources may
        then leave out others (`squall.streams.files.Choosing`), and events that bring none. Not to be said where each
        triple counts, such as for a window of the last so many, nor where each event is an instant of its own."""
        if self._may_choose:
            for source in self.sources:
                if isinstance(source, Choosing):
                    source.wanted = predicates

    @property
    def _may_choose(self) -> bool:
        """Not where what comes in order may be late all the same, and then goes to the ledger."""
        return not self.clock.stamps and (len(self.sources) == 1 or not self.live)

    def __iter__(self) -> Iterator[Sequence[Event]]:
        self._reading = True
        keeping = any(isinstance(original(source), Acknowledging) for source in self.sources)
        return self._acknowledged() if keeping else self._batches()

    def _acknowledged(self) -> Iterator[Sequence[Event]]:
        done: tuple[str, ...] = ("",) * len(self.sources)
        try:
            for batch in self._batches():
                handed = self.positions()
                yield batch
                if handed != done:
                    self._acknowledge(done, handed)
                    done = handed
            if self.positions() != done:
                self._acknowledge(done, self.positions())
        finally:
            for source in self.sources:
                if isinstance(source, Acknowledging):
                    source.close()

    def _acknowledge(self, done: Sequence[str], handed: Sequence[str]) -> None:
        if self.settle is not None:
            self.settle()
        for source, before, position in zip(self.sources, done, handed, strict=True):
            if position != before and isinstance(source, Acknowledging):
                source.acknowledge(position)

    def _batches(self) -> Iterator[Sequence[Event]]:
        if self.clock.stamps:
            return self._arriving()
        if len(self.sources) == 1 and not (self.live and isinstance(self.sources[0], Ordered)):
            return self._alone(self.sources[0])
        return self._merged()

    def _alone(self, source: Source) -> Iterator[Sequence[Event]]:
        for batch in source.batches():
            self._positions[0] = position_of(source)
            yield batch
        self._positions[0] = position_of(source)

    def _arriving(self) -> Iterator[Sequence[Event]]:
        """Events with the time at which they arrive, and heartbeats in between."""
        inbox = Inbox(self.clock)
        readers = [Reader(number, source, inbox) for number, source in enumerate(self.sources)]
        open_ = len(readers)
        try:
            while open_:
                word = inbox.take(self.clock.now() + self.heartbeat)
                now = self.clock.now()
                if word is None:
                    yield (rdf.heartbeat(now),)
                    continue
                self._positions[word.number] = word.position
                if word.batch is None:
                    open_ -= 1
                    continue
                readers[word.number].taken()
                if stamped := [event._replace(time=now) for event in word.batch if _says(event)]:
                    yield stamped
        finally:
            for reader in readers:
                reader.stop()

    def _merged(self) -> Iterator[Sequence[Event]]:
        inbox = Inbox(self.clock)
        live = {n: _Live(n, source, inbox, self.clock) for n, source in enumerate(self.sources) if source.live}
        cursors = [live[n] if n in live else _Finite(source) for n, source in enumerate(self.sources)]
        reached = ALWAYS
        due = self.clock.now() + self.heartbeat
        try:
            while True:
                for cursor in cursors:
                    cursor.fill(self._stopped)
                batch = _available(cursors)
                self._positions = {number: cursor.position for number, cursor in enumerate(cursors)}
                if batch:
                    reached = max(reached, batch[-1].time)
                    yield batch
                    due = self.clock.now() + self.heartbeat
                elif all(cursor.ended and not cursor.pending for cursor in cursors):
                    return
                known = _known(cursors)
                ahead = not batch and known > reached
                patience = _patience(cursors, live.values(), due if ahead else None)
                if _receive(inbox, live, self.clock.now() if batch else patience):
                    due = self.clock.now() + self.heartbeat
                elif ahead and self.clock.now() >= due:
                    reached = known
                    yield (rdf.heartbeat(known),)
        finally:
            for one in live.values():
                one.reader.stop()


class Watched(Sources):
    """Sources that tell when reading begins, and what is read.

    begun: called before the first batch is; static data have been read by then. seen: called with each batch.
    """

    def __init__(
        self, sources: Sources, begun: Callable[[], None], seen: Callable[[Sequence[Event]], None] | None = None
    ) -> None:
        super().__init__(sources.sources, sources.clock, sources.heartbeat)
        self._begun = begun
        self._seen = seen

    def want(self, predicates: Collection[Term]) -> None:
        """What is seen is all there is."""
        if self._seen is None:
            super().want(predicates)

    def __iter__(self) -> Iterator[Sequence[Event]]:
        self._begun()
        return super().__iter__() if self._seen is None else self._watched(self._seen)

    def _watched(self, seen: Callable[[Sequence[Event]], None]) -> Iterator[Sequence[Event]]:
        for batch in super().__iter__():
            seen(batch)
            yield batch


class _Cursor:
    """The events of a source that are at hand, and what is known of those to come."""

    def __init__(self, source: Source) -> None:
        self.pending: deque[Event] = deque()
        self.ended = False
        self.bound = source.earliest
        self.position = ""
        """Up to where all has been handed on."""
        self._taken = 0
        """How many events have been."""
        self._positions: deque[tuple[int, str]] = deque()
        """Those of batches that have not been taken as a whole: how many events had been put by then."""

    def put(self, batch: Sequence[Event] | None, position: str) -> None:
        """Takes a batch, which goes up to a position; None: there will be no more."""
        self.ended = batch is None
        for event in batch or ():
            self.bound = max(self.bound, event.time)
            if _says(event):
                self.pending.append(event)
        self._positions.append((self._taken + len(self.pending), position))
        self._cover()

    def fill(self, stopped: bool) -> None:
        """Makes sure that an event is at hand, if that needs no waiting. stopped: there is no need to."""

    @property
    def silent(self) -> bool:
        """Whether it has ended, or is waited for no longer."""
        return self.ended

    @property
    def known(self) -> int:
        """No event before this time (integer ms) is still to be handed on."""
        return self.pending[0].time if self.pending else FOREVER if self.ended else self.bound

    @property
    def limit(self) -> int:
        """The others may go on up to this time (integer ms)."""
        return FOREVER if self.silent and not self.pending else self.known

    def take(self, limit: int) -> list[Event]:
        """The events at hand up to a time, as far as they go."""
        taken = []
        while self.pending and self.pending[0].time <= limit:
            taken.append(self.pending.popleft())
        self._taken += len(taken)
        self._cover()
        return taken

    def _cover(self) -> None:
        while self._positions and self._positions[0][0] <= self._taken:
            self.position = self._positions.popleft()[1]


class _Finite(_Cursor):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._source = source
        self._batches = source.batches()

    def fill(self, stopped: bool) -> None:
        while not self.pending and not self.ended:
            batch = None if stopped else next(self._batches, None)
            self.put(batch, position_of(self._source))


class _Live(_Cursor):
    def __init__(self, number: int, source: Source, inbox: Inbox, clock: Clock) -> None:
        super().__init__(source)
        self._owed = 0
        self._clock = clock
        self._idle = source.idle
        self._heard = clock.now()
        self.reader = Reader(number, source, inbox)

    @property
    def deadline(self) -> int:
        return self._heard + self._idle

    @property
    def silent(self) -> bool:
        return self.ended or self._clock.now() >= self.deadline

    def put(self, batch: Sequence[Event] | None, position: str) -> None:
        super().put(batch, position)
        self._heard = self._clock.now()
        self._owed += 1
        self._pay()

    def take(self, limit: int) -> list[Event]:
        taken = super().take(limit)
        self._pay()
        return taken

    def _pay(self) -> None:
        """Lets the reader go on when all has been handed on: what waits for other sources is not to grow."""
        if self._owed and not self.pending:
            self.reader.taken(self._owed)
            self._owed = 0


def _available(cursors: Sequence[_Cursor]) -> list[Event]:
    """What can be handed on, in the order of time, until a source has nothing more at hand."""
    batch: list[Event] = []
    while ready := [cursor for cursor in cursors if cursor.pending]:
        first = min(ready, key=lambda cursor: cursor.pending[0].time)
        taken = first.take(min((cursor.limit for cursor in cursors if cursor is not first), default=FOREVER))
        batch += taken
        if not taken or not first.pending:
            break
    return batch


def _known(cursors: Sequence[_Cursor]) -> int:
    """How far time has gone: those that are waited for no longer count only where there is no other."""
    heard = [cursor for cursor in cursors if cursor.pending or not cursor.silent]
    return min(cursor.known for cursor in heard or cursors)


def _patience(cursors: Sequence[_Cursor], live: Iterable[_Live], due: int | None) -> int | None:
    """Until when (integer ms) to wait for an arrival: without end (None), or until a source that others wait for has
    been silent too long, or something else is due."""
    moments = [cursor.pending[0].time for cursor in cursors if cursor.pending]
    deadlines = [cursor.deadline for cursor in live if moments and cursor.limit < min(moments)]
    return min([*deadlines, *([] if due is None else [due])], default=None)


def _receive(inbox: Inbox, live: Mapping[int, _Live], until: int | None) -> bool:
    """Takes what has arrived; waits for the first word until a time. Whether there was any."""
    word = inbox.take(until)
    any_ = word is not None
    while word is not None:
        live[word.number].put(word.batch, word.position)
        word = inbox.take(0)
    return any_


def _says(event: Event) -> bool:
    """Whether it says more than how far time has gone."""
    return bool(event.facts or event.removed)
