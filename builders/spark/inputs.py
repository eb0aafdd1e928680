"""The input of a run on Spark: sources that Spark can read, as lines with their positions."""

from __future__ import annotations

import gzip
import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from squall.builders.distributed.io import ingest
from squall.builders.distributed.io.parsing import Document, parse_block
from squall.builders.distributed.io.records import WorkerRecord
from squall.builders.distributed.io.splits import Split, pack_splits, split_bytes
from squall.builders.spark.executor_sources import ExecutorSource
from squall.builders.spark.settings import DEFAULT_TUNING, SparkTuning
from squall.builders.spark.sources import FrameSource
from squall.builders.spark.spool import Spool, file_of, numbers
from squall.builders.spark.store import pattern_of
from squall.rdf import Event
from squall.streams import FileSource, FolderSource, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_HEAD = 1 << 18
"""The number of bytes at the beginning of a file that are sampled to see which facts a stream carries."""


class Inputs(NamedTuple):
    """The input of a run.

    Attributes:
        documents: how to parse the lines of each streaming source, by number.
        sources: the sources whose statements are counted, in the same order; None: the driver counts them.
        live: whether more input may arrive.
        endless: whether it never ends by itself.
        direct: the source that executors read.
        spooled: whether the last document is what the driver spools.
        most: the most new files of a micro-batch; 0: no limit.
    """

    documents: tuple[Document, ...]
    sources: tuple[Source | None, ...]
    live: bool
    endless: bool
    direct: ExecutorSource = ExecutorSource()
    spooled: bool = False
    most: int = 0


class BatchInput(NamedTuple):
    """The input of one batch.

    Attributes:
        parts: splits of files, by the task that reads them.
        texts: lines that come by way of Spark.
        first: the records that start the plan, in the initial batch.
    """

    parts: Sequence[Sequence[Split]] = ()
    texts: Sequence[DataFrame] = ()
    first: Sequence[WorkerRecord] = ()


class Head(NamedTuple):
    """The beginning of a file, as a sample of the input.

    Attributes:
        events: the events.
        share: the share that they are of the input of their source.
    """

    events: Sequence[Event]
    share: float


def readable(source: Source) -> bool:
    """Returns whether Spark can read a source: files that workers can split, and DataFrames."""
    return isinstance(source, FrameSource) or ingest.is_readable_by_workers(source)


def document_of(source: Source, direct: ExecutorSource) -> Document:
    """Returns how to parse the lines of a source that Spark can read."""
    if source is direct.source:
        return direct.document()
    if isinstance(source, FrameSource):
        return Document(source.uri, source.stream, source.format)
    return ingest.document_of(source)


def lines(spark: SparkSession, inputs: Inputs, spool: Spool | None) -> DataFrame:
    """Returns the lines of all sources as a stream, with their positions and the number of their source."""
    numbered = enumerate(zip(inputs.documents, inputs.sources, strict=True))
    frames = (
        _numbered(_streamed(spark, document, source, inputs, spool), number) for number, (document, source) in numbered
    )
    return reduce(lambda lines_read, other: lines_read.union(other), frames)


def frame_lines(inputs: Inputs) -> Iterator[DataFrame]:
    """Yields the lines of batch DataFrames, in the same columns."""
    for number, source in enumerate(inputs.sources):
        if isinstance(source, FrameSource):
            yield _numbered(source.lines(), number)


def file_tasks(spark: SparkSession, inputs: Inputs) -> list[list[Split]]:
    """Returns the file splits of each task, for a run that reads all files at once. Only names pass through Java. The
    list is empty if no source has files."""
    numbered = enumerate(zip(inputs.documents, inputs.sources, strict=True))
    files = [(number, _files(document, source)) for number, (document, source) in numbered]
    paths = [(number, path) for number, paths_of_source in files for path in paths_of_source or ()]
    return shared(spark, paths) if any(paths_of_source is not None for _, paths_of_source in files) else []


