"""Entries: rows with their validity, as flat tuples; and how facts, solutions and rows become one another.

An *entry* is (*row, start, end, weight): the row is valid over [start, end) `weight` times more than before; a negative
weight takes validity back. Flat, because most of the time of most programs goes into making and taking apart entries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, cast

from squall.builders.runtime.intervals import Steps, add_step, levels
from squall.functions.sparql.names import TRUE
from squall.rdf import ALWAYS, FOREVER, Atom, Boolean, Evaluated, Fact, Quad, Solution, Term, Triple
from squall.rdf.row_tags import ASK_TAG, QUAD_TAG, QUERY_SEPARATOR, SOLUTION_TAG, solution_tag

Row = tuple[str | None, ...]
Delta = tuple[Any, ...]
Boxes = dict[Term, list[Delta]]
"""Triples by predicate, as (subject, object, start, end, weight)."""

UNIT: Delta = (ALWAYS, FOREVER, 1)
"""The entry of the row without columns."""


def fact_row(fact: Fact, rule: str = "") -> Row:
    """A triple as (s, p, o, rule), an atom as (``@relation``, arguments..., rule). rule: the name of one that made
    it."""
    return (*fact, rule) if isinstance(fact, Triple) else (f"@{fact.relation}", *fact.arguments, rule)


def row_fact(row: Sequence[Any]) -> Fact | Quad | Solution | Boolean:
    """The fact, solution or answer of a row, without the name of a rule behind it."""
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
    """The row of which `row_fact` makes the answer; a solution's without the name of its query."""
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
            raise ValueError("that an evaluation is complete is no answer")


def is_rdf(row: Sequence[Any]) -> bool:
    """Whether a row may be in an answer. What is no RDF triple (a literal as its subject, anything but an IRI as its
    predicate) or quad (a literal as its graph) can be read by rules, but stays inside (generalised RDF: RDF 1.1
    Concepts, section 7)."""
    if row[0] == QUAD_TAG:
        return row[1][0] != '"' and is_rdf(row[2:])
    first = row[0][0]
    return first in "@?!" or (first != '"' and row[1][0] == "<")


new_tuple = cast(Callable[[type[Any], Sequence[Any]], Any], tuple.__new__)  # faster than `_make` of a named tuple
triple = cast(Callable[[Sequence[Any]], Triple], partial(new_tuple, Triple))


def key_of(columns: Sequence[int]) -> Callable[[Sequence[Any]], Hashable]:
    """The function that gives what two rows have to agree on."""
    return itemgetter(*columns) if columns else lambda row: ()


def with_unit_weights(entries: Iterable[Delta]) -> list[Delta]:
    """Entries of weight 1: a store that adds entries up makes one of several."""
    return [(*delta[:-1], 1) for delta in entries for _ in range(delta[-1])]


def consolidate(entries: Iterable[Delta]) -> list[Delta]:
    """Entries that add up to the same, none of which take back another."""
    steps: dict[Delta, Steps] = {}
    for entry in entries:
        *_, start, end, weight = entry
        add_step(steps.setdefault(entry[:-3], {}), start, end, weight)
    return [(*row, start, end, count) for row, row_steps in steps.items() for start, end, count in levels(row_steps)]
