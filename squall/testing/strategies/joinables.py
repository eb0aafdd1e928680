"""Strategies for the joinables of bodies: patterns, unions, and parts with filters, groups and slices of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from itertools import permutations, product

from hypothesis import strategies as st

from squall.functions.jena import function_iri
from squall.model import (
    ARRIVAL,
    GRAPH,
    Aggregate,
    Arrivals,
    AtomPattern,
    Call,
    Construct,
    Expression,
    Filter,
    Graph,
    Graphs,
    Grouping,
    Joinable,
    Order,
    Pattern,
    Select,
    Slice,
    Slot,
    Source,
    System,
    Union,
    Variable,
    variables,
    visible,
)
from squall.rdf import Term, iri
from squall.testing.strategies.aggregates import user_aggregates
from squall.testing.strategies.streams import one_in
from squall.testing.strategies.vocabulary import (
    GRAPHS,
    LITERALS,
    NAMED,
    NAMES,
    NODES,
    STREAMS,
    TESTS,
    TIME,
    Scope,
    Shape,
    each_once,
)


def drawn_of(draw: st.DrawFn, shape: Shape, chances: dict[str, int]) -> set[str]:
    """Draws some of the features of a program, each once in the given number of times."""
    return {name for name, many in chances.items() if name in shape.features and draw(one_in(many))}


def extended(scope: Scope, name: str) -> Scope:
    return scope.plus(Scope(bound=(Variable(name),)))


@st.composite
def bodies(
    draw: st.DrawFn, shape: Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...], most: int
) -> tuple[tuple[Joinable, ...], Scope]:
    """Draws joinables and their scope: patterns, sometimes with a part or a union among them."""
    patterns = draw(st.lists(patterns_of(readable), min_size=1, max_size=draw(st.integers(1, most))))
    parts: list[tuple[Joinable, Scope]] = [(pattern, of_patterns([pattern])) for pattern in patterns]
    features = drawn_of(draw, shape, {"subqueries": 5, "union": 5})
    # A body that asks for too much has no answers.
    parts = parts[: most - len(features)]
    if "subqueries" in features:
        parts.insert(draw(st.integers(0, len(parts))), draw(parts_of(shape, readable, sources, "k")))
    if "union" in features:
        parts.insert(draw(st.integers(0, len(parts))), draw(unions(shape, readable, sources)))
    return tuple(joinable for joinable, _ in parts), reduce(Scope.plus, (scope for _, scope in parts))


def of_patterns(joinables: Iterable[Joinable]) -> Scope:
    patterns = [joinable for joinable in joinables if isinstance(joinable, Pattern)]
    subjects = [slot for pattern in patterns if isinstance(slot := pattern.subject, Variable)]
    return Scope(each_once(*(tuple(variables(pattern)) for pattern in patterns)), each_once(subjects))


@st.composite
def parts_of(
    draw: st.DrawFn, shape: Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...], prefix: str
) -> tuple[System, Scope]:
    """Draws a subquery. All of its variables that others may join are bound. An aggregate's name has a prefix."""
    features = drawn_of(draw, shape, {"grouping": 3, "slice": 4}) if shape.below else set()
    patterns = tuple(draw(st.lists(patterns_of(shape.below if features else readable), min_size=1, max_size=2)))
    scope = of_patterns(patterns)
    tests = (draw(conditions(scope)),) if draw(one_in(4)) and scope.bound else ()
    own = draw(st.sampled_from(shape.sources)) if draw(one_in(4)) else sources
    part = System("", own, patterns, tests)
    if views := drawn_of(draw, shape, {"graphs": 3, "times": 3}):
        part, scope = draw(_viewed(part, scope, "times" in views, shape.features))
    if "grouping" in features and may_group(shape, scope):
        grouping = draw(groupings(shape, scope, prefix))
        part, scope = replace(part, grouping=grouping), grouped(grouping, scope)
    if draw(st.booleans()) and scope.bound:
        names = draw(some(scope.all, 1))
        part, scope = replace(part, consequences=(Select(names),)), scope.only(names)
    return draw(modified(part, shape, scope, "slice" in features)), scope


