"""Parsing in workers: from lines of sources to events and dead letters."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, Protocol, cast
from urllib.parse import unquote, urlsplit

import pyarrow

from squall.builders.distributed.io.records import DeadLetter
from squall.builders.runtime.schema_changes import CAUSE, SchemaChange
from squall.builders.runtime.zset import fact_row, row_fact
from squall.errors import UsageError
from squall.rdf import DEFAULT_STREAM, Event, Fact, Term
from squall.streams.dead_letters import late_texts
from squall.streams.formats import (
    Format,
    Malformed,
    format_named,
    infer_format,
    joined,
    parse_lines,
    quintuples,
    suffix,
)
from squall.streams.formats.fast_ntriples import PredicateFilter, events
from squall.streams.formats.reading import ReadProgress, Settings, grouped
from squall.streams.formats.records import RecordDecoder
from squall.streams.formats.text_input import count_lines, text_of_lines
from squall.streams.mappings.model import Records


class Document(NamedTuple):
    """How the lines of a source are read.

    Attributes:
        name: the path of the file or folder, as the user gave it.
        stream: the stream, as in the source's address.
        format: the format, as in the source's address.
        time: the time of untimed statements (integer ms), as in the source's address.
        folder: whether it is a folder.
        spooled: whether the lines are what `spool_lines` and `dead_letter_line` made, not RDF.
        messages: whether each line is a message, and so a document of its own, by its topic and offset.
        static: whether its facts always hold. None of them counts as a statement of a source.
        documents: IRIs, and the files for which they stand: contexts of JSON-LD.
        records: how records, which are no RDF, are read; None: there is no mapping.
    """

    name: str
    stream: str = ""
    format: str = ""
    time: int = 0
    folder: bool = False
    spooled: bool = False
    messages: bool = False
    static: bool = False
    documents: tuple[tuple[str, str], ...] = ()
    records: Records | None = None

    def of(self, path: str) -> str:
        """Returns the name of the document that a file is. It scopes blank nodes, in the same way on every builder."""
        return str(Path(self.name, Path(path).name)) if self.folder else self.name


class Parsed(NamedTuple):
    """The content of a run of lines of one source.

    Attributes:
        source: the number of the source.
        events: the events.
        lost: the dead letters.
        statements: how many statements could be used.
        file: the name of the file.
        block: where the part of the file begins. The runs of one block come in order.
    """

    source: int
    events: Sequence[Event]
    lost: list[DeadLetter]
    statements: int
    file: str = ""
    block: int = 0


class Parse(Protocol):
    """The function from lines, with their positions, to what they hold."""

    def __call__(
        self, batches: Iterable[pyarrow.RecordBatch], predicates: Collection[Term] | None, watermark: int
    ) -> Iterator[Parsed]:
        """Yields what the lines hold.

        Args:
            batches: the lines.
            predicates: the predicates of triples that are needed (None: all). Others may be left out, unless they are
                late.
            watermark: the time before which events are late (integer ms).
        """


def spool_lines(event: Event) -> Iterator[str]:
    """Yields the facts of an event, or an event without facts, as lines of a spool file. So events that Spark cannot
    read reach its workers."""
    place = event.time, event.stream, event.graph
    kinds = [("removed", fact) for fact in event.removed] + [("fact", fact) for fact in event.facts]
    for line in [[*place, kind, *fact_row(fact)[:-1]] for kind, fact in kinds] or [[*place, "event"]]:
        yield json.dumps(line, ensure_ascii=False)


def dead_letter_line(dead_letter: DeadLetter) -> str:
    """Returns a dead letter as a line of a spool file."""
    return json.dumps(dead_letter._asdict(), ensure_ascii=False)


def lines_parser(documents: Sequence[Document]) -> Parse:
    """Returns the function from batches of lines (columns value, file, block, source) to what they hold.

    `source` numbers the documents. `file` and `block` say where a line is from; the lines of a block come in order.
    """

    def parse(
        batches: Iterable[pyarrow.RecordBatch], predicates: Collection[Term] | None, watermark: int
    ) -> Iterator[Parsed]:
        counts: dict[tuple[str, int], int] = {}
        for batch in batches:
            for (file, block, source), lines in _line_runs(batch):
                if documents[source].messages:
                    for data in lines:
                        yield Parsed(source, *_parse_message(documents[source], file, block, data), file, block)
                    continue
                before, text = counts.get((file, block), 0), joined(lines)
                counts[file, block] = before + count_lines(text) + 1
                path = unquote(urlsplit(file).path)
                predicate_filter = None if predicates is None else PredicateFilter(predicates, watermark)
                block_parsed = parse_block(documents[source], path, block, before, text, predicate_filter)
                yield Parsed(source, *block_parsed, file, block)

    return parse


def _line_runs(batch: pyarrow.RecordBatch) -> Iterator[tuple[tuple[str, int, int], list[str | bytes]]]:
    """Yields the lines of each part of a file, with the file's name, the start of the part, and the source."""
    lines = batch.column("value").to_pylist()
    columns = [batch.column(name) for name in ("file", "block", "source")]
    if all(len(column.unique()) == 1 for column in columns):
        file, block, source = (column[0].as_py() for column in columns)
        yield (file, block, source), lines
        return
    places = zip(*(column.to_pylist() for column in columns), strict=True)
    for place, group in groupby(zip(places, lines, strict=True), key=itemgetter(0)):
        yield place, [line for _, line in group]


