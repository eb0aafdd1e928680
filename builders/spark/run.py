"""One run of a job on Spark, from the driver's side: its input, its batches, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from squall.builders.distributed.io.ingest import check_clock, is_live
from squall.builders.distributed.io.parsing import Document, spool_lines
from squall.builders.distributed.plan.sampling import InputSampler, PatternSampler, counted_by
from squall.builders.local.identity import mapping_digests, static_digests
from squall.builders.local.replay import ReplayedBatches
from squall.builders.spark import executor_sources
from squall.builders.spark.adaptation import RunAdaptation
from squall.builders.spark.batch_processor import BatchProcessor
from squall.builders.spark.disk_errors import disk_errors
from squall.builders.spark.inputs import (
    BatchInput,
    Head,
    Inputs,
    document_of,
    file_tasks,
    frame_lines,
    heads,
    readable,
    shared,
)
from squall.builders.spark.join_strategies import choose_join_strategies
from squall.builders.spark.query import QueryRun
from squall.builders.spark.session import silence
from squall.builders.spark.settings import SparkTuning
from squall.builders.spark.sources import FrameSource
from squall.builders.spark.spool import Spool, publish, spooled_events, write_lines
from squall.builders.spark.store import Store
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.plan import Plan, Planning
from squall.plan.seeds import FIXED_SEED, with_seed
from squall.rdf import ALWAYS, Event
from squall.streams import Source, Sources
from squall.streams.sources.files import Stoppable
from squall.streams.sources.merge import ends_with_others
from squall.streams.sources.reordering import original

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCEL_INTERVAL_S = 0.1
"""The seconds after which jobs are cancelled again: others may have begun."""


class Run:
    """One run of a job: the driver's side.

    Args:
        plan: the plan of the job.
        planning: how other plans of the program are made, apart from their statistics.
        options: the options of the job.
        spark: the session.
        folder: the checkpoint, or a temporary folder.
        begin: the time that functions of time see for static facts, in a new checkpoint (integer ms).
        tuning: the tuning values of the builder.

    Attributes:
        processor: processes batches and commits them.
        adaptation: looks for better plans.
        query: the streaming query, if the input is processed in micro-batches.
        static_events: the events at `ALWAYS` with which bounded sources begin that the driver reads beside live ones.
        tag: the tag of all jobs of the run.
        ended: set when the run has ended.
        cancelled: whether the jobs are cancelled, since the process is to end.
    """

    def __init__(
        self,
        plan: Plan,
        planning: Planning,
        options: Options,
        spark: SparkSession,
        folder: Path,
        begin: int,
        tuning: SparkTuning,
    ) -> None:
        self.options = options
        self.spark = spark
        self.path = folder.absolute()
        self.store = Store(folder)
        seed = self.store.seed(FIXED_SEED if options.seed is None else options.seed)
        static_time = self.store.belong(plan, begin)
        self.processor = BatchProcessor(with_seed(plan, seed), options, spark, self.store, static_time, tuning)
        self.adaptation = RunAdaptation(plan, planning, options.replan, self.processor, seed)
        self.tag = f"squall-{self.store.run()}"
        self.query = QueryRun(self.processor, self.tag, self.adaptation)
        self.static_events: Sequence[Event] = ()
        self.ended = threading.Event()
        self.cancelled = False

    def outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """Yields all outputs of the run, batch by batch."""
        committer = self.processor.committer
        if isinstance(batches, Sources):
            committer.flush_sink = batches.flush_sink
            batches.stop_run = self.query.stop if self._can_stop(batches) else None
            batches.abandon_run = self.cancel
        committed_count = self.processor.batches.log.committed_count
        self.store.check_static_data(static_digests(static), are_read=committed_count > 0)
        self.store.check_mappings(mapping_digests(batches), are_read=committed_count > 0)
        committer.resume(committed_count)
        self.spark.sparkContext.addJobTag(self.tag)
        try:
            yield from self._outputs(self._inputs(batches), static)
        except Exception as error:
            if self.cancelled:
                raise KeyboardInterrupt from error
            raise
        finally:
            self.ended.set()
            if self.query.spool is not None:
                self.query.spool.close()
            if not self.cancelled:
                self.spark.sparkContext.removeJobTag(self.tag)

    def _can_stop(self, batches: Sources) -> bool:
        """Returns whether the run can end between two batches, and everything that the driver reads can be stopped.

        With a checkpoint the run resumes later; without one its windows close and it ends.
        """
        live = [original(source) for source in batches.sources if source.live and not readable(source)]
        ends = batches.live or self.options.checkpoint is not None
        return ends and all(isinstance(source, Stoppable) for source in live)

    def cancel(self) -> None:
        """Cancels the jobs of the run until it has ended, with KeyboardInterrupt; any thread may call it.

        The batch in progress does not count. Spark does not log what fails by that, and nothing else either: call it
        only when the process is to end.
        """
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        self.cancelled = True
        self.query.abandon()
        with suppress(Py4JError, OSError):  # without Java there is nothing to cancel
            silence(self.spark)
            while True:
                self.spark.sparkContext.cancelJobsWithTag(self.tag)
                if self.ended.wait(_CANCEL_INTERVAL_S):
                    return

    def _outputs(self, inputs: Inputs, static: Iterable[Event]) -> Iterator[Output]:
        processor = self.processor
        processor.documents = (*inputs.documents, Document("static", spooled=True, static=True))
        if self._runs_as_one_batch(inputs):
            start = self._start(static, inputs)
            parts = [*start.parts, *file_tasks(self.spark, inputs)]
            everything = start._replace(parts=parts, texts=list(frame_lines(inputs)))
            yield from processor.run_batch(everything, inputs.sources, last=bool(inputs.documents), keep=False)
            if self.query.spool is not None:
                self.query.spool.acknowledge()
            return
        _check_streaming_frames(inputs)
        with processor.reporting():
            first = self._start(static, inputs) if processor.batches.log.committed_count == 0 else None
            if inputs.documents:
                yield from self.query.outputs(inputs, first)
            elif first is not None:
                yield from processor.run_batch(first)
            if inputs.documents and processor.batches.unfinished and not self.query.stopped:
                yield from processor.run_batch(BatchInput(), last=True)
        if not self.query.stopped:
            processor.committer.pre_commit(processor.batches.log.committed_count, last=True)
            processor.committer.commit()

    def _runs_as_one_batch(self, inputs: Inputs) -> bool:
        """Returns whether one batch can process all input: it is bounded, and no later run needs its state."""
        ends = self.options.checkpoint is None and not inputs.live
        return self.options.run_as_one_batch or (ends and not self.processor.settings.max_files_per_trigger)

    def _start(self, static: Iterable[Event], inputs: Inputs) -> BatchInput:
        """Returns the initial batch: axioms and static data, if there are any."""
        file = self.path / "spool" / "static" / "static.json"
        processor, input_sampler = self.processor, InputSampler(self.processor.plan)
        pattern_sampler = self.adaptation.first_sampler()
        samplers = [sampler for sampler in (input_sampler, pattern_sampler) if sampler is not None]
        static_events = (event._replace(time=ALWAYS) for event in chain(static, self.static_events))
        with disk_errors(self.path):
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = write_lines(file, chain.from_iterable(map(spool_lines, counted_by(samplers, static_events))))
            if draft is not None:
                publish(draft)
        beginnings: Iterable[Head] = heads(inputs)
        if pattern_sampler is not None:
            beginnings = list(beginnings)
            if self._has_better_plan(pattern_sampler, beginnings, inputs):
                input_sampler = InputSampler(processor.plan)
                for events in spooled_events(file) if draft is not None else ():
                    input_sampler.count(events)
        if processor.batches.program.physical.strategy.is_staged:
            partitions, settings = processor.engine.partitions, processor.settings
            samples = (head.events for head in beginnings)
            joins = choose_join_strategies(processor.plan, input_sampler.rows, samples, settings, partitions)
            processor.set_join_strategies(joins)
        first = processor.batches.initial_records()
        if draft is None:
            return BatchInput(first=first)
        return BatchInput(parts=shared(self.spark, [(len(inputs.documents), str(file))]), first=first)

    def _has_better_plan(self, sampler: PatternSampler, beginnings: Sequence[Head], inputs: Inputs) -> bool:
        """Replaces the plan if another one is better for the beginnings of all sources, and returns whether it is.

        If one of them has no beginning yet, it is not known what the run will read.
        """
        return 0 < len(beginnings) == len(inputs.documents) and self.adaptation.before_run(sampler, beginnings)

    def _inputs(self, batches: Iterable[Sequence[Event]]) -> Inputs:
        """Describes the input. Spark reads what it can; the driver spools the rest: at once if it is bounded, else
        while the query runs."""
        sources = batches.sources if isinstance(batches, Sources) else ()
        if isinstance(batches, Sources) and batches.are_read_together:
            sources = ()
        executor_source = executor_sources.chosen(self.spark, self.store, batches if sources else ())
        spark_sources = [source for source in sources if readable(source) or source is executor_source.source]
        check_clock(batches, spark_sources)
        counted_sources: list[Source | None] = [*spark_sources]
        documents = [document_of(source, executor_source) for source in spark_sources]
        live = is_live(batches)
        driver_inputs = _rest(batches, spark_sources)
        _check_end(driver_inputs, spark_sources)
        if driver_inputs is not None:
            spool = self._spooled(driver_inputs, live)
            documents.append(Document(str(spool.files), folder=True, spooled=True))
            counted_sources.append(None)
        endless = any(source.live for source in spark_sources)
        spooled, max_files = driver_inputs is not None, self.processor.settings.max_files_per_trigger
        return Inputs(tuple(documents), tuple(counted_sources), live, endless, executor_source, spooled, max_files)

    def _spooled(self, driver_inputs: Sources | ReplayedBatches, live: bool) -> Spool:
        """Returns the spool of what the driver reads: complete, or, for live input, started."""
        is_resumable = self.options.checkpoint is not None
        spool = Spool(self.path, driver_inputs, is_resumable, self.query.fail, self.processor.tuning)
        self.query.spool = spool
        if self.query.ending.is_set():
            spool.stop()
        if live:
            self.static_events = () if is_resumable else driver_inputs.static_events()
            spool.start()
        else:
            spool.write()
        return spool


def _rest(batches: Iterable[Sequence[Event]], spark_sources: Sequence[Source]) -> Sources | ReplayedBatches | None:
    """Returns the input that Spark does not read itself; None: there is none."""
    if not isinstance(batches, Sources):
        return ReplayedBatches(batches)
    numbers = [number for number, source in enumerate(batches.sources) if source not in spark_sources]
    ledgers = [batches.ledgers[number] for number in numbers] if batches.ledgers else []
    sources = [batches.sources[number] for number in numbers]
    return Sources(sources, batches.clock, batches.heartbeat, ledgers) if sources else None


def _check_end(driver_inputs: Sources | ReplayedBatches | None, spark_sources: Sequence[Source]) -> None:
    """Raises BuilderError if a source of the driver is to end with sources of which only Spark knows when they end."""
    sources = driver_inputs.sources if isinstance(driver_inputs, Sources) else ()
    are_bounded = bool(spark_sources) and not any(source.live for source in spark_sources)
    if sources and all(map(ends_with_others, sources)) and are_bounded:
        raise BuilderError(
            f"`{sources[0].uri}` does not end with `{spark_sources[0].uri}`, which Spark reads by itself",
            hint="say where it ends: `tick:1s?until=2026-01-01T00:00:00Z`",
        )


def _check_streaming_frames(inputs: Inputs) -> None:
    """Raises BuilderError if a batch DataFrame would have to be read as a stream."""
    for source in inputs.sources:
        if isinstance(source, FrameSource) and not source.live:
            raise BuilderError(
                f"`{source.uri}` is all there at once, and this run goes on batch by batch",
                hint="leave the checkpoint and live sources out, or read it by `spark.readStream`",
            )
