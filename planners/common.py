"""What planners share: the rows of each part of a rule, and its consequences.

`plan_in_written_order` is a whole planner but for the order of joins; `finish` ends a plan (`squall.planners.ending`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from squall import functions
from squall import operators as ops
from squall.errors import PlannerError
from squall.planners.columns import (
    compatible,
    condition_of,
    expression_of,
    join_of,
    match_of,
    shared,
    template_of,
    untimed,
)
from squall.planners.draft import Draft, Identity, Rows
from squall.planners.ending import finish
from squall.strata import is_timed
from squall.system import (
    Aggregate,
    AtomPattern,
    Bind,
    Call,
    Compute,
    Construct,
    Delete,
    Either,
    FactPattern,
    Grouping,
    Joinable,
    Maybe,
    Pattern,
    Predicate,
    Select,
    Slice,
    System,
    Test,
    Variable,
    Without,
    rules,
    variables,
    visible,
)

__all__ = ["Body", "Draft", "Identity", "Rows", "finish", "join", "match_of", "plan_in_written_order"]

Body = Callable[[Draft, Sequence[Joinable], Callable[[Joinable], Rows]], Rows]
"""How a planner joins: the draft, what is to be joined, and what gives the rows of each of these when asked."""


def plan_in_written_order(draft: Draft, system: System, body: Body) -> list[str]:
    """What all rules end in (`Emit`, `Answer`, `Retract`): of each its body, joined as `body` does it, its predicates
    as they are written, its consequences."""
    written = _Written(draft, body)
    return [end for rule in rules(system) for end in ends(draft, written.solutions(rule, is_query(rule)), rule)]


class _Written:
    def __init__(self, draft: Draft, body: Body) -> None:
        self.draft = draft
        self.body = body

    def solutions(self, system: System, counted: bool, part: bool = False) -> Rows:
        """The solutions of a rule or a part. counted: whether it matters how often each of them comes."""
        counted = counts(system, counted)
        unique = counted or part or holds(system)
        rows = self.conjunction(system.joinables, system, counted, unique)
        for predicate in system.predicates:
            rows = apply_predicate(self.draft, rows, predicate, self.inner(predicate, system, counted), system)
        return modified(self.draft, rows, system, part)

    def conjunction(self, joinables: Sequence[Joinable], system: System, counted: bool, unique: bool) -> Rows:
        def rows(joinable: Joinable) -> Rows:
            return self.rows(joinable, system, counted, unique)

        return self.body(self.draft, joinables, rows) if joinables else unit(self.draft)

    def rows(self, joinable: Joinable, system: System, counted: bool, unique: bool) -> Rows:
        match joinable:
            case Pattern() | AtomPattern():
                return matched(self.draft, joinable, system, unique)
            case Either(branches=branches):
                return union(self.draft, [self.solutions(branch, counted, part=True) for branch in branches])
            case System():
                return self.solutions(joinable, counted, part=True)

    def inner(self, predicate: Predicate, system: System, counted: bool) -> Rows | None:
        match predicate:
            case Without(joinables=joinables):
                return self.conjunction(joinables, system, False, True)
            case Maybe(system=inner):
                return self.solutions(inner, counted, part=True)
            case _:
                return None


# How often solutions come


def is_query(rule: System) -> bool:
    """Whether a rule answers with solutions, so that it matters how often each of them comes."""
    return any(isinstance(consequence, Select) for consequence in rule.consequences)


def counts(system: System, counted: bool) -> bool:
    """Whether it matters how often a solution of the body comes, if it matters or not for the solutions in the end."""
    return system.grouping is not None or ((counted or system.slice is not None) and not system.distinct)


def holds(system: System) -> bool:
    """Whether a memory will hold the rows of the system's patterns, so that they have to be sets: if not, facts that
    come again and again would fill it."""
    return len(system.joinables) > 1 or any(
        isinstance(part, Without | Maybe) or (isinstance(part, Test | Bind) and is_timed(part.expression))
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
    return sorted({draft.add(ops.Read(source)) for source in system.sources})


def match_node(draft: Draft, op: ops.Match, reads: Sequence[str], width: int, unique: bool) -> str:
    """The node with the rows of a `Match`, `width` columns wide; ``unique`` as in `matched`."""
    node = draft.add(op, *reads)
    return draft.add(ops.Distinct(by=width), node) if unique else node


def unit(draft: Draft) -> Rows:
    """The one solution without variables."""
    return Rows(draft.add(ops.Unit()), ())


def join(draft: Draft, left: Rows, right: Rows) -> Rows:
    """The natural join of two rows. Raises PlannerError if it would be on a variable that may be unbound."""
    compatible(left, right)
    op, names = join_of(left, right)
    return Rows(draft.add(op, left.node, right.node), names, left.maybe | right.maybe, right.origin)


def union(draft: Draft, branches: Sequence[Rows], names: Sequence[Variable] | None = None) -> Rows:
    """The rows of all branches, as a bag, over the columns `names` (else in the order in which the branches have
    them). What a branch does not bind is unbound in its rows (trap 6: each branch has its own numbers)."""
    if names is None:
        names = tuple(dict.fromkeys(name for branch in branches for name in branch.names))
    maybe = {name for branch in branches for name in (*branch.maybe, *(set(names) - set(branch.names)))}
    inputs = [_columns(draft, branch, names).node for branch in branches]
    node = draft.add(ops.Union(), *inputs) if len(inputs) > 1 else inputs[0]
    return Rows(node, tuple(names), frozenset(maybe))


def _columns(draft: Draft, rows: Rows, names: Sequence[Variable]) -> Rows:
    """The rows with just these columns, in this order."""
    if tuple(names) == rows.names:
        return rows
    columns = tuple(rows.names.index(name) if name in rows.names else None for name in names)
    return Rows(draft.add(ops.Project(columns), rows.node), tuple(names), rows.maybe, rows.origin)


def _seen(draft: Draft, rows: Rows, wanted: Iterable[Variable]) -> Rows:
    """The rows with those columns only whose variables are wanted; one that has no column never is bound."""
    wanted = frozenset(wanted)
    kept = _columns(draft, rows, [name for name in rows.names if name in wanted])
    return replace(kept, maybe=(rows.maybe & wanted) | (wanted - set(rows.names)))


# Predicates


def apply_predicate(draft: Draft, rows: Rows, part: Predicate, inner: Rows | None, rule: System) -> Rows:
    """The rows after one predicate. inner: the rows of what it looks at (``Without``, ``Maybe``)."""
    match part:
        case Test(expression=expression):
            condition = condition_of(expression, rows.names)
            return replace(rows, node=draft.add(ops.Test(condition, is_timed(expression)), rows.node))
        case Bind(variable=variable, expression=expression):
            _fresh((variable,), rows, rule)
            value = expression_of(expression, rows.names)
            node = draft.add(ops.Extend(value, is_timed(expression)), rows.node)
            return replace(rows, node=node, names=(*rows.names, variable))
        case Compute(variables=made, function=function, arguments=arguments):
            _fresh(made, rows, rule)
            untimed(arguments, "a table function", rule)
            values = tuple(expression_of(argument, rows.names) for argument in arguments)
            node = draft.add(ops.Apply(function, values, len(made)), rows.node)
            return replace(rows, node=node, names=(*rows.names, *made))
        case Without():
            assert inner is not None
            compatible(rows, replace(inner, origin=part.origin or inner.origin), rule.origin)
            return replace(rows, node=draft.add(ops.AntiJoin(shared(rows, inner)), rows.node, inner.node))
        case Maybe(condition=condition):
            assert inner is not None
            return _left_join(draft, rows, inner, condition, rule)


def _left_join(draft: Draft, left: Rows, right: Rows, condition: Call | None, rule: System) -> Rows:
    compatible(left, right, rule.origin)
    untimed((condition,), "the condition of an optional part", rule)
    join, names = join_of(left, right)
    computed = None if condition is None else condition_of(condition, names)
    node = draft.add(ops.LeftJoin(join.on, join.keep, computed), left.node, right.node)
    return Rows(node, names, left.maybe | right.maybe | (set(names) - set(left.names)), left.origin)


def _fresh(made: Sequence[Variable], rows: Rows, rule: System) -> None:
    for number, name in enumerate(made):
        if name in rows.known or name in made[:number]:
            raise PlannerError(f"rule `{rule.name}` gives `{name}` a value that it has already", rule.origin)


def is_effect(part: Predicate) -> bool:
    """Whether a predicate does something (``print``), so that it has to come after all that decide whether it does."""
    return isinstance(part, Test) and not functions.lookup(part.expression.function).pure


# Grouping, distinct, slice


def modified(draft: Draft, rows: Rows, system: System, part: bool) -> Rows:
    """The solutions of a body grouped, made distinct and sliced; of a part, what can be seen of them from outside."""
    if system.grouping is not None:
        rows = _grouped(draft, rows, system.grouping, system)
    query = is_query(system)
    seen = visible(system) if part or query else rows.known
    if system.distinct:
        rows = _seen(draft, rows, seen)
        rows = replace(rows, node=draft.add(ops.Distinct(len(rows.names)), rows.node))
    if system.slice is not None:
        rows = _sliced(draft, rows, system.slice, system)
    return _seen(draft, rows, seen) if part or (query and len(system.consequences) > 1) else rows


def _grouped(draft: Draft, rows: Rows, grouping: Grouping, rule: System) -> Rows:
    absent = [key for key in grouping.keys if key not in rows.names]
    # As an expression, what is unbound and what counts all solutions would look alike: it gets a column.
    values = [one.expression for one in grouping.aggregates if isinstance(one.expression, Variable)]
    lacking = dict.fromkeys(name for name in (*absent, *values) if name not in rows.names)
    if lacking:
        rows = _columns(draft, rows, (*rows.names, *lacking))
    untimed([aggregate.expression for aggregate in grouping.aggregates], "an aggregate", rule)
    made = sorted(((_aggregate(one, rows), one) for one in grouping.aggregates), key=lambda pair: repr(pair[0]))
    keys = sorted({rows.names.index(key) for key in grouping.keys})
    node = draft.add(ops.Group(tuple(keys), tuple(op for op, _ in made)), rows.node)
    names = (*(rows.names[key] for key in keys), *(one.variable for _, one in made))
    unsure = {one.variable for one in grouping.aggregates if not _has_value(one, grouping, rows)}
    return Rows(node, names, frozenset(unsure | {*absent, *(rows.maybe & set(grouping.keys))}), rows.origin)


def _aggregate(one: Aggregate, rows: Rows) -> ops.Aggregate:
    return ops.Aggregate(one.kind, expression_of(one.expression, rows.names), one.distinct, one.separator)


def _has_value(one: Aggregate, grouping: Grouping, rows: Rows) -> bool:
    """Whether an aggregate surely has a value: a group has a row, and some value is the least of those that are."""
    if one.kind in ("min", "max", "sample") and grouping.keys:
        bound = one.expression in rows.names and one.expression not in rows.maybe
        return bound or (isinstance(one.expression, str) and one.expression != "")
    return one.kind == "count"


def _sliced(draft: Draft, rows: Rows, part: Slice, system: System) -> Rows:
    """The slice of rows that have, in this order, the variables that the consequences name and those of the order:
    what the order leaves equal is ordered by the rows' text, which must not depend on the plan."""
    expressions = [order.expression for order in part.order]
    untimed(expressions, "the order of a slice", system)
    named = dict.fromkeys((*_named(system), *(name for one in expressions for name in variables(one))))
    rows = _columns(draft, rows, [name for name in named if name in rows.names])
    by = tuple((expression_of(order.expression, rows.names), order.descending) for order in part.order)
    return replace(rows, node=draft.add(ops.Slice(by, part.offset, part.limit), rows.node))