def parse_block(
    document: Document, path: str, block: int, before: int, text: bytes, predicate_filter: PredicateFilter | None
) -> tuple[Sequence[Event], list[DeadLetter], int]:
    """Returns the events of lines, the dead letters, and how many statements could be used.

    Args:
        document: how the lines are read.
        path: the file.
        block: where the part of the file begins.
        before: how many lines of the part come before these.
        text: the lines.
        predicate_filter: which triples are needed (None: all).
    """
    if document.spooled:
        spooled_events, losses, count = _unspooled(text.split(b"\n"))
        return spooled_events, losses, 0 if document.static else count
    name = document.of(path)
    if path.endswith(".tmp"):  # a file that is still being written
        return [], [], 0
    is_begin = block == before == 0
    try:
        format, compression = infer_format(path, document.format, document.records is not None)
        if compression != ("gz" if path.endswith(".gz") else ""):
            raise UsageError(f"workers do not read files that are compressed as `.{compression}`")
        text = text_of_lines(text, is_begin) if path else text  # rows of a table have no ends
    except (UsageError, Malformed) as error:
        return [], [DeadLetter("malformed", name, 0, 0, _reason(error), "")] if is_begin else [], 0
    first = before + 1 if path else 0  # rows of a table have no places
    if format.records:
        return _records_block(document, name, block, first, text)
    return _statements_block(document, name, block, first, text, format, predicate_filter)


def _statements_block(
    document: Document,
    name: str,
    block: int,
    first: int,
    text: bytes,
    format: Format,
    predicate_filter: PredicateFilter | None,
) -> tuple[Sequence[Event], list[DeadLetter], int]:
    """Returns the content of lines of statements. The arguments are those of `_records_block` and `parse_block`."""
    if format.timed:
        plain = events(text, suffix(name), document.stream, predicate_filter)
        if plain is not None:
            return plain[0], [], plain[1]
    if format.tuples:
        facts, bad = quintuples.facts(text, suffix(name))
        parsed_events = [Event(document.time, tuple(facts), document.stream)] if facts else []
    else:
        timed_facts, bad = parse_lines(text.split(b"\n"), name, format.timed, format.name, document.time)
        parsed_events = grouped(timed_facts, document.stream) if timed_facts else []
    dead_letters = [
        DeadLetter("malformed", name, block, first and first + index, reason, text) for index, reason, text in bad
    ]
    return _with_fact_count(parsed_events, dead_letters)


