"""Where a row goes in a distributed builder: the level of its node, and the bucket of its key."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pyarrow

from squall import functions
from squall.builders.distributed.exec.ordered_scan import OrderedScan, ordered_scan_of
from squall.builders.distributed.io.records import (
    ROW,
    STATE,
    Record,
    RowBatch,
    WorkerOutput,
    WorkerStep,
    as_row_batches,
    split_by_stage,
    to_arrow,
)
from squall.builders.distributed.plan.partitioning import (
    BROADCAST,
    Address,
    Partitioning,
    SkewedPartitioning,
    is_broadcast,
    key_text,
    replicated_inputs_of,
)
from squall.builders.distributed.plan.skew import SkewedKeys
from squall.builders.distributed.plan.stages import Stage, fused_joins_of, fused_output_stage, partitionings_of
from squall.builders.runtime.multiway_join import FusedJoin
from squall.builders.runtime.operators import output_operator
from squall.builders.runtime.operators.event_time import EventTimeOperator, combiner, sieve
from squall.builders.runtime.zset import UNIT, Delta
from squall.model.windows import EmptyWindow, Landmark, SlidingWindow
from squall.plan import Node, Plan
from squall.plan.operators import DerivedStream, Group, Sink, Slice, windows_of
from squall.plan.partitioning import Columns, inputs_by_kind
from squall.rdf.row_tags import RANK_SEPARATOR

WAKE_PORT = -1
"""The port of a message without a row: a node has something to do though nothing has come for it."""
BROADCAST_BUCKET = -1
"""The bucket of a message that goes to all tasks, as long as it is on its way to where it is repeated for each."""
BUCKET_COUNT = 64
"""Into how many buckets keys are hashed: the finest that state can be spread over. Part of what a checkpoint means."""
KeyFunction = Callable[[Sequence[Any]], str]
"""What rows have in common that are in one bucket, as text."""
BucketPartitions = tuple[int, ...]
"""For each bucket, the partition that its rows lie in after a shuffle."""
SINGLE_PARTITION: BucketPartitions = (0,) * BUCKET_COUNT
"""All rows in one task."""
ORDERED_SCAN = -1
"""The level of facts that are taken one after the other: before all others
(`squall.builders.distributed.exec.ordered_scan`)."""
OUTPUT_STAGE = 1_000_000
"""The level of the operation node: after all others."""


@dataclass(frozen=True)
class PhysicalPlan:
    """What every worker knows. own: the functions that users registered by hand (workers do not import their
    modules). begin: what functions of time take for the time of what always holds (integer ms). measure: count and time
    what each node does. spread: the inputs whose rows go to all tasks (`squall.builders.distributed.plan.broadcast`).
    hot: the keys that many rows have (`squall.builders.distributed.plan.skew`)."""

    plan: Plan
    stages: tuple[Stage, ...]
    user_functions: tuple[functions.Function | functions.Builtin, ...] = ()
    static_time: int = 0
    measure: bool = False
    broadcast_inputs: frozenset[Address] = frozenset()
    skewed_keys: SkewedKeys = field(default_factory=dict)

    @cached_property
    def partitionings(self) -> dict[Address, Partitioning | None]:
        """By which of their columns the rows of each input of a node that keeps rows are grouped."""
        return partitionings_of(self.plan, self.broadcast_inputs, self.skewed_keys)

    @cached_property
    def replicated_inputs(self) -> frozenset[Address]:
        """The inputs for which every task makes the rows that go to all tasks."""
        return (
            replicated_inputs_of(self.plan, self.partitionings)
            if self.broadcast_inputs or self.skewed_keys
            else frozenset()
        )

    @cached_property
    def ordered_scan(self) -> OrderedScan:
        """What is taken in turn."""
        return ordered_scan_of(self.plan)

    @cached_property
    def fused_output_stages(self) -> tuple[Stage, ...]:
        """The last level, if it is worked off together with the end."""
        return fused_output_stage(self.plan, self.stages, self.broadcast_inputs, self.skewed_keys)

    @cached_property
    def needs_complete_instants(self) -> bool:
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
    def fused_joins(self) -> dict[str, FusedJoin]:
        """The joins that workers do as one."""
        return fused_joins_of(self.plan, self.stages, self.broadcast_inputs, self.skewed_keys)

    def prepare(self) -> None:
        """Makes the users' functions known in this process."""
        functions.register(*self.user_functions)

    def step(
        self,
        name: str,
        work: Callable[[Iterator[RowBatch]], Iterable[WorkerOutput]],
        levels: Collection[int] | None = None,
    ) -> WorkerStep:
        """The worker's function of what makes messages of entries. levels: those whose messages it takes, the others
        being handed on as they are; None: all."""

        def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            self.prepare()
            own: list[pyarrow.RecordBatch] = []
            yield from split_by_stage(batches, levels, own)
            yield from to_arrow(work(as_row_batches(own)))

        step.__name__ = name
        return step

    def router(self) -> Router:
        return Router(self)


