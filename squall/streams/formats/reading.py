"""Reading bytes in a format as events: of a file, a message, or whatever else has bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from squall.contracts import DeadLetterLedger
from squall.rdf import Event, Term, heartbeat
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
from squall.streams.formats.fast_ntriples import Choice, events
from squall.streams.formats.parsing import parse_document
from squall.streams.formats.rdf_messages import messages
from squall.streams.formats.rdf_patch import Patch
from squall.streams.formats.timestamps import property_time

_CHUNK = 1 << 17  # bytes that are read at a time: what they are taken apart into should fit the processor's caches


@dataclass
class ReadProgress:
    """What has been read of a source so far: statements that could be used, and bytes. For progress and the summary."""

    statements: int = 0
    bytes: int = 0


@dataclass
class DocumentPosition:
    """How far a document has been read: what is needed to go on behind its last batch in another process.

    offset: the bytes, uncompressed, of the lines that have been read. line: the number of the next one. statements: of
    a document that is not made of lines, how many have been read; of a log of messages, how many of these. ended: all
    has been.
    """

    offset: int = 0
    line: int = 1
    statements: int = 0
    ended: bool = False

    def pass_(self, block: bytes, lines: int | None = None) -> None:
        """Whole lines have been read; the end of the last one is not in the block. lines: how many, if known."""
        self.offset += len(block) + 1
        self.line += lines or block.count(b"\n") + 1


@dataclass(frozen=True)
class Settings:
    """How files are read: a format and compression given by name (or ``""``: by ending), the stream that their facts
    arrive on, and the time (integer ms) of untimed statements. whole_lines: a line counts only if its end is there,
    since more may come. longest: of what is not complete (a line, a statement, a transaction) no more than so many
    bytes are kept: it is malformed then; None: all there is has an end. property: what says the time of a message, if
    it is that. ahead: whether a long file may be read by a process of its own."""

    format: str
    stream: str
    time: int
    whole_lines: bool = False
    longest: int | None = None
    property: Term | None = None
    ahead: bool = True


def decoded(
    file: IO[bytes],
    name: str,
    format: Format,
    settings: Settings,
    ledger: DeadLetterLedger,
    reading: ReadProgress,
    choice: Choice | None = None,
    base: str | None = None,
    place: DocumentPosition | None = None,
) -> Iterator[Sequence[Event]]:
    """The events of bytes, a batch for each block at hand, empty where that brings none: where reading stands is behind
    the block then. What is malformed goes to the ledger.

    file: it may have an attribute `is_cut`, which says at its end that more would have come. name: of what is read, for
    the ledger; its blank nodes are its own. choice: what may be left out of timed lines. base: the IRI against which
    relative ones in a document are resolved. place: where reading goes on, and how far it comes; the file is there
    already if it `begins_there`, and at its beginning otherwise. Raises what reading the file does.
    """
    decoder = _Decoder(file, name, format, settings, ledger, reading, choice, base, place or DocumentPosition())
    yield from decoder.batches()
    decoder.place.ended = True


def begins_there(format: Format) -> bool:
    """Whether a document of this format can be read from the middle: what follows does not depend on what is before."""
    return format.lines and not format.removals


@dataclass(frozen=True)
class _Decoder:
    """One reading of bytes: see `decoded`."""

    file: IO[bytes]
    name: str
    format: Format
    settings: Settings
    ledger: DeadLetterLedger
    reading: ReadProgress
    choice: Choice | None
    base: str | None
    place: DocumentPosition

    def batches(self) -> Iterator[Sequence[Event]]:
        if self.format.removals:
            return self._patch()
        if self.format.messages:
            return self._messages()
        if not self.format.lines:
            return self._document()
        return self._timed_lines() if self.format.timed else self._lines()

    def _lines(self) -> Iterator[Sequence[Event]]:
        own = suffix(self.name)
        for block in self._blocks():
            statements, bad = parse_block(block, self.format.syntax, own)
            self._lose(bad)
            self.place.pass_(block)
            yield self._batch(statements)

    def _timed_lines(self) -> Iterator[Sequence[Event]]:
        own, stream = suffix(self.name), self.settings.stream
        batch: Sequence[Event]
        for block in self._blocks():
            plain = events(block, own, stream, self.choice)
            if plain is not None:
                batch, count = plain
                self.place.pass_(block, count)  # a statement is a line
            else:
                timed, bad = parse_timed(block, self.format.syntax, own)
                self._lose(bad)
                batch, count = _chosen(timed, stream, self.choice), len(timed)
                self.place.pass_(block)
            self.reading.statements += count
            yield batch

    def _patch(self) -> Iterator[Sequence[Event]]:
        """What was read before is read once more for what it says of what follows, and for nothing else."""
        place = self.place
        start_offset, start_ended = place.offset, place.ended
        place.offset, place.line = 0, 1

        def lose(line: int, reason: str, text: str) -> None:
            if place.offset >= start_offset:
                self.ledger.record("malformed", self.name, line, reason, text)

        settings = self.settings
        patch = Patch(settings.stream, settings.time, suffix(self.name), lose, settings.longest)
        for block in _divided(self._blocks(), start_offset):
            events, is_new = patch.read(place.line, block), place.offset >= start_offset
            place.pass_(block)
            if is_new:
                yield self._changes(events)
        if not start_ended:
            place.ended = True
            yield self._changes(patch.end())

    def _document(self) -> Iterator[Sequence[Event]]:
        if self.place.ended:
            return
        seen_count = self.place.statements
        try:
            longest = self.settings.longest
            for statements, bad in parse_document(self.file, self.format, self.base, suffix(self.name), longest):
                new, dead_letters = statements[seen_count:], bad[max(0, seen_count - len(statements)) :]
                seen_count = max(0, seen_count - len(statements) - len(bad))
                self.place.statements += len(new) + len(dead_letters)
                for reason, text in dead_letters:
                    self.ledger.record("malformed", self.name, None, reason, text)
                yield self._batch(new)
        except Malformed as error:
            self._malformed(error, f"{error.reason}; the rest of the document is left out")

    def _messages(self) -> Iterator[Sequence[Event]]:
        """Each message is there as a whole, or is left out."""
        if self.place.ended:
            return
        seen_count, number, batch = self.place.statements, 0, list[Event]()
        try:
            for message in messages(self.file, self.format, self.base, self.name):
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
                    self._malformed(error, f"message {number}: {error.reason}")
        except Malformed as error:
            self._malformed(error, f"{error.reason}; the rest of the log is left out")
        yield batch

    def _message_events(self, message: Message | Malformed) -> list[Event]:
        """The events of a message, one for each run of statements in one graph. Raises Malformed."""
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
        self.reading.statements += sum(len(event.facts) + len(event.removed) for event in events)
        return events

    def _blocks(self) -> Iterator[bytes]:
        """Whole lines as soon as they are there, in blocks, without the end of the last one."""
        longest = self.settings.longest
        remainder, length = list[bytes](), 0
        chunk = self.file.read(_CHUNK)
        while chunk:
            head, newline, tail = chunk.rpartition(b"\n")
            if newline:
                yield b"".join([*remainder, head])
                remainder, length = [], 0
            remainder += [tail] if tail else []
            length += len(tail)
            behind = b""
            if longest is not None and length > longest:
                behind = self._behind_line(b"".join(remainder))
                remainder, length = [], 0
            chunk = behind or self.file.read(_CHUNK)
        if remainder and not self.settings.whole_lines:
            yield b"".join(remainder)

    def _behind_line(self, begin: bytes) -> bytes:
        """What has come behind a line that is too long, which is counted when its end is there. begin: all of it so
        far."""
        size, behind = len(begin), b""
        while chunk := self.file.read(_CHUNK):
            end, newline, behind = chunk.partition(b"\n")
            size += len(end)
            if newline:
                break
        else:
            if self.settings.whole_lines:
                return b""
        self._lose([(0, f"the line is longer than {self.settings.longest} bytes", excerpt(begin))])
        self.place.offset += size + 1
        self.place.line += 1
        return behind

    def _lose(self, bad: list[tuple[int, str, str]]) -> None:
        """Lines of the block that is read now."""
        for index, reason, text in bad:
            self.ledger.record("malformed", self.name, self.place.line + index, reason, text)

    def _malformed(self, error: Malformed, reason: str) -> None:
        self.ledger.record("malformed", self.name, error.line, reason, "")


def _chosen(timed: Sequence[Timed], stream: str, choice: Choice | None) -> list[Event]:
    return grouped(timed if choice is None else choice.of(timed), stream) if timed else []


def grouped(timed: Sequence[Timed], stream: str = "") -> list[Event]:
    """Events of (time, statement) pairs: one for each run of equal times and graphs."""
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
    """The events of what a stream brings at a time: one for each run of those in one graph."""
    for graph, triples in in_graphs(statements):
        yield Event(time, tuple(triples), stream, graph=graph)


def _divided(blocks: Iterable[bytes], offset: int) -> Iterator[bytes]:
    """Blocks of lines, none of which goes on beyond an offset at which a line begins."""
    begin = 0
    for block in blocks:
        first = offset - begin
        if 0 < first <= len(block):
            yield block[: first - 1]
            yield block[first:]
        else:
            yield block
        begin += len(block) + 1
