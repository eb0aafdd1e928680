"""Reads one file to batches of events: the part that this process and a process that reads ahead have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError
from squall.rdf import Event
from squall.streams.formats import Format
from squall.streams.formats.compression import errors
from squall.streams.formats.fast_ntriples import PredicateFilter
from squall.streams.formats.reading import DocumentPosition, ReadProgress, Settings, can_begin_anywhere, decode
from squall.streams.sources.byte_streams import WaitPolicy, open_file

Batches = Iterator[Sequence[Event]]


@dataclass(frozen=True)
class ReadTask:
    """What to read of a file, and how far it has been read.

    Attributes:
        path: The file, or ``-`` for standard input.
        settings: The settings of its source.
        reading: The counts of its source. They change while it is read.
        predicate_filter: The predicates of the triples to read, or None for all.
        place: The position in the file, which changes while it is read.
    """

    path: str
    settings: Settings
    reading: ReadProgress
    predicate_filter: PredicateFilter | None
    place: DocumentPosition


def read_file(
    task: ReadTask, format: Format, compression: str, ledger: DeadLetterLedger, waiting: WaitPolicy | None = None
) -> Batches:
    """Yields the events of one file in this process, one batch for each block that is available.

    Args:
        task: What to read, and from where.
        format: The format of the file.
        compression: The name of the compression of the file; ``""``: none.
        ledger: The ledger for malformed statements.
        waiting: How to wait for more bytes if the file is live; None if it is not.

    Raises:
        SourceError: The file cannot be read, or is another than the one in which reading began.
    """
    path, place = task.path, task.place
    try:
        with open_file(path, task.reading, compression, waiting) as file:
            if place.offset and can_begin_anywhere(format) and not file.skip(place.offset):
                raise SourceError(f"`{path}` is not what it was when {place.offset} bytes of it had been read")
            base = None if path == "-" else Path(path).absolute().as_uri()
            stream = cast(IO[bytes], file)
            yield from decode(
                stream, path, format, task.settings, ledger, task.reading, task.predicate_filter, base, place
            )
    except errors() as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"`{path}` cannot be read: {reason}") from error
