"""Where a row goes in a distributed builder: the level of its node, and the bucket of its key."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow

from squall import functions
from squall.builders.cut import Level
from squall.builders.messages import ROW, STATE, Message, Step, from_arrow, to_arrow
from squall.builders.network import Address
from squall.builders.packing import pack
from squall.builders.rows.entries import Entry
from squall.operators import is_stateful
from squall.plan import Plan
from squall.rdf import ALWAYS, FOREVER

WAKE = -1
"""The port of a message without a row: a node has something to do though nothing has come for it."""
BUCKETS = 64
"""Into how many buckets keys are hashed: the finest that state can be spread over. Part of what a checkpoint means."""
Owners = tuple[int, ...]
"""For each bucket, the partition that its rows lie in after a shuffle."""
TOGETHER: Owners = (0,) * BUCKETS
"""All rows in one task."""
DELIVER = 1_000_000
"""The level of the operation node: after all others."""


@dataclass(frozen=True)
class Program:
    """What every worker knows. own: the functions that users registered by hand (workers do not import their
    modules). begin: what functions of time take for the time of what always holds (integer ms). measure: count and time
    what each node does."""

    plan: Plan
    levels: tuple[Level, ...]
    own: tuple[functions.Function | functions.Builtin, ...] = ()
    begin: int = 0
    measure: bool = False

    def prepare(self) -> None:
        """Makes the users' functions known in this process."""
        functions.register(*self.own)

    def step(self, work: Callable[[Iterator[Message]], Iterable[Message]]) -> Step:
        """The worker's function of what makes messages of messages."""

        def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            self.prepare()
            return to_arrow(work(from_arrow(batches)))

        return step

    def addressing(self) -> Addressing:
        return Addressing(self)


class Addressing:
    """Turns entries for a node into messages: its number, its level, and the bucket of each row's key."""

    def __init__(self, program: Program) -> None:
        plan = program.plan
        self.ids = [node.id for node in plan.nodes]
        self.numbers = {id: number for number, id in enumerate(self.ids)}
        self.levels = {id: level.number for level in program.levels for id in level.nodes}
        self.levels |= {node.id: DELIVER for node, _ in plan.deliveries}
        self.keys = {
            (node.id, port): edge.columns or ()
            for node in plan.nodes if is_stateful(node.op)
            for port, edge in enumerate(node.inputs)
        }  # fmt: skip

    def bucket(self, address: Address, row: Sequence[str | None]) -> int:
        """The bucket of a row: a hash of its grouping columns that is the same in every process."""
        key = self.keys[address]
        text = row[key[0]] if len(key) == 1 else "\n".join([row[column] or "" for column in key])
        return zlib.crc32((text or "").encode()) % BUCKETS

    def wake(self, id: str) -> Message:
        """The message that lets a node work whose rows all meet in one place, though none has come for it."""
        return Message(ROW, self.levels[id], self.bucket((id, 0), ()), self.numbers[id], WAKE, "", ALWAYS, FOREVER, 1)

    def rows(self, address: Address, entries: Iterable[Entry]) -> Iterator[Message]:
        """Entries for an address, as messages."""
        id, port = address
        level, number = self.levels[id], self.numbers[id]
        for *row, start, end, weight in entries:
            yield Message(ROW, level, self.bucket(address, row), number, port, pack(row), start, end, weight)

    def state(self, id: str, slot: int, entries: Iterable[Entry]) -> Iterator[Message]:
        """What a node keeps, as messages. The bucket of a slot's rows is that of the input they came on."""
        level, number = self.levels[id], self.numbers[id]
        address = (id, slot) if (id, slot) in self.keys else (id, 0)
        for *row, start, end, weight in entries:
            yield Message(STATE, level, self.bucket(address, row), number, slot, pack(row), start, end, weight)
