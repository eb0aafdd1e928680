"""Grouping columns: by which columns of its rows each edge into an operator that keeps rows has to be partitioned.

A join groups by all the columns it joins on, or by those of them by which one of its inputs is grouped already: joins
on the same variables then need no data moved between them. The same goes for the keys of a `Group` or a `Slice`, and
for all columns where an expression takes the time. Facts are grouped by their subject where it varies, also those of
streams that the program makes. What looks at all rows of an instant (a `Slice` without keys, `Update`, a `Feed` that is
read by triples) or follows paths through them (`Closure`) has them all in one place.
"""

from __future__ import annotations

from collections.abc import Sequence

from squall.operators import (
    AntiJoin,
    Apply,
    Closure,
    Deliver,
    Distinct,
    Emit,
    Extend,
    Feed,
    Group,
    Join,
    LeftJoin,
    Project,
    Slice,
    Test,
    Union,
    Update,
    Where,
    is_timed,
)
from squall.plan import Input, Node, Plan, feeds_triples
from squall.windows import Count

Columns = tuple[int, ...]


def group(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with `columns` on their edges. Nodes are listed inputs first."""
    return _Grouping(nodes).result()


class _Grouping:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.by_id = {node.id: node for node in nodes}
        self.widths = Plan(tuple(nodes)).widths
        self.keys: dict[str, Columns | None] = {}
        """By which columns the rows that a node makes are grouped; None: by none, or not decided yet."""
        self.wanted: dict[tuple[str, int], Columns] = {}
        """By which columns the rows on an edge (node, port) have to be grouped."""

    def result(self) -> list[Node]:
        for node in self.nodes:
            self.keys[node.id] = self._key(node)
        for node in self.nodes:
            if isinstance(node.op, Distinct):
                key = self.keys[node.id]
                self._want(node, tuple(range(node.op.by)) if key is None else key)
        return [self._annotated(node) for node in self.nodes]

    def _annotated(self, node: Node) -> Node:
        edges = [Input(edge.node, self.wanted.get((node.id, at)), edge.feedback) for at, edge in enumerate(node.inputs)]
        return Node(node.id, node.op, tuple(edges))

    def _key(self, node: Node) -> Columns | None:
        match node.op:
            case Join(on=on) | LeftJoin(on=on):
                return _moved([left for left, _ in self._join(node, on)], node.op.keep)
            case AntiJoin(on=on):
                return tuple(left for left, _ in self._join(node, on))
            case Distinct():
                return self._facts_key(node)
            case Group(keys=keys):
                return self._group(node, keys)
            case Slice(keys=keys):
                return self._within(node, keys)
            case Closure() | Update():
                return self._want(node, ())
            case Feed():
                key = self._want(node, () if _is_whole(node.op) else (0,))
                return key if not key or feeds_triples(node, self.by_id) else None
            case Test() | Extend() if is_timed(node.op):
                return self._within(node, tuple(range(self.widths[node.inputs[0].node])))
            case Where() | Test() | Extend() | Apply():
                return self.keys[node.inputs[0].node]
            case Project(columns=columns):
                return _moved(self.keys[node.inputs[0].node], columns)
            case Union():
                first, *others = (self.keys[edge.node] for edge in node.inputs)
                return first if all(key == first for key in others) else None
            case Deliver():
                return self._want(node, (0,))
        return None

    def _group(self, node: Node, keys: Columns) -> Columns | None:
        return _moved(self._within(node, keys), keys)

    def _within(self, node: Node, keys: Columns) -> Columns:
        """By all keys, or by those of them by which the rows lie together already."""
        lies = self.keys[node.inputs[0].node]
        return self._want(node, lies if lies and set(lies) <= set(keys) else keys)

    def _want(self, node: Node, columns: Columns) -> Columns:
        for port in range(len(node.inputs)):
            self.wanted[node.id, port] = columns
        return columns

    def _join(self, node: Node, on: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        left, right = (edge.node for edge in node.inputs)
        pairs = _aligned(on, self.keys[left], self.keys[right])
        for port, id in enumerate((left, right)):
            self.wanted[node.id, port] = tuple(pair[port] for pair in pairs)
            if self.keys[id] is None and isinstance(self.by_id[id].op, Distinct):
                self.keys[id] = self.wanted[node.id, port]
        return pairs

    def _facts_key(self, node: Node) -> Columns | None:
        """The first column that varies in facts made by rules; what holds a match's rows follows the first join."""
        first = self.by_id[node.inputs[0].node].op
        if not isinstance(first, Emit):
            return None
        varying = [column for column, cell in enumerate(first.template) if isinstance(cell, int)]
        return tuple(varying[:1])


def _is_whole(op: Feed) -> bool:
    """Whether what a stream brings depends on all of its facts: on their order, or on whether any of them has
    changed."""
    return isinstance(op.source.window, Count) or op.report.policy == "change"


def _aligned(
    on: tuple[tuple[int, int], ...], left: Columns | None, right: Columns | None
) -> tuple[tuple[int, int], ...]:
    """The pairs to group by: those by which the left, else the right input is grouped already, else all."""
    for side, key in enumerate((left, right)):
        chosen = [pair for column in key or () for pair in on if pair[side] == column]
        if key and len(chosen) == len(key):
            return tuple(chosen)
    return on


def _moved(key: Sequence[int] | None, kept: Sequence[int | None]) -> Columns | None:
    """Where the columns of a key lie in rows that keep these columns; None if they do not keep all."""
    if key is None or not set(key) <= set(kept):
        return None
    return tuple(kept.index(column) for column in key)
