"""The formats that can be read, and the functions that parse lines of those of RDF (with pyoxigraph).

`Timed N-Triples` (``.ntt``) is ours: each line is a time, blanks, and an N-Triples statement. The time is integer
milliseconds since the epoch, an ISO 8601 time (UTC where it names no zone), or ``-infinity`` (it has always held).

`Timed N-Quads` (``.nqt``) are the same with N-Quads. A statement in a named graph is read as a `squall.rdf.Quad`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from itertools import chain, groupby, repeat
from typing import Any, NamedTuple, TypeVar, cast

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.errors import PluginError, UsageError, install_hint
from squall.rdf import Quad, Term, Triple
from squall.streams.formats.compression import check_installed, endings, split_ending
from squall.streams.formats.fast_ntriples import statements
from squall.streams.formats.timestamps import time_of

T = TypeVar("T")
Statement = Triple | Quad
"""A triple of the default graph, or a quad of a named one."""
Timed = tuple[int, Statement]
Bad = tuple[int, str, str]
"""A malformed line: its index in the block, the reason, its text."""

MAX_UNIT_BYTES = 1 << 24
"""The most bytes of a line, frame or message of a live source."""

TRIPLE_TERMS = "triple terms (RDF 1.2) are not supported"
DIRECTIONS = "base directions of texts (`@en--ltr`, RDF 1.2) are not supported"
_DIRECTIONS = ("--ltr", "--rtl")
"""The ends of literals with a base direction."""

VERSION = re.compile(rb"""^[ \t]*VERSION[ \t]*("[^"\r\n]*"|'[^'\r\n]*')[ \t]*(?=#|\r?$)""", re.MULTILINE)
"""The version directive of N-Triples and N-Quads 1.2, which says nothing about statements."""


@dataclass(frozen=True)
class Format:
    """A format of RDF, or of records that a mapping makes RDF of.

    Attributes:
        name: Its name.
        endings: Its file endings.
        syntax: The syntax of its statements. Jelly has that of N-Quads.
        lines: Whether each line is a statement, so that a malformed one is a single dead letter.
        timed: Whether it has times; in ``.ntt`` and ``.nqt`` they begin each line.
        removals: Whether it may retract statements.
        binary: Whether it is binary (Jelly, Avro, Parquet).
        messages: Whether it groups statements to messages (`squall.streams.formats.rdf_messages`).
        records: Whether it has records and no RDF, and needs a mapping (`squall.streams.mappings`). Its syntax says
            which statements these may become.
        tuples: Whether its statements may have a begin and an end (`squall.streams.formats.quintuples`).
    """

    name: str
    endings: tuple[str, ...]
    syntax: RdfFormat
    lines: bool = False
    timed: bool = False
    removals: bool = False
    binary: bool = False
    messages: bool = False
    records: bool = False
    tuples: bool = False

    @property
    def media_type(self) -> str:
        """The media type of the format."""
        if self.records:
            return _RECORD_MEDIA_TYPES[self.name]
        if self.tuples:
            return "text/plain"
        if self.binary:
            return "application/x-jelly-rdf"
        return f"{self.syntax.media_type}; version=1.2-messages" if self.messages else str(self.syntax.media_type)


