"""The check ``unbounded-sequence``: patterns over time whose occurrences have to be stored for ever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program
from squall.errors import Origin
from squall.model import Occurrences, System
from squall.model.walk import walk

_HINT = (
    "bound the pattern from its begin to its end: `WITHIN 1h` behind it; in EP-SPARQL beside it "
    '`FILTER(getDURATION() < "PT1H"^^xsd:duration)`; '
    "in CQELS-QL and RSP-QL also by the window of its stream, `[RANGE 1h]`"
)


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each pattern over time of which a part is read through a window that never expires.

    The place is that of the first part.
    """
    steps = {rule.stream: rule.system for rule in program.rules if rule.stream}
    parts = {source.iri for rule in program.rules for source in occurrence_sources(rule.system)}
    for rule in program.rules:
        if rule.stream in parts:
            continue  # a part of a pattern, which is looked at with the whole
        source = next((source for source in _all_sources(rule.system, steps) if not source.window.expires), None)
        if source is None:
            continue
        step = steps.get(source.iri)
        origin = None if step is None else step.origin
        words = "" if origin is None or "\n" in origin.words else f" of `{origin.words}`"
        message = f"`{rule.name}` stores all occurrences{words} for ever: what follows them may come at any time"
        yield Finding("unbounded-sequence", WARNING, message, _origin(source, steps) or rule.origin, _HINT)


def occurrence_sources(rule: System) -> Iterator[Occurrences]:
    """Yields the streams of occurrences that a rule reads."""
    for part in walk(rule):
        if isinstance(part, System):
            yield from (source for source in part.sources if isinstance(source, Occurrences))


def _all_sources(rule: System, steps: Mapping[str, System]) -> Iterator[Occurrences]:
    """Yields the streams of occurrences that a rule reads, each behind those that its own rule reads."""
    for source in occurrence_sources(rule):
        if (step := steps.get(source.iri)) is not None:
            yield from _all_sources(step, steps)
        yield source


def _origin(source: Occurrences, steps: Mapping[str, System]) -> Origin | None:
    """Returns the place of the first step of the pattern whose occurrences a source reads."""
    step = steps.get(source.iri)
    if step is None or step.origin is not None:
        return None if step is None else step.origin
    places = (_origin(inner, steps) for inner in occurrence_sources(step))
    return next((place for place in places if place is not None), None)
