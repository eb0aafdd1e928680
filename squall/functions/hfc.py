"""The functions of HFC's rules: times of validity, and new nodes.

Times are instants of one type such as xsd:dateTime, or numbers. A test of what has no order is false, and a value of it
is none, so that the rule has no solution. An interval has both its ends, as in HFC.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from squall.functions import Builtin, Function, Mode
from squall.functions.jena import function_iri
from squall.functions.values import compare
from squall.rdf import Term, iri

LANGUAGE = "hfc"
_NAMESPACE = "urn:x-squall:hfc:"

Maybe = Term | None


def _order(left: Maybe, right: Maybe) -> int | None:
    return None if left is None or right is None else compare(left, right)


def _less(left: Maybe, right: Maybe) -> bool:
    return _order(left, right) == -1


def _less_equal(left: Maybe, right: Maybe) -> bool:
    return _order(left, right) in (-1, 0)


def _choice(wanted: int) -> Callable[[Maybe, Maybe], Maybe]:
    """Returns the function that chooses the greater (1) or the lesser (-1) of two times; of equal ones the first."""

    def choose(left: Maybe, right: Maybe) -> Maybe:
        order = _order(left, right)
        return None if order is None else left if order in (wanted, 0) else right

    return choose


def _intersect(start: Maybe, end: Maybe, other_start: Maybe, other_end: Maybe) -> bool:
    """Returns whether two intervals have an instant in common."""
    latest, earliest = _choice(1)(start, other_start), _choice(-1)(end, other_end)
    return _less_equal(latest, earliest)


def _make_uri(*terms: Maybe) -> Maybe:
    """Returns an IRI that is the same for the same arguments, in any rule and any run."""
    if any(term is None for term in terms):
        return None
    digest = blake2b("\n".join(term or "" for term in terms).encode(), digest_size=16).hexdigest()
    return iri(f"{_NAMESPACE}uri:{digest}")


_LESS = Function(
    _NAMESPACE + "DTLess", _less, 2, 2, truth=True, compares=True, doc="the first time is before the second"
)
_LESS_EQUAL = Function(
    _NAMESPACE + "DTLessEqual",
    _less_equal,
    2,
    2,
    truth=True,
    compares=True,
    doc="the first time is not after the second",
)
_INTERSECT = Function(
    _NAMESPACE + "DTIntersectionNotEmpty", _intersect, 4, 4, truth=True, doc="[a, b] and [c, d] have a time in common"
)
_MAX = Function(_NAMESPACE + "DTMax2", _choice(1), 2, 2, doc="the later of two times")
_MIN = Function(_NAMESPACE + "DTMin2", _choice(-1), 2, 2, doc="the earlier of two times")
_MAKE_URI = Function(_NAMESPACE + "MakeUri", _make_uri, 0, None, doc="an IRI that depends on the arguments alone")

FUNCTIONS: tuple[Function | Builtin, ...] = (
    _LESS,
    _LESS_EQUAL,
    _INTERSECT,
    _MAX,
    _MIN,
    _MAKE_URI,
    *(
        Builtin(test.iri.removeprefix(_NAMESPACE), LANGUAGE, test.least, test.most, test=test.iri, doc=test.doc)
        for test in (_LESS, _LESS_EQUAL, _INTERSECT)
    ),
    *(
        Builtin(value.iri.removeprefix(_NAMESPACE), LANGUAGE, value.least, value.most, modes=(Mode(0, value.iri),))
        for value in (_MAX, _MIN, _MAKE_URI)
    ),
    Builtin(
        "MakeBlankNode", LANGUAGE, 0, 0, modes=(Mode(0, function_iri("makeTemp"), scoped=True),),
        doc="a blank node of a rule and what its body binds",
    ),
)  # fmt: skip
"""The functions of the entry point `hfc` of the group ``squall.functions``. A built-in that is no test is a value: its
arguments are those of its function."""
