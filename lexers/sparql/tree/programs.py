"""Programs: statements, and how queries of streams are registered."""

from __future__ import annotations

from dataclasses import dataclass, field

from squall.errors import Origin
from squall.lexers.sparql.tree.queries import Query
from squall.lexers.sparql.tree.updates import Operation
from squall.model.windows import duration


@dataclass(frozen=True)
class Registration:
    """``REGISTER kind name [COMPUTED EVERY period] AS``.

    kind: ``QUERY`` or ``STREAM``; in RSP-QL ``STREAM``, ``RSTREAM``, ``ISTREAM`` or ``DSTREAM``.
    name: a word, or the term of an IRI. period: integer ms.
    """

    kind: str
    name: str
    period: int | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        every = "" if self.period is None else f" COMPUTED EVERY {duration(self.period)}"
        return f"REGISTER {self.kind} {self.name}{every} AS\n"


@dataclass(frozen=True)
class Statement:
    """A query or an operation of an update. base: the IRI against which ``IRI()`` resolves, if there is one."""

    body: Query | Operation
    registration: Registration | None = None
    base: str = ""

    def __str__(self) -> str:
        base = f"BASE <{self.base}>\n" if self.base else ""
        return f"{base}{self.registration or ''}{self.body}\n"


@dataclass(frozen=True)
class Program:
    """The statements of a text: one query, or the operations of an update."""

    statements: tuple[Statement, ...]
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return ";\n".join(map(str, self.statements))
