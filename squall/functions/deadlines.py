"""Tests of the time (``NOW() >= ?deadline``), and the intervals over which they are true.

The result of such a test changes only at instants that the compared terms name. So it restricts the validity of a
solution, and need not be repeated at each instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from squall import functions
from squall.functions.values import duration, point
from squall.rdf import ALWAYS, Term

MAX_ZONE_MS = 14 * 3600 * 1000
"""The time zone that is farthest from UTC. Within it, a dateTime without a zone may have no order to the time."""
_DAY_MS = 24 * 3600 * 1000
_MAX_CALENDAR_DAYS = 4
"""By how many days months differ in length, rounded up to the end of the last one."""
_PLUS, _MINUS = ("http://www.w3.org/ns/sparql#plus", "http://www.w3.org/ns/sparql#subtract")


def time_operands(test: Any) -> tuple[Any, ...] | None:
    """Returns the expressions that say when the result of a test of the time may change.

    The result changes only where the time passes a dateTime that is the value of one of them. Of ``NOW() + ?d >= ?x``
    that is ``?x - ?d``. What is added to the time or subtracted is among them as well (see `true_intervals`).

    Args:
        test: A call of a program (`squall.model.Call`) or of a plan (`squall.plan.operators.Invoke`).

    Returns:
        The expressions; None if the test uses the time in another way, so that its result may change at any instant, or
        does not use it.
    """
    operands = _time_operands(test)
    return operands or None


def _time_operands(expression: Any) -> tuple[Any, ...] | None:
    """Returns the same, and an empty tuple for an expression that does not use the time."""
    if not hasattr(expression, "function"):
        return ()
    function, arguments = functions.lookup(expression.function), expression.arguments
    if function.timed or not function.pure:
        return None
    parts = [_time_operands(argument) for argument in arguments]
    if function.compares and parts.count(None) == 1:
        moved_time = _moved_time(arguments[parts.index(None)])
        if moved_time is None or any(parts):
            return None
        limits = (moved_time.at(argument) for argument, part in zip(arguments, parts, strict=True) if part == ())
        return (*limits, *moved_time.lengths)
    return None if None in parts else tuple(operand for part in parts for operand in part or ())


@dataclass(frozen=True)
class _MovedTime:
    """The time plus or minus what does not depend on it.

    Attributes:
        at: Returns the expression of the time at which it has a value, for the expression of that value.
        lengths: What is added and subtracted.
    """

    at: Callable[[Any], Any]
    lengths: tuple[Any, ...] = ()


def moves_time(expression: Any) -> bool:
    """Returns whether an expression is the time itself, or the time plus or minus what does not depend on it."""
    return _moved_time(expression) is not None


def _moved_time(expression: Any) -> _MovedTime | None:
    if is_time(expression):
        return _MovedTime(lambda value: value)
    if getattr(expression, "function", "") not in (_PLUS, _MINUS):
        return None
    left, right = expression.arguments
    is_left = _time_operands(left) is None
    inner, length = (_moved_time(left), right) if is_left else (_moved_time(right), left)
    if inner is None or _time_operands(length) != ():
        return None

    def back(value: Any) -> Any:
        """Returns the value of the inner expression for that of the sum or difference."""
        if expression.function == _PLUS:
            return replace(expression, function=_MINUS, arguments=(value, length))
        if is_left:  # `NOW() - ?x` is a duration if `?x` is a dateTime, and a dateTime if it is a duration
            return replace(expression, function=_PLUS, arguments=(value, length))
        return replace(expression, arguments=(length, value))

    return _MovedTime(lambda value: inner.at(back(value)), (length, *inner.lengths))


def is_time(expression: Any) -> bool:
    """Returns whether an expression is a call such as ``NOW()``: the time itself."""
    return hasattr(expression, "function") and not expression.arguments and functions.lookup(expression.function).timed


def true_intervals(
    terms: Iterable[Term | None], test: Callable[[int], bool], start: int, end: int, begin: int
) -> Iterator[tuple[int, int]]:
    """Yields the maximal intervals (integer ms, half-open) in an interval over which a test of the time is true.

    Args:
        terms: The values of `time_operands`. If some of them are durations with months, sums of the time and a
            duration are by the calendar: they stay behind at the ends of months, and change with the day.
        test: Returns the result of the test at a time.
        start: The begin of the interval; `squall.rdf.ALWAYS` stands for `begin`.
        end: The end of the interval.
        begin: The value of the time for what always holds (integer ms).
    """
    first_time = begin if start == ALWAYS else start
    times = (start, *sorted(time for time in _candidates(terms) if first_time < time < end))
    results = [test(first_time if time == start else time) for time in times]
    for is_true, group in groupby(zip(times, (*times[1:], end), results, strict=True), key=itemgetter(2)):
        pieces = list(group)
        if is_true:
            yield pieces[0][0], pieces[-1][1]


def _candidates(terms: Iterable[Term | None]) -> set[int]:
    """Returns the times (integer ms) from which a test may have another result, for the values of `time_operands`."""
    values = [term for term in terms if term is not None]
    times = {time for term in values for time in _changes(term)}
    lengths = filter(None, map(duration, values))
    if any(length.months for length in lengths):
        return {near for time in times for near in _near(time)}
    return times


def _near(time: int) -> Iterator[int]:
    """Yields the times by which a sum with months may be another one than the inverse sum says: the same time of the
    days before and after, and their midnights."""
    for days in range(-_MAX_CALENDAR_DAYS, _MAX_CALENDAR_DAYS + 1):
        yield time + days * _DAY_MS
        yield (time // _DAY_MS + days) * _DAY_MS


def _changes(term: Term) -> Iterator[int]:
    """Yields the times (integer ms) from which a comparison of the time with a term may have another result."""
    at = point(term)
    if at is None:
        return
    milliseconds = (at.seconds - (at.zone or 0)) * 1000 + int(at.fraction[:3].ljust(3, "0"))
    for offset in (0,) if at.zone is not None else (-MAX_ZONE_MS, 0, MAX_ZONE_MS):
        yield milliseconds + offset
        yield milliseconds + offset + 1
