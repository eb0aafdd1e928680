"""A law of CQELS-QL: ``SEQ`` in a filter has the matches that enumeration over the whole stream gives.

The enumeration is that of `tests/test_sequences.py`.
"""

from __future__ import annotations

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from squall.model import Variable
from squall.rdf import Term, iri
from squall.translators.sparql.time_patterns import Occurrence, Part, Seq, Within
from tests.laws import PLANNERS, examples, on_engines
from tests.named_events import STREAMS, Drawn, hold_by_enumeration, hold_on_engine
from tests.test_sequences import CONDITION, SHOWN, E, V, W, X, Y, Z, step

SUBJECTS = (X, V, W)
ABSENT = Variable("n")
Pattern = tuple[Variable, str, Variable | Term]
"""The subject, the name of the predicate, and the object of an event."""


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


@examples(300)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("planner", PLANNERS)
def test_matches_are_those_of_the_enumeration(planner: str, many: int) -> None:
    hold_by_enumeration("cqels", queries(), planner, many)


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    hold_on_engine("cqels", queries(), builder, number)
