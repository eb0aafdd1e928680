"""The elements of a group: triples, filters, OPTIONAL, UNION, GRAPH, windows and others; and the quads of templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.lexers.sparql.tree.datasets import CountRange, SessionRange, TimeRange
from squall.lexers.sparql.tree.events import Event, Match
from squall.lexers.sparql.tree.expressions import Expression
from squall.lexers.sparql.tree.paths import Alternative, Inverse, Negated, Path, Repeat, Steps
from squall.lexers.sparql.tree.printing import Slot, braced, bracketed, expressed, lines, silent_text, slot
from squall.lexers.sparql.tree.sequences import TimePattern
from squall.model import Variable
from squall.model.windows import duration
from squall.rdf import Term

if TYPE_CHECKING:
    from squall.lexers.sparql.tree.queries import SelectQuery


@dataclass(frozen=True)
class TriplePattern:
    """A triple pattern, whose predicate may be a property path.

    Attributes:
        start: The variable of the begin of the triple's validity, which an annotation asks for.
        end: The variable of its end.
    """

    subject: Slot
    predicate: Path | Variable
    object: Slot
    origin: Origin | None = field(default=None, compare=False, repr=False)
    start: Slot | None = None
    end: Slot | None = None

    def __str__(self) -> str:
        path = self.predicate
        verb = path if isinstance(path, Inverse | Steps | Alternative | Repeat | Negated) else slot(path)
        times = [("start", self.start), ("end", self.end)]
        annotation = " ; ".join(f"<urn:x-squall:window:{name}> {time}" for name, time in times if time is not None)
        return f"{slot(self.subject)} {verb} {slot(self.object)} {f'{{| {annotation} |}} ' if annotation else ''}."


@dataclass(frozen=True)
class TriplesBlock:
    """Adjacent triple patterns."""

    triples: tuple[TriplePattern, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return lines(self.triples)


@dataclass(frozen=True)
class Group:
    """A group, ``{ ... }``."""

    elements: tuple[Element, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return braced(lines(self.elements))


@dataclass(frozen=True)
class Optional:
    """The element ``OPTIONAL { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"OPTIONAL {self.group}"


@dataclass(frozen=True)
class Union:
    """The element ``{ ... } UNION { ... }``, with two or more groups."""

    branches: tuple[Group, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return " UNION ".join(map(str, self.branches))


@dataclass(frozen=True)
class Minus:
    """The element ``MINUS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"MINUS {self.group}"


@dataclass(frozen=True)
class Graph:
    """The element ``GRAPH name { ... }``."""

    name: Slot
    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"GRAPH {slot(self.name)} {self.group}"


@dataclass(frozen=True)
class Window:
    """The element ``WINDOW name { ... }`` (RSP-QL)."""

    name: Slot
    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"WINDOW {slot(self.name)} {self.group}"


@dataclass(frozen=True)
class StreamWindow:
    """The element ``STREAM stream [window] { ... }`` (CQELS-QL).

    Attributes:
        range: The window. None is ``[ALL]``.
    """

    name: Slot
    range: TimeRange | CountRange | SessionRange | None
    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"STREAM {slot(self.name)} {self._window()} {self.group}"

    def _window(self) -> str:
        match self.range:
            case TimeRange():
                return self.range.text(duration, "SLIDE")
            case CountRange(size=size, length=int(length)):
                return f"[RANGE {duration(length)} TRIPLES {size}]"
            case CountRange(size=size):
                return f"[TRIPLES {size}]"
            case SessionRange():
                return self.range.text(duration)
            case None:
                return "[ALL]"


@dataclass(frozen=True)
class Service:
    """The element ``SERVICE [SILENT] name { ... }``."""

    name: Slot
    group: Group
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"SERVICE {silent_text(self.silent)}{slot(self.name)} {self.group}"


@dataclass(frozen=True)
class Filter:
    """The element ``FILTER (expression)``."""

    expression: Expression
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FILTER {bracketed(self.expression)}"


@dataclass(frozen=True)
class Bind:
    """The element ``BIND (expression AS ?variable)``."""

    expression: Expression
    variable: Variable
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"BIND ({expressed(self.expression)} AS {self.variable})"


@dataclass(frozen=True)
class Values:
    """The element ``VALUES (?variables) { (terms) ... }``. None is ``UNDEF``."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        rows = "\n".join(f"({' '.join('UNDEF' if term is None else slot(term) for term in row)})" for row in self.rows)
        return f"VALUES ({' '.join(map(str, self.variables))}) {braced(rows)}"


@dataclass(frozen=True)
class SubSelect:
    """A subquery. It is the only element of its group."""

    query: SelectQuery
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.query)


Named = Graph | Window | StreamWindow | Service
"""The elements that name the graph, window, stream or service of a group."""
Events = TimePattern | Event | Match
"""The elements of patterns over time."""
Element = TriplesBlock | Group | Optional | Union | Minus | Named | Filter | Bind | Values | SubSelect | Events


@dataclass(frozen=True)
class QuadPattern:
    """A triple of a template or of data, in a graph or in the default graph (None). Its blank nodes are terms."""

    subject: Slot
    predicate: Slot
    object: Slot
    graph: Slot | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{slot(self.subject)} {slot(self.predicate)} {slot(self.object)} ."


def quads_text(quads: tuple[QuadPattern, ...]) -> str:
    pieces = []
    for graph, members in groupby(quads, lambda quad: quad.graph):
        text = lines(members)
        pieces.append(text if graph is None else f"GRAPH {slot(graph)} {braced(text)}")
    return braced("\n".join(pieces))
