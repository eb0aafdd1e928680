"""The pass `share_constants`: rules that differ in a constant share one join, and look up the constant in its rows.

Many rules may join the same rows with patterns that differ only in a constant (`?o isProducedBy <sensor k>`). Then each
row would be stored and looked up once for each rule. Instead the pattern is matched with a variable in place of the
constant, and joined once. A `ConstantFilter` for each constant finds its rows by a hash lookup, whose cost does not
depend on the number of rules. Predicates are never generalized: a pattern that matches any predicate would match
everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from squall.plan import Input, Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Cell, ConstantFilter, Distinct, Join, Match, Project
from squall.planners.passes.rewrite import Rewrite
from squall.rdf import Term
from squall.rdf.row_tags import relation_tag_of

MAX_SEPARATE_JOINS = 4
"""The default of `max_separate_joins`: few joins store less than one join that matches any constant."""


@dataclass(frozen=True)
class _JoinKind:
    """The common part of joins that differ in one constant of the match on one of their sides."""

    join: Join
    side: int
    """The side of the match."""
    other: str
    """The node on the other side."""
    width: int
    """The number of columns of the left rows."""
    cells: tuple[Cell, ...]
    """The cells of the match, with a variable in place of the constant."""
    inputs: tuple[Input, ...]
    unique: bool


@dataclass
class _SharedJoin:
    """The joins of one kind: their constants, and the join that serves all of them, once it is built."""

    kind: _JoinKind
    terms: set[Term] = field(default_factory=set)
    joined: str = ""


def share_constants(
    plan: Plan, statistics: Statistics | None = None, max_separate_joins: int = MAX_SEPARATE_JOINS
) -> Plan:
    """Returns the plan in which such joins are one.

    Args:
        plan: The plan.
        statistics: The pass has no use for them.
        max_separate_joins: The largest number of patterns that are joined separately.
    """
    joins_by_kind: dict[_JoinKind, _SharedJoin] = {}
    candidates: dict[str, list[tuple[_SharedJoin, Term]]] = {}
    for node in plan.nodes:
        for kind, term in _kinds(plan, node):
            joins = joins_by_kind.setdefault(kind, _SharedJoin(kind))
            joins.terms.add(term)
            candidates.setdefault(node.id, []).append((joins, term))
    if all(len(joins.terms) <= max_separate_joins for joins in joins_by_kind.values()):
        return plan
    rewrite = Rewrite(plan)
    for node in plan.nodes:
        shared = [(joins, term) for joins, term in candidates.get(node.id, ()) if len(joins.terms) > max_separate_joins]
        if shared:
            joins, term = max(shared, key=lambda candidate: len(candidate[0].terms))
            rewrite.new_ids[node.id] = _look_up(rewrite, joins, term)
        else:
            rewrite.keep(node)
    return rewrite.result()


def _kinds(plan: Plan, node: Node) -> Iterator[tuple[_JoinKind, Term]]:
    """Yields each kind that a join has, with the constant that is its own."""
    if not isinstance(node.op, Join):
        return
    for side in (0, 1):
        match_side, other = (plan.by_id[node.inputs[port].node] for port in (side, 1 - side))
        unique = isinstance(match_side.op, Distinct) and len(match_side.inputs) == 1
        match = plan.by_id[match_side.inputs[0].node] if unique else match_side
        if isinstance(match.op, Match):
            width = plan.widths[node.inputs[0].node]
            for cells, term in _generalized(match.op, plan.widths[match.id]):
                yield _JoinKind(node.op, side, other.id, width, cells, match.inputs, unique), term


def _generalized(op: Match, column: int) -> Iterator[tuple[tuple[Cell, ...], Term]]:
    """Yields the cells with a variable in place of each constant that may vary, with the constant."""
    fixed = 1 if relation_tag_of(op.cells) is None else 0
    for place, cell in enumerate(op.cells):
        if isinstance(cell, str) and place != fixed:
            yield (*op.cells[:place], column, *op.cells[place + 1 :]), cell


def _look_up(rewrite: Rewrite, joins: _SharedJoin, term: Term) -> str:
    """Returns the rows of a join that have the constant in its column, which is the last one, without that column."""
    joins.joined = joins.joined or _build_join(rewrite, joins.kind)
    width = len(joins.kind.join.keep)
    return rewrite.add(Project(tuple(range(width))), rewrite.add(ConstantFilter(width, term), joins.joined))


def _build_join(rewrite: Rewrite, kind: _JoinKind) -> str:
    """Returns the join for all constants, which has the constant in a further column."""
    match_node = rewrite.add(Match(kind.cells), *_sources(rewrite, kind))
    facts = tuple(edge.node for edge in kind.inputs if edge.feedback)
    if facts:
        rewrite.feedback[match_node] = tuple(dict.fromkeys((*rewrite.feedback.get(match_node, ()), *facts)))
    width = 1 + max(cell for cell in kind.cells if isinstance(cell, int))
    if kind.unique:
        match_node = rewrite.add(Distinct(width), match_node)
    keep, other = kind.join.keep, rewrite.new_ids[kind.other]
    if kind.side == 1:
        column, inputs = kind.width + width - 1, (other, match_node)
    else:  # the new column lies between those of the left and the right rows
        column, inputs = kind.width, (match_node, other)
        keep = tuple(position + (position >= column) for position in keep)
    return rewrite.add(replace(kind.join, keep=(*keep, column)), *inputs)


def _sources(rewrite: Rewrite, kind: _JoinKind) -> tuple[str, ...]:
    return tuple(rewrite.new_ids[edge.node] for edge in kind.inputs if not edge.feedback)
