"""One run of a job on Spark, from the driver's side: its input, its micro-batches, and its output."""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from squall import functions
from squall.builders.distributed.exec.logged_batches import LoggedBatches
from squall.builders.distributed.exec.micro_batch import batches_of
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io.ingest import check_clock, is_live, record_dead_letter
from squall.builders.distributed.io.parsing import Document, lines_parser, spool_lines
from squall.builders.distributed.io.records import SourceCount
from squall.builders.distributed.io.splits import fixed_splits_parser, split_bytes, splits_parser
from squall.builders.distributed.plan.broadcast import (
    choose_broadcast,
    closure_inputs,
    general_inputs,
    vocabulary_inputs,
)
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.sampling import InputSampler
from squall.builders.distributed.plan.skew import SkewedKeys, find_skewed_keys, splittable_inputs
from squall.builders.distributed.plan.stages import partitionings_of
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.local.replay import ReplayedBatches
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.spark import executor_sources
from squall.builders.spark.disk_errors import disk_errors
from squall.builders.spark.engine import SparkEngine
from squall.builders.spark.folder import FolderWriter
from squall.builders.spark.inputs import (
    BatchInput,
    Inputs,
    document_of,
    file_tasks,
    frame_lines,
    heads,
    lines,
    micro_batch_input,
    readable,
    shared,
)
from squall.builders.spark.metrics_listener import Reporter
from squall.builders.spark.session import is_local, silence
from squall.builders.spark.settings import session_settings
from squall.builders.spark.sink_commit import SinkCommitter
from squall.builders.spark.sources import FrameSource
from squall.builders.spark.spool import Spool, publish, write_lines
from squall.builders.spark.store import BROADCAST, SKEWED_KEYS, Store, uri_of
from squall.builders.spark.workers import by_workers
from squall.contracts import Folder, Options, Output
from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.seeds import FIXED_SEED, with_seed
from squall.rdf import ALWAYS, Event
from squall.streams import Source, Sources
from squall.streams.sources.files import Stoppable
from squall.streams.sources.reordering import original

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_OUTPUTS_PER_ITEM = 1000
"""The number of outputs that one queue item passes from thread to thread."""
_CANCEL_INTERVAL_S = 0.1
"""The seconds after which jobs are cancelled again: others may have begun."""


