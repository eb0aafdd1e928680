"""The Planned Production System (PPS): operators in a digraph, and the rules that every plan obeys.

Nodes are listed inputs first (feedback apart). See docs/pps.md for the specification.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from squall.errors import PlannerError
from squall.operators import (
    Answer,
    AntiJoin,
    Apply,
    Closure,
    Deliver,
    Distinct,
    Emit,
    Expression,
    Extend,
    Feed,
    Group,
    Join,
    LeftJoin,
    Match,
    Operator,
    Project,
    Read,
    Slice,
    Test,
    Union,
    Unit,
    Update,
    Where,
    columns_of,
    is_timed,
)
from squall.strata import components
from squall.system import Source
from squall.windows import Count

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
    def deliveries(self) -> tuple[tuple[Node, Deliver], ...]:
        """The operation nodes, with their operators."""
        return tuple((node, node.op) for node in self.nodes if isinstance(node.op, Deliver))

    @property
    def delivery(self) -> tuple[Node, Deliver]:
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
    def retractable(self) -> frozenset[str]:
        """The nodes whose rows may be withdrawn before they end: those that withdraw rows by themselves (`AntiJoin`,
        `LeftJoin`, `Group`, `Slice`, `Update`, what is timed), `Read` nodes of what may be taken back, and what lies
        behind. What a `Feed` has told is never taken back; it is read as its window says."""
        updates = any(isinstance(node.op, Update) for node in self.nodes)
        found = {node.id for node in self.nodes if _withdraws(node.op, updates)}
        waiting = list(found)
        while waiting:
            behind = {id for id, _ in self.consumers[waiting.pop()]} - found
            behind = {id for id in behind if not isinstance(self.by_id[id].op, Feed)}
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
        case Apply(results=results):
            places = below[0] | set(range(left, left + results))
        case Extend(keeps=True):
            places = below[0] | {left}
        case AntiJoin() | Where() | Test() | Extend() | Slice():
            places = below[0]
    return frozenset(places)


def _withdraws(op: Operator, updates: bool) -> bool:
    if isinstance(op, Read):
        return updates or is_shrinking(op.source)
    if isinstance(op, Feed):
        return isinstance(op.source.window, Count)
    return isinstance(op, AntiJoin | LeftJoin | Group | Slice | Update) or is_timed(op)


def is_shrinking(source: Source) -> bool:
    """Whether the end of a fact's validity may become earlier after it has been read."""
    return source.removals or any(isinstance(window, Count) for window in source.all_windows)


def _width(node: Node, found: dict[str, int]) -> int:
    match node.op:
        case Match(cells=cells):
            return 1 + max((cell for cell in cells if isinstance(cell, int)), default=-1)
        case Join(keep=keep) | LeftJoin(keep=keep):
            return len(keep)
        case Project(columns=columns):
            return len(columns)
        case Emit(template=template):
            return len(template) + 1
        case Answer(columns=columns):
            return len(columns) + 2
        case Group(keys=keys, aggregates=aggregates):
            return len(keys) + len(aggregates)
        case Unit():
            return 0
        case Extend():
            return found[node.inputs[0].node] + 1
        case Apply(results=results):
            return found[node.inputs[0].node] + results
        case Closure():
            return 2
        case Read() | Feed() | Update():
            return 4
        case AntiJoin() | Union() | Where() | Test() | Distinct() | Slice() | Deliver():
            return found[node.inputs[0].node] if node.inputs else 0


_ARITY: dict[type, tuple[int, int | None]] = {
    Read: (0, 0), Unit: (0, 0), Match: (1, None), Join: (2, 2), LeftJoin: (2, 2), AntiJoin: (2, 2), Union: (1, None),
    Project: (1, 1), Where: (1, 1), Test: (1, 1), Extend: (1, 1), Apply: (1, 1), Group: (1, 1), Slice: (1, 1),
    Closure: (1, 1), Distinct: (1, None), Emit: (1, 1), Answer: (1, 1), Update: (1, 1), Deliver: (0, None),
    Feed: (1, None),
}  # fmt: skip


def check(plan: Plan) -> Plan:
    """The plan, if it obeys the rules that builders rely on; raises PlannerError with every violation otherwise.

    1. ids are unique and every input exists; 2. each operator has its number of inputs, those of a `Union` are equally
    wide; 3. without its feedback edges the plan is a DAG, listed inputs first; 4. columns exist; 5. there is a
    `Deliver`, which feeds nothing, and every `Update` feeds nothing else; 6. no cycle goes through the right side of an
    `AntiJoin` or a `LeftJoin`, a `Group`, a `Slice`, a `Feed` or a timed node (the plan is stratified); 7. every cycle
    passes a
    `Distinct` or a `Closure`; 8. what a `Closure` reads is never withdrawn before it ends.
    """
    problems = [*_structure(plan)]
    if not problems:
        problems = [*_columns(plan), *_ending(plan), *_strata(plan), *_cycles(plan), *_growing(plan)]
    if problems:
        raise PlannerError("the plan is not well formed:\n  " + "\n  ".join(problems))
    return plan


def _structure(plan: Plan) -> Iterator[str]:
    seen: set[str] = set()
    known = {node.id for node in plan.nodes}
    for node in plan.nodes:
        if node.id in seen:
            yield f"the id `{node.id}` occurs twice"
        least, most = _ARITY[type(node.op)]
        if len(node.inputs) < least or (most is not None and len(node.inputs) > most):
            yield f"`{node.id}` has {len(node.inputs)} inputs"
        for edge in node.inputs:
            if edge.node not in known:
                yield f"`{node.id}` reads `{edge.node}`, which does not exist"
            elif not edge.feedback and edge.node not in seen:
                yield f"`{node.id}` is listed before its input `{edge.node}`"
        seen.add(node.id)


