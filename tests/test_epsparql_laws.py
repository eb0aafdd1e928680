"""A law of EP-SPARQL: the text of a pattern over time has the matches that enumeration over the whole stream gives.

A pattern is drawn as a text, and as what it means in the algebra. The enumeration is that of `tests/test_sequences.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.builders.distributed.plan.physical_plan import plan_of_tasks
from squall.builders.distributed.plan.stages import cyclic_gates
from squall.errors import SquallError
from squall.model import Variable
from squall.plan import Plan
from squall.plan.gates import gates_of
from squall.rdf import Event, Solution, Triple, iri
from squall.translators.sparql.time_patterns import Both, Either, Equals, Followed, Occurrence, Seq, Within
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs, on_engines
from tests.test_ctsparql_laws import braced
from tests.test_sequences import LONGER, NAMES, SHOWN, events_strategy, expected, steps

REFUSED = ("may be unbound", "this never occurs")
"""What messages say of patterns that are refused."""
PREFIX = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


class Text(NamedTuple):
    """A text, and the pattern that it means."""

    text: str
    pattern: Occurrence


OPERATORS: dict[str, Callable[[Occurrence, Occurrence], Occurrence]] = {
    "SEQ": lambda left, right: Seq(left, right, "each"),
    "EQUALS": Equals,
    "EQUALSOPTIONAL": lambda left, right: Equals(left, right, is_optional=True),
    "OPTIONALEQUALS": lambda left, right: Equals(left, right, is_optional=True),
    "AND": Both,
    "UNION": lambda left, right: Either((left, right)),
}
"""The operators that need no bound. Two sequences draw most of the patterns that have matches."""
DRAWN = ("SEQ", "SEQ", "SEQ", *OPERATORS)


@st.composite
def simple(draw: st.DrawFn) -> Text:
    step = draw(steps())
    return Text(braced(step), step)


@st.composite
def groups(draw: st.DrawFn, parts: st.SearchStrategy[Text], name: Variable | None = None) -> Text:
    """Draws the content of a group: operators from left to right, and filters.

    name: how the enumeration names the times of the pattern.
    """
    text, pattern = draw(parts)
    for operator in draw(st.lists(st.sampled_from(DRAWN), min_size=1, max_size=2)):
        right = draw(parts)
        text, pattern = f"{text} {operator} {right.text}", OPERATORS[operator](pattern, right.pattern)
    bound = draw(st.none() | st.integers(1, 6))
    condition = draw(st.sampled_from((None, LONGER)))
    filters = [] if bound is None else [draw(st.sampled_from(BOUNDS))(bound)]
    filters += [] if condition is None else ["getDURATION() > 1"]
    optional = draw(parts) if bound is not None and draw(st.booleans()) else None

    def complete(inner: Occurrence) -> Occurrence:
        return Within(inner, bound, name, condition)

    if optional is None:
        pattern = complete(pattern)
    else:
        text = f"{text} OPTIONALSEQ {optional.text}"
        assert bound is not None
        pair = complete(Seq(pattern, optional.pattern, "each"))
        pattern = Either((pair, Followed(complete(pattern), optional.pattern, bound)))
    shape = draw(st.sampled_from(("{} FILTER({})", "FILTER({1}) {0}")))
    return Text(shape.format(text, " && ".join(filters)) if filters else text, pattern)


BOUNDS: tuple[Callable[[int], str], ...] = (
    lambda bound: f'getDURATION() <= "PT0.00{bound}S"^^xsd:duration',
    lambda bound: f'"PT0.00{bound + 1}S"^^xsd:dayTimeDuration > getDURATION()',
    lambda bound: f"getDURATION() < {bound + 1}",
    lambda bound: f"({bound}.5 > getDURATION())",
)


def queries() -> st.SearchStrategy[Text]:
    def in_braces(content: st.SearchStrategy[Text]) -> st.SearchStrategy[Text]:
        return content.map(lambda drawn: Text(f"{{ {drawn.text} }}", drawn.pattern))

    nested = in_braces(groups(simple()))
    return groups(simple(), NAMES[0]) | groups(st.one_of(simple(), nested), NAMES[0])


def plan_of(text: str, planner: str) -> Plan:
    times = "(getSTARTTIME() AS ?s) (getENDTIME() AS ?e) (getDURATION() AS ?d)"
    query = f"{PREFIX}SELECT {' '.join(map(str, SHOWN))} {times} WHERE {{ {text} }}"
    try:
        return squall.plan(squall.compile(query, lexer="epsparql"), planner)
    except SquallError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        assume(False)
        raise


def matches(outputs: Iterable[Any]) -> Counter[tuple[int, tuple[str, ...]]]:
    """Returns answers in the form of `expected`."""
    rows = []
    for out in outputs:
        assert isinstance(out.fact, Solution)
        *shown, start, end, length = out.fact.values
        times = [_milliseconds(start), _milliseconds(end)]
        assert _seconds(length) * 1000 == pytest.approx(times[1] - times[0])
        rows.append((out.time, ("" if term is None else term for term in shown), times))
    return Counter((time, (*shown, *map(str, times), "", "")) for time, shown, times in rows)


def _milliseconds(term: str | None) -> int:
    assert term is not None
    return round(datetime.fromisoformat(term.split('"')[1]).timestamp() * 1000)


def _seconds(term: str | None) -> float:
    assert term is not None
    return float(term.split('"')[1].removeprefix("PT").removesuffix("S"))


@examples(300)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("planner", PLANNERS)
def test_matches_are_those_of_the_enumeration(planner: str, many: int) -> None:
    def law(query: Text, events: list[Event]) -> Sequence[object]:
        outputs = list(squall.run(plan_of(query.text, planner), events))
        assert matches(outputs) == expected(query.pattern, events)
        return outputs

    hold_with_outputs(law, many, 0.15, query=queries(), events=events_strategy())


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(query: Text, events: list[Event], seed: int) -> Sequence[object]:
        outputs = in_memory.outputs_on(builder, plan_of(query.text, "rete"), events, seed, ())
        assert matches(outputs) == expected(query.pattern, events)
        return list(outputs) if builder == "in memory" else [law]

    hold_with_outputs(law, number, 0.15, query=queries(), events=events_strategy(), seed=st.integers(0, 1000))


CIRCLE = (
    'FILTER(getDURATION() <= "PT0.006S"^^xsd:duration) '
    '{ FILTER(getDURATION() <= "PT0.005S"^^xsd:duration) { ?x <urn:a> <urn:o1> } EQUALSOPTIONAL { ?x <urn:b> ?z } '
    "OPTIONALSEQ { ?x <urn:b> ?w } } AND { ?x <urn:a> ?y } EQUALSOPTIONAL { ?x <urn:b> ?v }"
)


def test_a_gate_in_a_circle_of_streams_is_not_used_by_tasks() -> None:
    """The last optional step reads the stream of the first one, behind a gate that its matches open."""
    plan = plan_of(CIRCLE, "rete")
    gates = cyclic_gates(plan)
    assert gates
    assert not {*gates} & {*gates_of(plan_of_tasks(plan))}
    facts = [(1, "a", "o1"), (1, "b", "o2"), (3, "b", "o1"), (9, "a", "o1")]
    triples = [(time, Triple(iri("urn:s"), iri(f"urn:{name}"), iri(f"urn:{value}"))) for time, name, value in facts]
    events = [Event(time, (triple,)) for time, triple in triples]
    outputs = Counter(squall.run(plan, events))
    assert outputs
    assert Counter(in_memory.outputs_on("in memory", plan, events, 0, ())) == outputs
