"""Splits of line files that workers read themselves, given by the bytes at which their lines begin."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import IO, cast

import pyarrow

from squall.builders.distributed.io.parsing import Document, Parse, Parsed, parse_block
from squall.errors import BuilderError
from squall.rdf import Term
from squall.streams.formats.fast_ntriples import PredicateFilter
from squall.streams.formats.text_input import count_lines

Split = tuple[int, str, int, int]
"""Lines of a file: the number of the source, the path, and the range of bytes in which the lines begin. The range
starts after the line of the first byte (0: at the beginning) and includes the last byte (-1: to the end)."""
BLOCK_BYTES = 1 << 20
"""About how many bytes are parsed at a time."""
_COMPRESSION_FACTOR = 10
"""Compressed files are assumed to hold this many times their bytes."""


def splits_of(source: int, path: str, size: int, most: int) -> list[Split]:
    """Returns the splits of a file, each of at most so many bytes. A compressed file cannot be read from the middle, so
    it is one split."""
    if path.endswith(".gz"):
        return [(source, path, 0, -1)]
    starts = range(0, max(size, 1), most)
    return [(source, path, start, start + most if start + most < size else -1) for start in starts]


def pack_splits(sizes: Iterable[tuple[int, str, int]], tasks: int, least: int, most: int) -> list[list[Split]]:
    """Returns the splits that each task reads, about as many bytes each.

    Args:
        sizes: (number of the source, path, bytes) of the files.
        tasks: how many tasks there should be.
        least: the fewest bytes for a task; a file counts as so many at least.
        most: the most bytes for a task.
    """
    files = list(sizes)
    share = max(least, min(most, -(-sum(max(size, least) for _, _, size in files) // tasks)))
    groups: list[list[Split]] = [[]]
    room = share
    for source, path, size in files:
        for part in splits_of(source, path, size, share):
            takes = max(least, (size if part[3] < 0 else part[3]) - part[2])
            if groups[-1] and takes > room:
                groups.append([])
                room = share
            groups[-1].append(part)
            room -= takes
    return groups


def split_bytes(part: Split) -> int:
    """Returns about how many bytes a split has. That of a compressed file is a guess. A file that has gone has none."""
    _, path, begin, end = part
    try:
        size = os.stat(path).st_size if end < 0 else end
    except OSError:
        return 0
    return size * _COMPRESSION_FACTOR if path.endswith(".gz") else size - begin


def splits_parser(
    documents: Sequence[Document], split_groups: Sequence[Sequence[Split]], block_bytes: int = BLOCK_BYTES
) -> Parse:
    """Returns the function from batches of numbers (column id) of groups of splits to their content.

    It raises BuilderError if a file cannot be read. block_bytes: about how many bytes are parsed at a time.
    """

    def parse(
        batches: Iterable[pyarrow.RecordBatch], predicates: Collection[Term] | None, watermark: int
    ) -> Iterator[Parsed]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                for part in split_groups[number]:
                    yield from _read(part, documents[part[0]], predicates, watermark, block_bytes)

    return parse


def fixed_splits_parser(documents: Sequence[Document], splits: Sequence[Split]) -> Parse:
    """Returns the function from no input to the content of some splits. It raises BuilderError if a file cannot be
    read."""

    def parse(
        batches: Iterable[pyarrow.RecordBatch], predicates: Collection[Term] | None, watermark: int
    ) -> Iterator[Parsed]:
        for part in splits:
            yield from _read(part, documents[part[0]], predicates, watermark)

    return parse


def _read(
    part: Split,
    document: Document,
    predicates: Collection[Term] | None,
    watermark: int,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Parsed]:
    source, path, begin, _ = part
    before = 0
    for block in blocks(part, block_bytes):
        choice = None if predicates is None else PredicateFilter(predicates, watermark)
        yield Parsed(source, *parse_block(document, path, begin, before, block, choice), path, begin)
        before += count_lines(block.removesuffix(b"\r")) + 1


def blocks(part: Split, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yields the lines of a split in blocks of about so many bytes, without the end of the last line.

    Raises BuilderError if the file cannot be read.
    """
    try:
        yield from _blocks(part, block_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise BuilderError(f"`{part[1]}` cannot be read: {error}") from error


def _blocks(part: Split, block_bytes: int) -> Iterator[bytes]:
    _, path, begin, end = part
    with cast(IO[bytes], gzip.open(path) if path.endswith(".gz") else open(path, "rb")) as file:
        place = begin
        if begin:
            file.seek(begin)
            place += len(file.readline())
        while end < 0 or place <= end:
            block = file.read(block_bytes if end < 0 else min(block_bytes, end + 1 - place))
            block += file.readline() if not block.endswith(b"\n") else b""
            if not block:
                return
            place += len(block)
            yield block.removesuffix(b"\n")
