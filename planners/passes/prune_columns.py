"""The pass `prune_columns`: drops the columns that no operator above reads, so that rows and operator state get
narrower.

A projection of a set may have a row several times. So no column is dropped below a `Distinct` if the multiplicity of
its rows matters later (`squall.plan.Plan.multiplicity_sensitive`). Elsewhere the set has fewer and shorter rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import (
    AntiJoin,
    ColumnMap,
    Distinct,
    Join,
    LeftJoin,
    Match,
    Operator,
    Project,
    Union,
    columns_of,
    is_time_dependent,
    remap_call,
)
from squall.planners.passes.rewrite import Rewrite


def prune_columns(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan without the columns that nothing reads."""
    return ColumnPruning(plan).result()


@dataclass(frozen=True)
class PrunedRows:
    """An old node in the new plan.

    Attributes:
        node: The node that has its rows.
        width: The number of columns of that node.
        places: For each old column that is read its new position. None means that it is unbound in all rows, and that
            no column holds it.
    """

    node: str
    width: int
    places: ColumnMap

    def place_of(self, column: int) -> int:
        """Returns the position of a column that is not unbound."""
        place = self.places[column]
        assert place is not None
        return place


class ColumnPruning(Rewrite):
    """The plan with each node over the columns that are read."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.counted = plan.multiplicity_sensitive
        self.read: dict[str, set[int]] = {node.id: set() for node in plan.nodes}
        """The columns of each old node that operators above it read."""
        self.rows: dict[str, PrunedRows] = {}
        self.required: dict[str, list[Iterable[int]]] = {}
        """The columns that each old node reads of each input."""
        reentrant = {edge.node for node in plan.nodes for edge in node.inputs if edge.feedback}
        self.read.update((id, {*range(plan.widths[id])}) for id in reentrant)
        for node in reversed(plan.nodes):
            required = self.required[node.id] = self.required_columns(node)
            for edge, columns in zip(node.inputs, required, strict=True):
                self.read[edge.node].update(columns)
        for node in plan.nodes:
            self.rows[node.id] = self.pruned(node)

    def required_columns(self, node: Node) -> list[Iterable[int]]:
        """Returns the columns of each input that a node needs: those that decide about its rows, or that are read above
        it.

        Facts that are read again are read with all columns.
        """
        read = self.read[node.id]
        widths = [self.plan.widths[edge.node] for edge in node.inputs]
        compares_rows = not self.can_prune(node) if isinstance(node.op, Distinct) else node.op.whole_rows
        if compares_rows or is_time_dependent(node.op):
            return [range(width) for width in widths]
        copied = node.op.copied(widths)
        needed = {*node.op.reads(widths), *(column for place in read if (column := copied[place]) is not None)}
        starts = [node.op.first_column(port, widths) for port in range(len(widths))]
        return [
            {column - start for column in needed if start <= column < start + width}
            for start, width in zip(starts, widths, strict=True)
        ]

    def can_prune(self, node: Node) -> bool:
        """Returns whether a set may have fewer columns: its multiplicities do not matter, and all of its columns are
        keys.
        """
        assert isinstance(node.op, Distinct)
        return node.id not in self.counted and self.plan.widths[node.id] == node.op.by

    def pruned(self, node: Node) -> PrunedRows:
        """Returns the old node in the new plan."""
        read = sorted(self.read[node.id])
        match node.op:
            case Match():
                return self.pruned_match(node, node.op, read)
            case Join() | LeftJoin():
                return self.pruned_join(node, node.op, read)
            case AntiJoin(on=on):
                left, right = self.required_input(node, 0), self.required_input(node, 1)
                on = tuple(
                    (left.place_of(left_column), right.place_of(right_column)) for left_column, right_column in on
                )
                return replace(left, node=self.put(node, AntiJoin(on), left.node, right.node))
            case Project(columns=columns):
                rows = self.rows[node.inputs[0].node]
                moved = {column: columns[column] for column in read}
                places = {column: None if old is None else rows.places[old] for column, old in moved.items()}
                return replace(rows, places=places)
            case Union():
                return self.over_exact_inputs(node, node.op, read)
            case Distinct() if self.can_prune(node):
                return self.over_exact_inputs(node, Distinct(len(read)), read)
            case op if op.arity == (1, 1) and not op.whole_rows:
                return self.over_other_columns(node, op)
            case _:
                inputs = [self.projected(edge.node, range(self.plan.widths[edge.node])) for edge in node.inputs]
                return self.unpruned(node, node.op, *inputs)

    def pruned_match(self, node: Node, op: Match, read: Sequence[int]) -> PrunedRows:
        """Returns a `Match` without the cells of unread columns. A repeated column compares cells, so that it stays."""
        numbers = [cell for cell in op.cells if isinstance(cell, int)]
        kept_columns = [column for column in sorted(set(numbers)) if column in read or numbers.count(column) > 1]
        cells = tuple(
            cell if not isinstance(cell, int) else kept_columns.index(cell) if cell in kept_columns else None
            for cell in op.cells
        )
        return _rows_with(self.put(node, Match(cells), *self.inputs(node)), kept_columns)

    def pruned_join(self, node: Node, op: Join | LeftJoin, read: Sequence[int]) -> PrunedRows:
        left, right = self.required_input(node, 0), self.required_input(node, 1)
        width = self.plan.widths[node.inputs[0].node]
        out = sorted({*read, *(columns_of(op.condition) if isinstance(op, LeftJoin) else ())})
        positions = ((op.keep[column], column) for column in out)
        keep = tuple(
            left.place_of(position) if position < width else left.width + right.place_of(position - width)
            for position, _ in positions
        )
        on = tuple((left.place_of(position), right.place_of(other)) for position, other in op.on)
        places = {column: place for place, column in enumerate(out)}
        if isinstance(op, Join):
            return _rows_with(self.put(node, Join(on, keep), left.node, right.node), out)
        condition = op.condition and remap_call(op.condition, places)
        return _rows_with(self.put(node, LeftJoin(on, keep, condition), left.node, right.node), out)

    def over_other_columns(self, node: Node, op: Operator) -> PrunedRows:
        """Returns the node over the columns that its input still has. It may add its own to these."""
        first, width = self.plan.widths[node.inputs[0].node], self.plan.widths[node.id]
        needs_all = is_time_dependent(op) if op.extends_rows else self.reads_unbound(node)
        rows = self.required_input(node, 0) if needs_all else self.rows[node.inputs[0].node]
        new = op.over(rows.places)
        if not op.extends_rows:
            return self.unpruned(node, new, rows.node)
        places = {**rows.places, **{first + added: rows.width + added for added in range(width - first)}}
        return PrunedRows(self.put(node, new, rows.node), rows.width + width - first, places)

    def over_exact_inputs(self, node: Node, op: Operator, read: Sequence[int]) -> PrunedRows:
        """Returns the node over inputs that have just these columns."""
        return _rows_with(self.put(node, op, *(self.projected(edge.node, read) for edge in node.inputs)), read)

    def unpruned(self, node: Node, op: Operator, *inputs: str) -> PrunedRows:
        """Returns a node whose own columns are unchanged."""
        return _rows_with(self.put(node, op, *inputs), range(self.plan.widths[node.id]))

    def required_input(self, node: Node, port: int) -> PrunedRows:
        """Returns an input without the columns that the node does not need."""
        input, columns = node.inputs[port].node, sorted(set(self.required[node.id][port]))
        rows = self.rows[input]
        if {rows.places[column] for column in columns} == set(range(rows.width)):
            return rows
        return _rows_with(self.projected(input, columns), columns)

    def projected(self, input: str, columns: Sequence[int]) -> str:
        """Returns the node with just these columns of an old node."""
        rows = self.rows[input]
        places = tuple(rows.places[column] for column in columns)
        return rows.node if places == tuple(range(rows.width)) else self.add(Project(places), rows.node)

    def reads_unbound(self, node: Node) -> bool:
        """Returns whether the node reads a column that is unbound in all rows, so that no column holds it."""
        places = self.rows[node.inputs[0].node].places
        return any(places[column] is None for column in self.required[node.id][0])


def _rows_with(node: str, columns: Sequence[int]) -> PrunedRows:
    """Returns rows that have just these columns, in this order."""
    return PrunedRows(node, len(columns), {column: place for place, column in enumerate(columns)})
