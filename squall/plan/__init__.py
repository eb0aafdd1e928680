"""The Planned Production System (PPS): operators in a digraph.

Nodes are listed inputs first (feedback apart). See docs/pps.md for the specification, `squall.plan.validation` for the rules
that every plan obeys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from squall.model import Source
from squall.model.stratification import components
from squall.model.windows import CountWindow
from squall.plan.operators import (
    AntiJoin,
    ConstantFilter,
    Construct,
    DerivedStream,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Match,
    Operator,
    Project,
    Scan,
    Select,
    Sink,
    Slice,
    TableFunction,
    TransitiveClosure,
    Union,
    Unit,
    Update,
    is_timed,
)

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Input:
    """An edge. ``columns``: the grouping columns of the producer's rows; rows that agree on them must meet in one
    instance of the consumer. None: they may go anywhere. ``()``: all meet in one. ``feedback``: facts read again."""

    node: str
    columns: tuple[int, ...] | None = None
    feedback: bool = False


@dataclass(frozen=True)
class Node:
    """An operator with its identity and its ordered inputs."""

    id: str
    op: Operator
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The plan of a program, as data. Equal plans do the same."""

    nodes: tuple[Node, ...]
    planner: str = field(default="", compare=False)

    @cached_property
    def by_id(self) -> dict[str, Node]:
        return {node.id: node for node in self.nodes}

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: all that is known but the graph, so that workers need not load what it is made of."""
        return {name: value for name, value in vars(self).items() if name != "graph"}

    @cached_property
    def graph(self) -> networkx.DiGraph:
        """The digraph: node attributes ``op`` and ``inputs``, edge attributes ``columns`` and ``feedback``. Frozen."""
        import networkx  # it takes longer to load than all of squall

        graph = networkx.DiGraph()
        for node in self.nodes:
            graph.add_node(node.id, op=node.op, inputs=node.inputs)
        for node in self.nodes:
            for edge in node.inputs:
                graph.add_edge(edge.node, node.id, columns=edge.columns, feedback=edge.feedback)
        return networkx.freeze(graph)

    @cached_property
    def consumers(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """For each node, the nodes it feeds, with the number of the input (port) it feeds there."""
        found: dict[str, list[tuple[str, int]]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for port, edge in enumerate(node.inputs):
                found[edge.node].append((node.id, port))
        return {id: tuple(targets) for id, targets in found.items()}

    @cached_property
    def widths(self) -> dict[str, int]:
        """The number of columns of each node's rows."""
        found: dict[str, int] = {}
        for node in self.nodes:
            found[node.id] = _width(node, found)
        return found

    @cached_property
    def deliveries(self) -> tuple[tuple[Node, Sink], ...]:
        """The operation nodes, with their operators."""
        return tuple((node, node.op) for node in self.nodes if isinstance(node.op, Sink))

    @property
    def delivery(self) -> tuple[Node, Sink]:
        """The operation node of a plan that has one, and its operator."""
        ((node, op),) = self.deliveries
        return node, op

    @cached_property
    def unbound(self) -> dict[str, frozenset[int]]:
        """The columns of each node's rows that may be unbound."""
        found: dict[str, frozenset[int]] = {}
        for node in self.nodes:
            found[node.id] = _unbound(node, self, found)
        return found

    @cached_property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """The strongly connected components in topological order; the nodes of each in the order of the plan."""
        position = {node.id: index for index, node in enumerate(self.nodes)}
        parts = components({id: [node for node, _ in fed] for id, fed in self.consumers.items()})
        members = {part[0]: tuple(part) for part in (sorted(part, key=position.__getitem__) for part in parts)}
        return tuple(members[first] for first in self._topological(members, position))

    def _topological(self, members: dict[str, tuple[str, ...]], position: dict[str, int]) -> Iterator[str]:
        """Components, by their first nodes, in topological order; of those that may be next, the one listed first."""
        part_of = {id: first for first, part in members.items() for id in part}
        after: dict[str, list[str]] = {first: [] for first in members}
        for id, found in self.consumers.items():
            after[part_of[id]] += [part_of[fed] for fed, _ in found if part_of[fed] != part_of[id]]
        missing = Counter(fed for found in after.values() for fed in found)
        ready = [position[first] for first in members if not missing[first]]
        heapify(ready)
        while ready:
            part = self.nodes[heappop(ready)].id
            yield part
            for fed in after[part]:
                missing[fed] -= 1
                if not missing[fed]:
                    heappush(ready, position[fed])

    @cached_property
    def deletes(self) -> bool:
        """Whether updates may delete facts."""
        return any(isinstance(node.op, Update) and node.op.deletes for node in self.nodes)

    @cached_property
    def retractable(self) -> frozenset[str]:
        """The nodes whose rows may be withdrawn before they end: those that withdraw rows by themselves (`AntiJoin`,
        `LeftJoin`, `Group`, `Slice`, `Update`, what is timed), `Scan` nodes of what may be taken back, and what lies
        behind. What a `DerivedStream` has told is taken back by updates alone; else it is read as its window says."""
        updates = any(isinstance(node.op, Update) for node in self.nodes)
        found = {node.id for node in self.nodes if _withdraws(node.op, updates, self.deletes)}
        waiting = list(found)
        while waiting:
            behind = {id for id, _ in self.consumers[waiting.pop()]} - found
            behind = {id for id in behind if not isinstance(self.by_id[id].op, DerivedStream)}
            found |= behind
            waiting += behind
        return frozenset(found)


