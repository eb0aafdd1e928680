"""The Spark builder: runs a plan as a PySpark Structured Streaming job (docs/spark.md; decision 0005).

Spark splits the sources, shuffles by the plan's grouping columns, tracks offsets, checkpoints and stores; rows are
worked by the same operators as everywhere (`squall.builders.rows`), over Arrow, in its Python workers. A micro-batch is
a chain of bounded jobs (`squall.builders.supersteps`) whose messages are Parquet under the checkpoint, a folder per
batch, so that a batch that was cut off is done again from the start, with the same outcome.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import squall
from squall import functions
from squall.builders import java
from squall.builders.alone import SingleTask, alone
from squall.builders.cut import describe, levels
from squall.builders.exchange import SparkExchange
from squall.builders.store import Store
from squall.builders.supersteps import Batches
from squall.builders.worker import (
    BUCKETS,
    ROW,
    SCHEMA,
    Document,
    Failed,
    Lost,
    Program,
    late,
    lines_parser,
    spool_lines,
)
from squall.clock import beginning
from squall.errors import BuilderError
from squall.operators import is_stateful
from squall.plan import Plan
from squall.rdf import ALWAYS, Event
from squall.stages import Options, Output, Rewindable
from squall.streams import FileSource, FolderSource, Source, Sources
from squall.streams.formats import of_path, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger("squall")

FILES_PER_BATCH = "spark.squall.maxFilesPerTrigger"
"""The setting that says how many new files of a folder go into one micro-batch at most; without it, all do."""
ROWS_TOGETHER = "spark.squall.singleTaskRows"
"""The setting that says up to how many rows, the batch's and the state's, a micro-batch is worked off by one task:
where there is so little, moving it about in rounds takes longer than doing it. 0: never; 50,000 if it is not set."""
SPOOL_SECONDS = 0.2
"""For how long a live stream's events are gathered into one file, at most."""
LOG4J = Path(__file__).with_name("log4j2.properties")
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG4J.as_uri()}",
}
"""Our settings for a session of our own; a session that is there already is left as it is."""


def build(plan: Plan, options: Options) -> SparkJob:
    """The plan as a job on the active Spark session, or on one of our own with `options.conf`.

    Raises BuilderError where the checkpoint is that of another plan. Spark is not started yet.
    """
    if options.checkpoint is not None:
        _check_owner(plan, options.checkpoint)
    return SparkJob(plan, options)


META, BEGIN = "meta.json", "begin.json"


def _meaning(plan: Plan) -> dict[str, object]:
    """What a checkpoint belongs to."""
    return {"plan": hashlib.sha256(repr(plan.nodes).encode()).hexdigest(), "buckets": BUCKETS}


def _check_owner(plan: Plan, checkpoint: Path) -> None:
    meta = checkpoint / META
    if meta.is_file() and json.loads(meta.read_text()) != _meaning(plan):
        raise BuilderError(
            f"the checkpoint `{checkpoint}` is that of another program, or of another planner's plan",
            hint="a plan that has changed starts from a new checkpoint: name another folder, or remove this one",
        )


