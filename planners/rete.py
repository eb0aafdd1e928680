"""The Rete planner: brings every rule into canonical form, and shares equal nodes among rules.

Sources: Forgy 1982; Doorenbos 1995 on node sharing.

A node is named by a digest of its operator and its inputs, so that sharing is equality. Equal work should give equal
nodes, whatever the order of a body and the names of its variables. So the body is brought into a canonical order. The
patterns that most rules have come first, which gives long shared prefixes. Among the remaining orders the one is taken
whose joins, predicates and consequences have the least code (`squall.planners.canonical_order`).

For the same reason a part of a body (a subquery, a union) has not one result but several forms: one node, with each
assignment of its variables to columns that means the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice, permutations, product

from squall.errors import PlannerError, SquallError, raise_all
from squall.functions.deadlines import time_operands
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
    SequenceJoin,
    Source,
    System,
    TableFunction,
    Temporal,
    Union,
    Variable,
    output_specs,
    rules,
    variables,
    visible,
)
from squall.model.stratification import is_time_dependent
from squall.model.walk import walk
from squall.plan import Plan
from squall.plan.cardinality import Statistics
from squall.plan.fingerprint import stable_id
from squall.plan.operators import Match
from squall.planners.canonical_order import MAX_ORDERS, JoinOrder, PlannedJoinable, Rank, least_orders
from squall.planners.lowering.columns import union
from squall.planners.lowering.compatible_joins import join
from squall.planners.lowering.limits import check_size
from squall.planners.lowering.plan_builder import digest
from squall.planners.lowering.plan_outputs import RuleOutput, assemble, partitioned
from squall.planners.lowering.rule_plans import (
    Draft,
    Rows,
    apply_modifiers,
    apply_predicate,
    consequence_nodes,
    correlated_bindings,
    counts_solutions,
    is_correlated,
    is_effect,
    is_query,
    match_node,
    match_of,
    scan_nodes,
    sequence_join,
    stores_rows,
    temporal,
    unit,
)
from squall.planners.lowering.scope import Names, is_closed, mentioned, single_use_variables
from squall.planners.passes.bind_left_joins import bind_left_joins
from squall.planners.passes.canonical_columns import canonical_columns
from squall.planners.passes.eliminate_distinct import eliminate_distinct
from squall.planners.passes.gate_steps import gate_steps
from squall.planners.passes.join_by_equality import join_by_equality
from squall.planners.passes.join_order import order_joins
from squall.planners.passes.merge_matches import merge_matches
from squall.planners.passes.prune_columns import prune_columns
from squall.planners.passes.push_filters import push_filters
from squall.planners.passes.read_steps_directly import read_steps_directly
from squall.planners.passes.share_constants import share_constants
from squall.planners.passes.transitive_closure import introduce_closures

MAX_FORMS = 64
"""With more forms of predicates that may come next, the first in the order of the program is taken."""

Pass = Callable[[Plan, Statistics | None], Plan]
"""A pass turns a plan into an equivalent one. It is given statistics of the data, if there are any."""

PASSES: tuple[Pass, ...] = (
    bind_left_joins,  # left joins become joins where their unbound rows would be dropped
    introduce_closures,  # transitive rules become an operator
    share_constants,  # rules that differ in a constant share a join, so that one body remains to be ordered
    order_joins,  # the cheapest joins come first
    share_constants,  # the new order may allow more sharing
    push_filters,  # filters apply as early as possible
    join_by_equality,  # what a filter compares for equality becomes the key of a join
    prune_columns,  # columns that nothing reads are dropped
    eliminate_distinct,  # duplicates stay where no consequence depends on them
    merge_matches,  # patterns that differ in a constant, and are united anyway, become one
    read_steps_directly,  # steps of patterns over time that look at one fact at a time need no derived stream
    gate_steps,  # other steps are evaluated while what comes before them is open
)


def plan(
    system: System,
    statistics: Statistics | None = None,
    passes: Sequence[Pass] = PASSES,
    *,
    replaceable: bool = False,
) -> Plan:
    """Plans all rules as one Rete network that shares equal nodes.

    Args:
        system: The system.
        statistics: Statistics of the data that the plan is for, which decide the order of joins.
        passes: The passes over the plan, in their order.
        replaceable: Whether a run may replace the plan by one for other statistics, so that joins output their columns
            in an order that does not depend on these.

    Raises:
        PlannerError: The system cannot be planned.
    """
    check_size(system)
    planner = _RetePlanner(system)
    specs = output_specs(system)
    ends = [RuleOutput(node, spec) for spec in specs for rule in spec.rules for node in planner.rule(rule)]
    result = assemble(planner.draft, system, ends, "rete", in_order=True)
    for pass_ in passes:
        result = pass_(result, statistics)
    if replaceable:
        result = canonical_columns(result)
    return partitioned(result)


def identities(system: System) -> list[tuple[str, ...]]:
    """Returns for each rule (`squall.model.outputs`) the identities of the nodes in which it ends.

    They are the same for rules that mean the same, whatever the order of their bodies and the names of their variables.

    Raises:
        PlannerError: A rule cannot be planned.
        Errors: Several rules cannot be planned.
    """
    check_size(system)
    planner = _RetePlanner(system)
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


class _RetePlanner:
    def __init__(self, system: System) -> None:
        self.draft = Draft(digest)
        parts = (part for rule in rules(system) for part in walk(rule))
        patterns = [part for part in parts if isinstance(part, FactPattern)]
        self.patterns = {id(pattern): match_of(pattern) for pattern in patterns}
        """The `Match` and the variables of each pattern of the program, by the identity of the pattern."""
        self.uses = Counter(self.patterns[id(pattern)][0] for pattern in patterns)
        self.parts: dict[tuple[int, bool, Rows | None], list[Rows]] = {}
        self.matches: dict[tuple[tuple[Source, ...], bool], _Matches] = {}
        """The matches over the same sources: those that are sets, and the others."""
        self.reads: dict[tuple[Source, ...], list[str]] = {}
        self.planned = system
        self.local_variables: Collection[Variable] | None = None
        """The variables of the current rule that occur once (`_local_variables`), once they have been computed."""

    def rule(self, rule: System) -> list[str]:
        """Returns the nodes in which the rule ends.

        The rule is planned under each order that its body leaves open; the plan with the least code is taken.
        """
        self.planned, self.local_variables = rule, None
        orders = self.orders(rule, is_query(rule), part=False)
        first_order = orders[0]
        if len(orders) > 1:
            first_order = min(orders, key=lambda order: self._trial(order, rule))
        return self._plan(self.draft, first_order, rule)

    def _trial(self, order: JoinOrder, rule: System) -> tuple[str, ...]:
        return tuple(map(stable_id, self._plan(Draft(digest), order, rule)))

    def _plan(self, draft: Draft, order: JoinOrder, rule: System) -> list[str]:
        return consequence_nodes(draft, self.solutions(draft, order, rule, is_query(rule), part=False), rule)

    def solutions(
        self,
        draft: Draft,
        order: JoinOrder,
        system: System,
        needs_multiplicity: bool,
        part: bool,
        correlated: Rows | None = None,
    ) -> Rows:
        """Returns the solutions of a rule or part under an order of its body.

        Args:
            draft: The plan.
            order: The join order of the body.
            system: The rule or part.
            needs_multiplicity: Whether the multiplicity of each solution matters.
            part: Whether it is a part of a rule.
            correlated: The correlated bindings of an EXISTS around the part. The parts inside are joined with them,
                since they may read their variables.
        """
        rows = join_all(draft, order.joined)
        remaining = list(system.predicates)
        while remaining:
            number, inner = self._next(
                rows, remaining, system, counts_solutions(system, needs_multiplicity), correlated
            )
            rows = apply_predicate(draft, rows, remaining.pop(number), inner, self.plan_exists, system, correlated)
        return apply_modifiers(draft, rows, system, part, correlated)

    def forms(self, part: System, needs_multiplicity: bool, correlated: Rows | None = None) -> list[Rows]:
        """Returns the solutions of a part: all forms with the least node, which differ only in their variables."""
        key = (id(part), needs_multiplicity, correlated)
        if key not in self.parts:
            self.parts[key] = (
                self._closed(part, needs_multiplicity, correlated) if correlated and is_closed(part) else []
            )
            self.parts[key] = self.parts[key] or self._forms(part, needs_multiplicity, correlated)
        return self.parts[key]

    def _closed(self, part: System, needs_multiplicity: bool, correlated: Rows) -> list[Rows]:
        return list(dict.fromkeys(join(self.draft, correlated, rows) for rows in self.forms(part, needs_multiplicity)))

    def _forms(self, part: System, needs_multiplicity: bool, correlated: Rows | None) -> list[Rows]:
        trials = [
            (self.solutions(Draft(digest), order, part, needs_multiplicity, True, correlated), order)
            for order in self.orders(part, needs_multiplicity, True, correlated)
        ]
        least, best_order = min(trials, key=_trial_order)
        self.solutions(self.draft, best_order, part, needs_multiplicity, True, correlated)
        return list(dict.fromkeys(rows for rows, _ in trials if rows.node == least.node))

    def plan_exists(self, rows: Rows, part: Exists) -> Sequence[Rows]:
        """Returns the solutions of the inner part of an EXISTS for some rows, in each form."""
        return self.forms(part.system, False, correlated_bindings(self.draft, rows, part))

    # Bodies

    def orders(
        self, system: System, needs_multiplicity: bool, part: bool, correlated: Rows | None = None
    ) -> list[JoinOrder]:
        """Returns the least join orders of a system's body."""
        needs_multiplicity = counts_solutions(system, needs_multiplicity)
        return self._orders(
            system.joinables, system, needs_multiplicity, needs_multiplicity or part or stores_rows(system), correlated
        )

    def _orders(
        self,
        joinables: Sequence[Joinable],
        system: System,
        needs_multiplicity: bool,
        unique: bool,
        correlated: Rows | None,
    ) -> list[JoinOrder]:
        matches = self.matches.setdefault((system.sources, unique), {})
        leaves = [
            self._leaf(joinable, system, needs_multiplicity, unique, matches, correlated) for joinable in joinables
        ]
        first = None if any(map(is_correlated, joinables)) else correlated
        return least_orders(leaves, first, self._local_variables)

    def _local_variables(self) -> Collection[Variable]:
        """Returns the variables that occur only once in the rule."""
        if self.local_variables is None:
            self.local_variables = single_use_variables(self.planned)
        return self.local_variables

    def _leaf(
        self,
        joinable: Joinable,
        system: System,
        needs_multiplicity: bool,
        unique: bool,
        matches: _Matches,
        correlated: Rows | None,
    ) -> PlannedJoinable:
        match joinable:
            case Pattern() | AtomPattern():
                return self._pattern(joinable, system, unique, matches)
            case SequenceJoin(sides=sides):
                forms = self._sequence_join(joinable, [self.forms(side, True) for side in sides], system)
            case Temporal(system=inner):
                forms = self._temporal(joinable, self.forms(inner, False))
            case Union(branches=branches):
                forms = self._union([self.forms(branch, needs_multiplicity, correlated) for branch in branches])
            case System():
                forms = self.forms(joinable, needs_multiplicity, correlated)
        placed = (replace(rows, origin=rows.origin or system.origin) for rows in forms)
        return PlannedJoinable((0, len(forms[0].names), stable_id(forms[0].node)), tuple(placed))

    def _pattern(self, pattern: FactPattern, system: System, unique: bool, matches: _Matches) -> PlannedJoinable:
        op, names = self.patterns[id(pattern)]
        match_rows = matches.get(op)
        if match_rows is None:
            node = match_node(self.draft, op, self._reads(system, pattern), len(names), unique)
            match_rows = matches[op] = (node, (-self.uses[op], len(names), f"{op!r} {node}"))
        return PlannedJoinable(match_rows[1], (Rows(match_rows[0], names, origin=pattern.origin),))

    def _reads(self, system: System, pattern: FactPattern) -> list[str]:
        if system.sources not in self.reads:
            self.reads[system.sources] = scan_nodes(self.draft, system, pattern)
        return self.reads[system.sources]

    def _union(self, branches: Sequence[Sequence[Rows]]) -> list[Rows]:
        """Returns the union of the branches, in each form.

        The branches are in the order of their nodes, and the columns in the order of the first branch that has them. Of
        branches with equal nodes, the permutations that give the least node are taken.
        """
        combinations = (rows_list for combination in product(*branches) for rows_list in _by_node(combination))
        trials = [(union(Draft(digest), rows_list), rows_list) for rows_list in islice(combinations, MAX_ORDERS)]
        least, combination = min(trials, key=_trial_order)
        union(self.draft, combination)
        return list(dict.fromkeys(rows for rows, _ in trials if rows.node == least.node))

    def _temporal(self, part: Temporal, inner: Sequence[Rows]) -> list[Rows]:
        """Returns the solutions of a system over other intervals, in each form with the least node."""
        trials = [(temporal(Draft(digest), part, rows), rows) for rows in inner]
        least, inner_rows = min(trials, key=_trial_order)
        temporal(self.draft, part, inner_rows)
        return list(dict.fromkeys(rows for rows, _ in trials if rows.node == least.node))

    def _sequence_join(self, part: SequenceJoin, sides: Sequence[Sequence[Rows]], system: System) -> list[Rows]:
        """Returns the rows of a sequence join, in each form: of the forms of its sides those with the least node."""
        trials = [
            (sequence_join(Draft(digest), part, rows_list, system), rows_list)
            for rows_list in islice(product(*sides), MAX_ORDERS)
        ]
        least, rows_list = min(trials, key=_trial_order)
        sequence_join(self.draft, part, rows_list, system)
        return list(dict.fromkeys(rows for rows, _ in trials if rows.node == least.node))

    # Predicates

    def _next(
        self,
        rows: Rows,
        remaining: Sequence[Predicate],
        system: System,
        needs_multiplicity: bool,
        correlated: Rows | None,
    ) -> tuple[int, Rows | None]:
        """Returns the predicate with the least code among those that may come next, in the form with the least code."""
        ready_forms = (
            (number, inner)
            for number in _ready(remaining, rows.non_null)
            for inner in self._inner(remaining[number], system, needs_multiplicity, correlated)
        )
        forms = list(islice(ready_forms, MAX_FORMS + 1))
        if len(forms) == 1 or len(forms) > MAX_FORMS:
            return forms[0]
        return min(forms, key=lambda form: self._trial_of(rows, remaining[form[0]], form[1], system, correlated))

    def _trial_of(
        self, rows: Rows, part: Predicate, inner: Rows | None, system: System, correlated: Rows | None
    ) -> str:
        return stable_id(apply_predicate(Draft(digest), rows, part, inner, self.plan_exists, system, correlated).node)

    def _inner(
        self, part: Predicate, system: System, needs_multiplicity: bool, correlated: Rows | None
    ) -> Sequence[Rows | None]:
        """Returns the rows of the inner part of a predicate, in each form."""
        match part:
            case Negation(joinables=joinables):
                orders = self._orders(joinables, system, False, True, correlated)
                return [join_all(self.draft, order.joined) for order in orders]
            case Optional(system=inner):
                return self.forms(inner, needs_multiplicity, correlated)
            case _:
                return [None]


