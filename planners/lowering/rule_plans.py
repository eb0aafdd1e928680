"""The lowering of rules to nodes, for all planners: joinables, predicates, modifiers and consequences.

`plan_in_written_order` is a whole planner but for the order of joins. `finish` completes a plan
(`squall.planners.lowering.plan_outputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from squall import functions
from squall.errors import PlannerError
from squall.functions.sparql.logic import COALESCE
from squall.functions.sparql.names import FALSE, TRUE
from squall.functions.sparql.terms import SOLUTION
from squall.model import (
    Aggregate,
    Ask,
    At,
    AtomPattern,
    Bind,
    Call,
    Construct,
    Consumption,
    Delete,
    Dilate,
    Erode,
    Exists,
    Expression,
    FactPattern,
    Filter,
    Grouping,
    Insert,
    Iteration,
    Joinable,
    Minus,
    Negation,
    NotExists,
    Optional,
    Pattern,
    Predicate,
    Schedule,
    Select,
    SequenceJoin,
    Slice,
    System,
    TableFunction,
    Temporal,
    Union,
    Variable,
    is_initial,
    is_update,
    output_specs,
    variables,
    visible,
)
from squall.model.stratification import is_time_dependent
from squall.plan import operators as ops
from squall.plan.fingerprint import stable_id
from squall.plan.operators import Column, Invoke
from squall.planners.lowering.columns import (
    cells_of,
    condition_of,
    expression_of,
    forbid_time,
    match_of,
    natural_join,
    project,
    template_of,
    union,
)
from squall.planners.lowering.compatible_joins import (
    SideVariable,
    anti_join,
    correlated_columns,
    filtered,
    join,
    left_join,
    merge_sides,
    minus,
    side_variables,
    unmatched,
    with_side_columns,
)
from squall.planners.lowering.plan_builder import Draft, Identity, Rows, digest
from squall.planners.lowering.plan_outputs import RuleOutput, finish
from squall.planners.lowering.scope import is_closed, is_independent, mentioned

__all__ = ["Draft", "Identity", "JoinBody", "Rows", "finish", "join", "match_of", "plan_in_written_order"]

JoinBody = Callable[[Draft, Sequence[Joinable], Callable[[Joinable], Rows]], Rows]
"""How a planner joins a body, from the draft, the joinables, and a function that returns the rows of each of them."""
PlanExists = Callable[[Rows, Exists], Sequence[Rows]]
"""How a planner plans EXISTS: the solutions of the inner part for some rows, in each form that means the same."""


def plan_in_written_order(draft: Draft, system: System, body: JoinBody) -> list[RuleOutput]:
    """Returns the nodes in which all rules end (`Construct`, `Select`, `Update`).

    The body of each rule is joined by `body`. Its predicates apply in the order of the text.
    """
    planner = _WrittenOrderPlanner(draft, body)
    return [
        RuleOutput(node, spec)
        for spec in output_specs(system)
        for rule in spec.rules
        for node in consequence_nodes(draft, planner.solutions(rule, is_query(rule)), rule)
    ]


class _WrittenOrderPlanner:
    def __init__(self, draft: Draft, body: JoinBody) -> None:
        self.draft = draft
        self.body = body

    def solutions(
        self, system: System, needs_multiplicity: bool, part: bool = False, correlated: Rows | None = None
    ) -> Rows:
        """Returns the solutions of a rule or a part.

        Args:
            system: The rule or part.
            needs_multiplicity: Whether the multiplicity of each solution matters.
            part: Whether it is a part of a rule.
            correlated: The correlated bindings of an EXISTS around the part. The parts inside are joined with them,
                since they may read their variables.
        """
        if correlated is not None and is_closed(system):
            return join(self.draft, correlated, self.solutions(system, needs_multiplicity, part))
        needs_multiplicity = counts_solutions(system, needs_multiplicity)
        unique = needs_multiplicity or part or stores_rows(system)
        rows = self.conjunction(system.joinables, system, needs_multiplicity, unique, correlated)
        for predicate in system.predicates:
            inner = self.inner(predicate, system, needs_multiplicity, correlated)
            rows = apply_predicate(self.draft, rows, predicate, inner, self.plan_exists, system, correlated)
        return apply_modifiers(self.draft, rows, system, part, correlated)

    def conjunction(
        self,
        joinables: Sequence[Joinable],
        system: System,
        needs_multiplicity: bool,
        unique: bool,
        correlated: Rows | None,
    ) -> Rows:
        bindings = None
        if correlated is not None and not any(map(is_correlated, joinables)):
            bindings = System(consequences=(Select(correlated.names),))  # stands for the seed
            joinables = (bindings, *joinables)

        def rows(joinable: Joinable) -> Rows:
            if joinable is bindings:
                assert correlated is not None
                return correlated
            return self.rows(joinable, system, needs_multiplicity, unique, correlated)

        return self.body(self.draft, joinables, rows) if joinables else unit(self.draft)

    def rows(
        self, joinable: Joinable, system: System, needs_multiplicity: bool, unique: bool, correlated: Rows | None
    ) -> Rows:
        match joinable:
            case Pattern() | AtomPattern():
                return pattern_rows(self.draft, joinable, system, unique)
            case SequenceJoin(sides=sides):
                return sequence_join(self.draft, joinable, [self.solutions(side, True, True) for side in sides], system)
            case Temporal(system=inner):
                return temporal(self.draft, joinable, self.solutions(inner, False, True))
            case Union(branches=branches):
                return union(
                    self.draft, [self.solutions(branch, needs_multiplicity, True, correlated) for branch in branches]
                )
            case System():
                return self.solutions(joinable, needs_multiplicity, True, correlated)

    def inner(
        self, predicate: Predicate, system: System, needs_multiplicity: bool, correlated: Rows | None
    ) -> Rows | None:
        match predicate:
            case Negation(joinables=joinables):
                return self.conjunction(joinables, system, False, True, correlated)
            case Optional(system=inner):
                return self.solutions(inner, needs_multiplicity, True, correlated)
            case _:
                return None

    def plan_exists(self, rows: Rows, part: Exists) -> Sequence[Rows]:
        return [self.solutions(part.system, False, True, correlated_bindings(self.draft, rows, part))]


# How often solutions come


def is_query(rule: System) -> bool:
    """Returns whether a rule selects solutions, so that their multiplicity matters."""
    return any(isinstance(consequence, Select) for consequence in rule.consequences)


def counts_solutions(system: System, needs_multiplicity: bool) -> bool:
    """Returns whether the multiplicity of the solutions of the body matters.

    Args:
        system: The rule or part.
        needs_multiplicity: Whether the multiplicity of its final solutions matters.
    """
    return system.grouping is not None or ((needs_multiplicity or system.slice is not None) and not system.distinct)


def stores_rows(system: System) -> bool:
    """Returns whether operator state will hold the rows of the system's patterns, so that they have to be sets.

    Otherwise facts that arrive again and again would fill the state.
    """
    return len(system.joinables) > 1 or any(
        isinstance(part, Negation | Optional | Exists)
        or (isinstance(part, Filter | Bind) and is_time_dependent(part.expression))
        for part in system.predicates
    )


# Joinables


def pattern_rows(draft: Draft, pattern: FactPattern, system: System, unique: bool) -> Rows:
    """Returns the rows of one pattern over the system's sources, as a set if `unique`."""
    op, names = match_of(pattern)
    reads = scan_nodes(draft, system, pattern)
    return Rows(match_node(draft, op, reads, len(names), unique), names, origin=pattern.origin)


