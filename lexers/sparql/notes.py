"""Checks of the notes to SPARQL's grammar: scope, aggregates, blank nodes.

Source: SPARQL 1.1 Query, sections 10.1, 11.4, 18.2.1, 19.6 and the notes of 19.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from squall import functions
from squall.errors import LexerError, Origin
from squall.lexers.sparql import tree as q
from squall.model import Variable
from squall.rdf import iri_text, is_blank, is_iri


def note_errors(program: q.Program) -> list[LexerError]:
    """Returns the errors of a program that matches the grammar, in the order in which they are detected."""
    notes = _Notes()
    for statement in program.statements:
        notes.statement(statement.body)
    return notes.errors


class _Notes:
    def __init__(self) -> None:
        self.errors: list[LexerError] = []
        self.data: dict[str, int] = {}
        self.number = 0
        self.blocks: dict[str, int] = {}
        self.block = 0

    def fail(self, message: str, origin: Origin | None, hint: str | None = None) -> None:
        self.errors.append(LexerError(message, origin, hint))

    def statement(self, body: q.Query | q.Operation) -> None:
        self.number += 1
        self.blocks = {}
        match body:
            case q.InsertData(quads=quads):
                self._check_data(quads)
                self._check_blank_scope(quads)
            case q.DeleteData(quads=quads):
                self._check_data(quads)
                self._check_delete_blanks(quads)
            case q.Modify(delete=delete, where=where):
                self._check_delete_blanks(delete)
                self.group(where)
            case q.SelectQuery() | q.ConstructQuery() | q.AskQuery() | q.DescribeQuery():
                self.query(body)
            case q.Load() | q.Manage() | q.Transfer():
                pass

    # Updates (notes 8 and 9, and section 19.6)

    def _check_data(self, quads: Iterable[q.QuadPattern]) -> None:
        for quad in quads:
            for slot in (quad.subject, quad.predicate, quad.object, quad.graph):
                if isinstance(slot, Variable):
                    hint = "use `INSERT { ... } WHERE { ... }` or `DELETE { ... } WHERE { ... }`"
                    self.fail(f"the variable `{slot}` cannot be in data", quad.origin, hint)

    def _check_delete_blanks(self, quads: Iterable[q.QuadPattern]) -> None:
        for quad in quads:
            if any(isinstance(slot, str) and is_blank(slot) for slot in (quad.subject, quad.object)):
                self.fail("a blank node cannot be in what is deleted", quad.origin, "use a variable and `WHERE`")

    def _check_blank_scope(self, quads: Iterable[q.QuadPattern]) -> None:
        for quad in quads:
            for slot in (quad.subject, quad.object):
                if isinstance(slot, str) and is_blank(slot) and self.data.setdefault(slot, self.number) != self.number:
                    hint = "each has blank nodes of its own; write one `INSERT DATA`, or give them other labels"
                    self.fail(f"the blank node `{slot}` is in two operations", quad.origin, hint)

    # Queries

    def query(self, query: q.Query) -> None:
        if query.where is not None:
            self.group(query.where)
        self._modifiers(query)
        if isinstance(query, q.SelectQuery):
            self._items(query)

    def _modifiers(self, query: q.Query) -> None:
        bound = set() if query.where is None else set(q.in_scope(query.where))
        for condition in query.modifiers.group:
            self.expression(condition.expression, aggregates=False)
            if condition.variable in bound:
                self._bound(condition.variable, condition.origin)
        for expression in (*query.modifiers.having, *(order.expression for order in query.modifiers.order)):
            self.expression(expression)
        for clause in query.modifiers.aggregates:
            self._clause(clause, bound)

    def _clause(self, clause: q.AggregateClause, bound: set[Variable]) -> None:
        for addition in clause.additions:
            self.expression(addition.aggregate)
            if addition.variable in bound:
                self._bound(addition.variable, addition.origin)
        for filter in clause.filters:
            self.expression(filter.expression, aggregates=False)

    def _items(self, query: q.SelectQuery) -> None:
        keys = _keys(query)
        if query.items is None:
            if keys is not None:
                hint = "name the variables that the query is grouped by, and aggregates"
                self.fail("`SELECT *` cannot be grouped", query.origin, hint)
            return
        bound, introduced = set(q.in_scope(query.where)), set[Variable]()
        for item in query.items:
            if item.expression is not None:
                self.expression(item.expression)
                if item.variable in bound:
                    self._bound(item.variable, item.origin)
                elif item.variable in introduced:
                    self.fail(f"`{item.variable}` is selected twice", item.origin, "use another name after `AS`")
            if keys is not None:
                self._grouped(item, keys)
                keys.add(item.variable)
            introduced.add(item.variable)

    def _grouped(self, item: q.SelectItem, keys: set[Variable]) -> None:
        of = item.variable if item.expression is None else item.expression
        for variable in dict.fromkeys(_outside(of)):
            if variable not in keys:
                hint = f"add it to `GROUP BY`, or write an aggregate such as `SAMPLE({variable})`"
                message = f"`{variable}` is neither in an aggregate nor what the query is grouped by"
                self.fail(message, item.origin, hint)

    def _bound(self, variable: Variable | None, origin: Origin | None) -> None:
        self.fail(f"`{variable}` is bound already", origin, "use another name after `AS`")

    # Patterns

    def group(self, group: q.Group) -> None:
        self.block += 1
        block = self.block
        bound = set[Variable]()
        for element in group.elements:
            if isinstance(element, q.TriplesBlock):
                self._labels(element, block)
            elif not isinstance(element, q.Filter):
                self.block += 1
                block = self.block
            if isinstance(element, q.Bind) and element.variable in bound:
                self._bound(element.variable, element.origin)
            self._element(element)
            bound.update(q.in_scope(element))

    def _labels(self, block: q.TriplesBlock, number: int) -> None:
        """Checks that the label of a blank node is in one basic graph pattern only. Filters do not divide one (section
        19.6).
        """
        for triple in block.triples:
            for name in _labels(triple):
                if self.blocks.setdefault(name, number) != number:
                    hint = f"use a variable: `?{name[2:]}`"
                    self.fail(f"the blank node `{name}` is in two groups of triples", triple.origin, hint)

    def _element(self, element: q.Element) -> None:
        match element:
            case q.Filter(expression=expression) | q.Bind(expression=expression):
                self.expression(expression, aggregates=False)
            case q.Union(branches=branches):
                for branch in branches:
                    self.group(branch)
            case q.Group():
                self.group(element)
            case q.SubSelect(query=query):
                self.query(query)
            case q.TriplesBlock() | q.Values() | q.Match():
                pass
            case q.TimePattern():
                self._time_pattern(element)
            case _:
                self.group(element.group)

    def _time_pattern(self, pattern: q.TimePattern) -> None:
        for group in pattern.groups():
            self.group(group)
        for conjunct in pattern.chains:
            for step in conjunct.chain.occurrences:
                if step.when is not None:
                    self.expression(step.when, aggregates=False)

    # Expressions

    def expression(self, expression: q.Expression, aggregates: bool = True, inside: bool = False) -> None:
        match expression:
            case q.Aggregate(origin=origin):
                if inside:
                    self.fail("an aggregate cannot be in another one", origin, "use a sub-query for the inner one")
                elif not aggregates:
                    hint = "use it in `SELECT`, `HAVING` or `ORDER BY`, or in a sub-query"
                    self.fail(f"the aggregate `{expression.kind}` cannot be here", origin, hint)
                for argument in expression.arguments:
                    self.expression(argument, aggregates, inside=True)
            case q.Call(arguments=arguments):
                for argument in arguments:
                    self.expression(argument, aggregates, inside)
            case q.Exists(group=group) | q.NotExists(group=group):
                self.group(group)
            case q.Timestamp(within=q.Group() as within):
                self.group(within)
            case _:
                pass


def _labels(triple: q.TriplePattern) -> list[str]:
    slots = (triple.subject, triple.object)
    return [slot.name for slot in slots if isinstance(slot, Variable) and q.is_unnamed(slot)]


def _keys(query: q.SelectQuery) -> set[Variable] | None:
    """Returns the grouping keys of a query, or None if it has no groups."""
    modifiers = query.modifiers
    item_expressions = [item.expression for item in query.items or () if item.expression is not None]
    order_expressions = [order.expression for order in modifiers.order]
    if not modifiers.group and not any(map(_aggregated, [*item_expressions, *modifiers.having, *order_expressions])):
        return None
    group_variables = [condition.variable for condition in modifiers.group if condition.variable is not None]
    return {
        *group_variables,
        *(
            group_condition.expression
            for group_condition in modifiers.group
            if isinstance(group_condition.expression, Variable)
        ),
    }


def _aggregated(expression: q.Expression) -> bool:
    match expression:
        case q.Aggregate():
            return True
        case q.Call(arguments=arguments):
            return any(map(_aggregated, arguments))
        case _:
            return False


def _outside(expression: q.Expression) -> Iterator[Variable]:
    """Yields the variables of an expression outside of its aggregates and patterns.

    A function that does not exist may be a misspelt aggregate.
    """
    match expression:
        case Variable():
            yield expression
        case q.Call(function=function) if is_iri(function) and not functions.exists(iri_text(function)):
            return
        case q.Call(arguments=arguments):
            for argument in arguments:
                yield from _outside(argument)
        case _:
            return
