"""The operators ``+ - * /`` for calendar values and durations (`squall.functions.temporal`)."""

from __future__ import annotations

from squall.functions import temporal
from squall.functions.sparql.names import Maybe
from squall.functions.values import DURATION, YEAR_MONTH, duration, number, point
from squall.rdf import Term, parts


def plus(left: Term, right: Term) -> Maybe:
    """Adds a calendar value and a duration, in either order, or two durations."""
    left_duration, right_duration = duration(left), duration(right)
    if left_duration and right_duration:
        return temporal.total(left_duration, right_duration, _common(left, right))
    at, length = (point(left), right_duration) if right_duration else (point(right), left_duration)
    return temporal.later(at, length) if at and length else None


def minus(left: Term, right: Term) -> Maybe:
    """Subtracts a duration from a calendar value, two durations, or two calendar values of one type."""
    left_duration, right_duration, at = duration(left), duration(right), point(left)
    if right_duration is None:
        end = point(right)
        return temporal.difference(at, end) if at and end else None
    back = temporal.negative(right_duration)
    if left_duration:
        return temporal.total(left_duration, back, _common(left, right))
    return temporal.later(at, back) if at else None


def times(left: Term, right: Term) -> Maybe:
    """Multiplies a number and a duration, in either order."""
    return _scaled(left, right, 1) if duration(left) else _scaled(right, left, 1)


def over(left: Term, right: Term) -> Maybe:
    """Divides a duration by a number, or by another one of its type."""
    left_duration, right_duration = duration(left), duration(right)
    if not left_duration or not right_duration:
        return _scaled(left, right, -1)
    common = _common(left, right)
    if common == DURATION:
        return None
    if common == YEAR_MONTH:
        return temporal.ratio(left_duration.months, right_duration.months)
    return temporal.ratio(left_duration.seconds, right_duration.seconds)


def _common(left: Term, right: Term) -> str:
    """Returns the type of two durations: theirs if it is the same, xsd:duration otherwise."""
    left_type, right_type = parts(left).datatype, parts(right).datatype
    return left_type if left_type == right_type else DURATION


def _scaled(term: Term, factor: Term, power: int) -> Maybe:
    length, by = duration(term), number(factor)
    datatype = parts(term).datatype if length else DURATION
    if length is None or by is None or datatype == DURATION:
        return None
    return temporal.scaled(length, by, power, datatype)
