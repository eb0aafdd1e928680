"""The oracle: what a system means, by nested loops to a naive fixpoint at every instant; too simple to be wrong.

It reads the system itself and shares nothing with planners and builders but the functions and the order of terms.
Source: docs/semantics.md, law 5.

An instant is evaluated by itself: what is valid then is made a set of facts, and rules are applied to it, stratum by
stratum, until nothing new comes. Between two evaluation instants nothing changes.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from squall import functions
from squall.errors import BuilderError, PlannerError
from squall.functions import values
from squall.functions.ordering import key
from squall.rdf import (
    ALWAYS,
    FOREVER,
    HEARTBEAT,
    QUAD,
    WORKING,
    XSD,
    Atom,
    Boolean,
    Evaluated,
    Event,
    Fact,
    Quad,
    Solution,
    Term,
    Triple,
    iri_text,
    is_blank,
    is_iri,
    is_literal,
    literal,
)
from squall.system import (
    CAME,
    GRAPH,
    Aggregate,
    Arrivals,
    Ask,
    AtomPattern,
    Bind,
    Call,
    Compute,
    Construct,
    Delete,
    Either,
    Exists,
    Expression,
    FactPattern,
    Graph,
    Graphs,
    Grouping,
    Insert,
    Joinable,
    Maybe,
    Order,
    Pattern,
    Predicate,
    Report,
    Select,
    Slot,
    Source,
    System,
    Telling,
    Test,
    Variable,
    Without,
    is_initial,
    is_update,
    tellings,
    variables,
    visible,
)
from squall.windows import Count, Landmark, Nothing, Range, Stepped

Names = frozenset[str]
Item = Fact | Quad | Solution | Boolean
Expected = tuple[int, Item | Evaluated, Names]
"""The time (integer ms) and what an output hands on, and the rules of which one may be given as its maker."""

STEPS = 200
"""So many steps of updates without an event are as good as endless."""

_Bindings = dict[Variable, Term]
"""A solution inside: what is unbound is not in it."""


class Answer(NamedTuple):
    """What is answered at an instant: facts with the names of the rules that derive them, solutions with the name of
    theirs, each as often as it is one, in the order of `Slice`; the answer of ASK is like a solution."""

    facts: dict[Fact | Quad, Names]
    solutions: tuple[tuple[Solution | Boolean, str], ...]


def answers(
    system: System, events: Iterable[Event], static: Iterable[Event] = (), steps: int = STEPS
) -> dict[int, Answer]:
    """The answer at each evaluation instant, in order: at `squall.rdf.ALWAYS` first, and wherever anything may change.

    An event earlier than one before it is late and changes nothing. Raises PlannerError where negation goes through a
    cycle of rules, or a stream that the program makes is made of itself, and BuilderError where updates take more
    `steps` than that without an event.
    """
    found = _course(tellings(system), *_with_streams(system, events, static, steps), steps)
    return {time: _whole(parts) for time, parts in found.models.items()}


def outputs(
    system: System, events: Iterable[Event], static: Iterable[Event] = (), steps: int = STEPS
) -> list[Expected]:
    """What the system hands on, by its R2S operators and its report policies, ordered by time; at one time, of each way
    of telling, facts come first, by their text, then solutions in the order of `Slice`.

    What went on being answered may name any rule that made it since it began to be; what is new, those that make it
    now. Raises the errors of `answers`.
    """
    events, static = _with_streams(system, events, static, steps)
    told = tellings(system)
    course = _course(told, events, static, steps)
    found = [one for number in range(len(told)) for one in _outputs(told, number, course, events)]
    return sorted(found, key=lambda one: one[0])


def _with_streams(
    system: System, events: Iterable[Event], static: Iterable[Event], steps: int
) -> tuple[list[Event], list[Event]]:
    """The events and the static data, with those of the streams that the program makes."""
    told, given, always = tellings(system), _timely(events), list(static)
    made: list[Event] = []
    for _ in range(len(told) + 1):
        moving = [event for event in made if event.time > ALWAYS]
        all_events = sorted([*given, *moving], key=lambda event: event.time)
        all_static = [*always, *(event for event in made if event.time == ALWAYS)]
        if not any(telling.stream for telling in told):
            return all_events, all_static
        course = _course(told, all_events, all_static, steps)
        before, made = made, []
        for number, telling in enumerate(told):
            if telling.stream:
                made += _events(telling.stream, _outputs(told, number, course, all_events))
        if made == before:
            return all_events, all_static
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
    """The answers of each way of telling at each instant, and the instants at which updates acted."""

    models: dict[int, list[Answer]]
    taken: set[int]


def _course(told: Sequence[Telling], events: Sequence[Event], static: Sequence[Event], steps: int) -> _Course:
    program = [rule for telling in told for rule in telling.rules]
    strata = _strata(program)
    graphs = _Graphs({source: _stays(source, events, static) for source in _sources(program)})
    graphs.change([(True, *quad) for rule in program if is_initial(rule) for quad in _quads(rule, Insert, {})], ALWAYS)
    due = {ALWAYS}.union(*(_instants(source, events) for source in graphs.stays))
    came = {event.time for event in events}
    found = _Course({}, set())
    since: _Since = {}
    held: set[_Acting] = set()
    taken = 0
    while due:
        time = min(due)
        due.remove(time)
        instant = _Instant(time, {source: _valid(source, known, time) for source, known in graphs.stays.items()}, since)
        found.models[time] = _model(strata, instant, told, graphs.inserted(time))
        acting = set(_acting(program, instant))
        demands = [demand for one in acting - held for demand in _demands(program, one)]
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
    return found


def _whole(parts: Iterable[Answer]) -> Answer:
    """The answers of a program as one."""
    facts: dict[Fact | Quad, Names] = {}
    for part in parts:
        for fact, names in part.facts.items():
            facts[fact] = facts.get(fact, frozenset()) | names
    return Answer(facts, tuple(solution for part in parts for solution in part.solutions))


def _outputs(told: Sequence[Telling], number: int, course: _Course, events: Sequence[Event]) -> list[Expected]:
    """What is handed on in one way of telling."""
    telling = told[number]
    timeline = _with_makers({time: parts[number] for time, parts in course.models.items()})
    heard = [event for event in events if not _is_made(event.stream, told) or _may_read(telling, event.stream, told)]
    instants = {ALWAYS, *course.taken}.union(*(_instants(source, heard) for source in _sources(telling.rules)))
    found: list[Expected] = []
    before: _Items = []
    for time, answer in _reported(telling, heard, timeline, instants):
        found += [(time, item, names) for (_, item), names in _handed_on(telling.output, before, answer)]
        if telling.report.empty and telling.output == "rstream":
            found += [(time, done, frozenset((name,))) for name, done in sorted(_completed(telling.rules))]
        before = answer
    return found


def _is_made(stream: str, told: Iterable[Telling]) -> bool:
    return bool(stream) and any(telling.stream == stream for telling in told)


def _may_read(reader: Telling, stream: str, told: Iterable[Telling]) -> bool:
    """Whether what is told of a stream may fit a pattern: it is no instant for others, or else a stream would be
    evaluated whenever it is."""
    made = [rule for telling in told if telling.stream == stream for rule in telling.rules]
    templates = [template for rule in made for one in _constructs(rule) for template in one.template]
    named = {source.iri for rule in reader.rules for _, part, _ in _patterns(rule) for source in part.sources}
    heads = [head for template in templates for head in _views(template, stream, named)]
    return any(
        _reads(source, stream, graph) and _may_meet(head, pattern)
        for rule in reader.rules
        for pattern, part, _ in _patterns(rule)
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


# What comes out (relation to stream)

_Answered = tuple[str, Item]
"""What is answered, with the query that does: each has answers of its own. Facts are everybody's."""
_Items = list[tuple[_Answered, Names]]
"""An answer, each item as often as it is in it, with the rules that may be named."""


