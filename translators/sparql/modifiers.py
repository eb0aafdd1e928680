"""Solution modifiers: groups and aggregates, HAVING, computed columns, DISTINCT, order and slice, sub-queries.

Source: SPARQL 1.1 Query, sections 15, 18.2.4 and 18.2.5; for AGGREGATE, Barbieri et al. (2010), section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from squall.lexers.sparql import tree as q
from squall.model import Aggregate, Bind, Expression, Grouping, NotExists, Order, Select, Slice, System, Union, Variable
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
        body, slice = self.solutions(query, reads.alone)
        if slice is not None and slice.limit is None and not slice.offset:
            slice = None  # an order alone chooses nothing
        return replace(self.select(query, body), slice=slice, origin=query.origin)

    def select(self, query: q.SelectQuery, body: Body) -> System:
        """The solutions of a query as far as they are shown."""
        selected = (*q.shown(query), *body.reads.place)
        return replace(body.system([Select(selected)]), distinct=query.quantifier == "DISTINCT")

    def solutions(self, query: q.Query, reads: Reads) -> Solutions:
        """What a query binds: by its pattern, its groups, what it computes (section 18.2.4)."""
        body = Body(reads) if query.where is None else self.body(query.where, reads)
        for clause in query.modifiers.aggregates:
            self._add(clause, body)
        columns = _Columns(self, body)
        items = [columns.item(item) for item in _items(query)]
        having = [columns.out(condition) for condition in query.modifiers.having]
        order = [
            replace(condition, expression=columns.out(condition.expression)) for condition in query.modifiers.order
        ]
        if columns.made or query.modifiers.group:
            body = self._grouped(query.modifiers.group, columns.made, body)
        for condition in having:
            self.expressions.filter(condition, body)
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
        for order_key in order:
            self.check_bound(order_key.expression, order_key.origin, body)
        by = tuple(Order(self.untimed(order_key.expression, body), order_key.descending) for order_key in order)
        return Slice(by, modifiers.offset or 0, modifiers.limit, body.reads.place)

    def untimed(self, expression: q.Expression, body: Body) -> Expression:
        """The value of an expression that may not ask for the instant itself."""
        return self.expressions.untimed(self.expressions.value(expression, body), body)

    # Groups

    def _grouped(self, conditions: Sequence[q.GroupCondition], aggregates: Sequence[Aggregate], body: Body) -> Body:
        keys = tuple(self._key(condition, body) for condition in conditions)
        place = body.reads.place
        part = replace(body.system(), grouping=Grouping((*keys, *place), tuple(aggregates)))
        ways = [Body(body.reads, [part])]
        if place and not keys:
            ways.append(_of_nothing(body, aggregates))
        return ways[0] if len(ways) == 1 else Body(body.reads, [Union(tuple(way.system() for way in ways))])

    def _key(self, condition: q.GroupCondition, body: Body) -> Variable:
        """The variable of what solutions are grouped by."""
        self.check_bound(condition.expression, condition.origin, body)
        if condition.variable is None and isinstance(condition.expression, Variable):
            return condition.expression
        variable = condition.variable or self.state.fresh("key")
        body.add(self.bind(variable, condition.expression, body))
        return variable

    def aggregate(self, variable: Variable, parsed: q.Aggregate, body: Body) -> Aggregate:
        """An aggregate of the body's solutions under a name."""
        kind = parsed.kind.lower()
        if parsed.expression is not None:
            self.check_bound(parsed.expression, parsed.origin, body)
            expression: Expression | None = self.untimed(parsed.expression, body)
        else:
            expression = calls.solution(body.solution) if parsed.distinct else None
        separator = " " if parsed.separator is None else parsed.separator
        return Aggregate(variable, kind, expression, parsed.distinct, separator)

    def _add(self, clause: q.AggregateClause, body: Body) -> None:
        """C-SPARQL's AGGREGATE: columns beside the solutions, and tests of them."""
        for addition in clause.additions:
            inner = Body(body.reads, [body.system()])
            aggregate = self.aggregate(addition.variable, addition.aggregate, inner)
            part = replace(inner.system(), grouping=Grouping((*addition.keys, *body.reads.place), (aggregate,)))
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
                variable = self.names.get(expression)
                return variable or self._name(expression, self.modifiers.state.fresh("aggregate"))
            case q.Call(arguments=arguments):
                return replace(expression, arguments=tuple(map(self.out, arguments)))
            case _:
                return expression

    def _name(self, parsed: q.Aggregate, variable: Variable) -> Variable:
        self.names[parsed] = variable
        self.made.append(self.modifiers.aggregate(variable, parsed, self.body))
        return variable


def _of_nothing(body: Body, aggregates: Sequence[Aggregate]) -> Body:
    """The aggregates of each graph in which a body has no solutions (section 18.5.1)."""
    result = Body(body.reads)
    result.ground()
    result.add(NotExists((body.system(),)))
    result.add(
        *(
            Bind(aggregate.variable, OF_NOTHING[aggregate.kind])
            for aggregate in aggregates
            if aggregate.kind in OF_NOTHING
        )
    )
    return result


_ZERO = literal("0", XSD + "integer")
OF_NOTHING = {"count": _ZERO, "sum": _ZERO, "avg": _ZERO, "group_concat": literal("")}
"""The aggregates that have a value of nothing."""


def _items(query: q.Query) -> Sequence[q.SelectItem]:
    return (query.items or ()) if isinstance(query, q.SelectQuery) else ()
