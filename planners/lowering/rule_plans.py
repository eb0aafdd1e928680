"""What planners share: the rows of each part of a rule, and its consequences.

`plan_in_written_order` is a whole planner but for the order of joins; `finish` ends a plan
(`squall.planners.lowering.plan_outputs`)."""

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
    AtomPattern,
    Bind,
    Call,
    Construct,
    Delete,
    Exists,
    Expression,
    FactPattern,
    Filter,
    Grouping,
    Insert,
    Joinable,
    Minus,
    Negation,
    NotExists,
    Optional,
    Pattern,
    Predicate,
    Select,
    Slice,
    System,
    TableFunction,
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
from squall.plan.operators import Column, Invoke
from squall.planners.lowering.columns import (
    cells_of,
    columns_as,
    condition_of,
    expression_of,
    match_of,
    template_of,
    union,
    untimed,
)
from squall.planners.lowering.compatible_joins import (
    Own,
    absent,
    agreeing,
    apart_from,
    given_as,
    join,
    left_join,
    own,
    tested,
    with_own,
    without,
)
from squall.planners.lowering.plan_builder import Draft, Identity, Rows, digest
from squall.planners.lowering.plan_outputs import End, finish
from squall.planners.lowering.scope import is_closed, is_independent, mentioned

__all__ = ["Body", "Draft", "Identity", "Rows", "finish", "join", "match_of", "plan_in_written_order"]

Body = Callable[[Draft, Sequence[Joinable], Callable[[Joinable], Rows]], Rows]
"""How a planner joins: the draft, what is to be joined, and what gives the rows of each of these when asked."""
Asking = Callable[[Rows, Exists], Sequence[Rows]]
"""How a planner asks: the solutions of what is to exist for some rows, in each form that means the same."""


def plan_in_written_order(draft: Draft, system: System, body: Body) -> list[End]:
    """What all rules end in (`Emit`, `Answer`, `Update`): of each its body, joined as `body` does it, its predicates
    as they are written, its consequences."""
    planner = _Written(draft, body)
    return [
        End(node, spec)
        for spec in output_specs(system)
        for rule in spec.rules
        for node in ends(draft, planner.solutions(rule, is_query(rule)), rule)
    ]


class _Written:
    def __init__(self, draft: Draft, body: Body) -> None:
        self.draft = draft
        self.body = body

    def solutions(self, system: System, needs_multiplicity: bool, part: bool = False, seed: Rows | None = None) -> Rows:
        """The solutions of a rule or a part. counted: whether it matters how often each of them comes. seed: rows that
        its own parts are joined with, since they may read what these bind."""
        if seed is not None and is_closed(system):
            return join(self.draft, seed, self.solutions(system, needs_multiplicity, part))
        needs_multiplicity = counts(system, needs_multiplicity)
        unique = needs_multiplicity or part or holds(system)
        rows = self.conjunction(system.joinables, system, needs_multiplicity, unique, seed)
        for predicate in system.predicates:
            inner = self.inner(predicate, system, needs_multiplicity, seed)
            rows = apply_predicate(self.draft, rows, predicate, inner, self.asked, system, seed)
        return modified(self.draft, rows, system, part, seed)

    def conjunction(
        self, joinables: Sequence[Joinable], system: System, needs_multiplicity: bool, unique: bool, seed: Rows | None
    ) -> Rows:
        bindings = None
        if seed is not None and not any(map(is_seeded, joinables)):
            bindings = System(consequences=(Select(seed.names),))  # stands for the seed
            joinables = (bindings, *joinables)

        def rows(joinable: Joinable) -> Rows:
            if joinable is bindings:
                assert seed is not None
                return seed
            return self.rows(joinable, system, needs_multiplicity, unique, seed)

        return self.body(self.draft, joinables, rows) if joinables else unit(self.draft)

    def rows(
        self, joinable: Joinable, system: System, needs_multiplicity: bool, unique: bool, seed: Rows | None
    ) -> Rows:
        match joinable:
            case Pattern() | AtomPattern():
                return matched(self.draft, joinable, system, unique)
            case Union(branches=branches):
                return union(
                    self.draft, [self.solutions(branch, needs_multiplicity, True, seed) for branch in branches]
                )
            case System():
                return self.solutions(joinable, needs_multiplicity, True, seed)

    def inner(self, predicate: Predicate, system: System, needs_multiplicity: bool, seed: Rows | None) -> Rows | None:
        match predicate:
            case Negation(joinables=joinables):
                return self.conjunction(joinables, system, False, True, seed)
            case Optional(system=inner):
                return self.solutions(inner, needs_multiplicity, True, seed)
            case _:
                return None

    def asked(self, rows: Rows, part: Exists) -> Sequence[Rows]:
        return [self.solutions(part.system, False, True, seed_of(self.draft, rows, part))]


