"""Parses documents in Turtle, TriG, RDF/XML, JSON-LD and Jelly, either complete ones or incrementally."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from queue import SimpleQueue
from typing import IO, NamedTuple, cast

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.rdf import Term, Triple
from squall.streams.formats import (
    Format,
    Malformed,
    Statement,
    bounded,
    in_graphs,
    label_suffixer,
    reason_of,
    statements_of_quads,
    unsupported_reason,
)
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.text_input import TextInput

_CHECKED_TERMS = 10_000
"""The number of IRIs and language tags whose check is remembered."""

_LENIENT = (RdfFormat.TURTLE, RdfFormat.TRIG, RdfFormat.RDF_XML)
"""The formats of which a statement with a malformed term costs only itself: these terms are checked here."""


class UnusableStatement(NamedTuple):
    """A statement that cannot be used: why, its text, and its line, from 1, or None if that is unknown."""

    reason: str
    text: str
    line: int | None = None


class Block(NamedTuple):
    """A block of statements of a document.

    Attributes:
        statements: The statements.
        unusable: The statements that cannot be used.
    """

    statements: list[Statement]
    unusable: list[UnusableStatement]


def parse_document(
    input: TextInput,
    format: Format,
    base: str | None,
    own: str,
    longest: int | None = None,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Iterator[Block]:
    """Yields the statements of a document, in blocks.

    Args:
        input: The bytes.
        format: The format.
        base: The IRI against which relative ones are resolved.
        own: The document's `suffix`.
        longest: None: the document is complete. Its blank nodes are numbered in their order, so that it can be read
            again. Otherwise it is parsed incrementally: statements are output as soon as they are complete, and if none
            ends within so many bytes, the rest is malformed. Blank nodes keep their labels, so that nothing has to be
            remembered.
        limits: How much is read and output at a time, and the most bytes of a frame.

    Raises:
        Malformed: There is a syntax error. All statements before it have been output. (A malformed IRI or language tag
            in Turtle, TriG and RDF/XML costs its statement only.)
    """
    if format.binary:
        from squall.streams.formats import jelly

        yield from (Block(statements, []) for statements in jelly.statements(cast(IO[bytes], input), own, limits))
    elif longest is None:
        yield from _complete(input, format.syntax, base, own, limits)
    else:
        yield from _incremental(input, format.syntax, base, own, longest, limits)


def parse_graphs(input: TextInput, format: Format, base: str | None, own: str) -> dict[str, list[Triple]]:
    """Returns the triples of a complete document, by the name of their graph (``""`` is the default graph).

    The input has not begun yet.

    Raises:
        Malformed: There is an error. Then nothing of the document is returned.
    """
    graphs: dict[str, list[Triple]] = {}
    if not input.begin():
        return graphs
    for block in list(parse_document(input, format, base, own)):
        for statement in block.unusable:
            raise Malformed(statement.reason, statement.line, statement.text)
        for graph, triples in in_graphs(block.statements):
            graphs.setdefault(graph, []).extend(triples)
    if not graphs and (reason := input.why_nothing()):
        raise Malformed(reason, None)
    return graphs


def _complete(input: TextInput, syntax: RdfFormat, base: str | None, own: str, limits: ReadLimits) -> Iterator[Block]:
    rename, sizes = _numbering(own), list[int]()
    if syntax in _LENIENT and not input.can_rewind:
        yield from _lenient(input, syntax, base, own, sizes, None, limits)
        return
    parsed = pyoxigraph.parse(cast(IO[bytes], input), format=syntax, base_iri=base)
    try:
        for quads in _quad_blocks(parsed, sizes, limits.statements_per_block):
            yield _block(quads, rename)
    except SyntaxError as error:
        if syntax not in _LENIENT:
            raise Malformed(reason_of(error), error.lineno) from error
        input.rewind()
        yield from _lenient(input, syntax, base, own, sizes, error.lineno, limits)


def _lenient(
    input: TextInput,
    syntax: RdfFormat,
    base: str | None,
    own: str,
    sizes: Sequence[int],
    line: int | None,
    limits: ReadLimits,
) -> Iterator[Block]:
    """Yields the statements of a document behind an error. Its terms are checked one by one.

    Args:
        input: The document, at its beginning.
        syntax: The format.
        base: The IRI against which relative ones are resolved.
        own: The document's `suffix`.
        sizes: The sizes of the blocks before the error.
        line: The line of the error, or None if it is unknown.
        limits: How much is read and output at a time.
    """
    rename, remaining_sizes = _numbering(own), list(sizes)
    lines = _LineByLine(input, limits.chunk_bytes)
    quads: list[pyoxigraph.Quad] = []
    unusable: list[UnusableStatement] = []
    try:
        with bounded():
            for quad in pyoxigraph.parse(cast(IO[bytes], lines), format=syntax, base_iri=base, lenient=True):
                reason = "" if remaining_sizes else _term_error(quad)
                if reason:
                    unusable.append(UnusableStatement(reason, str(quad), line or lines.number or None))
                    line = None
                else:
                    quads.append(quad)
                if remaining_sizes and len(quads) == remaining_sizes[0]:
                    remaining_sizes.pop(0)
                    _block(quads, rename)  # it has been output, and its blank nodes have been numbered
                    quads = []
                elif len(quads) + len(unusable) == limits.statements_per_block:
                    yield _block(quads, rename, unusable)
                    quads, unusable = [], []
    except SyntaxError as error:
        yield _block(quads, rename, unusable)
        raise Malformed(reason_of(error), error.lineno or lines.number or None) from error
    except Malformed:
        yield _block(quads, rename, unusable)
        raise
    yield _block(quads, rename, unusable)


def _quad_blocks(
    parsed: Iterator[pyoxigraph.Quad], sizes: list[int], block_size: int
) -> Iterator[list[pyoxigraph.Quad]]:
    """Yields quads in blocks, those before an error included, and adds the size of each to a list."""
    quads: list[pyoxigraph.Quad] = []
    failure: SyntaxError | Malformed | None = None
    while failure is None:
        try:
            with bounded():
                for quad in parsed:
                    quads.append(quad)
                    if len(quads) == block_size:
                        break
        except (SyntaxError, Malformed) as error:
            failure = error
        size = len(quads)
        if size:
            sizes.append(size)
        yield quads
        quads = []
        if failure is None and size < block_size:
            return
    raise failure


def _numbering(own: str) -> Callable[[str], Term]:
    """Returns a function that numbers the blank nodes of a document in their order."""
    labels: dict[str, Term] = {}
    return lambda label: labels.setdefault(label, Term(f"_:b{len(labels)}{own}"))


class _LineByLine:
    """The bytes of a document, a line at a time, so that the line of an error is known.

    Attributes:
        number: The number of the line that was read last, from 1.
    """

    def __init__(self, input: TextInput, chunk_bytes: int) -> None:
        self._input = input
        self._chunk_bytes = chunk_bytes
        self._data = b""
        self.number = 0
        self._is_line_begin = True

    def read(self, size: int = -1) -> bytes:
        if not self._data:
            self._data = self._input.read(self._chunk_bytes)
        self.number += self._is_line_begin and bool(self._data)
        end = self._data.find(b"\n") + 1 or len(self._data)
        line, self._data = self._data[: min(end, size)], self._data[min(end, size) :]
        self._is_line_begin = line.endswith(b"\n")
        return line


def _checked_block(quads: list[pyoxigraph.Quad], rename: Callable[[str], Term]) -> Block:
    """Returns the block of quads whose terms have not been checked. `rename` does not depend on earlier labels."""
    block = _block(quads, rename)
    if _ARE_PLAIN(" ".join({*chain.from_iterable(block.statements)}) + " "):
        return block
    reasons = list(map(_term_error, quads))
    unusable = [UnusableStatement(reason, str(quad)) for quad, reason in zip(quads, reasons, strict=True) if reason]
    usable = [quad for quad, reason in zip(quads, reasons, strict=True) if not reason]
    return _block(usable, rename, unusable) if unusable else block


_CHARACTERS = r"[A-Za-z0-9_./~:?&=;,+@!$'()*-]*+"
_IRI = rf"<(?:https?+://[A-Za-z0-9.-]++(?::[0-9]++)?+(?:/{_CHARACTERS}|)|urn:[A-Za-z0-9]++:{_CHARACTERS})(?:#{_CHARACTERS})?+>"
_ARE_PLAIN = re.compile(
    rf"""(?>(?:(?:{_IRI}|_:[A-Za-z0-9.]++|"(?>[^"\\]|\\.)*"(?:\^\^{_IRI}|@[a-z]{{2}}(?:-[a-z]{{2}})?+)?+)[ ])*)""",
    re.DOTALL,
).fullmatch
"""Whether terms, each followed by a blank, are such as need no closer look: most are."""


