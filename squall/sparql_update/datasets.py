"""RDF data sets, a default graph and named graphs, as values; read from files, and written to them.

Source: RDF 1.1 Concepts, section 4.
"""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, cast

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.errors import SinkError, SourceError, UsageError
from squall.rdf import Term, Triple, is_iri
from squall.streams import address
from squall.streams.formats import BY_NAME, FORMATS, Format, Malformed, of_path, suffix, told
from squall.streams.formats.parsing import parse_graphs

Graph = frozenset[Triple]
Quad = tuple[Term, Term, Term, Term | None]
"""A triple and the name of its graph, None for the default graph."""

WRITTEN = tuple(one.name for one in FORMATS if not (one.timed or one.binary or one.messages or one.name == "rdf"))
"""The formats that a data set can be written in, by name. (RDF/XML has no names for many predicates.)"""


@dataclass(frozen=True)
class Dataset:
    """A default graph, and named graphs by the terms of their IRIs. A named graph may be empty."""

    default: Graph = frozenset()
    named: Mapping[Term, Graph] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "default", frozenset(self.default))
        graphs = {name: frozenset(graph) for name, graph in self.named.items()}
        object.__setattr__(self, "named", MappingProxyType(graphs))

    def __or__(self, other: Dataset) -> Dataset:
        """The union, graph by graph. Equal blank nodes stay equal."""
        names = dict.fromkeys((*self.named, *other.named))
        named = {name: self.named.get(name, Graph()) | other.named.get(name, Graph()) for name in names}
        return Dataset(self.default | other.default, named)

    def quads(self) -> Iterator[Quad]:
        """Every triple with its graph: the default graph first, then the others by name, each in the order of terms."""
        for triple in sorted(self.default):
            yield (*triple, None)
        for name in sorted(self.named):
            for triple in sorted(self.named[name]):
                yield (*triple, name)


# Reading


def read(uri: str, base: str | None = None, scope: str = "") -> Dataset:
    """The data set in a file, or on standard input (``-?format=trig``): a path or ``file:`` address, whose one option
    is ``format``; ``.gz`` says that it is compressed. A document in a format without named graphs is a default graph.

    base: the IRI against which relative ones are resolved; by default that of the file. scope: blank nodes are those of
    this document and scope; read twice with the same, they are the same.

    Raises UsageError if the format cannot be told or knows times, SourceError if the file cannot be read, is malformed,
    or has a graph with a blank node for a name, which SPARQL does not know.
    """
    place = address.parse(uri, "stdin")
    place.only("format")
    if place.scheme not in ("file", "stdin"):
        raise UsageError(f"`{uri}` is neither a file nor standard input (`-`)")
    format, compressed = told(place.path, place.get("format"))
    if format.timed or format.messages:
        what = "timed" if format.timed else "a log of messages"
        raise UsageError(f"`{uri}` is {what}: it is no data set", hint="`squall build` reads streams")
    if base is None and place.path != "-":
        base = Path(place.path).absolute().as_uri()
    graphs = _graphs(place.path, format, compressed, base, suffix(f"{place.path}{scope}"))
    default = graphs.pop("", [])
    return Dataset(frozenset(default), {_name(name, uri): frozenset(graph) for name, graph in graphs.items()})


def _graphs(path: str, format: Format, compressed: bool, base: str | None, own: str) -> dict[str, list[Triple]]:
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as stored:
            file = cast(IO[bytes], gzip.GzipFile(fileobj=stored)) if compressed else stored
            return parse_graphs(file, format, base, own)
    except Malformed as error:
        place = path if error.line is None else f"{path}:{error.line}"
        raise SourceError(f"{place}: {error.reason}") from error
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"`{path}` cannot be read: {reason}") from error


def _name(name: str, uri: str) -> Term:
    if not is_iri(name):
        raise SourceError(f"`{uri}` has a graph whose name is a blank node", hint="give it an IRI")
    return Term(name)


# Writing


def writable(path: str, name: str | None = None) -> Format:
    """The format to write in: by its name, or else by the path's ending; N-Quads on standard output (``-``).

    Raises UsageError where there is none such.
    """
    if name is None:
        found = (BY_NAME["nq"], False) if path == "-" else of_path(path)
        if found is None:
            raise UsageError(f"the format of `{path}` cannot be told from its name", hint="name it: `--format nq`")
        name = found[0].name
    if name not in WRITTEN:
        raise UsageError(f"a data set cannot be written as `{name}`", hint=f"formats: {', '.join(WRITTEN)}")
    return BY_NAME[name]


def encoded(dataset: Dataset, format: Format) -> bytes:
    """The document of a data set, the same for equal ones. A graph that is empty leaves nothing in it.

    Raises SinkError where the format cannot hold it.
    """
    if not format.syntax.supports_datasets and any(dataset.named.values()):
        quads = [one.name for one in FORMATS if one.syntax.supports_datasets and one.name in WRITTEN]
        raise SinkError(f"the format `{format.name}` has no named graphs", hint=f"formats that do: {', '.join(quads)}")
    lines = _lines(dataset.quads())
    if format.lines:
        return lines
    parsed = pyoxigraph.parse(lines, format=RdfFormat.N_QUADS, lenient=True)
    facts = parsed if format.syntax.supports_datasets else (quad.triple for quad in parsed)
    return cast(bytes, pyoxigraph.serialize(facts, format=format.syntax))


def _lines(quads: Iterable[Quad]) -> bytes:
    return "".join(f"{' '.join(part for part in quad if part)} .\n" for quad in quads).encode()


def write(document: bytes, path: str) -> None:
    """Writes a document to a path, compressed if it ends in ``.gz``. What was there is replaced at once, or stays.

    Raises SinkError where the system refuses.
    """
    target = Path(path).resolve()
    content = gzip.compress(document) if path.endswith(".gz") else document
    try:
        if target.exists() and not target.is_file():  # a pipe, say
            target.write_bytes(content)
        else:
            _replace(target, content)
    except OSError as error:
        raise SinkError(f"`{path}` cannot be written: {error.strerror}") from error


def _replace(target: Path, content: bytes) -> None:
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
