"""Sampling of inputs: the driver counts the rows and keys that events bring to the first stateful nodes.

From these counts it chooses broadcast inputs and skewed keys.
"""

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
from squall.builders.runtime.schema_changes import SchemaGuard
from squall.plan import Input, Node, Plan
from squall.plan.operators import ConstantFilter, Distinct, Match, Project, Scan, is_stateful
from squall.plan.partitioning import Columns
from squall.rdf import Event

_EVENTS_PER_BLOCK = 1000
"""The number of events that are counted at a time."""
_SelectingOperator = Scan | Match | ConstantFilter | Project
"""The operators that select facts. Others, which may call user functions, are left out, so rows that they would drop
count too."""


class InputSampler:
    """Counts, by input, the rows that arrive from the sources.

    Args:
        plan: the plan.
        columns_by_input: the inputs whose keys are counted, with the key columns. They may be behind joins; then the
            rows count that determine the key.

    Attributes:
        rows: the number of rows so far, by input.
        keys: the number of rows of each key so far, by input.
    """

    def __init__(self, plan: Plan, columns_by_input: Mapping[Address, Columns] = MappingProxyType({})) -> None:
        self.rows: Counter[Address] = Counter()
        self.keys: dict[Address, Counter[str]] = {}
        self._plan = plan
        self._schema_guard = SchemaGuard(plan)
        self._wanted = columns_by_input

    @cached_property
    def _counting(self) -> tuple[Dataflow, dict[str, _Exit]]:
        """The dataflow that counts. It is built on demand, since that takes a while for many rules."""
        fits, ends = _sampling_plan(self._plan, self._wanted)
        return Dataflow(fits, hosted=()), ends

    def seen(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yields the events, and counts them as they are taken."""
        left = iter(events)
        while block := list(islice(left, _EVENTS_PER_BLOCK)):
            self.count(block)
            yield from block

    def count(self, events: Sequence[Event]) -> None:
        """Counts the rows that events bring."""
        dataflow, ends = self._counting
        dataflow.read(self._schema_guard.without_changes(events)[0])
        dataflow.run()
        waiting, dataflow.outbox = dataflow.outbox, {}
        for (id, _), deltas in waiting.items():
            self.rows.update(dict.fromkeys(ends[id].behind, len(deltas)))
            for address, columns in ends[id].key_columns.items():
                self.keys.setdefault(address, Counter()).update(map(key_text(columns), deltas))


class _Exit(NamedTuple):
    """Where rows leave the nodes that select facts.

    Attributes:
        behind: the inputs that the rows may reach.
        key_columns: the inputs whose keys these rows determine, each with the columns that become the key.
    """

    behind: list[Address]
    key_columns: dict[Address, Columns]


def _sampling_plan(plan: Plan, columns_by_input: Mapping[Address, Columns]) -> tuple[Plan, dict[str, _Exit]]:
    """Returns the part of a plan that selects facts, with an exit where rows leave it, and the exits by node."""
    nodes: dict[str, Node] = {}
    for node in plan.nodes:
        if isinstance(node.op, _SelectingOperator):
            inputs = tuple(edge for edge in node.inputs if edge.node in nodes)
            if inputs or not node.inputs:
                nodes[node.id] = Node(node.id, node.op, inputs)
    end_nodes: dict[str, _Exit] = {}
    ends: list[Node] = []
    for id in nodes:
        outgoing = [address for address in plan.consumers[id] if address[0] not in nodes]
        if outgoing:
            ends.append(Node(f"{id} ends", Distinct(plan.widths[id]), (Input(id, ()),)))
            behind = [input_address for address in outgoing for input_address in _stateful_inputs(plan, address)]
            keys = key_source_columns(plan, columns_by_input, plan.widths[id], outgoing) if columns_by_input else {}
            end_nodes[ends[-1].id] = _Exit(behind, keys)
    return Plan((*nodes.values(), *ends)), end_nodes


def _stateful_inputs(plan: Plan, address: Address) -> list[Address]:
    """Returns the inputs of stateful nodes that the rows for an input reach."""
    if is_stateful(plan.by_id[address[0]].op):
        return [address]
    return [(way.consumer, way.port) for way in stateful_edges(plan, address[0], None)]
