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
    BROADCAST,
    Address,
    Partitioning,
    Partitionings,
    Producers,
    arriving_partitioning,
    is_broadcast,
    output_partitioning,
    producers_of,
    stateful_edges,
    stateful_edges_to,
)
from squall.plan import Plan
from squall.plan.cardinality import TYPE
from squall.plan.operators import AntiJoin, Cell, Distinct, Join, LeftJoin, Match, TransitiveClosure
from squall.plan.partitioning import Columns

SourceInputs = Mapping[str, frozenset[Address]]
"""By node the inputs at which what it makes comes from the sources."""
_REPLICABLE = Distinct | Join | LeftJoin | AntiJoin


def with_broadcast(
    plan: Plan, keys: Partitionings, broadcast_inputs: Collection[Address]
) -> dict[Address, Partitioning | None]:
    """The groupings of a plan where some inputs are spread: what is joined with their rows stays where it is. keys:
    where none is."""
    makers = producers_of(plan)
    joined_inputs = frozenset(broadcast_inputs) - closure_inputs(plan)
    replicated = _replicated_nodes(plan, makers, joined_inputs, _source_inputs_by_node(plan, makers))
    groupings = {
        **keys,
        **{address: BROADCAST for address in keys if address in broadcast_inputs or address[0] in replicated},
    }
    for node in plan.nodes:
        for port, other in ((0, 1), (1, 0)):
            if (node.id, port) in joined_inputs and groupings[node.id, other] != BROADCAST:
                groupings |= _partitioning_beside_broadcast(plan, groupings, makers, (node.id, other))
    return groupings


def _partitioning_beside_broadcast(
    plan: Plan, keys: Partitionings, makers: Producers, address: Address
) -> dict[Address, Partitioning | None]:
    """By what the rows are grouped that are joined with spread ones: as they lie already, where they do; else so that
    what is made of them need not move, or else by all that they hold. So is a set of rows in front of them, which may
    lie by any of its columns, unless it is better off as it is."""
    id, port = address
    before = [plan.by_id[maker] for maker in makers.get(address, ())]
    attempts: list[dict[Address, Partitioning | None]] = []
    near = [id]
    if len(before) == 1 and isinstance(op := before[0].op, Distinct) and not is_broadcast(keys[before[0].id, 0]):
        maker = before[0].id
        ports = [(maker, number) for number in range(len(before[0].inputs))]
        near += [maker, *dict.fromkeys(neighbour for place in ports for neighbour in makers.get(place, ()))]
        sets = (_distinct_candidate(plan, keys, address, ports, key) for key in _candidate_keys(range(op.by)))
        attempts += [neighbour for neighbour in sets if neighbour[address] is not None]
    partitioning = arriving_partitioning(plan, makers, keys, address)
    if partitioning is not None and partitioning != BROADCAST:
        attempts.append({address: partitioning})
    if len(attempts) != 1:
        attempts += [{address: key} for key in _candidate_keys(range(plan.widths[plan.by_id[id].inputs[port].node]))]
    return min(attempts, key=lambda neighbour: _shuffle_count(plan, {**keys, **neighbour}, *near))


def _candidate_keys(columns: Sequence[int]) -> list[Columns]:
    return [tuple(columns), *((column,) for column in columns)]


def _distinct_candidate(
    plan: Plan, keys: Partitionings, address: Address, ports: Sequence[Address], key: Columns
) -> dict[Address, Partitioning | None]:
    """A set's inputs grouped by some columns, and an input that it feeds as its rows lie there then."""
    groupings: dict[Address, Partitioning | None] = dict.fromkeys(ports, key)
    (way, *_) = stateful_edges_to(plan, plan.by_id[ports[0][0]], {**keys, **groupings}, address)
    return {**groupings, address: way.key}


def _shuffle_count(plan: Plan, keys: Partitionings, *nodes: str) -> int:
    """On how many ways from some nodes rows have to move."""
    return sum(
        way.key is None or way.key != keys[way.consumer, way.port]
        for id in nodes
        for way in stateful_edges(plan, id, output_partitioning(plan, plan.by_id[id], keys))
    )


# What can be spread


def closure_inputs(plan: Plan) -> frozenset[Address]:
    """The inputs at which closures get their steps."""
    return frozenset((node.id, 0) for node in plan.nodes if isinstance(node.op, TransitiveClosure))


def broadcast_candidates(plan: Plan) -> dict[Address, frozenset[Address]]:
    """The inputs of joins that can be spread, each with the inputs at which what is spread comes from the sources."""
    makers = producers_of(plan)
    own = _source_inputs_by_node(plan, makers)
    return _source_fed_candidates(plan, makers, own) | _derived_candidates(plan, makers, own)


def _source_inputs_by_node(plan: Plan, makers: Producers) -> dict[str, frozenset[Address]]:
    """The nodes that are fed by sources alone, and can be worked off by every task, each with the inputs at which that
    comes from these."""
    entries: dict[str, frozenset[Address]] = {}
    for node in plan.nodes:
        if isinstance(node.op, _REPLICABLE):
            ports = [_source_inputs((node.id, port), makers, entries, plan) for port in range(len(node.inputs))]
            if all(ports):
                entries[node.id] = frozenset().union(*ports)
    return entries


