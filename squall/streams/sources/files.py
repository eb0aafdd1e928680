"""Sources that are files, folders of files, and standard input."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import ALWAYS, Event, Term
from squall.streams.address import Address
from squall.streams.formats import LONGEST, Format, infer_format, named
from squall.streams.formats.fast_ntriples import Choice
from squall.streams.formats.reading import DocumentPosition, ReadProgress, Settings, begins_there
from squall.streams.sources import reader_process
from squall.streams.sources.byte_streams import Waiting
from squall.streams.sources.file_reading import Batches, ReadTask, read_file

COMMON_OPTIONS = ("window", "lateness")
"""Options that sources of every scheme have; `squall.streams.open_source` sees to them, and to ``time=<property>``."""


@runtime_checkable
class Source(Protocol):
    """What a plug-in of the group ``squall.sources`` makes: it is called with an Address, a Ledger and the time
    (integer ms) of statements that have none, and raises UsageError or SourceError if the source cannot be read.

    uri: as it was given. live: whether it may keep a reader waiting. earliest: no event before this time comes from it
    (integer ms). size: its length in bytes, None if unknown. reading: kept up to date by `batches`. idle: for how long
    (ms) the others wait for a live source that says nothing (see `squall.streams.Sources`). removals: whether its
    events may have `removed` facts.

    It may have an attribute `ledger`, where it records what cannot be used: without it what workers lose of it goes to
    that of the run. And `risk`: what happens to what it brings when a run with a checkpoint is killed, in
    words; ``""``: nothing. Without it that is `LOSS_RISK`, but for what is `Resumable` or `Replayable`.
    """

    uri: str
    live: bool
    earliest: int
    size: int | None
    idle: int
    removals: bool
    reading: ReadProgress

    def batches(self) -> Iterator[Sequence[Event]]:
        """The events in the order in which they come; each batch is what is at hand. An event without facts says that
        none before its time is to come. What cannot be used goes to the ledger. Raises SourceError if reading fails."""
        ...


@runtime_checkable
class PushesFilterDown(Protocol):
    """A source that may leave out what is of no use to whoever reads it.

    wanted: the predicates of the triples that are of use (None: all are). Of the others nothing need be handed on but
    how far time goes, as long as they come in the order of time; all are checked and counted nevertheless.
    """

    wanted_predicates: Collection[Term] | None


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


@runtime_checkable
class Resumable(Protocol):
    """A source that can go on in another process where it was, also with what it holds back."""

    def current_offset(self) -> Any:
        """Where it stands behind its last batch, as what JSON can hold; what it is made of does not change any more.
        Asked for by the thread that reads, before it asks for the next batch."""
        ...

    def resume(self, current_offset: Any) -> None:
        """Goes on there; said before reading begins. Raises SourceError, then or when it is read, if what is there is
        gone."""
        ...


@runtime_checkable
class Splittable(Acknowledging, Protocol):
    """A source of which what lies between two positions can be read in parts, by any process and any number of times:
    the events are the same each time. Positions are texts that the source alone understands. All methods raise
    SourceError if it cannot be read."""

    def beginning(self) -> str:
        """Where it begins, if nothing else says so."""
        ...

    def latest(self, begin: str = "") -> str:
        """The position behind all that it has now. begin: where reading begins, so that of a source whose address says
        how much may be read at a time (``buffer``) it is no more than that."""
        ...

    def parts(self, begin: str, end: str) -> list[str]:
        """What lies between two positions, as parts that can be read apart; each is a text."""
        ...

    def part(self, part: str) -> Iterator[Sequence[Event]]:
        """The events of a part, in order. What is no longer there goes to the ledger."""
        ...


@runtime_checkable
class SuppliesEventTime(Protocol):
    """A source whose format may put statements together as messages, of which each may say its time in one of them.

    messages: whether it does; then the `property` of the settings may be set, and `earliest`, before reading begins.
    """

    messages: bool
    settings: Settings
    earliest: int


def risk_of(source: Source) -> str:
    """What happens to what a source brings when a run with a checkpoint is killed; ``""``: nothing."""
    risk: str = getattr(source, "risk", "" if isinstance(source, Resumable | Replayable) else LOSS_RISK)
    return risk


LOSS_RISK = "what it brought since the last checkpoint is lost with a run that is killed"
"""The `risk` of sources that cannot be read again."""


class FileSource:
    """A file, a named pipe, or standard input (the path ``-``).

    Options: ``format``; ``stream`` (an IRI); ``time`` (integer ms, for untimed statements); ``idle`` (ms); and
    ``follow=yes``: a file of lines goes on with what is added to it, for which is looked every ``poll`` ms (500). A
    line counts when its end is there.
    """

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        address.only("format", "stream", "time", "idle", "follow", "poll", "ahead", *COMMON_OPTIONS)
        self.uri = address.text
        self.path = address.path
        self.settings = _settings(address, time)
        self.format, self.compressed = infer_format(self.path, self.settings.format)
        pipe, self.size = _nature(self.path)
        follow = address.flag("follow")
        if follow:
            self._check_follow(pipe)
            self.size = None
            self.settings = replace(self.settings, whole_lines=True)
        self.live = pipe or follow
        if self.live:
            self.settings = replace(self.settings, longest=LONGEST)
        self.idle = address.integer("idle", 5000, least=0)
        self.timed = self.format.timed
        self.removals = self.format.removals
        self.messages = self.format.messages
        self.earliest = ALWAYS if self.timed else self.settings.time
        self.reading = ReadProgress()
        self.wanted_predicates: Collection[Term] | None = None
        self.risk = LOSS_RISK if pipe else ""
        self._place = DocumentPosition()
        self.ledger = ledger
        poll = address.integer("poll", 500, least=0) / 1000 if follow else None
        self._waiting = Waiting(threading.Event(), poll) if self.live else None

    def files(self) -> tuple[str, ...]:
        """The paths, for builders that read where they run."""
        return (self.path,)

    def stop(self) -> None:
        """See `Stoppable`; nothing happens to a file that does not keep its reader waiting."""
        if self._waiting is not None:
            self._waiting.stop.set()

    def current_offset(self) -> Any:
        """See `Resumable`; a pipe goes on with what comes."""
        return None if self.risk else astuple(self._place)

    def resume(self, current_offset: Any) -> None:
        self._place = DocumentPosition(*current_offset or ())

    def batches(self) -> Iterator[Sequence[Event]]:
        choice = _choice(self.wanted_predicates)
        task = ReadTask(self.path, self.settings, self.reading, choice, self._place)
        return _batches(task, self.format, self.compressed, self.ledger, self._waiting)

    def _check_follow(self, pipe: bool) -> None:
        """Raises UsageError where nothing can be added to what there is."""
        if pipe:
            raise UsageError(f"`{self.uri}` goes on by itself, as a pipe does", hint="leave `follow` out")
        if self.compressed or not begins_there(self.format):
            what = "compressed" if self.compressed else f"of the format `{self.format.name}`"
            hint = "a folder that such files come to can be followed"
            raise UsageError(f"`{self.uri}` cannot be followed: it is {what}, and not of lines", hint=hint)


class FolderSource:
    """The files of a folder, in the order of their names; folders in it are not looked into.

    Options: as for a file, and ``follow=yes``: when all are read, look for new ones every ``poll`` milliseconds (500).
    A file is read once, so it must come complete: write it under a name that ends in ``.tmp`` or starts with ``.`` or
    ``_`` (such files are left alone), then rename it. A new file whose format cannot be told goes to the ledger.
    """

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        address.only("format", "stream", "time", "idle", "follow", "poll", "ahead", *COMMON_OPTIONS)
        self.uri = address.text
        self.path = address.path
        self.settings = _settings(address, time)
        self.follow = address.flag("follow")
        self.poll = address.integer("poll", 500, least=0)
        self.idle = address.integer("idle", 5000, least=0)
        self.live = self.follow
        self.risk = ""
        self.reading = ReadProgress()
        self.wanted_predicates: Collection[Term] | None = None
        self._names: list[str] = []
        """The files that have been read, the last of which may go on at the place."""
        self._place = DocumentPosition()
        self.ledger = ledger
        self._stopped = threading.Event()
        formats = [infer_format(path, self.settings.format)[0] for path in self.files()]
        self.size = None if self.follow else sum(os.path.getsize(path) for path in self.files())
        format_name = self.settings.format
        if format_name:
            formats = [named(format_name)[0]]
        self.timed = (self.follow and not format_name) or any(format.timed for format in formats)
        self.removals = any(format.removals for format in formats)
        self.messages = any(format.messages for format in formats)  # all, or none: their names do not tell
        self.earliest = ALWAYS if self.timed else self.settings.time

    def files(self) -> tuple[str, ...]:
        """The paths of the files that are there now and complete, in the order of their names."""
        return tuple(str(path) for path in sorted(Path(self.path).iterdir()) if _complete(path))

    def current_offset(self) -> Any:
        """See `Resumable`."""
        return tuple(self._names), astuple(self._place)

    def resume(self, current_offset: Any) -> None:
        names, place = current_offset
        self._names, self._place = list(names), DocumentPosition(*place)
        read = (Path(self.path, name) for name in self._names[:-1])
        self.reading.bytes += sum(path.stat().st_size for path in read if path.exists())

    def batches(self) -> Iterator[Sequence[Event]]:
        choice = _choice(self.wanted_predicates)
        if self._names and not self._place.ended:
            yield from self._file(str(Path(self.path, self._names[-1])), choice)
        names = set(self._names)
        while True:
            for path in self.files():
                if (name := Path(path).name) not in names:
                    names.add(name)
                    self._names.append(name)
                    self._place = DocumentPosition()
                    yield from self._file(path, choice)
                    self._place.ended = True
            if not self.follow or self._stopped.wait(self.poll / 1000):
                return

    def stop(self) -> None:
        """See `Stoppable`: the files that are being read are read to their end."""
        self._stopped.set()

    def _file(self, path: str, choice: Choice | None) -> Iterator[Sequence[Event]]:
        try:
            format, compressed = infer_format(path, self.settings.format)
        except UsageError as error:
            self.ledger.record("malformed", path, None, error.message, "")
            return
        if format.removals and not self.removals:
            self.ledger.record("malformed", path, None, "removals were not announced by `format=rdfp`", "")
            return
        task = ReadTask(path, self.settings, self.reading, choice, self._place)
        yield from _batches(task, format, compressed, self.ledger)


def open_path(address: Address, ledger: DeadLetterLedger, time: int = 0) -> Source:
    """The source of a ``file:`` address or a path. Raises SourceError if there is nothing, UsageError for the rest."""
    if os.path.isdir(address.path):
        return FolderSource(address, ledger, time)
    return FileSource(address, ledger, time)


def open_standard_input(address: Address, ledger: DeadLetterLedger, time: int = 0) -> Source:
    """Standard input (``-?format=nt``). Raises UsageError without a format."""
    return FileSource(address, ledger, time)


def _choice(predicates: Collection[Term] | None) -> Choice | None:
    return None if predicates is None else Choice(predicates)


def _batches(
    task: ReadTask, format: Format, compressed: bool, ledger: DeadLetterLedger, waiting: Waiting | None = None
) -> Batches:
    """Reads a file, in a process of its own if that is worthwhile. The arguments are those of `read_file`."""
    read_here = partial(read_file, task, format, compressed, ledger, waiting)
    if waiting is None and reader_process.is_worthwhile(task, format):
        return reader_process.read_ahead(task, ledger, read_here)
    return read_here()


def _settings(address: Address, time: int) -> Settings:
    settings = Settings(address.get("format"), address.get("stream"), address.integer("time", time))
    return replace(settings, ahead=address.flag("ahead", "yes"))


def _nature(path: str) -> tuple[bool, int | None]:
    """Whether the file may keep a reader waiting, and its size. Raises SourceError if it cannot be read."""
    try:
        status = os.fstat(0) if path == "-" else os.stat(path)
    except OSError as error:
        raise SourceError(f"`{path}` cannot be read: {error.strerror}") from error
    if path != "-" and not os.access(path, os.R_OK):
        raise SourceError(f"`{path}` cannot be read: permission denied")
    if stat.S_ISREG(status.st_mode):
        return False, status.st_size
    return True, None


def _complete(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_")) and not path.name.endswith(".tmp")