def _columns(plan: Plan) -> Iterator[str]:
    widths = plan.widths
    for node in plan.nodes:
        inputs = [widths[edge.node] for edge in node.inputs]
        for what, column, width in _uses(node.op, inputs):
            if not 0 <= column < width:
                yield f"`{node.id}` {what} column {column} of {width}"
        if isinstance(node.op, Union) and len(set(inputs)) > 1:
            yield f"`{node.id}` unites rows of {' and '.join(map(str, sorted(set(inputs))))} columns"
        if isinstance(node.op, Closure) and inputs[0] != 2:
            yield f"`{node.id}` closes rows of {inputs[0]} columns, not pairs"
        for edge in node.inputs:
            for column in edge.columns or ():
                if not 0 <= column < widths[edge.node]:
                    yield f"the edge from `{edge.node}` to `{node.id}` groups by column {column} of {widths[edge.node]}"


def _uses(op: Operator, inputs: list[int]) -> Iterator[tuple[str, int, int]]:
    match op:
        case Match(cells=cells):
            numbers = sorted({cell for cell in cells if isinstance(cell, int)})
            if numbers != list(range(len(numbers))):
                yield "fills", max(numbers), len(numbers)
        case Join(on=on) | LeftJoin(on=on) | AntiJoin(on=on):
            for left, right in on:
                yield "joins on the left by", left, inputs[0]
                yield "joins on the right by", right, inputs[1]
            if not isinstance(op, AntiJoin):
                yield from (("keeps", column, sum(inputs)) for column in op.keep)
            if isinstance(op, LeftJoin):
                yield from _computes((op.condition,), len(op.keep))
        case Project(columns=columns):
            yield from (("keeps", column, inputs[0]) for column in columns if column is not None)
        case Where(column=column):
            yield "looks at", column, inputs[0]
        case Test(expression=expression) | Extend(expression=expression):
            yield from _computes((expression,), inputs[0])
        case Apply(arguments=arguments):
            yield from _computes(arguments, inputs[0])
        case Group(keys=keys, aggregates=aggregates):
            yield from (("groups by", column, inputs[0]) for column in keys)
            yield from _computes((aggregate.expression for aggregate in aggregates), inputs[0])
        case Slice(order=order, keys=keys):
            yield from (("slices by", column, inputs[0]) for column in keys)
            yield from _computes((expression for expression, _ in order), inputs[0])
        case Emit(template=template):
            yield from (("emits", cell, inputs[0]) for cell in template if isinstance(cell, int))
        case Update(deletes=deletes, inserts=inserts):
            quads = (*deletes, *inserts)
            yield from (("updates with", cell, inputs[0]) for quad in quads for cell in quad if isinstance(cell, int))
        case Answer(columns=columns, order=order):
            yield from (("answers with", column, inputs[0]) for column in columns)
            yield from _computes((expression for expression, _ in order), inputs[0])
        case Distinct(by=by):
            for width in inputs:
                yield "compares", by - 1 if by else 0, max(width, 1)
        case Read() | Unit() | Union() | Closure() | Feed() | Deliver():
            return


def _computes(expressions: Iterable[Expression], width: int) -> Iterator[tuple[str, int, int]]:
    for expression in expressions:
        yield from (("computes with", column, width) for column in columns_of(expression))


def _ending(plan: Plan) -> Iterator[str]:
    if not plan.deliveries:
        yield "it has no Deliver node"
    for node in plan.nodes:
        fed = [id for id, _ in plan.consumers[node.id]]
        if isinstance(node.op, Deliver) and fed:
            yield f"`{node.id}` delivers, yet feeds `{fed[0]}`"
        others = [id for id in fed if not isinstance(plan.by_id[id].op, Deliver)]
        if isinstance(node.op, Update) and others:
            yield f"`{node.id}` updates graphs, yet feeds `{others[0]}`"


def _strata(plan: Plan) -> Iterator[str]:
    for component in plan.components:
        for id in component if len(component) > 1 else ():
            node = plan.by_id[id]
            if is_timed(node.op):
                yield f"`{id}` takes the time of what depends on it: {', '.join(component)}"
            if isinstance(node.op, Group | Slice | Feed):
                verb = {Group: "groups", Slice: "slices", Feed: "feeds"}[type(node.op)]
                yield f"`{id}` {verb} what depends on it: {', '.join(component)}"
            if isinstance(node.op, AntiJoin | LeftJoin) and node.inputs[1].node in component:
                verb = "negates" if isinstance(node.op, AntiJoin) else "looks for the absence of"
                yield f"`{id}` {verb} what depends on it: {', '.join(component)}"


def _cycles(plan: Plan) -> Iterator[str]:
    if all(len(component) == 1 for component in plan.components) and not _feeds_itself(plan):
        return
    import networkx

    unchecked = networkx.DiGraph(plan.graph)  # a copy, and no view of it: a view lists its nodes in the order of a set
    unchecked.remove_nodes_from([node.id for node in plan.nodes if isinstance(node.op, Distinct | Closure)])
    with suppress(networkx.NetworkXNoCycle):
        cycle = [before for before, _ in networkx.find_cycle(unchecked)]
        yield f"the cycle {' -> '.join(cycle)} has no Distinct: it would never end"


def _feeds_itself(plan: Plan) -> bool:
    return any(edge.node == node.id for node in plan.nodes for edge in node.inputs if edge.feedback)


def _growing(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if isinstance(node.op, Closure) and node.id in plan.retractable:
            yield f"`{node.id}` closes what may be withdrawn: `{node.inputs[0].node}`"
