"""Prefetching: the driver reads sources ahead of a run, in a thread of its own, up to a few batches."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from squall.builders.distributed.io.ingest import drop_late_events
from squall.builders.distributed.io.records import DeadLetter
from squall.builders.local.replay import ReplayedBatches
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.rdf import ALWAYS, Event
from squall.streams import Sources

_POLL_SECONDS = 0.1
"""The seconds between two checks whether the reader is still wanted."""
_STOP_TIMEOUT_SECONDS = 5.0
"""The seconds that sources have to stop when a run ends."""


class PrefetchedBatch(NamedTuple):
    """What has been read.

    Attributes:
        events: the events of a batch.
        lost: the dead letters that came with them.
        current_offsets: the offsets of the sources after the batch.
        positions: up to where the sources have been read.
        arrived: when the first of the events arrived, in seconds of `time.monotonic`.
    """

    events: Sequence[Event]
    lost: Sequence[DeadLetter]
    current_offsets: Sequence[Any]
    positions: Mapping[int, str]
    arrived: float


class EndOfSources(NamedTuple):
    """The end of the input. error: the error that ended it, if there was one."""

    error: BaseException | None = None


def split_end(items: Sequence[PrefetchedBatch | EndOfSources]) -> tuple[list[PrefetchedBatch], EndOfSources | None]:
    """Returns the batches among prefetched items, and the end if it is among them."""
    parts = [item for item in items if isinstance(item, PrefetchedBatch)]
    return parts, next((item for item in items if isinstance(item, EndOfSources)), None)


class Prefetcher:
    """Reads sources.

    Args:
        inputs: the sources.
        keeps: whether batches carry the offsets of the sources.
        latest: the time of what has come before (integer ms).
        tuning: the tuning values of the builder.
    """

    def __init__(
        self,
        inputs: Sources | ReplayedBatches,
        keeps: bool = False,
        latest: int = ALWAYS,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self.inputs = inputs
        self.lost: list[DeadLetter] = []
        """The dead letters since the last batch."""
        self._keeps = keeps
        self._latest = latest
        self._arrived: queue.Queue[PrefetchedBatch | EndOfSources] = queue.Queue(tuning.max_prefetched_batches)
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name="reads sources", daemon=True)

    def start(self) -> None:
        """Starts to read in the background."""
        self._reader.start()

    def take(self, seconds: float | None) -> list[PrefetchedBatch | EndOfSources]:
        """Returns what is there, and waits so many seconds for the first item (None: without limit). Nothing follows an
        `EndOfSources`."""
        items: list[PrefetchedBatch | EndOfSources] = []
        with suppress(queue.Empty):
            items.append(self._arrived.get(timeout=seconds))
            while len(items) < self._arrived.maxsize:
                items.append(self._arrived.get_nowait())
        return items

    def parts(self) -> Iterator[PrefetchedBatch]:
        """Yields all batches, read by the caller. The last has no events, because sources may have advanced without
        any."""
        for events in drop_late_events(self.inputs.batches(), self.lost.append, self._latest):
            if events or self.lost:
                yield self._part(events)
        yield self._part(())

    def close(self) -> None:
        """Stops reading and drops what has not been taken. A reader that cannot be stopped in time goes on waiting in
        its thread, without effect."""
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
        current_offsets = self.inputs.current_offsets() if self._keeps else ()
        arrived = self.inputs.arrived or time.monotonic()
        return PrefetchedBatch(events, dead_letters, current_offsets, self.inputs.positions(), arrived)

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
