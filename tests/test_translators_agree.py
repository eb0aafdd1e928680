"""Equivalent programs as Jena rules, in RIF and in C-SPARQL give the same systems."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import pytest

import squall
from squall.model import Pattern, Source, System
from squall.planners.rete import identities

EX = "http://example.org/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"


class Said(NamedTuple):
    """A program in three languages: the group of a RIF document, and the queries without their names. None means that
    the language cannot express it."""

    jena: str
    rif: str | None
    csparql: tuple[str, ...] | None


PROGRAMS = {
    "a chain": Said(
        "[(?a ex:p ?b) (?b ex:q ?c) -> (?a ex:r ?c)]",
        "Forall ?x ?y ?z (?x[ex:r -> ?z] :- And(?y[ex:q -> ?z] ?x[ex:p -> ?y]))",
        ("CONSTRUCT { ?s ex:r ?o } WHERE { ?b ex:q ?o . ?s ex:p ?b }",),
    ),
    "a star": Said(
        "[(?a ex:p ?b) (?a ex:q ?c) (?a ex:r ?d) -> (?b ?c ?d)]",
        "Forall ?a ?b ?c ?d (?b[?c -> ?d] :- ?a[ex:p -> ?b ex:q -> ?c ex:r -> ?d])",
        ("CONSTRUCT { ?b ?c ?d } WHERE { ?a ex:r ?d ; ex:q ?c ; ex:p ?b }",),
    ),
    "a triangle": Said(
        "[(?a ex:p ?b) (?b ex:p ?c) (?c ex:p ?a) -> (?a ex:in ex:triangle)]",
        "Forall ?a ?b ?c (?a[ex:in -> ex:triangle] :- And(?a[ex:p -> ?b] ?b[ex:p -> ?c] ?c[ex:p -> ?a]))",
        ("CONSTRUCT { ?a ex:in ex:triangle } WHERE { ?a ex:p ?b . ?c ex:p ?a . ?b ex:p ?c }",),
    ),
    "one variable twice in a pattern": Said(
        "[(?a ?p ?a) -> (?a ex:is ex:Reflexive)]",
        "Forall ?a ?p (?a[ex:is -> ex:Reflexive] :- ?a[?p -> ?a])",
        ("CONSTRUCT { ?x ex:is ex:Reflexive } WHERE { ?x ?y ?x }",),
    ),
    "classes and instances": Said(
        "[(?x rdf:type ?c) (?c rdfs:subClassOf ?d) -> (?x rdf:type ?d)]",
        "Forall ?x ?c ?d (?x # ?d :- And(?x # ?c  ?c[rdfs:subClassOf -> ?d]))",
        ("CONSTRUCT { ?x a ?d } WHERE { ?x a ?c . ?c rdfs:subClassOf ?d }",),
    ),
    "several facts": Said(
        "[(?a ex:p ?b) -> (?b ex:q ?a) (?a ex:r 'it') (?b rdf:type ex:Thing)]",
        'Forall ?a ?b (And(?b[ex:q -> ?a] ?a[ex:r -> "it"] ?b # ex:Thing) :- ?a[ex:p -> ?b])',
        ("CONSTRUCT { ?b a ex:Thing ; ex:q ?a . ?a ex:r 'it' } WHERE { ?a ex:p ?b }",),
    ),
    "a predicate that is a variable": Said(
        "[(?p ex:below ?q) (?x ?p ?y) -> (?x ?q ?y)]",
        "Forall ?p ?q ?x ?y (?x[?q -> ?y] :- And(?p[ex:below -> ?q] ?x[?p -> ?y]))",
        ("CONSTRUCT { ?x ?q ?y } WHERE { ?x ?p ?y . ?p ex:below ?q }",),
    ),
    "a product": Said(
        "[(?a ex:p ?b) (?c ex:q ?d) -> (?a ex:with ?d)]",
        "Forall ?a ?b ?c ?d (?a[ex:with -> ?d] :- And(?c[ex:q -> ?d] ?a[ex:p -> ?b]))",
        ("CONSTRUCT { ?a ex:with ?d } WHERE { ?a ex:p ?b . ?c ex:q ?d }",),
    ),
    "constants": Said(
        "[(ex:ann ex:p ?b) (?b ex:age '5'^^xsd:integer) -> (ex:ann ex:has ?b)]",
        "Forall ?b (ex:ann[ex:has -> ?b] :- And(ex:ann[ex:p -> ?b] ?b[ex:age -> 5]))",
        ("CONSTRUCT { ex:ann ex:has ?b } WHERE { ex:ann ex:p ?b . ?b ex:age 5 }",),
    ),
    "what holds anyway": Said(
        "-> (ex:a ex:b ex:c) .", "ex:a[ex:b -> ex:c]", ("CONSTRUCT { ex:a ex:b ex:c } WHERE {}",)
    ),
    "recursion": Said(
        "[(?a ex:p ?b) -> (?a ex:q ?b)] [(?a ex:q ?b) (?b ex:q ?c) -> (?a ex:q ?c)]",
        "Forall ?a ?b (?a[ex:q -> ?b] :- ?a[ex:p -> ?b]) "
        "Forall ?a ?b ?c (?a[ex:q -> ?c] :- And(?a[ex:q -> ?b] ?b[ex:q -> ?c]))",
        (
            "CONSTRUCT { ?a ex:q ?b } WHERE { ?a ex:p ?b }",
            "CONSTRUCT { ?a ex:q ?c } WHERE { ?a ex:q ?b . ?b ex:q ?c }",
        ),
    ),
    "a rule in a head, and a part of its own": Said(
        "[(?p ex:is ex:Symmetric) -> [(?b ?p ?a) <- (?a ?p ?b)]]",
        "Forall ?p ?a ?b (?b[?p -> ?a] :- And(?p[ex:is -> ex:Symmetric] And(?a[?p -> ?b])))",
        ("CONSTRUCT { ?b ?p ?a } WHERE { { ?p ex:is ex:Symmetric } { ?a ?p ?b } }",),
    ),
    "what is not answered": Said(
        "[(?a ex:p ?b) (?b ex:q ?c) -> (?a ex:is ex:Rich)]",
        "Forall ?a (?a[ex:is -> ex:Rich] :- Exists ?b ?c (And(?a[ex:p -> ?b] ?b[ex:q -> ?c])))",
        ("CONSTRUCT { ?a ex:is ex:Rich } WHERE { ?a ex:p [ ex:q [] ] }",),
    ),
    "one or the other": Said(
        "[(?a ex:p ?b) -> (?a ex:r ?b)] [(?a ex:q ?b) -> (?a ex:r ?b)]",
        "Forall ?a ?b (?a[ex:r -> ?b] :- Or(?a[ex:p -> ?b] ?a[ex:q -> ?b]))",
        None,
    ),
    "what is absent": Said(
        "[(?a ex:p ?b) noValue(?b ex:q ex:c) -> (?a ex:r ?b)]",
        None,
        ("CONSTRUCT { ?a ex:r ?b } WHERE { ?a ex:p ?b MINUS { ?b ex:q ex:c } }",),
    ),
}  # fmt: skip


def as_jena(said: Said) -> System:
    return squall.compile(f"@prefix ex: <{EX}> .\n{said.jena}", lexer="jena")


def as_rif(said: Said) -> System | None:
    prefixes = f"Prefix(ex <{EX}>) Prefix(rdf <{RDF}>) Prefix(rdfs <{RDFS}>)"
    return squall.compile(f"Document({prefixes} Group({said.rif}))", lexer="rifps") if said.rif else None


def as_csparql(said: Said) -> System | None:
    """Adapts the queries to rules, from which they differ in three points: their conclusions are not read by others of
    the kind, they read the default graph only, and literals in their patterns match as terms."""
    prefixes = f"PREFIX ex: <{EX}> PREFIX rdfs: <{RDFS}>"
    system = [squall.compile(f"{prefixes} {query}", lexer="csparql") for query in said.csparql or ()]
    return System(subsystems=tuple(map(as_rules, system))) if system else None


def as_rules(part: Any) -> Any:
    """Returns a part of such a query in the form that a rule has."""
    if isinstance(part, tuple):
        return tuple(map(as_rules, part))
    if not is_dataclass(part) or isinstance(part, type):
        return part
    outputs: dict[type, dict[str, bool]] = {
        Source: {"sparql_dataset": False}, Pattern: {"exact": False}, System: {"reentrant": True}
    }  # fmt: skip
    changed = {field.name: as_rules(getattr(part, field.name)) for field in fields(part)}
    return replace(part, **changed | outputs.get(type(part), {}))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_in_other_words_is_the_same_system(name: str) -> None:
    message = PROGRAMS[name]
    other_items = [system for system in (as_rif(message), as_csparql(message)) if system is not None]
    assert other_items
    for system in other_items:
        assert sorted(identities(system)) == sorted(identities(as_jena(message)))


def test_different_programs_differ() -> None:
    results = [tuple(sorted(identities(as_jena(message)))) for message in PROGRAMS.values()]
    assert len(set(results)) == len(results)