# How often solutions come


def is_query(rule: System) -> bool:
    """Whether a rule answers with solutions, so that it matters how often each of them comes."""
    return any(isinstance(consequence, Select) for consequence in rule.consequences)


def counts(system: System, needs_multiplicity: bool) -> bool:
    """Whether it matters how often a solution of the body comes, if it matters or not for the solutions in the end."""
    return system.grouping is not None or ((needs_multiplicity or system.slice is not None) and not system.distinct)


def holds(system: System) -> bool:
    """Whether a memory will hold the rows of the system's patterns, so that they have to be sets: if not, facts that
    come again and again would fill it."""
    return len(system.joinables) > 1 or any(
        isinstance(part, Negation | Optional | Exists)
        or (isinstance(part, Filter | Bind) and is_time_dependent(part.expression))
        for part in system.predicates
    )


# Joinables


def matched(draft: Draft, pattern: FactPattern, system: System, unique: bool) -> Rows:
    """The rows of one pattern over the system's sources; ``unique`` where they have to be a set."""
    op, names = match_of(pattern)
    reads = read(draft, system, pattern)
    return Rows(match_node(draft, op, reads, len(names), unique), names, origin=pattern.origin)


def read(draft: Draft, system: System, pattern: FactPattern) -> list[str]:
    """The nodes that read what a pattern of the system reads."""
    if not system.sources:
        raise PlannerError(f"rule `{system.name}` has no source to read", pattern.origin or system.origin)
    return sorted({draft.add(ops.Scan(source)) for source in system.sources})


def match_node(draft: Draft, op: ops.Match, reads: Sequence[str], width: int, unique: bool) -> str:
    """The node with the rows of a `Match`, `width` columns wide; ``unique`` as in `matched`."""
    node = draft.add(op, *reads)
    return draft.add(ops.Distinct(by=width), node) if unique else node


def unit(draft: Draft) -> Rows:
    """The one solution without variables."""
    return Rows(draft.add(ops.Unit()), ())


def is_seeded(joinable: Joinable) -> bool:
    """Whether the rows of a joinable have the columns of a seed, if there is one."""
    return isinstance(joinable, Union | System)


def _seen(draft: Draft, rows: Rows, variables: Iterable[Variable]) -> Rows:
    """The rows with those columns only whose variables are wanted; one that has no column never is bound."""
    variables = frozenset(variables)
    projected = columns_as(draft, rows, [name for name in rows.names if name in variables])
    return replace(projected, maybe=(rows.maybe & variables) | (variables - set(rows.names)))


# Predicates


