"""What a run on Spark reads: the sources that Spark can read by itself, as lines with the places that they are from."""

from __future__ import annotations

import gzip
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from squall.builders.distributed.io import ingest
from squall.builders.distributed.io.parsing import Document, parsed
from squall.builders.distributed.io.records import Record, RowBatch
from squall.builders.distributed.io.splits import Part, shares
from squall.builders.spark.executor_sources import ExecutorSource
from squall.builders.spark.sources import FrameSource
from squall.builders.spark.spool import Spool, file_of, numbers
from squall.builders.spark.store import pattern_of
from squall.rdf import Event
from squall.streams import FileSource, FolderSource, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_HEAD = 1 << 18
"""How many bytes of a file are looked at to see what a stream brings."""
_MAX_LISTED_PARTS = 1000
"""Of how many parts of files Spark is asked, at most."""


class Inputs(NamedTuple):
    """What a run reads. documents: of the lines of each streaming source, by number; sources: those to count for,
    alike.

    live: more may come; endless: and it never ends by itself. direct: what executors read by themselves of it; spooled:
    the last document is what the driver reads. most: how many new files are a micro-batch, at most (0: all)."""

    documents: tuple[Document, ...]
    sources: tuple[Source | None, ...]
    live: bool
    endless: bool
    direct: ExecutorSource = ExecutorSource()
    spooled: bool = False
    most: int = 0


class BatchInput(NamedTuple):
    """What a batch takes in. parts: of files, by the task that is to read them; texts: lines that come from Spark.
    first: the messages that start the program, if it starts."""

    parts: Sequence[Sequence[Part]] = ()
    texts: Sequence[DataFrame] = ()
    first: Sequence[Record | RowBatch] = ()


def readable(source: Source) -> bool:
    """Whether Spark can read a source by itself: what workers can split, and DataFrames."""
    return isinstance(source, FrameSource) or ingest.readable(source)


def document_of(source: Source, direct: ExecutorSource) -> Document:
    """How the lines of a source that Spark can read are read."""
    if source is direct.source:
        return direct.document()
    if isinstance(source, FrameSource):
        return Document(source.uri, source.stream, source.format)
    return ingest.document_of(source)


def lines(spark: SparkSession, inputs: Inputs, spool: Spool | None) -> DataFrame:
    """The lines of all sources as they come, with the places that they are from and the number of their source."""
    numbered = enumerate(zip(inputs.documents, inputs.sources, strict=True))
    frames = (
        _numbered(_streamed(spark, document, source, inputs, spool), number) for number, (document, source) in numbered
    )
    return reduce(lambda one, other: one.union(other), frames)


def frame_lines(inputs: Inputs) -> Iterator[DataFrame]:
    """The lines of DataFrames, all that there are, alike."""
    for number, source in enumerate(inputs.sources):
        if isinstance(source, FrameSource):
            yield _numbered(source.lines(), number)


def file_tasks(spark: SparkSession, inputs: Inputs) -> list[list[Part]]:
    """What the tasks that read files by themselves read, each, where all there is is read at once: nothing but names
    passes Java. Nothing where no source has files."""
    numbered = enumerate(zip(inputs.documents, inputs.sources, strict=True))
    files = [(number, _files(document, source)) for number, (document, source) in numbered]
    paths = [(number, path) for number, paths_of_source in files for path in paths_of_source or ()]
    return shared(spark, paths) if any(paths_of_source is not None for _, paths_of_source in files) else []


def micro_batch_input(frame: DataFrame, inputs: Inputs) -> tuple[BatchInput, Callable[[], str | None]]:
    """What has come with a micro-batch; and what tells, when it has been worked off, which file of the spool was the
    last one (None: none was)."""
    spool = len(inputs.documents) - 1 if inputs.spooled else -1
    parts = scanned(frame, inputs)
    if parts is not None:
        files = [path for number, path, *_ in chain.from_iterable(parts) if number == spool]
        return BatchInput(parts), lambda: max(files, default=None)
    if not inputs.spooled:
        return BatchInput(texts=[frame]), lambda: None
    observed, last = last_file(frame, spool)
    return BatchInput(texts=[observed]), last


def scanned(frame: DataFrame, inputs: Inputs) -> list[list[Part]] | None:
    """The parts of files that a micro-batch is of, as Spark has cut them for its tasks, so that workers read them by
    themselves here as well. None where lines have to come from Spark: of other sources, of a file that is of two
    sources, of so many files that asking for them takes longer than it saves, or if it cannot be seen what they are
    of."""
    plan = cast(Any, frame)._jdf.queryExecution().logical()
    files = all(source is None or isinstance(source, FileSource | FolderSource) for source in inputs.sources)
    if not files or not _is(plan, "LogicalRDD"):
        return None
    task_parts: list[list[Part]] = []
    for leaf in _leaves(plan.rdd()):
        parts = _spooled_parts(leaf, len(inputs.documents) - 1)
        if parts is None:
            parts = _file_parts(leaf, inputs.documents)
        if parts is None:
            return None
        task_parts += parts
    return task_parts or None


def _file_parts(leaf: Any, documents: Sequence[Document]) -> list[list[Part]] | None:
    """The parts of files that an RDD is of; None: it is of something else."""
    if not _is(leaf, "FileScanRDD"):
        return None
    task_parts: list[list[Part]] = []
    listed = 0
    for files in (partition.files() for partition in _each(leaf.filePartitions())):
        listed += len(files)
        parts = (_part(file, documents) for file in files) if listed <= _MAX_LISTED_PARTS else ()
        task_parts.append([part for part in parts if part is not None])
        if len(task_parts[-1]) != len(files):
            return None
    return task_parts


