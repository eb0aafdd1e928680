"""How many rows events bring to the first nodes that keep rows, and with which keys: counted by the driver, to choose
what goes to all tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from squall.builders.distributed.plan.partitioning import Address, key_text, stateful_edges
from squall.builders.distributed.plan.skew import key_source_columns
from squall.builders.runtime.dataflow import Dataflow
from squall.plan import Input, Node, Plan
from squall.plan.operators import ConstantFilter, Distinct, Match, Project, Scan, is_stateful
from squall.plan.partitioning import Columns
from squall.rdf import Event

_EVENTS_PER_BLOCK = 1000
"""Events that are counted at a time."""
_SelectingOperator = Scan | Match | ConstantFilter | Project
"""What says which facts fit. What computes, which may be functions of the user's, is not asked: it is another's work to
call them, and rows that would not pass are counted as well."""


class InputSampler:
    """Counts, by input, the rows that come there from the sources. rows: so far. wanted: inputs of which is counted how
    many rows have a key, with the columns of that; keys: so far. They may be behind joins as well: what counts there
    are the rows that bring the key."""

    def __init__(self, plan: Plan, columns_by_input: Mapping[Address, Columns] = MappingProxyType({})) -> None:
        self.rows: Counter[Address] = Counter()
        self.keys: dict[Address, Counter[str]] = {}
        self._plan = plan
        self._wanted = columns_by_input

    @cached_property
    def _counting(self) -> tuple[Dataflow, dict[str, _Exit]]:
        """What is made when there is something to be counted: of many rules it takes its time."""
        fits, ends = _sampling_plan(self._plan, self._wanted)
        return Dataflow(fits, hosted=()), ends

    def seen(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events, which are counted when they are taken."""
        left = iter(events)
        while block := list(islice(left, _EVENTS_PER_BLOCK)):
            self.count(block)
            yield from block

    def count(self, events: Sequence[Event]) -> None:
        """Counts what events bring."""
        machine, ends = self._counting
        machine.read(events)
        machine.run()
        waiting, machine.outbox = machine.outbox, {}
        for (id, _), entries in waiting.items():
            self.rows.update(dict.fromkeys(ends[id].behind, len(entries)))
            for address, columns in ends[id].key_columns.items():
                self.keys.setdefault(address, Counter()).update(map(key_text(columns), entries))


class _Exit(NamedTuple):
    """Where rows leave the nodes that say which facts fit. behind: the inputs that they may come to; deciding: those
    whose keys they decide, each with the columns that are the key there."""

    behind: list[Address]
    key_columns: dict[Address, Columns]


def _sampling_plan(plan: Plan, columns_by_input: Mapping[Address, Columns]) -> tuple[Plan, dict[str, _Exit]]:
    """The nodes of a plan that say which facts fit, each with an end where rows leave them; and what is known of these
    ends."""
    nodes: dict[str, Node] = {}
    for node in plan.nodes:
        if isinstance(node.op, _SelectingOperator):
            inputs = tuple(edge for edge in node.inputs if edge.node in nodes)
            if inputs or not node.inputs:
                nodes[node.id] = Node(node.id, node.op, inputs)
    end_nodes: dict[str, _Exit] = {}
    ends: list[Node] = []
    for id in nodes:
        leaving = [address for address in plan.consumers[id] if address[0] not in nodes]
        if leaving:
            ends.append(Node(f"{id} ends", Distinct(plan.widths[id]), (Input(id, ()),)))
            behind = [input_address for address in leaving for input_address in _stateful_inputs(plan, address)]
            keys = key_source_columns(plan, columns_by_input, plan.widths[id], leaving) if columns_by_input else {}
            end_nodes[ends[-1].id] = _Exit(behind, keys)
    return Plan((*nodes.values(), *ends)), end_nodes


def _stateful_inputs(plan: Plan, address: Address) -> list[Address]:
    """The inputs of nodes that keep rows that rows for an input come to."""
    if is_stateful(plan.by_id[address[0]].op):
        return [address]
    return [(way.consumer, way.port) for way in stateful_edges(plan, address[0], None)]
