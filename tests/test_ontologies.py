"""Ontologies as data: OWL 2 RL is read without annotations; other constructs are refused with their place."""

from __future__ import annotations

import pytest

from squall.errors import SourceError
from squall.rdf import ALWAYS, Event, Fact
from squall.streams.sources.ontologies import assertions
from squall.testing import stream

HEADER = "[] a owl:Ontology ."


def part(text: str, name: str = "urn:o") -> tuple[str, list[Event], None]:
    lines = (f"0 {line}" for line in text.replace(" .", " .\n").splitlines() if line.strip())
    return name, [event._replace(time=ALWAYS) for event in stream("\n".join(lines))], None


def facts(*texts: str) -> list[Fact]:
    parts = [part(f"{HEADER} {text}", f"urn:o{number}") for number, text in enumerate(texts)]
    return [fact for event in assertions(parts) for fact in event.facts]


GOOD = [
    ":a a :C .",
    ":C rdfs:subClassOf :D .",
    "[ owl:unionOf (:C :D) ] rdfs:subClassOf [ owl:intersectionOf (:D [ owl:complementOf [ owl:oneOf (:a) ] ]) ] .",
    "[ owl:onProperty :p ; owl:someValuesFrom owl:Thing ] rdfs:subClassOf owl:Thing .",
    "[ owl:onProperty :p ; owl:someValuesFrom [ owl:oneOf (:a) ] ] rdfs:subClassOf :C .",
    ':C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality "1"^^xsd:nonNegativeInteger ] .',
    ':C rdfs:subClassOf [ owl:maxQualifiedCardinality "0"^^xsd:nonNegativeInteger ; owl:onClass owl:Thing ] .',
    ":a a [ owl:onProperty :p ; owl:allValuesFrom [ owl:onProperty :p ; owl:hasValue :b ] ] .",
    ":C owl:equivalentClass [ owl:intersectionOf (:D [ owl:onProperty :p ; owl:hasValue :b ]) ] .",
    ":C owl:intersectionOf (:D :E) .",
    ":C rdfs:subClassOf [ owl:unionOf (:D [ owl:oneOf (:a) ]) ] . :E owl:unionOf (:C :D) .",
    ":C owl:equivalentClass [ owl:unionOf (:D :E) ] .",
    "[] a owl:AllDisjointClasses ; owl:members (:C [ owl:oneOf (:a) ]) .",
    ":C owl:hasKey (:p) . :p owl:propertyChainAxiom (:q :r) ; a owl:TransitiveProperty .",
]


@pytest.mark.parametrize("text", GOOD)
def test_owl_2_rl_axioms_are_read(text: str) -> None:
    assert len(facts(text)) == sum(len(event.facts) for event in part(text)[1])


BAD = [
    ("owl:Thing rdfs:subClassOf :C .", "owl:Thing in rdfs:subClassOf of"),
    (":C rdfs:subClassOf [ owl:oneOf (:D :E) ] .", "owl:oneOf in rdfs:subClassOf of <http://example.org/C>"),
    (":p rdfs:range [ owl:oneOf (:a) ] .", "owl:oneOf in rdfs:range of <http://example.org/p>"),
    (":p rdfs:domain [ owl:unionOf (:C owl:Thing) ] .", "owl:Thing in rdfs:domain"),
    (
        ":C rdfs:subClassOf [ owl:unionOf (:D [ owl:onProperty :p ; owl:allValuesFrom :D ]) ] .",
        "owl:allValuesFrom in rdfs:subClassOf of <http://example.org/C>",
    ),
    (
        ":a a [ owl:onProperty :p ; owl:someValuesFrom :C ] .",
        "owl:someValuesFrom in rdf:type of <http://example.org/a>",
    ),
    ("[ owl:complementOf :C ] rdfs:subClassOf :D .", "owl:complementOf in rdfs:subClassOf of something without a name"),
    (
        "[ owl:intersectionOf (:C [ owl:onProperty :p ; owl:allValuesFrom :D ]) ] rdfs:subClassOf :D .",
        "owl:allValuesFrom",
    ),
    (":C rdfs:subClassOf [ owl:complementOf [ owl:complementOf :D ] ] .", "owl:complementOf in"),
    (
        ':C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality "2"^^xsd:nonNegativeInteger ] .',
        "owl:maxCardinality in",
    ),
    (
        ':C rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality "1"^^xsd:nonNegativeInteger ; '
        "owl:onClass [ owl:complementOf :D ] ] .",
        "owl:complementOf in",
    ),
    (":C owl:equivalentClass [ owl:oneOf (:a) ] .", "owl:oneOf in owl:equivalentClass"),
    (":C owl:oneOf (:a) .", "owl:oneOf in owl:oneOf of <http://example.org/C>"),
    (":C owl:disjointWith [ owl:complementOf :D ] .", "owl:complementOf in owl:disjointWith"),
    ("[] a owl:AllDisjointClasses ; owl:members (:C [ owl:complementOf :D ]) .", "owl:complementOf in owl:members"),
    ("[ owl:complementOf :D ] owl:hasKey (:p) .", "owl:complementOf in owl:hasKey"),
    (":C owl:disjointUnionOf (:D :E) .", "owl:disjointUnionOf of <http://example.org/C>"),
    (":p a owl:ReflexiveProperty .", "owl:ReflexiveProperty of <http://example.org/p>"),
    (":C rdfs:subClassOf [ owl:onProperty :p ; owl:minCardinality 1 ] .", "owl:minCardinality of something"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_axioms_outside_owl_2_rl_are_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        facts(text)
    assert f"is not in OWL 2 RL: {message}" in str(caught.value)


def test_annotations_and_headers_are_not_read() -> None:
    message = ':a rdfs:label "A" ; :note "b" . :note a owl:AnnotationProperty ; rdfs:range :C .'
    about = "[] a owl:Axiom ; owl:annotatedSource :a . :o a owl:Ontology ; owl:versionInfo 1 ."
    assert facts(f"{message} {about} :a :p :b .") == facts(":a :p :b .")
    assert facts(":a :note :b .", ":note a owl:AnnotationProperty .") == []


def test_an_ontology_says_that_it_is_one() -> None:
    with pytest.raises(SourceError, match="is not OWL DL: it does not declare an owl:Ontology"):
        assertions([part(":a a :C .")])


def test_imports_of_an_ontology_are_resolved() -> None:
    first = part("[] a owl:Ontology ; owl:imports <urn:second> .", "urn:first")
    with pytest.raises(SourceError, match="<urn:first> imports <urn:second>, which is not given"):
        assertions([first])
    assert [event.facts for event in assertions([first, part(HEADER, "urn:second")])] == [(), ()]
