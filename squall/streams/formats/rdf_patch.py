"""RDF Patch: additions and removals by transaction (https://jena.apache.org/documentation/rdf-patch).

A transaction is one event, or one for each graph. The event adds the statements that the transaction adds and does not
delete afterwards, and retracts all that it deletes. Rows outside of transactions are one event as well, up to the next
transaction or header, or the end. A header ``H time "..." .`` has the time of the events after it. Prefixes belong to
the dataset and not to the rows, and are ignored.

The output is a transaction for each evaluation, after a header with its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyoxigraph import RdfFormat

from squall.rdf import XSD_STRING, Event, parts, term
from squall.streams.dead_letters import MAX_TEXT_LENGTH
from squall.streams.formats import Statement, in_graphs, parse_block
from squall.streams.formats.evaluations import Evaluation, statements_of, time_text
from squall.streams.formats.timestamps import moment, time_of

RecordMalformed = Callable[[int, str, str], None]
"""A function that is called with the line number, the reason and the text of each malformed row."""

_HEADER = re.compile(r"(\S+)\s+(\S.*?)\s*\.\s*")
_BLANK_NODE = re.compile(rb'("(?:[^"\\]|\\.)*")|<(_:[^>]*)>')
_END = re.compile(r"\.\s*(?:#.*)?")


class PatchReader:
    """An incremental reader of a patch, or of several in sequence.

    Attributes:
        stream: The stream of the events.
        time: The time of the next event in integer ms. At first, it is that of events without a header.
        own: The suffix of the labels of blank nodes (`squall.streams.formats.suffix`).
        lose: It is called for malformed rows.
        longest: The most bytes of a transaction before all of its rows are malformed; None: no limit.
        begun: Whether a transaction has begun.
        length: The number of bytes of the statements of the transaction so far.
        rows: (line number, ``A`` or ``D``, statement) for each row of the transaction so far.
    """

    def __init__(self, stream: str, time: int, own: str, lose: RecordMalformed, longest: int | None = None) -> None:
        self.stream = stream
        self.time = time
        self.own = own
        self.lose = lose
        self.longest = longest
        self.begun = False
        self.length = 0
        self.rows: list[tuple[int, str, Statement]] = []

    def read(self, first: int, block: bytes) -> list[Event]:
        """Reads complete lines, and returns the events that they complete. `first` is the number of the first line."""
        lines = enumerate(block.split(b"\n"), first)
        return [event for number, line in lines for event in self._row(number, line)]

    def end(self) -> list[Event]:
        """Returns the event of rows outside of transactions at the end. Uncommitted rows are malformed."""
        if not self.begun:
            return list(self._commit())
        for number, code, triple in self.rows:
            self.lose(number, "its transaction is not committed", f"{code} {triple}")
        return []

    def _row(self, number: int, line: bytes) -> Iterator[Event]:
        fields = line.split(None, 1)
        if len(fields) == 2 and fields[0] in (b"A", b"D"):
            self._change(number, fields[0].decode(), fields[1].rstrip())
            return
        text = line.decode("utf-8", "replace").strip()
        reason = ""
        match text.split(None, 1):
            case ["TX", end] if _END.fullmatch(end):
                reason = "a transaction has begun already" if self.begun else ""
                yield from () if self.begun else self._commit()
                self.begun = True
            case ["TC", end] if _END.fullmatch(end):
                reason = "" if self.begun else "no transaction has begun"
                yield from self._commit() if self.begun else ()
                self.begun = False
            case ["TA", end] if _END.fullmatch(end):
                reason = "" if self.begun else "no transaction has begun"
                if self.begun:
                    self._clear()
                self.begun = False
            case ["H", header] if not self.begun:
                yield from self._commit()
                reason = self._header(header)
            case ["PA" | "PD", _] | []:
                pass
            case [word, *_] if word.startswith("#"):
                pass
            case _:
                reason = "not a row of an RDF Patch here"
        if reason:
            self.lose(number, reason, text)

    def _change(self, number: int, code: str, statement: bytes) -> None:
        """Reads an addition or a deletion. A blank node may be written ``<_:label>``."""
        plain = _BLANK_NODE.sub(rb"\1\2", statement) if b"<_:" in statement else statement
        statements, bad = parse_block(plain, RdfFormat.N_QUADS, self.own)
        if len(statements) == 1:
            self.rows.append((number, code, statements[0]))
            self.length += len(statement)
            self._bound()
        else:
            reason = bad[0][1] if bad else "not one statement"
            self.lose(number, reason, f"{code} {statement.decode('utf-8', 'replace')}")

    def _bound(self) -> None:
        """Drops the rows of a transaction that is too long as malformed."""
        if self.longest is not None and self.length > self.longest:
            for number, code, statement in self.rows:
                reason = f"its transaction is longer than {self.longest} bytes"
                self.lose(number, reason, f"{code} {statement}"[:MAX_TEXT_LENGTH])
            self.rows = []

    def _clear(self) -> None:
        self.rows, self.length = [], 0

    def _commit(self) -> Iterator[Event]:
        """Yields one event; if there are several graphs, one for each, those that retract first."""
        added: dict[Statement, None] = {}
        deletions: dict[Statement, None] = {}
        for _, code, statement in self.rows:
            if code == "A":
                added[statement] = None
            else:
                added.pop(statement, None)
                deletions[statement] = None
        added_runs, deleted_runs = list(in_graphs(added)), list(in_graphs(deletions))
        if len({graph for graph, _ in (*added_runs, *deleted_runs)}) == 1:
            graph = (added_runs or deleted_runs)[0][0]
            facts, removals = (tuple(runs[0][1]) if runs else () for runs in (added_runs, deleted_runs))
            yield Event(self.time, facts, self.stream, removals, graph)
        else:
            yield from (Event(self.time, (), self.stream, tuple(triples), graph) for graph, triples in deleted_runs)
            yield from (Event(self.time, tuple(triples), self.stream, (), graph) for graph, triples in added_runs)
        self._clear()

    def _header(self, text: str) -> str:
        """Reads a header, of which only ``time`` has a meaning here, and returns what is wrong with it."""
        match = _HEADER.fullmatch(text)
        if match is None:
            return "not a header"
        if match[1] != "time":
            return ""
        try:
            self.time = _time(match[2])
        except (SyntaxError, ValueError):
            return f"`{match[2]}` is no time"
        return ""


def _time(text: str) -> int:
    """Returns the time of a literal; a string may have the syntax of timed N-Triples.

    Raises:
        SyntaxError: The literal is malformed.
        ValueError: It is no time.
    """
    value = term(text)
    time = moment(value)
    if time is None and value.startswith('"') and parts(value).datatype == XSD_STRING:
        time = time_of(parts(value).lexical)
    if time is None:
        raise ValueError(text)
    return time


def transaction(evaluation: Evaluation) -> bytes:
    """Returns an evaluation as a transaction that adds it; ``b""`` if it is empty.

    Raises:
        SinkError: The evaluation has other things than triples and quads.
    """
    rows = "".join(f"A {statement}\n" for statement in statements_of(evaluation))
    return f'H time "{time_text(evaluation.time)}" .\nTX .\n{rows}TC .\n'.encode() if rows else b""
