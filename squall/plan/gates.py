"""Gates: which parts of a plan serve later steps of patterns over time alone, and may wait for the earlier ones.

A row of the right input of a `SequenceJoin`, or of what is between, is of use only if some left row that agrees with it
has ended before and still holds. What leads to that input alone (its *region*) may therefore be computed from fewer
rows: those that hold at an instant at which such a left row is open. That is exact where each operator of the region
makes its rows of single rows, or combinations of rows, that hold at the same instant, so that what a dropped row would
have made has no left row either; and where rows hold at the instant only at which they arrive, since others may be
needed by what opens later. Source: the dynamic plan of AIMRS for CT-SPARQL, in which a sub-query is evaluated only
while what comes before it has matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from squall.functions.sparql.terms import ARRIVED
from squall.model import CLOSE, Occurrences
from squall.model.windows import Window
from squall.plan import Input, Node, Plan
from squall.plan.operators import (
    AntiJoin,
    ConstantFilter,
    Construct,
    DerivedStream,
    Distinct,
    Extend,
    Filter,
    Gate,
    Invoke,
    Iteration,
    Join,
    LeftJoin,
    Match,
    Operator,
    Project,
    Scan,
    SequenceJoin,
    TableFunction,
    TransitiveClosure,
    Union,
    is_time_dependent,
    windows_of,
)

Keys = Mapping[int, int]
"""For columns of the openers, the columns of rows that have to be equal."""


@dataclass(frozen=True)
class GatedInput:
    """An input of a sequence join, and whether what leads to it may wait for the left rows.

    Attributes:
        join: The sequence join.
        port: The number of the input.
        opener: The node of the left rows.
        gates: For each edge (node, port) on which there may be a gate, the pairs of columns (row, opener) that agree.
            The gate of a `Match` stands behind it.
        why_not: Why there can be no gate; ``""`` if there can, or if there are gates already.
    """

    join: str
    port: int
    opener: str
    gates: Mapping[tuple[str, int], tuple[tuple[int, int], ...]]
    why_not: str = ""

    def __str__(self) -> str:
        state = f"no gate: {self.why_not}" if self.why_not else f"gates open with rows of {self.opener}"
        return f"{self.join}, input {self.port + 1}: {state}"


def gated_inputs(plan: Plan) -> Iterator[GatedInput]:
    """Yields the inputs of the sequence joins of a plan that may wait for left rows, with their gates or the reason why
    they have none."""
    regions = _Regions(plan)
    for node in plan.nodes:
        if isinstance(node.op, SequenceJoin):
            for port in range(1, len(node.inputs)):
                yield regions.gated_input(node, node.op, port)


def gates_of(plan: Plan) -> tuple[str, ...]:
    """Returns the gates of a plan."""
    return tuple(node.id for node in plan.nodes if isinstance(node.op, Gate))


def keyless_gates_of(plan: Plan) -> tuple[str, ...]:
    """Returns the gates of a plan without a key."""
    return tuple(node.id for node in plan.nodes if isinstance(node.op, Gate) and not node.op.on)


def without_gates(plan: Plan, unused: Callable[[Plan], Sequence[str]] = gates_of) -> Plan:
    """Returns the plan without its gates, which outputs the same, and knows which ones it had. So are the plans that a
    run may replace it by.

    Args:
        plan: The plan.
        unused: Returns the gates of a plan that are left out.
    """
    gates = tuple(unused(plan))
    if not gates:
        return plan
    rows = {id: plan.by_id[id].inputs[0].node for id in gates}
    if (plan_again := plan.plan_again) is not None:
        plan = replace(plan, plan_again=lambda planning: without_gates(plan_again(planning), unused))

    def edge(input: Input) -> Input:
        return replace(input, node=rows[input.node]) if input.node in rows else input

    nodes = (Node(node.id, node.op, tuple(map(edge, node.inputs))) for node in plan.nodes if node.id not in rows)
    return replace(plan, nodes=tuple(nodes), unused_gates=(*plan.unused_gates, *gates))


class _Regions:
    """The parts of a plan that lead to one input each."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def gated_input(self, join: Node, op: SequenceJoin, port: int) -> GatedInput:
        opener = join.inputs[0].node
        gates: dict[tuple[str, int], tuple[tuple[int, int], ...]] = {}
        why_not = self._obstacle(join, op, port)
        if not why_not:
            region = _Region(self.plan, join, op, port)
            why_not = region.obstacle
            if not why_not and not region.has_gates:
                entries = region.entries
                useful = [(node, place) for node, place in entries if self._may_wait(node.inputs[place].node)]
                is_delayed = any(self._is_delayed(id) for id in (*region.nodes, *_producers(entries)))
                gates = {} if is_delayed else {(node.id, place): region.pairs(node, place) for node, place in useful}
                why_not = "" if gates else _DELAYED if is_delayed else _DIRECT if region.reads_directly else _LASTING
        return GatedInput(join.id, port, opener, gates, why_not)

    def _obstacle(self, join: Node, op: SequenceJoin, port: int) -> str:
        """Returns why the left rows cannot open a gate; ``""`` if they can."""
        if isinstance(op, Iteration):
            return "each occurrence of an iteration may be the first one"
        windows = self.windows[join.inputs[0].node]
        if not windows or not all(window.expires for window in windows):
            return "no WITHIN bounds how long it would be open"
        if join.inputs[0].node in self.plan.retractable:
            return "what comes before it may be retracted"
        return ""

    def _is_delayed(self, id: str) -> bool:
        """Returns whether rows of a node are read later than they arrive."""
        return any(window.offset for window in self.windows[id])

    @cached_property
    def windows(self) -> dict[str, frozenset[Window]]:
        """For each node, the windows through which its rows are read, but for those of static data."""
        windows: dict[str, frozenset[Window]] = {node.id: frozenset() for node in self.plan.nodes}
        changed = True
        while changed:
            changed = False
            for node in self.plan.nodes:
                own = windows_of(node.op) or frozenset().union(*(windows[edge.node] for edge in node.inputs))
                read = frozenset(window for window in own if not window.is_empty and not window.is_static)
                changed = changed or read != windows[node.id]
                windows[node.id] = read
        return windows

    def _may_wait(self, id: str) -> bool:
        """Returns whether the rows of a node, but for static data, hold when they arrive, and only then."""
        windows = self.windows[id]
        return bool(windows) and all(window.is_momentary for window in windows) and id not in self.plan.retractable


