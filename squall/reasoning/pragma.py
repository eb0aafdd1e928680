"""Pragmas: comments by which a program of any language says how its patterns reason.

A pragma is a comment on a line of its own, in the syntax of the language: ``# pragma entailment rhodf``, with ``//`` in
Jena's rules, ``(* pragma entailment rhodf *)`` in RIF's presentation syntax, and ``<!-- pragma entailment rhodf -->``
in XML. ``# pragma same-as representative`` is the other one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from squall.errors import Origin, SquallError, TranslatorError, did_you_mean
from squall.reasoning.regimes import NONE
from squall.reasoning.same_as_mode import MODES
from squall.reasoning.schema import REGIMES

_COMMENT = re.compile(r"[ \t]*(?:#+|//+|<!--|\(\*)[ \t]*pragma[ \t]+(?P<words>.*?)[ \t]*(?:-->|\*\))?[ \t]*")


class _Kind(NamedTuple):
    """A kind of pragma: the values that it may have, and what they are in words."""

    values: tuple[str, ...]
    label: str


_KINDS: Mapping[str, _Kind] = {
    "entailment": _Kind((NONE, *REGIMES), "entailment regime"),
    "same-as": _Kind(MODES, "way to treat owl:sameAs"),
}
_REMEDY = " or ".join(f"`pragma {name} {'|'.join(kind.values)}`" for name, kind in _KINDS.items())


def pragmas_of(text: str, name: str, errors: list[SquallError]) -> dict[str, str]:
    """Returns the values that a program gives by pragmas, by kind: ``entailment`` and ``same-as``.

    Args:
        text: The text of the program.
        name: The name of the text, such as its path.
        errors: A list to which errors are added: there is no such pragma or value, or there are two values.
    """
    values: dict[str, str] = {}
    for words, origin in _pragmas(text, name):
        error = _error(words, values)
        if error is None:
            values[words[0]] = words[1]
        else:
            errors.append(TranslatorError(error[0], origin, error[1]))
    return values


def _pragmas(text: str, name: str) -> Iterator[tuple[list[str], Origin]]:
    """Yields the words of each pragma, with its place."""
    if "pragma" not in text:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := _COMMENT.fullmatch(line):
            yield match["words"].split(), Origin(name, text, number, match.start("words") + 1, len(match["words"]))


def _error(words: list[str], earlier: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns what is wrong with the words of a pragma, and the hint; or None."""
    name = words[0] if words else ""
    if name not in _KINDS:
        return f"there is no pragma `{name}`", did_you_mean(name, tuple(_KINDS)) or f"write {_REMEDY}"
    kind = _KINDS[name]
    if len(words) != 2 or words[1] not in kind.values:
        value = " ".join(words[1:])
        remedy = f"write `pragma {name} {'|'.join(kind.values)}`"
        return f"there is no {kind.label} `{value}`", did_you_mean(value, kind.values) or remedy
    if earlier.get(name, words[1]) != words[1]:
        message = f"a program has one {kind.label}, and not both `{earlier[name]}` and `{words[1]}`"
        return message, "leave one of them out"
    return None
