"""What live sources have in common: options, being stopped, and reconnecting with back-off."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, TypeVar

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import ALWAYS, Event
from squall.streams.address import Address
from squall.streams.formats import Format, named
from squall.streams.formats.reading import ReadProgress, Settings
from squall.streams.sources.files import COMMON_OPTIONS, LOSS_RISK

T = TypeVar("T")
COMMON = ("format", "stream", "time", "idle", "retry", *COMMON_OPTIONS)
"""Options of all live sources."""

_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0  # seconds between two attempts to connect


class Lost(Exception):
    """The connection cannot be made, or is there no longer: it is tried again."""


class LiveSource(ABC):
    """A source that goes on until the other side ends it, or it is stopped.

    A connection that is lost is tried again after 0.1 s, then after twice as long each time up to 5 s, each time up to
    a quarter shorter by chance, for ``retry`` ms (60000) in all; the first one is tried once. Connections that bring
    nothing and are lost again are made further and further apart as well.
    """

    live: bool = True
    size: int | None = None
    options: ClassVar[tuple[str, ...]] = ()
    """Options besides the common ones."""
    risk: str = LOSS_RISK
    """What happens to what it brings when a run with a checkpoint is killed; ``""``: nothing."""

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        address.only(*COMMON, *self.options)
        self.uri = address.text
        self.settings = Settings(address.get("format"), address.get("stream"), address.integer("time", time))
        self.format = format_of(address)
        self.idle = address.integer("idle", 5000, least=0)
        self.retry = address.integer("retry", 60_000, least=0)
        self.removals = self.format.removals
        self.messages = self.format.messages
        self.earliest = ALWAYS if self.format.timed else self.settings.time
        self.reading = ReadProgress()
        self.ledger = ledger
        self.stopped = threading.Event()
        self.connected = threading.Event()
        """Set as soon as there is a connection for the first time."""

    @abstractmethod
    def receive(self) -> Iterator[Sequence[Event]]:
        """Connects, and gives what comes, until the other side ends it or the source is stopped. The first batch, which
        may be empty, says that there is a connection; others are empty where nothing of what has come can be used.
        Raises Lost."""

    def interrupt(self) -> None:  # noqa: B027
        """Wakes up `receive`, which may wait for something, when the source is stopped; called by another thread."""

    def stop(self) -> None:
        """Nothing more is received: what has been is handed on, and that is the end. May be called by any thread."""
        self.stopped.set()
        self.interrupt()

    def batches(self) -> Iterator[Sequence[Event]]:
        left: Iterator[float] = iter(())
        first = _FIRST_DELAY
        while not self.stopped.is_set():
            try:
                for number, batch in enumerate(self.receive()):
                    self.connected.set()
                    first = _FIRST_DELAY if batch else first
                    left = delays(self.retry / 1000, first)
                    if batch or number:
                        yield batch
                return
            except Lost as error:
                if self.stopped.is_set():
                    return
                self._wait(left, error)
                first = min(2 * first, _LONGEST_DELAY)

    def patiently(self, attempt: Callable[[], T]) -> T:
        """What an attempt gives, which is made again and again while it raises Lost. Raises SourceError if it takes too
        long."""
        left = delays(self.retry / 1000)
        while True:
            try:
                return attempt()
            except Lost as error:
                self._wait(left, error)

    def _wait(self, left: Iterator[float], error: Lost) -> None:
        """Until the next attempt."""
        delay = next(left, None)
        if delay is None:
            raise SourceError(f"`{self.uri}` cannot be read: {error}") from error
        self.stopped.wait(delay)


def format_of(address: Address) -> Format:
    """The format that an address says. Raises UsageError if it says none, or a compressed one."""
    name = address.get("format")
    if not name:
        raise UsageError(f"`{address.text}` does not say its format", hint="name it: `?format=nt`")
    format, compressed = named(name)
    if compressed:
        raise UsageError(f"`{address.text}` cannot be compressed", hint=f"`format={format.name}`")
    return format


def delays(seconds: float, first: float = _FIRST_DELAY) -> Iterator[float]:
    """How long to wait before each attempt, in seconds, from a first delay on; the last attempt is made when so many
    have passed since the first was asked for, whatever attempts have taken."""
    delay, end = first, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        yield min(delay * random.uniform(0.75, 1), left)
        delay = min(2 * delay, _LONGEST_DELAY)
