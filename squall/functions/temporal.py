"""Arithmetic of points in time and durations (XPath functions and operators, sections 10.6, 10.8; XSD 1.1, E.3.3).

A calendar value keeps its time zone. What would be too long ago, too far off or too long is no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import floor

from squall.functions.values import (
    ARITHMETIC,
    DAY_TIME,
    Duration,
    Number,
    Point,
    calendar,
    civil,
    day_number,
    decimal,
    double,
    duration_literal,
    float_,
    integer,
)
from squall.rdf import Term, parts

_ADDED_TO = {"dateTime", "date", "time"}
_LAST_YEAR = 999_999_999
_DIGITS = 60
"""The number of digits of a second that are kept."""
_MOST_SECONDS = Decimal(_LAST_YEAR) * 366 * 86400


def total(left: Duration, right: Duration, datatype: str) -> Term | None:
    """Returns the sum of two durations."""
    return _literal(left.months + right.months, ARITHMETIC.add(left.seconds, right.seconds), datatype)


def negative(length: Duration) -> Duration:
    """Returns the negated duration."""
    return Duration(-length.months, length.seconds.copy_negate())


def _literal(months: int, seconds: Decimal, datatype: str) -> Term | None:
    """Returns a duration, or None if its two parts have different signs, or if it is too long."""
    if months * seconds < 0 or seconds.copy_abs() > _MOST_SECONDS or abs(months) > _LAST_YEAR * 12:
        return None
    return duration_literal(Duration(months, seconds), datatype)


def scaled(length: Duration, by: Number, power: int, datatype: str) -> Term | None:
    """Returns a duration multiplied by a number, or divided by it (power -1). Months are rounded half up.

    A float or double counts as the shortest decimal that denotes it: 2.3 times 35 months are 80.5, and so 81.
    """
    if power < 0 and isinstance(by.value, float) and math.isinf(by.value):
        return _literal(0, Decimal(0), datatype)
    if not by.is_finite or (power < 0 and not by.value):
        return None
    ratio = _fraction_of(by) ** power
    seconds = Fraction(length.seconds) * ratio
    exact = ARITHMETIC.divide(Decimal(seconds.numerator), Decimal(seconds.denominator))
    return _literal(floor(length.months * ratio + Fraction(1, 2)), exact, datatype)


def _fraction_of(number: Number) -> Fraction:
    if not isinstance(number.value, float):
        return Fraction(number.value)
    written = float_(number.value) if number.kind == "float" else double(number.value)
    return Fraction(parts(written).lexical)


def ratio(left: int | Decimal, right: int | Decimal) -> Term | None:
    """Returns how often one duration contains another, both in months or both in seconds; None if the other is
    zero."""
    return decimal(ARITHMETIC.divide(Decimal(left), Decimal(right))) if right else None


def later(at: Point, length: Duration) -> Term | None:
    """Adds a duration to a calendar value."""
    if at.family not in _ADDED_TO or length.seconds.copy_abs() > _MOST_SECONDS:
        return None
    return _clock(at, length) if at.family == "time" else _moved(at, length)


def _moved(at: Point, length: Duration) -> Term | None:
    """Adds months first, where the day is at most the last of the month, then days and seconds."""
    day, second_of_day = divmod(at.seconds, 86400)
    seconds, fraction = _advanced(_in_months(day, length.months) * 86400 + second_of_day, at.fraction, length.seconds)
    if at.family == "date":
        seconds, fraction = seconds - seconds % 86400, ""
    fits = abs(civil(seconds // 86400)[0]) <= _LAST_YEAR
    return calendar(Point(at.family, seconds, fraction, at.zone)) if fits else None


def _clock(at: Point, length: Duration) -> Term | None:
    if length.months:
        return None
    seconds, fraction = _advanced(at.seconds, at.fraction, length.seconds)
    return calendar(Point("time", seconds % 86400, fraction, at.zone))


def _advanced(seconds: int, fraction: str, by: Decimal) -> tuple[int, str]:
    """Adds to a time, in whole seconds and the digits after them."""
    if by == int(by):
        return seconds + int(by), fraction
    total = Fraction(f"0.{fraction}" if fraction else 0) + Fraction(by)
    full_seconds = floor(total)
    fraction_of_second = total - full_seconds
    digits = f"{floor(fraction_of_second * 10**_DIGITS):0{_DIGITS}}".rstrip("0")
    return seconds + full_seconds, digits


def _in_months(day: int, months: int) -> int:
    """Returns the day (since the epoch) so many months later."""
    if not months:
        return day
    year, month, within = civil(day)
    years, month = divmod(month - 1 + months, 12)
    moment = None
    while moment is None:
        moment = day_number(year + years, month + 1, within)
        within -= 1
    return moment


def difference(left: Point, right: Point) -> Term | None:
    """Returns how much later one point is than another of its family; None if one of the two has no time zone."""
    if left.family != right.family or left.family not in _ADDED_TO or (left.zone is None) != (right.zone is None):
        return None
    utc_seconds = left.seconds - (left.zone or 0) - right.seconds + (right.zone or 0)
    fraction = ARITHMETIC.subtract(_fraction(left), _fraction(right))
    return _literal(0, ARITHMETIC.add(Decimal(utc_seconds), fraction), DAY_TIME)


def _fraction(at: Point) -> Decimal:
    return Decimal(f"0.{at.fraction or '0'}")


def of_zone(zone: int) -> Term:
    """Returns the xsd:dayTimeDuration of a time zone."""
    return duration_literal(Duration(0, Decimal(zone)), DAY_TIME)


def _of_date(place: int) -> Callable[[Point], Term]:
    return lambda at: integer(civil(at.seconds // 86400)[place])


FIELDS: dict[str, Callable[[Point], Term]] = {
    "year": _of_date(0),
    "month": _of_date(1),
    "day": _of_date(2),
    "hours": lambda at: integer(at.seconds // 3600 % 24),
    "minutes": lambda at: integer(at.seconds // 60 % 60),
    "seconds": lambda at: decimal(Decimal(f"{at.seconds % 60}.{at.fraction or '0'}")),
}
"""The parts of a point, in its own time zone; the seconds are an xsd:decimal, the others xsd:integer."""
