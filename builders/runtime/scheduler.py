"""Inboxes of nodes and the order in which they are processed, shared by all dataflows that run in one process."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar, cast

from squall.builders.runtime.creation_limit import CreationLimits
from squall.builders.runtime.memory_limit import MemoryLimit
from squall.builders.runtime.operators.factored import FactoredRows
from squall.plan import Plan
from squall.rdf import Term

Address = tuple[str, int]
"""The id of a node and the number of one of its inputs."""
Batch = TypeVar("Batch")


class Scheduler(Generic[Batch]):
    """Processes the inboxes of nodes, component by component in topological order, semi-naive inside recursive ones."""

    size_of: ClassVar[Any] = len
    """Returns the number of rows of a batch."""

    def __init__(self, plan: Plan, memory_limit: MemoryLimit | None = None) -> None:
        self.plan = plan
        self.inbox: dict[str, dict[int, list[Batch]]] = {}
        """The batches that wait for each node, by the number of the input."""
        self.component_of = {id: number for number, part in enumerate(plan.components) for id in part}
        self.component_queue: list[int] = []
        """The numbers of the components that have work, as a heap in topological order."""
        self.creation_limits = CreationLimits(plan)
        self.memory_limit = memory_limit
        """The limit that each step checks, if the run has one."""

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
            limit.enter(sum(map(self._pending_rows, component)), partial(self._live_rows, component))
        while self.pending(component):
            if limit is not None:
                limit.iteration += 1
            for id in component:
                if id in self.inbox:
                    self.step(id)

    def _live_rows(self, component: Iterable[str]) -> int:
        """Returns the number of rows in the state of a component."""
        rows = self.state()
        return sum(rows.get(id, 0) for id in component)

    def pending(self, component: Iterable[str]) -> bool:
        """Returns whether a node of the component has work."""
        return not self.inbox.keys().isdisjoint(component)

    def pending_rows(self) -> dict[str, int]:
        """Returns the number of rows that wait for each node."""
        return {id: self._pending_rows(id) for id in self.inbox}

    def _pending_rows(self, id: str) -> int:
        """Returns the number of rows in the inbox of a node."""
        return sum(map(self.size_of, chain.from_iterable(self.inbox.get(id, {}).values())))

    def state(self) -> dict[str, int]:
        """Returns the number of rows in the state of each node."""
        raise NotImplementedError

    def step(self, id: str) -> None:
        """Processes the inbox of one node."""
        raise NotImplementedError


def by_constant(column: int, terms: Container[Term], rows: Any) -> Mapping[Term, Any]:
    """Returns the rows, timed or not, that have one of the terms in a column, by that term."""
    if isinstance(rows, FactoredRows) and rows.place != column:
        term = cast(Term, rows.row[column])
        return {term: rows} if term in terms else {}
    hits: dict[Term, list[Any]] = {}
    for row in rows:
        if (term := row[column]) in terms:
            hits.setdefault(term, []).append(row)
    return hits
