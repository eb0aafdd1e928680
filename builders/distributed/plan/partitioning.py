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
EVERYWHERE: Columns = (-1,)
"""The grouping of rows that are all in every task."""
SOURCES: Columns = (0,)
"""By what the pairs of a closure lie whose steps are in every task: by what leads to the other."""


@dataclass(frozen=True)
class Apart:
    """A grouping by some columns, but for the rows with some keys. hot: these keys, in order, as `text_of` makes them,
    each with the columns by which its rows are grouped, or `EVERYWHERE`."""

    columns: Columns
    hot: tuple[tuple[str, Columns], ...]

    def mapped(self, positions: Callable[[Columns], Columns | None]) -> Apart | None:
        """The same of rows whose columns are elsewhere; None where some are lost."""
        columns = positions(self.columns)
        hot = tuple(
            (key, mapped_by) for key, by in self.hot if (mapped_by := by if by == EVERYWHERE else positions(by))
        )
        return None if columns is None or len(hot) < len(self.hot) else Apart(columns, hot)


Grouping = Columns | Apart
Keys = Mapping[Address, Grouping | None]
"""By which of their columns the rows of each input of a node that keeps rows are grouped."""
Makers = Mapping[Address, Sequence[str]]


class Way(NamedTuple):
    """A way from a node to the next one that keeps rows. key: by which of its columns a row lies there."""

    consumer: str
    port: int
    key: Grouping | None


def text_of(columns: Sequence[int]) -> Callable[[Sequence[str | None]], str]:
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


def goes_everywhere(key: Grouping | None) -> bool:
    """Whether some rows of a grouping are in every task."""
    return any(by == EVERYWHERE for _, by in key.hot) if isinstance(key, Apart) else key == EVERYWHERE


def ways(plan: Plan, start: str, key: Grouping | None) -> Iterator[Way]:
    """The ways from a node, through others that keep no rows. key: by which columns the rows that it makes lie."""
    return _ways(plan, start, key, set())


def _ways(plan: Plan, at: str, key: Grouping | None, visited: set[str]) -> Iterator[Way]:
    for id, port in plan.consumers[at]:
        node = plan.by_id[id]
        if is_stateful(node.op):
            yield Way(id, port, key)
        elif id not in visited:
            yield from _ways(plan, id, through(node, key), visited | {id})


def grouped(plan: Plan, node: Node, keys: Keys) -> Grouping | None:
    """By which of their columns the rows that a node makes lie together; None: by none."""
    if not is_stateful(node.op) or not node.inputs:
        return None
    groupings = [keys[node.id, port] for port in range(len(node.inputs))]
    if isinstance(node.op, TransitiveClosure):
        return SOURCES if groupings[0] == EVERYWHERE else groupings[0]
    if all(key == EVERYWHERE for key in groupings):
        return EVERYWHERE
    match node.op:
        case Join(keep=columns) | LeftJoin(keep=columns):
            return _paired(columns, plan.widths[node.inputs[0].node], groupings)
        case Group(keys=columns):
            return _moved(groupings[0], lambda key: positions(columns, key))
        case DerivedStream():
            return _read_again(plan, node, node.op, groupings)
    return groupings[0]


def _read_again(plan: Plan, node: Node, op: DerivedStream, groupings: Sequence[Grouping | None]) -> Grouping | None:
    """By what the rows lie as which a stream that is made is read, if those of all its inputs lie alike."""
    templates = (template_of(edge.node, plan.by_id) for edge in node.inputs)
    read = {
        _moved(key, partial(derived_stream_columns, op, template))
        for key, template in zip(groupings, templates, strict=True)
    }
    return read.pop() if len(read) == 1 else None


def _paired(keep: Columns, width: int, groupings: Sequence[Grouping | None]) -> Grouping | None:
    """By what pairs lie: as that row of them of which one is in one task only. width: of the first one's rows."""

    def kept(columns: Columns) -> Columns | None:
        return positions(keep, columns)

    left, right = groupings[0], _moved(groupings[1], lambda columns: tuple(column + width for column in columns))
    if left == EVERYWHERE:
        return _moved(right, kept)
    if isinstance(left, Apart) and isinstance(right, Apart):
        single = {key: by for key, by in (*left.hot, *right.hot) if by != EVERYWHERE}
        left = Apart(left.columns, tuple((key, single[key]) for key, _ in left.hot))
    return _moved(left, kept)


def through(node: Node, key: Grouping | None) -> Grouping | None:
    """Where a node without memory puts the columns that its input is grouped by."""
    return _moved(key, partial(partitioning.output_columns, node.op))


def _moved(key: Grouping | None, positions: Callable[[Columns], Columns | None]) -> Grouping | None:
    """A grouping of rows whose columns are elsewhere."""
    if key is None or key == EVERYWHERE:
        return key
    return key.mapped(positions) if isinstance(key, Apart) else positions(key)


def makers_of(plan: Plan) -> Makers:
    """For each input of a node that keeps rows the nodes that its rows come from, through others that keep none."""
    makers: dict[Address, list[str]] = {}
    for node in plan.nodes:
        if is_stateful(node.op) or not node.inputs:
            for way in ways(plan, node.id, None):
                makers.setdefault((way.consumer, way.port), []).append(node.id)
    return makers


def ways_to(plan: Plan, node: Node, keys: Keys, address: Address) -> list[Way]:
    """The ways from a node to an input."""
    if not node.inputs:
        return [Way(*address, None)]
    return [way for way in ways(plan, node.id, grouped(plan, node, keys)) if (way.consumer, way.port) == address]


def lying(plan: Plan, makers: Makers, keys: Keys, address: Address) -> Grouping | None:
    """By what the rows for an input lie before they get there, if all lie alike; None: by none."""
    nodes = {*makers.get(address, ())}
    groupings = {way.key for id in nodes for way in ways_to(plan, plan.by_id[id], keys, address)}
    return next(iter(groupings)) if len(groupings) == 1 else None


def from_sources(plan: Plan, node: Node, makers: Makers) -> bool:
    """Whether a node is fed by sources, through others that keep no rows."""
    ports = ((node.id, port) for port in range(len(node.inputs)))
    return all(not plan.by_id[id].inputs for port in ports for id in makers.get(port, ()))


def made_alike(plan: Plan, keys: Keys) -> frozenset[Address]:
    """The inputs for which every task makes the rows that go to all tasks: one of them is to tell."""
    return frozenset(
        (way.consumer, way.port)
        for node in plan.nodes
        if is_stateful(node.op) and goes_everywhere(grouped(plan, node, keys))
        for way in ways(plan, node.id, None)
    )
