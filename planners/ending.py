"""The end of a plan: facts made by rules are made unique, read again where they fit, and delivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from squall import operators as ops
from squall.operators import Answer, Cell, Emit, Match, Read, Retract, Value
from squall.plan import Node, Plan
from squall.planners.draft import Draft
from squall.planners.grouping import group
from squall.planners.parts import walk
from squall.strata import Shape, Shapes
from squall.system import Ask, AtomPattern, Construct, Pattern, Select, Source, System, Without, rules


def finish(draft: Draft, system: System, ends: Iterable[str], planner: str) -> Plan:
    """The plan whose rules end in these nodes (`Emit`, `Answer`, `Retract`)."""
    return grouped(ended(draft, system, ends, planner))


def ended(draft: Draft, system: System, ends: Iterable[str], planner: str, ordered: bool = False) -> Plan:
    """The plan whose rules end in these nodes, as yet without grouping columns.

    Facts are made unique per *shape* (the constants of their templates): two shapes that have no fact in common do not
    depend on each other, so that stratification sees what a rule can make, not just that it makes something.
    ``ordered``: list the nodes by depth and id, so that the order of the rules does not show.
    """
    found = list(ends)
    every = _unique_facts(draft, dict.fromkeys(found))
    feed_back(draft, every)
    made = [facts for facts in every if not facts.internal]
    answers = [id for id in found if isinstance(draft.nodes[id].op, Answer)]
    inputs = (*(facts.node for facts in made), *(sorted(answers) if ordered else answers))
    op = ops.Deliver(system.output, _overlaps(made), system.report, sources(system), queries(system))
    last = draft.add(op, *inputs)
    draft.keep([last, *(id for id in found if isinstance(draft.nodes[id].op, Retract))])
    nodes = inputs_first(draft.nodes.values())
    return arranged(nodes, planner) if ordered else Plan(tuple(nodes), planner)


def sources(system: System) -> tuple[Source, ...]:
    """The sources that the patterns of a program's rules read, each once, in an order of their own."""
    parts = (part for rule in rules(system) for part in walk(rule) if isinstance(part, System) and _has_patterns(part))
    return tuple(sorted({source for part in parts for source in part.sources}, key=repr))


def _has_patterns(part: System) -> bool:
    """Whether patterns read the sources of this part itself."""
    inner = [one for predicate in part.predicates if isinstance(predicate, Without) for one in predicate.joinables]
    return any(isinstance(joinable, Pattern | AtomPattern) for joinable in (*part.joinables, *inner))


def queries(system: System) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The queries that are told that an evaluation of theirs is complete, if they are, in an order of their own. What
    makes facts is one if these are not read again."""
    asked = [found for rule in rules(system) for found in _queries(rule)] if system.report.empty else []
    return tuple(sorted(set(asked)))


def _queries(rule: System) -> Iterator[tuple[str, tuple[str, ...]]]:
    for consequence in rule.consequences:
        match consequence:
            case Select(variables=names):
                yield rule.name, tuple(name.name for name in names)
            case Ask():
                yield rule.name, ()
            case Construct(internal=False) if not rule.reentrant:
                yield rule.name, ()


class Facts(NamedTuple):
    """Unique facts of one shape: the node that makes them so, and whether they are read again and are no part of the
    answer."""

    shape: Shape
    reentrant: bool
    internal: bool
    node: str


def _unique_facts(draft: Draft, ends: Iterable[str]) -> list[Facts]:
    groups: dict[tuple[Shape, bool, bool], list[str]] = {}
    for id in ends:
        op = draft.nodes[id].op
        if isinstance(op, Emit):
            groups.setdefault((shape_of(op.template), op.reentrant, op.internal), []).append(id)
    ordered = sorted(groups.items(), key=lambda group: ([cell or "" for cell in group[0][0]], *group[0][1:]))
    return [Facts(*kind, draft.add(ops.Distinct(by=len(kind[0])), *sorted(group))) for kind, group in ordered]


def shape_of(cells: Sequence[Cell]) -> Shape:
    """The constants of cells, None for what varies."""
    return tuple(cell.term if isinstance(cell, Value) else cell if isinstance(cell, str) else None for cell in cells)


def feed_back(draft: Draft, made: Iterable[Facts]) -> None:
    """Lets each `Match` over the default graph read the facts that may fit it."""
    again: Shapes[str] = Shapes()
    for facts in made:
        if facts.reentrant:
            again.add(facts.shape, facts.node)
    for id, node in list(draft.nodes.items()):
        if isinstance(node.op, Match) and _reads_all(draft, node):
            draft.read_again(id, sorted(again.overlapping(shape_of(node.op.cells))))


def _reads_all(draft: Draft, node: Node) -> bool:
    reads = (draft.nodes[edge.node].op for edge in node.inputs)
    return any(isinstance(op, Read) and op.source.derives for op in reads)


def _overlaps(made: Sequence[Facts]) -> bool:
    """Whether a fact may have two of the shapes."""
    shapes: Shapes[str] = Shapes()
    for facts in made:
        shapes.add(facts.shape, facts.node)
    return any(len(list(shapes.overlapping(facts.shape))) > 1 for facts in made)


def grouped(plan: Plan) -> Plan:
    """The plan with grouping columns on its edges."""
    return Plan(tuple(group(plan.nodes)), plan.planner)


def inputs_first(nodes: Iterable[Node]) -> list[Node]:
    """The nodes, each behind its inputs: one may have been put in before what it reads was."""
    known = {node.id: node for node in nodes}
    found: dict[str, Node] = {}
    waiting = list(reversed(known.values()))
    while waiting:
        node = waiting[-1]
        missing = [known[edge.node] for edge in node.inputs if not edge.feedback and edge.node not in found]
        if missing:
            waiting += missing
        else:
            found[waiting.pop().id] = node
    return list(found.values())


def arranged(nodes: Iterable[Node], planner: str) -> Plan:
    """The plan of these nodes, listed inputs first, in an order that depends on nothing but themselves."""
    depths: dict[str, int] = {}
    places = []
    for node in nodes:
        depth = max([depths[edge.node] for edge in node.inputs if not edge.feedback], default=0) + 1
        depths[node.id] = depth
        places.append((isinstance(node.op, ops.Deliver), depth, node.id, node))
    # No two nodes have the same id: nodes themselves are never compared.
    return Plan(tuple([place[3] for place in sorted(places)]), planner)
