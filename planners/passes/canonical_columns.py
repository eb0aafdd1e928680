"""The pass `canonical_columns`: joins output their columns in an order that does not depend on that of the joins.

Plans of one program with different orders of joins then have equal operators behind them, whose state a run can take
over from one plan to the other (`squall.plan.equivalence`). The pass runs last, for plans that may be replaced while
they run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.equivalence import RowDigests
from squall.plan.operators import Join, LeftJoin
from squall.planners.passes.prune_columns import ColumnPruning, PrunedRows


def canonical_columns(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan with the columns of joins in a canonical order."""
    return _ColumnOrdering(plan).result()


class _ColumnOrdering(ColumnPruning):
    def pruned_join(self, node: Node, op: Join | LeftJoin, read: Sequence[int]) -> PrunedRows:
        rows = super().pruned_join(node, op, read)
        consumers = (self.plan.by_id[id].op for id, _ in self.plan.consumers[node.id])
        if not isinstance(op, Join) or all(isinstance(consumer, Join) for consumer in consumers):
            return rows
        pruned = self.draft.nodes[rows.node]
        assert isinstance(pruned.op, Join)
        ranks = RowDigests(self.draft.nodes).query(pruned).ranks
        order = sorted(range(rows.width), key=lambda column: -1 if (rank := ranks[column]) is None else rank)
        if order == [*range(rows.width)]:
            return rows
        ordered = Join(pruned.op.on, tuple([pruned.op.keep[column] for column in order]))
        id = self.put(node, ordered, *(edge.node for edge in pruned.inputs))
        places = {column: None if place is None else order.index(place) for column, place in rows.places.items()}
        return replace(rows, node=id, places=places)
