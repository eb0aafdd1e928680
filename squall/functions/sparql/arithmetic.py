"""Arithmetic: ``+ - * /`` and signs, ABS, ROUND, CEIL, FLOOR (SPARQL 1.1, sections 17.3, 17.4.4; XPath functions 6.2).

`squall.functions.numbers` says of which type a result is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from squall.functions.numbers import MINUS, OVER, PLUS, TIMES, Binary
from squall.functions.sparql import temporal
from squall.functions.sparql.names import Maybe, Members, defined
from squall.functions.values import decimal, double, float_, integer, number, representable, single
from squall.rdf import Term

_Other = Callable[[Term, Term], Maybe]


def _binary(numbers: Binary, other: _Other) -> Callable[[Maybe, Maybe], Maybe]:
    """Returns a function of two numbers. It applies `other` if one of the arguments is no number."""

    def compute(left: Maybe, right: Maybe) -> Maybe:
        if left is None or right is None:
            return None
        left_number, right_number = number(left), number(right)
        return other(left, right) if left_number is None or right_number is None else numbers(left_number, right_number)

    return compute


def _unary(
    integers: Callable[[int], int], decimals: Callable[[Decimal], Decimal], floats: Callable[[float], float]
) -> Callable[[Maybe], Maybe]:
    """Returns a function of a number whose result has the same type."""

    def compute(value: Maybe) -> Maybe:
        operand = None if value is None else number(value)
        if operand is None:
            return None
        if isinstance(operand.value, int):
            return representable(integer(integers(operand.value)))
        if isinstance(operand.value, Decimal):
            return representable(decimal(decimals(operand.value)))
        result = floats(operand.value)
        return double(result) if operand.kind == "double" else float_(single(result))

    return compute


def _whole(rounded: Callable[[Fraction], int]) -> Callable[[Maybe], Maybe]:
    """Returns a function that rounds a number to an integer. A non-finite one stays, and zero keeps its sign."""

    def of_float(value: float) -> float:
        return math.copysign(float(rounded(Fraction(value))), value) if math.isfinite(value) else value

    return _unary(lambda value: value, lambda value: Decimal(rounded(Fraction(value))), of_float)


def _half_up(value: Fraction) -> int:
    """Returns the nearest integer; of two the greater (fn:round)."""
    return math.floor(value + Fraction(1, 2))


_same = _unary(lambda value: value, lambda value: value, lambda value: value)
_negative = _unary(lambda value: -value, Decimal.copy_negate, lambda value: -value)
_absolute = _unary(abs, Decimal.copy_abs, abs)


MEMBERS: Members = (
    *defined(
        "+", "plus", _binary(PLUS, temporal.plus), 2, 2,
        "the sum of numbers or durations, or a calendar value that much later",
    ),
    *defined(
        "-", "subtract", _binary(MINUS, temporal.minus), 2, 2,
        "the difference of numbers, durations or calendar values, or a calendar value that much earlier",
    ),
    *defined(
        "*", "multiply", _binary(TIMES, temporal.times), 2, 2,
        "the product of numbers, or of a number and a duration",
    ),
    *defined(
        "/", "divide", _binary(OVER, temporal.over), 2, 2,
        "the quotient of numbers, of durations, or of a duration and a number; of integers a decimal",
    ),
    *defined("unary +", "unary-plus", _same, 1, 1, "the number"),
    *defined("unary -", "unary-minus", _negative, 1, 1, "the number with the other sign"),
    *defined("ABS", "abs", _absolute, 1, 1, "the number without its sign", xpath="abs"),
    *defined("ROUND", "round", _whole(_half_up), 1, 1, "the nearest whole number, of two the greater", xpath="round"),
    *defined("CEIL", "ceil", _whole(math.ceil), 1, 1, "the least whole number that is not less", xpath="ceiling"),
    *defined("FLOOR", "floor", _whole(math.floor), 1, 1, "the greatest whole number that is not more", xpath="floor"),
)  # fmt: skip