FORMATS = (
    Format("nt", (".nt",), RdfFormat.N_TRIPLES, lines=True),
    Format("ntt", (".ntt",), RdfFormat.N_TRIPLES, lines=True, timed=True),
    Format("nq", (".nq",), RdfFormat.N_QUADS, lines=True),
    Format("nqt", (".nqt",), RdfFormat.N_QUADS, lines=True, timed=True),
    Format("nt5", (".nt5",), RdfFormat.N_TRIPLES, lines=True, tuples=True),
    Format("rdfp", (".rdfp",), RdfFormat.N_QUADS, timed=True, removals=True),
    Format("ttl", (".ttl", ".turtle"), RdfFormat.TURTLE),
    Format("trig", (".trig",), RdfFormat.TRIG),
    Format("rdf", (".rdf", ".owl", ".xml"), RdfFormat.RDF_XML),
    Format("jsonld", (".jsonld",), RdfFormat.JSON_LD),
    Format("jelly", (".jelly",), RdfFormat.N_QUADS, binary=True),
    Format("nt-messages", (), RdfFormat.N_TRIPLES, messages=True),
    Format("nq-messages", (), RdfFormat.N_QUADS, messages=True),
    Format("ttl-messages", (), RdfFormat.TURTLE, messages=True),
    Format("trig-messages", (), RdfFormat.TRIG, messages=True),
    Format("jelly-messages", (), RdfFormat.N_QUADS, timed=True, binary=True, messages=True),
    Format("json", (".json",), RdfFormat.N_QUADS, records=True),
    Format("ndjson", (".ndjson", ".jsonl"), RdfFormat.N_QUADS, lines=True, records=True),
    Format("csv", (".csv",), RdfFormat.N_QUADS, records=True),
    Format("avro", (".avro",), RdfFormat.N_QUADS, binary=True, records=True),
    Format("parquet", (".parquet",), RdfFormat.N_QUADS, binary=True, records=True),
)
_RECORD_MEDIA_TYPES = {"json": "application/json", "ndjson": "application/x-ndjson", "csv": "text/csv",
                       "avro": "application/avro", "parquet": "application/vnd.apache.parquet"}  # fmt: skip
_LIBRARIES = {"jelly": "pyjelly", "jelly-messages": "pyjelly", "avro": "fastavro", "parquet": "pyarrow"}
"""The libraries that formats need."""
BY_NAME = {format.name: format for format in FORMATS}
_BY_ENDING = {ending: format for format in FORMATS for ending in format.endings}


class Message(NamedTuple):
    """The statements of one message of a log (`squall.streams.formats.rdf_messages`), and its time.

    Attributes:
        statements: Its triples and quads.
        time: Its time in integer ms, or None if it has none.
    """

    statements: list[Statement]
    time: int | None = None


class Malformed(Exception):
    """A syntax error in a document, from which on nothing can be read.

    Attributes:
        reason: What is wrong.
        line: The line number, from 1, or None if it is unknown.
        text: The text that is malformed, or ``""``.
    """

    def __init__(self, reason: str, line: int | None, text: str = "") -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line
        self.text = text


def format_named(name: str, mapped: bool = False) -> tuple[Format, str]:
    """Returns the format of a name such as ``nt`` or ``nt.gz``, and the name of its compression (``""``: none).

    Args:
        name: The name.
        mapped: Whether there is a mapping, which formats of records need.

    Raises:
        UsageError: There is no such format, or it needs a mapping.
        PluginError: A library is not installed.
    """
    plain, compression = split_ending(name)
    if plain not in BY_NAME:
        hint = f"formats: {', '.join(BY_NAME)}, each also with {endings()}"
        raise UsageError(f"there is no format `{name}`", hint=hint)
    if BY_NAME[plain].records and not mapped:
        raise UsageError(f"the format `{plain}` is not RDF, and needs a mapping", hint=_mapping_hint(plain))
    check_library(plain)
    check_installed(compression)
    return BY_NAME[plain], compression


_JSON_HINT = "JSON is RDF by a context, in it or in a file beside it: `format=jsonld&context=FILE`"


def _mapping_hint(name: str) -> str:
    """Returns the remedy for records without a mapping."""
    remedy = f"name the mapping that makes RDF of it: `format={name}&map=FILE`"
    alternatives = {"json": f"; or, {_JSON_HINT}", "ndjson": "; or, if squall has written it, `map=outputs`"}
    return remedy + alternatives.get(name, "")


def check_library(name: str) -> None:
    """Checks that the library of a format is installed. Raises PluginError if not."""
    library = _LIBRARIES.get(name)
    if library is not None and find_spec(library) is None:
        hint = install_hint(f"squall[{name.removesuffix('-messages')}]")
        raise PluginError(f"the format `{name}` needs `{library}`, which is not installed", hint=hint)


def of_path(path: str, mapped: bool = False) -> tuple[Format, str] | None:
    """Returns the format of a file by its ending, and its compression (``""``: none); None if the ending is unknown.

    Capitals do not matter.

    Args:
        path: The path.
        mapped: Whether there is a mapping. Without one, endings of records are unknown.
    """
    plain, compression = split_ending(path)
    for ending, format in _BY_ENDING.items():
        if plain.lower().endswith(ending) and (mapped or not format.records):
            return format, compression
    return None


