"""Peers: other engines that run a workload's rules, for figures side by side. A peer is one function in `PEERS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from squall.rdf import term
from tests.bench.works import Files, Work


def statements(files: Files, timed: bool) -> Iterable[str]:
    """The statements of the static data and the stream, without their times."""
    yield from files.static.read_text().splitlines()
    for line in files.stream.read_text().splitlines():
        yield line.partition(" ")[2] if timed else line


def with_pyoxigraph(work: Work, files: Files) -> Iterable[str]:
    """The rules as CONSTRUCT queries over a store, again and again until they add nothing."""
    import pyoxigraph

    store = pyoxigraph.Store()
    text = "\n".join(statements(files, work.timed))
    store.bulk_load(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    given = set(store)
    size = 0
    while size != len(store):
        size = len(store)
        for query in work.queries:
            found = store.query(query)
            assert isinstance(found, pyoxigraph.QueryTriples)
            store.extend([pyoxigraph.Quad(*triple) for triple in found])
    return (f"{quad.triple} ." for quad in store if quad not in given)


def with_rdflib(work: Work, files: Files) -> Iterable[str]:
    """The same over an rdflib graph."""
    import rdflib

    rdflib.NORMALIZE_LITERALS = False  # literals come out as they went in
    graph = rdflib.Graph().parse(data="\n".join(statements(files, work.timed)), format="nt")
    given = set(graph)
    size = 0
    while size != len(graph):
        size = len(graph)
        for query in work.queries:
            for triple in list(graph.query(query)):
                graph.add(triple)  # type: ignore[arg-type]
    return (f"{' '.join(map(term, triple))} ." for triple in graph if triple not in given)


PEERS: dict[str, Callable[[Work, Files], Iterable[str]]] = {"pyoxigraph": with_pyoxigraph, "rdflib": with_rdflib}
