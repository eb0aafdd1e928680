"""Where rows lie: by which of their columns those of an input are together in one task, and what becomes of that on the
ways from node to node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from squall.plan import Node, Plan, partitioning
from squall.plan.operators import DerivedStream, Group, Join, LeftJoin, TransitiveClosure, is_stateful
from squall.plan.partitioning import Columns, derived_stream_columns, positions, template_of

Address = tuple[str, int]
"""A node, and the number of one of its inputs."""
BROADCAST: Columns = (-1,)
"""The grouping of rows that are all in every task."""
BY_PATH_START: Columns = (0,)
"""By what the pairs of a closure lie whose steps are in every task: by what leads to the other."""


@dataclass(frozen=True)
class SkewedPartitioning:
    """A grouping by some columns, but for the rows with some keys. hot: these keys, in order, as `key_text` makes them,
    each with the columns by which its rows are grouped, or `BROADCAST`."""

    columns: Columns
    hot: tuple[tuple[str, Columns], ...]

    def mapped(self, positions: Callable[[Columns], Columns | None]) -> SkewedPartitioning | None:
        """The same of rows whose columns are elsewhere; None where some are lost."""
        columns = positions(self.columns)
        hot = tuple((key, mapped_by) for key, by in self.hot if (mapped_by := by if by == BROADCAST else positions(by)))
        return None if columns is None or len(hot) < len(self.hot) else SkewedPartitioning(columns, hot)


Partitioning = Columns | SkewedPartitioning
Partitionings = Mapping[Address, Partitioning | None]
"""By which of their columns the rows of each input of a node that keeps rows are grouped."""
Producers = Mapping[Address, Sequence[str]]


class StatefulEdge(NamedTuple):
    """A way from a node to the next one that keeps rows. key: by which of its columns a row lies there."""

    consumer: str
    port: int
    key: Partitioning | None


def key_text(columns: Sequence[int]) -> Callable[[Sequence[str | None]], str]:
    """What makes one text of the cells of a row in some columns, the same for rows that are alike there."""
    if not columns:
        return lambda _: ""
    of = itemgetter(*columns)
    if len(columns) == 1:
        return lambda row: of(row) or ""

    def text(row: Sequence[str | None]) -> str:
        cells = of(row)
        return "\n".join(cells if None not in cells else [cell or "" for cell in cells])

    return text


def is_broadcast(key: Partitioning | None) -> bool:
    """Whether some rows of a grouping are in every task."""
    return any(by == BROADCAST for _, by in key.hot) if isinstance(key, SkewedPartitioning) else key == BROADCAST


def stateful_edges(plan: Plan, start: str, key: Partitioning | None) -> Iterator[StatefulEdge]:
    """The ways from a node, through others that keep no rows. key: by which columns the rows that it makes lie."""
    return _stateful_edges(plan, start, key, set())


def _stateful_edges(plan: Plan, at: str, key: Partitioning | None, visited: set[str]) -> Iterator[StatefulEdge]:
    for id, port in plan.consumers[at]:
        node = plan.by_id[id]
        if is_stateful(node.op):
            yield StatefulEdge(id, port, key)
        elif id not in visited:
            yield from _stateful_edges(plan, id, partitioning_through(node, key), visited | {id})


def output_partitioning(plan: Plan, node: Node, keys: Partitionings) -> Partitioning | None:
    """By which of their columns the rows that a node makes lie together; None: by none."""
    if not is_stateful(node.op) or not node.inputs:
        return None
    groupings = [keys[node.id, port] for port in range(len(node.inputs))]
    if isinstance(node.op, TransitiveClosure):
        return BY_PATH_START if groupings[0] == BROADCAST else groupings[0]
    if all(key == BROADCAST for key in groupings):
        return BROADCAST
    match node.op:
        case Join(keep=columns) | LeftJoin(keep=columns):
            return _join_partitioning(columns, plan.widths[node.inputs[0].node], groupings)
        case Group(keys=columns):
            return _mapped(groupings[0], lambda key: positions(columns, key))
        case DerivedStream():
            return _derived_stream_partitioning(plan, node, node.op, groupings)
    return groupings[0]


def _derived_stream_partitioning(
    plan: Plan, node: Node, op: DerivedStream, groupings: Sequence[Partitioning | None]
) -> Partitioning | None:
    """By what the rows lie as which a stream that is made is read, if those of all its inputs lie alike."""
    templates = (template_of(edge.node, plan.by_id) for edge in node.inputs)
    read = {
        _mapped(key, partial(derived_stream_columns, op, template))
        for key, template in zip(groupings, templates, strict=True)
    }
    return read.pop() if len(read) == 1 else None


def _join_partitioning(keep: Columns, width: int, groupings: Sequence[Partitioning | None]) -> Partitioning | None:
    """By what pairs lie: as that row of them of which one is in one task only. width: of the first one's rows."""

    def kept(columns: Columns) -> Columns | None:
        return positions(keep, columns)

    left, right = groupings[0], _mapped(groupings[1], lambda columns: tuple(column + width for column in columns))
    if left == BROADCAST:
        return _mapped(right, kept)
    if isinstance(left, SkewedPartitioning) and isinstance(right, SkewedPartitioning):
        single = {key: by for key, by in (*left.hot, *right.hot) if by != BROADCAST}
        left = SkewedPartitioning(left.columns, tuple((key, single[key]) for key, _ in left.hot))
    return _mapped(left, kept)


