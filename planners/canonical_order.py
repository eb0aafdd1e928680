"""The canonical join orders of a body, independent of the order of its text and of the names of its variables.

A joinable that shares a variable with the ones before it comes first, then the one that most rules have, then the one
with the least code. All orders that are equal so far are continued until something distinguishes them. This is
canonical labelling by search (McKay and Piperno, "Practical graph isomorphism, II", 2014).

Orders that differ only in single-use variables count as one. If there are still too many orders for a body of this
size, colour refinement ranks them by the surroundings of their joinables, and only the first are continued. The choice
among those that are equal even then may depend on how the rule is written. That costs sharing, but no correctness.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from squall.model import Variable
from squall.planners.lowering.columns import shared_columns
from squall.planners.lowering.rule_plans import Rows

MAX_ORDERS = 256
"""The largest number of orders of a body that are continued."""
MAX_STEPS = 600_000
"""About the largest number of search steps in all. A long body has fewer orders continued."""

Rank = tuple[int, int, str]
"""The rank of a joinable: the negated number of patterns like it, its number of columns, and its code. The least comes
first.
"""


@dataclass(frozen=True)
class PlannedJoinable:
    """A joinable of a body that has been planned.

    Attributes:
        rank: The rank of the joinable.
        forms: One node, with its variables in each assignment to columns that means the same.
    """

    rank: Rank
    forms: tuple[Rows, ...]


@dataclass(frozen=True)
class JoinOrder:
    """A body of which some joinables are in order.

    Attributes:
        names: The columns of the join so far.
        joined: The joined rows, in order.
        variables: The variables that the join binds.
        choices: For each joined joinable its number in the body and the number of its form.
        remaining: The numbers of the other joinables.
    """

    names: tuple[Variable, ...] = ()
    joined: tuple[Rows, ...] = ()
    variables: frozenset[Variable] = frozenset()
    choices: tuple[tuple[int, int], ...] = ()
    remaining: tuple[int, ...] = ()


Signatures = list[list[tuple[object, ...]]]
"""For each joinable and each of its forms a value that is equal for forms that differ only in single-use variables."""


class Candidate(NamedTuple):
    """A joinable, by its number, that could come next in an order, in one of its forms."""

    code: Any
    """The sort key: the candidate with the least code comes next."""
    order: JoinOrder
    number: int
    form: int
    rows: Rows


def least_orders(
    joinables: Sequence[PlannedJoinable], correlated: Rows | None, local_variables: Callable[[], Collection[Variable]]
) -> list[JoinOrder]:
    """Returns the least join orders of a body.

    Args:
        joinables: The joinables of the body.
        correlated: Rows that are joined first.
        local_variables: Returns the variables that occur only once in the rule.
    """
    first = JoinOrder(remaining=tuple(range(len(joinables))))
    if correlated is not None:
        first = replace(first, names=correlated.names, joined=(correlated,), variables=frozenset(correlated.names))
    orders = [first]
    signatures: Signatures = []
    for _ in joinables:
        candidates = _least_candidates(step for order in orders for step in _candidates(order, joinables))
        if len(candidates) > 1:
            signatures = signatures or [_signatures(joinable, local_variables()) for joinable in joinables]
            candidates = _least_candidates(map(_with_join_code, _distinct_candidates(candidates, signatures)))
        orders = (
            _limited(list(map(_extended, candidates)), joinables, signatures)
            if len(candidates) > 1
            else [_extended(candidates[0])]
        )
    return orders


def _candidates(order: JoinOrder, joinables: Sequence[PlannedJoinable]) -> Iterator[Candidate]:
    """Yields each joinable that could come next. Its code is whether it shares no variable, and then its rank."""
    for number in order.remaining:
        joinable = joinables[number]
        for form, rows in enumerate(joinable.forms):
            is_separate = bool(order.joined and rows.names) and order.variables.isdisjoint(rows.names)
            yield Candidate((is_separate, joinable.rank), order, number, form, rows)


def _with_join_code(candidate: Candidate) -> Candidate:
    """Returns the candidate with the columns that it joins on as its code."""
    return candidate._replace(code=shared_columns(Rows("", candidate.order.names), candidate.rows))


def _least_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Returns the candidates with the least code."""
    candidate_list = list(candidates)
    least_code = min(step.code for step in candidate_list)
    return [step for step in candidate_list if step.code == least_code]


def _extended(candidate: Candidate) -> JoinOrder:
    """Returns the order with the candidate as its next joinable."""
    order, rows = candidate.order, candidate.rows
    return JoinOrder(
        (*order.names, *(name for name in rows.names if name not in order.variables)),
        (*order.joined, rows),
        order.variables.union(rows.names),
        (*order.choices, (candidate.number, candidate.form)),
        tuple(number for number in order.remaining if number != candidate.number),
    )


def _distinct_candidates(candidates: Iterable[Candidate], signatures: Signatures) -> Iterable[Candidate]:
    """Returns the first of the candidates of each order that differ only in single-use variables."""
    distinct: dict[tuple[int, object], Candidate] = {}
    for step in candidates:
        distinct.setdefault((id(step.order), signatures[step.number][step.form]), step)
    return distinct.values()


def _limited(
    orders: Sequence[JoinOrder], joinables: Sequence[PlannedJoinable], signatures: Signatures
) -> list[JoinOrder]:
    """Returns the first of the orders that differ only in single-use variables, and not too many of them."""
    distinct_orders: dict[tuple[object, ...], JoinOrder] = {}
    for order in orders:
        distinct_orders.setdefault(tuple(signatures[number][form] for number, form in order.choices), order)
    result = list(distinct_orders.values())
    max_orders = max(1, min(MAX_ORDERS, MAX_STEPS // len(joinables) ** 2))
    if len(result) > max_orders:
        colours = _colours(joinables)
        result.sort(key=lambda order: [colours[number] for number, _ in order.choices])
    return result[:max_orders]


def _signatures(joinable: PlannedJoinable, local_variables: Collection[Variable]) -> list[tuple[object, ...]]:
    forms = [
        (rows.node, *(None if name in local_variables else name for name in rows.names)) for rows in joinable.forms
    ]
    return [(form, *sorted(forms, key=repr)) for form in forms]


def _colours(joinables: Sequence[PlannedJoinable]) -> list[int]:
    """Returns a colour for each joinable by colour refinement.

    Two joinables have the same colour if neither their rank, nor what joins them, nor what joins that distinguishes
    them.
    """
    colours = _numbered([joinable.rank for joinable in joinables])
    while True:
        places: defaultdict[Variable, list[tuple[int, int]]] = defaultdict(list)
        for colour, joinable in zip(colours, joinables, strict=True):
            for rows in joinable.forms:
                for place, name in enumerate(rows.names):
                    places[name].append((colour, place))
        around = dict(zip(places, _numbered([sorted(position_list) for position_list in places.values()]), strict=True))
        colour_keys = [
            (colour, sorted([around[name] for name in rows.names] for rows in joinable.forms))
            for colour, joinable in zip(colours, joinables, strict=True)
        ]
        refined = _numbered(colour_keys)
        if len(set(refined)) == len(set(colours)):
            return colours
        colours = refined


def _numbered(codes: Sequence[Any]) -> list[int]:
    """Returns the number of each code among the distinct codes, in their order."""
    numbers: dict[str, int] = {}
    for code in sorted(codes):
        numbers.setdefault(repr(code), len(numbers))
    return [numbers[repr(code)] for code in codes]
