"""The oracle: what a system means, by nested loops to a naive fixpoint at every instant; too simple to be wrong.

It reads the system itself and shares nothing with planners and builders. Source: docs/semantics.md, law 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from squall import functions
from squall.errors import PlannerError
from squall.functions.values import value_key
from squall.rdf import ALWAYS, Atom, Event, Fact, Term, Triple, is_iri, is_literal
from squall.system import (
    AtomPattern,
    Bind,
    Call,
    Expression,
    FactPattern,
    Pattern,
    Predicate,
    Slot,
    System,
    Test,
    Variable,
    Without,
    rules,
)

Answer = dict[Fact, frozenset[str]]
"""What is answered at an instant, with the names of the rules that derive it then."""

Expected = tuple[int, Fact, frozenset[str]]
"""The time (integer ms) and the fact of an output, and the rules of which one may be given as its maker."""


_Solution = dict[Variable, Term]


@dataclass
class _Instant:
    """An instant: what holds by stream (``""``: everything), and since when each solution that asked the time holds."""

    time: int
    holds: dict[str, set[Fact]]
    before: dict[object, int]
    since: dict[object, int] = field(default_factory=dict)

    def start(self, key: object) -> int:
        return self.since.setdefault(key, self.before.get(key, self.time))

    def graph(self, rule: System) -> set[Fact]:
        return set().union(*(self.holds.get(source.iri, set()) for source in rule.sources))


def answers(system: System, events: Iterable[Event], static: Iterable[Event] = ()) -> dict[int, Answer]:
    """The answer at each evaluation instant, in order: `squall.rdf.ALWAYS`, then the distinct times of the events.

    An event earlier than one before it is late and changes nothing. Raises PlannerError where negation goes through a
    cycle of rules.
    """
    strata = _strata(list(rules(system)))
    found: dict[int, Answer] = {}
    since: dict[object, int] = {}
    for time, holds in _snapshots(events, static):
        instant = _Instant(time, holds, since)
        found[time] = _model(strata, instant)
        since = instant.since
    return found


def outputs(system: System, events: Iterable[Event], static: Iterable[Event] = ()) -> list[Expected]:
    """What the system hands on, by its R2S operator, ordered by time and then by fact.

    A fact that went on being answered may name any rule that derived it since it began to be; a new one, those that
    derive it now.
    """
    found: list[Expected] = []
    previous: Answer = {}
    for time, answer in answers(system, events, static).items():
        makers = {fact: names | previous.get(fact, frozenset()) for fact, names in answer.items()}
        given = _handed_on(system.output, previous, makers)
        found += [(time, fact, given[fact]) for fact in sorted(given, key=str)]
        previous = makers
    return found


def _handed_on(output: str, previous: Answer, answer: Answer) -> Answer:
    if output == "rstream":
        return answer
    left, right = (answer, previous) if output == "istream" else (previous, answer)
    return {fact: names for fact, names in left.items() if fact not in right}


def _snapshots(events: Iterable[Event], static: Iterable[Event]) -> Iterator[tuple[int, dict[str, set[Fact]]]]:
    arrived: dict[int, list[Event]] = {ALWAYS: list(static)}
    for event in events:
        if event.time >= max(arrived):
            arrived.setdefault(event.time, []).append(event)
    holds: dict[str, set[Fact]] = {"": set()}
    for time, together in arrived.items():
        for event in together:
            holds[""].update(event.facts)
            holds.setdefault(event.stream, set()).update(event.facts)
        yield time, {stream: set(facts) for stream, facts in holds.items()}


def _model(strata: list[list[System]], instant: _Instant) -> Answer:
    derived: dict[Fact, set[str]] = {}
    for stratum in strata:
        while _derive(stratum, instant, derived):
            pass
    return {fact: frozenset(names) for fact, names in derived.items() if _is_answer(fact)}


def _is_answer(fact: Fact) -> bool:
    """Whether a fact may be answered: an atom, or a triple as RDF has them. Rules read the others all the same."""
    return isinstance(fact, Atom) or (not is_literal(fact.subject) and is_iri(fact.predicate))


def _derive(stratum: list[System], instant: _Instant, derived: dict[Fact, set[str]]) -> bool:
    """One round of every rule; whether it brought anything new."""
    grown = False
    for rule in stratum:
        for fact in list(_consequences(rule, instant)):
            if rule.name not in derived.setdefault(fact, set()):
                derived[fact].add(rule.name)
                grown = True
            if rule.reentrant:
                instant.holds[""].add(fact)
    return grown


def _consequences(rule: System, instant: _Instant) -> Iterator[Fact]:
    graph = instant.graph(rule)
    found = _matches(rule.joinables, {}, graph)
    for number, predicate in enumerate(rule.predicates):
        found = _apply(predicate, found, graph, instant, (rule, number))
    for solution in found:
        for construct in rule.consequences:
            for template in construct.template:
                yield _instance(template, solution)


def _matches(patterns: tuple[FactPattern, ...], solution: _Solution, graph: set[Fact]) -> Iterator[_Solution]:
    if not patterns:
        yield solution
        return
    for fact in graph:
        extended = _match(patterns[0], fact, solution)
        if extended is not None:
            yield from _matches(patterns[1:], extended, graph)


def _match(pattern: FactPattern, fact: Fact, solution: _Solution) -> _Solution | None:
    match pattern, fact:
        case Pattern(), Triple():
            terms: tuple[Term, ...] = tuple(fact)
        case AtomPattern(relation=relation), Atom(relation=other, arguments=terms) if relation == other:
            pass
        case _:
            return None
    if len(terms) != len(pattern.slots):
        return None
    for slot, term in zip(pattern.slots, terms, strict=True):
        if isinstance(slot, Variable):
            solution = {slot: term, **solution}
            if solution[slot] != term:
                return None
        elif not _same(slot, term):
            return None
    return solution


def _same(constant: Term, term: Term) -> bool:
    if is_literal(constant) and is_literal(term):
        return value_key(constant) == value_key(term)
    return constant == term


def _apply(
    predicate: Predicate, found: Iterator[_Solution], graph: set[Fact], instant: _Instant, place: object
) -> Iterator[_Solution]:
    for solution in found:
        match predicate:
            case Without(joinables=joinables):
                if next(_matches(joinables, solution, graph), None) is None:
                    yield solution
            case Test(expression=expression):
                if _evaluate(expression, solution, instant, place) is True:
                    yield solution
            case Bind(variable=variable, expression=expression):
                value = _evaluate(expression, solution, instant, place)
                if isinstance(value, str):
                    yield {**solution, variable: value}


def _evaluate(expression: Expression, solution: _Solution, instant: _Instant, place: object) -> Term | bool | None:
    match expression:
        case Variable():
            return solution.get(expression)
        case Call(function=iri, arguments=arguments):
            function = functions.lookup(iri)
            values = [_evaluate(argument, solution, instant, place) for argument in arguments]
            clock = [instant.start((place, frozenset(solution.items())))] if function.timed else []
            return function.evaluate(*clock, *values)
        case str():
            return expression


def _instance(template: FactPattern, solution: _Solution) -> Fact:
    def fill(slot: Slot) -> Term:
        return solution[slot] if isinstance(slot, Variable) else slot

    if isinstance(template, Pattern):
        return Triple(fill(template.subject), fill(template.predicate), fill(template.object))
    return Atom(template.relation, tuple(map(fill, template.arguments)))


def _strata(program: list[System]) -> list[list[System]]:
    """The rules, layer by layer: each after all that it negates, and not before what it reads."""
    level = [0] * len(program)
    settled = False
    while not settled:
        settled = True
        for index, rule in enumerate(program):
            least = max((level[at] + negated for at, negated in _needs(rule, program)), default=0)
            if least > len(program):
                raise PlannerError(f"the rule `{rule.name}` depends on its own negation", rule.origin)
            if least > level[index]:
                level[index], settled = least, False
    return [[rule for rule, at in zip(program, level, strict=True) if at == layer] for layer in sorted(set(level))]


def _needs(rule: System, program: list[System]) -> Iterator[tuple[int, int]]:
    """The places of the rules that this one reads, with 1 where it negates what they make and 0 elsewhere."""
    negated = [pattern for item in rule.predicates if isinstance(item, Without) for pattern in item.joinables]
    for at, other in enumerate(program):
        heads = [template for construct in other.consequences for template in construct.template if other.reentrant]
        for patterns, weight in ((rule.joinables, 0), (negated, 1)):
            if any(_may_meet(head, pattern) for head in heads for pattern in patterns):
                yield at, weight


def _may_meet(head: FactPattern, pattern: FactPattern) -> bool:
    if isinstance(head, AtomPattern) and isinstance(pattern, AtomPattern) and head.relation != pattern.relation:
        return False
    if type(head) is not type(pattern) or len(head.slots) != len(pattern.slots):
        return False
    pairs = zip(head.slots, pattern.slots, strict=True)
    return all(isinstance(a, Variable) or isinstance(b, Variable) or _same(a, b) for a, b in pairs)
