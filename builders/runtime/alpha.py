"""The alpha network: it sends facts to the `Match` nodes that they fit.

Hash tables on the constants of patterns (Doorenbos 1995, section 2.2.3) let a fact meet only matching patterns,
whatever the number of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Any, cast

from squall.builders.runtime.operators.factored import FactoredRows
from squall.builders.runtime.operators.stateless import match_step
from squall.builders.runtime.zset import Boxes, ColumnarPairs, Delta, Pairs
from squall.functions.values import value_key
from squall.plan import Node, Plan
from squall.plan.operators import Cell, Construct, Distinct, Match, OneOf, Value
from squall.rdf import Term
from squall.rdf.row_tags import relation_tag_of

Cells = tuple[Cell, ...]
Matched = tuple[str, Any]
"""The id of a `Match` node, and its rows: deltas, or pairs (`squall.builders.runtime.zset.Pairs`)."""
FactKind = tuple[str | None, int]
"""The relation tag of an atom (None: a triple), and the number of cells. Facts of one kind have the same cells."""
TRIPLE: FactKind = (None, 3)
Step = Callable[[Any], Any]
Matching = Callable[[Cells, Sequence[int]], Step]
Places = tuple[tuple[int, bool], ...]
"""Indexes of cells, each with whether the cell matches by value."""


def fact_kind(delta: Delta) -> FactKind:
    """Returns the kind of a fact's delta."""
    first = delta[0]
    return (first if first[0] == "@" else None), len(delta) - 4


def by_kind(deltas: Iterable[Delta]) -> dict[FactKind, list[Delta]]:
    """Groups the deltas of facts by kind."""
    kinds: dict[FactKind, list[Delta]] = {}
    for delta in deltas:
        kinds.setdefault(fact_kind(delta), []).append(delta)
    return kinds


PAIR = itemgetter(0, 2)
"""The subject and the object of a triple or of a pattern."""


class AlphaNetwork:
    """The `Match` nodes that one node feeds, indexed by their constants.

    Triples whose predicate is known are *pairs*, (subject, object, start, end, weight): most patterns need just these.

    Args:
        plan: The plan.
        id: The node that feeds the matches.
        matching: Makes the step of a match, where facts are rows without validity and rule name.
    """

    def __init__(self, plan: Plan, id: str, matching: Matching | None = None) -> None:
        self.matching = matching
        self.predicates: dict[Term, _Tests] = {}
        """The matches of triples with a constant predicate. They receive pairs."""
        self.any_predicate: _Tests | None = None
        """The matches of triples whose predicate varies."""
        self.atoms: dict[Hashable, _Tests] = {}
        self.shapes = _shapes(plan, id)
        for consumer, _ in plan.consumers[id]:
            op = plan.by_id[consumer].op
            if isinstance(op, Match):
                self._add(consumer, op.cells)

    def _add(self, id: str, cells: Cells) -> None:
        mark = relation_tag_of(cells)
        if mark is not None:
            self.atoms.setdefault((mark, len(cells)), self._tests((0,))).add(id, cells)
        elif len(cells) != 3 or not isinstance(cells[1], str):
            self.any_predicate = self.any_predicate or self._tests(())
            self.any_predicate.add(id, cells)
        elif self.matching is None:
            self.predicates.setdefault(cells[1], self._tests((), partial(match_step, rule=False))).add(id, PAIR(cells))
        else:
            self.predicates.setdefault(cells[1], self._tests((1,))).add(id, cells)

    def _tests(self, constant_columns: tuple[int, ...], matching: Matching | None = None) -> _Tests:
        return _Tests(constant_columns, matching or self.matching or match_step)

    def bare(self, key: Hashable, rows: Any) -> Iterator[tuple[str, Any]]:
        """Yields the rows of facts without times, by match. key: the predicate of the facts, or their kind."""
        if isinstance(key, tuple):
            yield from self.atoms_rows(key, rows)
        else:
            yield from self.triples({cast(Term, key): rows}, rows)

    def rows(self, deltas: Sequence[Delta]) -> Iterator[Matched]:
        """Yields the rows of facts, by match."""
        if len(self.shapes) == 1:
            ((kind, predicate),) = self.shapes
            yield from self._of_kind(kind, predicate, deltas)
            return
        for kind, part in by_kind(deltas).items():
            yield from self._of_kind(kind, None, part)

    def _of_kind(self, kind: FactKind, predicate: Term | None, deltas: Sequence[Delta]) -> Iterator[Matched]:
        if kind != TRIPLE:
            yield from self.atoms_rows(kind, deltas)
        elif predicate is not None:
            pairs = [(s, o, start, end, weight) for s, _, o, _, start, end, weight in deltas]
            yield from self.triples({predicate: pairs} if predicate in self.predicates else {}, deltas)
        else:
            boxes: Boxes = {}
            predicates = self.predicates
            for subject, predicate, object, _, start, end, weight in deltas:
                if predicate in predicates:
                    if predicate in boxes:
                        boxes[predicate].append((subject, object, start, end, weight))
                    else:
                        boxes[predicate] = [(subject, object, start, end, weight)]
            yield from self.triples(boxes, deltas)

    def triples(self, boxes: Mapping[Term, Pairs], deltas: Sequence[Delta]) -> Iterator[Matched]:
        """Yields the rows of triples, by match.

        Args:
            boxes: Pairs by predicate, of the predicates that are used.
            deltas: All triples.
        """
        for predicate, part in boxes.items():
            if predicate in self.predicates:
                yield from self.predicates[predicate].rows(part)
        if self.any_predicate is not None and deltas:
            yield from self.any_predicate.rows(deltas)

    def atoms_rows(self, kind: Hashable, deltas: Sequence[Delta]) -> Iterator[Matched]:
        """Yields the rows of atoms of one kind, by match."""
        if kind in self.atoms:
            yield from self.atoms[kind].rows(deltas)


