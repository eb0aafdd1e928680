"""The Rete planner: every rule in canonical form, and equal work done once (Forgy 1982; Doorenbos 1995 on sharing).

A node is named by a digest of its operator and its inputs, so that sharing is equality. For equal work to be equal
nodes, whatever the order of a body and the names of its variables, the body is brought into a canonical order: the
patterns that most rules have come first (long shared prefixes), and among the orders that this leaves, the one whose
joins, predicates and heads have the least code. Two patterns that look alike on their own (`p(x,y) p(y,z)`) are told
apart by how they join the rest: all orders that are least so far are carried on together, which is canonical labelling
by search (McKay 1981).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from squall.operators import Emit, Match, Operator, Unit
from squall.plan import Plan
from squall.planners.common import (
    Draft,
    Rows,
    apply_predicate,
    emit_heads,
    finish,
    is_effect,
    join,
    join_of,
    match_of,
    read_match,
    source_of,
)
from squall.system import Bind, FactPattern, Predicate, Source, System, Test, Variable, Without, rules, variables

CARRIED = 256
"""How many orders are carried on at most. More equal patterns than that in one body may cost sharing, never more."""


def plan(system: System) -> Plan:
    """The plan of a system. Raises PlannerError."""
    planner = _Rete(system)
    emits = [emit for rule in rules(system) for emit in planner.rule(rule)]
    return finish(planner.draft, system, emits, "rete", ordered=True)


def identity(op: Operator, inputs: tuple[str, ...]) -> str:
    """A name that is the same in every process for the same operator on the same inputs."""
    value = replace(op, rules=()) if isinstance(op, Emit) else op
    text = "\n".join((repr(value), *inputs))
    return f"{type(op).__name__.lower()}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


@dataclass(frozen=True)
class _Order:
    """A body in some order, with the variables of the columns that its joins have made so far."""

    patterns: tuple[FactPattern, ...] = ()
    left: tuple[FactPattern, ...] = ()
    names: tuple[Variable, ...] = ()


class _Rete:
    def __init__(self, system: System) -> None:
        self.draft = Draft(identity)
        self.uses = Counter(match_of(pattern)[0] for rule in rules(system) for pattern in rule.joinables)

    def rule(self, rule: System) -> list[str]:
        """The rule planned under each order that its body leaves open; the one with the least code is kept."""
        orders = self._orders(rule.joinables)
        chosen = orders[0]
        if len(orders) > 1:
            chosen = min(orders, key=lambda order: self._trial(order, rule))
        return self._plan(self.draft, chosen, rule)

    def _trial(self, order: _Order, rule: System) -> tuple[str, ...]:
        return tuple(self._plan(Draft(identity), order, rule))

    def _plan(self, draft: Draft, order: _Order, rule: System) -> list[str]:
        source = source_of(rule)
        rows = self._joins(draft, order, source)
        remaining = list(rule.predicates)
        while remaining:
            number, part = self._next(rows, remaining, source)
            del remaining[number]
            rows = apply_predicate(draft, rows, part, source, self.body)
        return emit_heads(draft, rows, rule)

    def body(self, draft: Draft, patterns: Sequence[FactPattern], source: Source) -> Rows:
        """The rows of a conjunction by itself (what a `Without` negates), joined in the order given."""
        return self._joins(draft, _Order(tuple(patterns)), source)

    def _joins(self, draft: Draft, order: _Order, source: Source) -> Rows:
        if not order.patterns:
            return Rows(draft.add(Unit()), ())
        first, *others = (read_match(draft, p, source, unique=len(order.patterns) > 1) for p in order.patterns)
        for matched in others:
            first = join(draft, first, matched)
        return first

    def _orders(self, patterns: Sequence[FactPattern]) -> list[_Order]:
        orders = [_Order(left=tuple(patterns))]
        for _ in patterns:
            steps = [step for order in orders for step in self._steps(order)]
            least = min(code for code, _ in steps)
            orders = list(dict.fromkeys(order for code, order in steps if code == least))[:CARRIED]
        return orders

    def _steps(self, order: _Order) -> list[tuple[tuple[object, ...], _Order]]:
        """Each pattern that could come next: its code, and the order with it."""
        steps: list[tuple[tuple[object, ...], _Order]] = []
        for position, pattern in enumerate(order.left):
            op, names = match_of(pattern)
            joined, together = join_of(Rows("", order.names), Rows("", names))
            apart = bool(order.patterns and names and not joined.on)
            code = (apart, -self.uses[op], _selectivity(op), repr(op), joined.on)
            rest = order.left[:position] + order.left[position + 1 :]
            steps.append((code, _Order((*order.patterns, pattern), rest, together)))
        return steps

    def _next(self, rows: Rows, remaining: Sequence[Predicate], source: Source) -> tuple[int, Predicate]:
        """Among the predicates that may come next, in each form that means the same, the one with the least code."""
        ready = (number for number, part in enumerate(remaining) if _is_ready(part, remaining[:number]))
        forms = [(number, form) for number in ready for form in self._forms(remaining[number])]
        return min(forms, key=lambda form: apply_predicate(Draft(identity), rows, form[1], source, self.body).node)

    def _forms(self, part: Predicate) -> list[Predicate]:
        """A `Without` with its patterns in each order that is least; anything else as it is."""
        if not isinstance(part, Without):
            return [part]
        return [replace(part, joinables=order.patterns) for order in self._orders(part.joinables)]


def _selectivity(op: Match) -> int:
    """Fewer variables first."""
    return len({cell for cell in op.cells if isinstance(cell, int)})


def _is_ready(part: Predicate, earlier: Sequence[Predicate]) -> bool:
    """Whether a predicate may change places with all that stand before it: none binds what it reads or reads what it
    binds, and what has an effect (``print``) stays behind all that decide whether it happens."""
    if earlier and (is_effect(part) or any(map(is_effect, earlier))):
        return False
    reads, binds = _reads(part), _binds(part)
    return not any(reads & _binds(before) or binds & _reads(before) for before in earlier)


def _reads(part: Predicate) -> set[Variable]:
    match part:
        case Without(joinables=joinables):
            return {name for pattern in joinables for name in variables(pattern)}
        case Bind(expression=expression) | Test(expression=expression):
            return set(variables(expression))


def _binds(part: Predicate) -> set[Variable]:
    return {part.variable} if isinstance(part, Bind) else set()