def apply_predicate(
    draft: Draft,
    rows: Rows,
    part: Predicate,
    inner: Rows | None,
    plan_exists: Asking,
    rule: System,
    seed: Rows | None = None,
) -> Rows:
    """The rows after one predicate. inner: the rows of what it looks at (`Negation`, `Optional`). seed: the rows in
    which stands what a part around it was given (``Exists``)."""
    match part:
        case Filter(expression=expression):
            condition = condition_of(expression, rows.names)
            return replace(rows, node=draft.add(ops.Filter(condition, is_time_dependent(expression)), rows.node))
        case Bind(variable=variable):
            renaming = _fresh((variable,), rows, rule, seed)
            extended = _extended(draft, rows, replace(part, variable=renaming[variable]))
            return agreeing(draft, extended, rows, renaming)
        case TableFunction(variables=made, function=function, arguments=arguments):
            renaming = _fresh(made, rows, rule, seed)
            untimed(arguments, "a table function", rule)
            values = tuple(expression_of(argument, rows.names) for argument in arguments)
            node = draft.add(ops.TableFunction(function, values, len(made)), rows.node)
            extended = replace(rows, node=node, names=(*rows.names, *(renaming[name] for name in made)))
            return agreeing(draft, extended, rows, renaming)
        case NotExists():
            assert inner is not None
            return absent(draft, rows, inner)
        case Minus():
            assert inner is not None
            return _minus(draft, rows, inner, part, seed)
        case Optional():
            assert inner is not None
            return _left_join(draft, rows, inner, part, plan_exists, rule)
        case Exists(variable=variable):
            _fresh(() if variable is None else (variable,), rows, rule, None)
            return _existing(draft, rows, part, plan_exists(rows, part))


def _extended(draft: Draft, rows: Rows, part: Bind) -> Rows:
    value = expression_of(part.expression, rows.names)
    node = draft.add(ops.Extend(value, is_time_dependent(part.expression), part.keep_unbound), rows.node)
    unsure = {part.variable} if part.keep_unbound and not _is_sure(part.expression, rows) else set()
    return replace(rows, node=node, names=(*rows.names, part.variable), maybe=rows.maybe | unsure)


def _is_sure(expression: Expression | None, rows: Rows) -> bool:
    """Whether an expression that calls nothing has a value in every row."""
    return isinstance(expression, str) or expression in rows.sure


def _minus(draft: Draft, rows: Rows, inner: Rows, part: Minus, seed: Rows | None) -> Rows:
    sure_names = seed.sure if seed is not None else frozenset()
    renamings = [] if seed is None else [(name, renamed) for name, renamed in given_as(seed) if name in inner.known]
    return apart_from(draft, rows, inner, (rows.known & inner.known) - sure_names - {*part.ignored}, renamings)


def _left_join(draft: Draft, left: Rows, right: Rows, part: Optional, plan_exists: Asking, rule: System) -> Rows:
    untimed((part.condition,), "the condition of an optional part", rule)
    if not part.exists:
        return left_join(draft, left, right, part.condition)
    joined = join(draft, with_own(draft, left, left.names), right)
    for exists in part.exists:
        joined = apply_predicate(draft, joined, exists, None, plan_exists, rule)
    joined = tested(draft, joined, part.condition)
    names = (*left.names, *(name for name in right.names if name not in left.names))
    both_sides = union(draft, [joined, without(draft, left, joined)], names)
    return replace(both_sides, maybe=left.maybe | (right.known - left.sure), origin=left.origin)


def seed_of(draft: Draft, rows: Rows, part: Exists) -> Rows | None:
    """What of some rows may be read in what is to exist for them, as a set; None if it may as well be looked for by
    itself."""
    names = mentioned(part.system) & frozenset(rows.names)
    if not names & rows.maybe and is_independent(part.system, names):
        return None
    seed = with_own(draft, rows, [name for name in rows.names if name in names])
    return replace(seed, node=draft.add(ops.Distinct(len(seed.names)), seed.node))


def _existing(draft: Draft, rows: Rows, part: Exists, forms: Sequence[Rows]) -> Rows:
    if len(forms) > 1:
        forms = [min(forms, key=lambda form: _existing(Draft(digest), rows, part, [form]).node)]
    (inner,) = forms
    renaming, mentioned_names = own(rows), mentioned(part.system)
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
    """The rows with whether there is a row for them in a set."""
    width = len(rows.names)
    own_columns = tuple(range(width))
    joined = draft.add(
        ops.LeftJoin(keys, (*own_columns, width + len(keys))), rows.node, draft.add(ops.Extend(TRUE), matching_keys)
    )
    node = draft.add(ops.Extend(Invoke(COALESCE, (Column(width), FALSE))), joined)
    node = draft.add(ops.Project((*own_columns, width + 1)), node)
    return replace(rows, node=node, names=(*rows.names, variable))