def _source_fed_candidates(plan: Plan, makers: Producers, own: SourceInputs) -> dict[Address, frozenset[Address]]:
    """The inputs that can be spread and are fed by sources alone."""
    entries_by_input = {
        address: _source_inputs(address, makers, own, plan) for address in _replicable_join_inputs(plan)
    }
    return {address: entries for address, entries in entries_by_input.items() if entries}


def _derived_candidates(plan: Plan, makers: Producers, own: SourceInputs) -> dict[Address, frozenset[Address]]:
    """The inputs that can be spread behind a set to which derived facts come as well, of which nothing is ever taken
    back."""
    grown: dict[Address, frozenset[Address]] = {}
    for address in _replicable_join_inputs(plan):
        before = [plan.by_id[id] for id in makers.get(address, ())]
        if len(before) != 1 or not isinstance(before[0].op, Distinct) or before[0].id in own:
            continue
        (node,) = before
        ports = ((node.id, port) for port in range(len(node.inputs)))
        entries = frozenset(port for port in ports if any(not plan.by_id[id].inputs for id in makers.get(port, ())))
        if entries and not {node.id, address[0]} & plan.retractable:
            grown[address] = entries
    return grown


def _replicable_join_inputs(plan: Plan) -> Iterator[Address]:
    """The inputs whose rows may be in every task, as long as the other one's are not."""
    for node in plan.nodes:
        if isinstance(node.op, Join | LeftJoin | AntiJoin):
            yield from ((node.id, port) for port in (0, 1) if port or isinstance(node.op, Join))


def vocabulary_inputs(plan: Plan) -> frozenset[Address]:
    """The inputs that can be spread behind derived facts, and are joined with facts whose predicate may be any, or with
    the types of anything: what is joined with these, of a predicate of its own, is about predicates and classes, of
    which there are few."""
    makers = producers_of(plan)
    general_nodes = general_inputs(plan)

    def fits_any(address: Address) -> bool:
        before = [plan.by_id[id] for id in makers.get(address, ())]
        ports = ((node.id, port) for node in before if isinstance(node.op, Distinct) for port in (0, 1))
        return address in general_nodes or any(port in general_nodes for port in ports)

    entries = _derived_candidates(plan, makers, _source_inputs_by_node(plan, makers))
    return frozenset((id, port) for id, port in entries if fits_any((id, 1 - port)) and not fits_any((id, port)))


def general_inputs(plan: Plan) -> frozenset[Address]:
    """The inputs to which patterns bring rows whose predicate may be any, or that ask for the types of anything."""
    return frozenset(
        (way.consumer, way.port)
        for node in plan.nodes
        if isinstance(node.op, Match) and _is_general(node.op.cells)
        for way in stateful_edges(plan, node.id, None)
    )


def _is_general(cells: Sequence[Cell]) -> bool:
    variable = [isinstance(cell, int) for cell in cells]
    return len(cells) > 2 and (variable[1] or (cells[1] == TYPE and variable[2]))


def _source_inputs(address: Address, makers: Producers, own: SourceInputs, plan: Plan) -> frozenset[Address]:
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


def choose_broadcast(
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
    makers = producers_of(plan)
    own = _source_inputs_by_node(plan, makers)
    grown = {
        address: entries for address, entries in _derived_candidates(plan, makers, own).items() if address in growing
    }
    row_counts = {
        address: sum(rows.get(entry, 0) for entry in entries)
        for address, entries in (_source_fed_candidates(plan, makers, own) | grown).items()
        if all(rows.get(entry) and entry not in streamed for entry in entries)
    }
    broadcast_inputs = {address for address, count in row_counts.items() if count <= most}
    while True:
        replicated = _replicated_nodes(plan, makers, broadcast_inputs, own)
        both_sides = {
            (id, 1)
            for id, port in broadcast_inputs
            if port == 0 and (id, 1) in broadcast_inputs and id not in replicated
        }
        unneeded = {id for id in replicated if not _feeds_only_replicated(plan, id, broadcast_inputs, replicated)}
        unneeded |= {id for id in replicated - own.keys() if _mixes_replicated_rows(plan, makers, id, replicated)}
        shared = (
            {
                candidate
                for candidate in broadcast_inputs
                if _replicated_nodes(plan, makers, [candidate], own) & unneeded
            }
            if unneeded
            else set()
        )
        if not both_sides and not shared:
            return frozenset(address for address in broadcast_inputs if address[0] not in replicated)
        broadcast_inputs -= both_sides | shared


def _replicated_nodes(
    plan: Plan, makers: Producers, broadcast_inputs: Collection[Address], own: SourceInputs
) -> frozenset[str]:
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


def _mixes_replicated_rows(plan: Plan, makers: Producers, id: str, replicated: Collection[str]) -> bool:
    """Whether an input of a node gets rows that every task makes, and such that one makes: nobody could tell which."""
    before = (makers.get((id, port), ()) for port in range(len(plan.by_id[id].inputs)))
    return any(
        len({maker in replicated for maker in makers_before if plan.by_id[maker].inputs}) > 1
        for makers_before in before
    )


def _feeds_only_replicated(
    plan: Plan, id: str, broadcast_inputs: Collection[Address], replicated: Collection[str]
) -> bool:
    """Whether nobody else wants what every task makes of a node."""
    return all(
        way.consumer in replicated or (way.consumer, way.port) in broadcast_inputs
        for way in stateful_edges(plan, id, None)
    )
