"""Files as byte streams: regular, followed, pipes, compressed."""

from __future__ import annotations

import io
import os
import select
import threading
from typing import IO, NamedTuple, cast

from squall.errors import SourceError
from squall.streams.formats.compression import decompressing
from squall.streams.formats.reading import ReadProgress

_SKIP_BYTES = 1 << 20
"""The number of bytes that are skipped at a time."""
_STOP_POLL_S = 0.2
"""The seconds between two checks whether reading a pipe was stopped."""


class WaitPolicy(NamedTuple):
    """How the reader of a live file waits for more bytes.

    Attributes:
        stop: An event that ends the wait.
        poll: The seconds between two checks whether a file has grown, or None for a pipe.
    """

    stop: threading.Event
    poll: float | None = None


class StoredFile(io.RawIOBase):
    """A file that is read to its end. It counts the bytes as they are stored.

    Attributes:
        is_cut: Whether reading was stopped before the end.
        ends_in_cr: Whether what was skipped ends in a CR.
    """

    is_cut = False

    def __init__(self, raw: io.FileIO, reading: ReadProgress) -> None:
        self._raw = raw
        self._reading = reading
        self._begin = raw.tell() if raw.seekable() else None
        """The position of the beginning, which another process may have chosen (standard input); None in a pipe."""
        self.ends_in_cr = False

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size) or b""
        self._reading.bytes += len(data)
        return data

    def skip(self, size: int) -> bool:
        """Skips bytes, and returns whether a line ends there, or the file, whose last line may have no end."""
        if os.fstat(self._raw.fileno()).st_size < size - 1:
            return False
        self._reading.bytes += self._raw.seek(size - 1)
        last = StoredFile.read(self, 1)
        self.ends_in_cr = last == b"\r"
        return last in (b"\n", b"\r", b"")

    @property
    def can_rewind(self) -> bool:
        """Whether the file can be read again from its beginning."""
        return self._begin is not None

    def rewind(self) -> None:
        """Goes back to the beginning."""
        if self._begin is not None:
            self._reading.bytes -= self._raw.tell() - self._begin
            self._raw.seek(self._begin)

    def close(self) -> None:
        self._raw.close()
        super().close()


class PipeFile(StoredFile):
    """A pipe. Reading waits for bytes, unless it is stopped."""

    def __init__(self, raw: io.FileIO, reading: ReadProgress, stop: threading.Event) -> None:
        super().__init__(raw, reading)
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        while not select.select([self._raw], [], [], _STOP_POLL_S)[0]:
            if self._stop.is_set():
                self.is_cut = True
                return b""
        return super().read(size)


class FollowedFile(StoredFile):
    """A file that grows. Reading waits at its end, unless it is stopped.

    It raises SourceError if the file becomes shorter, or another file takes its place.
    """

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
            hint = "for files that are rotated, follow their folder"
            raise SourceError(f"`{path}` is not the file that has been read so far, or is shorter now", hint=hint)


class CompressedFile(io.RawIOBase):
    """A file that is decompressed as it is read.

    Attributes:
        ends_in_cr: Whether what was skipped ends in a CR.
    """

    def __init__(self, reader: StoredFile, compression: str) -> None:
        self._stored = reader
        self._compression = compression
        self._file = decompressing(cast(IO[bytes], reader), compression)
        self.ends_in_cr = False

    @property
    def is_cut(self) -> bool:
        """Whether reading was stopped before the end."""
        return self._stored.is_cut

    def read(self, size: int = -1) -> bytes:
        try:
            data: bytes = self._file.read1(size)
            return data
        except EOFError:
            if self.is_cut:
                return b""
            raise

    def skip(self, size: int) -> bool:
        """Skips decompressed bytes, and returns whether a line, or the file, ends there."""
        last = b""
        while size and (data := self.read(min(size, _SKIP_BYTES))):
            size, last = size - len(data), data
        self.ends_in_cr = last.endswith(b"\r")
        return last.endswith((b"\n", b"\r")) if not size else size == 1

    @property
    def can_rewind(self) -> bool:
        """Whether the file can be read again from its beginning."""
        return self._stored.can_rewind

    def rewind(self) -> None:
        """Goes back to the beginning."""
        self._stored.rewind()
        self._file.close()
        self._file = decompressing(cast(IO[bytes], self._stored), self._compression)

    def close(self) -> None:
        self._file.close()
        self._stored.close()
        super().close()


def open_file(
    path: str, reading: ReadProgress, compression: str, waiting: WaitPolicy | None
) -> StoredFile | CompressedFile:
    """Opens a file, or standard input (``-``).

    Args:
        path: The path.
        reading: The counts that reading updates.
        compression: The name of its compression (`squall.streams.formats.compression`); ``""``: none.
        waiting: How to wait for more bytes; None: the file is not live.

    Raises:
        OSError: It cannot be opened.
    """
    raw = io.FileIO(0, closefd=False) if path == "-" else io.FileIO(path)
    reader = _stored(raw, reading, waiting)
    return CompressedFile(reader, compression) if compression else reader


def _stored(raw: io.FileIO, reading: ReadProgress, waiting: WaitPolicy | None) -> StoredFile:
    if waiting is None:
        return StoredFile(raw, reading)
    stop, poll = waiting
    return PipeFile(raw, reading, stop) if poll is None else FollowedFile(raw, reading, stop, poll)
