"""Sinks: where outputs are written. (In which formats: `squall.streams.formats.output_formats`.)"""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol, cast, runtime_checkable

from squall.contracts import DeadLetterLedger, Output
from squall.errors import SinkError, UsageError
from squall.streams.address import Address
from squall.streams.formats.output_formats import BY_ENDING, LINES, check_format, encoder, of_ending
from squall.streams.sinks.folders import COLUMNS, FolderSink
from squall.streams.sinks.patterns import PatternSink, expanded, is_pattern

_BUFFER = 1 << 16  # bytes that are handed to the system at a time: each time costs as much as some lines


@runtime_checkable
class Sink(Protocol):
    """What a plug-in of the group ``squall.sinks`` makes: it is called with an Address and raises UsageError if outputs
    cannot be written there. Nothing is changed before `start`."""

    uri: str

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Opens it. `resume`: go on after what an earlier run wrote. `prompt`: hand each output on at once."""
        ...

    def write(self, output: Output) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Flushable(Protocol):
    """A sink that may still hold, or wait to hear of, what it was given."""

    def flush(self) -> None:
        """Comes back when all that was written is where it should be. Raises SinkError if that fails."""
        ...


@runtime_checkable
class Formatting(Protocol):
    """A sink whose format keeps something of what was written, such as the answers of an evaluation until all of them
    are there."""

    def held(self) -> Any:
        """That, as what JSON can hold."""
        ...

    def hold(self, buffered: Any) -> None:
        """Goes on with that; said before anything is written."""
        ...

    def drop(self) -> None:
        """It is not to be written at the end."""
        ...


@runtime_checkable
class ReportsDeadLetters(Protocol):
    """A sink that may lose outputs, and counts them in a ledger: that of the run, if it is given it."""

    ledger: DeadLetterLedger


class StreamSink:
    """Standard output, or a compressed file: written from its beginning to its end.

    alone: what is written may have to be read without what was before, as on a connection that is made again. Raises
    SinkError where the system refuses to open or write it.
    """

    def __init__(
        self,
        uri: str,
        format: str,
        open: Callable[[bool], IO[bytes]],
        path: Path | None = None,
        alone: bool = False,
    ) -> None:
        self.uri = uri
        self.format = format
        self._path = path
        self._open = open
        self._encoder = encoder(format, uri, alone)
        self._line = self._encoder.write
        self._prompt = False
        self._file: IO[bytes] | None = None

    @property
    def file(self) -> IO[bytes]:
        """The open file; only after `start`."""
        if self._file is None:
            raise ValueError(f"the sink {self.uri} is not open")
        return self._file

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        begun = resume and self._path is not None and self._path.exists() and self._path.stat().st_size > 0
        try:
            self._file = self._open(resume)
        except OSError as error:
            self._refused(error)
        self._prompt = prompt
        self._encoder.begin(begun, self._file.isatty())

    def write(self, output: Output) -> None:
        """Raises SinkError where the format cannot hold the output, or the system refuses it."""
        try:
            (self._file or self.file).write(self._line(output))
            if self._prompt:
                self.file.flush()
        except OSError as error:
            self._refused(error)

    def flush(self) -> None:
        """See `Flushable`; what is in the file's buffer is handed to the system."""
        try:
            self.file.flush()
        except OSError as error:
            self._refused(error)

    def close(self) -> None:
        opened, self._file = self._file, None
        if opened is not None:
            try:
                with opened as file:
                    file.write(self._encoder.end())
            except OSError as error:
                self._refused(error)

    def _refused(self, error: OSError) -> NoReturn:
        """What the system refuses is a SinkError; a reader who has gone is not (BrokenPipeError)."""
        if isinstance(error, BrokenPipeError):
            raise error
        raise SinkError(f"`{self.uri}` cannot be written: {error.strerror}") from error

    def held(self) -> Any:
        """See `Formatting`."""
        return self._encoder.save()

    def hold(self, buffered: Any) -> None:
        self._encoder.recover(buffered)

    def drop(self) -> None:
        self._encoder.begin(True, False)


class _PathSink(StreamSink):
    """A file that goes on in another process where it was (`squall.contracts.CheckpointedSink`)."""

    def save(self, last: bool = False) -> Any:
        try:
            return {"length": self._settled(), "held": self.held()}
        except OSError as error:
            self._refused(error)

    def recover(self, state: Any) -> None:
        """Raises SinkError where the file is not the one that was written."""
        try:
            self._cut_back(state["length"])
        except OSError as error:
            self._refused(error)
        self.hold(state["held"])

    def _cut_back(self, length: int) -> None:
        """As `_cut`, of a file that is as long as that at least: it would be filled up with zeros otherwise."""
        assert self._path is not None
        if (size := self._path.stat().st_size) < length:
            what = f"{length} bytes of it had been written, and it has {size}"
            hint = "a run that is to write another file starts from a new checkpoint"
            raise SinkError(f"`{self.uri}` is not the file that it was: {what}", hint=hint)
        self._cut(length)

    def _settled(self) -> int:
        """The length of the file, in bytes, when all that was written is on disk."""
        raise NotImplementedError

    def _cut(self, length: int) -> None:
        """Drops what is behind that, and begins anew there."""
        raise NotImplementedError


