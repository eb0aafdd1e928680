"""Skew joins: where both sides of a join are streams, the rows of a key that many rows have are not left to one task.

The rows of one side with a *skewed* key are split over all tasks by their other columns. The rows of the other side
with the same key are broadcast. Rows with other keys are partitioned by key. (Partial redistribution and partial
duplication: Xu, Kostamaa, Zhou and Chen, Handling Data Skew in Parallel Joins in Shared-Nothing Systems, SIGMOD 2008.)

A row meets each row that it is joined with in exactly one task, whatever the skewed keys are. So their choice is a
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
"""The skewed keys of join inputs whose rows with these keys are split. No key is one of both inputs of a join."""
MIN_ROWS_PER_SKEWED_KEY = 20
"""A key needs this many sampled rows before it counts as skewed."""


# What can be split


def splittable_inputs(plan: Plan, partitionings: Partitionings) -> dict[Address, Columns]:
    """Returns the inputs whose rows with skewed keys can be split, with the key columns.

    They belong to joins outside of recursions, and their rows have more columns than the key.

    Args:
        plan: the plan.
        partitionings: those of the plan without skewed keys.
    """
    apart = _recursive_nodes(plan)
    columns_by_input: dict[Address, Columns] = {}
    for node in plan.nodes:
        for address in _splittable_ports(node) if node.id not in apart else ():
            key, other = partitionings[address], partitionings[node.id, 1 - address[1]]
            width = plan.widths[node.inputs[address[1]].node]
            is_single_task = not key or not other or BROADCAST in (key, other)
            if isinstance(key, tuple) and not is_single_task and len({*key}) < width:
                columns_by_input[address] = key
    return columns_by_input


def _splittable_ports(node: Node) -> list[Address]:
    """Returns the inputs of a join whose rows may be in any task, as long as all rows that they are joined with are
    there too."""
    if not isinstance(node.op, Join | LeftJoin | AntiJoin):
        return []
    return [(node.id, 0), (node.id, 1)] if isinstance(node.op, Join) else [(node.id, 0)]


def _recursive_nodes(plan: Plan) -> frozenset[str]:
    """Returns the nodes that are part of a recursion."""
    return frozenset(id for component in plan.components if len(component) > 1 for id in component)


# Groupings


def with_split_keys(
    plan: Plan, partitionings: Partitionings, skewed_keys: SkewedKeys
) -> dict[Address, Partitioning | None]:
    """Returns the partitionings of a plan with skewed keys. partitionings: those without."""
    producers = producers_of(plan)
    can_be = splittable_inputs(plan, partitionings)
    split_inputs = {address: texts for address, texts in skewed_keys.items() if texts and address in can_be}
    recursive_nodes = _recursive_nodes(plan)
    new_partitionings = dict(partitionings)
    for node in plan.nodes:
        ports = _splittable_ports(node) if node.id not in recursive_nodes else []
        apart = _keep_split_rows(plan, producers, new_partitionings, ports) or _split_join(
            plan, node, new_partitionings, split_inputs
        )
        new_partitionings |= apart
        for address in apart:
            new_partitionings |= _split_distinct(plan, producers, new_partitionings, address)
    for node, _ in plan.sinks:
        new_partitionings |= _sink_partitionings(plan, producers, new_partitionings, node)
    return new_partitionings


def _keep_split_rows(
    plan: Plan, producers: Producers, partitionings: Partitionings, ports: Sequence[Address]
) -> dict[Address, Partitioning | None]:
    """Returns the partitionings of a join to which already split rows of the same key come: they stay, and those of the
    other side are broadcast."""
    for id, port in ports:
        partitioning = arriving_partitioning(plan, producers, partitionings, (id, port))
        other = partitionings[id, 1 - port]
        if (
            isinstance(partitioning, SkewedPartitioning)
            and partitioning.columns == partitionings[id, port]
            and isinstance(other, tuple)
        ):
            if other == BROADCAST:
                return {(id, port): partitioning}
            return {
                (id, port): partitioning,
                (id, 1 - port): SkewedPartitioning(
                    other, tuple((key, BROADCAST) for key, _ in partitioning.split_keys)
                ),
            }
    return {}


def _split_join(
    plan: Plan, node: Node, partitionings: Partitionings, skewed_keys: SkewedKeys
) -> dict[Address, Partitioning | None]:
    """Returns the partitionings of a join that has skewed keys itself."""
    new_partitionings: dict[Address, Partitioning | None] = {}
    keys_by_port = [skewed_keys.get((node.id, port), ()) for port in (0, 1)]
    for port in (0, 1) if any(keys_by_port) else ():
        columns = partitionings[node.id, port]
        assert isinstance(columns, tuple)
        other_columns = tuple(column for column in range(plan.widths[node.inputs[port].node]) if column not in columns)
        columns_by_key = {
            **dict.fromkeys(keys_by_port[1 - port], BROADCAST),
            **dict.fromkeys(keys_by_port[port], other_columns),
        }
        new_partitionings[node.id, port] = SkewedPartitioning(columns, tuple(sorted(columns_by_key.items())))
    return new_partitionings


def _sink_partitionings(
    plan: Plan, producers: Producers, partitionings: Partitionings, node: Node
) -> dict[Address, Partitioning | None]:
    """Returns the partitionings of an output node some of whose rows have been split. Rows of the same kind are then
    partitioned by all their values, unless they have to meet in one task."""
    new_partitionings: dict[Address, Partitioning | None] = {}
    for kind, ports in inputs_by_kind(node, plan.by_id).items():
        addresses = [(node.id, port) for port in ports]
        has_moved = any(
            isinstance(arriving_partitioning(plan, producers, partitionings, address), SkewedPartitioning)
            for address in addresses
        )
        if has_moved and all(partitionings[address] for address in addresses):
            narrowest = min(plan.widths[node.inputs[port].node] for port in ports)  # a relation may be of several
            columns = tuple(range(1 if kind else 0, narrowest - 1))  # behind the mark, without the name of the rule
            new_partitionings |= dict.fromkeys(addresses, columns)
    return new_partitionings


def _split_distinct(
    plan: Plan, producers: Producers, partitionings: Partitionings, address: Address
) -> dict[Address, Partitioning | None]:
    """Returns the partitionings of a source-fed `Distinct` in front of an input, so that rows are not shuffled between
    the two.

    Its rows are split as well. Or all tasks have them, if nobody else reads what all of them would produce.
    """
    grouping_key = partitionings[address]
    producer_nodes = [plan.by_id[id] for id in producers.get(address, ())]
    if (
        len(producer_nodes) != 1
        or not isinstance(op := producer_nodes[0].op, Distinct)
        or not is_fed_by_sources(plan, producer_nodes[0], producers)
    ):
        return {}
    (node,) = producer_nodes
    ports = [(node.id, port) for port in range(len(node.inputs))]
    origins = _origins(plan, node, address)
    mapped_key = (
        grouping_key.mapped(lambda columns: _mapped_columns(origins, columns))
        if isinstance(grouping_key, SkewedPartitioning)
        else None
    )
    if (
        mapped_key is None
        or any(partitionings[port] != mapped_key.columns for port in ports)
        or not _is_within_distinct_columns(op, mapped_key)
    ):
        return {}
    new_partitionings: dict[Address, Partitioning | None] = dict.fromkeys(ports, mapped_key)
    all_groupings = {**partitionings, **new_partitionings}
    (edge,) = stateful_edges_to(plan, node, all_groupings, address)
    is_single_task = all(
        all_groupings[next_way.consumer, next_way.port] == next_way.key
        for next_way in stateful_edges(plan, node.id, mapped_key)
    )
    return new_partitionings if edge.key == grouping_key and (is_single_task or not is_broadcast(mapped_key)) else {}


def _is_within_distinct_columns(op: Distinct, key: SkewedPartitioning) -> bool:
    """Returns whether rows that a `Distinct` takes for equal are in the same task."""
    return all(column < op.by for _, columns in key.split_keys for column in columns)


def _origins(plan: Plan, node: Node, address: Address) -> dict[int, int]:
    """Returns the column of a node's output for each column of the rows that arrive at an input."""
    origins: dict[int, int] = {}
    for column in range(plan.widths[node.id]):
        for edge in stateful_edges(plan, node.id, (column,)):
            if (edge.consumer, edge.port) == address and isinstance(edge.key, tuple):
                origins.setdefault(edge.key[0], column)
    return origins


