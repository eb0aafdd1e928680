"""Jelly, RDF in binary frames (https://w3id.org/jelly/dev/specification/serialization), read and written with pyjelly.

The input is a sequence of frames, each after its length, or a single frame. A frame of the output has one output, so
that it can be written at once; or, as a message, one evaluation, whose time is in its metadata.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b
from typing import IO, Any

import pyoxigraph
from google.protobuf.message import DecodeError
from pyjelly import jelly
from pyjelly.errors import JellyConformanceError
from pyjelly.options import LookupPreset, StreamParameters, StreamTypes
from pyjelly.parse.decode import Adapter, Decoder, options_from_frame
from pyjelly.parse.ioutils import delimited_jelly_hint
from pyjelly.serialize.encode import TermEncoder, encode_options, encode_quad
from pyjelly.serialize.ioutils import write_delimited

from squall.contracts import Output
from squall.errors import SinkError
from squall.rdf import Evaluated, Quad, Term, Triple, iri_text, is_blank, is_iri, parts
from squall.streams.formats import (
    TRIPLE_TERMS,
    Malformed,
    Message,
    Statement,
    label_suffixer,
    statements_of_quads,
    suffix,
)
from squall.streams.formats.encoders import EvaluationEncoder
from squall.streams.formats.evaluations import Evaluation, answer_of, check_unchanging, time_text
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.result_sets import statements_of
from squall.streams.formats.timestamps import time_of

TIME = "time"
"""The key of the time in the metadata of a frame. Its value is text, as in timed N-Triples."""

_HEAD_BYTES = 3
"""The number of bytes that show whether frames are delimited by their lengths."""
_LIBRARY_ERRORS = (
    AssertionError,
    AttributeError,
    DecodeError,
    JellyConformanceError,
    LookupError,
    NotImplementedError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""The errors of the library for malformed frames."""


# Reading


def statements(input: IO[bytes], own: str, limits: ReadLimits = DEFAULT_LIMITS) -> Iterator[list[Statement]]:
    """Yields the statements of a document, a list for each chunk of bytes (see `parsing.parse_document`)."""
    reader, quads, rename = _Reader(), list[Any](), label_suffixer(own)
    try:
        for frame in _frames(input, limits):
            if frame is not None:
                quads += reader.quads(frame)
            else:
                yield statements_of_quads(quads, rename)
                quads = []
    except Malformed:
        yield statements_of_quads(quads, rename)
        raise
    yield statements_of_quads(quads, rename)


def messages(input: IO[bytes], name: str, limits: ReadLimits = DEFAULT_LIMITS) -> Iterator[Message | None]:
    """Yields the messages of a log, which are its frames (see `squall.streams.formats.rdf_messages.messages`)."""
    reader = _Reader()
    for number, frame in enumerate(_frames(input, limits)):
        if frame is None:
            yield None
            continue
        own = suffix(f"{name} {number}")
        quads = reader.quads(frame, timed=True)
        yield Message(statements_of_quads(quads, label_suffixer(own)), reader.time)


class _Reader:
    """A reader of the frames of one stream, in order.

    Attributes:
        time: The time of the last frame in integer ms, or None.
    """

    def __init__(self) -> None:
        self._decoder: Any = None
        self.time: int | None = None

    def quads(self, data: bytes, timed: bool = False) -> list[Any]:
        """Returns the quads of a frame, and sets `time` if it is timed. Raises Malformed."""
        try:
            frame = jelly.RdfStreamFrame.FromString(data)
            if frame.rows and self._decoder is None:
                self._decoder = Decoder(_Terms(options_from_frame(frame, delimited=True)))
            if timed:
                self.time = time_of(frame.metadata[TIME].decode()) if TIME in frame.metadata else None
            return [quad for quad in self._decoder.iter_rows(frame) if quad is not None] if frame.rows else []
        except _LIBRARY_ERRORS as error:
            raise Malformed(str(error) or "a frame breaks the rules of Jelly", None) from error


