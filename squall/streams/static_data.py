"""Static data: what always holds, read before the streams, and by what a checkpoint recognises it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from squall.errors import SourceError
from squall.rdf import Event
from squall.streams.formats.reading import Settings
from squall.streams.mappings.model import without_places
from squall.streams.sources.files import FileSource, FolderSource, ReadableOnce, Source


class StaticData:
    """An iterator over the events of a source, which always hold.

    Attributes:
        uri: The address.
        reading: The counts of what has been read.
    """

    def __init__(self, source: Source) -> None:
        self.uri = source.uri
        self.reading = source.reading
        self._files = _files(source)
        settings = getattr(source, "settings", None)  # a plug-in may have none
        self._reading = reading_digest(settings) if isinstance(settings, Settings) else ""
        batches = source.read_once() if isinstance(source, ReadableOnce) else source.batches()
        self._events = (event for batch in batches for event in batch)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def digests(self) -> dict[str, str]:
        """Returns the SHA-256 of the files and of their context or mapping by the address, or ``""`` for what is in no
        file (`squall.contracts.HasDigests`). Raises SourceError if a file is not there any more."""
        return {self.uri: _digest(self._files, self._reading) if self._files else ""}


class AllStaticData:
    """The static data of a run: its parts, and the events of all of them.

    Args:
        parts: The parts.
        events: Their events, each once.
    """

    def __init__(self, parts: Iterable[StaticData], events: Iterable[Event]) -> None:
        self._parts = tuple(parts)
        self._events = iter(events)

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def digests(self) -> Mapping[str, str]:
        """Returns the digests of all parts (`squall.contracts.HasDigests`)."""
        return dict(chain.from_iterable(part.digests().items() for part in self._parts))


def _files(source: Source) -> Sequence[str]:
    match source:
        case FolderSource():
            return source.files()
        case FileSource() if os.path.isfile(source.path):
            return [source.path]
    return []


def reading_digest(settings: Settings) -> str:
    """Returns a text by which a checkpoint recognises what the files that a source names make of its data: its context,
    or its mapping; ``""``: it has none."""
    return mapping_digest(settings) or settings.context


def mapping_digest(settings: object) -> str:
    """Returns the SHA-256 of how the records of a source with some settings are read; ``""``: it has no mapping."""
    if not isinstance(settings, Settings) or settings.records is None:
        return ""
    text = repr(without_places(settings.records)) + settings.records.schema
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(paths: Sequence[str], reading: str) -> str:
    result = hashlib.sha256(reading.encode())
    for path in paths:
        try:
            with open(path, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise SourceError(f"`{path}` cannot be read: {error.strerror}") from error
        result.update(f"{Path(path).name} {content}\n".encode())
    return result.hexdigest()
