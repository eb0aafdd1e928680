"""Times as data say them: stamps of lines, literals, and properties of what is said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from squall.functions.values import instant, number
from squall.rdf import ALWAYS, FOREVER, Fact, Quad, Term, Triple, iri_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_INTEGER = re.compile(r"-?[0-9]+")


def time_of(stamp: str) -> int:
    """The time (integer ms) that a stamp says; what is finer than a millisecond is cut off. Raises SyntaxError."""
    if stamp == "-infinity":
        return ALWAYS
    try:
        time = int(stamp) if _INTEGER.fullmatch(stamp) else _of_iso(stamp)
    except ValueError:
        raise SyntaxError(f"`{stamp}` is no time (integer milliseconds, ISO 8601 or -infinity)") from None
    if not ALWAYS < time < FOREVER:
        raise SyntaxError(f"the time `{stamp}` does not fit into 64 bits")
    return time


def moment(term: Term) -> int | None:
    """The time (integer ms since the epoch) that a literal denotes; None if it denotes none.

    ``xsd:dateTime``, ``xsd:dateTimeStamp`` and ``xsd:date`` (its first instant), in UTC where they name no zone, finer
    than a millisecond cut off; ``xsd:integer`` and what is derived from it (``xsd:long``): milliseconds.
    """
    point = instant(term)
    if point is not None and point.family in ("dateTime", "date"):
        time = point.seconds * 1000 + int(f"{point.fraction}000"[:3])
    elif (value := number(term)) is not None and isinstance(value.value, int):
        time = value.value
    else:
        return None
    return time if ALWAYS < time < FOREVER else None


def _of_iso(stamp: str) -> int:
    moment = datetime.fromisoformat(stamp)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


def property_time(facts: Iterable[Fact | Quad], property: Term) -> int:
    """The time (integer ms) that a property of any subject of some facts says, the least of several. Raises ValueError,
    which says what is wrong, if there is none."""
    values = [fact[2] for fact in facts if isinstance(fact, Triple | Quad) and fact[1] == property]
    times = [time for time in map(moment, values) if time is not None]
    if not times:
        raise ValueError(f"`{values[0]}` is no time" if values else f"it has no {iri_text(property)}")
    return min(times)
