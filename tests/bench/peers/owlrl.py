"""owlrl: RDFS semantics over an rdflib graph. Its axiomatic triples are left out when its answer is compared."""

from __future__ import annotations

import rdflib
from owlrl import DeductiveClosure, RDFS_Semantics

from tests.bench.peers.rdflib import lines_of_data, nodes
from tests.bench.works import Answer, Evaluate, Task


def prepare(task: Task) -> Evaluate:
    rdflib.NORMALIZE_LITERALS = False  # literals come out as they went in
    graph = rdflib.Graph()
    for triple in map(nodes, task.static() + task.triples()):
        graph.add(triple)
    inputs = set(graph)

    def evaluate() -> Answer:
        DeductiveClosure(RDFS_Semantics).expand(graph)
        return Answer(lines_of_data(triple for triple in graph if triple not in inputs))

    return evaluate
