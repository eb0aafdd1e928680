"""Types of the columns of a table of outputs: the narrowest that holds all values exactly, or a type that is given.

A column whose values no type holds exactly has their lexical forms. So its type depends on the values, but neither on
their order nor on the builder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from squall.errors import SinkError, UsageError, did_you_mean
from squall.functions.python_values import PythonValue, to_python
from squall.rdf import XSD, Term, literal
from squall.streams.formats.results import plain_value

if TYPE_CHECKING:
    import pyarrow

OTHER_COLUMNS = "*"
"""Stands for all columns without a type of their own."""
COLUMN_TYPES = {
    "string": "string",
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "decimal": "decimal",
    "date": "date",
    "timestamp": "dateTime",
}
"""The types that a column can be given, by Spark's names, and the datatypes of XML Schema that have their values.
``decimal`` may have digits: ``decimal(38, 18)``."""
_GIVEN = re.compile(r"([a-z]+)(?:\((\d+), ?(\d+)\))?")
_DEFAULT_DECIMAL = 10, 0
"""The digits of a decimal without any, and those behind the point, as Spark has them."""
_MAX_DECIMAL_DIGITS = 38
_MAX_DIGITS = 4000
"""A longer number is a text."""
_INT64 = 2**63
_CACHED_TERMS = 65536


def check_given_types(names: Iterable[str], types: Mapping[str, str]) -> None:
    """Checks the types that are given to columns.

    Args:
        names: The names of the columns.
        types: The type of each column by its name, or of `OTHER_COLUMNS`.

    Raises:
        UsageError: A name is no column, or a type none that a column can have.
    """
    columns = tuple(names)
    for name, type in types.items():
        if name not in (*columns, OTHER_COLUMNS):
            hint = did_you_mean(name, columns) or f"columns: {', '.join(columns)}"
            raise UsageError(f"there is no column `{name}` to be typed", hint=hint)
        match = _GIVEN.fullmatch(type)
        if match is None or match[1] not in COLUMN_TYPES or (match[2] and match[1] != "decimal"):
            raise UsageError(f"a column cannot have the type `{type}`", hint=f"types: {', '.join(COLUMN_TYPES)}")
        digits, scale = _decimal_digits(type)
        if not scale <= digits <= _MAX_DECIMAL_DIGITS or not digits:
            hint = f"at most {_MAX_DECIMAL_DIGITS} digits, of which no more are behind the point: `decimal(20, 2)`"
            raise UsageError(f"a column cannot have the type `{type}`", hint=hint)


def _decimal_digits(type: str) -> tuple[int, int]:
    match = _GIVEN.fullmatch(type)
    return (int(match[2]), int(match[3])) if match and match[2] else _DEFAULT_DECIMAL


class TypedColumn:
    """One column: its type, and the values of terms in it.

    Until `observe` has had all terms, the type is not known, unless it is given.
    """

    def __init__(self, name: str, given_type: str | None = None) -> None:
        self.name = name
        self._given_type = given_type
        self._types = set(_CANDIDATES)
        """The types that hold all values so far."""
        self._whole_digits = 0
        self._scale = 0
        self._is_empty = True

    def observe(self, term: Term | None) -> None:
        """Takes a term into account. Raises SinkError if it is not of the type that is given."""
        if term is None:
            return
        if self._given_type is not None:
            self._value_of_given_type(term)
            return
        types, whole_digits, scale = _fitting_types(term)
        self._is_empty = False
        self._types &= types
        self._whole_digits, self._scale = max(self._whole_digits, whole_digits), max(self._scale, scale)

    @property
    def type(self) -> str:
        """The type that holds all terms, by its name in `COLUMN_TYPES`, or ``time`` or ``binary``."""
        if self._given_type is not None:
            return self._given_type
        if self._is_empty:
            return "string"
        for type in _CANDIDATES:
            is_too_long = type == "decimal" and self._whole_digits + self._scale > _MAX_DECIMAL_DIGITS
            if type in self._types and not is_too_long:
                return f"decimal({_MAX_DECIMAL_DIGITS}, {self._scale})" if type == "decimal" else type
        return "string"

    def array(self, terms: Iterable[Term | None]) -> pyarrow.Array[Any]:
        """Returns terms, all of which have been observed, as an array of Arrow."""
        import pyarrow

        value_of = self._value_of_given_type if self._given_type is not None else _converter(self.type)
        values = [None if term is None else value_of(term) for term in terms]
        return pyarrow.array(values, arrow_type(self.type))

    def _value_of_given_type(self, term: Term) -> Any:
        """Returns the value of a term in the type that is given. Raises SinkError."""
        assert self._given_type is not None
        value = _value_of_type(term, self._given_type)
        if value is None:
            lexical = plain_value(term)
            hint = f"have the query answer with what is, or write `--typed '{self.name}=string'`"
            raise SinkError(f"the value `{lexical}` of `{self.name}` is no {self._given_type}", hint=hint)
        return value


def arrow_type(type: str) -> pyarrow.DataType:
    """Returns the type of Arrow of a column."""
    import pyarrow

    match type.partition("(")[0]:
        case "decimal":
            return pyarrow.decimal128(*_decimal_digits(type))
        case "timestamp":
            return pyarrow.timestamp("us", "UTC")
        case "time":
            return pyarrow.time64("us")
    names = {"boolean": "bool", "int": "int32", "long": "int64", "float": "float", "double": "double", "date": "date32"}
    return pyarrow.type_for_alias(names.get(type, type))


_CANDIDATES = ("boolean", "long", "decimal", "double", "timestamp", "date", "time", "binary")
"""The types of columns, narrower ones first. What none of them holds is a string."""
_NO_TYPES = frozenset[str](), 0, 0


@lru_cache(_CACHED_TERMS)
def _fitting_types(term: Term) -> tuple[frozenset[str], int, int]:
    """Returns the types that hold the value of a term exactly, and the digits before and behind its point."""
    if len(term) > _MAX_DIGITS:
        return _NO_TYPES
    value = to_python(term)
    match value:
        case bool():
            return frozenset(("boolean",)), 0, 0
        case int() | Decimal():
            return _fitting_numbers(value)
        case float():
            return frozenset(("double",)), 0, 0
        case datetime():
            return frozenset(("timestamp",) if _in_utc(value) else ()), 0, 0
        case date():
            return frozenset(("date",)), 0, 0
        case time() if value.tzinfo is None:
            return frozenset(("time",)), 0, 0
        case bytes():
            return frozenset(("binary",)), 0, 0
    return _NO_TYPES


def _fitting_numbers(value: int | Decimal) -> tuple[frozenset[str], int, int]:
    types = {"decimal"}
    exact = Decimal(value)
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        types.add("long")
    if _as_double(exact) is not None:
        types.add("double")
    scale = max(0, -int(exact.as_tuple().exponent))
    return frozenset(types), max(0, exact.adjusted() + 1), scale


def _as_double(value: Decimal) -> float | None:
    """Returns a number as a double; None if that is not exact."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) and Decimal(number) == value else None