def _with_makers(timeline: dict[int, Answer]) -> dict[int, _Items]:
    found: dict[int, _Items] = {}
    since: dict[Fact | Quad, Names] = {}
    for time, answer in timeline.items():
        since = {fact: names | since.get(fact, frozenset()) for fact, names in answer.facts.items()}
        items: _Items = [(("", fact), since[fact]) for fact in sorted(answer.facts, key=str)]
        items += [((query, item), frozenset((query,))) for item, query in answer.solutions]
        found[time] = items
    return found


def _reported(
    telling: Telling, events: Sequence[Event], timeline: dict[int, _Items], instants: set[int]
) -> Iterator[tuple[int, _Items]]:
    """The instants at which the answer is told, with the answer."""
    if telling.report.policy == "periodic":
        yield from _periodic(telling, events, timeline, instants)
        return
    previous: Counter[_Answered] = Counter()
    for time, items in timeline.items():
        if telling.output != "rstream":
            yield time, items
        elif time in instants:
            bag = Counter(item for item, _ in items)
            if _is_told(telling.report, previous, bag):
                yield time, items
            previous = bag


def _is_told(report: Report, previous: Counter[_Answered], bag: Counter[_Answered]) -> bool:
    return {"close": True, "change": bag != previous, "nonempty": bool(bag)}[report.policy]


def _periodic(
    telling: Telling, events: Sequence[Event], timeline: dict[int, _Items], instants: set[int]
) -> Iterator[tuple[int, _Items]]:
    """The multiples of the period from the first event that is read to the last instant, rounded up."""
    yield ALWAYS, timeline[ALWAYS]
    period = telling.report.period
    last = max(instants if telling.output == "rstream" else timeline)
    read = [event.time for source in _sources(telling.rules) for event in events if _is_heard(source, event)]
    if read:
        for time in range(_up(min(read), period), _up(last, period) + 1, period):
            yield time, timeline[max(at for at in timeline if at <= time)]


