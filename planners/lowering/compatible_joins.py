"""Joins on variables that may be unbound: solutions are compatible if they agree on what both bind.

Source: SPARQL 1.1, section 18.3. The operators of a plan know nothing of this: they compare terms, and treat unbound as
one more term. So this module splits rows into cases by which of the join's variables are bound. The cases are disjoint,
so that multiplicities are kept. If all join variables are bound in all rows, there is one case and the plan is a plain
join. With more than `MAX_CASE_VARIABLES` such variables, all pairs of rows are built and filtered.

The right side of an anti-join never depends on its left side: otherwise no recursive rule could use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from squall.functions.sparql.logic import BOUND, COALESCE, COMPATIBLE, MEET, UNBOUND
from squall.functions.sparql.names import TRUE
from squall.model import Call, Variable
from squall.plan import operators as ops
from squall.plan.operators import Column, Invoke
from squall.planners.lowering.columns import condition_of, joined_nullable, natural_join, project, shared_columns, union
from squall.planners.lowering.plan_builder import Draft, Rows

MAX_CASE_VARIABLES = 3
"""The largest number of nullable join variables that are split into cases. With more, all pairs of rows are filtered.
"""


class SideVariable(Variable):
    """A variable of the planner that holds the value of a variable on one side of a join, bound or not."""


def side_variables(rows: Rows) -> dict[Variable, Variable]:
    """Returns for each variable one that holds its value on this side alone, whatever a join makes of it.

    That is a new variable if the variable may be unbound, and the variable itself otherwise.
    """
    renaming = {name: name for name in rows.names}
    used_names = set(rows.names)
    for name in (name for name in rows.names if name in rows.nullable):
        while renaming[name] in used_names:
            renaming[name] = SideVariable(f"{renaming[name].name}'")
        used_names.add(renaming[name])
    return renaming


def with_side_columns(draft: Draft, rows: Rows, names: Sequence[Variable]) -> Rows:
    """Returns the rows with just these columns, followed by a copy of each one to which `side_variables` gives a new
    name.
    """
    renaming = side_variables(rows)
    all_columns = (*names, *(name for name in names if renaming[name] != name))
    columns = tuple(rows.names.index(name) for name in all_columns)
    column_names = (*names, *(renaming[name] for name in all_columns[len(names) :]))
    node = rows.node if columns == tuple(range(len(rows.names))) else draft.add(ops.Project(columns), rows.node)
    return Rows(node, column_names, rows.nullable & set(names), rows.origin)


def nullable_shared(left: Rows, right: Rows) -> list[Variable]:
    """Returns the variables that both sides have and that may be unbound on one of them."""
    nullable_names = left.nullable | right.nullable
    return [name for name in left.names if name in nullable_names and name in right.names] if nullable_names else []


def join(draft: Draft, left: Rows, right: Rows) -> Rows:
    """Returns the natural join: the pairs of compatible rows."""
    cases = compatible_pairs(draft, left, right)
    assert cases is not None, "rows without a variable in common are compatible"
    return cases


def compatible_pairs(
    draft: Draft, left: Rows, right: Rows, shared_with: frozenset[Variable] | None = None
) -> Rows | None:
    """Returns the pairs of compatible rows, or None if there are none.

    Args:
        draft: The plan.
        left: The left rows.
        right: The right rows.
        shared_with: Only pairs count in which at least one of these variables is bound on both sides. None: all pairs.
    """
    # In one piece: the cases of one definition by cases.
    nullable_names = nullable_shared(left, right)
    sure = [name for name in left.names if name in right.names and name not in nullable_names]
    if shared_with is not None and shared_with.intersection(sure):
        shared_with = None
    if not nullable_names:
        return _natural_join(draft, left, right) if shared_with is None else None
    if sure or len(nullable_names) > MAX_CASE_VARIABLES:
        return _filtered_join(draft, left, right, nullable_names, shared_with)
    first = nullable_names[0]
    counted_here = None if shared_with is None or first in shared_with else shared_with
    cases = [compatible_pairs(draft, _bound(draft, left, first), _bound(draft, right, first), counted_here)]
    if first in left.nullable:
        cases.append(compatible_pairs(draft, _unbound(draft, left, first), right, shared_with))
    if first in right.nullable:
        cases.append(compatible_pairs(draft, _bound(draft, left, first), _unbound(draft, right, first), shared_with))
    matching_cases = [case for case in cases if case is not None]
    names = (*left.names, *(name for name in right.names if name not in left.names))
    return replace(union(draft, matching_cases, names), origin=right.origin) if matching_cases else None


def anti_join(
    draft: Draft,
    left: Rows,
    right: Rows,
    condition: Call | None = None,
    shared_with: frozenset[Variable] | None = None,
) -> Rows:
    """Returns the left rows that are in no pair of compatible rows for which the condition is true.

    Args:
        draft: The plan.
        left: The left rows.
        right: The right rows.
        condition: None is always true.
        shared_with: As in `compatible_pairs`.
    """
    nullable_names = nullable_shared(left, right)
    if shared_with is not None and shared_with & left.non_null & right.non_null:
        shared_with = None
    if not nullable_names:
        return _anti_join(draft, left, right, condition) if shared_with is None else left
    if len(nullable_names) > MAX_CASE_VARIABLES:
        pair_cases = compatible_pairs(draft, with_side_columns(draft, left, left.names), right, shared_with)
        return left if pair_cases is None else unmatched(draft, left, filtered(draft, pair_cases, condition))
    first = next((name for name in nullable_names if name in left.nullable), nullable_names[0])
    if first in left.nullable:
        cases = (_bound(draft, left, first), _unbound(draft, left, first))
        all_columns = union(
            draft, [anti_join(draft, case, right, condition, shared_with) for case in cases], left.names
        )
        return replace(left, node=all_columns.node)
    left = anti_join(draft, left, _bound(draft, right, first), condition, shared_with)
    return anti_join(draft, left, _unbound(draft, right, first), condition, shared_with)


def correlated_columns(correlated: Rows) -> list[tuple[Variable, Variable]]:
    """Returns the nullable variables of correlated bindings, each with the column that holds the outer value."""
    names = [name for name in correlated.names if name in correlated.nullable]
    return list(zip(names, correlated.names[len(correlated.names) - len(names) :], strict=True))


def minus(
    draft: Draft,
    left: Rows,
    right: Rows,
    shared_with: frozenset[Variable],
    renamings: Sequence[tuple[Variable, Variable]],
) -> Rows:
    """Returns the left rows that are in no pair of compatible rows that share a bound variable (MINUS).

    Args:
        draft: The plan.
        left: The left rows.
        right: The right rows.
        shared_with: The variables that count as shared.
        renamings: Correlated variables with the columns of their outer values. A variable with an outer value is
            substituted, so that it does not count as shared (SPARQL 1.1, section 18.6, substitute).
    """
    if not renamings:
        return anti_join(draft, left, right, shared_with=shared_with)
    (name, renamed), *other_renamings = renamings
    replaced = replace(left, node=_filter(draft, left, BOUND, (renamed,)))
    free = replace(left, node=_filter(draft, left, UNBOUND.iri, (renamed,)))
    cases = [
        minus(draft, replaced, right, shared_with - {name}, other_renamings),
        minus(draft, free, right, shared_with, other_renamings),
    ]
    return replace(left, node=union(draft, cases, left.names).node)


def _anti_join(draft: Draft, left: Rows, right: Rows, condition: Call | None) -> Rows:
    if condition is None:
        return replace(left, node=draft.add(ops.AntiJoin(shared_columns(left, right)), left.node, right.node))
    marker = SideVariable("there")
    marked = replace(right, node=draft.add(ops.Extend(TRUE), right.node), names=(*right.names, marker))
    joined = left_join(draft, left, marked, condition)
    alone = replace(left, node=_filter(draft, joined, UNBOUND.iri, (marker,)), names=joined.names)
    return project(draft, alone, left.names)


def unmatched(draft: Draft, rows: Rows, matched: Rows) -> Rows:
    """Returns the rows that are in no pair, where pairs have the side columns of the rows (`with_side_columns`).

    A value that is unbound in one is unbound in the other.
    """
    on = tuple((column, matched.names.index(renamed)) for column, renamed in enumerate(side_variables(rows).values()))
    return replace(rows, node=draft.add(ops.AntiJoin(on), rows.node, matched.node))


def left_join(draft: Draft, left: Rows, right: Rows, condition: Call | None) -> Rows:
    """Returns the pairs of compatible rows that satisfy the condition, and the left rows that are in none of them."""
    nullable_names = nullable_shared(left, right)
    nullable = left.nullable | (right.variables - left.non_null)
    if not nullable_names:
        op, names = natural_join(left, right)
        computed = None if condition is None else condition_of(condition, names)
        node = draft.add(ops.LeftJoin(op.on, op.keep, computed), left.node, right.node)
        return Rows(node, names, nullable, left.origin)
    first = next((name for name in nullable_names if name in left.nullable), None)
    if first is not None and len(nullable_names) <= MAX_CASE_VARIABLES:
        cases = (_bound(draft, left, first), _unbound(draft, left, first))
        joined_cases = [left_join(draft, case, right, condition) for case in cases]
    else:
        joined_cases = [filtered(draft, join(draft, left, right), condition), anti_join(draft, left, right, condition)]
    names = (*left.names, *(name for name in right.names if name not in left.names))
    return replace(union(draft, joined_cases, names), nullable=nullable, origin=left.origin)


def filtered(draft: Draft, rows: Rows, condition: Call | None) -> Rows:
    """Returns the rows for which the condition is true."""
    if condition is None:
        return rows
    return replace(rows, node=draft.add(ops.Filter(condition_of(condition, rows.names)), rows.node))


def _natural_join(draft: Draft, left: Rows, right: Rows) -> Rows:
    op, names = natural_join(left, right)
    return Rows(draft.add(op, left.node, right.node), names, joined_nullable(left, right), right.origin)


def _bound(draft: Draft, rows: Rows, name: Variable) -> Rows:
    """Returns the rows in which the variable is bound."""
    if name not in rows.nullable:
        return rows
    return replace(rows, node=_filter(draft, rows, BOUND, (name,)), nullable=rows.nullable - {name})


def _unbound(draft: Draft, rows: Rows, name: Variable) -> Rows:
    """Returns the rows in which the variable is unbound, without its column."""
    unbound_rows = replace(rows, node=_filter(draft, rows, UNBOUND.iri, (name,)))
    return project(draft, unbound_rows, [column_name for column_name in rows.names if column_name != name])


def _filter(draft: Draft, rows: Rows, function: str, names: Iterable[Variable]) -> str:
    columns = tuple(Column(rows.names.index(name)) for name in names)
    return draft.add(ops.Filter(Invoke(function, columns)), rows.node)


def _filtered_join(
    draft: Draft, left: Rows, right: Rows, nullable_names: Sequence[Variable], shared_with: frozenset[Variable] | None
) -> Rows:
    """Returns the pairs of rows that agree on the variables bound in all rows, filtered by the other variables."""
    right_names = {name: SideVariable(f"right {name.name}") for name in nullable_names}
    column_names = tuple(right_names.get(name, name) for name in right.names)
    right_side = replace(
        right, names=column_names, nullable=frozenset(right_names.get(name, name) for name in right.nullable)
    )
    joined = _natural_join(draft, left, right_side)
    if shared_with is not None:
        counted_names = [item for name in nullable_names if name in shared_with for item in (name, right_names[name])]
        joined = replace(joined, node=_filter(draft, joined, MEET.iri, counted_names))
    return replace(merge_sides(draft, joined, left, right_names), origin=right.origin)


def merge_sides(draft: Draft, rows: Rows, left: Rows, right_names: Mapping[Variable, Variable]) -> Rows:
    """Returns the rows in which two sides agree on some variables, with one column for each variable.

    Args:
        draft: The plan.
        rows: The joined rows.
        left: The left side.
        right_names: For each variable the name of its right column, which the result does not have.
    """
    side_pairs = [(name, other) for name, other in right_names.items() if name != other]
    if not side_pairs:
        return rows
    coalesced: dict[Variable, Variable] = {}
    nullable = rows.nullable
    for name, other in side_pairs:
        rows = replace(rows, node=_filter(draft, rows, COMPATIBLE.iri, (name, other)))
    for name, other in side_pairs:
        coalesced[name] = name
        if name not in left.non_null:
            coalesced[name] = SideVariable(f"of both {name.name}")
            value = Invoke(COALESCE, tuple(Column(rows.names.index(column)) for column in (name, other)))
            node = draft.add(ops.Extend(value, keep_unbound=True), rows.node)
            rows = replace(rows, node=node, names=(*rows.names, coalesced[name]))
        if other not in nullable or name not in nullable:
            nullable -= {name}
    hidden_names = {other for _, other in side_pairs} | set(coalesced.values())
    names = [name for name in rows.names if name in coalesced or name not in hidden_names]
    projected = project(draft, rows, [coalesced.get(name, name) for name in names])
    return Rows(projected.node, tuple(names), nullable - hidden_names, rows.origin)
