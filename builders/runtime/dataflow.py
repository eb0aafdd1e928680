"""The dataflow: it runs nodes of a plan over deltas to the fixpoint, for every builder.

A dataflow hosts all nodes of a plan (in process), or those of one stage (inside a distributed engine), as its layout
says (`squall.builders.runtime.layout`). Deltas pass through stateless nodes into the inbox of a stateful one.
`Dataflow.run` processes the inboxes component by component in topological order, semi-naive inside recursive ones.
Deltas for nodes that the dataflow does not host go to the outbox.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple, cast

from squall.builders.runtime import layout
from squall.builders.runtime.alpha import AlphaNetwork
from squall.builders.runtime.creation_limit import CreationLimits, InputDivision
from squall.builders.runtime.fact_input import Change, FactInput
from squall.builders.runtime.layout import DataflowLayout, Route
from squall.builders.runtime.memory_limit import MemoryLimit
from squall.builders.runtime.operators import Operator, make_operator, stateless
from squall.builders.runtime.operators.derived_stream import DerivedStreamOperator
from squall.builders.runtime.operators.distinct import DRedDistinct, TimeDependentOperator
from squall.builders.runtime.operators.output import OutputOperator, SinkOperator
from squall.builders.runtime.operators.scan import ScannedFacts, ScanOperator, places_of, reads_any
from squall.builders.runtime.operators.sequence_join import NewRights, SequenceJoinOperator
from squall.builders.runtime.operators.state import DiffedState, Stateful, TimedOperator
from squall.builders.runtime.operators.stateless import StatelessOperator, Step
from squall.builders.runtime.operators.update import UpdateOperator
from squall.builders.runtime.report_times import ReportSchedule, ReportSchedules
from squall.builders.runtime.scheduler import Address, Scheduler, by_constant
from squall.builders.runtime.state import StateRegistry
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.window_recursion import follow
from squall.builders.runtime.zset import UNIT, ColumnarPairs, Delta, Pairs
from squall.plan import Plan
from squall.plan.operators import Construct
from squall.rdf import ALWAYS, FOREVER, Columns, Event

REPORT_TIMES_SUFFIX = "/report-times"
"""The suffix of a node's id for the state of its evaluation instants."""


class Target(NamedTuple):
    """Where the rows of a node go, ready to run.

    Attributes:
        step: The stateless steps on the way; None if there are none.
        address: The input of a stateful node; None if a stateless node has several consumers.
        inner: In the latter case, that stateless node.
    """

    step: Step | None
    address: Address | None
    inner: str


class Replaced(NamedTuple):
    """What a dataflow takes over from one of another plan of the same program (`squall.builders.runtime.replanning`).

    Attributes:
        operators: Operators with their state, by their nodes in the new plan. Joins among them may be new.
        input: The input side of the other dataflow.
        states: The states of the other dataflow, by key.
        nodes: For the nodes whose operators are taken over, their nodes in the other plan.
    """

    operators: Mapping[str, Operator]
    input: FactInput
    states: Mapping[str, Stateful]
    nodes: Mapping[str, str]

    def old_key(self, key: str) -> str | None:
        """Returns the key that a state of the new dataflow had in the other one; None if it is that of a new join."""
        node = key.removesuffix(REPORT_TIMES_SUFFIX)
        if node in self.nodes:
            return self.nodes[node] + key[len(node) :]
        return None if key in self.operators else key


