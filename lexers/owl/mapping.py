"""From RDF graphs to axioms: OWL 2 Mapping to RDF Graphs (second edition), section 3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from squall.errors import LexerError, SquallError, raise_all
from squall.lexers.owl import tree
from squall.rdf import OWL, RDF, RDFS, XSD, Term, Triple, iri, iri_text, is_blank, is_literal, parts
from squall.rdf.vocabulary import TYPE


def _owl(name: str) -> Term:
    return iri(OWL + name)


FIRST, REST, NIL = (iri(RDF + name) for name in ("first", "rest", "nil"))
ONTOLOGY, IMPORTS = _owl("Ontology"), _owl("imports")
_INVERSE, _ON_PROPERTY = _owl("inverseOf"), _owl("onProperty")
_INTERSECTION, _UNION, _COMPLEMENT, _ONE_OF = map(_owl, ("intersectionOf", "unionOf", "complementOf", "oneOf"))
_BOOLEAN: dict[Term, Callable[[tuple[tree.Expression, ...]], tree.Expression]] = {
    _INTERSECTION: tree.Intersection, _UNION: tree.Union,
}  # fmt: skip
_DATA_COMPLEMENT = _owl("datatypeComplementOf")
_SOME, _ALL, _VALUE, _SELF = map(_owl, ("someValuesFrom", "allValuesFrom", "hasValue", "hasSelf"))
_CARDINALITIES = {
    _owl(name): bound
    for name, bound in (
        ("minCardinality", "Min"), ("maxCardinality", "Max"), ("cardinality", "Exact"),
        ("minQualifiedCardinality", "Min"), ("maxQualifiedCardinality", "Max"), ("qualifiedCardinality", "Exact"),
    )
}  # fmt: skip
_FACETS, _ON_DATATYPE = _owl("withRestrictions"), _owl("onDatatype")
_FORMS = (
    *_BOOLEAN, _COMPLEMENT, _ONE_OF, _DATA_COMPLEMENT, _SOME, _ALL, _VALUE, _SELF, *_CARDINALITIES, _FACETS,
)  # fmt: skip
"""The predicates of which an expression has one."""

_KINDS = {
    _owl("Class"): "Class", iri(RDFS + "Class"): "Class", iri(RDFS + "Datatype"): "Datatype",
    _owl("ObjectProperty"): "ObjectProperty", _owl("DatatypeProperty"): "DataProperty",
    _owl("AnnotationProperty"): "AnnotationProperty", _owl("OntologyProperty"): "AnnotationProperty",
    _owl("NamedIndividual"): "NamedIndividual", _owl("DataRange"): "Datatype",
}  # fmt: skip
"""The kinds of names, by the class that says so."""
_CHARACTERISTICS = {_owl(f"{kind}Property"): kind for kind in tree.CHARACTERISTICS}
_IGNORED_TYPES = {iri(RDF + "Property"), _owl("Restriction"), _owl("DeprecatedClass"), _owl("DeprecatedProperty"),
                  iri(RDF + "List"), _owl("Thing")}  # fmt: skip
_ANNOTATIONS = {iri(RDFS + name) for name in ("label", "comment", "seeAlso", "isDefinedBy")} | set(map(_owl, (
    "versionInfo", "priorVersion", "backwardCompatibleWith", "incompatibleWith", "deprecated", "versionIRI",
)))  # fmt: skip
_ABOUT = {ONTOLOGY, _owl("Axiom"), _owl("Annotation")}
"""The types of nodes whose triples are all annotations, or a header."""
_NEGATIVE, _SOURCE, _ASSERTED = map(_owl, ("NegativePropertyAssertion", "sourceIndividual", "assertionProperty"))
_TARGETS = (_owl("targetIndividual"), _owl("targetValue"))
_GROUPS = tuple(map(_owl, ("AllDisjointClasses", "AllDisjointProperties", "AllDifferent")))
_MEMBERS = (_owl("members"), _owl("distinctMembers"))
_DATA_TYPES = (f"<{XSD}", f"<{RDFS}Literal>", f"<{RDF}PlainLiteral>", f"<{RDF}langString>", f"<{RDF}XMLLiteral>",
               f"<{RDF}HTML>", f"<{OWL}real>", f"<{OWL}rational>")  # fmt: skip
_RESERVED = (f"<{OWL}", f"<{RDFS}", f"<{RDF}")
_ALLOWED = {_owl("topObjectProperty"), _owl("bottomObjectProperty"), _owl("topDataProperty"),
            _owl("bottomDataProperty"), iri(RDFS + "member")}  # fmt: skip
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
    """The triples of an ontology by subject and predicate, and the axioms in them.

    Attributes:
        errors: The errors so far.
    """

    def __init__(self, triples: Sequence[Triple], name: str) -> None:
        self.name = name
        self.errors: list[SquallError] = []
        self._triples = tuple(dict.fromkeys(triples))
        self._objects: dict[Term, dict[Term, list[Term]]] = defaultdict(lambda: defaultdict(list))
        self._kinds: dict[str, set[Term]] = defaultdict(set)
        for triple in self._triples:
            self._objects[triple.subject][triple.predicate].append(triple.object)
            if triple.predicate == TYPE and triple.object in _KINDS:
                self._kinds[_KINDS[triple.object]].add(triple.subject)
        self._annotations = _ANNOTATIONS | self._kinds["AnnotationProperty"]
        self._open: set[Term] = set()
        self._readers = self._axiom_readers()

    def axioms(self) -> Iterator[tree.Axiom]:
        """Yields the axioms, in the order of the triples. Errors are recorded."""
        for triple in self._triples:
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
        elif predicate in _FORMS:
            yield from self._definition(subject, predicate)
        elif self._is_part(subject, predicate):
            return
        elif predicate.startswith(_RESERVED) and not self._is_assertable(predicate):
            raise self._error(f"the triple of {_short(predicate)} is part of no axiom", subject)
        else:
            yield tree.PropertyAssertion(self._property(predicate, is_literal(object)), subject, object)

    def _is_assertable(self, predicate: Term) -> bool:
        return predicate in _ALLOWED or predicate.startswith(f"<{RDF}_")

    def _is_part(self, subject: Term, predicate: Term) -> bool:
        """Returns whether a triple belongs to an axiom or expression that another triple begins."""
        objects = self._objects[subject]
        if predicate in (FIRST, REST):
            return True
        if predicate in (_ON_PROPERTY, _owl("onClass"), _owl("onDataRange"), _ON_DATATYPE):
            return any(form in objects for form in _FORMS)
        if predicate in _MEMBERS:
            return not set(_GROUPS).isdisjoint(objects.get(TYPE, ()))
        if predicate in (_ASSERTED, *_TARGETS):
            return _SOURCE in objects
        return predicate.startswith(f"<{XSD}")  # a facet

    def _axiom_readers(self) -> dict[Term, Callable[[Term, Term], Iterator[tree.Axiom]]]:
        """Returns what makes axioms of a subject and an object, by the predicate."""
        rdfs = {
            "subClassOf": lambda s, o: [tree.SubClassOf(self.expression(s), self.expression(o))],
            "subPropertyOf": lambda s, o: [tree.SubPropertyOf(*self._subproperty(s, o))],
            "domain": lambda s, o: [tree.Domain(self._property(s), self.expression(o))],
            "range": lambda s, o: [self._range(s, o)],
        }
        owl = {
            "equivalentClass": self._equivalent,
            "disjointWith": lambda s, o: [tree.DisjointClasses((self.expression(s), self.expression(o)))],
            "disjointUnionOf": lambda s, o: [tree.DisjointUnion(s, tuple(map(self.expression, self._list(o))))],
            "propertyChainAxiom": lambda s, o: [
                tree.SubPropertyOf(tuple(map(self._property, self._list(o))), self._property(s))
            ],
            "equivalentProperty": lambda s, o: [tree.EquivalentProperties(self._pair(s, o))],
            "propertyDisjointWith": lambda s, o: [tree.DisjointProperties(self._pair(s, o))],
            "inverseOf": lambda s, o: (
                [] if is_blank(s) else [tree.InverseProperties(self._property(s), self._property(o))]
            ),
            "hasKey": lambda s, o: [tree.HasKey(self.expression(s), tuple(map(self._property, self._list(o))))],
            "sameAs": lambda s, o: [tree.SameIndividual((s, o))],
            "differentFrom": lambda s, o: [tree.DifferentIndividuals((s, o))],
            "sourceIndividual": lambda s, o: [self._negative(s)],
        }
        readers = ((iri(RDFS + name), reader) for name, reader in rdfs.items())
        return {**dict(readers), **{_owl(name): reader for name, reader in owl.items()}}

    def _type_axioms(self, subject: Term, object: Term) -> Iterator[tree.Axiom]:
        if kind := _KINDS.get(object):
            if not is_blank(subject):
                yield tree.Declaration(kind, subject)
        elif kind := _CHARACTERISTICS.get(object):
            yield tree.Characteristic(kind, self._property(subject))
        elif object in _GROUPS:
            yield self._group(subject, _GROUPS.index(object))
        elif object == _NEGATIVE:
            if _SOURCE not in self._objects[subject]:
                raise self._error("this owl:NegativePropertyAssertion has no owl:sourceIndividual", subject)
        elif object not in _IGNORED_TYPES:
            if object.startswith(_RESERVED) and object != tree.NOTHING:
                raise self._error(f"{_short(object)} is no class of individuals", subject)
            yield tree.ClassAssertion(self.expression(object), subject)

    def _group(self, node: Term, kind: int) -> tree.Axiom:
        cells = [cell for predicate in _MEMBERS for cell in self._objects[node].get(predicate, ())]
        if len(cells) != 1:
            raise self._error("what is disjoint or different has one list of owl:members", node)
        members = self._list(cells[0])
        if kind == 0:
            return tree.DisjointClasses(tuple(map(self.expression, members)))
        if kind == 1:
            return tree.DisjointProperties(tuple(map(self._property, members)))
        return tree.DifferentIndividuals(tuple(members))

    def _negative(self, node: Term) -> tree.Axiom:
        objects = self._objects[node]
        values = [value for predicate in _TARGETS for value in objects.get(predicate, ())]
        if [len(objects[_SOURCE]), len(objects.get(_ASSERTED, ())), len(values)] != [1, 1, 1]:
            raise self._error("a negative assertion has one individual, one property and one value", node)
        property = self._property(objects[_ASSERTED][0], is_literal(values[0]))
        return tree.PropertyAssertion(property, objects[_SOURCE][0], values[0], negative=True)

    def _range(self, subject: Term, object: Term) -> tree.Axiom:
        expression = self.expression(object)
        return tree.Range(self._property(subject, tree.is_data_range(expression)), expression)

    def _equivalent(self, subject: Term, object: Term) -> Iterator[tree.Axiom]:
        expression = self.expression(object)
        if self._is_datatype(subject) or (tree.is_data_range(expression) and not is_blank(subject)):
            yield tree.DatatypeDefinition(subject, expression)
        else:
            yield tree.EquivalentClasses((self.expression(subject), expression))

    def _definition(self, subject: Term, predicate: Term) -> Iterator[tree.Axiom]:
        """Yields the axiom of a form of a name, which says what the name is equivalent to (OWL 1)."""
        if not is_blank(subject):
            yield tree.EquivalentClasses((tree.Class(subject), self._form(subject, predicate)))

    # Expressions

    def expression(self, node: Term) -> tree.Expression:
        """Returns the class expression or data range of a node.

        Raises:
            LexerError: It is none.
        """
        if is_literal(node):
            raise self._error("this literal is no class", node)
        if not is_blank(node):
            return tree.Datatype(node) if self._is_datatype(node) else tree.Class(node)
        forms = [form for form in _FORMS if form in self._objects[node]]
        if len(forms) != 1:
            raise self._error(f"this node is {'several class expressions' if forms else 'no class expression'}", node)
        if node in self._open:
            raise self._error("this class expression is a part of itself", node)
        self._open.add(node)
        try:
            return self._form(node, forms[0])
        finally:
            self._open.discard(node)

    def _form(self, node: Term, form: Term) -> tree.Expression:
        value = self._value(node, form)
        if form in _BOOLEAN:
            members = tuple(map(self.expression, self._list(value)))
            return _BOOLEAN[form](members) if members else tree.Class(tree.THING if form == _INTERSECTION
                                                                      else tree.NOTHING)  # fmt: skip
        if form in (_COMPLEMENT, _DATA_COMPLEMENT):
            return tree.Complement(self.expression(value))
        if form == _ONE_OF:
            return tree.OneOf(tuple(self._list(value)))
        if form == _FACETS:
            return self._restricted(node, value)
        return self._restriction(node, form, value)

    def _restricted(self, node: Term, cells: Term) -> tree.Expression:
        pairs = [
            (facet, value)
            for member in self._list(cells)
            for facet, values in self._objects[member].items()
            for value in values
        ]
        return tree.Restricted(self._value(node, _ON_DATATYPE), tuple(pairs))

    def _restriction(self, node: Term, form: Term, value: Term) -> tree.Expression:
        property = self._value(node, _ON_PROPERTY)
        if form == _VALUE:
            return tree.HasValue(self._property(property, is_literal(value)), value)
        if form == _SELF:
            return tree.HasSelf(self._property(property))
        if form in (_SOME, _ALL):
            filler = self.expression(value)
            quantified = self._property(property, tree.is_data_range(filler))
            return tree.Some(quantified, filler) if form == _SOME else tree.All(quantified, filler)
        return self._cardinality(node, form, value, property)

    def _cardinality(self, node: Term, form: Term, value: Term, property: Term) -> tree.Expression:
        objects = self._objects[node]
        fillers = [*objects.get(_owl("onClass"), ()), *objects.get(_owl("onDataRange"), ())]
        if len(fillers) != ("Qualified" in form or "qualified" in form):
            raise self._error(f"{_short(form)} needs one owl:onClass or owl:onDataRange if it is qualified", node)
        if not is_literal(value) or not parts(value).lexical.isdecimal():
            raise self._error(f"{_short(form)} needs a number, not {value}", node)
        filler = self.expression(fillers[0]) if fillers else None
        is_data = filler is not None and tree.is_data_range(filler)
        number = int(parts(value).lexical)
        return tree.Cardinality(_CARDINALITIES[form], number, self._property(property, is_data), filler)

    # Properties, lists, values

    def _subproperty(self, sub: Term, sup: Term) -> tuple[tuple[tree.Property, ...], tree.Property]:
        pair = self._pair(sub, sup)
        return (pair[0],), pair[1]

    def _pair(self, first: Term, second: Term) -> tuple[tree.Property, tree.Property]:
        """Returns two properties, which are both of data if one of them is known to be."""
        is_data = any(name in self._kinds["DataProperty"] for name in (first, second))
        return self._property(first, is_data), self._property(second, is_data)

    def _property(self, node: Term, is_data: bool = False) -> tree.Property:
        if is_literal(node):
            raise self._error("this literal is no property", node)
        if not is_blank(node):
            is_object = node in self._kinds["ObjectProperty"]
            return tree.Property(node, not is_object and (is_data or node in self._kinds["DataProperty"]))
        inner = self._property(self._value(node, _INVERSE))
        return tree.Property(inner.name, inverse=not inner.inverse)

    def _is_datatype(self, node: Term) -> bool:
        return node.startswith(_DATA_TYPES) or node in self._kinds["Datatype"]

    def _value(self, node: Term, predicate: Term) -> Term:
        values = self._objects[node].get(predicate, ())
        if len(values) != 1:
            number = "several values" if values else "no value"
            raise self._error(f"this node has {number} of {_short(predicate)}", node)
        return values[0]

    def _list(self, cell: Term) -> list[Term]:
        cells = [cell]
        while cells[-1] != NIL:
            following = self._value(cells[-1], REST)
            if following in cells:
                raise self._error("this list has no end", cell)
            cells.append(following)
        return [self._value(first, FIRST) for first, _ in pairwise(cells)]

    def _error(self, message: str, node: Term) -> LexerError:
        at = f"a node with {', '.join(map(_short, self._objects[node])) or 'no triples'}" if is_blank(node) else node
        return LexerError(f"{message}: {at} in `{self.name}`", hint="see OWL 2 Mapping to RDF Graphs, section 3")


def _short(term: Term) -> str:
    """Returns a term of the vocabulary with its usual prefix."""
    for prefix, space in (("owl", OWL), ("rdfs", RDFS), ("rdf", RDF), ("xsd", XSD)):
        if term.startswith(f"<{space}"):
            return f"{prefix}:{iri_text(term)[len(space) :]}"
    return term
