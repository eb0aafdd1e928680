"""Operations of SPARQL 1.1 Update as standing rules.

What a rule inserts holds for as long as its pattern has the solution; what it deletes ends in the streams when the
pattern gets one. Source: SPARQL 1.1 Update, section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.system import Consequence, Construct, Delete, Pattern, System
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ALL, dataset
from squall.translators.sparql.forms import Forms


class Updates(Forms):
    """Translates the operations of an update."""

    def operation(self, operation: q.Operation, name: str) -> list[System]:
        """The rules of an operation; none where it is refused."""
        match operation:
            case q.InsertData(quads=quads, origin=origin):
                return [Body(ALL).system([Construct(self._data(quads))], name, origin)]
            case q.DeleteData(quads=quads):
                return [self._delete(triple, name) for triple in self._data(quads)]
            case q.Modify():
                return [self._modify(operation, name)]
            case q.Load(origin=origin):
                self._refuse("LOAD", origin, "give the document as a source")
            case q.Manage(action=action, origin=origin) | q.Transfer(action=action, origin=origin):
                self._refuse(action, origin, "graphs are streams here: they come and go with their facts")
        return []

    def _delete(self, triple: Pattern, name: str) -> System:
        """A fact ends whenever it comes: what has no pattern would be over before anything has come."""
        return Body(ALL, [replace(triple, exact=True)]).system([Delete((triple,))], name, triple.origin)

    def _modify(self, operation: q.Modify, name: str) -> System:
        if operation.graph is not None:
            self._refuse("WITH", operation.origin, "leave it out: what is made belongs to the default graph")
        body = self.body(operation.where, dataset(operation.using, self.state.notes))
        made: list[Consequence] = []
        if operation.delete:
            made.append(Delete(self.template(operation.delete, body)))
        if operation.insert:
            made.append(Construct(self.template(operation.insert, body)))
        return body.system(made, name, operation.origin)

    def _data(self, quads: Sequence[q.QuadPattern]) -> tuple[Pattern, ...]:
        """The triples of data, whose blank nodes are what they are."""
        self.check_graphs(quads)
        return tuple(Pattern(quad.subject, quad.predicate, quad.object, origin=quad.origin) for quad in quads)

    def _refuse(self, what: str, origin: Origin | None, hint: str) -> None:
        self.state.notes.fail(f"`{what}` is not supported yet", origin, hint)
