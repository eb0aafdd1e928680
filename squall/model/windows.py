"""Windows (stream to relation, S2R): which instants an event's facts are valid at (docs/semantics.md, section 2).

A window is data. All but `CountWindow` say the validity of a fact from its event's time alone; what a `CountWindow` window holds
depends on what arrives later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from squall.errors import UsageError
from squall.rdf import FOREVER


@dataclass(frozen=True)
class Landmark:
    """From its event on, for ever: valid at [t, infinity). The default."""

    def validity(self, time: int) -> tuple[int, int]:
        return time, FOREVER

    def __str__(self) -> str:
        return "LANDMARK"


@dataclass(frozen=True)
class SlidingWindow:
    """A continuous sliding window: valid at [t, t + size), or, if it lies back, so much later. size, delay: integer
    ms."""

    size: int
    delay: int = 0

    def validity(self, time: int) -> tuple[int, int]:
        start = time + self.delay
        return start, start + self.size

    def __str__(self) -> str:
        return f"RANGE {duration(self.size)}{_delayed(self.delay)}"


@dataclass(frozen=True)
class HoppingWindow:
    """A window that moves by steps: its content changes at the instants T = origin + k * step only, and is then what
    came in [T - size, T). All times are integer ms.

    A fact is so valid from the first such instant after its event until the first one after t + size: a continuous
    window whose two ends are rounded up to the grid. closed: the content at T is what came in (T - size, T] instead,
    which is how C-SPARQL's engine has it. delay: the window lies back: all that so much earlier.
    """

    size: int
    step: int
    origin: int = 0
    closed: bool = False
    delay: int = 0

    def validity(self, time: int) -> tuple[int, int]:
        return self.after(time + self.delay), self.after(time + self.delay + self.size)

    def after(self, time: int) -> int:
        """The first instant of the grid after a time (at or after it, if `closed`)."""
        past = time - self.origin - (1 if self.closed else 0)
        return self.origin + (past // self.step + 1) * self.step

    def __str__(self) -> str:
        moves = "TUMBLING" if self.size == self.step else f"STEP {duration(self.step)}"
        return f"RANGE {duration(self.size)} {moves}{_delayed(self.delay)}"


@dataclass(frozen=True)
class CountWindow:
    """The last `size` triples of the stream, in the order in which they came.

    step: the content changes whenever so many further triples have come, and is the last `size` then. With a step of
    `size` it is `size` triples at a time, when they are complete, until the next so many are.
    """

    size: int
    step: int = 1

    def __str__(self) -> str:
        moves = "" if self.step == 1 else " TUMBLING" if self.size == self.step else f" STEP {self.step}"
        return f"TRIPLES {self.size}{moves}"


@dataclass(frozen=True)
class EmptyWindow:
    """Nothing of any stream. Through it the default graph is what rules derive, and the static data that belong to no
    stream: the background of a query that names its streams."""

    def validity(self, time: int) -> tuple[int, int]:
        return time, time

    def __str__(self) -> str:
        return "NOTHING"


Window = Landmark | SlidingWindow | HoppingWindow | CountWindow | EmptyWindow
LANDMARK = Landmark()
NOTHING = EmptyWindow()

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = r"(\d+)\s*(ms|s|m|h|d)"
_TIMED = re.compile(
    rf"\[?\s*RANGE\s+{_DURATION}(?:\s+(?:STEP\s+{_DURATION}|(TUMBLING)))?(?:\s+DELAY\s+{_DURATION})?\s*\]?",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\[?\s*TRIPLES\s+(\d+)(?:\s+(?:STEP\s+(\d+)|(TUMBLING)))?\s*\]?", re.IGNORECASE)


def _delayed(delay: int) -> str:
    return f" DELAY {duration(delay)}" if delay else ""


def duration(milliseconds: int) -> str:
    """A length of time in the largest unit that is exact: ``10s``, ``1500ms``."""
    for unit, size in reversed(_UNITS.items()):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def milliseconds(text: str) -> int:
    """A length of time such as ``10s`` or ``500 ms`` in integer ms (units: ms s m h d). Raises UsageError."""
    found = re.fullmatch(_DURATION, text.strip(), re.IGNORECASE)
    if not found:
        raise UsageError(f"`{text}` is not a length of time", hint="write a number and a unit: 500ms, 10s, 5m, 1h, 1d")
    return _length(*found.groups())


def parse(text: str) -> Window:
    """The window of a text: ``RANGE 10s``, ``RANGE 10s STEP 5s``, ``RANGE 1m TUMBLING``, ``TRIPLES 100``,
    ``TRIPLES 9 STEP 3``, ``TRIPLES 9 TUMBLING``, ``LANDMARK``; in any letter case, with or without brackets. One that
    begins with ``RANGE`` may lie back: ``RANGE 10s DELAY 1h``. Units: ms s m h d. Raises UsageError."""
    plain = text.strip()
    if plain.upper() in ("", "LANDMARK"):
        return LANDMARK
    if found := _COUNT.fullmatch(plain):
        size = _positive(int(found[1]), text)
        return CountWindow(size, size if found[3] else _positive(int(found[2] or 1), text))
    if not (found := _TIMED.fullmatch(plain)):
        raise UsageError(
            f"`{text}` is not a window",
            hint="windows: RANGE 10s, RANGE 10s STEP 5s, RANGE 10s TUMBLING, RANGE 10s DELAY 1h, TRIPLES 100, "
            "TRIPLES 9 STEP 3, LANDMARK",
        )
    size = _positive(_length(found[1], found[2]), text)
    delay = _length(found[6], found[7]) if found[6] else 0
    if found[5]:
        return HoppingWindow(size, size, delay=delay)
    return (
        HoppingWindow(size, _positive(_length(found[3], found[4]), text), delay=delay)
        if found[3]
        else SlidingWindow(size, delay)
    )


def as_window(given: str | Window) -> Window:
    """A window, or that of a text (`parse`). Raises UsageError."""
    return parse(given) if isinstance(given, str) else given


def _length(number: str, unit: str) -> int:
    return int(number) * _UNITS[unit.lower()]


def _positive(number: int, text: str) -> int:
    if number <= 0:
        raise UsageError(f"the window `{text}` is empty", hint="its size and step have to be more than 0")
    return number
