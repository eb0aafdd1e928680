"""The tasks of ordered scans, in front of all stages (`squall.builders.distributed.plan.ordered_scan`).

Their `Scan` nodes output or retract rows for the first stateful nodes, as the tasks do that read all other facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow

from squall.builders.distributed.exec.ordered_records import ordered_events
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.report_times import sequential_evaluations
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import Outbox, metrics_of, routed_outbox, source_dataflow
from squall.builders.distributed.io.records import (
    OrderedFact,
    WorkerRecord,
    WorkerStep,
    decode,
    from_arrow,
    split_by_stage,
    to_arrow,
)
from squall.builders.distributed.plan.buckets import ORDERED_SCAN
from squall.builders.distributed.plan.snapshot_nodes import rstream_nodes
from squall.builders.runtime.state import live_deltas


def ordered_scan_step(program: Program, state: State) -> WorkerStep:
    """Returns the worker's function that scans the facts of a partition in order. Other records pass through. state:
    that of the ordered scan."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        own: list[pyarrow.RecordBatch] = []
        yield from split_by_stage(batches, [ORDERED_SCAN], own)
        yield from to_arrow(scan_in_order(program, state, [decode(record, OrderedFact) for record in from_arrow(own)]))

    step.__name__ = "ordered scan"
    return step


def scan_in_order(
    program: Program, state: State, records: Sequence[OrderedFact], outbox: Outbox = routed_outbox
) -> Iterator[WorkerRecord]:
    """Yields the records that follow from the facts of a partition. outbox: takes the rows out of the dataflow."""
    if not records:
        return
    (partition,) = {state.bucket_partitions[record.bucket] for record in records}
    events = ordered_events(records)
    router = program.router()
    dataflow, since = state.take(partition)
    if dataflow is None:
        dataflow = source_dataflow(program, program.ordered_scan.sources)
    state_deltas = state.read_deltas(since, partition)
    dataflow.states.restore(
        state.watermark, {(router.ids[number], slot): part for (number, slot), part in state_deltas.items()}
    )
    if state.keep:
        dataflow.states.enable_changelog()
    reporters = rstream_nodes(program.plan)
    for reader in dataflow.input.readers.values():
        yield from sequential_evaluations(reporters, reader.source, reader.positions, events)
    dataflow.read(events)
    dataflow.run()
    yield from outbox(dataflow, router)
    for id, slot, deltas in dataflow.states.drain_changelog():
        yield from router.state_batches(id, slot, live_deltas(deltas, state.watermark))
    yield from metrics_of(program, dataflow)
    if state.keep:
        dataflow.expire(state.watermark)
        yield state.put(partition, dataflow, sum(dataflow.state().values()))
