"""How many rows events bring to the first nodes that keep rows: counted by the driver, to choose what goes to all
tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from squall.builders.distributed.spread import Address, ways
from squall.builders.machine import Machine
from squall.operators import Distinct, Match, Project, Read, Where, is_stateful
from squall.plan import Input, Node, Plan
from squall.rdf import Event

_TOGETHER = 1000
"""Events that are counted at a time."""
_FITS = Read | Match | Where | Project
"""What says which facts fit. What computes, which may be functions of the user's, is not asked: it is another's work to
call them, and rows that would not pass are counted as well."""


class Arriving:
    """Counts, by input, the rows that come there from the sources. rows: so far."""

    def __init__(self, plan: Plan) -> None:
        self.rows: Counter[Address] = Counter()
        self._plan = plan

    @cached_property
    def _counting(self) -> tuple[Machine, dict[str, list[Address]]]:
        """What is made when there is something to be counted: of many rules it takes its time."""
        fits, behind = _entrances(self._plan)
        return Machine(fits, hosted=()), behind

    def seen(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events, which are counted when they are taken."""
        left = iter(events)
        while some := list(islice(left, _TOGETHER)):
            self.count(some)
            yield from some

    def count(self, events: Sequence[Event]) -> None:
        """Counts what events bring."""
        machine, behind = self._counting
        machine.read(events)
        machine.run()
        waiting, machine.outbox = machine.outbox, {}
        for (id, _), entries in waiting.items():
            self.rows.update(dict.fromkeys(behind[id], len(entries)))


def _entrances(plan: Plan) -> tuple[Plan, dict[str, list[Address]]]:
    """The nodes of a plan that say which facts fit, each with an end where rows leave them; and by end the inputs that
    these rows may come to."""
    kept: dict[str, Node] = {}
    for node in plan.nodes:
        if isinstance(node.op, _FITS):
            inputs = tuple(edge for edge in node.inputs if edge.node in kept)
            if inputs or not node.inputs:
                kept[node.id] = Node(node.id, node.op, inputs)
    behind: dict[str, list[Address]] = {}
    ends: list[Node] = []
    for id in kept:
        leaving = [address for address in plan.consumers[id] if address[0] not in kept]
        if leaving:
            ends.append(Node(f"{id} ends", Distinct(plan.widths[id]), (Input(id, ()),)))
            behind[ends[-1].id] = [one for address in leaving for one in _inputs(plan, address)]
    return Plan((*kept.values(), *ends)), behind


def _inputs(plan: Plan, address: Address) -> list[Address]:
    """The inputs of nodes that keep rows that rows for an input come to."""
    if is_stateful(plan.by_id[address[0]].op):
        return [address]
    return [(way.consumer, way.port) for way in ways(plan, address[0], None)]
