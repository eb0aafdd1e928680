"""What all parts of the oracle are about: answers, solutions, and an instant with the facts that are valid then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from squall.model import Arrivals, Graph, Graphs, Source, System, Variable
from squall.rdf import ALWAYS, Boolean, Evaluated, Fact, Quad, Solution, Term

Names = frozenset[str]
Item = Fact | Quad | Solution | Boolean
Expected = tuple[int, Item | Evaluated, Names]
"""The time (integer ms) and what an output hands on, and the rules of which one may be given as its maker."""

BEGIN = ALWAYS + 2**32
"""Before this time all is at `ALWAYS`: what happens there step by step has times of its own in the oracle."""
SETTLED = ALWAYS + 1
"""The first of these steps at which streams that the program makes are told: static data have come to rest."""

Bindings = dict[Variable, Term]
"""A solution inside: what is unbound is not in it."""


class Answer(NamedTuple):
    """What is answered at an instant: facts with the names of the rules that derive them, solutions with the name of
    theirs, each as often as it is one, in the order of `Slice`; the answer of ASK is like a solution."""

    facts: dict[Fact | Quad, Names]
    solutions: tuple[tuple[Solution | Boolean, str], ...]


Since = dict[object, int]
"""Since when each solution that asked the time holds (integer ms), by its place in the program."""


@dataclass
class Instant:
    """An instant: the facts that are valid in each source, and those that reentrant rules have derived so far. given:
    inside an `Exists`, the values by which variables are replaced there."""

    time: int
    read: dict[Source, set[Fact]]
    before: Since
    since: Since = field(default_factory=dict)
    derived: set[Fact] = field(default_factory=set)
    given: Bindings = field(default_factory=dict)

    def start(self, solution: object) -> int:
        """Since when the solution holds."""
        return self.since.setdefault(solution, self.before.get(solution, self.time))

    def graph(self, part: System) -> set[Fact]:
        """What the patterns of a part read."""
        found = {fact for source in part.sources for fact in self.read.get(source, ())}
        return found | self.derived if reads_derived(part) else found


def told_at(time: int) -> int:
    """The time by which an instant is known outside the oracle."""
    return ALWAYS if time < BEGIN else time


def reads_derived(part: System) -> bool:
    return any(source.iri == "" and not isinstance(source, Graph | Graphs | Arrivals) for source in part.sources)


def once(solutions: Iterable[Bindings]) -> list[Bindings]:
    return list({frozenset(solution.items()): solution for solution in solutions}.values())
