"""The values that literals denote in RIF, and the value spaces of its datatypes (DTB, sections 2.3 and 4.2).

Two values are the same if they are identical by XSD 1.1 (part 2, section 2.2.1): numbers of xsd:decimal and all
integer types by value; of xsd:float and xsd:double each apart, -0 is not 0, and NaN is NaN; points in time with their
time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from decimal import Decimal
from functools import lru_cache, partial
from typing import NamedTuple

from squall.functions.rif.xml import XML_LITERAL, xml
from squall.functions.texts import BASE64, HEX, PLAIN_LITERAL, STRINGS, Facets, Plain, octets, plain
from squall.functions.values import (
    BOOLEAN,
    DAY_TIME,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGERS,
    YEAR_MONTH,
    Duration,
    Point,
    boolean,
    duration,
    number,
    point,
)
from squall.rdf import XSD, Term, is_literal, parts
from squall.rdf.compounds import DATATYPE, parse_compound

ANY_URI = XSD + "anyURI"
DATE_TIME_STAMP = XSD + "dateTimeStamp"


class Value(NamedTuple):
    """The value of a literal, with its primitive value space. Values are equal if and only if they are the same."""

    kind: str
    value: Hashable


@lru_cache(maxsize=65536)
def value(term: Term) -> Value | None:
    """Returns the value of a literal; None for other terms, ill-typed literals, and datatypes unknown to RIF."""
    if not is_literal(term):
        return None
    for read in (_text, _number, _time, _other):
        denoted = read(term)
        if denoted is not None:
            return denoted
    return None


def _text(term: Term) -> Value | None:
    text_value = plain(term)
    return None if text_value is None else Value("text", text_value)


def _number(term: Term) -> Value | None:
    numeric = number(term)
    if numeric is None:
        return None
    # As text, because -0.0 equals 0.0 and NaN differs from itself as Python values.
    return Value(numeric.kind, repr(numeric.value) if numeric.is_floating else numeric.value)


def _time(term: Term) -> Value | None:
    at = point(term)
    if at is not None:
        return Value(at.family, at)
    length = duration(term)
    return None if length is None else Value("duration", length)


def _other(term: Term) -> Value | None:
    lexical, datatype, _ = parts(term)
    if datatype == ANY_URI:
        return Value("anyURI", lexical)
    for kind, denoted in (("boolean", boolean(term)), ("XMLLiteral", xml(term)), (datatype, octets(term))):
        if denoted is not None:
            return Value(kind, denoted)
    return None


def _of_kind(kind: str) -> Callable[[Value], bool]:
    return lambda value: value.kind == kind


def _is_string(facets: Facets, value: Value) -> bool:
    return isinstance(value.value, Plain) and not value.value.language and facets.admits(value.value.text)


def _is_integer(bounds: tuple[int | None, int | None], value: Value) -> bool:
    if value.kind != "decimal" or not isinstance(value.value, int | Decimal) or value.value != int(value.value):
        return False
    least, most = bounds
    return (least is None or value.value >= least) and (most is None or value.value <= most)


def _has_zone(value: Value) -> bool:
    return value.kind == "dateTime" and isinstance(value.value, Point) and value.value.zone is not None


def _is_day_time(value: Value) -> bool:
    return isinstance(value.value, Duration) and not value.value.months


def _is_year_month(value: Value) -> bool:
    return isinstance(value.value, Duration) and not value.value.seconds


SPACES: dict[str, Callable[[Value], bool]] = {
    ANY_URI: _of_kind("anyURI"),
    BASE64: _of_kind(BASE64),
    BOOLEAN: _of_kind("boolean"),
    XSD + "date": _of_kind("date"),
    XSD + "dateTime": _of_kind("dateTime"),
    DATE_TIME_STAMP: _has_zone,
    DOUBLE: _of_kind("double"),
    FLOAT: _of_kind("float"),
    HEX: _of_kind(HEX),
    DECIMAL: _of_kind("decimal"),
    **{datatype: partial(_is_integer, bounds) for datatype, bounds in INTEGERS.items()},
    **{datatype: partial(_is_string, facets) for datatype, facets in STRINGS.items()},
    XSD + "time": _of_kind("time"),
    DAY_TIME: _is_day_time,
    YEAR_MONTH: _is_year_month,
    XML_LITERAL: _of_kind("XMLLiteral"),
    PLAIN_LITERAL: _of_kind("text"),
}
"""Tests whether a value is in the value space of a datatype, by its IRI: all datatypes of DTB, section 2.3."""


def is_known(value: Value) -> bool:
    """Returns whether a value is in the value space of some datatype of RIF."""
    return any(contains(value) for contains in SPACES.values())


def identity(term: Term) -> Hashable:
    """Returns a key that two terms share if and only if they are the same value.

    IRIs, blank nodes and literals whose value is not known are themselves; compound terms are the same if their names
    and arguments are.
    """
    if not term.endswith(_COMPOUND):
        return value(term) or term
    read: list[Hashable] = []
    ahead: list[Term | None] = [term]
    while ahead:
        at = ahead.pop()
        parts = None if at is None else parse_compound(at)
        if at is None:
            read.append(_END)
        elif parts is None:
            read.append(value(at) or at)
        else:
            read.append((parts.name,))
            ahead += (None, *reversed(parts.arguments))
    return tuple(read)


_COMPOUND = f'"^^<{DATATYPE}>'
_END = ()
"""Ends the arguments of a compound among the values of `identity`."""


def same(left: Term, right: Term) -> bool:
    """Returns whether two terms are the same value."""
    return left == right or identity(left) == identity(right)
