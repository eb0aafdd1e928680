"""What goes to all tasks: the few rows that static data make of one side of a join, so that the many of the other side
stay where they are, also where most of them have the same key.

(Fragment and replicate: Epstein, Stonebraker and Wong, Distributed Query Processing in a Relational Data Base System,
SIGMOD 1978. On Spark it is known as a broadcast join.)

An input whose rows go to all tasks is *spread*. What comes there from the sources every task gets; nodes in front of it
that keep rows, which are fed by sources alone, every task works off for itself. It is right whatever the rows are: a
row that a stream brings later goes to all tasks as well. So which inputs are spread is a matter of cost alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from squall.operators import (
    AntiJoin,
    Apply,
    Cell,
    Distinct,
    Emit,
    Extend,
    Group,
    Join,
    LeftJoin,
    Match,
    Project,
    Test,
    Where,
    is_stateful,
)
from squall.plan import Node, Plan
from squall.statistics import TYPE

Columns = tuple[int, ...]
Address = tuple[str, int]
"""A node, and the number of one of its inputs."""
EVERYWHERE: Columns = (-1,)
"""The grouping of rows that are all in every task."""
Keys = Mapping[Address, Columns | None]
"""By which of their columns the rows of each input of a node that keeps rows are grouped."""
Makers = Mapping[Address, Sequence[str]]
_REPLICABLE = Distinct | Join | LeftJoin | AntiJoin


class Way(NamedTuple):
    """A way from a node to the next one that keeps rows. key: by which of its columns a row lies there."""

    consumer: str
    port: int
    key: Columns | None


# Groupings


def groupings(plan: Plan, spread: Collection[Address] = ()) -> dict[Address, Columns | None]:
    """The groupings of a plan, where some inputs are spread: what is joined with their rows stays where it is."""
    keys: dict[Address, Columns | None] = {
        (node.id, port): edge.columns
        for node in plan.nodes if is_stateful(node.op)
        for port, edge in enumerate(node.inputs)
    }  # fmt: skip
    if not spread:
        return keys
    makers = _makers(plan)
    replicated = _replicated(plan, makers, spread)
    keys |= {address: EVERYWHERE for address in keys if address in spread or address[0] in replicated}
    for node in plan.nodes:
        for port, other in ((0, 1), (1, 0)):
            if (node.id, port) in spread and keys[node.id, other] != EVERYWHERE:
                keys |= _in_place(plan, keys, makers, (node.id, other))
    return keys


def ways(plan: Plan, start: str, key: Columns | None) -> Iterator[Way]:
    """The ways from a node, through others that keep no rows. key: by which columns the rows that it makes lie."""
    return _ways(plan, start, key, set())


def _ways(plan: Plan, at: str, key: Columns | None, seen: set[str]) -> Iterator[Way]:
    for id, port in plan.consumers[at]:
        node = plan.by_id[id]
        if is_stateful(node.op):
            yield Way(id, port, key)
        elif id not in seen:
            yield from _ways(plan, id, through(node, key), seen | {id})


def grouped(plan: Plan, node: Node, keys: Keys) -> Columns | None:
    """By which of their columns the rows that a node makes lie together; None: by none."""
    if not is_stateful(node.op) or not node.inputs:
        return None
    found = [keys[node.id, port] for port in range(len(node.inputs))]
    if all(key == EVERYWHERE for key in found):
        return EVERYWHERE
    match node.op:
        case Join(keep=columns) | LeftJoin(keep=columns):
            port = next(port for port, key in enumerate(found) if key != EVERYWHERE)
            before = plan.widths[node.inputs[0].node] if port else 0
            key = found[port]
            return None if key is None else _places(columns, tuple(column + before for column in key))
        case Group(keys=columns):
            return None if found[0] is None else _places(columns, found[0])
    return found[0]


def through(node: Node, key: Columns | None) -> Columns | None:
    """Where a node without memory puts the columns that its input is grouped by."""
    if key is None or key == EVERYWHERE:
        return key
    match node.op:
        case Match(cells=cells):
            found = tuple(cells[column] for column in key if column < len(cells))
            return tuple(cell for cell in found if isinstance(cell, int)) if _all_numbers(found, key) else None
        case Emit(template=template):
            return _places(template, key)
        case Where() | Test() | Extend() | Apply():
            return key
        case Project(columns=columns):
            return _places(columns, key)
    return None


def _all_numbers(found: tuple[object, ...], key: Columns) -> bool:
    return len(found) == len(key) and all(isinstance(cell, int) for cell in found)


def _places(cells: tuple[object, ...], columns: Columns) -> Columns | None:
    return tuple(cells.index(column) for column in columns) if all(column in cells for column in columns) else None


def _in_place(plan: Plan, keys: Keys, makers: Makers, address: Address) -> dict[Address, Columns | None]:
    """By what the rows are grouped that are joined with spread ones: as they lie already, where they do; else so that
    what is made of them need not move, or else by all that they hold. So is a set of what sources bring in front of
    them, which may lie by any of its columns."""
    id, port = address
    before = [plan.by_id[maker] for maker in makers.get(address, ())]
    if len(before) == 1 and isinstance(op := before[0].op, Distinct) and _from_sources(plan, before[0], makers):
        maker = before[0].id
        ports = [(maker, number) for number in range(len(before[0].inputs))]
        tried = [_set_in_place(plan, keys, address, ports, key) for key in _parts(range(op.by))]
        if found := [one for one in tried if one[address] is not None]:
            return min(found, key=lambda one: _moving(plan, {**keys, **one}, maker, id))
    lying = {way.key for node in before for way in _ways_to(plan, node, keys, address)}
    if len(lying) == 1 and (known := next(iter(lying))) is not None and known != EVERYWHERE:
        return {address: known}
    columns = _parts(range(plan.widths[plan.by_id[id].inputs[port].node]))
    return {address: min(columns, key=lambda key: _moving(plan, {**keys, address: key}, id))}


def _ways_to(plan: Plan, node: Node, keys: Keys, address: Address) -> list[Way]:
    """The ways from a node to an input."""
    if not node.inputs:
        return [Way(*address, None)]
    return [way for way in ways(plan, node.id, grouped(plan, node, keys)) if (way.consumer, way.port) == address]


def _parts(columns: Sequence[int]) -> list[Columns]:
    return [tuple(columns), *((column,) for column in columns)]


def _from_sources(plan: Plan, node: Node, makers: Makers) -> bool:
    ports = ((node.id, port) for port in range(len(node.inputs)))
    return all(not plan.by_id[id].inputs for port in ports for id in makers.get(port, ()))


def _set_in_place(
    plan: Plan, keys: Keys, address: Address, ports: Sequence[Address], key: Columns
) -> dict[Address, Columns | None]:
    """A set's inputs grouped by some columns, and an input that it feeds as its rows lie there then."""
    found: dict[Address, Columns | None] = dict.fromkeys(ports, key)
    (way, *_) = _ways_to(plan, plan.by_id[ports[0][0]], {**keys, **found}, address)
    return {**found, address: way.key}


def _moving(plan: Plan, keys: Keys, *nodes: str) -> int:
    """On how many ways from some nodes rows have to move."""
    return sum(
        way.key is None or way.key != keys[way.consumer, way.port]
        for id in nodes
        for way in ways(plan, id, grouped(plan, plan.by_id[id], keys))
    )


def _makers(plan: Plan) -> Makers:
    """For each input of a node that keeps rows the nodes that its rows come from, through others that keep none."""
    found: dict[Address, list[str]] = {}
    for node in plan.nodes:
        if is_stateful(node.op) or not node.inputs:
            for way in ways(plan, node.id, None):
                found.setdefault((way.consumer, way.port), []).append(node.id)
    return found


# What can be spread


def spreadable(plan: Plan) -> dict[Address, frozenset[Address]]:
    """The inputs of joins that can be spread, which are fed by sources alone, each with the inputs at which what is
    spread comes from these."""
    return _spreadable(plan, _makers(plan))


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
    makers = _makers(plan)
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
