"""The pipeline of a live run: an unbounded read of micro-batches, and the step that processes them.

The driver writes what live sources have brought as a micro-batch, the file `batch-N` (`squall.builders.beam.live`). The
read, a splittable `DoFn` without an end, tails these files. The step behind it runs the whole plan. It writes the
outputs of a micro-batch, and its changelog, as `answers-N`. So a micro-batch that runs again changes nothing, and a new
instance of the step resumes from those files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import pyarrow
from pyarrow import compute

from squall.builders.beam import files
from squall.builders.beam.beam_import import beam
from squall.builders.beam.graph import LiveGraph
from squall.builders.beam.options import DEFAULT_TUNING, BeamTuning
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.sharded_plan import task_dead_letters, task_ledger
from squall.builders.distributed.io.parsing import unspool
from squall.builders.distributed.io.records import (
    DEAD_LETTER,
    INSTANT,
    ROW,
    STATE,
    Answer,
    DeadLetter,
    Instant,
    Record,
    RowBatch,
    WorkerRecord,
    as_row_batches,
    from_arrow,
    to_arrow,
)
from squall.builders.local.event_loop import EventLoop
from squall.builders.runtime.serde import pack_output, unpack_output
from squall.builders.runtime.state import StateChangelog
from squall.contracts import Options, Output
from squall.rdf import Event

_TIMES = beam.utils.timestamp
_BATCH, _ANSWERS, _END = "batch", "answers", "end"
"""Prefixes of file names. `end` says that there are no more micro-batches, or that none is wanted any longer."""
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.0005, 0.01
"""Seconds between two looks for a file: at first, and when nothing has come for a while."""
MAX_BATCHES_SINCE_SNAPSHOT = 1024
"""The most micro-batches after which the whole state is written again."""
_LAST = (1 << 63) - 1
"""A number behind all micro-batches."""
_MICROS = 1000
"""Microseconds of a millisecond."""


def add_live_steps(
    root: Any, graph: LiveGraph, program: Program, steps: int, folder: str, tuning: BeamTuning = DEFAULT_TUNING
) -> None:
    """Adds the processing of micro-batches to a pipeline. steps: the most updates without an event in between."""
    read = Read(bundle_of(root, tuning))
    batches = root | f"{graph.batches}: folder" >> beam.Create([folder]) | graph.batches >> beam.ParDo(read)
    _ = batches | graph.all >> beam.ParDo(Work(program, steps, tuning))


# Files, for the driver as well


def write_batch(folder: str, number: int, events: Sequence[Event]) -> None:
    """Writes a micro-batch. One without events, except the first, says that no more events will come for the time
    being."""
    files.spool(folder, f"{_BATCH}-{number}", [events])


def write_end(folder: str) -> None:
    """Says that no more micro-batches are wanted."""
    files.spool(folder, _END, ())


def is_done(folder: str, number: int) -> bool:
    """Returns whether a micro-batch has been processed."""
    return files.exists(f"{folder}/{_ANSWERS}-{number}")


class BatchResult(NamedTuple):
    """The result of a micro-batch. base: the last one up to it that wrote the whole state."""

    outputs: list[Output]
    dead_letters: list[DeadLetter]
    base: int


def read_result(folder: str, number: int) -> BatchResult:
    """Returns the result of a processed micro-batch."""
    records = list(_said(folder, number, (ROW, DEAD_LETTER, INSTANT)))
    outputs = [unpack_output(record.row, record.start) for record in records if record.type == ROW]
    dead_letters = [DeadLetter(*json.loads(record.row)) for record in records if record.type == DEAD_LETTER]
    return BatchResult(outputs, dead_letters, _times(records)["base"])


def delete_batch(folder: str, number: int) -> None:
    """Deletes the input of a processed micro-batch."""
    files.delete_file(f"{folder}/{_BATCH}-{number}")


def delete_result(folder: str, number: int) -> None:
    """Deletes the result of a micro-batch from which no step resumes any longer."""
    files.delete_file(f"{folder}/{_ANSWERS}-{number}")


def _said(folder: str, number: int, kinds: Sequence[str]) -> Iterator[Record]:
    return from_arrow(_of_kinds(folder, number, kinds))


def _of_kinds(folder: str, number: int, kinds: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
    kind_array = pyarrow.array(kinds)
    for batch in files.read(f"{folder}/{_ANSWERS}-{number}"):
        yield batch.filter(compute.is_in(batch["kind"], kind_array))


def _times(records: Iterable[Record]) -> dict[str, int]:
    return {record.row: record.start for record in records if record.type == INSTANT}


# Reading


MicroBatch = tuple[str, int, bytes]
"""A micro-batch: its folder, its number, and its events as lines. (They are bytes because Beam measures what goes from
step to step, and would pickle everything else for that.)"""


class _Tracker(beam.io.restriction_trackers.OffsetRestrictionTracker):  # type: ignore[misc]
    """Tracks micro-batches from a number on. They are sequential, so the remainder can be deferred, but not processed
    in parallel."""

    def try_split(self, fraction_of_remainder: float) -> Any:
        return super().try_split(0) if fraction_of_remainder == 0 else None

    def is_bounded(self) -> bool:
        return False


class _MicroBatches(beam.transforms.core.RestrictionProvider):  # type: ignore[misc]
    """All micro-batches of a folder."""

    def initial_restriction(self, folder: str) -> Any:
        return beam.io.restriction_trackers.OffsetRange(0, _LAST)

    def create_tracker(self, restriction: Any) -> _Tracker:
        return _Tracker(restriction)

    def restriction_size(self, folder: str, restriction: Any) -> int:
        return 1  # nobody knows


_MICRO_BATCHES = beam.DoFn.RestrictionParam(_MicroBatches())
WATERMARK = beam.DoFn.WatermarkEstimatorParam(beam.io.watermark_estimators.ManualWatermarkEstimator.default_provider())


def bundle_of(pipeline: Any, tuning: BeamTuning = DEFAULT_TUNING) -> float:
    """Returns for how many seconds an unbounded read of a pipeline goes on before it defers its remainder. It is
    infinite for a runner that would commit nothing, and leak 20 KB of memory each time."""
    local = isinstance(pipeline.runner, beam.runners.portability.fn_api_runner.FnApiRunner)
    return inf if local else tuning.bundle_time


class Read(beam.DoFn):  # type: ignore[misc]
    """Reads the micro-batches of a folder as they arrive. The watermark is the time of the last event. bundle: see
    `bundle_of`."""

    def __init__(self, bundle: float) -> None:
        self.bundle = bundle

    @beam.DoFn.unbounded_per_element()  # type: ignore[untyped-decorator]
    def process(self, folder: str, batches: Any = _MICRO_BATCHES, watermark: Any = WATERMARK) -> Iterator[MicroBatch]:
        number = max(batches.current_restriction().start, _behind(folder))
        until = time.monotonic() + self.bundle
        while (has_batch := _awaited(folder, number, until)) is not None:
            if not has_batch:
                batches.try_claim(_LAST - 1)
                return
            if not batches.try_claim(number):
                return
            lines = files.read_whole(f"{folder}/{_BATCH}-{number}")
            yield folder, number, lines
            for event in unspool(lines[lines.rfind(b"\n", 0, -1) + 1 :]):
                advance(watermark, event.time)
            number += 1
        batches.defer_remainder()


def advance(watermark: Any, time: int) -> None:
    """Moves a watermark forward to an event time (integer ms)."""
    latest = timestamp(time)
    if (watermark.current_watermark() or _TIMES.MIN_TIMESTAMP) < latest < _TIMES.MAX_TIMESTAMP:
        watermark.set_watermark(latest)


def timestamp(time: int) -> Any:
    """Converts a time (integer ms) to Beam's type."""
    return _TIMES.Timestamp(micros=time * _MICROS)


