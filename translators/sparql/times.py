"""When triples came: C-SPARQL's ``timestamp``.

Source: Barbieri et al., "C-SPARQL: a continuous query language for RDF data streams" (IJSC 4(1), 2010), and the
function ``f:timestamp`` of its engine. docs/languages/sparql.md has the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from squall.errors import Origin
from squall.functions.sparql import calls
from squall.functions.sparql.dates import LATEST
from squall.functions.sparql.logic import COALESCE
from squall.lexers.sparql import tree as q
from squall.rdf import Term, iri, iri_text
from squall.strata import may_read
from squall.system import (
    CAME,
    GRAPH,
    Aggregate,
    Arrivals,
    AtomPattern,
    Bind,
    Call,
    Either,
    Expression,
    Graph,
    Grouping,
    Joinable,
    Maybe,
    Pattern,
    Select,
    Slot,
    Source,
    System,
    Variable,
    visible,
)
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


class Home(NamedTuple):
    """A body in which a time is told, and what some variables are called there."""

    body: Body
    names: dict[Variable, Variable]

    def inside(self, expression: Expression) -> Expression:
        """The expression in the names of the body."""
        match expression:
            case Variable():
                return self.names.get(expression, expression)
            case Call(function=function, arguments=arguments, origin=origin):
                return Call(function, tuple(map(self.inside, arguments)), origin)
        return expression


class Times:
    """Translates the calls of ``timestamp`` in a statement."""

    def __init__(self, state: State) -> None:
        self.state = state

    def of_triple(self, triple: Sequence[Expression], body: Body, origin: Origin | None) -> Expression:
        """The time of the latest arrival of a triple."""
        home = self._home(body, [name for one in triple for name in q.mentioned(one)], origin)
        slots = tuple(self._slot(home.inside(one), home.body) for one in triple)
        return self._latest([Found(slots, body.reads.graph, body.reads.sources)], home.body, origin)

    def of_variable(self, variable: Variable, body: Body, stream: Term | None, origin: Origin | None) -> Expression:
        """The time of the latest arrival of what patterns bind a variable to. stream: on that stream."""
        found = [one for side in body.sides or (body,) for one in _found(side.system()) if variable in one.variables]
        if not found:
            self._fail(f"no triple pattern has `{variable}` where `timestamp({variable})` stands", origin)
            return NOBODY
        if stream is not None:
            found = [one._replace(sources=_on(one.sources, iri_text(stream))) for one in found]
            found = [one for one in found if one.sources]
        if not found:
            self._fail(f"what binds `{variable}` does not read the stream {stream}", origin)
            return NOBODY
        home = self._home(body, [name for one in found for name in one.variables], origin)
        slots = {name: self._slot(home.inside(name), home.body) for one in found for name in one.variables}
        return self._latest([_renamed(one, slots) for one in dict.fromkeys(found)], home.body, origin)

    def of_pattern(self, variable: Variable, inner: System, body: Body, origin: Origin | None) -> Expression:
        """The time of the latest arrival of what the patterns of a group bind a variable to, in those of the group's
        solutions that agree with that of the body."""
        found = [one for one in _found(inner) if variable in one.variables]
        if not found:
            self._fail(f"no triple pattern in the group of `timestamp` has `{variable}`", origin)
            return NOBODY
        around = body.reads.known.union(body.variables)
        shared = tuple(name for name in visible(inner) if name in around)
        home = self._home(body, shared, origin)
        keys = tuple(self._key(home.names.get(name, name), home.body) for name in shared)
        parts = [inner]
        if keys != shared or not sure(inner).issuperset(shared):
            self._outside_exists(body, origin)
            parts = [_askers(home, shared, keys), inner]
        at = self.state.fresh("at")
        ways = [self._way(Body(body.reads, parts), one, at, origin).branch((*keys, at)) for one in found]
        joinables: tuple[Joinable, ...] = (ways[0] if len(ways) == 1 else Either(tuple(ways)),)
        return self._add(System(joinables=joinables), keys, at, home.body)

    def _way(self, way: Body, found: Found, at: Variable, origin: Origin | None) -> Body:
        """The solutions of a group, each with the times at which the triple of one of its patterns came."""
        slots = {name: self._slot(name, way) for name in found.variables}
        way.join(self._arrivals(_renamed(found, slots), at, origin))
        return way

    def _fail(self, message: str, origin: Origin | None) -> None:
        self.state.notes.fail(message, origin, "only what a pattern finds in a stream has a time")

    def _outside_exists(self, body: Body, origin: Origin | None) -> None:
        """Notes an error in EXISTS: a part that is evaluated by itself does not see what the solution has outside."""
        if body.reads.known:
            message = "`timestamp` of what need not be bound where it stands is not supported inside EXISTS"
            self.state.notes.fail(message, origin, "bind the time to a variable in front of the EXISTS")

    def _home(self, body: Body, names: Iterable[Variable], origin: Origin | None) -> Home:
        """Where times of what some variables have are told. For pairs of solutions that is the side of the optional
        part which has all of them, else the inner side, for each of the values that they have in the outer one."""
        if body.sides is None:
            return Home(body, {})
        outer, inner = body.sides
        wanted = dict.fromkeys(names)
        if inner.sure.issuperset(wanted):
            return Home(inner, {})
        if {*wanted}.isdisjoint(set(inner.variables) - outer.sure) and {*outer.variables}.issuperset(wanted):
            return Home(outer, {})
        brought = tuple(name for name in wanted if name in outer.variables and name not in inner.sure)
        if brought:
            self._outside_exists(body, origin)
        return Home(inner, self._bring(brought, outer, inner))

    def _bring(self, names: Sequence[Variable], outer: Body, inner: Body) -> dict[Variable, Variable]:
        """Adds values that variables have in the outer solution to the inner ones, a solution for each: in a pair both
        have the same. What they are called there."""
        held = {name: self._hold(name, outer) for name in names}
        shared = tuple(name for name in outer.variables if name in outer.sure & inner.sure)
        inner.join(replace(outer.branch((*shared, *held.values())), distinct=True))
        found = {}
        for name in names:
            found[name] = self.state.fresh("value")
            is_unbound = calls.call("SAMETERM", (held[name], NOBODY))
            inner.add(Bind(found[name], calls.call("IF", (is_unbound, name, held[name])), keeps=True))
        return found

    def _slot(self, expression: Expression, home: Body) -> Slot:
        """What holds a value in every solution; one without a value has a term that is nowhere."""
        if isinstance(expression, Variable):
            return self._key(expression, home)
        return expression if isinstance(expression, str) else self._hold(expression, home)

    def _key(self, name: Variable, home: Body) -> Variable:
        return name if name in home.sure else self._hold(name, home)

    def _hold(self, expression: Expression, home: Body) -> Variable:
        held = self.state.fresh("held")
        home.add(Bind(held, Call(COALESCE, (calls.value(expression), NOBODY))))
        return held

    def _latest(self, found: Sequence[Found], home: Body, origin: Origin | None) -> Expression:
        times = []
        for one in found:
            at = self.state.fresh("at")
            times.append(self._add(self._arrivals(one, at, origin), one.variables, at, home))
        return times[0] if len(times) == 1 else Call(LATEST.iri, tuple(times))

    def _add(self, part: System, keys: tuple[Variable, ...], at: Variable, home: Body) -> Variable:
        """Adds the latest of some times, of those that agree on the keys, to a body."""
        time = self.state.fresh("time")
        grouping = Grouping(keys, (Aggregate(time, "max", at),))
        home.add(Maybe(System(part.name, part.sources, part.joinables, grouping=grouping)))
        return time

    def _arrivals(self, found: Found, at: Variable, origin: Origin | None) -> System:
        """The times at which the triples of a pattern came."""
        graph = self.state.fresh("graph") if found.graph is None else found.graph
        read: dict[Slot, list[Arrivals]] = {}
        for source in found.sources:
            if source != BACKGROUND:
                name: Slot = iri(source.iri) if isinstance(source, Graph) else graph
                read.setdefault(name, []).append(_coming(source))
        ways = [
            System(
                sources=tuple(dict.fromkeys(sources)),
                joinables=(AtomPattern(CAME, (name, at, *found.triple), exact=True, origin=origin),),
            )
            for name, sources in (read or {graph: [Arrivals("", BACKGROUND.window)]}).items()
        ]
        if len(ways) == 1:
            return ways[0]
        seen = (*(slot for slot in found.triple if isinstance(slot, Variable)), at)
        shown = (Select(tuple(dict.fromkeys(seen))),)
        return System(joinables=(Either(tuple(replace(way, consequences=shown) for way in ways)),))


def _askers(home: Home, names: Sequence[Variable], keys: Sequence[Variable]) -> System:
    """What some variables are bound to in the solutions of a body, each once, and the keys by which it is found."""
    shown = [name for name in (*home.names.values(), *names) if name not in home.names]
    found = Body(home.body.reads, [replace(home.body.branch((*keys, *shown)), distinct=True)])
    for name, called in home.names.items():
        found.add(Bind(name, called, keeps=True))
    return found.system()


def _coming(source: Source) -> Arrivals:
    stream = source.within if isinstance(source, Graph) else source.iri
    return Arrivals(stream, source.window, source.windows, source.removals)


def _on(sources: Iterable[Source], stream: str) -> tuple[Source, ...]:
    """What of these reads a stream, and it alone."""
    return tuple(source.alone(stream) for source in sources if may_read(source, stream, None))


def _renamed(found: Found, slots: dict[Variable, Slot]) -> Found:
    def slot(one: Slot) -> Slot:
        return slots[one] if isinstance(one, Variable) else one

    return Found(tuple(map(slot, found.triple)), found.graph and slot(found.graph), found.sources)


def _found(part: System) -> Iterator[Found]:
    """The triple patterns of a part all of whose variables can be seen from outside; those that ask whether something
    exists, or is absent, bind nothing. In a set of solutions none is that of a single triple."""
    if part.distinct:
        return
    seen = {*visible(part)}
    optional = [one.system for one in part.predicates if isinstance(one, Maybe)]
    for joinable in (*part.joinables, *optional):
        yield from (one for one in _of(joinable, part.sources) if seen.issuperset(one.variables))


def _of(joinable: Joinable, sources: tuple[Source, ...]) -> Iterator[Found]:
    match joinable:
        case Pattern():
            yield Found(joinable.slots, None, sources)
        case AtomPattern() if joinable.relation == GRAPH:
            graph, *triple = joinable.arguments
            yield Found(tuple(triple), graph, sources)
        case Either(branches=branches):
            for branch in branches:
                yield from _found(branch)
        case System():
            yield from _found(joinable)
        case AtomPattern():
            return
