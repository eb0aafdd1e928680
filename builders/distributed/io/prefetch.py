"""Sources as a driver reads them ahead of a run: in a thread of its own, and no more batches than a few."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from squall.builders.distributed.io.ingest import drop_late_events
from squall.builders.distributed.io.parsing import DeadLetter
from squall.builders.local.replay import Given
from squall.rdf import ALWAYS, Event
from squall.streams import Sources

MAX_PREFETCHED_BATCHES = 16
"""How many batches may be read before they are taken, at most."""
_POLL_SECONDS = 0.1
"""Seconds between two looks whether anybody still wants what has been read."""
_STOP_TIMEOUT_SECONDS = 5.0
"""Seconds that sources have to end, when a run does."""


class PrefetchedBatch(NamedTuple):
    """What has been read: the events of a batch, what was lost with them, and behind them where the sources stand
    (`squall.streams.Sources.current_offsets`) and up to where they have been read (`positions`)."""

    events: Sequence[Event]
    lost: Sequence[DeadLetter]
    current_offsets: Sequence[Any]
    positions: Mapping[int, str]


class EndOfSources(NamedTuple):
    """There is no more to be read. error: why, if something went wrong."""

    error: BaseException | None = None


def split_end(items: Sequence[PrefetchedBatch | EndOfSources]) -> tuple[list[PrefetchedBatch], EndOfSources | None]:
    """The parts of what has come, and the end, if that has."""
    parts = [item for item in items if isinstance(item, PrefetchedBatch)]
    return parts, next((item for item in items if isinstance(item, EndOfSources)), None)


class Prefetcher:
    """Reads sources. keeps: it is told where they stand; latest: the time (integer ms) of what has come before."""

    def __init__(self, inputs: Sources | Given, keeps: bool = False, latest: int = ALWAYS) -> None:
        self.inputs = inputs
        self.lost: list[DeadLetter] = []
        """What has been lost since the last part."""
        self._keeps = keeps
        self._latest = latest
        self._arrived: queue.Queue[PrefetchedBatch | EndOfSources] = queue.Queue(maxsize=MAX_PREFETCHED_BATCHES)
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name="reads sources", daemon=True)

    def start(self) -> None:
        """Begins to read, as the sources bring something: nobody knows when that is."""
        self._reader.start()

    def take(self, seconds: float | None) -> list[PrefetchedBatch | EndOfSources]:
        """What is at hand, but for what comes meanwhile; waits for something for so long at most, None: until it is
        there. Nothing comes behind an `EndOfSources`."""
        items: list[PrefetchedBatch | EndOfSources] = []
        with suppress(queue.Empty):
            items.append(self._arrived.get(timeout=seconds))
            while len(items) < MAX_PREFETCHED_BATCHES:
                items.append(self._arrived.get_nowait())
        return items

    def parts(self) -> Iterator[PrefetchedBatch]:
        """All parts, read by who takes them. The last one has no events: sources may have gone on without a word."""
        for events in drop_late_events(self.inputs.ahead(), self.lost.append, self._latest):
            if events or self.lost:
                yield self._part(events)
        yield self._part(())

    def close(self) -> None:
        """Nothing more is read, and what has not been taken is dropped. What cannot be ended in time goes on waiting,
        and nobody hears of it."""
        self._closed.set()
        with suppress(queue.Empty):
            while True:
                self._arrived.get_nowait()
        self._arrived.put(EndOfSources())  # for who waits
        if self._reader.is_alive():
            self.inputs.stop()
            if isinstance(self.inputs, Sources):
                self._reader.join(_STOP_TIMEOUT_SECONDS)
        self.inputs.close()

    def _part(self, events: Sequence[Event]) -> PrefetchedBatch:
        dead_letters = tuple(self.lost)
        self.lost.clear()
        return PrefetchedBatch(
            events, dead_letters, self.inputs.current_offsets() if self._keeps else (), self.inputs.positions()
        )

    def _read(self) -> None:
        try:
            for part in self.parts():
                self._put(part)
                if self._closed.is_set():
                    break
        except BaseException as error:  # raised by the thread that takes the outputs
            self._put(EndOfSources(error))
        else:
            self._put(EndOfSources())

    def _put(self, what: PrefetchedBatch | EndOfSources) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._arrived.put(what, timeout=_POLL_SECONDS)
                return
