"""SPARQL 1.1 Update operations as standing rules.

When the pattern of an operation gets a solution, the facts that it deletes end, and the facts that it inserts stay from
then on. Sources: SPARQL 1.1 Update, section 3.1; M. Rinne, S. Törmä and E. Nuutila, "SPARQL-based applications for
RDF-encoded sensor data" (SSN 2012), on updates as rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.model import Delete, Graph, Insert, Pattern, Slot, System
from squall.rdf import Term, iri_text, is_blank
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ALL, ActiveDataset, dataset
from squall.translators.sparql.forms import Forms, Quads
from squall.translators.sparql.state import digest


class Updates(Forms):
    """Translates the operations of an update."""

    def operation(self, operation: q.Operation, name: str) -> list[System]:
        """Returns the rules of an operation. A refused operation has none."""
        match operation:
            case q.InsertData(quads=quads, origin=origin):
                return [Body(ALL).system(self._data(quads, name), name, origin)]
            case q.DeleteData(quads=quads):
                return [self._delete(quad, name) for quad in quads]
            case q.Modify():
                return [self._modify(operation, name)]
            case q.Load(origin=origin):
                self._refuse(
                    "LOAD", origin, "give the document as a source, or apply the request once by `squall update`"
                )
            case q.Manage(action=action, origin=origin) | q.Transfer(action=action, origin=origin):
                hint = "say by DELETE and INSERT which facts come and go, or apply the request once by `squall update`"
                self._refuse(action, origin, hint)
        return []

    def _delete(self, quad: q.QuadPattern, name: str) -> System:
        """Returns a rule that deletes a fact whenever it arrives. A rule without a pattern would only act
        at the start."""
        triple = Pattern(quad.subject, quad.predicate, quad.object, origin=quad.origin)
        body = Body(_in_graph(ALL, quad.graph), [replace(triple, exact=True)])
        return body.system([Delete((triple,), quad.graph)], name, quad.origin)

    def _modify(self, operation: q.Modify, name: str) -> System:
        """Returns the rule of a MODIFY operation.

        Triples in no graph belong to the graph of ``WITH``. That holds for the pattern too, unless it has a dataset of
        its own (section 3.1.3).
        """
        reads = _in_graph(ALL, operation.graph)
        body = self.body(operation.where, dataset(operation.using, self.state.notes) if operation.using else reads)
        deleted = self.quads(operation.delete, body, operation.graph)
        inserted = self.quads(operation.insert, body, operation.graph)
        consequences = [Delete(template, graph) for graph, template in deleted.items()]
        return body.system([*consequences, *_inserts(inserted)], name, operation.origin)

    def _data(self, quads: Sequence[q.QuadPattern], name: str) -> list[Insert]:
        """Returns the triples of data by their graphs.

        The labels of their blank nodes are local to the operation (SPARQL 1.1 Update, section 3.1.1; Query, section
        4.1.4), so each gets a suffix. The suffix is the same in each run, for checkpoints.
        """
        suffix = digest(f"{name} {self.state.key}")

        def node(slot: Slot) -> Slot:
            return Term(f"{slot}-{suffix}") if isinstance(slot, str) and is_blank(slot) else slot

        quads_by_graph: Quads = {}
        for quad in quads:
            triple = Pattern(node(quad.subject), quad.predicate, node(quad.object), origin=quad.origin)
            quads_by_graph[quad.graph] = (*quads_by_graph.get(quad.graph, ()), triple)
        return _inserts(quads_by_graph)

    def _refuse(self, what: str, origin: Origin | None, hint: str) -> None:
        self.state.notes.fail(f"`{what}` is no standing rule", origin, hint)


def _in_graph(reads: ActiveDataset, graph: Slot | None) -> ActiveDataset:
    """Returns the dataset with a graph as its active graph, or the dataset itself for None."""
    return reads.with_sources(Graph(iri_text(graph))) if isinstance(graph, str) else reads


def _inserts(quads: Quads) -> list[Insert]:
    return [Insert(template, graph) for graph, template in quads.items()]
