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


def with_entailment(system: System, schema: Schema) -> System:
    """Returns the system in which each pattern has the solutions that it has under entailment (see `patterns`)."""
    from squall.reasoning import patterns

    return patterns.with_entailment(system, schema)
