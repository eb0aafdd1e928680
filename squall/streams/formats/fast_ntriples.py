"""A fast reader of plain N-Triples: in canonical form, with one space after each cell.

Plain IRIs have ASCII letters, digits and some punctuation, plain literals have no escapes. Most data are plain. A block
is split at once and checked by column, each distinct term once; nothing is done line by line. Other blocks go through
the parser. Tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, chain, compress, islice, pairwise, repeat
from operator import ne, sub
from typing import NamedTuple, cast

from squall.rdf import ALWAYS, XSD_STRING, Columns, Quad, Term, Triple

Column = Sequence[str]

_CHARACTERS = r"[A-Za-z0-9_./~:?&=;,+@-]*+"
_IRI = rf"<(?:https?+://[A-Za-z0-9.-]++(?:/{_CHARACTERS}|)|urn:[A-Za-z0-9]++:{_CHARACTERS})(?:#{_CHARACTERS}|)>"
_NODE = rf"{_IRI}|_:[A-Za-z0-9]++"
_LITERAL = rf'"[ !#-\[\]-~\u00a0-\ud7ff]*+"(?:\^\^{_IRI}|@[a-z][a-z]|)'
_OBJECT = rf"{_NODE}|{_LITERAL}"
_STATEMENT = rf"({_NODE}) ({_IRI}) ({_OBJECT}) \.\n"
_LINES = re.compile(rf"{_STATEMENT}|(.*\n)").split
_TIMED_LINES = re.compile(rf"(\S++) {_STATEMENT}|(.*\n)").split
_ARE_SUBJECTS = re.compile(rf"(?:(?:{_NODE}) )++").fullmatch
_ARE_PREDICATES = re.compile(rf"(?:{_IRI} )++").fullmatch
_ARE_OBJECTS = re.compile(rf"(?:(?:{_OBJECT}) )++").fullmatch
_NOT_CANONICAL = f'"^^<{XSD_STRING}>'
_MAX_TIME_DIGITS = 18
"""The number of digits of a time that certainly fits into 64 bits."""

_new = cast(Callable[[type[Triple], Sequence[str]], Triple], tuple.__new__)  # faster than Triple._make


class Statements(NamedTuple):
    """Plain statements by column.

    Equal terms are one object, whose hash is cached.

    Attributes:
        stamps: The time, as text, of each run of statements with the same time; empty if they are untimed.
        sizes: The number of statements of each run.
        subjects: The subjects.
        predicates: The predicates.
        objects: The objects.
        kinds: The distinct predicates.
        blank: Whether there may be blank nodes.
    """

    stamps: Column
    sizes: list[int]
    subjects: Column
    predicates: Column
    objects: Column
    kinds: Collection[str]
    blank: bool

    def terms(self, own: str) -> tuple[list[Term], list[Term], list[Term]]:
        """Returns the columns of terms. The labels of blank nodes end in `own`."""
        columns: Sequence[Column] = (self.subjects, self.predicates, self.objects)
        if self.blank and (nodes := [node for node in {*self.subjects, *self.objects} if node[0] == "_"]):
            node_names = {node: node + own for node in nodes}.get
            columns = [list(map(node_names, column, column)) for column in columns]
        subjects, predicates, objects = cast(Sequence[list[Term]], columns)
        return subjects, predicates, objects

    def triples(self, own: str) -> Iterator[Triple]:
        """Yields the statements as triples. The labels of blank nodes end in `own`."""
        return map(_new, repeat(Triple), zip(*self.terms(own), strict=True))

    def of(self, predicate_filter: PredicateFilter) -> Statements:
        """Returns the statements that a filter selects."""
        if predicate_filter.predicates.issuperset(self.kinds):
            return self
        selected = list(map(predicate_filter.predicates.__contains__, self.predicates))
        sizes = [sum(selected[first:end]) for first, end in pairwise(accumulate(self.sizes, initial=0))]
        columns = (self.subjects, self.predicates, self.objects)
        subjects, predicates, objects = (list(compress(column, selected)) for column in columns)
        kinds = predicate_filter.predicates.intersection(self.kinds)
        return Statements(self.stamps, sizes, subjects, predicates, objects, kinds, self.blank)


class PredicateFilter:
    """A filter by predicate that is pushed down to a source.

    Other triples may be left out while events come in the order of time. Late ones are dead letters, whatever their
    predicate, so none may be left out then.

    Attributes:
        predicates: The predicates of the triples that are used.
        latest: The latest time (integer ms) that has been read.
    """

    def __init__(self, predicates: Collection[str], latest: int = ALWAYS) -> None:
        self.predicates = frozenset(predicates)
        self.latest = latest

    def advance(self, first: int, last: int) -> bool:
        """Notes that times from `first` to `last` are read, and returns whether they are in order with earlier ones."""
        is_in_order = self.latest <= first
        self.latest = max(self.latest, last)
        return is_in_order

    def of(self, statements: Sequence[tuple[int, Triple | Quad]]) -> Sequence[tuple[int, Triple | Quad]]:
        """Returns the (time, statement) pairs that are used, and the last one; all if they are out of order."""
        times = [time for time, _ in statements]
        if not self.advance(min(times), max(times)) or times != sorted(times):
            return statements
        return [pair for pair in statements[:-1] if pair[1].predicate in self.predicates] + [statements[-1]]


def statements(block: bytes, timed: bool = False) -> Statements | None:
    """Reads the statements of lines, each after a time if they are timed. Returns None unless all are plain."""
    text = block.decode("utf-8", "replace")
    cells, width = f".\n{text}".split(" "), 4 if timed else 3
    if len(cells) % width == 1 and cells.pop() == ".":
        first, *other_columns = (cells[column::width] for column in range(width))
        starts, sizes = _runs(first)
        if all(cell.startswith(".\n") for cell in starts):
            return _of([cell[2:] for cell in starts], sizes, other_columns, "_" in text, checked=False)
    if _NOT_CANONICAL not in text and (columns := _matched(text, timed)):
        return _of(*_runs(columns[0]), columns[1:], "_" in text, checked=True)
    return None


def _runs(column: Column) -> tuple[list[str], list[int]]:
    """Returns the first cell of each run of equal cells in a column, and the lengths of the runs."""
    places = [0, *compress(range(1, len(column)), map(ne, column, islice(column, 1, None))), len(column)]
    return list(map(column.__getitem__, places[:-1])), list(map(sub, places[1:], places))


def _of(
    firsts: Column, sizes: list[int], other_columns: Sequence[Column], blank: bool, checked: bool
) -> Statements | None:
    """Returns the statements of columns, or None unless all terms are plain. Each distinct term is checked once.

    Args:
        firsts: The first cell of each run of lines in which it is equal.
        sizes: The lengths of these runs.
        other_columns: The other columns.
        blank: Whether there may be blank nodes.
        checked: Whether the terms have been checked already.
    """
    if len(other_columns) == 2:
        other_columns = [list(chain.from_iterable(map(repeat, firsts, sizes))), *other_columns]
        firsts, sizes = [], []
    terms: dict[str, str] = {}
    kinds: dict[str, str] = {}
    subjects = list(map(terms.setdefault, other_columns[0], other_columns[0]))
    nodes = len(terms)
    objects = list(map(terms.setdefault, other_columns[2], other_columns[2]))
    predicates = list(map(kinds.setdefault, other_columns[1], other_columns[1]))
    first, remaining_terms = list(islice(terms, nodes)), list(islice(terms, nodes, None))
    if not (
        checked or (_are(_ARE_SUBJECTS, first) and _are(_ARE_OBJECTS, remaining_terms) and _are(_ARE_PREDICATES, kinds))
    ):
        return None
    return Statements(firsts, sizes, subjects, predicates, objects, kinds, blank)


def _are(kind: Callable[[str], object], terms: Collection[str]) -> bool:
    """Returns whether all terms, which have no spaces, are plain ones of a kind."""
    text = " ".join(terms) + " "
    return not terms or (_NOT_CANONICAL not in text and bool(kind(text)))


def _matched(text: str, timed: bool) -> Sequence[Column]:
    """Returns the columns of plain lines with spaces in literals; nothing unless all lines are plain."""
    cells, width = (_TIMED_LINES(text + "\n"), 6) if timed else (_LINES(text + "\n"), 5)
    columns = [cells[column::width] for column in range(1, width)]
    return () if any(columns.pop()) else columns


def events(
    block: bytes, own: str, stream: str, predicate_filter: PredicateFilter | None = None
) -> tuple[Columns, int] | None:
    """Reads the events of timed lines, one for each time, and the number of statements.

    With a filter, other triples are left out, and events without any, except the last one. Returns None unless all
    lines are plain, and their times are integers of the same length, in order.
    """
    parsed_statements = statements(block, timed=True)
    if (
        parsed_statements is None
        or not _are_numbers(parsed_statements.stamps)
        or parsed_statements.stamps != sorted(parsed_statements.stamps)
    ):
        return None
    count, times = len(parsed_statements.subjects), list(map(int, parsed_statements.stamps))
    if predicate_filter is not None:
        if not predicate_filter.advance(times[0], times[-1]):
            return None
        parsed_statements = parsed_statements.of(predicate_filter)
    return Columns(times, parsed_statements.sizes, *parsed_statements.terms(own), stream), count


def _are_numbers(stamps: Collection[str]) -> bool:
    """Returns whether stamps are integers of the same length, so that their order is that of the times."""
    digits, lengths = "".join(stamps), set(map(len, stamps))
    return digits.isdigit() and digits.isascii() and len(lengths) == 1 and max(lengths) <= _MAX_TIME_DIGITS
