"""RDF datasets (a default graph and named graphs) as values, with functions that read and write their files.

Source: RDF 1.1 Concepts, section 4.
"""

from __future__ import annotations

import os
import shutil
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
from squall.streams.formats import BY_NAME, FORMATS, Format, Malformed, infer_format, of_path, suffix
from squall.streams.formats.compression import BY_NAME as COMPRESSION_BY_NAME
from squall.streams.formats.compression import check_installed, errors, split_ending
from squall.streams.formats.jsonld_contexts import outside_context
from squall.streams.formats.parsing import parse_graphs
from squall.streams.formats.reading import ReadProgress, Settings, decode
from squall.streams.formats.text_input import text_input
from squall.streams.mappings import options
from squall.streams.mappings.model import Records
from squall.streams.sources.byte_streams import open_file

Graph = frozenset[Triple]
Quad = tuple[Term, Term, Term, Term | None]
"""A triple and the name of its graph; None is the default graph."""

WRITABLE_FORMATS = tuple(
    format.name
    for format in FORMATS
    if not (format.timed or format.binary or format.messages or format.records or format.tuples or format.name == "rdf")
)
"""The formats in which a dataset can be written, by name. (RDF/XML has no names for many predicates.)"""


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
        """Returns the union, graph by graph. Equal blank nodes stay equal."""
        names = dict.fromkeys((*self.named, *other.named))
        named = {name: self.named.get(name, Graph()) | other.named.get(name, Graph()) for name in names}
        return Dataset(self.default | other.default, named)

    def quads(self) -> Iterator[Quad]:
        """Yields every triple with its graph: the default graph first, then the others by name, each in the order of
        terms.
        """
        for triple in sorted(self.default):
            yield (*triple, None)
        for name in sorted(self.named):
            for triple in sorted(self.named[name]):
                yield (*triple, name)


# Reading


def read(
    uri: str, base: str | None = None, scope: str = "", documents: Mapping[str, str] = MappingProxyType({})
) -> Dataset:
    """Reads the dataset of a file or of standard input (``-?format=trig``).

    Args:
        uri: A path or ``file:`` address, whose options are ``format``, ``context``, and those of records. Its ending
            says whether it is compressed. A document in a format without named graphs is a default graph.
        base: The base of relative IRIs; by default the IRI of the file.
        scope: Blank nodes belong to this document and scope. Read twice with the same scope, they are the same.
        documents: Files, by the IRIs for which they stand: contexts of JSON-LD.

    Raises:
        UsageError: The format cannot be determined, or has times.
        SourceError: The file cannot be read, is malformed, or has a graph whose name is a blank node, which SPARQL does
            not allow.
    """
    location = address.parse(uri, "stdin")
    location.only("format", "context", *options.OPTIONS)
    if location.scheme not in ("file", "stdin"):
        raise UsageError(f"`{uri}` is neither a file nor standard input (`-`)")
    format, compression = infer_format(location.path, location.get("format"), options.is_mapped(location))
    records = options.records_of(location, [format.name])
    is_timed = Settings("", "", 0, records=records).is_timed(format)
    if is_timed or format.messages:
        kind = "timed" if is_timed else "a log of messages"
        raise UsageError(f"`{uri}` is {kind}: it is no data set", hint="`squall run` reads streams")
    if format.tuples:
        raise UsageError(f"`{uri}` has quintuples: it is no data set", hint="`squall run` reads their times")
    if base is None and location.path != "-":
        base = Path(location.path).absolute().as_uri()
    name = f"{location.path}{scope}"
    context = outside_context(location, [format.name])
    if records is None:
        graphs = _graphs(location.path, format, compression, base, suffix(name), documents, context)
    else:
        graphs = _graphs_of_records(location.path, format, compression, name, records)
    default = graphs.pop("", [])
    return Dataset(frozenset(default), {_name(name, uri): frozenset(graph) for name, graph in graphs.items()})


