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
    check(KINDS[entry["type"]], premises, conclusion, ["owl2rl"], stages)


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
