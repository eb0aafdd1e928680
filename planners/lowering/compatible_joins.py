"""Joins on variables that may be unbound: solutions are compatible where they agree on what is bound in both (SPARQL
1.1, section 18.3). Operators know nothing of that: they compare terms, and unbound is as good as a term to them.

So rows are taken apart by what is bound in them. These cases are disjoint, so that a bag stays what it is. Where all
that is joined on is bound in all rows, there is one case, and the plan is as if there were nothing else. What is looked
for in vain is never made of the rows for which it is, or else no rule that recurs could look for it; more than `MOST`
variables apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from squall.functions.sparql.logic import BOUND, COALESCE, COMPATIBLE, MEET, UNBOUND
from squall.functions.sparql.names import TRUE
from squall.model import Call, Variable
from squall.plan import operators as ops
from squall.plan.operators import Column, Invoke
from squall.planners.lowering.columns import columns_as, condition_of, join_of, maybe_of, shared, union
from squall.planners.lowering.plan_builder import Draft, Rows

MOST = 3
"""So many variables are told apart by cases; of more, all pairs of rows are made and tested."""


class Own(Variable):
    """What a variable is in one side of a join, bound or not: a variable of the planner's own."""


def own(rows: Rows) -> dict[Variable, Variable]:
    """For each variable with a column one that holds its value in these rows alone, whatever a join makes of it: a new
    one if it may be unbound, and else itself."""
    renaming = {name: name for name in rows.names}
    used_names = set(rows.names)
    for name in (name for name in rows.names if name in rows.maybe):
        while renaming[name] in used_names:
            renaming[name] = Own(f"{renaming[name].name}'")
        used_names.add(renaming[name])
    return renaming


def with_own(draft: Draft, rows: Rows, names: Sequence[Variable]) -> Rows:
    """The rows with just these of their columns, and behind them those that `own` gives names of their own."""
    renaming = own(rows)
    all_columns = (*names, *(name for name in names if renaming[name] != name))
    columns = tuple(rows.names.index(name) for name in all_columns)
    column_names = (*names, *(renaming[name] for name in all_columns[len(names) :]))
    node = rows.node if columns == tuple(range(len(rows.names))) else draft.add(ops.Project(columns), rows.node)
    return Rows(node, column_names, rows.maybe & set(names), rows.origin)


def loose(left: Rows, right: Rows) -> list[Variable]:
    """The variables that both have columns for, and that may be unbound in one of them."""
    unsure = left.maybe | right.maybe
    return [name for name in left.names if name in unsure and name in right.names] if unsure else []


def join(draft: Draft, left: Rows, right: Rows) -> Rows:
    """The natural join: the pairs of compatible rows."""
    cases = pairs(draft, left, right)
    assert cases is not None, "rows without a variable in common are compatible"
    return cases


def pairs(draft: Draft, left: Rows, right: Rows, counting: frozenset[Variable] | None = None) -> Rows | None:
    """The pairs of compatible rows. counting: those only in which one of these variables is bound on both sides (None:
    all). None: there are none."""
    unsure = loose(left, right)
    sure = [name for name in left.names if name in right.names and name not in unsure]
    if counting is not None and counting.intersection(sure):
        counting = None
    if not unsure:
        return _natural(draft, left, right) if counting is None else None
    if sure or len(unsure) > MOST:
        return _tested(draft, left, right, unsure, counting)
    first = unsure[0]
    counted_here = None if counting is None or first in counting else counting
    cases = [pairs(draft, _bound(draft, left, first), _bound(draft, right, first), counted_here)]
    if first in left.maybe:
        cases.append(pairs(draft, _unbound(draft, left, first), right, counting))
    if first in right.maybe:
        cases.append(pairs(draft, _bound(draft, left, first), _unbound(draft, right, first), counting))
    matching_cases = [case for case in cases if case is not None]
    names = (*left.names, *(name for name in right.names if name not in left.names))
    return replace(union(draft, matching_cases, names), origin=right.origin) if matching_cases else None


