"""Hash partitioning: assigns the columns by which the rows on each edge into a stateful operator are partitioned.

A join is partitioned by all of its key columns, or by those of them by which one of its inputs is already partitioned.
Joins on the same variables then need no exchange between them. The same goes for the keys of a `Group` or a `Slice`,
and for all columns where an expression takes the time.

Facts are partitioned by their subject if it varies, also those of derived streams. Output keeps the partitioning that
it has if that sends equal rows to one task. Otherwise facts are partitioned by their subject, and solutions by all of
their values.

Operators that need all rows of an instant have no key, so that one task gets all rows. These are `Slice` without keys,
`Update`, `TransitiveClosure`, a `DerivedStream` that is read by triples, and a query with ordered output.
"""

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
    Join,
    LeftJoin,
    Match,
    Project,
    Select,
    Sink,
    TableFunction,
    TransitiveClosure,
    Union,
    is_stateful,
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


def assign_partitioning(nodes: Sequence[Node]) -> list[Node]:
    """Returns the nodes with `columns` on their edges. The nodes are listed inputs first."""
    return _Partitioner(nodes).result()


class _Partitioner:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.by_id = {node.id: node for node in nodes}
        self.widths = Plan(tuple(nodes)).widths
        self.partitionings: dict[str, Columns | None] = {}
        """The columns by which the output rows of a node are partitioned. None: by none, or not decided yet."""
        self.edge_columns: dict[tuple[str, int], Columns] = {}
        """The columns by which the rows on an edge (node, port) have to be partitioned."""

    def result(self) -> list[Node]:
        for node in self.nodes:
            self.partitionings[node.id] = self._partition(node)
        for node in self.nodes:
            if isinstance(node.op, Distinct):
                key = self.partitionings[node.id]
                self._require(node, tuple(range(node.op.by)) if key is None else key)
        return [self._annotated(node) for node in self.nodes]

    def _annotated(self, node: Node) -> Node:
        edges = [
            Input(edge.node, self.edge_columns.get((node.id, at)), edge.feedback) for at, edge in enumerate(node.inputs)
        ]
        return Node(node.id, node.op, tuple(edges))

    def _partition(self, node: Node) -> Columns | None:
        # In one piece: a case for each kind of operator.
        match node.op:
            case Join(on=on) | LeftJoin(on=on) | AntiJoin(on=on):
                copied = node.op.copied([self.widths[edge.node] for edge in node.inputs])
                return positions(copied, tuple(left for left, _ in self._partition_join(node, on)))
            case op if keys := op.join_keys:
                self.edge_columns.update(((node.id, port), key) for port, key in enumerate(keys))
                return positions(op.copied([self.widths[edge.node] for edge in node.inputs]), keys[0])
            case Distinct():
                return self._facts_partitioning(node.id)
            case DerivedStream():
                return self._require(node, ()) if is_whole(node.op) else self._partition_derived_stream(node, node.op)
            case Union():
                first, *other_keys = (self.partitionings[edge.node] for edge in node.inputs)
                return first if all(key == first for key in other_keys) else None
            case Sink():
                self._partition_sink(node, node.op)
            case TransitiveClosure():
                self._require(node, ())
                return (0,)  # where its pairs begin, since builders may share it out by that
            case op if is_stateful(op):
                width = self.widths[node.inputs[0].node]
                return positions(op.copied((width,)), self._partition_within(node, op.grouping(width)))
            case op if node.inputs and not isinstance(op, Match | Construct | Select):
                return output_columns(op, self.partitionings[node.inputs[0].node])
        return None

    def _partition_within(self, node: Node, keys: Columns) -> Columns:
        """Requires a partitioning by the keys, or by those keys by which the rows are partitioned already."""
        partitioning = self.partitionings[node.inputs[0].node]
        return self._require(node, partitioning if partitioning and set(partitioning) <= set(keys) else keys)

    def _require(self, node: Node, columns: Columns) -> Columns:
        for port in range(len(node.inputs)):
            self.edge_columns[node.id, port] = columns
        return columns

    def _partition_derived_stream(self, node: Node, op: DerivedStream) -> Columns | None:
        """Returns the columns by which the facts of a derived stream are partitioned where they are read."""
        self._partition_sink(node, op)
        templates = (template_of(edge.node, self.by_id) for edge in node.inputs)
        read = {
            derived_stream_columns(op, template, self.edge_columns[node.id, port])
            for port, template in enumerate(templates)
        }
        return read.pop() if len(read) == 1 else None

    def _partition_sink(self, node: Node, op: DerivedStream | Sink) -> None:
        """Requires the same partitioning for all inputs of one kind, since rows of one kind may be equal."""
        for ports in inputs_by_kind(node, self.by_id).values():
            key = self._together(op, [self.by_id[node.inputs[port].node] for port in ports])
            self.edge_columns.update(dict.fromkeys(((node.id, port) for port in ports), key))

    def _together(self, sink: DerivedStream | Sink, inputs: Sequence[Node]) -> Columns:
        """Returns the partitioning that rows of one kind share.

        It is none if they are a sequence, so that one task gets them all. It is the partitioning that all of the nodes
        have already, if they agree. Otherwise facts are partitioned by their subject, and solutions by all of their
        values.
        """
        if is_sequence(sink, (node.op for node in inputs)):
            return ()
        partitionings = {self._output_partitioning(node) for node in inputs}
        partitioning = partitionings.pop() if len(partitionings) == 1 else None
        return self._distinguishing_columns(inputs) if partitioning is None else partitioning

    def _output_partitioning(self, node: Node) -> Columns | None:
        """Returns the columns by which output rows are already partitioned, if that is known."""
        if not isinstance(node.op, Select | Construct):
            return self.partitionings[node.id]
        partitioning = output_columns(node.op, self._settle(node.inputs[0].node))
        return self._facts_partitioning(node.id) if partitioning is None else partitioning

    def _distinguishing_columns(self, inputs: Sequence[Node]) -> Columns:
        """Returns the columns that distinguish output rows of one kind."""
        if isinstance(inputs[0].op, Select):
            return tuple(range(1, len(inputs[0].op.columns) + 1))
        return (min(subject_column(template_of(node.id, self.by_id)) for node in inputs),)

    def _settle(self, id: str) -> Columns | None:
        """Returns the partitioning of a node. A `Distinct` that has none yet is partitioned by all of its columns."""
        node = self.by_id[id]
        match node.op:
            case Distinct(by=by) if self.partitionings[id] is None:
                self.partitionings[id] = tuple(range(by))
            case ConstantFilter() | Filter() | Extend() | TableFunction() | Project() if not is_stateful(node.op):
                self.partitionings[id] = output_columns(node.op, self._settle(node.inputs[0].node))
        return self.partitionings[id]

    def _partition_join(self, node: Node, on: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        left, right = (edge.node for edge in node.inputs)
        pairs = _aligned_keys(on, self.partitionings[left], self.partitionings[right])
        for port, id in enumerate((left, right)):
            self.edge_columns[node.id, port] = tuple(pair[port] for pair in pairs)
            if self.partitionings[id] is None and isinstance(self.by_id[id].op, Distinct):
                self.partitionings[id] = self.edge_columns[node.id, port]
        return pairs

    def _facts_partitioning(self, id: str) -> Columns | None:
        """Returns the partitioning of derived facts: the subject if it varies, else the first column that does.

        The rows of a match have none of their own: they follow the first join.
        """
        template = template_of(id, self.by_id)
        if template is None:
            return None
        varying = [column for column, cell in enumerate(template) if isinstance(cell, int)]
        subject = subject_column(template)
        return (subject,) if subject in varying or not varying else (varying[0],)


def _aligned_keys(
    on: tuple[tuple[int, int], ...], left: Columns | None, right: Columns | None
) -> tuple[tuple[int, int], ...]:
    """Returns the key pairs to partition by.

    They are those by which the left, or else the right, input is already partitioned, and otherwise all.
    """
    for side, key in enumerate((left, right)):
        aligned_pairs = [pair for column in key or () for pair in on if pair[side] == column]
        if key and len(aligned_pairs) == len(key):
            return tuple(aligned_pairs)
    return on
