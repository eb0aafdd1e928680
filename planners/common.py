"""What planners share: drafting a plan, names to columns, the body of a rule, feedback, grouping columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from squall import functions
from squall import operators as ops
from squall.errors import PlannerError
from squall.operators import Apply, Cell, Column, Emit, Match, Operator, Value
from squall.plan import Input, Node, Plan
from squall.planners.grouping import group
from squall.rdf import Term, is_literal
from squall.strata import Shape, is_timed, overlap, predicate, relation_mark
from squall.system import (
    AtomPattern,
    Bind,
    Call,
    Expression,
    FactPattern,
    Source,
    System,
    Test,
    Variable,
    Without,
    rules,
)

Identity = Callable[[Operator, tuple[str, ...]], str]
"""Names a node by its operator and its inputs; two nodes of one name are one node."""


class Draft:
    """A plan in the making. What is added twice under one identity is shared."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.nodes: dict[str, Node] = {}

    def add(self, op: Operator, *inputs: str) -> str:
        """The id of the node, added unless it is there already (then an `Emit` serves one rule more)."""
        id = self.identity(op, inputs)
        known = self.nodes.get(id)
        if known is None:
            self.nodes[id] = Node(id, op, tuple(map(Input, inputs)))
        elif known.op != op:
            raise PlannerError(f"two different nodes are named `{id}`")
        elif isinstance(op, Emit) and isinstance(known.op, Emit):
            self.nodes[id] = replace(known, op=replace(known.op, rules=_merged(known.op.rules, op.rules)))
        return id


def _merged(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(first + second))


@dataclass(frozen=True)
class Rows:
    """A node, with the variable that each of its columns holds."""

    node: str
    names: tuple[Variable, ...]


# Names to columns


def match_of(pattern: FactPattern) -> tuple[Match, tuple[Variable, ...]]:
    """The `Match` of a pattern, variables numbered from left to right, and the variable of each of its columns."""
    numbers: dict[Variable, int] = {}
    cells: list[Cell] = []
    if isinstance(pattern, AtomPattern):
        cells.append(relation_mark(pattern.relation))
    for slot in pattern.slots:
        if isinstance(slot, Variable):
            cells.append(numbers.setdefault(slot, len(numbers)))
        else:
            cells.append(Value(slot) if is_literal(slot) else slot)
    return Match(tuple(cells)), tuple(numbers)


def expression_of(expression: Expression, names: Sequence[Variable]) -> ops.Expression:
    """The expression over columns; a variable that no column holds is unbound (None)."""
    match expression:
        case Variable():
            return Column(names.index(expression)) if expression in names else None
        case Call(function=function, arguments=arguments):
            return Apply(function, tuple(expression_of(argument, names) for argument in arguments))
        case _:
            return expression


def join_of(left: Rows, right: Rows) -> tuple[ops.Join, tuple[Variable, ...]]:
    """The natural join: on all shared variables, every variable kept once (so that a join of sets is a set)."""
    on = tuple((left.names.index(name), column) for column, name in enumerate(right.names) if name in left.names)
    fresh = tuple(column for column, name in enumerate(right.names) if name not in left.names)
    keep = (*range(len(left.names)), *(len(left.names) + column for column in fresh))
    return ops.Join(on, keep), (*left.names, *(right.names[column] for column in fresh))


# The parts of a rule


def read_match(draft: Draft, pattern: FactPattern, source: Source, unique: bool) -> Rows:
    """The rows of one pattern over one source; ``unique`` where a memory will hold them."""
    op, names = match_of(pattern)
    node = draft.add(op, draft.add(ops.Read(source)))
    if unique:
        node = draft.add(ops.Distinct(by=len(names)), node)
    return Rows(node, names)


def join(draft: Draft, left: Rows, right: Rows) -> Rows:
    """The natural join of two rows."""
    op, names = join_of(left, right)
    return Rows(draft.add(op, left.node, right.node), names)


Body = Callable[[Draft, Sequence[FactPattern], Source], Rows]
"""How a planner plans a conjunction of patterns."""


def apply_predicate(draft: Draft, rows: Rows, part: Test | Bind | Without, source: Source, body: Body) -> Rows:
    """The rows after one predicate."""
    match part:
        case Test(expression=expression):
            condition = expression_of(expression, rows.names)
            if not isinstance(condition, Apply):
                raise PlannerError(f"a test has to call a function, not {condition!r}")
            return Rows(draft.add(ops.Test(condition, is_timed(expression)), rows.node), rows.names)
        case Bind(variable=variable, expression=expression):
            value = expression_of(expression, rows.names)
            return Rows(draft.add(ops.Extend(value, is_timed(expression)), rows.node), (*rows.names, variable))
        case Without(joinables=joinables):
            absent = body(draft, joinables, source)
            shared = tuple(name for name in absent.names if name in rows.names)
            on = tuple((rows.names.index(name), absent.names.index(name)) for name in shared)
            return Rows(draft.add(ops.AntiJoin(on), rows.node, absent.node), rows.names)


