"""Property paths as patterns, unions and filters. `?`, `*` and `+` become relations that rules derive.

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
    Predicate,
    Select,
    Slot,
    System,
    Union,
    Variable,
    variables,
)
from squall.model.fingerprint import sources_fingerprint
from squall.rdf import Term
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ActiveDataset
from squall.translators.sparql.state import State
from squall.translators.valid_time import at_end, with_begin

START, MIDDLE, END, PATH_GRAPH = (Variable(f"path {name}") for name in ("start", "middle", "end", "graph"))


class Paths:
    """Translates the property paths of a statement."""

    def __init__(self, state: State) -> None:
        self.state = state

    def triple(self, triple: q.TriplePattern, body: Body) -> None:
        """Joins a triple pattern to a body."""
        if triple.start or triple.end:
            body.join(self._timed(triple, body.reads))
            return
        for joinable in self.path(triple.subject, triple.predicate, triple.object, body.reads, triple.origin):
            body.join(joinable)

    def _timed(self, triple: q.TriplePattern, reads: ActiveDataset) -> System:
        """Returns a triple pattern with the begin or the end of its triples."""
        verb = triple.predicate
        assert isinstance(verb, str | Variable)  # the lexer refuses paths
        pattern = reads.pattern(triple.subject, verb, triple.object, triple.origin)
        names = tuple(dict.fromkeys(variables(pattern)))
        part = System(sources=reads.sources, joinables=(pattern,), consequences=(Select(names),), origin=triple.origin)
        tests: list[Predicate] = []
        start, end = self._time(triple.start, names, tests), self._time(triple.end, names, tests)
        if end is not None:
            timed = at_end(part, end, start, triple.origin)
        else:
            assert start is not None
            timed = with_begin(part, start, triple.origin)
        return replace(timed, predicates=(*timed.predicates, *tests))

    def _time(self, slot: Slot | None, names: tuple[Variable, ...], tests: list[Predicate]) -> Variable | None:
        """Returns the variable of a time. That of a graph, or its name in the place of it, is compared."""
        if slot is None or (isinstance(slot, Variable) and slot not in names):
            return slot
        time = self.state.fresh("time")
        tests.append(Filter(calls.condition(calls.call("SAMETERM", (time, slot)))))
        return time

    def path(
        self, start: Slot, path: q.Path | Variable, end: Slot, reads: ActiveDataset, origin: Origin | None
    ) -> list[Joinable]:
        """Returns the joinables for a path from one node to another."""
        match path:
            case str() | Variable():
                return [reads.pattern(start, path, end, origin)]
            case q.Inverse(path=inner):
                return self.path(end, inner, start, reads, origin)
            case q.Steps(paths=steps):
                return self._steps(start, steps, end, reads, origin)
            case q.Alternative(paths=paths):
                branches = [self.path(start, alternative, end, reads, origin) for alternative in paths]
                return [union_of([Body(reads, joinables) for joinables in branches], (start, end), reads)]
            case q.Negated():
                return [self._negated(start, path, end, reads, origin)]
            case q.Repeat():
                return self._repeated(start, simplified(path), end, reads, origin)

    def _steps(
        self, start: Slot, steps: Sequence[q.Path], end: Slot, reads: ActiveDataset, origin: Origin | None
    ) -> list[Joinable]:
        between = [self.state.fresh("step") for _ in steps[1:]]
        ends = zip([start, *between], steps, [*between, end], strict=True)
        return [joinable for left, step, right in ends for joinable in self.path(left, step, right, reads, origin)]

    def _negated(
        self, start: Slot, path: q.Negated, end: Slot, reads: ActiveDataset, origin: Origin | None
    ) -> Joinable:
        branches = []
        if path.forward or not path.backward:
            branches.append(self._other(start, path.forward, end, reads, origin))
        if path.backward:
            branches.append(self._other(end, path.backward, start, reads, origin))
        return union_of(branches, (start, end), reads)

    def _other(self, start: Slot, but: Sequence[Term], end: Slot, reads: ActiveDataset, origin: Origin | None) -> Body:
        predicate = self.state.fresh("predicate")
        body = Body(reads, [reads.pattern(start, predicate, end, origin)])
        if but:
            body.add(Filter(calls.condition(calls.call("NOT IN", (predicate, *but), origin=origin))))
        return body

    # Paths of any length: sets of pairs

    def _repeated(
        self, start: Slot, path: q.Repeat, end: Slot, reads: ActiveDataset, origin: Origin | None
    ) -> list[Joinable]:
        if path.mark == "+":
            return [_relation_part(self._closure(path.path, reads, origin), start, end, reads, origin)]
        if isinstance(start, Variable) and isinstance(end, Variable):
            return [_relation_part(self._with_nodes(path, reads, origin), start, end, reads, origin)]
        return self._from_here(start, path, end, reads, origin)

    def _from_here(
        self, start: Slot, path: q.Repeat, end: Slot, reads: ActiveDataset, origin: Origin | None
    ) -> list[Joinable]:
        """Returns a path with a constant end, which is a node even if it is not in the graph (ZeroLengthPath)."""
        if start == end:
            return []
        branches = [Body(reads, self._some(start, path, end, reads, origin))]
        zero_length = Body(reads)
        zero_length.bind_graph()
        if isinstance(start, Variable):
            zero_length.add(Bind(start, end))
        elif isinstance(end, Variable):
            zero_length.add(Bind(end, start))
        if zero_length.predicates:
            branches.append(zero_length)
        names = _variables((start, end, *reads.graph_key))
        return [replace(Body(reads, [union_of(branches, names, reads)]).branch(names), distinct=True)]

    def _some(
        self, start: Slot, path: q.Repeat, end: Slot, reads: ActiveDataset, origin: Origin | None
    ) -> list[Joinable]:
        """Returns the path with at least one step."""
        if path.mark == "?":
            return self.path(start, path.path, end, reads, origin)
        return [_relation_part(self._closure(path.path, reads, origin), start, end, reads, origin)]

    def _closure(self, path: q.Path, reads: ActiveDataset, origin: Origin | None) -> Term:
        """Returns the relation of one or more steps of a path."""
        reads = _with_path_graph(reads)
        place = reads.graph_key

        def rules(relation: Term) -> tuple[System, ...]:
            first = Body(reads, self.path(START, path, END, reads, origin))
            first.bind_graph()
            step_body = Body(
                reads.with_sources(reads.derived),
                [AtomPattern(relation, (*place, START, MIDDLE)), AtomPattern(relation, (*place, MIDDLE, END))],
            )
            return tuple(_rule(body, relation, (*place, START, END), f"{path}+") for body in (first, step_body))

        return self.state.relation(f"+ {path} {sources_fingerprint(reads.sources)}", rules)

    def _with_nodes(self, path: q.Repeat, reads: ActiveDataset, origin: Origin | None) -> Term:
        """Returns the relation of a path with zero steps or more. Every node of the graph is related to itself."""
        reads = _with_path_graph(reads)

        def rules(relation: Term) -> tuple[System, ...]:
            path_body = Body(reads, self._some(START, path, END, reads, origin))
            path_body.bind_graph()
            triple = reads.pattern(START, MIDDLE, END, origin)
            ends = [
                (path_body, (START, END)),
                (Body(reads, [triple]), (START, START)),
                (Body(reads, [triple]), (END, END)),
            ]
            return tuple(_rule(body, relation, (*reads.graph_key, *pair), str(path)) for body, pair in ends)

        return self.state.relation(f"{path.mark} {path.path} {sources_fingerprint(reads.sources)}", rules)


def _relation_part(relation: Term, start: Slot, end: Slot, reads: ActiveDataset, origin: Origin | None) -> System:
    pattern = AtomPattern(relation, (*reads.graph_key, start, end), exact=True, origin=origin)
    return System(sources=(reads.derived,), joinables=(pattern,))


def _with_path_graph(reads: ActiveDataset) -> ActiveDataset:
    """Returns the dataset with the variable that relations have for the graph of their pairs."""
    return reads if reads.graph is None else reads.with_graphs(PATH_GRAPH, reads.sources)


def _rule(body: Body, relation: Term, ends: tuple[Slot, ...], name: str) -> System:
    return body.system([Construct((AtomPattern(relation, ends),), internal=True)], f"path {name}")


def _variables(slots: Sequence[Slot]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(slot for slot in slots if isinstance(slot, Variable)))


def union_of(bodies: Sequence[Body], visible_slots: Sequence[Slot], reads: ActiveDataset) -> Joinable:
    """Returns the union of bodies, projected to these variables and the graph."""
    for body in bodies:
        body.bind_graph()
    branches = tuple(body.branch(_variables((*visible_slots, *reads.graph_key))) for body in bodies)
    return branches[0] if len(branches) == 1 else Union(branches)


def simplified(path: q.Repeat) -> q.Repeat:
    """Returns an equivalent path with one mark for several: ``(p+)*`` is ``p*``."""
    inner = path.path
    if not isinstance(inner, q.Repeat):
        return path
    mark = path.mark if path.mark == inner.mark else "*"
    return simplified(q.Repeat(inner.path, mark))
