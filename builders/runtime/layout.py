"""The layout of a dataflow: where the nodes of a plan run and where their rows go, as a value that can be printed.

It is computed from a plan before anything runs. `squall.builders.runtime.dataflow` and
`squall.builders.runtime.snapshot` execute it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from squall.builders.runtime.operators import stateless
from squall.builders.runtime.scheduler import Address
from squall.plan import Node, Plan
from squall.plan.operators import (
    ConstantFilter,
    Construct,
    DerivedStream,
    Extend,
    Filter,
    Match,
    Project,
    Scan,
    SequenceJoin,
    Union,
    Unit,
    is_stateful,
)
from squall.rdf import Term

CONSTANT_DISPATCHED = (Match, ConstantFilter)
"""The operators that hash tables of constants feed."""


class Target(NamedTuple):
    """Where the rows of a node go.

    Attributes:
        steps: The stateless nodes on the way, which run as one step.
        address: The input of a stateful node; None if the last step has several consumers.
        open_key: For right rows of a sequence join, the columns in front of the steps by which they are looked up. The
            steps process only rows that a left row may be before. None for other inputs, if a step computes the key, or
            if the join does not run here.
    """

    steps: tuple[str, ...]
    address: Address | None
    open_key: tuple[int, ...] | None = None

    def __str__(self) -> str:
        look_up = "" if self.open_key is None else " ".join(["if open", *(f"${column}" for column in self.open_key)])
        end = "" if self.address is None else f"{self.address[0]}.{self.address[1]}"
        return " | ".join(filter(None, (look_up, *self.steps, end)))


class ConstructTarget(NamedTuple):
    """`Construct` nodes of one shape, each behind a `ConstantFilter` on the same column. One look-up replaces all these
    filters.

    Attributes:
        column: The column.
        address: Where the facts go.
        constructs: The term that the column has to have, the filter, and the `Construct` node behind it.
    """

    column: int
    address: Address
    constructs: tuple[tuple[Term, str, str], ...]


ConsumersByConstant = Mapping[int, Mapping[Term, Sequence[str]]]
"""`ConstantFilter` nodes by column and term."""


class Route(NamedTuple):
    """Where the rows of one node go.

    Attributes:
        targets: The targets without the look-up of a constant.
        constructs: Rules that differ in constants only.
        by_constant: The other `ConstantFilter` nodes that read the node.
        matches: The `Match` nodes that read the node: its rows are facts, which an alpha network distributes.
    """

    targets: tuple[Target, ...]
    constructs: tuple[ConstructTarget, ...]
    by_constant: ConsumersByConstant
    matches: tuple[str, ...]

    @property
    def is_looked_up(self) -> bool:
        """Whether all rows are looked up before anything else is done with them."""
        looked_up = all(target.open_key is not None for target in self.targets)
        return bool(self.targets) and looked_up and not (self.constructs or self.by_constant or self.matches)

    def lines(self) -> Iterator[str]:
        """Yields a line for each way that rows take."""
        if self.matches:
            yield f"alpha network: {', '.join(self.matches)}"
        yield from map(str, self.targets)
        for column, (id, port), constructs in self.constructs:
            yield f"column {column}: {len(constructs)} constants | construct | {id}.{port}"
        for column, table in self.by_constant.items():
            yield f"column {column}: {len(table)} constants"


@dataclass(frozen=True)
class DataflowLayout:
    """The layout of a dataflow.

    Attributes:
        nodes: The nodes that run here, each as one operator.
        scans: The `Scan` nodes that read the input.
        routes: Where the rows of each node go.
        units: The nodes whose row always holds.
        stream_leaders: For each derived stream, the first of the nodes that read it through a window. That node reports
            the events of the stream before any of the others emits them.
        expires: Whether rows may expire.
    """

    nodes: tuple[str, ...]
    scans: tuple[str, ...]
    routes: Mapping[str, Route]
    units: tuple[str, ...]
    stream_leaders: frozenset[str]
    expires: bool

    @classmethod
    def of(
        cls,
        plan: Plan,
        hosted: Collection[str] | None = None,
        reading: Collection[str] | None = None,
        *,
        apart: tuple[type, ...] = (),
        by_port: tuple[type, ...] = (),
    ) -> DataflowLayout:
        """Returns the layout of a dataflow.

        Args:
            plan: The plan.
            hosted: The ids of the stateful nodes that run here; None for all. Stateless nodes run everywhere.
            reading: The `Scan` nodes that read the input; None for all.
            apart: The stateless operators whose rows go to the next node in a step of their own.
            by_port: The operators to which it matters on which input a row comes, besides joins.
        """
        stateful: Collection[str] = plan.by_id.keys() if hosted is None else set(hosted)
        scans = tuple(node.id for node in plan.nodes if isinstance(node.op, Scan))
        return cls(
            tuple(node.id for node in plan.nodes if node.id in stateful or not is_stateful(node.op)),
            scans if reading is None else tuple(id for id in scans if id in reading),
            _routes(plan, apart, by_port, stateful),
            tuple(node.id for node in plan.nodes if isinstance(node.op, Unit)),
            _stream_leaders(plan),
            plan.has_expiring_windows or bool(plan.retractable),
        )

    @cached_property
    def looked_up(self) -> frozenset[str]:
        """The nodes whose rows are looked up by sequence joins before anything else, and are used by nothing else."""
        return frozenset(id for id, route in self.routes.items() if route.is_looked_up)

    def __str__(self) -> str:
        """Describes the layout as text: where rows go."""
        chained: set[str] = set()
        for route in self.routes.values():
            for target in route.targets:
                chained.update(target.steps if target.address else target.steps[:-1])
            for _, _, looked_up in route.constructs:
                chained.update(id for _, filter, construct in looked_up for id in (filter, construct))
        lines: list[str] = []
        for id, route in self.routes.items():
            lines += [f"{id} -> {line}" for line in route.lines()] if id not in chained else ()
        return "\n".join(lines)


def _stream_leaders(plan: Plan) -> frozenset[str]:
    feeds = [(node, node.op) for node in reversed(plan.nodes) if isinstance(node.op, DerivedStream)]
    leaders = {(op.output_key, *(edge.node for edge in node.inputs)): node.id for node, op in feeds}
    return frozenset(leaders.values())


def _routes(
    plan: Plan, apart: tuple[type, ...], by_port: tuple[type, ...], hosted: Collection[str]
) -> dict[str, Route]:
    """Returns where the rows of each node go."""

    def target(node: Node, port: int) -> Target:
        steps: list[str] = []
        while not is_stateful(node.op):
            steps.append(node.id)
            consumers = plan.consumers[node.id]
            following = plan.by_id[consumers[0][0]] if len(consumers) == 1 else None
            if following is None or isinstance(following.op, CONSTANT_DISPATCHED) or isinstance(node.op, apart):
                return Target(tuple(steps), None)
            node, port = following, consumers[0][1]
        address = node.id, port if node.op.join_keys or isinstance(node.op, by_port) else 0
        return Target(tuple(steps), address, _open_key(plan, steps, node, port) if node.id in hosted else None)

    targets: dict[str, tuple[Target, ...]] = {}
    filters: dict[str, dict[int, dict[Term, list[str]]]] = {}
    matches: dict[str, tuple[str, ...]] = {}
    for node in plan.nodes:
        consumers = [(plan.by_id[id], port) for id, port in plan.consumers[node.id]]
        direct = [(consumer, port) for consumer, port in consumers if not isinstance(consumer.op, CONSTANT_DISPATCHED)]
        targets[node.id] = tuple(target(consumer, port) for consumer, port in direct)
        for consumer, _ in consumers if len(direct) < len(consumers) else ():
            if isinstance(consumer.op, Match):
                matches[node.id] = (*matches.get(node.id, ()), consumer.id)
            elif isinstance(op := consumer.op, ConstantFilter):
                by_term = filters.setdefault(node.id, {}).setdefault(op.column, {})
                by_term.setdefault(op.term, []).append(consumer.id)
    routes = {id: Route(targets_of_node, (), {}, matches.get(id, ())) for id, targets_of_node in targets.items()}
    for id, by_column in filters.items():
        constructs = tuple(_take_constructs(plan, by_column, targets))
        by_constant = {column: table for column, table in by_column.items() if table}
        routes[id] = routes[id]._replace(constructs=constructs, by_constant=by_constant)
    return routes


def _open_key(plan: Plan, steps: Sequence[str], end: Node, port: int) -> tuple[int, ...] | None:
    """Returns the columns in front of some steps that are the key of the right rows of a sequence join behind them."""
    op, nodes = end.op, [plan.by_id[id] for id in steps]
    if not isinstance(op, SequenceJoin) or port != 1 or not nodes or not all(map(_may_be_late, nodes)):
        return None
    columns: list[int | None] = [right for _, right in op.on]
    for node in reversed(nodes):
        copied = dict(enumerate(node.op.copied([plan.widths[edge.node] for edge in node.inputs])))
        columns = [None if column is None else copied.get(column) for column in columns]
    key = tuple(column for column in columns if column is not None)
    return key if len(key) == len(columns) else None


def _may_be_late(node: Node) -> bool:
    """Returns whether a step makes at most one row of each row."""
    return isinstance(node.op, Extend | Filter | Project | Union)


def _take_constructs(
    plan: Plan, filters: dict[int, dict[Term, list[str]]], targets: Mapping[str, Sequence[Target]]
) -> Iterator[ConstructTarget]:
    """Takes rules that differ in constants only out of the filters, and yields their targets. There may be very many of
    these rules."""
    alike: dict[tuple[int, Address, stateless.TemplateShape], list[tuple[Term, str, str]]] = {}
    for column, table in filters.items():
        for term, consumers in list(table.items()):
            ends = {id: _only_construct(plan, id, targets[id]) for id in consumers}
            for id, (construct, op, address) in ((id, end) for id, end in ends.items() if end is not None):
                key = (column, address, stateless.template_shape(op.template))
                alike.setdefault(key, []).append((term, id, construct))
            table[term] = [id for id in consumers if ends[id] is None]
            if not table[term]:
                del table[term]
    for (column, address, _), constructs in alike.items():
        yield ConstructTarget(column, address, tuple(constructs))


def _only_construct(plan: Plan, id: str, targets: Sequence[Target]) -> tuple[str, Construct, Address] | None:
    """Returns the `Construct` that is the only consumer of a node, with the address of its facts; otherwise None."""
    consumers = plan.consumers[id]
    op = plan.by_id[consumers[0][0]].op if len(consumers) == 1 else None
    if not isinstance(op, Construct) or targets[0].address is None:
        return None
    return consumers[0][0], op, targets[0].address
