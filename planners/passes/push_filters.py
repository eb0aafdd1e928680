"""Tests at the earliest node that has their columns: what a test drops need not be joined, kept or looked up first.

A test passes through a node that feeds nothing else, since what is shared is worth more than what is dropped early. It
goes into each side of a join that has its columns, and into all branches of a union. What has an effect (``print``)
stays where it is, and what stands above it stays above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from squall import functions
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
    Operator,
    Project,
    TableFunction,
    Union,
    columns_of,
    is_time_dependent,
    remap_call,
)
from squall.planners.passes.rewrite import Rewrite


def push_tests(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """The plan with its tests pushed down."""
    return _Pushing(plan).result() if any(_moves(node) for node in plan.nodes) else plan


class _Pushing(Rewrite):
    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        for node in plan.nodes:
            if _moves(node):
                self.new[node.id] = self.place((), node.id)
            else:
                self.keep(node)

    def place(self, tests: Sequence[Invoke], id: str) -> str:
        """The rows of an old node for which all of these are true."""
        node = self.plan.by_id[id]
        while _moves(node) and (not tests or self.is_alone(node)):
            assert isinstance(node.op, Filter)
            tests = (*tests, node.op.expression)
            node = self.plan.by_id[node.inputs[0].node]
        through = [test for test in tests if self.is_alone(node) and self.sides(node, test)]
        below = self.through(node, through) if through else self.new[node.id]
        for test in sorted((test for test in tests if test not in through), key=repr):
            below = self.add(Filter(test), below)
        return below

    def is_alone(self, node: Node) -> bool:
        return len(self.plan.consumers[node.id]) == 1

    def through(self, node: Node, tests: Sequence[Invoke]) -> str:
        """The node, with tests among or below its inputs."""
        inputs = []
        for port, edge in enumerate(node.inputs):
            sides = [self.sides(node, test) for test in tests]
            inputs.append(self.place([side[port] for side in sides if port in side], edge.node))
        return self.add(node.op, *inputs)

    def sides(self, node: Node, test: Invoke) -> dict[int, Invoke]:
        """The inputs, by number, at which the test can be made instead, with the test as it is there."""
        width = self.plan.widths[node.inputs[0].node] if node.inputs else 0
        ports = range(len(node.inputs))
        match node.op:
            case Join():
                return _fitting(test, _sides(node.op, width)) if [*columns_of(test)] else {0: test}
            case LeftJoin(keep=keep):
                return _fitting(test, {0: {place: column for place, column in enumerate(keep) if column < width}})
            case AntiJoin() | Extend() | TableFunction() if _is_pure(node.op):
                return _fitting(test, {0: {column: column for column in range(width)}})
            case Union() | Distinct():
                return _fitting(test, {port: {column: column for column in range(width)} for port in ports})
            case Project(columns=columns):
                return _fitting(test, {0: dict(enumerate(columns))})
            case Group(keys=keys) if keys:
                return _fitting(test, {0: dict(enumerate(keys))})
            case _:
                return {}


def _sides(op: Join, width: int) -> dict[int, ColumnMap]:
    """The columns of a join that its left input has, and those that its right one has."""
    lefts, rights = ({pair[side]: pair[1 - side] for pair in op.on} for side in (1, 0))
    left = {place: lefts.get(column - width, column) for place, column in enumerate(op.keep)}
    right = {place: rights.get(column, column - width) for place, column in enumerate(op.keep)}
    return {
        0: {place: column for place, column in left.items() if column < width},
        1: {place: column for place, column in right.items() if column >= 0},
    }


def _fitting(test: Invoke, inputs: Mapping[int, ColumnMap]) -> dict[int, Invoke]:
    """The inputs that have all columns of the test."""
    needed_columns = set(columns_of(test))
    return {port: remap_call(test, places) for port, places in inputs.items() if needed_columns <= set(places)}


def _moves(node: Node) -> bool:
    return isinstance(node.op, Filter) and not is_time_dependent(node.op) and _is_pure(node.op)


def _is_pure(op: Operator) -> bool:
    match op:
        case Filter(expression=expression) | Extend(expression=expression):
            return _calls_pure((expression,))
        case TableFunction(function=function, arguments=arguments):
            return functions.lookup(function).pure and _calls_pure(arguments)
        case _:
            return True


def _calls_pure(expressions: Sequence[Expression]) -> bool:
    return all(
        functions.lookup(expression.function).pure and _calls_pure(expression.arguments)
        for expression in expressions
        if isinstance(expression, Invoke)
    )
