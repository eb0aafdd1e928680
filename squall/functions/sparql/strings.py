"""Functions on strings (SPARQL 1.1, section 17.4.3), but for those with regular expressions.

A *string literal* is an xsd:string or a literal with a language tag; what is cut out of one keeps its tag.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from squall.functions.sparql.names import FALSE, TRUE, Maybe, Members, defined
from squall.functions.sparql.terms import simple
from squall.functions.values import integer, number
from squall.rdf import LANG_STRING, XSD_STRING, Literal, Term, is_literal, literal, parts


def string(term: Maybe) -> Literal | None:
    """Returns the parts of a string literal; None of everything else."""
    if term is None or not is_literal(term):
        return None
    literal_parts = parts(term)
    return literal_parts if literal_parts.datatype in (XSD_STRING, LANG_STRING) else None


def like(source: Literal, characters: str) -> Term:
    """Returns a literal of the same kind with other characters."""
    return literal(characters, None, source.language or None)


def _compatible(left: Maybe, right: Maybe) -> tuple[Literal, Literal] | None:
    """Returns the parts of two string literals that are compatible (section 17.4.3.1.2)."""
    left_string, right_string = string(left), string(right)
    if left_string is None or right_string is None or right_string.language not in ("", left_string.language):
        return None
    return left_string, right_string


def _strlen(term: Maybe) -> Maybe:
    text = string(term)
    return None if text is None else integer(len(text.lexical))


def _whole(term: Maybe) -> int | None:
    numeric = None if term is None else number(term)
    return numeric.value if numeric is not None and isinstance(numeric.value, int) else None


def _substr(term: Maybe, *places: Maybe) -> Maybe:
    """Returns the characters from a position (the first is 1) on, of a length or all."""
    text, positions = string(term), [_whole(place) for place in places]
    start = positions[0]
    if text is None or start is None:
        return None
    if len(positions) == 1:
        return like(text, text.lexical[max(start - 1, 0) :])
    length = positions[1]
    return None if length is None else like(text, text.lexical[max(start - 1, 0) : max(start - 1 + length, 0)])


def _changed(change: Callable[[str], str]) -> Callable[[Maybe], Maybe]:
    def compute(term: Maybe) -> Maybe:
        text = string(term)
        return None if text is None else like(text, change(text.lexical))

    return compute


def _relation(name: str, local: str, holds: Callable[[str, str], bool], doc: str, xpath: str) -> Members:
    def value(left: Maybe, right: Maybe) -> Maybe:
        pair = _compatible(left, right)
        return None if pair is None else TRUE if holds(pair[0].lexical, pair[1].lexical) else FALSE

    def test(left: Maybe, right: Maybe) -> bool:
        pair = _compatible(left, right)
        return pair is not None and holds(pair[0].lexical, pair[1].lexical)

    return defined(name, local, value, 2, 2, doc, test=test, xpath=xpath)


def _cut(side: int) -> Callable[[Maybe, Maybe], Maybe]:
    """Returns what is before (0) or after (2) the first occurrence, or a simple empty string if there is none."""

    def compute(left: Maybe, right: Maybe) -> Maybe:
        pair = _compatible(left, right)
        if pair is None:
            return None
        source, sought = pair[0], pair[1].lexical
        if not sought:
            return like(source, source.lexical if side else "")
        cut = source.lexical.partition(sought)
        return like(source, cut[side]) if cut[1] else literal("")

    return compute


def _encode(term: Maybe) -> Maybe:
    text = string(term)
    return None if text is None else literal(quote(text.lexical, safe="-_.~"))


def _concat(*terms: Maybe) -> Maybe:
    """Returns the texts joined, with the language tag that all have."""
    strings = [string(term) for term in terms]
    bound_strings = [text for text in strings if text is not None]
    if len(bound_strings) < len(strings):
        return None
    languages = {text.language for text in bound_strings}
    return literal(
        "".join(text.lexical for text in bound_strings), None, languages.pop() or None if len(languages) == 1 else None
    )


def _matching_language(tag: Maybe, range_term: Maybe) -> bool | None:
    """Matches language tags by basic filtering (RFC 4647, section 3.3.1)."""
    language, extent = simple(tag), simple(range_term)
    if language is None or extent is None:
        return None
    language, extent = language.lower(), extent.lower()
    if extent == "*":
        return language != ""
    return language == extent or language.startswith(f"{extent}-")


def _lang_matches(tag: Maybe, range_term: Maybe) -> Maybe:
    is_match = _matching_language(tag, range_term)
    return None if is_match is None else TRUE if is_match else FALSE


def _test_lang_matches(tag: Maybe, range_term: Maybe) -> bool:
    return _matching_language(tag, range_term) is True


MEMBERS: Members = (
    *defined("STRLEN", "strlen", _strlen, 1, 1, "the number of characters", xpath="string-length"),
    *defined("SUBSTR", "substr", _substr, 2, 3, "the characters from a place on, so many or all", xpath="substring"),
    *defined("UCASE", "ucase", _changed(str.upper), 1, 1, "in upper case", xpath="upper-case"),
    *defined("LCASE", "lcase", _changed(str.lower), 1, 1, "in lower case", xpath="lower-case"),
    *_relation("STRSTARTS", "strstarts", str.startswith, "the first begins with the second", "starts-with"),
    *_relation("STRENDS", "strends", str.endswith, "the first ends with the second", "ends-with"),
    *_relation("CONTAINS", "contains", str.__contains__, "the second is in the first", "contains"),
    *defined("STRBEFORE", "strbefore", _cut(0), 2, 2, "what is before the second in the first"),
    *defined("STRAFTER", "strafter", _cut(2), 2, 2, "what is after the second in the first"),
    *defined("ENCODE_FOR_URI", "encode-for-uri", _encode, 1, 1, "percent-encoded", xpath="encode-for-uri"),
    *defined("CONCAT", "concat", _concat, 0, None, "the strings joined"),
    *defined("LANGMATCHES", "langMatches", _lang_matches, 2, 2, "the tag is in the range", test=_test_lang_matches),
)