def session(conf: Sequence[tuple[str, str]] = ()) -> SparkSession:
    """The active session, or a new one: on a master of ``local[*]`` with `DEFAULTS`, over which `conf` wins; started by
    ``spark-submit``, which says all that itself, with `conf` alone."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        if conf:
            logger.warning("the Spark session is there already: settings for it are not taken up")
        return active
    java.ensure()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _let_workers_import_squall()
    builder = SparkSession.builder.appName("squall")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    for name, value in {**({} if submitted else DEFAULTS), **dict(conf)}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _let_workers_import_squall() -> None:
    """Python workers find this package where this process found it, also in a checkout that is not installed."""
    root = str(Path(squall.__file__).parent.parent)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, known)])


class SparkJob:
    """A plan at work on Spark; `run` may be called once for a checkpoint at a time."""

    def __init__(self, plan: Plan, options: Options) -> None:
        self.plan = plan
        self.options = options

    def describe(self) -> str:
        """The job as text: levels, stages, and what moves rows; or why there is one task."""
        why = alone(self.plan)
        if why is None:
            return describe(self.plan)
        nodes = sum(is_stateful(node.op) for node in self.plan.nodes)
        return f"a single task of {nodes} nodes that keep rows, in the order of time: {why.node.id} {why.what}"

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.stages.Job.run`.

        A list of batches, and `Sources` none of which is live, are worked off as far as they go; anything else is
        worked as it comes.
        """
        try:
            yield from self._outputs(batches, static)
        except Exception as error:
            if (failed := Failed.found(error)) is None:
                raise
            raise failed from None

    def _outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        spark = session(self.options.conf)
        begin = beginning(batches) if self.options.now is None else self.options.now
        if self.options.checkpoint is not None:
            yield from _Run(self.plan, self.options, spark, self.options.checkpoint, begin).outputs(batches, static)
            return
        with tempfile.TemporaryDirectory(prefix="squall-") as folder:
            yield from _Run(self.plan, self.options, spark, Path(folder), begin).outputs(batches, static)


