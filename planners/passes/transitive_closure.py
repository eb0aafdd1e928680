"""A transitive rule as one operator: ``(?x p ?y) (?y p ?z) -> (?x p ?z)`` without its recursion.

So are rules over atoms, ``p(?x, ?y) p(?y, ?z) -> p(?x, ?z)``.

What the rule derives are the paths of two steps and more along p, through what streams bring of p and what *other*
rules make of it. So its own facts need not be read again by itself: `TransitiveClosure` finds the paths of one step and
more through these pairs, and one step more in front of each makes the rule's own. Not where pairs may be withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Cell, Construct, Distinct, Join, Match, TransitiveClosure
from squall.planners.lowering.plan_builder import digest
from squall.planners.passes.rewrite import Rewrite
from squall.rdf.row_tags import relation_tag_of


def close(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """The plan with transitive rules as closures."""
    matches = {node.id: match for node in plan.nodes if (match := _transitive(plan, node)) is not None}
    return _Closing(plan, matches).result() if matches else plan


def _transitive(plan: Plan, node: Node) -> Node | None:
    """The `Match` of the pairs, if the node emits what follows from them by transitivity, and reads it again."""
    if not (isinstance(node.op, Construct) and node.op.reentrant):
        return None
    join = plan.by_id[node.inputs[0].node]
    if not isinstance(join.op, Join) or join.inputs[0].node != join.inputs[1].node:
        return None
    pairs = plan.by_id[join.inputs[0].node]
    match = plan.by_id[pairs.inputs[0].node] if isinstance(pairs.op, Distinct) else pairs
    if not isinstance(match.op, Match) or match.id in plan.retractable:
        return None
    fits = _is_relation(match.op.cells) and node.op.template == _composed(join.op, match.op)
    return match if fits and _own(plan, node) & {edge.node for edge in match.inputs if edge.feedback} else None


def _is_relation(cells: Sequence[Cell]) -> bool:
    """Whether cells take all pairs of one predicate, or of one relation of two arguments."""
    if len(cells) != 3:
        return False
    if relation_tag_of(cells) is not None:
        return cells[1:] == (0, 1)
    return isinstance(cells[1], str) and (cells[0], cells[2]) == (0, 1)


def _filled(cells: Sequence[Cell], begin: int, end: int) -> tuple[Cell, ...]:
    """The cells with these columns as the pair."""
    return tuple({0: begin, 1: end}[cell] if isinstance(cell, int) else cell for cell in cells)


_ENDS: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {((1, 0),): (0, 3), ((0, 1),): (2, 1)}
"""The columns where two joined pairs begin and end, by what they are joined on."""


def _composed(join: Join, match: Match) -> tuple[Cell, ...] | None:
    """The template that makes a pair of the two ends of two pairs that a join has put together, if it does."""
    ends = _ENDS.get(join.on)
    if ends is None or not set(ends) <= set(join.keep):
        return None
    return _filled(match.cells, join.keep.index(ends[0]), join.keep.index(ends[1]))


def _own(plan: Plan, emit: Node) -> set[str]:
    """The sets of facts that hold what the node emits."""
    return {id for id, _ in plan.consumers[emit.id] if isinstance(plan.by_id[id].op, Distinct)}


class _Closing(Rewrite):
    def __init__(self, plan: Plan, matches: dict[str, Node]) -> None:
        super().__init__(plan)
        self.found = matches
        self.pairs: dict[str, tuple[str, set[str]]] = {}
        """For each `Match` of pairs that are closed: that of the new plan, and the sets with facts of its own rule."""
        for node in plan.nodes:
            if node.id in matches:
                self.new[node.id] = self.closed(node, matches[node.id])
            else:
                self.keep(node)
        for id, (match, own) in self.pairs.items():
            self.feed(plan.by_id[id], match, own)

    def closed(self, node: Node, match: Node) -> str:
        """What the rule emits: a step, and then a path of any length."""
        assert isinstance(node.op, Construct)
        assert isinstance(match.op, Match)
        reads = self.inputs(match)
        # The same cells over the same sources as what other rules read of p, yet without what this rule makes.
        match_node = self.draft.add(match.op, *reads, id=digest(match.op, (*reads, "without what is closed")))
        self.pairs[match.id] = (match_node, self.pairs.get(match.id, ("", set()))[1] | _own(self.plan, node))
        pairs = self.add(Distinct(2), match_node)
        paths = self.add(Join(((1, 0),), (0, 3)), pairs, self.add(TransitiveClosure(), pairs))
        template = tuple(cell for cell in match.op.cells if isinstance(cell, int | str))  # that of the pairs
        return self.add(replace(node.op, template=template), paths)

    def feed(self, match: Node, new: str, own: set[str]) -> None:
        """Lets the pairs be read again that other rules make."""
        again = {self.new[edge.node] for edge in match.inputs if edge.feedback and edge.node not in own}
        for id in own:
            edges = self.plan.by_id[id].inputs
            others = [self.new[edge.node] for edge in edges if self.found.get(edge.node) is not match]
            if others:
                again.add(self.add(self.plan.by_id[id].op, *sorted(others)))
        self.draft.read_again(new, sorted(again))
