"""Times in data: time stamps of lines, literals, and properties of subjects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from squall.functions.values import instant, number
from squall.rdf import ALWAYS, FOREVER, Fact, Quad, Term, Triple, iri_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_INTEGER = re.compile(r"-?[0-9]+")
_END_OF_DAY = re.compile(r"(.+[T ])24((?::?00){0,2}(?:[.,]0+)?(?:Z|[+-].+)?)")
"""The end of a day as XML Schema writes it, which is the first instant of the next one."""


def time_of(stamp: str) -> int:
    """Parses a time stamp to integer ms, truncated. Raises SyntaxError if it is none."""
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
    """Returns the time (integer ms since the epoch) that a literal denotes; None if it denotes none.

    ``xsd:dateTime``, ``xsd:dateTimeStamp`` and ``xsd:date`` (its first instant) are in UTC if they name no zone, and
    truncated to milliseconds. ``xsd:integer`` and derived types (``xsd:long``) are milliseconds.
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
    if "24" in stamp and (match := _END_OF_DAY.fullmatch(stamp)) is not None:
        return _of_iso(f"{match[1]}00{match[2]}") + _DAY_MS
    moment = datetime.fromisoformat(stamp)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


def property_time(facts: Iterable[Fact | Quad], property: Term) -> int:
    """Returns the time (integer ms) of a property of any subject of some facts, the earliest if there are several.

    Raises:
        ValueError: There is none. Its text says what is wrong.
    """
    values = [fact[2] for fact in facts if isinstance(fact, Triple | Quad) and fact[1] == property]
    times = [time for time in map(moment, values) if time is not None]
    if not times:
        raise ValueError(f"`{values[0]}` is no time" if values else f"it has no {iri_text(property)}")
    return min(times)
