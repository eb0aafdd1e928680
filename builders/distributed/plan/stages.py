"""Cuts a plan into stages for a distributed builder: where its grouping columns make rows move, and in what order.

Rows move on an edge into an operator that keeps rows unless they lie together already by the columns that it groups by.
A *level* is what can be worked off between two movements of all data; the stages of a level are its parts that exchange
nothing. A level is *recursive* where rows move inside a recursion: it takes rounds until nothing moves any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from squall.builders.distributed.exec.ordered_scan import turns
from squall.builders.distributed.exec.report_times import changes_only, tellers
from squall.builders.distributed.plan.broadcast import spread_out
from squall.builders.distributed.plan.partitioning import (
    EVERYWHERE,
    SOURCES,
    Address,
    Apart,
    Grouping,
    Keys,
    grouped,
    ways,
)
from squall.builders.distributed.plan.skew import Hot, scattered
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

NONE: Hot = MappingProxyType({})
"""No key is hot."""
_KEYS = 3
"""So many hot keys of a kind are shown."""


@dataclass(frozen=True)
class Hop:
    """A way for rows from one node to the next that keeps rows (or from a source), through nodes that do not.

    moves: whether rows have to be exchanged on the way."""

    producer: str
    consumer: str
    port: int
    moves: bool


@dataclass(frozen=True)
class Stage:
    """nodes: those that keep rows, in the order of the plan; stages: the same, by what exchanges nothing inside.

    recursive: takes rounds. deletes: takes its rounds in two phases, delete and rederive. timely: has nodes that look
    at whole instants, and so work as time passes."""

    number: int
    nodes: tuple[str, ...]
    stages: tuple[tuple[str, ...], ...]
    recursive: bool
    deletes: bool
    timely: bool


def groupings(
    plan: Plan, broadcast_inputs: Collection[Address] = (), hot: Hot = NONE
) -> dict[Address, Grouping | None]:
    """By which of their columns the rows of each input of a node that keeps rows are grouped. spread, hot: as
    `levels` takes them."""
    keys: dict[Address, Grouping | None] = {
        (node.id, port): edge.columns
        for node in plan.nodes if is_stateful(node.op)
        for port, edge in enumerate(node.inputs)
    }  # fmt: skip
    keys = spread_out(plan, keys, broadcast_inputs) if broadcast_inputs else keys
    return scattered(plan, keys, hot) if hot else keys


def levels(plan: Plan, broadcast_inputs: Collection[Address] = (), hot: Hot = NONE) -> tuple[Stage, ...]:
    """The levels in the order in which they are worked off, numbered from 1. `Sink` is in none: it ends a batch.

    spread: the inputs whose rows go to all tasks (`squall.builders.distributed.plan.broadcast`). hot: the keys that
    many rows have (`squall.builders.distributed.plan.skew`)."""
    into: dict[str, list[Hop]] = {}
    for hop in hops(plan, broadcast_inputs, hot):
        into.setdefault(hop.consumer, []).append(hop)
    numbers = _numbers(plan, into)
    return tuple(_level(plan, into, numbers, number) for number in sorted(set(numbers.values())))


def hops(plan: Plan, broadcast_inputs: Collection[Address] = (), hot: Hot = NONE) -> Iterator[Hop]:
    """Every way between nodes that keep rows, and from the sources to them."""
    keys = groupings(plan, broadcast_inputs, hot)
    for node in plan.nodes:
        if is_stateful(node.op) or not node.inputs:
            for way in ways(plan, node.id, grouped(plan, node, keys)):
                grouping_key = keys[way.consumer, way.port]
                yield Hop(node.id, way.consumer, way.port, way.key is None or way.key != grouping_key)


def ending(
    plan: Plan, levels: Sequence[Stage], broadcast_inputs: Collection[Address] = (), hot: Hot = NONE
) -> tuple[Stage, ...]:
    """The level that is worked off together with the end, if there is one: the last, where it takes no rounds, what it
    makes is told where it lies, and the driver has to hear of nothing in between: at which instants something that is
    told whole has changed, or is evaluated, since a stream is made there."""
    if not levels or levels[-1].recursive or any(changes_only(op) for _, op in plan.sinks):
        return ()
    ends, last = {node.id for node, _ in plan.sinks}, levels[-1].nodes
    makes = any(isinstance(plan.by_id[id].op, DerivedStream) for id in last)
    moving = any(
        hop.moves and hop.consumer in ends and hop.producer in last for hop in hops(plan, broadcast_inputs, hot)
    )
    return () if moving or (makes and tellers(plan)) else tuple(levels[-1:])


def fused(
    plan: Plan, levels: Sequence[Stage], broadcast_inputs: Collection[Address] = (), hot: Hot = NONE
) -> dict[str, FusedJoin]:
    """The joins that are done as one (`squall.builders.runtime.multiway_join`): inside of a level without rounds,
    between which no rows move."""
    place = {id: level.number for level in levels if not level.recursive for id in level.nodes}
    partitionings = {
        hop.producer
        for hop in hops(plan, broadcast_inputs, hot)
        if not hop.moves and hop.producer in place and place[hop.producer] == place.get(hop.consumer)
    }
    return stars(plan, apart=plan.by_id.keys() - partitionings)


def _numbers(plan: Plan, into: dict[str, list[Hop]]) -> dict[str, int]:
    """The level of each node that keeps rows. A stream that is told whole is above those whose events say when."""
    least: dict[str, int] = {}
    heard = _heard(plan)
    while True:
        numbers = _numbers_from(plan, into, least)
        early = [(id, numbers[emitter]) for emitter, id in heard if numbers[id] <= numbers[emitter]]
        if not early:
            return numbers
        least |= {id: max(number for other, number in early if other == id) + 1 for id, _ in early}
        if max(least.values()) > len(plan.nodes):
            raise BuilderError(f"`{early[0][0]}` is told whole when a stream has events that depend on it")


def _heard(plan: Plan) -> list[tuple[str, str]]:
    """Nodes that make a stream, each with one that makes another which is told whole at times that the first one's
    events say."""
    feeds = [(node.id, node.op) for node in plan.nodes if isinstance(node.op, DerivedStream)]
    reporters = [(id, op) for id, op in feeds if op.output == "rstream"]
    return [
        (feed_id, id)
        for feed_id, feed in feeds
        for id, op in reporters if any(may_affect(source, feed.source.stream) for source in op.sources)
    ]  # fmt: skip


def _numbers_from(plan: Plan, into: dict[str, list[Hop]], least: Mapping[str, int]) -> dict[str, int]:
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
        timely = any(_is_timely(plan.by_id[id]) for id in members)
        steps = ((hop, hop.moves or deletes or (timely and hop.producer in unsettled)) for hop in before)
        floors = (least.get(id, 1) for id in members)
        number = max([1, *floors, *(numbers.get(hop.producer, 0) + moves for hop, moves in steps)])
        numbers.update({id: number for id in members if not isinstance(plan.by_id[id].op, Sink)})
        makes = any(isinstance(plan.by_id[id].op, DerivedStream) for id in members)
        if recursive or makes or any(hop.producer in unsettled and numbers[hop.producer] == number for hop in before):
            unsettled.update(members)
    return numbers


def _is_timely(node: Node) -> bool:
    return isinstance(node.op, DerivedStream | Group | Slice)


def _level(plan: Plan, into: dict[str, list[Hop]], numbers: dict[str, int], number: int) -> Stage:
    nodes = tuple(node.id for node in plan.nodes if numbers.get(node.id) == number)
    inner = [hop for id in nodes for hop in into.get(id, []) if hop.producer in nodes]
    linked: dict[str, list[str]] = {id: [] for id in nodes}
    for hop in (hop for hop in inner if not hop.moves):
        linked[hop.producer].append(hop.consumer)
        linked[hop.consumer].append(hop.producer)
    stages = sorted((tuple(sorted(part, key=nodes.index)) for part in components(linked)), key=str)
    recursion = any(len(part) > 1 and set(part) & set(nodes) & plan.retractable for part in plan.components)
    timely = any(_is_timely(plan.by_id[id]) for id in nodes)
    return Stage(number, nodes, tuple(stages), any(hop.moves for hop in inner), recursion, timely)


def chain(plan: Plan, starts: Iterable[str]) -> tuple[str, ...]:
    """The nodes without memory that rows of these go through, in the order of the plan."""
    waiting = list(starts)
    node_ids = {id for id in waiting if not is_stateful(plan.by_id[id].op)}
    while waiting:
        after = {id for id, _ in plan.consumers[waiting.pop()] if not is_stateful(plan.by_id[id].op)}
        waiting += after - node_ids
        node_ids |= after
    return tuple(node.id for node in plan.nodes if node.id in node_ids)


def describe(plan: Plan, broadcast_inputs: Collection[Address] = (), hot: Hot = NONE) -> str:
    """What runs where, as text: the nodes behind the sources, the levels with their stages, and the ends."""
    keys = groupings(plan, broadcast_inputs, hot)
    ends = [node.id for node, _ in plan.sinks]
    lines = ["sources", "  lines are parsed where they are read"]
    in_turn = turns(plan)
    lines += [f"  {line}" for line in in_turn.describe()]
    lines += _row_by_row(plan, [node.id for node in plan.nodes if not node.inputs], in_turn.sources)
    cut = levels(plan, broadcast_inputs, hot)
    for level in cut:
        rounds = ", in rounds until nothing moves" if level.recursive else ""
        phases = ", deleting first and rederiving then" if level.deletes else ""
        lines.append(f"level {level.number}{rounds}{phases}")
        for stage in level.stages:
            lines += [f"  stage of {len(stage)}", *(f"    {id}{grouping(plan.by_id[id], keys)}" for id in stage)]
        lines += _row_by_row(plan, level.nodes)
    where = "".join(f", in the tasks of level {level.number}" for level in ending(plan, cut, broadcast_inputs, hot))
    lines += [f"end{where}", *(f"    {id}{grouping(plan.by_id[id], keys)}" for id in ends)]
    return "\n".join(lines)


def _row_by_row(plan: Plan, starts: Sequence[str], excluded: Collection[str] = ()) -> list[str]:
    """What is done where rows are made, since it needs no other rows. shown: is said already."""
    node_ids = [id for id in chain(plan, starts) if id not in excluded]
    return [f"  then, row by row: {', '.join(node_ids)}"] if node_ids else []


def grouping(node: Node, keys: Keys) -> str:
    """By which columns the rows of a node are grouped, as text."""
    grouping_keys = [keys[node.id, port] for port in range(len(node.inputs))]
    if isinstance(node.op, TransitiveClosure) and grouping_keys == [EVERYWHERE]:
        return f" with all steps in every task, the pairs by {_shown(SOURCES)}"
    if grouping_keys and all(columns == EVERYWHERE for columns in grouping_keys):
        return " in every task, for itself"
    if EVERYWHERE in grouping_keys:
        port = grouping_keys.index(EVERYWHERE)
        return f" with all rows of input {port + 1} in every task, the others by {_shown(grouping_keys[1 - port])}"
    if grouping_keys and all(columns == () for columns in grouping_keys):
        return " (a single task: all its rows have to meet)"
    match node.op:
        case Join() | LeftJoin() | AntiJoin():
            return f" grouped by {' = '.join(map(_shown, grouping_keys))}{_but_for(grouping_keys)}"
        case Distinct() | Group() | Sink() | DerivedStream() if grouping_keys:
            descriptions = dict.fromkeys(_shown(columns) for columns in grouping_keys if columns != ())
            meeting = ", ".join(str(port) for port, columns in enumerate(grouping_keys, 1) if columns == ())
            apart = f"; a single task has all rows of input {meeting}" if meeting else ""
            return f" grouped by {' and '.join(descriptions)}{_but_for(grouping_keys[:1])}{apart}"
    return ""


def _shown(key: Grouping | None) -> str:
    return str(list((key.columns if isinstance(key, Apart) else key) or ()))


def _but_for(grouping_keys: Sequence[Grouping | None]) -> str:
    """How the rows of hot keys lie, as text: many keys of the same kind are counted."""
    by = [dict(key.hot) if isinstance(key, Apart) else {} for key in grouping_keys]
    alike: dict[str, list[str]] = {}
    for key in by[0]:
        ways = (f"input {port + 1} {_placed(placement[key])}" for port, placement in enumerate(by) if key in placement)
        alike.setdefault(", ".join(ways), []).append(key.replace("\n", " "))
    return "".join(f"; of the hot {_few(keys)}: {how}" for how, keys in alike.items())


def _placed(columns: Columns) -> str:
    return "in every task" if columns == EVERYWHERE else f"by {list(columns)}"


def _few(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else ""
    return ", ".join(keys[:_KEYS]) + more
