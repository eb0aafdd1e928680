"""From RDF graphs to class expressions, data ranges and properties: OWL 2 Mapping to RDF Graphs, tables 11 to 15."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

from squall.errors import LexerError
from squall.lexers.owl import tree
from squall.rdf import OWL, RDF, RDFS, XSD, Term, Triple, iri, iri_text, is_blank, is_literal, parts
from squall.rdf.vocabulary import TYPE


def owl(name: str) -> Term:
    """Returns a term of OWL's vocabulary."""
    return iri(OWL + name)


FIRST, REST, NIL = (iri(RDF + name) for name in ("first", "rest", "nil"))
INVERSE, ON_PROPERTY = owl("inverseOf"), owl("onProperty")
_INTERSECTION, _UNION, _COMPLEMENT, _ONE_OF = map(owl, ("intersectionOf", "unionOf", "complementOf", "oneOf"))
_BOOLEAN: dict[Term, Callable[[tuple[tree.Expression, ...]], tree.Expression]] = {
    _INTERSECTION: tree.Intersection, _UNION: tree.Union,
}  # fmt: skip
_DATA_COMPLEMENT = owl("datatypeComplementOf")
_SOME, _ALL, _VALUE, _SELF = map(owl, ("someValuesFrom", "allValuesFrom", "hasValue", "hasSelf"))
_CARDINALITIES = {
    owl(name): bound
    for name, bound in (
        ("minCardinality", "Min"), ("maxCardinality", "Max"), ("cardinality", "Exact"),
        ("minQualifiedCardinality", "Min"), ("maxQualifiedCardinality", "Max"), ("qualifiedCardinality", "Exact"),
    )
}  # fmt: skip
_FACETS, ON_DATATYPE = owl("withRestrictions"), owl("onDatatype")
FORMS = (
    *_BOOLEAN, _COMPLEMENT, _ONE_OF, _DATA_COMPLEMENT, _SOME, _ALL, _VALUE, _SELF, *_CARDINALITIES, _FACETS,
)  # fmt: skip
"""The predicates of which an expression has one."""


KINDS = {
    owl("Class"): "Class", iri(RDFS + "Class"): "Class", iri(RDFS + "Datatype"): "Datatype",
    owl("ObjectProperty"): "ObjectProperty", owl("DatatypeProperty"): "DataProperty",
    owl("AnnotationProperty"): "AnnotationProperty", owl("OntologyProperty"): "AnnotationProperty",
    owl("NamedIndividual"): "NamedIndividual", owl("DataRange"): "Datatype",
}  # fmt: skip
"""The kinds of names, by the class that says so."""
_DATA_TYPES = (f"<{XSD}", f"<{RDFS}Literal>", f"<{RDF}PlainLiteral>", f"<{RDF}langString>", f"<{RDF}XMLLiteral>",
               f"<{RDF}HTML>", f"<{OWL}real>", f"<{OWL}rational>")  # fmt: skip


class Graph:
    """The triples of an ontology by subject and predicate.

    Attributes:
        name: The name of the text.
        triples: The triples, each once.
        objects: The objects by subject and predicate.
        kinds: The names that are declared, by their kind.
    """

    def __init__(self, triples: Sequence[Triple], name: str) -> None:
        self.name = name
        self.triples = tuple(dict.fromkeys(triples))
        self.objects: dict[Term, dict[Term, list[Term]]] = defaultdict(lambda: defaultdict(list))
        self.kinds: dict[str, set[Term]] = defaultdict(set)
        for triple in self.triples:
            self.objects[triple.subject][triple.predicate].append(triple.object)
            if triple.predicate == TYPE and triple.object in KINDS:
                self.kinds[KINDS[triple.object]].add(triple.subject)

    def value(self, node: Term, predicate: Term) -> Term:
        """Returns the only object of a node and a predicate. Raises LexerError if there is none, or another one."""
        values = self.objects[node].get(predicate, ())
        if len(values) != 1:
            number = "several values" if values else "no value"
            raise self.error(f"this node has {number} of {short_name(predicate)}", node)
        return values[0]

    def members(self, cell: Term) -> list[Term]:
        """Returns the members of a list. Raises LexerError if it is none."""
        cells = [cell]
        while cells[-1] != NIL:
            following = self.value(cells[-1], REST)
            if following in cells:
                raise self.error("this list has no end", cell)
            cells.append(following)
        return [self.value(first, FIRST) for first, _ in pairwise(cells)]

    def error(self, message: str, node: Term) -> LexerError:
        """Returns the error about a node."""
        at = f"a node with {', '.join(map(short_name, self.objects[node])) or 'no triples'}" if is_blank(node) else node
        return LexerError(f"{message}: {at} in `{self.name}`", hint="see OWL 2 Mapping to RDF Graphs, section 3")


