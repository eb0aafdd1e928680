"""Small ontologies as triples, for laws of rule sets: strategies of hypothesis for schema triples and facts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from squall.rdf import OWL, RDF, RDFS, XSD, Term, Triple, blank, iri, literal

Graph = frozenset[Triple]


def _all(*names: str) -> st.SearchStrategy[Term]:
    return st.sampled_from([iri(f"http://example.org/{name}") for name in names])


CLASS, PROPERTY, THING = _all("C", "D", "E", "F"), _all("p", "q", "r"), _all("a", "b", "c")
VALUE = st.sampled_from([literal("5", XSD + "integer"), literal("x"), literal("y", None, "en")])
ONE = literal("1", XSD + "nonNegativeInteger")


def fact(subject: Any, predicate: Any, object: Any) -> st.SearchStrategy[list[Triple]]:
    """Returns one triple. A term stands for itself."""
    slots = (item if isinstance(item, st.SearchStrategy) else st.just(item) for item in (subject, predicate, object))
    return st.builds(lambda *terms: [Triple(*terms)], *slots)


def listed(subject: Any, predicate: str, members: Any) -> st.SearchStrategy[list[Triple]]:
    """Returns a triple about a list of one to three members; its cells are named by what they hold."""

    def made(subject: Term, members: Sequence[Term]) -> list[Triple]:
        names = [
            f"{predicate}.{'.'.join(item[20:-1] for item in (subject, *members))}.{at}" for at in range(len(members))
        ]
        cells = [*map(blank, names), iri(RDF + "nil")]
        firsts = [Triple(cell, iri(RDF + "first"), item) for cell, item in zip(cells, members, strict=False)]
        rests = [Triple(cell, iri(RDF + "rest"), after) for cell, after in pairwise(cells)]
        return [Triple(subject, iri(OWL + predicate), cells[0]), *firsts, *rests]

    return st.builds(made, subject, st.lists(members, min_size=1, max_size=3))


def restriction(kind: str, value: Any) -> st.SearchStrategy[list[Triple]]:
    """Returns a class that is defined by a property of its members."""
    on, of = iri(OWL + "onProperty"), iri(OWL + kind)
    values = value if isinstance(value, st.SearchStrategy) else st.just(value)
    return st.builds(lambda c, p, v: [Triple(c, on, p), Triple(c, of, v)], CLASS, PROPERTY, values)


def of_type(subject: Any, vocabulary: str, *names: str) -> st.SearchStrategy[list[Triple]]:
    return fact(subject, iri(RDF + "type"), st.sampled_from([iri(vocabulary + name) for name in names]))


FACTS = [fact(THING, PROPERTY, THING), fact(THING, PROPERTY, VALUE), fact(THING, iri(RDF + "type"), CLASS)]
IN_RDFS = [
    *FACTS,
    fact(CLASS, iri(RDFS + "subClassOf"), CLASS),
    fact(PROPERTY, iri(RDFS + "subPropertyOf"), PROPERTY),
    fact(PROPERTY, iri(RDFS + "domain"), CLASS),
    fact(PROPERTY, iri(RDFS + "range"), CLASS),
    fact(THING, iri(RDF + "_1"), THING),
    of_type(PROPERTY, RDFS, "ContainerMembershipProperty"),
    of_type(CLASS, RDFS, "Class", "Datatype"),
]
CHARACTERISTICS = (
    "FunctionalProperty", "InverseFunctionalProperty", "SymmetricProperty", "TransitiveProperty", "IrreflexiveProperty",
    "AsymmetricProperty", "ObjectProperty", "DatatypeProperty",
)  # fmt: skip
IN_OWL = [
    *IN_RDFS, *FACTS,
    fact(THING, iri(OWL + "sameAs"), THING),
    of_type(PROPERTY, OWL, *CHARACTERISTICS),
    of_type(CLASS, OWL, "Class"),
    fact(PROPERTY, iri(OWL + "inverseOf"), PROPERTY),
    fact(PROPERTY, iri(OWL + "equivalentProperty"), PROPERTY),
    fact(CLASS, iri(OWL + "equivalentClass"), CLASS),
    fact(CLASS, iri(OWL + "disjointWith"), CLASS),
    listed(CLASS, "intersectionOf", CLASS), listed(CLASS, "unionOf", CLASS), listed(CLASS, "oneOf", THING),
    listed(PROPERTY, "propertyChainAxiom", PROPERTY), listed(CLASS, "hasKey", PROPERTY),
    restriction("someValuesFrom", CLASS), restriction("someValuesFrom", iri(OWL + "Thing")),
    restriction("allValuesFrom", CLASS), restriction("hasValue", THING), restriction("maxCardinality", ONE),
]  # fmt: skip


SCHEMA_OF_USERS = [
    *FACTS,
    fact(CLASS, iri(RDFS + "subClassOf"), CLASS),
    fact(PROPERTY, iri(RDFS + "subPropertyOf"), PROPERTY),
    fact(PROPERTY, iri(RDFS + "domain"), CLASS),
    fact(PROPERTY, iri(RDFS + "range"), CLASS),
    of_type(PROPERTY, OWL, "SymmetricProperty"),
]


def graphs(parts: Sequence[st.SearchStrategy[list[Triple]]]) -> st.SearchStrategy[Graph]:
    some = st.lists(st.one_of(parts), min_size=1, max_size=10)
    return some.map(lambda result: frozenset(triple for part in result for triple in part))
