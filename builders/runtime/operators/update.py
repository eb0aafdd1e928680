"""What updates demand of the graphs, when their solutions begin to hold (SPARQL 1.1 Update, section 3.1.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.state import Stateful, sum_weights
from squall.builders.runtime.zset import Delta, Row, fact_row, is_rdf, row_fact, triple
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, WORKING, Fact, Triple, iri_text, is_iri


class GraphUpdate(NamedTuple):
    """A fact that begins (inserts) or ends in a graph. stream: that of the graph; None: all of them."""

    inserts: bool
    stream: str | None
    fact: Triple


class UpdateOperator(EventTimeOperator):
    """Demands what its templates make of each row that begins to be valid."""

    def __init__(self, op: ops.Update) -> None:
        super().__init__()
        inserts = [(True, quad) for quad in op.inserts]
        self.quads = [(False, quad) for quad in op.deletes]
        self.initial: list[GraphUpdate] = []
        """What is there from the start."""
        if op.initial:
            self.initial = list(_graph_updates(inserts, ()))
        else:
            self.quads += inserts
        self.rule = op.rules[0] if op.rules else ""
        self.counts: dict[Row, int] = {}

    def pop_graph_updates(self, now: int) -> list[tuple[int, GraphUpdate]]:
        """(time since when it is demanded, what), up to a time, that included."""
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
    """What updates have inserted: the streams in which a fact is, each with the nodes of the updates that put it there,
    all at once, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[Fact, dict[str, tuple[Sequence[str], int]]] = {}

    def insert(self, fact: Fact, time: int, stream: str, updates: Sequence[str]) -> bool:
        """Puts a fact into a stream; whether it was not there before."""
        streams = self.facts.setdefault(fact, {})
        if stream in streams:
            return False
        streams[stream] = updates, time
        self.note(0, _inserted_deltas(fact, stream, updates, time, 1))
        return True

    def remove(self, fact: Fact, stream: str | None) -> list[tuple[str, Sequence[str], int]]:
        """Takes a fact out of a stream, or of all of them (None): (stream, updates, when it came) of each in which it
        was."""
        streams = self.facts.get(fact, {})
        removed_from = [(name, *streams.pop(name)) for name in [name for name in streams if stream in (None, name)]]
        if not streams:
            self.facts.pop(fact, None)
        for name in removed_from:
            self.note(0, _inserted_deltas(fact, *name, -1))
        return removed_from

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        for stream, update, arrival, *cells, _, _ in sum_weights(entries):
            streams = self.facts.setdefault(cast(Fact, row_fact(cells)), {})
            before, _ = streams.get(stream, ((), 0))
            streams[stream] = (*before, update), int(arrival)

    def size(self) -> int:
        return sum(map(len, self.facts.values()))


def _inserted_deltas(fact: Fact, stream: str, updates: Sequence[str], arrival: int, weight: int) -> list[Delta]:
    return [(stream, update, str(arrival), *fact_row(fact)[:-1], ALWAYS, FOREVER, weight) for update in updates]


def _graph_updates(quads: Sequence[tuple[bool, ops.Quad]], row: Row) -> Iterator[GraphUpdate]:
    """What a row demands of templates, each with whether it inserts. What is unbound, or is no RDF, makes no fact."""
    for inserts, (graph, *cells) in quads:
        terms = [row[cell] if isinstance(cell, int) else cell for cell in cells]
        name = row[graph] if isinstance(graph, int) else graph
        if None in terms or not is_rdf(terms):
            continue
        if graph is None:
            yield GraphUpdate(inserts, WORKING if inserts else None, triple(terms))
        elif name is not None and is_iri(name):
            yield GraphUpdate(inserts, iri_text(name), triple(terms))
