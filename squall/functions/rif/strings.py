"""Functions and predicates of strings (DTB, section 4.7; XPath functions and operators, section 7).

Strings are the values of xsd:string, whichever derived type says so. They are compared by code point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from urllib.parse import quote

from squall.functions import patterns
from squall.functions.rif.names import Domain, Maybe, Members, function, predicate
from squall.functions.rif.numeric import NUMBER
from squall.functions.sparql.casts import as_string
from squall.functions.texts import characters
from squall.functions.values import Number, integer
from squall.rdf import Term, literal

STRING = Domain("string", characters)
_CASTABLE = Domain("what can be cast to string", as_string)

_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
_IN_URI = "".join(character for character in _PRINTABLE if character not in ' <>"{}|\\^`')


def order(left: str, right: str) -> int:
    """Returns -1, 0 or 1 as the first is less, the same or greater, by code point."""
    return (left > right) - (left < right)


def _compare(left: str, right: str) -> Term:
    return integer(order(left, right))


def _concat(*texts: str) -> Term:
    return literal("".join(texts))


def _join(*texts: str) -> Term:
    return literal(texts[-1].join(texts[:-1]))


def _substring(text: str, start: Number, length: Number | None = None) -> Term:
    """Returns the characters from a start (the first is 1), of a length."""
    first = _rounded(start)
    end = math.inf if length is None else _sum(first, _rounded(length))
    low, high = max(first, 1), min(end, len(text) + 1)
    return literal(text[int(low) - 1 : int(high) - 1] if low < high else "")  # NaN is in no order


def _rounded(number: Number) -> int | float:
    """Returns the nearest integer, of two the greater; a float is infinite or NaN."""
    return math.floor(Fraction(number.value) + Fraction(1, 2)) if number.is_finite else float(number.value)


def _sum(left: int | float, right: int | float) -> int | float:
    """Returns the sum of results of `_rounded`. A finite number may be too large for a float."""
    floats = [value for value in (left, right) if isinstance(value, float)]
    return sum(floats) if floats else left + right


def _length(text: str) -> Term:
    return integer(len(text))


def _changed(change: Callable[[str], str]) -> Callable[[str], Term]:
    return lambda text: literal(change(text))


def _escaped(safe: str) -> Callable[[str], Term]:
    """Percent-encodes all characters but some of ASCII. Letters, digits and ``_.-~`` are never encoded."""
    return lambda text: literal(quote(text, safe=safe))


def _before(text: str, sought: str) -> Term:
    head, separator, _ = text.partition(sought) if sought else ("", "", "")
    return literal(head if separator else "")


def _after(text: str, sought: str) -> Term:
    return literal(text.partition(sought)[2] if sought else text)


def _replace(text: str, pattern: str, replacement: str, flags: str = "") -> Maybe:
    result = patterns.replaced(text, pattern, replacement, flags)
    return None if result is None else literal(result)


def _matches(text: str, pattern: str, flags: str = "") -> bool:
    return patterns.matches(text, pattern, flags) is True


def _check(text: Maybe, pattern: Maybe, flags: Maybe = None) -> str | None:
    pattern_text, flag_text = (None if term is None else characters(term) for term in (pattern, flags))
    return None if pattern_text is None else patterns.wrong(pattern_text, flag_text or "")


def _check_replace(text: Maybe, pattern: Maybe, replacement: Maybe, flags: Maybe = None) -> str | None:
    return _check(text, pattern, flags)


_ONE, _TWO, _THREE = (STRING,), (STRING,) * 2, (STRING,) * 3

MEMBERS: Members = (
    *function("compare", _TWO, _compare, "-1, 0 or 1 as the first is less, the same or greater, by code point"),
    *function("concat", (_CASTABLE,), _concat, "the values as strings, joined", repeats=True),
    *function("string-join", _ONE, _join, "the strings but the last, which stands between them", repeats=True),
    *function(
        "substring", (STRING, NUMBER, NUMBER), _substring,
        "the characters from a place on, so many or all; the first place is 1", least=2,
    ),
    *function("string-length", _ONE, _length, "the number of characters"),
    *function("upper-case", _ONE, _changed(str.upper), "in upper case"),
    *function("lower-case", _ONE, _changed(str.lower), "in lower case"),
    *function("encode-for-uri", _ONE, _escaped("~"), "percent-encoded but for letters, digits and `-_.~`"),
    *function("iri-to-uri", _ONE, _escaped(_IN_URI), "percent-encoded where a URI cannot have the character"),
    *function("escape-html-uri", _ONE, _escaped(_PRINTABLE), "percent-encoded where it is not printable ASCII"),
    *function("substring-before", _TWO, _before, "what is before the second in the first, empty if it is not in it"),
    *function("substring-after", _TWO, _after, "what is after the second in the first, empty if it is not in it"),
    *function(
        "replace", (STRING,) * 4, _replace,
        "the first with all matches of the second replaced by the third; flags may follow",
        least=3, check=_check_replace,
    ),
    *predicate("contains", _TWO, str.__contains__, "the second is in the first"),
    *predicate("starts-with", _TWO, str.startswith, "the first begins with the second"),
    *predicate("ends-with", _TWO, str.endswith, "the first ends with the second"),
    *predicate("matches", _THREE, _matches, "the pattern matches somewhere; flags may follow", least=2, check=_check),
)  # fmt: skip
