"""The formats of RDF that can be read, and what turns their bytes into triples (pyoxigraph does the parsing).

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
from squall.streams.formats.fast_ntriples import statements
from squall.streams.formats.timestamps import time_of

T = TypeVar("T")
Statement = Triple | Quad
"""A triple of the default graph, or a quad of a named one."""
Timed = tuple[int, Statement]
Bad = tuple[int, str, str]
"""A malformed line: its index, the reason, its text."""

LONGEST = 1 << 24
"""Bytes of a line, a frame or a message at most, where they come from elsewhere and nothing else limits them."""

TRIPLE_TERMS = "triple terms (RDF 1.2) are not supported"


@dataclass(frozen=True)
class Format:
    """A format by name, with its file endings, and the syntax of its statements. `lines`: one statement per line, so
    that a broken one costs itself only; `timed`: it says times, `.ntt` and `.nqt` at the beginning of each line;
    `removals`: it says as well what ends; `binary`: it is no text (Jelly, which has what N-Quads have); `messages`: it
    puts statements together (`squall.streams.formats.rdf_messages`)."""

    name: str
    endings: tuple[str, ...]
    syntax: RdfFormat
    lines: bool = False
    timed: bool = False
    removals: bool = False
    binary: bool = False
    messages: bool = False

    @property
    def media_type(self) -> str:
        if self.binary:
            return "application/x-jelly-rdf"
        return f"{self.syntax.media_type}; version=1.2-messages" if self.messages else str(self.syntax.media_type)


FORMATS = (
    Format("nt", (".nt",), RdfFormat.N_TRIPLES, lines=True),
    Format("ntt", (".ntt",), RdfFormat.N_TRIPLES, lines=True, timed=True),
    Format("nq", (".nq",), RdfFormat.N_QUADS, lines=True),
    Format("nqt", (".nqt",), RdfFormat.N_QUADS, lines=True, timed=True),
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
)
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
    """

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line


def named(name: str) -> tuple[Format, bool]:
    """The format of a name such as ``nt`` or ``nt.gz``, and whether it is compressed. Raises UsageError; PluginError
    where the library for it is not installed."""
    plain = name.removesuffix(".gz")
    if plain not in BY_NAME:
        raise UsageError(f"there is no format `{name}`", hint=f"formats: {', '.join(BY_NAME)}, each also with .gz")
    check_library(plain)
    return BY_NAME[plain], plain != name


def check_library(name: str) -> None:
    """Raises PluginError where what a format needs is not installed."""
    if name in BY_NAME and BY_NAME[name].binary and find_spec("pyjelly") is None:
        hint = install_hint("squall[jelly]")
        raise PluginError(f"the format `{name}` needs `pyjelly`, which is not installed", hint=hint)


def of_path(path: str) -> tuple[Format, bool] | None:
    """The format of a file by its ending, and whether it is compressed; None if the ending is not known."""
    plain = path.removesuffix(".gz")
    for ending, format in _BY_ENDING.items():
        if plain.endswith(ending):
            return format, plain != path
    return None


def infer_format(path: str, format_name: str) -> tuple[Format, bool]:
    """The format given by name, or else by the path's ending. Raises UsageError where it cannot be told, and as `named`
    does."""
    if format_name:
        format, compressed = named(format_name)
        return format, compressed or path.endswith(".gz")
    if (inferred := of_path(path)) is not None:
        check_library(inferred[0].name)
        return inferred
    endings = ", ".join(_BY_ENDING)
    raise UsageError(
        f"the format of `{path}` cannot be inferred from its name",
        hint=f"known endings: {endings}, each also with .gz; or name it: `{path}?format=nt`",
    )


def suffix(document: str) -> str:
    """What makes the blank node labels of a document its own: the same for each run, different for each document."""
    return "." + blake2b(document.encode(), digest_size=6).hexdigest()


def parse_lines(
    lines: Sequence[str | bytes], document: str, timed: bool = False, format: str = "nt", time: int = 0
) -> tuple[list[Timed], list[Bad]]:
    """The statements of lines of N-Triples or N-Quads (`format`: ``nt``, ``nq``); if `timed`, with a time before each.

    Returns (time, statement) pairs in order, and (index of the line, reason, text) for each line that is malformed.
    `time` (integer ms) is that of untimed lines. Depends on nothing else, so that it can run in any process.
    """
    block = joined(lines)
    syntax, own = BY_NAME[format].syntax, suffix(document)
    if timed:
        return parse_timed(block, syntax, own)
    facts, bad = parse_block(block, syntax, own)
    return [(time, fact) for fact in facts], bad