def _behind(folder: str) -> int:
    """Returns the number after the last processed micro-batch: a repeated read begins there."""
    numbers = (int(path.rpartition("-")[2]) for path in files.names(f"{folder}/{_ANSWERS}-*"))
    return max(numbers, default=-1) + 1


def _awaited(folder: str, number: int, until: float) -> bool | None:
    """Waits for a micro-batch. Returns whether it will come; None: it has not come until `until`."""
    pause = MIN_POLL_SECONDS
    while not files.exists(f"{folder}/{_END}"):
        if files.exists(f"{folder}/{_BATCH}-{number}"):
            return True
        if time.monotonic() > until:
            return None
        time.sleep(pause)
        pause = min(2 * pause, MAX_POLL_SECONDS)
    return False


# Processing micro-batches


class Work(beam.DoFn):  # type: ignore[misc]
    """Processes micro-batches. The plan keeps running between two that the same instance processes."""

    def __init__(self, program: Program, steps: int, tuning: BeamTuning = DEFAULT_TUNING) -> None:
        self.program = program
        self.steps = steps
        self.tuning = tuning
        self.plan: RunningPlan | None = None

    def process(self, micro_batch: MicroBatch) -> None:
        folder, number, lines = micro_batch
        plan, self.plan = self.plan, None  # after a failure in the middle it is of no use
        if plan is None or plan.next != number:
            plan = RunningPlan(self.program, self.steps, folder, number, self.tuning)
        files.write(folder, f"{_ANSWERS}-{number}", to_arrow(plan.process(unspool(lines))))
        self.plan = plan


