"""Functions and predicates of truth values (DTB, section 4.6)."""

from __future__ import annotations

import operator

from squall.functions.rif.names import Domain, Maybe, Members, function, predicate
from squall.functions.sparql.names import truth
from squall.functions.values import boolean

_BOOLEAN = Domain("boolean", boolean)


def _not(value: bool) -> Maybe:
    return truth(not value)


MEMBERS: Members = (
    *function("not", (_BOOLEAN,), _not, "the other truth value"),
    *predicate("boolean-equal", (_BOOLEAN, _BOOLEAN), operator.eq, "the same truth value"),
    *predicate("boolean-less-than", (_BOOLEAN, _BOOLEAN), operator.lt, "the first is false and the second true"),
    *predicate("boolean-greater-than", (_BOOLEAN, _BOOLEAN), operator.gt, "the first is true and the second false"),
)
