"""Runs nodes of a plan over entries to the fixpoint: the heart of every builder.

A machine hosts all nodes of a plan (in process) or those of one stage (inside a distributed engine). Entries are put
into the inbox of a node, `run` works them off component by component in topological order, semi-naive inside recursive
ones, and what is meant for nodes that the machine does not host is left in the outbox.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter

from squall.builders.rows import UNIT, Entry, Keeping, Operator, RecursiveDistinct, Row, operator
from squall.operators import Deliver, Match, Read, Unit, is_stateful
from squall.plan import Node, Plan

Address = tuple[str, int]
"""A node and the number of one of its inputs."""


class Machine:
    """The nodes of a plan at work. `hosted`: the ids of those that keep rows (None: all); others work everywhere."""

    def __init__(self, plan: Plan, hosted: Collection[str] | None = None) -> None:
        self.plan = plan
        self.hosted = set(plan.by_id) if hosted is None else set(hosted)
        working = (node for node in plan.nodes if self._works(node))
        self.operators: dict[str, Operator] = {node.id: operator(node, plan) for node in working}
        self.ports = {node.id: len(node.inputs) for node in plan.nodes}
        self.inbox: dict[Address, list[Entry]] = {}
        self.outbox: dict[Address, list[Entry]] = {}
        self.outlets = {id: _Outlet(plan, id) for id in plan.by_id}
        self.component_of = {id: number for number, part in enumerate(plan.components) for id in part}
        self.waiting: list[int] = []
        """The numbers of the components that have work, as a heap: topological order."""

    def _works(self, node: Node) -> bool:
        return not is_stateful(node.op) or node.id in self.hosted

    def start(self) -> None:
        """Puts in what holds without any input: the bodies of axioms."""
        for node in self.plan.nodes:
            if isinstance(node.op, Unit):
                self.answer(node.id, [UNIT])

    def read(self, source: str, entries: Sequence[Entry]) -> None:
        """Puts facts of a source into the nodes that read it; those of any stream go to the default source as well."""
        for node in self.plan.nodes:
            if isinstance(node.op, Read) and node.op.source.iri in ("", source):
                self.answer(node.id, entries)

    def put(self, address: Address, entries: Sequence[Entry]) -> None:
        """Puts entries on an input of a node: into its inbox if it works here, into the outbox otherwise."""
        if address[0] in self.operators:
            self.receive(address, entries)
        else:
            self.outbox.setdefault(address, []).extend(entries)

    def receive(self, address: Address, entries: Iterable[Entry]) -> None:
        """Puts entries into the inbox of a node that works here."""
        known = self.inbox.get(address)
        if known is None:
            self.inbox[address] = list(entries)
            heapq.heappush(self.waiting, self.component_of[address[0]])
        else:
            known.extend(entries)

    def answer(self, id: str, entries: Sequence[Entry]) -> None:
        """Hands on what a node has made."""
        if entries:
            for address, part in self.outlets[id].parts(entries):
                self.put(address, part)

    def run(self) -> None:
        """Works until every inbox is empty."""
        for component in self.busy():
            if len(component) == 1:
                self.step(component[0])
            else:
                self._recursion(component)

    def busy(self) -> Iterator[tuple[str, ...]]:
        """The components that have work, in topological order, until none has. Each has to be worked off when given."""
        while self.waiting:
            component = self.plan.components[heapq.heappop(self.waiting)]
            if self.pending(component):
                yield component

    def step(self, id: str) -> None:
        """Lets one node work off its inbox; the right side of two first, so that less has to be taken back."""
        for port in range(self.ports[id] - 1, -1, -1):
            entries = self.inbox.pop((id, port), None)
            if entries:
                self.answer(id, self.operators[id].apply(port, entries))

    def _recursion(self, component: Sequence[str]) -> None:
        deleters = [op for id in component if isinstance(op := self.operators.get(id), RecursiveDistinct)]
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
            if isinstance(op, RecursiveDistinct):
                self.answer(id, op.rederive())

    def _set_deleting(self, component: Sequence[str], deleting: bool) -> None:
        for id in component:
            op = self.operators.get(id)
            if isinstance(op, RecursiveDistinct):
                op.deleting = deleting

    def fixpoint(self, component: Sequence[str]) -> None:
        """Works off a component, round by round, until none of its nodes has anything in its inbox."""
        while self.pending(component):
            for id in component:
                if id in self.operators:
                    self.step(id)

    def pending(self, component: Iterable[str]) -> bool:
        """Whether a node of the component has work."""
        return any((id, port) in self.inbox for id in component for port in range(self.ports[id]))

    def kept(self) -> Iterator[tuple[str, int, list[Entry]]]:
        """(node, slot, entries) for all that went into memories since the last call, if `keep` was called before."""
        for id, op in self.operators.items():
            if isinstance(op, Keeping):
                yield from ((id, slot, entries) for slot, entries in op.kept())

    def keep(self) -> None:
        """From now on, `kept` tells what goes into memories."""
        for op in self.operators.values():
            if isinstance(op, Keeping):
                op.keep()


class _Outlet:
    """Where the rows of a node go. A fact goes to those of its `Match` nodes only whose constants it has: the alpha
    network, as hash tables on the constant cells (Doorenbos 1995, 2.2.3)."""

    def __init__(self, plan: Plan, id: str) -> None:
        self.addresses: list[Address] = []
        self.tables: dict[tuple[int, ...], dict[Hashable, list[Address]]] = {}
        for address in plan.consumers[id]:
            op = plan.by_id[address[0]].op
            cells = _constants(op) if isinstance(op, Match) else ()
            if isinstance(op, Match) and cells and len(op.cells) == 3:
                key = itemgetter(*cells)(op.cells)
                self.tables.setdefault(cells, {}).setdefault(key, []).append(address)
            else:
                self.addresses.append(address)

    def parts(self, entries: Sequence[Entry]) -> Iterator[tuple[Address, Sequence[Entry]]]:
        """The addresses, and the entries for each."""
        for address in self.addresses:
            yield address, entries
        for cells, table in self.tables.items():
            hits: dict[Hashable, list[Entry]] = {}
            get = itemgetter(*cells)
            for entry in entries:
                if (key := _key(get, entry[0])) in table:
                    hits.setdefault(key, []).append(entry)
            for key, part in hits.items():
                yield from ((address, part) for address in table[key])


def _constants(op: Match) -> tuple[int, ...]:
    return tuple(i for i, cell in enumerate(op.cells) if isinstance(cell, str))


def _key(get: itemgetter[Hashable], row: Row) -> Hashable:
    return get(row) if len(row) > 2 else None


def deliver_of(plan: Plan) -> str:
    """The id of the operation node."""
    return next(node.id for node in plan.nodes if isinstance(node.op, Deliver))
