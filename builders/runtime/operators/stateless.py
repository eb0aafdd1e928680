"""Stateless operators: each delta is processed by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar, cast

from squall import functions
from squall.builders.runtime.operators.codegen import (
    Names,
    column_names,
    compile_source,
    compile_vectorized,
    delta_source,
    expression_source,
    row_source,
)
from squall.builders.runtime.operators.event_time import sort_key
from squall.builders.runtime.zset import Delta
from squall.functions.values import value_key
from squall.plan import operators as ops
from squall.plan.operators import OneOf, Value, select_tag
from squall.rdf import Term
from squall.rdf.row_tags import RANK_SEPARATOR

Step = Callable[[Sequence[Delta]], list[Delta]]
AnyStep = TypeVar("AnyStep", bound=Callable[..., Any])


class StatelessOperator:
    """An operator without state."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        return self.step(deltas)


def identity(deltas: Sequence[Delta]) -> list[Delta]:
    """Returns the deltas as they are (`Scan`, `Unit`, `Union`)."""
    return deltas if isinstance(deltas, list) else list(deltas)


def identity_of_pairs(pairs: Any) -> Any:
    """Returns pairs as they are, also those in columns."""
    return pairs


def chain_steps(steps: Sequence[AnyStep]) -> AnyStep | None:
    """Returns the composition of the steps, over deltas or over rows without times; None if there are none."""
    if len(steps) < 2:
        return steps[0] if steps else None

    def all_of_them(rows: Any) -> Any:
        for step in steps:
            rows = step(rows)
        return rows

    return cast(AnyStep, all_of_them)


# Steps process deltas, or rows without validity if `timed` is False


def match_step(
    cells: Sequence[ops.Cell], bound_columns: Collection[int] = (), *, rule: bool = True, timed: bool = True
) -> Step:
    """Returns the step that turns facts into rows.

    The facts have the kind and the number of cells that the pattern needs (see `squall.builders.runtime.alpha`).

    Args:
        cells: The pattern.
        bound_columns: The cells that are known to fit.
        rule: Whether a rule name is behind the cells of a fact.
        timed: Whether the rows have a validity.
    """
    names: Names = {}
    row = column_names("a", len(cells))
    first: dict[int, str] = {}
    conditions: list[str] = []
    for place, (name, cell) in enumerate(zip(row, cells, strict=True)):
        if isinstance(cell, int):
            if first.setdefault(cell, name) != name:
                conditions.append(f"{name} == {first[cell]}")
        elif cell is not None and place not in bound_columns:
            conditions.append(_condition(name, cell, names))
    columns = [first[column] for column in sorted(first)]
    if columns == row and not conditions and not rule:
        return identity_of_pairs
    where_code = f" if {' and '.join(conditions)}" if conditions else ""
    pattern_cells = [*row, "_"] if rule else row
    shape = delta_source if timed else row_source
    return compile_source(
        f"def run(deltas):\n return [{shape(columns)} for {shape(pattern_cells)} in deltas{where_code}]", names
    )


def _condition(name: str, cell: Term | Value | OneOf, names: Names) -> str:
    constant = f"k{len(names)}"
    if isinstance(cell, OneOf):
        names[constant] = frozenset(cell.terms)
        return f"{name} in {constant}"
    if isinstance(cell, Value):
        names.update({constant: value_key(cell.term), "value_key": value_key})
        return f"{name}[0] == '\"' and value_key({name}) == {constant}"
    names[constant] = cell
    return f"{name} == {constant}"


def filter_step(op: ops.Filter) -> Step:
    """Returns the step that keeps the rows for which the expression is true."""
    return compile_vectorized("def run(deltas):\n return [x for x in deltas if {0}]", [op.expression], "x", "x[-3]")


def extend_step(op: ops.Extend, timed: bool = True) -> Step:
    """Returns the step that adds one column to the rows."""
    value, where_code = "v", " if isinstance(v := {0}, str)"
    if op.keep_unbound:
        value, where_code = "v if isinstance(v := {0}, str) else None", ""
    row = f"(*x[:-3], {value}, *x[-3:])" if timed else f"(*x, {value})"
    output_code = f"{row} for x in deltas{where_code}"
    return compile_vectorized(f"def run(deltas):\n return [{output_code}]", [op.expression], "x", "x[-3]")


def table_function_step(op: ops.TableFunction, timed: bool = True) -> Step:
    """Returns the step that adds the columns of each row that a table function returns."""
    function = functions.lookup(op.function)
    names: Names = {"rows_of": lambda *arguments: _checked(function, op.results, arguments)}
    arguments_code = [expression_source(argument, "x", "x[-3]", names) for argument in op.arguments]
    call_arguments = ["x[-3]", *arguments_code] if function.timed else arguments_code
    row = "(*x[:-3], *made, *x[-3:])" if timed else "(*x, *made)"
    output_code = f"{row} for x in deltas for made in rows_of({', '.join(call_arguments)})"
    return compile_source(f"def run(deltas):\n return [{output_code}]", names)