def _in_utc(value: datetime) -> datetime | None:
    """Returns a time in UTC; None if the calendar of Python ends before it."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return None


def _converter(type: str) -> Callable[[Term], Any]:
    """Returns the function from a term to its value, which the type holds."""
    kind = type.partition("(")[0]
    if kind == "string":
        return plain_value
    if kind in ("decimal", "double"):
        convert: Callable[[Any], Any] = Decimal if kind == "decimal" else float
        return lambda term: convert(to_python(term))
    return to_python


@lru_cache(_CACHED_TERMS)
def _value_of_type(term: Term, type: str) -> PythonValue | None:
    """Returns the value that the lexical form of a term has in a type; None if it has none."""
    kind, lexical = type.partition("(")[0], plain_value(term)
    if kind == "string":
        return lexical
    if len(lexical) > _MAX_DIGITS:
        return None
    value = to_python(literal(lexical, XSD + COLUMN_TYPES[kind]))
    if isinstance(value, str):
        return None
    if isinstance(value, datetime):
        return _in_utc(value)
    if isinstance(value, Decimal):
        return _rescaled(value, *_decimal_digits(type))
    return value


def _rescaled(value: Decimal, digits: int, scale: int) -> Decimal | None:
    """Returns a number if a decimal with so many digits, and so many behind the point, holds it exactly."""
    _, number, exponent = value.as_tuple()
    trailing_zeros = len(number) - len("".join(map(str, number)).rstrip("0"))
    fits = -int(exponent) - trailing_zeros <= scale and (not value or value.adjusted() + 1 + scale <= digits)
    return value if fits else None
