"""The suite ``owl2-tests``: OWL 2's test cases of the profile RL and the RDF-based semantics, by the set ``owl2rl``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance import Case, LeftOut, Stages, entries
from tests.conformance.entailment import check, document

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
    check(kind, premises, conclusion, ["owl2rl"], stages)