def joined(lines: Sequence[str | bytes]) -> bytes:
    """Lines, with or without their ends, as one block."""
    encoded = (line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass") for line in lines)
    return b"\n".join(line.rstrip(b"\r\n") for line in encoded)


def parse_block(block: bytes, syntax: RdfFormat, own: str) -> tuple[list[Statement], list[Bad]]:
    """The statements of whole lines, all at once; in halves if that fails, to find out which are malformed.

    `own`: the document's `suffix`. Returns statements and (index of the line, reason, text).
    """
    try:
        return _statements(block, syntax, own), []
    except SyntaxError:
        parse = partial(_statements, syntax=syntax, own=own)
        return _halves(block.split(b"\n"), parse, parse)


def in_graphs(statements: Iterable[Statement]) -> Iterator[tuple[str, list[Triple]]]:
    """The triples of statements, each run of those in one graph behind its name."""
    for graph, run in groupby(statements, key=_graph):
        yield graph, [statement if isinstance(statement, Triple) else Triple(*statement[:3]) for statement in run]


def _graph(statement: Statement) -> str:
    return statement.graph if isinstance(statement, Quad) else ""


_IS_STAMP = re.compile(r"\S+").fullmatch
_make = cast(Callable[[Sequence[str]], Triple], partial(tuple.__new__, Triple))  # faster than Triple._make


def _statements(block: bytes, syntax: RdfFormat, own: str) -> list[Statement]:
    parsed_statements = _plain(block, own)
    return _parsed(block, syntax, own) if parsed_statements is None else parsed_statements


def _plain(block: bytes, own: str) -> list[Statement] | None:
    plain_statements = statements(block)
    return None if plain_statements is None else list(plain_statements.triples(own))


def _parsed(block: bytes, syntax: RdfFormat, own: str) -> list[Statement]:
    rename = relabel(own)
    with bounded():
        parsed = pyoxigraph.parse(block, format=syntax)
        return [*_texts(parsed, rename)] if syntax == RdfFormat.N_TRIPLES else placed(list(parsed), rename)


_TOO_LONG = "buffer maximal size"
"""What the library says of a term that is longer than it takes."""


@contextmanager
def bounded() -> Iterator[None]:
    """What is longer than the library takes, which is 16 MiB for a term, is malformed (SyntaxError)."""
    try:
        yield
    except MemoryError as error:
        if _TOO_LONG not in str(error):
            raise
        raise SyntaxError(f"a term is longer than {LONGEST} bytes") from error


def relabel(own: str) -> Callable[[str], Term]:
    """What makes the labels of blank nodes those of one document: they end in its `suffix`."""
    return lambda label: Term(f"{label}{own}")


def placed(quads: Sequence[pyoxigraph.Quad], rename: Callable[[str], Term]) -> list[Statement]:
    """Statements, those in a named graph as quads. rename: what becomes of the labels of blank nodes. Raises
    SyntaxError where there are triple terms."""
    triples = _texts((quad.triple for quad in quads), rename)
    if all(isinstance(quad.graph_name, pyoxigraph.DefaultGraph) for quad in quads):
        return [*triples]
    names = [_name(quad.graph_name, rename) for quad in quads]
    return [Quad(*triple, name) if name else triple for triple, name in zip(triples, names, strict=True)]


def _name(graph: Any, rename: Callable[[str], Term]) -> Term | None:
    if isinstance(graph, pyoxigraph.DefaultGraph):
        return None
    return rename(str(graph)) if isinstance(graph, pyoxigraph.BlankNode) else Term(str(graph))


def _texts(triples: Any, rename: Callable[[str], Term]) -> list[Triple]:
    """Serialised all at once and split: three times as fast as asking each term for its text."""
    text = cast(bytes, pyoxigraph.serialize(triples, format=RdfFormat.N_TRIPLES)).decode()
    split_triples = [_make(line.split(" ", 2)) for line in text.split(" .\n")[:-1]]
    if "<<(" in text and any(triple.object.startswith("<<(") for triple in split_triples):
        raise SyntaxError(TRIPLE_TERMS)
    return [_renamed(triple, rename) for triple in split_triples] if "_:" in text else split_triples


def _renamed(triple: Triple, rename: Callable[[str], Term]) -> Triple:
    subject, predicate, object = triple
    if subject[0] == "_":
        subject = rename(subject)
    if object[0] == "_":
        object = rename(object)
    return Triple(subject, predicate, object)


def _halves(
    lines: Sequence[bytes], parse_whole: Callable[[bytes], list[T]], single: Callable[[bytes], list[T]], first: int = 0
) -> tuple[list[T], list[Bad]]:
    """What can be read of lines that cannot be read all at once: they are halved until a malformed one is alone."""
    if len(lines) == 1:
        return _single(lines[0], single, first)
    results: list[T] = []
    bad: list[Bad] = []
    middle = len(lines) // 2
    for start, half in ((first, lines[:middle]), (first + middle, lines[middle:])):
        try:
            results += parse_whole(b"\n".join(half))
        except SyntaxError:
            good, malformed = _halves(half, parse_whole, single, start)
            results += good
            bad += malformed
    return results, bad


def _single(line: bytes, parse: Callable[[bytes], list[T]], index: int) -> tuple[list[T], list[Bad]]:
    try:
        return parse(line), []
    except SyntaxError as error:
        return [], [(index, reason_of(error), line.decode("utf-8", "replace").rstrip("\r\n"))]


def parse_timed(block: bytes, syntax: RdfFormat, own: str) -> tuple[list[Timed], list[Bad]]:
    """As `parse_block`, of lines that begin with a time. Returns (time, statement) pairs in order, and the bad
    lines."""
    try:
        return _timed_at_once(block, syntax, own), []
    except SyntaxError:
        parse_whole, single = (
            partial(_timed_at_once, syntax=syntax, own=own),
            partial(_timed_line, syntax=syntax, own=own),
        )
        return _halves(block.split(b"\n"), parse_whole, single)


def _timed_at_once(block: bytes, syntax: RdfFormat, own: str) -> list[Timed]:
    if (plain := _timed_plain(block, own)) is not None:
        return plain
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
    # A carriage return ends a statement as well, and a comment has none: then they cannot be paired with times.
    if b"\r" in document_bytes or len(parsed_statements) != len(times):
        raise SyntaxError("a line does not hold one statement")
    return list(zip(times, parsed_statements, strict=True))


def _timed_plain(block: bytes, own: str) -> list[Timed] | None:
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
    """Without the parser's place, which counts from where the block begins."""
    return _PLACE.sub("", error.msg or str(error))
