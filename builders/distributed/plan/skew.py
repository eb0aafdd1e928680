"""Keys that many rows have: where both sides of a join are streams, the rows with such a key are not left to one task.

The rows of one side that have a *hot* key are scattered over all tasks, by what else they hold; those of the other side
with the same key go to all tasks. Rows with other keys are grouped by key as ever. (Partial redistribution and partial
duplication: Xu, Kostamaa, Zhou and Chen, Handling Data Skew in Parallel Joins in Shared-Nothing Systems, SIGMOD 2008.)

A row and all that it is joined with meet in one task, exactly once, whatever keys are hot. So which they are is a
matter of cost alone, and may be guessed from the beginning of the streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from squall.builders.distributed.plan.partitioning import (
    BROADCAST,
    Address,
    Partitioning,
    Partitionings,
    Producers,
    SkewedPartitioning,
    arriving_partitioning,
    is_broadcast,
    is_fed_by_sources,
    partitioning_through,
    producers_of,
    stateful_edges,
    stateful_edges_to,
)
from squall.plan import Node, Plan
from squall.plan.operators import AntiJoin, Distinct, Join, LeftJoin, is_stateful
from squall.plan.partitioning import Columns, inputs_by_kind, positions

SkewedKeys = Mapping[Address, tuple[str, ...]]
"""The hot keys of inputs of joins, whose rows with these keys are scattered: of the two of a join no key is one of
both."""
MIN_ROWS_PER_SKEWED_KEY = 20
"""So many rows that have been seen have a key before it can be said to be hot."""


# What can be scattered


def splittable_inputs(plan: Plan, keys: Partitionings) -> dict[Address, Columns]:
    """The inputs whose rows with hot keys can be scattered, with the columns of these keys: of joins that are in no
    recursion, where rows hold more than their key. keys: the groupings, where no key is hot."""
    apart = _recursive_nodes(plan)
    columns_by_input: dict[Address, Columns] = {}
    for node in plan.nodes:
        for address in _splittable_ports(node) if node.id not in apart else ():
            key, other = keys[address], keys[node.id, 1 - address[1]]
            width = plan.widths[node.inputs[address[1]].node]
            alone = not key or not other or BROADCAST in (key, other)
            if isinstance(key, tuple) and not alone and len({*key}) < width:
                columns_by_input[address] = key
    return columns_by_input


def _splittable_ports(node: Node) -> list[Address]:
    """The inputs of a join whose rows may be anywhere, as long as all that they are joined with is there too."""
    if not isinstance(node.op, Join | LeftJoin | AntiJoin):
        return []
    return [(node.id, 0), (node.id, 1)] if isinstance(node.op, Join) else [(node.id, 0)]


def _recursive_nodes(plan: Plan) -> frozenset[str]:
    """The nodes of recursions."""
    return frozenset(id for component in plan.components if len(component) > 1 for id in component)


# Groupings


def with_split_keys(plan: Plan, keys: Partitionings, hot: SkewedKeys) -> dict[Address, Partitioning | None]:
    """The groupings of a plan where some keys are hot. keys: where none is."""
    makers = producers_of(plan)
    can_be = splittable_inputs(plan, keys)
    split_inputs = {address: texts for address, texts in hot.items() if texts and address in can_be}
    in_rounds = _recursive_nodes(plan)
    groupings = dict(keys)
    for node in plan.nodes:
        ports = _splittable_ports(node) if node.id not in in_rounds else []
        apart = _keep_split_rows(plan, makers, groupings, ports) or _split_join(plan, node, groupings, split_inputs)
        groupings |= apart
        for address in apart:
            groupings |= _split_distinct(plan, makers, groupings, address)
    for node, _ in plan.sinks:
        groupings |= _sink_groupings(plan, makers, groupings, node)
    return groupings


def _keep_split_rows(
    plan: Plan, makers: Producers, keys: Partitionings, ports: Sequence[Address]
) -> dict[Address, Partitioning | None]:
    """The groupings of a join to one side of which rows come that have been scattered by the same key: they stay, and
    the other side's go to them."""
    for id, port in ports:
        partitioning = arriving_partitioning(plan, makers, keys, (id, port))
        other = keys[id, 1 - port]
        if (
            isinstance(partitioning, SkewedPartitioning)
            and partitioning.columns == keys[id, port]
            and isinstance(other, tuple)
        ):
            if other == BROADCAST:
                return {(id, port): partitioning}
            return {
                (id, port): partitioning,
                (id, 1 - port): SkewedPartitioning(other, tuple((key, BROADCAST) for key, _ in partitioning.hot)),
            }
    return {}


