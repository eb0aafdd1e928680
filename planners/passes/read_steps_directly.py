"""The pass `read_steps_directly`: a step of a pattern over time that looks at one fact at a time reads its stream.

A step is a derived stream of its solutions, of which each has the time at which it occurs (decision 96). Where each
solution comes from one fact, it occurs when that fact arrives, and holds as long as the window of the step says. So the
rows of the step are those of its pattern over the stream itself, through that window, with the time since which each
holds. What always holds occurs at each evaluation instant, and still goes through the derived stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from squall.functions.sparql.terms import ARRIVED
from squall.model import CLOSE, Graph, Graphs, Occurrences, Source
from squall.model.sources import EntailedDataset
from squall.model.windows import StaticWindow, Window
from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import (
    ConstantFilter,
    Construct,
    DerivedStream,
    Distinct,
    Extend,
    Filter,
    Invoke,
    Match,
    Operator,
    Project,
    Scan,
    Sink,
    Union,
    Update,
    is_stateful,
)
from squall.planners.passes.rewrite import Rewrite
from squall.rdf import XSD, literal


def read_steps_directly(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan in which such steps read their streams."""
    if not any(isinstance(node.op, DerivedStream) and _is_step(node.op) for node in plan.nodes):
        return plan
    if any(isinstance(node.op, Update) for node in plan.nodes):
        return plan  # what an update inserts has no end, and no arrival
    return _Steps(plan).result()


