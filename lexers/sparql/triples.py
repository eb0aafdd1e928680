"""Expansion of triples that share a subject, lists and blank nodes in brackets (SPARQL 1.1 Query, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable

from lark import Token, Tree

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.lexers.sparql.expressions import Expressions, Part, Parts
from squall.model import Variable
from squall.rdf import RDF, iri

Found = tuple[q.Slot, q.Path | Variable, q.Slot, Origin]


class Triples:
    """Expands triples that share a subject, lists and blank nodes in brackets.

    Attributes:
        blank: Returns the slot for a labelled blank node.
    """

    def __init__(self, builder: Expressions, blank: Callable[[str], q.Slot]) -> None:
        self.builder = builder
        self.blank = blank
        self.found: list[Found] = []

    def read(self, tree: Tree[Token]) -> list[Found]:
        subject, *properties = tree.children
        self._properties(self._node(subject), properties, subject)
        return self.found

    def _properties(self, subject: q.Slot, parts: Parts, begin: Part | None = None) -> None:
        for verb, objects in zip(parts[::2], parts[1::2], strict=True):
            assert isinstance(objects, Tree)
            predicate = self.builder.verb(verb)
            start: Part | None = begin or verb
            for part in objects.children:
                object = self._node(part)
                self.found.append((subject, predicate, object, self.builder.origin(start or part, part)))
                start = None
            begin = None

    def _node(self, part: Part) -> q.Slot:
        if isinstance(part, Token):
            return self.blank(part[2:]) if part.type == "BLANK_NODE_LABEL" else self.builder.term(part)
        match part.data:
            case "anon":
                return self._fresh()
            case "nil":
                return iri(RDF + "nil")
            case "collection":
                return self._list(part)
            case "blank_properties":
                node = self._fresh()
                self._properties(node, part.children)
                return node
            case _:
                return self.builder.term(part)

    def _list(self, tree: Tree[Token]) -> q.Slot:
        cells = [self._fresh() for _ in tree.children]
        for cell, following, part in zip(cells, [*cells[1:], iri(RDF + "nil")], tree.children, strict=True):
            origin = self.builder.origin(part)
            self.found.append((cell, iri(RDF + "first"), self._node(part), origin))
            self.found.append((cell, iri(RDF + "rest"), following, origin))
        return cells[0]

    def _fresh(self) -> q.Slot:
        return self.blank(self.builder.names.fresh())
