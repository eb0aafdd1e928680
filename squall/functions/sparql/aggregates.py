"""SPARQL's own aggregates, maintained incrementally (SPARQL 1.1, section 18.5.1).

An error among the values (None) is an error of the aggregate. COUNT and SAMPLE ignore errors instead. Jena and Oxigraph
read the specification the same way; it says nothing about MIN and MAX.

No result depends on the order of the values: sums are exact rationals that are rounded once, and the type of a result
follows from the values that are present.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from typing import Any

from squall.functions import values
from squall.functions.aggregation import Accumulator, AggregateFunction, StoredValues, transition
from squall.functions.ordering import Key, key
from squall.functions.sparql.names import Members
from squall.rdf import Term, is_blank, literal

INTEGER, DECIMAL, FLOAT, DOUBLE = range(4)
"""The numeric types, each promoted to those after it (SPARQL 1.1, section 17.1)."""

_FLOAT_UNITS = 2**1074
"""All finite floats and doubles are multiples of 1 / this."""
_MAX_STALE_KEYS = 16
"""A heap may always keep so many keys of values that are gone."""


class _CountAll(Accumulator):
    """The number of solutions."""

    __slots__ = ()

    def apply(self, value: str | None, weight: int) -> None:
        pass

    def value(self) -> Term:
        return values.integer(self.members)


class _Count(Accumulator):
    """The number of values."""

    __slots__ = ("present",)

    def __init__(self) -> None:
        super().__init__()
        self.present = 0

    def apply(self, value: str | None, weight: int) -> None:
        if value is not None:
            self.present += weight

    def value(self) -> Term:
        return values.integer(self.present)


class _Sum(Accumulator):
    """The exact sum of numbers; an error while there is any other value.

    Attributes:
        totals: The sums of the finite numbers by type, in the units of `_amount`.
        non_finite: The number of INF, -INF and NaN values.
    """

    __slots__ = ("errors", "kinds", "non_finite", "totals")

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0
        self.kinds = [0, 0, 0, 0]
        self.totals: list[int | Fraction] = [0, 0, 0, 0]
        self.non_finite: Counter[str] = Counter()

    def apply(self, value: str | None, weight: int) -> None:
        typed_amount = None if value is None else _amount(value)
        if typed_amount is None:
            self.errors += weight
            return
        kind, amount = typed_amount
        self.kinds[kind] += weight
        if isinstance(amount, str):
            self.non_finite[amount] += weight
        else:
            self.totals[kind] += amount * weight

    def value(self) -> Term | None:
        return None if self.errors else number(self._total(), self._kind())

    def _kind(self) -> int:
        return max((kind for kind in range(4) if self.kinds[kind]), default=INTEGER)

    def _total(self) -> Fraction | float:
        non_finite = [float(name) for name, count in self.non_finite.items() if count]
        if non_finite:
            return sum(non_finite)
        integers, decimals, floats, doubles = self.totals
        exact = Fraction(decimals + integers)
        return exact + Fraction(floats + doubles, _FLOAT_UNITS) if floats or doubles else exact


class _Average(_Sum):
    """The exact average of numbers; 0 for an empty group."""

    __slots__ = ()

    def value(self) -> Term | None:
        if self.errors or not self.members:
            return None if self.errors else values.integer(0)
        return number(self._total() / self.members, max(DECIMAL, self._kind()))


@lru_cache(maxsize=65536)
def _amount(term: str) -> tuple[int, int | Fraction | str] | None:
    """Returns the type and amount of a number; None for any other term.

    Floats and doubles are in units of 1 / `_FLOAT_UNITS`, because integers add up faster than fractions. An amount that
    is not finite is its name.
    """
    numeric = values.number(Term(term))
    if numeric is None:
        return None
    if isinstance(numeric.value, float):
        kind = FLOAT if numeric.kind == "float" else DOUBLE
        if not math.isfinite(numeric.value):
            return kind, str(numeric.value)
        numerator, denominator = numeric.value.as_integer_ratio()
        return kind, numerator * (_FLOAT_UNITS // denominator)
    return (INTEGER, numeric.value) if isinstance(numeric.value, int) else (DECIMAL, Fraction(numeric.value))


def number(value: Fraction | float, kind: int) -> Term | None:
    """Returns the literal of a number of a type, to which it is rounded; None if it has too many digits.

    Decimals are rounded to 60 digits, floats and doubles to the nearest one, half to even (IEEE 754). The value is a
    float only if it is INF, -INF or NaN.
    """
    if kind == INTEGER:
        return values.representable(values.integer(int(value)))
    if kind == DECIMAL:
        numerator, denominator = value.as_integer_ratio()
        return values.representable(values.decimal(values.ARITHMETIC.divide(Decimal(numerator), Decimal(denominator))))
    return values.double(_double(value)) if kind == DOUBLE else values.float_(values.single(value))


def _double(value: Fraction | float) -> float:
    """Returns the nearest double."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class _Descending(tuple[Any, ...]):
    """A sort key in reverse order."""

    __slots__ = ()
    __lt__ = tuple.__gt__


