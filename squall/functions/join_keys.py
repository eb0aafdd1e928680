"""Keys of terms, by which joins look up what a test compares (`squall.functions.Function.join_keys`).

A test such as ``?x = ?y`` between two patterns would otherwise be made of all pairs of rows. Its keys are texts, which
are the same in every process. They may be coarse, since the test itself still decides: only what it can be true of has
to have a key in common. That must be one key and not two, or a pair of rows would come twice.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from squall.functions import Function
from squall.functions.values import (
    Number,
    boolean,
    duration,
    floating,
    instant,
    number,
    single,
)
from squall.rdf import LANG_STRING, Term, is_literal, parts

LEFT, RIGHT = Term('"left"'), Term('"right"')
"""The sides of a test, as the constant argument of a table of keys."""
_MIDDLE_TO_INFINITY = 2.0**128 - 2.0**103
"""Numbers from here on are infinite in single precision."""
Keys = Callable[[Term, bool], Iterable[str]]
"""Returns the keys of a term on the left side of a test (True), or on the right side."""


def table_of(iri: str, keys: Keys, doc: str) -> Function:
    """Returns the table function of keys: its arguments are a side and a term, and each row is a key."""

    def rows(side: Term, term: Term | None) -> list[tuple[str]]:
        return [] if term is None else [(key,) for key in keys(term, side == LEFT)]

    return Function(iri, rows, 2, 2, doc=f"the keys of a term, by which joins look up {doc}")


def of_number(value: Number, is_left: bool) -> Iterator[str]:
    """Yields the keys of a number for tests that promote one of two numbers to the type of the other.

    The key is the nearest value of single precision, or of double precision if that is infinite. Numbers share it in
    whatever type they are equal, with two exceptions, for which there are further keys. They depend on the side of the
    test, so that a decimal shares them with other types only.

    * The nearest double of a decimal may lie in the middle between two singles, and be rounded to another one.
    * A decimal that single precision cannot hold is equal to the infinite xsd:float.
    """
    nearest = floating(value)
    if math.isnan(nearest):
        return
    key = single(nearest)
    exact = single(Fraction(value.value)) if value.kind == "decimal" and _is_critical(nearest, key) else key
    if _is_between_singles(nearest, key) and (value.kind == "double" or exact != key):
        yield _further(nearest, is_left, value.kind)
    elif math.isinf(exact) and (value.kind == "float" or (value.kind == "decimal" and not math.isinf(nearest))):
        yield _further(exact, is_left, value.kind)
    yield f"n{(nearest if math.isinf(exact) else exact) + 0.0!r}"  # -0.0 + 0.0 is 0.0


def _further(value: float, is_left: bool, kind: str) -> str:
    """Returns a key that decimals on one side share with other types on the other side."""
    return f"{'m' if is_left == (kind == 'decimal') else 'M'}{value!r}"


def _is_critical(value: float, nearest: float) -> bool:
    """Returns whether a decimal may be nearer to another single than its nearest double is."""
    return math.isinf(nearest) or _is_between_singles(value, nearest)


def _is_between_singles(value: float, nearest: float) -> bool:
    """Returns whether a double is as far from its nearest single as from another one."""
    if value == nearest:
        return False
    if math.isinf(nearest):
        return abs(value) == _MIDDLE_TO_INFINITY
    bits: int = struct.unpack("<i", struct.pack("<f", abs(nearest)))[0]
    neighbour: float = struct.unpack("<f", struct.pack("<i", bits + (1 if abs(value) > abs(nearest) else -1)))[0]
    return abs(abs(value) - abs(nearest)) == abs(neighbour - abs(value))


def of_value(term: Term) -> str:
    """Returns a key that terms of the same value share, and numbers that are equal as doubles, and equal instants."""
    if not is_literal(term):
        return term
    numeric = number(term)
    if numeric is not None:
        return f"n{floating(numeric) + 0.0!r}"
    lexical, datatype, language = parts(term)
    if datatype == LANG_STRING:
        return f"l{language.lower()} {lexical}"
    if (moment := instant(term)) is not None:
        return f"t{moment.family} {moment.seconds} {moment.fraction}"
    if (length := duration(term)) is not None:
        return f"d{length.months} {float(length.seconds) + 0.0!r}"
    truth = boolean(term)
    return term if truth is None else f"b{truth}"
