"""Numeric functions and predicates (DTB, section 4.5; XPath functions and operators, sections 6.2 and 6.3)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from squall.functions import numbers
from squall.functions.join_keys import of_number, table_of
from squall.functions.numbers import Binary
from squall.functions.rif.names import OWN, Domain, Maybe, Members, function, predicate
from squall.functions.values import ARITHMETIC, Number, integer, number, representable
from squall.rdf import Term

NUMBER = Domain("number", number)


def _integer_divide(left: Number, right: Number) -> Maybe:
    """Returns the truncated quotient, an xsd:integer. A finite number divided by infinity is 0."""
    if not right.value or not left.is_finite or right.value != right.value:
        return None
    if not right.is_finite:
        return integer(0)
    return representable(integer(int(Fraction(left.value) / Fraction(right.value))))


def _integer_rest(left: int, right: int) -> int | None:
    remainder = abs(left) % abs(right) if right else None
    return remainder if remainder is None or left >= 0 else -remainder


def _decimal_rest(dividend: Decimal, divisor: Decimal) -> Decimal | None:
    if not divisor:
        return None
    left, right = Fraction(dividend), Fraction(divisor)
    remainder = left - int(left / right) * right
    return ARITHMETIC.divide(Decimal(remainder.numerator), Decimal(remainder.denominator))


def _float_rest(left: float, right: float) -> float:
    return math.fmod(left, right) if math.isfinite(left) and right else math.nan


_mod = numbers.binary(_integer_rest, _decimal_rest, _float_rest)


def _compared(accepts: Callable[[Any, Any], bool]) -> Callable[[Number, Number], bool]:
    return lambda left, right: accepts(*numbers.promoted(left, right))


def _function(name: str, body: Binary, doc: str) -> Members:
    return function(name, (NUMBER, NUMBER), body, doc)


def _predicate(name: str, accepts: Callable[[Any, Any], bool], doc: str, **more: Any) -> Members:
    return predicate(name, (NUMBER, NUMBER), _compared(accepts), doc, **more)


def _keys(term: Term, is_left: bool) -> Iterator[str]:
    """Yields the keys of a number by which joins look up equal ones."""
    if (value := number(term)) is not None:
        yield from of_number(value, is_left)


_NUMBER_KEYS = table_of(OWN + "number-keys", _keys, "the same number")


_REST = "the rest of the division, with the sign of the dividend"

MEMBERS: Members = (
    *_function("numeric-add", numbers.PLUS, "the sum"),
    *_function("numeric-subtract", numbers.MINUS, "the difference"),
    *_function("numeric-multiply", numbers.TIMES, "the product"),
    *_function("numeric-divide", numbers.OVER, "the quotient; of integers a decimal"),
    *_function("numeric-integer-divide", _integer_divide, "the quotient without its fraction, an integer"),
    *_function("numeric-mod", _mod, _REST),
    *_function("numeric-integer-mod", _mod, f"{_REST}: the name that the W3C's tests use"),
    _NUMBER_KEYS,
    *_predicate("numeric-equal", operator.eq, "the same number", join_keys=_NUMBER_KEYS.iri),
    *_predicate("numeric-not-equal", operator.ne, "different numbers; so is NaN from itself"),
    *_predicate("numeric-less-than", operator.lt, "less"),
    *_predicate("numeric-less-than-or-equal", operator.le, "less or equal"),
    *_predicate("numeric-greater-than", operator.gt, "greater"),
    *_predicate("numeric-greater-than-or-equal", operator.ge, "greater or equal"),
)