def micro_batch_input(
    frame: DataFrame, inputs: Inputs, tuning: SparkTuning = DEFAULT_TUNING
) -> tuple[BatchInput, Callable[[], str | None]]:
    """Returns the input of a micro-batch, and a function that returns, once it is processed, the last spool file in it
    (None: there is none)."""
    spool = len(inputs.documents) - 1 if inputs.spooled else -1
    parts = scanned(frame, inputs, tuning.max_listed_splits)
    if parts is not None:
        files = [path for number, path, *_ in chain.from_iterable(parts) if number == spool]
        return BatchInput(parts), lambda: max(files, default=None)
    if not inputs.spooled:
        return BatchInput(texts=[frame]), lambda: None
    observed, last = last_file(frame, spool)
    return BatchInput(texts=[observed]), last


def scanned(frame: DataFrame, inputs: Inputs, max_splits: int) -> list[list[Split]] | None:
    """Returns the file splits of a micro-batch as Spark has assigned them to tasks, so that workers read the files
    themselves.

    It returns None where the lines have to come from Spark: there are other sources than files, a file belongs to two
    sources, there are more than `max_splits` splits, so that listing them takes longer than it saves, or the splits
    cannot be seen.
    """
    plan = cast(Any, frame)._jdf.queryExecution().logical()
    files = all(source is None or isinstance(source, FileSource | FolderSource) for source in inputs.sources)
    if not files or not _is(plan, "LogicalRDD"):
        return None
    task_parts: list[list[Split]] = []
    for leaf in _leaves(plan.rdd()):
        parts = _spooled_parts(leaf, len(inputs.documents) - 1)
        if parts is None:
            parts = _file_parts(leaf, inputs.documents, max_splits)
        if parts is None:
            return None
        task_parts += parts
    return task_parts or None


def _file_parts(leaf: Any, documents: Sequence[Document], max_splits: int) -> list[list[Split]] | None:
    """Returns the file splits of an RDD by task; None: it is no scan of files."""
    if not _is(leaf, "FileScanRDD"):
        return None
    task_parts: list[list[Split]] = []
    file_count = 0
    for files in (partition.files() for partition in _each(leaf.filePartitions())):
        file_count += len(files)
        parts = (_part(file, documents) for file in files) if file_count <= max_splits else ()
        task_parts.append([part for part in parts if part is not None])
        if len(task_parts[-1]) != len(files):
            return None
    return task_parts


def _spooled_parts(leaf: Any, number: int) -> list[list[Split]] | None:
    """Returns the splits of spool files (source `number`) of an RDD by task; None: it is something else, or this
    version of Spark hides them."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    if not _is(leaf, "DataSourceRDD"):
        return None
    try:
        picked = [partition.inputPartition().get().pickedPartition() for partition in leaf.partitions()]
    except Py4JError:
        return None
    return [[(number, *place) for _, *place in pickle.loads(bytes(share)).value] for share in picked]


def _is(object: Any, name: str) -> bool:
    """Returns whether a Java object is of this class."""
    return bool(object.getClass().getSimpleName() == name)


def _each(sequence: Any) -> Iterator[Any]:
    """Yields the members of a Scala sequence."""
    return (sequence.apply(place) for place in range(sequence.size()))


def _leaves(rdd: Any) -> Iterator[Any]:
    """Yields the RDDs without dependencies from which an RDD is computed."""
    dependencies = list(_each(rdd.dependencies()))
    if not dependencies:
        yield rdd
    for dependency in dependencies:
        yield from _leaves(dependency.rdd())


def _part(file: Any, documents: Sequence[Document]) -> Split | None:
    """Returns a split of a file; None: the file does not belong to exactly one source."""
    path = Path(unquote(urlsplit(file.filePath().toString()).path))
    begin, end = file.start(), file.start() + file.length()
    places = [(path.parent if document.folder else path) == Path(document.name).absolute() for document in documents]
    return (places.index(True), str(path), begin, -1 if end >= file.fileSize() else end) if sum(places) == 1 else None


def shared(spark: SparkSession, paths: Iterable[tuple[int, str]]) -> list[list[Split]]:
    """Assigns files, each of a source number, to tasks."""
    return pack_splits([(number, path, Path(path).stat().st_size) for number, path in paths], *_cutting(spark))


def _cutting(spark: SparkSession) -> tuple[int, int, int]:
    """Returns the number of tasks, and the least and the most bytes of one, by the settings with which Spark splits
    files."""
    conf = cast(Any, spark)._jsparkSession.sessionState().conf()
    return spark.sparkContext.defaultParallelism, conf.filesOpenCostInBytes(), conf.filesMaxPartitionBytes()


def _files(document: Document, source: Source | None) -> Sequence[str] | None:
    """Returns the paths of a source's files; None: it has none."""
    if source is None:
        return [str(file_of(document.name, number)) for number in numbers(document.name)]
    if isinstance(source, FileSource | FolderSource):
        return [str(Path(path).absolute()) for path in source.files()]
    return None


