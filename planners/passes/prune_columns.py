"""Columns that nothing reads later are not kept: rows, and the memories that hold them, get narrower.

A projection of a set may have a row several times. So no column is dropped below a `Distinct` where it is seen later
how often a row comes (see `squall.planners.passes.multiplicity`); elsewhere the set is one of less, and shorter, rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import (
    AntiJoin,
    ColumnMap,
    ConstantFilter,
    Construct,
    DerivedStream,
    Distinct,
    Expression,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Match,
    Operator,
    Project,
    Scan,
    Select,
    Sink,
    Slice,
    TableFunction,
    TransitiveClosure,
    Union,
    Unit,
    Update,
    columns_of,
    is_time_dependent,
    remap_call,
    remap_columns,
)
from squall.planners.passes.multiplicity import counted
from squall.planners.passes.rewrite import Rewrite


def drop_columns(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """The plan without the columns that nothing reads."""
    return _Narrowing(plan).result()


@dataclass(frozen=True)
class Rows:
    """An old node in the new plan: the node that has its rows, how many columns that has, and at which of these places
    the old columns are that are read (None: it is unbound in all rows, and no column holds it)."""

    node: str
    width: int
    places: ColumnMap

    def at(self, column: int) -> int:
        """The place of a column that is not unbound."""
        place = self.places[column]
        assert place is not None
        return place


class _Narrowing(Rewrite):
    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.counted = counted(plan)
        self.read: dict[str, set[int]] = {node.id: set() for node in plan.nodes}
        """The columns of each old node that are read behind it."""
        self.rows: dict[str, Rows] = {}
        self.wants: dict[str, list[Iterable[int]]] = {}
        """The columns that each old node reads of each input."""
        again = {edge.node for node in plan.nodes for edge in node.inputs if edge.feedback}
        self.read.update((id, {*range(plan.widths[id])}) for id in again)
        for node in reversed(plan.nodes):
            wants = self.wants[node.id] = self.wanted(node)
            for edge, columns in zip(node.inputs, wants, strict=True):
                self.read[edge.node].update(columns)
        for node in plan.nodes:
            self.rows[node.id] = self.narrowed(node)

    def wanted(self, node: Node) -> list[Iterable[int]]:
        """The columns that a node reads of each input, since they decide about its rows or are read behind it. Facts
        that are read again are read as a whole."""
        read = self.read[node.id]
        widths = [self.plan.widths[edge.node] for edge in node.inputs]
        match node.op:
            case Join(on=on, keep=keep) | LeftJoin(on=on, keep=keep):
                needed_columns = {keep[column] for column in read | _in_condition(node.op)}
                left = {column for column in needed_columns if column < widths[0]}.union(pair[0] for pair in on)
                return [left, {column - widths[0] for column in needed_columns - left}.union(pair[1] for pair in on)]
            case AntiJoin(on=on):
                return [read.union(left for left, _ in on), {right for _, right in on}]
            case ConstantFilter() | Filter() | Extend() | TableFunction() if not is_time_dependent(node.op):
                return [{column for column in read if column < widths[0]} | _computed(node.op)]
            case Project(columns=columns):
                return [{place for column in read if (place := columns[column]) is not None}]
            case Union():
                return [read for _ in widths]
            case Distinct() if self.narrows(node):
                return [read for _ in widths]
            case Group(keys=keys):
                return [{*keys, *_computed(node.op)}]
            case Construct(template=cells):
                return [{cell for cell in cells if isinstance(cell, int)}]
            case Select(columns=columns):
                return [{*columns, *_computed(node.op)}]
            case _:
                return [range(width) for width in widths]

    def narrows(self, node: Node) -> bool:
        """Whether a set may have less columns: nobody counts its rows, and it has nothing but what tells them apart."""
        assert isinstance(node.op, Distinct)
        return node.id not in self.counted and self.plan.widths[node.id] == node.op.by

    def narrowed(self, node: Node) -> Rows:
        """The old node in the new plan."""
        read = sorted(self.read[node.id])
        match node.op:
            case Match():
                return self.matched(node, node.op, read)
            case Join() | LeftJoin():
                return self.joined(node, node.op, read)
            case AntiJoin(on=on):
                left, right = self.only(node, 0), self.only(node, 1)
                on = tuple((left.at(left_column), right.at(right_column)) for left_column, right_column in on)
                return replace(left, node=self.put(node, AntiJoin(on), left.node, right.node))
            case ConstantFilter() | Filter() | Extend() | TableFunction():
                rows = self.only(node, 0) if is_time_dependent(node.op) else self.rows[node.inputs[0].node]
                return self.computed(node, node.op, rows)
            case Project(columns=columns):
                rows = self.rows[node.inputs[0].node]
                return replace(rows, places={column: _through(columns[column], rows.places) for column in read})
            case Union():
                return self.exactly(node, node.op, read)
            case Distinct() if self.narrows(node):
                return self.exactly(node, Distinct(len(read)), read)
            case Group() | Construct() | Select():
                rows = self.only(node, 0) if self.lacks(node) else self.rows[node.inputs[0].node]
                return self.whole(node, _over(node.op, rows.places), rows.node)
            case Scan() | Unit() | Slice() | TransitiveClosure() | Distinct() | Update() | DerivedStream() | Sink():
                inputs = [self.exact(edge.node, range(self.plan.widths[edge.node])) for edge in node.inputs]
                return self.whole(node, node.op, *inputs)

    def matched(self, node: Node, op: Match, read: Sequence[int]) -> Rows:
        """A `Match` that leaves the cells of other columns aside; one that is repeated compares cells, and stays."""
        numbers = [cell for cell in op.cells if isinstance(cell, int)]
        kept_columns = [column for column in sorted(set(numbers)) if column in read or numbers.count(column) > 1]
        cells = tuple(
            cell if not isinstance(cell, int) else kept_columns.index(cell) if cell in kept_columns else None
            for cell in op.cells
        )
        return _laid(self.put(node, Match(cells), *self.inputs(node)), kept_columns)

    def joined(self, node: Node, op: Join | LeftJoin, read: Sequence[int]) -> Rows:
        left, right = self.only(node, 0), self.only(node, 1)
        width = self.plan.widths[node.inputs[0].node]
        out = sorted({*read, *_in_condition(op)})
        sides = ((op.keep[column], column) for column in out)
        keep = tuple(
            left.at(position) if position < width else left.width + right.at(position - width) for position, _ in sides
        )
        on = tuple((left.at(position), right.at(other)) for position, other in op.on)
        places = {column: place for place, column in enumerate(out)}
        if isinstance(op, Join):
            return _laid(self.put(node, Join(on, keep), left.node, right.node), out)
        condition = op.condition and remap_call(op.condition, places)
        return _laid(self.put(node, LeftJoin(on, keep, condition), left.node, right.node), out)

    def computed(self, node: Node, op: ConstantFilter | Filter | Extend | TableFunction, rows: Rows) -> Rows:
        first = self.plan.widths[node.inputs[0].node]
        result_columns = range(self.plan.widths[node.id] - first)
        places = {**rows.places, **{first + number: rows.width + number for number in result_columns}}
        match op:
            case ConstantFilter(column=column):
                place = rows.places[column]
                assert place is not None, "what is unbound in all rows is no term"
                new: Operator = op if place == column else replace(op, column=place)
            case Filter(expression=test):
                new = replace(op, expression=remap_call(test, rows.places))
            case Extend(expression=value):
                new = replace(op, expression=remap_columns(value, rows.places))
            case TableFunction(arguments=arguments):
                new = replace(op, arguments=tuple(remap_columns(argument, rows.places) for argument in arguments))
        return Rows(self.put(node, new, rows.node), rows.width + len(result_columns), places)

    def exactly(self, node: Node, op: Operator, read: Sequence[int]) -> Rows:
        """The node over inputs that have just these columns."""
        return _laid(self.put(node, op, *(self.exact(edge.node, read) for edge in node.inputs)), read)

    def whole(self, node: Node, op: Operator, *inputs: str) -> Rows:
        """A node whose own columns are what they were."""
        return _laid(self.put(node, op, *inputs), range(self.plan.widths[node.id]))

    def only(self, node: Node, port: int) -> Rows:
        """An input without columns that the node does not want."""
        input, columns = node.inputs[port].node, sorted(set(self.wants[node.id][port]))
        rows = self.rows[input]
        if {rows.places[column] for column in columns} == set(range(rows.width)):
            return rows
        return _laid(self.exact(input, columns), columns)

    def exact(self, input: str, columns: Sequence[int]) -> str:
        """The node with just these columns of an old node."""
        rows = self.rows[input]
        places = tuple(rows.places[column] for column in columns)
        return rows.node if places == tuple(range(rows.width)) else self.add(Project(places), rows.node)

    def lacks(self, node: Node) -> bool:
        """Whether the node reads a column that is unbound in all rows, so that no column holds it."""
        places = self.rows[node.inputs[0].node].places
        return any(places[column] is None for column in self.wants[node.id][0])


def _through(column: int | None, places: ColumnMap) -> int | None:
    return None if column is None else places[column]


def _laid(node: str, columns: Sequence[int]) -> Rows:
    """Rows that have just these columns, in this order."""
    return Rows(node, len(columns), {column: place for place, column in enumerate(columns)})


def _in_condition(op: Join | LeftJoin) -> set[int]:
    return set() if isinstance(op, Join) or op.condition is None else set(columns_of(op.condition))


def _computed(op: Operator) -> set[int]:
    """The columns that expressions of the operator read."""
    expressions: Sequence[Expression] = ()
    match op:
        case ConstantFilter(column=column):
            return {column}
        case Filter(expression=expression) | Extend(expression=expression):
            expressions = (expression,)
        case TableFunction(arguments=arguments):
            expressions = arguments
        case Select(order=order):
            expressions = tuple(value for value, _ in order)
        case Group(aggregates=aggregates):
            expressions = tuple(aggregate.expression for aggregate in aggregates)
    return {column for expression in expressions for column in columns_of(expression)}


def _over(op: Group | Construct | Select, places: ColumnMap) -> Operator:
    """The operator over rows in which the columns are at other places."""

    def at(column: int) -> int:
        place = places[column]
        assert place is not None
        return place

    match op:
        case Group(keys=keys, aggregates=aggregates):
            remapped = tuple(
                replace(aggregate, expression=remap_columns(aggregate.expression, places)) for aggregate in aggregates
            )
            return Group(tuple(map(at, keys)), remapped)
        case Construct(template=cells):
            template = tuple([at(cell) if isinstance(cell, int) else cell for cell in cells])
            return op if template == cells else replace(op, template=template)
        case Select(columns=columns, order=order):
            by = tuple((remap_columns(value, places), falls) for value, falls in order)
            return replace(op, columns=tuple(map(at, columns)), order=by)
