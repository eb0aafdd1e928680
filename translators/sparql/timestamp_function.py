"""C-SPARQL's ``timestamp`` function: the arrival times of triples.

Sources: Barbieri et al., "C-SPARQL: a continuous query language for RDF data streams" (IJSC 4(1), 2010), and the
function ``f:timestamp`` of its engine. docs/languages/sparql.md has the definition.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from squall.errors import Origin
from squall.functions.sparql.dates import LATEST
from squall.functions.sparql.logic import COALESCE
from squall.lexers.sparql import tree as q
from squall.model import (
    ARRIVAL,
    GRAPH,
    Aggregate,
    Arrivals,
    AtomPattern,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    Graph,
    Grouping,
    Joinable,
    Optional,
    Pattern,
    Predicate,
    Select,
    Slot,
    Source,
    System,
    Union,
    Variable,
    visible,
)
from squall.model.fact_shapes import may_read
from squall.model.sources import BACKGROUND
from squall.rdf import Term, iri, iri_text
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body, always_bound
from squall.translators.sparql.state import State

NO_NODE = iri("urn:x-squall:nothing")
"""A term that no triple has. It replaces unbound values."""


class TimedPattern(NamedTuple):
    """A triple pattern, with its graph (None: any) and its sources."""

    triple: tuple[Slot, ...]
    graph: Slot | None
    sources: tuple[Source, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(dict.fromkeys(slot for slot in (self.graph, *self.triple) if isinstance(slot, Variable)))


class TimeScope:
    """A body to which arrival times are added."""

    def __init__(self, state: State, body: Body) -> None:
        self.state = state
        self.body = body

    @property
    def always_bound(self) -> frozenset[Variable]:
        """The variables that can be join keys without a change."""
        return self.body.always_bound

    def slot(self, expression: Expression) -> Slot:
        """Returns a slot with the value of an expression in all solutions, or `NO_NODE` if it has none."""
        if isinstance(expression, str) or expression in self.always_bound:
            return expression
        return self.bind_key(Call(COALESCE, (calls.value(expression), NO_NODE)))

    def bind_key(self, value: Call) -> Variable:
        """Returns a variable with a value, which becomes a join key."""
        variable = self.state.fresh("held")
        self.body.add(Bind(variable, value))
        return variable

    def add_times(self, times: System, time: Variable, when: Call | None) -> None:
        """Adds the time of solutions that agree on the join keys.

        Args:
            times: The times by join keys.
            time: The variable of the time.
            when: A condition on the solutions.
        """
        self.body.add(Optional(times, when))


class PairScope(TimeScope):
    """The pairs of solutions of an OPTIONAL, for times that depend on both sides.

    The inner solutions are joined with each possible time, and once with none. A filter of the pair keeps its own time,
    or none if it has none.
    """

    def __init__(self, state: State, body: Body, inner: Body) -> None:
        super().__init__(state, body)
        self.inner = inner
        self.values: dict[Variable, Call] = {}

    @property
    def always_bound(self) -> frozenset[Variable]:
        return self.inner.always_bound

    def bind_key(self, value: Call) -> Variable:
        variable = self.state.fresh("held")
        self.values[variable] = value
        return variable

    def add_times(self, times: System, time: Variable, when: Call | None) -> None:
        keys = {name: value for name, value in self.values.items() if name in visible(times)}
        tests = [*([] if when is None else [when]), *(calls.call("SAMETERM", pair) for pair in keys.items())]
        is_own = calls.all_of(tests)
        if is_own is None:
            self.inner.add(Optional(times))
            return
        is_known = calls.call("BOUND", (time,))
        system = System(joinables=(times,), predicates=(Filter(calls.condition(is_known)),))
        self.inner.join(Union((system, System())))
        body = Body(self.body.reads)
        body.add(*(Bind(name, value) for name, value in keys.items()))
        body.join(system)
        if when is not None:
            body.add(Filter(when))
        exists = self.state.fresh("exists")
        self.body.add(Exists(exists, body.system()))
        self.body.add(Filter(calls.condition(calls.call("IF", (is_known, is_own, calls.call("!", (exists,)))))))


class TimestampCalls:
    """Translates the calls of ``timestamp`` in a statement."""

    def __init__(self, state: State) -> None:
        self.state = state

    def of_triple(self, triple: Sequence[Expression], body: Body, origin: Origin | None) -> Expression:
        """Returns the time of the latest arrival of a triple."""
        scope = self._scope(body, [name for slot in triple for name in q.mentioned(slot)])
        slots = tuple(map(scope.slot, triple))
        return self._latest([TimedPattern(slots, body.reads.graph, body.reads.sources)], scope, origin)

    def of_variable(self, variable: Variable, body: Body, stream: Term | None, origin: Origin | None) -> Expression:
        """Returns the time of the latest arrival of the triples that bind a variable.

        Args:
            variable: The variable.
            body: The body.
            stream: The stream of the arrivals. None means all.
            origin: The place of the call.
        """
        # In one piece: patterns, narrowed down step by step, with an error where none is left.
        patterns = [
            pattern
            for side in body.sides or (body,)
            for pattern in _patterns_of(side.system())
            if variable in pattern.variables
        ]
        if not patterns:
            self._fail(f"no triple pattern has `{variable}` where `timestamp({variable})` stands", origin)
            return NO_NODE
        if stream is not None:
            patterns = [
                pattern._replace(sources=_reads_of_stream(pattern.sources, iri_text(stream))) for pattern in patterns
            ]
            patterns = [pattern for pattern in patterns if pattern.sources]
        if not patterns:
            self._fail(f"what binds `{variable}` does not read the stream {stream}", origin)
            return NO_NODE
        scope = self._scope(body, [name for pattern in patterns for name in pattern.variables])
        slots = {name: scope.slot(name) for pattern in patterns for name in pattern.variables}
        return self._latest([_substituted(pattern, slots) for pattern in dict.fromkeys(patterns)], scope, origin)

    def of_pattern(self, variable: Variable, inner: System, body: Body, origin: Origin | None) -> Expression:
        """Returns the time of the latest arrival of the triples that bind a variable in a group.

        Only solutions of the group count that agree with the solution of the body. The group is evaluated by itself, as
        a subquery is.
        """
        patterns = [pattern for pattern in _patterns_of(inner) if variable in pattern.variables]
        if not patterns:
            self._fail(f"no triple pattern in the group of `timestamp` has `{variable}`", origin)
            return NO_NODE
        around = body.reads.bound_outside.union(body.variables)
        shared = tuple(name for name in visible(inner) if name in around)
        scope = self._scope(body, shared)
        agreements = [[*_agreements(name, always_bound(inner), scope)] for name in shared]
        return _latest_of(
            [self._of_agreeing(agreed, patterns, inner, scope, origin) for agreed in product(*agreements)]
        )

    def _of_agreeing(
        self,
        agreed: Sequence[Agreement],
        patterns: Sequence[TimedPattern],
        inner: System,
        scope: TimeScope,
        origin: Origin | None,
    ) -> Variable:
        """Returns the time of the latest arrival for some patterns of a group, in solutions that agree in
        these ways."""
        keys = tuple(agreement.key for agreement in agreed if agreement.key is not None)
        at = self.state.fresh("at")
        parts = []
        for pattern in patterns:
            scope_of_group = TimeScope(self.state, Body(scope.body.reads, [inner]))
            scope_of_group.body.add(*(predicate for agreement in agreed for predicate in agreement.inside))
            slots = {name: scope_of_group.slot(name) for name in pattern.variables}
            scope_of_group.body.join(self._arrivals(_substituted(pattern, slots), at, origin))
            parts.append(scope_of_group.body.branch((*keys, at)))
        part = System(joinables=(parts[0] if len(parts) == 1 else Union(tuple(parts)),))
        conditions = [agreement.when for agreement in agreed if agreement.when is not None]
        return self._latest_time(part, keys, at, scope, calls.all_of(conditions))

    def _fail(self, message: str, origin: Origin | None) -> None:
        self.state.notes.fail(message, origin, "only what a pattern finds in a stream has a time")

    def _scope(self, body: Body, names: Iterable[Variable]) -> TimeScope:
        """Returns the scope for times of patterns with these variables.

        For pairs of solutions it is the side of the OPTIONAL that has all of the variables, if there is one.
        """
        if body.sides is None:
            return TimeScope(self.state, body)
        outer, inner = body.sides
        needed_names, outer_names = {*names}, {*outer.variables}
        inner_names = {*inner.variables} - outer_names | inner.always_bound
        if needed_names.isdisjoint(outer_names.union(body.variables) - inner_names):
            return TimeScope(self.state, inner)
        if needed_names <= outer_names - ({*inner.variables} - outer.always_bound):
            return TimeScope(self.state, outer)
        return PairScope(self.state, body, inner)

    def _latest(self, patterns: Sequence[TimedPattern], scope: TimeScope, origin: Origin | None) -> Expression:
        times = []
        for pattern in patterns:
            at = self.state.fresh("at")
            times.append(self._latest_time(self._arrivals(pattern, at, origin), pattern.variables, at, scope))
        return _latest_of(times)

    def _latest_time(
        self, part: System, keys: tuple[Variable, ...], at: Variable, scope: TimeScope, when: Call | None = None
    ) -> Variable:
        """Returns the latest of some times, for each combination of the keys' values."""
        time = self.state.fresh("time")
        grouping = Grouping(keys, (Aggregate(time, "max", at),))
        scope.add_times(System(part.name, part.sources, part.joinables, grouping=grouping), time, when)
        return time

    def _arrivals(self, pattern: TimedPattern, at: Variable, origin: Origin | None) -> System:
        """Returns the arrival times of the triples of a pattern."""
        graph = self.state.fresh("graph") if pattern.graph is None else pattern.graph
        read: dict[Slot, list[Arrivals]] = {}
        for source in pattern.sources:
            if source != BACKGROUND:
                name: Slot = iri(source.iri) if isinstance(source, Graph) else graph
                read.setdefault(name, []).append(_arrivals_of(source))
        parts = [
            System(
                sources=tuple(dict.fromkeys(sources)),
                joinables=(AtomPattern(ARRIVAL, (name, at, *pattern.triple), exact=True, origin=origin),),
            )
            for name, sources in (read or {graph: [Arrivals("", BACKGROUND.window)]}).items()
        ]
        if len(parts) == 1:
            return parts[0]
        variables = (*(slot for slot in pattern.triple if isinstance(slot, Variable)), at)
        selection = (Select(tuple(dict.fromkeys(variables))),)
        return System(joinables=(Union(tuple(replace(part, consequences=selection) for part in parts)),))