class _FirstValue(Accumulator):
    """The first value in an order of keys.

    Attributes:
        heap: The keys of all values, and of some that are gone. These are dropped when they reach the top or outnumber
            the others, which costs amortised constant time.
    """

    __slots__ = ("counts", "heap", "key_order")

    def __init__(self, key_order: Callable[[Key], Key]) -> None:
        super().__init__()
        self.key_order = key_order
        self.counts: dict[str, int] = {}
        self.heap: list[Key] = []

    def apply(self, value: str | None, weight: int) -> None:
        if value is None:
            return
        step = transition(self.counts, value, weight)
        if step > 0:
            heappush(self.heap, self.key_order(key(value)))
        elif len(self.heap) > 2 * len(self.counts) + _MAX_STALE_KEYS:
            self.heap = [self.key_order(key(stored_value)) for stored_value, count in self.counts.items() if count > 0]
            heapify(self.heap)

    def value(self) -> Term | None:
        heap, counts = self.heap, self.counts
        while heap and counts.get(heap[0][-1], 0) <= 0:
            heappop(heap)
        return Term(heap[0][-1]) if heap else None


class _Extreme(_FirstValue):
    """The first value in an order of keys; an error while there is an error."""

    __slots__ = ("errors",)

    def __init__(self, key_order: Callable[[Key], Key]) -> None:
        super().__init__(key_order)
        self.errors = 0

    def apply(self, value: str | None, weight: int) -> None:
        if value is None:
            self.errors += weight
        else:
            super().apply(value, weight)

    def value(self) -> Term | None:
        return None if self.errors else super().value()


class _Concatenation(StoredValues):
    """The texts of the values in order, with a separator between them; an error while a value has no text."""

    __slots__ = ("separator",)

    def __init__(self, separator: str) -> None:
        super().__init__()
        self.separator = separator

    def apply(self, value: str | None, weight: int) -> None:
        super().apply(None if value is None or is_blank(value) else value, weight)

    def of_values(self) -> Term:
        self.sort(key)
        texts = (values.text(Term(value)) for value, count in self.counts.items() for _ in range(count))
        return literal(self.separator.join(texts))


MEMBERS: Members = (
    AggregateFunction(
        "count",
        _Count,
        solutions=_CountAll,
        presence_only=True,
        always_bound=True,
        doc="the number of values, or of solutions",
    ),
    AggregateFunction("sum", _Sum, doc="the exact sum of numbers"),
    AggregateFunction("avg", _Average, doc="the exact average of numbers"),
    AggregateFunction(
        "min", partial(_Extreme, tuple), ignores_duplicates=True, bound_if_values_are=True, doc="the first value"
    ),
    AggregateFunction(
        "max", partial(_Extreme, _Descending), ignores_duplicates=True, bound_if_values_are=True, doc="the last value"
    ),
    AggregateFunction(
        "sample",
        partial(_FirstValue, tuple),
        ignores_duplicates=True,
        bound_if_values_are=True,
        doc="the first of the values that there are",
    ),
    AggregateFunction("group_concat", _Concatenation, has_separator=True, doc="the texts of the values in order"),
)
