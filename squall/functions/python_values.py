"""Python values of terms, and terms of Python values.

A literal whose datatype has a type in Python has a value of that type; an IRI, a blank node, and all other literals are
texts. Nothing is rounded: what Python's type cannot hold (a year 12000, picoseconds) is its lexical form.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error, unhexlify
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

from squall.errors import ArgumentError
from squall.functions.values import (
    BOOLEAN,
    DAY_TIME,
    DURATION,
    NUMERIC,
    Duration,
    Point,
    boolean,
    civil,
    decimal,
    double,
    duration,
    duration_literal,
    integer,
    number,
    point,
    text,
)
from squall.rdf import XSD, Term, iri, is_literal, literal, parts
from squall.rdf import term as term_of_library

PythonValue = bool | int | Decimal | float | datetime | date | time | timedelta | bytes | str
"""The types of values. (A bool is an int in Python, and a datetime a date.)"""

_MICROSECOND_DIGITS = 6


@lru_cache(maxsize=65536)
def to_python(term: Term) -> PythonValue:
    """Returns the Python value of a term.

    Integers of all widths are int, xsd:decimal is `Decimal`, xsd:double and xsd:float are float, xsd:boolean is bool.
    xsd:dateTime is a datetime with a time zone (UTC where the literal has none); xsd:date without a time zone is a
    date, and xsd:time a time. A duration without months is a timedelta, xsd:hexBinary and xsd:base64Binary are bytes. A
    string is itself, also one with a language. An IRI is its text, and a blank node its label behind ``_:``.

    A literal that is ill-typed, or whose value the type cannot hold exactly, is its lexical form.
    """
    if not is_literal(term):
        return str(term) if term.startswith("_:") else text(term)
    lexical, datatype, _ = parts(term)
    value = _VALUES[datatype](term, lexical) if datatype in _VALUES else None
    return lexical if value is None else value


def _number(term: Term, lexical: str) -> PythonValue | None:
    parsed = number(term)
    return None if parsed is None else parsed.value


def _boolean(term: Term, lexical: str) -> PythonValue | None:
    return boolean(term)


def _date_time(term: Term, lexical: str) -> PythonValue | None:
    parsed = point(term)
    fields = _fields(parsed) if parsed else None
    if parsed is None or fields is None:
        return None
    days, seconds, microseconds = fields
    year, month, day = civil(days)
    if not 1 <= year <= 9999:
        return None
    return datetime.combine(date(year, month, day), _clock(seconds, microseconds), _zone(parsed.zone or 0))


def _date(term: Term, lexical: str) -> PythonValue | None:
    parsed = point(term)
    if parsed is None or parsed.zone is not None:
        return None
    year, month, day = civil(parsed.seconds // 86400)
    return date(year, month, day) if 1 <= year <= 9999 else None


def _time(term: Term, lexical: str) -> PythonValue | None:
    parsed = point(term)
    fields = _fields(parsed) if parsed else None
    if parsed is None or fields is None:
        return None
    _, seconds, microseconds = fields
    return _clock(seconds, microseconds).replace(tzinfo=None if parsed.zone is None else _zone(parsed.zone))


def _duration(term: Term, lexical: str) -> PythonValue | None:
    parsed = duration(term)
    if parsed is None or parsed.months or (exact := parsed.seconds.scaleb(_MICROSECOND_DIGITS)) % 1:
        return None
    try:
        return timedelta(microseconds=int(exact))
    except OverflowError:
        return None


def _hexadecimal(term: Term, lexical: str) -> PythonValue | None:
    try:
        return unhexlify(lexical)
    except (Error, ValueError):
        return None


def _base64(term: Term, lexical: str) -> PythonValue | None:
    try:
        return b64decode(lexical.replace(" ", ""), validate=True)
    except (Error, ValueError):
        return None


_VALUES: dict[str, Callable[[Term, str], PythonValue | None]] = {
    **dict.fromkeys(NUMERIC, _number),
    BOOLEAN: _boolean,
    XSD + "dateTime": _date_time,
    XSD + "dateTimeStamp": _date_time,
    XSD + "date": _date,
    XSD + "time": _time,
    DURATION: _duration,
    DAY_TIME: _duration,
    XSD + "hexBinary": _hexadecimal,
    XSD + "base64Binary": _base64,
}
"""By datatype, the value of a literal; None if it has none that the type of Python can hold."""


def _fields(parsed: Point) -> tuple[int, int, int] | None:
    """Returns the days since the epoch, the second of the day, and its microseconds; None if there are more digits."""
    if len(parsed.fraction) > _MICROSECOND_DIGITS:
        return None
    days, seconds = divmod(parsed.seconds, 86400)
    return days, seconds, int(parsed.fraction.ljust(_MICROSECOND_DIGITS, "0"))


def _clock(seconds: int, microseconds: int) -> time:
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, microseconds)


def _zone(seconds: int) -> timezone:
    return timezone(timedelta(seconds=seconds)) if seconds else UTC


def to_term(value: object) -> Term:
    """Returns the term of a Python value: the inverse of `to_python`, where a value says its datatype.

    A str is a string, also one that looks like an IRI (`squall.rdf.iri` makes IRIs). A datetime without a time zone is
    an xsd:dateTime without one, which squall reads as UTC. A UUID is its IRI. Terms of rdflib and pyoxigraph stay what
    they are.

    Raises:
        ArgumentError: There is no term for values of that type.
    """
    # In one piece: one line for each type, subclasses before their base.
    match value:
        case bool():
            return literal(str(value).lower(), BOOLEAN)
        case int():
            return integer(value)
        case Decimal() if value.is_finite():
            return decimal(value)
        case float():
            return double(value)
        case datetime():
            return literal(value.isoformat().replace("+00:00", "Z"), XSD + "dateTime")
        case date():
            return literal(value.isoformat(), XSD + "date")
        case time():
            return literal(value.isoformat().replace("+00:00", "Z"), XSD + "time")
        case timedelta():
            seconds = Decimal(value // timedelta(microseconds=1)).scaleb(-_MICROSECOND_DIGITS)
            return duration_literal(Duration(0, seconds), DAY_TIME)
        case bytes():
            return literal(value.hex().upper(), XSD + "hexBinary")
        case UUID():
            return iri(value.urn)
        case str() if not hasattr(value, "n3"):
            return literal(value)
        case _:
            try:
                return term_of_library(value)
            except ArgumentError:
                hint = "numbers, texts, dates and times have terms, and the terms of rdflib and pyoxigraph"
                raise ArgumentError(f"there is no term for {value!r}", hint=hint) from None
