"""Patterns over time: what occurs is compared with an enumeration of all occurrences over the whole stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import cycle, groupby, product
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.builders.local import event_loop
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.layout import DataflowLayout
from squall.builders.runtime.operators import stateless
from squall.builders.runtime.operators.consume import ConsumeOperator
from squall.builders.runtime.operators.derived_stream import OccurrenceStreamOperator
from squall.builders.runtime.tuning import Tuning
from squall.builders.runtime.zset import Delta
from squall.contracts import Options
from squall.errors import PlannerError
from squall.functions.values import integer
from squall.model import Bind, Filter, Pattern, Select, Source, System, Variable, visible
from squall.model.windows import ElementWindow
from squall.plan import Plan
from squall.plan import operators as ops
from squall.rdf import ALWAYS, Columns, Event, Solution, Term, Triple, iri
from squall.testing.check import assert_as_oracle
from squall.translators.sparql import calls
from squall.translators.sparql.iterations import Measure, previous_of
from squall.translators.sparql.time_patterns import (
    OWN_END,
    OWN_START,
    Both,
    Consumed,
    Either,
    Equals,
    Followed,
    Iterated,
    Occurrence,
    Part,
    Preceded,
    Seq,
    Step,
    Within,
    Without,
    compiled,
    end_of,
    start_of,
)
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs, on_engines
from tests.test_laws import SWEEP_ALWAYS, forget_all
from tests.test_resume import Moving

E = "http://example.org/"
DATASET = Source("", ElementWindow(), sparql_dataset=True)
X, Y, Z, V, W, N = map(Variable, "xyzvwn")
NAMES = (Variable("e1"), Variable("e2"))
SHOWN = (X, Y, Z, V, W, N)

Bindings = frozenset[tuple[Variable, Term | int]]
Member = tuple[int, str, tuple[Term, ...]]
"""An occurrence of a step: its time, its pattern without the names of variables, and their values."""
Interval = tuple[Bindings, int, int, tuple[Member, ...]]
"""What is bound (the times of names as integers), the begin and the end of an occurrence (integer ms), and the
occurrences of steps that it is made of, in the order of the text."""


# The enumeration


def occurrences(pattern: Occurrence, events: Sequence[Event], within: int | None = None) -> set[Interval]:
    """Returns all occurrences of a pattern in a stream. within: the bound on the pattern that it is a part of."""
    # In one piece: a flat match, the definition of each kind of pattern.
    match pattern:
        case Step(body=body, name=name):
            return {
                (named(solution, name, time, time), time, time, (member(body, solution, time),))
                for time in {event.time for event in events}
                for solution in solutions(body, facts_at(time, events))
            }
        case Seq(left=left, right=right):
            pairs = {
                (first, second)
                for first, second in product(occurrences(left, events, within), occurrences(right, events, within))
                if is_pair(pattern, first, second, events, within)
            }
            match pattern.selection:
                case "nearest":
                    pairs = {(a, b) for a, b in pairs if b[2] == min(other[2] for same, other in pairs if same == a)}
                case "last":
                    pairs = {(a, b) for a, b in pairs if a[2] == max(other[2] for other, same in pairs if same == b)}
            return {(a[0] | b[0], a[1], b[2], a[3] + b[3]) for a, b in pairs}
        case Both(left=left, right=right):
            pairs = set(product(occurrences(left, events, within), occurrences(right, events, within)))
            hulls = {(a[0] | b[0], min(a[1], b[1]), max(a[2], b[2]), a[3] + b[3]) for a, b in pairs if agree(a, b)}
            return {hull for hull in hulls if within is None or hull[2] - hull[1] <= within}
        case Equals(left=left, right=right, is_optional=is_optional):
            rights = occurrences(right, events, within)
            return {
                joined
                for a in occurrences(left, events, within)
                for joined in [(a[0] | b[0], *a[1:3], a[3] + b[3]) for b in rights if agree(a, b) and a[1:3] == b[1:3]]
                or ([a] if is_optional else [])
            }
        case Either(branches=branches):
            return {occurrence for branch in branches for occurrence in occurrences(branch, events, within)}
        case Without(pattern=inner, without=without):
            excluded = occurrences(without, events, within)
            return {
                a
                for a in occurrences(inner, events, within)
                if not any(agree(a, b) and b[2] <= a[2] and (within is None or a[2] - b[2] <= within) for b in excluded)
            }
        case Followed(pattern=inner, absent=absent, within=length):
            absences = occurrences(absent, events, length)
            return {
                (a[0], a[1], a[2] + length, a[3])
                for a in occurrences(inner, events, within)
                if not any(agree(a, b) and a[2] < b[1] and b[2] <= a[2] + length for b in absences)
            }
        case Preceded(pattern=step, absent=absent, within=length):
            absences = occurrences(absent, events, length)
            return {
                a
                for a in occurrences(step, events, within)
                if not any(agree(a, b) and a[1] - length <= b[1] and b[2] < a[1] for b in absences)
            }
        case Iterated(pattern=inner):
            return {measured(pattern, run) for run in runs(pattern, occurrences(inner, events, within), within)}
        case Within(pattern=inner, within=own, name=name, body=body):
            unnamed = occurrences(inner, events, within if own is None else own)
            return {
                (named(dict(a[0]), name, a[1], a[2]), *a[1:])
                for a in unnamed
                if (own is None or a[2] - a[1] <= own) and (body is None or a[2] - a[1] > 1)
            }
        case Consumed(pattern=inner, keys=keys):
            return consuming(occurrences(inner, events, within), keys or (), member_patterns(inner))


def consuming(matches: set[Interval], keys: Sequence[Variable], steps: Sequence[str]) -> set[Interval]:
    """Returns the matches that have their occurrences of steps, if each is part of one for each value of the keys.

    steps: the patterns of the steps, in the order of the text.
    """

    names = sorted({name.name for match in matches for name, _ in match[0]})

    def order(match: Interval) -> tuple[object, ...]:
        bindings, start, end, members = match
        times, patterns, terms = zip(*members, strict=True)
        shown = [str(dict(bindings).get(Variable(name), "")) for name in names]
        return end, start, times, [steps.index(pattern) for pattern in patterns], terms, shown

    consumed: set[object] = set()
    accepted: set[Interval] = set()
    for match in sorted(matches, key=order):
        values = tuple(dict(match[0])[key] for key in keys)
        members = {(values, each) for each in match[3]}
        if members.isdisjoint(consumed):
            consumed |= members
            accepted.add(match)
    return accepted


def member(body: System, solution: dict[Variable, Any], time: int) -> Member:
    names = variables_in(body)
    return time, member_pattern(body), tuple(solution[name] for name in names)


def variables_in(body: System) -> list[Variable]:
    (pattern,) = body.joinables
    assert isinstance(pattern, Pattern)
    return list(dict.fromkeys(slot for slot in pattern.slots if isinstance(slot, Variable)))


def member_pattern(body: System) -> str:
    (pattern,) = body.joinables
    assert isinstance(pattern, Pattern)
    names = variables_in(body)
    return " ".join(str(names.index(slot)) if isinstance(slot, Variable) else slot for slot in pattern.slots)


def member_patterns(pattern: Occurrence) -> list[str]:
    """Returns the patterns of the steps that a match is made of, in the order of the text."""
    match pattern:
        case Step(body=body):
            return [member_pattern(body)]
        case Seq(left=left, right=right) | Both(left=left, right=right) | Equals(left=left, right=right):
            return [*member_patterns(left), *member_patterns(right)]
        case Either(branches=branches):
            return [name for branch in branches for name in member_patterns(branch)]
    assert not isinstance(pattern, Step | Seq | Both | Equals | Either)
    return member_patterns(pattern.pattern)


def runs(pattern: Iterated, members: set[Interval], within: int | None) -> list[tuple[Interval, ...]]:
    """Returns the runs of an iteration of these occurrences that have so many of them as they have to."""
    longest: list[tuple[Interval, ...]] = [(member,) for member in members]
    all_runs: list[tuple[Interval, ...]] = []
    while longest:
        all_runs += longest
        longest = [
            (*run, b) for run in longest if len(run) != pattern.most for b in next_of(pattern, run, members, within)
        ]
    return [run for run in all_runs if len(run) >= pattern.least]


def next_of(pattern: Iterated, run: Sequence[Interval], members: set[Interval], within: int | None) -> list[Interval]:
    """Returns the nearest occurrences that a run may go on with."""

    def keys(occurrence: Interval) -> list[object]:
        return [dict(occurrence[0]).get(key) for key in pattern.keys]

    def may_follow(b: Interval) -> bool:
        is_near = within is None or b[2] - run[0][1] <= within
        has_changed = pattern.condition is None or dict(last[0])[Y] != dict(b[0])[Y]
        between = [c for c in alike if last[2] < c[1] and c[2] < b[1]]
        return last[2] < b[1] and is_near and has_changed and not (pattern.is_consecutive and between)

    last = run[-1]
    alike = [member for member in members if keys(member) == keys(last)]
    following = [b for b in alike if may_follow(b)]
    return [b for b in following if b[2] == min(other[2] for other in following)]


def measured(pattern: Iterated, run: Sequence[Interval]) -> Interval:
    """Returns the occurrence that a run is."""
    bindings: dict[Variable, Any] = {key: dict(run[0][0])[key] for key in pattern.keys}
    for measure in pattern.measures:
        values = [dict(member[0]).get(Y) for member in run]
        match measure.kind:
            case "COUNT":
                bindings[measure.variable] = len(run)
            case "SUM":
                bindings[measure.variable] = sum(_weight(value) for value in values)
            case "MIN" | "MAX":
                bindings[measure.variable] = (min if measure.kind == "MIN" else max)(map(_weight, values))
            case "FIRST" | "LAST":
                bindings[measure.variable] = values[0 if measure.kind == "FIRST" else -1]
    return frozenset(bindings.items()), run[0][1], run[-1][2], tuple(each for member in run for each in member[3])


def _weight(value: object) -> int:
    return 1 if value == iri(E + "o1") else 10


def facts_at(time: int, events: Iterable[Event]) -> set[Triple]:
    facts = (fact for event in events if event.time == time for fact in event.facts)
    return {fact for fact in facts if isinstance(fact, Triple)}


def is_pair(pattern: Seq, a: Interval, b: Interval, events: Sequence[Event], within: int | None) -> bool:
    gap = b[1] - a[2]
    if not agree(a, b) or gap < pattern.min_gap or (pattern.max_gap is not None and gap > pattern.max_gap):
        return False
    if within is not None and b[2] - a[1] > within:
        return False
    y, z = terms(a, b, (Y, Z))
    if pattern.condition is not None and (y is None or z is None or y == z):
        return False
    pair = (a[0] | b[0], a[1], b[2], a[3] + b[3])
    return all(
        part.wanted
        == any(agree(pair, n) and a[2] < n[1] and n[2] < b[1] for n in occurrences(part.pattern, events, within))
        for part in pattern.between
    )


def terms(a: Interval, b: Interval, names: Iterable[Variable]) -> list[object]:
    bindings = {**dict(a[0]), **dict(b[0])}
    return [bindings.get(name) for name in names]


def agree(a: Interval, b: Interval) -> bool:
    left, right = dict(a[0]), dict(b[0])
    return all(right.get(name, value) == value for name, value in left.items())


def named(bindings: dict[Variable, Any], name: Variable | None, start: int, end: int) -> Bindings:
    times = {} if name is None else {start_of(name): start, end_of(name): end}
    return frozenset({**bindings, **times}.items())


def solutions(body: System, facts: Iterable[Triple]) -> list[dict[Variable, Any]]:
    (pattern,) = body.joinables
    assert isinstance(pattern, Pattern)
    rows: list[dict[Variable, Any]] = []
    for fact in facts:
        pairs = list(zip(pattern.slots, fact, strict=True))
        row = {slot: term for slot, term in pairs if isinstance(slot, Variable)}
        if all(row.get(slot, slot) == term for slot, term in pairs):  # type: ignore[arg-type]
            rows.append(row)
    return rows


# Programs


def step(predicate: str, subject: Any, object: Any, name: Variable | None = None) -> Step:
    pattern = Pattern(subject, iri(E + predicate), object, exact=True)
    return Step(System(sources=(DATASET,), joinables=(pattern,)), name)


CONDITION = calls.condition(calls.call("!=", (Y, Z)))
LENGTH = calls.call(">", (calls.call("-", (OWN_END, OWN_START)), integer(1)))
LONGER = System(sources=(), predicates=(Filter(calls.condition(LENGTH)),))
"""The condition that an occurrence is longer than 1 ms."""


def steps(names: Sequence[Variable | None] = (None,)) -> st.SearchStrategy[Step]:
    objects = st.sampled_from((Y, Z, V, W, W, iri(E + "o1")))
    return st.builds(step, st.sampled_from("aab"), st.sampled_from((X, X, X, X, Y)), objects, st.sampled_from(names))


@st.composite
def sequences(draw: st.DrawFn, parts: st.SearchStrategy[Occurrence]) -> Seq:
    """Draws a sequence that asks for one thing more at most, so that most have matches."""
    extras: dict[str, Any] = draw(
        st.one_of(
            st.just({}),
            st.just({}),
            st.fixed_dictionaries({"min_gap": st.integers(2, 4)}),
            st.fixed_dictionaries({"max_gap": st.integers(1, 3)}),
            st.just({"condition": CONDITION}),
            st.fixed_dictionaries({"between": st.tuples(st.builds(Part, steps(), st.booleans()))}),
        )
    )
    return Seq(draw(parts), draw(parts), draw(st.sampled_from(("nearest", "nearest", "each", "last"))), **extras)


WEIGHT = calls.call("IF", (calls.call("=", (Y, iri(E + "o1"))), integer(1), integer(10)))
MEASURES = (
    (Measure(N, "COUNT"),),
    (Measure(N, "SUM", WEIGHT), Measure(Z, "LAST", Y)),
    (Measure(N, "MIN", WEIGHT), Measure(Z, "FIRST", Y)),
    (Measure(N, "MAX", WEIGHT),),
)
CHANGES = calls.condition(calls.call("!=", (previous_of(Y), Y)))
"""The condition that an occurrence has another value than the one before."""


@st.composite
def iterations(draw: st.DrawFn) -> Iterated:
    """Draws an iteration of a step, or of a pattern."""
    simple = st.builds(step, st.sampled_from("aab"), st.just(X), st.sampled_from((Y, Y, iri(E + "o1"))))
    pair = st.builds(Seq, simple, simple, st.sampled_from(("nearest", "each")))
    pattern = draw(st.one_of(simple, simple, simple, st.builds(Within, pair, st.integers(2, 6))))
    least = draw(st.integers(1, 3))
    most = draw(st.none() | st.integers(least, 4))
    if Y not in variables_of(pattern):
        measures = draw(st.sampled_from(((), MEASURES[0])))
        return Iterated(pattern, least, most, draw(st.sampled_from(((), (X,)))), None, draw(st.booleans()), measures)
    keys = draw(st.sampled_from(((X,), (X,), (), (X, Y))))
    condition = draw(st.sampled_from((None, CHANGES)))
    measures = draw(st.sampled_from(((), *MEASURES)))
    return Iterated(pattern, least, most, keys, condition, draw(st.booleans()), measures)


def variables_of(pattern: Occurrence) -> set[Variable]:
    """Returns the variables of a step, or of a sequence of steps."""
    match pattern:
        case Step(body=body):
            return set(visible(body))
        case Seq(left=left, right=right):
            return variables_of(left) | variables_of(right)
        case Within(pattern=inner) | Consumed(pattern=inner):
            return variables_of(inner)
    raise AssertionError(pattern)


def bound_by(pattern: Occurrence) -> set[Variable]:
    """Returns the variables that each occurrence of a pattern binds."""
    match pattern:
        case Step(body=body):
            return set(visible(body))
        case Seq(left=left, right=right) | Both(left=left, right=right) | Equals(left=left, right=right):
            is_optional = isinstance(pattern, Equals) and pattern.is_optional
            return bound_by(left) | (set() if is_optional else bound_by(right))
        case Either(branches=branches):
            return set.intersection(*map(bound_by, branches))
        case Iterated(keys=keys):
            return set(keys)
    return bound_by(pattern.pattern)


@st.composite
def consumptions(draw: st.DrawFn, parts: st.SearchStrategy[Occurrence]) -> Consumed:
    pattern = draw(parts)
    keys: list[tuple[Variable, ...] | None] = [None, None, None, ()]
    return Consumed(pattern, draw(st.sampled_from([*keys, *((name,) for name in (X, Y) if name in bound_by(pattern))])))


def patterns(with_intervals: bool = True) -> st.SearchStrategy[Occurrence]:
    """Draws patterns: half of them are a sequence of steps, maybe with a bound, and the others are nested.

    with_intervals: whether there are those that compare intervals without a name (EP-SPARQL).
    """
    lengths = st.integers(1, 6)
    conditions = st.sampled_from((None, None, LONGER) if with_intervals else (None,))
    simple = steps()
    absent = st.one_of(simple, simple, sequences(simple), iterations())

    def composed(parts: st.SearchStrategy[Occurrence]) -> st.SearchStrategy[Occurrence]:
        return st.one_of(
            sequences(parts),
            sequences(parts),
            st.builds(Both, parts, parts),
            *([st.builds(Equals, parts, parts, st.booleans())] if with_intervals else []),
            st.builds(Either, st.tuples(parts, parts)),
            st.builds(Without, parts, parts),
            st.builds(Followed, parts, absent, lengths),
            st.builds(Preceded, simple, absent, lengths),
            iterations(),
            st.builds(Within, parts, lengths, st.sampled_from((None, *NAMES)), conditions),
            consumptions(parts),
        )

    chains = sequences(simple | sequences(simple) | iterations())
    nested = composed(st.recursive(simple, composed, max_leaves=4))
    bounded = st.builds(Within, chains, lengths)
    consuming = consumptions(chains | bounded | iterations())
    return st.one_of(chains, iterations(), bounded, consuming, nested, nested)


def events_strategy() -> st.SearchStrategy[list[Event]]:
    triples = st.builds(
        Triple,
        st.sampled_from([iri(E + name) for name in ("s1", "s1", "s1", "s2")]),
        st.sampled_from([iri(E + name) for name in "ab"]),
        st.sampled_from([iri(E + name) for name in ("o1", "o2")]),
    )
    content = st.lists(triples, min_size=1, max_size=2)
    steps_of_time = st.integers(0, 2)

    def timed(items: list[tuple[int, list[Triple]]]) -> list[Event]:
        time, events = 0, []
        for gap, facts in items:
            time += gap
            events.append(Event(time, tuple(facts)))
        return events

    return st.lists(st.tuples(steps_of_time, content), min_size=5, max_size=9).map(timed)


def names_of(pattern: object) -> list[Variable]:
    """Returns the names in a pattern."""
    match pattern:
        case Step(name=name) | Within(name=name):
            own = [] if name is None else [name]
            return own + (names_of(pattern.pattern) if isinstance(pattern, Within) else [])
        case Seq(left=left, right=right) | Both(left=left, right=right) | Equals(left=left, right=right):
            return [*names_of(left), *names_of(right)]
        case Either(branches=branches):
            return [name for branch in branches for name in names_of(branch)]
        case Without(pattern=inner) | Followed(pattern=inner) | Preceded(pattern=inner) | Consumed(pattern=inner):
            return names_of(inner)
        case _:
            return []


def system_of(pattern: Occurrence) -> System:
    rules, match = compiled(pattern)
    times = {name: Variable(name.name.replace(" ", "_")) for e in NAMES for name in (start_of(e), end_of(e))}
    binds = tuple(Bind(new, old, keep_unbound=True) for old, new in times.items())
    select = System(
        "q", sources=(), joinables=(match,), predicates=binds,
        consequences=(Select((*SHOWN, *times.values())),), reentrant=False,
    )  # fmt: skip
    return System(subsystems=(System("q", subsystems=(*rules, select), output="rstream"),))


def plan_of(pattern: Occurrence, planner: str) -> Plan:
    return planned(system_of(pattern), planner)


def planned(system: System, planner: str) -> Plan:
    try:
        return squall.plan(system, planner)
    except PlannerError as error:
        if "may be unbound" not in str(error):
            raise
        assume(False)
        raise


def expected(pattern: Occurrence, events: Sequence[Event]) -> Counter[tuple[int, tuple[str, ...]]]:
    rows = []
    for bindings, _, end in {occurrence[:3] for occurrence in occurrences(pattern, events)}:
        values = dict(bindings)
        shown = [values.get(name) for name in SHOWN]
        shown += [values.get(name) for e in NAMES for name in (start_of(e), end_of(e))]
        rows.append((end, tuple(map(_text, shown))))
    return Counter(rows)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def actual(outputs: Iterable[Any]) -> Counter[tuple[int, tuple[str, ...]]]:
    return Counter((out.time, tuple(map(_plain, out.fact.values))) for out in outputs)


def _plain(term: str | None) -> str:
    return "" if term is None else term.split('"')[1] if term.startswith('"') else term


@examples(400)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("planner", PLANNERS)
def test_matches_are_those_of_the_enumeration(planner: str, many: int) -> None:
    def law(pattern: Occurrence, events: list[Event]) -> Sequence[object]:
        assume(len(set(names_of(pattern))) == len(names_of(pattern)))
        plan = plan_of(pattern, planner)
        outputs = list(squall.run(plan, events))
        assert actual(outputs) == expected(pattern, events)
        return outputs

    hold_with_outputs(law, many, 0.15, pattern=patterns(), events=events_strategy())


@examples(200)
def test_matches_are_the_same_of_events_in_columns(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "MIN_EVENTS_TO_TRANSPOSE", 1)

    def law(pattern: Occurrence, events: list[Event], cuts: int, size: int, forms: list[bool]) -> Sequence[object]:
        assume(len(set(names_of(pattern))) == len(names_of(pattern)))
        tuning = Tuning(max_events_per_pass=size, min_rows_to_sweep=1)
        step = max(1, len(events) // cuts)
        parts = [events[first : first + step] for first in range(0, len(events), step)]
        batches = [Columns.of(part) if form else part for part, form in zip(parts, cycle(forms), strict=False)]
        outputs = list(IteratorJob(plan_of(pattern, "rete"), Options(), tuning).run(batches))
        assert actual(outputs) == expected(pattern, events)
        return outputs

    hold_with_outputs(
        law, many, 0.15, pattern=patterns(), events=events_strategy(), cuts=st.integers(1, 4),
        size=st.integers(1, 8), forms=st.lists(st.booleans(), min_size=1, max_size=3),
    )  # fmt: skip


def test_right_rows_are_looked_up_before_their_steps() -> None:
    plan = direct_plan()
    lines = [line for line in str(DataflowLayout.of(plan)).splitlines() if "if open" in line]
    matches = (node.id for node in plan.nodes if isinstance(node.op, ops.Match) and f"<{E}b>" in node.op.cells)
    looked_up = [
        line.partition(" | extend-")[0] for line in lines if " | extend-" in line
    ]  # the other is of static data
    assert len(looked_up) == 1
    assert looked_up[0] in {f"{match} -> if open $0" for match in matches}
    assert all(line.endswith(".1") for line in lines)


def test_no_row_of_a_later_step_is_computed_without_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 rows of the second step, one has an open left row."""
    rows = list[int]()
    original = stateless.extend_step

    def counting(op: ops.Extend, timed: bool = True) -> stateless.Step:
        run = original(op, timed)

        def counted(deltas: Sequence[Delta]) -> list[Delta]:
            rows.append(len(deltas))
            return run(deltas)

        return counted

    monkeypatch.setattr(stateless, "extend_step", counting)
    first = Event(0, (triple_of("s7", "a"),))
    later = [Event(time, (triple_of(f"s{time}", "b"),)) for time in range(1, 201)]
    outputs = list(squall.run(direct_plan(), [first, *later]))
    assert [out.time for out in outputs] == [7]
    assert sum(rows) < 10