def of_media_type(name: str) -> Format | None:
    """Returns the format of a media type without parameters, which has no times; None if it is unknown."""
    return next((format for format in FORMATS if format.endings and name in _media_types(format)), None)


def _media_types(format: Format) -> tuple[str, ...]:
    if format.timed or format.records or format.tuples:
        return ()
    return (format.media_type, *_OTHER_MEDIA_TYPES.get(format.name, ()))


_OTHER_MEDIA_TYPES = {"ttl": ("application/x-turtle",), "nq": ("text/x-nquads",), "trig": ("application/x-trig",)}
"""Media types that servers use besides those that are registered, by format."""


def infer_format(path: str, format_name: str, mapped: bool = False) -> tuple[Format, str]:
    """Returns the format of a file, by a name or else by its ending, and its compression (``""``: none).

    Args:
        path: The path of the file.
        format_name: The name of the format; ``""``: the ending decides.
        mapped: Whether there is a mapping, which formats of records need.

    Raises:
        UsageError: There is no such format, or the ending is unknown, or it needs a mapping.
        PluginError: A library is not installed.
    """
    if format_name:
        format, compression = format_named(format_name, mapped)
        compression = compression or split_ending(path)[1]
    elif (inferred := of_path(path, mapped)) is not None:
        format, compression = inferred
    elif (records := of_path(path, mapped=True)) is not None:
        raise UsageError(f"`{path}` is not RDF, and needs a mapping", hint=_mapping_hint(records[0].name))
    else:
        names = ", ".join(ending for ending, format in _BY_ENDING.items() if mapped or not format.records)
        hint = f"known endings: {names}, each also with {endings()}; or name it: `{path}?format=nt`"
        raise UsageError(f"the format of `{path}` cannot be inferred from its name", hint=hint)
    check_library(format.name)
    check_installed(compression)
    return format, compression


def suffix(document: str) -> str:
    """Returns the suffix of the blank node labels of a document: equal in all runs, different for each document."""
    return "." + blake2b(document.encode(), digest_size=6).hexdigest()


def parse_lines(
    lines: Sequence[str | bytes], document: str, timed: bool = False, format: str = "nt", time: int = 0
) -> tuple[list[Timed], list[Bad]]:
    """Parses lines of N-Triples or N-Quads. It depends on its arguments alone, so that it can run in any process.

    Args:
        lines: The lines, with or without their ends.
        document: The name of the document, whose blank nodes are its own.
        timed: Whether each line begins with a time.
        format: ``nt`` or ``nq``.
        time: The time of untimed lines, in integer ms.

    Returns:
        (time, statement) pairs in order, and (index of the line, reason, text) for each malformed line.
    """
    block = joined(lines)
    syntax, own = BY_NAME[format].syntax, suffix(document)
    if timed:
        return parse_timed(block, syntax, own)
    facts, bad = parse_block(block, syntax, own)
    return [(time, fact) for fact in facts], bad