def source_of(rule: System) -> Source:
    """The one source that a rule reads."""
    if len(rule.sources) != 1:
        raise PlannerError(f"rule `{rule.name}` reads {len(rule.sources)} sources; it has to read one", rule.origin)
    return rule.sources[0]


def is_effect(part: Test | Bind | Without) -> bool:
    """Whether a predicate does something (``print``), so that it has to come after all that decide whether it does."""
    return isinstance(part, Test) and not functions.lookup(part.expression.function).pure


def emit_heads(draft: Draft, rows: Rows, rule: System) -> list[str]:
    """An `Emit` per head of the rule, over the rows of its body."""
    emits = []
    for consequence in rule.consequences:
        for template in consequence.template:
            op = Emit(_template(template, rows.names, rule), (rule.name,), rule.reentrant)
            emits.append(draft.add(op, rows.node))
    return emits


def plan_in_written_order(draft: Draft, system: System, body: Body) -> list[str]:
    """The `Emit` nodes of all rules: of each its body, as `body` plans it, its predicates as they are written, its
    heads."""
    emits: list[str] = []
    for rule in rules(system):
        source = source_of(rule)
        rows = body(draft, rule.joinables, source)
        for part in rule.predicates:
            rows = apply_predicate(draft, rows, part, source, body)
        emits += emit_heads(draft, rows, rule)
    return emits


def _template(template: FactPattern, names: Sequence[Variable], rule: System) -> tuple[int | Term, ...]:
    cells: list[int | Term] = [relation_mark(template.relation)] if isinstance(template, AtomPattern) else []
    for slot in template.slots:
        if isinstance(slot, Variable) and slot not in names:
            raise PlannerError(f"the head of rule `{rule.name}` has `{slot}`, which its body never binds", rule.origin)
        cells.append(names.index(slot) if isinstance(slot, Variable) else slot)
    return tuple(cells)


# The end of a plan


def finish(draft: Draft, system: System, emits: Iterable[str], planner: str, ordered: bool = False) -> Plan:
    """The plan: facts made by rules are made unique, read again where they fit, and delivered.

    Facts are made unique per *shape* (the constants of their templates): two shapes that have no fact in common do not
    depend on each other, so that stratification sees what a rule can make, not just that it makes something.
    ``ordered``: list the nodes by depth and id, so that the order of the rules does not show.
    """
    made = _unique_facts(draft, emits)
    again = _ShapeIndex(fact for fact in made if fact.reentrant)
    for id, node in list(draft.nodes.items()):
        if isinstance(node.op, Match):
            edges = tuple(Input(fact.node, feedback=True) for fact in again.overlapping(_shape_of(node.op.cells)))
            draft.nodes[id] = replace(node, inputs=node.inputs + edges)
    index = _ShapeIndex(made)
    distinct = any(len(index.overlapping(fact.shape)) > 1 for fact in made)
    draft.add(ops.Deliver(system.output, distinct), *(fact.node for fact in made))
    nodes = _by_depth(draft) if ordered else list(draft.nodes.values())
    return Plan(tuple(group(nodes)), planner)


class _Facts(NamedTuple):
    """Unique facts of one shape: the node that makes them so, and whether they are read again."""

    shape: Shape
    reentrant: bool
    node: str


def _unique_facts(draft: Draft, emits: Iterable[str]) -> list[_Facts]:
    groups: dict[tuple[Shape, bool], list[str]] = {}
    for id in dict.fromkeys(emits):
        op = draft.nodes[id].op
        if isinstance(op, Emit):
            groups.setdefault((_shape_of(op.template), op.reentrant), []).append(id)
    ordered = sorted(groups.items(), key=lambda group: ([cell or "" for cell in group[0][0]], group[0][1]))
    return [
        _Facts(made, reentrant, draft.add(ops.Distinct(by=len(made)), *sorted(group)))
        for (made, reentrant), group in ordered
    ]


def _shape_of(cells: Sequence[Cell]) -> Shape:
    return tuple(cell.term if isinstance(cell, Value) else cell if isinstance(cell, str) else None for cell in cells)


class _ShapeIndex:
    """Facts of some shape, found by the predicate or the relation."""

    def __init__(self, made: Iterable[_Facts]) -> None:
        self.all = list(made)
        self.by_predicate: dict[Term | None, list[_Facts]] = {}
        for facts in self.all:
            self.by_predicate.setdefault(predicate(facts.shape), []).append(facts)

    def overlapping(self, wanted: Shape) -> list[_Facts]:
        """Those that may make a fact of this shape, in the order of their nodes."""
        key = predicate(wanted)
        near = self.all if key is None else self.by_predicate.get(key, []) + self.by_predicate.get(None, [])
        return sorted((facts for facts in near if overlap(facts.shape, wanted)), key=lambda facts: facts.node)


def _by_depth(draft: Draft) -> list[Node]:
    depths: dict[str, int] = {}
    for id, node in draft.nodes.items():
        depths[id] = 1 + max((depths[edge.node] for edge in node.inputs if not edge.feedback), default=0)
    return sorted(draft.nodes.values(), key=lambda node: (depths[node.id], node.id))
