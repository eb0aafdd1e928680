"""The pass `push_filters`: moves filters to the earliest node that has their columns (filter push-down).

Rows that a filter drops need not be joined, stored or looked up. A filter passes through a node only if that node feeds
nothing else, since sharing is worth more than early filtering. It goes into each side of a join that has its columns,
and into all branches of a union. A filter with a side effect (``print``) does not move, and filters above it stay above
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from squall import functions
from squall.functions.sparql.names import test_iri
from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import (
    AntiJoin,
    ColumnMap,
    Distinct,
    Expression,
    Extend,
    Filter,
    Group,
    Invoke,
    Join,
    LeftJoin,
    Project,
    TableFunction,
    Union,
    columns_of,
    is_time_dependent,
    remap_call,
)
from squall.planners.passes.rewrite import Rewrite

_AND = test_iri("logical-and")


def push_filters(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan with its filters pushed down."""
    return _FilterPushDown(plan).result() if any(is_movable(node) for node in plan.nodes) else plan


class _FilterPushDown(Rewrite):
    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        for node in plan.nodes:
            if not is_movable(node):
                self.keep(node)
            elif not self.is_followed(node):
                self.new_ids[node.id] = self.push((), node.id)

    def is_followed(self, node: Node) -> bool:
        """Returns whether a filter feeds another one alone, which takes it along."""
        consumers = self.plan.consumers[node.id]
        return len(consumers) == 1 and is_movable(self.plan.by_id[consumers[0][0]])

    def push(self, filters: Sequence[Invoke], id: str) -> str:
        """Returns the rows of an old node for which all filters are true."""
        node = self.plan.by_id[id]
        while is_movable(node) and (not filters or self.is_alone(node)):
            assert isinstance(node.op, Filter)
            filters = (*filters, node.op.expression)
            node = self.plan.by_id[node.inputs[0].node]
        through = [condition for condition in filters if self.is_alone(node) and self.pushable_inputs(node, condition)]
        below = self.push_into(node, through) if through else self.new_ids[node.id]
        for condition in sorted((condition for condition in filters if condition not in through), key=repr):
            below = self.add(Filter(condition), below)
        return below

    def is_alone(self, node: Node) -> bool:
        return len(self.plan.consumers[node.id]) == 1

    def push_into(self, node: Node, filters: Sequence[Invoke]) -> str:
        """Returns the node, with filters among or below its inputs."""
        inputs = []
        for port, edge in enumerate(node.inputs):
            pushable_inputs = [self.pushable_inputs(node, condition) for condition in filters]
            inputs.append(self.push([side[port] for side in pushable_inputs if port in side], edge.node))
        return self.add(node.op, *inputs)

    def pushable_inputs(self, node: Node, condition: Invoke) -> dict[int, Invoke]:
        """Returns the inputs, by port, that can be filtered instead, with the filter over their columns."""
        width = self.plan.widths[node.inputs[0].node] if node.inputs else 0
        ports = range(len(node.inputs))
        match node.op:
            case Join():
                return (
                    _pushable(condition, _side_columns(node.op, width)) if [*columns_of(condition)] else {0: condition}
                )
            case LeftJoin(keep=keep):
                return _pushable(condition, {0: {place: column for place, column in enumerate(keep) if column < width}})
            case AntiJoin() | Extend() | TableFunction() if all(map(is_pure, node.op.expressions)):
                return _pushable(condition, {0: {column: column for column in range(width)}})
            case Union() | Distinct():
                return _pushable(condition, {port: {column: column for column in range(width)} for port in ports})
            case Project(columns=columns):
                return _pushable(condition, {0: dict(enumerate(columns))})
            case Group(keys=keys) if keys:
                return _pushable(condition, {0: dict(enumerate(keys))})
            case _:
                return {}


def _side_columns(op: Join, width: int) -> dict[int, ColumnMap]:
    """Returns the columns of a join that its left input has, and those that its right input has."""
    lefts, rights = ({pair[side]: pair[1 - side] for pair in op.on} for side in (1, 0))
    left = {place: lefts.get(column - width, column) for place, column in enumerate(op.keep)}
    right = {place: rights.get(column, column - width) for place, column in enumerate(op.keep)}
    return {
        0: {place: column for place, column in left.items() if column < width},
        1: {place: column for place, column in right.items() if column >= 0},
    }


def _pushable(condition: Invoke, inputs: Mapping[int, ColumnMap]) -> dict[int, Invoke]:
    """Returns the inputs that have all columns of the filter."""
    needed_columns = set(columns_of(condition))
    return {port: remap_call(condition, places) for port, places in inputs.items() if needed_columns <= set(places)}


def is_movable(node: Node) -> bool:
    """Returns whether a node is a filter that may be evaluated elsewhere: without effects, and not at its time."""
    return isinstance(node.op, Filter) and not is_time_dependent(node.op) and all(map(is_pure, node.op.expressions))


def is_pure(expression: Expression) -> bool:
    """Returns whether all functions that an expression calls are pure."""
    return not isinstance(expression, Invoke) or (
        functions.lookup(expression.function).pure and all(map(is_pure, expression.arguments))
    )


def conjuncts(condition: Expression) -> Iterator[Invoke]:
    """Yields the tests that are true wherever a condition is true."""
    if isinstance(condition, Invoke):
        if condition.function == _AND:
            for part in condition.arguments:
                yield from conjuncts(part)
        else:
            yield condition
