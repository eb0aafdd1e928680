"""The check ``step-never-matches``: patterns over time that ask of the times of their steps what excludes each other.

The begins and ends of steps, and the distances between them that sequences and conditions ask for, are a simple
temporal network. It has a solution if and only if its graph has no cycle of negative length (Dechter, Meiri, Pearl:
Temporal constraint networks, Artificial Intelligence 49, 1991, theorem 3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from math import inf
from typing import Literal, NamedTuple

from squall.checking.conditions import conjuncts
from squall.checking.contradictions import SIGNS, fraction
from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Rule
from squall.checking.unbounded_sequence import occurrence_sources
from squall.errors import Origin
from squall.functions.sparql.names import SPARQL
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Construct,
    Expression,
    Filter,
    Iteration,
    Joinable,
    Occurrences,
    SequenceJoin,
    System,
    Variable,
)
from squall.model.windows import Window

_HINT = "no times fulfil all of this: leave a part out, or turn it round"


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each query whose pattern over time has no match, whatever arrives."""
    network = _Networks(program)
    for rule in program.rules:
        if rule.stream in network.streams:
            continue  # a part of a pattern, which is looked at with the whole
        cycle = _negative_cycle([*network.distances(rule.system)])
        if cycle:
            yield _finding(rule, cycle)


_ZERO = Variable("the time 0")


class _Distance(NamedTuple):
    """A time that is at least so many milliseconds later than another one.

    Attributes:
        kind: What says so: a sequence, the equality of two names, or a condition.
        origin: The place of the text that says so.
    """

    later: Variable
    earlier: Variable
    least: int
    kind: Literal["sequence", "equality", "condition"]
    origin: Origin | None = None


class _Networks:
    """The distances between the times of patterns, also of parts that have rules of their own."""

    def __init__(self, program: Program) -> None:
        self.scopes = count()
        """A number for each reading of a part. The rules of all parts have the same names of variables."""
        self.makers: dict[str, list[Rule]] = {}
        """The rules that make the occurrences of a part of a pattern, by their stream."""
        for rule in program.rules:
            if rule.stream:
                self.makers.setdefault(rule.stream, []).append(rule)
        reads = (source.iri for rule in program.rules for source in occurrence_sources(rule.system))
        self.streams = frozenset(reads) & self.makers.keys()

    def distances(self, system: System) -> Iterator[_Distance]:
        """Yields what holds of the times in each solution of a system."""
        for predicate in system.predicates:
            match predicate:
                case Filter(expression=expression):
                    for test in conjuncts(expression):
                        yield from _compared(test)
                case Bind(variable=variable, expression=Variable() as same):
                    yield from _equal(variable, same)
        for part in system.joinables:
            yield from self._of_part(part, system)

    def _of_part(self, part: Joinable, system: System) -> Iterator[_Distance]:
        match part:
            case Iteration():
                return  # its variables have the values of the whole run
            case SequenceJoin():
                yield from _sequence(part)
                yield from (distance for test in _tests(part) for distance in _compared(test))
                yield from self.distances(part.left)
                yield from self.distances(part.right)
            case System():
                yield from self.distances(part)
            case AtomPattern():
                yield from self._of_stream(part, system)

    def _of_stream(self, pattern: AtomPattern, system: System) -> Iterator[_Distance]:
        """Yields what holds of the times of a part that has a rule of its own; nothing of alternatives."""
        makers = [maker for source in _inner_sources(system) for maker in self.makers.get(source.iri, ())]
        if len(makers) != 1:
            return
        (maker,) = makers
        scope = next(self.scopes)
        for part in maker.system.consequences:
            for template in part.template if isinstance(part, Construct) else ():
                if isinstance(template, AtomPattern):
                    pairs = zip(pattern.arguments[1:], template.arguments, strict=False)
                    for read, value in pairs:
                        if isinstance(read, Variable) and isinstance(value, Variable):
                            yield from _equal(read, _scoped(value, scope))
        for distance in self.distances(maker.system):
            later, earlier = _scoped(distance.later, scope), _scoped(distance.earlier, scope)
            yield distance._replace(later=later, earlier=earlier)


def _scoped(name: Variable, scope: int) -> Variable:
    return name if name == _ZERO else Variable(f"{name.name} in part {scope}")


def _inner_sources(system: System) -> Iterator[Occurrences]:
    return (source for source in system.sources if isinstance(source, Occurrences))


def _tests(part: SequenceJoin) -> Iterator[Call]:
    return conjuncts(part.condition) if part.condition is not None else iter(())


def _sequence(part: SequenceJoin) -> Iterator[_Distance]:
    """Yields what holds of the times of a pair: of its gap, and of the length that the window of its parts allows."""
    yield _Distance(part.right_start, part.left_end, part.min_gap, "sequence", part.origin)
    yield _Distance(part.right_end, part.right_start, 0, "sequence")
    if part.max_gap is not None:
        yield _Distance(part.left_end, part.right_start, -part.max_gap, "sequence", part.origin)
    for step, window in _steps(part.left):
        if window.longest_age is not None:
            yield _Distance(step, part.right_end, -window.longest_age, "sequence", part.origin)


