"""A total order of all terms and unbound values: that of SPARQL's ORDER BY, extended where that is partial."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from squall.functions.values import duration, instant, integer_text, number, value_key
from squall.rdf import XSD, XSD_STRING, Term, is_blank, is_literal, parts

Key = tuple[Any, ...]
"""Sort keys are comparable and hashable, and equal only for equal terms."""

_UNBOUND, _BLANK, _IRI, _NUMERIC, _STRING, _BOOLEAN, _CALENDAR, _DURATION, _OTHER = range(9)


@lru_cache(maxsize=65536)
def key(term: str | None) -> Key:
    """Returns the sort key of a term; None is what has no value.

    Unbound, blank nodes, IRIs, literals (SPARQL 1.1, section 15.1); of the literals: numeric ones by exact value, all
    types together, with -INF first, INF behind all finite ones and NaN behind that; then xsd:string by code points;
    booleans, false first; calendar types by family, then point in time, one without a time zone as if in UTC;
    durations, months before days and seconds; others, ill-typed ones too, by datatype, then lexical form. What is still
    tied is ordered by its text.
    """
    if term is None:
        return (_UNBOUND,)
    if not is_literal(term):
        return (_BLANK if is_blank(term) else _IRI, term)
    return _literal(Term(term))


def _literal(term: Term) -> Key:
    numeric = number(term)
    if numeric:
        value = numeric.value
        # Of numbers NaN alone differs from itself; nothing could be sorted by it.
        return (_NUMERIC, False, value, term) if value == value else (_NUMERIC, True, term)
    lexical, datatype, _ = parts(term)
    if datatype == XSD_STRING:
        return (_STRING, lexical, term)
    point = instant(term)
    if point:
        return (_CALENDAR, point, term)
    truth = value_key(term)
    if datatype == XSD + "boolean" and truth != term:
        return (_BOOLEAN, truth, term)
    length = duration(term)
    if length:
        return (_DURATION, length, term)
    return (_OTHER, datatype, lexical, term)


# As text


_END, _ESCAPE = "\x01", "\x02"
"""The terminator of a text, and the escape before a control character. They sort, in this order, before all others."""
_CONTROL = re.compile("[\x00-\x1f]")
_LETTERS = 0x40
"""The distance of a control character from the letter that replaces it."""
_NEGATIVE_INFINITY, _NEGATIVE, _ZERO, _POSITIVE, _INFINITY = "01234"
_MIDDLE = 5000
"""The bias of an exponent, so that it has four digits and no sign."""
_BELOW, _ABOVE, _WIDE_MIDDLE = "/", ":", 500_000
"""The marks in front of an exponent that does not fit into four digits, less and greater than all digits, and its
bias. Six digits suffice for all numbers (`squall.functions.values.MAX_NUMBER_LENGTH`)."""
_TURNED = str.maketrans("/0123456789:", ":9876543210/")
_BEHIND_DIGITS = ":"
_TURNED_BYTES = bytes(range(255, -1, -1))


@lru_cache(maxsize=65536)
def sortable(term: str | None) -> str:
    """Returns the sort key of a term as text: less for what `key` is less for. No such text begins another one, so that
    several together are compared in sequence. None has a line feed."""
    kind, *values = key(term)
    return f"{kind}{_sortable(values)}"


def descending(text: str) -> str:
    """Returns the text of `sortable` for descending order."""
    return text.encode(errors="surrogatepass").translate(_TURNED_BYTES).hex()


def sortable_text(text: str) -> str:
    """Encodes a text so that it is compared by code points and is no prefix of another one."""
    return _CONTROL.sub(lambda match: _ESCAPE + chr(ord(match[0]) + _LETTERS), text) + _END


def _sortable(values: Iterable[Any]) -> str:
    """Yields the parts of a key."""
    keys = []
    for value in values:
        if isinstance(value, str):
            keys.append(sortable_text(value))
        elif isinstance(value, tuple):
            keys.append(_sortable(value))
        else:
            keys.append(str(int(value)) if isinstance(value, bool) else _number(value))
    return "".join(keys)


def _number(value: int | float | Decimal) -> str:
    """Returns the sign, exponent and digits of a number, which are equal for equal values of different types."""
    exact = Decimal(integer_text(value) if isinstance(value, int) else value)
    if not exact:
        return _ZERO
    if exact.is_infinite():
        return _INFINITY if exact > 0 else _NEGATIVE_INFINITY
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    size = f"{_exponent(exact.adjusted())}{digits}"
    return f"{_POSITIVE}{size}{_END}" if exact > 0 else f"{_NEGATIVE}{size.translate(_TURNED)}{_BEHIND_DIGITS}"


def _exponent(exponent: int) -> str:
    """Returns the text of an exponent, which is less for lesser exponents."""
    if 0 <= exponent + _MIDDLE < 10_000:
        return f"{exponent + _MIDDLE:04}"
    return f"{_ABOVE if exponent > 0 else _BELOW}{exponent + _WIDE_MIDDLE:06}"
