"""What goes to all tasks: the few rows that static data make of one side of a join, so that the many of the other side
stay where they are, also where most of them have the same key.

(Fragment and replicate: Epstein, Stonebraker and Wong, Distributed Query Processing in a Relational Data Base System,
SIGMOD 1978. On Spark it is known as a broadcast join.)

An input whose rows go to all tasks is *spread*. What comes there from the sources every task gets; nodes in front of it
that keep rows, which are fed by sources alone, every task works off for itself. It is right whatever the rows are: a
row that a stream brings later goes to all tasks as well. So which inputs are spread is a matter of cost alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from squall.builders.distributed.lying import (
    EVERYWHERE,
    Address,
    Columns,
    Grouping,
    Keys,
    Makers,
    from_sources,
    grouped,
    lying,
    makers_of,
    ways,
    ways_to,
)
from squall.operators import AntiJoin, Cell, Distinct, Join, LeftJoin, Match
from squall.plan import Plan
from squall.statistics import TYPE

_REPLICABLE = Distinct | Join | LeftJoin | AntiJoin


def spread_out(plan: Plan, keys: Keys, spread: Collection[Address]) -> dict[Address, Grouping | None]:
    """The groupings of a plan where some inputs are spread: what is joined with their rows stays where it is. keys:
    where none is."""
    makers = makers_of(plan)
    replicated = _replicated(plan, makers, spread)
    found = {**keys, **{address: EVERYWHERE for address in keys if address in spread or address[0] in replicated}}
    for node in plan.nodes:
        for port, other in ((0, 1), (1, 0)):
            if (node.id, port) in spread and found[node.id, other] != EVERYWHERE:
                found |= _in_place(plan, found, makers, (node.id, other))
    return found


def _in_place(plan: Plan, keys: Keys, makers: Makers, address: Address) -> dict[Address, Grouping | None]:
    """By what the rows are grouped that are joined with spread ones: as they lie already, where they do; else so that
    what is made of them need not move, or else by all that they hold. So is a set of what sources bring in front of
    them, which may lie by any of its columns."""
    id, port = address
    before = [plan.by_id[maker] for maker in makers.get(address, ())]
    if len(before) == 1 and isinstance(op := before[0].op, Distinct) and from_sources(plan, before[0], makers):
        maker = before[0].id
        ports = [(maker, number) for number in range(len(before[0].inputs))]
        tried = [_set_in_place(plan, keys, address, ports, key) for key in _parts(range(op.by))]
        if found := [one for one in tried if one[address] is not None]:
            return min(found, key=lambda one: _moving(plan, {**keys, **one}, maker, id))
    known = lying(plan, makers, keys, address)
    if known is not None and known != EVERYWHERE:
        return {address: known}
    columns = _parts(range(plan.widths[plan.by_id[id].inputs[port].node]))
    return {address: min(columns, key=lambda key: _moving(plan, {**keys, address: key}, id))}


def _parts(columns: Sequence[int]) -> list[Columns]:
    return [tuple(columns), *((column,) for column in columns)]


def _set_in_place(
    plan: Plan, keys: Keys, address: Address, ports: Sequence[Address], key: Columns
) -> dict[Address, Grouping | None]:
    """A set's inputs grouped by some columns, and an input that it feeds as its rows lie there then."""
    found: dict[Address, Grouping | None] = dict.fromkeys(ports, key)
    (way, *_) = ways_to(plan, plan.by_id[ports[0][0]], {**keys, **found}, address)
    return {**found, address: way.key}


def _moving(plan: Plan, keys: Keys, *nodes: str) -> int:
    """On how many ways from some nodes rows have to move."""
    return sum(
        way.key is None or way.key != keys[way.consumer, way.port]
        for id in nodes
        for way in ways(plan, id, grouped(plan, plan.by_id[id], keys))
    )


# What can be spread


def spreadable(plan: Plan) -> dict[Address, frozenset[Address]]:
    """The inputs of joins that can be spread, which are fed by sources alone, each with the inputs at which what is
    spread comes from these."""
    return _spreadable(plan, makers_of(plan))


def _spreadable(plan: Plan, makers: Makers) -> dict[Address, frozenset[Address]]:
    own: dict[str, frozenset[Address]] = {}
    found: dict[Address, frozenset[Address]] = {}
    for node in plan.nodes:
        if not isinstance(node.op, _REPLICABLE):
            continue
        ports = [_entries((node.id, port), makers, own, plan) for port in range(len(node.inputs))]
        if all(ports):
            own[node.id] = frozenset().union(*ports)
        for port, entries in enumerate(ports):
            if entries and isinstance(node.op, Join | LeftJoin | AntiJoin) and (port or isinstance(node.op, Join)):
                found[node.id, port] = entries
    return found


def general(plan: Plan) -> frozenset[Address]:
    """The inputs to which patterns bring rows whose predicate may be any, or that ask for the types of anything."""
    return frozenset(
        (way.consumer, way.port)
        for node in plan.nodes
        if isinstance(node.op, Match) and _is_general(node.op.cells)
        for way in ways(plan, node.id, None)
    )


def _is_general(cells: Sequence[Cell]) -> bool:
    variable = [isinstance(cell, int) for cell in cells]
    return len(cells) > 2 and (variable[1] or (cells[1] == TYPE and variable[2]))


def _entries(address: Address, makers: Makers, own: Mapping[str, frozenset[Address]], plan: Plan) -> frozenset[Address]:
    """The inputs at which what comes to an input enters from the sources; none if it does not come from them alone."""
    found: set[Address] = set()
    for id in makers.get(address, ()):
        if not plan.by_id[id].inputs:
            found.add(address)
        elif id in own:
            found |= own[id]
        else:
            return frozenset()
    return frozenset(found)


def chosen(plan: Plan, rows: Mapping[Address, int], streamed: Collection[Address], most: int) -> frozenset[Address]:
    """The inputs that are spread, of those that can be: all that comes to them is in static data, as far as is known,
    and those are few.

    rows: how many static data bring to each input that is fed by sources; streamed: to which streams are known to bring
    some; most: how many may go to all tasks."""
    makers = makers_of(plan)
    found = {
        address: sum(rows.get(entry, 0) for entry in entries)
        for address, entries in _spreadable(plan, makers).items()
        if all(rows.get(entry) and entry not in streamed for entry in entries)
    }
    spread = {address for address, count in found.items() if count <= most}
    while True:
        replicated = _replicated(plan, makers, spread)
        both = {(id, 1) for id, port in spread if port == 0 and (id, 1) in spread and id not in replicated}
        wanted = {id for id in replicated if not _alone(plan, id, spread, replicated)}
        shared = {address for address in spread if _replicated(plan, makers, [address]) & wanted} if wanted else set()
        if not both and not shared:
            return frozenset(address for address in spread if address[0] not in replicated)
        spread -= both | shared


def _replicated(plan: Plan, makers: Makers, spread: Collection[Address]) -> frozenset[str]:
    """The nodes that every task works off for itself: those that keep rows in front of what is spread."""
    waiting = list(spread)
    found: set[str] = set()
    while waiting:
        for id in makers.get(waiting.pop(), ()):
            node = plan.by_id[id]
            if node.inputs and id not in found:
                found.add(id)
                waiting += [(id, port) for port in range(len(node.inputs))]
    return frozenset(found)


def _alone(plan: Plan, id: str, spread: Collection[Address], replicated: Collection[str]) -> bool:
    """Whether nobody else wants what every task makes of a node."""
    return all(way.consumer in replicated or (way.consumer, way.port) in spread for way in ways(plan, id, None))
