"""The tests of RDF's and RDFS's semantics in the suite ``w3c-rdf-tests`` (rdf-mt), by our rule sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyoxigraph
from pyoxigraph import NamedNode

from squall.rdf import RDF, Triple, iri
from tests.conformance import Case, KnownBad, Stages, entries
from tests.conformance.entailment import check, document
from tests.conformance.w3c_manifests import MF, manifest, path_of

RDFS = ("rdfs", "rdfs-axioms")
"""The rule sets for RDF and RDFS. Those of RDFS conclude more than RDF does, which makes negative tests of RDF
harder."""
NUMBERED = f"<{RDF}_"


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the index, in its order."""
    for entry in entries(folder / "index.json"):
        if entry["dir"].startswith("rdf/rdf11/rdf-mt"):
            yield Case(entry["id"], partial(_run, folder, entry))


def _run(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    graph = manifest(folder / entry["dir"])
    test = graph.test(entry["id"].rpartition("#")[2])
    action, result = graph.value(test, MF + "action"), graph.value(test, MF + "result")
    regime = graph.value(test, MF + "entailmentRegime")
    assert action is not None
    assert result is not None
    assert regime is not None
    datatypes = set(graph.members(test, MF + "recognizedDatatypes")) - {NamedNode(RDF + "nil")}
    sets = (*(RDFS if regime.value != "simple" else ()), *(("datatypes",) if datatypes else ()))
    if not path_of(action).is_file():
        raise KnownBad(f"there is no document {path_of(action).name}")
    premises = document(path_of(action), action.value)
    conclusion = None if isinstance(result, pyoxigraph.Literal) else document(path_of(result), result.value)
    (kind,) = entry["type"]
    check(
        kind,
        (*premises, *_numbered(conclusion or ())),
        conclusion,
        sets,
        stages,
        exact=not sets,
    )


def _numbered(conclusion: Sequence[Triple]) -> Iterator[Triple]:
    """Yields an axiomatic triple for each container membership property in the conclusion. Without a conclusion there
    would be infinitely many."""
    for term in {term for triple in conclusion for term in triple if term.startswith(NUMBERED)}:
        yield Triple(term, iri(RDF + "type"), iri(RDF + "Property"))