def joined(lines: Sequence[str | bytes]) -> bytes:
    """Joins lines, with or without their ends, to one block."""
    encoded = (line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass") for line in lines)
    return b"\n".join(line.rstrip(b"\r\n") for line in encoded)


def parse_block(block: bytes, syntax: RdfFormat, own: str) -> tuple[list[Statement], list[Bad]]:
    """Parses a block of complete lines at once. If that fails, it bisects the block to find the malformed lines.

    Args:
        block: The lines.
        syntax: Their syntax.
        own: The document's `suffix`.

    Returns:
        The statements, and (index of the line, reason, text) for each malformed line.
    """
    try:
        return _statements(block, syntax, own), []
    except SyntaxError:
        block = VERSION.sub(b"", block) if syntax in _LINES else block
        parse = partial(_statements, syntax=syntax, own=own)
        return _bisect(block.split(b"\n"), parse, parse)


def in_graphs(statements: Iterable[Statement]) -> Iterator[tuple[str, list[Triple]]]:
    """Yields the triples of statements by graph: for each run in one graph, its name and the triples."""
    for graph, run in groupby(statements, key=_graph):
        yield graph, [statement if isinstance(statement, Triple) else Triple(*statement[:3]) for statement in run]


def _graph(statement: Statement) -> str:
    return statement.graph if isinstance(statement, Quad) else ""


_LINES = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
_IS_STAMP = re.compile(r"\S+").fullmatch
_new_triple = cast(Callable[[Sequence[str]], Triple], partial(tuple.__new__, Triple))  # faster than Triple._make


def _statements(block: bytes, syntax: RdfFormat, own: str) -> list[Statement]:
    parsed_statements = _parse_plain(block, own)
    return _parsed(block, syntax, own) if parsed_statements is None else parsed_statements


def _parse_plain(block: bytes, own: str) -> list[Statement] | None:
    plain_statements = statements(block)
    return None if plain_statements is None else list(plain_statements.triples(own))


def _parsed(block: bytes, syntax: RdfFormat, own: str) -> list[Statement]:
    rename = label_suffixer(own)
    with bounded():
        parsed = pyoxigraph.parse(block, format=syntax)
        return [*_texts(parsed, rename)] if syntax == RdfFormat.N_TRIPLES else statements_of_quads(list(parsed), rename)


_TOO_LONG = "buffer maximal size"
"""The message of the library for a term that is too long."""


@contextmanager
def bounded() -> Iterator[None]:
    """Raises SyntaxError within a context if a term is longer than the library supports (16 MiB)."""
    try:
        yield
    except MemoryError as error:
        if _TOO_LONG not in str(error):
            raise
        raise SyntaxError(f"a term is longer than {MAX_UNIT_BYTES} bytes") from error


def label_suffixer(own: str) -> Callable[[str], Term]:
    """Returns a function that appends the `suffix` of a document to labels of blank nodes."""
    return lambda label: Term(f"{label}{own}")


def statements_of_quads(quads: Sequence[pyoxigraph.Quad], rename: Callable[[str], Term]) -> list[Statement]:
    """Converts quads of the library to statements: triples of the default graph, and quads of named ones.

    Args:
        quads: The quads.
        rename: Renames the labels of blank nodes.

    Raises:
        SyntaxError: There are triple terms, or texts with a base direction.
    """
    triples = _texts((quad.triple for quad in quads), rename)
    if all(isinstance(quad.graph_name, pyoxigraph.DefaultGraph) for quad in quads):
        return [*triples]
    names = [_name(quad.graph_name, rename) for quad in quads]
    return [Quad(*triple, name) if name else triple for triple, name in zip(triples, names, strict=True)]


def unsupported_reason(quad: pyoxigraph.Quad) -> str:
    """Returns why a quad of the library has no statement; ``""``: it has one."""
    if isinstance(quad.object, pyoxigraph.Triple):
        return TRIPLE_TERMS
    return DIRECTIONS if isinstance(quad.object, pyoxigraph.Literal) and quad.object.direction is not None else ""


def _name(graph: Any, rename: Callable[[str], Term]) -> Term | None:
    if isinstance(graph, pyoxigraph.DefaultGraph):
        return None
    return rename(str(graph)) if isinstance(graph, pyoxigraph.BlankNode) else Term(str(graph))


def _texts(triples: Any, rename: Callable[[str], Term]) -> list[Triple]:
    """Converts triples of the library, by their common serialisation: three times as fast as term by term."""
    text = cast(bytes, pyoxigraph.serialize(triples, format=RdfFormat.N_TRIPLES)).decode()
    split_triples = [_new_triple(line.split(" ", 2)) for line in text.split(" .\n")[:-1]]
    if "<<(" in text and any(triple.object.startswith("<<(") for triple in split_triples):
        raise SyntaxError(TRIPLE_TERMS)
    if "--" in text and any(triple.object.endswith(_DIRECTIONS) for triple in split_triples):
        raise SyntaxError(DIRECTIONS)
    return [_renamed(triple, rename) for triple in split_triples] if "_:" in text else split_triples


def _renamed(triple: Triple, rename: Callable[[str], Term]) -> Triple:
    subject, predicate, object = triple
    if subject[0] == "_":
        subject = rename(subject)
    if object[0] == "_":
        object = rename(object)
    return Triple(subject, predicate, object)


def _bisect(
    lines: Sequence[bytes], parse_whole: Callable[[bytes], list[T]], single: Callable[[bytes], list[T]], first: int = 0
) -> tuple[list[T], list[Bad]]:
    """Parses lines of which some are malformed, by bisection."""
    if len(lines) == 1:
        return _single(lines[0], single, first)
    results: list[T] = []
    bad: list[Bad] = []
    middle = len(lines) // 2
    for start, half in ((first, lines[:middle]), (first + middle, lines[middle:])):
        try:
            results += parse_whole(b"\n".join(half))
        except SyntaxError:
            good, malformed = _bisect(half, parse_whole, single, start)
            results += good
            bad += malformed
    return results, bad


def _single(line: bytes, parse: Callable[[bytes], list[T]], index: int) -> tuple[list[T], list[Bad]]:
    try:
        return parse(line), []
    except SyntaxError as error:
        return [], [(index, reason_of(error), line.decode("utf-8", "replace").rstrip("\r\n"))]


def parse_timed(block: bytes, syntax: RdfFormat, own: str) -> tuple[list[Timed], list[Bad]]:
    """Parses a block of lines that begin with a time, as `parse_block` does.

    Returns:
        (time, statement) pairs in order, and (index of the line, reason, text) for each malformed line.
    """
    try:
        return _timed_at_once(block, syntax, own), []
    except SyntaxError:
        block = VERSION.sub(b"", block)
        parse_whole, single = (
            partial(_timed_at_once, syntax=syntax, own=own),
            partial(_timed_line, syntax=syntax, own=own),
        )
        return _bisect(block.split(b"\n"), parse_whole, single)


def _timed_at_once(block: bytes, syntax: RdfFormat, own: str) -> list[Timed]:
    if (timed_statements := _parse_timed_plain(block, own)) is not None:
        return timed_statements
    times: list[int] = []
    statements: list[bytes] = []
    stamp, time = b"", 0
    for line in block.split(b"\n"):
        fields = line.split(None, 1)
        if not fields or fields[0].startswith(b"#"):
            continue
        if fields[0] != stamp:
            stamp = fields[0]
            time = time_of(stamp.decode("utf-8", "replace"))
        times.append(time)
        statements.append(fields[-1].rstrip(b" \t\r"))
    document_bytes = b"\n".join(statements)
    parsed_statements = _statements(document_bytes, syntax, own)
    # A carriage return ends a statement too, and a comment has none: then they cannot be paired with times.
    if b"\r" in document_bytes or len(parsed_statements) != len(times):
        raise SyntaxError("a line does not hold one statement")
    return list(zip(times, parsed_statements, strict=True))


def _parse_timed_plain(block: bytes, own: str) -> list[Timed] | None:
    plain_statements = statements(block, timed=True)
    if plain_statements is None or not all(map(_IS_STAMP, plain_statements.stamps)):
        return None
    times = chain.from_iterable(map(repeat, map(time_of, plain_statements.stamps), plain_statements.sizes))
    return list(zip(times, plain_statements.triples(own), strict=True))


def _timed_line(line: bytes, syntax: RdfFormat, own: str) -> list[Timed]:
    fields = line.split(None, 1)
    if not fields or fields[0].startswith(b"#"):
        return []
    time = time_of(fields[0].decode("utf-8", "replace"))
    parsed_statements = _statements(fields[1] if len(fields) > 1 else b"", syntax, own)
    if len(parsed_statements) != 1:
        raise SyntaxError(f"{len(parsed_statements)} statements after the time, not one")
    return [(time, parsed_statements[0])]


_PLACE = re.compile(r"^Parser error at line \d+ (?:column \d+|between columns \d+ and \d+)?:? ?")


def reason_of(error: SyntaxError) -> str:
    """Returns the message of an error without the parser's position, which counts from the beginning of the block."""
    return _PLACE.sub("", error.msg or str(error))
