"""Functions on dates and times (SPARQL 1.1, section 17.4.5). The parts are those that are written, in the time zone of
the literal."""

from __future__ import annotations

from collections.abc import Callable

from squall.functions import Function, temporal
from squall.functions.ordering import key
from squall.functions.sparql.names import OWN, Maybe, Members, defined
from squall.functions.values import date_time, point, zone_text
from squall.rdf import ALWAYS, literal

_DAYS = ("dateTime", "date")
_CLOCKS = ("dateTime", "time")


def _part(name: str, families: tuple[str, ...]) -> Callable[[Maybe], Maybe]:
    read = temporal.FIELDS[name]

    def compute(term: Maybe) -> Maybe:
        at = None if term is None else point(term)
        return read(at) if at is not None and at.family in families else None

    return compute


def _timezone(term: Maybe) -> Maybe:
    at = None if term is None else point(term)
    return temporal.of_zone(at.zone) if at is not None and at.zone is not None else None


def _tz(term: Maybe) -> Maybe:
    at = None if term is None else point(term)
    return None if at is None else literal(zone_text(at.zone))


def _now(time: int) -> Maybe:
    """Returns the instant as an xsd:dateTime in UTC; for static data, the epoch."""
    return date_time(0 if time == ALWAYS else time)


def _latest(*times: Maybe) -> Maybe:
    """Returns the last term in the order of terms. Unbound ones do not count."""
    return max((time for time in times if time is not None), key=key, default=None)


LATEST = Function(OWN + "latest", _latest, 1, None, doc="the last, in the order of terms, of those that are bound")

MEMBERS: Members = (
    LATEST,
    *defined("NOW", "now", _now, 0, 0, "the instant of evaluation, in UTC", timed=True),
    *defined("YEAR", "year", _part("year", _DAYS), 1, 1, "the year of a date or dateTime"),
    *defined("MONTH", "month", _part("month", _DAYS), 1, 1, "the month of a date or dateTime"),
    *defined("DAY", "day", _part("day", _DAYS), 1, 1, "the day of the month of a date or dateTime"),
    *defined("HOURS", "hours", _part("hours", _CLOCKS), 1, 1, "the hour of a time or dateTime"),
    *defined("MINUTES", "minutes", _part("minutes", _CLOCKS), 1, 1, "the minute of a time or dateTime"),
    *defined("SECONDS", "seconds", _part("seconds", _CLOCKS), 1, 1, "the seconds of a time or dateTime, a decimal"),
    *defined("TIMEZONE", "timezone", _timezone, 1, 1, "the time zone as an xsd:dayTimeDuration"),
    *defined("TZ", "tz", _tz, 1, 1, "the time zone, empty if there is none; `Z` for `+00:00`"),
)