class _Run:
    """One run of a job: the driver's side."""

    def __init__(self, plan: Plan, options: Options, spark: SparkSession, folder: Path, begin: int) -> None:
        self.options = options
        self.spark = spark
        self.store = Store(spark._jvm, spark._jsc.hadoopConfiguration(), folder.absolute().as_uri())
        self.store.write(_meaning(plan), META)
        if self.store.read(BEGIN) is None:
            self.store.write(begin, BEGIN)
        self.program = Program(plan, levels(plan), functions.own(), self.store.read(BEGIN))
        together = int(spark.conf.get(ROWS_TOGETHER, "50000") or 0)
        self.exchange = SparkExchange(spark, self.store)
        self.batches: Batches | SingleTask
        if alone(plan):
            self.batches = SingleTask(self.exchange, self.store, self.program, options.steps)
        else:
            self.batches = Batches(self.exchange, self.store, self.program, together)
        self.spool = folder.absolute() / "spool"
        self.waiting: queue.Queue[Output | threading.Event | None] = queue.Queue(maxsize=10_000)
        self.failure: BaseException | None = None
        self.abandoned = False

    # The run

    def outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """All outputs of the run, batch by batch."""
        inputs = self._inputs(batches)
        if self._is_one_batch(inputs):
            read = self._read(inputs) if inputs.documents else None
            yield from self._directly(self.exchange.union([self._start(static), read]), inputs.sources, last=True)
            return
        if self.batches.done == 0:
            yield from self._directly(self._start(static))
        if inputs.documents:
            yield from self._stream(inputs)
        if self.batches.unfinished:
            yield from self._directly(None, last=True)

    def _is_one_batch(self, inputs: _Inputs) -> bool:
        """Whether all there is can be worked off at once: it ends, and nothing is to be done with it later."""
        return self.options.checkpoint is None and not inputs.live and not self.spark.conf.get(FILES_PER_BATCH, "")

    def _directly(
        self, messages: DataFrame | None, sources: Sequence[Source | None] = (), last: bool = False
    ) -> Iterator[Output]:
        """A batch outside the stream: what holds always, what is left at the end, or all there is."""
        yield from self._batch(messages, sources, last)
        self._commit(None)

    def _batch(
        self, messages: DataFrame | None, sources: Sequence[Source | None], last: bool = False
    ) -> Iterator[Output]:
        """The outputs of a batch, its losses told, the sink cut back to where it began if it is done for a second
        time."""
        self._mark()
        outputs = self.batches.work(messages, last)
        first = next(outputs, None)
        for lost in self.batches.losses():
            self._lose(lost)
        for number, count in self.batches.told.counts:
            if sources and (source := sources[number]) is not None:
                source.reading.statements += count
        if first is not None:
            yield first
            yield from outputs

    def _mark(self) -> None:
        """Notes where sink and ledger end before the batch, or cuts them back to there."""
        files = self._files()
        name = f"{self.batches.done}.json"
        known = self.store.read("marks", name)
        if known is None:
            self.store.write({kind: file.mark() for kind, file in files.items()}, "marks", name)
        else:
            for kind, file in files.items():
                if kind in known:
                    file.rewind(known[kind])

    def _files(self) -> dict[str, Rewindable]:
        found = {"sink": self.options.sink, "ledger": self.options.ledger}
        return {kind: file for kind, file in found.items() if isinstance(file, Rewindable)}

    def _commit(self, number: int | None) -> None:
        """The outputs have been taken: they are made to last before the batch counts."""
        for file in self._files().values():
            file.mark()
        self.batches.commit(number)

    def _lose(self, lost: Lost) -> None:
        if self.options.ledger is None:
            place = f"{lost.source}:{lost.line}" if lost.line else lost.source
            raise BuilderError(f"{lost.cause}: {place}: {lost.reason}", hint="give a `ledger` to keep what is lost")
        line = _line(lost)
        self.options.ledger.record(lost.cause, lost.source, line, lost.reason, lost.text)

    def _start(self, static: Iterable[Event]) -> DataFrame | None:
        """The messages of axioms and static data, if there are any."""
        first = self.batches.first()
        made = self.spark.createDataFrame(first, SCHEMA) if first else None
        written = _spool(self.spool / "static", ([event] for event in static), "static", ALWAYS)
        if not written:
            return made
        lines = _lines(self.spark.read.format("text").load((self.spool / "static").as_uri()), 0)
        step = self.batches.reading(lines_parser((Document("static", spooled=True),)))
        read = lines.mapInArrow(step, SCHEMA).where(f"kind = '{ROW}'")
        return made.union(read) if made is not None else read

    # Sources

    def _read(self, inputs: _Inputs) -> DataFrame:
        """The messages of all that the sources have."""
        texts = (self.spark.read.format("text").load(_pattern(document)) for document in inputs.documents)
        return self._messages(_united(texts), inputs)

    def _messages(self, lines: DataFrame, inputs: _Inputs) -> DataFrame:
        """The messages of lines."""
        step = self.batches.reading(lines_parser(inputs.documents))
        return lines.mapInArrow(step, SCHEMA)

    def _inputs(self, batches: Iterable[Sequence[Event]]) -> _Inputs:
        """What Spark reads by itself is left to it; all else is spooled: now if it ends, else while the query runs."""
        sources = batches.sources if isinstance(batches, Sources) else ()
        own = [source for source in sources if _readable(source)]
        others = [source for source in sources if not _readable(source)]
        documents = [_document(source) for source in own]
        rest: Iterable[Sequence[Event]] | None = batches
        if isinstance(batches, Sources):
            rest = Sources(others, batches.clock, batches.heartbeat) if others else None
        live = any(source.live for source in sources) if sources else not isinstance(batches, list)
        if rest is not None:
            documents.append(Document(str(self.spool / "events"), folder=True, spooled=True))
            self._spool(self._timely(rest), live)
        return _Inputs(tuple(documents), (*own, None), live, any(source.live for source in own))

    def _timely(self, batches: Iterable[Sequence[Event]]) -> Iterator[Sequence[Event]]:
        """The batches without what comes after something later. (Of what Spark reads by itself the order is not known:
        there an event is late if it is earlier than a batch before its own.)"""
        latest = ALWAYS
        for batch in batches:
            timely = []
            for event in batch:
                if event.time < latest:
                    for fact in (*event.facts, *event.removed):
                        self._lose(late(event.stream, event.time, fact))
                else:
                    latest = event.time
                    timely.append(event)
            yield timely

    def _spool(self, batches: Iterable[Sequence[Event]], live: bool) -> None:
        folder = self.spool / "events"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns()}"
        if not live:
            _spool(folder, batches, name)
            return
        arriving: queue.Queue[Sequence[Event] | None] = queue.Queue(maxsize=10_000)
        threading.Thread(target=self._listen, args=(batches, arriving), daemon=True).start()
        self.spooler = threading.Thread(target=self._spool_live, args=(folder, arriving, name), daemon=True)
        self.spooler.start()

    def _listen(self, batches: Iterable[Sequence[Event]], arriving: queue.Queue[Sequence[Event] | None]) -> None:
        """Takes batches as they come, in a thread of its own: nobody knows when the next one does."""
        try:
            for batch in batches:
                arriving.put(batch)
        except BaseException as error:  # given to the thread that takes the outputs
            self.failure = self.failure or error
        arriving.put(None)

    def _spool_live(self, folder: Path, arriving: queue.Queue[Sequence[Event] | None], name: str) -> None:
        """Writes what has arrived as files, each of what came within `SPOOL_SECONDS` of its first batch."""
        number, ended = 0, False
        try:
            while not ended and (first := arriving.get()) is not None:
                together, ended = _gather(arriving, first)
                _spool(folder, together, f"{name}-{number:09d}")
                number += 1
        except BaseException as error:  # given to the thread that takes the outputs
            self.failure = self.failure or error

    # The query

    def _stream(self, inputs: _Inputs) -> Iterator[Output]:
        """The outputs of the streaming query. It runs in threads of its own and waits for whoever takes them."""
        query = self._query(inputs)
        watcher = threading.Thread(target=self._watch, args=(query, inputs), daemon=True)
        watcher.start()
        try:
            while (item := self.waiting.get()) is not None:
                if isinstance(item, threading.Event):
                    item.set()
                else:
                    yield item
        finally:
            self._end(query, watcher)
        if self.failure is not None:
            raise self.failure

    def _end(self, query: StreamingQuery, watcher: threading.Thread) -> None:
        """Lets a batch in work fail, if the run is abandoned, and stops the query."""
        self.abandoned = True
        while watcher.is_alive():
            with suppress(queue.Empty):
                item = self.waiting.get(timeout=0.1)
                if isinstance(item, threading.Event):
                    item.set()
            if not query.isActive or not query.status["isTriggerActive"]:
                query.stop()
        query.stop()

    def _query(self, inputs: _Inputs) -> StreamingQuery:
        lines = _united(_text_stream(self.spark, document) for document in inputs.documents)
        writer = lines.writeStream.foreachBatch(lambda frame, number: self._on_batch(frame, number, inputs))
        writer = writer.option("checkpointLocation", self.store.uri("spark"))
        return (writer if inputs.live else writer.trigger(availableNow=True)).start()

    def _watch(self, query: StreamingQuery, inputs: _Inputs) -> None:
        """Says when there is nothing more to come."""
        try:
            if inputs.live and not inputs.endless:
                self.spooler.join()
                query.processAllAvailable()
            else:
                query.awaitTermination()
        except Exception as error:  # given to the thread that takes the outputs
            self.failure = self.failure or error
        self.waiting.put(None)

    def _on_batch(self, frame: DataFrame, number: int, inputs: _Inputs) -> None:
        """Works off one micro-batch; called by Spark, in a thread of its own."""
        if number <= self.batches.progress.number:  # done, but Spark was killed before it could write that down
            return
        try:
            self.exchange.spark = frame.sparkSession
            for output in self._batch(self._messages(frame, inputs), inputs.sources):
                self._hand_over(output)
            taken = threading.Event()
            self._hand_over(taken)
            taken.wait()
            if self.abandoned:  # they were let go, not taken: the batch has to be done again
                raise RuntimeError("the run was abandoned")
            self._commit(number)
        except BaseException as error:
            self.failure = self.failure or error
            raise

    def _hand_over(self, item: Output | threading.Event) -> None:
        if self.abandoned:
            raise RuntimeError("the run was abandoned")
        self.waiting.put(item)


