"""The effect of updates on the graphs, and the changes that their solutions demand."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from squall.functions.timers import TIMERS, due_time, fired, sets_timer
from squall.model import Delete, Insert, Source, System, Variable, is_initial, is_update
from squall.rdf import ALWAYS, FOREVER, NOTES, WORKING, Fact, Term, Triple, iri_text, is_iri
from squall.testing.oracle.base import Bindings, Instant
from squall.testing.oracle.models import instance, is_answer
from squall.testing.oracle.solutions import solutions_of
from squall.testing.oracle.validity import Stay, cut_short, reads

_Quad = tuple[str | None, Triple, int]
"""The stream of the graph (None: the default graph), a fact, and the rule that deletes or inserts it."""
_Demand = tuple[bool, str | None, Triple, int]
"""A quad to change, preceded by whether it is inserted."""


@dataclass
class State:
    """The content of each source, and the facts that updates have inserted and not deleted, by stream and fact: the
    time since when, and the identities of the rules that an output may name."""

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
        for stays in self.stays.values():
            cut_short([stay for stay in stays if stream in (None, stay.stream, stay.graph[1:-1])], {fact}, time)
        for quad in [quad for quad in self.working if quad[1] == fact and stream in (None, quad[0])]:
            del self.working[quad]

    def insert(self, stream: str, fact: Triple, time: int, rule: int) -> None:
        if sets_timer(stream, fact.predicate):
            try:
                due = due_time(fact.predicate, fact.object, _set_at(time))
            except ValueError:
                return
            fact = fired(fact) if due <= max(time, 0) else fact
        since, rules = self.working.get((stream, fact), (time, frozenset()))
        if (stream, fact) not in self.working:
            for source, stays in self.stays.items():
                if reads(source, stream):
                    stays.append(Stay(fact, stream, "", time, time, FOREVER))
        self.working[stream, fact] = since, rules | {rule} if since == time else rules

    def timers(self) -> dict[Triple, int]:
        """Returns the timers that are set, and when they fire. What static data set counts from 0 on."""
        return {
            fact: due_time(fact.predicate, fact.object, _set_at(since))
            for (stream, fact), (since, _) in self.working.items()
            if sets_timer(stream, fact.predicate)
        }

    def fire(self, time: int) -> bool:
        """Replaces the timers that are due at a time by what says that they have fired. Returns whether there are
        any."""
        due_timers = [timer for timer, due in self.timers().items() if due <= time]
        for timer in due_timers:
            _, rules = self.working[TIMERS, timer]
            self.delete(TIMERS, timer, time)
            for rule in rules:
                self.insert(TIMERS, fired(timer), time, rule)
        return bool(due_timers)

    def inserted(self, time: int) -> dict[Fact, set[int]]:
        """Returns the inserted facts that are part of the answer, with the identities of the inserting rules."""
        makers: dict[Fact, set[int]] = {}
        for (stream, fact), (_, rules) in self.working.items():
            if stream != NOTES:
                makers.setdefault(fact, set()).update(rules)
        return makers


def _set_at(time: int) -> int:
    """Returns the time from which the duration of a timer counts that is inserted at a time."""
    return 0 if time == ALWAYS else time - 1


Acting = tuple[int, frozenset[tuple[Variable, Term]]]
"""A solution of an update: the number of the rule, and its bindings."""


def acting_solutions(program: list[System], instant: Instant) -> Iterator[Acting]:
    """Yields the solutions of all updates."""
    for number, rule in enumerate(program):
        if is_update(rule):
            yield from ((number, frozenset(solution.items())) for solution in solutions_of(rule, instant))


def demands_of(program: list[System], acting: Acting) -> Iterator[_Demand]:
    """Yields the changes that a solution demands. A rule without a body has inserted its facts at the start."""
    number, solution = acting
    rule = program[number]
    yield from ((False, *quad) for quad in quads(rule, Delete, dict(solution)))
    if not is_initial(rule):
        yield from ((True, *quad) for quad in quads(rule, Insert, dict(solution)))


def quads(rule: System, kind: type[Insert | Delete], solution: Bindings) -> Iterator[_Quad]:
    """Yields the facts of the templates for a solution, if they are RDF and their graph is an IRI."""
    for consequence in (consequence for consequence in rule.consequences if isinstance(consequence, kind)):
        graph = solution.get(consequence.graph) if isinstance(consequence.graph, Variable) else consequence.graph
        if consequence.graph is not None and (graph is None or not is_iri(graph)):
            continue
        for template in consequence.template:
            fact = instance(template, solution)
            if isinstance(fact, Triple) and is_answer(fact):
                yield None if graph is None else iri_text(graph), fact, id(rule)
