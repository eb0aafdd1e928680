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
    EVERYWHERE,
    Address,
    Apart,
    Grouping,
    Keys,
    Makers,
    from_sources,
    goes_everywhere,
    lying,
    makers_of,
    through,
    ways,
    ways_to,
)
from squall.plan import Node, Plan
from squall.plan.operators import AntiJoin, Distinct, Join, LeftJoin, is_stateful
from squall.plan.partitioning import Columns, inputs_by_kind, positions

Hot = Mapping[Address, tuple[str, ...]]
"""The hot keys of inputs of joins, whose rows with these keys are scattered: of the two of a join no key is one of
both."""
LEAST = 20
"""So many rows that have been seen have a key before it can be said to be hot."""


# What can be scattered


def scatterable(plan: Plan, keys: Keys) -> dict[Address, Columns]:
    """The inputs whose rows with hot keys can be scattered, with the columns of these keys: of joins that are in no
    recursion, where rows hold more than their key. keys: the groupings, where no key is hot."""
    apart = _in_rounds(plan)
    columns_by_input: dict[Address, Columns] = {}
    for node in plan.nodes:
        for address in _ports(node) if node.id not in apart else ():
            key, other = keys[address], keys[node.id, 1 - address[1]]
            width = plan.widths[node.inputs[address[1]].node]
            alone = not key or not other or EVERYWHERE in (key, other)
            if isinstance(key, tuple) and not alone and len({*key}) < width:
                columns_by_input[address] = key
    return columns_by_input


def _ports(node: Node) -> list[Address]:
    """The inputs of a join whose rows may be anywhere, as long as all that they are joined with is there too."""
    if not isinstance(node.op, Join | LeftJoin | AntiJoin):
        return []
    return [(node.id, 0), (node.id, 1)] if isinstance(node.op, Join) else [(node.id, 0)]


def _in_rounds(plan: Plan) -> frozenset[str]:
    """The nodes of recursions."""
    return frozenset(id for component in plan.components if len(component) > 1 for id in component)


# Groupings


def scattered(plan: Plan, keys: Keys, hot: Hot) -> dict[Address, Grouping | None]:
    """The groupings of a plan where some keys are hot. keys: where none is."""
    makers = makers_of(plan)
    can_be = scatterable(plan, keys)
    split_inputs = {address: texts for address, texts in hot.items() if texts and address in can_be}
    in_rounds = _in_rounds(plan)
    groupings = dict(keys)
    for node in plan.nodes:
        ports = _ports(node) if node.id not in in_rounds else []
        apart = _as_they_lie(plan, makers, groupings, ports) or _parted(plan, node, groupings, split_inputs)
        groupings |= apart
        for address in apart:
            groupings |= _in_front(plan, makers, groupings, address)
    for node, _ in plan.sinks:
        groupings |= _told(plan, makers, groupings, node)
    return groupings


def _as_they_lie(plan: Plan, makers: Makers, keys: Keys, ports: Sequence[Address]) -> dict[Address, Grouping | None]:
    """The groupings of a join to one side of which rows come that have been scattered by the same key: they stay, and
    the other side's go to them."""
    for id, port in ports:
        partitioning = lying(plan, makers, keys, (id, port))
        other = keys[id, 1 - port]
        if isinstance(partitioning, Apart) and partitioning.columns == keys[id, port] and isinstance(other, tuple):
            if other == EVERYWHERE:
                return {(id, port): partitioning}
            return {
                (id, port): partitioning,
                (id, 1 - port): Apart(other, tuple((key, EVERYWHERE) for key, _ in partitioning.hot)),
            }
    return {}


def _parted(plan: Plan, node: Node, keys: Keys, hot: Hot) -> dict[Address, Grouping | None]:
    """The groupings of a join that has hot keys of its own."""
    groupings: dict[Address, Grouping | None] = {}
    by_port = [hot.get((node.id, port), ()) for port in (0, 1)]
    for port in (0, 1) if any(by_port) else ():
        columns = keys[node.id, port]
        assert isinstance(columns, tuple)
        other_columns = tuple(column for column in range(plan.widths[node.inputs[port].node]) if column not in columns)
        by = {**dict.fromkeys(by_port[1 - port], EVERYWHERE), **dict.fromkeys(by_port[port], other_columns)}
        groupings[node.id, port] = Apart(columns, tuple(sorted(by.items())))
    return groupings


def _told(plan: Plan, makers: Makers, keys: Keys, node: Node) -> dict[Address, Grouping | None]:
    """The groupings of what is told where some of it has been scattered: what is of the same kind goes by all of its
    values then, if it need not be in one place."""
    groupings: dict[Address, Grouping | None] = {}
    for kind, ports in inputs_by_kind(node, plan.by_id).items():
        addresses = [(node.id, port) for port in ports]
        has_moved = any(isinstance(lying(plan, makers, keys, address), Apart) for address in addresses)
        if has_moved and all(keys[address] for address in addresses):
            narrowest = min(plan.widths[node.inputs[port].node] for port in ports)  # a relation may be of several
            columns = tuple(range(1 if kind else 0, narrowest - 1))  # behind the mark, without the name of the rule
            groupings |= dict.fromkeys(addresses, columns)
    return groupings


