"""The base of live sources: their options, how they stop, and how they reconnect with back-off."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import ALWAYS, Event
from squall.streams.address import Address
from squall.streams.formats import Format, format_named
from squall.streams.formats.jsonld_contexts import outside_context
from squall.streams.formats.reading import ReadProgress, Settings
from squall.streams.mappings import options
from squall.streams.sources.files import COMMON_OPTIONS, LOSS_RISK

T = TypeVar("T")
COMMON = ("format", "context", "stream", "time", "idle", "retry", *options.OPTIONS, *COMMON_OPTIONS)
"""Options of all live sources."""

CONNECT_TIMEOUT_S = 10.0
_FIRST_DELAY, _MAX_DELAY = 0.1, 5.0
"""The seconds between two attempts to connect."""


class ConnectionLost(Exception):
    """A connection cannot be made, or was lost. It is tried again.

    Attributes:
        retry_after: The seconds for which the other side wants to be left alone before that.
    """

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class LiveSource(ABC):
    """A source that ends when the other side ends it, or when it is stopped.

    A lost connection is tried again after 0.1 s, then after twice as long each time, up to 5 s. Each delay is up to a
    quarter shorter at random. If the other side says when to try again, the delay begins then, at most ``retry`` ms
    later. After ``retry`` ms (60000) the source gives up. The first connection is tried only once. Delays also grow if
    connections are made and lost again without an event.

    Attributes:
        options: The options besides the common ones.
        risk: What a killed run with a checkpoint loses of its events; ``""``: nothing.
        connected: An event that is set when there is a connection for the first time.
    """

    live: bool = True
    size: int | None = None
    options: ClassVar[tuple[str, ...]] = ()
    risk: str = LOSS_RISK

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        address.only(*COMMON, *self.options)
        self.uri = address.text
        self.settings = Settings(
            address.get("format"),
            address.get("stream"),
            options.fixed_time(address, time),
            source=f"{address.scheme}:{address.path}",
        )
        self.format = self.format_of(address)
        formats = [self.format.name]
        context, records = outside_context(address, formats), options.records_of(address, formats)
        self.settings = replace(self.settings, context=context, records=records)
        self.timed = self.settings.is_timed(self.format)
        self.idle = address.milliseconds("idle", 5000)
        self.retry = address.milliseconds("retry", 60_000)
        self.removals = self.format.removals
        self.messages = self.format.messages
        self.earliest = ALWAYS if self.timed else self.settings.time
        self.reading = ReadProgress()
        self.ledger = ledger
        self.stopped = threading.Event()
        self.connected = threading.Event()

    def format_of(self, address: Address) -> Format:
        """Returns the format of what is received. Raises UsageError if the address does not say it."""
        return format_of(address)

    @abstractmethod
    def receive(self) -> Iterator[Sequence[Event]]:
        """Connects, and yields batches of events until the other side ends or the source is stopped.

        The first batch, which may be empty, shows that there is a connection. Others are empty if what was received has
        dead letters alone.

        Raises:
            ConnectionLost: There is no connection, or no longer.
        """

    def interrupt(self) -> None:  # noqa: B027
        """Wakes `receive` up when the source is stopped. Another thread calls it."""

    def stop(self) -> None:
        """Stops receiving. Events that have been received are still output. It may be called by any thread."""
        self.stopped.set()
        self.interrupt()

    def batches(self) -> Iterator[Sequence[Event]]:
        pauses: Iterator[float] = iter(())
        first = _FIRST_DELAY
        while not self.stopped.is_set():
            try:
                for number, batch in enumerate(self.receive()):
                    self.connected.set()
                    first = _FIRST_DELAY if batch else first
                    pauses = delays(self.retry / 1000, first)
                    if batch or number:
                        yield batch
                return
            except ConnectionLost as error:
                if self.stopped.is_set():
                    return
                self._wait(pauses, error)
                first = min(2 * first, _MAX_DELAY)

    def retry_while_lost(self, attempt: Callable[[], T]) -> T:
        """Repeats an attempt while it raises ConnectionLost, and returns its result.

        Raises:
            SourceError: It has not succeeded within the time of the option `retry`.
        """
        pauses = delays(self.retry / 1000)
        while True:
            try:
                return attempt()
            except ConnectionLost as error:
                self._wait(pauses, error)

    def _wait(self, pauses: Iterator[float], error: ConnectionLost) -> None:
        """Waits until the next attempt. Raises SourceError if there is none."""
        delay = delay_after(error, pauses, self.retry / 1000)
        if delay is None:
            raise SourceError(f"`{self.uri}` cannot be read: {error}") from error
        self.stopped.wait(delay)


def format_of(address: Address) -> Format:
    """Returns the format that an address names. Raises UsageError if it names none, or a compressed one."""
    name = address.get("format")
    if not name:
        raise UsageError(f"`{address.text}` does not say its format", hint="name it: `?format=nt`")
    format, compression = format_named(name, options.is_mapped(address))
    if compression:
        raise UsageError(f"`{address.text}` cannot be compressed", hint=f"`format={format.name}`")
    return format


def delays(seconds: float, first: float = _FIRST_DELAY) -> Iterator[float]:
    """Yields the seconds to wait before each attempt.

    Args:
        seconds: The time after which there are no more attempts, from now on, attempts included.
        first: The first delay.
    """
    delay, end = first, time.monotonic() + seconds
    while (remaining := end - time.monotonic()) > 0:
        yield min(delay * random.uniform(0.75, 1), remaining)
        delay = min(2 * delay, _MAX_DELAY)


def delay_after(problem: object, pauses: Iterator[float], retry_s: float) -> float | None:
    """Returns the seconds to wait after a problem before the next attempt; None if there are no more attempts.

    Args:
        problem: The problem. It may be a ConnectionLost that says when to try again.
        pauses: The delays (`delays`).
        retry_s: The longest time for which the other side can put the attempt off, in seconds.
    """
    delay = next(pauses, None)
    if delay is not None and isinstance(problem, ConnectionLost):
        delay += min(problem.retry_after, retry_s)  # added, so that clients of a server do not all come back at once
    return delay
