"""The manifests of the W3C's tests, and their results: solutions, booleans, graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyoxigraph
from pyoxigraph import NamedNode, RdfFormat

from squall.rdf import RDF, Term, Triple, is_literal, parts, term

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
RDFS_LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")

Node = pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal


@dataclass(frozen=True)
class Solutions:
    """A result that consists of solutions. `ordered` says whether their order counts."""

    names: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    ordered: bool = False


class Graph:
    """An RDF document that can be queried. A store of pyoxigraph would not keep numbers as they are written."""

    def __init__(self, path: Path) -> None:
        self.quads = [*pyoxigraph.parse(path=str(path), format=_format(path), base_iri=path.as_uri())]

    def values(self, subject: Node, predicate: str) -> list[Node]:
        verb = NamedNode(predicate)
        return [quad.object for quad in self.quads if quad.subject == subject and quad.predicate == verb]

    def value(self, subject: Node, predicate: str) -> Node | None:
        return next(iter(self.values(subject, predicate)), None)

    def members(self, subject: Node, predicate: str) -> list[Node]:
        """Returns the values of a property. A list is replaced by its members."""
        nodes: list[Node] = []
        for value in self.values(subject, predicate):
            first = self.value(value, f"{RDF}first")
            if first is None:
                nodes.append(value)
            while first is not None:
                nodes.append(first)
                value = self.values(value, f"{RDF}rest")[0]
                first = self.value(value, f"{RDF}first")
        return nodes

    def test(self, name: str) -> Node:
        """Returns the test with this name, in whatever namespace it is."""
        action = NamedNode(MF + "action")
        results = [quad.subject for quad in self.quads if quad.predicate == action]
        (test,) = [item for item in results if isinstance(item, NamedNode) and item.value.endswith(f"#{name}")]
        return test

    def subjects(self, predicate: str, object: Node) -> list[Node]:
        verb = NamedNode(predicate)
        return [quad.subject for quad in self.quads if quad.predicate == verb and quad.object == object]


@cache
def manifest(folder: Path) -> Graph:
    """Returns the manifest of a folder."""
    return Graph(folder / "manifest.ttl")


def _format(path: Path) -> RdfFormat:
    result = RdfFormat.from_extension(path.suffix[1:])
    assert result is not None, f"no format of {path.name}"
    return result


def path_of(node: Node) -> Path:
    """Returns the path of a ``file:`` IRI."""
    return Path(unquote(urlparse(node.value).path))


def triples(path: Path) -> tuple[Triple, ...]:
    """Returns the triples of a document, with blank nodes of its own."""
    quads = pyoxigraph.parse(path=str(path), format=_format(path), base_iri=path.as_uri(), rename_blank_nodes=True)
    return tuple(Triple(term(quad.subject), term(quad.predicate), term(quad.object)) for quad in quads)


def solutions(path: Path) -> Solutions | bool:
    """Returns the solutions or the boolean of a result, in one of SPARQL's formats or in the vocabulary of the
    tests."""
    if path.suffix in (".ttl", ".rdf"):
        return _result_set(path)
    form = pyoxigraph.QueryResultsFormat.from_extension(path.suffix[1:])
    result = pyoxigraph.parse_query_results(path=str(path), format=form)
    if isinstance(result, pyoxigraph.QueryBoolean):
        return bool(result)
    names = tuple(variable.value for variable in result.variables)
    rows = [tuple(None if cell is None else term(cell) for cell in row) for row in result]
    return Solutions(names, tuple(rows))


def is_result_set(path: Path) -> bool:
    """Returns whether a document holds solutions, and not a constructed graph."""
    graph = Graph(path)
    return bool(graph.subjects(RDF + "type", NamedNode(RS + "ResultSet")))


def _result_set(path: Path) -> Solutions | bool:
    graph = Graph(path)
    (result,) = graph.subjects(RDF + "type", NamedNode(RS + "ResultSet"))
    boolean = graph.value(result, RS + "boolean")
    if boolean is not None:
        return boolean.value == "true"
    names = tuple(sorted(name.value for name in graph.values(result, RS + "resultVariable")))
    value = graph.values(result, RS + "solution")
    places = [graph.value(item, RS + "index") for item in value]
    ordered = bool(value) and None not in places
    if ordered:
        value = [item for _, item in sorted(zip(places, value, strict=True), key=lambda pair: int(pair[0].value))]  # type: ignore[union-attr]
    return Solutions(names, tuple(_solution(graph, item, names) for item in value), ordered)


def _solution(graph: Graph, solution: Node, names: Iterable[str]) -> tuple[Term | None, ...]:
    bound = {}
    for binding in graph.values(solution, RS + "binding"):
        name, value = graph.value(binding, RS + "variable"), graph.value(binding, RS + "value")
        assert name is not None
        assert value is not None
        bound[name.value] = term(value)
    return tuple(bound.get(name) for name in names)


def lexical(rows: Iterable[Iterable[Term | None]]) -> Iterator[tuple[Term, ...]]:
    """Yields rows as CSV has them: as text without datatypes."""
    for row in rows:
        yield tuple(csv_cell("" if cell is None else _plain(cell)) for cell in row)


def csv_cell(text: str) -> Term:
    """Returns a cell of CSV as something that compares like a term."""
    return Term(text if text.startswith("_:") else f'"{text}"')


def _plain(cell: Term) -> str:
    if cell[0] == "_":
        return cell
    return parts(cell).lexical if is_literal(cell) else cell[1:-1]
