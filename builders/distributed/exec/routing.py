"""Routing: where a row goes in a distributed engine, by the stage of its node and the bucket of its key."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from squall.builders.distributed.io.records import BUFFERED, ROW, ROWS_PER_BATCH, STATE, Record, RowBatch
from squall.builders.distributed.plan.buckets import (
    BROADCAST_BUCKET,
    BUCKET_COUNT,
    ORDERED_SCAN,
    OUTPUT_STAGE,
    bucket_of,
)
from squall.builders.distributed.plan.partitioning import (
    BROADCAST,
    Address,
    Partitioning,
    SkewedPartitioning,
    is_broadcast,
    key_text,
)
from squall.builders.distributed.plan.physical_plan import PhysicalPlan
from squall.builders.runtime.operators.event_time import combiner, partial_top_k
from squall.builders.runtime.zset import UNIT, Delta
from squall.plan import Node, Plan
from squall.plan.operators import DerivedStream, Group, Sink, Slice
from squall.plan.partitioning import Columns, inputs_by_kind
from squall.rdf.row_tags import RANK_SEPARATOR

WAKE_PORT = -1
"""The port of a record without a row: a node has to run though nothing has arrived for it."""
KeyFunction = Callable[[Sequence[Any]], str]
"""Returns what the rows of one bucket have in common, as text."""


def wake_record(stage: int, bucket: int) -> Record:
    """Returns a record without a row for the partition of a bucket. It makes a stage run there, though nothing may have
    arrived."""
    return RowBatch(ROW, stage, bucket, 0, WAKE_PORT, [UNIT]).encode()


class Router:
    """Turns deltas for a node into row batches: the number of the node, its stage, and the bucket of each row's key."""

    def __init__(self, physical: PhysicalPlan) -> None:
        plan = physical.plan
        self.ids = [node.id for node in plan.nodes]
        self.numbers = physical.numbers
        self.stage_numbers = _stage_numbers(physical)
        self.partitionings = physical.partitionings
        self.key_functions = _key_functions(physical)
        """The key functions of the inputs whose rows are not all broadcast."""
        self.split_keys = {
            address: {text: None if by == BROADCAST else key_text(by) for text, by in key.split_keys}
            for address, key in self.partitionings.items()
            if isinstance(key, SkewedPartitioning)
        }
        """The key functions of the skewed keys, by input (None: the rows are broadcast)."""
        self.broadcast_stages = {
            self.stage_numbers[id] for (id, _), key in self.partitionings.items() if is_broadcast(key)
        }
        """The stages that get broadcast rows."""
        self.replicated_inputs = physical.replicated_inputs
        ordered_key = physical.ordered_scan.state_key
        self.ordered_state_keys = {
            (id, slot): partial(ordered_key, slot) for id in physical.ordered_scan.sources for slot in (0, 1)
        }
        """The key functions for the state of ordered scans, by slot."""
        combiners = (((node.id, 0), _pre_aggregation(plan, node)) for node in plan.nodes)
        self.pre_aggregations = {address: combined for address, combined in combiners if combined is not None}
        """By input, the function that combines rows, or drops those without effect, before they are shuffled."""

    def bucket(self, address: Address, row: Sequence[str | None]) -> int:
        """Returns the bucket of a row: a hash of its partitioning columns that is the same in every process.
        `BROADCAST_BUCKET` means all tasks."""
        text = self.key_functions[address](row)
        split_keys = self.split_keys.get(address)
        if split_keys and text in split_keys:
            by = split_keys[text]
            if by is None:
                return BROADCAST_BUCKET
            text = by(row)
        return bucket_of(text)

    def wake(self, id: str) -> RowBatch:
        """Returns the record that makes a node run whose rows all meet in one task, though none has arrived."""
        return RowBatch(ROW, self.stage_numbers[id], self.bucket((id, 0), ()), self.numbers[id], WAKE_PORT, [UNIT])

    def row_batches(self, address: Address, deltas: Iterable[Delta]) -> Iterator[RowBatch]:
        """Yields the row batches of deltas for an input."""
        id, port = address
        if combined := self.pre_aggregations.get(address):
            deltas = combined(deltas)
        for bucket, part in _bounded(self._buckets_of(address, deltas)):
            yield RowBatch(ROW, self.stage_numbers[id], bucket, self.numbers[id], port, part)

    def state_batches(self, id: str, slot: int, deltas: Iterable[Delta]) -> Iterator[RowBatch]:
        """Yields the row batches of a node's state. The bucket of a slot's rows is that of the input on which they
        arrived."""
        address = (id, slot) if (id, slot) in self.partitionings else (id, 0)
        ordered_key = self.ordered_state_keys.get((id, slot))
        parts = self._buckets_of(address, deltas) if ordered_key is None else _by_bucket(ordered_key, deltas)
        for bucket, part in _bounded(parts):
            yield RowBatch(STATE, self.stage_numbers[id], bucket, self.numbers[id], slot, part)

    def buffered_batches(self, address: Address, deltas: Iterable[Delta]) -> Iterator[RowBatch]:
        """Yields the row batches of deltas that wait for an input."""
        id, port = address
        for bucket, part in _bounded(self._buckets_of(address, deltas)):
            yield RowBatch(BUFFERED, self.stage_numbers[id], bucket, self.numbers[id], port, part)

    def buffered(self, row_batch: RowBatch) -> Iterator[RowBatch]:
        """Yields a row batch as it is buffered. Of rows that all tasks have got, only those of the first bucket are."""
        address = self.ids[row_batch.node], row_batch.port
        if address in self.key_functions and address not in self.split_keys:
            yield row_batch
            return
        for bucket, part in self._buckets_of(address, row_batch.deltas):
            if bucket != BROADCAST_BUCKET or row_batch.bucket == 0:
                yield row_batch._replace(bucket=bucket, deltas=part)

    def is_replicated(self, row_batch: RowBatch) -> bool:
        """Returns whether all tasks have a row batch that a task has output or keeps as state."""
        return row_batch.bucket == BROADCAST_BUCKET and (
            row_batch.type == STATE or (self.ids[row_batch.node], row_batch.port) in self.replicated_inputs
        )

    def _buckets_of(self, address: Address, deltas: Iterable[Delta]) -> Iterator[tuple[int, list[Delta]]]:
        key = self.key_functions.get(address)
        if key is None:
            all_deltas = list(deltas)
            return iter([(BROADCAST_BUCKET, all_deltas)] if all_deltas else [])
        if address in self.split_keys:
            parts: dict[int, list[Delta]] = {}
            for delta in deltas:
                parts.setdefault(self.bucket(address, delta), []).append(delta)
            return iter(parts.items())
        return _by_bucket(key, deltas)


