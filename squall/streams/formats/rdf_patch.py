"""RDF Patch: additions and removals by transaction (https://jena.apache.org/documentation/rdf-patch).

A transaction is one event, or one for each graph: it brings what is there at its end of what it adds, and removes all
that it takes out.
Rows outside of transactions are one as well, up to where one begins, a header, or the end. A header ``H time "..." .``
says the time of the events that follow it. Prefixes belong to the dataset and not to the rows: they are passed over.

What is written is a transaction for each evaluation, behind the header that says its time.
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

Lose = Callable[[int, str, str], None]
"""Called with the number of a line, the reason and its text, for each row that cannot be used."""

_HEADER = re.compile(r"(\S+)\s+(\S.*?)\s*\.\s*")
_BLANK_NODE = re.compile(rb'("(?:[^"\\]|\\.)*")|<(_:[^>]*)>')
_END = re.compile(r"\.\s*(?:#.*)?")


class Patch:
    """A patch, or several behind each other, as its lines come.

    stream, time: of the events; the time (integer ms) of those that no header gives one. own: what makes the labels of
    its blank nodes its own (`squall.streams.formats.suffix`). longest: a transaction whose statements have more bytes
    is lost as a whole; None: none is.
    """

    def __init__(self, stream: str, time: int, own: str, lose: Lose, longest: int | None = None) -> None:
        self.stream = stream
        self.time = time
        self.own = own
        self.lose = lose
        self.longest = longest
        self.begun = False
        self.length = 0
        """Bytes of the statements of the transaction so far."""
        self.rows: list[tuple[int, str, Statement]] = []
        """(line, ``A`` or ``D``, statement) of the transaction so far."""

    def read(self, first: int, block: bytes) -> list[Event]:
        """The events that whole lines complete; `first` is the number of the first line."""
        lines = enumerate(block.split(b"\n"), first)
        return [event for number, line in lines for event in self._row(number, line)]

    def end(self) -> list[Event]:
        """The event of what no transaction holds; what one holds that has not been committed is lost."""
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
        """An addition or a removal. A blank node may be written ``<_:label>``."""
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
        """Loses the rows of a transaction that is too long."""
        if self.longest is not None and self.length > self.longest:
            for number, code, statement in self.rows:
                reason = f"its transaction is longer than {self.longest} bytes"
                self.lose(number, reason, f"{code} {statement}"[:MAX_TEXT_LENGTH])
            self.rows = []

    def _clear(self) -> None:
        self.rows, self.length = [], 0

    def _commit(self) -> Iterator[Event]:
        """One event; one for each graph where there are several, those that remove first."""
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
        """What is wrong with a header; of those, ``time`` alone means something here."""
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
    """The time that a literal says, a string also as in timed N-Triples. Raises SyntaxError or ValueError."""
    value = term(text)
    time = moment(value)
    if time is None and value.startswith('"') and parts(value).datatype == XSD_STRING:
        time = time_of(parts(value).lexical)
    if time is None:
        raise ValueError(text)
    return time


def transaction(evaluation: Evaluation) -> bytes:
    """An evaluation as a transaction that adds it; nothing if there is nothing in it. Raises SinkError where it has
    other things than triples and quads."""
    rows = "".join(f"A {statement}\n" for statement in statements_of(evaluation))
    return f'H time "{time_text(evaluation.time)}" .\nTX .\n{rows}TC .\n'.encode() if rows else b""