@dataclass
class _Written:
    """What state has been written.

    Attributes:
        base: the last micro-batch that wrote the whole state.
        whole: how many rows it wrote.
        added: how many rows have been written since.
    """

    base: int = 0
    whole: int = 0
    added: int = 0

    def is_due(self, number: int, compaction_interval: int) -> bool:
        """Returns whether a micro-batch is to write the whole state: when as many rows have been added, or very many
        micro-batches have passed."""
        batches = number - self.base
        return batches >= MAX_BATCHES_SINCE_SNAPSHOT or (batches >= compaction_interval and self.added >= self.whole)


class RunningPlan:
    """A running plan of a live run. next: the number of the next micro-batch; earlier results are in files."""

    def __init__(
        self, program: Program, steps: int, folder: str, next: int, tuning: BeamTuning = DEFAULT_TUNING
    ) -> None:
        program.prepare()
        self.program = program
        self.compaction_interval = tuning.compaction_interval
        self.folder = folder
        self.next = next
        self.event_loop = EventLoop(program.plan, Options(max_update_steps=steps, ledger=task_ledger()))
        self.names = list(self.event_loop.states)
        self.written = _Written()
        if next:
            self._go_on()
        self.event_loop.states.enable_changelog()

    def _go_on(self) -> None:
        """Restores the state from the changelogs of the earlier micro-batches."""
        times = _times(_said(self.folder, self.next - 1, (INSTANT,)))
        self.written.base = times["base"]
        state = self._state()
        self.written.added = state.size()
        self.event_loop.restore(times["passed"], self.program.static_time, state.deltas)

    def _state(self) -> StateChangelog:
        """Reads the state that earlier micro-batches have written, back to the last one that wrote all of it."""
        state = StateChangelog()
        for number in range(self.written.base, self.next):
            for batch in as_row_batches(_of_kinds(self.folder, number, (STATE,))):
                state.add([(self.names[batch.node], batch.port, batch.deltas)])
        return state

    def process(self, events: Sequence[Event]) -> Iterator[WorkerRecord]:
        """Processes the next micro-batch and yields its records."""
        for output in self._outputs(events):
            yield Answer(pack_output(output), output.time)
        yield from task_dead_letters(self.event_loop)
        is_whole = self.written.is_due(self.next, self.compaction_interval)
        changelog = self._state() if is_whole else StateChangelog()
        changelog.add(self.event_loop.states.drain_changelog())
        if is_whole:
            changelog.compact(self.event_loop.states, self.event_loop.watermark)
            self.written = _Written(self.next, changelog.size())
        else:
            self.written.added += changelog.size()
        for (id, slot), deltas in changelog.deltas.items():
            if deltas:
                yield RowBatch(STATE, 0, 0, self.names.index(id), slot, deltas)
        for name, number in (("passed", self.event_loop.watermark), ("base", self.written.base)):
            yield Instant(name, 0, number)
        self.next += 1

    def _outputs(self, events: Sequence[Event]) -> Iterator[Output]:
        if not self.next:
            output_batches = self.event_loop.start(events, self.program.static_time)
        else:
            output_batches = self.event_loop.process(events) if events else self.event_loop.drain()
        for outputs in output_batches:
            yield from outputs