def scan_nodes(draft: Draft, system: System, pattern: FactPattern) -> list[str]:
    """Returns the scans of the sources of a pattern of the system."""
    if not system.sources:
        raise PlannerError(f"rule `{system.name}` has no source to read", pattern.origin or system.origin)
    return sorted({draft.add(ops.Scan(source)) for source in system.sources})


def match_node(draft: Draft, op: ops.Match, reads: Sequence[str], width: int, unique: bool) -> str:
    """Returns the node with the rows of a `Match` of `width` columns, as a set if `unique`."""
    node = draft.add(op, *reads)
    return draft.add(ops.Distinct(by=width), node) if unique else node


def sequence_join(draft: Draft, part: SequenceJoin, sides: Sequence[Rows], rule: System) -> Rows:
    """Returns the pairs of a sequence join, with the columns of the left side followed by further ones of the right
    side.

    Args:
        draft: The plan.
        part: The sequence join.
        sides: The rows of its sides, in the order of `SequenceJoin.sides`.
        rule: The rule, for messages.

    Raises:
        PlannerError: A variable that has to be equal may be unbound.
    """
    left, right, *interposed = sides
    pair, names = natural_join(left, right)
    pair_names = (*left.names, *right.names)
    forbid_time((part.condition,), "the condition of a sequence", rule)
    between = []
    for inner, rows in zip(part.between, interposed, strict=True):
        on = tuple((pair_names.index(name), column) for column, name in enumerate(rows.names) if name in pair_names)
        between.append(ops.Between(on, rows.names.index(inner.start), rows.names.index(inner.end), inner.wanted))
    _check_bound(sides, part, rule)
    keys = [name for name in left.names if all(name in rows.names for rows in sides)]
    op = ops.SequenceJoin(
        pair.on,
        tuple(tuple(map(rows.names.index, keys)) for rows in sides),
        pair.keep,
        (
            left.names.index(part.left_end),
            right.names.index(part.right_start),
            right.names.index(part.right_end),
        ),
        part.selection,
        part.min_gap,
        part.max_gap,
        None if part.condition is None else condition_of(part.condition, pair_names),
        tuple(between),
    )
    nodes = [rows.node for rows in sides]
    if isinstance(part, Iteration):
        return _iteration(draft, part, op, left, pair_names, rule, nodes)
    return Rows(draft.add(op, *nodes), names, left.nullable | right.nullable, part.origin)