class _Inputs(NamedTuple):
    """What a run reads. documents: of the lines of each streaming source, by number; sources: those to count for,
    alike.

    live: more may come; endless: and it never ends by itself."""

    documents: tuple[Document, ...]
    sources: tuple[Source | None, ...]
    live: bool
    endless: bool


def _gather(
    arriving: queue.Queue[Sequence[Event] | None], first: Sequence[Event]
) -> tuple[list[Sequence[Event]], bool]:
    """The first batch, what comes soon after it, and whether that was the end."""
    together, limit = [first], time.monotonic() + SPOOL_SECONDS
    while (left := limit - time.monotonic()) > 0:
        try:
            batch = arriving.get(timeout=left)
        except queue.Empty:
            break
        if batch is None:
            return together, True
        together.append(batch)
    return together, False


def _readable(source: Source) -> bool:
    """Whether Spark can read a source by itself: files of lines, which it can split."""
    if isinstance(source, FileSource):
        by_ending = of_path(source.path)
        compression_shows = source.compressed == source.path.endswith(".gz")
        return source.format.lines and not source.live and compression_shows and by_ending is not None
    if isinstance(source, FolderSource):
        return all(told(path, source.settings.format)[0].lines for path in source.files())
    return False


def _document(source: Source) -> Document:
    assert isinstance(source, FileSource | FolderSource)
    settings = source.settings
    return Document(source.path, settings.stream, settings.format, settings.time, isinstance(source, FolderSource))


