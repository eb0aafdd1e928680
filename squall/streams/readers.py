"""Threads that read sources, and the inbox in which they put what they have read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from squall.clock import Clock
from squall.rdf import Event
from squall.streams.files import Acknowledging, Source

AHEAD = 4
"""Batches that a source which is read by a thread of its own may be ahead of whoever takes them."""


class Word(NamedTuple):
    """What a thread has read of the source with a number: a batch, None at its end. position: up to where that is (see
    `Acknowledging`), ``""`` where it is not known."""

    number: int
    batch: Sequence[Event] | None
    position: str = ""


def position_of(source: Source) -> str:
    """Up to where the last batch of a source is; ``""`` where that is not known."""
    return source.position() if isinstance(source, Acknowledging) else ""


class Inbox:
    """What threads have read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._arrived: deque[Word | BaseException] = deque()

    def put(self, word: Word | BaseException) -> None:
        with self._changed:
            self._arrived.append(word)
            self._changed.notify_all()

    def take(self, until: int | None) -> Word | None:
        """The next word; None if there is none before a time (integer ms; None: waits without end). Raises what the
        reading of a source raised."""
        with self._changed:
            while not self._arrived:
                if until is not None and self._clock.now() >= until:
                    return None
                self._clock.wait(self._changed, until)
            word = self._arrived.popleft()
        if isinstance(word, BaseException):
            raise word
        return word


class Reader:
    """A thread that reads a source into an inbox, not too far ahead of whoever takes from there."""

    def __init__(self, number: int, source: Source, inbox: Inbox) -> None:
        self._number = number
        self._source = source
        self._inbox = inbox
        self._slots = threading.Semaphore(AHEAD)
        self._stopped = False
        threading.Thread(target=self._read, name=f"reads {source.uri}", daemon=True).start()

    def taken(self, batches: int = 1) -> None:
        """Batches have been handed on: there is room for as many."""
        self._slots.release(batches)

    def stop(self) -> None:
        self._stopped = True
        self._slots.release()

    def _read(self) -> None:
        try:
            for batch in self._source.batches():
                word = Word(self._number, batch, position_of(self._source))
                self._slots.acquire()
                if self._stopped:
                    return
                self._inbox.put(word)
        except BaseException as error:  # raised again where the merge can be heard
            self._inbox.put(error)
        else:
            self._inbox.put(Word(self._number, None, position_of(self._source)))
