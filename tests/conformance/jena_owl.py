"""The suite ``jena-owl``: Jena's OWL rule files, unchanged, over W3C's entailments and Jena's tests of consistency.

What Jena's OWL reasoner does in Java is said here in rules (`HOOKS`). The rules look at what is absent when they fire
(the profile ``jena``): they cannot be stratified.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyoxigraph

import squall
from squall.contracts import Options
from squall.model import System, profiles
from squall.plan import Plan
from squall.plan.seeds import FIXED_SEED
from squall.rdf import ALWAYS, Event, Triple, iri, iri_text, parts
from squall.translators.jena.terms import FUNCTORS
from tests.conformance import Case, LeftOut, Stages, entries
from tests.conformance.jena_reasoners import CLOSURE, PROFILE, graph_of
from tests.conformance.programs import compiled

RTEST = "http://www.w3.org/2000/10/rdf-tests/rdfcore/testSchema#"
OTEST = "http://www.w3.org/2002/03owlt/testOntology#"
DOCUMENTS = "http://www.w3.org/2002/03owlt/"

HOOKS = """
[(?c owl:intersectionOf ?l) -> (?l urn:x-test:of ?c)]
[(?l urn:x-test:of ?c) (?l rdf:rest ?m) -> (?m urn:x-test:of ?c)]
[(?l urn:x-test:of ?c) (?l rdf:first ?d) -> (?c rdfs:subClassOf ?d)]
[(?l urn:x-test:of ?c) (?l rdf:rest rdf:nil) (?l rdf:first ?d) (?x rdf:type ?d) -> (?x urn:x-test:in ?l)]
[(?l urn:x-test:of ?c) (?l rdf:rest ?m) (?x urn:x-test:in ?m) (?l rdf:first ?d) (?x rdf:type ?d)
    -> (?x urn:x-test:in ?l)]
[(?c owl:intersectionOf ?l) (?x urn:x-test:in ?l) -> (?x rdf:type ?c)]
-> hide(urn:x-test:of urn:x-test:in) .
"""
"""The rules that Jena makes of each intersection: an instance of all its classes is an instance of it."""

VALIDATION = """
-> (urn:x-test:v rb:validation on()) .
[(?x rb:violation ?why) strConcat(?why ?text) -> (?x urn:x-test:why ?text)]
"""
"""A query that returns violations, which are functors, as texts. Violations by hidden nodes and literals are no
answers."""

_ENDLESS = "its closure takes more than a minute"
_OPEN = "its rule `validationFP` has a variable in its head that nothing binds"
LEFT_OUT = {
    ("owl-fb.rules", "equivalentClass/Manifest004.rdf"): _ENDLESS,
    ("owl-fb-mini.rules", "equivalentClass/Manifest004.rdf"): _ENDLESS,
    ("owl-fb.rules", "equivalentClass/Manifest005.rdf"): _ENDLESS,
    ("owl-fb-mini.rules", "equivalentClass/Manifest005.rdf"): _ENDLESS,
    ("owl-fb-micro.rules", "equivalentClass/Manifest005.rdf"): _ENDLESS,
    ("owl-fb.rules", "cardinality/Manifest002-mod.rdf"): _ENDLESS,
    ("owl-fb-mini.rules", "cardinality/Manifest002-mod.rdf"): _ENDLESS,
    ("owl-fb-mini.rules", "owl/inconsistent6.rdf"): _OPEN,
}
"""The reasons why a rule file is not run over some test."""


def cases(listed: Path) -> Iterator[Case]:
    """Yields a case for each rule file to which a test applies."""
    folder = listed.parent
    for entry in entries(listed):
        run = _entails if entry["kind"] == "wg_manifest" else _is_consistent
        for rules in entry["holds_for"]:
            name = entry.get("manifest") or entry["data"]
            test = "/".join(name.split("/")[-2:])
            reason = LEFT_OUT.get((rules, test))
            case = partial(_left_out, reason) if reason else partial(run, folder, entry, rules)
            yield Case(f"{rules} {test}", case)


def _left_out(reason: str, stages: Stages) -> None:
    raise LeftOut(reason)


def _entails(folder: Path, entry: dict[str, Any], rules: str, stages: Stages) -> None:
    manifest = folder.parent / entry["manifest"]
    graph = graph_of(manifest)
    for kind, expected in (("PositiveEntailmentTest", True), ("NegativeEntailmentTest", False)):
        for test in (fact.subject for fact in graph if fact.object == iri(OTEST + kind)):
            documents = {
                role: [_document(folder, iri_text(fact.object)) for fact in graph if _says(fact, test, role)]
                for role in ("premiseDocument", "conclusionDocument")
            }
            buffer = _held(folder, rules, documents["premiseDocument"], stages)
            for path in documents["conclusionDocument"]:
                assert _is_entailed(buffer, graph_of(path)) is expected, f"{path.name}: {not expected}"
            return
    raise LeftOut("it asks for neither an entailment nor that there is none")


def _says(fact: Triple, test: str, role: str) -> bool:
    return fact.subject == test and fact.predicate == iri(RTEST + role)


def _document(folder: Path, address: str) -> Path:
    """Returns the file of a document. Relative addresses are resolved against that of the manifest, which is next to
    it."""
    return folder.parent / "owl1-wg-tests" / "wg" / f"{address.removeprefix(DOCUMENTS)}.rdf"


def _is_consistent(folder: Path, entry: dict[str, Any], rules: str, stages: Stages) -> None:
    buffer = _held(folder, rules, [folder / entry["tbox"], folder / entry["data"]], stages, VALIDATION)
    reasons = [parts(fact.object).lexical for fact in buffer if fact.predicate == iri("urn:x-test:why")]
    results = {kind for kind in ("error", "warn") if any(text.startswith(iri(FUNCTORS + kind)) for text in reasons)}
    kind = "error" if "error" in results else "".join(results)
    expected = {"CLEAN": "", "INCONSISTENT": "error", "WARNINGS": "warn"}[entry["expected"]]
    assert kind == expected, f"found {kind or 'nothing'}, not {expected or 'nothing'}"


def _held(folder: Path, rules: str, paths: list[Path], stages: Stages, more: str = "") -> set[Triple]:
    """Returns the given and the derived facts, all of them static."""
    facts = {fact for path in paths for fact in graph_of(path)}
    job = squall.build(_plan(folder, rules, more, stages), stages.builder, Options(seed=FIXED_SEED))
    derived = {out.fact for out in job.run([], [Event(ALWAYS, (fact,)) for fact in facts])}
    return facts | {fact for fact in derived if isinstance(fact, Triple)}


@cache
def _plan(folder: Path, rules: str, more: str, stages: Stages) -> Plan:
    program = (folder / "rulesets" / rules).read_text(encoding="utf-8")
    system: System = compiled(f"{program}\n{CLOSURE}{HOOKS}{more}", "jena", PROFILE)
    return squall.plan(profiles.apply_profile(system, PROFILE), stages.planner)


def _is_entailed(held: set[Triple], conclusion: frozenset[Triple]) -> bool:
    """Returns whether a graph follows by simple entailment: its blank nodes may stand for any node."""
    store = pyoxigraph.Store()
    text = "\n".join(map(str, held)).encode()
    store.load(text, format=pyoxigraph.RdfFormat.N_TRIPLES)
    patterns = " ".join(" ".join(_variable(term) for term in fact) + " ." for fact in conclusion)
    return bool(store.query(f"ASK {{ {patterns} }}"))


def _variable(term: str) -> str:
    return f"?b{term[2:]}" if term.startswith("_:") else term
