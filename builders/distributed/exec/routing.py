"""Where a row goes in a distributed builder: the level of its node, and the bucket of its key."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pyarrow

from squall import functions
from squall.builders.distributed.exec.ordered_scan import OrderedScan, turns
from squall.builders.distributed.io.records import ROW, STATE, Made, Record, RowBatch, Step, apart, parcels, to_arrow
from squall.builders.distributed.plan.partitioning import (
    EVERYWHERE,
    Address,
    Apart,
    Grouping,
    goes_everywhere,
    made_alike,
    text_of,
)
from squall.builders.distributed.plan.skew import Hot
from squall.builders.distributed.plan.stages import Stage, ending, fused, groupings
from squall.builders.runtime.multiway_join import FusedJoin
from squall.builders.runtime.operators import output_operator
from squall.builders.runtime.operators.event_time import EventTimeOperator, combiner, sieve
from squall.builders.runtime.zset import UNIT, Delta
from squall.model.windows import EmptyWindow, Landmark, SlidingWindow
from squall.plan import Node, Plan
from squall.plan.operators import DerivedStream, Group, Sink, Slice, windows_of
from squall.plan.partitioning import Columns, inputs_by_kind
from squall.rdf.row_tags import RANK_SEPARATOR

WAKE = -1
"""The port of a message without a row: a node has something to do though nothing has come for it."""
EVERY = -1
"""The bucket of a message that goes to all tasks, as long as it is on its way to where it is repeated for each."""
BUCKETS = 64
"""Into how many buckets keys are hashed: the finest that state can be spread over. Part of what a checkpoint means."""
Key = Callable[[Sequence[Any]], str]
"""What rows have in common that are in one bucket, as text."""
Owners = tuple[int, ...]
"""For each bucket, the partition that its rows lie in after a shuffle."""
TOGETHER: Owners = (0,) * BUCKETS
"""All rows in one task."""
TURNS = -1
"""The level of facts that are taken one after the other: before all others
(`squall.builders.distributed.exec.ordered_scan`)."""
DELIVER = 1_000_000
"""The level of the operation node: after all others."""


@dataclass(frozen=True)
class PhysicalPlan:
    """What every worker knows. own: the functions that users registered by hand (workers do not import their
    modules). begin: what functions of time take for the time of what always holds (integer ms). measure: count and time
    what each node does. spread: the inputs whose rows go to all tasks (`squall.builders.distributed.plan.broadcast`).
    hot: the keys that many rows have (`squall.builders.distributed.plan.skew`)."""

    plan: Plan
    levels: tuple[Stage, ...]
    own: tuple[functions.Function | functions.Builtin, ...] = ()
    begin: int = 0
    measure: bool = False
    spread: frozenset[Address] = frozenset()
    hot: Hot = field(default_factory=dict)

    @cached_property
    def groupings(self) -> dict[Address, Grouping | None]:
        """By which of their columns the rows of each input of a node that keeps rows are grouped."""
        return groupings(self.plan, self.spread, self.hot)

    @cached_property
    def alike(self) -> frozenset[Address]:
        """The inputs for which every task makes the rows that go to all tasks."""
        return made_alike(self.plan, self.groupings) if self.spread or self.hot else frozenset()

    @cached_property
    def turns(self) -> OrderedScan:
        """What is taken in turn."""
        return turns(self.plan)

    @cached_property
    def ending(self) -> tuple[Stage, ...]:
        """The last level, if it is worked off together with the end."""
        return ending(self.plan, self.levels, self.spread, self.hot)

    @cached_property
    def whole_instants(self) -> bool:
        """Whether an instant can be worked off only when all of it is there: something looks at instants as a whole, or
        what comes now may begin to be valid later."""
        output_operators = (output_operator(node, op, self.plan) for node, op in self.plan.sinks)
        windows = (window for node in self.plan.nodes for window in windows_of(node.op))
        at_once = all(
            isinstance(window, Landmark | EmptyWindow) or (isinstance(window, SlidingWindow) and not window.delay)
            for window in windows
        )
        feeds = any(isinstance(node.op, DerivedStream) for node in self.plan.nodes)
        return (
            bool(self.plan.retractable)
            or not at_once
            or feeds
            or any(isinstance(op, EventTimeOperator) for op in output_operators)
        )

    @cached_property
    def fused(self) -> dict[str, FusedJoin]:
        """The joins that workers do as one."""
        return fused(self.plan, self.levels, self.spread, self.hot)

    def prepare(self) -> None:
        """Makes the users' functions known in this process."""
        functions.register(*self.own)

    def step(
        self,
        name: str,
        work: Callable[[Iterator[RowBatch]], Iterable[Made]],
        levels: Collection[int] | None = None,
    ) -> Step:
        """The worker's function of what makes messages of entries. levels: those whose messages it takes, the others
        being handed on as they are; None: all."""

        def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            self.prepare()
            own: list[pyarrow.RecordBatch] = []
            yield from apart(batches, levels, own)
            yield from to_arrow(work(parcels(own)))

        step.__name__ = name
        return step

    def addressing(self) -> Router:
        return Router(self)