def temporal(draft: Draft, part: Temporal, rows: Rows) -> Rows:
    """Returns the solutions of a system over other intervals.

    Args:
        draft: The plan.
        part: What maps the intervals.
        rows: The solutions of its system.
    """
    names, nullable = rows.names, rows.nullable
    op: ops.Temporal
    match part:
        case Dilate(length=length, step=step):
            op = ops.Dilate(length, step)
        case Erode(length=length, step=step):
            op = ops.Erode(length, step)
        case At(variable=variable, length=length, tick=tick, step=step):
            op, names = ops.At(length, tick, step), (*names, variable)
        case Schedule(time=time, tick=tick):
            op = ops.Schedule(names.index(time), tick)
        case _:
            raise PlannerError(f"`{type(part).__name__}` has no operator", part.origin)
    return Rows(draft.add(op, rows.node), names, nullable, part.origin)


def _iteration(
    draft: Draft,
    part: Iteration,
    pairs: ops.SequenceJoin,
    left: Rows,
    pair_names: Sequence[Variable],
    rule: System,
    inputs: Sequence[str],
) -> Rows:
    """Returns the runs of an iteration, with the columns of the left side.

    Args:
        draft: The plan.
        part: The iteration.
        pairs: The sequence join that pairs a run with a right row.
        left: The rows of the left side.
        pair_names: The variables of the columns of a pair.
        rule: The rule, for messages.
        inputs: The nodes of its sides.
    """
    values = dict(part.values)
    forbid_time((*values.values(), part.again), "an iteration", rule)
    op = ops.Iteration(
        pairs.on,
        pairs.keys,
        tuple(range(len(left.names))),
        pairs.times,
        pairs.selection,
        pairs.min_gap,
        pairs.max_gap,
        pairs.condition,
        pairs.between,
        tuple(expression_of(values.get(name, name), pair_names) for name in left.names),
        None if part.again is None else condition_of(part.again, left.names),
    )
    computed = {name for name, value in values.items() if isinstance(value, Call)}
    return Rows(draft.add(op, *inputs), left.names, left.nullable | computed, part.origin)


def _check_bound(sides: Sequence[Rows], part: SequenceJoin, rule: System) -> None:
    """Raises PlannerError if a variable that several sides of a sequence have may be unbound in one of them."""
    for name in sorted({name for rows in sides for name in rows.nullable}, key=str):
        if sum(name in rows.variables for rows in sides) > 1:
            raise PlannerError(
                f"rule `{rule.name}` compares `{name}`, which may be unbound, in a sequence",
                part.origin or rule.origin,
                "bind it in each part of the sequence, or give it another name in one of them",
            )


