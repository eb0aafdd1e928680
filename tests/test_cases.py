"""Runs every case in every language x planner x builder, and compares the languages that a case has."""

from __future__ import annotations

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


PROLOGUES = {"jena": "@prefix : <http://example.org/> ."}
"""The declaration of the prefixes of the events in a language. It is not on a line of its own, so that places stay
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


RUNS = [
    ("greedy", "iterator", ()),
    ("rete", "iterator", ()),
    ("rete", "spark", (pytest.mark.spark, pytest.mark.sampled(4))),
    ("greedy", "spark", (pytest.mark.spark, pytest.mark.slow)),
    ("rete", "beam", (pytest.mark.beam, pytest.mark.sampled(4))),
]
"""Planner, builder and marks. In `make test` an engine runs the first program of every fourth case, in `make test-more`
all others."""

GRID = [
    pytest.param(
        case, language, text, planner, builder,
        id=f"{case.title} [{language}]-{planner}-{builder}",
        marks=(*marks, *([pytest.mark.more] if builder != "iterator" and number else [])),
    )
    for case in CASES
    for number, (language, text) in enumerate(case.programs)
    for planner, builder, marks in RUNS
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
    expected = [(time, fact) for time, fact, _ in oracle.outputs(system, case.events, case.static)]
    assert not difference(expected, case.expected)


def test_titles_are_unique() -> None:
    titles = [case.title for case in CASES]
    assert len(set(titles)) == len(titles)