def absent(
    draft: Draft,
    left: Rows,
    right: Rows,
    condition: Call | None = None,
    counting: frozenset[Variable] | None = None,
) -> Rows:
    """The left rows that are in no pair of compatible rows for which the condition is true. counting: as in `pairs`."""
    unsure = loose(left, right)
    if counting is not None and counting & left.sure & right.sure:
        counting = None
    if not unsure:
        return _absent(draft, left, right, condition) if counting is None else left
    if len(unsure) > MOST:
        pair_cases = pairs(draft, with_own(draft, left, left.names), right, counting)
        return left if pair_cases is None else without(draft, left, tested(draft, pair_cases, condition))
    first = next((name for name in unsure if name in left.maybe), unsure[0])
    if first in left.maybe:
        cases = (_bound(draft, left, first), _unbound(draft, left, first))
        all_columns = union(draft, [absent(draft, case, right, condition, counting) for case in cases], left.names)
        return replace(left, node=all_columns.node)
    left = absent(draft, left, _bound(draft, right, first), condition, counting)
    return absent(draft, left, _unbound(draft, right, first), condition, counting)


def given_as(seed: Rows) -> list[tuple[Variable, Variable]]:
    """The variables of a seed (`with_own`) that need not be bound, each with what holds the value that it was given."""
    names = [name for name in seed.names if name in seed.maybe]
    return list(zip(names, seed.names[len(seed.names) - len(names) :], strict=True))


def apart_from(
    draft: Draft, left: Rows, right: Rows, counting: frozenset[Variable], renamings: Sequence[tuple[Variable, Variable]]
) -> Rows:
    """The left rows that are in no pair in which a variable counts (MINUS). told: variables with what holds the value
    that they were given from around an EXISTS: where there is one, it stands for the variable, which does not count
    (SPARQL 1.1, section 18.6, substitute)."""
    if not renamings:
        return absent(draft, left, right, counting=counting)
    (name, renamed), *other_renamings = renamings
    replaced = replace(left, node=_test(draft, left, BOUND, (renamed,)))
    free = replace(left, node=_test(draft, left, UNBOUND.iri, (renamed,)))
    cases = [
        apart_from(draft, replaced, right, counting - {name}, other_renamings),
        apart_from(draft, free, right, counting, other_renamings),
    ]
    return replace(left, node=union(draft, cases, left.names).node)


def _absent(draft: Draft, left: Rows, right: Rows, condition: Call | None) -> Rows:
    if condition is None:
        return replace(left, node=draft.add(ops.AntiJoin(shared(left, right)), left.node, right.node))
    marker = Own("there")
    marked = replace(right, node=draft.add(ops.Extend(TRUE), right.node), names=(*right.names, marker))
    joined = left_join(draft, left, marked, condition)
    alone = replace(left, node=_test(draft, joined, UNBOUND.iri, (marker,)), names=joined.names)
    return columns_as(draft, alone, left.names)


def without(draft: Draft, rows: Rows, matched: Rows) -> Rows:
    """The rows that are in no pair, where the pairs are made of the rows with what is their own (`with_own`): what is
    unbound in one is unbound in the other."""
    on = tuple((column, matched.names.index(renamed)) for column, renamed in enumerate(own(rows).values()))
    return replace(rows, node=draft.add(ops.AntiJoin(on), rows.node, matched.node))


def left_join(draft: Draft, left: Rows, right: Rows, condition: Call | None) -> Rows:
    """The pairs of compatible rows for which the condition is true, and the left rows that are in none of them."""
    unsure = loose(left, right)
    maybe = left.maybe | (right.known - left.sure)
    if not unsure:
        op, names = join_of(left, right)
        computed = None if condition is None else condition_of(condition, names)
        node = draft.add(ops.LeftJoin(op.on, op.keep, computed), left.node, right.node)
        return Rows(node, names, maybe, left.origin)
    first = next((name for name in unsure if name in left.maybe), None)
    if first is not None and len(unsure) <= MOST:
        cases = (_bound(draft, left, first), _unbound(draft, left, first))
        joined_cases = [left_join(draft, case, right, condition) for case in cases]
    else:
        joined_cases = [tested(draft, join(draft, left, right), condition), absent(draft, left, right, condition)]
    names = (*left.names, *(name for name in right.names if name not in left.names))
    return replace(union(draft, joined_cases, names), maybe=maybe, origin=left.origin)


