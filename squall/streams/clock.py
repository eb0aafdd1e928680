"""Clocks: where the times of events come from, and what waits for time to go on."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """What a run goes by. All times are integer ms.

    stamps: whether an event gets the time at which it arrives (processing time) and not the one that it says (event
    time).
    """

    @property
    def stamps(self) -> bool: ...

    def now(self) -> int:
        """The time; it never goes back. Where the clock does not stamp, differences alone mean something."""
        ...

    def wait(self, condition: threading.Condition, until: int | None) -> None:
        """Waits until the condition, which the caller holds, is notified, or the time is `until` (None: for as long as
        it takes). May return earlier."""
        ...


class _RealClock:
    """Time that passes by itself."""

    stamps = False

    def now(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wait(self, condition: threading.Condition, until: int | None) -> None:
        # A millisecond is not over before it has passed as a whole: without the 1, the last of it would be a busy loop.
        condition.wait(None if until is None else max(0, until - self.now() + 1) / 1000)


class EventClock(_RealClock):
    """Time is what events say. The time that passes by itself tells only for how long a source has been silent."""


class WallClock(_RealClock):
    """Events get the time at which they arrive: ms since the epoch by the system's clock, but never going back."""

    stamps = True

    def __init__(self) -> None:
        self._latest = 0

    def now(self) -> int:
        self._latest = max(self._latest, time.time_ns() // 1_000_000)
        return self._latest


def beginning(batches: object) -> int:
    """The time (integer ms) at which what always holds begins, as far as functions of time ask for it.

    Where the clock of `Sources` stamps events, it is the clock's; where there are no events, the system's. Else the
    time is what events say, and before them it is the epoch, so that runs over them are all alike.
    """
    clock: Clock | None = getattr(batches, "clock", None)
    if clock is not None and clock.stamps:
        return clock.now()
    parts = getattr(batches, "sources", batches)
    is_empty = isinstance(parts, list | tuple) and not any(parts)
    return WallClock().now() if is_empty else 0


class VirtualClock:
    """A clock that is moved by hand, for tests. Time stands still unless `advance` is called."""

    def __init__(self, now: int = 0, stamps: bool = False) -> None:
        self.stamps = stamps
        self._now = now
        self._waiting: list[threading.Condition] = []
        self._used = threading.Condition()

    def now(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> None:
        """Lets time go on; whoever waits for it looks again."""
        self._now += milliseconds
        with self._used:
            waiting = tuple(self._waiting)
        for condition in waiting:
            with condition:
                condition.notify_all()

    def wait(self, condition: threading.Condition, until: int | None) -> None:
        with self._used:
            self._waiting.append(condition)
            self._used.notify_all()
        if until is None or self._now < until:
            condition.wait()
        with self._used:
            self._waiting.remove(condition)

    def awaited(self, timeout: float = 10) -> bool:
        """Waits until somebody waits for this clock (at most `timeout` seconds); whether somebody does."""
        with self._used:
            return self._used.wait_for(lambda: bool(self._waiting), timeout)
