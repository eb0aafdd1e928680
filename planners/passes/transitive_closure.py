"""The pass `introduce_closures`: replaces a transitive rule, ``(?x p ?y) (?y p ?z) -> (?x p ?z)``, by one operator.

Rules over atoms, ``p(?x, ?y) p(?y, ?z) -> p(?x, ?z)``, are replaced too.

The rule derives the paths of two and more steps along p, over the facts of streams and of *other* rules. So it need not
read its own facts again. `TransitiveClosure` finds the paths of one and more steps, and one step in front of each gives
the facts of the rule. Rules over pairs that may be retracted are not replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from squall.plan import Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Cell, Construct, Distinct, Join, Match, TransitiveClosure
from squall.planners.lowering.plan_builder import digest
from squall.planners.passes.rewrite import Rewrite
from squall.rdf.row_tags import relation_tag_of


def introduce_closures(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan with `TransitiveClosure` in place of transitive rules."""
    matches = {node.id: match for node in plan.nodes if (match := _transitive_match(plan, node)) is not None}
    return _ClosureRewrite(plan, matches).result() if matches else plan


def _transitive_match(plan: Plan, node: Node) -> Node | None:
    """Returns the `Match` of the pairs, if a node derives their transitive closure and reads it again."""
    if not (isinstance(node.op, Construct) and node.op.reentrant):
        return None
    join = plan.by_id[node.inputs[0].node]
    if not isinstance(join.op, Join) or join.inputs[0].node != join.inputs[1].node:
        return None
    pairs = plan.by_id[join.inputs[0].node]
    match = plan.by_id[pairs.inputs[0].node] if isinstance(pairs.op, Distinct) else pairs
    if not isinstance(match.op, Match) or match.id in plan.retractable:
        return None
    fits = _is_relation(match.op.cells) and node.op.template == _composed_template(join.op, match.op)
    return match if fits and _own_facts(plan, node) & {edge.node for edge in match.inputs if edge.feedback} else None


def _is_relation(cells: Sequence[Cell]) -> bool:
    """Returns whether cells match all pairs of one predicate, or of one relation with two arguments."""
    if len(cells) != 3:
        return False
    if relation_tag_of(cells) is not None:
        return cells[1:] == (0, 1)
    return isinstance(cells[1], str) and (cells[0], cells[2]) == (0, 1)


def _with_pair(cells: Sequence[Cell], begin: int, end: int) -> tuple[Cell, ...]:
    """Returns the cells with these columns as the pair."""
    return tuple({0: begin, 1: end}[cell] if isinstance(cell, int) else cell for cell in cells)


_END_COLUMNS: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {((1, 0),): (0, 3), ((0, 1),): (2, 1)}
"""The columns in which two joined pairs begin and end, by their join keys."""


def _composed_template(join: Join, match: Match) -> tuple[Cell, ...] | None:
    """Returns the template of the pair from the begin of one pair to the end of the next, if the join allows it."""
    ends = _END_COLUMNS.get(join.on)
    if ends is None or not set(ends) <= set(join.keep):
        return None
    return _with_pair(match.cells, join.keep.index(ends[0]), join.keep.index(ends[1]))


def _own_facts(plan: Plan, emit: Node) -> set[str]:
    """Returns the sets of facts that hold what the node derives."""
    return {id for id, _ in plan.consumers[emit.id] if isinstance(plan.by_id[id].op, Distinct)}


class _ClosureRewrite(Rewrite):
    def __init__(self, plan: Plan, matches: dict[str, Node]) -> None:
        super().__init__(plan)
        self.matches = matches
        self.pairs: dict[str, tuple[str, set[str]]] = {}
        """For each `Match` of pairs: its copy in the new plan, and the sets with the facts of its own rule."""
        for node in plan.nodes:
            if node.id in matches:
                self.new_ids[node.id] = self.add_closure(node, matches[node.id])
            else:
                self.keep(node)
        for id, (match, own) in self.pairs.items():
            self.add_feedback(plan.by_id[id], match, own)

    def add_closure(self, node: Node, match: Node) -> str:
        """Adds the closure, and returns the node that derives the rule's facts: a step and then any path."""
        assert isinstance(node.op, Construct)
        assert isinstance(match.op, Match)
        reads = self.inputs(match)
        # The same cells over the same sources as what other rules read of p, yet without what this rule makes.
        match_node = self.draft.add(match.op, *reads, id=digest(match.op, (*reads, "without what is closed")))
        self.pairs[match.id] = (match_node, self.pairs.get(match.id, ("", set()))[1] | _own_facts(self.plan, node))
        pairs = self.add(Distinct(2), match_node)
        paths = self.add(Join(((1, 0),), (0, 3)), pairs, self.add(TransitiveClosure(), pairs))
        template = tuple(cell for cell in match.op.cells if isinstance(cell, int | str))  # that of the pairs
        return self.add(replace(node.op, template=template), paths)

    def add_feedback(self, match: Node, new: str, own: set[str]) -> None:
        """Adds feedback edges from the pairs that other rules derive."""
        facts = {self.new_ids[edge.node] for edge in match.inputs if edge.feedback and edge.node not in own}
        for id in own:
            edges = self.plan.by_id[id].inputs
            other_inputs = [self.new_ids[edge.node] for edge in edges if self.matches.get(edge.node) is not match]
            if other_inputs:
                facts.add(self.add(self.plan.by_id[id].op, *sorted(other_inputs)))
        self.draft.read_again(new, sorted(facts))
