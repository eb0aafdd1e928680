"""What updates do to the graphs, and what their solutions demand."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from squall.model import Delete, Insert, Source, System, Variable, is_initial, is_update
from squall.rdf import FOREVER, NOTES, WORKING, Fact, Term, Triple, iri_text, is_iri
from squall.testing.oracle.base import Bindings, Instant
from squall.testing.oracle.models import instance, is_answer
from squall.testing.oracle.solutions import solutions_of
from squall.testing.oracle.validity import Stay, cut_short, reads

_Quad = tuple[str | None, Triple, int]
"""The stream of the graph (None: the default graph), a fact, and the rule that deletes or inserts it."""
_Demand = tuple[bool, str | None, Triple, int]
"""The same, with whether it is inserted."""


@dataclass
class State:
    """What is read through each source, and, by stream and fact, what updates have inserted that has not been deleted:
    since when, and the rules that may be named, by identity."""

    stays: dict[Source, list[Stay]]
    working: dict[tuple[str, Triple], tuple[int, frozenset[int]]] = field(default_factory=dict)

    def change(self, demands: Collection[_Demand], time: int) -> None:
        """Deletes, then inserts."""
        for inserts, stream, fact, _ in demands:
            if not inserts:
                self.delete(stream, fact, time)
        for inserts, stream, fact, rule in demands:
            if inserts:
                self.insert(stream or WORKING, fact, time, rule)

    def delete(self, stream: str | None, fact: Triple, time: int) -> None:
        for known in self.stays.values():
            cut_short([stay for stay in known if stream in (None, stay.stream, stay.graph[1:-1])], {fact}, time)
        for quad in [quad for quad in self.working if quad[1] == fact and stream in (None, quad[0])]:
            del self.working[quad]

    def insert(self, stream: str, fact: Triple, time: int, rule: int) -> None:
        since, rules = self.working.get((stream, fact), (time, frozenset()))
        if (stream, fact) not in self.working:
            for source, known in self.stays.items():
                if reads(source, stream):
                    known.append(Stay(fact, stream, "", time, time, FOREVER))
        self.working[stream, fact] = since, rules | {rule} if since == time else rules

    def inserted(self, time: int) -> dict[Fact, set[int]]:
        """What updates have inserted that is answered, with the rules that did."""
        found: dict[Fact, set[int]] = {}
        for (stream, fact), (_, rules) in self.working.items():
            if stream != NOTES:
                found.setdefault(fact, set()).update(rules)
        return found


Acting = tuple[int, frozenset[tuple[Variable, Term]]]
"""A solution of an update: the number of the rule, and what is bound in it."""


def acting_solutions(program: list[System], instant: Instant) -> Iterator[Acting]:
    """The solutions of all updates."""
    for number, rule in enumerate(program):
        if is_update(rule):
            yield from ((number, frozenset(solution.items())) for solution in solutions_of(rule, instant))


def demands_of(program: list[System], one: Acting) -> Iterator[_Demand]:
    """What a solution deletes and inserts; what a rule without a body inserts is there already."""
    number, solution = one
    rule = program[number]
    yield from ((False, *quad) for quad in quads(rule, Delete, dict(solution)))
    if not is_initial(rule):
        yield from ((True, *quad) for quad in quads(rule, Insert, dict(solution)))


def quads(rule: System, kind: type[Insert | Delete], solution: Bindings) -> Iterator[_Quad]:
    """The facts that templates make of a solution, where they are RDF and their graph is an IRI."""
    for one in (one for one in rule.consequences if isinstance(one, kind)):
        graph = solution.get(one.graph) if isinstance(one.graph, Variable) else one.graph
        if one.graph is not None and (graph is None or not is_iri(graph)):
            continue
        for template in one.template:
            fact = instance(template, solution)
            if isinstance(fact, Triple) and is_answer(fact):
                yield None if graph is None else iri_text(graph), fact, id(rule)