def wake_record(level: int, bucket: int) -> Record:
    """A message without a row for the partition of a bucket: what a level keeps there has something to do, though
    nothing may have come for it."""
    return RowBatch(ROW, level, bucket, 0, WAKE_PORT, [UNIT]).message()


class Router:
    """Turns entries for a node into messages: its number, its level, and the bucket of each row's key."""

    def __init__(self, program: PhysicalPlan) -> None:
        plan = program.plan
        self.ids = [node.id for node in plan.nodes]
        self.numbers = {id: number for number, id in enumerate(self.ids)}
        self.stage_numbers = {id: level.number for level in program.stages for id in level.nodes}
        self.stage_numbers |= {node.id: OUTPUT_STAGE for node, _ in plan.sinks}
        self.partitionings = program.partitionings
        self.key_functions = {
            address: key_text(_unskewed_columns(key)) for address, key in self.partitionings.items() if key != BROADCAST
        }
        """Of those inputs whose rows do not all go to all tasks."""
        for node in plan.nodes:
            if isinstance(node.op, Sink | DerivedStream):
                ports = ((node.id, port) for port in range(len(node.inputs)))
                self.key_functions |= dict.fromkeys(ports, self._sink_key(plan, node))
        self.split_keys = {
            address: {text: None if by == BROADCAST else key_text(by) for text, by in key.hot}
            for address, key in self.partitionings.items()
            if isinstance(key, SkewedPartitioning)
        }
        """Of inputs some of whose keys are hot: what tells where a row with such a key lies; None: in all tasks."""
        self.broadcast_stages = {
            self.stage_numbers[id] for (id, _), key in self.partitionings.items() if is_broadcast(key)
        }
        """The levels to which rows come that go to all tasks."""
        self.replicated_inputs = program.replicated_inputs
        of_turns = program.ordered_scan.of_kept
        self.ordered_state_keys = {
            (id, slot): partial(of_turns, slot) for id in program.ordered_scan.sources for slot in (0, 1)
        }
        """What tells where that lies which is kept of facts that are taken in turn, by its slot."""
        self.stage_numbers |= dict.fromkeys(program.ordered_scan.sources, ORDERED_SCAN)
        combiners = (((node.id, 0), _pre_aggregation(plan, node)) for node in plan.nodes)
        self.pre_aggregations = {address: combined for address, combined in combiners if combined is not None}
        """What adds up the rows that move, or leaves out those that make no difference, by where they go."""

    def _sink_key(self, plan: Plan, node: Node) -> KeyFunction:
        """What tells where rows go that are told, whatever kind they are of: their inputs are not told apart."""
        kinds = inputs_by_kind(node, plan.by_id)
        keys = {kind: self.key_functions[node.id, ports[0]] for kind, ports in kinds.items()}
        return next(iter(keys.values())) if len(keys) == 1 else partial(_key_of_kind, keys)

    def bucket(self, address: Address, row: Sequence[str | None]) -> int:
        """Returns the bucket of a row: a hash of its partitioning columns that is the same in every process.

        `BROADCAST_BUCKET` means that the row is in all tasks.
        """
        text = self.key_functions[address](row)
        split_keys = self.split_keys.get(address)
        if split_keys and text in split_keys:
            by = split_keys[text]
            if by is None:
                return BROADCAST_BUCKET
            text = by(row)
        return bucket_of(text)

    def wake(self, id: str) -> RowBatch:
        """The message that lets a node work whose rows all meet in one place, though none has come for it."""
        return RowBatch(ROW, self.stage_numbers[id], self.bucket((id, 0), ()), self.numbers[id], WAKE_PORT, [UNIT])

    def row_batches(self, address: Address, entries: Iterable[Delta]) -> Iterator[RowBatch]:
        """Entries for an address, as messages."""
        id, port = address
        if combined := self.pre_aggregations.get(address):
            entries = combined(entries)
        for bucket, part in self._buckets_of(address, entries):
            yield RowBatch(ROW, self.stage_numbers[id], bucket, self.numbers[id], port, part)

    def state_batches(self, id: str, slot: int, entries: Iterable[Delta]) -> Iterator[RowBatch]:
        """What a node keeps, as messages. The bucket of a slot's rows is that of the input they came on."""
        address = (id, slot) if (id, slot) in self.partitionings else (id, 0)
        of_turns = self.ordered_state_keys.get((id, slot))
        parts = self._buckets_of(address, entries) if of_turns is None else _by_bucket(of_turns, entries)
        for bucket, part in parts:
            yield RowBatch(STATE, self.stage_numbers[id], bucket, self.numbers[id], slot, part)

    def buffered(self, row_batch: RowBatch) -> Iterator[RowBatch]:
        """A message for one of the nodes as it is handed on: of what all tasks have got, that of the first bucket's."""
        address = self.ids[row_batch.node], row_batch.port
        if address in self.key_functions and address not in self.split_keys:
            yield row_batch
            return
        for bucket, part in self._buckets_of(address, row_batch.entries):
            if bucket != BROADCAST_BUCKET or row_batch.bucket == 0:
                yield row_batch._replace(bucket=bucket, entries=part)

    def is_replicated(self, row_batch: RowBatch) -> bool:
        """Whether what a task has made, or keeps, all tasks have."""
        return row_batch.bucket == BROADCAST_BUCKET and (
            row_batch.kind == STATE or (self.ids[row_batch.node], row_batch.port) in self.replicated_inputs
        )

    def _buckets_of(self, address: Address, entries: Iterable[Delta]) -> Iterator[tuple[int, list[Delta]]]:
        key = self.key_functions.get(address)
        if key is None:
            all_entries = list(entries)
            return iter([(BROADCAST_BUCKET, all_entries)] if all_entries else [])
        if address in self.split_keys:
            parts: dict[int, list[Delta]] = {}
            for entry in entries:
                parts.setdefault(self.bucket(address, entry), []).append(entry)
            return iter(parts.items())
        return _by_bucket(key, entries)


