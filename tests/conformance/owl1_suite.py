"""The suite ``owl1-wg-tests``: OWL 1's tests of entailment and consistency by the set ``owl2rl``, and RDF Core's of
entailment by the sets for RDFS. RDF Core's tests of parsers are none of rules, and are not among the cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from squall.rdf import OWL, RDF, RDFS, Triple, iri, iri_text
from tests.conformance import Case, LeftOut, Stages, entries
from tests.conformance.entailment import check, document
from tests.conformance.w3c_manifests import Graph, Node

CORE = "http://www.w3.org/2000/10/rdf-tests/rdfcore/testSchema#"
CORE_BASE = "http://www.w3.org/2000/10/rdf-tests/rdfcore/"
OTHERWISE = {
    "datatypes/Manifest.rdf#non-well-formed-literal-2": "in RDF 1.1 an ill-typed literal is a contradiction",
}
"""The tests of RDF Core whose result RDF 1.1 has changed."""
BASE = "http://www.w3.org/2002/03owlt/"
IMPORTS = iri(OWL + "imports")
KINDS = {
    "PositiveEntailmentTest": "PositiveEntailmentTest",
    "NegativeEntailmentTest": "NegativeEntailmentTest",
    "ImportEntailmentTest": "PositiveEntailmentTest",
    "OWLforOWLTest": "PositiveEntailmentTest",
    "ConsistencyTest": "ConsistencyTest",
    "InconsistencyTest": "InconsistencyTest",
}
"""The kind of test for each type. The type of OWL for OWL asks whether the vocabulary alone entails a document."""
LEFT_OUT = {
    "localtests/Manifest007#propInheritance": "the reader of RDF/XML refuses entities in single quotes",
    "miscellaneous/Manifest002#test": "imports a document that is not at hand",
    "miscellaneous/Manifest205#test": "asks who does not know rdf:XMLLiteral",
}
REASONS = {
    "no rule concludes owl:differentFrom": """
        AllDifferent/Manifest001 differentFrom/Manifest001 differentFrom/Manifest002 disjointWith/Manifest001
        disjointWith/Manifest002 distinctMembers/Manifest001
    """,
    "no rule concludes that there is a class or an individual that the data do not name": """
        FunctionalProperty/Manifest005 I5.24/Manifest002 I5.24/Manifest003 I5.26/Manifest009 I5.26/Manifest010
        I5.5/Manifest005 Nothing/Manifest002 Restriction/Manifest006 cardinality/Manifest002
        cardinality/Manifest003 cardinality/Manifest004 cardinality/Manifest005 cardinality/Manifest006
        equivalentClass/Manifest006 equivalentClass/Manifest007 someValuesFrom/Manifest001
        someValuesFrom/Manifest003 Restriction/Manifest002 I5.21/Manifest002
    """,
    "no rule concludes what OWL Full says of the vocabulary itself": """
        Class/Manifest001 Class/Manifest002 Class/Manifest003 I5.5/Manifest002 I5.5/Manifest004
        imports/Manifest010 SymmetricProperty/Manifest003 I5.3/Manifest014 Thing/Manifest003 I5.8/Manifest017
    """,
    "no rule concludes which characteristics a property has": """
        FunctionalProperty/Manifest003 FunctionalProperty/Manifest004 InverseFunctionalProperty/Manifest003
        InverseFunctionalProperty/Manifest004 SymmetricProperty/Manifest002
    """,
    "no rule concludes owl:complementOf": """
        complementOf/Manifest001 I5.2/Manifest004
    """,
    "no rule concludes that a class or property is a part of one from what its members have in common": """
        I5.2/Manifest002 I5.24/Manifest003-mod I5.24/Manifest004-mod I5.24/Manifest004
        cardinality/Manifest002-mod cardinality/Manifest003-mod cardinality/Manifest004-mod
        cardinality/Manifest005-mod cardinality/Manifest006-mod equivalentClass/Manifest004
        equivalentProperty/Manifest004 equivalentProperty/Manifest005 I5.3/Manifest015
        FunctionalProperty/Manifest005-mod oneOf/Manifest003 extra-credit/Manifest002 extra-credit/Manifest003
        extra-credit/Manifest004
    """,
    "no rule counts: how many values a datatype has, more than one of a property, or what a minimum asks for": """
        I5.8/Manifest003 I5.8/Manifest004 I5.8/Manifest008 I5.8/Manifest009 maxCardinality/Manifest002
        Thing/Manifest005 disjointWith/Manifest010
    """,
    "asks a description logic: reasoning by cases, about individuals that the data do not name": """
        description-logic/Manifest003 description-logic/Manifest004 description-logic/Manifest007
        description-logic/Manifest008 description-logic/Manifest010 description-logic/Manifest011
        description-logic/Manifest012 description-logic/Manifest013 description-logic/Manifest015
        description-logic/Manifest017 description-logic/Manifest019 description-logic/Manifest022
        description-logic/Manifest023 description-logic/Manifest026 description-logic/Manifest027
        description-logic/Manifest033 description-logic/Manifest040 description-logic/Manifest105
        description-logic/Manifest106 description-logic/Manifest107 description-logic/Manifest108
        description-logic/Manifest111 description-logic/Manifest201 description-logic/Manifest202
        description-logic/Manifest205 description-logic/Manifest206 description-logic/Manifest208
        description-logic/Manifest502 description-logic/Manifest504 description-logic/Manifest601
        description-logic/Manifest602 description-logic/Manifest603 description-logic/Manifest604
        description-logic/Manifest610 description-logic/Manifest611 description-logic/Manifest612
        description-logic/Manifest613 description-logic/Manifest615 description-logic/Manifest626
        description-logic/Manifest627 description-logic/Manifest629 description-logic/Manifest630
        description-logic/Manifest632 description-logic/Manifest641 description-logic/Manifest642
        description-logic/Manifest643 description-logic/Manifest644 description-logic/Manifest646
        description-logic/Manifest650 description-logic/Manifest901 description-logic/Manifest909
    """,
}
BEYOND = {name: reason for reason, names in REASONS.items() for name in names.split()}
"""The conclusions that the rules of OWL 2 RL do not draw, with the reason. The rules are complete for assertions of
classes and properties about individuals (OWL 2 Profiles, theorem PR1)."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the index, in its order, and then those of RDF Core."""
    yield from _owl_cases(folder)
    path = folder / "wg" / "Manifest.rdf"
    if path.is_file():
        yield from _core_cases(folder, Graph(path))


