"""Functions on dates and times (SPARQL 1.1, section 17.4.5). The parts are those that are written, in the time zone of
the literal."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from squall.functions import Function
from squall.functions.ordering import key
from squall.functions.sparql import temporal
from squall.functions.sparql.names import OWN, Maybe, Members, defined
from squall.functions.values import Point, civil, date_time, decimal, integer, point, zone_text
from squall.rdf import ALWAYS, Term, literal

_DAYS = ("dateTime", "date")
_CLOCKS = ("dateTime", "time")


def _part(families: tuple[str, ...], read: Callable[[Point], Term]) -> Callable[[Maybe], Maybe]:
    def compute(term: Maybe) -> Maybe:
        at = None if term is None else point(term)
        return read(at) if at is not None and at.family in families else None

    return compute


def _date(place: int) -> Callable[[Maybe], Maybe]:
    return _part(_DAYS, lambda at: integer(civil(at.seconds // 86400)[place]))


def _seconds(at: Point) -> Term:
    return decimal(Decimal(f"{at.seconds % 60}.{at.fraction or '0'}"))


def _timezone(term: Maybe) -> Maybe:
    at = None if term is None else point(term)
    return temporal.of_zone(at.zone) if at is not None and at.zone is not None else None


def _tz(term: Maybe) -> Maybe:
    at = None if term is None else point(term)
    return None if at is None else literal(zone_text(at.zone))


def _now(time: int) -> Maybe:
    """The instant as an xsd:dateTime in UTC; of what holds always the epoch."""
    return date_time(0 if time == ALWAYS else time)


def _latest(*times: Maybe) -> Maybe:
    """The last in the order of terms; what is unbound does not count."""
    return max((time for time in times if time is not None), key=key, default=None)


LATEST = Function(OWN + "latest", _latest, 1, None, doc="the last, in the order of terms, of those that are bound")

MEMBERS: Members = (
    LATEST,
    *defined("NOW", "now", _now, 0, 0, "the instant of evaluation, in UTC", timed=True),
    *defined("YEAR", "year", _date(0), 1, 1, "the year of a date or dateTime"),
    *defined("MONTH", "month", _date(1), 1, 1, "the month of a date or dateTime"),
    *defined("DAY", "day", _date(2), 1, 1, "the day of the month of a date or dateTime"),
    *defined(
        "HOURS", "hours", _part(_CLOCKS, lambda at: integer(at.seconds // 3600 % 24)), 1, 1,
        "the hour of a time or dateTime",
    ),
    *defined(
        "MINUTES", "minutes", _part(_CLOCKS, lambda at: integer(at.seconds // 60 % 60)), 1, 1,
        "the minute of a time or dateTime",
    ),
    *defined("SECONDS", "seconds", _part(_CLOCKS, _seconds), 1, 1, "the seconds of a time or dateTime, a decimal"),
    *defined("TIMEZONE", "timezone", _timezone, 1, 1, "the time zone as an xsd:dayTimeDuration"),
    *defined("TZ", "tz", _tz, 1, 1, "the time zone as it is written, empty if there is none"),
)  # fmt: skip
