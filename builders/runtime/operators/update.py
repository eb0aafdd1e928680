"""SPARQL updates: the changes of graphs that the solutions of an update cause (SPARQL 1.1 Update, section 3.1.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.state import Stateful, sum_weights
from squall.builders.runtime.zset import Delta, Row, fact_row, is_rdf, row_fact, triple
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, WORKING, Fact, Triple, iri_text, is_iri


class GraphUpdate(NamedTuple):
    """The insertion of a fact into a graph, or its deletion.

    Attributes:
        inserts: Whether the fact is inserted.
        stream: The stream of the graph; None for all graphs.
        fact: The triple.
    """

    inserts: bool
    stream: str | None
    fact: Triple


class UpdateOperator(EventTimeOperator):
    """The graph updates that the templates of an update make of each row when the row becomes valid."""

    kind = "update"

    def __init__(self, op: ops.Update) -> None:
        super().__init__()
        inserts = [(True, quad) for quad in op.inserts]
        self.quads = [(False, quad) for quad in op.deletes]
        self.initial: list[GraphUpdate] = []
        """The updates that hold from the start."""
        if op.initial:
            self.initial = list(_graph_updates(inserts, ()))
        else:
            self.quads += inserts
        self.rule = op.rules[0] if op.rules else ""
        self.counts: dict[Row, int] = {}

    def pop_graph_updates(self, now: int) -> list[tuple[int, GraphUpdate]]:
        """Returns (time in integer ms, update) for the rows that became valid up to and including `now`."""
        demands: list[tuple[int, GraphUpdate]] = []
        for time, change in self.changes.pop_until(now):
            for row, weight in change.items():
                before = self.counts.get(row, 0)
                if before <= 0 < before + weight:
                    demands += ((time, demand) for demand in _graph_updates(self.quads, row))
                self.counts[row] = before + weight
                if not self.counts[row]:
                    del self.counts[row]
        return demands

    def advance(self, now: int) -> list[Delta]:
        self.pop_graph_updates(now)
        return []

    def size(self) -> int:
        return self.changes.size() + len(self.counts)


class InsertedFacts(Stateful):
    """The facts that updates have inserted: the streams of each fact, with the update nodes that inserted it, and when.

    All updates that insert a fact into a stream do so at the same time.
    """

    kind = "inserted-facts"

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[Fact, dict[str, tuple[Sequence[str], int]]] = {}

    def insert(self, fact: Fact, time: int, stream: str, updates: Sequence[str]) -> bool:
        """Inserts a fact into a stream and returns whether it was not there before."""
        streams = self.facts.setdefault(fact, {})
        if stream in streams:
            return False
        streams[stream] = updates, time
        self.note(0, _inserted_deltas(fact, stream, updates, time, 1))
        return True

    def remove(self, fact: Fact, stream: str | None) -> list[tuple[str, Sequence[str], int]]:
        """Removes a fact from a stream, or from all of them (None).

        Returns (stream, update nodes, time of the insertion) for each stream that had the fact.
        """
        streams = self.facts.get(fact, {})
        removed_from = [(name, *streams.pop(name)) for name in [name for name in streams if stream in (None, name)]]
        if not streams:
            self.facts.pop(fact, None)
        for name in removed_from:
            self.note(0, _inserted_deltas(fact, *name, -1))
        return removed_from

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        for stream, update, arrival, *cells, _, _ in sum_weights(deltas):
            streams = self.facts.setdefault(cast(Fact, row_fact(cells)), {})
            before, _ = streams.get(stream, ((), 0))
            streams[stream] = (*before, update), int(arrival)

    def rename(self, new_ids: Mapping[str, str]) -> None:
        """Gives the update nodes other ids."""
        for fact, streams in self.facts.items():
            for stream, (updates, time) in streams.items():
                renamed = [new_ids[id] for id in updates]
                streams[stream] = renamed, time
                self.note(0, _inserted_deltas(fact, stream, updates, time, -1))
                self.note(0, _inserted_deltas(fact, stream, renamed, time, 1))

    def size(self) -> int:
        return sum(map(len, self.facts.values()))


def _inserted_deltas(fact: Fact, stream: str, updates: Sequence[str], arrival: int, weight: int) -> list[Delta]:
    return [(stream, update, str(arrival), *fact_row(fact)[:-1], ALWAYS, FOREVER, weight) for update in updates]


def _graph_updates(quads: Sequence[tuple[bool, ops.Quad]], row: Row) -> Iterator[GraphUpdate]:
    """Yields the updates that a row makes of templates, each with whether it inserts.

    A template with an unbound cell, or one that makes no RDF triple, yields nothing.
    """
    for inserts, (graph, *cells) in quads:
        terms = [row[cell] if isinstance(cell, int) else cell for cell in cells]
        name = row[graph] if isinstance(graph, int) else graph
        if None in terms or not is_rdf(terms):
            continue
        if graph is None:
            yield GraphUpdate(inserts, WORKING if inserts else None, triple(terms))
        elif name is not None and is_iri(name):
            yield GraphUpdate(inserts, iri_text(name), triple(terms))
