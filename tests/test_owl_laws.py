"""An ontology as a program derives what the rule set `owl2rl` derives of the ontology as data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall import plugins, rulesets
from squall.functions import lookup
from squall.functions.datatypes import OWN
from squall.lexers.owl import lexer, tree
from squall.lexers.owl.mapping import ontology
from squall.model import System
from squall.plan import Plan
from squall.rdf import ALWAYS, OWL, XSD, Event, Term, Triple, iri, is_literal, literal
from squall.rdf.vocabulary import TYPE
from squall.rulesets import HELPER
from squall.translators.owl import translator
from tests.laws import PLANNERS, examples, hold
from tests.owl_rdf import triples_of

E = "http://example.org/"
SAME = iri(OWL + "sameAs")
CLASSES = [iri(E + name) for name in "ABC"]
OBJECT, DATA = [iri(E + name) for name in "pq"], [iri(E + name) for name in "d"]
INDIVIDUALS = [iri(E + name) for name in "xyz"]
VALUES = [literal(*pair) for pair in (("1", XSD + "integer"), ("1.0", XSD + "decimal"), ("2", XSD + "integer"), ("t",))]
DATATYPES = [iri(XSD + name) for name in ("integer", "string", "decimal")]
DECLARATIONS = [
    *(tree.Declaration("Class", name) for name in CLASSES),
    *(tree.Declaration("ObjectProperty", name) for name in OBJECT),
    *(tree.Declaration("DataProperty", name) for name in DATA),
]

classes = st.sampled_from(CLASSES).map(tree.Class)
individuals = st.sampled_from(INDIVIDUALS)
values = st.sampled_from(VALUES)
data_properties = st.sampled_from(DATA).map(lambda name: tree.Property(name, is_data=True))
named_properties = st.sampled_from(OBJECT).map(tree.Property)
object_properties = st.builds(tree.Property, st.sampled_from(OBJECT), inverse=st.sampled_from([False, False, True]))
ranges = st.sampled_from(DATATYPES).map(tree.Datatype)


def several(items: st.SearchStrategy[object], least: int = 2, most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, min_size=least, max_size=most, unique_by=str).map(tuple)


values_of = st.builds(tree.HasValue, object_properties, individuals) | st.builds(tree.HasValue, data_properties, values)
subclasses = st.recursive(
    classes | values_of | st.builds(tree.OneOf, several(individuals, 1, 2)),
    lambda inner: (
        st.builds(tree.Intersection, several(inner))
        | st.builds(tree.Union, several(inner))
        | st.builds(tree.Some, object_properties, inner | st.just(tree.Class(tree.THING)))
        | st.builds(tree.Some, data_properties, ranges)
    ),
    max_leaves=3,
)
counts = st.sampled_from([0, 1])


def objects_first(properties: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns properties in the order in which a key lists them."""
    return tuple(sorted(properties, key=lambda item: item.is_data))


superclasses = st.recursive(
    classes | values_of | st.builds(tree.Complement, subclasses) | st.just(tree.Class(tree.NOTHING)),
    lambda inner: (
        st.builds(tree.Intersection, several(inner))
        | st.builds(tree.All, object_properties, inner)
        | st.builds(tree.All, data_properties, ranges)
        | st.builds(partial(tree.Cardinality, "Max"), counts, object_properties, st.none() | classes)
        | st.builds(partial(tree.Cardinality, "Max"), counts, data_properties)
    ),
    max_leaves=3,
)
equivalents = classes | values_of | st.builds(tree.Intersection, several(classes | values_of))
assertions = (
    st.builds(tree.ClassAssertion, classes, individuals)
    | st.builds(tree.PropertyAssertion, named_properties, individuals, individuals)
    | st.builds(tree.PropertyAssertion, data_properties, individuals, values)
)
axioms = (
    st.builds(tree.SubClassOf, subclasses, superclasses)
    | st.builds(tree.EquivalentClasses, st.tuples(classes, equivalents))
    | st.builds(tree.DisjointClasses, several(classes))
    | st.builds(tree.SubPropertyOf, several(object_properties, 1), named_properties)
    | st.builds(tree.SubPropertyOf, several(data_properties, 1, 1), data_properties)
    | st.builds(tree.EquivalentProperties, several(named_properties, 2, 2))
    | st.builds(tree.DisjointProperties, several(named_properties))
    | st.builds(tree.InverseProperties, named_properties, named_properties)
    | st.builds(tree.Domain, object_properties | data_properties, superclasses)
    | st.builds(tree.Range, object_properties, superclasses)
    | st.builds(tree.Range, data_properties, ranges)
    | st.builds(
        tree.Characteristic,
        st.sampled_from([kind for kind in tree.CHARACTERISTICS if kind != "Reflexive"]),
        named_properties,
    )
    | st.builds(tree.Characteristic, st.just("Functional"), data_properties)
    | st.builds(tree.HasKey, classes, several(named_properties | data_properties, 1, 2).map(objects_first))
    | st.builds(tree.SameIndividual, several(individuals, 2, 2))
    | st.builds(tree.DifferentIndividuals, several(individuals))
    | st.builds(tree.ClassAssertion, superclasses, individuals)
    | st.builds(partial(tree.PropertyAssertion, negative=True), named_properties, individuals, individuals)
    | st.builds(partial(tree.PropertyAssertion, negative=True), data_properties, individuals, values)
    | assertions
)


