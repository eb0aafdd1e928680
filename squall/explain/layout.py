"""The layout of a plan's picture: nodes and edges in layers from left to right, with few crossings.

The four steps are those of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures" (IEEE Trans. SMC 11(2), 1981). Layers are by longest path. A long edge gets a bend in each layer. The order
is by barycentres. The coordinates have the least sum of squared distances to the neighbours.
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
LayerPoint = str | Bend

NODE_GAP = 14.0
"""The gap between neighbours in a layer, in pixels."""
LAYER_GAP = 130.0
"""The gap between layers, in pixels, for edges and their labels."""
MAX_SWEEPS = 6
MAX_POINTS = 30_000
"""With more nodes and bends than this the layout is simple: the order is by depth-first search, and edges are
straight.
"""


@dataclass(frozen=True)
class Layout:
    """A layout of a plan.

    Attributes:
        corners: The left top corners of the nodes.
        routes: The points that each edge passes.
        size: The size of the whole.
        simple: Whether the plan was too large to search for an order with few crossings.
    """

    corners: Mapping[str, Point]
    routes: Mapping[Port, tuple[Point, ...]]
    size: Size
    simple: bool


def lay_out(plan: Plan, sizes: Mapping[str, Size], max_points: int = MAX_POINTS) -> Layout:
    """Lays out a plan whose nodes have the given sizes."""
    depths = _depths(plan)
    spans = sum(depths[node.id] - depths[before] for node in plan.nodes for _, before in _forward(node))
    simple = len(plan.nodes) + spans > max_points
    chains = {port: _chain(port, source, depths, simple) for port, source in _edges(plan)}
    before, after = _neighbours(chains.values())
    layers = _layers(plan, before, depths)
    if not simple:
        layers = _ordered(layers, before, after)
    heights = {point: sizes[point][1] if isinstance(point, str) else 0.0 for layer in layers for point in layer}
    middles = _coordinates(layers, heights, before, after)
    return _drawn(plan, layers, middles, sizes, chains, simple)


# Layers


def _forward(node: Node) -> Iterator[tuple[int, str]]:
    return ((port, edge.node) for port, edge in enumerate(node.inputs) if not edge.feedback)


def _edges(plan: Plan) -> Iterator[tuple[Port, str]]:
    return (((node.id, port), source) for node in plan.nodes for port, source in _forward(node))


def _depths(plan: Plan) -> dict[str, int]:
    """Returns the layer of each node: the longest path to it. A node without inputs is just before its first
    consumer.
    """
    depths: dict[str, int] = {}
    for node in plan.nodes:
        depths[node.id] = 1 + max((depths[source] for _, source in _forward(node)), default=-1)
    nearest: dict[str, int] = {}
    for (consumer, _), source in _edges(plan):
        nearest[source] = min(nearest.get(source, depths[consumer]), depths[consumer])
    free = (node.id for node in plan.nodes if node.id in nearest and not any(_forward(node)))
    return depths | {id: nearest[id] - 1 for id in free}


def _chain(port: Port, source: str, depths: Mapping[str, int], simple: bool) -> list[LayerPoint]:
    """Returns the nodes and bends that an edge connects."""
    target = port[0]
    layers = range(0) if simple else range(depths[source] + 1, depths[target])
    return [source, *((*port, layer) for layer in layers), target]


Neighbours = Mapping[LayerPoint, Sequence[LayerPoint]]


def _neighbours(chains: Iterable[Sequence[LayerPoint]]) -> tuple[Neighbours, Neighbours]:
    before: dict[LayerPoint, list[LayerPoint]] = {}
    after: dict[LayerPoint, list[LayerPoint]] = {}
    for chain in chains:
        for left, right in pairwise(chain):
            after.setdefault(left, []).append(right)
            before.setdefault(right, []).append(left)
    return before, after


def _layers(plan: Plan, before: Neighbours, depths: Mapping[str, int]) -> list[list[LayerPoint]]:
    """Returns the points by layer, in the order of a search from the end of the plan: then a tree has no crossings."""
    layers: list[list[LayerPoint]] = [[] for _ in range(1 + max(depths.values(), default=0))]
    visited: set[LayerPoint] = set()
    pending: list[LayerPoint] = [node.id for node in plan.nodes]
    while pending:
        point = pending.pop()
        if point not in visited:
            visited.add(point)
            layers[depths[point] if isinstance(point, str) else point[2]].append(point)
            pending += reversed(before.get(point, ()))
    return layers


# Order


def _ordered(layers: list[list[LayerPoint]], before: Neighbours, after: Neighbours) -> list[list[LayerPoint]]:
    """Returns the best order that sweeps in both directions find."""
    best, fewest = layers, _crossings(layers, after)
    for sweep in range(MAX_SWEEPS):
        if fewest == 0:
            break
        layers = _swept(layers, before) if sweep % 2 == 0 else _swept(layers[::-1], after)[::-1]
        crossings = _crossings(layers, after)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _swept(layers: Sequence[Sequence[LayerPoint]], fixed: Neighbours) -> list[list[LayerPoint]]:
    """Orders each layer by the mean position of its neighbours in the layer before it."""
    ordered: list[list[LayerPoint]] = []
    positions: dict[LayerPoint, float] = {}
    for layer in layers:
        desired = {
            point: _mean([positions[other] for other in fixed.get(point, ())], index)
            for index, point in enumerate(layer)
        }
        ordered.append(sorted(layer, key=desired.__getitem__))
        positions = {point: index for index, point in enumerate(ordered[-1])}
    return ordered


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _crossings(layers: Sequence[Sequence[LayerPoint]], after: Neighbours) -> int:
    """Counts the pairs of edges between neighbouring layers that cross."""
    total = 0
    for left, right in pairwise(layers):
        positions = {point: index for index, point in enumerate(right)}
        earlier_ends: list[int] = []
        for point in left:
            ends = sorted(positions[end] for end in after.get(point, ()))
            total += sum(len(earlier_ends) - bisect_right(earlier_ends, end) for end in ends)
            for end in ends:
                insort(earlier_ends, end)
    return total


# Coordinates


def _coordinates(
    layers: Sequence[Sequence[LayerPoint]], heights: Mapping[LayerPoint, float], before: Neighbours, after: Neighbours
) -> dict[LayerPoint, float]:
    """Returns the middle of each point, across the layers."""
    middles: dict[LayerPoint, float] = {}
    for layer in layers:
        middles |= _settled(layer, heights, lambda point: 0.0)
    for fixed, sweep in ((before, layers), (after, layers[::-1]), (before, layers)):
        for layer in sweep:
            neighbour_middles = {point: [middles[other] for other in fixed.get(point, ())] for point in layer}
            desired = {point: _mean(values, middles[point]) for point, values in neighbour_middles.items()}
            middles |= _settled(layer, heights, desired.__getitem__)
    return middles


def _settled(
    layer: Sequence[LayerPoint], heights: Mapping[LayerPoint, float], desired: Callable[[LayerPoint], float]
) -> Iterator[tuple[LayerPoint, float]]:
    """Places the points of a layer in their order without overlap, as near as possible to the wanted positions.

    The sum of squared distances is minimal: this is isotonic regression by pooling adjacent violators.
    """
    offsets = _offsets(layer, heights)
    blocks: list[tuple[float, int]] = []  # the mean of a block, and of how many it is
    for point, offset in zip(layer, offsets, strict=True):
        mean, count = desired(point) - offset, 1
        while blocks and blocks[-1][0] > mean:
            other_mean, other_count = blocks.pop()
            mean, count = (mean * count + other_mean * other_count) / (count + other_count), count + other_count
        blocks.append((mean, count))
    shifts = [mean for mean, count in blocks for _ in range(count)]
    return zip(layer, map(sum, zip(offsets, shifts, strict=True)), strict=True)


def _offsets(layer: Sequence[LayerPoint], heights: Mapping[LayerPoint, float]) -> list[float]:
    """Returns the offsets of the points of a layer when they are packed."""
    offsets = [0.0]
    for upper, lower in pairwise(layer):
        offsets.append(offsets[-1] + (heights[upper] + heights[lower]) / 2 + NODE_GAP)
    return offsets[: len(layer)]


def _drawn(
    plan: Plan, layers: Sequence[Sequence[LayerPoint]], middles: Mapping[LayerPoint, float], sizes: Mapping[str, Size],
    chains: Mapping[Port, Sequence[LayerPoint]], simple: bool,
) -> Layout:  # fmt: skip
    """Returns the layout in the coordinates of a picture."""
    columns = _columns(layers, sizes)
    half = {point: sizes[point][1] / 2 if isinstance(point, str) else 0.0 for point in middles}
    top = min((middles[point] - half[point] for point in middles), default=0.0)
    bottom = max((middles[point] + half[point] for point in middles), default=0.0)
    middles = {point: middle - top for point, middle in middles.items()}
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
    """Returns where the edge to a port ends: each at its own height on the node's left side."""
    return corner[0], corner[1] + size[1] * (port + 1) / (ports + 1)


def _columns(
    layers: Sequence[Sequence[LayerPoint]], sizes: Mapping[str, Size]
) -> dict[LayerPoint, tuple[float, float]]:
    """Returns the left and right side of each point's layer."""
    columns: dict[LayerPoint, tuple[float, float]] = {}
    right = -LAYER_GAP
    for layer in layers:
        left = right + LAYER_GAP
        right = left + max((sizes[point][0] for point in layer if isinstance(point, str)), default=0.0)
        columns |= dict.fromkeys(layer, (left, right))
    return columns
