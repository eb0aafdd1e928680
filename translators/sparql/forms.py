"""Query forms: SELECT, CONSTRUCT, ASK and DESCRIBE, and the templates of updates.

Source: SPARQL 1.1 Query, section 16; for DESCRIBE, P. Stickler, "CBD - Concise Bounded Description" (W3C 2005).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from squall.errors import Origin, did_you_mean
from squall.lexers.sparql import tree as q
from squall.model import (
    Ask,
    AtomPattern,
    Bind,
    Construct,
    FactPattern,
    Filter,
    Pattern,
    Slice,
    Slot,
    System,
    Variable,
)
from squall.rdf import QUAD, Term, iri, is_blank, literal
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ActiveDataset
from squall.translators.sparql.modifiers import Modifiers

_SUBJECT, _PREDICATE, _OBJECT = (Variable(f"described {part}") for part in ("subject", "predicate", "object"))

Quads = dict[Slot | None, tuple[Pattern, ...]]
"""Triples by their graph. None is the default graph."""


class Forms(Modifiers):
    """Translates whole queries."""

    def query(self, query: q.Query, name: str, reads: ActiveDataset) -> tuple[System, ...]:
        """Returns the rules that answer a query, under its name."""
        systems = self._rules_of(query, name, reads)
        return tuple(replace(rule, name=rule.name or name, origin=rule.origin or query.origin) for rule in systems)

    def _rules_of(self, query: q.Query, name: str, reads: ActiveDataset) -> tuple[System, ...]:
        body, slice = self.solutions(query, reads)
        match query:
            case q.SelectQuery():
                self._check(query)
                return (replace(self.select(query, body), slice=slice, reentrant=False),)
            case q.AskQuery():
                return (replace(body.system([Ask()]), slice=_selecting_slice(slice), reentrant=False),)
            case q.ConstructQuery(template=template):
                selecting = _selecting_slice(slice)
                if selecting is not None and any(map(_has_blank_node, template)):
                    body, selecting = Body(body.reads, [replace(body.system(), slice=selecting)]), None
                rule = body.system([Construct(self.template(template, body))])
                return (replace(rule, slice=selecting, reentrant=False),)
            case q.DescribeQuery():
                return self._describe(query, body, _selecting_slice(slice))

    def _check(self, query: q.SelectQuery) -> None:
        """Warns of selected variables that no solution has."""
        group_keys = [condition.variable or condition.expression for condition in query.modifiers.group]
        visible_names = {*q.shown(replace(query, items=None)), *group_keys}
        for item in query.items or ():
            if item.expression is None and item.variable not in visible_names:
                hint = did_you_mean(str(item.variable), [str(name) for name in visible_names])
                self.state.notes.warn(f"`{item.variable}` is selected, but nothing binds it", item.origin, hint)

    # Templates

    def template(self, quads: Sequence[q.QuadPattern], body: Body) -> tuple[FactPattern, ...]:
        """Returns the template of each solution, with quads for triples in a graph (RSP-QL has graphs in templates)."""
        return tuple(
            triple if graph is None else AtomPattern(QUAD, (graph, *triple.slots), origin=triple.origin)
            for graph, triples in self.quads(quads, body).items()
            for triple in triples
        )

    def quads(self, quads: Sequence[q.QuadPattern], body: Body, default: Term | None = None) -> Quads:
        """Returns the template of each solution by graph.

        Blank nodes are new for each solution (section 16.2.1). A triple with a variable that nothing binds is left out.

        Args:
            quads: The triples with their graphs.
            body: The body, to which the bindings of blank nodes are added.
            default: The graph of triples without one.
        """
        bound_names = body.variables
        nodes: dict[Term, Variable] = {}
        quads_by_graph: Quads = {}
        for quad in quads:
            subject, predicate, object = (
                self._node(term, nodes) for term in (quad.subject, quad.predicate, quad.object)
            )
            triple = Pattern(subject, predicate, object, origin=quad.origin)
            graph = default if quad.graph is None else quad.graph
            if self._is_bound((*triple.slots, graph), {*bound_names, *nodes.values()}, quad.origin):
                quads_by_graph[graph] = (*quads_by_graph.get(graph, ()), triple)
        if nodes:
            scope = self.expressions.scope(f"{self.state.key} template", body)
            body.add(*(Bind(name, calls.call("BNODE", (literal(node),), scope=scope)) for node, name in nodes.items()))
        return quads_by_graph

    def _node(self, slot: Slot, nodes: dict[Term, Variable]) -> Slot:
        if isinstance(slot, Variable) or not is_blank(slot):
            return slot
        return nodes.setdefault(slot, self.state.fresh("node"))

    def _is_bound(self, slots: Iterable[Slot | None], bound_names: set[Variable], origin: Origin | None) -> bool:
        unbound = [slot for slot in slots if isinstance(slot, Variable) and slot not in bound_names]
        for variable in unbound:
            hint = "bind it in the pattern, or leave the triple out"
            self.state.notes.warn(f"`{variable}` is in the template, but nothing binds it", origin, hint)
        return not unbound

    # DESCRIBE

    def _describe(self, query: q.DescribeQuery, body: Body, slice: Slice | None) -> tuple[System, ...]:
        """Returns the rules for DESCRIBE: a relation of the described resources, and of blank nodes reachable from
        them.
        """
        resources = q.in_scope(query.where) if query.resources is None and query.where else query.resources or ()
        described = iri(f"urn:x-squall:described:{self.state.key}")
        bound_names = body.variables
        named_resources = tuple(
            AtomPattern(described, (slot,))
            for slot in resources
            if not isinstance(slot, Variable) or slot in bound_names
        )
        triple = Pattern(_SUBJECT, _PREDICATE, _OBJECT, exact=True)
        reachable = Body(body.reads, [_atom(described, body), triple])
        reachable.add(Filter(calls.condition(calls.call("ISBLANK", (_OBJECT,)))))
        described_system = Body(body.reads, [_atom(described, body), triple]).system([Construct((triple,))])
        return (
            replace(body.system([Construct(named_resources, internal=True)]), slice=slice),
            reachable.system([Construct((AtomPattern(described, (_OBJECT,)),), internal=True)]),
            replace(described_system, reentrant=False),
        )


def _atom(relation: Term, body: Body) -> System:
    return System(sources=(body.reads.derived,), joinables=(AtomPattern(relation, (_SUBJECT,), exact=True),))


def _has_blank_node(quad: q.QuadPattern) -> bool:
    return any(isinstance(slot, str) and is_blank(slot) for slot in (quad.subject, quad.predicate, quad.object))


def _selecting_slice(slice: Slice | None) -> Slice | None:
    """Returns the slice if it drops solutions. Otherwise their order does not matter, since they are not output."""
    return slice if slice is not None and (slice.offset or slice.limit is not None) else None
