"""Functions and predicates of plain literals (DTB, section 4.10; rdf:PlainLiteral, second edition, section 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from squall.functions.rif.names import Domain, Maybe, Members, function, predicate
from squall.functions.rif.strings import STRING, order
from squall.functions.texts import Plain, is_language, plain, plain_literal
from squall.functions.values import integer
from squall.rdf import XSD, Term, literal

_PLAIN = Domain("PlainLiteral", plain)
_RANGE = re.compile(r"([a-zA-Z]{1,8}|\*)(-([a-zA-Z0-9]{1,8}|\*))*")
"""RFC 4647, section 2.2."""


def _from_string_lang(text: str, language: str) -> Maybe:
    return plain_literal(Plain(text, language)) if not language or is_language(language) else None


def _string(value: Plain) -> Term:
    return literal(value.text)


def _language(value: Plain) -> Term:
    return literal(value.language, XSD + "language" if value.language else None)


def _compare(left: Plain, right: Plain) -> Maybe:
    return integer(order(left.text, right.text)) if left.language == right.language else None


def _length(value: Plain) -> Term:
    return integer(len(value.text))


def _matches_range(value: Plain, extent: str) -> bool:
    """Matches language tags by extended filtering (RFC 4647, section 3.3.2)."""
    if not value.language or not _RANGE.fullmatch(extent):
        return False
    first, *subtags = extent.lower().split("-")
    tag, *tag_parts = value.language.split("-")
    if first not in ("*", tag):
        return False
    tags = iter(tag_parts)
    return all(subtag == "*" or _reached(subtag, tags) for subtag in subtags)


def _reached(subtag: str, tags: Iterator[str]) -> bool:
    """Returns whether a subtag follows, with no single-character one before it, and skips those before it."""
    for tag in tags:
        if tag == subtag or len(tag) == 1:
            return tag == subtag
    return False


def _check_range(value: Maybe, extent: Maybe) -> str | None:
    text = None if extent is None else STRING.read(extent)
    return f"`{text}` is no range of languages" if text is not None and not _RANGE.fullmatch(text) else None


MEMBERS: Members = (
    *function(
        "PlainLiteral-from-string-lang", (STRING, STRING), _from_string_lang,
        "the text in a language; the string itself if the language is empty",
    ),
    *function("string-from-PlainLiteral", (_PLAIN,), _string, "the text without its language"),
    *function("lang-from-PlainLiteral", (_PLAIN,), _language, "the language, empty for a string"),
    *function(
        "PlainLiteral-compare", (_PLAIN, _PLAIN), _compare,
        "-1, 0 or 1 as `compare`, of two texts in one language or two strings",
    ),
    *function("PlainLiteral-length", (_PLAIN,), _length, "the number of characters"),
    *predicate(
        "matches-language-range", (_PLAIN, STRING), _matches_range,
        "the language is in the range (extended filtering of RFC 4647)", check=_check_range,
    ),
)  # fmt: skip