class Dataflow(Scheduler[Sequence[Delta]]):
    """The nodes of a plan at work.

    Args:
        plan: The plan.
        hosted: The ids of the stateful nodes that run here; None for all. Stateless nodes run everywhere.
        reading: The `Scan` nodes that read the input; None for all.
        tuning: The tuning values of the runtime.
        replaced: What this dataflow takes over from one of another plan of the same program.
        memory_limit: A limit on memory that each step checks, also inside of large inputs.
    """

    apart: ClassVar[tuple[type, ...]] = ()
    """The stateless operators that are not chained to the next one (`DataflowLayout.of`)."""

    def __init__(
        self,
        plan: Plan,
        hosted: Collection[str] | None = None,
        reading: Collection[str] | None = None,
        tuning: Tuning = DEFAULT_TUNING,
        replaced: Replaced | None = None,
        memory_limit: MemoryLimit | None = None,
    ) -> None:
        super().__init__(plan, memory_limit)
        self.layout = DataflowLayout.of(plan, hosted, reading, apart=self.apart)
        self.operators = _operators(plan, self.layout, self.creation_limits, tuning)
        if replaced is not None:
            self.operators |= replaced.operators
        self.outbox: dict[Address, list[Delta]] = {}
        self.input = FactInput(plan, self.layout, self.operators, tuning, replaced and replaced.input)
        matched = (id for id, route in self.layout.routes.items() if route.matches)
        self.alphas = {id: AlphaNetwork(plan, id) for id in matched if id not in self.input.readers}
        self.targets = {
            id: (*map(self._target, route.targets), *_construct_targets(plan, id, route))
            for id, route in self.layout.routes.items()
        }
        self.by_constant = {
            id: [*route.by_constant.items()] for id, route in self.layout.routes.items() if route.by_constant
        }
        self.timed_operators = _timed_operators(self.operators)
        """The nodes inside the plan that have work when time passes."""
        instants = dict(_evaluation_instants(self.operators))
        self.instants = ReportSchedules(instants)
        """The evaluation instants of rstream outputs."""
        division = InputDivision(tuning.first_join_part, counts_all=memory_limit is not None)
        divided = _joins(plan, self.operators) if memory_limit is None else self.operators
        self.divisions = {**dict.fromkeys(divided, division), **self.creation_limits.by_node}
        """How the inputs of nodes are divided that may make many rows of few."""
        stateful = {id: op for id, op in self.operators.items() if isinstance(op, Stateful)}
        self.states = StateRegistry({**stateful, **self.input.states})
        self.states |= {f"{id}{REPORT_TIMES_SUFFIX}": DiffedState(times) for id, times in instants.items()}
        if replaced is not None:
            self.states |= _kept_states(self.states, replaced)

    def _target(self, target: layout.Target) -> Target:
        steps = [cast(StatelessOperator, self.operators[id]).step for id in target.steps]
        step = stateless.chain_steps(steps)
        if step is not None and target.address is not None and target.open_key is not None:
            step = _late_step(self, target.address[0], target.open_key, step)
        return Target(step, target.address, target.steps[-1] if target.steps else "")

    # Input

    def start(self, begin: int = 0) -> None:
        """Emits what holds without any input: the bodies of axioms.

        Args:
            begin: The time (integer ms) that functions of time use for what always holds.
        """
        self.begin(begin)
        for id in self.layout.units:
            self.emit(id, [UNIT])
        if links := self.input.known_links():
            self.read(links)

    def begin(self, time: int) -> None:
        """Sets the time (integer ms) that functions of time use for what always holds."""
        for op in self.operators.values():
            if isinstance(op, TimeDependentOperator):
                op.begin = time

    def read(self, events: Sequence[Event]) -> None:
        """Reads events into the `Scan` nodes."""
        for instants in self.instants:
            instants.add(events)
        for part in self.input.parts(events):
            if self.input.links is not None and part:
                self.change(self.input.close_sessions(part[0].time - 1))
            self.change(self.input.follow_links(part))
            places = places_of(part) if len(self.input.readers) > 1 else None
            for id, reader in self.input.readers.items():
                if places is not None and not reads_any(reader, places):
                    continue
                # Exactly, since `isinstance` of an abstract class runs Python code.
                facts = reader.read_columns(part) if type(part) is Columns else reader.read(part)
                self._emit_facts(id, facts)

    def change(self, changes: Iterable[Change]) -> None:
        """Emits what updates insert and remove (`FactInput.insert`, `FactInput.remove`)."""
        for id, deltas in changes:
            if id in self.input.readers:
                self._emit_facts(id, self.input.facts(id, deltas))
            else:
                self.emit(id, deltas)

    def _emit_facts(self, id: str, facts: ScannedFacts) -> None:
        for match, rows in self.input.matched(id, facts):
            if type(rows) is ColumnarPairs and match not in self.layout.looked_up:
                self.emit(match, list(rows))
            else:
                self.emit(match, rows)
        if facts.triples or facts.atoms:
            self.emit(id, facts.triples + facts.atoms)

    def put(self, address: Address, deltas: Sequence[Delta]) -> None:
        """Adds deltas to an input of a stateful node: to its inbox if it runs here, otherwise to the outbox."""
        if address[0] in self.operators:
            self.receive(address, deltas)
        else:
            self.outbox.setdefault(address, []).extend(deltas)

    def emit(self, id: str, deltas: Any) -> None:
        """Emits the deltas of a node to its consumers, through stateless nodes: a sequence, or `Pairs` for consumers
        that look them up before anything else."""
        if not deltas:
            return
        if id in self.alphas:
            for match, matched in self.alphas[id].rows(deltas):
                self.emit(match, matched)
        for step, address, inner in self.targets[id]:
            rows = step(deltas) if step is not None else deltas
            if address is None:
                self.emit(inner, rows)
            elif rows:
                self.put(address, rows)
        for column, table in self.by_constant.get(id, ()):
            for term, part in by_constant(column, table, deltas).items():
                for consumer in table[term]:
                    self.emit(consumer, part)

    # Processing

    def run(self, now: int = ALWAYS, complete: bool = True) -> None:
        """Processes all inboxes until they are empty.

        Args:
            now: All input that begins at this time (integer ms) or before has been added, so that instants up to then
                can be processed as complete ones.
            complete: False while more input may come at this time, so that derived streams cannot emit yet.
        """
        if self.creation_limits.limits:
            self.creation_limits.begin()
        self.change(self.input.close_sessions(now))
        for reader in self.input.session_readers.values():
            self._add_close_times(reader)
        if self.timed_operators:
            self._wake(now, self.timed_operators)
        for component in self.ready_components():
            if len(component) == 1:
                self.step(component[0])
                time_driven = self.timed_operators.get(component[0])
                if time_driven is not None and (complete or not isinstance(time_driven, DerivedStreamOperator)):
                    self._advance(component[0], time_driven, now)
                continue
            if any(isinstance(self.operators.get(id), DRedDistinct) for id in component):
                self.delete(component)
                self.rederive(component)
            self.fixpoint(component)
            follow(self, component, now)
        for instants in self.instants if complete else ():
            instants.skip_if_idle(now)

    def _advance(self, id: str, op: TimedOperator, now: int) -> None:
        self.emit(id, op.advance(now))
        if isinstance(op, DerivedStreamOperator) and id in self.layout.stream_leaders:
            nodes = self.instants.add_derived(op.events)
            self._wake(now, self.timed_operators if self._add_close_times(op.reader) else nodes)

    def _add_close_times(self, reader: ScanOperator) -> bool:
        """Adds the times at which sessions have closed to the evaluation instants of those who read them.

        Returns whether any has.
        """
        close_times = list(reader.followed.pop_close_times())
        for stream, time in close_times:
            for instants in self.instants:
                instants.add_close(reader.source, stream, time)
        return bool(close_times)

    def _wake(self, now: int, nodes: Iterable[str]) -> None:
        """Schedules those of the nodes that have work up to `now`. What has input is scheduled without."""
        for id in nodes:
            op = self.timed_operators.get(id)
            if op is not None and op.next_time <= now:
                heapq.heappush(self.component_queue, self.component_of[id])

    def next_time(self) -> int:
        """Returns the next time at which there is work without further input; FOREVER if there is none."""
        times = (op.next_time for op in self.operators.values() if isinstance(op, TimedOperator | SinkOperator))
        close_times = (reader.followed.next_time for reader in self.input.session_readers.values())
        return min(chain(times, close_times), default=FOREVER)

    def expire(self, now: int) -> None:
        """Drops expired rows. No later delta begins before `now`."""
        if self.layout.expires:
            for state in self.states.values():
                state.expire(now)

    def state(self) -> dict[str, int]:
        """Returns the number of rows in the state of each node."""
        return {id: state.size() for id, state in self.states.items() if id in self.plan.by_id}

    def step(self, id: str) -> None:
        """Processes the inbox of one node; the right side of two first, which causes fewer retractions."""
        ports = self.inbox.pop(id, {})
        division = self.divisions.get(id)
        for port in sorted(ports, reverse=True):
            parts = ports[port]
            deltas: Sequence[Delta] = parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))
            if division is None or len(deltas) <= division.uncounted_rows:
                self.emit(id, self.apply(id, port, deltas))
                continue
            for part in division.parts(deltas):
                output = self.apply(id, port, part)
                division.add_rows(len(output))
                self.emit(id, output)
                if self.memory_limit is not None:
                    self.memory_limit.count(id, len(part), len(output), self)

    def apply(self, id: str, port: int, deltas: Sequence[Delta]) -> Sequence[Delta]:
        """Processes deltas with a stateful node."""
        return self.operators[id].apply(port, deltas)

    def delete(self, component: Sequence[str]) -> None:
        """Runs the first phase of delete and rederive: it retracts all rows that may have lost their derivation."""
        deleters = [op for id in component if isinstance(op := self.operators.get(id), DRedDistinct)]
        for op in deleters:
            op.deleting = True
        self.fixpoint(component)
        for op in deleters:
            op.deleting = False

    def rederive(self, component: Sequence[str]) -> None:
        """Runs the second phase of delete and rederive: rows that still have a derivation come back."""
        for id in component:
            op = self.operators.get(id)
            if isinstance(op, DRedDistinct):
                self.emit(id, op.rederive())