def _text_stream(spark: SparkSession, document: Document) -> DataFrame:
    """The lines of a file or folder as a stream. (Spark streams folders only: a file is one by a filter on names.)"""
    reader = spark.readStream.format("text")
    if files := spark.conf.get(FILES_PER_BATCH, ""):
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.load(_pattern(document))


def _pattern(document: Document) -> str:
    return _glob(Path(document.name).absolute(), document.folder)


def _united(texts: Iterable[DataFrame]) -> DataFrame:
    """The lines of several sources."""
    lines = [_lines(text, number) for number, text in enumerate(texts)]
    return reduce(lambda one, other: one.union(other), lines)


def _glob(path: Path, folder: bool) -> str:
    """The pattern that names a folder's files, or one file: as a pattern, since Spark takes a plain path for a folder;
    its first and last character in brackets, since Spark passes over names that begin with ``_`` or ``.``."""
    escaped = ["".join(f"\\{c}" if c in "*?[]{}\\^" else c for c in part) for part in path.parts]
    if not folder:
        name = path.name
        escaped[-1] = f"[{name[0]}]{escaped[-1][1:-1]}[{name[-1]}]"
    return "file:" + "/".join(["", *escaped[1:]])


def _lines(text: DataFrame, number: int) -> DataFrame:
    """Lines with the place that they are from, and the number of their source."""
    return text.selectExpr(
        "value", "_metadata.file_path as file", "_metadata.file_block_start as block", f"{number} as source"
    )


def _line(lost: Lost) -> int | None:
    """The number of a lost statement's line in its file, from 1. A later block of a file begins behind the line that
    its first byte lies in."""
    if not lost.line or not lost.block:
        return lost.line or None
    with open(lost.source, "rb") as file:
        before = file.read(lost.block).count(b"\n")
    return before + 1 + lost.line


def _spool(folder: Path, batches: Iterable[Sequence[Event]], name: str, time: int | None = None) -> bool:
    """Writes events as a file of lines that workers read back; complete before it has its name. Whether there are
    any."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"_{name}"
    with draft.open("w", encoding="utf-8") as file:
        for batch in batches:
            for event in batch:
                placed = event if time is None else event._replace(time=time)
                file.writelines(f"{line}\n" for line in spool_lines(placed))
    if not draft.stat().st_size:
        draft.unlink()
        return False
    draft.rename(folder / f"{name}.json")
    return True
