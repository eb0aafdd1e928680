"""The translation of variables to columns: the only place in which variables become numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from squall.errors import PlannerError
from squall.model import AtomPattern, Call, Expression, FactPattern, Slot, System, Variable
from squall.model.stratification import is_time_dependent
from squall.plan import operators as ops
from squall.plan.operators import Cell, Column, Invoke, Match, Value
from squall.planners.lowering.plan_builder import Draft, Rows
from squall.rdf import Term, is_literal
from squall.rdf.row_tags import relation_tag


def match_of(pattern: FactPattern) -> tuple[Match, tuple[Variable, ...]]:
    """Returns the `Match` of a pattern, and the variable of each of its columns. Variables are numbered from left to
    right.
    """
    numbers: dict[Variable, int] = {}
    cells: list[Cell] = []
    if isinstance(pattern, AtomPattern):
        cells.append(relation_tag(pattern.relation))
    for slot in pattern.slots:
        if isinstance(slot, Variable):
            cells.append(numbers.setdefault(slot, len(numbers)))
        else:
            cells.append(Value(slot) if is_literal(slot) and not pattern.exact else slot)
    return Match(tuple(cells)), tuple(numbers)


def template_of(template: FactPattern, rows: Rows, rule: System) -> tuple[int | Term, ...] | None:
    """Returns the cells of a template (see `cells_of`)."""
    cells = cells_of(template.slots, rows, rule)
    if isinstance(template, AtomPattern) and cells is not None:
        return (relation_tag(template.relation), *cells)
    return cells


def cells_of(slots: Iterable[Slot], rows: Rows, rule: System) -> tuple[int | Term, ...] | None:
    """Returns the columns and constants of the slots of a template, or None if one is never bound: then there is no
    fact.

    Raises:
        PlannerError: The template has a variable that the body does not mention.
    """
    cells: list[int | Term] = []
    for slot in slots:
        if not isinstance(slot, Variable):
            cells.append(slot)
        elif slot in rows.names:
            cells.append(rows.names.index(slot))
        elif slot in rows.nullable:
            return None
        else:
            raise PlannerError(f"the head of rule `{rule.name}` has `{slot}`, which its body never binds", rule.origin)
    return tuple(cells)


def expression_of(expression: Expression | None, names: Sequence[Variable]) -> ops.Expression:
    """Returns the expression over columns. A variable that no column holds is unbound (None)."""
    match expression:
        case Variable():
            return Column(names.index(expression)) if expression in names else None
        case Call(function=function, arguments=arguments):
            return Invoke(function, tuple(expression_of(argument, names) for argument in arguments))
        case _:
            return expression


def condition_of(expression: Expression, names: Sequence[Variable]) -> Invoke:
    """Returns the expression of a filter over columns.

    Raises:
        PlannerError: The expression calls no function.
    """
    condition = expression_of(expression, names)
    if not isinstance(condition, Invoke):
        raise PlannerError(f"a test has to call a function, not {condition!r}")
    return condition


def forbid_time(expressions: Iterable[Expression | None], what: str, rule: System) -> None:
    """Raises PlannerError if one of the expressions depends on the time: only tests and binds may."""
    if any(expression is not None and is_time_dependent(expression) for expression in expressions):
        raise PlannerError(
            f"rule `{rule.name}` takes the time (`now`) in {what}", rule.origin, "bind it to a variable before"
        )


def natural_join(left: Rows, right: Rows) -> tuple[ops.Join, tuple[Variable, ...]]:
    """Returns the natural join and its variables: on all shared columns, with every variable once.

    A natural join of sets is a set.
    """
    bound_names, names = left.names, [*left.names]
    on, keep = [], [*range(len(names))]
    for column, name in enumerate(right.names):
        if name in bound_names:
            on.append((bound_names.index(name), column))
        else:
            keep.append(len(bound_names) + column)
            names.append(name)
    return ops.Join(tuple(on), tuple(keep)), tuple(names)


def shared_columns(left: Rows, right: Rows) -> tuple[tuple[int, int], ...]:
    """Returns the columns, left and right, of the variables that both have."""
    return tuple((left.names.index(name), column) for column, name in enumerate(right.names) if name in left.names)


def joined_nullable(left: Rows, right: Rows) -> frozenset[Variable]:
    """Returns the variables that may be unbound in a row of the join."""
    return (left.nullable | right.nullable) - left.non_null - right.non_null


def project(draft: Draft, rows: Rows, names: Sequence[Variable]) -> Rows:
    """Returns the rows with just these columns, in this order. Columns that the rows do not have are unbound."""
    if tuple(names) == rows.names:
        return rows
    columns = tuple(rows.names.index(name) if name in rows.names else None for name in names)
    return replace(rows, node=draft.add(ops.Project(columns), rows.node), names=tuple(names))


def union(draft: Draft, branches: Sequence[Rows], names: Sequence[Variable] | None = None) -> Rows:
    """Returns the rows of all branches, as a bag.

    Args:
        draft: The plan.
        branches: The rows to combine. Each branch has its own column numbers; a variable it does not bind is unbound.
        names: The columns of the result. None means the order in which the branches have them.
    """
    if names is None:
        names = tuple(dict.fromkeys(name for branch in branches for name in branch.names))
    nullable = {name for branch in branches for name in (*branch.nullable, *(set(names) - set(branch.names)))}
    inputs = [project(draft, branch, names).node for branch in branches]
    node = draft.add(ops.Union(), *inputs) if len(inputs) > 1 else inputs[0]
    return Rows(node, tuple(names), frozenset(nullable))
