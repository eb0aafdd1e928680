"""The Rete planner: every rule in canonical form, and equal work done once (Forgy 1982; Doorenbos 1995 on sharing).

A node is named by a digest of its operator and its inputs, so that sharing is equality. For equal work to be equal
nodes, whatever the order of a body and the names of its variables, the body is brought into a canonical order: the
patterns that most rules have come first (long shared prefixes), and among the orders that this leaves, the one whose
joins, predicates and consequences have the least code (`squall.planners.canonical_order`). For the same reason a part
of a body (a sub-query, a union) has not one result but several: one node, and each way in which its variables may lie
in the columns without making a difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice, permutations, product

from squall.errors import PlannerError, SquallError, raise_all
from squall.model import (
    AtomPattern,
    Bind,
    Exists,
    FactPattern,
    Filter,
    Joinable,
    Negation,
    Optional,
    Pattern,
    Predicate,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    output_specs,
    rules,
    variables,
    visible,
)
from squall.model.stratification import is_time_dependent
from squall.plan import Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Match
from squall.planners.canonical_order import CARRIED, Leaf, Order, Rank, least
from squall.planners.lowering.columns import union
from squall.planners.lowering.compatible_joins import join
from squall.planners.lowering.plan_builder import digest
from squall.planners.lowering.plan_outputs import End, ended, grouped
from squall.planners.lowering.rule_plans import (
    Draft,
    Rows,
    apply_predicate,
    counts,
    ends,
    holds,
    is_effect,
    is_query,
    is_seeded,
    match_node,
    match_of,
    modified,
    read,
    seed_of,
    unit,
)
from squall.planners.lowering.scope import Names, alone, is_closed, mentioned
from squall.planners.lowering.walk import walk
from squall.planners.passes.eliminate_distinct import drop_checks
from squall.planners.passes.join_order import order_joins
from squall.planners.passes.prune_columns import drop_columns
from squall.planners.passes.push_filters import push_tests
from squall.planners.passes.share_constants import share_constants
from squall.planners.passes.transitive_closure import close

Pass = Callable[[Plan, Statistics | None], Plan]
"""A plan to one that means the same, by statistics of the data where there are any."""

PASSES: tuple[Pass, ...] = (
    close,  # a transitive rule is an operator of its own
    share_constants,  # rules that differ in a constant share a join: of thousands, one body is left to be ordered
    order_joins,  # what costs least is joined first
    share_constants,  # and where that has brought the constants together
    push_tests,  # tests are made as early as can be
    drop_columns,  # what is not read later is not kept
    drop_checks,  # duplicates are not looked for where nobody can tell
)


def plan(system: System, statistics: Statistics | None = None, passes: Sequence[Pass] = PASSES) -> Plan:
    """Plans all rules as one Rete network that shares equal nodes.

    Args:
        system: The system.
        statistics: Statistics of the data that the plan is for, which decide the order of joins.
        passes: The passes over the plan, in their order.

    Raises:
        PlannerError: The system cannot be planned.
    """
    planner = _Rete(system)
    specs = output_specs(system)
    ends = [End(node, spec) for spec in specs for rule in spec.rules for node in planner.rule(rule)]
    result = ended(planner.draft, system, ends, "rete", in_order=True)
    for pass_ in passes:
        result = pass_(result, statistics)
    return grouped(result)


def identities(system: System) -> list[tuple[str, ...]]:
    """For each rule (`squall.model.outputs`), what it ends in, by the identity of nodes: the same for rules that mean
    the same, whatever the order of their bodies and the names of their variables. Raises PlannerError, or Errors with
    those of all rules."""
    planner = _Rete(system)
    keys: list[tuple[str, ...]] = []
    errors: list[SquallError] = []
    for spec in output_specs(system):
        for rule in spec.rules:
            try:
                keys.append(tuple(sorted(set(planner.rule(rule)))))
            except PlannerError as error:
                errors.append(error)
    raise_all(errors)
    return keys


_Matches = dict[Match, tuple[str, Rank]]
"""The node of each `Match`, and its rank."""


class _Rete:
    def __init__(self, system: System) -> None:
        self.draft = Draft(digest)
        parts = (part for rule in rules(system) for part in walk(rule))
        patterns = [part for part in parts if isinstance(part, FactPattern)]
        self.patterns = {id(pattern): match_of(pattern) for pattern in patterns}
        """The `Match` and the variables of each pattern of the program, which are told apart by identity."""
        self.uses = Counter(self.patterns[id(pattern)][0] for pattern in patterns)
        self.parts: dict[tuple[int, bool, Rows | None], list[Rows]] = {}
        self.matches: dict[tuple[tuple[Source, ...], bool], _Matches] = {}
        """The matches over the same sources: those that are sets, and the others."""
        self.reads: dict[tuple[Source, ...], list[str]] = {}
        self.planned = system
        self.private: Collection[Variable] | None = None
        """Of the rule that is planned (see `_private`), once they are asked for."""

    def rule(self, rule: System) -> list[str]:
        """What the rule ends in, planned under each order that its body leaves open; that with the least code."""
        self.planned, self.private = rule, None
        orders = self.orders(rule, is_query(rule), part=False)
        first_order = orders[0]
        if len(orders) > 1:
            first_order = min(orders, key=lambda order: self._trial(order, rule))
        return self._plan(self.draft, first_order, rule)

    def _trial(self, order: Order, rule: System) -> tuple[str, ...]:
        return tuple(self._plan(Draft(digest), order, rule))

    def _plan(self, draft: Draft, order: Order, rule: System) -> list[str]:
        return ends(draft, self.solutions(draft, order, rule, is_query(rule), part=False), rule)

    def solutions(
        self, draft: Draft, order: Order, system: System, needs_multiplicity: bool, part: bool, seed: Rows | None = None
    ) -> Rows:
        """The solutions of a rule or part under an order of its body. seed: rows that its own parts are joined with,
        since they may read what these bind."""
        rows = joined(draft, order.joined)
        remaining = list(system.predicates)
        while remaining:
            number, inner = self._next(rows, remaining, system, counts(system, needs_multiplicity), seed)
            rows = apply_predicate(draft, rows, remaining.pop(number), inner, self.asked, system, seed)
        return modified(draft, rows, system, part, seed)

    def forms(self, part: System, needs_multiplicity: bool, seed: Rows | None = None) -> list[Rows]:
        """The solutions of a part: those with the least node, which differ in their variables only."""
        key = (id(part), needs_multiplicity, seed)
        if key not in self.parts:
            self.parts[key] = self._closed(part, needs_multiplicity, seed) if seed and is_closed(part) else []
            self.parts[key] = self.parts[key] or self._forms(part, needs_multiplicity, seed)
        return self.parts[key]

    def _closed(self, part: System, needs_multiplicity: bool, seed: Rows) -> list[Rows]:
        return list(dict.fromkeys(join(self.draft, seed, rows) for rows in self.forms(part, needs_multiplicity)))

    def _forms(self, part: System, needs_multiplicity: bool, seed: Rows | None) -> list[Rows]:
        trials = [
            (self.solutions(Draft(digest), order, part, needs_multiplicity, True, seed), order)
            for order in self.orders(part, needs_multiplicity, True, seed)
        ]
        least, best_order = min(trials, key=lambda trial: trial[0].node)
        self.solutions(self.draft, best_order, part, needs_multiplicity, True, seed)
        return list(dict.fromkeys(rows for rows, _ in trials if rows.node == least.node))

    def asked(self, rows: Rows, part: Exists) -> Sequence[Rows]:
        """The solutions of what is to exist for some rows, in each form."""
        return self.forms(part.system, False, seed_of(self.draft, rows, part))

    # Bodies

    def orders(self, system: System, needs_multiplicity: bool, part: bool, seed: Rows | None = None) -> list[Order]:
        """The orders of a system's body that are least."""
        needs_multiplicity = counts(system, needs_multiplicity)
        return self._orders(
            system.joinables, system, needs_multiplicity, needs_multiplicity or part or holds(system), seed
        )

    def _orders(
        self, joinables: Sequence[Joinable], system: System, needs_multiplicity: bool, unique: bool, seed: Rows | None
    ) -> list[Order]:
        matches = self.matches.setdefault((system.sources, unique), {})
        leaves = [self._leaf(joinable, system, needs_multiplicity, unique, matches, seed) for joinable in joinables]
        first = None if any(map(is_seeded, joinables)) else seed
        return least(leaves, first, self._private)

    def _private(self) -> Collection[Variable]:
        """The variables that stand in one place of the rule alone."""
        if self.private is None:
            self.private = alone(self.planned)
        return self.private

    def _leaf(
        self,
        joinable: Joinable,
        system: System,
        needs_multiplicity: bool,
        unique: bool,
        matches: _Matches,
        seed: Rows | None,
    ) -> Leaf:
        match joinable:
            case Pattern() | AtomPattern():
                return self._pattern(joinable, system, unique, matches)
            case Union(branches=branches):
                forms = self._union([self.forms(branch, needs_multiplicity, seed) for branch in branches])
            case System():
                forms = self.forms(joinable, needs_multiplicity, seed)
        placed = (replace(rows, origin=rows.origin or system.origin) for rows in forms)
        return Leaf((0, len(forms[0].names), forms[0].node), tuple(placed))

    def _pattern(self, pattern: FactPattern, system: System, unique: bool, matches: _Matches) -> Leaf:
        op, names = self.patterns[id(pattern)]
        match_rows = matches.get(op)
        if match_rows is None:
            node = match_node(self.draft, op, self._reads(system, pattern), len(names), unique)
            match_rows = matches[op] = (node, (-self.uses[op], len(names), f"{op!r} {node}"))
        return Leaf(match_rows[1], (Rows(match_rows[0], names, origin=pattern.origin),))

    def _reads(self, system: System, pattern: FactPattern) -> list[str]:
        if system.sources not in self.reads:
            self.reads[system.sources] = read(self.draft, system, pattern)
        return self.reads[system.sources]

    def _union(self, branches: Sequence[Sequence[Rows]]) -> list[Rows]:
        """The branches beside each other: in the order of their nodes, and the columns in the order of the first branch
        that has them; of those whose branches look alike, the ways that have the least node."""
        ways = (way for combination in product(*branches) for way in _by_node(combination))
        trials = [(union(Draft(digest), way), way) for way in islice(ways, CARRIED)]
        least, combination = min(trials, key=lambda trial: trial[0].node)
        union(self.draft, combination)
        return list(dict.fromkeys(rows for rows, _ in trials if rows.node == least.node))

    # Predicates

    def _next(
        self, rows: Rows, remaining: Sequence[Predicate], system: System, needs_multiplicity: bool, seed: Rows | None
    ) -> tuple[int, Rows | None]:
        """Among the predicates that may come next, in each form that means the same, the one with the least code."""
        sure = rows.sure
        ready = (number for number, part in enumerate(remaining) if _is_ready(part, remaining[:number], sure))
        forms = [
            (number, inner)
            for number in ready
            for inner in self._inner(remaining[number], system, needs_multiplicity, seed)
        ]
        if len(forms) == 1:
            return forms[0]
        return min(forms, key=lambda form: self._trial_of(rows, remaining[form[0]], form[1], system, seed))

    def _trial_of(self, rows: Rows, part: Predicate, inner: Rows | None, system: System, seed: Rows | None) -> str:
        return apply_predicate(Draft(digest), rows, part, inner, self.asked, system, seed).node

    def _inner(
        self, part: Predicate, system: System, needs_multiplicity: bool, seed: Rows | None
    ) -> Sequence[Rows | None]:
        """What a predicate looks at, in each form."""
        match part:
            case Negation(joinables=joinables):
                orders = self._orders(joinables, system, False, True, seed)
                return [joined(self.draft, order.joined) for order in orders]
            case Optional(system=inner):
                return self.forms(inner, needs_multiplicity, seed)
            case _:
                return [None]