def tested(draft: Draft, rows: Rows, condition: Call | None) -> Rows:
    """The rows for which the condition is true."""
    if condition is None:
        return rows
    return replace(rows, node=draft.add(ops.Filter(condition_of(condition, rows.names)), rows.node))


def _natural(draft: Draft, left: Rows, right: Rows) -> Rows:
    op, names = join_of(left, right)
    return Rows(draft.add(op, left.node, right.node), names, maybe_of(left, right), right.origin)


def _bound(draft: Draft, rows: Rows, name: Variable) -> Rows:
    """The rows in which the variable is bound."""
    if name not in rows.maybe:
        return rows
    return replace(rows, node=_test(draft, rows, BOUND, (name,)), maybe=rows.maybe - {name})


def _unbound(draft: Draft, rows: Rows, name: Variable) -> Rows:
    """The rows in which the variable is unbound, without its column."""
    unbound_rows = replace(rows, node=_test(draft, rows, UNBOUND.iri, (name,)))
    return columns_as(draft, unbound_rows, [column_name for column_name in rows.names if column_name != name])


def _test(draft: Draft, rows: Rows, function: str, names: Iterable[Variable]) -> str:
    columns = tuple(Column(rows.names.index(name)) for name in names)
    return draft.add(ops.Filter(Invoke(function, columns)), rows.node)


def _tested(
    draft: Draft, left: Rows, right: Rows, unsure: Sequence[Variable], counting: frozenset[Variable] | None
) -> Rows:
    """The pairs of rows that agree on what is bound in all of them, tested for the others."""
    right_names = {name: Own(f"right {name.name}") for name in unsure}
    column_names = tuple(right_names.get(name, name) for name in right.names)
    apart = replace(right, names=column_names, maybe=frozenset(right_names.get(name, name) for name in right.maybe))
    joined = _natural(draft, left, apart)
    if counting is not None:
        counted_names = [item for name in unsure if name in counting for item in (name, right_names[name])]
        joined = replace(joined, node=_test(draft, joined, MEET.iri, counted_names))
    return replace(agreeing(draft, joined, left, right_names), origin=right.origin)


def agreeing(draft: Draft, rows: Rows, left: Rows, right_names: Mapping[Variable, Variable]) -> Rows:
    """The rows that agree on some variables of `left` and what holds them on another side; these without the latter.
    theirs: what holds each variable there, if that is another one."""
    twice = [(name, other) for name, other in right_names.items() if name != other]
    if not twice:
        return rows
    coalesced: dict[Variable, Variable] = {}
    maybe = rows.maybe
    for name, other in twice:
        rows = replace(rows, node=_test(draft, rows, COMPATIBLE.iri, (name, other)))
    for name, other in twice:
        coalesced[name] = name
        if name not in left.sure:
            coalesced[name] = Own(f"of both {name.name}")
            value = Invoke(COALESCE, tuple(Column(rows.names.index(column)) for column in (name, other)))
            node = draft.add(ops.Extend(value, keep_unbound=True), rows.node)
            rows = replace(rows, node=node, names=(*rows.names, coalesced[name]))
        if other not in maybe or name not in maybe:
            maybe -= {name}
    hidden_names = {other for _, other in twice} | set(coalesced.values())
    names = [name for name in rows.names if name in coalesced or name not in hidden_names]
    laid = columns_as(draft, rows, [coalesced.get(name, name) for name in names])
    return Rows(laid.node, tuple(names), maybe - hidden_names, rows.origin)
