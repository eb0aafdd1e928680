"""Rules that differ in a constant: one join for all of them, and the constant looked up in its rows.

Where many rules join the same rows with patterns that are alike but for a constant (`?o isProducedBy <sensor k>`), each
row would be stored and looked for once per rule. Instead the pattern is matched with a variable in the constant's
place and joined once; a `ConstantFilter` for each constant then finds its rows by a look-up, whose cost does not depend
on the number of rules. Predicates stay as they are: a pattern that fits any predicate would fit everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from squall.plan import Input, Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Cell, ConstantFilter, Distinct, Join, Match, Project
from squall.planners.passes.rewrite import Rewrite
from squall.rdf import Term
from squall.rdf.row_tags import relation_tag_of

FEW = 4
"""So many patterns are not too many to be joined each by itself: it stores less than a join that fits any constant."""


@dataclass(frozen=True)
class _Kind:
    """What joins have in common that differ in one constant of the match on one of their sides."""

    join: Join
    side: int
    """That of the match."""
    other: str
    """The node on the other side."""
    width: int
    """The columns of the left rows."""
    cells: tuple[Cell, ...]
    """Those of the match, a variable in the place of the constant."""
    inputs: tuple[Input, ...]
    unique: bool


@dataclass
class _Alike:
    """The joins of one kind: their constants, and the join that serves them all, as soon as it is made."""

    kind: _Kind
    terms: set[Term] = field(default_factory=set)
    joined: str = ""


def share_constants(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """The plan with such joins made one."""
    alike: dict[_Kind, _Alike] = {}
    candidates: dict[str, list[tuple[_Alike, Term]]] = {}
    for node in plan.nodes:
        for kind, term in _kinds(plan, node):
            joins = alike.setdefault(kind, _Alike(kind))
            joins.terms.add(term)
            candidates.setdefault(node.id, []).append((joins, term))
    if all(len(joins.terms) <= FEW for joins in alike.values()):
        return plan
    rewrite = Rewrite(plan)
    for node in plan.nodes:
        shared = [(joins, term) for joins, term in candidates.get(node.id, ()) if len(joins.terms) > FEW]
        if shared:
            joins, term = max(shared, key=lambda candidate: len(candidate[0].terms))
            rewrite.new[node.id] = _looked_up(rewrite, joins, term)
        else:
            rewrite.keep(node)
    return rewrite.result()


def _kinds(plan: Plan, node: Node) -> Iterator[tuple[_Kind, Term]]:
    """Each way in which a join may be one of several, with the constant that is its own."""
    if not isinstance(node.op, Join):
        return
    for side in (0, 1):
        mine, other = (plan.by_id[node.inputs[port].node] for port in (side, 1 - side))
        unique = isinstance(mine.op, Distinct) and len(mine.inputs) == 1
        match = plan.by_id[mine.inputs[0].node] if unique else mine
        if isinstance(match.op, Match):
            width = plan.widths[node.inputs[0].node]
            for cells, term in _varied(match.op, plan.widths[match.id]):
                yield _Kind(node.op, side, other.id, width, cells, match.inputs, unique), term


def _varied(op: Match, column: int) -> Iterator[tuple[tuple[Cell, ...], Term]]:
    """The cells with a variable in the place of each constant that may vary, with the constant."""
    fixed = 1 if relation_tag_of(op.cells) is None else 0
    for place, cell in enumerate(op.cells):
        if isinstance(cell, str) and place != fixed:
            yield (*op.cells[:place], column, *op.cells[place + 1 :]), cell


def _looked_up(rewrite: Rewrite, joins: _Alike, term: Term) -> str:
    """The rows of a join in which the constant's column holds the constant, without that column, which is the last."""
    joins.joined = joins.joined or _joined(rewrite, joins.kind)
    width = len(joins.kind.join.keep)
    return rewrite.add(Project(tuple(range(width))), rewrite.add(ConstantFilter(width, term), joins.joined))


def _joined(rewrite: Rewrite, kind: _Kind) -> str:
    """The join for all constants, which it keeps in a further column."""
    match_node = rewrite.add(Match(kind.cells), *_sources(rewrite, kind))
    again = tuple(edge.node for edge in kind.inputs if edge.feedback)
    if again:
        rewrite.feedback[match_node] = tuple(dict.fromkeys((*rewrite.feedback.get(match_node, ()), *again)))
    width = 1 + max(cell for cell in kind.cells if isinstance(cell, int))
    if kind.unique:
        match_node = rewrite.add(Distinct(width), match_node)
    keep, other = kind.join.keep, rewrite.new[kind.other]
    if kind.side == 1:
        column, inputs = kind.width + width - 1, (other, match_node)
    else:  # the new column lies between those of the left and the right rows
        column, inputs = kind.width, (match_node, other)
        keep = tuple(position + (position >= column) for position in keep)
    return rewrite.add(replace(kind.join, keep=(*keep, column)), *inputs)


def _sources(rewrite: Rewrite, kind: _Kind) -> tuple[str, ...]:
    return tuple(rewrite.new[edge.node] for edge in kind.inputs if not edge.feedback)
