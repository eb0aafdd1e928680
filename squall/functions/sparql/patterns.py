"""REGEX and REPLACE (SPARQL 1.1, sections 17.4.3.14 and 17.4.3.15)."""

from __future__ import annotations

from squall.functions.patterns import matches, replaced, wrong
from squall.functions.sparql.names import FALSE, TRUE, Maybe, Members, defined
from squall.functions.sparql.strings import like, string
from squall.functions.sparql.terms import simple


def _simple(terms: tuple[Maybe, ...]) -> list[str] | None:
    """Returns the characters of simple literals; None if one is something else."""
    texts = [simple(term) for term in terms]
    simple_texts = [text for text in texts if text is not None]
    return simple_texts if len(simple_texts) == len(texts) else None


def _matches(subject: Maybe, pattern: Maybe, *flags: Maybe) -> bool | None:
    source, texts = string(subject), _simple((pattern, *flags))
    return None if source is None or texts is None else matches(source.lexical, *texts)


def _regex(subject: Maybe, pattern: Maybe, *flags: Maybe) -> Maybe:
    match = _matches(subject, pattern, *flags)
    return None if match is None else TRUE if match else FALSE


def _test_regex(subject: Maybe, pattern: Maybe, *flags: Maybe) -> bool:
    return _matches(subject, pattern, *flags) is True


def _replace(subject: Maybe, pattern: Maybe, replacement: Maybe, *flags: Maybe) -> Maybe:
    source, texts = string(subject), _simple((pattern, replacement, *flags))
    result = None if source is None or texts is None else replaced(source.lexical, *texts)
    return None if source is None or result is None else like(source, result)


def _check(subject: Maybe, pattern: Maybe, flags: Maybe = None) -> str | None:
    pattern_text = simple(pattern)
    return None if pattern_text is None else wrong(pattern_text, simple(flags) or "")


def _check_replace(subject: Maybe, pattern: Maybe, replacement: Maybe, flags: Maybe = None) -> str | None:
    return _check(subject, pattern, flags)


MEMBERS: Members = (
    *defined(
        "REGEX", "regex", _regex, 2, 3, "the pattern matches somewhere", test=_test_regex, check=_check, xpath="matches"
    ),
    *defined("REPLACE", "replace", _replace, 3, 4, "with all matches replaced", check=_check_replace, xpath="replace"),
)
