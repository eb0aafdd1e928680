"""The base of plan rewrites: a rewrite builds a new plan node by node, inputs first, and shares equal nodes again."""

from __future__ import annotations

from squall.plan import Node, Plan
from squall.plan.operators import Operator
from squall.planners.lowering.plan_builder import Draft, digest
from squall.planners.lowering.plan_outputs import sorted_plan


class Rewrite:
    """A plan and the one that is built from it. Nodes that in the end feed nothing are left out."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.draft = Draft(digest)
        self.new_ids: dict[str, str] = {}
        """For each node of the old plan, the node of the new plan that replaces it."""
        self.feedback: dict[str, tuple[str, ...]] = {}
        """For nodes of the new plan, the nodes of the old plan whose facts they read again."""

    def inputs(self, node: Node) -> tuple[str, ...]:
        """Returns the inputs of an old node in the new plan, without feedback."""
        return tuple([self.new_ids[edge.node] for edge in node.inputs if not edge.feedback])

    def add(self, op: Operator, *inputs: str) -> str:
        """Adds a node to the new plan, and returns its id."""
        return self.draft.add(op, *inputs)

    def add_as(self, id: str, op: Operator, *inputs: str) -> str:
        """Adds a node of this id to the new plan, and returns the id."""
        return self.draft.add(op, *inputs, id=id)

    def keep(self, node: Node) -> str:
        """Adds the old node, over the replacements of its inputs."""
        for edge in node.inputs:
            if edge.feedback or self.new_ids[edge.node] != edge.node:
                return self.put(node, node.op, *self.inputs(node))
        self.draft.nodes[node.id] = node
        self.new_ids[node.id] = node.id
        return node.id

    def put(self, node: Node, op: Operator, *inputs: str) -> str:
        """Adds an operator that replaces an old node and reads the same facts again."""
        reads = tuple([edge.node for edge in node.inputs if not edge.feedback])
        unchanged = inputs == reads and op == node.op
        id = self.draft.add(op, *inputs, id=node.id if unchanged else None)
        if len(reads) < len(node.inputs):
            facts = [edge.node for edge in node.inputs if edge.feedback]
            self.feedback[id] = tuple(dict.fromkeys((*self.feedback.get(id, ()), *facts)))
        self.new_ids[node.id] = id
        return id

    def result(self) -> Plan:
        """Returns the new plan: the replacements of the nodes that feed nothing (`Sink`, each `Update`), and all that
        they need.
        """
        for id, old_facts in self.feedback.items():
            facts = sorted({self.new_ids[fact] for fact in old_facts})
            self.draft.read_again(id, facts)
        read = {edge.node for node in self.plan.nodes for edge in node.inputs}
        self.draft.keep(self.new_ids[node.id] for node in self.plan.nodes if node.id not in read)
        return sorted_plan(self.draft.nodes.values(), self.plan.planner)
