"""One run of a job on Spark, the driver's side: what it reads, its micro-batches, and where their outputs go."""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from squall import functions
from squall.builders.distributed.exec.micro_batch import MicroBatches
from squall.builders.distributed.exec.routing import PhysicalPlan
from squall.builders.distributed.exec.sharded_plan import Shards
from squall.builders.distributed.io.ingest import check_clock, is_live, lose
from squall.builders.distributed.io.parsing import Document, lines_parser, spool_lines
from squall.builders.distributed.io.splits import all_parser, parts_parser, weight
from squall.builders.distributed.plan.broadcast import chosen, closures, general, vocabularies
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.sampling import Arriving
from squall.builders.distributed.plan.shardability_reasons import as_a_whole
from squall.builders.distributed.plan.skew import Hot, hottest, scatterable
from squall.builders.distributed.plan.stages import groupings, levels
from squall.builders.local.replay import Given
from squall.builders.runtime.state import COMPACT
from squall.builders.spark import executor_sources
from squall.builders.spark.exchange import SparkExchange
from squall.builders.spark.folder import FolderWriter
from squall.builders.spark.inputs import (
    Coming,
    Inputs,
    arrived,
    document_of,
    framed,
    heads,
    in_parts,
    lines,
    readable,
    shared,
)
from squall.builders.spark.metrics_listener import Reporter
from squall.builders.spark.session import is_local
from squall.builders.spark.settings import settings_of
from squall.builders.spark.sink_commit import Ends
from squall.builders.spark.sources import FrameSource
from squall.builders.spark.spool import Spool, show, written
from squall.builders.spark.store import HOT, SPREAD, Store, uri_of
from squall.builders.spark.workers import by_workers
from squall.contracts import Folder, Options, Output
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import ALWAYS, Event
from squall.streams import Source, Sources
from squall.streams.sources.files import Stoppable
from squall.streams.sources.reordering import original

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_TOGETHER = 1000
"""So many outputs go from thread to thread at a time."""


