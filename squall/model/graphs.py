"""Graph algorithms: strongly connected components and shortest paths."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def shortest_path(edges: Iterable[tuple[Hashable, Hashable]], start: Hashable, end: Hashable) -> list[Hashable]:
    """Returns a shortest path from `start` to `end`."""
    import networkx  # it takes longer to load than all of squall

    path: list[Hashable] = networkx.shortest_path(networkx.DiGraph(edges), start, end)
    return path


def components(successors_of: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """Returns the strongly connected components of a graph, given by the successors of each node.

    This is the algorithm of Tarjan 1972, "Depth-first search and linear graph algorithms", without recursion, since
    paths may be long. networkx has it as well, but loading networkx takes longer than loading all of squall, and every
    plan needs its components.
    """
    parts: list[list[N]] = []
    low: dict[N, int] = {}
    """For each visited node the least position in `stack` that it reaches; a larger number when it is done."""
    stack: list[N] = []
    for root in successors_of:
        if root in low:
            continue
        low[root] = len(stack)
        stack.append(root)
        path = [(root, low[root], iter(successors_of[root]))]
        while path:
            node, position, successors = path[-1]
            for successor in successors:
                if successor not in low:
                    low[successor] = len(stack)
                    path.append((successor, len(stack), iter(successors_of[successor])))
                    stack.append(successor)
                    break
                low[node] = min(low[node], low[successor])
            else:
                path.pop()
                if low[node] == position:
                    parts.append(stack[position:])
                    del stack[position:]
                    low.update(dict.fromkeys(parts[-1], len(successors_of)))
                elif path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
    return parts