def _split_join(plan: Plan, node: Node, keys: Partitionings, hot: SkewedKeys) -> dict[Address, Partitioning | None]:
    """The groupings of a join that has hot keys of its own."""
    groupings: dict[Address, Partitioning | None] = {}
    by_port = [hot.get((node.id, port), ()) for port in (0, 1)]
    for port in (0, 1) if any(by_port) else ():
        columns = keys[node.id, port]
        assert isinstance(columns, tuple)
        other_columns = tuple(column for column in range(plan.widths[node.inputs[port].node]) if column not in columns)
        by = {**dict.fromkeys(by_port[1 - port], BROADCAST), **dict.fromkeys(by_port[port], other_columns)}
        groupings[node.id, port] = SkewedPartitioning(columns, tuple(sorted(by.items())))
    return groupings


def _sink_groupings(
    plan: Plan, makers: Producers, keys: Partitionings, node: Node
) -> dict[Address, Partitioning | None]:
    """The groupings of what is told where some of it has been scattered: what is of the same kind goes by all of its
    values then, if it need not be in one place."""
    groupings: dict[Address, Partitioning | None] = {}
    for kind, ports in inputs_by_kind(node, plan.by_id).items():
        addresses = [(node.id, port) for port in ports]
        has_moved = any(
            isinstance(arriving_partitioning(plan, makers, keys, address), SkewedPartitioning) for address in addresses
        )
        if has_moved and all(keys[address] for address in addresses):
            narrowest = min(plan.widths[node.inputs[port].node] for port in ports)  # a relation may be of several
            columns = tuple(range(1 if kind else 0, narrowest - 1))  # behind the mark, without the name of the rule
            groupings |= dict.fromkeys(addresses, columns)
    return groupings


def _split_distinct(
    plan: Plan, makers: Producers, keys: Partitionings, address: Address
) -> dict[Address, Partitioning | None]:
    """The groupings of a set of what sources bring, in front of an input, so that rows need not move between them: its
    rows are scattered as well; or all tasks have them, if nobody else wants what all of them would make."""
    grouping_key = keys[address]
    before = [plan.by_id[id] for id in makers.get(address, ())]
    if (
        len(before) != 1
        or not isinstance(op := before[0].op, Distinct)
        or not is_fed_by_sources(plan, before[0], makers)
    ):
        return {}
    (node,) = before
    ports = [(node.id, port) for port in range(len(node.inputs))]
    origins = _origins(plan, node, address)
    mapped_key = (
        grouping_key.mapped(lambda columns: _mapped_columns(origins, columns))
        if isinstance(grouping_key, SkewedPartitioning)
        else None
    )
    if (
        mapped_key is None
        or any(keys[port] != mapped_key.columns for port in ports)
        or not _is_within_distinct_columns(op, mapped_key)
    ):
        return {}
    groupings: dict[Address, Partitioning | None] = dict.fromkeys(ports, mapped_key)
    all_groupings = {**keys, **groupings}
    (way,) = stateful_edges_to(plan, node, all_groupings, address)
    alone = all(
        all_groupings[next_way.consumer, next_way.port] == next_way.key
        for next_way in stateful_edges(plan, node.id, mapped_key)
    )
    return groupings if way.key == grouping_key and (alone or not is_broadcast(mapped_key)) else {}


