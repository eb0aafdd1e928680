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
        moment = instant(term)
        return moment if moment is not None and moment.family == family else None

    return Domain(family, read)


def _day_time(term: Term) -> Duration | None:
    length = duration(term)
    return length if length is not None and not length.months else None


def _year_month(term: Term) -> Duration | None:
    length = duration(term)
    return length if length is not None and not length.seconds else None


_POINTS = {family: _point(family) for family in _FAMILIES}
_INSTANTS = {family: _instant(family) for family in _FAMILIES}
_DURATION = Domain("duration", duration)
_DAY_TIME = Domain("dayTimeDuration", _day_time)
_YEAR_MONTH = Domain("yearMonthDuration", _year_month)
_DURATIONS = ((_YEAR_MONTH, YEAR_MONTH), (_DAY_TIME, DAY_TIME))


def _cut(value: int | Decimal, unit: int, within: int = 0) -> Term:
    """Returns the number of complete units in a signed length. `within` of them are the next larger unit."""
    integer_part = int(value)
    count = abs(integer_part) // unit
    count = count % within if within else count
    return integer(-count if integer_part < 0 else count)


def _seconds(length: Duration) -> Term:
    full_seconds = int(length.seconds)
    minutes = abs(full_seconds) // 60 * 60
    return decimal(ARITHMETIC.subtract(length.seconds, Decimal(-minutes if full_seconds < 0 else minutes)))


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


def _difference(left: Point, right: Point) -> Maybe:
    return temporal.difference(left._replace(zone=left.zone or 0), right._replace(zone=right.zone or 0))


def _earlier(at: Point, length: Duration) -> Maybe:
    return temporal.later(at, temporal.negative(length))


def _less(left: Duration, right: Duration, datatype: str) -> Maybe:
    return temporal.total(left, temporal.negative(right), datatype)


def _ratio(left: Duration, right: Duration) -> Maybe:
    """Compares by months if there are any, since durations of one type have only one of the two parts."""
    if right.months:
        return temporal.ratio(left.months, right.months)
    return temporal.ratio(left.seconds, right.seconds)


def _scaled(power: int, datatype: str) -> Callable[[Duration, Number], Maybe]:
    return lambda length, by: temporal.scaled(length, by, power, datatype)


def _parts() -> Members:
    members: Members = ()
    for family, names in _PARTS.items():
        for name in names:
            doc = f"the {name} of a {family}"
            members += function(f"{name}-from-{family}", (_POINTS[family],), FIELDS[name], doc)
    for name, read in _OF_DURATION.items():
        members += function(f"{name}-from-duration", (_DURATION,), read, f"the {name} of a duration, with its sign")
    for family in _FAMILIES:
        doc = f"the time zone of a {family}, a dayTimeDuration"
        members += function(f"timezone-from-{family}", (_POINTS[family],), _timezone, doc)
    return members


def _arithmetic(domain: Domain, datatype: str) -> Members:
    """Registers the built-ins over durations of one type."""
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
    members: Members = ()
    for length, families in ((_YEAR_MONTH, _FAMILIES[:2]), (_DAY_TIME, _FAMILIES)):
        for family in families:
            domains = (_POINTS[family], length)
            members += function(
                f"add-{length.name}-to-{family}", domains, temporal.later, f"the {family} so much later"
            )
            doc = f"the {family} so much earlier"
            members += function(f"subtract-{length.name}-from-{family}", domains, _earlier, doc)
    return members


def _comparisons() -> Members:
    members: Members = ()
    for family, domain in _INSTANTS.items():
        for name, (accepts, doc) in (_EQUALITIES | _ORDERS).items():
            members += predicate(f"{family}-{name}", (domain, domain), accepts, doc)
    for name, (accepts, doc) in _EQUALITIES.items():
        members += predicate(f"duration-{name}", (_DURATION, _DURATION), accepts, doc)
    for domain, _ in _DURATIONS:
        for name, (accepts, doc) in _ORDERS.items():
            members += predicate(f"{domain.name}-{name}", (domain, domain), accepts, doc)
    return members


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
