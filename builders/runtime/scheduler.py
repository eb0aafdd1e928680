"""Inboxes of nodes and the order in which they are processed, shared by all dataflows that run in one process."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from squall.builders.runtime.creation_limit import CreationLimits
from squall.plan import Node, Plan
from squall.plan.operators import ConstantFilter, Match
from squall.rdf import Term

Address = tuple[str, int]
"""The id of a node and the number of one of its inputs."""
Batch = TypeVar("Batch")


class Scheduler(Generic[Batch]):
    """Processes the inboxes of nodes, component by component in topological order, semi-naive inside recursive ones."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.inbox: dict[str, dict[int, list[Batch]]] = {}
        """The batches that wait for each node, by the number of the input."""
        self.component_of = {id: number for number, part in enumerate(plan.components) for id in part}
        self.component_queue: list[int] = []
        """The numbers of the components that have work, as a heap in topological order."""
        self.creation_limits = CreationLimits(plan)

    def feeds_matches(self, node: Node) -> bool:
        """Returns whether the rows of a node are facts that `Match` nodes read."""
        return any(isinstance(self.plan.by_id[id].op, Match) for id, _ in self.plan.consumers[node.id])

    def consumers_by_constant(self, id: str) -> dict[int, dict[Term, list[str]]]:
        """Returns the `ConstantFilter` nodes that read a node, by column and term."""
        consumers: dict[int, dict[Term, list[str]]] = {}
        for consumer, _ in self.plan.consumers[id]:
            op = self.plan.by_id[consumer].op
            if isinstance(op, ConstantFilter):
                consumers.setdefault(op.column, {}).setdefault(op.term, []).append(consumer)
        return consumers

    def receive(self, address: Address, batch: Batch) -> None:
        """Adds a batch to the inbox of a node."""
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
        """Yields the components that have work, in topological order, until none has.

        The caller has to process each component before it takes the next one.
        """
        last = None
        while self.component_queue:
            number = heapq.heappop(self.component_queue)
            component = self.plan.components[number]
            if number != last or self.pending(component):
                yield component
            last = number

    def fixpoint(self, component: Sequence[str]) -> None:
        """Processes a component, iteration by iteration, until the inboxes of all its nodes are empty."""
        limit = self.creation_limits.by_node.get(component[0])
        if limit is not None:
            limit.enter(sum(map(self.pending_rows, component)), lambda: self.live_rows(component))
        while self.pending(component):
            if limit is not None:
                limit.iteration += 1
            for id in component:
                if id in self.inbox:
                    self.step(id)

    def pending(self, component: Iterable[str]) -> bool:
        """Returns whether a node of the component has work."""
        return any(id in self.inbox for id in component)

    def pending_rows(self, id: str) -> int:
        """Returns the number of rows in the inbox of a node."""
        raise NotImplementedError

    def live_rows(self, component: Iterable[str]) -> int:
        """Returns the number of rows in the state of a component."""
        raise NotImplementedError

    def step(self, id: str) -> None:
        """Processes the inbox of one node."""
        raise NotImplementedError