def _producers(entries: Sequence[tuple[Node, int]]) -> Iterator[str]:
    return (node.inputs[port].node for node, port in entries)


class _Region:
    """What leads to one input of a sequence join, and to nothing else."""

    def __init__(self, plan: Plan, join: Node, op: SequenceJoin, port: int) -> None:
        self.plan = plan
        self.end = (join.id, port)
        self.first = join.inputs[port].node
        on = op.on if port == 1 else op.between[port - 2].on
        width = plan.widths[join.inputs[0].node]
        self.keys: Keys = {left: column for left, column in on if left < width}
        self.nodes = self._nodes()

    def _nodes(self) -> set[str]:
        nodes: set[str] = set()
        waiting = [self.first]
        while waiting:
            id = waiting.pop()
            node = self.plan.by_id[id]
            if id not in nodes and _makes_rows_of_single_instants(node.op):
                nodes.add(id)
                waiting += [edge.node for port, edge in enumerate(node.inputs) if _may_have_fewer_rows(node.op, port)]
        while outside := [
            id for id in nodes if not all(self._is_inside(nodes, *edge) for edge in self.plan.consumers[id])
        ]:
            nodes.difference_update(outside)
        return nodes

    def _is_inside(self, nodes: set[str], consumer: str, port: int) -> bool:
        is_inner = consumer in nodes and _may_have_fewer_rows(self.plan.by_id[consumer].op, port)
        return is_inner or (consumer, port) == self.end

    @property
    def obstacle(self) -> str:
        """Why no node is in the region; ``""`` if some are."""
        op = self.plan.by_id[self.first].op
        if self.first in self.nodes:
            return ""
        if not _makes_rows_of_single_instants(op):
            return f"`{self.first}` looks at more than an instant, or at what is absent"
        return f"`{self.first}` is read elsewhere, too"

    @property
    def reads_directly(self) -> bool:
        """Whether the step reads the facts of a stream with the time at which each arrives (`read_steps_directly`)."""
        ops = (self.plan.by_id[id].op for id in self.nodes)
        calls = (op.expression for op in ops if isinstance(op, Extend))
        return any(isinstance(call, Invoke) and call.function == ARRIVED.iri for call in calls)

    @property
    def has_gates(self) -> bool:
        """Whether rows enter the region through gates."""
        inputs = (edge.node for id in self.nodes for edge in self.plan.by_id[id].inputs)
        return any(isinstance(self.plan.by_id[id].op, Gate) for id in inputs)

    @property
    def entries(self) -> list[tuple[Node, int]]:
        """The edges from nodes outside, as their consumer and the number of its input."""
        nodes = (node for node in self.plan.nodes if node.id in self.nodes)
        return [
            (node, port)
            for node in nodes
            for port, edge in enumerate(node.inputs)
            if edge.node not in self.nodes and _may_have_fewer_rows(node.op, port)
        ]

    def pairs(self, node: Node, port: int) -> tuple[tuple[int, int], ...]:
        """Returns the columns (row, opener) that agree: of the rows of an edge, or behind the `Match` at its end."""
        keys = self.keys_of[node.id]
        if not isinstance(node.op, Match):
            keys = self._before(node, port, keys)
        unbound = self.plan.unbound[node.id if isinstance(node.op, Match) else node.inputs[port].node]
        return tuple(sorted((column, opener) for opener, column in keys.items() if column not in unbound))

    @cached_property
    def keys_of(self) -> dict[str, Keys]:
        """For each node the key columns of its rows, as far as all that they make has these keys."""
        keys_of: dict[str, Keys] = {self.first: self.keys}
        waiting = [self.first]
        while waiting:
            node = self.plan.by_id[waiting.pop()]
            for port, edge in enumerate(node.inputs):
                if edge.node not in self.nodes or not _may_have_fewer_rows(node.op, port):
                    continue
                keys = self._before(node, port, keys_of[node.id])
                before = keys_of.get(edge.node)
                if before is not None:
                    keys = {opener: column for opener, column in keys.items() if before.get(opener) == column}
                if keys != before:
                    keys_of[edge.node] = keys
                    waiting.append(edge.node)
        return keys_of

    def _before(self, node: Node, port: int, keys: Keys) -> Keys:
        """Returns the key columns of an input of a node."""
        places = ((opener, self._column_before(node, port, column)) for opener, column in keys.items())
        return {opener: column for opener, column in places if column is not None}

    def _column_before(self, node: Node, port: int, column: int) -> int | None:
        """Returns the column of an input with the value that a column of the node has, if there is one."""
        op = node.op
        if isinstance(op, Match):
            return next((place for place, cell in enumerate(op.cells) if cell == column), None)
        if isinstance(op, DerivedStream):
            prefix = op.source.prefix_width
            return None if 0 < column <= prefix else max(column - prefix, 0)
        widths = [self.plan.widths[edge.node] for edge in node.inputs]
        source = op.copied(widths)[column]
        if source is None:
            return None
        start = op.first_column(port, widths)
        if start <= source < start + widths[port]:
            return source - start
        if isinstance(op, Join):
            return next((pair[port] for pair in op.on if source == self._joined(op, 1 - port, pair, widths)), None)
        return None

    @staticmethod
    def _joined(op: Join, port: int, pair: tuple[int, int], widths: list[int]) -> int:
        """Returns a key column of an input of a join, as a column of both rows one after the other."""
        return op.first_column(port, widths) + pair[port]


_DELAYED = "it is read later than it arrives, since an absence comes behind it"
_DIRECT = "it reads facts one by one, without a join or a rule that could wait"
_LASTING = "what it reads holds longer than an instant, and what opens later may need it"


def _makes_rows_of_single_instants(op: Operator) -> bool:
    """Returns whether each row of an operator holds when rows hold of which it is made."""
    if isinstance(op, DerivedStream):
        return isinstance(op.source, Occurrences) and op.output == "rstream" and op.report == CLOSE
    kinds = (
        Match | Join | LeftJoin | AntiJoin | Project | ConstantFilter | Filter | Extend | TableFunction | Union
        | Distinct | Construct | TransitiveClosure
    )  # fmt: skip
    return isinstance(op, kinds) and not is_time_dependent(op)


def _may_have_fewer_rows(op: Operator, port: int) -> bool:
    """Returns whether an operator makes of fewer rows of an input just fewer rows."""
    return not isinstance(op, Scan) and not (port and isinstance(op, LeftJoin | AntiJoin))
