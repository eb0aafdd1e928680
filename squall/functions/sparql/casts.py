"""Casts: the constructor functions of XSD types (SPARQL 1.1, section 17.5; XPath functions and operators, section 17).

Beyond what SPARQL asks for there are the other integer types, the calendar types and the durations, as XPath has them,
and xsd:string takes every literal: well-formed ones in their canonical form, those of other types as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from squall.functions import Function
from squall.functions.sparql.names import FALSE, TRUE, Maybe
from squall.functions.texts import BASE64, HEX, PLAIN_LITERAL, STRINGS, characters, octets, octets_literal, plain
from squall.functions.values import (
    ARITHMETIC,
    BOOLEAN,
    DAY_TIME,
    DECIMAL,
    DOUBLE,
    DURATION,
    FLOAT,
    INTEGERS,
    YEAR_MONTH,
    Duration,
    Number,
    boolean,
    calendar,
    decimal,
    double,
    duration,
    duration_literal,
    float_,
    floating,
    integer_text,
    is_well_formed,
    number,
    point,
    representable,
    single,
    text,
)
from squall.rdf import XSD, Term, compounds, is_blank, is_literal, literal, parts

_BLANKS = "\t\n\r "
_CALENDAR = ("dateTime", "date", "time", "gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")
_MADE_OF = {
    "dateTime": {"date"},
    "date": {"dateTime"},
    "time": {"dateTime"},
    **{name: {"dateTime", "date"} for name in _CALENDAR[3:]},
}
"""The families from which each can be cast."""


def _read(term: Term, datatype: str) -> Maybe:
    """Returns the value of a string that is read as a literal of the datatype; None for everything else."""
    text = characters(term)
    return None if text is None else literal(text.strip(_BLANKS), datatype)


def _value(term: Maybe, datatype: str) -> Number | None:
    """Returns the number of a term. A string is read as a literal of the datatype."""
    if term is None:
        return None
    numeric = number(term)
    if numeric is not None:
        return numeric
    truth = boolean(term)
    if truth is not None:
        return Number(int(truth), "decimal")
    read = _read(term, datatype)
    return None if read is None else number(read)


def _integer(datatype: str) -> Callable[[Maybe], Maybe]:
    """Truncates a number. A string may not have a fraction."""

    def cast(term: Maybe) -> Maybe:
        numeric = _value(term, datatype)
        if numeric is None or not numeric.is_finite:
            return None
        result = literal(integer_text(int(numeric.value)), datatype)
        return result if number(result) is not None else None

    return cast


def _decimal(term: Maybe) -> Maybe:
    numeric = _value(term, DECIMAL)
    if numeric is None or not numeric.is_finite:
        return None
    return representable(decimal(ARITHMETIC.create_decimal(numeric.value)))


def _float(term: Maybe) -> Maybe:
    numeric = _value(term, FLOAT)
    if numeric is None:
        return None
    return float_(single(numeric.value if isinstance(numeric.value, float) else Fraction(numeric.value)))


def _double(term: Maybe) -> Maybe:
    numeric = _value(term, DOUBLE)
    return None if numeric is None else double(floating(numeric))


def _boolean(term: Maybe) -> Maybe:
    if term is None:
        return None
    truth = boolean(term)
    numeric = number(term)
    if numeric is not None:
        truth = numeric.is_truthful
    if truth is None:
        read = _read(term, BOOLEAN)
        truth = None if read is None else boolean(read)
    return None if truth is None else TRUE if truth else FALSE


def _string(term: Maybe) -> Maybe:
    text = None if term is None else as_string(term)
    return None if text is None else literal(text)


def as_string(term: Term) -> str | None:
    """Returns the characters of a term cast to xsd:string."""
    if not is_literal(term):
        return None if is_blank(term) else text(term)
    plain_literal = plain(term)
    if plain_literal is not None:
        return plain_literal.text
    return _canonical(term) if is_well_formed(term) else None


def _canonical(term: Term) -> str | None:
    """Returns a well-formed literal in the form of XPath, and one of an unknown datatype unchanged."""
    numeric = number(term)
    if numeric is not None:
        return _of_number(numeric)
    truth, at, length, data = boolean(term), point(term), duration(term), octets(term)
    if truth is not None:
        return "true" if truth else "false"
    if at is not None:
        return text(calendar(at))
    datatype = parts(term).datatype
    if length is not None:
        return text(duration_literal(length, datatype))
    if data is not None:
        return text(octets_literal(data, datatype))
    return None if datatype in _READ else text(term)


_READ = {*STRINGS, PLAIN_LITERAL, HEX, BASE64, DURATION, DAY_TIME, YEAR_MONTH, compounds.DATATYPE}
"""The datatypes whose well-formed literals are parsed elsewhere. Compounds are no text."""


def _of_number(numeric: Number) -> str:
    if isinstance(numeric.value, float):
        return _of_float(
            numeric.value, parts(double(numeric.value) if numeric.kind == "double" else float_(numeric.value)).lexical
        )
    return integer_text(numeric.value) if isinstance(numeric.value, int) else text(decimal(numeric.value))


def _of_float(value: float, number_text: str) -> str:
    """Formats a number as XPath does: without an exponent from a millionth to a million, with one elsewhere."""
    if not math.isfinite(value):
        return number_text
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    exact = Decimal(number_text)
    if 1e-6 <= abs(value) < 1e6:
        return text(decimal(exact))
    sign, digits, _ = exact.as_tuple()
    figures = "".join(map(str, digits)).rstrip("0")
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{exact.adjusted()}"


def _calendar(family: str) -> Callable[[Maybe], Maybe]:
    datatype = XSD + family

    def cast(term: Maybe) -> Maybe:
        if term is None:
            return None
        term = _read(term, datatype) or term
        at = point(term)
        if at is None or at.family == family:
            return None if at is None else literal(text(term), datatype)
        if at.family not in _MADE_OF[family]:
            return None
        clock = at.seconds % 86400
        seconds = at.seconds - clock if family == "date" else clock if family == "time" else at.seconds
        return calendar(at._replace(family=family, seconds=seconds, fraction=at.fraction if family == "time" else ""))

    return cast


def _duration(datatype: str) -> Callable[[Maybe], Maybe]:
    """Casts a duration to a subtype, which keeps only its own part."""

    def cast(term: Maybe) -> Maybe:
        if term is None:
            return None
        length = duration(_read(term, datatype) or term)
        if length is None:
            return None
        months = 0 if datatype == DAY_TIME else length.months
        return duration_literal(Duration(months, Decimal(0) if datatype == YEAR_MONTH else length.seconds), datatype)

    return cast


def _cast(datatype: str, body: Callable[[Maybe], Maybe]) -> Function:
    return Function(datatype, body, 1, 1, doc=f"cast to xsd:{datatype.removeprefix(XSD)}")


MEMBERS: tuple[Function, ...] = (
    _cast(BOOLEAN, _boolean),
    _cast(DECIMAL, _decimal),
    _cast(FLOAT, _float),
    _cast(DOUBLE, _double),
    _cast(XSD + "string", _string),
    *(_cast(datatype, _integer(datatype)) for datatype in INTEGERS),
    *(_cast(XSD + family, _calendar(family)) for family in _CALENDAR),
    *(_cast(datatype, _duration(datatype)) for datatype in (DURATION, DAY_TIME, YEAR_MONTH)),
)
