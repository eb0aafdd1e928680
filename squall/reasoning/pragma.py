"""Pragmas: comments by which a program of any language says which entailment regime its patterns have.

A pragma is a comment on a line of its own, in the syntax of the language: ``# pragma entailment rhodf``, with ``//`` in
Jena's rules, and ``<!-- pragma entailment rhodf -->`` in XML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from squall.errors import Origin, SquallError, TranslatorError, did_you_mean
from squall.reasoning import NONE
from squall.reasoning.schema import REGIMES

_COMMENT = re.compile(r"[ \t]*(?:#+|//+|<!--)[ \t]*pragma[ \t]+(?P<words>.*?)[ \t]*(?:-->)?[ \t]*")
_NAME = "entailment"


def entailment_of(text: str, name: str, errors: list[SquallError]) -> str | None:
    """Returns the entailment regime that a program names by a pragma, or None.

    Args:
        text: The text of the program.
        name: The name of the text, such as its path.
        errors: A list to which errors are added: there is no such pragma or regime, or there are two regimes.
    """
    regime: str | None = None
    for words, origin in _pragmas(text, name):
        error = _error(words, regime)
        if error is None:
            regime = words[1]
        else:
            errors.append(TranslatorError(error[0], origin, error[1]))
    return regime


def _pragmas(text: str, name: str) -> Iterator[tuple[list[str], Origin]]:
    """Yields the words of each pragma, with its place."""
    if "pragma" not in text:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := _COMMENT.fullmatch(line):
            yield match["words"].split(), Origin(name, text, number, match.start("words") + 1, len(match["words"]))


def _error(words: list[str], regime: str | None) -> tuple[str, str] | None:
    """Returns what is wrong with the words of a pragma, and the hint; or None."""
    regimes = (NONE, *REGIMES)
    remedy = f"write `pragma {_NAME} {'|'.join(regimes)}`"
    if words[:1] != [_NAME]:
        kind = words[0] if words else ""
        return f"there is no pragma `{kind}`", did_you_mean(kind, (_NAME,)) or remedy
    if len(words) != 2 or words[1] not in regimes:
        value = " ".join(words[1:])
        return f"there is no entailment regime `{value}`", did_you_mean(value, regimes) or remedy
    if regime not in (None, words[1]):
        return f"a program has one entailment regime, and not both `{regime}` and `{words[1]}`", "leave one of them out"
    return None