class _Steps(Rewrite):
    """The rewrite."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.evaluating = _evaluating_streams(plan)
        """The derived streams whose events are evaluation instants."""
        self.windows = {node.id: window for node in plan.nodes if (window := self._window(node)) is not None}
        """The window through which a stream is read in place of each derived stream."""
        for node in plan.nodes:
            if node.id in self.windows:
                self.put(node, node.op, self._copied(self._input(node), lambda window: StaticWindow()))
            else:
                self.keep(node)
                self._unite(node)

    def _input(self, node: Node) -> Node:
        """Returns the only input of a node."""
        (edge,) = node.inputs
        return self.plan.by_id[edge.node]

    def _construct(self, stream: Node) -> Node:
        """Returns the node of the facts of a derived stream."""
        facts = self._input(stream)
        return self._input(facts) if isinstance(facts.op, Distinct) else facts

    def _window(self, node: Node) -> Window | None:
        """Returns the window of the streams of a step that looks at one fact at a time; None for another node."""
        op = node.op
        if not isinstance(op, DerivedStream) or not _is_step(op) or op.source.iri in self.evaluating:
            return None
        window = op.source.window
        if window.offset is None or not self._has_plain_rows(node):
            return None
        delays = self._delays(self._input(self._construct(node)))
        if delays is None or len(delays) != 1:
            return None
        (delay,) = delays
        if delay and not window.expires:
            return None
        return window.delayed_by(delay) if delay else window

    def _has_plain_rows(self, stream: Node) -> bool:
        """Returns whether a derived stream has a fact for each row of one rule, of which matches take all cells."""
        if len(stream.inputs) != 1 or len(self._input(stream).inputs) != 1:
            return False
        construct = self._construct(stream)
        readers = [self.plan.by_id[id].op for id, _ in self.plan.consumers[stream.id]]
        return (
            isinstance(construct.op, Construct)
            and self.plan.unbound[construct.inputs[0].node].isdisjoint(construct.op.reads(()))
            and all(isinstance(reader, Match) and _takes_all_cells(reader) for reader in readers)
        )

    def _delays(self, node: Node) -> frozenset[int] | None:
        """Returns the delays (integer ms) of the windows through which a node reads what arrives, fact by fact; None if
        it reads otherwise."""
        if isinstance(node.op, Scan):
            return _scanned_delays(node.op)
        if not _looks_at_one_row(node.op) or any(edge.feedback for edge in node.inputs):
            return None
        delays = [self._delays(self.plan.by_id[edge.node]) for edge in node.inputs]
        return None if None in delays else frozenset[int]().union(*filter(None, delays))

    def _copied(self, node: Node, window_of: Callable[[Window], Window]) -> str:
        """Adds a node with all that it needs, over streams that are read through other windows."""
        if isinstance(node.op, Scan):
            return self.add(replace(node.op, source=_with_windows(node.op.source, window_of)))
        return self.add(node.op, *(self._copied(self.plan.by_id[edge.node], window_of) for edge in node.inputs))

    def _unite(self, match: Node) -> None:
        """Adds to the rows of a match those that it reads directly."""
        streams = [self.plan.by_id[edge.node] for edge in match.inputs if edge.node in self.windows]
        if not streams:
            return
        rows = self.add(Union(), self.new_ids[match.id], *(self._rows(match.op, stream) for stream in streams))
        if match.id in self.plan.multiplicity_sensitive:
            rows = self.add(Distinct(self.plan.widths[match.id]), rows)
        self.new_ids[match.id] = rows

    def _rows(self, match: Operator, stream: Node) -> str:
        """Adds the rows that a match reads of what arrives, instead of from a derived stream."""
        assert isinstance(match, Match)
        assert isinstance(stream.op, DerivedStream)
        construct, window = self._construct(stream), self.windows[stream.id]
        assert isinstance(construct.op, Construct)
        body = self._input(construct)
        delay = literal(str(stream.op.source.window.offset), XSD + "integer")
        node, width = self._copied(body, lambda _: window), self.plan.widths[body.id]
        node = self.add(Extend(Invoke(ARRIVED.iri, (delay,))), node)
        cells: list[int] = [width]
        for cell in construct.op.template[1:]:
            if not isinstance(cell, int):
                node, width = self.add(Extend(cell), node), width + 1
            cells.append(cell if isinstance(cell, int) else width)
        columns = [0] * len(cells)
        for column, cell in zip(match.cells[1:], cells, strict=True):
            assert isinstance(column, int)
            columns[column] = cell
        return self.add(Project(tuple(columns)), node)


def _evaluating_streams(plan: Plan) -> frozenset[str]:
    """Returns the derived streams at whose events snapshots are output."""
    ops = [node.op for node in plan.nodes]
    snapshots = [op for op in ops if isinstance(op, DerivedStream | Sink) and op.output == "rstream"]
    return frozenset(source.iri for op in snapshots for source in op.sources if isinstance(source, Occurrences))


def _is_step(op: DerivedStream) -> bool:
    """Returns whether a derived stream has the solutions of each instant at which something arrives."""
    return isinstance(op.source, Occurrences) and op.output == "rstream" and op.report == CLOSE


def _takes_all_cells(op: Match) -> bool:
    """Returns whether a match outputs each cell of a fact but the first, whatever it is."""
    return sorted(str(cell) for cell in op.cells[1:]) == sorted(map(str, range(len(op.cells) - 1)))


def _looks_at_one_row(op: Operator) -> bool:
    return isinstance(op, Match | Filter | ConstantFilter | Extend | Project | Union) and not is_stateful(op)


def _scanned_delays(op: Scan) -> frozenset[int] | None:
    """Returns the delays (integer ms) of the windows of a scan; None if it is not known when its facts arrive."""
    source = op.source
    windows = [window for window in source.all_windows if not window.is_empty]
    is_known = type(source) in (Source, EntailedDataset, Graph, Graphs) and source.cliques is None
    if source.removals or not is_known or not all(window.is_momentary for window in windows):
        return None
    return frozenset(window.offset or 0 for window in windows)


def _with_windows(source: Source, window_of: Callable[[Window], Window]) -> Source:
    """Returns a source whose windows are others, except for the empty ones."""

    def other(window: Window) -> Window:
        return window if window.is_empty else window_of(window)

    windows = tuple((stream, other(window)) for stream, window in source.windows)
    return replace(source, window=other(source.window), windows=windows)
