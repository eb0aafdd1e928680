"""Reads RIF's presentation syntax by a lark grammar, with error messages."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree

from squall.errors import Origin, did_you_mean
from squall.lexers.rdf12 import TRIPLE_TERMS
from squall.lexers.reading import Phrase, Reader, expected_hint, expected_phrases
from squall.lexers.rif import hints
from squall.lexers.text import Text

_KEYWORDS = ("Document", "Base", "Prefix", "Import", "Group", "Forall", "Exists", "And", "Or", "External", "List")
_SIGNS = {
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "EQUAL": "=", "HASH": "#", "VBAR": "|", "_OPEN": "(*",
    "_CLOSE": "*)",
}  # fmt: skip
_TERMS = {"VAR", "STRING", "IRIREF", "CURIE", "NUMBER", "LOCAL", "_LIST", "_EXTERNAL", "_OPEN"}
_FORMULAS = _TERMS | {"_AND", "_OR", "_EXISTS"}
_RULES = _TERMS | {"_GROUP", "_FORALL", "_AND"}
_PHRASES: tuple[Phrase, ...] = (
    ("a rule", {"_FORALL", "VAR"}, _RULES),
    ("a formula", {"_EXISTS", "VAR"}, _FORMULAS),
    ("a term", {"VAR", "_LIST"}, _TERMS),
    ("a constant", {"STRING", "LOCAL"}, {"STRING", "IRIREF", "CURIE", "NUMBER", "LOCAL"}),
    ("a variable", {"VAR"}, {"VAR"}),
    ("an IRI", {"IRIREF"}, {"IRIREF", "CURIE"}),
    ("a language", {"LANGTAG"}, {"LANGTAG"}),
    ("a name", {"NAME"}, {"NAME", "STRING", "LOCAL"}),
)


def read(text: Text, start: str) -> Tree[Token] | None:
    """Returns lark's tree, or None with an error in the text if the text cannot be read.

    Args:
        text: The text.
        start: The start rule of the grammar.
    """
    return _Reader(text, start).read()


class _Reader(Reader):
    def __init__(self, text: Text, start: str) -> None:
        super().__init__(text, _grammar().parse_interactive(text.text, start=start))

    def unexpected(self, token: Token) -> None:
        self._misplaced(str(token), self.origin(token))

    def unreadable(self, place: int) -> None:
        """Records an error for a position at which no acceptable token begins."""
        text = self.text.text
        piece = re.compile(rf'"(?:[^"\\\n]|\\.)*"?|{hints.SIGNS}|<[^\s>]*>?|[\w.-]+|\S').match(text, place)
        excerpt = piece[0] if piece else text[place]
        origin = self.text.origin(place, place + len(excerpt))
        if excerpt[0] == '"' and (len(excerpt) < 2 or excerpt[-1] != '"'):
            self.text.fail("this text is never closed", self.text.origin(place, place + 1), 'end it with `"`')
        elif excerpt[0] == '"' and (wrong := re.search(r"\\[^\"'\\tbnrf]", excerpt)):
            start = place + wrong.start()
            hint = r"escapes: \t \b \n \r \f \\ \" \' \uXXXX \UXXXXXXXX"
            self.text.fail(f"`{wrong[0]}` is no escape", self.text.origin(start, start + 2), hint)
        elif excerpt.startswith("<<"):
            self.text.fail(TRIPLE_TERMS, self.text.origin(place, place + 2))
        elif excerpt[0] == "<" and not hints.habit_hint(excerpt) and "IRIREF" in self.accepted():
            self.text.fail(f"`{excerpt}` is not an IRI", origin, "an IRI ends with `>`, and has no blanks in it")
        else:
            self._misplaced(excerpt, origin)

    def _misplaced(self, token_text: str, origin: Origin) -> None:
        shortened = token_text if len(token_text) <= 40 else f"{token_text[:37]}..."
        self.text.fail(f"`{shortened}` cannot stand here", origin, self._hint(token_text) or self.expected())

    def _hint(self, token_text: str) -> str | None:
        """Returns what a piece of text is meant to be, or None if that cannot be guessed."""
        accepted = self.accepted()
        before = self.parser.parser_state.value_stack[-1:]
        if before and getattr(before[0], "type", "") == "NAME" and token_text != ":":
            word = str(before[0])
            return hints.habit_hint(word) or f"expected `->` behind the name of an argument; {hints.name_hint(word)}"
        if token_text == ":" and "IRIREF" in accepted:
            return "a prefix is declared without a colon: `Prefix(ex <http://example.org/>)`"
        hint = hints.production_hint(token_text) or hints.habit_hint(token_text)
        if hint or not token_text.isalpha() or token_text in _KEYWORDS:
            return hint
        words = [word for word in _KEYWORDS if f"_{word.upper()}" in accepted]
        return did_you_mean(token_text, words) or (hints.name_hint(token_text) if "CURIE" in accepted else None)

    def expected(self) -> str:
        phrases, left = expected_phrases(self.accepted(), _SIGNS, _PHRASES)
        words = [f"`{word}`" for word in _KEYWORDS if f"_{word.upper()}" in left]
        signs = [f"`{sign}`" for name, sign in sorted(_anonymous().items()) if name in left]
        return expected_hint([*phrases, *words, *signs, *(["the end"] if "$END" in left else [])])


def _anonymous() -> dict[str, str]:
    """Returns the two-character signs of the grammar, by the names that lark gives them."""
    return {
        terminal.name: terminal.pattern.value for terminal in _grammar().terminals if terminal.name.startswith("__ANON")
    }


@cache
def _grammar() -> Lark:
    text = files("squall.lexers.rif").joinpath("rif.lark").read_text(encoding="utf-8")
    return Lark(
        text, start=["document", "formula"], parser="lalr", lexer="contextual", propagate_positions=True,
        maybe_placeholders=False,
    )  # fmt: skip
