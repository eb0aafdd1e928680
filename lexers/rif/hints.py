"""Hints for texts that are not RIF-BLD: the words of RIF-PRD, and habits of other languages."""

from __future__ import annotations

import re

_RULE = "RIF-BLD has `conclusion :- condition`"
_ACTION = "rules here conclude what holds while their condition does; for actions, use SPARQL Update as standing rules"
_NEGATION = (
    "RIF-BLD has no negation; in a program beside this one, use `noValue` of Jena's rules or NOT EXISTS of SPARQL"
)

_PRD = {
    **dict.fromkeys(("If", "Then"), _RULE),
    **dict.fromkeys(("Do", "Assert", "Retract", "Modify", "Execute", "New"), _ACTION),
    **dict.fromkeys(("Not", "INeg", "Naf"), _NEGATION),
    "such": "write what variables are bound to into the condition",
}

_COMPARED = "values are compared by built-ins: `External(pred:numeric-less-than(?x 5))`"
_COMMENT = "the presentation syntax has no comments; meta-data stand in `(*` and `*)`: an IRI or a text, and frames"
_HABITS = {
    **dict.fromkeys(("%", "//", "/*", "<!--"), _COMMENT),
    **dict.fromkeys(("<", "<=", ">", ">=", "!="), _COMPARED),
    **dict.fromkeys(("true", "false"), 'booleans are `"true"^^xs:boolean` and `"false"^^xs:boolean`'),
    **dict.fromkeys(("Equal", "Member", "Subclass", "Frame"), "it is written `a = b`, `a # b`, `a ## b`, `a[b -> c]`"),
    **dict.fromkeys(("forall", "exists", "and", "or", "external", "list"), "keywords begin with a capital letter"),
    ",": "nothing stands between terms, variables or slots but blanks; conditions are joined by `And(... ...)`",
    "&": "conditions are joined by `And(... ...)`",
    "'": 'texts stand in double quotes: `"text"`',
    "<-": "a rule is written `conclusion :- condition`",
    "->": "a rule is written `conclusion :- condition`",
    ":-": "a relation without arguments is written `ex:p()`",
    "Exists": "conclusions make new things by functions: `ex:f(?x)`",
    "Or": "a conclusion cannot leave open which one holds",
    "rdf:type": "triples are frames: `?x[rdf:type -> ex:C]`, or `?x # ex:C`",
    "a": "triples are frames: `?x[rdf:type -> ex:C]`, or `?x # ex:C`",
}
SIGNS = r"<!--|//|/\*|<=|>=|!=|<-|->"
"""The pieces of text that an error shows as one if they are misplaced."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WORD = re.compile(r"[^\W0-9][\w.-]*")


def production_hint(word: str) -> str | None:
    """Returns a hint for a word or an element of RIF-PRD."""
    return f"`{word}` is of RIF-PRD: {_PRD[word]}" if word in _PRD else None


def habit_hint(piece: str) -> str | None:
    """Returns a hint for a piece of text with a probable meaning."""
    if _DATE.fullmatch(piece):
        return f'dates are texts with a datatype: `"{piece}"^^xs:date`'
    return _HABITS.get(piece)


def name_hint(piece: str) -> str | None:
    """Returns a hint for a bare word in place of a term."""
    return f"names are IRIs (`<{piece}>`, `ex:{piece}`) or local (`_{piece}`)" if _WORD.fullmatch(piece) else None
