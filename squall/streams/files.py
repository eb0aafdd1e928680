"""Sources that are files, folders of files, and standard input."""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import threading
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol, runtime_checkable

from squall.errors import SourceError, UsageError
from squall.rdf import ALWAYS, Event, Term
from squall.stages import Ledger
from squall.streams.address import Address
from squall.streams.formats import Format, named, told
from squall.streams.plain import Choice
from squall.streams.reading import Reading, Settings, decoded

_POLL = 0.2  # seconds between two looks whether a file that keeps its reader waiting was stopped

EVERYWHERE = ("window", "lateness")
"""Options that sources of every scheme have; `squall.streams.open_source` sees to them, and to ``time=<property>``."""


@runtime_checkable
class Source(Protocol):
    """What a plug-in of the group ``squall.sources`` makes: it is called with an Address, a Ledger and the time
    (integer ms) of statements that have none, and raises UsageError or SourceError if the source cannot be read.

    uri: as it was given. live: whether it may keep a reader waiting. earliest: no event before this time comes from it
    (integer ms). size: its length in bytes, None if unknown. reading: kept up to date by `batches`. idle: for how long
    (ms) the others wait for a live source that says nothing (see `squall.streams.Sources`). removals: whether its
    events may have `removed` facts.
    """

    uri: str
    live: bool
    earliest: int
    size: int | None
    idle: int
    removals: bool
    reading: Reading

    def batches(self) -> Iterator[Sequence[Event]]:
        """The events in the order in which they come; each batch is what is at hand. An event without facts says that
        none before its time is to come. What cannot be used goes to the ledger. Raises SourceError if reading fails."""
        ...


@runtime_checkable
class Choosing(Protocol):
    """A source that may leave out what is of no use to whoever reads it.

    wanted: the predicates of the triples that are of use (None: all are). Of the others nothing need be handed on but
    how far time goes, as long as they come in the order of time; all are checked and counted nevertheless.
    """

    wanted: Collection[Term] | None


@runtime_checkable
class Stoppable(Protocol):
    """A live source that can be told to end."""

    def stop(self) -> None:
        """Nothing more is to be received: `batches` hands on what has been, and ends. Called by another thread than
        the one that reads, at any time."""
        ...


@runtime_checkable
class Acknowledging(Protocol):
    """A source that keeps what it brings, or lets the other side keep it, until that has been worked off.

    A position is a text that the source alone understands. Work is done at least once: after a crash, what was not
    acknowledged comes again.
    """

    def position(self) -> str:
        """Up to where its last batch goes; ``""`` before there is one. Asked for by the thread that reads, before it
        asks for the next batch."""
        ...

    def acknowledge(self, position: str) -> None:
        """All up to a position has been worked off, and need not come again. Called by any thread; positions do not go
        back."""
        ...

    def close(self) -> None:
        """Nothing more is acknowledged, nor read."""
        ...


@runtime_checkable
class Replayable(Acknowledging, Protocol):
    """A source that can be read again from a position."""

    def seek(self, position: str) -> None:
        """Begins behind a position; said before reading begins. Raises SourceError if what is there is gone."""
        ...


class FileSource:
    """A file, a named pipe, or standard input (the path ``-``).

    Options: ``format``; ``stream`` (an IRI); ``time`` (integer ms, for untimed statements); ``idle`` (ms).
    """

    def __init__(self, address: Address, ledger: Ledger, time: int = 0) -> None:
        address.only("format", "stream", "time", "idle", *EVERYWHERE)
        self.uri = address.text
        self.path = address.path
        self.settings = _settings(address, time)
        self.format, self.compressed = told(self.path, self.settings.format)
        self.live, self.size = _nature(self.path)
        self.idle = address.integer("idle", 5000)
        self.timed = self.format.timed
        self.removals = self.format.removals
        self.earliest = ALWAYS if self.timed else self.settings.time
        self.reading = Reading()
        self.wanted: Collection[Term] | None = None
        self._ledger = ledger
        self._stop = threading.Event() if self.live else None

    def files(self) -> tuple[str, ...]:
        """The paths, for builders that read where they run."""
        return (self.path,)

    def stop(self) -> None:
        """See `Stoppable`; nothing happens to a file that does not keep its reader waiting."""
        if self._stop is not None:
            self._stop.set()

    def batches(self) -> Iterator[Sequence[Event]]:
        choice = _choice(self.wanted)
        return read(
            self.path, self.format, self.compressed, self.settings, self._ledger, self.reading, choice, self._stop
        )


