"""Windows, and the clauses of data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from squall.errors import Origin
from squall.lexers.sparql.tree.printing import iso_duration
from squall.model.windows import duration
from squall.rdf import Term


@dataclass(frozen=True)
class TimeRange:
    """``RANGE size [STEP step]``, in integer ms; TUMBLING is a step of the window's size."""

    size: int
    step: int | None = None

    def text(self, length: Callable[[int], str], moves: str = "STEP") -> str:
        """In brackets, with lengths of time, and what they move by, written as a language does."""
        return f"[RANGE {length(self.size)}{'' if self.step is None else f' {moves} {length(self.step)}'}]"


@dataclass(frozen=True)
class CountRange:
    """The last so many triples: ``RANGE TRIPLES size`` (C-SPARQL), ``ELEMENTS size [STEP step]`` (RSP-QL)."""

    size: int
    step: int | None = None


@dataclass(frozen=True)
class PastRange:
    """``FROM NOW-begin TO NOW-end [STEP step]`` in integer ms: a window that lies back, unless its end is 0 (RSP-QL,
    drafts; SPARQLStream)."""

    begin: int
    end: int
    step: int | None = None

    def text(self, length: Callable[[int], str]) -> str:
        """In brackets, with lengths of time written as a language does."""
        end = f"-{length(self.end)}" if self.end else ""
        moves = "" if self.step is None else f" STEP {length(self.step)}"
        return f"[FROM NOW-{length(self.begin)} TO NOW{end}{moves}]"


Range = TimeRange | CountRange | PastRange


@dataclass(frozen=True)
class From:
    """``FROM graph``; in an update, ``USING graph``."""

    graph: Term
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM {self.graph}"


@dataclass(frozen=True)
class FromNamed:
    """``FROM NAMED graph``; in an update, ``USING NAMED graph``. whole: there are no graphs in it, as there may be in a
    document."""

    graph: Term
    whole: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM NAMED {self.graph}"


@dataclass(frozen=True)
class FromStream:
    """``FROM [NAMED] STREAM stream [window]`` (C-SPARQL, SPARQLStream); range: None where none is written."""

    stream: Term
    range: Range | None = None
    named: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        clause = f"FROM {'NAMED ' if self.named else ''}STREAM {self.stream}"
        match self.range:
            case TimeRange():
                return f"{clause} {self.range.text(duration)}"
            case CountRange(size=size, step=step):
                return f"{clause} [RANGE TRIPLES {size}{'' if step is None else f' STEP {step}'}]"
            case PastRange():
                return f"{clause} {self.range.text(duration)}"
            case None:
                return clause


@dataclass(frozen=True)
class FromWindow:
    """``FROM NAMED WINDOW name ON STREAM stream [window]`` (RSP-QL)."""

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
            case CountRange(size=size, step=step):
                return f"[ELEMENTS {size}{'' if step is None else f' STEP {step}'}]"
            case PastRange():
                return self.range.text(iso_duration)


DatasetClause = From | FromNamed | FromStream | FromWindow