def _named(system: System) -> Iterator[Variable]:
    for consequence in system.consequences:
        match consequence:
            case Select(variables=names):
                yield from names
            case Construct(template=template) | Delete(template=template):
                yield from (name for one in template for name in variables(one))
    if not system.consequences:
        yield from visible(system)


# Consequences


def ends(draft: Draft, rows: Rows, rule: System) -> list[str]:
    """A node for each consequence of the rule, over its solutions: `Emit`, `Answer`, `Retract`."""
    found = []
    for consequence in rule.consequences:
        match consequence:
            case Construct(template=template):
                made = (template_of(one, rows, rule) for one in template)
                emits = [ops.Emit(cells, (rule.name,), rule.reentrant) for cells in made if cells is not None]
                found += [draft.add(emit, rows.node) for emit in emits]
            case Delete(template=template):
                gone = (template_of(one, rows, rule) for one in template)
                found += [draft.add(ops.Retract(cells, (rule.name,)), rows.node) for cells in gone if cells is not None]
            case Select(variables=names):
                found.append(_answer(draft, rows, names, rule))
    return found


def _answer(draft: Draft, rows: Rows, names: Sequence[Variable], rule: System) -> str:
    if not set(names) <= set(rows.names):
        rows = _columns(draft, rows, names)
    columns = tuple(rows.names.index(name) for name in names)
    by = rule.slice.order if rule.slice is not None else ()
    order = tuple((expression_of(one.expression, rows.names), one.descending) for one in by)
    return draft.add(ops.Answer(tuple(name.name for name in names), columns, (rule.name,), order), rows.node)
