"""RDF Patch: additions and removals by transaction (https://jena.apache.org/documentation/rdf-patch).

A patch is a log: its rows are applied in order. A transaction is an event for each run of rows in one graph, and a
further one begins where it deletes what it has added itself. Rows outside of transactions are a transaction as well, up
to the next one or the next header, or the end. A header ``H time "..." .`` has the time of the events after it.
Prefixes belong to the dataset and not to the rows, and are ignored. Rows are read by tokens, as RDF Delta and Jena do.

The output is a transaction for each evaluation, after a header with its time. It adds what has become true, and deletes
what has ceased to hold. All changes of an instant are one transaction, which deletes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.rdf import ALWAYS, XSD_STRING, Event, Quad, Triple, parts
from squall.streams.dead_letters import MAX_TEXT_LENGTH
from squall.streams.formats import (
    TRIPLE_TERMS,
    Statement,
    bounded,
    label_suffixer,
    parse_block,
    reason_of,
    statements_of_quads,
)
from squall.streams.formats.evaluations import Evaluation, time_text
from squall.streams.formats.result_sets import logged_statements
from squall.streams.formats.timestamps import moment, time_of

RecordMalformed = Callable[[int, str, str], None]
"""A function that is called with the line number, the reason and the text of each malformed row."""

_BLANK_NODE = re.compile(rb'("(?:[^"\\]|\\.)*")|<(_:[^>]*)>')
_SIZES = {"A": (3, 4), "D": (3, 4), "H": (2, 2), "PA": (2, 3), "PD": (1, 2)}
"""How many terms, at least and at most, the rows of a code have."""
_SIZES |= dict.fromkeys(("TX", "TB", "TC", "TA", "Z"), (0, 0))
_LONG_QUOTES = ('"""', "'''")
_NO_ROW = "not a row of an RDF Patch here"
_IS_TIME_HEADER = re.compile(r"""H\s+["']?time\b""").match
_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t\r\n\f]+ | \#[^\n]*)
    | (?P<dot>\.(?![0-9]))
    | (?P<string>
        (?: \"\"\"(?:[^"\\]|\\[\s\S]|\"{1,2}(?!\"))*+\"\"\"
          | '''(?:[^'\\]|\\[\s\S]|'{1,2}(?!'))*+'''
          | "(?!"")(?:[^"\\\n]|\\.)*+" | '(?!'')(?:[^'\\\n]|\\.)*+' )
        (?: \s*@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)? | \s*\^\^\s*<[^<>\s]*> )? )
    | (?P<other> <[^<>"\n]*>
        | _:[^\s<>"'\#.]+(?:\.+[^\s<>"'\#.]+)*
        | [+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+ | [+-]?[0-9]*\.[0-9]+ | [+-]?[0-9]+ )
    | (?P<word>[A-Za-z][A-Za-z0-9_-]*+(?!:))
    """,
    re.VERBOSE,
)


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
        """Whether the token is a term."""
        return self.kind in ("string", "other") or self.text in ("true", "false")


_BARE_ROWS: Mapping[bytes, Sequence[_Token]] = {
    f"{code} .".encode(): (_Token("word", code, 0, 2),) for code in ("TX", "TC")
}
"""The usual lines without terms, and their tokens."""
_TIME_KEY = _Token("word", "H", 0, 1), _Token("word", "time", 2, 6)
_TIME_HEADER = re.compile(rb'H time ("[0-9A-Z:.+-]+") \.').fullmatch
_IS_PLAIN_STRING = re.compile(r'"[0-9A-Za-z:.+-]+"').fullmatch


class _Malformed(Exception):
    """A row that is malformed: what is wrong, and where."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


class _Incomplete(Exception):
    """The text ends inside of a row.

    Attributes:
        quotes: The quotes of the long string in which it ends, or ``""``.
    """

    def __init__(self, quotes: str = "") -> None:
        super().__init__(quotes)
        self.quotes = quotes


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
            reason = "a string is not closed; the rest is left out" if self._open_quotes else _NO_ROW
            self._lose_row(self._open_number, reason)
        if not self.begun:
            return list(self._commit())
        self._lose_rows("its transaction is not committed")
        return []

    # Rows

    def _line(self, number: int, line: bytes) -> Iterator[Event]:
        """Reads a line, which mostly is one row."""
        if not self._open_lines:
            fields = line.split(None, 1)
            if not fields or fields[0].startswith(b"#"):
                return
            if row := _BARE_ROWS.get(line) or _time_header(line):
                yield from self._row(number, row, line.decode())
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
        is_passed_over = self._open_quotes not in line if self._open_quotes else _skip_blanks(line, 0) == len(line)
        if is_passed_over:
            return
        text, place = "\n".join(self._open_lines), 0
        row_number, counted = self._open_number, 0
        self._open_lines, self._open_quotes = [], ""
        while (begin := _skip_blanks(text, place)) < len(text):
            row_number += text.count("\n", counted, begin)
            counted = begin
            try:
                row, place = _next_row(text, begin)
            except _Incomplete as error:
                self._open_lines, self._open_quotes = text[begin:].split("\n"), error.quotes
                self._open_number, self._open_length = row_number, len(text) - begin
                return
            except _Malformed as error:
                place = _end_of_malformed(text, begin, error.place)
                yield from self._malformed(row_number, error.reason, text[begin:place].strip())
            else:
                yield from self._row(row_number, row, text[begin:place])

    def _malformed(self, number: int, reason: str, text: str) -> Iterator[Event]:
        """Records a malformed row. If it is the header of a time, nothing behind it has a time."""
        if _IS_TIME_HEADER(text) and not self.begun:
            yield from self._commit()
            self.time = None
        self.lose(number, reason, text)

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
            case "H" if self.begun:  # only a time has a meaning, which is that of the whole transaction
                is_time = row[1].text.strip("\"'") == "time"
                reason = "the time of a transaction comes in front of it" if is_time else ""
            case "H":
                yield from self._commit()
                reason = self._header(row[1:])
        if reason:
            self.lose(number, reason, text)

    def _quad(self, number: int, code: str, tokens: Sequence[_Token], text: str) -> str:
        """Adds an addition or a deletion, and returns what is wrong with it, or ``""``."""
        try:
            statement = _statement(tokens, self.own)
        except SyntaxError as error:
            return reason_of(error)
        self._add(number, code, statement, len(text))
        return ""

    def _header(self, tokens: Sequence[_Token]) -> str:
        """Reads a header, of which only ``time`` has a meaning here, and returns what is wrong with it, or ``""``.

        Behind a header of a time that cannot be read, nothing has a time.
        """
        key = tokens[0].text.strip("\"'")
        if key == "time":
            try:
                self.time = _time(tokens[1])
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
                    self.lose(number, "what always holds (-infinity) does not end", f"D {statement}")
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


def _events(time: int, stream: str, rows: Iterable[tuple[str, Statement]]) -> Iterator[Event]:
    """Yields the events of rows, in order: one for each run in one graph, and a further one where a row deletes what
    the same event adds."""
    graph, added, removed = "", set[Triple](), dict[Triple, None]()
    facts: list[Triple] = []
    for code, statement in rows:
        fact, own_graph = (Triple(*statement[:3]), statement.graph) if isinstance(statement, Quad) else (statement, "")
        if own_graph != graph or (code == "D" and fact in added):
            if facts or removed:
                yield Event(time, tuple(facts), stream, tuple(removed), graph)
            graph, added, removed, facts = own_graph, set(), {}, []
        if code == "D":
            removed[fact] = None
        else:
            added.add(fact)
            facts.append(fact)
    if facts or removed:
        yield Event(time, tuple(facts), stream, tuple(removed), graph)


# Tokens


def _time_header(line: bytes) -> Sequence[_Token]:
    """Returns the tokens of a header of a time as it is usually written; nothing for other lines."""
    match = _TIME_HEADER(line) if line.startswith(b"H ") else None
    return (*_TIME_KEY, _Token("string", match[1].decode(), 7, len(line) - 2)) if match else ()


def _next_token(text: str, place: int) -> _Token | None:
    """Returns the token behind blanks and comments, or None at the end of the text. Raises _Incomplete."""
    place = _skip_blanks(text, place)
    if place == len(text):
        return None
    match = _TOKEN.match(text, place)
    if match is not None:
        return _Token(str(match.lastgroup), match[0], match.start(), match.end())
    if quotes := next((quotes for quotes in _LONG_QUOTES if text.startswith(quotes, place)), ""):
        raise _Incomplete(quotes)
    return _Token("", text[place], place, place + 1)


def _skip_blanks(text: str, place: int) -> int:
    """Returns the position behind blanks and comments."""
    while (match := _TOKEN.match(text, place)) is not None and match.lastgroup == "blank":
        place = match.end()
    return place


def _next_row(text: str, place: int) -> tuple[Sequence[_Token], int]:
    """Returns the tokens of a row without its dot, and the position behind it. Raises _Malformed or _Incomplete."""
    code = _next_token(text, place)
    assert code is not None
    if code.kind != "word" or code.text not in _SIZES:
        raise _Malformed(_NO_ROW, code.start)
    least, most = _SIZES[code.text]
    row = [code]
    while (token := _next_token(text, row[-1].end)) is not None:
        if token.kind == "dot" and len(row) > least:
            return row, token.end
        is_key = code.text == "H" and len(row) == 1
        if len(row) > most or not (token.kind in ("word", "string") if is_key else token.is_term):
            reason = TRIPLE_TERMS if text.startswith("<<", token.start) else _NO_ROW
            raise _Malformed("not a header" if code.text == "H" else reason, token.start)
        row.append(token)
    raise _Incomplete


def _end_of_malformed(text: str, begin: int, place: int) -> int:
    """Returns the position behind a malformed row: the end of its line, or the begin of that on which it is malformed.

    Args:
        text: The text of the rows.
        begin: The begin of the row.
        place: Where it is malformed.
    """
    line = text.rfind("\n", begin, place) + 1
    end = text.find("\n", place)
    return line or (len(text) if end < 0 else end)


def _statement(terms: Sequence[_Token], own: str) -> Statement:
    """Returns the statement of three terms, or of four. Raises SyntaxError."""
    subject, predicate, object, *graph = (_term_text(token) for token in terms)
    text = f"{subject} {predicate} {object} ."
    with bounded():
        quads = list(pyoxigraph.parse(f"{graph[0]} {{{text}}}" if graph else text, format=RdfFormat.TRIG))
        (statement,) = statements_of_quads(quads, label_suffixer(own))
    return statement


def _term_text(token: _Token) -> str:
    """Returns the text of a term as in TriG. A blank node may be written ``<_:label>``."""
    return token.text[1:-1] if token.text.startswith("<_:") else token.text


def _time(value: _Token) -> int:
    """Returns the time of a literal; a string may have the syntax of timed N-Triples.

    Raises:
        SyntaxError: The literal is malformed.
        ValueError: It is no time.
    """
    if _IS_PLAIN_STRING(value.text):
        return time_of(value.text[1:-1])
    iri = _Token("other", "<urn:x>", 0, 0)
    literal = _statement([iri, iri, value], "").object
    time = moment(literal)
    if time is None and literal.startswith('"') and parts(literal).datatype == XSD_STRING:
        time = time_of(parts(literal).lexical)
    if time is None:
        raise ValueError(value.text)
    return time


def transaction(evaluation: Evaluation, retracting: Collection[str] = ()) -> bytes:
    """Returns an evaluation as a transaction; ``b""`` if it is empty.

    Args:
        evaluation: The evaluation.
        retracting: As for `squall.streams.formats.result_sets.logged_statements`.

    Raises:
        SinkError: The evaluation has other things than triples and quads.
    """
    deleted, inserted = logged_statements(evaluation, retracting)
    rows = "".join([f"D {statement}\n" for statement in deleted] + [f"A {statement}\n" for statement in inserted])
    return f'H time "{time_text(evaluation.time)}" .\nTX .\n{rows}TC .\n'.encode() if rows else b""
