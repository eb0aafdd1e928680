"""Decodes bytes in a format to events: those of a file, a message, or a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, cast

from squall.contracts import DeadLetterLedger
from squall.rdf import Event, Term, heartbeat, statement_count
from squall.streams.dead_letters import excerpt
from squall.streams.formats import (
    Format,
    Malformed,
    Message,
    Statement,
    Timed,
    in_graphs,
    parse_block,
    parse_timed,
    suffix,
)
from squall.streams.formats.fast_ntriples import PredicateFilter, events
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.parsing import parse_document
from squall.streams.formats.quintuples import IntervalReader, facts
from squall.streams.formats.rdf_messages import messages
from squall.streams.formats.rdf_patch import PatchReader
from squall.streams.formats.text_input import TextInput, text_input
from squall.streams.formats.timestamps import property_time
from squall.streams.mappings.model import Records
from squall.wording import counted

if TYPE_CHECKING:
    from squall.streams.formats.records import RecordDecoder


@dataclass
class ReadProgress:
    """The numbers of usable statements and of bytes that have been read of a source, for progress and the summary.

    Attributes:
        statements: The number of usable statements.
        bytes: The number of bytes.
        malformed: The number of dead letters with the cause ``malformed``.
    """

    statements: int = 0
    bytes: int = 0
    malformed: int = 0

    @property
    def is_unreadable(self) -> bool:
        """Whether something was there, but nothing could be read."""
        return self.malformed > 0 and self.statements == 0


@dataclass
class DocumentPosition:
    """The position in a document from which another process can resume, behind its last batch.

    Attributes:
        offset: The number of bytes, uncompressed, of the lines that have been read.
        line: The number of the next line, from 1.
        statements: The number of statements that have been read of a document without lines, or of messages of a log.
        ended: Whether it has been read completely.
    """

    offset: int = 0
    line: int = 1
    statements: int = 0
    ended: bool = False

    def advance(self, block: bytes, lines: int | None = None) -> None:
        """Advances behind a block of complete lines.

        Args:
            block: The lines, without the end of the last one.
            lines: Their number, if it is known.
        """
        self.offset += len(block) + 1
        self.line += lines or block.count(b"\n") + 1


@dataclass(frozen=True)
class Settings:
    """The settings of a source.

    Attributes:
        format: The name of the format, with ``.gz`` if it is compressed; ``""``: the file's ending decides.
        stream: The stream of its facts.
        time: The time of untimed statements, in integer ms.
        whole_lines: Whether a last line without an end is ignored, since the file may grow.
        longest: The most bytes of an incomplete line, statement or transaction before it is malformed; None: no limit,
            for bounded sources.
        property: The property that has the time of a message, if there is one.
        ahead: Whether a process of its own may read a long file.
        limits: How much is read at a time, and the like.
        documents: IRIs, and the files for which they stand: contexts of JSON-LD.
        source: The source, in whose documents and messages an RDF Patch keeps its blank nodes apart from those of
            others; ``""``: each document has its own, as in all other formats.
        context: The context of JSON-LD documents from outside, as JSON; ``""``: there is none.
        records: How records, which are no RDF, are read; None: there is no mapping.
    """

    format: str
    stream: str
    time: int
    whole_lines: bool = False
    longest: int | None = None
    property: Term | None = None
    ahead: bool = True
    limits: ReadLimits = DEFAULT_LIMITS
    documents: tuple[tuple[str, str], ...] = ()
    source: str = ""
    context: str = ""
    records: Records | None = None

    def is_timed(self, format: Format) -> bool:
        """Returns whether documents of a format have times of their own."""
        return format.timed or (format.records and self.records is not None and self.records.is_timed)


def decode(
    file: IO[bytes],
    name: str,
    format: Format,
    settings: Settings,
    ledger: DeadLetterLedger,
    reading: ReadProgress,
    predicate_filter: PredicateFilter | None = None,
    base: str | None = None,
    place: DocumentPosition | None = None,
) -> Iterator[Sequence[Event]]:
    """Yields the events of bytes, one batch for each block that is available. A batch may be empty.

    When a batch is output, `reading` and `place` are behind its block. Malformed statements go to the ledger. Errors of
    reading the file are raised.

    Args:
        file: The bytes. It may have an attribute `is_cut`, which says at its end that more would have followed.
        name: The name of the document, for dead letters, and for its blank nodes, which are its own.
        format: The format.
        settings: The settings of the source.
        ledger: The ledger for malformed statements.
        reading: The counts to update.
        predicate_filter: The predicates of timed lines that are used, or None for all.
        base: The IRI against which relative ones in a document are resolved.
        place: The position at which reading begins, which is updated. The file must be there already if the format can
            begin there (`can_begin_anywhere`), and otherwise at its beginning.
    """
    place = place or DocumentPosition()
    is_begin = place.offset == 0 or not can_begin_anywhere(format)
    input = text_input(file, format, is_begin, base, settings.documents, settings.context)
    decoder = _Decoder(input, name, format, settings, ledger, reading, predicate_filter, base, place)
    yield from decoder.batches()
    decoder.place.ended = True


def can_begin_anywhere(format: Format) -> bool:
    """Returns whether a document of a format can be read from the middle, without what is before."""
    return format.lines and not format.removals


@dataclass(frozen=True)
class _Decoder:
    """The state of `decode`, whose arguments its attributes are; `input` has the bytes of the file."""

    input: TextInput
    name: str
    format: Format
    settings: Settings
    ledger: DeadLetterLedger
    reading: ReadProgress
    predicate_filter: PredicateFilter | None
    base: str | None
    place: DocumentPosition

    def batches(self) -> Iterator[Sequence[Event]]:
        try:
            if not self.input.begin():
                return
        except Malformed as error:
            self._leave_out_rest(error)
            return
        yield from self._batches()

    def _batches(self) -> Iterator[Sequence[Event]]:
        if self.format.removals:
            return self._log()
        if self.format.records:
            return self._records()
        if self.format.messages:
            return self._messages()
        if not self.format.lines:
            return self._document()
        if self.format.tuples:
            return self._tuples()
        return self._timed_lines() if self.format.timed else self._lines()

    def _lines(self) -> Iterator[Sequence[Event]]:
        own = suffix(self.name)
        for block in self._blocks():
            statements, bad = parse_block(block, self.format.syntax, own)
            self._record(bad)
            self.place.advance(block)
            yield self._batch(statements)

    def _timed_lines(self) -> Iterator[Sequence[Event]]:
        own, stream = suffix(self.name), self.settings.stream
        batch: Sequence[Event]
        for block in self._blocks():
            plain = events(block, own, stream, self.predicate_filter)
            if plain is not None:
                batch, count = plain
                self.place.advance(block, count)  # a statement is a line
            else:
                timed, bad = parse_timed(block, self.format.syntax, own)
                self._record(bad)
                batch, count = _chosen(timed, stream, self.predicate_filter), len(timed)
                self.place.advance(block)
            self.reading.statements += count
            yield batch

    def _tuples(self) -> Iterator[Sequence[Event]]:
        own = suffix(self.name)
        for block in self._blocks():
            statements, bad = facts(block, own)
            self._record(bad)
            self.place.advance(block)
            self.reading.statements += len(statements)
            yield (Event(self.settings.time, tuple(statements), self.settings.stream),) if statements else ()

    def _log(self) -> Iterator[Sequence[Event]]:
        """Decodes an RDF Patch, or quintuples with validity. A part that was read before is read again for what is open
        at its end: a transaction, or intervals."""
        place = self.place
        start_offset, start_ended = place.offset, place.ended
        place.offset, place.line = 0, 1

        def lose(line: int, reason: str, text: str) -> None:
            if place.offset >= start_offset:
                self._lose(line, reason, text)

        settings = self.settings
        log: PatchReader | IntervalReader
        if self.format.tuples:
            log = IntervalReader(settings.stream, suffix(self.name), lose)
        else:
            own = suffix(settings.source or self.name)
            log = PatchReader(settings.stream, settings.time, own, lose, settings.longest)
        for block in _divided(self._blocks(), place, start_offset):
            events, is_new = log.read(place.line, block), place.offset >= start_offset
            place.advance(block)
            if is_new:
                yield self._changes(events)
        if not start_ended:
            place.ended = True
            yield self._changes(log.end())

    def _document(self) -> Iterator[Sequence[Event]]:
        if self.place.ended:
            return
        seen_count, count = self.place.statements, 0
        try:
            longest, limits = self.settings.longest, self.settings.limits
            own = suffix(self.name)
            for statements, bad in parse_document(self.input, self.format, self.base, own, longest, limits):
                count += len(statements)
                new, dead_letters = statements[seen_count:], bad[max(0, seen_count - len(statements)) :]
                seen_count = max(0, seen_count - len(statements) - len(bad))
                self.place.statements += len(new) + len(dead_letters)
                for dead_letter in dead_letters:
                    self._lose(dead_letter.line, dead_letter.reason, dead_letter.text)
                yield self._batch(new)
            if not self.place.statements and (reason := self.input.why_nothing()):
                self._leave_out_rest(Malformed(reason, None))
        except Malformed as error:
            self._leave_out_rest(error, counted(count, "statement") if count else "")

    def _records(self) -> Iterator[Sequence[Event]]:
        """Decodes records by their mapping."""
        settings = self.settings
        if settings.records is None:
            if not TextInput.has_content(self.input):
                return
            reason = f"records of the format `{self.format.name}` need a mapping: `map=FILE`"
            self._leave_out_rest(Malformed(reason, None))
            return
        from squall.streams.formats.records import RecordDecoder  # RDF needs no mappings

        decoder = RecordDecoder(settings.records, settings.stream, settings.time, suffix(self.name))
        match self.format.name:
            case "ndjson":
                batches = self._json_lines(decoder)
            case "csv":
                batches = self._rows(decoder)
            case "avro" | "parquet":
                batches = self._binary_records(decoder, settings.records)
            case _:
                batches = self._json(decoder)
        for batch in batches:
            self.reading.statements += decoder.count
            yield batch

    def _json_lines(self, decoder: RecordDecoder) -> Iterator[Sequence[Event]]:
        for block in self._blocks():
            batch, bad = decoder.lines(block)
            self._record(bad)
            self.place.advance(block)
            yield batch

    def _json(self, decoder: RecordDecoder) -> Iterator[Sequence[Event]]:
        """Decodes a JSON document, which is read as a whole."""
        if self.place.statements or self.place.ended:
            return
        try:
            data = b"".join(self._whole_document())
        except Malformed as error:
            self._leave_out_rest(error)
            return
        if self.input.is_cut:
            return
        batch, bad = decoder.document(data)
        self.place.statements = 1
        for _, reason, text in bad:
            self._lose(None, reason, text)
        yield batch

    def _whole_document(self) -> Iterator[bytes]:
        """Yields the bytes of the document. Raises Malformed if it is too long."""
        length = 0
        while chunk := self.input.read(self.settings.limits.chunk_bytes):
            length += len(chunk)
            if self.settings.longest is not None and length > self.settings.longest:
                raise Malformed(f"the document is longer than {self.settings.longest} bytes", None)
            yield chunk

    def _binary_records(self, decoder: RecordDecoder, records: Records) -> Iterator[Sequence[Event]]:
        """Decodes a file of Avro or Parquet, or a single record of Avro."""
        from squall.streams.formats.binary_records import batches_of_records, field_names, parse_schema, single_record

        place, name = self.place, self.format.name
        if place.ended:
            return
        count = 0
        chunks = self._whole_document()
        try:
            with seekable(lambda size: next(chunks, b"")) as file:
                if self.input.is_cut or not file.seek(0, SEEK_END):
                    return
                file.seek(0)
                if records.schema:
                    batches = iter([[single_record(file.read(), parse_schema(records.schema))]])
                else:
                    decoder.check_fields(field_names(name, file), "column" if name == "parquet" else "field")
                    file.seek(0)
                    batches = batches_of_records(name, file, records.mapping.fields(), place.statements)
                for batch in batches:
                    events, bad = decoder.json_values(batch)
                    for index, reason, text in bad:
                        prefix = "" if records.schema else f"record {place.statements + index + 1}: "
                        self._lose(None, prefix + reason, text)
                    place.statements += len(batch)
                    count += decoder.count
                    yield events
        except Malformed as error:
            self._leave_out_rest(error, counted(count, "statement") if count else "")

    def _rows(self, decoder: RecordDecoder) -> Iterator[Sequence[Event]]:
        """Decodes rows of CSV. A document that was read before is read again for its header only."""
        place = self.place
        start_offset, pending = place.offset, b""
        place.offset, place.line = 0, 1
        try:
            if decoder.columns:
                decoder.set_columns(decoder.columns)
            for block in _divided(self._blocks(), place, start_offset):
                text = pending + b"\n" + block if pending else block
                if not decoder.columns:
                    header = decoder.read_header(text, is_end=False)
                    if header is None:
                        pending = text
                        continue
                    text = text[len(header) + 1 :]
                    place.advance(header)
                if place.offset < start_offset:
                    place.advance(text)
                    pending = b""
                    continue
                batch, pending = self._row_batch(decoder, text, is_end=len(text) > self.settings.limits.max_unit_bytes)
                yield batch
            if pending and not self.settings.whole_lines:
                if decoder.columns:
                    yield self._row_batch(decoder, pending, is_end=True)[0]
                else:
                    decoder.read_header(pending, is_end=True)
        except Malformed as error:
            self._leave_out_rest(error)

    def _row_batch(self, decoder: RecordDecoder, text: bytes, is_end: bool) -> tuple[Sequence[Event], bytes]:
        """Returns the events of rows, and the lines of a row that does not end in them."""
        batch, bad, line_count = decoder.rows(text, is_end)
        lines = text.split(b"\n")
        self._record(bad)
        if line_count:
            self.place.advance(b"\n".join(lines[:line_count]), line_count)
        return batch, b"\n".join(lines[line_count:])

    def _messages(self) -> Iterator[Sequence[Event]]:
        """Decodes a log of messages. A malformed message is left out completely."""
        if self.place.ended:
            return
        seen_count, number, batch = self.place.statements, 0, list[Event]()
        try:
            limits = self.settings.limits
            for message in messages(cast(IO[bytes], self.input), self.format, self.base, self.name, limits):
                if message is None:
                    yield batch
                    batch = []
                    continue
                number += 1
                if number <= seen_count:
                    continue
                self.place.statements = number
                try:
                    batch += self._message_events(message)
                except Malformed as error:
                    self._lose(error.line, f"message {number}: {error.reason}", "")
        except Malformed as error:
            self._leave_out_rest(error, counted(number, "message") if number else "")
        yield batch

    def _message_events(self, message: Message | Malformed) -> list[Event]:
        """Returns the events of a message, one for each run of statements in one graph. Raises Malformed."""
        if isinstance(message, Malformed):
            raise message
        settings = self.settings
        time = settings.time if message.time is None else message.time
        if settings.property is not None and message.statements:
            try:
                time = property_time(message.statements, settings.property)
            except ValueError as error:
                raise Malformed(str(error), None) from error
        self.reading.statements += len(message.statements)
        if not message.statements and message.time is not None:
            return [heartbeat(message.time)]
        return list(_at(time, message.statements, settings.stream))

    def _batch(self, statements: list[Statement]) -> Sequence[Event]:
        self.reading.statements += len(statements)
        return tuple(_at(self.settings.time, statements, self.settings.stream))

    def _changes(self, events: list[Event]) -> Sequence[Event]:
        self.reading.statements += statement_count(events)
        return events

    def _blocks(self) -> Iterator[bytes]:
        """Yields blocks of complete lines as soon as they are available, without the end of the last line."""
        longest, chunk_bytes = self.settings.longest, self.settings.limits.chunk_bytes
        remainder, length = list[bytes](), 0
        chunk = self.input.read(chunk_bytes)
        if self.place.offset == 0:
            self.place.offset = self.input.skipped
        while chunk:
            head, newline, tail = chunk.rpartition(b"\n")
            if newline:
                yield b"".join([*remainder, head])
                remainder, length = [], 0
            remainder += [tail] if tail else []
            length += len(tail)
            after = b""
            if longest is not None and length > longest:
                after = self._skip_line(b"".join(remainder))
                remainder, length = [], 0
            chunk = after or self.input.read(chunk_bytes)
        if remainder and not self.settings.whole_lines:
            yield b"".join(remainder)

    def _skip_line(self, begin: bytes) -> bytes:
        """Skips a line that is too long, which is a dead letter. Returns the bytes after it that have been read.

        Args:
            begin: The line so far.
        """
        size, after = len(begin), b""
        while chunk := self.input.read(self.settings.limits.chunk_bytes):
            end, newline, after = chunk.partition(b"\n")
            size += len(end)
            if newline:
                break
        else:
            if self.settings.whole_lines:
                return b""
        self._record([(0, f"the line is longer than {self.settings.longest} bytes", excerpt(begin))])
        self.place.offset += size + 1
        self.place.line += 1
        return after

    def _record(self, bad: list[tuple[int, str, str]]) -> None:
        """Records malformed lines of the current block."""
        for index, reason, text in bad:
            self._lose(self.place.line + index, reason, text)

    def _lose(self, line: int | None, reason: str, text: str) -> None:
        self.reading.malformed += 1
        self.ledger.record("malformed", self.name, line, reason, text)

    def _leave_out_rest(self, error: Malformed, read: str = "") -> None:
        """Records an error after which nothing of the document can be read.

        Args:
            error: The error.
            read: What has been read before; ``""`` if that is nothing.
        """
        loss = f"the rest of {self.name} is left out ({read} read)" if read else f"nothing of {self.name} is read"
        self._lose(error.line, f"{error.reason}; {loss}", error.text)


@contextmanager
def seekable(read: Callable[[int], bytes]) -> Iterator[IO[bytes]]:
    """Yields a copy of what a function reads, at its beginning, in which one can seek; it is on disk if it is long."""
    with SpooledTemporaryFile(_MAX_BYTES_IN_MEMORY) as copy:
        while chunk := read(_BYTES_PER_COPY):
            copy.write(chunk)
        copy.seek(0)
        yield cast(IO[bytes], copy)


_MAX_BYTES_IN_MEMORY = 1 << 24
_BYTES_PER_COPY = 1 << 20


def _chosen(timed: Sequence[Timed], stream: str, predicate_filter: PredicateFilter | None) -> list[Event]:
    return grouped(timed if predicate_filter is None else predicate_filter.of(timed), stream) if timed else []


def grouped(timed: Sequence[Timed], stream: str = "") -> list[Event]:
    """Groups (time, statement) pairs to events, one for each run of equal times and graphs."""
    events: list[Event] = []
    statements: list[Statement] = []
    current = timed[0][0]
    for moment, statement in timed:
        if moment != current:
            events += _at(current, statements, stream)
            current, statements = moment, []
        statements.append(statement)
    events += _at(current, statements, stream)
    return events


def _at(time: int, statements: list[Statement], stream: str) -> Iterator[Event]:
    """Yields the events of the statements of a stream at one time, one for each run in one graph."""
    for graph, triples in in_graphs(statements):
        yield Event(time, tuple(triples), stream, graph=graph)


def _divided(blocks: Iterable[bytes], place: DocumentPosition, offset: int) -> Iterator[bytes]:
    """Yields blocks of lines, each of which begins at a position, split at an offset at which a line begins."""
    for block in blocks:
        first = offset - place.offset
        if 0 < first <= len(block):
            yield block[: first - 1]
            yield block[first:]
        else:
            yield block
