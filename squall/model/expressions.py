"""Expressions, and the parts of systems that use them: predicates, unions, grouping, aggregates and slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.model.patterns import Variable
from squall.rdf import Term

if TYPE_CHECKING:
    from squall.model.systems import Joinable, System


@dataclass(frozen=True)
class Call:
    """A function applied to expressions. A variable that nothing binds is passed as unbound (None)."""

    function: str
    arguments: tuple[Expression, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)


Expression = Term | Variable | Call


@dataclass(frozen=True)
class Filter:
    """Keeps a solution for which the expression is true (a Predicate)."""

    expression: Call
    __test__ = False


@dataclass(frozen=True)
class Bind:
    """Extends a solution by the expression's value (a Predicate). A solution without a value is dropped.

    Attributes:
        keep_unbound: A solution without a value is kept instead, with the variable unbound (SPARQL 1.1, section 18.5,
            Extend).
    """

    variable: Variable
    expression: Expression
    keep_unbound: bool = False


@dataclass(frozen=True)
class TableFunction:
    """Extends a solution by each row of values that a table function returns: none, one or many.

    The function is looked up by IRI as in a `Call`. It returns rows of as many terms as there are variables.
    """

    variables: tuple[Variable, ...]
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Negation:
    """The common part of `NotExists` and `Minus`, which drop the solutions that match the joinables.

    A solution and a solution of the joinables agree if no variable that both bind has two values. Variables that only
    the joinables use are local to them. Negation is evaluated on the whole model, stratum by stratum.
    """

    joinables: tuple[Joinable, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class NotExists(Negation):
    """Keeps a solution if no solution of the joinables agrees with it.

    This is negation as failure (Jena's ``noValue``).
    """


@dataclass(frozen=True)
class Minus(Negation):
    """Keeps a solution if no solution of the joinables agrees with it and shares a bound variable with it.

    This is MINUS (SPARQL 1.1, section 18.5, Minus).

    Attributes:
        ignored: Variables that do not count as shared.
    """

    ignored: tuple[Variable, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Optional:
    """OPTIONAL, a left join.

    A solution is joined with each solution of the system that agrees with it on the variables they share and for which
    the condition holds. Where there is none, it stays by itself, and the other variables are unbound.

    Attributes:
        system: The optional part.
        condition: A test that may use the variables of both (SPARQL 1.1, section 18.2.2.6, filters of an OPTIONAL).
        exists: What the condition tests besides. Each extends a joined solution by a variable that only the condition
            sees.
    """

    system: System
    condition: Call | None = None
    exists: tuple[Exists, ...] = ()


@dataclass(frozen=True)
class Exists:
    """Extends each solution by whether the system has a solution for it: ``"true"`` or ``"false"``, an xsd:boolean.

    The values of the solution's variables replace these variables in the system (SPARQL 1.1, section 18.6, exists):
    filters, binds, optional parts and nested `Exists` may use them. A part that selects, groups or slices (a subquery)
    does not see them: it is evaluated by itself, and then joined. A `Bind` or `TableFunction` of such a variable keeps
    only the results that give it the value that it has. ``Exists(None, system, True)`` is FILTER EXISTS, and as cheap
    as a join.

    Attributes:
        variable: The variable of the result. With None the solution is not extended.
        system: The system.
        wanted: True keeps only solutions for which there is one, False those for which there is none, None all.
    """

    variable: Variable | None
    system: System
    wanted: bool | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)


Predicate = Filter | Bind | TableFunction | NotExists | Minus | Optional | Exists


@dataclass(frozen=True)
class Union:
    """The union of the solutions of the systems, as a bag (UNION, Or).

    A variable that one of them does not bind is unbound in its solutions.
    """

    branches: tuple[System, ...]


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of all solutions of a group.

    Attributes:
        variable: The variable of the result.
        kind: ``count``, ``sum``, ``avg``, ``min``, ``max``, ``sample`` or ``group_concat``.
        expression: The argument. None counts solutions (``count`` only).
        distinct: Equal values count once.
        separator: The text between values (``group_concat``).
    """

    variable: Variable
    kind: str
    expression: Expression | None = None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True)
class Grouping:
    """One solution for each combination of the keys' values: the keys and the aggregates.

    Without keys there is always one solution, even of no input (SPARQL 1.1, section 18.5.1).
    """

    keys: tuple[Variable, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Order:
    """A sort expression for solutions (SPARQL 1.1, section 15.1)."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Slice:
    """Some of the solutions that hold at an instant: `limit` of them from `offset` on, in the given order.

    Solutions with equal sort values are ordered by their text, so that the choice is always the same.

    Attributes:
        keys: Offset and limit hold for each combination of their values.
    """

    order: tuple[Order, ...] = ()
    offset: int = 0
    limit: int | None = None
    keys: tuple[Variable, ...] = ()