class Expressions:
    """The classes, data ranges and properties of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._open: set[Term] = set()

    def expression(self, node: Term) -> tree.Expression:
        """Returns the class expression or data range of a node.

        Raises:
            LexerError: It is none.
        """
        if is_literal(node):
            raise self.graph.error("this literal is no class", node)
        if not is_blank(node):
            return tree.Datatype(node) if self.is_datatype(node) else tree.Class(node)
        forms = [form for form in FORMS if form in self.graph.objects[node]]
        if len(forms) != 1:
            raise self.graph.error(
                f"this node is {'several class expressions' if forms else 'no class expression'}", node
            )
        if node in self._open:
            raise self.graph.error("this class expression is a part of itself", node)
        self._open.add(node)
        try:
            return self.form(node, forms[0])
        finally:
            self._open.discard(node)

    def form(self, node: Term, form: Term) -> tree.Expression:
        """Returns the expression of a node, which has the predicate of a form. Raises LexerError if it is none."""
        value = self.graph.value(node, form)
        if form in _BOOLEAN:
            members = tuple(map(self.expression, self.graph.members(value)))
            return _BOOLEAN[form](members) if members else tree.Class(tree.THING if form == _INTERSECTION
                                                                      else tree.NOTHING)  # fmt: skip
        if form in (_COMPLEMENT, _DATA_COMPLEMENT):
            return tree.Complement(self.expression(value))
        if form == _ONE_OF:
            return tree.OneOf(tuple(self.graph.members(value)))
        if form == _FACETS:
            return self._restricted(node, value)
        return self._restriction(node, form, value)

    def _restricted(self, node: Term, cells: Term) -> tree.Expression:
        pairs = [
            (facet, value)
            for member in self.graph.members(cells)
            for facet, values in self.graph.objects[member].items()
            for value in values
        ]
        return tree.Restricted(self.graph.value(node, ON_DATATYPE), tuple(pairs))

    def _restriction(self, node: Term, form: Term, value: Term) -> tree.Expression:
        property = self.graph.value(node, ON_PROPERTY)
        if form == _VALUE:
            return tree.HasValue(self.property(property, is_literal(value)), value)
        if form == _SELF:
            return tree.HasSelf(self.property(property))
        if form in (_SOME, _ALL):
            filler = self.expression(value)
            quantified = self.property(property, tree.is_data_range(filler))
            return tree.Some(quantified, filler) if form == _SOME else tree.All(quantified, filler)
        return self._cardinality(node, form, value, property)

    def _cardinality(self, node: Term, form: Term, value: Term, property: Term) -> tree.Expression:
        objects = self.graph.objects[node]
        fillers = [*objects.get(owl("onClass"), ()), *objects.get(owl("onDataRange"), ())]
        if len(fillers) != ("Qualified" in form or "qualified" in form):
            raise self.graph.error(
                f"{short_name(form)} needs one owl:onClass or owl:onDataRange if it is qualified", node
            )
        if not is_literal(value) or not parts(value).lexical.isdecimal():
            raise self.graph.error(f"{short_name(form)} needs a number, not {value}", node)
        filler = self.expression(fillers[0]) if fillers else None
        is_data = filler is not None and tree.is_data_range(filler)
        number = int(parts(value).lexical)
        return tree.Cardinality(_CARDINALITIES[form], number, self.property(property, is_data), filler)

    def property(self, node: Term, is_data: bool = False) -> tree.Property:
        """Returns the property of a node, or of an inverse of one. Raises LexerError if it is none.

        Args:
            node: The node.
            is_data: Whether it is one of data, unless it is declared as one of objects.
        """
        if is_literal(node):
            raise self.graph.error("this literal is no property", node)
        if not is_blank(node):
            is_object = node in self.graph.kinds["ObjectProperty"]
            return tree.Property(node, not is_object and (is_data or node in self.graph.kinds["DataProperty"]))
        inner = self.property(self.graph.value(node, INVERSE))
        return tree.Property(inner.name, inverse=not inner.inverse)

    def property_pair(self, first: Term, second: Term) -> tuple[tree.Property, tree.Property]:
        """Returns two properties, which are both of data if one of them is known to be."""
        is_data = any(name in self.graph.kinds["DataProperty"] for name in (first, second))
        return self.property(first, is_data), self.property(second, is_data)

    def is_datatype(self, node: Term) -> bool:
        """Returns whether a name is one of a datatype."""
        return node.startswith(_DATA_TYPES) or node in self.graph.kinds["Datatype"]


def short_name(term: Term) -> str:
    """Returns a term of the vocabulary with its usual prefix."""
    for prefix, space in (("owl", OWL), ("rdfs", RDFS), ("rdf", RDF), ("xsd", XSD)):
        if term.startswith(f"<{space}"):
            return f"{prefix}:{iri_text(term)[len(space) :]}"
    return term
