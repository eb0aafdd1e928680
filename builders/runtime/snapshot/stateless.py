"""Stateless operators over rows without times: row by row, or in one step for factorised rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any, cast

from squall import functions
from squall.builders.runtime.operators import stateless
from squall.builders.runtime.operators.factored import FactoredRows, Rows
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Row
from squall.plan import operators as ops

Step = Callable[[Rows], Rows]


def identity(rows: Rows) -> Rows:
    """Returns the rows as they are (`Scan`, `Unit`, `Union`)."""
    return rows


def row_by_row(step: stateless.Step) -> Step:
    """Returns a step for deltas as one for rows, which it processes one by one."""
    return cast(Step, step)


def match_step(cells: Sequence[ops.Cell], bound_columns: Collection[int] = ()) -> Step:
    """Returns the step that turns facts into rows. bound_columns: the cells that are known to fit."""
    step = row_by_row(stateless.match_step(cells, bound_columns, rule=False, timed=False))
    columns = [cell for cell in cells if isinstance(cell, int)]
    tests = [(place, cell) for place, cell in enumerate(cells) if isinstance(cell, str) and place not in bound_columns]
    untested = (cell for place, cell in enumerate(cells) if place not in bound_columns)
    if len(set(columns)) < len(columns) or any(isinstance(cell, ops.Value | ops.OneOf) for cell in untested):
        return step
    tested, shape = {place for place, _ in tests}, [cells.index(column) for column in sorted(columns)]

    def matched(rows: Rows) -> Rows:
        if not isinstance(rows, FactoredRows) or rows.place in tested:
            return step(rows)
        return rows.shaped(shape) if all(rows.row[place] == cell for place, cell in tests) else ()

    return matched


def filter_step(op: ops.Filter) -> Step:
    """Returns the step that keeps the rows for which the expression is true."""
    step, columns, once = (
        row_by_row(stateless.filter_step(op)),
        {*ops.columns_of(op.expression)},
        is_pure(op.expression),
    )

    def tested(rows: Rows) -> Rows:
        if not isinstance(rows, FactoredRows):
            return step(rows)
        if once and rows.place not in columns:
            return rows if step([rows.row]) else ()
        return rows.of(row[rows.place] for row in step(rows))

    return tested


def is_pure(expression: ops.Expression) -> bool:
    """Returns whether it makes no difference how often an expression is computed."""
    if not isinstance(expression, ops.Invoke):
        return True
    return functions.lookup(expression.function).pure and all(map(is_pure, expression.arguments))


def project_step(op: ops.Project, width: int) -> Step:
    """Returns the step that keeps some columns."""
    return _shaping(op.columns, row_by_row(stateless.project_step(op, width, timed=False)))


def construct_step(op: ops.Construct, width: int, unbound: Collection[int]) -> Step:
    """Returns the step that makes a fact of each row, as `squall.builders.runtime.operators.stateless.construct_step`
    does."""
    step = row_by_row(stateless.construct_step(op.template, op.rules, width, unbound, timed=False))
    return step if any(cell in unbound for cell in op.template) else _shaping(op.template, step)


def _shaping(template: Sequence[Any], step: Step) -> Step:
    """Returns a step that only gives rows the shape of a template, in one go for factorised rows."""
    return lambda rows: rows.shaped(template) if isinstance(rows, FactoredRows) else step(rows)


def project_beside_key(columns: Sequence[int], key: int, tuning: Tuning = DEFAULT_TUNING) -> Step:
    """Returns the step that keeps the key column and one other column, and removes duplicates.

    Many rows of a batch agree in the other column. How often a row comes makes no difference to a plan that `fits`
    accepts.
    """
    min_rows_to_factor = tuning.min_rows_to_factor
    (place,) = (place for place, column in enumerate(columns) if column != key)
    other = itemgetter(columns[place])

    def projected(rows: Rows) -> Rows:
        if isinstance(rows, FactoredRows):
            return rows.shaped(columns)
        if not rows:
            return ()
        term = rows[0][key]
        row: Row = (None, term) if place == 0 else (term, None)
        factored = FactoredRows(row, place, dict.fromkeys(map(other, rows)))
        return factored if len(factored) >= min_rows_to_factor else list(factored)

    return projected
