"""The pass `bind_left_joins`: a left join becomes a join where rows with unbound columns are dropped behind it (outer
join elimination).

``OPTIONAL { ?a :age ?n } FILTER(?n > 17)`` drops each row without an age. A join makes none, and retracts none when an
age comes. So do patterns that only a template reads, which has no triple for a row with an unbound variable.

Source: Galindo-Legaria and Rosenthal, "Outerjoin simplification and reordering for query optimization" (TODS 22(1),
1997).
"""

from __future__ import annotations

from collections.abc import Iterator

from squall import functions
from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import (
    AntiJoin,
    Column,
    ConstantFilter,
    Construct,
    Distinct,
    Expression,
    Filter,
    Join,
    LeftJoin,
    Project,
    Union,
)
from squall.planners.passes.push_filters import conjuncts, is_pure
from squall.planners.passes.rewrite import Rewrite


def bind_left_joins(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan in which left joins are joins where rows with unbound right columns are dropped anyway."""
    if not any(isinstance(node.op, LeftJoin) for node in plan.nodes):
        return plan
    bound = _columns_bound_behind(plan)
    rewrite = Rewrite(plan)
    for node in plan.nodes:
        if isinstance(node.op, LeftJoin) and _is_join(plan, node, node.op, bound[node.id]):
            joined = rewrite.add(Join(node.op.on, node.op.keep), *rewrite.inputs(node))
            condition = node.op.condition
            rewrite.new_ids[node.id] = joined if condition is None else rewrite.add(Filter(condition), joined)
        else:
            rewrite.keep(node)
    return rewrite.result()


def _is_join(plan: Plan, node: Node, op: LeftJoin, behind: frozenset[int]) -> bool:
    """Returns whether a column that only right rows bind is among those that are bound behind a left join."""
    width = plan.widths[node.inputs[0].node]
    return any(op.keep[column] >= width for column in behind)


def _columns_bound_behind(plan: Plan) -> dict[str, frozenset[int]]:
    """Returns for each node the columns in which all rows are bound that are not dropped behind it."""
    bound: dict[str, frozenset[int]] = {}
    for node in reversed(plan.nodes):
        demands = [_demanded(plan, plan.by_id[id], port, bound) for id, port in plan.consumers[node.id]]
        bound[node.id] = frozenset.intersection(*demands) if demands else frozenset()
    return bound


def _demanded(plan: Plan, node: Node, port: int, bound: dict[str, frozenset[int]]) -> frozenset[int]:
    """Returns the columns of an input of a node that have to be bound for a row to have an effect."""
    behind = bound.get(node.id, frozenset())  # of facts that are read again nothing is known
    match node.op:
        case Filter(expression=expression) if is_pure(expression):  # others see all rows
            return behind | frozenset(_strict_columns(expression))
        case ConstantFilter(column=column):
            return behind | {column}
        case LeftJoin(condition=condition) if _is_join(plan, node, node.op, behind):
            return _input_columns(plan, node, node.op, port, behind | frozenset(_strict_columns(condition)))
        case Join() | LeftJoin() if isinstance(node.op, Join) or port == 0:
            return _input_columns(plan, node, node.op, port, behind)
        case AntiJoin() if port == 0:
            return behind
        case Project(columns=columns):
            return frozenset(source for place in behind if (source := columns[place]) is not None)
        case Distinct(by=by):
            return frozenset(column for column in behind if column < by)
        case Union():
            return behind
        case Construct(template=template):
            return frozenset(cell for cell in template if isinstance(cell, int))
        case _:
            return frozenset()


def _input_columns(plan: Plan, node: Node, op: Join | LeftJoin, port: int, columns: frozenset[int]) -> frozenset[int]:
    """Returns the columns of an input that are output as some columns of a join."""
    widths = [plan.widths[edge.node] for edge in node.inputs]
    first = op.first_column(port, widths)
    places = (op.keep[column] - first for column in columns)
    return frozenset(place for place in places if 0 <= place < widths[port])


def _strict_columns(condition: Expression) -> Iterator[int]:
    """Yields the columns without which a condition is not true."""
    for test in conjuncts(condition):
        if functions.lookup(test.function).strict:
            yield from (argument.index for argument in test.arguments if isinstance(argument, Column))
