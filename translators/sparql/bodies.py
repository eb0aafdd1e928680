"""A system in the making: what is joined so far, and the predicates that come after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from squall.errors import Origin
from squall.functions.sparql.logic import EBV
from squall.functions.sparql.names import FALSE
from squall.model import (
    GRAPH,
    AtomPattern,
    Bind,
    Call,
    Consequence,
    FactPattern,
    Filter,
    Joinable,
    Negation,
    Predicate,
    Select,
    Source,
    System,
    Union,
    Variable,
    variables,
    visible,
)
from squall.translators.sparql.datasets import Reads

NOTHING = Filter(Call(EBV.iri, (FALSE,)))
"""A test that no solution passes."""


class Body:
    """The body of a system whose patterns read the same. sides: where it stands for pairs of solutions, the bodies of
    which these are."""

    def __init__(self, reads: Reads, parts: Iterable[Joinable] = (), sides: tuple[Body, Body] | None = None) -> None:
        self.reads = reads
        self.sides = sides
        self.joinables: list[Joinable] = []
        self.predicates: list[Predicate] = []
        for part in parts:
            self.join(part)

    def join(self, part: Joinable) -> None:
        """Joins one thing more. What has predicates already becomes a part, so that they stay in front of the join."""
        if self.predicates:
            self.joinables, self.predicates = [self.system()], []
        if not isinstance(part, System) or not self._may_hold(part):
            self.joinables.append(part)
        elif not part.predicates or not self.joinables:
            self.joinables += part.joinables
            self.predicates += part.predicates
        else:
            self.joinables.append(part)

    def _may_hold(self, part: System) -> bool:
        """Whether what a part says means the same where it is written out here."""
        plain = part == System(sources=part.sources, joinables=part.joinables, predicates=part.predicates)
        return plain and (part.sources == self.reads.sources or not _has_patterns(part))

    def add(self, *predicates: Predicate) -> None:
        """Applies predicates to what is there so far."""
        self.predicates += predicates

    def fail(self) -> None:
        """Leaves no solution."""
        self.add(NOTHING)

    def ground(self) -> None:
        """Where patterns are over each graph, lets there be a solution for each graph, if none is said to be in one
        yet."""
        graph = self.reads.graph
        if graph is not None and graph not in self.variables:
            self.join(graph_names(graph, self.reads.sources))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the solutions so far, blank nodes among them."""
        return visible(self.system())

    @property
    def sure(self) -> frozenset[Variable]:
        """Variables that are bound in all solutions so far, as far as patterns tell."""
        return sure(self.system())

    @property
    def solution(self) -> tuple[Variable, ...]:
        """The variables that tell one solution from another: what is computed from others does not, nor do names that
        the translation made up."""
        other_predicates = tuple(part for part in self.predicates if not isinstance(part, Bind))
        names = visible(replace(self.system(), predicates=other_predicates))
        return tuple(name for name in names if " " not in name.name or name in self.reads.place)

    def system(self, consequences: Iterable[Consequence] = (), name: str = "", origin: Origin | None = None) -> System:
        """What is there so far, as a system."""
        ends = tuple(consequences)
        if len(self.joinables) == 1 and not self.predicates:
            (alone,) = self.joinables
            if isinstance(alone, System) and not (alone.consequences or alone.distinct or alone.slice):
                return replace(alone, name=name, consequences=ends, origin=origin or alone.origin)
        parts = tuple(self.joinables), tuple(self.predicates)
        return System(name, self.reads.sources, *parts, consequences=ends, origin=origin)

    def branch(self, variables: Iterable[Variable]) -> System:
        """What is there so far, as a part that shows these variables alone."""
        return replace(self.system(), consequences=(Select(tuple(dict.fromkeys(variables))),))


def sure(part: Joinable) -> frozenset[Variable]:
    """Variables of a part, as it is seen from outside, that patterns bind in each of its solutions."""
    match part:
        case System(joinables=joinables, grouping=grouping):
            bound = frozenset[Variable]().union(*map(sure, joinables))
            return bound.intersection(visible(part) if grouping is None else grouping.keys)
        case Union(branches=branches):
            return frozenset.intersection(*map(sure, branches))
        case _:
            return frozenset(variables(part))


def _has_patterns(part: System) -> bool:
    """Whether patterns read the sources of this part itself."""
    absent = [
        inner_joinable
        for predicate in part.predicates
        if isinstance(predicate, Negation)
        for inner_joinable in predicate.joinables
    ]
    return any(isinstance(joinable, FactPattern) for joinable in (*part.joinables, *absent))


def graph_names(graph: Variable, sources: tuple[Source, ...]) -> System:
    """The names of all graphs of some sources, each once."""
    pattern = AtomPattern(GRAPH, (graph, *_TRIPLE))
    return System(sources=sources, joinables=(pattern,), distinct=True, consequences=(Select((graph,)),))


_TRIPLE = tuple(Variable(f"graph {part}") for part in ("subject", "predicate", "object"))


def empty(variables: Iterable[Variable]) -> System:
    """A part without solutions."""
    return System(predicates=(NOTHING,), consequences=(Select(tuple(variables)),))
