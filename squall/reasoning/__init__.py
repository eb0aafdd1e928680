"""Reasoning over streams: entailment with a schema that is known before the run, compiled into patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from squall.errors import ArgumentError, UsageError, did_you_mean
from squall.model import System
from squall.rdf import Triple
from squall.reasoning.schema import REGIMES, Schema

NONE = "none"
"""The name of the regime in which patterns have no more than what they read."""


def read_schema(data: Iterable[str | Path | Triple], regime: str) -> Schema:
    """Returns the schema of some data, closed under an entailment regime.

    Args:
        data: Files (addresses of static data), and triples. What they say of individuals is left out.
        regime: The name of the regime, ``rhodf`` or ``rdfs``.

    Raises:
        UsageError: There is no such regime, or it cannot be compiled with this schema.
        SourceError: A file cannot be read.
    """
    if regime not in REGIMES:
        hint = did_you_mean(regime, (NONE, *REGIMES)) or f"there is {', '.join((NONE, *REGIMES))}"
        raise UsageError(f"there is no entailment regime `{regime}`", hint=hint)
    return Schema(_triples(data), regime)


def _triples(data: Iterable[str | Path | Triple]) -> Iterator[Triple]:
    from squall.streams import open_static

    for item in data:
        if isinstance(item, Triple):
            yield item
            continue
        if not isinstance(item, str | Path):
            raise ArgumentError(f"`{item!r}` in `schema` is neither a file nor a Triple")
        for event in open_static(str(item)):
            yield from (fact for fact in event.facts if isinstance(fact, Triple))


def regime_of(system: System, default: str) -> str:
    """Returns the entailment regime of the patterns of a system.

    Args:
        system: A program, or a system of programs.
        default: The regime of programs that name none.

    Returns:
        The regime of some programs; ``none`` if none of them has one.

    Raises:
        UsageError: There are two.
    """
    programs = system.subsystems if any(part.entailment for part in system.subsystems) else (system,)
    regimes = sorted({program.entailment or default for program in programs} - {NONE})
    if len(regimes) > 1:
        message = f"the programs of a run have one entailment regime, not both `{regimes[0]}` and `{regimes[1]}`"
        raise UsageError(message, hint="run them one by one, or give some of them `none`")
    return regimes[0] if regimes else NONE


def check_no_schema(schema: object) -> None:
    """Raises UsageError if there is a schema, which no pattern uses. A function that would return one is not called."""
    if not callable(schema) and schema != ():
        raise UsageError("a schema is given without an entailment regime", hint='name it: `entailment="rhodf"`')


def with_entailment(system: System, schema: Schema, default: str) -> System:
    """Returns the system in which patterns have the solutions that they have under entailment (see `patterns`).

    Args:
        system: The system, with all windows.
        schema: The schema, closed under the regime of the system (`regime_of`).
        default: The regime of programs that name none.

    Raises:
        UsageError: The system has rule sets or ontologies.
        TranslatorError: A rule derives schema triples, or depends on itself through a negation.
    """
    from squall.model.stratification import stratify
    from squall.reasoning import patterns

    if any(part.is_background for part in (system, *system.subsystems)):
        message = "rule sets (and ontologies) and an entailment regime exclude each other"
        raise UsageError(message, hint="leave one of them out")
    entailed = patterns.with_entailment(system, schema, default)
    stratify(entailed)
    return entailed
