"""Files as bytes: what is at hand of them, decompressed, from some place on."""

from __future__ import annotations

import gzip
import io
import os
import select
import threading
from typing import NamedTuple

from squall.errors import SourceError
from squall.streams.formats.reading import ReadProgress

_PASSED = 1 << 20  # bytes that are passed over at a time
_POLL = 0.2  # seconds between two looks whether a pipe that keeps its reader waiting was stopped


class Waiting(NamedTuple):
    """For what a reader waits when there is nothing more at hand: the other end of a pipe, or (poll, in seconds) what
    is added to a file. stop: what ends that."""

    stop: threading.Event
    poll: float | None = None


class Reader(io.RawIOBase):
    """Reads what is at hand, and counts the bytes of the file as it is stored. is_cut: it has ended since it is read no
    further, and not at its end."""

    is_cut = False

    def __init__(self, raw: io.FileIO, reading: ReadProgress) -> None:
        self._raw = raw
        self._reading = reading

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size) or b""
        self._reading.bytes += len(data)
        return data

    def pass_over(self, size: int) -> bool:
        """Goes on behind so many bytes; whether a line ends there, or the file, whose last line need not have an
        end."""
        if os.fstat(self._raw.fileno()).st_size < size - 1:
            return False
        self._reading.bytes += self._raw.seek(size - 1)
        return Reader.read(self, 1) in (b"\n", b"")

    def close(self) -> None:
        self._raw.close()
        super().close()


class Pipe(Reader):
    """What somebody writes: it is waited for, unless the reader is stopped."""

    def __init__(self, raw: io.FileIO, reading: ReadProgress, stop: threading.Event) -> None:
        super().__init__(raw, reading)
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        while not select.select([self._raw], [], [], _POLL)[0]:
            if self._stop.is_set():
                self.is_cut = True
                return b""
        return super().read(size)


class Growing(Reader):
    """A file to which is added: at its end that is waited for, unless the reader is stopped. Raises SourceError if it
    becomes shorter, or another file takes its place."""

    def __init__(self, raw: io.FileIO, reading: ReadProgress, stop: threading.Event, poll: float) -> None:
        super().__init__(raw, reading)
        self._stop = stop
        self._poll = poll

    def read(self, size: int = -1) -> bytes:
        while not (data := super().read(size)) and not self._stop.is_set():
            self._check()
            self._stop.wait(self._poll)
        return data

    def _check(self) -> None:
        path = os.fspath(self._raw.name)
        mine, current = os.fstat(self._raw.fileno()), os.stat(path)
        if mine.st_size < self._raw.tell() or (mine.st_ino, mine.st_dev) != (current.st_ino, current.st_dev):
            hint = "what is begun anew now and then is better a folder of files, which can be followed, too"
            raise SourceError(f"`{path}` is not the file that has been read so far, or is shorter now", hint=hint)


class Unzipped(io.RawIOBase):
    """Decompresses what is at hand."""

    def __init__(self, reader: Reader) -> None:
        self._stored = reader
        self._file = gzip.GzipFile(fileobj=reader, mode="rb")

    @property
    def is_cut(self) -> bool:
        """See `Reader`."""
        return self._stored.is_cut

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read1(size)
        except EOFError:
            if self.is_cut:
                return b""
            raise

    def pass_over(self, size: int) -> bool:
        """See `Reader`."""
        last = b""
        while size and (data := self.read(min(size, _PASSED))):
            size, last = size - len(data), data
        return last.endswith(b"\n") if not size else size == 1

    def close(self) -> None:
        self._file.close()
        self._stored.close()
        super().close()


def opened(path: str, reading: ReadProgress, compressed: bool, waiting: Waiting | None) -> Reader | Unzipped:
    """The bytes of a file, or of standard input (``-``). Raises OSError."""
    raw = io.FileIO(0, closefd=False) if path == "-" else io.FileIO(path)
    reader = _stored(raw, reading, waiting)
    return Unzipped(reader) if compressed else reader


def _stored(raw: io.FileIO, reading: ReadProgress, waiting: Waiting | None) -> Reader:
    if waiting is None:
        return Reader(raw, reading)
    stop, poll = waiting
    return Pipe(raw, reading, stop) if poll is None else Growing(raw, reading, stop, poll)
