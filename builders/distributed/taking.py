"""The tasks that take facts one after the other, in front of all levels (`squall.builders.distributed.turns`).

What their `Read` nodes make of a fact, or take back of others because of it, is rows for the first nodes that keep any,
just as tasks make them that read all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow

from squall.builders.distributed.addressing import TURNS, Program
from squall.builders.distributed.messages import INSTANT, Message, Parcel, Step, apart, from_arrow, to_arrow
from squall.builders.distributed.replicas import State
from squall.builders.distributed.turns import in_turn
from squall.builders.distributed.worker import Outbox, addressed, figures_of, machine_of, tellers
from squall.builders.machine import Machine
from squall.builders.packing import orders
from squall.builders.state import lasting
from squall.rdf import Event
from squall.system import Source
from squall.windows import Count


def taking(program: Program, state: State) -> Step:
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
    program: Program, state: State, given: Sequence[Message], outbox: Outbox = addressed
) -> Iterator[Message | Parcel]:
    """What comes of the facts of a partition. outbox: takes the rows out of a machine."""
    if not given:
        return
    (partition,) = {state.owners[message.bucket] for message in given}
    events = in_turn(given)
    addressing = program.addressing()
    machine, since = state.take(partition)
    if machine is None:
        machine = machine_of(program, program.turns.sources)
    kept = state.entries(since, partition, orders(program.plan))
    machine.restore(state.passed, {(addressing.ids[number], slot): part for (number, slot), part in kept.items()})
    if state.keep:
        machine.keep()
    yield from _evaluations(program, machine, events)
    machine.read(events)
    machine.run()
    yield from outbox(machine, addressing)
    for id, slot, entries in machine.kept():
        yield from addressing.state(id, slot, lasting(entries, state.passed))
    yield from figures_of(program, machine)
    if state.keep:
        machine.expire(state.passed)
        yield state.put(partition, machine, sum(machine.state().values()))


def _evaluations(program: Program, machine: Machine, events: Sequence[Event]) -> Iterator[Message]:
    """When what is told whole is evaluated since a window of triples has moved on by a step."""
    streams = {event.stream for event in events}
    for number, op in tellers(program.plan).items():
        for id, source in program.turns.sources.items():
            came = {stream: one.came for stream, one in machine.readers[id].counted.items()}
            told = {stream for stream in streams if any(_reads_as(source, one, stream) for one in op.sources)}
            for event in events:
                window = source.window_of(event.stream)
                if event.is_static or event.stream not in told or not isinstance(window, Count):
                    continue
                came[event.stream] = came.get(event.stream, 0) + len(event.facts)
                if event.facts and window.step > 1 and came[event.stream] % window.step == 0:
                    yield Message(INSTANT, 0, 0, number, 0, "", event.time, 0, 0)


def _reads_as(source: Source, other: Source, stream: str) -> bool:
    """Whether two sources count the same of a stream; of others they may read different things."""
    alike = source.iri == other.iri and source.window_of(stream) == other.window_of(stream)
    return alike and source.counts(stream) and other.counts(stream)
