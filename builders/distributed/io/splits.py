"""Files of lines in parts that workers read by themselves: by the bytes at which their lines begin."""

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
from squall.streams.formats.fast_ntriples import Choice

Split = tuple[int, str, int, int]
"""Lines of a file: the number of the source, the path, and the bytes in which they begin: behind the line of the first
one (from 0: at the beginning), up to the last one (-1: up to the end)."""
_BLOCK_BYTES = 1 << 20
"""How many bytes are parsed at a time, about."""
_COMPRESSION_FACTOR = 10
"""What is compressed is taken to have so many times the bytes."""


def splits_of(source: int, path: str, size: int, most: int) -> list[Split]:
    """The parts of a file of so many bytes, each of no more than `most`. One that is compressed cannot be read from the
    middle."""
    if path.endswith(".gz"):
        return [(source, path, 0, -1)]
    starts = range(0, max(size, 1), most)
    return [(source, path, start, start + most if start + most < size else -1) for start in starts]


def pack_splits(sizes: Iterable[tuple[int, str, int]], tasks: int, least: int, most: int) -> list[list[Split]]:
    """What each of some tasks is to read, about as much each. sizes: (number of the source, path, bytes) of files.
    tasks: how many there are to be, unless that were less than `least` bytes for each, as which a file counts at least,
    or more than `most`."""
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
    """How many bytes a part of a file has, about: of one that is compressed it is not known before. A file that is not
    there any more has none."""
    _, path, begin, end = part
    try:
        size = os.stat(path).st_size if end < 0 else end
    except OSError:
        return 0
    return size * _COMPRESSION_FACTOR if path.endswith(".gz") else size - begin


def splits_parser(documents: Sequence[Document], split_groups: Sequence[Sequence[Split]]) -> Parse:
    """The function from batches of numbers (column id) of shares to what these hold. Raises BuilderError where a file
    cannot be read."""

    def parse(
        batches: Iterable[pyarrow.RecordBatch], predicates: Collection[Term] | None, watermark: int
    ) -> Iterator[Parsed]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                for part in split_groups[number]:
                    yield from _read(part, documents[part[0]], predicates, watermark)

    return parse


def fixed_splits_parser(documents: Sequence[Document], splits: Sequence[Split]) -> Parse:
    """The function from nothing to what all of some parts hold. Raises BuilderError where a file cannot be read."""

    def parse(
        batches: Iterable[pyarrow.RecordBatch], predicates: Collection[Term] | None, watermark: int
    ) -> Iterator[Parsed]:
        for part in splits:
            yield from _read(part, documents[part[0]], predicates, watermark)

    return parse


def _read(part: Split, document: Document, predicates: Collection[Term] | None, watermark: int) -> Iterator[Parsed]:
    source, path, begin, _ = part
    before = 0
    for block in blocks(part):
        choice = None if predicates is None else Choice(predicates, watermark)
        yield Parsed(source, *parse_block(document, path, begin, before, block, choice), path, begin)
        before += block.count(b"\n") + 1


def blocks(part: Split) -> Iterator[bytes]:
    """The lines of a part in blocks, without the last line's end. Raises BuilderError where a file cannot be read."""
    try:
        yield from _blocks(part)
    except (OSError, EOFError, zlib.error) as error:
        raise BuilderError(f"`{part[1]}` cannot be read: {error}") from error


def _blocks(part: Split) -> Iterator[bytes]:
    _, path, begin, end = part
    with cast(IO[bytes], gzip.open(path) if path.endswith(".gz") else open(path, "rb")) as file:
        place = begin
        if begin:
            file.seek(begin)
            place += len(file.readline())
        while end < 0 or place <= end:
            block = file.read(_BLOCK_BYTES if end < 0 else min(_BLOCK_BYTES, end + 1 - place))
            block += file.readline() if not block.endswith(b"\n") else b""
            if not block:
                return
            place += len(block)
            yield block.removesuffix(b"\n")
