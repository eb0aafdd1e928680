"""What a run on Spark reads: the sources that Spark can read by itself, as lines with the places that they are from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from squall.builders.lines import Document, Lost
from squall.builders.spark.session import FILES_PER_BATCH
from squall.streams import FileSource, FolderSource, Source
from squall.streams.formats import of_path, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Inputs(NamedTuple):
    """What a run reads. documents: of the lines of each streaming source, by number; sources: those to count for,
    alike.

    live: more may come; endless: and it never ends by itself."""

    documents: tuple[Document, ...]
    sources: tuple[Source | None, ...]
    live: bool
    endless: bool


def readable(source: Source) -> bool:
    """Whether Spark can read a source by itself: files of lines, which it can split."""
    if isinstance(source, FileSource):
        by_ending = of_path(source.path)
        compression_shows = source.compressed == source.path.endswith(".gz")
        return source.format.lines and not source.live and compression_shows and by_ending is not None
    if isinstance(source, FolderSource):
        return all(told(path, source.settings.format)[0].lines for path in source.files())
    return False


def document_of(source: Source) -> Document:
    assert isinstance(source, FileSource | FolderSource)
    settings = source.settings
    return Document(source.path, settings.stream, settings.format, settings.time, isinstance(source, FolderSource))


def text_stream(spark: SparkSession, document: Document) -> DataFrame:
    """The lines of a file or folder as a stream. (Spark streams folders only: a file is one by a filter on names.)"""
    reader = spark.readStream.format("text")
    if files := spark.conf.get(FILES_PER_BATCH, ""):
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.load(pattern(document))


def pattern(document: Document) -> str:
    return _glob(Path(document.name).absolute(), document.folder)


def united(texts: Iterable[DataFrame]) -> DataFrame:
    """The lines of several sources."""
    lines = [placed_lines(text, number) for number, text in enumerate(texts)]
    return reduce(lambda one, other: one.union(other), lines)


def _glob(path: Path, folder: bool) -> str:
    """The pattern that names a folder's files, or one file: as a pattern, since Spark takes a plain path for a folder;
    its first and last character in brackets, since Spark passes over names that begin with ``_`` or ``.``."""
    escaped = ["".join(f"\\{c}" if c in "*?[]{}\\^" else c for c in part) for part in path.parts]
    if not folder:
        name = path.name
        escaped[-1] = f"[{name[0]}]{escaped[-1][1:-1]}[{name[-1]}]"
    return "file:" + "/".join(["", *escaped[1:]])


def placed_lines(text: DataFrame, number: int) -> DataFrame:
    """Lines with the place that they are from, and the number of their source."""
    return text.selectExpr(
        "value", "_metadata.file_path as file", "_metadata.file_block_start as block", f"{number} as source"
    )


def line_number(lost: Lost) -> int | None:
    """The number of a lost statement's line in its file, from 1. A later block of a file begins behind the line that
    its first byte lies in."""
    if not lost.line or not lost.block:
        return lost.line or None
    with open(lost.source, "rb") as file:
        before = file.read(lost.block).count(b"\n")
    return before + 1 + lost.line