class _Terms(Adapter):  # type: ignore[misc]
    """An adapter that creates quads. Blank nodes are named by a hash of their labels, so that none is remembered."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._graph: Any = None

    def iri(self, iri: str) -> pyoxigraph.NamedNode:
        return pyoxigraph.NamedNode(iri)

    def bnode(self, bnode: str) -> pyoxigraph.BlankNode:
        return pyoxigraph.BlankNode(f"b{blake2b(bnode.encode(), digest_size=12).hexdigest()}")

    def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> pyoxigraph.Literal:
        kind = None if datatype is None else pyoxigraph.NamedNode(datatype)
        return pyoxigraph.Literal(lex, language=language, datatype=kind)

    def default_graph(self) -> pyoxigraph.DefaultGraph:
        return pyoxigraph.DefaultGraph()

    def triple(self, terms: Iterable[Any]) -> pyoxigraph.Quad:
        subject, predicate, object = terms
        return pyoxigraph.Quad(subject, predicate, object, self._graph)

    def quad(self, terms: Iterable[Any]) -> pyoxigraph.Quad:
        subject, predicate, object, graph = terms
        return pyoxigraph.Quad(subject, predicate, object, graph)

    def graph_start(self, graph_id: Any) -> None:
        self._graph = graph_id

    def graph_end(self) -> None:
        self._graph = None

    def namespace_declaration(self, name: str, iri: Any) -> None:
        """Ignores prefixes."""

    def quoted_triple(self, terms: Iterable[Any]) -> Any:
        raise ValueError(TRIPLE_TERMS)


def _frames(input: IO[bytes], limits: ReadLimits) -> Iterator[bytes | None]:
    """Yields complete frames, and None when all available bytes have been used. Raises Malformed."""
    data, is_delimited, max_bytes = b"", None, limits.max_unit_bytes
    while chunk := input.read(limits.chunk_bytes):
        data += chunk
        if is_delimited is None and len(data) >= _HEAD_BYTES:
            is_delimited = delimited_jelly_hint(data[:_HEAD_BYTES])
        first = 0
        while is_delimited and (frame := _next(data, first, max_bytes)):
            begin, first = frame
            yield data[begin:first]
        data = data[first:]
        if len(data) > max_bytes:
            raise _too_long(max_bytes)
        yield None
    if data and is_delimited:
        raise Malformed("the last frame is incomplete", None)
    if data:
        yield data


def _next(data: bytes, first: int, max_bytes: int) -> tuple[int, int] | None:
    """Returns the begin and end of the frame whose length (a varint) is at an index; None if it is incomplete."""
    size = shift = 0
    for place in range(first, len(data)):
        size |= (data[place] & 0x7F) << shift
        if size > max_bytes:
            raise _too_long(max_bytes)
        if data[place] < 0x80:
            end = place + 1 + size
            return (place + 1, end) if end <= len(data) else None
        shift += 7
    return None


def _too_long(max_bytes: int) -> Malformed:
    return Malformed(f"a frame is longer than {max_bytes} bytes", None)


# Writing

_TABLES = LookupPreset()
_NO_INDEX = -1
"""An index that none follows, so that the next one is written explicitly."""


class FrameEncoder:
    """An encoder with a frame for each output (`squall.streams.formats.encoders.Encoder`).

    Frames refer to names in earlier ones by number, unless they are `alone`: then each can be read without the others,
    as is needed after a reconnection.
    """

    def __init__(self, alone: bool = False) -> None:
        self._alone = alone
        self._stream = _Stream()

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        self._stream = _Stream()

    def write(self, output: Output) -> bytes:
        if self._alone:
            self._stream = _Stream()
        return b"" if (statement := _statement(output)) is None else _delimited(self._stream.frame([statement]))

    def end(self) -> bytes:
        return b""

    def snapshot(self) -> None:
        """Returns None: the next output begins a new stream."""

    def restore(self, state: None) -> None:
        pass


class MessageFrameEncoder(EvaluationEncoder):
    """An encoder with a frame for each evaluation. `alone` is that of `FrameEncoder`; `ordered` are the queries whose
    solutions have an order."""

    def __init__(self, alone: bool, ordered: Collection[str] = ()) -> None:
        super().__init__(self._frame, ordered=ordered)
        self._alone = alone
        self._stream = _Stream(messages=True)

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        super().begin(has_content, is_terminal)
        self._stream = _Stream(messages=True)

    def _frame(self, evaluation: Evaluation) -> bytes:
        if self._alone:
            self._stream = _Stream(messages=True)
        return _delimited(self._stream.message(evaluation))


def of_outputs(outputs: Iterable[Output]) -> bytes:
    """Returns outputs as a single frame without its length; ``b""`` if they have no fact."""
    statements = [statement for output in outputs if (statement := _statement(output)) is not None]
    return _single(_Stream().frame(statements)) if statements else b""


def of_evaluation(evaluation: Evaluation) -> bytes:
    """Returns an evaluation as a single frame without its length."""
    return _single(_Stream(messages=True).message(evaluation))


def _statement(output: Output) -> Statement | None:
    """Returns the statement of an output. Raises SinkError if it is no triple or quad, or one of `changes`."""
    check_unchanging(output)
    fact = answer_of(output)
    if isinstance(fact, Evaluated):
        return None
    if not isinstance(fact, Triple | Quad):
        raise SinkError("Jelly holds triples and quads, and nothing else", hint="the format `ndjson` can hold all")
    return fact


def delimited(frame: bytes) -> bytes:
    """Returns a frame with its length, as in a stream."""
    return _delimited(jelly.RdfStreamFrame.FromString(frame))


def _delimited(frame: Any) -> bytes:
    buffer = io.BytesIO()
    write_delimited(frame, buffer)
    return buffer.getvalue()


def _single(frame: Any) -> bytes:
    return bytes(frame.SerializeToString(deterministic=True))


class _Stream(TermEncoder):  # type: ignore[misc]
    """A stream of frames. The first one has the options of the stream."""

    def __init__(self, messages: bool = False) -> None:
        super().__init__(_TABLES)
        for table in (self.names, self.prefixes, self.datatypes):
            table.last_assigned_index = table.last_reused_index = _NO_INDEX
        kind = jelly.LOGICAL_STREAM_TYPE_DATASETS if messages else jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS
        types = StreamTypes(jelly.PHYSICAL_STREAM_TYPE_QUADS, kind)
        # The library derives the version from namespaces; metadata need the second version too.
        self._rows = [encode_options(_TABLES, types, StreamParameters(namespace_declarations=messages))]
        self._repeated: list[Any] = [None] * 4

    def frame(self, statements: Iterable[Statement], **metadata: bytes) -> Any:
        rows, self._rows = self._rows, []
        for statement in statements:
            quad = statement if isinstance(statement, Quad) else (*statement, Term(""))
            rows += encode_quad(quad, self, self._repeated)
        return jelly.RdfStreamFrame(rows=rows, metadata=metadata)

    def message(self, evaluation: Evaluation) -> Any:
        """Returns an evaluation as a frame. Raises SinkError if it has other things than triples and quads."""
        return self.frame(statements_of(evaluation), **{TIME: time_text(evaluation.time).encode()})

    def encode_spo(self, term: Any, slot: Any, statement: Any) -> Any:
        if is_iri(term):
            return self.encode_iri(iri_text(term), self.get_iri_field(statement, slot))
        if is_blank(term):
            self.set_bnode_field(statement, slot, term[2:])
            return ()
        lexical, datatype, language = parts(term)
        kind = None if language else datatype
        field = self.get_literal_field(statement, slot)
        return self.encode_literal(lex=lexical, language=language or None, datatype=kind, literal=field)

    def encode_graph(self, term: Any, statement: Any) -> Any:
        if not term:
            return self.encode_default_graph(statement.g_default_graph)
        if is_iri(term):
            return self.encode_iri(iri_text(term), statement.g_iri)
        statement.g_bnode = term[2:]
        return ()
