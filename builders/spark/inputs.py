"""What a run on Spark reads: the sources that Spark can read by itself, as lines with the places that they are from."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from squall.builders.distributed import intake
from squall.builders.distributed.lines import Document
from squall.builders.distributed.parts import Part, shares
from squall.builders.spark import kafka
from squall.builders.spark.session import FILES_PER_BATCH
from squall.builders.spark.sources import FrameSource
from squall.builders.spark.store import pattern_of
from squall.streams import FileSource, FolderSource, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_IN_PARTS = FileSource | FolderSource
"""The sources that workers read by themselves where all of them is read at once: nothing but names passes Java."""


class Inputs(NamedTuple):
    """What a run reads. documents: of the lines of each streaming source, by number; sources: those to count for,
    alike.

    live: more may come; endless: and it never ends by itself."""

    documents: tuple[Document, ...]
    sources: tuple[Source | None, ...]
    live: bool
    endless: bool


def readable(source: Source) -> bool:
    """Whether Spark can read a source by itself: what workers can split, and DataFrames."""
    return isinstance(source, FrameSource) or intake.readable(source)


def document_of(source: Source) -> Document:
    """How the lines of a source that Spark can read are read."""
    if isinstance(source, kafka.Topic):
        return kafka.document_of(source)
    if isinstance(source, FrameSource):
        return Document(source.uri, source.stream, source.format)
    return intake.document_of(source)


def lines(spark: SparkSession, inputs: Inputs, streaming: bool) -> DataFrame | None:
    """The lines of sources, with the places that they are from and the number of their source. streaming: of all, as
    they come; else all that there are of those that workers do not read by themselves (None: there are no such)."""
    found = [
        _lines(spark, document, source, streaming).selectExpr("*", f"{number} as source")
        for number, (document, source) in enumerate(zip(inputs.documents, inputs.sources, strict=True))
        if streaming or not isinstance(source, _IN_PARTS)
    ]
    return reduce(lambda one, other: one.union(other), found) if found else None


def in_parts(spark: SparkSession, inputs: Inputs) -> list[list[Part]]:
    """What the tasks that read files by themselves read, each; nothing where no source is such. Cut as Spark cuts
    files, by its settings."""
    sources = [(number, source) for number, source in enumerate(inputs.sources) if isinstance(source, _IN_PARTS)]
    if not sources:
        return []
    paths = ((number, str(Path(path).absolute())) for number, source in sources for path in source.files())
    sizes = [(number, path, Path(path).stat().st_size) for number, path in paths]
    conf = cast(Any, spark)._jsparkSession.sessionState().conf()
    return shares(
        sizes, spark.sparkContext.defaultParallelism, conf.filesOpenCostInBytes(), conf.filesMaxPartitionBytes()
    )


def _lines(spark: SparkSession, document: Document, source: Source | None, streaming: bool) -> DataFrame:
    if document.messages:
        return kafka.lines(spark, cast(kafka.Topic, source))
    if isinstance(source, FrameSource):
        return source.lines()
    return _file_lines(spark, document, streaming)


def _file_lines(spark: SparkSession, document: Document, streaming: bool) -> DataFrame:
    """The lines of a file or folder. (Spark streams folders only: a file is one by a filter on names.)"""
    path = _glob(Path(document.name).absolute(), document.folder)
    if not streaming:
        return placed(spark.read.format("text").load(path))
    reader = spark.readStream.format("text")
    if files := spark.conf.get(FILES_PER_BATCH, ""):
        reader = reader.option("maxFilesPerTrigger", files)
    if document.spooled:
        reader = reader.option("cleanSource", "delete")
    return placed(reader.load(path))


def _glob(path: Path, folder: bool) -> str:
    """The pattern that names a folder's files, or one file: as a pattern, since Spark takes a plain path for a folder;
    its first and last character in brackets, since Spark passes over names that begin with ``_`` or ``.``."""
    escaped = [pattern_of(part) for part in path.parts]
    if not folder:
        name = path.name
        escaped[-1] = f"[{name[0]}]{escaped[-1][1:-1]}[{name[-1]}]"
    return "file:" + "/".join(["", *escaped[1:]])


def placed(text: DataFrame) -> DataFrame:
    """Lines with the place that they are from."""
    return text.selectExpr("value", "_metadata.file_path as file", "_metadata.file_block_start as block")


def last_file(text: DataFrame, number: int) -> tuple[DataFrame, Callable[[], str | None]]:
    """The lines, and what tells when they have been read which file of a source, the last by name, any of them is from
    (None: none is)."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation()
    file = f.max(f.when(f.col("source") == number, f.col("file")))
    return text.observe(seen, file.alias("last")), lambda: seen.get["last"]