class Run:
    """One run of a job: the driver's side."""

    def __init__(
        self,
        plan: Plan,
        options: Options,
        spark: SparkSession,
        folder: Path,
        begin: int,
        exchange: Callable[[SparkSession, Store], SparkExchange] = SparkExchange,
    ) -> None:
        self.options = options
        self.spark = spark
        self.settings = settings_of(spark, options.conf)
        self.store = Store(spark._jvm, spark._jsc.hadoopConfiguration(), uri_of(folder))
        self.plan = plan
        self.begin = self.store.belong(plan, begin)
        self.exchange = exchange(spark, self.store)
        self.batches = self._batches(self.store.spread(), self.store.hot())
        self.folder = self._folder(plan, options.sink) if isinstance(options.sink, Folder) else None
        self.ends = Ends(options, self.store)
        self.place = folder.absolute()
        self.documents: tuple[Document, ...] = ()
        """Of all sources, by number, and behind them of static data."""
        self.spool: Spool | None = None
        self.reporter: Reporter | None = None
        self.waiting: queue.Queue[list[Output] | threading.Event | None] = queue.Queue(maxsize=10)
        self.failure: BaseException | None = None
        self.abandoned = False
        self.stopped = False
        """Whether more would have come: the run goes on another time, or somebody has stopped the query."""
        self.ending = threading.Event()
        """Set when the run is to end."""
        self.begun = threading.Event()
        """Set when micro-batches may be worked off: what the program starts with has been."""
        self.at_work = threading.Lock()
        """Held while a micro-batch is worked off."""
        self.closed = False
        """Whether no further one is."""

    def _batches(self, spread: frozenset[Address], hot: Hot) -> MicroBatches | Shards:
        """What works micro-batches off. spread: the inputs whose rows go to all tasks, besides those of closures; hot:
        the keys of inputs whose rows are scattered."""
        spread |= closures(self.plan)
        cuts = levels(self.plan, spread, hot)
        program = PhysicalPlan(self.plan, cuts, functions.own(), self.begin, self.options.measure, spread, hot)
        most, local = self.settings.rows_in_worker, is_local(self.spark)
        few = self.settings.straight(cuts, local)
        if as_a_whole(self.plan):
            return Shards(self.exchange, self.store, program, self.options.steps, most, few)
        state = most if local else 0  # there is one worker for it, which holds what it has done
        return MicroBatches(self.exchange, self.store, program, self.settings.rows_together, most, few, state)

    def _folder(self, plan: Plan, folder: Folder) -> FolderWriter:
        store = Store(self.spark._jvm, self.spark._jsc.hadoopConfiguration(), uri_of(folder.path))
        return FolderWriter(plan, folder, store, self.store.run())

    # The run

    def outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """All outputs of the run, batch by batch."""
        if isinstance(batches, Sources):
            self.ends.settle = batches.settle
            batches.ends = self.stop if self._may_stop(batches) else None
        self.ends.resume(self.batches.done)
        try:
            yield from self._outputs(self._inputs(batches), static)
        finally:
            if self.spool is not None:
                self.spool.close()

    def _may_stop(self, batches: Sources) -> bool:
        """Whether there is a place at which the run can be ended, and all that the driver reads can be."""
        live = [original(source) for source in batches.sources if source.live and not readable(source)]
        ends = batches.live or self.options.checkpoint is not None
        return ends and all(isinstance(source, Stoppable) for source in live)

    def stop(self) -> None:
        """Ends the run: what the driver has received is worked off, and the micro-batch that is at work is done. With a
        checkpoint it goes on another time; without one it comes to its end. May be called by any thread."""
        self.ending.set()
        if self.spool is not None:
            self.spool.stop()

    def _outputs(self, inputs: Inputs, static: Iterable[Event]) -> Iterator[Output]:
        self.documents = (*inputs.documents, Document("static", spooled=True, static=True))
        if self._is_one_batch(inputs):
            start = self._start(static, inputs)
            parts = [*start.parts, *in_parts(self.spark, inputs)]
            everything = start._replace(parts=parts, texts=list(framed(inputs)))
            yield from self._directly(everything, inputs.sources, last=True, keep=False)
            if self.spool is not None:
                self.spool.acknowledge()
            return
        _check_frames(inputs)
        with self._reporting():
            first = self._start(static, inputs) if self.batches.done == 0 else None
            if inputs.documents:
                yield from self._stream(inputs, first)
            elif first is not None:
                yield from self._directly(first)
            if self.batches.unfinished and not self.stopped:
                yield from self._directly(Coming(), last=True)
        if not self.stopped:
            self.ends.keep(self.batches.done, last=True)
            self.ends.deliver()

    def _reporting(self) -> AbstractContextManager[None]:
        """While it is there, listeners of Spark's hear what nodes do, if they are measured."""
        if not self.options.measure:
            return nullcontext()
        self.reporter = Reporter(self.spark, self.store)
        return self.reporter.at_work()

    def _is_one_batch(self, inputs: Inputs) -> bool:
        """Whether all there is can be worked off at once: it ends, and nothing is to be done with it later."""
        ends = self.options.checkpoint is None and not inputs.live
        return self.options.batch or (ends and not self.settings.files_per_batch)

    def _directly(
        self, coming: Coming, sources: Sequence[Source | None] = (), last: bool = False, keep: bool = True
    ) -> Iterator[Output]:
        """A batch outside the stream: what holds always, what is left at the end, or all there is (keep: False)."""
        yield from self._batch(coming, sources, last, keep)
        self._commit(None)

    def _batch(
        self, coming: Coming, sources: Sequence[Source | None], last: bool = False, keep: bool = True
    ) -> Iterator[Output]:
        """The outputs of a batch, its losses told."""
        self._take_in(coming, last, keep)
        yield from self._answers(sources)

    def _answers(self, sources: Sequence[Source | None] = ()) -> Iterator[Output]:
        """The outputs of the batch that has been worked off, its losses told."""
        for lost in self.batches.losses():
            lose(lost, self.options.ledger, sources)
        for number, count in self.batches.told.counts:
            if sources and (source := sources[number]) is not None:
                source.reading.statements += count
        if self.folder is None:
            yield from self.batches.outputs()
        elif (answers := self.batches.answers()) is not None:
            self.folder.write(answers, self.batches.done)

    def _take_in(self, coming: Coming, last: bool, keep: bool) -> None:
        """Works a batch off: by one task, where there is little to be read."""
        parts = list(chain.from_iterable(coming.parts))
        is_work = coming.parts or coming.first or self.batches.unfinished
        if is_work and not coming.texts and self.batches.fits(sum(map(weight, parts))):
            self.batches.work_straight(all_parser(self.documents, parts), coming.first, last, keep)
        else:
            self.batches.work(self._messages(coming), last, keep)

    def _commit(self, number: int | None) -> None:
        """The outputs have been taken: they are made to last before the batch counts."""
        self.ends.keep(self.batches.done + 1)
        self.batches.commit(number)
        self.ends.deliver()
        if self.batches.done % COMPACT == 0:
            gc.collect()  # py4j leaves cycles, and by them what Java has of DataFrames that nobody needs
        if self.reporter is not None:
            self.reporter.tell(self.batches.done - 1, self.batches.tally.figures())

    def _start(self, static: Iterable[Event], inputs: Inputs) -> Coming:
        """Axioms and static data, if there are any."""
        file = self.place / "spool" / "static" / "static.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        arriving = Arriving(self.plan)
        known = arriving.seen(event._replace(time=ALWAYS) for event in static)
        draft = written(file, chain.from_iterable(map(spool_lines, known)))
        self._choose(arriving.rows, inputs)
        first = self.batches.first()
        if draft is None:
            return Coming(first=first)
        show(draft)
        return Coming(parts=shared(self.spark, [(len(inputs.documents), str(file))]), first=first)

    def _choose(self, rows: Mapping[Address, int], inputs: Inputs) -> None:
        """Chooses what goes to all tasks, and which keys are hot. rows: how many static data bring to each input."""
        if as_a_whole(self.plan):
            return
        share = self.settings.hot(self.exchange.partitions)
        most = self.settings.rows_to_all if rows else 0
        wanted = scatterable(self.plan, groupings(self.plan)) if share else {}
        if not most and not wanted:
            return
        streamed = Arriving(self.plan, wanted)
        for head in heads(inputs):
            streamed.count(head)
        known = {*streamed.rows, *general(self.plan)}
        spread = chosen(self.plan, rows, known, most, vocabularies(self.plan)) if most else frozenset()
        left = scatterable(self.plan, groupings(self.plan, spread | closures(self.plan)))
        hot = {address: keys for address, keys in hottest(streamed.keys, share).items() if address in left}
        if spread:
            self.store.write(sorted(spread), SPREAD)
        if hot:
            self.store.write([[*address, keys] for address, keys in hot.items()], HOT)
        if spread or hot:
            self.batches = self._batches(spread, hot)

    # Sources

    def _messages(self, coming: Coming) -> DataFrame | None:
        """The messages of what a batch takes in; None: there is nothing."""
        made: list[DataFrame] = []
        if coming.first:
            made.append(self.exchange.made(self.batches.starting(coming.first)))
        if coming.parts:
            step = self.batches.reading(parts_parser(self.documents, coming.parts))
            made.append(by_workers(self.spark.range(0, len(coming.parts), 1, len(coming.parts)), step))
        if coming.texts:
            step = self.batches.reading(lines_parser(self.documents))
            made += (by_workers(text, step) for text in coming.texts)
        return self.exchange.union(made)

    def _inputs(self, batches: Iterable[Sequence[Event]]) -> Inputs:
        """What Spark reads by itself is left to it; all else is spooled: now if it ends, else while the query runs."""
        sources = batches.sources if isinstance(batches, Sources) else ()
        found = executor_sources.chosen(self.spark, self.store, batches)
        own = [source for source in sources if readable(source) or source is found.source]
        check_clock(batches, own)
        read: list[Source | None] = [*own]
        documents = [document_of(source, found) for source in own]
        live = is_live(batches)
        rest = _rest(batches, own)
        if rest is not None:
            self.spool = Spool(self.place, rest, self.options.checkpoint is not None, self._fail)
            documents.append(Document(str(self.spool.files), folder=True, spooled=True))
            read.append(None)
            if self.ending.is_set():
                self.spool.stop()
            if live:
                self.spool.start()
            else:
                self.spool.write()
        endless = any(source.live for source in own)
        spooled, most = rest is not None, self.settings.files_per_batch
        return Inputs(tuple(documents), tuple(read), live, endless, found, spooled, most)

    # The query

    def _stream(self, inputs: Inputs, first: Coming | None) -> Iterator[Output]:
        """The outputs of what the program starts with, if it does, and of the streaming query. This runs in threads of
        its own and waits for whoever takes them."""
        with ThreadPoolExecutor(1) as beside:  # a query takes about as long to start as the first task does
            begun = beside.submit(self._take_in, first, last=False, keep=True) if first is not None else None
            query = self._query(inputs)
        watcher = threading.Thread(target=self._watch, args=(query, inputs), daemon=True)
        watcher.start()
        try:
            if begun is not None:
                begun.result()
                yield from self._answers()
                self._commit(None)
            self.begun.set()
            while (item := self.waiting.get()) is not None:
                if isinstance(item, threading.Event):
                    item.set()
                else:
                    yield from item
        finally:
            self._end(query, watcher)
        if self.failure is not None:
            raise self.failure

    def _end(self, query: StreamingQuery, watcher: threading.Thread) -> None:
        """Lets a batch in work fail, if the run is abandoned, and stops the query."""
        self.abandoned = True
        self.begun.set()
        while watcher.is_alive():
            with suppress(queue.Empty):
                item = self.waiting.get(timeout=0.1)
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
        """Says when there is nothing more to come, or the query has been stopped."""
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
        self.waiting.put(None)

    def _await(self, query: StreamingQuery) -> None:
        """Comes back when a query has ended, or has been ended between two micro-batches."""
        while not self.ending.is_set():
            if query.awaitTermination(1):
                return
        with self.at_work:
            self.closed = True
        query.stop()

    def _on_batch(self, frame: DataFrame, number: int, inputs: Inputs) -> None:
        """Works off one micro-batch; called by Spark, in a thread of its own."""
        self.begun.wait()
        with self.at_work:
            if self.closed or self.abandoned:
                raise RuntimeError("the run has ended")
            self._work(frame, number, inputs)

    def _work(self, frame: DataFrame, number: int, inputs: Inputs) -> None:
        if number <= self.batches.progress.number:  # done, but Spark was killed before it could write that down
            return
        try:
            self.exchange.spark = frame.sparkSession
            coming, spooled = arrived(frame, inputs)
            outputs = self._batch(coming, inputs.sources)
            while some := list(islice(outputs, _TOGETHER)):
                self._hand_over(some)
            taken = threading.Event()
            self._hand_over(taken)
            taken.wait()
            if self.abandoned:  # they were let go, not taken: the batch has to be done again
                raise RuntimeError("the run was abandoned")
            self._commit(number)
            if self.spool is not None and (file := spooled()):
                self.spool.acknowledge(int(Path(file).stem))
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        """Notes the first thing that went wrong in any of the threads, for the one that takes the outputs."""
        self.failure = self.failure or error

    def _hand_over(self, item: list[Output] | threading.Event) -> None:
        if self.abandoned:
            raise RuntimeError("the run was abandoned")
        self.waiting.put(item)


def _rest(batches: Iterable[Sequence[Event]], own: Sequence[Source]) -> Sources | Given | None:
    """What Spark does not read by itself; None: it reads all."""
    if not isinstance(batches, Sources):
        return Given(batches)
    others = [number for number, source in enumerate(batches.sources) if source not in own]
    ledgers = [batches.ledgers[number] for number in others] if batches.ledgers else []
    sources = [batches.sources[number] for number in others]
    return Sources(sources, batches.clock, batches.heartbeat, ledgers) if sources else None


def _check_frames(inputs: Inputs) -> None:
    """Raises BuilderError where a DataFrame would have to be read batch by batch, and is no stream."""
    for source in inputs.sources:
        if isinstance(source, FrameSource) and not source.live:
            raise BuilderError(
                f"`{source.uri}` is all there at once, and this run goes on batch by batch",
                hint="leave the checkpoint and live sources out, or read it by `spark.readStream`",
            )