def _checked(function: functions.Function, results: int, arguments: Sequence[Any]) -> Any:
    result_rows: Any = function.evaluate(*arguments)
    rows = [tuple(row) for row in result_rows or ()]
    for row in rows:
        if len(row) != results:
            raise ValueError(f"the table function <{function.iri}> gave a row of {len(row)} values, not of {results}")
    return rows


def project_step(op: ops.Project, width: int, timed: bool = True) -> Step:
    """Returns the step that keeps some columns."""
    row = column_names("a", width)
    columns = ["None" if column is None else row[column] for column in op.columns]
    shape = delta_source if timed else row_source
    return compile_source(f"def run(deltas):\n return [{shape(columns)} for {shape(row)} in deltas]", {})


def constant_filter_step(op: ops.ConstantFilter) -> Step:
    """Returns the step that keeps the rows whose column has the term."""
    return compile_source(f"def run(deltas):\n return [x for x in deltas if x[{op.column}] == k0]", {"k0": op.term})


def construct_step(
    template: Sequence[int | Term], rules: Sequence[str], width: int, unbound: Collection[int], timed: bool = True
) -> Step:
    """Returns the step that makes a fact of each row; in a delta, a rule name is behind the fact.

    A row makes no fact if a cell that the template needs is unbound (SPARQL 1.1, section 16.2).

    Args:
        template: The numbers of columns, and terms.
        rules: The rules that construct the fact; the first one is named.
        width: The number of columns of the rows.
        unbound: The columns that may be unbound.
        timed: Whether the rows have a validity.
    """
    names: Names = {"rule": rules[0] if rules else ""}
    row = column_names("a", width)
    template_cells = []
    for cell in template:
        if isinstance(cell, int):
            template_cells.append(row[cell])
        else:
            template_cells.append(f"k{len(names)}")
            names[f"k{len(names)}"] = cell
    nullable_columns = sorted({cell for cell in template if isinstance(cell, int) and cell in unbound})
    where_code = (
        f" if {' and '.join(f'{row[cell]} is not None' for cell in nullable_columns)}" if nullable_columns else ""
    )
    fact, input_code = (
        (delta_source([*template_cells, "rule"]), delta_source(row))
        if timed
        else (row_source(template_cells), row_source(row))
    )
    return compile_source(f"def run(deltas):\n return [{fact} for {input_code} in deltas{where_code}]", names)


TemplateShape = tuple[int | None, ...]


def template_shape(template: Sequence[int | Term]) -> TemplateShape:
    """Returns the columns of a template, with None for its constants."""
    return tuple(cell if isinstance(cell, int) else None for cell in template)


def construct_by_constant_step(
    column: int, constructs: Sequence[tuple[Term, ops.Construct]], width: int, unbound: Collection[int]
) -> Step:
    """Returns the step of many `Construct` nodes of one shape, each behind a `ConstantFilter` on the same column.

    One look-up of the column's term replaces all these filters.
    """
    shape = template_shape(constructs[0][1].template)
    table: dict[Term, list[tuple[str, ...]]] = {}
    for term, op in constructs:
        constants = [cell for cell in op.template if not isinstance(cell, int)]
        table.setdefault(term, []).append((*constants, op.rules[0] if op.rules else ""))
    row = column_names("a", width)
    table_cells = [f"k{place}" for place, cell in enumerate(shape) if cell is None] + ["rule"]
    template_cells = [f"k{place}" if cell is None else row[cell] for place, cell in enumerate(shape)]
    nullable_columns = sorted({cell for cell in shape if cell is not None and cell in unbound})
    where_code = "".join(f" and {row[cell]} is not None" for cell in nullable_columns)
    fact, table_entry = delta_source([*template_cells, "rule"]), f"table[{row[column]}]"
    outer_loop = f"for {delta_source(row)} in deltas if {row[column]} in table{where_code}"
    inner_loop = f"for {row_source(table_cells)} in {table_entry}"
    return compile_source(f"def run(deltas):\n return [{fact} {outer_loop} {inner_loop}]", {"table": table})


def select_step(op: ops.Select, width: int, is_ordered: bool) -> Step:
    """Returns the step that makes a solution of each row.

    If the answer is ordered, its rank is part of the row, so that equal solutions with different ranks differ.
    """
    row = column_names("a", width)
    rule = op.rules[0] if op.rules else ""
    names: Names = {"first": select_tag(op), "rule": rule}
    first = "first"
    if is_ordered and op.order:
        names |= {"first": select_tag(op) + RANK_SEPARATOR, "key_of": sort_key(op.order, op.columns)}
        first = f"first + key_of(({''.join(f'{cell}, ' for cell in row)}))"
    cells = [first, *(row[column] for column in op.columns), "rule"]
    return compile_source(f"def run(deltas):\n return [{delta_source(cells)} for {delta_source(row)} in deltas]", names)
