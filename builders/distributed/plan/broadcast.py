"""Broadcast joins: a small input goes to every task, so that the rows of the other side need not be shuffled.

This also helps where most rows of the other side have the same key. (Fragment and replicate: Epstein, Stonebraker and
Wong, Distributed Query Processing in a Relational Data Base System, SIGMOD 1978.)

Every task gets the rows that sources bring to a *broadcast* input. Stateful nodes in front of it that only sources feed
are replicated: every task runs them for itself. A `Distinct` directly in front of it may also get derived facts, as a
vocabulary does in a recursion; each task then sends what it derives to all tasks. The result is right whatever the rows
are, since rows that a stream brings later are broadcast too. So the choice of inputs is a matter of cost alone.

The steps of a transitive closure are broadcast as well. Each task finds the paths that begin at its own nodes (a
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
from squall.plan.equivalence import RowDigests
from squall.plan.operators import AntiJoin, Cell, Distinct, Join, LeftJoin, Match, TransitiveClosure
from squall.plan.partitioning import Columns
from squall.rdf.vocabulary import TYPE

SourceInputs = Mapping[str, frozenset[Address]]
"""By node, the inputs at which the rows that it processes come from the sources."""
_REPLICABLE = Distinct | Join | LeftJoin | AntiJoin


def with_broadcast(
    plan: Plan, partitionings: Partitionings, broadcast_inputs: Collection[Address]
) -> dict[Address, Partitioning | None]:
    """Returns the partitionings of a plan with broadcast inputs: the rows that they are joined with stay where they
    are. partitionings: those without broadcast."""
    producers = producers_of(plan)
    joined_inputs = frozenset(broadcast_inputs) - closure_inputs(plan)
    replicated = _replicated_nodes(plan, producers, joined_inputs, _source_inputs_by_node(plan, producers))
    new_partitionings = {
        **partitionings,
        **{address: BROADCAST for address in partitionings if address in broadcast_inputs or address[0] in replicated},
    }
    for node in plan.nodes:
        for port, other in ((0, 1), (1, 0)):
            if (node.id, port) in joined_inputs and new_partitionings[node.id, other] != BROADCAST:
                new_partitionings |= _partitioning_beside_broadcast(
                    plan, new_partitionings, producers, (node.id, other)
                )
    return new_partitionings


def _partitioning_beside_broadcast(
    plan: Plan, partitionings: Partitionings, producers: Producers, address: Address
) -> dict[Address, Partitioning | None]:
    """Returns the partitioning of the rows that are joined with broadcast ones.

    They keep the partitioning that they arrive with, if they have one. Otherwise they take a column by which their
    join's output need not be shuffled, or all their columns. A `Distinct` in front of them may be partitioned by any of
    its columns, so it takes the same ones where that saves a shuffle.
    """
    id, port = address
    producer_nodes = [plan.by_id[producer] for producer in producers.get(address, ())]
    attempts: list[dict[Address, Partitioning | None]] = []
    nearby = [id]
    if (
        len(producer_nodes) == 1
        and isinstance(op := producer_nodes[0].op, Distinct)
        and not is_broadcast(partitionings[producer_nodes[0].id, 0])
    ):
        producer = producer_nodes[0].id
        ports = [(producer, number) for number in range(len(producer_nodes[0].inputs))]
        nearby += [producer, *dict.fromkeys(neighbour for place in ports for neighbour in producers.get(place, ()))]
        sets = (_distinct_candidate(plan, partitionings, address, ports, key) for key in _candidate_keys(range(op.by)))
        attempts += [neighbour for neighbour in sets if neighbour[address] is not None]
    partitioning = arriving_partitioning(plan, producers, partitionings, address)
    if partitioning is not None and partitioning != BROADCAST:
        attempts.append({address: partitioning})
    if len(attempts) != 1:
        attempts += [{address: key} for key in _candidate_keys(range(plan.widths[plan.by_id[id].inputs[port].node]))]
    return min(attempts, key=lambda neighbour: _shuffle_count(plan, {**partitionings, **neighbour}, *nearby))


def _candidate_keys(columns: Sequence[int]) -> list[Columns]:
    """Returns the candidates for a partitioning: all columns together, and each alone."""
    return [tuple(columns), *((column,) for column in columns)]


def _distinct_candidate(
    plan: Plan, partitionings: Partitionings, address: Address, ports: Sequence[Address], key: Columns
) -> dict[Address, Partitioning | None]:
    """Returns the partitioning of a `Distinct` by some columns, and that of an input that it feeds."""
    new_partitionings: dict[Address, Partitioning | None] = dict.fromkeys(ports, key)
    (edge, *_) = stateful_edges_to(plan, plan.by_id[ports[0][0]], {**partitionings, **new_partitionings}, address)
    return {**new_partitionings, address: edge.key}


def _shuffle_count(plan: Plan, partitionings: Partitionings, *nodes: str) -> int:
    """Returns on how many edges from some nodes rows are shuffled."""
    return sum(
        edge.key is None or edge.key != partitionings[edge.consumer, edge.port]
        for id in nodes
        for edge in stateful_edges(plan, id, output_partitioning(plan, plan.by_id[id], partitionings))
    )


# What can be broadcast


def closure_inputs(plan: Plan) -> frozenset[Address]:
    """Returns the inputs at which transitive closures get their steps."""
    return frozenset((node.id, 0) for node in plan.nodes if isinstance(node.op, TransitiveClosure))


def broadcast_candidates(plan: Plan) -> dict[Address, frozenset[Address]]:
    """Returns the inputs of joins that can be broadcast. Each has the inputs at which its rows come from the
    sources."""
    producers = producers_of(plan)
    source_fed = _source_inputs_by_node(plan, producers)
    return _source_fed_candidates(plan, producers, source_fed) | _derived_candidates(plan, producers, source_fed)


def _source_inputs_by_node(plan: Plan, producers: Producers) -> dict[str, frozenset[Address]]:
    """Returns the nodes that only sources feed and every task can run, each with the inputs at which its rows come from
    sources."""
    source_inputs: dict[str, frozenset[Address]] = {}
    for node in plan.nodes:
        if isinstance(node.op, _REPLICABLE):
            ports = [
                _source_inputs((node.id, port), producers, source_inputs, plan) for port in range(len(node.inputs))
            ]
            if all(ports):
                source_inputs[node.id] = frozenset().union(*ports)
    return source_inputs


def _source_fed_candidates(
    plan: Plan, producers: Producers, source_fed: SourceInputs
) -> dict[Address, frozenset[Address]]:
    """Returns the inputs that can be broadcast and that only sources feed."""
    entries_by_input = {
        address: _source_inputs(address, producers, source_fed, plan) for address in _replicable_join_inputs(plan)
    }
    return {address: source_inputs for address, source_inputs in entries_by_input.items() if source_inputs}


def _derived_candidates(
    plan: Plan, producers: Producers, source_fed: SourceInputs
) -> dict[Address, frozenset[Address]]:
    """Returns the inputs that can be broadcast behind a `Distinct` that also gets derived facts, none of which is ever
    retracted."""
    derived: dict[Address, frozenset[Address]] = {}
    for address in _replicable_join_inputs(plan):
        producer_nodes = [plan.by_id[id] for id in producers.get(address, ())]
        if (
            len(producer_nodes) != 1
            or not isinstance(producer_nodes[0].op, Distinct)
            or producer_nodes[0].id in source_fed
        ):
            continue
        (node,) = producer_nodes
        ports = ((node.id, port) for port in range(len(node.inputs)))
        source_inputs = frozenset(
            port for port in ports if any(not plan.by_id[id].inputs for id in producers.get(port, ()))
        )
        if source_inputs and not {node.id, address[0]} & plan.retractable:
            derived[address] = source_inputs
    return derived


def _replicable_join_inputs(plan: Plan) -> Iterator[Address]:
    """Yields the join inputs whose rows may be in every task, as long as those of the other input are not."""
    for node in plan.nodes:
        if isinstance(node.op, Join | LeftJoin | AntiJoin):
            yield from ((node.id, port) for port in (0, 1) if port or isinstance(node.op, Join))


def vocabulary_inputs(plan: Plan) -> frozenset[Address]:
    """Returns the inputs behind derived facts that look like vocabularies.

    Their rows are joined with facts of any predicate, or with the types of anything. Rows of one predicate that are
    joined with these are about predicates and classes, of which there are few.
    """
    producers = producers_of(plan)
    general_nodes = general_inputs(plan)

    def fits_any(address: Address) -> bool:
        producer_nodes = [plan.by_id[id] for id in producers.get(address, ())]
        ports = ((node.id, port) for node in producer_nodes if isinstance(node.op, Distinct) for port in (0, 1))
        return address in general_nodes or any(port in general_nodes for port in ports)

    source_inputs = _derived_candidates(plan, producers, _source_inputs_by_node(plan, producers))
    return frozenset((id, port) for id, port in source_inputs if fits_any((id, 1 - port)) and not fits_any((id, port)))


def general_inputs(plan: Plan) -> frozenset[Address]:
    """Returns the inputs to which patterns bring rows of any predicate, or the types of anything."""
    return frozenset(
        (edge.consumer, edge.port)
        for node in plan.nodes
        if isinstance(node.op, Match) and _is_general(node.op.cells)
        for edge in stateful_edges(plan, node.id, None)
    )


def _is_general(cells: Sequence[Cell]) -> bool:
    variable = [isinstance(cell, int) for cell in cells]
    return len(cells) > 2 and (variable[1] or (cells[1] == TYPE and variable[2]))


def _source_inputs(address: Address, producers: Producers, source_fed: SourceInputs, plan: Plan) -> frozenset[Address]:
    """Returns the inputs at which the rows for an input come from sources; none if they do not come from sources
    alone."""
    source_inputs: set[Address] = set()
    for id in producers.get(address, ()):
        if not plan.by_id[id].inputs:
            source_inputs.add(address)
        elif id in source_fed:
            source_inputs |= source_fed[id]
        else:
            return frozenset()
    return frozenset(source_inputs)


def choose_broadcast(
    plan: Plan,
    rows: Mapping[Address, int],
    streamed: Collection[Address],
    max_rows: int,
    vocabulary: Collection[Address] = (),
) -> frozenset[Address]:
    """Chooses the broadcast inputs: those whose rows are all in static data, as far as is known, and are few.

    Args:
        rows: the number of static rows at each input that sources feed.
        streamed: the inputs to which streams are known to bring rows.
        max_rows: the most rows that may be broadcast to an input.
        vocabulary: the inputs that may be broadcast although they also get derived facts.
    """
    producers = producers_of(plan)
    source_fed = _source_inputs_by_node(plan, producers)
    derived = {
        address: source_inputs
        for address, source_inputs in _derived_candidates(plan, producers, source_fed).items()
        if address in vocabulary
    }
    row_counts = {
        address: sum(rows.get(source_input, 0) for source_input in source_inputs)
        for address, source_inputs in (_source_fed_candidates(plan, producers, source_fed) | derived).items()
        if all(rows.get(source_input) and source_input not in streamed for source_input in source_inputs)
    }
    few = {address for address, count in row_counts.items() if count <= max_rows}
    return _without_excluded(plan, producers, source_fed, few)


def moved_broadcast_inputs(before: Plan, plan: Plan, broadcast_inputs: Collection[Address]) -> frozenset[Address]:
    """Returns the broadcast inputs of a plan in place of another one of the same program: those with the same rows as
    the broadcast inputs of the other one, as far as they can be broadcast.

    Args:
        before: the other plan.
        plan: the plan.
        broadcast_inputs: the broadcast inputs of the other plan, apart from those of transitive closures.
    """
    digests_before, digests = RowDigests(before.by_id), RowDigests(plan.by_id)
    few = {digests_before.of(before.by_id[id].inputs[port].node) for id, port in broadcast_inputs}
    candidates = broadcast_candidates(plan) if few else ()
    chosen = {(id, port) for id, port in candidates if digests.of(plan.by_id[id].inputs[port].node) in few}
    producers = producers_of(plan)
    return _without_excluded(plan, producers, _source_inputs_by_node(plan, producers), chosen)


def _without_excluded(
    plan: Plan, producers: Producers, source_fed: SourceInputs, broadcast_inputs: set[Address]
) -> frozenset[Address]:
    """Returns those of some inputs that can be broadcast together."""
    while True:
        replicated = _replicated_nodes(plan, producers, broadcast_inputs, source_fed)
        excluded = _excluded_inputs(plan, producers, source_fed, broadcast_inputs, replicated)
        if not excluded:
            return frozenset(address for address in broadcast_inputs if address[0] not in replicated)
        broadcast_inputs -= excluded


def _excluded_inputs(
    plan: Plan,
    producers: Producers,
    source_fed: SourceInputs,
    broadcast_inputs: Collection[Address],
    replicated: frozenset[str],
) -> set[Address]:
    """Returns the inputs that cannot be broadcast: the second one of a join whose first one is, and those for which a
    node would be replicated that also has other consumers or other rows."""
    excluded = {
        (id, 1) for id, port in broadcast_inputs if port == 0 and (id, 1) in broadcast_inputs and id not in replicated
    }
    unneeded = {id for id in replicated if not _feeds_only_replicated(plan, id, broadcast_inputs, replicated)}
    unneeded |= {id for id in replicated - source_fed.keys() if _mixes_replicated_rows(plan, producers, id, replicated)}
    if unneeded:
        excluded |= {
            candidate
            for candidate in broadcast_inputs
            if _replicated_nodes(plan, producers, [candidate], source_fed) & unneeded
        }
    return excluded


def _replicated_nodes(
    plan: Plan, producers: Producers, broadcast_inputs: Collection[Address], source_fed: SourceInputs
) -> frozenset[str]:
    """Returns the nodes that every task runs for itself: the stateful ones in front of a broadcast input. In front of a
    `Distinct` that gets derived facts there are none."""
    waiting = list(broadcast_inputs)
    replicated: set[str] = set()
    while waiting:
        for id in producers.get(waiting.pop(), ()):
            node = plan.by_id[id]
            if node.inputs and id not in replicated:
                replicated.add(id)
                waiting += [(id, port) for port in range(len(node.inputs))] if id in source_fed else []
    return frozenset(replicated)


def _mixes_replicated_rows(plan: Plan, producers: Producers, id: str, replicated: Collection[str]) -> bool:
    """Returns whether an input of a node gets rows that every task makes and rows that one task makes: they could not
    be distinguished."""
    producer_nodes = (producers.get((id, port), ()) for port in range(len(plan.by_id[id].inputs)))
    return any(
        len({producer in replicated for producer in makers_before if plan.by_id[producer].inputs}) > 1
        for makers_before in producer_nodes
    )


def _feeds_only_replicated(
    plan: Plan, id: str, broadcast_inputs: Collection[Address], replicated: Collection[str]
) -> bool:
    """Returns whether the output of a replicated node goes only to replicated nodes and broadcast inputs."""
    return all(
        edge.consumer in replicated or (edge.consumer, edge.port) in broadcast_inputs
        for edge in stateful_edges(plan, id, None)
    )
