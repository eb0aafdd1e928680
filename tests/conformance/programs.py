"""What the suites share: compile a program or say why it is left out, run it to its last answer, compare rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import squall
from squall import plugins
from squall.errors import Errors, LexerError, SquallError, TranslatorError
from squall.functions.values import value_key
from squall.rdf import ALWAYS, Atom, Event, Fact, Term, Triple, is_literal
from squall.stages import Options, Translator
from squall.system import System
from squall.testing import isomorphic
from tests.conformance import LeftOut, Stages

UNSUPPORTED = ("not supported yet", "nothing in the body binds it", "is not bound where", "what depends on it")
"""How the lexer, the translator and the check for strata say that a program lies beyond what squall does."""


def compiled(text: str, language: str) -> System:
    """The system of a program; raises LeftOut, in the words of the stage that refuses it, if it asks for too much."""
    if language not in plugins.names(plugins.LEXERS):
        raise LeftOut(f"there is no lexer for `{language}` yet")
    return _supported(lambda: squall.compile(text, lexer=language))


def translated(tree: Any, translator: Translator) -> System:
    """The system of a tree, as `compiled` has it of a text."""
    return _supported(lambda: translator(tree))


def _supported(make: Callable[[], System]) -> System:
    try:
        return make()
    except SquallError as error:
        reasons = [one.message for one in _each(error) if isinstance(one, LexerError | TranslatorError)]
        if reasons and all(any(phrase in reason for phrase in UNSUPPORTED) for reason in reasons):
            raise LeftOut(", ".join(dict.fromkeys(reasons))) from error
        raise


def _each(error: SquallError) -> Sequence[SquallError]:
    return error.errors if isinstance(error, Errors) else (error,)


def answer(system: System, facts: Iterable[Fact], stages: Stages, static: Iterable[Fact] = ()) -> set[Fact]:
    """All that follows once the facts, which arrive together, and the static ones hold."""
    plan = squall.plan(replace(system, output="rstream"), stages.planner)
    job = squall.build(plan, stages.builder, Options())
    arriving = Event(0, tuple(facts))
    outputs = list(job.run([[arriving]], [Event(ALWAYS, (fact,)) for fact in static]))
    last = max((out.time for out in outputs), default=0)  # what has no patterns is evaluated before all events only
    return {out.fact for out in outputs if out.time == last and isinstance(out.fact, Triple | Atom)}


def same(left: Iterable[Sequence[Term]], right: Iterable[Sequence[Term]], by_value: bool = False) -> bool:
    """Whether two sets of rows are equal up to the names of blank nodes, and by the values of literals if so wished."""
    return isomorphic(_rows(left, by_value), _rows(right, by_value))


def _rows(rows: Iterable[Sequence[Term]], by_value: bool) -> set[tuple[Term, ...]]:
    return {tuple(_value(term) if by_value and is_literal(term) else term for term in row) for row in rows}


def _value(literal: Term) -> Term:
    """A text that equal values share."""
    return Term(f'"{value_key(literal)}"')
