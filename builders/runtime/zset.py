"""Rows and Z-set deltas: rows with a validity interval and an integer weight.

A delta is a row followed by ``start, end, weight``: the row is valid `weight` times more over [start, end). Times are
integer ms. Deltas add up in any order (the weighted rows of Budiu et al., "DBSP", 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress, count, repeat
from operator import eq, itemgetter
from typing import Any, cast

from squall.builders.runtime.intervals import Steps, add_step, levels
from squall.functions.sparql.names import TRUE
from squall.rdf import ALWAYS, FOREVER, Atom, Boolean, Evaluated, Fact, Quad, Solution, Term, Triple
from squall.rdf.row_tags import ASK_TAG, QUAD_TAG, QUERY_SEPARATOR, SOLUTION_TAG, solution_tag

Row = tuple[str | None, ...]
Delta = tuple[Any, ...]
Boxes = dict[Term, list[Delta]]
"""Triples by predicate, as (subject, object, start, end, weight)."""


class ColumnarPairs:
    """Triples of one predicate as pairs (`Boxes`), in the columns of all the triples that
    came with them. Nothing is copied until somebody reads the pairs.

    Args:
        predicate: The predicate.
        predicates: The predicate of each triple.
        columns: The subjects and the objects, since when each triple is valid, and until when.
    """

    __slots__ = ("columns", "predicate", "predicates")

    def __init__(self, predicate: Term, predicates: Sequence[Term], columns: tuple[Sequence[Any], ...]) -> None:
        self.predicate = predicate
        self.predicates = predicates
        self.columns = columns

    def __len__(self) -> int:
        return self.predicates.count(self.predicate)

    def __bool__(self) -> bool:
        return self.predicate in self.predicates

    def __iter__(self) -> Iterator[Delta]:
        selectors = list(map(eq, self.predicates, repeat(self.predicate)))
        return zip(*(compress(column, selectors) for column in self.columns), repeat(1), strict=False)

    @property
    def earliest(self) -> int:
        """A time (integer ms) before which no pair is valid."""
        return cast(int, min(self.columns[2]))

    @property
    def latest(self) -> int:
        """A time (integer ms) after which no pair begins to be valid."""
        return cast(int, max(self.columns[2]))

    def with_term(self, place: int, terms: Container[Hashable]) -> list[Delta]:
        """Returns the pairs whose subject (place 0) or object (1) is one of some terms."""
        subjects, objects, starts, ends = self.columns
        places = compress(count(), map(terms.__contains__, self.columns[place]))
        own = [place for place in places if self.predicates[place] == self.predicate]
        return [(subjects[place], objects[place], starts[place], ends[place], 1) for place in own]


Pairs = Sequence[Delta] | ColumnarPairs
"""Triples of one predicate."""

UNIT: Delta = (ALWAYS, FOREVER, 1)
"""The delta of the row without columns."""


def fact_row(fact: Fact, rule: str = "") -> Row:
    """Returns a triple as (s, p, o, rule) and an atom as (``@relation``, arguments..., rule).

    Args:
        fact: The triple or atom.
        rule: The name of a rule that derived it.
    """
    return (*fact, rule) if isinstance(fact, Triple) else (f"@{fact.relation}", *fact.arguments, rule)


def row_fact(row: Sequence[Any]) -> Fact | Quad | Solution | Boolean:
    """Returns the fact, solution or answer of a row that has no rule name behind it."""
    first = row[0]
    if first[0] == "@":
        if first == QUAD_TAG:
            graph, subject, predicate, object = row[1:]
            return Quad(subject, predicate, object, graph)
        return Atom(Term(first[1:]), tuple(row[1:]))
    if first[0] == SOLUTION_TAG:
        return Solution(tuple(first[1:].partition(QUERY_SEPARATOR)[0].split()), tuple(row[1:]))
    if first[0] == ASK_TAG:
        return Boolean(row[1] == TRUE)
    return triple(row)


def answer_row(answer: Fact | Quad | Solution | Boolean | Evaluated) -> Row:
    """Returns the row that `row_fact` turns into the answer. The row of a solution lacks the name of its query."""
    match answer:
        case Quad(subject, predicate, object, graph):
            return (QUAD_TAG, graph, subject, predicate, object)
        case Solution(names, values):
            return (solution_tag(names, ""), *values)
        case Boolean(value):
            return (ASK_TAG, TRUE if value else "")
        case Triple() | Atom():
            return fact_row(answer)[:-1]
        case Evaluated():
            raise ValueError("the mark of a complete evaluation is no answer")


def is_rdf(row: Sequence[Any]) -> bool:
    """Returns whether an answer may contain a row.

    A row may be no RDF triple (a literal as its subject, anything but an IRI as its predicate) or no RDF quad (a
    literal as its graph). Rules can read such rows, but no output has them (generalised RDF: RDF 1.1 Concepts, section
    7).
    """
    if row[0] == QUAD_TAG:
        return row[1][0] != '"' and is_rdf(row[2:])
    first = row[0][0]
    return first in "@?!" or (first != '"' and row[1][0] == "<")


new_tuple = cast(Callable[[type[Any], Sequence[Any]], Any], tuple.__new__)  # faster than `_make` of a named tuple
triple = cast(Callable[[Sequence[Any]], Triple], partial(new_tuple, Triple))


def key_of(columns: Sequence[int]) -> Callable[[Sequence[Any]], Hashable]:
    """Returns the function that computes the join key of a row."""
    return itemgetter(*columns) if columns else lambda row: ()


def with_unit_weights(deltas: Iterable[Delta]) -> list[Delta]:
    """Returns the deltas with weight 1, each as often as its weight says. A store that sums up deltas merges
    several."""
    return [(*delta[:-1], 1) for delta in deltas for _ in range(delta[-1])]


def consolidate(deltas: Iterable[Delta]) -> list[Delta]:
    """Returns deltas with the same sum of which none retracts another."""
    steps: dict[Delta, Steps] = {}
    for delta in deltas:
        *_, start, end, weight = delta
        add_step(steps.setdefault(delta[:-3], {}), start, end, weight)
    return [(*row, start, end, count) for row, row_steps in steps.items() for start, end, count in levels(row_steps)]
