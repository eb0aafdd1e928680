"""The thirteen relations of two intervals, over their times: ``before(start, end, start, end)`` and others.

Times are integers (ms since the epoch, as in all of squall) or other numbers, or instants of one type such as
xsd:dateTime. Source: J. Allen, Maintaining knowledge about temporal intervals (CACM 26(11), 1983), with the names that
Drools Fusion gives the relations.
"""

from __future__ import annotations

from collections.abc import Callable

from squall.functions import Builtin, Function
from squall.functions.values import compare
from squall.rdf import Term

NAMESPACE = "urn:x-squall:time:"
"""The namespace of the functions."""

RELATIONS: dict[str, tuple[str, ...]] = {
    "before": ("e<S",),
    "meets": ("s<S", "e=S", "e<E"),
    "overlaps": ("s<S", "S<e", "e<E"),
    "starts": ("s=S", "e<E"),
    "during": ("S<s", "e<E"),
    "finishes": ("S<s", "e=E"),
    "coincides": ("s=S", "e=E"),
}
"""Relations of an interval [s, e] to another one [S, E], as comparisons. Exactly one of these and of `CONVERSE` holds,
also for instants."""

CONVERSE = {
    "after": "before",
    "metBy": "meets",
    "overlappedBy": "overlaps",
    "startedBy": "starts",
    "includes": "during",
    "finishedBy": "finishes",
}
"""The other relations, each with the one that holds if the intervals are exchanged."""

_MEANING = {
    "before": "[a, b] ends before [c, d] begins",
    "after": "[a, b] begins after [c, d] ends",
    "meets": "[a, b] ends when [c, d] begins",
    "metBy": "[a, b] begins when [c, d] ends",
    "overlaps": "[a, b] begins first, [c, d] ends last, and they have a time in common",
    "overlappedBy": "[c, d] begins first, [a, b] ends last, and they have a time in common",
    "starts": "they begin together, and [a, b] ends first",
    "startedBy": "they begin together, and [c, d] ends first",
    "during": "[c, d] begins before [a, b], and ends behind it",
    "includes": "[a, b] begins before [c, d], and ends behind it",
    "finishes": "they end together, and [c, d] begins first",
    "finishedBy": "they end together, and [a, b] begins first",
    "coincides": "they begin and end together",
}

_SIGNS = {"<": -1, "=": 0}


def _holds(tests: tuple[str, ...], times: tuple[Term | None, ...]) -> bool:
    slots = dict(zip("seSE", times, strict=True))
    return all(_order(slots[test[0]], slots[test[2]]) == _SIGNS[test[1]] for test in tests)


def _order(left: Term | None, right: Term | None) -> int | None:
    return None if left is None or right is None else compare(left, right)


def _is_interval(start: Term | None, end: Term | None) -> bool:
    return _order(start, end) in (-1, 0)


def _relation(name: str) -> Callable[..., bool]:
    """Returns the test of a relation. It is false of what is no interval: an end before its start, or no times."""
    converse = CONVERSE.get(name)
    tests = RELATIONS[name if converse is None else converse]

    def holds(a: Term | None, b: Term | None, c: Term | None, d: Term | None) -> bool:
        times = (a, b, c, d) if converse is None else (c, d, a, b)
        return _is_interval(a, b) and _is_interval(c, d) and _holds(tests, times)

    return holds


_FUNCTIONS = tuple(
    Function(NAMESPACE + name, _relation(name), 4, 4, truth=True, doc=meaning) for name, meaning in _MEANING.items()
)
FUNCTIONS: tuple[Function | Builtin, ...] = (
    *_FUNCTIONS,
    *(Builtin(name, "jena", 4, 4, test=NAMESPACE + name) for name in _MEANING),
)
"""The functions of the entry point `intervals` of the group ``squall.functions``: predicates of RIF and functions of
SPARQL by their IRIs, and built-ins of Jena rules by their names."""
