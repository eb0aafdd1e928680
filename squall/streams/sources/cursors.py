"""Cursors: how far each of several sources that are merged has been read, and what of it is at hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from squall.rdf import FOREVER, Event
from squall.streams.clock import Clock
from squall.streams.sources.reader_threads import Inbox, Reader, Stand, Tap


class Cursor:
    """The events of a source that are at hand, and what is known of those to come."""

    def __init__(self, tap: Tap) -> None:
        self.pending: deque[Event] = deque()
        self.ended = False
        self.bound = tap.source.earliest
        self.stand = Stand()
        """Where the source stands behind the last batch."""
        self.position = ""
        """Up to where all has been handed on."""
        self._tap = tap
        self._taken = 0
        """How many events have been."""
        self._positions: deque[tuple[int, str]] = deque()
        """Those of batches that have not been taken as a whole: how many events had been put by then."""

    def resume(self, stand: Stand, pending: Iterable[Event], bound: int) -> None:
        """Takes back where the source stands, what is at hand, and what is known of what is to come."""
        self.stand = stand
        self.pending.extend(pending)
        self.bound = bound

    def put(self, batch: Sequence[Event] | None, stand: Stand) -> None:
        """Takes a batch, behind which the source stands somewhere; None: there will be no more."""
        self.ended = batch is None
        for event in batch or ():
            self.bound = max(self.bound, event.time)
            if says(event):
                self.pending.append(event)
        self.stand = stand
        self._tap.hand_on(stand.lost)
        self._positions.append((self._taken + len(self.pending), stand.position))
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
        events = []
        while self.pending and self.pending[0].time <= limit:
            events.append(self.pending.popleft())
        self._taken += len(events)
        self._cover()
        return events

    def _cover(self) -> None:
        while self._positions and self._positions[0][0] <= self._taken:
            self.position = self._positions.popleft()[1]


class Finite(Cursor):
    """That of a source which is read when the next event is asked for."""

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._batches = tap.source.batches()

    def fill(self, stopped: bool) -> None:
        while not self.pending and not self.ended:
            batch = None if stopped else next(self._batches, None)
            self.put(batch, self._tap.stand())


class Live(Cursor):
    """That of a source which a thread of its own reads."""

    def __init__(self, number: int, tap: Tap, inbox: Inbox, clock: Clock) -> None:
        super().__init__(tap)
        self._owed = 0
        self._clock = clock
        self._idle = tap.source.idle
        self._heard = clock.now()
        self.reader = Reader(number, tap, inbox)

    @property
    def deadline(self) -> int:
        return self._heard + self._idle

    @property
    def silent(self) -> bool:
        return self.ended or self._clock.now() >= self.deadline

    def put(self, batch: Sequence[Event] | None, stand: Stand) -> None:
        super().put(batch, stand)
        if batch or self.ended:
            self._heard = self._clock.now()
        self._owed += 1
        self._pay()

    def take(self, limit: int) -> list[Event]:
        events = super().take(limit)
        self._pay()
        return events

    def _pay(self) -> None:
        """Lets the reader go on when all has been handed on: what waits for other sources is not to grow."""
        if self._owed and not self.pending:
            self.reader.taken(self._owed)
            self._owed = 0


def says(event: Event) -> bool:
    """Whether it says more than how far time has gone."""
    return bool(event.facts or event.removed)
