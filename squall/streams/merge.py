"""Several sources as one stream in the order of time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue

from squall.rdf import Event
from squall.streams.files import Source

_AHEAD = 4  # batches that a live source may be read ahead of the merge


class Sources:
    """Batches of all sources, in non-decreasing time (where each of the sources is in that order itself).

    An event is handed on when no source can still say anything earlier. A file has always its next event at hand; a
    live source (a pipe, a folder that is followed) is read by a thread of its own, and what is known of it is that it
    does not go back behind its last event (or, untimed, behind its fixed time). Where that does not suffice, the
    others wait for it, but no longer than its `idle` milliseconds without a word (5000 unless its address says
    ``idle=``): then they go on without it until it speaks again. What it then says of earlier times is late, and goes
    to the ledger. A source alone is handed on as it is, in the order in which it comes.

    sources: each of them, for builders that read them where they run.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)

    @property
    def live(self) -> bool:
        return any(source.live for source in self.sources)

    @property
    def size(self) -> int | None:
        """The bytes of all sources together; None where that is not known."""
        sizes = [source.size for source in self.sources if source.size is not None]
        return sum(sizes) if len(sizes) == len(self.sources) else None

    def __iter__(self) -> Iterator[Sequence[Event]]:
        if len(self.sources) == 1:
            return self.sources[0].batches()
        return _merge(self.sources)


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
        self.pending.extend(batch)
        for event in batch:
            self.bound = max(self.bound, event.time)

    def fill(self) -> None:
        """Makes sure that an event is at hand, if that needs no waiting."""

    def holds(self, moment: int) -> bool:
        """Whether an event before the moment may still come of which nothing is known."""
        return not self.ended and not self.pending and self.bound < moment


class _Finite(_Cursor):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._batches = source.batches()

    def fill(self) -> None:
        while not self.pending and not self.ended:
            self.put(next(self._batches, None))


_Arrivals = SimpleQueue[tuple["_Live", Sequence[Event] | BaseException | None]]


class _Live(_Cursor):
    def __init__(self, source: Source, arrivals: _Arrivals) -> None:
        super().__init__(source)
        self._source = source
        self._arrivals = arrivals
        self._slots = threading.Semaphore(_AHEAD)
        self._stopped = False
        self._heard = time.monotonic()
        threading.Thread(target=self._read, name=f"reads {source.uri}", daemon=True).start()

    @property
    def deadline(self) -> float:
        return self._heard + self._source.idle / 1000

    def put(self, batch: Sequence[Event] | None) -> None:
        super().put(batch)
        self._heard = time.monotonic()
        self._slots.release()

    def holds(self, moment: int) -> bool:
        return super().holds(moment) and time.monotonic() < self.deadline

    def stop(self) -> None:
        self._stopped = True
        self._slots.release()

    def _read(self) -> None:
        try:
            for batch in self._source.batches():
                self._slots.acquire()
                if self._stopped:
                    return
                self._arrivals.put((self, batch))
        except BaseException as error:  # raised again where the merge can be heard
            self._arrivals.put((self, error))
        else:
            self._arrivals.put((self, None))


def _merge(sources: Sequence[Source]) -> Iterator[Sequence[Event]]:
    arrivals: _Arrivals = SimpleQueue()
    cursors = [_Live(source, arrivals) if source.live else _Finite(source) for source in sources]
    live = [cursor for cursor in cursors if isinstance(cursor, _Live)]
    try:
        while True:
            _receive(arrivals, 0)
            for cursor in cursors:
                cursor.fill()
            batch = _available(cursors)
            if batch:
                yield batch
            elif all(cursor.ended and not cursor.pending for cursor in cursors):
                return
            else:
                _receive(arrivals, _patience(cursors, live))
    finally:
        for cursor in live:
            cursor.stop()


def _available(cursors: Sequence[_Cursor]) -> list[Event]:
    """What can be handed on, in the order of time, until a source has nothing more at hand."""
    batch: list[Event] = []
    while ready := [cursor for cursor in cursors if cursor.pending]:
        first = min(ready, key=lambda cursor: cursor.pending[0].time)
        moment = first.pending[0].time
        if any(cursor.holds(moment) for cursor in cursors):
            break
        batch.append(first.pending.popleft())
        if not first.pending:
            break
    return batch


def _patience(cursors: Sequence[_Cursor], live: Sequence[_Live]) -> float | None:
    """Seconds to wait for an arrival: without end if nothing is at hand, else until a source has been idle too long."""
    moments = [cursor.pending[0].time for cursor in cursors if cursor.pending]
    if not moments:
        return None
    deadlines = [cursor.deadline for cursor in live if cursor.holds(min(moments))]
    return max(0.001, min(deadlines, default=0) - time.monotonic())


def _receive(arrivals: _Arrivals, timeout: float | None) -> None:
    """Takes what has arrived; waits for the first one (seconds; None: without end)."""
    try:
        cursor, batch = arrivals.get(timeout=timeout) if timeout != 0 else arrivals.get_nowait()
        while True:
            if isinstance(batch, BaseException):
                raise batch
            cursor.put(batch)
            cursor, batch = arrivals.get_nowait()
    except Empty:
        return