def _key_of_kind(keys: Mapping[str, KeyFunction], row: Sequence[Any]) -> str:
    return (keys.get(row[0].partition(RANK_SEPARATOR)[0]) or keys[""])(row)


def _pre_aggregation(plan: Plan, node: Node) -> Callable[[Iterable[Delta]], list[Delta]] | None:
    """What makes fewer of rows for a node before they move; None: nothing does."""
    match node.op:
        case Group():
            return combiner(node.op)
        case Slice() if node.inputs[0].node not in plan.retractable:
            return sieve(node.op)
    return None


def bucket_of(text: str, many: int = BUCKET_COUNT) -> int:
    """The bucket, of so many, of what has this text in common."""
    return zlib.crc32(text.encode()) % many


def _by_bucket(key: KeyFunction, entries: Iterable[Delta]) -> Iterator[tuple[int, list[Delta]]]:
    """Entries by the bucket of their key."""
    buckets: tuple[list[Delta], ...] = tuple([] for _ in range(BUCKET_COUNT))
    for entry in entries:
        buckets[zlib.crc32(key(entry).encode()) % BUCKET_COUNT].append(entry)  # as `bucket_of`, for each row that moves
    return ((bucket, part) for bucket, part in enumerate(buckets) if part)


def _unskewed_columns(key: Partitioning | None) -> Columns:
    """By which columns rows are grouped whose keys are not hot."""
    return (key.columns if isinstance(key, SkewedPartitioning) else key) or ()