def partitioning_through(node: Node, key: Partitioning | None) -> Partitioning | None:
    """Where a node without memory puts the columns that its input is grouped by."""
    return _mapped(key, partial(partitioning.output_columns, node.op))


def _mapped(key: Partitioning | None, positions: Callable[[Columns], Columns | None]) -> Partitioning | None:
    """A grouping of rows whose columns are elsewhere."""
    if key is None or key == BROADCAST:
        return key
    return key.mapped(positions) if isinstance(key, SkewedPartitioning) else positions(key)


def producers_of(plan: Plan) -> Producers:
    """For each input of a node that keeps rows the nodes that its rows come from, through others that keep none."""
    makers: dict[Address, list[str]] = {}
    for node in plan.nodes:
        if is_stateful(node.op) or not node.inputs:
            for way in stateful_edges(plan, node.id, None):
                makers.setdefault((way.consumer, way.port), []).append(node.id)
    return makers


def stateful_edges_to(plan: Plan, node: Node, keys: Partitionings, address: Address) -> list[StatefulEdge]:
    """The ways from a node to an input."""
    if not node.inputs:
        return [StatefulEdge(*address, None)]
    return [
        way
        for way in stateful_edges(plan, node.id, output_partitioning(plan, node, keys))
        if (way.consumer, way.port) == address
    ]


def arriving_partitioning(plan: Plan, makers: Producers, keys: Partitionings, address: Address) -> Partitioning | None:
    """By what the rows for an input lie before they get there, if all lie alike; None: by none."""
    nodes = {*makers.get(address, ())}
    groupings = {way.key for id in nodes for way in stateful_edges_to(plan, plan.by_id[id], keys, address)}
    return next(iter(groupings)) if len(groupings) == 1 else None


def is_fed_by_sources(plan: Plan, node: Node, makers: Producers) -> bool:
    """Whether a node is fed by sources, through others that keep no rows."""
    ports = ((node.id, port) for port in range(len(node.inputs)))
    return all(not plan.by_id[id].inputs for port in ports for id in makers.get(port, ()))


def replicated_inputs_of(plan: Plan, keys: Partitionings) -> frozenset[Address]:
    """The inputs for which every task makes the rows that go to all tasks: one of them is to tell."""
    return frozenset(
        (way.consumer, way.port)
        for node in plan.nodes
        if is_stateful(node.op) and is_broadcast(output_partitioning(plan, node, keys))
        for way in stateful_edges(plan, node.id, None)
    )
