"""Expressions: calls, aggregates, EXISTS, C-SPARQL's timestamp, the times of steps, and sequences of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.lexers.sparql.tree.events import EventSequence
from squall.lexers.sparql.tree.printing import expressed, quoted
from squall.lexers.sparql.tree.sequences import Previous, StepCall
from squall.model import Variable
from squall.rdf import Term, iri

if TYPE_CHECKING:
    from squall.lexers.sparql.tree.groups import Group

OPERATORS = frozenset({"||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"})
"""The infix operators. ``+`` and ``-`` are prefix operators, too, as is ``!``."""
MEMBERSHIP = frozenset({"IN", "NOT IN"})
TIMESTAMP = iri("http://larkc.eu/csparql/sparql/jena/ext#timestamp")
"""The function of ``timestamp(?s, ?p, ?o)``: its name in C-SPARQL's engine."""


@dataclass(frozen=True)
class Call:
    """A function applied to expressions.

    Attributes:
        function: A built-in's name in upper case (``STRLEN``, ``ISIRI``, ``IF``, ``COALESCE``), an operator, ``IN`` or
            ``NOT IN``, or the term of an IRI (``<http://...>``). ``||`` and ``&&`` take two or more arguments, ``!``
            one, ``+`` and ``-`` one or two. The arguments of ``IN`` after the first are the list.
        distinct: Whether it is ``function(DISTINCT ...)``, which only aggregates take (grammar rule ArgList).
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
    """An aggregate.

    Attributes:
        kind: ``COUNT``, ``SUM``, ``MIN``, ``MAX``, ``AVG``, ``SAMPLE`` or ``GROUP_CONCAT``, or the term of an IRI.
        expression: The first argument. None means solutions (``COUNT(*)``).
        separator: The separator of ``GROUP_CONCAT``, or None.
        further_arguments: The arguments after the first.
    """

    kind: str
    expression: Expression | None = None
    distinct: bool = False
    separator: str | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)
    further_arguments: tuple[Expression, ...] = ()

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """All arguments."""
        return () if self.expression is None else (self.expression, *self.further_arguments)

    def __str__(self) -> str:
        what = ", ".join(map(expressed, self.arguments)) or "*"
        between = "" if self.separator is None else f"; SEPARATOR = {quoted(self.separator)}"
        return f"{self.kind}({'DISTINCT ' if self.distinct else ''}{what}{between})"


@dataclass(frozen=True)
class Exists:
    """The expression ``EXISTS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"EXISTS {self.group}"


@dataclass(frozen=True)
class NotExists:
    """The expression ``NOT EXISTS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"NOT EXISTS {self.group}"


@dataclass(frozen=True)
class Timestamp:
    """C-SPARQL's ``timestamp(?v)``: the arrival time of the triples that bind the variable.

    Attributes:
        within: The IRI of a stream or a pattern to which the triples are restricted, or None.
    """

    variable: Variable
    within: Term | Group | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"timestamp({self.variable}{'' if self.within is None else f' {self.within}'})"


Expression = (
    Term | Variable | Call | Aggregate | Exists | NotExists | Timestamp | StepCall | Previous | EventSequence
)  # fmt: skip