def _mapped_columns(origins: Mapping[int, int], columns: Columns) -> Columns | None:
    return tuple(origins[column] for column in columns) if all(column in origins for column in columns) else None


def moved_skewed_keys(before: Plan, plan: Plan, skewed_keys: SkewedKeys) -> dict[Address, tuple[str, ...]]:
    """Returns the skewed keys of a plan in place of another one of the same program: those of joins that both have.

    Args:
        before: the other plan.
        plan: the plan.
        skewed_keys: the skewed keys of the other plan.
    """
    return {
        address: keys for address, keys in skewed_keys.items() if plan.by_id.get(address[0]) == before.by_id[address[0]]
    }


# Which keys are skewed


def key_source_columns(
    plan: Plan, columns_by_input: Mapping[Address, Columns], width: int, first_inputs: Sequence[Address]
) -> dict[Address, Columns]:
    """Returns, of some inputs, those whose keys certain rows determine, also behind joins. Each has the columns of
    these rows that become the key.

    Args:
        plan: the plan.
        columns_by_input: the key columns of the inputs.
        width: the number of columns of the rows.
        first_inputs: the inputs that the rows go to.
    """
    flows = [_column_flow(plan, first_inputs, column) for column in range(width)]
    columns_found: dict[Address, Columns] = {}
    for address, key in columns_by_input.items():
        columns = [[column for column, flow in enumerate(flows) if (address, place) in flow] for place in key]
        if all(columns):
            columns_found[address] = tuple(column for column, *_ in columns)
    return columns_found


def _column_flow(plan: Plan, first_inputs: Sequence[Address], column: int) -> set[tuple[Address, int]]:
    """Returns the inputs that a column of rows reaches, each with its number there. first_inputs: those that the rows
    go to."""
    waiting: list[tuple[Address, Columns]] = [(address, (column,)) for address in first_inputs]
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
    """Returns the column of a node's output that holds a column of its input, if there is one."""
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
    """Returns the keys that more than a share of the sampled rows of an input have.

    Of the two inputs of a join, the one with more rows of the key is split.

    Args:
        counts: the number of sampled rows of each key, by input.
        share: the share of the rows of an input, from 0 to 1.
    """
    keys_by_input: dict[Address, set[str]] = {}
    for (id, _), counter in counts.items():
        least = max(MIN_ROWS_PER_SKEWED_KEY, share * counter.total())
        ports = [(id, port) for port in (0, 1) if (id, port) in counts]
        for key in (key for key, count in counter.items() if count > least):
            keys_by_input.setdefault(max(ports, key=lambda port, key=key: counts[port][key]), set()).add(key)  # type: ignore[misc]
    return {address: tuple(sorted(partitionings)) for address, partitionings in keys_by_input.items()}
