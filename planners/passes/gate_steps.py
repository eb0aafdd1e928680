"""The pass `gate_steps`: later steps of patterns over time are evaluated while an earlier one is open.

`squall.plan.gates` says which rows may wait, and why. A gate (`squall.plan.operators.Gate`) stands where rows enter
what serves a step alone: behind the `Match` of what arrives, so that joins, rules and derived streams behind it see the
rows only that may become a part of a match.
"""

from __future__ import annotations

from graphlib import TopologicalSorter

from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.gates import gated_inputs
from squall.plan.operators import Gate, Match, Union
from squall.planners.lowering.plan_builder import digest
from squall.planners.passes.rewrite import Rewrite

Gates = dict[int, tuple[str, tuple[tuple[int, int], ...]]]
"""For inputs of a node, by number, the opener and the columns (row, opener) that agree."""


def gate_steps(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan with the gates that it may have."""
    gates: dict[str, Gates] = {}
    for gated in gated_inputs(plan):
        for (node, port), on in gated.gates.items():
            gates.setdefault(node, {})[port] = (gated.opener, on)
    return _Gating(plan, gates).result() if gates else plan


class _Gating(Rewrite):
    """The rewrite."""

    def __init__(self, plan: Plan, gates: dict[str, Gates]) -> None:
        super().__init__(plan)
        before = {node.id: [edge.node for edge in node.inputs if not edge.feedback] for node in plan.nodes}
        for id, gates_of_node in gates.items():
            before[id] += [opener for opener, _ in gates_of_node.values()]
        for id in TopologicalSorter(before).static_order():
            node = plan.by_id[id]
            if id not in gates:
                self.keep(node)
            elif isinstance(node.op, Match):
                self._gate_match(node, node.op, gates[id])
            else:
                inputs = (self._gated(gates[id], port, edge.node) for port, edge in enumerate(node.inputs))
                self.put(node, node.op, *inputs)

    def _gated(self, gates: Gates, port: int, input: str) -> str:
        rows = self.new_ids[input]
        if port not in gates:
            return rows
        opener, on = gates[port]
        return self.add(Gate(on), rows, self.new_ids[opener])

    def _gate_match(self, node: Node, op: Match, gates: Gates) -> None:
        """Adds a match whose rows of some inputs go through a gate."""
        (opener, on), *_ = gates.values()
        inside = [edge.node for port, edge in enumerate(node.inputs) if port not in gates and edge.feedback]
        facts = [edge.node for port, edge in enumerate(node.inputs) if port in gates and edge.feedback]
        outer = self._match(op, self.inputs(node), facts)
        rows = self.add(Gate(on), outer, self.new_ids[opener])
        if inside:
            rows = self.add(Union(), rows, self._match(op, (), inside))
        self.new_ids[node.id] = rows

    def _match(self, op: Match, inputs: tuple[str, ...], facts: list[str]) -> str:
        """Adds a match of inputs, and of facts that are read again. Its id depends on these, too."""
        id = self.add_as(digest(op, (*inputs, *facts)), op, *inputs)
        if facts:
            self.feedback[id] = tuple(facts)
        return id
