"""The streaming query of a run: it processes micro-batches in threads of its own, and waits for who takes the
outputs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from squall.builders.spark.adaptation import RunAdaptation
from squall.builders.spark.batch_processor import BatchProcessor
from squall.builders.spark.inputs import BatchInput, Inputs, lines, micro_batch_input
from squall.builders.spark.session import RECORDS_PER_READ
from squall.builders.spark.spool import Spool
from squall.contracts import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_OUTPUTS_PER_ITEM = 1000
"""The number of outputs that one queue item passes from thread to thread."""


class QueryRun:
    """A run of the streaming query.

    Args:
        processor: processes the micro-batches.
        name: the name of the query, and the tag of its jobs.
        adaptation: is called before each micro-batch and after its commit.

    Attributes:
        spool: the input that the driver reads, if there is any.
        ending: set when the run is to end.
        stopped: whether more input would follow: the run resumes later from its checkpoint, or somebody has stopped the
            query.
        output_queue: passes outputs, and events that acknowledge them, from the query's thread to the caller's.
        failure: the first error of any thread.
        abandoned: whether the caller has stopped taking outputs.
        begun: set when micro-batches may be processed: the initial batch (axioms and static data) is done.
        at_work: held while a micro-batch is processed.
        closed: whether no further micro-batch may start.
    """

    def __init__(self, processor: BatchProcessor, name: str, adaptation: RunAdaptation) -> None:
        self.processor = processor
        self.adaptation = adaptation
        self.name = name
        self.spool: Spool | None = None
        self.ending = threading.Event()
        self.stopped = False
        self.output_queue: queue.Queue[list[Output] | threading.Event | None] = queue.Queue(maxsize=10)
        self.failure: BaseException | None = None
        self.abandoned = False
        self.begun = threading.Event()
        self.at_work = threading.Lock()
        self.closed = False

    def stop(self) -> None:
        """Ends the query gracefully; any thread may call it. Received input and the current micro-batch are still
        processed."""
        self.ending.set()
        if self.spool is not None:
            self.spool.stop()

    def abandon(self) -> None:
        """Ends the query; any thread may call it. The current micro-batch fails."""
        self.abandoned = True
        self.begun.set()

    def fail(self, error: BaseException) -> None:
        """Saves the first error of any thread for the thread that takes the outputs."""
        self.failure = self.failure or error

    # In the thread that takes the outputs

    def outputs(self, inputs: Inputs, first: BatchInput | None) -> Iterator[Output]:
        """Yields the outputs of the initial batch, if there is one, and of the query."""
        with ThreadPoolExecutor(1) as executor:  # a query takes about as long to start as the first task does
            first_batch = executor.submit(self._process_first, first) if first is not None else None
            query = self._start(inputs)
        watcher = threading.Thread(target=self._watch, args=(query, inputs), daemon=True)
        watcher.start()
        try:
            if first_batch is not None:
                first_batch.result()
                yield from self.processor.outputs()
                self.processor.commit(None)
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

    def _process_first(self, first: BatchInput) -> None:
        """Processes the initial batch in a thread of its own."""
        self.processor.engine.spark.sparkContext.addJobTag(self.name)
        self.processor.process(first)

    def _start(self, inputs: Inputs) -> StreamingQuery:
        text = lines(self.processor.engine.spark, inputs, self.spool)
        writer = text.writeStream.foreachBatch(lambda frame, number: self._on_batch(frame, number, inputs))
        writer = writer.queryName(self.name).option("checkpointLocation", self.processor.store.uri("spark"))
        interval = self.processor.options.batch_interval
        if not inputs.live:
            writer = writer.trigger(availableNow=True)
        elif interval is not None:
            writer = writer.trigger(processingTime=f"{interval} milliseconds")
        return writer.start()

    def _end(self, query: StreamingQuery, watcher: threading.Thread) -> None:
        """Stops the query. If the run is abandoned, the current batch fails."""
        self.abandon()
        while watcher.is_alive():
            with suppress(queue.Empty):
                item = self.output_queue.get(timeout=0.1)
                if isinstance(item, threading.Event):
                    item.set()
            if not query.isActive or not query.status["isTriggerActive"]:
                query.stop()
        query.stop()

    # In the thread that waits for the end

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
            is_resumable = self.processor.options.checkpoint is not None
            self.stopped = is_resumable if self.ending.is_set() else stopped
        except Exception as error:  # given to the thread that takes the outputs
            self.fail(error)
        self.output_queue.put(None)

    def _await(self, query: StreamingQuery) -> None:
        """Returns when the query has ended, or has been ended between two micro-batches."""
        while not self.ending.is_set():
            if query.awaitTermination(1):
                return
        with self.at_work:
            self.closed = True
        query.stop()

    # In the thread of the query

    def _on_batch(self, frame: DataFrame, number: int, inputs: Inputs) -> None:
        """Processes one micro-batch; Spark calls it in a thread of its own."""
        self.begun.wait()
        with self.at_work:
            if self.closed or self.abandoned:
                raise RuntimeError("the run has ended")
            self._process(frame, number, inputs)

    def _process(self, frame: DataFrame, number: int, inputs: Inputs) -> None:
        if number <= self.processor.batches.progress.number:  # done, but Spark was killed before it could note that
            return
        try:
            self.processor.engine.spark = frame.sparkSession  # of this query alone
            frame.sparkSession.conf.set(*RECORDS_PER_READ)
            batch_input, spooled = micro_batch_input(frame, inputs, self.processor.tuning)
            self.adaptation.before_batch(batch_input)
            self.processor.process(batch_input, is_live=inputs.live)
            outputs = self.processor.outputs(inputs.sources)
            while chunk := list(islice(outputs, _OUTPUTS_PER_ITEM)):
                self._enqueue(chunk)
            consumed = threading.Event()
            self._enqueue(consumed)
            consumed.wait()
            if self.abandoned:  # they were let go, not taken: the batch has to be done again
                raise RuntimeError("the run was abandoned")
            self.processor.commit(number)
            self.adaptation.after_batch()
            if self.spool is not None and (file := spooled()):
                self.spool.acknowledge(int(Path(file).stem))
        except BaseException as error:
            self.fail(error)
            raise RuntimeError("the batch has failed") from None  # Java overflows its stack in long messages

    def _enqueue(self, item: list[Output] | threading.Event) -> None:
        if self.abandoned:
            raise RuntimeError("the run was abandoned")
        self.output_queue.put(item)
