"""The rule sets of squall: programs read them, and each of their rules has its conclusions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import squall
from squall import rulesets
from squall.errors import UsageError
from squall.model import AtomPattern, Construct, Pattern, System, rules
from squall.plan import Plan
from squall.testing import static, stream
from squall.testing.streams import show_fact

SETS = ("datatypes", "inverse", "owl2rl", "rdfs", "rdfs-axioms", "rhodf", "sameas")


@cache
def planned(*sets: str) -> Plan:
    return squall.plan(squall.compile(rules=sets))


def closure(plan: Plan, text: str) -> set[str]:
    """Returns the conclusions of rules from static data, as lines, and the data."""
    inputs = static(text)
    result = [out.fact for out in squall.run(plan, [], static=inputs)]
    return {show_fact(fact) for fact in [*result, *(fact for event in inputs for fact in event.facts)]}


def without(system: System, names: set[str]) -> System:
    """Returns the system without some rules. A name may stand for several rules: ``name``, ``name-last``,
    ``name-step``."""
    inner = (
        without(subsystem, names)
        for subsystem in system.subsystems
        if not {subsystem.name, subsystem.name.rpartition("-")[0]} & names
    )
    return replace(system, subsystems=tuple(inner))


def test_rule_sets_are_found_by_name() -> None:
    assert rulesets.names() == SETS
    assert rulesets.path("rdfs").read_text().startswith("# RDFS")


def test_an_unknown_rule_set_is_refused_with_what_is_near() -> None:
    with pytest.raises(UsageError, match="did you mean `rdfs`"):
        rulesets.path("rdf")
    with pytest.raises(UsageError, match="there is datatypes, inverse, owl2rl"):
        squall.compile(rules=["nothing like it"])


ANIMALS = "1 :Cat rdfs:subClassOf :Animal\n2 :tom rdf:type :Cat"
PROGRAM = "@prefix : <http://example.org/>.\n[r: (?x rdf:type :Animal) -> (?x :is :animal)]"


def test_of_a_rule_set_in_front_of_a_program_the_answer_is_the_program_s() -> None:
    events = stream(ANIMALS)
    plan = squall.plan(squall.compile(PROGRAM, lexer="jena", rules=["rhodf"]))
    assert [(out.time, show_fact(out.fact)) for out in squall.run(plan, events)] == [(2, ":tom :is :animal")]


def test_what_the_program_derives_as_well_is_in_the_answer() -> None:
    text = "@prefix : <http://example.org/>.\n[r: (?x rdf:type :Cat) -> (?x rdf:type :Animal)]"
    plan = squall.plan(squall.compile(text, lexer="jena", rules=["rhodf"]))
    events = stream(ANIMALS)
    assert [show_fact(out.fact) for out in squall.run(plan, events)] == [":tom rdf:type :Animal"]


def test_without_a_program_the_set_itself_is_run() -> None:
    plan = squall.plan(squall.compile(rules=["rhodf"]))
    events = stream(ANIMALS)
    assert [show_fact(out.fact) for out in squall.run(plan, events)] == [":tom rdf:type :Animal"]
    with pytest.raises(UsageError, match="no program is given"):
        squall.compile()


def test_what_helps_is_a_relation_that_no_variable_reads_and_no_answer_has() -> None:
    for name in SETS:
        for rule in rules(squall.compile(rules=[name])):
            for part in rule.joinables:
                assert not isinstance(part, Pattern) or not str(part.predicate).startswith(rulesets.HELPER)
            for consequence in rule.consequences:
                assert isinstance(consequence, Construct)
                assert consequence.internal is isinstance(consequence.template[0], AtomPattern)


# Examples of each rule: its name, the data, and what follows. It does not follow without the rule, nor without those of
# which the rule itself follows.

FOLLOWS = {
    "eq-sym": {"eq-other"},  # to which eq-rep-s and eq-rep-o lead
    "eq-trans": {"eq-other"},
    "prp-eqp1": {"scm-eqp1"},
    "prp-eqp2": {"scm-eqp1"},
    "cls-int2": {"scm-int"},
    "cls-uni": {"scm-uni"},
    "cax-eqc1": {"scm-eqc1"},
    "cax-eqc2": {"scm-eqc1"},
}

RDFS = (
    ("rdfD2", ":a :p :b", ":p rdf:type rdf:Property"),
    ("rdfs1", ":a :p :b", "xsd:string rdf:type rdfs:Datatype"),
    ("rdfD1", ':a :p "b"\nrdf:type rdfs:range :C', "xsd:string rdf:type :C"),
    ("rdfD1", ':a :p "b"@en\nrdf:type rdfs:range :C', "rdf:langString rdf:type :C"),
    ("rdfs2", ":p rdfs:domain :C\n:a :p :b", ":a rdf:type :C"),
    ("rdfs3", ":p rdfs:range :C\n:a :p :b", ":b rdf:type :C"),
    ("rdfs4a", ":a :p :b", ":a rdf:type rdfs:Resource"),
    ("rdfs4b", ":a :p :b", ":b rdf:type rdfs:Resource"),
    ("rdfs5", ":p rdfs:subPropertyOf :q\n:q rdfs:subPropertyOf :r", ":p rdfs:subPropertyOf :r"),
    ("rdfs6", ":p rdf:type rdf:Property", ":p rdfs:subPropertyOf :p"),
    ("rdfs7", ":p rdfs:subPropertyOf :q\n:a :p :b", ":a :q :b"),
    ("rdfs7", ":p rdfs:subPropertyOf [ rdfs:range :C ]\n:a :p :b", ":b rdf:type :C"),
    ("rdfs8", ":C rdf:type rdfs:Class", ":C rdfs:subClassOf rdfs:Resource"),
    ("rdfs9", ":C rdfs:subClassOf :D\n:a rdf:type :C", ":a rdf:type :D"),
    ("rdfs10", ":C rdf:type rdfs:Class", ":C rdfs:subClassOf :C"),
    ("rdfs11", ":C rdfs:subClassOf :D\n:D rdfs:subClassOf :E", ":C rdfs:subClassOf :E"),
    ("rdfs12", ":p rdf:type rdfs:ContainerMembershipProperty", ":p rdfs:subPropertyOf rdfs:member"),
    ("rdfs13", ":d rdf:type rdfs:Datatype", ":d rdfs:subClassOf rdfs:Literal"),
)
DATATYPES = (
    ("ill-typed", ':a :p "x"^^xsd:int', '<urn:x-squall:ill-typed> <urn:x-squall:violatedBy> "x"^^xsd:int'),
    ("not-of-type", ':a :p "300"^^xsd:int\n:p rdfs:range xsd:byte',
     '<urn:x-squall:not-of-type> <urn:x-squall:violatedBy> "300"^^xsd:int'),
    ("rdfD1", ":a :p 5\nxsd:integer rdfs:subClassOf xsd:byte\n:a :p 300",
     "<urn:x-squall:not-of-type> <urn:x-squall:violatedBy> 300"),
    ("disjoint", ":a rdf:type xsd:int, xsd:date, xsd:float", "<urn:x-squall:disjoint> <urn:x-squall:violatedBy> :a"),
    ("disjoint", "xsd:int rdfs:subClassOf xsd:token", "<urn:x-squall:disjoint> <urn:x-squall:violatedBy> xsd:int"),
)  # fmt: skip
INVERSE = (
    ("prp-symp", ":p a owl:SymmetricProperty\n:a :p :b", ":b :p :a"),
    ("prp-inv1", ":p owl:inverseOf :q\n:a :p :b", ":b :q :a"),
    ("prp-inv1", ":p owl:inverseOf :q\n:q rdfs:domain :C\n:a :p :b", ":b a :C"),
    ("prp-inv2", ":p owl:inverseOf :q\n:a :q :b", ":b :p :a"),
)


def violated(rule: str, by: str) -> str:
    return f"<urn:x-squall:{rule}> <urn:x-squall:violatedBy> {by}"


OWL2RL = (
    ("eq-ref-s", ":a :p 5", ":a owl:sameAs :a"),
    ("eq-ref-p", ":a :p 5", ":p owl:sameAs :p"),
    ("eq-ref-o", ":a :p :b", ":b owl:sameAs :b"),
    ("eq-sym", ":a owl:sameAs :b", ":b owl:sameAs :a"),
    ("eq-trans", ":a owl:sameAs :b\n:b owl:sameAs :c", ":a owl:sameAs :c"),
    ("eq-rep-s", ":a owl:sameAs :b\n:a :p :c", ":b :p :c"),
    ("eq-rep-p", ":p owl:sameAs :q\n:a :p :b", ":a :q :b"),
    ("eq-rep-o", ":b owl:sameAs :c\n:a :p :b", ":a :p :c"),
    ("eq-diff1", ":a owl:sameAs :b ; owl:differentFrom :b", violated("eq-diff1", ":a")),
    ("eq-diff2", "[] a owl:AllDifferent ; owl:members (:a :b :c)\n:a owl:sameAs :c", violated("eq-diff2", ":a")),
    ("eq-diff3", "[] a owl:AllDifferent ; owl:distinctMembers (:a :b :c)\n:c owl:sameAs :b",
     violated("eq-diff3", ":c")),
    ("prp-ap", ":a :p :b", "owl:versionInfo rdf:type owl:AnnotationProperty"),
    ("prp-dom", ":p rdfs:domain :C\n:a :p 5", ":a rdf:type :C"),
    ("prp-rng", ":p rdfs:range :C\n:a :p :b", ":b rdf:type :C"),
    ("prp-fp", ":p a owl:FunctionalProperty\n:a :p :b, :c", ":b owl:sameAs :c"),
    ("prp-ifp", ":p a owl:InverseFunctionalProperty\n:a :p 5\n:b :p 5", ":a owl:sameAs :b"),
    ("prp-irp", ":p a owl:IrreflexiveProperty\n:a :p :a", violated("prp-irp", ":a")),
    ("prp-symp", ":p a owl:SymmetricProperty\n:a :p :b", ":b :p :a"),
    ("prp-asyp", ":p a owl:AsymmetricProperty\n:a :p :b\n:b :p :a", violated("prp-asyp", ":b")),
    ("prp-trp", ":p a owl:TransitiveProperty\n:a :p :b\n:b :p :c", ":a :p :c"),
    ("prp-spo1", ":p rdfs:subPropertyOf :q\n:a :p :b", ":a :q :b"),
    ("prp-spo2", ":p owl:propertyChainAxiom (:q)\n:a :q :b", ":a :p :b"),
    ("prp-spo2", ":p owl:propertyChainAxiom (:q :r)\n:a :q :b\n:b :r :c", ":a :p :c"),
    ("prp-spo2", ":p owl:propertyChainAxiom (:q :r :q)\n:a :q :b\n:b :r :c\n:c :q 5", ":a :p 5"),
    ("prp-eqp1", ":p owl:equivalentProperty :q\n:a :p :b", ":a :q :b"),
    ("prp-eqp2", ":p owl:equivalentProperty :q\n:a :q :b", ":a :p :b"),
    ("prp-pdw", ":p owl:propertyDisjointWith :q\n:a :p :b ; :q :b", violated("prp-pdw", ":a")),
    ("prp-adp", "[] a owl:AllDisjointProperties ; owl:members (:p :q :r)\n:a :p 5 ; :r 5", violated("prp-adp", ":a")),
    ("prp-inv1", ":p owl:inverseOf :q\n:a :p :b", ":b :q :a"),
    ("prp-inv2", ":p owl:inverseOf :q\n:a :q :b", ":b :p :a"),
    ("prp-key", ":C owl:hasKey (:p)\n:a a :C ; :p 5\n:b a :C ; :p 5", ":a owl:sameAs :b"),
    ("prp-key", ":C owl:hasKey (:p :q :r)\n:a a :C ; :p 5 ; :q :x ; :r 1, 2\n:b a :C ; :p 5 ; :q :x ; :r 2, 3",
     ":a owl:sameAs :b"),
    ("prp-npa1", "[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetIndividual :b\n:a :p :b",
     violated("prp-npa1", ":a")),
    ("prp-npa2", "[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetValue 5\n:a :p 5",
     violated("prp-npa2", ":a")),
    ("cls-thing", ":a :p :b", "owl:Thing rdf:type owl:Class"),
    ("cls-nothing1", ":a :p :b", "owl:Nothing rdf:type owl:Class"),
    ("cls-nothing2", ":a a owl:Nothing", violated("cls-nothing2", ":a")),
    ("cls-int1", ":C owl:intersectionOf (:D :E :F)\n:a a :D, :E, :F", ":a rdf:type :C"),
    ("cls-int1", ":C owl:intersectionOf (:D)\n:a a :D", ":a rdf:type :C"),
    ("cls-int2", ":C owl:intersectionOf (:D :E)\n:a a :C", ":a rdf:type :E"),
    ("cls-uni", ":C owl:unionOf (:D :E)\n:a a :E", ":a rdf:type :C"),
    ("cls-com", ":C owl:complementOf :D\n:a a :C, :D", violated("cls-com", ":a")),
    ("cls-svf1", ":R owl:someValuesFrom :C ; owl:onProperty :p\n:a :p :b\n:b a :C", ":a rdf:type :R"),
    ("cls-svf2", ":R owl:someValuesFrom owl:Thing ; owl:onProperty :p\n:a :p :b", ":a rdf:type :R"),
    ("cls-avf", ":R owl:allValuesFrom :C ; owl:onProperty :p\n:a a :R ; :p :b", ":b rdf:type :C"),
    ("cls-hv1", ":R owl:hasValue 5 ; owl:onProperty :p\n:a a :R", ":a :p 5"),
    ("cls-hv2", ":R owl:hasValue :b ; owl:onProperty :p\n:a :p :b", ":a rdf:type :R"),
    ("cls-maxc1", ":R owl:maxCardinality 0 ; owl:onProperty :p\n:a a :R ; :p :b", violated("cls-maxc1", ":a")),
    ("cls-maxc2", ":R owl:maxCardinality 1 ; owl:onProperty :p\n:a a :R ; :p :b, :c", ":b owl:sameAs :c"),
    ("cls-maxqc1", ":R owl:maxQualifiedCardinality 0 ; owl:onProperty :p ; owl:onClass :C\n:a a :R ; :p :b\n:b a :C",
     violated("cls-maxqc1", ":a")),
    ("cls-maxqc2", ":R owl:maxQualifiedCardinality 0 ; owl:onProperty :p ; owl:onClass owl:Thing\n:a a :R ; :p :b",
     violated("cls-maxqc2", ":a")),
    ("cls-maxqc3", ":R owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass :C\n:a a :R ; :p :b, :c\n"
     ":b a :C\n:c a :C", ":b owl:sameAs :c"),
    ("cls-maxqc4", ":R owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass owl:Thing\n:a a :R ; :p :b, :c",
     ":b owl:sameAs :c"),
    ("cls-oo", ":C owl:oneOf (:a :b)", ":b rdf:type :C"),
    ("cax-sco", ":C rdfs:subClassOf :D\n:a a :C", ":a rdf:type :D"),
    ("cax-eqc1", ":C owl:equivalentClass :D\n:a a :C", ":a rdf:type :D"),
    ("cax-eqc2", ":C owl:equivalentClass :D\n:a a :D", ":a rdf:type :C"),
    ("cax-dw", ":C owl:disjointWith :D\n:a a :C, :D", violated("cax-dw", ":a")),
    ("cax-adc", "[] a owl:AllDisjointClasses ; owl:members (:C :D :E)\n:a a :D, :E", violated("cax-adc", ":a")),
    ("dt-type1", ":a :p :b", "xsd:byte rdf:type rdfs:Datatype"),
    ("dt-type2", ":R owl:someValuesFrom xsd:byte ; owl:onProperty :p\n:a :p 5", ":a rdf:type :R"),
    ("dt-type2", "xsd:byte rdfs:subClassOf :C\n:R owl:someValuesFrom :C ; owl:onProperty :p\n:a :p 5",
     ":a rdf:type :R"),
    ("dt-eq", ':R owl:hasValue 5 ; owl:onProperty :p\n:a :p "05"^^xsd:byte', ":a rdf:type :R"),
    ("dt-diff", ":p a owl:FunctionalProperty\n:a :p 5, 6", violated("eq-diff1", "5")),
    ("dt-not-type", ":p rdfs:range xsd:int\n:a :p true", violated("dt-not-type", "true")),
    ("dt-ill-typed", ':a :p "x"^^xsd:int', violated("dt-not-type", '"x"^^xsd:int')),
    ("scm-cls", ":C a owl:Class", ":C rdfs:subClassOf :C"),
    ("scm-cls", ":C a owl:Class", ":C owl:equivalentClass :C"),
    ("scm-cls", ":C a owl:Class", ":C rdfs:subClassOf owl:Thing"),
    ("scm-cls", ":C a owl:Class", "owl:Nothing rdfs:subClassOf :C"),
    ("scm-sco", ":C rdfs:subClassOf :D\n:D rdfs:subClassOf :E", ":C rdfs:subClassOf :E"),
    ("scm-eqc1", ":C owl:equivalentClass :D", ":D rdfs:subClassOf :C"),
    ("scm-eqc2", ":C rdfs:subClassOf :D\n:D rdfs:subClassOf :C", ":D owl:equivalentClass :C"),
    ("scm-op", ":p a owl:ObjectProperty", ":p rdfs:subPropertyOf :p"),
    ("scm-op", ":p a owl:ObjectProperty", ":p owl:equivalentProperty :p"),
    ("scm-dp", ":p a owl:DatatypeProperty", ":p rdfs:subPropertyOf :p"),
    ("scm-dp", ":p a owl:DatatypeProperty", ":p owl:equivalentProperty :p"),
    ("scm-spo", ":p rdfs:subPropertyOf :q\n:q rdfs:subPropertyOf :r", ":p rdfs:subPropertyOf :r"),
    ("scm-eqp1", ":p owl:equivalentProperty :q", ":q rdfs:subPropertyOf :p"),
    ("scm-eqp2", ":p rdfs:subPropertyOf :q\n:q rdfs:subPropertyOf :p", ":p owl:equivalentProperty :q"),
    ("scm-dom1", ":p rdfs:domain :C\n:C rdfs:subClassOf :D", ":p rdfs:domain :D"),
    ("scm-dom2", ":p rdfs:domain :C\n:q rdfs:subPropertyOf :p", ":q rdfs:domain :C"),
    ("scm-rng1", ":p rdfs:range :C\n:C rdfs:subClassOf :D", ":p rdfs:range :D"),
    ("scm-rng2", ":p rdfs:range :C\n:q rdfs:subPropertyOf :p", ":q rdfs:range :C"),
    ("scm-hv", ":R owl:hasValue 5 ; owl:onProperty :p\n:S owl:hasValue 5 ; owl:onProperty :q\n:p rdfs:subPropertyOf :q",
     ":R rdfs:subClassOf :S"),
    ("scm-svf1", ":R owl:someValuesFrom :C ; owl:onProperty :p\n:S owl:someValuesFrom :D ; owl:onProperty :p\n"
     ":C rdfs:subClassOf :D", ":R rdfs:subClassOf :S"),
    ("scm-svf2", ":R owl:someValuesFrom :C ; owl:onProperty :p\n:S owl:someValuesFrom :C ; owl:onProperty :q\n"
     ":p rdfs:subPropertyOf :q", ":R rdfs:subClassOf :S"),
    ("scm-avf1", ":R owl:allValuesFrom :C ; owl:onProperty :p\n:S owl:allValuesFrom :D ; owl:onProperty :p\n"
     ":C rdfs:subClassOf :D", ":R rdfs:subClassOf :S"),
    ("scm-avf2", ":R owl:allValuesFrom :C ; owl:onProperty :p\n:S owl:allValuesFrom :C ; owl:onProperty :q\n"
     ":p rdfs:subPropertyOf :q", ":S rdfs:subClassOf :R"),
    ("scm-int", ":C owl:intersectionOf (:D :E)", ":C rdfs:subClassOf :E"),
    ("scm-uni", ":C owl:unionOf (:D :E)", ":E rdfs:subClassOf :C"),
)  # fmt: skip
EXAMPLES = [
    *((["rdfs"], *example) for example in RDFS),
    *((["rdfs", "datatypes"], *example) for example in DATATYPES),
    *((["rhodf", "inverse"], *example) for example in INVERSE),
    *((["owl2rl"], *example) for example in OWL2RL),
]
NAMED = {name for _, name, _, _ in EXAMPLES}


@pytest.mark.parametrize(("sets", "name", "data", "due"), EXAMPLES)
@pytest.mark.more
def test_each_rule_concludes_what_no_other_does(sets: list[str], name: str, data: str, due: str) -> None:
    (expected,) = (show_fact(fact) for event in static(due) for fact in event.facts)
    assert expected in closure(planned(*sets), data)
    other_items = without(squall.compile(rules=sets), {name, *FOLLOWS.get(name, ())})
    assert expected not in closure(squall.plan(other_items, "greedy"), data)


def test_inverse_properties_derive_rdf_triples_only() -> None:
    """A literal is no subject, and a blank node no predicate, of what programs read."""
    data = static(
        ":p a owl:SymmetricProperty ; owl:inverseOf [ rdfs:domain :C ], :q\n"
        '[ rdfs:domain :C ] owl:inverseOf :q\n:a :p 5, :b ; :q "six"'
    )
    reader = "[literal: (?x ?p ?y) isLiteral(?x) -> (:a :b ?p)] [blank: (?x ?p ?y) isBNode(?p) -> (:a :b ?p)]"
    own = "[q: (?x :q ?y) -> (?x :r ?y)]"
    program = f"@prefix : <http://example.org/>.\n{reader} {own}"
    plan = squall.plan(squall.compile(program, lexer="jena", rules=["rhodf", "inverse"]))
    assert {(out.rule, show_fact(out.fact)) for out in squall.run(plan, [], static=data)} == {
        ("q", ":b :r :a"), ("q", ":a :r :b"), ("q", ":a :r \"six\""),
    }  # fmt: skip


def test_all_rules_have_an_example() -> None:
    for sets, first in (
        (["rdfs"], "rdf"),
        (["inverse"], "prp-"),
        (["owl2rl"], ("eq-", "prp-", "cls-", "cax-", "scm-")),
    ):
        result = {rule.name for rule in rules(squall.compile(rules=sets)) if rule.name.startswith(first)}
        parts = {name for name in result if name.rpartition("-")[0] in NAMED}
        assert result - parts - {"eq-other"} <= NAMED