def _spooled_parts(leaf: Any, number: int) -> list[list[Part]] | None:
    """The parts of the spool's files, which is the source of a number, that an RDD is of; None: it is of something
    else, or Spark is of a version that hides it."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    if not _is(leaf, "DataSourceRDD"):
        return None
    try:
        picked = [one.inputPartition().get().pickedPartition() for one in leaf.partitions()]
    except Py4JError:
        return None
    return [[(number, *place) for _, *place in pickle.loads(bytes(share)).value] for share in picked]


def _is(object: Any, name: str) -> bool:
    """Whether something of Java's is of this class."""
    return bool(object.getClass().getSimpleName() == name)


def _each(sequence: Any) -> Iterator[Any]:
    """The members of a sequence of Scala's."""
    return (sequence.apply(place) for place in range(sequence.size()))


def _leaves(rdd: Any) -> Iterator[Any]:
    """What an RDD is made of that is made of nothing else."""
    dependencies = list(_each(rdd.dependencies()))
    if not dependencies:
        yield rdd
    for dependency in dependencies:
        yield from _leaves(dependency.rdd())


def _part(file: Any, documents: Sequence[Document]) -> Part | None:
    """A part of a file; None: it is not that of one source."""
    path = Path(unquote(urlsplit(file.filePath().toString()).path))
    begin, end = file.start(), file.start() + file.length()
    places = [(path.parent if document.folder else path) == Path(document.name).absolute() for document in documents]
    return (places.index(True), str(path), begin, -1 if end >= file.fileSize() else end) if sum(places) == 1 else None


def shared(spark: SparkSession, paths: Iterable[tuple[int, str]]) -> list[list[Part]]:
    """Files, each of the source of a number, as what tasks are to read."""
    return shares([(number, path, Path(path).stat().st_size) for number, path in paths], *_cutting(spark))


def _cutting(spark: SparkSession) -> tuple[int, int, int]:
    """How many tasks there are to be, and of how many bytes at least and at most: as Spark cuts files, by its
    settings."""
    conf = cast(Any, spark)._jsparkSession.sessionState().conf()
    return spark.sparkContext.defaultParallelism, conf.filesOpenCostInBytes(), conf.filesMaxPartitionBytes()


def _files(document: Document, source: Source | None) -> Sequence[str] | None:
    """The paths of its files; None: it has none."""
    if source is None:
        return [str(file_of(document.name, number)) for number in numbers(document.name)]
    if isinstance(source, FileSource | FolderSource):
        return [str(Path(path).absolute()) for path in source.files()]
    return None


def heads(inputs: Inputs) -> Iterator[Sequence[Event]]:
    """What is at the beginning of each source that has a file already: what streams bring, as far as can be seen."""
    for document, source in zip(inputs.documents, inputs.sources, strict=True):
        if paths := _files(document, source):
            yield parsed(document, str(paths[0]), 0, 0, _head(str(paths[0])), None)[0]


def _head(path: str) -> bytes:
    """The first whole lines of a file; none where it cannot be read, which comes up where the run reads it."""
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            return file.read(_HEAD).rpartition(b"\n")[0]
    except (OSError, EOFError, zlib.error):
        return b""


def _numbered(text: DataFrame, number: int) -> DataFrame:
    return text.selectExpr("*", f"{number} as source")


def _streamed(
    spark: SparkSession, document: Document, source: Source | None, inputs: Inputs, spool: Spool | None
) -> DataFrame:
    if source is None:
        assert spool is not None
        return _spooled(spark, spool, inputs.most)
    if source is inputs.direct.source:
        return inputs.direct.lines(spark)
    if isinstance(source, FrameSource):
        return source.lines()
    return _file_lines(spark, document, inputs.most)


def _spooled(spark: SparkSession, spool: Spool, most: int) -> DataFrame:
    from squall.builders.spark.spool_source import SpoolSource

    spark.dataSource.register(SpoolSource)
    tasks, least, share = _cutting(spark)
    reader = spark.readStream.format(SpoolSource.name())
    reader = reader.options(last=spool.number, most=most, tasks=tasks, least=least, share=share)
    return reader.load(str(spool.files))


def _file_lines(spark: SparkSession, document: Document, most: int) -> DataFrame:
    """The lines of a file or folder. (Spark streams folders only: a file is one by a filter on names.)"""
    reader = spark.readStream.format("text")
    if most:
        reader = reader.option("maxFilesPerTrigger", most)
    text = reader.load(_glob(Path(document.name).absolute(), document.folder))
    return text.selectExpr("value", "_metadata.file_path as file", "_metadata.file_block_start as block")


def _glob(path: Path, folder: bool) -> str:
    """The pattern that names a folder's files, or one file: as a pattern, since Spark takes a plain path for a folder;
    its first and last character in brackets, since Spark passes over names that begin with ``_`` or ``.``."""
    escaped = [pattern_of(part) for part in path.parts]
    if not folder:
        name = path.name
        escaped[-1] = f"[{name[0]}]{escaped[-1][1:-1]}[{name[-1]}]"
    return "file:" + "/".join(["", *escaped[1:]])


def last_file(text: DataFrame, number: int) -> tuple[DataFrame, Callable[[], str | None]]:
    """The lines, and what tells when they have been read which file of a source, the last by name, any of them is from
    (None: none is)."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    file = f.max(f.when(f.col("source") == number, f.col("file")))
    return text.observe(observation, file.alias("last")), lambda: observation.get["last"]
