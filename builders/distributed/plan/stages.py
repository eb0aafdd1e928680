"""Cuts a plan into stages for a distributed builder: where its grouping columns make rows move, and in what order.

Rows move on an edge into an operator that keeps rows unless they lie together already by the columns that it groups by.
A *level* is what can be worked off between two movements of all data; the stages of a level are its parts that exchange
nothing. A level is *recursive* where rows move inside a recursion: it takes rounds until nothing moves any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from squall.builders.distributed.exec.ordered_scan import ordered_scan_of
from squall.builders.distributed.exec.report_times import reports_on_change, rstream_nodes
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
from squall.builders.runtime.multiway_join import FusedJoin, stars
from squall.errors import BuilderError
from squall.model.fact_shapes import may_affect
from squall.model.graphs import components
from squall.plan import Node, Plan
from squall.plan.operators import (
    AntiJoin,
    DerivedStream,
    Distinct,
    Group,
    Join,
    LeftJoin,
    Sink,
    Slice,
    TransitiveClosure,
    is_stateful,
)
from squall.plan.partitioning import Columns

NO_SKEWED_KEYS: SkewedKeys = MappingProxyType({})
"""No key is hot."""
_MAX_SHOWN_KEYS = 3
"""So many hot keys of a kind are shown."""


@dataclass(frozen=True)
class Exchange:
    """A way for rows from one node to the next that keeps rows (or from a source), through nodes that do not.

    moves: whether rows have to be exchanged on the way."""

    producer: str
    consumer: str
    port: int
    shuffles: bool


@dataclass(frozen=True)
class Stage:
    """nodes: those that keep rows, in the order of the plan; stages: the same, by what exchanges nothing inside.

    recursive: takes rounds. deletes: takes its rounds in two phases, delete and rederive. timely: has nodes that look
    at whole instants, and so work as time passes."""

    number: int
    nodes: tuple[str, ...]
    pipelines: tuple[tuple[str, ...], ...]
    recursive: bool
    has_deletions: bool
    has_event_time_nodes: bool


def partitionings_of(
    plan: Plan, broadcast_inputs: Collection[Address] = (), hot: SkewedKeys = NO_SKEWED_KEYS
) -> dict[Address, Partitioning | None]:
    """By which of their columns the rows of each input of a node that keeps rows are grouped. spread, hot: as
    `stages_of` takes them."""
    keys: dict[Address, Partitioning | None] = {
        (node.id, port): edge.columns
        for node in plan.nodes if is_stateful(node.op)
        for port, edge in enumerate(node.inputs)
    }  # fmt: skip
    keys = with_broadcast(plan, keys, broadcast_inputs) if broadcast_inputs else keys
    return with_split_keys(plan, keys, hot) if hot else keys


def stages_of(
    plan: Plan, broadcast_inputs: Collection[Address] = (), hot: SkewedKeys = NO_SKEWED_KEYS
) -> tuple[Stage, ...]:
    """The levels in the order in which they are worked off, numbered from 1. `Sink` is in none: it ends a batch.

    spread: the inputs whose rows go to all tasks (`squall.builders.distributed.plan.broadcast`). hot: the keys that
    many rows have (`squall.builders.distributed.plan.skew`)."""
    into: dict[str, list[Exchange]] = {}
    for hop in exchanges_of(plan, broadcast_inputs, hot):
        into.setdefault(hop.consumer, []).append(hop)
    numbers = _stage_numbers(plan, into)
    return tuple(_stage(plan, into, numbers, number) for number in sorted(set(numbers.values())))


def exchanges_of(
    plan: Plan, broadcast_inputs: Collection[Address] = (), hot: SkewedKeys = NO_SKEWED_KEYS
) -> Iterator[Exchange]:
    """Every way between nodes that keep rows, and from the sources to them."""
    keys = partitionings_of(plan, broadcast_inputs, hot)
    for node in plan.nodes:
        if is_stateful(node.op) or not node.inputs:
            for way in stateful_edges(plan, node.id, output_partitioning(plan, node, keys)):
                grouping_key = keys[way.consumer, way.port]
                yield Exchange(node.id, way.consumer, way.port, way.key is None or way.key != grouping_key)


def fused_output_stage(
    plan: Plan, stages: Sequence[Stage], broadcast_inputs: Collection[Address] = (), hot: SkewedKeys = NO_SKEWED_KEYS
) -> tuple[Stage, ...]:
    """The level that is worked off together with the end, if there is one: the last, where it takes no rounds, what it
    makes is told where it lies, and the driver has to hear of nothing in between: at which instants something that is
    told whole has changed, or is evaluated, since a stream is made there."""
    if not stages or stages[-1].recursive or any(reports_on_change(op) for _, op in plan.sinks):
        return ()
    ends, last = {node.id for node, _ in plan.sinks}, stages[-1].nodes
    makes = any(isinstance(plan.by_id[id].op, DerivedStream) for id in last)
    moving = any(
        hop.shuffles and hop.consumer in ends and hop.producer in last
        for hop in exchanges_of(plan, broadcast_inputs, hot)
    )
    return () if moving or (makes and rstream_nodes(plan)) else tuple(stages[-1:])


def fused_joins_of(
    plan: Plan, stages: Sequence[Stage], broadcast_inputs: Collection[Address] = (), hot: SkewedKeys = NO_SKEWED_KEYS
) -> dict[str, FusedJoin]:
    """The joins that are done as one (`squall.builders.runtime.multiway_join`): inside of a level without rounds,
    between which no rows move."""
    place = {id: level.number for level in stages if not level.recursive for id in level.nodes}
    partitionings = {
        hop.producer
        for hop in exchanges_of(plan, broadcast_inputs, hot)
        if not hop.shuffles and hop.producer in place and place[hop.producer] == place.get(hop.consumer)
    }
    return stars(plan, apart=plan.by_id.keys() - partitionings)


def _stage_numbers(plan: Plan, into: dict[str, list[Exchange]]) -> dict[str, int]:
    """The level of each node that keeps rows. A stream that is told whole is above those whose events say when."""
    least: dict[str, int] = {}
    heard = _rstream_dependencies(plan)
    while True:
        numbers = _lowest_stage_numbers(plan, into, least)
        early = [(id, numbers[emitter]) for emitter, id in heard if numbers[id] <= numbers[emitter]]
        if not early:
            return numbers
        least |= {id: max(number for other, number in early if other == id) + 1 for id, _ in early}
        if max(least.values()) > len(plan.nodes):
            raise BuilderError(f"`{early[0][0]}` is told whole when a stream has events that depend on it")


def _rstream_dependencies(plan: Plan) -> list[tuple[str, str]]:
    """Nodes that make a stream, each with one that makes another which is told whole at times that the first one's
    events say."""
    feeds = [(node.id, node.op) for node in plan.nodes if isinstance(node.op, DerivedStream)]
    reporters = [(id, op) for id, op in feeds if op.output == "rstream"]
    return [
        (feed_id, id)
        for feed_id, feed in feeds
        for id, op in reporters if any(may_affect(source, feed.source.stream) for source in op.sources)
    ]  # fmt: skip


def _lowest_stage_numbers(plan: Plan, into: dict[str, list[Exchange]], least: Mapping[str, int]) -> dict[str, int]:
    """The same, where nodes are on some level at least. A node that looks at whole instants is above all recursions
    that it depends on: these take rounds, and it has to see their outcome; and above all streams that it depends on,
    which say when it does so."""
    numbers: dict[str, int] = {}
    unsettled: set[str] = set()
    """The nodes to which rounds of their own level, or streams made there, may still bring something."""
    for component in plan.components:
        members = [id for id in component if is_stateful(plan.by_id[id].op)]
        before = [hop for id in members for hop in into.get(id, []) if hop.producer not in component]
        recursive = len(component) > 1
        deletes = recursive and any(id in plan.retractable for id in members)
        timely = any(_is_event_time(plan.by_id[id]) for id in members)
        steps = ((hop, hop.shuffles or deletes or (timely and hop.producer in unsettled)) for hop in before)
        floors = (least.get(id, 1) for id in members)
        number = max([1, *floors, *(numbers.get(hop.producer, 0) + moves for hop, moves in steps)])
        numbers.update({id: number for id in members if not isinstance(plan.by_id[id].op, Sink)})
        makes = any(isinstance(plan.by_id[id].op, DerivedStream) for id in members)
        if recursive or makes or any(hop.producer in unsettled and numbers[hop.producer] == number for hop in before):
            unsettled.update(members)
    return numbers


def _is_event_time(node: Node) -> bool:
    return isinstance(node.op, DerivedStream | Group | Slice)


def _stage(plan: Plan, into: dict[str, list[Exchange]], numbers: dict[str, int], number: int) -> Stage:
    nodes = tuple(node.id for node in plan.nodes if numbers.get(node.id) == number)
    inner = [hop for id in nodes for hop in into.get(id, []) if hop.producer in nodes]
    linked: dict[str, list[str]] = {id: [] for id in nodes}
    for hop in (hop for hop in inner if not hop.shuffles):
        linked[hop.producer].append(hop.consumer)
        linked[hop.consumer].append(hop.producer)
    stages = sorted((tuple(sorted(part, key=nodes.index)) for part in components(linked)), key=str)
    recursion = any(len(part) > 1 and set(part) & set(nodes) & plan.retractable for part in plan.components)
    timely = any(_is_event_time(plan.by_id[id]) for id in nodes)
    return Stage(number, nodes, tuple(stages), any(hop.shuffles for hop in inner), recursion, timely)


def stateless_chain(plan: Plan, starts: Iterable[str]) -> tuple[str, ...]:
    """The nodes without memory that rows of these go through, in the order of the plan."""
    waiting = list(starts)
    node_ids = {id for id in waiting if not is_stateful(plan.by_id[id].op)}
    while waiting:
        after = {id for id, _ in plan.consumers[waiting.pop()] if not is_stateful(plan.by_id[id].op)}
        waiting += after - node_ids
        node_ids |= after
    return tuple(node.id for node in plan.nodes if node.id in node_ids)


def describe(plan: Plan, broadcast_inputs: Collection[Address] = (), hot: SkewedKeys = NO_SKEWED_KEYS) -> str:
    """What runs where, as text: the nodes behind the sources, the levels with their stages, and the ends."""
    keys = partitionings_of(plan, broadcast_inputs, hot)
    ends = [node.id for node, _ in plan.sinks]
    lines = ["sources", "  lines are parsed where they are read"]
    in_turn = ordered_scan_of(plan)
    lines += [f"  {line}" for line in in_turn.describe()]
    lines += _describe_stateless(plan, [node.id for node in plan.nodes if not node.inputs], in_turn.sources)
    cut = stages_of(plan, broadcast_inputs, hot)
    for level in cut:
        rounds = ", in rounds until nothing moves" if level.recursive else ""
        phases = ", deleting first and rederiving then" if level.has_deletions else ""
        lines.append(f"level {level.number}{rounds}{phases}")
        for stage in level.pipelines:
            lines += [
                f"  stage of {len(stage)}",
                *(f"    {id}{describe_partitioning(plan.by_id[id], keys)}" for id in stage),
            ]
        lines += _describe_stateless(plan, level.nodes)
    where = "".join(
        f", in the tasks of level {level.number}" for level in fused_output_stage(plan, cut, broadcast_inputs, hot)
    )
    lines += [f"end{where}", *(f"    {id}{describe_partitioning(plan.by_id[id], keys)}" for id in ends)]
    return "\n".join(lines)


def _describe_stateless(plan: Plan, starts: Sequence[str], excluded: Collection[str] = ()) -> list[str]:
    """What is done where rows are made, since it needs no other rows. shown: is said already."""
    node_ids = [id for id in stateless_chain(plan, starts) if id not in excluded]
    return [f"  then, row by row: {', '.join(node_ids)}"] if node_ids else []


def describe_partitioning(node: Node, keys: Partitionings) -> str:
    """By which columns the rows of a node are grouped, as text."""
    grouping_keys = [keys[node.id, port] for port in range(len(node.inputs))]
    if isinstance(node.op, TransitiveClosure) and grouping_keys == [BROADCAST]:
        return f" with all steps in every task, the pairs by {_describe_columns(BY_PATH_START)}"
    if grouping_keys and all(columns == BROADCAST for columns in grouping_keys):
        return " in every task, for itself"
    if BROADCAST in grouping_keys:
        port = grouping_keys.index(BROADCAST)
        others = _describe_columns(grouping_keys[1 - port])
        return f" with all rows of input {port + 1} in every task, the others by {others}"
    if grouping_keys and all(columns == () for columns in grouping_keys):
        return " (a single task: all its rows have to meet)"
    match node.op:
        case Join() | LeftJoin() | AntiJoin():
            return (
                f" grouped by {' = '.join(map(_describe_columns, grouping_keys))}{_describe_split_keys(grouping_keys)}"
            )
        case Distinct() | Group() | Sink() | DerivedStream() if grouping_keys:
            descriptions = dict.fromkeys(_describe_columns(columns) for columns in grouping_keys if columns != ())
            meeting = ", ".join(str(port) for port, columns in enumerate(grouping_keys, 1) if columns == ())
            apart = f"; a single task has all rows of input {meeting}" if meeting else ""
            return f" grouped by {' and '.join(descriptions)}{_describe_split_keys(grouping_keys[:1])}{apart}"
    return ""


def _describe_columns(key: Partitioning | None) -> str:
    return str(list((key.columns if isinstance(key, SkewedPartitioning) else key) or ()))


def _describe_split_keys(grouping_keys: Sequence[Partitioning | None]) -> str:
    """How the rows of hot keys lie, as text: many keys of the same kind are counted."""
    by = [dict(key.hot) if isinstance(key, SkewedPartitioning) else {} for key in grouping_keys]
    alike: dict[str, list[str]] = {}
    for key in by[0]:
        placements = (
            f"input {port + 1} {_describe_placement(placement[key])}"
            for port, placement in enumerate(by)
            if key in placement
        )
        alike.setdefault(", ".join(placements), []).append(key.replace("\n", " "))
    return "".join(f"; of the hot {_first_keys(keys)}: {how}" for how, keys in alike.items())


def _describe_placement(columns: Columns) -> str:
    return "in every task" if columns == BROADCAST else f"by {list(columns)}"


def _first_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MAX_SHOWN_KEYS} more" if len(keys) > _MAX_SHOWN_KEYS else ""
    return ", ".join(keys[:_MAX_SHOWN_KEYS]) + more
