"""The pass `merge_matches`: matches of a union that differ in one constant become one match of several constants.

Entailment with a schema makes a union of the patterns of all subclasses of a class. As one match it has one entry in
the alpha network for each class, and a fact costs one look-up whatever the depth of the hierarchy. A fact fits one
constant only, so that the rows are the same bag. Predicates are not merged: each has a table of its own already.
"""

from __future__ import annotations

from collections.abc import Iterator

from squall.plan import Input, Node, Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Cell, Distinct, Match, OneOf, Union
from squall.planners.passes.eliminate_distinct import reaches_sets_only
from squall.planners.passes.rewrite import Rewrite
from squall.rdf import Term
from squall.rdf.row_tags import relation_tag_of

_Kind = tuple[int, tuple[Cell, ...], tuple[Input, ...]]
"""The place of the constant in which matches differ, their other cells, and their inputs without derived facts."""


def merge_matches(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan in which such matches are one."""
    rewrite = Rewrite(plan)
    duplicates_allowed = reaches_sets_only(plan)
    for node in plan.nodes:
        if isinstance(node.op, Union):
            _merge(rewrite, node, node.id in duplicates_allowed)
        else:
            rewrite.keep(node)
    return rewrite.result()


def _merge(rewrite: Rewrite, union: Node, duplicates_allowed: bool) -> None:
    matches_by_kind: dict[_Kind, list[Node]] = {}
    inputs = [rewrite.plan.by_id[edge.node] for edge in union.inputs]
    matches = {node.id: _match(rewrite.plan, node, duplicates_allowed) for node in inputs}
    for match in filter(None, matches.values()):
        for kind in _kinds(match):
            matches_by_kind.setdefault(kind, []).append(match)
    merged: dict[str, str] = {}
    for kind, alike in sorted(matches_by_kind.items(), key=lambda item: len(item[1]), reverse=True):
        remaining = [match for match in dict.fromkeys(alike) if match.id not in merged]
        if len(remaining) > 1:
            merged |= dict.fromkeys((match.id for match in remaining), _one_match(rewrite, kind, remaining))
    if not merged:
        rewrite.keep(union)
        return
    new_inputs = [
        merged.get(match.id, rewrite.new_ids[id]) if match is not None else rewrite.new_ids[id]
        for id, match in matches.items()
    ]
    distinct_inputs = list(dict.fromkeys(new_inputs))
    if len(distinct_inputs) == 1:
        rewrite.new_ids[union.id] = distinct_inputs[0]
    else:
        rewrite.put(union, union.op, *distinct_inputs)


def _match(plan: Plan, node: Node, duplicates_allowed: bool) -> Node | None:
    """Returns the match of an input; also that of a set, if duplicates are allowed."""
    if duplicates_allowed and isinstance(node.op, Distinct) and len(node.inputs) == 1:
        node = plan.by_id[node.inputs[0].node]
    return node if isinstance(node.op, Match) else None


def _kinds(match: Node) -> Iterator[_Kind]:
    """Yields what each constant of a match may differ in."""
    assert isinstance(match.op, Match)
    cells = match.op.cells
    fixed = 1 if relation_tag_of(cells) is None else 0
    inputs = tuple(edge for edge in match.inputs if not edge.feedback)
    for place, cell in enumerate(cells):
        if isinstance(cell, str) and place != fixed:
            yield place, (*cells[:place], None, *cells[place + 1 :]), inputs


def _one_match(rewrite: Rewrite, kind: _Kind, matches: list[Node]) -> str:
    """Adds the match that has the rows of several, which also reads the facts that they read again."""
    place, cells, edges = kind
    terms = sorted({_constant(match, place) for match in matches})
    op = Match((*cells[:place], OneOf(tuple(terms)), *cells[place + 1 :]))
    id = rewrite.add(op, *(rewrite.new_ids[edge.node] for edge in edges))
    facts = [edge.node for match in matches for edge in match.inputs if edge.feedback]
    if facts:
        rewrite.feedback[id] = tuple(dict.fromkeys((*rewrite.feedback.get(id, ()), *facts)))
    return id


def _constant(match: Node, place: int) -> Term:
    assert isinstance(match.op, Match)
    cell = match.op.cells[place]
    assert isinstance(cell, str)
    return cell
