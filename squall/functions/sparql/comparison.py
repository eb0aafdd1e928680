"""The comparisons ``= != < > <= >=`` and sameTerm (SPARQL 1.1, sections 17.3 and 17.4.1)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from squall.functions import Body
from squall.functions.join_keys import table_of
from squall.functions.sparql.names import FALSE, OWN, TRUE, Maybe, Members, defined
from squall.functions.sparql.operands import comparison, equality, join_keys


def _same_term(left: Maybe, right: Maybe) -> Maybe:
    return None if left is None or right is None else TRUE if left == right else FALSE


def _is_same_term(left: Maybe, right: Maybe) -> bool:
    return left is not None and left == right


_EQUAL_KEYS = table_of(OWN + "equal-keys", join_keys, "equal values")
_TERM_KEYS = table_of(OWN + "term-keys", lambda term, is_left: (term,), "the same term")


def _comparison(sign: str, local: str, value: Body, test: Body, doc: str, keys: str = "") -> Members:
    return defined(sign, local, value, 2, 2, doc, test=test, compares=True, strict=True, join_keys=keys)


def _ordered(sign: str, local: str, accepts: Callable[[Any, Any], bool], doc: str) -> Members:
    value, test = comparison(accepts, TRUE, FALSE, None), comparison(accepts, True, False, False)
    return _comparison(sign, local, value, test, f"{doc}: numbers, strings, booleans, calendar types, durations")


MEMBERS: Members = (
    _EQUAL_KEYS,
    _TERM_KEYS,
    *_comparison(
        "=", "equals", equality(TRUE, FALSE, None), equality(True, False, False), "equal values", _EQUAL_KEYS.iri
    ),
    *_comparison("!=", "not-equals", equality(FALSE, TRUE, None), equality(False, True, False), "different values"),
    *_ordered("<", "less-than", operator.lt, "less"),
    *_ordered(">", "greater-than", operator.gt, "greater"),
    *_ordered("<=", "less-than-or-equal", operator.le, "less or equal"),
    *_ordered(">=", "greater-than-or-equal", operator.ge, "greater or equal"),
    *defined(
        "SAMETERM",
        "sameTerm",
        _same_term,
        2,
        2,
        "the same RDF term",
        test=_is_same_term,
        strict=True,
        join_keys=_TERM_KEYS.iri,
    ),
)