def joined(draft: Draft, leaves: Sequence[Rows]) -> Rows:
    """The rows of a conjunction, joined in the order given."""
    if not leaves:
        return unit(draft)
    first, *other_leaves = leaves
    for other in other_leaves:
        first = join(draft, first, other)
    return first


def _by_node(branches: Iterable[Rows]) -> Iterator[list[Rows]]:
    """Branches in the order of their nodes: every such order where some have the same."""
    alike = groupby(sorted(branches, key=lambda rows: rows.node), key=lambda rows: rows.node)
    for groups in product(*(list(islice(permutations(group), CARRIED)) for _, group in alike)):
        yield [rows for group in groups for rows in group]


def _is_ready(part: Predicate, earlier: Sequence[Predicate], sure: Names) -> bool:
    """Whether a predicate may change places with all that stand before it: none binds what it reads or reads what it
    binds, what has an effect (``print``) stays behind all that decide whether it happens, and what takes the time since
    which a solution holds stays where it is among those that decide since when it does."""
    if earlier and (is_effect(part) or any(map(is_effect, earlier))):
        return False
    reads, binds = _reads(part), _binds(part, sure)
    return not any(
        reads & _binds(before, sure) or binds & _reads(before) or _of_time(part, before) for before in earlier
    )


def _of_time(first: Predicate, second: Predicate) -> bool:
    return any(
        isinstance(timed_predicate, Filter | Bind)
        and is_time_dependent(timed_predicate.expression)
        and isinstance(ends, Negation | Optional | Exists)
        for timed_predicate, ends in ((first, second), (second, first))
    )


def _reads(part: Predicate) -> set[Variable]:
    match part:
        case Negation(joinables=joinables):
            return {name for joinable in joinables for name in variables(joinable)}
        case Optional(system=system, condition=condition, exists=exists):
            demanded_names = (name for predicate_part in exists for name in mentioned(predicate_part))
            return {*visible(system), *variables(condition), *demanded_names}
        case Exists():
            return set(mentioned(part))
        case Bind(expression=expression) | Filter(expression=expression):
            return set(variables(expression))
        case TableFunction(arguments=arguments):
            return {name for argument in arguments for name in variables(argument)}


def _binds(part: Predicate, sure: Names) -> set[Variable]:
    """The variables that a predicate may give a value. sure: those that have one."""
    match part:
        case Bind(variable=variable):
            return {variable}
        case TableFunction(variables=names):
            return set(names)
        case Optional(system=system):
            return set(visible(system)) - sure
        case Exists(variable=variable):
            return set() if variable is None else {variable}
        case Filter() | Negation():
            return set()
