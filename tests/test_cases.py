"""Runs every case in every language x planner x builder, and compares the languages that a case has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import squall
from squall.testing import assert_outputs, cases, difference, oracle

FOLDER = Path(__file__).parent / "cases"
CASES = [case for path in sorted(FOLDER.glob("*.case")) for case in cases.load(path)]
PROGRAMS = [
    pytest.param(case, language, text, id=f"{case.title} [{language}]")
    for case in CASES
    for language, text in case.programs
]


PROLOGUES = dict.fromkeys(("jena", "lars"), "@prefix : <http://example.org/> .")
"""The declaration of the prefixes of the events in some languages. It is not on a line of its own, so that places stay
right."""


def prefixed(language: str, text: str) -> str:
    return PROLOGUES.get(language, "") + text


def compiled(case: cases.Case, language: str, text: str) -> squall.System:
    regime = "rhodf" if case.schema else "none"
    if case.ontology:
        with TemporaryDirectory() as folder:
            ontology, program = Path(folder, "o.owl"), Path(folder, f"program.{language}")
            ontology.write_text(case.ontology, encoding="utf-8")
            program.write_text(prefixed(language, text), encoding="utf-8")
            return squall.compile(ontology, program)
    return squall.compile(prefixed(language, text), lexer=language, entailment=regime, schema=case.schema)


RUNS = [("greedy", "iterator"), ("rete", "iterator"), ("rete", "spark"), ("greedy", "spark"), ("rete", "beam")]
"""Planners and builders."""


def marks_of(planner: str, builder: str, case: int, program: int, place: int) -> Iterator[pytest.MarkDecorator]:
    """Yields the marks of a test.

    In `make test` an engine runs the first program of every fourteenth case, in `make test-more` a third of all others,
    which is not the same one for both engines.

    Args:
        planner: The planner.
        builder: The builder.
        case: The number of the case.
        program: The number of its program.
        place: The number of the program among those of all cases.
    """
    if builder == "iterator":
        return
    yield getattr(pytest.mark, builder)
    if planner == "greedy":
        yield pytest.mark.slow
    elif program or case % 14:
        yield pytest.mark.slow if (place + (builder == "beam")) % 3 else pytest.mark.more


PLACED = [
    (case, number, program, language, text)
    for number, case in enumerate(CASES)
    for program, (language, text) in enumerate(case.programs)
]
GRID = [
    pytest.param(
        case, language, text, planner, builder,
        id=f"{case.title} [{language}]-{planner}-{builder}",
        marks=(*marks_of(planner, builder, number, program, place),),
    )
    for place, (case, number, program, language, text) in enumerate(PLACED)
    for planner, builder in RUNS
]  # fmt: skip


@pytest.mark.parametrize(("case", "language", "text", "planner", "builder"), GRID)
def test_case(case: cases.Case, language: str, text: str, planner: str, builder: str) -> None:
    assert_outputs(
        compiled(case, language, text),
        case.events,
        case.expected,
        case.static,
        planner=planner,
        builder=builder,
        output=case.output,
    )


@pytest.mark.parametrize(("case", "language", "text"), PROGRAMS)
def test_the_oracle_agrees_with_the_case(case: cases.Case, language: str, text: str) -> None:
    system = replace(compiled(case, language, text), output=case.output)
    expected = [(time, fact) for time, fact, *_ in oracle.outputs(system, case.events, case.static)]
    assert not difference(expected, case.expected)


def test_titles_are_unique() -> None:
    titles = [case.title for case in CASES]
    assert len(set(titles)) == len(titles)
