"""Operations of SPARQL 1.1 Update as standing rules.

When the pattern of an operation gets a solution, what it deletes of the graphs ends, and what it inserts is there from
then on. Source: SPARQL 1.1 Update, section 3.1; M. Rinne, S. Törmä and E. Nuutila, "SPARQL-based applications for RDF-
encoded sensor data" (SSN 2012), on updates as rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.model import Delete, Graph, Insert, Pattern, Slot, System
from squall.rdf import iri_text
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ALL, Reads, dataset
from squall.translators.sparql.forms import Forms, Quads


class Updates(Forms):
    """Translates the operations of an update."""

    def operation(self, operation: q.Operation, name: str) -> list[System]:
        """The rules of an operation; none where it is refused."""
        match operation:
            case q.InsertData(quads=quads, origin=origin):
                return [Body(ALL).system(self._data(quads), name, origin)]
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
        """A fact ends whenever it comes: what has no pattern would be over before anything has come."""
        triple = Pattern(quad.subject, quad.predicate, quad.object, origin=quad.origin)
        body = Body(_inside(ALL, quad.graph), [replace(triple, exact=True)])
        return body.system([Delete((triple,), quad.graph)], name, quad.origin)

    def _modify(self, operation: q.Modify, name: str) -> System:
        """What stands in no graph belongs to that of ``WITH``, in the pattern too unless that has a data set of its own
        (section 3.1.3)."""
        reads = _inside(ALL, operation.graph)
        body = self.body(operation.where, dataset(operation.using, self.state.notes) if operation.using else reads)
        deleted = self.quads(operation.delete, body, operation.graph)
        inserted = self.quads(operation.insert, body, operation.graph)
        consequences = [Delete(template, graph) for graph, template in deleted.items()]
        return body.system([*consequences, *_inserted(inserted)], name, operation.origin)

    def _data(self, quads: Sequence[q.QuadPattern]) -> list[Insert]:
        """The triples of data by their graphs. Their blank nodes are what they are."""
        quads_by_graph: Quads = {}
        for quad in quads:
            triple = Pattern(quad.subject, quad.predicate, quad.object, origin=quad.origin)
            quads_by_graph[quad.graph] = (*quads_by_graph.get(quad.graph, ()), triple)
        return _inserted(quads_by_graph)

    def _refuse(self, what: str, origin: Origin | None, hint: str) -> None:
        self.state.notes.fail(f"`{what}` is no standing rule", origin, hint)


def _inside(reads: Reads, graph: Slot | None) -> Reads:
    """The data set, seen from a graph of it (None: from outside)."""
    return reads.of(Graph(iri_text(graph))) if isinstance(graph, str) else reads


def _inserted(quads: Quads) -> list[Insert]:
    return [Insert(template, graph) for graph, template in quads.items()]
