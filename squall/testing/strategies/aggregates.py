"""Aggregates of a user for drawn programs: one that is updated, and one that is computed anew."""

from __future__ import annotations

from functools import cache

from squall import functions
from squall.functions import values
from squall.rdf import Term, literal, parts

_NAMESPACE = "urn:x-squall:testing:"


class _Length:
    """The number of characters of all values. It fails for an IRI."""

    def __init__(self) -> None:
        self.members = 0
        self.characters = 0

    def add(self, value: Term) -> None:
        self.members += 1
        self.characters += len(parts(value).lexical)

    def remove(self, value: Term) -> None:
        self.members -= 1
        self.characters -= len(parts(value).lexical)

    def result(self) -> Term | None:
        return values.integer(self.characters) if self.members else None


def _ends(terms: list[Term]) -> Term:
    """Returns the first and the last value, and how many there are."""
    return literal(" ".join((*terms[:1], *terms[1:][-1:], str(len(terms)))))


@cache
def user_aggregates() -> tuple[str, ...]:
    """Returns the IRIs of the aggregates, which are registered."""
    aggregates = (
        functions.aggregate_of(f"{_NAMESPACE}length", _Length),
        functions.aggregate_of(f"{_NAMESPACE}ends", _ends),
    )
    functions.register(*aggregates)
    return tuple(aggregate.iri for aggregate in aggregates)