def _bounded(parts: Iterable[tuple[int, list[Delta]]]) -> Iterator[tuple[int, list[Delta]]]:
    """Yields the rows of buckets in parts that engines can hold in memory, many at a time."""
    for bucket, deltas in parts:
        for first in range(0, len(deltas), ROWS_PER_BATCH):
            yield bucket, deltas if len(deltas) <= ROWS_PER_BATCH else deltas[first : first + ROWS_PER_BATCH]


def _stage_numbers(physical: PhysicalPlan) -> dict[str, int]:
    """Returns the number of the stage of each stateful node, and of each that scans in order."""
    numbers = {id: stage.number for stage in physical.stages for id in stage.nodes}
    numbers |= {node.id: OUTPUT_STAGE for node, _ in physical.plan.sinks}
    return numbers | dict.fromkeys(physical.ordered_scan.sources, ORDERED_SCAN)


def _key_functions(physical: PhysicalPlan) -> dict[Address, KeyFunction]:
    """Returns the key functions of the inputs whose rows are not all broadcast."""
    functions = {
        address: key_text(_unskewed_columns(key)) for address, key in physical.partitionings.items() if key != BROADCAST
    }
    for node in physical.plan.nodes:
        if isinstance(node.op, Sink | DerivedStream):
            ports = ((node.id, port) for port in range(len(node.inputs)))
            functions |= dict.fromkeys(ports, _sink_key(physical.plan, node, functions))
    return functions


def _sink_key(plan: Plan, node: Node, functions: Mapping[Address, KeyFunction]) -> KeyFunction:
    """Returns the key function of output rows of any kind: the inputs of a sink share one."""
    kinds = inputs_by_kind(node, plan.by_id)
    keys = {kind: functions[node.id, ports[0]] for kind, ports in kinds.items()}
    return next(iter(keys.values())) if len(keys) == 1 else partial(_key_of_kind, keys)


def _key_of_kind(keys: Mapping[str, KeyFunction], row: Sequence[Any]) -> str:
    return (keys.get(row[0].partition(RANK_SEPARATOR)[0]) or keys[""])(row)


def _pre_aggregation(plan: Plan, node: Node) -> Callable[[Iterable[Delta]], list[Delta]] | None:
    """Returns the function that reduces the rows for a node before they are shuffled, or None."""
    match node.op:
        case Group():
            return combiner(node.op)
        case Slice() if node.inputs[0].node not in plan.retractable:
            return partial_top_k(node.op)
    return None


def _by_bucket(key: KeyFunction, deltas: Iterable[Delta]) -> Iterator[tuple[int, list[Delta]]]:
    """Yields deltas by the bucket of their key."""
    buckets: tuple[list[Delta], ...] = tuple([] for _ in range(BUCKET_COUNT))
    for delta in deltas:
        buckets[zlib.crc32(key(delta).encode()) % BUCKET_COUNT].append(delta)  # as `bucket_of`, for each row that moves
    return ((bucket, part) for bucket, part in enumerate(buckets) if part)


def _unskewed_columns(key: Partitioning | None) -> Columns:
    """Returns the partitioning columns of rows without a skewed key."""
    return (key.columns if isinstance(key, SkewedPartitioning) else key) or ()
