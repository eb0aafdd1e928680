"""The metrics of the micro-batches of live input (`squall.contracts.Options.on_batch`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from squall.builders.distributed.io.prefetch import PrefetchedBatch
from squall.contracts import BatchMetrics
from squall.rdf import ALWAYS, Event, statement_count


class BatchClock:
    """Measures the micro-batches of a live run. Two may be in flight, whose times overlap.

    Args:
        on_batch: It is called with the metrics of each micro-batch.
        needs_complete_instants: Whether an instant is processed only when a later event has come.
    """

    def __init__(self, on_batch: Callable[[BatchMetrics], None], needs_complete_instants: bool) -> None:
        self._on_batch = on_batch
        self._needs_complete_instants = needs_complete_instants
        self._ended = 0.0
        self._watermark = ALWAYS
        self._in_flight: dict[int, BatchMetrics] = {}

    def begin(self, number: int, events: Sequence[Event], parts: Sequence[PrefetchedBatch]) -> None:
        """Begins a micro-batch, of parts that have arrived."""
        now = time.monotonic()
        if parts and events:
            self._watermark = max(self._watermark, events[-1].time - self._needs_complete_instants)
            arrived = min(part.arrived for part in parts)
            self._in_flight[number] = BatchMetrics(arrived, now, now, statement_count(events), self._watermark, events)

    def end(self, number: int) -> None:
        """Ends a micro-batch, whose outputs have been taken."""
        batch = self._in_flight.pop(number, None)
        if batch is not None:
            began, self._ended = max(batch.began, self._ended), time.monotonic()
            self._on_batch(batch._replace(began=began, ended=self._ended))
