"""The base of lexers with a lark grammar: reading with a limit on brackets, and hints about expected tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import cast

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from squall.errors import Origin
from squall.lexers.text import Text

MAX_DEPTH = 100
"""The deepest nesting of brackets, in all languages."""

TOO_DEEP = f"brackets are nested deeper than {MAX_DEPTH}"

_CLOSING = {"LBRACE": "}", "LPAR": ")", "LSQB": "]"}
"""The closing brackets by the token types of the opening ones."""
_CLOSED = frozenset({"RBRACE", "RPAR", "RSQB"})

Phrase = tuple[str, Set[str], Set[str]]
"""A phrase for a set of tokens: the words, the tokens that have to be expected, and the tokens that the
phrase covers."""


class Brackets:
    """The brackets that are open at the position of a reader."""

    def __init__(self) -> None:
        self.open: list[Token] = []

    def take(self, token: Token) -> bool:
        """Reads the next token, and returns whether brackets are within the limit."""
        if token.type in _CLOSED and self.open:
            self.open.pop()
        elif token.type in _CLOSING:
            self.open.append(token)
        return len(self.open) <= MAX_DEPTH

    @property
    def closing(self) -> str:
        """The bracket that closes the last open one."""
        return _CLOSING[self.open[-1].type]


class Reader:
    """Reads a text by a grammar. Each language has its own error messages."""

    def __init__(self, text: Text, parser: InteractiveParser) -> None:
        self.text = text
        self.parser = parser
        self.brackets = Brackets()

    def read(self) -> Tree[Token] | None:
        """Returns lark's tree, or None with an error in the text if the text cannot be read."""
        last = Token("BLANK", "", 0, 1, 1, 1, 1, 0)
        try:
            for token in _tokens(self.parser):
                last = token
                if not self.brackets.take(token):
                    self.text.fail(TOO_DEEP, self.origin(token))
                    return None
            return finished(self.parser, last)
        except UnexpectedToken as error:
            if error.token.type == "$END":
                self._end_of_text()
            else:
                self.unexpected(error.token)
        except UnexpectedCharacters as error:
            self.unreadable(cast("int", error.pos_in_stream))
        return None

    def unexpected(self, token: Token) -> None:
        """Records an error for a token at a wrong place."""
        raise NotImplementedError

    def unreadable(self, place: int) -> None:
        """Records an error for a position of the text at which no token begins that may stand there."""
        raise NotImplementedError

    def expected(self) -> str:
        """Returns a hint with the tokens that may stand at the current position."""
        raise NotImplementedError

    def _end_of_text(self) -> None:
        end = len(self.text.text.rstrip())
        if self.brackets.open:
            bracket = self.origin(self.brackets.open[-1])
            self.text.fail("this bracket is never closed", bracket, f"end it with `{self.brackets.closing}`")
        elif not end:
            self.text.fail("there is no program in this text", self.text.origin(0, 1))
        else:
            self.text.fail("the text ends too early", self.text.origin(max(0, end - 1), end), self.expected())

    def accepted(self) -> set[str]:
        """Returns the types of the tokens that may come next."""
        return accepted(self.parser)

    def origin(self, token: Token) -> Origin:
        return self.text.origin(token.start_pos or 0, token.end_pos or 0)


def expected_phrases(
    kinds: Set[str], signs: Mapping[str, str], phrases: Sequence[Phrase]
) -> tuple[list[str], Set[str]]:
    """Returns the phrases for expected tokens, signs first, and the token types without a phrase.

    The first phrase that matches comes first.
    """
    phrase_list = []
    left = kinds
    for phrase, required, covered in phrases:
        if required <= left:
            phrase_list.append(phrase)
            left = left - covered
    return [*(f"`{sign}`" for kind, sign in signs.items() if kind in left), *phrase_list], left


def expected_hint(words: Sequence[str]) -> str:
    """Returns words as a hint: ``expected a, b or c``."""
    *before, final = words or ["nothing more"]
    return f"expected {', '.join(before)} or {final}" if before else f"expected {final}"


# lark leaves these methods without types.


def _tokens(parser: InteractiveParser) -> Iterable[Token]:
    return parser.iter_parse()


def finished(parser: InteractiveParser, last: Token) -> Tree[Token]:
    """Returns the tree of all tokens that the parser has read.

    Raises:
        UnexpectedToken: The text is not complete.
    """
    return cast("Tree[Token]", parser.feed_eof(last))  # type: ignore[no-untyped-call]


def accepted(parser: InteractiveParser) -> set[str]:
    """Returns the types of the tokens that may come next."""
    return cast("set[str]", parser.accepts())  # type: ignore[no-untyped-call]
