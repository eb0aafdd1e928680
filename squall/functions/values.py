"""The values of literals: numbers, instants and what else XSD types denote; when two are the same; which is less.

Sources: XSD 1.1 part 2, sections 3.3 and 3.4 (lexical forms, value spaces); RDF 1.1 Semantics 7 (ill-typed literals
denote nothing: here they are equal to themselves alone).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Hashable
from datetime import date
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from squall.rdf import LANG_STRING, XSD, XSD_STRING, Term, iri_text, is_iri, is_literal, literal, parts

INT = (-(2**31), 2**31 - 1)
LONG = (-(2**63), 2**63 - 1)

_INTEGERS: dict[str, tuple[int | None, int | None]] = {
    XSD + name: bounds
    for name, bounds in {
        "integer": (None, None),
        "long": LONG,
        "int": INT,
        "short": (-(2**15), 2**15 - 1),
        "byte": (-(2**7), 2**7 - 1),
        "nonNegativeInteger": (0, None),
        "positiveInteger": (1, None),
        "nonPositiveInteger": (None, 0),
        "negativeInteger": (None, -1),
        "unsignedLong": (0, 2**64 - 1),
        "unsignedInt": (0, 2**32 - 1),
        "unsignedShort": (0, 2**16 - 1),
        "unsignedByte": (0, 2**8 - 1),
    }.items()
}
"""The integer types with their least and greatest value."""

_DECIMAL = XSD + "decimal"
_FLOAT = XSD + "float"
_DOUBLE = XSD + "double"
_BOOLEAN = XSD + "boolean"
_NUMERIC = {*_INTEGERS, _DECIMAL, _FLOAT, _DOUBLE}

# No more digits than this, so that a product stays below the 4300 that Python prints; longer ones are no data.
_MOST_DIGITS = 2000
_INTEGER_FORM = re.compile(r"[+-]?[0-9]+")
_DECIMAL_FORM = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_FLOAT_FORM = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")

ARITHMETIC = Context(prec=60)
"""Decimal arithmetic is exact up to 60 digits, then rounded."""


class Number(NamedTuple):
    """A numeric value. `kind` is ``decimal`` for xsd:decimal and all integer types, ``float`` or ``double``."""

    value: int | Decimal | float
    kind: str

    @property
    def is_floating(self) -> bool:
        return self.kind != "decimal"


@lru_cache(maxsize=65536)
def number(term: Term) -> Number | None:
    """The number that a literal denotes; None for everything else, ill-typed literals included."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if datatype not in _NUMERIC or len(lexical) > _MOST_DIGITS:
        return None
    if datatype in _INTEGERS:
        return _integer(lexical, *_INTEGERS[datatype])
    if datatype == _DECIMAL:
        return Number(Decimal(lexical), "decimal") if _DECIMAL_FORM.fullmatch(lexical) else None
    if not _FLOAT_FORM.fullmatch(lexical):
        return None
    value = float(lexical)
    return Number(value, "double") if datatype == _DOUBLE else Number(_single(value), "float")


def _integer(lexical: str, least: int | None, most: int | None) -> Number | None:
    if not _INTEGER_FORM.fullmatch(lexical):
        return None
    value = int(lexical)
    fits = (least is None or value >= least) and (most is None or value <= most)
    return Number(value, "decimal") if fits else None