def _late_step(dataflow: Dataflow, id: str, key: Sequence[int], step: Step) -> Step:
    """Returns the step that hands rows to a sequence join, which runs the other step behind the look-up of a key, and
    that passes none on."""
    join = cast(SequenceJoinOperator, dataflow.operators[id])
    new_rights = NewRights(key, step)
    join.new_rights.append(new_rights)

    def hand_over(deltas: Pairs) -> list[Delta]:
        new_rights.batches.append(deltas)
        heapq.heappush(dataflow.component_queue, dataflow.component_of[id])
        return []

    return hand_over


def _operators(plan: Plan, layout: DataflowLayout, limits: CreationLimits, tuning: Tuning) -> dict[str, Operator]:
    """Returns the operators of the nodes that run in a dataflow."""
    operators = {id: make_operator(plan.by_id[id], plan, tuning) for id in layout.nodes}
    creating_steps = limits.steps(lambda id: cast(StatelessOperator, operators[id]).step)
    return operators | {id: StatelessOperator(step) for id, step in creating_steps.items()}


def _kept_states(keys: Iterable[str], replaced: Replaced) -> dict[str, Stateful]:
    """Returns the states of a dataflow that the one in place of it keeps, by their present keys."""
    old_keys = {key: replaced.old_key(key) for key in keys}
    return {key: replaced.states[old] for key, old in old_keys.items() if old is not None}