@st.composite
def _viewed(
    draw: st.DrawFn, part: System, scope: Scope, with_times: bool, features: frozenset[str]
) -> tuple[System, Scope]:
    """Draws a part that reads the graphs of its facts, and their arrival times if `with_times`."""
    graphs: tuple[Slot, ...] = (NAMED, NAMED, iri(STREAMS[1]))
    if "named" in features:
        graphs = (*graphs, Term(GRAPHS[3]))
    graph = draw(st.sampled_from(graphs))
    view_slots = [graph] if not with_times else [graph, TIME]
    patterns = [item for item in part.joinables if isinstance(item, Pattern)]
    atoms = tuple(AtomPattern(ARRIVAL if with_times else GRAPH, (*view_slots, *item.slots)) for item in patterns)
    kind: type[Source] = Arrivals if with_times else Graphs
    if not with_times and "named" in features:
        kind = partial(Graphs, only=draw(st.sampled_from(["", "graphs", "streams"])))  # type: ignore[assignment]
    sources = tuple(
        kind("" if isinstance(item, Graph) else item.iri, item.window, item.windows, item.removals)
        for item in part.sources
    )
    names = tuple(item for item in view_slots if isinstance(item, Variable))
    return replace(part, sources=sources, joinables=atoms), scope.plus(Scope(bound=names))


@st.composite
def unions(
    draw: st.DrawFn, shape: Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...]
) -> tuple[Union, Scope]:
    """Draws a union of two or three patterns. A variable that not all of them bind usually has a name of its own."""
    # In one piece, as `modified` is.
    nullable = "nullable" in shape.features and draw(st.booleans())
    patterns = draw(st.lists(patterns_of(readable), min_size=2, max_size=3))
    scopes = [of_patterns([pattern]) for pattern in patterns]
    common = [name for name in NAMES if all(name in scope.bound for scope in scopes)]
    maybe: list[Variable] = []
    branches: list[System] = []
    for number, (pattern, scope) in enumerate(zip(patterns, scopes, strict=True)):
        own = [name for name in scope.bound if name not in common]
        names = {name: name if nullable else Variable(f"e{number}{name.name}") for name in own}
        maybe += (name for name in names.values() if name not in maybe)
        branches.append(System("", sources, (renamed(pattern, names),)))
    subjects = tuple(name for name in common if all(name in scope.subjects for scope in scopes))
    return Union(tuple(branches)), Scope(tuple(common), subjects, tuple(maybe))


def renamed(pattern: Pattern, names: dict[Variable, Variable]) -> Pattern:
    subject, predicate, value = (
        names.get(slot, slot) if isinstance(slot, Variable) else slot for slot in pattern.slots
    )
    return Pattern(subject, predicate, value)


@cache
def patterns_of(predicates: tuple[Slot, ...]) -> st.SearchStrategy[Pattern]:
    """Draws a pattern with usually two variables, seldom with the same variable twice or with constants."""
    ends: list[tuple[Slot, Slot]] = [*6 * tuple(permutations(NAMES, 2)), *((name, name) for name in 2 * NAMES)]
    ends += product(NAMES, (*2 * NODES[:2], *LITERALS[:2]))
    ends += product(NODES[:1], (*2 * NAMES, NODES[0], LITERALS[0]))
    return st.sampled_from([Pattern(subject, predicate, value) for predicate in predicates for subject, value in ends])


def some(names: Sequence[Variable], least: int) -> st.SearchStrategy[tuple[Variable, ...]]:
    """Draws some of the variables, in any order."""
    return st.lists(st.sampled_from(names), min_size=least, max_size=len(names), unique=True).map(tuple)


@st.composite
def conditions(draw: st.DrawFn, scope: Scope) -> Filter:
    """Draws a filter: usually one that only some solutions pass."""
    function, arguments = draw(st.sampled_from(TESTS if draw(one_in(5)) else _selective(scope) or TESTS))
    return Filter(Call(function, arguments))


