"""The aggregates of a group, kept up to date as values come and go (SPARQL 1.1, section 18.5.1).

An error among the values (None) is an error of the aggregate, but for COUNT and SAMPLE, which leave errors out; so do
Jena and Oxigraph read the specification, which says nothing of MIN and MAX.

Nothing here depends on the order in which values come: sums are kept as exact rationals and rounded once, and which
type a result has follows from what is there now.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

from squall.errors import BuilderError
from squall.functions import values
from squall.functions.ordering import Key, key
from squall.plan.operators import Aggregate
from squall.rdf import Term, is_blank, literal

INTEGER, DECIMAL, FLOAT, DOUBLE = range(4)
"""The numeric types, each promoted to those after it (SPARQL 1.1, section 17.1)."""

T = TypeVar("T", str, str | None)

_FLOAT_UNITS = 2**1074
"""All finite floats and doubles are multiples of 1 / this."""
_MAX_STALE_KEYS = 16
"""So many values that are gone may always stay in a heap."""


class Accumulator:
    """One aggregate of one group. members: how many solutions are in the group now."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members = 0

    def add(self, value: str | None, weight: int) -> None:
        """The value (None: there is none) is in the group `weight` times more; a negative weight takes back.

        Changes add up in any order. On average a change costs O(log n) at most, n the number of values kept.
        """
        self.members += weight
        self.apply(value, weight)

    def apply(self, value: str | None, weight: int) -> None:
        """What `add` does non_finite counting members."""
        raise NotImplementedError

    def value(self) -> Term | None:
        """The aggregate of what is in the group now; None where it has no value."""
        raise NotImplementedError

    def empty(self) -> bool:
        """Whether nothing is in the group."""
        return self.members == 0


def accumulator(aggregate: Aggregate) -> Accumulator:
    """The accumulator of an aggregate, of nothing yet.

    Raises BuilderError where the aggregate is none of SPARQL's, or would count distinct solutions (it is told values,
    not solutions).
    """
    distinct = aggregate.distinct
    match aggregate.kind:
        case "count" if aggregate.expression is None and not distinct:
            return _CountAll()
        case "count" if aggregate.expression is not None:
            return _DistinctValues(_Count()) if distinct else _Count()
        case "sum":
            return _DistinctValues(_Sum()) if distinct else _Sum()
        case "avg":
            return _DistinctValues(_Average()) if distinct else _Average()
        case "sample":
            return _FirstValue(tuple)
        case "min":
            return _Extreme(tuple)
        case "max":
            return _Extreme(_Descending)
        case "group_concat":
            return _Concatenation(aggregate.separator, distinct)
    raise BuilderError(f"there is no aggregate like `{aggregate}`")


class _CountAll(Accumulator):
    """How many solutions there are."""

    __slots__ = ()

    def apply(self, value: str | None, weight: int) -> None:
        pass

    def value(self) -> Term:
        return values.integer(self.members)


class _Count(Accumulator):
    """How many values there are."""

    __slots__ = ("present",)

    def __init__(self) -> None:
        super().__init__()
        self.present = 0

    def apply(self, value: str | None, weight: int) -> None:
        if value is not None:
            self.present += weight

    def value(self) -> Term:
        return values.integer(self.present)


class _DistinctValues(Accumulator):
    """Another aggregate, to which each term counts once."""

    __slots__ = ("counts", "of")

    def __init__(self, of: Accumulator) -> None:
        super().__init__()
        self.of = of
        self.counts: dict[str | None, int] = {}

    def apply(self, value: str | None, weight: int) -> None:
        step = _transition(self.counts, value, weight)
        if step:
            self.of.add(value, step)

    def value(self) -> Term | None:
        return self.of.value()


def _transition(counts: dict[T, int], value: T, weight: int) -> int:
    """Counts a value; 1 if it begins to be there by that, -1 if it ends, 0 otherwise."""
    old = counts.get(value, 0)
    new = old + weight
    if new:
        counts[value] = new
    elif old:
        del counts[value]
    return (new > 0) - (old > 0)


class _Sum(Accumulator):
    """The exact sum of numbers; none while there is anything else.

    totals: of what is finite, by type, in the units of `_amount`. non_finite: how often there is an INF, -INF or NaN.
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
    """The exact sum of numbers over how many there are; 0 of nothing."""

    __slots__ = ()

    def value(self) -> Term | None:
        if self.errors or not self.members:
            return None if self.errors else values.integer(0)
        return number(self._total() / self.members, max(DECIMAL, self._kind()))


@lru_cache(maxsize=65536)
def _amount(term: str) -> tuple[int, int | Fraction | str] | None:
    """The type and amount of a number, None of anything else.

    Floats and doubles are told in units of 1 / `_FLOAT_UNITS`, because integers add up faster than fractions; if they are
    not finite, by name.
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


def number(value: Fraction | float, kind: int) -> Term:
    """The literal of a number of a type, to which it is rounded: decimals to 60 digits, floats and doubles to the
    nearest one, half to even (IEEE 754). value: a float only where it is INF, -INF or NaN."""
    if kind == INTEGER:
        return values.integer(int(value))
    if kind == DECIMAL:
        numerator, denominator = value.as_integer_ratio()
        return values.decimal(values.ARITHMETIC.divide(Decimal(numerator), Decimal(denominator)))
    return values.double(_double(value)) if kind == DOUBLE else values.float_(values.single(value))


def _double(value: Fraction | float) -> float:
    """The nearest double."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class _Descending(tuple[Any, ...]):
    """A sort key key_order round."""

    __slots__ = ()
    __lt__ = tuple.__gt__


class _FirstValue(Accumulator):
    """The first value in an order of keys.

    heap: keys of all values that are there, and of some that no longer are: these go when they come to the top, or when
    there are more of them than of others, so that forgetting costs a constant on average.
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
        step = _transition(self.counts, value, weight)
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
    """The first value in an order of keys; none while there is an error."""

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


class _Concatenation(Accumulator):
    """The texts of the values in order, with a separator between them; none while there is one without a text."""

    __slots__ = ("counts", "distinct", "errors", "separator")

    def __init__(self, separator: str, distinct: bool) -> None:
        super().__init__()
        self.separator = separator
        self.distinct = distinct
        self.errors = 0
        self.counts: dict[str, int] = {}

    def apply(self, value: str | None, weight: int) -> None:
        if value is None or is_blank(value):
            self.errors += weight
        else:
            _transition(self.counts, value, weight)

    def value(self) -> Term | None:
        if self.errors:
            return None
        # Left in order, they take linear time to sort the next time.
        self.counts = dict(sorted(self.counts.items(), key=lambda item: key(item[0])))
        times = ((value, min(count, 1) if self.distinct else count) for value, count in self.counts.items())
        return literal(self.separator.join(values.text(Term(value)) for value, count in times for _ in range(count)))
