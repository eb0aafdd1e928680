"""The input side of a dataflow: facts that events bring, and facts that updates insert and remove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from squall.builders.runtime.alpha import AlphaNetwork, Matched, by_kind
from squall.builders.runtime.layout import DataflowLayout
from squall.builders.runtime.operators import Operator
from squall.builders.runtime.operators.derived_stream import DerivedStreamOperator
from squall.builders.runtime.operators.scan import ScannedFacts, ScanOperator
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.operators.update import InsertedFacts, UpdateOperator
from squall.builders.runtime.operators.valid_facts import terms_of
from squall.builders.runtime.same_as_links import Links
from squall.builders.runtime.tuning import Tuning
from squall.builders.runtime.zset import Delta, fact_row
from squall.model.windows import Window
from squall.plan import Plan
from squall.plan.operators import Scan
from squall.rdf import ALWAYS, FOREVER, NOTES, Event, Fact, Term
from squall.rdf.cliques import SAME_AS

INSERTED_FACTS = "/inserted"
"""The id of the state of facts that updates inserted."""
LINKS = "/links"
"""The id of the state of what streams say of owl:sameAs."""
Change = tuple[str, Sequence[Delta]]
"""The id of a `Scan` node or of another one, and deltas that it emits."""


class FactInput:
    """The scans of a dataflow, and the facts that updates have inserted.

    Args:
        plan: The plan.
        layout: The layout of the dataflow.
        operators: Its operators.
        tuning: The tuning values of the runtime.
        replaced: The input side of another dataflow whose scans this one takes over.

    Attributes:
        readers: The operators of the `Scan` nodes.
        session_readers: Those that read sessions.
        alphas: The alpha networks of the nodes whose rows are facts for `Match` nodes.
        inserted: The facts that updates have inserted.
        links: What streams say of owl:sameAs, if that changes how facts are read.
    """

    def __init__(
        self,
        plan: Plan,
        layout: DataflowLayout,
        operators: Mapping[str, Operator],
        tuning: Tuning,
        replaced: FactInput | None = None,
    ) -> None:
        self.updates = {id: op for id, op in operators.items() if isinstance(op, UpdateOperator)}
        self.derived_streams = {id: op for id, op in operators.items() if isinstance(op, DerivedStreamOperator)}
        self.inserted: InsertedFacts = InsertedFacts() if replaced is None else replaced.inserted
        self.links: Links | None = links_of(plan) if replaced is None else replaced.links
        self.alphas = {id: AlphaNetwork(plan, id) for id in layout.scans if layout.routes[id].matches}
        self.readers = {id: self._reader(plan, layout, id, tuning) for id in layout.scans}
        if replaced is not None:
            self._take_over(replaced.readers)
        self.session_readers = _session_readers(self.readers)
        for reader in (*self.readers.values(), *(feed.reader for feed in self.derived_streams.values())):
            if self.links is not None and reader.source.follows_links:
                reader.valid_facts.representatives = self.links.representatives

    def _take_over(self, readers: Mapping[str, ScanOperator]) -> None:
        """Takes over the scans of another dataflow, which are to read what this one needs."""
        for id, reader in readers.items():
            now = self.readers[id]
            reader.predicates = now.predicates
            reader.reads_all_triples, reader.reads_atoms = now.reads_all_triples, now.reads_atoms
            self.readers[id] = reader

    def _reader(self, plan: Plan, layout: DataflowLayout, id: str, tuning: Tuning) -> ScanOperator:
        op = plan.by_id[id].op
        assert isinstance(op, Scan)
        alpha, has_targets = self.alphas.get(id), bool(layout.routes[id].targets or layout.routes[id].constructs)
        return ScanOperator(
            op.source,
            alpha.predicates if alpha else (),
            has_targets or (alpha is not None and alpha.any_predicate is not None),
            has_targets or (alpha is not None and bool(alpha.atoms)),
            op.source.removals or plan.deletes,
            plan.deletes or op.source.follows_links,
            derived_streams=op.derived_streams,
            fixed_schema=op.fixed_schema,
            tuning=tuning,
        )

    def matched(self, id: str, facts: ScannedFacts) -> Iterable[Matched]:
        """Returns the rows of facts of a `Scan` node, by match."""
        alpha = self.alphas.get(id)
        if alpha is None:
            return ()
        matched = alpha.triples(facts.columnar or facts.boxes, facts.triples)
        if not facts.atoms:
            return matched
        return chain(matched, *(alpha.atoms_rows(*part) for part in by_kind(facts.atoms).items()))

    def facts(self, id: str, deltas: Iterable[Delta]) -> ScannedFacts:
        """Returns deltas of facts in the form in which a `Scan` node reads them."""
        facts, reader = ScannedFacts(), self.readers[id]
        facts.put(deltas, reader.predicates, reader.reads_all_triples, reader.reads_atoms)
        return facts

    def remove(self, fact: Fact, time: int, stream: str | None = None) -> Iterator[Change]:
        """Removes a fact from a stream, or from all of them (None): what was read or inserted of it before this time
        ends now."""
        for id, reader in self.readers.items():
            yield id, reader.remove(fact, time, stream)
        for id, feed in self.derived_streams.items():
            yield id, feed.remove(fact, time, stream)
        for source_stream, updates, arrival in self.inserted.remove(fact, stream):
            yield from self._changes(updates, source_stream, fact, arrival, time, -1)

    def close_sessions(self, now: int) -> Iterator[Change]:
        """Closes the sessions that close at a time (integer ms) or before."""
        for id, reader in self.session_readers.items():
            if deltas := list(reader.followed.advance(now)):
                yield id, deltas

    @property
    def dropped_facts(self) -> int:
        """How many facts have left a window that is bounded by time and number before their time had passed: of each
        stream and window, whoever reads it."""
        counts: dict[tuple[str, Window], int] = {}
        feeds = [feed.reader for feed in self.derived_streams.values()]
        for reader in (*self.readers.values(), *feeds):
            for stream, content in list(reader.followed.counts.items()):
                place = stream, content.window
                counts[place] = max(counts.get(place, 0), content.dropped_count)
        return sum(counts.values())

    def known_links(self) -> Sequence[Event]:
        """Returns the links that are known before the run as static data, if they may change and patterns read them."""
        if self.links is None:
            return ()
        reads_links = any(reader.reads_all_triples or SAME_AS in reader.predicates for reader in self.readers.values())
        return [Event(ALWAYS, tuple(self.links.cliques.triples))] if reads_links else ()

    @property
    def states(self) -> dict[str, Stateful]:
        """The states of the input side, by their ids."""
        of_links: dict[str, Stateful] = {} if self.links is None else {LINKS: self.links}
        return {**self.readers, INSERTED_FACTS: self.inserted, **of_links}

    def parts(self, events: Sequence[Event]) -> Iterable[Sequence[Event]]:
        """Returns events in parts. What streams say of owl:sameAs is in the first event of a part only."""
        return (events,) if self.links is None else self.links.parts(events)

    def follow_links(self, part: Sequence[Event]) -> Iterator[Change]:
        """Takes what the first of some events says of owl:sameAs: ends facts as they were read until now, and begins
        them with the representatives that they have from the event on."""
        if self.links is None or not part or not (terms := frozenset(self.links.update(part[0]))):
            return
        yield from list(self._with_terms(terms, part[0].time, -1))
        self.links.move()
        yield from self._with_terms(terms, part[0].time, 1)

    def _with_terms(self, terms: frozenset[Term], time: int, weight: int) -> Iterator[Change]:
        for id, reader in self.readers.items():
            yield id, _with_terms(reader, terms, time, weight)
        for id, feed in self.derived_streams.items():
            yield id, _with_terms(feed.reader, terms, time, weight)
        for fact, streams in self.inserted.facts.items():
            if not terms.isdisjoint(terms_of(fact)):
                for stream, (updates, arrival) in streams.items():
                    yield from self._changes(updates, stream, fact, arrival, time, weight)

    def insert(self, fact: Fact, time: int, stream: str, updates: Sequence[str]) -> Iterator[Change]:
        """Inserts a fact into a stream from now on, unless it was inserted already.

        Args:
            fact: The fact.
            time: Integer ms.
            stream: The stream.
            updates: The ids of the update nodes that insert it.
        """
        if self.inserted.insert(fact, time, stream, updates):
            yield from self._changes(updates, stream, fact, time, time, 1)

    def _changes(
        self, updates: Sequence[str], stream: str, fact: Fact, arrival: int, time: int, weight: int
    ) -> Iterator[Change]:
        """Yields the begin or the end of a fact that updates inserted at the time `arrival`. Each update node also
        outputs it."""
        for id, reader in self.readers.items():
            yield id, reader.insert(stream, fact, arrival, time, weight)
        for update in updates if stream != NOTES else ():
            yield update, [(*fact_row(fact, self.updates[update].rule), time, FOREVER, weight)]


def _session_readers(readers: Mapping[str, ScanOperator]) -> dict[str, ScanOperator]:
    return {
        id: reader for id, reader in readers.items() if any(window.has_sessions for window in reader.source.all_windows)
    }


def _with_terms(reader: ScanOperator, terms: frozenset[Term], time: int, weight: int) -> list[Delta]:
    """Ends (weight -1) or begins (1) at a time what is valid of the facts of a scan with some of the terms."""
    deltas: list[Delta] = []
    for fact, arrival in reader.valid_facts.with_terms(terms):
        if arrival.end > time:
            valid = max(arrival.start, time), arrival.end
            deltas += reader.entries(arrival.stream, fact, arrival.time, arrival.graph, valid, weight)
    deltas += reader.followed.with_terms(terms, time, weight)
    return deltas


def links_of(plan: Plan) -> Links | None:
    """Returns what holds the links of a plan; None if streams do not change the cliques of its sources."""
    sources = [node.op.source for node in plan.nodes if isinstance(node.op, Scan) and node.op.source.follows_links]
    return Links(sources) if sources else None
