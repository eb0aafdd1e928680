"""Reads the text of HFC's rules and queries by a lark grammar, with error messages."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree

from squall.errors import Origin
from squall.lexers.rdf12 import TRIPLE_TERMS
from squall.lexers.reading import Phrase, Reader, expected_hint, expected_phrases
from squall.lexers.text import Text

_SIGNS = {
    "_ARROW": "->", "_TEST": "@test", "_ACTION": "@action", "_WHERE": "WHERE", "_FILTER": "FILTER", "_IS": "=",
    "DISTINCT": "DISTINCT",
}  # fmt: skip
_TERMS = {"VAR", "IRIREF", "PNAME_LN", "STRING", "BLANK_NODE"}
_PHRASES: tuple[Phrase, ...] = (
    ("a comparison", {"COMPARISON"}, {"COMPARISON"}),
    ("a test", {"FUNCTION", "STRING"}, _TERMS | {"FUNCTION"}),
    ("a function", {"FUNCTION"}, {"FUNCTION", "IRIREF", "PNAME_LN"}),
    ("a rule or a query", {"VAR", "_SELECT"}, _TERMS | {"_SELECT", "_PREFIX", "NAME", "_NL", "_SEP"}),
    ("a term", {"VAR", "STRING"}, _TERMS),
    ("a variable", {"VAR"}, {"VAR"}),
    ("an IRI", {"IRIREF"}, {"IRIREF", "PNAME_LN"}),
    ("a prefix and its colon", {"PNAME_NS"}, {"PNAME_NS"}),
    ("the next line", {"_NL"}, {"_NL", "_SEP", "$END"}),
)
_HABITS = {
    "[": "HFC has no brackets: a tuple, a test or an action is on a line of its own",
    "(": "HFC has no brackets: a tuple is terms on a line, and a test `Name ?x ?y`",
    "=": "terms are compared by `==` and `!=`; an action, behind `@action`, is `?v = Name ?x`",
    "<": "times are compared by functions: `DTLess ?x ?y`",
    ">": "times are compared by functions: `DTLess ?y ?x`",
    "'": 'texts stand in double quotes: `"text"`',
    ".": "the end of the line ends a tuple",
    "*": "a query names its variables",
}
_PIECE = re.compile(r'"(?:[^"\\\r\n]|\\.)*"?|<[^\s>]*>?|@\w*|[\w:?$.-]+|->|[!=]=|\S')


def read(text: Text) -> Tree[Token] | None:
    """Returns lark's tree, or None with an error in the text if the text cannot be read."""
    return _Reader(text, _grammar().parse_interactive(text.text)).read()


class _Reader(Reader):
    def unexpected(self, token: Token) -> None:
        start, end = token.start_pos or 0, token.end_pos or 0
        if token.type in ("_SEP", "_NL"):
            place = start
            self._misplaced("the end of the line", self.text.origin(place, place + 1))
        else:
            piece = self.text.text[start:end]
            begin = start + len(piece) - len(piece.lstrip())
            self._misplaced(f"`{piece.strip()}`", self.text.origin(begin, begin + len(piece.strip())))

    def unreadable(self, place: int) -> None:
        """Records an error for a position at which no acceptable token begins."""
        text = self.text.text
        if text[place] in "\r\n":
            self._misplaced("the end of the line", self.text.origin(place, place + 1))
            return
        match = _PIECE.match(text, place)
        piece = match[0] if match else text[place]
        origin = self.text.origin(place, place + len(piece))
        if piece[0] == '"' and (len(piece) < 2 or piece[-1] != '"'):
            self.text.fail("this text is never closed", self.text.origin(place, place + 1), 'end it with `"`')
        elif piece.startswith("<<"):
            self.text.fail(TRIPLE_TERMS, origin)
        elif piece[0] == "<" and len(piece) > 1:
            self.text.fail(f"`{piece}` is not an IRI", origin, "an IRI ends with `>`, and has no blanks in it")
        else:
            self._misplaced(f"`{piece}`", origin, _HABITS.get(piece[0]))

    def _misplaced(self, what: str, origin: Origin, hint: str | None = None) -> None:
        self.text.fail(f"{what} cannot stand here", origin, hint or self.expected())

    def expected(self) -> str:
        phrases, left = expected_phrases(self.accepted(), _SIGNS, _PHRASES)
        return expected_hint([*phrases, *(["the end"] if "$END" in left else [])])


@cache
def _grammar() -> Lark:
    text = files("squall.lexers.hfc").joinpath("hfc.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)
