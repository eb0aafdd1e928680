"""A transitive rule as one operator: ``(?x p ?y) (?y p ?z) -> (?x p ?z)`` without its recursion.

What the rule derives are the paths of two steps and more along p, through what streams bring of p and what *other*
rules make of it. So its own facts need not be read again by itself: `Closure` finds the paths of one step and more
through these pairs, and one step more in front of each makes the rule's own. Not where pairs may be withdrawn.
"""

from __future__ import annotations

from squall.operators import Closure, Distinct, Emit, Join, Match
from squall.plan import Node, Plan
from squall.planners.draft import digest
from squall.planners.rewriting import Rewrite
from squall.rdf import Term
from squall.statistics import Statistics


def close(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """The plan with transitive rules as closures."""
    found = {node.id: match for node in plan.nodes if (match := _transitive(plan, node)) is not None}
    return _Closing(plan, found).result() if found else plan


def _transitive(plan: Plan, node: Node) -> Node | None:
    """The `Match` of the pairs, if the node emits what follows from them by transitivity, and reads it again."""
    if not (isinstance(node.op, Emit) and node.op.reentrant):
        return None
    join = plan.by_id[node.inputs[0].node]
    if not isinstance(join.op, Join) or join.inputs[0].node != join.inputs[1].node:
        return None
    pairs = plan.by_id[join.inputs[0].node]
    match = plan.by_id[pairs.inputs[0].node] if isinstance(pairs.op, Distinct) else pairs
    if not isinstance(match.op, Match) or match.id in plan.retractable:
        return None
    fits = _predicate(match.op) and node.op.template == _composed(join.op, match.op)
    return match if fits and _own(plan, node) & {edge.node for edge in match.inputs if edge.feedback} else None


def _predicate(op: Match) -> Term | None:
    """The predicate of a `Match` that takes all pairs of one."""
    if len(op.cells) != 3 or (op.cells[0], op.cells[2]) != (0, 1):
        return None
    predicate = op.cells[1]
    return predicate if isinstance(predicate, str) else None


_ENDS: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {((1, 0),): (0, 3), ((0, 1),): (2, 1)}
"""The columns where two joined pairs begin and end, by what they are joined on."""


def _composed(join: Join, match: Match) -> tuple[int | Term | None, ...] | None:
    """The template that makes a pair of the two ends of two pairs that a join has put together, if it does."""
    ends = _ENDS.get(join.on)
    if ends is None or not set(ends) <= set(join.keep):
        return None
    return join.keep.index(ends[0]), _predicate(match), join.keep.index(ends[1])


def _own(plan: Plan, emit: Node) -> set[str]:
    """The sets of facts that hold what the node emits."""
    return {id for id, _ in plan.consumers[emit.id] if isinstance(plan.by_id[id].op, Distinct)}


class _Closing(Rewrite):
    def __init__(self, plan: Plan, found: dict[str, Node]) -> None:
        super().__init__(plan)
        self.found = found
        self.pairs: dict[str, tuple[str, set[str]]] = {}
        """For each `Match` of pairs that are closed: that of the new plan, and the sets with facts of its own rule."""
        for node in plan.nodes:
            if node.id in found:
                self.new[node.id] = self.closed(node, found[node.id])
            else:
                self.keep(node)
        for id, (match, own) in self.pairs.items():
            self.feed(plan.by_id[id], match, own)

    def closed(self, node: Node, match: Node) -> str:
        """What the rule emits: a step, and then a path of any length."""
        assert isinstance(node.op, Emit)
        reads = self.inputs(match)
        # The same cells over the same sources as what other rules read of p, yet without what this rule makes.
        matched = self.draft.add(match.op, *reads, id=digest(match.op, (*reads, "without what is closed")))
        self.pairs[match.id] = (matched, self.pairs.get(match.id, ("", set()))[1] | _own(self.plan, node))
        pairs = self.add(Distinct(2), matched)
        paths = self.add(Join(((1, 0),), (0, 3)), pairs, self.add(Closure(), pairs))
        predicate = node.op.template[1]
        return self.add(Emit((0, predicate, 1), node.op.rules, node.op.reentrant), paths)

    def feed(self, match: Node, new: str, own: set[str]) -> None:
        """Lets the pairs be read again that other rules make."""
        again = {self.new[edge.node] for edge in match.inputs if edge.feedback and edge.node not in own}
        for id in own:
            others = [self.new[edge.node] for edge in self.plan.by_id[id].inputs if edge.node not in self.found]
            if others:
                again.add(self.add(self.plan.by_id[id].op, *sorted(others)))
        self.draft.read_again(new, sorted(again))
