"""Several sources as one stream in the order of time, or in that of their arrival."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from squall import rdf
from squall.clock import Clock, EventClock
from squall.rdf import ALWAYS, FOREVER, Event, Term
from squall.streams.derived import Ordered
from squall.streams.files import Choosing, Source

_AHEAD = 4  # batches that a source which is read by a thread of its own may be ahead of the merge


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

    sources: each of them, for builders that read them where they run. clock: see `squall.clock`. heartbeat: integer ms.
    """

    def __init__(self, sources: Sequence[Source], clock: Clock | None = None, heartbeat: int = 1000) -> None:
        self.sources = tuple(sources)
        self.clock = clock or EventClock()
        self.heartbeat = heartbeat

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
        if self.clock.stamps:
            return _arriving(self.sources, self.clock, self.heartbeat)
        if len(self.sources) == 1 and not (self.live and isinstance(self.sources[0], Ordered)):
            return self.sources[0].batches()
        return _merged(self.sources, self.clock, self.heartbeat)


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


class _Inbox:
    """What threads have read: each with the number of its source; None where a source has ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._arrived: deque[tuple[int, Sequence[Event] | BaseException | None]] = deque()

    def put(self, number: int, word: Sequence[Event] | BaseException | None) -> None:
        with self._changed:
            self._arrived.append((number, word))
            self._changed.notify_all()

    def take(self, until: int | None) -> tuple[int, Sequence[Event] | None] | None:
        """The next word; None if there is none before a time (integer ms; None: waits without end). Raises what the
        reading of a source raised."""
        with self._changed:
            while not self._arrived:
                if until is not None and self._clock.now() >= until:
                    return None
                self._clock.wait(self._changed, until)
            number, word = self._arrived.popleft()
        if isinstance(word, BaseException):
            raise word
        return number, word


class _Reader:
    """A thread that reads a source into an inbox, not too far ahead of whoever takes from there."""

    def __init__(self, number: int, source: Source, inbox: _Inbox) -> None:
        self._number = number
        self._source = source
        self._inbox = inbox
        self._slots = threading.Semaphore(_AHEAD)
        self._stopped = False
        threading.Thread(target=self._read, name=f"reads {source.uri}", daemon=True).start()

    def taken(self) -> None:
        """A batch has been taken: there is room for another."""
        self._slots.release()

    def stop(self) -> None:
        self._stopped = True
        self._slots.release()

    def _read(self) -> None:
        try:
            for batch in self._source.batches():
                self._slots.acquire()
                if self._stopped:
                    return
                self._inbox.put(self._number, batch)
        except BaseException as error:  # raised again where the merge can be heard
            self._inbox.put(self._number, error)
        else:
            self._inbox.put(self._number, None)


def _arriving(sources: Sequence[Source], clock: Clock, heartbeat: int) -> Iterator[Sequence[Event]]:
    """Events with the time at which they arrive, and heartbeats in between."""
    inbox = _Inbox(clock)
    readers = [_Reader(number, source, inbox) for number, source in enumerate(sources)]
    open_ = len(readers)
    try:
        while open_:
            taken = inbox.take(clock.now() + heartbeat)
            now = clock.now()
            if taken is None:
                yield (rdf.heartbeat(now),)
                continue
            number, batch = taken
            if batch is None:
                open_ -= 1
                continue
            readers[number].taken()
            if stamped := [event._replace(time=now) for event in batch if _says(event)]:
                yield stamped
    finally:
        for reader in readers:
            reader.stop()


class _Cursor:
    """The events of a source that are at hand, and what is known of those to come."""

    def __init__(self, source: Source) -> None:
        self.pending: deque[Event] = deque()
        self.ended = False
        self.bound = source.earliest

    def put(self, batch: Sequence[Event] | None) -> None:
        """Takes a batch; None: there will be no more."""
        if batch is None:
            self.ended = True
            return
        for event in batch:
            self.bound = max(self.bound, event.time)
            if _says(event):
                self.pending.append(event)

    def fill(self) -> None:
        """Makes sure that an event is at hand, if that needs no waiting."""

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
        return taken


class _Finite(_Cursor):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._batches = source.batches()

    def fill(self) -> None:
        while not self.pending and not self.ended:
            self.put(next(self._batches, None))


class _Live(_Cursor):
    def __init__(self, number: int, source: Source, inbox: _Inbox, clock: Clock) -> None:
        super().__init__(source)
        self._clock = clock
        self._idle = source.idle
        self._heard = clock.now()
        self.reader = _Reader(number, source, inbox)

    @property
    def deadline(self) -> int:
        return self._heard + self._idle

    @property
    def silent(self) -> bool:
        return self.ended or self._clock.now() >= self.deadline

    def put(self, batch: Sequence[Event] | None) -> None:
        super().put(batch)
        self._heard = self._clock.now()
        self.reader.taken()


def _merged(sources: Sequence[Source], clock: Clock, heartbeat: int) -> Iterator[Sequence[Event]]:
    inbox = _Inbox(clock)
    live = {n: _Live(n, source, inbox, clock) for n, source in enumerate(sources) if source.live}
    cursors = [live[n] if n in live else _Finite(source) for n, source in enumerate(sources)]
    reached = ALWAYS
    due = clock.now() + heartbeat
    try:
        while True:
            for cursor in cursors:
                cursor.fill()
            if batch := _available(cursors):
                reached = max(reached, batch[-1].time)
                yield batch
                due = clock.now() + heartbeat
            elif all(cursor.ended and not cursor.pending for cursor in cursors):
                return
            known = _known(cursors)
            ahead = not batch and known > reached
            patience = _patience(cursors, live.values(), due if ahead else None)
            if _receive(inbox, live, clock.now() if batch else patience):
                due = clock.now() + heartbeat
            elif ahead and clock.now() >= due:
                reached = known
                yield (rdf.heartbeat(known),)
    finally:
        for cursor in live.values():
            cursor.reader.stop()


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


def _receive(inbox: _Inbox, live: Mapping[int, _Live], until: int | None) -> bool:
    """Takes what has arrived; waits for the first word until a time. Whether there was any."""
    taken = inbox.take(until)
    any_ = taken is not None
    while taken is not None:
        number, batch = taken
        live[number].put(batch)
        taken = inbox.take(0)
    return any_


def _says(event: Event) -> bool:
    """Whether it says more than how far time has gone."""
    return bool(event.facts or event.removed)
