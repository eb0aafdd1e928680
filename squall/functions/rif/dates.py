"""Functions and predicates of points in time and durations (DTB, section 4.8; XPath functions and operators, 10).

A part is read in the time zone of the value. Where two values are compared or subtracted, one without a time zone is
read as in UTC: RIF has no implicit time zone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from squall.functions import temporal
from squall.functions.rif.names import Domain, Maybe, Members, function, predicate
from squall.functions.rif.numeric import NUMBER
from squall.functions.temporal import FIELDS
from squall.functions.values import (
    ARITHMETIC,
    DAY_TIME,
    YEAR_MONTH,
    Duration,
    Number,
    Point,
    decimal,
    duration,
    instant,
    integer,
    point,
)
from squall.rdf import Term

_FAMILIES = ("dateTime", "date", "time")
_PARTS = {
    "dateTime": ("year", "month", "day", "hours", "minutes", "seconds"),
    "date": ("year", "month", "day"),
    "time": ("hours", "minutes", "seconds"),
}
_ORDERS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "less-than": (operator.lt, "less"),
    "less-than-or-equal": (operator.le, "less or equal"),
    "greater-than": (operator.gt, "greater"),
    "greater-than-or-equal": (operator.ge, "greater or equal"),
}
_EQUALITIES: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "equal": (operator.eq, "the same"),
    "not-equal": (operator.ne, "not the same"),
}


def _point(family: str) -> Domain:
    def read(term: Term) -> Point | None:
        at = point(term)
        return at if at is not None and at.family == family else None

    return Domain(family, read)


def _instant(family: str) -> Domain:
    def read(term: Term) -> Any:
        found = instant(term)
        return found if found is not None and found.family == family else None

    return Domain(family, read)


def _day_time(term: Term) -> Duration | None:
    found = duration(term)
    return found if found is not None and not found.months else None


def _year_month(term: Term) -> Duration | None:
    found = duration(term)
    return found if found is not None and not found.seconds else None


_POINTS = {family: _point(family) for family in _FAMILIES}
_INSTANTS = {family: _instant(family) for family in _FAMILIES}
_DURATION = Domain("duration", duration)
_DAY_TIME = Domain("dayTimeDuration", _day_time)
_YEAR_MONTH = Domain("yearMonthDuration", _year_month)
_DURATIONS = ((_YEAR_MONTH, YEAR_MONTH), (_DAY_TIME, DAY_TIME))


def _cut(value: int | Decimal, unit: int, within: int = 0) -> Term:
    """How many whole units there are in a length of either direction; within: so many make up the next larger unit."""
    whole = int(value)
    count = abs(whole) // unit
    count = count % within if within else count
    return integer(-count if whole < 0 else count)


def _seconds(length: Duration) -> Term:
    whole = int(length.seconds)
    minutes = abs(whole) // 60 * 60
    return decimal(ARITHMETIC.subtract(length.seconds, Decimal(-minutes if whole < 0 else minutes)))


_OF_DURATION: dict[str, Callable[[Duration], Term]] = {
    "years": lambda length: _cut(length.months, 12),
    "months": lambda length: _cut(length.months, 1, 12),
    "days": lambda length: _cut(length.seconds, 86400),
    "hours": lambda length: _cut(length.seconds, 3600, 24),
    "minutes": lambda length: _cut(length.seconds, 60, 60),
    "seconds": _seconds,
}


def _timezone(at: Point) -> Maybe:
    return None if at.zone is None else temporal.of_zone(at.zone)


def _difference(one: Point, other: Point) -> Maybe:
    return temporal.difference(one._replace(zone=one.zone or 0), other._replace(zone=other.zone or 0))


def _earlier(at: Point, length: Duration) -> Maybe:
    return temporal.later(at, temporal.negative(length))


def _less(one: Duration, other: Duration, datatype: str) -> Maybe:
    return temporal.total(one, temporal.negative(other), datatype)


def _ratio(one: Duration, other: Duration) -> Maybe:
    """By the months where there are any, since durations of one type have only one of the two parts."""
    if other.months:
        return temporal.ratio(one.months, other.months)
    return temporal.ratio(one.seconds, other.seconds)


def _scaled(power: int, datatype: str) -> Callable[[Duration, Number], Maybe]:
    return lambda length, by: temporal.scaled(length, by, power, datatype)


def _parts() -> Members:
    made: Members = ()
    for family, names in _PARTS.items():
        for name in names:
            doc = f"the {name} of a {family}"
            made += function(f"{name}-from-{family}", (_POINTS[family],), FIELDS[name], doc)
    for name, read in _OF_DURATION.items():
        made += function(f"{name}-from-duration", (_DURATION,), read, f"the {name} of a duration, with its sign")
    for family in _FAMILIES:
        doc = f"the time zone of a {family}, a dayTimeDuration"
        made += function(f"timezone-from-{family}", (_POINTS[family],), _timezone, doc)
    return made


def _arithmetic(domain: Domain, datatype: str) -> Members:
    """What can be done with durations of one type."""
    name, two, scale = domain.name, (domain, domain), (domain, NUMBER)
    rounded = ", in whole months" if datatype == YEAR_MONTH else ""
    less = partial(_less, datatype=datatype)
    add = partial(temporal.total, datatype=datatype)
    return (
        *function(f"add-{name}s", two, add, "the sum"),
        *function(f"subtract-{name}s", two, less, "the difference"),
        *function(f"multiply-{name}", scale, _scaled(1, datatype), f"so many times the duration{rounded}"),
        *function(f"divide-{name}", scale, _scaled(-1, datatype), f"the duration divided by a number{rounded}"),
        *function(f"divide-{name}-by-{name}", two, _ratio, "how often the first contains the second, a decimal"),
    )


def _moves() -> Members:
    made: Members = ()
    for length, families in ((_YEAR_MONTH, _FAMILIES[:2]), (_DAY_TIME, _FAMILIES)):
        for family in families:
            domains = (_POINTS[family], length)
            made += function(f"add-{length.name}-to-{family}", domains, temporal.later, f"the {family} so much later")
            doc = f"the {family} so much earlier"
            made += function(f"subtract-{length.name}-from-{family}", domains, _earlier, doc)
    return made


def _comparisons() -> Members:
    made: Members = ()
    for family, domain in _INSTANTS.items():
        for name, (accepts, doc) in (_EQUALITIES | _ORDERS).items():
            made += predicate(f"{family}-{name}", (domain, domain), accepts, doc)
    for name, (accepts, doc) in _EQUALITIES.items():
        made += predicate(f"duration-{name}", (_DURATION, _DURATION), accepts, doc)
    for domain, _ in _DURATIONS:
        for name, (accepts, doc) in _ORDERS.items():
            made += predicate(f"{domain.name}-{name}", (domain, domain), accepts, doc)
    return made


MEMBERS: Members = (
    *_parts(),
    *(
        member
        for family in _FAMILIES
        for member in function(
            f"subtract-{family}s", (_POINTS[family],) * 2, _difference, "how much later the first is, a dayTimeDuration"
        )
    ),
    *(member for domain, datatype in _DURATIONS for member in _arithmetic(domain, datatype)),
    *_moves(),
    *_comparisons(),
)
