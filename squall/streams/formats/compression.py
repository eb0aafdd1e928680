"""Compressed files: the endings that say so, and how they are read. docs/reading.md states it for users.

Each compression may have several members one after the other, as `cat a.gz b.gz` makes them.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import IO, Any

from squall.errors import PluginError, install_hint


@dataclass(frozen=True)
class Compression:
    """A compression.

    Attributes:
        name: Its name, which is also its ending without the dot.
        signature: The bytes with which compressed data begin.
        reader: Returns a file with the decompressed bytes of a file. It is not closed with it.
        compress: Returns compressed bytes.
        library: The module that it needs and that is optional, or None.
    """

    name: str
    signature: bytes
    reader: Callable[[IO[bytes]], Any]
    compress: Callable[[bytes], bytes]
    library: str | None = None

    @property
    def ending(self) -> str:
        """The ending of compressed files."""
        return f".{self.name}"


def _zstd(data: bytes) -> bytes:
    import zstandard

    compressed: bytes = zstandard.ZstdCompressor().compress(data)
    return compressed


class _ZstdFile:
    """A reader of Zstandard with the interface of the standard library's. (`zstandard` takes a cut file as whole.)"""

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard

        self._decompressor = zstandard.ZstdDecompressor()
        self._file = file
        self._frame: Any = None
        """The state of the frame that is being read; None between two frames."""
        self._compressed = b""
        self._data = b""

    def read1(self, size: int = -1) -> bytes:
        """Returns some bytes; ``b""`` at the end. Raises EOFError if the last frame is incomplete."""
        while not self._data and self._advance():
            pass
        size = len(self._data) if size < 0 else size
        data, self._data = self._data[:size], self._data[size:]
        return data

    def close(self) -> None:
        """Does nothing: the file that is read is not closed."""

    def _advance(self) -> bool:
        """Decompresses more bytes. Returns False at the end."""
        compressed = self._compressed or self._file.read(_ZSTD_CHUNK)
        if not compressed:
            if self._frame is not None:
                raise EOFError("the compressed file ends before the end of its last frame")
            return False
        self._frame = self._frame or self._decompressor.decompressobj()
        self._data = self._frame.decompress(compressed)
        self._compressed = b""
        if self._frame.eof:
            self._compressed, self._frame = self._frame.unused_data, None
        return True


_ZSTD_CHUNK = 1 << 12
"""The number of compressed bytes that are decompressed at a time, so that few of them cannot fill the memory."""

COMPRESSIONS = (
    Compression("gz", b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file, mode="rb"), gzip.compress),
    Compression("bz2", b"BZh", bz2.BZ2File, bz2.compress),
    Compression("xz", b"\xfd7zXZ\0", lzma.LZMAFile, lzma.compress),
    Compression("zst", b"\x28\xb5\x2f\xfd", _ZstdFile, _zstd, "zstandard"),
)
BY_NAME = {compression.name: compression for compression in COMPRESSIONS}


def endings() -> str:
    """Returns the endings of compressed files, for messages."""
    return ", ".join(compression.ending for compression in COMPRESSIONS)


def split_ending(name: str) -> tuple[str, str]:
    """Returns a file name, or the name of a format, without the ending of its compression, and the compression's name.

    Capitals do not matter. The compression is ``""`` if there is none.
    """
    for compression in COMPRESSIONS:
        if name.lower().endswith(compression.ending):
            return name[: -len(compression.ending)], compression.name
    return name, ""


def check_installed(name: str) -> None:
    """Checks that the library of a compression is installed. Raises PluginError if not."""
    library = BY_NAME[name].library if name else None
    if library is not None and find_spec(library) is None:
        hint = f"{install_hint('squall[zstd]')}, or decompress it first"
        raise PluginError(f"`.{name}` needs `{library}`, which is not installed", hint=hint)


def decompressing(file: IO[bytes], name: str) -> Any:
    """Returns a file with the decompressed bytes of a file, which has the methods `read1` and `close`."""
    return BY_NAME[name].reader(file)


def decompressed(data: bytes, name: str, most: int) -> bytes:
    """Returns decompressed bytes, at most so many. Raises one of `errors` if they cannot be decompressed."""
    file, result = decompressing(io.BytesIO(data), name), b""
    while len(result) < most and (chunk := file.read1(most - len(result))):
        result += chunk
    return result


def errors() -> tuple[type[Exception], ...]:
    """Returns the errors that reading compressed data may raise."""
    if find_spec("zstandard") is None:
        return OSError, EOFError, zlib.error, lzma.LZMAError
    import zstandard

    return OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError
