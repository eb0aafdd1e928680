"""Cursors over the sources that are merged: the events that are buffered of each, and its watermark."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from squall.rdf import FOREVER, Event
from squall.streams.clock import Clock
from squall.streams.sources.reader_threads import Inbox, ReaderThread, SourceOffset, TrackedSource


class Cursor:
    """A cursor over one source.

    Attributes:
        pending: The events that have been read and not output.
        ended: Whether the source has ended.
        bound: The time (integer ms) before which the source has no more events.
        offset: The offset of the source behind the last batch.
        position: The position of the source up to which all events have been output.
    """

    def __init__(self, tracked: TrackedSource) -> None:
        self.pending: deque[Event] = deque()
        self.ended = False
        self.bound = tracked.source.earliest
        self.offset = SourceOffset()
        self.position = ""
        self._tracked = tracked
        self._taken_count = 0
        """The number of events that have been output."""
        self._positions: deque[tuple[int, str, float | None]] = deque()
        """For each batch that has not been output completely, the number of events up to its end, its position, and
        when it arrived."""

    def resume(self, offset: SourceOffset, pending: Iterable[Event], bound: int) -> None:
        """Restores the offset, the buffered events and the bound of a checkpoint."""
        self.offset = offset
        self.pending.extend(pending)
        self.bound = bound

    def put(self, batch: Sequence[Event] | None, offset: SourceOffset, arrived: float | None = None) -> None:
        """Adds a batch, and the offset of the source behind it. None instead of a batch is the end of the source.

        Args:
            batch: The events, or None.
            offset: The offset behind them.
            arrived: When they arrived, in seconds of `time.monotonic`, if a thread has received them.
        """
        self.ended = batch is None
        for event in batch or ():
            self.bound = max(self.bound, event.time)
            if has_facts(event):
                self.pending.append(event)
        self.offset = offset
        self._tracked.forward(offset.dead_letters)
        self._positions.append((self._taken_count + len(self.pending), offset.position, arrived))
        self._advance_position()

    def fill(self, stopped: bool) -> None:
        """Reads on until an event is buffered, if that needs no waiting.

        Args:
            stopped: Whether the run is stopped: then nothing more is read.
        """

    @property
    def is_ready(self) -> bool:
        """Whether there is a buffered event that may be output."""
        return bool(self.pending)

    @property
    def is_silent(self) -> bool:
        """Whether the others do not wait for the source: it has ended, or had no events for too long."""
        return self.ended

    @property
    def watermark(self) -> int:
        """The time (integer ms) before which no more events are output."""
        return self.pending[0].time if self.pending else FOREVER if self.ended else self.bound

    @property
    def limit(self) -> int:
        """The time (integer ms) up to which events of other sources can be output."""
        return FOREVER if self.is_silent and not self.pending else self.watermark

    @property
    def arrival(self) -> float | None:
        """When the next buffered event arrived, in seconds of `time.monotonic`, if that is known."""
        return self._positions[0][2] if self._positions else None

    def take(self, limit: int) -> list[Event]:
        """Removes and returns the buffered events up to a time."""
        events = []
        while self.pending and self.pending[0].time <= limit:
            events.append(self.pending.popleft())
        self._taken_count += len(events)
        self._advance_position()
        return events

    def _advance_position(self) -> None:
        while self._positions and self._positions[0][0] <= self._taken_count:
            self.position = self._positions.popleft()[1]


class BoundedCursor(Cursor):
    """A cursor over a bounded source, which is read when its next event is needed."""

    def __init__(self, tracked: TrackedSource) -> None:
        super().__init__(tracked)
        self._batches = tracked.batches()

    def fill(self, stopped: bool) -> None:
        while not self.pending and not self.ended:
            batch = None if stopped else next(self._batches, None)
            self.put(batch, self._tracked.current_offset())


class FollowingCursor(BoundedCursor):
    """A cursor over a source without an end, which has events up to the time of the last one of other sources.

    Args:
        tracked: The source.
        leaders: The cursors over the other sources.
    """

    def __init__(self, tracked: TrackedSource, leaders: Sequence[Cursor]) -> None:
        super().__init__(tracked)
        self._leaders = leaders

    @property
    def _reach(self) -> int:
        """The time (integer ms) up to which it follows the others."""
        return max(leader.bound for leader in self._leaders)

    @property
    def is_ready(self) -> bool:
        return bool(self.pending) and self.pending[0].time <= self._reach

    @property
    def watermark(self) -> int:
        return min(super().watermark, self._reach)

    def fill(self, stopped: bool) -> None:
        for leader in self._leaders:
            leader.fill(stopped)
        super().fill(stopped)
        if not self.is_ready and all(leader.ended and not leader.pending for leader in self._leaders):
            self.pending.clear()
            self.ended = True

    def take(self, limit: int) -> list[Event]:
        return super().take(min(limit, self._reach))


class LiveCursor(Cursor):
    """A cursor over a live source, which a thread of its own reads."""

    def __init__(self, number: int, tracked: TrackedSource, inbox: Inbox, clock: Clock) -> None:
        super().__init__(tracked)
        self._unreleased = 0
        self._clock = clock
        self._idle = tracked.source.idle
        self._heard_at = clock.now()
        self.reader = ReaderThread(number, tracked, inbox)

    @property
    def deadline(self) -> int:
        """The time (integer ms) from which on the others do not wait for the source."""
        return self._heard_at + self._idle

    @property
    def is_silent(self) -> bool:
        return self.ended or self._clock.now() >= self.deadline

    def put(self, batch: Sequence[Event] | None, offset: SourceOffset, arrived: float | None = None) -> None:
        super().put(batch, offset, arrived)
        if batch or self.ended:
            self._heard_at = self._clock.now()
        self._unreleased += 1
        self._release()

    def take(self, limit: int) -> list[Event]:
        events = super().take(limit)
        self._release()
        return events

    def _release(self) -> None:
        """Lets the thread read on once all events are output: so the buffer does not grow while other sources lag."""
        if self._unreleased and not self.pending:
            self.reader.release(self._unreleased)
            self._unreleased = 0


def has_facts(event: Event) -> bool:
    """Returns whether an event is more than a heartbeat."""
    return bool(event.facts or event.removed)