def direct_plan() -> Plan:
    """Returns the plan of two steps that read the default stream fact by fact."""
    text = f"PREFIX : <{E}> SELECT * WHERE {{ {{ ?x :a ?y }} SEQ {{ ?x :b ?z }} WITHIN 1000ms }}"
    return squall.plan(squall.compile(text, lexer="ctsparql"))


def triple_of(subject: str, predicate: str) -> Triple:
    return Triple(iri(E + subject), iri(E + predicate), iri(E + "o1"))


def arrivals(*triples: str) -> list[Event]:
    """Returns an event for each triple, at 1, 2, 3 ... ms."""
    return [
        Event(time, (Triple(*(iri(E + name) for name in triple.split())),)) for time, triple in enumerate(triples, 1)
    ]


ABSENCE = Followed(step("a", X, Y), step("b", X, W), 2)
CONSUMPTIONS: list[tuple[Occurrence, list[Event], list[int]]] = [
    (Seq(step("a", X, Y), step("a", Y, Z), "each"), arrivals("p a q", "q a r", "r a s", "s a t"), [2, 4]),
    (Seq(step("a", X, Y), step("a", X, Z), "each"), arrivals("p a q", "p a r", "p a s", "p a t"), [2, 4]),
    (Seq(ABSENCE, step("a", X, Z), "each"), arrivals(*["p a q", "p c q", "p c q", "p c q"] * 3), [5]),
    (Seq(step("a", X, Y), step("b", X, Z), "each"), arrivals("p a q", "p a r", "p b q", "p b r", "p b s"), [3, 4]),
    (
        Seq(Seq(step("a", X, Y), step("b", X, Z), "each"), step("c", X, V), "each"),
        arrivals("p a q", "p b r", "p b q", "p c q", "p c r"),
        [4],
    ),
    (Both(step("a", X, Y), step("a", X, Z)), arrivals("p a q", "p a r"), [1, 2]),
    (Iterated(step("a", X, Y), 2, 2, (X,)), arrivals("p a q", "p a r", "p a s", "p a t"), [2, 4]),
    (
        Iterated(Seq(step("a", X, Y), step("b", X, Z), "each"), 2, 2, (X,)),
        arrivals("p a q", "p b r", "p a s", "p b t", "p a u", "p b v", "p a w", "p b x"),
        [4, 8],
    ),
    (Either((step("a", X, Y), step("a", X, Z))), arrivals("p a q"), [1]),
]
"""Patterns, streams, and the ends of the matches that consume what they are made of: equal steps have the same
occurrences, whatever their variables are called, at whichever place these stand, and however late they are read."""


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(("pattern", "events", "ends"), CONSUMPTIONS)
def test_matches_consume_their_occurrences(
    pattern: Occurrence, events: list[Event], ends: list[int], planner: str
) -> None:
    outputs = list(squall.run(plan_of(Consumed(pattern), planner), events))
    assert [out.time for out in outputs] == ends
    assert actual(outputs) == expected(Consumed(pattern), events)


