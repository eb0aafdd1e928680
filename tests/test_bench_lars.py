"""The LARS programs of the benchmark are evaluated as tick by tick, with a part of their streams, spread over time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import squall
from squall.lexers.lars import lexer
from squall.rdf import ALWAYS, Event, Triple
from squall.rdf.vocabulary import TYPE
from tests.bench import data, ours
from tests.bench.lars import PROGRAMS, STREAMS
from tests.test_lars_laws import holding
from tests.ticks import Ground, Ticks

TRIPLES, TICK, LAST = 160, 1000, 45
"""The triples of a stream, eight of which come at each tick of so many ms, and the tick up to which answers count."""
FIRST = data.START // TICK + 1


def atoms(fact: Triple) -> Iterator[Ground]:
    """Yields what a program may call a triple."""
    yield Ground(fact.predicate, (fact.subject, fact.object))
    if fact.predicate == TYPE:
        yield Ground(fact.object, (fact.subject,))


def triple(line: str) -> Triple:
    subject, predicate, object = line.removesuffix(" .").split()
    return ours.triple((subject, predicate, object))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.more] if name == "Q9" else []) for name in PROGRAMS]
)
def test_a_program_is_evaluated_as_tick_by_tick(name: str) -> None:
    program = PROGRAMS[name]
    lines = list(STREAMS[program.stream](TRIPLES))
    stream = [(FIRST + number // 8, triple(line.partition(" ")[2])) for number, line in enumerate(lines)]
    static = list(map(triple, data.platforms())) if program.stream == "sensors" else []
    sensors = {fact.object for _, fact in stream}
    platforms = {fact.object for fact in static if fact.subject in sensors}
    static = [fact for fact in static if fact.subject in sensors | platforms]
    ticks = range(FIRST, FIRST + LAST)
    arrivals = [(tick, atom) for tick, fact in stream for atom in atoms(fact)]
    arrivals += [(tick, atom) for tick in ticks for fact in static for atom in atoms(fact)]
    models = Ticks(lexer(program.text, name), arrivals, lambda relation, arity: 1).run(ticks)
    expected = {tick * TICK: {atom.fact for atom in model} for tick, model in models.items()}
    plan = squall.plan(squall.compile(program.text, lexer="lars", output="changes"))
    events = [Event(tick * TICK, (fact,)) for tick, fact in stream]
    outputs = squall.build(plan).run([events], [Event(ALWAYS, tuple(static))])
    assert any(expected.values())
    assert holding(outputs, [tick * TICK for tick in ticks]) == expected
