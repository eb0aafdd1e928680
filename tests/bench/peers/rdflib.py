"""rdflib: the rules as CONSTRUCT queries over a graph in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import rdflib
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.sparql import Query

from squall.rdf import OWL, RDF, RDFS, XSD, Term, term, to_rdflib
from tests.bench.works import Answer, Evaluate, Statement, Task

Node = rdflib.term.Node
Nodes = tuple[Node, Node, Node]
GENERAL = tuple(f"<{vocabulary}" for vocabulary in (OWL, RDF, RDFS, XSD))
HIERARCHY = frozenset(f"<{RDFS}{name}>" for name in ("subPropertyOf", "subClassOf"))


def prepare(task: Task) -> Evaluate:
    rdflib.NORMALIZE_LITERALS = False  # literals come out as they went in
    queries = [prepareQuery(rule.sparql()) for rule in task.work.rules]
    graph = rdflib.Graph()
    for triple in map(nodes, task.static()):
        graph.add(triple)
    stream = list(map(nodes, task.triples()))
    if task.work.window:
        return lambda: Answer(lines(over_windows(graph, stream, queries, task)))
    for triple in stream:
        graph.add(triple)
    return lambda: Answer(lines(fixpoint(graph, queries)))


def nodes(statement: Statement) -> Nodes:
    subject, predicate, object = (to_rdflib(Term(item)) for item in statement)
    return subject, predicate, object


def lines(triples: Iterable[Nodes]) -> Iterator[str]:
    return (f"{' '.join(map(term, triple))} ." for triple in triples)


def lines_of_data(triples: Iterable[Nodes]) -> Iterator[str]:
    """Yields the lines of triples that are about the data and their schema.

    What reasoners derive about classes and identity in general is left out.
    """
    for triple in triples:
        subject, predicate, object = map(term, triple)
        is_reflexive = predicate in HIERARCHY and subject == object
        is_general = predicate == f"<{OWL}sameAs>" or subject.startswith(GENERAL) or object.startswith(GENERAL)
        if not (is_reflexive or is_general or subject.startswith('"')):
            yield f"{subject} {predicate} {object} ."


def ask(graph: rdflib.Graph, query: Query) -> list[Nodes]:
    return list(graph.query(query))  # type: ignore[arg-type]


def over_windows(graph: rdflib.Graph, stream: list[Nodes], queries: list[Query], task: Task) -> list[Nodes]:
    results: list[Nodes] = []
    existing = 0, 0
    for first, last in task.windows(len(stream)):
        for triple in stream[existing[1] : last]:
            graph.add(triple)
        for triple in stream[existing[0] : first]:
            graph.remove(triple)
        existing = first, last
        for query in queries:
            results += ask(graph, query)
    return results


def fixpoint(graph: rdflib.Graph, queries: list[Query]) -> list[Nodes]:
    inputs, size = set(graph), 0
    while size != len(graph):
        size = len(graph)
        for query in queries:
            for triple in ask(graph, query):
                graph.add(triple)
    return [triple for triple in graph if triple not in inputs]
