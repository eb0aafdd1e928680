"""What a run on Spark reads: the sources that Spark can read by itself, as lines with the places that they are from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from squall.builders.lines import Document, Lost
from squall.builders.spark.session import FILES_PER_BATCH
from squall.builders.spark.sources import FrameSource
from squall.errors import BuilderError
from squall.rdf import Event
from squall.streams import FileSource, FolderSource, Source, Sources
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
    """Whether Spark can read a source by itself: files of lines, which it can split, and DataFrames."""
    if isinstance(source, FileSource):
        by_ending = of_path(source.path)
        compression_shows = source.compressed == source.path.endswith(".gz")
        return source.format.lines and not source.live and compression_shows and by_ending is not None
    if isinstance(source, FolderSource):
        return all(told(path, source.settings.format)[0].lines for path in source.files())
    return isinstance(source, FrameSource)


def is_live(batches: Iterable[Sequence[Event]]) -> bool:
    """Whether more may come than what is there."""
    return batches.live if isinstance(batches, Sources) else not isinstance(batches, list)


def check_bounded(batches: Iterable[Sequence[Event]]) -> None:
    """Raises BuilderError where more may come than what is there, by the name of the source."""
    if is_live(batches):
        sources = batches.sources if isinstance(batches, Sources) else ()
        name = next((f"`{source.uri}`" for source in sources if source.live), "what events come from")
        raise BuilderError(f"{name} is live: one batch is all that is there", hint="leave `--batch` out")


def document_of(source: Source) -> Document:
    """How the lines of a source that Spark can read are read."""
    if isinstance(source, FrameSource):
        return Document(source.uri, source.stream, source.format)
    assert isinstance(source, FileSource | FolderSource)
    settings = source.settings
    return Document(source.path, settings.stream, settings.format, settings.time, isinstance(source, FolderSource))


def lines(spark: SparkSession, inputs: Inputs, streaming: bool) -> DataFrame:
    """The lines of all sources, with the places that they are from and the number of their source. streaming: as they
    come; else all that there are."""
    found = (
        source.lines() if isinstance(source, FrameSource) else _file_lines(spark, document, streaming)
        for document, source in zip(inputs.documents, inputs.sources, strict=True)
    )
    numbered = (frame.selectExpr("*", f"{number} as source") for number, frame in enumerate(found))
    return reduce(lambda one, other: one.union(other), numbered)


def _file_lines(spark: SparkSession, document: Document, streaming: bool) -> DataFrame:
    """The lines of a file or folder. (Spark streams folders only: a file is one by a filter on names.)"""
    path = _glob(Path(document.name).absolute(), document.folder)
    if not streaming:
        return placed(spark.read.format("text").load(path))
    reader = spark.readStream.format("text")
    if files := spark.conf.get(FILES_PER_BATCH, ""):
        reader = reader.option("maxFilesPerTrigger", files)
    return placed(reader.load(path))


def _glob(path: Path, folder: bool) -> str:
    """The pattern that names a folder's files, or one file: as a pattern, since Spark takes a plain path for a folder;
    its first and last character in brackets, since Spark passes over names that begin with ``_`` or ``.``."""
    escaped = ["".join(f"\\{c}" if c in "*?[]{}\\^" else c for c in part) for part in path.parts]
    if not folder:
        name = path.name
        escaped[-1] = f"[{name[0]}]{escaped[-1][1:-1]}[{name[-1]}]"
    return "file:" + "/".join(["", *escaped[1:]])


def placed(text: DataFrame) -> DataFrame:
    """Lines with the place that they are from."""
    return text.selectExpr("value", "_metadata.file_path as file", "_metadata.file_block_start as block")


def line_number(lost: Lost) -> int | None:
    """The number of a lost statement's line in its file, from 1. A later block of a file begins behind the line that
    its first byte lies in."""
    if not lost.line or not lost.block:
        return lost.line or None
    with open(lost.source, "rb") as file:
        before = file.read(lost.block).count(b"\n")
    return before + 1 + lost.line
