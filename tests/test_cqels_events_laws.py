"""A law of CQELS-QL: ``SEQ`` in a filter has the matches that enumeration over the whole stream gives.

The enumeration is that of `tests/test_sequences.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.errors import SquallError
from squall.model import Variable
from squall.plan import Plan
from squall.rdf import Event, Term, Triple, iri
from squall.translators.sparql.time_patterns import Occurrence, Part, Seq, Within
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs, on_engines
from tests.test_ctsparql_laws import matches
from tests.test_sequences import CONDITION, SHOWN, E, V, W, X, Y, Z, events_strategy, expected, step

STREAMS = {"a": f"{E}s", "b": f"{E}t"}
"""The stream of the facts of each predicate."""
SUBJECTS = (X, V, W)
ABSENT = Variable("n")
Pattern = tuple[Variable, str, Variable | Term]
"""The subject, the name of the predicate, and the object of an event."""


class Drawn(NamedTuple):
    """A query, and the pattern that it means."""

    text: str
    pattern: Occurrence


@st.composite
def queries(draw: st.DrawFn) -> Drawn:
    """Draws a sequence of two or three events, with what must not occur between, a guard and a window."""
    events = draw(st.lists(st.sampled_from("aab"), min_size=2, max_size=3))
    objects: st.SearchStrategy[Variable | Term] = st.sampled_from((Y, Z, Z, *SUBJECTS, iri(E + "o1")))
    subjects = draw(st.permutations(SUBJECTS))
    triples: list[Pattern] = [
        (subject, predicate, draw(objects)) for subject, predicate in zip(subjects, events, strict=False)
    ]
    assume(all(subject != object for subject, _, object in triples))
    window = draw(st.sampled_from((None, 1, 3, 4, 6)))
    absent = draw(st.none() | st.tuples(st.integers(1, len(triples) - 1), st.sampled_from("ab"), objects))
    pattern: Occurrence = step(triples[0][1], triples[0][0], triples[0][2])
    sequence = [str(triples[0][0])]
    bound = {part for part in triples[0] if isinstance(part, Variable)}
    is_guarded = draw(st.booleans())
    for place, (subject, predicate, object) in enumerate(triples[1:], 1):
        condition, between = None, tuple[Part, ...]()
        before, bound = bound, bound | {part for part in (subject, object) if isinstance(part, Variable)}
        if is_guarded and {Y, Z} <= bound and not {Y, Z} <= before:
            condition = CONDITION
        if absent is not None and absent[0] == place:
            between = (Part(step(absent[1], ABSENT, absent[2]), False),)
            sequence.append(f"NOT {ABSENT}")
        sequence.append(str(subject))
        pattern = Seq(pattern, step(predicate, subject, object), "each", condition=condition, between=between)
    if is_guarded:
        assume({Y, Z} <= bound)
    if absent is not None:
        triples.append((ABSENT, absent[1], absent[2]))
    if window is not None and window > 1:
        pattern = Within(pattern, window - 1)
    guard = " FILTER(?y != ?z)" if is_guarded else ""
    return Drawn(_text(draw, triples, f"SEQ({' ; '.join(sequence)})", guard, window), pattern)


def _text(draw: st.DrawFn, triples: list[Pattern], sequence: str, guard: str, window: int | None) -> str:
    """Returns the query in one of its forms: with a clause for its stream, or with streams inside of the pattern."""
    range = "[ALL]" if window is None else "[NOW]" if window == 1 else f"[RANGE {window}ms]"
    lines = [f"{subject} <{E}{predicate}> {object} ." for subject, predicate, object in triples]
    streams = {STREAMS[predicate] for _, predicate, _ in triples}
    shown = f"SELECT {' '.join(map(str, SHOWN))}"
    if len(streams) == 1 and draw(st.booleans()):
        (stream,) = streams
        if draw(st.booleans()):
            return f"{shown} FROM STREAM <{stream}> {range} WHERE {{ {' '.join(lines)} FILTER({sequence}){guard} }}"
        return f"{shown} WHERE {{ STREAM <{stream}> {range} {{ {' '.join(lines)} FILTER({sequence}){guard} }} }}"
    blocks = " ".join(
        f"STREAM <{STREAMS[predicate]}> {range} {{ {line} }}"
        for line, (_, predicate, _) in zip(lines, triples, strict=True)
    )
    return f"{shown} WHERE {{ {blocks} FILTER({sequence}){guard} }}"


def in_streams(events: list[Event]) -> list[Event]:
    """Returns the events with the facts of each predicate in a stream of their own."""
    return [
        Event(event.time, facts, stream)
        for event in events
        for predicate, stream in STREAMS.items()
        if (facts := tuple(fact for fact in event.facts if _predicate(fact) == predicate))
    ]


def _predicate(fact: object) -> str:
    assert isinstance(fact, Triple)
    return fact.predicate.rpartition("/")[2].rstrip(">")


def plan_of(text: str, planner: str) -> Plan:
    try:
        return squall.plan(squall.compile(text, lexer="cqels"), planner)
    except SquallError as error:
        if "this never occurs" not in str(error):
            raise
        assume(False)
        raise


@examples(300)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("planner", PLANNERS)
def test_matches_are_those_of_the_enumeration(planner: str, many: int) -> None:
    def law(query: Drawn, events: list[Event]) -> Sequence[object]:
        outputs = list(squall.run(plan_of(query.text, planner), in_streams(events)))
        assert matches([(out.time, out.fact) for out in outputs]) == expected(query.pattern, events)
        return outputs

    hold_with_outputs(law, many, 0.15, query=queries(), events=events_strategy())


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(query: Drawn, events: list[Event], seed: int) -> Sequence[object]:
        outputs = in_memory.outputs_on(builder, plan_of(query.text, "rete"), in_streams(events), seed, ())
        assert matches([(out.time, out.fact) for out in outputs]) == expected(query.pattern, events)
        return list(outputs) if builder == "in memory" else [law]

    hold_with_outputs(law, number, 0.15, query=queries(), events=events_strategy(), seed=st.integers(0, 1000))
