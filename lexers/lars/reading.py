"""Reads LARS programs by a lark grammar, with error messages."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree

from squall.errors import Origin
from squall.lexers.reading import Phrase, Reader, expected_hint, expected_phrases
from squall.lexers.text import Text

_SIGNS = {
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "DOT": ".", "COMMA": ",", "HASH": "#", "_IF": ":-",
}  # fmt: skip
_WORDS = {"_IN": "in", "_AT": "at", "_ALWAYS": "always", "_STEP": "step", "NOT": "not"}
_PHRASES: tuple[Phrase, ...] = (
    ("a value", {"VARIABLE", "STRING"}, {"VARIABLE", "STRING", "NUMBER", "NAME", "CURIE", "IRIREF"}),
    ("a rule", {"_PREFIX", "NAME"}, {"_PREFIX", "_TICK", "NAME", "CURIE", "IRIREF"}),
    ("an atom", {"NAME", "CURIE"}, {"NAME", "CURIE", "IRIREF"}),
    ("a variable", {"VARIABLE"}, {"VARIABLE"}),
    ("a comparison", {"COMPARED"}, {"COMPARED"}),
    ("an operation", {"PLUS"}, {"PLUS", "MINUS", "TIMES"}),
    ("a number", {"NUMBER"}, {"NUMBER"}),
    ("a unit of time", {"NAME"}, {"NAME"}),
    ("an IRI", {"IRIREF"}, {"IRIREF", "CURIE"}),
    ("a prefix with its colon", {"NAMESPACE"}, {"NAMESPACE"}),
)
_HABITS = {
    "<-": "a rule is written `head :- body.`",
    "->": "a rule is written `head :- body.`",
    "#": "a comment begins with `%`",
    "//": "a comment begins with `%`",
    "&": "conditions are separated by commas",
    ";": "write a rule for each alternative",
    "|": "write a rule for each alternative: heads have one atom",
    "?": "a variable begins with a capital letter: `X`",
    "'": 'texts stand in double quotes: `"text"`',
    "==": "equality is `=`",
    "<>": "inequality is `!=`",
}


def read(text: Text) -> Tree[Token] | None:
    """Returns lark's tree, or None with an error in the text if the text cannot be read."""
    return _Reader(text, _grammar().parse_interactive(text.text)).read()


class _Reader(Reader):
    def unexpected(self, token: Token) -> None:
        self._misplaced(str(token), self.origin(token))

    def unreadable(self, place: int) -> None:
        piece = re.compile(r'"(?:[^"\\\n]|\\.)*"?|:-|<-|->|==|<>|//|<[^\s>]*>?|\w+|\S').match(self.text.text, place)
        excerpt = piece[0] if piece else self.text.text[place]
        origin = self.text.origin(place, place + len(excerpt))
        if excerpt[0] == '"' and (len(excerpt) < 2 or excerpt[-1] != '"'):
            self.text.fail("this text is never closed", self.text.origin(place, place + 1), 'end it with `"`')
        else:
            self._misplaced(excerpt, origin)

    def _misplaced(self, token_text: str, origin: Origin) -> None:
        self.text.fail(f"`{token_text[:40]}` cannot stand here", origin, _HABITS.get(token_text) or self.expected())

    def expected(self) -> str:
        phrases, left = expected_phrases(self.accepted(), _SIGNS, _PHRASES)
        words = [f"`{word}`" for kind, word in _WORDS.items() if kind in left]
        return expected_hint([*phrases, *words, *(["the end"] if "$END" in left else [])])


@cache
def _grammar() -> Lark:
    text = files("squall.lexers.lars").joinpath("lars.lark").read_text(encoding="utf-8")
    return Lark(
        text, start="program", parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False
    )
