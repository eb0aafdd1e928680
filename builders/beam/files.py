"""Files that driver and workers exchange, by Beam's file systems, so that any worker reaches them.

Lines of sources are read in splits. Events that only the driver can read are spooled as lines. Records are Arrow.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote
from uuid import uuid4

import pyarrow

from squall.builders.beam.beam_import import beam
from squall.builders.distributed.io.parsing import spool_lines
from squall.builders.distributed.io.records import ARROW
from squall.builders.distributed.io.splits import Split
from squall.errors import BuilderError
from squall.rdf import Event

_LINES_PER_BATCH = 20_000
_FILES, _PLAIN = beam.io.filesystems.FileSystems, beam.io.filesystem.CompressionTypes.UNCOMPRESSED


def read_lines(part: Split) -> Iterator[pyarrow.RecordBatch]:
    """Yields the lines of a split, in the form of `squall.builders.distributed.io.parsing.lines_parser`."""
    source, path, begin, end = part
    lines = _lines(path, begin, end)
    while chunk := list(islice(lines, _LINES_PER_BATCH)):
        count = len(chunk)
        columns = {"value": pyarrow.array(chunk, pyarrow.binary()), "file": [quote(path)] * count}
        yield pyarrow.RecordBatch.from_pydict({**columns, "block": [begin] * count, "source": [source] * count})


def _lines(path: str, begin: int, end: int) -> Iterator[bytes]:
    try:
        with _opened(path) as file:
            place = begin
            if begin:
                file.seek(begin)
                place += len(file.readline())
            for line in file:
                if -1 < end < place:
                    return
                yield line
                place += len(line)
    except (OSError, EOFError, zlib.error) as error:
        raise BuilderError(f"`{path}` cannot be read: {error}") from error


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Opens a file for its plain bytes. (Beam's own decompression may silently end in the middle.)"""
    with _FILES.open(path, compression_type=_PLAIN) as file:
        if path.endswith(".gz"):
            with gzip.GzipFile(fileobj=file) as plain:
                yield cast(IO[bytes], plain)
        else:
            yield file


def spool(folder: str, name: str, batches: Iterable[Sequence[Event]]) -> int:
    """Writes events as lines that workers read. Returns the number of bytes."""
    size = 0
    with _complete(folder, name) as file:
        for batch in batches:
            text = "".join(f"{line}\n" for event in batch for line in spool_lines(event)).encode()
            size += len(text)
            file.write(text)
    return size


def write(folder: str, name: str, batches: Iterable[pyarrow.RecordBatch]) -> None:
    """Writes records into a file."""
    with _complete(folder, name) as file:
        write_to(file, batches)


@contextmanager
def _complete(folder: str, name: str) -> Iterator[IO[bytes]]:
    """Opens a new file that gets its name when it is complete: a worker may write it again without harm."""
    draft = f"{folder}/draft-{uuid4().hex}"
    with cast(IO[bytes], _FILES.create(draft)) as file:
        yield file
    _FILES.rename([draft], [f"{folder}/{name}"])


def write_to(file: IO[bytes] | pyarrow.BufferOutputStream, batches: Iterable[pyarrow.RecordBatch]) -> None:
    """Writes records into an open file."""
    with pyarrow.ipc.new_stream(file, ARROW) as writer:
        for batch in batches:
            writer.write_batch(batch)


def read_whole(path: str) -> bytes:
    """Returns the content of a file."""
    with _FILES.open(path, compression_type=_PLAIN) as file:
        return cast(bytes, file.read())


def read(path: str) -> Iterator[pyarrow.RecordBatch]:
    """Yields the records of a file."""
    with _FILES.open(path) as file:
        yield from pyarrow.ipc.open_stream(file)


def exists(path: str) -> bool:
    """Returns whether a file exists."""
    return bool(_FILES.exists(path))


def names(pattern: str) -> list[str]:
    """Returns the sorted paths that match a pattern."""
    (result,) = _FILES.match([pattern])
    return sorted(metadata.path for metadata in result.metadata_list)


def make_folder(parent: str) -> str:
    """Makes a new folder inside of another one."""
    path = str(_FILES.join(parent, f"squall-{uuid4().hex}"))
    _FILES.mkdirs(path)
    return path


def delete(paths: Sequence[str]) -> None:
    """Deletes files, and folders with their content."""
    _FILES.delete(list(paths))


def delete_file(path: str) -> None:
    """Deletes a file. (A local one without Beam, which takes a millisecond to match its path as a pattern.)"""
    if _FILES.get_scheme(path) is None:
        Path(path).unlink()
    else:
        _FILES.delete([path])