def _fresh(variables: Sequence[Variable], rows: Rows, rule: System, seed: Rows | None) -> dict[Variable, Variable]:
    """The variables to which a predicate gives a value, each with that which is its column: another one where it may
    have been given a value by a part around. Raises PlannerError where one has a value already."""
    outer_names = frozenset(seed.names) if seed is not None else frozenset()
    for number, name in enumerate(variables):
        if (name in rows.known and name not in outer_names) or name in variables[:number]:
            raise PlannerError(f"rule `{rule.name}` gives `{name}` a value that it has already", rule.origin)
    return {name: Own(f"again {name.name}") if name in rows.known else name for name in variables}


def is_effect(part: Predicate) -> bool:
    """Whether a predicate does something (``print``), so that it has to come after all that decide whether it does."""
    return isinstance(part, Filter) and not functions.lookup(part.expression.function).pure


# Grouping, distinct, slice


def modified(draft: Draft, rows: Rows, system: System, part: bool, seed: Rows | None = None) -> Rows:
    """The solutions of a body grouped, made distinct and sliced; of a part, what can be seen of them from outside, and
    what it was given."""
    if system.grouping is not None:
        rows = _grouped(draft, rows, system.grouping, system)
    query = is_query(system)
    selected: Iterable[Variable] = visible(system) if part or query else rows.known
    if seed is not None:
        selected = (*selected, *seed.known)
    if system.distinct:
        rows = _seen(draft, rows, selected)
        rows = replace(rows, node=draft.add(ops.Distinct(len(rows.names)), rows.node))
    if system.slice is not None:
        rows = _sliced(draft, rows, system.slice, system)
    return _seen(draft, rows, selected) if part or (query and len(system.consequences) > 1) else rows


def _grouped(draft: Draft, rows: Rows, grouping: Grouping, rule: System) -> Rows:
    absent = [key for key in grouping.keys if key not in rows.names]
    # As an expression, what is unbound and what counts all solutions would look alike: it gets a column.
    values = [item.expression for item in grouping.aggregates if isinstance(item.expression, Variable)]
    lacking = dict.fromkeys(name for name in (*absent, *values) if name not in rows.names)
    if lacking:
        rows = columns_as(draft, rows, (*rows.names, *lacking))
    untimed([aggregate.expression for aggregate in grouping.aggregates], "an aggregate", rule)
    aggregates = sorted(
        ((_aggregate(item, rows), item) for item in grouping.aggregates), key=lambda pair: repr(pair[0])
    )
    keys = sorted({rows.names.index(key) for key in grouping.keys})
    node = draft.add(ops.Group(tuple(keys), tuple(op for op, _ in aggregates)), rows.node)
    names = (*(rows.names[key] for key in keys), *(item.variable for _, item in aggregates))
    unsure = {item.variable for item in grouping.aggregates if not _has_value(item, grouping, rows)}
    return Rows(node, names, frozenset(unsure | {*absent, *(rows.maybe & set(grouping.keys))}), rows.origin)


def _aggregate(aggregate: Aggregate, rows: Rows) -> ops.Aggregate:
    expression = aggregate.expression
    if expression is None and aggregate.distinct:
        expression = Call(SOLUTION.iri, rows.names)
    return ops.Aggregate(aggregate.kind, expression_of(expression, rows.names), aggregate.distinct, aggregate.separator)


def _has_value(aggregate: Aggregate, grouping: Grouping, rows: Rows) -> bool:
    """Whether an aggregate surely has a value: a group has a row, and some value is the least of those that are."""
    if aggregate.kind in ("min", "max", "sample") and grouping.keys:
        bound = aggregate.expression in rows.names and aggregate.expression not in rows.maybe
        return bound or (isinstance(aggregate.expression, str) and aggregate.expression != "")
    return aggregate.kind == "count"


