"""The instants at which a test of the time may begin to have another result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from squall.functions.deadlines import MAX_ZONE_MS, time_operands
from squall.functions.values import duration, point
from squall.model import Filter, System
from squall.rdf import Atom, Event, Fact, Term


def deadlines(program: Iterable[System], events: Iterable[Event]) -> set[int]:
    """Returns the instants (integer ms) just before, at and just after each dateTime of a program and of its data, and
    each of their durations before and after it, if the program tests the time; and those 14 hours apart, from which on
    it has an order to a dateTime without a zone.

    Static facts hold since 0, before which no instant is evaluated for the time alone.
    """
    # In one piece: comprehensions, each a sentence of the definition.
    parts = [part for rule in program for part in _parts(rule)]
    if not any(isinstance(part, Filter) and time_operands(part.expression) for part in parts):
        return set()
    terms = {Term(part) for part in parts if isinstance(part, str) and part}
    terms |= {term for event in events for fact in (*event.facts, *event.removed) for term in _terms(fact)}
    times = {time for term in terms for time in _times(term)}
    for _ in range(2):  # of `NOW() - ?x - ?d`
        times |= {time + length for time in times for length in _lengths(terms)}
    return {time + step for time in times for step in (-1, 0, 1) if time + step > 0}


def _lengths(terms: Iterable[Term]) -> set[int]:
    """Returns the lengths of the durations without months (integer ms), in both directions."""
    lengths = {length for term in terms if (length := duration(term)) is not None and not length.months}
    return {sign * int(length.seconds * 1000) for length in lengths for sign in (-1, 1)}


def _terms(fact: Fact) -> tuple[Term, ...]:
    return fact.arguments if isinstance(fact, Atom) else (fact.subject, fact.predicate, fact.object)


def _parts(part: Any) -> Iterator[Any]:
    yield part
    if isinstance(part, tuple):
        for member in part:
            yield from _parts(member)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _parts(getattr(part, field.name))


def _times(term: Term) -> Iterator[int]:
    at = point(term)
    if at is not None:
        time = at.seconds * 1000 + int(f"{at.fraction}000"[:3])
        zones = (-MAX_ZONE_MS, 0, MAX_ZONE_MS) if at.zone is None else (at.zone * 1000,)
        yield from (time - zone for zone in zones)
