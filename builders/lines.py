"""How a distributed builder's workers read sources: lines to events, and to statements that could not be used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import unquote, urlsplit

import pyarrow

from squall.builders.messages import LOST, Message
from squall.builders.rows.entries import fact_row, row_fact
from squall.errors import UsageError
from squall.rdf import DEFAULT_STREAM, Event, Fact
from squall.streams.formats import parse_lines, told
from squall.streams.reading import grouped


class Document(NamedTuple):
    """How the lines of a source are read.

    name: the path of the file, or of the folder, as the user gave it. format, time (ms, of untimed statements), stream:
    as in the source's address. spooled: the lines are what `spool_line` made, not RDF.
    """

    name: str
    stream: str = ""
    format: str = ""
    time: int = 0
    folder: bool = False
    spooled: bool = False

    def of(self, path: str) -> str:
        """The name of the document that a file is: it scopes blank nodes, in the same way on every builder."""
        return str(Path(self.name, Path(path).name)) if self.folder else self.name


class Parsed(NamedTuple):
    """What a run of lines of one source held, and what was lost of it. file, block: where it is from, by its name and
    where that part of it begins; what is of one block comes in order."""

    source: int
    events: list[Event]
    lost: list[Lost]
    file: str = ""
    block: int = 0


Parse = Callable[[Iterable[pyarrow.RecordBatch]], Iterator[Parsed]]
"""From lines, with the places that they are from, to what they hold."""


def spool_lines(event: Event) -> Iterator[str]:
    """The facts of an event, or an event without any, as lines of a spool file: so does what Spark cannot read go to
    its workers."""
    place = event.time, event.stream, event.graph
    kinds = [("removed", fact) for fact in event.removed] + [("fact", fact) for fact in event.facts]
    for line in [[*place, kind, *fact_row(fact)[:-1]] for kind, fact in kinds] or [[*place, "event"]]:
        yield json.dumps(line, ensure_ascii=False)


def lines_parser(documents: Sequence[Document]) -> Parse:
    """The function from batches of lines (columns value, file, block, source) to what they hold. `source` numbers the
    documents; `file` and `block` say where a line is from: the lines of a block come in order."""

    def parse(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Parsed]:
        counts: dict[tuple[str, int], int] = {}
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("file", "block", "source", "value")]
            for (file, block, source), group in groupby(zip(*columns, strict=True), key=itemgetter(0, 1, 2)):
                lines = [line for _, _, _, line in group]
                before = counts.get((file, block), 0)
                counts[file, block] = before + len(lines)
                path = unquote(urlsplit(file).path)
                yield Parsed(source, *_parse(documents[source], path, block, before, lines), file, block)

    return parse


def _parse(document: Document, path: str, block: int, before: int, lines: list[str]) -> tuple[list[Event], list[Lost]]:
    if document.spooled:
        return list(_unspool(lines)), []
    name = document.of(path)
    if path.endswith(".tmp"):  # a file that is still being written
        return [], []
    try:
        format, _ = told(path, document.format)
    except UsageError as error:
        return [], [Lost("malformed", name, 0, 0, error.message, "")] if block == before == 0 else []
    found, bad = parse_lines(lines, name, format.timed, format.name, document.time)
    first = before + 1 if path else 0  # rows of a table have no places
    lost = [Lost("malformed", name, block, first and first + index, reason, text) for index, reason, text in bad]
    return (grouped(found, document.stream) if found else []), lost


def _unspool(lines: list[str]) -> Iterator[Event]:
    for line in lines:
        time, stream, graph, kind, *cells = json.loads(line)
        yield event_of(time, stream, graph, kind, cells)


def event_of(time: int, stream: str, graph: str, kind: str, cells: Sequence[str]) -> Event:
    """An event of one fact that comes (kind ``fact``) or ends (``removed``), or of none (``event``). cells: the fact's
    row."""
    facts = (cast(Fact, row_fact(cells)),) if cells else ()
    return Event(time, facts if kind == "fact" else (), stream, facts if kind == "removed" else (), graph)


class Lost(NamedTuple):
    """A statement that could not be used: how it is kept in a message's row."""

    cause: str
    source: str
    block: int
    line: int
    reason: str
    text: str


def lost_message(lost: Lost) -> Message:
    """A lost statement as a message."""
    return Message(LOST, 0, 0, 0, 0, json.dumps(lost), 0, 0, 0)


def late(stream: str, time: int, fact: Fact) -> Lost:
    """A fact whose time has passed."""
    return Lost("late", stream or DEFAULT_STREAM, 0, 0, f"its time {time} has passed", f"{time} {fact}")
