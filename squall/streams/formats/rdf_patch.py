"""RDF Patch: additions and removals by transaction (https://jena.apache.org/documentation/rdf-patch).

A patch is a log: its rows are applied in order. A transaction is an event for each of its graphs, and a further one
begins where it deletes what it has added itself. Rows outside of transactions are a transaction as well, up to the next
one or the next header, or the end. A header ``H time "..." .`` has the time of the events after it. Prefixes belong to
the dataset and not to the rows, and are ignored.

The output is a transaction for each evaluation, after a header with its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pyoxigraph import RdfFormat

from squall.contracts import Output
from squall.rdf import ALWAYS, XSD_STRING, Event, Triple, parts, term
from squall.streams.dead_letters import MAX_TEXT_LENGTH
from squall.streams.formats import Statement, parse_block
from squall.streams.formats.evaluations import Evaluation, statements_of, time_text
from squall.streams.formats.timestamps import moment, time_of

RecordMalformed = Callable[[int, str, str], None]
"""A function that is called with the line number, the reason and the text of each malformed row."""

_BLANK_NODE = re.compile(rb'("(?:[^"\\]|\\.)*")|<(_:[^>]*)>')
_CODES = frozenset(("A", "D", "H", "TX", "TB", "TC", "TA", "PA", "PD", "Z"))
_LONG_QUOTES = ('"""', "'''")
_TOKEN = re.compile(
    r"""
    [ \t\r\n\f]+ | \#[^\n]*                                     # blanks and comments
    | (?P<dot>\.(?![0-9]))
    | (?P<string>
        (?: \"\"\"(?:[^"\\]|\\[\s\S]|\"{1,2}(?!\"))*\"\"\" | '''(?:[^'\\]|\\[\s\S]|'{1,2}(?!'))*'''
          | "(?!"")(?:[^"\\\n]|\\.)*" | '(?!'')(?:[^'\\\n]|\\.)*' )
        \s* (?: @[A-Za-z]+(?:-[A-Za-z0-9]+)* | \^\^\s*<[^<>"{}|^`\\\s]*> )? )
    | (?P<other> <[^<>"\n]*>
        | _:[^\s<>"'\#.]+(?:\.+[^\s<>"'\#.]+)*
        | [+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+ | [+-]?[0-9]*\.[0-9]+ | [+-]?[0-9]+ )
    | (?P<word>[A-Za-z][A-Za-z0-9_-]*(?![:A-Za-z0-9_-]))
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"[+-]?[0-9]+")


class _Token(NamedTuple):
    """A token of a row.

    Attributes:
        kind: ``dot``, ``string``, ``word``, ``other`` (other terms), or ``""`` for text that is no token.
        text: Its text.
        start: Its position in the text of the rows.
        end: The position behind it.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def is_term(self) -> bool:
        return self.kind in ("string", "other") or self.text in ("true", "false")


class _Malformed(Exception):
    """A row that is malformed: what is wrong, and where."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


class _Incomplete(Exception):
    """The text ends inside of a row."""


class PatchReader:
    """An incremental reader of a patch, or of several in sequence.

    Attributes:
        stream: The stream of the events.
        time: The time of the next event in integer ms, or None if its header is malformed. At first, it is that of
            events without a header.
        own: The suffix of the labels of blank nodes (`squall.streams.formats.suffix`).
        lose: It is called for malformed rows.
        longest: The most bytes of a transaction before all of its rows are malformed; None: no limit.
        begun: Whether a transaction has begun.
        length: The number of bytes of the statements of the transaction so far.
        rows: (line number, ``A`` or ``D``, statement) for each row of the transaction so far.
    """

    def __init__(self, stream: str, time: int, own: str, lose: RecordMalformed, longest: int | None = None) -> None:
        self.stream = stream
        self.time: int | None = time
        self.own = own
        self.lose = lose
        self.longest = longest
        self.begun = False
        self.length = 0
        self.rows: list[tuple[int, str, Statement]] = []
        self._open_lines: list[str] = []
        """The lines of a row that is not complete."""
        self._open_number = 0
        """The number of the first of them."""
        self._open_quotes = ""
        """The quotes of the long string that is open at their end, or ``""``."""
        self._open_length = 0

    def read(self, first: int, block: bytes) -> list[Event]:
        """Reads complete lines, and returns the events that they complete. `first` is the number of the first line."""
        lines = enumerate(block.split(b"\n"), first)
        return [event for number, line in lines for event in self._line(number, line)]

    def end(self) -> list[Event]:
        """Returns the event of rows outside of transactions at the end. Uncommitted rows are malformed."""
        if self._open_lines:
            reason = "its string is not closed, and the rest is left out" if self._open_quotes else "not a row"
            self._lose_row(self._open_number, f"{reason} of an RDF Patch here" if reason == "not a row" else reason)
        if not self.begun:
            return list(self._commit())
        self._lose_rows("its transaction is not committed")
        return []

    # Rows

    def _line(self, number: int, line: bytes) -> Iterator[Event]:
        """Reads a line, which mostly is one row."""
        if not self._open_lines:
            fields = line.split(None, 1)
            if not fields:
                return
            if len(fields) == 2 and fields[0] in (b"A", b"D") and self._change(number, fields[0], fields[1].rstrip()):
                return
        yield from self._tokens(number, line.decode("utf-8", "replace"))

    def _change(self, number: int, code: bytes, statement: bytes) -> bool:
        """Reads an addition or a deletion that is a line of N-Quads, and returns whether it is.

        A blank node may be written ``<_:label>``.
        """
        plain = _BLANK_NODE.sub(rb"\1\2", statement) if b"<_:" in statement else statement
        statements, _ = parse_block(plain, RdfFormat.N_QUADS, self.own)
        if len(statements) != 1:
            return False
        self._add(number, code.decode(), statements[0], len(statement))
        return True

    def _add(self, number: int, code: str, statement: Statement, length: int) -> None:
        self.rows.append((number, code, statement))
        self.length += length
        if self.longest is not None and self.length > self.longest:
            self._lose_rows(f"its transaction is longer than {self.longest} bytes")

    def _tokens(self, number: int, line: str) -> Iterator[Event]:
        """Reads the rows of a line token by token, and those that began before it."""
        if not self._open_lines:
            self._open_number, self._open_length = number, 0
        self._open_lines.append(line)
        self._open_length += len(line) + 1
        if self.longest is not None and self._open_length > self.longest:
            self._lose_row(self._open_number, f"the row is longer than {self.longest} bytes")
            return
        if self._open_quotes and self._open_quotes not in line:
            return  # the line is inside of a string
        text, place = "\n".join(self._open_lines), 0
        first, self._open_lines, self._open_quotes = self._open_number, [], ""
        while place < len(text):
            try:
                row, place = _next_row(text, place)
            except _Incomplete:
                begin = _skip_blanks(text, place)
                self._open_lines = text[begin:].split("\n")
                self._open_number = first + text.count("\n", 0, begin)
                self._open_length = len(text) - begin
                self._open_quotes = _open_quotes(text, begin)
                return
            except _Malformed as error:
                begin = _skip_blanks(text, place)
                place = _end_of_malformed(text, begin, error.place)
                self.lose(first + text.count("\n", 0, begin), error.reason, text[begin:place].strip())
                continue
            if row:
                begin = row[0].start
                yield from self._row(first + text.count("\n", 0, begin), row, text[begin:place])

    def _row(self, number: int, row: Sequence[_Token], text: str) -> Iterator[Event]:
        """Reads a complete row. row: its tokens without the dot. text: its text."""
        code = row[0].text
        reason = ""
        match code:
            case "A" | "D":
                reason = self._quad(number, code, row[1:], text)
            case "TX" | "TB":
                reason = "a transaction has begun already" if self.begun else ""
                yield from () if self.begun else self._commit()
                self.begun = True
            case "TC":
                reason = "" if self.begun else "no transaction has begun"
                yield from self._commit() if self.begun else ()
                self.begun = False
            case "TA":
                reason = "" if self.begun else "no transaction has begun"
                if self.begun:
                    self._clear()
                self.begun = False
            case "H" if self.begun:
                reason = "not a row of an RDF Patch here"
            case "H":
                yield from self._commit()
                reason = self._header(row[1:])
        if reason:
            self.lose(number, reason, text)

    def _quad(self, number: int, code: str, tokens: Sequence[_Token], text: str) -> str:
        """Adds an addition or a deletion, and returns what is wrong with it, or ``""``."""
        try:
            statement_text = " ".join(map(_term_text, tokens))
        except (SyntaxError, ValueError) as error:
            return str(error)
        statements, bad = parse_block(f"{statement_text} .".encode(), RdfFormat.N_QUADS, self.own)
        if len(statements) != 1:
            return bad[0][1] if bad else "not one statement"
        self._add(number, code, statements[0], len(text))
        return ""

    def _header(self, tokens: Sequence[_Token]) -> str:
        """Reads a header, of which only ``time`` has a meaning here, and returns what is wrong with it, or ``""``.

        Behind a header of a time that cannot be read, nothing has a time.
        """
        key = tokens[0].text.strip("\"'")
        if key == "time":
            try:
                self.time = _time(_term_text(tokens[1]))
            except (SyntaxError, ValueError):
                self.time = None
                return f"`{tokens[1].text}` is no time"
        return ""

    # Transactions

    def _commit(self) -> Iterator[Event]:
        """Yields the events of the rows, in order."""
        if self.time is None:
            self._lose_rows("the time of its header cannot be read")
        elif self.time == ALWAYS:
            for number, code, statement in self.rows:
                if code == "D":
                    self.lose(number, "what holds always (-infinity) does not end", f"D {statement}")
            self.rows = [row for row in self.rows if row[1] == "A"]
        if self.time is not None:
            yield from _events(self.time, self.stream, ((code, statement) for _, code, statement in self.rows))
        self._clear()

    def _clear(self) -> None:
        self.rows, self.length = [], 0

    def _lose_rows(self, reason: str) -> None:
        """Drops the rows of a transaction as malformed."""
        for number, code, statement in self.rows:
            self.lose(number, reason, f"{code} {statement}"[:MAX_TEXT_LENGTH])
        self.rows = []

    def _lose_row(self, number: int, reason: str) -> None:
        """Drops the row that is not complete as malformed."""
        self.lose(number, reason, "\n".join(self._open_lines).strip()[:MAX_TEXT_LENGTH])
        self._open_lines, self._open_quotes, self._open_length = [], "", 0
