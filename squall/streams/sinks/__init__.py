"""Sinks, to which outputs are written: files, standard output, folders. Formats are in `formats.output_formats`."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol, cast, runtime_checkable

from squall.contracts import DeadLetterLedger, Output
from squall.errors import SinkError, UsageError
from squall.streams.address import Address
from squall.streams.formats.compression import split_ending
from squall.streams.formats.evaluations import Declarations
from squall.streams.formats.output_formats import BY_ENDING, ENDS, FILES, LINES, check_format, encoder, of_ending
from squall.streams.sinks.folders import COLUMNS, FolderSink
from squall.streams.sinks.patterns import PatternSink, expanded, is_pattern

_BUFFER_BYTES = 1 << 16
"""The size of a file's buffer. Each write to the system costs as much as some lines."""


@runtime_checkable
class Sink(Protocol):
    """A sink, to which outputs are written. Plug-ins of the group ``squall.sinks`` create them.

    A plug-in is called with an Address, and raises UsageError if outputs cannot be written there. Nothing is changed
    before `start`.

    Attributes:
        uri: The address of the sink, as it was given.
    """

    uri: str

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Opens the sink.

        Args:
            resume: Whether to append to the outputs of an earlier run.
            prompt: Whether to write each output at once, without a buffer.
        """
        ...

    def write(self, output: Output) -> None:
        """Writes one output. Raises SinkError if that fails."""
        ...

    def close(self) -> None:
        """Writes what is buffered, and closes the sink."""
        ...


@runtime_checkable
class Flushable(Protocol):
    """A sink that buffers outputs, or waits for their acknowledgements."""

    def flush(self) -> None:
        """Returns when all outputs have arrived. Raises SinkError if that fails."""
        ...


@runtime_checkable
class BuffersOutputs(Protocol):
    """A sink whose format buffers outputs, such as the answers of an evaluation until it is complete."""

    def snapshot_buffer(self) -> Any:
        """Returns the buffered outputs as a JSON value."""
        ...

    def restore_buffer(self, buffered: Any) -> None:
        """Restores buffered outputs. It is called before anything is written."""
        ...

    def discard_buffer(self) -> None:
        """Drops the buffered outputs, so that `close` does not write them."""
        ...


@runtime_checkable
class ReportsDeadLetters(Protocol):
    """A sink that may lose outputs, and records them as dead letters.

    Attributes:
        ledger: Its ledger. A run may replace it by its own.
    """

    ledger: DeadLetterLedger


@runtime_checkable
class SupportsDeclarations(Protocol):
    """A sink whose format may write what the program declares of its outputs.

    (RDF Patch deletes those that have ceased to hold; result sets number solutions that have an order.)
    """

    def declare(self, declarations: Declarations) -> None:
        """Declares what the outputs are. It is called before `start`. By default nothing is declared."""
        ...


@runtime_checkable
class HasColumnTypes(Protocol):
    """A sink whose columns may be given types: a folder, or a Parquet file.

    Attributes:
        types: The types by the names of columns; None: the sink decides.
    """

    types: Mapping[str, str] | None


class StreamSink:
    """A sink that writes bytes from beginning to end: standard output, or a compressed file.

    Its methods raise SinkError if the system cannot open or write the file.
    """

    def __init__(
        self,
        uri: str,
        format: str,
        open: Callable[[bool], IO[bytes]],
        path: Path | None = None,
        alone: bool = False,
    ) -> None:
        """Creates a sink that is not open yet.

        Args:
            uri: The address of the sink.
            format: The name of the format.
            open: Opens the file. Its argument says whether to append.
            path: The path of the file, if it has one.
            alone: Whether what is written must be readable without what was written before, as on a connection that
                is made again.
        """
        self.uri = uri
        self.format = format
        self._path = path
        self._open = open
        self._alone = alone
        self._encoder = encoder(format, uri, alone)
        self._encode = self._encoder.write
        self._prompt = False
        self._file: IO[bytes] | None = None

    def declare(self, declarations: Declarations) -> None:
        self._encoder = encoder(self.format, self.uri, self._alone, declarations)
        self._encode = self._encoder.write

    @property
    def file(self) -> IO[bytes]:
        """The file, which must be open (after `start`)."""
        if self._file is None:
            raise ValueError(f"the sink {self.uri} is not open")
        return self._file

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        has_content = resume and self._path is not None and self._path.exists() and self._path.stat().st_size > 0
        try:
            self._file = self._open(resume)
        except OSError as error:
            self._refused(error)
        self._prompt = prompt
        self._encoder.begin(has_content, self._file.isatty())

    def write(self, output: Output) -> None:
        """Writes one output. Raises SinkError if the format cannot express it, or the system cannot write it."""
        try:
            (self._file or self.file).write(self._encode(output))
            if self._prompt:
                self.file.flush()
        except OSError as error:
            self._refused(error)

    def flush(self) -> None:
        """Passes the buffer of the file to the system (see `Flushable`)."""
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
        """Raises SinkError for an error of the system, or BrokenPipeError if the reader is gone."""
        if isinstance(error, BrokenPipeError):
            raise error
        raise SinkError(f"`{self.uri}` cannot be written: {error.strerror}") from error

    def snapshot_buffer(self) -> Any:
        """Returns what the format buffers (see `BuffersOutputs`)."""
        return self._encoder.snapshot()

    def restore_buffer(self, buffered: Any) -> None:
        self._encoder.restore(buffered)

    def discard_buffer(self) -> None:
        self._encoder.begin(True, False)


class _PathSink(StreamSink):
    """A file whose length is part of a checkpoint (`squall.contracts.CheckpointedSink`)."""

    def snapshot(self, last: bool = False) -> Any:
        try:
            return {"length": self._synced_length(), "held": self.snapshot_buffer()}
        except OSError as error:
            self._refused(error)

    def restore(self, state: Any) -> None:
        """Truncates the file to the length of a snapshot. Raises SinkError if it is shorter, and thus another file."""
        try:
            self._truncate_existing(state["length"])
        except OSError as error:
            self._refused(error)
        self.restore_buffer(state["held"])

    def _truncate_existing(self, length: int) -> None:
        """Truncates a file that is at least as long as that: the system would fill a shorter one up with zeros."""
        assert self._path is not None
        if (size := self._path.stat().st_size) < length:
            what = f"{length} bytes of it had been written, and it has {size}"
            hint = "a run that is to write another file starts from a new checkpoint"
            raise SinkError(f"`{self.uri}` is not the file that it was: {what}", hint=hint)
        self._truncate(length)

    def _synced_length(self) -> int:
        """Syncs the file to disk, and returns its length in bytes."""
        raise NotImplementedError

    def _truncate(self, length: int) -> None:
        """Truncates the file, and continues there."""
        raise NotImplementedError


class GzipSink(_PathSink):
    """A compressed file, with a gzip member (RFC 1952, section 2.2) for the outputs between two checkpoints."""

    _length = 0
    """The length of the complete members, in bytes."""

    def _synced_length(self) -> int:
        assert self._path is not None
        if self.file.tell():
            self.file.close()
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
            self._length = self._path.stat().st_size
            self._file = self._open(True)
        return self._length

    def _truncate(self, length: int) -> None:
        assert self._path is not None
        self.file.close()
        os.truncate(self._path, length)
        self._length = length
        self._file = self._open(True)
        self._encoder.begin(length > 0, False)


class PlainFileSink(_PathSink):
    """An uncompressed file, whose format may buffer outputs from one batch to the next."""

    def _synced_length(self) -> int:
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.file.tell()

    def _truncate(self, length: int) -> None:
        self.file.flush()
        self.file.truncate(length)
        self.file.seek(length)
        self._encoder.begin(length > 0, self.file.isatty())


class FileSink(PlainFileSink):
    """An uncompressed file, which can be truncated to the start of a batch (`squall.contracts.TruncatableSink`)."""

    def position(self) -> int:
        self.file.write(self._encoder.end())
        return self._synced_length()

    def truncate(self, position: int) -> None:
        self._truncate_existing(position)


def open_path(address: Address) -> Sink:
    """Opens a file or a folder by a path or a ``file:`` address. Raises UsageError if it cannot be written.

    A path with ``{time}`` is a file for each evaluation. One that ends in ``/`` is a folder of files. ``format`` is the
    only option; ``.gz`` compresses.
    """
    address.only("format")
    if address.path.endswith("/"):
        return _folder(address)
    path, ending = split_ending(address.path)
    name = address.get("format") or of_ending(path)
    if name is None:
        raise UsageError(
            f"the format of `{address.path}` cannot be inferred from its name",
            hint=f"known endings: {', '.join(BY_ENDING)}, each also with .gz; or name it: `{address.path}?format=nt`",
        )
    plain, named = split_ending(name)
    compression = ending or named
    if compression not in ("", "gz"):
        hint = f"write `{path}.gz`, or `{path}` and compress it afterwards"
        raise UsageError(f"`{address.text}` cannot be written: outputs are compressed by gzip only", hint=hint)
    compressed = bool(compression)
    check_format(plain)
    if plain in FILES:
        return _parquet(address, compressed)
    if not is_pattern(address.path):
        check_writable(Path(address.path))
        return _file_sink(address.text, Path(address.path), plain, compressed)
    if plain == ENDS:
        hint = "name one file, or write a log of each instant: `rdfp`"
        raise UsageError(f"`{address.text}` has files of instants, and `{ENDS}` has intervals", hint=hint)
    check_writable(expanded(address.path, 0, ""))
    write_file = partial(_write_file, format=plain, compressed=compressed)
    return PatternSink(address.text, address.path, plain, write_file)


def _folder(address: Address) -> FolderSink:
    format, formats = address.get("format"), (*COLUMNS, *LINES)
    if format not in formats:
        hint = f"formats: {', '.join(formats)}; for example `{address.path}?format=parquet`"
        raise UsageError(f"the address of the folder `{address.path}` does not name the format of its files", hint=hint)
    return FolderSink(address.text, Path(address.path), format)


def _parquet(address: Address, compressed: bool) -> Sink:
    from squall.streams.sinks import parquet_files  # on demand: it needs other sinks

    if compressed:
        hint = "leave the compression out"
        raise UsageError(f"`{address.text}` would be compressed twice: Parquet compresses its columns", hint=hint)
    if is_pattern(address.path):
        check_writable(expanded(address.path, 0, ""))
        return parquet_files.ParquetPatternSink(address.text, address.path)
    check_writable(Path(address.path))
    return parquet_files.ParquetSink(address.text, Path(address.path))


def _file_sink(uri: str, path: Path, format: str, compressed: bool) -> StreamSink:
    if compressed:
        return GzipSink(uri, format, lambda resume: cast(IO[bytes], gzip.open(path, _mode(resume))), path)
    kind = PlainFileSink if format == ENDS else FileSink
    return kind(uri, format, lambda resume: path.open(_mode(resume), _BUFFER_BYTES), path)


def _write_file(
    uri: str, path: Path, outputs: Sequence[Output], declarations: Declarations, format: str, compressed: bool
) -> None:
    with closing(_file_sink(uri, path, format, compressed)) as sink:
        sink.declare(declarations)
        sink.start()
        for output in outputs:
            sink.write(output)


def open_standard_output(address: Address) -> Sink:
    """Opens standard output (``-?format=ndjson``). The default format is N-Triples."""
    address.only("format")
    name = address.get("format", "nt")
    check_format(name)
    return StreamSink(address.text, name, lambda _: _StandardOutput(sys.stdout.fileno()))


class _StandardOutput(io.BufferedWriter):
    """A buffer of standard output. Closing it leaves the descriptor open."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(io.FileIO(descriptor, "wb", closefd=False), _BUFFER_BYTES)


def _mode(resume: bool) -> str:
    return "ab" if resume else "wb"


def check_writable(path: Path) -> None:
    """Checks that a file can be written. Raises UsageError if not."""
    try:
        file_type = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        file_type = 0
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {error.strerror}") from error
    if file_type == stat.S_IFDIR:
        hint = f"the path of a folder of files ends in `/`: `{path}/?format=parquet`"
        raise UsageError(f"`{path}` cannot be written: it is a folder", hint=hint)
    if not path.parent.is_dir():
        raise UsageError(f"`{path}` cannot be written: there is no folder `{path.parent}`")
    if not os.access(path if file_type else path.parent, os.W_OK):
        raise UsageError(f"`{path}` cannot be written: permission denied")