def unit(draft: Draft) -> Rows:
    """Returns the one solution without variables."""
    return Rows(draft.add(ops.Unit()), ())


def is_correlated(joinable: Joinable) -> bool:
    """Returns whether the rows of a joinable include correlated bindings, if there are any."""
    return isinstance(joinable, Union | System)


def _visible_columns(draft: Draft, rows: Rows, variables: Iterable[Variable]) -> Rows:
    """Returns the rows with only the columns of these variables. A variable without a column is never bound."""
    variables = frozenset(variables)
    projected = project(draft, rows, [name for name in rows.names if name in variables])
    return replace(projected, nullable=(rows.nullable & variables) | (variables - set(rows.names)))


# Predicates


def apply_predicate(
    draft: Draft,
    rows: Rows,
    part: Predicate,
    inner: Rows | None,
    plan_exists: PlanExists,
    rule: System,
    correlated: Rows | None = None,
) -> Rows:
    """Returns the rows after one predicate.

    Args:
        draft: The plan.
        rows: The rows before it.
        part: The predicate.
        inner: The rows of its inner part (`Negation`, `Optional`).
        plan_exists: Plans the inner part of an `Exists`.
        rule: The rule, for messages.
        correlated: The correlated bindings of an EXISTS around the rule.
    """
    match part:
        case Filter(expression=expression):
            condition = condition_of(expression, rows.names)
            return replace(rows, node=draft.add(ops.Filter(condition, is_time_dependent(expression)), rows.node))
        case Bind(variable=variable):
            renaming = _fresh((variable,), rows, rule, correlated)
            extended = _extended(draft, rows, replace(part, variable=renaming[variable]))
            return merge_sides(draft, extended, rows, renaming)
        case TableFunction(variables=results, function=function, arguments=arguments):
            renaming = _fresh(results, rows, rule, correlated)
            forbid_time(arguments, "a table function", rule)
            values = tuple(expression_of(argument, rows.names) for argument in arguments)
            node = draft.add(ops.TableFunction(function, values, len(results)), rows.node)
            extended = replace(rows, node=node, names=(*rows.names, *(renaming[name] for name in results)))
            return merge_sides(draft, extended, rows, renaming)
        case NotExists():
            assert inner is not None
            return anti_join(draft, rows, inner)
        case Minus():
            assert inner is not None
            return _minus(draft, rows, inner, part, correlated)
        case Optional():
            assert inner is not None
            return _left_join(draft, rows, inner, part, plan_exists, rule)
        case Exists(variable=variable):
            _fresh(() if variable is None else (variable,), rows, rule, None)
            return _apply_exists(draft, rows, part, plan_exists(rows, part))


def _extended(draft: Draft, rows: Rows, part: Bind) -> Rows:
    value = expression_of(part.expression, rows.names)
    node = draft.add(ops.Extend(value, is_time_dependent(part.expression), part.keep_unbound), rows.node)
    nullable = {part.variable} if part.keep_unbound and not _is_always_bound(part.expression, rows) else set()
    return replace(rows, node=node, names=(*rows.names, part.variable), nullable=rows.nullable | nullable)


def _is_always_bound(expression: Expression | None, rows: Rows) -> bool:
    """Returns whether an expression that calls nothing has a value in every row."""
    return isinstance(expression, str) or expression in rows.non_null


def _minus(draft: Draft, rows: Rows, inner: Rows, part: Minus, correlated: Rows | None) -> Rows:
    correlated_names = correlated.non_null if correlated is not None else frozenset()
    renamings = (
        []
        if correlated is None
        else [(name, renamed) for name, renamed in correlated_columns(correlated) if name in inner.variables]
    )
    return minus(draft, rows, inner, (rows.variables & inner.variables) - correlated_names - {*part.ignored}, renamings)


