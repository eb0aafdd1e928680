"""Runs nodes of a plan over entries to the fixpoint: the heart of every builder.

A machine hosts all nodes of a plan (in process) or those of one stage (inside a distributed engine). Entries are put
into the inbox of a node that keeps rows, through all that do not; `run` works the inboxes off component by component in
topological order, semi-naive inside recursive ones. What is meant for nodes that the machine does not host is left in
the outbox.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, cast

from squall.builders.runtime.alpha import AlphaNetwork, by_kind
from squall.builders.runtime.multiway_join import FusedJoin, fused_addresses
from squall.builders.runtime.operators import Operator, has_expiring_windows, make_operator, stateless
from squall.builders.runtime.operators.derived_stream import DerivedStreamOperator
from squall.builders.runtime.operators.distinct import DRedDistinct, TimeDependentOperator
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.multiway_join import MultiwayJoinOperator
from squall.builders.runtime.operators.output import AppendOnlyOutput, OutputOperator
from squall.builders.runtime.operators.scan import ScannedFacts, ScanOperator
from squall.builders.runtime.operators.state import DiffedState, Stateful
from squall.builders.runtime.operators.stateless import StatelessOperator, Step
from squall.builders.runtime.operators.update import GraphUpdate, InsertedFacts, UpdateOperator
from squall.builders.runtime.scheduler import Address, Scheduler
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
"""The memory of what updates have inserted."""
REPORT_TIMES_SUFFIX = "/report-times"
"""Behind the name of a node: the memory of its evaluation instants."""


class Target(NamedTuple):
    """Where rows go: what is made of them on the way, and the input of a node that keeps rows, or else (address None)
    the node without memory that has made this of them."""

    step: Step | None
    address: Address | None
    inner: str


class Dataflow(Scheduler[Sequence[Delta]]):
    """The nodes of a plan at work. `hosted`: the ids of those that keep rows (None: all); others work everywhere.
    fused: joins that are done as one (`squall.builders.runtime.multiway_join`), by the last of them; all are hosted.
    reading: the `Scan` nodes that read what comes (None: all)."""

    def __init__(
        self,
        plan: Plan,
        hosted: Collection[str] | None = None,
        fused: Mapping[str, FusedJoin] = MappingProxyType({}),
        reading: Collection[str] | None = None,
    ) -> None:
        super().__init__(plan)
        self.hosted = set(plan.by_id) if hosted is None else set(hosted)
        self.fused_addresses = dict(fused_addresses(fused))
        """Where rows go that would go to a join which is done together with others."""
        inner = {id for star in fused.values() for id in star.joins}
        working = (node for node in plan.nodes if self._is_hosted(node) and node.id not in inner)
        self.operators: dict[str, Operator] = {node.id: make_operator(node, plan) for node in working}
        self.operators |= {id: MultiwayJoinOperator(star.shape) for id, star in fused.items()}
        self.updates = {id: op for id, op in self.operators.items() if isinstance(op, UpdateOperator)}
        self.derived_streams = {id: op for id, op in self.operators.items() if isinstance(op, DerivedStreamOperator)}
        self.outbox: dict[Address, list[Delta]] = {}
        self.alphas = {node.id: AlphaNetwork(plan, node.id) for node in plan.nodes if self.feeds_matches(node)}
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
        """The nodes inside the plan that look at whole instants."""
        emitters = {
            id: op.emitter if isinstance(op, DerivedStreamOperator) else op for id, op in self.operators.items()
        }
        snapshot_nodes = {
            id: op.instants for id, op in emitters.items() if isinstance(op, OutputOperator) and op.instants is not None
        }
        self.instants = list(snapshot_nodes.values())
        """Those of what is told whole."""
        feeds = [(node, node.op) for node in reversed(plan.nodes) if isinstance(node.op, DerivedStream)]
        streams_by_key = {(op.output_key, *(edge.node for edge in node.inputs)): node.id for node, op in feeds}
        self.stream_leaders = set(streams_by_key.values())
        """Of the nodes that read what is told of the same facts in one way, each through a window, the first one: it
        says when the stream has events, before any of them hands them on."""
        self.needs_complete_instants = any(isinstance(op, EventTimeOperator) for op in self.operators.values())
        """Whether an instant can be worked off only when all of it is there."""
        self.inserted = InsertedFacts()
        self.stateful = {id: op for id, op in self.operators.items() if isinstance(op, Stateful)}
        self.states: dict[str, Stateful] = {**self.stateful, **self.readers, INSERTED_FACTS: self.inserted}
        """All that has to be known to go on elsewhere; by the node, where it is that of one."""
        self.states |= {f"{id}{REPORT_TIMES_SUFFIX}": DiffedState(instants) for id, instants in snapshot_nodes.items()}
        self.expires = has_expiring_windows(plan) or bool(plan.retractable)

    def _is_hosted(self, node: Node) -> bool:
        return not is_stateful(node.op) or node.id in self.hosted

    def _targets(self, id: str) -> tuple[Target, ...]:
        """Where the rows of a node go, `Match` and `ConstantFilter` nodes apart."""
        nodes = [(self.plan.by_id[consumer], port) for consumer, port in self.plan.consumers[id]]
        return tuple(
            self._target(node, port) for node, port in nodes if not isinstance(node.op, Match | ConstantFilter)
        )

    def _target(self, node: Node, port: int) -> Target:
        """Through nodes without memory, as long as these feed one node alone, in one go."""
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
        """Targets for the rules that differ in constants alone: each is a `ConstantFilter` before an `Construct`, and
        there may be very many of them. They are taken out of the switches."""
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
        """The emit that is all that a node feeds, with the input to which its facts go, if that is all as well."""
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
        every = bool(self.targets[node.id]) or (alpha is not None and alpha.any_predicate is not None)
        atoms = bool(self.targets[node.id]) or (alpha is not None and bool(alpha.atoms))
        updated = self.plan.deletes
        remembers = op.source.removals or updated
        predicates = alpha.predicates if alpha else ()
        return ScanOperator(op.source, predicates, every, atoms, remembers, updated, own=op.derived_streams)

    # What comes in

    def start(self, begin: int = 0) -> None:
        """Puts in what holds without any input: the bodies of axioms. begin: the time (integer ms) that functions of
        time take for that of what always holds."""
        self.begin(begin)
        for id in self.units:
            self.emit(id, [UNIT])

    def begin(self, time: int) -> None:
        """Says what functions of time take for the time of what always holds (integer ms)."""
        for op in self.time_dependent:
            op.begin = time

    def read(self, events: Sequence[Event]) -> None:
        """Puts the facts of events into the nodes that read them."""
        for instants in self.instants:
            instants.add(events)
        for id, reader in self.readers.items():
            facts = reader.read_columns(events) if isinstance(events, Columns) else reader.read(events)
            self._put_facts(id, facts)

    def advance_time(self, time: int) -> None:
        """Events say that time has come so far (integer ms), though they may not have been read yet."""
        for instants in self.instants:
            instants.advance_time(time)

    def remove(self, fact: Fact, time: int, stream: str | None = None) -> None:
        """Takes a fact out of a stream, or of all of them (None): what was brought or inserted of it before this time
        ends now."""
        for id, reader in self.readers.items():
            self._put_entries(id, reader.remove(fact, time, stream))
        for id, feed in self.derived_streams.items():
            self.emit(id, feed.remove(fact, time, stream))
        for source_stream, updates, arrival in self.inserted.remove(fact, stream):
            self._put_inserted(updates, source_stream, fact, arrival, time, -1)

    def insert(self, fact: Fact, time: int, stream: str, updates: Sequence[str]) -> None:
        """Puts a fact into a stream from now on, unless it has been put there already. updates: the nodes of those that
        do."""
        if self.inserted.insert(fact, time, stream, updates):
            self._put_inserted(updates, stream, fact, time, time, 1)

    def _put_inserted(
        self, updates: Sequence[str], stream: str, fact: Fact, arrival: int, time: int, weight: int
    ) -> None:
        """A fact that updates inserted at the time `came` begins or ends: it is told as each of them is."""
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
        """Puts entries on an input of a node that keeps rows: into its inbox if it works here, into the outbox
        otherwise."""
        if address[0] in self.operators:
            self.receive(address, deltas)
        else:
            self.outbox.setdefault(address, []).extend(deltas)

    def emit(self, id: str, deltas: Sequence[Delta]) -> None:
        """Hands on what a node has made, through the nodes that keep no rows."""
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

    # Work

    def run(self, now: int = ALWAYS, complete: bool = True) -> None:
        """Works until every inbox is empty. now: all that begins at this time (integer ms) or before has been put in,
        so that instants up to then can be looked at as a whole. complete: False while something may still be added at
        this time, so that streams which the program makes cannot be told."""
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
        """Gives work to the nodes for which something is to be done by now."""
        for id, op in self.event_time_operators.items():
            if op.next_time <= now:
                heapq.heappush(self.component_queue, self.component_of[id])

    def next_time(self) -> int:
        """The next time at which something is to be done, if nothing comes in before; FOREVER: never."""
        has_expiring_windows = (
            op.next_time for op in self.operators.values() if isinstance(op, EventTimeOperator | AppendOnlyOutput)
        )
        return min(has_expiring_windows, default=FOREVER)

    def pop_graph_updates(self, now: int) -> list[tuple[int, str, GraphUpdate]]:
        """What updates have demanded, up to a time: (time, node of the update, what)."""
        return [(time, id, demand) for id, op in self.updates.items() for time, demand in op.pop_graph_updates(now)]

    def expire(self, now: int) -> None:
        """Forgets what has ended: nothing that is still to come begins before `now`."""
        if self.expires:
            for op in self.stateful.values():
                op.expire(now)
            for reader in self.readers.values():
                reader.expire(now)

    def state(self) -> dict[str, int]:
        """How many rows each node keeps."""
        return {id: op.size() for id, op in self.stateful.items()} | {id: r.size() for id, r in self.readers.items()}

    def step(self, id: str) -> None:
        """Lets one node work off its inbox; the right side of two first, so that less has to be taken back."""
        ports = self.inbox.pop(id, {})
        for port in sorted(ports, reverse=True):
            parts = ports[port]
            deltas = parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))
            self.emit(id, self.apply(id, port, deltas))

    def apply(self, id: str, port: int, deltas: Sequence[Delta]) -> Sequence[Delta]:
        """What a node that keeps rows makes of entries."""
        return self.operators[id].apply(port, deltas)

    def _recursion(self, component: Sequence[str]) -> None:
        deleters = [op for id in component if isinstance(op := self.operators.get(id), DRedDistinct)]
        if deleters:
            self.delete(component)
            self.rederive(component)
        self.fixpoint(component)

    def delete(self, component: Sequence[str]) -> None:
        """The first phase of delete and rederive: takes back all that may have lost its reason."""
        self._set_deleting(component, True)
        self.fixpoint(component)
        self._set_deleting(component, False)

    def rederive(self, component: Sequence[str]) -> None:
        """The second phase: what is left with a reason comes back."""
        for id in component:
            op = self.operators.get(id)
            if isinstance(op, DRedDistinct):
                self.emit(id, op.rederive())

    def _set_deleting(self, component: Sequence[str], deleting: bool) -> None:
        for id in component:
            op = self.operators.get(id)
            if isinstance(op, DRedDistinct):
                op.deleting = deleting

    # What is kept

    def enable_changelog(self) -> None:
        """From now on, `drain_changelog` tells what goes into memories."""
        for memory in self.states.values():
            memory.enable_changelog()

    def drain_changelog(self) -> Iterator[tuple[str, int, list[Delta]]]:
        """(memory, slot, entries) for all that went into memories since the last call, if `enable_changelog` was called before."""
        for id, memory in self.states.items():
            yield from ((id, slot, deltas) for slot, deltas in memory.drain_changelog())

    def restore(self, watermark: int, state: Mapping[tuple[str, int], Sequence[Delta]]) -> None:
        """Takes back all that a machine of this plan, with the same `hosted` and `fused`, ever emitter by `drain_changelog`, when
        it had worked off the time up to `passed` (integer ms). To be called before anything else; or again, between two
        batches, with what such a machine has told since, where all that it hosts can be spread over workers. `enable_changelog` has
        to be called anew then."""
        for memory in self.states.values():
            memory.log = None
            memory.resume_at(watermark)
        for (id, slot), deltas in sorted(state.items()):
            self.states[id].restore(slot, deltas)


def _distinguishes_ports(op: Kind) -> bool:
    """Whether it matters to a node on which input a row comes."""
    return isinstance(op, Join | LeftJoin | AntiJoin)


def _is_output(op: EventTimeOperator) -> bool:
    return isinstance(op, OutputOperator | UpdateOperator)
