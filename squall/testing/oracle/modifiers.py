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


def sliced(part: System, solutions: list[Bindings], instant: Instant) -> list[Bindings]:
    selected = next((item.variables for item in part.consequences if isinstance(item, Select)), None)
    if part.distinct:
        solutions = once(solutions if selected is None else projected(selected, solutions))
    if part.slice is not None:
        order, names = part.slice.order, selected or _sort_variables(part)
        solutions = sorted(solutions, key=lambda item: (*(_Key(by, item, instant) for by in order), _text(names, item)))
        last = math.inf if part.slice.limit is None else part.slice.offset + part.slice.limit
        keys = [_text(part.slice.keys, item) for item in solutions]
        places = [keys[:number].count(key) for number, key in enumerate(keys)]
        solutions = [item for item, place in zip(solutions, places, strict=True) if part.slice.offset <= place < last]
    return solutions if selected is None else projected(selected, solutions)


class _Key:
    """The sort key of a solution by one expression."""

    def __init__(self, by: Order, solution: Bindings, instant: Instant) -> None:
        self.key = key(term_of(by.expression, solution, instant))
        self.descending = by.descending

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key

    def __lt__(self, other: _Key) -> bool:
        return bool(self.key > other.key if self.descending else self.key < other.key)


def _sort_variables(part: System) -> tuple[Variable, ...]:
    """Returns the variables that break ties in the order of solutions without `Select`: those of the templates,
    or else all visible ones; of an update always all."""
    if is_update(part):
        return visible(part)
    templates = [
        template
        for consequence in part.consequences
        if isinstance(consequence, Construct)
        for template in consequence.template
    ]
    return tuple(dict.fromkeys(name for template in templates for name in variables(template))) or visible(part)


def _text(names: Sequence[Variable], solution: Bindings) -> tuple[str, ...]:
    return tuple(solution.get(name, "") for name in names)


def grouped(grouping: Grouping, solutions: list[Bindings], instant: Instant) -> list[Bindings]:
    groups: dict[tuple[Term | None, ...], list[Bindings]] = {} if grouping.keys else {(): []}
    for solution in solutions:
        groups.setdefault(tuple(solution.get(name) for name in grouping.keys), []).append(solution)
    result = []
    for names, members in groups.items():
        row = dict(zip(grouping.keys, names, strict=True))
        row |= {aggregate.variable: aggregated(aggregate, members, instant) for aggregate in grouping.aggregates}
        result.append({name: value for name, value in row.items() if value is not None})
    return result
