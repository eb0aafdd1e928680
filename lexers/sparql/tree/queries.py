"""Queries: their forms and solution modifiers."""

from __future__ import annotations

from dataclasses import dataclass, field

from squall.errors import Origin
from squall.lexers.sparql.tree.datasets import DatasetClause
from squall.lexers.sparql.tree.expressions import Aggregate, Expression
from squall.lexers.sparql.tree.groups import Filter, Group, QuadPattern, Values, quads_text
from squall.lexers.sparql.tree.printing import Slot, braced, bracketed, clause_text, lines, named_text, slot
from squall.model import Variable


@dataclass(frozen=True)
class SelectItem:
    """A selected variable, with its expression if it is written ``(expression AS ?variable)``."""

    variable: Variable
    expression: Expression | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return named_text(self.expression, self.variable)


@dataclass(frozen=True)
class GroupCondition:
    """A grouping key: a variable, or an expression, which may have a name."""

    expression: Expression
    variable: Variable | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.variable is None:
            return str(self.expression) if isinstance(self.expression, Variable) else bracketed(self.expression)
        return named_text(self.expression, self.variable)


@dataclass(frozen=True)
class OrderCondition:
    """A sort key, ``ASC(expression)`` or ``DESC(expression)``."""

    expression: Expression
    descending: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{'DESC' if self.descending else 'ASC'} {bracketed(self.expression)}"


@dataclass(frozen=True)
class Addition:
    """An item ``(?variable, aggregate, {?keys})`` of C-SPARQL's older ``AGGREGATE { ... }``.

    It adds a column with the aggregate of all solutions with the same keys, and keeps all solutions.
    """

    variable: Variable
    aggregate: Aggregate
    keys: tuple[Variable, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.variable}, {self.aggregate}, {{{' '.join(map(str, self.keys))}}})"


@dataclass(frozen=True)
class AggregateClause:
    """C-SPARQL's older clause ``AGGREGATE { additions filters }``."""

    additions: tuple[Addition, ...]
    filters: tuple[Filter, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"AGGREGATE {braced(lines([*self.additions, *self.filters]))}"


@dataclass(frozen=True)
class Modifiers:
    """The solution modifiers, in this order. DISTINCT and then the slice follow them."""

    aggregates: tuple[AggregateClause, ...] = ()
    group: tuple[GroupCondition, ...] = ()
    having: tuple[Expression, ...] = ()
    order: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        return lines(
            [
                *self.aggregates,
                *clause_text("GROUP BY", self.group),
                *clause_text("HAVING", map(bracketed, self.having)),
                *clause_text("ORDER BY", self.order),
                *clause_text("LIMIT", [] if self.limit is None else [self.limit]),
                *clause_text("OFFSET", [] if self.offset is None else [self.offset]),
            ]
        )


NO_MODIFIERS = Modifiers()


@dataclass(frozen=True)
class SelectQuery:
    """A SELECT query.

    Attributes:
        items: The selected items. None is ``*``.
        quantifier: ``DISTINCT``, ``REDUCED`` or nothing.
        values: The VALUES clause after the query.
    """

    items: tuple[SelectItem, ...] | None
    where: Group
    quantifier: str = ""
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        selection = "*" if self.items is None else " ".join(map(str, self.items))
        head = " ".join(word for word in ("SELECT", self.quantifier, selection) if word)
        return _query(head, self.dataset, self.where, self.modifiers, self.values)


@dataclass(frozen=True)
class ConstructQuery:
    """A CONSTRUCT query. The short form ``CONSTRUCT WHERE`` is expanded."""

    template: tuple[QuadPattern, ...]
    where: Group
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        head = f"CONSTRUCT {quads_text(self.template)}"
        return _query(head, self.dataset, self.where, self.modifiers, self.values)


@dataclass(frozen=True)
class AskQuery:
    """An ASK query."""

    where: Group
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _query("ASK", self.dataset, self.where, self.modifiers, self.values)


@dataclass(frozen=True)
class DescribeQuery:
    """A DESCRIBE query.

    Attributes:
        resources: The described resources. None is ``*``.
        where: The pattern, or None.
    """

    resources: tuple[Slot, ...] | None
    where: Group | None = None
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        selection = "*" if self.resources is None else " ".join(map(slot, self.resources))
        return _query(f"DESCRIBE {selection}", self.dataset, self.where, self.modifiers, self.values)


Query = SelectQuery | ConstructQuery | AskQuery | DescribeQuery


def _query(
    head: str, dataset: tuple[DatasetClause, ...], where: Group | None, modifiers: Modifiers, values: Values | None
) -> str:
    pattern = [] if where is None else [f"WHERE {where}"]
    pieces = [head, *map(str, dataset), *pattern, str(modifiers), "" if values is None else str(values)]
    return "\n".join(piece for piece in pieces if piece)