def _timed_operators(operators: Mapping[str, Operator]) -> dict[str, TimedOperator]:
    """Returns the nodes inside the plan that have work when time passes."""
    inner = ((id, op) for id, op in operators.items() if not isinstance(op, OutputOperator | UpdateOperator))
    return {id: op for id, op in inner if isinstance(op, TimedOperator)}


def _joins(plan: Plan, ids: Iterable[str]) -> Iterator[str]:
    """Yields the nodes that are inner joins."""
    return (id for id in ids if plan.by_id[id].op.is_inner_join)


def _evaluation_instants(operators: Mapping[str, Operator]) -> Iterator[tuple[str, ReportSchedule]]:
    """Yields the nodes that output snapshots, with their evaluation instants."""
    for id, op in operators.items():
        emitter = op.emitter if isinstance(op, DerivedStreamOperator) else op
        if isinstance(emitter, OutputOperator) and emitter.instants is not None:
            yield id, emitter.instants


def _construct_targets(plan: Plan, id: str, route: Route) -> Iterator[Target]:
    """Yields the targets of a node for rules that differ in constants only."""
    for column, address, constructs in route.constructs:
        emits = [(term, cast(Construct, plan.by_id[construct].op)) for term, _, construct in constructs]
        step = stateless.construct_by_constant_step(column, emits, plan.widths[id], plan.unbound[id])
        yield Target(step, address, "")
