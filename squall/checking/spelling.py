"""Whether a name seems to be a slip of the keyboard for another one."""

from __future__ import annotations

from collections.abc import Iterable

from squall.errors import did_you_mean
from squall.rdf import Term, iri_text

LEAST = 3
"""Names with fewer characters are too near to each other."""


def is_slip(name: str, other: str) -> bool:
    """Whether two different names differ in the case of letters alone, or in one letter that is missing, exchanged, or
    in the place of its neighbour. A digit, or a sign such as ``'``, makes another name on purpose."""
    if name == other or min(len(name), len(other)) < LEAST:
        return False
    if name.lower() == other.lower():
        return True
    short, long = sorted((name, other), key=len)
    start = next((place for place, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
    return _differs(short[start:], long[start:])


def _differs(short: str, long: str) -> bool:
    """Whether two rests that begin differently differ in that alone."""
    match len(long) - len(short):
        case 0 if short[1:] == long[1:]:
            return short[0].isalpha() and long[0].isalpha()
        case 0:
            return short[:2] == long[1::-1] and short[2:] == long[2:] and short[:2].isalpha()
        case 1:
            return short == long[1:] and long[0].isalpha()
        case _:
            return False


def parted(term: Term) -> tuple[str, str]:
    """An IRI as its namespace and its local name."""
    text = iri_text(term)
    start = max(text.rfind("/"), text.rfind("#"), text.rfind(":")) + 1
    return text[:start], text[start:]


def near_terms(term: Term, known: Iterable[Term]) -> str | None:
    """The hint "did you mean ...?" where a term of the same namespace is spelt like this one."""
    space, local = parted(term)
    return did_you_mean(local, {other for there, other in map(parted, known) if there == space and other != local})
