"""Whether what queries keep is bounded: warnings of those that join, count or negate over streams without a window."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from squall.errors import TranslatorWarning
from squall.model import (
    Arrivals,
    Exists,
    FactPattern,
    Joinable,
    Optional,
    Predicate,
    System,
    Union,
    Without,
    rules,
    streams,
)
from squall.model.windows import Landmark

_HINT = (
    "give the stream a window: `FROM STREAM <stream> [RANGE 10s]` in C-SPARQL, `?window=RANGE 10s` in its address, or "
    "`--window 'RANGE 10s'`"
)


def unbounded(system: System, given: Collection[str] | None = None) -> tuple[TranslatorWarning, ...]:
    """A warning for each query that keeps more and more for ever, as it is to be run: with its windows
    (`squall.model.over`).

    given: the streams, by IRI, that bring events (``""`` is the default one); None: those that the program names. A
    query is a rule whose facts are not read again: rules that feed each other are there to keep what they derive.
    """
    names = {stream.iri for stream in streams(system)} if given is None else set(given)
    found = (next(_Query(rule.name, names).reasons(rule), None) for rule in rules(system) if not rule.reentrant)
    return tuple(warning for warning in found if warning is not None)


class _Query:
    """A query by its name, and the streams that bring events."""

    def __init__(self, name: str, given: Collection[str]) -> None:
        self.name = name
        self.given = given

    def reasons(self, part: System) -> Iterator[TranslatorWarning]:
        """Why a part of the query keeps more and more."""
        growing = [found for one in part.joinables if (found := self._growing(one, part)) is not None]
        if len(growing) > 1:
            yield self._warning(growing[1], f"to join it with {written(growing[0])}")
        if growing and part.grouping is not None:
            yield self._warning(growing[0], "to aggregate it")
        for predicate in part.predicates:
            for found in (*self._looked_at(predicate, part), *growing):
                yield from (self._warning(found, why) for why in _purposes(predicate))
        for one in part.joinables:
            for inner in _parts(one):
                yield from self.reasons(inner)

    def _looked_at(self, predicate: Predicate, part: System) -> Iterator[FactPattern]:
        """The patterns of a predicate that find more and more."""
        match predicate:
            case Without(joinables=joinables):
                inner = [self._growing(one, part) for one in joinables]
            case Optional(system=system) | Exists(system=system):
                inner = [self._first(system)]
            case _:
                return
        yield from (found for found in inner if found is not None)

    def _growing(self, joinable: Joinable, part: System) -> FactPattern | None:
        """A pattern of what is joined that finds more and more."""
        if isinstance(joinable, FactPattern):
            return joinable if self._is_open(part) else None
        return next((found for inner in _parts(joinable) if (found := self._first(inner)) is not None), None)

    def _first(self, part: System) -> FactPattern | None:
        return next((found for one in part.joinables if (found := self._growing(one, part)) is not None), None)

    def _is_open(self, part: System) -> bool:
        """Whether the patterns of a part read a stream without a window."""
        return any(
            source.reads(stream) and isinstance(source.window_of(stream), Landmark)
            for source in part.sources
            for stream in self.given
        )

    def _warning(self, found: FactPattern, why: str) -> TranslatorWarning:
        message = f"`{self.name}` keeps all that {written(found)} ever finds in streams without a window, {why}"
        return TranslatorWarning(message, found.origin, _HINT)


def _parts(joinable: Joinable) -> tuple[System, ...]:
    match joinable:
        case System():
            return (joinable,)
        case Union(branches=branches):
            return branches
        case _:
            return ()


def _purposes(predicate: Predicate) -> Iterator[str]:
    """For what a predicate needs what has been found."""
    match predicate:
        case Optional(system=System(sources=sources, grouping=grouping)):
            told = grouping is not None and all(isinstance(source, Arrivals) for source in sources)
            yield "for `timestamp`" if told else "for an `OPTIONAL`"
        case Exists():
            yield "for an `EXISTS`"
        case Without(minus=minus):
            yield "for a `MINUS`" if minus else "for a negation"


def written(pattern: FactPattern) -> str:
    """A pattern as its program has it."""
    words = "" if pattern.origin is None else pattern.origin.words
    return f"`{words or ' '.join(map(str, pattern.slots))}`"
