"""The Planned Production System (PPS): a plan of operators in a directed graph.

Nodes are listed inputs first, except along feedback edges. docs/pps.md is the specification, and
`squall.plan.validation` has the rules that every plan obeys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from squall import plugins
from squall.model import Occurrences, Source
from squall.model.graphs import components
from squall.plan.operators import (
    AntiJoin,
    DerivedStream,
    Operator,
    Scan,
    Sink,
    Temporal,
    Update,
    is_time_dependent,
    windows_of,
)

if TYPE_CHECKING:
    import networkx

    from squall.plan.cardinality import Statistics


@dataclass(frozen=True)
class Input:
    """An edge of a plan, seen from its consumer.

    Attributes:
        node: The id of the producer.
        columns: The partitioning columns of the producer's rows: rows that agree on them must meet in one task of the
            consumer. None: rows may go to any task. ``()``: all rows meet in a single partition.
        feedback: Whether the edge brings derived facts back to be read again.
    """

    node: str
    columns: tuple[int, ...] | None = None
    feedback: bool = False


@dataclass(frozen=True)
class Node:
    """An operator with its id and its ordered inputs."""

    id: str
    op: Operator
    inputs: tuple[Input, ...] = ()


class Planning(NamedTuple):
    """How a program was planned.

    Attributes:
        statistics: The statistics of the data that the plan is for, or None if there were none.
        planner: The name of the planner; ``""`` if it is not known.
        replaceable: Whether a run may replace the plan.
    """

    statistics: Statistics | None
    planner: str = ""
    replaceable: bool = False

    def __str__(self) -> str:
        replaceable = ", replaceable," if self.replaceable else ""
        statistics = "out statistics" if self.statistics is None else f" the statistics {self.statistics.digest}"
        return f"`{self.planner}`{replaceable} with{statistics}"


_NOT_PICKLED = ("graph", "statistics", "plan_again", "axioms")
MAX_CREATED_TERMS = 1_000_000
"""The default of `Plan.max_terms`."""


@dataclass(frozen=True)
class Plan:
    """The plan of a program, as data. Equal plans do the same.

    Attributes:
        nodes: The nodes, inputs first.
        planner: The name of the planner.
        statistics: The statistics that the plan is for, if there were any. Workers do not get them.
        max_terms: How many terms a recursion may create of terms that it created (`squall.contracts.Options`).
        replaceable: Whether a run may replace it by a plan for other statistics (`squall.plan`).
        plan_again: Returns the plan of the same program that is planned in another way. None: it is not known. Workers
            do not get it.
        axioms: The axioms of the ontologies among the programs, whose texts are in functional-style syntax. Workers do
            not get them.
        unused_gates: The gates that are left out (`squall.plan.gates.without_gates`).
    """

    nodes: tuple[Node, ...]
    planner: str = field(default="", compare=False)
    statistics: Statistics | None = field(default=None, compare=False, repr=False)
    max_terms: int = field(default=MAX_CREATED_TERMS, compare=False)
    replaceable: bool = field(default=False, compare=False)
    plan_again: Callable[[Planning], Plan] | None = field(default=None, compare=False, repr=False)
    axioms: tuple[object, ...] = field(default=(), compare=False, repr=False)
    unused_gates: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """The nodes by id."""
        return {node.id: node for node in self.nodes}

    @property
    def planning(self) -> Planning:
        """How the program was planned."""
        return Planning(self.statistics, self.planner, self.replaceable)

    def _repr_html_(self) -> str:
        """Returns a picture and the text of the plan, for notebooks."""
        return str(plugins.load(plugins.HTML, "plan")(self))

    def __getstate__(self) -> dict[str, object]:
        """Returns what is pickled: not the statistics, the program, its axioms, and the graph, for which workers load
        networkx."""
        return {name: value for name, value in vars(self).items() if name not in _NOT_PICKLED}

    @cached_property
    def graph(self) -> networkx.DiGraph:
        """The plan as a frozen networkx digraph: node attributes ``op`` and ``inputs``, edge attributes ``columns`` and
        ``feedback``.
        """
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
        """For each node, the nodes that consume its rows, each with the number of its input (port)."""
        targets_by_id: dict[str, list[tuple[str, int]]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for port, edge in enumerate(node.inputs):
                targets_by_id[edge.node].append((node.id, port))
        return {id: tuple(targets) for id, targets in targets_by_id.items()}

    @cached_property
    def widths(self) -> dict[str, int]:
        """The number of columns of each node's rows."""
        widths: dict[str, int] = {}
        for node in self.nodes:
            widths[node.id] = len(node.op.copied([widths[edge.node] for edge in node.inputs if not edge.feedback]))
        return widths

    @cached_property
    def sinks(self) -> tuple[tuple[Node, Sink], ...]:
        """The `Sink` nodes, with their operators."""
        return tuple((node, node.op) for node in self.nodes if isinstance(node.op, Sink))

    @property
    def sink(self) -> tuple[Node, Sink]:
        """The `Sink` node of a plan that has one, and its operator."""
        ((node, op),) = self.sinks
        return node, op

    @cached_property
    def unbound(self) -> dict[str, frozenset[int]]:
        """The columns of each node's rows that may be unbound."""
        unbound: dict[str, frozenset[int]] = {}
        for node in self.nodes:
            inputs = [edge.node for edge in node.inputs if not edge.feedback]
            widths = [self.widths[id] for id in inputs]
            starts = [node.op.first_column(port, widths) for port in range(len(inputs))]
            columns = {start + column for start, id in zip(starts, inputs, strict=True) for column in unbound[id]}
            copied = (place for place, column in enumerate(node.op.copied(widths)) if column in columns)
            unbound[node.id] = frozenset((*copied, *node.op.unbinds(widths)))
        return unbound

    @cached_property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """The strongly connected components in topological order; the nodes of each in the order of the plan."""
        position = {node.id: index for index, node in enumerate(self.nodes)}
        parts = components({id: [node for node, _ in targets] for id, targets in self.consumers.items()})
        members = {part[0]: tuple(part) for part in (sorted(part, key=position.__getitem__) for part in parts)}
        return tuple(members[first] for first in self._topological(members, position))

    def _topological(self, members: dict[str, tuple[str, ...]], position: dict[str, int]) -> Iterator[str]:
        """Yields components, by their first nodes, in topological order. Of those that are ready, the one listed first
        comes first.
        """
        part_of = {id: first for first, part in members.items() for id in part}
        after: dict[str, list[str]] = {first: [] for first in members}
        for id, targets in self.consumers.items():
            after[part_of[id]] += [part_of[target] for target, _ in targets if part_of[target] != part_of[id]]
        missing = Counter(target for targets in after.values() for target in targets)
        ready = [position[first] for first in members if not missing[first]]
        heapify(ready)
        while ready:
            part = self.nodes[heappop(ready)].id
            yield part
            for target in after[part]:
                missing[target] -= 1
                if not missing[target]:
                    heappush(ready, position[target])

    @cached_property
    def deletes(self) -> bool:
        """Whether updates, or the timers that they set, may delete facts."""
        return self.sets_timers or any(isinstance(node.op, Update) and node.op.deletes for node in self.nodes)

    @cached_property
    def sets_timers(self) -> bool:
        """Whether updates may set timers (`squall.functions.timers`)."""
        return any(isinstance(node.op, Update) and node.op.sets_timers for node in self.nodes)

    @cached_property
    def has_expiring_windows(self) -> bool:
        """Whether a window of the plan, or an operator on validity, lets rows expire."""
        if any(isinstance(node.op, Temporal) for node in self.nodes):
            return True
        windows = (window for node in self.nodes for window in windows_of(node.op))
        return any(window.expires for window in windows)

    @cached_property
    def retractable(self) -> frozenset[str]:
        """The nodes whose rows may be retracted before they expire.

        These are nodes that retract rows themselves (`AntiJoin`, `LeftJoin`, `Group`, `Slice`, `Update`, and
        time-dependent ones), `Scan` nodes of sources whose facts may be retracted, and all nodes behind these. What a
        `DerivedStream` has output is retracted by updates alone; otherwise it is read as its window says. Nothing
        retracts an occurrence of a pattern over time.
        """
        updates = any(isinstance(node.op, Update) for node in self.nodes)
        retractable = {node.id for node in self.nodes if _may_retract(node.op, updates, self.deletes)}
        pending = list(retractable)
        while pending:
            consumers = {id for id, _ in self.consumers[pending.pop()]} - retractable
            consumers = {id for id in consumers if not isinstance(self.by_id[id].op, DerivedStream)}
            retractable |= consumers
            pending += consumers
        return frozenset(retractable)

    @cached_property
    def is_time_dependent(self) -> bool:
        """Whether an operator's output depends on the instant at which it is evaluated."""
        return any(is_time_dependent(node.op) for node in self.nodes)

    @cached_property
    def multiplicity_sensitive(self) -> frozenset[str]:
        """The nodes for whose rows some operator behind them depends on the multiplicity.

        Duplicates of the rows of other nodes may be added or removed.
        """
        sensitive: set[str] = set()
        for node in reversed(self.nodes):
            for port, edge in enumerate(node.inputs):
                if _depends_on_multiplicity(node, port, node.id in sensitive):
                    sensitive.add(edge.node)
        return frozenset(sensitive)


def _depends_on_multiplicity(node: Node, port: int, is_sensitive: bool) -> bool:
    """Returns whether a node, or one behind it, depends on the multiplicity of an input's rows."""
    counts = node.op.counts_rows
    return (is_sensitive if counts is None else counts) and not (isinstance(node.op, AntiJoin) and port == 1)


def _may_retract(op: Operator, updates: bool, deletes: bool) -> bool:
    if isinstance(op, Scan | DerivedStream) and isinstance(op.source, Occurrences):
        return op.source.window.is_retractable  # atoms of the own streams of the program, which no update names
    if isinstance(op, Scan):
        return updates or is_retractable_source(op.source)
    if isinstance(op, DerivedStream):
        return deletes or op.source.window.is_retractable
    return op.retracts or is_time_dependent(op)


def is_retractable_source(source: Source) -> bool:
    """Returns whether the validity of a fact may become shorter after the fact has been read."""
    return source.removals or any(window.is_retractable for window in source.all_windows)