def _term_error(quad: pyoxigraph.Quad) -> str:
    """Returns what is wrong with the terms of a quad that has not been checked; ``""``: nothing."""
    for term in (quad.subject, quad.predicate, quad.object, quad.graph_name):
        if isinstance(term, pyoxigraph.NamedNode):
            error = _iri_error(term.value)
        elif isinstance(term, pyoxigraph.Literal):
            error = _tag_error(term.language) if term.language else _iri_error(term.datatype.value)
        else:
            error = ""
        if error:
            return error
    return ""


@lru_cache(_CHECKED_TERMS)
def _iri_error(iri: str) -> str:
    try:
        pyoxigraph.NamedNode(iri)
    except ValueError as error:
        return f"<{iri}> is not an IRI: {error}"
    return ""


@lru_cache(_CHECKED_TERMS)
def _tag_error(tag: str) -> str:
    try:
        pyoxigraph.Literal("", language=tag)
    except ValueError as error:
        return f"`{tag}` is not a language tag: {error}"
    return ""


def _incremental(
    input: TextInput, syntax: RdfFormat, base: str | None, own: str, longest: int, limits: ReadLimits
) -> Iterator[Block]:
    rename = label_suffixer(own)
    open_bytes = 0  # since the last end of a statement
    parser = _Parser(syntax, base)
    try:
        data = b"."
        while data:
            data = input.read(limits.chunk_bytes)
            quads, error = parser.parse(data)
            yield _checked_block(quads, rename) if syntax in _LENIENT else _block(quads, rename)
            if isinstance(error, SyntaxError):
                raise Malformed(reason_of(error), error.lineno or parser.line) from error
            if error is not None:
                raise error
            open_bytes = len(data) + (0 if quads else open_bytes)
            if open_bytes > longest:
                raise Malformed(f"no statement ends in {longest} bytes", None)
    finally:
        parser.close()


