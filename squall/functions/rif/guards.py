"""Tests of the datatype of a value: guards and negative guards (DTB, sections 4.1 to 4.3), and identity."""

from __future__ import annotations

from collections.abc import Callable

from squall.functions import Function
from squall.functions.join_keys import of_value, table_of
from squall.functions.numbers import KINDS
from squall.functions.rif.names import OWN, SAME, Domain, Maybe, Members, predicate
from squall.functions.rif.spaces import SPACES, Value, is_known, same, value
from squall.functions.texts import Plain
from squall.rdf import Term
from squall.rdf.compounds import parse_compound

_LITERAL = Domain("literal", value)


def _same(left: Maybe, right: Maybe) -> bool:
    return left is not None and right is not None and same(left, right)


def _keys(term: Term) -> str:
    """Returns a key that terms of the same value share."""
    denoted = value(term)
    if denoted is None:
        return "c" if parse_compound(term) is not None else term
    if denoted.kind in KINDS:
        return of_value(term)
    return f"{denoted.kind} {denoted.value}" if isinstance(denoted.value, str | Plain) else denoted.kind


_SAME_KEYS = table_of(OWN + "same-keys", lambda term, is_left: (_keys(term),), "the same value")


def _different(left: Value, right: Value) -> bool:
    return left != right and is_known(left) and is_known(right)


def _local(datatype: str) -> str:
    return datatype.rpartition("#")[2]


def _guard(datatype: str, contains: Callable[[Value], bool]) -> Members:
    doc = f"its value is one of {_local(datatype)}"
    return predicate(f"is-literal-{_local(datatype)}", (_LITERAL,), contains, doc)


def _negative_guard(datatype: str, contains: Callable[[Value], bool]) -> Members:
    def test(value: Value) -> bool:
        return not contains(value) and is_known(value)

    doc = f"its value is one of a datatype, but not of {_local(datatype)}"
    return predicate(f"is-literal-not-{_local(datatype)}", (_LITERAL,), test, doc)


MEMBERS: Members = (
    _SAME_KEYS,
    Function(SAME, _same, 2, 2, truth=True, doc="the two terms are the same value", join_keys=_SAME_KEYS.iri),
    *predicate("literal-not-identical", (_LITERAL, _LITERAL), _different, "two literals of different values"),
    *(member for datatype, contains in SPACES.items() for member in _guard(datatype, contains)),
    *(member for datatype, contains in SPACES.items() for member in _negative_guard(datatype, contains)),
)
