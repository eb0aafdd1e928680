"""A law of CT-SPARQL: the text of a pattern over time has the matches that enumeration over the whole stream gives.

Patterns, streams and the enumeration are those of `tests/test_sequences.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.checking import lint
from squall.errors import SquallError
from squall.model import Variable
from squall.model.windows import duration
from squall.plan import Plan
from squall.rdf import Event, Solution
from squall.translators.sparql.time_patterns import (
    Both,
    Consumed,
    Either,
    Equals,
    Followed,
    Iterated,
    Occurrence,
    Preceded,
    Seq,
    Step,
    Within,
    Without,
)
from tests.laws import PLANNERS, examples, hold_with_outputs
from tests.test_sequences import NAMES, SHOWN, E, events_strategy, expected, names_of, patterns, variables_of

SELECTIONS = {"nearest": "", "last": "LAST ", "each": "EACH "}
REFUSED = (
    "may be unbound",
    "this never occurs",
    "this is always absent",
    "have the name",
    "contradict each other",
    "may occur without it",
    "has no effect on a single step",
)
"""What messages say of patterns that are refused."""


def text_of(pattern: Occurrence) -> str:
    """Returns a pattern over time as CT-SPARQL has it."""
    match pattern:
        case Step():
            return braced(pattern)
        case Seq(left=left, right=right):
            between = "".join(
                f"{'CONTAINING' if part.wanted else 'NOT'} {braced(part.pattern)} " for part in pattern.between
            )
            after = f" AFTER {duration(pattern.min_gap)}" if pattern.min_gap > 1 else ""
            before = f" BEFORE {duration(pattern.max_gap)}" if pattern.max_gap is not None else ""
            when = " WHEN (?y != ?z)" if pattern.condition is not None else ""
            selection = SELECTIONS[pattern.selection]
            return f"{braced(left)} {between}{selection}SEQ {braced(right)}{after}{before}{when}"
        case Both(left=left, right=right):
            return f"{braced(left)} AND {braced(right)}"
        case Without(pattern=inner, without=without):
            return f"{braced(inner)} AND NOT {braced(without)}"
        case Either(branches=branches):
            return " OR ".join(map(braced, branches))
        case Followed(pattern=inner, absent=absent, within=within):
            return f"{braced(inner)} NOT {braced(absent)} WITHIN {duration(within)}"
        case Preceded(pattern=step, absent=absent, within=within):
            return f"NOT {braced(absent)} WITHIN {duration(within)} {braced(step)}"
        case Equals():
            raise AssertionError("CT-SPARQL compares the times of names")
        case Iterated():
            return f"{braced(pattern.pattern)} {quantified(pattern)}"
        case Consumed(pattern=inner, keys=keys):
            is_chain = isinstance(inner, Seq | Iterated | Followed) or (
                isinstance(inner, Within) and inner.name is None
            )
            text = text_of(inner) if is_chain else braced(inner)
            return f"{text} CONSUME" if keys is None else f"{text} CONSUME BY {' '.join(map(str, keys)) or '()'}"
        case Within(pattern=inner, within=bound, name=name):
            text = braced(inner) if bound is None else f"{braced(inner)} WITHIN {duration(bound)}"
            return text if name is None else f"{{ {text} }} AS {name}"


def quantified(pattern: Iterated) -> str:
    """Returns how often a pattern occurs, as CT-SPARQL has it."""
    least, most, keys = pattern.least, pattern.most, pattern.keys
    bounds = f"{{{least},{'' if most is None else most}}}" if (least, most) != (1, None) else "+"
    weight = f"IF(?y = <{E}o1>, 1, 10)"
    arguments = {"COUNT": "*", "FIRST": "?y", "LAST": "?y"}
    measures = [
        f"({measure.kind}({arguments.get(measure.kind, weight)}) AS {measure.variable})" for measure in pattern.measures
    ]
    pieces = [
        bounds,
        *([] if {*keys} == variables_of(pattern.pattern) else [f"BY {' '.join(map(str, keys)) or '()'}"]),
        *(["CONSECUTIVE"] if pattern.is_consecutive else []),
        *([] if pattern.condition is None else ["WHILE (?y != PREVIOUS(?y))"]),
        *(["MEASURES", *measures] if measures else []),
    ]
    return " ".join(pieces)


def braced(pattern: Occurrence) -> str:
    """Returns a pattern as a part of another one."""
    if not isinstance(pattern, Step):
        return f"{{ {text_of(pattern)} }}"
    (triple,) = pattern.body.joinables
    return f"{{ {' '.join(map(str, triple.slots))} }}"  # type: ignore[union-attr]


def plan_of(pattern: Occurrence, planner: str) -> Plan:
    """Returns the plan of a query for what a pattern binds, and for the times of its names."""
    times = "".join(f" ({end}(?{name.name}) AS ?{end}_{name.name})" for name in names_of(pattern) for end in _ENDS)
    text = f"SELECT {' '.join(map(str, SHOWN))}{times} WHERE {{ {text_of(pattern)} }}"
    try:
        return squall.plan(squall.compile(text, lexer="ctsparql"), planner)
    except SquallError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        assume(False)
        raise


_ENDS = ("start", "end")


def matches(solutions: Sequence[tuple[int, Any]]) -> Counter[tuple[int, tuple[str, ...]]]:
    """Returns answers in the form of `expected`."""
    columns = [*(name.name for name in SHOWN), *(f"{end}_{name.name}" for name in NAMES for end in _ENDS)]
    rows = []
    for time, solution in solutions:
        assert isinstance(solution, Solution)
        values = dict(zip(solution.names, solution.values, strict=True))
        rows.append((time, tuple(_plain(values.get(column)) for column in columns)))
    return Counter(rows)


def _plain(term: str | None) -> str:
    return "" if term is None else term.split('"')[1] if term.startswith('"') else term


def is_named_well(pattern: Occurrence) -> bool:
    names: list[Variable] = names_of(pattern)
    return len(set(names)) == len(names)


@examples(300)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("planner", PLANNERS)
def test_matches_are_those_of_the_enumeration(planner: str, many: int) -> None:
    def law(pattern: Occurrence, events: list[Event]) -> Sequence[object]:
        assume(is_named_well(pattern))
        outputs = [(out.time, out.fact) for out in squall.run(plan_of(pattern, planner), events)]
        assert matches(outputs) == expected(pattern, events)
        return outputs

    hold_with_outputs(law, many, 0.15, pattern=patterns(with_intervals=False), events=events_strategy())


@pytest.mark.more
@examples(60)
def test_no_pattern_matches_whose_times_exclude_each_other(many: int) -> None:
    """What `squall check` says of a pattern with conditions on its times holds in any stream."""

    def law(pattern: Occurrence, tests: list[tuple[str, int, int]], events: list[Event]) -> Sequence[object]:
        names = names_of(pattern)
        assume(is_named_well(pattern) and len(names) > 1)
        drawn = (test.format(names[first % len(names)], names[second % len(names)]) for test, first, second in tests)
        text = f"SELECT * WHERE {{ {text_of(pattern)} FILTER({' && '.join(drawn)}) }}"
        try:
            system = squall.compile(text, lexer="ctsparql")
        except SquallError as error:
            assume(not any(reason in str(error) for reason in REFUSED))
            raise
        findings = [finding for finding in lint(text, lexer="ctsparql") if finding.code == "step-never-matches"]
        assert not findings or not list(squall.run(squall.plan(system), events))
        return findings

    numbers, parts = st.integers(0, 3), patterns(with_intervals=False)
    named = [st.builds(Within, parts, st.integers(1, 6), st.just(name)) for name in NAMES]
    hold_with_outputs(
        law, many, 0.02, pattern=st.builds(Seq, *named) | st.builds(Both, *named) | parts, events=events_strategy(),
        tests=st.lists(st.tuples(st.sampled_from(TESTS_OF_TIMES), numbers, numbers), min_size=2, max_size=4),
    )  # fmt: skip


TESTS_OF_TIMES = (
    "before({0}, {1})", "overlaps({0}, {1})", "during({0}, {1})", "meets({0}, {1})", "end({0}) - start({1}) > 3",
    "start({0}) + 2 <= end({1})", "duration({0}) >= 2", "start({0}) = end({1})", "end({0}) < 4",
)  # fmt: skip
