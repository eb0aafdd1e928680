"""RDF Messages: logs whose statements are grouped to messages, each a dataset of its own.

In N-Triples, N-Quads, Turtle and TriG the directive ``MESSAGE`` (or ``@message .``) ends a message. Blank nodes are
local to their message, while prefixes stay in effect. In Jelly a frame is a message.

Source: RDF Messages (W3C RDF Stream Processing Community Group, draft of 2026),
https://w3c-cg.github.io/rsp/spec/messages
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import IO

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.contracts import Output
from squall.streams.formats import (
    VERSION,
    Format,
    Malformed,
    Message,
    bounded,
    label_suffixer,
    reason_of,
    statements_of_quads,
    suffix,
)
from squall.streams.formats.encoders import EvaluationEncoder
from squall.streams.formats.evaluations import Evaluation
from squall.streams.formats.graphs import TriGEncoder
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.result_sets import statements_of

_DELIMITERS = rb"\s;,\[\](){}\"'<>#"
"""The characters that end a word."""
_CONTENT = re.compile(
    rb"""(?>(?:
      [\s;,.\[\](){}]++
    | \#[^\r\n]*+[\r\n]
    | <[^<>"{}|^`\s]*+> | <(?=[<\s(]) | >
    | \"{3}(?>(?:[^"\\]|\\.|"(?!""))*)\"{3} | '{3}(?>(?:[^'\\]|\\.|'(?!''))*)'{3}
    | "(?>(?:[^"\\\n]|\\[^\n])+)" | ""(?=[^"])  | '(?>(?:[^'\\\n]|\\[^\n])+)' | ''(?=[^'])
    | (?<=["'])@[A-Za-z0-9-]++(?=[^A-Za-z0-9-])
    | (?!(?i:MESSAGE)(?=[ENDS]) | @message\b) (?>(?:[^ENDS\\]|\\[^\n])+) (?=[ENDS]|\\\n)
    | \\\n
    | (?!\"{3}|'{3}|@message\s*+(?:\.|\Z)) ["'<@][^\n]*+\n
    )*)""".replace(b"ENDS", _DELIMITERS),
    re.DOTALL | re.VERBOSE,
)
"""The content up to a delimiter, without a last token that may continue.

The last alternative is a malformed line, up to its end. There are atomic groups, not possessive quantifiers, since
before Python 3.11.5 these are wrong with alternatives (gh-106052).
"""
_DELIMITER = re.compile(rb"(?i:MESSAGE)(?=[" + _DELIMITERS + rb"])|@message\s*+\.")
_WORD = re.compile(rb"(?i:MESSAGE)")
"""A part of each delimiter."""
_MAX_SPLIT_BYTES = 6
"""The number of bytes of that word that may be at the end of a chunk."""


# Reading


def messages(
    input: IO[bytes], format: Format, base: str | None, name: str, limits: ReadLimits = DEFAULT_LIMITS
) -> Iterator[Message | Malformed | None]:
    """Yields the messages of a log, errors for malformed ones, and None when all available bytes have been used.

    Args:
        input: The bytes.
        format: The format.
        base: The IRI against which relative ones are resolved.
        name: The name of the log, whose blank nodes are its own.
        limits: The bytes that are read at a time, and the most bytes of a message.

    Raises:
        Malformed: The rest of the log cannot be read.
    """
    if format.binary:
        from squall.streams.formats import jelly

        yield from jelly.messages(input, name, limits)
        return
    log = _Log(format, base, name)
    for text in _texts(input, limits):
        yield text and log.message(*text)


class _Log:
    """The state of a log between its messages: the prefixes and the base."""

    def __init__(self, format: Format, base: str | None, name: str) -> None:
        self._format = format
        self._base = base
        self._name = name
        self._prefixes: dict[str, str] = {}
        self._count = 0

    def message(self, first: int, text: bytes) -> Message | Malformed:
        """Parses a message, whose first line has a number."""
        self._count += 1
        own = suffix(f"{self._name} {self._count}")
        if self._format.syntax in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS):
            text = VERSION.sub(b"", text)
        head = "".join(f"@prefix {prefix}: <{iri}> . " for prefix, iri in self._prefixes.items()).encode()
        parser = pyoxigraph.parse(head + text, format=self._format.syntax, base_iri=self._base)
        try:
            with bounded():
                quads = statements_of_quads(list(parser), label_suffixer(own))
        except SyntaxError as error:
            return Malformed(reason_of(error), first + (error.lineno or 1) - 1)
        self._prefixes, self._base = parser.prefixes, parser.base_iri
        return Message(quads)


def _texts(input: IO[bytes], limits: ReadLimits) -> Iterator[tuple[int, bytes] | None]:
    """Yields the number of the first line and the text of each message, and None when all available bytes are used.

    Raises:
        Malformed: A message is too long, or the last one has no end since the input was cut off (see
            `reading.decoded`).
    """
    data, scanned, without, line, more = b"", 0, 0, 1, True
    while more:
        chunk = input.read(limits.chunk_bytes)
        more = bool(chunk)
        data += chunk or b"\n"  # ends the last word
        begin = 0
        while _WORD.search(data, begin + without):  # otherwise the content need not be tokenized
            content = _CONTENT.match(data, begin + scanned)  # content is scanned only once
            assert content is not None  # it may be empty
            delimiter = _DELIMITER.match(data, content.end())
            if delimiter is None:
                scanned = content.end() - begin
                break
            yield line, data[begin : content.end()]
            line += data.count(b"\n", begin, delimiter.end())
            begin, scanned, without = delimiter.end(), 0, 0
        else:
            without = max(0, len(data) - begin - _MAX_SPLIT_BYTES)
        data = data[begin:]
        if len(data) > limits.max_unit_bytes:
            raise Malformed(f"a message is longer than {limits.max_unit_bytes} bytes", line)
        yield None
    if data.strip():
        if getattr(input, "is_cut", False):
            raise Malformed("the last message is incomplete", line)
        yield line, data


# Writing


def lines(evaluation: Evaluation) -> bytes:
    """Returns an evaluation as N-Triples, or N-Quads if it has quads."""
    return "".join(f"{statement}\n" for statement in statements_of(evaluation)).encode()


def trig(evaluation: Evaluation) -> bytes:
    """Returns an evaluation as TriG: a graph with the time at which it was generated."""
    encoder = TriGEncoder()
    chunks = [
        encoder.write(Output(statement, evaluation.time, evaluation.query)) for statement in statements_of(evaluation)
    ]
    return b"".join((*chunks, encoder.end()))


class MessageLogEncoder(EvaluationEncoder):
    """An encoder with a message for each evaluation (`squall.streams.formats.encoders.Encoder`).

    The first message of a log has the version directive. If they are `alone`, each has it. `ordered` are the queries
    whose solutions have an order.
    """

    def __init__(self, body: Callable[[Evaluation], bytes], alone: bool, ordered: Collection[str] = ()) -> None:
        super().__init__(self._message, ordered=ordered)
        self._body = body
        self._alone = alone
        self._announced = False

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        super().begin(has_content, is_terminal)
        self._announced = has_content

    def _message(self, evaluation: Evaluation) -> bytes:
        message = delimited(self._body(evaluation), announced=self._announced and not self._alone)
        self._announced = True
        return message


def delimited(body: bytes, announced: bool = False) -> bytes:
    """Returns a message with its end, and with the version directive unless that is already announced."""
    return (b"" if announced else b'VERSION "1.1-messages"\n') + body + b"MESSAGE\n"
