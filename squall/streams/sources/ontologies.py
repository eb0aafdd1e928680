"""Checks that OWL 2 ontologies are in the profile RL, and reads them as static data without annotations.

The check covers what rules cannot express: class expressions in positions where the profile does not allow them. It
does not cover whether all classes and properties are declared, nor the other restrictions of OWL 2 DL.

Sources: OWL 2 Profiles (second edition), section 4.2; OWL 2 Mapping to RDF Graphs, section 3; OWL 2 Direct Semantics,
section 2 (annotations have no meaning).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from squall.errors import Origin, SourceError
from squall.rdf import OWL, RDF, RDFS, XSD, Event, Term, Triple, iri, is_blank, literal


def _owl(*names: str) -> frozenset[Term]:
    return frozenset(iri(OWL + name) for name in names)


TYPE, FIRST, REST, NIL = (iri(RDF + name) for name in ("type", "first", "rest", "nil"))
SUBCLASS, DOMAIN, RANGE = (iri(RDFS + name) for name in ("subClassOf", "domain", "range"))
THING, ONTOLOGY, IMPORTS, ON_CLASS = (iri(OWL + name) for name in ("Thing", "Ontology", "imports", "onClass"))
EQUIVALENT, DISJOINT = iri(OWL + "equivalentClass"), iri(OWL + "disjointWith")
UNION, INTERSECTION, ONE_OF = (iri(OWL + name) for name in ("unionOf", "intersectionOf", "oneOf"))
COMPLEMENT, SOME, ALL, VALUE = (
    iri(OWL + name) for name in ("complementOf", "someValuesFrom", "allValuesFrom", "hasValue")
)
MOST, MOST_OF = iri(OWL + "maxCardinality"), iri(OWL + "maxQualifiedCardinality")
MEMBERS, KEY, ALL_CLASSES = iri(OWL + "members"), iri(OWL + "hasKey"), iri(OWL + "AllDisjointClasses")

_UNSUPPORTED = _owl(
    "disjointUnionOf", "hasSelf", "minCardinality", "cardinality", "minQualifiedCardinality", "qualifiedCardinality",
    "onProperties", "onDatatype", "withRestrictions", "datatypeComplementOf", "onDataRange", "ReflexiveProperty",
    "topObjectProperty", "bottomObjectProperty", "topDataProperty", "bottomDataProperty", "DataRange",
)  # fmt: skip
"""Terms that no ontology of the profile has as a predicate or object."""
_FORMS = (UNION, INTERSECTION, ONE_OF, COMPLEMENT, SOME, ALL, VALUE, MOST, MOST_OF)
_COUNTS = frozenset(literal(count, XSD + "nonNegativeInteger") for count in "01")

_ANNOTATIONS = frozenset(
    {iri(RDFS + name) for name in ("label", "comment", "seeAlso", "isDefinedBy")}
    | _owl("versionInfo", "priorVersion", "backwardCompatibleWith", "incompatibleWith", "deprecated", "versionIRI")
)
_ANNOTATION_TYPES = _owl("AnnotationProperty", "OntologyProperty")
_ABOUT = _owl("Axiom", "Annotation", "Ontology")
"""The types of nodes whose triples are all annotations, or a header."""


_Position = tuple[Term, ...]
"""A position of class expressions: the forms that the profile allows there."""
_SUB: _Position = (UNION, INTERSECTION, ONE_OF, SOME, VALUE)
_SUPER: _Position = (INTERSECTION, COMPLEMENT, ALL, VALUE, MOST, MOST_OF, UNION)
_EQUIVALENT: _Position = (INTERSECTION, VALUE, UNION)
"""The profile has no unions in the last two. With unions, all conclusions of the rules still follow, and
they are complete if each member of a union is in one of its classes."""


Part = tuple[str, list[Event], Origin | None]
"""A document of an ontology: its IRI, its events, and where a program names it."""


def assertions(parts: Sequence[Part]) -> list[Event]:
    """Returns the events of the documents of one ontology, without annotations.

    Raises:
        SourceError: A document has no header, or imports another document, or the ontology is not in the profile RL.
    """
    for part in parts:
        _check_header(part, [iri(name) for name, _, _ in parts])
    static_events = [event for _, events, _ in parts for event in events]
    triples = _triples(static_events)
    for violation in violations(triples):
        names = ">, <".join(name for name, _, _ in parts)
        hint = "rules can only derive what follows from ontologies in OWL 2 RL: correct it, or import it under RDFS"
        raise SourceError(f"the ontology <{names}> is not in OWL 2 RL: {violation}", parts[0][2], hint)
    annotations = _annotations(triples)
    return [
        event._replace(facts=tuple(fact for fact in event.facts if fact not in annotations)) for event in static_events
    ]


def violations(triples: Sequence[Triple]) -> Iterator[str]:
    """Yields why an ontology is not in the profile RL of OWL 2."""
    return _Ontology(triples).violations()


def _triples(events: Iterable[Event]) -> list[Triple]:
    return [fact for event in events for fact in event.facts if isinstance(fact, Triple)]


def _check_header(part: Part, headers: Sequence[Term]) -> None:
    name, events, origin = part
    triples = _triples(events)
    if not any(triple.predicate == TYPE and triple.object == ONTOLOGY for triple in triples):
        hint = "declare it: `<> a owl:Ontology .`"
        raise SourceError(f"<{name}> is not OWL DL: it does not declare an owl:Ontology", origin, hint)
    for triple in triples:
        if triple.predicate == IMPORTS and triple.object not in headers:
            hint = f"import it by the RIF document as well: `Import({triple.object} ...)`"
            raise SourceError(f"<{name}> imports {triple.object}, which is not given", origin, hint)


def _annotations(triples: Sequence[Triple]) -> set[Triple]:
    """Returns the triples without a meaning for individuals: annotations, their declarations, and headers."""
    declared = {triple.subject for triple in triples if triple.predicate == TYPE and triple.object in _ANNOTATION_TYPES}
    about = {triple.subject for triple in triples if triple.predicate == TYPE and triple.object in _ABOUT}
    predicates = _ANNOTATIONS | declared
    return {triple for triple in triples if triple.predicate in predicates or triple.subject in about | declared}


def _prefixed(term: Term) -> str:
    """Returns a term of the vocabulary with its usual prefix."""
    for prefix, space in (("owl", OWL), ("rdfs", RDFS), ("rdf", RDF)):
        if term.startswith(f"<{space}"):
            return f"{prefix}:{term[len(space) + 1 : -1]}"
    return term


class _Ontology:
    """The triples of an ontology by subject and predicate."""

    def __init__(self, triples: Sequence[Triple]) -> None:
        self.triples = triples
        self.objects: dict[tuple[Term, Term], list[Term]] = defaultdict(list)
        for triple in triples:
            self.objects[(triple.subject, triple.predicate)].append(triple.object)
        self.seen: set[tuple[Term, _Position]] = set()

    def violations(self) -> Iterator[str]:
        """Yields texts that say what is not in the profile, and where."""
        for triple in self.triples:
            subject = "something without a name" if is_blank(triple.subject) else triple.subject
            for term in (triple.predicate, triple.object):
                if term in _UNSUPPORTED:
                    yield f"{_prefixed(term)} of {subject}"
            for node, position in self._axiom_expressions(triple):
                for violation in self._expression_violations(node, position):
                    yield f"{violation} in {_prefixed(triple.predicate)} of {subject}"

    def _axiom_expressions(self, triple: Triple) -> Iterator[tuple[Term, _Position]]:
        """Yields the class expressions of a triple that is an axiom, with their positions."""
        subject, predicate, object = triple
        if predicate == SUBCLASS:
            yield from ((subject, _SUB), (object, _SUPER))
        elif predicate == EQUIVALENT:
            yield from ((subject, _EQUIVALENT), (object, _EQUIVALENT))
        elif predicate == DISJOINT:
            yield from ((subject, _SUB), (object, _SUB))
        elif predicate in (DOMAIN, RANGE) or (predicate == TYPE and not object.startswith(f"<{OWL}")):
            yield (object, _SUPER)
        elif predicate == KEY:
            yield (subject, _SUB)
        elif predicate == MEMBERS and ALL_CLASSES in self.objects[(subject, TYPE)]:
            yield from ((member, _SUB) for member in self._list(object))
        elif predicate in _FORMS and subject.startswith("<"):  # a named class is equivalent to its expression
            yield (subject, _EQUIVALENT)

    def _expression_violations(self, node: Term, position: _Position) -> Iterator[str]:
        """Yields the forms that an expression has, also in its parts, and that the profile does not allow there."""
        waiting = [(node, position)]
        while waiting:
            current = waiting.pop()
            if current in self.seen:
                continue
            self.seen.add(current)
            if current == (THING, _SUB) or current == (THING, _EQUIVALENT):
                yield _prefixed(THING)
            for form, value in self._forms(*current):
                if form not in current[1] or (form in (MOST, MOST_OF) and value not in _COUNTS):
                    yield _prefixed(form)
                else:
                    waiting += self._parts(current, form, value)

    def _forms(self, node: Term, position: _Position) -> Iterator[tuple[Term, Term]]:
        """Yields the forms of an expression. A named class is equivalent to its own, which is an axiom."""
        if is_blank(node) or position == _EQUIVALENT:
            yield from ((form, value) for form in _FORMS for value in self.objects[(node, form)])

    def _parts(self, parent: tuple[Term, _Position], form: Term, value: Term) -> Iterator[tuple[Term, _Position]]:
        """Yields the parts of an allowed expression, with their positions."""
        node, position = parent
        if form == UNION:
            yield from ((member, _SUB) for member in self._list(value))
        elif form == INTERSECTION:
            yield from ((member, position) for member in self._list(value))
        elif form == COMPLEMENT:
            yield (value, _SUB)
        elif form == ALL or (form == SOME and value != THING):
            yield (value, position)
        elif form == MOST_OF:
            yield from ((class_node, _SUB) for class_node in self.objects[(node, ON_CLASS)] if class_node != THING)

    def _list(self, cell: Term) -> Iterator[Term]:
        visited: set[Term] = set()
        while cell != NIL and cell not in visited:
            visited.add(cell)
            yield from self.objects[(cell, FIRST)]
            cell = next(iter(self.objects[(cell, REST)]), NIL)