def _steps(system: System) -> Iterator[tuple[Variable, Window]]:
    """Yields the time of each occurrence that a part of a pattern reads, and the window through which it reads it."""
    for part in system.joinables:
        match part:
            case Iteration():
                pass
            case SequenceJoin(left=left, right=right):
                yield from (*_steps(left), *_steps(right))
            case System():
                yield from _steps(part)
            case AtomPattern(arguments=(Variable() as time, *_)):
                yield from ((time, source.window) for source in _inner_sources(system))


def _equal(first: Variable, second: Variable) -> Iterator[_Distance]:
    if first != second:
        yield from (_Distance(first, second, 0, "equality"), _Distance(second, first, 0, "equality"))


def _compared(test: Call) -> Iterator[_Distance]:
    """Yields what a comparison says of two times, if it is one of a difference of times with a constant."""
    sign = SIGNS.get(test.function)
    if sign is None or (difference := _linear_difference(test.arguments[0], test.arguments[1])) is None:
        return
    terms, constant = difference
    names = {factor: name for name, factor in terms.items()}
    if not terms or len(names) != len(terms) or not names.keys() <= {1, -1}:
        return
    high, low = names.get(1, _ZERO), names.get(-1, _ZERO)
    if sign in (">", ">=", "="):  # high - low + constant >= 0
        yield _Distance(high, low, (sign == ">") - constant, "condition", test.origin)
    if sign in ("<", "<=", "="):
        yield _Distance(low, high, (sign == "<") + constant, "condition", test.origin)


_Linear = tuple[dict[Variable, int], int]
"""A sum of variables, each with a factor, and a constant."""


def _linear(expression: Expression) -> _Linear | None:
    """Returns an expression as a sum, or None if it is none of variables and integers."""
    if isinstance(expression, Variable):
        return {expression: 1}, 0
    if isinstance(expression, Call) and len(expression.arguments) == 2 and expression.function in _FACTORS:
        return _linear_difference(*expression.arguments[:2], factor=_FACTORS[expression.function])
    value = fraction(expression)
    return ({}, int(value)) if value is not None and value.denominator == 1 else None


def _linear_difference(first: Expression, second: Expression, factor: int = -1) -> _Linear | None:
    """Returns the first expression plus the second one times a factor, or None if they are no such sums."""
    left, right = _linear(first), _linear(second)
    if left is None or right is None:
        return None
    terms = Counter(left[0])
    for name, times in right[0].items():
        terms[name] += factor * times
    return {name: times for name, times in terms.items() if times}, left[1] + factor * right[1]


_FACTORS = {f"{SPARQL}plus": 1, f"{SPARQL}subtract": -1}


def _negative_cycle(distances: Sequence[_Distance]) -> list[_Distance]:
    """Returns distances that cannot hold together, in the order of a cycle; none if all can."""
    if not distances:
        return []
    import networkx as nx  # it takes longer to load than all of squall

    times = _times(distances)
    graph = nx.DiGraph()
    for distance in distances:
        later, earlier = distance.later, distance.earlier
        if not {later, earlier} <= times:
            continue
        if later == earlier and distance.least > 0:
            return [distance]
        edge = graph.get_edge_data(later, earlier, {"weight": inf})
        if later != earlier and -distance.least < edge["weight"]:
            graph.add_edge(later, earlier, weight=-distance.least, distance=distance)
    if not nx.negative_edge_cycle(graph):
        return []
    graph.add_weighted_edges_from([("begin", name, 0) for name in graph])
    cycle = nx.find_negative_cycle(graph, "begin")
    return [graph[later][earlier]["distance"] for later, earlier in pairwise(cycle)]


def _times(distances: Sequence[_Distance]) -> frozenset[Variable]:
    """Returns the variables that are times, which are integers: those that sequences relate, and what is equal."""
    times = {_ZERO, *(name for distance in distances if distance.kind == "sequence" for name in distance[:2])}
    equalities = [distance for distance in distances if distance.kind == "equality"]
    while more := {name for same in equalities if not times.isdisjoint(same[:2]) for name in same[:2]} - times:
        times |= more
    return frozenset(times)


def _finding(rule: Rule, cycle: Sequence[_Distance]) -> Finding:
    """Returns the finding about a rule and the distances that exclude each other."""
    causes = [distance for distance in cycle if distance.origin is not None]
    reasons = dict.fromkeys(map(_text, causes))
    place = max((cause.origin for cause in causes if cause.origin), key=_place, default=rule.origin)
    message = f"`{rule.name}` never matches, for its times: {', and '.join(reasons)}"
    return Finding("step-never-matches", WARNING, message, place, _HINT)


def _text(distance: _Distance) -> str:
    assert distance.origin is not None
    words = " ".join(distance.origin.words.split())
    return f"`{words}`" if distance.kind == "condition" else f"the place of `{words}` in its sequence"


def _place(origin: Origin) -> tuple[int, int]:
    return origin.line, origin.column