class Agreement(NamedTuple):
    """A way in which solutions agree on a variable: both have its value, or one of them leaves it unbound.

    Attributes:
        key: The variable with the value. None means that one of them leaves it unbound.
        inside: The predicates on solutions of the group.
        when: The condition on the outer solutions.
    """

    key: Variable | None
    inside: tuple[Predicate, ...] = ()
    when: Call | None = None


def _agreements(name: Variable, bound: Container[Variable], scope: TimeScope) -> Iterator[Agreement]:
    """Yields the ways in which solutions of a group can agree on a variable with the outer solutions.

    Args:
        name: The variable.
        bound: The variables that are bound in all solutions of the group.
        scope: The scope of the outer solutions.
    """
    is_bound = calls.call("BOUND", (name,))
    is_unbound = calls.condition(calls.call("!", (is_bound,)))
    key = scope.slot(name)
    assert isinstance(key, Variable)
    inside: list[Predicate] = [] if name in bound else [Filter(calls.condition(is_bound))]
    yield Agreement(key, (*inside, *([] if key == name else [Bind(key, name)])))
    if name not in bound:
        yield Agreement(None, (Filter(is_unbound),))
    if key != name:
        yield Agreement(None, when=is_unbound)


def _latest_of(times: Sequence[Variable]) -> Expression:
    return times[0] if len(times) == 1 else Call(LATEST.iri, tuple(times))


