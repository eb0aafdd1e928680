"""Reasoning over streams: entailment with a schema that is known before the run, compiled into patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from squall.errors import ArgumentError, TranslatorWarning, UsageError, did_you_mean
from squall.model import System
from squall.model import rules as rules_of
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


def schema_reader(
    schema: Iterable[str | Path | Triple] | Callable[[System], Iterable[Triple]], rules: Sequence[str]
) -> Callable[[System], Iterable[Triple]]:
    """Returns a function that returns the triples by which rule sets are specialised, for a system.

    Raises:
        UsageError: There is no rule set.
    """
    if not rules:
        raise UsageError("there is no rule set to specialise", hint='name one: `rules=["rhodf"]`, or `--rules rhodf`')
    return schema if callable(schema) else lambda _: _triples(schema)


def with_guarded_sources(system: System, drops_changes: bool = False) -> System:
    """Returns a system in which no source that rules read may change the schema, if it has a fixed one.

    Args:
        system: The system, with all windows and instances of its rule sets.
        drops_changes: Whether a triple that would change it is a dead letter. Otherwise it is an error.
    """
    from squall.model.walk import walk

    if system.fixed_schema is None:
        return system
    parts = (part for rule in rules_of(system) for part in walk(rule) if isinstance(part, System))
    sources = dict.fromkeys(source for part in parts for source in part.sources if source.is_plain)
    schema = replace(system.fixed_schema, sources=tuple(sources), drops_changes=drops_changes)
    return replace(system, fixed_schema=schema)


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
    regimes = sorted(set(_regimes(system, default)) - {NONE})
    if len(regimes) > 1:
        message = f"the programs of a run have one entailment regime, not both `{regimes[0]}` and `{regimes[1]}`"
        raise UsageError(message, hint="run them one by one, or give some of them `none`")
    return regimes[0] if regimes else NONE


def names_regime_within(system: System) -> bool:
    """Returns whether a program of a system, or a query of a program, names an entailment regime of its own."""
    return any(part.entailment or names_regime_within(part) for part in system.subsystems)


def _regimes(system: System, default: str) -> Iterator[str]:
    """Yields the regimes of programs and queries: that which is named nearest to their patterns."""
    regime = system.entailment or default
    if not names_regime_within(system):
        yield regime
        return
    for part in system.subsystems:
        yield from _regimes(part, regime)


def check_no_schema(schema: object) -> None:
    """Raises UsageError if there is a schema, which no pattern uses. A function that would return one is not called."""
    if not callable(schema) and schema != ():
        hint = 'name it: `entailment="rhodf"`, or specialise a rule set: `specialise=True`'
        raise UsageError("a schema is given without an entailment regime", hint=hint)


def with_entailment(system: System, schema: Schema, default: str, drops_changes: bool = False) -> System:
    """Returns the system in which patterns have the solutions that they have under entailment (see `patterns`).

    Args:
        system: The system, with all windows.
        schema: The schema, closed under the regime of the system (`regime_of`).
        default: The regime of programs that name none.
        drops_changes: Whether a triple in a source that would change the schema is a dead letter, and no error.

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
    if entailed.fixed_schema is not None:
        entailed = replace(entailed, fixed_schema=replace(entailed.fixed_schema, drops_changes=drops_changes))
    if not schema.triples:
        hint = "give what is known of classes and properties by `--schema` or `--static` (in Python: `schema=`)"
        warning = TranslatorWarning("the schema has no triples, so that nothing follows by it", None, hint)
        entailed = replace(entailed, warnings=(*entailed.warnings, warning))
    stratify(entailed)
    return entailed