def join_all(draft: Draft, leaves: Sequence[Rows]) -> Rows:
    """Returns the rows of a conjunction, joined in the order given."""
    if not leaves:
        return unit(draft)
    first, *other_leaves = leaves
    for other in other_leaves:
        first = join(draft, first, other)
    return first


def _node_order(rows: Rows) -> str:
    return stable_id(rows.node)


def _trial_order(trial: tuple[Rows, object]) -> str:
    return stable_id(trial[0].node)


def _by_node(branches: Iterable[Rows]) -> Iterator[list[Rows]]:
    """Yields the branches in the order of their nodes, in every such order if some nodes are equal."""
    groups_by_node = groupby(sorted(branches, key=_node_order), key=_node_order)
    for groups in product(*(list(islice(permutations(group), MAX_ORDERS)) for _, group in groups_by_node)):
        yield [rows for group in groups for rows in group]


def _ready(predicates: Sequence[Predicate], sure: Names) -> Iterator[int]:
    """Yields the numbers of the predicates that may move before all predicates in front of them.

    A predicate may if none of them binds what it reads or reads what it binds. A predicate with a side effect
    (``print``) stays behind those that decide whether it happens. One that takes the time since which a solution holds
    keeps its place among those that decide about that time.

    Args:
        predicates: The predicates, in the order of the program.
        sure: The variables that are always bound before them.
    """
    # In one piece: one condition over what the predicates before have done.
    read_before, bound_before = set[Variable](), set[Variable]()
    effect_before = timed_before = decider_before = False
    for number, part in enumerate(predicates):
        reads, binds, has_effect = _reads(part), _binds(part, sure), is_effect(part)
        reads_time = isinstance(part, Filter | Bind) and is_time_dependent(part.expression)
        is_deadline = reads_time and isinstance(part, Filter) and time_operands(part.expression) is not None
        is_timed = reads_time and not is_deadline
        decides = isinstance(part, Negation | Optional | Exists) or is_deadline
        if not (
            (has_effect and number > 0)
            or effect_before
            or not reads.isdisjoint(bound_before)
            or not binds.isdisjoint(read_before)
            or (is_timed and decider_before)
            or (decides and timed_before)
        ):
            yield number
        read_before |= reads
        bound_before |= binds
        effect_before |= has_effect
        timed_before |= is_timed
        decider_before |= decides


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
    """Returns the variables that a predicate may bind.

    Args:
        part: The predicate.
        sure: The variables that are always bound before it.
    """
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
