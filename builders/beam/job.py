"""A job of the Beam builder: the driver reads input for a pipeline, and yields its outputs."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os.path import getsize
from pathlib import Path
from typing import Any

from squall import functions
from squall.builders.beam import files
from squall.builders.beam.batch_metrics import BatchClock
from squall.builders.beam.graph import describe, graph, live_graph
from squall.builders.beam.live import Live
from squall.builders.beam.live_pipeline import add_live_steps
from squall.builders.beam.options import DEFAULT_TUNING, BeamTuning, Runner
from squall.builders.beam.pipeline import Input, KeyedPipeline, add_whole_plan, answers, evaluations, worker_reports
from squall.builders.beam.serialized_program import SerializedPlan
from squall.builders.distributed.exec.output_stage import snapshot_outputs
from squall.builders.distributed.exec.sharded_plan import ShardedProgress, ShardTask
from squall.builders.distributed.io.ingest import (
    check_bounded,
    check_clock,
    document_of,
    drop_late_events,
    is_live,
    is_readable_by_workers,
    record_dead_letter,
)
from squall.builders.distributed.io.parsing import Document, lines_parser
from squall.builders.distributed.io.records import (
    DEAD_LETTER,
    ROW,
    SOURCE_COUNT,
    WATERMARK,
    DeadLetter,
    Record,
    WorkerError,
)
from squall.builders.distributed.io.splits import Split, splits_of
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.local.replay import ReplayedBatches
from squall.builders.runtime.operators.scan import predicates_to_read
from squall.builders.runtime.serde import unpack_output
from squall.contracts import (
    AcceptsDeadLetters,
    BatchMetrics,
    BuilderCapabilities,
    Options,
    Output,
    SupportsFilterPushDown,
    declare_capabilities,
)
from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.seeds import FIXED_SEED, with_seed
from squall.rdf import ALWAYS, FOREVER, Event
from squall.streams import FileSource, FolderSource, Source, Sources
from squall.streams.clock import beginning

_STATIC = -2
"""The place of static data among the documents of a bounded run, from the end: in front of what the driver spools."""


@declare_capabilities(BuilderCapabilities(one_batch=True, settings=True, batch_metrics=True))
def build(plan: Plan, options: Options) -> BeamJob:
    """Runs a plan as a pipeline of Apache Beam's Python SDK.

    The job uses the runner that `options.conf` names, or the local one.

    Raises:
        BuilderError: The runner that the options name cannot be used.
    """
    return BeamJob(plan, options, Runner(options.conf))


class BeamJob:
    """A plan with its options and a runner; `run` may be called once."""

    def __init__(self, plan: Plan, options: Options, runner: Runner, tuning: BeamTuning = DEFAULT_TUNING) -> None:
        self.plan = plan
        self.options = options
        self.runner = runner
        self.tuning = tuning
        self.abandoned = threading.Event()
        """Set when the run is interrupted and the process is to end."""
        self._has_begun = False

    def describe(self) -> str:
        """Describes the physical plan and the steps of its pipeline as text."""
        return describe(physical_plan(self.plan, in_one_job=True))

    def as_data(self) -> dict[str, Any]:
        """Returns the physical plan of bounded input as JSON data."""
        return physical_plan(self.plan, in_one_job=True).as_data()

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.contracts.Job.run`.

        Bounded input (a list of batches, or `Sources` none of which is live) is read to its end before the first
        output. Outputs of live input are yielded as they arise.
        """
        if self._has_begun:
            raise BuilderError("the job has run", hint='build another one: `squall.build(plan, "beam")`')
        self._has_begun = True
        if isinstance(batches, Sources):
            batches.abandon_run = self.abandoned.set
        try:
            with WorkerError.retold():
                yield from self._outputs(batches, static)
        except Exception as error:  # Beam makes an error of KeyboardInterrupt
            if self.abandoned.is_set():
                raise KeyboardInterrupt from error
            raise

    def _outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        begin = beginning(batches) if self.options.now is None else self.options.now
        if self.options.run_as_one_batch:
            check_bounded(batches)
        if isinstance(batches, AcceptsDeadLetters):
            batches.set_ledger(self.options.ledger)
        plan = with_seed(self.plan, FIXED_SEED if self.options.seed is None else self.options.seed)
        program = SerializedPlan(physical_plan(plan, in_one_job=True), functions.own(), begin)
        folder = files.make_folder(self.runner.temporary or tempfile.gettempdir())
        run = _Run(program, self.options, self.runner, folder, self.tuning, self.abandoned)
        try:
            yield from run.live_outputs(batches, static) if is_live(batches) else run.bounded_outputs(batches, static)
        finally:
            files.delete([folder])