def _left_join(draft: Draft, left: Rows, right: Rows, part: Optional, plan_exists: PlanExists, rule: System) -> Rows:
    forbid_time((part.condition,), "the condition of an optional part", rule)
    if not part.exists:
        return left_join(draft, left, right, part.condition)
    joined = join(draft, with_side_columns(draft, left, left.names), right)
    for exists in part.exists:
        joined = apply_predicate(draft, joined, exists, None, plan_exists, rule)
    joined = filtered(draft, joined, part.condition)
    names = (*left.names, *(name for name in right.names if name not in left.names))
    both_sides = union(draft, [joined, unmatched(draft, left, joined)], names)
    return replace(both_sides, nullable=left.nullable | (right.variables - left.non_null), origin=left.origin)


def correlated_bindings(draft: Draft, rows: Rows, part: Exists) -> Rows | None:
    """Returns the columns of some rows that the inner part of an EXISTS may read, as a set.

    Returns None if the inner part can be evaluated by itself.
    """
    names = mentioned(part.system) & frozenset(rows.names)
    if not names & rows.nullable and is_independent(part.system, names):
        return None
    bindings = with_side_columns(draft, rows, [name for name in rows.names if name in names])
    return replace(bindings, node=draft.add(ops.Distinct(len(bindings.names)), bindings.node))


def _apply_exists(draft: Draft, rows: Rows, part: Exists, forms: Sequence[Rows]) -> Rows:
    if len(forms) > 1:
        forms = [min(forms, key=lambda form: stable_id(_apply_exists(Draft(digest), rows, part, [form]).node))]
    (inner,) = forms
    renaming, mentioned_names = side_variables(rows), mentioned(part.system)
    names = [name for name in rows.names if name in mentioned_names and renaming[name] in inner.names]
    on = tuple((rows.names.index(name), inner.names.index(renaming[name])) for name in names)
    if part.wanted is False:
        rows = replace(rows, node=draft.add(ops.AntiJoin(on), rows.node, inner.node))
        return rows if part.variable is None else _extended(draft, rows, Bind(part.variable, FALSE))
    matching_keys = draft.add(ops.Project(tuple(column for _, column in on)), inner.node)
    matching_keys = draft.add(ops.Distinct(len(on)), matching_keys)
    keys = tuple((left, place) for place, (left, _) in enumerate(on))
    own_columns = tuple(range(len(rows.names)))
    if part.wanted:
        rows = replace(rows, node=draft.add(ops.Join(keys, own_columns), rows.node, matching_keys))
        return rows if part.variable is None else _extended(draft, rows, Bind(part.variable, TRUE))
    if part.variable is None:
        return rows
    return _existence_column(draft, rows, matching_keys, keys, part.variable)


def _existence_column(
    draft: Draft, rows: Rows, matching_keys: str, keys: tuple[tuple[int, int], ...], variable: Variable
) -> Rows:
    """Returns the rows with a column that says whether a set has a row for them."""
    width = len(rows.names)
    own_columns = tuple(range(width))
    joined = draft.add(
        ops.LeftJoin(keys, (*own_columns, width + len(keys))), rows.node, draft.add(ops.Extend(TRUE), matching_keys)
    )
    node = draft.add(ops.Extend(Invoke(COALESCE, (Column(width), FALSE))), joined)
    node = draft.add(ops.Project((*own_columns, width + 1)), node)
    return replace(rows, node=node, names=(*rows.names, variable))


def _fresh(
    variables: Sequence[Variable], rows: Rows, rule: System, correlated: Rows | None
) -> dict[Variable, Variable]:
    """Returns the variables that a predicate binds, each with the variable of its column.

    That is a new variable if correlated bindings may bind the variable already.

    Raises:
        PlannerError: A variable has a value already.
    """
    outer_names = frozenset(correlated.names) if correlated is not None else frozenset()
    for number, name in enumerate(variables):
        if (name in rows.variables and name not in outer_names) or name in variables[:number]:
            raise PlannerError(f"rule `{rule.name}` gives `{name}` a value that it has already", rule.origin)
    return {name: SideVariable(f"again {name.name}") if name in rows.variables else name for name in variables}


