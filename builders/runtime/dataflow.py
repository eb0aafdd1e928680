"""The dataflow: it runs nodes of a plan over deltas to the fixpoint, for every builder.

A dataflow hosts all nodes of a plan (in process), or those of one stage (inside a distributed engine). Deltas pass
through stateless nodes into the inbox of a stateful one. `Dataflow.run` processes the inboxes component by component in
topological order, semi-naive inside recursive ones. Deltas for nodes that the dataflow does not host go to the outbox.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, cast

from squall.builders.runtime.alpha import AlphaNetwork, by_kind
from squall.builders.runtime.creation_limit import CreationLimit, process_in_parts
from squall.builders.runtime.multiway_join import FusedJoin, fused_addresses
from squall.builders.runtime.operators import Operator, make_operator, merging_of, stateless
from squall.builders.runtime.operators.derived_stream import DerivedStreamOperator
from squall.builders.runtime.operators.distinct import DRedDistinct, TimeDependentOperator
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.multiway_join import MultiwayJoinOperator
from squall.builders.runtime.operators.output import OutputOperator, SinkOperator
from squall.builders.runtime.operators.scan import ScannedFacts, ScanOperator
from squall.builders.runtime.operators.state import DiffedState, Stateful
from squall.builders.runtime.operators.stateless import StatelessOperator, Step
from squall.builders.runtime.operators.update import GraphUpdate, InsertedFacts, UpdateOperator
from squall.builders.runtime.scheduler import Address, Scheduler
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import UNIT, Delta, fact_row
from squall.plan import Node, Plan
from squall.plan.operators import (
    AntiJoin,
    ConstantFilter,
    Construct,
    DerivedStream,
    Join,
    LeftJoin,
    Match,
    Scan,
    Unit,
    is_stateful,
)
from squall.plan.operators import Operator as Kind
from squall.rdf import ALWAYS, FOREVER, NOTES, Columns, Event, Fact, Term

INSERTED_FACTS = "/inserted"
"""The id of the state of facts that updates inserted."""
REPORT_TIMES_SUFFIX = "/report-times"
"""The suffix of a node's id for the state of its evaluation instants."""


class Target(NamedTuple):
    """Where the rows of a node go.

    Attributes:
        step: The stateless steps on the way; None if there are none.
        address: The input of a stateful node; None if a stateless node has several consumers.
        inner: In the latter case, that stateless node.
    """

    step: Step | None
    address: Address | None
    inner: str


