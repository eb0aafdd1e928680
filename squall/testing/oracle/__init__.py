"""The oracle evaluates a system by nested loops to a naive fixpoint at every instant. It is too simple to be wrong.

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
    ARRIVAL,
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
    Temporal,
    Variable,
    is_initial,
    is_update,
    output_specs,
)
from squall.model.beginnings import without_beginnings
from squall.model.walk import walk
from squall.rdf import ALWAYS, QUAD, Atom, Evaluated, Event, Fact, Quad, Term, Triple
from squall.testing.oracle.base import (
    BEGIN,
    SETTLED,
    Answer,
    Consumed,
    Expected,
    History,
    Instant,
    Item,
    Names,
    Since,
    reported_time,
)
from squall.testing.oracle.deadlines import deadlines
from squall.testing.oracle.models import model
from squall.testing.oracle.outputs import Items, emitted, reported, with_rule_names
from squall.testing.oracle.solutions import held
from squall.testing.oracle.stratification import may_meet, patterns, stratified
from squall.testing.oracle.updates import Acting, State, acting_solutions, demands_of, quads
from squall.testing.oracle.validity import (
    change_instants,
    evaluation_instants,
    reads,
    sources_of,
    stays_of,
    timely,
    valid,
)

__all__ = ["STEPS", "Answer", "Expected", "Item", "Names", "answers", "outputs"]

STEPS = 200
"""The number of update steps without an event after which the oracle takes a run for endless."""


def answers(
    system: System, events: Iterable[Event], static: Iterable[Event] = (), steps: int = STEPS
) -> dict[int, Answer]:
    """Returns the answer at each evaluation instant, in order: at `squall.rdf.ALWAYS` first, and then at each possible
    change.

    An event that is earlier than one before it is late, and changes nothing.

    Raises:
        PlannerError: Negation goes through a cycle of rules, or a derived stream depends on itself.
        BuilderError: Updates take more than `steps` steps without an event.
    """
    system = without_beginnings(system)
    specs = output_specs(system)
    course = _course(specs, *_with_streams(system, events, static, steps), steps)
    return {
        time: _merged([part for spec, part in zip(specs, parts, strict=True) if not spec.internal])
        for time, parts in _without_steps(course).models.items()
    }


def outputs(
    system: System, events: Iterable[Event], static: Iterable[Event] = (), steps: int = STEPS
) -> list[Expected]:
    """Returns the outputs of the system, by its R2S operators and report policies, in the order of time.

    At one time, each output spec gives facts first, in the order of their text, then solutions in the order of `Slice`.
    An output that has held before may name any rule that has derived it since it began to hold. A new one names a rule
    that derives it now. Raises the errors of `answers`.
    """
    system = without_beginnings(system)
    events, static = _with_streams(system, events, static, steps)
    specs = output_specs(system)
    course = _without_steps(_course(specs, events, static, steps))
    results = [
        result
        for number, spec in enumerate(specs)
        if not spec.internal
        for result in _outputs(specs, number, course, events)
    ]
    return sorted(results, key=lambda result: result[0])


def _with_streams(
    system: System, events: Iterable[Event], static: Iterable[Event], steps: int
) -> tuple[list[Event], list[Event]]:
    """Returns the events, those of derived streams among them, and the static data.

    Events of derived streams may be before `BEGIN`. Where updates act on derived streams, each iteration settles one
    time more and drops the derived events after it, since they may rest on events that are not emitted after all.
    """
    specs, input_events, always = output_specs(system), timely(events), list(static)
    derived_events: list[Event] = []
    updated = any(is_update(rule) for spec in specs for rule in spec.rules)
    iterations = 0
    while True:
        all_events = sorted([*input_events, *derived_events], key=lambda event: event.time)
        if not any(spec.stream for spec in specs):
            return all_events, always
        course = _step_by_step(_course(specs, all_events, always, steps))
        before, derived_events = derived_events, []
        for number, spec in enumerate(specs):
            if spec.stream:
                derived_events += _events(spec.stream, _outputs(specs, number, course, all_events))
        if derived_events == before:
            return all_events, always
        if updated:
            settled_until = min(event.time for event in {*before} ^ {*derived_events})
            derived_events = [event for event in derived_events if event.time <= settled_until]
        iterations += 1
        if iterations > (len(specs) + 1) * (len(course.models) if updated else 1):  # an update is seen an instant later
            raise PlannerError("a stream is made of itself")


def _events(stream: str, outputs: Iterable[Expected]) -> list[Event]:
    """Turns the outputs of a derived stream into its events: the facts of an instant in the order of their text."""
    facts: dict[tuple[int, str], set[Fact]] = {}
    for time, item, *_ in outputs:
        if isinstance(item, Quad):
            facts.setdefault((time, item.graph), set()).add(Triple(item.subject, item.predicate, item.object))
        elif isinstance(item, Triple | Atom):
            facts.setdefault((time, ""), set()).add(item)
    return [
        Event(time, tuple(sorted(fact_set)), stream, (), graph) for (time, graph), fact_set in sorted(facts.items())
    ]


class _Course(NamedTuple):
    """The answers of each output spec at each instant, and the instants at which effects of updates are first seen."""

    models: dict[int, list[Answer]]
    taken: set[int]


def _without_steps(course: _Course) -> _Course:
    """Returns the course as the answer sees it: of the steps at `ALWAYS`, only the last counts."""
    models = {reported_time(time): parts for time, parts in course.models.items()}
    return _Course(models, set(map(reported_time, course.taken)))


def _step_by_step(course: _Course) -> _Course:
    """Returns the course as derived streams see it: each step at `ALWAYS` since static data settled."""
    return course._replace(models={time: parts for time, parts in course.models.items() if time >= SETTLED})


def _course(specs: Sequence[OutputSpec], events: Sequence[Event], static: Sequence[Event], steps: int) -> _Course:
    # In one piece: one loop over the instants, with all that changes in sight.
    program = [rule for spec in specs for rule in spec.rules]
    strata = stratified(program)
    graphs = State({source: stays_of(source, events, static) for source in sources_of(program)})
    graphs.change([(True, *quad) for rule in program if is_initial(rule) for quad in quads(rule, Insert, {})], ALWAYS)
    moving = [event for event in events if event.time >= BEGIN]
    pending_times = {ALWAYS}.union(*(change_instants(source, moving) for source in graphs.stays))
    deadline_times = (deadlines(program, [*events, *static]) if moving else set()) - pending_times
    temporals = [part for rule in program for part in walk(rule) if isinstance(part, Temporal)]
    pending_times |= deadline_times | (_ticks(temporals, pending_times) if moving else set())
    history: History = {}
    event_times = {event.time for event in moving}
    course = _Course({}, set())
    since: Since = {}
    consumed: Consumed = {}
    previous_acting: set[Acting] = set()
    steps_taken = 0
    while pending_times:
        time = min(pending_times)
        pending_times.remove(time)
        if graphs.fire(time):
            course.taken.add(time)
            deadline_times.discard(time)
            steps_taken = 0 if time <= max(event_times) else steps_taken
        read = {source: valid(source, stays, time) for source, stays in graphs.stays.items()}
        instant = Instant(reported_time(time), read, since, history=history, consumed=consumed)
        answers = model(strata, instant, specs, graphs.inserted(time))
        for part in temporals:
            history.setdefault(id(part), {})[instant.time] = held(part, instant)
        if time not in deadline_times or answers != course.models[max(course.models)]:
            course.models[time] = answers
        acting = set(acting_solutions(program, instant))
        demands = [demand for solution in acting - previous_acting for demand in demands_of(program, solution)]
        since, previous_acting = instant.since, acting
        steps_taken = 0 if time in event_times else steps_taken
        if demands:
            steps_taken += 1
            if steps_taken > steps:
                raise BuilderError(f"after {steps} steps without an event there is still something to do")
            after = time if time == ALWAYS else time + 1
            graphs.change(demands, after)
            pending_times.add(after)
            deadline_times.discard(after)
            course.taken.add(after)
        elif time == ALWAYS:
            pending_times.add(SETTLED)
        pending_times |= set(graphs.timers().values()) if moving else set()
    return course


def _ticks(temporals: Sequence[Temporal], instants: set[int]) -> set[int]:
    """Returns the instants of a program with windows in bodies: all, until the windows have passed the last change."""
    times = [time for time in instants if time >= BEGIN]
    lengths = [getattr(part, "length", 0) + getattr(part, "step", 0) + getattr(part, "tick", 1) for part in temporals]
    return set(range(min(times), max(times) + sum(lengths) + max(lengths) + 1)) if temporals and times else set()


def _merged(parts: Sequence[Answer]) -> Answer:
    """Merges the answers of all output specs of a program."""
    facts: dict[Fact | Quad, Names] = {}
    for part in parts:
        for fact, names in part.facts.items():
            facts[fact] = facts.get(fact, frozenset()) | names
    return Answer(facts, tuple(solution for part in parts for solution in part.solutions))


def _outputs(specs: Sequence[OutputSpec], number: int, course: _Course, events: Sequence[Event]) -> list[Expected]:
    """Returns the outputs of one output spec."""
    spec = specs[number]
    timeline = with_rule_names({time: parts[number] for time, parts in course.models.items()})
    moving = [event for event in events if event.time >= BEGIN]
    relevant = [
        event for event in moving if not _is_derived(event.stream, specs) or _may_read(spec, event.stream, specs)
    ]
    instants = {min(timeline), *course.taken}.union(
        *(evaluation_instants(source, relevant) for source in sources_of(spec.rules))
    )
    outputs: list[Expected] = []
    before: Items = []
    input_times = (event.time for event in moving if not _is_derived(event.stream, specs))
    for time, answer in reported(spec, relevant, timeline, instants, max(input_times, default=ALWAYS)):
        outputs += [(time, item, names, change) for (_, item), names, change in emitted(spec.output, before, answer)]
        if spec.report.empty and spec.output == "rstream":
            outputs += [(time, mark, frozenset((name,)), "") for name, mark in sorted(_completed(spec.rules))]
        before = answer
    return outputs


def _is_derived(stream: str, specs: Iterable[OutputSpec]) -> bool:
    return bool(stream) and any(spec.stream == stream for spec in specs)


def _may_read(reader: OutputSpec, stream: str, specs: Iterable[OutputSpec]) -> bool:
    """Returns whether a fact of a derived stream may match a pattern of the reader. Only then does the stream give the
    reader an evaluation instant; otherwise a stream would be evaluated whenever it is."""
    # In one piece: comprehensions, each a sentence of the definition.
    writers = [rule for spec in specs if spec.stream == stream for rule in spec.rules]
    templates = [template for rule in writers for construct in _constructs(rule) for template in construct.template]
    graph_names = {source.iri for rule in reader.rules for _, part, _ in patterns(rule) for source in part.sources}
    heads = [head for template in templates for head in _views(template, stream, graph_names)]
    return any(
        reads(source, stream, graph) and may_meet(head, pattern)
        for rule in reader.rules
        for pattern, part, _ in patterns(rule)
        for source in part.sources
        for head, graph in heads
    )


def _views(template: FactPattern, stream: str, graph_names: Iterable[str]) -> list[tuple[FactPattern, str]]:
    """Returns the forms in which patterns may read the facts of a template, each with the graph that may hold it: the
    facts themselves, with their origin, and with their arrival time. graph_names: the graphs that patterns name."""
    # In one piece: one form after another.
    graphs: list[Slot] = []
    slots = template.slots
    if isinstance(template, AtomPattern) and template.relation == QUAD:
        graphs, slots = [slots[0]], slots[1:]
    if len(slots) != 3 or (isinstance(template, AtomPattern) and template.relation != QUAD):
        timed = (
            [AtomPattern(template.relation, (Variable(" when"), *slots))] if isinstance(template, AtomPattern) else []
        )
        return [(template, ""), *((view, "") for view in timed)]
    inside = [graph_slot for graph_slot in graphs if isinstance(graph_slot, str)]
    if len(inside) < len(graphs):
        inside = [Term(f"<{graph_slot}>") for graph_slot in graph_names if graph_slot] + [Term("_:any")]
    views: list[tuple[FactPattern, str]] = []
    for graph in inside or [Term("")]:
        views.append((Pattern(*slots), graph))
        for name in (Term(f"<{stream}>"), *graphs):
            views.append((AtomPattern(GRAPH, (name, *slots)), graph))
            views.append((AtomPattern(ARRIVAL, (name, Variable(" when"), *slots)), graph))
    return views


def _constructs(rule: System) -> list[Construct]:
    return [
        consequence
        for consequence in rule.consequences
        if isinstance(consequence, Construct) and not consequence.internal
    ]


def _completed(program: Iterable[System]) -> set[tuple[str, Evaluated]]:
    """Returns the completion mark of each query: SELECT, ASK, and CONSTRUCT whose facts no rule reads."""
    marks: set[tuple[str, Evaluated]] = set()
    for rule in program:
        for consequence in rule.consequences:
            if isinstance(consequence, Select):
                marks.add((rule.name, Evaluated(tuple(name.name for name in consequence.variables))))
            elif isinstance(consequence, Ask) or (
                isinstance(consequence, Construct) and not consequence.internal and not rule.reentrant
            ):
                marks.add((rule.name, Evaluated(())))
    return marks
