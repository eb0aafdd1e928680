"""Documents in Turtle, TriG, RDF/XML, JSON-LD and Jelly as statements: whole ones, and those that come while they are
read."""

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
    placed,
    reason_of,
    relabel,
)

BLOCK = 10_000
"""Statements that a document is handed on in at a time."""

_CHUNK = 1 << 17  # bytes that are read at a time of what comes while it is read


class Block(NamedTuple):
    """What is handed on of a document at a time. lost: the reason and the text of statements that cannot be used."""

    statements: list[Statement]
    lost: list[tuple[str, str]]


def parse_document(
    input: IO[bytes], format: Format, base: str | None, own: str, longest: int | None = None
) -> Iterator[Block]:
    """The statements of a document in blocks. Raises Malformed at the first error, when all that came before it has
    been handed on.

    own: the document's `suffix`. longest: it comes while it is read. Then what is complete is handed on as soon as it
    is there; where no statement ends in so many bytes the rest is malformed. Its blank nodes keep their labels, which
    are forgotten. Otherwise they are numbered in the order in which they occur, so that it can be read again.
    """
    if format.binary:
        from squall.streams.formats import jelly

        yield from (Block(statements, []) for statements in jelly.statements(input, own))
    elif longest is None:
        yield from _whole(input, format.syntax, base, own)
    else:
        yield from _coming(input, format.syntax, base, own, longest)


def parse_graphs(input: IO[bytes], format: Format, base: str | None, own: str) -> dict[str, list[Triple]]:
    """The triples of a document by the name of their graph (a term's text, ``""`` for the default graph).

    Raises Malformed at the first error: nothing of a document that is broken is handed on.
    """
    graphs: dict[str, list[Triple]] = {}
    for block in list(parse_document(input, format, base, own)):
        for reason, _ in block.lost:
            raise Malformed(reason, None)
        for graph, triples in in_graphs(block.statements):
            graphs.setdefault(graph, []).extend(triples)
    return graphs


def _whole(input: IO[bytes], syntax: RdfFormat, base: str | None, own: str) -> Iterator[Block]:
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
                    if len(quads) == BLOCK:
                        break
        except SyntaxError as error:
            yield _block(quads, rename)
            raise _malformed(error) from error
        yield _block(quads, rename)
        if len(quads) < BLOCK:
            return
        quads = []


def _coming(input: IO[bytes], syntax: RdfFormat, base: str | None, own: str, longest: int) -> Iterator[Block]:
    rename = relabel(own)
    open_ = 0  # bytes since a statement has ended
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
            open_ = len(data) + (0 if quads else open_)
            if open_ > longest:
                raise Malformed(f"no statement ends in {longest} bytes", None)
    finally:
        parser.close()


class _Parser:
    """A parser to which bytes are given as they come.

    The library asks for bytes where it needs them, so it has a thread of its own, which works while more are given and
    only then.
    """

    def __init__(self, syntax: RdfFormat, base: str | None) -> None:
        self._given = SimpleQueue[bytes | None]()
        self._done = SimpleQueue[Exception | None]()
        self._quads: list[pyoxigraph.Quad] = []
        self._rest: bytes | None = None
        """What the library has not read of them; None before there are any."""
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=(syntax, base), name="parses", daemon=True)
        self._thread.start()

    def parse(self, data: bytes) -> tuple[list[pyoxigraph.Quad], Exception | None]:
        """What ends in more bytes (``b""``: there are no more), and the error behind it, if there is one; nothing more
        can be given then."""
        self._given.put(data)
        error = self._done.get()
        quads, self._quads = self._quads, []
        return quads, error

    def close(self) -> None:
        """Nothing more is given."""
        self._given.put(None)
        self._thread.join()

    def read(self, size: int) -> bytes:
        """What the library reads."""
        if not self._rest and not self._ended:
            if self._rest is not None:
                self._done.put(None)
            self._rest = self._given.get()
            self._ended = self._rest == b""
        if self._rest is None:
            raise _Closed
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _run(self, syntax: RdfFormat, base: str | None) -> None:
        try:
            with bounded():
                for quad in pyoxigraph.parse(self, format=syntax, base_iri=base):  # type: ignore[arg-type]
                    self._quads.append(quad)
            self._done.put(None)
        except _Closed:
            pass
        except Exception as error:  # raised again where the reader can be heard
            self._done.put(error)


class _Closed(Exception):
    """Nobody wants to know what else there is."""


def _block(quads: list[pyoxigraph.Quad], rename: Callable[[str], Term]) -> Block:
    try:
        return Block(placed(quads, rename), [])
    except SyntaxError:
        unsupported = [quad for quad in quads if isinstance(quad.object, pyoxigraph.Triple)]
        usable = [quad for quad in quads if not isinstance(quad.object, pyoxigraph.Triple)]
        return Block(placed(usable, rename), [(TRIPLE_TERMS, str(quad)) for quad in unsupported])


def _malformed(error: SyntaxError) -> Malformed:
    return Malformed(reason_of(error), error.lineno)
