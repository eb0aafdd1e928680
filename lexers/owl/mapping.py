"""From RDF graphs to axioms: OWL 2 Mapping to RDF Graphs (second edition), section 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from squall.errors import LexerError, SquallError, raise_all
from squall.lexers.owl import tree
from squall.lexers.owl.rdf_expressions import (
    FIRST,
    FORMS,
    KINDS,
    ON_DATATYPE,
    ON_PROPERTY,
    REST,
    Expressions,
    Graph,
    owl,
    short_name,
)
from squall.rdf import OWL, RDF, RDFS, XSD, Term, Triple, iri, iri_text, is_blank, is_literal
from squall.rdf.vocabulary import TYPE

ONTOLOGY, IMPORTS = owl("Ontology"), owl("imports")
_CHARACTERISTICS = {owl(f"{kind}Property"): kind for kind in tree.CHARACTERISTICS}
_IGNORED_TYPES = {iri(RDF + "Property"), owl("Restriction"), owl("DeprecatedClass"), owl("DeprecatedProperty"),
                  iri(RDF + "List"), owl("Thing")}  # fmt: skip
_ANNOTATIONS = {iri(RDFS + name) for name in ("label", "comment", "seeAlso", "isDefinedBy")} | set(map(owl, (
    "versionInfo", "priorVersion", "backwardCompatibleWith", "incompatibleWith", "deprecated", "versionIRI",
)))  # fmt: skip
_ABOUT = {ONTOLOGY, owl("Axiom"), owl("Annotation")}
"""The types of nodes whose triples are all annotations, or a header."""
_NEGATIVE, _SOURCE, _ASSERTED = map(owl, ("NegativePropertyAssertion", "sourceIndividual", "assertionProperty"))
_TARGETS = (owl("targetIndividual"), owl("targetValue"))
_GROUPS = tuple(map(owl, ("AllDisjointClasses", "AllDisjointProperties", "AllDifferent")))
_MEMBERS = (owl("members"), owl("distinctMembers"))
_RESERVED = (f"<{OWL}", f"<{RDFS}", f"<{RDF}")
_ALLOWED = {owl("topObjectProperty"), owl("bottomObjectProperty"), owl("topDataProperty"),
            owl("bottomDataProperty"), iri(RDFS + "member")}  # fmt: skip
"""Properties of the reserved vocabulary that assertions may have."""


def ontology(triples: Sequence[Triple], name: str) -> tree.Ontology:
    """Returns the ontology of a graph.

    Args:
        triples: The triples.
        name: The name of the text.

    Raises:
        LexerError: A triple, or a node, is part of no axiom.
        Errors: There are several errors.
    """
    mapping = Mapping(triples, name)
    axioms = tuple(mapping.axioms())
    header = next((triple.subject for triple in triples if triple[1:] == (TYPE, ONTOLOGY)), None)
    imports = tuple(tree.Import(iri_text(triple.object)) for triple in triples if triple[:2] == (header, IMPORTS))
    named = iri_text(header) if header and not is_blank(header) else ""
    result = tree.Ontology(name, named, imports, axioms, header is not None)
    raise_all(mapping.errors, result)
    return result


class Mapping:
    """The axioms in the triples of an ontology.

    Attributes:
        errors: The errors so far.
    """

    def __init__(self, triples: Sequence[Triple], name: str) -> None:
        self.errors: list[SquallError] = []
        self._graph = Graph(triples, name)
        self._objects = self._graph.objects
        self._expressions = Expressions(self._graph)
        self._annotations = _ANNOTATIONS | self._graph.kinds["AnnotationProperty"]
        self._readers = self._axiom_readers()

    def axioms(self) -> Iterator[tree.Axiom]:
        """Yields the axioms, in the order of the triples. Errors are recorded."""
        for triple in self._graph.triples:
            try:
                yield from self._axioms_of(triple)
            except LexerError as error:
                self.errors.append(error)

    def _axioms_of(self, triple: Triple) -> Iterator[tree.Axiom]:
        subject, predicate, object = triple
        types = self._objects[subject].get(TYPE, ())
        if predicate in self._annotations or subject in self._annotations or not _ABOUT.isdisjoint(types):
            return
        if reader := self._readers.get(predicate):
            yield from reader(subject, object)
        elif predicate == TYPE:
            yield from self._type_axioms(subject, object)
        elif predicate in FORMS:
            yield from self._definition(subject, predicate)
        elif self._is_part(subject, predicate):
            return
        elif predicate.startswith(_RESERVED) and not self._is_assertable(predicate):
            raise self._graph.error(f"the triple of {short_name(predicate)} is part of no axiom", subject)
        else:
            yield tree.PropertyAssertion(self._expressions.property(predicate, is_literal(object)), subject, object)

    def _is_assertable(self, predicate: Term) -> bool:
        return predicate in _ALLOWED or predicate.startswith(f"<{RDF}_")

    def _is_part(self, subject: Term, predicate: Term) -> bool:
        """Returns whether a triple belongs to an axiom or expression that another triple begins."""
        objects = self._objects[subject]
        if predicate in (FIRST, REST):
            return True
        if predicate in (ON_PROPERTY, owl("onClass"), owl("onDataRange"), ON_DATATYPE):
            return any(form in objects for form in FORMS)
        if predicate in _MEMBERS:
            return not set(_GROUPS).isdisjoint(objects.get(TYPE, ()))
        if predicate in (_ASSERTED, *_TARGETS):
            return _SOURCE in objects
        return predicate.startswith(f"<{XSD}")  # a facet

    def _axiom_readers(self) -> dict[Term, Callable[[Term, Term], Iterator[tree.Axiom]]]:
        """Returns what makes axioms of a subject and an object, by the predicate."""
        expression, members = self._expressions.expression, self._graph.members
        property, pair = self._expressions.property, self._expressions.property_pair
        rdfs = {
            "subClassOf": lambda s, o: [tree.SubClassOf(expression(s), expression(o))],
            "subPropertyOf": lambda s, o: [tree.SubPropertyOf(*self._subproperty(s, o))],
            "domain": lambda s, o: [tree.Domain(property(s), expression(o))],
            "range": lambda s, o: [self._range(s, o)],
        }
        of_owl = {
            "equivalentClass": self._equivalent,
            "disjointWith": lambda s, o: [tree.DisjointClasses((expression(s), expression(o)))],
            "disjointUnionOf": lambda s, o: [tree.DisjointUnion(s, tuple(map(expression, members(o))))],
            "propertyChainAxiom": lambda s, o: [tree.SubPropertyOf(tuple(map(property, members(o))), property(s))],
            "equivalentProperty": lambda s, o: [tree.EquivalentProperties(pair(s, o))],
            "propertyDisjointWith": lambda s, o: [tree.DisjointProperties(pair(s, o))],
            "inverseOf": lambda s, o: [] if is_blank(s) else [tree.InverseProperties(property(s), property(o))],
            "hasKey": lambda s, o: [tree.HasKey(expression(s), tuple(map(property, members(o))))],
            "sameAs": lambda s, o: [tree.SameIndividual((s, o))],
            "differentFrom": lambda s, o: [tree.DifferentIndividuals((s, o))],
            "sourceIndividual": lambda s, o: [self._negative(s)],
        }
        readers = ((iri(RDFS + name), reader) for name, reader in rdfs.items())
        return {**dict(readers), **{owl(name): reader for name, reader in of_owl.items()}}

    def _type_axioms(self, subject: Term, object: Term) -> Iterator[tree.Axiom]:
        if kind := KINDS.get(object):
            if not is_blank(subject):
                yield tree.Declaration(kind, subject)
        elif kind := _CHARACTERISTICS.get(object):
            yield tree.Characteristic(kind, self._expressions.property(subject))
        elif object in _GROUPS:
            yield self._group(subject, _GROUPS.index(object))
        elif object == _NEGATIVE:
            if _SOURCE not in self._objects[subject]:
                raise self._graph.error("this owl:NegativePropertyAssertion has no owl:sourceIndividual", subject)
        elif object not in _IGNORED_TYPES:
            if object.startswith(_RESERVED) and object != tree.NOTHING:
                raise self._graph.error(f"{short_name(object)} is no class of individuals", subject)
            yield tree.ClassAssertion(self._expressions.expression(object), subject)

    def _group(self, node: Term, kind: int) -> tree.Axiom:
        cells = [cell for predicate in _MEMBERS for cell in self._objects[node].get(predicate, ())]
        if len(cells) != 1:
            raise self._graph.error("what is disjoint or different has one list of owl:members", node)
        members = self._graph.members(cells[0])
        if kind == 0:
            return tree.DisjointClasses(tuple(map(self._expressions.expression, members)))
        if kind == 1:
            return tree.DisjointProperties(tuple(map(self._expressions.property, members)))
        return tree.DifferentIndividuals(tuple(members))

    def _negative(self, node: Term) -> tree.Axiom:
        objects = self._objects[node]
        values = [value for predicate in _TARGETS for value in objects.get(predicate, ())]
        if [len(objects[_SOURCE]), len(objects.get(_ASSERTED, ())), len(values)] != [1, 1, 1]:
            raise self._graph.error("a negative assertion has one individual, one property and one value", node)
        property = self._expressions.property(objects[_ASSERTED][0], is_literal(values[0]))
        return tree.PropertyAssertion(property, objects[_SOURCE][0], values[0], negative=True)

    def _range(self, subject: Term, object: Term) -> tree.Axiom:
        expression = self._expressions.expression(object)
        return tree.Range(self._expressions.property(subject, tree.is_data_range(expression)), expression)

    def _equivalent(self, subject: Term, object: Term) -> Iterator[tree.Axiom]:
        expression = self._expressions.expression(object)
        if self._expressions.is_datatype(subject) or (tree.is_data_range(expression) and not is_blank(subject)):
            yield tree.DatatypeDefinition(subject, expression)
        else:
            yield tree.EquivalentClasses((self._expressions.expression(subject), expression))

    def _definition(self, subject: Term, predicate: Term) -> Iterator[tree.Axiom]:
        """Yields the axiom of a form of a name, which says what the name is equivalent to (OWL 1)."""
        if not is_blank(subject):
            yield tree.EquivalentClasses((tree.Class(subject), self._expressions.form(subject, predicate)))

    def _subproperty(self, sub: Term, sup: Term) -> tuple[tuple[tree.Property, ...], tree.Property]:
        pair = self._expressions.property_pair(sub, sup)
        return (pair[0],), pair[1]
