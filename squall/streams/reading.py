"""Reading bytes in a format as events: of a file, a message, or whatever else has bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from squall.rdf import Event
from squall.stages import Ledger
from squall.streams.formats import (
    Format,
    Malformed,
    Statement,
    Timed,
    in_graphs,
    parse_block,
    parse_document,
    parse_timed,
    suffix,
)
from squall.streams.patch import Patch
from squall.streams.plain import Choice, events

_CHUNK = 1 << 17  # bytes that are read at a time: what they are taken apart into should fit the processor's caches


@dataclass
class Reading:
    """What has been read of a source so far: statements that could be used, and bytes. For progress and the summary."""

    statements: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Settings:
    """How files are read: a format and compression given by name (or ``""``: by ending), the stream that their facts
    arrive on, and the time (integer ms) of untimed statements."""

    format: str
    stream: str
    time: int


def decoded(
    file: IO[bytes],
    name: str,
    format: Format,
    settings: Settings,
    ledger: Ledger,
    reading: Reading,
    choice: Choice | None = None,
    base: str | None = None,
) -> Iterator[Sequence[Event]]:
    """The events of bytes, a batch for each block at hand. What is malformed goes to the ledger.

    name: of what is read, for the ledger; its blank nodes are its own. choice: what may be left out of timed lines.
    base: the IRI against which relative ones in a document are resolved. Raises what reading the file does.
    """
    if format.removals:
        yield from _patch(file, name, settings, ledger, reading)
    elif not format.lines:
        yield from _document(file, name, format, settings, ledger, reading, base)
    elif format.timed:
        yield from _timed_lines(file, name, format, settings, ledger, reading, choice)
    else:
        yield from _lines(file, name, format, settings, ledger, reading)


def _lines(
    file: IO[bytes], path: str, format: Format, settings: Settings, ledger: Ledger, reading: Reading
) -> Iterator[Sequence[Event]]:
    own = suffix(path)
    for first, block in _numbered(_blocks(file)):
        statements, bad = parse_block(block, format.syntax, own)
        _lose(bad, first, path, ledger)
        yield from _batch(statements, settings, reading)


def _timed_lines(
    file: IO[bytes],
    path: str,
    format: Format,
    settings: Settings,
    ledger: Ledger,
    reading: Reading,
    choice: Choice | None,
) -> Iterator[Sequence[Event]]:
    own = suffix(path)
    batch: Sequence[Event]
    first = 1
    for block in _blocks(file):
        plain = events(block, own, settings.stream, choice)
        if plain is not None:
            batch, count = plain
            first += count  # each line is a statement
        else:
            found, bad = parse_timed(block, format.syntax, own)
            _lose(bad, first, path, ledger)
            batch, count = _chosen(found, settings.stream, choice), len(found)
            first += block.count(b"\n") + 1
        reading.statements += count
        if batch:
            yield batch


def _chosen(found: Sequence[Timed], stream: str, choice: Choice | None) -> list[Event]:
    return grouped(found if choice is None else choice.of(found), stream) if found else []


def _patch(
    file: IO[bytes], path: str, settings: Settings, ledger: Ledger, reading: Reading
) -> Iterator[Sequence[Event]]:
    def lose(line: int, reason: str, text: str) -> None:
        ledger.record("malformed", path, line, reason, text)

    patch = Patch(settings.stream, settings.time, suffix(path), lose)
    for first, block in _numbered(_blocks(file)):
        yield from _changes(patch.read(first, block), reading)
    yield from _changes(patch.end(), reading)


def _changes(events: list[Event], reading: Reading) -> Iterator[Sequence[Event]]:
    reading.statements += sum(len(event.facts) + len(event.removed) for event in events)
    if events:
        yield events


def _document(
    file: IO[bytes],
    path: str,
    format: Format,
    settings: Settings,
    ledger: Ledger,
    reading: Reading,
    base: str | None,
) -> Iterator[Sequence[Event]]:
    try:
        for statements in parse_document(file, format.syntax, base, suffix(path)):
            yield from _batch(statements, settings, reading)
    except Malformed as error:
        ledger.record("malformed", path, error.line, f"{error.reason}; the rest of the document is left out", "")


def _batch(statements: list[Statement], settings: Settings, reading: Reading) -> Iterator[Sequence[Event]]:
    reading.statements += len(statements)
    if statements:
        yield tuple(_at(settings.time, statements, settings.stream))


def grouped(found: Sequence[Timed], stream: str = "") -> list[Event]:
    """Events of (time, statement) pairs: one for each run of equal times and graphs."""
    events: list[Event] = []
    statements: list[Statement] = []
    current = found[0][0]
    for moment, statement in found:
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


def _lose(bad: list[tuple[int, str, str]], first: int, path: str, ledger: Ledger) -> None:
    for index, reason, text in bad:
        ledger.record("malformed", path, first + index, reason, text)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines as soon as they are there, in blocks, without the end of the last one."""
    rest: list[bytes] = []
    while chunk := file.read(_CHUNK):
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest.append(tail)
            continue
        yield b"".join([*rest, head])
        rest = [tail] if tail else []
    if rest:
        yield b"".join(rest)


def _numbered(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Blocks, each with the number of its first line (from 1)."""
    number = 1
    for block in blocks:
        yield number, block
        number += block.count(b"\n") + 1