def canonical(triples: Iterable[Triple]) -> set[Triple]:
    """Returns triples with one literal for each value, of individuals, and without what each is to itself."""

    def value(literal: Term) -> Term:
        evaluated = lookup(OWN + "valueOf").evaluate(literal)
        return Term(evaluated) if isinstance(evaluated, str) else literal

    by_value = {Triple(s, p, value(o) if is_literal(o) else o) for s, p, o in triples if s in INDIVIDUALS}
    named = {TYPE: CLASSES, SAME: INDIVIDUALS}
    return {
        triple
        for triple in by_value
        if triple.predicate in (*OBJECT, *DATA)
        or (triple.object in named.get(triple.predicate, ()) and triple.subject != triple.object)
    }


@cache
def generic(planner: str) -> Plan:
    return squall.plan(squall.compile(rules=("owl2rl",)), planner)


def closure(plan: Plan, triples: Iterable[Triple]) -> tuple[set[Triple], bool]:
    """Returns what is given and derived, and whether there is a violation."""
    static = [Event(ALWAYS, (triple,)) for triple in triples]
    derived = {out.fact for out in squall.run(plan, [], static=static, of=Triple)}
    return {*triples, *derived}, any(triple.predicate == rulesets.VIOLATED_BY for triple in derived)


def _states_a_fact(axiom: tree.Axiom) -> bool:
    match axiom:
        case tree.PropertyAssertion(negative=negative):
            return not negative
        case tree.DifferentIndividuals(members=members):
            return len(members) == 2
        case _:
            return isinstance(axiom, tree.ClassAssertion | tree.SameIndividual)


def compiled(axioms: Iterable[tree.Axiom]) -> System:
    """Returns the system of an ontology that runs alone."""
    return rulesets.prepared(translator(tree.Ontology("o", axioms=tuple(axioms))), background=False)


def check_law(schema: list[tree.Axiom], data: list[tree.Axiom], planner: str) -> None:
    schema = [*DECLARATIONS, *schema]
    graph, facts = triples_of(schema), triples_of(data)[1:]
    assert set(map(str, ontology(graph, "o").axioms)) == set(map(str, schema))
    expected, expected_violation = closure(generic(planner), [*graph, *facts])
    own, violation = closure(squall.plan(compiled(schema), planner), facts)
    own |= set(triples_of(axiom for axiom in schema if _states_a_fact(axiom)))
    assert violation == expected_violation
    # From a contradiction anything follows: the rules go on in different ways.
    assert canonical(own) <= canonical(expected) if violation else canonical(own) == canonical(expected)


@pytest.mark.more
@examples(40)
@pytest.mark.parametrize("planner", PLANNERS)
def test_an_ontology_derives_what_owl2rl_derives_of_its_triples(planner: str, many: int) -> None:
    def law(schema: list[tree.Axiom], data: list[tree.Axiom]) -> None:
        check_law(schema, data, planner)

    hold(law, many, schema=st.lists(axioms, min_size=2, max_size=6), data=st.lists(assertions, min_size=4, max_size=9))


@examples(25)
@pytest.mark.parametrize("language", ["jena", "rifps", "rif"])
def test_rules_that_are_written_derive_the_same(language: str, many: int) -> None:
    def law(schema: list[tree.Axiom], data: list[tree.Axiom]) -> None:
        system = compiled([*DECLARATIONS, *schema])
        written = plugins.load(plugins.TRANSLATORS, language).written(system)
        again = squall.compile(plugins.load(plugins.LEXERS, language).written(written), lexer=language)
        facts, stated = triples_of(data)[1:], set(triples_of(axiom for axiom in schema if _states_a_fact(axiom)))
        own, by_rules = (closure(squall.plan(each), facts)[0] | stated for each in (system, again))
        if language == "jena":  # has no relations but those of triples
            by_rules = {fact for fact in by_rules if not fact.predicate.startswith(HELPER)}
        assert own == by_rules

    hold(law, many, schema=st.lists(axioms, min_size=2, max_size=6), data=st.lists(assertions, min_size=4, max_size=9))


@examples(100)
def test_ontologies_print_as_they_are_read(many: int) -> None:
    def law(items: list[tree.Axiom]) -> None:
        whole = tree.Ontology("o", E + "o", (), (*DECLARATIONS, *items))
        assert lexer(str(whole), "o.ofn") == whole

    hold(law, many, items=st.lists(axioms, max_size=8))
