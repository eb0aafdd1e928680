"""Expressions, the predicates that use them, unions and groups."""

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
    """Keeps a solution where the expression is true (a Predicate)."""

    expression: Call
    __test__ = False


@dataclass(frozen=True)
class Bind:
    """Extends a solution by the expression's value (a Predicate); a solution for which it has none is dropped.

    keep_unbound: it is kept, the variable unbound (SPARQL 1.1, section 18.5, Extend).
    """

    variable: Variable
    expression: Expression
    keep_unbound: bool = False


@dataclass(frozen=True)
class TableFunction:
    """Extends a solution by each row of values that a function makes of it (a table function): none, one or many.

    The function is looked up by IRI as in a `Call`; it gives rows of as many terms as there are variables.
    """

    variables: tuple[Variable, ...]
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Without:
    """Keeps a solution where the joinables have no solution that agrees with it on the variables that are bound in
    both.

    ``noValue``, negation as failure: evaluated on the whole model, stratum by stratum. Variables that occur in the
    joinables alone are local to them. minus: only a solution of the joinables counts in which at least one variable is
    bound that is bound in the solution, too (SPARQL 1.1, section 18.5, Minus); these do not count for that if they are
    `apart`.
    """

    joinables: tuple[Joinable, ...]
    minus: bool = field(default=False, kw_only=True)
    apart: tuple[Variable, ...] = field(default=(), kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Optional:
    """OPTIONAL, a true left join: a solution with each solution of the system that agrees with it on the variables
    they share and for which the condition holds; by itself, the others unbound, where there is none.

    The condition may use the variables of both (SPARQL 1.1, section 18.2.2.6, filters of an OPTIONAL).
    exists: what the condition asks besides: each extends a pair of solutions in front of it, by a variable that is seen
    by the condition alone.
    """

    system: System
    condition: Call | None = None
    exists: tuple[Exists, ...] = ()


@dataclass(frozen=True)
class Exists:
    """Extends each solution by whether the system has a solution for it: ``"true"`` or ``"false"``, an xsd:boolean.

    The system is that which results where the variables that the solution binds are replaced by their values (SPARQL
    1.1, section 18.6, exists): tests, binds, optional parts and nested `Exists` may use them. A part that selects,
    groups or slices (a sub-query) does not see them: it is evaluated by itself, and then joined. A `Bind` or `TableFunction`
    of such a variable keeps what gives it the value that it has.
    variable: None: the solution is not extended. wanted: True keeps solutions for which there is one only, False those
    for which there is none, None all. So ``Exists(None, system, True)`` is FILTER EXISTS, and as cheap as a join.
    """

    variable: Variable | None
    system: System
    wanted: bool | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)


Predicate = Filter | Bind | TableFunction | Without | Optional | Exists


@dataclass(frozen=True)
class Union:
    """The solutions of each of the systems beside each other, as a bag (UNION, Or). A variable that one of them does
    not bind is unbound in its solutions."""

    branches: tuple[System, ...]


@dataclass(frozen=True)
class Aggregate:
    """A value of all solutions of a group.

    kind: ``count``, ``sum``, ``avg``, ``min``, ``max``, ``sample`` or ``group_concat``.
    expression: of what; None counts solutions (``count`` only).
    distinct: equal values count once. separator: between values (``group_concat``).
    """

    variable: Variable
    kind: str
    expression: Expression | None = None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True)
class Grouping:
    """One solution for each combination of the keys' values: the keys and the aggregates. Without keys there is always
    one, also of nothing (SPARQL 1.1, section 18.5.1)."""

    keys: tuple[Variable, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Order:
    """By what solutions are put in order (SPARQL 1.1, section 15.1)."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Slice:
    """Some of the solutions that hold at an instant: those from `offset` on, `limit` of them, in the order given; what
    it leaves equal is ordered by its text, so that the choice is always the same. keys: so many for each combination of
    their values."""

    order: tuple[Order, ...] = ()
    offset: int = 0
    limit: int | None = None
    keys: tuple[Variable, ...] = ()