class Run:
    """One run of a job: the driver's side.

    Attributes:
        batches: processes the micro-batches, staged or as sharded plan.
        committer: saves the position of sink and dead-letter ledger with each batch.
        output_queue: passes outputs, and events that acknowledge them, from the query's thread to the caller's.
        failure: the first error of any thread.
        abandoned: whether the caller has stopped taking outputs.
        cancelled: whether the jobs are cancelled, since the process is to end.
    """

    def __init__(
        self,
        plan: Plan,
        options: Options,
        spark: SparkSession,
        folder: Path,
        begin: int,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self.options = options
        self.tuning = tuning
        self.spark = spark
        self.settings = session_settings(spark, options.conf)
        self.store = Store(spark._jvm, spark._jsc.hadoopConfiguration(), uri_of(folder))
        self.plan = with_seed(plan, self.store.seed(FIXED_SEED if options.seed is None else options.seed))
        self.begin = self.store.belong(plan, begin)
        self.engine = SparkEngine(spark, self.store)
        self.batches = self._batches(self.store.spread(), self.store.hot())
        self.folder_writer = self._folder(plan, options.sink) if isinstance(options.sink, Folder) else None
        self.committer = SinkCommitter(options, self.store)
        self.path = folder.absolute()
        self.documents: tuple[Document, ...] = ()
        """The documents of all sources, by number, followed by that of static data."""
        self.spool: Spool | None = None
        self.static_events: Sequence[Event] = ()
        """The events at `ALWAYS` with which bounded sources begin that the driver reads beside live ones."""
        self.reporter: Reporter | None = None
        self.output_queue: queue.Queue[list[Output] | threading.Event | None] = queue.Queue(maxsize=10)
        self.failure: BaseException | None = None
        self.abandoned = self.cancelled = False
        self.tag = f"squall-{self.store.run()}"
        """The tag of all jobs of the run."""
        self.stopped = False
        """Whether more input would follow: the run resumes later from its checkpoint, or somebody has stopped the
        query."""
        self.ending = threading.Event()
        """Set when the run is to end."""
        self.ended = threading.Event()
        """Set when it has ended."""
        self.begun = threading.Event()
        """Set when micro-batches may be processed: the initial batch (axioms and static data) is done."""
        self.at_work = threading.Lock()
        """Held while a micro-batch is processed."""
        self.closed = False
        """Whether no further micro-batch may start."""

    def _batches(self, broadcast_inputs: frozenset[Address], skewed_keys: SkewedKeys) -> LoggedBatches:
        """Makes the processor of micro-batches.

        Args:
            broadcast_inputs: the broadcast inputs, besides those of transitive closures.
            skewed_keys: the skewed keys, by input.
        """
        broadcast_inputs |= closure_inputs(self.plan)
        physical = physical_plan(self.plan, broadcast_inputs, skewed_keys)
        program = Program(physical, functions.own(), self.begin, self.options.measure)
        max_cached_rows, local = self.settings.max_cached_state_rows, is_local(self.spark)
        limits = BatchLimits(
            self.settings.max_single_task_rows,
            max_cached_rows,
            self.settings.single_task_bytes(physical.stages, local),
            max_cached_rows if local else 0,  # there is one worker for it, which holds what it has done
            self.tuning.compaction_interval,
        )
        return batches_of(self.engine, self.store, program, limits, self.options.max_update_steps)

    def _folder(self, plan: Plan, folder: Folder) -> FolderWriter:
        store = Store(self.spark._jvm, self.spark._jsc.hadoopConfiguration(), uri_of(folder.path))
        return FolderWriter(plan, folder, store, self.store.run())

    # The run

    def outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """Yields all outputs of the run, batch by batch."""
        if isinstance(batches, Sources):
            self.committer.flush_sink = batches.flush_sink
            batches.stop_run = self.stop if self._can_stop(batches) else None
            batches.abandon_run = self.cancel
        self.committer.resume(self.batches.committed_count)
        self.spark.sparkContext.addJobTag(self.tag)
        try:
            yield from self._outputs(self._inputs(batches), static)
        except Exception as error:
            if self.cancelled:
                raise KeyboardInterrupt from error
            raise
        finally:
            self.ended.set()
            if self.spool is not None:
                self.spool.close()
            if not self.cancelled:
                self.spark.sparkContext.removeJobTag(self.tag)

    def _can_stop(self, batches: Sources) -> bool:
        """Returns whether the run can end between two batches, and everything that the driver reads can be stopped."""
        live = [original(source) for source in batches.sources if source.live and not readable(source)]
        ends = batches.live or self.options.checkpoint is not None
        return ends and all(isinstance(source, Stoppable) for source in live)

    def stop(self) -> None:
        """Ends the run gracefully; any thread may call it.

        Received input and the current micro-batch are still processed. With a checkpoint the run resumes later; without
        one its windows close and it ends.
        """
        self.ending.set()
        if self.spool is not None:
            self.spool.stop()

    def cancel(self) -> None:
        """Cancels the jobs of the run until it has ended, with KeyboardInterrupt; any thread may call it.

        The batch in progress does not count. Spark does not log what fails by that, and nothing else either: call it
        only when the process is to end.
        """
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        self.cancelled = self.abandoned = True
        self.begun.set()
        with suppress(Py4JError, OSError):  # without Java there is nothing to cancel
            silence(self.spark)
            while True:
                self.spark.sparkContext.cancelJobsWithTag(self.tag)
                if self.ended.wait(_CANCEL_INTERVAL_S):
                    return

    def _outputs(self, inputs: Inputs, static: Iterable[Event]) -> Iterator[Output]:
        self.documents = (*inputs.documents, Document("static", spooled=True, static=True))
        if self._runs_as_one_batch(inputs):
            start = self._start(static, inputs)
            parts = [*start.parts, *file_tasks(self.spark, inputs)]
            everything = start._replace(parts=parts, texts=list(frame_lines(inputs)))
            yield from self._run_batch(everything, inputs.sources, last=bool(inputs.documents), keep=False)
            if self.spool is not None:
                self.spool.acknowledge()
            return
        _check_streaming_frames(inputs)
        with self._reporting():
            first = self._start(static, inputs) if self.batches.committed_count == 0 else None
            if inputs.documents:
                yield from self._stream(inputs, first)
            elif first is not None:
                yield from self._run_batch(first)
            if inputs.documents and self.batches.unfinished and not self.stopped:
                yield from self._run_batch(BatchInput(), last=True)
        if not self.stopped:
            self.committer.pre_commit(self.batches.committed_count, last=True)
            self.committer.commit()

    def _reporting(self) -> AbstractContextManager[None]:
        """Returns a context in which Spark's listeners receive the node metrics, if they are measured."""
        if not self.options.measure:
            return nullcontext()
        self.reporter = Reporter(self.spark, self.store)
        return self.reporter.at_work()

    def _runs_as_one_batch(self, inputs: Inputs) -> bool:
        """Returns whether one batch can process all input: it is bounded, and no later run needs its state."""
        ends = self.options.checkpoint is None and not inputs.live
        return self.options.run_as_one_batch or (ends and not self.settings.max_files_per_trigger)

    def _run_batch(
        self, batch_input: BatchInput, sources: Sequence[Source | None] = (), last: bool = False, keep: bool = True
    ) -> Iterator[Output]:
        """Processes and commits a batch outside the streaming query: the initial one, the final one, or all input at
        once (keep: False)."""
        yield from self._batch(batch_input, sources, last, keep)
        self._commit(None)

    def _batch(
        self, batch_input: BatchInput, sources: Sequence[Source | None], last: bool = False, keep: bool = True
    ) -> Iterator[Output]:
        """Processes a batch, records its dead letters, and yields its outputs."""
        self._process(batch_input, last, keep)
        yield from self._answers(sources)

    def _answers(self, sources: Sequence[Source | None] = ()) -> Iterator[Output]:
        """Records the dead letters of the processed batch and yields its outputs."""
        for dead_letter in self.batches.dead_letters():
            record_dead_letter(dead_letter, self.options.ledger, sources)
        for number, count in self.batches.report.all(SourceCount):
            if sources and (source := sources[number]) is not None:
                source.reading.statements += count
        if self.folder_writer is None:
            yield from self.batches.outputs()
        elif files := self.batches.output_files():
            self.folder_writer.write(self.engine.read(files), self.batches.committed_count)

    def _process(self, batch_input: BatchInput, last: bool, keep: bool) -> None:
        """Processes a batch, in a single task where its input is small."""
        parts = list(chain.from_iterable(batch_input.parts))
        is_work = batch_input.parts or batch_input.first or self.batches.unfinished
        if is_work and not batch_input.texts and self.batches.is_unshuffled(sum(map(split_bytes, parts))):
            self.batches.process_unshuffled(fixed_splits_parser(self.documents, parts), batch_input.first, last, keep)
        else:
            self.batches.process(self._records(batch_input), last, keep)

    def _process_tagged(self, batch_input: BatchInput) -> None:
        """Processes the initial batch in a thread of its own."""
        self.spark.sparkContext.addJobTag(self.tag)
        self._process(batch_input, last=False, keep=True)

    def _commit(self, number: int | None) -> None:
        """Commits a batch whose outputs have been taken: makes them durable first, then counts the batch."""
        self.committer.pre_commit(self.batches.committed_count + 1)
        self.batches.commit(number)
        self.committer.commit()
        if self.batches.committed_count % self.tuning.compaction_interval == 0:
            gc.collect()  # py4j leaves cycles, and by them what Java has of DataFrames that nobody needs
        if self.reporter is not None:
            self.reporter.tell(self.batches.committed_count - 1, self.batches.node_metrics.by_node())

    def _start(self, static: Iterable[Event], inputs: Inputs) -> BatchInput:
        """Returns the initial batch: axioms and static data, if there are any."""
        file = self.path / "spool" / "static" / "static.json"
        samples = InputSampler(self.plan)
        static_events = samples.seen(event._replace(time=ALWAYS) for event in chain(static, self.static_events))
        with disk_errors(self.path):
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = write_lines(file, chain.from_iterable(map(spool_lines, static_events)))
        self._choose_join_strategies(samples.rows, inputs)
        first = self.batches.initial_records()
        if draft is None:
            return BatchInput(first=first)
        publish(draft)
        return BatchInput(parts=shared(self.spark, [(len(inputs.documents), str(file))]), first=first)

    def _choose_join_strategies(self, rows: Mapping[Address, int], inputs: Inputs) -> None:
        """Chooses the broadcast inputs and the skewed keys. rows: the number of static rows of each input."""
        if not self.batches.program.physical.strategy.is_staged:
            return
        hot_key_share = self.settings.hot_key_share(self.engine.partitions)
        max_broadcast_rows = self.settings.max_broadcast_rows if rows else 0
        candidates = splittable_inputs(self.plan, partitionings_of(self.plan)) if hot_key_share else {}
        if not max_broadcast_rows and not candidates:
            return
        samples = InputSampler(self.plan, candidates)
        for head in heads(inputs):
            samples.count(head)
        stream_inputs = {*samples.rows, *general_inputs(self.plan)}
        broadcast_inputs = (
            choose_broadcast(self.plan, rows, stream_inputs, max_broadcast_rows, vocabulary_inputs(self.plan))
            if max_broadcast_rows
            else frozenset()
        )
        still_splittable = splittable_inputs(
            self.plan, partitionings_of(self.plan, broadcast_inputs | closure_inputs(self.plan))
        )
        skewed_keys = {
            address: keys
            for address, keys in find_skewed_keys(samples.keys, hot_key_share).items()
            if address in still_splittable
        }
        if broadcast_inputs:
            self.store.write(sorted(broadcast_inputs), BROADCAST)
        if skewed_keys:
            self.store.write([[*address, keys] for address, keys in skewed_keys.items()], SKEWED_KEYS)
        if broadcast_inputs or skewed_keys:
            self.batches = self._batches(broadcast_inputs, skewed_keys)

    # Sources

    def _records(self, batch_input: BatchInput) -> DataFrame | None:
        """Returns the records of a batch's input; None: there are none."""
        frames: list[DataFrame] = []
        if batch_input.first:
            frames.append(self.engine.generate(self.batches.initial_step(batch_input.first)))
        if batch_input.parts:
            step = self.batches.source_step(splits_parser(self.documents, batch_input.parts))
            frames.append(by_workers(self.spark.range(0, len(batch_input.parts), 1, len(batch_input.parts)), step))
        if batch_input.texts:
            step = self.batches.source_step(lines_parser(self.documents))
            frames += (by_workers(text, step) for text in batch_input.texts)
        return self.engine.union(frames) if frames else None

    def _inputs(self, batches: Iterable[Sequence[Event]]) -> Inputs:
        """Describes the input. Spark reads what it can; the driver spools the rest: at once if it is bounded, else
        while the query runs."""
        sources = batches.sources if isinstance(batches, Sources) else ()
        executor_source = executor_sources.chosen(self.spark, self.store, batches)
        spark_sources = [source for source in sources if readable(source) or source is executor_source.source]
        check_clock(batches, spark_sources)
        counted_sources: list[Source | None] = [*spark_sources]
        documents = [document_of(source, executor_source) for source in spark_sources]
        live = is_live(batches)
        driver_inputs = _rest(batches, spark_sources)
        if driver_inputs is not None:
            self.spool = Spool(self.path, driver_inputs, self.options.checkpoint is not None, self._fail, self.tuning)
            documents.append(Document(str(self.spool.files), folder=True, spooled=True))
            counted_sources.append(None)
            if self.ending.is_set():
                self.spool.stop()
            if live:
                self.static_events = () if self.options.checkpoint else driver_inputs.static_events()
                self.spool.start()
            else:
                self.spool.write()
        endless = any(source.live for source in spark_sources)
        spooled, max_files = driver_inputs is not None, self.settings.max_files_per_trigger
        return Inputs(tuple(documents), tuple(counted_sources), live, endless, executor_source, spooled, max_files)

    # The query

    def _stream(self, inputs: Inputs, first: BatchInput | None) -> Iterator[Output]:
        """Yields the outputs of the initial batch, if there is one, and of the streaming query, which runs in threads
        of its own and waits for the consumer of this generator."""
        with ThreadPoolExecutor(1) as executor:  # a query takes about as long to start as the first task does
            first_batch = executor.submit(self._process_tagged, first) if first is not None else None
            query = self._query(inputs)
        watcher = threading.Thread(target=self._watch, args=(query, inputs), daemon=True)
        watcher.start()
        try:
            if first_batch is not None:
                first_batch.result()
                yield from self._answers()
                self._commit(None)
            self.begun.set()
            while (item := self.output_queue.get()) is not None:
                if isinstance(item, threading.Event):
                    item.set()
                else:
                    yield from item
        finally:
            self._end(query, watcher)
        if self.failure is not None:
            raise self.failure

    def _end(self, query: StreamingQuery, watcher: threading.Thread) -> None:
        """Stops the query. If the run is abandoned, the current batch fails."""
        self.abandoned = True
        self.begun.set()
        while watcher.is_alive():
            with suppress(queue.Empty):
                item = self.output_queue.get(timeout=0.1)
                if isinstance(item, threading.Event):
                    item.set()
            if not query.isActive or not query.status["isTriggerActive"]:
                query.stop()
        query.stop()

    def _query(self, inputs: Inputs) -> StreamingQuery:
        text = lines(self.spark, inputs, self.spool)
        writer = text.writeStream.foreachBatch(lambda frame, number: self._on_batch(frame, number, inputs))
        writer = writer.queryName(f"squall-{self.store.run()}").option("checkpointLocation", self.store.uri("spark"))
        return (writer if inputs.live else writer.trigger(availableNow=True)).start()

    def _watch(self, query: StreamingQuery, inputs: Inputs) -> None:
        """Puts the end marker (None) into the queue when all input is processed, or the query has been stopped."""
        try:
            if inputs.live and not inputs.endless:
                while query.isActive and self.spool is not None and not self.spool.join(0.2):
                    pass
                query.processAllAvailable()
                stopped = not query.isActive
            else:
                stopped = inputs.live
                self._await(query)
            self.stopped = self.options.checkpoint is not None if self.ending.is_set() else stopped
        except Exception as error:  # given to the thread that takes the outputs
            self._fail(error)
        self.output_queue.put(None)

    def _await(self, query: StreamingQuery) -> None:
        """Returns when the query has ended, or has been ended between two micro-batches."""
        while not self.ending.is_set():
            if query.awaitTermination(1):
                return
        with self.at_work:
            self.closed = True
        query.stop()

    def _on_batch(self, frame: DataFrame, number: int, inputs: Inputs) -> None:
        """Processes one micro-batch; Spark calls it in a thread of its own."""
        self.begun.wait()
        with self.at_work:
            if self.closed or self.abandoned:
                raise RuntimeError("the run has ended")
            self._work(frame, number, inputs)

    def _work(self, frame: DataFrame, number: int, inputs: Inputs) -> None:
        if number <= self.batches.progress.number:  # done, but Spark was killed before it could write that down
            return
        try:
            self.engine.spark = frame.sparkSession
            batch_input, spooled = micro_batch_input(frame, inputs, self.tuning)
            outputs = self._batch(batch_input, inputs.sources)
            while chunk := list(islice(outputs, _OUTPUTS_PER_ITEM)):
                self._enqueue(chunk)
            consumed = threading.Event()
            self._enqueue(consumed)
            consumed.wait()
            if self.abandoned:  # they were let go, not taken: the batch has to be done again
                raise RuntimeError("the run was abandoned")
            self._commit(number)
            if self.spool is not None and (file := spooled()):
                self.spool.acknowledge(int(Path(file).stem))
        except BaseException as error:
            self._fail(error)
            raise RuntimeError("the batch has failed") from None  # Java overflows its stack in long messages

    def _fail(self, error: BaseException) -> None:
        """Saves the first error of any thread for the thread that takes the outputs."""
        self.failure = self.failure or error

    def _enqueue(self, item: list[Output] | threading.Event) -> None:
        if self.abandoned:
            raise RuntimeError("the run was abandoned")
        self.output_queue.put(item)


def _rest(batches: Iterable[Sequence[Event]], spark_sources: Sequence[Source]) -> Sources | ReplayedBatches | None:
    """Returns the input that Spark does not read itself; None: there is none."""
    if not isinstance(batches, Sources):
        return ReplayedBatches(batches)
    numbers = [number for number, source in enumerate(batches.sources) if source not in spark_sources]
    ledgers = [batches.ledgers[number] for number in numbers] if batches.ledgers else []
    sources = [batches.sources[number] for number in numbers]
    return Sources(sources, batches.clock, batches.heartbeat, ledgers) if sources else None


def _check_streaming_frames(inputs: Inputs) -> None:
    """Raises BuilderError if a batch DataFrame would have to be read as a stream."""
    for source in inputs.sources:
        if isinstance(source, FrameSource) and not source.live:
            raise BuilderError(
                f"`{source.uri}` is all there at once, and this run goes on batch by batch",
                hint="leave the checkpoint and live sources out, or read it by `spark.readStream`",
            )
