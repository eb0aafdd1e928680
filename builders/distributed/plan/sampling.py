"""Sampling of inputs: the driver counts the rows and keys that events bring to the first stateful nodes.

From these counts it chooses broadcast inputs and skewed keys, and the statistics to plan with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from math import ceil
from types import MappingProxyType
from typing import NamedTuple

from squall.builders.distributed.plan.partitioning import Address, key_text, stateful_edges
from squall.builders.distributed.plan.skew import key_source_columns
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.schema_changes import SchemaGuard
from squall.builders.runtime.state_statistics import Sample, statistics_of
from squall.builders.runtime.zset import Delta
from squall.plan import Input, Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import ConstantFilter, Distinct, Match, Project, Scan, is_stateful
from squall.plan.partitioning import Columns
from squall.rdf import Event

_EVENTS_PER_BLOCK = 1000
"""The number of events that are counted at a time."""
_ROWS_PER_PATTERN = 2000
"""The number of rows of each pattern whose values are counted."""
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
        self._wanted = columns_by_input

    @cached_property
    def _selection(self) -> _Selection:
        """What selects the facts. It is built on demand, since that takes a while for many rules."""
        return _Selection(self._plan, self._wanted)

    def count(self, events: Sequence[Event]) -> None:
        """Counts the rows that events bring."""
        for end, deltas in self._selection.rows(events):
            self.rows.update(dict.fromkeys(end.behind, len(deltas)))
            for address, columns in end.key_columns.items():
                self.keys.setdefault(address, Counter()).update(map(key_text(columns), deltas))


def counted_by(samplers: Sequence[InputSampler | PatternSampler], events: Iterable[Event]) -> Iterator[Event]:
    """Yields events, which samplers count as they are taken."""
    remaining = iter(events)
    while block := list(islice(remaining, _EVENTS_PER_BLOCK)):
        for sampler in samplers:
            sampler.count(block)
        yield from block


class PatternSampler:
    """Samples the rows that events bring to the patterns of a plan, to forecast how many are valid together.

    By Little's law these are as many as come in a unit of time, times how long each of them is valid.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._selection = _Selection(plan)
        self._rows: dict[str, list[Delta]] = {}
        self._valid_together: Counter[str] = Counter()

    def count(self, events: Sequence[Event], share: float = 1.0) -> None:
        """Counts the rows that events bring.

        Args:
            events: the events, in the order of time.
            share: the share that they are of the input, whose rest is assumed to be like them.
        """
        times = [event.time for event in events if not event.is_static]
        span = times[-1] - times[0] + 1 if times else 1
        duration = span / share
        for end, deltas in self._selection.rows(events):
            rows = self._rows.setdefault(end.node, [])
            rows += deltas[: max(_ROWS_PER_PATTERN - len(rows), 0)]
            self._valid_together[end.node] += sum(min(delta[-2] - delta[-3], duration) for delta in deltas) / span

    def statistics(self, present: Statistics | None = None) -> Statistics:
        """Returns the statistics of what is valid together while such events come.

        Args:
            present: those of what is stored before. They stand for patterns that none of the events match. None:
                nothing is stored.
        """
        samples: dict[str, Sample] = {}
        for end in self._selection.ends.values():
            valid_together = self._valid_together[end.node]
            rows = self._rows.get(end.node, [])[: ceil(valid_together)]  # others come when these have ended
            if rows:
                distinct = {row[:-3]: row for row in rows}  # a pattern stores equal facts once
                samples[end.node] = Sample([*distinct.values()], valid_together / len(rows))
            elif present is None and not end.reads_derived:
                samples[end.node] = Sample(rows, 1)
        return statistics_of(self._plan, samples, present)


class _Selection:
    """The part of a plan that selects facts, at work.

    Attributes:
        ends: where rows leave it, by the node that gets them.
    """

    def __init__(self, plan: Plan, columns_by_input: Mapping[Address, Columns] = MappingProxyType({})) -> None:
        selecting, self.ends = _sampling_plan(plan, columns_by_input)
        self._dataflow = Dataflow(selecting, hosted=())
        self._schema_guard = SchemaGuard(plan)

    def rows(self, events: Sequence[Event]) -> Iterator[tuple[_Exit, list[Delta]]]:
        """Yields the rows that events bring, by where they leave."""
        self._dataflow.read(self._schema_guard.without_changes(events)[0])
        self._dataflow.run()
        waiting, self._dataflow.outbox = self._dataflow.outbox, {}
        for (id, _), deltas in waiting.items():
            yield self.ends[id], deltas


class _Exit(NamedTuple):
    """Where rows leave the nodes that select facts.

    Attributes:
        node: the node that outputs them.
        reads_derived: whether it also gets facts that rules derive.
        behind: the inputs that the rows may reach.
        key_columns: the inputs whose keys these rows determine, each with the columns that become the key.
    """

    node: str
    reads_derived: bool
    behind: list[Address]
    key_columns: dict[Address, Columns]


def _sampling_plan(plan: Plan, columns_by_input: Mapping[Address, Columns]) -> tuple[Plan, dict[str, _Exit]]:
    """Returns the part of a plan that selects facts, with an exit where rows leave it, and the exits by node."""
    nodes, reads_derived = _selecting_nodes(plan)
    end_nodes: dict[str, _Exit] = {}
    ends: list[Node] = []
    for id in nodes:
        outgoing = [address for address in plan.consumers[id] if address[0] not in nodes]
        if outgoing:
            ends.append(Node(f"{id} ends", Distinct(plan.widths[id]), (Input(id, ()),)))
            behind = [input_address for address in outgoing for input_address in _stateful_inputs(plan, address)]
            keys = key_source_columns(plan, columns_by_input, plan.widths[id], outgoing) if columns_by_input else {}
            end_nodes[ends[-1].id] = _Exit(id, id in reads_derived, behind, keys)
    return Plan((*nodes.values(), *ends)), end_nodes


def _selecting_nodes(plan: Plan) -> tuple[dict[str, Node], set[str]]:
    """Returns the nodes that select facts of sources, and which of them also get facts that rules derive."""
    nodes: dict[str, Node] = {}
    reads_derived: set[str] = set()
    for node in plan.nodes:
        if isinstance(node.op, _SelectingOperator):
            inputs = tuple(edge for edge in node.inputs if edge.node in nodes)
            if inputs or not node.inputs:
                nodes[node.id] = Node(node.id, node.op, inputs)
                if len(inputs) < len(node.inputs) or any(edge.node in reads_derived for edge in inputs):
                    reads_derived.add(node.id)
    return nodes, reads_derived


def _stateful_inputs(plan: Plan, address: Address) -> list[Address]:
    """Returns the inputs of stateful nodes that the rows for an input reach."""
    if is_stateful(plan.by_id[address[0]].op):
        return [address]
    return [(way.consumer, way.port) for way in stateful_edges(plan, address[0], None)]
