"""Arithmetic of calendar values and durations (XPath functions and operators, sections 10.6, 10.8; XSD 1.1, E.3.3).

A calendar value keeps its time zone. Two values of which one has no time zone have no difference.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

from squall.functions.sparql.names import Maybe
from squall.functions.values import (
    ARITHMETIC,
    DAY_TIME,
    DURATION,
    Duration,
    Point,
    calendar,
    civil,
    day_number,
    decimal,
    duration,
    duration_literal,
    number,
    point,
)
from squall.rdf import Term, parts

_ADDED_TO = {"dateTime", "date", "time"}
_LAST_YEAR = 999_999_999
_DIGITS = 60
"""So many digits of a second are kept."""
_MOST_SECONDS = Decimal(_LAST_YEAR) * 366 * 86400


def plus(left: Term, right: Term) -> Maybe:
    """A calendar value and a duration, in either order, or two durations."""
    one, other = duration(left), duration(right)
    if one and other:
        return _sum(one, other, _common(left, right))
    if other:
        return _later(left, other)
    return _later(right, one) if one else None


def minus(left: Term, right: Term) -> Maybe:
    """A calendar value less a duration, two durations, or two calendar values of one type."""
    one, other = duration(left), duration(right)
    if other is None:
        return _difference(point(left), point(right))
    back = Duration(-other.months, -other.seconds)
    return _sum(one, back, _common(left, right)) if one else _later(left, back)


def times(left: Term, right: Term) -> Maybe:
    """A number and a duration, in either order."""
    return _scaled(left, right, 1) if duration(left) else _scaled(right, left, 1)


def over(left: Term, right: Term) -> Maybe:
    """A duration by a number, or by another of its type."""
    one, other = duration(left), duration(right)
    if not one or not other:
        return _scaled(left, right, -1)
    top, bottom = (one.months, other.months) if one.months else (one.seconds, other.seconds)
    if not bottom or _common(left, right) == DURATION:
        return None
    return decimal(ARITHMETIC.divide(Decimal(top), Decimal(bottom)))


def _common(left: Term, right: Term) -> str:
    """The type of two durations: theirs if it is the same, xsd:duration otherwise."""
    one, other = parts(left).datatype, parts(right).datatype
    return one if one == other else DURATION


def _sum(one: Duration, other: Duration, datatype: str) -> Maybe:
    return _literal(one.months + other.months, ARITHMETIC.add(one.seconds, other.seconds), datatype)


def _literal(months: int, seconds: Decimal, datatype: str) -> Maybe:
    """The duration; none where its two parts have different signs, or where it is longer than time."""
    if months * seconds < 0 or abs(seconds) > _MOST_SECONDS or abs(months) > _LAST_YEAR * 12:
        return None
    return duration_literal(Duration(months, seconds), datatype)


def _scaled(term: Term, factor: Term, power: int) -> Maybe:
    """A duration times a number, or by it (power -1); months are rounded, half up."""
    length, by = duration(term), number(factor)
    datatype = parts(term).datatype if length else DURATION
    if length is None or by is None or datatype == DURATION or not by.is_finite or (power < 0 and not by.value):
        return None
    ratio = Fraction(by.value) ** power
    seconds = Fraction(length.seconds) * ratio
    exact = ARITHMETIC.divide(Decimal(seconds.numerator), Decimal(seconds.denominator))
    return _literal(floor(length.months * ratio + Fraction(1, 2)), exact, datatype)


def _later(term: Term, length: Duration) -> Maybe:
    at = point(term)
    if at is None or at.family not in _ADDED_TO or abs(length.seconds) > _MOST_SECONDS:
        return None
    if at.family == "time":
        return _clock(at, length)
    return _moved(at, length)


def _moved(at: Point, length: Duration) -> Maybe:
    """Months are added first, the day at most the last of the month; then days and seconds."""
    day, rest = divmod(at.seconds, 86400)
    seconds, fraction = _advanced(_in_months(day, length.months) * 86400 + rest, at.fraction, length.seconds)
    if at.family == "date":
        seconds, fraction = seconds - seconds % 86400, ""
    fits = abs(civil(seconds // 86400)[0]) <= _LAST_YEAR
    return calendar(Point(at.family, seconds, fraction, at.zone)) if fits else None


def _clock(at: Point, length: Duration) -> Maybe:
    if length.months:
        return None
    seconds, fraction = _advanced(at.seconds, at.fraction, length.seconds)
    return calendar(Point("time", seconds % 86400, fraction, at.zone))


def _advanced(seconds: int, fraction: str, by: Decimal) -> tuple[int, str]:
    """A time in whole seconds and the digits after them, moved."""
    total = Fraction(f"0.{fraction}" if fraction else 0) + Fraction(by)
    whole = floor(total)
    rest = total - whole
    digits = f"{floor(rest * 10**_DIGITS):0{_DIGITS}}".rstrip("0")
    return seconds + whole, digits


def _in_months(day: int, months: int) -> int:
    """The day (since the epoch) so many months later."""
    if not months:
        return day
    year, month, within = civil(day)
    years, month = divmod(month - 1 + months, 12)
    found = None
    while found is None:
        found = day_number(year + years, month + 1, within)
        within -= 1
    return found


def _difference(one: Point | None, other: Point | None) -> Maybe:
    if one is None or other is None or one.family != other.family or one.family not in _ADDED_TO:
        return None
    if (one.zone is None) != (other.zone is None):
        return None
    whole = one.seconds - (one.zone or 0) - other.seconds + (other.zone or 0)
    fraction = ARITHMETIC.subtract(_fraction(one), _fraction(other))
    return _literal(0, ARITHMETIC.add(Decimal(whole), fraction), DAY_TIME)


def _fraction(at: Point) -> Decimal:
    return Decimal(f"0.{at.fraction or '0'}")


def of_zone(zone: int) -> Term:
    """The xsd:dayTimeDuration of a time zone."""
    return duration_literal(Duration(0, Decimal(zone)), DAY_TIME)