def is_effect(part: Predicate) -> bool:
    """Returns whether a predicate has a side effect (``print``).

    It has to come after all predicates that decide whether it happens.
    """
    return isinstance(part, Filter) and not functions.lookup(part.expression.function).pure


# Grouping, distinct, slice


def apply_modifiers(draft: Draft, rows: Rows, system: System, part: bool, correlated: Rows | None = None) -> Rows:
    """Returns the solutions of a body after grouping, distinct and slicing.

    A part returns its visible variables and the correlated bindings.
    """
    if system.grouping is not None:
        rows = _grouped(draft, rows, system.grouping, system)
    query = is_query(system)
    selected: Iterable[Variable] = visible(system) if part or query else rows.variables
    if correlated is not None:
        selected = (*selected, *correlated.variables)
    if system.distinct:
        rows = _visible_columns(draft, rows, selected)
        rows = replace(rows, node=draft.add(ops.Distinct(len(rows.names)), rows.node))
    if system.slice is not None:
        rows = _sliced(draft, rows, system.slice, system)
    if system.consumption is not None:
        rows = _consumed(draft, rows, system.consumption)
    return _visible_columns(draft, rows, selected) if part or (query and len(system.consequences) > 1) else rows


def _consumed(draft: Draft, rows: Rows, part: Consumption) -> Rows:
    """Returns the matches that have their occurrences."""
    keys, order = (tuple(map(rows.names.index, names)) for names in (part.keys, part.order))
    start, members = map(rows.names.index, (part.start, part.members))
    op = ops.Consume(tuple(sorted(keys)), start, members, part.steps, order, part.retention)
    return replace(rows, node=draft.add(op, rows.node))


def _grouped(draft: Draft, rows: Rows, grouping: Grouping, rule: System) -> Rows:
    unbound_keys = [key for key in grouping.keys if key not in rows.names]
    rows = _with_unbound_columns(draft, rows, grouping)
    forbid_time([aggregate.expression for aggregate in grouping.aggregates], "an aggregate", rule)
    aggregates = sorted(
        ((_aggregate(item, rows), item) for item in grouping.aggregates), key=lambda pair: repr(pair[0])
    )
    keys = sorted({rows.names.index(key) for key in grouping.keys})
    node = draft.add(ops.Group(tuple(keys), tuple(op for op, _ in aggregates)), rows.node)
    names = (*(rows.names[key] for key in keys), *(item.variable for _, item in aggregates))
    nullable = {item.variable for item in grouping.aggregates if not _has_value(item, grouping, rows)}
    return Rows(node, names, frozenset(nullable | {*unbound_keys, *(rows.nullable & set(grouping.keys))}), rows.origin)


def _with_unbound_columns(draft: Draft, rows: Rows, grouping: Grouping) -> Rows:
    """Returns rows with a column for each key and each aggregated variable that is unbound.

    As an expression, what is unbound and what counts all solutions would look alike.
    """
    values = (item.expression for item in grouping.aggregates if isinstance(item.expression, Variable))
    missing_columns = dict.fromkeys(name for name in (*grouping.keys, *values) if name not in rows.names)
    return project(draft, rows, (*rows.names, *missing_columns)) if missing_columns else rows


def _aggregate(aggregate: Aggregate, rows: Rows) -> ops.Aggregate:
    expression = aggregate.expression
    if expression is None and aggregate.distinct:
        expression = Call(SOLUTION.iri, rows.names)
    return ops.Aggregate(aggregate.kind, expression_of(expression, rows.names), aggregate.distinct, aggregate.separator)


def _has_value(aggregate: Aggregate, grouping: Grouping, rows: Rows) -> bool:
    """Returns whether an aggregate always has a value, in groups that have a row if there are keys."""
    function = functions.lookup_aggregate(aggregate.kind)
    if function.bound_if_values_are and grouping.keys:
        bound = aggregate.expression in rows.names and aggregate.expression not in rows.nullable
        return bound or (isinstance(aggregate.expression, str) and aggregate.expression != "")
    return function.always_bound


