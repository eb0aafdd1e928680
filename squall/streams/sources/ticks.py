"""Ticks: events at all multiples of a period, at which standing queries are evaluated."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from squall.contracts import DeadLetterLedger
from squall.errors import UsageError
from squall.functions.values import date_time
from squall.rdf import ALWAYS, FOREVER, Event, Triple, iri
from squall.streams.address import Address
from squall.streams.clock import Clock, WallClock
from squall.streams.formats.reading import ReadProgress
from squall.streams.formats.timestamps import time_of
from squall.streams.sources.files import COMMON_OPTIONS

TICK, AT = iri("urn:x-squall:tick"), iri("urn:x-squall:at")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PERIOD = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")
_TICKS_PER_BATCH = 512


class TickSource:
    """``tick:1s``: an event at each multiple of a period (ms, s, m, h, d) since 1970-01-01T00:00:00Z.

    The one fact of the event at t is ``<urn:x-squall:tick> <urn:x-squall:at> "t"^^xsd:dateTime``.

    With ``from`` and ``until`` (integer ms, or ISO 8601) it is bounded, and has the multiples in [from, until]. With
    ``from`` alone it follows the other sources: it has the multiples up to the time of their last event. Without
    ``from`` it is live: each event comes when the system's clock has reached its time, until ``until`` or until the run
    is stopped. Without ``until`` it ends when all other sources of the run have ended, if there are any. A run that
    resumes gets the events that it has missed. Further options: ``stream`` (an IRI) and ``idle`` (ms).

    Attributes:
        period: The period in integer ms.
        begin: The time (integer ms) of the first event, or None: it is the next multiple when reading begins.
        ends_with_others: Whether it ends when all sources have ended that do not
            (`squall.streams.sources.merge.Sources`).
        end: The time (integer ms) up to which there are events.
    """

    size: int | None = None
    removals = False
    timed = True
    risk = ""

    def __init__(
        self, address: Address, ledger: DeadLetterLedger, time: int = 0, *, clock: Clock | None = None
    ) -> None:
        address.only("stream", "from", "until", "idle", *COMMON_OPTIONS)
        self.uri = address.text
        self.period = _period(address)
        begin, end = _time(address, "from"), _time(address, "until")
        self.live = begin is None
        if begin is not None and end is not None and begin > end:
            raise UsageError(f"`{self.uri}` ends before it begins", hint="`from` has to be earlier than `until`")
        self.begin = None if begin is None else -(-begin // self.period) * self.period
        self.ends_with_others = end is None
        self.end = FOREVER - 1 if end is None else end
        self.earliest = ALWAYS if self.begin is None else self.begin
        self.idle = address.milliseconds("idle", 5000)
        self.reading = ReadProgress()
        self._stream = address.get("stream")
        self._clock = clock or WallClock()
        self._stopped = threading.Event()
        self._next = self.begin

    def stop(self) -> None:
        """Ends a live source (`squall.streams.sources.files.Stoppable`). It has no effect on others."""
        if self.live:
            self._stopped.set()

    def current_offset(self) -> Any:
        """Returns the time (integer ms) of the next event, or None (`squall.streams.sources.files.Resumable`)."""
        return self._next

    def resume(self, current_offset: Any) -> None:
        self._next = current_offset

    def batches(self) -> Iterator[Sequence[Event]]:
        if self._next is None:
            self._next = (self._clock.now() // self.period + 1) * self.period
        while self._next <= self.end and not self._stopped.is_set():
            last = min(self.end, self._next + (_TICKS_PER_BATCH - 1) * self.period)
            if self.live:
                self._stopped.wait(max(0, self._next - self._clock.now()) / 1000)
                last = min(last, self._clock.now())
            times = range(self._next, last + 1, self.period)
            if times:
                self._next = times[-1] + self.period
                self.reading.statements += len(times)
                yield [Event(time, (Triple(TICK, AT, date_time(time)),), self._stream) for time in times]


def _period(address: Address) -> int:
    """Returns the period (integer ms) that is the path of an address. Raises UsageError if it is none."""
    match = _PERIOD.fullmatch(address.path)
    if match is None or not int(match[1]):
        hint = "write a number and a unit (ms, s, m, h, d): `tick:1s`"
        raise UsageError(f"`{address.path}` in `{address.text}` is no period", hint=hint)
    return int(match[1]) * _UNITS_MS[match[2]]


def _time(address: Address, name: str) -> int | None:
    """Returns the time (integer ms) of an option, or None. Raises UsageError if it is no time."""
    text = address.get(name)
    if not text:
        return None
    try:
        time = time_of(text)
    except SyntaxError as error:
        raise UsageError(f"`{name}={text}` in `{address.text}`: {error.msg}") from error
    if time == ALWAYS:
        raise UsageError(f"`{name}={text}` in `{address.text}` is no time", hint="write integer ms, or ISO 8601")
    return time
