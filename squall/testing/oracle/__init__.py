"""The oracle: what a system means, by nested loops to a naive fixpoint at every instant; too simple to be wrong.

It reads the system itself and shares nothing with planners and builders but the functions and the order of terms.
Source: docs/semantics.md, law 5.

An instant is evaluated by itself: what is valid then is made a set of facts, and rules are applied to it, stratum by
stratum, until nothing new comes. Between two evaluation instants nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from squall.errors import BuilderError, PlannerError
from squall.model import (
    CAME,
    GRAPH,
    Ask,
    AtomPattern,
    Construct,
    FactPattern,
    Insert,
    OutputSpec,
    Pattern,
    Select,
    Slot,
    System,
    Variable,
    is_initial,
    is_update,
    output_specs,
)
from squall.rdf import ALWAYS, QUAD, Atom, Evaluated, Event, Fact, Quad, Term, Triple
from squall.testing.oracle.base import BEGIN, SETTLED, Answer, Expected, Instant, Item, Names, Since, told_at
from squall.testing.oracle.models import model
from squall.testing.oracle.outputs import Items, handed_on, reported, with_makers
from squall.testing.oracle.stratification import may_meet, patterns, stratified
from squall.testing.oracle.updates import Acting, State, acting_solutions, demands_of, quads
from squall.testing.oracle.validity import evaluation_instants, reads, sources_of, stays_of, timely, valid

__all__ = ["STEPS", "Answer", "Expected", "Item", "Names", "answers", "outputs"]

STEPS = 200
"""So many steps of updates without an event are as good as endless."""


def answers(
    system: System, events: Iterable[Event], static: Iterable[Event] = (), steps: int = STEPS
) -> dict[int, Answer]:
    """The answer at each evaluation instant, in order: at `squall.rdf.ALWAYS` first, and wherever anything may change.

    An event earlier than one before it is late and changes nothing. Raises PlannerError where negation goes through a
    cycle of rules, or a stream that the program makes is made of itself, and BuilderError where updates take more
    `steps` than that without an event.
    """
    found = _course(output_specs(system), *_with_streams(system, events, static, steps), steps)
    return {time: _whole(parts) for time, parts in _at_once(found).models.items()}


def outputs(
    system: System, events: Iterable[Event], static: Iterable[Event] = (), steps: int = STEPS
) -> list[Expected]:
    """What the system hands on, by its R2S operators and its report policies, ordered by time; at one time, of each way
    of telling, facts come first, by their text, then solutions in the order of `Slice`.

    What went on being answered may name any rule that made it since it began to be; what is new, those that make it
    now. Raises the errors of `answers`.
    """
    events, static = _with_streams(system, events, static, steps)
    told = output_specs(system)
    course = _at_once(_course(told, events, static, steps))
    found = [one for number in range(len(told)) for one in _outputs(told, number, course, events)]
    return sorted(found, key=lambda one: one[0])


def _with_streams(
    system: System, events: Iterable[Event], static: Iterable[Event], steps: int
) -> tuple[list[Event], list[Event]]:
    """The events, with those of the streams that the program makes, of which some may be before `BEGIN`, and the
    static data. Where updates hand on what streams are told, each round is sure of one time more, and forgets what it
    found behind it: that may have come of what is not told after all."""
    told, given, always = output_specs(system), timely(events), list(static)
    made: list[Event] = []
    updated = any(is_update(rule) for telling in told for rule in telling.rules)
    rounds = 0
    while True:
        all_events = sorted([*given, *made], key=lambda event: event.time)
        if not any(telling.stream for telling in told):
            return all_events, always
        course = _step_by_step(_course(told, all_events, always, steps))
        before, made = made, []
        for number, telling in enumerate(told):
            if telling.stream:
                made += _events(telling.stream, _outputs(told, number, course, all_events))
        if made == before:
            return all_events, always
        if updated:
            sure = min(event.time for event in {*before} ^ {*made})
            made = [event for event in made if event.time <= sure]
        rounds += 1
        if rounds > (len(told) + 1) * (len(course.models) if updated else 1):  # an update is seen an instant later
            raise PlannerError("a stream is made of itself")


def _events(stream: str, told: Iterable[Expected]) -> list[Event]:
    """What is told of a stream as its events: the facts of an instant in the order of their text."""
    facts: dict[tuple[int, str], set[Fact]] = {}
    for time, item, _ in told:
        if isinstance(item, Quad):
            facts.setdefault((time, item.graph), set()).add(Triple(item.subject, item.predicate, item.object))
        elif isinstance(item, Triple | Atom):
            facts.setdefault((time, ""), set()).add(item)
    return [Event(time, tuple(sorted(found)), stream, (), graph) for (time, graph), found in sorted(facts.items())]


class _Course(NamedTuple):
    """The answers of each way of telling at each instant, and the instants at which what updates do is seen first."""

    models: dict[int, list[Answer]]
    taken: set[int]


def _at_once(course: _Course) -> _Course:
    """What is answered: of what happens step by step at `ALWAYS`, how it ends."""
    models = {told_at(time): parts for time, parts in course.models.items()}
    return _Course(models, set(map(told_at, course.taken)))


def _step_by_step(course: _Course) -> _Course:
    """What streams are told of: each step at `ALWAYS` since static data came to rest."""
    return course._replace(models={time: parts for time, parts in course.models.items() if time >= SETTLED})


def _course(told: Sequence[OutputSpec], events: Sequence[Event], static: Sequence[Event], steps: int) -> _Course:
    program = [rule for telling in told for rule in telling.rules]
    strata = stratified(program)
    graphs = State({source: stays_of(source, events, static) for source in sources_of(program)})
    graphs.change([(True, *quad) for rule in program if is_initial(rule) for quad in quads(rule, Insert, {})], ALWAYS)
    moving = [event for event in events if event.time >= BEGIN]
    due = {ALWAYS}.union(*(evaluation_instants(source, moving) for source in graphs.stays))
    came = {event.time for event in moving}
    found = _Course({}, set())
    since: Since = {}
    held: set[Acting] = set()
    taken = 0
    while due:
        time = min(due)
        due.remove(time)
        read = {source: valid(source, known, time) for source, known in graphs.stays.items()}
        instant = Instant(told_at(time), read, since)
        found.models[time] = model(strata, instant, told, graphs.inserted(time))
        acting = set(acting_solutions(program, instant))
        demands = [demand for one in acting - held for demand in demands_of(program, one)]
        since, held = instant.since, acting
        taken = 0 if time in came else taken
        if demands:
            taken += 1
            if taken > steps:
                raise BuilderError(f"after {steps} steps without an event there is still something to do")
            after = time if time == ALWAYS else time + 1
            graphs.change(demands, after)
            due.add(after)
            found.taken.add(after)
        elif time == ALWAYS:
            due.add(SETTLED)
    return found


def _whole(parts: Iterable[Answer]) -> Answer:
    """The answers of a program as one."""
    facts: dict[Fact | Quad, Names] = {}
    for part in parts:
        for fact, names in part.facts.items():
            facts[fact] = facts.get(fact, frozenset()) | names
    return Answer(facts, tuple(solution for part in parts for solution in part.solutions))


def _outputs(told: Sequence[OutputSpec], number: int, course: _Course, events: Sequence[Event]) -> list[Expected]:
    """What is handed on in one way of telling."""
    telling = told[number]
    timeline = with_makers({time: parts[number] for time, parts in course.models.items()})
    moving = [event for event in events if event.time >= BEGIN]
    heard = [event for event in moving if not _is_made(event.stream, told) or _may_read(telling, event.stream, told)]
    instants = {min(timeline), *course.taken}.union(
        *(evaluation_instants(source, heard) for source in sources_of(telling.rules))
    )
    found: list[Expected] = []
    before: Items = []
    came = (event.time for event in moving if not _is_made(event.stream, told))
    for time, answer in reported(telling, heard, timeline, instants, max(came, default=ALWAYS)):
        found += [(time, item, names) for (_, item), names in handed_on(telling.output, before, answer)]
        if telling.report.empty and telling.output == "rstream":
            found += [(time, done, frozenset((name,))) for name, done in sorted(_completed(telling.rules))]
        before = answer
    return found


def _is_made(stream: str, told: Iterable[OutputSpec]) -> bool:
    return bool(stream) and any(telling.stream == stream for telling in told)


def _may_read(reader: OutputSpec, stream: str, told: Iterable[OutputSpec]) -> bool:
    """Whether what is told of a stream may fit a pattern: it is no instant for others, or else a stream would be
    evaluated whenever it is."""
    made = [rule for telling in told if telling.stream == stream for rule in telling.rules]
    templates = [template for rule in made for one in _constructs(rule) for template in one.template]
    named = {source.iri for rule in reader.rules for _, part, _ in patterns(rule) for source in part.sources}
    heads = [head for template in templates for head in _views(template, stream, named)]
    return any(
        reads(source, stream, graph) and may_meet(head, pattern)
        for rule in reader.rules
        for pattern, part, _ in patterns(rule)
        for source in part.sources
        for head, graph in heads
    )


def _views(template: FactPattern, stream: str, named: Iterable[str]) -> list[tuple[FactPattern, str]]:
    """What is read of a template's facts, each with the graph in which it may be: themselves, where they come from, and
    when they came. named: the graphs by which patterns ask."""
    graphs: list[Slot] = []
    slots = template.slots
    if isinstance(template, AtomPattern) and template.relation == QUAD:
        graphs, slots = [slots[0]], slots[1:]
    if len(slots) != 3 or (isinstance(template, AtomPattern) and template.relation != QUAD):
        return [(template, "")]
    inside = [one for one in graphs if isinstance(one, str)]
    if len(inside) < len(graphs):
        inside = [Term(f"<{one}>") for one in named if one] + [Term("_:any")]
    found: list[tuple[FactPattern, str]] = []
    for graph in inside or [Term("")]:
        found.append((Pattern(*slots), graph))
        for name in (Term(f"<{stream}>"), *graphs):
            found.append((AtomPattern(GRAPH, (name, *slots)), graph))
            found.append((AtomPattern(CAME, (name, Variable(" when"), *slots)), graph))
    return found


def _constructs(rule: System) -> list[Construct]:
    return [one for one in rule.consequences if isinstance(one, Construct) and not one.internal]


def _completed(program: Iterable[System]) -> set[tuple[str, Evaluated]]:
    """What is said of each query when it has been evaluated: of what selects or asks, and of what makes facts that no
    rule reads."""
    found: set[tuple[str, Evaluated]] = set()
    for rule in program:
        for one in rule.consequences:
            if isinstance(one, Select):
                found.add((rule.name, Evaluated(tuple(name.name for name in one.variables))))
            elif isinstance(one, Ask) or (isinstance(one, Construct) and not one.internal and not rule.reentrant):
                found.add((rule.name, Evaluated(())))
    return found
