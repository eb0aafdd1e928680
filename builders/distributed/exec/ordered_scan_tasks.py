"""The tasks that take facts one after the other, in front of all levels
(`squall.builders.distributed.exec.ordered_scan`).

What their `Read` nodes make of a fact, or take back of others because of it, is rows for the first nodes that keep any,
just as tasks make them that read all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow

from squall.builders.distributed.exec.ordered_scan import in_turn
from squall.builders.distributed.exec.report_times import moved_on, tellers
from squall.builders.distributed.exec.routing import TURNS, PhysicalPlan
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import Outbox, addressed, figures_of, machine_of
from squall.builders.distributed.io.records import Record, RowBatch, Step, apart, from_arrow, to_arrow
from squall.builders.runtime.state import lasting


def taking(program: PhysicalPlan, state: State) -> Step:
    """The worker's function that takes the facts of a partition in turn, and leaves all other messages as they are.
    state: of the level of such facts."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        own: list[pyarrow.RecordBatch] = []
        yield from apart(batches, [TURNS], own)
        yield from to_arrow(taken(program, state, list(from_arrow(own))))

    step.__name__ = "facts in turn"
    return step


def taken(
    program: PhysicalPlan, state: State, records: Sequence[Record], outbox: Outbox = addressed
) -> Iterator[Record | RowBatch]:
    """What comes of the facts of a partition. outbox: takes the rows out of a machine."""
    if not records:
        return
    (partition,) = {state.owners[message.bucket] for message in records}
    events = in_turn(records)
    addressing = program.addressing()
    machine, since = state.take(partition)
    if machine is None:
        machine = machine_of(program, program.turns.sources)
    state_deltas = state.entries(since, partition)
    machine.restore(
        state.passed, {(addressing.ids[number], slot): part for (number, slot), part in state_deltas.items()}
    )
    if state.keep:
        machine.keep()
    reporters = tellers(program.plan)
    for reader in machine.readers.values():
        yield from moved_on(reporters, reader.source, reader.came, events)
    machine.read(events)
    machine.run()
    yield from outbox(machine, addressing)
    for id, slot, entries in machine.kept():
        yield from addressing.state(id, slot, lasting(entries, state.passed))
    yield from figures_of(program, machine)
    if state.keep:
        machine.expire(state.passed)
        yield state.put(partition, machine, sum(machine.state().values()))
