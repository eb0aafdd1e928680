"""Arithmetic of numbers of several types, promoted as XPath does (XPath functions and operators, section 6.2).

Integers stay xsd:integer, but divided they make an xsd:decimal; of other types the result has the one that is promoted
to last. Decimals are exact up to `squall.functions.values.ARITHMETIC`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from squall.functions.values import (
    ARITHMETIC,
    Number,
    decimal,
    divide_decimals,
    divide_floats,
    double,
    float_,
    floating,
    integer,
    representable,
    single,
)
from squall.rdf import Term

KINDS = ("decimal", "float", "double")
"""The kinds of numbers, each promoted to those after it."""


def promoted(left: Number, right: Number) -> tuple[Any, Any]:
    """Returns the values of two numbers in the type to which both are promoted."""
    kind = KINDS[max(KINDS.index(left.kind), KINDS.index(right.kind))]
    return _as(kind, left), _as(kind, right)


def _as(kind: str, number: Number) -> Any:
    if kind == number.kind or number.is_floating:
        return number.value
    return single(Fraction(number.value)) if kind == "float" else floating(number)


Binary = Callable[[Number, Number], Term | None]


def binary(
    integers: Callable[[int, int], int | None] | None,
    decimals: Callable[[Decimal, Decimal], Decimal | None],
    floats: Callable[[float, float], float],
) -> Binary:
    """Returns a function of two numbers. `integers` is None if integers are computed as decimals."""

    def compute(left: Number, right: Number) -> Term | None:
        if integers is not None and isinstance(left.value, int) and isinstance(right.value, int):
            integer_result = integers(left.value, right.value)
            return None if integer_result is None else representable(integer(integer_result))
        if not left.is_floating and not right.is_floating:
            exact = decimals(Decimal(left.value), Decimal(right.value))
            return None if exact is None else representable(decimal(exact))
        result = floats(*promoted(left, right))
        return double(result) if "double" in (left.kind, right.kind) else float_(single(result))

    return compute


PLUS = binary(int.__add__, ARITHMETIC.add, float.__add__)
MINUS = binary(int.__sub__, ARITHMETIC.subtract, float.__sub__)
TIMES = binary(int.__mul__, ARITHMETIC.multiply, float.__mul__)
OVER = binary(None, divide_decimals, divide_floats)