def _in_front(plan: Plan, makers: Makers, keys: Keys, address: Address) -> dict[Address, Grouping | None]:
    """The groupings of a set of what sources bring, in front of an input, so that rows need not move between them: its
    rows are scattered as well; or all tasks have them, if nobody else wants what all of them would make."""
    grouping_key = keys[address]
    before = [plan.by_id[id] for id in makers.get(address, ())]
    if len(before) != 1 or not isinstance(op := before[0].op, Distinct) or not from_sources(plan, before[0], makers):
        return {}
    (node,) = before
    ports = [(node.id, port) for port in range(len(node.inputs))]
    origins = _origins(plan, node, address)
    mapped_key = (
        grouping_key.mapped(lambda columns: _all(origins, columns)) if isinstance(grouping_key, Apart) else None
    )
    if (
        mapped_key is None
        or any(keys[port] != mapped_key.columns for port in ports)
        or not _tells_apart(op, mapped_key)
    ):
        return {}
    groupings: dict[Address, Grouping | None] = dict.fromkeys(ports, mapped_key)
    all_groupings = {**keys, **groupings}
    (way,) = ways_to(plan, node, all_groupings, address)
    alone = all(
        all_groupings[next_way.consumer, next_way.port] == next_way.key for next_way in ways(plan, node.id, mapped_key)
    )
    return groupings if way.key == grouping_key and (alone or not goes_everywhere(mapped_key)) else {}


def _tells_apart(op: Distinct, key: Apart) -> bool:
    """Whether rows that a set takes for one lie together."""
    return all(column < op.by for _, columns in key.hot for column in columns)


def _origins(plan: Plan, node: Node, address: Address) -> dict[int, int]:
    """Where the columns of the rows for an input are in those of a node that makes them."""
    origins: dict[int, int] = {}
    for column in range(plan.widths[node.id]):
        for way in ways(plan, node.id, (column,)):
            if (way.consumer, way.port) == address and isinstance(way.key, tuple):
                origins.setdefault(way.key[0], column)
    return origins


def _all(origins: Mapping[int, int], columns: Columns) -> Columns | None:
    return tuple(origins[column] for column in columns) if all(column in origins for column in columns) else None


# Which keys are hot


def deciding(
    plan: Plan, columns_by_input: Mapping[Address, Columns], width: int, begin: Sequence[Address]
) -> dict[Address, Columns]:
    """Of some inputs those whose keys certain rows decide, also behind joins: each with the columns of these rows that
    are the key there. wanted: the inputs, with the columns of their keys; width: of the rows; begin: the inputs of
    nodes that they go to."""
    flows = [_flow(plan, begin, column) for column in range(width)]
    columns_found: dict[Address, Columns] = {}
    for address, key in columns_by_input.items():
        columns = [[column for column, flow in enumerate(flows) if (address, place) in flow] for place in key]
        if all(columns):
            columns_found[address] = tuple(column for column, *_ in columns)
    return columns_found


def _flow(plan: Plan, begin: Sequence[Address], column: int) -> set[tuple[Address, int]]:
    """The inputs that a column of rows comes to, and which column it is there. begin: as in `deciding`."""
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
            (address, column_after) for column_after in _behind(plan, node, port, key) for address in plan.consumers[id]
        ]
    return visited


def _behind(plan: Plan, node: Node, port: int, key: Columns) -> list[Columns]:
    """Where a column of an input is in the rows that a node makes, if it is."""
    match node.op:
        case Join(keep=keep) | LeftJoin(keep=keep):
            place_after = positions(keep, (key[0] + (plan.widths[node.inputs[0].node] if port else 0),))
        case Distinct() | AntiJoin():
            place_after = key if port == 0 or isinstance(node.op, Distinct) else None
        case _:
            columns_after = None if is_stateful(node.op) else through(node, key)
            place_after = columns_after if isinstance(columns_after, tuple) else None
    return [] if place_after is None else [place_after]


def hottest(counts: Mapping[Address, Counter[str]], share: float) -> dict[Address, tuple[str, ...]]:
    """The keys that more than a share of the rows of an input have, of those that have been seen. Of the inputs of a
    join, it is that with more such rows whose rows are scattered. counts: how many rows have a key, by input."""
    keys_by_input: dict[Address, set[str]] = {}
    for (id, _), counter in counts.items():
        least = max(LEAST, share * counter.total())
        ports = [(id, port) for port in (0, 1) if (id, port) in counts]
        for key in (key for key, count in counter.items() if count > least):
            keys_by_input.setdefault(max(ports, key=lambda port, key=key: counts[port][key]), set()).add(key)  # type: ignore[misc]
    return {address: tuple(sorted(keys)) for address, keys in keys_by_input.items()}
