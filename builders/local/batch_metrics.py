"""Batches of input whose processing is measured (`squall.contracts.Options.on_batch`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from squall.builders.local.event_loop import EventLoop
from squall.builders.local.replay import ReplayedBatches
from squall.contracts import BatchMetrics
from squall.rdf import Event, statement_count
from squall.streams import Sources

Inputs = Sources | ReplayedBatches


def measured_batches(event_loop: EventLoop, inputs: Inputs) -> Iterable[Sequence[Event]]:
    """Returns the batches of a run, which are measured if its options ask for it.

    A batch is processed when the next one is requested: its outputs have been taken then, and a checkpoint that was due
    has been saved.
    """
    on_batch = event_loop.options.on_batch
    return inputs if on_batch is None else _measured(event_loop, inputs, on_batch)


def _measured(
    event_loop: EventLoop, inputs: Inputs, on_batch: Callable[[BatchMetrics], None]
) -> Iterator[Sequence[Event]]:
    for batch in inputs:
        began = time.monotonic()
        arrived = inputs.arrived or began
        yield batch
        ended = time.monotonic()
        if batch:
            on_batch(BatchMetrics(arrived, began, ended, statement_count(batch), event_loop.watermark, batch))
