"""Applies a mapping without loops to many records at once, by column: three times as fast as record by record.

A column has the values of one reference in all records. Each distinct value of it becomes a term once. What makes this
impossible, such as a record that cannot be used, is left to `squall.streams.mappings.evaluation`, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, combinations, compress, repeat
from typing import Any, cast

from squall.rdf import Columns, Term
from squall.streams.mappings.evaluation import TypedText, UnusableRecord, term_function, time_function
from squall.streams.mappings.model import Constant, Path, Rule, Template, TermMap, TimeMap, references_of
from squall.streams.mappings.model import Mapping as RecordMapping

Column = Sequence[Any]
ColumnOf = Callable[[Path], Column]
"""Returns the values at a path in all records, None where there is none. It raises UnusableRecord."""

_CACHED_MAPPINGS = 64
_SURE_TIME = 2**52
"""A number that is less is a time, in each unit."""


class ColumnEvaluator:
    """A mapping, ready to be applied by column."""

    def __init__(self, mapping: RecordMapping) -> None:
        self._rules = mapping.rules
        self._time = mapping.rules[0].time

    def columns(self, column_of: ColumnOf, count: int, stream: str, time: int, own: str) -> Columns | None:
        """Returns the triples of records in the order of time; None if they have to be mapped one by one.

        Args:
            column_of: Returns the columns.
            count: The number of records.
            stream: The stream of the triples.
            time: The time (integer ms) of records without one.
            own: The suffix of the labels of blank nodes.
        """
        try:
            times = _times(self._time, column_of, count, time)
            terms = {
                term: _terms(term, column_of, count, own)
                for term in dict.fromkeys(chain(*(rule.terms for rule in self._rules)))
            }
        except UnusableRecord:
            return None
        has_all_subjects = not any(None in terms[rule.subject] for rule in self._rules if not rule.is_optional)
        if not has_all_subjects or times != sorted(times):
            return None
        return self._interleaved(times, terms, stream)

    def _interleaved(self, times: list[int], terms: Mapping[TermMap, Column], stream: str) -> Columns:
        """Returns the triples of each record behind those of the one before, without those that lack a term."""
        size = len(self._rules)
        subjects, predicates, objects = (
            list(chain.from_iterable(zip(*(terms[rule.terms[position]] for rule in self._rules), strict=True)))
            for position in range(3)
        )
        sizes = [size] * len(times)
        if None in subjects or None in objects or None in predicates:
            usable = [None not in cells for cells in zip(subjects, predicates, objects, strict=True)]
            sizes = [sum(usable[first : first + size]) for first in range(0, len(usable), size)]
            subjects, predicates, objects = (list(compress(cells, usable)) for cells in (subjects, predicates, objects))
        return Columns(*merged(times, sizes), subjects, predicates, objects, stream)


@lru_cache(_CACHED_MAPPINGS)
def column_evaluator(mapping: RecordMapping) -> ColumnEvaluator | None:
    """Returns the evaluator of a mapping by column; None if it has loops, conditions, graphs or several times, or if
    two of its rules could make the same triple."""
    rules = mapping.rules
    is_flat = not any(rule.levels or rule.conditions or rule.graph is not None for rule in rules)
    if not rules or not is_flat or len({rule.time for rule in rules}) > 1:
        return None
    return None if any(_may_coincide(*pair) for pair in combinations(rules, 2)) else ColumnEvaluator(mapping)


def _may_coincide(first: Rule, second: Rule) -> bool:
    return all(
        not (isinstance(one_term, Constant) and isinstance(other_term, Constant)) or one_term == other_term
        for one_term, other_term in zip(first.terms, second.terms, strict=True)
    )


def _times(time: TimeMap | None, column_of: ColumnOf, count: int, default: int) -> list[int]:
    if time is None:
        return [default] * count
    column = column_of(time.reference.path)
    if set(map(type, column)) == {int} and max(map(abs, column)) < _SURE_TIME:
        return [value * time.unit_ms for value in column] if time.unit_ms != 1 else list(column)
    return list(map(time_function(time), column))


def _terms(term: TermMap, column_of: ColumnOf, count: int, own: str) -> Column:
    """Returns the terms of all records. Raises UnusableRecord."""
    if isinstance(term, Constant):
        return list(repeat(term.term, count))
    columns = [column_of(reference.path) for reference in references_of(term)]
    if not all(map(_is_uniform, columns)):
        raise UnusableRecord("values of several types are equal in Python, though not in RDF")
    make = term_function(term)
    if len(columns) > 1:
        keys: Column = list(zip(*columns, strict=True))
        values = {key: None if None in key else make(*key) for key in set(keys)}
    else:
        keys = columns[0]
        values = {key: None if key is None else make(key) for key in set(keys)}
    if isinstance(term, Template) and term.kind == "blank":
        values = {key: value if value is None else Term(value + own) for key, value in values.items()}
    return list(map(values.__getitem__, keys))


def _is_uniform(column: Column) -> bool:
    """Returns whether all values are of one type, and can be keys. (1 and true are equal in Python.)"""
    kinds = set(map(type, column)) - {type(None)}
    if TypedText in kinds and len({value.datatype for value in column if type(value) is TypedText}) > 1:
        return False
    return len(kinds) <= 1 and kinds.isdisjoint((dict, list))


def merged(times: list[int], sizes: list[int]) -> tuple[list[int], list[int]]:
    """Returns times, each once, with the number of triples at each."""
    if len(times) == len(set(times)):
        return times, sizes
    totals: dict[int, int] = {}
    for time, size in zip(times, sizes, strict=True):
        totals[time] = totals.get(time, 0) + size
    return list(totals), list(totals.values())


def json_columns(records: Sequence[Any]) -> ColumnOf:
    """Returns the columns of values of JSON."""

    def column_of(path: Path) -> Column:
        column: Column = records
        for step in path:
            kinds = set(map(type, column))
            if isinstance(step, int):
                raise UnusableRecord("it is in an array")
            if kinds == {dict}:
                column = [item.get(step) for item in column]
            elif kinds <= {dict, type(None)}:
                column = [item if item is None else item.get(step) for item in column]
            else:
                raise UnusableRecord("a value is no object")
        return column

    return column_of


def named_columns(columns: Mapping[str, Column]) -> ColumnOf:
    """Returns columns by their names. What is inside of their values is left to other evaluation."""

    def column_of(path: Path) -> Column:
        if len(path) > 1:
            raise UnusableRecord("it is inside of a value")
        return columns[cast(str, path[0])]

    return column_of


def row_columns(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> ColumnOf:
    """Returns the columns of rows of CSV, all of the same length. An empty value is none."""
    by_name = dict(zip(columns, zip(*rows, strict=True), strict=True))

    def column_of(path: Path) -> Column:
        column = by_name[cast(str, path[0])]
        return [value or None for value in column] if "" in column else column

    return column_of
