"""Aggregates that users write: a class that adds and removes values, or a function over all values of a group.

The values of a group are stored as a multiset, by which an aggregate is computed anew where it cannot be updated.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from squall.errors import PluginError
from squall.functions.aggregation import Accumulator, StoredValues, transition
from squall.functions.ordering import Key, key
from squall.functions.results import checked_term
from squall.rdf import Term, iri
from squall.rdf.compounds import parse_compound

ARGUMENTS = iri("urn:x-squall:arguments")
"""The name of the compound terms that are the values of an aggregate with several arguments."""

_LOGGER = logging.getLogger("squall.aggregates")
_logged_errors: set[tuple[str, type[Exception]]] = set()


@dataclass(frozen=True)
class UserAggregate:
    """The Python class or function of an aggregate.

    Attributes:
        iri: The IRI of the aggregate.
        body: The class or function.
        least: The least number of arguments.
    """

    iri: str
    body: Callable[..., Any]
    least: int

    def __call__(self) -> Accumulator:
        """Returns an empty accumulator."""
        return _Maintained(self) if inspect.isclass(self.body) else _Recomputed(self)

    def arguments(self, value: str) -> tuple[Term, ...]:
        """Returns the arguments that a value consists of."""
        compound = parse_compound(Term(value))
        return compound.arguments if compound is not None and compound.name == ARGUMENTS else (Term(value),)

    def log(self, error: Exception) -> None:
        """Logs why a group has no value, once for each type of error."""
        if (self.iri, type(error)) not in _logged_errors:
            _logged_errors.add((self.iri, type(error)))
            _LOGGER.warning(
                "the aggregate <%s> has no value where it fails, as here: %s: %s", self.iri, type(error).__name__, error
            )


def methods(body: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Returns the functions that take the values of a group: `add` and, if there is one, `remove`; or the body itself.

    Raises:
        PluginError: A class lacks `add` or `result`.
    """
    if not inspect.isclass(body):
        return (body,)
    missing = [name for name in ("add", "result") if not callable(getattr(body, name, None))]
    if missing:
        raise PluginError(
            f"the aggregate `{body.__name__}` has no method `{missing[0]}`",
            hint="it needs `add(value)` and `result()`; with `remove(value)` it is not computed anew after a removal",
        )
    return (body.add, body.remove) if hasattr(body, "remove") else (body.add,)  # type: ignore[attr-defined]


class _Values(StoredValues):
    """The multiset of a group's values. An exception is an error of the aggregate, too."""

    __slots__ = ("aggregate",)

    def __init__(self, aggregate: UserAggregate) -> None:
        super().__init__()
        self.aggregate = aggregate

    def of_values(self) -> Term | None:
        try:
            return checked_term(self.result(), "an aggregate")
        except Exception as error:
            self.aggregate.log(error)
            return None

    def result(self) -> object:
        """Returns the result of the user's code."""
        raise NotImplementedError

    def order(self, value: str) -> tuple[Key, ...]:
        """Returns the sort key of a value: those of its arguments."""
        return tuple(map(key, self.aggregate.arguments(value)))


class _Recomputed(_Values):
    """A function over the lists of all values of each argument."""

    __slots__ = ()

    def result(self) -> object:
        self.sort(self.order)
        arguments = self.aggregate.arguments
        rows = [row for value, count in self.counts.items() for row in count * [arguments(value)]]
        columns: Iterable[Iterable[Term]] = zip(*rows, strict=True) if rows else self.aggregate.least * [()]
        return self.aggregate.body(*map(list, columns))


class _Maintained(_Values):
    """An object of the user's class, which is updated; without a method to remove values it is replaced after removals.

    An object whose method fails is given up: it may have changed in part.

    Attributes:
        changes: How often each value has been added since the object was updated.
    """

    __slots__ = ("changes", "state")

    def __init__(self, aggregate: UserAggregate) -> None:
        super().__init__(aggregate)
        self.changes: dict[str, int] = {}
        self.state: Any = None

    def apply(self, value: str | None, weight: int) -> None:
        super().apply(value, weight)
        if value is not None and self.state is not None:
            transition(self.changes, value, weight)

    def result(self) -> object:
        state, changes = self.state, self.changes
        self.state, self.changes = None, {}
        if state is None or not (hasattr(state, "remove") or all(weight > 0 for weight in changes.values())):
            self.sort(self.order)
            state, changes = self.aggregate.body(), self.counts
        removals = [(value, weight) for value, weight in changes.items() if weight < 0]
        additions = ((value, weight) for value, weight in changes.items() if weight > 0)
        for value, weight in (*additions, *removals):
            change = state.add if weight > 0 else state.remove
            arguments = self.aggregate.arguments(value)
            for _ in range(abs(weight)):
                change(*arguments)
        self.state = state
        return state.result()
