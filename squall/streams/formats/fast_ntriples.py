"""Statements that are so plain that they need no parser: they are in canonical form, with one space after each cell.

IRIs are of ASCII letters, digits and a little punctuation, literals have no escapes. That is most data. A block is
taken apart all at once and looked at by column, each distinct term once; nothing is done line by line. What does not
fit goes through the parser, and tests hold the two against each other.
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
_MOST_DIGITS = 18  # of a time that fits into 64 bits, whatever they are

_new = cast(Callable[[type[Triple], Sequence[str]], Triple], tuple.__new__)  # faster than Triple._make


class Statements(NamedTuple):
    """Plain statements by column.

    stamps: what says the time of each run of them that have the same (none if they are not timed); sizes: how many
    statements are in each. Equal terms are one object, whose hash is known. kinds: the predicates there are, each once.
    blank: whether there may be blank nodes.
    """

    stamps: Column
    sizes: list[int]
    subjects: Column
    predicates: Column
    objects: Column
    kinds: Collection[str]
    blank: bool

    def terms(self, own: str) -> tuple[list[Term], list[Term], list[Term]]:
        """The columns of terms. The labels of blank nodes end in `own`."""
        columns: Sequence[Column] = (self.subjects, self.predicates, self.objects)
        if self.blank and (nodes := [node for node in {*self.subjects, *self.objects} if node[0] == "_"]):
            node_names = {node: node + own for node in nodes}.get
            columns = [list(map(node_names, column, column)) for column in columns]
        subjects, predicates, objects = cast(Sequence[list[Term]], columns)
        return subjects, predicates, objects

    def triples(self, own: str) -> Iterator[Triple]:
        return map(_new, repeat(Triple), zip(*self.terms(own), strict=True))

    def of(self, choice: Choice) -> Statements:
        """Those that are chosen."""
        if choice.predicates.issuperset(self.kinds):
            return self
        selected = list(map(choice.predicates.__contains__, self.predicates))
        sizes = [sum(selected[first:end]) for first, end in pairwise(accumulate(self.sizes, initial=0))]
        columns = (self.subjects, self.predicates, self.objects)
        subjects, predicates, objects = (list(compress(column, selected)) for column in columns)
        kinds = choice.predicates.intersection(self.kinds)
        return Statements(self.stamps, sizes, subjects, predicates, objects, kinds, self.blank)


class Choice:
    """Which triples are of use to whoever reads a source: those that have one of some predicates.

    The others may be left out, as long as all comes in the order of time. (What is late goes to the ledger, whatever it
    says.)
    """

    def __init__(self, predicates: Collection[str], latest: int = ALWAYS) -> None:
        self.predicates = frozenset(predicates)
        self.latest = latest
        """The latest time (integer ms) that has been read."""

    def goes_on(self, first: int, last: int) -> bool:
        """Takes note that times from `first` to `last` are read; whether none of them has passed already."""
        on = self.latest <= first
        self.latest = max(self.latest, last)
        return on

    def of(self, statements: Sequence[tuple[int, Triple | Quad]]) -> Sequence[tuple[int, Triple | Quad]]:
        """The (time, statement) pairs that are of use, and the last one; all of them where they are out of order."""
        times = [time for time, _ in statements]
        if not self.goes_on(min(times), max(times)) or times != sorted(times):
            return statements
        return [pair for pair in statements[:-1] if pair[1].predicate in self.predicates] + [statements[-1]]


def statements(block: bytes, timed: bool = False) -> Statements | None:
    """The statements of lines, each after a stamp if they are timed. None unless all are plain."""
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
    """The cells of a column that differ from the one before, and how many equal ones there are of each."""
    places = [0, *compress(range(1, len(column)), map(ne, column, islice(column, 1, None))), len(column)]
    return list(map(column.__getitem__, places[:-1])), list(map(sub, places[1:], places))


def _of(
    firsts: Column, sizes: list[int], other_columns: Sequence[Column], blank: bool, checked: bool
) -> Statements | None:
    """None unless all terms are plain, of which each is looked at once, if they have not been `checked`. firsts: the
    first cell of each run of lines in which it is the same; sizes: how many lines are in each."""
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
    """Whether all terms are plain ones of a kind. (There are no spaces in them.)"""
    text = " ".join(terms) + " "
    return not terms or (_NOT_CANONICAL not in text and bool(kind(text)))


def _matched(text: str, timed: bool) -> Sequence[Column]:
    """Columns of plain lines with other spaces than those between their cells; nothing unless all lines are such."""
    cells, width = (_TIMED_LINES(text + "\n"), 6) if timed else (_LINES(text + "\n"), 5)
    columns = [cells[column::width] for column in range(1, width)]
    return () if any(columns.pop()) else columns


def events(block: bytes, own: str, stream: str, choice: Choice | None = None) -> tuple[Columns, int] | None:
    """The events of timed lines, one for each time, and how many statements there are.

    With a choice, triples that are not chosen are left out, and so are events that bring none, but for the last one.
    None unless all lines are plain, and their times whole numbers of the same length, and in order.
    """
    parsed_statements = statements(block, timed=True)
    if (
        parsed_statements is None
        or not _are_numbers(parsed_statements.stamps)
        or parsed_statements.stamps != sorted(parsed_statements.stamps)
    ):
        return None
    count, times = len(parsed_statements.subjects), list(map(int, parsed_statements.stamps))
    if choice is not None:
        if not choice.goes_on(times[0], times[-1]):
            return None
        parsed_statements = parsed_statements.of(choice)
    return Columns(times, parsed_statements.sizes, *parsed_statements.terms(own), stream), count


def _are_numbers(stamps: Collection[str]) -> bool:
    """Whether stamps are whole numbers of the same length: then they are in the order of the times."""
    digits, lengths = "".join(stamps), set(map(len, stamps))
    return digits.isdigit() and digits.isascii() and len(lengths) == 1 and max(lengths) <= _MOST_DIGITS
