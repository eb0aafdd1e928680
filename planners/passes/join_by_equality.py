"""The pass `join_by_equality`: a test of equality on a product of rows becomes the key of a join.

In ``?a :id ?x . ?b :ref ?y . FILTER(?x = ?y)`` the patterns share no variable, so they are joined by a product, of
which the test drops nearly all rows. A test with keys (`squall.functions.Function.join_keys`) adds them as a column to
both sides, and the rows are joined on it. The test stays behind the join, since keys may be coarse.

An ``OPTIONAL`` whose condition is such a test is that join, and the left rows that have no partner in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from squall import functions
from squall.functions.join_keys import LEFT, RIGHT
from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import (
    AntiJoin,
    Distinct,
    Expression,
    Filter,
    Invoke,
    Join,
    LeftJoin,
    Project,
    TableFunction,
    Union,
    columns_of,
    remap_columns,
)
from squall.planners.passes.push_filters import conjuncts, is_movable, is_pure
from squall.planners.passes.rewrite import Rewrite


class _Equality(NamedTuple):
    """A test of equality between the two sides of a product.

    Attributes:
        keys: The table function of keys.
        left: What is compared of a left row.
        right: What is compared of a right row.
        is_reversed: Whether the left row has the second argument of the test.
    """

    keys: str
    left: Expression
    right: Expression
    is_reversed: bool


def join_by_equality(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan in which products are joins, where equality is tested behind them."""
    products = (node for node in plan.nodes if isinstance(node.op, Join | LeftJoin) and not node.op.on)
    equalities = {node.id: tests for node in products if (tests := [*dict.fromkeys(_equalities(plan, node))])}
    if not equalities:
        return plan
    rewrite = Rewrite(plan)
    for node in plan.nodes:
        match node.op:
            case Join(keep=keep) if node.id in equalities:
                rewrite.put(node, *_join(rewrite, node, keep, equalities[node.id]))
            case LeftJoin() if node.id in equalities:
                rewrite.new_ids[node.id] = _left_join(rewrite, node, node.op, equalities[node.id])
            case _:
                rewrite.keep(node)
    return rewrite.result()


def equality_tests(plan: Plan, id: str) -> Iterator[Invoke]:
    """Yields the tests with keys that all rows of a node have to pass, one filter after the other."""
    consumers = plan.consumers[id]
    while len(consumers) == 1 and is_movable(node := plan.by_id[consumers[0][0]]):
        assert isinstance(node.op, Filter)
        yield from _tests_of(node.op.expression)
        consumers = plan.consumers[node.id]


def _tests_of(condition: Expression) -> Iterator[Invoke]:
    """Yields the tests with keys that are true where a condition is."""
    return (test for test in conjuncts(condition) if functions.lookup(test.function).join_keys)


def _equalities(plan: Plan, product: Node) -> Iterator[_Equality]:
    """Yields the tests of equality between both sides that all rows of a product have to pass."""
    assert isinstance(product.op, Join | LeftJoin)
    width, keep = plan.widths[product.inputs[0].node], product.op.keep
    if isinstance(product.op, LeftJoin):
        has_left_rows = {*range(width)} <= {*keep}
        tests = _tests_of(product.op.condition) if has_left_rows and is_pure(product.op.condition) else iter(())
    else:
        tests = equality_tests(plan, product.id)
    rights = {place: column - width for place, column in enumerate(keep)}
    for call in tests:
        sides = {_side(argument, keep, width): argument for argument in call.arguments}
        if sides.keys() == {LEFT, RIGHT}:
            left, right = remap_columns(sides[LEFT], dict(enumerate(keep))), remap_columns(sides[RIGHT], rights)
            is_reversed = sides[LEFT] is call.arguments[1]
            yield _Equality(functions.lookup(call.function).join_keys, left, right, is_reversed)


def _side(expression: Expression, keep: Sequence[int], width: int) -> str:
    """Returns the side of a product that has all columns of an expression; "" if neither has, or it reads none."""
    are_left = {keep[column] < width for column in columns_of(expression)}
    return "" if len(are_left) != 1 else LEFT if are_left.pop() else RIGHT


def _join(
    rewrite: Rewrite, product: Node, keep: Sequence[int], equalities: Sequence[_Equality]
) -> tuple[Join, str, str]:
    """Returns the join in place of a product, with its inputs."""
    left, right = rewrite.inputs(product)
    widths = [rewrite.plan.widths[edge.node] for edge in product.inputs]
    for keys, left_value, right_value, is_reversed in equalities:
        first, second = (RIGHT, LEFT) if is_reversed else (LEFT, RIGHT)
        left = rewrite.add(TableFunction(keys, (first, left_value), 1), left)
        right = rewrite.add(TableFunction(keys, (second, right_value), 1), right)
    on = tuple((widths[0] + number, widths[1] + number) for number in range(len(equalities)))
    op = Join(on, tuple(column if column < widths[0] else column + len(equalities) for column in keep))
    return op, left, right


def _left_join(rewrite: Rewrite, node: Node, op: LeftJoin, equalities: Sequence[_Equality]) -> str:
    """Adds the join in place of a left join without keys, and the left rows that have no partner in it."""
    assert op.condition is not None
    width = rewrite.plan.widths[node.inputs[0].node]
    joined = rewrite.add(Filter(op.condition), rewrite.add(*_join(rewrite, node, op.keep, equalities)))
    partnered = rewrite.add(Project(tuple(map(op.keep.index, range(width)))), joined)
    same_row = tuple((column, column) for column in range(width))
    alone = rewrite.add(AntiJoin(same_row), rewrite.inputs(node)[0], rewrite.add(Distinct(width), partnered))
    padded = rewrite.add(Project(tuple(column if column < width else None for column in op.keep)), alone)
    return rewrite.add(Union(), joined, padded)
