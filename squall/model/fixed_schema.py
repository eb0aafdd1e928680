"""The schema of an entailment regime that is compiled into a system: no stream may change it while the system runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from squall.model.sources import Source
from squall.rdf import Fact, Term, Triple
from squall.rdf.vocabulary import TYPE


@dataclass(frozen=True)
class FixedSchema:
    """What is fixed before the run.

    Attributes:
        predicates: The predicates by which schemas are described.
        classes: The classes whose instances are a part of the schema, such as ``owl:SymmetricProperty``.
        triples: The schema. Facts that repeat it change nothing.
        sources: The sources of the patterns that have entailment. What only others read may say anything.
        drops_changes: Whether a triple that would change the schema is a dead letter. Otherwise it is an error.
    """

    predicates: frozenset[Term]
    classes: frozenset[Term]
    triples: frozenset[Triple]
    sources: tuple[Source, ...] = ()
    drops_changes: bool = False

    @property
    def read_predicates(self) -> frozenset[Term]:
        """The predicates of all triples that might change the schema."""
        return self.predicates | {TYPE}

    def describes(self, predicate: object, object: object) -> bool:
        """Returns whether triples with a predicate and an object are a part of schemas."""
        return predicate in self.predicates or (predicate == TYPE and object in self.classes)

    def changes(self, facts: Iterable[Fact]) -> Iterator[Triple]:
        """Yields the triples that would change the schema."""
        for fact in facts:
            if isinstance(fact, Triple) and self.describes(*fact[1:]) and fact not in self.triples:
                yield fact
