"""Rewriting of plans: node by node, inputs first, into a plan in which what comes out the same is one node again."""

from __future__ import annotations

from squall.plan import Node, Plan
from squall.plan.operators import Operator
from squall.planners.lowering.plan_builder import Draft, digest
from squall.planners.lowering.plan_outputs import arranged


class Rewrite:
    """A plan and the one that is made of it. What is added and in the end feeds nothing is left out."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.draft = Draft(digest)
        self.new: dict[str, str] = {}
        """For each node of the old plan, the node that stands for it in the new one."""
        self.feedback: dict[str, tuple[str, ...]] = {}
        """For nodes of the new plan, the nodes of the old plan whose facts they read again."""

    def inputs(self, node: Node) -> tuple[str, ...]:
        """What an old node reads, feedback apart, in the new plan."""
        return tuple([self.new[edge.node] for edge in node.inputs if not edge.feedback])

    def add(self, op: Operator, *inputs: str) -> str:
        """A node of the new plan."""
        return self.draft.add(op, *inputs)

    def keep(self, node: Node) -> str:
        """The old node, on what stands for its inputs."""
        for edge in node.inputs:
            if edge.feedback or self.new[edge.node] != edge.node:
                return self.put(node, node.op, *self.inputs(node))
        self.draft.nodes[node.id] = node
        self.new[node.id] = node.id
        return node.id

    def put(self, node: Node, op: Operator, *inputs: str) -> str:
        """An operator that stands for an old node and reads the same facts again."""
        reads = tuple([edge.node for edge in node.inputs if not edge.feedback])
        same = inputs == reads and op == node.op
        id = self.draft.add(op, *inputs, id=node.id if same else None)
        if len(reads) < len(node.inputs):
            again = [edge.node for edge in node.inputs if edge.feedback]
            self.feedback[id] = tuple(dict.fromkeys((*self.feedback.get(id, ()), *again)))
        self.new[node.id] = id
        return id

    def result(self) -> Plan:
        """The new plan: what stands for those nodes that feed nothing (`Deliver`, and every `Update`), and what these
        need."""
        for id, again in self.feedback.items():
            facts = sorted({self.new[fact] for fact in again})
            self.draft.read_again(id, facts)
        read = {edge.node for node in self.plan.nodes for edge in node.inputs}
        self.draft.keep(self.new[node.id] for node in self.plan.nodes if node.id not in read)
        return arranged(self.draft.nodes.values(), self.plan.planner)