def _sliced(draft: Draft, rows: Rows, part: Slice, system: System) -> Rows:
    """Returns the slice of rows, with the variables of the consequences and of the sort keys as columns, in this order.

    Rows with equal sort keys are ordered by their text, which must not depend on the plan. An order without offset and
    limit drops nothing, so that no operator is needed: the query's output sorts by itself.
    """
    expressions = [order.expression for order in part.order]
    forbid_time(expressions, "the order of a slice", system)
    names = dict.fromkeys(
        (
            *_ordered_variables(system),
            *(name for expression in expressions for name in variables(expression)),
            *part.keys,
        )
    )
    rows = project(draft, rows, [name for name in names if name in rows.names])
    if not part.offset and part.limit is None:
        return rows
    by = tuple((expression_of(order.expression, rows.names), order.descending) for order in part.order)
    keys = tuple(map(rows.names.index, part.keys))
    return replace(rows, node=draft.add(ops.Slice(by, part.offset, part.limit, keys), rows.node))


def _ordered_variables(system: System) -> Iterator[Variable]:
    for consequence in system.consequences:
        match consequence:
            case Select(variables=names):
                yield from names
            case Construct(template=template):
                yield from (name for pattern in template for name in variables(pattern))
            case Insert() | Delete():
                yield from visible(system)
    if not system.consequences:
        yield from visible(system)


# Consequences


def consequence_nodes(draft: Draft, rows: Rows, rule: System) -> list[str]:
    """Returns a node for each consequence of the rule, over its solutions: `Construct`, `Select` or `Update`."""
    nodes = []
    for consequence in rule.consequences:
        match consequence:
            case Construct(template=template, internal=internal):
                templates = (template_of(pattern, rows, rule) for pattern in template)
                emits = [
                    ops.Construct(cells, (rule.name,), rule.reentrant, internal)
                    for cells in templates
                    if cells is not None
                ]
                nodes += [draft.add(emit, rows.node) for emit in emits]
            case Select(variables=names):
                nodes.append(_select(draft, rows, names, rule))
            case Ask():
                nodes.append(_ask(draft, rows, rule))
            case Insert() | Delete():
                continue
    return [*nodes, _update(draft, rows, rule)] if is_update(rule) else nodes


def _update(draft: Draft, rows: Rows, rule: System) -> str:
    """Returns the one update of all that a rule deletes and inserts. All variables together identify a solution."""
    visible_names = set(visible(rule))
    rows = project(draft, rows, [name for name in rows.names if name in visible_names])
    quads: dict[type, list[ops.Quad]] = {Delete: [], Insert: []}
    for consequence in rule.consequences:
        if isinstance(consequence, Insert | Delete):
            quads[type(consequence)] += filter(
                None, (_quad(consequence, template, rows, rule) for template in consequence.template)
            )
    return draft.add(ops.Update(tuple(quads[Delete]), tuple(quads[Insert]), is_initial(rule), (rule.name,)), rows.node)


def _quad(update: Insert | Delete, template: Pattern, rows: Rows, rule: System) -> ops.Quad | None:
    """Returns a template in its graph, or None if it has a variable that is never bound."""
    cells = cells_of((*template.slots, *(() if update.graph is None else (update.graph,))), rows, rule)
    if cells is None:
        return None
    subject, predicate, object, *graph = cells
    return (graph[0] if graph else None, subject, predicate, object)


def _ask(draft: Draft, rows: Rows, rule: System) -> str:
    """Returns the answer of an ASK query: whether there is any row."""
    any_row = draft.add(ops.Distinct(0), draft.add(ops.Project(()), rows.node))
    answer = _existence_column(draft, unit(draft), any_row, (), Variable("there is any"))
    return draft.add(ops.Select((), (0,), (rule.name,), ask=True), answer.node)


def _select(draft: Draft, rows: Rows, names: Sequence[Variable], rule: System) -> str:
    if not set(names) <= set(rows.names):
        rows = project(draft, rows, names)
    columns = tuple(rows.names.index(name) for name in names)
    by = rule.slice.order if rule.slice is not None else ()
    order = tuple((expression_of(order_key.expression, rows.names), order_key.descending) for order_key in by)
    return draft.add(ops.Select(tuple(name.name for name in names), columns, (rule.name,), order), rows.node)