@examples(100)
def test_the_oracle_has_the_matches_of_the_enumeration(many: int) -> None:
    def law(pattern: Occurrence, events: list[Event]) -> Sequence[object]:
        assume(len(set(names_of(pattern))) == len(names_of(pattern)))
        plan_of(pattern, "greedy")
        outputs = list(squall.run(plan_of(pattern, "greedy"), events))
        assert_as_oracle(system_of(pattern), outputs, events)
        return outputs

    hold_with_outputs(law, many, 0.15, pattern=patterns(), events=events_strategy())


@pytest.mark.more
@examples(40)
def test_updates_beside_a_pattern_retract_no_occurrence(many: int) -> None:
    """What has occurred is an event, also if a fact of it is deleted; what an update inserts occurs."""
    update = squall.compile(
        f"DELETE {{ ?x <{E}b> ?z }} INSERT {{ ?x <{E}c> ?y }} WHERE {{ ?x <{E}a> ?y OPTIONAL {{ ?x <{E}b> ?z }} }} ; "
        f"DELETE WHERE {{ ?x <{E}c> ?y }}",
        lexer="sparql",
        window="ELEMENT",
    )

    def law(pattern: Occurrence, events: list[Event]) -> Sequence[object]:
        assume(len(set(names_of(pattern))) == len(names_of(pattern)))
        system = System(subsystems=(system_of(pattern), update))
        outputs = []
        for planner in PLANNERS:
            outputs = list(squall.run(planned(system, planner), events))
            assert_as_oracle(system, outputs, events)
        return [output for output in outputs if isinstance(output.fact, Solution)]

    hold_with_outputs(law, many, 0.1, pattern=patterns(), events=events_strategy())


