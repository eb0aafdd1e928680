"""The words of RIF-PRD, the dialect of production rules, which is not run, and what to write instead."""

from __future__ import annotations

_RULE = "RIF-BLD has `conclusion :- condition`"
_ACTION = "rules here conclude what holds while their condition does; for actions, use SPARQL Update as standing rules"
_NEGATION = (
    "RIF-BLD has no negation; in a program beside this one, use `noValue` of Jena's rules or NOT EXISTS of SPARQL"
)

_HINTS = {
    **dict.fromkeys(("If", "Then"), _RULE),
    **dict.fromkeys(("Do", "Assert", "Retract", "Modify", "Execute", "New"), _ACTION),
    **dict.fromkeys(("Not", "INeg", "Naf"), _NEGATION),
    "such": "write what variables are bound to into the condition",
}


def hint(word: str) -> str | None:
    """What to do about a word or an element, if it is one of RIF-PRD."""
    return f"`{word}` is of RIF-PRD: {_HINTS[word]}" if word in _HINTS else None
