"""The orders of a body that are least, whatever the order in which it is written and the names of its variables.

Joinable by joinable, what joins the rest comes first, then what most rules have, then what has the least code. Where
several are equal in that, all orders are carried on until something tells them apart: canonical labelling by search
(McKay and Piperno, "Practical graph isomorphism, II", 2014). Orders that differ only in variables that stand nowhere
else in the rule are one. Where there are still too many for a body of this size, those are carried on whose joinables
come first by what surrounds them (colour refinement); which of those that also this leaves equal may then depend on how
the rule is written. That costs sharing, never more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from squall.model import Variable
from squall.planners.lowering.columns import shared
from squall.planners.lowering.rule_plans import Rows

CARRIED = 256
"""How many orders of a body are carried on at most."""
STEPS = 600_000
"""How many steps are looked at in all, about: a long body has fewer orders carried on."""

Rank = tuple[int, int, str]
"""Of a joinable, how many patterns are like it (a negative number), how many columns it has, and its code: that with
the least rank comes first."""


@dataclass(frozen=True)
class Leaf:
    """A joinable that has been planned. forms: one node, with its variables in each way that makes no difference."""

    rank: Rank
    forms: tuple[Rows, ...]


@dataclass(frozen=True)
class Order:
    """A body in some order: the columns that its joins have made so far, what is joined, and the rest.

    chosen: of what is joined, its number in the body and the number of its form. left: the numbers of the rest.
    """

    names: tuple[Variable, ...] = ()
    joined: tuple[Rows, ...] = ()
    known: frozenset[Variable] = frozenset()
    chosen: tuple[tuple[int, int], ...] = ()
    left: tuple[int, ...] = ()


Marks = list[list[tuple[object, ...]]]
"""For each joinable and each of its forms what it has in common with those that differ in private variables alone."""


class Step(NamedTuple):
    """A joinable, by its number, that could come next in an order, in one of its forms."""

    code: Any
    """That with the least code comes next."""
    order: Order
    number: int
    form: int
    rows: Rows


def least(leaves: Sequence[Leaf], seed: Rows | None, private: Callable[[], Collection[Variable]]) -> list[Order]:
    """The orders of a body that are least. seed: rows that are joined first. private: the variables that stand in one
    place of the rule alone."""
    first = Order(left=tuple(range(len(leaves))))
    if seed is not None:
        first = replace(first, names=seed.names, joined=(seed,), known=frozenset(seed.names))
    orders = [first]
    marks: Marks = []
    for _ in leaves:
        steps = _least(step for order in orders for step in _steps(order, leaves))
        if len(steps) > 1:
            marks = marks or [_marks(leaf, private()) for leaf in leaves]
            steps = _least(map(_joining, _apart(steps, marks)))
        orders = _carried(list(map(_with, steps)), leaves, marks) if len(steps) > 1 else [_with(steps[0])]
    return orders


def _steps(order: Order, leaves: Sequence[Leaf]) -> Iterator[Step]:
    """Each joinable that could come next: what has a variable in common with the rest is first, and then the rank."""
    for number in order.left:
        leaf = leaves[number]
        for form, rows in enumerate(leaf.forms):
            apart = bool(order.joined and rows.names) and order.known.isdisjoint(rows.names)
            yield Step((apart, leaf.rank), order, number, form, rows)


def _joining(step: Step) -> Step:
    """The step, with what it joins on as its code."""
    return step._replace(code=shared(Rows("", step.order.names), step.rows))


def _least(steps: Iterable[Step]) -> list[Step]:
    """The steps with the least code."""
    steps_list = list(steps)
    least = min(step.code for step in steps_list)
    return [step for step in steps_list if step.code == least]


def _with(step: Step) -> Order:
    """The order with the joinable next."""
    order, rows = step.order, step.rows
    return Order(
        (*order.names, *(name for name in rows.names if name not in order.known)),
        (*order.joined, rows),
        order.known.union(rows.names),
        (*order.chosen, (step.number, step.form)),
        tuple(number for number in order.left if number != step.number),
    )


def _apart(steps: Iterable[Step], marks: Marks) -> Iterable[Step]:
    """Of the steps of an order that are alike but for private variables the first."""
    distinct_steps: dict[tuple[int, object], Step] = {}
    for step in steps:
        distinct_steps.setdefault((id(step.order), marks[step.number][step.form]), step)
    return distinct_steps.values()


def _carried(orders: Sequence[Order], leaves: Sequence[Leaf], marks: Marks) -> list[Order]:
    """Of orders that are alike but for private variables the first, and not too many."""
    apart: dict[tuple[object, ...], Order] = {}
    for order in orders:
        apart.setdefault(tuple(marks[number][form] for number, form in order.chosen), order)
    carried = list(apart.values())
    most = max(1, min(CARRIED, STEPS // len(leaves) ** 2))
    if len(carried) > most:
        colours = _colours(leaves)
        carried.sort(key=lambda order: [colours[number] for number, _ in order.chosen])
    return carried[:most]


def _marks(leaf: Leaf, private: Collection[Variable]) -> list[tuple[object, ...]]:
    forms = [(rows.node, *(None if name in private else name for name in rows.names)) for rows in leaf.forms]
    return [(form, *sorted(forms, key=repr)) for form in forms]


def _colours(leaves: Sequence[Leaf]) -> list[int]:
    """A number for each joinable: the same for those that neither their rank tells apart, nor what joins them, nor what
    joins that."""
    colours = _numbered([leaf.rank for leaf in leaves])
    while True:
        places: defaultdict[Variable, list[tuple[int, int]]] = defaultdict(list)
        for colour, leaf in zip(colours, leaves, strict=True):
            for rows in leaf.forms:
                for place, name in enumerate(rows.names):
                    places[name].append((colour, place))
        around = dict(zip(places, _numbered([sorted(position_list) for position_list in places.values()]), strict=True))
        colour_keys = [
            (colour, sorted([around[name] for name in rows.names] for rows in leaf.forms))
            for colour, leaf in zip(colours, leaves, strict=True)
        ]
        refined = _numbered(colour_keys)
        if len(set(refined)) == len(set(colours)):
            return colours
        colours = refined


def _numbered(codes: Sequence[Any]) -> list[int]:
    """For each code its number among all that there are, in their order."""
    numbers: dict[str, int] = {}
    for code in sorted(codes):
        numbers.setdefault(repr(code), len(numbers))
    return [numbers[repr(code)] for code in codes]
