"""What the suites of stream queries share: others' streams as events, and what a query answers at each instant.

Windows hold [from, to) unless a profile says otherwise (docs/semantics.md, section 2), and the grid of their steps
begins at 0 unless a suite shifts it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyoxigraph

import squall
from squall.contracts import Options
from squall.functions.values import value_key
from squall.model import Report, Source, System, profiles, rules
from squall.model.walk import walk
from squall.model.windows import LANDMARK, Window
from squall.plan.seeds import FIXED_SEED
from squall.rdf import ALWAYS, Evaluated, Event, Fact, Solution, Term, Triple, iri, literal, term
from tests.conformance import Stages
from tests.conformance.programs import compiled

Row = tuple[Term | None, ...]
Answers = dict[int, list[Row]]
"""The rows of each evaluation by its time in ms. A row has the cells of a solution or of a triple."""

_TIMED = re.compile(r'<([^>]*)>\s+<([^>]*)>\s+(?:<([^>]*)>|"?([^"<>^]*)"?\^\^<([^>]*)>|"([^"]*)")\s+"(\d+)"\s*\.?')
"""A line of YABench: a triple whose literals may have no quotes, and its time."""


def timed_lines(path: Path) -> list[tuple[int, Triple]]:
    """Yields the triples of a stream in the form of YABench, each with its time in ms."""
    results = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            parts = _TIMED.fullmatch(line.strip())
            assert parts, f"no triple with a time: {line}"
            subject, predicate, object, lexical, datatype, plain, time = parts.groups()
            last = iri(object) if object is not None else literal(plain if datatype is None else lexical, datatype)
            results.append((int(time), Triple(iri(subject), iri(predicate), last)))
    return results


def as_events(timed: Iterable[tuple[int, Fact]], stream: str = "") -> list[Event]:
    """Returns an event for each time, in the order of time."""
    results: dict[int, list[Fact]] = defaultdict(list)
    for time, fact in timed:
        results[time].append(fact)
    return [Event(time, tuple(facts), stream) for time, facts in sorted(results.items())]


def query(
    text: str,
    language: str,
    profile: str = "default",
    window: Window = LANDMARK,
    output: str | None = None,
    report: Report | None = None,
) -> System:
    """Compiles a query for the run. Raises LeftOut where it asks for too much."""
    return profiles.apply_profile(compiled(text, language), profile, window, report=report, output=output)


def streams(system: System) -> tuple[str, ...]:
    """Returns the IRIs of the streams that a program reads, in its order."""
    return tuple(dict.fromkeys(source.iri for source in sources(system) if source.iri))


def sources(system: System) -> Iterator[Source]:
    """Yields the sources of all parts of a program."""
    for rule in rules(system):
        for part in walk(rule):
            if isinstance(part, System):
                yield from part.sources


def answers(
    system: System,
    events: Sequence[Event],
    stages: Stages,
    static: Iterable[Event] = (),
    until: int | None = None,
    names: Sequence[str] | None = None,
) -> Answers:
    """Returns the answers of a program at each instant at which it answers or is evaluated.

    until: the last time of interest, in ms. names: the variables of interest; None: all.
    """
    plan = squall.plan(system, stages.planner)
    result: Answers = defaultdict(list)
    for out in squall.build(plan, stages.builder, Options(seed=FIXED_SEED)).run([events], static):
        if until is not None and out.time > until:
            break
        rows = result[out.time]
        match out.fact:
            case Solution(names=variables, values=values):
                bound = dict(zip(variables, values, strict=True))
                rows.append(values if names is None else tuple(bound[name] for name in names))
            case Triple():
                rows.append(tuple(out.fact))
            case Evaluated():
                pass
            case other:
                raise AssertionError(f"neither a solution nor a triple: {other}")
    return dict(result)


WHOLE = Report("close", empty=True)
"""Every step is reported, an empty one as well."""


def held(events: Iterable[Event], begin: int, end: int) -> list[Triple]:
    """Returns the triples that came in [begin, end)."""
    facts = (fact for event in events if begin <= event.time < end for fact in event.facts)
    return [fact for fact in facts if isinstance(fact, Triple)]


def with_content(found: Answers, events: Sequence[Event], content: Callable[[int], tuple[int, int]]) -> Answers:
    """Returns the evaluations whose window is not empty.

    Args:
        content: Returns the begin and end of the window [begin, end) at a time.
    """
    return {time: rows for time, rows in found.items() if time != ALWAYS and held(events, *content(time))}


def peer(text: str, facts: Iterable[Fact]) -> list[Row]:
    """Returns the answers of another engine, pyoxigraph, to a SPARQL query over these triples."""
    store = pyoxigraph.Store()
    lines = "\n".join(str(fact) for fact in facts)
    store.extend(pyoxigraph.parse(lines, format=pyoxigraph.RdfFormat.N_TRIPLES))
    solutions = store.query(text)
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    return [tuple(None if cell is None else term(cell) for cell in solution) for solution in solutions]


def bag(rows: Iterable[Sequence[Term | None]]) -> Counter[tuple[object, ...]]:
    """Returns rows in the form that is compared: a multiset of tuples of values."""
    return Counter(tuple(None if cell is None else value_key(cell) for cell in row) for row in rows)


def compare(came: Mapping[int, Iterable[Row]], due: Mapping[int, Iterable[Row]]) -> None:
    """Raises AssertionError where the evaluations are at other times, or answer otherwise."""
    assert sorted(came) == sorted(due), f"evaluated at {sorted(came)}, not at {sorted(due)}"
    for time in sorted(due):
        left, right = bag(came[time]), bag(due[time])
        assert left == right, (
            f"at {time}: missing {list((right - left).elements())}, surplus {list((left - right).elements())}"
        )