def _single(value: float) -> float:
    """The nearest value of single precision."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?P<hour>[01][0-9]|2[0-4]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9])(?:\.(?P<fraction>[0-9]+))?"
_ZONE = r"(?P<zone>Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)"

_CALENDAR = {
    XSD + name: (family, re.compile(form))
    for name, family, form in (
        ("dateTime", "dateTime", f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}{_ZONE}?"),
        ("dateTimeStamp", "dateTime", f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}{_ZONE}"),
        ("date", "date", f"{_YEAR}-{_MONTH}-{_DAY}{_ZONE}?"),
        ("time", "time", f"{_TIME}{_ZONE}?"),
        ("gYearMonth", "gYearMonth", f"{_YEAR}-{_MONTH}{_ZONE}?"),
        ("gYear", "gYear", f"{_YEAR}{_ZONE}?"),
        ("gMonthDay", "gMonthDay", f"--{_MONTH}-{_DAY}{_ZONE}?"),
        ("gDay", "gDay", f"---{_DAY}{_ZONE}?"),
        ("gMonth", "gMonth", f"--{_MONTH}{_ZONE}?"),
    )
}


class Instant(NamedTuple):
    """A point on the time line. Instants of one family are ordered by the tuple.

    seconds: since the epoch, UTC; fraction: the digits after them without trailing zeros (as text: exact, ordered).
    """

    family: str
    seconds: int
    fraction: str


@lru_cache(maxsize=65536)
def instant(term: Term) -> Instant | None:
    """The instant that a calendar literal denotes (for a date, its first); None for everything else.

    A missing time zone is read as UTC, as Jena does. A year may have up to nine digits.
    """
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    family, form = _CALENDAR.get(datatype, ("", None))
    found = form.fullmatch(lexical) if form else None
    if found is None:
        return None
    field = found.groupdict()
    fraction = (field.get("fraction") or "").rstrip("0")
    clock = tuple(int(field.get(name) or 0) for name in ("hour", "minute", "second"))
    if clock[0] == 24 and (clock[1] or clock[2] or fraction):
        return None
    days = _days(int(field.get("year") or 1972), int(field.get("month") or 1), int(field.get("day") or 1))
    if days is None:
        return None
    seconds = days * 86400 + clock[0] * 3600 + clock[1] * 60 + clock[2] - _offset(field["zone"])
    return Instant(family, seconds % 86400 if family == "time" else seconds, fraction)


_CYCLE = 146097
"""The days of 400 years, after which the Gregorian calendar repeats itself."""


def _days(year: int, month: int, day: int) -> int | None:
    """The days from the epoch, for any year; None where there is no such day."""
    cycles, rest = divmod(year - 1, 400)
    try:
        ordinal = date(rest + 1, month, day).toordinal()
    except ValueError:
        return None
    return ordinal + cycles * _CYCLE - date(1970, 1, 1).toordinal()


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return -seconds if zone[0] == "-" else seconds


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@lru_cache(maxsize=262144)
def value_key(term: Term) -> Hashable:
    """What two terms share if and only if they are the same value (Jena's ``sameValueAs``).

    xsd:decimal and all integer types are compared as exact numbers, xsd:float and xsd:double each apart, calendar types
    by instant, language tags without regard to case. Ill-typed literals and everything else are themselves.
    """
    if not is_literal(term):
        return term
    lexical, datatype, language = parts(term)
    if datatype == XSD_STRING:
        return term
    if datatype == LANG_STRING:
        return ("string", lexical, language.lower())
    if datatype in _CALENDAR:
        return instant(term) or term
    if datatype == _BOOLEAN and lexical in _TRUTH:
        return ("boolean", _TRUTH[lexical])
    value = number(term)
    if value is None:
        return term
    # As text, because -0.0 equals 0.0 and NaN differs from itself as Python values.
    return (value.kind, repr(value.value) if value.is_floating else value.value)


def same(left: Term, right: Term) -> bool:
    """Whether two terms are the same value."""
    return left == right or value_key(left) == value_key(right)


def compare(left: Term, right: Term) -> int | None:
    """-1, 0 or 1 as the left value is less than, equal to or greater than the right; None where there is no order.

    Ordered are numbers of all types with each other (as doubles, if one is a float or a double) and instants of one
    family.
    """
    one, other = number(left), number(right)
    if one and other:
        return _compare_numbers(one, other)
    start, end = instant(left), instant(right)
    if start and end and start.family == end.family:
        return (start > end) - (start < end)
    return None


def _compare_numbers(left: Number, right: Number) -> int | None:
    if not left.is_floating and not right.is_floating:
        return (left.value > right.value) - (left.value < right.value)
    one, other = floating(left), floating(right)
    if math.isnan(one) or math.isnan(other):
        return None
    return (one > other) - (one < other)


def floating(value: Number) -> float:
    """The nearest double; infinite where the number is too large."""
    return value.value if isinstance(value.value, float) else float(Decimal(value.value))


def text(term: Term) -> str:
    """The characters of a term: a literal's lexical form, an IRI without its brackets, a blank node's label."""
    if is_literal(term):
        return parts(term).lexical
    return iri_text(term) if is_iri(term) else term[2:]


def integer(value: int) -> Term:
    """The literal of an integer: xsd:int, or xsd:long or xsd:integer where it is too large for that."""
    if INT[0] <= value <= INT[1]:
        return literal(str(value), XSD + "int")
    return literal(str(value), XSD + ("long" if LONG[0] <= value <= LONG[1] else "integer"))


def decimal(value: Decimal) -> Term:
    """The xsd:decimal literal of a number."""
    plain = format(value, "f")
    return literal(plain.rstrip("0").rstrip(".") if "." in plain else plain, _DECIMAL)


def double(value: float) -> Term:
    """The xsd:double literal of a number, written as Java does: with an exponent below 0.001 and from 10 million on."""
    return literal(_double_text(value), _DOUBLE)


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    shown = "".join(map(str, digits)).rstrip("0")
    scale = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{scale}"


def date_time(milliseconds: int) -> Term:
    """The xsd:dateTime, in UTC, of a time in milliseconds since the epoch."""
    days, rest = divmod(milliseconds, 86_400_000)
    cycles, ordinal = divmod(days + date(1970, 1, 1).toordinal() - 1, _CYCLE)
    day = date.fromordinal(ordinal + 1)
    year = day.year + cycles * 400
    seconds, fraction = divmod(rest, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        clock += f".{fraction:03}".rstrip("0")
    sign = "-" if year < 0 else ""
    return literal(f"{sign}{abs(year):04}-{day.month:02}-{day.day:02}T{clock}Z", XSD + "dateTime")


def is_well_formed(term: Term) -> bool:
    """Whether a literal's lexical form belongs to its datatype. Datatypes that are not known here admit all forms."""
    lexical, datatype, _ = parts(term)
    if datatype in _NUMERIC:
        return number(term) is not None
    if datatype in _CALENDAR:
        return instant(term) is not None
    return datatype != _BOOLEAN or lexical in _TRUTH


def is_of_type(term: Term, datatype: str) -> bool:
    """Whether a literal is one of a datatype (an IRI): well formed, and its form one of that type as well.

    Any well-formed decimal or integer may be of any type of that family: ``"5"^^xsd:integer`` is an xsd:byte.
    """
    if not is_literal(term) or not is_well_formed(term):
        return False
    lexical, own, _ = parts(term)
    exact = {*_INTEGERS, _DECIMAL}
    if own in exact and datatype in exact:
        return number(literal(lexical, datatype)) is not None
    return own == datatype
