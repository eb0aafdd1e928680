"""The names of classes and properties, in programs beside a schema or an ontology."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from squall.errors import TranslatorWarning
from squall.model import Construct, Insert, Pattern, System, Variable, rules
from squall.model.walk import walk
from squall.rdf import OWL, RDFS, Term, Triple, iri, is_iri
from squall.rdf.similar_terms import near_terms
from squall.rdf.vocabulary import TYPE


class Names(NamedTuple):
    """The names of classes and those of properties."""

    classes: frozenset[Term]
    properties: frozenset[Term]


_CLASS_KINDS = frozenset((
    iri(RDFS + "Class"), iri(RDFS + "Datatype"), iri(OWL + "Class"), iri(OWL + "DeprecatedClass"),
))  # fmt: skip
_CLASS_PAIRS = frozenset((iri(RDFS + "subClassOf"), iri(OWL + "equivalentClass"), iri(OWL + "disjointWith")))
"""The predicates whose subjects and objects are classes."""
_CLASS_OBJECTS = frozenset((
    iri(RDFS + "domain"), iri(RDFS + "range"), iri(OWL + "someValuesFrom"), iri(OWL + "allValuesFrom"),
))  # fmt: skip
"""The predicates whose objects are classes."""


def names_in(schema: Iterable[Triple]) -> Names:
    """Returns the classes that schema triples name, and their other IRIs, which may be properties."""
    classes, terms = set[Term](), set[Term]()
    for triple in schema:
        subject, predicate, object = triple
        if predicate in _CLASS_PAIRS or (predicate == TYPE and object in _CLASS_KINDS):
            classes.add(subject)
        if predicate in _CLASS_PAIRS or predicate in _CLASS_OBJECTS:
            classes.add(object)
        terms.update(triple)
    return Names(frozenset(filter(is_iri, classes)), frozenset(filter(is_iri, terms - classes)))


def names_of(systems: Iterable[System]) -> Names:
    """Returns the classes and properties that ontologies name, and those that their rules read and derive."""
    systems = list(systems)
    classes = {name for system in systems for name in system.declared_names[0]}
    properties = {name for system in systems for name in system.declared_names[1]}
    for pattern in (*_patterns(systems), *_templates(systems)):
        if pattern.predicate == TYPE and isinstance(pattern.object, str):
            classes.add(pattern.object)
        elif isinstance(pattern.predicate, str):
            properties.add(pattern.predicate)
    return Names(frozenset(classes), frozenset(properties))


def misspelt_names(system: System, names: Names, owner: str) -> Iterator[TranslatorWarning]:
    """Yields a warning for each class and property of a program that a schema or an ontology does not have, but almost.

    Names that the program itself derives are not misspelt.

    Args:
        system: The program.
        names: The names that there are.
        owner: ``schema`` or ``ontology``.
    """
    derived = {slot for template in _templates([system]) for slot in template.slots}
    for pattern in dict.fromkeys(_patterns([system])):
        is_type = pattern.predicate == TYPE
        name = pattern.object if is_type else pattern.predicate
        if isinstance(name, Variable) or not is_iri(name) or name in derived.union(*names):
            continue
        hint = near_terms(name, names.classes if is_type else names.properties)
        if hint is not None:
            message = f"the {owner} has no {'class' if is_type else 'property'} {name}"
            yield TranslatorWarning(message, pattern.origin, hint)


def _patterns(systems: Iterable[System]) -> Iterator[Pattern]:
    """Yields the patterns of triples that rules read."""
    parts = (part for system in systems for rule in rules(system) for part in walk(rule))
    return (part for part in parts if isinstance(part, Pattern))


def _templates(systems: Iterable[System]) -> Iterator[Pattern]:
    """Yields the templates of triples that rules derive."""
    for system in systems:
        for rule in rules(system):
            for consequence in rule.consequences:
                if isinstance(consequence, Construct | Insert):
                    yield from (fact for fact in consequence.template if isinstance(fact, Pattern))
