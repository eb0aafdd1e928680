"""Terms as numbers, for engines that want them so. The clock does not run while they are made or looked up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.bench.works import Statement

Numbers = tuple[int, int, int]

LITERAL = 2**30
"""The least number of a literal; the numbers of other terms are less."""


class Dictionary:
    """A dictionary that gives each term a number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.terms: dict[int, str] = {}

    def number(self, term: str) -> int:
        existing = self.numbers.get(term)
        if existing is None:
            existing = self.numbers[term] = len(self.numbers) + (LITERAL if term[0] == '"' else 0)
            self.terms[existing] = term
        return existing

    def encode(self, statement: Statement) -> Numbers:
        subject, predicate, object = statement
        return self.number(subject), self.number(predicate), self.number(object)

    def lines(self, triples: Iterable[Numbers]) -> Iterator[str]:
        terms = self.terms
        return (f"{terms[subject]} {terms[predicate]} {terms[object]} ." for subject, predicate, object in triples)
