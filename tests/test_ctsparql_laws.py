"""A law of CT-SPARQL: a pattern over time has the matches that enumeration over the whole stream gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.contracts import Result
from squall.lexers.sparql import tree as q
from squall.model import System, Variable
from squall.rdf import Event, Solution, Term, Triple, iri
from squall.rdf.vocabulary import TYPE
from tests import in_memory
from tests.laws import PLANNERS, examples_of, hold, on_engines

Bindings = dict[Variable, Term]


class Interval(NamedTuple):
    """An occurrence: what it binds, and when it begins and ends (integer ms)."""

    bindings: Bindings
    start: int
    end: int


def agree(*parts: Interval) -> bool:
    """Returns whether no variable has two values."""
    pairs = [(first, second) for first in parts for second in parts]
    return all(b.bindings.get(name, value) == value for a, b in pairs for name, value in a.bindings.items())


def merged(*parts: Interval, end: int | None = None) -> Interval:
    bindings = {name: value for part in parts for name, value in part.bindings.items()}
    return Interval(
        bindings, min(part.start for part in parts), max(part.end for part in parts) if end is None else end
    )


class Enumeration:
    """All occurrences of patterns in a stream whose steps are triple patterns.

    Each method takes the bound (integer ms) on what the pattern is a part of, or None: what `AND NOT` excludes is
    forgotten after so long.
    """

    def __init__(self, events: list[Event]) -> None:
        self.events = events

    def pattern(self, pattern: q.TimePattern, within: int | None = None) -> list[Interval]:
        return [occurrence for branch in pattern.branches for occurrence in self.conjunction(branch, within)]

    def conjunction(self, branch: q.Conjunction, within: int | None) -> list[Interval]:
        first, *further = branch.conjuncts
        result = self.chain(first.chain, within)
        for conjunct in further:
            if conjunct.wanted:
                result = [merged(a, b) for a in result for b in self.chain(conjunct.chain, within) if agree(a, b)]
        for conjunct in further:
            if not conjunct.wanted:
                absent = self.chain(conjunct.chain, within)
                oldest = float("inf") if within is None else within
                result = [a for a in result if not any(agree(a, b) and 0 <= a.end - b.end <= oldest for b in absent)]
        return result

    def chain(self, chain: q.Chain, around: int | None) -> list[Interval]:
        within = around if chain.within is None else chain.within
        result = self.group(chain.first.group, within)
        if chain.preceded is not None:
            absent, length = self.group(chain.preceded.group, None), chain.preceded.within
            result = [
                a for a in result if not any(agree(a, b) and a.start - length <= b.start < a.start for b in absent)
            ]
        for link in chain.links:
            result = self.link(result, link, within)
        if chain.followed is not None:
            absent, length = self.group(chain.followed.group, None), chain.followed.within
            result = [
                merged(a, end=a.end + length)
                for a in result
                if not any(agree(a, b) and a.end < b.start <= a.end + length for b in absent)
            ]
        return [a for a in result if chain.within is None or a.end - a.start <= chain.within]

    def link(self, lefts: list[Interval], link: q.Link, within: int | None) -> list[Interval]:
        rights = self.group(link.to.group, within)
        pairs = [(a, b) for a in lefts for b in rights if a.end < b.start and agree(a, b)]
        pairs = [(a, b) for a, b in pairs if b.start - a.end >= (link.to.after or 0)]
        pairs = [(a, b) for a, b in pairs if link.to.before is None or b.start - a.end <= link.to.before]
        for part in link.between:
            inner = self.group(part.group, within)
            pairs = [(a, b) for a, b in pairs if part.wanted == any(is_between(a, c, b) for c in inner)]
        if link.selection == "STRICT":
            pairs = [(a, b) for a, b in pairs if not any(a.end < event.time < b.start for event in self.events)]
        if link.selection == "LAST":
            pairs = [(a, b) for a, b in pairs if not any(c.end > a.end for c, d in pairs if d is b)]
        elif link.selection != "EACH":
            pairs = [(a, b) for a, b in pairs if not any(d.end < b.end for c, d in pairs if c is a)]
        return [merged(a, b) for a, b in pairs]

    def group(self, group: q.Group, within: int | None) -> list[Interval]:
        (element,) = group.elements
        if isinstance(element, q.TimePattern):
            return self.pattern(element, within)
        assert isinstance(element, q.TriplesBlock)
        (triple,) = element.triples
        assert isinstance(triple.subject, Variable)
        facts = [(event.time, fact) for event in self.events for fact in event.facts]
        return [
            Interval({triple.subject: fact.subject}, time, time)
            for time, fact in facts
            if isinstance(fact, Triple) and fact.object == triple.object
        ]


def is_between(left: Interval, inner: Interval, right: Interval) -> bool:
    return left.end < inner.start and inner.end < right.start and agree(left, right, inner)


KINDS = [iri(f"urn:{kind}") for kind in "ABC"]
NODES = [iri(f"urn:n{number}") for number in range(3)]
VARIABLES = [Variable("x"), Variable("y")]


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Draws a stream in which each statement comes once at an instant."""
    statements = st.tuples(st.integers(1, 9), st.sampled_from(NODES), st.sampled_from(KINDS))
    drawn = draw(st.lists(statements, max_size=12, unique=True))
    return [Event(time, (Triple(node, TYPE, kind),)) for time, node, kind in sorted(drawn)]