def _graphs(
    path: str,
    format: Format,
    compression: str,
    base: str | None,
    suffix_text: str,
    documents: Mapping[str, str],
    context: str,
) -> dict[str, list[Triple]]:
    place = base if path == "-" else Path(path).absolute().as_uri()  # contexts are read beside the file
    try:
        with open_file(path, ReadProgress(), compression, None) as file:
            stream, files = cast(IO[bytes], file), tuple(documents.items())
            input = text_input(stream, format, base=place, documents=files, context=context)
            return parse_graphs(input, format, base, suffix_text)
    except Malformed as error:
        where = path if error.line is None else f"{path}:{error.line}"
        raise SourceError(f"{where}: {error.reason}") from error
    except errors() as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"`{path}` cannot be read: {reason}") from error


def _graphs_of_records(
    path: str, format: Format, compression: str, name: str, records: Records
) -> dict[str, list[Triple]]:
    """Returns the triples that a mapping makes of the records of a file, by the name of their graph."""
    graphs: dict[str, list[Triple]] = {}
    settings = Settings(format.name, "", 0, records=records)
    options.check_file(records, path, format.name, compression)
    try:
        with open_file(path, ReadProgress(), compression, None) as file:
            stream = cast(IO[bytes], file)
            for batch in decode(stream, name, format, settings, _RefusingLedger(path), ReadProgress()):
                for event in batch:
                    graphs.setdefault(event.graph, []).extend(cast("tuple[Triple, ...]", event.facts))
    except errors() as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"`{path}` cannot be read: {reason}") from error
    return graphs


class _RefusingLedger:
    """A ledger of a file of which everything has to be used."""

    def __init__(self, path: str) -> None:
        self._path = path

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """Raises SourceError."""
        place = self._path if line is None else f"{self._path}:{line}"
        raise SourceError(f"{place}: {reason}", hint=f"the record is: {text}" if text else None)


def _name(name: str, uri: str) -> Term:
    if not is_iri(name):
        raise SourceError(f"`{uri}` has a graph whose name is a blank node", hint="give it an IRI")
    return Term(name)


# Writing


def writable(path: str, name: str | None = None) -> Format:
    """Returns the format to write in: by its name, or else by the path's ending; N-Quads on standard output (``-``).

    Raises:
        UsageError: There is no such format.
    """
    if name is None:
        detected = (BY_NAME["nq"], "") if path == "-" else of_path(path)
        if detected is None:
            raise UsageError(f"the format of `{path}` cannot be inferred from its name", hint="name it: `--format nq`")
        name = detected[0].name
        check_installed(detected[1])
    if name not in WRITABLE_FORMATS:
        raise UsageError(f"a data set cannot be written as `{name}`", hint=f"formats: {', '.join(WRITABLE_FORMATS)}")
    return BY_NAME[name]


def encoded(dataset: Dataset, format: Format) -> bytes:
    """Returns the document of a dataset; it is the same for equal datasets. An empty graph leaves no trace in it.

    Raises:
        SinkError: The format cannot hold the dataset.
    """
    if not format.syntax.supports_datasets and any(dataset.named.values()):
        quads = [
            candidate.name
            for candidate in FORMATS
            if candidate.syntax.supports_datasets and candidate.name in WRITABLE_FORMATS
        ]
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
    """Writes a document to a path, compressed if its ending says so. The old file is replaced atomically, or stays.

    Raises:
        SinkError: The system refuses.
    """
    target = Path(path).resolve()
    compression = split_ending(path)[1]
    content = COMPRESSION_BY_NAME[compression].compress(document) if compression else document
    try:
        if target.exists() and not target.is_file():  # a pipe, say
            target.write_bytes(content)
        else:
            _replace(target, content)
    except OSError as error:
        raise SinkError(f"`{path}` cannot be written: {error.strerror}") from error


def _replace(target: Path, content: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
