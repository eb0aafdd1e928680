"""Puts multiway joins in place of trees of joins, as a pass from plan to plan.

A tree of joins on the same columns, whose intermediate results nothing else reads, joins all its inputs on one key. A
`MultiwayJoin` does that with one look-up per row. It has the id of the last join of the tree, and the same output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from squall.builders.runtime.scheduler import Address
from squall.plan import Input, Node, Plan
from squall.plan.operators import Join, MultiwayJoin

MIN_INPUTS, _ = MultiwayJoin.arity
"""A tree of joins with fewer inputs stays as it is."""


class _Tree(NamedTuple):
    """A tree of joins on one key, or an input of one.

    Attributes:
        joins: The ids of the joins, the last one of the plan first.
        inputs: The inputs.
        widths: The number of columns of each input.
        on: The key columns of each input.
        keep: The output columns, as columns of the rows of all inputs one after the other.
    """

    joins: tuple[str, ...]
    inputs: tuple[Input, ...]
    widths: tuple[int, ...]
    on: tuple[tuple[int, ...], ...]
    keep: Sequence[int]


def with_multiway_joins(plan: Plan, visible: Collection[str] = ()) -> Plan:
    """Returns the plan with a multiway join in place of each tree of joins that it can replace.

    Args:
        plan: The plan.
        visible: Nodes whose rows have to be visible, so that the join of a node is no inner one of a tree.
    """
    trees: dict[str, _Tree] = {}
    for node in plan.nodes:
        if isinstance(node.op, Join) and node.op.on and node.id not in plan.retractable:
            trees[node.id] = _tree(node, node.op, plan, trees, visible)
            for inner in trees[node.id].joins[1:]:
                trees.pop(inner, None)
    trees = {id: tree for id, tree in trees.items() if len(tree.inputs) >= MIN_INPUTS}
    if not trees:
        return plan
    inner_joins = {id for tree in trees.values() for id in tree.joins[1:]}
    nodes = (
        _multiway_join(node, trees[node.id]) if node.id in trees else node
        for node in plan.nodes
        if node.id not in inner_joins
    )
    return replace(plan, nodes=tuple(nodes))


def replaced_inputs(plan: Plan, node: Node) -> Iterator[Address]:
    """Yields the inputs of a node in the logical plan: of a multiway join, those of the joins that it stands for.

    Args:
        plan: The logical plan.
        node: The node of the plan with multiway joins.
    """
    inner_joins = node.op.joins_replaced[1:]
    addresses = [(node.id, port) for port in reversed(range(len(plan.by_id[node.id].inputs)))]
    while addresses:
        id, port = addresses.pop()
        producer = plan.by_id[id].inputs[port].node
        if producer in inner_joins:
            addresses += [(producer, 1), (producer, 0)]
        else:
            yield id, port


def multiway_join_lines(nodes: Iterable[Node]) -> Iterator[str]:
    """Yields a line for each multiway join: the joins that it stands for, and the key of each input."""
    for node in nodes:
        if node.op.joins_replaced:
            keys = (f"{edge.node} by {list(key)}" for edge, key in zip(node.inputs, node.op.join_keys, strict=True))
            yield f"{node.id} = multiway join ({' + '.join(sorted(node.op.joins_replaced))}) of {', '.join(keys)}"


def _tree(node: Node, op: Join, plan: Plan, trees: Mapping[str, _Tree], visible: Collection[str]) -> _Tree:
    """Returns the join together with those below it that have the same key."""
    whole, columns = _Tree((node.id,), (), (), (), ()), list[int]()
    for edge, key in zip(node.inputs, _sorted_keys(op), strict=True):
        below = trees.get(edge.node) if edge.node not in visible and len(plan.consumers[edge.node]) == 1 else None
        order = None if below is None else _key_order(key, below)
        if below is None or order is None:
            width, order = plan.widths[edge.node], range(len(key))
            below = _Tree((), (edge,), (width,), (key,), range(width))
        columns += [sum(whole.widths) + column for column in below.keep]
        on = tuple(tuple(key_below[place] for place in order) for key_below in below.on)
        whole = _Tree(
            whole.joins + below.joins, whole.inputs + below.inputs, whole.widths + below.widths, whole.on + on, ()
        )
    return whole._replace(keep=[columns[column] for column in op.keep])


def _sorted_keys(op: Join) -> tuple[tuple[int, ...], ...]:
    """Returns the key columns of both inputs, in one order."""
    return tuple(zip(*sorted(op.on), strict=True))


def _key_order(key: Sequence[int], below: _Tree) -> Sequence[int] | None:
    """Returns, if the columns are the key of the tree below, which key column each of them is."""
    starts = accumulate(below.widths, initial=0)
    keys = [[start + column for column in on] for start, on in zip(starts, below.on, strict=False)]
    places = [
        next((on.index(origin) for on in keys if origin in on), None)
        for origin in (below.keep[column] for column in key)
    ]
    if None in places or len(set(places)) != len(below.on[0]):
        return None
    return [place for place in places if place is not None]


def _multiway_join(node: Node, tree: _Tree) -> Node:
    """Returns the node in place of the last join of a tree. Its inputs are partitioned by the same part of the key."""
    assert isinstance(node.op, Join)
    first, key = node.inputs[0].columns, _sorted_keys(node.op)[0]
    columns = (first and tuple(on[key.index(column)] for column in first) for on in tree.on)
    inputs = tuple(replace(edge, columns=by) for edge, by in zip(tree.inputs, columns, strict=True))
    return Node(node.id, MultiwayJoin(tree.on, tuple(tree.keep), tree.joins), inputs)
