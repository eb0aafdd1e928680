"""Solution modifiers: GROUP BY and aggregates, HAVING, SELECT expressions, DISTINCT, ORDER BY, LIMIT, and subqueries.

Sources: SPARQL 1.1 Query, sections 15, 18.2.4 and 18.2.5; for AGGREGATE, Barbieri et al. (2010), section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from squall import functions
from squall.lexers.sparql import tree as q
from squall.model import Aggregate, Bind, Expression, Grouping, NotExists, Order, Select, Slice, System, Union, Variable
from squall.rdf import XSD, iri_text, is_iri, literal
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ActiveDataset
from squall.translators.sparql.patterns import Patterns, values


class Solutions(NamedTuple):
    """All bindings of a query, and the slice of its solutions."""

    body: Body
    slice: Slice | None


_ANY_MATCH = q.GroupCondition(literal("true", XSD + "boolean"))
"""The key of aggregates over all matches of a pattern over time. A match is an event: there is no row of aggregates
at an instant at which none ends, and none before the first event."""


class Modifiers(Patterns):
    """Translates the solution modifiers of a query."""

    def sub_select(self, query: q.SelectQuery, reads: ActiveDataset) -> System:
        body, slice = self.solutions(query, reads.uncorrelated)
        if slice is not None and slice.limit is None and not slice.offset:
            slice = None  # an order alone chooses nothing
        return replace(self.select(query, body), slice=slice, origin=query.origin)

    def select(self, query: q.SelectQuery, body: Body) -> System:
        """Returns the solutions of a query, projected to its columns."""
        selected = (*q.shown(query), *body.reads.graph_key)
        return replace(body.system([Select(selected)]), distinct=query.quantifier == "DISTINCT")

    def solutions(self, query: q.Query, reads: ActiveDataset) -> Solutions:
        """Returns the bindings of a query: by its pattern, its groups and its expressions (section 18.2.4)."""
        body = Body(reads) if query.where is None else self.body(query.where, reads)
        for clause in query.modifiers.aggregates:
            self._add(clause, body)
        columns = _AggregateColumns(self, body)
        items = [columns.item(item) for item in _items(query)]
        having = [columns.out(condition) for condition in query.modifiers.having]
        order = [
            replace(condition, expression=columns.out(condition.expression)) for condition in query.modifiers.order
        ]
        if columns.aggregates or query.modifiers.group:
            keys = tuple(self._key(condition, body) for condition in query.modifiers.group)
            if not keys and q.time_patterns(query):
                keys = (self._key(_ANY_MATCH, body),)
            body = self._grouped(keys, columns.aggregates, body)
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
        return Slice(by, modifiers.offset or 0, modifiers.limit, body.reads.graph_key)

    def untimed(self, expression: q.Expression, body: Body) -> Expression:
        """Returns the value of an expression, with the evaluation time bound before it."""
        return self.expressions.untimed(self.expressions.value(expression, body), body)

    # Groups

    def _grouped(self, keys: tuple[Variable, ...], aggregates: Sequence[Aggregate], body: Body) -> Body:
        place = body.reads.graph_key
        part = replace(body.system(), grouping=Grouping((*keys, *place), tuple(aggregates)))
        branches = [Body(body.reads, [part])]
        if place and not keys:
            branches.append(_empty_groups(body, aggregates))
        return (
            branches[0]
            if len(branches) == 1
            else Body(body.reads, [Union(tuple(branch.system() for branch in branches))])
        )

    def _key(self, condition: q.GroupCondition, body: Body) -> Variable:
        """Returns the variable of a grouping key."""
        self.check_bound(condition.expression, condition.origin, body)
        if condition.variable is None and isinstance(condition.expression, Variable):
            return condition.expression
        variable = condition.variable or self.state.fresh("key")
        body.add(self.bind(variable, condition.expression, body))
        return variable

    def aggregate(self, variable: Variable, parsed: q.Aggregate, body: Body) -> Aggregate:
        """Returns an aggregate of the body's solutions under a name."""
        kind = iri_text(parsed.kind) if is_iri(parsed.kind) else parsed.kind.lower()
        function = functions.lookup_aggregate(kind)
        if parsed.expression is not None or function.solutions is None:
            self.expressions.check_arity(parsed.kind, function, len(parsed.arguments), parsed.origin)
        for argument in parsed.arguments:
            self.check_bound(argument, parsed.origin, body)
        arguments = [self.untimed(argument, body) for argument in parsed.arguments]
        expression = calls.aggregated(function, arguments)
        if expression is None and parsed.distinct:
            expression = calls.solution(body.solution)
        separator = " " if parsed.separator is None else parsed.separator
        return Aggregate(variable, kind, expression, parsed.distinct, separator)

    def _add(self, clause: q.AggregateClause, body: Body) -> None:
        """Adds C-SPARQL's AGGREGATE clause: columns beside the solutions, and filters of them."""
        for addition in clause.additions:
            inner = Body(body.reads, [body.system()])
            aggregate = self.aggregate(addition.variable, addition.aggregate, inner)
            part = replace(inner.system(), grouping=Grouping((*addition.keys, *body.reads.graph_key), (aggregate,)))
            body.join(part)
        for filter in clause.filters:
            self.expressions.filter(filter.expression, body)


class _AggregateColumns:
    """Extracts the aggregates from a query's expressions, and replaces them by variables.

    Attributes:
        aggregates: The aggregates, each once.
    """

    def __init__(self, modifiers: Modifiers, body: Body) -> None:
        self.modifiers = modifiers
        self.body = body
        self.aggregates: list[Aggregate] = []
        self.names: dict[q.Aggregate, Variable] = {}

    def item(self, item: q.SelectItem) -> q.SelectItem:
        """Returns a column of the query. A column that is an aggregate is the variable of that aggregate."""
        if isinstance(item.expression, q.Aggregate) and item.expression not in self.names:
            self._name(item.expression, item.variable)
            return replace(item, expression=None)
        return item if item.expression is None else replace(item, expression=self.out(item.expression))

    def out(self, expression: q.Expression) -> q.Expression:
        """Returns the expression over groups."""
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
        self.aggregates.append(self.modifiers.aggregate(variable, parsed, self.body))
        return variable


def _empty_groups(body: Body, aggregates: Sequence[Aggregate]) -> Body:
    """Returns the aggregates of each graph in which a body has no solutions (section 18.5.1)."""
    result = Body(body.reads)
    result.bind_graph()
    result.add(NotExists((body.system(),)))
    empty_values = {
        aggregate.variable: functions.lookup_aggregate(aggregate.kind).accumulator().value() for aggregate in aggregates
    }
    result.add(*(Bind(variable, value) for variable, value in empty_values.items() if value is not None))
    return result


def _items(query: q.Query) -> Sequence[q.SelectItem]:
    return (query.items or ()) if isinstance(query, q.SelectQuery) else ()
