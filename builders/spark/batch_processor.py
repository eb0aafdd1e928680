"""Processes the batches of a run on Spark, from their input to their outputs, and commits them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING

from squall import functions
from squall.builders.distributed.exec.logged_batches import LoggedBatches
from squall.builders.distributed.exec.micro_batch import batches_of
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io.ingest import record_dead_letter
from squall.builders.distributed.io.parsing import Document, lines_parser
from squall.builders.distributed.io.records import SourceCount
from squall.builders.distributed.io.splits import fixed_splits_parser, split_bytes, splits_parser
from squall.builders.distributed.plan.broadcast import closure_inputs
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.builders.spark.batch_metrics import BatchClock, source_statements
from squall.builders.spark.engine import SparkEngine
from squall.builders.spark.folder import FolderWriter
from squall.builders.spark.inputs import BatchInput
from squall.builders.spark.join_strategies import JoinStrategies
from squall.builders.spark.metrics_listener import Reporter
from squall.builders.spark.session import is_local
from squall.builders.spark.settings import SparkTuning, session_settings
from squall.builders.spark.sink_commit import SinkCommitter
from squall.builders.spark.store import Store, plan_data
from squall.builders.spark.workers import by_workers
from squall.contracts import Folder, Options, Output
from squall.plan import Plan
from squall.streams import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class BatchProcessor:
    """Processes the batches of a run.

    Args:
        plan: the plan.
        options: the options of the job.
        spark: the session.
        store: the files of the run.
        static_time: the time that functions of time see for static facts (integer ms).
        tuning: the tuning values of the builder.

    Attributes:
        batches: processes records, stage by stage or in shards.
        committer: saves the position of sink and dead-letter ledger with each batch.
        folder_writer: writes the outputs, if the sink is a folder.
        documents: the documents of all sources, by number, followed by that of static data.
        reporter: reports the node metrics, if they are measured.
        clock: measures the batches.
    """

    def __init__(
        self, plan: Plan, options: Options, spark: SparkSession, store: Store, static_time: int, tuning: SparkTuning
    ) -> None:
        self.plan = plan
        self.options = options
        self.store = store
        self.tuning = tuning
        self.settings = session_settings(spark, options.conf)
        self.engine = SparkEngine(spark, store)
        self.batches = self._batches(store.join_strategies(), static_time)
        self.committer = SinkCommitter(options, store)
        self.folder_writer = _folder_writer(plan, options.sink, store.run())
        self.documents: tuple[Document, ...] = ()
        self.reporter: Reporter | None = None
        self.clock = BatchClock(options.on_batch)

    def _program(self, plan: Plan, joins: JoinStrategies, static_time: int) -> Program:
        physical = physical_plan(plan, joins.broadcast_inputs | closure_inputs(plan), joins.skewed_keys)
        return Program(physical, functions.own(), static_time, self.options.measure)

    def _batches(self, joins: JoinStrategies, static_time: int) -> LoggedBatches:
        program = self._program(self.plan, joins, static_time)
        physical = program.physical
        max_cached_rows, local = self.settings.max_cached_state_rows, is_local(self.engine.spark)
        limits = BatchLimits(
            self.settings.max_single_task_rows,
            max_cached_rows,
            self.settings.single_task_bytes(physical.stages, local),
            max_cached_rows if local else 0,  # there is one worker for it, which holds what it has done
            self.tuning.compaction_interval,
        )
        return batches_of(self.engine, self.store, program, limits, self.options.max_update_steps)

    def set_join_strategies(self, joins: JoinStrategies) -> None:
        """Sets how joins are executed in all batches, before the first one."""
        self.store.save_join_strategies(joins)
        if any(joins):
            self.batches = self._batches(joins, self.batches.program.static_time)

    def begin_with(self, plan: Plan, unseeded: Plan) -> None:
        """Replaces the plan before the first batch. plan, unseeded: see `move`."""
        self.store.begin_with(unseeded)
        self.plan = plan
        self.batches = self._batches(self.store.join_strategies(), self.batches.program.static_time)

    def move(self, plan: Plan, unseeded: Plan) -> None:
        """Moves the state of the committed batches to another plan.

        Args:
            plan: the plan.
            unseeded: the same, to which no seed is applied.

        Raises:
            CannotReplan: the state is not known to be that of the other plan. The run may go on.
        """
        batches = self.batches
        before = batches.program.physical
        joins = JoinStrategies(before.broadcast_inputs - closure_inputs(self.plan), before.skewed_keys)
        joins = joins.moved(self.plan, plan)
        program = self._program(plan, joins, batches.program.static_time)
        self.committer.pre_commit(batches.log.committed_count + 1)
        batches.move(program, self.plan, plan, plan_data(unseeded, joins))
        self.committer.commit()
        self.plan = plan
        self.batches = self._batches(joins, program.static_time)

    def statement_count(self) -> int:
        """Returns the number of statements of the last batch, apart from static data."""
        return source_statements(self.batches.report, len(self.documents) - 1)

    def reporting(self) -> AbstractContextManager[None]:
        """Returns a context in which Spark's listeners receive the node metrics, if they are measured."""
        if not self.options.measure:
            return nullcontext()
        self.reporter = Reporter(self.engine.spark, self.store)
        return self.reporter.at_work()

    def process(self, batch_input: BatchInput, last: bool = False, keep: bool = True, is_live: bool = False) -> None:
        """Processes a batch, without a shuffle where its input is small.

        Args:
            batch_input: The input.
            last: See `LoggedBatches.process`.
            keep: See `LoggedBatches.process`.
            is_live: Whether the input has arrived while the run went on.
        """
        parts = list(chain.from_iterable(batch_input.parts))
        self.clock.begin(parts if is_live else ())
        is_work = batch_input.parts or batch_input.first or self.batches.unfinished
        if is_work and not batch_input.texts and self.batches.is_unshuffled(sum(map(split_bytes, parts))):
            parse = fixed_splits_parser(self.documents, parts)
            self.batches.process_unshuffled(parse, batch_input.first, last, keep)
        else:
            self.batches.process(self._records(batch_input), last, keep)

    def _records(self, batch_input: BatchInput) -> DataFrame | None:
        """Returns the records of a batch's input; None: there are none."""
        frames: list[DataFrame] = []
        if batch_input.first:
            frames.append(self.engine.generate(self.batches.initial_step(batch_input.first)))
        if batch_input.parts:
            step = self.batches.source_step(splits_parser(self.documents, batch_input.parts))
            tasks = len(batch_input.parts)
            frames.append(by_workers(self.engine.spark.range(0, tasks, 1, tasks), step))
        if batch_input.texts:
            step = self.batches.source_step(lines_parser(self.documents))
            frames += (by_workers(text, step) for text in batch_input.texts)
        return self.engine.union(frames) if frames else None

    def outputs(self, sources: Sequence[Source | None] = ()) -> Iterator[Output]:
        """Records the dead letters of the processed batch, counts what it has read of its sources, and yields its
        outputs."""
        for dead_letter in self.batches.dead_letters():
            record_dead_letter(dead_letter, self.options.ledger, sources)
        for number, count in self.batches.report.all(SourceCount):
            if sources and (source := sources[number]) is not None:
                source.reading.statements += count
        if self.folder_writer is None:
            yield from self.batches.outputs()
        elif files := self.batches.output_files():
            self.folder_writer.write(self.engine.read(files), self.batches.log.committed_count)

    def commit(self, number: int | None) -> None:
        """Commits a batch whose outputs have been taken: makes them durable first, then counts the batch. number:
        Spark's number of the micro-batch, if it has one."""
        self.committer.pre_commit(self.batches.log.committed_count + 1)
        self.batches.commit(number)
        self.committer.commit()
        self.clock.end(self.batches.report, len(self.documents) - 1)
        if self.batches.log.committed_count % self.tuning.compaction_interval == 0:
            gc.collect()  # py4j leaves cycles, and by them what Java has of DataFrames that nobody needs
        if self.reporter is not None:
            self.reporter.tell(self.batches.log.committed_count - 1, self.batches.log.node_metrics.by_node())

    def run_batch(
        self, batch_input: BatchInput, sources: Sequence[Source | None] = (), last: bool = False, keep: bool = True
    ) -> Iterator[Output]:
        """Processes and commits a batch outside the streaming query: the initial one, the final one, or all input at
        once (keep: False)."""
        self.process(batch_input, last, keep)
        yield from self.outputs(sources)
        self.commit(None)


def _folder_writer(plan: Plan, sink: object, run: str) -> FolderWriter | None:
    """Returns what writes the outputs of a run, by its name, if the sink is a folder."""
    if not isinstance(sink, Folder):
        return None
    return FolderWriter(plan, sink, Store(sink.path), run)