class Dataflow(Scheduler[Sequence[Delta]]):
    """The nodes of a plan at work.

    Args:
        plan: The plan.
        hosted: The ids of the stateful nodes that run here; None for all. Stateless nodes run everywhere.
        fused: Joins that run as one (`squall.builders.runtime.multiway_join`), by the last of them. All are hosted.
        reading: The `Scan` nodes that read the input; None for all.
        tuning: The tuning values of the runtime.
    """

    def __init__(
        self,
        plan: Plan,
        hosted: Collection[str] | None = None,
        fused: Mapping[str, FusedJoin] = MappingProxyType({}),
        reading: Collection[str] | None = None,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        super().__init__(plan)
        self.tuning = tuning
        self.hosted = set(plan.by_id) if hosted is None else set(hosted)
        self.fused_addresses = dict(fused_addresses(fused))
        """The address of the fused join, by the address of each of its inputs in the plan."""
        inner = {id for join in fused.values() for id in join.joins}
        working = (node for node in plan.nodes if self._is_hosted(node) and node.id not in inner)
        self.operators: dict[str, Operator] = {node.id: make_operator(node, plan, tuning) for node in working}
        self.operators |= {
            id: MultiwayJoinOperator(join.shape, merging_of(plan.by_id[id], plan), tuning) for id, join in fused.items()
        }
        creating_steps = self.creation_limits.steps(lambda id: cast(StatelessOperator, self.operators[id]).step)
        self.operators |= {id: StatelessOperator(step) for id, step in creating_steps.items()}
        self.updates = {id: op for id, op in self.operators.items() if isinstance(op, UpdateOperator)}
        self.derived_streams = {id: op for id, op in self.operators.items() if isinstance(op, DerivedStreamOperator)}
        self.outbox: dict[Address, list[Delta]] = {}
        self.alphas = {
            node.id: AlphaNetwork(plan, node.id, tuning=tuning) for node in plan.nodes if self.feeds_matches(node)
        }
        self.targets = {node.id: self._targets(node.id) for node in plan.nodes}
        self.constant_consumers = {node.id: self.consumers_by_constant(node.id) for node in plan.nodes}
        for id in self.constant_consumers:
            self.targets[id] += tuple(self._constant_targets(id))
        at_work = (node for node in plan.nodes if reading is None or node.id in reading)
        self.readers = {node.id: self._reader(node) for node in at_work if isinstance(node.op, Scan)}
        self.units = [node.id for node in plan.nodes if isinstance(node.op, Unit)]
        self.time_dependent = [op for op in self.operators.values() if isinstance(op, TimeDependentOperator)]
        self.event_time_operators = {
            id: op for id, op in self.operators.items() if isinstance(op, EventTimeOperator) and not _is_output(op)
        }
        """The nodes inside the plan that process complete instants."""
        emitters = {
            id: op.emitter if isinstance(op, DerivedStreamOperator) else op for id, op in self.operators.items()
        }
        snapshot_nodes = {
            id: op.instants for id, op in emitters.items() if isinstance(op, OutputOperator) and op.instants is not None
        }
        self.instants = list(snapshot_nodes.values())
        """The evaluation instants of rstream outputs."""
        feeds = [(node, node.op) for node in reversed(plan.nodes) if isinstance(node.op, DerivedStream)]
        streams_by_key = {(op.output_key, *(edge.node for edge in node.inputs)): node.id for node, op in feeds}
        self.stream_leaders = set(streams_by_key.values())
        """For each derived stream, the first of the nodes that read it through a window.

        That node reports the events of the stream before any of the others emits them.
        """
        self.needs_complete_instants = any(isinstance(op, EventTimeOperator) for op in self.operators.values())
        """Whether an instant can be processed only when all its events are there."""
        self.inserted = InsertedFacts()
        self.stateful = {id: op for id, op in self.operators.items() if isinstance(op, Stateful)}
        self.states: dict[str, Stateful] = {**self.stateful, **self.readers, INSERTED_FACTS: self.inserted}
        """Everything that a checkpoint needs, by the id of the node, where it belongs to one."""
        self.states |= {f"{id}{REPORT_TIMES_SUFFIX}": DiffedState(instants) for id, instants in snapshot_nodes.items()}
        self.expires = plan.has_expiring_windows or bool(plan.retractable)

    def _is_hosted(self, node: Node) -> bool:
        return not is_stateful(node.op) or node.id in self.hosted

    def _targets(self, id: str) -> tuple[Target, ...]:
        """Returns where the rows of a node go, without `Match` and `ConstantFilter` nodes."""
        nodes = [(self.plan.by_id[consumer], port) for consumer, port in self.plan.consumers[id]]
        return tuple(
            self._target(node, port) for node, port in nodes if not isinstance(node.op, Match | ConstantFilter)
        )

    def _target(self, node: Node, port: int) -> Target:
        """Returns the target behind stateless nodes, which are chained to one step as long as each feeds one node
        alone."""
        steps: list[Step] = []
        while not is_stateful(node.op):
            steps.append(cast(StatelessOperator, self.operators[node.id]).step)
            targets = self.plan.consumers[node.id]
            following = self.plan.by_id[targets[0][0]] if len(targets) == 1 else None
            if following is None or isinstance(following.op, Match | ConstantFilter):
                return Target(stateless.chain_steps(steps), None, node.id)
            node, port = following, targets[0][1]
        address = (node.id, port if _distinguishes_ports(node.op) else 0)
        return Target(stateless.chain_steps(steps), self.fused_addresses.get(address, address), "")

    def _constant_targets(self, id: str) -> Iterator[Target]:
        """Yields targets for rules that differ in constants only: each is a `ConstantFilter` before a `Construct`.

        There may be very many of them. They are removed from `constant_consumers`.
        """
        alike: dict[tuple[int, Address, stateless.TemplateShape], list[tuple[Term, Construct]]] = {}
        for column, table in self.constant_consumers[id].items():
            for term, consumers in list(table.items()):
                table[term] = [consumer for consumer in consumers if self._only_construct(consumer) is None]
                for address, emit in filter(None, map(self._only_construct, consumers)):
                    key = (column, address, stateless.template_shape(emit.template))
                    alike.setdefault(key, []).append((term, emit))
                if not table[term]:
                    del table[term]
        for (column, address, _), emits in alike.items():
            yield Target(
                stateless.construct_by_constant_step(column, emits, self.plan.widths[id], self.plan.unbound[id]),
                address,
                "",
            )

    def _only_construct(self, id: str) -> tuple[Address, Construct] | None:
        """Returns the `Construct` that is the only consumer of a node, with the address of its only consumer; otherwise
        None."""
        consumers = self.plan.consumers[id]
        emit = self.plan.by_id[consumers[0][0]].op if len(consumers) == 1 else None
        if not isinstance(emit, Construct):
            return None
        address = self.targets[id][0].address
        return None if address is None else (address, emit)

    def _reader(self, node: Node) -> ScanOperator:
        op = node.op
        assert isinstance(op, Scan)
        alpha = self.alphas.get(node.id)
        reads_all_triples = bool(self.targets[node.id]) or (alpha is not None and alpha.any_predicate is not None)
        reads_atoms = bool(self.targets[node.id]) or (alpha is not None and bool(alpha.atoms))
        deletes_static = self.plan.deletes
        tracks_facts = op.source.removals or deletes_static
        predicates = alpha.predicates if alpha else ()
        return ScanOperator(
            op.source,
            predicates,
            reads_all_triples,
            reads_atoms,
            tracks_facts,
            deletes_static,
            derived_streams=op.derived_streams,
            tuning=self.tuning,
        )

    # Input

    def start(self, begin: int = 0) -> None:
        """Emits what holds without any input: the bodies of axioms.

        Args:
            begin: The time (integer ms) that functions of time use for what always holds.
        """
        self.begin(begin)
        for id in self.units:
            self.emit(id, [UNIT])

    def begin(self, time: int) -> None:
        """Sets the time (integer ms) that functions of time use for what always holds."""
        for op in self.time_dependent:
            op.begin = time

    def read(self, events: Sequence[Event]) -> None:
        """Reads events into the `Scan` nodes."""
        for instants in self.instants:
            instants.add(events)
        for id, reader in self.readers.items():
            facts = reader.read_columns(events) if isinstance(events, Columns) else reader.read(events)
            self._put_facts(id, facts)

    def advance_time(self, time: int) -> None:
        """Notes that time has reached `time` (integer ms), though its events may not have been read yet."""
        for instants in self.instants:
            instants.advance_time(time)

    def remove(self, fact: Fact, time: int, stream: str | None = None) -> None:
        """Removes a fact from a stream, or from all of them (None): what was read or inserted of it before this time
        ends now."""
        for id, reader in self.readers.items():
            self._put_entries(id, reader.remove(fact, time, stream))
        for id, feed in self.derived_streams.items():
            self.emit(id, feed.remove(fact, time, stream))
        for source_stream, updates, arrival in self.inserted.remove(fact, stream):
            self._put_inserted(updates, source_stream, fact, arrival, time, -1)

    def insert(self, fact: Fact, time: int, stream: str, updates: Sequence[str]) -> None:
        """Inserts a fact into a stream from now on, unless it was inserted already.

        Args:
            fact: The fact.
            time: Integer ms.
            stream: The stream.
            updates: The ids of the update nodes that insert it.
        """
        if self.inserted.insert(fact, time, stream, updates):
            self._put_inserted(updates, stream, fact, time, time, 1)

    def _put_inserted(
        self, updates: Sequence[str], stream: str, fact: Fact, arrival: int, time: int, weight: int
    ) -> None:
        """Begins or ends a fact that updates inserted at the time `arrival`. Each update node also outputs it."""
        for id, reader in self.readers.items():
            self._put_entries(id, reader.insert(stream, fact, arrival, time, weight))
        for update in updates if stream != NOTES else ():
            self.emit(update, [(*fact_row(fact, self.updates[update].rule), time, FOREVER, weight)])

    def _put_entries(self, id: str, deltas: Sequence[Delta]) -> None:
        facts, reader = ScannedFacts(), self.readers[id]
        facts.put(deltas, reader.predicates, reader.reads_all_triples, reader.reads_atoms)
        self._put_facts(id, facts)

    def _put_facts(self, id: str, facts: ScannedFacts) -> None:
        alpha = self.alphas.get(id)
        if alpha is not None:
            for match, rows in alpha.triples(facts.boxes, facts.triples):
                self.emit(match, rows)
            for kind_of, deltas in by_kind(facts.atoms).items():
                for match, rows in alpha.atoms_rows(kind_of, deltas):
                    self.emit(match, rows)
        self._emit_to_targets(id, facts.triples + facts.atoms)

    def put(self, address: Address, deltas: Sequence[Delta]) -> None:
        """Adds deltas to an input of a stateful node: to its inbox if it runs here, otherwise to the outbox."""
        if address[0] in self.operators:
            self.receive(address, deltas)
        else:
            self.outbox.setdefault(address, []).extend(deltas)

    def emit(self, id: str, deltas: Sequence[Delta]) -> None:
        """Emits the deltas of a node to its consumers, through stateless nodes."""
        if not deltas:
            return
        if id in self.alphas:
            for match, rows in self.alphas[id].rows(deltas):
                self.emit(match, rows)
        self._emit_to_targets(id, deltas)

    def _emit_to_targets(self, id: str, deltas: Sequence[Delta]) -> None:
        if deltas:
            for step, address, inner in self.targets[id]:
                rows = step(deltas) if step is not None else deltas
                if address is None:
                    self.emit(inner, rows)
                elif rows:
                    self.put(address, rows)
            for column, table in self.constant_consumers[id].items():
                self._emit_by_constant(column, table, deltas)

    def _emit_by_constant(self, column: int, table: dict[Term, list[str]], deltas: Sequence[Delta]) -> None:
        hits: dict[Term, list[Delta]] = {}
        for delta in deltas:
            if (term := delta[column]) in table:
                hits.setdefault(term, []).append(delta)
        for term, part in hits.items():
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
        self.creation_limits.begin()
        self._wake(now)
        for component in self.ready_components():
            if len(component) == 1:
                self.step(component[0])
                time_driven = self.event_time_operators.get(component[0])
                if time_driven is not None and (complete or not isinstance(time_driven, DerivedStreamOperator)):
                    self._advance(component[0], time_driven, now)
            else:
                self._recursion(component)

    def _advance(self, id: str, op: EventTimeOperator, now: int) -> None:
        self.emit(id, op.advance(now))
        if isinstance(op, DerivedStreamOperator) and id in self.stream_leaders:
            for instants in self.instants:
                instants.add(op.events)
            self._wake(now)

    def _wake(self, now: int) -> None:
        """Schedules the nodes that have work up to `now`."""
        for id, op in self.event_time_operators.items():
            if op.next_time <= now:
                heapq.heappush(self.component_queue, self.component_of[id])

    def next_time(self) -> int:
        """Returns the next time at which there is work without further input; FOREVER if there is none."""
        times = (op.next_time for op in self.operators.values() if isinstance(op, EventTimeOperator | SinkOperator))
        return min(times, default=FOREVER)

    def pop_graph_updates(self, now: int) -> list[tuple[int, str, GraphUpdate]]:
        """Returns (time, update node, graph update) for the graph updates up to and including `now`."""
        return [(time, id, demand) for id, op in self.updates.items() for time, demand in op.pop_graph_updates(now)]

    def expire(self, now: int) -> None:
        """Drops expired rows. No later delta begins before `now`."""
        if self.expires:
            for op in self.stateful.values():
                op.expire(now)
            for reader in self.readers.values():
                reader.expire(now)

    def state(self) -> dict[str, int]:
        """Returns the number of rows in the state of each node."""
        return {id: op.size() for id, op in self.stateful.items()} | {id: r.size() for id, r in self.readers.items()}

    def step(self, id: str) -> None:
        """Processes the inbox of one node; the right side of two first, which causes fewer retractions."""
        ports = self.inbox.pop(id, {})
        for port in sorted(ports, reverse=True):
            parts = ports[port]
            deltas = parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))
            limit = self.creation_limits.by_node.get(id)
            if limit is None:
                self.emit(id, self.apply(id, port, deltas))
            else:
                process_in_parts(deltas, partial(self._process_limited, limit, id, port))

    def _process_limited(self, limit: CreationLimit, id: str, port: int, deltas: Sequence[Delta]) -> int:
        """Processes deltas with a node of a limited recursion. Returns how many there are afterwards."""
        output = self.apply(id, port, deltas)
        limit.add_rows(len(output))
        self.emit(id, output)
        return len(output)

    def pending_rows(self, id: str) -> int:
        return sum(map(len, chain.from_iterable(self.inbox.get(id, {}).values())))

    def live_rows(self, component: Iterable[str]) -> int:
        return sum(self.stateful[id].size() for id in component if id in self.stateful)

    def apply(self, id: str, port: int, deltas: Sequence[Delta]) -> Sequence[Delta]:
        """Processes deltas with a stateful node."""
        return self.operators[id].apply(port, deltas)

    def _recursion(self, component: Sequence[str]) -> None:
        deleters = [op for id in component if isinstance(op := self.operators.get(id), DRedDistinct)]
        if deleters:
            self.delete(component)
            self.rederive(component)
        self.fixpoint(component)

    def delete(self, component: Sequence[str]) -> None:
        """Runs the first phase of delete and rederive: it retracts all rows that may have lost their derivation."""
        self._set_deleting(component, True)
        self.fixpoint(component)
        self._set_deleting(component, False)

    def rederive(self, component: Sequence[str]) -> None:
        """Runs the second phase of delete and rederive: rows that still have a derivation come back."""
        for id in component:
            op = self.operators.get(id)
            if isinstance(op, DRedDistinct):
                self.emit(id, op.rederive())

    def _set_deleting(self, component: Sequence[str], deleting: bool) -> None:
        for id in component:
            op = self.operators.get(id)
            if isinstance(op, DRedDistinct):
                op.deleting = deleting

    # State

    def enable_changelog(self) -> None:
        """Starts to log the changes of all states for `drain_changelog`."""
        for memory in self.states.values():
            memory.enable_changelog()

    def drain_changelog(self) -> Iterator[tuple[str, int, list[Delta]]]:
        """Yields (state, slot, deltas) for all changes since the last call. It needs `enable_changelog`."""
        for id, memory in self.states.items():
            yield from ((id, slot, deltas) for slot, deltas in memory.drain_changelog())

    def restore(self, watermark: int, state: Mapping[tuple[str, int], Sequence[Delta]]) -> None:
        """Restores the states from all that `drain_changelog` ever yielded in a dataflow of this plan, with the same
        `hosted` and `fused`.

        It is called before anything else. Where all hosted nodes can run on several workers, it may be called again
        between two batches, with what such a dataflow has logged since. `enable_changelog` has to be called again
        afterwards.

        Args:
            watermark: The time (integer ms) up to which that dataflow had processed its input.
            state: The deltas by state and slot.
        """
        for memory in self.states.values():
            memory.log = None
            memory.resume_at(watermark)
        for (id, slot), deltas in sorted(state.items()):
            self.states[id].restore(slot, deltas)


def _distinguishes_ports(op: Kind) -> bool:
    """Returns whether it matters to a node on which input a row comes."""
    return isinstance(op, Join | LeftJoin | AntiJoin)


def _is_output(op: EventTimeOperator) -> bool:
    return isinstance(op, OutputOperator | UpdateOperator)
