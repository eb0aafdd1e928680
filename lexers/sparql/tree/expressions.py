"""Expressions: calls, aggregates, EXISTS, and when triples came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.lexers.sparql.tree.printing import expressed, quoted
from squall.model import Variable
from squall.rdf import Term, iri

if TYPE_CHECKING:
    from squall.lexers.sparql.tree.groups import Group

OPERATORS = frozenset({"||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"})
"""What is written between its operands; ``+`` and ``-`` before one, too, as ``!`` is."""
MEMBERSHIP = frozenset({"IN", "NOT IN"})
TIMESTAMP = iri("http://larkc.eu/csparql/sparql/jena/ext#timestamp")
"""The function that ``timestamp(?s, ?p, ?o)`` stands for: its name in C-SPARQL's engine."""


@dataclass(frozen=True)
class Call:
    """A function applied to expressions.

    function: a built-in's name in capitals (``STRLEN``, ``ISIRI``, ``IF``, ``COALESCE``), the sign of an operator
    (``||`` and ``&&`` take two or more arguments, ``!`` one, ``+`` and ``-`` one or two), ``IN`` or ``NOT IN`` (the
    arguments after the first are the list), or the term of an IRI (``<http://...>``).
    distinct: ``function(DISTINCT ...)``, for aggregates of others (grammar rule ArgList).
    """

    function: str
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        first, *other_arguments = [expressed(argument) for argument in self.arguments] or [""]
        if self.function in MEMBERSHIP:
            return f"({first} {self.function} ({', '.join(other_arguments)}))"
        if self.function in OPERATORS and other_arguments:
            return f"({f' {self.function} '.join([first, *other_arguments])})"
        if self.function in OPERATORS or self.function == "!":
            return f"({self.function} {first})"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{', '.join([first, *other_arguments])})"


@dataclass(frozen=True)
class Aggregate:
    """``COUNT``, ``SUM``, ``MIN``, ``MAX``, ``AVG``, ``SAMPLE`` or ``GROUP_CONCAT`` of an expression, or of solutions
    (``COUNT(*)``: None). separator: of ``GROUP_CONCAT``, where one is written."""

    kind: str
    expression: Expression | None = None
    distinct: bool = False
    separator: str | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        what = "*" if self.expression is None else expressed(self.expression)
        between = "" if self.separator is None else f"; SEPARATOR = {quoted(self.separator)}"
        return f"{self.kind}({'DISTINCT ' if self.distinct else ''}{what}{between})"


@dataclass(frozen=True)
class Exists:
    """``EXISTS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"EXISTS {self.group}"


@dataclass(frozen=True)
class NotExists:
    """``NOT EXISTS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"NOT EXISTS {self.group}"


@dataclass(frozen=True)
class Timestamp:
    """C-SPARQL's ``timestamp(?v)``: when what binds the variable came, looked for in everything, in the stream of an
    IRI, or in a pattern."""

    variable: Variable
    within: Term | Group | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"timestamp({self.variable}{'' if self.within is None else f' {self.within}'})"


Expression = Term | Variable | Call | Aggregate | Exists | NotExists | Timestamp
