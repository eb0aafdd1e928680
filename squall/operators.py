"""The operators of a plan, over columns: what each node of the Planned Production System does, as data.

Names end here. A *row* is a tuple of terms; an operator says which of its columns it compares, keeps and makes.
docs/pps.md is the specification; `squall.builders.rows` says what each does to rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from squall.rdf import Term
from squall.system import Source


@dataclass(frozen=True)
class Value:
    """A literal that matches by value: ``"5"^^xsd:int`` matches ``"05"^^xsd:integer``."""

    term: Term


Cell = int | Term | Value | None
"""One cell of a `Match`: a column number to fill, a term to equal, a literal to equal by value, or anything at all."""


@dataclass(frozen=True)
class Column:
    """The value in a column of the row."""

    index: int


@dataclass(frozen=True)
class Apply:
    """A function, by IRI, of expressions. ``None`` as an argument is an unbound variable."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Column | Term | Apply | None


@dataclass(frozen=True)
class Read:
    """The facts of a source. A triple is the row (s, p, o); an atom is (``@relation``, arguments...)."""

    source: Source


@dataclass(frozen=True)
class Match:
    """Rows for the facts of its inputs that fit the cells. Column numbers count from 0; a repeated one means equality.

    A fact fits only if it has as many cells (the rule's name behind it not counted) and is of the same kind.
    """

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Join:
    """Pairs of a left and a right row that agree on the columns ``on`` (left column, right column).

    ``keep`` selects columns of the left row followed by the right row. No column to agree on: the cross product.
    """

    on: tuple[tuple[int, int], ...]
    keep: tuple[int, ...]


@dataclass(frozen=True)
class AntiJoin:
    """Left rows at the instants at which no right row agrees with them on ``on``."""

    on: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Test:
    """Rows for which the expression is true. ``timed``: it is taken at the time since which the row holds."""

    expression: Apply
    timed: bool = False
    __test__ = False


@dataclass(frozen=True)
class Extend:
    """Rows with the value of the expression as a further column; a row for which it has none is dropped.
    ``timed``: it is taken at the time since which the row holds."""

    expression: Expression
    timed: bool = False


@dataclass(frozen=True)
class Unit:
    """The one row without columns, valid always: the body of an axiom."""


@dataclass(frozen=True)
class Distinct:
    """The bag union of its inputs as a set: each row at each instant once. The first ``by`` columns tell rows apart;
    columns after them (the rule's name on a fact) are those of a row that makes it valid when it begins to be."""

    by: int


@dataclass(frozen=True)
class Emit:
    """A fact from each row: ``template`` gives its cells (a column number or a term); the last column is the rule's
    name.

    ``rules``: the rules it serves, in the order of the program. They do not take part in equality, so that rules which
    make the same facts of the same rows share the node. ``reentrant``: whether the facts are read again.
    """

    template: tuple[int | Term, ...]
    rules: tuple[str, ...] = field(default=(), compare=False)
    reentrant: bool = True


@dataclass(frozen=True)
class Deliver:
    """The operation node that ends every plan: hands the facts of its inputs to the sink by an R2S operator.

    output: ``istream``, ``dstream`` or ``rstream``.
    distinct: whether two inputs may bring the same fact, so that the node has to remember which it has handed on.
    """

    output: str = "istream"
    distinct: bool = True


Operator = Read | Match | Join | AntiJoin | Test | Extend | Unit | Distinct | Emit | Deliver


def is_timed(op: Operator) -> bool:
    """Whether the operator computes with the time since which its rows hold."""
    return isinstance(op, Test | Extend) and op.timed


def is_stateful(op: Operator) -> bool:
    """Whether the operator keeps rows."""
    return isinstance(op, Join | AntiJoin | Distinct | Deliver) or is_timed(op)


def columns_of(expression: Expression) -> Iterator[int]:
    """The columns that an expression reads."""
    match expression:
        case Column(index=index):
            yield index
        case Apply(arguments=arguments):
            for argument in arguments:
                yield from columns_of(argument)
        case str() | None:
            return