steps = st.builds(
    lambda name, kind: q.Group((q.TriplesBlock((q.TriplePattern(name, TYPE, kind),)),)),
    st.sampled_from(VARIABLES),
    st.sampled_from(KINDS),
)


@st.composite
def chains(draw: st.DrawFn, depth: int, can_be_preceded: bool = False) -> q.Chain:
    def group() -> q.Group:
        return q.Group((draw(patterns(depth - 1)),)) if depth and draw(st.integers(0, 4)) == 0 else draw(steps)

    links = []
    for _ in range(draw(st.integers(0, 2))):
        parts = [q.Part(group(), draw(st.booleans()))] if draw(st.integers(0, 3)) == 0 else []
        after, before = draw(st.sampled_from([(None, None), (None, None), (2, None), (None, 3), (2, 3)]))
        selection = draw(st.sampled_from(["", "NEAREST", "EACH", "LAST", "STRICT"]))
        links.append(q.Link(q.Occurrence(group(), None, after, before), selection, tuple(parts)))
    preceded = q.Absence(draw(steps), draw(st.integers(1, 3))) if can_be_preceded and draw(st.booleans()) else None
    first = draw(steps) if preceded else group()
    followed = q.Absence(draw(steps), draw(st.integers(1, 3))) if draw(st.integers(0, 3)) == 0 else None
    within = draw(st.sampled_from([None, 3, 5, 8, 12]))
    return q.Chain(q.Occurrence(first), tuple(links), preceded, followed, within)


@st.composite
def patterns(draw: st.DrawFn, depth: int) -> q.TimePattern:
    """Draws a pattern that is more than a group, whose branches bind the same variables."""

    def conjunction() -> q.Conjunction:
        conjuncts = [
            q.Conjunct(draw(chains(depth)), draw(st.booleans())) for _ in range(draw(st.sampled_from([0, 0, 1])))
        ]
        return q.Conjunction((q.Conjunct(draw(chains(depth, True))), *conjuncts))

    pattern = q.TimePattern(tuple(conjunction() for _ in range(draw(st.sampled_from([1, 1, 2])))))
    (first, *_), *_ = (branch.conjuncts for branch in pattern.branches)
    if len(pattern.chains) == 1 and first.chain == q.Chain(q.Occurrence(first.chain.first.group)):
        return draw(patterns(depth))
    return pattern


Match = tuple[int, tuple[int, int], frozenset[tuple[str, Term]]]
"""When a match is output, its begin and end (integer ms), and what it binds."""


def compiled(pattern: q.TimePattern) -> System | None:
    """Returns the system of a query for the matches of a pattern with their times, or None if it is refused."""
    name = q.StepName("m")
    whole = q.Chain(q.Occurrence(q.Group((pattern,)), name))
    named = q.TimePattern((q.Conjunction((q.Conjunct(whole),)),))
    times = tuple(q.SelectItem(Variable(time), q.StepCall(time, (name,))) for time in ("start", "end"))
    query = q.SelectQuery((*map(q.SelectItem, VARIABLES), *times), q.Group((named,)))
    try:
        return squall.compile(str(q.Program((q.Statement(query),))), lexer="ctsparql")
    except squall.SquallError as error:
        assert "may be unbound" in str(error) or "this never occurs" in str(error), error  # noqa: PT017
        return None


def matches(pattern: q.TimePattern, events: list[Event]) -> Counter[Match]:
    """Returns the enumerated matches, each at its end."""
    occurrences = Enumeration(events).pattern(pattern)
    shown = (
        (each.end, (each.start, each.end), frozenset((name.name, term) for name, term in each.bindings.items()))
        for each in occurrences
    )
    return Counter(set(shown))


def answers(outputs: Iterable[tuple[int, Result]]) -> Counter[Match]:
    return Counter(_match(time, fact) for time, fact in outputs if isinstance(fact, Solution))


def _match(time: int, solution: Solution) -> Match:
    *values, start, end = solution.values
    assert start is not None
    assert end is not None
    bound = ((name.name, value) for name, value in zip(VARIABLES, values, strict=True) if value is not None)
    return time, (_integer(start), _integer(end)), frozenset(bound)


def _integer(term: Term) -> int:
    return int(term.split('"')[1])


@settings(max_examples=examples_of(150), deadline=None)
@given(patterns(1), streams(), st.sampled_from(PLANNERS))
def test_matches_are_those_of_enumeration(pattern: q.TimePattern, events: list[Event], planner: str) -> None:
    system = compiled(pattern)
    if system is not None:
        outputs = squall.run(squall.plan(system, planner), events)
        assert answers((output.time, output.fact) for output in outputs) == matches(pattern, events)


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(pattern: q.TimePattern, events: list[Event], seed: int) -> None:
        system = compiled(pattern)
        if system is not None:
            outputs = in_memory.outputs_on(builder, squall.plan(system), events, seed)
            assert answers((output.time, output.fact) for output in outputs) == matches(pattern, events)

    hold(law, number, pattern=patterns(1), events=streams(), seed=st.integers(0, 1000))
