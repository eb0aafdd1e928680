"""The interfaces of sources, and sources that read files, folders of files, and standard input."""

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
from squall.streams.formats import MAX_UNIT_BYTES, Format, format_named, infer_format
from squall.streams.formats.fast_ntriples import PredicateFilter
from squall.streams.formats.jsonld_contexts import outside_context
from squall.streams.formats.reading import DocumentPosition, ReadProgress, Settings, can_begin_anywhere
from squall.streams.mappings import options
from squall.streams.sources import reader_process
from squall.streams.sources.byte_streams import WaitPolicy
from squall.streams.sources.file_reading import Batches, ReadTask, read_file

_OPTIONS = ("format", "context", "stream", "time", "idle", "follow", "poll", "ahead", "valid", *options.OPTIONS)
"""Options of files, folders and standard input."""
COMMON_OPTIONS = ("window", "lateness")
"""Options of sources of every scheme. `squall.streams.open_source` applies them, and ``time=<property>``."""


@runtime_checkable
class Source(Protocol):
    """A source of events. Plug-ins of the group ``squall.sources`` create them.

    A plug-in is called with an Address, a ledger, and the time (integer ms) of statements that have none. It raises
    UsageError or SourceError if the source cannot be read.

    A source may also have an attribute `ledger`, in which it records dead letters. Without it, those that workers find
    go to the ledger of the run. It may have an attribute `risk`: a text that says what a killed run with a checkpoint
    loses of its events; ``""``: nothing. Without it, that is `LOSS_RISK`, unless it is `Resumable` or `Replayable`.

    Attributes:
        uri: The address, as it was given.
        live: Whether the source may keep its reader waiting.
        earliest: The time in integer ms before which it has no events.
        size: The size in bytes, or None if it is unknown.
        idle: How long other sources wait for events of a live source, in ms (see `squall.streams.Sources`).
        removals: Whether its events may have `removed` facts.
        reading: The counts of what has been read, which `batches` updates. A run fails if there are malformed
            statements of a source, and no others (`squall.streams.formats.reading.ReadProgress.is_unreadable`).
    """

    uri: str
    live: bool
    earliest: int
    size: int | None
    idle: int
    removals: bool
    reading: ReadProgress

    def batches(self) -> Iterator[Sequence[Event]]:
        """Yields the events in the order in which they arrive; a batch is what is available at once.

        An event without facts is a heartbeat: no events before its time follow. Statements that cannot be used go to
        the ledger.

        Raises:
            SourceError: The source cannot be read.
        """
        ...


@runtime_checkable
class PushesFilterDown(Protocol):
    """A source that may leave out triples that the job does not use.

    Attributes:
        wanted_predicates: The predicates of the triples that are used; None: all. The source may leave out other
            triples if they come in the order of time, but not the time up to which it has come. It checks and counts
            all of them.
    """

    wanted_predicates: Collection[Term] | None


@runtime_checkable
class Stoppable(Protocol):
    """A live source that can be stopped."""

    def stop(self) -> None:
        """Stops receiving: `batches` yields what has been received, and ends.

        Another thread than the one that reads calls it, at any time.
        """
        ...


@runtime_checkable
class Acknowledging(Protocol):
    """A source that keeps its events, or lets the other side keep them, until they have been processed.

    A position is a text that only the source understands. Delivery is at least once: after a crash, events that were
    not acknowledged come again.
    """

    def position(self) -> str:
        """Returns the position behind the last batch; ``""`` before the first.

        The thread that reads calls it before it requests the next batch.
        """
        ...

    def acknowledge(self, position: str) -> None:
        """Acknowledges that all events up to a position have been processed.

        Any thread may call it. Positions do not go back.
        """
        ...

    def close(self) -> None:
        """Closes the source: no more is read or acknowledged."""
        ...


