"""A total order of all terms and of what is unbound: that of SPARQL's ORDER BY, and a choice wherever it makes none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from squall.functions.values import duration, instant, number, value_key
from squall.rdf import XSD, XSD_STRING, Term, is_blank, is_literal, parts

Key = tuple[Any, ...]
"""Keys compare with each other, hash, and are equal only for equal terms."""

_UNBOUND, _BLANK, _IRI, _NUMERIC, _STRING, _BOOLEAN, _CALENDAR, _DURATION, _OTHER = range(9)


@lru_cache(maxsize=65536)
def key(term: str | None) -> Key:
    """The sort key of a term; None is what has no value.

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
"""What stands behind a text, and in front of a control character in it: in that order before all other characters."""
_CONTROL = re.compile("[\x00-\x1f]")
_LETTERS = 0x40
"""So far behind a control character is the letter that stands for it."""
_NEGATIVE_INFINITY, _NEGATIVE, _ZERO, _POSITIVE, _INFINITY = "01234"
_MIDDLE = 5000
"""What is added to an exponent, so that it has four digits and no sign: no number of a literal has more digits than
2,000, and no other exponent is as large."""
_TURNED = str.maketrans("0123456789", "9876543210")
_BEHIND_DIGITS = ":"
_TURNED_BYTES = bytes(range(255, -1, -1))


@lru_cache(maxsize=65536)
def sortable(term: str | None) -> str:
    """The sort key of a term as text: less for what `key` is less for. No such text begins another one, so that several
    together are compared one after the other; and none has a line feed in it."""
    kind, *values = key(term)
    return f"{kind}{_sortable(values)}"


def descending(text: str) -> str:
    """What `sortable` makes, turned round."""
    return text.encode(errors="surrogatepass").translate(_TURNED_BYTES).hex()


def sortable_text(text: str) -> str:
    """Any text as one that is compared by code points and begins no other one."""
    return _CONTROL.sub(lambda match: _ESCAPE + chr(ord(match[0]) + _LETTERS), text) + _END


def _sortable(values: Iterable[Any]) -> str:
    """The parts of a key, one after the other."""
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
    """The sign, the exponent, the digits: for numbers of different types with the same value the same."""
    exact = Decimal(value)
    if not exact:
        return _ZERO
    if exact.is_infinite():
        return _INFINITY if exact > 0 else _NEGATIVE_INFINITY
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    size = f"{exact.adjusted() + _MIDDLE:04}{digits}"
    return f"{_POSITIVE}{size}{_END}" if exact > 0 else f"{_NEGATIVE}{size.translate(_TURNED)}{_BEHIND_DIGITS}"
