"""Property paths: patterns, unions and tests, and for `?`, `*` and `+` relations that rules make.

Source: SPARQL 1.1 Query, sections 9.1, 18.2.2.3 and 18.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.model import (
    AtomPattern,
    Bind,
    Construct,
    Filter,
    Joinable,
    Slot,
    System,
    Union,
    Variable,
)
from squall.rdf import Term
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import Reads
from squall.translators.sparql.state import State

START, MIDDLE, END, WHERE = (Variable(f"path {name}") for name in ("start", "middle", "end", "graph"))


class Paths:
    """Translates the property paths of a statement."""

    def __init__(self, state: State) -> None:
        self.state = state

    def triple(self, triple: q.TriplePattern, body: Body) -> None:
        """Joins a triple pattern to a body."""
        for joinable in self.path(triple.subject, triple.predicate, triple.object, body.reads, triple.origin):
            body.join(joinable)

    def path(
        self, start: Slot, path: q.Path | Variable, end: Slot, reads: Reads, origin: Origin | None
    ) -> list[Joinable]:
        """What is joined for a path from one node to another."""
        match path:
            case str() | Variable():
                return [reads.pattern(start, path, end, origin)]
            case q.Inverse(path=inner):
                return self.path(end, inner, start, reads, origin)
            case q.Steps(paths=steps):
                return self._steps(start, steps, end, reads, origin)
            case q.Alternative(paths=paths):
                ways = [self.path(start, alternative, end, reads, origin) for alternative in paths]
                return [either([Body(reads, way) for way in ways], (start, end), reads)]
            case q.Negated():
                return [self._negated(start, path, end, reads, origin)]
            case q.Repeat():
                return self._repeated(start, simplified(path), end, reads, origin)

    def _steps(
        self, start: Slot, steps: Sequence[q.Path], end: Slot, reads: Reads, origin: Origin | None
    ) -> list[Joinable]:
        between = [self.state.fresh("step") for _ in steps[1:]]
        ends = zip([start, *between], steps, [*between, end], strict=True)
        return [joinable for left, step, right in ends for joinable in self.path(left, step, right, reads, origin)]

    def _negated(self, start: Slot, path: q.Negated, end: Slot, reads: Reads, origin: Origin | None) -> Joinable:
        ways = []
        if path.forward or not path.backward:
            ways.append(self._other(start, path.forward, end, reads, origin))
        if path.backward:
            ways.append(self._other(end, path.backward, start, reads, origin))
        return either(ways, (start, end), reads)

    def _other(self, start: Slot, but: Sequence[Term], end: Slot, reads: Reads, origin: Origin | None) -> Body:
        predicate = self.state.fresh("predicate")
        body = Body(reads, [reads.pattern(start, predicate, end, origin)])
        if but:
            body.add(Filter(calls.condition(calls.call("NOT IN", (predicate, *but), origin=origin))))
        return body

    # Paths of any length: sets of pairs

    def _repeated(self, start: Slot, path: q.Repeat, end: Slot, reads: Reads, origin: Origin | None) -> list[Joinable]:
        if path.mark == "+":
            return [_related(self._closure(path.path, reads, origin), start, end, reads, origin)]
        if isinstance(start, Variable) and isinstance(end, Variable):
            return [_related(self._with_nodes(path, reads, origin), start, end, reads, origin)]
        return self._from_here(start, path, end, reads, origin)

    def _from_here(self, start: Slot, path: q.Repeat, end: Slot, reads: Reads, origin: Origin | None) -> list[Joinable]:
        """A path with a constant end, which is a node whether it is in the graph or not (ZeroLengthPath)."""
        if start == end:
            return []
        ways = [Body(reads, self._some(start, path, end, reads, origin))]
        zero_length = Body(reads)
        zero_length.ground()
        if isinstance(start, Variable):
            zero_length.add(Bind(start, end))
        elif isinstance(end, Variable):
            zero_length.add(Bind(end, start))
        if zero_length.predicates:
            ways.append(zero_length)
        names = _variables((start, end, *reads.place))
        return [replace(Body(reads, [either(ways, names, reads)]).branch(names), distinct=True)]

    def _some(self, start: Slot, path: q.Repeat, end: Slot, reads: Reads, origin: Origin | None) -> list[Joinable]:
        """The path, of at least one step."""
        if path.mark == "?":
            return self.path(start, path.path, end, reads, origin)
        return [_related(self._closure(path.path, reads, origin), start, end, reads, origin)]

    def _closure(self, path: q.Path, reads: Reads, origin: Origin | None) -> Term:
        """The relation of a path's one or more steps."""
        reads = _anywhere(reads)
        place = reads.place

        def rules(relation: Term) -> tuple[System, ...]:
            first = Body(reads, self.path(START, path, END, reads, origin))
            first.ground()
            step_body = Body(
                reads.of(reads.derived),
                [AtomPattern(relation, (*place, START, MIDDLE)), AtomPattern(relation, (*place, MIDDLE, END))],
            )
            return tuple(_rule(body, relation, (*place, START, END), f"{path}+") for body in (first, step_body))

        return self.state.relation(f"+ {path} {reads.sources}", rules)

    def _with_nodes(self, path: q.Repeat, reads: Reads, origin: Origin | None) -> Term:
        """The relation of a path that may have no step at all, so that every node of the graph is related to itself."""
        reads = _anywhere(reads)

        def rules(relation: Term) -> tuple[System, ...]:
            path_body = Body(reads, self._some(START, path, END, reads, origin))
            path_body.ground()
            triple = reads.pattern(START, MIDDLE, END, origin)
            ends = [
                (path_body, (START, END)),
                (Body(reads, [triple]), (START, START)),
                (Body(reads, [triple]), (END, END)),
            ]
            return tuple(_rule(body, relation, (*reads.place, *pair), str(path)) for body, pair in ends)

        return self.state.relation(f"{path.mark} {path.path} {reads.sources}", rules)


def _related(relation: Term, start: Slot, end: Slot, reads: Reads, origin: Origin | None) -> System:
    pattern = AtomPattern(relation, (*reads.place, start, end), exact=True, origin=origin)
    return System(sources=(reads.derived,), joinables=(pattern,))


def _anywhere(reads: Reads) -> Reads:
    """The same, by the name that relations have for the graph in which their pairs are."""
    return reads if reads.graph is None else reads.of_each(WHERE, reads.sources)


def _rule(body: Body, relation: Term, ends: tuple[Slot, ...], name: str) -> System:
    return body.system([Construct((AtomPattern(relation, ends),), internal=True)], f"path {name}")


def _variables(slots: Sequence[Slot]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(slot for slot in slots if isinstance(slot, Variable)))


def either(ways: Sequence[Body], visible_slots: Sequence[Slot], reads: Reads) -> Joinable:
    """The solutions of bodies beside each other, of which these variables are seen, and in which graph they are."""
    for way in ways:
        way.ground()
    branches = tuple(way.branch(_variables((*visible_slots, *reads.place))) for way in ways)
    return branches[0] if len(branches) == 1 else Union(branches)


def simplified(path: q.Repeat) -> q.Repeat:
    """The same pairs with one mark for several: ``(p+)*`` is ``p*``."""
    inner = path.path
    if not isinstance(inner, q.Repeat):
        return path
    mark = path.mark if path.mark == inner.mark else "*"
    return simplified(q.Repeat(inner.path, mark))