def _core_cases(folder: Path, graph: Graph) -> Iterator[Case]:
    for kind in ("PositiveEntailmentTest", "NegativeEntailmentTest"):
        for test in graph.subjects(RDF + "type", NamedNode(CORE + kind)):
            name = test.value.removeprefix(CORE_BASE)
            yield Case(name, partial(_core, folder, graph, test, name, kind))


def _owl_cases(folder: Path) -> Iterator[Case]:
    for entry in entries(folder / "index.json"):
        name = entry["manifest"].removeprefix("wg/").removesuffix(".rdf") + "#" + entry["id"].rpartition("#")[2]
        yield Case(name, partial(_owl, folder, entry, name))


def _owl(folder: Path, entry: dict[str, Any], name: str, stages: Stages) -> None:
    if entry["type"] not in KINDS:
        raise LeftOut("asks for the species of a document (OWL Lite, DL or Full)")
    if name in LEFT_OUT:
        raise LeftOut(LEFT_OUT[name])
    premises = [*_closed(folder, entry.get("premise") or entry.get("input") or ())]
    places = entry.get("conclusion")
    conclusion = None if places is None else [fact for place in places for fact in _document(folder, place)]
    check(KINDS[entry["type"]], premises, conclusion, ["owl2rl"], stages, BEYOND.get(name.removesuffix("#test"), ""))


def _core(folder: Path, graph: Graph, test: Node, name: str, kind: str, stages: Stages) -> None:
    if name in OTHERWISE:
        raise LeftOut(OTHERWISE[name])
    premises = [fact for node in graph.values(test, CORE + "premiseDocument") for fact in _core_document(folder, node)]
    (place,) = graph.values(test, CORE + "conclusionDocument")
    false = NamedNode(CORE + "False-Document") in graph.values(place, RDF + "type")
    conclusion = None if false else _core_document(folder, place)
    regimes = {node.value for node in graph.values(test, CORE + "entailmentRules")}
    datatypes = graph.values(test, CORE + "datatypeSupport")
    sets = (*(("rdfs", "rdfs-axioms") if regimes & {RDF, RDFS} else ()), *(("datatypes",) if datatypes else ()))
    check(kind, premises, conclusion, sets, stages, exact=not sets)


def _core_document(folder: Path, node: Node) -> tuple[Triple, ...]:
    return document(folder / "wg" / node.value.removeprefix(CORE_BASE), node.value)


def _closed(folder: Path, places: Iterable[str]) -> Iterator[Triple]:
    """Returns the triples of documents, and of those that they import."""
    expected, read = list(places), set()
    while expected:
        place = expected.pop()
        if place not in read:
            read.add(place)
            facts = _document(folder, place)
            yield from facts
            expected += [
                f"wg/{iri_text(fact.object).removeprefix(BASE)}.rdf" for fact in facts if fact.predicate == IMPORTS
            ]


def _document(folder: Path, place: str) -> tuple[Triple, ...]:
    return document(folder / place, BASE + place.removeprefix("wg/").removesuffix(".rdf"))
