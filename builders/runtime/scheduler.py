"""Inboxes, and the order in which they are worked off: what all that runs a plan in one process has in common."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from squall.plan import Node, Plan
from squall.plan.operators import ConstantFilter, Match
from squall.rdf import Term

Address = tuple[str, int]
"""A node and the number of one of its inputs."""
Batch = TypeVar("Batch")


class Scheduler(Generic[Batch]):
    """Nodes with inboxes, worked off component by component in topological order, semi-naive inside recursive ones."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.inbox: dict[str, dict[int, list[Batch]]] = {}
        """What has come for each node, by the number of the input."""
        self.component_of = {id: number for number, part in enumerate(plan.components) for id in part}
        self.component_queue: list[int] = []
        """The numbers of the components that have work, as a heap: topological order."""

    def feeds_matches(self, node: Node) -> bool:
        """Whether a node's rows are facts that are matched."""
        return any(isinstance(self.plan.by_id[id].op, Match) for id, _ in self.plan.consumers[node.id])

    def consumers_by_constant(self, id: str) -> dict[int, dict[Term, list[str]]]:
        """The `ConstantFilter` nodes that read a node, by column and term."""
        consumers: dict[int, dict[Term, list[str]]] = {}
        for consumer, _ in self.plan.consumers[id]:
            op = self.plan.by_id[consumer].op
            if isinstance(op, ConstantFilter):
                consumers.setdefault(op.column, {}).setdefault(op.term, []).append(consumer)
        return consumers

    def receive(self, address: Address, batch: Batch) -> None:
        """Puts a batch into the inbox of a node."""
        id, port = address
        pending = self.inbox.get(id)
        if pending is None:
            self.inbox[id] = {port: [batch]}
            heapq.heappush(self.component_queue, self.component_of[id])
        elif port in pending:
            pending[port].append(batch)
        else:
            pending[port] = [batch]

    def ready_components(self) -> Iterator[tuple[str, ...]]:
        """The components that have work, in topological order, until none has. Each has to be worked off when given."""
        last = None
        while self.component_queue:
            number = heapq.heappop(self.component_queue)
            component = self.plan.components[number]
            if number != last or self.pending(component):
                yield component
            last = number

    def fixpoint(self, component: Sequence[str]) -> None:
        """Works off a component, round by round, until none of its nodes has anything in its inbox."""
        while self.pending(component):
            for id in component:
                if id in self.inbox:
                    self.step(id)

    def pending(self, component: Iterable[str]) -> bool:
        """Whether a node of the component has work."""
        return any(id in self.inbox for id in component)

    def step(self, id: str) -> None:
        """Lets one node work off its inbox."""
        raise NotImplementedError