def _up(time: int, period: int) -> int:
    return -(-time // period) * period


def _handed_on(output: str, before: _Items, now: _Items) -> _Items:
    """All (rstream), or what one answer has more than the other: a fact once, a solution as often as it is more."""
    if output == "rstream":
        return now
    left, right = (now, before) if output == "istream" else (before, now)
    others = Counter(item for item, _ in right)
    found: _Items = []
    for item, names in left:
        others[item] -= 1
        if others[item] < 0:
            found.append((item, names))
    return found


# What is valid (stream to relation)


@dataclass
class _Stay:
    """The validity of a fact that a stream brought: [start, end). came: the time of its event."""

    fact: Fact
    stream: str
    graph: str
    came: int
    start: int
    end: int

    def cut(self, time: int) -> None:
        """It ends now, if it came before; an interval that would begin later is empty."""
        if self.came < time or self.came == time == ALWAYS:
            self.end = min(self.end, max(self.start, time))


def _timely(events: Iterable[Event]) -> list[Event]:
    """The events that are not earlier than one before them."""
    found: list[Event] = []
    for event in events:
        if not found or event.time >= found[-1].time:
            found.append(event)
    return found


def _stays(source: Source, events: Sequence[Event], static: Sequence[Event]) -> list[_Stay]:
    """What is read through a source, and when it is valid; removals are done."""
    found = [
        _Stay(fact, one.stream, one.graph, ALWAYS, ALWAYS, FOREVER)
        for one in static
        if _reads(source, one.stream, one.graph, True)
        for fact in one.facts
    ]
    for stream, graph in {(event.stream, event.graph) for event in events}:
        if not _reads(source, stream, graph):
            continue
        theirs = [event for event in events if event.stream == stream]
        stays = [stay for stay in _windowed(source, stream, theirs) if stay.graph == graph]
        for event in theirs:
            _cut(stays, set(event.removed) if event.graph == graph else set(), event.time)
        found += stays
    return found


def _reads(source: Source, stream: str, graph: str = "", static: bool = False) -> bool:
    shut = stream == HEARTBEAT or (stream and isinstance(source.window_of(stream), Nothing))
    if shut and not (static and graph and source.apart):
        return False
    name = graph[1:-1] if graph.startswith("<") else ""
    if isinstance(source, Graph):
        if source.within:
            return stream == source.within and name == source.iri
        return name == source.iri or (stream == source.iri and not (static and graph))
    if isinstance(source, Graphs) and not graph and (source.inside or stream in ("", WORKING)):
        return False
    if static and graph and source.apart:
        return source.iri != "" and source.iri == name
    return source.iri in ("", stream)


def _windowed(source: Source, stream: str, events: Sequence[Event]) -> list[_Stay]:
    """The facts of one stream through its window, in the order in which they came."""
    window = source.window_of(stream)
    came = [(fact, event.graph, event.time) for event in events for fact in event.facts]
    if not isinstance(window, Count):
        return [_Stay(fact, stream, graph, time, *window.validity(time)) for fact, graph, time in came]
    times = [time for _, _, time in came]
    return [
        _Stay(fact, stream, graph, time, *_counted(window, number, times))
        for number, (fact, graph, time) in enumerate(came)
    ]


def _counted(window: Count, number: int, times: Sequence[int]) -> tuple[int, int]:
    """The validity of the fact of this number in a `Count` window; the times of all facts."""
    return _at(_change(number, window), times), _at(_change(number + window.size, window), times)


def _change(number: int, window: Count) -> int:
    """The number of the fact with which the content changes next, from that of this number on."""
    return (number // window.step + 1) * window.step - 1


def _at(number: int, times: Sequence[int]) -> int:
    """When the fact of this number comes; FOREVER if it never does."""
    return times[number] if number < len(times) else FOREVER


def _cut(stays: Iterable[_Stay], removed: set[Fact], time: int) -> None:
    for stay in stays:
        if stay.fact in removed:
            stay.cut(time)


def _valid(source: Source, stays: Iterable[_Stay], time: int) -> set[Fact]:
    return {fact for stay in stays if stay.start <= time < stay.end for fact in _seen(source, stay)}


def _seen(source: Source, stay: _Stay) -> Iterator[Fact]:
    """What patterns read of a fact that a stream brought."""
    names = [Term(f"<{stay.stream}>")] if stay.stream not in ("", WORKING) else []
    if stay.graph:
        names = [Term(stay.graph)] if stay.came == ALWAYS else [*names, Term(stay.graph)]
    if not isinstance(source, Graphs | Arrivals):
        yield stay.fact
    elif not isinstance(stay.fact, Triple):
        return
    elif isinstance(source, Graphs):
        for name in [Term(stay.graph)] if source.inside else names:
            yield Atom(GRAPH, (name, *stay.fact))
    elif stay.came > ALWAYS:
        for name in [literal(""), *names] if stay.stream in ("", WORKING) else names:
            yield Atom(CAME, (name, values.integer(stay.came), *stay.fact))


def _instants(source: Source, events: Sequence[Event]) -> set[int]:
    """The evaluation instants to which the events that a source reads give rise."""
    found: set[int] = set()
    came: Counter[str] = Counter()
    for event in (event for event in events if _is_heard(source, event)):
        before = came[event.stream]
        came[event.stream] += len(event.facts)
        match source.window_of(event.stream):
            case Landmark() | Count(step=1):
                found.add(event.time)
            case Count(step=step):
                if came[event.stream] // step > before // step:
                    found.add(event.time)
            case Range(size=size):
                found.update((event.time, event.time + size))
            case Stepped() as window:
                first, last = window.validity(event.time)
                found.update(range(first, last + 1, window.step))
        if event.removed:
            found.add(event.time)
    return found


def _is_heard(source: Source, event: Event) -> bool:
    """Whether an event changes what a source reads: a window of triples also counts those in other graphs."""
    if not isinstance(source.window_of(event.stream), Count) or event.stream == HEARTBEAT:
        return _reads(source, event.stream, event.graph)
    if isinstance(source, Graph):
        return source.within in ("", event.stream)
    return source.iri in ("", event.stream)


def _sources(program: Iterable[System]) -> set[Source]:
    """All sources that patterns read."""
    return {source for rule in program for _, part, _ in _patterns(rule) for source in part.sources}


# What updates do to it


_Quad = tuple[str | None, Triple, int]
"""The stream of the graph (None: the default graph), a fact, and the rule that deletes or inserts it."""
_Demand = tuple[bool, str | None, Triple, int]
"""The same, with whether it is inserted."""


@dataclass
class _Graphs:
    """What is read through each source, and, by stream and fact, what updates have inserted that has not been deleted:
    since when, and the rules that may be named, by identity."""

    stays: dict[Source, list[_Stay]]
    working: dict[tuple[str, Triple], tuple[int, frozenset[int]]] = field(default_factory=dict)

    def change(self, demands: Collection[_Demand], time: int) -> None:
        """Deletes, then inserts."""
        for inserts, stream, fact, _ in demands:
            if not inserts:
                self.delete(stream, fact, time)
        for inserts, stream, fact, rule in demands:
            if inserts:
                self.insert(stream or WORKING, fact, time, rule)

    def delete(self, stream: str | None, fact: Triple, time: int) -> None:
        for known in self.stays.values():
            _cut([stay for stay in known if stream in (None, stay.stream, stay.graph[1:-1])], {fact}, time)
        for quad in [quad for quad in self.working if quad[1] == fact and stream in (None, quad[0])]:
            del self.working[quad]

    def insert(self, stream: str, fact: Triple, time: int, rule: int) -> None:
        since, rules = self.working.get((stream, fact), (time, frozenset()))
        if (stream, fact) not in self.working:
            for source, known in self.stays.items():
                if _reads(source, stream):
                    known.append(_Stay(fact, stream, "", time, time, FOREVER))
        self.working[stream, fact] = since, rules | {rule} if since == time else rules

    def inserted(self, time: int) -> dict[Fact, set[int]]:
        """What updates have inserted, with the rules that did."""
        found: dict[Fact, set[int]] = {}
        for (_, fact), (_, rules) in self.working.items():
            found.setdefault(fact, set()).update(rules)
        return found


# An instant

_Since = dict[object, int]
"""Since when each solution that asked the time holds (integer ms), by its place in the program."""
_Acting = tuple[int, frozenset[tuple[Variable, Term]]]
"""A solution of an update: the number of the rule, and what is bound in it."""


@dataclass
class _Instant:
    """An instant: the facts that are valid in each source, and those that reentrant rules have derived so far. given:
    inside an `Exists`, the values by which variables are replaced there."""

    time: int
    read: dict[Source, set[Fact]]
    before: _Since
    since: _Since = field(default_factory=dict)
    derived: set[Fact] = field(default_factory=set)
    given: _Bindings = field(default_factory=dict)

    def start(self, solution: object) -> int:
        """Since when the solution holds."""
        return self.since.setdefault(solution, self.before.get(solution, self.time))

    def graph(self, part: System) -> set[Fact]:
        """What the patterns of a part read."""
        found = {fact for source in part.sources for fact in self.read.get(source, ())}
        return found | self.derived if _reads_derived(part) else found


def _reads_derived(part: System) -> bool:
    return any(source.iri == "" and not isinstance(source, Graph | Graphs | Arrivals) for source in part.sources)


def _model(
    strata: list[list[System]], instant: _Instant, told: Sequence[Telling], inserted: dict[Fact, set[int]]
) -> list[Answer]:
    """The least model, stratum by stratum, and the solutions over it: what each way of telling has of it. What updates
    have inserted is answered, too."""
    derived = dict(inserted)
    for stratum in strata:
        while _derive(stratum, instant, derived):
            pass
    return [_part(telling, instant, derived) for telling in told]


def _part(telling: Telling, instant: _Instant, derived: dict[Fact, set[int]]) -> Answer:
    facts: dict[Fact | Quad, Names] = {}
    for fact, makers in derived.items():
        names = frozenset(telling.name or rule.name for rule in telling.rules if id(rule) in makers)
        if names and _is_answer(fact):
            facts[_as_told(fact)] = names
    return Answer(facts, tuple((item, rule.name) for rule in telling.rules for item in _answered(rule, instant)))


def _answered(rule: System, instant: _Instant) -> list[Solution | Boolean]:
    """What a query answers, in the order of its `Slice`, or else by its text."""
    selects = [one.variables for one in rule.consequences if isinstance(one, Select)]
    asks = [one for one in rule.consequences if isinstance(one, Ask)]
    solutions = _solutions(rule, instant) if selects or asks else []
    found = [_selected(names, solution) for names in selects for solution in solutions]
    return [*(found if rule.slice else sorted(found, key=str)), *(Boolean(bool(solutions)) for _ in asks)]


def _as_told(fact: Fact) -> Fact | Quad:
    """The fact, one of the relation `QUAD` as what it stands for."""
    if isinstance(fact, Atom) and fact.relation == QUAD:
        graph, subject, predicate, object = fact.arguments
        return Quad(subject, predicate, object, graph)
    return fact


def _is_answer(fact: Fact) -> bool:
    """Whether a fact may be answered: an atom, or a triple or quad as RDF has them. Rules read the others all the
    same."""
    if isinstance(fact, Atom) and fact.relation == QUAD:
        return not is_literal(fact.arguments[0]) and _is_answer(Triple(*fact.arguments[1:]))
    return isinstance(fact, Atom) or (not is_literal(fact.subject) and is_iri(fact.predicate))


def _selected(names: Sequence[Variable], solution: _Bindings) -> Solution:
    return Solution(tuple(name.name for name in names), tuple(solution.get(name) for name in names))


def _derive(stratum: list[System], instant: _Instant, derived: dict[Fact, set[int]]) -> bool:
    """One round of every rule; whether it brought anything new. derived: facts, with the rules that make them, by
    identity."""
    grown = False
    for rule in stratum:
        for construct, fact in _instances(rule, instant):
            makers = derived.setdefault(fact, set())
            if not construct.internal and id(rule) not in makers:
                makers.add(id(rule))
                grown = True
            if rule.reentrant and fact not in instant.derived:
                instant.derived.add(fact)
                grown = True
    return grown


def _acting(program: list[System], instant: _Instant) -> Iterator[_Acting]:
    """The solutions of all updates."""
    for number, rule in enumerate(program):
        if is_update(rule):
            yield from ((number, frozenset(solution.items())) for solution in _solutions(rule, instant))


def _demands(program: list[System], one: _Acting) -> Iterator[_Demand]:
    """What a solution deletes and inserts; what a rule without a body inserts is there already."""
    number, solution = one
    rule = program[number]
    yield from ((False, *quad) for quad in _quads(rule, Delete, dict(solution)))
    if not is_initial(rule):
        yield from ((True, *quad) for quad in _quads(rule, Insert, dict(solution)))


def _quads(rule: System, kind: type[Insert | Delete], solution: _Bindings) -> Iterator[_Quad]:
    """The facts that templates make of a solution, where they are RDF and their graph is an IRI."""
    for one in (one for one in rule.consequences if isinstance(one, kind)):
        graph = solution.get(one.graph) if isinstance(one.graph, Variable) else one.graph
        if one.graph is not None and (graph is None or not is_iri(graph)):
            continue
        for template in one.template:
            fact = _instance(template, solution)
            if isinstance(fact, Triple) and _is_answer(fact):
                yield None if graph is None else iri_text(graph), fact, id(rule)


def _instances(rule: System, instant: _Instant) -> list[tuple[Construct, Fact]]:
    """The facts that the templates of a rule make, each with what it is a template of."""
    made = [one for one in rule.consequences if isinstance(one, Construct)]
    solutions = _solutions(rule, instant) if made else []
    facts = [(one, _instance(template, each)) for each in solutions for one in made for template in one.template]
    return [(one, fact) for one, fact in facts if fact is not None]


def _instance(template: FactPattern, solution: _Bindings) -> Fact | None:
    """The template filled in; None where a variable of it is unbound (SPARQL 1.1, section 16.2)."""
    terms = [solution.get(slot) if isinstance(slot, Variable) else slot for slot in template.slots]
    bound = tuple(term for term in terms if term is not None)
    if len(bound) < len(terms):
        return None
    return Triple(*bound) if isinstance(template, Pattern) else Atom(template.relation, bound)


# Solutions (SPARQL 1.1, section 18.5)


def _solutions(part: System, instant: _Instant) -> list[_Bindings]:
    """The solutions of a rule, a query or a part, as a bag, in the order of its `Slice`."""
    if instant.given and _is_closed(part):
        return _replaced(_solutions(part, replace(instant, given={})), instant)
    graph = instant.graph(part)
    found = _joined(part.joinables, graph, instant)
    for number, predicate in enumerate(part.predicates):
        found = _apply(predicate, found, graph, instant, (part, number))
    if part.grouping is not None:
        found = _grouped(part.grouping, found, instant)
    return _sliced(part, found, instant)


def _joined(joinables: Iterable[Joinable], graph: set[Fact], instant: _Instant) -> list[_Bindings]:
    found: list[_Bindings] = [{}]
    for joinable in joinables:
        others = _of_joinable(joinable, graph, instant)
        found = [{**one, **other} for one in found for other in others if _agree(one, other)]
    return found


def _is_closed(part: System) -> bool:
    """Whether a part is a sub-query: what it does not show cannot be seen from outside, and is not replaced in it."""
    selects = any(isinstance(one, Select) for one in part.consequences)
    return selects or part.distinct or part.grouping is not None or part.slice is not None


def _replaced(found: list[_Bindings], instant: _Instant) -> list[_Bindings]:
    """Solutions of what has variables for values that are given, as they are if it has the values instead."""
    given = instant.given
    return [{name: term for name, term in one.items() if name not in given} for one in found if _agree(one, given)]


def _agree(one: _Bindings, other: _Bindings) -> bool:
    return all(other.get(name, term) == term for name, term in one.items())


def _of_joinable(joinable: Joinable, graph: set[Fact], instant: _Instant) -> list[_Bindings]:
    match joinable:
        case Pattern() | AtomPattern():
            return _replaced(_matches(joinable, graph), instant)
        case Either(branches=branches):
            return [solution for branch in branches for solution in _outside(branch, instant)]
        case System():
            return _outside(joinable, instant)


def _matches(pattern: FactPattern, graph: set[Fact]) -> list[_Bindings]:
    """What a pattern finds, as a set: facts that differ in a constant's spelling alone are found once."""
    found = (_match(pattern, fact) for fact in graph)
    return _once(solution for solution in found if solution is not None)


def _match(pattern: FactPattern, fact: Fact) -> _Bindings | None:
    match pattern, fact:
        case Pattern(), Triple():
            terms: tuple[Term, ...] = tuple(fact)
        case AtomPattern(relation=relation), Atom(relation=other, arguments=terms) if relation == other:
            pass
        case _:
            return None
    if len(terms) != len(pattern.slots):
        return None
    found: _Bindings = {}
    for slot, term in zip(pattern.slots, terms, strict=True):
        if isinstance(slot, Variable):
            if found.setdefault(slot, term) != term:
                return None
        elif not (slot == term if pattern.exact else _same(slot, term)):
            return None
    return found


def _same(constant: Term, term: Term) -> bool:
    if is_literal(constant) and is_literal(term):
        return values.value_key(constant) == values.value_key(term)
    return constant == term


def _once(solutions: Iterable[_Bindings]) -> list[_Bindings]:
    return list({frozenset(solution.items()): solution for solution in solutions}.values())


def _outside(part: System, instant: _Instant) -> list[_Bindings]:
    """A part's solutions as they are seen from outside."""
    return _projected(visible(part), _solutions(part, instant))


def _projected(names: Sequence[Variable], solutions: list[_Bindings]) -> list[_Bindings]:
    return [{name: solution[name] for name in names if name in solution} for solution in solutions]


def _apply(
    predicate: Predicate, found: list[_Bindings], graph: set[Fact], instant: _Instant, place: object
) -> list[_Bindings]:
    match predicate:
        case Test(expression=expression):
            return [one for one in found if _evaluate(expression, one, instant, place) is True]
        case Bind(variable=variable, expression=expression, keeps=keeps):
            made = [(one, _term(expression, one, instant, place)) for one in found]
            valued = ((one, {} if value is None else {variable: value}) for one, value in made)
            return [{**one, **two} for one, value in valued if value or keeps for two in _replaced([value], instant)]
        case Compute():
            rows = [(one, _replaced(list(_rows(predicate, one, instant)), instant)) for one in found]
            return [{**one, **row} for one, its in rows for row in its]
        case Without(joinables=joinables, minus=minus, apart=apart):
            others = _joined(joinables, graph, instant)
            return [
                one
                for one in found
                if not any(
                    _agree(one, other) and (not minus or (one.keys() & other.keys()) - {*apart}) for other in others
                )
            ]
        case Maybe():
            return _left_joined(predicate, found, instant)
        case Exists():
            return [two for one in found for two in _asked(predicate, one, instant)]


def _asked(predicate: Exists, solution: _Bindings, instant: _Instant) -> list[_Bindings]:
    """The solution, if it is wanted, with whether what is asked for exists (SPARQL 1.1, section 18.6)."""
    given = {**instant.given, **solution}
    exists = bool(_outside(predicate.system, replace(instant, given=given)))
    if predicate.wanted not in (None, exists):
        return []
    if predicate.variable is None:
        return [solution]
    return [{**solution, predicate.variable: literal(str(exists).lower(), XSD + "boolean")}]


def _left_joined(predicate: Maybe, found: list[_Bindings], instant: _Instant) -> list[_Bindings]:
    others = _outside(predicate.system, instant)
    result: list[_Bindings] = []
    for one in found:
        pairs = [{**one, **other} for other in others if _agree(one, other)]
        condition = predicate.condition
        kept = [pair for pair in pairs if condition is None or _holds(predicate, condition, pair, instant)]
        result += kept or [one]
    return result


def _holds(predicate: Maybe, condition: Call, pair: _Bindings, instant: _Instant) -> bool:
    for one in predicate.exists:
        (pair,) = _asked(replace(one, wanted=None), pair, instant)
    return _evaluate(condition, pair, instant) is True


def _rows(predicate: Compute, solution: _Bindings, instant: _Instant) -> Iterator[_Bindings]:
    arguments = [_evaluate(argument, solution, instant) for argument in predicate.arguments]
    made: Any = functions.lookup(predicate.function).evaluate(*arguments)
    for row in made or ():
        yield dict(zip(predicate.variables, row, strict=True))


def _evaluate(
    expression: Expression, solution: _Bindings, instant: _Instant, place: object = None
) -> Term | bool | None:
    match expression:
        case Variable():
            return solution.get(expression, instant.given.get(expression))
        case Call(function=iri, arguments=arguments):
            function = functions.lookup(iri)
            given = [_evaluate(argument, solution, instant, place) for argument in arguments]
            clock = [instant.start((place, frozenset(solution.items())))] if function.timed else []
            return function.evaluate(*clock, *given)
        case str():
            return expression


def _term(expression: Expression, solution: _Bindings, instant: _Instant, place: object = None) -> Term | None:
    """The term that an expression comes to; None if it comes to none."""
    value = _evaluate(expression, solution, instant, place)
    return Term(value) if isinstance(value, str) else None


# Solution modifiers (SPARQL 1.1, section 15)


def _sliced(part: System, found: list[_Bindings], instant: _Instant) -> list[_Bindings]:
    selected = next((one.variables for one in part.consequences if isinstance(one, Select)), None)
    if part.distinct:
        found = _once(found if selected is None else _projected(selected, found))
    if part.slice is not None:
        order, names = part.slice.order, selected or _told_apart(part)
        found = sorted(found, key=lambda one: (*(_Key(by, one, instant) for by in order), _text(names, one)))
        last = math.inf if part.slice.limit is None else part.slice.offset + part.slice.limit
        keys = [_text(part.slice.keys, one) for one in found]
        places = [keys[:number].count(key) for number, key in enumerate(keys)]
        found = [one for one, place in zip(found, places, strict=True) if part.slice.offset <= place < last]
    return found if selected is None else _projected(selected, found)


class _Key:
    """The sort key of a solution by one expression."""

    def __init__(self, by: Order, solution: _Bindings, instant: _Instant) -> None:
        self.key = key(_term(by.expression, solution, instant))
        self.descending = by.descending

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key

    def __lt__(self, other: _Key) -> bool:
        return bool(self.key > other.key if self.descending else self.key < other.key)


def _told_apart(part: System) -> tuple[Variable, ...]:
    """The variables by whose text solutions without `Select` are put in order: all of an update, those of templates of
    facts, or else all."""
    if is_update(part):
        return visible(part)
    made = [template for one in part.consequences if isinstance(one, Construct) for template in one.template]
    return tuple(dict.fromkeys(name for template in made for name in variables(template))) or visible(part)


def _text(names: Sequence[Variable], solution: _Bindings) -> tuple[str, ...]:
    return tuple(solution.get(name, "") for name in names)


def _grouped(grouping: Grouping, found: list[_Bindings], instant: _Instant) -> list[_Bindings]:
    groups: dict[tuple[Term | None, ...], list[_Bindings]] = {} if grouping.keys else {(): []}
    for solution in found:
        groups.setdefault(tuple(solution.get(name) for name in grouping.keys), []).append(solution)
    result = []
    for names, members in groups.items():
        row = dict(zip(grouping.keys, names, strict=True))
        row |= {aggregate.variable: _aggregated(aggregate, members, instant) for aggregate in grouping.aggregates}
        result.append({name: value for name, value in row.items() if value is not None})
    return result


# Aggregates (SPARQL 1.1, section 18.5.1)


def _aggregated(aggregate: Aggregate, members: list[_Bindings], instant: _Instant) -> Term | None:
    """The value of an aggregate of a group; None if it has none."""
    if aggregate.expression is None:
        return values.integer(len(_once(members) if aggregate.distinct else members))
    given = [_term(aggregate.expression, solution, instant) for solution in members]
    if aggregate.distinct:
        given = list(dict.fromkeys(given))
    there = sorted((term for term in given if term is not None), key=key)
    failed = len(there) < len(given)
    match aggregate.kind:
        case "count":
            return values.integer(len(there))
        case "sample":
            return there[0] if there else None
        case "min":
            return there[0] if there and not failed else None
        case "max":
            return there[-1] if there and not failed else None
        case "group_concat":
            failed = failed or any(map(is_blank, there))
            return None if failed else literal(aggregate.separator.join(map(values.text, there)))
        case "sum":
            return _sum(given)
        case "avg":
            return _average(given)
        case kind:
            raise PlannerError(f"there is no aggregate `{kind}`")


_TYPES = ("integer", "decimal", "float", "double")
"""The numeric types, each promoted to those after it (SPARQL 1.1, section 17.3)."""


def _amount(term: Term | None) -> tuple[int, int | Decimal | float] | None:
    """The type, by its place in `_TYPES`, and the value of a number; None of anything else."""
    found = None if term is None else values.number(term)
    if found is None:
        return None
    kind = "integer" if isinstance(found.value, int) else found.kind
    return _TYPES.index(kind), found.value


def _total(amounts: list[tuple[int, int | Decimal | float]]) -> tuple[int, Fraction | float]:
    """The type and the exact sum; a float where that is INF, -INF or NaN."""
    kind = max((kind for kind, _ in amounts), default=0)
    beyond = [value for _, value in amounts if isinstance(value, float) and not math.isfinite(value)]
    return kind, sum(beyond) if beyond else sum((Fraction(value) for _, value in amounts), Fraction())


def _sum(given: list[Term | None]) -> Term | None:
    amounts = [amount for amount in map(_amount, given) if amount is not None]
    return _number(*_total(amounts)) if len(amounts) == len(given) else None


def _average(given: list[Term | None]) -> Term | None:
    amounts = [amount for amount in map(_amount, given) if amount is not None]
    if not amounts or len(amounts) < len(given):
        return None if given else values.integer(0)
    kind, total = _total(amounts)
    return _number(max(kind, _TYPES.index("decimal")), total / len(amounts))


def _number(kind: int, value: Fraction | float) -> Term:
    """The literal of a number, rounded once to its type."""
    match _TYPES[kind]:
        case "integer":
            return values.integer(int(value))
        case "decimal":
            top, bottom = value.as_integer_ratio()
            return values.decimal(values.ARITHMETIC.divide(Decimal(top), Decimal(bottom)))
        case "float":
            return _float(value)
        case _:
            return values.double(float(value))


def _float(value: Fraction | float) -> Term:
    """The xsd:float nearest to a value, with as few digits as tell it from all others."""
    single = _single(value) if isinstance(value, Fraction) else value
    numerals = (values.text(values.double(float(f"{single:.{digits}g}"))) for digits in range(1, 10))
    terms = [literal(numeral, XSD + "float") for numeral in numerals]
    return next((term for term in terms if values.number(term) == (single, "float")), terms[-1])


def _single(value: Fraction) -> float:
    """The nearest value of single precision. Its neighbours are tried as well: it was rounded to a double first."""
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    near: list[float] = [struct.unpack("<f", struct.pack("<i", bits + step))[0] for step in (0, 1, -1)]
    return min(filter(math.isfinite, near), key=lambda one: abs(Fraction(one) - value))


# Strata


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
    """The places of the rules that this one reads, with 1 where it needs all that they make (negation, an aggregate, a
    slice, the time) and 0 elsewhere."""
    for pattern, part, whole in _patterns(rule):
        for at, other in enumerate(program):
            if _reads_derived(part) and any(_may_meet(head, pattern) for head in _heads(other)):
                yield at, whole


def _heads(rule: System) -> list[FactPattern]:
    made = [one for one in rule.consequences if isinstance(one, Construct) and rule.reentrant]
    return [template for construct in made for template in construct.template]


def _patterns(part: System, whole: int = 0) -> Iterator[tuple[FactPattern, System, int]]:
    """The patterns of a rule, each with the part that it is in, and 1 where more facts may make less solutions."""
    timed = any(_is_timed(one.expression) for one in part.predicates if isinstance(one, Test | Bind))
    within = 1 if part.grouping or part.slice or timed else whole
    for joinable in part.joinables:
        yield from _inner(joinable, part, within)
    for predicate in part.predicates:
        if isinstance(predicate, Without):
            for joinable in predicate.joinables:
                yield from _inner(joinable, part, 1)
        if isinstance(predicate, Maybe):
            yield from _patterns(predicate.system, 1)
            for asked in predicate.exists:
                yield from _patterns(asked.system, 1)
        if isinstance(predicate, Exists):
            yield from _patterns(predicate.system, within if predicate.wanted else 1)


def _inner(joinable: Joinable, part: System, whole: int) -> Iterator[tuple[FactPattern, System, int]]:
    match joinable:
        case Pattern() | AtomPattern():
            yield joinable, part, whole
        case Either(branches=branches):
            for branch in branches:
                yield from _patterns(branch, whole)
        case System():
            yield from _patterns(joinable, whole)


def _is_timed(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return False
    return functions.lookup(expression.function).timed or any(map(_is_timed, expression.arguments))


def _may_meet(head: FactPattern, pattern: FactPattern) -> bool:
    if isinstance(head, AtomPattern) and isinstance(pattern, AtomPattern) and head.relation != pattern.relation:
        return False
    if type(head) is not type(pattern) or len(head.slots) != len(pattern.slots):
        return False
    pairs = zip(head.slots, pattern.slots, strict=True)
    return all(isinstance(a, Variable) or isinstance(b, Variable) or _same(a, b) for a, b in pairs)
