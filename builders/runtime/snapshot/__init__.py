"""Snapshot evaluation: it runs append-only plans instant by instant, over rows without times.

All rows that begin at one instant are processed together, so that they need no validity. Facts are stored by predicate
(vertical partitioning: Abadi et al., "Scalable Semantic Web Data Management", VLDB 2007), so that a join on predicates
takes all facts of one at once. This pays for large instants: static data and whole documents. A `Dataflow` can take
over at any time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, cast

from squall import functions
from squall.builders.runtime import layout
from squall.builders.runtime.alpha import AlphaNetwork
from squall.builders.runtime.creation_limit import ROWS_PER_PART, CreationLimit
from squall.builders.runtime.layout import CONSTANT_DISPATCHED, DataflowLayout
from squall.builders.runtime.operators import make_output_operator
from squall.builders.runtime.operators import stateless as row_operators
from squall.builders.runtime.operators.factored import FactoredRows, rows_of
from squall.builders.runtime.operators.output import AppendOnlyOutput
from squall.builders.runtime.operators.scan import facts_read, unexpected_removal
from squall.builders.runtime.scheduler import Address, Scheduler, by_constant
from squall.builders.runtime.schema_changes import refuse_other_cliques, refuse_schema_change
from squall.builders.runtime.snapshot import stateless
from squall.builders.runtime.snapshot.groups import KeyedRows, facts_by_key, read_facts_by_key
from squall.builders.runtime.snapshot.joins import SnapshotJoin
from squall.builders.runtime.snapshot.state import (
    PassThrough,
    ReadFacts,
    SnapshotClosure,
    SnapshotDistinct,
    SnapshotOutput,
)
from squall.builders.runtime.snapshot.stateless import Step
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta
from squall.contracts import Output
from squall.plan import Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import columns_of, is_stateful, is_time_dependent
from squall.rdf import ALWAYS, FOREVER, Event, Fact
from squall.rdf.row_tags import relation_tag_of

SUPPORTED_OPERATORS = (
    ops.Scan,
    ops.Unit,
    ops.Match,
    ops.ConstantFilter,
    ops.Filter,
    ops.Extend,
    ops.TableFunction,
    ops.Project,
    ops.Union,
    ops.Join,
    ops.Distinct,
    ops.TransitiveClosure,
    ops.Construct,
    ops.Sink,
)
"""The operators that can run over rows without times."""
MAX_MISSING_FACTS = 4096
"""Snapshot evaluation ends when instants have so many facts fewer than large ones have. A document may begin with a
small part."""
SnapshotOperator = SnapshotJoin | SnapshotDistinct | PassThrough | SnapshotClosure | SnapshotOutput
MAKES_FEW_ROWS = (SnapshotDistinct, PassThrough)
"""The operators that make no more rows than they receive."""


def fits(plan: Plan) -> bool:
    """Returns whether snapshot evaluation supports a plan."""
    return (
        not plan.retractable
        and not plan.has_expiring_windows
        and len(plan.sinks) == 1
        and isinstance(make_output_operator(*plan.sink, plan), AppendOnlyOutput)
        and all(_is_supported(node, plan) for node in plan.nodes)
    )


def _is_supported(node: Node, plan: Plan) -> bool:
    match node.op:
        case ops.Scan(source=source):
            return not source.removals
        case ops.Distinct(by=by):  # rows with an equal key differ at most in their rule
            inputs = (plan.by_id[edge.node] for edge in node.inputs)
            return all(
                by == plan.widths[input_node.id] - isinstance(input_node.op, ops.Construct) for input_node in inputs
            )
        case _:
            return isinstance(node.op, SUPPORTED_OPERATORS) and not is_time_dependent(node.op)


class SnapshotDataflow(Scheduler[KeyedRows]):
    """A plan at work, an instant at a time: `read`, `run`, `flush`."""

    size_of = staticmethod(lambda batch: len(batch.rows))

    def __init__(self, plan: Plan, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(plan)
        self.tuning = tuning
        self.key_column = {node.id: _key_column_of(node, plan) for node in plan.nodes}
        self.steps = {node.id: self._step(node) for node in plan.nodes if not is_stateful(node.op)}
        self.steps |= self.creation_limits.steps(self.steps.__getitem__)
        self.layout = DataflowLayout.of(plan, apart=(ops.Construct,), by_port=(ops.Sink,))
        self.alphas = {
            id: AlphaNetwork(plan, id, stateless.match_step)
            for id, route in self.layout.routes.items()
            if route.matches
        }
        self.targets = {id: tuple(map(self._target, route.targets)) for id, route in self.layout.routes.items()}
        self.operators = {node.id: self._operator(node) for node in plan.nodes if is_stateful(node.op)}
        self.reads = {node.id: node.op for node in plan.nodes if isinstance(node.op, ops.Scan)}
        careful = not all(map(_is_pure, plan.nodes))
        self.read_facts = {id: ReadFacts(_predicates_by_object(plan, id), careful, tuning) for id in self.reads}
        """The facts that were read."""
        self.incoming: defaultdict[str, list[Sequence[Fact]]] = defaultdict(list)
        """The facts that are still to be processed."""
        self.missing_facts = 0
        """How many facts fewer than large instants have the instants so far had (`are_large`)."""
        delivered, _ = plan.sink
        self.output = cast(SnapshotOutput, self.operators[delivered.id])

    def _operator(self, node: Node) -> SnapshotOperator:
        match node.op:
            case ops.Join():
                widths = (self.plan.widths[node.inputs[0].node], self.plan.widths[node.inputs[1].node])
                steps = (self._deferred_step(node, 0), self._deferred_step(node, 1))
                return SnapshotJoin(node.op, widths, steps, self.tuning)
            case ops.TransitiveClosure():
                return SnapshotClosure(self.tuning)
            case ops.Distinct():
                return PassThrough() if _are_unique(node, self.plan) else SnapshotDistinct()
            case _:
                inputs = enumerate(self.plan.by_id[edge.node] for edge in node.inputs)
                sets = ((port, input_node) for port, input_node in inputs if isinstance(input_node.op, ops.Distinct))
                once = {port for port, input_node in sets if not _are_unique(input_node, self.plan)}
                return SnapshotOutput(cast(AppendOnlyOutput, make_output_operator(*self.plan.sink, self.plan)), once)

    def _step(self, node: Node) -> Step:
        """Returns the step of a stateless node."""
        width = self.plan.widths[node.inputs[0].node] if node.inputs else 0
        match node.op:
            case ops.Filter():
                return stateless.filter_step(node.op)
            case ops.Extend():
                return stateless.row_by_row(row_operators.extend_step(node.op, timed=False))
            case ops.TableFunction():
                return stateless.row_by_row(row_operators.table_function_step(node.op, timed=False))
            case ops.Project(columns=columns):
                if self._projects_beside_key(node):
                    return stateless.project_beside_key(
                        cast(tuple[int, int], columns), cast(int, self.key_column[node.inputs[0].node]), self.tuning
                    )
                return stateless.project_step(node.op, width)
            case ops.Construct():
                return stateless.construct_step(node.op, width, self.plan.unbound[node.inputs[0].node])
            case _:
                return stateless.identity

    def _projects_beside_key(self, node: Node) -> bool:
        """Returns whether a projection keeps the key of its input and one other column."""
        columns = cast(ops.Project, node.op).columns
        return self.key_column[node.inputs[0].node] in columns and len({*columns} - {None}) == len(columns) == 2

    # Routing

    def _target(self, target: layout.Target) -> _Target:
        """Returns a target with the steps on the way."""
        step = row_operators.chain_steps([self.steps[id] for id in target.steps])
        if target.address is None:
            return _Target(step, None, target.steps[-1], False)
        id, port = target.address
        return _Target(step, target.address, id, self._is_lazy(self.plan.by_id[id], port))

    def _is_lazy(self, node: Node, port: int) -> bool:
        """Returns whether an input of a join is joined on just the key column of its rows."""
        if not isinstance(node.op, ops.Join):
            return False
        return [pair[port] for pair in node.op.on] == [self.key_column[node.inputs[port].node]]

    def _deferred_step(self, node: Node, port: int) -> Step | None:
        """Returns the step that a join applies to the rows of an input when it uses them; None if they are ready."""
        if not self._is_lazy(node, port):
            return None
        nodes: list[Node] = []
        inner = self.plan.by_id[node.inputs[port].node]
        while not is_stateful(inner.op) and not isinstance(inner.op, CONSTANT_DISPATCHED):
            if len(self.plan.consumers[inner.id]) > 1:
                break  # several consumers take its rows
            nodes.insert(0, inner)
            inner = self.plan.by_id[inner.inputs[0].node]
        return row_operators.chain_steps(self._reordered_steps(nodes)) or stateless.identity

    def _reordered_steps(self, nodes: Sequence[Node]) -> list[Step]:
        """Returns the steps of nodes that feed each other.

        A filter runs after a projection that leaves few distinct rows, if it needs no other columns.
        """
        steps = [self.steps[node.id] for node in nodes]
        for place, (first, second) in enumerate(pairwise(nodes)):
            if (
                isinstance(first.op, ops.Filter)
                and isinstance(second.op, ops.Project)
                and self._projects_beside_key(second)
            ):
                places = {column: place for place, column in enumerate(second.op.columns) if column is not None}
                if stateless.is_pure(first.op.expression) and places.keys() >= set(columns_of(first.op.expression)):
                    test = stateless.filter_step(ops.Filter(ops.remap_call(first.op.expression, places)))
                    steps[place : place + 2] = steps[place + 1], test
        return steps

    # Input

    def are_large(self, events: Sequence[Event]) -> bool:
        """Adds events, and returns whether instants are large enough, on average, to be evaluated as snapshots."""
        self.missing_facts += self.tuning.min_facts_per_instant * len({event.time for event in events if event.facts})
        self.missing_facts -= sum(len(event.facts) for event in events)
        return self.missing_facts <= MAX_MISSING_FACTS

    def start(self) -> None:
        """Emits what holds without any input: the bodies of axioms."""
        for node in self.plan.nodes:
            if isinstance(node.op, ops.Unit):
                self.emit(node.id, KeyedRows(None, [()]))

    def read(self, event: Event) -> None:
        """Adds the facts of an event to the nodes that read it. Raises SourceError for a removal."""
        for id, scan in self.reads.items():
            source = scan.source
            refuse_schema_change(scan.fixed_schema, source, (event,))
            refuse_other_cliques(source, (event,))
            if source.reads(event.stream, event.graph, event.is_static):
                if event.removed:
                    raise unexpected_removal(event)
                is_as_given = source.is_plain and source.cliques is None
                self.incoming[id].append(event.facts if is_as_given else facts_read(source, event))

    def _emit_incoming(self) -> None:
        """Emits the facts that were read and are used, all facts of a key together."""
        incoming, self.incoming = self.incoming, defaultdict(list)
        for id, facts in incoming.items():
            alpha = self.alphas.get(id)
            every = bool(self.targets[id]) or (alpha is not None and alpha.any_predicate is not None)
            for key, rows in read_facts_by_key(chain.from_iterable(facts)).items():
                if every or isinstance(key, tuple) or (alpha and key in alpha.predicates):
                    for part in self.read_facts[id].apply(key, rows):
                        self.emit(id, part)

    def emit(self, id: str, part: KeyedRows) -> None:
        """Emits the rows of a node to its consumers."""
        if not part.rows:
            return
        if id in self.alphas:
            for match, matched_rows in self.alphas[id].bare(part.key, part.rows):
                key = None if self.key_column[match] is None else part.key
                self.emit(match, KeyedRows(key, matched_rows, repeats=part.repeats))
        for step, address, inner, lazy in self.targets[id]:
            if lazy:
                self.receive(cast(Address, address), part)
                continue
            key = part.key if address is None or self.key_column[inner] is not None else None
            part_out = KeyedRows(key, step(part.rows) if step else part.rows, part.rule, part.repeats)
            if address is None:
                self._emit_stateless(inner, part_out)
            elif part_out.rows:
                self.receive(address, part_out)
        for column, table in self.layout.routes[id].by_constant.items():
            for term, rows in by_constant(column, table, part.rows).items():
                for consumer in table[term]:
                    self.emit(consumer, part._replace(rows=rows))

    def _emit_stateless(self, id: str, part: KeyedRows) -> None:
        """Emits the rows of a stateless node; facts by their keys."""
        op = self.plan.by_id[id].op
        if not isinstance(op, ops.Construct):
            self.emit(id, part._replace(key=None) if self.key_column[id] is None else part)
            return
        rule = op.rules[0] if op.rules else ""
        for key, rows in facts_by_key(op.template, part.rows).items():
            self.emit(id, KeyedRows(key, rows, rule))

    # Processing

    def run(self) -> None:
        """Processes the facts that were read, until all inboxes are empty."""
        self.creation_limits.begin()
        self._emit_incoming()
        for component in self.ready_components():
            self.fixpoint(component)

    def step(self, id: str) -> None:
        """Processes the inbox of one node; the right side of two first."""
        ports = self.inbox.pop(id, {})
        op = self.operators[id]
        limit = self.creation_limits.by_node.get(id)
        is_divided = limit is not None and not isinstance(op, MAKES_FEW_ROWS)
        for port in sorted(ports, reverse=True):
            batches: Iterable[KeyedRows] = ports[port]
            if limit is not None and is_divided:
                batches = _in_parts(op, port, batches, limit)
            if self.memory_limit is not None:
                self.memory_limit.count(id, sum(len(batch.rows) for batch in ports[port]), 0, self)
            for part in op.apply(port, batches):
                if limit is not None:
                    limit.add_rows(len(part.rows))
                self.emit(id, part)
                if self.memory_limit is not None:
                    self.memory_limit.count(id, 0, len(part.rows), self)

    def flush(self, time: int) -> list[Output]:
        """Returns what entered the answer since the last call, as of a time (integer ms)."""
        return self.output.flush(time)

    def export_state(self) -> Iterator[tuple[str, int, list[Delta]]]:
        """Yields (node, slot, deltas): the state for a `Dataflow` that takes over, as `Stateful.restore` accepts it."""
        for id, op in self.operators.items():
            for slot, rows in op.export_state():
                yield id, slot, [(*row, ALWAYS, FOREVER, 1) for row in rows]

    def state(self) -> dict[str, int]:
        """Returns the number of rows in the state of each node."""
        return {id: op.size() for id, op in (*self.operators.items(), *self.read_facts.items())}


class _Target(NamedTuple):
    """Where the rows of a node go.

    Attributes:
        step: The stateless steps on the way; None if there are none.
        address: The input of a stateful node; None if a stateless node has several consumers.
        inner: The last stateless node.
        lazy: Whether the join applies the steps when it needs the rows.
    """

    step: Step | None
    address: Address | None
    inner: str
    lazy: bool


def _key_column_of(node: Node, plan: Plan) -> int | None:
    """Returns the column in which all rows of a batch of a node have the batch's key.

    For sets of facts it is 1, where that is their predicate. None: there is no such column.
    """
    match node.op:
        case ops.Match(cells=cells):
            return (
                cells[1] if len(cells) == 3 and isinstance(cells[1], int) and relation_tag_of(cells) is None else None
            )
        case ops.Project(columns=columns):
            column = _key_column_of(plan.by_id[node.inputs[0].node], plan)
            return columns.index(column) if column is not None and column in columns else None
        case ops.Filter() | ops.Extend() | ops.ConstantFilter() | ops.TableFunction():
            return _key_column_of(plan.by_id[node.inputs[0].node], plan)
        case ops.Distinct():
            key_columns = {_key_column_of(plan.by_id[edge.node], plan) for edge in node.inputs}
            return key_columns.pop() if len(key_columns) == 1 else None
        case ops.Construct() | ops.Scan() | ops.Sink():
            return 1
        case _:
            return None


def _in_parts(
    op: SnapshotOperator, port: int, batches: Iterable[KeyedRows], limit: CreationLimit
) -> Iterator[KeyedRows]:
    """Yields batches of a limited recursion, each when the one before is processed; part by part where an operator may
    make many rows of one."""
    join = op if isinstance(op, SnapshotJoin) else None
    for batch in batches:
        if isinstance(batch.rows, FactoredRows) or (join and join.has_at_most(ROWS_PER_PART, port, batch)):
            yield batch
        else:
            yield from (batch._replace(rows=rows) for rows in limit.parts(rows_of(batch.rows)))


def _is_pure(node: Node) -> bool:
    """Returns whether it makes no difference how often an operator receives a row."""
    match node.op:
        case ops.Filter(expression=expression) | ops.Extend(expression=expression):
            return stateless.is_pure(expression)
        case ops.TableFunction(function=function, arguments=arguments):
            return functions.lookup(function).pure and all(map(stateless.is_pure, arguments))
        case _:
            return True


def _predicates_by_object(plan: Plan, id: str) -> set[Hashable]:
    """Returns the predicates whose facts a node should emit grouped by object.

    A rule names these predicates and does something that does not depend on each subject.
    """
    keys: set[Hashable] = set()
    for consumer, _ in plan.consumers[id]:
        match plan.by_id[consumer].op:
            case ops.Match(cells=(int() as column, str() as predicate, _)) if _ignores_column(plan, consumer, column):
                keys.add(predicate)
    return keys


def _ignores_column(plan: Plan, id: str, column: int) -> bool:
    """Returns whether a consumer of a node does not depend on a column."""
    return any(
        _consumer_ignores_column(plan, plan.by_id[consumer], port, column) for consumer, port in plan.consumers[id]
    )


def _consumer_ignores_column(plan: Plan, node: Node, port: int, column: int) -> bool:
    match node.op:
        case ops.Join(on=on):
            return all(pair[port] != column for pair in on)
        case ops.Project(columns=columns):
            return column not in columns or _ignores_column(plan, node.id, columns.index(column))
        case ops.Distinct() | ops.Filter() | ops.ConstantFilter() | ops.Union():
            return _ignores_column(plan, node.id, column)
        case op:
            return isinstance(op, ops.Construct)


def _are_unique(node: Node, plan: Plan) -> bool:
    """Returns whether a set has no duplicates anyway.

    Its rows are matches of facts each of which comes once, or once for each node that derives it.
    """
    inputs = [plan.by_id[edge.node] for edge in node.inputs]
    makers = [plan.by_id[edge.node].op for match in inputs for edge in match.inputs]
    return all(_distinguishes_facts(input_node.op) for input_node in inputs) and all(
        isinstance(maker, ops.Scan | ops.Distinct) for maker in makers
    )


def _distinguishes_facts(op: ops.Operator) -> bool:
    """Returns whether a match turns different facts into different rows."""
    return isinstance(op, ops.Match) and not any(
        cell is None or isinstance(cell, ops.Value | ops.OneOf) for cell in op.cells
    )
