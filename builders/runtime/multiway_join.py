"""Finds trees of joins that one multi-way join replaces.

A tree of joins on the same columns, whose intermediate results nothing else reads, joins all its inputs on one key.
`squall.builders.runtime.operators.multiway_join` does that with one look-up per row. The plan stays as it is: the last
join of the tree does the work of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from squall.builders.runtime.operators.multiway_join import JoinShape
from squall.builders.runtime.scheduler import Address
from squall.plan import Node, Plan
from squall.plan.operators import Join

MIN_FUSED_INPUTS = 3
"""Joins are fused if they have at least so many inputs."""


class JoinInput(NamedTuple):
    """One input of a fused join.

    Attributes:
        address: The join and the port at which the rows arrive in the plan.
        on: The key columns.
        width: The number of columns.
    """

    address: Address
    on: tuple[int, ...]
    width: int


@dataclass(frozen=True)
class FusedJoin:
    """A tree of joins that run as one.

    Attributes:
        joins: The ids of the joins, the last one of the plan first.
        inputs: The inputs.
        columns: The input and its column that each output column comes from.
    """

    joins: tuple[str, ...]
    inputs: tuple[JoinInput, ...]
    columns: tuple[tuple[int, int], ...]

    @property
    def shape(self) -> JoinShape:
        """The shape for `MultiwayJoinOperator`."""
        firsts = [sum(input.width for input in self.inputs[:number]) for number in range(len(self.inputs))]
        keep = tuple(firsts[input] + column for input, column in self.columns)
        return JoinShape(tuple(input.width for input in self.inputs), tuple(input.on for input in self.inputs), keep)


def fuse_joins(plan: Plan, visible: Collection[str] = ()) -> dict[str, FusedJoin]:
    """Returns the trees of joins that can run as one, by the id of their last join.

    Args:
        plan: The plan.
        visible: Nodes whose rows have to be visible, so that no later join is fused with them.
    """
    fused: dict[str, FusedJoin] = {}
    for node in plan.nodes:
        if isinstance(node.op, Join) and node.op.on and node.id not in plan.retractable:
            fused[node.id] = _fused(node, node.op, plan, fused, visible)
            for inner in fused[node.id].joins[1:]:
                fused.pop(inner, None)
    return {id: join for id, join in fused.items() if len(join.inputs) >= MIN_FUSED_INPUTS}


def _fused(node: Node, op: Join, plan: Plan, fused: Mapping[str, FusedJoin], visible: Collection[str]) -> FusedJoin:
    """Returns the join together with those below it that have the same key."""
    joins, inputs, origins = [node.id], list[JoinInput](), list[tuple[int, int]]()
    pairs = sorted(op.on)
    for port, edge in enumerate(node.inputs):
        on = tuple(pair[port] for pair in pairs)
        below = fused.get(edge.node) if edge.node not in visible else None
        order = None if below is None or len(plan.consumers[edge.node]) > 1 else _key_order(on, below)
        first = len(inputs)
        if below is None or order is None:
            width = plan.widths[edge.node]
            inputs.append(JoinInput((node.id, port), on, width))
            origins += [(first, column) for column in range(width)]
        else:
            joins += below.joins
            inputs += [input._replace(on=tuple(input.on[place] for place in order)) for input in below.inputs]
            origins += [(first + input, column) for input, column in below.columns]
    return FusedJoin(tuple(joins), tuple(inputs), tuple(origins[column] for column in op.keep))


def _key_order(on: Sequence[int], below: FusedJoin) -> list[int] | None:
    """Returns, if the columns are the key of the join below, which key column each of them is."""
    places = [_key_position(below, column) for column in on]
    if None in places or len(set(places)) != len(below.inputs[0].on):
        return None
    return [place for place in places if place is not None]


def _key_position(below: FusedJoin, column: int) -> int | None:
    """Returns which key column of its input an output column is, or None."""
    input, inner = below.columns[column]
    on = below.inputs[input].on
    return on.index(inner) if inner in on else None
