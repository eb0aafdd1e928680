"""The facts that streams brought and that may be removed before they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from squall.builders.runtime.zset import Delta, fact_row, row_fact
from squall.rdf import ALWAYS, Fact, Term, Triple


class Arrival(NamedTuple):
    """The arrival of a fact in a stream.

    Attributes:
        stream: The stream.
        graph: The named graph, or "".
        time: The time of the event (integer ms).
        start: Since when the fact is valid.
        end: Until when it is valid.
    """

    stream: str
    graph: str
    time: int
    start: int
    end: int


class ValidFacts:
    """The arrivals of facts that have not ended, for a scan whose facts may be removed.

    Args:
        is_needed: Whether facts may be removed. Otherwise there are no arrivals here.
        has_static: Whether that goes for static data, too.
        min_rows_to_sweep: With so many facts, expired arrivals are dropped.

    Attributes:
        arrivals: The arrivals of each fact as it came.
        representatives: The terms by which the scan reads some terms of facts from now on, beside those that the
            cliques of its source tell (`squall.builders.runtime.same_as_links`).
    """

    def __init__(self, is_needed: bool, has_static: bool, min_rows_to_sweep: int) -> None:
        self.is_needed = is_needed
        self.has_static = has_static
        self.min_rows_to_sweep = self.sweep_rows = min_rows_to_sweep
        self.arrivals: dict[Fact, list[Arrival]] = {}
        self.representatives: Mapping[Term, Term] = {}
        self._facts_of: dict[Term, dict[Fact, None]] | None = None
        """The facts with each term, ended ones among them; None while nobody has asked for them."""

    def includes(self, time: int) -> bool:
        """Returns whether facts of an event at a time (integer ms) belong here."""
        return self.is_needed and (time != ALWAYS or self.has_static)

    def add(self, fact: Fact, arrival: Arrival) -> None:
        """Adds an arrival of a fact."""
        self.arrivals.setdefault(fact, []).append(arrival)
        if self._facts_of is not None:
            _index(self._facts_of, fact)

    def with_terms(self, terms: Iterable[Term]) -> Iterator[tuple[Fact, Arrival]]:
        """Yields the facts that have some of the terms, with their arrivals."""
        if self._facts_of is None:
            self._facts_of = {}
            for fact in self.arrivals:
                _index(self._facts_of, fact)
        facts = dict.fromkeys(fact for term in terms for fact in self._facts_of.get(term, ()))
        for fact in facts:
            yield from ((fact, arrival) for arrival in self.arrivals.get(fact, ()))

    def end(self, fact: Fact, ends: Callable[[Arrival], bool]) -> list[Arrival]:
        """Removes and returns the arrivals of a fact that `ends` selects."""
        arrivals = self.arrivals.pop(fact, [])
        ended = [arrival for arrival in arrivals if ends(arrival)]
        if len(ended) < len(arrivals):
            self.arrivals[fact] = [arrival for arrival in arrivals if not ends(arrival)]
        return ended

    def restore(self, counts: Mapping[Delta, int]) -> None:
        """Adds arrivals, or removes them, by the rows of `change_of`. Expired arrivals may be unknown."""
        for (stream, graph, time, *cells, start, end), count in counts.items():
            fact, arrival = cast(Fact, row_fact(cells)), Arrival(stream, graph, int(time), start, end)
            arrivals = self.arrivals.setdefault(fact, [])
            arrivals += [arrival] * count
            for _ in range(min(-count, arrivals.count(arrival))):
                arrivals.remove(arrival)
            if not arrivals:
                del self.arrivals[fact]
        self._facts_of = None

    def streams_of(self, fact: Fact) -> Iterable[str]:
        """Returns the streams that brought a fact."""
        return {arrival.stream for arrival in self.arrivals.get(fact, ())}

    def expire(self, now: int) -> None:
        """Drops arrivals that ended at `now` (integer ms) or before, if there are many facts."""
        if len(self.arrivals) < self.sweep_rows:
            return
        for fact, arrivals in list(self.arrivals.items()):
            self.arrivals[fact] = [arrival for arrival in arrivals if arrival.end > now]
            if not self.arrivals[fact]:
                del self.arrivals[fact]
        self.sweep_rows = max(self.min_rows_to_sweep, 2 * len(self.arrivals))
        self._facts_of = None

    def size(self) -> int:
        """Returns the number of arrivals."""
        return sum(map(len, self.arrivals.values()))


def terms_of(fact: Fact) -> Iterable[Term]:
    """Returns the terms of a fact."""
    return fact if isinstance(fact, Triple) else fact.arguments


def _index(facts_of: dict[Term, dict[Fact, None]], fact: Fact) -> None:
    for term in terms_of(fact):
        facts_of.setdefault(term, {})[fact] = None


def change_of(fact: Fact, arrival: Arrival, weight: int) -> Delta:
    """Returns the delta by which an arrival is logged that is added (weight 1) or removed (-1)."""
    stream, graph, time, *valid = arrival
    return (stream, graph, str(time), *fact_row(fact)[:-1], *valid, weight)