def heads(inputs: Inputs) -> Iterator[Head]:
    """Yields the beginning of each source that has files, as a sample of its stream."""
    for document, source in zip(inputs.documents, inputs.sources, strict=True):
        if paths := _files(document, source):
            total = sum(split_bytes((0, path, 0, -1)) for path in paths)
            yield _head_of(document, str(paths[0]), total)


def batch_heads(documents: Sequence[Document], parts: Sequence[Split]) -> Iterator[Head]:
    """Yields the beginning of a file of each source of a batch.

    Args:
        documents: the documents of all sources, by number.
        parts: the splits of the batch. A source of which no file begins with the batch is left out.
    """
    paths: dict[int, list[str]] = {}
    totals: Counter[int] = Counter()
    for number, path, begin, end in parts:
        totals[number] += split_bytes((number, path, begin, end))
        if not begin:
            paths.setdefault(number, []).append(path)
    for number, paths_of_source in paths.items():
        middle = paths_of_source[len(paths_of_source) // 2]
        yield _head_of(documents[number], middle, totals[number])


def _head_of(document: Document, path: str, total: int) -> Head:
    """Returns the beginning of a file. total: the bytes of the input that it stands for."""
    text = _head(path)
    return Head(parse_block(document, path, 0, 0, text, None)[0], min(len(text) / total, 1.0) if total else 1.0)


def _head(path: str) -> bytes:
    """Returns the first complete lines of a file; none where it cannot be read: the run reports that error when it
    reads the file."""
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
    """Returns the lines of a file or folder. (Spark streams only folders; a filter on names makes one a file.)"""
    reader = spark.readStream.format("text")
    if most:
        reader = reader.option("maxFilesPerTrigger", most)
    text = reader.load(_glob(Path(document.name).absolute(), document.folder))
    return text.selectExpr("value", "_metadata.file_path as file", "_metadata.file_block_start as block")


def _glob(path: Path, folder: bool) -> str:
    """Returns the glob pattern of a folder's files, or of one file.

    It is a pattern because Spark takes a plain path for a folder. The first and last character of a file's name are in
    brackets, because Spark ignores names that begin with ``_`` or ``.``.
    """
    escaped = [pattern_of(part) for part in path.parts]
    if not folder:
        name = path.name
        escaped[-1] = f"[{name[0]}]{escaped[-1][1:-1]}[{name[-1]}]"
    return "file:" + "/".join(["", *escaped[1:]])


def last_file(text: DataFrame, number: int) -> tuple[DataFrame, Callable[[], str | None]]:
    """Returns the lines, and a function that returns, once they are read, the last file by name of a source among them
    (None: there is none)."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    file = f.max(f.when(f.col("source") == number, f.col("file")))
    return text.observe(observation, file.alias("last")), lambda: observation.get["last"]
