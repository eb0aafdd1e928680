"""The alpha network: which facts go to which `Match` nodes, by hash tables on the constants that they test
(Doorenbos 1995, section 2.2.3), so that a fact meets only the matches it fits, whatever the number of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from squall.builders.rows.entries import Entry
from squall.builders.rows.plain import Step, match
from squall.functions.values import value_key
from squall.operators import Distinct, Emit, Match, Value
from squall.plan import Node, Plan
from squall.rdf import Term

Matched = tuple[str, list[Entry]]
"""The id of a `Match` node, and its rows."""
Kind = tuple[str | None, int]
"""Which facts have the same cells: the mark of an atom's relation (None: a triple), and the length of an entry."""
TRIPLE: Kind = (None, 7)


def kind(entry: Entry) -> Kind:
    """The kind of a fact's entry."""
    first = entry[0]
    return (first if first[0] == "@" else None), len(entry)


class Alpha:
    """The `Match` nodes that one node feeds, arranged by what they test."""

    def __init__(self, plan: Plan, id: str) -> None:
        self.predicates: dict[Term, _Tests] = {}
        """The matches of triples with a constant predicate."""
        self.anything: _Tests | None = None
        """The matches of triples whose predicate varies."""
        self.atoms: dict[Kind, _Tests] = {}
        self.shapes = _shapes(plan, id)
        for consumer, _ in plan.consumers[id]:
            op = plan.by_id[consumer].op
            if isinstance(op, Match):
                self._tests(op).add(consumer, op)

    def _tests(self, op: Match) -> _Tests:
        first = op.cells[0]
        if isinstance(first, str) and first[0] == "@":
            return self.atoms.setdefault((first, len(op.cells) + 4), _Tests((0,)))
        if len(op.cells) == 3 and isinstance(op.cells[1], str):
            return self.predicates.setdefault(op.cells[1], _Tests((1,)))
        if self.anything is None:
            self.anything = _Tests(())
        return self.anything

    def rows(self, entries: Sequence[Entry]) -> Iterator[Matched]:
        """The rows that facts are to the matches."""
        if len(self.shapes) == 1:
            ((kind_of, predicate),) = self.shapes
            yield from self._of_kind(kind_of, predicate, entries)
            return
        kinds: dict[Kind, list[Entry]] = {}
        for entry in entries:
            kinds.setdefault(kind(entry), []).append(entry)
        for kind_of, part in kinds.items():
            yield from self._of_kind(kind_of, None, part)

    def _of_kind(self, kind_of: Kind, predicate: Term | None, entries: Sequence[Entry]) -> Iterator[Matched]:
        if kind_of != TRIPLE:
            yield from self.atoms_rows(kind_of, entries)
        elif predicate is not None:
            yield from self.triples({predicate: entries}, entries)
        else:
            boxes: dict[Term, list[Entry]] = {}
            wanted = self.predicates
            for entry in entries:
                if (term := entry[1]) in wanted:
                    if term in boxes:
                        boxes[term].append(entry)
                    else:
                        boxes[term] = [entry]
            yield from self.triples(boxes, entries)

    def triples(self, boxes: dict[Term, Any], entries: Sequence[Entry]) -> Iterator[Matched]:
        """The rows of triples, those whose predicate is wanted in boxes by predicate, and all of them."""
        for predicate, part in boxes.items():
            if predicate in self.predicates:
                yield from self.predicates[predicate].rows(part)
        if self.anything is not None and entries:
            yield from self.anything.rows(entries)

    def atoms_rows(self, kind_of: Kind, entries: Sequence[Entry]) -> Iterator[Matched]:
        """The rows of atoms of one kind."""
        if kind_of in self.atoms:
            yield from self.atoms[kind_of].rows(entries)


class _Tests:
    """Matches that agree in the cells `known`, in tables by their other constants."""

    def __init__(self, known: tuple[int, ...]) -> None:
        self.known = known
        self.free: list[tuple[str, Step]] = []
        """Those that have no other constants."""
        self.tables: dict[tuple[tuple[int, bool], ...], _Table] = {}
        """The others, by the places of their constants and whether these match by value."""

    def add(self, id: str, op: Match) -> None:
        constants = [
            (place, isinstance(cell, Value))
            for place, cell in enumerate(op.cells)
            if isinstance(cell, str | Value) and place not in self.known
        ]
        step = match(op, known=[*self.known, *(place for place, _ in constants)])
        if constants:
            self.tables.setdefault(tuple(constants), _Table(constants)).add(op, (id, step))
        else:
            self.free.append((id, step))

    def rows(self, entries: Sequence[Entry]) -> Iterator[Matched]:
        for id, step in self.free:
            yield id, step(entries)
        for table in self.tables.values():
            yield from table.rows(entries)


class _Table:
    """Matches by the values of some cells."""

    def __init__(self, places: Sequence[tuple[int, bool]]) -> None:
        self.places = places
        self.key_of = _key_of(places)
        self.matches: dict[Hashable, list[tuple[str, Step]]] = {}

    def add(self, op: Match, found: tuple[str, Step]) -> None:
        keys = [
            value_key(cell.term) if isinstance(cell, Value) else cell
            for place, _ in self.places
            for cell in [op.cells[place]]
        ]
        self.matches.setdefault(keys[0] if len(keys) == 1 else tuple(keys), []).append(found)

    def rows(self, entries: Sequence[Entry]) -> Iterator[Matched]:
        hits: dict[Hashable, list[Entry]] = {}
        matches, key_of = self.matches, self.key_of
        for entry in entries:
            if (key := key_of(entry)) in matches:
                hits.setdefault(key, []).append(entry)
        for key, part in hits.items():
            for id, step in matches[key]:
                yield id, step(part)


def _key_of(places: Sequence[tuple[int, bool]]) -> Callable[[Entry], Hashable]:
    if not any(by_value for _, by_value in places):
        return itemgetter(*(place for place, _ in places))
    if len(places) == 1:
        ((only, _),) = places
        return lambda entry: _value(entry[only])
    return lambda entry: tuple(_value(entry[place]) if by_value else entry[place] for place, by_value in places)


def _value(cell: str) -> Hashable:
    """What a literal is compared by; of anything else a text, which no value is."""
    return value_key(Term(cell)) if cell[0] == '"' else cell


def _shapes(plan: Plan, id: str) -> set[tuple[Kind, Term | None]]:
    """The kinds of the facts that a node makes, each with their predicate where it is always the same."""
    made: set[tuple[Kind, Term | None]] = set()
    for emit in _emits(plan, plan.by_id[id]):
        first = emit.template[0]
        mark = first if isinstance(first, str) and first[0] == "@" else None
        second = emit.template[1] if len(emit.template) > 1 else None
        predicate = second if isinstance(second, str) and mark is None else None
        made.add(((mark, len(emit.template) + 4), predicate))
    return made


def _emits(plan: Plan, node: Node) -> Iterable[Emit]:
    if isinstance(node.op, Emit):
        yield node.op
    elif isinstance(node.op, Distinct):
        for edge in node.inputs:
            yield from _emits(plan, plan.by_id[edge.node])
