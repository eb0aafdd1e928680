"""When triples came: C-SPARQL's ``timestamp``.

Source: Barbieri et al., "C-SPARQL: a continuous query language for RDF data streams" (IJSC 4(1), 2010), and the
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
from squall.rdf import Term, iri, iri_text
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body, sure
from squall.translators.sparql.datasets import BACKGROUND
from squall.translators.sparql.state import State

NOBODY = iri("urn:x-squall:nothing")
"""Stands for what is unbound: no triple has it."""


class Found(NamedTuple):
    """A triple pattern, with the graph that it is about (None: any) and the sources that it reads."""

    triple: tuple[Slot, ...]
    graph: Slot | None
    sources: tuple[Source, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(dict.fromkeys(slot for slot in (self.graph, *self.triple) if isinstance(slot, Variable)))


class Home:
    """A body in which times are told."""

    def __init__(self, state: State, body: Body) -> None:
        self.state = state
        self.body = body

    @property
    def sure(self) -> frozenset[Variable]:
        """Variables by which times can be found as they are."""
        return self.body.sure

    def slot(self, expression: Expression) -> Slot:
        """What has the value of an expression in all solutions; one that is nowhere, if it has none."""
        if isinstance(expression, str) or expression in self.sure:
            return expression
        return self.hold(Call(COALESCE, (calls.value(expression), NOBODY)))

    def hold(self, value: Call) -> Variable:
        """A variable that has a value, under which times are found."""
        variable = self.state.fresh("held")
        self.body.add(Bind(variable, value))
        return variable

    def tell(self, times: System, time: Variable, when: Call | None) -> None:
        """Adds the time of those that agree on the variables by which they are found. when: on this condition."""
        self.body.add(Optional(times, when))


class Pairs(Home):
    """The pairs of solutions of an OPTIONAL: for what depends on both.

    The inner solutions are there once with each time that there may be, and once without; the pair tests that it has
    the one that is its own, or that there is none.
    """

    def __init__(self, state: State, body: Body, inner: Body) -> None:
        super().__init__(state, body)
        self.inner = inner
        self.values: dict[Variable, Call] = {}

    @property
    def sure(self) -> frozenset[Variable]:
        return self.inner.sure

    def hold(self, value: Call) -> Variable:
        variable = self.state.fresh("held")
        self.values[variable] = value
        return variable

    def tell(self, times: System, time: Variable, when: Call | None) -> None:
        own = {name: value for name, value in self.values.items() if name in visible(times)}
        tests = [*([] if when is None else [when]), *(calls.call("SAMETERM", pair) for pair in own.items())]
        is_own = calls.all_of(tests)
        if is_own is None:
            self.inner.add(Optional(times))
            return
        is_known = calls.call("BOUND", (time,))
        system = System(joinables=(times,), predicates=(Filter(calls.condition(is_known)),))
        self.inner.join(Union((system, System())))
        body = Body(self.body.reads)
        body.add(*(Bind(name, value) for name, value in own.items()))
        body.join(system)
        if when is not None:
            body.add(Filter(when))
        exists = self.state.fresh("exists")
        self.body.add(Exists(exists, body.system()))
        self.body.add(Filter(calls.condition(calls.call("IF", (is_known, is_own, calls.call("!", (exists,)))))))


class Times:
    """Translates the calls of ``timestamp`` in a statement."""

    def __init__(self, state: State) -> None:
        self.state = state

    def of_triple(self, triple: Sequence[Expression], body: Body, origin: Origin | None) -> Expression:
        """The time of the latest arrival of a triple."""
        home = self._home(body, [name for slot in triple for name in q.mentioned(slot)])
        slots = tuple(map(home.slot, triple))
        return self._latest([Found(slots, body.reads.graph, body.reads.sources)], home, origin)

    def of_variable(self, variable: Variable, body: Body, stream: Term | None, origin: Origin | None) -> Expression:
        """The time of the latest arrival of what patterns bind a variable to. stream: on that stream."""
        patterns = [
            pattern
            for side in body.sides or (body,)
            for pattern in _found(side.system())
            if variable in pattern.variables
        ]
        if not patterns:
            self._fail(f"no triple pattern has `{variable}` where `timestamp({variable})` stands", origin)
            return NOBODY
        if stream is not None:
            patterns = [pattern._replace(sources=_on(pattern.sources, iri_text(stream))) for pattern in patterns]
            patterns = [pattern for pattern in patterns if pattern.sources]
        if not patterns:
            self._fail(f"what binds `{variable}` does not read the stream {stream}", origin)
            return NOBODY
        home = self._home(body, [name for pattern in patterns for name in pattern.variables])
        slots = {name: home.slot(name) for pattern in patterns for name in pattern.variables}
        return self._latest([_renamed(pattern, slots) for pattern in dict.fromkeys(patterns)], home, origin)

    def of_pattern(self, variable: Variable, inner: System, body: Body, origin: Origin | None) -> Expression:
        """The time of the latest arrival of what the patterns of a group bind a variable to, in those of the group's
        solutions that agree with that of the body. The group is evaluated by itself, as a sub-query is."""
        patterns = [pattern for pattern in _found(inner) if variable in pattern.variables]
        if not patterns:
            self._fail(f"no triple pattern in the group of `timestamp` has `{variable}`", origin)
            return NOBODY
        around = body.reads.known.union(body.variables)
        shared = tuple(name for name in visible(inner) if name in around)
        home = self._home(body, shared)
        ways = [[*_agreeing(name, sure(inner), home)] for name in shared]
        return _last_of([self._of_agreeing(agreed, patterns, inner, home, origin) for agreed in product(*ways)])

    def _of_agreeing(
        self, agreed: Sequence[Agreeing], patterns: Sequence[Found], inner: System, home: Home, origin: Origin | None
    ) -> Variable:
        """The time of the latest arrival of any of some patterns of a group, in solutions that agree in these ways."""
        keys = tuple(agreement.key for agreement in agreed if agreement.key is not None)
        at = self.state.fresh("at")
        parts = []
        for agreement in patterns:
            way = Home(self.state, Body(home.body.reads, [inner]))
            way.body.add(*(predicate for agreement in agreed for predicate in agreement.inside))
            slots = {name: way.slot(name) for name in agreement.variables}
            way.body.join(self._arrivals(_renamed(agreement, slots), at, origin))
            parts.append(way.body.branch((*keys, at)))
        part = System(joinables=(parts[0] if len(parts) == 1 else Union(tuple(parts)),))
        conditions = [agreement.when for agreement in agreed if agreement.when is not None]
        return self._told(part, keys, at, home, calls.all_of(conditions))

    def _fail(self, message: str, origin: Origin | None) -> None:
        self.state.notes.fail(message, origin, "only what a pattern finds in a stream has a time")

    def _home(self, body: Body, names: Iterable[Variable]) -> Home:
        """Where times of what some variables have are told. For pairs of solutions that is the side of the optional
        part that has all of them, if one has."""
        if body.sides is None:
            return Home(self.state, body)
        outer, inner = body.sides
        needed_names, outer_names = {*names}, {*outer.variables}
        own = {*inner.variables} - outer_names | inner.sure
        if needed_names.isdisjoint(outer_names.union(body.variables) - own):
            return Home(self.state, inner)
        if needed_names <= outer_names - ({*inner.variables} - outer.sure):
            return Home(self.state, outer)
        return Pairs(self.state, body, inner)

    def _latest(self, patterns: Sequence[Found], home: Home, origin: Origin | None) -> Expression:
        times = []
        for pattern in patterns:
            at = self.state.fresh("at")
            times.append(self._told(self._arrivals(pattern, at, origin), pattern.variables, at, home))
        return _last_of(times)

    def _told(
        self, part: System, keys: tuple[Variable, ...], at: Variable, home: Home, when: Call | None = None
    ) -> Variable:
        """The latest of some times, of those that agree on the keys."""
        time = self.state.fresh("time")
        grouping = Grouping(keys, (Aggregate(time, "max", at),))
        home.tell(System(part.name, part.sources, part.joinables, grouping=grouping), time, when)
        return time

    def _arrivals(self, pattern: Found, at: Variable, origin: Origin | None) -> System:
        """The times at which the triples of a pattern came."""
        graph = self.state.fresh("graph") if pattern.graph is None else pattern.graph
        read: dict[Slot, list[Arrivals]] = {}
        for source in pattern.sources:
            if source != BACKGROUND:
                name: Slot = iri(source.iri) if isinstance(source, Graph) else graph
                read.setdefault(name, []).append(_coming(source))
        ways = [
            System(
                sources=tuple(dict.fromkeys(sources)),
                joinables=(AtomPattern(ARRIVAL, (name, at, *pattern.triple), exact=True, origin=origin),),
            )
            for name, sources in (read or {graph: [Arrivals("", BACKGROUND.window)]}).items()
        ]
        if len(ways) == 1:
            return ways[0]
        variables = (*(slot for slot in pattern.triple if isinstance(slot, Variable)), at)
        selection = (Select(tuple(dict.fromkeys(variables))),)
        return System(joinables=(Union(tuple(replace(way, consequences=selection) for way in ways)),))


class Agreeing(NamedTuple):
    """A way in which solutions agree on a variable: both have its value (key: what has it), or one of them has none.

    inside: what holds for those of the group. when: what holds for the other.
    """

    key: Variable | None
    inside: tuple[Predicate, ...] = ()
    when: Call | None = None


def _agreeing(name: Variable, bound: Container[Variable], home: Home) -> Iterator[Agreeing]:
    """The ways in which solutions of a group can agree on a variable with those for which times are told. bound: what
    has a value in all solutions of the group."""
    is_bound = calls.call("BOUND", (name,))
    is_unbound = calls.condition(calls.call("!", (is_bound,)))
    key = home.slot(name)
    assert isinstance(key, Variable)
    inside: list[Predicate] = [] if name in bound else [Filter(calls.condition(is_bound))]
    yield Agreeing(key, (*inside, *([] if key == name else [Bind(key, name)])))
    if name not in bound:
        yield Agreeing(None, (Filter(is_unbound),))
    if key != name:
        yield Agreeing(None, when=is_unbound)


def _last_of(times: Sequence[Variable]) -> Expression:
    return times[0] if len(times) == 1 else Call(LATEST.iri, tuple(times))


def _coming(source: Source) -> Arrivals:
    stream = source.within if isinstance(source, Graph) else source.iri
    return Arrivals(stream, source.window, source.windows, source.removals)


def _on(sources: Iterable[Source], stream: str) -> tuple[Source, ...]:
    """What of these reads a stream, and it alone."""
    return tuple(source.for_stream(stream) for source in sources if may_read(source, stream, None))


def _renamed(pattern: Found, slots: dict[Variable, Slot]) -> Found:
    def slot(original: Slot) -> Slot:
        return slots[original] if isinstance(original, Variable) else original

    return Found(tuple(map(slot, pattern.triple)), pattern.graph and slot(pattern.graph), pattern.sources)


def _found(part: System) -> Iterator[Found]:
    """The triple patterns of a part all of whose variables can be seen from outside; those that ask whether something
    exists, or is absent, bind nothing. In a set of solutions none is that of a single triple."""
    if part.distinct:
        return
    visible_names = {*visible(part)}
    optional = [predicate.system for predicate in part.predicates if isinstance(predicate, Optional)]
    for joinable in (*part.joinables, *optional):
        yield from (
            predicate for predicate in _of(joinable, part.sources) if visible_names.issuperset(predicate.variables)
        )


def _of(joinable: Joinable, sources: tuple[Source, ...]) -> Iterator[Found]:
    match joinable:
        case Pattern():
            yield Found(joinable.slots, None, sources)
        case AtomPattern() if joinable.relation == GRAPH:
            graph, *triple = joinable.arguments
            yield Found(tuple(triple), graph, sources)
        case Union(branches=branches):
            for branch in branches:
                yield from _found(branch)
        case System():
            yield from _found(joinable)
        case AtomPattern():
            return
