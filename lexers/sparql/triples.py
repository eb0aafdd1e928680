"""Expansion of triples that share a subject, lists and blank nodes in brackets (SPARQL 1.1 Query, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lark import Token, Tree

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.lexers.sparql.expressions import Expressions, Part, Parts
from squall.model import Variable
from squall.rdf import RDF, iri

_TIMES = {iri(f"urn:x-squall:window:{name}"): name for name in ("start", "end")}
"""What an annotation says of a fact, by its predicate."""
_TIMES_HINT = "write `{| <urn:x-squall:window:start> ?s ; <urn:x-squall:window:end> ?e |}`, or one of the two"


class Triple(NamedTuple):
    """A triple, with its place, and the variables of the begin and the end of its validity."""

    subject: q.Slot
    predicate: q.Path | Variable
    object: q.Slot
    origin: Origin
    start: Variable | None = None
    end: Variable | None = None


class Triples:
    """Expands triples that share a subject, lists and blank nodes in brackets.

    Attributes:
        blank: Returns the slot for a labelled blank node.
    """

    def __init__(self, builder: Expressions, blank: Callable[[str], q.Slot]) -> None:
        self.builder = builder
        self.blank = blank
        self.found: list[Triple] = []

    def read(self, tree: Tree[Token]) -> list[Triple]:
        subject, *properties = tree.children
        self._properties(self._node(subject), properties, subject)
        return self.found

    def _properties(self, subject: q.Slot, parts: Parts, begin: Part | None = None) -> None:
        for verb, objects in zip(parts[::2], parts[1::2], strict=True):
            assert isinstance(objects, Tree)
            predicate = self.builder.verb(verb)
            start: Part | None = begin or verb
            for part in objects.children:
                node, *annotation = _without_annotation(part)
                triple = Triple(subject, predicate, self._node(node), self.builder.origin(start or part, part))
                times = self._times(triple, annotation)
                self.found.append(triple._replace(start=times.get("start"), end=times.get("end")))
                start = None
            begin = None

    def _times(self, triple: Triple, annotation: Parts) -> dict[str, Variable]:
        """Returns the variables of the begin and the end of a triple, by name. Errors are recorded."""
        times: dict[str, Variable] = {}
        for verb, node in _statements(annotation):
            if len(_without_annotation(node)) > 1:
                hint = "write the annotation behind the triple that it is about"
                self.builder.text.fail("an annotation has no annotation", self.builder.origin(node), hint)
                continue
            predicate, value = self.builder.verb(verb), self._node(node)
            name = _TIMES.get(predicate) if isinstance(predicate, str) else None
            origin = self.builder.origin(verb, node)
            if name is None:
                message = "an annotation (RDF 1.2) says nothing but the begin and the end of a fact here"
                self.builder.text.fail(message, origin, _TIMES_HINT)
            elif not isinstance(value, Variable) or q.is_unnamed(value):
                hint = f"write a variable, and compare it: `FILTER(?{name} = ...)`"
                self.builder.text.fail(f"the {name} of a fact has to be a variable", origin, hint)
            elif value in (triple.subject, triple.predicate, triple.object, *times.values()) or name in times:
                hint = "give each time a name of its own, and compare the two"
                self.builder.text.fail(f"`{value}` has a value already", origin, hint)
            else:
                times[name] = value
        if annotation and not isinstance(triple.predicate, str | Variable):
            hint = "let a rule derive one predicate from the path, and ask for the times of that"
            self.builder.text.fail("a path has no begin and no end", triple.origin, hint)
            return {}
        return times

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
            self.found.append(Triple(cell, iri(RDF + "first"), self._node(part), origin))
            self.found.append(Triple(cell, iri(RDF + "rest"), following, origin))
        return cells[0]

    def _fresh(self) -> q.Slot:
        return self.blank(self.builder.names.fresh())


def _without_annotation(part: Part) -> Parts:
    """Returns a node, and the predicates and objects of its annotation, if it has one."""
    return part.children if isinstance(part, Tree) and part.data == "annotated" else (part,)


def _statements(parts: Parts) -> Iterator[tuple[Part, Part]]:
    """Yields each predicate of an annotation with each of its objects."""
    for verb, objects in zip(parts[::2], parts[1::2], strict=True):
        assert isinstance(objects, Tree)
        yield from ((verb, node) for node in objects.children)
