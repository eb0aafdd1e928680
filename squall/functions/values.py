"""The values of literals of XSD types, such as numbers and instants; their equality and order.

Sources: XSD 1.1 part 2, sections 3.3 and 3.4 (lexical forms, value spaces); RDF 1.1 Semantics 7 (ill-typed literals
denote nothing: here they are equal to themselves alone).
"""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Hashable
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from squall.rdf import LANG_STRING, XSD, XSD_STRING, Term, iri_text, is_iri, is_literal, literal, parts

INT = (-(2**31), 2**31 - 1)
LONG = (-(2**63), 2**63 - 1)

INTEGERS: dict[str, tuple[int | None, int | None]] = {
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

INTEGER = XSD + "integer"
DECIMAL = XSD + "decimal"
FLOAT = XSD + "float"
DOUBLE = XSD + "double"
BOOLEAN = XSD + "boolean"
NUMERIC = {*INTEGERS, DECIMAL, FLOAT, DOUBLE}

MAX_NUMBER_LENGTH = 10_000
"""The most characters of a literal that denotes a number: Python's conversions take quadratic time. A longer literal
denotes nothing, and an operation with such a result has no result."""
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

    @property
    def is_finite(self) -> bool:
        return not isinstance(self.value, float) or math.isfinite(self.value)

    @property
    def is_truthful(self) -> bool:
        """Whether its effective boolean value is true (SPARQL 1.1, section 17.2.2): it is neither zero nor NaN."""
        return self.value != 0 and self.value == self.value


@lru_cache(maxsize=65536)
def number(term: Term) -> Number | None:
    """Returns the number that a literal denotes; None for everything else, ill-typed literals included."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if datatype not in NUMERIC or len(lexical) > MAX_NUMBER_LENGTH:
        return None
    if datatype in INTEGERS:
        return _integer(lexical, *INTEGERS[datatype])
    if datatype == DECIMAL:
        return Number(Decimal(lexical), "decimal") if _DECIMAL_FORM.fullmatch(lexical) else None
    if not _FLOAT_FORM.fullmatch(lexical):
        return None
    value = float(lexical)
    return Number(value, "double") if datatype == DOUBLE else Number(_single(value), "float")


def _integer(lexical: str, least: int | None, most: int | None) -> Number | None:
    if not _INTEGER_FORM.fullmatch(lexical):
        return None
    value = integer_of(lexical)
    fits = (least is None or value >= least) and (most is None or value <= most)
    return Number(value, "decimal") if fits else None


_CHUNK = sys.int_info.str_digits_check_threshold
"""So many digits Python converts in any case. A process may refuse more (`sys.set_int_max_str_digits`)."""
_CHUNK_LIMIT = 10**_CHUNK


def integer_of(digits: str) -> int:
    """Returns the integer of a text of any length: digits, and perhaps a sign."""
    if len(digits) <= _CHUNK:
        return int(digits)
    value = 0
    unsigned = digits.lstrip("+-")
    for start in range(0, len(unsigned), _CHUNK):
        chunk = unsigned[start : start + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return -value if digits.startswith("-") else value


def integer_text(value: int) -> str:
    """Returns the digits of an integer of any size."""
    if -_CHUNK_LIMIT < value < _CHUNK_LIMIT:
        return str(value)
    chunks = []
    size = abs(value)
    while size:
        size, chunk = divmod(size, _CHUNK_LIMIT)
        chunks.append(f"{chunk:0{_CHUNK}}")
    return f"{'-' if value < 0 else ''}{''.join(reversed(chunks)).lstrip('0')}"


def _single(value: float) -> float:
    """Returns the nearest value of single precision."""
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


_SHOWN = {
    "dateTime": "{date}T{clock}",
    "date": "{date}",
    "time": "{clock}",
    "gYearMonth": "{year}-{month}",
    "gYear": "{year}",
    "gMonthDay": "--{month}-{day}",
    "gDay": "---{day}",
    "gMonth": "--{month}",
}
"""The lexical form of each family, without the time zone."""


class Point(NamedTuple):
    """The parts of a calendar literal.

    family: the local name of its type (of xsd:dateTimeStamp, ``dateTime``).
    seconds: since the epoch, by the clocks where it was written; of a date, to its first; of a time, since midnight.
    fraction: the digits of the second's fraction without trailing zeros (as text: exact, ordered).
    zone: how far those clocks are ahead of UTC, in seconds; None where the literal does not say.
    """

    family: str
    seconds: int
    fraction: str
    zone: int | None


class Instant(NamedTuple):
    """A point on the time line. Instants of one family are ordered by the tuple.

    seconds: since the epoch, UTC; fraction: the digits after them without trailing zeros (as text: exact, ordered).
    """

    family: str
    seconds: int
    fraction: str


@lru_cache(maxsize=65536)
def point(term: Term) -> Point | None:
    """Returns the parts of a calendar literal; None for everything else. A year may have up to nine digits."""
    # In one piece: the tests of a lexical form, in order.
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    family, form = _CALENDAR.get(datatype, ("", None))
    match = form.fullmatch(lexical) if form else None
    if match is None:
        return None
    field = match.groupdict()
    fraction = (field.get("fraction") or "").rstrip("0")
    clock = tuple(int(field.get(name) or 0) for name in ("hour", "minute", "second"))
    if clock[0] == 24 and (clock[1] or clock[2] or fraction):
        return None
    days = day_number(int(field.get("year") or 1972), int(field.get("month") or 1), int(field.get("day") or 1))
    if days is None:
        return None
    seconds = clock[0] * 3600 + clock[1] * 60 + clock[2]
    return Point(
        family, seconds % 86400 if family == "time" else days * 86400 + seconds, fraction, _zone(field["zone"])
    )


@lru_cache(maxsize=65536)
def instant(term: Term) -> Instant | None:
    """Returns the instant that a calendar literal denotes (for a date, its first); None for everything else.

    A missing time zone is read as UTC, as Jena does.
    """
    moment = point(term)
    return Instant(moment.family, moment.seconds - (moment.zone or 0), moment.fraction) if moment else None


_CYCLE = 146097
"""The days of 400 years, after which the Gregorian calendar repeats itself."""


def day_number(year: int, month: int, day: int) -> int | None:
    """Returns the days from the epoch, for any year; None if there is no such day."""
    cycles, year_in_cycle = divmod(year - 1, 400)
    try:
        ordinal = date(year_in_cycle + 1, month, day).toordinal()
    except ValueError:
        return None
    return ordinal + cycles * _CYCLE - date(1970, 1, 1).toordinal()


def civil(days: int) -> tuple[int, int, int]:
    """Returns the year (0 is the one before 1), month and day that is so many days from the epoch."""
    cycles, ordinal = divmod(days + date(1970, 1, 1).toordinal() - 1, _CYCLE)
    day = date.fromordinal(ordinal + 1)
    return day.year + cycles * 400, day.month, day.day


def _zone(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return None if zone is None else 0
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return -seconds if zone[0] == "-" else seconds


_DURATION = re.compile(
    r"(?P<sign>-?)P(?=[0-9T])(?:(?P<years>[0-9]+)Y)?(?:(?P<months>[0-9]+)M)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]+)?)S)?)?"
)
DURATION, DAY_TIME, YEAR_MONTH = (XSD + name for name in ("duration", "dayTimeDuration", "yearMonthDuration"))
_NOT_SAID = {DURATION: (), DAY_TIME: ("years", "months"), YEAR_MONTH: ("days", "hours", "minutes", "seconds")}
_LONGEST_DURATION = 100
"""The most characters of a duration; longer ones are malformed."""


class Duration(NamedTuple):
    """The value of a duration: both parts have the same sign (XSD 1.1, section 3.3.6.1)."""

    months: int
    seconds: Decimal


@lru_cache(maxsize=65536)
def duration(term: Term) -> Duration | None:
    """Returns the duration that a literal of xsd:duration or of a subtype denotes; None for everything else."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    match = _DURATION.fullmatch(lexical) if datatype in _NOT_SAID and len(lexical) < _LONGEST_DURATION else None
    if match is None or any(match[name] is not None for name in _NOT_SAID[datatype]):
        return None
    sign = -1 if match["sign"] else 1
    years, months, days, hours, minutes = (
        int(match[name] or 0) for name in ("years", "months", "days", "hours", "minutes")
    )
    full_seconds = Decimal(days * 86400 + hours * 3600 + minutes * 60)
    seconds = ARITHMETIC.add(full_seconds, Decimal(match["seconds"] or 0))
    return Duration(sign * (years * 12 + months), seconds if sign > 0 else seconds.copy_negate())


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def boolean(term: Term) -> bool | None:
    """Returns the truth value that an xsd:boolean literal denotes; None for everything else."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    return _TRUTH.get(lexical) if datatype == BOOLEAN else None


@lru_cache(maxsize=262144)
def value_key(term: Term) -> Hashable:
    """Returns a key that two terms share if and only if they are the same value (Jena's ``sameValueAs``).

    xsd:decimal and all integer types are compared as exact numbers, xsd:float and xsd:double each apart, calendar types
    by instant, durations by their months and seconds, language tags without regard to case. Ill-typed literals and
    everything else are themselves.
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
    if datatype in _NOT_SAID:
        return duration(term) or term
    if datatype == BOOLEAN and lexical in _TRUTH:
        return ("boolean", _TRUTH[lexical])
    value = number(term)
    if value is None:
        return term
    # As text, because -0.0 equals 0.0 and NaN differs from itself as Python values.
    return (value.kind, repr(value.value) if value.is_floating else value.value)


def same(left: Term, right: Term) -> bool:
    """Returns whether two terms are the same value."""
    return left == right or value_key(left) == value_key(right)


def compare(left: Term, right: Term) -> int | None:
    """Returns -1, 0 or 1 as the left value is less than, equal to or greater than the right; None if they have no
    order.

    Ordered are numbers of all types with each other (as doubles, if one is a float or a double) and instants of one
    family.
    """
    left_number, right_number = number(left), number(right)
    if left_number and right_number:
        return _compare_numbers(left_number, right_number)
    start, end = instant(left), instant(right)
    if start and end and start.family == end.family:
        return (start > end) - (start < end)
    return None


def _compare_numbers(left: Number, right: Number) -> int | None:
    if not left.is_floating and not right.is_floating:
        return (left.value > right.value) - (left.value < right.value)
    left_float, right_float = floating(left), floating(right)
    if math.isnan(left_float) or math.isnan(right_float):
        return None
    return (left_float > right_float) - (left_float < right_float)


def floating(value: Number) -> float:
    """Returns the nearest double; infinite if the number is too large."""
    try:
        return float(value.value)
    except OverflowError:
        return math.inf if value.value > 0 else -math.inf


def text(term: Term) -> str:
    """Returns the characters of a term: a literal's lexical form, an IRI without its brackets, a blank node's label."""
    if is_literal(term):
        return parts(term).lexical
    return iri_text(term) if is_iri(term) else term[2:]


def integer(value: int) -> Term:
    """Returns the xsd:integer literal of a number."""
    return Term(f'"{integer_text(value)}"^^<{INTEGER}>')


def representable(result: Term) -> Term | None:
    """Returns the result of an operation, a number; None if it has too many digits to denote one."""
    return result if len(result) <= MAX_NUMBER_LENGTH or number(result) is not None else None


def decimal(value: Decimal) -> Term:
    """Returns the xsd:decimal literal of a number. There is one zero, without a sign."""
    plain = format(value, "f") if value else "0"
    return literal(plain.rstrip("0").rstrip(".") if "." in plain else plain, DECIMAL)


def single(value: Fraction | float) -> float:
    """Returns the nearest value of single precision, half to even.

    Via a double, an exact value would be rounded twice.
    """
    if isinstance(value, float):
        return _single(value)
    size = abs(value)
    if size == 0:
        return 0.0
    if size >= 2**128:
        return math.inf if value > 0 else -math.inf
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - 23, -149)
    nearest = round(size / unit) * unit
    rounded = math.inf if nearest >= 2**128 else float(nearest)
    return rounded if value >= 0 else -rounded


def float_(value: float) -> Term:
    """Returns the xsd:float literal of a value of single precision, with as few digits as identify it."""
    if math.isfinite(value):
        lengths = (float(f"{value:.{digits}g}") for digits in range(1, 10))
        value = next(short for short in lengths if single(Fraction(short)) == value)
    return literal(_double_text(value), FLOAT)


def double(value: float) -> Term:
    """Returns the xsd:double literal of a number, written as Java does: with an exponent below 0.001 and from 10
    million on."""
    return literal(_double_text(value), DOUBLE)


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    digits_text = "".join(map(str, digits)).rstrip("0")
    scale = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{digits_text[0]}.{digits_text[1:] or '0'}E{scale}"


def date_time(milliseconds: int) -> Term:
    """Returns the xsd:dateTime, in UTC, of a time in milliseconds since the epoch."""
    seconds, fraction = divmod(milliseconds, 1000)
    return calendar(Point("dateTime", seconds, f"{fraction:03}".rstrip("0"), 0))


def calendar(at: Point) -> Term:
    """Returns the literal of a point. Fields that its family does not have are left out."""
    days, second_of_day = divmod(at.seconds, 86400)
    year, month, day = civil(days)
    clock = f"{second_of_day // 3600:02}:{second_of_day // 60 % 60:02}:{second_of_day % 60:02}"
    field = {
        "year": f"{'-' if year < 0 else ''}{abs(year):04}",
        "month": f"{month:02}",
        "day": f"{day:02}",
        "clock": f"{clock}.{at.fraction}" if at.fraction else clock,
    }
    field["date"] = "{year}-{month}-{day}".format(**field)
    return literal(_SHOWN[at.family].format(**field) + zone_text(at.zone), XSD + at.family)


def zone_text(zone: int | None) -> str:
    """Returns the text of a time zone; ``""`` if there is none."""
    if not zone:
        return "" if zone is None else "Z"
    minutes = abs(zone) // 60
    return f"{'-' if zone < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def duration_literal(value: Duration, datatype: str) -> Term:
    """Returns the literal of a duration, in its canonical form (XSD 1.1, section E.2). datatype: `DURATION` or a
    subtype."""
    months = abs(value.months)
    full_seconds, _, fraction = f"{value.seconds.copy_abs():f}".partition(".")
    minutes, second_part = divmod(int(full_seconds), 60)
    year_month = _fields_text((months // 12, "Y"), (months % 12, "M"))
    seconds = f"{second_part}.{fraction}".rstrip("0").rstrip(".") if fraction else str(second_part)
    exact = "" if seconds == "0" else f"{seconds}S"
    time = _fields_text((minutes // 60 % 24, "H"), (minutes % 60, "M")) + exact
    text = year_month + _fields_text((minutes // 1440, "D")) + (f"T{time}" if time else "")
    sign = "-" if value.months < 0 or value.seconds < 0 else ""
    return literal(f"{sign}P{text or ('0M' if datatype == YEAR_MONTH else 'T0S')}", datatype)


def _fields_text(*fields: tuple[int, str]) -> str:
    return "".join(f"{value}{name}" for value, name in fields if value)


def is_well_formed(term: Term) -> bool:
    """Returns whether a literal's lexical form belongs to its datatype.

    Unknown datatypes admit all forms.
    """
    lexical, datatype, _ = parts(term)
    if datatype in NUMERIC:
        return number(term) is not None
    if datatype in _CALENDAR:
        return instant(term) is not None
    if datatype in _NOT_SAID:
        return duration(term) is not None
    return datatype != BOOLEAN or lexical in _TRUTH


def is_value(term: Term) -> bool:
    """Returns whether the value of a literal is known, so that it differs from those with another one."""
    _, datatype, _ = parts(term)
    is_supported = datatype in NUMERIC or datatype in _CALENDAR or datatype in (XSD_STRING, LANG_STRING, BOOLEAN)
    return is_supported and is_well_formed(term)


def divide_decimals(left: Decimal, right: Decimal) -> Decimal | None:
    """Divides two numbers. Returns None for a division by zero."""
    return ARITHMETIC.divide(left, right) if right else None


def divide_floats(left: float, right: float) -> float:
    """Divides two numbers by IEEE 754, also by zero."""
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)
