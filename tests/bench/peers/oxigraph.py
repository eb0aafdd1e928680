"""pyoxigraph: the rules as CONSTRUCT queries over a store."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyoxigraph
from pyoxigraph import Quad, QueryTriples, RdfFormat, Store, Triple

from tests.bench.works import Answer, Evaluate, Task, written


def prepare(task: Task) -> Evaluate:
    queries = [rule.sparql() for rule in task.work.rules]
    if task.work.fed == "files":
        return lambda: from_file_to_file(task, queries)
    store, stream = Store(), list(quads(task.files.plain))
    store.extend(quads(task.files.static))
    if task.work.window:
        return lambda: Answer(lines(over_windows(store, stream, queries, task)))
    store.extend(stream)
    return lambda: Answer(lines(fixpoint(store, queries)))


def quads(path: Path) -> Iterator[Quad]:
    """Yields the statements of a file. Blank nodes and graphs are not renamed, because there are none."""
    return pyoxigraph.parse(path=str(path), format=RdfFormat.N_TRIPLES)


def lines(triples: Iterable[Triple]) -> Iterator[str]:
    return (f"{triple} ." for triple in triples)


def ask(store: Store, query: str) -> QueryTriples:
    result = store.query(query)
    assert isinstance(result, QueryTriples)
    return result


def over_windows(store: Store, stream: Iterable[Quad], queries: list[str], task: Task) -> list[Triple]:
    """Returns the results of all windows. For each slide it adds the new quads, removes the expired ones, and runs the
    queries again."""
    window: deque[Quad] = deque()
    coming = iter(stream)
    triples: list[Triple] = []
    while new := list(islice(coming, task.slide)):
        store.extend(new)
        window.extend(new)
        while len(window) > task.work.window:
            store.remove(window.popleft())
        for query in queries:
            triples.extend(ask(store, query))
    return triples


def fixpoint(store: Store, queries: list[str]) -> list[Triple]:
    """Runs the queries repeatedly, until they add nothing."""
    inputs, size = set(store), 0
    while size != len(store):
        size = len(store)
        for query in queries:
            store.extend([Quad(*triple) for triple in ask(store, query)])
    return [quad.triple for quad in store if quad not in inputs]


def from_file_to_file(task: Task, queries: list[str]) -> Answer:
    """Does the same with parsing and printing. A fact that holds in several windows is written once."""
    store = Store()
    store.extend(quads(task.files.static))
    if task.work.window:
        names = dict.fromkeys(over_windows(store, quads(task.files.plain), queries, task))
    else:
        store.extend(quads(task.files.plain))
        names = dict.fromkeys(fixpoint(store, queries))
    with task.files.out.open("w") as out:
        out.writelines(f"{line}\n" for line in lines(names))
    return Answer(written(task.files.out))