class FolderSource:
    """The files of a folder, in the order of their names; folders in it are not looked into.

    Options: as for a file, and ``follow=yes``: when all are read, look for new ones every ``poll`` milliseconds (500).
    A file is read once, so it must come complete: write it under a name that ends in ``.tmp`` or starts with ``.`` or
    ``_`` (such files are left alone), then rename it. A new file whose format cannot be told goes to the ledger.
    """

    def __init__(self, address: Address, ledger: Ledger, time: int = 0) -> None:
        address.only("format", "stream", "time", "idle", "follow", "poll", *EVERYWHERE)
        self.uri = address.text
        self.path = address.path
        self.settings = _settings(address, time)
        self.follow = address.flag("follow")
        self.poll = address.integer("poll", 500)
        self.idle = address.integer("idle", 5000)
        self.live = self.follow
        self.reading = Reading()
        self.wanted: Collection[Term] | None = None
        self._ledger = ledger
        self._stopped = threading.Event()
        formats = [told(path, self.settings.format)[0] for path in self.files()]
        self.size = None if self.follow else sum(os.path.getsize(path) for path in self.files())
        given = self.settings.format
        if given:
            formats = [named(given)[0]]
        self.timed = (self.follow and not given) or any(format.timed for format in formats)
        self.removals = any(format.removals for format in formats)
        self.earliest = ALWAYS if self.timed else self.settings.time

    def files(self) -> tuple[str, ...]:
        """The paths of the files that are there now and complete, in the order of their names."""
        return tuple(str(path) for path in sorted(Path(self.path).iterdir()) if _complete(path))

    def batches(self) -> Iterator[Sequence[Event]]:
        seen: set[str] = set()
        choice = _choice(self.wanted)
        while True:
            for path in self.files():
                if path not in seen:
                    seen.add(path)
                    yield from self._file(path, choice)
            if not self.follow or self._stopped.wait(self.poll / 1000):
                return

    def stop(self) -> None:
        """See `Stoppable`: the files that are being read are read to their end."""
        self._stopped.set()

    def _file(self, path: str, choice: Choice | None) -> Iterator[Sequence[Event]]:
        try:
            format, compressed = told(path, self.settings.format)
        except UsageError as error:
            self._ledger.record("malformed", path, None, error.message, "")
            return
        if format.removals and not self.removals:
            self._ledger.record("malformed", path, None, "removals were not announced by `format=rdfp`", "")
            return
        yield from read(path, format, compressed, self.settings, self._ledger, self.reading, choice)


def open_path(address: Address, ledger: Ledger, time: int = 0) -> Source:
    """The source of a ``file:`` address or a path. Raises SourceError if there is nothing, UsageError for the rest."""
    if os.path.isdir(address.path):
        return FolderSource(address, ledger, time)
    return FileSource(address, ledger, time)


def open_standard_input(address: Address, ledger: Ledger, time: int = 0) -> Source:
    """Standard input (``-?format=nt``). Raises UsageError without a format."""
    return FileSource(address, ledger, time)


def _choice(wanted: Collection[Term] | None) -> Choice | None:
    return None if wanted is None else Choice(wanted)


def read(
    path: str,
    format: Format,
    compressed: bool,
    settings: Settings,
    ledger: Ledger,
    reading: Reading,
    choice: Choice | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Sequence[Event]]:
    """The events of one file, a batch for each block at hand. Raises SourceError if it cannot be read.

    choice: what may be left out of timed lines. stop: what ends a file that may keep its reader waiting.
    """
    try:
        with _open(path, reading, compressed, stop) as file:
            base = None if path == "-" else Path(path).absolute().as_uri()
            yield from decoded(file, path, format, settings, ledger, reading, choice, base)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"`{path}` cannot be read: {reason}") from error


class _Reader(io.RawIOBase):
    """Reads what is at hand, without waiting for more, and counts the bytes of the file as it is stored."""

    def __init__(self, raw: io.FileIO, reading: Reading, stop: threading.Event | None) -> None:
        self._raw = raw
        self._reading = reading
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        while self._stop is not None and not select.select([self._raw], [], [], _POLL)[0]:
            if self._stop.is_set():
                return b""
        data = self._raw.read(size) or b""
        self._reading.bytes += len(data)
        return data

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Unzipped(io.RawIOBase):
    """Decompresses what is at hand."""

    def __init__(self, stored: _Reader) -> None:
        self._stored = stored
        self._file = gzip.GzipFile(fileobj=stored, mode="rb")

    def read(self, size: int = -1) -> bytes:
        return self._file.read1(size)

    def close(self) -> None:
        self._file.close()
        self._stored.close()
        super().close()


def _open(path: str, reading: Reading, compressed: bool, stop: threading.Event | None) -> IO[bytes]:
    stored = _Reader(io.FileIO(0, closefd=False) if path == "-" else io.FileIO(path), reading, stop)
    return _Unzipped(stored) if compressed else stored  # type: ignore[return-value]


def _settings(address: Address, time: int) -> Settings:
    return Settings(address.get("format"), address.get("stream"), address.integer("time", time))


def _nature(path: str) -> tuple[bool, int | None]:
    """Whether the file may keep a reader waiting, and its size. Raises SourceError if it cannot be read."""
    try:
        found = os.fstat(0) if path == "-" else os.stat(path)
    except OSError as error:
        raise SourceError(f"`{path}` cannot be read: {error.strerror}") from error
    if path != "-" and not os.access(path, os.R_OK):
        raise SourceError(f"`{path}` cannot be read: permission denied")
    if stat.S_ISREG(found.st_mode):
        return False, found.st_size
    return True, None


def _complete(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_")) and not path.name.endswith(".tmp")
