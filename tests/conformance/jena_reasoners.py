"""The part of the suite ``jena-rules`` that runs Jena's own rule files, unchanged, over its reasoners' tests.

A manifest has graphs of data and patterns; what holds and fits one of them has to be the resulting graph. What Jena's
reasoners do in Java is said here in rules (`CLOSURE`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.model import System, profiles
from squall.rdf import Event, Term, Triple, iri, iri_text, parts, triple
from tests.conformance import Case, Stages, leave_out
from tests.conformance.programs import compiled, model, same

TEST = "http://www.hpl.hp.com/semweb/2003/query_tester#"

CLOSURE = """
[(?a rdfs:subClassOf ?b) (?b rdfs:subClassOf ?c) -> (?a rdfs:subClassOf ?c)]
[(?a rdfs:subPropertyOf ?b) (?b rdfs:subPropertyOf ?c) -> (?a rdfs:subPropertyOf ?c)]
[(?a rdfs:subClassOf ?b) -> (?a rdfs:subClassOf ?a) (?b rdfs:subClassOf ?b)]
[(?a rdfs:subPropertyOf ?b) -> (?a rdfs:subPropertyOf ?a) (?b rdfs:subPropertyOf ?b)]
[(?p rdfs:subPropertyOf rdfs:subClassOf) (?a ?p ?b) -> (?a rdfs:subClassOf ?b)]
[(?p rdfs:subPropertyOf rdfs:subPropertyOf) (?a ?p ?b) -> (?a rdfs:subPropertyOf ?b)]
"""
"""The rules that stand for Jena's transitive graph cache."""

MEMBERSHIP = """
[(?x ?p ?y) strConcat(?p ?n) regex(?n 'http://www\\\\.w3\\\\.org/1999/02/22-rdf-syntax-ns#_[0-9]+')
    -> (?p rdf:type rdfs:ContainerMembershipProperty)]
"""
"""The facts that Jena states about the properties of the data beforehand."""

PROFILE = "jena"
"""The profile with which the rule sets run, because they cannot be stratified."""

MANIFESTS = {
    "rdfs/manifest-standard.rdf": "rdfs-fb-tgc-noresource.rules",
    "rdfs/manifest.rdf": "rdfs-fb-tgc.rules",
    "rdfs/manifest-nodirect.rdf": "rdfs-fb-tgc.rules",
    "rdfs/manifest-nodirect-noresource.rdf": "rdfs-fb.rules",
    "rdfs/manifest-simple.rdf": "rdfs-fb-tgc-simple.rules",
    "transitive/manifest.rdf": "",
}
"""The manifests with the rules that they are for."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the manifests that exist."""
    reasoners = folder / "reasoners"
    for manifest in sorted(reasoners.glob("*/manifest*.rdf")):
        name = str(manifest.relative_to(reasoners))
        graph = graph_of(manifest)
        for test in sorted(fact.subject for fact in graph if fact.object == iri(TEST + "Test")):
            case = partial(leave_out, f"no rule file of Jena is known to be for {name}")
            if name in MANIFESTS:
                case = partial(_run, _files(graph, test, reasoners), folder, MANIFESTS[name])
            yield Case(f"{name} {test.rpartition('/')[2].strip('>')}", case)


def _files(graph: frozenset[Triple], test: Term, folder: Path) -> dict[str, list[Path]]:
    """Returns the files of a test by their kinds."""
    paths: dict[str, list[Path]] = {"tbox": [], "data": [], "query": [], "result": []}
    for fact in graph:
        kind = iri_text(fact.predicate).removeprefix(TEST)
        if fact.subject == test and kind in paths:
            paths[kind].append(folder / parts(fact.object).lexical)
    return paths


def _run(files: dict[str, list[Path]], folder: Path, rules: str, stages: Stages) -> None:
    facts = [fact for path in (*files["tbox"], *files["data"]) for fact in graph_of(path)]
    result = model(_rules(folder, rules), [Event(0, tuple(facts))], stages)
    buffer = result.derived | (result.held & set(facts))
    expected = [pattern for path in files["query"] for pattern in graph_of(path)]
    results = {fact for fact in buffer if any(_fits(fact, pattern) for pattern in expected)}
    expectation = {fact for path in files["result"] for fact in graph_of(path)}
    missing, surplus = sorted(map(str, expectation - results)), sorted(map(str, results - expectation))
    assert same(results, expectation), f"missing {missing}, surplus {surplus}"


@cache
def graph_of(path: Path, base: str = "http://example.org/") -> frozenset[Triple]:
    """Parses the triples of a document. Its entities may be in single quotes, and its encoding said wrongly."""
    text = re.sub(r"(<!ENTITY \S+\s+)'([^']*)'", r'\1"\2"', path.read_text(encoding="utf-8"))
    text = re.sub(r"^<\?xml [^>]*\?>", "", text)
    format = RdfFormat.from_extension(path.suffix[1:]) or RdfFormat.RDF_XML
    quads = pyoxigraph.parse(text, format=format, base_iri=base)
    return frozenset(triple(quad.subject, quad.predicate, quad.object) for quad in quads)


def _fits(fact: Triple, pattern: Triple) -> bool:
    return all(cell.startswith("<var:") or cell == term for cell, term in zip(pattern, fact, strict=True))


@cache
def _rules(folder: Path, name: str) -> System:
    program = (folder / "rulesets" / name).read_text(encoding="utf-8") if name else ""
    closure = CLOSURE if "tgc" in name or not name else ""
    system = compiled(f"{program}\n{closure}{MEMBERSHIP if name else ''}", "jena", PROFILE)
    return profiles.apply_profile(system, PROFILE)