@pytest.mark.more
@examples(120)
def test_static_data_occur_whenever_something_arrives(many: int) -> None:
    """Plans that read the streams of steps directly agree with the oracle, and with plans that do not."""

    def law(pattern: Occurrence, events: list[Event], static: list[Event]) -> Sequence[object]:
        assume(len(set(names_of(pattern))) == len(names_of(pattern)))
        system, outputs = system_of(pattern), []
        for planner in PLANNERS:
            outputs = list(squall.run(plan_of(pattern, planner), events, static=static))
            assert_as_oracle(system, outputs, events, static)
        return outputs

    always = events_strategy().map(lambda events: [event._replace(time=ALWAYS) for event in events[:2]])
    hold_with_outputs(law, many, 0.15, pattern=patterns(), events=events_strategy(), static=always)


@examples(120)
def test_a_run_resumes_with_open_occurrences(many: int) -> None:
    def law(pattern: Occurrence, events: list[Event], compacts: bool, cuts: int) -> Sequence[object]:
        assume(len(set(names_of(pattern))) == len(names_of(pattern)))
        plan = plan_of(pattern, "rete")
        size = max(1, len(events) // cuts)
        batches = [events[first : first + size] for first in range(0, len(events), size)]
        outputs = list(Moving(plan, compacts).outputs(batches, ()))
        assert actual(outputs) == expected(pattern, events)
        return outputs

    hold_with_outputs(
        law, many, 0.15, pattern=patterns(), events=events_strategy(), compacts=st.booleans(), cuts=st.integers(2, 9)
    )


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(pattern: Occurrence, events: list[Event], seed: int) -> Sequence[object]:
        assume(len(set(names_of(pattern))) == len(names_of(pattern)))
        plan = plan_of(pattern, "rete")
        outputs = in_memory.outputs_on(builder, plan, events, seed, ())
        assert actual(outputs) == expected(pattern, events)
        return list(outputs) if builder == "in memory" else [law]

    hold_with_outputs(law, number, 0.15, pattern=patterns(), events=events_strategy(), seed=st.integers(0, 1000))


@on_engines
def test_engines_agree_on_runs_and_consumption(builder: str, number: int) -> None:
    def law(pattern: Occurrence, events: list[Event], seed: int) -> Sequence[object]:
        outputs = in_memory.outputs_on(builder, plan_of(pattern, "rete"), events, seed, ())
        assert actual(outputs) == expected(pattern, events)
        return list(outputs) if builder == "in memory" else [law]

    consumed = consumptions(iterations() | sequences(steps() | iterations()))
    drawn = iterations() | consumed | st.builds(Within, consumed, st.integers(2, 6))
    hold_with_outputs(law, number, 0.15, pattern=drawn, events=events_strategy(), seed=st.integers(0, 1000))


# State


@examples(20)
def test_no_state_of_bounded_patterns_is_left(many: int) -> None:
    """This is law 6 (docs/semantics.md, section 6). What is dropped on the way was not needed any more."""

    def law(pattern: Occurrence, events: list[Event]) -> Sequence[object]:
        job = IteratorJob(plan_of(pattern, "rete"), Options(), SWEEP_ALWAYS)
        outputs = list(job.run(list(batch) for _, batch in groupby(events, key=lambda event: event.time)))
        assert actual(outputs) == expected(pattern, events)
        forget_all(job)
        assert {id: size for id, size in job.dataflow.state().items() if size} == {}
        return outputs

    bounded: st.SearchStrategy[Occurrence] = st.builds(
        Within, iterations() | sequences(steps() | iterations()), st.integers(1, 6)
    )
    bounded = st.one_of(bounded, consumptions(bounded))
    hold_with_outputs(law, many, 0.15, pattern=bounded, events=events_strategy())


def test_what_is_consumed_is_stored_as_long_as_the_bound_says() -> None:
    pattern = Consumed(Within(Seq(step("a", X, Y), step("b", X, Z), "each"), 20))
    job = IteratorJob(plan_of(pattern, "rete"), Options(), SWEEP_ALWAYS)
    triples = [Triple(iri(f"{E}s{time % 3}"), iri(E + "ab"[time // 3 % 2]), iri(f"{E}o{time}")) for time in range(1500)]
    events = [Event(time, (triple,)) for time, triple in enumerate(triples)]
    sizes = [
        max(job.dataflow.state().values())
        for _ in job.run(events[first : first + 10] for first in range(0, len(events), 10))
    ]
    assert len(sizes) == 750
    assert max(sizes) < 100


@pytest.mark.parametrize("length", [4, 5, 9])
@pytest.mark.parametrize("is_delayed", [False, True])
def test_what_is_consumed_is_stored_until_no_match_has_it(
    length: int, is_delayed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An occurrence that has been consumed at 2 ms could be part of a match until the bound has passed."""

    def expire(op: ConsumeOperator, now: int) -> None:
        op.rows_after_sweep = 0
        sweep(op, now)

    sweep = ConsumeOperator.expire
    monkeypatch.setattr(ConsumeOperator, "expire", expire)
    inner: Occurrence = Consumed(Within(Seq(step("a", X, Y), step("b", X, Z), "each"), length))
    pattern = Followed(inner, step("d", X, W), 3) if is_delayed else inner
    between = ["p c q"] * (length - 2)
    events = arrivals("p a q", "p b q", *between, "p b q", *["p c q"] * 9)
    assert Event(length + 1, events[1].facts) in events
    job = IteratorJob(plan_of(pattern, "rete"), Options(), SWEEP_ALWAYS)
    outputs = list(job.run([event] for event in events))
    assert actual(outputs) == expected(pattern, events)
    assert len(outputs) == 1


def test_the_state_of_runs_is_bounded_by_their_length() -> None:
    pattern = Iterated(step("a", X, Y), 2, None, (X,), None, True, (Measure(N, "COUNT"), Measure(Z, "LAST", Y)))
    job = IteratorJob(plan_of(Within(pattern, 20), "rete"), Options(), SWEEP_ALWAYS)
    triples = [Triple(iri(f"{E}s{time % 3}"), iri(E + "a"), iri(f"{E}o{time}")) for time in range(1500)]
    events = [Event(time, (triple,)) for time, triple in enumerate(triples)]
    largest, count = 0, 0
    for count, _ in enumerate(job.run(events[first : first + 10] for first in range(0, len(events), 10)), 1):
        if count % 100 == 0:
            largest = max(largest, *job.dataflow.state().values())
    assert count > 1500
    assert largest < 150


def test_a_match_asks_only_those_who_read_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often streams of matches are asked when they have work next does not grow with the matches of others."""
    asked = Counter[str]()
    next_time: Any = vars(OccurrenceStreamOperator)["next_time"]

    def counted(op: OccurrenceStreamOperator) -> int:
        asked["times"] += 1
        return int(next_time.fget(op))

    monkeypatch.setattr(OccurrenceStreamOperator, "next_time", property(counted))
    texts = (
        f"SELECT * FROM STREAM <urn:s> {{ {{ ?x <{E}a> ?y }} SEQ {{ ?x <{E}c{number}> ?z }} WITHIN 10s }}"
        for number in range(9)
    )
    plan = squall.plan(System(subsystems=tuple(squall.compile(text, lexer="ctsparql") for text in texts)))
    counts = []
    for matches in (1, 9):
        unmatched = ["p d q"] * (9 - matches)
        events = arrivals("p a q", *(f"p c{number} q" for number in range(matches)), *unmatched)
        events = [event._replace(stream="urn:s") for event in events]
        asked.clear()
        assert len(list(squall.run(plan, events))) == matches
        counts.append(asked["times"])
    assert counts[0] == counts[1] > 0
