"""Partitioning: by which of their columns the rows of each input meet in one task, and how that changes from node to
node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from squall.plan import Node, Plan, partitioning
from squall.plan.operators import DerivedStream, TransitiveClosure, is_stateful
from squall.plan.partitioning import Columns, derived_stream_columns, positions, template_of

Address = tuple[str, int]
"""A node, and the number of one of its inputs."""
BROADCAST: Columns = (-1,)
"""The partitioning of rows that every task has."""
BY_PATH_START: Columns = (0,)
"""The partitioning of the pairs of a transitive closure whose steps are broadcast: by the node at which the path
begins."""


@dataclass(frozen=True)
class SkewedPartitioning:
    """A partitioning by some columns, except for the rows of skewed keys.

    Attributes:
        columns: the columns by which rows with other keys are partitioned.
        split_keys: the skewed keys in order, as `key_text` makes them. Each has the columns by which its own rows are
            partitioned, or `BROADCAST`.
    """

    columns: Columns
    split_keys: tuple[tuple[str, Columns], ...]

    def mapped(self, positions: Callable[[Columns], Columns | None]) -> SkewedPartitioning | None:
        """Returns the partitioning of rows whose columns have moved, or None if one of the columns is gone."""
        columns = positions(self.columns)
        split_keys = tuple(
            (partitioning, mapped_by)
            for partitioning, by in self.split_keys
            if (mapped_by := by if by == BROADCAST else positions(by))
        )
        if columns is None or len(split_keys) < len(self.split_keys):
            return None
        return SkewedPartitioning(columns, split_keys)


Partitioning = Columns | SkewedPartitioning
Partitionings = Mapping[Address, Partitioning | None]
"""The partitioning of each input of a stateful node."""
Producers = Mapping[Address, Sequence[str]]


class StatefulEdge(NamedTuple):
    """A path from a node to the next stateful one, through stateless nodes. `key` is the partitioning of the rows that
    arrive there."""

    consumer: str
    port: int
    key: Partitioning | None


def key_text(columns: Sequence[int]) -> Callable[[Sequence[str | None]], str]:
    """Returns the function from a row to one text of its cells in some columns. Rows that agree there have the same
    text."""
    if not columns:
        return lambda _: ""
    of = itemgetter(*columns)
    if len(columns) == 1:
        return lambda row: of(row) or ""

    def text(row: Sequence[str | None]) -> str:
        cells = of(row)
        return "\n".join(cells if None not in cells else [cell or "" for cell in cells])

    return text


def is_broadcast(partitioning: Partitioning | None) -> bool:
    """Returns whether some rows of a partitioning are in every task."""
    return (
        any(by == BROADCAST for _, by in partitioning.split_keys)
        if isinstance(partitioning, SkewedPartitioning)
        else partitioning == BROADCAST
    )


def stateful_edges(plan: Plan, start: str, partitioning: Partitioning | None) -> Iterator[StatefulEdge]:
    """Yields the edges from a node to the next stateful nodes. partitioning: that of the rows that the node outputs."""
    return _stateful_edges(plan, start, partitioning, set())


def _stateful_edges(
    plan: Plan, at: str, partitioning: Partitioning | None, visited: set[str]
) -> Iterator[StatefulEdge]:
    for id, port in plan.consumers[at]:
        node = plan.by_id[id]
        if is_stateful(node.op):
            yield StatefulEdge(id, port, partitioning)
        elif id not in visited:
            yield from _stateful_edges(plan, id, partitioning_through(node, partitioning), visited | {id})


def output_partitioning(plan: Plan, node: Node, partitionings: Partitionings) -> Partitioning | None:
    """Returns the partitioning of the rows that a node outputs, or None if there is none."""
    if not is_stateful(node.op) or not node.inputs:
        return None
    input_partitionings = [partitionings[node.id, port] for port in range(len(node.inputs))]
    if isinstance(node.op, TransitiveClosure):
        return BY_PATH_START if input_partitionings[0] == BROADCAST else input_partitionings[0]
    if all(partitioning == BROADCAST for partitioning in input_partitionings):
        return BROADCAST
    if isinstance(node.op, DerivedStream):
        return _derived_stream_partitioning(plan, node, node.op, input_partitionings)
    widths = [plan.widths[edge.node] for edge in node.inputs]
    copied = node.op.copied(widths)
    if node.op.join_keys:
        return _join_partitioning(copied, widths, input_partitionings)
    return _mapped(input_partitionings[0], partial(positions, copied))


def _derived_stream_partitioning(
    plan: Plan, node: Node, op: DerivedStream, input_partitionings: Sequence[Partitioning | None]
) -> Partitioning | None:
    """Returns the partitioning of a derived stream as it is read, if all inputs of its node agree on it."""
    templates = (template_of(edge.node, plan.by_id) for edge in node.inputs)
    read = {
        _mapped(partitioning, partial(derived_stream_columns, op, template))
        for partitioning, template in zip(input_partitionings, templates, strict=True)
    }
    return read.pop() if len(read) == 1 else None


def _join_partitioning(
    keep: Sequence[int | None], widths: Sequence[int], input_partitionings: Sequence[Partitioning | None]
) -> Partitioning | None:
    """Returns the partitioning of joined rows: that of an input whose rows are in one task only. widths: those of the
    inputs."""
    firsts = accumulate(widths, initial=0)
    of_joined = (
        _mapped(key, partial(_shifted, first)) for first, key in zip(firsts, input_partitionings, strict=False)
    )
    spread = [key for key in of_joined if key != BROADCAST]
    whole = spread[0]
    if isinstance(whole, SkewedPartitioning):
        skewed = [key for key in spread if isinstance(key, SkewedPartitioning)]
        single = {text: by for key in skewed for text, by in key.split_keys if by != BROADCAST}
        split_keys = tuple((text, single.get(text, BROADCAST)) for text, _ in whole.split_keys)
        whole = SkewedPartitioning(whole.columns, split_keys)
    return _mapped(whole, partial(positions, keep))


def _shifted(width: int, columns: Columns) -> Columns:
    return tuple(column + width for column in columns)


def partitioning_through(node: Node, key: Partitioning | None) -> Partitioning | None:
    """Returns the partitioning behind a stateless node, given that of its input. Rows that are all in one task stay
    there, also where a union adds others."""
    return key if key == () else _mapped(key, partial(partitioning.output_columns, node.op))


def _mapped(partitioning: Partitioning | None, positions: Callable[[Columns], Columns | None]) -> Partitioning | None:
    """Returns the partitioning of rows whose columns have moved."""
    if partitioning is None or partitioning == BROADCAST:
        return partitioning
    return partitioning.mapped(positions) if isinstance(partitioning, SkewedPartitioning) else positions(partitioning)


def producers_of(plan: Plan) -> Producers:
    """Returns the stateful nodes and sources that the rows of each input of a stateful node come from."""
    producers: dict[Address, list[str]] = {}
    for node in plan.nodes:
        if is_stateful(node.op) or not node.inputs:
            for edge in stateful_edges(plan, node.id, None):
                producers.setdefault((edge.consumer, edge.port), []).append(node.id)
    return producers


def stateful_edges_to(plan: Plan, node: Node, partitionings: Partitionings, address: Address) -> list[StatefulEdge]:
    """Returns the edges from a node to one input."""
    if not node.inputs:
        return [StatefulEdge(*address, None)]
    return [
        edge
        for edge in stateful_edges(plan, node.id, output_partitioning(plan, node, partitionings))
        if (edge.consumer, edge.port) == address
    ]


def arriving_partitioning(
    plan: Plan, producers: Producers, partitionings: Partitionings, address: Address
) -> Partitioning | None:
    """Returns the partitioning of the rows for an input before they are shuffled, or None if they have several or
    none."""
    nodes = {*producers.get(address, ())}
    input_partitionings = {
        edge.key for id in nodes for edge in stateful_edges_to(plan, plan.by_id[id], partitionings, address)
    }
    return next(iter(input_partitionings)) if len(input_partitionings) == 1 else None


def is_fed_by_sources(plan: Plan, node: Node, producers: Producers) -> bool:
    """Returns whether only sources feed a node, through stateless nodes."""
    ports = ((node.id, port) for port in range(len(node.inputs)))
    return all(not plan.by_id[id].inputs for port in ports for id in producers.get(port, ()))


def replicated_inputs_of(plan: Plan, partitionings: Partitionings) -> frozenset[Address]:
    """Returns the inputs for which every task produces the same broadcast rows. Only one task has to report those."""
    return frozenset(
        (edge.consumer, edge.port)
        for node in plan.nodes
        if is_stateful(node.op) and is_broadcast(output_partitioning(plan, node, partitionings))
        for edge in stateful_edges(plan, node.id, None)
    )
