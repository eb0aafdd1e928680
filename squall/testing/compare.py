"""Compares outputs with the expected ones: the same facts at the same times, up to the names of blank nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from squall.rdf import Atom, Boolean, Evaluated, Fact, Quad, Solution, Term, Triple, is_blank
from squall.testing.streams import Timed, show

Row = tuple[Term | None, ...]
"""Terms; None: unbound."""


def difference(actual: Iterable[Timed], expected: Iterable[Timed]) -> str:
    """Returns missing (``-``) and surplus (``+``) outputs, one line each, in the order of time.

    The text is empty if there are none. An output that came twice is one surplus output. Blank nodes are equal if one
    renaming of them makes everything equal.
    """
    actual_counts, expected_counts = Counter(actual), Counter(expected)
    missing, surplus = expected_counts - actual_counts, actual_counts - expected_counts
    if _isomorphic(list(surplus.elements()), list(missing.elements()), actual_counts, expected_counts):
        return ""
    lines = [(time, "-", show(time, fact)) for time, fact in missing.elements()]
    lines += [(time, "+", show(time, fact)) for time, fact in surplus.elements()]
    lines.sort(key=lambda line: (line[0], line[1] == "+", line[2]))
    return "\n".join(f"{sign} {text}" for _, sign, text in lines)


def isomorphic(left: Iterable[Row], right: Iterable[Row]) -> bool:
    """Returns whether one renaming of blank nodes turns the rows of one side into those of the other (as bags).

    Source: RDF 1.1 Concepts, section 3.6. Tries renamings one row at a time: for the small graphs of tests.
    """
    rows = sorted(left, key=_blanks)
    right_rows = Counter(right)
    return len(rows) == right_rows.total() and _pair(rows, right_rows, {})


def _isomorphic(surplus: list[Timed], missing: list[Timed], actual: Counter[Timed], expected: Counter[Timed]) -> bool:
    if not surplus and not missing:
        return True
    if len(surplus) != len(missing) or not all(_blanks(_row(item)) for item in surplus + missing):
        return False
    return isomorphic(map(_row, actual.elements()), map(_row, expected.elements()))


def _row(item: Timed) -> Row:
    time, fact = item
    return (Term(str(time)), *_cells(fact))


def _cells(fact: Fact | Quad | Solution | Boolean | Evaluated) -> Row:
    match fact:
        case Boolean() | Evaluated():
            return (Term(str(fact)),)
        case Triple() | Quad():
            return tuple(fact)
        case Solution(names=names, values=values):
            return (*map(Term, names), *values)
        case Atom(relation=relation, arguments=arguments):
            return (relation, *arguments)


def _blanks(row: Row) -> int:
    return sum(cell is not None and is_blank(cell) for cell in row)


def _pair(rows: Sequence[Row], right_rows: Counter[Row], names: dict[Term, Term]) -> bool:
    if not rows:
        return True
    for other in list(right_rows):
        extended = _rename(rows[0], other, names)
        if extended is not None and _pair(rows[1:], right_rows - Counter([other]), extended):
            return True
    return False


def _rename(row: Row, other: Row, names: dict[Term, Term]) -> dict[Term, Term] | None:
    """Returns the renaming, extended so that it turns the row into the other; None if that is impossible."""
    if len(row) != len(other):
        return None
    names = dict(names)
    for term, target in zip(row, other, strict=True):
        if term is None or target is None or not (is_blank(term) and is_blank(target)):
            if term != target:
                return None
        elif names.setdefault(term, target) != target:
            return None
    return names if len(set(names.values())) == len(names) else None
