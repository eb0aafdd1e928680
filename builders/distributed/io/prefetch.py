"""Sources as a driver reads them ahead of a run: in a thread of its own, and no more batches than a few."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from squall.builders.distributed.io.ingest import timely
from squall.builders.distributed.io.parsing import Lost
from squall.builders.local.replay import Given
from squall.rdf import ALWAYS, Event
from squall.streams import Sources

AHEAD = 16
"""How many batches may be read before they are taken, at most."""
_IDLE = 0.1
"""Seconds between two looks whether anybody still wants what has been read."""
_PATIENCE = 5.0
"""Seconds that sources have to end, when a run does."""


class Part(NamedTuple):
    """What has been read: the events of a batch, what was lost with them, and behind them where the sources stand
    (`squall.streams.Sources.standings`) and up to where they have been read (`positions`)."""

    events: Sequence[Event]
    lost: Sequence[Lost]
    standings: Sequence[Any]
    positions: Mapping[int, str]


class Ended(NamedTuple):
    """There is no more to be read. error: why, if something went wrong."""

    error: BaseException | None = None


def split(items: Sequence[Part | Ended]) -> tuple[list[Part], Ended | None]:
    """The parts of what has come, and the end, if that has."""
    parts = [item for item in items if isinstance(item, Part)]
    return parts, next((item for item in items if isinstance(item, Ended)), None)


class Intake:
    """Reads sources. keeps: it is told where they stand; latest: the time (integer ms) of what has come before."""

    def __init__(self, inputs: Sources | Given, keeps: bool = False, latest: int = ALWAYS) -> None:
        self.inputs = inputs
        self.lost: list[Lost] = []
        """What has been lost since the last part."""
        self._keeps = keeps
        self._latest = latest
        self._arrived: queue.Queue[Part | Ended] = queue.Queue(maxsize=AHEAD)
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name="reads sources", daemon=True)

    def start(self) -> None:
        """Begins to read, as the sources bring something: nobody knows when that is."""
        self._reader.start()

    def take(self, seconds: float | None) -> list[Part | Ended]:
        """What is at hand, but for what comes meanwhile; waits for something for so long at most, None: until it is
        there. Nothing comes behind an `Ended`."""
        items: list[Part | Ended] = []
        with suppress(queue.Empty):
            items.append(self._arrived.get(timeout=seconds))
            while len(items) < AHEAD:
                items.append(self._arrived.get_nowait())
        return items

    def parts(self) -> Iterator[Part]:
        """All parts, read by who takes them. The last one has no events: sources may have gone on without a word."""
        for events in timely(self.inputs.ahead(), self.lost.append, self._latest):
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
        self._arrived.put(Ended())  # for who waits
        if self._reader.is_alive():
            self.inputs.stop()
            if isinstance(self.inputs, Sources):
                self._reader.join(_PATIENCE)
        self.inputs.close()

    def _part(self, events: Sequence[Event]) -> Part:
        dead_letters = tuple(self.lost)
        self.lost.clear()
        return Part(events, dead_letters, self.inputs.standings() if self._keeps else (), self.inputs.positions())

    def _read(self) -> None:
        try:
            for part in self.parts():
                self._put(part)
                if self._closed.is_set():
                    break
        except BaseException as error:  # raised by the thread that takes the outputs
            self._put(Ended(error))
        else:
            self._put(Ended())

    def _put(self, what: Part | Ended) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._arrived.put(what, timeout=_IDLE)
                return