def _is_within_distinct_columns(op: Distinct, key: SkewedPartitioning) -> bool:
    """Whether rows that a set takes for one lie together."""
    return all(column < op.by for _, columns in key.hot for column in columns)


def _origins(plan: Plan, node: Node, address: Address) -> dict[int, int]:
    """Where the columns of the rows for an input are in those of a node that makes them."""
    origins: dict[int, int] = {}
    for column in range(plan.widths[node.id]):
        for way in stateful_edges(plan, node.id, (column,)):
            if (way.consumer, way.port) == address and isinstance(way.key, tuple):
                origins.setdefault(way.key[0], column)
    return origins


def _mapped_columns(origins: Mapping[int, int], columns: Columns) -> Columns | None:
    return tuple(origins[column] for column in columns) if all(column in origins for column in columns) else None


# Which keys are hot


def key_source_columns(
    plan: Plan, columns_by_input: Mapping[Address, Columns], width: int, begin: Sequence[Address]
) -> dict[Address, Columns]:
    """Of some inputs those whose keys certain rows decide, also behind joins: each with the columns of these rows that
    are the key there. wanted: the inputs, with the columns of their keys; width: of the rows; begin: the inputs of
    nodes that they go to."""
    flows = [_column_flow(plan, begin, column) for column in range(width)]
    columns_found: dict[Address, Columns] = {}
    for address, key in columns_by_input.items():
        columns = [[column for column, flow in enumerate(flows) if (address, place) in flow] for place in key]
        if all(columns):
            columns_found[address] = tuple(column for column, *_ in columns)
    return columns_found


def _column_flow(plan: Plan, begin: Sequence[Address], column: int) -> set[tuple[Address, int]]:
    """The inputs that a column of rows comes to, and which column it is there. begin: as in `key_source_columns`."""
    waiting: list[tuple[Address, Columns]] = [(address, (column,)) for address in begin]
    visited: set[tuple[Address, int]] = set()
    while waiting:
        (id, port), key = waiting.pop()
        node = plan.by_id[id]
        if is_stateful(node.op):
            if ((id, port), key[0]) in visited:
                continue
            visited.add(((id, port), key[0]))
        waiting += [
            (address, column_after)
            for column_after in _output_columns(plan, node, port, key)
            for address in plan.consumers[id]
        ]
    return visited


def _output_columns(plan: Plan, node: Node, port: int, key: Columns) -> list[Columns]:
    """Where a column of an input is in the rows that a node makes, if it is."""
    match node.op:
        case Join(keep=keep) | LeftJoin(keep=keep):
            place_after = positions(keep, (key[0] + (plan.widths[node.inputs[0].node] if port else 0),))
        case Distinct() | AntiJoin():
            place_after = key if port == 0 or isinstance(node.op, Distinct) else None
        case _:
            columns_after = None if is_stateful(node.op) else partitioning_through(node, key)
            place_after = columns_after if isinstance(columns_after, tuple) else None
    return [] if place_after is None else [place_after]


def find_skewed_keys(counts: Mapping[Address, Counter[str]], share: float) -> dict[Address, tuple[str, ...]]:
    """The keys that more than a share of the rows of an input have, of those that have been seen. Of the inputs of a
    join, it is that with more such rows whose rows are scattered. counts: how many rows have a key, by input."""
    keys_by_input: dict[Address, set[str]] = {}
    for (id, _), counter in counts.items():
        least = max(MIN_ROWS_PER_SKEWED_KEY, share * counter.total())
        ports = [(id, port) for port in (0, 1) if (id, port) in counts]
        for key in (key for key, count in counter.items() if count > least):
            keys_by_input.setdefault(max(ports, key=lambda port, key=key: counts[port][key]), set()).add(key)  # type: ignore[misc]
    return {address: tuple(sorted(keys)) for address, keys in keys_by_input.items()}
