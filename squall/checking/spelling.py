"""Detects names that look like typing errors of other names."""

from __future__ import annotations

MIN_LENGTH = 3
"""Shorter names are too similar to each other."""


def is_slip(name: str, other: str) -> bool:
    """Returns whether a name looks like a typing error of another name.

    The two differ only in the case of letters, or in one letter that is missing, replaced, or swapped with its
    neighbour. A digit, or a sign such as ``'``, makes another name on purpose.
    """
    if name == other or min(len(name), len(other)) < MIN_LENGTH:
        return False
    if name.lower() == other.lower():
        return True
    short, long = sorted((name, other), key=len)
    start = next((place for place, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
    return _differs(short[start:], long[start:])


def _differs(short: str, long: str) -> bool:
    """Returns whether two different rests differ only in that way."""
    match len(long) - len(short):
        case 0 if short[1:] == long[1:]:
            return short[0].isalpha() and long[0].isalpha()
        case 0:
            return short[:2] == long[1::-1] and short[2:] == long[2:] and short[:2].isalpha()
        case 1:
            return short == long[1:] and long[0].isalpha()
        case _:
            return False