def _records_block(
    document: Document, name: str, block: int, first: int, text: bytes
) -> tuple[Sequence[Event], list[DeadLetter], int]:
    """Returns the content of lines of JSON, as in process (`squall.streams.formats.records`).

    Args:
        document: how the lines are read.
        name: the name of the document.
        block: where the part of the file begins.
        first: the number of the first line in the part, from 1; 0: it is unknown.
        text: the lines.
    """
    assert document.records is not None
    decoder = RecordDecoder(document.records, document.stream, document.time, suffix(name))
    events, bad = decoder.lines(text)
    dead_letters = [
        DeadLetter("malformed", name, block, first and first + index, reason, line) for index, reason, line in bad
    ]
    return events, dead_letters, decoder.count


def _reason(error: UsageError | Malformed) -> str:
    return error.message if isinstance(error, UsageError) else error.reason


def _parse_message(
    document: Document, place: str, number: int, data: str | bytes
) -> tuple[Sequence[Event], list[DeadLetter], int]:
    """Returns the content of a message, as in process (`squall.streams.live.messages`)."""
    from squall.streams.live import messages  # on demand: most jobs read none

    assert isinstance(data, bytes)
    losses = DeadLetterBuffer()
    settings = Settings(
        document.format, document.stream, document.time, documents=document.documents, records=document.records
    )
    message = messages.Message(data, place, f"offset {number}")
    format, _ = format_named(document.format, document.records is not None)
    read = messages.read(message, format, settings, losses, ReadProgress())
    return _with_fact_count([event for batch in read for event in batch], losses.take())


class DeadLetterBuffer:
    """A ledger that buffers dead letters until they are taken (`squall.contracts.DeadLetterLedger`)."""

    def __init__(self) -> None:
        self._found: list[DeadLetter] = []

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        self.add(DeadLetter(cause, source, 0, line or 0, reason, text))

    def add(self, dead_letter: DeadLetter) -> None:
        self._found.append(dead_letter)

    def take(self) -> list[DeadLetter]:
        dead_letters, self._found = self._found, []
        return dead_letters


def _with_fact_count(events: list[Event], dead_letters: list[DeadLetter]) -> tuple[list[Event], list[DeadLetter], int]:
    return events, dead_letters, sum(len(event.facts) for event in events)


def _unspooled(lines: Sequence[bytes]) -> tuple[Sequence[Event], list[DeadLetter], int]:
    events: list[Event] = []
    dead_letters: list[DeadLetter] = []
    for line_value in json.loads(b"[%b]" % b",".join(lines)):  # in one call, which takes half the time
        if isinstance(line_value, list):
            time, stream, graph, kind, *cells = line_value
            events.append(event_from_rows(time, stream, graph, kind, [cells]))
        else:
            dead_letters.append(DeadLetter(**line_value))
    return _with_fact_count(events, dead_letters)


def unspool(text: bytes) -> Sequence[Event]:
    """Returns the events of whole lines that `spool_lines` made, one for each."""
    return _unspooled(text.splitlines())[0]


def event_from_rows(time: int, stream: str, graph: str, kind: str, rows: Iterable[Sequence[str]]) -> Event:
    """Returns an event whose facts arrive (kind ``fact``), are removed (``removed``), or are absent (``event``). rows:
    the rows of the facts; an empty row stands for no fact."""
    facts = tuple(cast(Fact, row_fact(cells)) for cells in rows if cells)
    return Event(time, facts if kind == "fact" else (), stream, facts if kind == "removed" else (), graph)


def schema_dead_letter(change: SchemaChange) -> DeadLetter:
    """Returns the dead letter of a triple that would change what is fixed before the run."""
    return DeadLetter(CAUSE, change.event.stream or DEFAULT_STREAM, 0, 0, *change.texts)


def late_dead_letter(stream: str, time: int, fact: Fact) -> DeadLetter:
    """Returns the dead letter of a fact whose time has passed."""
    return DeadLetter("late", stream or DEFAULT_STREAM, 0, 0, *late_texts(time, fact))
