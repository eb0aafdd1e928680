"""Records of Python values as values of JSON, which mappings read: rows of a DataFrame, records of Avro and Parquet.

What JSON has no type for is a text that knows its datatype of XML Schema, in the form in which squall writes values of
that datatype: equal values are equal terms, wherever they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any
from uuid import UUID

from squall.errors import ArgumentError
from squall.functions.python_values import to_term
from squall.functions.values import DAY_TIME, Duration, duration_literal
from squall.rdf import XSD, parts
from squall.streams.mappings.evaluation import Number, TypedText, UnusableRecord

_PLAIN = frozenset((str, int, bool, type(None)))
"""The types of values that mappings read as they are."""
_DATE_TIME = f"{XSD}dateTime"
_NANOSECOND_DIGITS = 9


class UnusableValue:
    """What stands for a value that no record can have, with the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"<{self.reason}>"


def record_column(values: Sequence[Any]) -> Sequence[Any]:
    """Returns the values of a column as a mapping reads them; a value that none can read is an `UnusableValue`."""
    kinds = set(map(type, values))
    if kinds <= _PLAIN and (str not in kinds or _are_texts(values)):
        return values
    return [*map(usable_value, values)]


def usable_value(value: Any) -> Any:
    """Returns a Python value as a mapping reads it; one that none can read is an `UnusableValue`."""
    try:
        return record_value(value)
    except UnusableRecord as error:
        return UnusableValue(str(error))


def unusable_rows(columns: Mapping[str, Sequence[Any]]) -> dict[int, str]:
    """Returns the rows with a value that no mapping can read, by their indexes, with the reason."""
    reasons: dict[int, str] = {}
    for name, values in columns.items():
        if UnusableValue in set(map(type, values)):
            for index, value in enumerate(values):
                if type(value) is UnusableValue:
                    reasons.setdefault(index, f"the column `{name}` has {value.reason}")
    return reasons


def record_value(value: Any) -> Any:
    """Returns a Python value as a mapping reads it.

    Texts, integers, truth values, lists and dictionaries are those of JSON; so are floats. Values of other types
    (`Decimal`, dates, times, durations, bytes) are texts with the datatype and the lexical form that
    `squall.functions.python_values.to_term` gives them: `Decimal("20.50")` is `20.5`. A datetime with a time zone is in
    UTC. What pandas and numpy have in place of None is None. A float that is no number is one of xsd:double.

    Raises:
        UnusableRecord: There is no such value in a record.
    """
    convert = _CONVERSIONS.get(type(value))
    return _converted(value) if convert is None else convert(value)


def _converted(value: Any) -> Any:
    """Returns a value whose type is not one of the usual ones, such as a subclass of them."""
    # In one piece: a line for each type, subclasses before their base.
    match value:
        case int():
            return int(value)
        case str():
            return _text(str(value))
        case float():
            return _double(float(value))
        case datetime() | timedelta() if value != value:  # pandas.NaT
            return None
        case datetime() if getattr(value, "nanosecond", 0):
            text = value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value.tzinfo else value.isoformat()
            return TypedText(text, _DATE_TIME)
        case datetime():
            return _date_time(value)
        case timedelta() if getattr(value, "nanoseconds", 0):
            seconds = Decimal(value.value).scaleb(-_NANOSECOND_DIGITS)  # type: ignore[attr-defined]
            return _typed_term(duration_literal(Duration(0, seconds), DAY_TIME))
        case Decimal() | date() | time() | timedelta() | bytes():
            return _typed(value)
        case dict():
            return _object(value)
        case list() | tuple():
            return [*map(record_value, value)]
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas.NA is not even equal to itself
        return None
    if type(value).__name__ in ("datetime64", "timedelta64"):  # of numpy: `tolist` gives an int for nanoseconds
        microseconds = value.astype(f"{type(value).__name__}[us]")
        if value == value and microseconds != value:
            raise UnusableRecord(f"nanoseconds: {value!r}")
        return record_value(microseconds.tolist())
    if hasattr(value, "tolist"):  # numpy
        return record_value(value.tolist())
    raise UnusableRecord(f"a {type(value).__name__}, which is no value of a record: {value!r}")


def _are_texts(values: Sequence[Any]) -> bool:
    return all(value.isascii() for value in values if type(value) is str)


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UnusableRecord(f"half of a character: \\u{ord(value[error.start]):04x}") from None
    return value


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise UnusableRecord(f"the key `{key!r}`, which is no text")
    return _text(key)


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    return {_key(key): record_value(item) for key, item in value.items()}


def _double(value: float) -> Number | TypedText:
    return Number(repr(value)) if isfinite(value) else _typed(value)


def _date_time(value: datetime) -> TypedText:
    """Returns a datetime, in UTC if it has a time zone. One that the calendar does not have there keeps its own."""
    try:
        return _typed(value.astimezone(UTC) if value.tzinfo else value)
    except OverflowError:
        return _typed(value)


def _typed(value: object) -> TypedText:
    try:
        return _typed_term(to_term(value))
    except ArgumentError:  # a decimal that is no number
        raise UnusableRecord(f"`{value}`, which is no number") from None


def _typed_term(term: Any) -> TypedText:
    lexical, datatype, _ = parts(term)
    return TypedText(lexical, datatype)


def _itself(value: Any) -> Any:
    return value


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((bool, int, type(None)), _itself),
    str: _text,
    float: _double,
    datetime: _date_time,
    dict: _object,
    list: lambda value: [*map(record_value, value)],
    UUID: str,
    **dict.fromkeys((Decimal, date, time, timedelta, bytes), _typed),
}
"""Functions to values of JSON, by the type of the value, for speed; `_converted` has all others."""
