"""Links: what streams say of owl:sameAs while a program runs, and the representatives that follow from it.

A link holds from the time of its event until it is removed, whatever windows there are. Scans read each fact with the
representative of each of its terms at each time. So where a link changes representatives, the facts that are valid end
as they were read, and begin as they are read from then on (`squall.builders.runtime.fact_input`).
See docs/decisions/0094-links-in-streams.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from squall.builders.runtime.operators.state import Stateful, sum_weights
from squall.builders.runtime.zset import Delta
from squall.errors import SourceError
from squall.model import Source
from squall.rdf import ALWAYS, DEFAULT_STREAM, FOREVER, Columns, Event, Fact, Term, Triple
from squall.rdf.cliques import SAME_AS, Cliques

_STATIC = "static"
_Link = tuple[Term, Term]
_Holder = tuple[str, str, str]
"""A stream that says a link, the named graph in which it does ("" for none), and `_STATIC` for static data."""


@dataclass
class _Component:
    """Terms that are the same, and the one that represents them."""

    terms: set[Term]
    representative: Term


class Links(Stateful):
    """The links of a run: connected components of representatives (`Cliques`).

    Args:
        sources: The sources of the plan whose streams may change the cliques, one at least.

    Attributes:
        representatives: The term by which scans read a representative of the known cliques, or a term that is in none,
            if links have merged it with others.
    """

    kind = "links"

    def __init__(self, sources: Sequence[Source]) -> None:
        super().__init__()
        self.sources = sources
        self.cliques = cast(Cliques, sources[0].cliques)
        self.representatives: dict[Term, Term] = {}
        self._holders: dict[_Link, set[_Holder]] = {}
        self._neighbours: dict[Term, set[Term]] = {}
        self._components: dict[Term, _Component] = {}
        """The component of each term that has links."""
        self._moves: dict[Term, Term] = {}
        """The terms whose representatives have changed since the last `move`, with the new ones."""

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """Yields events in parts. Links are in the first event of a part only."""
        if isinstance(events, Columns):
            if SAME_AS not in events.predicates:
                yield events
                return
            events = list(events)
        first = 0
        for place, event in enumerate(events):
            if place > first and any(_links((*event.facts, *event.removed))):
                yield events[first:place]
                first = place
        yield events[first:]

    def update(self, event: Event) -> Collection[Term]:
        """Takes the links of an event, and returns the terms of facts that have other representatives by them.

        `representatives` is as before until `move` is called.

        Raises:
            SourceError: Two terms that the programs name would become the same.
        """
        links = [*_links(event.facts)], [*_links(event.removed)]
        if not any(links) or not any(source.is_affected_by(event) for source in self.sources):
            return ()
        holder = (event.stream, event.graph, _STATIC if event.is_static else "")
        added, removed = ([self._link(triple) for triple in part] for part in links)
        for link in removed:
            if holder in self._holders.get(link, ()):
                self._remove(link, holder)
                self._log(link, holder, -1)
        for link, triple in zip(added, links[0], strict=True):
            if holder not in self._holders.get(link, ()):
                self._check(event, triple)
                self._add(link, holder)
                self._log(link, holder, 1)
        self._moves = {term: to for term, to in self._moves.items() if self.representatives.get(term, term) != to}
        return [name for term in self._moves for name in self.cliques.clique(term)]

    def move(self) -> None:
        """Makes the representatives those of the present links."""
        self.representatives.update(self._moves)
        for term, representative in self._moves.items():
            if term == representative:
                del self.representatives[term]
        self._moves = {}

    # Components

    def _link(self, triple: Triple) -> _Link:
        left, right = sorted(map(self.cliques.representative, (triple.subject, triple.object)))
        return left, right

    def _component(self, term: Term) -> _Component:
        return self._components.get(term) or _Component({term}, term)

    def _add(self, link: _Link, holder: _Holder) -> None:
        self._holders.setdefault(link, set()).add(holder)
        left, right = link
        self._neighbours.setdefault(left, set()).add(right)
        self._neighbours.setdefault(right, set()).add(left)
        parts = self._component(left), self._component(right)
        if right in parts[0].terms:
            return
        representative = self._representative({part.representative for part in parts})
        for part in parts:
            if part.representative != representative:
                self._moves.update(dict.fromkeys(part.terms, representative))
        smaller, larger = sorted(parts, key=lambda part: len(part.terms))
        larger.terms |= smaller.terms
        larger.representative = representative
        self._components.update(dict.fromkeys((*smaller.terms, left, right), larger))

    def _remove(self, link: _Link, holder: _Holder) -> None:
        self._holders[link].discard(holder)
        if self._holders[link]:
            return
        del self._holders[link]
        left, right = link
        self._neighbours[left].discard(right)
        self._neighbours[right].discard(left)
        for terms in (self._reached(left), self._reached(right)):
            component = _Component(terms, self._representative(terms))
            self._components.update(dict.fromkeys(terms, component))
            self._moves.update(dict.fromkeys(terms, component.representative))

    def _reached(self, term: Term) -> set[Term]:
        """Returns the terms to which links lead from a term."""
        reached, agenda = {term}, [term]
        while agenda:
            new = self._neighbours.get(agenda.pop(), set()) - reached
            reached |= new
            agenda += new
        return reached

    def _representative(self, terms: set[Term]) -> Term:
        """Returns the term that the programs name, or else the least one."""
        return min(terms & self._named or terms)

    @property
    def _named(self) -> frozenset[Term]:
        return cast(frozenset[Term], self.cliques.named)

    def _check(self, event: Event, triple: Triple) -> None:
        """Raises SourceError if a link makes two terms the same that the programs name."""
        left, right = (self._component(term).representative for term in self._link(triple))
        if left == right or not {left, right} <= self._named:
            return
        stream = f"the stream `{event.stream}`" if event.stream else DEFAULT_STREAM
        message = f"{stream} says at {event.time} what makes {left} and {right} the same: {triple}"
        hint = "the programs name both terms: give the link before the run (`--schema`), or treat owl:sameAs by axioms"
        raise SourceError(message, hint=f"{hint} (`--same-as axioms`)")

    # State

    def _log(self, link: _Link, holder: _Holder, weight: int) -> None:
        self.note(0, [(*holder, *link, ALWAYS, FOREVER, weight)])

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        for (*holder, left, right, _, _), count in sum_weights(deltas).items():
            change = self._add if count > 0 else self._remove
            if count:
                change((left, right), cast(_Holder, tuple(holder)))
        self.move()

    def size(self) -> int:
        return sum(map(len, self._holders.values()))


def _links(facts: Iterable[Fact]) -> Iterator[Triple]:
    """Yields the triples of owl:sameAs."""
    return (fact for fact in facts if fact[1] == SAME_AS and isinstance(fact, Triple))
