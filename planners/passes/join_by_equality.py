"""The pass `join_by_equality`: a test of equality on a product of rows becomes the key of a join.

In ``?a :id ?x . ?b :ref ?y . FILTER(?x = ?y)`` the patterns share no variable, so they are joined by a product, of
which the test drops nearly all rows. A test with keys (`squall.functions.Function.join_keys`) adds them as a column to
both sides, and the rows are joined on it. The test stays behind the join, since keys may be coarse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from squall import functions
from squall.functions.join_keys import LEFT, RIGHT
from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Expression, Filter, Invoke, Join, TableFunction, columns_of, remap_columns
from squall.planners.passes.push_filters import is_movable
from squall.planners.passes.rewrite import Rewrite


class _Equality(NamedTuple):
    """A test of equality between the two sides of a product.

    Attributes:
        keys: The table function of keys.
        left: What is compared of a left row.
        right: What is compared of a right row.
    """

    keys: str
    left: Expression
    right: Expression


def join_by_equality(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan in which products are joins, where equality is tested behind them."""
    products = (node for node in plan.nodes if isinstance(node.op, Join) and not node.op.on)
    equalities = {node.id: tests for node in products if (tests := [*_equalities(plan, node)])}
    if not equalities:
        return plan
    rewrite = Rewrite(plan)
    for node in plan.nodes:
        if node.id in equalities:
            _join(rewrite, node, equalities[node.id])
        else:
            rewrite.keep(node)
    return rewrite.result()


def equality_tests(plan: Plan, id: str) -> Iterator[Invoke]:
    """Yields the tests with keys that all rows of a node have to pass, one filter after the other."""
    consumers = plan.consumers[id]
    while len(consumers) == 1 and is_movable(node := plan.by_id[consumers[0][0]]):
        assert isinstance(node.op, Filter)
        if functions.lookup(node.op.expression.function).join_keys:
            yield node.op.expression
        consumers = plan.consumers[node.id]


def _equalities(plan: Plan, product: Node) -> Iterator[_Equality]:
    """Yields the tests of equality between both sides that all rows of a product have to pass."""
    assert isinstance(product.op, Join)
    width = plan.widths[product.inputs[0].node]
    columns = dict(enumerate(product.op.keep))
    rights = {place: column - width for place, column in columns.items()}
    for call in equality_tests(plan, product.id):
        sides = {_side(argument, product.op, width): argument for argument in call.arguments}
        if sides.keys() == {LEFT, RIGHT}:
            left, right = remap_columns(sides[LEFT], columns), remap_columns(sides[RIGHT], rights)
            yield _Equality(functions.lookup(call.function).join_keys, left, right)


def _side(expression: Expression, product: Join, width: int) -> str:
    """Returns the side of a product that has all columns of an expression; "" if neither has, or it reads none."""
    are_left = {product.keep[column] < width for column in columns_of(expression)}
    return "" if len(are_left) != 1 else LEFT if are_left.pop() else RIGHT


def _join(rewrite: Rewrite, product: Node, equalities: list[_Equality]) -> None:
    assert isinstance(product.op, Join)
    left, right = rewrite.inputs(product)
    widths = [rewrite.plan.widths[edge.node] for edge in product.inputs]
    for keys, left_value, right_value in dict.fromkeys(equalities):
        left = rewrite.add(TableFunction(keys, (LEFT, left_value), 1), left)
        right = rewrite.add(TableFunction(keys, (RIGHT, right_value), 1), right)
    count = len(dict.fromkeys(equalities))
    on = tuple((widths[0] + number, widths[1] + number) for number in range(count))
    keep = tuple(column if column < widths[0] else column + count for column in product.op.keep)
    rewrite.put(product, Join(on, keep), left, right)
