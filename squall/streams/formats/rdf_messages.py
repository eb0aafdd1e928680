"""RDF Messages: logs in which statements are put together, each message a data set of its own.

In N-Triples, N-Quads, Turtle and TriG the directive ``MESSAGE`` (or ``@message .``) ends a message; blank nodes are
those of their message, prefixes go on. In Jelly a frame is a message.

Source: RDF Messages (W3C RDF Stream Processing Community Group, draft of 2026), https://w3c-cg.github.io/rsp/spec/messages
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.contracts import Output
from squall.streams.formats import (
    LONGEST,
    Format,
    Malformed,
    Message,
    bounded,
    placed,
    reason_of,
    relabel,
    suffix,
)
from squall.streams.formats.encoders import EvaluationLines
from squall.streams.formats.evaluations import Evaluation, statements_of
from squall.streams.formats.graphs import TriG

_CHUNK = 1 << 17
_ENDS = rb"\s;,\[\](){}\"'<>#"  # what no word goes beyond
_CONTENT = re.compile(
    rb"""(?>(?:
      [\s;,.\[\](){}]++
    | \#[^\n]*+\n
    | <[^<>"{}|^`\s]*+> | <(?=[<\s(]) | >
    | \"{3}(?>(?:[^"\\]|\\.|"(?!""))*)\"{3} | '{3}(?>(?:[^'\\]|\\.|'(?!''))*)'{3}
    | "(?>(?:[^"\\\n]|\\[^\n])+)" | ""(?=[^"])  | '(?>(?:[^'\\\n]|\\[^\n])+)' | ''(?=[^'])
    | (?<=["'])@[A-Za-z0-9-]++(?=[^A-Za-z0-9-])
    | (?!(?i:MESSAGE)(?=[ENDS]) | @message\b) (?>(?:[^ENDS\\]|\\[^\n])+) (?=[ENDS]|\\\n)
    | \\\n
    | (?!\"{3}|'{3}|@message\s*+(?:\.|\Z)) ["'<@][^\n]*+\n
    )*)""".replace(b"ENDS", _ENDS),
    re.DOTALL | re.VERBOSE,
)
"""All up to a delimiter, but for a last piece that may go on. (The last line: what is broken goes up to its end. Atomic
groups, not possessive quantifiers: before Python 3.11.5 these go wrong where there are alternatives, gh-106052.)"""
_DELIMITER = re.compile(rb"(?i:MESSAGE)(?=[" + _ENDS + rb"])|@message\s*+\.")
_WORD = re.compile(rb"(?i:MESSAGE)")
"""What every delimiter has in it."""
_SPLIT = 6  # bytes of that which may be at the end of a chunk
_VERSION = re.compile(rb"""^[ \t]*VERSION[ \t]*("[^"\n]*"|'[^'\n]*')[ \t]*(?=#|\r?$)""", re.MULTILINE)


# Reading


def messages(input: IO[bytes], format: Format, base: str | None, name: str) -> Iterator[Message | Malformed | None]:
    """The messages of a log, those that are broken too; None where nothing more is at hand.

    base: the IRI against which relative ones are resolved. name: of the log, whose blank nodes are its own. Raises
    Malformed where nothing of the rest can be read.
    """
    if format.binary:
        from squall.streams.formats import jelly

        yield from jelly.messages(input, name)
        return
    log = _Log(format, base, name)
    for text in _texts(input):
        yield text and log.message(*text)


class _Log:
    """What goes on from one message to the next."""

    def __init__(self, format: Format, base: str | None, name: str) -> None:
        self._format = format
        self._base = base
        self._name = name
        self._prefixes: dict[str, str] = {}
        self._count = 0

    def message(self, first: int, text: bytes) -> Message | Malformed:
        """first: the number of its first line."""
        self._count += 1
        own = suffix(f"{self._name} {self._count}")
        if self._format.syntax in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS):
            text = _VERSION.sub(b"", text)
        head = "".join(f"@prefix {prefix}: <{iri}> . " for prefix, iri in self._prefixes.items()).encode()
        parser = pyoxigraph.parse(head + text, format=self._format.syntax, base_iri=self._base)
        try:
            with bounded():
                quads = placed(list(parser), relabel(own))
        except SyntaxError as error:
            return Malformed(reason_of(error), first + (error.lineno or 1) - 1)
        self._prefixes, self._base = parser.prefixes, parser.base_iri
        return Message(quads)


def _texts(input: IO[bytes]) -> Iterator[tuple[int, bytes] | None]:
    """The first line and the text of each message; None where nothing more is at hand. Raises Malformed where the last
    one has no end since the input was cut off (see `squall.streams.formats.reading.decoded`)."""
    data, scanned, without, line, more = b"", 0, 0, 1, True
    while more:
        chunk = input.read(_CHUNK)
        more = bool(chunk)
        data += chunk or b"\n"  # at the end, so that the last word has one
        begin = 0
        while _WORD.search(data, begin + without):  # what has none is not looked at piece by piece, again and again
            content = _CONTENT.match(data, begin + scanned)  # what is known to be content is not looked at again
            assert content is not None  # it may be empty
            delimiter = _DELIMITER.match(data, content.end())
            if delimiter is None:
                scanned = content.end() - begin
                break
            yield line, data[begin : content.end()]
            line += data.count(b"\n", begin, delimiter.end())
            begin, scanned, without = delimiter.end(), 0, 0
        else:
            without = max(0, len(data) - begin - _SPLIT)
        data = data[begin:]
        if len(data) > LONGEST:
            raise Malformed(f"a message is longer than {LONGEST} bytes", line)
        yield None
    if data.strip():
        if getattr(input, "is_cut", False):
            raise Malformed("the last message is not whole", line)
        yield line, data


# Writing


def lines(evaluation: Evaluation) -> bytes:
    """An evaluation as N-Triples, or N-Quads where it has quads."""
    return "".join(f"{statement}\n" for statement in statements_of(evaluation)).encode()


def trig(evaluation: Evaluation) -> bytes:
    """An evaluation as TriG: a graph, of which is said when it was generated."""
    encoder = TriG()
    chunks = [
        encoder.write(Output(statement, evaluation.time, evaluation.query)) for statement in statements_of(evaluation)
    ]
    return b"".join((*chunks, encoder.end()))


class MessageLog(EvaluationLines):
    """A message for each evaluation (`squall.streams.formats.encoders.Encoder`). alone: each of them says that it is
    one, as it has to where what was before is not known."""

    def __init__(self, body: Callable[[Evaluation], bytes], alone: bool) -> None:
        super().__init__(self._message)
        self._body = body
        self._alone = alone
        self._announced = False

    def begin(self, begun: bool, terminal: bool) -> None:
        super().begin(begun, terminal)
        self._announced = begun

    def _message(self, evaluation: Evaluation) -> bytes:
        message = delimited(self._body(evaluation), announced=self._announced and not self._alone)
        self._announced = True
        return message


def delimited(body: bytes, announced: bool = False) -> bytes:
    """A message of which is said where it ends and, unless that is known already, what it is."""
    return (b"" if announced else b'VERSION "1.1-messages"\n') + body + b"MESSAGE\n"
