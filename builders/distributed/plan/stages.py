"""Cuts a plan into stages for a distributed engine: which rows are shuffled, and in what order the nodes run.

On an edge into a stateful operator rows are shuffled, unless they already have the partitioning that it needs. A
*stage* is what can run between two shuffles of all rows. Its *pipelines* are its parts that exchange no rows. A stage
is *recursive* if rows are shuffled inside a recursion: it is iterated until no rows move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from squall.builders.distributed.plan.broadcast import with_broadcast
from squall.builders.distributed.plan.partitioning import (
    BROADCAST,
    BY_PATH_START,
    Address,
    Partitioning,
    Partitionings,
    SkewedPartitioning,
    output_partitioning,
    stateful_edges,
)
from squall.builders.distributed.plan.skew import SkewedKeys, with_split_keys
from squall.builders.distributed.plan.snapshot_nodes import reports_on_change, rstream_nodes
from squall.builders.runtime.multiway_join import replaced_inputs, with_multiway_joins
from squall.errors import BuilderError
from squall.model.fact_shapes import may_affect
from squall.model.graphs import components
from squall.plan import Node, Plan
from squall.plan.operators import (
    DerivedStream,
    Distinct,
    Gate,
    Group,
    Sink,
    TransitiveClosure,
    is_stateful,
)
from squall.plan.partitioning import Columns

NO_SKEWED_KEYS: SkewedKeys = MappingProxyType({})
"""No key is skewed."""
_MAX_SHOWN_KEYS = 3
"""The number of skewed keys of a kind that are shown."""


@dataclass(frozen=True)
class Exchange:
    """An edge for rows from a node (or source) to the next stateful node, through stateless ones. `shuffles` says
    whether rows are shuffled on it."""

    producer: str
    consumer: str
    port: int
    shuffles: bool


@dataclass(frozen=True)
class Stage:
    """What runs between two shuffles.

    Attributes:
        number: the number of the stage, from 1.
        nodes: its stateful nodes, in the order of the plan.
        pipelines: the same nodes, by parts that exchange no rows.
        recursive: whether it is iterated.
        has_deletions: whether it is iterated in two phases, delete and rederive.
        has_event_time_nodes: whether some of its nodes look at complete instants, and so run as time passes.
    """

    number: int
    nodes: tuple[str, ...]
    pipelines: tuple[tuple[str, ...], ...]
    recursive: bool
    has_deletions: bool
    has_event_time_nodes: bool


def partitionings_of(
    plan: Plan, broadcast_inputs: Collection[Address] = (), skewed_keys: SkewedKeys = NO_SKEWED_KEYS
) -> dict[Address, Partitioning | None]:
    """Returns the partitioning of each input of a stateful node.

    Args:
        plan: the plan.
        broadcast_inputs: the inputs whose rows are broadcast (`squall.builders.distributed.plan.broadcast`).
        skewed_keys: the keys that many rows have (`squall.builders.distributed.plan.skew`).
    """
    partitionings: dict[Address, Partitioning | None] = {
        (node.id, port): edge.columns
        for node in plan.nodes if is_stateful(node.op)
        for port, edge in enumerate(node.inputs)
    }  # fmt: skip
    partitionings = with_broadcast(plan, partitionings, broadcast_inputs) if broadcast_inputs else partitionings
    return with_split_keys(plan, partitionings, skewed_keys) if skewed_keys else partitionings


def gathered_recursions(plan: Plan, exchanges: Iterable[Exchange]) -> dict[Address, Partitioning | None]:
    """Returns the partitionings by which all rows of a recursion that shuffles rows meet in one task, so that it need
    not be iterated. exchanges: without these partitionings."""
    shuffled = [(exchange.producer, exchange.consumer) for exchange in exchanges if exchange.shuffles]
    recursions = [
        component
        for component in plan.components
        if any(producer in component and consumer in component for producer, consumer in shuffled)
    ]
    return {
        (id, port): ()
        for component in recursions
        for id in component if is_stateful(plan.by_id[id].op)
        for port in range(len(plan.by_id[id].inputs))
    }  # fmt: skip


def stages_of(plan: Plan, exchanges: Iterable[Exchange]) -> tuple[Stage, ...]:
    """Returns the stages in the order in which they run, numbered from 1. `Sink` is in none: it ends a batch."""
    exchanges_by_consumer: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        exchanges_by_consumer.setdefault(exchange.consumer, []).append(exchange)
    numbers = _stage_numbers(plan, exchanges_by_consumer)
    return tuple(_stage(plan, exchanges_by_consumer, numbers, number) for number in sorted(set(numbers.values())))


def exchanges_of(plan: Plan, partitionings: Partitionings) -> Iterator[Exchange]:
    """Yields each edge between stateful nodes, and from the sources to them."""
    for node in plan.nodes:
        if is_stateful(node.op) or not node.inputs:
            for edge in stateful_edges(plan, node.id, output_partitioning(plan, node, partitionings)):
                grouping_key = partitionings[edge.consumer, edge.port]
                yield Exchange(node.id, edge.consumer, edge.port, edge.key is None or edge.key != grouping_key)


def fused_output_stage(plan: Plan, stages: Sequence[Stage], exchanges: Iterable[Exchange]) -> tuple[Stage, ...]:
    """Returns the stage that runs in one step with the output: the last one, or none.

    It must not be iterated, its rows must not be shuffled for the output, and the driver must not need a report in
    between. The driver needs one if a snapshot is output only where it has changed, or if a derived stream of the stage
    decides when a snapshot is evaluated.
    """
    if not stages or stages[-1].recursive or any(reports_on_change(op) for _, op in plan.sinks):
        return ()
    sinks, last = {node.id for node, _ in plan.sinks}, stages[-1].nodes
    has_derived_stream = any(isinstance(plan.by_id[id].op, DerivedStream) for id in last)
    moving = any(
        exchange.shuffles and exchange.consumer in sinks and exchange.producer in last for exchange in exchanges
    )
    return () if moving or (has_derived_stream and rstream_nodes(plan)) else tuple(stages[-1:])


def with_local_multiway_joins(plan: Plan, stages: Iterable[Stage], exchanges: Iterable[Exchange]) -> Plan:
    """Returns the plan with multiway joins (`squall.builders.runtime.multiway_join`) in place of the joins inside a
    stage without iterations, between which no rows are shuffled."""
    place = {id: stage.number for stage in stages if not stage.recursive for id in stage.nodes}
    local_producers = {
        exchange.producer
        for exchange in exchanges
        if not exchange.shuffles
        and exchange.producer in place
        and place[exchange.producer] == place.get(exchange.consumer)
    }
    return with_multiway_joins(plan, visible=plan.by_id.keys() - local_producers)


def multiway_partitionings(logical: Plan, plan: Plan, by_input: Partitionings) -> dict[Address, Partitioning | None]:
    """Returns the partitionings of a plan with multiway joins, given those of the logical plan."""
    nodes = (node for node in plan.nodes if is_stateful(node.op))
    addresses = ((node.id, enumerate(replaced_inputs(logical, node))) for node in nodes)
    return {(id, port): by_input[address] for id, ports in addresses for port, address in ports}


def _stage_numbers(plan: Plan, exchanges_by_consumer: dict[str, list[Exchange]]) -> dict[str, int]:
    """Returns the stage of each stateful node. A derived snapshot (`rstream`) comes after the streams whose events
    decide when it is evaluated."""
    lowest: dict[str, int] = {}
    dependencies = _rstream_dependencies(plan)
    while True:
        numbers = _lowest_stage_numbers(plan, exchanges_by_consumer, lowest)
        early = [(id, numbers[emitter]) for emitter, id in dependencies if numbers[id] <= numbers[emitter]]
        if not early:
            return numbers
        lowest |= {id: max(number for other, number in early if other == id) + 1 for id, _ in early}
        if max(lowest.values()) > len(plan.nodes):
            raise BuilderError(f"`{early[0][0]}` outputs a snapshot when a stream has events that depend on it")


def _rstream_dependencies(plan: Plan) -> list[tuple[str, str]]:
    """Returns pairs of derived stream nodes: the events of the first decide when the snapshot of the second is
    evaluated."""
    feeds = [(node.id, node.op) for node in plan.nodes if isinstance(node.op, DerivedStream)]
    reporters = [(id, op) for id, op in feeds if op.output == "rstream"]
    return [
        (feed_id, id)
        for feed_id, feed in feeds
        for id, op in reporters if any(may_affect(source, feed.source.stream) for source in op.sources)
    ]  # fmt: skip


def cyclic_gates(plan: Plan) -> list[str]:
    """Returns the gates of a plan without which no stream decides when the snapshot is evaluated that opens a gate in
    front of the stream."""
    dependencies = _rstream_dependencies(plan)
    successors: dict[str, list[str]] = {id: [id for id, _ in plan.consumers[id]] for id in plan.by_id}
    for emitter, id in dependencies:
        successors[emitter].append(id)
    cycles = [{*members} for members in components(successors)] if dependencies else []
    of_dependencies = [cycle for cycle in cycles if any({*pair} <= cycle for pair in dependencies)]
    gates = (node.id for node in plan.nodes if isinstance(node.op, Gate))
    return [id for id in gates if any(id in cycle for cycle in of_dependencies)]


def _lowest_stage_numbers(
    plan: Plan, exchanges_by_consumer: dict[str, list[Exchange]], lowest: Mapping[str, int]
) -> dict[str, int]:
    """Returns the stage of each stateful node, where some nodes have a lowest stage.

    A node that looks at complete instants comes after all recursions that it depends on, because it has to see their
    outcome after the last iteration. It also comes after all streams that it depends on, because they decide when it
    runs.
    """
    numbers: dict[str, int] = {}
    unsettled: set[str] = set()
    """The nodes to which iterations of their own stage, or streams derived there, may still bring rows."""
    for component in plan.components:
        members = [id for id in component if is_stateful(plan.by_id[id].op)]
        before = _outer_inputs(component, exchanges_by_consumer)
        number = max(
            [1, *(lowest.get(id, 1) for id in members), *_lowest_numbers(plan, component, before, numbers, unsettled)]
        )
        numbers.update({id: number for id in members if not isinstance(plan.by_id[id].op, Sink)})
        if (
            len(component) > 1
            or any(isinstance(plan.by_id[id].op, DerivedStream) for id in members)
            or number in {numbers[exchange.producer] for exchange in before if exchange.producer in unsettled}
        ):
            unsettled.update(members)
    return numbers


def _outer_inputs(
    component: Collection[str], exchanges_by_consumer: Mapping[str, Sequence[Exchange]]
) -> list[Exchange]:
    """Returns the exchanges from other components to one."""
    inputs = (exchange for id in component for exchange in exchanges_by_consumer.get(id, ()))
    return [exchange for exchange in inputs if exchange.producer not in component]


def _lowest_numbers(
    plan: Plan,
    component: Collection[str],
    inputs: Iterable[Exchange],
    numbers: Mapping[str, int],
    unsettled: Collection[str],
) -> Iterator[int]:
    """Yields the lowest stage of a component after each of its inputs.

    Args:
        plan: the plan.
        component: the nodes of the component.
        inputs: its inputs from other components.
        numbers: the stages of these.
        unsettled: the nodes to which iterations of their own stage, or streams derived there, may still bring rows.
    """
    deletes = len(component) > 1 and any(is_stateful(plan.by_id[id].op) and id in plan.retractable for id in component)
    timely = any(plan.by_id[id].op.is_event_time for id in component)
    for exchange in inputs:
        is_after = exchange.shuffles or deletes or (timely and exchange.producer in unsettled)
        yield numbers.get(exchange.producer, 0) + is_after


def _stage(plan: Plan, exchanges_by_consumer: dict[str, list[Exchange]], numbers: dict[str, int], number: int) -> Stage:
    nodes = tuple(node.id for node in plan.nodes if numbers.get(node.id) == number)
    inner = [exchange for id in nodes for exchange in exchanges_by_consumer.get(id, []) if exchange.producer in nodes]
    recursive = any(exchange.shuffles for exchange in inner)
    deletes = any(len(part) > 1 and set(part) & set(nodes) & plan.retractable for part in plan.components)
    timely = any(plan.by_id[id].op.is_event_time for id in nodes)
    return Stage(number, nodes, _pipelines(nodes, inner), recursive, recursive and deletes, timely)


def _pipelines(nodes: Sequence[str], inner: Iterable[Exchange]) -> tuple[tuple[str, ...], ...]:
    """Returns the nodes of a stage by parts that exchange no rows. inner: the exchanges between them."""
    linked: dict[str, list[str]] = {id: [] for id in nodes}
    for exchange in inner:
        if not exchange.shuffles:
            linked[exchange.producer].append(exchange.consumer)
            linked[exchange.consumer].append(exchange.producer)
    return tuple(sorted((tuple(sorted(part, key=nodes.index)) for part in components(linked)), key=str))


def stateless_nodes_behind(plan: Plan, starts: Iterable[str]) -> tuple[str, ...]:
    """Returns the stateless nodes that the rows of some nodes pass through, in the order of the plan."""
    waiting = list(starts)
    node_ids = {id for id in waiting if not is_stateful(plan.by_id[id].op)}
    while waiting:
        after = {id for id, _ in plan.consumers[waiting.pop()] if not is_stateful(plan.by_id[id].op)}
        waiting += after - node_ids
        node_ids |= after
    return tuple(node.id for node in plan.nodes if node.id in node_ids)


def describe_partitioning(node: Node, partitionings: Partitionings) -> str:
    """Describes the columns by which the input rows of a node are partitioned."""
    grouping_keys = [partitionings[node.id, port] for port in range(len(node.inputs))]
    if BROADCAST in grouping_keys:
        return _describe_broadcast(node, grouping_keys)
    if grouping_keys and all(columns == () for columns in grouping_keys):
        return " (a single task: all its rows have to meet)"
    match node.op:
        case op if op.join_keys:
            return (
                f" grouped by {' = '.join(map(_describe_columns, grouping_keys))}{_describe_split_keys(grouping_keys)}"
            )
        case Distinct() | Group() | Sink() | DerivedStream() if grouping_keys:
            descriptions = dict.fromkeys(_describe_columns(columns) for columns in grouping_keys if columns != ())
            meeting = ", ".join(str(port) for port, columns in enumerate(grouping_keys, 1) if columns == ())
            apart = f"; a single task has all rows of input {meeting}" if meeting else ""
            return f" grouped by {' and '.join(descriptions)}{_describe_split_keys(grouping_keys[:1])}{apart}"
    return ""


def _describe_broadcast(node: Node, grouping_keys: Sequence[Partitioning | None]) -> str:
    """Describes where the input rows of a node are, those of some inputs being in every task."""
    if isinstance(node.op, TransitiveClosure) and grouping_keys == [BROADCAST]:
        return f" with all steps in every task, the pairs by {_describe_columns(BY_PATH_START)}"
    if all(columns == BROADCAST for columns in grouping_keys):
        return " in every task, for itself"
    ports = [str(port) for port, key in enumerate(grouping_keys, 1) if key == BROADCAST]
    other_key = next(key for key in grouping_keys if key != BROADCAST)
    inputs = f"input{'s' if len(ports) > 1 else ''} {' and '.join(ports)}"
    return f" with all rows of {inputs} in every task, the others by {_describe_columns(other_key)}"


def _describe_columns(key: Partitioning | None) -> str:
    return str(list((key.columns if isinstance(key, SkewedPartitioning) else key) or ()))


def _describe_split_keys(grouping_keys: Sequence[Partitioning | None]) -> str:
    """Describes where the rows of skewed keys are. Many keys of the same kind are counted."""
    by = [dict(key.split_keys) if isinstance(key, SkewedPartitioning) else {} for key in grouping_keys]
    alike: dict[str, list[str]] = {}
    for key in by[0]:
        placements = (
            f"input {port + 1} {_describe_placement(placement[key])}"
            for port, placement in enumerate(by)
            if key in placement
        )
        alike.setdefault(", ".join(placements), []).append(key.replace("\n", " "))
    return "".join(f"; of the skewed keys {_first_keys(partitionings)}: {how}" for how, partitionings in alike.items())


def _describe_placement(columns: Columns) -> str:
    return "in every task" if columns == BROADCAST else f"by {list(columns)}"


def _first_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MAX_SHOWN_KEYS} more" if len(keys) > _MAX_SHOWN_KEYS else ""
    return ", ".join(keys[:_MAX_SHOWN_KEYS]) + more