def _sliced(draft: Draft, rows: Rows, part: Slice, system: System) -> Rows:
    """The slice of rows that have, in this order, the variables that the consequences name and those of the order:
    what the order leaves equal is ordered by the rows' text, which must not depend on the plan. (An order alone leaves
    out nothing: answers say it by themselves.)"""
    expressions = [order.expression for order in part.order]
    untimed(expressions, "the order of a slice", system)
    names = dict.fromkeys(
        (*_named(system), *(name for expression in expressions for name in variables(expression)), *part.keys)
    )
    rows = columns_as(draft, rows, [name for name in names if name in rows.names])
    if not part.offset and part.limit is None:
        return rows
    by = tuple((expression_of(order.expression, rows.names), order.descending) for order in part.order)
    keys = tuple(map(rows.names.index, part.keys))
    return replace(rows, node=draft.add(ops.Slice(by, part.offset, part.limit, keys), rows.node))


def _named(system: System) -> Iterator[Variable]:
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


def ends(draft: Draft, rows: Rows, rule: System) -> list[str]:
    """A node for each consequence of the rule, over its solutions: `Emit`, `Answer`, `Update`."""
    end_list = []
    for consequence in rule.consequences:
        match consequence:
            case Construct(template=template, internal=internal):
                templates = (template_of(pattern, rows, rule) for pattern in template)
                emits = [
                    ops.Construct(cells, (rule.name,), rule.reentrant, internal)
                    for cells in templates
                    if cells is not None
                ]
                end_list += [draft.add(emit, rows.node) for emit in emits]
            case Select(variables=names):
                end_list.append(_answer(draft, rows, names, rule))
            case Ask():
                end_list.append(_asked(draft, rows, rule))
            case Insert() | Delete():
                continue
    return [*end_list, _updating(draft, rows, rule)] if is_update(rule) else end_list


def _updating(draft: Draft, rows: Rows, rule: System) -> str:
    """The update that all that a rule deletes and inserts makes together, of solutions with all of their variables."""
    visible_names = set(visible(rule))
    rows = columns_as(draft, rows, [name for name in rows.names if name in visible_names])
    quads: dict[type, list[ops.Quad]] = {Delete: [], Insert: []}
    for consequence in rule.consequences:
        if isinstance(consequence, Insert | Delete):
            quads[type(consequence)] += filter(
                None, (_quad(consequence, template, rows, rule) for template in consequence.template)
            )
    return draft.add(ops.Update(tuple(quads[Delete]), tuple(quads[Insert]), is_initial(rule), (rule.name,)), rows.node)


def _quad(update: Insert | Delete, template: Pattern, rows: Rows, rule: System) -> ops.Quad | None:
    """A template in its graph; None if it has a variable that never is bound."""
    cells = cells_of((*template.slots, *(() if update.graph is None else (update.graph,))), rows, rule)
    if cells is None:
        return None
    subject, predicate, object, *graph = cells
    return (graph[0] if graph else None, subject, predicate, object)


def _asked(draft: Draft, rows: Rows, rule: System) -> str:
    """Whether there is any row."""
    any_row = draft.add(ops.Distinct(0), draft.add(ops.Project(()), rows.node))
    answer = _existence_column(draft, unit(draft), any_row, (), Variable("there is any"))
    return draft.add(ops.Select((), (0,), (rule.name,), ask=True), answer.node)


def _answer(draft: Draft, rows: Rows, names: Sequence[Variable], rule: System) -> str:
    if not set(names) <= set(rows.names):
        rows = columns_as(draft, rows, names)
    columns = tuple(rows.names.index(name) for name in names)
    by = rule.slice.order if rule.slice is not None else ()
    order = tuple((expression_of(order_key.expression, rows.names), order_key.descending) for order_key in by)
    return draft.add(ops.Select(tuple(name.name for name in names), columns, (rule.name,), order), rows.node)
