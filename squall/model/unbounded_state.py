"""Warnings about unbounded state: queries that join, aggregate or negate over streams without a window."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from squall.errors import TranslatorWarning
from squall.model import (
    Arrivals,
    Exists,
    FactPattern,
    Joinable,
    Minus,
    Negation,
    NotExists,
    Optional,
    Predicate,
    SequenceJoin,
    System,
    Temporal,
    Union,
    rules,
    streams,
)

_HINT = (
    "give the stream a window: `FROM STREAM <stream> [RANGE 10s]` in C-SPARQL, `?window=RANGE 10s` in its address, or "
    "`--window 'RANGE 10s'`"
)


def unbounded_state_warnings(
    system: System, event_streams: Collection[str] | None = None
) -> tuple[TranslatorWarning, ...]:
    """Returns a warning for each query whose state grows without bound.

    A query is a rule whose facts no rule reads again: rules that feed each other are there to keep what they derive.

    Args:
        system: The system as it is to be run, with its windows (`squall.model.with_windows`).
        event_streams: The streams, by IRI, that bring events (``""`` is the default one). None means those that the
            program names.
    """
    names = {stream.iri for stream in streams(system)} if event_streams is None else set(event_streams)
    findings = (next(_Query(rule.name, names).reasons(rule), None) for rule in rules(system) if not rule.reentrant)
    return tuple(warning for warning in findings if warning is not None)


class _Query:
    """A query by its name, and the streams that bring events."""

    def __init__(self, name: str, event_streams: Collection[str]) -> None:
        self.name = name
        self.event_streams = event_streams

    def reasons(self, part: System) -> Iterator[TranslatorWarning]:
        """Yields the reasons why the state of a part of the query grows without bound."""
        growing = [
            pattern for joinable in part.joinables if (pattern := self._growing_in_joinable(joinable, part)) is not None
        ]
        if len(growing) > 1:
            yield self._warning(growing[1], f"to join it with {pattern_text(growing[0])}")
        if growing and part.grouping is not None:
            yield self._warning(growing[0], "to aggregate it")
        for predicate in part.predicates:
            for pattern in (*self._growing_in_predicate(predicate, part), *growing):
                yield from (self._warning(pattern, reason) for reason in _purposes(predicate))
        for joinable in part.joinables:
            for inner in _parts(joinable):
                yield from self.reasons(inner)

    def _growing_in_predicate(self, predicate: Predicate, part: System) -> Iterator[FactPattern]:
        """Yields the patterns of a predicate whose matches grow without bound."""
        match predicate:
            case Negation(joinables=joinables):
                inner = [self._growing_in_joinable(joinable, part) for joinable in joinables]
            case Optional(system=system) | Exists(system=system):
                inner = [self._growing_in_part(system)]
            case _:
                return
        yield from (pattern for pattern in inner if pattern is not None)

    def _growing_in_joinable(self, joinable: Joinable, part: System) -> FactPattern | None:
        """Returns a pattern in a joinable whose matches grow without bound, if there is one."""
        if isinstance(joinable, FactPattern):
            return joinable if self._is_open(part) else None
        return next(
            (pattern for inner in _parts(joinable) if (pattern := self._growing_in_part(inner)) is not None), None
        )

    def _growing_in_part(self, part: System) -> FactPattern | None:
        return next(
            (
                pattern
                for joinable in part.joinables
                if (pattern := self._growing_in_joinable(joinable, part)) is not None
            ),
            None,
        )

    def _is_open(self, part: System) -> bool:
        """Returns whether the patterns of a part read a stream without a window."""
        return any(
            source.reads(stream) and not (window.expires or window.is_empty)
            for source in part.sources
            for stream in self.event_streams
            for window in [source.window_of(stream)]
        )

    def _warning(self, pattern: FactPattern, reason: str) -> TranslatorWarning:
        message = f"`{self.name}` stores all matches of {pattern_text(pattern)} in streams without a window, {reason}"
        return TranslatorWarning(message, pattern.origin, _HINT)


def _parts(joinable: Joinable) -> tuple[System, ...]:
    match joinable:
        case System():
            return (joinable,)
        case Union(branches=branches):
            return branches
        case SequenceJoin(sides=sides):
            return sides
        case Temporal(system=system):
            return (system,)
        case _:
            return ()


def _purposes(predicate: Predicate) -> Iterator[str]:
    """Yields what a predicate needs the state for."""
    match predicate:
        case Optional(system=System(sources=sources, grouping=grouping)):
            is_timestamp = grouping is not None and all(isinstance(source, Arrivals) for source in sources)
            yield "for `timestamp`" if is_timestamp else "for an `OPTIONAL`"
        case Exists():
            yield "for an `EXISTS`"
        case Minus():
            yield "for a `MINUS`"
        case NotExists():
            yield "for a negation"


def pattern_text(pattern: FactPattern) -> str:
    """Returns a pattern as its program has it."""
    words = "" if pattern.origin is None else pattern.origin.words
    return f"`{words or ' '.join(map(str, pattern.slots))}`"
