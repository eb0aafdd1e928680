"""What goes to all tasks: the few rows that static data make of one side of a join, so that the many of the other side
stay where they are, also where most of them have the same key.

(Fragment and replicate: Epstein, Stonebraker and Wong, Distributed Query Processing in a Relational Data Base System,
SIGMOD 1978. On Spark it is known as a broadcast join.)

An input whose rows go to all tasks is *spread*. What comes there from the sources every task gets; nodes in front of it
that keep rows, which are fed by sources alone, every task works off for itself. So does it with a set directly in front
of it to which derived facts come as well, as to a vocabulary in a recursion: what a task derives goes to all of them.
It is right whatever the rows are: a row that a stream brings later goes to all tasks as well. So which inputs are
spread is a matter of cost alone.

The steps of a transitive closure go to all tasks as well, and each finds the paths that begin at nodes of its own (a
decomposable plan: Shkapsky et al., Big Data Analytics with Datalog Queries on Spark, SIGMOD 2016).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from squall.builders.distributed.plan.partitioning import (
    EVERYWHERE,
    Address,
    Grouping,
    Keys,
    Makers,
    goes_everywhere,
    grouped,
    lying,
    makers_of,
    ways,
    ways_to,
)
from squall.plan import Plan
from squall.plan.cardinality import TYPE
from squall.plan.operators import AntiJoin, Cell, Distinct, Join, LeftJoin, Match, TransitiveClosure
from squall.plan.partitioning import Columns

Entries = Mapping[str, frozenset[Address]]
"""By node the inputs at which what it makes comes from the sources."""
_REPLICABLE = Distinct | Join | LeftJoin | AntiJoin


def spread_out(plan: Plan, keys: Keys, broadcast_inputs: Collection[Address]) -> dict[Address, Grouping | None]:
    """The groupings of a plan where some inputs are spread: what is joined with their rows stays where it is. keys:
    where none is."""
    makers = makers_of(plan)
    joined_inputs = frozenset(broadcast_inputs) - closures(plan)
    replicated = _replicated(plan, makers, joined_inputs, _entries_of(plan, makers))
    groupings = {
        **keys,
        **{address: EVERYWHERE for address in keys if address in broadcast_inputs or address[0] in replicated},
    }
    for node in plan.nodes:
        for port, other in ((0, 1), (1, 0)):
            if (node.id, port) in joined_inputs and groupings[node.id, other] != EVERYWHERE:
                groupings |= _in_place(plan, groupings, makers, (node.id, other))
    return groupings


def _in_place(plan: Plan, keys: Keys, makers: Makers, address: Address) -> dict[Address, Grouping | None]:
    """By what the rows are grouped that are joined with spread ones: as they lie already, where they do; else so that
    what is made of them need not move, or else by all that they hold. So is a set of rows in front of them, which may
    lie by any of its columns, unless it is better off as it is."""
    id, port = address
    before = [plan.by_id[maker] for maker in makers.get(address, ())]
    attempts: list[dict[Address, Grouping | None]] = []
    near = [id]
    if len(before) == 1 and isinstance(op := before[0].op, Distinct) and not goes_everywhere(keys[before[0].id, 0]):
        maker = before[0].id
        ports = [(maker, number) for number in range(len(before[0].inputs))]
        near += [maker, *dict.fromkeys(neighbour for place in ports for neighbour in makers.get(place, ()))]
        sets = (_set_in_place(plan, keys, address, ports, key) for key in _parts(range(op.by)))
        attempts += [neighbour for neighbour in sets if neighbour[address] is not None]
    partitioning = lying(plan, makers, keys, address)
    if partitioning is not None and partitioning != EVERYWHERE:
        attempts.append({address: partitioning})
    if len(attempts) != 1:
        attempts += [{address: key} for key in _parts(range(plan.widths[plan.by_id[id].inputs[port].node]))]
    return min(attempts, key=lambda neighbour: _moving(plan, {**keys, **neighbour}, *near))


def _parts(columns: Sequence[int]) -> list[Columns]:
    return [tuple(columns), *((column,) for column in columns)]


def _set_in_place(
    plan: Plan, keys: Keys, address: Address, ports: Sequence[Address], key: Columns
) -> dict[Address, Grouping | None]:
    """A set's inputs grouped by some columns, and an input that it feeds as its rows lie there then."""
    groupings: dict[Address, Grouping | None] = dict.fromkeys(ports, key)
    (way, *_) = ways_to(plan, plan.by_id[ports[0][0]], {**keys, **groupings}, address)
    return {**groupings, address: way.key}