def waking(level: int, bucket: int) -> Record:
    """A message without a row for the partition of a bucket: what a level keeps there has something to do, though
    nothing may have come for it."""
    return RowBatch(ROW, level, bucket, 0, WAKE, [UNIT]).message()


class Router:
    """Turns entries for a node into messages: its number, its level, and the bucket of each row's key."""

    def __init__(self, program: PhysicalPlan) -> None:
        plan = program.plan
        self.ids = [node.id for node in plan.nodes]
        self.numbers = {id: number for number, id in enumerate(self.ids)}
        self.levels = {id: level.number for level in program.levels for id in level.nodes}
        self.levels |= {node.id: DELIVER for node, _ in plan.sinks}
        self.grouped = program.groupings
        self.keys = {address: text_of(_columns(key)) for address, key in self.grouped.items() if key != EVERYWHERE}
        """Of those inputs whose rows do not all go to all tasks."""
        for node in plan.nodes:
            if isinstance(node.op, Sink | DerivedStream):
                ports = ((node.id, port) for port in range(len(node.inputs)))
                self.keys |= dict.fromkeys(ports, self._told(plan, node))
        self.apart = {
            address: {text: None if by == EVERYWHERE else text_of(by) for text, by in key.hot}
            for address, key in self.grouped.items()
            if isinstance(key, Apart)
        }
        """Of inputs some of whose keys are hot: what tells where a row with such a key lies; None: in all tasks."""
        self.repeated = {self.levels[id] for (id, _), key in self.grouped.items() if goes_everywhere(key)}
        """The levels to which rows come that go to all tasks."""
        self.alike = program.alike
        of_turns = program.turns.of_kept
        self.kept = {(id, slot): partial(of_turns, slot) for id in program.turns.sources for slot in (0, 1)}
        """What tells where that lies which is kept of facts that are taken in turn, by its slot."""
        self.levels |= dict.fromkeys(program.turns.sources, TURNS)
        combiners = (((node.id, 0), _combiner(plan, node)) for node in plan.nodes)
        self.combiners = {address: combined for address, combined in combiners if combined is not None}
        """What adds up the rows that move, or leaves out those that make no difference, by where they go."""

    def _told(self, plan: Plan, node: Node) -> Key:
        """What tells where rows go that are told, whatever kind they are of: their inputs are not told apart."""
        kinds = inputs_by_kind(node, plan.by_id)
        keys = {kind: self.keys[node.id, ports[0]] for kind, ports in kinds.items()}
        return next(iter(keys.values())) if len(keys) == 1 else partial(_of_kind, keys)

    def bucket(self, address: Address, row: Sequence[str | None]) -> int:
        """The bucket of a row: a hash of its grouping columns that is the same in every process. `EVERY`: it is in all
        tasks."""
        text = self.keys[address](row)
        apart = self.apart.get(address)
        if apart and text in apart:
            by = apart[text]
            if by is None:
                return EVERY
            text = by(row)
        return bucket_of(text)

    def wake(self, id: str) -> RowBatch:
        """The message that lets a node work whose rows all meet in one place, though none has come for it."""
        return RowBatch(ROW, self.levels[id], self.bucket((id, 0), ()), self.numbers[id], WAKE, [UNIT])

    def rows(self, address: Address, entries: Iterable[Delta]) -> Iterator[RowBatch]:
        """Entries for an address, as messages."""
        id, port = address
        if combined := self.combiners.get(address):
            entries = combined(entries)
        for bucket, part in self._by_bucket(address, entries):
            yield RowBatch(ROW, self.levels[id], bucket, self.numbers[id], port, part)

    def state(self, id: str, slot: int, entries: Iterable[Delta]) -> Iterator[RowBatch]:
        """What a node keeps, as messages. The bucket of a slot's rows is that of the input they came on."""
        address = (id, slot) if (id, slot) in self.grouped else (id, 0)
        of_turns = self.kept.get((id, slot))
        parts = self._by_bucket(address, entries) if of_turns is None else _by_bucket(of_turns, entries)
        for bucket, part in parts:
            yield RowBatch(STATE, self.levels[id], bucket, self.numbers[id], slot, part)

    def at_rest(self, parcel: RowBatch) -> Iterator[RowBatch]:
        """A message for one of the nodes as it is handed on: of what all tasks have got, that of the first bucket's."""
        address = self.ids[parcel.node], parcel.port
        if address in self.keys and address not in self.apart:
            yield parcel
            return
        for bucket, part in self._by_bucket(address, parcel.entries):
            if bucket != EVERY or parcel.bucket == 0:
                yield parcel._replace(bucket=bucket, entries=part)

    def is_everywhere(self, parcel: RowBatch) -> bool:
        """Whether what a task has made, or keeps, all tasks have."""
        return parcel.bucket == EVERY and (parcel.kind == STATE or (self.ids[parcel.node], parcel.port) in self.alike)

    def _by_bucket(self, address: Address, entries: Iterable[Delta]) -> Iterator[tuple[int, list[Delta]]]:
        key = self.keys.get(address)
        if key is None:
            all_entries = list(entries)
            return iter([(EVERY, all_entries)] if all_entries else [])
        if address in self.apart:
            parts: dict[int, list[Delta]] = {}
            for entry in entries:
                parts.setdefault(self.bucket(address, entry), []).append(entry)
            return iter(parts.items())
        return _by_bucket(key, entries)


