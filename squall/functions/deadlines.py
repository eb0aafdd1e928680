"""Tests of the time (``NOW() >= ?deadline``), and the intervals over which they are true.

The result of such a test changes only at instants that the compared terms name. So it restricts the validity of a
solution, and need not be repeated at each instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from squall import functions
from squall.functions.values import point
from squall.rdf import ALWAYS, Term

MAX_ZONE_MS = 14 * 3600 * 1000
"""The time zone that is farthest from UTC. Within it, a dateTime without a zone may have no order to the time."""


def time_operands(test: Any) -> tuple[Any, ...] | None:
    """Returns the expressions with which a test compares the time.

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
    operands = [argument for argument in arguments if not is_time(argument)]
    if function.compares and len(operands) == 1 and len(arguments) == 2:
        return None if _time_operands(operands[0]) != () else tuple(operands)
    parts = [_time_operands(argument) for argument in arguments]
    return None if None in parts else tuple(operand for part in parts for operand in part or ())


def is_time(expression: Any) -> bool:
    """Returns whether an expression is a call such as ``NOW()``: the time itself."""
    return hasattr(expression, "function") and not expression.arguments and functions.lookup(expression.function).timed


def true_intervals(
    terms: Iterable[Term | None], test: Callable[[int], bool], start: int, end: int, begin: int
) -> Iterator[tuple[int, int]]:
    """Yields the maximal intervals (integer ms, half-open) in an interval over which a test of the time is true.

    Args:
        terms: The terms with which the test compares the time.
        test: Returns the result of the test at a time.
        start: The begin of the interval; `squall.rdf.ALWAYS` stands for `begin`.
        end: The end of the interval.
        begin: The value of the time for what always holds (integer ms).
    """
    first_time = begin if start == ALWAYS else start
    changes = {time for term in terms if term is not None for time in _changes(term) if first_time < time < end}
    times = (start, *sorted(changes))
    results = [test(first_time if time == start else time) for time in times]
    for is_true, group in groupby(zip(times, (*times[1:], end), results, strict=True), key=itemgetter(2)):
        pieces = list(group)
        if is_true:
            yield pieces[0][0], pieces[-1][1]


def _changes(term: Term) -> Iterator[int]:
    """Yields the times (integer ms) from which a comparison of the time with a term may have another result."""
    at = point(term)
    if at is None:
        return
    milliseconds = (at.seconds - (at.zone or 0)) * 1000 + int(at.fraction[:3].ljust(3, "0"))
    for offset in (0,) if at.zone is not None else (-MAX_ZONE_MS, 0, MAX_ZONE_MS):
        yield milliseconds + offset
        yield milliseconds + offset + 1