@cache
def _selective(scope: Scope) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
    tests: list[tuple[str, tuple[Expression, ...]]] = [("notEqual", pair) for pair in permutations(scope.bound, 2)]
    for name in scope.bound:
        tests.append(("notEqual", (name, NODES[1])))
        if name not in scope.subjects:
            tests += [("isLiteral", (name,)), ("notLiteral", (name,)), ("ge", (name, LITERALS[0]))]
    for name in scope.maybe:
        tests += [("unbound", (name,)), ("bound", (name,))]
    return tuple((function_iri(name), arguments) for name, arguments in tests)


@st.composite
def calls(draw: st.DrawFn, scope: Scope) -> Call:
    """Draws a call, usually of bound variables."""
    names = scope.bound if scope.bound and not draw(one_in(6)) else NAMES
    first: Variable = draw(st.sampled_from(names))
    name = draw(st.sampled_from(("strConcat", "sum", "max"))) if first not in scope.subjects else "strConcat"
    seconds: tuple[Slot, ...] = (*names, *LITERALS[1:4])
    second = draw(st.sampled_from(seconds))
    return Call(function_iri(name), (first, second))


@st.composite
def groupings(draw: st.DrawFn, shape: Shape, scope: Scope, prefix: str) -> Grouping:
    """Draws aggregates with one or two keys, or with none. Their names are the prefix and a number."""
    least = 0 if "totals" in shape.features else 1
    keys = draw(some(scope.all, least)) if scope.all else ()
    values = st.sampled_from((*NAMES[:1], *3 * scope.all))
    aggregates = tuple(draw(_aggregates(f"{prefix}{number}", values)) for number in range(draw(st.integers(1, 2))))
    return Grouping(keys[:2], aggregates)


@st.composite
def _aggregates(draw: st.DrawFn, name: str, values: st.SearchStrategy[Variable]) -> Aggregate:
    kinds = ("count", "count", "sum", "sum", "avg", "min", "max", "sample", "group_concat", *user_aggregates())
    kind = draw(st.sampled_from(kinds))
    expression: Expression | None = draw(values)
    if draw(one_in(4)):
        expression = None if kind == "count" else Call(function_iri("sum"), (draw(values), LITERALS[3]))
    return Aggregate(Variable(name), kind, expression, draw(one_in(3)))


def may_group(shape: Shape, scope: Scope) -> bool:
    return bool(scope.all) or "totals" in shape.features


def grouped(grouping: Grouping, scope: Scope) -> Scope:
    aggregates = tuple(aggregate.variable for aggregate in grouping.aggregates)
    return scope.only(grouping.keys).plus(Scope(maybe=aggregates))


@st.composite
def modified(draw: st.DrawFn, system: System, shape: Shape, scope: Scope, sliced: bool) -> System:
    """Draws DISTINCT and a slice for a system.

    If these leave a choice that would depend on names or on the order of the text, the sort keys are complete.
    """
    # In one piece: draws, one after another, whose order decides what an example shrinks to.
    selects = any(isinstance(consequence, Select) for consequence in system.consequences)
    distinct = selects and "distinct" in shape.features and draw(one_in(3))
    if not sliced:
        return replace(system, distinct=distinct)
    if selects:
        names = visible(system) if distinct else scope.all
        order = draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []
    else:
        makes = (consequence for consequence in system.consequences if isinstance(consequence, Construct))
        templates = [template for consequence in makes for template in consequence.template]
        order = list(dict.fromkeys(name for template in templates for name in variables(template))) or list(
            visible(system)
        )
    by = tuple(Order(name, draw(st.booleans())) for name in order)
    selected = [consequence.variables for consequence in system.consequences if isinstance(consequence, Select)]
    keys = draw(some(selected[0], 0))[:1] if selected and selected[0] and draw(one_in(3)) else ()
    cut = Slice(by, draw(st.sampled_from((0, 0, 1))), draw(st.sampled_from((1, 2, 3, None))), keys)
    return replace(system, distinct=distinct, slice=cut)
