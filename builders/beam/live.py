"""The driver of a live run: it prefetches sources, feeds micro-batches to one pipeline, and yields their outputs.

One thread reads the sources, another one runs the pipeline. When the pipeline has room, buffered events become a
micro-batch (`squall.builders.beam.live_pipeline`). The driver yields its outputs as soon as they are there, and then
acknowledges it to the sources.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from squall.builders.beam.batch_metrics import BatchClock
from squall.builders.beam.live_pipeline import (
    MAX_POLL_SECONDS,
    MIN_POLL_SECONDS,
    delete_batch,
    delete_result,
    is_done,
    read_result,
    write_batch,
    write_end,
)
from squall.builders.distributed.io.prefetch import EndOfSources, PrefetchedBatch, Prefetcher, split_end
from squall.builders.distributed.io.records import DeadLetter
from squall.builders.local.replay import ReplayedBatches
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.contracts import Output
from squall.errors import BuilderError
from squall.rdf import Event
from squall.streams import Sources

MAX_BATCHES_IN_FLIGHT = 2
"""The number of micro-batches without outputs yet, for backpressure: the current one, and the next one."""
_IDLE_POLL_SECONDS = 0.1
"""Seconds between two looks whether the pipeline is still running, while nothing arrives."""


class Pipeline:
    """A pipeline that runs in a thread."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="runs the pipeline", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._run()
        except BaseException as error:  # raised by the thread that takes the outputs
            self._error = error

    @property
    def ended(self) -> bool:
        """Whether it has stopped. Its results are then visible."""
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException:
        """The reason why the pipeline has ended before its sources."""
        return self._error or BuilderError("the pipeline has ended, and its sources have not")

    def join(self, abandoned: threading.Event) -> None:
        """Waits until it has ended, or has been abandoned."""
        while self._thread.is_alive() and not abandoned.is_set():
            self._thread.join(_IDLE_POLL_SECONDS)


class PendingBatch(NamedTuple):
    """A micro-batch whose outputs have not been yielded yet.

    Attributes:
        number: its number; None: it has nothing but dead letters.
        lost: its dead letters.
        positions: the positions of the sources behind it.
    """

    number: int | None
    lost: Sequence[DeadLetter]
    positions: Mapping[int, str]


class Live:
    """A live run.

    Args:
        folder: where micro-batches and their results are.
        inputs: the sources.
        lose: receives dead letters.
        abandoned: set when the process is to end, whatever the pipeline still has to do.
        earliest: the time before which an event is late when the run has begun (integer ms).
        tuning: the tuning values of the builder.
        clock: measures the micro-batches, if there is one.
    """

    def __init__(
        self,
        folder: str,
        inputs: Sources | ReplayedBatches,
        lose: Callable[[DeadLetter], None],
        abandoned: threading.Event,
        earliest: int,
        tuning: Tuning = DEFAULT_TUNING,
        clock: BatchClock | None = None,
    ) -> None:
        self.folder = folder
        self.clock = clock
        self.abandoned = abandoned
        self.intake = Prefetcher(inputs, latest=earliest, tuning=tuning)
        self.lose = lose
        self.batch_count = 0
        """The number of micro-batches so far."""
        self.base = 0
        """The last micro-batch that wrote the whole state, and whose outputs have been yielded."""
        self.waiting: deque[PendingBatch] = deque()
        self.acknowledged: Mapping[int, str] = {}

    def outputs(self, run: Callable[[], None], static: Iterable[Event]) -> Iterator[Output]:
        """Yields the outputs, micro-batch by micro-batch.

        Args:
            run: runs the pipeline.
            static: facts that always hold.
        """
        self._write([*static, *self.intake.inputs.static_events()], [])
        pipeline = Pipeline(run)
        try:
            self.intake.start()
            yield from self._as_they_come(pipeline)
        finally:
            write_end(self.folder)
            self.intake.close()
            pipeline.join(self.abandoned)

    def _as_they_come(self, pipeline: Pipeline) -> Iterator[Output]:
        end: EndOfSources | None = None
        pause = MIN_POLL_SECONDS
        while self.waiting or end is None:
            has_ended = pipeline.ended
            if self.waiting and self._is_done(self.waiting[0]):
                yield from self._yield_batch(self.waiting.popleft())
                pause = MIN_POLL_SECONDS
                continue
            if has_ended:
                raise pipeline.error
            items: list[PrefetchedBatch | EndOfSources] = []
            if end is None and len(self.waiting) < MAX_BATCHES_IN_FLIGHT:
                items = self.intake.take(pause if self.waiting else _IDLE_POLL_SECONDS)
            else:
                time.sleep(pause)
            if items:
                end = self._take(items)
            pause = MIN_POLL_SECONDS if items else min(2 * pause, MAX_POLL_SECONDS)
        if end.error is not None:
            raise end.error

    def _take(self, items: Sequence[PrefetchedBatch | EndOfSources]) -> EndOfSources | None:
        """Makes a micro-batch of what has arrived, and a final one at the end of the input."""
        parts, end = split_end(items)
        events = [event for part in parts for event in part.events]
        if events:
            self._write(events, parts)
        elif parts:
            self._wait(None, parts)
        if end is not None and end.error is None:
            self._write([], [])
        return end

    def _write(self, events: Sequence[Event], parts: Sequence[PrefetchedBatch]) -> None:
        if self.clock is not None:
            self.clock.begin(self.batch_count, events, parts)
        write_batch(self.folder, self.batch_count, events)
        self._wait(self.batch_count, parts)
        self.batch_count += 1

    def _wait(self, number: int | None, parts: Sequence[PrefetchedBatch]) -> None:
        dead_letters = [dead_letters for part in parts for dead_letters in part.lost]
        self.waiting.append(PendingBatch(number, dead_letters, parts[-1].positions if parts else self.acknowledged))

    def _is_done(self, waiting: PendingBatch) -> bool:
        return waiting.number is None or is_done(self.folder, waiting.number)

    def _yield_batch(self, waiting: PendingBatch) -> Iterator[Output]:
        """Yields the outputs of a micro-batch, and acknowledges it to its sources."""
        for dead_letter in waiting.lost:
            self.lose(dead_letter)
        if waiting.number is not None:
            result = read_result(self.folder, waiting.number)
            for dead_letter in result.dead_letters:
                self.lose(dead_letter)
            yield from result.outputs
            delete_batch(self.folder, waiting.number)
            for number in range(self.base, result.base):
                delete_result(self.folder, number)
            self.base = result.base
        if waiting.positions != self.acknowledged:
            self.intake.inputs.acknowledge(waiting.positions)
            self.acknowledged = waiting.positions
        if self.clock is not None and waiting.number is not None:
            self.clock.end(waiting.number)
