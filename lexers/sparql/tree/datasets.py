"""Windows and dataset clauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from squall.errors import Origin
from squall.lexers.sparql.tree.printing import iso_duration
from squall.model.windows import FirstTriple, SessionKey, duration, origin_text
from squall.rdf import Term


@dataclass(frozen=True)
class TimeRange:
    """A time window, ``RANGE size [STEP step [ORIGIN origin]]``, in integer ms.

    TUMBLING is a step of the window's size.

    Attributes:
        grid_origin: An instant of the grid of steps.
    """

    size: int
    step: int | None = None
    grid_origin: int | FirstTriple = 0

    def text(self, length: Callable[[int], str], moves: str = "STEP") -> str:
        """Returns the window in brackets, with durations and the keyword of the step as the language has them."""
        step = "" if self.step is None else f" {moves} {length(self.step)}"
        return f"[RANGE {length(self.size)}{step}{origin_text(self.grid_origin, length)}]"


@dataclass(frozen=True)
class CountRange:
    """A window of the last triples: ``RANGE TRIPLES size`` (C-SPARQL), ``ELEMENTS size [STEP step]`` (RSP-QL).

    Attributes:
        length: Of those that came in so many ms, if given: ``RANGE length TRIPLES size``.
    """

    size: int
    step: int | None = None
    length: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class PastRange:
    """A window in the past, ``FROM NOW-begin TO NOW-end [STEP step]``, in integer ms.

    Source: drafts of RSP-QL; SPARQLStream.
    """

    begin: int
    end: int
    step: int | None = None
    grid_origin: int | FirstTriple = 0

    def text(self, length: Callable[[int], str]) -> str:
        """Returns the window in brackets, with durations as the language has them."""
        end = f"-{length(self.end)}" if self.end else ""
        moves = "" if self.step is None else f" STEP {length(self.step)}"
        return f"[FROM NOW-{length(self.begin)} TO NOW{end}{moves}{origin_text(self.grid_origin, length)}]"


@dataclass(frozen=True)
class SessionRange:
    """A session window, ``SESSION gap [BY key] [ON CHANGE]``, in integer ms.

    Attributes:
        is_open: Whether it is read while its sessions are open (``ON CHANGE``).
    """

    gap: int
    key: SessionKey = ""
    is_open: bool = False

    def text(self, length: Callable[[int], str]) -> str:
        """Returns the window in brackets, with durations as the language has them."""
        return f"[SESSION {self.clauses(length)}]"

    def clauses(self, length: Callable[[int], str]) -> str:
        """Returns the window without its keyword."""
        key = f" BY {self.key}" if self.key else ""
        return f"{length(self.gap)}{key}{' ON CHANGE' if self.is_open else ''}"


Range = TimeRange | CountRange | PastRange | SessionRange


@dataclass(frozen=True)
class From:
    """The clause ``FROM graph``, or ``USING graph`` in an update."""

    graph: Term
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM {self.graph}"


@dataclass(frozen=True)
class FromNamed:
    """The clause ``FROM NAMED graph``, or ``USING NAMED graph`` in an update.

    Attributes:
        whole: Whether the graph contains no graphs. A document may contain some.
    """

    graph: Term
    whole: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM NAMED {self.graph}"


@dataclass(frozen=True)
class FromStream:
    """The clause ``FROM [NAMED] STREAM stream [window]`` (C-SPARQL, SPARQLStream).

    Attributes:
        range: The window, or None.
    """

    stream: Term
    range: Range | None = None
    named: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        clause = f"FROM {'NAMED ' if self.named else ''}STREAM {self.stream}"
        match self.range:
            case TimeRange():
                return f"{clause} {self.range.text(duration)}"
            case CountRange(size=size, length=int(length)):
                return f"{clause} [RANGE {duration(length)} TRIPLES {size}]"
            case CountRange(size=size, step=step):
                return f"{clause} [RANGE TRIPLES {size}{'' if step is None else f' STEP {step}'}]"
            case PastRange() | SessionRange():
                return f"{clause} {self.range.text(duration)}"
            case None:
                return clause


@dataclass(frozen=True)
class FromWindow:
    """The clause ``FROM NAMED WINDOW name ON STREAM stream [window]`` (RSP-QL)."""

    name: Term
    stream: Term
    range: Range
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM NAMED WINDOW {self.name} ON STREAM {self.stream} {self._window()}"

    def _window(self) -> str:
        match self.range:
            case TimeRange():
                return self.range.text(iso_duration)
            case CountRange(size=size, length=int(length)):
                return f"[RANGE {iso_duration(length)} TRIPLES {size}]"
            case CountRange(size=size, step=step):
                return f"[ELEMENTS {size}{'' if step is None else f' STEP {step}'}]"
            case PastRange() | SessionRange():
                return self.range.text(iso_duration)


@dataclass(frozen=True)
class FromStreams:
    """All streams through one window (Strider). A program says so once, for all of its queries (`Streaming`)."""

    range: TimeRange | SessionRange
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM STREAM * {self.range.text(duration)}"


DatasetClause = From | FromNamed | FromStream | FromStreams | FromWindow
