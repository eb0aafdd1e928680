"""Casts: the constructor functions of XSD types (SPARQL 1.1, section 17.5; XPath functions and operators, section 17).

Beyond what SPARQL asks for there are the other integer types, the calendar types and the durations, as XPath has them,
and xsd:string takes every literal. A number is written in its canonical form, other values as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from squall.functions import Function
from squall.functions.sparql.names import FALSE, TRUE, Maybe
from squall.functions.sparql.terms import simple
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
    is_well_formed,
    number,
    point,
    single,
    text,
)
from squall.rdf import XSD, Term, is_blank, is_literal, literal, parts

_BLANKS = "\t\n\r "
_CALENDAR = ("dateTime", "date", "time", "gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")
_MADE_OF = {
    "dateTime": {"date"},
    "date": {"dateTime"},
    "time": {"dateTime"},
    **{name: {"dateTime", "date"} for name in _CALENDAR[3:]},
}
"""From which other families each can be cast."""


def _value(term: Maybe, datatype: str) -> Number | None:
    """The number that a term is, or can be read as: of a string, as a literal of the datatype."""
    if term is None:
        return None
    found = number(term)
    if found is not None:
        return found
    truth = boolean(term)
    if truth is not None:
        return Number(int(truth), "decimal")
    characters = simple(term)
    return None if characters is None else number(literal(characters.strip(_BLANKS), datatype))


def _integer(datatype: str) -> Callable[[Maybe], Maybe]:
    """What is after the point is dropped; a string may not have it."""

    def cast(term: Maybe) -> Maybe:
        found = _value(term, datatype)
        if found is None or not found.is_finite:
            return None
        made = literal(str(int(found.value)), datatype)
        return made if number(made) is not None else None

    return cast


def _decimal(term: Maybe) -> Maybe:
    found = _value(term, DECIMAL)
    return decimal(ARITHMETIC.create_decimal(found.value)) if found and found.is_finite else None


def _float(term: Maybe) -> Maybe:
    found = _value(term, FLOAT)
    if found is None:
        return None
    return float_(single(found.value if isinstance(found.value, float) else Fraction(found.value)))


def _double(term: Maybe) -> Maybe:
    found = _value(term, DOUBLE)
    return None if found is None else double(floating(found))


def _boolean(term: Maybe) -> Maybe:
    if term is None:
        return None
    truth = boolean(term)
    found = number(term)
    if found is not None:
        truth = found.is_truthful
    if truth is None:
        characters = simple(term)
        truth = None if characters is None else boolean(literal(characters.strip(_BLANKS), BOOLEAN))
    return None if truth is None else TRUE if truth else FALSE


def _string(term: Maybe) -> Maybe:
    if term is None or is_blank(term):
        return None
    if not is_literal(term):
        return literal(text(term))
    return literal(_canonical(term)) if is_well_formed(term) else None


def _canonical(term: Term) -> str:
    truth, found = boolean(term), number(term)
    if truth is not None:
        return "true" if truth else "false"
    if found is None:
        return text(term)
    if isinstance(found.value, float):
        return _of_float(
            found.value, parts(double(found.value) if found.kind == "double" else float_(found.value)).lexical
        )
    return str(found.value) if isinstance(found.value, int) else text(decimal(found.value))


def _of_float(value: float, shown: str) -> str:
    """As XPath writes it: without an exponent from a millionth on and below a million, with one elsewhere."""
    if not math.isfinite(value):
        return shown
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    exact = Decimal(shown)
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
        characters = simple(term)
        if characters is not None:
            term = literal(characters.strip(_BLANKS), datatype)
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
    """A subtype keeps the part that it has."""

    def cast(term: Maybe) -> Maybe:
        if term is None:
            return None
        characters = simple(term)
        found = duration(term if characters is None else literal(characters.strip(_BLANKS), datatype))
        if found is None:
            return None
        months = 0 if datatype == DAY_TIME else found.months
        return duration_literal(Duration(months, Decimal(0) if datatype == YEAR_MONTH else found.seconds), datatype)

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
