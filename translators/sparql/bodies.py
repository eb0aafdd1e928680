"""A system under construction: its joinables so far, and the predicates that follow them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from squall.errors import Origin
from squall.functions.sparql.logic import EBV
from squall.functions.sparql.names import FALSE
from squall.functions.sparql.terms import SINCE
from squall.model import (
    GRAPH,
    GRAPH_EXISTS,
    AtomPattern,
    Bind,
    Call,
    Consequence,
    Filter,
    Joinable,
    Pattern,
    Predicate,
    Select,
    Source,
    System,
    Union,
    Variable,
    variables,
    visible,
)
from squall.model.reading import has_patterns
from squall.translators.sparql.datasets import ActiveDataset
from squall.translators.sparql.occurrences import identity, with_identity, with_identity_after

FALSE_FILTER = Filter(Call(EBV.iri, (FALSE,)))
"""A filter that drops every solution."""
_SINCE = Call(SINCE.iri, ())


class Body:
    """The body of a system whose patterns read the same dataset.

    Attributes:
        reads: The dataset.
        sides: The two bodies of an OPTIONAL, if the body stands for pairs of their solutions.
    """

    def __init__(
        self, reads: ActiveDataset, parts: Iterable[Joinable] = (), sides: tuple[Body, Body] | None = None
    ) -> None:
        self.reads = reads
        self.sides = sides
        self.joinables: list[Joinable] = []
        self.predicates: list[Predicate] = []
        for part in parts:
            self.join(part)

    def join(self, part: Joinable) -> None:
        """Joins a joinable. A body with predicates becomes a part first, so that they apply before the join."""
        if self.predicates:
            self.joinables, self.predicates = [self.system()], []
        if not isinstance(part, System) or not self._can_inline(part):
            self.joinables.append(part)
        elif not part.predicates or not self.joinables:
            self.joinables += part.joinables
            self.predicates += part.predicates
        else:
            self.joinables.append(part)

    def _can_inline(self, part: System) -> bool:
        """Returns whether a part means the same if its contents are copied into this body."""
        return is_plain(part) and (part.sources == self.reads.sources or not has_patterns(part))

    def add(self, *predicates: Predicate) -> None:
        """Applies predicates to the solutions so far."""
        self.predicates += predicates

    def fail(self) -> None:
        """Drops all solutions."""
        self.add(FALSE_FILTER)

    def bind_graph(self) -> None:
        """Binds the graph variable of patterns over each graph, if no pattern does so yet."""
        graph = self.reads.graph
        if graph is not None and graph not in self.variables:
            self.join(graph_names(graph, self.reads.sources))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the solutions so far, including blank nodes."""
        return visible(self.system())

    @property
    def always_bound(self) -> frozenset[Variable]:
        """The variables that patterns bind in all solutions so far."""
        return always_bound(self.system())

    def distinguish(self, fresh: Callable[[str], Variable]) -> tuple[Variable, ...]:
        """Distinguishes equal solutions so far. Returns the variables that identify a solution."""
        self.joinables = [with_identity(part, fresh) for part in self.joinables]
        self.predicates = [with_identity_after(predicate, fresh) for predicate in self.predicates]
        return identity(self.joinables, self.predicates)

    def since(self, fresh: Callable[[str], Variable], despite_filters: bool = False) -> Variable:
        """Returns the variable of the time since which the solutions so far hold. It is bound if there is none yet.

        Args:
            fresh: Returns a new variable.
            despite_filters: Whether the time since which they hold without the last filters will do.
        """
        for predicate in reversed(self.predicates):
            if isinstance(predicate, Bind) and predicate.expression == _SINCE:
                return predicate.variable
            if not (despite_filters or isinstance(predicate, Bind)):
                break
        variable = fresh("since")
        self.add(Bind(variable, _SINCE))
        return variable

    @property
    def solution(self) -> tuple[Variable, ...]:
        """The variables that identify a solution. They exclude computed variables, and variables of the translator."""
        other_predicates = tuple(part for part in self.predicates if not isinstance(part, Bind))
        names = visible(replace(self.system(), predicates=other_predicates))
        return tuple(name for name in names if " " not in name.name or name in self.reads.graph_key)

    def system(self, consequences: Iterable[Consequence] = (), name: str = "", origin: Origin | None = None) -> System:
        """Returns the body as a system."""
        ends = tuple(consequences)
        if len(self.joinables) == 1 and not self.predicates:
            (alone,) = self.joinables
            if isinstance(alone, System) and not (alone.consequences or alone.distinct or alone.slice):
                return replace(alone, name=name, consequences=ends, origin=origin or alone.origin)
        parts = tuple(self.joinables), tuple(self.predicates)
        return System(name, self.reads.sources, *parts, consequences=ends, origin=origin)

    def branch(self, variables: Iterable[Variable]) -> System:
        """Returns the body as a part that projects these variables."""
        return replace(self.system(), consequences=(Select(tuple(dict.fromkeys(variables))),))


def is_plain(part: System) -> bool:
    """Returns whether a part has sources, joinables and predicates only."""
    return part == System(sources=part.sources, joinables=part.joinables, predicates=part.predicates)


def always_bound(part: Joinable) -> frozenset[Variable]:
    """Returns the variables of a part, as seen from outside, that patterns bind in each of its solutions."""
    match part:
        case System(joinables=joinables, grouping=grouping):
            bound = frozenset[Variable]().union(*map(always_bound, joinables))
            return bound.intersection(visible(part) if grouping is None else grouping.keys)
        case Union(branches=branches):
            return frozenset.intersection(*map(always_bound, branches))
        case _:
            return frozenset(variables(part))


def graph_names(graph: Variable, sources: tuple[Source, ...]) -> System:
    """Returns a part with the names of all graphs of some sources, each once."""
    pattern = AtomPattern(GRAPH, (graph, *_TRIPLE))
    return System(sources=sources, joinables=(pattern,), distinct=True, consequences=(Select((graph,)),))


_TRIPLE = tuple(Variable(f"graph {part}") for part in ("subject", "predicate", "object"))


def existence(sources: tuple[Source, ...]) -> System:
    """Returns a part with one solution, which binds nothing, while the graph of these sources has triples.

    A graph without triples does not exist (SPARQL 1.1 Query, section 18.6). The profile `instans` leaves the
    part out.
    """
    return System(
        GRAPH_EXISTS,
        sources,
        (Pattern(Variable("graph subject"), Variable("graph predicate"), Variable("graph object"), exact=True),),
        distinct=True,
        consequences=(Select(()),),
    )


def empty(variables: Iterable[Variable]) -> System:
    """Returns a part without solutions."""
    return System(predicates=(FALSE_FILTER,), consequences=(Select(tuple(variables)),))
