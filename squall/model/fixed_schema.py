"""The schema of an entailment regime that is compiled into a system: no stream may change it while the system runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from squall.model.sources import Source
from squall.rdf import Fact, Term, Triple
from squall.rdf.cliques import Cliques
from squall.rdf.vocabulary import LIST_CELLS, TYPE


@dataclass(frozen=True)
class FixedSchema:
    """What is fixed before the run.

    Attributes:
        predicates: The predicates by which schemas are described.
        classes: The classes whose instances are a part of the schema, such as ``owl:SymmetricProperty``.
        triples: The schema. Facts that repeat it change nothing.
        sources: The sources of the patterns that have entailment. What only others read may say anything.
        cliques: The terms that are read as one, if any. The schema has representatives.
        drops_changes: Whether a triple that would change the schema is a dead letter. Otherwise it is an error.
        cells: The terms that stand for the cells of lists of the schema, if lists matter.
        notes: What became of rule sets that are specialised by the schema, in words.
    """

    predicates: frozenset[Term]
    classes: frozenset[Term]
    triples: frozenset[Triple]
    sources: tuple[Source, ...] = ()
    drops_changes: bool = False
    cells: frozenset[Term] = frozenset()
    notes: tuple[str, ...] = field(default=(), compare=False)
    cliques: Cliques | None = None

    @property
    def read_predicates(self) -> frozenset[Term]:
        """The predicates of all triples that might change the schema."""
        return self.describing_predicates | {TYPE}

    @cached_property
    def describing_predicates(self) -> frozenset[Term]:
        """The predicates of which any triple is a part of schemas, or may be one: the cell of a list."""
        return self.predicates.union(LIST_CELLS) if self.cells else self.predicates

    def guards(self, source: Source) -> bool:
        """Returns whether a source must not change the schema."""
        return replace(source, removals=False) in self._guarded_sources

    @cached_property
    def _guarded_sources(self) -> frozenset[Source]:
        return frozenset(replace(source, removals=False) for source in self.sources)

    def describes(self, predicate: object, object: object) -> bool:
        """Returns whether triples with a predicate and an object are a part of schemas."""
        return predicate in self.describing_predicates or (predicate == TYPE and object in self.classes)

    def changes(self, facts: Iterable[Fact]) -> Iterator[Triple]:
        """Yields the triples that would change the schema."""
        for fact in facts:
            read = fact if self.cliques is None else self.cliques.fact(fact)
            if not (isinstance(fact, Triple) and isinstance(read, Triple)):
                continue
            if self.describes(*read[1:]) and read not in self.triples:
                is_of_data = read.predicate in LIST_CELLS and self.cells.isdisjoint((read.subject,))
                if not is_of_data:
                    yield fact
