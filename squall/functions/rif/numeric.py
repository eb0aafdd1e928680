"""Numeric functions and predicates (DTB, section 4.5; XPath functions and operators, sections 6.2 and 6.3)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from squall.functions import numbers
from squall.functions.numbers import Binary
from squall.functions.rif.names import Domain, Maybe, Members, function, predicate
from squall.functions.values import ARITHMETIC, Number, integer, number

NUMBER = Domain("number", number)


def _integer_divide(one: Number, two: Number) -> Maybe:
    """The quotient without its fraction, an xsd:integer; what is finite over infinity is 0."""
    if not two.value or not one.is_finite or two.value != two.value:
        return None
    return integer(int(Fraction(one.value) / Fraction(two.value)) if two.is_finite else 0)


def _integer_rest(one: int, two: int) -> int | None:
    rest = abs(one) % abs(two) if two else None
    return rest if rest is None or one >= 0 else -rest


def _decimal_rest(one: Decimal, two: Decimal) -> Decimal | None:
    if not two:
        return None
    left, right = Fraction(one), Fraction(two)
    rest = left - int(left / right) * right
    return ARITHMETIC.divide(Decimal(rest.numerator), Decimal(rest.denominator))


def _float_rest(one: float, two: float) -> float:
    return math.fmod(one, two) if math.isfinite(one) and two else math.nan


_mod = numbers.binary(_integer_rest, _decimal_rest, _float_rest)


def _compared(accepts: Callable[[Any, Any], bool]) -> Callable[[Number, Number], bool]:
    return lambda one, two: accepts(*numbers.promoted(one, two))


def _function(name: str, body: Binary, doc: str) -> Members:
    return function(name, (NUMBER, NUMBER), body, doc)


def _predicate(name: str, accepts: Callable[[Any, Any], bool], doc: str) -> Members:
    return predicate(name, (NUMBER, NUMBER), _compared(accepts), doc)


_REST = "the rest of the division, with the sign of the dividend"

MEMBERS: Members = (
    *_function("numeric-add", numbers.PLUS, "the sum"),
    *_function("numeric-subtract", numbers.MINUS, "the difference"),
    *_function("numeric-multiply", numbers.TIMES, "the product"),
    *_function("numeric-divide", numbers.OVER, "the quotient; of integers a decimal"),
    *_function("numeric-integer-divide", _integer_divide, "the quotient without its fraction, an integer"),
    *_function("numeric-mod", _mod, _REST),
    *_function("numeric-integer-mod", _mod, f"{_REST}: the name that the W3C's tests use"),
    *_predicate("numeric-equal", operator.eq, "the same number"),
    *_predicate("numeric-not-equal", operator.ne, "different numbers; so is NaN from itself"),
    *_predicate("numeric-less-than", operator.lt, "less"),
    *_predicate("numeric-less-than-or-equal", operator.le, "less or equal"),
    *_predicate("numeric-greater-than", operator.gt, "greater"),
    *_predicate("numeric-greater-than-or-equal", operator.ge, "greater or equal"),
)
