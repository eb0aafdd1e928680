"""Hostile or malformed Jena rules give only errors of the stage, in time linear in the text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import squall
from squall import rulesets
from squall.checking import lint
from squall.errors import Errors, LexerError, Origin, SquallError
from squall.lexers.jena import lexer
from squall.testing.cases import load
from tests.laws import examples_of
from tests.test_jena_builtins import EXAMPLES, written

HERE = Path(__file__).parent

PROGRAMS = [
    *(rulesets.path(name).read_text(encoding="utf-8")[:2000] for name in rulesets.names()),
    *(text for case in load(HERE / "cases" / "jena.case") for language, text in case.programs if language == "jena"),
    *map(written, EXAMPLES.values()),
]
PIECES = (
    "[", "]", "(", ")", "->", "<-", ".", ",", " ", "\n", "'", '"', "\\", "^^", "<", ">", "?", "_", ":", "@prefix ",
    "@include <x>\n", "#", "//", "?x", "f(", "noValue(", "remove(0)", "hide(?x)", "listLength(", "print(", "5", "-",
    "9" * 5000, "\x00", "\u2028", "\ufeff", "\ud800", "é", "'1'^^xsd:int", "rdf:type", "urn:x",
)  # fmt: skip


@st.composite
def slips(draw: st.DrawFn) -> str:
    """Draws a program with parts cut out, repeated, or replaced."""
    text = draw(st.sampled_from(PROGRAMS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        text = text[:start] + draw(st.sampled_from((*PIECES, text[start:end] * 2))) + text[end:]
    return text


def compiled(text: str) -> None:
    with suppress(SquallError):
        squall.plan(squall.compile(text, lexer="jena", profile="jena"), "greedy")


@settings(max_examples=examples_of(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(slips())
def test_a_program_with_slips_is_compiled_or_refused(text: str) -> None:
    compiled(text)


@pytest.mark.slow
@settings(max_examples=examples_of(5000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(slips())
def test_many_programs_with_slips_are_compiled_or_refused(text: str) -> None:
    compiled(text)


@settings(max_examples=examples_of(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(slips())
def test_a_program_with_slips_is_checked(text: str) -> None:
    lint(text, lexer="jena")


@pytest.mark.slow
@settings(max_examples=examples_of(1500), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(slips())
def test_many_programs_with_slips_are_checked(text: str) -> None:
    lint(text, lexer="jena")


LONG: dict[str, Callable[[int], str]] = {
    "rules": lambda number: f"[r{number}: (?a <urn:p{number}> ?b) lessThan(?b 5) -> (?a <urn:q> 'x')]\n",
    "rules on one line": lambda number: f"[r{number}: (?a <urn:p{number}> ?b) -> (?a <urn:q> 'x')] ",
    "rules that are wrong": lambda number: f"[r{number}: (?a b:c ?d) -> (?a <urn:q> ?e)]\n",
    "one rule": lambda number: f"(?a <urn:p{number}> ?b)\n",
    "brackets": lambda number: "[ ",
    "parentheses": lambda number: "( ",
    "texts": lambda number: "'a ",
    "prefixes": lambda number: f"@prefix p{number}: <urn:{number}> .\n",
    "what is no prefix": lambda number: "@prefix\n",
    "comments": lambda number: "# nothing\n",
    "arrows": lambda number: "-> ",
}


def seconds(piece: Callable[[int], str], size: int) -> float:
    """Returns the CPU time that it takes to read a text of that many characters."""
    parts: list[str] = []
    length = 0
    for number in count():
        if length >= size:
            break
        parts.append(piece(number))
        length += len(parts[-1])
    text = "".join(parts)
    begun = process_time()
    with suppress(LexerError, Errors):
        lexer(text, "test")
    return process_time() - begun


def is_linear(piece: Callable[[int], str], size: int) -> bool:
    """Returns whether four times the text ever took clearly less than sixteen times as long.

    A busy machine makes one measurement wrong, not each of them: quadratic time fails every time.
    """
    return any(seconds(piece, 4 * size) < 10 * seconds(piece, size) + 0.1 for _ in range(5))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG)
def test_four_megabytes_take_no_sixteen_times_as_long_as_one(kind: str) -> None:
    assert is_linear(LONG[kind], 1_000_000)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", LONG)
def test_four_times_the_text_takes_no_sixteen_times_as_long(kind: str) -> None:
    assert is_linear(LONG[kind], 30_000)


@pytest.mark.parametrize(
    "rule", ["[-> (a b {})]", "[(?x <urn:p> ?y) sum(?y {0} ?z) -> (?x <urn:p> {0})]", "[(?x ?y ?z) -> remove({0})]"]
)
def test_numbers_of_any_length(rule: str) -> None:
    compiled(rule.format("9" * 5000))
    compiled(rule.format("-" + "9" * 5000))


@pytest.mark.parametrize(
    "text", ["@prefix : <\ud800urn:> .\n[(?x :p ?y) makeTemp(?z) -> (?x :p ?z)]", "[-> (a b '\udfff')]"]
)
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(LexerError, match="half a character"):
        squall.compile(text, lexer="jena")


def test_messages_quote_an_excerpt_of_a_long_line() -> None:
    text = "\n" + "a" * 500 + "HERE" + "b" * 500 + "\r\n\u2028c"
    first, second = Origin("x", text, 2, 501, 4).excerpt.splitlines()
    assert first == "2 | ... " + "a" * 100 + "HERE" + "b" * 96 + " ..."
    assert second == "  | " + " " * 104 + "^^^^"
    assert Origin("x", text, 2, 1, 2000).excerpt == f"2 | {'a' * 200} ...\n  | {'^' * 200}"
    assert Origin("x", text, 2, 1004, 1).excerpt.splitlines()[0] == f"2 | ... {'b' * 200}"
    assert Origin("x", text, 3, 2, 1).excerpt == "3 | \u2028c\n  |  ^"