def _unbound(node: Node, plan: Plan, found: dict[str, frozenset[int]]) -> frozenset[int]:
    below = [found[edge.node] for edge in node.inputs if not edge.feedback]
    left = plan.widths[node.inputs[0].node] if node.inputs else 0
    places: Iterable[int] = ()
    match node.op:
        case LeftJoin(keep=keep):
            places = (place for place, column in enumerate(keep) if column >= left or column in below[0])
        case Join(keep=keep):
            either = below[0] | {left + column for column in below[1]}
            places = (place for place, column in enumerate(keep) if column in either)
        case Project(columns=columns):
            places = (place for place, column in enumerate(columns) if column is None or column in below[0])
        case Union() | Distinct():
            places = frozenset().union(*below)
        case Group(keys=keys, aggregates=aggregates):
            places = (place for place, key in enumerate((*keys, *aggregates)) if key in below[0] or place >= len(keys))
        case TableFunction(results=results):
            places = below[0] | set(range(left, left + results))
        case Extend(keeps=True):
            places = below[0] | {left}
        case AntiJoin() | ConstantFilter() | Filter() | Extend() | Slice():
            places = below[0]
    return frozenset(places)


def _withdraws(op: Operator, updates: bool, deletes: bool) -> bool:
    if isinstance(op, Scan):
        return updates or is_shrinking(op.source)
    if isinstance(op, DerivedStream):
        return deletes or isinstance(op.source.window, CountWindow)
    return isinstance(op, AntiJoin | LeftJoin | Group | Slice | Update) or is_timed(op)


def is_shrinking(source: Source) -> bool:
    """Whether the end of a fact's validity may become earlier after it has been read."""
    return source.removals or any(isinstance(window, CountWindow) for window in source.all_windows)


def _width(node: Node, found: dict[str, int]) -> int:
    match node.op:
        case Match(cells=cells):
            return 1 + max((cell for cell in cells if isinstance(cell, int)), default=-1)
        case Join(keep=keep) | LeftJoin(keep=keep):
            return len(keep)
        case Project(columns=columns):
            return len(columns)
        case Construct(template=template):
            return len(template) + 1
        case Select(columns=columns):
            return len(columns) + 2
        case Group(keys=keys, aggregates=aggregates):
            return len(keys) + len(aggregates)
        case Unit():
            return 0
        case Extend():
            return found[node.inputs[0].node] + 1
        case TableFunction(results=results):
            return found[node.inputs[0].node] + results
        case TransitiveClosure():
            return 2
        case Scan() | DerivedStream() | Update():
            return 4
        case AntiJoin() | Union() | ConstantFilter() | Filter() | Distinct() | Slice() | Sink():
            return found[node.inputs[0].node] if node.inputs else 0
