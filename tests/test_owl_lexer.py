"""The lexer of OWL 2: functional-style syntax, and RDF in any syntax, to the same axioms."""

from __future__ import annotations

import re

import pytest

import squall
from squall.errors import LexerError, SquallError
from squall.lexers.owl import lexer, tree
from squall.rdf import iri
from squall.testing import LexerSuite

PREFIXES = "Prefix(:=<http://example.org/>)"
TURTLE = """@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


class TestOwlLexer(LexerSuite):
    lexer = "owl"
    good = (
        f"{PREFIXES} Ontology(<urn:o> Import(<urn:p>) SubClassOf(:A ObjectMinCardinality(2 :p :B)))",
        f"{PREFIXES} # a comment\nOntology(Declaration(Class(:A)) HasKey(:A (:p) (:d)) DisjointUnion(:A :B :C))",
        f'{PREFIXES} Ontology(DataPropertyAssertion(:d :a "x \\"y\\""@en) ClassAssertion(ObjectHasSelf(:p) :a))',
        f'{PREFIXES} Ontology(DataPropertyRange(:d DatatypeRestriction(xsd:int xsd:minInclusive "1"^^xsd:int)))',
        f"{TURTLE} :A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :B ] .",
    )
    bad = (
        (f"{PREFIXES}\nOntology(\nSubClassOf(:A))", 3),
        (f"{PREFIXES}\nOntology(SubClassOf(:A :B :C))", 2),
        (f"{PREFIXES}\nOntology(SubClasOf(:A :B))", 2),
        (f"{PREFIXES}\nOntology(SubClassOf(:A\nex:B))", 3),
        (f"{PREFIXES}\nOntology(SubClassOf(:A :B)", 2),
        (f"{PREFIXES}\nOntology(ClassAssertion(:A", 2),
        (f"{PREFIXES}\nOntology(SubClassOf(:A DataOneOf()))", 2),
        (f"{PREFIXES}\nOntology(SubClassOf(:A ObjectMinCardinality(:p 1)))", 2),
        (f"{PREFIXES}\nOntology(DataPropertyAssertion(:d :a :b))", 2),
        (f"{PREFIXES}\nOntology(HasKey(:A (:p)))", 2),
        (f"{TURTLE}:A rdfs:subClassOf", 3),
    )


A, B = tree.Class(iri("http://example.org/A")), tree.Class(iri("http://example.org/B"))
DOCUMENTS = {
    "a.ofn": f"{PREFIXES} Ontology(SubClassOf(:A :B))",
    "functional.owl": f"{PREFIXES} Ontology(SubClassOf(:A :B))",
    "a.ttl": f"{TURTLE} :A rdfs:subClassOf :B .",
    "turtle.owl": f"{TURTLE} :A rdfs:subClassOf :B .",
    "a.nt": "<http://example.org/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://example.org/B> .",
    "xml.owl": '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"><rdf:Description rdf:about="http://example.org/A">'
    '<rdfs:subClassOf rdf:resource="http://example.org/B"/></rdf:Description></rdf:RDF>',
    "json.owl": '{"@id": "http://example.org/A", "http://www.w3.org/2000/01/rdf-schema#subClassOf": '
    '{"@id": "http://example.org/B"}}',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_syntax_is_known_by_the_name_or_the_text(name: str) -> None:
    assert lexer(DOCUMENTS[name], name).axioms == (tree.SubClassOf(A, B),)


def axioms(turtle: str) -> list[str]:
    """Returns the axioms of a graph without declarations, with local names only."""
    read = lexer(f"{TURTLE} {turtle}", "o.ttl")
    texts = [str(axiom) for axiom in read.axioms if not isinstance(axiom, tree.Declaration)]
    return [re.sub(r"<[^<>]*[/#](\w+)>", r":\1", text) for text in texts]


GRAPHS = [
    ("[ owl:inverseOf :p ] rdfs:domain :A .", "ObjectPropertyDomain(ObjectInverseOf(:p) :A)"),
    (":d a owl:DatatypeProperty ; rdfs:domain :A .", "DataPropertyDomain(:d :A)"),
    (":d rdfs:range xsd:int .", "DataPropertyRange(:d :int)"),
    (":A owl:intersectionOf (:B :C) .", "EquivalentClasses(:A ObjectIntersectionOf(:B :C))"),
    (":A rdfs:subClassOf [ owl:intersectionOf () ] .", "SubClassOf(:A :Thing)"),
    (":A owl:hasKey (:p) .", "HasKey(:A (:p) ())"),
    (":A owl:disjointUnionOf (:B :C) .", "DisjointUnion(:A :B :C)"),
    (":t a rdfs:Datatype ; owl:equivalentClass xsd:int .", "DatatypeDefinition(:t :int)"),
    (":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasSelf true ] .", "SubClassOf(:A ObjectHasSelf(:p))"),
    (":A rdfs:subClassOf [ owl:onProperty :p ; owl:qualifiedCardinality 2 ; owl:onClass :B ] .",
     "SubClassOf(:A ObjectExactCardinality(2 :p :B))"),
    (":A rdfs:subClassOf [ owl:onProperty :d ; owl:minQualifiedCardinality 2 ; owl:onDataRange xsd:int ] .",
     "SubClassOf(:A DataMinCardinality(2 :d :int))"),
    (":A rdfs:subClassOf [ owl:datatypeComplementOf xsd:int ] .", "SubClassOf(:A DataComplementOf(:int))"),
    ("[] owl:sourceIndividual :a ; owl:assertionProperty :d ; owl:targetValue 1 .",
     'NegativeDataPropertyAssertion(:d :a "1"^^:integer)'),
    ("[] a owl:AllDifferent ; owl:distinctMembers (:a :b :c) .", "DifferentIndividuals(:a :b :c)"),
    (":a a owl:Thing , :A ; :p :b .", "ClassAssertion(:A :a)\nObjectPropertyAssertion(:p :a :b)"),
    (':A rdfs:label "A" ; :note "b" . :note a owl:AnnotationProperty ; rdfs:range :C .', ""),
    ("[] a owl:Axiom ; owl:annotatedSource :a . <urn:o> a owl:Ontology ; owl:versionInfo 1 .", ""),
]  # fmt: skip


@pytest.mark.parametrize(("turtle", "expected"), GRAPHS)
def test_graphs_are_read_as_axioms(turtle: str, expected: str) -> None:
    assert "\n".join(axioms(turtle)) == expected


XML = '<?xml version="1.0"?>\n'
UNREAD = [
    (XML + '<Ontology xmlns="http://www.w3.org/2002/07/owl#"/>', "o.owl:1:1: syntax error: OWL/XML is not read"),
    ("# zoo\nPrefix: : <http://example.org/>", "o.owl:1:1: syntax error: the Manchester syntax is not read"),
    (
        f"{DOCUMENTS['xml.owl'].partition('</rdf:Desc')[0]}\n",
        "o.owl:2:1: syntax error: malformed XML: no element found",
    ),
    (DOCUMENTS["xml.owl"].replace("</rdf:RDF>", "</rdf:Rdf>"), "malformed XML: mismatched tag"),
]


@pytest.mark.parametrize(("text", "message"), UNREAD)
def test_texts_in_other_syntaxes_and_parts_of_documents_are_refused(text: str, message: str) -> None:
    with pytest.raises(LexerError) as caught:
        lexer(text, "o.owl")
    assert message in str(caught.value)


NO_AXIOMS = [
    (":A owl:onClass :B .", "the triple of owl:onClass is part of no axiom: <http://example.org/A> in `o.ttl`"),
    (':A rdfs:subClassOf "a" .', "this literal is no class"),
    (':p rdfs:subPropertyOf "a" .', "this literal is no property"),
    (":A rdfs:subClassOf [] .", "this node is no class expression"),
    (":A rdfs:subClassOf [ owl:oneOf (:a) ; owl:complementOf :A ] .", "this node is several class expressions"),
    (":A rdfs:subClassOf _:x . _:x owl:complementOf _:x .", "this class expression is a part of itself"),
    (":A rdfs:subClassOf [ owl:someValuesFrom :B ] .", "this node has no value of owl:onProperty"),
    (":A rdfs:subClassOf [ owl:onProperty :p , :q ; owl:someValuesFrom :B ] .", "several values of owl:onProperty"),
    (":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality :B ] .", "needs a number"),
    (":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 1 ] .", "needs one owl:onClass"),
    (":A owl:unionOf _:l . _:l <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:l .", "this list has no end"),
    (":A owl:unionOf (:B) . :a a owl:TransitivProperty .", "owl:TransitivProperty is no class of individuals"),
    ("[] a owl:NegativePropertyAssertion .", "has no owl:sourceIndividual"),
    ("[] owl:sourceIndividual :a ; owl:assertionProperty :p .", "one individual, one property and one value"),
    ("[] a owl:AllDifferent .", "has one list of owl:members"),
]


@pytest.mark.parametrize(("turtle", "message"), NO_AXIOMS)
def test_graphs_that_are_no_ontology_are_refused(turtle: str, message: str) -> None:
    with pytest.raises(LexerError) as caught:
        axioms(turtle)
    assert message in str(caught.value)


def test_what_can_be_read_of_an_ontology_with_errors_is_checked_as_well() -> None:
    text = f"{PREFIXES} Ontology(SubClasOf(:A :B) SubClassOf(:A ObjectOneOf(:a)))"
    with pytest.raises(SquallError) as caught:
        squall.compile(text, lexer="owl")
    assert "`SubClasOf` is no axiom" in str(caught.value)
    assert "did you mean `SubClassOf`" in str(caught.value)
    assert "`ObjectOneOf(:a)` cannot be a superclass" in str(caught.value)