@runtime_checkable
class Replayable(Acknowledging, Protocol):
    """A source that can be read again from a position."""

    def seek(self, position: str) -> None:
        """Begins behind a position. It is called before reading begins.

        Raises:
            SourceError: The events there are gone.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """A source that can resume in another process, with the events that it buffers."""

    def current_offset(self) -> Any:
        """Returns the offset behind the last batch, as an immutable JSON value.

        The thread that reads calls it before it requests the next batch.
        """
        ...

    def resume(self, current_offset: Any) -> None:
        """Resumes from an offset. It is called before reading begins.

        Raises:
            SourceError: The events there are gone. It may be raised later, when the source is read.
        """
        ...


@runtime_checkable
class Splittable(Acknowledging, Protocol):
    """A source whose events between two positions can be read in splits, by any process and any number of times.

    The events are the same each time. Positions are texts that only the source understands. All methods raise
    SourceError if it cannot be read.
    """

    def beginning(self) -> str:
        """Returns the position at which reading begins by default."""
        ...

    def latest(self, begin: str = "") -> str:
        """Returns the position behind all events that it has now.

        Args:
            begin: The position at which reading begins. If the address limits the events to read at a time
                (``buffer``), the result is at most so far behind it.
        """
        ...

    def splits_of(self, begin: str, end: str) -> list[str]:
        """Returns the splits between two positions; each is a text."""
        ...

    def read_split(self, split: str) -> Iterator[Sequence[Event]]:
        """Yields the events of a split, in order. Events that are gone are dead letters."""
        ...


@runtime_checkable
class SuppliesEventTime(Protocol):
    """A source whose format may have messages, of which each may have its time as a property.

    Attributes:
        messages: Whether the format has messages.
        settings: Its settings. If there are messages, `settings.property` may be set before reading begins.
        earliest: The time in integer ms before which it has no events. It may be set with the property.
    """

    messages: bool
    settings: Settings
    earliest: int


@runtime_checkable
class ReadableOnce(Protocol):
    """A live source of which what is there now can be read, once, as static data."""

    def read_once(self) -> Iterator[Sequence[Event]]:
        """Yields the events that are there now, and ends.

        Raises:
            SourceError: The source cannot be read, or does not end.
        """
        ...


def risk_of(source: Source) -> str:
    """Returns what a killed run with a checkpoint loses of the events of a source; ``""``: nothing."""
    risk: str = getattr(source, "risk", "" if isinstance(source, Resumable | Replayable) else LOSS_RISK)
    return risk


LOSS_RISK = "events since the last checkpoint are lost if the run is killed"
"""The `risk` of sources that are not replayable."""


class FileSource:
    """A file, a named pipe, or standard input (the path ``-``).

    Options: ``format``; ``context`` (a file, for JSON-LD); ``map``, ``unit``, ``header`` and ``separator`` (for
    records: `squall.streams.mappings.options`); ``stream`` (an IRI); ``time`` (integer ms, for untimed statements);
    ``valid`` (``data`` or ``time``, for quintuples); ``idle`` (ms); and ``follow=yes``: the lines that are added to a
    file of lines are read, every ``poll`` ms (500). A line is read when it is complete.
    """

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        address.only(*_OPTIONS, *COMMON_OPTIONS)
        self.uri = address.text
        self.path = address.path
        self.settings = _settings(address, time)
        format, self.compression = infer_format(self.path, self.settings.format, options.is_mapped(address))
        self.format = _with_validity(format, address)
        self.settings = _with_files(self.settings, address, [self.format.name])
        is_pipe, self.size = _kind_of(self.path)
        follow = address.flag("follow")
        if follow:
            self._check_follow(is_pipe)
            self.size = None
            self.settings = replace(self.settings, whole_lines=True)
        self.live = is_pipe or follow
        if self.live:
            self.settings = replace(self.settings, longest=MAX_UNIT_BYTES)
        else:
            options.check_file(self.settings.records, self.path, self.format.name, self.compression)
        self.idle = address.milliseconds("idle", 5000)
        self.timed = self.settings.is_timed(self.format)
        self.removals = self.format.removals
        self.messages = self.format.messages
        self.earliest = ALWAYS if self.timed else self.settings.time
        self.reading = ReadProgress()
        self.wanted_predicates: Collection[Term] | None = None
        self.risk = LOSS_RISK if is_pipe else ""
        self._position = DocumentPosition()
        self.ledger = ledger
        poll = address.milliseconds("poll", 500) / 1000 if follow else None
        self._waiting = WaitPolicy(threading.Event(), poll) if self.live else None

    def files(self) -> tuple[str, ...]:
        """Returns the paths, for builders that read them on their workers."""
        return (self.path,)

    def stop(self) -> None:
        """Stops reading a live file (see `Stoppable`). It has no effect on others."""
        if self._waiting is not None:
            self._waiting.stop.set()

    def current_offset(self) -> Any:
        """Returns the position in the file (see `Resumable`); of a pipe there is none."""
        return None if self.risk else astuple(self._position)

    def resume(self, current_offset: Any) -> None:
        self._position = DocumentPosition(*current_offset or ())

    def batches(self) -> Iterator[Sequence[Event]]:
        predicate_filter = _choice(self.wanted_predicates)
        task = ReadTask(self.path, self.settings, self.reading, predicate_filter, self._position)
        return _batches(task, self.format, self.compression, self.ledger, self._waiting)

    def _check_follow(self, is_pipe: bool) -> None:
        """Raises UsageError if the file cannot be followed."""
        if is_pipe:
            raise UsageError(f"`{self.uri}` is a pipe, which is followed anyway", hint="leave `follow` out")
        if self.compression or not (can_begin_anywhere(self.format) or self.format.name == "csv"):
            what = "compressed" if self.compression else f"of the format `{self.format.name}`"
            hint = "a folder that such files come to can be followed"
            raise UsageError(f"`{self.uri}` cannot be followed: it is {what}, and not of lines", hint=hint)


class FolderSource:
    """The files of a folder, in the order of their names, without those of its sub-folders.

    Options are those of a file. ``follow=yes``: when all files are read, the source looks for new ones every ``poll``
    ms (500). A file is read once, so it must be complete when it appears: write it under a name that ends in ``.tmp``
    or starts with ``.`` or ``_`` (such files are ignored), then rename it. A new file of unknown format is a dead
    letter.
    """

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        address.only(*_OPTIONS, *COMMON_OPTIONS)
        self.uri = address.text
        self.path = address.path
        self.settings = _settings(address, time)
        self.follow = address.flag("follow")
        self.poll = address.milliseconds("poll", 500)
        self.idle = address.milliseconds("idle", 5000)
        self.live = self.follow
        self.risk = ""
        self.reading = ReadProgress()
        self.wanted_predicates: Collection[Term] | None = None
        self._names: list[str] = []
        """The files that have been read. The last one may be read up to the position only."""
        self._position = DocumentPosition()
        self.ledger = ledger
        self._stopped = threading.Event()
        self._is_mapped = options.is_mapped(address)
        if address.get("valid") == "time":
            hint = "join the files in the order of their begins, or name each as a source with a stream of its own"
            raise UsageError(f"the triples of the folder `{self.uri}` have no order by which they hold", hint=hint)
        inferred = [(path, *infer_format(path, self.settings.format, self._is_mapped)) for path in self.files()]
        for _, format, _ in inferred:
            _with_validity(format, address)
        formats = [format for _, format, _ in inferred]
        self.size = None if self.follow else sum(os.path.getsize(path) for path in self.files())
        format_name = self.settings.format
        if format_name:
            formats = [format_named(format_name, self._is_mapped)[0]]
        self.settings = _with_files(self.settings, address, [format.name for format in formats])
        for path, format, compression in inferred:
            options.check_file(self.settings.records, path, format.name, compression)
        self.timed = (self.follow and not format_name) or any(map(self.settings.is_timed, formats))
        self.removals = any(format.removals for format in formats)
        self.messages = any(format.messages for format in formats)  # all or none, since names do not show it
        self.earliest = ALWAYS if self.timed else self.settings.time

    def files(self) -> tuple[str, ...]:
        """Returns the paths of the files that are complete now, in the order of their names."""
        return files_of(self.path)

    def current_offset(self) -> Any:
        """Returns the files that have been read, and the position in the last one (see `Resumable`)."""
        return tuple(self._names), astuple(self._position)

    def resume(self, current_offset: Any) -> None:
        names, position = current_offset
        self._names, self._position = list(names), DocumentPosition(*position)
        finished = (Path(self.path, name) for name in self._names[:-1])
        self.reading.bytes += sum(path.stat().st_size for path in finished if path.exists())

    def batches(self) -> Iterator[Sequence[Event]]:
        predicate_filter = _choice(self.wanted_predicates)
        if self._names and not self._position.ended:
            yield from self._file(str(Path(self.path, self._names[-1])), predicate_filter)
        names = set(self._names)
        while True:
            for path in self.files():
                if (name := Path(path).name) not in names:
                    names.add(name)
                    self._names.append(name)
                    self._position = DocumentPosition()
                    yield from self._file(path, predicate_filter)
                    self._position.ended = True
            if not self.follow or self._stopped.wait(self.poll / 1000):
                return

    def stop(self) -> None:
        """Stops following the folder (see `Stoppable`). The current files are read to their end."""
        self._stopped.set()

    def _file(self, path: str, predicate_filter: PredicateFilter | None) -> Iterator[Sequence[Event]]:
        try:
            format, compression = infer_format(path, self.settings.format, self._is_mapped)
        except UsageError as error:
            self._lose(path, error.message)
            return
        if format.removals and not self.removals:
            self._lose(path, "removals were not announced by `format=rdfp`")
            return
        task = ReadTask(path, self.settings, self.reading, predicate_filter, self._position)
        yield from _batches(task, format, compression, self.ledger)

    def _lose(self, path: str, reason: str) -> None:
        self.reading.malformed += 1
        self.ledger.record("malformed", path, None, reason, "")


def open_path(address: Address, ledger: DeadLetterLedger, time: int = 0) -> Source:
    """Opens a file, or a folder of files, by a path or a ``file:`` address.

    Raises:
        SourceError: There is no such file.
        UsageError: An option is wrong.
    """
    if os.path.isdir(address.path):
        return FolderSource(address, ledger, time)
    return FileSource(address, ledger, time)


def files_of(folder: str) -> tuple[str, ...]:
    """Returns the paths of the files of a folder that are complete now, in the order of their names."""
    return tuple(str(path) for path in sorted(Path(folder).iterdir()) if _complete(path))


def open_standard_input(address: Address, ledger: DeadLetterLedger, time: int = 0) -> Source:
    """Opens standard input (``-?format=nt``). Raises UsageError without a format."""
    return FileSource(address, ledger, time)


def _choice(predicates: Collection[Term] | None) -> PredicateFilter | None:
    return None if predicates is None else PredicateFilter(predicates)


def _batches(
    task: ReadTask, format: Format, compression: str, ledger: DeadLetterLedger, waiting: WaitPolicy | None = None
) -> Batches:
    """Reads a file, in a process of its own if that is worthwhile. The arguments are those of `read_file`."""
    read_here = partial(read_file, task, format, compression, ledger, waiting)
    if waiting is None and reader_process.is_worthwhile(task, format):
        return reader_process.read_ahead(task, ledger, read_here)
    return read_here()


def _settings(address: Address, time: int) -> Settings:
    settings = Settings(address.get("format"), address.get("stream"), options.fixed_time(address, time))
    return replace(settings, ahead=address.flag("ahead", "yes"), source=address.path)


def _with_files(settings: Settings, address: Address, formats: Sequence[str]) -> Settings:
    """Returns settings with the content of the files that an address names: a context, or a mapping."""
    context, records = outside_context(address, formats), options.records_of(address, formats)
    return replace(settings, context=context, records=records)


def _with_validity(format: Format, address: Address) -> Format:
    """Returns the format of a source by the option ``valid``: under ``time`` the triples of quintuples hold over the
    intervals behind them. Under ``data``, which is the default, these are data.

    Raises:
        UsageError: The option has another value, is for another format, or contradicts another option.
    """
    valid = address.get("valid")
    if valid and not format.tuples:
        raise UsageError(f"`valid` in `{address.text}` is for quintuples (`nt5`), and not for `{format.name}`")
    if valid not in ("", "data", "time"):
        hint = "`time`: a triple holds from its begin to its end; `data`: rules read the times"
        raise UsageError(f"`valid={valid}` in `{address.text}` is neither `time` nor `data`", hint=hint)
    if valid != "time":
        return format
    for option in ("time", "lateness"):
        if address.get(option):
            hint = "leave it out: the lines say when their triples hold, in the order of their begins"
            raise UsageError(f"`{option}` in `{address.text}` contradicts `valid=time`", hint=hint)
    return replace(format, lines=False, timed=True, removals=True)


def _kind_of(path: str) -> tuple[bool, int | None]:
    """Returns whether a file is a pipe, and its size in bytes. Raises SourceError if it cannot be read."""
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