def _moving(plan: Plan, keys: Keys, *nodes: str) -> int:
    """On how many ways from some nodes rows have to move."""
    return sum(
        way.key is None or way.key != keys[way.consumer, way.port]
        for id in nodes
        for way in ways(plan, id, grouped(plan, plan.by_id[id], keys))
    )


# What can be spread


def closures(plan: Plan) -> frozenset[Address]:
    """The inputs at which closures get their steps."""
    return frozenset((node.id, 0) for node in plan.nodes if isinstance(node.op, TransitiveClosure))


def spreadable(plan: Plan) -> dict[Address, frozenset[Address]]:
    """The inputs of joins that can be spread, each with the inputs at which what is spread comes from the sources."""
    makers = makers_of(plan)
    own = _entries_of(plan, makers)
    return _fed_by_sources(plan, makers, own) | _grown(plan, makers, own)


def _entries_of(plan: Plan, makers: Makers) -> dict[str, frozenset[Address]]:
    """The nodes that are fed by sources alone, and can be worked off by every task, each with the inputs at which that
    comes from these."""
    entries: dict[str, frozenset[Address]] = {}
    for node in plan.nodes:
        if isinstance(node.op, _REPLICABLE):
            ports = [_entries((node.id, port), makers, entries, plan) for port in range(len(node.inputs))]
            if all(ports):
                entries[node.id] = frozenset().union(*ports)
    return entries


def _fed_by_sources(plan: Plan, makers: Makers, own: Entries) -> dict[Address, frozenset[Address]]:
    """The inputs that can be spread and are fed by sources alone."""
    entries_by_input = {address: _entries(address, makers, own, plan) for address in _inputs_of_joins(plan)}
    return {address: entries for address, entries in entries_by_input.items() if entries}


def _grown(plan: Plan, makers: Makers, own: Entries) -> dict[Address, frozenset[Address]]:
    """The inputs that can be spread behind a set to which derived facts come as well, of which nothing is ever taken
    back."""
    grown: dict[Address, frozenset[Address]] = {}
    for address in _inputs_of_joins(plan):
        before = [plan.by_id[id] for id in makers.get(address, ())]
        if len(before) != 1 or not isinstance(before[0].op, Distinct) or before[0].id in own:
            continue
        (node,) = before
        ports = ((node.id, port) for port in range(len(node.inputs)))
        entries = frozenset(port for port in ports if any(not plan.by_id[id].inputs for id in makers.get(port, ())))
        if entries and not {node.id, address[0]} & plan.retractable:
            grown[address] = entries
    return grown


def _inputs_of_joins(plan: Plan) -> Iterator[Address]:
    """The inputs whose rows may be in every task, as long as the other one's are not."""
    for node in plan.nodes:
        if isinstance(node.op, Join | LeftJoin | AntiJoin):
            yield from ((node.id, port) for port in (0, 1) if port or isinstance(node.op, Join))


def vocabularies(plan: Plan) -> frozenset[Address]:
    """The inputs that can be spread behind derived facts, and are joined with facts whose predicate may be any, or with
    the types of anything: what is joined with these, of a predicate of its own, is about predicates and classes, of
    which there are few."""
    makers = makers_of(plan)
    general_nodes = general(plan)

    def fits_any(address: Address) -> bool:
        before = [plan.by_id[id] for id in makers.get(address, ())]
        ports = ((node.id, port) for node in before if isinstance(node.op, Distinct) for port in (0, 1))
        return address in general_nodes or any(port in general_nodes for port in ports)

    entries = _grown(plan, makers, _entries_of(plan, makers))
    return frozenset((id, port) for id, port in entries if fits_any((id, 1 - port)) and not fits_any((id, port)))


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


