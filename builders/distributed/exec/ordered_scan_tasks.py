"""The tasks that take facts one after the other, in front of all levels
(`squall.builders.distributed.exec.ordered_scan`).

What their `Read` nodes make of a fact, or take back of others because of it, is rows for the first nodes that keep any,
just as tasks make them that read all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow

from squall.builders.distributed.exec.ordered_scan import ordered_events
from squall.builders.distributed.exec.report_times import count_window_evaluations, rstream_nodes
from squall.builders.distributed.exec.routing import ORDERED_SCAN, PhysicalPlan
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import Outbox, metrics_of, routed_outbox, source_dataflow
from squall.builders.distributed.io.records import Record, RowBatch, WorkerStep, from_arrow, split_by_stage, to_arrow
from squall.builders.runtime.state import lasting


def ordered_scan_step(program: PhysicalPlan, state: State) -> WorkerStep:
    """The worker's function that takes the facts of a partition in turn, and leaves all other messages as they are.
    state: of the level of such facts."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        own: list[pyarrow.RecordBatch] = []
        yield from split_by_stage(batches, [ORDERED_SCAN], own)
        yield from to_arrow(scan_in_order(program, state, list(from_arrow(own))))

    step.__name__ = "facts in turn"
    return step


def scan_in_order(
    program: PhysicalPlan, state: State, records: Sequence[Record], outbox: Outbox = routed_outbox
) -> Iterator[Record | RowBatch]:
    """What comes of the facts of a partition. outbox: takes the rows out of a machine."""
    if not records:
        return
    (partition,) = {state.owners[message.bucket] for message in records}
    events = ordered_events(records)
    router = program.router()
    machine, since = state.take(partition)
    if machine is None:
        machine = source_dataflow(program, program.ordered_scan.sources)
    state_deltas = state.entries(since, partition)
    machine.restore(state.passed, {(router.ids[number], slot): part for (number, slot), part in state_deltas.items()})
    if state.keep:
        machine.keep()
    reporters = rstream_nodes(program.plan)
    for reader in machine.readers.values():
        yield from count_window_evaluations(reporters, reader.source, reader.came, events)
    machine.read(events)
    machine.run()
    yield from outbox(machine, router)
    for id, slot, entries in machine.kept():
        yield from router.state_batches(id, slot, lasting(entries, state.passed))
    yield from metrics_of(program, machine)
    if state.keep:
        machine.expire(state.passed)
        yield state.put(partition, machine, sum(machine.state().values()))