def _of_kind(keys: Mapping[str, Key], row: Sequence[Any]) -> str:
    return (keys.get(row[0].partition(RANK_SEPARATOR)[0]) or keys[""])(row)


def _combiner(plan: Plan, node: Node) -> Callable[[Iterable[Delta]], list[Delta]] | None:
    """What makes fewer of rows for a node before they move; None: nothing does."""
    match node.op:
        case Group():
            return combiner(node.op)
        case Slice() if node.inputs[0].node not in plan.retractable:
            return sieve(node.op)
    return None


def bucket_of(text: str, many: int = BUCKETS) -> int:
    """The bucket, of so many, of what has this text in common."""
    return zlib.crc32(text.encode()) % many


def _by_bucket(key: Key, entries: Iterable[Delta]) -> Iterator[tuple[int, list[Delta]]]:
    """Entries by the bucket of their key."""
    buckets: tuple[list[Delta], ...] = tuple([] for _ in range(BUCKETS))
    for entry in entries:
        buckets[zlib.crc32(key(entry).encode()) % BUCKETS].append(entry)  # as `bucket_of`, for each row that moves
    return ((bucket, part) for bucket, part in enumerate(buckets) if part)


def _columns(key: Grouping | None) -> Columns:
    """By which columns rows are grouped whose keys are not hot."""
    return (key.columns if isinstance(key, Apart) else key) or ()
