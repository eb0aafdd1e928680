"""Operations of updates (SPARQL 1.1 Update, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from squall.errors import Origin
from squall.lexers.sparql.tree.datasets import From, FromNamed
from squall.lexers.sparql.tree.groups import Group, QuadPattern, quads_text
from squall.lexers.sparql.tree.printing import graph_text, silent_text
from squall.rdf import Term


@dataclass(frozen=True)
class InsertData:
    """The operation ``INSERT DATA { ... }``."""

    quads: tuple[QuadPattern, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"INSERT DATA {quads_text(self.quads)}"


@dataclass(frozen=True)
class DeleteData:
    """The operation ``DELETE DATA { ... }``."""

    quads: tuple[QuadPattern, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"DELETE DATA {quads_text(self.quads)}"


@dataclass(frozen=True)
class Modify:
    """The operation ``[WITH graph] DELETE { ... } INSERT { ... } WHERE { ... }``. ``DELETE WHERE`` is expanded."""

    delete: tuple[QuadPattern, ...]
    insert: tuple[QuadPattern, ...]
    where: Group
    graph: Term | None = None
    using: tuple[From | FromNamed, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        parts = [
            *([] if self.graph is None else [f"WITH {self.graph}"]),
            *([f"DELETE {quads_text(self.delete)}"] if self.delete else []),
            *([f"INSERT {quads_text(self.insert)}"] if self.insert or not self.delete else []),
            *(str(clause).replace("FROM", "USING", 1) for clause in self.using),
            f"WHERE {self.where}",
        ]
        return "\n".join(parts)


@dataclass(frozen=True)
class Load:
    """The operation ``LOAD [SILENT] source [INTO GRAPH graph]``."""

    source: Term
    graph: Term | None = None
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        into = "" if self.graph is None else f" INTO GRAPH {self.graph}"
        return f"LOAD {silent_text(self.silent)}{self.source}{into}"


@dataclass(frozen=True)
class Manage:
    """The operation ``CLEAR``, ``DROP`` or ``CREATE`` (action) of a graph: its IRI, ``DEFAULT``, ``NAMED``
    or ``ALL``."""

    action: str
    graph: str
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.action} {silent_text(self.silent)}{graph_text(self.graph)}"


@dataclass(frozen=True)
class Transfer:
    """The operation ``ADD``, ``MOVE`` or ``COPY`` (action) from one graph to another: an IRI, or ``DEFAULT``."""

    action: str
    source: str
    target: str
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.action} {silent_text(self.silent)}{graph_text(self.source)} TO {graph_text(self.target)}"


Operation = InsertData | DeleteData | Modify | Load | Manage | Transfer
