"""What an aggregate is: a function over the values of a group, maintained incrementally while they change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from squall.errors import BuilderError
from squall.rdf import Term

T = TypeVar("T", str, str | None)


class Accumulator:
    """One aggregate of one group.

    Attributes:
        members: The number of solutions in the group.
    """

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members = 0

    def add(self, value: str | None, weight: int) -> None:
        """Adds a value (None: an error) `weight` times; a negative weight removes it.

        Changes add up in any order. A change costs amortised O(log n) at most, with n values.
        """
        self.members += weight
        self.apply(value, weight)

    def apply(self, value: str | None, weight: int) -> None:
        """Does what `add` does besides counting members."""
        raise NotImplementedError

    def value(self) -> Term | None:
        """Returns the aggregate of the group; None if it has no value."""
        raise NotImplementedError

    def empty(self) -> bool:
        """Returns whether the group is empty."""
        return self.members == 0


class StoredValues(Accumulator):
    """An aggregate that is computed from the multiset of a group's values. An error among them is one of the aggregate.

    Attributes:
        counts: How often the group has each value.
        errors: The number of errors.
    """

    __slots__ = ("counts", "errors")

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0
        self.counts: dict[str, int] = {}

    def apply(self, value: str | None, weight: int) -> None:
        if value is None:
            self.errors += weight
        else:
            transition(self.counts, value, weight)

    def value(self) -> Term | None:
        return None if self.errors else self.of_values()

    def of_values(self) -> Term | None:
        """Returns the aggregate of values without errors."""
        raise NotImplementedError

    def sort(self, order: Callable[[str], Any]) -> None:
        """Sorts the values by a key, so that no result depends on when they came. The next sort takes linear time."""
        self.counts = dict(sorted(self.counts.items(), key=lambda item: order(item[0])))


class DistinctValues(Accumulator):
    """Another aggregate, in which each term counts once."""

    __slots__ = ("counts", "of")

    def __init__(self, of: Accumulator) -> None:
        super().__init__()
        self.of = of
        self.counts: dict[str | None, int] = {}

    def apply(self, value: str | None, weight: int) -> None:
        step = transition(self.counts, value, weight)
        if step:
            self.of.add(value, step)

    def value(self) -> Term | None:
        return self.of.value()


def transition(counts: dict[T, int], value: T, weight: int) -> int:
    """Changes the count of a value. Returns 1 if the value appears, -1 if it disappears, and 0 otherwise."""
    old = counts.get(value, 0)
    new = old + weight
    if new:
        counts[value] = new
    elif old:
        del counts[value]
    return (new > 0) - (old > 0)


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate of the values of a group (SPARQL 1.1, section 18.5.1).

    Its value must not depend on the order of the values, so that all builders return the same.

    Attributes:
        iri: Its IRI. SPARQL's own aggregates have their keyword in lower case instead (``count``).
        values: Returns an empty accumulator of values. It takes the separator if `has_separator`.
        least: The least number of arguments. If an aggregate may have another number than one, its values are the
            compound terms of `squall.functions.user_aggregates.ARGUMENTS` and the arguments.
        most: The greatest number of arguments; None: any number.
        solutions: Returns an empty accumulator of solutions, for ``*``. None: the aggregate needs an argument.
        has_separator: Whether a text between the values is a part of the call.
        ignores_duplicates: Whether the value is the same if equal values count once.
        presence_only: Whether it reads of a value only whether there is one.
        always_bound: Whether every group has a value.
        bound_if_values_are: Whether a group has a value if it has members, and all of their values are bound.
        doc: A description for people.
    """

    iri: str
    values: Callable[..., Accumulator]
    least: int = 1
    most: int | None = 1
    solutions: Callable[[], Accumulator] | None = None
    has_separator: bool = False
    ignores_duplicates: bool = False
    presence_only: bool = False
    always_bound: bool = False
    bound_if_values_are: bool = False
    doc: str = ""

    @property
    def takes_compounds(self) -> bool:
        """Whether its values are compound terms of arguments."""
        return (self.least, self.most) != (1, 1)

    def accumulator(self, *, of_solutions: bool = False, distinct: bool = False, separator: str = " ") -> Accumulator:
        """Returns an empty accumulator.

        Args:
            of_solutions: Whether it counts solutions, in place of the values of an expression.
            distinct: Whether equal values count once.
            separator: The text between the values.

        Raises:
            BuilderError: The aggregate needs an argument, or it is one of distinct solutions: it receives values, not
                solutions.
        """
        if of_solutions:
            if self.solutions is None or distinct:
                call = f"{self.iri}({'DISTINCT ' if distinct else ''}*)"
                raise BuilderError(f"the aggregate `{call}` is not supported", hint="give it an expression")
            return self.solutions()
        values = self.values(separator) if self.has_separator else self.values()
        return DistinctValues(values) if distinct and not self.ignores_duplicates else values
