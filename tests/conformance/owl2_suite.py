"""The suite ``owl2-tests``: OWL 2's test cases of the profile RL and the RDF-based semantics, by the set ``owl2rl``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance import Case, LeftOut, Stages, entries
from tests.conformance.entailment import check, document

DIFFERENT = "no rule concludes owl:differentFrom or owl:AllDifferent"
NEGATIVE = "no rule concludes that something is in an owl:complementOf"
NEW = "no rule concludes that there is a class that the data do not name"
DIRECT = "asks the direct semantics, for which annotations say nothing"
BEYOND = {
    "DisjointClasses-001": NEGATIVE,
    "DisjointClasses-003": NEGATIVE,
    "New-Feature-DisjointDataProperties-002": DIFFERENT,
    "New-Feature-DisjointObjectProperties-001": DIFFERENT,
    "New-Feature-DisjointObjectProperties-002": DIFFERENT,
    "New-Feature-ObjectQCR-002": NEGATIVE,
    "New-Feature-ReflexiveProperty-001": "owl:ReflexiveProperty is not part of the profile",
    "WebOnt-I4.6-005-Direct": DIRECT,
    "WebOnt-I5.26-010": NEW,
    "WebOnt-I5.5-005": NEW,
    "WebOnt-I5.8-008": "no rule concludes that what is in two datatypes is in a third",
    "WebOnt-I5.8-009": "no rule concludes that what is in two datatypes is in a third",
    "WebOnt-differentFrom-001": DIFFERENT,
    "WebOnt-equivalentClass-008-Direct": DIRECT,
    "chain2trans1": "no rule concludes that a property is an owl:TransitiveProperty",
    "owl2-rl-rules-fp-differentFrom": DIFFERENT,
    "owl2-rl-rules-ifp-differentFrom": DIFFERENT,
}
"""The entailments that the rules of OWL 2 RL do not have, with the reason. The rules are complete for assertions of
classes and properties about individuals (OWL 2 Profiles, theorem PR1)."""
KINDS = ("PositiveEntailmentTest", "NegativeEntailmentTest", "ConsistencyTest", "InconsistencyTest")


def cases(folder: Path) -> Iterator[Case]:
    """Returns the cases of the manifest in its order, one for each check."""
    for entry in entries(folder / "cases" / "manifest.json"):
        for kind in entry["types"]:
            if kind in KINDS:
                yield Case(f"{entry['id']} {kind}", partial(_run, folder / "cases", entry, kind))


def _run(folder: Path, entry: dict[str, Any], kind: str, stages: Stages) -> None:
    files = entry["files"]
    if "premise.rdf" not in files:
        raise LeftOut("in functional syntax only")
    premises = document(folder / files["premise.rdf"], entry["uri"])
    name = {"PositiveEntailmentTest": "conclusion.rdf", "NegativeEntailmentTest": "nonconclusion.rdf"}.get(kind)
    conclusion = document(folder / files[name], entry["uri"]) if name else None
    beyond = BEYOND.get(entry["id"], "") if kind == "PositiveEntailmentTest" else ""
    check(kind, premises, conclusion, ["owl2rl"], stages, beyond)
