"""The update tests of the suite ``w3c-rdf-tests``: a request is applied once, and data sets compared, named graphs too.

What a request does as standing rules is another thing: see docs/languages/sparql.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from squall.rdf import Term, Triple, iri
from squall.sparql_update import apply_update
from squall.sparql_update.datasets import Dataset
from squall.testing import isomorphic
from tests.conformance import Case, Stages, entries
from tests.conformance.w3c_manifests import MF, RDFS_LABEL, UT, Graph, Node, manifest, path_of, triples


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the index, in its order."""
    for entry in entries(folder / "index.json"):
        if entry["dir"].startswith("sparql/") and "UpdateEvaluationTest" in entry["type"]:
            yield Case(entry["id"], partial(_run, folder, entry))


def _run(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    graph = manifest(folder / entry["dir"])
    test = graph.test(entry["id"].rpartition("#")[2])
    action, result = graph.value(test, MF + "action"), graph.value(test, MF + "result")
    assert action is not None
    assert result is not None
    request = graph.value(action, UT + "request")
    assert request is not None
    outputs = apply_update(_data(graph, action), path_of(request), planner=stages.planner, builder=stages.builder)
    expected = _data(graph, result)
    assert set(outputs.named) == set(expected.named), (
        f"named graphs: {sorted(outputs.named)}, not {sorted(expected.named)}"
    )
    assert isomorphic(outputs.quads(), expected.quads()), (
        f"left: {[*outputs.quads()][:4]}, not {[*expected.quads()][:4]}"
    )


def _data(graph: Graph, node: Node) -> Dataset:
    """Returns the dataset of an action or a result. A file is read once, so that a file in two graphs has the same
    blank nodes in both."""
    existing: dict[Path, tuple[Triple, ...]] = {}

    def facts(documents: list[Node]) -> frozenset[Triple]:
        paths = [path_of(document) for document in documents]
        return frozenset(triple for path in paths for triple in existing.setdefault(path, triples(path)))

    names: dict[Term, frozenset[Triple]] = {}
    for item in graph.values(node, UT + "graphData"):
        label = graph.value(item, RDFS_LABEL.value)
        assert label is not None
        names[iri(label.value)] = facts(graph.values(item, UT + "graph"))
    return Dataset(facts(graph.values(node, UT + "data")), names)