def _entries(address: Address, makers: Makers, own: Entries, plan: Plan) -> frozenset[Address]:
    """The inputs at which what comes to an input enters from the sources; none if it does not come from them alone."""
    entries: set[Address] = set()
    for id in makers.get(address, ()):
        if not plan.by_id[id].inputs:
            entries.add(address)
        elif id in own:
            entries |= own[id]
        else:
            return frozenset()
    return frozenset(entries)


def chosen(
    plan: Plan,
    rows: Mapping[Address, int],
    streamed: Collection[Address],
    most: int,
    growing: Collection[Address] = (),
) -> frozenset[Address]:
    """The inputs that are spread, of those that can be: all that comes to them is in static data, as far as is known,
    and those are few.

    rows: how many static data bring to each input that is fed by sources; streamed: to which streams are known to bring
    some; most: how many may go to all tasks; growing: the inputs that may be spread though derived facts come there,
    too."""
    makers = makers_of(plan)
    own = _entries_of(plan, makers)
    grown = {address: entries for address, entries in _grown(plan, makers, own).items() if address in growing}
    row_counts = {
        address: sum(rows.get(entry, 0) for entry in entries)
        for address, entries in (_fed_by_sources(plan, makers, own) | grown).items()
        if all(rows.get(entry) and entry not in streamed for entry in entries)
    }
    broadcast_inputs = {address for address, count in row_counts.items() if count <= most}
    while True:
        replicated = _replicated(plan, makers, broadcast_inputs, own)
        both_sides = {
            (id, 1)
            for id, port in broadcast_inputs
            if port == 0 and (id, 1) in broadcast_inputs and id not in replicated
        }
        unneeded = {id for id in replicated if not _alone(plan, id, broadcast_inputs, replicated)}
        unneeded |= {id for id in replicated - own.keys() if _is_mixed(plan, makers, id, replicated)}
        shared = (
            {candidate for candidate in broadcast_inputs if _replicated(plan, makers, [candidate], own) & unneeded}
            if unneeded
            else set()
        )
        if not both_sides and not shared:
            return frozenset(address for address in broadcast_inputs if address[0] not in replicated)
        broadcast_inputs -= both_sides | shared


def _replicated(plan: Plan, makers: Makers, broadcast_inputs: Collection[Address], own: Entries) -> frozenset[str]:
    """The nodes that every task works off for itself: those that keep rows in front of what is spread; in front of a
    set to which derived facts come, none."""
    waiting = list(broadcast_inputs)
    replicated: set[str] = set()
    while waiting:
        for id in makers.get(waiting.pop(), ()):
            node = plan.by_id[id]
            if node.inputs and id not in replicated:
                replicated.add(id)
                waiting += [(id, port) for port in range(len(node.inputs))] if id in own else []
    return frozenset(replicated)


def _is_mixed(plan: Plan, makers: Makers, id: str, replicated: Collection[str]) -> bool:
    """Whether an input of a node gets rows that every task makes, and such that one makes: nobody could tell which."""
    before = (makers.get((id, port), ()) for port in range(len(plan.by_id[id].inputs)))
    return any(
        len({maker in replicated for maker in makers_before if plan.by_id[maker].inputs}) > 1
        for makers_before in before
    )


def _alone(plan: Plan, id: str, broadcast_inputs: Collection[Address], replicated: Collection[str]) -> bool:
    """Whether nobody else wants what every task makes of a node."""
    return all(
        way.consumer in replicated or (way.consumer, way.port) in broadcast_inputs for way in ways(plan, id, None)
    )
