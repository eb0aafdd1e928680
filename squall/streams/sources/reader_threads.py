"""Threads that read sources, and the inbox in which they put what they have read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from squall.rdf import Event
from squall.streams.clock import Clock
from squall.streams.dead_letters import DeadLetter, DeferredLedger
from squall.streams.sources.files import Acknowledging, Source
from squall.streams.sources.reordering import current_offset, original, resume

AHEAD = 4
"""Batches that a source which is read by a thread of its own may be ahead of whoever takes them."""


class Stand(NamedTuple):
    """Where a source stands behind a batch. position: up to where it need not be read again (see `Acknowledging`);
    ``""``: not known. Where that is kept, told: what is needed to go on there; lost: what was since the last one."""

    position: str = ""
    state: Any = None
    lost: Sequence[DeadLetter] = ()


class Tap:
    """A source and the ledger of its own, if it has one, as whoever reads it sees them. keeps: where it stands is told
    whole, so that what it holds back need not be read again."""

    def __init__(self, source: Source, ledger: DeferredLedger | None = None) -> None:
        self.source = source
        self.keeps = False
        self._ledger = ledger

    def stand(self) -> Stand:
        """Where the source stands; to be asked by the thread that reads it, behind each batch."""
        dead_letters = self._ledger.drain() if self._ledger else ()
        if not self.keeps:
            return Stand(position_of(self.source), None, dead_letters)
        state = {"statements": self.source.reading.statements, "source": current_offset(self.source)}
        return Stand(position_of(original(self.source)), state, dead_letters)

    def resume(self, state: Any) -> None:
        """Lets the source go on where that was told."""
        resume(self.source, state["source"])
        self.source.reading.statements = state["statements"]

    def hand_on(self, dead_letters: Sequence[DeadLetter]) -> None:
        """The run has come to the batch with which that was lost."""
        if self._ledger is not None:
            self._ledger.forward(dead_letters)


class Word(NamedTuple):
    """What a thread has read of the source with a number: a batch, None at its end; and where the source stands."""

    number: int
    batch: Sequence[Event] | None
    stand: Stand = Stand()


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

    def __init__(self, number: int, tap: Tap, inbox: Inbox) -> None:
        self._number = number
        self._tap = tap
        self._inbox = inbox
        self._slots = threading.Semaphore(AHEAD)
        self._stopped = False
        threading.Thread(target=self._read, name=f"reads {tap.source.uri}", daemon=True).start()

    def taken(self, batches: int = 1) -> None:
        """Batches have been handed on: there is room for as many."""
        self._slots.release(batches)

    def stop(self) -> None:
        self._stopped = True
        self._slots.release()

    def _read(self) -> None:
        try:
            for batch in self._tap.source.batches():
                word = Word(self._number, batch, self._tap.stand())
                self._slots.acquire()
                if self._stopped:
                    return
                self._inbox.put(word)
        except BaseException as error:  # raised again where the merge can be heard
            self._inbox.put(error)
        else:
            self._inbox.put(Word(self._number, None, self._tap.stand()))