class GzipSink(_PathSink):
    """A compressed file: it has a part of its own (RFC 1952, section 2.2) for what is between two checkpoints."""

    _length = 0
    """That of the parts which are complete."""

    def _settled(self) -> int:
        assert self._path is not None
        if self.file.tell():
            self.file.close()
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
            self._length = self._path.stat().st_size
            self._file = self._open(True)
        return self._length

    def _cut(self, length: int) -> None:
        assert self._path is not None
        self.file.close()
        os.truncate(self._path, length)
        self._length = length
        self._file = self._open(True)
        self._encoder.begin(length > 0, False)


class FileSink(_PathSink):
    """A plain file: it can also be cut back to where a batch began (`squall.contracts.TruncatableSink`)."""

    def mark(self) -> int:
        self.file.write(self._encoder.end())
        return self._settled()

    def rewind(self, mark: int) -> None:
        self._cut_back(mark)

    def _settled(self) -> int:
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.file.tell()

    def _cut(self, length: int) -> None:
        self.file.flush()
        self.file.truncate(length)
        self.file.seek(length)
        self._encoder.begin(length > 0, self.file.isatty())


def open_path(address: Address) -> Sink:
    """The sink of a ``file:`` address or a path, a file for each evaluation if ``{time}`` is in it, a folder of files
    if it ends in ``/``; ``format`` is its one option, ``.gz`` compresses."""
    address.only("format")
    if address.path.endswith("/"):
        return _folder(address)
    name = address.get("format") or of_ending(address.path.removesuffix(".gz"))
    if name is None:
        raise UsageError(
            f"the format of `{address.path}` cannot be inferred from its name",
            hint=f"known endings: {', '.join(BY_ENDING)}, each also with .gz; or name it: `{address.path}?format=nt`",
        )
    plain = name.removesuffix(".gz")
    compressed = address.path.endswith(".gz") or plain != name
    check_format(plain)
    if not is_pattern(address.path):
        check_writable(Path(address.path))
        return _opened(address.text, Path(address.path), plain, compressed)
    check_writable(expanded(address.path, 0, ""))
    return PatternSink(address.text, address.path, partial(_write_file, format=plain, compressed=compressed))


def _folder(address: Address) -> FolderSink:
    format, formats = address.get("format"), (*COLUMNS, *LINES)
    if format not in formats:
        hint = f"formats: {', '.join(formats)}; for example `{address.path}?format=parquet`"
        raise UsageError(f"the format of the files in the folder `{address.path}` is not told", hint=hint)
    return FolderSink(address.text, Path(address.path), format)


def _opened(uri: str, path: Path, format: str, compressed: bool) -> StreamSink:
    if compressed:
        return GzipSink(uri, format, lambda resume: cast(IO[bytes], gzip.open(path, _mode(resume))), path)
    return FileSink(uri, format, lambda resume: path.open(_mode(resume), _BUFFER), path)


def _write_file(uri: str, path: Path, outputs: Sequence[Output], format: str, compressed: bool) -> None:
    with closing(_opened(uri, path, format, compressed)) as sink:
        sink.start()
        for output in outputs:
            sink.write(output)


def open_standard_output(address: Address) -> Sink:
    """Standard output (``-?format=ndjson``), N-Triples unless told otherwise."""
    address.only("format")
    name = address.get("format", "nt")
    check_format(name)
    return StreamSink(address.text, name, lambda _: _StandardOutput(sys.stdout.fileno()))


class _StandardOutput(io.BufferedWriter):
    """Standard output in blocks; closing it leaves the descriptor open."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(io.FileIO(descriptor, "wb", closefd=False), _BUFFER)


def _mode(resume: bool) -> str:
    return "ab" if resume else "wb"


def check_writable(path: Path) -> None:
    """Raises UsageError if nothing can be written there."""
    if path.is_dir():
        hint = f"a folder of files is told by its last character: `{path}/?format=parquet`"
        raise UsageError(f"`{path}` cannot be written: it is a folder", hint=hint)
    if not path.parent.is_dir():
        raise UsageError(f"`{path}` cannot be written: there is no folder `{path.parent}`")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"`{path}` cannot be written: permission denied")
