"""Cliques: the terms that name one resource (``owl:sameAs``), known before a run, with a representative of each.

A program whose sources have cliques reads each fact with the representatives in place of the terms: the quotient of
what the streams bring. See docs/decisions/0082-same-as.md. What streams say of owl:sameAs may change the cliques while
the program runs, if it is compiled so (docs/decisions/0094-links-in-streams.md).

Source: B. Motik, Y. Nenov, R. Piro, I. Horrocks: Handling owl:sameAs via Rewriting (AAAI 2015).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from squall.rdf import OWL, RDF, RDFS, Atom, Columns, Fact, Term, Triple, iri, is_literal, literal, parts
from squall.rdf.compounds import compound, parse_compound

SAME_AS = iri(OWL + "sameAs")
DATATYPE = "urn:x-squall:cliques"
"""The datatype of the literal that holds cliques, as functions take them."""
ENDING = f'"^^<{DATATYPE}>'
"""The end of the text of such a literal."""
VOCABULARIES = tuple(f"<{namespace}" for namespace in (RDF, RDFS, OWL))
"""The beginnings of terms that are in no clique: they have a meaning of their own."""


@dataclass(frozen=True)
class Cliques:
    """Disjoint sets of terms. The representative of a clique is its least term.

    They are held as one literal, which compares, pickles and prints as any constant of a plan does.

    Attributes:
        term: The literal. Each line of its text is a clique, in order, with blanks between the terms.
        keeps_terms: Whether facts are read with their own terms, which programs compare by representatives.
        drops_changes: Whether a triple that would change the cliques is a dead letter. Otherwise it is an error.
        named: If streams may change the cliques: the terms that always represent their cliques, since the programs
            name them. No two of them can become the same. None: the cliques are fixed.
    """

    term: Term
    keeps_terms: bool = False
    drops_changes: bool = False
    named: frozenset[Term] | None = None

    @classmethod
    def of(cls, pairs: Iterable[tuple[Term, Term]]) -> Cliques:
        """Returns the cliques of pairs of terms that are the same: the connected components."""
        parents: dict[Term, Term] = {}

        def root(term: Term) -> Term:
            while (parent := parents.setdefault(term, term)) != term:
                parents[term] = term = parents[parent]  # path halving
            return term

        for left, right in pairs:
            first, second = sorted((root(left), root(right)))
            parents[second] = first
        members: dict[Term, list[Term]] = {}
        for term in sorted(parents):
            members.setdefault(root(term), []).append(term)
        lines = sorted(" ".join(clique) for clique in members.values() if len(clique) > 1)
        return cliques_of(literal("\n".join(lines), DATATYPE))

    @cached_property
    def members(self) -> Mapping[Term, tuple[Term, ...]]:
        """The terms of each clique, in order, by its representative."""
        cliques = (tuple(map(Term, line.split(" "))) for line in parts(self.term).lexical.split("\n") if line)
        return {clique[0]: clique for clique in cliques}

    @cached_property
    def representatives(self) -> Mapping[Term, Term]:
        """The representative of each other term of a clique."""
        return {term: clique[0] for clique in self.members.values() for term in clique[1:]}

    @property
    def with_terms(self) -> Cliques:
        """The cliques for sources that deliver facts with their own terms."""
        return cliques_of(self.term, True, self.drops_changes)

    @property
    def dropping_changes(self) -> Cliques:
        """The cliques for sources in which triples that would change them are dead letters."""
        return cliques_of(self.term, self.keeps_terms, True)

    def changing(self, named: frozenset[Term]) -> Cliques:
        """Returns the cliques for sources whose streams may change them. What cannot be taken is a dead letter."""
        return cliques_of(self.term, self.keeps_terms, True, named)

    @property
    def may_change(self) -> bool:
        """Whether streams may change the cliques."""
        return self.named is not None

    @property
    def triples(self) -> Iterator[Triple]:
        """The least triples that say what the cliques are."""
        for representative, clique in self.members.items():
            yield from (Triple(representative, SAME_AS, term) for term in clique[1:])

    def representative(self, term: Term) -> Term:
        """Returns the representative of a term: itself, if it is in no clique. Compounds are rewritten inside."""
        replaced = self.representatives.get(term, term)
        if replaced == term and (built := parse_compound(term)) is not None:
            return compound(built.name, tuple(map(self.representative, built.arguments)))
        return replaced

    def clique(self, term: Term) -> tuple[Term, ...]:
        """Returns the terms that are the same as a representative or a term in no clique."""
        return self.members.get(term) or (term,)

    def fact(self, fact: Fact) -> Fact | None:
        """Returns a fact as it is read, with representatives; None for one that says what fixed cliques are."""
        get = self.representatives.get
        if isinstance(fact, Atom):
            return fact if self.keeps_terms else Atom(fact.relation, tuple(get(term, term) for term in fact.arguments))
        subject, predicate, object = fact
        if predicate == SAME_AS and not self.may_change:
            return None
        if self.keeps_terms:
            return fact
        return Triple(get(subject, subject), get(predicate, predicate), get(object, object))

    def facts(self, facts: Iterable[Fact]) -> list[Fact]:
        """Returns facts as they are read, without those that say what the cliques are."""
        return [fact for fact in map(self.fact, facts) if fact is not None]

    def columns(self, columns: Columns) -> Columns:
        """Returns columnar events as they are read. None of their triples says what the cliques are."""
        if self.keeps_terms:
            return columns
        get = self.representatives.get
        subjects, predicates, objects = (
            list(map(get, terms, terms)) for terms in (columns.subjects, columns.predicates, columns.objects)
        )
        return Columns(columns.times, columns.sizes, subjects, predicates, objects, columns.stream)

    def changes(self, facts: Iterable[Fact]) -> Iterator[Triple]:
        """Yields the triples that would change the cliques, if these are fixed; otherwise those that no clique can
        have."""
        for fact in facts:
            if fact[1] == SAME_AS and isinstance(fact, Triple):
                left, right = self.representative(fact.subject), self.representative(fact.object)
                if left != right and self._refuses(left, right):
                    yield fact

    def _refuses(self, left: Term, right: Term) -> bool:
        """Returns whether two representatives cannot become the same."""
        if self.named is None:
            return True
        apart = any(is_literal(term) or term.startswith(VOCABULARIES) for term in (left, right))
        named = {left, right} & self.named
        return apart or len(named) > 1 or any(term.startswith("_:") for term in named)  # an IRI would represent it

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the literal alone. A process has one object of it."""
        return cliques_of, (self.term, self.keeps_terms, self.drops_changes, self.named)


@lru_cache(maxsize=64)
def cliques_of(
    term: Term, keeps_terms: bool = False, drops_changes: bool = False, named: frozenset[Term] | None = None
) -> Cliques:
    """Returns the cliques that a literal holds."""
    return Cliques(term, keeps_terms, drops_changes, named)


def renamed(fact: Fact, names: Mapping[Term, Term], prefix: int) -> Fact:
    """Returns a fact with other names for some terms, but for the first arguments of an atom, `prefix` in number."""
    if isinstance(fact, Triple):
        return Triple(*(names.get(term, term) for term in fact))
    arguments = fact.arguments
    changed = (names.get(term, term) for term in arguments[prefix:])
    return fact._replace(arguments=tuple(chain(arguments[:prefix], changed)))
