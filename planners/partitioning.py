"""Grouping columns: by which columns of its rows each edge into an operator that keeps rows has to be partitioned.

A join groups by all the columns it joins on, or by those of them by which one of its inputs is grouped already: joins
on the same variables then need no data moved between them. The same goes for the keys of a `Group` or a `Slice`, and
for all columns where an expression takes the time. Facts are grouped by their subject where it varies, also those of
streams that the program makes. What is told stays where it lies, if that tells rows that are alike to one place: else
facts go by their subject, and solutions by all of their values. What looks at all rows of an instant (a `Slice` without
keys, `Update`, a `DerivedStream` that is read by triples, a query whose solutions are told in order) or follows paths
through them (`TransitiveClosure`) has them all in one place."""

from __future__ import annotations

from collections.abc import Sequence

from squall.plan import Input, Node, Plan
from squall.plan.operators import (
    AntiJoin,
    ConstantFilter,
    Construct,
    DerivedStream,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Project,
    Select,
    Sink,
    Slice,
    TableFunction,
    TransitiveClosure,
    Union,
    Update,
    is_stateful,
    is_time_dependent,
)
from squall.plan.partitioning import (
    Columns,
    derived_stream_columns,
    inputs_by_kind,
    is_sequence,
    is_whole,
    output_columns,
    positions,
    subject_column,
    template_of,
)


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
                return positions(node.op.keep, tuple(left for left, _ in self._join(node, on)))
            case AntiJoin(on=on):
                return tuple(left for left, _ in self._join(node, on))
            case Distinct():
                return self._facts_key(node.id)
            case Group(keys=keys):
                return self._group(node, keys)
            case Slice(keys=keys):
                return self._within(node, keys)
            case TransitiveClosure():
                self._want(node, ())
                return (0,)  # where its pairs begin, since builders may share it out by that
            case Update():
                return self._want(node, ())
            case DerivedStream():
                return self._want(node, ()) if is_whole(node.op) else self._feed(node, node.op)
            case Filter() | Extend() if is_time_dependent(node.op):
                return self._within(node, tuple(range(self.widths[node.inputs[0].node])))
            case ConstantFilter() | Filter() | Extend() | TableFunction() | Project():
                return output_columns(node.op, self.keys[node.inputs[0].node])
            case Union():
                first, *other_keys = (self.keys[edge.node] for edge in node.inputs)
                return first if all(key == first for key in other_keys) else None
            case Sink():
                self._sink_partitioning(node, node.op)
        return None

    def _group(self, node: Node, keys: Columns) -> Columns | None:
        return positions(keys, self._within(node, keys))

    def _within(self, node: Node, keys: Columns) -> Columns:
        """By all keys, or by those of them by which the rows lie together already."""
        lies = self.keys[node.inputs[0].node]
        return self._want(node, lies if lies and set(lies) <= set(keys) else keys)

    def _want(self, node: Node, columns: Columns) -> Columns:
        for port in range(len(node.inputs)):
            self.wanted[node.id, port] = columns
        return columns

    def _feed(self, node: Node, op: DerivedStream) -> Columns | None:
        """By what the facts of a stream that is made lie as they are read."""
        self._sink_partitioning(node, op)
        templates = (template_of(edge.node, self.by_id) for edge in node.inputs)
        read = {
            derived_stream_columns(op, template, self.wanted[node.id, port]) for port, template in enumerate(templates)
        }
        return read.pop() if len(read) == 1 else None

    def _sink_partitioning(self, node: Node, op: DerivedStream | Sink) -> None:
        """What is told of one kind, and so may be alike, goes by the same columns."""
        for ports in inputs_by_kind(node, self.by_id).values():
            key = self._together(op, [self.by_id[node.inputs[port].node] for port in ports])
            self.wanted.update(dict.fromkeys(((node.id, port) for port in ports), key))

    def _together(self, sink: DerivedStream | Sink, inputs: Sequence[Node]) -> Columns:
        """By what the rows of some nodes go that are of one kind: to one place, if all of them are a sequence; by those
        columns by which all of them lie already; else facts by their subject, and solutions by all of their values."""
        if is_sequence(sink, (node.op for node in inputs)):
            return ()
        partitionings = {self._lies(node) for node in inputs}
        partitioning = partitionings.pop() if len(partitionings) == 1 else None
        return self._apart(inputs) if partitioning is None else partitioning

    def _lies(self, node: Node) -> Columns | None:
        """By what rows that are told lie already, if that is known."""
        if not isinstance(node.op, Select | Construct):
            return self.keys[node.id]
        lies = output_columns(node.op, self._settled(node.inputs[0].node))
        return self._facts_key(node.id) if lies is None else lies

    def _apart(self, inputs: Sequence[Node]) -> Columns:
        """By what rows of one kind that are told can be told apart."""
        if isinstance(inputs[0].op, Select):
            return tuple(range(1, len(inputs[0].op.columns) + 1))
        return (min(subject_column(template_of(node.id, self.by_id)) for node in inputs),)

    def _settled(self, id: str) -> Columns | None:
        """By what the rows of a node lie, once a set for which nobody has decided lies by all of its columns."""
        node = self.by_id[id]
        match node.op:
            case Distinct(by=by) if self.keys[id] is None:
                self.keys[id] = tuple(range(by))
            case ConstantFilter() | Filter() | Extend() | TableFunction() | Project() if not is_stateful(node.op):
                self.keys[id] = output_columns(node.op, self._settled(node.inputs[0].node))
        return self.keys[id]

    def _join(self, node: Node, on: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        left, right = (edge.node for edge in node.inputs)
        pairs = _aligned(on, self.keys[left], self.keys[right])
        for port, id in enumerate((left, right)):
            self.wanted[node.id, port] = tuple(pair[port] for pair in pairs)
            if self.keys[id] is None and isinstance(self.by_id[id].op, Distinct):
                self.keys[id] = self.wanted[node.id, port]
        return pairs

    def _facts_key(self, id: str) -> Columns | None:
        """The subject of facts made by rules, if that varies, else the first column that does; what holds a match's
        rows follows the first join."""
        template = template_of(id, self.by_id)
        if template is None:
            return None
        varying = [column for column, cell in enumerate(template) if isinstance(cell, int)]
        subject = subject_column(template)
        return (subject,) if subject in varying or not varying else (varying[0],)


def _aligned(
    on: tuple[tuple[int, int], ...], left: Columns | None, right: Columns | None
) -> tuple[tuple[int, int], ...]:
    """The pairs to group by: those by which the left, else the right input is grouped already, else all."""
    for side, key in enumerate((left, right)):
        aligned_pairs = [pair for column in key or () for pair in on if pair[side] == column]
        if key and len(aligned_pairs) == len(key):
            return tuple(aligned_pairs)
    return on
