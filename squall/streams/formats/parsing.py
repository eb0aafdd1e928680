"""Parses documents in Turtle, TriG, RDF/XML, JSON-LD and Jelly, either complete ones or incrementally."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import IO, NamedTuple

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.rdf import Term, Triple
from squall.streams.formats import (
    TRIPLE_TERMS,
    Format,
    Malformed,
    Statement,
    bounded,
    in_graphs,
    label_suffixer,
    reason_of,
    statements_of_quads,
)

STATEMENTS_PER_BLOCK = 10_000
"""The number of statements of a complete document that are output at a time."""

_CHUNK = 1 << 17
"""The number of bytes that the incremental parser reads at a time."""


class Block(NamedTuple):
    """A block of statements of a document.

    Attributes:
        statements: The statements.
        unusable: The reason and the text of each statement that cannot be used.
    """

    statements: list[Statement]
    unusable: list[tuple[str, str]]


def parse_document(
    input: IO[bytes], format: Format, base: str | None, own: str, longest: int | None = None
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

    Raises:
        Malformed: There is a syntax error. All statements before it have been output.
    """
    if format.binary:
        from squall.streams.formats import jelly

        yield from (Block(statements, []) for statements in jelly.statements(input, own))
    elif longest is None:
        yield from _complete(input, format.syntax, base, own)
    else:
        yield from _incremental(input, format.syntax, base, own, longest)


def parse_graphs(input: IO[bytes], format: Format, base: str | None, own: str) -> dict[str, list[Triple]]:
    """Returns the triples of a complete document, by the name of their graph (``""`` is the default graph).

    Raises:
        Malformed: There is an error. Then nothing of the document is returned.
    """
    graphs: dict[str, list[Triple]] = {}
    for block in list(parse_document(input, format, base, own)):
        for reason, _ in block.unusable:
            raise Malformed(reason, None)
        for graph, triples in in_graphs(block.statements):
            graphs.setdefault(graph, []).extend(triples)
    return graphs


def _complete(input: IO[bytes], syntax: RdfFormat, base: str | None, own: str) -> Iterator[Block]:
    labels: dict[str, Term] = {}
    quads: list[pyoxigraph.Quad] = []

    def rename(label: str) -> Term:
        return labels.setdefault(label, Term(f"_:b{len(labels)}{own}"))

    parsed = pyoxigraph.parse(input, format=syntax, base_iri=base)
    while True:
        try:
            with bounded():
                for quad in parsed:
                    quads.append(quad)
                    if len(quads) == STATEMENTS_PER_BLOCK:
                        break
        except SyntaxError as error:
            yield _block(quads, rename)
            raise _malformed(error) from error
        yield _block(quads, rename)
        if len(quads) < STATEMENTS_PER_BLOCK:
            return
        quads = []


def _incremental(input: IO[bytes], syntax: RdfFormat, base: str | None, own: str, longest: int) -> Iterator[Block]:
    rename = label_suffixer(own)
    open_bytes = 0  # since the last end of a statement
    parser = _Parser(syntax, base)
    try:
        data = b"."
        while data:
            data = input.read(_CHUNK)
            quads, error = parser.parse(data)
            yield _block(quads, rename)
            if isinstance(error, SyntaxError):
                raise _malformed(error) from error
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
    """

    def __init__(self, syntax: RdfFormat, base: str | None) -> None:
        self._input = SimpleQueue[bytes | None]()
        self._done = SimpleQueue[Exception | None]()
        self._quads: list[pyoxigraph.Quad] = []
        self._remaining: bytes | None = None
        """The bytes that the library has not read yet; None before the first."""
        self._ended = False
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
        data, self._remaining = self._remaining[:size], self._remaining[size:]
        return data

    def _run(self, syntax: RdfFormat, base: str | None) -> None:
        try:
            with bounded():
                for quad in pyoxigraph.parse(self, format=syntax, base_iri=base):  # type: ignore[arg-type]
                    self._quads.append(quad)
            self._done.put(None)
        except _Closed:
            pass
        except Exception as error:  # the thread of the reader raises it
            self._done.put(error)


class _Closed(Exception):
    """The parser was closed."""


def _block(quads: list[pyoxigraph.Quad], rename: Callable[[str], Term]) -> Block:
    try:
        return Block(statements_of_quads(quads, rename), [])
    except SyntaxError:
        unsupported = [quad for quad in quads if isinstance(quad.object, pyoxigraph.Triple)]
        usable = [quad for quad in quads if not isinstance(quad.object, pyoxigraph.Triple)]
        return Block(statements_of_quads(usable, rename), [(TRIPLE_TERMS, str(quad)) for quad in unsupported])


def _malformed(error: SyntaxError) -> Malformed:
    return Malformed(reason_of(error), error.lineno)
