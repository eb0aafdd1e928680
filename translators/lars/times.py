"""Times of LARS programs: ticks, and windows in ms."""

from __future__ import annotations

from squall.errors import TranslatorError
from squall.lexers.lars.tree import Length
from squall.model import Source
from squall.model.windows import CountWindow, ElementWindow, HoppingWindow, duration
from squall.rdf import FOREVER

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


class Times:
    """The unit of time of a program.

    Attributes:
        tick: The unit (integer ms).
        source: What atoms read: what all streams bring in a tick, static data, and what rules derive.
    """

    def __init__(self, tick: Length | None) -> None:
        self.tick = 1 if tick is None else tick.number * _MILLISECONDS[tick.unit]
        window = ElementWindow() if self.tick == 1 else HoppingWindow(self.tick, self.tick, closed=True)
        self.source = Source(window=window)

    def milliseconds(self, length: Length) -> int:
        """Returns a length of time in ms.

        Raises:
            TranslatorError: It is no multiple of the tick.
        """
        value = length.number * (_MILLISECONDS[length.unit] if length.unit else self.tick)
        if value % self.tick:
            message = f"`{length}` is not a multiple of the tick of the program, which is {duration(self.tick)}"
            raise TranslatorError(message, length.origin, "write a multiple, or a smaller `@tick`")
        if value >= FOREVER // 4:
            raise TranslatorError(f"`{length}` is too long", length.origin)
        return value

    def tuples(self, number: int) -> Source:
        """Returns what atoms read through a window of the last tuples of each stream."""
        return Source(window=CountWindow(number))
