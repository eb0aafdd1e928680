"""What a run on Spark reads: the sources that Spark can read by itself, as lines with the places that they are from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from squall.builders.lines import Document
from squall.builders.spark.session import FILES_PER_BATCH
from squall.streams import Source

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
