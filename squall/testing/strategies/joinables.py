"""What bodies join: patterns, unions, and parts with tests, groups and slices of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from itertools import permutations, product

from hypothesis import strategies as st

from squall.functions.jena import function_iri
from squall.model import (
    CAME,
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
    Known,
    Shape,
    each_once,
)


def drawn_of(draw: st.DrawFn, shape: Shape, chances: dict[str, int]) -> set[str]:
    """Some of the features that the program has, each once in so many times."""
    return {name for name, many in chances.items() if name in shape.features and draw(one_in(many))}


def extended(known: Known, name: str) -> Known:
    return known.plus(Known(bound=(Variable(name),)))


@st.composite
def bodies(
    draw: st.DrawFn, shape: Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...], most: int
) -> tuple[tuple[Joinable, ...], Known]:
    """Joinables and what they bind: patterns, sometimes a part or a union among them."""
    patterns = draw(st.lists(patterns_of(readable), min_size=1, max_size=draw(st.integers(1, most))))
    found: list[tuple[Joinable, Known]] = [(pattern, of_patterns([pattern])) for pattern in patterns]
    chosen = drawn_of(draw, shape, {"parts": 5, "either": 5})
    # A body that asks for too much has no answers.
    found = found[: most - len(chosen)]
    if "parts" in chosen:
        found.insert(draw(st.integers(0, len(found))), draw(parts_of(shape, readable, sources, "k")))
    if "either" in chosen:
        found.insert(draw(st.integers(0, len(found))), draw(unions(shape, readable, sources)))
    return tuple(joinable for joinable, _ in found), reduce(Known.plus, (known for _, known in found))


def of_patterns(joinables: Iterable[Joinable]) -> Known:
    patterns = [one for one in joinables if isinstance(one, Pattern)]
    subjects = [slot for pattern in patterns if isinstance(slot := pattern.subject, Variable)]
    return Known(each_once(*(tuple(variables(pattern)) for pattern in patterns)), each_once(subjects))


@st.composite
def parts_of(
    draw: st.DrawFn, shape: Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...], prefix: str
) -> tuple[System, Known]:
    """A sub-query: its variables that others may join are bound; an aggregate has a name of its own, with a prefix."""
    whole = drawn_of(draw, shape, {"grouping": 3, "slice": 4}) if shape.below else set()
    patterns = tuple(draw(st.lists(patterns_of(shape.below if whole else readable), min_size=1, max_size=2)))
    known = of_patterns(patterns)
    tests = (draw(conditions(known)),) if draw(one_in(4)) and known.bound else ()
    own = draw(st.sampled_from(shape.sources)) if draw(one_in(4)) else sources
    part = System("", own, patterns, tests)
    if views := drawn_of(draw, shape, {"graphs": 3, "times": 3}):
        part, known = draw(_viewed(part, known, "times" in views, shape.features))
    if "grouping" in whole and may_group(shape, known):
        grouping = draw(groupings(shape, known, prefix))
        part, known = replace(part, grouping=grouping), grouped(grouping, known)
    if draw(st.booleans()) and known.bound:
        names = draw(some(known.all, 1))
        part, known = replace(part, consequences=(Select(names),)), known.only(names)
    return draw(modified(part, shape, known, "slice" in whole)), known


@st.composite
def _viewed(draw: st.DrawFn, part: System, known: Known, timed: bool, features: frozenset[str]) -> tuple[System, Known]:
    """A part that reads where its facts come from, and when they came, if it is `timed`."""
    graphs: tuple[Slot, ...] = (NAMED, NAMED, iri(STREAMS[1]))
    if "named" in features:
        graphs = (*graphs, Term(GRAPHS[3]))
    graph = draw(st.sampled_from(graphs))
    told = [graph] if not timed else [graph, TIME]
    patterns = [one for one in part.joinables if isinstance(one, Pattern)]
    atoms = tuple(AtomPattern(CAME if timed else GRAPH, (*told, *one.slots)) for one in patterns)
    kind: type[Source] = Arrivals if timed else Graphs
    if not timed and "named" in features:
        kind = partial(Graphs, only=draw(st.sampled_from(["", "graphs", "streams"])))  # type: ignore[assignment]
    sources = tuple(
        kind("" if isinstance(one, Graph) else one.iri, one.window, one.windows, one.removals) for one in part.sources
    )
    names = tuple(one for one in told if isinstance(one, Variable))
    return replace(part, sources=sources, joinables=atoms), known.plus(Known(bound=names))


@st.composite
def unions(
    draw: st.DrawFn, shape: Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...]
) -> tuple[Union, Known]:
    """Two or three patterns beside each other. A variable that not all of them bind mostly gets a name of its own."""
    unsure = "unsure" in shape.features and draw(st.booleans())
    patterns = draw(st.lists(patterns_of(readable), min_size=2, max_size=3))
    knowns = [of_patterns([pattern]) for pattern in patterns]
    common = [name for name in NAMES if all(name in known.bound for known in knowns)]
    maybe: list[Variable] = []
    branches: list[System] = []
    for number, (pattern, known) in enumerate(zip(patterns, knowns, strict=True)):
        own = [name for name in known.bound if name not in common]
        names = {name: name if unsure else Variable(f"e{number}{name.name}") for name in own}
        maybe += (name for name in names.values() if name not in maybe)
        branches.append(System("", sources, (renamed(pattern, names),)))
    subjects = tuple(name for name in common if all(name in known.subjects for known in knowns))
    return Union(tuple(branches)), Known(tuple(common), subjects, tuple(maybe))


def renamed(pattern: Pattern, names: dict[Variable, Variable]) -> Pattern:
    subject, predicate, value = (
        names.get(slot, slot) if isinstance(slot, Variable) else slot for slot in pattern.slots
    )
    return Pattern(subject, predicate, value)


@cache
def patterns_of(predicates: tuple[Slot, ...]) -> st.SearchStrategy[Pattern]:
    """Mostly two variables; seldom the same one twice, or constants."""
    ends: list[tuple[Slot, Slot]] = [*6 * tuple(permutations(NAMES, 2)), *((name, name) for name in 2 * NAMES)]
    ends += product(NAMES, (*2 * NODES[:2], *LITERALS[:2]))
    ends += product(NODES[:1], (*2 * NAMES, NODES[0], LITERALS[0]))
    return st.sampled_from([Pattern(one, predicate, other) for predicate in predicates for one, other in ends])


def some(names: Sequence[Variable], least: int) -> st.SearchStrategy[tuple[Variable, ...]]:
    """Some of the variables, in any order."""
    return st.lists(st.sampled_from(names), min_size=least, max_size=len(names), unique=True).map(tuple)


@st.composite
def conditions(draw: st.DrawFn, known: Known) -> Filter:
    """A test: mostly one that some solutions pass and others do not, now and then any."""
    function, arguments = draw(st.sampled_from(TESTS if draw(one_in(5)) else _selective(known) or TESTS))
    return Filter(Call(function, arguments))


@cache
def _selective(known: Known) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
    found: list[tuple[str, tuple[Expression, ...]]] = [("notEqual", pair) for pair in permutations(known.bound, 2)]
    for name in known.bound:
        found.append(("notEqual", (name, NODES[1])))
        if name not in known.subjects:
            found += [("isLiteral", (name,)), ("notLiteral", (name,)), ("ge", (name, LITERALS[0]))]
    for name in known.maybe:
        found += [("unbound", (name,)), ("bound", (name,))]
    return tuple((function_iri(name), arguments) for name, arguments in found)


@st.composite
def calls(draw: st.DrawFn, known: Known) -> Call:
    """A value of what is known; now and then of what is not."""
    names = known.bound if known.bound and not draw(one_in(6)) else NAMES
    first: Variable = draw(st.sampled_from(names))
    name = draw(st.sampled_from(("strConcat", "sum", "max"))) if first not in known.subjects else "strConcat"
    others: tuple[Slot, ...] = (*names, *LITERALS[1:4])
    second = draw(st.sampled_from(others))
    return Call(function_iri(name), (first, second))


@st.composite
def groupings(draw: st.DrawFn, shape: Shape, known: Known, prefix: str) -> Grouping:
    """Aggregates by one or two keys, or by none. They are named by the prefix and a number."""
    least = 0 if "totals" in shape.features else 1
    keys = draw(some(known.all, least)) if known.all else ()
    values = st.sampled_from((*NAMES[:1], *3 * known.all))
    aggregates = tuple(draw(_aggregates(f"{prefix}{number}", values)) for number in range(draw(st.integers(1, 2))))
    return Grouping(keys[:2], aggregates)


@st.composite
def _aggregates(draw: st.DrawFn, name: str, values: st.SearchStrategy[Variable]) -> Aggregate:
    kind = draw(st.sampled_from(("count", "count", "sum", "sum", "avg", "min", "max", "sample", "group_concat")))
    expression: Expression | None = draw(values)
    if draw(one_in(4)):
        expression = None if kind == "count" else Call(function_iri("sum"), (draw(values), LITERALS[3]))
    return Aggregate(Variable(name), kind, expression, draw(one_in(3)))


def may_group(shape: Shape, known: Known) -> bool:
    return bool(known.all) or "totals" in shape.features


def grouped(grouping: Grouping, known: Known) -> Known:
    made = tuple(aggregate.variable for aggregate in grouping.aggregates)
    return known.only(grouping.keys).plus(Known(maybe=made))


@st.composite
def modified(draw: st.DrawFn, system: System, shape: Shape, known: Known, sliced: bool) -> System:
    """The system with distinct and slice. Where these leave a choice that names and written order would make, the order
    says it all."""
    selects = any(isinstance(one, Select) for one in system.consequences)
    distinct = selects and "distinct" in shape.features and draw(one_in(3))
    if not sliced:
        return replace(system, distinct=distinct)
    if selects:
        names = visible(system) if distinct else known.all
        order = draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []
    else:
        makes = (one for one in system.consequences if isinstance(one, Construct))
        made = [template for one in makes for template in one.template]
        order = list(dict.fromkeys(name for template in made for name in variables(template))) or list(visible(system))
    by = tuple(Order(name, draw(st.booleans())) for name in order)
    shown = [one.variables for one in system.consequences if isinstance(one, Select)]
    keys = draw(some(shown[0], 0))[:1] if shown and shown[0] and draw(one_in(3)) else ()
    cut = Slice(by, draw(st.sampled_from((0, 0, 1))), draw(st.sampled_from((1, 2, 3, None))), keys)
    return replace(system, distinct=distinct, slice=cut)