class _Parser:
    """An incremental parser, to which bytes are passed as they arrive.

    The library pulls bytes when it needs them. So it runs in a thread of its own, which only works during `parse`.

    Attributes:
        line: The number of the line, from 1, that it parses; None unless the format is RDF/XML, whose errors have no
            line of their own.
    """

    def __init__(self, syntax: RdfFormat, base: str | None) -> None:
        self.line = 1 if syntax == RdfFormat.RDF_XML else None
        self._input = SimpleQueue[bytes | None]()
        self._done = SimpleQueue[Exception | None]()
        self._quads: list[pyoxigraph.Quad] = []
        self._remaining: bytes | None = None
        """The bytes that the library has not read yet; None before the first."""
        self._ended = False
        self._ends_line = False
        """Whether the library has read a whole line."""
        self._thread = threading.Thread(target=self._run, args=(syntax, base), name="parses", daemon=True)
        self._thread.start()

    def parse(self, data: bytes) -> tuple[list[pyoxigraph.Quad], Exception | None]:
        """Parses more bytes.

        Args:
            data: The bytes; ``b""``: there are no more.

        Returns:
            The statements that they complete, and an error, if there is one. Nothing can be parsed after an error.
        """
        self._input.put(data)
        error = self._done.get()
        quads, self._quads = self._quads, []
        return quads, error

    def close(self) -> None:
        """Closes the parser."""
        self._input.put(None)
        self._thread.join()

    def read(self, size: int) -> bytes:
        """Returns bytes to the library, and waits for them."""
        if not self._remaining and not self._ended:
            if self._remaining is not None:
                self._done.put(None)
            self._remaining = self._input.get()
            self._ended = self._remaining == b""
        if self._remaining is None:
            raise _Closed
        if self.line is not None:  # a line at a time
            size = min(size, self._remaining.find(b"\n") + 1 or size)
            self.line += self._ends_line
            self._ends_line = self._remaining[:size].endswith(b"\n")
        data, self._remaining = self._remaining[:size], self._remaining[size:]
        return data

    def _run(self, syntax: RdfFormat, base: str | None) -> None:
        try:
            with bounded():
                lenient = syntax in _LENIENT
                for quad in pyoxigraph.parse(self, format=syntax, base_iri=base, lenient=lenient):  # type: ignore[arg-type]
                    self._quads.append(quad)
            self._done.put(None)
        except _Closed:
            pass
        except Exception as error:  # the thread of the reader raises it
            self._done.put(error)


class _Closed(Exception):
    """The parser was closed."""


def _block(
    quads: list[pyoxigraph.Quad], rename: Callable[[str], Term], unusable: Sequence[UnusableStatement] = ()
) -> Block:
    try:
        return Block(statements_of_quads(quads, rename), list(unusable))
    except SyntaxError:
        reasons = list(map(unsupported_reason, quads))
        usable = [quad for quad, reason in zip(quads, reasons, strict=True) if not reason]
        unsupported = [
            UnusableStatement(reason, str(quad)) for quad, reason in zip(quads, reasons, strict=True) if reason
        ]
        return Block(statements_of_quads(usable, rename), [*unusable, *unsupported])
