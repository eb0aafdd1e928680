"""Replaces the plan of a running dataflow by another plan of the same program, between two batches.

All state that does not depend on the order of joins is taken over: that of nodes that output the same rows in both
plans (`squall.plan.equivalence`). New joins are filled with the rows of their inputs, which the joins of the old plan
have stored. What they would output has been output already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from squall.builders.runtime.dataflow import Dataflow, Replaced
from squall.builders.runtime.multiway_join import with_multiway_joins
from squall.builders.runtime.operators import make_operator, merging_of
from squall.builders.runtime.operators.delta_index import Merging, StoresInputs
from squall.builders.runtime.operators.stateless import StatelessOperator
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError
from squall.plan import Node, Plan
from squall.plan.equivalence import RowDigests, equivalent_nodes, is_conjunctive
from squall.plan.operators import Scan, Update, is_stateful

StoredInput = tuple[StoresInputs, int]
"""An operator that stores the rows of its inputs, and the number of an input."""


class CannotReplan(BuilderError):
    """The plan of a dataflow cannot be replaced by another one; the message says why, as a clause."""


class Replanned(NamedTuple):
    """A dataflow in place of one with another plan.

    Attributes:
        dataflow: The dataflow.
        old_keys: The key that each of its states had before; None for those of new joins.
        old_nodes: For its nodes with state that are not new joins, the nodes of the other plan.
    """

    dataflow: Dataflow
    old_keys: Mapping[str, str | None]
    old_nodes: Mapping[str, str]


def replanned(
    dataflow: Dataflow,
    before: Plan,
    plan: Plan,
    watermark: int,
    tuning: Tuning = DEFAULT_TUNING,
    executed: Plan | None = None,
) -> Replanned:
    """Returns a dataflow with another plan of the same program that continues a dataflow.

    Args:
        dataflow: The dataflow, whose inboxes are empty. It must not be used afterwards.
        before: The logical plan of the dataflow.
        plan: The other logical plan.
        watermark: The time (integer ms) up to which the dataflow has processed its input.
        tuning: The tuning values of the runtime.
        executed: The other plan as it is executed. None: with all multiway joins.

    Raises:
        CannotReplan: The state of the dataflow is not known to be that of the other plan. The dataflow may go on.
    """
    return _Replanning(dataflow, before, plan, executed or with_multiway_joins(plan), watermark, tuning).result()


class _Rows(NamedTuple):
    """The rows of a node.

    Attributes:
        deltas: The rows.
        are_sets: Whether they only say when each row is valid, and not how often.
    """

    deltas: Sequence[Delta]
    are_sets: bool


class _Replanning:
    def __init__(
        self, dataflow: Dataflow, before: Plan, logical: Plan, executed: Plan, watermark: int, tuning: Tuning
    ) -> None:
        self.before = dataflow
        self.logical_before = before
        self.logical = logical
        self.plan = executed
        self.watermark = watermark
        self.tuning = tuning
        self.digests = RowDigests(logical.by_id)
        self.stores = _by_digest(before, stored_inputs(dataflow))
        self.filled: dict[str, StoresInputs] = {}
        """The new joins, by their nodes."""
        self.rows_of: dict[str, _Rows] = {}
        """The rows of nodes, as far as they were needed."""

    def result(self) -> Replanned:
        nodes = self.equivalent_states()
        self.check_scans()
        joins = [node for node in self.plan.nodes if node.op.is_inner_join]
        nodes |= {node.id: node.id for node in joins if self.is_same_join(node)}
        operators = {id: self.before.operators[old_id] for id, old_id in nodes.items()}
        logs = any(state.log is not None for state in self.before.states.values())
        for node in joins:
            if node.id not in nodes:
                operators[node.id] = self.filled_join(node, logs)
        replaced = Replaced(operators, self.before.input, self.before.states, nodes)
        limit = self.before.memory_limit
        dataflow = Dataflow(self.plan, tuning=self.tuning, replaced=replaced, memory_limit=limit)
        dataflow.input.inserted.rename({old_id: id for id, old_id in nodes.items()})
        return Replanned(dataflow, {key: replaced.old_key(key) for key in dataflow.states}, nodes)

    def equivalent_states(self) -> dict[str, str]:
        """Returns for the nodes with state, except joins, the nodes of the present plan whose state they take over."""
        equivalent = equivalent_nodes(self.logical_before, self.logical)
        old_ids: dict[str, str] = {}
        for node in self.plan.nodes:
            if not is_stateful(node.op) or node.op.is_inner_join:
                continue
            ids = [id for id in equivalent.get(node.id, ()) if id not in old_ids.values()]
            if not ids:
                raise CannotReplan(f"no node of the present plan is known to output the rows of `{node.id}`")
            id = node.id if node.id in ids else ids[0]
            if type(self.before.operators[id]) is not type(make_operator(node, self.plan, self.tuning)):
                raise CannotReplan(f"`{node.id}` stores something else than `{id}` does")
            old_ids[node.id] = id
        for node in self.before.plan.nodes:
            if isinstance(node.op, Update) and node.id not in old_ids.values():
                raise CannotReplan(f"no node of the other plan is known to demand the updates of `{node.id}`")
        return old_ids

    def check_scans(self) -> None:
        """Checks that both plans read the same sources."""
        before, now = (
            {node.id for node in p.nodes if isinstance(node.op, Scan)} for p in (self.before.plan, self.plan)
        )
        if before != now:
            raise CannotReplan("the plans read the sources in different ways")

    def is_same_join(self, node: Node) -> bool:
        """Returns whether the old dataflow runs a join in the same way."""
        old = self.before.plan.by_id.get(node.id)
        return (
            old is not None
            and old.op == node.op
            and [edge.node for edge in old.inputs] == [edge.node for edge in node.inputs]
            and (merging_of(old, self.before.plan) is merging_of(node, self.plan))
        )

    # Joins

    def filled_join(self, node: Node, logs: bool) -> StoresInputs:
        """Returns a new join with the rows of its inputs."""
        operator = self.filled.get(node.id)
        if operator is None:
            operator = self.filled[node.id] = self.new_join(node)
            for port, rows in self.input_rows(node):
                operator.restore(port, rows)
        if logs:
            operator.enable_changelog()
            for port, rows in self.input_rows(node):
                operator.note(port, rows)
        return operator

    def new_join(self, node: Node) -> StoresInputs:
        return cast(StoresInputs, make_operator(node, self.plan, self.tuning))

    def input_rows(self, node: Node) -> Iterator[tuple[int, Sequence[Delta]]]:
        """Yields the rows of each input of a join that are valid at the watermark or later."""
        counts_rows = merging_of(node, self.plan) is not Merging.UNION
        for port, edge in enumerate(node.inputs):
            rows, are_sets = self.rows(edge.node)
            if counts_rows and are_sets:
                raise CannotReplan(f"the rows of `{edge.node}` are not stored with their multiplicity")
            yield port, rows

    # Rows

    def rows(self, id: str) -> _Rows:
        """Returns the rows of a node of the new plan that are valid at the watermark or later.

        Raises:
            CannotReplan: They are stored nowhere.
        """
        if id not in self.rows_of:
            self.rows_of[id] = self.rows_of_node(self.plan.by_id[id])
        return self.rows_of[id]

    def rows_of_node(self, node: Node) -> _Rows:
        if node.op.is_inner_join:
            return self.joined(node)
        stored = self.stores.get(self.digests.of(node.id))
        if stored is not None:
            operator, port = stored
            rows = [delta for delta in operator.stored(port) if delta[-2] > self.watermark]
            return _Rows(rows, operator.merging is Merging.UNION)
        if is_conjunctive(node):
            step = cast(StatelessOperator, make_operator(node, self.plan, self.tuning)).step
            unfiltered = self.rows(node.inputs[0].node)
            return _Rows(step(unfiltered.deltas), unfiltered.are_sets)
        raise CannotReplan(f"the rows of `{node.id}` are not stored")

    def joined(self, node: Node) -> _Rows:
        """Returns the rows of a join, which is filled if it is new."""
        operator = self.new_join(node)
        output: list[Delta] = []
        for port, rows in self.input_rows(node):
            output += operator.apply(port, rows)
        if not self.is_same_join(node):
            self.filled[node.id] = operator
        return _Rows(output, merging_of(node, self.plan) is Merging.UNION)


def stored_inputs(dataflow: Dataflow) -> dict[str, StoredInput]:
    """Returns which operators store the rows of nodes, and at which input, for nodes that are no joins."""
    stores: dict[str, StoredInput] = {}
    for node in dataflow.plan.nodes:
        for port, edge in enumerate(node.inputs):
            operator = dataflow.operators.get(node.id)
            if (
                isinstance(operator, StoresInputs)
                and not _is_joined(dataflow.plan, edge.node)
                and (edge.node not in stores or stores[edge.node][0].merging is Merging.UNION)
            ):
                stores[edge.node] = operator, port
    return stores


def _by_digest(plan: Plan, stores: Mapping[str, StoredInput]) -> dict[str, StoredInput]:
    """Returns the same by the digests of the nodes."""
    digests = RowDigests(plan.by_id)
    by_digest: dict[str, StoredInput] = {}
    for id, (operator, port) in stores.items():
        digest = digests.of(id)
        if digest not in by_digest or by_digest[digest][0].merging is Merging.UNION:
            by_digest[digest] = operator, port
    return by_digest


def _is_joined(plan: Plan, id: str) -> bool:
    """Returns whether a node is a join, or filters or projects one."""
    node = plan.by_id[id]
    while is_conjunctive(node) and not node.op.is_inner_join:
        node = plan.by_id[node.inputs[0].node]
    return node.op.is_inner_join
