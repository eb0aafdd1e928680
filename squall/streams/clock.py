"""Clocks of runs: event time, wall-clock (processing) time, and a virtual clock for tests."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """The clock of a run. All times are integer ms."""

    @property
    def stamps(self) -> bool:
        """Whether an event gets the time of its arrival (processing time) instead of its own (event time)."""
        ...

    def now(self) -> int:
        """Returns the time, which never goes back. If the clock does not stamp, only differences have a meaning."""
        ...

    def wait(self, condition: threading.Condition, until: int | None) -> None:
        """Waits until the condition, which the caller holds, is notified, or until a time. It may return earlier.

        Args:
            condition: The condition.
            until: The time, or None for no limit.
        """
        ...


class _RealClock:
    """A clock that runs by itself."""

    stamps = False

    def now(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wait(self, condition: threading.Condition, until: int | None) -> None:
        # A millisecond ends when it has passed completely: without the 1, the end of it would be a busy loop.
        condition.wait(None if until is None else min(max(0, until - self.now() + 1) / 1000, threading.TIMEOUT_MAX))


class EventClock(_RealClock):
    """The clock of runs over event time. It only measures for how long a source has had no events."""


class WallClock(_RealClock):
    """The clock of runs over arrival time: ms since the epoch by the system's clock, but never going back."""

    stamps = True

    def __init__(self) -> None:
        self._latest = 0

    def now(self) -> int:
        self._latest = max(self._latest, time.time_ns() // 1_000_000)
        return self._latest


def beginning(batches: object) -> int:
    """Returns the time (integer ms) of static data for functions of time.

    If the clock of `Sources` stamps events, it is the clock's. If there are no events, it is the system's. Otherwise
    time is event time, which begins at the epoch, so that all runs over the same events are alike.
    """
    clock: Clock | None = getattr(batches, "clock", None)
    if clock is not None and clock.stamps:
        return clock.now()
    parts = getattr(batches, "sources", batches)
    is_empty = isinstance(parts, list | tuple) and not any(parts)
    return WallClock().now() if is_empty else 0


class VirtualClock:
    """A clock for tests, which only advances when `advance` is called."""

    def __init__(self, now: int = 0, stamps: bool = False) -> None:
        self.stamps = stamps
        self._now = now
        self._waiting: list[threading.Condition] = []
        self._used = threading.Condition()

    def now(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> None:
        """Advances the time, and wakes up all who wait for it."""
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
        """Waits until somebody waits for this clock, at most `timeout` seconds. Returns whether somebody does."""
        with self._used:
            return self._used.wait_for(lambda: bool(self._waiting), timeout)
