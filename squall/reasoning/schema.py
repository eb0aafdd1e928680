"""A schema: what static data say of classes and properties, closed under an entailment regime.

Under these regimes a triple about individuals has the consequences that it has with the schema alone, since no rule has
two premises about individuals. So a schema that is known before the run answers what follows from a triple, and from
what a triple follows.

Source: RDF 1.1 Semantics, section 9.2.1 (rdfs2 to rdfs13); OWL 2 Profiles, section 4.3 (prp-eqp1, prp-eqp2, prp-inv1,
prp-inv2, prp-symp, cax-eqc1, cax-eqc2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar, get_args

from squall.errors import UsageError
from squall.model.fixed_schema import FixedSchema
from squall.model.graphs import components
from squall.model.sources import Source
from squall.rdf import OWL, RDF, RDFS, XSD_STRING, Term, Triple, iri, is_iri, is_literal
from squall.rdf.vocabulary import TYPE, is_schema_triple

Regime = Literal["rhodf", "rdfs"]
"""An entailment regime: rho-df with equivalent, inverse and symmetric terms; or these and the rest of RDFS."""
REGIMES: tuple[Regime, ...] = get_args(Regime)

SUBCLASS, SUBPROPERTY = iri(RDFS + "subClassOf"), iri(RDFS + "subPropertyOf")
DOMAIN, RANGE = iri(RDFS + "domain"), iri(RDFS + "range")
RESOURCE, PROPERTY = iri(RDFS + "Resource"), iri(RDF + "Property")
_CLASS, _DATATYPE, _LITERAL = iri(RDFS + "Class"), iri(RDFS + "Datatype"), iri(RDFS + "Literal")
_MEMBERSHIP_PROPERTY, _MEMBER = iri(RDFS + "ContainerMembershipProperty"), iri(RDFS + "member")
_EQUIVALENT_CLASS, _EQUIVALENT_PROPERTY = iri(OWL + "equivalentClass"), iri(OWL + "equivalentProperty")
_INVERSE, _SYMMETRIC = iri(OWL + "inverseOf"), iri(OWL + "SymmetricProperty")
_AXIOMS_OF_RDFS = (Triple(iri(RDF + "langString"), TYPE, _DATATYPE), Triple(iri(XSD_STRING), TYPE, _DATATYPE))
_PREDICATES = frozenset((SUBCLASS, SUBPROPERTY, DOMAIN, RANGE, _EQUIVALENT_CLASS, _EQUIVALENT_PROPERTY, _INVERSE))

N = TypeVar("N", bound=Hashable)


_SCHEMA_CLASSES: Mapping[Regime, frozenset[Term]] = {
    "rhodf": frozenset((_SYMMETRIC,)),
    "rdfs": frozenset((_SYMMETRIC, _CLASS, _DATATYPE, PROPERTY, _MEMBERSHIP_PROPERTY)),
}
"""The classes whose instances have consequences for the schema."""


def is_axiom(triple: Triple) -> bool:
    """Returns whether a triple entails something about individuals: it must be known before a run."""
    return triple.predicate in _PREDICATES or (triple.predicate == TYPE and triple.object == _SYMMETRIC)


class Reading(NamedTuple):
    """A property as it is read: from subject to object or, if `inverse`, from object to subject."""

    property: Term
    inverse: bool = False

    def within(self, outer: Reading) -> Reading:
        """Returns the reading of this property in a triple that is itself read by another reading."""
        return Reading(self.property, self.inverse != outer.inverse)


class Schema:
    """A schema, closed under an entailment regime.

    Args:
        triples: Static data. What they say of individuals is left out.
        regime: The regime.

    Raises:
        UsageError: Data would change the schema, since a property is a subproperty of one that describes schemas; or
            rdf:type has a superproperty, an inverse, a domain or a range.
    """

    def __init__(self, triples: Iterable[Triple], regime: Regime = "rhodf") -> None:
        self.regime = regime
        self.triples: set[Triple] = set()
        self._superclasses: dict[Term, set[Term]] = defaultdict(set)
        self._superproperties: dict[Term, set[Reading]] = defaultdict(set)
        self._types: dict[Reading, set[Term]] = defaultdict(set)
        """The classes of the subjects of a property; by its inverse reading, those of its objects."""
        new = {*filter(is_schema_triple, triples), *(_AXIOMS_OF_RDFS if regime == "rdfs" else ())}
        while new:
            self.triples |= new
            for triple in new:
                self._add(*triple)
            new = self._derived_schema() - self.triples
        self._refuse_what_data_would_change()

    def fixed(self, sources: Iterable[Source]) -> FixedSchema:
        """Returns what some sources must not change. Triples that follow from the schema change nothing."""
        return FixedSchema(_PREDICATES, _SCHEMA_CLASSES[self.regime], self.closure, tuple(sources))

    def _add(self, subject: Term, predicate: Term, object: Term) -> None:
        if predicate in (SUBCLASS, _EQUIVALENT_CLASS):
            self._superclasses[subject].add(object)
        if predicate == _EQUIVALENT_CLASS:
            self._superclasses[object].add(subject)
        if predicate in (SUBPROPERTY, _EQUIVALENT_PROPERTY):
            self._superproperties[subject].add(Reading(object))
        if predicate == _EQUIVALENT_PROPERTY:
            self._superproperties[object].add(Reading(subject))
        if predicate == _INVERSE:
            self._superproperties[subject].add(Reading(object, inverse=True))
            self._superproperties[object].add(Reading(subject, inverse=True))
        if predicate == TYPE and object == _SYMMETRIC:
            self._superproperties[subject].add(Reading(subject, inverse=True))
        if predicate in (DOMAIN, RANGE):
            self._types[Reading(subject, inverse=predicate == RANGE)].add(object)

    def _derived_schema(self) -> set[Triple]:
        """Returns the axioms that follow from the schema triples, except for those that are transitive only."""
        closure = self._closure_of(self.triples)
        derived = set(filter(is_axiom, closure))
        if self.regime == "rdfs":
            derived.update(*(_consequences_of_type(s, o) for s, predicate, o in closure if predicate == TYPE))
        return derived

    def _refuse_what_data_would_change(self) -> None:
        """Raises UsageError if a triple about individuals can have consequences that are more than its own."""
        hint = f"a rule set derives what follows: `--rules {self.regime}`"
        for property in sorted(self._superproperties):
            changed = sorted(_PREDICATES & {reading.property for reading in self.superproperties(property)})
            if changed and property not in _PREDICATES:
                message = f"the schema makes {property} a subproperty of {changed[0]}: data would change the schema"
                raise UsageError(message, hint=hint)
        if self.superproperties(TYPE) != {Reading(TYPE)} or self._types.keys() & {Reading(TYPE), Reading(TYPE, True)}:
            message = "the schema gives rdf:type a superproperty, an inverse, a domain or a range"
            raise UsageError(message, hint=hint)

    # Upwards: what follows from a class, a property or a triple

    def superclasses(self, name: Term) -> frozenset[Term]:
        """Returns the classes that have all instances of a class, itself among them."""
        return _reachable([name], self._direct_superclasses)

    def _direct_superclasses(self, name: Term) -> Iterable[Term]:
        return self._superclasses.get(name, ())

    def superproperties(self, name: Term) -> frozenset[Reading]:
        """Returns the readings of properties that hold where a property holds, itself among them."""
        return _reachable([Reading(name)], self._direct_superproperties)

    def _direct_superproperties(self, reading: Reading) -> Iterator[Reading]:
        return (above.within(reading) for above in self._superproperties.get(reading.property, ()))

    def _named_superproperties(self, name: Term) -> Iterator[Term]:
        """Yields the superproperties that the schema names: no rule derives those that follow from inverses."""
        return (property for property, inverse in self._superproperties.get(name, ()) if not inverse)

    def types(self, end: Reading) -> frozenset[Term]:
        """Returns the classes of the subjects of a property or, by the inverse reading, of its objects."""
        superproperties = _reachable([end], self._direct_superproperties)
        direct = {name for reading in superproperties for name in self._types.get(reading, ())}
        return _reachable(direct, self._direct_superclasses)

    def consequences(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        """Yields triples, and the RDF triples that follow from one of them and the schema by the rules of rho-df."""
        by_predicate: dict[Term, list[Triple]] = defaultdict(list)
        for triple in triples:
            by_predicate[triple.predicate].append(triple)
        for predicate, of_predicate in by_predicate.items():
            readings = [reading for reading in self.superproperties(predicate) if is_iri(reading.property)]
            ends = [(inverse, self.types(Reading(predicate, inverse))) for inverse in (False, True)]
            for triple in of_predicate:
                for reading in readings:
                    yield from self._read_as(triple, reading)
                for inverse, classes in ends:
                    individual = triple.object if inverse else triple.subject
                    if not is_literal(individual):
                        yield from (Triple(individual, TYPE, name) for name in classes)

    def _read_as(self, triple: Triple, reading: Reading) -> Iterator[Triple]:
        """Yields what a triple says by another reading of its property: a triple, and its superclasses if any."""
        subject, object = triple[::-2] if reading.inverse else triple[::2]
        if is_literal(subject):
            return
        yield Triple(subject, reading.property, object)
        if reading.property == TYPE:
            yield from (Triple(subject, TYPE, name) for name in self.superclasses(object))

    # Downwards: from what a class or a property follows

    @cached_property
    def _subclasses(self) -> Mapping[Term, set[Term]]:
        below: dict[Term, set[Term]] = defaultdict(set)
        for name, superclasses in self._superclasses.items():
            for superclass in superclasses:
                below[superclass].add(name)
        return below

    @cached_property
    def _subproperties(self) -> Mapping[Term, set[Reading]]:
        below: dict[Term, set[Reading]] = defaultdict(set)
        for name, readings in self._superproperties.items():
            for property, inverse in readings:
                below[property].add(Reading(name, inverse))
        return below

    @cached_property
    def _ends(self) -> Mapping[Term, set[Reading]]:
        ends: dict[Term, set[Reading]] = defaultdict(set)
        for end, classes in self._types.items():
            for name in classes:
                ends[name].add(end)
        return ends

    def subclasses(self, name: Term) -> frozenset[Term]:
        """Returns the classes whose instances a class has, itself among them."""
        return _reachable([name], lambda below: self._subclasses.get(below, ()))

    def subproperties(self, *readings: Reading) -> frozenset[Reading]:
        """Returns the readings of properties where one of some readings holds, these among them."""

        def below(reading: Reading) -> Iterator[Reading]:
            return (member.within(reading) for member in self._subproperties.get(reading.property, ()))

        return _reachable(readings, below)

    def ends(self, name: Term) -> frozenset[Reading]:
        """Returns the properties whose subjects or, by the inverse reading, whose objects are instances of a class."""
        direct = {end for member in self.subclasses(name) for end in self._ends.get(member, ())}
        return self.subproperties(*direct)

    @property
    def cycles(self) -> list[list[Term]]:
        """The sets of classes that are all subclasses of each other, and those of properties."""
        classes = {
            name: self._direct_superclasses(name) for name in self._superclasses.keys() | self._subclasses.keys()
        }
        properties = {
            name: list(self._named_superproperties(name))
            for name in self._superproperties.keys() | self._subproperties.keys()
        }
        return [sorted(part) for graph in (classes, properties) for part in components(graph) if len(part) > 1]

    @property
    def properties(self) -> frozenset[Term]:
        """The properties that entail something besides themselves."""
        return frozenset(self._superproperties) | {end.property for end in self._types}

    @property
    def classes(self) -> frozenset[Term]:
        """The classes that have superclasses."""
        return frozenset(self._superclasses)

    @cached_property
    def closure(self) -> frozenset[Triple]:
        """The schema triples, and all that follows from them."""
        triples = set(self.triples)
        for name, direct in self._superclasses.items():
            triples |= {Triple(name, SUBCLASS, above) for above in _reachable(direct, self._direct_superclasses)}
        for name in self._superproperties:
            superproperties = _reachable(self._named_superproperties(name), self._named_superproperties)
            triples |= {Triple(name, SUBPROPERTY, above) for above in superproperties}
        return frozenset(self._closure_of(triples))

    def _closure_of(self, triples: Iterable[Triple]) -> set[Triple]:
        """Returns triples, and what follows from one of them and the schema."""
        closure = set(self.consequences(triples))
        resources: frozenset[Term] = frozenset()
        while self.regime == "rdfs" and resources != (new := frozenset(term for triple in closure for term in triple)):
            resources = new
            predicates = {triple.predicate for triple in closure}
            closure |= {Triple(term, TYPE, RESOURCE) for term in resources if not is_literal(term)}
            closure |= {Triple(term, TYPE, PROPERTY) for term in predicates}
            closure |= {Triple(term, SUBPROPERTY, term) for term in predicates}
            closure |= set(self.consequences(closure))
        return closure


def _consequences_of_type(name: Term, object: Term) -> Iterator[Triple]:
    """Yields the schema triples that follow from the type of a class or property: rdfs6, 8, 10, 12 and 13."""
    if object == _CLASS:
        yield Triple(name, SUBCLASS, name)
        yield Triple(name, SUBCLASS, RESOURCE)
    elif object == _DATATYPE:
        yield Triple(name, SUBCLASS, _LITERAL)
    elif object == PROPERTY:
        yield Triple(name, SUBPROPERTY, name)
    elif object == _MEMBERSHIP_PROPERTY:
        yield Triple(name, SUBPROPERTY, _MEMBER)


def _reachable(first: Iterable[N], following: Callable[[N], Iterable[N]]) -> frozenset[N]:
    """Returns some members of a graph, and all that can be reached from them."""
    visited = set(first)
    pending = list(visited)
    while pending:
        new = set(following(pending.pop())) - visited
        visited |= new
        pending += new
    return frozenset(visited)
