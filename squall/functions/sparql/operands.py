"""The comparison operators of SPARQL: the value spaces of terms, their order and their equality.

Sources: SPARQL 1.1, sections 17.3 (operator mapping) and 17.4.1.7 (RDFterm-equal); XPath functions and operators 2.0,
sections 6.3, 7.2, 9.2 and 10.4; XSD 1.1 part 2, section 3.3.7 (order of dateTime).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from squall.functions.join_keys import of_number, of_value
from squall.functions.numbers import KINDS, promoted
from squall.functions.sparql.names import Maybe
from squall.functions.values import (
    Duration,
    Number,
    Point,
    boolean,
    duration,
    number,
    point,
)
from squall.rdf import LANG_STRING, XSD_STRING, Term, is_literal, parts

_PLAIN = {"decimal", "float", "double", "string", "boolean"}
"""Value spaces that Python orders as XPath does, including NaN, which has no order and equals nothing."""
_SAME_IF_EQUAL = {*_PLAIN, "resource", "language", "duration"}
_UNKNOWN = "unknown"
_UNTYPED = {"resource", "language"}
"""The value spaces that no literal of another datatype can belong to."""

_MOST_AHEAD = 14 * 3600
"""The time zone that is farthest from UTC, in seconds."""


class Operand(NamedTuple):
    """The value of a term, with its value space as `kind`.

    That is ``unknown`` if the datatype is unknown, or the lexical form is malformed.
    """

    kind: str
    value: Any


@lru_cache(maxsize=262144)
def operand(term: Term) -> Operand:
    """Returns the value of a term."""
    if not is_literal(term):
        return Operand("resource", term)
    lexical, datatype, language = parts(term)
    if datatype == XSD_STRING:
        return Operand("string", lexical)
    if datatype == LANG_STRING:
        return Operand("language", (lexical, language.lower()))
    numeric = number(term)
    if numeric is not None:
        return Operand(numeric.kind, numeric.value)
    truth = boolean(term)
    if truth is not None:
        return Operand("boolean", truth)
    return _temporal(term)


def _temporal(term: Term) -> Operand:
    at = point(term)
    if at is not None:
        return Operand(at.family, at)
    length = duration(term)
    return Operand(_UNKNOWN, term) if length is None else Operand("duration", length)


def _moments(first: Point, second: Point) -> tuple[Any, Any] | None:
    """Returns two points of one family in comparable form, or None if that depends on a missing time zone."""
    left, right = (
        (first.seconds - (first.zone or 0), first.fraction),
        (second.seconds - (second.zone or 0), second.fraction),
    )
    if (first.zone is None) == (second.zone is None):
        return left, right
    early, late = min(left, right), max(left, right)
    return (left, right) if (early[0] + _MOST_AHEAD, early[1]) < late else None


def _lengths(left: Duration, right: Duration) -> tuple[Any, Any] | None:
    """Returns the months of two durations, or their seconds. Durations with both are not comparable."""
    if left.months == right.months == 0:
        return left.seconds, right.seconds
    return (left.months, right.months) if left.seconds == right.seconds == 0 else None


def _ordered(left: Operand, right: Operand) -> tuple[Any, Any] | None:
    """Returns two values in the form in which Python orders them, or None if they have no order."""
    if left.kind in KINDS and right.kind in KINDS:
        return promoted(Number(left.value, left.kind), Number(right.value, right.kind))
    if left.kind != right.kind:
        return None
    if left.kind == "duration":
        return _lengths(left.value, right.value)
    return _moments(left.value, right.value) if isinstance(left.value, Point) else None


def comparison(accepts: Callable[[Any, Any], bool], yes: Any, no: Any, error: Any) -> Callable[[Maybe, Maybe], Any]:
    """Returns a function that compares two terms by order.

    Args:
        accepts: The comparison.
        yes: Its result if the comparison is true.
        no: Its result if the comparison is false.
        error: Its result if the terms have no order.
    """

    def compare(left: Maybe, right: Maybe) -> Any:
        if left is None or right is None:
            return error
        left_operand, right_operand = operand(left), operand(right)
        if left_operand[0] == right_operand[0] and left_operand[0] in _PLAIN:
            return yes if accepts(left_operand[1], right_operand[1]) else no
        pair = _ordered(left_operand, right_operand)
        return error if pair is None else yes if accepts(*pair) else no

    return compare


def equality(yes: Any, no: Any, error: Any) -> Callable[[Maybe, Maybe], Any]:
    """Returns a function that compares two terms.

    Args:
        yes: Its result for equal values.
        no: Its result for different values.
        error: Its result if that cannot be decided.
    """

    def compare(left: Maybe, right: Maybe) -> Any:
        if left is None or right is None:
            return error
        left_operand, right_operand = operand(left), operand(right)
        if left_operand[0] == right_operand[0] and left_operand[0] in _SAME_IF_EQUAL:
            return yes if left_operand[1] == right_operand[1] else no
        is_equal = _equal(left_operand, right_operand)
        return error if is_equal is None else yes if is_equal else no

    return compare


def _equal(first: Operand, second: Operand) -> bool | None:
    """Returns whether two values are equal, or None if that cannot be decided.

    Known value spaces are disjoint. A literal of an unknown value space is equal to itself, and different from all
    IRIs, blank nodes and texts with a language.
    """
    if first == second:
        return True
    if _UNKNOWN in (first.kind, second.kind):
        return None if _UNTYPED.isdisjoint((first.kind, second.kind)) else False
    if first.kind in KINDS and second.kind in KINDS:
        left, right = promoted(Number(first.value, first.kind), Number(second.value, second.kind))
        return bool(left == right)
    if first.kind != second.kind:
        return False
    pair = _moments(first.value, second.value)
    return None if pair is None else pair[0] == pair[1]


equal = equality(True, False, None)
"""Returns whether two terms are equal (the operator ``=``); None is an error."""


def join_keys(term: Term, is_left: bool) -> Iterator[str]:
    """Yields the keys of a term by which joins look up equal ones (`squall.functions.join_keys`)."""
    kind, value = operand(term)
    if kind in KINDS:
        yield from of_number(Number(value, kind), is_left)
    elif isinstance(value, Point):
        has_zone = value.zone is not None
        yield f"t{kind} {has_zone} {value.seconds - (value.zone or 0)} {value.fraction}"
    else:
        yield of_value(term)
