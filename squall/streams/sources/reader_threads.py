"""Threads that read live sources, and the inbox into which they put batches."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

from squall.rdf import Columns, Event
from squall.streams.clock import Clock
from squall.streams.dead_letters import DeadLetter, DeferredLedger
from squall.streams.sources.files import Acknowledging, Source
from squall.streams.sources.reordering import current_offset, original, resume

MAX_BATCHES_AHEAD = 4
"""The number of batches that a thread reads ahead of the merge."""


class SourceOffset(NamedTuple):
    """The offset of a source behind a batch.

    Attributes:
        position: The position up to which it need not be read again (see `Acknowledging`); ``""`` if unknown.
        state: The state from which the source resumes, if offsets are tracked.
        dead_letters: The dead letters since the last offset.
    """

    position: str = ""
    state: Any = None
    dead_letters: Sequence[DeadLetter] = ()


class TrackedSource:
    """A source with its ledger, as its reader uses them.

    Attributes:
        source: The source.
        tracks_offset: Whether offsets have the state of the source, so that buffered events need not be read again.
    """

    def __init__(self, source: Source, ledger: DeferredLedger | None = None) -> None:
        self.source = source
        self.tracks_offset = False
        self._ledger = ledger
        self._batches_begun: Iterator[Sequence[Event]] | None = None
        """The batches behind static events that have been read (`static_events`)."""

    def static_events(self) -> tuple[list[Event], Sequence[Event]]:
        """Reads the events at `ALWAYS` with which the source begins.

        Returns them, and the events read behind them. If there are some, and offsets are tracked, the latter are for
        the caller to buffer: they are part of the offset. Otherwise `batches` begins with them.
        """
        batches = iter(self.source.batches())
        events, later_events = static_prefix(batches)
        is_buffered = events and self.tracks_offset
        self._batches_begun = batches if is_buffered else chain([later_events] if later_events else (), batches)
        return events, later_events

    def batches(self) -> Iterator[Sequence[Event]]:
        """Returns the batches that have not been read as static events."""
        return iter(self.source.batches()) if self._batches_begun is None else self._batches_begun

    def current_offset(self) -> SourceOffset:
        """Returns the offset of the source. The thread that reads it calls this behind each batch."""
        dead_letters = self._ledger.drain() if self._ledger else ()
        if not self.tracks_offset:
            return SourceOffset(position_of(self.source), None, dead_letters)
        state = {"statements": self.source.reading.statements, "source": current_offset(self.source)}
        return SourceOffset(position_of(original(self.source)), state, dead_letters)

    def resume(self, state: Any) -> None:
        """Lets the source resume from the state of an offset."""
        resume(self.source, state["source"])
        self.source.reading.statements = state["statements"]

    def forward(self, dead_letters: Sequence[DeadLetter]) -> None:
        """Records dead letters in the ledger of the run, which has reached their batch."""
        if self._ledger is not None:
            self._ledger.forward(dead_letters)


def static_prefix(batches: Iterable[Sequence[Event]]) -> tuple[list[Event], Sequence[Event]]:
    """Reads the events at `ALWAYS` with which batches begin. Returns them, and the later events of the last batch."""
    events: list[Event] = []
    for batch in batches:
        size = 0 if isinstance(batch, Columns) else sum(1 for _ in takewhile(attrgetter("is_static"), batch))
        events += batch[:size] if size else ()  # a slice of columns would create all of their events
        if isinstance(batch, Columns) or size < len(batch):
            return events, batch[size:] if size else batch
    return events, ()


class ReadBatch(NamedTuple):
    """A batch that a thread has read.

    Attributes:
        number: The number of the source.
        batch: The events, or None at the end of the source.
        offset: The offset behind the batch.
        arrived: When the thread received it, in seconds of `time.monotonic`.
    """

    number: int
    batch: Sequence[Event] | None
    offset: SourceOffset = SourceOffset()
    arrived: float | None = None


def position_of(source: Source) -> str:
    """Returns the position behind the last batch of a source; ``""`` if it is unknown."""
    return source.position() if isinstance(source, Acknowledging) else ""


class Inbox:
    """A queue of the batches, and errors, of all threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._arrived: deque[ReadBatch | BaseException] = deque()

    def put(self, received: ReadBatch | BaseException) -> None:
        with self._changed:
            self._arrived.append(received)
            self._changed.notify_all()

    def take(self, until: int | None) -> ReadBatch | None:
        """Removes and returns the next batch, or None if there is none before a time.

        Args:
            until: The time (integer ms) until which to wait; None: no limit.

        Raises:
            BaseException: The error that a thread met when it read its source.
        """
        with self._changed:
            while not self._arrived:
                if until is not None and self._clock.now() >= until:
                    return None
                self._clock.wait(self._changed, until)
            received = self._arrived.popleft()
        if isinstance(received, BaseException):
            raise received
        return received


class ReaderThread:
    """A thread that reads a source into an inbox, at most `MAX_BATCHES_AHEAD` batches ahead."""

    def __init__(self, number: int, tracked: TrackedSource, inbox: Inbox) -> None:
        self._number = number
        self._tracked = tracked
        self._inbox = inbox
        self._slots = threading.Semaphore(MAX_BATCHES_AHEAD)
        self._stopped = False
        threading.Thread(target=self._read, name=f"reads {tracked.source.uri}", daemon=True).start()

    def release(self, batches: int = 1) -> None:
        """Lets the thread read as many more batches ahead."""
        self._slots.release(batches)

    def stop(self) -> None:
        self._stopped = True
        self._slots.release()

    def _read(self) -> None:
        try:
            for batch in self._tracked.source.batches():
                received = ReadBatch(self._number, batch, self._tracked.current_offset(), time.monotonic())
                self._slots.acquire()
                if self._stopped:
                    return
                self._inbox.put(received)
        except BaseException as error:  # `Inbox.take` raises it in the thread of the merge
            self._inbox.put(error)
        else:
            self._inbox.put(ReadBatch(self._number, None, self._tracked.current_offset()))