class _Tests:
    """Matches that agree in the cells `tested_columns`, in tables by their other constants."""

    def __init__(self, constant_columns: tuple[int, ...], match_step: Matching) -> None:
        self.tested_columns = constant_columns
        self.match = match_step
        self.untested: list[tuple[str, Step]] = []
        """The matches without other constants."""
        self.tables: dict[Places, _Table] = {}
        """The other matches, by the places of their constants and whether these match by value."""

    def add(self, id: str, cells: Cells) -> None:
        constants = tuple(
            (place, isinstance(cell, Value))
            for place, cell in enumerate(cells)
            if isinstance(cell, str | Value | OneOf) and place not in self.tested_columns
        )
        if constants:
            if constants not in self.tables:
                self.tables[constants] = _Table(constants, self)
            self.tables[constants].add(id, cells)
        else:
            self.untested.append((id, self.match(cells, self.tested_columns)))

    def rows(self, deltas: Pairs) -> Iterator[Matched]:
        if type(deltas) is ColumnarPairs and (self.tables or len(self.untested) > 1):
            deltas = list(deltas)  # since they are read more than once
        for id, step in self.untested:
            yield id, step(deltas)
        for table in self.tables.values():
            yield from table.rows(cast(Sequence[Delta], deltas))


class _Table:
    """Matches by the values of some cells."""

    def __init__(self, places: Places, tests: _Tests) -> None:
        self.places = places
        self.tested_columns = tests.tested_columns
        self.match = tests.match
        self.key_of = _key_of(places)
        self.matches: dict[Hashable, list[tuple[str, Step]]] = {}
        """The matches by key, for facts that have the key."""
        self.unindexed: list[tuple[str, Step]] = []
        """The matches, for any facts, while there is one, or one key: a test costs less than a look-up."""

    def add(self, id: str, cells: Cells) -> None:
        is_first = not self.matches
        step = self.match(cells, (*self.tested_columns, *(place for place, _ in self.places)))
        for keys in product(*(_keys(cells[place]) for place, _ in self.places)):
            self.matches.setdefault(keys[0] if len(keys) == 1 else keys, []).append((id, step))
        if is_first or len(self.matches) == 1:
            self.unindexed.append((id, self.match(cells, self.tested_columns)))
        else:
            self.unindexed.clear()

    def rows(self, deltas: Sequence[Delta]) -> Iterator[Matched]:
        if self.unindexed:
            for id, step in self.unindexed:
                yield id, step(deltas)
            return
        for key, part in self._by_key(deltas).items():
            for id, step in self.matches[key]:
                yield id, step(part)

    def _by_key(self, deltas: Any) -> Mapping[Hashable, Any]:
        """Groups the facts that have a key of a match."""
        matches, key_of = self.matches, self.key_of
        if isinstance(deltas, FactoredRows) and all(place != deltas.place for place, _ in self.places):
            key = key_of(deltas.row)
            return {key: deltas} if key in matches else {}
        hits: dict[Hashable, list[Delta]] = {}
        for delta in deltas:
            if (key := key_of(delta)) in matches:
                hits.setdefault(key, []).append(delta)
        return hits


def _keys(cell: Cell) -> Sequence[Hashable]:
    """Returns the keys of facts that fit a cell with a constant."""
    match cell:
        case OneOf(terms=terms):
            return terms
        case Value(term=term):
            return (value_key(term),)
        case _:
            return (cell,)


def _key_of(places: Places) -> Callable[[Delta], Hashable]:
    if not any(by_value for _, by_value in places):
        return itemgetter(*(place for place, _ in places))
    if len(places) == 1:
        ((only, _),) = places
        return lambda delta: _value(delta[only])
    return lambda delta: tuple(_value(delta[place]) if by_value else delta[place] for place, by_value in places)


def _value(cell: str) -> Hashable:
    """Returns the value that a literal is compared by; for other terms their text, which equals no value."""
    return value_key(Term(cell)) if cell[0] == '"' else cell


def _shapes(plan: Plan, id: str) -> set[tuple[FactKind, Term | None]]:
    """Returns the kinds of the facts that a node emits, each with its predicate if that is constant."""
    shapes: set[tuple[FactKind, Term | None]] = set()
    for emit in _constructs(plan, plan.by_id[id]):
        mark = relation_tag_of(emit.template)
        second = emit.template[1] if len(emit.template) > 1 else None
        predicate = second if isinstance(second, str) and mark is None else None
        shapes.add(((mark, len(emit.template)), predicate))
    return shapes


def _constructs(plan: Plan, node: Node) -> Iterable[Construct]:
    if isinstance(node.op, Construct):
        yield node.op
    elif isinstance(node.op, Distinct):
        for edge in node.inputs:
            yield from _constructs(plan, plan.by_id[edge.node])
