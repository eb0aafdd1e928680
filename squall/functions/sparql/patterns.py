"""REGEX and REPLACE (SPARQL 1.1, sections 17.4.3.14 and 17.4.3.15)."""

from __future__ import annotations

from squall.functions.patterns import matches, replaced, wrong
from squall.functions.sparql.names import FALSE, TRUE, Maybe, Members, defined
from squall.functions.sparql.strings import like, string
from squall.functions.sparql.terms import simple


def _simple(terms: tuple[Maybe, ...]) -> list[str] | None:
    """The characters of simple literals; None where one is something else."""
    found = [simple(term) for term in terms]
    given = [one for one in found if one is not None]
    return given if len(given) == len(found) else None


def _found(subject: Maybe, pattern: Maybe, *flags: Maybe) -> bool | None:
    source, given = string(subject), _simple((pattern, *flags))
    return None if source is None or given is None else matches(source.lexical, *given)


def _regex(subject: Maybe, pattern: Maybe, *flags: Maybe) -> Maybe:
    found = _found(subject, pattern, *flags)
    return None if found is None else TRUE if found else FALSE


def _test_regex(subject: Maybe, pattern: Maybe, *flags: Maybe) -> bool:
    return _found(subject, pattern, *flags) is True


def _replace(subject: Maybe, pattern: Maybe, replacement: Maybe, *flags: Maybe) -> Maybe:
    source, given = string(subject), _simple((pattern, replacement, *flags))
    changed = None if source is None or given is None else replaced(source.lexical, *given)
    return None if source is None or changed is None else like(source, changed)


def _check(subject: Maybe, pattern: Maybe, flags: Maybe = None) -> str | None:
    written = simple(pattern)
    return None if written is None else wrong(written, simple(flags) or "")


def _check_replace(subject: Maybe, pattern: Maybe, replacement: Maybe, flags: Maybe = None) -> str | None:
    return _check(subject, pattern, flags)


MEMBERS: Members = (
    *defined(
        "REGEX", "regex", _regex, 2, 3, "the pattern matches somewhere", test=_test_regex, check=_check, xpath="matches"
    ),
    *defined("REPLACE", "replace", _replace, 3, 4, "with all matches replaced", check=_check_replace, xpath="replace"),
)