@dataclass(frozen=True)
class _Run:
    """One run of a job: the driver's side. folder: where it reads and writes."""

    program: SerializedPlan
    options: Options
    runner: Runner
    folder: str
    tuning: BeamTuning
    abandoned: threading.Event

    # Bounded input: one pipeline

    def bounded_outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """Yields the outputs of bounded input, in one pipeline."""
        began = time.monotonic()
        pipeline_input, sources = self._pipeline_input(batches, static)
        program, steps = self.program, graph(self.program.physical)
        is_staged = program.physical.strategy.is_staged
        if not is_staged:
            task = ShardTask(program, ShardedProgress(), self.options.max_update_steps, first=True, last=True)
            self.runner.run(lambda pipeline: add_whole_plan(pipeline, steps, program, pipeline_input, task))
        else:
            self.runner.run(lambda pipeline: KeyedPipeline(pipeline, steps, program, pipeline_input).build())
        reports = self._reports(sources)
        yield from self._outputs_of_bounded(reports, is_staged)
        if self.options.on_batch is not None:
            static_number = len(sources) + _STATIC
            counts = (record for record in reports if record.type == SOURCE_COUNT and record.node != static_number)
            statements = sum(record.start for record in counts)
            self.options.on_batch(BatchMetrics(began, began, time.monotonic(), statements, FOREVER - 1))

    def _outputs_of_bounded(self, reports: Sequence[Record], is_staged: bool) -> Iterator[Output]:
        if not is_staged:
            for record in answers(self.folder):
                if record.type == ROW:
                    yield unpack_output(record.row, record.start)
                elif record.type == DEAD_LETTER:
                    self._lose(DeadLetter(*json.loads(record.row)))
        elif any(record.type == WATERMARK for record in reports):
            yield from self._outputs(reports)
        else:  # no time passes: what static data begin later does not begin
            yield from (output for output in self._outputs(reports) if output.time == ALWAYS)

    def _pipeline_input(
        self, batches: Iterable[Sequence[Event]], static: Iterable[Event]
    ) -> tuple[Input, tuple[Source | None, ...]]:
        """Returns the input of workers, and the sources for which they count statements. The driver spools what workers
        cannot read."""
        sources = batches.sources if isinstance(batches, Sources) else ()
        are_together = isinstance(batches, Sources) and batches.are_read_together
        worker_sources = [source for source in sources if is_readable_by_workers(source) and not are_together]
        check_clock(batches, worker_sources)
        driver_sources = [source for source in sources if source not in worker_sources]
        driver_batches: Iterable[Sequence[Event]] = batches
        if isinstance(batches, Sources):
            driver_batches = Sources(driver_sources, batches.clock, batches.heartbeat) if driver_sources else ()
        event_parts = [part for number, source in enumerate(worker_sources) for part in self._parts(number, source)]
        event_parts += self._spooled(
            len(worker_sources) + 1, "events.json", drop_late_events(driver_batches, self._lose)
        )
        static_parts = self._spooled(len(worker_sources), "static.json", ([_always(event)] for event in static))
        documents = (
            *map(document_of, worker_sources),
            *(Document(name, spooled=True) for name in ("static", "events")),
        )
        parts = [*event_parts, *static_parts]
        return Input(parts, lines_parser(documents), self.folder), (*worker_sources, None, None)

    def _spooled(self, number: int, name: str, batches: Iterable[Sequence[Event]]) -> list[Split]:
        size = files.spool(self.folder, name, batches)
        return splits_of(number, f"{self.folder}/{name}", size, self.tuning.split_bytes) if size else []

    def _parts(self, number: int, source: Source) -> list[Split]:
        assert isinstance(source, FileSource | FolderSource)
        paths = (str(Path(path).absolute()) for path in source.files())
        most = self.tuning.split_bytes
        return [part for path in paths for part in splits_of(number, path, getsize(path), most)]

    def _outputs(self, reports: Sequence[Record]) -> Iterator[Output]:
        rows = ((record.start, record.node, record.row) for record in answers(self.folder))
        yield from snapshot_outputs(rows, self.program.physical.sinks, evaluations(self.program, reports))

    def _reports(self, sources: Sequence[Source | None]) -> list[Record]:
        """Returns the reports of workers, after recording dead letters and counting statements."""
        reports = worker_reports(self.folder)
        for record in reports:
            if record.type == DEAD_LETTER:
                record_dead_letter(DeadLetter(*json.loads(record.row)), self.options.ledger, sources)
            elif record.type == SOURCE_COUNT and (source := sources[record.node]) is not None:
                source.reading.statements += record.start
        return reports

    # Live input: one pipeline with micro-batches

    def live_outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """Yields the outputs of live input as they arise, in one pipeline."""
        self.runner.check_live()
        if (
            isinstance(batches, SupportsFilterPushDown)
            and (predicates := predicates_to_read(self.program.plan)) is not None
        ):
            batches.push_down(predicates)
        inputs = batches if isinstance(batches, Sources) else ReplayedBatches(batches)
        steps = live_graph(self.program.plan)
        earliest = ALWAYS + self.program.needs_complete_instants

        def lay(pipeline: Any) -> None:
            add_live_steps(pipeline, steps, self.program, self.options.max_update_steps, self.folder, self.tuning)

        on_batch = self.options.on_batch
        clock = None if on_batch is None else BatchClock(on_batch, self.program.needs_complete_instants)
        live = Live(self.folder, inputs, self._lose, self.abandoned, earliest, self.tuning, clock)
        yield from live.outputs(lambda: self.runner.run(lay, live=True), map(_always, static))

    # Both

    def _lose(self, dead_letter: DeadLetter) -> None:
        record_dead_letter(dead_letter, self.options.ledger)


def _always(event: Event) -> Event:
    return event._replace(time=ALWAYS)
