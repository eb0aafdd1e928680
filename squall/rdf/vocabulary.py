"""Terms of RDF, RDFS and OWL that have a meaning for squall."""

from __future__ import annotations

from squall.rdf import OWL, RDF, RDFS, Term, Triple, iri

TYPE = iri(RDF + "type")
LIST_CELLS = (iri(RDF + "first"), iri(RDF + "rest"))
"""The predicates of the cells of lists."""
SCHEMA_NAMESPACES = (RDFS, OWL, RDF + "Property")
"""The beginnings of the IRIs by which schemas are described."""
OF_INDIVIDUALS = frozenset(
    iri(vocabulary + name)
    for vocabulary, names in (
        (RDFS, ("comment", "isDefinedBy", "label", "Literal", "member", "Resource", "seeAlso")),
        (OWL, ("differentFrom", "NamedIndividual", "sameAs", "Thing", "versionInfo")),
    )
    for name in names
)
"""The terms of the vocabularies of schemas with which data are described."""
_SCHEMA_PREFIXES = tuple(f"<{namespace}" for namespace in SCHEMA_NAMESPACES)


def is_of_schema(term: Term) -> bool:
    """Returns whether a predicate describes classes and properties, or a class has them as instances."""
    return term.startswith(_SCHEMA_PREFIXES) and term not in OF_INDIVIDUALS


def is_schema_triple(triple: Triple) -> bool:
    """Returns whether a triple describes classes and properties, or is part of the cell of a list."""
    _, predicate, object = triple
    return is_of_schema(object) if predicate == TYPE else predicate in LIST_CELLS or is_of_schema(predicate)
