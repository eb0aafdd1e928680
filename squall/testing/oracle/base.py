"""The types that all parts of the oracle share: answers, solutions, and an instant with its valid facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from squall.model import Arrivals, Graph, Graphs, Source, System, Variable
from squall.rdf import ALWAYS, Boolean, Evaluated, Fact, Quad, Solution, Term, Triple
from squall.rdf.compounds import is_compound

Names = frozenset[str]
Item = Fact | Quad | Solution | Boolean
Expected = tuple[int, Item | Evaluated, Names, str]
"""The time (integer ms) of an output, what it carries, the rules of which it may name one, and its change."""

BEGIN = ALWAYS + 2**32
"""Times below this one stand for steps at `ALWAYS`: the oracle gives each step a time of its own."""
SETTLED = ALWAYS + 1
"""The first step at which derived streams emit: static data have settled."""

Bindings = dict[Variable, Term]
"""A solution inside the oracle; an unbound variable is no key."""


class Answer(NamedTuple):
    """The answer at an instant: facts with the names of the rules that derive them, and solutions as a bag with the
    names of their queries, in the order of `Slice`. The answer of ASK counts as a solution."""

    facts: dict[Fact | Quad, Names]
    solutions: tuple[tuple[Solution | Boolean, str], ...]


Since = dict[object, int]
"""Since when each solution that reads the time holds (integer ms), by its place in the program."""
Consumed = dict[object, int]
"""When each occurrence became part of a match (integer ms), behind the keys and the place in the program."""


History = dict[int, dict[int, set[frozenset[tuple[Variable, Term]]]]]


@dataclass
class Instant:
    """An instant: the facts that are valid in each source, and those that reentrant rules have derived so far.

    given: the values that replace variables inside an `Exists`.
    history: the solutions of the system in each `Temporal`, by the identity of the `Temporal`, at each earlier instant.
    consumed: what matches have consumed, up to now.
    """

    time: int
    read: dict[Source, set[Fact]]
    before: Since
    since: Since = field(default_factory=dict)
    derived: set[Fact] = field(default_factory=set)
    given: Bindings = field(default_factory=dict)
    history: History = field(default_factory=dict)
    consumed: Consumed = field(default_factory=dict)

    def start(self, solution: object) -> int:
        """Returns the time (integer ms) since which the solution holds."""
        return self.since.setdefault(solution, self.before.get(solution, self.time))

    def anew(self) -> Instant:
        """Returns the instant as one at which all solutions begin to hold, so that the time is that of the instant."""
        return replace(self, before={}, since={})

    def graph(self, part: System) -> set[Fact]:
        """Returns the facts that the patterns of a part read."""
        facts = {fact for source in part.sources for fact in self.read.get(source, ())}
        return facts | set(filter(_filter_of(part), self.derived)) if reads_derived(part) else facts


def reported_time(time: int) -> int:
    """Returns the time of an instant outside the oracle."""
    return ALWAYS if time < BEGIN else time


def _filter_of(part: System) -> Callable[[Fact], bool] | None:
    """Returns whether a part sees a derived fact. Queries do not see triples that are none in RDF."""
    is_query = not any(source.reads_generalized_triples for source in part.sources if source.iri == "")
    return _is_well_formed if is_query else None


def _is_well_formed(fact: Fact) -> bool:
    return not isinstance(fact, Triple) or (
        fact.subject[0] in "<_" and fact.predicate[0] == "<" and not is_compound(fact.object)
    )


def reads_derived(part: System) -> bool:
    return any(source.iri == "" and not isinstance(source, Graph | Graphs | Arrivals) for source in part.sources)


def once(solutions: Iterable[Bindings]) -> list[Bindings]:
    return list({frozenset(solution.items()): solution for solution in solutions}.values())
