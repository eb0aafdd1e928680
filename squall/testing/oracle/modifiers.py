"""Solution modifiers: groups, sets, order and slices (SPARQL 1.1, section 15)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from squall.functions.ordering import key
from squall.model import Construct, Grouping, Order, Select, System, Variable, is_update, variables, visible
from squall.rdf import Term
from squall.testing.oracle.base import Bindings, Instant, once
from squall.testing.oracle.expressions import aggregated, term_of


def projected(names: Sequence[Variable], solutions: list[Bindings]) -> list[Bindings]:
    return [{name: solution[name] for name in names if name in solution} for solution in solutions]


def sliced(part: System, found: list[Bindings], instant: Instant) -> list[Bindings]:
    selected = next((one.variables for one in part.consequences if isinstance(one, Select)), None)
    if part.distinct:
        found = once(found if selected is None else projected(selected, found))
    if part.slice is not None:
        order, names = part.slice.order, selected or _told_apart(part)
        found = sorted(found, key=lambda one: (*(_Key(by, one, instant) for by in order), _text(names, one)))
        last = math.inf if part.slice.limit is None else part.slice.offset + part.slice.limit
        keys = [_text(part.slice.keys, one) for one in found]
        places = [keys[:number].count(key) for number, key in enumerate(keys)]
        found = [one for one, place in zip(found, places, strict=True) if part.slice.offset <= place < last]
    return found if selected is None else projected(selected, found)


class _Key:
    """The sort key of a solution by one expression."""

    def __init__(self, by: Order, solution: Bindings, instant: Instant) -> None:
        self.key = key(term_of(by.expression, solution, instant))
        self.descending = by.descending

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key

    def __lt__(self, other: _Key) -> bool:
        return bool(self.key > other.key if self.descending else self.key < other.key)


def _told_apart(part: System) -> tuple[Variable, ...]:
    """The variables by whose text solutions without `Select` are put in order: all of an update, those of templates of
    facts, or else all."""
    if is_update(part):
        return visible(part)
    made = [template for one in part.consequences if isinstance(one, Construct) for template in one.template]
    return tuple(dict.fromkeys(name for template in made for name in variables(template))) or visible(part)


def _text(names: Sequence[Variable], solution: Bindings) -> tuple[str, ...]:
    return tuple(solution.get(name, "") for name in names)


def grouped(grouping: Grouping, found: list[Bindings], instant: Instant) -> list[Bindings]:
    groups: dict[tuple[Term | None, ...], list[Bindings]] = {} if grouping.keys else {(): []}
    for solution in found:
        groups.setdefault(tuple(solution.get(name) for name in grouping.keys), []).append(solution)
    result = []
    for names, members in groups.items():
        row = dict(zip(grouping.keys, names, strict=True))
        row |= {aggregate.variable: aggregated(aggregate, members, instant) for aggregate in grouping.aggregates}
        result.append({name: value for name, value in row.items() if value is not None})
    return result
