"""Ontologies as programs: the rules of each axiom of OWL 2 RL, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import squall
from squall import plugins, rulesets
from squall.checking import lint
from squall.errors import Errors, SquallError, TranslatorError, UsageError, single_errors
from squall.lexers.owl import lexer, triples
from squall.model import System, warnings
from squall.rdf import ALWAYS, Event, Triple
from squall.translators.owl import translator
from tests.owl_rdf import triples_of
from tests.test_owl_laws import DECLARATIONS, canonical, closure, generic

PREFIXES = "Prefix(:=<http://example.org/>)"
DECLARED = "\n".join(map(str, DECLARATIONS))


def facts(turtle: str) -> list[Triple]:
    return triples(f"@prefix : <http://example.org/> . {turtle}", "data.ttl")


def compiled(axioms: str, lenient: bool = False) -> System:
    read = lexer(f"{PREFIXES} Ontology({DECLARED} {axioms})", "o.ofn")
    return rulesets.prepared(translator(read, lenient=lenient), background=False)


def derived(system: System, data: str, planner: str = "rete") -> set[Triple]:
    plan = squall.plan(system, planner)
    given = facts(data)
    return {out.fact for out in squall.run(plan, [], static=[Event(ALWAYS, tuple(given))], of=Triple)} - set(given)


V = "<urn:x-squall:violatedBy>"
CASES = [
    ("SubClassOf(:A :B)", ":x a :A .", ":x a :B ."),
    ("SubClassOf(:A owl:Nothing)", ":x a :A .", f"<urn:x-squall:cls-nothing2> {V} :x ."),
    ("SubClassOf(ObjectIntersectionOf(:A :B) :C)", ":x a :A , :B . :y a :A .", ":x a :C ."),
    ("SubClassOf(ObjectUnionOf(:A :B) :C)", ":x a :A . :y a :B .", ":x a :C . :y a :C ."),
    ("SubClassOf(ObjectSomeValuesFrom(:p :A) :B)", ":x :p :y . :y a :A . :y :p :z .", ":x a :B ."),
    ("SubClassOf(ObjectSomeValuesFrom(:p owl:Thing) :B)", ":x :p :y .", ":x a :B ."),
    ("SubClassOf(ObjectSomeValuesFrom(ObjectInverseOf(:p) :A) :B)", ":y :p :x . :y a :A .", ":x a :B ."),
    ("SubClassOf(DataSomeValuesFrom(:d xsd:integer) :B)", ":x :d 1 . :y :d 't' .", ":x a :B ."),
    ("SubClassOf(ObjectHasValue(:p :z) :B)", ":x :p :z . :y :p :x .", ":x a :B ."),
    ('SubClassOf(DataHasValue(:d "1"^^xsd:integer) :B)', ":x :d 1.0 . :y :d 2 .", ":x a :B ."),
    ("SubClassOf(ObjectIntersectionOf(:A ObjectOneOf(:x :y)) :B)", ":x a :A . :z a :A .", ":x a :B ."),
    ("SubClassOf(:A ObjectIntersectionOf(:B :C))", ":x a :A .", ":x a :B , :C ."),
    ("SubClassOf(:A ObjectAllValuesFrom(:p :B))", ":x a :A ; :p :y . :z :p :x .", ":y a :B ."),
    ("SubClassOf(:A DataAllValuesFrom(:d xsd:integer))", ":x a :A ; :d 't' . :y a :A ; :d 1 .",
     f"<urn:x-squall:dt-not-type> {V} 't' ."),
    ("SubClassOf(:A ObjectHasValue(:p :z))", ":x a :A .", ":x :p :z ."),
    ("SubClassOf(:A ObjectComplementOf(:B))", ":x a :A , :B . :y a :A .", f"<urn:x-squall:cls-com> {V} :x ."),
    ("SubClassOf(:A ObjectMaxCardinality(0 :p))", ":x a :A ; :p :y .", f"<urn:x-squall:cls-maxc1> {V} :x ."),
    ("SubClassOf(:A ObjectMaxCardinality(0 :p :B))", ":x a :A ; :p :y . :y a :B . :z a :A ; :p :z .",
     f"<urn:x-squall:cls-maxqc1> {V} :x ."),
    ("SubClassOf(:A ObjectMaxCardinality(0 :p owl:Thing))", ":x a :A ; :p :y .", f"<urn:x-squall:cls-maxqc2> {V} :x ."),
    ("SubClassOf(:A DataMaxCardinality(1 :d))", ":x a :A ; :d 1 , 1.0 . :y a :A ; :d 1 , 2 .",
     f"<urn:x-squall:eq-diff1> {V} 1 , 2 ."),
    ("EquivalentClasses(:A ObjectIntersectionOf(:B ObjectHasValue(:p :z)))", ":x a :A . :y a :B ; :p :z .",
     ":x a :B ; :p :z . :y a :A ."),
    ("EquivalentClasses(:A :B :C)", ":x a :B .", ":x a :A , :C ."),
    ("DisjointClasses(:A :B)", ":x a :A , :B . :y a :A .", f"<urn:x-squall:cax-dw> {V} :x ."),
    ("DisjointClasses(:A :B :C)", ":x a :C , :B . :y a :A .", f"<urn:x-squall:cax-adc> {V} :x ."),
    ("SubObjectPropertyOf(:p :q)", ":x :p :y .", ":x :q :y ."),
    ("SubObjectPropertyOf(ObjectInverseOf(:p) :q)", ":x :p :y .", ":y :q :x ."),
    ("SubObjectPropertyOf(ObjectPropertyChain(:p :q ObjectInverseOf(:p)) :q)", ":x :p :y . :y :q :z . :x :p :z .",
     ":x :q :x ."),
    ("EquivalentObjectProperties(:p :q)", ":x :p :y . :y :q :z .", ":x :q :y . :y :p :z ."),
    ("DisjointObjectProperties(:p :q)", ":x :p :y ; :q :y . :y :p :x .", f"<urn:x-squall:prp-pdw> {V} :x ."),
    ("InverseObjectProperties(:p :q)", ":x :p :y . :y :q :z .", ":y :q :x . :z :p :y ."),
    ("ObjectPropertyDomain(:p :A)", ":x :p :y .", ":x a :A ."),
    ("ObjectPropertyRange(:p ObjectIntersectionOf(:A :B))", ":x :p :y .", ":y a :A , :B ."),
    ("DataPropertyRange(:d xsd:integer)", ":x :d 't' , 1 .", f"<urn:x-squall:dt-not-type> {V} 't' ."),
    ("DataPropertyRange(:d :count) DatatypeDefinition(:count xsd:integer)", ":x :d 't' , 1 .",
     f"<urn:x-squall:dt-not-type> {V} 't' ."),
    ("IrreflexiveObjectProperty(:p)", ":x :p :x , :y .", f"<urn:x-squall:prp-irp> {V} :x ."),
    ("SymmetricObjectProperty(:p)", ":x :p :y .", ":y :p :x ."),
    ("AsymmetricObjectProperty(:p)", ":x :p :y . :y :p :x . :z :p :x .", f"<urn:x-squall:prp-asyp> {V} :x , :y ."),
    ("TransitiveObjectProperty(:p)", ":x :p :y . :y :p :z .", ":x :p :z ."),
    ("FunctionalDataProperty(:d)", ":x :d 1 , 2 . :y :d 1 , 1.0 .", f"<urn:x-squall:eq-diff1> {V} 1 , 2 ."),
    ("NegativeObjectPropertyAssertion(:p :x :y)", ":x :p :y , :z .", f"<urn:x-squall:prp-npa1> {V} :x ."),
    ('NegativeDataPropertyAssertion(:d :x "1"^^xsd:integer)', ":x :d 1 .", f"<urn:x-squall:prp-npa2> {V} :x ."),
    ("SubClassOf(:A :B) ClassAssertion(:A :x) ObjectPropertyAssertion(:p :x :y)", "", ":x a :B ."),
]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("axioms", "data", "expected"), CASES)
def test_each_axiom_has_the_rules_of_owl_2_rl(axioms: str, data: str, expected: str) -> None:
    system = compiled(axioms)
    assert derived(system, data) == set(facts(expected))
    tree = lexer(f"{PREFIXES} Ontology({DECLARED} {axioms})", "o.ofn")
    if "DatatypeDefinition" in axioms or "EquivalentClasses(:A :B :C)" in axioms:
        return  # the writer of triples has no such axioms
    by_rule_set, violation = closure(generic("rete"), [*triples_of(tree.axioms), *facts(data)])
    assert canonical([*facts(expected), *facts(data)]) <= canonical(by_rule_set)
    assert violation == (V in expected)


def written(system: squall.System, language: str) -> str:
    """Returns a system as text of a language."""
    tree = plugins.load(plugins.TRANSLATORS, language).written(system)
    return str(plugins.load(plugins.LEXERS, language).written(tree))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("language", ["jena", "rifps", "rif"])
@pytest.mark.parametrize(("axioms", "data", "expected"), CASES)
def test_the_rules_of_axioms_can_be_written(axioms: str, data: str, expected: str, language: str) -> None:
    system = compiled(axioms)
    again = squall.compile(written(system, language), lexer=language)
    if language == "jena":
        again = rulesets.prepared(again, background=False)
    # What the ontology states itself is part of the answer of the rules.
    assert set(facts(expected)) <= derived(system, data) <= derived(again, data)
    assert derived(again, data) - derived(system, data) <= derived(again, "")


@pytest.mark.parametrize(
    ("axioms", "expected"),
    [
        ("ClassAssertion(:A :x)", ""),
        ("ClassAssertion(ObjectIntersectionOf(:A :B) :x)", ":x a :A , :B ."),
        ("ClassAssertion(ObjectHasValue(:p :y) :x)", ":x :p :y ."),
        ("SubClassOf(ObjectOneOf(:x) :C)", ":x a :C ."),
    ],
)
def test_the_answer_has_what_follows_from_the_ontology_and_not_what_it_states(axioms: str, expected: str) -> None:
    system = compiled(axioms)
    assert derived(system, "") == set(facts(expected))
    assert derived(squall.compile(written(system, "jena"), lexer="jena"), "") >= set(facts(expected))


@pytest.mark.parametrize("language", ["jena", "rifps", "rif"])
def test_triples_that_are_hidden_cannot_be_written(language: str) -> None:
    rules = "[-> hide(:p)] [r: (?x :q ?y) -> (?x :p ?y)]"
    system = squall.compile(f"@prefix : <http://example.org/> .\n{rules}", lexer="jena")
    with pytest.raises(UsageError, match=r"the rule `r` cannot be written .* it has triples that rules read"):
        written(system, language)


@pytest.mark.parametrize("language", ["jena", "rifps", "rif"])
def test_an_individual_with_two_names_differs_from_others_in_written_rules(language: str) -> None:
    """Also where rules of equality derive facts of helpers for the other name."""
    system = compiled("DifferentIndividuals(:x :y :z) FunctionalObjectProperty(:p)")
    again = squall.compile(written(system, language), lexer=language)
    for data, violators in ((":v :p :y , :w .", set()), (":v :p :y , :w . :w :p :x , :z .", {":x", ":z"})):
        expected = {fact for name in violators for fact in facts(f"<urn:x-squall:eq-diff2> {V} {name} .")}
        for each in (system, again):
            assert {fact for fact in derived(each, data) if fact.predicate == rulesets.VIOLATED_BY} == expected


def test_a_name_among_different_individuals_twice_is_a_violation() -> None:
    assert derived(compiled("DifferentIndividuals(:x :y :x)"), "") == set(facts(f"<urn:x-squall:eq-diff2> {V} :x ."))


@pytest.mark.parametrize(
    ("axioms", "language", "message"),
    [
        ("ClassAssertion(:A _:x)", "jena", "the rule `assertions` cannot be written in `jena`: it has `_:x` as a node"),
        ("ClassAssertion(:A _:x)", "rifps", "the rule `assertions` cannot be written in `rif`: it has `_:x` as a term"),
    ],
)
def test_what_a_language_cannot_say_is_refused(axioms: str, language: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        written(compiled(axioms), language)


@pytest.mark.parametrize(
    ("text", "lexer", "part"),
    [
        ("[r: (?x <urn:p> ?y) noValue(?x <urn:q> ?y) -> (?x <urn:r> ?y)]", "jena", "`NotExists`"),
        ("CONSTRUCT { ?x <urn:r> ?y } { ?x <urn:p> ?y }", "sparql", "parts of a query"),
        ("SELECT ?x { ?x <urn:p> ?y }", "sparql", "parts of a query"),
        ("[r: (?x <urn:p> ?y) -> drop(0)]", "jena", "`Delete`"),
        ('[r: (?x <urn:p> ?y) -> (?x <urn:r> "a"^^xsd:integer)]', "jena", "not in the lexical space"),
        ("[r: (?x <urn:p> ?y) isLiteral(?y) -> (?x <urn:r> _:b)]", "jena", "cannot be written"),
    ],
)
def test_what_rif_cannot_say_is_refused(text: str, lexer: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        written(squall.compile(text, lexer=lexer), "rifps")


SAME = [
    ("FunctionalObjectProperty(:p)", ":x :p :y , :z ."),
    ("InverseFunctionalObjectProperty(:p)", ":y :p :x . :z :p :x ."),
    ("SubClassOf(:A ObjectMaxCardinality(1 :p))", ":x a :A ; :p :y , :z ."),
    ("SubClassOf(:A ObjectMaxCardinality(1 :p :B))", ":x a :A ; :p :y , :z . :y a :B . :z a :B ."),
    ("HasKey(:A (:p) (:d))", ":y a :A ; :p :x ; :d 1 . :z a :A ; :p :x ; :d 1.0 ."),
    ("SameIndividual(:y :z)", ""),
]


@pytest.mark.parametrize(("axioms", "data"), SAME)
def test_individuals_that_are_the_same_share_what_is_known_of_them(axioms: str, data: str) -> None:
    system = compiled(axioms)
    assert set(facts(":z :q :w .")) <= derived(system, f"{data} :y :q :w .")
    different = compiled(f"{axioms} DifferentIndividuals(:y :z)")
    assert set(facts(f"<urn:x-squall:eq-diff1> {V} :y , :z .")) <= derived(different, data)
    all_different = compiled(f"{axioms} DifferentIndividuals(:x :y :z)")
    assert set(facts(f"<urn:x-squall:eq-diff2> {V} :y , :z .")) <= derived(all_different, data)


def test_individuals_that_differ_in_a_key_are_not_the_same() -> None:
    system = compiled("HasKey(:A (:p) (:d))")
    assert derived(system, ":y a :A ; :p :x ; :d 1 . :z a :A ; :p :x ; :d 2 . :w :p :x ; :d 1 .") == set()


OUTSIDE = [
    ("SubClassOf(:A ObjectUnionOf(:B :C))", "`ObjectUnionOf(:B :C)` cannot be a superclass"),
    ("SubClassOf(:A ObjectSomeValuesFrom(:p :B))", "`ObjectSomeValuesFrom(:p :B)` cannot be a superclass"),
    ("SubClassOf(:A ObjectMinCardinality(1 :p))", "`ObjectMinCardinality(1 :p)` cannot be a superclass"),
    ("SubClassOf(:A ObjectExactCardinality(1 :p :B))", "`ObjectExactCardinality(1 :p :B)` cannot be a superclass"),
    ("SubClassOf(:A ObjectMaxCardinality(2 :p))", "`ObjectMaxCardinality(2 :p)` cannot be a superclass"),
    ("SubClassOf(:A ObjectOneOf(:x))", "`ObjectOneOf(:x)` cannot be a superclass"),
    ("SubClassOf(:A ObjectHasSelf(:p))", "`ObjectHasSelf(:p)` cannot be a superclass"),
    ("SubClassOf(:A ObjectComplementOf(ObjectComplementOf(:B)))", "`ObjectComplementOf(:B)` cannot be a subclass"),
    ("SubClassOf(ObjectComplementOf(:A) :B)", "`ObjectComplementOf(:A)` cannot be a subclass"),
    ("SubClassOf(ObjectAllValuesFrom(:p :A) :B)", "`ObjectAllValuesFrom(:p :A)` cannot be a subclass"),
    ("SubClassOf(owl:Thing :B)", "`:Thing` cannot be a subclass"),
    ("EquivalentClasses(:A ObjectOneOf(:x))", "`ObjectOneOf(:x)` cannot be a superclass"),
    ("EquivalentClasses(:A ObjectSomeValuesFrom(:p :B))", "`ObjectSomeValuesFrom(:p :B)` cannot be a superclass"),
    ("DisjointUnion(:A :B :C)", "`DisjointUnion` is no rule"),
    ("DisjointClasses(:A ObjectComplementOf(:B))", "`ObjectComplementOf(:B)` cannot be a subclass"),
    ("ReflexiveObjectProperty(:p)", "`ReflexiveObjectProperty` relates all things"),
    ("SubObjectPropertyOf(:p owl:topObjectProperty)", "`:topObjectProperty` cannot be a property"),
    ('DataPropertyRange(:d DataOneOf("a"))', '`DataOneOf("a")` cannot be a superclass'),
    ("DataPropertyRange(:d DataComplementOf(xsd:string))", "`DataComplementOf(:string)` cannot be a superclass"),
    ('DataPropertyRange(:d DatatypeRestriction(xsd:int xsd:minInclusive "1"^^xsd:int))', "`DatatypeRestriction("),
    ("SubClassOf(DataSomeValuesFrom(:d DataUnionOf(xsd:int xsd:string)) :A)", "`DataUnionOf(:int :string)` cannot be"),
    ("DatatypeDefinition(:t :u) DatatypeDefinition(:u :t) DataPropertyRange(:d :t)", "it is defined by itself"),
]  # fmt: skip


@pytest.mark.parametrize(("axioms", "message"), OUTSIDE)
def test_what_is_outside_of_owl_2_rl_is_refused_at_its_place(axioms: str, message: str) -> None:
    with pytest.raises(SquallError) as caught:
        compiled(axioms)
    for error in single_errors(caught.value):
        assert isinstance(error, TranslatorError)
        assert "is not in OWL 2 RL: " in error.message
        assert error.origin is not None
        assert error.origin.text[error.origin.column - 1 :] or error.origin.line > 1
        assert "--lenient" in str(error.hint)
    assert message in str(caught.value)


def test_what_is_outside_of_owl_2_rl_may_be_left_out_with_a_warning() -> None:
    axioms = (
        "EquivalentClasses(:A ObjectIntersectionOf(:B ObjectSomeValuesFrom(:p :C))) SubClassOf(:B ObjectUnionOf(:A :C))"
    )
    system = compiled(axioms, lenient=True)
    assert [warning.message.rpartition(": ")[2] for warning in warnings(system)] == [
        "`ObjectSomeValuesFrom(:p :C)` cannot be a superclass; it is left out",
        "`ObjectUnionOf(:A :C)` cannot be a superclass; it is left out",
    ]
    assert derived(system, ":x a :A . :y a :B ; :p :z . :z a :C .") == set(facts(":x a :B . :y a :A ."))


@pytest.mark.parametrize("class_name", ["A", "Unrelated"], ids=["rules", "no rules"])
def test_what_is_left_out_is_warned_of_beside_a_query_with_a_window(class_name: str, tmp_path: Path) -> None:
    """Also if no rule of the ontology is a part of the plan."""
    (tmp_path / "o.ofn").write_text(
        f"{PREFIXES} Ontology({DECLARED} SubClassOf(:A ObjectUnionOf(:B :C)) SubClassOf(:B :A))"
    )
    (tmp_path / "q.csparql").write_text(
        f"SELECT ?x FROM STREAM <urn:s> [RANGE 2s STEP 1s] {{ ?x a <http://example.org/{class_name}> }}"
    )
    system = squall.compile(tmp_path / "o.ofn", tmp_path / "q.csparql", lenient=True)
    (warning,) = warnings(system)
    assert "cannot be a superclass; it is left out" in warning.message


def test_names_that_the_ontology_has_almost_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "o.ofn").write_text(
        f"{PREFIXES} Ontology(SubClassOf(:Boiler :Machine) ObjectPropertyDomain(:feeds :Pump))"
    )
    (tmp_path / "q.rq").write_text(
        "PREFIX : <http://example.org/> SELECT ?x { ?x a :Machin ; :feed ?y ; :colour ?z . ?y a :Boilers , :Pump }"
    )
    (tmp_path / "r.jena").write_text(
        "@prefix : <http://example.org/>.\n"
        "[r: (?x :feeds ?y) -> (?x rdf:type :Pumps)] [s: (?x rdf:type :Pumps) -> (?x :is :pump)]"
    )
    system = squall.compile(tmp_path / "o.ofn", tmp_path / "q.rq", tmp_path / "r.jena")
    assert [(warning.message, warning.hint) for warning in warnings(system)] == [
        ("the ontology has no class <http://example.org/Machin>", "did you mean `Machine`?"),
        ("the ontology has no property <http://example.org/feed>", "did you mean `feeds`?"),
        ("the ontology has no class <http://example.org/Boilers>", "did you mean `Boiler`?"),
    ]


@pytest.mark.parametrize("name", ["o.ofn", "o.owl"])
def test_names_that_are_only_declared_are_names(tmp_path: Path, name: str) -> None:
    texts = {
        "o.ofn": f"{PREFIXES} Ontology(Declaration(Class(:Zebra)) Declaration(ObjectProperty(:eats)) "
        "SubClassOf(:Zebras :Herd))",
        "o.owl": "@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
        ":Zebra a owl:Class . :eats a owl:ObjectProperty . "
        ":Zebras <http://www.w3.org/2000/01/rdf-schema#subClassOf> :Herd .",
    }
    (tmp_path / name).write_text(texts[name])
    (tmp_path / "q.rq").write_text("PREFIX : <http://example.org/> SELECT ?x { ?x a :Zebra , :Zebr ; :eat ?y }")
    system = squall.compile(tmp_path / name, tmp_path / "q.rq")
    assert [(warning.message, warning.hint) for warning in warnings(system)] == [
        ("the ontology has no class <http://example.org/Zebr>", "did you mean `Zebra` or `Zebras`?"),
        ("the ontology has no property <http://example.org/eat>", "did you mean `eats`?"),
    ]


def test_what_follows_from_class_axioms_alone_is_an_answer() -> None:
    system = compiled("SubClassOf(ObjectOneOf(:x :y) :B) SubClassOf(:B :C) ClassAssertion(:A :z)")
    assert derived(system, "") == set(facts(":x a :B , :C . :y a :B , :C ."))


def test_all_errors_are_given_at_once() -> None:
    with pytest.raises(Errors) as caught:
        compiled("SubClassOf(:A ObjectOneOf(:x)) ReflexiveObjectProperty(:p)")
    assert len(caught.value.errors) == 2


def test_imports_are_read_once_from_their_files(tmp_path: Path) -> None:
    (tmp_path / "part.ttl").write_text(
        "@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
        "<urn:part> a owl:Ontology ; owl:imports <main.ofn> . "
        ":A <http://www.w3.org/2000/01/rdf-schema#subClassOf> :B ."
    )
    main = tmp_path / "main.ofn"
    main.write_text(f"{PREFIXES} Ontology(<urn:main> Import(<urn:part>) SubClassOf(:B :C))")
    system = squall.compile(main, documents={"urn:part": str(tmp_path / "part.ttl")})
    assert derived(system, ":x a :A .") == set(facts(":x a :B , :C ."))
    with pytest.raises(TranslatorError, match="the ontology <urn:part> is not loaded from there") as caught:
        squall.compile(main)
    assert caught.value.origin is not None
    assert "--graph urn:part=FILE" in str(caught.value.hint)
    (tmp_path / "part.ttl").rename(tmp_path / "part.owl")
    main.unlink()
    with pytest.raises(TranslatorError, match=r"main.ofn> cannot be read: .* \(in `.*part.owl`\)"):
        squall.compile(tmp_path / "part.owl")


@pytest.mark.parametrize(
    ("name", "address"), [("part.txt", "part.txt?format=ttl"), ("part.ttl.gz", "part.ttl.gz"),
                          ("part.gz", "part.gz?format=ttl"), ("part.owl.gz", "part.owl.gz")],
)  # fmt: skip
def test_the_format_of_an_import_may_be_given_and_it_may_be_compressed(tmp_path: Path, name: str, address: str) -> None:
    text = (
        b"@prefix : <http://example.org/> . <urn:part> a <http://www.w3.org/2002/07/owl#Ontology> . "
        b":A <http://www.w3.org/2000/01/rdf-schema#subClassOf> :B ."
    )
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (rules := tmp_path / "r.rifps").write_text(
        "Document(Prefix(e <http://example.org/>) Import(<urn:part> <http://www.w3.org/ns/entailment/OWL-Direct>)"
        "Group(Forall ?x (?x[e:is -> e:B] :- ?x[<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> -> e:B])))"
    )
    (main := tmp_path / "main.ofn").write_text(f"{PREFIXES} Ontology(<urn:main> Import(<urn:part>))")
    for program, conclusion in ((rules, ":x :is :B ."), (main, ":x a :B .")):
        system = squall.compile(program, documents={"urn:part": str(tmp_path / address)})
        assert facts(conclusion)[0] in derived(system, ":x a :A .")


@pytest.mark.parametrize("address", ["part.gz", "none.ttl", "part.gz?format=xyz", "part.gz?form=ttl"])
def test_an_import_that_cannot_be_read(tmp_path: Path, address: str) -> None:
    (tmp_path / "part.gz").write_bytes(gzip.compress(b"@prefix")[:9])
    (main := tmp_path / "main.ofn").write_text(f"{PREFIXES} Ontology(<urn:main> Import(<urn:part>))")
    with pytest.raises(TranslatorError, match="the ontology <urn:part>") as caught:
        squall.compile(main, documents={"urn:part": str(tmp_path / address)})
    assert caught.value.origin is not None


INCONSISTENT = f"{PREFIXES} Ontology(\n{{}}DisjointClasses(:A :B)\nClassAssertion(:A :x)\nClassAssertion(:B :x))"


def test_an_ontology_that_contradicts_itself_is_a_finding(tmp_path: Path) -> None:
    (query := tmp_path / "query.rq").write_text("SELECT * { ?x a <http://example.org/A> }")
    (ontology := tmp_path / "zoo.ofn").write_text(INCONSISTENT.format(""))
    for programs in ([ontology], [ontology, query]):
        (finding,) = lint(*programs, rules=["rhodf"])
        assert (finding.code, finding.message) == (
            "inconsistent", "the ontology is inconsistent: <http://example.org/x> violates `cax-dw`",
        )  # fmt: skip
        assert finding.origin is not None
        assert finding.origin.line == 2
    ontology.write_text(INCONSISTENT.format("# ").replace("ClassAssertion(:B", "ClassAssertion(:C"))
    assert lint(ontology, query) == ()


def test_ontologies_that_contradict_each_other_are_a_finding(tmp_path: Path) -> None:
    texts = ["DisjointClasses(:A :B)", "SubClassOf(:C :A)", "ClassAssertion(:B :x) ClassAssertion(:C :x)"]
    files = [tmp_path / f"{number}.ofn" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(f"{PREFIXES} Ontology({text})")
    (finding,) = lint(*files)
    assert finding.message == "the ontology is inconsistent: <http://example.org/x> violates `cax-dw`"
    assert finding.origin is not None
    assert finding.origin.name == str(files[0])
    assert lint(*files[1:]) == ()


@pytest.mark.parametrize("as_schema", [False, True])
def test_classes_and_properties_that_are_the_same_are_a_finding(as_schema: bool, tmp_path: Path) -> None:
    (query := tmp_path / "query.rq").write_text("SELECT * { ?x a <http://example.org/A> }")
    (ontology := tmp_path / "zoo.owl").write_text(
        "@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        ":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :C rdfs:subClassOf :A . :D rdfs:subClassOf :A . "
        ":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p . :r rdfs:subPropertyOf :p . :p rdfs:domain :A ."
    )
    ways: dict[bool, tuple[list[Path], dict[str, Any]]] = {
        False: ([ontology, query], {}),
        True: ([query], {"rules": ["rhodf"], "specialise": True, "schema": [ontology]}),
    }
    programs, options = ways[as_schema]
    findings = lint(*programs, **options)
    classes = ", ".join(f"<http://example.org/{name}>" for name in "AB") + " and <http://example.org/C>"
    owner = "schema" if as_schema else "ontology"
    assert [(finding.code, finding.message) for finding in findings] == [
        ("schema-cycle", f"the {owner} makes {classes} the same"),
        ("schema-cycle", f"the {owner} makes <http://example.org/p> and <http://example.org/q> the same"),
    ]


def test_rules_of_ontologies_have_no_findings_of_their_own(tmp_path: Path) -> None:
    (query := tmp_path / "query.rq").write_text("SELECT * { ?x a <http://example.org/B> }")
    (ontology := tmp_path / "zoo.owl").write_text(
        "@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        ":A rdfs:subClassOf :B . :C rdfs:subClassOf :D ."
    )
    assert lint(ontology, query, streams=[""]) == ()
