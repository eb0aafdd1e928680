"""What the suites share: compile a program or say why it is left out, run it to its last answer, compare rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import squall
from squall import plugins
from squall.contracts import Options, Translator
from squall.errors import Errors, LexerError, SquallError, TranslatorError
from squall.functions.values import value_key
from squall.model import AtomPattern, Construct, Pattern, System, Variable, with_windows
from squall.plan.seeds import FIXED_SEED
from squall.rdf import ALWAYS, Atom, Event, Fact, Term, Triple, iri, is_literal
from squall.rdf.compounds import is_compound
from squall.testing import isomorphic
from tests.conformance import LeftOut, Stages

UNSUPPORTED = ("is not supported", "is not bound where", "what depends on it")
"""The messages by which the lexer, the translator and stratification refuse a program that squall does not support."""


def compiled(text: str, language: str, profile: str = "default") -> System:
    """Compiles a program; raises LeftOut, in the words of the stage that refuses it, if it is not supported."""
    if language not in plugins.names(plugins.LEXERS):
        raise LeftOut(f"there is no lexer for `{language}` yet")
    return _supported(lambda: squall.compile(text, lexer=language, profile=profile))


def translated(tree: Any, translator: Translator) -> System:
    """Returns the system of a tree, as `compiled` returns that of a text."""
    return _supported(lambda: translator(tree))


def _supported(make: Callable[[], System]) -> System:
    try:
        return make()
    except SquallError as error:
        reasons = [item.message for item in _each(error) if isinstance(item, LexerError | TranslatorError)]
        if reasons and all(any(phrase in reason for phrase in UNSUPPORTED) for reason in reasons):
            raise LeftOut(", ".join(dict.fromkeys(reasons))) from error
        raise


def _each(error: SquallError) -> Sequence[SquallError]:
    return error.errors if isinstance(error, Errors) else (error,)


def answer(system: System, facts: Iterable[Fact], stages: Stages, static: Iterable[Fact] = ()) -> set[Fact]:
    """Returns all facts that hold after the given facts, which arrive together, and the static facts."""
    plan = squall.plan(replace(system, output="rstream"), stages.planner)
    job = squall.build(plan, stages.builder, Options(seed=FIXED_SEED))
    arriving = Event(0, tuple(facts))
    outputs = list(job.run([[arriving]], [Event(ALWAYS, (fact,)) for fact in static]))
    last = max((out.time for out in outputs), default=0)  # what has no patterns is evaluated before all events only
    return {out.fact for out in outputs if out.time == last and isinstance(out.fact, Triple | Atom)}


HELD = iri("urn:x-test:held")
_SPO = (Variable("s"), Variable("p"), Variable("o"))
_PROBE = System(
    "probe", joinables=(Pattern(*_SPO),), consequences=(Construct((AtomPattern(HELD, _SPO),)),), reentrant=False
)
"""A rule that outputs all facts, given or derived."""


class Model(NamedTuple):
    """The facts that hold in the end. held: all triples; derived: those that rules make."""

    held: set[Triple]
    derived: set[Triple]


def model(system: System, events: Sequence[Event], stages: Stages, static: Iterable[Fact] = ()) -> Model:
    """Returns what holds after the last event, when all updates have been applied. Triples with a literal as subject do
    not count, nor do those with a term built of terms."""
    probed = with_windows(System(subsystems=(system, _PROBE), output="rstream"), removals=True)
    job = squall.build(squall.plan(probed, stages.planner), stages.builder, Options(seed=FIXED_SEED))
    outputs = list(job.run([events], [Event(ALWAYS, (fact,)) for fact in static]))
    last = max([event.time for event in events] + [out.time for out in outputs], default=0)
    facts = [out.fact for out in outputs if out.time == last]
    atoms = [Triple(*fact.arguments) for fact in facts if isinstance(fact, Atom) and fact.relation == HELD]
    buffer = {fact for fact in atoms if fact.subject[0] != '"' and not is_compound(fact.object)}
    return Model(buffer, {fact for fact in facts if isinstance(fact, Triple)})


def same(left: Iterable[Sequence[Term]], right: Iterable[Sequence[Term]], by_value: bool = False) -> bool:
    """Returns whether two sets of rows are equal up to the names of blank nodes. With `by_value`, literals are compared
    by their values."""
    return isomorphic(_rows(left, by_value), _rows(right, by_value))


def _rows(rows: Iterable[Sequence[Term]], by_value: bool) -> set[tuple[Term, ...]]:
    return {tuple(_value(term) if by_value and is_literal(term) else term for term in row) for row in rows}


def _value(literal: Term) -> Term:
    """Returns a text that equal values share."""
    return Term(f'"{value_key(literal)}"')
