"""Solution modifiers: groups and aggregates, HAVING, computed columns, DISTINCT, order and slice, sub-queries.

Source: SPARQL 1.1 Query, sections 15, 18.2.4 and 18.2.5; for AGGREGATE, Barbieri et al. (2010), section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from squall.lexers.sparql import tree as q
from squall.model import (
    Aggregate,
    Bind,
    Expression,
    Grouping,
    Order,
    Select,
    Slice,
    System,
    Union,
    Variable,
    Without,
)
from squall.rdf import XSD, literal
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import Reads
from squall.translators.sparql.patterns import Patterns, values


class Solutions(NamedTuple):
    """All that a query binds, and which of its solutions are chosen."""

    body: Body
    slice: Slice | None


class Modifiers(Patterns):
    """Translates what is done to the solutions of a query's pattern."""

    def sub_select(self, query: q.SelectQuery, reads: Reads) -> System:
        body, chosen = self.solutions(query, reads.alone)
        if chosen is not None and chosen.limit is None and not chosen.offset:
            chosen = None  # an order alone chooses nothing
        return replace(self.select(query, body), slice=chosen, origin=query.origin)

    def select(self, query: q.SelectQuery, body: Body) -> System:
        """The solutions of a query as far as they are shown."""
        seen = (*q.shown(query), *body.reads.place)
        return replace(body.system([Select(seen)]), distinct=query.quantifier == "DISTINCT")

    def solutions(self, query: q.Query, reads: Reads) -> Solutions:
        """What a query binds: by its pattern, its groups, what it computes (section 18.2.4)."""
        body = Body(reads) if query.where is None else self.body(query.where, reads)
        for clause in query.modifiers.aggregates:
            self._add(clause, body)
        columns = _Columns(self, body)
        items = [columns.item(item) for item in _items(query)]
        having = [columns.out(one) for one in query.modifiers.having]
        order = [replace(one, expression=columns.out(one.expression)) for one in query.modifiers.order]
        if columns.made or query.modifiers.group:
            body = self._grouped(query.modifiers.group, columns.made, body)
        for one in having:
            self.expressions.filter(one, body)
        if query.values is not None:
            body.join(values(query.values))
        for item in items:
            if item.expression is not None:
                self.check_bound(item.expression, item.origin, body)
                body.add(self.bind(item.variable, item.expression, body))
        return Solutions(body, self._slice(order, query.modifiers, body))

    def _slice(self, order: Sequence[q.OrderCondition], modifiers: q.Modifiers, body: Body) -> Slice | None:
        if not order and modifiers.limit is None and not modifiers.offset:
            return None
        for one in order:
            self.check_bound(one.expression, one.origin, body)
        by = tuple(Order(self.untimed(one.expression, body), one.descending) for one in order)
        return Slice(by, modifiers.offset or 0, modifiers.limit, body.reads.place)

    def untimed(self, expression: q.Expression, body: Body) -> Expression:
        """The value of an expression that may not ask for the instant itself."""
        return self.expressions.untimed(self.expressions.value(expression, body), body)

    # Groups

    def _grouped(self, conditions: Sequence[q.GroupCondition], made: Sequence[Aggregate], body: Body) -> Body:
        keys = tuple(self._key(condition, body) for condition in conditions)
        place = body.reads.place
        part = replace(body.system(), grouping=Grouping((*keys, *place), tuple(made)))
        ways = [Body(body.reads, [part])]
        if place and not keys:
            ways.append(_of_nothing(body, made))
        return ways[0] if len(ways) == 1 else Body(body.reads, [Union(tuple(way.system() for way in ways))])

    def _key(self, condition: q.GroupCondition, body: Body) -> Variable:
        """The variable of what solutions are grouped by."""
        self.check_bound(condition.expression, condition.origin, body)
        if condition.variable is None and isinstance(condition.expression, Variable):
            return condition.expression
        variable = condition.variable or self.state.fresh("key")
        body.add(self.bind(variable, condition.expression, body))
        return variable

    def aggregate(self, variable: Variable, written: q.Aggregate, body: Body) -> Aggregate:
        """An aggregate of the body's solutions under a name."""
        kind = written.kind.lower()
        if written.expression is not None:
            self.check_bound(written.expression, written.origin, body)
            expression: Expression | None = self.untimed(written.expression, body)
        else:
            expression = calls.solution(body.solution) if written.distinct else None
        separator = " " if written.separator is None else written.separator
        return Aggregate(variable, kind, expression, written.distinct, separator)

    def _add(self, clause: q.AggregateClause, body: Body) -> None:
        """C-SPARQL's AGGREGATE: columns beside the solutions, and tests of them."""
        for addition in clause.additions:
            inner = Body(body.reads, [body.system()])
            made = self.aggregate(addition.variable, addition.aggregate, inner)
            part = replace(inner.system(), grouping=Grouping((*addition.keys, *body.reads.place), (made,)))
            body.join(part)
        for filter in clause.filters:
            self.expressions.filter(filter.expression, body)


class _Columns:
    """Takes the aggregates out of a query's expressions: variables stand for their values.

    made: each aggregate once.
    """

    def __init__(self, modifiers: Modifiers, body: Body) -> None:
        self.modifiers = modifiers
        self.body = body
        self.made: list[Aggregate] = []
        self.names: dict[q.Aggregate, Variable] = {}

    def item(self, item: q.SelectItem) -> q.SelectItem:
        """A column of the query. One that shows an aggregate itself is the variable of that."""
        if isinstance(item.expression, q.Aggregate) and item.expression not in self.names:
            self._name(item.expression, item.variable)
            return replace(item, expression=None)
        return item if item.expression is None else replace(item, expression=self.out(item.expression))

    def out(self, expression: q.Expression) -> q.Expression:
        """The expression over groups."""
        match expression:
            case q.Aggregate():
                known = self.names.get(expression)
                return known or self._name(expression, self.modifiers.state.fresh("aggregate"))
            case q.Call(arguments=arguments):
                return replace(expression, arguments=tuple(map(self.out, arguments)))
            case _:
                return expression

    def _name(self, written: q.Aggregate, variable: Variable) -> Variable:
        self.names[written] = variable
        self.made.append(self.modifiers.aggregate(variable, written, self.body))
        return variable


def _of_nothing(body: Body, made: Sequence[Aggregate]) -> Body:
    """The aggregates of each graph in which a body has no solutions (section 18.5.1)."""
    found = Body(body.reads)
    found.ground()
    found.add(Without((body.system(),)))
    found.add(*(Bind(one.variable, OF_NOTHING[one.kind]) for one in made if one.kind in OF_NOTHING))
    return found


_ZERO = literal("0", XSD + "integer")
OF_NOTHING = {"count": _ZERO, "sum": _ZERO, "avg": _ZERO, "group_concat": literal("")}
"""The aggregates that have a value of nothing."""


def _items(query: q.Query) -> Sequence[q.SelectItem]:
    return (query.items or ()) if isinstance(query, q.SelectQuery) else ()