def _arrivals_of(source: Source) -> Arrivals:
    stream = source.within if isinstance(source, Graph) else source.iri
    return Arrivals(stream, source.window, source.windows, source.removals)


def _reads_of_stream(sources: Iterable[Source], stream: str) -> tuple[Source, ...]:
    """Returns the sources restricted to one stream, without those that do not read it."""
    return tuple(source.for_stream(stream) for source in sources if may_read(source, stream, None))


def _substituted(pattern: TimedPattern, slots: dict[Variable, Slot]) -> TimedPattern:
    def slot(original: Slot) -> Slot:
        return slots[original] if isinstance(original, Variable) else original

    return TimedPattern(tuple(map(slot, pattern.triple)), pattern.graph and slot(pattern.graph), pattern.sources)


def _patterns_of(part: System) -> Iterator[TimedPattern]:
    """Yields the triple patterns of a part whose variables are all visible from outside.

    Negations and EXISTS bind nothing. A distinct solution does not belong to a single triple.
    """
    if part.distinct:
        return
    visible_names = {*visible(part)}
    optional = [predicate.system for predicate in part.predicates if isinstance(predicate, Optional)]
    for joinable in (*part.joinables, *optional):
        yield from (
            predicate
            for predicate in _patterns_in(joinable, part.sources)
            if visible_names.issuperset(predicate.variables)
        )


def _patterns_in(joinable: Joinable, sources: tuple[Source, ...]) -> Iterator[TimedPattern]:
    match joinable:
        case Pattern():
            yield TimedPattern(joinable.slots, None, sources)
        case AtomPattern() if joinable.relation == GRAPH:
            graph, *triple = joinable.arguments
            yield TimedPattern(tuple(triple), graph, sources)
        case Union(branches=branches):
            for branch in branches:
                yield from _patterns_of(branch)
        case System():
            yield from _patterns_of(joinable)
        case AtomPattern():
            return
