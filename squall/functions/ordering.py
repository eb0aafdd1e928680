"""A total order of all terms and of what is unbound: that of SPARQL's ORDER BY, and a choice wherever it makes none."""

from __future__ import annotations

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
    found = number(term)
    if found:
        value = found.value
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
