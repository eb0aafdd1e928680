"""Where the nodes and edges of a plan go in a picture: layers from left to right, with few crossings.

The four steps of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures" (IEEE
Trans. SMC 11(2), 1981): layers by longest path, long edges cut by a bend in each layer, order by barycentres, and then
coordinates: the least sum of squared distances to where the neighbours are.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from squall.plan import Node, Plan

Size = tuple[float, float]
Point = tuple[float, float]
Port = tuple[str, int]
"""An edge: the consumer and the number of its input."""
Bend = tuple[str, int, int]
"""Where an edge passes a layer: its port and that layer."""
Place = str | Bend

GAP = 14.0
"""Between neighbours in a layer."""
AISLE = 130.0
"""Between layers: edges and their labels need it."""
SWEEPS = 6
MOST_PLACES = 30_000
"""With more nodes and bends than this the layout is a simple one: order by depth-first search, edges straight."""


@dataclass(frozen=True)
class Layout:
    """Left top corners of the nodes, the points that each edge passes, and the size of all.

    simple: whether the plan was too large to look for an order with few crossings.
    """

    corners: Mapping[str, Point]
    routes: Mapping[Port, tuple[Point, ...]]
    size: Size
    simple: bool


def lay_out(plan: Plan, sizes: Mapping[str, Size], most: int = MOST_PLACES) -> Layout:
    """The layout of a plan whose nodes have these sizes."""
    depths = _depths(plan)
    spans = sum(depths[node.id] - depths[before] for node in plan.nodes for _, before in _forward(node))
    simple = len(plan.nodes) + spans > most
    chains = {port: _chain(port, source, depths, simple) for port, source in _edges(plan)}
    before, after = _neighbours(chains.values())
    layers = _layers(plan, before, depths)
    if not simple:
        layers = _ordered(layers, before, after)
    heights = {place: sizes[place][1] if isinstance(place, str) else 0.0 for layer in layers for place in layer}
    middles = _coordinates(layers, heights, before, after)
    return _drawn(plan, layers, middles, sizes, chains, simple)


# Layers


def _forward(node: Node) -> Iterator[tuple[int, str]]:
    return ((port, edge.node) for port, edge in enumerate(node.inputs) if not edge.feedback)


def _edges(plan: Plan) -> Iterator[tuple[Port, str]]:
    return (((node.id, port), source) for node in plan.nodes for port, source in _forward(node))


def _depths(plan: Plan) -> dict[str, int]:
    """The layer of each node: the longest path to it. What reads nothing stands just before its first consumer."""
    depths: dict[str, int] = {}
    for node in plan.nodes:
        depths[node.id] = 1 + max((depths[source] for _, source in _forward(node)), default=-1)
    nearest: dict[str, int] = {}
    for (consumer, _), source in _edges(plan):
        nearest[source] = min(nearest.get(source, depths[consumer]), depths[consumer])
    free = (node.id for node in plan.nodes if node.id in nearest and not any(_forward(node)))
    return depths | {id: nearest[id] - 1 for id in free}


def _chain(port: Port, source: str, depths: Mapping[str, int], simple: bool) -> list[Place]:
    """The places that an edge connects."""
    target = port[0]
    passed = range(0) if simple else range(depths[source] + 1, depths[target])
    return [source, *((*port, layer) for layer in passed), target]


Neighbours = Mapping[Place, Sequence[Place]]


def _neighbours(chains: Iterable[Sequence[Place]]) -> tuple[Neighbours, Neighbours]:
    before: dict[Place, list[Place]] = {}
    after: dict[Place, list[Place]] = {}
    for chain in chains:
        for left, right in pairwise(chain):
            after.setdefault(left, []).append(right)
            before.setdefault(right, []).append(left)
    return before, after


def _layers(plan: Plan, before: Neighbours, depths: Mapping[str, int]) -> list[list[Place]]:
    """The places by layer, in the order in which a search from the end of the plan meets them: a tree has no crossings
    then."""
    layers: list[list[Place]] = [[] for _ in range(1 + max(depths.values(), default=0))]
    met: set[Place] = set()
    waiting: list[Place] = [node.id for node in plan.nodes]
    while waiting:
        place = waiting.pop()
        if place not in met:
            met.add(place)
            layers[depths[place] if isinstance(place, str) else place[2]].append(place)
            waiting += reversed(before.get(place, ()))
    return layers


# Order


def _ordered(layers: list[list[Place]], before: Neighbours, after: Neighbours) -> list[list[Place]]:
    """The best order that sweeps to and fro have found."""
    best, least = layers, _crossings(layers, after)
    for sweep in range(SWEEPS):
        if least == 0:
            break
        layers = _swept(layers, before) if sweep % 2 == 0 else _swept(layers[::-1], after)[::-1]
        crossings = _crossings(layers, after)
        if crossings < least:
            best, least = layers, crossings
    return best


def _swept(layers: Sequence[Sequence[Place]], fixed: Neighbours) -> list[list[Place]]:
    """Each layer by the mean position of its neighbours in the layer that was done before it."""
    done: list[list[Place]] = []
    positions: dict[Place, float] = {}
    for layer in layers:
        wanted = {
            place: _mean([positions[other] for other in fixed.get(place, ())], index)
            for index, place in enumerate(layer)
        }
        done.append(sorted(layer, key=wanted.__getitem__))
        positions = {place: index for index, place in enumerate(done[-1])}
    return done


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(layers: Sequence[Sequence[Place]], after: Neighbours) -> int:
    """How many pairs of edges between neighbouring layers cross."""
    total = 0
    for left, right in pairwise(layers):
        positions = {place: index for index, place in enumerate(right)}
        seen: list[int] = []
        for place in left:
            ends = sorted(positions[end] for end in after.get(place, ()))
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


# Coordinates


def _coordinates(
    layers: Sequence[Sequence[Place]], heights: Mapping[Place, float], before: Neighbours, after: Neighbours
) -> dict[Place, float]:
    """The middle of each place, across the layers."""
    middles: dict[Place, float] = {}
    for layer in layers:
        middles |= _settled(layer, heights, lambda place: 0.0)
    for fixed, sweep in ((before, layers), (after, layers[::-1]), (before, layers)):
        for layer in sweep:
            near = {place: [middles[other] for other in fixed.get(place, ())] for place in layer}
            wanted = {place: _mean(values, middles[place]) for place, values in near.items()}
            middles |= _settled(layer, heights, wanted.__getitem__)
    return middles


def _settled(
    layer: Sequence[Place], heights: Mapping[Place, float], wanted: Callable[[Place], float]
) -> Iterator[tuple[Place, float]]:
    """The places of a layer in their order without overlap, with the least sum of squared distances to where they are
    wanted: isotonic regression by pooling adjacent violators."""
    offsets = _offsets(layer, heights)
    blocks: list[tuple[float, int]] = []  # the mean of a block, and of how many it is
    for place, offset in zip(layer, offsets, strict=True):
        mean, count = wanted(place) - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, others = blocks.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        blocks.append((mean, count))
    shifts = [mean for mean, count in blocks for _ in range(count)]
    return zip(layer, map(sum, zip(offsets, shifts, strict=True)), strict=True)


def _offsets(layer: Sequence[Place], heights: Mapping[Place, float]) -> list[float]:
    """Where the places of a layer are when they are packed."""
    offsets = [0.0]
    for one, other in pairwise(layer):
        offsets.append(offsets[-1] + (heights[one] + heights[other]) / 2 + GAP)
    return offsets[: len(layer)]


def _drawn(
    plan: Plan, layers: Sequence[Sequence[Place]], middles: Mapping[Place, float], sizes: Mapping[str, Size],
    chains: Mapping[Port, Sequence[Place]], simple: bool,
) -> Layout:  # fmt: skip
    """The layout in the coordinates of a picture."""
    columns = _columns(layers, sizes)
    half = {place: sizes[place][1] / 2 if isinstance(place, str) else 0.0 for place in middles}
    top = min((middles[place] - half[place] for place in middles), default=0.0)
    bottom = max((middles[place] + half[place] for place in middles), default=0.0)
    middles = {place: middle - top for place, middle in middles.items()}
    corners = {id: (columns[id][0], middles[id] - half[id]) for id in sizes}
    routes = {}
    for (id, port), chain in chains.items():
        source = plan.by_id[id].inputs[port].node
        bends = ((side, middles[bend]) for bend in chain[1:-1] for side in columns[bend])
        end = entry(corners[id], sizes[id], port, len(plan.by_id[id].inputs))
        routes[id, port] = ((corners[source][0] + sizes[source][0], middles[source]), *bends, end)
    width = max((right for _, right in columns.values()), default=0.0)
    return Layout(corners, routes, (width, bottom - top), simple)


def entry(corner: Point, size: Size, port: int, ports: int) -> Point:
    """Where the edge to a port ends: each on its own height at the node's left side."""
    return corner[0], corner[1] + size[1] * (port + 1) / (ports + 1)


def _columns(layers: Sequence[Sequence[Place]], sizes: Mapping[str, Size]) -> dict[Place, tuple[float, float]]:
    """The left and right side of each place's layer."""
    columns: dict[Place, tuple[float, float]] = {}
    right = -AISLE
    for layer in layers:
        left = right + AISLE
        right = left + max((sizes[place][0] for place in layer if isinstance(place, str)), default=0.0)
        columns |= dict.fromkeys(layer, (left, right))
    return columns
